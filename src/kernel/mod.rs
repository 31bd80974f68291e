//! Kernel generation: lowers terms to structured code over buffers, registers and indices.
//!
//! [`lower()`] turns a low-level term into an [`ir::Program`] and checks it with
//! [`verify::verify`]. [`check_nesting`] tells early whether a term respects the device hierarchy.
//! Nothing in this module prints OpenCL or talks to a driver.
//!
//! A folder may use only folders above it in this list; `tests/engine/layering.rs` holds the order. Imports
//! of files make no circle either, except for `ir`, `ir::index` and `ir::facts`, whose types contain each other.
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
//! | `generator` | all steps from a term to proved kernels |

mod analysis;
mod estimate;
mod generator;
pub mod ir;
mod lower;
mod options;
mod passes;
pub mod verify;

pub use crate::calculus::nesting::check_nesting;
pub use estimate::{Prediction, UNKNOWN as ITERATIONS, estimate, profile};
pub use generator::{Generator, lower};
pub use ir::{facts, index};
pub use options::{ATOMICS_64, DeviceLimits, Options};

pub use lower::Schedule;

use crate::calculus::size::SizeEnv;
use crate::calculus::term::Term;
use crate::diag::Diagnostic;

/// Returns the decisions that [`lower()`] takes for a term.
///
/// # Errors
/// As for [`lower()`], except that nothing is proved.
pub fn schedule(
    term: &Term,
    env: &SizeEnv,
    options: &Options,
) -> Result<Schedule, Box<Diagnostic>> {
    let (program, _, record) = generator::generated(term, env, options, true)?;
    Ok(record.unwrap_or_default().schedule(program))
}
