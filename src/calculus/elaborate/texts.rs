//! Programs as text, the shipped ones and others, through the checker into terms.

use super::tests::show;
use super::{Program, elaborate};
use crate::calculus::eval;
use crate::calculus::size::Sym;
use crate::calculus::term::Term;
use crate::calculus::value::Value;
use crate::diag::Source;
use crate::lang::check_entry;
use crate::lang::types::ScalarType;

/// Returns the term of a program, all of whose size parameters are 12.
fn term(text: &str) -> String {
    term_at(12, text)
}

/// Returns the term of a program, all of whose size parameters are `n`.
fn term_at(n: u64, text: &str) -> String {
    show(&elaborated(n, text).term)
}

/// Returns the term of such a program with its reductions of rows apart, if it has that form.
fn apart_at(n: u64, text: &str) -> Option<String> {
    elaborated(n, text).others.first().map(show)
}

/// Returns a program, all of whose size parameters are `n`.
pub(super) fn elaborated(n: u64, text: &str) -> Program {
    let entry = check_entry(&Source::new("test.pat", text), None).unwrap_or_else(|e| panic!("{e}"));
    let sizes = entry.sizes.iter().map(|s| (s.clone(), n)).collect();
    elaborate(&entry, &sizes).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn shipped_programs() {
    let sum = "reduce {Add(_1, _2)} {0}";
    let cases = [
        (include_str!("../../../programs/scal.pat"), "map {Mul(_, alpha.0)} . xs".to_owned()),
        (include_str!("../../../programs/asum.pat"), format!("{sum} . map {{Abs(_)}} . xs")),
        (
            include_str!("../../../programs/dot.pat"),
            format!("{sum} . map {{Mul(_1, _2)}} . zip . fork xs ys"),
        ),
        (
            include_str!("../../../programs/gemv.pat"),
            format!(
                "map ({{Add(Mul(alpha.0, _1), Mul(beta.0, _2))}} . bimap ({sum} . \
                 map {{Mul(_1, _2)}} . zip . fork id x) id) . zip . fork A y"
            ),
        ),
        (
            include_str!("../../../programs/nrm2.pat"),
            format!("{{Sqrt(_)}} . {sum} . map {{Mul(_, _)}} . xs"),
        ),
        (
            include_str!("../../../programs/axpy.pat"),
            "map {Add(Mul(alpha.0, _1), _2)} . zip . fork xs ys".to_owned(),
        ),
        (include_str!("../../../programs/sumsq.pat"), format!("{sum} . map {{Mul(_, _)}} . xs")),
        (
            include_str!("../../../programs/chain.pat"),
            "map {Sub(Mul(_, _), _)} . map {Sqrt(_)} . map {Add(_, 1)} . map {Mul(_, 2)} . xs"
                .to_owned(),
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(term(text), expected);
    }
}

#[test]
fn other_programs() {
    let sum = "reduce {Add(_1, _2)} {0}";
    assert_eq!(
        term(
            "entry mm [n][m][k] (A: [n][k]f32) (B: [k][m]f32) : [n][m]f32 =
               map (\\row -> map (\\col -> reduce (+) 0 (map2 (*) row col)) (transpose B)) A"
        ),
        format!("map (map ({sum} . map {{Mul(_1, _2)}} . zip)) . cross . fork A (transpose . B)")
    );
    assert_eq!(
        term(
            "entry pairs [n][m] (ps: [n](f32, f32)) (qs: [m](f32, f32)) : [n]f32 =
               map (\\(x, y) -> reduce (+) 0 (map (\\(u, v) -> (x - u) * (y - v)) qs)) ps"
        ),
        format!("map ({sum} . map {{Mul(Sub(_11, _21), Sub(_12, _22))}}) . cross . fork ps qs")
    );
    assert_eq!(
        term(
            "entry means [n][m] (A: [n][m]f32) : [n][m]f32 =
               map (\\row -> let s = reduce (+) 0 row in map (\\x -> x - s) row) A"
        ),
        format!("map (map {{Sub(_2, _1)}} . distl . fork ({sum}) id) . A")
    );
    assert_eq!(
        term(
            "entry stencil [n] (xs: [n]f32) : [n]f32 =
               pad 1 1 clamp xs |> slide 3 1 |> map (\\w -> w[0] + 2 * w[1] + w[2])"
        )
        .matches("index")
        .count(),
        3
    );
    assert_eq!(
        term(
            "entry low [n] (xs: [n]f32) : [n/4]f32 =
               xs |> split 4 |> mapGlb 0 (\\c -> reduceSeq (\\a x -> a + x * x) 0 c)"
        ),
        "map(glb(0)) (reduce(seq) {Add(_1, Mul(_2, _2))} {0}) . split . xs"
    );
    assert_eq!(
        term(
            "entry vectors [n] (xs: [n]f32) : [n]f32 =
               xs |> asVector 4 |> mapGlb 0 (\\v -> vectorize 4 (* 2) v) |> asScalar"
        ),
        "asscalar . map(glb(0)) (vectorize {Mul(_, 2)}) . asvector . xs"
    );
    assert_eq!(
        term(
            "entry halved [n] (xs: [n]f32) : [n/4]f32 =
               iterate 2 (\\ys -> split 2 ys |> map (reduce (+) 0)) xs"
        ),
        format!("map ({sum}) . split . map ({sum}) . split . xs")
    );
}

#[test]
fn loops_over_elements_are_maps_of_loops() {
    let of = |ty: &str, body: &str| {
        term(&format!(
            "entry f [n][m] (xs: [n]{ty}) (c: [n]f32) (a: [m][n]f32) : [n]{ty} = loop (x = xs) for s < m do {body}"
        ))
    };
    assert_eq!(of("f32", "map (\\v -> v * 2) x"), "map {for _ m Mul(v1, 2)} . xs");
    let pairs = "map {for _1 m Mul(v1, _2)} . zip . fork xs c";
    assert_eq!(of("f32", "map2 (*) x c"), pairs);
    let named = of("f32", "let y = map2 (*) x c in map2 (+) y y");
    assert!(named.starts_with("map {for _1 m let Mul(v1, _2) in "), "{named}");
    // An array of pairs stays one, and a pair of arrays too.
    let pairs = of("(f32, f32)", "map (\\(u, v) -> (v, u)) x");
    assert!(pairs.starts_with("map {for "), "{pairs}");
    // The elements are rows themselves.
    let rows = of("[3]f32", "map (map (* 2)) x");
    assert_eq!(rows, "map (map {for _ m Mul(v1, 2)}) . xs");
    // Elements meet, or their own arrays are worked on: the loop stays outside.
    for apart in [
        ("f32", "map2 (+) x (reverse x)"),
        ("f32", "map (\\v -> v + x[0]) x"),
        ("f32", "scan (+) 0 x"),
        ("f32", "map (\\v -> reduce (+) v c) x"),
        ("f32", "let k = reduce (+) 0 x in map (\\v -> v + k) x"),
        ("[3]f32", "map (scan (+) 0) x"),
    ] {
        let kept = of(apart.0, apart.1);
        assert!(kept.starts_with("fold "), "{}: {kept}", apart.1);
    }
    // What needs no element of the state is computed in front of the loop.
    let scanned = of("f32", "map2 (+) x (scan (+) 0 c)");
    assert!(scanned.starts_with("map {for _1 m Add(v1, _2)} . zip . fork xs (scan"), "{scanned}");
    let summed = of("f32", "if reduce (+) 0 c < 1 then map (* 2) x else x");
    assert!(summed.starts_with("map {for ") && summed.contains("reduce"), "{summed}");
    // A row that the counter selects.
    let selected = of("f32", "map2 (*) x a[s]");
    assert!(selected.starts_with("map (fold "), "{selected}");
    // Rows that elements select, as of a graph: here a place is one of an array of numbers.
    let graph = |step: &str| {
        term(&format!(
            "entry f [n] [m] [e] (a: [m][n]f32) (at: [m]i32) (to: [e]i32) : [m][n]f32 =
            map2 (\\i row -> loop x = row for k < at[i] do {step}) (iota m) a"
        ))
    };
    let neighbours = graph("(let j = to[at[i] + k] in map2 (\\p q -> p + q) x a[j])");
    assert!(neighbours.starts_with("map (map (fst . while"), "{neighbours}");
    let scaled = graph("map2 (\\p q -> p + q) x a[to[at[i] + k]]");
    assert!(scaled.starts_with("map (map (fst . while"), "{scaled}");
    // A loop would be done again for each element.
    let counted = graph("(let j = (loop s = 0 for q < k do s + to[q]) in map2 (+) x a[j])");
    assert!(!counted.starts_with("map (map"), "{counted}");
}

#[test]
fn scalars_beside_rows_are_computed_at_each_place() {
    let of = |ty: &str, part: &str, step: &str| {
        let looped = format!("(loop (x, t) = (xs, 0.5f32) for k < 9 do {step}){part}");
        term(&format!("entry f [n] (xs: [n]f32) : {ty} = {looped}"))
    };
    let rows = of("[n]f32", ".0", "(map (\\v -> v * t) x, t + 1)");
    assert!(rows.starts_with("map {"), "{rows}");
    // Where a scalar is a result, it has a loop of its own.
    let both = of("([n]f32, f32)", "", "(map (\\v -> v * t) x, t + 1)");
    assert!(both.starts_with("fork (map {") && both.matches("for ").count() == 2, "{both}");
    // The scalar depends on the rows.
    let meet = of("([n]f32, f32)", "", "(map (\\v -> v * t) x, sum x)");
    assert!(meet.contains("fold "), "{meet}");
}

#[test]
fn maps_come_after_views() {
    let of = |ty: &str, body: &str| {
        term(&format!("entry f [n][m] (xs: [n]f32) (a: [n][m]f32) (is: [m]i32) : {ty} = {body}"))
    };
    let twice = "map {Mul(_, 2)}";
    assert_eq!(of("[n]f32", "reverse (map (* 2) xs)"), format!("{twice} . reverse . xs"));
    assert_eq!(of("[n]f32", "rotate 1 (map (* 2) xs)"), format!("{twice} . rotate . xs"));
    assert_eq!(
        of("[5]f32", "take 5 (reverse (map (* 2) xs))"),
        format!("{twice} . take . reverse . xs")
    );
    assert_eq!(of("[n*m]f32", "join (map (map (* 2)) a)"), format!("{twice} . join . a"));
    assert_eq!(of("[m]f32", "gather (map (* 2) xs) is"), format!("{twice} . gather . fork xs is"));
    assert!(of("f32", "(map (* 2) xs)[3]").starts_with("{Mul(_, 2)} . index . fork xs "));
    // What is dear is not computed once for each index, and rows that are reduced stay so.
    let dear = of("[m]f32", "gather (map (reduce (+) 0) a) is");
    assert_eq!(dear, "gather . fork (map (reduce {Add(_1, _2)} {0}) . a) is");
    let rows = of("[n]f32", "reverse (map (reduce (+) 0) a)");
    assert_eq!(rows, "map (reduce {Add(_1, _2)} {0}) . reverse . a");
    // Of every third element, only these are computed.
    let third = "(map (* 2) (reverse xs))[::3]";
    assert_eq!(of("[n/3]f32", third), format!("{twice} . join . slide . take . reverse . xs"));
    let rows = of("[n/3]f32", "(map (reduce (+) 0) a)[::3]");
    assert_eq!(rows, "map (reduce {Add(_1, _2)} {0}) . join . slide . take . a");
    let windows = of("[n/3][3]f32", "slide 3 3 (map (* 2) xs)");
    assert_eq!(windows, format!("slide . {twice} . xs"));
}

#[test]
fn reductions_of_the_same_elements_are_one() {
    let cases = [
        (
            "entry f [n] (xs: [n]f32) : f32 =
               let m = reduce max f32.lowest (map abs xs) in
               let s = reduce (+) 0 xs in
               s / m",
            "{Div(_1, _2)} . reduce(comm) {(Add(_11, _21), Max(_12, _22))} {(0, -inf)} . \
             map {(_, Abs(_))} . xs",
        ),
        (
            "entry f [m][n] (xss: [m][n]f32) (y: [n]f32) : [m]f32 =
               map (\\xs -> reduce (+) 0 (map2 (*) xs y) / reduce (+) 0 (map2 (*) xs xs)) xss",
            "map ({Div(_1, _2)} . reduce(comm) {(Add(_11, _21), Add(_12, _22))} {(0, 0)} . \
             map {(Mul(_1, _2), Mul(_1, _1))} . zip . fork id y) . xss",
        ),
        // Only reductions that read a common array become one, whatever stands between them.
        (
            "entry f [n] (xs: [n]f32) (ys: [n]f32) : (f32, (f32, f32)) =
               (reduce (+) 0 xs, (reduce (+) 0 ys, sqrt (reduce min f32.highest xs)))",
            "{(_11, (_2, Sqrt(_12)))} . \
             fork (reduce(comm) {(Add(_11, _21), Min(_12, _22))} {(0, inf)} . map {(_, _)} . xs) \
             (reduce {Add(_1, _2)} {0} . ys)",
        ),
        (
            "entry f [n] (xs: [n]f32) (ys: [n]f32) : (f32, f32) =
               (reduce (+) 0 xs, reduce (+) 0 ys)",
            "fork (reduce {Add(_1, _2)} {0} . xs) (reduce {Add(_1, _2)} {0} . ys)",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(term(text), expected);
    }
}

#[test]
fn pairs_are_in_the_order_of_products() {
    let of = |body: &str| {
        term(&format!(
            "entry f [n][m][k] (a: [n][k]f32) (b: [m][k]f32) (c: [m]f32) : [n][m]f32 = {body}"
        ))
    };
    let sum = "reduce {Add(_1, _2)} {0}";
    // The sides of a zip are exchanged, and so are the arguments of its function.
    assert_eq!(
        of("map (\\r -> map (\\s -> reduce (+) 0 (map2 (\\u v -> u - v) s r)) b) a"),
        format!("map (map ({sum} . map {{Sub(_2, _1)}} . zip)) . cross . fork a b")
    );
    // What is cheap and computed of each row is computed for each pair; a sum is not.
    assert_eq!(
        of("map (\\x -> map (\\y -> x * y) c) (map (\\r -> r[0] + 1) a)").matches("cross").count(),
        1
    );
    assert_eq!(
        of("map (\\x -> map (\\y -> x * y) c) (map (\\v -> v + 1) (take n (join a)))"),
        "map (map ({Mul(_1, _2)} . bimap {Add(_, 1)} id)) . cross . fork (take . join . a) c"
    );
    let dear = of("map (\\x -> map (\\y -> x * y) c) (map (reduce (+) 0) a)");
    assert_eq!(dear, format!("map (map {{Mul(_1, _2)}}) . cross . fork (map ({sum}) . a) c"));
}

#[test]
fn rows_by_element_are_columns() {
    let of = |ty: &str, body: &str| term(&format!("entry f [n][m] (a: [n][m]f32) : {ty} = {body}"));
    assert_eq!(
        of("[m]f32", "reduceSeq (map2 (+)) (replicate m 0) a"),
        "map (reduce(seq) {Add(_1, _2)} {0}) . transpose . a"
    );
    assert_eq!(
        of("[n][m]f32", "scan (map2 (+)) (replicate m 0) a"),
        "transpose . map (scan(assoc) {Add(_1, _2)} {0}) . transpose . a"
    );
    assert_eq!(
        of("[n][m]f32", "scan_exclusive (map2 (+)) (replicate m 0) a"),
        "transpose . map (scan(exclusive) {Add(_1, _2)} {0}) . transpose . a"
    );
    // What is captured comes with the elements, so the scan is sequential.
    let row = "map (\\r -> scan_exclusive (\\x y -> (x + y) * r[1]) 0 r) a";
    assert!(of("[n][m]f32", row).contains("scan(seq)"), "{}", of("[n][m]f32", row));
    // The elements of a row meet: it stays a row.
    let met = of("[m]f32", "reduceSeq (\\x y -> map2 (+) x (reverse y)) (replicate m 0) a");
    assert!(met.starts_with("reduce(seq)"), "{met}");
}

#[test]
fn rows_by_index_are_elements() {
    let of = |body: &str| {
        term(&format!(
            "entry f [h][k][m] (a: [h][m]f32) (b: [k][m]f32) (w: [m]f32) : [h][m]f32 = {body}"
        ))
    };
    // What is computed beside a reduction goes through rows, too.
    let by_index =
        "generate h (\\i -> let s = reduce (+) 0 a[i] in generate m (\\j -> a[i, j] * s * w[j]))";
    assert!(!of(by_index).contains("index"), "{}", of(by_index));
    // Rows at places that are computed from the counter alone are gathered once.
    let at = |place: &str| {
        of(&format!(
            "generate h (\\i -> let g = {place}
             let s = reduce (+) 0 (map2 (*) b[g] a[i]) in map (* s) b[g])"
        ))
    };
    let text = at("i * i % k");
    assert_eq!((text.matches("gather").count(), text.matches("index").count()), (1, 0), "{text}");
    // Rows that repeat are a view.
    assert!(at("i * k / h").contains("join . map replicate . b"), "{}", at("i * k / h"));
    assert!(at("i / 3").contains("join . map replicate . take . b"), "{}", at("i / 3"));
    assert!(at("i % 4").contains("join . replicate . take . b"), "{}", at("i % 4"));
    // A place that only one branch reads may be out of range in the other one.
    let branch =
        "generate h (\\i -> let s = if i > 0 then reduce (+) 0 b[i - 1] else 0 in map (* s) a[i])";
    assert!(!of(branch).contains("gather"), "{}", of(branch));
    // Windows keep their indices.
    let window = "generate h (\\i -> map (\\x -> x * reduce (+) 0 (map2 (*) b[max 0 (i - 1)] b[min (k - 1) (i + 1)])) a[i])";
    assert!(!of(window).contains("gather"), "{}", of(window));
}

#[test]
fn windows_of_columns_are_windows_of_rows() {
    let text = "entry f [h][w] (a: [h][w]f32) : [h][w]f32 =
        a |> transpose |> map (\\c -> pad 1 1 clamp c |> slide 3 1 |> map (\\v -> v[0] + v[2])) |> transpose";
    assert_eq!(
        term(text),
        "map (map ({Add(_1, _2)} . fork (index . fork id ({0} . bang)) (index . fork id ({2} . bang)))) . \
         map transpose . slide . pad(clamp) . a"
    );
}

#[test]
fn views_move_out_of_nests() {
    let of = |ty: &str, body: &str| {
        term(&format!("entry f [c][h][w] (a: [c][h][w]f32) (b: [c]f32) : {ty} = {body}"))
    };
    assert_eq!(
        of("[c][h][w]f32", "map2 (\\m v -> map (map (+ v)) m) a b"),
        "map (map (map {Add(_1, _2)})) . map (map distl . distl . fork snd fst) . zip . fork a b"
    );
    assert_eq!(
        of(
            "[c][h*w]f32",
            "map (\\m -> join (map (\\r -> let s = reduce (+) 0 r in map (/ s) r) m)) a"
        ),
        "map join . map (map (map {Div(_2, _1)} . distl . fork (reduce {Add(_1, _2)} {0}) id)) . a"
    );
}

#[test]
fn batches_of_products_are_cut() {
    let text = "entry f [b][n] (x: [b][n][n]f32) (y: [b][n][n]f32) (z: [n][n]f32) : [b][n][n]f32 =
        let product = \\(p: [n][n]f32) (q: [n][n]f32) ->
            map (\\r -> map (\\s -> reduce (+) 0 (map2 (*) r s)) (transpose q)) p
        in map2 (\\p q -> product (product p q) z) x y";
    // The matrix between the products is large: each product has a batch of its own.
    let (small, large) = (term_at(12, text), term_at(64, text));
    assert!(small.matches("cross").count() == 2 && large.matches("cross").count() == 2);
    assert!(small.matches("map (map (map ").count() == 1, "{small}");
    assert!(large.matches("map (map (map ").count() == 2, "{large}");
}

#[test]
fn few_rows_are_reduced_apart() {
    let softmax = "let mx = reduce max f32.lowest v
        let e = map (\\x -> exp (x - mx)) v
        let s = reduce (+) 0 e in map (/ s) e";
    let rows = format!("entry f [n] [m] (A: [n][m]f32) : [n][m]f32 = map (\\v -> {softmax}) A");
    assert_eq!(
        apart_at(12, &rows).as_deref(),
        Some(
            "map (map ({Div(_2, _1)} . bimap id {Exp(Sub(_2, _1))})) . map (distl . bimap id distl) . \
             zip . fork (map (reduce {Add(_1, _2)} {0} . map {Exp(Sub(_2, _1))} . distl)) id . \
             zip . fork (map (reduce {Max(_1, _2)} {-inf}) . A) A"
        )
    );
    assert_eq!(apart_at(2000, &rows), None);
    let mean = "entry f [n] [m] (A: [m][n]f32) : [n]f32 = \
        map (\\c -> reduce (+) 0 c / f32.i32 m) (transpose A)";
    // However many rows there are: these do not lie in a piece.
    assert_eq!(
        apart_at(2000, mean).as_deref(),
        Some("map {Div(_, Cast(I32)(m))} . map (reduce {Add(_1, _2)} {0}) . transpose . A")
    );
    let beside = "entry f [n] [m] (c: [n]f32) (A: [m][n]f32) : [n]f32 = \
        map2 (\\x col -> x + reduce (+) 0 col) c (transpose A)";
    let apart = apart_at(2000, beside).unwrap_or_default();
    assert!(apart.contains("map (reduce {Add(_1, _2)} {0})"), "{apart}");
}

#[test]
fn long_products_of_few_results_are_in_parts() {
    let gram = "entry f [n] (X: [n][4]f32) : [4][4]f32 =
        let c = transpose X in map (\\a -> map (\\b -> 2 * reduce (+) 0 (map2 (*) a b)) c) c";
    let program = elaborated(3000, gram);
    let parts = program.others.last().expect("long rows");
    assert_eq!(
        show(parts),
        "map (map {Mul(2, _)}) . map (map (reduce {Add(_1, _2)} {0})) . map transpose . transpose . \
         map (map (map (reduce {Add(_1, _2)} {0} . map {Mul(_1, _2)} . zip)) . cross) . zip . fork \
         (transpose . map (split . padlast) . transpose . X) (transpose . map (split . padlast) . transpose . X)"
    );
    let xs: Vec<f64> = (0..12_000u16).map(|i| f64::from(i % 7) - 3.0).collect();
    let xs = Value::floats(ScalarType::F32, &[3000, 4], &xs);
    let inputs = eval::Inputs::from([("X".into(), xs)]);
    let value = |t: &Term| eval::apply(t, &program.env, &inputs, &Value::unit()).expect("a value");
    assert_eq!(value(parts).to_floats(), value(&program.term).to_floats());
    // Few parts, or many results, are not worth a second kernel.
    let whole = |p: &Program| p.others.iter().all(|t| !show(t).contains("split"));
    assert!(whole(&elaborated(512, gram)));
    assert!(whole(&elaborated(3000, &gram.replace("[4]", "[2048]"))));
    // Two long parts are.
    let few = elaborated(8192, &gram.replace("[4]", "[1024]"));
    assert!(few.others.iter().any(|t| show(t).contains("split")));
}

/// A plain number of elements that the rows of a product have gets a name, also if a function takes more than the rows.
#[test]
fn rows_of_a_number_of_elements_have_a_name() {
    let named = |n: u64, ty: &str, row: &str, of: &str| {
        let text = format!(
            "entry f [n] (x: [n]{ty}) (w: [n][2*16]f32) (z: [n]f32) =
               map (\\r -> let e = {row} in {of}) x"
        );
        let program = elaborated(n, &text);
        let row = program.env.get(&Sym::Dim("row".into())).copied();
        (show(&program.term).contains("padlast"), row)
    };
    let waves = "map (\\j -> sin (f32.i32 j * r)) (iota 32)";
    let beside = "map2 (\\c b -> max 0 (b + sum (map2 (*) e c))) w z";
    let alone = "map (\\c -> sum (map2 (*) e c)) w";
    assert_eq!(named(300, "f32", waves, beside), (true, Some(32)));
    assert_eq!(named(300, "[16][2]f32", "flatten r", alone), (true, Some(32)));
    // It is worth no tiles.
    assert_eq!(named(20, "f32", waves, beside), (false, None));
}

/// The length of rows of square products has a name of its own, and its value.
#[test]
fn rows_of_square_products_have_their_own_length() {
    let square = |n| {
        let dot = "reduce (+) 0 (map2 (*) row p)";
        let text = format!(
            "entry f [m] [n] (x: [m][n]f32) (a: [n][n]f32) : [m]f32 =
               map (\\row -> reduce (+) 0 (map2 (*) row (map (\\p -> {dot}) a))) x"
        );
        elaborated(n, &text)
    };
    let program = square(300);
    let named = program.others.last().expect("a product of its own");
    assert!(
        show(named).contains("cross . fork (map padlast . x) (map padlast . a)"),
        "{}",
        show(named)
    );
    let xs: Vec<f64> = (0..90_000u32).map(|i| f64::from(i % 5) - 2.0).collect();
    let array = || Value::floats(ScalarType::F32, &[300, 300], &xs);
    let inputs = eval::Inputs::from([("x".into(), array()), ("a".into(), array())]);
    let value = |t: &Term| eval::apply(t, &program.env, &inputs, &Value::unit()).expect("a value");
    assert_eq!(value(named).to_floats(), value(&program.term).to_floats());
    // Small products need no tiles.
    assert!(square(20).others.iter().all(|t| !show(t).contains("padlast")));
}

/// Rules expect the reduction of a product first, and what else its rows have behind it.
#[test]
fn reductions_come_before_elements() {
    let scaled = "entry f [n] (s: [n]f32) (x: [n][n]f32) (t: [n]f32) (w: [n][n]f32) : [n][n]f32 =
        map2 (\\s a -> map2 (\\t b -> s - t * reduce (+) 0 (map2 (*) a b)) t w) s x";
    assert_eq!(
        term(scaled),
        "map (map ({Sub(_21, Mul(_22, _1))} . fork (reduce {Add(_1, _2)} {0} . map {Mul(_1, _2)} . zip . bimap \
         snd snd) (bimap fst fst))) . cross . fork (zip . fork s x) (zip . fork t w)"
    );
}

/// Heads of attention with something added to each product: the keys of a head stay whole, so that all queries meet them.
#[test]
fn what_all_elements_meet_stays_whole() {
    let text = "entry f [h] [n] [d] (Q: [h][n][d]f32) (K: [h][n][d]f32) (M: [n][n]f32) : [h][n][n]f32 =
        map2 (\\q k -> map2 (\\x r -> map2 (\\y m -> reduce (+) 0 (map2 (*) x y) + m) k r) q M) Q K";
    assert_eq!(
        term(text),
        "map (map (map ({Add(_1, _2)} . bimap (reduce {Add(_1, _2)} {0} . map {Mul(_1, _2)} . zip) id) . zip) . \
         zip . fork cross M) . zip . fork Q K"
    );
}

/// What a row or its partner alone decides is computed once for each, as if the program had named it there.
#[test]
fn reductions_move_out_of_maps_that_do_not_change_them() {
    const MEAN: &str = "def dot a b = reduce (+) 0 (map2 (*) a b)
        def mean [k] (v: [k]f32) = reduce (+) 0 v / f32.i32 k
        def centre v = let m = mean v in map (\\x -> x - m) v ";
    let of = |body: &str| {
        term(&format!(
            "{MEAN} entry f [n] [m] [d] (Q: [n][d]f32) (K: [m][d]f32) : [n][m]f32 = {body}"
        ))
    };
    // The norm of a row has a name in front of the inner map, that of a partner is an element of an array.
    let (row, partner) = ("sqrt (dot q q)", "sqrt (dot k k)");
    assert_eq!(
        of(&format!("map (\\q -> map (\\k -> dot q k / ({row} * {partner})) K) Q")),
        of(&format!(
            "let N = map (\\k -> {partner}) K
             in map (\\q -> let a = {row} in map2 (\\k b -> dot q k / (a * b)) K N) Q"
        ))
    );
    // Whole rows and partners, and elements of either.
    let centred =
        "let C = map centre K in map (\\q -> let c = centre q in map (\\k -> dot c k) C) Q";
    assert_eq!(of("map (\\q -> map (\\k -> dot (centre q) (centre k)) K) Q"), of(centred));
    let elements = "map (\\q -> map (\\k -> let a = mean q let b = mean k
        in reduce (+) 0 (map2 (\\x y -> (x - a) * (y - b)) q k)) K) Q";
    assert_eq!(of(elements), of(centred));
    let row = |body: &str| {
        term(&format!("{MEAN} entry f [n] [m] (A: [n][m]f32) : [n][m]f32 = map (\\r -> {body}) A"))
    };
    assert_eq!(row("map (\\x -> x / mean r) r"), row("let s = mean r in map (\\x -> x / s) r"));
    // A branch that is not taken computes nothing.
    let branch = row("map (\\x -> if x > 0 then x / mean r else x) r");
    assert!(branch.starts_with("map (map (cond"), "{branch}");
}

