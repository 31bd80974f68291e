//! The kernel IR: structured control flow over registers, buffers and index expressions.
//!
//! Parallel loops stay loops here ([`LoopKind`]); the printer decides how work-items are numbered.
//! All sizes are numbers.

pub mod copies;
mod display;
pub mod facts;
pub mod index;
pub mod pieces;
pub mod team;
mod terms;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod walk;

use crate::calculus::op::products::Products;
use crate::calculus::scalar::Lit;
use crate::lang::typed::ScalarOp;
use crate::lang::types::ScalarType;
use facts::Guard;
use index::{Index, Var};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// Type of the value in one register or of one memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ElemTy {
    /// Type of each lane.
    pub scalar: ScalarType,
    /// Number of lanes; 1 for a scalar.
    pub width: usize,
}

impl ElemTy {
    /// The type of one lane.
    pub const fn scalar(scalar: ScalarType) -> ElemTy {
        ElemTy { scalar, width: 1 }
    }

    /// Size in bytes in memory.
    pub fn bytes(self) -> usize {
        self.scalar.bytes() * self.width
    }
}

/// A memory, identified by an index into the buffers of the program or the arrays of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mem {
    /// Index into [`Program::buffers`].
    Global(usize),
    /// Index into [`Kernel::locals`].
    Local(usize),
    /// Index into [`Kernel::privates`].
    Private(usize),
}

/// A private variable.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reg {
    /// Unique within a program.
    pub id: u32,
    /// Name in the printed code.
    pub name: Arc<str>,
    /// Type of its value.
    pub ty: ElemTy,
}

/// A run-time check of a value that depends on data. A failure is recorded, and a harmless value
/// replaces the checked one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Check {
    /// `[i]`: the index lies in an array of this many elements; otherwise it is clamped to the
    /// nearest valid index. One lane.
    Index(i64),
    /// `[d, a]`: the divisor of `a / d` on integers. It is replaced by 1 if `d` is zero, which is a
    /// failure, and if the quotient overflows, which is none because integers wrap.
    Divisor,
    /// `[e]`: an integer exponent is not negative.
    Exponent,
}

/// Work-items of a warp that evaluate [`Expr::Products`] together.
pub const WARP: i64 = 32;

/// A value. The only side effects are those of [`Check`]s. Loads see the memory as it is when the
/// statement runs.
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
    /// Loads as many consecutive elements as the type has lanes; the index counts scalars.
    Load(Mem, ElemTy, Index),
    /// An operation with its result type; all operands have the same width.
    Op(ScalarOp, ElemTy, Vec<Expr>),
    /// A value that is checked where it is evaluated.
    Checked(Check, Vec<Expr>),
    /// Condition, then, else. For scalars, only the chosen side is evaluated.
    If(Arc<Expr>, Arc<Expr>, Arc<Expr>),
    /// The first value if the guard holds, else the second. Only that value is evaluated.
    Guarded(Guard, Arc<Expr>, Arc<Expr>),
    /// A scalar in every lane.
    Splat(Arc<Expr>, usize),
    /// A vector of these lanes.
    Vector(Vec<Expr>),
    /// One lane of a vector.
    Lane(Arc<Expr>, usize),
    /// `[c, a, b]`: sums to which the work-items of a warp together add a product of matrices, `c + a*b`, where
    /// `c` has 16 rows and 8 columns and a product has 8 terms. A term is a word of 4 bytes: an `f32`, or the bits of
    /// several elements of fewer bytes, the first one lowest, whose products are added. All work-items of a warp must evaluate it
    /// together. With `g` and `q` the quotient and the remainder of a work-item's number by 4, it has
    ///
    /// - of `c`, and of the result: rows `g` (lanes 0 and 1) and `g + 8` (lanes 2 and 3), columns `2*q` and `2*q + 1`;
    /// - of `a`: rows `g` and `g + 8` of column `q` (lanes 0 and 1), and of column `q + 4`;
    /// - of `b`: rows `q` and `q + 4` of column `g`.
    ///
    /// Products of `f32` have nearly the accuracy of `f32`: each number is multiplied in two parts. Those of others are exact.
    /// Sums of `f32` are truncated.
    Products(Products, Vec<Expr>),
    /// Four words: of each of four matrices, word `q` of row `g`, which this load of 16 bytes in another work-item gives.
    /// Work-item `8*m + r` of a warp loads row `r` of matrix `m`. If the flag is set, rows have 8 elements of two bytes, and the matrices are
    /// transposed first. All work-items of a warp must evaluate it together; the load is from local memory.
    Matrices(bool, Arc<Expr>),
}

