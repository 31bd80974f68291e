//! Conditions on data that only compare indices, as guards.

use super::arithmetic::index;
use crate::kernel::ir::facts::Guard;
use crate::kernel::ir::index::Index;
use crate::kernel::ir::{ElemTy, Expr};
use crate::lang::typed::ScalarOp;

/// Returns a condition as a scalar, if all of its lanes are equal.
pub fn scalar(c: &Expr) -> Option<Expr> {
    match c {
        c if c.ty().width == 1 => Some(c.clone()),
        Expr::Splat(e, _) => Some((**e).clone()),
        Expr::Op(op, t, es) => {
            let es = es.iter().map(scalar).collect::<Option<Vec<_>>>()?;
            Some(Expr::Op(*op, ElemTy::scalar(t.scalar), es))
        }
        _ => None,
    }
}

/// Returns a guard that decides a condition, and whether the condition holds if the guard does.
pub fn guard(c: &Expr) -> Option<(Guard, bool)> {
    let Expr::Op(op, _, es) = c else { return None };
    let [x, y] = es.as_slice() else { return None };
    if let ScalarOp::And | ScalarOp::Or = op {
        // A disjunction holds unless both of its sides fail.
        let all = *op == ScalarOp::And;
        return Some((decided(x, all)?.and(&decided(y, all)?), all));
    }
    let (a, b) = (index(x)?, index(y)?);
    Some(match op {
        ScalarOp::Eq => (equal(&a, &b), true),
        ScalarOp::Ne => (equal(&a, &b), false),
        ScalarOp::Lt => (Guard::less(&a, &b), true),
        ScalarOp::Ge => (Guard::less(&a, &b), false),
        ScalarOp::Gt => (Guard::less(&b, &a), true),
        ScalarOp::Le => (Guard::less(&b, &a), false),
        _ => return None,
    })
}

/// Returns a guard that holds exactly where the condition does, or exactly where it does not.
fn decided(c: &Expr, holds: bool) -> Option<Guard> {
    let (g, same) = guard(c)?;
    match g.0.as_slice() {
        _ if holds == same => Some(g),
        [one] => Some(Guard::not_negative(&one.times(-1).plus(-1))),
        _ => None,
    }
}

/// Returns what is known of indices where a condition holds, or where it does not.
pub fn implied(c: &Expr, holds: bool) -> Guard {
    match c {
        Expr::Op(ScalarOp::Not, _, es) if es.len() == 1 => implied(&es[0], !holds),
        Expr::Op(op @ (ScalarOp::And | ScalarOp::Or), _, es) if es.len() == 2 => {
            // A conjunction that fails says nothing of either side alone.
            match holds == (*op == ScalarOp::And) {
                true => implied(&es[0], holds).and(&implied(&es[1], holds)),
                false => Guard::default(),
            }
        }
        // A disjunction or conjunction whose second side is computed only where it decides.
        Expr::If(c, a, b) => {
            let (first, second, or) = match (&**a, &**b) {
                (a, b) if a.is_true() => (true, b, true),
                (a, b) if b.is_false() => (true, a, false),
                (a, b) if a.is_false() => (false, b, false),
                (a, b) if b.is_true() => (false, a, true),
                _ => return Guard::default(),
            };
            match holds == or {
                true => Guard::default(),
                false => implied(c, holds == first).and(&implied(second, holds)),
            }
        }
        Expr::Guarded(g, a, b) if a.is_true() && b.is_false() => match (holds, g.0.as_slice()) {
            (true, _) => g.clone(),
            (false, [one]) => Guard::not_negative(&one.times(-1).plus(-1)),
            (false, _) => Guard::default(),
        },
        c => decided(c, holds).unwrap_or_default(),
    }
}

/// Returns a guard that holds if a condition on the lanes of a vector holds in any of them: one of some consecutive indices
/// is equal to another index.
pub fn any_lane(c: &Expr) -> Option<Guard> {
    let Expr::Op(ScalarOp::Eq, t, es) = c else { return None };
    let [x, y] = es.as_slice() else { return None };
    let among = |run: &Expr, one: &Expr| {
        let (first, one) = (index(&run.lane(0))?, index(&scalar_lane(one)?)?);
        let last = i64::try_from(t.width).ok()? - 1;
        let in_run = |(k, after)| index(&run.lane(k)) == Some(first.plus(after));
        (0..t.width).zip(0..).all(in_run).then(|| {
            let from = Guard::not_negative(&one.sub(&first));
            from.and(&Guard::not_negative(&first.plus(last).sub(&one)))
        })
    };
    among(x, y).or_else(|| among(y, x))
}

/// Returns the value of all lanes.
fn scalar_lane(e: &Expr) -> Option<Expr> {
    match e {
        Expr::Splat(e, _) => Some((**e).clone()),
        _ => None,
    }
}

fn equal(a: &Index, b: &Index) -> Guard {
    Guard::not_negative(&a.sub(b)).and(&Guard::not_negative(&b.sub(a)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calculus::scalar::Lit;
    use crate::kernel::ir::index::Var;
    use crate::lang::types::ScalarType::{Bool, I32};
    use std::sync::Arc;

    fn var(id: u32) -> Index {
        Index::from(Var { id, name: format!("i{id}").into(), lo: 0, hi: 9 })
    }

    fn value(i: &Index) -> Expr {
        Expr::Index(i.clone(), I32)
    }

    fn test(op: ScalarOp, a: Expr, b: Expr) -> Expr {
        Expr::Op(op, ElemTy { scalar: Bool, width: a.ty().width }, vec![a, b])
    }

    #[test]
    fn guards_decide_comparisons() {
        let operators =
            [ScalarOp::Eq, ScalarOp::Ne, ScalarOp::Lt, ScalarOp::Le, ScalarOp::Gt, ScalarOp::Ge];
        for op in operators {
            // Twice an index, since guards are divided by common factors.
            let c = test(op, value(&var(0).times(2)), Expr::Lit(Lit::int(I32, 5)));
            let (g, side) = guard(&c).expect("a guard");
            for x in 0..10 {
                let (a, b) = (2 * x, 5);
                let wanted = match op {
                    ScalarOp::Eq => a == b,
                    ScalarOp::Ne => a != b,
                    ScalarOp::Lt => a < b,
                    ScalarOp::Le => a <= b,
                    ScalarOp::Gt => a > b,
                    _ => a >= b,
                };
                let holds = g.0.iter().all(|i| i.eval(&|_| Some(x)).expect("a value") >= 0);
                assert_eq!(holds == side, wanted, "{op:?} {x}");
            }
        }
    }

    #[test]
    fn a_run_of_lanes_contains_a_place() {
        let run = Expr::vector((0..4).map(|k| value(&var(0).plus(k))).collect());
        let place = |i: &Index| Expr::Splat(Arc::new(value(i)), 4);
        let g = any_lane(&test(ScalarOp::Eq, run.clone(), place(&var(1)))).expect("a guard");
        for (x, y) in (0..10).flat_map(|x| (0..10).map(move |y| (x, y))) {
            let at = |v: &Var| Some(if v.id == 0 { x } else { y });
            let holds = g.0.iter().all(|i| i.eval(&at).expect("a value") >= 0);
            assert_eq!(holds, (x..x + 4).contains(&y), "{x} {y}");
        }
        assert_eq!(any_lane(&test(ScalarOp::Lt, run.clone(), place(&var(1)))), None);
        assert_eq!(any_lane(&test(ScalarOp::Eq, run.clone(), run)), None);
    }
}
