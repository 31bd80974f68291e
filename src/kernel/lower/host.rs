//! Lowering between kernels: inputs, outputs, and which stages share a kernel.

use super::dest::Dest;
use super::irregular::GROUP;
use super::leaf::Emit;
use super::lowerer::{Building, Context, Lowerer, Open};
use super::schedule::Record;
use super::view::{Shape, Slot, Step, Stop, View, Views, stop};
use crate::calculus::scalar::{Lit, SExpr};
use crate::calculus::size::{Size, SizeEnv};
use crate::calculus::term::{MapKind, Op, Term};
use crate::calculus::ty::Ty;
use crate::diag::Code;
use crate::kernel::ir::index::Index;
use crate::kernel::ir::walk::{Fresh, HOST};
use crate::kernel::ir::{
    Buffer, BufferRole, Control, Expr, Kernel, LoopKind, Mem, MemArray, Program, ScalarArg, Stmt,
};
use crate::kernel::options::Options;
use crate::lang::types::ScalarType;
use indexmap::IndexMap;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

/// Lowers a whole program. Also returns the source of the registers that passes add to it. Decisions are recorded if
/// there is a record.
pub fn program(
    term: &Term,
    env: &SizeEnv,
    options: &Options,
    record: Option<Record>,
) -> Step<(Program, Fresh, Option<Record>)> {
    let mut builder = Inputs {
        views: Views {
            env: env.clone(),
            inputs: IndexMap::new(),
            scalars: IndexMap::new(),
            checked: !options.unchecked,
            inside: RefCell::default(),
        },
        buffers: vec![],
        args: vec![],
        expected: &options.expected,
        names: BTreeSet::new(),
    };
    builder.collect(term)?;
    let Inputs { views, mut buffers, args, mut names, .. } = builder;
    let views = Rc::new(views);
    let shape = views.shape(&term.ty().cod)?;
    let mut slots = vec![];
    for (k, (t, n)) in shape.components().into_iter().enumerate() {
        let stem =
            if shape.components().len() == 1 { "out".to_owned() } else { format!("out_{k}") };
        let array = MemArray {
            name: unique(&stem, &mut names),
            scalar: t.scalar,
            len: usize::try_from(n).unwrap_or(usize::MAX).saturating_mul(t.width),
            ahead: 0,
            pieces: 0,
        };
        slots.push(Slot::new(Mem::Global(buffers.len()), Index::from(0)));
        buffers.push(Buffer { array, role: BufferRole::Output(k) });
    }
    let mut lowerer = Lowerer {
        views,
        options: options.clone(),
        program: Program {
            buffers,
            scalars: args,
            kernels: vec![],
            control: vec![],
            contract: options.contract || options.relaxed,
            relaxed: options.relaxed,
            halves: options.device.halves,
            ahead: options.device.launches_ahead(),
        },
        choices: vec![],
        context: Context::Host,
        kernel: Building::default(),
        blocks: vec![],
        open: None,
        vector: false,
        streaming: false,
        copies: 1,
        passed_on: BTreeSet::new(),
        states: vec![],
        later: None,
        record,
        names: Fresh { next: 0, first: 0, reserved: names.clone() },
        host_names: Fresh { next: HOST, first: HOST, reserved: names },
    };
    let dest = Dest::of_slots(&shape, &slots)?;
    lowerer.write(&term.chain(), &View::Unit, &dest)?;
    let Lowerer { program, host_names, record, .. } = lowerer;
    Ok((program, host_names, record))
}

fn reduces_together(f: &Term) -> bool {
    let mut found = false;
    f.visit(&mut |t| found |= matches!(t.op(), Op::ReduceLcl | Op::ScanLcl(_)));
    found
}

/// Returns a name that is a valid C identifier, no keyword, and not taken yet.
fn unique(stem: &str, names: &mut BTreeSet<String>) -> Arc<str> {
    let mut name: String =
        stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) || is_reserved(&name) {
        name.push('_');
    }
    while !names.insert(name.clone()) {
        name.push('_');
    }
    name.into()
}

