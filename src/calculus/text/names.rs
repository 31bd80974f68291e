//! The names of scalar functions in text. `calculus::op` has those of operators.

use crate::lang::typed::ScalarOp;

/// Infix operators: text, operation, binding strength.
pub(super) const INFIX: &[(&str, ScalarOp, u8)] = &[
    ("||", ScalarOp::Or, 1),
    ("&&", ScalarOp::And, 2),
    ("==", ScalarOp::Eq, 3),
    ("!=", ScalarOp::Ne, 3),
    ("<=", ScalarOp::Le, 3),
    (">=", ScalarOp::Ge, 3),
    ("<", ScalarOp::Lt, 3),
    (">", ScalarOp::Gt, 3),
    ("+", ScalarOp::Add, 4),
    ("-", ScalarOp::Sub, 4),
    ("**", ScalarOp::Pow, 6),
    ("*", ScalarOp::Mul, 5),
    ("/", ScalarOp::Div, 5),
    ("%", ScalarOp::Rem, 5),
];

/// Named scalar functions: name, operation, number of arguments.
pub(super) const FUNCTIONS: &[(&str, ScalarOp, usize)] = &[
    ("not", ScalarOp::Not, 1),
    ("neg", ScalarOp::Neg, 1),
    ("abs", ScalarOp::Abs, 1),
    ("min", ScalarOp::Min, 2),
    ("max", ScalarOp::Max, 2),
    ("sqrt", ScalarOp::Sqrt, 1),
    ("rsqrt", ScalarOp::Rsqrt, 1),
    ("exp", ScalarOp::Exp, 1),
    ("log", ScalarOp::Log, 1),
    ("sin", ScalarOp::Sin, 1),
    ("cos", ScalarOp::Cos, 1),
    ("tan", ScalarOp::Tan, 1),
    ("atan", ScalarOp::Atan, 1),
    ("atan2", ScalarOp::Atan2, 2),
    ("floor", ScalarOp::Floor, 1),
    ("ceil", ScalarOp::Ceil, 1),
    ("round", ScalarOp::Round, 1),
    ("fma", ScalarOp::Fma, 3),
    ("sign", ScalarOp::Sign, 1),
    ("clamp", ScalarOp::Clamp, 3),
    ("select", ScalarOp::Select, 3),
];
