//! Histograms as a GPU computes them: in bins of each group, beside other results, and of rows.

use crate::check::{Kernels, array, cpu, kernels, kernels_for};
use patsat::kernel::DeviceLimits;

/// The sums of values by bin, of `n` values in `m` bins.
fn sums(n: u64, m: u64) -> Kernels {
    sums_on(DeviceLimits { access_bytes: 16, ..DeviceLimits::default() }, n, m)
}

fn sums_on(device: DeviceLimits, n: u64, m: u64) -> Kernels {
    let program = format!(
        "entry sums [n] (xs: [n]f32) : [{m}]f32 = histogram (+) 0 {m} (map (\\x -> i32.f32 x) xs) xs"
    );
    let term = format!("histogram {m} (+) 0.0 . fork (mapGlb 0 (\\x -> i32.f32 x)) id . xs");
    kernels_for(device, &program, &[("n", n)], &[("xs", array(&[n]))], &term)
}

#[test]
fn groups_have_bins_of_their_own() {
    let rt = cpu();
    for n in [1, 3, 256, 5003, 70_001] {
        let k = sums(n, 7);
        k.run(&rt);
        if n < 10_000 {
            k.grind();
        }
        assert!(k.plan.source.contains("float_add_local"), "{}", k.plan.source);
        // Groups store their bins, which another kernel combines if there are several: nothing is combined in global memory.
        assert!(!k.plan.source.contains("float_add_global"), "{}", k.plan.source);
        assert!(!k.plan.source.contains("run_starts"), "{}", k.plan.source);
    }
}

#[test]
fn bins_that_do_not_fit_in_a_group_are_changed_in_global_memory() {
    let rt = cpu();
    for n in [1, 3, 256, 5003] {
        let k = sums(n, 20_000);
        k.run(&rt);
        k.grind();
        assert!(!k.plan.source.contains("float_add_local"), "{}", k.plan.source);
        assert!(k.plan.source.contains("float_add_global"), "{}", k.plan.source);
        // What all groups share is combined in a warp first.
        assert!(k.plan.source.contains("run_starts"), "{}", k.plan.source);
    }
}

/// Work-items with several neighbouring values load them first, as vectors, and change a bin once for each run: in local memory and in
/// global memory. The number of values need not be a multiple.
#[test]
fn runs_of_a_bin_are_combined_in_registers() {
    let rt = cpu();
    for (m, n) in [(7, 4099), (7, 16_391), (20_000, 4099), (20_000, 16_391)] {
        let few = DeviceLimits { access_bytes: 16, compute_units: 1, ..DeviceLimits::default() };
        let k = sums_on(few, n, m);
        k.run(&rt);
        if n < 10_000 {
            k.grind();
        }
        let (source, vector) = (&k.plan.source, if n < 10_000 { "float2" } else { "float4" });
        assert!(source.contains(&format!("((global const {vector}*)xs)")), "{source}");
        assert!(source.contains(" == t"), "{source}");
    }
}

