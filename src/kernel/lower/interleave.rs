//! Interleaves unrolled code: independent copies of a loop body run side by side.
//!
//! Loops at the same place of all copies become one loop, if they count alike (unroll and jam). So a
//! work-item that computes several results, each a reduction, goes through the elements once for
//! all of them, and what the reductions read in common is loaded once.

use crate::kernel::ir::index::Index;
use crate::kernel::ir::walk::with_var;
use crate::kernel::ir::{Block, Expr, LoopKind, Mem, Reg, Stmt};
use std::collections::{BTreeMap, BTreeSet};

/// Joins the copies of an unrolled body to one block. Independent copies are interleaved statement
/// by statement, because a processor looks ahead only so far and finds no parallelism in one long
/// chain of operations. Other copies follow one after the other.
pub fn side_by_side(copies: Vec<Block>) -> Block {
    let length = copies.first().map_or(0, Vec::len);
    let single = length == 1 && !matches!(copies[0][0], Stmt::Loop { .. });
    if length == 0 || single || copies.iter().any(|c| c.len() != length) || !independent(&copies) {
        return copies.concat();
    }
    let mut copies: Vec<_> = copies.into_iter().map(Vec::into_iter).collect();
    (0..length)
        .flat_map(|_| jammed(copies.iter_mut().filter_map(Iterator::next).collect()))
        .collect()
}

/// Makes one loop of the loops of independent copies, if all count alike and none stores: stores of
/// different copies to one element would change their order.
fn jammed(copies: Vec<Stmt>) -> Vec<Stmt> {
    let Some(Stmt::Loop { kind: LoopKind::Seq, var, lo, hi, .. }) = copies.first() else {
        return copies;
    };
    let (var, lo, hi) = (var.clone(), lo.clone(), hi.clone());
    let alike = |s: &Stmt| match s {
        Stmt::Loop { kind: LoopKind::Seq, lo: l, hi: h, .. } => (l, h) == (&lo, &hi),
        _ => false,
    };
    if !copies.iter().all(|s| alike(s) && !stores(s)) {
        return copies;
    }
    let mut bodies = vec![];
    for s in copies {
        let Stmt::Loop { var: own, mut body, .. } = s else { continue };
        if own.id != var.id {
            with_var(&mut body, own.id, &Index::from(var.clone()));
        }
        bodies.push(body);
    }
    vec![Stmt::Loop { kind: LoopKind::Seq, var, lo, hi, body: side_by_side(bodies) }]
}

fn stores(s: &Stmt) -> bool {
    let mut found = false;
    s.visit(&mut |s| found |= matches!(s, Stmt::Store(..) | Stmt::Atomic(..)));
    found
}

