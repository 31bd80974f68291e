//! Random values of a shape, and simpler ones than a given one.

use super::Rng;
use crate::calculus::value::{Cell, Leaf, Shape, Value, number};
use crate::lang::types::ScalarType;
use rand::RngExt;

/// How a value's elements are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// 1, 2, 3, ...: every element another.
    Count,
    /// Whole numbers from -4 to 4.
    Small,
    /// Whole numbers from 0 to 2: fit for indices and counts, with many equal ones.
    Few,
    /// Integers of every magnitude, the extremes among them; floats as [`Style::Small`].
    Extreme,
    /// Floats with fractions and of several magnitudes; integers up to a few hundred.
    Real,
    /// Floats near one another; integers likewise.
    Near,
}

/// A value of that shape.
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
        (Style::Small, _) | (Style::Extreme, true) => whole(rng.random_range(-4..5)),
        (Style::Extreme, false) => match rng.random_range(0..4) {
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
    }
}

/// Values of the same shape that are easier to read, easiest first: everything 0, then one element at a time
/// nearer to 0.
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

/// Simpler elements, simplest first.
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
        for style in
            [Style::Count, Style::Small, Style::Few, Style::Extreme, Style::Real, Style::Near]
        {
            for ty in ScalarType::ALL {
                let shape =
                    Shape::array(3, Shape::Tuple(vec![Shape::Scalar(ty), Shape::Vector(2, ty)]));
                let v = value(&mut rng, &shape, style);
                assert_eq!(v.conforms(&shape), Ok(()));
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
