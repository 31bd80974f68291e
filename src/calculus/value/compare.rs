//! Comparison of a result with the reference.
//!
//! Integers and truth values must equal the reference, or one of the values that rounding may make of it. An
//! exact float must be equal. Any other float may be off by `rtol * magnitude + tiny`, where `rtol = eps *
//! (ulps + per_root * sqrt(terms))`. The rounding errors of a sum in the device's order grow like the square
//! root of the number of terms, while a lost element shows as `1/terms` of the magnitude. `tiny` is the least
//! normal number, because devices may flush smaller ones. NaN equals NaN, -0 equals 0, and an infinity equals
//! itself and the numbers that the type may round to it.

use super::cell::{ANYTHING, Format};
use super::number::epsilon;
use super::{Cell, Leaf, Value, decode};
use crate::lang::types::ScalarType;

/// The allowed error of a float.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Units of `eps * magnitude`, whatever the number of terms.
    pub ulps: f64,
    /// Additional units for each square root of the number of terms.
    pub per_root: f64,
    /// The length of the longest reduction that an element depends on.
    pub terms: u64,
}

impl Tolerance {
    /// Returns the default for a component of type `ty`: half a unit for each root, plus 4 units for half
    /// precision and 64 units for other types. With this, a sum of `f32` reveals one lost or doubled element
    /// of average size up to 40 000 terms, and a sum of `f16` up to 100.
    pub fn of(ty: ScalarType, terms: u64) -> Tolerance {
        let (ulps, per_root) = match ty {
            ScalarType::F16 | ScalarType::BF16 => (4.0, 0.5),
            _ => (64.0, 0.5),
        };
        Tolerance { ulps, per_root, terms }
    }

    /// Returns the relative error allowed to a float type.
    pub fn relative(&self, ty: ScalarType) -> f64 {
        epsilon(ty) * (self.ulps + self.per_root * (self.terms as f64).sqrt())
    }

    /// Returns how far a result may be off from this element; 0 for types other than floats.
    pub fn slack(&self, ty: ScalarType, element: &Cell) -> f64 {
        if !ty.is_float() || element.is_exact() {
            0.0
        } else {
            self.relative(ty) * element.mag() + range(ty).1
        }
    }
}

/// The relative errors that a program's results may have by default. The interpreter treats numbers within
/// them as equal.
#[derive(Clone, Copy, Debug)]
pub struct Slack {
    f16: f64,
    bf16: f64,
    f32: f64,
    f64: f64,
}

impl Slack {
    /// Returns the errors for reductions of up to `terms` terms.
    pub fn of(terms: u64) -> Slack {
        let relative = |ty| Tolerance::of(ty, terms).relative(ty);
        Slack {
            f16: relative(ScalarType::F16),
            bf16: relative(ScalarType::BF16),
            f32: relative(ScalarType::F32),
            f64: relative(ScalarType::F64),
        }
    }

    /// Returns the error for a float type.
    #[inline]
    pub fn relative(&self, ty: ScalarType) -> f64 {
        match ty {
            ScalarType::F16 => self.f16,
            ScalarType::BF16 => self.bf16,
            ScalarType::F32 => self.f32,
            _ => self.f64,
        }
    }
}

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Whether every element is within its tolerance.
    pub ok: bool,
    /// The largest `|got - expected| / max(|expected|, eps * magnitude)` of a float; infinite if only one of
    /// the two is finite. For integers, 1 if one differs.
    pub max_rel_err: f64,
    /// Component and row-major index of that element; `None` when all are equal.
    pub worst: Option<(usize, usize)>,
    /// Number of elements out of tolerance.
    pub mismatches: usize,
    /// The first of them as text, or what is wrong with the result as a whole.
    pub first: Option<String>,
}

impl Comparison {
    /// Nothing differs.
    pub fn clean() -> Comparison {
        Comparison { ok: true, max_rel_err: 0.0, worst: None, mismatches: 0, first: None }
    }

    fn broken(text: String) -> Comparison {
        Comparison {
            ok: false,
            max_rel_err: f64::INFINITY,
            first: Some(text),
            ..Comparison::clean()
        }
    }
}

/// Compares a result with device buffers, one for each component, with the default tolerance for reductions
/// of up to `terms` elements.
pub fn compare(expected: &Value, got: &[impl AsRef<[u8]>], terms: u64) -> Comparison {
    let places: Vec<_> = expected.leaves().iter().map(|leaf| (leaf.shape(), None)).collect();
    compare_at(expected, &places, got, terms)
}

