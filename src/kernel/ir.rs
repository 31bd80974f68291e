//! The kernel IR: structured control flow over registers, buffers and index expressions.
//!
//! Parallel loops stay loops here ([`LoopKind`]); how work-items are numbered is decided when the
//! code is printed. All sizes are numbers.

use super::index::{Guard, Index, Var};
use crate::calculus::scalar::Lit;
use crate::lang::typed::ScalarOp;
use crate::lang::types::ScalarType;
use std::sync::Arc;

/// What one register or one memory access holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ElemTy {
    /// Of each lane.
    pub scalar: ScalarType,
    /// Lanes; 1 for a scalar.
    pub width: usize,
}

impl ElemTy {
    /// One lane.
    pub fn scalar(scalar: ScalarType) -> ElemTy {
        ElemTy { scalar, width: 1 }
    }

    /// Bytes in memory.
    pub fn bytes(self) -> usize {
        self.scalar.bytes() * self.width
    }
}

/// A memory: an index into the program's buffers or the kernel's arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mem {
    /// [`Program::buffers`].
    Global(usize),
    /// [`Kernel::locals`].
    Local(usize),
    /// [`Kernel::privates`].
    Private(usize),
}

/// A private variable.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reg {
    /// Unique within a program.
    pub id: u32,
    /// How it is printed.
    pub name: Arc<str>,
    /// What it holds.
    pub ty: ElemTy,
}

/// What of a value that data decide is checked. What fails the check is noted, and a value that does no harm takes
/// its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Check {
    /// Of `[i]`: the index lies in an array of so many elements; else the nearest index that does. One lane.
    Index(i64),
    /// Of `[d, a]`: integers divide as `a / d`. 1 where `d` is zero, which fails, or where the quotient
    /// overflows, which does not: integers wrap.
    Divisor,
    /// Of `[e]`: an integer exponent is not negative.
    Exponent,
}

/// A value. Without side effects but for [`Check`]s; loads see memory as it is when the statement runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Expr {
    /// A constant.
    Lit(Lit),
    /// A scalar argument: index into [`Program::scalars`].
    Arg(usize, ScalarType),
    /// A private variable.
    Reg(Reg),
    /// An index as a value.
    Index(Index, ScalarType),
    /// So many consecutive elements; the index counts scalars.
    Load(Mem, ElemTy, Index),
    /// An operation with its result type; operands have one width.
    Op(ScalarOp, ElemTy, Vec<Expr>),
    /// A value that is checked where it is evaluated.
    Checked(Check, Vec<Expr>),
    /// Condition, then, else; of scalars without the other side.
    If(Arc<Expr>, Arc<Expr>, Arc<Expr>),
    /// The first where the guard holds, else the second; lazy.
    Guarded(Guard, Arc<Expr>, Arc<Expr>),
    /// A scalar in every lane.
    Splat(Arc<Expr>, usize),
    /// A vector of these lanes.
    Vector(Vec<Expr>),
    /// One lane of a vector.
    Lane(Arc<Expr>, usize),
}

/// How a loop runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LoopKind {
    /// In one work-item.
    Seq,
    /// One iteration for each work-item.
    Glb(u8),
    /// One iteration for each work-group.
    Wrg(u8),
    /// One iteration for each work-item of the group.
    Lcl(u8),
    /// One iteration for each warp of the group: so many consecutive work-items of dimension 0.
    Warp,
    /// One iteration for each work-item of a warp.
    Lane,
}

/// Which work-items meet at a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// Those of a sub-group, which holds whole warps. All of them must reach it.
    Warp,
    /// Those of the work-group. All of them must reach it.
    Group,
}

/// Statements in order.
pub type Block = Vec<Stmt>;

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stmt {
    /// Declares a register, with its first value.
    Decl(Reg, Option<Expr>),
    /// Gives a register a new value.
    Set(Reg, Expr),
    /// Stores as many consecutive elements as the value has lanes; the index counts scalars.
    Store(Mem, Index, Expr),
    /// A counted loop from the first index to the second, excluded.
    Loop {
        /// How it runs.
        kind: LoopKind,
        /// The counter; its range covers the loop's.
        var: Var,
        /// First value.
        lo: Index,
        /// Excluded bound.
        hi: Index,
        /// What is repeated.
        body: Block,
    },
    /// A condition on indices.
    If(Guard, Block, Block),
    /// A condition on data.
    Branch(Expr, Block, Block),
    /// Runs `head`, then `body` while the condition holds, and again.
    While(Block, Expr, Block),
    /// In work-group context: by one work-item alone.
    Once(Block),
    /// Work-items meet.
    Barrier {
        /// Which.
        scope: Scope,
        /// Orders local memory.
        local: bool,
        /// Orders global memory.
        global: bool,
    },
}