/// The least and the greatest value of an integer type of at most 32 bits.
fn values_of(t: ScalarType) -> Option<(i64, i64)> {
    let bits = match t {
        ScalarType::Bool => return Some((0, 1)),
        t if t.is_integer() && t.bytes() <= 4 => 8 * t.bytes(),
        _ => return None,
    };
    Some(match t.is_signed() {
        true => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        false => (0, (1 << bits) - 1),
    })
}

/// How a loop runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LoopKind {
    /// Sequentially, in one work-item.
    Seq,
    /// One iteration for each work-item.
    Glb(u8),
    /// One iteration for each work-group.
    Wrg(u8),
    /// One iteration for each work-item of the group.
    Lcl(u8),
    /// One iteration for each warp of the group. A warp is a number ([`Kernel::warp`]) of
    /// consecutive work-items of dimension 0.
    Warp,
    /// One iteration for each work-item of a warp.
    Lane,
}

/// The work-items that a barrier synchronises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// The work-items of a sub-group, which holds whole warps. All of them must reach the barrier.
    Warp,
    /// The work-items of the work-group. All of them must reach the barrier.
    Group,
}

/// Statements in order.
pub type Block = Vec<Stmt>;

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Stmt {
    /// Declares a register, with its first value if it has one.
    Decl(Reg, Option<Expr>),
    /// Gives a register a new value.
    Set(Reg, Expr),
    /// Stores as many consecutive elements as the value has lanes; the index counts scalars.
    Store(Mem, Index, Expr),
    /// Does something with an element and the value, as one step that no other work-item interrupts.
    Atomic(Update, Mem, Index, Expr),
    /// A loop that counts from `lo` to `hi`, excluded.
    Loop {
        /// How the loop runs.
        kind: LoopKind,
        /// The counter; its range includes all values in the loop.
        var: Var,
        /// First value.
        lo: Index,
        /// Excluded bound.
        hi: Index,
        /// Statements of an iteration.
        body: Block,
    },
    /// A condition on indices.
    If(Guard, Block, Block),
    /// A condition on data.
    Branch(Expr, Block, Block),
    /// Repeats: runs the first block, leaves the loop if the condition is false, and runs the
    /// second block.
    While(Block, Expr, Block),
    /// In work-group context, runs the block in one work-item only.
    Once(Block),
    /// Synchronises work-items.
    Barrier {
        /// The work-items that meet.
        scope: Scope,
        /// Orders local memory.
        local: bool,
        /// Orders global memory.
        global: bool,
    },
}

/// What one step does with an element of memory that work-items share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Update {
    /// Combines the value with the element by an operation.
    Combine(ScalarOp, Lanes),
    /// Reads the element into the register. The value is a zero of the element's type.
    Read(Reg),
    /// Stores the value if the element is what the register holds. In both cases, the register holds what the element was.
    Swap(Reg),
}

impl Update {
    /// The register that gets a value.
    pub fn register(&self) -> Option<&Reg> {
        match self {
            Update::Combine(..) => None,
            Update::Read(r) | Update::Swap(r) => Some(r),
        }
    }
}

/// Where neighbouring work-items combine values at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lanes {
    /// In copies of an element that are their own.
    Apart,
    /// Perhaps in one element.
    Together,
}

