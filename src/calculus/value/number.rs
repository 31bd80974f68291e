//! One number, and what the scalar operations mean.
//!
//! A float is computed in `f64` together with its *magnitude*: the size of the terms it was made
//! from, so that rounding errors of any legal order of evaluation are a small multiple of
//! `eps * magnitude` even where the value itself cancelled. A leaf has `m = |x|`; then
//! `m(a ± b) = m(a) + m(b)`, `m(a * b) = m(a) m(b)`, `m(a / b) = m(a) m(b) / b²`,
//! `m(f(x)) = |f(x)| + |f'(x)| m(x)`; what selects (`min`, `max`, `clamp`, `select`, `abs`) keeps the
//! magnitude of what it selects; what jumps (`floor`, `ceil`, `round`, `sign`) does not account for
//! the jump. A result smaller than normal numbers has the magnitude of which these are one `eps`, since devices may
//! flush it. Values are rounded to their type after every operation unless the caller asks for
//! `exact` (inside reductions), and magnitudes with them, so that `m = |x|` survives rounding.
//!
//! Never knows of arrays, and never decides what an error looks like to a person.

use super::compare::range;
use crate::calculus::scalar::Lit;
use crate::lang::typed::{Literal, ScalarOp};
use crate::lang::types::ScalarType;

/// A number of some [`ScalarType`] that its holder knows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cell {
    /// Floats of every type: the bits of the `f64`. Integers: sign- or zero-extended. Bool: 0 or 1.
    pub bits: u64,
    /// For floats, the magnitude; otherwise 0.
    pub mag: f64,
}

/// Why an operation has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Integer `/` or `%`.
    #[error("integer division by zero")]
    DivisionByZero,
    /// Integer `**`.
    #[error("integer power with a negative exponent")]
    NegativeExponent,
}

impl Cell {
    /// A float with magnitude `|x|`, not rounded.
    pub fn float(x: f64) -> Cell {
        Cell { bits: x.to_bits(), mag: x.abs() }
    }

    /// An integer that fits its type.
    pub fn int(x: i64) -> Cell {
        Cell { bits: x.cast_unsigned(), mag: 0.0 }
    }

    /// A truth value.
    pub fn bool(b: bool) -> Cell {
        Cell { bits: u64::from(b), mag: 0.0 }
    }

    /// The number `x` wrapped or rounded to `ty`.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "wrapping to the type is what is asked for"
    )]
    pub fn from_int(ty: ScalarType, x: i128) -> Cell {
        int_to(ty, x, x as i64)
    }

    /// The stored element with these bits: its magnitude is `|x|`.
    pub fn stored(ty: ScalarType, bits: u64) -> Cell {
        let mag = if ty.is_float() { f64::from_bits(bits).abs() } else { 0.0 };
        Cell { bits, mag }
    }

    /// The value, if the type is a float type.
    pub fn as_float(self) -> f64 {
        f64::from_bits(self.bits)
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
            Some(x) => Cell::float(x),
            None => Cell { bits: lit.bits, mag: 0.0 },
        }
    }

    /// A literal of the surface language, rounded to `ty`.
    pub fn literal(ty: ScalarType, lit: Literal) -> Cell {
        match lit {
            Literal::Float(x) => Cell::float(round(ty, x)),
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

/// `x` rounded to the float type `ty` (other types: as it is).
#[expect(clippy::cast_possible_truncation, reason = "rounding to f32 is what is asked for")]
pub fn round(ty: ScalarType, x: f64) -> f64 {
    match ty {
        ScalarType::F16 => half::f16::from_f64(x).to_f64(),
        ScalarType::F32 => f64::from(x as f32),
        _ => x,
    }
}

/// `x` wrapped to the integer type `ty`, sign- or zero-extended.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "wrapping to the type is what is asked for"
)]
fn wrap(ty: ScalarType, x: i64) -> Cell {
    Cell::int(match ty {
        ScalarType::I8 => i64::from(x as i8),
        ScalarType::I16 => i64::from(x as i16),
        ScalarType::I32 => i64::from(x as i32),
        ScalarType::U8 => i64::from(x as u8),
        ScalarType::U16 => i64::from(x as u16),
        ScalarType::U32 => i64::from(x as u32),
        ScalarType::Bool => i64::from(x != 0),
        ScalarType::I64 | ScalarType::U64 | ScalarType::F16 | ScalarType::F32 | ScalarType::F64 => {
            x
        }
    })
}

