use super::super::{Program, elaborate};
use crate::calculus::term::Term;
use crate::diag::Source;
use crate::lang::check_entry;

fn elaborated(text: &str, sizes: &[(&str, u64)]) -> Program {
    let entry = check_entry(&Source::new("f.pat", text), None).unwrap_or_else(|e| panic!("{e}"));
    let sizes = sizes.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect();
    elaborate(&entry, &sizes).unwrap_or_else(|e| panic!("{e}"))
}

/// Whether only another form of the program is a product of these operands.
fn becomes(program: &Program, product: &str) -> bool {
    let has = |text: String| text.contains(product);
    !has(program.term.to_string()) && program.others.iter().any(|t| has(t.to_string()))
}

/// Returns the forms as text, for messages.
fn forms(program: &Program) -> String {
    texts(&program.forms())
}

fn texts(terms: &[Term]) -> String {
    terms.iter().map(|t| format!("\n{t}")).collect()
}

const SIZES: [(&str, u64); 5] = [("b", 3), ("ci", 4), ("co", 8), ("h", 30), ("w", 34)];

#[test]
fn convolutions_are_products_with_windows() {
    let text = |windows: &str| {
        format!(
            "entry f [b][ci][co][h][w] (x: [b][ci][h + 2][w + 2]f32) (k: [co][ci][3][3]f32) (z: [co]f32) : [b][co][h][w]f32 =
               map (\\img -> map2 (\\k z -> tabulate_2d h w (\\i j -> max 0 (z + {windows}))) k z) x"
        )
    };
    let sums = "sum (map2 (\\p r -> sum (tabulate 3 (\\di -> sum (tabulate 3 (\\dj -> p[i + di, j + dj] * r[di, dj]))))) img k)";
    let flat = "sum (flatten (flatten (tabulate_3d ci 3 3 (\\c di dj -> k[c, di, dj] * img[c, di + i, dj + j]))))";
    for windows in [sums, flat] {
        let program = elaborated(&text(windows), &SIZES);
        let epilogue = "map (map (split w)) . map (map (map ((\\(a, b) -> max 0.0 (";
        assert!(becomes(&program, epilogue), "{}", forms(&program));
        let with_windows = |t: &Term| {
            let text = t.to_string();
            text.contains(epilogue) && text.contains("slide 3 1 h")
        };
        assert!(program.others.iter().any(with_windows), "{}", forms(&program));
    }
}

/// What follows a convolution outside of its element is part of the function of the product.
#[test]
fn what_follows_a_convolution_is_in_its_nest() {
    let of = |ty: &str, body: &str| {
        let sums = "sum (map2 (\\p r -> sum (tabulate 3 (\\di -> sum (tabulate 3 (\\dj -> p[i + di, j + dj] * r[di, dj]))))) img k)";
        let body = body.replace("CONV", &format!("(tabulate_2d h w (\\i j -> {sums}))"));
        let text = format!(
            "entry f [b][ci][co][h][w] (x: [b][ci][h + 2][w + 2]f32) (k: [co][ci][3][3]f32) (z: [co]f32) (y: [b][co][h][w]f32) : {ty} =
               map2 (\\img ys -> {body}) x y"
        );
        elaborated(&text, &SIZES)
    };
    for body in [
        "map2 (\\k z -> map (map (\\v -> max 0 (z + v))) CONV) k z",
        "map3 (\\k z y -> map2 (map2 (\\v y -> max 0 (z + v) * y)) CONV y) k z ys",
        "map2 (\\k z -> map (map (\\v -> if v > z then v else 0)) CONV) k z",
        "let p = map (\\k -> let c = CONV in map (map neg) c) k in map2 (\\p z -> map (map (\\v -> max 0 (z + v))) p) p z",
        "map2 (\\k z -> split w (map (+ z) (flatten CONV))) k z",
        "map2 (\\k z -> transpose (map (map (+ z)) (transpose CONV))) k z",
    ] {
        let program = of("[b][co][h][w]f32", body);
        // With values of rows, or with the elements of a matrix.
        let product = [
            "fork (reduce (+) 0.0 . map (*) . zip . bimap",
            "bimap (reduce (+) 0.0 . map (*) . zip) id",
        ];
        assert!(product.iter().any(|p| becomes(&program, p)), "{body}: {}", forms(&program));
    }
    // What reduces the results goes through them.
    for (ty, body) in [
        ("[b][co][h]f32", "map (\\k -> map sum CONV) k"),
        ("[b]f32", "sum (map (\\k -> sum (map (\\r -> maximum r) (split 2 (flatten CONV)))) k)"),
    ] {
        let program = of(ty, body);
        assert!(becomes(&program, PRODUCT), "{body}: {}", forms(&program));
    }
}