/// A statically sized array of scalars.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MemArray {
    /// Name in the printed code.
    pub name: Arc<str>,
    /// Element type.
    pub scalar: ScalarType,
    /// Number of scalars.
    pub len: usize,
    /// Copies of global memory that no kernel stores to meanwhile may arrive here late, at the barrier of the group that has this
    /// number from the copy on; 0 if they may not.
    pub ahead: usize,
    /// Pieces of a row, if those of each row are stored in an order of their own (see [`pieces`]); 0 if they are not. Indices count as if
    /// they were in order.
    pub pieces: usize,
}

/// One kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Kernel {
    /// Function name.
    pub name: String,
    /// Work-items in each dimension; a multiple of `group`.
    pub global: [usize; 3],
    /// Work-group size.
    pub group: [usize; 3],
    /// Work-items of a warp; 0 without loops over warps.
    pub warp: usize,
    /// Arrays of the work-group.
    pub locals: Vec<MemArray>,
    /// Arrays of each work-item that are not in registers.
    pub privates: Vec<MemArray>,
    /// Whether global stores bypass the caches, if the compiler supports that.
    pub streaming: bool,
    /// Groups that one work-group of the device runs side by side, as the rows of its second dimension. Each has local arrays of
    /// its own.
    pub side_by_side: usize,
    /// The code.
    pub body: Block,
}

/// The source or target of a global buffer's contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BufferRole {
    /// Component `.1` of the parameter `.0` of the entry (tuples flattened).
    Input(Arc<str>, usize),
    /// Data between kernels.
    Temp,
    /// A component of the result (tuples flattened).
    Output(usize),
}

/// A global buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Name, element type, number of scalars.
    pub array: MemArray,
    /// Purpose of the buffer.
    pub role: BufferRole,
}

/// A scalar argument: a component of a parameter (tuples flattened).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalarArg {
    /// The entry's parameter.
    pub param: Arc<str>,
    /// Index of the component.
    pub component: usize,
    /// Name in the printed code.
    pub name: Arc<str>,
    /// Its type.
    pub scalar: ScalarType,
    /// The value that it is expected to have, for the cost model alone.
    pub expected: Option<Lit>,
}

impl ScalarArg {
    /// Returns the expected value as a number.
    pub fn number(&self) -> Option<f64> {
        let lit = self.expected?;
        lit.as_float().or_else(|| Some(lit.as_int()? as f64))
    }
}

/// One step of the host. A loop extends from its first step to the matching [`Control::End`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// Launches a kernel: index into [`Program::kernels`].
    Launch(usize),
    /// Repeats so many times. Kernels inside may read the number of the iteration.
    Repeat(Times, Var),
    /// Repeats until [`Control::Check`] ends the loop.
    While,
    /// Leaves the innermost loop if the truth value in this buffer is false.
    Check(usize),
    /// Exchanges two buffers of the same type and length.
    Swap(usize, usize),
    /// The loop that follows is one launch. Its kernels are phases of that launch, with a barrier of all work-items between
    /// them.
    Together(Team),
    /// The end of a loop.
    End,
}

/// Work-groups that run a loop of the host in one launch. All of them are resident at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Team {
    /// Number of work-groups.
    pub groups: usize,
    /// Work-items of a group, in one dimension.
    pub items: usize,
}

/// What one launch runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Launched {
    /// A kernel: index into [`Program::kernels`].
    Kernel(usize),
    /// A loop that a team runs: the steps of [`Program::control`] from the loop's first step to its end.
    Loop(Team, Range<usize>),
}

