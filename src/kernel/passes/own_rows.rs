//! Writes out several steps of loops whose steps need what the step before computed, so that the steps wait for memory together.
//!
//! If each work-item goes through a row of its own, the work-items of a sub-group access places that lie far apart, and each
//! access moves a whole sector of memory for one scalar. Several steps access neighbours, which become a vector
//! (`wide_accesses.rs`). If each step stores, too, compilers do not move the loads of the next steps in front of the store, so that
//! each step waits for its own loads. The loads of all steps that are written out come first. The order of operations stays.

use super::overlap::{STATEMENTS, written_out};
use crate::kernel::ir::index::{Index, Var};
use crate::kernel::ir::walk::{Effects, Fresh, parts, rebuild, rebuilt};
use crate::kernel::ir::{Block, Expr, Kernel, LoopKind, Mem, Reg, Stmt};
use crate::lang::types::ScalarType;

/// Bytes that memory moves at once.
const SECTOR: i64 = 32;

/// Steps whose loads are made together, where the loads cannot be vectors.
const AHEAD: i64 = 8;

/// Most loads of such steps: each has a register.
const LOADS: usize = 64;

/// Unrolls the loops of a kernel so far that accesses of rows are at most `bytes` wide.
pub fn unroll(k: &mut Kernel, bytes: usize, fresh: &mut Fresh) {
    if bytes > 0 {
        block(&mut k.body, bytes, None, fresh);
    }
}

/// `item` is the variable that numbers neighbouring work-items.
fn block(b: &mut Block, bytes: usize, item: Option<u32>, fresh: &mut Fresh) {
    let mut out = Vec::with_capacity(b.len());
    for mut s in b.drain(..) {
        let item = match &s {
            Stmt::Loop { kind: LoopKind::Glb(0) | LoopKind::Lcl(0), var, .. } => Some(var.id),
            _ => item,
        };
        s.blocks_mut().into_iter().for_each(|b| block(b, bytes, item, fresh));
        match item.and_then(|item| Rounds::of(&s, bytes, item)) {
            Some(Rounds { steps, var, range, body, ahead }) => {
                let body = named(held(body, fresh), &ahead, fresh);
                let mut round = vec![];
                let rest = written_out(&var, range, steps, body, fresh, &mut round);
                match &mut round[..] {
                    [Stmt::Loop { body, .. }] => first(body, &ahead),
                    _ => first(&mut round, &ahead),
                }
                out.append(&mut round);
                out.extend(rest);
            }
            None => out.push(s),
        }
    }
    *b = out;
}

/// A loop of which several steps are written out.
struct Rounds {
    /// As many as access neighbours in the work-item's row, or so many that their loads hide each other's latency.
    steps: i64,
    var: Var,
    range: (i64, i64),
    body: Block,
    /// The loads of a step that come before all steps, if steps store.
    ahead: Vec<Expr>,
}

