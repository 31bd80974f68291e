//! Probes of memory: bandwidth of a working set, strided access, latency and local memory.

use super::{Count, Fleet, Interface, Probe, lanes, plan, vector};
use crate::lang::types::ScalarType;

/// The parameter of [`chase`], with a component for each working set.
pub const RING: &str = "%ring";

/// Distance between the elements of a ring, in bytes. No cache line, and no pair of lines that are loaded together,
/// contains two elements.
pub const RING_STEP: usize = 128;

/// The access to a working set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Traffic {
    /// Sums the working set.
    Read,
    /// Fills the working set.
    Write,
    /// Copies the working set elsewhere.
    Copy,
}

/// The floats that probes read.
#[derive(Clone, Copy, Debug)]
pub struct Floats<'a> {
    /// The parameter, of which they are component 0.
    pub param: &'a str,
    /// Number of floats.
    pub len: usize,
}

/// The parts that a work-group accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Parts {
    /// Its own part in every pass, which caches near the group can hold.
    Own,
    /// Its own part in every pass, with a barrier after each pass, so that all work-items of the group are in the
    /// same pass.
    Together,
    /// In each pass the part of a distant group, which only caches shared by all groups can hold.
    InTurns,
}

/// Number of vectors that a work-item loads independently.
const STREAMS: usize = 4;

/// Each group accesses a part of `part` vectors of `width` floats `passes` times. `part` must be a multiple of
/// four times the group size. The work is counted in bytes.
pub fn sweep(
    traffic: Traffic,
    parts: Parts,
    floats: Floats,
    width: usize,
    fleet: Fleet,
    part: Count,
    passes: Count,
) -> Probe {
    let v = vector("float", width);
    let body: String = (0..STREAMS)
        .map(|k| {
            let at = format!("first + i + {k} * get_local_size(0)");
            match traffic {
                Traffic::Read => format!("      s{k} += x[{at}];\n"),
                Traffic::Write => format!("      y[{at}] = ({v})(pass);\n"),
                // The addition keeps compilers from replacing the loop by a copy function.
                Traffic::Copy => format!("      y[{at}] = x[{at}] + ({v})(pass);\n"),
            }
        })
        .collect();
    let (mut start, mut end, mut target) = (String::new(), String::new(), v.clone());
    if traffic == Traffic::Read {
        start = format!("  {v} s0 = 0, s1 = 0, s2 = 0, s3 = 0;\n");
        let sum = lanes("s", width);
        end = format!("  {v} s = s0 + s1 + s2 + s3;\n  y[get_global_id(0)] = {sum};\n");
        target = "float".into();
    }
    let next = match parts {
        Parts::Own => String::new(),
        Parts::Together => "    barrier(CLK_LOCAL_MEM_FENCE);\n".to_owned(),
        // Neighbouring groups may share a compute unit and its cache. Steps of the golden section of the number of
        // groups keep the parts of many passes far apart.
        Parts::InTurns => format!(
            "    group = (group + {}) % get_num_groups(0);\n    first = group * part;\n",
            fleet.groups * 382 / 1000
        ),
    };
    let source = format!(
        "kernel void probe(global const {v} *restrict x, global {target} *restrict y, int part, int passes) {{\n\
         \x20 size_t group = get_group_id(0), first = group * part;\n{start}\
         \x20 for (int pass = 0; pass < passes; pass++) {{\n\
         \x20   for (size_t i = get_local_id(0); i < part; i += {STREAMS} * get_local_size(0)) {{\n\
         {body}    }}\n{next}  }}\n{end}}}\n"
    );
    let written = if traffic == Traffic::Read { fleet.items() } else { floats.len };
    let io = Interface {
        input: Some((floats.param, 0, ScalarType::F32, floats.len)),
        output: (ScalarType::F32, written),
        counts: &[part, passes],
    };
    let moved = if traffic == Traffic::Copy { 8 } else { 4 };
    let vectors = (fleet.groups * part.value()) as f64 * passes.value() as f64;
    Probe { plan: plan(source, &io, fleet, 1), work: vectors * (width * moved) as f64 }
}