/// A statically sized array of scalars.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemArray {
    /// How it is printed.
    pub name: Arc<str>,
    /// Element type.
    pub scalar: ScalarType,
    /// Number of scalars.
    pub len: usize,
}

/// One kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Function name.
    pub name: String,
    /// Work-items in each dimension; a multiple of `group`.
    pub global: [usize; 3],
    /// Work-group size.
    pub group: [usize; 3],
    /// Work-items of a warp; 0 where there are no loops over warps.
    pub warp: usize,
    /// Arrays of the work-group.
    pub locals: Vec<MemArray>,
    /// Arrays of each work-item that did not become registers.
    pub privates: Vec<MemArray>,
    /// Global stores bypass the caches, where the compiler can say so.
    pub streaming: bool,
    /// The code.
    pub body: Block,
}

/// Where a global buffer's contents come from or go to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BufferRole {
    /// Component `.1` of the entry's parameter `.0` (tuples flattened).
    Input(Arc<str>, usize),
    /// Between kernels.
    Temp,
    /// Component of the result (tuples flattened).
    Output(usize),
}

/// A global buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Name, element type, number of scalars.
    pub array: MemArray,
    /// What it is for.
    pub role: BufferRole,
}

/// A scalar argument: a component of a parameter (tuples flattened).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalarArg {
    /// The entry's parameter.
    pub param: Arc<str>,
    /// Which component.
    pub component: usize,
    /// How it is printed.
    pub name: Arc<str>,
    /// Its type.
    pub scalar: ScalarType,
}

/// One step of the host. A loop goes from its beginning to the [`Control::End`] that belongs to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// Launches a kernel: index into [`Program::kernels`].
    Launch(usize),
    /// So many iterations, whose number the kernels inside may read.
    Repeat(i64, Var),
    /// Until [`Control::Check`] ends it.
    While,
    /// Leaves the innermost loop when the truth value in a buffer is false.
    Check(usize),
    /// Exchanges two buffers of one type and length.
    Swap(usize, usize),
    /// The end of a loop.
    End,
}

/// Kernels, and the order in which they run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Global buffers.
    pub buffers: Vec<Buffer>,
    /// Scalar arguments.
    pub scalars: Vec<ScalarArg>,
    /// The kernels.
    pub kernels: Vec<Kernel>,
    /// What the host does.
    pub control: Vec<Control>,
    /// Whether the OpenCL compiler may contract and reassociate floating-point operations.
    pub relaxed: bool,
}

impl LoopKind {
    /// Whether it tells the work-items of a group apart.
    pub fn is_local(self) -> bool {
        match self {
            LoopKind::Lcl(_) | LoopKind::Warp | LoopKind::Lane => true,
            LoopKind::Seq | LoopKind::Glb(_) | LoopKind::Wrg(_) => false,
        }
    }
}

impl Program {
    /// Whether the host does more than launch every kernel once.
    pub fn has_loops(&self) -> bool {
        self.control.iter().any(|c| !matches!(c, Control::Launch(_)))
    }

    /// How often each kernel is launched; of loops that end by a condition, as if after `unknown` iterations.
    pub fn launches(&self, unknown: f64) -> Vec<f64> {
        let mut out = vec![0.0; self.kernels.len()];
        let mut times = vec![1.0];
        for c in &self.control {
            let now = times.last().copied().unwrap_or(1.0);
            match c {
                Control::Launch(k) => out[*k] += now,
                #[expect(clippy::cast_precision_loss, reason = "an estimate")]
                Control::Repeat(n, _) => times.push(now * *n as f64),
                Control::While => times.push(now * unknown),
                Control::Check(_) | Control::Swap(..) => {}
                Control::End => {
                    times.pop();
                }
            }
        }
        out
    }
}

impl Kernel {
    /// Bytes of local memory of one work-group.
    pub fn local_bytes(&self) -> usize {
        self.locals
            .iter()
            .map(|a| a.len.saturating_mul(a.scalar.bytes()))
            .fold(0, usize::saturating_add)
    }

