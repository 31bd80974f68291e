//! The meaning of the scalar operations: conversions and integers here, floats in [`float`](super::float).
//!
//! An integer operation whose operands may have several values gives the result for each of them. This module
//! knows nothing of arrays, and does not decide how errors are shown.

use super::cell::{Cell, Format};
use super::compare::Slack;
use super::float::{float, float_key, float_of, float_to, join};
use super::spread::Spread;
use crate::lang::typed::ScalarOp;
use crate::lang::types::ScalarType;

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

/// Returns `x` rounded to the float type `ty`; other types leave it as it is.
#[expect(clippy::cast_possible_truncation, reason = "rounding to f32 is what is asked for")]
pub fn round(ty: ScalarType, x: f64) -> f64 {
    match ty {
        ScalarType::F16 => half::f16::from_f64(x).to_f64(),
        // As on every device, where the number is an `f32` first.
        ScalarType::BF16 => half::bf16::from_f32(x as f32).to_f64(),
        ScalarType::F32 => f64::from(x as f32),
        _ => x,
    }
}

/// Returns `x` wrapped to the integer type `ty`, sign- or zero-extended.
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
        ScalarType::I64 | ScalarType::U64 => x,
        ScalarType::F16 | ScalarType::BF16 | ScalarType::F32 | ScalarType::F64 => x,
    })
}

/// Converts an integer, given as its value and as its low 64 bits.
pub(super) fn int_to(ty: ScalarType, wide: i128, low: i64) -> Cell {
    let x = match ty {
        ScalarType::F16 => round(ty, wide as f64),
        ScalarType::BF16 => round(ty, f64::from(wide as f32)),
        // Convert directly: the way through f64 would round twice.
        ScalarType::F32 => f64::from(wide as f32),
        ScalarType::F64 => wide as f64,
        ScalarType::Bool => return Cell::bool(wide != 0),
        _ => return wrap(ty, low),
    };
    let cell = Cell::float(ty, x);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a float that is too large differs from the integer, too"
    )]
    let back = x as i128;
    // Devices may round this conversion in another way.
    if back == wide { cell } else { Cell::inexact(x, cell.mag()) }
}

/// Applies `op` to operands of type `from` (for [`ScalarOp::Select`], the type of the last two) and returns a
/// result of type `to`. Unused operands are ignored. If `exact` is true, floats stay unrounded, except in
/// casts.
///
/// # Errors
/// See [`Fault`].
#[inline]
pub fn apply(
    op: ScalarOp,
    from: ScalarType,
    to: ScalarType,
    exact: bool,
    slack: &Slack,
    args: [Cell; 3],
) -> Result<Cell, Fault> {
    let [a, b, c] = args;
    match op {
        ScalarOp::Select => {
            let (chosen, other) = if a.is_true() { (b, c) } else { (c, b) };
            Ok(if a.is_doubtful() { either(to, slack, chosen, other) } else { chosen })
        }
        ScalarOp::Cast(_) if from.is_float() => Ok(float_to(from, to, slack, a)),
        ScalarOp::Cast(_) if to.is_float() => Ok(float_of(from, to, slack, a)),
        ScalarOp::OrderKey if from.is_float() => Ok(float_key(from, slack, a)),
        _ if from.is_float() => Ok(float(op, from, exact, slack, args)),
        _ if a.is_doubtful() || b.is_doubtful() || c.is_doubtful() => doubtful(op, from, to, args),
        ScalarOp::Cast(_) => Ok(int_to(to, a.as_wide(from), a.as_int())),
        _ => integer(op, from, a, b, c),
    }
}

/// Returns the result of a choice that rounding decides: `nominal`, or perhaps `other`.
pub fn either(ty: ScalarType, slack: &Slack, nominal: Cell, other: Cell) -> Cell {
    if ty.is_float() {
        return join(ty, slack, nominal, other);
    }
    let (x, y) = (nominal.as_wide(ty), other.as_wide(ty));
    nominal.or(nominal.spread().join(x, y, other.spread()))
}

