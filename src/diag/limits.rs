//! Every limit of the pipeline, with its default value.

use super::Interrupt;
use std::time::Duration;

/// Limits of the pipeline. Two runs with equal limits have equal output if they reach no wall-clock limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Saturation: most iterations.
    pub iterations: usize,
    /// Saturation: most e-nodes.
    pub nodes: usize,
    /// Saturation: most wall-clock time; `None` for runs whose output must not depend on time.
    pub saturation_time: Option<Duration>,
    /// Diagnostics: most for one text. The last one says how many others there are.
    pub diagnostics: usize,
    /// Parsing: longest text of a program, in bytes.
    pub program_bytes: usize,
    /// Parsing: deepest nesting of expressions.
    pub nesting: usize,
    /// Checking: deepest nesting of expressions once definitions are inlined.
    pub inlined_nesting: usize,
    /// Terms that are printed and read back (plans, the tuning store): deepest nesting.
    pub term_nesting: usize,
    /// The same terms: most parts of a chain of definitions, choices or operations, each of which is inside of the one
    /// before it.
    pub term_chain: usize,
    /// Checking: most expressions of one entry once definitions are inlined.
    pub inlined_expressions: usize,
    /// Checking: most components of one type, including nested ones.
    pub type_components: usize,
    /// Checking: most components of the types of all expressions of an entry.
    pub all_type_components: usize,
    /// Checking: most expressions of all entries of a file together.
    pub file_expressions: usize,
    /// Checking: most operations on sizes and literals that are inlined where their name is used.
    pub size_operations: usize,
    /// Elaboration: most steps of an `iterate` that is unrolled although a loop could run it.
    pub copied_steps: u64,
    /// Elaboration: the same for an `iterate` over arrays that the host can run as a loop over kernels.
    pub copied_array_steps: u64,
    /// Elaboration: most steps of an `iterate` that must be unrolled because its function changes the length.
    pub iterate_steps: u64,
    /// Elaboration: largest expression that is substituted for a variable more than once.
    pub copied_expressions: usize,
    /// Elaboration: most steps of a `while` loop that are counted.
    pub counted_steps: usize,
    /// Elaboration: most expressions of a program after its iterates are unrolled.
    pub elaborated_expressions: usize,
    /// Rule files: most rules that one `for` generates.
    pub rule_family: usize,
    /// Sizes: most terms of a polynomial.
    pub size_terms: usize,
    /// Explanations: most steps of a derivation from the e-graph.
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
    /// Kernels: most iterations of a loop that is unrolled.
    pub unroll: usize,
    /// Kernels: most statements of an unrolled loop. Longer loops do not fit in instruction caches, and compilers take long for
    /// them.
    pub unrolled_statements: usize,
    /// Extraction: most scalar operations in the body of a loop after unrolling, since compilers take long for
    /// more.
    pub unrolled_operations: usize,
    /// Tuning: most operations and rows that the interpreter computes to check results (a few seconds' worth). If a
    /// program has more, the interpreter computes a sample.
    pub reference_operations: u64,
    /// Tuning: longest time that a search waits for the interpreter once a kernel is to be checked. Operations whose values
    /// are in doubt take many times as long as others, so that their number does not bound the time.
    pub reference_time: Duration,
    /// Tuning: longest time that a search gives the interpreter to decide between kernels whose results differ.
    pub dispute_time: Duration,
    /// Tuning: longest time one candidate may take to build.
    pub build_time: Duration,
    /// Tuning: longest time one candidate may take to run once.
    pub run_time: Duration,
    /// Request to stop. Long computations check it, and end with [`Code::Interrupted`](super::Code::Interrupted).
    pub interrupt: Interrupt,
}

impl Limits {
    /// The limits of every command that does not say otherwise.
    pub const DEFAULT: &'static Limits = &Limits {
        iterations: 60,
        nodes: 400_000,
        saturation_time: Some(Duration::from_mins(1)),
        diagnostics: 50,
        program_bytes: 1 << 20,
        nesting: 200,
        inlined_nesting: 600,
        term_nesting: 2_000,
        term_chain: 20_000,
        inlined_expressions: 200_000,
        type_components: 1_000,
        all_type_components: 2_000_000,
        file_expressions: 1_000_000,
        size_operations: 64,
        copied_steps: 16,
        copied_array_steps: 2,
        iterate_steps: 64,
        copied_expressions: 64,
        counted_steps: 65_536,
        elaborated_expressions: 10_000,
        rule_family: 64,
        size_terms: 512,
        explanation_steps: 20_000,
        skeletons_per_class: 10,
        extraction_rounds: 12,
        assignments: 24,
        skeletons: 64,
        private_elements: 512,
        unroll: 64,
        unrolled_statements: 2048,
        unrolled_operations: 768,
        reference_operations: 200_000_000,
        reference_time: Duration::from_secs(5),
        dispute_time: Duration::from_secs(15),
        build_time: Duration::from_secs(30),
        run_time: Duration::from_secs(20),
        interrupt: Interrupt::NEVER,
    };
}

impl Default for Limits {
    fn default() -> Self {
        let mut limits = Limits::DEFAULT.clone();
        limits.interrupt = Interrupt::default();
        limits
    }
}
