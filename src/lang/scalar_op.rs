//! The scalar operations, with their names, numbers of operands, and results.

use super::types::ScalarType;

/// Scalar operations. All are component-wise on vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ScalarOp {
    /// `a + b`; integers wrap.
    Add,
    /// `a - b`.
    Sub,
    /// `a * b`.
    Mul,
    /// `a / b`; integers truncate towards zero; division by zero is an error in checked mode.
    Div,
    /// `a % b`; the sign is that of the dividend for integers; `fmod` for floats.
    Rem,
    /// `a ** b`; `pow` for floats, a wrapping power for integers (with a non-negative exponent).
    Pow,
    /// `a == b`, of type `bool`.
    Eq,
    /// `a != b`.
    Ne,
    /// `a < b`.
    Lt,
    /// `a <= b`.
    Le,
    /// `a > b`.
    Gt,
    /// `a >= b`.
    Ge,
    /// `a && b`, lazy in `b`.
    And,
    /// `a || b`, lazy in `b`.
    Or,
    /// `!a`.
    Not,
    /// `a & b` of the bits of integers; also on `bool`, where it evaluates both, as do `|` and `^`.
    BitAnd,
    /// `a | b`.
    BitOr,
    /// `a ^ b`, the exclusive or.
    BitXor,
    /// `~a`, every bit of an integer inverted.
    BitNot,
    /// `a << b`; 0 unless `b` is at least 0 and less than the number of bits.
    Shl,
    /// `a >> b`, with copies of the sign on signed types and zeros on unsigned ones. Unless `b` is at least 0 and less
    /// than the number of bits, only copies of the sign (or zeros) are left.
    Shr,
    /// `-a`.
    Neg,
    /// `abs a`.
    Abs,
    /// `min a b`.
    Min,
    /// `max a b`.
    Max,
    /// `sqrt a`.
    Sqrt,
    /// `rsqrt a`.
    Rsqrt,
    /// `exp a`.
    Exp,
    /// `log a`.
    Log,
    /// `sin a`.
    Sin,
    /// `cos a`.
    Cos,
    /// `tan a`.
    Tan,
    /// `atan a`.
    Atan,
    /// `atan2 a b`.
    Atan2,
    /// `asin a`.
    Asin,
    /// `acos a`.
    Acos,
    /// `sinh a`.
    Sinh,
    /// `cosh a`.
    Cosh,
    /// `tanh a`.
    Tanh,
    /// `asinh a`.
    Asinh,
    /// `acosh a`.
    Acosh,
    /// `atanh a`.
    Atanh,
    /// `exp2 a`.
    Exp2,
    /// `exp10 a`.
    Exp10,
    /// `expm1 a`: `exp a - 1`.
    Expm1,
    /// `log2 a`.
    Log2,
    /// `log10 a`.
    Log10,
    /// `log1p a`: `log (1 + a)`.
    Log1p,
    /// `cbrt a`.
    Cbrt,
    /// `hypot a b`: `sqrt (a * a + b * b)` without overflow in between.
    Hypot,
    /// `erf a`.
    Erf,
    /// `erfc a`: `1 - erf a`.
    Erfc,
    /// `copysign a b`: `a` with the sign of `b`.
    Copysign,
    /// `isnan a`, of type `bool`.
    IsNan,
    /// `isinf a`, of type `bool`.
    IsInf,
    /// `floor a`.
    Floor,
    /// `ceil a`.
    Ceil,
    /// `round a`, half away from zero.
    Round,
    /// `trunc a`, towards zero.
    Trunc,
    /// `fma a b c`.
    Fma,
    /// `sign a`: -1, 0 or 1 in the type of `a`.
    Sign,
    /// `clamp x lo hi`.
    Clamp,
    /// `select c a b`: `a` if `c`, else `b`; evaluates both.
    Select,
    /// `popcount a`, the number of ones, as `i32`.
    Popcount,
    /// `clz a`, the number of zeros above the highest one, as `i32`; of 0, the number of bits.
    Clz,
    /// `ctz a`, the number of zeros below the lowest one, as `i32`; of 0, the number of bits.
    Ctz,
    /// `mulhi a b`, the upper half of the product of twice as many bits.
    MulHi,
    /// `order_key a`, an unsigned integer of the same number of bits, in the order of the numbers. Zeros are equal, and
    /// NaN is the greatest.
    OrderKey,
    /// The bits of a number as those of another type of the same width. Programs do not have it: kernels pack values in words with it.
    Bits,
    /// `T.S a`: conversion to the expression's type. With a scalar operand and a vector result, every component is
    /// the operand (which has the vector's element type, `T`).
    Cast(ScalarType),
}

