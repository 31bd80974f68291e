//! Random values of a shape, and simpler ones than a given one.

use super::Rng;
use crate::calculus::value::{Cell, Leaf, Shape, Value, number};
use crate::lang::types::ScalarType;
use rand::RngExt;

/// The kind of a value's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// 1, 2, 3, ...: all elements differ.
    Count,
    /// Whole numbers from -4 to 4.
    Small,
    /// Whole numbers from 0 to 2: suitable as indices and counts, with many equal ones.
    Few,
    /// Integers of every magnitude, including the extremes; floats as [`Style::Small`].
    Extreme,
    /// Floats with fractions and of several magnitudes; integers up to a few hundred.
    Real,
    /// Floats near one another; integers likewise.
    Near,
    /// Floats of every kind: fractions, huge and tiny ones, infinities, NaN, -0.0, with repetitions; integers
    /// as [`Style::Extreme`].
    Wild,
    /// Floats at both ends of the range, where sums overflow and halves are rounded; integers as [`Style::Extreme`].
    Ends,
    /// Small whole numbers, infinities and NaN.
    Special,
}

/// Returns a random value of that shape.
pub fn value(rng: &mut Rng, shape: &Shape, style: Style) -> Value {
    let mut next = 0;
    let parts = shape.components().into_iter().map(|(ty, dims)| {
        let count = dims.iter().product();
        let cells: Vec<Cell> = (0..count)
            .map(|_| {
                next += 1;
                cell(rng, ty, style, next)
            })
            .collect();
        Value::cells(ty, &dims, cells)
    });
    Value::tuple(parts.collect::<Vec<_>>())
}

/// A number to draw values around.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constant {
    /// As an integer, truncated.
    pub int: i128,
    /// As a float.
    pub float: f64,
}

impl Constant {
    /// Returns an element as a constant.
    #[expect(clippy::cast_possible_truncation, reason = "near is what is wanted")]
    pub fn of(ty: ScalarType, c: Cell) -> Constant {
        match ty.is_float() {
            true => Constant { int: c.as_float() as i128, float: c.as_float() },
            false => Constant { int: c.as_wide(ty), float: c.as_wide(ty) as f64 },
        }
    }
}

/// Returns a value of that shape: numbers around these constants, their multiples, parts and roots, or small
/// ones.
pub fn around(rng: &mut Rng, shape: &Shape, constants: &[Constant]) -> Value {
    let parts = shape.components().into_iter().map(|(ty, dims)| {
        let cells: Vec<Cell> =
            (0..dims.iter().product()).map(|_| near(rng, ty, constants)).collect();
        Value::cells(ty, &dims, cells)
    });
    Value::tuple(parts.collect::<Vec<_>>())
}

fn near(rng: &mut Rng, ty: ScalarType, constants: &[Constant]) -> Cell {
    if ty == ScalarType::Bool || constants.is_empty() || rng.random_range(0..4) == 0 {
        return cell(rng, ty, Style::Small, 1);
    }
    let c = constants[rng.random_range(0..constants.len())];
    let sign = if ty.is_signed() && rng.random_range(0..3) == 0 { -1 } else { 1 };
    let (shape, off) = (rng.random_range(0..8), rng.random_range(-2..3));
    if ty.is_float() {
        let x = match shape {
            0 => c.float / 2.0,
            1 => c.float / 4.0,
            2 => c.float * 2.0,
            3 => c.float.abs().sqrt(),
            4 => c.float * (1.0 + f64::from(off) * 0.01),
            _ => c.float + f64::from(off),
        };
        return Cell::float(ty, number::round(ty, x * f64::from(sign)));
    }
    #[expect(clippy::cast_possible_truncation, reason = "near is what is wanted")]
    let x = match shape {
        0 => c.int / 2,
        1 => c.int / 4,
        2 => c.int.saturating_mul(2),
        3 => c.float.abs().sqrt() as i128,
        _ => c.int,
    };
    let x = x.saturating_add(i128::from(off)).saturating_mul(i128::from(sign));
    Cell::from_int(ty, x)
}

