//! Error messages for wrong programs: one snapshot for each kind of mistake.

use crate::diag::{Diagnostic, Source};
use crate::lang::{check, check_entry};
use std::fmt::Write as _;

/// Renders diagnostics as plain text.
fn render(text: &str, diagnostics: &[Diagnostic]) -> String {
    let mut out = format!("{text}\n");
    for d in diagnostics {
        let _ = writeln!(out, "\n{}: {}", d.code, d.message);
        for label in &d.labels {
            let mark = if label.primary { "-->" } else { "   " };
            let excerpt = text.get(label.span.range()).unwrap_or("?").replace('\n', " ");
            let _ = writeln!(out, "  {mark} `{excerpt}` {}", label.text);
        }
        for note in &d.notes {
            let _ = writeln!(out, "  note: {note}");
        }
        for help in &d.help {
            let _ = writeln!(out, "  help: {help}");
        }
    }
    out
}

const WRONG: &[(&str, &str)] = &[
    ("lex_character", "entry f (x: f32) = x ? 1 \u{b7} 2"),
    ("lex_number", "entry f (x: f32) = x + 12abc"),
    ("lex_number_suffix", "entry f (x: u32) (y: f64) = (x << 13u, y + 1e-6f)"),
    ("sum_of_narrow_numbers", "entry f [n] (xs: [n]u8) : i32 = sum xs"),
    ("comprehension_over_indices", "entry f [n] (xs: [n]f32) : [n]f32 = [xs[i] * 2 for i in n]"),
    (
        "foreign_scatter_2d",
        "entry f [n][m] (A: [n][m]f32) (is: [n]i32) (js: [n]i32) (vs: [n]f32) = scatter_2d A (zip is js) vs",
    ),
    ("array_of_integers", "entry f [n] (xs: [n]f32) = map (\\i -> xs[i]) (iota n - 1)"),
    (
        "parse_several",
        "entry f (x: f32) = (x + 1\nentry g (x: f32) = let y = 1\nthing\nentry h = \\ -> 1",
    ),
    ("parse_index_space", "entry f [n] (xs: [n]f32) = xs + [0]"),
    ("parse_type_decl", "type t = (f32, u)\ntype v [n] = [n]f32\nentry f (x: t) (y: v) = x.0"),
    ("type_lacks_size", "type v [n] = [n]f32\nentry f (y: v) = y"),
    ("parse_record", "entry f (x: f32) = {x = 1, = 2}\nentry g {x, 1} = 2"),
    ("parse_module", "module m = 1\nentry f (x: f32) = x"),
    ("parse_keyword", "entry loop (x: f32) = x"),
    ("parse_type", "entry f (x: float) = x"),
    ("unknown_name", "entry f [n] (values: [n]f32) = reduce (+) 0 valeus"),
    ("unknown_pattern", "entry f [n] (xs: [n]f32) = redcue (+) 0 xs"),
    ("unknown_size", "entry f [n] (xs: [m]f32) = reduce (+) 0 xs"),
    ("duplicate", "def f x = x\ndef f y = y\nentry g [n][n] (x: [n]f32) = f x"),
    ("recursion_type", "type a = [2]b\ntype b = (a, f32)\nentry f (x: a) = x"),
    ("duplicate_type", "type a = f32\ntype a = i32\ntype f32 = i32\nentry f (x: a) = x"),
    ("duplicate_field", "entry f (x: f32) = {y = x, x, y = 1}"),
    ("recursion", "def f x = g x\ndef g x = h x\ndef h x = f x\nentry e (x: f32) = f x"),
    ("recursion_self", "def f x = f (x - 1)\nentry e (x: f32) = f x"),
    ("type_operands", "entry f (x: f32) (i: i32) = x * i"),
    ("type_literal", "entry f (i: i32) : i32 = i + 1.5"),
    ("type_literal_range", "entry f (i: u8) : u8 = i + 256"),
    ("type_array_operator", "entry f [n] (xs: [n]f32) (ys: [n]f32) = xs + ys"),
    ("type_not_array", "entry f (x: f32) = map abs x"),
    ("type_not_function", "entry f (x: f32) = x 1"),
    ("type_result", "entry f [n] (xs: [n]f32) : i32 = reduce (+) 0 xs"),
    ("type_branches", "entry f (x: f32) = if x > 0 then x else true"),
    ("type_condition", "entry f (x: f32) = if x then x else x"),
    (
        "type_argument",
        "def dot [n] (xs: [n]f32) (ys: [n]f32) = reduce (+) 0 (map2 (*) xs ys)\nentry f [n] (xs: [n]f32) (is: [n]i32) = dot xs is",
    ),
    ("type_in_use", "def twice x = x + x\nentry f (b: bool) = twice b"),
    ("type_tuple", "entry f (x: f32) = let (a, b) = x in a"),
    ("type_projection", "entry f (t: (f32, i32)) = t.2"),
    ("type_field", "entry f (p: {x: f32, width: f32}) = p.widht"),
    ("type_not_record", "entry f (p: (f32, f32)) = p.x"),
    ("type_field_unknown", "entry f [n] (xs: [n]f32) = (\\p -> p.x) xs"),
    ("type_record", "entry f (p: {x: f32}) : {y: f32} = p"),
    ("type_update", "entry f (p: {x: f32, y: f32}) = p with x = true"),
    ("type_function", "entry f (g: f32 -> f32) (x: f32) = g x"),
    ("type_parameter", "entry f 't (x: t) = x"),
    ("type_lambda_result", "entry f [n] (xs: [n]f32) = map (\\x : i32 -> x) xs"),
    ("type_reduce_rows", "entry f [n][m] (xss: [n][m]f32) = reduce (+) 0 xss"),
    ("type_operator_result", "entry f [n] (xs: [n]f32) = reduce (\\a b -> a < b) 0 xs"),
    ("type_vectors", "entry f [n] (xs: [n][4]f32) = asVector 2 xs"),
    ("type_as_scalar", "entry f [n] (xs: [n]f32) = asScalar xs"),
    ("type_loop", "entry f [n] (xs: [n]f32) = loop (acc = xs) for i < 3 do 1"),
    ("type_bits", "entry f (x: f32) = x & 1"),
    ("type_shift", "entry f (i: i32) (b: bool) = i << b"),
    ("type_not", "entry f (i: i32) (b: bool) = (!i, ~b)"),
    ("type_sqrt", "entry f (i: i32) = sqrt i"),
    ("size_zip", "entry f [n][m] (xs: [n]f32) (ys: [m]f32) = map2 (+) xs ys"),
    ("size_result", "entry f [n][m] (xs: [n][m]f32) : [n][m]f32 = transpose xs"),
    ("size_iterate", "entry f [n] (xs: [n]f32) = iterate 3 (drop 1) xs"),
    (
        "size_iterate_times",
        "entry f [n] (xs: [n]f32) = iterate n (split 2 >-> map (reduce (+) 0)) xs",
    ),
    ("parse_range", "entry f [n] : [n]i32 = map (+ 1) (0..2..<n)\nentry g [n] : [n]i32 = 0..n"),
    ("parse_rec", "def rec f x = f x\nentry g (x: i32) = let rec h y = h (y - 1) in h x"),
    ("parse_elif", "entry f (x: f32) = if x > 0 then 1 elif x < 0 then 2 else 3"),
    ("parse_local_sizes", "entry f (x: f32) = let y [n] : [n]f32 = replicate n x in 1"),
    (
        "parse_late_sizes",
        "entry sieve (n: i64) [n] (xs: [n]f32) = xs\ndef f [n] (xs: [n]f32) 't [m] (ys: [m]t) = ys\nentry g (x: f32) ] = x",
    ),
    (
        "arity_tuple",
        "entry f [n] (xs: [n]f32) = sum (map(abs, xs))\nentry g (x: f32) = let m = max(x, 1) in m + 1",
    ),
    ("size_cut", "entry f [n] (xs: [n]f32) = let (k, ys) = filter (> 0) xs in take k ys"),
    ("type_power", "entry f (x: f32) (y: f32) = ((x - y)^2, (2.5^x))"),
    ("type_integer_times_float", "entry f (r: u8) = (0.299 * r, r * 0.299)"),
    ("divide_half", "entry f (xs: [7]f32) = split (length xs / 3) xs"),
    ("size_dynamic", "entry f [n] (k: i32) (xs: [n]f32) = split k xs"),
    (
        "size_of_use",
        "def f (w: i64) = iota w\nentry g [n] (xs: [n]f32) = f n\nentry h (k: i64) = f k",
    ),
    (
        "size_lost",
        "entry f (w: i64) = loop a = iota w for i < 3 do a with [0] = a[1] + a[w:w + 2][0]\nentry g (w: i64) = loop a = replicate w {x = 1} for i < 3 do a.x + a.0 + a 0",
    ),
    ("size_power", "entry f [k] (xs: [2 ** k]f32) = reduce (+) 0 xs"),
    ("size_negative", "entry f [n] (xs: [n]f32) = take (0 - 3) xs"),
    ("size_take", "entry f (xs: [8]f32) = take 9 xs"),
    ("size_overflow", "entry f = replicate (9223372036854775807 * 9) 1"),
    ("divide_constant", "entry f (xs: [10]f32) = split 3 xs"),
    ("divide_zero", "entry f [n] (xs: [n]f32) : [n/0]f32 = xs"),
    ("arity_many", "entry f (x: f32) = sqrt x x"),
    ("arity_few", "entry f [n] (xs: [n]f32) = reduce (+) 0"),
    ("arity_map", "entry f [n] (xs: [n]f32) = map (+) xs"),
    ("arity_map2", "entry f [n] (xs: [n]f32) = map2 sqrt xs xs"),
    ("arity_body", "entry f [n] [m] (xs: [n][m]f32) = map (\\r -> map3 (+) r r) xs"),
    ("arity_function_value", "entry f (c: bool) (x: f32) = (if c then sqrt else exp) x"),
    ("untyped_parameter", "entry f x = x"),
    ("nest_lcl", "entry f [n] (xs: [n]f32) = mapLcl 0 sqrt xs"),
    ("nest_twice", "entry f [n][m] (xs: [n][m]f32) = mapGlb 0 (mapGlb 0 sqrt) xs"),
    ("nest_local", "entry f [n] (xs: [n]f32) = mapGlb 0 sqrt (toLocal (mapSeq id) xs)"),
    ("nest_mixed", "entry f [n][m] (xs: [n][m]f32) = mapWrg 0 (mapGlb 1 sqrt) xs"),
    ("dimension", "entry f [n] (xs: [n]f32) = mapGlb 3 sqrt xs"),
    (
        "no_effect",
        "-- gen: xs=iota\ndef g [n] (xs: *[n]f32) = #[unroll] map sqrt xs\nentry f [n] (xs: [n]f32) = g xs\n-- gen: xs=normal\n\n-- gen: xs=uniform\nentry h [n] (xs: [n]f32) = g xs",
    ),
    ("no_entry", "def main [n] (xs: [n]f32) = sum xs"),
    ("assertion", "entry f [n] (xs: [n]f32) = assert (n > 0) xs[0]"),
    ("parse_match", "type t = #a | #b\nentry f (x: i32) = match x case 1 -> 2 case _ -> 3"),
    ("parse_slice_space", "entry f [n] (xs: [n]f32) = map sqrt xs [1:4]"),
    (
        "type_rows",
        "entry f [n] [m] (A: [n][m]f32) = sum A\nentry g [n] [m] (A: [n][m]f32) = map sqrt A",
    ),
    ("pad_mode", "entry f [n] (xs: [n]f32) = pad 1 1 sqrt xs"),
];

