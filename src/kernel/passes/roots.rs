//! Replaces the quotient by a root by the product with a reciprocal root.
//!
//! A quotient and a root are several instructions each, a reciprocal root is one on GPUs. Its value is never so large or so small
//! that it has no inverse, so the product is off by a few roundings only. The pass runs only if floating-point operations may be
//! replaced by others that are equal up to rounding.

use crate::kernel::ir::walk::{rebuild_all, rebuilt};
use crate::kernel::ir::{Expr, Kernel};
use crate::lang::typed::ScalarOp;
use crate::lang::types::ScalarType;

/// Replaces the quotients of a kernel.
pub fn reciprocal(k: &mut Kernel) {
    rebuild_all(&mut k.body, &mut expr);
}

fn expr(e: &Expr) -> Expr {
    let e = rebuilt(e, &mut |e, _| expr(e));
    let Expr::Op(ScalarOp::Div, t, quotient) = &e else { return e };
    let [above, Expr::Op(ScalarOp::Sqrt, _, x)] = &quotient[..] else { return e };
    if !matches!(t.scalar, ScalarType::F32 | ScalarType::F64) {
        return e;
    }
    let root = Expr::Op(ScalarOp::Rsqrt, *t, x.clone());
    if is_one(above) { root } else { Expr::Op(ScalarOp::Mul, *t, vec![above.clone(), root]) }
}

fn is_one(e: &Expr) -> bool {
    match e {
        Expr::Lit(l) => l.as_float() == Some(1.0),
        Expr::Splat(e, _) => is_one(e),
        _ => false,
    }
}