/// Arrays that are read at the counters of maps are arrays of these maps.
#[test]
fn what_is_read_by_counters_is_an_element() {
    let of = |body: &str| {
        term(&format!(
            "entry f [n] [m] [k] (a: [n][k]f32) (b: [k][m]f32) (v: [m]f32) : [n][m]f32 = {body}"
        ))
    };
    let product =
        of("map (\\r -> map2 (\\x c -> x + reduce (+) 0 (map2 (*) r c)) v (transpose b)) a");
    for by_index in [
        "generate n (\\i -> generate m (\\j -> v[j] + reduce (+) 0 (generate k (\\p -> a[i, p] * b[p, j]))))",
        "map (\\i -> map (\\j -> v[j] + reduce (+) 0 (map2 (*) a[i] (map (\\row -> row[j]) b))) (iota m)) (iota n)",
    ] {
        assert_eq!(of(by_index), product, "{by_index}");
    }
    // A counter that is used stays; a stencil keeps its indices; so does what is read at another place.
    let one = |body: &str| {
        term(&format!("entry f [n] (a: [n]f32) (is: [n]i32) : f32 = reduce (+) 0 ({body})"))
    };
    assert_eq!(
        one("generate n (\\i -> a[i] * f32.i32 i)"),
        one("map2 (\\i x -> x * f32.i32 i) (iota n) a")
    );
    let stencil = one("generate n (\\i -> a[i] + a[min (i + 1) (n - 1)])");
    assert_eq!(stencil.matches("index").count(), 2, "{stencil}");
    let gathered = one("map (\\i -> a[i]) is");
    assert_eq!(gathered.matches("index").count(), 1, "{gathered}");
}