/// How often a loop of the host repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// This many times.
    Known(i64),
    /// As often as a scalar argument says: `arg + plus - less` times, or never if that is negative. The sum wraps as the type
    /// of the argument does, the difference does not.
    Given {
        /// Index into [`Program::scalars`].
        arg: usize,
        /// What is added to the argument.
        plus: i64,
        /// What is subtracted from the sum.
        less: i64,
    },
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
    /// The steps of the host.
    pub control: Vec<Control>,
    /// Whether the OpenCL compiler may contract a product and a sum to one `fma`.
    pub contract: bool,
    /// Whether it may reassociate floating-point operations.
    pub relaxed: bool,
    /// Whether the OpenCL compiler calculates with numbers of half precision.
    pub halves: bool,
    /// Whether kernels in loops that a check ends find out for themselves that the loop has ended, so that the host need not
    /// wait for each check.
    pub ahead: bool,
}

impl LoopKind {
    /// Whether the iterations belong to different work-items of a group.
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

    /// Returns what is launched, in the order of the steps.
    pub fn launched(&self) -> Vec<Launched> {
        let (mut out, mut at) = (vec![], 0);
        while let Some(c) = self.control.get(at) {
            match c {
                Control::Together(team) => {
                    let end = self.end_of_loop(at + 1);
                    out.push(Launched::Loop(*team, at + 1..end));
                    at = end;
                    continue;
                }
                Control::Launch(k) => out.push(Launched::Kernel(*k)),
                _ => {}
            }
            at += 1;
        }
        let first = |l: &Launched| match l {
            Launched::Kernel(k) => Some(*k),
            Launched::Loop(_, steps) => self.phases(steps.clone()).next(),
        };
        out.sort_by_key(first);
        out
    }

    /// Returns the position behind the end of the loop that begins at this step.
    pub fn end_of_loop(&self, begin: usize) -> usize {
        let mut depth = 0usize;
        for (at, c) in self.control.iter().enumerate().skip(begin) {
            match c {
                Control::Repeat(..) | Control::While => depth += 1,
                Control::End if depth <= 1 => return at + 1,
                Control::End => depth -= 1,
                _ => {}
            }
        }
        self.control.len()
    }

    /// Returns the kernels that these steps launch, in order.
    pub fn phases(&self, steps: Range<usize>) -> impl Iterator<Item = usize> + '_ {
        self.control.get(steps).unwrap_or_default().iter().filter_map(|c| match c {
            Control::Launch(k) => Some(*k),
            _ => None,
        })
    }

    /// Returns the different pairs of buffers that these steps exchange.
    pub fn exchanged(&self, steps: Range<usize>) -> BTreeSet<(usize, usize)> {
        let pair = |c: &Control| match c {
            Control::Swap(a, b) => Some((*a.min(b), *a.max(b))),
            _ => None,
        };
        self.control.get(steps).unwrap_or_default().iter().filter_map(pair).collect()
    }

    /// Removes a kernel and its launch.
    pub fn remove_kernel(&mut self, k: usize) {
        self.kernels.remove(k);
        self.control.retain(|c| *c != Control::Launch(k));
        for c in &mut self.control {
            if let Control::Launch(other) = c {
                *other -= usize::from(*other > k);
            }
        }
    }

    /// Returns how often each kernel is launched. Loops of which only a run tells the number of iterations have `unknown`
    /// iterations.
    pub fn launches(&self, unknown: f64) -> Vec<f64> {
        let mut out = vec![0.0; self.kernels.len()];
        let mut times = vec![1.0];
        for c in &self.control {
            let now = times.last().copied().unwrap_or(1.0);
            match c {
                Control::Launch(k) => out[*k] += now,
                Control::Repeat(Times::Known(n), _) => times.push(now * *n as f64),
                Control::Repeat(Times::Given { arg, plus, less }, _) => {
                    let given = self.scalars.get(*arg).and_then(ScalarArg::number);
                    let steps = given.map(|n| (n + (plus - less) as f64).max(0.0));
                    times.push(now * steps.unwrap_or(unknown));
                }
                Control::While => times.push(now * unknown),
                Control::Check(_) | Control::Swap(..) | Control::Together(_) => {}
                Control::End => {
                    times.pop();
                }
            }
        }
        out
    }
}

pub use crate::device::ARRAY_ALIGNMENT;

