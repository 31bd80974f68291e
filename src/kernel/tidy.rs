//! Tidies registers and interleaves unrolled code.
//!
//! Declarations move to the first assignment of their register in the same block. Copies of
//! registers that never change are replaced by the original. Independent copies of an unrolled body
//! run side by side.

use super::ir::{Block, Expr, Kernel, Mem, Reg, Stmt};
use std::collections::{BTreeMap, BTreeSet};

/// Tidies a kernel.
pub fn registers(k: &mut Kernel) {
    declarations(&mut k.body);
    copies_of_registers(k);
}

/// Replaces registers that are copies of others, if neither changes, by the originals.
pub fn copies_of_registers(k: &mut Kernel) {
    let mut changed = BTreeSet::new();
    for s in &k.body {
        s.visit(&mut |s| {
            if let Stmt::Set(r, _) = s {
                changed.insert(r.id);
            }
        });
    }
    copies(&mut k.body, &changed, &mut BTreeMap::new());
    borrowed(&mut k.body);
}

/// Removes borrowing: a register that takes the value of another one, is updated, and is copied
/// back is replaced by the other one. No statement in between may mention the other register, and
/// no statement afterwards the borrowing one.
fn borrowed(b: &mut Block) {
    b.iter_mut().flat_map(Stmt::blocks_mut).for_each(borrowed);
    // The statements of this block that mention each register, directly or in nested blocks.
    let mut places: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (at, s) in b.iter().enumerate() {
        let mut note = |r: &Reg| {
            let list = places.entry(r.id).or_default();
            if list.last() != Some(&at) {
                list.push(at);
            }
        };
        s.visit(&mut |s| {
            if let Stmt::Decl(r, _) | Stmt::Set(r, _) = s {
                note(r);
            }
            s.exprs(&mut |e| {
                e.visit(&mut |e| {
                    if let Expr::Reg(r) = e {
                        note(r);
                    }
                });
            });
        });
    }
    let mut same: BTreeMap<u32, Reg> = BTreeMap::new();
    let mut gone: BTreeSet<usize> = BTreeSet::new();
    for (at, s) in b.iter().enumerate() {
        let Stmt::Decl(t, Some(Expr::Reg(a))) = s else { continue };
        let (Some(mine), Some(other)) = (places.get(&t.id), places.get(&a.id)) else { continue };
        let Some(last) = mine.last().copied().filter(|last| *last > at && mine[0] == at) else {
            continue;
        };
        let back = matches!(&b[last], Stmt::Set(r, Expr::Reg(x)) if r.id == a.id && x.id == t.id);
        if back && !other.iter().any(|k| at < *k && *k < last) {
            // The original may itself be borrowed from a third register.
            let a = same.get(&a.id).unwrap_or(a).clone();
            same.insert(t.id, a);
            gone.extend([at, last]);
        }
    }
    if same.is_empty() {
        return;
    }
    let mut at = 0;
    b.retain_mut(|s| {
        at += 1;
        rename(s, &same);
        !gone.contains(&(at - 1))
    });
}

/// Renames registers, including those that are assigned.
fn rename(s: &mut Stmt, same: &BTreeMap<u32, Reg>) {
    s.map_regs(&|r| same.get(&r.id).unwrap_or(r).clone());
    if let Stmt::Set(r, _) = s
        && let Some(a) = same.get(&r.id)
    {
        *r = a.clone();
    }
    s.blocks_mut().into_iter().flatten().for_each(|s| rename(s, same));
}

fn mentions(s: &Stmt, r: &Reg) -> bool {
    let mut found = false;
    s.visit(&mut |s| {
        found |= matches!(s, Stmt::Set(x, _) if x.id == r.id);
        s.exprs(&mut |e| e.visit(&mut |e| found |= matches!(e, Expr::Reg(x) if x.id == r.id)));
    });
    found
}

fn declarations(b: &mut Block) {
    b.iter_mut().flat_map(Stmt::blocks_mut).for_each(declarations);
    for at in (0..b.len()).rev() {
        let Stmt::Decl(r, None) = &b[at] else {
            continue;
        };
        let r = r.clone();
        let Some(first) = (at + 1..b.len()).find(|k| mentions(&b[*k], &r)) else {
            continue;
        };
        let Stmt::Set(x, e) = &b[first] else { continue };
        let mut reads_itself = false;
        e.visit(&mut |e| reads_itself |= matches!(e, Expr::Reg(y) if y.id == r.id));
        if x.id == r.id && !reads_itself {
            b[first] = Stmt::Decl(r, Some(e.clone()));
            b.remove(at);
        }
    }
}

/// Replaces copies; `same` maps the copies seen so far to their originals. A register may be
/// declared once for each part of a split loop, and the last declaration counts.
fn copies(b: &mut Block, changed: &BTreeSet<u32>, same: &mut BTreeMap<u32, Reg>) {
    b.retain_mut(|s| {
        s.map_regs(&|r| same.get(&r.id).unwrap_or(r).clone());
        match s {
            Stmt::Decl(r, Some(Expr::Reg(x)))
                if !changed.contains(&r.id) && !changed.contains(&x.id) =>
            {
                same.insert(r.id, x.clone());
                return false;
            }
            Stmt::Decl(r, _) => {
                same.remove(&r.id);
            }
            _ => {}
        }
        s.blocks_mut().into_iter().for_each(|b| copies(b, changed, same));
        true
    });
}

/// Joins the copies of an unrolled body to one block. Independent copies are interleaved statement
/// by statement, because a processor looks ahead only so far and finds no parallelism in one long
/// chain of operations. Other copies follow one after the other.
pub fn side_by_side(copies: Vec<Block>) -> Block {
    let length = copies.first().map_or(0, Vec::len);
    if length < 2 || copies.iter().any(|c| c.len() != length) || !independent(&copies) {
        return copies.concat();
    }
    let mut copies: Vec<_> = copies.into_iter().map(Vec::into_iter).collect();
    (0..length)
        .flat_map(|_| copies.iter_mut().filter_map(Iterator::next).collect::<Vec<_>>())
        .collect()
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
                    Stmt::Store(m, ..) => {
                        stored.entry(*m).or_default().insert(at);
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
    use super::super::index::Index;
    use super::super::ir::{ElemTy, Scope};
    use super::*;
    use crate::calculus::scalar::Lit;
    use crate::lang::typed::ScalarOp;
    use crate::lang::types::ScalarType::F32;

    #[test]
    fn what_is_borrowed_may_be_borrowed() {
        let r = |id: u32| Expr::Reg(reg(id));
        let mut b = vec![
            Stmt::Decl(reg(1), Some(r(0))),
            Stmt::Decl(reg(2), Some(r(1))),
            Stmt::Set(reg(2), Expr::Lit(Lit::float(F32, 4.0))),
            Stmt::Set(reg(1), r(2)),
            Stmt::Set(reg(0), r(1)),
        ];
        borrowed(&mut b);
        assert_eq!(b, [Stmt::Set(reg(0), Expr::Lit(Lit::float(F32, 4.0)))]);
    }

    fn reg(id: u32) -> Reg {
        Reg { id, name: format!("t{id}").into(), ty: ElemTy::scalar(F32) }
    }

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
