//! Removes the checks of indices that cannot fail.
//!
//! A program reads `u[i - 1]` under a condition such as `i > 0`, or at a place such as `max (i - 1) 0` or `(i + n - 1) % n`. Lowering
//! sees these numbers as data where they were given a name, are lanes of a vector, or are chosen by a condition. Here they are indices again: what
//! the names stand for is known, and so are the conditions around an access. An index that is proved to lie in its array has no check any more,
//! and later passes can compare it with others.
//!
//! Conditions that only compare indices become guards, which loops are split for ([`super::guards`]).

use crate::kernel::analysis::arithmetic::{index, on_indices};
use crate::kernel::analysis::conditions::{guard, implied};
use crate::kernel::ir::facts::{Facts, Guard};
use crate::kernel::ir::index::Index;
use crate::kernel::ir::walk::{changed, rebuilt};
use crate::kernel::ir::{Block, Check, ElemTy, Expr, Kernel, Stmt};
use crate::lang::typed::ScalarOp;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Removes such checks from a kernel.
pub fn remove(k: &mut Kernel) {
    let mut checks = false;
    for s in &k.body {
        s.visit(&mut |s| s.exprs(&mut |e| checks |= e.has_check()));
    }
    if checks {
        let known = Known {
            changed: changed(&k.body),
            numbers: FxHashMap::default(),
            tests: FxHashMap::default(),
        };
        k.body = Cx { facts: Facts::default(), known: &mut { known } }.block(&k.body);
    }
}

/// What registers hold.
struct Known {
    /// Registers that change.
    changed: FxHashSet<u32>,
    /// The index in each lane of the others.
    numbers: FxHashMap<u32, Vec<Option<Index>>>,
    /// Conditions on indices.
    tests: FxHashMap<u32, Expr>,
}

struct Cx<'a> {
    facts: Facts,
    known: &'a mut Known,
}

