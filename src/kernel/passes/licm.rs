//! Loop-invariant code motion: values that do not change in a sequential loop are computed in front
//! of it.
//!
//! The pass only moves values out of loops that run at least once. It moves loads only if every iteration makes them, so the
//! kernel loads nothing that it did not load before. Values that take many cycles, such as a sine, are moved out of conditions, too, if
//! the loop is not short.

use crate::kernel::ir::index::Index;
use crate::kernel::ir::walk::{Effects, Fresh, Weight, changed, parts, rebuild, rebuilt};
use crate::kernel::ir::{Block, Expr, Kernel, LoopKind, Mem, Reg, Stmt};
use crate::lang::typed::ScalarOp;
use rustc_hash::{FxHashMap, FxHashSet};

/// Maximum number of values kept in registers for one loop.
const MOST: usize = 32;

/// Fewest iterations of a loop for which a value that only some of them compute is moved.
const SOME: i64 = 8;

/// Moves invariant values out of the loops of a kernel.
pub fn invariants(k: &mut Kernel, fresh: &mut Fresh) {
    let whole = Whole { changed: changed(&k.body), written: Effects::of(&k.body).stored };
    block(&mut k.body, &whole, fresh);
}

/// Registers and memories that the kernel changes.
struct Whole {
    /// Registers that are set after their declaration.
    changed: FxHashSet<u32>,
    /// Memories that it stores to; the others do not change while it runs.
    written: FxHashSet<Mem>,
}

fn block(b: &mut Block, whole: &Whole, fresh: &mut Fresh) {
    let mut out = Vec::with_capacity(b.len());
    for mut s in b.drain(..) {
        s.blocks_mut().into_iter().for_each(|b| block(b, whole, fresh));
        if let Stmt::Loop { kind: LoopKind::Seq, var, lo, hi, body } = &mut s
            && runs_again(lo, hi)
        {
            let mut mover = Mover {
                var: var.id,
                effects: Effects::of(body),
                whole,
                copies: FxHashMap::default(),
                moved: FxHashMap::default(),
                before: vec![],
                sometimes: false,
                fresh,
            };
            body.iter_mut().for_each(|s| mover.stmt(s));
            if hi.sub(lo).range().0 >= SOME {
                mover.sometimes = true;
                mover.conditions(body);
            }
            out.append(&mut mover.before);
        }
        out.push(s);
    }
    *b = out;
}

/// Whether the loop runs at least once, and may run twice.
fn runs_again(lo: &Index, hi: &Index) -> bool {
    let (least, most) = hi.sub(lo).range();
    least >= 1 && most > 1
}

/// Moves values out of one loop.
struct Mover<'a> {
    /// The loop's variable.
    var: u32,
    /// Registers and memories that the loop changes.
    effects: Effects,
    whole: &'a Whole,
    /// Registers declared in the loop that are copies of a register from in front of it.
    copies: FxHashMap<u32, Reg>,
    /// Values moved so far, with the registers that hold them.
    moved: FxHashMap<Expr, Reg>,
    before: Block,
    /// Whether the code that is looked at is not part of each iteration.
    sometimes: bool,
    fresh: &'a mut Fresh,
}

impl Mover<'_> {
    fn stmt(&mut self, s: &mut Stmt) {
        match s {
            // The expressions of these statements run once in each iteration.
            Stmt::Decl(..)
            | Stmt::Set(..)
            | Stmt::Store(..)
            | Stmt::Atomic(..)
            | Stmt::Branch(..)
            | Stmt::If(..) => {}
            Stmt::Loop { .. } | Stmt::While(..) | Stmt::Once(_) | Stmt::Barrier { .. } => return,
        }
        rebuild(s, &mut |e| self.expr(e));
        if let Stmt::Decl(r, Some(Expr::Reg(x))) = s
            && !self.sometimes
            && !self.whole.changed.contains(&r.id)
            && !self.effects.regs.contains(&x.id)
        {
            self.copies.insert(r.id, x.clone());
        }
    }

    /// Moves values out of the conditions of a block.
    fn conditions(&mut self, b: &mut Block) {
        for s in b {
            if let Stmt::Branch(..) | Stmt::If(..) = s {
                for inner in s.blocks_mut() {
                    inner.iter_mut().for_each(|s| self.stmt(s));
                    self.conditions(inner);
                }
            }
        }
    }

    fn expr(&mut self, e: &Expr) -> Expr {
        let (fixed, weight) = self.look(e);
        // What depends on nothing is left to the driver's compiler.
        let stays = self.sometimes && is_constant(e);
        if stays || !(fixed && weight.worth && weight.heavy) {
            if weight.heavy {
                // A part that is evaluated only sometimes stays where it is.
                return rebuilt(e, &mut |e, lazy| if lazy { e.clone() } else { self.expr(e) });
            }
            return e.clone();
        }
        let e = e.map_regs(&|r| self.copies.get(&r.id).unwrap_or(r).clone());
        if let Some(r) = self.moved.get(&e) {
            return Expr::Reg(r.clone());
        }
        if self.moved.len() >= MOST {
            return e;
        }
        let r = self.fresh.reg(e.ty());
        self.before.push(Stmt::Decl(r.clone(), Some(e.clone())));
        self.moved.insert(e, r.clone());
        Expr::Reg(r)
    }

    /// Returns whether the value is the same in each iteration, and the cost of computing it.
    fn look(&self, e: &Expr) -> (bool, Weight) {
        let mut fixed = match e {
            // What is computed although no iteration asks for it must have no effect.
            Expr::Load(..) | Expr::Checked(..) | Expr::Guarded(..) if self.sometimes => false,
            Expr::Op(ScalarOp::Div | ScalarOp::Rem, t, _)
                if self.sometimes && !t.scalar.is_float() =>
            {
                false
            }
            Expr::Index(i, _) if self.sometimes && i.has_data() => false,
            Expr::Reg(r) => !self.effects.regs.contains(&r.id) || self.copies.contains_key(&r.id),
            Expr::Index(i, _) => self.index(i),
            Expr::Load(m, _, i) => self.index(i) && self.memory(*m),
            Expr::Guarded(g, ..) => g.0.iter().all(|i| self.index(i)),
            Expr::Lit(_)
            | Expr::Arg(..)
            | Expr::Op(..)
            | Expr::Checked(..)
            | Expr::If(..)
            | Expr::Splat(..)
            | Expr::Vector(_)
            | Expr::Products(..)
            | Expr::Matrices(..)
            | Expr::Lane(..) => true,
        };
        let mut weight = Weight::default();
        parts(e, &mut |e, _| {
            let (f, w) = self.look(e);
            fixed &= f;
            weight.add(w);
        });
        (fixed, Weight::of(e, weight))
    }

    fn index(&self, i: &Index) -> bool {
        !i.mentions(self.var)
    }

    /// Whether no work-item changes this memory while the loop runs.
    fn memory(&self, m: Mem) -> bool {
        let shared = self.whole.written.contains(&m) && !matches!(m, Mem::Private(_));
        !(self.effects.stored.contains(&m) || shared && self.effects.meets)
    }
}

/// Whether an expression consists of literals and operations alone.
fn is_constant(e: &Expr) -> bool {
    let mut constant = true;
    e.visit(&mut |e| constant &= matches!(e, Expr::Lit(_) | Expr::Op(..)));
    constant
}
