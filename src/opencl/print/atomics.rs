//! Operations on memory as one step: built-in functions for integers, and functions of our own for floats, which OpenCL
//! C 1.2 does not have.

use crate::kernel::ATOMICS_64;
use crate::kernel::ir::{Mem, Program, Stmt};
use crate::lang::typed::ScalarOp;
use crate::lang::types::ScalarType;
use std::collections::BTreeSet;

/// Returns the name of the function that combines a value with an element; `None` if there is none.
fn function(op: ScalarOp, t: ScalarType, m: Mem) -> Option<String> {
    let name = name(op)?;
    match t {
        ScalarType::I32 | ScalarType::U32 => Some(format!("atomic_{name}")),
        ScalarType::I64 | ScalarType::U64 => Some(format!("atom_{name}")),
        ScalarType::F32 => Some(format!("float_{name}_{}", space(m))),
        ScalarType::F64 => Some(format!("double_{name}_{}", space(m))),
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

/// Returns the extensions that the kernels of a program need, and the functions that they call.
pub(super) fn functions(program: &Program) -> String {
    let (mut used, mut wide) = (BTreeSet::new(), false);
    for s in program.kernels.iter().flat_map(|k| &k.body) {
        s.visit(&mut |s| {
            if let Stmt::Atomic(op, m, _, e) = s {
                let t = e.ty().scalar;
                wide |= t.bytes() == 8;
                if t.is_float() {
                    used.insert((t == ScalarType::F64, name(*op), space(*m)));
                }
            }
        });
    }
    let extensions = ATOMICS_64.iter().filter(|_| wide);
    let extensions = extensions.map(|e| format!("#pragma OPENCL EXTENSION {e} : enable\n"));
    let functions = used.into_iter();
    let functions = functions.filter_map(|(wide, op, space)| Some(on_floats(wide, op?, space)));
    extensions.chain(functions).collect()
}

/// The operation on floats, of 64 bits if `wide` is set: tries again while another work-item changes the element. The first read
/// is atomic, too: a plain one would race with updates. The compiler of NVIDIA, which says who it is by a macro, gets the
/// device's own addition.
fn on_floats(wide: bool, op: &str, space: &str) -> String {
    let (t, int, prefix) =
        if wide { ("double", "long", "atom") } else { ("float", "int", "atomic") };
    let next =
        if op == "add" { format!("as_{t}(seen) + x") } else { format!("f{op}(as_{t}(seen), x)") };
    let retried = format!(
        "    volatile {space} {int}* bits = (volatile {space} {int}*)at;
    {int} seen = {prefix}_or(bits, 0);
    while (true) {{
        const {int} before = {prefix}_cmpxchg(bits, seen, as_{int}({next}));
        if (before == seen) return;
        seen = before;
    }}
"
    );
    let (of_ptx, register) = if wide { ("f64", "d") } else { ("f32", "f") };
    let body = match (op, space) {
        ("add", "global") => {
            let add = format!("red.relaxed.gpu.global.add.{of_ptx}");
            chosen(&add, "\"l\"((ulong)at)", register, &retried)
        }
        ("add", _) => {
            let add = format!("red.relaxed.cta.shared.add.{of_ptx}");
            chosen(&add, "\"r\"((uint)(ulong)at)", register, &retried)
        }
        _ => retried,
    };
    format!("\nvoid {t}_{op}_{space}(volatile {space} {t}* at, {t} x) {{\n{body}}}\n")
}

/// An instruction of PTX where the compiler is NVIDIA's, and other statements elsewhere.
fn chosen(instruction: &str, place: &str, register: &str, otherwise: &str) -> String {
    format!(
        "#ifdef __NV_CL_C_VERSION
    asm volatile(\"{instruction} [%0], %1;\" : : {place}, \"{register}\"(x) : \"memory\");
#else
{otherwise}#endif
"
    )
}