/// Products with a choice around them have a form with the product in front of the choice, unless it could fail there.
#[test]
fn reductions_in_branches_have_a_form_in_front_of_them() {
    let of = |body: &str| {
        let head = "entry f [n] [d] (q: [n][d]f32) (is: [n]i32) : [n][n]f32 = ";
        elaborated(12, &format!("{head}generate n (\\i -> generate n (\\j -> {body}))"))
    };
    let in_front = |body: &str| of(body).others.iter().any(|t| !show(t).contains("cond"));
    assert!(in_front("if j <= i then reduce (+) 0 (map2 (*) q[i] q[j]) else 0"));
    assert!(!in_front("if j <= i then reduce (+) 0 (map2 (*) q[i] q[is[j]]) else 0"));
    assert!(!in_front("if j <= i then q[i, 0] else 0"));
    // With the names that they need. A name whose value could fail stays, and so does what needs it.
    let loss = |m: &str| {
        let sum = "log (reduce (+) 0 (map (\\x -> exp (x - m)) q[i]))";
        format!("if j < is[i] then let m = {m} in let s = {sum} in s + q[is[j]][0] else 0")
    };
    let scalars = "cond {Lt(_121, _11)} ({Add(Log(_2), _1)} . bimap (index";
    let outside = |body: &str| of(body).others.iter().any(|t| show(t).contains(scalars));
    assert!(outside(&loss("reduce max 0 q[i]")));
    assert!(!outside(&loss("q[is[j]][0]")));
}

