//! Rows of work-items that groups copy from and to local memory together.

use crate::check::{Kernels, array, cpu, kernels_for};
use crate::races::{changed, is_missed};
use patsat::kernel::DeviceLimits;

/// A GPU.
fn gpu() -> DeviceLimits {
    DeviceLimits {
        max_work_group_size: 1024,
        max_item_sizes: [1024; 3],
        access_bytes: 16,
        compute_units: 2,
        ..DeviceLimits::default()
    }
}

/// Work-items that each go through a row: its greatest element, and then the row and its differences from that.
fn rows(n: u64, m: u64) -> Kernels {
    let program = "entry rows [n][m] (X: [n][m]f32) : ([n][m]f32, [n][m]f32) =
        unzip (map (\\r -> let s = reduce max f32.lowest r in (map (+ 1) r, map (\\x -> x - s) r)) X)";
    let term = "unzip . mapGlb 0 (fork (mapSeq (\\x -> x + 1.0) . fst) (mapSeq (\\(a, b) -> a - b) . distr) \
                . fork id (reduceSeq max (-f32.inf))) . X";
    kernels_for(gpu(), program, &[("n", n), ("m", m)], &[("X", array(&[n, m]))], term)
}

/// Work-items of two dimensions that each make a row of bytes of one element.
fn bytes(n: u64, k: u64, m: u64) -> Kernels {
    let program = format!(
        "entry made [n][k] (X: [n][k]f32) : [n][k][{m}]bool =
           map (map (\\x -> map (\\i -> x > f32.i32 i) (iota {m}))) X"
    );
    let made = format!("mapSeq (\\(i, x) -> x > f32.i32 i) . distr . fork (iota {m} i32) id");
    let term = format!("mapGlb 1 (mapGlb 0 ({made})) . X");
    kernels_for(gpu(), &program, &[("n", n), ("k", k)], &[("X", array(&[n, k]))], &term)
}

fn all() -> Vec<Kernels> {
    let mut all = vec![];
    for (n, m) in [(512, 8), (700, 16), (515, 27), (600, 33), (1030, 9), (513, 64)] {
        all.push(rows(n, m));
    }
    for (n, k, m) in [(3, 600, 40), (2, 515, 33), (5, 512, 64)] {
        all.push(bytes(n, k, m));
    }
    all
}

#[test]
fn rows_go_through_local_memory() {
    let rt = cpu();
    for k in all() {
        assert!(k.plan.source.contains("local "), "{}", k.plan.source);
        k.run(&rt);
    }
}

#[test]
fn oclgrind_finds_nothing_where_rows_go_through_local_memory() {
    all().iter().for_each(Kernels::grind);
}

/// Short rows, long ones, and few work-items.
#[test]
fn other_rows_stay_in_global_memory() {
    let rt = cpu();
    for (n, m) in [(512, 4), (512, 300), (20, 16)] {
        let k = rows(n, m);
        assert!(!k.plan.source.contains("local "), "{}", k.plan.source);
        k.run(&rt);
    }
}

/// Without a barrier between the rows of work-items and the copies of the group, there is a race.
#[test]
fn copies_of_rows_need_their_barriers() {
    let k = rows(515, 27);
    let (_, count) = changed(&k.ir, &|_, s| Some(s.clone()));
    assert_eq!(count, 2, "one after the rows are there, one before they go: {}", k.plan.source);
    assert!((0..count).all(|b| is_missed(&k.ir, b)), "{}", k.plan.source);
}
