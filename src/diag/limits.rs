//! Every budget of the pipeline, named and defaulted once.

use super::Interrupt;
use std::time::Duration;

/// Budgets. Two runs with equal limits and no wall-clock limit reached give equal output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Saturation: most iterations.
    pub iterations: usize,
    /// Saturation: most e-nodes.
    pub nodes: usize,
    /// Saturation: most wall-clock time; `None` for runs whose output must not depend on it.
    pub saturation_time: Option<Duration>,
    /// Parsing: deepest nesting of expressions.
    pub nesting: usize,
    /// Explanations: most steps of a derivation as the e-graph gives it.
    pub explanation_steps: usize,
    /// Extraction: skeletons kept for each class and context.
    pub skeletons_per_class: usize,
    /// Extraction: most passes over the classes until choices no longer change.
    pub extraction_rounds: usize,
    /// Extraction: assignments of tunables kept for each skeleton.
    pub assignments: usize,
    /// Extraction: skeletons kept for the whole program.
    pub skeletons: usize,
    /// Kernels: most elements of a private array that is unrolled into registers.
    pub private_elements: usize,
    /// Kernels: most iterations a loop is unrolled to.
    pub unroll: usize,
    /// Extraction: most scalar operations that unrolled loops make of one body: compilers take long over more.
    pub unrolled_operations: usize,
    /// Tuning: operations and rows that the interpreter goes through to check results; of programs with more
    /// it computes a sample (a few seconds' worth).
    pub reference_operations: u64,
    /// Tuning: longest time one candidate may take to build.
    pub build_time: Duration,
    /// Tuning: longest time one candidate may take to run once.
    pub run_time: Duration,
    /// Whether to stop: what takes long looks here, and ends with [`Code::Interrupted`](super::Code::Interrupted).
    pub interrupt: Interrupt,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            iterations: 60,
            nodes: 200_000,
            saturation_time: Some(Duration::from_secs(60)),
            nesting: 200,
            explanation_steps: 20_000,
            skeletons_per_class: 10,
            extraction_rounds: 12,
            assignments: 24,
            skeletons: 64,
            private_elements: 512,
            unroll: 64,
            unrolled_operations: 768,
            reference_operations: 200_000_000,
            build_time: Duration::from_secs(30),
            run_time: Duration::from_secs(20),
            interrupt: Interrupt::default(),
        }
    }
}
