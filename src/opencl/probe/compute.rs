//! Probes of arithmetic.

use super::{Count, Fleet, Interface, Probe, lanes, plan, vector};
use crate::lang::types::ScalarType;

/// The operation that a probe repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// A product and a sum with one rounding, counted as two operations. Slow on devices without such an
    /// instruction.
    Fma,
    /// A product and a sum, rounded in any way the device chooses; counted as two operations.
    Mad,
    /// A sum and an exclusive or of integers, counted as two operations.
    Integer,
    /// A quotient.
    Divide,
    /// A square root.
    Sqrt,
    /// The exponential.
    Exp,
    /// The natural logarithm.
    Log,
    /// The sine.
    Sin,
}

impl Step {
    /// Returns the number of operations in a step.
    fn operations(self) -> f64 {
        match self {
            Step::Fma | Step::Mad | Step::Integer => 2.0,
            _ => 1.0,
        }
    }

    /// Returns the code of one step on variable `a`. Its value stays finite over any number of steps, and compilers
    /// cannot precompute it.
    fn code(self, a: &str) -> String {
        match self {
            Step::Fma => format!("{a} = fma({a}, b, c);"),
            Step::Mad => format!("{a} = mad({a}, b, c);"),
            Step::Integer => format!("{a} = ({a} + b) ^ c;"),
            Step::Divide => format!("{a} = b / {a};"),
            Step::Sqrt => format!("{a} = sqrt({a} + c);"),
            Step::Exp => format!("{a} = exp(-{a});"),
            Step::Log => format!("{a} = log({a} + c);"),
            Step::Sin => format!("{a} = sin({a} + c);"),
        }
    }
}

/// The independent parts of a work-item's computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Type of a vector lane.
    pub ty: ScalarType,
    /// Number of lanes in a vector.
    pub width: usize,
    /// Number of independent vectors.
    pub chains: usize,
}

/// Every work-item does `trips` iterations, each with several steps on every chain. The work is counted in
/// operations.
pub fn arithmetic(step: Step, shape: Shape, fleet: Fleet, trips: Count) -> Probe {
    /// Number of steps on each chain in one iteration.
    const STEPS: usize = 8;
    let (scalar, extension) = match shape.ty {
        ScalarType::F64 => ("double", "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"),
        ScalarType::F16 => ("half", "#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n"),
        ScalarType::I32 => ("int", ""),
        _ => ("float", ""),
    };
    let v = vector(scalar, shape.width);
    let (b, c) = match step {
        Step::Integer => ("12345", "54321"),
        _ => ("0.999f", "2.0f"),
    };
    let chains = shape.chains;
    let start: String =
        (0..chains).map(|k| format!("  {v} a{k} = z + ({v})({k} + 1);\n")).collect();
    let once: String =
        (0..chains).map(|k| format!("    {}\n", step.code(&format!("a{k}")))).collect();
    let body = once.repeat(STEPS);
    let sum = (0..chains).map(|k| format!("a{k}")).collect::<Vec<_>>().join(" + ");
    let total = lanes("s", shape.width);
    let source = format!(
        "{extension}kernel void probe(global {scalar} *restrict y, int trips) {{\n\
         \x20 const {v} z = ({v})(({scalar})(get_global_id(0) & 15));\n\
         \x20 const {v} b = ({v})(({scalar}){b}), c = ({v})(({scalar}){c});\n{start}\
         \x20 for (int i = 0; i < trips; i++) {{\n{body}  }}\n\
         \x20 {v} s = {sum};\n  y[get_global_id(0)] = {total};\n}}\n"
    );
    let io = Interface { input: None, output: (shape.ty, fleet.items()), counts: &[trips] };
    let steps = fleet.items() as f64 * trips.value() as f64 * (STEPS * chains * shape.width) as f64;
    Probe { plan: plan(source, &io, fleet, 1), work: steps * step.operations() }
}
