//! Guards: removed where ranges decide them, moved out of loops where they do not.
//!
//! A sequential loop whose body reads under conditions affine in its variable is split: in the main
//! part every such condition is known to hold; what is left before and after keeps its guards.
//! Conditions that do not change in the loop are asked once, outside.

use super::index::{Facts, Guard, Index, Var};
use super::ir::{Block, Expr, Kernel, LoopKind, Stmt};
use super::walk::{rebuild, rebuilt};
use crate::lang::typed::ScalarOp;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Resolves the guards of a kernel.
pub fn resolve(k: &mut Kernel) {
    k.body.iter_mut().for_each(|s| clamp(s, &mut vec![]));
    let cx = Cx { facts: Facts::default(), scope: BTreeSet::new(), remainder: false };
    k.body = cx.block(&k.body);
}

/// An element that is another's past the end, and the same in all loops around it, is one load at the lesser place: no
/// loop is written twice for it, and it can move in front of them.
fn clamp(s: &mut Stmt, loops: &mut Vec<u32>) {
    if !loops.is_empty() && matches!(s, Stmt::Decl(..) | Stmt::Set(..) | Stmt::Store(..)) {
        rebuild(s, &mut |e| clamped(e, loops));
    }
    let var = match s {
        Stmt::Loop { kind: LoopKind::Seq, var, .. } => Some(var.id),
        _ => None,
    };
    loops.extend(var);
    s.blocks_mut().into_iter().flatten().for_each(|s| clamp(s, loops));
    if var.is_some() {
        loops.pop();
    }
}

fn clamped(e: &Expr, loops: &[u32]) -> Expr {
    if let Expr::Guarded(g, a, b) = e
        && let (Expr::Load(m, t, i), Expr::Load(n, u, last)) = (&**a, &**b)
        && (m, t) == (n, u)
        && t.width == 1
        && !i.has_data()
        && !loops.iter().any(|v| i.mentions(*v))
        && *g == Guard::not_negative(&last.sub(i))
    {
        return Expr::Load(*m, *t, i.lesser(last));
    }
    // Lanes stay neighbours of each other.
    rebuilt(e, &mut |e, _| match e {
        Expr::Vector(_) => e.clone(),
        e => clamped(e, loops),
    })
}

#[derive(Clone)]
struct Cx {
    facts: Facts,
    /// Variables of the enclosing loops.
    scope: BTreeSet<u32>,
    /// Inside the guarded part of a loop that was split: only innermost loops are split again, so
    /// that code grows with the depth of a nest, not exponentially.
    remainder: bool,
}

impl Cx {
    fn knowing(&self, g: &Guard) -> Cx {
        Cx { facts: self.facts.with(g), ..self.clone() }
    }

    fn denying(&self, g: &Guard) -> Cx {
        Cx { facts: self.facts.without(g), ..self.clone() }
    }

    fn block(&self, b: &Block) -> Block {
        let mut out = vec![];
        for s in b {
            self.stmt(s, &mut out);
        }
        out
    }

    fn stmt(&self, s: &Stmt, out: &mut Block) {
        match s {
            Stmt::Decl(r, e) => out.push(Stmt::Decl(r.clone(), e.as_ref().map(|e| self.expr(e)))),
            Stmt::Set(r, e) => out.push(Stmt::Set(r.clone(), self.expr(e))),
            Stmt::Store(m, i, e) => out.push(Stmt::Store(*m, i.clone(), self.expr(e))),
            Stmt::Barrier { .. } => out.push(s.clone()),
            Stmt::Once(b) => out.push(Stmt::Once(self.block(b))),
            Stmt::Branch(c, a, b) => match self.expr(c) {
                c if c.is_true() => out.extend(self.block(a)),
                c if c.is_false() => out.extend(self.block(b)),
                c => out.push(Stmt::Branch(c, self.block(a), self.block(b))),
            },
            Stmt::While(a, c, b) => {
                out.push(Stmt::While(self.block(a), self.expr(c), self.block(b)));
            }
            Stmt::If(g, a, b) => match self.facts.decide(g) {
                Some(true) => out.extend(self.block(a)),
                Some(false) => out.extend(self.block(b)),
                None => {
                    let (a, b) = (self.knowing(g).block(a), self.denying(g).block(b));
                    if !(a.is_empty() && b.is_empty()) {
                        out.push(Stmt::If(g.clone(), a, b));
                    }
                }
            },
            Stmt::Loop { kind, var, lo, hi, body } => {
                let l = Loop { kind: *kind, var, body };
                if *kind == LoopKind::Seq {
                    self.sequential(&l, lo, hi, out);
                } else {
                    out.extend(self.part(&l, lo, hi, &Guard::default()));
                }
            }
        }
    }

    fn expr(&self, e: &Expr) -> Expr {
        let go = |e: &Arc<Expr>| Arc::new(self.expr(e));
        match e {
            Expr::Index(..) | Expr::Load(..) if e.has_check() => {
                rebuilt(e, &mut |e, _| self.expr(e))
            }
            Expr::Lit(_) | Expr::Arg(..) | Expr::Reg(_) | Expr::Index(..) | Expr::Load(..) => {
                e.clone()
            }
            Expr::Op(op, t, es) => Expr::Op(*op, *t, es.iter().map(|e| self.expr(e)).collect()),
            Expr::Checked(check, es) => {
                Expr::Checked(*check, es.iter().map(|e| self.checked(e)).collect())
            }
            Expr::Vector(es) => Expr::vector(es.iter().map(|e| self.expr(e)).collect()),
            Expr::If(c, a, b) => Expr::If(go(c), go(a), go(b)),
            Expr::Splat(e, w) => Expr::Splat(go(e), *w),
            Expr::Lane(e, k) => self.expr(e).lane(*k),
            Expr::Guarded(g, a, b) => match self.facts.decide(g) {
                Some(true) => self.expr(a),
                Some(false) => self.expr(b),
                None => Expr::Guarded(
                    g.clone(),
                    Arc::new(self.knowing(g).expr(a)),
                    Arc::new(self.denying(g).expr(b)),
                ),
            },
        }
    }

