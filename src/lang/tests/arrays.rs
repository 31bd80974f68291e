//! Slices, literals, updates, loops over elements, and the prelude: types, meanings and errors.

use crate::diag::{Code, Diagnostic, Source, Span};
use crate::lang::{check, check_entry, check_entry_general, format};

/// Returns the type of the expression, under size parameters `n` and `m` and parameters `xs`, `A`, `is` and `i`.
fn type_of(e: &str) -> String {
    let text = program(e);
    let entry = check_entry(&Source::new("p.pat", text.as_str()), None);
    let entry = entry.unwrap_or_else(|e| panic!("{e}\n{text}"));
    let (general, _) =
        check_entry_general(&Source::new("p.pat", text.as_str()), None, true).expect("well-typed");
    assert_eq!(general.params.len(), entry.params.len());
    let once = format(&Source::new("p.pat", text.as_str())).expect("it parses");
    let twice = format(&Source::new("p.pat", once.as_str())).expect("it parses");
    assert_eq!(once, twice);
    entry.body.ty.to_string()
}

fn program(e: &str) -> String {
    format!("entry f [n][m] (xs: [n]f32) (A: [n][m]f32) (is: [64]i32) (i: i32) = {e}\n")
}

/// Returns the first error of the expression, and the text that it is about.
fn error(e: &str) -> (Diagnostic, String) {
    let text = program(e);
    let d = check(&Source::new("p.pat", text.as_str())).1;
    let d = d.into_iter().next().unwrap_or_else(|| panic!("no error: {text}"));
    let place = d.labels.first().map_or("", |l| &text[l.span.range()]).to_owned();
    (d, place)
}

#[test]
fn slices_have_the_lengths_of_their_bounds() {
    for (e, ty) in [
        ("xs[1:n - 1]", "[n - 2]f32"),
        ("xs[:3]", "[3]f32"),
        ("xs[n - 3:]", "[3]f32"),
        ("xs[:]", "[n]f32"),
        ("xs[::-1]", "[n]f32"),
        ("xs[n - 1:0:-1]", "[n - 1]f32"),
        ("is[::3]", "[22]i32"),
        ("is[1:64:3]", "[21]i32"),
        ("is[62:0:-4]", "[16]i32"),
        ("is[5:5:2]", "[0]i32"),
        ("(join [xs, xs])[1::2]", "[n]f32"),
        ("(join A)[m - 1::m]", "[n]f32"),
        ("(join A)[::m]", "[n]f32"),
        ("A[:, i]", "[n]f32"),
        ("A[i, :]", "[m]f32"),
        ("A[i]", "[m]f32"),
        ("A[1:n - 1, 1:m - 1]", "[n - 2][m - 2]f32"),
        ("A[::-1, :2]", "[n][2]f32"),
        ("A[2:, i]", "[n - 2]f32"),
        ("(generate 4 (\\_ -> A))[:, i, 1:]", "[4][m - 1]f32"),
        ("(generate 4 (\\_ -> A))[1, :, i]", "[n]f32"),
        ("(generate 4 (\\_ -> A))[:, :, i]", "[4][n]f32"),
        // At computed places.
        ("xs[i:i + 3]", "[3]f32"),
        ("xs[2 * i:2 * (i + 1)]", "[2]f32"),
        ("xs[i + 1 - n:i + 1]", "[n]f32"),
        ("xs[is[i] + m:is[i] + 2 * m]", "[m]f32"),
        ("xs[i / 2:i / 2 + 4]", "[4]f32"),
        ("xs[i * n:i * n + n]", "[n]f32"),
        ("xs[i:i + 5:2]", "[3]f32"),
        ("xs[i + 3:i:-1]", "[3]f32"),
        ("A[i:i + 2, 1:3]", "[2][2]f32"),
        ("A[:, i:i + 2]", "[n][2]f32"),
        ("map (\\(j, _) -> sum xs[j:j + 3]) (zip (iota (n - 2)) xs[2:])", "[n - 2]f32"),
        ("loop acc = replicate 2 0 for j < n / 2 do map2 (+) acc xs[2 * j:2 * j + 2]", "[2]f32"),
    ] {
        assert_eq!(type_of(e), ty, "{e}");
    }
}