fn cell(rng: &mut Rng, ty: ScalarType, style: Style, next: i64) -> Cell {
    if ty == ScalarType::Bool {
        return Cell::bool(rng.random());
    }
    let unsigned = !ty.is_signed();
    let whole = |x: i64| Cell::from_int(ty, i128::from(if unsigned { x.abs() } else { x }));
    let float = |x: f64| Cell::float(ty, number::round(ty, x));
    match (style, ty.is_float()) {
        (Style::Count, _) => whole(next),
        (Style::Few, _) => whole(rng.random_range(0..3)),
        (Style::Special, true) if rng.random_range(0..3) == 0 => float(no_number(rng)),
        (Style::Small | Style::Special, _) | (Style::Extreme, true) => {
            whole(rng.random_range(-4..5))
        }
        (Style::Extreme | Style::Wild | Style::Ends, false) => match rng.random_range(0..4) {
            0 => whole(rng.random_range(-4..5)),
            1 => whole(i64::MAX),
            2 => whole(1 << rng.random_range(0..63)),
            _ => whole(rng.random()),
        },
        (Style::Real, true) => {
            let scale = [0.125, 1.0, 30.0][rng.random_range(0..3)];
            let x: f64 = rng.random_range(-4.0..4.0);
            float(x * scale)
        }
        (Style::Real, false) => whole(rng.random_range(-100..300)),
        (Style::Near, true) => float(2.0 + f64::from(rng.random_range(0..1000)) / 8192.0),
        (Style::Near, false) => whole(rng.random_range(5..8)),
        (Style::Wild, true) => float(wild(rng, ty)),
        (Style::Ends, true) => float(at_an_end(rng, ty)),
    }
}

fn no_number(rng: &mut Rng) -> f64 {
    [f64::NAN, f64::INFINITY, f64::NEG_INFINITY][rng.random_range(0..3)]
}

/// Returns the exponents of a type's numbers, including those below the normal ones; the last is one too
/// large.
fn exponents(ty: ScalarType) -> (i32, i32) {
    match ty {
        ScalarType::F16 => (-24, 16),
        ScalarType::BF16 => (-133, 128),
        ScalarType::F32 => (-149, 128),
        _ => (-1074, 1024),
    }
}

/// One of the largest or of the smallest floats.
fn at_an_end(rng: &mut Rng, ty: ScalarType) -> f64 {
    let (least, most) = exponents(ty);
    let sign = if rng.random() { 1.0 } else { -1.0 };
    let exponent = if rng.random() { most - 1 } else { least + rng.random_range(0..4) };
    // `powi` would give 0 below the normal numbers, so use `exp2`.
    sign * rng.random_range(1.0..1.9) * f64::from(exponent).exp2()
}

/// A float of any kind.
fn wild(rng: &mut Rng, ty: ScalarType) -> f64 {
    let (least, most) = exponents(ty);
    let sign = if rng.random() { 1.0 } else { -1.0 };
    // `powi` would give 0 below the normal numbers, so `exp2` is used.
    match rng.random_range(0..8) {
        0 => no_number(rng),
        1 => -0.0,
        2 => f64::from(rng.random_range(-4..5)),
        3 => rng.random_range(-4.0..4.0),
        4 => {
            sign * rng.random_range(1.0..2.0) * f64::from(rng.random_range(least..least / 2)).exp2()
        }
        5 => sign * rng.random_range(1.0..2.0) * f64::from(rng.random_range(most / 2..most)).exp2(),
        // Sums of these round.
        _ => {
            sign * f64::from(rng.random_range(1..64)) * 2f64.powi(rng.random_range(-12..24) / 3)
                / 3.0
        }
    }
}

/// Returns values of the same shape that are easier to read, easiest first: all zeros, then values with one
/// element nearer to 0.
pub fn simpler(v: &Value) -> Vec<Value> {
    let mut out = vec![];
    let cells: Vec<Vec<Cell>> = v
        .leaves()
        .iter()
        .map(|leaf| {
            let mut cells = vec![];
            leaf.for_each(&mut |c| cells.push(c));
            cells
        })
        .collect();
    let with = |part: usize, at: Option<usize>, cell: Cell| {
        let parts = v.leaves().iter().zip(&cells).enumerate().map(|(i, (leaf, cells))| {
            let mut cells = cells.clone();
            match at {
                _ if i != part => {}
                Some(k) => cells[k] = cell,
                None => cells.fill(cell),
            }
            rebuilt(leaf, cells)
        });
        Value::tuple(parts.collect::<Vec<_>>())
    };
    for (part, leaf) in v.leaves().iter().enumerate() {
        if cells[part].iter().any(|c| !is_zero(*c, leaf.ty())) {
            out.push(with(part, None, Cell::from_int(leaf.ty(), 0)));
        }
    }
    for (part, leaf) in v.leaves().iter().enumerate() {
        for (at, cell) in cells[part].iter().enumerate() {
            out.extend(nearer(*cell, leaf.ty()).into_iter().map(|c| with(part, Some(at), c)));
        }
    }
    out
}

