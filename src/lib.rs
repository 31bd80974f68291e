//! patsat
pub mod calculus;
pub mod device;
pub mod diag;
pub mod extract;
pub mod kernel;
pub mod lang;
pub mod opencl;
pub mod rules;
pub mod saturate;
pub mod session;
pub mod tune;
