//! A request to stop, which every long computation looks for.

use super::{Code, Diagnostic, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether somebody wants the work to stop. Clones share one answer.
#[derive(Clone, Debug)]
pub struct Interrupt(Option<Arc<AtomicBool>>);

impl Interrupt {
    /// Work that is never asked to stop: requests are not heard.
    pub const NEVER: Interrupt = Interrupt(None);

    /// Asks the work to stop. Says whether somebody asked before.
    pub fn request(&self) -> bool {
        self.0.as_ref().is_some_and(|asked| asked.swap(true, Ordering::SeqCst))
    }

    /// Whether the work is to stop.
    pub fn requested(&self) -> bool {
        self.0.as_ref().is_some_and(|asked| asked.load(Ordering::Relaxed))
    }

    /// Ends a computation that is to stop; `what` says which, after "interrupted".
    ///
    /// # Errors
    /// [`Code::Interrupted`] when the work is to stop.
    pub fn check(&self, what: &str) -> Result<()> {
        if self.requested() {
            return Err(Diagnostic::error(Code::Interrupted, format!("interrupted {what}")).into());
        }
        Ok(())
    }
}

/// Not asked yet.
impl Default for Interrupt {
    fn default() -> Interrupt {
        Interrupt(Some(Arc::default()))
    }
}

/// A request to stop is no part of the budgets that it is kept with.
impl PartialEq for Interrupt {
    fn eq(&self, _: &Interrupt) -> bool {
        true
    }
}

impl Eq for Interrupt {}
