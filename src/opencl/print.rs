//! Prints the kernel IR as OpenCL C 1.2, and makes the host plan that runs it.
//!
//! The output is deterministic: equal programs give equal text. The printer decides only how code is spelled, how
//! work-items are numbered, and which loops a compiler is asked to unroll.

mod atomics;
mod checks;
mod control;
pub mod copies;
mod expr;
mod halves;
mod names;
pub mod products;
mod together;
mod types;

use super::plan::{Arg, Buffer, FAULT_WORDS, GOES_ON_WORDS, HostPlan, Launch, Role, Scalar};
use crate::calculus::op::products::Products;
use crate::calculus::scalar::Lit;
use crate::kernel::index::{Atom, Index, Var};
use crate::kernel::ir::{
    ARRAY_ALIGNMENT, Block, BufferRole, ElemTy, Expr, Kernel, Launched, LoopKind, Mem, MemArray,
    Program, Scope, Stmt,
};
use crate::lang::types::ScalarType;
use expr::stored;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use types::{c_type, literal};

/// The functions that the kernels of a program call.
#[derive(Default)]
struct Needed {
    /// Integers of which powers are computed.
    powers: RefCell<BTreeSet<ScalarType>>,
    /// Floats by whose keys something is sorted.
    keys: RefCell<BTreeSet<ScalarType>>,
    /// Kinds of matrix instructions.
    products: RefCell<BTreeSet<Products>>,
    /// Whether matrices are loaded for them.
    matrices: Cell<bool>,
    /// Whether copies arrive late.
    copies: Cell<bool>,
    /// Conversions from and to numbers that are kept as their bits.
    halves: RefCell<BTreeSet<[ElemTy; 2]>>,
}

/// Returns the host plan of a program.
pub fn print(program: &Program) -> HostPlan {
    let needed = Needed::default();
    let checks = checks::Shared::default();
    let mut kernels = String::new();
    let mut launches = vec![];
    let printed = halves::as_bits(program);
    for launched in printed.launched() {
        let (text, launch) = match launched {
            Launched::Kernel(k) => kernel(&printed, &printed.kernels[k], &needed, &checks),
            Launched::Loop(team, steps) => {
                together::kernel(&printed, team, &steps, &needed, &checks)
            }
        };
        kernels.push('\n');
        kernels.push_str(&text);
        launches.push(launch);
    }
    let mut source = String::new();
    let uses = |t: ScalarType| {
        let c = c_type(ElemTy::scalar(t));
        kernels.contains(c.as_str())
    };
    if program.halves && uses(ScalarType::F16) {
        source.push_str("#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n");
    }
    if uses(ScalarType::F64) {
        source.push_str("#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n");
    }
    let sub_groups = has_sub_groups(program);
    if sub_groups {
        source.push_str("#pragma OPENCL EXTENSION cl_khr_subgroups : enable\n");
    }
    if !program.contract {
        source.push_str("#pragma OPENCL FP_CONTRACT OFF\n");
    }
    for t in needed.powers.into_inner() {
        source.push_str(&power(t));
    }
    for [from, to] in needed.halves.into_inner() {
        source.push_str(&halves::definition(from, to));
    }
    for t in needed.keys.into_inner() {
        source.push_str(&order_key(t, program.halves));
    }
    source.push_str(&atomics::functions(program));
    if needed.copies.get() {
        source.push_str(copies::DEFINITIONS);
    }
    if needed.matrices.get() {
        products::MATRICES.iter().for_each(|f| source.push_str(f));
    }
    for of in needed.products.into_inner() {
        source.push_str(products::definition(of));
    }
    let (functions, faults) = checks.finish();
    source.push_str(&functions);
    if together::has_several_groups(program) {
        source.push_str(together::MEET);
    }
    if program.kernels.is_empty() {
        // Some drivers fail on a program without kernels.
        kernels.push_str("\nkernel void nothing(void) {\n}\n");
    }
    source.push_str(&kernels);
    let mut buffers: Vec<Buffer> = program
        .buffers
        .iter()
        .map(|b| Buffer {
            name: b.array.name.to_string(),
            elem: b.array.scalar,
            len: b.array.len,
            role: match &b.role {
                BufferRole::Input(p, c) => Role::Input(p.to_string(), *c),
                BufferRole::Temp => Role::Temp,
                BufferRole::Output(c) => Role::Output(*c),
            },
        })
        .collect();
    if control::runs_ahead(program) {
        let (name, elem) = (control::GOES_ON.to_owned(), ScalarType::I32);
        buffers.push(Buffer { name, elem, len: GOES_ON_WORDS, role: Role::GoesOn });
    }
    if together::has_several_groups(program) {
        let (name, elem) = (together::MET.to_owned(), ScalarType::U32);
        buffers.push(Buffer { name, elem, len: 1, role: Role::Meeting });
    }
    if !faults.is_empty() {
        let (name, elem) = (checks::FAULTS.to_owned(), ScalarType::I32);
        buffers.push(Buffer { name, elem, len: FAULT_WORDS, role: Role::Faults });
    }
    HostPlan {
        source,
        options: [
            if sub_groups { SUB_GROUP_OPTIONS } else { "-cl-std=CL1.2" },
            // Some compilers contract only if `mad` is allowed, which is as accurate as `fma` on today's devices.
            if program.contract { " -cl-mad-enable" } else { "" },
            if program.relaxed { " -cl-no-signed-zeros -cl-denorms-are-zero" } else { "" },
        ]
        .concat(),
        buffers,
        scalars: program
            .scalars
            .iter()
            .map(|s| Scalar { param: s.param.to_string(), component: s.component, ty: s.scalar })
            .collect(),
        launches,
        control: if program.has_loops() { control::steps(program) } else { vec![] },
        faults,
    }
}

