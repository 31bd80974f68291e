//! `patsat worker` (hidden): the process in which candidates run, started by patsat itself.

use crate::diag::Exit;
use crate::tune::worker::serve;
use std::process::ExitCode;

/// Serves the parent process on the standard streams.
pub fn main() -> ExitCode {
    match serve(std::io::stdin(), std::io::stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(Exit::Io as u8),
    }
}
