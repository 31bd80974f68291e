//! Unrolls loops in which each work-item goes through a row of its own.
//!
//! The work-items of a sub-group then access places that lie far apart, and each access moves a whole sector of memory for
//! one scalar. Several steps written out access neighbours, which become a vector (`wide_accesses.rs`). The order of
//! operations stays.

use super::overlap::{STATEMENTS, written_out};
use crate::kernel::ir::index::{Index, Var};
use crate::kernel::ir::walk::Fresh;
use crate::kernel::ir::{Block, Expr, Kernel, LoopKind, Mem, Stmt};
use crate::lang::types::ScalarType;

/// Bytes that memory moves at once.
const SECTOR: i64 = 32;

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
        match item.and_then(|item| steps(&s, bytes, item)) {
            Some((steps, var, range, body)) => {
                let body = held(body, fresh);
                let rest = written_out(&var, range, steps, body, fresh, &mut out);
                out.extend(rest);
            }
            None => out.push(s),
        }
    }
    *b = out;
}

/// Returns how many steps of a loop access neighbours in the work-item's row, with the parts of the loop.
fn steps(s: &Stmt, bytes: usize, item: u32) -> Option<(i64, Var, (i64, i64), Block)> {
    let Stmt::Loop { kind: LoopKind::Seq, var, lo, hi, body } = s else { return None };
    let (first, end) = (lo.as_constant()?, hi.as_constant()?);
    let simple = |s: &Stmt| matches!(s, Stmt::Decl(_, Some(_)) | Stmt::Set(..) | Stmt::Store(..));
    if !body.iter().all(simple) || !body.iter().any(|s| matches!(s, Stmt::Set(..))) {
        return None;
    }
    let mut widest = 1;
    let mut access = |m: &Mem, t: ScalarType, i: &Index| {
        let Some((1, row)) = i.linear_in(var.id).filter(|_| matches!(m, Mem::Global(_))) else {
            return;
        };
        if i.has_data() || row.linear_in(item).is_none_or(|(c, _)| c == 0) {
            return;
        }
        let most = i64::try_from((bytes / t.bytes().max(1)).min(16)).unwrap_or(1);
        let fits =
            |w: &i64| *w <= most && *w <= end - first && first % w == 0 && row.is_multiple_of(*w);
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
    let copies = usize::try_from(widest).unwrap_or(usize::MAX);
    let fine = widest > 1 && body.len().saturating_mul(copies) <= STATEMENTS;
    fine.then(|| (widest, var.clone(), (first, end), body.clone()))
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

    /// Returns the number of rounds and the number of stores in a round.
    fn shape(mut b: Vec<Stmt>, bytes: usize) -> (i64, usize) {
        let mut fresh = Fresh { next: 100, first: 0, reserved: BTreeSet::new() };
        block(&mut b, bytes, None, &mut fresh);
        let Stmt::Loop { body, .. } = &b[0] else { unreachable!() };
        let [Stmt::Loop { hi, body, .. }] = body.as_slice() else { unreachable!() };
        let stores = body.iter().filter(|s| matches!(s, Stmt::Store(..))).count();
        (hi.constant(), stores)
    }

    #[test]
    fn rows_are_accessed_by_sectors() {
        assert_eq!(shape(rows(F32, 64, 1), 16), (8, 8));
        assert_eq!(shape(rows(U8, 64, 1), 16), (2, 32));
        // Vectors of such rows would not be aligned.
        assert_eq!(shape(rows(F32, 65, 1), 16), (64, 1));
        assert_eq!(shape(rows(F32, 66, 1), 16), (8, 8));
        // Neighbouring work-items access neighbours already.
        assert_eq!(shape(rows(F32, 1, 8), 16), (64, 1));
        assert_eq!(shape(rows(F32, 0, 1), 16), (64, 1));
    }
}