/// Options for programs with sub-groups, which are not part of OpenCL C 1.2.
pub(crate) const SUB_GROUP_OPTIONS: &str = "-cl-std=CL3.0";

fn has_sub_groups(program: &Program) -> bool {
    let mut found = false;
    for s in program.kernels.iter().flat_map(|k| &k.body) {
        s.visit(&mut |s| found |= matches!(s, Stmt::Barrier { scope: Scope::Warp, .. }));
    }
    found
}

/// Returns a C function that computes integer powers by squaring, with wrapping overflow.
fn power(t: ScalarType) -> String {
    let c = c_type(ElemTy::scalar(t));
    let wide = if t.bytes() == 8 { "ulong" } else { "uint" };
    format!(
        "\n{c} pow_{t}({c} base, {c} exponent) {{\n    {wide} x = ({wide})base, r = 1;\n    \
         for (; exponent > 0; exponent /= 2) {{\n        if (exponent % 2 != 0) r *= x;\n        \
         x *= x;\n    }}\n    return ({c})r;\n}}\n"
    )
}

/// Returns a C function that computes the key by which a float is sorted, from its bits alone. `calculates` says that the device
/// calculates with `f16`.
fn order_key(t: ScalarType, calculates: bool) -> String {
    let kept = if halves::is_kept(t, calculates) { t.unsigned() } else { t };
    let (c, u) = (c_type(ElemTy::scalar(kept)), c_type(ElemTy::scalar(t.unsigned())));
    let all = u64::MAX >> (64 - t.bits());
    let sign = all ^ (all >> 1);
    // The bits of infinity without the sign, and zeros below them.
    let infinity = Lit::float(t, f64::INFINITY).bits << 1;
    let k = |bits: u64| literal(Lit::int(t.unsigned(), i128::from(bits)));
    let [all, sign, infinity, one, zero] = [all, sign, infinity, 1, 0].map(k);
    format!(
        "\n{u} order_key_{t}({c} x) {{\n    {u} b = as_{u}(x), m = ({u})(b << {one});\n    \
         if (m > {infinity}) return {all};\n    if (m == {zero}) return {sign};\n    \
         return ({u})(b ^ ((b & {sign}) != {zero} ? {all} : {sign}));\n}}\n"
    )
}

/// Prints one kernel.
struct Printer<'a> {
    program: &'a Program,
    kernel: &'a Kernel,
    /// Whether indices need 64 bits.
    wide: bool,
    /// Registers that are assigned after their declaration.
    changed: BTreeSet<u32>,
    /// Buffers that the kernel stores to.
    written: BTreeSet<usize>,
    /// Variables that the printed text mentions.
    used: RefCell<BTreeSet<u32>>,
    buffers: RefCell<BTreeSet<usize>>,
    scalars: RefCell<BTreeSet<usize>>,
    needed: &'a Needed,
    checks: &'a checks::Checks<'a>,
    /// The condition under which a work-item stores, if it does not always.
    stores_if: Option<String>,
    /// Whether indices of the kernel contain quotients or remainders, which are then given names.
    divides: bool,
    /// Quotients and remainders that have a name at this point.
    named: RefCell<Vec<(Atom, String)>>,
    /// Number of names given so far in the kernel.
    names: Cell<usize>,
}