impl MemArray {
    /// Bytes that it takes of the local memory of a work-group, in which each array begins at a multiple of [`ARRAY_ALIGNMENT`].
    pub fn local_bytes(&self) -> usize {
        let bytes = self.len.saturating_mul(self.scalar.bytes());
        bytes.checked_next_multiple_of(ARRAY_ALIGNMENT).unwrap_or(usize::MAX)
    }
}

impl Kernel {
    /// Bytes of local memory of one work-group.
    pub fn local_bytes(&self) -> usize {
        self.locals.iter().map(MemArray::local_bytes).fold(0, usize::saturating_add)
    }

    /// Whether `mapGlb` spreads single work-items. Work-groups then have no meaning, and not all
    /// work-items of a group run the same code.
    pub fn spreads_items(&self) -> bool {
        let mut found = false;
        for s in &self.body {
            s.visit(&mut |s| found |= matches!(s, Stmt::Loop { kind: LoopKind::Glb(_), .. }));
        }
        found
    }

    /// Returns the array behind a memory.
    pub fn array<'a>(&'a self, program: &'a Program, mem: Mem) -> Option<&'a MemArray> {
        match mem {
            Mem::Global(i) => program.buffers.get(i).map(|b| &b.array),
            Mem::Local(i) => self.locals.get(i),
            Mem::Private(i) => self.privates.get(i),
        }
    }
}

/// Returns the type in which an index of this type into an array of `len` elements is checked.
fn check_type(len: i64, index: ScalarType) -> ScalarType {
    let narrow = index.bytes() <= 4 && len <= i64::from(i32::MAX);
    if narrow { ScalarType::I32 } else { ScalarType::I64 }
}

impl Expr {
    /// Whether the expression contains a check.
    pub fn has_check(&self) -> bool {
        let mut found = false;
        self.visit(&mut |e| found |= matches!(e, Expr::Checked(..)));
        found
    }

    /// Returns inclusive bounds of an integer, if its form shows them: bits that a mask leaves, a minimum of unsigned
    /// numbers. They are those of an `i32`.
    pub fn bounds(&self) -> Option<(i64, i64)> {
        let (lo, hi) = self.values()?;
        let known = (lo, hi) != (i64::from(i32::MIN), i64::from(i32::MAX));
        (known && lo >= i64::from(i32::MIN) && hi <= i64::from(i32::MAX)).then_some((lo, hi))
    }

