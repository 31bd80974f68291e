//! How steep smooth functions of one number are.

use crate::lang::scalar_op::ScalarOp;
use std::f64::consts::{FRAC_2_SQRT_PI, LN_2, LN_10, LOG2_E, LOG10_E};

/// Returns the greatest absolute slope of a function within `e` of `x`; not finite if it has a pole or no value there.
pub(super) fn slope(op: ScalarOp, x: f64, e: f64) -> f64 {
    use ScalarOp as O;
    let (low, high) = (x - e, x + e);
    // The least and the greatest absolute value.
    let (near, far) = ((x.abs() - e).max(0.0), x.abs() + e);
    match op {
        O::Asin | O::Acos => (1.0 - far * far).max(0.0).sqrt().recip(),
        O::Sinh => far.cosh(),
        O::Cosh => far.sinh(),
        O::Tanh => near.cosh().powi(-2),
        O::Asinh => near.hypot(1.0).recip(),
        O::Acosh if low <= 1.0 => f64::INFINITY,
        O::Acosh => ((low - 1.0) * (low + 1.0)).sqrt().recip(),
        O::Atanh => (1.0 - far * far).max(0.0).recip(),
        O::Exp2 => LN_2 * high.exp2(),
        O::Exp10 => LN_10 * libm::exp10(high),
        O::Expm1 => high.exp(),
        O::Log2 => LOG2_E / low.max(0.0),
        O::Log10 => LOG10_E / low.max(0.0),
        O::Log1p => (1.0 + low).max(0.0).recip(),
        O::Cbrt => near.cbrt().powi(-2) / 3.0,
        O::Erf | O::Erfc => FRAC_2_SQRT_PI * (-near * near).exp(),
        _ => f64::NAN,
    }
}
