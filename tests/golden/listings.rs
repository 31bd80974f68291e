//! Each golden file runs, and its OpenCL has the structure of the corresponding listing.

use crate::check::{Kernels, compile, cpu, device, shipped};
use insta::Settings;

type Sizes<'a> = &'a [(&'a str, u64)];

/// Every golden file, with the sizes at which it is run (small ones first) and the sizes of its snapshot.
pub const GOLDEN: &[(&str, &[Sizes<'static>], Sizes<'static>)] = &[
    ("sum_5_8", &[&[("n", 128)], &[("n", 5 * 128)], &[("n", 1 << 16)]], &[("n", 1 << 20)]),
    ("sum_5_9", &[&[("n", 128)], &[("n", 5 * 128)], &[("n", 1 << 16)]], &[("n", 1 << 20)]),
    ("sum_5_10", &[&[("n", 256)], &[("n", 5 * 256)], &[("n", 1 << 16)]], &[("n", 1 << 20)]),
    ("sum_5_11", &[&[("n", 256)], &[("n", 5 * 256)], &[("n", 1 << 16)]], &[("n", 1 << 20)]),
    ("sum_5_12", &[&[("n", 256)], &[("n", 5 * 256)], &[("n", 1 << 16)]], &[("n", 1 << 20)]),
    (
        "sum_5_13",
        &[&[("g", 1), ("k", 1)], &[("g", 3), ("k", 7)], &[("g", 16), ("k", 100)]],
        &[("g", 512), ("k", 16)],
    ),
    ("scal_vector", &[&[("n", 1024)], &[("n", 7 * 1024)]], &[("n", 1 << 20)]),
    (
        "asum_fused",
        &[&[("m", 1), ("k", 5)], &[("m", 33), ("k", 64)], &[("m", 1000), ("k", 127)]],
        &[("m", 1 << 14), ("k", 64)],
    ),
    ("sum_nvidia", &[&[("n", 1 << 18)], &[("n", 3 << 18)]], &[("n", 1 << 20)]),
    ("sum_amd", &[&[("n", 1 << 19)], &[("n", 3 << 19)]], &[("n", 1 << 20)]),
    ("sum_intel", &[&[("n", 1 << 15)], &[("n", 9 << 15)]], &[("n", 1 << 20)]),
];

fn golden(name: &str) -> Kernels {
    let (_, _, sizes) = GOLDEN.iter().find(|g| g.0 == name).expect("a golden file");
    compile(&shipped(&format!("golden/{name}")), sizes, &device()).expect("compiles")
}

#[test]
fn golden_files_run() {
    let rt = cpu();
    for (name, sizes, _) in GOLDEN {
        let program = shipped(&format!("golden/{name}"));
        for s in *sizes {
            compile(&program, s, &device()).expect("compiles").run(&rt);
        }
    }
}

#[test]
fn every_golden_file_is_here() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/programs/golden");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .expect("the golden files")
        .map(|f| f.expect("a file").file_name().to_string_lossy().replace(".pat", ""))
        .collect();
    files.sort_unstable();
    let mut known: Vec<&str> = GOLDEN.iter().map(|g| g.0).collect();
    known.sort_unstable();
    assert_eq!(files, known);
}

#[test]
fn snapshots() {
    let mut settings = Settings::clone_current();
    settings.set_snapshot_path("../../snapshots/golden");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for (name, ..) in GOLDEN {
            let k = golden(name);
            let mut text = format!("{}\n\n{}", k.term, k.plan.source);
            for l in &k.plan.launches {
                text.push_str(&format!(
                    "// {}: {:?} in groups of {:?}\n",
                    l.kernel, l.global, l.local
                ));
            }
            insta::assert_snapshot!(*name, text);
        }
    });
}

/// Requires that each text occurs the given number of times in the first kernel.
#[track_caller]
fn has(k: &Kernels, wanted: &[(&str, usize)]) {
    for (text, times) in wanted {
        assert_eq!(k.text(0).matches(text).count(), *times, "`{text}`\n{}", k.text(0));
    }
}

/// Listing 5.14 is the published code for listing 5.8: a copy to local memory; seven steps, each of which halves
/// the number of work-items and is followed by a barrier; and a store by one work-item. In the listing, the steps
/// are a loop that swaps two pointers. Here they are unrolled and alternate between two arrays.
#[test]
fn listings_5_8_and_5_9() {
    let (interleaved, halves) = (golden("sum_5_8"), golden("sum_5_9"));
    for k in [&interleaved, &halves] {
        assert_eq!(k.plan.launches[0].local, [128, 1, 1]);
        has(k, &[("local float", 2), ("[128]", 1), ("[64]", 1)]);
        has(k, &[("= xs[128 * g0 + l0];", 1), ("barrier(CLK_LOCAL_MEM_FENCE);", 8)]);
        // The seven steps and the final store. Like the last step, the store is done by one work-item.
        has(k, &[("< 2; ++", 7), ("if (l0 == 0)", 2), ("temp0[g0] = ", 1)]);
        for items in [64, 32, 16, 8, 4, 2] {
            has(k, &[(&format!("if (l0 < {items})"), 1)]);
        }
    }
    // One program adds neighbours, the other elements half the length apart.
    has(&interleaved, &[("[2 * l0 + i", 6)]);
    for apart in [64, 32, 16, 8, 4, 2] {
        has(&halves, &[(&format!("[l0 + {apart} * i"), 1)]);
    }
}