    /// The least and the greatest value that an integer may have, as far as its operation and its type tell; `None` for other types.
    pub fn values(&self) -> Option<(i64, i64)> {
        let literal = |e: &Expr| match e {
            Expr::Lit(l) => l.as_int().and_then(|n| i64::try_from(n).ok()),
            Expr::Index(i, _) => i.as_constant(),
            _ => None,
        };
        let either = |a: &Expr, b: &Expr| {
            let ((a, b), (c, d)) = (a.values()?, b.values()?);
            Some((a.min(c), b.max(d)))
        };
        let of_type = values_of(self.ty().scalar);
        match self {
            Expr::Lit(_) => literal(self).map(|n| (n, n)),
            Expr::Index(i, _) if !i.has_data() => Some(i.range()),
            Expr::Vector(es) => {
                let ranges = es.iter().map(Expr::values).collect::<Option<Vec<_>>>()?;
                let lo = ranges.iter().map(|r| r.0).min()?;
                Some((lo, ranges.iter().map(|r| r.1).max()?))
            }
            Expr::If(_, a, b) | Expr::Guarded(_, a, b) => either(a, b),
            Expr::Lane(e, _) | Expr::Splat(e, _) => e.values(),
            Expr::Op(op, t, operands) if t.scalar.is_integer() => match (op, operands.as_slice()) {
                (ScalarOp::BitAnd, [a, b]) => {
                    let mask = [a, b].into_iter().filter_map(literal).find(|m| *m >= 0);
                    mask.map(|m| (0, m)).or(of_type)
                }
                (ScalarOp::Min, [_, m]) if !t.scalar.is_signed() && literal(m).is_some() => {
                    literal(m).map(|m| (0, m))
                }
                (ScalarOp::Min | ScalarOp::Max, [a, b]) => {
                    let ((a, b), (c, d)) = (a.values()?, b.values()?);
                    let least = *op == ScalarOp::Min;
                    Some(if least { (a.min(c), b.min(d)) } else { (a.max(c), b.max(d)) })
                }
                (ScalarOp::Clamp, [_, least, most]) => {
                    let ends = literal(least).zip(literal(most));
                    ends.filter(|(least, most)| least <= most).or(of_type)
                }
                (ScalarOp::Rem, [a, m]) => {
                    let positive = !t.scalar.is_signed() || a.values().is_some_and(|v| v.0 >= 0);
                    let m = literal(m).filter(|m| positive && *m > 0);
                    m.map(|m| (0, m - 1)).or(of_type)
                }
                (ScalarOp::Shr, [a, k]) if !t.scalar.is_signed() => {
                    let k = literal(k).filter(|k| (0..32).contains(k));
                    a.values().zip(k).map(|((_, hi), k)| (0, hi >> k)).or(of_type)
                }
                // A value that the type cannot hold wraps.
                (ScalarOp::Cast(_), [e]) => {
                    let holds = |(lo, hi): &(i64, i64)| {
                        of_type.is_none_or(|(least, most)| *lo >= least && *hi <= most)
                    };
                    let signed = t.scalar.is_signed() || of_type.is_some();
                    e.values().filter(|v| holds(v) && (signed || v.0 >= 0)).or(of_type)
                }
                _ => of_type,
            },
            _ => of_type,
        }
    }

    /// Type of the value.
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
            Expr::Products(of, _) => ElemTy { scalar: of.sum(), width: 4 },
            Expr::Matrices(false, e) => e.ty(),
            Expr::Matrices(true, _) => ElemTy { scalar: ScalarType::U32, width: 4 },
        }
    }

    /// Whether this is a truth value that depends on indices only, that is, guards between
    /// constants.
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
            | Expr::Products(..)
            | Expr::Matrices(..)
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

    /// Whether evaluating it twice costs nothing: constants, arguments and registers. Decisions
    /// count, too, so that they stay visible and loops can be split where they change.
    pub fn is_trivial(&self) -> bool {
        match self {
            e if e.is_decision() => true,
            Expr::Lit(_) | Expr::Arg(..) | Expr::Reg(_) => true,
            // Quotients in indices get names when the kernel is printed.
            Expr::Index(i, _) => !i.has_data(),
            Expr::Lane(e, _) | Expr::Splat(e, _) => e.is_trivial(),
            Expr::Load(..)
            | Expr::Op(..)
            | Expr::Checked(..)
            | Expr::If(..)
            | Expr::Guarded(..)
            | Expr::Products(..)
            | Expr::Matrices(..)
            | Expr::Vector(_) => false,
        }
    }

    /// Widens the expression to `w` lanes.
    #[must_use]
    pub fn widen(self, w: usize) -> Expr {
        if self.ty().width == w { self } else { Expr::Splat(Arc::new(self), w) }
    }

    /// Returns lane `k`, simplified.
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

    /// Returns the vector of these lanes in its simplest form: one load, a splat, the vector that
    /// they are taken from, or a construction.
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

    /// Returns the vector of guarded lanes. If the guards of all lanes hold, it is the vector of
    /// the guarded values. If there are at most two different guards and one of them implies the
    /// others, only the lanes with that guard take their other values when it fails; otherwise each
    /// lane keeps its own guard.
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

    /// Replaces registers, including those in indices.
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
            Expr::Products(of, es) => Expr::Products(*of, each(es)),
            Expr::Matrices(turned, e) => Expr::Matrices(*turned, one(e)),
            Expr::If(c, a, b) => Expr::If(one(c), one(a), one(b)),
            Expr::Guarded(g, a, b) => {
                Expr::Guarded(Guard(g.0.iter().map(index).collect()), one(a), one(b))
            }
            Expr::Splat(e, w) => Expr::Splat(one(e), *w),
            Expr::Lane(e, k) => Expr::Lane(one(e), *k),
        }
    }

    /// Calls `f` on this expression and all subexpressions, including those in indices.
    pub fn visit(&self, f: &mut dyn FnMut(&Expr)) {
        f(self);
        match self {
            Expr::Lit(_) | Expr::Arg(..) | Expr::Reg(_) => {}
            Expr::Index(i, _) | Expr::Load(_, _, i) => i.visit_data(&mut |e| e.visit(f)),
            Expr::Op(_, _, es)
            | Expr::Checked(_, es)
            | Expr::Vector(es)
            | Expr::Products(_, es) => {
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
            Expr::Splat(e, _) | Expr::Lane(e, _) | Expr::Matrices(_, e) => e.visit(f),
        }
    }
}

