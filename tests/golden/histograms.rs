//! Histograms as a GPU computes them: in bins of each group, beside other results, and of rows.

use crate::check::{Kernels, array, cpu, kernels};

/// The sums of values by bin, in local memory of each group, whose bins another kernel combines.
fn sums(n: u64) -> Kernels {
    let program = "entry sums [n] (xs: [n]f32) : [7]f32 =
        histogram (+) 0 7 (map (\\x -> i32.f32 x) xs) xs";
    let term = "histogram 7 (+) 0.0 . fork (mapGlb 0 (\\x -> i32.f32 x)) id . xs";
    kernels(program, &[("n", n)], &[("xs", array(&[n]))], term)
}

#[test]
fn groups_have_bins_of_their_own() {
    let rt = cpu();
    for n in [1, 3, 256, 5003, 70_001] {
        let k = sums(n);
        k.run(&rt);
        if n < 10_000 {
            k.grind();
        }
        assert!(k.plan.source.contains("float_add_local"), "{}", k.plan.source);
        // A single group has nothing to combine.
        let many = n > 256;
        assert_eq!(k.plan.source.contains("float_add_global"), !many, "{}", k.plan.source);
    }
}

/// A histogram beside another result has kernels of its own: no single work-item goes through all values.
#[test]
fn a_histogram_beside_another_result_is_parallel() {
    let (n, rt) = (5003, cpu());
    let program = "entry both [n] (xs: [n]f32) : ([7]f32, [n]f32) =
        let ys = map (* 2) xs in (histogram (+) 0 7 (map (\\x -> i32.f32 x) ys) ys, ys)";
    let ys = "mapGlb 0 (\\x -> x * 2.0)";
    let term = format!(
        "fork (histogram 7 (+) 0.0 . fork (mapGlb 0 (\\x -> i32.f32 x)) id) id . {ys} . xs"
    );
    let k = kernels(program, &[("n", n)], &[("xs", array(&[n]))], &term);
    k.run(&rt);
    k.grind();
    assert!(k.plan.launches.iter().all(|l| l.global != [1; 3]), "{}", k.plan.source);
    assert!(k.plan.source.contains("float_add_local"), "{}", k.plan.source);
}
