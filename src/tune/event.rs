//! What a search tells whoever watches it. Nothing here prints.

use super::search::Counts;
use super::store::Fate;
use super::variant::Variant;
use crate::diag::Diagnostic;
use crate::saturate::Report;
use std::time::Duration;

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Rewriting, until the e-graph is saturated.
    Saturate,
    /// Drawing candidates from the e-graph.
    Extract,
    /// Generating kernels for them, and ranking those by the cost model.
    Generate,
    /// Waiting for the interpreter's result.
    Reference,
    /// Building, checking and timing kernels.
    Measure,
    /// Timing the best few against each other, and against the device's bandwidth.
    Compare,
    /// Finding out why terms are equal.
    Explain,
}

impl Phase {
    /// The name in reports.
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

/// Something happened.
#[derive(Debug)]
pub enum Event<'a> {
    /// A phase begins.
    Phase(Phase),
    /// The e-graph is as large as it gets.
    Saturated(&'a Report),
    /// Something a person should know, that stops nothing.
    Warning(&'a Diagnostic),
    /// A candidate is done.
    Candidate {
        /// How many are done, this one included.
        done: usize,
        /// How many there will be.
        of: usize,
        /// Which.
        variant: &'a Variant,
        /// What became of it.
        fate: Fate,
        /// Median time of a run in microseconds, when it ran.
        median_us: Option<f64>,
        /// What the driver had to say of a failure.
        log: Option<&'a str>,
        /// Whether the tuning store knew it already.
        resumed: bool,
        /// The best median so far, in microseconds.
        best_us: Option<f64>,
        /// All outcomes so far.
        counts: &'a Counts,
        /// An estimate of the time that the rest takes.
        left: Option<Duration>,
    },
}

/// Watches a search, and may end it.
pub trait Observer {
    /// Something happened.
    fn event(&mut self, event: &Event);

    /// Whether to stop at the next opportunity; what was measured is kept.
    fn stop(&self) -> bool {
        false
    }
}

/// Watches nothing.
impl Observer for () {
    fn event(&mut self, _: &Event) {}
}
