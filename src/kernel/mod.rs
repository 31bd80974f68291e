//! Kernels: from low-level terms to structured code over buffers, registers and indices.
//!
//! [`lower`] gives a [`ir::Program`], checked by [`verify::verify`]; [`check_nesting`] tells early
//! whether a term respects the device hierarchy. Nothing here prints OpenCL or talks to a driver.

mod accumulator;
mod ahead;
mod barrier;
mod chain;
mod checks;
mod common;
mod contract;
mod dest;
mod disjoint;
mod display;
mod estimate;
mod gather;
mod hazard;
mod hoist;
mod host;
mod improve;
pub mod index;
pub mod ir;
mod irregular;
mod kept;
mod leaf;
mod loops;
mod lower;
mod memory;
mod nest;
pub mod profile;
mod race;
mod reduce;
mod reuse;
mod split;
mod spread;
mod stage;
mod tidy;
mod together;
pub mod verify;
mod view;
mod walk;
mod warp;
mod widen;

pub use estimate::{Prediction, estimate};
pub use nest::check_nesting;

use view::Stop;

use crate::calculus::size::SizeEnv;
use crate::calculus::term::Term;
use crate::device::{DeviceInfo, DeviceKind};
use crate::diag::{Code, Diagnostic, Limits};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What kernels may use on a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceLimits {
    /// Most work-items in a work-group.
    pub max_work_group_size: usize,
    /// Most work-items of a work-group in each dimension.
    pub max_item_sizes: [usize; 3],
    /// Local memory of a work-group.
    pub local_mem_bytes: usize,
    /// Work-items of a sub-group, which are consecutive; 0 where the device has no sub-groups.
    pub sub_group: usize,
    /// Compute units: work that is not grouped by the term is spread over at least so many groups.
    pub compute_units: usize,
    /// Bytes of the widest access to which a work-item's accesses of neighbouring scalars are joined; 0 where
    /// that gains nothing.
    pub access_bytes: usize,
}

impl DeviceLimits {
    /// The limits of a described device.
    pub fn of(device: &DeviceInfo) -> DeviceLimits {
        DeviceLimits {
            max_work_group_size: device.max_work_group_size,
            max_item_sizes: device.max_work_item_sizes,
            local_mem_bytes: usize::try_from(device.local_mem_bytes).unwrap_or(usize::MAX),
            sub_group: device.capabilities.sub_group as usize,
            compute_units: device.compute_units as usize,
            // A CPU reads a scalar into all lanes for free, and parts of a vector not.
            access_bytes: if device.kind == DeviceKind::Gpu { 16 } else { 0 },
        }
    }
}

impl Default for DeviceLimits {
    /// What nearly every device has.
    fn default() -> Self {
        DeviceLimits {
            max_work_group_size: 256,
            max_item_sizes: [256, 256, 64],
            local_mem_bytes: 32 << 10,
            sub_group: 0,
            compute_units: 8,
            access_bytes: 0,
        }
    }
}

/// What decides the code besides the term and its sizes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// Kernels are called `NAME_0`, `NAME_1`, ...
    pub name: String,
    /// The device's limits.
    pub device: DeviceLimits,
    /// Most scalars of an array kept in registers, those of vectors counted.
    pub private_elements: usize,
    /// Most copies of its body that an unrolled loop and those around it make.
    pub unroll: usize,
    /// Wanted work-group size of `mapGlb` kernels.
    pub global_group: usize,
    /// Whether the OpenCL compiler may contract and reassociate floating-point operations.
    pub relaxed: bool,
    /// Whether indices and divisors that data decide are used as they are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unchecked: bool,
}

impl Options {
    /// Options for an entry of this name, with the budgets of `limits`.
    pub fn new(name: &str, device: DeviceLimits, limits: &Limits) -> Options {
        Options {
            name: name.to_owned(),
            device,
            private_elements: limits.private_elements,
            unroll: limits.unroll,
            global_group: 64,
            relaxed: false,
            unchecked: false,
        }
    }

    /// The same, with every array of a work-item in memory.
    fn without_register_arrays(&self) -> Options {
        Options { private_elements: 1, ..self.clone() }
    }

    /// Work-group size of a `mapGlb` kernel: as wanted, but enough groups for every compute unit.
    fn local_size(&self, grid: [usize; 3]) -> usize {
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

/// The kernels before they are verified. An array of a group is in registers until some work-item reads what another has.
fn program(term: &Term, env: &SizeEnv, options: &Options) -> view::Step<ir::Program> {
    let mut passed_on = BTreeSet::new();
    loop {
        match host::program(term, env, options, &passed_on) {
            Err(Stop::Elsewhere(of)) if passed_on.insert(of.clone()) => {}
            done => return done,
        }
    }
}

/// The kernels of a low-level term `() -> T`, given a value for every size symbol in it.
///
/// # Errors
/// When the term is not low-level ([`Code::BadTerm`], [`Code::IllNested`]), when no kernel is
/// generated for something yet ([`Code::NotYetCompiled`]), or when it exceeds a limit ([`Code::KernelLimit`]).
pub fn lower(
    term: &Term,
    env: &SizeEnv,
    options: &Options,
) -> Result<ir::Program, Box<Diagnostic>> {
    check_nesting(term)?;
    let program = program(term, env, options).or_else(|s| match s {
        // An array in registers is indexed by what does not become constant: keep arrays in private memory.
        Stop::Dynamic(_) => program(term, env, &options.without_register_arrays()),
        s => Err(s),
    });
    let program = program.map_err(|s| match s {
        Stop::Error(d) => d,
        Stop::Elsewhere(t) => Box::new(Diagnostic::error(
            Code::Internal,
            format!("`{t}` is neither in registers nor in local memory"),
        )),
        Stop::Dynamic(i) => Box::new(Diagnostic::error(
            Code::KernelLimit,
            format!("registers are indexed by `{i}`, which is not constant after unrolling"),
        )),
    })?;
    verify::verify(&program, &options.device)?;
    Ok(program)
}
