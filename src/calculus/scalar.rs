//! Scalar functions: the leaves of terms. They are closed and compared by structure.

use super::size::Size;
use super::ty::Ty;
use crate::lang::typed::ScalarOp;
use crate::lang::types::ScalarType;
use std::sync::Arc;

/// A scalar constant as bits, so that constants can be compared and hashed. Floats: IEEE bits of the type's
/// own width; integers: two's complement, sign- or zero-extended to 64 bits; bool: 0 or 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lit {
    /// Its type.
    pub ty: ScalarType,
    /// Its bits.
    pub bits: u64,
}

impl Lit {
    /// The float nearest to `x` in a float type.
    pub fn float(ty: ScalarType, x: f64) -> Lit {
        let bits = match ty {
            ScalarType::F16 => u64::from(half::f16::from_f64(x).to_bits()),
            #[expect(
                clippy::cast_possible_truncation,
                reason = "rounding to f32 is what is asked for"
            )]
            ScalarType::F32 => u64::from((x as f32).to_bits()),
            _ => x.to_bits(),
        };
        Lit { ty, bits }
    }

    /// An integer, wrapped to the type; for float types, the nearest float.
    pub fn int(ty: ScalarType, x: i128) -> Lit {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "wrapping to the type is what is asked for"
        )]
        let bits = match ty {
            ScalarType::F16 | ScalarType::F32 | ScalarType::F64 => return Lit::float(ty, x as f64),
            ScalarType::Bool => u64::from(x != 0),
            ScalarType::I8 => i64::from(x as i8) as u64,
            ScalarType::I16 => i64::from(x as i16) as u64,
            ScalarType::I32 => i64::from(x as i32) as u64,
            ScalarType::I64 | ScalarType::U64 => x as u64,
            ScalarType::U8 => u64::from(x as u8),
            ScalarType::U16 => u64::from(x as u16),
            ScalarType::U32 => u64::from(x as u32),
        };
        Lit { ty, bits }
    }

    /// Returns the value of a float.
    pub fn as_float(self) -> Option<f64> {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the bits above the type's width are 0"
        )]
        match self.ty {
            ScalarType::F16 => Some(half::f16::from_bits(self.bits as u16).to_f64()),
            ScalarType::F32 => Some(f64::from(f32::from_bits(self.bits as u32))),
            ScalarType::F64 => Some(f64::from_bits(self.bits)),
            _ => None,
        }
    }

    /// Returns the value of an integer or a bool.
    pub fn as_int(self) -> Option<i128> {
        match self.ty {
            ScalarType::F16 | ScalarType::F32 | ScalarType::F64 => None,
            ScalarType::I8 | ScalarType::I16 | ScalarType::I32 | ScalarType::I64 => {
                Some(i128::from(self.bits.cast_signed()))
            }
            _ => Some(i128::from(self.bits)),
        }
    }
}

/// A closed function from a scalar (or pairs of scalars, or unit) to the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ScalarFn {
    /// Argument type.
    pub dom: Ty,
    /// Result type.
    pub cod: Ty,
    /// The body, over [`SExpr::Arg`].
    pub body: SExpr,
}

/// An expression over scalars and pairs of scalars. Bound variables are de Bruijn levels: the
/// outermost binder binds 0.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SExpr {
    /// The whole argument of the function.
    Arg,
    /// First (`false`) or second (`true`) component.
    Proj(Arc<SExpr>, bool),
    /// A constant.
    Lit(Lit),
    /// Component `.1` (tuples flattened) of the entry's scalar parameter `.0`.
    Input(Arc<str>, usize, ScalarType),
    /// A size as a value.
    Size(Size, ScalarType),
    /// An operation with its result type; a cast carries the type that it converts from.
    Op(ScalarOp, ScalarType, Vec<SExpr>),
    /// Lazy conditional.
    If(Arc<SExpr>, Arc<SExpr>, Arc<SExpr>),
    /// A pair.
    Pair(Arc<SExpr>, Arc<SExpr>),
    /// Binds one level: value, body.
    Let(Arc<SExpr>, Arc<SExpr>),
    /// A bound variable with its type.
    Var(u32, Ty),
    /// `init`, `bound`, `body`: the body binds two levels, the counter (of the bound's type) and then the accumulator.
    For(Arc<SExpr>, Arc<SExpr>, Arc<SExpr>),
    /// `init`, `cond`, `body`: both bind one level, the accumulator.
    While(Arc<SExpr>, Arc<SExpr>, Arc<SExpr>),
}

impl SExpr {
    /// Returns a component; of a pair expression, the component itself.
    pub fn proj(self, second: bool) -> SExpr {
        match self {
            SExpr::Pair(a, b) => (*if second { b } else { a }).clone(),
            e => SExpr::Proj(Arc::new(e), second),
        }
    }

    /// A pair.
    pub fn pair(a: SExpr, b: SExpr) -> SExpr {
        SExpr::Pair(Arc::new(a), Arc::new(b))
    }

    /// Whether a loop occurs in the expression; a function with one has no vector form.
    pub fn has_loop(&self) -> bool {
        match self {
            SExpr::Arg | SExpr::Lit(_) | SExpr::Input(..) | SExpr::Size(..) | SExpr::Var(..) => {
                false
            }
            SExpr::Proj(e, _) => e.has_loop(),
            SExpr::Op(_, _, es) => es.iter().any(SExpr::has_loop),
            SExpr::If(a, b, c) => a.has_loop() || b.has_loop() || c.has_loop(),
            SExpr::Pair(a, b) | SExpr::Let(a, b) => a.has_loop() || b.has_loop(),
            SExpr::For(..) | SExpr::While(..) => true,
        }
    }
}

impl ScalarFn {
    /// Returns the operation if the function is `\(a, b) -> a op b` on its own two components.
    pub fn as_binary(&self) -> Option<ScalarOp> {
        match &self.body {
            SExpr::Op(op, _, es) => match es.as_slice() {
                [SExpr::Proj(a, false), SExpr::Proj(b, true)]
                    if **a == SExpr::Arg && **b == SExpr::Arg =>
                {
                    Some(*op)
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The binary operation on one scalar type as a leaf `(t, t) -> result`.
    pub fn binary(op: ScalarOp, t: ScalarType, result: ScalarType) -> ScalarFn {
        ScalarFn {
            dom: Ty::pair(&Ty::Scalar(t), &Ty::Scalar(t)),
            cod: Ty::Scalar(result),
            body: SExpr::Op(op, result, vec![SExpr::Arg.proj(false), SExpr::Arg.proj(true)]),
        }
    }

    /// Whether this is a binary operation that is known to be commutative on all values.
    pub fn is_commutative(&self) -> bool {
        matches!(
            self.as_binary(),
            Some(
                ScalarOp::Add
                    | ScalarOp::Mul
                    | ScalarOp::Min
                    | ScalarOp::Max
                    | ScalarOp::And
                    | ScalarOp::Or
            )
        )
    }
}
