//! Helpers of the passes over finished code: the parts of an expression in a fixed order, the
//! effects of code, and new registers.

use super::facts::Guard;
use super::index::Index;
use super::{Block, ElemTy, Expr, Kernel, Mem, Reg, Scope, Stmt};
use crate::lang::typed::ScalarOp;
use rustc_hash::FxHashSet;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Creates new registers and variables.
#[derive(Default)]
pub struct Fresh {
    /// The next unused id.
    pub next: u32,
    /// The id whose name has the number 0.
    pub first: u32,
    /// Names of parameters and buffers, which nothing else must get.
    pub reserved: BTreeSet<String>,
}

/// The first id of what belongs to the host: the counters of its loops. Each kernel numbers what belongs to it from 0, so
/// that equal kernels of different programs are equal.
pub const HOST: u32 = 1 << 24;

impl Fresh {
    /// New ids and names for a kernel that has been lowered.
    pub fn after(k: &Kernel, reserved: &BTreeSet<String>) -> Fresh {
        let mut next = 0;
        for s in &k.body {
            s.visit(&mut |s| match s {
                Stmt::Decl(r, _) => next = next.max(r.id + 1),
                Stmt::Loop { var, .. } => next = next.max(var.id + 1),
                _ => {}
            });
        }
        Fresh { next, first: 0, reserved: reserved.clone() }
    }

    /// A new register.
    pub fn reg(&mut self, ty: ElemTy) -> Reg {
        let (id, name) = self.name("t");
        Reg { id, name, ty }
    }

    /// A new id and a new name.
    pub fn name(&mut self, prefix: &str) -> (u32, Arc<str>) {
        loop {
            let id = self.next;
            self.next += 1;
            let name = format!("{prefix}{}", id - self.first);
            if !self.reserved.contains(&name) {
                return (id, name.into());
            }
        }
    }
}

/// Returns the number of statements, nested ones included.
pub fn statements(block: &Block) -> usize {
    let mut count = 0;
    block.iter().for_each(|s| s.visit(&mut |_| count += 1));
    count
}

/// Calls `f` on the direct parts of an expression, values inside its indices first, in the same
/// order as [`rebuilt`]. The flag says that the part is not always evaluated.
pub fn parts(e: &Expr, f: &mut dyn FnMut(&Expr, bool)) {
    match e {
        Expr::Lit(_) | Expr::Arg(..) | Expr::Reg(_) => {}
        Expr::Index(i, _) | Expr::Load(_, _, i) => i.visit_data(&mut |e| f(e, false)),
        Expr::Op(_, _, es) | Expr::Checked(_, es) | Expr::Vector(es) | Expr::Products(_, es) => {
            es.iter().for_each(|e| f(e, false));
        }
        Expr::If(c, a, b) => {
            f(c, false);
            f(a, true);
            f(b, true);
        }
        Expr::Guarded(g, a, b) => {
            g.0.iter().for_each(|i| i.visit_data(&mut |e| f(e, false)));
            f(a, true);
            f(b, true);
        }
        Expr::Splat(e, _) | Expr::Lane(e, _) | Expr::Matrices(_, e) => f(e, false),
    }
}

/// Returns the index with its values replaced, in order.
pub fn rebuilt_index(i: &Index, f: &mut dyn FnMut(&Expr) -> Expr) -> Index {
    if !i.has_data() {
        return i.clone();
    }
    let f = RefCell::new(f);
    i.map_data(&|e| f.borrow_mut()(e))
}

/// Returns the expression with its direct parts replaced. The flag is the same as in [`parts`].
pub fn rebuilt(e: &Expr, f: &mut dyn FnMut(&Expr, bool) -> Expr) -> Expr {
    let all = |es: &[Expr], f: &mut dyn FnMut(&Expr, bool) -> Expr| -> Vec<Expr> {
        es.iter().map(|e| f(e, false)).collect()
    };
    match e {
        Expr::Lit(_) | Expr::Arg(..) | Expr::Reg(_) => e.clone(),
        Expr::Index(i, t) => Expr::Index(rebuilt_index(i, &mut |e| f(e, false)), *t),
        Expr::Load(m, t, i) => Expr::Load(*m, *t, rebuilt_index(i, &mut |e| f(e, false))),
        Expr::Op(op, t, es) => Expr::Op(*op, *t, all(es, f)),
        Expr::Checked(check, es) => Expr::Checked(*check, all(es, f)),
        Expr::Vector(es) => Expr::Vector(all(es, f)),
        Expr::Products(of, es) => Expr::Products(*of, all(es, f)),
        Expr::Matrices(turned, e) => Expr::Matrices(*turned, Arc::new(f(e, false))),
        Expr::If(c, a, b) => {
            let c = Arc::new(f(c, false));
            let a = Arc::new(f(a, true));
            Expr::If(c, a, Arc::new(f(b, true)))
        }
        Expr::Guarded(g, a, b) => {
            let g = Guard(g.0.iter().map(|i| rebuilt_index(i, &mut |e| f(e, false))).collect());
            let a = Arc::new(f(a, true));
            Expr::Guarded(g, a, Arc::new(f(b, true)))
        }
        Expr::Splat(e, w) => Expr::Splat(Arc::new(f(e, false)), *w),
        Expr::Lane(e, k) => Expr::Lane(Arc::new(f(e, false)), *k),
    }
}

