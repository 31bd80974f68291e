//! Counting sorts as the work-groups of a GPU run them.

use crate::check::{Kernels, array, cpu, kernels};

/// `n` whole numbers in their order within each of `k` buckets; some are outside the buckets.
fn sorted(n: u64, k: u64) -> Kernels {
    let program = format!(
        "entry sorted [n] (xs: [n]f32) : ([{k}]i32, [n]f32) = counting_sort {k} (map (\\x -> i32.f32 x) xs) xs"
    );
    let term = format!("countingSort {k} . fork (mapGlb 0 (\\x -> i32.f32 x)) id . xs");
    kernels(&program, &[("n", n)], &[("xs", array(&[n]))], &term)
}

#[test]
fn groups_sort_tile_by_tile() {
    let rt = cpu();
    for (n, k) in
        [(0, 3), (1, 1), (7, 2), (2048, 7), (2049, 16), (5003, 2), (70_001, 4), (5003, 40)]
    {
        let sorted = sorted(n, k);
        sorted.run(&rt);
        let source = &sorted.plan.source;
        // More buckets than fit beside a tile: the elements are stored as they come.
        let stages = source.contains("local float");
        assert_eq!(stages, n > 0 && k < 16, "{source}");
    }
}

#[test]
fn oclgrind_finds_nothing_where_groups_sort() {
    for (n, k) in [(7, 2), (2049, 5), (5003, 16)] {
        sorted(n, k).grind();
    }
}

/// Elements that are rows, or that have several components.
#[test]
fn elements_of_any_type_are_sorted() {
    let rt = cpu();
    let n = 3001;
    let program = "entry pairs [n] (xs: [n]f32) : ([3]i32, [n](f32, f32)) =
        counting_sort 3 (map (\\x -> i32.f32 x) xs) (zip xs (map (* 2) xs))";
    let term = "countingSort 3 . fork (mapGlb 0 (\\x -> i32.f32 x)) (zip . fork id (mapGlb 0 (\\x -> x * 2.0))) . xs";
    kernels(program, &[("n", n)], &[("xs", array(&[n]))], term).run(&rt);
    let program = "entry rows [n] (xss: [n][3]f32) : ([3]i32, [n][3]f32) =
        counting_sort 3 (map (\\r -> i32.f32 r[0]) xss) xss";
    let term = "countingSort 3 . fork (mapGlb 0 (\\x -> i32.f32 x) . join . transpose . take 1 . transpose) id . xss";
    kernels(program, &[("n", n)], &[("xss", array(&[n, 3]))], term).run(&rt);
}