/// Names from elsewhere, misspelt names, and operands that need a conversion, each with a part of the advice.
const ADVICE: &[(&str, &str)] = &[
    ("nonzero xs", "`let (k, ys) = filter p xs`"),
    ("merge_sort xs", "`sort_by lte xs`"),
    ("radix_sort xs", "`sort_by_key key xs`"),
    ("zipWith (+) xs xs", "`map2 f xs ys`"),
    ("map (+ inf) xs", "`f32.inf`"),
    ("map (\\x -> f32.pii * x) xs", "did you mean `f32.pi`?"),
    ("map (\\x -> f32.sqr x) xs", "did you mean `f32.sqrt`?"),
    ("fold (+) 0 xs", "`foldl f z xs`"),
    ("map_intra sqrt xs", "write `map f xs`"),
    ("map (* f32 2) xs", "`f32.i32 x` converts from i32"),
    ("map (+ f32.i32 (len xs)) xs", "`length xs`"),
    ("scam (+) 0 xs", "did you mean `scan`?"),
    ("map2 (+) xs (iota n)", "convert it: `f32.i32 n`"),
    ("map2 (\\x i -> x * i) xs is", "convert it: `f32.i32 i`"),
    ("map2 (*) xs is", "convert it: `f32.i32 x`"),
    ("map (+ n) xs", "convert it: `f32.i32 n`"),
    ("scan (+) 0 xss", "`map (scan (+) 0) xss`"),
    ("reduce max f32.lowest xss", "`map (reduce max f32.lowest) xss`"),
    ("reduce max f32.lowest xss", "`reduce (map2 max) (replicate n f32.lowest) xss`"),
    ("xss |> reduce (\\a b -> a * b) 1", "`map (reduce (\\a b -> a * b) 1) xss`"),
    ("reduce (+) 0 (replicate 2 xss)", "`map (map (reduce (+) 0)) (replicate 2 xss)`"),
    ("reduce (\\a b -> if a > b || a == 0 then a else b) 1 xss", "then a else b) 1) xss`"),
    ("sum xss", "write `map sum xss`"),
    ("f32.maximum xss", "write `map maximum xss`"),
    ("count (> 0) xss", "write `map (count (> 0)) xss`"),
    ("map sqrt xss", "write `map (map sqrt) xss`"),
    ("map (* 2) xss", "write `map (map (* 2)) xss`"),
    ("map2 max xss xss", "write `map2 (map2 max) xss xss`"),
    ("sqrt xss", "`map (map sqrt) xss`"),
    ("xs * 2", "`map (* 2) xs`"),
    ("1 - xs", "`map (1 -) xs`"),
    ("where xs xs xs", "if x > 0 then x else 0"),
    ("map (\\x -> x > 0 ? x : 0) xs", "`if c then a else b`"),
    ("scan max xs", "`scan (+) 0 xs`"),
    ("let s = sum xs\nmap (/ s) xs", "write `in` behind it"),
    ("xs - 1", "`map (\\x -> x - 1) xs`"),
    ("let x = sum xs in xs - x", "`map (\\a -> a - x) xs`"),
    ("xs[1:] - xs[:-1]", "`map2 (-) xs[1:] xs[:-1]`"),
    ("xs[:-1]", "all but the last are `a[:n - 1]`"),
    ("-xs", "`map neg xs`"),
    ("!xs", "`map not xs`"),
    ("xs [2]", "`xs[2]`"),
    ("sum xs [2]", "`xs[2]`"),
    ("sum xs [1:4]", "`xs[1:4]`"),
    ("xss [:, 1]", "`xss[:, 1]`"),
    ("(map sqrt xs) [1:]", "`a[1:]`"),
    ("map2 (\\i x -> i + x) is xs", "convert the first: `f32.i32 i`"),
    ("map (\\i -> i + 1u8) is", "convert it: `i32.u8 1u8`"),
    ("map (\\i -> 1u32 + i) is", "convert the first: `i32.u32 1u32`"),
    ("map (\\i -> i + 1i64) is", "convert the first: `i64.i32 i`"),
    ("map (\\i -> i * 2.0) is", "without a point: `2`"),
    ("map (\\i -> if i > 0 then i else 0.5f32) is", "convert the first: `f32.i32 i`"),
    ("map f32.to_bits xs", "`order_key x`"),
    ("match n case 0 -> xs case _ -> is", "`if x == 1 then"),
    ("#some xs", "there are no sum types"),
    ("let xs [0] = 1 in xs", "`let xs[i] = e`"),
    ("take (i64.i32 is[0]) xs", "mask with"),
    ("take (i8.i32 n) xs", "`i8` does not have all lengths"),
    ("map (\\y -> y + is[0] * 2) xs", "convert it: `f32.i32 (is[0] * 2)`"),
    ("sum xs / length xs", "convert it: `f32.i32 (length xs)`"),
    ("xss * xs", "`map (\\row -> map2 (*) row xs) xss`"),
    ("reduceSeq (+) 0 xss", "`map (reduceSeq (+) 0) xss`"),
    ("xs[0] + (is[0] > 1)", "convert it: `f32.bool (is[0] > 1)`"),
    ("xs[1..<4]", "a slice is `a[i:j]`"),
    ("xs[1..4]", "a slice is `a[i:j]`"),
    ("map (\\(x: float) -> x) xs", "did you mean `f32`?"),
    ("map (\\(x: f23) -> x) xs", "did you mean `f32`?"),
    ("mean xs", "`sum xs / f32.i32 (length xs)`"),
    ("xss @ xss", "a product of matrices is"),
    ("map (fn x -> x) xs", "a function is `\\x -> ...`"),
    ("map (x => x) xs", "a function is `\\x -> ...`"),
    ("[0; n]", "`replicate n x`"),
    ("count (== 'A') is", "`65u8`"),
    ("xs.length", "`length xs`"),
    ("let [x, y] = xs in x", "`let (x, y) = (a[0], a[1]) in ...`"),
    ("map (\\[x, y] -> x) xss", "`let (x, y) = (a[0], a[1]) in ...`"),
    ("map sqrt is", "convert it: `\\x -> sqrt (f32.i32 x)`"),
    ("map (\\i -> 3u32 >> i) is", "convert the second: `u32.i32 i`"),
    ("map (\\x -> 0 < x < 1) xs", "`a < b && b < c`"),
    ("foldl (\\a x -> max a x) -1e30 xs", "in parentheses: `(-1e30)`"),
    ("map (\\x -> max x -2 * x) xs", "in parentheses: `(-2)`"),
    ("xs[-1]", "`last xs`, or `xs[n - 1]`"),
    ("[1, 2, 3][-2]", "`[1, 2, 3][3 - 2]`"),
    ("xss[0, -2]", "write `n - 2`"),
    (
        "map (\\j -> sum xs[is[j]:is[j + 1]]) (iota 2)",
        "`loop acc = 0 for k < is[j + 1] - is[j] do acc + xs[is[j] + k]`",
    ),
    ("let (k, ys) = filter (> 0) xs in sum ys[:k]", "`loop acc = 0 for i < k do acc + ys[i]`"),
    ("sum xs[is[0]:]", "if k >= is[0] then x else 0) (indices xs) xs`"),
    ("xs with [is[0]:is[1]] <- xs", "`scatter`"),
    (
        "map (\\lag -> sum (map (\\i -> xs[i + lag]) (iota (n - lag)))) (iota n)",
        "`loop acc = z for i < n - lag do ...`",
    ),
    ("loop s = 0 for i < n do for j < 3 do s + 1", "`loop s = s for j < 3 do ...`"),
    ("loop (s, t) = (0, 1) for i < n do while s < t do s", "`loop acc = acc while s < t do ...`"),
    ("[x * x | x <- xs]", "`map (\\x -> x * x) xs`"),
    ("[x * y for (x, y) in zip xs xs]", "`map (\\(x, y) -> x * y) (zip xs xs)`"),
    ("[x | x <- xs, x > 0]", "`map (\\x -> x) xs`"),
];

