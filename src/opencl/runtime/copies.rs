//! Finds out whether a device has the copies of [`copies`], by a kernel that copies a small array.

use super::Runtime;
use crate::diag::Result;
use crate::lang::types::ScalarType;
use crate::opencl::host::Inputs;
use crate::opencl::plan::{Arg, Buffer, HostPlan, Launch, Role};
use crate::opencl::print::copies;
use std::sync::Arc;

/// Work-items of the probe, each with four numbers: two warps.
const ITEMS: usize = 64;

/// A group stores numbers, a second kernel copies them to local memory, and each work-item reads those of another one. Numbers of every
/// second work-item are left out.
fn probe() -> HostPlan {
    let copy = copies::call(16, "to[l]", "from[l]", Some("l % 2 == 0"));
    let source = format!(
        "{}
kernel __attribute__((reqd_work_group_size({ITEMS}, 1, 1)))
void numbers(global int4* from) {{
    const int l = get_local_id(0);
    from[l] = (int4)(4 * l, 4 * l + 1, 4 * l + 2, 4 * l + 3);
}}

kernel __attribute__((reqd_work_group_size({ITEMS}, 1, 1)))
void probe(global const int4* restrict from, global int4* restrict out) {{
    local int4 to[{ITEMS}];
    const int l = get_local_id(0);
    {copy}
    {}
    barrier(CLK_LOCAL_MEM_FENCE);
    out[l] = to[{ITEMS} - 1 - l];
}}
",
        copies::DEFINITIONS,
        copies::arrive(1),
    );
    let buffer = |name: &str, role| Buffer {
        name: name.into(),
        elem: ScalarType::I32,
        len: 4 * ITEMS,
        role,
    };
    let launch = |kernel: &str, args| Launch {
        kernel: kernel.into(),
        args,
        global: [ITEMS, 1, 1],
        local: [ITEMS, 1, 1],
    };
    HostPlan {
        source,
        options: "-cl-std=CL1.2".into(),
        buffers: vec![buffer("from", Role::Temp), buffer("out", Role::Output(0))],
        scalars: vec![],
        launches: vec![
            launch("numbers", vec![Arg::Buffer(0)]),
            launch("probe", vec![Arg::Buffer(0), Arg::Buffer(1)]),
        ],
        control: vec![],
        faults: vec![],
    }
}

/// The number that is right at a place.
fn expected(at: usize) -> usize {
    let from = ITEMS - 1 - at / 4;
    if from.is_multiple_of(2) { 4 * from + at % 4 } else { 0 }
}

/// Whether the device has the copies, and they arrive.
pub(super) fn available(rt: &Runtime) -> bool {
    let run = || -> Result<bool> {
        let nothing = rt.upload(&Inputs::default())?;
        let (_, outputs) = rt.prepare(rt.build(&Arc::new(probe()))?, &nothing)?.check(rt)?;
        Ok(outputs.first().is_some_and(|out| {
            (0..out.len()).all(|at| {
                out.as_int(at).and_then(|x| usize::try_from(x).ok()) == Some(expected(at))
            })
        }))
    };
    rt.info.platform.contains("NVIDIA") && run().is_ok_and(|right| right)
}
