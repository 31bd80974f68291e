//! Yardsticks: hand-written kernels that measure a device's memory bandwidth. Generated kernels are compared with
//! them.
//!
//! Each yardstick is an ordinary [`HostPlan`], so that a benchmark can interleave it with candidates, in the same
//! process and on the same input. Which yardstick is fastest differs by device and is decided by measurement. This
//! module knows nothing about programs, and runs nothing.

use super::plan::{Arg, Buffer, HostPlan, Launch, Role};
use crate::device::DeviceInfo;
use crate::lang::types::ScalarType;
use std::fmt::Write;
use std::sync::Arc;

/// The parameter that every yardstick reads: an array of `f32`.
pub const INPUT: &str = "x";

/// A program that uses `__builtin_nontemporal_store` as generated kernels do, to test for compiler support.
pub const NONTEMPORAL_PROBE: &str = "\
kernel void probe(global const float16 *restrict x, global float16 *restrict y) {
  size_t i = get_global_id(0);
  __builtin_nontemporal_store(x[i], y + i);
}
";

/// The memory traffic of a yardstick.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Traffic {
    /// Reads an array and writes it elsewhere, in standard OpenCL C.
    Copy,
    /// The same, with stores that bypass the caches, if the compiler has them.
    CopyNontemporal,
    /// Reads an array and sums it.
    Read,
}

/// One hand-written kernel.
#[derive(Clone, Debug)]
pub struct Yardstick {
    /// What it measures.
    pub traffic: Traffic,
    /// A short description, such as `float16, 8 work-items, contiguous`.
    pub name: String,
    /// Number of bytes read and written in one run.
    pub bytes: u64,
    /// How to run it.
    pub plan: Arc<HostPlan>,
}

/// How work-items divide an array of vectors among themselves.
#[derive(Clone, Copy)]
enum Walk {
    /// Work-groups of the given size, with one work-item for each vector.
    Flat(usize),
    /// The given numbers of work-groups and of work-items in each; the stride of each work-item is the number of
    /// all work-items.
    Strided(usize, usize),
    /// The given number of groups of one work-item, each with a contiguous chunk, in the given number of
    /// interleaved streams.
    Chunks(usize, usize),
}

/// Returns every yardstick for `len` floats on a device.
pub fn yardsticks(info: &DeviceInfo, len: usize) -> Vec<Yardstick> {
    let units = info.compute_units.max(1) as usize;
    let group = 256.min(info.max_work_group_size);
    let chunks = |per_unit: usize| units * per_unit;
    let mut all = vec![];
    let mut copy = |width, walk| {
        all.extend(yardstick(Traffic::Copy, len, width, walk));
        if info.capabilities.nontemporal {
            all.extend(yardstick(Traffic::CopyNontemporal, len, width, walk));
        }
    };
    for width in [1, 4, 16] {
        copy(width, Walk::Flat(group));
    }
    copy(4, Walk::Strided(chunks(16), group));
    for per_unit in [1, 4, 16] {
        copy(16, Walk::Chunks(chunks(per_unit), 1));
    }
    copy(16, Walk::Chunks(chunks(1), 4));
    let mut read = |width, walk| all.extend(yardstick(Traffic::Read, len, width, walk));
    for per_unit in [8, 16, 32, 64] {
        read(4, Walk::Strided(chunks(per_unit), group));
    }
    for per_unit in [1, 4, 16] {
        read(16, Walk::Chunks(chunks(per_unit), 1));
        read(16, Walk::Chunks(chunks(per_unit), 4));
    }
    all
}