#[test]
fn steps_holes_and_borders() {
    let of = |x: &str, body: &str| {
        let text = format!(
            "entry f [b][ci][co][h][w] (x: {x}) (k: [3][co]f32) (y: [b][ci]f32) : [h][co]f32 =
               tabulate_2d h co (\\i o -> sum (tabulate 3 (\\d -> sum (tabulate ci (\\c -> k[d, o] * {body})))))"
        );
        elaborated(&text, &[("b", 3), ("ci", 4), ("co", 30), ("h", 200), ("w", 34)])
    };
    let steps = of("[ci][2*h + 1]f32", "x[c, 2*i + d]");
    assert!(becomes(&steps, "slide 3 2 h"), "{}", forms(&steps));
    let holes = of("[ci][h + 4]f32", "x[c, i + 2*d]");
    assert!(becomes(&holes, "slide 5 1 h"), "{}", forms(&holes));
    let edges = of("[ci][h + 4]f32", "x[c, min (h + 3) (i + 2*d)]");
    assert!(becomes(&edges, "cross . fork (map join . map (map (map (index"), "{}", forms(&edges));
}

#[test]
fn what_is_no_product_stays() {
    let same = |text: &str| {
        let program = elaborated(text, &SIZES);
        let is_product = |t: &Term| t.to_string().contains("cross");
        assert!(!program.forms().iter().any(is_product), "{}", forms(&program));
    };
    // Each channel has weights of its own.
    same(
        "entry f [ci][h][w] (x: [ci][h + 2][w + 2]f32) (k: [ci][3][3]f32) : [ci][h][w]f32 =
           map2 (\\p k -> tabulate_2d h w (\\i j -> sum (flatten (tabulate_2d 3 3 (\\a b -> p[i + a, j + b] * k[a, b]))))) x k",
    );
    // One filter.
    same(
        "entry f [h][w] (x: [h + 2][w + 2]f32) (k: [3][3]f32) : [h][w]f32 =
           tabulate_2d h w (\\i j -> sum (flatten (tabulate_2d 3 3 (\\a b -> x[i + a, j + b] * k[a, b]))))",
    );
}

/// A sum of sums is one sum, of few results, too, if it is long.
#[test]
fn sums_of_sums_of_few_results() {
    let of = |t: u64, shift: &str, steps: &str| {
        let text = format!(
            "entry f [b][t][s] (x: [b][t][s]f32) (y: [b][t][s]f32) : [s][s]f32 = tabulate_2d s s (\\i j ->
               sum (map (\\q -> sum (map (\\k -> x[q, k, i] * y[q, k{shift}, j]) (iota {steps}))) (iota b)))"
        );
        elaborated(&text, &[("b", 200), ("t", t), ("s", 16)])
    };
    for (shift, steps) in [("", "t"), (" + 1", "(t - 1)")] {
        let program = of(100, shift, steps);
        assert!(becomes(&program, "cross . fork (map join"), "{}", forms(&program));
    }
    let short = of(5, "", "t");
    assert!(!becomes(&short, "cross . fork (map join"), "{}", forms(&short));
}