/// What a kernel does with memory, and what numbers its work-items.
#[derive(Default)]
struct Uses {
    /// Registers that are assigned after their declaration.
    changed: BTreeSet<u32>,
    /// Buffers that are loaded from, and those that are stored to.
    read: BTreeSet<usize>,
    written: BTreeSet<usize>,
    /// Buffers that are stored to at places that data decide.
    scattered: BTreeSet<usize>,
    /// Whether work-items exchange data through global memory.
    exchanges: bool,
    /// The variables of parallel loops.
    ids: BTreeMap<(u8, u8), Var>,
}

impl Uses {
    fn of(k: &Kernel) -> Uses {
        let mut out = Uses::default();
        for s in &k.body {
            s.visit(&mut |s| {
                s.exprs(&mut |e| {
                    e.visit(&mut |e| {
                        if let Expr::Load(Mem::Global(b), ..) = e {
                            out.read.insert(*b);
                        }
                    });
                });
                match s {
                    Stmt::Set(r, _) => {
                        out.changed.insert(r.id);
                    }
                    Stmt::Store(Mem::Global(b), i, _) => {
                        out.written.insert(*b);
                        if i.has_data() {
                            out.scattered.insert(*b);
                        }
                    }
                    Stmt::Atomic(_, m, ..) => {
                        out.changed.extend(s.assigned().map(|r| r.id));
                        if let Mem::Global(b) = m {
                            out.written.insert(*b);
                        }
                    }
                    Stmt::Barrier { global, .. } => out.exchanges |= *global,
                    Stmt::Loop { kind, var, .. } => {
                        let key = match kind {
                            LoopKind::Seq => return,
                            LoopKind::Wrg(d) => (0, *d),
                            LoopKind::Lcl(d) => (1, *d),
                            LoopKind::Glb(d) => (2, *d),
                            LoopKind::Warp => (3, 0),
                            LoopKind::Lane => (4, 0),
                        };
                        out.ids.insert(key, var.clone());
                    }
                    _ => {}
                }
            });
        }
        out
    }
}

/// The numbers of a work-item, as C: of its group, in its group, and of all, by dimension.
struct Numbers {
    group: [String; 3],
    local: [String; 3],
    global: [String; 3],
}

impl Numbers {
    /// Those of a launch with so many groups side by side.
    fn of_launch(rows: usize) -> Numbers {
        let of = |name: &str| [0, 1, 2].map(|d| format!("{name}({d})"));
        let mut group = of("get_group_id");
        if rows > 1 {
            group[0] = format!("{rows} * get_group_id(0) + get_local_id(1)");
        }
        Numbers { group, local: of("get_local_id"), global: of("get_global_id") }
    }
}

/// A parameter and the argument for it.
#[derive(Default)]
struct Params {
    names: Vec<String>,
    args: Vec<Arg>,
}

impl Params {
    fn add(&mut self, name: String, arg: Arg) {
        self.names.push(name);
        self.args.push(arg);
    }

    /// Adds the buffers. `constant` says which are only read, and `restrict` which nothing else refers to.
    fn buffers(
        &mut self,
        program: &Program,
        buffers: &BTreeSet<usize>,
        constant: &dyn Fn(usize) -> bool,
        restrict: &dyn Fn(usize) -> bool,
    ) {
        for b in buffers {
            let a = &program.buffers[*b].array;
            let c = c_type(stored(ElemTy::scalar(a.scalar)));
            let constant = if constant(*b) { "const " } else { "" };
            let restrict = if restrict(*b) { " restrict" } else { "" };
            self.add(format!("global {constant}{c}*{restrict} {}", a.name), Arg::Buffer(*b));
        }
    }

    fn scalars(&mut self, program: &Program, scalars: &BTreeSet<usize>) {
        for s in scalars {
            let a = &program.scalars[*s];
            let c = c_type(stored(ElemTy::scalar(a.scalar)));
            self.add(format!("{c} {}", a.name), Arg::Scalar(*s));
        }
    }

