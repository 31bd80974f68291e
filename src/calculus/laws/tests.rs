//! Operators that keep their laws pass, others are refused with a small counterexample.

use super::*;
use crate::diag::{Severity, Source};
use crate::lang;

fn found(text: &str) -> Vec<Diagnostic> {
    let source = Source::new("a.pat", text);
    let entry = lang::check_entry(&source, None).expect("the program is well-typed");
    let sizes: Sizes = entry.sizes.iter().map(|n| (n.clone(), 1 << 20)).collect();
    check(&entry, &sizes)
}

#[track_caller]
fn passes(text: &str) {
    let found = found(text);
    assert!(found.is_empty(), "{text}\n{found:#?}");
}

/// Checks that the program is refused with this message, at this place.
#[track_caller]
fn refused(text: &str, message: &str, place: &str) -> Vec<String> {
    let found = found(text);
    assert_eq!(found.len(), 1, "{text}\n{found:#?}");
    let d = &found[0];
    assert_eq!((d.code, d.severity), (Code::OperatorLaw, Severity::Error));
    assert!(d.message.contains(message), "{}", d.message);
    assert_eq!(&text[d.labels[0].span.range()], place, "{text}");
    d.notes.clone()
}

fn reduce(element: &str, op: &str, z: &str) -> String {
    format!("entry f [n] (xs: [n]{element}) : {element} = reduce ({op}) {z} xs")
}

#[test]
fn operators_of_the_language_pass() {
    for (t, op, z) in [
        ("f32", "+", "0"),
        ("f64", "*", "1"),
        ("i32", "+", "0"),
        ("u8", "*", "1"),
        ("f32", "\\a b -> max a b", "f32.lowest"),
        ("i32", "\\a b -> min a b", "i32.highest"),
        ("i64", "\\a b -> max a b", "i64.lowest"),
        ("bool", "&&", "true"),
        ("bool", "||", "false"),
        ("bool", "^", "false"),
        ("i32", "&", "(-1)"),
        ("u16", "|", "0"),
        ("bool", "\\a b -> a != b", "false"),
    ] {
        passes(&reduce(t, op, z));
    }
}

/// The elements are quotients that may be no number, with which every comparison is false.
#[test]
fn elements_that_are_no_numbers_say_nothing() {
    passes(
        "entry f [n] (xs: [n]f32) : (f32, i32) =
           reduce (\\(x, i) (y, j) -> if x > y || (x == y && i < j) then (x, i) else (y, j)) (f32.lowest, n)
             (zip (map (\\x -> x / abs x) xs) (iota n))",
    );
}

#[test]
fn operators_of_people_that_keep_their_laws_pass() {
    for (t, op, z) in [
        // Component-wise.
        ("(f32, f32)", "\\(a, b) (c, d) -> (a + c, b * d)", "(0, 1)"),
        // Complex products.
        ("(f32, f32)", "\\(a, b) (c, d) -> (a * c - b * d, a * d + b * c)", "(1, 0)"),
        // The least element with its index; ties go to the left.
        ("(f32, i32)", "\\(a, i) (b, j) -> if a <= b then (a, i) else (b, j)", "(f32.highest, -1)"),
        // Affine maps.
        ("(f32, f32)", "\\(a, b) (c, d) -> (a * c, a * d + b)", "(1, 0)"),
        ("(i32, i32)", "\\(a, b) (c, d) -> (a * c, a * d + b)", "(1, 0)"),
        // log-sum-exp as a maximum and a sum.
        (
            "(f32, f32)",
            "\\(m, s) (k, t) -> let h = max m k in (h, s * exp (m - h) + t * exp (k - h))",
            "(f32.lowest, 0)",
        ),
        ("f32", "\\a b -> a + b", "0.0"),
        ("f16", "\\a b -> b + a", "0"),
        ("f32", "\\a b -> a + b - a * b", "0"),
        ("bool", "\\a b -> if a then b else false", "true"),
    ] {
        passes(&reduce(t, op, z));
    }
    passes("entry f [n][m] (xss: [n][m]f32) : [m]f32 = reduce (map2 (+)) (replicate m 0) xss");
    passes(
        "entry f [n] (xs: [n](f32, i32)) : (f32, i32) = reduce_comm (\\(a, i) (b, j) -> if a < b || (a == b && i < j) then (a, i) else (b, j)) (f32.highest, i32.highest) xs",
    );
}

