//! Operations on indices whose results are indices, with known ranges.

use crate::calculus::scalar::Lit;
use crate::kernel::ir::Expr;
use crate::kernel::ir::facts::Facts;
use crate::kernel::ir::index::Index;
use crate::lang::typed::ScalarOp;
use crate::lang::types::ScalarType;

/// Returns an operation on indices and numbers as an index, which has a known range. Returns `None`
/// if the result may not fit its type, or if indices have no such operation.
pub fn on_indices(op: ScalarOp, t: ScalarType, es: &[Expr], facts: &Facts) -> Option<Index> {
    if let (ScalarOp::Cast(_), [x @ Expr::Index(..)]) = (op, es)
        && t != ScalarType::Bool
    {
        return fitting(t, index(x)?);
    }
    if let (ScalarOp::Clamp, [x, least, most]) = (op, es) {
        let inside = index(x)?.greater(&index(least)?).lesser(&index(most)?);
        return fitting(t, inside);
    }
    let [a, b] = es else { return None };
    let (a, b) = (index(a)?, index(b)?);
    // Products of numbers in this range fit into 64 bits.
    let small = |i: &Index| i.range().0 >= -(1 << 31) && i.range().1 < 1 << 31;
    if !(small(&a) && small(&b)) {
        return None;
    }
    let natural = a.range().0 >= 0 || facts.prove(&a);
    let out = match (op, a.as_constant(), b.as_constant()) {
        (ScalarOp::Add, ..) => a.add(&b),
        (ScalarOp::Sub, ..) => a.sub(&b),
        (ScalarOp::Mul, _, Some(k)) => a.times(k),
        (ScalarOp::Mul, Some(k), _) => b.times(k),
        // Quotients of the language truncate towards zero.
        (ScalarOp::Div, _, Some(k)) if natural && k > 0 => a.div(k),
        (ScalarOp::Rem, _, Some(k)) if natural && k > 0 => a.rem(k),
        (ScalarOp::Shl, _, Some(k @ 0..31)) => a.times(1 << k),
        // Arithmetic on bits is that on numbers here.
        (ScalarOp::Shr, _, Some(k @ 0..31)) if natural => a.div(1 << k),
        (ScalarOp::BitAnd, _, Some(k)) if natural && k >= 0 && k & (k + 1) == 0 => a.rem(k + 1),
        (ScalarOp::Min, ..) => a.lesser(&b),
        (ScalarOp::Max, ..) => a.greater(&b),
        _ => return None,
    };
    fitting(t, out)
}

/// Returns an integer that does not depend on data as an index.
pub fn index(e: &Expr) -> Option<Index> {
    match e {
        Expr::Index(i, _) if !i.has_data() => Some(i.clone()),
        Expr::Lit(l) => l.as_int().and_then(|n| i64::try_from(n).ok()).map(Index::from),
        _ => None,
    }
}

/// Returns an index if all its values fit an integer type.
fn fitting(t: ScalarType, i: Index) -> Option<Index> {
    let holds = |n: i64| Lit::int(t, i128::from(n)).as_int() == Some(i128::from(n));
    let (lo, hi) = i.range();
    (!t.is_float() && holds(lo) && holds(hi)).then_some(i)
}