/// Products whose rows are reduced, and products of rows with one matrix, have a form as products of their own.
#[test]
fn products_that_are_used_further_have_a_form_of_their_own() {
    let forms = |n: u64, body: &str| -> Vec<String> {
        let head = "entry f [n] [m] [d] (x: [n][d]f32) (z: [m][d]f32) : [n]f32 = ";
        elaborated(n, &format!("{head}{body}")).others.iter().map(show).collect()
    };
    let kernel = "map (\\a -> reduce (+) 0 (map (\\b -> exp (reduce (+) 0 (map2 (*) a b))) z)) x";
    let apart = "map (reduce {Add(_1, _2)} {0}) . map (map ({Exp(_)} . reduce {Add(_1, _2)} {0} . \
                 map {Mul(_1, _2)} . zip)) . cross . fork x z";
    assert!(forms(300, kernel).iter().any(|f| f == apart), "{:?}", forms(300, kernel));
    let quadratic = "map (\\r -> reduce (+) 0 (map2 (*) r (map (\\p -> reduce (+) 0 (map2 (*) r p)) (take d x)))) x";
    let crossed = |f: &String| f.contains("cross . fork x");
    assert!(forms(300, quadratic).iter().any(crossed), "{:?}", forms(300, quadratic));
}

/// Products among other work have a form in which they stand in front of it, with a mask, within a batch, and through names.
#[test]
fn products_among_other_work_have_a_form_in_front_of_it() {
    let forms = |body: &str| -> Vec<String> {
        let head =
            "entry f [n] [d] (q: [n][d]f32) (qs: [2][n][d]f32) (c: [n][n]f32) : [2][n][n]f32 = ";
        elaborated(300, &format!("{head}{body}")).others.iter().map(show).collect()
    };
    let product = "map (map (reduce {Add(_1, _2)} {0} . map {Mul(_1, _2)} . zip))";
    let has = |body: &str, part: &str| forms(body).iter().any(|f| f.contains(part));
    let row = "map2 (\\k j -> if j <= i then reduce (+) 0 (map2 (*) r k) else 0)";
    let scaled = "let m = reduce max 0 s in map (/ m) s";
    let masked = format!("map2 (\\r i -> let s = {row} q (iota n) in {scaled}) q (iota n)");
    let one = format!("replicate 2 ({masked})");
    assert!(has(&one, &format!("{product} . cross . fork q q")), "{:?}", forms(&one));
    let batch = format!("map (\\q -> {masked}) qs");
    assert!(has(&batch, &format!("{product} . cross . fork id id")), "{:?}", forms(&batch));
    // Each element also needs another matrix, and a choice.
    let chosen = "replicate 2 (map2 (\\r cs -> map2 (\\k x ->
        if x > 0 then x - reduce (+) 0 (map2 (*) r k) else x) q cs) q c)";
    assert!(has(chosen, &format!("{product} . cross . fork q q")), "{:?}", forms(chosen));
    // Matrix instructions compute one of two products of common rows.
    let two = "replicate 2 (map (\\r -> map2 (\\k j ->
        reduce (+) 0 (map2 (*) r k) * reduce (+) 0 (map2 (*) r j)) q (reverse q)) q)";
    assert!(has(two, &format!("{product} . cross . fork q q")), "{:?}", forms(two));
    // Rules move scalar functions behind a product.
    let updated =
        "replicate 2 (map2 (\\r cs -> map2 (\\k x -> x - reduce (+) 0 (map2 (*) r k)) q cs) q c)";
    assert!(!has(updated, &format!("{product} . cross")), "{:?}", forms(updated));
}

/// What is reduced of the results of all pairs of rows has a form with these results in a matrix.
#[test]
fn results_of_pairs_have_a_form_in_a_matrix() {
    let forms = |n: u64, body: &str| -> Vec<String> {
        let head = "entry f [n] [d] (q: [n][d]f32) (t: f32) = ";
        elaborated(n, &format!("{head}{body}")).others.iter().map(show).collect()
    };
    let product =
        "map (map (reduce {Add(_1, _2)} {0} . map {Mul(_1, _2)} . zip)) . cross . fork q q";
    let has = |n: u64, body: &str| forms(n, body).iter().any(|f| f.ends_with(product));
    let dot = "reduce (+) 0 (map2 (*) r k)";
    let counted =
        format!("map (\\r -> reduce (+) 0 (map (\\k -> if {dot} > t then 1 else 0) q)) q");
    assert!(has(2048, &counted), "{:?}", forms(2048, &counted));
    assert!(has(2048, &format!("map (\\r -> reduce (+) 0 (map (\\k -> exp ({dot})) q)) q")));
    // Whatever goes through the elements, a condition of each needs the result.
    let ranks = format!("map (\\r -> scan (+) 0 (map (\\k -> if {dot} > t then 1 else 0) q)) q");
    assert!(has(2048, &ranks), "{:?}", forms(2048, &ranks));
    let masked = format!(
        "map (\\r -> let c = map2 (\\k j -> if {dot} > t then j else 0) q (iota n)
           let s = reduce (+) 0 c in map (\\x -> x / s) c) q"
    );
    assert!(has(2048, &masked), "{:?}", forms(2048, &masked));
    // Elements without a reduction are cheap where they are reduced.
    assert!(!has(2048, "map (\\r -> reduce (+) 0 (map (\\k -> exp (r[0] * k[0])) q)) q"));
}