/// Whether the laws of a program's only reduction are proved.
fn proved(text: &str) -> bool {
    let source = Source::new("a.pat", text);
    find::sites(&lang::check_entry(&source, None).expect("the program is well-typed")).is_empty()
}

#[test]
fn laws_of_operators_built_of_known_ones_are_proved() {
    for (t, op, z) in [
        ("f32", "+", "0"),
        ("i64", "\\a b -> min b a", "i64.highest"),
        ("u64", "\\a b -> max a b", "0"),
        ("bool", "\\a b -> a != b", "false"),
        ("f32", "\\a b -> if a > b then a else b", "f32.lowest"),
        ("i32", "&", "(-1)"),
        ("u8", "&", "(~0)"),
        ("i64", "\\a b -> b & a", "(~0)"),
        ("u64", "|", "0"),
        ("i32", "^", "0"),
        ("bool", "&", "true"),
        ("bool", "^", "false"),
        ("(u32, i32)", "\\(a, b) (c, d) -> (a ^ c, b | d)", "(0, 0)"),
        // Component-wise, in any order of the components.
        ("(f32, f32)", "\\(a, b) (c, d) -> (a + c, max b d)", "(0, f32.lowest)"),
        (
            "(i32, (bool, f32))",
            "\\(a, (b, c)) (d, (e, f)) -> let m = min c f in (d * a, (b || e, m))",
            "(1, (false, f32.highest))",
        ),
        // Sums and products: complex numbers, affine maps, matrices of two rows.
        ("(f32, f32)", "\\(a, b) (c, d) -> (a * c - b * d, a * d + b * c)", "(1, 0)"),
        ("(u8, u8)", "\\(a, b) (c, d) -> (a * c, a * d + b)", "(1, 0)"),
        ("f32", "\\a b -> a + b - a * b", "0"),
        ("i32", "\\a b -> a + b + 1000000", "(-1000000)"),
        (
            "((i64, i64), (i64, i64))",
            "\\((a, b), (c, d)) ((e, f), (g, h)) -> ((a * e + b * g, a * f + b * h), (c * e + d * g, c * f + d * h))",
            "((1, 0), (0, 1))",
        ),
        // A maximum beside an affine map.
        (
            "(i32, i32, i32)",
            "\\(a, m, b) (c, n, d) -> (a * c, max m n, a * d + b)",
            "(1, i32.lowest, 0)",
        ),
    ] {
        assert!(proved(&reduce(t, op, z)), "{op} {z}");
    }
    let rows = |op: &str, z: &str| {
        format!("entry f [n][m] (xss: [n][m]f32) : [m]f32 = reduce ({op}) (replicate m {z}) xss")
    };
    assert!(proved(&rows("map2 (+)", "0")));
    for text in [
        rows("\\a b -> map2 (\\x y -> x - y) a b", "0"),
        rows("map2 (+)", "1"),
        reduce("f32", "\\a b -> a - b", "0"),
        reduce("f32", "\\a b -> (a + b) / 2", "0"),
        reduce("i32", "\\a b -> max a b", "0"),
        reduce("i32", "\\a b -> a & b", "0"),
        reduce("i32", "\\a b -> a << b", "0"),
        reduce("i32", "\\a b -> min 1000 (a + b)", "0"),
        reduce("(f32, f32)", "\\(a, b) (c, d) -> (a + d, b + c)", "(0, 0)"),
        reduce("(f32, f32)", "\\(a, b) (c, d) -> (a + c, max a d)", "(0, f32.lowest)"),
        reduce("(f32, f32)", "\\(a, b) (c, d) -> (b, a)", "(0, 0)"),
        // A conversion is no sum of its argument.
        reduce("f32", "\\a b -> f32.i32 (i32.f32 a) + b", "0"),
        // An affine map does not commute.
        reduce("(i32, i32)", "\\(a, b) (c, d) -> (a * c, a * d + b)", "(1, 0)")
            .replace("reduce", "reduce_comm"),
    ] {
        assert!(!proved(&text), "{text}");
    }
}

