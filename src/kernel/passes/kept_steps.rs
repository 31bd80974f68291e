//! Loops that keep a small array in registers, of which a step of the loop may leave all as it is: the nearest points so far, a
//! sorted window, a queue. Whether it does depends on data, so a compiler neither unrolls the loop nor loads ahead.
//!
//! Several steps are written out. What depends on the number of a step alone, such as the elements that it loads, comes in front of
//! the first one: the loads of all steps are under way at the same time. What only one side of a choice needs is computed on that
//! side.

use super::overlap::written_out;
use super::sides::{self, read};
use crate::kernel::ir::index::Var;
use crate::kernel::ir::walk::{Effects, Fresh, changed, statements};
use crate::kernel::ir::{Block, Expr, Kernel, LoopKind, Mem, Stmt};
use rustc_hash::FxHashSet;

/// Steps that are written out.
const STEPS: i64 = 4;
/// Least number of registers in which a loop keeps its state.
const KEPT: usize = 4;
/// Most values of a step that are computed ahead: each has a register in each step.
const AHEAD: usize = 16;
/// Maximum number of statements that the steps become.
const STATEMENTS: usize = 512;

/// Writes out steps of the loops of a kernel that gain by it.
pub fn write_out(k: &mut Kernel, fresh: &mut Fresh) {
    let written: FxHashSet<Mem> = Effects::of(&k.body).stored.into_iter().collect();
    block(&mut k.body, &written, fresh);
}

fn block(b: &mut Block, written: &FxHashSet<Mem>, fresh: &mut Fresh) {
    let mut out = Vec::with_capacity(b.len());
    for mut s in b.drain(..) {
        s.blocks_mut().into_iter().for_each(|b| block(b, written, fresh));
        match several_steps(&s, written, fresh) {
            Some(steps) => out.extend(steps),
            None => out.push(s),
        }
    }
    *b = out;
}

/// Returns a loop with several steps in each iteration, and one over the steps that are left.
fn several_steps(s: &Stmt, written: &FxHashSet<Mem>, fresh: &mut Fresh) -> Option<Block> {
    let Stmt::Loop { kind: LoopKind::Seq, var, lo, hi, body } = s else { return None };
    let (first, end) = (lo.as_constant()?, hi.as_constant()?);
    let rounds = (end - first) / STEPS;
    if first < 0 || rounds < 2 || !keeps(body) {
        return None;
    }
    let mut body = body.clone();
    to_sides(&mut body);
    let ahead = ahead(&body, var, written)?;
    let length = statements(&body).saturating_mul(usize::try_from(STEPS).unwrap_or(usize::MAX));
    if length > STATEMENTS {
        return None;
    }
    let (each, mut out) = (body.len(), vec![]);
    let rest = written_out(var, (first, end), STEPS, body, fresh, &mut out);
    for s in &mut out {
        let all = s.blocks_mut().into_iter().next()?;
        let numbered = std::mem::take(all).into_iter().enumerate();
        let (front, steps): (Vec<_>, Vec<_>) =
            numbered.partition(|(i, _)| ahead.contains(&(i % each)));
        all.extend(front.into_iter().chain(steps).map(|(_, s)| s));
    }
    out.extend(rest);
    Some(out)
}

/// Whether a step only sets registers, several of which hold the state, and chooses what it does by data.
fn keeps(body: &Block) -> bool {
    let mut simple = true;
    for s in body {
        s.visit(&mut |s| {
            simple &= matches!(s, Stmt::Decl(..) | Stmt::Set(..) | Stmt::If(..) | Stmt::Branch(..));
            s.exprs(&mut |e| {
                e.visit(&mut |e| simple &= !matches!(e, Expr::Products(..) | Expr::Matrices(..)));
            });
        });
    }
    let declared = declared(body);
    let state = changed(body).into_iter().filter(|r| !declared.contains(r)).count();
    simple && state >= KEPT && body.iter().any(|s| matches!(s, Stmt::Branch(..)))
}

/// The registers that a block and those inside it declare.
fn declared(b: &Block) -> FxHashSet<u32> {
    let mut found = FxHashSet::default();
    for s in b {
        s.visit(&mut |s| {
            if let Stmt::Decl(r, _) = s {
                found.insert(r.id);
            }
        });
    }
    found
}

