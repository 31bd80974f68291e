//! OpenCL: the C printer, the host plan, host programs around it, and (in `runtime` alone) the driver.

pub mod emit;
pub mod host;
pub mod plan;
pub mod print;
pub mod probe;
pub mod runtime;
pub mod yardstick;
