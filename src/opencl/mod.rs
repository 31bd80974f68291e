//! OpenCL: the C printer, the host plan, the emitter of host programs, and (in `runtime` alone) the driver.

pub mod emit;
pub mod host;
pub mod plan;
pub mod print;
pub mod probe;
pub mod runtime;
pub mod yardstick;
