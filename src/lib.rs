//! patsat
pub mod calculus;
pub mod diag;
pub mod kernel;
pub mod lang;
pub mod opencl;
