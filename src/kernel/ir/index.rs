//! Index expressions: integer linear forms that are simplified as they are built.
//!
//! An [`Index`] is a constant plus coefficients times atoms. Atoms carry their ranges, so a
//! quotient or remainder that the ranges decide never becomes an atom; the others are printed as
//! written. This module never looks at memory or control flow. What holds only under a guard is in [`super::facts`].

use super::terms::Terms;
use super::{Check, Expr};
use num_integer::gcd;
use std::cmp::Ordering;
use std::sync::Arc;

/// Larger than any index, and small enough that a few additions and multiplications do not overflow
/// `i128`.
pub(super) const UNBOUNDED: i128 = 1 << 62;

/// No array has so many elements. Greater numbers in an index come from sums and products that were clamped, or nearly.
const EXACT: u64 = 1 << 52;

/// A loop variable or work-item number with its inclusive range.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Var {
    /// Unique within a program.
    pub id: u32,
    /// How it is printed.
    pub name: Arc<str>,
    /// Least value.
    pub lo: i64,
    /// Greatest value.
    pub hi: i64,
}

/// An atom of a linear form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Atom {
    /// A variable.
    Var(Var),
    /// Floor of the quotient; the divisor is at least 2 and the dividend not negative.
    Div(Arc<Index>, i64),
    /// Remainder; the divisor is at least 2 and the dividend not negative.
    Mod(Arc<Index>, i64),
    /// The smaller of two indices.
    Min(Arc<Index>, Arc<Index>),
    /// The greater of two indices.
    Max(Arc<Index>, Arc<Index>),
    /// A value computed by the program, such as an element of an index array.
    Data(Data),
}

impl Ord for Atom {
    /// Compares atoms of different kinds by their kinds. Most parts that are equal are one part.
    fn cmp(&self, other: &Self) -> Ordering {
        fn shared(a: &Arc<Index>, b: &Arc<Index>) -> Ordering {
            if Arc::ptr_eq(a, b) { Ordering::Equal } else { a.cmp(b) }
        }
        let kind = |a: &Atom| match a {
            Atom::Var(_) => 0,
            Atom::Div(..) => 1,
            Atom::Mod(..) => 2,
            Atom::Min(..) => 3,
            Atom::Max(..) => 4,
            Atom::Data(_) => 5,
        };
        match (self, other) {
            (Atom::Var(a), Atom::Var(b)) => a.cmp(b),
            (Atom::Div(a, k), Atom::Div(b, m)) | (Atom::Mod(a, k), Atom::Mod(b, m)) => {
                shared(a, b).then(k.cmp(m))
            }
            (Atom::Min(a, c), Atom::Min(b, d)) | (Atom::Max(a, c), Atom::Max(b, d)) => {
                shared(a, b).then_with(|| shared(c, d))
            }
            (Atom::Data(a), Atom::Data(b)) => a.cmp(b),
            (a, b) => kind(a).cmp(&kind(b)),
        }
    }
}

impl PartialOrd for Atom {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A value computed by the program, with its inclusive range. The range stays when passes move the value to a register,
/// whose form does not show it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Data {
    /// The value.
    pub value: Arc<Expr>,
    lo: i64,
    hi: i64,
}

impl Data {
    fn new(value: Expr) -> Data {
        Data::within(value, clip(-UNBOUNDED), clip(UNBOUNDED))
    }

    /// A value that is known to lie in `lo..=hi`. If it is a checked index, the check decides instead, so that the verifier
    /// relies on checks alone.
    fn within(value: Expr, lo: i64, hi: i64) -> Data {
        let (lo, hi) = match &value {
            Expr::Checked(Check::Index(n), _) => (0, (*n).max(1) - 1),
            e => match e.bounds() {
                // The value is not computed, if no number remains.
                Some((l, h)) if h < lo || l > hi => (l, h),
                Some((l, h)) => (l.max(lo), h.min(hi)),
                None => (lo, hi),
            },
        };
        Data { value: Arc::new(value), lo, hi }
    }
}

/// A constant plus coefficients times atoms.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Index {
    pub(super) terms: Terms<Atom>,
    pub(super) constant: i64,
}

