//! The forms in which a program enters the e-graph.

use patsat::calculus::elaborate::elaborate;
use patsat::calculus::term::{MapKind, Op, Term};
use patsat::diag::Source;
use patsat::session::{Program, Sizes};

/// Returns the forms of a program for these sizes.
fn forms(text: &str, sizes: &[(&str, u64)]) -> Vec<Term> {
    let program = Program::check(&Source::new("program", text), None).expect("a program");
    let sizes: Sizes = sizes.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect();
    elaborate(&program.entry, &sizes).expect("a term").forms()
}

/// Whether each form has this word.
fn with(word: &str, forms: &[Term]) -> Vec<bool> {
    forms.iter().map(|f| f.to_string().contains(word)).collect()
}

#[test]
fn few_elements_are_compared_with_each_other() {
    let sorted =
        |n| with("countingSort", &forms("entry s [n] (xs: [n]f32) = sort xs", &[("n", n)]));
    assert_eq!(sorted(32).first(), Some(&false));
    let both = sorted(33);
    assert_eq!(both.first(), Some(&true));
    assert!(both.contains(&false));
    assert!(!sorted(4097).contains(&false));
}

#[test]
fn columns_of_small_matrices_are_choices() {
    let text = "entry c [b][k] (A: [b][k][k]f32) = map (\\X ->
        loop L = X for j < k do L with [:, j] <- map (\\x -> x / 2) L[j]) A";
    let scattered = |k| with("scatter", &forms(text, &[("b", 4), ("k", k)]));
    assert!(!scattered(5).contains(&true));
    let both = scattered(6);
    assert_eq!(both.first(), Some(&true));
    assert!(both.contains(&false));
    assert!(!scattered(65).contains(&false));
}

const PRODUCTS: &str = "entry p [b][n][d] (K: [b][n][d]f32) (V: [b][n][d]f32) : [b][d][d]f32 =
    map2 (\\k v -> map (\\x -> map (\\y -> sum (map2 (*) x y)) (transpose (map (map exp) k))) (transpose v)) K V";

#[test]
fn operands_of_products_of_a_batch_are_computed_before() {
    let all = forms(PRODUCTS, &[("b", 4), ("n", 512), ("d", 64)]);
    let products = |f: &Term| {
        let text = f.to_string();
        text.contains("reduce") && text.contains("exp")
    };
    // No factor of the program computes operands and their products.
    let mixed = all[0].chain().into_iter().filter(|f| f.args().len() == 1).any(|f| products(&f));
    assert!(!mixed, "{}", all[0]);
}

#[test]
fn parts_of_the_long_products_of_a_batch_are_one_batch() {
    let of = |n| with("split n_parts", &forms(PRODUCTS, &[("b", 4), ("n", n), ("d", 64)]));
    assert!(of(4096).contains(&true));
    assert!(!of(64).contains(&true));
}

#[test]
fn loops_of_long_states_move_out_of_maps() {
    let text = "entry l [b] [n] (xs: [b][n]f32) : [b][n]f32 = map (\\x ->
        loop u = x for i < 5 do map2 (+) u (rotate 1 u)) xs";
    let outside = |n| {
        let all = forms(text, &[("b", 4), ("n", n)]);
        all.iter().filter(|f| f.to_string().starts_with("foldSeq (map (")).count()
    };
    assert_eq!(outside(1023), 0);
    assert_eq!(outside(1024), 1);
}

#[test]
fn long_rows_are_computed_again() {
    let text = "entry a [b] [n] (xs: [b][n]f32) : [b][n]f32 = map (\\x ->
        let f = map sqrt x in map2 (+) f (rotate 1 f)) xs";
    let roots = |n| -> Vec<usize> {
        let all = forms(text, &[("b", 4), ("n", n)]);
        all.iter().map(|f| f.to_string().matches("sqrt").count()).collect()
    };
    // The element of a rotated array is a function of its place in short rows, too.
    assert_eq!(roots(4095), [1, 2]);
    assert_eq!(roots(4096), [1, 2, 2]);
}

