//! Finds the sub-group size of a device, by a kernel that reports the position of each work-item.

use super::Runtime;
use crate::diag::Result;
use crate::lang::types::ScalarType;
use crate::opencl::host::{HostArray, Inputs};
use crate::opencl::plan::{Arg, Buffer, HostPlan, Launch, Role};
use crate::opencl::print::SUB_GROUP_OPTIONS;
use std::sync::Arc;

const EXTENSION: &str = "cl_khr_subgroups";
/// Number of work-items in the probe's single group: several sub-groups on every device that has sub-groups.
const ITEMS: usize = 256;

fn probe() -> HostPlan {
    HostPlan {
        source: format!(
            "#pragma OPENCL EXTENSION {EXTENSION} : enable
kernel __attribute__((reqd_work_group_size({ITEMS}, 1, 1)))
void probe(global int* restrict where) {{
    const int i = get_local_id(0);
    sub_group_barrier(CLK_LOCAL_MEM_FENCE);
    where[3 * i] = get_sub_group_size();
    where[3 * i + 1] = get_sub_group_id();
    where[3 * i + 2] = get_sub_group_local_id();
}}
"
        ),
        options: SUB_GROUP_OPTIONS.to_owned(),
        buffers: vec![Buffer {
            name: "where".into(),
            elem: ScalarType::I32,
            len: 3 * ITEMS,
            role: Role::Output(0),
        }],
        scalars: vec![],
        launches: vec![Launch {
            kernel: "probe".into(),
            args: vec![Arg::Buffer(0)],
            global: [ITEMS, 1, 1],
            local: [ITEMS, 1, 1],
        }],
        control: vec![],
        faults: vec![],
    }
}

/// Returns the sub-group size, given the size, sub-group and position that each work-item reported. Returns 0
/// unless all sub-groups have the same size and consist of consecutive work-items.
fn width(places: &[i32]) -> u32 {
    let Some(&size) = places.first() else { return 0 };
    let consecutive = size > 0
        && (0..).zip(places.chunks(3)).all(|(i, place)| place == [size, i / size, i % size]);
    if consecutive { size.unsigned_abs() } else { 0 }
}

/// Returns the sub-group size of the device; 0 if it has no sub-groups, or none of consecutive work-items.
pub(super) fn size(rt: &Runtime) -> u32 {
    let run = || -> Result<Vec<i32>> {
        let nothing = rt.upload(&Inputs::default())?;
        let (_, outputs) = rt.prepare(rt.build(&Arc::new(probe()))?, &nothing)?.check(rt)?;
        Ok(outputs.first().and_then(HostArray::to_vec).unwrap_or_default())
    };
    if !rt.info.extensions.iter().any(|e| e == EXTENSION) {
        return 0;
    }
    run().map_or(0, |places| width(&places))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_consecutive_sub_groups_of_one_size_count() {
        let places = |f: fn(i32) -> [i32; 3]| (0..64).flat_map(f).collect::<Vec<_>>();
        assert_eq!(width(&places(|i| [32, i / 32, i % 32])), 32);
        assert_eq!(width(&places(|i| [1, i, 0])), 1);
        assert_eq!(width(&places(|i| [32, i % 2, i / 2])), 0);
        assert_eq!(width(&places(|i| [if i < 32 { 32 } else { 16 }, i / 32, i % 32])), 0);
        assert_eq!(width(&[]), 0);
    }
}
