//! patsat
pub mod device;
pub mod diag;
pub mod lang;
pub mod opencl;
pub mod session;
pub mod tune;
