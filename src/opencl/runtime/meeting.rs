//! The probe for work-groups that wait for each other.
//!
//! OpenCL promises no progress of a work-group that waits for another one. A device passes if work-groups of the largest size, one for
//! each compute unit, meet many times, and see what the others have stored. They do not wait for ever, so that a device that does
//! not pass is found out.

use super::Runtime;
use crate::device::DeviceKind;
use crate::diag::Result;
use crate::lang::types::ScalarType;
use crate::opencl::host::Inputs;
use crate::opencl::plan::{Arg, Buffer, HostPlan, Launch, Role};
use std::sync::Arc;

/// How often the work-groups meet.
const MEETINGS: usize = 64;

/// Most rounds in which a work-group looks whether the others have come.
const PATIENCE: usize = 100_000;

/// Each work-group passes a number on to the next one at each meeting. In the end, it is the number of meetings.
fn probe(groups: usize, items: usize) -> HostPlan {
    let source = format!(
        "kernel __attribute__((reqd_work_group_size({items}, 1, 1)))
void probe(global int* out, global int* passed, volatile global uint* met) {{
    const int own = get_group_id(0), next = (own + 1) % {groups};
    int number = 0;
    bool came = true;
    for (int k = 0; k < {MEETINGS}; ++k) {{
        if (get_local_id(0) == 0) passed[next * 2 + k % 2] = number + 1;
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (get_local_id(0) == 0) {{
            asm volatile(\"fence.acq_rel.gpu;\" ::: \"memory\");
            const uint before = atomic_add(met, own == 0 ? 0x80000001u - {groups} : 1u);
            int tries = 0;
            while (((*met ^ before) & 0x80000000u) == 0 && tries < {PATIENCE}) ++tries;
            came = came && tries < {PATIENCE};
            asm volatile(\"fence.acq_rel.gpu;\" ::: \"memory\");
        }}
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        number = passed[own * 2 + k % 2];
    }}
    if (get_local_id(0) == {items} - 1 || !came) out[own] = came ? number : -1;
}}
"
    );
    let buffer = |name: &str, elem, len, role| Buffer { name: name.into(), elem, len, role };
    HostPlan {
        source,
        options: "-cl-std=CL1.2".into(),
        buffers: vec![
            buffer("out", ScalarType::I32, groups, Role::Output(0)),
            buffer("passed", ScalarType::I32, 2 * groups, Role::Temp),
            buffer("met", ScalarType::U32, 1, Role::Meeting),
        ],
        scalars: vec![],
        launches: vec![Launch {
            kernel: "probe".into(),
            args: [0, 1, 2].map(Arg::Buffer).to_vec(),
            global: [groups * items, 1, 1],
            local: [items, 1, 1],
        }],
        control: vec![],
        faults: vec![],
    }
}

/// Whether work-groups, one for each compute unit, wait for each other, and see what the others have stored.
pub(super) fn available(rt: &Runtime) -> bool {
    let groups = rt.info.compute_units as usize;
    let items = rt.info.max_work_group_size.min(rt.info.max_work_item_sizes[0]);
    let run = || -> Result<bool> {
        let nothing = rt.upload(&Inputs::default())?;
        let plan = Arc::new(probe(groups, items));
        let (_, outputs) = rt.prepare(rt.build(&plan)?, &nothing)?.check(rt)?;
        let right = |out: &crate::opencl::host::HostArray| {
            (0..groups).all(|at| out.as_int(at) == Some(MEETINGS as i128))
        };
        Ok(outputs.first().is_some_and(right))
    };
    let may = rt.info.kind == DeviceKind::Gpu && rt.info.platform.contains("NVIDIA");
    may && groups > 1 && run().unwrap_or(false)
}
