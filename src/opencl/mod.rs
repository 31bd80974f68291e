//! OpenCL: the C printer, the host plan, and (in `runtime` alone) the driver.

pub mod host;
pub mod plan;
pub mod print;
pub mod probe;
pub mod runtime;
pub mod yardstick;