    /// Whether `mapGlb` spreads single work-items: then groups mean nothing, and not all items of one run the same code.
    pub fn spreads_items(&self) -> bool {
        let mut found = false;
        for s in &self.body {
            s.visit(&mut |s| found |= matches!(s, Stmt::Loop { kind: LoopKind::Glb(_), .. }));
        }
        found
    }

    /// The array behind a memory.
    pub fn array<'a>(&'a self, program: &'a Program, mem: Mem) -> Option<&'a MemArray> {
        match mem {
            Mem::Global(i) => program.buffers.get(i).map(|b| &b.array),
            Mem::Local(i) => self.locals.get(i),
            Mem::Private(i) => self.privates.get(i),
        }
    }
}

/// The type in which an index of this type into so many elements is checked.
fn check_type(len: i64, index: ScalarType) -> ScalarType {
    let narrow = index.bytes() <= 4 && len <= i64::from(i32::MAX);
    if narrow { ScalarType::I32 } else { ScalarType::I64 }
}

impl Expr {
    /// Whether anything in it is checked.
    pub fn has_check(&self) -> bool {
        let mut found = false;
        self.visit(&mut |e| found |= matches!(e, Expr::Checked(..)));
        found
    }

    /// Its type.
    pub fn ty(&self) -> ElemTy {
        match self {
            Expr::Lit(l) => ElemTy::scalar(l.ty),
            Expr::Arg(_, t) | Expr::Index(_, t) => ElemTy::scalar(*t),
            Expr::Reg(r) => r.ty,
            Expr::Load(_, t, _) | Expr::Op(_, t, _) => *t,
            Expr::Checked(check, es) => {
                let of = es.first().map_or(ElemTy::scalar(ScalarType::I32), Expr::ty);
                match check {
                    Check::Index(n) => ElemTy::scalar(check_type(*n, of.scalar)),
                    Check::Divisor | Check::Exponent => of,
                }
            }
            Expr::If(_, a, _) | Expr::Guarded(_, a, _) => a.ty(),
            Expr::Splat(e, w) => ElemTy { width: *w, ..e.ty() },
            Expr::Vector(es) => ElemTy {
                width: es.len(),
                scalar: es.first().map_or(ScalarType::F32, |e| e.ty().scalar),
            },
            Expr::Lane(e, _) => ElemTy::scalar(e.ty().scalar),
        }
    }

    /// A truth value that depends on indices alone: guards between constants.
    pub fn is_decision(&self) -> bool {
        match self {
            Expr::Lit(l) => l.ty == ScalarType::Bool,
            Expr::Splat(e, _) => e.is_decision(),
            Expr::Vector(es) => es.iter().all(Expr::is_decision),
            Expr::Guarded(_, a, b) => a.is_decision() && b.is_decision(),
            Expr::Arg(..)
            | Expr::Reg(_)
            | Expr::Index(..)
            | Expr::Load(..)
            | Expr::Op(..)
            | Expr::Checked(..)
            | Expr::If(..)
            | Expr::Lane(..) => false,
        }
    }

    /// The constant true, in any width.
    pub fn is_true(&self) -> bool {
        self.is_truth(1)
    }

    /// The constant false, in any width.
    pub fn is_false(&self) -> bool {
        self.is_truth(0)
    }

    fn is_truth(&self, bits: u64) -> bool {
        match self {
            Expr::Lit(l) => l.ty == ScalarType::Bool && l.bits == bits,
            Expr::Splat(e, _) => e.is_truth(bits),
            Expr::Vector(es) => es.iter().all(|e| e.is_truth(bits)),
            _ => false,
        }
    }

    /// Whether evaluating it twice costs nothing: a constant, argument or register. Decisions are
    /// kept as they are too, so that loops can be split where they change.
    pub fn is_trivial(&self) -> bool {
        match self {
            e if e.is_decision() => true,
            Expr::Lit(_) | Expr::Arg(..) | Expr::Reg(_) => true,
            Expr::Index(i, _) => !i.has_data() && !i.has_division(),
            Expr::Lane(e, _) | Expr::Splat(e, _) => e.is_trivial(),
            Expr::Load(..)
            | Expr::Op(..)
            | Expr::Checked(..)
            | Expr::If(..)
            | Expr::Guarded(..)
            | Expr::Vector(_) => false,
        }
    }

    /// The expression in `w` lanes.
    #[must_use]
    pub fn widen(self, w: usize) -> Expr {
        if self.ty().width == w { self } else { Expr::Splat(Arc::new(self), w) }
    }

