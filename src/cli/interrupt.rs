//! Ctrl-C: the first asks the work to stop, the second ends the process.

use crate::diag::{Code, Diagnostic, Exit, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the person wants to stop.
#[derive(Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// From now on, Ctrl-C (and a polite request to end) is noted here.
    pub fn listen() -> Result<Interrupt> {
        let interrupt = Interrupt::default();
        let noted = interrupt.0.clone();
        ctrlc::set_handler(move || {
            if noted.swap(true, Ordering::SeqCst) {
                std::process::exit(Exit::Interrupted as i32);
            }
        })
        .map_err(|e| {
            Diagnostic::error(Code::Internal, format!("signals cannot be handled: {e}"))
        })?;
        Ok(interrupt)
    }

    /// Whether it was pressed.
    pub fn pressed(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