/// A histogram of rows has a form with bins for the elements, at every depth. An operator that needs more than two elements has
/// none.
#[test]
fn histograms_of_rows_have_a_form_of_elements() {
    let forms = |body: &str| -> Vec<String> {
        let head =
            "entry f [n] [m] [d] (is: [n]i32) (bs: [n]u8) (v: [n][d]f32) (w: [n][d][3]f32) = ";
        let entry = elaborated(300, &format!("{head}{body}"));
        entry.forms().iter().skip(1).map(show).collect()
    };
    let flat = |body: &str| forms(body).iter().any(|f| f.starts_with("split . histogram"));
    let rows = "histogram (map2 (+)) (replicate d 0) m is v";
    assert_eq!(
        forms(rows),
        ["split . histogram {Add(_1, _2)} {0} . \
          fork (map {if Ge(_1, 0) then if Lt(_1, m) then Add(Mul(_1, d), _2) else -1 else -1} . \
          join . cross . fork is iota) (join . v)"]
    );
    assert!(flat("histogram (map2 max) (replicate d f32.lowest) m bs v"));
    let deep = "histogram (map2 (map2 (+))) (replicate d (replicate 3 0)) m is w";
    assert!(forms(deep)[0].starts_with("split . split . histogram"), "{:?}", forms(deep));
    assert!(!flat("histogram (\\a b -> map2 (+) a (reverse b)) (replicate d 0) m is v"));
    assert!(!flat("histogram (+) 0 m is (map (reduce (+) 0) v)"));
}

/// Histograms of the same bins are one histogram, and scans that read an array in common are one scan, unless one needs the result
/// of the other, or runs only if a condition holds.
#[test]
fn passes_over_the_same_array_are_one() {
    let count = |word: &str, body: &str| {
        let head = "entry f [n] (is: [n]i32) (xs: [n]f32) (ys: [n]f32) = ";
        elaborated(300, &format!("{head}{body}")).forms()[0].to_string().matches(word).count()
    };
    let bins = |body: &str| count("histogram", body);
    let sum = "histogram (+) 0 37 (map (/ 10) is)";
    assert_eq!(bins(&format!("({sum} xs, {sum} (replicate n 1))")), 1);
    assert_eq!(
        bins(&format!("({sum} xs, {sum} (replicate n 1), histogram max 0 37 (map (/ 10) is) ys)")),
        1
    );
    assert_eq!(bins(&format!("map2 (+) ({sum} xs) ({sum} ys)")), 1);
    let after = "let s = SUM xs in (s, SUM (map2 (\\i x -> x - s[abs i % 37]) is xs))";
    assert_eq!(bins(&after.replace("SUM", sum)), 2);
    assert_eq!(bins(&format!("({sum} xs, histogram (+) 0 37 (map (/ 11) is) xs)")), 2);
    assert_eq!(bins(&format!("({sum} xs, histogram (+) 0 36 (map (/ 10) is) xs)")), 2);
    // Both tables together would not fit into local memory.
    let many = "histogram (+) 0 3000 is";
    assert_eq!(bins(&format!("({many} xs, {many} ys)")), 2);
    let chosen = "(SUM xs, if is[0] > 0 then SUM ys else replicate 37 0)";
    assert_eq!(bins(&chosen.replace("SUM", sum)), 2);
    let scans = |body: &str| count("scan", body);
    assert_eq!(scans("(scan (+) 0 xs, scan max f32.lowest (map2 (*) xs ys))"), 1);
    assert_eq!(scans("(scan (+) 0 xs, scan (+) 0 ys)"), 2);
    assert_eq!(scans("(scan (+) 0 xs, scan_exclusive (+) 0 xs)"), 2);
    assert_eq!(scans("scan (+) 0 (map2 (+) xs (scan (+) 0 xs))"), 2);
}

/// A histogram whose operator has no atomic operation for each component has a form by sorting, with the same value. Numbers
/// outside of the bins have no effect there, either.
#[test]
fn histograms_have_a_form_by_sorting() {
    let of = |n: u64, op: &str| {
        let head = "entry f [n] (xs: [n]f32) : [n]f32 =
            map (\\v -> v.1) (histogram OP (1, 0) n (map i32.f32 xs) (map (\\x -> (1, x)) xs))";
        elaborated(n, &head.replace("OP", op))
    };
    let sorts = |p: &Program| -> Option<Term> {
        p.others.iter().find(|t| t.to_string().contains("countingSort")).cloned()
    };
    let op = "(\\a b -> (a.0 * b.0, a.0 * b.1 + a.1 * b.0))";
    let program = of(5000, op);
    let form = sorts(&program).expect("another form");
    let text = form.to_string();
    // Two digits of seven bits. The numbers are sorted in place of the pairs.
    assert_eq!(text.matches("countingSort 128").count(), 2, "{text}");
    assert!(!text.contains("histogram") && text.contains("scatter"), "{text}");
    let xs: Vec<f64> = (0..5000u16).map(|i| f64::from(i % 1700) * 3.0 - 9.0).collect();
    let xs = Value::floats(ScalarType::F32, &[5000], &xs);
    let inputs = eval::Inputs::from([("xs".into(), xs)]);
    let value = |t: &Term| eval::apply(t, &program.env, &inputs, &Value::unit()).expect("a value");
    assert_eq!(value(&form).to_floats(), value(&program.term).to_floats());
    // Few elements take less time than the launches.
    assert_eq!(sorts(&of(500, op)), None);
    assert_eq!(sorts(&of(5000, "(\\a b -> (min a.0 b.0, b.1 + a.1))")), None);
}

/// Arrays of both sides of a product, in any order, are tuples of each side.
#[test]
fn arrays_of_a_zip_are_arranged_by_side() {
    let text = "entry f [n] [d] (x: [n][d]f32) (y: [n][d]f32) : [n][n]f32 = generate n (\\i -> generate n (\\j ->
        reduce (+) 0 (map4 (\\a b c e -> a * b + c * e) x[i] y[j] y[i] x[j])))";
    assert_eq!(
        term(text),
        "map (map (reduce {Add(_1, _2)} {0} . map {Add(Mul(_11, _21), Mul(_12, _22))} . zip)) . cross . \
         fork (map zip . zip . fork x y) (map zip . zip . fork y x)"
    );
}

/// An update of an element is a scatter in a loop inside of a map, and of the state of any other loop; elsewhere it is a
/// pass.
#[test]
fn updates_in_loops_are_scatters() {
    let of = |body: &str| {
        let head = "entry f [n] [m] (xs: [n]f32) (xss: [m][n]f32) (k: i32) = ";
        term(&format!("{head}{body}"))
    };
    let step = "loop ys = xs for i < k do ys with [i] <- ys[i + 1]";
    assert!(of(step).contains("scatter . fork"), "{}", of(step));
    let computed = "loop ys = xs for i < k do (map (+ 1) ys) with [i] <- ys[i + 1]";
    assert!(!of(computed).contains("scatter"), "{}", of(computed));
    assert!(!of("xs with [k] <- 0.0").contains("scatter"));
    let column = "loop t = xss for i < k do t with [:, i] <- map (\\r -> r[0]) t";
    assert!(of(column).contains("split . scatter . fork (join"), "{}", of(column));
    assert!(of(&format!("map (\\xs -> {step}) xss")).contains("scatter . fork"));
    let table = "map (\\xs -> loop t = replicate 3 xs for i < k do t with [2, i] <- xs[i]) xss";
    assert!(of(table).contains("split . scatter . fork (join"), "{}", of(table));
    let row = "map (\\xs -> loop t = replicate 3 xs for i < k do t with [i, :] <- t[i + 1]) xss";
    assert!(of(row).contains("scatter . fork"), "{}", of(row));
    // A function of the step has its own element.
    let inner = "map (\\xs -> loop t = xss for i < k do map (\\r -> r with [i] <- 0.0) t) xss";
    assert!(!of(inner).contains("scatter"), "{}", of(inner));
}

/// Arrays of cheap functions are computed for each use, and the last element of a scan is a reduction, in another form.
#[test]
fn cheap_arrays_are_computed_again() {
    let again = |body: &str| {
        let text =
            format!("entry f [n] (xs: [n]i32) (ys: [n]i32) (t: i32) : ([n]i32, i32) = {body}");
        elaborated(256, &text).others.last().map(ToString::to_string)
    };
    let cheap = "let k = map (\\x -> if x > t then 1 else 0) xs let s = scan (+) 0 k in (map2 (*) k s, last s)";
    let form = again(cheap).expect("another form");
    assert_eq!(form.matches("if x > t").count(), 3, "{form}");
    assert!(form.contains("reduce") && !form.contains("index"), "{form}");
    // What is dear is stored.
    let dear = "let k = map (\\x -> loop a = x for i < 9 do a * a + t) xs in (map2 (*) k (scan (+) 0 k), 0)";
    assert_eq!(again(dear), None);
    // So is what a function reads at any place.
    let anywhere = "let k = map (+ 1) xs in (map (\\y -> k[y] + k[y + 1]) ys, 0)";
    assert_eq!(again(anywhere), None);
    assert_eq!(again("(scan (+) 0 xs, t)"), None);
}

