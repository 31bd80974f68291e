//! Operations whose result is known when the kernel is generated.

use crate::calculus::scalar::Lit;
use crate::calculus::value;
use crate::kernel::analysis::arithmetic::index;
use crate::kernel::ir::Expr;
use crate::kernel::ir::facts::{Facts, Guard};
use crate::lang::typed::ScalarOp;
use crate::lang::types::ScalarType;

/// Returns the value of an integer constant, or of a vector of equal ones.
pub fn constant(e: &Expr) -> Option<i128> {
    match e {
        Expr::Lit(l) => l.as_int(),
        Expr::Splat(e, _) => constant(e),
        _ => None,
    }
}

/// Returns an operation on float literals as a literal, rounded once. The type is one that every device computes in.
pub fn of_literals(op: ScalarOp, t: ScalarType, es: &[Expr]) -> Option<Expr> {
    use ScalarOp::{
        Add, Cbrt, Cos, Div, Exp, Exp2, Log, Log2, Mul, Neg, Pow, Rsqrt, Sin, Sqrt, Sub, Tan,
    };
    let known = matches!(
        op,
        Add | Cbrt
            | Cos
            | Div
            | Exp
            | Exp2
            | Log
            | Log2
            | Mul
            | Neg
            | Pow
            | Rsqrt
            | Sin
            | Sqrt
            | Sub
            | Tan
    );
    if !known || !matches!(t, ScalarType::F32 | ScalarType::F64) {
        return None;
    }
    let literal = |e: &Expr| match e {
        Expr::Lit(l) if l.ty == t => l.as_float(),
        _ => None,
    };
    let of: Vec<f64> = es.iter().map(literal).collect::<Option<_>>()?;
    let result = value::of_floats(op, t, [0, 1, 2].map(|i| of.get(i).copied().unwrap_or(0.0)));
    // Devices differ in numbers that are not normal.
    let (least, most) = match t {
        ScalarType::F32 => (f64::from(f32::MIN_POSITIVE), f64::from(f32::MAX)),
        _ => (f64::MIN_POSITIVE, f64::MAX),
    };
    let normal = |x: f64| x == 0.0 || (least..=most).contains(&x.abs());
    (normal(result) && of.into_iter().all(normal)).then(|| Expr::Lit(Lit::float(t, result)))
}

/// Most multiplications of a power are about twice the logarithm of this exponent. Their error stays below that of `pow`.
const SMALL_EXPONENT: i64 = 16;

/// Returns the exponent of a power that is computed by multiplications, if it is a small literal.
pub fn small_exponent(e: &Expr) -> Option<i64> {
    match e {
        Expr::Lit(l) => (2..=SMALL_EXPONENT).find(|k| {
            let of_int = Lit::int(l.ty, i128::from(*k));
            *l == if l.ty.is_float() { Lit::float(l.ty, *k as f64) } else { of_int }
        }),
        Expr::Splat(e, _) => small_exponent(e),
        _ => None,
    }
}

/// Returns the result of a comparison of indices that their ranges decide, and of a connective with a known operand.
pub fn decided(op: ScalarOp, es: &[Expr]) -> Option<Expr> {
    use ScalarOp::{And, Ge, Gt, Le, Lt, Not, Or};
    let truth = |b: bool| Expr::Lit(Lit::int(ScalarType::Bool, i128::from(b)));
    if let (Not, [a]) = (op, es) {
        return (a.is_true() || a.is_false()).then(|| truth(a.is_false()));
    }
    let [a, b] = es else { return None };
    match op {
        And | Or if a.ty().width == 1 => {
            let neutral = |e: &Expr| if op == And { e.is_true() } else { e.is_false() };
            let decides = |e: &Expr| if op == And { e.is_false() } else { e.is_true() };
            match (a, b) {
                (a, _) if decides(a) => Some(a.clone()),
                (a, b) if neutral(a) => Some(b.clone()),
                (a, b) if neutral(b) => Some(a.clone()),
                _ => None,
            }
        }
        Lt | Gt | Le | Ge => {
            let (a, b) = (index(a)?, index(b)?);
            let (less, of) = match op {
                Lt => (Guard::less(&a, &b), true),
                Gt => (Guard::less(&b, &a), true),
                Le => (Guard::less(&b, &a), false),
                _ => (Guard::less(&a, &b), false),
            };
            Facts::default().decide(&less).map(|holds| truth(holds == of))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn float(x: f64) -> Expr {
        Expr::Lit(Lit::float(ScalarType::F32, x))
    }

    #[test]
    fn float_literals_are_rounded_once() {
        let known = |op, of: &[f64]| {
            let of: Vec<Expr> = of.iter().map(|x| float(*x)).collect();
            of_literals(op, ScalarType::F32, &of)
        };
        assert_eq!(known(ScalarOp::Div, &[1.0, 3.0]), Some(float(f64::from(1.0_f32 / 3.0))));
        assert_eq!(known(ScalarOp::Pow, &[0.5, 8.0]), Some(float(0.003_906_25)));
        // Infinities and numbers that a device may flush are left to it.
        assert_eq!(known(ScalarOp::Div, &[1.0, 0.0]), None);
        assert_eq!(known(ScalarOp::Pow, &[0.5, 140.0]), None);
        assert_eq!(of_literals(ScalarOp::Add, ScalarType::F16, &[float(1.0), float(2.0)]), None);
    }

    #[test]
    fn small_powers_are_multiplications() {
        assert_eq!([2.0, 16.0].map(|k| small_exponent(&float(k))), [Some(2), Some(16)]);
        assert_eq!([1.0, 2.5, 17.0].map(|k| small_exponent(&float(k))), [None; 3]);
    }
}
