//! Prints the tables of the host program in C.

use super::numbers::Recipe;
use super::{Emission, Input, Numbered, Origin, RUNS, stored, type_of};
use crate::diag::Diagnostic;
use crate::opencl::plan::{Arg, Control, FaultKind};
use std::fmt::Write as _;

/// Makefile that builds and runs the host program in C.
pub(super) const MAKEFILE: &str = "\
# `make run` builds the host program in C and runs it; `make run DEVICE=NAME` chooses a device.
CFLAGS ?= -O2 -Wall -Wextra
LDLIBS ?= -lOpenCL -lm

host: host.c
\t$(CC) -std=c11 $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $< $(LDLIBS)

run: host
\t./host $(DEVICE)

clean:
\trm -f host

.PHONY: run clean
";

pub(super) fn tables(e: &Emission) -> Result<String, Diagnostic> {
    let (plan, mut out) = (e.plan, String::new());
    let steps = plan.steps();
    // Writing to a string cannot fail.
    let _ = writeln!(out, "#define PROGRAM {:?}", e.name);
    let _ = writeln!(out, "#define BUILD_OPTIONS {:?}", plan.options);
    let counts = [
        ("INPUTS", e.inputs.len()),
        ("OUTPUTS", e.expected.len()),
        ("BUFFERS", plan.buffers.len()),
        ("LAUNCHES", plan.launches.len()),
        ("STEPS", steps.len()),
        ("FAULTS", plan.faults.len()),
        ("RUNS", RUNS),
    ];
    for (name, n) in counts {
        let _ = writeln!(out, "#define {name} {n}");
    }
    // One row more than needed, since C has no empty arrays.
    out.push_str("\nstatic const struct input input_table[INPUTS + 1] = {\n");
    for (k, input) in e.inputs.iter().enumerate() {
        let _ = writeln!(out, "    {{{}}},", row(k, input));
    }
    out.push_str("    {0}};\n\nstatic const struct buffer buffers[BUFFERS + 1] = {\n");
    for b in &plan.buffers {
        let (role, number) = match e.role(&b.role)? {
            Numbered::Input(k) => ("INPUT", k),
            Numbered::Temporary => ("TEMPORARY", 0),
            Numbered::Output(k) => ("OUTPUT", k),
            Numbered::Faults => ("FAULT", 0),
            Numbered::GoesOn => ("GOES_ON", 0),
            Numbered::Meeting => ("MEETING", 0),
        };
        let ty = b.elem.name().to_uppercase();
        let _ = writeln!(out, "    {{{:?}, {ty}, {}, {role}, {number}}},", b.name, b.len);
    }
    out.push_str("    {0}};\n\nstatic const struct launch launches[LAUNCHES + 1] = {\n");
    for l in &plan.launches {
        let sizes = |n: [usize; 3]| format!("{{{}, {}, {}}}", n[0], n[1], n[2]);
        let mut arguments = vec![];
        for arg in &l.args {
            arguments.push(match (e.scalar(*arg)?, arg) {
                (Some(k), _) => format!("{{SCALAR, {k}}}"),
                (None, Arg::Buffer(k) | Arg::Scalar(k)) => format!("{{BUFFER, {k}}}"),
                (None, Arg::Counter(depth)) => format!("{{COUNTER, {depth}}}"),
            });
        }
        let _ = writeln!(
            out,
            "    {{{:?}, {}, {}, {},\n     (const struct argument[]){{{}}}}},",
            l.kernel,
            sizes(l.global),
            sizes(l.local),
            arguments.len(),
            // C has no empty initialisers either.
            if arguments.is_empty() { "{BUFFER, 0}".to_owned() } else { arguments.join(", ") },
        );
    }
    out.push_str("    {0}};\n\nstatic const struct step steps[STEPS + 1] = {\n");
    for step in &steps {
        let row = match *step {
            Control::Launch(k) => format!("LAUNCH, {k}, 0, 0"),
            Control::Repeat(Some(n)) => format!("REPEAT, INT64_C({n}), 0, 0"),
            Control::Repeat(None) => "REPEAT, -1, 0, 0".to_owned(),
            Control::RepeatGiven { scalar, plus, less } => {
                let input = e.input_of_scalar(scalar)?;
                format!("REPEAT_GIVEN, {input}, {}, {}", integer(plus), integer(less))
            }
            Control::Check(b) => format!("CHECK, {b}, 0, 0"),
            Control::Swap(a, b) => format!("SWAP, {a}, {b}, 0"),
            Control::End => "END, 0, 0, 0".to_owned(),
        };
        let _ = writeln!(out, "    {{{row}}},");
    }
    out.push_str("    {END, 0, 0, 0}};\n");
    out.push_str("\nstatic const struct fault faults[FAULTS + 1] = {\n");
    for fault in &plan.faults {
        let index = u8::from(matches!(fault.kind, FaultKind::Index { .. }));
        let _ = writeln!(out, "    {{{:?}, {index}, {:?}}},", fault.kernel, fault.text());
    }
    out.push_str("    {0}};\n");
    Ok(out)
}

fn row(k: usize, input: &Input) -> String {
    let how = match &input.origin {
        Origin::Stored(_) => format!(".recipe = STORED, .file = {:?}", stored(k)),
        Origin::Made(recipe, seed) => {
            let seed = format!(".seed = UINT64_C({seed})");
            match recipe {
                Recipe::Normal => format!(".recipe = NORMAL, {seed}"),
                Recipe::Range { low, step } => {
                    let (low, step) = (float(*low), float(*step));
                    format!(".recipe = RANGE, .low = {low}, .step = {step}, {seed}")
                }
                Recipe::Whole { low, count } => {
                    let (low, count) = (integer(*low), format!("UINT64_C({count})"));
                    format!(".recipe = WHOLE, .first = {low}, .count = {count}, {seed}")
                }
                Recipe::Others { count, modulus, divisor } => format!(
                    ".recipe = OTHERS, .count = UINT64_C({count}), .modulus = UINT64_C({modulus}), \
                     .divisor = UINT64_C({divisor}), {seed}"
                ),
                Recipe::Position => ".recipe = POSITION".to_owned(),
                Recipe::Float(x) => format!(".recipe = FLOAT, .low = {}", float(*x)),
                Recipe::Integer(i) => format!(".recipe = INTEGER, .first = {}", integer(*i)),
            }
        }
    };
    let ty = type_of(input.ty);
    format!(
        ".name = {:?}, .type = {}, .length = {}, {how}",
        input.slot.param,
        format!("{ty:?}").to_uppercase(),
        input.length
    )
}

fn float(x: f64) -> String {
    match (x.is_nan(), x.is_infinite()) {
        (true, _) => "NAN".to_owned(),
        (_, true) if x > 0.0 => "INFINITY".to_owned(),
        (_, true) => "-INFINITY".to_owned(),
        _ => format!("{x:?}"),
    }
}

fn integer(i: i64) -> String {
    // The least value has no literal of its own.
    if i == i64::MIN { "INT64_MIN".to_owned() } else { format!("INT64_C({i})") }
}
