//! The command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    patsat::cli::main()
}
