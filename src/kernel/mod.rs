//! Kernel generation: lowers terms to structured code over buffers, registers and indices.
//!
//! [`lower()`] turns a low-level term into an [`ir::Program`] and checks it with
//! [`verify::verify`]. [`check_nesting`] tells early whether a term respects the device hierarchy.
//! Nothing in this module prints OpenCL or talks to a driver.
//!
//! A folder may use only folders above it in this list; `tests/engine/layering.rs` holds the order. Imports
//! of files make no circle either, except for `ir` and `ir::index`, whose types contain each other.
//!
//! | folder | holds |
//! |---|---|
//! | `options` | limits of devices and options of code generation |
//! | `ir` | the kernel IR, index expressions, text of the IR, helpers to walk and rebuild it |
//! | `analysis` | what work-items access, races, in-place updates |
//! | `lower` | from terms to kernels: views, destinations, memory, loops, steps of the host |
//! | `passes` | passes that complete lowered kernels (guards, memory, barriers), and that optimise them |
//! | `verify` | proofs of bounds, barriers, races and limits of the finished program |
//! | `estimate` | static features of kernels, and the time that they predict |

mod analysis;
mod estimate;
pub mod ir;
mod lower;
mod options;
mod passes;
pub mod verify;

pub use crate::calculus::nesting::check_nesting;
pub use estimate::{Prediction, estimate, profile};
pub use ir::index;
pub use options::{ATOMICS_64, DeviceLimits, Options};

pub use lower::Schedule;

use lower::{Record, Step, Stop};

use crate::calculus::size::SizeEnv;
use crate::calculus::term::Term;
use crate::diag::{Code, Diagnostic};
use ir::walk::Fresh;

/// Generates the kernels without passes. Decisions are recorded if `record` is set.
fn lowered(
    term: &Term,
    env: &SizeEnv,
    options: &Options,
    record: bool,
) -> Step<(ir::Program, Fresh, Option<Record>)> {
    lower::program(term, env, options, record.then(Record::default))
}

/// Generates the kernels with arrays in registers. If an index into one does not become constant, the kernel has its arrays
/// in memory; if it is one of a single work-item, so have all kernels. `finish` completes them.
fn generated<T>(
    (term, env, options): (&Term, &SizeEnv, &Options),
    record: bool,
    finish: impl Fn(ir::Program, Fresh, Option<Record>) -> T,
) -> Result<T, Box<Diagnostic>> {
    check_nesting(term)?;
    let program = lowered(term, env, options, record).or_else(|s| match s {
        Stop::Dynamic(_) => lowered(term, env, &options.without_register_arrays(), record),
        s => Err(s),
    });
    match program {
        Ok((program, fresh, record)) => Ok(finish(program, fresh, record)),
        Err(Stop::Error(d)) => Err(d),
        Err(Stop::Elsewhere(t)) => Err(Box::new(Diagnostic::error(
            Code::Internal,
            format!("`{t}` is neither in registers nor in local memory"),
        ))),
        Err(Stop::Dynamic(i)) => Err(Box::new(Diagnostic::error(
            Code::KernelLimit,
            format!("registers are indexed by `{i}`, which is not constant after unrolling"),
        ))),
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
    let program = generated((term, env, options), false, |mut program, mut fresh, _| {
        passes::run(&mut program, &options.device, &mut fresh);
        program
    })?;
    verify::verify(&program, &options.device)?;
    Ok(program)
}

/// Returns the decisions that [`lower()`] takes for a term.
///
/// # Errors
/// As for [`lower()`], except that nothing is proved.
pub fn schedule(
    term: &Term,
    env: &SizeEnv,
    options: &Options,
) -> Result<Schedule, Box<Diagnostic>> {
    generated((term, env, options), true, |program, _, record| {
        record.unwrap_or_default().schedule(program)
    })
}