#[test]
fn what_holds_for_small_numbers_alone_is_refused() {
    for (t, op, place) in [
        ("i32", "\\a b -> min 1000000 (a + b)", "min 1000000 (a + b)"),
        ("i64", "\\a b -> max (-5000000000) (a + b)", "max (-5000000000) (a + b)"),
        ("f32", "\\a b -> min 1000000 (a + b)", "min 1000000 (a + b)"),
        ("i32", "\\a b -> min (1000 * 1000) (a + b)", "min (1000 * 1000) (a + b)"),
        (
            "i32",
            "\\a b -> if a > 70000 then a - b else a + b",
            "if a > 70000 then a - b else a + b",
        ),
        ("f32", "\\a b -> if b == 12345 then a else a + b", "if b == 12345 then a else a + b"),
    ] {
        let text = reduce(t, op, "0");
        let found = found(&text);
        assert_eq!(found.len(), 1, "{text}");
        assert_eq!(
            (found[0].code, &text[found[0].labels[0].span.range()]),
            (Code::OperatorLaw, place)
        );
    }
    // A constant bound to a name.
    let text = "entry f [n] (xs: [n]i32) : i32 = let cap = 300 * 1000 in reduce (\\a b -> min cap (a + b)) 0 xs";
    refused(text, "associative", "min cap (a + b)");
    // A sum of elements that are never negative may be capped.
    passes(
        "entry f [n] (xs: [n]u32) : u32 = xs |> map (\\x -> x / 16) |> reduce (\\a b -> min 1000000 (a + b)) 0",
    );
}

#[test]
fn others_are_refused_with_small_numbers() {
    for (t, op, z, message, place) in [
        ("f32", "\\a b -> a - b", "0", "associative", "a - b"),
        ("f32", "\\a b -> (a + b) / 2", "0", "associative", "(a + b) / 2"),
        ("f32", "+", "1.0", "neutral", "1.0"),
        ("i32", "\\a b -> max a b", "0", "neutral", "0"),
        ("f32", "\\a b -> a + b * b", "0", "associative", "a + b * b"),
        (
            "i32",
            "\\a b -> if a == 0 then b else if b == 0 then a else a - b",
            "0",
            "associative",
            "if a == 0 then b else if b == 0 then a else a - b",
        ),
        (
            "f32",
            "\\a b -> if a == 0 then b else if b == 0 then a else (a + b) / 2",
            "0",
            "associative",
            "if a == 0 then b else if b == 0 then a else (a + b) / 2",
        ),
        (
            "f32",
            "\\a b -> a * b + a + b + a * a * b",
            "0",
            "associative",
            "a * b + a + b + a * a * b",
        ),
    ] {
        let notes = refused(&reduce(t, op, z), message, place);
        let digits = notes[0].chars().filter(char::is_ascii_digit).count();
        assert!(digits <= 6, "{notes:?}");
    }
    let ties = "entry f [n] (xs: [n](f32, i32)) : (f32, i32) = reduce_comm (\\(a, i) (b, j) -> if a <= b then (a, i) else (b, j)) (f32.highest, -1) xs";
    refused(ties, "commutative", "if a <= b then (a, i) else (b, j)");
    // 0 does nothing to the elements, which are all 1, but is not neutral for itself: empty bins would change.
    let ones =
        "entry f [n][m] (is: [m]i32) : [n]i32 = histogram (\\a b -> 1) 0 n is (replicate m 1)";
    refused(ones, "neutral", "0");
}

#[test]
fn elements_are_what_the_program_makes() {
    // 0 is neutral for the maximum of absolute values, also through lets, maps and rows.
    passes("entry f [n] (xs: [n]f32) : f32 = xs |> map abs |> reduce max 0");
    passes(
        "entry f [n][m] (xss: [n][m]f32) : [n]f32 = let ys = map (map abs) xss in map (reduce max 0) ys",
    );
    passes(
        "entry f [n] (xs: [8*n]f32) : [n]f32 = xs |> map (\\x -> x * x) |> split 8 |> map (\\row -> reduce max 0 row)",
    );
    // Sums modulo 7, on elements that are remainders.
    passes(
        "entry f [n] (xs: [n]i32) : i32 = xs |> map (\\x -> abs x % 7) |> reduce (\\a b -> (a + b) % 7) 0",
    );
    refused(
        "entry f [n] (xs: [n]i32) : i32 = xs |> reduce (\\a b -> (a + b) % 7) 0",
        "associative",
        "(a + b) % 7",
    );
    // Forces on particles, through indices; some are infinite.
    passes(
        "def add (a, b) (c, d) = (a + c, b + d)\nentry f [n][k] (ps: [n](f32, f32)) (js: [n][k]i32) : [n](f32, f32) = map2 (\\(x, y) j -> gather ps j |> map (\\(u, v) -> let r = (x - u) * (x - u) + (y - v) * (y - v) in ((x - u) / r, (y - v) / r)) |> reduce add (0, 0)) ps js",
    );
    // Merging moments with positive counts.
    passes(
        "entry f [n] (xs: [n]f32) : (f32, f32, f32) = xs |> map (\\x -> (1.0, x, 0.0)) |> reduce (\\(n, m, s) (k, l, t) -> if n == 0 then (k, l, t) else if k == 0 then (n, m, s) else let d = l - m in (n + k, m + d * k / (n + k), s + t + d * d * n * k / (n + k))) (0, 0, 0)",
    );
}