fn rebuilt(leaf: &Leaf, cells: Vec<Cell>) -> Value {
    Value::cells(leaf.ty(), &leaf.shape(), cells)
}

fn is_zero(c: Cell, ty: ScalarType) -> bool {
    if ty.is_float() { c.as_float() == 0.0 } else { c.bits == 0 }
}

/// Returns simpler elements, simplest first.
fn nearer(c: Cell, ty: ScalarType) -> Vec<Cell> {
    if ty.is_float() {
        let x = c.as_float();
        let candidates =
            [0.0, 1.0, 2.0, -1.0, x.round(), (x / 2.0).round(), (x * 8.0).round() / 8.0];
        let complexity = |x: f64| (x.fract() != 0.0, x.abs() + if x < 0.0 { 0.5 } else { 0.0 });
        let simple = candidates.into_iter().filter(|y| complexity(*y) < complexity(x));
        return simple.map(|y| Cell::float(ty, number::round(ty, y))).collect();
    }
    let x = c.as_wide(ty);
    let complexity = |x: i128| (x.unsigned_abs(), x < 0);
    let simple = [0, 1, 2, -1, x / 2, -x, x - x.signum()].into_iter();
    let simple = simple.filter(|y| complexity(*y) < complexity(x) && (*y >= 0 || ty.is_signed()));
    simple.map(|y| Cell::from_int(ty, y)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_style_fits_every_shape() {
        let mut rng = super::super::rng(1, "values", 0);
        for style in [
            Style::Count,
            Style::Small,
            Style::Few,
            Style::Extreme,
            Style::Real,
            Style::Near,
            Style::Wild,
            Style::Special,
        ] {
            for ty in ScalarType::ALL {
                let shape =
                    Shape::array(3, Shape::Tuple(vec![Shape::Scalar(ty), Shape::Vector(2, ty)]));
                let v = value(&mut rng, &shape, style);
                assert_eq!(v.conforms(&shape), Ok(()));
            }
        }
    }

    #[test]
    fn wild_floats_are_of_every_kind() {
        let mut rng = super::super::rng(1, "values", 0);
        for ty in [ScalarType::F16, ScalarType::BF16, ScalarType::F32, ScalarType::F64] {
            let xs =
                value(&mut rng, &Shape::array(2000, Shape::Scalar(ty)), Style::Wild).to_floats();
            let normal = match ty {
                ScalarType::F16 => half::f16::MIN_POSITIVE.to_f64(),
                ScalarType::F32 | ScalarType::BF16 => f64::from(f32::MIN_POSITIVE),
                _ => f64::MIN_POSITIVE,
            };
            let kinds: [fn(f64, f64) -> bool; 6] = [
                |x, _| x.is_nan(),
                |x, _| x == f64::INFINITY,
                |x, _| x == 0.0 && x.is_sign_negative(),
                |x, normal| x != 0.0 && x.abs() < normal,
                |x, normal| x.is_finite() && x.abs() > normal.sqrt().recip(),
                |x, _| x.fract() != 0.0 && x.abs() > 0.1,
            ];
            for (i, is) in kinds.iter().enumerate() {
                let seen = xs.iter().filter(|x| is(**x, normal)).count();
                assert!(seen >= 10, "{ty}: {seen} of kind {i}");
            }
        }
    }

    #[test]
    fn simplification_ends_in_zeros() {
        let shape = Shape::Tuple(vec![
            Shape::array(2, Shape::Scalar(ScalarType::F32)),
            Shape::Scalar(ScalarType::I64),
        ]);
        let mut v = value(&mut super::super::rng(1, "values", 1), &shape, Style::Real);
        let mut steps = 0;
        while let Some(next) = simpler(&v).pop() {
            v = next;
            steps += 1;
            assert!(steps < 10_000, "{v}");
        }
        assert_eq!(v.to_floats(), [0.0; 3]);
    }
}
