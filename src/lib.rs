//! patsat
pub mod calculus;
pub mod device;
pub mod diag;
pub mod kernel;
pub mod lang;
pub mod opencl;
pub mod session;
pub mod tune;