    /// Returns the kernel, and its launch.
    fn kernel(self, name: &str, [global, local]: [[usize; 3]; 2], body: &str) -> (String, Launch) {
        let [x, y, z] = local;
        let text = format!(
            "kernel __attribute__((reqd_work_group_size({x}, {y}, {z})))\nvoid {name}({}) {{\n{body}}}\n",
            self.names.join(", ")
        );
        (text, Launch { kernel: name.to_owned(), args: self.args, global, local })
    }
}

fn kernel(
    program: &Program,
    k: &Kernel,
    needed: &Needed,
    checks: &checks::Shared,
) -> (String, Launch) {
    let uses = Uses::of(k);
    let checks = checks::Checks::new(checks);
    let p = Printer::new(program, k, &uses, needed, &checks);
    let mut body = String::new();
    p.block(&k.body, 1, &mut body);
    let mut head = match k.side_by_side {
        1 => Printer::arrays(&k.locals, 1, "local "),
        rows => p.arrays_of_rows(&k.locals, rows),
    };
    head.push_str(&Printer::arrays(&k.privates, 1, ""));
    head.push_str(&p.numbers(&uses.ids, &Numbers::of_launch(k.side_by_side), 1));
    let made = p.checks.print(&k.name);
    head.push_str(&made.before);
    body.push_str(&made.after);
    let Uses { read, written, scattered, exchanges, .. } = &uses;
    // From a choice between an element of a constant buffer and one that the kernel has stored, NVIDIA's compiler makes one
    // load through the cache for constants, which misses the store. Without `restrict` on the constant buffer it does not
    // use that cache.
    let rereads = !read.is_disjoint(written);
    // `restrict` says that nobody else stores to what a work-item reads. A compiler may then move a load in front of the barrier
    // that it has to follow.
    let meets = |b: usize| *exchanges && read.contains(&b) && written.contains(&b);
    let mut params = Params::default();
    let constant = |b: usize| !written.contains(&b);
    // PoCL's compiler moves a load in front of the loop that scatters what is loaded.
    let moved = |b: usize| read.contains(&b) && scattered.contains(&b);
    let restrict = |b: usize| !(rereads && constant(b) || meets(b) || moved(b));
    params.buffers(program, &p.buffers.borrow(), &constant, &restrict);
    params.scalars(program, &p.scalars.borrow());
    for (depth, counter) in control::counters(program, k).into_iter().enumerate() {
        if let Some(v) = counter.filter(|v| p.used.borrow().contains(&v.id)) {
            params.add(format!("const int {}", v.name), Arg::Counter(depth));
        }
    }
    if !made.after.is_empty() {
        params
            .add(format!("volatile global int* {}", checks::FAULTS), own_buffers(program).faults());
    }
    if control::runs_ahead(program) && control::is_checked(program, k) {
        let name = p.unused(control::GOES_ON);
        head.insert_str(0, &format!("    if (*{name} == 0) return;\n"));
        params.add(format!("global const int* {name}"), Arg::Buffer(program.buffers.len()));
    }
    let ([x, y, z], rows) = (k.global, k.side_by_side);
    let sizes = match rows {
        1 => [k.global, k.group],
        _ => [[x / rows, y * rows, z], [k.group[0], rows, 1]],
    };
    params.kernel(&k.name, sizes, &(head + &body))
}

/// The buffers of a plan that the program does not know, which follow its own.
struct OwnBuffers {
    first: usize,
    goes_on: bool,
    meets: bool,
}

fn own_buffers(program: &Program) -> OwnBuffers {
    OwnBuffers {
        first: program.buffers.len(),
        goes_on: control::runs_ahead(program),
        meets: together::has_several_groups(program),
    }
}

impl OwnBuffers {
    /// Where the groups of a team meet.
    fn meeting(&self) -> Arg {
        Arg::Buffer(self.first + usize::from(self.goes_on))
    }

    fn faults(&self) -> Arg {
        Arg::Buffer(self.first + usize::from(self.goes_on) + usize::from(self.meets))
    }
}

/// Most iterations of a loop that a compiler is asked to unroll completely.
const MOST_TRIPS: i64 = 16;

/// Most statements after complete unrolling.
const MOST_STATEMENTS: i64 = 2048;