/// Converts an integer, given as its value and as its low 64 bits.
#[expect(clippy::cast_precision_loss, reason = "rounding to the float type is what is asked for")]
fn int_to(ty: ScalarType, wide: i128, low: i64) -> Cell {
    match ty {
        ScalarType::F16 => Cell::float(round(ty, wide as f64)),
        // Directly: by way of f64 it would be rounded twice.
        ScalarType::F32 => Cell::float(f64::from(wide as f32)),
        ScalarType::F64 => Cell::float(wide as f64),
        ScalarType::Bool => Cell::bool(wide != 0),
        _ => wrap(ty, low),
    }
}

/// Truncates towards zero and saturates; NaN becomes 0.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturating truncation is what is asked for"
)]
fn float_to(ty: ScalarType, a: Cell) -> Cell {
    let x = a.as_float();
    Cell::int(match ty {
        ScalarType::F16 | ScalarType::F32 | ScalarType::F64 => {
            return finish(ty, false, x, a.mag);
        }
        ScalarType::Bool => return Cell::bool(x != 0.0),
        ScalarType::I8 => i64::from(x as i8),
        ScalarType::I16 => i64::from(x as i16),
        ScalarType::I32 => i64::from(x as i32),
        ScalarType::I64 => x as i64,
        ScalarType::U8 => i64::from(x as u8),
        ScalarType::U16 => i64::from(x as u16),
        ScalarType::U32 => i64::from(x as u32),
        ScalarType::U64 => (x as u64).cast_signed(),
    })
}

fn finish(ty: ScalarType, exact: bool, x: f64, m: f64) -> Cell {
    // A device may flush what is smaller than normal numbers, and relaxed functions are no better there: an error that a
    // later factor makes larger. What was made of zeros alone (`m` is 0) is a zero everywhere.
    let tiny = range(ty).1;
    let m = if x.abs() < tiny && m > 0.0 { m.max(tiny / epsilon(ty)) } else { m };
    if exact || ty == ScalarType::F64 {
        return Cell { bits: x.to_bits(), mag: m };
    }
    let rounded = round(ty, m);
    Cell {
        bits: round(ty, x).to_bits(),
        // A magnitude beyond the type's range must not make every result acceptable.
        mag: if rounded.is_finite() { rounded } else { m },
    }
}

/// How many operands an operation has.
pub fn arity(op: ScalarOp) -> usize {
    use ScalarOp as O;
    match op {
        O::Add | O::Sub | O::Mul | O::Div | O::Rem | O::Pow => 2,
        O::Eq | O::Ne | O::Lt | O::Le | O::Gt | O::Ge | O::And | O::Or => 2,
        O::Min | O::Max | O::Atan2 => 2,
        O::Not | O::Neg | O::Abs | O::Sqrt | O::Rsqrt | O::Exp | O::Log => 1,
        O::Sin | O::Cos | O::Tan | O::Atan | O::Floor | O::Ceil | O::Round => 1,
        O::Sign | O::Cast(_) => 1,
        O::Fma | O::Clamp | O::Select => 3,
    }
}

/// `op` on operands of type `from` (of [`ScalarOp::Select`], the last two), giving type `to`;
/// unused operands are ignored. Floats stay unrounded when `exact`, casts excepted.
///
/// # Errors
/// See [`Fault`].
#[inline]
pub fn apply(
    op: ScalarOp,
    from: ScalarType,
    to: ScalarType,
    exact: bool,
    [a, b, c]: [Cell; 3],
) -> Result<Cell, Fault> {
    match op {
        ScalarOp::Select => Ok(if a.is_true() { b } else { c }),
        ScalarOp::Cast(_) if from.is_float() => Ok(float_to(to, a)),
        ScalarOp::Cast(_) => Ok(int_to(to, a.as_wide(from), a.as_int())),
        _ if from.is_float() => Ok(float(op, from, exact, a, b, c)),
        _ => integer(op, from, a, b, c),
    }
}