impl Rounds {
    fn of(s: &Stmt, bytes: usize, item: u32) -> Option<Rounds> {
        let Stmt::Loop { kind: LoopKind::Seq, var, lo, hi, body } = s else { return None };
        let (first, end) = (lo.as_constant()?, hi.as_constant()?);
        let simple =
            |s: &Stmt| matches!(s, Stmt::Decl(_, Some(_)) | Stmt::Set(..) | Stmt::Store(..));
        if !body.iter().all(simple) || !body.iter().any(|s| matches!(s, Stmt::Set(..))) {
            return None;
        }
        let mut widest = 1;
        let mut access = |m: &Mem, t: ScalarType, i: &Index| {
            let Some((step @ (1 | -1), row)) =
                i.linear_in(var.id).filter(|_| matches!(m, Mem::Global(_)))
            else {
                return;
            };
            if i.has_data() || row.linear_in(item).is_none_or(|(c, _)| c == 0) {
                return;
            }
            // Backwards, the last step accesses the first place.
            let row = if step == 1 { row } else { row.plus(1) };
            let most = i64::try_from((bytes / t.bytes().max(1)).min(16)).unwrap_or(1);
            let fits = |w: &i64| {
                *w <= most && *w <= end - first && first % w == 0 && row.is_multiple_of(*w)
            };
            let width: i64 = [16, 8, 4, 2].into_iter().find(fits).unwrap_or(1);
            // A sector that is read in several steps may leave the cache in between.
            let vectors = SECTOR / i64::try_from(t.bytes()).unwrap_or(SECTOR) / width;
            let whole = width * vectors.max(1);
            if width > 1 {
                widest = widest.max(if whole <= end - first { whole } else { width });
            }
        };
        for s in body {
            if let Stmt::Store(m, i, e) = s
                && e.ty().width == 1
            {
                access(m, e.ty().scalar, i);
            }
            s.exprs(&mut |e| {
                e.visit(&mut |e| {
                    if let Expr::Load(m, t, i) = e
                        && t.width == 1
                    {
                        access(m, t.scalar, i);
                    }
                });
            });
        }
        let stores = |s: &Stmt| matches!(s, Stmt::Store(Mem::Global(_) | Mem::Local(_), ..));
        let mut ahead = if body.iter().any(stores) { loads(body) } else { vec![] };
        let copies = |steps: i64| usize::try_from(steps).unwrap_or(usize::MAX);
        let fits = (1..=LOADS / copies(AHEAD)).contains(&ahead.len()) && end - first >= 2 * AHEAD;
        let steps = if widest == 1 && fits { AHEAD } else { widest };
        ahead.truncate(LOADS / copies(steps));
        let fine = steps > 1 && body.len().saturating_mul(copies(steps)) <= STATEMENTS;
        fine.then(|| Rounds {
            steps,
            var: var.clone(),
            range: (first, end),
            body: body.clone(),
            ahead,
        })
    }
}

/// Returns the loads from global memory that every step makes, at places that do not depend on data, if no step stores there.
fn loads(body: &Block) -> Vec<Expr> {
    fn of(e: &Expr, stored: &Effects, found: &mut Vec<Expr>) {
        if let Expr::Load(m @ Mem::Global(_), t, i) = e
            && t.width == 1
            && !i.has_data()
            && !stored.stored.contains(m)
            && !found.contains(e)
        {
            found.push(e.clone());
        }
        parts(e, &mut |e, lazy| {
            if !lazy {
                of(e, stored, found);
            }
        });
    }
    let (stored, mut found) = (Effects::of(body), vec![]);
    body.iter().for_each(|s| s.exprs(&mut |e| of(e, &stored, &mut found)));
    found
}

/// Gives each of these loads a register, at the beginning of the body.
fn named(mut body: Block, loads: &[Expr], fresh: &mut Fresh) -> Block {
    let names: Vec<(&Expr, Reg)> = loads.iter().map(|e| (e, fresh.reg(e.ty()))).collect();
    for s in &mut body {
        rebuild(s, &mut |e| in_registers(e, &names));
    }
    names.into_iter().map(|(e, r)| Stmt::Decl(r, Some(e.clone()))).chain(body).collect()
}

fn in_registers(e: &Expr, names: &[(&Expr, Reg)]) -> Expr {
    match names.iter().find(|(load, _)| *load == e) {
        Some((_, r)) => Expr::Reg(r.clone()),
        None => rebuilt(e, &mut |e, _| in_registers(e, names)),
    }
}

/// Moves the loads of the steps in front of the first step. `loads` are those of one step.
fn first(body: &mut Block, loads: &[Expr]) {
    let memory = |e: &Expr| if let Expr::Load(m, ..) = e { Some(*m) } else { None };
    let memories: Vec<Mem> = loads.iter().filter_map(memory).collect();
    let is_load = |s: &Stmt| matches!(s, Stmt::Decl(_, Some(Expr::Load(m, _, i))) if memories.contains(m) && !i.has_data());
    let (mut all, rest): (Block, Block) = std::mem::take(body).into_iter().partition(is_load);
    all.extend(rest);
    *body = all;
}