/// Whether a name is reserved: a word of OpenCL C, a built-in function that the printer uses, or a
/// work-item variable.
fn is_reserved(name: &str) -> bool {
    const WORDS: &[&str] = &[
        "add_products",
        "add_products_f16",
        "add_products_bf16",
        "add_products_i8",
        "add_tf32",
        "auto",
        "COPY_AHEAD",
        "bool",
        "break",
        "case",
        "char",
        "const",
        "constant",
        "continue",
        "copies_arrive",
        "copy_ahead_4",
        "copy_ahead_8",
        "copy_ahead_16",
        "default",
        "do",
        "double",
        "else",
        "enum",
        "extern",
        "float",
        "for",
        "global",
        "goto",
        "half",
        "if",
        "image",
        "inline",
        "int",
        "kernel",
        "load_matrices",
        "load_turned_matrices",
        "local",
        "long",
        "main",
        "meet_all",
        "private",
        "quad",
        "read_only",
        "register",
        "restrict",
        "return",
        "short",
        "signed",
        "sizeof",
        "static",
        "struct",
        "switch",
        "true",
        "false",
        "typedef",
        "uchar",
        "uint",
        "ulong",
        "union",
        "unsigned",
        "ushort",
        "void",
        "volatile",
        "while",
        "write_only",
        "read_write",
        "complex",
        "imaginary",
        "event_t",
        "sampler_t",
        "size_t",
        "ptrdiff_t",
        "intptr_t",
        "uintptr_t",
        "min",
        "max",
        "fmin",
        "fmax",
        "abs",
        "fabs",
        "sqrt",
        "rsqrt",
        "exp",
        "log",
        "sin",
        "cos",
        "tan",
        "atan",
        "atan2",
        "pow",
        "fmod",
        "asin",
        "acos",
        "sinh",
        "cosh",
        "tanh",
        "asinh",
        "acosh",
        "atanh",
        "exp2",
        "exp10",
        "expm1",
        "log2",
        "log10",
        "log1p",
        "cbrt",
        "hypot",
        "erf",
        "erfc",
        "copysign",
        "trunc",
        "isnan",
        "isinf",
        "popcount",
        "clz",
        "mul_hi",
        "floor",
        "ceil",
        "round",
        "fma",
        "mad",
        "sign",
        "clamp",
        "select",
        "barrier",
        "sub_group_barrier",
        "INFINITY",
        "NAN",
        "NULL",
        "i0",
        "i1",
        "i2",
        "g0",
        "g1",
        "g2",
        "l0",
        "l1",
        "l2",
        "warp",
        "lane",
    ];
    WORDS.contains(&name)
        || name.starts_with("__")
        || name.starts_with("as_")
        || name.starts_with("checked_")
        || name.starts_with("convert_")
        || name.contains("_of_half")
        || name.starts_with("half") && name.contains("_of_")
        || name.starts_with("vload")
        || name.starts_with("vstore")
        || name.starts_with("get_")
        || [
            "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "float", "double",
            "half",
        ]
        .iter()
        .any(|t| name.strip_prefix(t).is_some_and(|w| w.parse::<u8>().is_ok()))
}

struct Inputs<'a> {
    views: Views,
    buffers: Vec<Buffer>,
    args: Vec<ScalarArg>,
    /// The expected values of scalar parameters.
    expected: &'a BTreeMap<(String, usize), Lit>,
    names: BTreeSet<String>,
}

