//! Masked reductions: `r = r + (c ? x : 0)` becomes `if (c) r = r + x`, and neighbours under the same condition share it.
//!
//! The neutral element costs an addition and hides products from contraction with it. With one condition for several
//! registers of a tile, a GPU predicates their operations, and skips them where a whole warp is masked (a triangular
//! product). Sums of floats change only if floating-point operations may be reassociated: `-0.0 + 0.0` is `0.0`.

use crate::calculus::scalar::Lit;
use crate::kernel::ir::{Block, Expr, Kernel, Reg, Stmt};
use crate::lang::typed::ScalarOp;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Changes the masked reductions of a kernel.
pub fn reductions(k: &mut Kernel, relaxed: bool) {
    block(&mut k.body, relaxed);
}

/// An update of a register under a condition.
struct Update {
    register: Reg,
    condition: Expr,
    value: Expr,
}

fn block(b: &mut Block, relaxed: bool) {
    let mut out = Block::new();
    let mut run: Vec<Update> = vec![];
    // The registers that the updates of the run change, and those that they mention.
    let (mut changed, mut mentioned) = (BTreeSet::new(), BTreeSet::new());
    for mut s in std::mem::take(b) {
        s.blocks_mut().into_iter().for_each(|b| block(b, relaxed));
        let update = update(&s, relaxed);
        let reads = update
            .as_ref()
            .map_or(BTreeSet::new(), |u| registers([&u.condition, &u.value].into_iter()));
        let own = update.as_ref().map(|u| u.register.id);
        // Updates of a run may take place in any order.
        let independent = |id| !mentioned.contains(&id) && reads.is_disjoint(&changed);
        if !own.is_some_and(independent) {
            close(&mut run, &mut out);
            (changed, mentioned) = (BTreeSet::new(), BTreeSet::new());
        }
        match update {
            Some(u) => {
                changed.insert(u.register.id);
                mentioned.extend(reads);
                run.push(u);
            }
            None => out.push(s),
        }
    }
    close(&mut run, &mut out);
    *b = out;
}

/// Writes the updates of a run, those with the same condition together.
fn close(run: &mut Vec<Update>, out: &mut Block) {
    let mut rest = std::mem::take(run);
    while let Some(first) = rest.first() {
        let condition = first.condition.clone();
        let same;
        (same, rest) = rest.into_iter().partition(|u| u.condition == condition);
        let mut sets: Block = same.into_iter().map(|u| Stmt::Set(u.register, u.value)).collect();
        match &mut sets[..] {
            [Stmt::Set(r, value)] => {
                let old = Expr::Reg(r.clone());
                let value = std::mem::replace(value, old.clone());
                out.push(Stmt::Set(
                    r.clone(),
                    Expr::If(Arc::new(condition), Arc::new(value), Arc::new(old)),
                ));
            }
            _ => out.push(Stmt::Branch(condition, sets, vec![])),
        }
    }
}

/// Returns the update that a statement makes, if its masked value would leave the register as it is.
fn update(s: &Stmt, relaxed: bool) -> Option<Update> {
    let Stmt::Set(register, Expr::Op(op, t, es)) = s else { return None };
    let [a, b] = &es[..] else { return None };
    let old = |e: &Expr| *e == Expr::Reg(register.clone());
    let masked = match (old(a), old(b)) {
        (true, false) => b,
        (false, true) => a,
        _ => return None,
    };
    let Expr::If(condition, x, z) = masked else { return None };
    let Expr::Lit(z) = &**z else { return None };
    if t.width != 1 || !is_neutral(*op, *z, relaxed) {
        return None;
    }
    let value = es.iter().map(|e| if old(e) { e.clone() } else { (**x).clone() }).collect();
    let (register, condition) = (register.clone(), (**condition).clone());
    Some(Update { register, condition, value: Expr::Op(*op, *t, value) })
}

/// Whether an operation with this value leaves the other operand as it is.
pub fn is_neutral(op: ScalarOp, z: Lit, relaxed: bool) -> bool {
    match (op, z.ty.is_float()) {
        (ScalarOp::Add | ScalarOp::BitOr | ScalarOp::BitXor, false) => z.as_int() == Some(0),
        (ScalarOp::BitAnd, false) => z == Lit::int(z.ty, -1),
        (ScalarOp::Add, true) => relaxed && z.as_float() == Some(0.0),
        (ScalarOp::Min, true) => z.as_float() == Some(f64::INFINITY),
        (ScalarOp::Max, true) => z.as_float() == Some(f64::NEG_INFINITY),
        _ => false,
    }
}

/// Returns the registers that expressions mention.
fn registers<'a>(es: impl Iterator<Item = &'a Expr>) -> BTreeSet<u32> {
    let mut out = BTreeSet::new();
    es.for_each(|e| {
        e.visit(&mut |e| {
            if let Expr::Reg(r) = e {
                out.insert(r.id);
            }
        });
    });
    out
}
