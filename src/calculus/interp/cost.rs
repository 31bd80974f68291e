//! Estimates how much work code is, to decide how much of a result to compute, and which maps to share out.

use super::code::{Cells, Code, Fold, Loop, Until, Values};
use super::pick::lengths;

/// Number of steps assumed for a loop whose length depends on data.
const STEPS: f64 = 64.0;

/// Returns the number of scalar operations and of rows of maps, folds and the like that the code computes.
pub fn operations(v: &Values) -> f64 {
    let count = |n: usize| n as f64;
    match v {
        Values::Given(_) | Values::Slot(..) => 0.0,
        Values::Part(v, _) | Values::View(_, v, _) => operations(v),
        Values::Tuple(vs) => vs.iter().map(operations).sum(),
        Values::Pack(e, ..) => of_cells(e),
        Values::If(b) => of_cells(&b.0) + operations(&b.1).max(operations(&b.2)),
        Values::Let(b) => of_code(&b.1) + operations(&b.2),
        Values::Loop(l) => looped(l),
        Values::Fold(f) => folded(f),
        Values::Pick(x, _) => operations(x) + lengths(v).into_iter().map(count).product::<f64>(),
        Values::Concat(b, _) | Values::PadWith(b, ..) | Values::Gather(b, _) => {
            operations(&b.0) + operations(&b.1) + lengths(v).into_iter().map(count).product::<f64>()
        }
        Values::Row(b, ..) => operations(&b.0) + of_cells(&b.1),
        Values::Scatter(b, _) => operations(&b.0) + operations(&b.1) + operations(&b.2),
        Values::CountingSort(_, _, b, _) => {
            let n = lengths(&b.1).first().copied().unwrap_or(1);
            operations(&b.0) + operations(&b.1) + count(n)
        }
        Values::Iota(n, _) => count(*n),
        Values::Map(m) => operations(&m.xs) + count(m.n) * (1.0 + of_code(&m.body)),
        Values::Scan(s) => folded(&s.fold),
        Values::Histogram(h) => {
            let n = lengths(&h.vs).first().copied().unwrap_or(1);
            operations(&h.is) + operations(&h.vs) + count(n) * (1.0 + of_code(&h.op.body))
        }
    }
}

fn folded(f: &Fold) -> f64 {
    let times = if f.drift.is_some() { 2.0 } else { 1.0 };
    operations(&f.xs) + of_code(&f.op.init) + times * f.n as f64 * (1.0 + of_code(&f.op.body))
}

fn looped(l: &Loop) -> f64 {
    let (times, until) = match &l.until {
        Until::Bound(_, Cells::Const(c), ty) => (c.as_wide(*ty).max(0) as f64, 0.0),
        Until::Bound(_, bound, _) => (STEPS, of_cells(bound)),
        Until::Not(cond) => (STEPS, STEPS * of_cells(cond)),
    };
    of_code(&l.init) + until + times * (1.0 + of_code(&l.body))
}

/// As [`operations`], for code of either kind.
pub fn of_code(c: &Code) -> f64 {
    match c {
        Code::Cells(e) => of_cells(e),
        Code::Value(v) => operations(v),
    }
}

fn of_cells(e: &Cells) -> f64 {
    match e {
        Cells::Const(_) | Cells::Reg(_) => 0.0,
        Cells::Op(op) => 1.0 + op.args.iter().map(of_cells).sum::<f64>(),
        Cells::Tuple(es) => es.iter().map(|(e, _)| of_cells(e)).sum(),
        Cells::If(b) => of_cells(&b.0) + of_cells(&b.1).max(of_cells(&b.2)),
        Cells::Let(b) => of_code(&b.1) + of_cells(&b.2),
        Cells::Loop(l) => looped(l),
        Cells::Fold(f) => folded(f),
        Cells::Index(i) => {
            1.0 + operations(&i.array) + i.at.iter().map(|(e, _)| of_cells(e)).sum::<f64>()
        }
        Cells::Unpack(v) => operations(v),
    }
}