impl Cx<'_> {
    fn under(&mut self, g: &Guard) -> Cx<'_> {
        Cx { facts: self.facts.with(g), known: self.known }
    }

    fn denying(&mut self, g: &Guard) -> Cx<'_> {
        Cx { facts: self.facts.without(g), known: self.known }
    }

    fn block(&mut self, b: &Block) -> Block {
        b.iter().map(|s| self.stmt(s)).collect()
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        match s {
            Stmt::Decl(r, Some(e)) => {
                let e = self.expr(e);
                if !self.known.changed.contains(&r.id) {
                    let lanes = (0..r.ty.width).map(|k| self.number(&lane(&e, k))).collect();
                    self.known.numbers.insert(r.id, lanes);
                    let test = self.condition(&e);
                    if [true, false].iter().any(|holds| implied(&test, *holds) != Guard::default())
                    {
                        self.known.tests.insert(r.id, test);
                    }
                }
                Stmt::Decl(r.clone(), Some(e))
            }
            Stmt::Decl(_, None) | Stmt::Barrier { .. } => s.clone(),
            Stmt::Set(r, e) => Stmt::Set(r.clone(), self.expr(e)),
            Stmt::Store(m, i, e) => Stmt::Store(*m, self.index(i), self.expr(e)),
            Stmt::Atomic(update, m, i, e) => {
                Stmt::Atomic(update.clone(), *m, self.index(i), self.expr(e))
            }
            Stmt::Once(b) => Stmt::Once(self.block(b)),
            Stmt::Branch(c, a, b) => {
                let c = self.expr(c);
                let c = self.condition(&c);
                let a = self.under(&implied(&c, true)).block(a);
                let b = self.under(&implied(&c, false)).block(b);
                match guard(&c) {
                    Some((g, true)) => Stmt::If(g, a, b),
                    Some((g, false)) => Stmt::If(g, b, a),
                    None => Stmt::Branch(c, a, b),
                }
            }
            Stmt::While(a, c, b) => Stmt::While(self.block(a), self.expr(c), self.block(b)),
            Stmt::If(g, a, b) => {
                Stmt::If(g.clone(), self.under(g).block(a), self.denying(g).block(b))
            }
            Stmt::Loop { kind, var, lo, hi, body } => {
                let facts = self.facts.with_loop(var, lo, hi);
                let body = Cx { facts, known: self.known }.block(body);
                Stmt::Loop { kind: *kind, var: var.clone(), lo: lo.clone(), hi: hi.clone(), body }
            }
        }
    }

    fn expr(&mut self, e: &Expr) -> Expr {
        match e {
            e if !e.has_check() => e.clone(),
            Expr::Index(i, t) => Expr::Index(self.index(i), *t),
            Expr::Load(m, t, i) => Expr::Load(*m, *t, self.index(i)),
            Expr::Checked(Check::Index(n), es) if es.len() == 1 => {
                let at = self.expr(&es[0]);
                match self.number(&at).filter(|i| self.is_inside(i, *n)) {
                    Some(i) => Expr::Index(i, at.ty().scalar),
                    None => Expr::Checked(Check::Index(*n), vec![at]),
                }
            }
            Expr::If(c, a, b) => {
                let c = self.expr(c);
                let c = self.condition(&c);
                let a = self.under(&implied(&c, true)).expr(a);
                let b = self.under(&implied(&c, false)).expr(b);
                Expr::If(Arc::new(c), Arc::new(a), Arc::new(b))
            }
            Expr::Guarded(g, a, b) => {
                let a = self.under(g).expr(a);
                let b = self.denying(g).expr(b);
                Expr::Guarded(g.clone(), Arc::new(a), Arc::new(b))
            }
            e => rebuilt(e, &mut |e, _| self.expr(e)),
        }
    }

    /// Returns an index without the checks that cannot fail.
    fn index(&mut self, i: &Index) -> Index {
        if !i.has_data() {
            return i.clone();
        }
        let mut values = vec![];
        i.visit_data(&mut |e| values.push(e.clone()));
        let values: Vec<(Expr, Expr)> =
            values.into_iter().map(|e| (e.clone(), self.expr(&e))).collect();
        let new = |e: &Expr| values.iter().find(|(old, _)| old == e).map(|(_, new)| new);
        let i = i.known_data(&|e| new(e).filter(|new| *new != e).and_then(index));
        i.map_data(&|e| new(e).unwrap_or(e).clone())
    }

    fn is_inside(&self, i: &Index, n: i64) -> bool {
        let proved = |i: &Index| self.facts.prove_with_quotients(i);
        proved(i) && proved(&Index::from(n - 1).sub(i))
    }

    /// Returns an integer as an index, if it does not depend on data.
    fn number(&self, e: &Expr) -> Option<Index> {
        match e {
            Expr::Reg(r) => self.known.numbers.get(&r.id)?.first()?.clone(),
            Expr::Lane(v, k) => match &**v {
                Expr::Reg(r) => self.known.numbers.get(&r.id)?.get(*k)?.clone(),
                v => match lane(v, *k) {
                    Expr::Lane(..) => None,
                    part => self.number(&part),
                },
            },
            Expr::Index(i, _) if i.has_data() => {
                let i = i.known_data(&|e| self.number(e));
                (!i.has_data()).then_some(i)
            }
            Expr::Op(op, t, es) if t.width == 1 => {
                let of = |e: &Expr| Some(Expr::Index(self.number(e)?, e.ty().scalar));
                let es = es.iter().map(of).collect::<Option<Vec<_>>>()?;
                on_indices(*op, t.scalar, &es, &self.facts)
            }
            Expr::Guarded(g, a, b) => match self.facts.decide(g)? {
                true => self.number(a),
                false => self.number(b),
            },
            Expr::Splat(e, _) => self.number(e),
            e => index(e),
        }
    }

    /// Returns a condition with indices in place of the registers that hold them.
    fn condition(&self, c: &Expr) -> Expr {
        match c {
            Expr::Reg(r) => self.known.tests.get(&r.id).unwrap_or(c).clone(),
            Expr::Op(op @ (ScalarOp::And | ScalarOp::Or | ScalarOp::Not), t, es)
                if t.width == 1 =>
            {
                Expr::Op(*op, *t, es.iter().map(|e| self.condition(e)).collect())
            }
            Expr::If(test, a, b) => {
                let [test, a, b] = [test, a, b].map(|e| Arc::new(self.condition(e)));
                Expr::If(test, a, b)
            }
            Expr::Op(op, t, es) if t.width == 1 && is_comparison(*op) => {
                let of = |e: &Expr| match self.number(e) {
                    Some(i) => Expr::Index(i, e.ty().scalar),
                    None => e.clone(),
                };
                Expr::Op(*op, *t, es.iter().map(of).collect())
            }
            c => c.clone(),
        }
    }
}