/// Each work-item sums `loads` floats; the `j`-th load of item `i` is at `apart * i + step * j`. The work is
/// counted in bytes.
pub fn strided(floats: Floats, fleet: Fleet, apart: Count, step: Count, loads: Count) -> Probe {
    let body: String =
        (0..STREAMS).map(|k| format!("    s{k} += x[at + (j + {k}) * (size_t)step];\n")).collect();
    let source = format!(
        "kernel void probe(global const float *restrict x, global float *restrict y, int apart, int step, int loads) {{\n\
         \x20 size_t at = get_global_id(0) * apart;\n  float s0 = 0, s1 = 0, s2 = 0, s3 = 0;\n\
         \x20 for (size_t j = 0; j < loads; j += {STREAMS}) {{\n{body}  }}\n\
         \x20 y[get_global_id(0)] = s0 + s1 + s2 + s3;\n}}\n"
    );
    let io = Interface {
        input: Some((floats.param, 0, ScalarType::F32, floats.len)),
        output: (ScalarType::F32, fleet.items()),
        counts: &[apart, step, loads],
    };
    let loads = (fleet.items() * loads.value()) as f64;
    Probe { plan: plan(source, &io, fleet, 1), work: loads * 4.0 }
}

/// A single work-item follows `steps` links of the ring of `bytes` bytes (a power of two); each link holds the
/// position of the next. Every run continues where the last one ended, so that short runs do not find their links
/// in a cache. The work is counted in links.
pub fn chase(component: usize, bytes: usize, steps: Count) -> Probe {
    // The mask turns whatever another kernel left in the buffer into a position in the ring.
    let mask = (bytes - 1) & !(RING_STEP - 1);
    let source = format!(
        "kernel void probe(global const int *restrict x, global int *restrict y, int steps) {{\n\
         \x20 int at = y[0] & {};\n  for (int i = 0; i < steps; i++) at = x[at];\n  y[0] = at;\n}}\n",
        mask / 4
    );
    let io = Interface {
        input: Some((RING, component, ScalarType::I32, bytes / 4)),
        output: (ScalarType::I32, 1),
        counts: &[steps],
    };
    let alone = Fleet { groups: 1, group: 1 };
    Probe { plan: plan(source, &io, alone, 1), work: steps.value() as f64 }
}

/// Returns the ring for [`chase`]: a link every [`RING_STEP`] bytes, in an order that no prefetcher can predict, in
/// a single cycle.
pub fn ring(bytes: usize) -> Vec<i32> {
    let step = RING_STEP / 4;
    let count = (bytes / RING_STEP).max(1);
    let mut next: Vec<usize> = (0..count).collect();
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for i in (1..count).rev() {
        // Sattolo's algorithm: swapping only with earlier positions gives a single cycle.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        next.swap(i, (state >> 33) as usize % i);
    }
    let mut ring = vec![0; bytes / 4];
    for (i, n) in next.into_iter().enumerate() {
        // Rings have fewer than 2^31 elements.
        if let Some(link) = ring.get_mut(i * step) {
            *link = i32::try_from(n * step).unwrap_or(0);
        }
    }
    ring
}

/// Number of floats of local memory that [`local`] uses.
const LOCAL: usize = 2048;

/// Work-items read vectors of `width` floats from local memory; neighbouring work-items read `stride` vectors
/// apart. The work is counted in bytes.
pub fn local(fleet: Fleet, width: usize, stride: Count, trips: Count) -> Probe {
    /// Number of reads in one iteration.
    const READS: usize = 8;
    let v = vector("float", width);
    let len = LOCAL / width;
    let body: String =
        (0..READS).map(|k| format!("    s{} += t[at + {k}];\n", k % STREAMS)).collect();
    let sum = lanes("s", width);
    let source = format!(
        "kernel void probe(global float *restrict y, int stride, int trips) {{\n\
         \x20 local {v} t[{len} + {READS}];\n\
         \x20 for (int i = get_local_id(0); i < {len} + {READS}; i += get_local_size(0)) t[i] = ({v})(i);\n\
         \x20 barrier(CLK_LOCAL_MEM_FENCE);\n\
         \x20 {v} s0 = 0, s1 = 0, s2 = 0, s3 = 0;\n\
         \x20 int at = (get_local_id(0) * stride) & {mask};\n\
         \x20 for (int i = 0; i < trips; i++) {{\n{body}    at = (at + {READS}) & {mask};\n  }}\n\
         \x20 {v} s = s0 + s1 + s2 + s3;\n  y[get_global_id(0)] = {sum};\n}}\n",
        mask = len - 1,
    );
    let io = Interface {
        input: None,
        output: (ScalarType::F32, fleet.items()),
        counts: &[stride, trips],
    };
    let reads = fleet.items() as f64 * trips.value() as f64 * READS as f64;
    Probe { plan: plan(source, &io, fleet, 1), work: reads * (4 * width) as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_one_circle() {
        for bytes in [128, 256, 4096, 1 << 16] {
            let ring = ring(bytes);
            let (mut at, mut seen) = (0, 0);
            loop {
                at = usize::try_from(ring[at]).expect("a place");
                seen += 1;
                if at == 0 {
                    break;
                }
            }
            assert_eq!((ring.len(), seen), (bytes / 4, bytes / RING_STEP));
        }
    }
}
