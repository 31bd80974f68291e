//! Kernels that store to the beginning of an array instead of the whole.

use crate::kernel::analysis::conditions::implied;
use crate::kernel::ir::facts::{Facts, Guard};
use crate::kernel::ir::index::Index;
use crate::kernel::ir::{Block, Expr, LoopKind, Mem, Stmt};

/// Returns a block that leaves out what it stores to a memory from element `n` on; `None` if it may load such an element, or in
/// another way depends on them.
pub fn to(b: &Block, m: Mem, n: i64) -> Option<Block> {
    Short { m, n }.block(b, &Facts::default())
}

#[derive(Clone, Copy)]
struct Short {
    m: Mem,
    n: i64,
}

impl Short {
    fn block(self, b: &Block, facts: &Facts) -> Option<Block> {
        let mut out = b.iter().map(|s| self.stmt(s, facts)).collect::<Option<Block>>()?;
        let over = |s: &Stmt| {
            matches!(s, Stmt::Store(m, i, e)
                if *m == self.m && !self.is_below(i, e.ty().width, facts))
        };
        let Some(first) = out.iter().position(over) else { return Some(out) };
        // Neighbouring stores have one condition, so that they still become vectors.
        let all = out.split_off(first);
        if all.iter().any(|s| !is_of_item(s)) {
            return None;
        }
        let (mut inside, mut each, mut whole) = (Guard::default(), vec![], true);
        for s in &all {
            match s {
                Stmt::Store(m, i, e) if over(s) => {
                    let width = e.ty().width;
                    inside = inside.and(&self.guard(i, width));
                    for (k, lane) in (0i64..).zip(0..width) {
                        let at = i.plus(k);
                        if facts.prove_hard(&at.plus(-self.n)) {
                            whole = false;
                            continue;
                        }
                        let value = if width == 1 { e.clone() } else { e.clone().lane(lane) };
                        let store = Stmt::Store(*m, at.clone(), value);
                        each.push(match self.is_below(&at, 1, facts) {
                            true => store,
                            false => Stmt::If(self.guard(&at, 1), vec![store], vec![]),
                        });
                    }
                }
                s => each.push(s.clone()),
            }
        }
        match &each[..] {
            [_] => out.extend(each),
            _ if !whole => out.extend(each),
            _ => out.push(Stmt::If(inside, all, each)),
        }
        Some(out)
    }

    fn stmt(self, s: &Stmt, facts: &Facts) -> Option<Stmt> {
        let mut below = true;
        s.exprs(&mut |e| below &= self.reads_below(e, facts));
        if !below {
            return None;
        }
        let block = |b: &Block, facts: &Facts| self.block(b, facts);
        Some(match s {
            Stmt::Loop { kind, var, lo, hi, body } => Stmt::Loop {
                kind: *kind,
                var: var.clone(),
                lo: lo.clone(),
                hi: hi.clone(),
                body: block(body, &facts.with_loop(var, lo, hi))?,
            },
            Stmt::If(g, yes, no) => {
                Stmt::If(g.clone(), block(yes, &facts.with(g))?, block(no, &facts.without(g))?)
            }
            Stmt::Branch(c, yes, no) => {
                let side = |b, holds| block(b, &facts.with(&implied(c, holds)));
                Stmt::Branch(c.clone(), side(yes, true)?, side(no, false)?)
            }
            Stmt::While(head, c, body) => {
                Stmt::While(block(head, facts)?, c.clone(), block(body, facts)?)
            }
            Stmt::Once(body) => Stmt::Once(block(body, facts)?),
            Stmt::Atomic(_, m, ..) if *m == self.m => return None,
            Stmt::Decl(..)
            | Stmt::Set(..)
            | Stmt::Store(..)
            | Stmt::Atomic(..)
            | Stmt::Barrier { .. } => s.clone(),
        })
    }

    fn reads_below(self, e: &Expr, facts: &Facts) -> bool {
        let all = |i: &Index| {
            let mut below = true;
            i.visit_data(&mut |e| below &= self.reads_below(e, facts));
            below
        };
        match e {
            Expr::Lit(_) | Expr::Arg(..) | Expr::Reg(_) => true,
            Expr::Index(i, _) => all(i),
            Expr::Load(m, t, i) => all(i) && (*m != self.m || self.is_below(i, t.width, facts)),
            Expr::Op(_, _, es)
            | Expr::Checked(_, es)
            | Expr::Vector(es)
            | Expr::Products(_, es) => es.iter().all(|e| self.reads_below(e, facts)),
            Expr::If(c, yes, no) => {
                let side = |e, holds| self.reads_below(e, &facts.with(&implied(c, holds)));
                self.reads_below(c, facts) && side(yes, true) && side(no, false)
            }
            Expr::Guarded(g, yes, no) => {
                self.reads_below(yes, &facts.with(g)) && self.reads_below(no, &facts.without(g))
            }
            Expr::Splat(e, _) | Expr::Lane(e, _) | Expr::Matrices(_, e) => {
                self.reads_below(e, facts)
            }
        }
    }

    /// Whether an access touches elements below `n` alone.
    fn is_below(self, i: &Index, width: usize, facts: &Facts) -> bool {
        let end = i.plus(i64::try_from(width).unwrap_or(i64::MAX));
        facts.prove_hard(&Index::from(self.n).sub(&end))
    }

    fn guard(self, i: &Index, width: usize) -> Guard {
        Guard::less(&i.plus(i64::try_from(width).unwrap_or(1) - 1), &Index::from(self.n))
    }
}

/// Whether a work-item runs a statement on its own, so that it may stand under a condition.
fn is_of_item(s: &Stmt) -> bool {
    let mut alone = true;
    s.visit(&mut |s| {
        alone &= match s {
            Stmt::Loop { kind, .. } => *kind == LoopKind::Seq,
            Stmt::Once(_) | Stmt::Barrier { .. } | Stmt::Atomic(..) => false,
            s => {
                let mut products = false;
                s.exprs(&mut |e| {
                    e.visit(&mut |e| {
                        products |= matches!(e, Expr::Products(..) | Expr::Matrices(..));
                    });
                });
                !products
            }
        };
    });
    alone
}