    /// An operand of a check. Where it is known that the check is made, the choice is gone.
    fn checked(&self, e: &Expr) -> Expr {
        match self.expr(e) {
            Expr::Op(ScalarOp::Select, _, es) if es[0].is_true() => es[1].clone(),
            e => e,
        }
    }

    /// The loop over part of its range, under a further condition.
    fn part(&self, l: &Loop<'_>, lo: &Index, hi: &Index, known: &Guard) -> Option<Stmt> {
        if let (Some(a), Some(b)) = (lo.as_constant(), hi.as_constant())
            && a >= b
        {
            return None;
        }
        let mut inside =
            Cx { facts: self.facts.with_loop(l.var, lo, hi).with(known), ..self.clone() };
        inside.scope.insert(l.var.id);
        let body = inside.block(l.body);
        (!body.is_empty()).then(|| Stmt::Loop {
            kind: l.kind,
            var: l.var.clone(),
            lo: lo.clone(),
            hi: hi.clone(),
            body,
        })
    }

    fn sequential(&self, l: &Loop<'_>, lo: &Index, hi: &Index, out: &mut Block) {
        let inside = self.facts.with_loop(l.var, lo, hi);
        let mut conditions = BTreeSet::new();
        conditions_of(l.body, &mut conditions);
        let innermost = !l.body.iter().any(has_loop);
        let (mut fixed, mut moving) = (Guard::default(), Guard::default());
        let mut exact = true;
        for c in &conditions {
            let g = Guard(vec![c.clone()]);
            if inside.decide(&g).is_some() {
                continue;
            }
            let Some((k, rest)) = c.linear_in(l.var.id) else {
                continue;
            };
            let Some(least) = self.least(&rest) else {
                continue;
            };
            if k == 0 {
                if least == rest {
                    fixed = fixed.and(&g);
                }
                continue;
            }
            exact &= least == rest;
            let worst = least.add(&Index::from(l.var.clone()).times(k));
            moving = moving.and(&Guard(vec![worst]));
        }
        if !fixed.0.is_empty() {
            let (mut yes, mut no) = (vec![], vec![]);
            self.knowing(&fixed).sequential(l, lo, hi, &mut yes);
            let cx = self.denying(&fixed);
            // Where several conditions were asked, one may still hold: keep the guards as they are.
            if fixed.0.len() == 1 {
                cx.sequential(l, lo, hi, &mut no);
            } else {
                no.extend(cx.part(l, lo, hi, &Guard::default()));
            }
            out.push(Stmt::If(fixed, yes, no));
            return;
        }
        if moving.0.is_empty() || (self.remainder && !innermost) {
            out.extend(self.part(l, lo, hi, &Guard::default()));
            return;
        }
        let (mut first, mut last) = (lo.clone(), hi.clone());
        for c in &moving.0 {
            let Some((k, rest)) = c.linear_in(l.var.id) else {
                continue;
            };
            if k < 0 {
                // -|k| v + rest >= 0
                last = last.lesser(&rest.div(-k).plus(1));
            } else {
                first = first.greater(&rest.times(-1).plus(k - 1).div(k));
            }
        }
        let first = first.lesser(hi);
        let rest = Cx { remainder: true, ..self.clone() };
        if first != *lo {
            out.extend(rest.part(l, lo, &first, &Guard::default()));
        }
        out.extend(self.part(l, &first, &last, &moving));
        // A loop whose end is before its start does nothing; what is left starts after both.
        let last = last.greater(&first);
        if last != *hi {
            // Past the only bound, and not past a pessimistic one, the condition fails.
            let fails = match moving.0.as_slice() {
                [c] if exact && first == *lo => Guard(vec![c.times(-1).plus(-1)]),
                _ => Guard::default(),
            };
            out.extend(rest.part(l, &last, hi, &fails));
        }
    }

    /// The index with variables that are not in scope at their worst; `None` if that has no bound.
    fn least(&self, x: &Index) -> Option<Index> {
        let mut out = Index::from(x.constant());
        for (a, _) in x.terms() {
            let one = x.part(a);
            let mut visible = !one.has_data();
            one.visit_vars(&mut |v: &Var| visible &= self.scope.contains(&v.id));
            if visible {
                out = out.add(&one);
            } else if one.has_data() {
                return None;
            } else {
                out = out.plus(one.range().0);
            }
        }
        Some(out)
    }
}

struct Loop<'a> {
    kind: LoopKind,
    var: &'a Var,
    body: &'a Block,
}

fn has_loop(s: &Stmt) -> bool {
    let mut found = false;
    s.visit(&mut |s| found |= matches!(s, Stmt::Loop { .. }));
    found
}

/// Every condition that guards something in the block.
fn conditions_of(b: &Block, out: &mut BTreeSet<Index>) {
    for s in b {
        s.visit(&mut |s| {
            if let Stmt::If(g, ..) = s {
                out.extend(g.0.iter().cloned());
            }
            s.exprs(&mut |e| {
                e.visit(&mut |e| {
                    if let Expr::Guarded(g, ..) = e {
                        out.extend(g.0.iter().cloned());
                    }
                });
            });
        });
    }
}