#[test]
fn literals_updates_and_loops() {
    for (e, ty) in [
        ("[1, 2.5, xs[0]]", "[3]f32"),
        ("[[1, 2], [3, 4]]", "[2][2]i32"),
        ("[xs, xs[::-1]]", "[2][n]f32"),
        ("map (\\x -> [x, x * x]) xs", "[n][2]f32"),
        ("[(1, true)]", "[1](i32, bool)"),
        ("xs with [i] <- 1", "[n]f32"),
        ("xs with [i] = 1 with [0] <- 2", "[n]f32"),
        ("xs with [1:3] <- [1, 2]", "[n]f32"),
        ("A with [i] <- map abs A[0]", "[n][m]f32"),
        ("A with [i, 2] <- 1", "[n][m]f32"),
        ("A with [:, i] <- xs", "[n][m]f32"),
        ("A with [::-1] <- A", "[n][m]f32"),
        ("xs with [i:i + 2] <- [1, 2]", "[n]f32"),
        ("A with [i:i + 2, i:i + 1] <- [[1], [2]]", "[n][m]f32"),
        ("pad 1 1 0 A", "[n + 2][m]f32"),
        ("pad 1 1 0 (map (pad 1 1 0) A)", "[n + 2][m + 2]f32"),
        ("pad 0 1 xs[0] [A]", "[2][n][m]f32"),
        ("pad 0 1 A[0] [A]", "[2][n][m]f32"),
        ("pad 1 0 (0, 1) (map (\\r -> zip r r) A)", "[n + 1][m](f32, f32)"),
        ("is with [::2] <- is[1::2]", "[64]i32"),
        ("if i <-1 then i else 0", "i32"),
        ("loop (acc = 0) for x in xs do acc * 0.5 + x", "f32"),
        ("loop (a, k) = (0, 0) for x in xs do (a + x, k + 1)", "(f32, i32)"),
        ("loop (a = 0, k = 1) for x in xs do (a + x, k + 1)", "(f32, i32)"),
        ("loop (i, k = 0) while i > 3 do (i / 2, k + 1)", "(i32, i32)"),
        ("loop (k = 0, i, (xs)) while i > 3 do (k + 1, i / 2, xs)", "(i32, i32, [n]f32)"),
        (
            "loop (lo = 0, (hi, k): (i32, f32) = (9, 2), s = 1) while lo < hi do (lo + 1, (hi, k), s)",
            "(i32, (i32, f32), i32)",
        ),
        ("loop row = A[0] for r in A do map2 (+) row r", "[m]f32"),
        ("loop acc = 0 for (x, y) in zip xs xs do acc + x * y", "f32"),
    ] {
        assert_eq!(type_of(e), ty, "{e}");
    }
}

#[test]
fn the_prelude_works_for_every_type_of_number() {
    for (e, ty) in [
        ("(sum xs, sum is)", "(f32, i32)"),
        ("(maximum xs, minimum is, product (map f64.f32 xs))", "(f32, i32, f64)"),
        ("(any (> 0) xs, all (> 0) is, count (> 0) xs)", "(bool, bool, i32)"),
        ("(find (> 0) xs, argmin xs, argmax is : i64)", "(i32, i32, i64)"),
        ("(foldl (\\a x -> a * 2 + x) 0 xs, foldr (-) 0 xs)", "(f32, f32)"),
        ("(head xs, last A, init xs, tail A)", "(f32, [m]f32, [n - 1]f32, [n - 1][m]f32)"),
        ("(length A, indices xs, flatten A)", "(i32, [n]i32, [m*n]f32)"),
        ("(unflatten (flatten A) : [n][m]f32)", "[n][m]f32"),
        ("(unflatten is : [8][8]i32)", "[8][8]i32"),
        ("tabulate 3 (\\k -> k)", "[3]i32"),
        ("tabulate_2d n m (\\k l -> k + l)", "[n][m]i32"),
        ("tabulate_3d 2 n m (\\k l j -> k + l * j)", "[2][n][m]i32"),
        ("map2_2d (+) A (map_2d abs A)", "[n][m]f32"),
        ("map sum A", "[n]f32"),
        ("take (length xs - 1) xs", "[n - 1]f32"),
        ("(highest + i, max lowest xs[0])", "(i32, f32)"),
        // A program's own names hide those of the prelude, but not in the prelude.
        ("let sum = 3 in sum + i", "i32"),
        ("let length x = x * 2 in map length (tail xs)", "[n - 1]f32"),
    ] {
        assert_eq!(type_of(e), ty, "{e}");
    }
    let own =
        "def last xs = xs[0]\ndef max a b = a\nentry f [n] (xs: [n]f32) = (last xs, maximum xs)\n";
    let entry = check_entry(&Source::new("p", own), None).expect("well-typed");
    let text = format!("{:?}", entry.body);
    assert!(text.contains("Max") && !text.contains("Sub"), "{text}");
}

#[test]
fn what_is_used_of_the_prelude_stands_at_its_use() {
    fn spans(e: &crate::lang::typed::Expr, out: &mut Vec<Span>) {
        use crate::lang::typed::ExprKind as K;
        out.push(e.span);
        if let K::Prim { funs, args, .. } = &e.kind {
            funs.iter().for_each(|f| spans(&f.body, out));
            args.iter().for_each(|e| spans(e, out));
        }
    }
    let text = program("argmax (map2 (*) (tail xs) (init xs))");
    let entry = check_entry(&Source::new("p", text.as_str()), None).expect("well-typed");
    let mut all = vec![];
    spans(&entry.body, &mut all);
    assert!(all.iter().all(|s| s.range().end <= text.len()), "{all:?}");
}