#[test]
fn functions_of_few_arguments_are_tables() {
    let of = |n: u64, body: &str| {
        let text = format!("entry f [n] (s: f32) (xs: [n][8]f32) : [n][8]f32 = {body}");
        elaborated(n, &text).term.to_string()
    };
    let weights = "map (\\x -> map2 (\\v i -> v * exp (s * f32.i32 i)) x (iota 8)) xs";
    // The exponentials are a map of their own, over the indices alone.
    let table = "map (\\x -> exp (s * f32.i32 x)) . iota 8 i32";
    let term = of(256, weights);
    assert!(term.contains(table) && term.matches("iota").count() == 1, "{term}");
    // With few rows there is nothing to gain.
    assert!(!of(16, weights).contains(table));
    // A divisor that is a size is not 0.
    let turned = "map (\\x -> map2 (\\v i -> v * cos (f32.i32 (3 * i % n))) x (iota 8)) xs";
    let term = of(256, turned);
    assert!(term.matches("iota").count() == 1 && term.contains("cos"), "{term}");
    assert_eq!(of(16, turned).matches("zip").count(), 1);
    // What depends on the row stays.
    let own = "map (\\x -> map (\\v -> exp (s * v)) x) xs";
    assert_eq!(of(256, own).matches("map").count(), of(16, own).matches("map").count());
    // So does what may fail.
    let fails = "map (\\x -> map2 (\\v i -> v * exp (f32.i32 (5 / i))) x (iota 8)) xs";
    assert!(of(256, fails).contains('/'), "{}", of(256, fails));
    assert_eq!(of(256, fails), of(16, fails));
}

#[test]
fn products_with_rows_of_rows_are_one_product() {
    let text = "entry f [n][e][o][d] (x: [n][d]f32) (ws: [e][o][d]f32) : [n][o]f32 =
        map (\\t ->
          let outs = map (\\w -> map (\\r -> max 0 (reduce (+) 0 (map2 (*) t r))) w) ws
          in map (reduce max 0) (transpose outs)) x";
    let entry = check_entry(&Source::new("f.pat", text), None);
    let sizes = [("n", 4096), ("e", 8), ("o", 64), ("d", 64)];
    let sizes = sizes.into_iter().map(|(n, v)| (n.to_owned(), v)).collect();
    let program = elaborate(&entry.expect("a program"), &sizes).expect("a term");
    let one = |t: &Term| t.to_string().contains("cross . fork x (join . ws)");
    assert!(!one(&program.term) && program.others.iter().any(one), "{:?}", program.others);
}

/// A `while` loop whose condition depends on counters alone has a known number of steps.
#[test]
fn loops_by_counters_are_counted() {
    let of = |body: &str| {
        let head = "entry f [n] (xs: [n]f32) (k: i32) = ";
        term_at(12, &format!("{head}{body}"))
    };
    let turned = "map2 (\\x y -> x + y * f32.i32 h) xs (reverse xs)";
    let counted = |start: &str, test: &str, next: &str| {
        of(&format!("(loop (xs, h) = (xs, {start}) while {test} do ({turned}, {next})).0"))
    };
    let ends_by_data = |text: &str| text.starts_with("fst . while ");
    let doubled = counted("1i32", "h < n", "2 * h");
    assert!(
        doubled.starts_with("fold (map {Add(_21, Mul(_22, Cast(I32)(Shl(1, _1))))}"),
        "{doubled}"
    );
    let by_three = counted("2i32", "h <= 11", "h + 3");
    assert!(by_three.contains("Cast(I32)(Add(Mul(_1, 3), 2))"), "{by_three}");
    // A counter of another kind stays in the state.
    let other = counted("1i32", "h < 40", "3 * h + 1");
    assert!(other.starts_with("fst . fold") && other.contains("{Add(Mul(3, _), 1)}"), "{other}");
    // Wrapping never ends this loop before the limit of steps.
    assert!(ends_by_data(&counted("1i32", "h != 0", "h + 2")));
    // Data decide.
    assert!(ends_by_data(&counted("1i32", "h < k", "2 * h")));
    assert!(ends_by_data(&counted("1i32", "h < n && xs[0] < 9", "2 * h")));
    assert!(ends_by_data(&counted("1i32", "h < n", "i32.f32 xs[0] + h")));
    assert_eq!(counted("12i32", "h < n", "2 * h"), "xs");
    let result = of("(loop (xs, h) = (xs, 1i32) while h < n do (map (+ 1) xs, 2 * h)).1");
    assert_eq!(result, "{16}");
}

/// The images of a batch are filtered in two passes: the matrix between them is large. There are enough images that their reductions
/// are not apart for another reason.
#[test]
fn stages_of_large_elements_are_apart() {
    let counts = |width: usize| {
        let text = format!(
            "entry f [n] (X: [n][{width}][{width}]f32) : [n][{width} - 2][{width} - 2]f32 = map (\\x ->
                let rows = map (\\r -> map (reduce (+) 0) (slide 3 1 r)) x
                in transpose (map (\\c -> map (reduce (+) 0) (slide 3 1 c)) (transpose rows))) X"
        );
        let program = elaborated(2000, &text);
        let nests = |t: &Term| show(t).matches("map (map (map (reduce").count();
        (nests(&program.term), program.others.iter().map(nests).max())
    };
    assert_eq!(counts(128), (1, Some(2)));
    // A work-group holds a small one. The form of rows has one nest, too.
    assert_eq!(counts(20), (1, Some(1)));
}

/// Three blurs of the images of a batch, combined and summed.
#[test]
fn stages_stand_apart_in_a_form_of_their_own() {
    let program = elaborated(
        1024,
        "def blur [h] [w] (a: [h][w]f32) : [h][w]f32 =
           let row xs = map sum (slide 3 1 (pad 1 1 0 xs))
           in a |> map row |> transpose |> map row |> transpose
         entry f [n] (X: [n][n][n]f32) (Y: [n][n][n]f32) (Z: [n][n][n]f32) : [n]f32 =
           map3 (\\x y z -> sum (flatten (map3 (map3 (\\a b c -> a * b - c)) (blur x) (blur y) (blur z)))) X Y Z",
    );
    let forms: Vec<String> = program.others.iter().map(show).collect();
    let stored: Vec<&String> = forms.iter().filter(|f| f.contains("tomem(global)")).collect();
    // Two passes for each image; then the images' rows are summed one by one.
    assert!(stored.iter().any(|f| f.matches("tomem(global)").count() == 6), "{forms:#?}");
    let sums = "map (reduce {Add(_1, _2)} {0} . map (reduce {Add(_1, _2)} {0}";
    assert!(stored.iter().any(|f| f.starts_with(sums)), "{stored:?}");
    assert!(!show(&program.term).contains("tomem(global)"));
}

#[test]
fn choices_between_rows_are_choices_of_elements() {
    let of = |choice: &str| {
        term(&format!(
            "entry f [n] [m] (A: [n][m]f32) (is: [n]i32) : [n][m]f32 = map (\\i -> {choice}) is"
        ))
    };
    for choice in [
        "if i >= 0 then A[i] else replicate m 0",
        "if i > 1 then map (* 2) A[i] else if i == 0 then A[0] else replicate m A[0, 0]",
    ] {
        let text = of(choice);
        assert!(text.starts_with("map (map (cond ") && !text.contains("replicate"), "{text}");
    }
    // Whole arrays have elements for the map: nothing is read by index.
    let whole = |choice: &str| {
        term(&format!(
            "entry f [n] [m] (A: [n][m][m]i32) (B: [m][m]i32) : [n][m][m]i32 = map (\\X -> {choice}) A"
        ))
    };
    for choice in [
        "if X[0, 0] > 1 then map2 (map2 (+)) X B else X",
        "if X[0, 0] > 1 then replicate m (replicate m 0) else map (map (* 2)) (transpose X)",
    ] {
        let text = whole(choice);
        let alone = text.matches("index").count();
        // The condition reads one row, and one element of it.
        assert!(alone <= 2 && !text.contains("iota") && !text.contains("cond "), "{text}");
    }
    // Each element would compute the sum.
    let text = of("if i >= 0 then A[i] else replicate m (reduce (+) 0 (map (* f32.i32 i) A[0]))");
    assert!(text.starts_with("map (cond ") && text.matches("reduce").count() == 1, "{text}");
}

/// A reduction that leaves a map stands behind the name of the array that it reduces, which is not computed again.
#[test]
fn reductions_that_move_keep_the_names_that_they_need() {
    for rows in ["map (\\x -> {row}) X", "map (map (\\x -> {row})) [X, X]"] {
        let row = "let r = map (\\w -> sum (map2 (*) w x)) W in map (\\v -> v - maximum r) r";
        let rows = rows.replace("{row}", row);
        let text = term(&format!("entry f [n] [k] [m] (X: [n][k]f32) (W: [m][k]f32) = {rows}"));
        assert_eq!(text.matches("Mul(_1, _2)").count(), 1, "{text}");
        assert_eq!(text.matches("Max(_1, _2)").count(), 1, "{text}");
    }
}

/// What a step of a loop of the host reduces without the state is computed in front of the loop, for all steps.
#[test]
fn steps_compute_ahead_what_needs_no_state() {
    let of = |step: &str| {
        term(&format!(
            "entry f [n] [m] (X: [n][m]f32) (W: [m][m]f32) (x: [m]f32) : [m]f32 = \
             loop s = x for k < n do {step}"
        ))
    };
    let reductions = |text: &str| {
        let step = text.split(" . fork ").next().unwrap_or_default();
        (step.matches("reduce").count(), text.matches("reduce").count())
    };
    for step in [
        "map2 (+) (rotate 1 s) (map (\\w -> sum (map2 (*) w X[k])) W)",
        "let x = X[k] let g = sum (map2 (*) x x) in map (* g) (rotate 1 s)",
        "map2 (*) (rotate 1 s) (map sum W)",
    ] {
        let text = of(step);
        assert!(text.starts_with("fold") && reductions(&text) == (0, 1), "{text}");
    }
    for step in [
        "map (\\w -> sum (map2 (*) w s)) W",
        "if s[0] > 0 then map (+ sum X[k]) (rotate 1 s) else s",
        "map2 (+) (rotate 1 s) (map (* 2) X[k])",
    ] {
        let text = of(step);
        assert!(text.starts_with("fold") && text.ends_with(") . fork x iota"), "{text}");
    }
}