#[test]
fn irregular_operations_of_long_rows_move_out_of_maps() {
    let outside = |text, word: &str, n| {
        let all = forms(text, &[("b", 4), ("n", n)]);
        all.iter().filter(|f| f.to_string().starts_with(word)).count()
    };
    let scatter =
        "entry s [b] [n] (xs: [b][n]f32) (is: [b][n]i32) = map2 (\\x i -> scatter x i x) xs is";
    assert_eq!(outside(scatter, "split n . scatter", 4095), 0);
    assert_eq!(outside(scatter, "split n . scatter", 4096), 1);
    let bins =
        "entry h [b] [n] (is: [b][n]i32) = map (\\i -> histogram (+) 0 n i (replicate n 1)) is";
    assert_eq!(outside(bins, "split n . histogram (b*n)", 4095), 0);
    assert_eq!(outside(bins, "split n . histogram (b*n)", 4096), 1);
    // What may fail on one side of a choice has other operands where that side is not chosen.
    let chosen = "entry c [b] [n] (ks: [b]i32) (xs: [b][n]f32) (is: [b][n]i32) =
        map3 (\\k x i -> if k == 0 then x else scatter x i (map (\\j -> x[j / k]) i)) ks xs is";
    let moved = |n| with("split n . scatter", &forms(chosen, &[("b", 4), ("n", n)]));
    assert!(!moved(4095).contains(&true));
    assert!(moved(4096).contains(&true));
}

#[test]
fn rows_that_stay_are_not_copied_by_a_map() {
    let text = "entry u [b] [n] (xs: [b][n]f32) : [b][n]f32 = map (\\x ->
        (loop (x, k) = (x, 0) for j < 3 do (x with [argmax x] <- 0, k + 1)).0) xs";
    let all = forms(text, &[("b", 4), ("n", 8192)]);
    let flat: Vec<String> =
        all.iter().map(Term::to_string).filter(|f| f.contains("split n . scatter")).collect();
    assert!(!flat.is_empty());
    assert!(flat.iter().all(|f| f.contains("zip . fork xs (replicate b . 0)")), "{flat:?}");
}

#[test]
fn contractions_side_by_side_are_products_of_their_own() {
    let text =
        "entry g [t] [c] (x: [t + 2][c]f32) (A: [c][3][c]f32) (B: [c][3][c]f32) : [t][c]f32 =
        let dot w k = sum (map2 (\\xs ks -> sum (map2 (*) xs ks)) w k)
        in map (\\w -> map2 (\\a b -> dot w a * exp (dot w b)) A B) (slide 3 1 x)";
    let crosses = |f: &Term| f.to_string().matches("cross").count();
    let all = forms(text, &[("t", 256), ("c", 64)]);
    assert!(all.iter().any(|f| crosses(f) == 2));
}

#[test]
fn long_products_with_a_factor_of_the_row_are_cut() {
    let text = "entry k [n] [d] (X: [n][d]f32) (w: [d]f32) : [d][d]f32 =
        map2 (\\a s -> map (\\b -> s * sum (map2 (*) a b)) (transpose X)) (transpose X) w";
    let cut = with("split n_part", &forms(text, &[("n", 65536), ("d", 64)]));
    assert!(cut.contains(&true));
}

/// Rows of elements behind products are computed for each use, also if their parts have several.
#[test]
fn gates_behind_products_are_elements() {
    let text = "entry g [b][n][d] (x: [b][d]f32) (h: [b][n]f32) (W: [2*n][d]f32) (bias: [2*n]f32) : [b][n]f32 =
        map2 (\\xs hs -> let z = map2 (\\w c -> sum (map2 (*) w xs) + c) W bias
            in map3 (\\u a c -> u * a + tanh c) hs z[:n] z[n:]) x h";
    let all = forms(text, &[("b", 512), ("n", 128), ("d", 64)]);
    let products = |f: &&Term| f.to_string().contains("map (map (reduce");
    let apart = all.iter().find(products).expect("a form with a product").to_string();
    assert_eq!(apart.matches("bias").count(), 2, "{apart}");
}

#[test]
fn tables_with_loops_are_computed_once() {
    let text = "entry t [n][m] (xs: [n][m]u8) : [n]u32 =
        let table = generate 256 (\\i -> loop c = u32.i32 i for k < 8 do c ^ (c << 1))
        in map (\\r -> loop c = 7u32 for x in r do table[(c ^ u32.u8 x) & 0xff] ^ c) xs";
    let all = forms(text, &[("n", 1024), ("m", 64)]);
    let text = all[0].to_string();
    let (rows, table) = text.split_once(". fork (map").expect("a table beside the rows");
    assert!(table.contains("loop") && !rows.contains("loop"), "{text}");
}

