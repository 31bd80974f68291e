//! The low-level terms of the papers (`programs/golden`) and every other low-level pattern, compiled as
//! they stand. See `check` for how kernels are checked.

mod ahead;
mod check;
#[path = "../common/mod.rs"]
mod common;
mod extraction;
mod listings;
mod oclgrind;
mod patterns;
mod races;
mod together;