#[test]
fn captured_variables_take_part() {
    passes("entry f [n] (xs: [n]f32) (c: f32) : f32 = reduce (\\a b -> a + b + c - c) 0 xs");
    let notes = refused(
        "entry f [n] (xs: [n]i32) (c: i32) : i32 = reduce (\\a b -> if c == 3 then a - b else a + b) 0 xs",
        "associative",
        "if c == 3 then a - b else a + b",
    );
    assert!(notes.iter().any(|n| n == "with c = 3"), "{notes:?}");
    passes(
        "entry f [n] (xs: [n]i32) (ws: [4]i32) : i32 = reduce (\\a b -> a + b + ws[0] - ws[0]) 0 xs",
    );
    passes(
        "entry f [n] (xs: [n]f32) (ys: [n]f32) : [n]f32 = map (\\y -> reduce (\\a b -> a + b + 0 * y) 0 xs) ys",
    );
}

#[test]
fn programs_without_values_on_random_inputs_are_tried_all_the_same() {
    // Indices that are nearly always out of bounds.
    refused(
        "entry f [n] (xs: [4]f32) (is: [n]i32) : f32 = is |> map (\\i -> xs[i * 1000 + 500]) |> reduce (\\a b -> a - b) 0",
        "associative",
        "a - b",
    );
    // No value anywhere.
    let text = "entry f [n] (xs: [n]i32) : i32 = reduce (\\a b -> a + b + a / 0) 0 xs";
    let found = found(text);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].code, found[0].severity), (Code::OperatorUntested, Severity::Warning));
}

#[test]
fn long_chunks_iterates_and_other_patterns_are_found() {
    refused(
        "entry f [n] (xs: [n]f32) : [n/128]f32 = xs |> split 128 |> map (reduce (\\a b -> a - b) 0)",
        "associative",
        "a - b",
    );
    passes(
        "entry f (xs: [64]f32) : [8]f32 = iterate 3 (\\ys -> ys |> split 2 |> map (reduce (\\a b -> b + a + 0) 0)) xs",
    );
    for (text, place) in [
        ("entry f [n] (xs: [n]f32) : [n]f32 = scan (\\a b -> a * 2 + b) 0 xs", "a * 2 + b"),
        ("entry f [n] (xs: [4*n]f32) : [4]f32 = reducePart (\\a b -> a - b) 0 4 xs", "a - b"),
        (
            "entry f [n] (is: [n]i32) (xs: [n]f32) : [3]f32 = histogram (\\a b -> b - a) 0 3 is xs",
            "b - a",
        ),
    ] {
        refused(text, "associative", place);
    }
    // The values of a bin come in any order.
    refused(
        "entry f [n] (is: [n]i32) (xs: [n](i32, i32)) : [3](i32, i32) = histogram (\\(a, b) (c, d) -> (a * c, a * d + b)) (1, 0) 3 is xs",
        "commutative",
        "(a * c, a * d + b)",
    );
    // A fold from the left promises nothing.
    passes("entry f [n] (xs: [n]f32) : f32 = reduceSeq (\\a b -> a - b) 0 xs");
}

/// The program after its initial values were made neutral, and the number of those that were not.
fn begun(text: &str) -> (Entry, usize) {
    let source = Source::new("a.pat", text);
    let mut entry = lang::check_entry(&source, None).expect("the program is well-typed");
    let sites = begins(&entry);
    begin(&mut entry, &sites);
    (entry, sites.len())
}

