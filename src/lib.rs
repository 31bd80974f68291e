//! patsat
pub mod diag;
pub mod lang;
pub mod opencl;
