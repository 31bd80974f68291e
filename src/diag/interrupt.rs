//! A request to stop, which every long computation checks.

use super::{Code, Diagnostic, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that requests the work to stop. Clones share the flag.
#[derive(Clone, Debug)]
pub struct Interrupt(Option<Arc<AtomicBool>>);

impl Interrupt {
    /// An interrupt that ignores requests, for work that is never stopped.
    pub const NEVER: Interrupt = Interrupt(None);

    /// Requests the work to stop. Returns whether that was requested before.
    pub fn request(&self) -> bool {
        self.0.as_ref().is_some_and(|asked| asked.swap(true, Ordering::SeqCst))
    }

    /// Returns whether the work should stop.
    pub fn requested(&self) -> bool {
        self.0.as_ref().is_some_and(|asked| asked.load(Ordering::Relaxed))
    }

    /// Fails if the work should stop; `what` names the work, after "interrupted".
    ///
    /// # Errors
    /// [`Code::Interrupted`] when the work should stop.
    pub fn check(&self, what: &str) -> Result<()> {
        if self.requested() {
            return Err(Diagnostic::error(Code::Interrupted, format!("interrupted {what}")).into());
        }
        Ok(())
    }
}

/// No request yet.
impl Default for Interrupt {
    fn default() -> Interrupt {
        Interrupt(Some(Arc::default()))
    }
}

/// Limits that differ only in their interrupts count as equal.
impl PartialEq for Interrupt {
    fn eq(&self, _: &Interrupt) -> bool {
        true
    }
}

impl Eq for Interrupt {}