impl Stmt {
    /// Calls `f` on the expressions of this statement itself, including values computed inside its
    /// indices, but not on those of nested blocks.
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
            Stmt::Store(_, i, e) | Stmt::Atomic(_, _, i, e) => {
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

    /// The blocks nested directly in this statement.
    pub fn blocks(&self) -> Vec<&Block> {
        match self {
            Stmt::Decl(..)
            | Stmt::Set(..)
            | Stmt::Store(..)
            | Stmt::Atomic(..)
            | Stmt::Barrier { .. } => vec![],
            Stmt::Loop { body, .. } | Stmt::Once(body) => vec![body],
            Stmt::If(_, a, b) | Stmt::Branch(_, a, b) | Stmt::While(a, _, b) => vec![a, b],
        }
    }

    /// Replaces the registers that this statement itself reads, not those of nested blocks or the
    /// register that it assigns.
    pub fn map_regs(&mut self, f: &dyn Fn(&Reg) -> Reg) {
        let index = |i: &mut Index| *i = i.map_data(&|e| e.map_regs(f));
        match self {
            Stmt::Decl(_, None) | Stmt::Once(_) | Stmt::Barrier { .. } => {}
            Stmt::Decl(_, Some(e))
            | Stmt::Set(_, e)
            | Stmt::Branch(e, ..)
            | Stmt::While(_, e, _) => *e = e.map_regs(f),
            Stmt::Store(_, i, e) | Stmt::Atomic(_, _, i, e) => {
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

    /// The blocks nested directly in this statement, mutably.
    pub fn blocks_mut(&mut self) -> Vec<&mut Block> {
        match self {
            Stmt::Decl(..)
            | Stmt::Set(..)
            | Stmt::Store(..)
            | Stmt::Atomic(..)
            | Stmt::Barrier { .. } => vec![],
            Stmt::Loop { body, .. } | Stmt::Once(body) => vec![body],
            Stmt::If(_, a, b) | Stmt::Branch(_, a, b) | Stmt::While(a, _, b) => vec![a, b],
        }
    }

    /// The register that this statement gives another value, not counting declarations.
    pub fn assigned(&self) -> Option<&Reg> {
        match self {
            Stmt::Set(r, _) => Some(r),
            Stmt::Atomic(update, ..) => update.register(),
            _ => None,
        }
    }

    /// The register that this statement gives another value, mutably.
    pub fn assigned_mut(&mut self) -> Option<&mut Reg> {
        match self {
            Stmt::Set(r, _) | Stmt::Atomic(Update::Read(r) | Update::Swap(r), ..) => Some(r),
            _ => None,
        }
    }

    /// Calls `f` on this statement and all statements inside it.
    pub fn visit(&self, f: &mut dyn FnMut(&Stmt)) {
        f(self);
        for b in self.blocks() {
            b.iter().for_each(|s| s.visit(f));
        }
    }
}