impl Inputs<'_> {
    /// Collects every parameter that the term mentions, in order of first mention.
    fn collect(&mut self, term: &Term) -> Step<()> {
        let mut found: Vec<(Arc<str>, Ty)> = vec![];
        let mut scalars = vec![];
        term.visit(&mut |t| match t.op() {
            Op::Input(name) => found.push((name.clone(), t.ty().cod.clone())),
            Op::Scalar(f) => scalar_inputs(&f.body, &mut scalars),
            _ => {}
        });
        for (name, ty) in found {
            if self.views.inputs.contains_key(&name) {
                continue;
            }
            let shape = self.views.shape(&ty)?;
            let several = shape.components().len() > 1;
            let mut component = 0;
            let v = self.input(&name, &shape, several, &mut component)?;
            self.views.inputs.insert(name, v);
        }
        for (name, component, t) in scalars {
            // If a tuple parameter is mentioned only in leaves, the number of its components is not
            // known here. Append the number to every component but the first.
            self.argument(&name, component, t, component > 0);
        }
        Ok(())
    }

    fn input(
        &mut self,
        name: &Arc<str>,
        shape: &Shape,
        several: bool,
        component: &mut usize,
    ) -> Step<View> {
        Ok(match shape {
            Shape::Unit => View::Unit,
            Shape::Elem(t) if t.width == 1 => {
                *component += 1;
                let i = self.argument(name, *component - 1, t.scalar, several);
                View::Elem(Expr::Arg(i, t.scalar))
            }
            Shape::Elem(_) => return stop(Code::NotYetCompiled, "a vector as a parameter"),
            Shape::Pair(a, b) => View::pair(
                self.input(name, a, several, component)?,
                self.input(name, b, several, component)?,
            ),
            Shape::Array(..) => {
                let mut slots = vec![];
                for (t, n) in shape.components() {
                    let stem =
                        if several { format!("{name}_{component}") } else { name.to_string() };
                    let array = MemArray {
                        name: unique(&stem, &mut self.names),
                        scalar: t.scalar,
                        len: usize::try_from(n).unwrap_or(usize::MAX).saturating_mul(t.width),
                        ahead: 0,
                        pieces: 0,
                    };
                    slots.push(Slot::new(Mem::Global(self.buffers.len()), Index::from(0)));
                    self.buffers
                        .push(Buffer { array, role: BufferRole::Input(name.clone(), *component) });
                    *component += 1;
                }
                View::of_slots(shape, &slots)?
            }
        })
    }

    fn argument(
        &mut self,
        name: &Arc<str>,
        component: usize,
        t: ScalarType,
        several: bool,
    ) -> usize {
        let key = (name.clone(), component);
        if let Some(i) = self.views.scalars.get(&key) {
            return *i;
        }
        let stem = if several { format!("{name}_{component}") } else { name.to_string() };
        let i = self.args.len();
        self.args.push(ScalarArg {
            param: name.clone(),
            component,
            name: unique(&stem, &mut self.names),
            scalar: t,
            expected: self.expected.get(&(name.to_string(), component)).copied(),
        });
        self.views.scalars.insert(key, i);
        i
    }
}

fn scalar_inputs(e: &SExpr, out: &mut Vec<(Arc<str>, usize, ScalarType)>) {
    match e {
        SExpr::Input(name, k, t) => out.push((name.clone(), *k, *t)),
        SExpr::Arg | SExpr::Lit(_) | SExpr::Size(..) | SExpr::Var(..) => {}
        SExpr::Proj(e, _) => scalar_inputs(e, out),
        SExpr::Op(_, _, es) => es.iter().for_each(|e| scalar_inputs(e, out)),
        SExpr::Pair(a, b) | SExpr::Let(a, b) => {
            scalar_inputs(a, out);
            scalar_inputs(b, out);
        }
        SExpr::If(a, b, c) | SExpr::For(a, b, c) | SExpr::While(a, b, c) => {
            scalar_inputs(a, out);
            scalar_inputs(b, out);
            scalar_inputs(c, out);
        }
    }
}

impl Lowerer {
    fn fresh_ids<const N: usize>(&mut self) -> [u32; N] {
        let first = self.names.next;
        self.names.next += u32::try_from(N).unwrap_or(0);
        std::array::from_fn(|k| first + u32::try_from(k).unwrap_or(0))
    }

    /// Runs `body` in a new kernel for the parallel term `f`. Arrays of a group start out in registers. If a work-item turns out
    /// to read an element that another one holds, generation starts again with that array in local memory. If an index into
    /// registers does not become constant, it starts again with the kernel's arrays in memory; those of other kernels stay in
    /// registers.
    pub fn in_kernel(
        &mut self,
        f: &Term,
        mut body: impl FnMut(&mut Lowerer) -> Step<()>,
    ) -> Step<()> {
        let with_registers = self.options.clone();
        let done = loop {
            let (mark, buffers) = (self.mark(), self.program.buffers.len());
            match self.on_trial(Step::is_ok, |me| me.kernel_of(f, &mut body)) {
                Err(Stop::Elsewhere(of)) if self.passed_on.insert(of.clone()) => {}
                Err(Stop::Dynamic(_)) if self.options.private_elements > 1 => {
                    self.options = self.options.without_register_arrays();
                }
                done => break done,
            }
            self.back_to(mark);
            self.program.buffers.truncate(buffers);
        };
        self.options = with_registers;
        done
    }

