//! The command line.

use std::process::ExitCode;

/// Terms and kernels are trees of small nodes, made and dropped on all cores: the system's allocator takes a quarter of the time.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    patsat::cli::main()
}
