//! Declarations move to the first assignment of their register in the same block; copies of
//! registers that never change are those registers.

use super::ir::{Block, Expr, Kernel, Reg, Stmt};
use std::collections::{BTreeMap, BTreeSet};

/// Tidies a kernel.
pub fn registers(k: &mut Kernel) {
    declarations(&mut k.body);
    let mut changed = BTreeSet::new();
    for s in &k.body {
        s.visit(&mut |s| {
            if let Stmt::Set(r, _) = s {
                changed.insert(r.id);
            }
        });
    }
    copies(&mut k.body, &changed, &mut BTreeMap::new());
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

/// `same` says what the copies seen so far are copies of. A register may be declared once for
/// each part of a loop that was split: the last declaration counts.
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
