//! Histograms as a GPU computes them: in bins of each group, beside other results, and of rows.

use crate::check::{Kernels, array, cpu, kernels, kernels_for};
use patsat::kernel::DeviceLimits;

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
        // Only what all groups share is worth combining in a warp.
        assert_eq!(k.plan.source.contains("run_starts"), !many, "{}", k.plan.source);
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

/// Numbers of rows and their lengths: shorter than a group, equally long, several rounds.
const ROWS: &[[u64; 2]] =
    &[[3, 1], [2, 7], [5, 16], [3, 64], [2, 100], [3, 256], [2, 1000], [1, 1028]];

/// Values of each row by bin: with atomic operations on floats and on integers, and by one work-item for an operator that has
/// no atomic operation. The work-items of the group read the bins of others.
fn counted(n: u64, m: u64) -> Vec<Kernels> {
    let ones = format!("(replicate {m} . 1 . bang)");
    let operators = [
        ("f32", "(+)", "0.0", "r", "id"),
        ("f32", "max", "0.0", "r", "id"),
        ("f32", "(*)", "1.0", "r", "id"),
        ("i32", "(+)", "0", "(replicate m 1)", &ones),
    ];
    let kernel = |(t, op, z, values, of_row): &(&str, &str, &str, &str, &str)| {
        let program = format!(
            "entry counted [n][m] (xs: [n][m]f32) : [n][16]{t} =
               map (\\r -> let h = histogram {op} {z} 16 (map i32.f32 r) {values} in map2 (+) h (reverse h)) xs"
        );
        let row = format!(
            "mapLcl 0 (+) . zip . fork id reverse . histogram 16 {op} {z} . fork (mapLcl 0 (\\x -> i32.f32 x)) {of_row}"
        );
        let term = format!("mapWrg 0 ({row}) . xs");
        kernels(&program, &[("n", n), ("m", m)], &[("xs", array(&[n, m]))], &term)
    };
    operators.iter().map(kernel).collect()
}

#[test]
fn groups_combine_by_bin() {
    let rt = cpu();
    ROWS.iter().flat_map(|[n, m]| counted(*n, *m)).for_each(|k| k.run(&rt));
}

#[test]
fn oclgrind_finds_nothing_where_groups_combine_by_bin() {
    ROWS[..6].iter().flat_map(|[n, m]| counted(*n, *m)).for_each(|k| k.grind());
}

/// Counts and sums of 64 bits are combined by atomic operations where the device has them, in local memory or not.
#[test]
fn bins_of_64_bits_are_shared() {
    let rt = cpu();
    for (t, op, z, value) in [
        ("i64", "(+)", "0", "i64.f32 x"),
        ("u64", "max", "0", "u64.f32 x"),
        ("i64", "min", "100", "i64.f32 x"),
        ("f64", "(+)", "0.0", "f64.f32 x"),
        ("f64", "min", "100.0", "f64.f32 x"),
    ] {
        for (m, n) in [(7, 5003), (9000, 300)] {
            let z = format!("{z}{t}");
            let program = format!(
                "entry sums [n] (xs: [n]f32) : [{m}]{t} =
                 histogram {op} {z} {m} (map (\\x -> i32.f32 x) xs) (map (\\x -> {value}) xs)"
            );
            let term = format!(
                "histogram {m} {op} {z} . fork (mapGlb 0 (\\x -> i32.f32 x)) (mapGlb 0 (\\x -> {value})) . xs"
            );
            let limits = DeviceLimits::default();
            let device = DeviceLimits { access_bytes: 16, atomics_64: true, ..limits };
            let sizes = [("n", n)];
            let k = kernels_for(device, &program, &sizes, &[("xs", array(&[n]))], &term);
            k.run(&rt);
            k.grind();
            let source = &k.plan.source;
            assert!(source.contains(if t == "f64" { "double_" } else { "atom_" }), "{source}");
        }
    }
}
