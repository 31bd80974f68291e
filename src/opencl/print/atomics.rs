//! Operations on memory as one step.

use super::types::c_type;
use crate::kernel::ATOMICS_64;
use crate::kernel::ir::{ElemTy, Lanes, Mem, Program, Stmt, Update};
use crate::lang::typed::ScalarOp;
use crate::lang::types::ScalarType;
use std::collections::BTreeSet;

/// An operation on elements of one type in one memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Atomic {
    op: &'static str,
    ty: ScalarType,
    space: &'static str,
    /// Whether the lanes of a warp combine the values of one element first.
    runs: bool,
}

impl Atomic {
    fn of(op: ScalarOp, ty: ScalarType, m: Mem, lanes: Lanes) -> Option<Atomic> {
        let runs = lanes == Lanes::Together;
        (ty.bytes() >= 4).then_some(Atomic { op: name(op)?, ty, space: space(m), runs })
    }

    fn is_wide(self) -> bool {
        self.ty.bytes() == 8
    }

    /// The prefix of the built-in functions for this width.
    fn prefix(self) -> &'static str {
        if self.is_wide() { "atom" } else { "atomic" }
    }

    /// The name of the function that combines a value with an element.
    fn function(self) -> String {
        let runs = if self.runs { "_runs" } else { "" };
        format!("{}_{}_{}{runs}", c_type(ElemTy::scalar(self.ty)), self.op, self.space)
    }

    /// The operation on two values.
    fn of_values(self, a: &str, b: &str) -> String {
        match self.op {
            "add" => format!("{a} + {b}"),
            "and" => format!("{a} & {b}"),
            "or" => format!("{a} | {b}"),
            "xor" => format!("{a} ^ {b}"),
            op if self.ty.is_float() => format!("f{op}({a}, {b})"),
            op => format!("{op}({a}, {b})"),
        }
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

/// The name of global memory.
const GLOBAL: &str = "global";

fn space(m: Mem) -> &'static str {
    if let Mem::Local(_) = m { "local" } else { GLOBAL }
}

/// Returns the statement that does the update of the element at `place` with `value`.
pub(super) fn statement(
    update: &Update,
    t: ScalarType,
    m: Mem,
    place: &str,
    value: &str,
) -> String {
    match update {
        Update::Combine(op, lanes) => {
            let function = Atomic::of(*op, t, m, *lanes).map(Atomic::function).unwrap_or_default();
            format!("{function}(&{place}, {value});")
        }
        Update::Read(r) => {
            format!("{} = {}(&{place});", r.name, Word { ty: t, space: space(m) }.reader())
        }
        Update::Swap(r) => {
            let (seen, cast) = (&r.name, Word { ty: t, space: space(m) }.pointer());
            let prefix = if t.bytes() == 8 { "atom" } else { "atomic" };
            format!("{seen} = {prefix}_cmpxchg(({cast})&{place}, {seen}, {value});")
        }
    }
}

/// Unsigned words of one memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Word {
    ty: ScalarType,
    space: &'static str,
}

impl Word {
    fn pointer(self) -> String {
        format!("volatile {} {}*", self.space, c_type(ElemTy::scalar(self.ty)))
    }

    /// The name of the function that reads a word as one step.
    fn reader(self) -> String {
        format!("{}_read_{}", c_type(ElemTy::scalar(self.ty)), self.space)
    }

    /// The function that reads a word as one step. NVIDIA's compiler, which says who it is by a macro, makes one instruction of a
    /// volatile read of a word, and such a read takes the device less time than an operation.
    fn definition(self) -> String {
        let (t, prefix) =
            (c_type(ElemTy::scalar(self.ty)), if self.ty.bytes() == 8 { "atom" } else { "atomic" });
        format!(
            "\n{t} {}({} at) {{
#ifdef __NV_CL_C_VERSION
    return *at;
#else
    return {prefix}_or(at, 0);
#endif
}}\n",
            self.reader(),
            self.pointer()
        )
    }
}

/// Returns the extensions that the kernels of a program need, and the functions that they call.
pub(super) fn functions(program: &Program) -> String {
    let mut used = BTreeSet::new();
    let mut read = BTreeSet::new();
    let mut wide = false;
    for s in program.kernels.iter().flat_map(|k| &k.body) {
        s.visit(&mut |s| {
            if let Stmt::Atomic(update, m, _, e) = s {
                let t = e.ty().scalar;
                wide |= t.bytes() == 8;
                match update {
                    Update::Combine(op, lanes) => used.extend(Atomic::of(*op, t, *m, *lanes)),
                    Update::Read(_) => {
                        read.insert(Word { ty: t, space: space(*m) });
                    }
                    Update::Swap(_) => {}
                }
            }
        });
    }
    let extensions = ATOMICS_64.iter().filter(|_| wide);
    let extensions = extensions.map(|e| format!("#pragma OPENCL EXTENSION {e} : enable\n"));
    let runs = if used.iter().any(|a| a.runs) { RUNS } else { "" };
    let read = read.into_iter().map(Word::definition);
    extensions
        .chain([runs.to_owned()])
        .chain(used.into_iter().map(definition))
        .chain(read)
        .collect()
}