/// Replaces the expressions of a statement itself, including values inside its indices, in the
/// order of [`Stmt::exprs`].
pub fn rebuild(s: &mut Stmt, f: &mut dyn FnMut(&Expr) -> Expr) {
    match s {
        Stmt::Decl(_, None) | Stmt::Once(_) | Stmt::Barrier { .. } => {}
        Stmt::Decl(_, Some(e)) | Stmt::Set(_, e) | Stmt::Branch(e, ..) | Stmt::While(_, e, _) => {
            *e = f(e);
        }
        Stmt::Store(_, i, e) | Stmt::Atomic(_, _, i, e) => {
            *i = rebuilt_index(i, f);
            *e = f(e);
        }
        Stmt::Loop { lo, hi, .. } => {
            *lo = rebuilt_index(lo, f);
            *hi = rebuilt_index(hi, f);
        }
        Stmt::If(g, ..) => g.0.iter_mut().for_each(|i| *i = rebuilt_index(i, f)),
    }
}

/// Replaces the expressions of a block and of all blocks inside it, as [`rebuild`] does.
pub fn rebuild_all(b: &mut [Stmt], f: &mut dyn FnMut(&Expr) -> Expr) {
    for s in b {
        rebuild(s, f);
        s.blocks_mut().into_iter().for_each(|b| rebuild_all(b, f));
    }
}

/// Returns the expression with loop variable `id` replaced.
pub fn with_var_in(e: &Expr, id: u32, by: &Index) -> Expr {
    let at = |i: &Index| i.substitute(&|v| (v.id == id).then(|| by.clone()));
    // Values inside indices are replaced first, like all parts.
    match rebuilt(e, &mut |e, _| with_var_in(e, id, by)) {
        Expr::Index(i, t) => Expr::Index(at(&i), t),
        Expr::Load(m, t, i) => Expr::Load(m, t, at(&i)),
        Expr::Guarded(g, a, b) => Expr::Guarded(Guard(g.0.iter().map(at).collect()), a, b),
        e => e,
    }
}

/// Replaces loop variable `id` in a block and all blocks inside it.
pub fn with_var(b: &mut Block, id: u32, by: &Index) {
    let at = |i: &mut Index| *i = i.substitute(&|v| (v.id == id).then(|| by.clone()));
    for s in b {
        rebuild(s, &mut |e| with_var_in(e, id, by));
        match s {
            Stmt::Store(_, i, _) | Stmt::Atomic(_, _, i, _) => at(i),
            Stmt::Loop { lo, hi, .. } => {
                at(lo);
                at(hi);
            }
            Stmt::If(g, ..) => g.0.iter_mut().for_each(at),
            _ => {}
        }
        s.blocks_mut().into_iter().for_each(|b| with_var(b, id, by));
    }
}

/// Cost of evaluating an expression again.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weight {
    /// Number of operations.
    pub operations: u32,
    /// Whether the expression loads, or takes many cycles.
    pub heavy: bool,
    /// Whether the value is worth a register if it is used twice.
    pub worth: bool,
}

impl Weight {
    /// Returns the weight of an expression, given the sum of the weights of its parts.
    pub fn of(e: &Expr, parts: Weight) -> Weight {
        let Weight { mut operations, mut heavy, .. } = parts;
        let worth = match e {
            Expr::Lit(_) | Expr::Arg(..) | Expr::Reg(_) | Expr::Index(..) | Expr::Lane(..) => false,
            Expr::Load(..) | Expr::Products(..) | Expr::Matrices(..) => {
                heavy = true;
                true
            }
            Expr::Op(op, ..) => {
                // A conversion between integers and floats takes longer than an addition.
                let converts = matches!(e, Expr::Op(ScalarOp::Cast(_), t, es)
                    if es.iter().any(|e| e.ty().scalar.is_float() != t.scalar.is_float()));
                operations += if converts { 2 } else { 1 };
                heavy |= op.is_dear();
                heavy || operations > 1
            }
            Expr::Checked(..) => {
                operations += 2;
                true
            }
            Expr::Splat(..) => heavy || operations > 0,
            Expr::Vector(_) | Expr::If(..) | Expr::Guarded(..) => {
                operations += 1;
                !e.is_decision()
            }
        };
        Weight { operations, heavy, worth }
    }

    /// Adds the weight of another part.
    pub fn add(&mut self, part: Weight) {
        self.operations += part.operations;
        self.heavy |= part.heavy;
    }
}

/// Registers and memories that a piece of code may change.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    /// Registers that the code sets or declares.
    pub regs: FxHashSet<u32>,
    /// Memories that the code stores to.
    pub stored: FxHashSet<Mem>,
    /// Whether the code synchronises work-items. Stores of other work-items to shared memories may
    /// then become visible.
    pub meets: bool,
}

impl Effects {
    /// Adds the effects of a statement and of all statements inside it.
    pub fn add(&mut self, s: &Stmt) {
        s.visit(&mut |s| match s {
            Stmt::Decl(r, _) | Stmt::Set(r, _) => {
                self.regs.insert(r.id);
            }
            Stmt::Store(m, ..) | Stmt::Atomic(_, m, ..) => {
                self.stored.insert(*m);
                self.regs.extend(s.assigned().map(|r| r.id));
            }
            Stmt::Barrier { scope: Scope::Group | Scope::Warp, .. } => self.meets = true,
            Stmt::Loop { .. }
            | Stmt::If(..)
            | Stmt::Branch(..)
            | Stmt::While(..)
            | Stmt::Once(_) => {}
        });
    }

    /// Returns the effects of a block.
    pub fn of(b: &Block) -> Effects {
        let mut out = Effects::default();
        b.iter().for_each(|s| out.add(s));
        out
    }
}

/// Returns the registers that get a value after their declaration.
pub fn changed(b: &[Stmt]) -> FxHashSet<u32> {
    let mut out = FxHashSet::default();
    for s in b {
        s.visit(&mut |s| match s {
            Stmt::Decl(r, None) => {
                out.insert(r.id);
            }
            s => out.extend(s.assigned().map(|r| r.id)),
        });
    }
    out
}