/// Returns a number that may be anything, although the interpreter computes `nominal`.
pub fn anything(ty: ScalarType, nominal: Cell) -> Cell {
    if ty.is_float() {
        Cell::inexact(nominal.as_float(), super::cell::ANYTHING)
    } else {
        nominal.or(Spread::ANY)
    }
}

/// Most combinations of the operands' values that are tried one by one.
const COMBINATIONS: usize = 256;

/// Applies an integer operation to operands of which some may have several values.
#[cold]
fn doubtful(
    op: ScalarOp,
    from: ScalarType,
    to: ScalarType,
    args: [Cell; 3],
) -> Result<Cell, Fault> {
    let on = |[a, b, c]: [i128; 3]| {
        let [a, b, c] = [a, b, c].map(|x| Cell::from_int(from, x));
        match op {
            ScalarOp::Cast(_) => Ok(Cell::from_int(to, a.as_wide(from))),
            _ => integer(op, from, a, b, c),
        }
    };
    let wide = args.map(|a| a.as_wide(from));
    let nominal = on(wide)?;
    let used = |k: usize| k < op.arity();
    let of = |k: usize, listed: bool| -> Option<Vec<i128>> {
        let (x, spread) = (wide[k], args[k].spread());
        match (used(k), listed) {
            (false, _) => Some(vec![x]),
            (true, true) => spread.values(x),
            (true, false) => spread.ends(x).map(|(low, high)| vec![x, low, high]),
        }
    };
    let all = |listed: bool| -> Option<Vec<[i128; 3]>> {
        let (a, b, c) = (of(0, listed)?, of(1, listed)?, of(2, listed)?);
        if a.len() * b.len() * c.len() > COMBINATIONS {
            return None;
        }
        let rest = |a: i128| {
            let c = &c;
            b.iter().flat_map(move |b| c.iter().map(move |c| [a, *b, *c])).collect::<Vec<_>>()
        };
        Some(a.iter().flat_map(|a| rest(*a)).collect())
    };
    let value = nominal.as_wide(to);
    // If the operation has no value, neither has the program on a device that gets these operands.
    let results = |combinations: Vec<[i128; 3]>| -> Vec<i128> {
        combinations.into_iter().filter_map(|x| Some(on(x).ok()?.as_wide(to))).collect()
    };
    if let Some(combinations) = all(true) {
        return Ok(nominal.or(Spread::of(value, &results(combinations))));
    }
    // For these operations, the results lie between those at the ends of the ranges, unless some wrap around.
    let between = matches!(op, ScalarOp::Add | ScalarOp::Sub | ScalarOp::Mul);
    let ordered = matches!(op, ScalarOp::Min | ScalarOp::Max | ScalarOp::Clamp)
        || op == ScalarOp::OrderKey
        || matches!(op, ScalarOp::Lt | ScalarOp::Le | ScalarOp::Gt | ScalarOp::Ge);
    let unwrapped = |[a, b, _]: &[i128; 3]| {
        let exact = match op {
            ScalarOp::Add => a.checked_add(*b),
            ScalarOp::Sub => a.checked_sub(*b),
            _ => a.checked_mul(*b),
        };
        exact.is_some_and(|x| Cell::from_int(to, x).as_wide(to) == x)
    };
    Ok(match all(false).filter(|c| ordered || between && c.iter().all(unwrapped)) {
        Some(combinations) => {
            let all = results(combinations);
            let low = all.iter().fold(value, |low, x| low.min(*x));
            let high = all.iter().fold(value, |high, x| high.max(*x));
            nominal.or(Spread::range(value, low, high))
        }
        None if to == ScalarType::Bool => Cell::either(nominal.is_true()),
        None => nominal.or(Spread::ANY),
    })
}