/// The infix operators: text, operation, binding strength. All associate to the left.
pub const INFIX: &[(&str, ScalarOp, u8)] = &[
    ("||", ScalarOp::Or, 1),
    ("&&", ScalarOp::And, 2),
    ("==", ScalarOp::Eq, 3),
    ("!=", ScalarOp::Ne, 3),
    ("<", ScalarOp::Lt, 3),
    ("<=", ScalarOp::Le, 3),
    (">", ScalarOp::Gt, 3),
    (">=", ScalarOp::Ge, 3),
    ("&", ScalarOp::BitAnd, 4),
    ("^", ScalarOp::BitXor, 4),
    ("|", ScalarOp::BitOr, 4),
    ("<<", ScalarOp::Shl, 5),
    (">>", ScalarOp::Shr, 5),
    ("+", ScalarOp::Add, 6),
    ("-", ScalarOp::Sub, 6),
    ("*", ScalarOp::Mul, 7),
    ("/", ScalarOp::Div, 7),
    ("%", ScalarOp::Rem, 7),
    ("**", ScalarOp::Pow, 8),
];

/// The named functions. Of several names of one operation, the first is printed; the others are Futhark's.
pub const FUNCTIONS: &[(&str, ScalarOp)] = &[
    ("not", ScalarOp::Not),
    ("neg", ScalarOp::Neg),
    ("complement", ScalarOp::BitNot),
    ("abs", ScalarOp::Abs),
    ("min", ScalarOp::Min),
    ("max", ScalarOp::Max),
    ("sign", ScalarOp::Sign),
    ("sgn", ScalarOp::Sign),
    ("clamp", ScalarOp::Clamp),
    ("select", ScalarOp::Select),
    ("sqrt", ScalarOp::Sqrt),
    ("rsqrt", ScalarOp::Rsqrt),
    ("cbrt", ScalarOp::Cbrt),
    ("hypot", ScalarOp::Hypot),
    ("exp", ScalarOp::Exp),
    ("exp2", ScalarOp::Exp2),
    ("exp10", ScalarOp::Exp10),
    ("expm1", ScalarOp::Expm1),
    ("log", ScalarOp::Log),
    ("log2", ScalarOp::Log2),
    ("log10", ScalarOp::Log10),
    ("log1p", ScalarOp::Log1p),
    ("sin", ScalarOp::Sin),
    ("cos", ScalarOp::Cos),
    ("tan", ScalarOp::Tan),
    ("asin", ScalarOp::Asin),
    ("acos", ScalarOp::Acos),
    ("atan", ScalarOp::Atan),
    ("atan2", ScalarOp::Atan2),
    ("sinh", ScalarOp::Sinh),
    ("cosh", ScalarOp::Cosh),
    ("tanh", ScalarOp::Tanh),
    ("asinh", ScalarOp::Asinh),
    ("acosh", ScalarOp::Acosh),
    ("atanh", ScalarOp::Atanh),
    ("erf", ScalarOp::Erf),
    ("erfc", ScalarOp::Erfc),
    ("floor", ScalarOp::Floor),
    ("ceil", ScalarOp::Ceil),
    ("round", ScalarOp::Round),
    ("trunc", ScalarOp::Trunc),
    ("fma", ScalarOp::Fma),
    ("copysign", ScalarOp::Copysign),
    ("isnan", ScalarOp::IsNan),
    ("isinf", ScalarOp::IsInf),
    ("popcount", ScalarOp::Popcount),
    ("popc", ScalarOp::Popcount),
    ("clz", ScalarOp::Clz),
    ("ctz", ScalarOp::Ctz),
    ("mulhi", ScalarOp::MulHi),
    ("mul_hi", ScalarOp::MulHi),
    ("order_key", ScalarOp::OrderKey),
];