    fn kernel_of(&mut self, f: &Term, body: &mut dyn FnMut(&mut Lowerer) -> Step<()>) -> Step<()> {
        self.names.next = 0;
        let ids = self.fresh_ids();
        self.open = None;
        let warp = self.warp_width(f)?;
        let warp_ids = if warp > 0 { self.fresh_ids() } else { [0; 2] };
        self.kernel = Building {
            grid: [1; 3],
            together: reduces_together(f),
            fragments: f.contains(&Op::SumProducts),
            run: self.run(f)?,
            group: self.group_size(f, warp)?,
            warp,
            warp_ids,
            streaming: self.streaming,
            ids,
            ..Building::default()
        };
        self.begin();
        let done = self.stage_of_kernel(body);
        self.context = Context::Host;
        let block = self.end();
        let kernel = std::mem::take(&mut self.kernel);
        done?;
        if block.is_empty() {
            return Ok(());
        }
        let mut by_group = false;
        for s in &block {
            s.visit(&mut |s| {
                by_group |= matches!(s, Stmt::Loop { kind, .. }
                    if kind.is_local() || matches!(kind, LoopKind::Wrg(_)));
            });
        }
        by_group |= matches!(f.op(), Op::Map(MapKind::Wrg(_)));
        let count = |n: i64| usize::try_from(n).unwrap_or(0);
        let grid = kernel.grid.map(count);
        let (global, group) = if by_group {
            let group = kernel.group.map(count);
            (std::array::from_fn(|d| grid[d].saturating_mul(group[d])), group)
        } else {
            let group = [self.options.local_size(grid), 1, 1];
            (std::array::from_fn(|d| grid[d].div_ceil(group[d]).saturating_mul(group[d])), group)
        };
        let open = (global == group).then(|| Open { kernel: kernel.again(), group });
        self.finish(kernel, block, global, group);
        self.open = open;
        Ok(())
    }

    fn finish(&mut self, kernel: Building, body: Vec<Stmt>, global: [usize; 3], group: [usize; 3]) {
        let mut seen = BTreeSet::new();
        let stem = unique(&self.options.name, &mut seen);
        let body = self.chosen(body);
        if let Some(r) = &mut self.record {
            r.end_kernel();
        }
        self.program.control.push(Control::Launch(self.program.kernels.len()));
        self.program.kernels.push(Kernel {
            name: format!("{stem}_{}", self.program.kernels.len()),
            global,
            group,
            warp: usize::try_from(kernel.warp).unwrap_or(0),
            locals: kernel.locals,
            privates: kernel.privates,
            streaming: kernel.streaming,
            side_by_side: 1,
            body,
        });
    }

    /// Longest vector that the maps over the work-items of a group take; 1 for scalars, `None`
    /// without such maps.
    fn run(&self, f: &Term) -> Step<Option<i64>> {
        fn width(t: &Ty) -> Option<&Size> {
            match t {
                Ty::Vector(w, _) => Some(w),
                Ty::Pair(a, b) => width(a).or_else(|| width(b)),
                Ty::Unit | Ty::Scalar(_) | Ty::Array(..) | Ty::Meta(_) => None,
            }
        }
        let mut widths = vec![];
        f.visit(&mut |t| {
            if *t.op() == Op::Map(MapKind::Lcl(0)) {
                let ty = t.args()[0].ty();
                let w = width(&ty.dom).or_else(|| width(&ty.cod));
                widths.push(w.map_or(Ok(1), |w| self.views.size(w)));
            }
        });
        Ok(widths.into_iter().collect::<Step<Vec<_>>>()?.into_iter().max())
    }