#[test]
fn choices_see_through_names() {
    let text = "entry c [n][m] (xs: [n][m]f32) (ks: [n]i32) (ys: [n][m]f32) : [n][m]f32 =
        map3 (\\x k y -> if k > 0 then map (/ f32.i32 k) x else y) xs ks ys";
    // Elements are chosen, not rows.
    let first = forms(text, &[("n", 64), ("m", 64)])[0].to_string();
    assert!(first.starts_with("map (map (") && first.contains("-> if a > 0 then "), "{first}");
    assert!(!first.contains("cond"), "{first}");
}

#[test]
fn outer_maps_of_deep_nests_are_one() {
    let text = "entry d [n][c][h][w] (x: [n][c][h][w]f32) (k: [c]f32) : [n][c][h][w]f32 =
        map (\\image -> map2 (\\plane a -> map (\\row -> map (\\s -> a * sum s) (slide 3 1 (pad 1 1 0 row))) plane) image k) x";
    let sizes = [("n", 4), ("c", 8), ("h", 16), ("w", 16)];
    let deep = with("split c . map (map (map", &forms(text, &sizes));
    assert!(deep.contains(&true) && deep.first() == Some(&false), "{deep:?}");
}

/// Calls of one definition with the same arguments are one, wherever they stand.
#[test]
fn what_is_computed_twice_is_computed_once() {
    let text = "def mean [n] (xs: [n]f32) : f32 = sum xs / f32.i32 n
        def var [n] (xs: [n]f32) : f32 = mean (map (\\x -> (x - mean xs) * (x - mean xs)) xs)
        entry z [n] (xs: [n]f32) : [n]f32 = map (\\x -> (x - mean xs) / sqrt (var xs)) xs";
    let all = forms(text, &[("n", 1 << 20)]);
    assert_eq!(all[0].to_string().matches("reduce").count(), 2, "{}", all[0]);
    let text = "def last [n] (xs: [n]f32) : f32 = loop a = 0 for x in xs do 0.5 * a + x
        entry twice [n] (xs: [n]f32) (b: f32) : f32 =
            let c = last xs in if b > 0 then c * last (reverse xs) else c - last xs";
    let all = forms(text, &[("n", 64)]);
    assert_eq!(all[0].to_string().matches("0.5").count(), 2, "{}", all[0]);
}

#[test]
fn stencils_of_stencils_are_functions_of_the_place() {
    let text = "entry s [n][m] (u: [n+2][m]f32) : [n][m]f32 =
        let d = map2 (map2 (-)) u[1:] u[:n+1] in map2 (map2 (-)) d[1:] d[:n]";
    let all = forms(text, &[("n", 60), ("m", 40)]);
    // Each element reads three places, of which one is read twice.
    let reads = |f: &Term| f.to_string().matches("fork u").count();
    assert_eq!(reads(&all[0]), 0, "{}", all[0]);
    assert!(all.iter().any(|f| reads(f) >= 3), "{}", all[all.len() - 1]);
    // An array whose elements meet in order is fused by rules.
    let text = "entry s [n][m] (u: [n][m]f32) : [n][m]f32 =
        let d = map (map abs) u in map2 (map2 (-)) d d";
    assert_eq!(with("iota", &forms(text, &[("n", 60), ("m", 40)])), [false; 1]);
}

#[test]
fn rotated_arrays_are_functions_of_the_place() {
    let text = "entry s [n][m] (u: [n][m]f32) : [n][m]f32 =
        let left = map (rotate (-1)) u
        let sum = map2 (map2 (+)) left u
        in map2 (map2 (*)) (rotate 1 sum) (rotate (-2) sum)";
    let all = forms(text, &[("n", 60), ("m", 40)]);
    let rotates = |f: &Term| f.to_string().contains("rotate");
    assert!(rotates(&all[0]) && all.iter().any(|f| !rotates(f)), "{all:?}");
}