/// Whether no copy reads what another one writes, and none stores to a memory in two places. Stores
/// to the same element then keep their order.
fn independent(copies: &[Block]) -> bool {
    let (mut loaded, mut stored) = (BTreeSet::new(), BTreeMap::<Mem, BTreeSet<usize>>::new());
    let (mut read, mut written) = (BTreeMap::new(), BTreeMap::new());
    let mut fine = true;
    for (k, copy) in copies.iter().enumerate() {
        // Records the user of a register: `Some` if it is this copy alone.
        let alone = |users: &mut BTreeMap<u32, Option<usize>>, r: &Reg| {
            let user = users.entry(r.id).or_insert(Some(k));
            *user = user.filter(|u| *u == k);
        };
        for (at, s) in copy.iter().enumerate() {
            s.visit(&mut |s| {
                match s {
                    Stmt::Set(r, _) | Stmt::Decl(r, _) => alone(&mut written, r),
                    Stmt::Store(m, ..) | Stmt::Atomic(_, m, ..) => {
                        stored.entry(*m).or_default().insert(at);
                        s.assigned().into_iter().for_each(|r| alone(&mut written, r));
                    }
                    Stmt::Barrier { .. } => fine = false,
                    _ => {}
                }
                s.exprs(&mut |e| {
                    e.visit(&mut |e| match e {
                        Expr::Reg(r) => alone(&mut read, r),
                        Expr::Load(m, ..) => {
                            loaded.insert(*m);
                        }
                        _ => {}
                    });
                });
            });
        }
    }
    fine && written.iter().all(|(r, by)| by.is_some() && read.get(r).is_none_or(|user| user == by))
        && stored.iter().all(|(m, places)| places.len() == 1 && !loaded.contains(m))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::ir::index::Var;
    use crate::kernel::ir::testing::reg;
    use crate::kernel::ir::{ElemTy, Scope};
    use crate::lang::typed::ScalarOp;
    use crate::lang::types::ScalarType::F32;

    fn load(from: usize, at: i64) -> Expr {
        Expr::Load(Mem::Global(from), ElemTy::scalar(F32), Index::from(at))
    }

    /// `t = from[k]; into[k] = t`
    fn copy(k: u32, from: usize, into: usize) -> Block {
        let at = i64::from(k);
        let declared = Stmt::Decl(reg(k), Some(load(from, at)));
        vec![declared, Stmt::Store(Mem::Global(into), Index::from(at), Expr::Reg(reg(k)))]
    }

    fn order(copies: &[Block]) -> Vec<(usize, usize)> {
        let all = side_by_side(copies.to_vec());
        let place = |s: &Stmt| {
            let mut found = copies.iter().enumerate().flat_map(|(k, c)| {
                c.iter().enumerate().filter(|(_, x)| *x == s).map(move |(at, _)| (k, at))
            });
            found.next().expect("a statement of a copy")
        };
        all.iter().map(place).collect()
    }

    #[test]
    fn loops_that_count_alike_become_one() {
        let repeat = |k: u32, hi: i64, body: Block| {
            let var = Var { id: 20 + k, name: format!("i{k}").into(), lo: 0, hi: hi - 1 };
            let (lo, hi) = (Index::from(0), Index::from(hi));
            Stmt::Loop { kind: LoopKind::Seq, var, lo, hi, body }
        };
        let counter =
            |k: u32| Index::from(Var { id: 20 + k, name: format!("i{k}").into(), lo: 0, hi: 3 });
        // `t = 0; for i { t = t + from[i + k] }`
        let step = |k: u32, at: &Index| {
            let x = Expr::Load(Mem::Global(0), ElemTy::scalar(F32), at.plus(i64::from(k)));
            let sum = vec![Expr::Reg(reg(k)), x];
            Stmt::Set(reg(k), Expr::Op(ScalarOp::Add, ElemTy::scalar(F32), sum))
        };
        let start = |k: u32| Stmt::Decl(reg(k), Some(load(1, 0)));
        let sum = |k: u32, hi| vec![start(k), repeat(k, hi, vec![step(k, &counter(k))])];
        let both = vec![step(1, &counter(1)), step(2, &counter(1))];
        let one = vec![start(1), start(2), repeat(1, 4, both)];
        assert_eq!(side_by_side(vec![sum(1, 4), sum(2, 4)]), one);
        // Different counts.
        let apart = [start(1), start(2), sum(1, 4).remove(1), sum(2, 5).remove(1)];
        assert_eq!(side_by_side(vec![sum(1, 4), sum(2, 5)]), apart);
        // Loops that store keep their order, so that the last value of an element is the same.
        let fill =
            |k: u32| vec![repeat(k, 4, vec![Stmt::Store(Mem::Global(1), counter(k), load(0, 0))])];
        assert_eq!(side_by_side(vec![fill(1), fill(2)]), [fill(1), fill(2)].concat());
    }

    #[test]
    fn independent_copies_run_side_by_side() {
        let sideways = [(0, 0), (1, 0), (0, 1), (1, 1)];
        let in_turn = [(0, 0), (0, 1), (1, 0), (1, 1)];
        assert_eq!(order(&[copy(1, 0, 1), copy(2, 0, 1)]), sideways);
        // The result of one copy is the argument of the other.
        assert_eq!(order(&[copy(1, 0, 1), copy(2, 1, 1)]), in_turn);
        // Both copies update the same accumulator.
        let add = |k: u32| {
            let sum = vec![Expr::Reg(reg(9)), Expr::Reg(reg(k))];
            let sum = Expr::Op(ScalarOp::Add, ElemTy::scalar(F32), sum);
            vec![Stmt::Decl(reg(k), Some(load(0, i64::from(k)))), Stmt::Set(reg(9), sum)]
        };
        assert_eq!(order(&[add(1), add(2)]), in_turn);
        // Each copy has an accumulator of its own.
        let own = |k: u32| {
            let mut block = add(k);
            block.iter_mut().for_each(|s| {
                s.map_regs(&|r| if r.id == 9 { reg(10 + k) } else { r.clone() });
                if let Stmt::Set(r, _) = s {
                    *r = reg(10 + k);
                }
            });
            block
        };
        assert_eq!(order(&[own(1), own(2)]), sideways);
        // Stores to one memory in two places keep their order.
        let twice = |k: u32| [copy(k, 0, 1), copy(k + 4, 0, 1)].concat();
        let four = |k: usize| (0..4).map(move |at| (k, at));
        assert_eq!(order(&[twice(1), twice(2)]), four(0).chain(four(1)).collect::<Vec<_>>());
        // Copies with barriers, or of different lengths, stay in order.
        let fence = vec![Stmt::Barrier { scope: Scope::Group, local: true, global: false }];
        let fenced = |k| [copy(k, 0, 1), fence.clone()].concat();
        assert_eq!(side_by_side(vec![fenced(1), fenced(2)]), [fenced(1), fenced(2)].concat());
        assert_eq!(side_by_side(vec![copy(1, 0, 1), twice(2)]), [copy(1, 0, 1), twice(2)].concat());
    }
}