/// Returns one yardstick; `None` if the array is too short for it.
fn yardstick(traffic: Traffic, len: usize, width: usize, walk: Walk) -> Option<Yardstick> {
    /// Number of vectors that a work-item handles in one iteration of its loop.
    const STEP: usize = 4;
    let vectors = len / width;
    let float = if width == 1 { "float".to_string() } else { format!("float{width}") };
    let (global, local, used, name) = match walk {
        Walk::Flat(group) => {
            let items = vectors / group * group;
            (items, group, items, format!("{float}, one for each work-item"))
        }
        Walk::Strided(groups, group) => {
            let items = groups * group;
            let used = vectors / (items * STEP) * (items * STEP);
            (items, group, used, format!("{float}, {groups} work-groups of {group}, strided"))
        }
        Walk::Chunks(items, streams) => {
            let used = vectors / (items * STEP) * (items * STEP);
            let how = if streams > 1 { format!(" in {streams} streams") } else { String::new() };
            (items, 1, used, format!("{float}, {items} work-items, contiguous{how}"))
        }
    };
    if used == 0 || global == 0 {
        return None;
    }
    // Position of the first vector; end and stride of the loop; and the distance between the vectors of one
    // iteration.
    let (start, end, stride, apart) = match walk {
        Walk::Flat(_) => ("get_global_id(0)".to_string(), String::new(), 0, 0),
        Walk::Strided(..) => ("get_global_id(0)".into(), format!("{used}"), global * STEP, global),
        Walk::Chunks(items, streams) => {
            let chunk = used / items;
            let (length, apart, stride) =
                if streams > 1 { (chunk / STEP, chunk / STEP, 1) } else { (chunk, 1, STEP) };
            (format!("get_global_id(0) * {chunk}"), format!("first + {length}"), stride, apart)
        }
    };
    let vectors_in_step = if stride == 0 { 1 } else { STEP };
    let at = |k: usize| {
        if k == 0 { "i".to_string() } else { format!("i + {}", k * apart) }
    };
    let mut body = String::new();
    let mut declarations = String::new();
    let mut finish = String::new();
    for k in 0..vectors_in_step {
        let i = at(k);
        // Writing to a `String` cannot fail.
        let _ = match traffic {
            Traffic::Copy => writeln!(body, "    y[{i}] = x[{i}];"),
            Traffic::CopyNontemporal => {
                writeln!(body, "    __builtin_nontemporal_store(x[{i}], y + ({i}));")
            }
            Traffic::Read => {
                let _ = writeln!(declarations, "  {float} s{k} = 0;");
                writeln!(body, "    s{k} += x[{i}];")
            }
        };
    }
    if let Traffic::Read = traffic {
        let sum: Vec<String> = (0..vectors_in_step).map(|k| format!("s{k}")).collect();
        let lanes: Vec<String> = (0..width).map(|l| format!("s.s{l:x}")).collect();
        let _ = writeln!(finish, "  {float} s = {};", sum.join(" + "));
        let _ = writeln!(finish, "  y[get_global_id(0)] = {};", lanes.join(" + "));
    }
    let target = match traffic {
        Traffic::Copy | Traffic::CopyNontemporal => float.as_str(),
        Traffic::Read => "float",
    };
    let run = if stride == 0 {
        format!("  size_t i = {start};\n  {{\n{body}  }}\n")
    } else {
        format!(
            "  size_t first = {start};\n  for (size_t i = first; i < {end}; i += {stride}) {{\n{body}  }}\n"
        )
    };
    let source = format!(
        "kernel void yardstick(global const {float} *restrict x, global {target} *restrict y) {{\n\
         {declarations}{run}{finish}}}\n"
    );
    let read = (used * width * 4) as u64;
    let (bytes, written) = match traffic {
        Traffic::Copy | Traffic::CopyNontemporal => (2 * read, len),
        Traffic::Read => (read + 4 * global as u64, global),
    };
    let buffer =
        |name: &str, len, role| Buffer { name: name.into(), elem: ScalarType::F32, len, role };
    let plan = HostPlan {
        source,
        options: String::new(),
        buffers: vec![
            buffer("x", len, Role::Input(INPUT.into(), 0)),
            buffer("y", written, Role::Output(0)),
        ],
        scalars: vec![],
        launches: vec![Launch {
            kernel: "yardstick".into(),
            args: vec![Arg::Buffer(0), Arg::Buffer(1)],
            global: [global, 1, 1],
            local: [local, 1, 1],
        }],
        control: vec![],
        faults: vec![],
    };
    let name = match traffic {
        Traffic::CopyNontemporal => format!("{name}, non-temporal"),
        Traffic::Copy | Traffic::Read => name,
    };
    Some(Yardstick { traffic, name, bytes, plan: Arc::new(plan) })
}