/// Work-items share out all dimensions of a nest whose maps compute scalars in front of the inner ones.
#[test]
fn scalars_between_the_maps_of_a_deep_nest_are_in_its_elements() {
    let text =
        "entry s [n][c][h][w] (x: [c][h][w]f32) (b: [n][2]f32) : [n][c][h][w]f32 = map (\\k ->
        let s = k[1] - k[0] in map (\\p -> map (\\r -> map (\\v -> v * s + k[0]) r) p) x) b";
    let all = forms(text, &[("n", 16), ("c", 8), ("h", 64), ("w", 64)]);
    fn is_nest(f: &Term, depth: usize) -> bool {
        depth == 0 || *f.op() == Op::Map(MapKind::Plain) && is_nest(&f.args()[0], depth - 1)
    }
    let nest = |f: &Term| is_nest(&f.chain()[0], 4);
    assert!(!nest(&all[0]) && all.iter().any(nest), "{all:?}");
}

#[test]
fn what_would_be_computed_at_many_places_is_stored() {
    // The elements of five stencils, one of another, would read 3^5 places.
    let text = "entry s [n] (u: [n+10]f32) : [n]f32 =
        let sum a b c : f32 = a + b + c
        let a = map3 sum u[2:] u[1:n+9] u[:n+8]
        let b = map3 sum a[2:] a[1:n+7] a[:n+6]
        let c = map3 sum b[2:] b[1:n+5] b[:n+4]
        let d = map3 sum c[2:] c[1:n+3] c[:n+2]
        in map3 sum d[2:] d[1:n+1] d[:n]";
    let all = forms(text, &[("n", 1000)]);
    let reads = |f: &Term| f.to_string().matches("index").count();
    assert!(all.iter().any(|f| reads(f) > 9), "{all:?}");
    assert!(all.iter().all(|f| reads(f) <= 2 * 64), "{all:?}");
}

const WEIGHTS: &str = "entry w [m][o][g] (x: [m][8*g]f32) (packed: [o][g]u32) (scale: [o]f32) : [m][o]f32 =
    let W = map2 (\\row s -> flatten (map (\\w -> map (\\k -> s * f32.u32 ((w >> u32.i32 (4 * k)) & 15)) (iota 8)) row)) packed scale
    in map (\\a -> map (\\b -> sum (map2 (*) a b)) W) x";

#[test]
fn operands_that_meet_few_rows_are_computed_where_they_are_read() {
    let read = |m| with("onRead (map", &forms(WEIGHTS, &[("m", m), ("o", 1024), ("g", 512)]));
    let few = read(16);
    assert!(few.contains(&true) && few.first() == Some(&false), "{few:?}");
    assert!(!read(1024).contains(&true));
    // The parts of long rows are read in the same way.
    let all = forms(WEIGHTS, &[("m", 16), ("o", 1024), ("g", 512)]);
    let both = |f: &Term| {
        let text = f.to_string();
        text.contains("onRead") && text.contains("parts")
    };
    assert!(all.iter().any(both));
}

#[test]
fn factors_of_the_sums_of_groups_are_in_the_sums() {
    let text =
        "entry g [m][o][g] (x: [m][32*g]f32) (w: [o][g][32]i8) (scale: [o][g]f32) : [m][o]f32 =
        map (\\a -> map2 (\\b r -> sum (map3 (\\p q s -> s * sum (map2 (\\y z -> y * f32.i8 z) p q))
            (split 32 a) b r)) w scale) x";
    let program = Program::check(&Source::new("program", text), None).expect("a program");
    let sizes = [("m", 16), ("o", 256), ("g", 16)];
    let sizes: Sizes = sizes.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect();
    let program = elaborate(&program.entry, &sizes).expect("a term");
    let sums = |f: &Term| f.to_string().matches("reduce").count();
    assert!(program.forms().iter().all(|f| sums(f) >= 2));
    assert!(program.relaxed.iter().any(|f| sums(f) == 1));
}