/// Returns the infix operator with this text, and its binding strength.
pub fn infix(text: &str) -> Option<(ScalarOp, u8)> {
    INFIX.iter().find(|(t, ..)| *t == text).map(|(_, op, strength)| (*op, *strength))
}

/// Returns the function with this name.
pub fn function(name: &str) -> Option<ScalarOp> {
    FUNCTIONS.iter().find(|(n, _)| *n == name).map(|(_, op)| *op)
}

impl ScalarOp {
    /// Returns the text and the binding strength of an infix operator.
    pub fn infix(self) -> Option<(&'static str, u8)> {
        INFIX.iter().find(|(_, op, _)| *op == self).map(|(text, _, strength)| (*text, *strength))
    }

    /// Returns the name of a function.
    pub fn function(self) -> Option<&'static str> {
        FUNCTIONS.iter().find(|(_, op)| *op == self).map(|(name, _)| *name)
    }

    /// Returns the number of operands.
    pub fn arity(self) -> usize {
        match self {
            ScalarOp::Fma | ScalarOp::Clamp | ScalarOp::Select => 3,
            ScalarOp::Min | ScalarOp::Max | ScalarOp::Atan2 | ScalarOp::Hypot => 2,
            ScalarOp::Copysign | ScalarOp::MulHi => 2,
            op if op.infix().is_some() => 2,
            _ => 1,
        }
    }

    /// Returns the type of the result if it does not depend on the operands; `None` for conversions.
    pub fn fixed_result(self) -> Option<ScalarType> {
        use ScalarOp as O;
        match self {
            O::Eq | O::Ne | O::Lt | O::Le | O::Gt | O::Ge | O::And | O::Or | O::Not => {
                Some(ScalarType::Bool)
            }
            O::IsNan | O::IsInf => Some(ScalarType::Bool),
            O::Popcount | O::Clz | O::Ctz => Some(ScalarType::I32),
            _ => None,
        }
    }

    /// Returns the type of the result for operands of this type, if it may be another type; `None` for conversions.
    pub fn result_of(self, operand: ScalarType) -> Option<ScalarType> {
        match self {
            ScalarOp::OrderKey => Some(operand.unsigned()),
            _ => self.fixed_result(),
        }
    }

    /// Whether this takes many cycles on most devices.
    pub fn is_dear(self) -> bool {
        use ScalarOp as O;
        matches!(self, O::Div | O::Rem | O::Sqrt | O::Rsqrt) || self.is_transcendental()
    }

    /// Whether this is a root of higher degree than 2, a power, an exponential, a logarithm, a function of trigonometry or the like.
    pub fn is_transcendental(self) -> bool {
        use ScalarOp as O;
        matches!(
            self,
            O::Pow
                | O::Cbrt
                | O::Hypot
                | O::Exp
                | O::Exp2
                | O::Exp10
                | O::Expm1
                | O::Log
                | O::Log2
                | O::Log10
                | O::Log1p
                | O::Sin
                | O::Cos
                | O::Tan
                | O::Asin
                | O::Acos
                | O::Atan
                | O::Atan2
                | O::Sinh
                | O::Cosh
                | O::Tanh
                | O::Asinh
                | O::Acosh
                | O::Atanh
                | O::Erf
                | O::Erfc
        )
    }

    /// Whether exchanging the two operands never changes the result.
    pub fn is_commutative(self) -> bool {
        use ScalarOp as O;
        matches!(
            self,
            O::Add
                | O::Mul
                | O::Min
                | O::Max
                | O::And
                | O::Or
                | O::BitAnd
                | O::BitOr
                | O::BitXor
                | O::Eq
                | O::Ne
                | O::Hypot
                | O::MulHi
        )
    }
}
