//! patsat compiles small functional pattern programs to fast OpenCL kernels, by equality saturation.
//!
//! [`session`] is the place to start: one call for each thing a person does.
pub mod calculus;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cli;
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

/// The allocator of the command line, for the tests.
#[cfg(test)]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;