/// Returns the distance from 1 to the next number of a float type.
pub fn epsilon(ty: ScalarType) -> f64 {
    Format::of(ty).epsilon
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
    let width = ty.bits() as u64;
    // The bits without the extension.
    let own = a.bits & (u64::MAX >> (64 - width));
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
        O::BitAnd => Cell::int(x & y),
        O::BitOr => Cell::int(x | y),
        O::BitXor => Cell::int(x ^ y),
        O::BitNot => w(!x),
        // A negative number of places is a large one without its sign.
        O::Shl if b.bits < width => w(x << b.bits),
        O::Shl => Cell::int(0),
        O::Shr if signed => Cell::int(x >> b.bits.min(width - 1)),
        O::Shr if b.bits < width => Cell { bits: a.bits >> b.bits, ..Cell::default() },
        O::Shr => Cell::int(0),
        O::Popcount => Cell::int(i64::from(own.count_ones())),
        O::Clz => Cell::int(i64::from(own.leading_zeros()) - (64 - width).cast_signed()),
        O::Ctz => Cell::int(i64::from(own.trailing_zeros()).min(width.cast_signed())),
        O::MulHi => w(upper_half(signed, width, a, b)),
        O::OrderKey if signed => Cell { bits: own ^ (1 << (width - 1)), ..Cell::default() },
        O::OrderKey => a,
        O::Neg => w(x.wrapping_neg()),
        O::Abs if signed => w(x.wrapping_abs()),
        O::Min => min(a, b),
        O::Max => max(a, b),
        O::Clamp => min(max(a, b), c),
        O::Fma => w(x.wrapping_mul(y).wrapping_add(c.as_int())),
        O::Sign if signed => Cell::int(x.signum()),
        O::Sign => Cell::bool(x != 0),
        // Integers are whole already; the type checker restricts the other functions to floats.
        // `apply` handles selections and casts.
        _ => a,
    })
}