/// Whether a form that differs from the program by rounding alone is a product of these operands.
fn becomes_relaxed(program: &Program, product: &str) -> bool {
    let has = |t: &Term| t.to_string().contains(product);
    !has(&program.term) && !program.others.iter().any(has) && program.relaxed.iter().any(has)
}

const PRODUCT: &str = "map (map (reduce (+) 0.0 . map (*) . zip)) . cross";

#[test]
fn conditions_of_products_move_into_their_operands() {
    let of = |condition: &str| {
        let text = format!(
            "entry f [n] [m] (A: [m][m]f32) (B: [m][n]f32) : [m][n]f32 =
               tabulate_2d m n (\\i j -> sum (tabulate m (\\k -> if {condition} then A[k, i] * B[k, j] else 0)))"
        );
        elaborated(&text, &[("n", 96), ("m", 128)])
    };
    for condition in ["k > i", "k > i && k < j + 7"] {
        let program = of(condition);
        assert!(becomes_relaxed(&program, PRODUCT), "{}", texts(&program.relaxed));
    }
    // A condition on a row and a column together belongs to neither.
    assert!(!becomes_relaxed(&of("i < j + k"), PRODUCT));
    // In a branch, with a name of its own.
    let text = "entry f [n] (A: [n][n]f32) (B: [n][n]f32) : [n][n]f32 =
        generate n (\\i -> generate n (\\j -> if i < j then 0
          else reduce (+) 0 (generate n (\\k -> if k >= j && k <= i then A[i][k] * B[k][j] else 0))))";
    let branch = elaborated(text, &[("n", 128)]);
    let product = "fork (reduce (+) 0.0 . map (*) . zip . bimap fst fst)";
    assert!(becomes_relaxed(&branch, product), "{}", texts(&branch.relaxed));
}

/// Where the condition keeps an index in its array, the index stays behind the condition.
#[test]
fn conditions_that_guard_another_operand_stay() {
    let of = |condition: &str, b: &str| {
        let text = format!(
            "entry f [n] [m] (A: [n][2*m]f32) (B: [m][n]f32) : [n][n]f32 =
               tabulate_2d n n (\\i j -> sum (tabulate (2*m) (\\k -> if {condition} then A[i, k] * B[{b}, j] else 0)))"
        );
        elaborated(&text, &[("n", 96), ("m", 128)]).relaxed
    };
    assert!(of("k < m", "k").iter().all(|t| !t.to_string().contains(PRODUCT)));
    assert!(of("k < m && k > i", "k").iter().all(|t| !t.to_string().contains(PRODUCT)));
    assert!(of("k > i", "k / 2").iter().any(|t| t.to_string().contains(PRODUCT)));
}

#[test]
fn sums_of_sums_of_products_are_several_products() {
    let of = |element: &str| {
        let text = format!(
            "entry f [n] [m] (A: [n][m]f32) (B: [n][m]f32) : [n][n]f32 =
               tabulate_2d n n (\\i j -> sum (map4 (\\ai bi aj bj -> {element}) A[i] B[i] A[j] B[j]))"
        );
        elaborated(&text, &[("n", 1024), ("m", 128)])
    };
    let two = |p: &Program| p.relaxed.iter().any(|t| t.to_string().matches(PRODUCT).count() == 2);
    let sum = of("aj * bi + bj * ai");
    assert!(two(&sum), "{}", texts(&sum.relaxed));
    assert!(two(&of("ai * aj - bi * bj")));
    // One pass over the same rows is better.
    assert!(of("ai * bi + ai * ai").relaxed.is_empty());
}

