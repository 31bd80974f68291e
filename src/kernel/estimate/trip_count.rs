//! How often a loop runs.

use crate::kernel::ir::index::{Index, Var};
use crate::kernel::ir::{Block, Expr, Stmt, Update};
use crate::lang::typed::ScalarOp;

/// Assumed number of iterations of a loop that ends by a condition.
pub const UNKNOWN: f64 = 16.0;

/// Assumed number of tries of a work-item that exchanges an element as one step: another work-item rarely changes it meanwhile.
const TRIES: f64 = 2.0;

/// Returns the trip count of a loop with this condition and this body.
pub fn of_while(go_on: &Expr, body: &Block) -> f64 {
    let mut exchanges = false;
    for s in body {
        s.visit(&mut |s| exchanges |= matches!(s, Stmt::Atomic(Update::Swap(_), ..)));
    }
    if exchanges { TRIES } else { of_condition(go_on) }
}

/// Returns the trip count of a loop with this condition: it is known if the left side starts at zero, as the counter of a counted loop does.
fn of_condition(go_on: &Expr) -> f64 {
    match go_on {
        Expr::Op(ScalarOp::Lt, _, operands) => match operands.as_slice() {
            [Expr::Reg(_), Expr::Lit(bound)] => bound.as_int().map_or(UNKNOWN, |n| n.max(0) as f64),
            [Expr::Reg(_), Expr::Index(bound, _)] => of_loop(bound),
            _ => UNKNOWN,
        },
        _ => UNKNOWN,
    }
}

/// Returns the trip count of a loop in the middle iteration of the loops around it. The shorter
/// bounds of the last tile matter little if there are many. If the loop has no iterations there, because most work-items
/// are idle, its count is that of the first: an idle work-item costs what a busy one costs.
pub fn of_loop(length: &Index) -> f64 {
    let middle = |v: &Var| Some(v.lo + (v.hi - v.lo) / 2);
    match length.eval(&middle) {
        Some(n) if n > 0 => signed(n),
        Some(_) => length.eval(&|v| Some(v.lo)).map_or(0.0, |n| signed(n.max(0))),
        None => {
            let (a, b) = length.range();
            f64::midpoint(signed(a.max(0)), signed(b.max(0)))
        }
    }
}

fn signed(n: i64) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calculus::scalar::Lit;
    use crate::kernel::ir::{ElemTy, Reg};
    use crate::lang::types::ScalarType;

    #[test]
    fn counted_loops_in_scalar_functions_have_their_trip_count() {
        let int = ElemTy::scalar(ScalarType::I32);
        let of = |op, bound: Expr| {
            let counter = Expr::Reg(Reg { id: 0, name: "i".into(), ty: int });
            of_condition(&Expr::Op(op, ElemTy::scalar(ScalarType::Bool), vec![counter, bound]))
        };
        let lit = |n| Expr::Lit(Lit::int(ScalarType::I32, n));
        assert_eq!(of(ScalarOp::Lt, lit(100)), 100.0);
        assert_eq!(of(ScalarOp::Lt, lit(-1)), 0.0);
        assert_eq!(of(ScalarOp::Lt, Expr::Reg(Reg { id: 1, name: "n".into(), ty: int })), UNKNOWN);
        assert_eq!(of(ScalarOp::Gt, lit(100)), UNKNOWN);
        // A bound that grows with the loop around counts as in the middle of it.
        let step = Index::from(Var { id: 0, name: "step".into(), lo: 0, hi: 100 });
        let bound = Expr::Index(step.plus(1), ScalarType::I32);
        assert_eq!(of(ScalarOp::Lt, bound), 51.0);
    }
}
