//! What the caller decides about kernels: limits of the device, and options of code generation.

use crate::calculus::scalar::Lit;
use crate::device::{DeviceInfo, DeviceKind};
use crate::diag::Limits;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The extensions of OpenCL with atomic operations on 64-bit integers.
pub const ATOMICS_64: [&str; 2] = ["cl_khr_int64_base_atomics", "cl_khr_int64_extended_atomics"];

/// Limits and properties of a device that kernels depend on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceLimits {
    /// Maximum number of work-items in a work-group.
    pub max_work_group_size: usize,
    /// Maximum number of work-items of a work-group in each dimension.
    pub max_item_sizes: [usize; 3],
    /// Bytes of local memory of a work-group.
    pub local_mem_bytes: usize,
    /// Number of consecutive work-items in a sub-group; 0 if the device has no sub-groups.
    pub sub_group: usize,
    /// Number of compute units. Work that the term does not group is spread over at least this many
    /// groups.
    pub compute_units: usize,
    /// Width in bytes of the widest access that combines a work-item's accesses to neighbouring
    /// scalars; 0 if the device does not gain from wide accesses.
    pub access_bytes: usize,
    /// Whether there are atomic operations on 64-bit integers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub atomics_64: bool,
    /// Whether there is arithmetic of half precision.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub halves: bool,
    /// Whether blocks of global memory can be copied to local memory without registers in between, while a group goes on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub copies_ahead: bool,
    /// Number of work-groups, of any size, that are resident at once and go on while they wait for each other; 0 if the device does
    /// not promise that of several.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub resident_groups: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(n: &usize) -> bool {
    *n == 0
}

impl DeviceLimits {
    /// Whether work-items of a group combine values in local memory faster than each in memory of its own: GPUs, which are
    /// the devices that gain from wide accesses.
    pub fn shares_local_memory(&self) -> bool {
        self.access_bytes > 0
    }

    /// Whether the host should launch kernels before it knows whether a loop still goes on: on GPUs, which idle while a host
    /// waits. A CPU waits for a check no longer than for a launch.
    pub fn launches_ahead(&self) -> bool {
        self.access_bytes > 0
    }

    /// The limits of a described device.
    pub fn of(device: &DeviceInfo) -> DeviceLimits {
        DeviceLimits {
            max_work_group_size: device.max_work_group_size,
            max_item_sizes: device.max_work_item_sizes,
            local_mem_bytes: usize::try_from(device.local_bytes_of_arrays()).unwrap_or(usize::MAX),
            sub_group: device.capabilities.sub_group as usize,
            compute_units: device.compute_units as usize,
            // A CPU broadcasts a scalar from memory to all lanes at no cost; broadcasting one lane
            // of a vector is not free.
            access_bytes: if device.kind == DeviceKind::Gpu { 16 } else { 0 },
            halves: device.fp16,
            copies_ahead: device.capabilities.copies_ahead,
            resident_groups: match device.capabilities.resident_groups {
                true => device.compute_units as usize,
                false => 0,
            },
            atomics_64: ATOMICS_64.iter().all(|e| device.extensions.iter().any(|own| own == e)),
        }
    }
}

impl Default for DeviceLimits {
    /// Limits that nearly every device satisfies.
    fn default() -> Self {
        DeviceLimits {
            max_work_group_size: 256,
            max_item_sizes: [256, 256, 64],
            local_mem_bytes: 32 << 10,
            sub_group: 0,
            compute_units: 8,
            access_bytes: 0,
            atomics_64: false,
            halves: false,
            copies_ahead: false,
            resident_groups: 0,
        }
    }
}

/// Parameters of code generation besides the term and its sizes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// Kernels are called `NAME_0`, `NAME_1`, ...
    pub name: String,
    /// The device's limits.
    pub device: DeviceLimits,
    /// Maximum number of scalars, including those in vectors, of an array that is kept in
    /// registers.
    pub private_elements: usize,
    /// Maximum number of copies of a loop body that unrolled loops, nested ones multiplied, may
    /// make.
    pub unroll: usize,
    /// Maximum number of statements of an unrolled loop.
    #[serde(default = "unrolled_statements")]
    pub unrolled_statements: usize,
    /// Preferred work-group size of `mapGlb` kernels.
    pub global_group: usize,
    /// Whether a product and a sum may become one `fma`, as they may if `relaxed` is set.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub contract: bool,
    /// Whether floating-point operations may be reassociated.
    pub relaxed: bool,
    /// Whether data-dependent indices and divisors are used without checks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unchecked: bool,
    /// The values that scalar arguments are expected to have, by parameter and component. The cost model alone uses them, so
    /// they are no part of a plan.
    #[serde(skip)]
    pub expected: BTreeMap<(String, usize), Lit>,
}

fn unrolled_statements() -> usize {
    Limits::DEFAULT.unrolled_statements
}

impl Options {
    /// Options for an entry of this name, with the budgets of `limits`.
    pub fn new(name: &str, device: DeviceLimits, limits: &Limits) -> Options {
        Options {
            name: name.to_owned(),
            device,
            private_elements: limits.private_elements,
            unroll: limits.unroll,
            unrolled_statements: limits.unrolled_statements,
            global_group: 64,
            contract: false,
            relaxed: false,
            unchecked: false,
            expected: BTreeMap::new(),
        }
    }

    /// The same options, but with every array of a work-item in memory.
    pub(super) fn without_register_arrays(&self) -> Options {
        Options { private_elements: 1, ..self.clone() }
    }

    /// Returns the work-group size of a `mapGlb` kernel: the preferred size, reduced so that every
    /// compute unit gets enough groups.
    pub(super) fn local_size(&self, grid: [usize; 3]) -> usize {
        let others = grid[1].saturating_mul(grid[2]).max(1);
        let wanted_groups = (4 * self.device.compute_units).div_ceil(others).max(1);
        let most = self
            .global_group
            .min(self.device.max_work_group_size)
            .min(self.device.max_item_sizes[0])
            .min(grid[0].div_ceil(wanted_groups))
            .max(1);
        let power = 1usize << most.ilog2();
        if power >= 32 {
            // Whole warps; the last group is guarded.
            return power;
        }
        (power / 2 + 1..=power).rev().find(|d| grid[0].is_multiple_of(*d)).unwrap_or(power)
    }
}
