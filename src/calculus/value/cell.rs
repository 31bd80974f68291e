//! One number and a bound on its error.
//!
//! A float is computed in `f64` together with its *magnitude*: the size of the terms that it was made of. The
//! rounding errors of any legal order of evaluation are a small multiple of `eps * magnitude`, even if the
//! value itself has cancelled. A float also has a *grain*: a power of two of which all its terms are
//! multiples. While magnitudes stay below `2^24` grains (for `f32`), every order of evaluation computes all
//! sums and products without rounding, and the value is *exact*: no error is allowed. Sums of small whole
//! numbers are exact, and so are inputs.
//!
//! An integer or truth value has a [`Spread`]: the other values that rounding may legally make of it.

use super::spread::Spread;
use crate::calculus::scalar::Lit;
use crate::lang::typed::Literal;
use crate::lang::types::ScalarType;

/// A number of some [`ScalarType`], which the owner of the cell knows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cell {
    /// The bits of the number. Floats of every type: those of the `f64`. Integers: sign- or zero-extended.
    /// Bool: 0 or 1.
    pub bits: u64,
    /// For a float, its magnitude with the grain in the last bits of the `f64`; for other types, the spread.
    pub(super) doubt: u64,
}

/// A grain as it is stored: the exponent plus [`BIAS`]. [`INEXACT`] and [`ZERO`] order correctly, so that the
/// grain of a sum is the minimum.
pub(super) type Grain = i32;

/// The grain of an inexact number: none is known.
pub(super) const INEXACT: Grain = 0;

/// The grain of zero, a multiple of everything.
pub(super) const ZERO: Grain = 0xfff;

const MASK: u64 = 0xfff;
const BIAS: i32 = 1200;

/// The magnitude of a number that may be anything.
pub(super) const ANYTHING: f64 = f64::INFINITY;

/// The properties of a float type.
#[derive(Clone, Copy, Debug)]
pub(super) struct Format {
    /// The distance from 1 to the next number.
    pub epsilon: f64,
    /// The largest number.
    pub most: f64,
    /// The least positive normal number.
    pub tiny: f64,
    /// Number of bits of the significand.
    precision: i32,
    /// The exponent of `tiny`.
    least: i32,
}

const F16: Format =
    Format { epsilon: 1.0 / 1024.0, most: 65504.0, tiny: 1.0 / 16384.0, precision: 11, least: -14 };
const BF16: Format = Format {
    epsilon: 1.0 / 128.0,
    most: 3.389_531_389_251_535_5e38,
    tiny: f32::MIN_POSITIVE as f64,
    precision: 8,
    least: -126,
};
const F32: Format = Format {
    epsilon: f32::EPSILON as f64,
    most: f32::MAX as f64,
    tiny: f32::MIN_POSITIVE as f64,
    precision: 24,
    least: -126,
};
const F64: Format = Format {
    epsilon: f64::EPSILON,
    most: f64::MAX,
    tiny: f64::MIN_POSITIVE,
    precision: 53,
    least: -1022,
};

impl Format {
    /// Returns the format of a float type; for other types, that of `f64`.
    pub fn of(ty: ScalarType) -> &'static Format {
        match ty {
            ScalarType::F16 => &F16,
            ScalarType::BF16 => &BF16,
            ScalarType::F32 => &F32,
            _ => &F64,
        }
    }

    /// Returns the grain if no order of evaluation rounds a number of this magnitude and grain, else
    /// [`INEXACT`].
    #[inline]
    pub fn keep(&self, magnitude: f64, grain: Grain) -> Grain {
        if grain == INEXACT || grain == ZERO {
            return grain;
        }
        let fits = exponent(magnitude) < grain - BIAS + self.precision;
        if fits && grain - BIAS >= self.least && magnitude <= self.most { grain } else { INEXACT }
    }

    /// Returns the `doubt` of an input.
    #[inline]
    fn plain(&self, x: f64) -> u64 {
        let size = x.abs();
        if size >= self.tiny && size <= f64::MAX {
            return pack(size, self.keep(size, grain(size)));
        }
        self.special(x)
    }

    /// As `plain`, for zeros, numbers below the normal ones (which devices may flush to zero), infinities and
    /// NaN.
    #[cold]
    fn special(&self, x: f64) -> u64 {
        if x == 0.0 {
            pack(0.0, ZERO)
        } else if x.is_nan() {
            pack(0.0, INEXACT)
        } else if x.is_infinite() {
            pack(f64::MAX, INEXACT)
        } else {
            pack(self.tiny / self.epsilon, INEXACT)
        }
    }
}

/// Returns the exponent of a positive normal number.
fn exponent(x: f64) -> i32 {
    (x.to_bits() >> 52) as i32 - 1023
}

/// Returns the largest power of two that divides a positive normal number.
fn grain(x: f64) -> Grain {
    let zeros = (x.to_bits() | 1 << 52).trailing_zeros().cast_signed();
    exponent(x) - 52 + zeros + BIAS
}

/// Returns the grain of a product.
#[inline]
pub(super) fn product(a: Grain, b: Grain) -> Grain {
    if a == ZERO || b == ZERO {
        ZERO
    } else if a == INEXACT || b == INEXACT {
        INEXACT
    } else {
        let sum = a + b - BIAS;
        if (1..ZERO).contains(&sum) { sum } else { INEXACT }
    }
}