fn float(op: ScalarOp, ty: ScalarType, exact: bool, a: Cell, b: Cell, c: Cell) -> Cell {
    use ScalarOp as O;
    let (x, y, z) = (a.as_float(), b.as_float(), c.as_float());
    let done = |v: f64, m: f64| finish(ty, exact, v, m);
    // |f(x)| + |f'(x)| m(x)
    let smooth = |v: f64, slope: f64| done(v, v.abs() + times(slope.abs(), a.mag));
    match op {
        O::Add => done(x + y, a.mag + b.mag),
        O::Sub => done(x - y, a.mag + b.mag),
        O::Mul => done(x * y, a.mag * b.mag),
        O::Div => done(x / y, (a.mag / y.abs()) * (b.mag / y.abs())),
        O::Rem => done(x % y, a.mag + times((x / y).trunc().abs(), b.mag)),
        O::Pow => {
            let v = x.powf(y);
            let base = times((y / x).abs(), a.mag);
            let exponent = times(x.abs().ln().abs(), b.mag);
            done(v, v.abs() * (1.0 + base + exponent))
        }
        O::Eq => Cell::bool(x == y),
        O::Ne => Cell::bool(x != y),
        O::Lt => Cell::bool(x < y),
        O::Le => Cell::bool(x <= y),
        O::Gt => Cell::bool(x > y),
        O::Ge => Cell::bool(x >= y),
        O::And => Cell::bool(x != 0.0 && y != 0.0),
        O::Or => Cell::bool(x != 0.0 || y != 0.0),
        O::Not => Cell::bool(x == 0.0),
        O::Neg => done(-x, a.mag),
        O::Abs => done(x.abs(), a.mag),
        O::Min => min(a, b),
        O::Max => max(a, b),
        O::Clamp => min(max(a, b), c),
        O::Sqrt => {
            let v = x.sqrt();
            // Near 0 the slope has no bound, but an error d of the argument makes at most sqrt(d).
            let error = (a.mag / (2.0 * v)).min((a.mag / epsilon(ty)).sqrt());
            done(v, v + if a.mag == 0.0 { 0.0 } else { error })
        }
        O::Rsqrt => {
            let v = x.sqrt().recip();
            smooth(v, v / (2.0 * x))
        }
        // Never 0, though it may be rounded to that.
        O::Exp => smooth(x.exp(), x.exp().max(f64::MIN_POSITIVE)),
        O::Log => smooth(x.ln(), x.recip()),
        O::Sin => smooth(x.sin(), x.cos()),
        O::Cos => smooth(x.cos(), x.sin()),
        O::Tan => smooth(x.tan(), 1.0 + x.tan().powi(2)),
        O::Atan => smooth(x.atan(), (1.0 + x * x).recip()),
        O::Atan2 => {
            let (v, r2) = (x.atan2(y), x * x + y * y);
            done(v, v.abs() + times(y.abs() / r2, a.mag) + times(x.abs() / r2, b.mag))
        }
        O::Floor => done(x.floor(), a.mag.max(x.floor().abs())),
        O::Ceil => done(x.ceil(), a.mag.max(x.ceil().abs())),
        O::Round => done(x.round(), a.mag.max(x.round().abs())),
        O::Fma if ty == ScalarType::F64 => done(x.mul_add(y, z), a.mag * b.mag + c.mag),
        // The product of two floats is exact in f64.
        O::Fma => done(x * y + z, a.mag * b.mag + c.mag),
        O::Sign => Cell::float(if x > 0.0 {
            1.0
        } else if x < 0.0 {
            -1.0
        } else {
            0.0
        }),
        // Taken by `apply`.
        O::Select | O::Cast(_) => a,
    }
}

