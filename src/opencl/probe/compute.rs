//! Probes of arithmetic.

use super::{Count, Fleet, Interface, Probe, lanes, plan, vector};
use crate::lang::types::ScalarType;

/// What a probe computes, over and over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// A product and a sum, rounded once: two operations. Slow where the device has no such instruction.
    Fma,
    /// A product and a sum, rounded as the device likes: two operations.
    Mad,
    /// A sum and an exclusive or of integers: two operations.
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
    /// Operations in one.
    fn operations(self) -> f64 {
        match self {
            Step::Fma | Step::Mad | Step::Integer => 2.0,
            _ => 1.0,
        }
    }

    /// One step of `a`: a value that stays finite, however often, and that no compiler foresees.
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

/// How much of it is independent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The type of a lane.
    pub ty: ScalarType,
    /// Lanes of a vector.
    pub width: usize,
    /// Vectors that are computed side by side.
    pub chains: usize,
}

/// Every work-item does `trips` times so many steps on each of its chains. The work is operations.
pub fn arithmetic(step: Step, shape: Shape, fleet: Fleet, trips: Count) -> Probe {
    /// Steps of a chain in one iteration.
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
