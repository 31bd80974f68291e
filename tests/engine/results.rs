//! Programs with several results: one kernel computes the results of equal length that read the same data.

use patsat::calculus::elaborate::elaborate;
use patsat::device::cost_model::CostModel;
use patsat::diag::Source;
use patsat::session::generate::Generator;
use patsat::session::{Program, Request, Session, Sizes};
use std::path::Path;

/// Lengths of arrays that no cache of the device holds.
const LENGTHS: [(&str, u64); 3] = [("n", 1 << 24), ("h", 1 << 12), ("w", 1 << 12)];

fn program(text: &str) -> (Program, Sizes) {
    let program = Program::check(&Source::new("program", text), None).expect("a program");
    let of = |n: &String| LENGTHS.iter().find(|(own, _)| own == n).expect("a length").1;
    let sizes = program.entry.sizes.iter().map(|n| (n.clone(), of(n))).collect();
    (program, sizes)
}

/// Returns the number of kernels of the program on an H200, by its cost model.
fn kernels(text: &str) -> usize {
    let (program, sizes) = program(text);
    let mut session = Session::new().expect("a session");
    let model = CostModel::load(Path::new("cost-models/nvidia-h200.toml")).expect("a model");
    session.cost_model = Some(model);
    let request = Request { sizes, default: Some(Generator::Normal), ..Request::default() };
    session.optimize(&program, &request, &mut ()).expect("kernels").best.variant.kernels.len()
}

/// Whether the first form of the program computes its results by one map.
fn is_one_map(text: &str) -> bool {
    let (program, sizes) = program(text);
    let term = elaborate(&program.entry, &sizes).expect("a term").term;
    term.to_string().starts_with("unzip . map")
}

#[test]
fn results_of_the_same_elements_are_one_kernel() {
    for text in [
        "entry gradient [h][w] (a: [h][w]f32) : ([h][w]f32, [h][w]f32) =
           let d = \\r -> map (\\t -> t[2] - t[0]) (slide 3 1 (pad 1 1 clamp r))
           let gx = map d a let gy = transpose (map d (transpose a)) in
           (map2 (map2 (\\x y -> sqrt (x * x + y * y))) gx gy, map2 (map2 atan2) gy gx)",
        "entry kept [h][w] (a: [h][w]f32) (b: [h][w]f32) : ([h][w]f32, [h][w]f32) =
           let s = map2 (map2 (+)) a (map (map exp) (map (rotate 1) b)) in (map (map (* 2)) s, s)",
        "entry pairs [n] (a: [n]f32) (b: [n]f32) : ([n]f32, [n]f32) =
           let (p, q) = unzip (map2 (\\x y -> (x + y, x * y)) a b) in (map2 (+) p q, map2 (*) (rotate 1 p) q)",
        "entry adam [n] (p: [n]f32) (g: [n]f32) (m: [n]f32) (v: [n]f32) : ([n]f32, [n]f32, [n]f32) =
           let m1 = map2 (\\m g -> 0.9 * m + 0.1 * g) m g
           let v1 = map2 (\\v g -> 0.99 * v + 0.01 * g * g) v g
           let scaled = map2 (\\m v -> m / (sqrt v + 0.001)) m1 v1 in
           (map2 (\\p s -> p - 0.01 * s) p scaled, m1, v1)",
        "entry itself [n] (a: [n]f32) : ([n]f32, [n]f32) = (a, map sqrt a)",
        "entry views [h][w] (a: [h][w]f32) : ([h*w]f32, [h*w]f32) =
           (flatten (map (map sqrt) a), map exp (flatten a))",
    ] {
        assert_eq!(kernels(text), 1, "{text}");
    }
}

#[test]
fn results_of_the_same_rows_are_one_kernel() {
    for text in [
        "entry centred [h][w] (a: [h][w]f32) : ([h]f32, [h][w]f32) =
           let mean = \\r -> reduce (+) 0 r / f32.i64 w
           let means = map mean a in (means, map2 (\\r m -> map (\\x -> x - m) r) a means)",
        "entry ranges [h][w] (a: [h][w]f32) : ([h]f32, [h]f32, [h][w]f32) =
           let low = map (reduce min f32.inf) a let high = map (reduce max (-f32.inf)) a in
           (low, high, map3 (\\r l h -> map (\\x -> (x - l) / (h - l)) r) a low high)",
    ] {
        assert_eq!(kernels(text), 1, "{text}");
    }
}

#[test]
fn results_that_share_nothing_stay_apart() {
    let apart =
        "entry apart [n] (a: [n]f32) (b: [n]f32) : ([n]f32, [n]f32) = (map sqrt a, map exp b)";
    assert!(!is_one_map(apart));
    assert!(is_one_map(&apart.replace("exp b", "exp a")));
}

#[test]
fn what_is_stored_in_any_case_is_not_copied() {
    let copied = |f: &str| {
        is_one_map(&format!(
            "entry kept [n] (a: [n]f32) : ([n]f32, [n]f32) = let s = {f} in (map sqrt s, s)"
        ))
    };
    assert!(copied("map exp a"));
    assert!(!copied("sort a"));
    assert!(!copied("loop s = a for i < 100 do map2 (+) s (rotate 1 s)"));
}

#[test]
fn names_that_results_read_in_another_order_stay() {
    let text = "entry kept [n] (a: [n]f32) (b: [n]f32) : ([n]f32, [n]f32, [n]f32, [n]f32) =
        let (s, t) = unzip (map2 (\\x y -> (x + y, x * y)) a b) in (s, map2 (-) (rotate 1 s) t, a, t)";
    assert!(!is_one_map(text));
}