/// Returns the places of the statements that depend on the number of the step alone, if some of them load.
fn ahead(body: &Block, var: &Var, written: &FxHashSet<Mem>) -> Option<FxHashSet<usize>> {
    let (mut changes, mut here) = (changed(body), declared(body));
    let (mut places, mut loads) = (FxHashSet::default(), false);
    for (i, s) in body.iter().enumerate() {
        let Stmt::Decl(r, Some(e)) = s else { continue };
        let mut free = !e.has_check() && !changes.contains(&r.id);
        read(s, &mut |x| free &= !changes.contains(&x) && !here.contains(&x));
        let mut loaded = false;
        e.visit(&mut |e| {
            if let Expr::Load(m, _, i) = e {
                free &= !written.contains(m);
                loaded |= i.mentions(var.id);
            }
        });
        if free {
            here.remove(&r.id);
            changes.remove(&r.id);
            places.insert(i);
            loads |= loaded;
        }
    }
    (loads && places.len() <= AHEAD).then_some(places)
}

/// Moves what only one side of a choice needs to that side: arithmetic on registers, since a load is better under way early.
fn to_sides(body: &mut Block) {
    let plain = |e: &Expr| {
        let mut plain = !e.has_check();
        e.visit(&mut |e| {
            plain &= !matches!(e, Expr::Load(..) | Expr::Products(..) | Expr::Matrices(..));
        });
        plain
    };
    sides::in_block(body, &plain, &|_| true, &sides::is_choice);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calculus::scalar::Lit;
    use crate::kernel::ir::ElemTy;
    use crate::kernel::ir::index::Index;
    use crate::kernel::ir::testing::{FLOAT, get, reg};
    use crate::lang::typed::ScalarOp;
    use crate::lang::types::ScalarType::{Bool, F32};
    use std::collections::BTreeSet;

    fn sum(a: Expr, b: Expr) -> Expr {
        Expr::Op(ScalarOp::Add, FLOAT, vec![a, b])
    }

    /// `for i < n { x = a[i]; y = t0 + x; if (x < t0) { t0 = y; .. } }`, where registers 0 to `kept` hold the state.
    fn steps(n: i64, kept: u32) -> Stmt {
        let var = Var { id: 1, name: "i".into(), lo: 0, hi: n - 1 };
        let x = Expr::Load(Mem::Global(0), FLOAT, Index::from(var.clone()));
        let less = Expr::Op(ScalarOp::Lt, ElemTy::scalar(Bool), vec![get(10), get(0)]);
        let body = vec![
            Stmt::Decl(reg(10), Some(x)),
            Stmt::Decl(reg(11), Some(sum(get(0), get(10)))),
            Stmt::Set(reg(11), sum(get(11), get(1))),
            Stmt::Branch(less, (0..kept).map(|k| Stmt::Set(reg(k), get(11))).collect(), vec![]),
        ];
        Stmt::Loop { kind: LoopKind::Seq, var, lo: Index::from(0), hi: Index::from(n), body }
    }

    fn written_out(s: Stmt) -> Block {
        let mut b = vec![s];
        block(
            &mut b,
            &FxHashSet::default(),
            &mut Fresh { next: 100, first: 0, reserved: BTreeSet::new() },
        );
        b
    }

    #[test]
    fn loads_of_several_steps_come_first() {
        let b = written_out(steps(10, 4));
        let [Stmt::Loop { hi, body, .. }, Stmt::Loop { lo, hi: end, .. }] = b.as_slice() else {
            panic!("two loops")
        };
        assert_eq!([hi, lo, end].map(Index::as_constant), [Some(2), Some(8), Some(10)]);
        let loads = |s: &Stmt| matches!(s, Stmt::Decl(_, Some(Expr::Load(..))));
        assert_eq!(body.len(), 8);
        assert!(body[..4].iter().all(loads));
        // What only the one side needs is on that side.
        assert!(body[4..].iter().all(|s| matches!(s, Stmt::Branch(_, a, _) if a.len() == 6)));
    }

    #[test]
    fn other_loops_stay() {
        // A state of few registers, and few steps.
        for s in [steps(10, 3), steps(7, 4)] {
            assert_eq!(written_out(s.clone()), [s]);
        }
        // An element that is read where the loop stores.
        let mut s = steps(10, 4);
        let Stmt::Loop { body, .. } = &mut s else { unreachable!() };
        let one = Expr::Lit(Lit::float(F32, 1.0));
        body.push(Stmt::Store(Mem::Global(0), Index::from(0), one));
        assert_eq!(written_out(s.clone()), [s]);
    }
}
