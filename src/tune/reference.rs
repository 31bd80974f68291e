//! The interpreter's result, computed on a thread of its own while kernels are generated and built.

use crate::calculus::interp;
use crate::calculus::value::{Comparison, Value, compare};
use crate::diag::{Code, Diagnostic, Result};
use crate::lang::typed::Entry;
use crate::opencl::host::HostArray;
use indexmap::IndexMap;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// The interpreter recurses over programs.
const STACK_BYTES: usize = 256 << 20;

/// How often a wait asks whether to go on.
const POLL: Duration = Duration::from_millis(50);

/// What every kernel's result is compared with.
pub struct Reference {
    pending: Option<Receiver<Result<Value>>>,
    value: Option<Value>,
    terms: u64,
    /// A result that was found right: equal bytes need no second comparison.
    right: Option<(Vec<HostArray>, Comparison)>,
}

impl Reference {
    /// Starts the interpreter.
    pub fn start(entry: &Entry, sizes: &IndexMap<String, u64>, inputs: &[Value]) -> Reference {
        let terms = interp::terms(entry, sizes);
        let (entry, sizes, inputs) = (entry.clone(), sizes.clone(), inputs.to_vec());
        let (send, pending) = mpsc::channel();
        let work = move || {
            // Nobody listens any more when a search was stopped.
            let _ = send.send(interp::run(&entry, &sizes, &inputs));
        };
        // Without a thread the channel is closed, which the wait reports.
        drop(thread::Builder::new().stack_size(STACK_BYTES).spawn(work));
        Reference { pending: Some(pending), value: None, terms, right: None }
    }

    /// Whether the result is there.
    pub fn is_ready(&mut self) -> bool {
        self.value.is_some()
    }

    /// Waits for the result; `None` when `go_on` says no before it is there.
    ///
    /// # Errors
    /// When the program has no value on these inputs.
    pub fn wait(&mut self, go_on: impl Fn() -> bool) -> Result<Option<&Value>> {
        let gone = || Diagnostic::error(Code::Internal, "the interpreter ended without a result");
        while self.value.is_none() {
            let Some(pending) = &self.pending else { return Err(gone().into()) };
            match pending.recv_timeout(POLL) {
                Ok(result) => {
                    self.pending = None;
                    self.value = Some(result?);
                }
                Err(RecvTimeoutError::Timeout) if go_on() => {}
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(RecvTimeoutError::Disconnected) => return Err(gone().into()),
            }
        }
        Ok(self.value.as_ref())
    }

    /// Compares a kernel's outputs; `None` while the result is not there.
    pub fn compare(&mut self, outputs: Vec<HostArray>) -> Option<Comparison> {
        if let Some((right, comparison)) = &self.right
            && *right == outputs
        {
            return Some(comparison.clone());
        }
        let bytes: Vec<&[u8]> = outputs.iter().map(HostArray::bytes).collect();
        let comparison = compare(self.value.as_ref()?, &bytes, self.terms);
        if comparison.ok {
            self.right = Some((outputs, comparison.clone()));
        }
        Some(comparison)
    }
}