/// Returns the grain of a quotient. Only divisions by powers of two have one; others are not correctly
/// rounded on every device.
#[inline]
pub(super) fn quotient(a: Grain, y: f64) -> Grain {
    let power = y.is_normal() && y.to_bits() & ((1 << 52) - 1) == 0;
    if a == ZERO && y != 0.0 && !y.is_nan() {
        ZERO
    } else if power && a != INEXACT && a != ZERO {
        (a - exponent(y.abs())).clamp(INEXACT, ZERO - 1)
    } else {
        INEXACT
    }
}

#[expect(clippy::cast_sign_loss, reason = "grains are not negative")]
fn pack(magnitude: f64, grain: Grain) -> u64 {
    magnitude.to_bits() & !MASK | grain as u64
}

impl Cell {
    /// The input or constant `x`, which must be a number of the float type.
    pub fn float(ty: ScalarType, x: f64) -> Cell {
        Cell { bits: x.to_bits(), doubt: Format::of(ty).plain(x) }
    }

    /// Whether the number and the bound on its error are the same.
    pub fn same(self, other: Cell) -> bool {
        self.bits == other.bits && self.doubt == other.doubt
    }

    /// A float with the magnitude of its rounding errors.
    pub(super) fn inexact(x: f64, magnitude: f64) -> Cell {
        Cell::graded(x, magnitude, INEXACT)
    }

    pub(super) fn graded(x: f64, magnitude: f64, grain: Grain) -> Cell {
        Cell { bits: x.to_bits(), doubt: pack(magnitude, grain) }
    }

    /// An integer that fits its type.
    pub fn int(x: i64) -> Cell {
        Cell { bits: x.cast_unsigned(), doubt: 0 }
    }

    /// A truth value.
    pub fn bool(b: bool) -> Cell {
        Cell { bits: u64::from(b), doubt: 0 }
    }

    /// A truth value that may also be the opposite.
    pub(super) fn either(b: bool) -> Cell {
        let other = Spread::of(i128::from(b), &[i128::from(!b)]);
        Cell { doubt: other.0, ..Cell::bool(b) }
    }

    /// Returns an integer or truth value with the other values that it may have.
    #[must_use]
    pub(super) fn or(self, spread: Spread) -> Cell {
        Cell { doubt: spread.0, ..self }
    }

    /// The number `x` wrapped or rounded to `ty`.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "wrapping to the type is what is asked for"
    )]
    pub fn from_int(ty: ScalarType, x: i128) -> Cell {
        super::number::int_to(ty, x, x as i64)
    }

    /// A stored element with these bits, as for an input.
    #[inline]
    pub fn stored(ty: ScalarType, bits: u64) -> Cell {
        if ty.is_float() { Cell::float(ty, f64::from_bits(bits)) } else { Cell { bits, doubt: 0 } }
    }

    /// A result with these bits whose magnitude is its absolute value.
    #[inline]
    pub(super) fn rounded(ty: ScalarType, bits: u64) -> Cell {
        let cell = Cell::stored(ty, bits);
        if ty.is_float() { Cell { doubt: cell.doubt & !MASK, ..cell } } else { cell }
    }

    /// Returns the value of a float.
    pub fn as_float(self) -> f64 {
        f64::from_bits(self.bits)
    }

    /// Returns the magnitude of a float; infinite if it may be anything.
    pub fn mag(self) -> f64 {
        f64::from_bits(self.doubt & !MASK)
    }

    pub(super) fn grain(self) -> Grain {
        (self.doubt & MASK) as Grain
    }

    /// Whether a float has no error, whatever the order of evaluation.
    pub fn is_exact(self) -> bool {
        self.grain() != INEXACT
    }

    /// Returns the other values of an integer or truth value.
    pub fn spread(self) -> Spread {
        Spread(self.doubt)
    }

    /// Whether rounding decides an integer or truth value.
    pub fn is_doubtful(self) -> bool {
        self.doubt != 0
    }

    /// Returns the bits as a signed number: the value, except for large `u64`.
    pub fn as_int(self) -> i64 {
        self.bits.cast_signed()
    }

    /// Returns the value of a `bool`.
    pub fn is_true(self) -> bool {
        self.bits != 0
    }

    /// Returns the value of an integer or truth value of type `ty`.
    pub fn as_wide(self, ty: ScalarType) -> i128 {
        if ty == ScalarType::U64 { i128::from(self.bits) } else { i128::from(self.as_int()) }
    }

    /// A constant of the calculus.
    pub fn lit(lit: Lit) -> Cell {
        match lit.as_float() {
            Some(x) => Cell::float(lit.ty, x),
            None => Cell { bits: lit.bits, doubt: 0 },
        }
    }

    /// A literal of the surface language, rounded to `ty`.
    pub fn literal(ty: ScalarType, lit: Literal) -> Cell {
        match lit {
            Literal::Float(x) => Cell::float(ty, super::number::round(ty, x)),
            Literal::Int(x) => Cell::from_int(ty, x),
            Literal::Bool(b) => Cell::bool(b),
        }
    }

    /// Returns the number as a person writes it.
    pub fn show(self, ty: ScalarType) -> String {
        if ty.is_float() {
            format!("{:?}", self.as_float())
        } else if ty == ScalarType::Bool {
            self.is_true().to_string()
        } else {
            self.as_wide(ty).to_string()
        }
    }
}