/// Sorts of short arrays of known length are networks of scalars, of which only what is used is computed.
#[test]
fn short_sorts_are_networks() {
    let of = |ty: &str, body: &str| {
        term(&format!("entry f [n] (A: [n]{ty}) : [n]i32 = map (\\a -> {body}) A"))
    };
    let steps = |text: &str| text.matches("Min(").count() + text.matches("Max(").count();
    let median = of("[5]i32", "(sort a)[2]");
    assert!(!median.contains("scatter") && steps(&median) < 2 * 9, "{median}");
    assert_eq!(steps(&of("[2]i32", "let s = sort a in s[1] - s[0]")), 2);
    assert_eq!(steps(&of("[4]i32", "sum (map2 (*) (sort a) [1, 2, 3, 4])")), 2 * 5);
    // Other lengths, and other orders, have no network.
    for (ty, body) in [
        ("[n]i32", "(sort a)[0]"),
        ("[5]i32", "(argsort a)[2]"),
        ("[5]i32", "(sort_by_key (\\x -> -x) a)[2]"),
    ] {
        let text = of(ty, body);
        assert_eq!(steps(&text), 0, "{text}");
    }
}

/// Slices at counted places are windows, of any distance and from any place on; two at one place are one.
#[test]
fn slices_at_counted_places_are_windows() {
    let of = |ty: &str, body: &str| {
        let text =
            "entry f [n] (p: TYPE) (is: [n]i32) : [n][n]f32 = tabulate_2d n n (\\i j -> BODY)";
        term(&text.replace("TYPE", ty).replace("BODY", body))
    };
    let padded = "[n + 2][n + 2]f32";
    let windows = of(padded, "maximum (map maximum p[i:i + 3, j:j + 3])");
    let all = "map (map (reduce {Max(_1, _2)} {-inf} . join) . transpose . map slide) . slide . p";
    assert_eq!(windows, all);
    let corners = of(padded, "let q = p[i:i + 3, j:j + 3] in q[0, 2] - q[2, 0]");
    let corner = |i: u64, j: u64| {
        format!("(index . fork (index . fork id ({{{i}}} . bang)) ({{{j}}} . bang))")
    };
    let read = format!("{{Sub(_1, _2)}} . fork {} {}", corner(0, 2), corner(2, 0));
    assert_eq!(corners, format!("map (map ({read}) . transpose . map slide) . slide . p"));
    let pooled = of("[2*n + 1][2*n]f32", "maximum (map maximum p[2*i + 1:2*i + 3, 2*j:2*j + 2])");
    assert_eq!(pooled, all.replace("slide . p", "slide . drop . p"));
    let volumes = term(
        "entry f [n] (p: [n + 1][n + 1][n + 1]f32) : [n][n][n]f32 =
           tabulate_3d n n n (\\i j k -> sum (flatten (flatten p[i:i + 2, j:j + 2, k:k + 2])))",
    );
    assert_eq!(volumes.matches("slide").count(), 3, "{volumes}");
    assert!(!volumes.contains("index") && !volumes.contains("iota"), "{volumes}");
}

/// A slice of two dimensions at a place that the data decide reads elements, and makes no rows. So does one of which some are outside
/// the array.
#[test]
fn slices_at_computed_places_read_elements() {
    let text = |at: &str, last: &str| {
        term(&format!(
            "entry f [n] (p: [n + 2][n + 2]f32) (is: [n]i32) : [n][n]f32 =
               tabulate_2d n n (\\i j -> if i < {last} then maximum (map maximum p[{at}:{at} + 3, j:j + 3]) else 0)"
        ))
    };
    for text in [text("is[i]", "n"), text("(i + 1)", "n - 1")] {
        assert!(text.contains("map (index . fork (index . fork "), "{text}");
        assert!(!text.contains("slide"), "{text}");
    }
}

/// What all elements of a product meet comes with the rows of one side, whether it is an input or not.
#[test]
fn products_have_two_sides() {
    let product = "map (\\a -> map (\\b -> reduce (+) 0 (map3 (\\x y q -> x * y * q) a b p)) Y) X";
    let of = |head: &str| {
        term(&format!(
            "entry f [n] [m] (X: [n][m]f32) (Y: [n][m]f32) (p: [m]f32) : [n][n]f32 = {head} {product}"
        ))
    };
    let computed = of("let p = map (\\r -> reduce (+) 0 r) (transpose X) in");
    for term in [of(""), computed] {
        assert!(term.contains("zip)) . cross . "), "{term}");
    }
}

#[test]
fn maps_to_one_value_are_replicated() {
    let ones = term("entry f [n] (xs: [n]f32) : [n]f32 = map (\\_ -> 2) xs");
    assert!(ones.contains("replicate") && !ones.contains("map"), "{ones}");
    let sums = term("entry f [n] (xs: [n]f32) : [n]f32 = map (\\_ -> reduce (+) 0 xs) xs");
    assert!(sums.contains("reduce"), "{sums}");
}

/// Windows, lists and choices of columns need no transposed matrix, and a vector that is added to each column none for the sum.
#[test]
fn functions_of_columns_become_functions_of_rows() {
    let forms = |f: &str| {
        let text = format!(
            "entry f [n] [m] (A: [n][m]f32) (v: [n]f32) : [n][m]f32 = transpose (map (\\c -> {f}) (transpose A))"
        );
        let program = elaborated(40, &text);
        assert!(show(&program.term).contains("transpose"), "{}", show(&program.term));
        program.others.iter().map(show).collect::<Vec<_>>()
    };
    for f in [
        "map (\\w -> w[0] + 2 * w[2]) (slide 3 1 (pad 1 1 0 c))",
        "map3 (\\x y a -> if x < y then a else y) c (reverse c) v",
    ] {
        let forms = forms(f);
        assert!(forms.iter().any(|t| !t.contains("transpose")), "{forms:#?}");
    }
    // The sum is one of columns; what is divided by it are rows.
    let shares = forms("let s = reduce (+) 0 (map2 (+) c v) in map (\\x -> x / s) c");
    let of_rows = |t: &String| t.contains("transpose . map (map {Add(_1, _2)})");
    assert!(shares.iter().any(of_rows), "{shares:#?}");
    // A choice of the column reads only what it needs.
    let guarded = forms("map (\\x -> if x > 0 && c[i32.f32 x] > 0 then c[i32.f32 x] else 0) c");
    assert!(guarded.iter().all(|t| t.contains("transpose")), "{guarded:#?}");
    // A product has its form by rules.
    let product = |a: &str| {
        let text = format!(
            "entry f [n] (A: [n][n]f32) (B: [n][n]f32) : [n][n]f32 =
              map (\\r -> map (\\c -> reduce (+) 0 (map2 (*) r c)) (transpose B)) ({a})"
        );
        elaborated(4000, &text).others.len()
    };
    assert_eq!(product("A"), product("transpose A"));
}

/// What is made of a scan's results, element by element, is a part of the scan's steps, if a function of a map has the scan.
#[test]
fn scans_compute_what_is_made_of_their_results() {
    let of = |body: &str| {
        let text = format!(
            "entry f [n] [m] (X: [n][m]f32) =
              let smooth k r = scanSeq (\\acc x -> acc + k * (x - acc)) 0 r in {body}"
        );
        term(&text)
    };
    let one = |body: &str, pattern: &str| {
        let t = of(body);
        assert!(t.matches(pattern).count() == 1 && !t.contains("zip"), "{t}");
    };
    one("map (\\r -> map (\\x -> x * x) (smooth 0.5 r)) X", "scan(seq)");
    one("map (\\r -> map2 (\\x y -> x * y) (smooth 0.5 r) r) X", "scan(seq)");
    one("map (\\r -> map2 (-) (smooth 0.5 r) (smooth 0.25 r)) X", "scan(seq)");
    one("map (\\r -> smooth 0.5 (map abs (smooth 0.25 r))) X", "scan(seq)");
    one("map (\\r -> let s = smooth 0.5 r in reduce max 0 (map2 (*) s r)) X", "reduce(seq)");
    // Results that are used twice are stored, and many work-items share what is made of one scan.
    let twice = of("map (\\r -> let s = smooth 0.5 r in (map abs s, map sqrt s)) X");
    assert!(!twice.contains("map snd . scan(seq)"), "{twice}");
    let heavy = of("map (\\r -> map (\\s -> sum (map (\\x -> abs (x - s)) r)) (smooth 0.5 r)) X");
    assert!(!heavy.contains("map snd . scan(seq)"), "{heavy}");
    let alone = of("map (\\x -> x * x) (smooth 0.5 (join X))");
    assert!(!alone.contains("map snd . scan(seq)"), "{alone}");
}

