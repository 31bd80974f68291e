//! OpenCL: the C printer, the host plan, and (in `runtime` alone) the driver.

pub mod plan;