/// Functions that find the runs of neighbouring lanes of a warp with equal keys, in the instructions of NVIDIA.
const RUNS: &str = r#"
#ifdef __NV_CL_C_VERSION
int lane_number(void) {
    int lane;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
}

int lane_up(int x, int distance) {
    int y;
    asm volatile("shfl.sync.up.b32 %0, %1, %2, 0, 0xffffffff;" : "=r"(y) : "r"(x), "r"(distance));
    return y;
}

uint run_starts(uint key, int lane) {
    uint active, starts;
    asm volatile("activemask.b32 %0;" : "=r"(active));
    if (active != 0xffffffffu) return 0xffffffffu;
    const int before = lane_up((int)key, 1);
    const int first = lane == 0 || before != (int)key;
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %1, 0; vote.sync.ballot.b32 %0, p, 0xffffffff; }" : "=r"(starts) : "r"(first));
    return starts;
}
#endif
"#;

/// The function of an operation.
///
/// With the compiler of NVIDIA, which says who it is by a macro, the lanes of a warp whose neighbours change the same element
/// combine their values first, and the last of each run changes the element: elements that are changed by many work-items at the
/// same time (sorted keys, few bins) would else be changed one work-item at a time. A warp of which half of the lanes or more have
/// neighbours with other elements goes on as it is. Where elements have copies, neighbours never meet, and the
/// test would cost more than it saves.
fn definition(a: Atomic) -> String {
    let t = c_type(ElemTy::scalar(a.ty));
    let (space, function) = (a.space, a.function());
    let up = match a.is_wide() {
        false => format!("as_{t}(lane_up(as_int(x), d))"),
        true => format!("as_{t}((int2)(lane_up(as_int2(x).x, d), lane_up(as_int2(x).y, d)))"),
    };
    let (shift, both) = (a.ty.bytes().ilog2(), a.of_values("y", "x"));
    let change = match a.ty.is_float() {
        true if a.op == "add" => sum_of_floats(a),
        true => choice_of_floats(a),
        false => format!("    {}_{}(at, x);\n", a.prefix(), a.op),
    };
    let combined = match a.runs {
        true => format!(
            "#ifdef __NV_CL_C_VERSION
    const int lane = lane_number();
    const uint starts = run_starts((uint)((ulong)at >> {shift}), lane);
    if (popcount(starts) <= 16) {{
        const int start = 31 - clz(starts & (0xffffffffu >> (31 - lane)));
        for (int d = 1; d < 32; d *= 2) {{
            const {t} y = {up};
            if (lane - d >= start) x = {both};
        }}
        if (lane < 31 && !(starts >> (lane + 1) & 1)) return;
    }}
#endif
"
        ),
        false => String::new(),
    };
    format!("\nvoid {function}(volatile {space} {t}* at, {t} x) {{\n{combined}{change}}}\n")
}

/// The sum of floats, which OpenCL C 1.2 does not have: tries again while another work-item changes the element. The first
/// read is atomic, too: a plain one would race with updates. The compiler of NVIDIA gets the device's own addition.
fn sum_of_floats(a: Atomic) -> String {
    let t = c_type(ElemTy::scalar(a.ty));
    let (int, prefix, space) = (if a.is_wide() { "long" } else { "int" }, a.prefix(), a.space);
    let next = a.of_values(&format!("as_{t}(seen)"), "x");
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
    let (of_ptx, register) = if a.is_wide() { ("f64", "d") } else { ("f32", "f") };
    let (of_space, place) = match space {
        GLOBAL => ("gpu.global", "\"l\"((ulong)at)"),
        _ => ("cta.shared", "\"r\"((uint)(ulong)at)"),
    };
    chosen(&format!("red.relaxed.{of_space}.add.{of_ptx}"), place, register, &retried)
}

/// The greatest or the least float: floats without a sign are ordered as their bits, those with a sign in the opposite order.
/// What is no number changes nothing.
fn choice_of_floats(a: Atomic) -> String {
    let (int, prefix, space) = (if a.is_wide() { "long" } else { "int" }, a.prefix(), a.space);
    let opposite = if a.op == "max" { "min" } else { "max" };
    format!(
        "    if (isnan(x)) return;
    const {int} bits = as_{int}(x);
    if (bits >= 0) {prefix}_{}((volatile {space} {int}*)at, bits);
    else {prefix}_{opposite}((volatile {space} u{int}*)at, (u{int})bits);
",
        a.op
    )
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