    /// Lane `k`, simplified.
    #[must_use]
    pub fn lane(&self, k: usize) -> Expr {
        match self {
            Expr::Load(m, t, i) => {
                Expr::Load(*m, ElemTy::scalar(t.scalar), i.plus(i64::try_from(k).unwrap_or(0)))
            }
            Expr::Splat(e, _) => (**e).clone(),
            Expr::Vector(es) => es.get(k).cloned().unwrap_or_else(|| self.clone()),
            Expr::Guarded(g, a, b) => {
                Expr::Guarded(g.clone(), Arc::new(a.lane(k)), Arc::new(b.lane(k)))
            }
            e if e.ty().width == 1 => e.clone(),
            e => Expr::Lane(Arc::new(e.clone()), k),
        }
    }

    /// The vector of these lanes: one load, a splat, the vector they are taken from, or a construction.
    pub fn vector(lanes: Vec<Expr>) -> Expr {
        let w = lanes.len();
        let Some(first) = lanes.first().cloned() else {
            return Expr::Vector(lanes);
        };
        if w == 1 {
            return first;
        }
        if lanes.iter().all(|e| *e == first) {
            return Expr::Splat(Arc::new(first), w);
        }
        if lanes.iter().any(|e| matches!(e, Expr::Guarded(..))) {
            return Expr::guarded_vector(lanes);
        }
        match &first {
            Expr::Load(mem, ty, start) => {
                let consecutive = lanes.iter().zip(0i64..).all(|(e, k)| match e {
                    Expr::Load(m, _, i) => m == mem && *i == start.plus(k),
                    _ => false,
                });
                if consecutive {
                    let ty = ElemTy { width: w, ..*ty };
                    return Expr::Load(*mem, ty, start.clone());
                }
            }
            Expr::Lane(v, 0) if v.ty().width == w => {
                let whole = lanes.iter().enumerate().all(|(k, e)| match e {
                    Expr::Lane(u, j) => u == v && *j == k,
                    _ => false,
                });
                if whole {
                    return (**v).clone();
                }
            }
            _ => {}
        }
        Expr::Vector(lanes)
    }

    /// Where every lane's guard holds, the vector of the guarded values; else the lanes whose guard
    /// is the strongest have their other values. With many guards, lane by lane.
    fn guarded_vector(lanes: Vec<Expr>) -> Expr {
        let mut guards: Vec<&Guard> = vec![];
        for e in &lanes {
            if let Expr::Guarded(g, ..) = e
                && !guards.contains(&g)
            {
                guards.push(g);
            }
        }
        let all = guards.iter().fold(Guard::default(), |all, g| all.and(g));
        let inside = |e: &Expr| match e {
            Expr::Guarded(_, a, _) => (**a).clone(),
            e => e.clone(),
        };
        let outside = |e: &Expr| match e {
            Expr::Guarded(g, _, b) if *g == all => (**b).clone(),
            e => e.clone(),
        };
        let few = guards.len() <= 2 && guards.contains(&&all);
        let fast = Expr::vector(lanes.iter().map(inside).collect());
        if matches!(fast, Expr::Vector(_)) && !few {
            return Expr::Vector(lanes);
        }
        let slow = if few {
            Expr::vector(lanes.iter().map(outside).collect())
        } else {
            Expr::Vector(lanes)
        };
        Expr::Guarded(all, Arc::new(fast), Arc::new(slow))
    }

    /// Replaces registers, those in indices included.
    #[must_use]
    pub fn map_regs(&self, f: &dyn Fn(&Reg) -> Reg) -> Expr {
        let one = |e: &Arc<Expr>| Arc::new(e.map_regs(f));
        let each = |es: &[Expr]| es.iter().map(|e| e.map_regs(f)).collect::<Vec<_>>();
        let index = |i: &Index| i.map_data(&|e| e.map_regs(f));
        match self {
            Expr::Lit(_) | Expr::Arg(..) => self.clone(),
            Expr::Reg(r) => Expr::Reg(f(r)),
            Expr::Index(i, t) => Expr::Index(index(i), *t),
            Expr::Load(m, t, i) => Expr::Load(*m, *t, index(i)),
            Expr::Op(op, t, es) => Expr::Op(*op, *t, each(es)),
            Expr::Checked(check, es) => Expr::Checked(*check, each(es)),
            Expr::Vector(es) => Expr::Vector(each(es)),
            Expr::If(c, a, b) => Expr::If(one(c), one(a), one(b)),
            Expr::Guarded(g, a, b) => {
                Expr::Guarded(Guard(g.0.iter().map(index).collect()), one(a), one(b))
            }
            Expr::Splat(e, w) => Expr::Splat(one(e), *w),
            Expr::Lane(e, k) => Expr::Lane(one(e), *k),
        }
    }

