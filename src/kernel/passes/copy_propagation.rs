//! Copy propagation, and declarations at the first assignment.
//!
//! Declarations move to the first assignment of their register in the same block. Copies of
//! registers that never change are replaced by the original.

use crate::kernel::ir::{Block, Expr, Kernel, Reg, Stmt};
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
            changed.extend(s.assigned().map(|r| r.id));
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
            match s {
                Stmt::Decl(r, _) => note(r),
                s => s.assigned().into_iter().for_each(&mut note),
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
    if let Some(r) = s.assigned_mut()
        && let Some(a) = same.get(&r.id)
    {
        *r = a.clone();
    }
    s.blocks_mut().into_iter().flatten().for_each(|s| rename(s, same));
}

fn mentions(s: &Stmt, r: &Reg) -> bool {
    let mut found = false;
    s.visit(&mut |s| {
        found |= s.assigned().is_some_and(|x| x.id == r.id);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calculus::scalar::Lit;
    use crate::kernel::ir::testing::reg;
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
}