#[test]
fn what_goes_through_channels_has_them_in_an_array() {
    let of = |ty: &str, of_channels: &str| {
        let sum = "sum (map2 (\\p r -> sum (tabulate 3 (\\di -> sum (tabulate 3 (\\dj -> p[i + di, j + dj] * r[di, dj]))))) x c)";
        let channels = format!("map (\\c -> {sum}) k");
        let body = of_channels.replace("CHANNELS", &format!("({channels})"));
        let text = format!(
            "entry f [ci][co][h][w] (x: [ci][h + 2][w + 2]f32) (k: [co][ci][3][3]f32) : {ty} =
               tabulate_2d h w (\\i j -> {body})"
        );
        elaborated(&text, &SIZES)
    };
    for (ty, body) in [
        ("[h][w]f32", "maximum CHANNELS"),
        ("[h][w]f32", "let all = CHANNELS in maximum all - minimum all"),
        ("[h][w][co]f32", "let all = CHANNELS let s = sum all in map (\\x -> x / s) all"),
    ] {
        let program = of(ty, body);
        assert!(becomes(&program, PRODUCT), "{body}: {}", forms(&program));
    }
}

#[test]
fn factors_have_one_order() {
    let of = |product: &str| {
        let head = "entry f [n] [m] (A: [n][m]f32) (B: [n][m]f32) : [n][n]f32 =";
        let body = format!("map (\\a -> map (\\b -> sum (map2 (*) {product})) B) A");
        elaborated(&format!("{head} {body}"), &[("n", 64), ("m", 64)]).term
    };
    assert_eq!(of("a b"), of("b a"));
}

#[test]
fn numbers_that_matrix_instructions_convert_stay_narrow() {
    let text = "
        entry f [n][m][k] (x: [n][k]f16) (y: [m][k]f16) : [n][m]f32 =
          map (\\a -> map (\\b -> sum (map2 (\\u v -> f32.f16 u * f32.f16 v) a b)) y) x";
    for form in elaborated(text, &[("n", 64), ("m", 64), ("k", 64)]).forms() {
        let form = form.to_string();
        assert!(form.contains("f32.f16 a * f32.f16 b"), "{form}");
    }
}

/// A read that is tested to lie in its array is one of the array with a border, also behind a counter that is subtracted.
#[test]
fn tested_reads_have_a_border() {
    let of = |place: &str, tests: &str| {
        let text = format!(
            "entry f [b][ci][co][h][w] (x: [b][ci][h][w]f32) (k: [ci][co][3][3]f32) : [b][co][h][w]f32 =
               tabulate b (\\n -> tabulate co (\\o -> tabulate_2d h w (\\i j ->
                 sum (tabulate ci (\\c -> sum (flatten (tabulate_2d 3 3 (\\di dj ->
                   let (y, z) = {place}
                   in if {tests} then x[n, c, y, z] * k[c, o, di, dj] else 0))))))))"
        );
        elaborated(&text, &SIZES)
    };
    let bordered = |p: &Program, other: &str| {
        p.relaxed.iter().any(|t| {
            let text = t.to_string();
            text.contains("padConstant 1 36 0.0")
                && text.contains("slide 3 1 w")
                && text.contains(other)
        })
    };
    let within = "y >= 0 && y < h && z >= 0 && z < w";
    let forward = of("(i + di - 1, j + dj - 1)", within);
    assert!(bordered(&forward, "reduce (+) 0.0 . map (*) . zip"), "{}", texts(&forward.relaxed));
    let backward = of("(i + 1 - di, j + 1 - dj)", within);
    assert!(bordered(&backward, "reverse"), "{}", texts(&backward.relaxed));
    let others = "0 <= y && h > y && -1 < z && z <= w - 1";
    assert!(bordered(&of("(i + di - 1, j + dj - 1)", others), "slide 3 1 h"));
    // A test that leaves out elements of the array, or what may lie outside without a test, is no border.
    for tests in ["y >= 1 && y < h && z >= 0 && z < w", "y >= 0 && y < h && z >= 0"] {
        assert!(!bordered(&of("(i + di - 1, j + dj - 1)", tests), ""), "{tests}");
    }
}
