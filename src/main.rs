//! The command line.

use std::process::ExitCode;

/// The compiler builds and drops many small trees, for which the allocators of C libraries are slow.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    patsat::cli::main()
}
