//! Threads with large stacks, so that the limits on nesting hold regardless of the caller's stack.

use super::{Code, Diagnostic, Failure, Result};
use std::io::{self, ErrorKind};
use std::panic::resume_unwind;
use std::thread::{self, Builder};

/// Stack size for recursion over the largest program, with a margin, in bytes.
pub const STACK_BYTES: usize = 64 << 20;

/// Runs work that recurses over programs on a stack of its own. A panic propagates to the caller.
///
/// # Errors
/// [`Code::NoMemory`] when the system cannot start a thread with such a stack.
pub fn on_own_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T> {
    thread::scope(|scope| {
        let thread = Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work);
        Ok(thread.map_err(|e| no_thread(&e))?.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

/// Returns the error for a thread that cannot be started.
pub fn no_thread(error: &io::Error) -> Failure {
    not_started("a thread", error)
}

/// Returns the error for a thread or process that cannot be started, with advice if the system lacks resources.
pub fn not_started(what: &str, error: &io::Error) -> Failure {
    let message = format!("{what} cannot be started: {error}");
    let full = matches!(error.kind(), ErrorKind::OutOfMemory | ErrorKind::WouldBlock);
    let d = Diagnostic::error(if full { Code::NoMemory } else { Code::Internal }, message);
    let help =
        "allow more memory and more threads (`ulimit -v`, `ulimit -u`, the container's limits)";
    if full { d.help(help).into() } else { d.into() }
}