#[test]
fn what_is_computed_of_the_sums_of_a_group_is_in_one_sum() {
    let of = |text: &str| {
        let program = Program::check(&Source::new("program", text), None).expect("a program");
        let sizes = [("n", 256), ("k", 16)];
        let sizes: Sizes = sizes.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect();
        let program = elaborate(&program.entry, &sizes).expect("a term");
        let one = |f: &Term| f.to_string().matches("reduce").count() == 1;
        (program.forms().iter().any(one), program.relaxed.iter().any(one))
    };
    assert_eq!(of(include_str!("../relaxed/few_bits.pat")), (false, true));
    // The exponential of a sum is no sum.
    let text = "entry f [n][k] (w: [n][k][8]f32) (s: [n][k]f32) : [n]f32 =
        map2 (\\wr sr -> sum (map2 (\\wg sc -> sc * exp (sum wg) + sum (map (* 2) wg)) wr sr)) w s";
    assert_eq!(of(text), (false, false));
}

#[test]
fn pixels_with_channels_are_functions_of_the_place() {
    let text = include_str!("../total/pixels_of_channels.pat");
    let all = forms(text, &[("h", 400), ("w", 600)]);
    let whole = |f: &Term| {
        let text = f.to_string();
        !text.contains("pad") && !text.contains("reduce")
    };
    assert!(all.iter().any(whole), "{}", all[all.len() - 1]);
}

#[test]
fn steps_of_loops_have_tables() {
    let text = include_str!("../total/tables_of_steps.pat");
    // With many rows, cosines and sines of all steps are in front of the map, each in a nest over the steps and the places.
    let nests = |b| forms(text, &[("b", b), ("h", 512)])[0].to_string().matches("iota 10 ").count();
    assert_eq!((nests(256), nests(8)), (3, 1));
}

#[test]
fn factorisations_of_a_batch_are_a_stage() {
    let text = include_str!("../total/ridge_of_batch.pat");
    let forms = |n| forms(text, &[("batch", 1000), ("m", 32), ("n", n)]).len();
    // A work-item holds a small matrix in registers.
    assert!(forms(16) > forms(4));
}

#[test]
fn groups_are_a_stage_before_what_is_done_with_all() {
    let text = include_str!("../total/groups_of_channels.pat");
    let stored = |h| {
        let sizes = [("n", 64), ("g", 8), ("k", 8), ("h", h), ("w", 64)];
        let stored = with("toGlobal", &forms(text, &sizes));
        stored.into_iter().filter(|is_stored| *is_stored).count()
    };
    // In one form, the scalars of all groups are stored. Large images have another one, in which a stage gives the groups.
    assert_eq!((stored(1), stored(64)), (1, 2));
}

#[test]
fn long_columns_of_batches_are_in_parts() {
    let text =
        "entry c [a][b][c] (x: [a][b][c]f32) : [a][c]f32 = map (\\m -> map sum (transpose m)) x";
    let of = |text, b| forms(text, &[("a", 4), ("b", b), ("c", 32)]);
    let parts = |b| with("split b_part", &of(text, b)).contains(&true);
    assert!(parts(4096) && !parts(128));
    // What lies behind the end of a column is neutral.
    assert!(!with("mask", &of(text, 4096)).contains(&true));
    assert!(with("mask", &of(text, 4099)).contains(&true));
    // Rules cut columns outside of maps, and rows.
    let columns = "entry c [a][b][c] (x: [b][c]f32) (y: [a]f32) : [c]f32 = map sum (transpose x)";
    let rows = "entry c [a][b][c] (x: [a][c][b]f32) : [a][c]f32 = map (map sum) x";
    assert!(![columns, rows].iter().any(|text| with("b_part", &of(text, 4096)).contains(&true)));
}

#[test]
fn scalars_of_few_long_rows_are_arrays() {
    let text = "entry r [n][m] (x: [n][m]f32) : [n][m]f32 =
        map (\\r -> let s = sum r let v = sum (map (\\e -> (e - s) ** 2) r) in map (\\e -> (e - s) * rsqrt v) r) x";
    // The sum is computed once, and the deviation with its sum.
    let stored = |n, m| {
        let twice = |f: &String| f.contains("toGlobal") && f.matches("reduce").count() == 2;
        let forms = forms(text, &[("n", n), ("m", m)]);
        forms.iter().map(Term::to_string).any(|f| twice(&f))
    };
    assert!(stored(16, 1 << 20) && !stored(4096, 1 << 20) && !stored(16, 1000));
}