/// Returns the upper half of a product of twice as many bits.
fn upper_half(signed: bool, width: u64, a: Cell, b: Cell) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "the upper half fits")]
    if signed {
        ((i128::from(a.as_int()) * i128::from(b.as_int())) >> width) as i64
    } else {
        ((u128::from(a.bits) * u128::from(b.bits)) >> width) as i64
    }
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
    use ScalarType::{F32, I8, I32, I64, U8, U64};

    fn ints(op: ScalarOp, ty: ScalarType, a: i128, b: i128) -> Result<i128, Fault> {
        let cells = [Cell::from_int(ty, a), Cell::from_int(ty, b), Cell::default()];
        apply(op, ty, ty, false, &Slack::of(1), cells).map(|c| c.as_wide(ty))
    }

    fn floats(op: ScalarOp, a: Cell, b: Cell) -> Cell {
        apply(op, F32, F32, false, &Slack::of(1), [a, b, Cell::default()])
            .expect("it has a value there")
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
    fn bits() {
        use ScalarOp as O;
        assert_eq!(ints(O::BitAnd, I8, -4, 7), Ok(4));
        assert_eq!(ints(O::BitOr, U8, 0xf0, 0x0f), Ok(255));
        assert_eq!(ints(O::BitXor, I32, -1, 5), Ok(-6));
        assert_eq!(ints(O::BitNot, U8, 0, 0), Ok(255));
        assert_eq!(ints(O::BitNot, I64, 0, 0), Ok(-1));
        assert_eq!(ints(O::Shl, I8, 3, 6), Ok(-64));
        assert_eq!(ints(O::Shl, U64, 1, 63), Ok(1 << 63));
        assert_eq!(ints(O::Shr, I8, -64, 4), Ok(-4));
        assert_eq!(ints(O::Shr, U8, 0x80, 4), Ok(8));
        // As many places as there are bits, more, and a negative number.
        for places in [32, 1000, -1, i128::from(i32::MIN)] {
            assert_eq!(ints(O::Shl, I32, -3, places), Ok(0));
            assert_eq!(ints(O::Shr, I32, -3, places), Ok(-1));
            assert_eq!(ints(O::Shr, I32, 3, places), Ok(0));
        }
        assert_eq!(ints(O::Shr, U8, 255, 8), Ok(0));
        assert_eq!(ints(O::Shr, U64, -1, 64), Ok(0));
        let count = |op, ty, a: i128| {
            let cells = [Cell::from_int(ty, a), Cell::default(), Cell::default()];
            apply(op, ty, I32, false, &Slack::of(1), cells).map(|c| c.as_wide(I32))
        };
        for (ty, x, ones, above, below) in [
            (I8, -1, 8, 0, 0),
            (I8, 0, 0, 8, 8),
            (U8, 0x50, 2, 1, 4),
            (I32, i128::from(i32::MIN), 1, 0, 31),
            (I64, -2, 63, 0, 1),
            (U64, 0, 0, 64, 64),
        ] {
            assert_eq!(count(O::Popcount, ty, x), Ok(ones), "{ty} {x}");
            assert_eq!(count(O::Clz, ty, x), Ok(above), "{ty} {x}");
            assert_eq!(count(O::Ctz, ty, x), Ok(below), "{ty} {x}");
        }
        let key = |ty, a| {
            let cells = [Cell::from_int(ty, a), Cell::default(), Cell::default()];
            let to = ty.unsigned();
            apply(O::OrderKey, ty, to, false, &Slack::of(1), cells).map(|c| c.as_wide(to))
        };
        assert_eq!([-128, -1, 0, 127].map(|x| key(I8, x)), [0, 127, 128, 255].map(Ok));
        assert_eq!([0, 255].map(|x| key(U8, x)), [0, 255].map(Ok));
        assert_eq!(key(I64, i128::from(i64::MIN)), Ok(0));
        assert_eq!(key(I64, i128::from(i64::MAX)), Ok(i128::from(u64::MAX)));
        assert_eq!(ints(O::MulHi, I8, -128, -128), Ok(64));
        assert_eq!(ints(O::MulHi, U8, 255, 255), Ok(254));
        assert_eq!(ints(O::MulHi, I64, -1, 1), Ok(-1));
        assert_eq!(ints(O::MulHi, U64, -1, -1), Ok(i128::from(u64::MAX - 1)));
    }

    #[test]
    fn floats_round_and_remember_what_cancelled() {
        let sum = floats(ScalarOp::Add, Cell::float(F32, 16_777_216.0), Cell::float(F32, 1.0));
        assert_eq!(sum.as_float(), 16_777_216.0);
        let third = floats(ScalarOp::Div, Cell::float(F32, 1.0), Cell::float(F32, 3.0));
        assert_eq!(third.as_float(), f64::from(1.0f32 / 3.0));
        assert_eq!(third.mag(), third.as_float());
        let gone = floats(ScalarOp::Sub, Cell::float(F32, 1000.0), Cell::float(F32, 1000.0));
        assert_eq!((gone.as_float(), gone.mag()), (0.0, 2000.0));
    }

    #[test]
    fn what_may_be_flushed_says_so() {
        let float = |x| Cell::float(F32, x);
        let tiny = f64::from(f32::MIN_POSITIVE);
        // exp(-88) is less than normal numbers: flushed, or taken for the least of them, it makes this difference.
        let small = floats(ScalarOp::Exp, float(-88.0), float(0.0));
        assert!(small.as_float() < tiny && small.as_float() > 0.0);
        let price = floats(ScalarOp::Mul, small, float(100.0));
        assert!(price.mag() * epsilon(F32) >= 100.0 * tiny);
        // So it does where it is rounded to 0; but a zero of zeros is one.
        assert!(floats(ScalarOp::Exp, float(-1000.0), float(0.0)).mag() * epsilon(F32) >= tiny);
        assert_eq!(floats(ScalarOp::Mul, float(0.0), float(5.0)).mag(), 0.0);
        // Beside normal numbers it does not count.
        assert_eq!(floats(ScalarOp::Add, small, float(1.0)).mag(), 1.0);
    }

    #[test]
    fn casts() {
        let cast = |from, to, c| {
            apply(ScalarOp::Cast(from), from, to, true, &Slack::of(1), [c; 3])
                .expect("it has a value there")
        };
        assert_eq!(cast(F32, I8, Cell::float(F32, -300.7)).as_int(), -128);
        assert_eq!(cast(F32, I32, Cell::float(F32, -3.7)).as_int(), -3);
        assert_eq!(cast(F32, U8, Cell::float(F32, f64::NAN)).as_int(), 0);
        assert_eq!(cast(I32, U8, Cell::int(-1)).as_int(), 255);
        assert_eq!(cast(I32, F32, Cell::int(16_777_217)).as_float(), 16_777_216.0);
        assert_eq!(cast(U64, F32, Cell::int(-1)).as_float(), 2f64.powi(64));
    }
}