    /// Returns the work-group size that the `mapLcl`s of a kernel ask for, and its warps of `warp`
    /// work-items, within the limits of the device.
    fn group_size(&self, f: &Term, warp: i64) -> Step<[i64; 3]> {
        let mut size = [1i64; 3];
        let (mut failed, mut members) = (None, vec![]);
        let (mut shared, mut bins) = (false, false);
        f.visit(&mut |t| {
            bins |= *t.op() == Op::Histogram;
            shared |= matches!(
                t.op(),
                Op::Map(MapKind::Lcl(_) | MapKind::Warp) | Op::ReduceLcl | Op::ScanLcl(_)
            );
            let (slot, each) = match t.op() {
                Op::Map(MapKind::Lcl(d)) => (usize::from((*d).min(2)), 1),
                Op::Map(MapKind::Warp) => (0, warp),
                Op::ReduceLcl | Op::ScanLcl(_) => {
                    return members.extend(self.views.size(&t.sizes()[1]));
                }
                _ => return,
            };
            match self.views.size(&t.sizes()[0]) {
                Ok(n) => size[slot] = size[slot].max(n.saturating_mul(each)),
                Err(e) => failed = Some(e),
            }
        });
        if let Some(e) = failed {
            return Err(e);
        }
        // If reductions say how many work-items take part, maps over more elements give each
        // work-item several.
        if let Some(most) = members.into_iter().max() {
            size[0] = most.max(warp);
        }
        // Nothing else says how many work-items combine values by bin.
        if bins && !shared {
            size[0] = GROUP;
        }
        let limit = |n: usize| i64::try_from(n).unwrap_or(i64::MAX).max(1);
        for (s, most) in size.iter_mut().zip(self.options.device.max_item_sizes) {
            *s = (*s).min(limit(most));
        }
        while size.iter().product::<i64>() > limit(self.options.device.max_work_group_size) {
            // Dimension 0 keeps at least one warp.
            let room = |d: &usize| if *d == 0 && size[0] <= warp { 0 } else { size[*d] };
            let widest = (0..3).max_by_key(room).unwrap_or(0);
            size[widest] = (size[widest] + 1) / 2;
        }
        size[0] = size[0].max(warp);
        Ok(size)
    }

    /// Runs `body` in one work-item: in the last kernel, if that has one work-group, or in a kernel of its own.
    pub fn single(&mut self, body: impl FnOnce(&mut Lowerer) -> Step<()>) -> Step<()> {
        let group = match self.open.take() {
            Some(Open { kernel, group }) => {
                let last = self.program.kernels.pop();
                self.program.control.pop();
                if let Some(r) = &mut self.record {
                    r.continue_kernel();
                }
                self.kernel = kernel;
                self.blocks.push(last.map_or(vec![], |k| k.body));
                group
            }
            None => {
                self.names.next = 0;
                let ids = self.fresh_ids();
                self.kernel = Building { grid: [1; 3], group: [1; 3], ids, ..Building::default() };
                self.begin();
                [1; 3]
            }
        };
        self.kernel.single = true;
        self.context = Context::Item;
        let alone = group == [1; 3];
        if !alone {
            self.begin();
        }
        let mut done = self.stage_of_kernel(body);
        self.context = Context::Host;
        if !alone {
            let once = self.end();
            if done.is_ok() && !once.is_empty() {
                done = self.emit(Stmt::Once(once));
            }
        }
        let block = self.end();
        let kernel = std::mem::take(&mut self.kernel);
        done?;
        if block.is_empty() {
            return Ok(());
        }
        let open = Open { kernel: kernel.again(), group };
        self.finish(kernel, block, group, group);
        self.open = Some(open);
        Ok(())
    }
}

impl Building {
    /// Returns what a kernel is continued with.
    fn again(&self) -> Building {
        Building {
            locals: self.locals.clone(),
            privates: self.privates.clone(),
            grid: self.grid,
            group: self.group,
            streaming: self.streaming,
            warp: self.warp,
            ids: self.ids,
            warp_ids: self.warp_ids,
            ..Building::default()
        }
    }
}
