//! Kernel generation: lowers terms to structured code over buffers, registers and indices.
//!
//! [`lower`] turns a low-level term into an [`ir::Program`] and checks it with [`verify::verify`].
//! [`check_nesting`] tells early whether a term respects the device hierarchy. Nothing in this
//! module prints OpenCL or talks to a driver.

mod accumulator;
mod ahead;
mod apply;
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
mod interleave;
pub mod ir;
mod irregular;
mod kept;
mod leaf;
mod loops;
mod lower;
mod memory;
mod nest;
mod op_kind;
mod options;
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
pub use options::{DeviceLimits, Options};

use view::Stop;

use crate::calculus::size::SizeEnv;
use crate::calculus::term::Term;
use crate::diag::{Code, Diagnostic};
use std::collections::BTreeSet;

/// Generates the kernels without verifying them. Arrays of a group start out in registers. If a
/// work-item turns out to read an element that another one holds, generation starts again with that
/// array in local memory.
fn program(term: &Term, env: &SizeEnv, options: &Options) -> view::Step<ir::Program> {
    let mut passed_on = BTreeSet::new();
    loop {
        match host::program(term, env, options, &passed_on) {
            Err(Stop::Elsewhere(of)) if passed_on.insert(of.clone()) => {}
            Err(s) => return Err(s),
            Ok((mut program, mut fresh)) => {
                improve::run(&mut program, &options.device, &mut fresh);
                return Ok(program);
            }
        }
    }
}

/// Generates and verifies the kernels of a low-level term `() -> T`, given a value for every size
/// symbol in it.
///
/// # Errors
/// When the term is not low-level ([`Code::BadTerm`], [`Code::IllNested`]), when no kernel is
/// generated for a pattern yet ([`Code::NotYetCompiled`]), when the term exceeds a limit
/// ([`Code::KernelLimit`]), or when a kernel cannot be proved safe ([`Code::Unproved`]).
pub fn lower(
    term: &Term,
    env: &SizeEnv,
    options: &Options,
) -> Result<ir::Program, Box<Diagnostic>> {
    check_nesting(term)?;
    let program = program(term, env, options).or_else(|s| match s {
        // An index into an array in registers does not become constant: keep arrays in private
        // memory.
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