/// A product in which 0 wins over infinity: no term, no error.
fn times(a: f64, b: f64) -> f64 {
    if a == 0.0 || b == 0.0 { 0.0 } else { a * b }
}

/// As `fmin`: a NaN loses.
fn min(a: Cell, b: Cell) -> Cell {
    let (x, y) = (a.as_float(), b.as_float());
    if x <= y || y.is_nan() { a } else { b }
}

/// As `fmax`: a NaN loses.
fn max(a: Cell, b: Cell) -> Cell {
    let (x, y) = (a.as_float(), b.as_float());
    if x >= y || y.is_nan() { a } else { b }
}

/// The distance from 1 to the next number of a float type.
pub fn epsilon(ty: ScalarType) -> f64 {
    match ty {
        ScalarType::F16 => half::f16::EPSILON.to_f64(),
        ScalarType::F32 => f64::from(f32::EPSILON),
        _ => f64::EPSILON,
    }
}

fn integer(op: ScalarOp, ty: ScalarType, a: Cell, b: Cell, c: Cell) -> Result<Cell, Fault> {
    use ScalarOp as O;
    let signed = ty.is_signed();
    let (x, y) = (a.as_int(), b.as_int());
    let less = |p: Cell, q: Cell| {
        if signed { p.as_int() < q.as_int() } else { p.bits < q.bits }
    };
    let min = |p: Cell, q: Cell| if less(q, p) { q } else { p };
    let max = |p: Cell, q: Cell| if less(p, q) { q } else { p };
    let w = |v: i64| wrap(ty, v);
    let nonzero = |d: i64| {
        if d == 0 { Err(Fault::DivisionByZero) } else { Ok(()) }
    };
    Ok(match op {
        O::Add => w(x.wrapping_add(y)),
        O::Sub => w(x.wrapping_sub(y)),
        O::Mul => w(x.wrapping_mul(y)),
        O::Div => {
            nonzero(y)?;
            w(if signed { x.wrapping_div(y) } else { (a.bits / b.bits).cast_signed() })
        }
        O::Rem => {
            nonzero(y)?;
            w(if signed { x.wrapping_rem(y) } else { (a.bits % b.bits).cast_signed() })
        }
        O::Pow => {
            if signed && y < 0 {
                return Err(Fault::NegativeExponent);
            }
            w(wrapping_power(x, b.bits))
        }
        O::Eq => Cell::bool(x == y),
        O::Ne => Cell::bool(x != y),
        O::Lt => Cell::bool(less(a, b)),
        O::Le => Cell::bool(!less(b, a)),
        O::Gt => Cell::bool(less(b, a)),
        O::Ge => Cell::bool(!less(a, b)),
        O::And => Cell::bool(x != 0 && y != 0),
        O::Or => Cell::bool(x != 0 || y != 0),
        O::Not => Cell::bool(x == 0),
        O::Neg => w(x.wrapping_neg()),
        O::Abs if signed => w(x.wrapping_abs()),
        O::Min => min(a, b),
        O::Max => max(a, b),
        O::Clamp => min(max(a, b), c),
        O::Fma => w(x.wrapping_mul(y).wrapping_add(c.as_int())),
        O::Sign if signed => Cell::int(x.signum()),
        O::Sign => Cell::bool(x != 0),
        // Whole numbers already; the checker keeps the other functions to floats.
        O::Abs | O::Floor | O::Ceil | O::Round => a,
        O::Sqrt | O::Rsqrt | O::Exp | O::Log | O::Sin | O::Cos | O::Tan | O::Atan | O::Atan2 => a,
        // Taken by `apply`.
        O::Select | O::Cast(_) => a,
    })
}

