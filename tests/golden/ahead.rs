//! Double buffering: tiled products whose blocks are loaded ahead (`toLocalAhead`), at sizes that tiles divide and
//! at others, with no, one and several blocks.

use crate::check::{Kernels, array, cpu, kernels, kernels_for};
use crate::races::{changed, is_missed};
use patsat::device::cost_model::CostModel;
use patsat::kernel::DeviceLimits;
use patsat::kernel::estimate;
use patsat::kernel::ir::{LoopKind, Stmt};
use patsat::kernel::profile::profile;
use patsat::opencl::plan::HostPlan;
use patsat::opencl::print::copies;

const STEP: &str = r"(\(c, (i, (a, b))) -> if i then c + a * b else c)";

/// Rows, columns, and length of the reduction. Tiles are 32 by 32 (64 with warps), blocks of 8.
const PRODUCTS: &[[u64; 3]] = &[
    [64, 64, 64],
    [40, 24, 37],
    [33, 31, 5],
    [32, 32, 8],
    [32, 64, 16],
    [3, 5, 17],
    [5, 3, 1],
    [5, 3, 0],
];

fn round(n: u64, t: u64) -> u64 {
    n.next_multiple_of(t)
}

/// A GPU.
fn gpu() -> DeviceLimits {
    DeviceLimits { access_bytes: 16, ..DeviceLimits::default() }
}

/// A GPU that copies blocks to local memory while a group does something else.
fn copying_gpu() -> DeviceLimits {
    DeviceLimits { copies_ahead: true, ..gpu() }
}

/// `A*B`, or `A*B^T`, in which both matrices are read along their rows.
fn product(sizes: [u64; 3], staging: &str, warps: bool, rows: bool) -> Kernels {
    product_for(gpu(), sizes, staging, warps, rows)
}

/// As [`product`], for a device.
fn product_for(
    device: DeviceLimits,
    [n, m, k]: [u64; 3],
    staging: &str,
    warps: bool,
    rows: bool,
) -> Kernels {
    let (t, share) = if warps { (64, "spreadWarps 8 8 4 4") } else { (32, "spread 4 4 2 2") };
    let (r, q, kr) = (round(n, t), round(m, t), round(k, 8));
    let (b, dims, parameter) =
        if rows { ("B", [m, k], "[m][k]f32") } else { ("transpose . B", [k, m], "[k][m]f32") };
    let columns = if rows { "B" } else { "(transpose B)" };
    let program = format!(
        "entry product [n][m][k] (A: [n][k]f32) (B: {parameter}) : [n][m]f32 =
           map (\\row -> map (\\col -> reduce (+) 0 (map2 (*) row col)) {columns}) A"
    );
    let item = format!(
        "foldSeq (mapUnroll (mapUnroll {STEP}) . map zip . zip) . bimap id (transpose . map transpose) \
         . unzip . map unzip"
    );
    let term = format!(
        "tiled {t} {t} {r} {q} id id (mapWrg 1 (mapWrg 0 (blocked 8 {kr} ({staging} id) ({staging} id) \
         (toPrivate ({share} (mapLcl 0 ({item})))) 0.0 id))) . fork A ({b})"
    );
    let inputs = [("A", array(&[n, k])), ("B", array(&dims))];
    kernels_for(device, &program, &[("n", n), ("m", m), ("k", k)], &inputs, &term)
}

/// The same with functions in OpenCL C in place of the instructions for copies.
fn with_plain_copies(k: Kernels) -> Kernels {
    let of = |bytes, c: &str| {
        format!(
            "void copy_ahead_{bytes}(local void *to, global const void *from, int some) {{\n    \
             *(local {c}*)to = some ? *(global const {c}*)from : ({c})(0);\n}}\n"
        )
    };
    let mut functions = [(4, "uint"), (8, "uint2"), (16, "uint4")].map(|(n, c)| of(n, c)).concat();
    functions.push_str("void copies_arrive(int later) {}\n");
    assert!(k.plan.source.contains(copies::DEFINITIONS), "{}", k.plan.source);
    let plan = HostPlan {
        source: k.plan.source.replace(copies::DEFINITIONS, &functions),
        ..(*k.plan).clone()
    };
    Kernels { plan: plan.into(), ..k }
}

/// A kernel in which every element is combined with the same partners.
fn rows(n: u64, k: u64) -> Kernels {
    let program = "entry product [n][k] (A: [n]f32) (B: [k]f32) : [n]f32 =
        map (\\a -> reduce (+) 0 (map (\\b -> a * b) B)) A";
    let (r, kr) = (round(n, 16), round(k, 32));
    let term = format!(
        "tiledRows 16 {r} (mapWrg 0 (blockedRows 32 {kr} (toLocalAhead id) \
         (toPrivate (mapLcl 0 (foldSeq {STEP}))) 0.0 id)) . fork A B"
    );
    let inputs = [("A", array(&[n])), ("B", array(&[k]))];
    kernels(program, &[("n", n), ("k", k)], &inputs, &term)
}