/// Factors for partial unrolling of loops in kernels that stage data in local memory. The largest factor is used
/// that divides the trip count and leaves at most [`STATEMENTS_AT_ONCE`] statements. Unrolled iterations hide each
/// other's latency. Loops with at most [`LEFT_ALONE`] iterations are not unrolled partially.
const AT_ONCE: [i64; 3] = [16, 8, 4];
const STATEMENTS_AT_ONCE: i64 = 768;
const LEFT_ALONE: i64 = 32;

/// Returns the id that stands in [`Printer::used`] for the local id of a dimension that no loop uses.
fn lone(d: usize) -> u32 {
    u32::MAX - u32::try_from(d).unwrap_or(0)
}

/// Returns whether some index may not fit in 32 bits.
fn is_wide(program: &Program, k: &Kernel) -> bool {
    let most = i64::from(i32::MAX);
    let mut wide = false;
    let mut check = |i: &Index| {
        let (lo, hi) = i.range();
        wide |= !i.has_data() && (lo < -most || hi > most);
    };
    for s in &k.body {
        s.visit(&mut |s| {
            match s {
                Stmt::Store(_, i, _) | Stmt::Atomic(_, _, i, _) => check(i),
                Stmt::Loop { lo, hi, .. } => {
                    check(lo);
                    check(hi);
                }
                Stmt::If(g, ..) => g.0.iter().for_each(&mut check),
                _ => {}
            }
            s.exprs(&mut |e| {
                e.visit(&mut |e| match e {
                    Expr::Load(_, _, i) | Expr::Index(i, _) => check(i),
                    Expr::Guarded(g, ..) => g.0.iter().for_each(&mut check),
                    _ => {}
                });
            });
        });
    }
    wide || program.buffers.iter().any(|b| i64::try_from(b.array.len).unwrap_or(i64::MAX) > most)
}

impl<'a> Printer<'a> {
    fn new(
        program: &'a Program,
        kernel: &'a Kernel,
        uses: &Uses,
        needed: &'a Needed,
        checks: &'a checks::Checks<'a>,
    ) -> Printer<'a> {
        Printer {
            program,
            kernel,
            wide: is_wide(program, kernel),
            changed: uses.changed.clone(),
            written: uses.written.clone(),
            used: RefCell::default(),
            buffers: RefCell::default(),
            scalars: RefCell::default(),
            needed,
            checks,
            stores_if: None,
            divides: names::divides(&kernel.body),
            named: RefCell::default(),
            names: Cell::new(0),
        }
    }

    /// Returns the declarations of arrays.
    fn arrays(arrays: &[MemArray], depth: usize, space: &str) -> String {
        let declared = arrays.iter().map(|a| {
            let c = c_type(stored(ElemTy::scalar(a.scalar)));
            format!(
                "{}{space}{c} {}[{}] __attribute__((aligned({ARRAY_ALIGNMENT})));\n",
                "    ".repeat(depth),
                a.name,
                a.len.max(1)
            )
        });
        declared.collect()
    }

    /// Returns the declarations of local arrays of groups that are side by side: each takes a row of an array of rows.
    fn arrays_of_rows(&self, arrays: &[MemArray], rows: usize) -> String {
        let declared = arrays.iter().map(|a| {
            let c = c_type(stored(ElemTy::scalar(a.scalar)));
            let (name, all) = (&a.name, self.unused(&format!("{}_of_rows", a.name)));
            let row = a.len.max(1).next_multiple_of(ARRAY_ALIGNMENT / a.scalar.bytes().max(1));
            format!(
                "    local {c} {all}[{rows}][{row}] __attribute__((aligned({ARRAY_ALIGNMENT})));\n    local {c}* const {name} = {all}[get_local_id(1)];\n"
            )
        });
        declared.collect()
    }

    /// Returns the declarations of the numbers of work-items that the printed code uses.
    fn numbers(&self, ids: &BTreeMap<(u8, u8), Var>, of: &Numbers, depth: usize) -> String {
        let pad = "    ".repeat(depth);
        let slot = |d: u8| usize::from(d).min(2);
        let warp = self.kernel.warp.max(1);
        let mut out = String::new();
        for ((kind, d), var) in ids {
            if self.used.borrow().contains(&var.id) {
                let value = match kind {
                    0 => of.group[slot(*d)].clone(),
                    1 => of.local[slot(*d)].clone(),
                    2 => of.global[slot(*d)].clone(),
                    3 => format!("{} / {warp}", of.local[0]),
                    _ => format!("{} % {warp}", of.local[0]),
                };
                let _ = writeln!(out, "{pad}const {} {} = {value};", self.int(), var.name);
            }
        }
        for d in 0..3 {
            if self.used.borrow().contains(&lone(d))
                && !ids.iter().any(|((k, e), v)| {
                    *k == 1 && usize::from(*e) == d && self.used.borrow().contains(&v.id)
                })
            {
                let _ = writeln!(out, "{pad}const {} l{d} = {};", self.int(), of.local[d]);
            }
        }
        out
    }
}