#[test]
fn rows_that_products_read_are_arrays() {
    let text = "def linear W x = map (\\row -> sum (map2 (*) row x)) W
        entry layers [t][d][f] (xs: [t][d]f32) (g: [d]f32) (A: [f][d]f32) (B: [f][d]f32) (C: [d][f]f32) =
          map (\\x ->
            let r = rsqrt (sum (map (\\v -> v * v) x))
            let n = map2 (\\v w -> v * r * w) x g
            in map2 (+) x (linear C (map2 (*) (linear A n) (linear B n)))) xs";
    let most = |t| {
        let all = forms(text, &[("t", t), ("d", 64), ("f", 128)]);
        // A product of matrices, each in a nest of its own.
        let product = "map (map (reduce (+) 0.0 . map (*) . zip)) . cross";
        all.iter().map(|f| f.to_string().matches(product).count()).max()
    };
    assert_eq!(most(16), Some(0));
    assert_eq!(most(2048), Some(3));
}

/// Few rows are the columns of a product: tiles of matrix instructions have fewer of these.
#[test]
fn products_of_a_few_rows_are_turned() {
    let text = "entry p [n][k][m] (x: [n][k]f32) (w: [k][m]f32) : [n][m]f32 =
        map (\\r -> map (\\c -> sum (map2 (*) r c)) (transpose w)) x";
    let turned = |n, k| {
        let all = forms(text, &[("n", n), ("k", k), ("m", 4096)]);
        with("cross . fork (transpose . w) x", &all).contains(&true)
    };
    assert!(turned(2, 256) && turned(8, 256));
    assert!(!turned(1, 256) && !turned(9, 256) && !turned(4, 16));
    // Long rows are summed in parts.
    let all = forms(text, &[("n", 4), ("k", 8192), ("m", 4096)]);
    let parts = |f: &Term| {
        let text = f.to_string();
        text.starts_with("transpose") && text.contains("split k_part")
    };
    assert!(all.iter().any(parts));
}

/// Rows that share a matrix are the rows of a product with it.
#[test]
fn rows_that_share_a_matrix_stand_together() {
    let text = "entry p [h][g][t][d] (q: [h*g][d]f32) (K: [h][t][d]f32) : [h*g][t]f32 =
        map2 (\\i r -> map (\\k -> exp (sum (map2 (*) r k))) K[i / g]) (iota (h * g)) q";
    let all = forms(text, &[("h", 64), ("g", 4), ("t", 512), ("d", 64)]);
    assert_eq!(with("replicate", &all).first(), Some(&true));
    assert!(with("replicate", &all).contains(&false));
}

/// Short reductions of elements at places are written out.
#[test]
fn pools_of_axes_are_one_nest() {
    let text = "entry p [h][w] (x: [h][w]f32) : [(h - 2)/2 + 1][(w - 2)/2 + 1]f32 =
        let rows = map (\\r -> map maximum (slide 2 2 r)) x
        in transpose (map (\\c -> map maximum (slide 2 2 c)) (transpose rows))";
    let all = forms(text, &[("h", 64), ("w", 64)]);
    assert_eq!(with("reduce", &all).first(), Some(&true));
    assert!(with("reduce", &all).contains(&false));
}

#[test]
fn products_of_the_inputs_of_a_loop_are_in_front_of_it() {
    let text = "entry r [t][b][i][h] (xs: [t][b][i]f32) (Wx: [h][i]f32) (Wh: [h][h]f32) : [b][h]f32 =
        loop hs = replicate b (replicate h 0f32) for x in xs do
          map2 (\\xv hv -> map2 (+) (map (\\w -> sum (map2 (*) w xv)) Wx) (map (\\w -> sum (map2 (*) w hv)) Wh)) x hs";
    let all = forms(text, &[("t", 8), ("b", 64), ("i", 256), ("h", 512)]);
    // The loop has one product, and what stands in front of it the other.
    let ahead = |f: &Term| {
        let text = f.to_string();
        let (step, before) = text.split_once(" . fork (replicate").unwrap_or_default();
        step.matches("reduce (+)").count() == 1 && before.contains("reduce (+)")
    };
    assert!(all.iter().any(ahead), "{all:?}");
}

