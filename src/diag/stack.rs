//! Threads with stacks that the limits on nesting fit into, whatever stack the caller has.

use super::{Code, Diagnostic, Failure, Result};
use std::io::{self, ErrorKind};
use std::panic::resume_unwind;
use std::thread::{self, Builder};

/// Bytes of stack that a recursion over the largest program needs, and a margin.
pub const STACK_BYTES: usize = 64 << 20;

/// Runs work that recurses over programs on a stack of its own. A panic goes on in the caller.
///
/// # Errors
/// [`Code::NoMemory`] when the system gives no thread with such a stack.
pub fn on_own_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T> {
    thread::scope(|scope| {
        let thread = Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work);
        Ok(thread.map_err(|e| no_thread(&e))?.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

/// Says that a thread cannot be started.
pub fn no_thread(error: &io::Error) -> Failure {
    not_started("a thread", error)
}

/// Says that a thread or a process cannot be started, and what to do where the system has no room for it.
pub fn not_started(what: &str, error: &io::Error) -> Failure {
    let message = format!("{what} cannot be started: {error}");
    let full = matches!(error.kind(), ErrorKind::OutOfMemory | ErrorKind::WouldBlock);
    let d = Diagnostic::error(if full { Code::NoMemory } else { Code::Internal }, message);
    let help =
        "allow more memory and more threads (`ulimit -v`, `ulimit -u`, the container's limits)";
    if full { d.help(help).into() } else { d.into() }
}