#[test]
fn errors_have_a_place_and_a_way_out() {
    for (e, code, place, words) in [
        ("is[3:65]", Code::SizeRange, "3:65", "ends after the last"),
        ("is[-3:]", Code::SizeRange, "-3:", "begins before the first"),
        ("is[5:3]", Code::SizeRange, "5:3", "ends before it begins"),
        ("is[3:5:-1]", Code::SizeRange, "3:5:-1", "ends before it begins"),
        ("is[::0]", Code::SizeRange, "::0", "must not be 0"),
        ("xs[i:]", Code::TypeMismatch, "i", "known before the program runs"),
        ("xs[i:2 * i]", Code::TypeMismatch, "i", "known before the program runs"),
        ("xs[i:xs[0]]", Code::TypeMismatch, "xs[0]", "must be an integer"),
        ("is[i:i + 65]", Code::SizeRange, "i:i + 65", "is too long"),
        ("is[i:i - 1]", Code::SizeRange, "i:i - 1", "ends before it begins"),
        ("pad 1 1 true A", Code::TypeMismatch, "true", "must be f32"),
        ("xs[1:2, 3:4]", Code::TypeMismatch, "3:4", "must be an array"),
        ("i[1:2]", Code::TypeMismatch, "1:2", "must be an array"),
        ("xs with [0:2] <- is", Code::SizeMismatch, "0:2", "the new value has 64"),
        ("xs with [0] <- true", Code::TypeMismatch, "true", "must be f32"),
        ("[1, true]", Code::TypeMismatch, "true", "an element of the array"),
        ("[]", Code::Parse, "[]", "without elements"),
        ("loop a = 0 for x in i do a", Code::TypeMismatch, "i", "must be an array"),
        ("sum i", Code::TypeMismatch, "sum i", "must be an array"),
        ("argmin A", Code::TypeMismatch, "argmin A", ""),
        ("map (\\r -> maximum r + true) A", Code::TypeMismatch, "true", ""),
        ("1 + lenght xs", Code::UnknownName, "lenght", "nothing is called"),
    ] {
        let (d, at) = error(e);
        assert_eq!((d.code, at.as_str()), (code, place), "{e}: {d}");
        assert!(d.message.contains(words), "{e}: {d}");
    }
    let (d, _) = error("xs[i:]");
    let help = d.help.join(" ");
    let fold = "`loop acc = 0 for k < length xs - i do acc + xs[i + k]`";
    assert!(help.contains(fold) && help.contains("`xs[i:i + 3]`"), "{d:?}");
    let (d, _) = error("sum i");
    assert!(d.notes.join(" ").contains("`sum xs = reduce (+) 0 xs`"), "{d:?}");
    let (d, _) = error("1 + lenght xs");
    assert!(d.help.join(" ").contains("length"), "{d:?}");
    // A condition that the text does not decide is one on the sizes.
    let entry = check_entry(&Source::new("p", program("xs[n/2:]")), None).expect("well-typed");
    assert_eq!(entry.divides.len(), 1);
}

/// Lengths that do not divide are rounded; a quotient in their place is a condition.
#[test]
fn rests_of_lengths() {
    let said = |text: &str| {
        let program = format!("entry f [n] [s] (s: i64) (xs: [n]f32) (ys: [5]f32) {text}");
        let entry = check_entry(&Source::new("p", program), None).expect("well-typed");
        let conditions = entry.divides.iter().map(|(a, b, _)| format!(", {b} divides {a}"));
        format!("{}{}", entry.body.ty, conditions.collect::<String>())
    };
    for (text, expected) in [
        ("= slide 3 2 xs", "[(n - (n - 3)%2 - 3)/2 + 1][3]f32"),
        ("= slide 2 2 ys", "[2][2]f32"),
        ("= slide 2 2 (xs ++ xs ++ [1])", "[n][2]f32"),
        ("= slide s s xs |> map sum", "[(n - (n - s)%s)/s]f32"),
        (": [n/2][2]f32 = slide 2 2 xs", "[n/2][2]f32, 2 divides n"),
        (
            "= map2 (+) (map sum (slide 3 2 xs)) (map sum (slide 3 2 xs))",
            "[(n - (n - 3)%2 - 3)/2 + 1]f32",
        ),
        ("= (slide 2 2 xs |> join) with [0] <- 1", "[n - (n - 2)%2]f32"),
        ("= map2 (+) xs (join (slide 2 2 xs))", "[n]f32, 2 divides n"),
        ("= ys[1::2] ++ ys[::2]", "[5]f32"),
        ("= xs[1::2]", "[(n + (n - 1)%2 - 1)/2]f32"),
        ("= map2 (+) xs[::2] xs[1::2]", "[n/2]f32, 2 divides n"),
        ("= take (n - n % 4) xs |> split 4", "[(n - n%4)/4][4]f32"),
    ] {
        assert_eq!(said(text), expected, "{text}");
    }
}