#[test]
fn loops_compute_the_elements_that_they_go_through() {
    let text = "entry f [q][n] (D: [q][n]f32) (c: [n]f32) : [q][3]f32 = map (\\d ->
        loop s = replicate 3 0 for x in map2 (\\x c -> c - 2 * x) d c do s with [abs (i32.f32 x) % 3] <- x) D";
    let all = forms(text, &[("q", 4), ("n", 512)]);
    assert!(!with("map (map (", &all).contains(&true), "{}", all[0]);
}

#[test]
fn the_first_state_of_a_loop_is_not_stored() {
    let text = "entry c [b] [n] (m: [b][n][n]f32) (y: [b][n]f32) : [b][n]f32 = map2 (\\a y ->
        let l = loop l = replicate n (replicate n 0) for j < n do
          l with [:, j] <- generate n (\\i -> a[i, j] - sum (map2 (*) l[i] l[j]))
        in loop z = replicate n 0 for i < n do z with [i] <- (y[i] - sum (map2 (*) l[i] z)) / l[i, i]) m y";
    let all = forms(text, &[("b", 1000), ("n", 16)]);
    let stages = |f: &&Term| f.to_string().matches("map (foldSeq").count() > 1;
    let apart: Vec<&Term> = all.iter().filter(stages).collect();
    assert!(!apart.is_empty(), "{all:#?}");
    assert!(!apart.iter().any(|f| f.to_string().contains("map (replicate")), "{apart:#?}");
}

#[test]
fn quadratic_forms_are_products_of_computed_rows() {
    let text = "entry q [n][d][k] (xs: [n][d]f32) (means: [k][d]f32) (P: [d][d]f32) : [n]i32 =
        map (\\x -> argmin (map (\\m ->
            let v = map2 (-) x m
            in sum (map2 (*) v (map (\\row -> sum (map2 (*) row v)) P))) means)) xs";
    let has = |n| {
        let product = "split k . map (map (reduce (+) 0.0 . map (*) . zip)) . cross";
        let all = forms(text, &[("n", n), ("d", 64), ("k", 16)]);
        with(product, &all).contains(&true)
    };
    assert!(has(4096) && !has(16));
}

#[test]
fn short_vectors_of_few_long_rows_are_arrays() {
    let text = "def linear W x = map (\\row -> sum (map2 (*) row x)) W
        entry g [b][c][r][p] (x: [b][c][p]f32) (V: [r][c]f32) (W: [c][r]f32) : [b][c][p]f32 =
          map (\\i -> let s = map sum i |> linear V |> map (max 0) |> linear W
            in map2 (\\g row -> map (* g) row) s i) x";
    let most = |b, p| {
        let all = forms(text, &[("b", b), ("c", 64), ("r", 8), ("p", p)]);
        all.iter().map(|f| f.to_string().matches("toGlobal (map").count()).max()
    };
    // Each layer is a stage.
    assert_eq!(most(32, 4096), Some(3));
    assert!(most(32, 64) < Some(3) && most(4096, 4096) < Some(3));
}

#[test]
fn each_of_many_sums_of_few_long_rows_is_a_stage() {
    let text = "entry s [n][m] (x: [n][m]f32) (y: [m]f32) : [n]f32 = map (\\r ->
        sum r / sum (map2 (*) r y) + maximum r / (1 + sum (map2 (\\a b -> abs (a - b)) r y))) x";
    let stages = |n, m| {
        let all = forms(text, &[("n", n), ("m", m)]);
        all.iter().map(|f| f.to_string().matches("toGlobal (map").count()).max()
    };
    assert_eq!(stages(8, 1 << 20), Some(4));
    assert_eq!(stages(8, 1 << 10), Some(0));
}

#[test]
fn cheap_matrices_are_computed_where_they_are_read() {
    let text = "entry c [n][m] (x: [n][m]f16) : ([n]f32, [m]f32) =
        let y = map (map f32.f16) x in (map sum y, map sum (transpose y))";
    let conversions: Vec<usize> = forms(text, &[("n", 100), ("m", 200)])
        .iter()
        .map(|f| f.to_string().matches("f32.f16").count())
        .collect();
    assert_eq!(conversions.first(), Some(&1));
    assert!(conversions.contains(&2), "{conversions:?}");
}