/// If the bin depends on the place of a value, neighbouring work-items take neighbouring values, and change neighbouring bins.
#[test]
fn neighbouring_values_of_different_bins_are_not_compared() {
    let program = "entry sums [n] (xs: [n]f32) : [24]f32 =
        histogram (+) 0 24 (map (\\i -> i % 24) (iota n)) xs";
    let n = 16_391;
    let term = format!("histogram 24 (+) 0.0 . fork (mapGlb 0 (\\i -> i % 24) . iota {n} i32) xs");
    let few = DeviceLimits { access_bytes: 16, compute_units: 1, ..DeviceLimits::default() };
    let k = kernels_for(few, program, &[("n", n)], &[("xs", array(&[n]))], &term);
    k.run(&cpu());
    assert!(!k.plan.source.contains(" == t"), "{}", k.plan.source);
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

/// Values of each row by bin: with atomic operations on floats and on integers, and by exchanging words for an operator that
/// has no atomic operation. The work-items of the group read the bins of others.
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

/// The greatest and the least float of a bin are found by the device's operations on integers.
#[test]
fn greatest_floats_need_no_second_try() {
    let t = "mapWrg 0 (histogram 16 max (-f32.inf) . fork (mapLcl 0 (\\x -> i32.f32 x)) id) . xs";
    let program = "entry f [n][m] (xs: [n][m]f32) : [n][16]f32 =
        map (\\r -> histogram max (-f32.inf) 16 (map i32.f32 r) r) xs";
    let k = kernels(program, &[("n", 2), ("m", 100)], &[("xs", array(&[2, 100]))], t);
    let source = &k.plan.source;
    assert!(source.contains("atomic_max((volatile local int*)at, bits);"), "{source}");
    assert!(source.contains("atomic_min((volatile local uint*)at, (uint)bits);"), "{source}");
    assert!(!source.contains("cmpxchg"), "{source}");
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

/// Histograms of pairs and of records by operators that devices do not have, for a GPU with operations on 64 bits.
fn chosen(m: u64, n: u64, wide: bool) -> Kernels {
    let (t, z, z_of_term, values, values_of_term) = match wide {
        false => (
            "(f32, i32)",
            "(f32.lowest, i32.highest)",
            "((-f32.inf), 2147483647)",
            "zip xs (iota n)",
            "id",
        ),
        true => (
            "(f32, (i32, f32))",
            "(f32.lowest, (i32.highest, 0))",
            "((-f32.inf), (2147483647, 0.0))",
            "map2 (\\x i -> (x, (i, 2 * x))) xs (iota n)",
            "mapGlb 0 (\\(x, i) -> (x, (i, 2.0 * x)))",
        ),
    };
    let number = if wide { ".1.0" } else { ".1" };
    let program = format!(
        "entry best [n] (xs: [n]f32) : [{m}]{t} =
         histogram (\\a b -> if a.0 > b.0 || (a.0 == b.0 && a{number} < b{number}) then a else b) {z} {m}
           (map (\\x -> i32.f32 x % 7) xs) ({values})"
    );
    let (a, b) = if wide { ("(i, u)", "(j, v)") } else { ("i", "j") };
    let better = format!(
        "(\\((a, {a}), (b, {b})) -> if a > b || a == b && i < j then (a, {a}) else (b, {b}))"
    );
    let term = format!(
        "histogram {m} {better} (\\() -> {z_of_term}) . fork (mapGlb 0 (\\x -> i32.f32 x % 7) . xs) \
         ({values_of_term} . zip . fork xs (iota {n} i32))"
    );
    let limits = DeviceLimits::default();
    let device = DeviceLimits { access_bytes: 16, atomics_64: true, ..limits };
    kernels_for(device, &program, &[("n", n)], &[("xs", array(&[n]))], &term)
}

/// The greatest value of each bin and its place, with words of 64 bits that work-items exchange: in local memory, and in the
/// result if the bins do not fit there.
#[test]
fn words_are_exchanged() {
    let rt = cpu();
    for (m, n, space) in [(7, 5003, "local"), (9000, 300, "global")] {
        let k = chosen(m, n, false);
        k.run(&rt);
        k.grind();
        let source = &k.plan.source;
        assert!(source.contains(&format!("= ulong_read_{space}(&")), "{source}");
        let exchange = format!("= atom_cmpxchg((volatile {space} ulong*)&");
        assert!(source.contains(&exchange), "{source}");
    }
}

/// The text of such a loop: a value that changes nothing leaves the word as it is, and nobody waits.
#[test]
fn a_word_is_exchanged_until_nobody_was_faster() {
    let k = chosen(9000, 300, false);
    let source = &k.plan.source;
    let from = source.find("bool t").expect("a loop");
    let text: Vec<&str> = source[from..].lines().map(str::trim).take(12).collect();
    let golden = include_str!("exchanged.txt");
    assert_eq!(text.join("\n").trim(), golden.trim(), "{source}");
}

/// Records that no word holds are chosen by their numbers. An operator that computes something else has no shared bins.
#[test]
fn wide_values_are_chosen_by_number() {
    let rt = cpu();
    for (m, n) in [(7, 5003), (9000, 300)] {
        let k = chosen(m, n, true);
        k.run(&rt);
        k.grind();
        let source = &k.plan.source;
        assert!(source.contains("= atomic_cmpxchg((volatile global uint*)&"), "{source}");
    }
    let program = "entry products [n] (xs: [n]f32) : [7](f32, (f32, f32)) =
        histogram (\\a b -> (a.0 * b.0, (a.0 * b.1.0 + a.1.0 * b.0, a.0 * b.1.1 + a.1.0 * b.1.0 + a.1.1 * b.0)))
          (1, (0, 0)) 7 (map (\\x -> i32.f32 x % 7) xs) (map (\\x -> (1, (x, x))) xs)";
    let product =
        "(\\((a, (b, c)), (d, (e, f))) -> (a * d, (a * e + b * d, a * f + b * e + c * d)))";
    let term = format!(
        "histogram 7 {product} (\\() -> (1.0, (0.0, 0.0))) . \
         fork (mapGlb 0 (\\x -> i32.f32 x % 7)) (mapGlb 0 (\\x -> (1.0, (x, x)))) . xs"
    );
    let k = kernels(program, &[("n", 100)], &[("xs", array(&[100]))], &term);
    k.run(&rt);
    assert!(!k.plan.source.contains("atom"), "{}", k.plan.source);
}