/// What other languages write is one mistake each.
#[test]
fn one_error_for_one_mistake() {
    for body in [
        "foldl max -1e30 xs",
        "loop s = 0 for i < n do for j < 3 do s + 1",
        "[x * x | x <- xs]",
        "[x * x for x in xs]",
        "xs[-1] + xs[0]",
    ] {
        let text = format!("entry f [n] (xs: [n]f32) (is: [n]i32) = {body}");
        let found = check(&Source::new("wrong.pat", text)).1;
        assert_eq!(found.len(), 1, "{body}: {}", render(body, &found));
    }
}

#[test]
fn advice() {
    for (body, advice) in ADVICE {
        let text = format!("entry f [n] (xs: [n]f32) (is: [n]i32) (xss: [n][n]f32) = {body}");
        let found = check(&Source::new("wrong.pat", text)).1;
        let help = found.iter().flat_map(|d| &d.help).any(|h| h.contains(advice));
        assert!(help, "{body}: {}", render(body, &found));
    }
}

#[test]
fn wrong_programs() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/snapshots/diagnostics"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for (name, text) in WRONG {
            let (_, diagnostics) = check(&Source::new("wrong.pat", *text));
            assert!(!diagnostics.is_empty(), "{text}");
            insta::assert_snapshot!(*name, render(text, &diagnostics));
        }
        let text = "def a = 1\nentry b = 1\nentry c = 2";
        let source = Source::new("wrong.pat", text);
        for (name, entry) in
            [("entry_which", None), ("entry_def", Some("a")), ("entry_none", Some("q"))]
        {
            let failure = check_entry(&source, entry).expect_err("no such entry");
            insta::assert_snapshot!(name, render(text, &failure.0));
        }
    });
}