fn is_comparison(op: ScalarOp) -> bool {
    use ScalarOp::{Eq, Ge, Gt, Le, Lt, Ne};
    matches!(op, Eq | Ne | Lt | Le | Gt | Ge)
}

/// Returns one lane of a vector, of the operands if it is the result of an operation.
fn lane(e: &Expr, k: usize) -> Expr {
    match e {
        Expr::Op(op, t, es) if t.width > 1 => {
            let es = es.iter().map(|e| lane(e, k)).collect();
            Expr::Op(*op, ElemTy::scalar(t.scalar), es)
        }
        e => e.lane(k),
    }
}

#[cfg(test)]
mod tests {
    use crate::calculus::size::SizeEnv;
    use crate::kernel::lower;
    use crate::kernel::lower::testing::{options, term};

    /// Number of checks in the kernel of a map over the places of a row `u` of 64 numbers.
    fn checks(f: &str) -> usize {
        let text = format!("mapGlb 0 ({f}) . iota 64 i32");
        let term = term(&text, &[("u", "[64]f32")]);
        let program = lower(&term, &SizeEnv::default(), &options()).expect("lowers");
        let mut found = 0;
        for s in &program.kernels[0].body {
            s.visit(&mut |s| {
                s.exprs(&mut |e| {
                    e.visit(&mut |e| found += usize::from(matches!(e, super::Expr::Checked(..))));
                });
            });
        }
        found
    }

    #[test]
    fn conditions_and_arithmetic_prove_indices() {
        let at = |place: &str| format!("index . fork u (\\a -> {place})");
        let under = |test: &str, place: &str| {
            checks(&format!("cond (\\a -> {test}) ({}) (\\_ -> 0.0)", at(place)))
        };
        assert_eq!(under("a > 0", "a - 1"), 0);
        assert_eq!(under("a > 0", "a - 2"), 1);
        assert_eq!(under("a >= 2 && a < 60", "a + 4"), 0);
        assert_eq!(under("a >= 2 && a < 60", "a + 5"), 1);
        assert_eq!(under("a >= 2 && a < 60", "(a - 2) * 2 / 2 + 5"), 0);
        assert_eq!(under("a >= 1 && sqrt (f32.i32 a) < 5.0", "a - 1"), 0);
        assert_eq!(under("a > 0 || a < 5", "a - 1"), 1);
        assert_eq!(under("not (a < 1 || (a + 1) % 2 == 0)", "a - 1"), 0);
        assert_eq!(under("a > 0 && (a + 1) % 2 == 0", "a - 1"), 0);
        let outside = format!("cond (\\a -> a < 3 || a > 60) (\\_ -> 0.0) ({})", at("a + 3"));
        assert_eq!(checks(&outside), 0);
        assert_eq!(checks(&at("max (a - 1) 0")), 0);
        assert_eq!(checks(&at("(a + 63) % 64")), 0);
        assert_eq!(checks(&at("(a + 63) % 65")), 1);
        // The first places of rows of 8, of which there are 7 under the condition.
        assert_eq!(under("a < 56", "a / 8 * 8 + 15"), 0);
        assert_eq!(under("a < 56", "a / 8 * 8 + 16"), 1);
        assert_eq!(under("a < 56", "a / 8 + 57"), 0);
        assert_eq!(under("a < 57", "a / 8 + 57"), 1);
    }
}
