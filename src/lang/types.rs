//! Types of the surface language.

use super::size::Size;
use serde::{Deserialize, Serialize};
use std::fmt;

/// An element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScalarType {
    /// IEEE half.
    F16,
    /// The upper half of an IEEE single: its exponent, and 7 bits of its fraction.
    BF16,
    /// IEEE single.
    F32,
    /// IEEE double.
    F64,
    /// Signed 8-bit.
    I8,
    /// Signed 16-bit.
    I16,
    /// Signed 32-bit.
    I32,
    /// Signed 64-bit.
    I64,
    /// Unsigned 8-bit.
    U8,
    /// Unsigned 16-bit.
    U16,
    /// Unsigned 32-bit.
    U32,
    /// Unsigned 64-bit.
    U64,
    /// Truth value.
    Bool,
}

impl ScalarType {
    /// Every scalar type.
    pub const ALL: [ScalarType; 13] = {
        use ScalarType::{BF16, Bool, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
        [F16, BF16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64, Bool]
    };

    /// Returns the name in programs.
    pub fn name(self) -> &'static str {
        match self {
            ScalarType::F16 => "f16",
            ScalarType::BF16 => "bf16",
            ScalarType::F32 => "f32",
            ScalarType::F64 => "f64",
            ScalarType::I8 => "i8",
            ScalarType::I16 => "i16",
            ScalarType::I32 => "i32",
            ScalarType::I64 => "i64",
            ScalarType::U8 => "u8",
            ScalarType::U16 => "u16",
            ScalarType::U32 => "u32",
            ScalarType::U64 => "u64",
            ScalarType::Bool => "bool",
        }
    }

    /// Returns the type with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        ScalarType::ALL.into_iter().find(|t| t.name() == name)
    }

    /// Returns the type whose name ends a number.
    pub fn suffix(number: &str) -> Option<Self> {
        let suffixes = ScalarType::ALL.into_iter().filter(|t| number.ends_with(t.name()));
        // `bf16` ends in `f16`.
        suffixes.max_by_key(|t| t.name().len())
    }

    /// Returns the size of an element in memory, in bytes.
    pub fn bytes(self) -> usize {
        match self {
            ScalarType::I8 | ScalarType::U8 | ScalarType::Bool => 1,
            ScalarType::F16 | ScalarType::BF16 | ScalarType::I16 | ScalarType::U16 => 2,
            ScalarType::F32 | ScalarType::I32 | ScalarType::U32 => 4,
            ScalarType::F64 | ScalarType::I64 | ScalarType::U64 => 8,
        }
    }

    /// Returns the size of an element in memory, in bits.
    pub fn bits(self) -> usize {
        8 * self.bytes()
    }

    /// Returns the unsigned integer type of the same number of bits.
    #[must_use]
    pub fn unsigned(self) -> ScalarType {
        match self.bytes() {
            1 => ScalarType::U8,
            2 => ScalarType::U16,
            4 => ScalarType::U32,
            _ => ScalarType::U64,
        }
    }

    /// Returns the one of two types of numbers that keeps more of the values of both: the float, the longer, the signed.
    #[must_use]
    pub fn wider(self, other: ScalarType) -> ScalarType {
        let rank = |t: ScalarType| (t.is_float(), t.bytes(), t.is_signed());
        if rank(other) > rank(self) { other } else { self }
    }

    /// Returns whether the type is `f16`, `bf16`, `f32` or `f64`.
    pub fn is_float(self) -> bool {
        matches!(self, ScalarType::F16 | ScalarType::BF16 | ScalarType::F32 | ScalarType::F64)
    }

    /// Returns whether the type is a signed or unsigned integer.
    pub fn is_integer(self) -> bool {
        !self.is_float() && self != ScalarType::Bool
    }

    /// Returns whether the type is a signed integer or a float.
    pub fn is_signed(self) -> bool {
        self.is_float()
            || matches!(self, ScalarType::I8 | ScalarType::I16 | ScalarType::I32 | ScalarType::I64)
    }
}

impl fmt::Display for ScalarType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The type of a value. There are no function types: functions are not values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// One element.
    Scalar(ScalarType),
    /// An element of the result of `asVector`: a vector with this number of scalars.
    Vector(Size, ScalarType),
    /// Two or more components.
    Tuple(Vec<Type>),
    /// `[n]t`.
    Array(Size, Box<Type>),
}

impl Type {
    /// Returns whether the type contains elements of this scalar type.
    pub fn mentions(&self, scalar: ScalarType) -> bool {
        match self {
            Type::Scalar(s) | Type::Vector(_, s) => *s == scalar,
            Type::Tuple(ts) => ts.iter().any(|t| t.mentions(scalar)),
            Type::Array(_, t) => t.mentions(scalar),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Scalar(s) => write!(f, "{s}"),
            Type::Vector(w, s) => write!(f, "{s}x{w}"),
            Type::Tuple(ts) => {
                write!(f, "(")?;
                for (i, t) in ts.iter().enumerate() {
                    if i > 0 {
                        write!(f, ", ")?;
                    }
                    write!(f, "{t}")?;
                }
                write!(f, ")")
            }
            Type::Array(n, t) => write!(f, "[{n}]{t}"),
        }
    }
}