pub(super) fn clip(x: i128) -> i64 {
    i64::try_from(x.clamp(-UNBOUNDED, UNBOUNDED)).unwrap_or(i64::MAX)
}

impl From<i64> for Index {
    fn from(constant: i64) -> Self {
        Index { terms: Terms::default(), constant }
    }
}

impl From<Var> for Index {
    fn from(v: Var) -> Self {
        if v.lo == v.hi {
            return Index::from(v.lo);
        }
        Index::atom(Atom::Var(v))
    }
}

impl Index {
    pub(super) fn atom(a: Atom) -> Index {
        Index { terms: Terms::one(a, 1), constant: 0 }
    }

    /// A value computed by the program.
    pub fn data(e: Expr) -> Index {
        Index::atom(Atom::Data(Data::new(e)))
    }

    /// A value computed by the program that is taken to lie in `0..n`.
    pub fn data_below(e: Expr, n: i64) -> Index {
        Index::atom(Atom::Data(Data::within(e, 0, n.max(1) - 1)))
    }

    /// A value computed by the program that lies in `lo..=hi`.
    pub fn data_within(e: Expr, (lo, hi): (i64, i64)) -> Index {
        Index::atom(Atom::Data(Data::within(e, lo, hi)))
    }

    /// Returns the number if the index is a constant.
    pub fn as_constant(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// Atoms with their coefficients, in order.
    pub fn terms(&self) -> impl Iterator<Item = (&Atom, i64)> {
        self.terms.iter()
    }

    /// The term of one atom, without the other terms and the constant.
    #[must_use]
    pub fn part(&self, a: &Atom) -> Index {
        Index {
            terms: self.terms.get(a).map_or_else(Terms::default, |c| Terms::one(a.clone(), c)),
            constant: 0,
        }
    }

    /// The constant part.
    pub fn constant(&self) -> i64 {
        self.constant
    }

    /// The sum.
    #[must_use]
    pub fn add(&self, other: &Index) -> Index {
        self.add_times(other, 1)
    }

    /// The sum with `k` times another index.
    pub(super) fn add_times(&self, other: &Index, k: i64) -> Index {
        self.clone().with_times(other, k)
    }

    /// As [`Index::add_times`], without a copy of this index.
    fn with_times(mut self, other: &Index, k: i64) -> Index {
        self.constant = self.constant.saturating_add(other.constant.saturating_mul(k));
        for (a, c) in other.terms.iter() {
            self.terms.put(a, c.saturating_mul(k));
        }
        self.recombine()
    }

    /// `k * (x / k) + x % k` is `x`, and `k * (x / k % m) + x % k` is `x % (k * m)`.
    fn recombine(self) -> Index {
        for (a, c) in self.terms.iter() {
            let Atom::Mod(x, k) = a else { continue };
            let whole = c.saturating_mul(*k);
            let is_div = |a: &Atom| matches!(a, Atom::Div(y, m) if m == k && y == x);
            let upper = self.terms.iter().filter(|(_, c)| *c == whole).find_map(|(b, _)| match b {
                Atom::Mod(y, m) if y.as_quotient() == Some((x, *k)) => {
                    Some((b, Index::atom(Atom::Mod(x.clone(), k.saturating_mul(*m)))))
                }
                b => is_div(b).then(|| (b, (**x).clone())),
            });
            if let Some((b, both)) = upper {
                let mut rest = self.clone();
                rest.terms.remove(a);
                rest.terms.remove(b);
                return rest.with_times(&both, c);
            }
        }
        self
    }

    /// Returns `x` and `k` if the index is the quotient `x / k`.
    pub(super) fn as_quotient(&self) -> Option<(&Index, i64)> {
        match self.terms.only()? {
            (Atom::Div(x, k), 1) if self.constant == 0 => Some((x, *k)),
            _ => None,
        }
    }

    /// The sum with a number.
    #[must_use]
    pub fn plus(&self, k: i64) -> Index {
        let mut out = self.clone();
        out.constant = out.constant.saturating_add(k);
        out
    }

    /// The product with a number.
    #[must_use]
    pub fn times(&self, k: i64) -> Index {
        if k == 0 {
            return Index::default();
        }
        Index {
            terms: self.terms.scaled(|c| c.saturating_mul(k)),
            constant: self.constant.saturating_mul(k),
        }
    }

    /// The difference.
    #[must_use]
    pub fn sub(&self, other: &Index) -> Index {
        self.add_times(other, -1)
    }

    /// Whether some of the terms may combine with a term of another index to a simpler one.
    pub(super) fn has_remainder(&self) -> bool {
        self.terms.atoms().any(|a| matches!(a, Atom::Mod(..)))
    }

    /// The lower end of the range of the sum with `k` times another index, before terms are combined.
    pub(super) fn least_of_sum(&self, other: &Index, k: i64) -> i64 {
        let least = |a: &Atom, c: i64| {
            let (l, h) = if c == 0 { (0, 0) } else { a.range() };
            let (x, y) = (i128::from(l) * i128::from(c), i128::from(h) * i128::from(c));
            x.min(y).clamp(-UNBOUNDED, UNBOUNDED)
        };
        let other_c = |c: i64| c.saturating_mul(k);
        let constant = self.constant.saturating_add(other.constant.saturating_mul(k));
        let mut sum = i128::from(constant);
        for (a, c) in self.terms.iter() {
            sum += least(a, c.saturating_add(other.terms.get(a).map_or(0, other_c)));
        }
        for (a, c) in other.terms.iter().filter(|(a, _)| self.terms.get(a).is_none()) {
            sum += least(a, other_c(c));
        }
        clip(sum)
    }

    /// The upper end of the range of the sum with another index, before terms are combined.
    fn most_of_sum(&self, other: &Index) -> i64 {
        -self.times(-1).least_of_sum(other, -1)
    }

    /// Inclusive bounds, from the ranges of the variables alone.
    pub fn range(&self) -> (i64, i64) {
        let (mut lo, mut hi) = (i128::from(self.constant), i128::from(self.constant));
        for (a, c) in self.terms.iter() {
            let (l, h) = a.range();
            let (x, y) = (i128::from(l) * i128::from(c), i128::from(h) * i128::from(c));
            lo += x.min(y).clamp(-UNBOUNDED, UNBOUNDED);
            hi += x.max(y).clamp(-UNBOUNDED, UNBOUNDED);
        }
        (clip(lo), clip(hi))
    }

    /// Whether every value is a multiple of `k`.
    pub fn is_multiple_of(&self, k: i64) -> bool {
        k == 1 || (self.constant % k == 0 && self.terms.coefficients().all(|c| c % k == 0))
    }

    /// Splits into the part that `g` divides (returned already divided) and the rest, whose
    /// constant is in `[0, g)`.
    pub fn split_by(&self, g: i64) -> (Index, Index) {
        let (mut q, mut r) =
            (Index::from(self.constant.div_euclid(g)), Index::from(self.constant.rem_euclid(g)));
        for (a, c) in self.terms.iter() {
            if c % g == 0 {
                q.terms.push(a.clone(), c / g);
            } else {
                r.terms.push(a.clone(), c);
            }
        }
        (q, r)
    }

    /// Returns the floor of the quotient by `k >= 1`, and the remainder, from one case analysis.
    pub fn div_mod(&self, k: i64) -> (Index, Index) {
        if k <= 1 {
            return (self.clone(), Index::default());
        }
        let (q, r) = self.split_by(k);
        let (lo, hi) = r.range();
        if lo.div_euclid(k) == hi.div_euclid(k) {
            let m = lo.div_euclid(k);
            return (q.plus(m), r.plus(-m.saturating_mul(k)));
        }
        // For `g*x + rest` with `rest` in `[0, g)` and `g | k`, the rest changes neither the
        // quotient nor the upper digits of the remainder.
        let mut gs: Vec<i64> =
            r.terms.coefficients().map(|c| gcd(c, k)).filter(|g| *g > 1).collect();
        gs.sort_unstable_by(|a, b| b.cmp(a));
        gs.dedup();
        for g in gs {
            let (x, rest) = r.split_by(g);
            let (lo, hi) = rest.range();
            if lo >= 0 && hi < g {
                let (xq, xm) = x.div_mod(k / g);
                return (q.add(&xq), xm.times(g).add(&rest));
            }
        }
        // Division in C truncates: add a multiple of `k` that keeps the dividend non-negative.
        let m = lo.div_euclid(k).min(0);
        let r = Arc::new(r.plus(-m.saturating_mul(k)));
        let div = match (r.terms.only(), r.constant) {
            // (x / a) / k = x / (a * k)
            (Some((Atom::Div(x, a), 1)), 0) => {
                Index::atom(Atom::Div(x.clone(), a.saturating_mul(k)))
            }
            _ => Index::atom(Atom::Div(r.clone(), k)),
        };
        (q.add(&div).plus(m), Index::atom(Atom::Mod(r, k)))
    }

    /// Floor of the quotient by `k >= 1`.
    #[must_use]
    pub fn div(&self, k: i64) -> Index {
        self.div_mod(k).0
    }

    /// The remainder by `k >= 1`, never negative.
    #[must_use]
    pub fn rem(&self, k: i64) -> Index {
        self.div_mod(k).1
    }

    /// The smaller of two.
    #[must_use]
    pub fn lesser(&self, other: &Index) -> Index {
        let (lo, hi) = self.sub(other).range();
        if hi <= 0 {
            self.clone()
        } else if lo >= 0 {
            other.clone()
        } else {
            Index::atom(Atom::Min(Arc::new(self.clone()), Arc::new(other.clone())))
        }
    }

    /// The greater of two.
    #[must_use]
    pub fn greater(&self, other: &Index) -> Index {
        let (lo, hi) = self.sub(other).range();
        if lo >= 0 {
            self.clone()
        } else if hi <= 0 {
            other.clone()
        } else {
            Index::atom(Atom::Max(Arc::new(self.clone()), Arc::new(other.clone())))
        }
    }

    /// Calls `f` on every variable in it, including variables inside atoms. `Data` is not entered.
    pub fn visit_vars(&self, f: &mut dyn FnMut(&Var)) {
        for a in self.terms.atoms() {
            match a {
                Atom::Var(v) => f(v),
                Atom::Div(x, _) | Atom::Mod(x, _) => x.visit_vars(f),
                Atom::Min(x, y) | Atom::Max(x, y) => {
                    x.visit_vars(f);
                    y.visit_vars(f);
                }
                Atom::Data(_) => {}
            }
        }
    }

    /// Calls `f` on every computed value in it.
    pub fn visit_data(&self, f: &mut dyn FnMut(&Expr)) {
        for a in self.terms.atoms() {
            match a {
                Atom::Var(_) => {}
                Atom::Div(x, _) | Atom::Mod(x, _) => x.visit_data(f),
                Atom::Min(x, y) | Atom::Max(x, y) => {
                    x.visit_data(f);
                    y.visit_data(f);
                }
                Atom::Data(d) => f(&d.value),
            }
        }
    }

    /// Whether variable `id` occurs in it.
    pub fn mentions(&self, id: u32) -> bool {
        let mut found = false;
        self.visit_vars(&mut |v| found |= v.id == id);
        found
    }

    /// Whether it contains a computed value.
    pub fn has_data(&self) -> bool {
        let mut found = false;
        self.visit_data(&mut |_| found = true);
        found
    }

    /// Whether its numbers are small enough that no sum or product of them was clamped.
    pub fn is_exact(&self) -> bool {
        let small = |x: i64| x.unsigned_abs() < EXACT;
        small(self.constant)
            && self.terms.iter().all(|(a, c)| {
                small(c)
                    && match a {
                        Atom::Var(_) | Atom::Data(_) => true,
                        Atom::Div(x, k) | Atom::Mod(x, k) => small(*k) && x.is_exact(),
                        Atom::Min(x, y) | Atom::Max(x, y) => x.is_exact() && y.is_exact(),
                    }
            })
    }

    /// Whether it contains a division or remainder.
    pub fn has_division(&self) -> bool {
        self.terms.atoms().any(|a| match a {
            Atom::Var(_) | Atom::Data(_) => false,
            Atom::Div(..) | Atom::Mod(..) => true,
            Atom::Min(x, y) | Atom::Max(x, y) => x.has_division() || y.has_division(),
        })
    }

    /// Returns the coefficient of variable `id` and the rest of the index, if the variable occurs
    /// only linearly.
    pub fn linear_in(&self, id: u32) -> Option<(i64, Index)> {
        let mut rest = self.clone();
        let mut coefficient = 0;
        rest.terms.retain(|a, c| match a {
            Atom::Var(v) if v.id == id => {
                coefficient = c;
                false
            }
            _ => true,
        });
        (!rest.mentions(id)).then_some((coefficient, rest))
    }

    /// Returns `m` and `rest` such that a positive multiple of this index is `m * y + rest`, and `rest` lacks the
    /// first atom of `y`; `None` if this index lacks it, too.
    pub(super) fn about(&self, y: &Index) -> Option<(i64, Index)> {
        let (first, c) = y.terms().next()?;
        let k = self.terms.get(first)?;
        let g = gcd(k, c);
        let m = k / g * c.signum();
        Some((m, self.times(c.abs() / g).sub(&y.times(m))))
    }

    /// Replaces variables and simplifies again.
    #[must_use]
    pub fn substitute(&self, f: &dyn Fn(&Var) -> Option<Index>) -> Index {
        let mut out = Index::from(self.constant);
        for (a, c) in self.terms.iter() {
            let x = match a {
                Atom::Var(v) => f(v).unwrap_or_else(|| Index::from(v.clone())),
                Atom::Div(x, k) => x.substitute(f).div(*k),
                Atom::Mod(x, k) => x.substitute(f).rem(*k),
                Atom::Min(x, y) => x.substitute(f).lesser(&y.substitute(f)),
                Atom::Max(x, y) => x.substitute(f).greater(&y.substitute(f)),
                Atom::Data(_) => Index::atom(a.clone()),
            };
            out = out.with_times(&x, c);
        }
        out
    }

    /// Replaces minima and maxima that are known: `known(x)` says that `x >= 0`.
    #[must_use]
    pub fn resolved(&self, known: &dyn Fn(&Index) -> bool) -> Index {
        let mut out = Index::from(self.constant);
        for (a, c) in self.terms.iter() {
            let x = match a {
                Atom::Var(_) | Atom::Data(_) => Index::atom(a.clone()),
                Atom::Div(x, k) => x.resolved(known).div(*k),
                Atom::Mod(x, k) => x.resolved(known).rem(*k),
                Atom::Min(x, y) | Atom::Max(x, y) => {
                    let (x, y) = (x.resolved(known), y.resolved(known));
                    let least = matches!(a, Atom::Min(..));
                    if known(&y.sub(&x)) {
                        if least { x } else { y }
                    } else if known(&x.sub(&y)) {
                        if least { y } else { x }
                    } else if least {
                        x.lesser(&y)
                    } else {
                        x.greater(&y)
                    }
                }
            };
            out = out.with_times(&x, c);
        }
        out
    }

    /// Calls `f` on the two sides of every minimum and maximum in it.
    pub fn visit_extremes(&self, f: &mut dyn FnMut(&Index, &Index)) {
        for a in self.terms.atoms() {
            match a {
                Atom::Var(_) | Atom::Data(_) => {}
                Atom::Div(x, _) | Atom::Mod(x, _) => x.visit_extremes(f),
                Atom::Min(x, y) | Atom::Max(x, y) => {
                    f(x, y);
                    x.visit_extremes(f);
                    y.visit_extremes(f);
                }
            }
        }
    }

    /// Replaces computed values by expressions of the same values, whose ranges stay known.
    #[must_use]
    pub fn map_data(&self, f: &dyn Fn(&Expr) -> Expr) -> Index {
        self.with_data(&|d| Index::atom(Atom::Data(Data::within(f(&d.value), d.lo, d.hi))))
    }

    /// Replaces those computed values for which `f` gives an equal index.
    #[must_use]
    pub fn known_data(&self, f: &dyn Fn(&Expr) -> Option<Index>) -> Index {
        self.with_data(&|d| f(&d.value).unwrap_or_else(|| Index::atom(Atom::Data(d.clone()))))
    }

    fn with_data(&self, f: &dyn Fn(&Data) -> Index) -> Index {
        if !self.has_data() {
            return self.clone();
        }
        let mut out = Index::from(self.constant);
        for (a, c) in self.terms.iter() {
            let x = match a {
                Atom::Var(v) => Index::from(v.clone()),
                Atom::Div(x, k) => x.with_data(f).div(*k),
                Atom::Mod(x, k) => x.with_data(f).rem(*k),
                Atom::Min(x, y) => x.with_data(f).lesser(&y.with_data(f)),
                Atom::Max(x, y) => x.with_data(f).greater(&y.with_data(f)),
                Atom::Data(d) => f(d),
            };
            out = out.with_times(&x, c);
        }
        out
    }

    /// Evaluates the index; `None` if a variable has no value, the index contains data, or the
    /// value overflows.
    pub fn eval(&self, f: &dyn Fn(&Var) -> Option<i64>) -> Option<i64> {
        self.eval_with(f, &|_| None)
    }

    /// As [`Index::eval`], with a value for each value that the program computes.
    pub fn eval_with(
        &self,
        f: &dyn Fn(&Var) -> Option<i64>,
        data: &dyn Fn(&Expr) -> Option<i64>,
    ) -> Option<i64> {
        let mut out = self.constant;
        for (a, c) in self.terms.iter() {
            let of = |i: &Index| i.eval_with(f, data);
            let x = match a {
                Atom::Var(v) => f(v)?,
                Atom::Div(x, k) => of(x)?.div_euclid(*k),
                Atom::Mod(x, k) => of(x)?.rem_euclid(*k),
                Atom::Min(x, y) => of(x)?.min(of(y)?),
                Atom::Max(x, y) => of(x)?.max(of(y)?),
                Atom::Data(d) => data(&d.value)?,
            };
            out = out.checked_add(x.checked_mul(c)?)?;
        }
        Some(out)
    }
}

impl Atom {
    /// Inclusive bounds.
    pub fn range(&self) -> (i64, i64) {
        match self {
            Atom::Var(v) => (v.lo, v.hi),
            Atom::Div(x, k) => {
                let (lo, hi) = x.range();
                (lo.div_euclid(*k), hi.div_euclid(*k))
            }
            Atom::Mod(_, k) => (0, k - 1),
            Atom::Min(x, y) => {
                let ((a, b), (c, d)) = (x.range(), y.range());
                // The minimum of two numbers does not exceed their mean, and the maximum is not
                // below it.
                (a.min(c), b.min(d).min(x.most_of_sum(y).div_euclid(2)))
            }
            Atom::Max(x, y) => {
                let ((a, b), (c, d)) = (x.range(), y.range());
                let mean = x.least_of_sum(y, 1);
                (a.max(c).max(mean.div_euclid(2) + mean.rem_euclid(2)), b.max(d))
            }
            Atom::Data(d) => (d.lo, d.hi),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::ir::testing::{form, var};
    use proptest::prelude::*;

    #[test]
    fn the_form_of_a_value_shows_its_range() {
        use crate::calculus::scalar::Lit;
        use crate::kernel::ir::{ElemTy, Reg};
        use crate::lang::{typed::ScalarOp, types::ScalarType};
        let range = |op, t: ScalarType, n: i128| {
            let t = ElemTy::scalar(t);
            let x = Expr::Reg(Reg { id: 0, name: "x".into(), ty: t });
            let of = Expr::Op(op, t, vec![x, Expr::Lit(Lit::int(t.scalar, n))]);
            Some(Index::data(of).range()).filter(|(lo, _)| *lo == 0)
        };
        let (signed, unsigned) = (ScalarType::I32, ScalarType::U32);
        assert_eq!(range(ScalarOp::BitAnd, signed, 255), Some((0, 255)));
        assert_eq!(range(ScalarOp::BitAnd, signed, -2), None);
        assert_eq!(range(ScalarOp::Min, unsigned, 7), Some((0, 7)));
        assert_eq!(range(ScalarOp::Min, signed, 7), None);
        assert_eq!(range(ScalarOp::Shr, unsigned, 24), Some((0, 255)));
        assert_eq!(range(ScalarOp::Shr, signed, 24), None);
        let clamped = |least: i64, most: i64| {
            let t = ElemTy::scalar(signed);
            let x = Expr::Reg(Reg { id: 0, name: "x".into(), ty: t });
            let ends = [least, most].map(|n| Expr::Index(Index::from(n), signed));
            let [least, most] = ends;
            Index::data(Expr::Op(ScalarOp::Clamp, t, vec![x, least, most])).range()
        };
        assert_eq!(clamped(0, 255), (0, 255));
        assert!(clamped(7, 3).0 < 0);
        // As an index, which has 32 bits, this number may be negative.
        assert_eq!(range(ScalarOp::Min, unsigned, 1 << 31), None);
    }

    #[test]
    fn a_value_in_a_register_keeps_its_range() {
        use crate::kernel::ir::{ElemTy, Reg};
        use crate::lang::types::ScalarType;
        let t = ElemTy::scalar(ScalarType::I32);
        let reg = |id: u32| Expr::Reg(Reg { id, name: format!("t{id}").into(), ty: t });
        // Elements of rows of 3, which lie in rows of 6 and of 14.
        let place = |k: &Index, row: i64| {
            let (q, r) = k.div_mod(3);
            q.times(row).add(&r)
        };
        let checked = Index::data(Expr::Checked(Check::Index(21), vec![reg(0)]));
        let shared = checked.map_data(&|_| reg(1));
        assert_eq!(shared.range(), (0, 20));
        for row in [6, 14] {
            let moved = place(&checked, row).map_data(&|_| reg(1));
            assert_eq!(moved, place(&shared, row));
            assert_eq!(moved.to_string(), format!("{row} * ((t1) / 3) + ((t1) % 3)"));
            assert!(moved.is_exact());
            // Without a check, too.
            assert_eq!(place(&Index::data_below(reg(1), 21), row), moved);
            // Nothing says that this value is not negative.
            assert!(!place(&Index::data(reg(1)), row).is_exact());
        }
    }

    #[test]
    fn compositions_of_views_leave_no_division() {
        // join . split, with a tile that divides and one that does not.
        for k in [4, 5, 7] {
            let i = var(0, 64);
            let (q, r) = i.div_mod(k);
            assert_eq!(q.times(k).add(&r), i);
        }
        // split after join: (4 * i + j) / 4 and % 4.
        let x = var(0, 10).times(4).add(&var(1, 4));
        assert_eq!(x.div_mod(4), (var(0, 10), var(1, 4)));
        // Three levels.
        let y = x.times(3).add(&var(2, 3)).plus(120);
        assert_eq!(y.div(12), var(0, 10).plus(10));
        assert_eq!(y.rem(12), var(1, 4).times(3).add(&var(2, 3)));
    }

    #[test]
    fn nested_quotients_merge() {
        let i = var(0, 1000);
        assert_eq!(i.div(3).div(5), i.div(15));
        assert_eq!(i.plus(-7).div(3).to_string(), "((v0 + 2) / 3) - 3");
    }

    #[test]
    fn digits_of_a_place_are_the_place() {
        let i = var(0, 2 * 3 * 5 * 7);
        // The digits of a place in an array of rank 4, the last first.
        let (above, last) = i.div_mod(7);
        let (above, third) = above.div_mod(5);
        let (first, second) = above.div_mod(3);
        let place = first.times(105).add(&second.times(35)).add(&third.times(7)).add(&last);
        assert_eq!(place, i);
        // Without the first digit it is a remainder.
        let rest = second.times(35).add(&last).add(&third.times(7));
        assert_eq!(rest, i.rem(105));
        // Rows that are further apart stay rows.
        assert_eq!(second.times(36).add(&third.times(7)).add(&last).terms().count(), 2);
    }

    proptest! {
        #[test]
        fn division_and_remainder_are_right(
            x in form(), k in 1i64..13, a in 0i64..4, b in 0i64..6, c in 0i64..35,
        ) {
            let at = |v: &Var| Some([a, b, c][v.id as usize]);
            let value = x.eval(&at).expect("every variable has a value");
            let (lo, hi) = x.range();
            prop_assert!(lo <= value && value <= hi);
            let (q, r) = x.div_mod(k);
            prop_assert_eq!(q.eval(&at).expect("every variable has a value"), value.div_euclid(k));
            prop_assert_eq!(r.eval(&at).expect("every variable has a value"), value.rem_euclid(k));
        }
    }
}