fn wrapping_power(mut base: i64, mut exponent: u64) -> i64 {
    let mut out = 1i64;
    while exponent > 0 {
        if exponent & 1 == 1 {
            out = out.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        exponent >>= 1;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use ScalarType::{F32, I8, I32, U8, U64};

    fn ints(op: ScalarOp, ty: ScalarType, a: i128, b: i128) -> Result<i128, Fault> {
        let cells = [Cell::from_int(ty, a), Cell::from_int(ty, b), Cell::default()];
        apply(op, ty, ty, false, cells).map(|c| c.as_wide(ty))
    }

    fn floats(op: ScalarOp, a: Cell, b: Cell) -> Cell {
        apply(op, F32, F32, false, [a, b, Cell::default()]).unwrap()
    }

    #[test]
    fn integers_wrap() {
        assert_eq!(ints(ScalarOp::Add, I8, 127, 1), Ok(-128));
        assert_eq!(ints(ScalarOp::Sub, U8, 0, 1), Ok(255));
        assert_eq!(ints(ScalarOp::Mul, I32, 65536, 65536), Ok(0));
        assert_eq!(ints(ScalarOp::Div, I8, -128, -1), Ok(-128));
        assert_eq!(ints(ScalarOp::Div, I32, -7, 2), Ok(-3));
        assert_eq!(ints(ScalarOp::Rem, I32, -7, 2), Ok(-1));
        assert_eq!(ints(ScalarOp::Div, U64, -1, 2), Ok((1 << 63) - 1));
        assert_eq!(ints(ScalarOp::Pow, I32, 3, 4), Ok(81));
        assert_eq!(ints(ScalarOp::Div, I32, 1, 0), Err(Fault::DivisionByZero));
        assert_eq!(ints(ScalarOp::Rem, U8, 1, 0), Err(Fault::DivisionByZero));
        assert_eq!(ints(ScalarOp::Pow, I32, 1, -1), Err(Fault::NegativeExponent));
        assert_eq!(ints(ScalarOp::Max, U64, -1, 1), Ok(i128::from(u64::MAX)));
    }

    #[test]
    fn floats_round_and_remember_what_cancelled() {
        let sum = floats(ScalarOp::Add, Cell::float(16_777_216.0), Cell::float(1.0));
        assert_eq!(sum.as_float(), 16_777_216.0);
        let third = floats(ScalarOp::Div, Cell::float(1.0), Cell::float(3.0));
        assert_eq!(third.as_float(), f64::from(1.0f32 / 3.0));
        assert_eq!(third.mag, third.as_float());
        let gone = floats(ScalarOp::Sub, Cell::float(1000.0), Cell::float(1000.0));
        assert_eq!((gone.as_float(), gone.mag), (0.0, 2000.0));
    }

    #[test]
    fn what_may_be_flushed_says_so() {
        let float = Cell::float;
        let tiny = f64::from(f32::MIN_POSITIVE);
        // exp(-88) is less than normal numbers: flushed, or taken for the least of them, it makes this difference.
        let small = floats(ScalarOp::Exp, float(-88.0), float(0.0));
        assert!(small.as_float() < tiny && small.as_float() > 0.0);
        let price = floats(ScalarOp::Mul, small, float(100.0));
        assert!(price.mag * epsilon(F32) >= 100.0 * tiny);
        // So it does where it is rounded to 0; but a zero of zeros is one.
        assert!(floats(ScalarOp::Exp, float(-1000.0), float(0.0)).mag * epsilon(F32) >= tiny);
        assert_eq!(floats(ScalarOp::Mul, float(0.0), float(5.0)).mag, 0.0);
        // Beside normal numbers it does not count.
        assert_eq!(floats(ScalarOp::Add, small, float(1.0)).mag, 1.0);
    }

    #[test]
    fn casts() {
        let cast = |from, to, c| apply(ScalarOp::Cast(from), from, to, true, [c; 3]).unwrap();
        assert_eq!(cast(F32, I8, Cell::float(-300.7)).as_int(), -128);
        assert_eq!(cast(F32, I32, Cell::float(-3.7)).as_int(), -3);
        assert_eq!(cast(F32, U8, Cell::float(f64::NAN)).as_int(), 0);
        assert_eq!(cast(I32, U8, Cell::int(-1)).as_int(), 255);
        assert_eq!(cast(I32, F32, Cell::int(16_777_217)).as_float(), 16_777_216.0);
        assert_eq!(cast(U64, F32, Cell::int(-1)).as_float(), 2f64.powi(64));
    }
}