/// Gives stored values registers of their own, since later steps change the registers that they come from.
fn held(body: Block, fresh: &mut Fresh) -> Block {
    let mut out = vec![];
    for s in body {
        match s {
            Stmt::Store(m, i, e) => {
                let r = fresh.reg(e.ty());
                out.push(Stmt::Decl(r.clone(), Some(e)));
                out.push(Stmt::Store(m, i, Expr::Reg(r)));
            }
            s => out.push(s),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::ir::{ElemTy, Reg};
    use crate::lang::typed::ScalarOp;
    use ScalarType::{F32, U8};
    use std::collections::BTreeSet;

    /// `for item < 8 { for i < 64 { t0 = t0 + a[row * item + each * i]; b[row * item + each * i] = t0 } }`
    fn rows(t: ScalarType, row: i64, each: i64) -> Vec<Stmt> {
        let ty = ElemTy { scalar: t, width: 1 };
        let acc = Reg { id: 0, name: "t0".into(), ty };
        let var = |id, n: i64| Var { id, name: format!("i{id}").into(), lo: 0, hi: n - 1 };
        let place = Index::from(var(1, 8)).times(row).add(&Index::from(var(2, 64)).times(each));
        // A row that is gone through backwards begins at its end.
        let place = if each < 0 { place.plus(63) } else { place };
        let load = Expr::Load(Mem::Global(0), ty, place.clone());
        let sum = Expr::Op(ScalarOp::Add, ty, vec![Expr::Reg(acc.clone()), load]);
        let body =
            vec![Stmt::Set(acc.clone(), sum), Stmt::Store(Mem::Global(1), place, Expr::Reg(acc))];
        let repeat = |kind, v: Var, n: i64, body| Stmt::Loop {
            kind,
            var: v,
            lo: Index::from(0),
            hi: Index::from(n),
            body,
        };
        let inner = repeat(LoopKind::Seq, var(2, 64), 64, body);
        vec![repeat(LoopKind::Glb(0), var(1, 8), 8, vec![inner])]
    }

    /// Returns the number of rounds and the number of stores in a round, whose loads come first.
    fn shape(mut b: Vec<Stmt>, bytes: usize) -> (i64, usize) {
        let mut fresh = Fresh { next: 100, first: 0, reserved: BTreeSet::new() };
        block(&mut b, bytes, None, &mut fresh);
        let Stmt::Loop { body, .. } = &b[0] else { unreachable!() };
        let [Stmt::Loop { hi, body, .. }] = body.as_slice() else { unreachable!() };
        let stores = body.iter().filter(|s| matches!(s, Stmt::Store(..))).count();
        let is_load = |s: &&Stmt| matches!(s, Stmt::Decl(_, Some(Expr::Load(..))));
        assert_eq!(body.iter().take_while(is_load).count(), stores, "{body:?}");
        (hi.constant(), stores)
    }

    #[test]
    fn rows_are_accessed_by_sectors() {
        assert_eq!(shape(rows(F32, 64, 1), 16), (8, 8));
        assert_eq!(shape(rows(U8, 64, 1), 16), (2, 32));
        assert_eq!(shape(rows(F32, 66, 1), 16), (8, 8));
        assert_eq!(shape(rows(U8, 64, -1), 16), (2, 32));
    }

    #[test]
    fn steps_that_store_load_together() {
        // Vectors of such rows would not be aligned.
        assert_eq!(shape(rows(U8, 65, 1), 16), (8, 8));
        // Neighbouring work-items access neighbours already.
        assert_eq!(shape(rows(U8, 1, 8), 16), (8, 8));
        assert_eq!(shape(rows(U8, 0, 1), 16), (8, 8));
    }

    #[test]
    fn steps_that_load_what_they_store_stay() {
        let mut b = rows(F32, 1, 8);
        let Stmt::Loop { body, .. } = &mut b[0] else { unreachable!() };
        let [Stmt::Loop { body, .. }] = body.as_mut_slice() else { unreachable!() };
        let Stmt::Store(m, ..) = &mut body[1] else { unreachable!() };
        *m = Mem::Global(0);
        let mut fresh = Fresh { next: 100, first: 0, reserved: BTreeSet::new() };
        let before = b.clone();
        block(&mut b, 16, None, &mut fresh);
        assert_eq!(b, before);
    }
}
