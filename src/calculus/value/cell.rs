//! One number with what is known of its error.
//!
//! A float is computed in `f64` together with its *magnitude*: the size of the terms it was made of, so that the
//! rounding errors of any legal order of evaluation are a small multiple of `eps * magnitude` even where the value
//! itself cancelled. It also has a *grain*: a power of two that all terms are multiples of. While magnitudes stay below
//! `2^24` grains (of an `f32`), every order of evaluation computes every sum and product without rounding, and the
//! value is *exact*: no error is allowed. Sums of small whole numbers are exact, and so are inputs.
//!
//! An integer or truth value has a [`Spread`]: the other values that rounding may legally make of it.

use super::spread::Spread;
use crate::calculus::scalar::Lit;
use crate::lang::typed::Literal;
use crate::lang::types::ScalarType;

/// A number of some [`ScalarType`] that its holder knows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cell {
    /// Floats of every type: the bits of the `f64`. Integers: sign- or zero-extended. Bool: 0 or 1.
    pub bits: u64,
    /// Of a float, magnitude and grain: the magnitude's `f64` with the grain in its last bits. Otherwise the spread.
    pub(super) doubt: u64,
}

/// A grain as it is kept: the exponent above [`BIAS`]; [`INEXACT`] and [`ZERO`] compare as they should in sums.
pub(super) type Grain = i32;

/// Not exact: no grain is known.
pub(super) const INEXACT: Grain = 0;

/// Zero, a multiple of everything.
pub(super) const ZERO: Grain = 0xfff;

const MASK: u64 = 0xfff;
const BIAS: i32 = 1200;

/// The magnitude of what may be anything.
pub(super) const ANYTHING: f64 = f64::INFINITY;

/// What is known of a float type.
#[derive(Clone, Copy, Debug)]
pub(super) struct Format {
    /// The distance from 1 to the next number.
    pub epsilon: f64,
    /// The largest number.
    pub most: f64,
    /// The least positive normal number.
    pub tiny: f64,
    /// Bits of a significand.
    precision: i32,
    /// The exponent of `tiny`.
    least: i32,
}

const F16: Format =
    Format { epsilon: 1.0 / 1024.0, most: 65504.0, tiny: 1.0 / 16384.0, precision: 11, least: -14 };
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
    /// Of a float type; of others, that of `f64`.
    pub fn of(ty: ScalarType) -> &'static Format {
        match ty {
            ScalarType::F16 => &F16,
            ScalarType::F32 => &F32,
            _ => &F64,
        }
    }

    /// The grain, if no order of evaluation rounds what has this magnitude and grain.
    #[inline]
    pub fn keep(&self, magnitude: f64, grain: Grain) -> Grain {
        if grain == INEXACT || grain == ZERO {
            return grain;
        }
        let fits = exponent(magnitude) < grain - BIAS + self.precision;
        if fits && grain - BIAS >= self.least && magnitude <= self.most { grain } else { INEXACT }
    }

    /// What is known of an input.
    #[inline]
    fn plain(&self, x: f64) -> u64 {
        let size = x.abs();
        if size >= self.tiny && size <= f64::MAX {
            return pack(size, self.keep(size, grain(size)));
        }
        self.special(x)
    }

    /// As `plain`, of zeros, of numbers less than normal ones, which devices may flush, of infinities and NaN.
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

/// The exponent of a positive normal number.
fn exponent(x: f64) -> i32 {
    (x.to_bits() >> 52) as i32 - 1023
}

/// The largest power of two that a positive normal number is a multiple of.
fn grain(x: f64) -> Grain {
    let zeros = (x.to_bits() | 1 << 52).trailing_zeros().cast_signed();
    exponent(x) - 52 + zeros + BIAS
}

/// The grain of products.
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

/// The grain of quotients by a power of two; other divisions are not correctly rounded on every device.
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
    /// The input or constant `x` of a float type, which it is a number of.
    pub fn float(ty: ScalarType, x: f64) -> Cell {
        Cell { bits: x.to_bits(), doubt: Format::of(ty).plain(x) }
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

    /// A truth value that may be the other one.
    pub(super) fn either(b: bool) -> Cell {
        let other = Spread::of(i128::from(b), &[i128::from(!b)]);
        Cell { doubt: other.0, ..Cell::bool(b) }
    }

    /// An integer or truth value with the others that it may be.
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

    /// The stored element with these bits, as an input is.
    #[inline]
    pub fn stored(ty: ScalarType, bits: u64) -> Cell {
        if ty.is_float() { Cell::float(ty, f64::from_bits(bits)) } else { Cell { bits, doubt: 0 } }
    }

    /// The result with these bits whose magnitude is that of its value.
    #[inline]
    pub(super) fn rounded(ty: ScalarType, bits: u64) -> Cell {
        let cell = Cell::stored(ty, bits);
        if ty.is_float() { Cell { doubt: cell.doubt & !MASK, ..cell } } else { cell }
    }

    /// The value, if the type is a float type.
    pub fn as_float(self) -> f64 {
        f64::from_bits(self.bits)
    }

    /// The magnitude, if the type is a float type; infinite of what may be anything.
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

    /// The other values of an integer or truth value.
    pub fn spread(self) -> Spread {
        Spread(self.doubt)
    }

    /// Whether rounding decides a truth value.
    pub fn is_doubtful(self) -> bool {
        self.doubt != 0
    }

    /// The bits as a signed number: the value, but for large `u64`.
    pub fn as_int(self) -> i64 {
        self.bits.cast_signed()
    }

    /// The value, if the type is `bool`.
    pub fn is_true(self) -> bool {
        self.bits != 0
    }

    /// The value of an integer or truth value of type `ty`.
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

    /// As a person writes it.
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
