//! Kernels that copy and fill arrays, in vectors where the places allow it.

use crate::check::{array, cpu, kernels_for};
use patsat::kernel::DeviceLimits;

/// So few compute units that a work-item of a long row copies several elements.
fn gpu() -> DeviceLimits {
    DeviceLimits { access_bytes: 16, compute_units: 1, ..DeviceLimits::default() }
}

#[test]
fn initial_states_of_loops_are_copied_in_vectors() {
    let rt = cpu();
    let program = "entry steps [n] (a: [n]f32) : [n]f32 = loop x = a for i < 100 do map (+ 1) x";
    let term = "foldSeq (mapGlb 0 (\\x -> x + 1.0) . fst) . fork a (iota 100 i32)";
    for n in [1, 3, 4, 5, 8, 1023, 4096] {
        let k = kernels_for(gpu(), program, &[("n", n)], &[("a", array(&[n]))], term);
        assert_eq!(k.text(0).contains("(global float4*)"), n >= 4, "{}", k.text(0));
        k.run(&rt);
    }
}

#[test]
fn columns_are_copied_by_neighbouring_work_items() {
    let rt = cpu();
    let program = "entry steps [n] [m] (a: [n][m]f32) : [m][n]f32 = loop x = transpose a for i < 100 do map (map (+ 1)) x";
    let term = "foldSeq (mapGlb 1 (mapGlb 0 (\\x -> x + 1.0)) . fst) . fork (transpose . a) (iota 100 i32)";
    for (n, m) in [(1, 8), (4, 4), (300, 33), (256, 64)] {
        let inputs = [("a", array(&[n, m]))];
        let k = kernels_for(gpu(), program, &[("n", n), ("m", m)], &inputs, term);
        assert_eq!(k.text(0).contains("(global float4*)"), n == 1, "{}", k.text(0));
        k.run(&rt);
    }
}

/// Rows whose length is no multiple of a vector's do not begin where vectors do.
#[test]
fn rows_are_filled_and_scattered_in_vectors() {
    let rt = cpu();
    let program = "entry rows [t] [d] (x: [t][d]f32) : [2*t][d]f32 = scatter (replicate (2*t) (replicate d 1)) (map (\\i -> 2*i) (iota t)) x";
    for (t, d) in [(1, 1), (5, 7), (3, 8), (2, 260), (1, 1024), (8, 2047)] {
        let base = format!("replicate {} . replicate {d} . 1.0", 2 * t);
        let places = format!("mapGlb 0 (\\i -> 2 * i) . iota {t} i32");
        let term = format!("scatter . fork ({base}) (fork ({places}) x)");
        let inputs = [("x", array(&[t, d]))];
        let k = kernels_for(gpu(), program, &[("t", t), ("d", d)], &inputs, &term);
        let rows = k.text(k.ir.kernels.len() - 1);
        assert_eq!(rows.contains("(global float4*)"), d % 4 == 0, "{rows}");
        assert_eq!(k.text(0).contains("(global float4*)"), 2 * t * d >= 4, "{}", k.text(0));
        k.run(&rt);
    }
}

/// A length that no vector divides is padded; the result has no room for the padding.
#[test]
fn results_that_are_read_again_lose_their_padding_where_they_are_stored() {
    let rt = cpu();
    let program = "entry both [n] (a: [n]f32) : ([n]f32, [n]f32) = let ys = map (* 2) a in (ys, map (+ 1) ys)";
    for n in [1, 3, 4, 1001_u64] {
        let all = n.next_multiple_of(4);
        let first = format!(
            "take {n} . join . mapGlb 0 (mapUnroll (\\x -> x * 2.0)) . split 4 . padLast {all} . a"
        );
        let term = format!("fork id (mapGlb 0 (\\x -> x + 1.0)) . {first}");
        for access_bytes in [0, 16] {
            let device = DeviceLimits { access_bytes, ..DeviceLimits::default() };
            let k = kernels_for(device, program, &[("n", n)], &[("a", array(&[n]))], &term);
            assert_eq!(k.ir.kernels.len(), 2, "{}", k.plan.source);
            k.run(&rt);
        }
    }
}
