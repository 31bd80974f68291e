//! Keeps loaded values in registers across the stages of a work-group.
//!
//! A row that a group goes through several times is divided among its work-items in the same way
//! each time. A load yields the same value in all stages if the kernel does not change the memory,
//! and if every part of its index is known outside the stages.

use crate::kernel::ir::index::Index;
use crate::kernel::ir::walk::{Effects, Fresh, parts, rebuild_all, rebuilt};
use crate::kernel::ir::{Block, Expr, Kernel, LoopKind, Mem, Reg, Stmt};
use indexmap::IndexMap;
use rustc_hash::{FxHashMap, FxHashSet};

/// Maximum number of scalars that a work-item keeps for later stages.
const KEPT: usize = 64;

/// Keeps values that later stages would load again.
pub fn across_stages(k: &mut Kernel, fresh: &mut Fresh) {
    let written = Effects::of(&k.body).stored;
    block(&mut k.body, &written, &mut FxHashSet::default(), fresh);
}

/// A stage: the counter and the bounds of a loop over work-items. Stages with equal keys run on the
/// same work-items.
type Stage = (u32, Index, Index);

fn stage(s: &Stmt) -> Option<Stage> {
    match s {
        Stmt::Loop { kind: LoopKind::Lcl(_), var, lo, hi, .. } => {
            Some((var.id, lo.clone(), hi.clone()))
        }
        _ => None,
    }
}

/// Processes a block; `known` are the counters of the loops around it.
fn block(b: &mut Block, written: &FxHashSet<Mem>, known: &mut FxHashSet<u32>, fresh: &mut Fresh) {
    for s in b.iter_mut() {
        if let Stmt::Loop { kind: LoopKind::Seq | LoopKind::Wrg(_), var, body, .. } = s {
            let new = known.insert(var.id);
            block(body, written, known, fresh);
            if new {
                known.remove(&var.id);
            }
        }
    }
    let mut stages: IndexMap<Stage, Vec<usize>> = IndexMap::new();
    for (at, s) in b.iter().enumerate() {
        if let Some(stage) = stage(s) {
            stages.entry(stage).or_default().push(at);
        }
    }
    let mut declared = vec![];
    for ((counter, ..), places) in stages {
        if places.len() < 2 {
            continue;
        }
        let mut wanted: IndexMap<Expr, Vec<usize>> = IndexMap::new();
        let outside = |id: u32| id == counter || known.contains(&id);
        for at in &places {
            for e in loads(&b[*at], written, &outside) {
                wanted.entry(e).or_default().push(*at);
            }
        }
        let mut room = KEPT;
        let mut keep: FxHashMap<Expr, (Reg, usize)> = FxHashMap::default();
        for (e, at) in wanted {
            let (first, again) = (at[0], at.iter().any(|a| *a != at[0]));
            let scalars = e.ty().width;
            if again && scalars <= room {
                room -= scalars;
                let r = fresh.reg(e.ty());
                declared.push((first, r.clone()));
                keep.insert(e, (r, first));
            }
        }
        if keep.is_empty() {
            continue;
        }
        for at in &places {
            let Stmt::Loop { body, .. } = &mut b[*at] else { continue };
            let mut held: FxHashSet<u32> = FxHashSet::default();
            let mut out = Vec::with_capacity(body.len());
            for mut s in body.drain(..) {
                let mut before = vec![];
                replace(&mut s, &mut |e| {
                    // A stage before may make the load in a branch alone.
                    let (r, first) = keep.get(e).filter(|(_, first)| first <= at)?;
                    if first == at && held.insert(r.id) {
                        before.push(Stmt::Set(r.clone(), e.clone()));
                    }
                    Some(Expr::Reg(r.clone()))
                });
                out.append(&mut before);
                out.push(s);
            }
            *body = out;
        }
    }
    declared.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    for (at, r) in declared {
        b.insert(at, Stmt::Decl(r, None));
    }
}

/// Returns the loads from unchanged memory that a stage makes unconditionally, once in each
/// work-item.
fn loads(s: &Stmt, written: &FxHashSet<Mem>, outside: &dyn Fn(u32) -> bool) -> Vec<Expr> {
    fn inside(e: &Expr, found: &mut dyn FnMut(&Expr)) {
        if matches!(e, Expr::Load(..)) {
            found(e);
        }
        parts(e, &mut |p, lazy| {
            if !lazy {
                inside(p, found);
            }
        });
    }
    let Stmt::Loop { body, .. } = s else { return vec![] };
    let mut out = vec![];
    let mut found = |e: &Expr| {
        if let Expr::Load(m @ Mem::Global(_), _, i) = e
            && !written.contains(m)
            && !i.has_data()
        {
            let mut fixed = true;
            i.visit_vars(&mut |v| fixed &= outside(v.id));
            if fixed && !out.contains(e) {
                out.push(e.clone());
            }
        }
    };
    for s in body {
        s.exprs(&mut |e| inside(e, &mut found));
    }
    out
}

/// Replaces loads in a statement and all statements inside it.
fn replace(s: &mut Stmt, f: &mut dyn FnMut(&Expr) -> Option<Expr>) {
    fn expr(e: &Expr, f: &mut dyn FnMut(&Expr) -> Option<Expr>) -> Expr {
        match f(e) {
            Some(other) => other,
            None => rebuilt(e, &mut |e, _| expr(e, f)),
        }
    }
    rebuild_all(std::slice::from_mut(s), &mut |e| expr(e, f));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::ir::ElemTy;
    use crate::kernel::ir::index::Var;
    use crate::kernel::ir::testing::kernel;
    use crate::lang::types::ScalarType;
    use std::collections::BTreeSet;

    #[test]
    fn a_stage_before_the_first_load_loads_itself() {
        let var = Var { id: 0, name: "l0".into(), lo: 0, hi: 31 };
        let at = Index::from(var.clone());
        let load = Expr::Load(Mem::Global(0), ElemTy::scalar(ScalarType::F32), at.clone());
        let store = |tile| Stmt::Store(Mem::Local(tile), at.clone(), load.clone());
        let stage = |body| Stmt::Loop {
            kind: LoopKind::Lcl(0),
            var: var.clone(),
            lo: Index::from(0),
            hi: Index::from(32),
            body,
        };
        let flag = Expr::Reg(Reg { id: 9, name: "c".into(), ty: ElemTy::scalar(ScalarType::Bool) });
        let branch = Stmt::Branch(flag, vec![store(0)], vec![store(0)]);
        let body = vec![stage(vec![branch.clone()]), stage(vec![store(1)]), stage(vec![store(2)])];
        let mut k = Kernel { global: [32, 1, 1], group: [32, 1, 1], ..kernel(body) };
        let mut fresh = Fresh::after(&k, &BTreeSet::new());
        across_stages(&mut k, &mut fresh);
        // The first stage is as it was; the second one keeps the value for the third.
        assert_eq!(k.body[0], stage(vec![branch]));
        assert!(matches!(k.body[1], Stmt::Decl(..)));
        let Stmt::Loop { body, .. } = &k.body[3] else { panic!("the third stage") };
        assert!(matches!(&body[..], [Stmt::Store(_, _, Expr::Reg(_))]));
    }
}