/// Kernels combine initial values with each other where there are fewer elements than work-items.
#[test]
fn infinite_initial_values_are_neutral_for_themselves() {
    let pair = "(\\(a, x) (b, y) -> let m = max a b in (m, x * exp (a - m) + y * exp (b - m))) (lowest, 0)";
    let log = "(\\a b -> let m = max a b in m + log (exp (a - m) + exp (b - m))) f32.lowest";
    for (op, ty, is_changed) in
        [(pair, "(f32, f32)", true), (log, "f32", true), ("max f32.lowest", "f32", false)]
    {
        let text = format!("entry f [n] (xs: [n]{ty}) : {ty} = reduce {op} xs");
        passes(&text);
        let (entry, count) = begun(&text);
        assert_eq!(count, usize::from(is_changed), "{text}");
        // The reduction is now over initial values as well.
        let ExprKind::Prim { funs, args, .. } = &entry.body.kind else { panic!("a reduction") };
        let twice = applied(&funs[0], args[0].clone(), args[0].clone());
        let alone = Entry { params: vec![], body: twice, ..entry.clone() };
        let value = interp::run(&alone, &Sizes::new(), &[]).expect("a value");
        assert_eq!(value.to_floats()[0], f64::NEG_INFINITY, "{text}");
        assert!(value.to_floats().iter().all(|x| !x.is_nan()), "{text}");
    }
}

#[test]
fn initial_values_that_change_elements_are_combined_with_results() {
    let changed = [
        "entry f [n] (xs: [n]i32) : i32 = reduce max 3 xs",
        "entry f [n] (xs: [n]f32) (c: f32) : [n]f32 = scan (+) c xs",
        "entry f [n][m] (xss: [n][m]f32) : [m]f32 = reduce (map2 min) xss[0] xss",
        "entry f [n][m] (is: [n]i32) (xs: [n]i32) : [m]i32 = histogram (+) 1 m is xs",
        "entry f [n] (xs: [n](f32, i32)) : (f32, i32) = reduce (\\(a, b) (c, d) -> (a + c, max b d)) (0, 0) xs",
        "entry f [n] (xs: [2 * n]f32) : [n]f32 = reducePart (+) 3 n xs",
        "entry f [n][m] (xss: [n][m]f32) : [n]f32 = map (\\r -> reduce (+) r[0] r) xss",
    ];
    let sizes: Sizes = [("n".to_owned(), 5), ("m".to_owned(), 3)].into_iter().collect();
    for text in changed {
        let source = Source::new("a.pat", text);
        let written = lang::check_entry(&source, None).expect("the program is well-typed");
        let (entry, count) = begun(text);
        assert_eq!(count, 1, "{text}");
        assert!(find::sites(&entry).is_empty(), "{text}");
        let inputs: Vec<Value> = (0u64..)
            .zip(&entry.params)
            .map(|(k, p)| {
                let shape = interp::shape(&p.ty, &sizes).expect("all sizes have values");
                sample::value(&mut sample::rng(k, "begun", 0), &shape, Style::Small)
            })
            .collect();
        let run = |e: &Entry| interp::run(e, &sizes, &inputs).expect("the program has a value");
        let near = compare_values(&run(&written), &run(&entry), |t| Tolerance::of(t, 4));
        assert!(near.ok, "{text}: {:?} {:?}", run(&written), run(&entry));
    }
    for text in [
        // Neutral for the elements; no neutral element is known; not associative.
        "entry f [n] (xs: [n]f32) : f32 = xs |> map abs |> reduce max 0",
        "entry f [n] (xs: [n]f32) : f32 = reduce (\\a b -> a + b + 1) 5 xs",
        "entry f [n] (xs: [n]f32) : f32 = reduce (-) 3 xs",
        "entry f [n] (xs: [n]f32) : f32 = reduceSeq (+) 3 xs",
    ] {
        assert_eq!(begun(text).1, 0, "{text}");
    }
}

/// Where the program makes no elements at small sizes, random ones are tried, but with its own initial value.
#[test]
fn a_constant_with_a_name_is_no_random_value() {
    passes(
        "entry f [n] (xs: [n]f32) : (f32, i32) =
  let q = (replicate n (replicate n (2f32, 0)))[:, 19]
  in q |> reduce_comm (\\(a, i) (b, j) -> if a > b || (a == b && i <= j) then (a, i) else (b, j)) (f32.lowest, i32.highest)",
    );
}
