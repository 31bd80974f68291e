//! patsat
pub mod calculus;
pub mod diag;
pub mod lang;
pub mod opencl;
pub mod rules;
pub mod saturate;
