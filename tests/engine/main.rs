//! Tests of the engine from end to end. They are one executable, which is linked once and runs on all cores.

mod agreement;
#[path = "../common/mod.rs"]
mod common;
mod derivations;
mod differential;
mod forms;
mod found;
mod indices;
mod layering;
mod results;
mod saturation;
mod traps;