fn all() -> impl Iterator<Item = Kernels> {
    let shapes = [(false, false), (true, false), (false, true)];
    let products = shapes.into_iter().flat_map(|(warps, rows)| {
        PRODUCTS.iter().map(move |sizes| product(*sizes, "toLocalAhead", warps, rows))
    });
    let rest = [[40, 96], [16, 64], [5, 70], [7, 32], [9, 3], [9, 1], [9, 0]];
    products.chain(rest.into_iter().map(|[n, k]| rows(n, k)))
}

#[test]
fn products_loaded_ahead_run() {
    let rt = cpu();
    all().for_each(|k| k.run(&rt));
}

#[test]
fn oclgrind_finds_nothing_where_blocks_are_loaded_ahead() {
    all().for_each(|k| k.grind());
}

/// Blocks are copied by `cp.async`, with zeros past the end.
#[test]
fn blocks_are_copied_while_a_group_goes_on() {
    let rt = cpu();
    for (warps, rows) in [(false, false), (true, false), (false, true)] {
        for sizes in [[64, 64, 64], [40, 24, 36], [33, 31, 5], [32, 64, 16], [5, 3, 1]] {
            let copied = product_for(copying_gpu(), sizes, "toLocalAhead", warps, rows);
            if copied.plan.source.contains("copy_ahead_") {
                with_plain_copies(copied).run(&rt);
            } else {
                copied.run(&rt);
            }
        }
    }
    let copied = product_for(copying_gpu(), [64, 64, 64], "toLocalAhead", false, false);
    let source = &copied.plan.source;
    assert_eq!(in_loop(&copied), [1]);
    let [copies, arrivals] =
        ["copy_ahead_16(&", "copies_arrive(0);"].map(|s| source.matches(s).count());
    assert!(copies >= 2, "of a block before the loop and of one in it: {source}");
    assert_eq!(arrivals, source.matches("barrier(").count(), "{source}");
}

#[test]
fn oclgrind_finds_nothing_where_blocks_are_copied() {
    for sizes in [[64, 64, 64], [32, 64, 16]] {
        let copied = product_for(copying_gpu(), sizes, "toLocalAhead", false, false);
        with_plain_copies(copied).grind();
    }
}

/// Returns the number of barriers directly in each sequential loop that has any.
fn in_loop(k: &Kernels) -> Vec<usize> {
    let mut out = vec![];
    for s in &k.ir.kernels[0].body {
        s.visit(&mut |s| {
            let Stmt::Loop { kind: LoopKind::Seq, body, .. } = s else { return };
            let barriers = body.iter().filter(|s| matches!(s, Stmt::Barrier { .. })).count();
            if barriers > 0 {
                out.push(barriers);
            }
        });
    }
    out
}

#[test]
fn one_barrier_a_step() {
    let ahead = product([64, 64, 64], "toLocalAhead", false, false);
    assert_eq!(in_loop(&ahead), [1]);
    assert_eq!(in_loop(&product([64, 64, 64], "toLocal", false, false)), [2]);
    // Both blocks have two buffers, unless there is only one block.
    let local = |k: &Kernels| k.ir.kernels[0].local_bytes();
    let once = local(&product([64, 64, 8], "toLocal", false, false));
    assert_eq!(local(&product([64, 64, 8], "toLocalAhead", false, false)), once);
    assert_eq!(local(&ahead), 2 * once);
}

/// The verifier refuses a kernel without any one of its barriers.
#[test]
fn every_barrier_is_needed() {
    for k in [product([64, 64, 64], "toLocalAhead", false, false), rows(40, 96)] {
        let (_, count) = changed(&k.ir, &|_, s| Some(s.clone()));
        assert_eq!(count, 2, "one in the loop, one before the last step: {}", k.plan.source);
        assert!((0..count).all(|b| is_missed(&k.ir, b)), "{}", k.plan.source);
    }
}

/// The estimate favours a kernel that does not wait for copies and has half as many barriers.
#[test]
fn loading_ahead_is_worth_it() {
    let models = CostModel::shipped().expect("shipped models");
    let model = models.iter().find(|m| m.name.starts_with("generic-gpu")).expect("a model");
    let of = |staging: &str| {
        let profile = profile(&product([512, 512, 512], staging, true, false).ir);
        (profile.kernels[0].stalls, estimate(&profile, model).us)
    };
    let (ahead, staged) = (of("toLocalAhead"), of("toLocal"));
    assert_eq!((ahead.0, staged.0), (0.0, 64.0));
    assert!(ahead.1 < staged.1, "{ahead:?} {staged:?}");
}
