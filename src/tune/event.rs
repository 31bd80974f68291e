//! The events that a search reports to its observer. Nothing in this module prints.

use super::search::Counts;
use super::store::Fate;
use super::variant::Variant;
use crate::diag::Diagnostic;
use crate::saturate::Report;
use std::time::Duration;

/// The current phase of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Rewriting, until the e-graph is saturated.
    Saturate,
    /// Drawing candidates from the e-graph.
    Extract,
    /// Generating kernels for the candidates, and ranking them by the cost model.
    Generate,
    /// Waiting for the interpreter's result.
    Reference,
    /// Building, checking and timing kernels.
    Measure,
    /// Timing the best few candidates against each other, and against the device's bandwidth.
    Compare,
    /// Deriving why terms are equal.
    Explain,
}

impl Phase {
    /// Returns the name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Saturate => "saturate",
            Phase::Extract => "extract",
            Phase::Generate => "generate",
            Phase::Reference => "reference",
            Phase::Measure => "measure",
            Phase::Compare => "compare",
            Phase::Explain => "explain",
        }
    }
}

/// An event.
#[derive(Debug)]
pub enum Event<'a> {
    /// A phase begins.
    Phase(Phase),
    /// Saturation has ended.
    Saturated(&'a Report),
    /// A problem that the user should know of, but that stops nothing.
    Warning(&'a Diagnostic),
    /// A candidate was processed.
    Candidate {
        /// Number of candidates processed, including this one.
        done: usize,
        /// Number of candidates to process.
        of: usize,
        /// The candidate.
        variant: &'a Variant,
        /// Its outcome.
        fate: Fate,
        /// Median time of a run in microseconds, if it ran.
        median_us: Option<f64>,
        /// The driver's message about a failure.
        log: Option<&'a str>,
        /// Whether the outcome came from the tuning store.
        resumed: bool,
        /// The best median so far, in microseconds.
        best_us: Option<f64>,
        /// Counts of all outcomes so far.
        counts: &'a Counts,
        /// Estimated remaining time.
        left: Option<Duration>,
    },
}

/// Receives events of a search, and may end it.
pub trait Observer {
    /// Receives an event.
    fn event(&mut self, event: &Event);

    /// Returns whether the search should stop at the next opportunity. Measurements so far are kept.
    fn stop(&self) -> bool {
        false
    }
}

/// Ignores every event.
impl Observer for () {
    fn event(&mut self, _: &Event) {}
}
