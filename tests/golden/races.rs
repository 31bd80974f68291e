//! Tests the verifier on changed kernels: barriers are missing, or indices were not computed exactly.

use crate::check::{Kernels, compile, cpu, device, shipped};
use crate::listings::GOLDEN;
use patsat::diag::{Code, Source};
use patsat::kernel::DeviceLimits;
use patsat::kernel::ir::index::Index;
use patsat::kernel::ir::{Block, Expr, Program as Ir, Scope, Stmt};
use patsat::kernel::verify::verify;
use patsat::lang::types::ScalarType;
use patsat::opencl::plan::HostPlan;
use patsat::session::Program;
use std::sync::Arc;

fn of(text: &str, sizes: &[(&str, u64)], device: &DeviceLimits) -> Kernels {
    let program = Program::check(&Source::new("test.pat", text), None).expect("well-typed");
    compile(&program, sizes, device).expect("compiles")
}

/// Calls `f` on every barrier in order, with its number. The barrier is replaced by the result, or removed if there
/// is none.
fn replace(b: &mut Block, k: &mut usize, f: &dyn Fn(usize, &Stmt) -> Option<Stmt>) {
    b.retain_mut(|s| {
        if matches!(s, Stmt::Barrier { .. }) {
            *k += 1;
            return match f(*k - 1, s) {
                Some(new) => {
                    *s = new;
                    true
                }
                None => false,
            };
        }
        s.blocks_mut().into_iter().for_each(|b| replace(b, k, f));
        true
    });
}

/// Returns the program with the barriers of its first kernel replaced, and their number.
pub fn changed(ir: &Ir, f: &dyn Fn(usize, &Stmt) -> Option<Stmt>) -> (Ir, usize) {
    let (mut ir, mut count) = (ir.clone(), 0);
    replace(&mut ir.kernels[0].body, &mut count, f);
    (ir, count)
}

/// Returns whether the verifier finds that work-items communicate without a barrier once barrier `k` is removed.
pub fn is_missed(ir: &Ir, k: usize) -> bool {
    let (without, _) = changed(ir, &|i, s| (i != k).then(|| s.clone()));
    match verify(&without, &device()) {
        Ok(()) => false,
        Err(d) => {
            assert_eq!(d.code, Code::Unproved);
            assert!(d.message.contains("with no barrier between"), "{}", d.message);
            true
        }
    }
}

#[test]
fn every_barrier_of_the_listings_is_needed() {
    for (name, _, sizes) in GOLDEN {
        let ir =
            compile(&shipped(&format!("golden/{name}")), sizes, &device()).expect("compiles").ir;
        let (_, count) = changed(&ir, &|_, s| Some(s.clone()));
        // The result of the last step is stored by the work-item that computed it, so the last barrier is not
        // needed.
        let last = if name.starts_with("sum_5") { count - 1 } else { count };
        assert!((0..last).all(|k| is_missed(&ir, k)), "{name}");
        assert!((last..count).all(|k| !is_missed(&ir, k)), "{name}");
    }
}

/// Work-items that differ only in a dimension that an index does not use all read what one of them wrote.
#[test]
fn a_row_for_all_rows_of_work_items() {
    let text = "entry f (a: [4][16]f32) (x: [16]f32) : [1][4][16]f32 =
      mapWrg 0 (\\rows ->
        toLocal (mapLcl 0 (* 2)) x
          |> \\y -> mapLcl 1 (\\row -> mapLcl 0 (\\(p, q) -> p + q) (zip row y)) rows) (split 4 a)";
    let k = of(text, &[], &device());
    assert!(is_missed(&k.ir, 0), "{}", k.plan.source);
    k.run(&cpu());
}

const LANES: &str = "entry f [n] (xs: [n]f32) : [n]f32 =
  xs |> split 128
     |> mapWrg 0 (\\c -> c |> split 32
          |> mapWarp (\\p -> p |> mapLane (+ 1) |> reverse |> mapLane (* 2) |> reverse |> mapLane (+ 3))
          |> join)
     |> join";

