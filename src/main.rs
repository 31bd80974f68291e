//! The command line.

use std::process::ExitCode;

/// Extraction and code generation make and drop very many small trees, on all cores.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    patsat::cli::main()
}