/// Listing 5.10 adds two elements, 128 apart, while loading them. Otherwise, it is listing 5.9.
#[test]
fn listing_5_10() {
    let k = golden("sum_5_10");
    assert_eq!(k.plan.launches[0].local, [128, 1, 1]);
    has(&k, &[("xs[256 * g0 + l0 + 128 * i", 1), ("barrier(CLK_LOCAL_MEM_FENCE);", 8)]);
    has(&k, &[("local float", 2), ("< 2; ++", 8), ("if (l0 == 0)", 2)]);
}

/// Listings 5.11 to 5.13 leave the last 64 elements to one warp. The thesis has no barriers there. Here each of the
/// six steps has one, since nothing guarantees that lanes run in lock-step.
#[test]
fn listings_5_11_to_5_13() {
    for name in ["sum_5_11", "sum_5_12", "sum_5_13"] {
        let k = golden(name);
        assert_eq!(k.plan.launches[0].local, [128, 1, 1]);
        has(&k, &[("local float", 2), ("barrier(CLK_LOCAL_MEM_FENCE);", 8), ("if (l0 < 64)", 1)]);
        has(&k, &[("warp = get_local_id(0) / 32", 1), ("lane = get_local_id(0) % 32", 1)]);
        // The first step uses all lanes, each further step half of those before.
        has(&k, &[("if (warp == 0) {", 1), ("if (warp == 0 && lane == 0)", 1)]);
        for lanes in [16, 8, 4, 2] {
            has(&k, &[(&format!("if (warp == 0 && lane < {lanes})"), 1)]);
        }
        for apart in [32, 16, 8, 4, 2] {
            has(&k, &[(&format!("[lane + {apart} * i"), 1)]);
        }
        has(&k, &[("if (l0 == 0)", 1), ("temp0[g0] = ", 1)]);
    }
    // An iteration with one step equals the step.
    assert_eq!(golden("sum_5_11").plan, golden("sum_5_12").plan);
    has(&golden("sum_5_12"), &[("xs[256 * g0 + l0 + 128 * i", 1), ("< 2; ++", 8)]);
    has(&golden("sum_5_13"), &[("xs[2048 * g0 + l0 + 128 * i", 1), ("< 16; ++", 1)]);
}

/// Figure 5.4 is the published code for equation 5.15: each work-item loads, scales and stores a vector. The figure
/// has loops over chunks and vectors. Here there are as many groups and work-items as chunks and vectors.
#[test]
fn vectorised_scaling() {
    let k = golden("scal_vector");
    let launch = &k.plan.launches[0];
    assert_eq!((launch.global, launch.local), ([1 << 18, 1, 1], [256, 1, 1]));
    assert_eq!(k.plan.launches.len(), 1);
    has(&k, &[("const float4*)xs)[256 * g0 + l0]", 1), ("float4*)out)[256 * g0 + l0] =", 1)]);
    has(&k, &[("for (", 0), ("if (", 0), ("barrier", 0), ("local float", 0)]);
}

/// Figure 5.9: one loop takes absolute values and adds them, without an intermediate array.
#[test]
fn fused_asum() {
    let k = golden("asum_fused");
    has(&k, &[("for (", 1), ("+ fabs(xs[64 * i0 + i", 1), ("temp0[i0] = ", 1)]);
    has(&k, &[("barrier", 0), ("local float", 0)]);
}

/// Figure 6.3: no local memory, and one long sum for each work-item. Accesses are strided on GPUs. Vectors have two
/// elements for AMD and four for Intel, where a group has one work-item.
#[test]
fn searched_sums() {
    let (nvidia, amd, intel) = (golden("sum_nvidia"), golden("sum_amd"), golden("sum_intel"));
    for k in [&nvidia, &amd, &intel] {
        has(k, &[("for (", 1), ("if (", 0), ("barrier", 0), ("local float", 0)]);
    }
    has(&nvidia, &[("< 2048; ++", 1), ("xs[262144 * g0 + l0 + 128 * i", 1)]);
    has(&nvidia, &[("temp0[128 * g0 + l0] = ", 1)]);
    has(&amd, &[("< 2048; ++", 1), ("const float2*)xs)[262144 * g0 + l0 + 128 * i", 1)]);
    has(&amd, &[("float2*)temp0)[128 * g0 + l0] = ", 1)]);
    has(&intel, &[("< 8192; ++", 1), ("const float4*)xs)[8192 * g0 + i", 1)]);
    has(&intel, &[("float4*)temp0)[g0] = ", 1)]);
    let groups = [&nvidia, &amd, &intel].map(|k| k.plan.launches[0].local[0]);
    assert_eq!(groups, [128, 128, 1]);
}
