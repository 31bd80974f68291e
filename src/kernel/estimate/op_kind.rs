//! Cost classes of operations.

use crate::calculus::op::products::Products;
use crate::lang::typed::ScalarOp;

/// Cost classes of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OpKind {
    /// Sum, difference, negation, minimum, maximum, absolute value, sign or rounding of floats.
    Add,
    /// Product of floats.
    Mul,
    /// Fused product and sum.
    Fma,
    /// Quotient, remainder, root.
    Div,
    /// Exponential, logarithm, power, trigonometry, error function.
    Special,
    /// A work-item's share of the matrix instructions of [`Expr::Products`](crate::kernel::ir::Expr::Products).
    Products(Products),
    /// Integers, comparisons, selections, conversions.
    Other,
}

/// Returns the kind of an operation; `float` says whether its result is a float.
pub fn kind(op: ScalarOp, float: bool) -> OpKind {
    match op {
        ScalarOp::Div | ScalarOp::Rem | ScalarOp::Sqrt | ScalarOp::Rsqrt => OpKind::Div,
        op if op.is_dear() => OpKind::Special,
        _ if !float => OpKind::Other,
        ScalarOp::Add
        | ScalarOp::Sub
        | ScalarOp::Neg
        | ScalarOp::Abs
        | ScalarOp::Min
        | ScalarOp::Max
        | ScalarOp::Floor
        | ScalarOp::Ceil
        | ScalarOp::Round
        | ScalarOp::Trunc
        | ScalarOp::Copysign => OpKind::Add,
        ScalarOp::Mul => OpKind::Mul,
        ScalarOp::Fma => OpKind::Fma,
        _ => OpKind::Other,
    }
}
