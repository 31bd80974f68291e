//! Comparisons of a choice between numbers with a number: `(if c then 1 else if d then 2 else 3) >= 2` is `not c`.
//!
//! Functions that sort bytes into classes are of this kind. Each use compares the class with another number, and none needs the
//! class itself. What such a comparison gives is known for each side of the choice.

use crate::calculus::scalar::{Lit, SExpr};
use crate::lang::typed::ScalarOp;
use crate::lang::types::ScalarType;
use std::sync::Arc;

/// Returns a comparison as a function of the conditions; `None` if it compares anything but a choice between whole numbers with
/// a whole number, or if a condition may fail.
pub fn of_choice(op: ScalarOp, operands: &[SExpr], may_fail: fn(&SExpr) -> bool) -> Option<SExpr> {
    let [a, b] = operands else { return None };
    let (choice, other, turned) = match (a, b) {
        (SExpr::If(..), SExpr::Lit(l)) => (a, l.as_int()?, false),
        (SExpr::Lit(l), SExpr::If(..)) => (b, l.as_int()?, true),
        _ => return None,
    };
    let test = |x| {
        let (x, y) = if turned { (other, x) } else { (x, other) };
        Some(match op {
            ScalarOp::Eq => x == y,
            ScalarOp::Ne => x != y,
            ScalarOp::Lt => x < y,
            ScalarOp::Le => x <= y,
            ScalarOp::Gt => x > y,
            ScalarOp::Ge => x >= y,
            _ => return None,
        })
    };
    holds(choice, &test, may_fail)
}

/// Returns whether a test holds of a choice between numbers.
fn holds(
    e: &SExpr,
    test: &dyn Fn(i128) -> Option<bool>,
    may_fail: fn(&SExpr) -> bool,
) -> Option<SExpr> {
    match e {
        SExpr::Lit(l) => Some(truth(test(l.as_int()?)?)),
        SExpr::If(c, a, b) if !may_fail(c) => {
            Some(either(c, holds(a, test, may_fail)?, holds(b, test, may_fail)?))
        }
        _ => None,
    }
}

/// Returns a choice between truth values by connectives, which need no branch.
fn either(c: &SExpr, yes: SExpr, no: SExpr) -> SExpr {
    let of = |op, operands| SExpr::Op(op, ScalarType::Bool, operands);
    let not = || of(ScalarOp::Not, vec![c.clone()]);
    match (known(&yes), known(&no)) {
        (Some(a), Some(b)) if a == b => yes,
        (Some(true), Some(_)) => c.clone(),
        (Some(false), Some(_)) => not(),
        (Some(true), None) => of(ScalarOp::Or, vec![c.clone(), no]),
        (Some(false), None) => of(ScalarOp::And, vec![not(), no]),
        (None, Some(true)) => of(ScalarOp::Or, vec![not(), yes]),
        (None, Some(false)) => of(ScalarOp::And, vec![c.clone(), yes]),
        (None, None) => SExpr::If(Arc::new(c.clone()), Arc::new(yes), Arc::new(no)),
    }
}

fn truth(b: bool) -> SExpr {
    SExpr::Lit(Lit::int(ScalarType::Bool, i128::from(b)))
}

fn known(e: &SExpr) -> Option<bool> {
    if let SExpr::Lit(l) = e { l.as_int().map(|x| x != 0) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_of_classes_are_conditions() {
        let class = |n| SExpr::Lit(Lit::int(ScalarType::I32, n));
        let c = |k: bool| SExpr::Arg.proj(k);
        let choice = |c, a, b| SExpr::If(Arc::new(c), Arc::new(a), Arc::new(b));
        let three = choice(c(false), class(1), choice(c(true), class(2), class(3)));
        let compare = |op, n| of_choice(op, &[three.clone(), class(n)], |_| false);
        let not = |e| SExpr::Op(ScalarOp::Not, ScalarType::Bool, vec![e]);
        let both = |op, a, b| SExpr::Op(op, ScalarType::Bool, vec![a, b]);
        assert_eq!(compare(ScalarOp::Ge, 1), Some(truth(true)));
        assert_eq!(compare(ScalarOp::Ge, 2), Some(not(c(false))));
        assert_eq!(compare(ScalarOp::Eq, 2), Some(both(ScalarOp::And, not(c(false)), c(true))));
        let last = both(ScalarOp::And, not(c(false)), not(c(true)));
        assert_eq!(compare(ScalarOp::Gt, 2), Some(last.clone()));
        assert_eq!(of_choice(ScalarOp::Lt, &[class(2), three.clone()], |_| false), Some(last));
        assert_eq!(compare(ScalarOp::Add, 2), None);
        assert_eq!(of_choice(ScalarOp::Lt, &[three.clone(), SExpr::Arg], |_| false), None);
        assert_eq!(of_choice(ScalarOp::Ge, &[three, class(2)], |_| true), None);
    }
}
