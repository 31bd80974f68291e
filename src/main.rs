//! The command line.

use std::process::ExitCode;

/// Terms, sizes and index expressions are many small allocations.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    patsat::cli::main()
}