    /// Calls `f` on this expression and all inside it, those in indices included.
    pub fn visit(&self, f: &mut dyn FnMut(&Expr)) {
        f(self);
        match self {
            Expr::Lit(_) | Expr::Arg(..) | Expr::Reg(_) => {}
            Expr::Index(i, _) | Expr::Load(_, _, i) => i.visit_data(&mut |e| e.visit(f)),
            Expr::Op(_, _, es) | Expr::Checked(_, es) | Expr::Vector(es) => {
                es.iter().for_each(|e| e.visit(f));
            }
            Expr::If(c, a, b) => {
                c.visit(f);
                a.visit(f);
                b.visit(f);
            }
            Expr::Guarded(g, a, b) => {
                for i in &g.0 {
                    i.visit_data(&mut |e| e.visit(f));
                }
                a.visit(f);
                b.visit(f);
            }
            Expr::Splat(e, _) | Expr::Lane(e, _) => e.visit(f),
        }
    }
}

impl Stmt {
    /// Calls `f` on the expressions of this statement itself, not on those of nested blocks;
    /// values computed inside its indices included.
    pub fn exprs(&self, f: &mut dyn FnMut(&Expr)) {
        let index = |i: &Index, f: &mut dyn FnMut(&Expr)| i.visit_data(&mut |e| f(e));
        match self {
            Stmt::Decl(_, None) | Stmt::Once(_) | Stmt::Barrier { .. } => {}
            Stmt::Decl(_, Some(e))
            | Stmt::Set(_, e)
            | Stmt::Branch(e, ..)
            | Stmt::While(_, e, _) => {
                f(e);
            }
            Stmt::Store(_, i, e) => {
                index(i, f);
                f(e);
            }
            Stmt::Loop { lo, hi, .. } => {
                index(lo, f);
                index(hi, f);
            }
            Stmt::If(g, ..) => g.0.iter().for_each(|i| index(i, f)),
        }
    }

    /// The blocks inside this statement.
    pub fn blocks(&self) -> Vec<&Block> {
        match self {
            Stmt::Decl(..) | Stmt::Set(..) | Stmt::Store(..) | Stmt::Barrier { .. } => vec![],
            Stmt::Loop { body, .. } | Stmt::Once(body) => vec![body],
            Stmt::If(_, a, b) | Stmt::Branch(_, a, b) | Stmt::While(a, _, b) => vec![a, b],
        }
    }

    /// Replaces the expressions and indices of this statement itself, not those of nested blocks.
    pub fn map_regs(&mut self, f: &dyn Fn(&Reg) -> Reg) {
        let index = |i: &mut Index| *i = i.map_data(&|e| e.map_regs(f));
        match self {
            Stmt::Decl(_, None) | Stmt::Once(_) | Stmt::Barrier { .. } => {}
            Stmt::Decl(_, Some(e))
            | Stmt::Set(_, e)
            | Stmt::Branch(e, ..)
            | Stmt::While(_, e, _) => *e = e.map_regs(f),
            Stmt::Store(_, i, e) => {
                index(i);
                *e = e.map_regs(f);
            }
            Stmt::Loop { lo, hi, .. } => {
                index(lo);
                index(hi);
            }
            Stmt::If(g, ..) => g.0.iter_mut().for_each(index),
        }
    }

    /// The blocks inside this statement, to change them.
    pub fn blocks_mut(&mut self) -> Vec<&mut Block> {
        match self {
            Stmt::Decl(..) | Stmt::Set(..) | Stmt::Store(..) | Stmt::Barrier { .. } => vec![],
            Stmt::Loop { body, .. } | Stmt::Once(body) => vec![body],
            Stmt::If(_, a, b) | Stmt::Branch(_, a, b) | Stmt::While(a, _, b) => vec![a, b],
        }
    }

    /// Calls `f` on this statement and all inside it.
    pub fn visit(&self, f: &mut dyn FnMut(&Stmt)) {
        f(self);
        for b in self.blocks() {
            b.iter().for_each(|s| s.visit(f));
        }
    }
}
