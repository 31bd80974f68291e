//! Operations on memory as one step: built-in functions for integers, and functions of our own for floats, which OpenCL
//! C 1.2 does not have.

use crate::kernel::ir::{Mem, Program, Stmt};
use crate::lang::typed::ScalarOp;
use crate::lang::types::ScalarType;
use std::collections::BTreeSet;

/// Returns the name of the function that combines a value with an element; `None` if there is none.
fn function(op: ScalarOp, t: ScalarType, m: Mem) -> Option<String> {
    let name = name(op)?;
    match t {
        ScalarType::I32 | ScalarType::U32 => Some(format!("atomic_{name}")),
        ScalarType::F32 => Some(format!("float_{name}_{}", space(m))),
        _ => None,
    }
}

fn name(op: ScalarOp) -> Option<&'static str> {
    match op {
        ScalarOp::Add => Some("add"),
        ScalarOp::Min => Some("min"),
        ScalarOp::Max => Some("max"),
        ScalarOp::BitAnd => Some("and"),
        ScalarOp::BitOr => Some("or"),
        ScalarOp::BitXor => Some("xor"),
        _ => None,
    }
}

fn space(m: Mem) -> &'static str {
    if let Mem::Local(_) = m { "local" } else { "global" }
}

/// Returns the statement that combines `value` with the element at `place`.
pub(super) fn statement(op: ScalarOp, t: ScalarType, m: Mem, place: &str, value: &str) -> String {
    let function = function(op, t, m).unwrap_or_default();
    format!("{function}(&{place}, {value});")
}

/// Returns the functions that the kernels of a program call.
pub(super) fn functions(program: &Program) -> String {
    let mut used = BTreeSet::new();
    for s in program.kernels.iter().flat_map(|k| &k.body) {
        s.visit(&mut |s| {
            if let Stmt::Atomic(op, m, _, e) = s
                && e.ty().scalar == ScalarType::F32
            {
                used.insert((name(*op), space(*m)));
            }
        });
    }
    used.into_iter().filter_map(|(op, space)| Some(float(op?, space))).collect()
}

/// The operation on floats: tries again while another work-item changes the element. The first read is atomic, too: a plain
/// one would race with updates. The compiler of NVIDIA, which says who it is by a macro, gets the device's own addition.
fn float(op: &str, space: &str) -> String {
    let next = if op == "add" {
        "as_float(seen) + x".to_owned()
    } else {
        format!("f{op}(as_float(seen), x)")
    };
    let retried = format!(
        "    volatile {space} int* bits = (volatile {space} int*)at;
    int seen = atomic_or(bits, 0);
    while (true) {{
        const int before = atomic_cmpxchg(bits, seen, as_int({next}));
        if (before == seen) return;
        seen = before;
    }}
"
    );
    let body = match (op, space) {
        ("add", "global") => chosen("red.relaxed.gpu.global.add.f32", "\"l\"((ulong)at)", &retried),
        ("add", _) => chosen("red.relaxed.cta.shared.add.f32", "\"r\"((uint)(ulong)at)", &retried),
        _ => retried,
    };
    format!("\nvoid float_{op}_{space}(volatile {space} float* at, float x) {{\n{body}}}\n")
}

/// An instruction of PTX where the compiler is NVIDIA's, and other statements elsewhere.
fn chosen(instruction: &str, place: &str, otherwise: &str) -> String {
    format!(
        "#ifdef __NV_CL_C_VERSION
    asm volatile(\"{instruction} [%0], %1;\" : : {place}, \"f\"(x) : \"memory\");
#else
{otherwise}#endif
"
    )
}
