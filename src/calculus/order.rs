//! Operators that choose one of two values by an order: the greatest value with its index, the lesser of two pairs.
//!
//! Such an operator is commutative if the order is total: where neither value comes first, they are equal. NaN comes neither
//! before nor after any number, but then the operator is not associative either: no pattern that asks for
//! either law admits it.

use super::scalar::SExpr;
use super::ty::Ty;
use crate::lang::typed::ScalarOp;

/// Whether an operator on pairs of `t` gives the first or the second value, as a total order of `t` decides.
pub fn chooses_by_order(body: &SExpr, t: &Ty) -> bool {
    let SExpr::If(c, first, second) = body else { return false };
    let is_side = |e: &SExpr, second| is_part(e, t, &SExpr::Arg.proj(second));
    let mut compared = vec![];
    let sides = is_side(first, false) && is_side(second, true)
        || is_side(first, true) && is_side(second, false);
    sides && compares(c, &mut compared) && covers(t, &mut vec![], &compared)
}

/// Whether an expression is this part of the operator's argument, whole or component by component.
fn is_part(e: &SExpr, t: &Ty, part: &SExpr) -> bool {
    match (e, t) {
        _ if e == part => true,
        (SExpr::Pair(a, b), Ty::Pair(x, y)) => {
            is_part(a, x, &part.clone().proj(false)) && is_part(b, y, &part.clone().proj(true))
        }
        _ => false,
    }
}

/// Whether a condition compares two values component by component: `a < b || a == b && (the next ones)`. Adds the paths of
/// the components.
fn compares(c: &SExpr, compared: &mut Vec<Vec<bool>>) -> bool {
    use ScalarOp::{And, Eq, Ge, Gt, Le, Lt, Or};
    let SExpr::Op(op, _, es) = c else { return false };
    match (op, es.as_slice()) {
        (Lt | Gt | Le | Ge, [a, b]) => component(a, b).is_some_and(|path| {
            compared.push(path);
            true
        }),
        (Or, [SExpr::Op(Lt | Gt, _, now), SExpr::Op(And, _, then)]) => {
            let ([a, b], [SExpr::Op(Eq, _, same), rest]) = (now.as_slice(), then.as_slice()) else {
                return false;
            };
            let [c, d] = same.as_slice() else { return false };
            let path = component(a, b);
            path.is_some() && path == component(c, d) && {
                compared.extend(path);
                compares(rest, compared)
            }
        }
        _ => false,
    }
}

/// Returns the path of the component of which two expressions are the values in the two arguments, in either order.
fn component(a: &SExpr, b: &SExpr) -> Option<Vec<bool>> {
    let ((p, x), (q, y)) = (place(a)?, place(b)?);
    (p != q && x == y).then_some(x)
}

/// Returns the argument, and the path in it, of which an expression is the value.
fn place(e: &SExpr) -> Option<(bool, Vec<bool>)> {
    let mut path = vec![];
    let mut e = e;
    while let SExpr::Proj(of, second) = e {
        path.push(*second);
        e = of;
    }
    let side = path.pop()?;
    path.reverse();
    (*e == SExpr::Arg).then_some((side, path))
}

/// Whether the components at these paths are all of a type.
fn covers(t: &Ty, path: &mut Vec<bool>, compared: &[Vec<bool>]) -> bool {
    match t {
        Ty::Pair(a, b) => [(a, false), (b, true)].into_iter().all(|(t, second)| {
            path.push(second);
            let all = covers(t, path, compared);
            path.pop();
            all
        }),
        Ty::Scalar(_) => compared.contains(path),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calculus::term::Op;
    use crate::calculus::text::{Context, read_term};
    use crate::diag::Source;

    /// Whether an operator on this type is commutative.
    fn commutes(op: &str, t: &str) -> bool {
        let inputs = [("a".to_owned(), of(t))].into();
        let text = format!("({op}) . fork a a");
        let read =
            read_term(&Source::new("t", text), &Ty::Unit, &Context { inputs, variables: None });
        let chain = read.expect("a term").chain();
        let Op::Scalar(f) = chain[0].op() else { panic!("a scalar function") };
        f.is_commutative()
    }

    fn of(t: &str) -> Ty {
        use crate::lang::types::ScalarType::{F32, I32};
        let (f, i) = (Ty::Scalar(F32), Ty::Scalar(I32));
        match t {
            "f" => f,
            "fi" => Ty::pair(&f, &i),
            _ => Ty::pair(&f, &Ty::pair(&i, &i)),
        }
    }

    #[test]
    fn total_orders() {
        let least = "\\((a, b), (c, d)) -> if a < c || a == c && b < d then (a, b) else (c, d)";
        assert!(commutes(least, "fi"));
        assert!(commutes(
            "\\((a, b), (c, d)) -> if c < a || a == c && b <= d then (a, b) else (c, d)",
            "fi"
        ));
        assert!(commutes(
            "\\((a, b), (c, d)) -> if a > c || c == a && d < b then (c, d) else (a, b)",
            "fi"
        ));
        assert!(commutes("\\(a, b) -> if a > b then a else b", "f"));
        let three = "\\((a, (b, c)), (d, (e, f))) -> if a < d || a == d && (c < f || c == f && b < e) then (a, (b, c)) else (d, (e, f))";
        assert!(commutes(three, "fii"));
    }

    #[test]
    fn ties_that_differ() {
        assert!(!commutes("\\((a, b), (c, d)) -> if a < c then (a, b) else (c, d)", "fi"));
        assert!(!commutes(
            "\\((a, b), (c, d)) -> if a < c || a == c && b < d then (a, b) else (a, d)",
            "fi"
        ));
        assert!(!commutes(
            "\\((a, b), (c, d)) -> if a < c || b == d && b < d then (a, b) else (c, d)",
            "fi"
        ));
        assert!(!commutes("\\(a, b) -> if a > 1.0 then a else b", "f"));
        let two = "\\((a, (b, c)), (d, (e, f))) -> if a < d || a == d && b < e then (a, (b, c)) else (d, (e, f))";
        assert!(!commutes(two, "fii"));
    }
}