/// Lanes that exchange elements have a barrier between them: of the group, or of the sub-group if the device has
/// sub-groups. Lock-step execution is never assumed: without the barrier, the kernel is refused.
#[test]
fn lanes_are_not_in_lock_step() {
    let groups = of(LANES, &[("n", 1024)], &device());
    assert_eq!(groups.plan.source.matches(" barrier(CLK_LOCAL_MEM_FENCE);").count(), 2);
    assert_eq!(groups.plan.options, "-cl-std=CL1.2");
    let sub_groups = of(LANES, &[("n", 1024)], &DeviceLimits { sub_group: 32, ..device() });
    let text = &sub_groups.plan.source;
    assert_eq!(text.matches(" sub_group_barrier(CLK_LOCAL_MEM_FENCE);").count(), 2);
    assert_eq!(text.matches(" barrier(").count(), 0);
    assert!(text.starts_with("#pragma OPENCL EXTENSION cl_khr_subgroups : enable\n"));
    assert_eq!(sub_groups.plan.options, "-cl-std=CL3.0");
    for k in [&groups, &sub_groups] {
        assert!((0..2).all(|i| is_missed(&k.ir, i)), "{}", k.plan.source);
    }
    // Sub-groups of 16 cannot hold warps of 32, so the warp size is reduced to 16.
    let short = of(LANES, &[("n", 1024)], &DeviceLimits { sub_group: 16, ..device() });
    assert!(short.plan.source.contains("lane = get_local_id(0) % 16"), "{}", short.plan.source);
    groups.run(&cpu());
    // A barrier of the group is also a barrier of its sub-groups.
    let plan = HostPlan {
        source: text
            .replace("sub_group_barrier", "barrier")
            .replace("#pragma OPENCL EXTENSION cl_khr_subgroups : enable\n", ""),
        options: groups.plan.options.clone(),
        ..(*sub_groups.plan).clone()
    };
    let mut as_groups = sub_groups;
    as_groups.plan = Arc::new(plan);
    as_groups.run(&cpu());
}

/// A sub-group barrier does not order communication between warps.
#[test]
fn warps_meet_at_barriers_of_the_group() {
    let device = DeviceLimits { sub_group: 32, ..device() };
    let program = shipped("golden/sum_5_11");
    let k = compile(&program, &[("n", 1 << 20)], &device).expect("compiles");
    let (_, count) = changed(&k.ir, &|_, s| Some(s.clone()));
    let of_groups = k.plan.source.matches(" barrier(").count();
    // Two before the warp and one after it, and five between the six steps of the warp.
    assert_eq!((of_groups, count), (3, 8), "{}", k.plan.source);
    let weaker = |wanted: usize| {
        let (ir, _) = changed(&k.ir, &|i, s| match s {
            Stmt::Barrier { local, global, .. } if i == wanted => {
                Some(Stmt::Barrier { scope: Scope::Warp, local: *local, global: *global })
            }
            s => Some(s.clone()),
        });
        verify(&ir, &device).is_err()
    };
    let needed: Vec<bool> = (0..count).map(weaker).collect();
    assert_eq!(needed, [true, true, false, false, false, false, false, true]);
}

/// An index without a check is accepted wherever it is, but not if its own numbers were clamped to 64 bits.
#[test]
fn an_index_that_is_not_exact_is_refused() {
    fn move_stores(b: &mut Block, by: &Index) {
        for s in b {
            if let Stmt::Store(_, i, _) = s {
                *i = i.add(by);
            }
            s.blocks_mut().into_iter().for_each(|b| move_stores(b, by));
        }
    }
    let k = of("entry f [n] (xs: [n]f32) : [n]f32 = mapGlb 0 (+ 1) xs", &[("n", 64)], &device());
    let moved = |by: &Index| {
        let mut ir = k.ir.clone();
        ir.kernels.iter_mut().for_each(|k| move_stores(&mut k.body, by));
        verify(&ir, &device())
    };
    let data = || Expr::Arg(0, ScalarType::I32);
    assert!(moved(&Index::data_below(data(), 9).div(3).times(14)).is_ok());
    let refused = moved(&Index::data(data()).div(3).times(14)).expect_err("a clamped product");
    assert_eq!(refused.code, Code::Unproved);
    assert!(refused.message.contains("are too large"), "{}", refused.message);
}
