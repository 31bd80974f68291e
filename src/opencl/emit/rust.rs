//! Prints the tables of the host program in Rust.

use super::numbers::Recipe;
use super::{Emission, Input, Numbered, Origin, RUNS, stored, type_of};
use crate::diag::Diagnostic;
use crate::opencl::plan::{Arg, Control, FaultKind};
use std::fmt::Write as _;

/// Manifest of the host program in Rust. It is a workspace of its own, so that the folder can be placed anywhere.
pub(super) const MANIFEST: &str = "\
[package]
name = \"host\"
version = \"0.1.0\"
edition = \"2024\"

[[bin]]
name = \"host\"
path = \"host.rs\"

[dependencies]
opencl3 = \"0.12\"

[workspace]
";

pub(super) fn tables(e: &Emission) -> Result<String, Diagnostic> {
    let (plan, mut out) = (e.plan, String::new());
    // Writing to a string cannot fail.
    let _ = writeln!(out, "const PROGRAM: &str = {:?};", e.name);
    let _ = writeln!(out, "const BUILD_OPTIONS: &str = {:?};", plan.options);
    let _ = writeln!(out, "const OUTPUTS: usize = {};", e.expected.len());
    let _ = writeln!(out, "const RUNS: usize = {RUNS};\n\nconst INPUTS: &[Input] = &[");
    for (k, input) in e.inputs.iter().enumerate() {
        let _ = writeln!(out, "    {}", row(k, input));
    }
    out.push_str("];\n\nconst BUFFERS: &[Memory] = &[\n");
    for b in &plan.buffers {
        let role = match e.role(&b.role)? {
            Numbered::Input(k) => format!("Input({k})"),
            Numbered::Temporary => "Temporary".to_owned(),
            Numbered::Output(k) => format!("Output({k})"),
            Numbered::Faults => "Faults".to_owned(),
            Numbered::GoesOn => "GoesOn".to_owned(),
            Numbered::Meeting => "Meeting".to_owned(),
        };
        let (name, ty, length) = (&b.name, type_of(b.elem), b.len);
        let _ = writeln!(
            out,
            "    Memory {{ name: {name:?}, ty: Type::{ty:?}, length: {length}, role: Role::{role} }},"
        );
    }
    out.push_str("];\n\nconst LAUNCHES: &[Launch] = &[\n");
    for l in &plan.launches {
        let mut arguments = vec![];
        for arg in &l.args {
            arguments.push(match (e.scalar(*arg)?, arg) {
                (Some(k), _) => format!("Argument::Scalar({k})"),
                (None, Arg::Buffer(k) | Arg::Scalar(k)) => format!("Argument::Buffer({k})"),
                (None, Arg::Counter(depth)) => format!("Argument::Counter({depth})"),
            });
        }
        let _ = writeln!(
            out,
            "    Launch {{\n        kernel: {:?},\n        global: {:?},\n        local: {:?},\n        \
             arguments: &[{}],\n    }},",
            l.kernel,
            l.global,
            l.local,
            arguments.join(", ")
        );
    }
    out.push_str("];\n\nconst STEPS: &[Step] = &[\n");
    for step in plan.steps() {
        let _ = match step {
            Control::RepeatGiven { scalar, plus, less } => {
                let input = e.input_of_scalar(scalar)?;
                writeln!(out, "    Step::RepeatGiven({input}, {plus}, {less}),")
            }
            step => writeln!(out, "    Step::{step:?},"),
        };
    }
    out.push_str("];\n\nconst FAULTS: &[Fault] = &[\n");
    for fault in &plan.faults {
        let (kernel, text) = (&fault.kernel, fault.text());
        let index = matches!(fault.kind, FaultKind::Index { .. });
        let _ =
            writeln!(out, "    Fault {{ kernel: {kernel:?}, index: {index}, text: {text:?} }},");
    }
    out.push_str("];\n");
    Ok(out)
}

fn row(k: usize, input: &Input) -> String {
    let origin = match &input.origin {
        Origin::Stored(_) => format!("Stored({:?})", stored(k)),
        Origin::Made(recipe, seed) => format!("Made({}, {seed})", made(*recipe)),
    };
    let (name, ty, length) = (&input.slot.param, type_of(input.ty), input.length);
    format!("Input {{ ty: Type::{ty:?}, length: {length}, origin: Origin::{origin} }}, // {name}")
}

fn made(recipe: Recipe) -> String {
    match recipe {
        Recipe::Range { low, step } => {
            format!("Recipe::Range {{ low: {}, step: {} }}", float(low), float(step))
        }
        Recipe::Float(x) => format!("Recipe::Float({})", float(x)),
        // The others contain only integers, whose debug output is valid Rust.
        _ => format!("Recipe::{recipe:?}"),
    }
}

fn float(x: f64) -> String {
    match (x.is_nan(), x.is_infinite()) {
        (true, _) => "f64::NAN".to_owned(),
        (_, true) if x > 0.0 => "f64::INFINITY".to_owned(),
        (_, true) => "f64::NEG_INFINITY".to_owned(),
        _ => format!("{x:?}"),
    }
}