/// A loop whose steps change few elements has a form in one work-group, also where its state is large.
#[test]
fn loops_that_change_a_row_run_in_one_group() {
    let grouped = |n: u64, next: &str| {
        let text =
            format!("entry f [n] (x: [n][n]f32) : [n][n]f32 = loop m = x for y < n - 1 do {next}");
        elaborated(n, &text).others.iter().any(|t| show(t).contains("the . map (fold "))
    };
    let row = "m with [y + 1] <- map2 (+) m[y] (rotate 1 m[y])";
    let all = "map2 (\\a b -> map2 (+) a (rotate 1 b)) m (rotate 1 m)";
    assert!(grouped(100, row) && grouped(1000, row));
    assert!(grouped(100, all) && !grouped(1000, all));
    // A row may be long.
    assert!(!grouped(20_000, row));
}

/// What the steps of a loop compute of their rows, and no step reads, stands behind a scan for each element of the rows.
#[test]
fn results_of_states_stand_behind_the_scans() {
    let of = |next: &str, result: &str| {
        let text = format!(
            "entry f [n] [s] (a: [n][s]f32) (x: [n][n]f32) (c: [n][s]f32) : [n][n]f32 =
               map2 (\\p xs ->
                 let (_, _, ys) =
                   loop (h, y, ys) = (replicate s 0, 0, replicate n 0) for i < n do
                     let h = map2 (\\k v -> k * v + {next}) p h
                     let y = {result}
                     in (h, y, ys with [i] <- y)
                 in ys) a x"
        );
        elaborated(20, &text)
    };
    let program = of("xs[i]", "sum (map2 (*) h c[i])");
    let tuples = |t: &Term| show(t).contains("scan(seq) (fork ");
    let texts = |p: &Program| p.others.iter().map(show).collect::<Vec<_>>();
    let apart = program.others.iter().find(|t| !tuples(t)).expect("a form");
    assert!(tuples(&program.term), "{}", show(&program.term));
    // All sums are exact.
    let whole = |seed: u32, of: u32| -> Value {
        let xs = (0..400u32).map(|i| f64::from((i * 7 + seed) % of) - 1.0).collect::<Vec<_>>();
        Value::floats(ScalarType::F32, &[20, 20], &xs)
    };
    let inputs = [("a", whole(1, 3)), ("x", whole(2, 5)), ("c", whole(3, 4))];
    let inputs: eval::Inputs = inputs.into_iter().map(|(n, v)| (n.into(), v)).collect();
    let value = |t: &Term| eval::apply(t, &program.env, &inputs, &Value::unit()).expect("a value");
    assert_eq!(value(apart).to_floats(), value(&program.term).to_floats());
    // The next step needs the sum.
    let needed = of("xs[i] + y", "sum h");
    assert!(needed.others.iter().all(tuples), "{:?}", texts(&needed));
    // What is no reduction costs the step nothing.
    let cheap = of("xs[i]", "h[0] + xs[i]");
    assert!(cheap.others.iter().all(tuples), "{:?}", texts(&cheap));
}

/// What a function computes from scalars before it goes through its row has an array in one form, if the rows are few.
#[test]
fn scalars_of_rows_have_arrays() {
    let stored = |n: u64, body: &str| {
        let text = format!("entry f [n] (X: [n][n]f32) (w: [n]f32) : [n][n]f32 = {body}");
        let program = elaborated(n, &text);
        let of = |t: &Term| show(t).matches("tomem(global)").count();
        assert_eq!(of(&program.term), 0, "{}", show(&program.term));
        program.others.iter().map(of).max().unwrap_or(0)
    };
    let scaled = "map2 (\\a r -> let s = exp (-a * a) in map (* s) r) w X";
    assert_eq!(stored(40, scaled), 1);
    // With more rows, each row has a work-item or a group.
    assert_eq!(stored(40_000, scaled), 0);
    // In the inner function, and of an array that a map computes.
    assert_eq!(stored(40, "map2 (\\a r -> map (\\x -> x * exp (-a * a)) r) w X"), 1);
    assert_eq!(
        stored(40, "let u = map (\\a -> exp (-a * a)) w in map2 (\\s r -> map (* s) r) u X"),
        1
    );
    // An exponential for so many elements is a table.
    assert_eq!(stored(1000, "map2 (\\a r -> map (\\x -> x * exp (-a * a)) r) w X"), 1);
    // Once for all rows of an outer map.
    let nested =
        "map (\\q -> map2 (\\a x -> let s = exp (-a) in sum (map (\\y -> y * s + x) q)) w q) X";
    assert_eq!(stored(40, nested), 1);
    // A reduction of the row comes first, or nothing is computed.
    assert_eq!(stored(40, "map (\\r -> let s = sum r * 2 in map (* s) r) X"), 0);
    assert_eq!(stored(40, "map2 (\\a r -> map (* a) r) w X"), 0);
}

/// A reduction of an array that has a name is computed once, not for each element.
#[test]
fn reductions_of_named_arrays_are_computed_once() {
    let minus = "map {Sub(_2, _1)} . distl . fork (reduce {Min(_1, _2)} {inf}) id";
    let text = |body: &str| term(&format!("entry f [n] (ps: [n]f32) : [n]f32 = {body}"));
    let each = "map (\\x -> x - minimum xs) xs";
    assert_eq!(
        text(&format!("let xs = map abs ps in {each}")),
        format!("{minus} . map {{Abs(_)}} . ps")
    );
    // In the body of a loop, which may not run, and on a side of a choice.
    let looped = text(&format!("loop xs = ps for i < 3 do {each}"));
    assert!(looped.contains(minus), "{looped}");
    let chosen = text(&format!("let xs = map abs ps in if ps[0] > 0 then {each} else xs"));
    assert!(chosen.contains(minus), "{chosen}");
    // A sort, and a loop that is no reduction.
    let median = "entry f [n] (ps: [n]f32) : [n]f32 = map (\\x -> x - (sort ps)[n / 2]) ps";
    let median = term_at(100_000, median);
    let (each, once) = median.split_once(" . distl . ").expect("a value for each element");
    assert!(!each.contains("countingsort") && once.contains("countingsort"), "{median}");
    let last = text("map (\\x -> x - (loop m = 1 for p in ps do min m (p * m))) ps");
    assert!(last.starts_with("map {Sub(_2, _1)} . distl . fork (reduce(seq)"), "{last}");
    // The sum depends on the element.
    let own = text("let xs = map abs ps in map (\\x -> sum (map (* x) xs)) xs");
    assert!(own.starts_with("map ("), "{own}");
}

#[test]
fn few_elements_of_a_sorted_array_are_selected() {
    let of = |result: &str, e: &str| {
        term_at(5000, &format!("entry few [n] (xs: [n]f32) : {result} = {e}"))
    };
    let few = [
        ("[5]f32", "take 5 (sort xs)"),
        ("[5]f32", "drop (n - 5) (sort xs)"),
        ("f32", "last (sort xs)"),
        ("f32", "(sort xs)[2]"),
        ("[5]i32", "let order = argsort (map neg xs) in take 5 order"),
        ("[5]f32", "take 5 (reverse (sort xs))"),
        ("[3][5]i32", "map (\\k -> take 5 (argsort (map (* k) xs))) [1, 2, 3]"),
    ];
    for (result, e) in few {
        assert!(!of(result, e).contains("countingsort"), "{e}");
    }
    let all = [
        ("[500]f32", "take 500 (sort xs)"),
        ("f32", "(sort xs)[2500]"),
        ("[n]f32", "let ys = sort xs in map (\\y -> y - ys[0]) ys"),
    ];
    for (result, e) in all {
        assert!(of(result, e).contains("countingsort"), "{e}");
    }
}

#[test]
fn ends_of_the_chunks_of_a_scan_are_a_scan_of_sums() {
    let scan =
        |uses: &str| term_at(12, &format!("entry ends [n] (xs: [n][4]i32) : [n]i32 = {uses}"));
    for text in [
        "map last (split 4 (scan (+) 0 (flatten xs)))",
        "let ys = scan (+) 0 (flatten xs) in map last (split 4 ys)",
    ] {
        assert!(
            scan(text).starts_with("scan(assoc) {Add(_1, _2)} {0} . map (reduce"),
            "{}",
            scan(text)
        );
    }
    // Other elements need the whole scan.
    assert!(!scan("map head (split 4 (scan (+) 0 (flatten xs)))").contains("reduce"));
}

#[test]
fn maps_over_intervals_compute_the_numbers() {
    let of = |e: &str| {
        let t = term(&format!("entry powers [n] (xs: [n]f32) : [n][n]f32 = {e}"));
        t.matches("iota").count()
    };
    // No interval is an array in front of the maps.
    let counted = of("map (\\x -> map (\\k -> x ** f32.i32 (k + 1)) (iota n)) xs");
    assert_eq!(of("map (\\x -> map (\\k -> x ** f32.i32 k) (1...n)) xs"), counted);
    let named = "let ks = 1...n in map (\\x -> map (\\k -> x ** f32.i32 k) ks) xs";
    assert_eq!(of(named), counted);
    let both = "let ks = 2..<n + 2 in map (\\j -> map (\\k -> f32.i32 (100 * j + k)) ks) ks";
    assert!(!term(&format!("entry places [n] : [n][n]f32 = {both}")).contains("map {Add"));
}

#[test]
fn columns_one_after_the_other_are_a_view() {
    // Sums of columns 3 to 7.
    let t = term(
        "entry sums [n] (A: [n][n]f32) : [5]f32 = \
         generate 5 (\\j -> sum (map (\\x -> x * x) (transpose A)[j + 3]))",
    );
    assert!(!t.contains("gather") && t.contains("drop"), "{t}");
}