/// As [`compare`], for a part of the result. For each component, `places` has its full dimensions and the
/// row-major index in them of each element of `expected`; without a list, `expected` has all elements in
/// order.
pub fn compare_at(
    expected: &Value,
    places: &[(Vec<usize>, Option<Vec<usize>>)],
    got: &[impl AsRef<[u8]>],
    terms: u64,
) -> Comparison {
    if expected.leaves().len() != got.len() || places.len() != got.len() {
        return Comparison::broken(format!(
            "{} results instead of {}",
            got.len(),
            expected.leaves().len()
        ));
    }
    let mut out = Comparison::clean();
    let leaves = expected.leaves().iter().zip(places).zip(got);
    for (i, ((leaf, (shape, at)), buffer)) in leaves.enumerate() {
        let (ty, bytes) = (leaf.ty(), buffer.as_ref());
        let count: usize = shape.iter().product();
        if bytes.len() != count * ty.bytes() {
            return Comparison::broken(format!(
                "result {i} has {} bytes instead of {}",
                bytes.len(),
                count * ty.bytes()
            ));
        }
        let tolerance = Tolerance::of(ty, terms);
        match at {
            None => {
                let cells = bytes.chunks_exact(ty.bytes()).map(|e| decode(ty, e)).enumerate();
                component(&mut out, i, leaf, shape, cells, tolerance);
            }
            Some(at) => {
                let cells = at.iter().map(|&index| {
                    let element = bytes.get(index * ty.bytes()..(index + 1) * ty.bytes());
                    (index, element.map_or_else(Cell::default, |e| decode(ty, e)))
                });
                component(&mut out, i, leaf, shape, cells, tolerance);
            }
        }
    }
    out
}

/// Compares two values of the same shape as [`compare`] does, with the given tolerance.
pub fn compare_values(
    expected: &Value,
    got: &Value,
    tolerance: impl Fn(ScalarType) -> Tolerance,
) -> Comparison {
    let outline =
        |v: &Value| -> Vec<_> { v.leaves().iter().map(|l| (l.ty(), l.shape())).collect() };
    if outline(expected) != outline(got) {
        return Comparison::broken(format!(
            "{:?} instead of {:?}",
            outline(got),
            outline(expected)
        ));
    }
    let mut out = Comparison::clean();
    for (i, (a, b)) in expected.leaves().iter().zip(got.leaves()).enumerate() {
        let mut cells = Vec::with_capacity(b.count());
        b.for_each(&mut |c| cells.push(c));
        component(&mut out, i, a, &a.shape(), cells.into_iter().enumerate(), tolerance(a.ty()));
    }
    out
}

/// Returns the largest finite number and the least positive normal number of a type.
pub(super) fn range(ty: ScalarType) -> (f64, f64) {
    let format = Format::of(ty);
    (format.most, format.tiny)
}

fn component(
    out: &mut Comparison,
    number: usize,
    expected: &Leaf,
    shape: &[usize],
    mut got: impl Iterator<Item = (usize, Cell)>,
    tolerance: Tolerance,
) {
    let ty = expected.ty();
    let (rtol, eps, (most, tiny)) = (tolerance.relative(ty), epsilon(ty), range(ty));
    expected.for_each(&mut |want| {
        let (index, have) = got.next().unwrap_or_default();
        let (ok, error) = if ty.is_float() {
            let (w, h) = (want.as_float(), have.as_float());
            // Rounding may give anything here, so the error says nothing.
            let any = want.mag() == ANYTHING && tolerance.ulps > 0.0;
            if w == h || w.is_nan() && h.is_nan() || any {
                (true, 0.0)
            } else if w.is_finite() && h.is_finite() {
                let off = (h - w).abs();
                let scale = w.abs().max(eps * want.mag()).max(tiny);
                (off <= tolerance.slack(ty, &want), off / scale)
            } else if beyond(w, most) && !h.is_finite()
                || !want.is_exact() && overflow(w, h, rtol * want.mag().min(most), most)
            {
                (true, 0.0)
            } else {
                (false, f64::INFINITY)
            }
        } else {
            let (w, h) = (want.as_wide(ty), have.as_wide(ty));
            let legal = w == h || tolerance.ulps > 0.0 && want.spread().contains(w, h);
            (legal, f64::from(u8::from(!legal)))
        };
        if error > out.max_rel_err {
            out.max_rel_err = error;
            out.worst = Some((number, index));
        }
        if !ok {
            out.ok = false;
            out.mismatches += 1;
            if out.first.is_none() {
                out.first = Some(format!(
                    "result {number}, element {index}{}: {} instead of {}",
                    position(index, shape),
                    have.show(ty),
                    want.show(ty)
                ));
            }
        }
    });
}

/// Whether one number is infinite and the other so large that rounding may have made it infinite.
pub(super) fn overflow(want: f64, have: f64, slack: f64, most: f64) -> bool {
    let near = |x: f64| x.is_infinite() || x.abs() + slack >= most;
    want.signum() == have.signum() && near(want) && near(have)
}

/// Whether a finite number has no place in the type. A device that computes it in another order may reach infinities of both signs, and
/// so NaN.
fn beyond(want: f64, most: f64) -> bool {
    want.is_finite() && want.abs() > most
}

/// Returns ` [i, j]` for arrays of two dimensions or more.
fn position(mut index: usize, shape: &[usize]) -> String {
    if shape.len() < 2 {
        return String::new();
    }
    let mut at = vec![];
    for n in shape.iter().rev() {
        at.push(index % n);
        index /= n;
    }
    at.reverse();
    format!(" {at:?}")
}