impl Printer<'_> {
    fn int(&self) -> &'static str {
        if self.wide { "long" } else { "int" }
    }

    /// Returns the name of an array, and records that the kernel uses it.
    fn memory(&self, m: Mem) -> String {
        if let Mem::Global(b) = m {
            self.buffers.borrow_mut().insert(b);
        }
        let array: Option<&MemArray> = self.kernel.array(self.program, m);
        array.map_or(String::new(), |a| a.name.to_string())
    }

    /// Returns the name, with underscores appended until no buffer or scalar argument has it.
    fn unused(&self, name: &str) -> String {
        let buffers = self.program.buffers.iter().map(|b| &b.array.name);
        let taken: Vec<_> = buffers.chain(self.program.scalars.iter().map(|s| &s.name)).collect();
        let mut name = name.to_owned();
        while taken.iter().any(|t| ***t == *name) {
            name.push('_');
        }
        name
    }

    fn scalar(&self, k: usize) -> String {
        self.scalars.borrow_mut().insert(k);
        self.program.scalars.get(k).map_or(String::new(), |s| s.name.to_string())
    }

    /// Returns the conditions of a parallel loop, and its body. A warp loop and the lane loop in it are printed as
    /// one.
    fn conditions<'b>(
        &self,
        kind: LoopKind,
        var: &Var,
        hi: &Index,
        mut body: &'b Block,
    ) -> (Vec<String>, &'b Block) {
        let mut out: Vec<String> = self.bound(kind, var, hi).into_iter().collect();
        if kind == LoopKind::Warp {
            if let [Stmt::If(g, inner, otherwise)] = body.as_slice()
                && otherwise.is_empty()
            {
                out.push(self.guard(g).0);
                body = inner;
            }
            if let [Stmt::Loop { kind: LoopKind::Lane, var, hi, body: inner, .. }] = body.as_slice()
            {
                out.extend(self.bound(LoopKind::Lane, var, hi));
                body = inner;
            }
        }
        (out, body)
    }

    /// Returns the condition of a parallel loop with fewer iterations than there are workers.
    fn bound(&self, kind: LoopKind, var: &Var, hi: &Index) -> Option<String> {
        let (group, global) = (self.kernel.group, self.kernel.global);
        let slot = |d: u8| usize::from(d).min(2);
        let workers = match kind {
            LoopKind::Lcl(d) => group[slot(d)],
            LoopKind::Wrg(d) => global[slot(d)] / group[slot(d)].max(1),
            LoopKind::Glb(d) => global[slot(d)],
            LoopKind::Warp => group[0].div_ceil(self.kernel.warp.max(1)),
            LoopKind::Lane => self.kernel.warp,
            LoopKind::Seq => return None,
        };
        let n = hi.as_constant().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
        if n >= workers {
            return None;
        }
        self.used.borrow_mut().insert(var.id);
        Some(match n {
            1 => format!("{} == 0", var.name),
            n => format!("{} < {n}", var.name),
        })
    }

    fn block(&self, b: &Block, depth: usize, out: &mut String) {
        let outside = self.named.borrow().len();
        let plan = if self.divides { names::plan(b) } else { vec![] };
        for (at, s) in b.iter().enumerate() {
            for a in plan.get(at).into_iter().flatten() {
                self.name(a, depth, out);
            }
            self.stmt(s, depth, out);
        }
        self.named.borrow_mut().truncate(outside);
    }

    /// Declares a name for a quotient or remainder that has none yet.
    fn name(&self, a: &Atom, depth: usize, out: &mut String) {
        if self.named.borrow().iter().any(|(b, _)| b == a) {
            return;
        }
        let pad = "    ".repeat(depth);
        // Names are unique within a kernel, because the body of a parallel loop need not be a block in C.
        let name = self.unused(&format!("q{}", self.names.get()));
        self.names.set(self.names.get() + 1);
        let value = self.atom(a).0;
        let _ = writeln!(out, "{pad}const {} {name} = {value};", self.int());
        self.named.borrow_mut().push((a.clone(), name));
    }

    /// Returns the pragma that asks a compiler to unroll a sequential loop, if there should be one: for complete
    /// unrolling, if the loop has few iterations and contains no loops or barriers; for partial unrolling, if it
    /// has many iterations and the kernel stages data in local memory. Where several blocks of local memory take turns, a round of them is
    /// written out, so that places are known.
    fn unrolls(&self, lo: &Index, hi: &Index, body: &Block) -> Option<String> {
        let (lo, hi) = (lo.as_constant()?, hi.as_constant()?);
        let (mut plain, mut statements) = (true, 0);
        for s in body {
            s.visit(&mut |s| {
                plain &= !matches!(s, Stmt::Loop { .. } | Stmt::While(..) | Stmt::Barrier { .. });
                statements += 1;
            });
        }
        let trips = hi.saturating_sub(lo);
        let turns = self.kernel.locals.iter().map(|a| a.ahead).max().unwrap_or(0) + 1;
        let meets = |s: &Stmt| matches!(s, Stmt::Barrier { scope: Scope::Group, .. });
        if turns > 2 && trips > i64::try_from(turns).unwrap_or(trips) && body.iter().any(meets) {
            return Some(format!("#pragma unroll {turns}"));
        }
        let short = |n: i64| plain && n * statements <= MOST_STATEMENTS;
        if (2..=MOST_TRIPS).contains(&trips) && short(trips) {
            return Some("#pragma unroll".to_owned());
        }
        let long = plain && !self.kernel.locals.is_empty() && trips > LEFT_ALONE;
        let fits = |n: &i64| trips % n == 0 && n * statements <= STATEMENTS_AT_ONCE;
        let at_once = AT_ONCE.into_iter().find(|n| long && fits(n))?;
        Some(format!("#pragma unroll {at_once}"))
    }

    fn nested(&self, head: &str, b: &Block, depth: usize, out: &mut String) {
        let pad = "    ".repeat(depth);
        let _ = writeln!(out, "{pad}{head} {{");
        self.block(b, depth + 1, out);
        let _ = writeln!(out, "{pad}}}");
    }

    fn branches(&self, c: &str, a: &Block, b: &Block, depth: usize, out: &mut String) {
        let pad = "    ".repeat(depth);
        let _ = writeln!(out, "{pad}if ({c}) {{");
        self.block(a, depth + 1, out);
        if !b.is_empty() {
            let _ = writeln!(out, "{pad}}} else {{");
            self.block(b, depth + 1, out);
        }
        let _ = writeln!(out, "{pad}}}");
    }

    fn stmt(&self, s: &Stmt, depth: usize, out: &mut String) {
        let pad = "    ".repeat(depth);
        match s {
            Stmt::Decl(r, init) => {
                let fixed = if self.changed.contains(&r.id) { "" } else { "const " };
                let c = c_type(r.ty);
                if let Some(e) = init.as_ref().filter(|_| !fixed.is_empty()) {
                    self.checks.hold(r.id, e);
                }
                let _ = match init {
                    Some(e) => writeln!(out, "{pad}{fixed}{c} {} = {};", r.name, self.expr(e).0),
                    None => writeln!(out, "{pad}{c} {};", r.name),
                };
            }
            Stmt::Set(r, e) => {
                let _ = writeln!(out, "{pad}{} = {};", r.name, self.expr(e).0);
            }
            Stmt::Store(m, i, e) => {
                let t = e.ty();
                let pad = match (&self.stores_if, m) {
                    (Some(c), Mem::Global(_) | Mem::Local(_)) => format!("{pad}if ({c}) "),
                    _ => pad,
                };
                let place = self.place(*m, t, i, false);
                if place.is_none() && self.order(*m).is_some() {
                    for lane in 0..t.width {
                        let at = i.plus(i64::try_from(lane).unwrap_or_default());
                        self.stmt(&Stmt::Store(*m, at, e.lane(lane)), depth, out);
                    }
                    return;
                }
                if let Some(copy) = place.as_ref().and_then(|to| self.copy_ahead(*m, to, e)) {
                    let _ = writeln!(out, "{pad}{copy}");
                    return;
                }
                let mut v = self.expr(e).0;
                if t.scalar == ScalarType::Bool && t.width > 1 {
                    v = format!("convert_uchar{}(({v}) & 1)", t.width);
                }
                let _ = match place {
                    // Non-temporal stores only pay off for whole vectors, which fill cache lines of their own.
                    Some(p)
                        if self.kernel.streaming && t.width > 1 && matches!(m, Mem::Global(_)) =>
                    {
                        writeln!(out, "{pad}__builtin_nontemporal_store({v}, &{p});")
                    }
                    Some(p) => writeln!(out, "{pad}{p} = {v};"),
                    None => writeln!(
                        out,
                        "{pad}vstore{}({v}, 0, {} + {});",
                        t.width,
                        self.memory(*m),
                        self.index(i).0
                    ),
                };
            }
            Stmt::Atomic(op, m, i, e) => {
                let t = e.ty();
                let place = self.place(*m, t, i, false).unwrap_or_default();
                let text = atomics::statement(op, t.scalar, *m, &place, &self.expr(e).0);
                let _ = writeln!(out, "{pad}{text}");
            }
            Stmt::Loop { kind, var, lo, hi, body } => match kind {
                LoopKind::Seq => {
                    let (i, int) = (&var.name, self.int());
                    let (mut first, mut end) = (self.index(lo).0, self.index(hi).0);
                    if hi.as_constant().is_none() {
                        // Evaluate the bound once instead of in every iteration.
                        let name = self.unused(&format!("{i}_end"));
                        first = format!("{first}, {name} = {end}");
                        end = name;
                    }
                    if let Some(how) = self.unrolls(lo, hi, body) {
                        let _ = writeln!(out, "{pad}{how}");
                    }
                    let head = format!("for ({int} {i} = {first}; {i} < {end}; ++{i})");
                    self.nested(&head, body, depth, out);
                }
                _ => {
                    let (conditions, body) = self.conditions(*kind, var, hi, body);
                    if conditions.is_empty() {
                        self.block(body, depth, out);
                    } else {
                        let head = format!("if ({})", conditions.join(" && "));
                        self.nested(&head, body, depth, out);
                    }
                }
            },
            Stmt::If(g, a, b) => self.branches(&self.guard(g).0, a, b, depth, out),
            Stmt::Branch(c, a, b) => self.branches(&self.expr(c).0, a, b, depth, out),
            Stmt::While(head, c, body) => {
                if head.is_empty() {
                    self.nested(&format!("while ({})", self.expr(c).0), body, depth, out);
                } else {
                    let _ = writeln!(out, "{pad}for (;;) {{");
                    self.block(head, depth + 1, out);
                    let _ = writeln!(out, "{pad}    if (!({})) break;", self.expr(c).0);
                    self.block(body, depth + 1, out);
                    let _ = writeln!(out, "{pad}}}");
                }
            }
            Stmt::Once(b) => {
                let mut first = vec![];
                for (d, n) in self.kernel.group.iter().enumerate() {
                    if *n > 1 {
                        self.used.borrow_mut().insert(lone(d));
                        first.push(format!("l{d} == 0"));
                    }
                }
                if first.is_empty() {
                    self.block(b, depth, out);
                } else {
                    self.nested(&format!("if ({})", first.join(" && ")), b, depth, out);
                }
            }
            Stmt::Barrier { scope, local, global } => {
                let barrier = match scope {
                    Scope::Warp => "sub_group_barrier",
                    Scope::Group => "barrier",
                };
                let flags = match (local, global) {
                    (true, true) => "CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE",
                    (_, true) => "CLK_GLOBAL_MEM_FENCE",
                    _ => "CLK_LOCAL_MEM_FENCE",
                };
                let ahead = self.kernel.locals.iter().map(|a| a.ahead).filter(|n| *n > 0).min();
                if let Some(barriers) = ahead {
                    self.needed.copies.set(true);
                    let _ = writeln!(out, "{pad}{}", copies::arrive(barriers));
                }
                let _ = writeln!(out, "{pad}{barrier}({flags});");
            }
        }
    }
}

#[cfg(test)]
mod tests;
