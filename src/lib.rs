//! patsat
pub mod diag;
pub mod lang;
