//! Probes of execution overheads: launches, work-groups, work-items, loops, barriers and atomics.

use super::{Count, Fleet, Interface, Probe, plan};
use crate::lang::types::ScalarType;
use crate::opencl::plan::HostPlan;
use std::sync::Arc;

/// Launches a nearly empty kernel `count` times in sequence. The work is counted in launches.
pub fn launches(fleet: Fleet, count: usize) -> Probe {
    // No work-item has the number that the argument gives, so the store is compiled but never executed.
    let source = "kernel void probe(global int *restrict y, int never) {\n\
                  \x20 if (get_global_id(0) == (size_t)never * 4096) y[0] = 1;\n}\n";
    let io = Interface {
        input: None,
        output: (ScalarType::I32, 1),
        counts: &[Count::power(Count::MOST)],
    };
    Probe { plan: plan(source.into(), &io, fleet, count), work: count as f64 }
}

/// A loop that is not unrolled, with `pairs` pairs of dependent operations. The work is counted in iterations.
pub fn iterations(fleet: Fleet, pairs: usize, trips: Count) -> Probe {
    let work = fleet.items() as f64 * trips.value() as f64;
    Probe { plan: looping(fleet, pairs, trips, 1), work }
}

/// Launches a kernel that takes some time `count` times in sequence. The work is counted in launches.
pub fn sequence(fleet: Fleet, trips: Count, count: usize) -> Probe {
    Probe { plan: looping(fleet, 1, trips, count), work: count as f64 }
}

fn looping(fleet: Fleet, pairs: usize, trips: Count, launches: usize) -> Arc<HostPlan> {
    let body = " s = (s ^ i) + 7;".repeat(pairs);
    let source = format!(
        "kernel void probe(global int *restrict y, int trips) {{\n\
         \x20 int s = get_global_id(0);\n\
         #pragma unroll 1\n\
         \x20 for (int i = 0; i < trips; i++) {{{body} }}\n\
         \x20 y[get_global_id(0)] = s;\n}}\n"
    );
    let io = Interface { input: None, output: (ScalarType::I32, fleet.items()), counts: &[trips] };
    plan(source, &io, fleet, launches)
}

/// Barriers, between which each work-item reads what its neighbour in the group wrote. The work is the number of
/// work-items times the number of barriers.
pub fn barriers(fleet: Fleet, trips: Count) -> Probe {
    let group = fleet.group;
    let source = format!(
        "kernel void probe(global int *restrict y, int trips) {{\n\
         \x20 local int t[{group}];\n  int s = get_local_id(0);\n\
         \x20 for (int i = 0; i < trips; i++) {{\n\
         \x20   t[get_local_id(0)] = s;\n    barrier(CLK_LOCAL_MEM_FENCE);\n\
         \x20   s += t[get_local_id(0) ^ 1];\n    barrier(CLK_LOCAL_MEM_FENCE);\n  }}\n\
         \x20 y[get_global_id(0)] = s;\n}}\n"
    );
    let io = Interface { input: None, output: (ScalarType::I32, fleet.items()), counts: &[trips] };
    let work = fleet.items() as f64 * trips.value() as f64 * 2.0;
    Probe { plan: plan(source, &io, fleet, 1), work }
}

/// Atomic additions to global memory: all to one address, or each work-item's to its own. The work is counted in
/// additions.
pub fn atomics(fleet: Fleet, one_place: bool, trips: Count) -> Probe {
    let at = if one_place { "0" } else { "get_global_id(0)" };
    let source = format!(
        "kernel void probe(global volatile int *restrict y, int trips) {{\n\
         \x20 for (int i = 0; i < trips; i++) atomic_add(y + {at}, i);\n}}\n"
    );
    let io = Interface { input: None, output: (ScalarType::I32, fleet.items()), counts: &[trips] };
    let work = fleet.items() as f64 * trips.value() as f64;
    Probe { plan: plan(source, &io, fleet, 1), work }
}
