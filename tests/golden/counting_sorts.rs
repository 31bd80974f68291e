//! Counting sorts as the work-groups of a GPU run them.

use crate::check::{Kernels, array, cpu, kernels, kernels_for};
use patsat::kernel::DeviceLimits;

/// `n` numbers in their order within each of `k` buckets; some are outside the buckets.
fn sorted(n: u64, k: u64) -> Kernels {
    sorted_for(&DeviceLimits::default(), n, k)
}

fn sorted_for(device: &DeviceLimits, n: u64, k: u64) -> Kernels {
    let device = DeviceLimits { access_bytes: 16, ..device.clone() };
    // The numbers are small and whole.
    let bucket = format!("(\\x -> i32.f32 (x * {}.0))", k.div_ceil(8));
    let program = format!(
        "entry sorted [n] (xs: [n]f32) : ([{k}]i32, [n]f32) = counting_sort {k} (map {bucket} xs) xs"
    );
    let term = format!("countingSort {k} . fork (mapGlb 0 {bucket}) id . xs");
    kernels_for(device, &program, &[("n", n)], &[("xs", array(&[n]))], &term)
}

#[test]
fn groups_sort_tile_by_tile() {
    let rt = cpu();
    for (n, k) in [
        (0, 3),
        (1, 1),
        (2, 2),
        (7, 2),
        (2048, 7),
        (2049, 16),
        (3839, 3),
        (3840, 5),
        (3841, 16),
        (5003, 2),
        (5003, 17),
        (5003, 40),
        (5003, 256),
        (70_001, 200),
        (70_001, 4),
        // Three rounds, and tables beside which no tile of elements fits.
        (30_011, 1000),
        // Too many buckets for local memory: each work-item sorts a block.
        (5003, 5000),
    ] {
        let sorted = sorted(n, k);
        sorted.run(&rt);
        let source = &sorted.plan.source;
        let stages = source.contains("local float");
        assert_eq!(stages, n > 0 && k < 1000, "{source}");
    }
}

/// Each of three rows is sorted by a work-group: the elements, or the numbers of elements.
fn rows_sorted(device: &DeviceLimits, n: u64, k: u64) -> [Kernels; 2] {
    let bucket = format!("(\\x -> i32.f32 (x * {}.0))", k.div_ceil(8));
    let of = |ty: &str, part: &str, after: &str, last: &str, length: &str| {
        let program = format!(
            "entry sorted [b] [n] (xs: [b][n]f32) : [b][{length}]{ty} =
               map (\\x -> map ({last}) ((counting_sort {k} (map {bucket} x) x).{part})) xs"
        );
        let term = format!(
            "mapWrg 0 (mapLcl 0 ({last}) . {after} . countingSort {k} . fork (mapLcl 0 {bucket}) id) . xs"
        );
        let sizes = [("b", 3), ("n", n)];
        kernels_for(device.clone(), &program, &sizes, &[("xs", array(&[3, n]))], &term)
    };
    [
        of("f32", "1", "snd", "\\x -> x * 2.0", "n"),
        of("i32", "0", "fst", "\\x -> x + 1", &k.to_string()),
    ]
}

#[test]
fn a_group_sorts_a_row() {
    let rt = cpu();
    for (n, k) in [(1, 1), (2, 3), (67, 5), (300, 40), (257, 1000)] {
        for sorted in rows_sorted(&DeviceLimits::default(), n, k) {
            sorted.run(&rt);
            assert!(sorted.plan.source.contains("local float"), "{}", sorted.plan.source);
        }
    }
}

/// A GPU's group sorts a row by digits if it is long.
#[test]
fn a_group_sorts_a_row_by_digits() {
    let rt = cpu();
    let gpu =
        DeviceLimits { access_bytes: 16, local_mem_bytes: 96 << 10, ..DeviceLimits::default() };
    for (n, k, digits) in [
        (127, 5, false),
        (128, 1, true),
        (150, 2, true),
        (300, 40, true),
        (1000, 256, true),
        (257, 1000, true),
        (1811, 7, true),
        // Several tiles, the last of which may be short.
        (4801, 7, true),
        (7680, 300, true),
    ] {
        for sorted in rows_sorted(&gpu, n, k) {
            sorted.run(&rt);
            let source = &sorted.plan.source;
            assert_eq!(source.contains("local uint"), digits, "{source}");
        }
    }
}

#[test]
fn oclgrind_finds_nothing_where_a_group_sorts_a_row() {
    for sorted in rows_sorted(&DeviceLimits::default(), 67, 5) {
        sorted.grind();
    }
    let gpu = |items| DeviceLimits {
        max_work_group_size: items,
        max_item_sizes: [items; 3],
        access_bytes: 16,
        ..DeviceLimits::default()
    };
    for (items, n, k) in [(256, 150, 20), (128, 2001, 4)] {
        for sorted in rows_sorted(&gpu(items), n, k) {
            sorted.grind();
        }
    }
}

/// Groups of few work-items, and local memory that holds no tile of elements, or no tile at all.
#[test]
fn small_devices_sort() {
    let rt = cpu();
    let device = |items, bytes| DeviceLimits {
        max_work_group_size: items,
        max_item_sizes: [items; 3],
        local_mem_bytes: bytes,
        ..DeviceLimits::default()
    };
    for (items, bytes, groups, stages) in [
        (128, 32 << 10, true, true),
        (192, 48 << 10, true, true),
        (256, 16 << 10, true, false),
        (256, 8 << 10, false, false),
        (64, 48 << 10, false, false),
    ] {
        let sorted = sorted_for(&device(items, bytes), 9001, 16);
        sorted.run(&rt);
        let source = &sorted.plan.source;
        assert_eq!(source.contains("local uint"), groups, "{source}");
        assert_eq!(source.contains("local float"), stages, "{source}");
    }
}

#[test]
fn oclgrind_finds_nothing_where_groups_sort() {
    for (n, k) in [(7, 2), (2049, 5), (3841, 5), (5003, 16), (5003, 256)] {
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
