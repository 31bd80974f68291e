//! Index expressions: integer linear forms that are simplified as they are built.
//!
//! An [`Index`] is a constant plus coefficients times atoms. Atoms carry their ranges, so a
//! quotient or remainder that the ranges decide never becomes an atom; the others are printed as
//! written. This module never looks at memory or control flow; [`Facts`] holds the knowledge that
//! is valid only under a guard.

use super::terms::Terms;
use super::{Check, Expr};
use num_integer::gcd;
use rustc_hash::FxHashMap;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// Larger than any index, and small enough that a few additions and multiplications do not overflow
/// `i128`.
const UNBOUNDED: i128 = 1 << 62;

/// No array has so many elements. Greater numbers in an index come from sums and products that were clamped, or nearly.
const EXACT: u64 = 1 << 52;

/// Most sums of an index and facts that a proof tries. A proof that succeeds tries few; with hundreds of facts there are millions.
const MOST_SUMS: usize = 1 << 9;

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
    terms: Terms<Atom>,
    constant: i64,
}

fn clip(x: i128) -> i64 {
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
    fn atom(a: Atom) -> Index {
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
    fn add_times(&self, other: &Index, k: i64) -> Index {
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
    fn as_quotient(&self) -> Option<(&Index, i64)> {
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
    fn has_remainder(&self) -> bool {
        self.terms.atoms().any(|a| matches!(a, Atom::Mod(..)))
    }

    /// The lower end of the range of the sum with `k` times another index, before terms are combined.
    fn least_of_sum(&self, other: &Index, k: i64) -> i64 {
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
    fn about(&self, y: &Index) -> Option<(i64, Index)> {
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

/// A conjunction of conditions `index >= 0`, each divided by the common factor of its coefficients
/// (so that the guards of the lanes of a vector that does not straddle the edge are equal).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Guard(pub Vec<Index>);

impl Guard {
    /// `index >= 0`.
    pub fn not_negative(x: &Index) -> Guard {
        let g = x.terms.coefficients().fold(0, gcd);
        Guard(vec![if g > 1 {
            Index { terms: x.terms.scaled(|c| c / g), constant: x.constant.div_euclid(g) }
        } else {
            x.clone()
        }])
    }

    /// `a < b`.
    pub fn less(a: &Index, b: &Index) -> Guard {
        Guard::not_negative(&b.sub(a).plus(-1))
    }

    /// The conjunction of both. A condition that another one implies is dropped.
    #[must_use]
    pub fn and(&self, other: &Guard) -> Guard {
        let mut out: Vec<Index> = vec![];
        for c in self.0.iter().chain(&other.0) {
            let implied = |by: &Index, x: &Index| x.terms == by.terms && x.constant >= by.constant;
            if out.iter().any(|o| implied(o, c)) {
                continue;
            }
            out.retain(|o| !implied(c, o));
            out.push(c.clone());
        }
        Guard(out)
    }

    /// Returns a guard that both imply, if their conditions differ only by constants: the weaker of
    /// each pair.
    pub fn or(&self, other: &Guard) -> Option<Guard> {
        if self.0.len() != other.0.len() {
            return None;
        }
        let mut out = vec![];
        for (a, b) in self.0.iter().zip(&other.0) {
            let d = a.sub(b).as_constant()?;
            out.push(if d >= 0 { a.clone() } else { b.clone() });
        }
        Some(Guard(out))
    }
}

/// Most facts that are learned from one: quotients of quotients have very many bounds.
const LEARNED: usize = 64;

/// Facts that hold at a point of a kernel: a list of indices that are not negative.
#[derive(Clone, Debug, Default)]
pub struct Facts(Vec<Index>);

impl Facts {
    /// Iterates over the facts.
    pub fn iter(&self) -> impl Iterator<Item = &Index> {
        self.0.iter()
    }

    /// Returns the facts with the conditions of the guard added.
    #[must_use]
    pub fn with(&self, g: &Guard) -> Facts {
        let mut out = self.clone();
        g.0.iter().for_each(|c| out.learn(c.clone()));
        out
    }

    /// Returns the facts with the negation of the guard added, if the guard is a single condition.
    #[must_use]
    pub fn without(&self, g: &Guard) -> Facts {
        let mut out = self.clone();
        if let [c] = g.0.as_slice() {
            out.learn(c.times(-1).plus(-1));
        }
        out
    }

    /// Returns the facts with `lo <= v < hi` added.
    #[must_use]
    pub fn with_loop(&self, v: &Var, lo: &Index, hi: &Index) -> Facts {
        let x = Index::from(v.clone());
        let mut out = self.clone();
        out.learn(x.sub(lo));
        out.learn(hi.sub(&x).plus(-1));
        out
    }

    /// Adds a fact, and the facts without minima, maxima, quotients and remainders that follow from it.
    fn learn(&mut self, fact: Index) {
        let mut open = vec![fact];
        let most = self.0.len() + LEARNED;
        while let Some(f) = open.pop().filter(|_| self.0.len() < most) {
            // Numbers that were clamped say nothing.
            if !f.is_exact() {
                continue;
            }
            for (a, c) in f.terms() {
                let mut rest = f.clone();
                rest.terms.put(a, -c);
                match a {
                    // `min(x, y)` is at most `x` and `y`; `max(x, y)` is at least `x` and `y`.
                    Atom::Min(x, y) if c > 0 => {
                        open.extend([rest.add(&x.times(c)), rest.add(&y.times(c))]);
                    }
                    Atom::Max(x, y) if c < 0 => {
                        open.extend([rest.add(&x.times(c)), rest.add(&y.times(c))]);
                    }
                    // `x - (d - 1) <= d * (x / d) <= x`; the bounds of split loops have this form.
                    Atom::Div(x, d) => {
                        let most = if c > 0 { (**x).clone() } else { x.plus(1 - d) };
                        open.push(rest.times(*d).add(&most.times(c)));
                    }
                    // `x - d * greatest quotient <= x % d <= x` if `x` is not negative; borders of joined dimensions have
                    // this form. `x / k % d` is the quotient of `x % (k * d)` by `k`.
                    Atom::Mod(x, d) => {
                        if let Some((y, k)) = x.as_quotient() {
                            let both = y.rem(k.saturating_mul(*d));
                            let most = if c > 0 { both } else { both.plus(1 - k) };
                            open.push(rest.times(k).add(&most.times(c)));
                        }
                        let (lo, hi) = self.bounds(x);
                        if lo >= 0 && i128::from(hi) < UNBOUNDED {
                            let most = if c > 0 { (**x).clone() } else { x.plus(-(hi - hi % d)) };
                            open.push(rest.add(&most.times(c)));
                        }
                    }
                    _ => {}
                }
            }
            if !self.0.contains(&f) {
                self.0.push(f);
            }
        }
    }

    /// Whether `x >= 0` follows from ranges and at most two facts.
    pub fn prove(&self, x: &Index) -> bool {
        self.prove_in(x, 2)
    }

    /// As [`Facts::prove`], with at most one fact.
    pub fn prove_at_once(&self, x: &Index) -> bool {
        self.prove_in(x, 1)
    }

    /// As [`Facts::prove`], also with the ranges that facts give to dividends: of `x < n * m` follows `x / m < n`.
    pub fn prove_with_quotients(&self, x: &Index) -> bool {
        self.prove_in(x, 2) || self.least(x) >= 0
    }

    /// As [`Facts::prove`], with twice as many facts, and with what they say about dividends. An
    /// element of a batch of matrices whose three dimensions are all padded is in bounds because of
    /// one condition for each dimension. Meant for proofs that must succeed, not for simplification.
    pub fn prove_hard(&self, x: &Index) -> bool {
        // Most proofs need few facts, and are found soon if proofs with more are not tried before.
        if self.prove_in(x, 1) || self.prove_in(x, 2) || self.least(x) >= 0 {
            return true;
        }
        let narrow = |v: &Var| Some(Index::from(self.narrow(v)));
        let facts = Facts(self.iter().map(|f| f.substitute(&narrow)).collect());
        let narrowed = x.substitute(&narrow);
        let facts = facts.about_quotients(&narrowed);
        facts.prove_in(&narrowed, 2) || self.prove_in(x, 4) || facts.prove_in(&narrowed, 4)
    }

    /// Returns the facts, with what they say about quotients in `x`: from `m * y <= r` follows
    /// `y / k <= r / (m * k)`. So the block of a row is a block of the array, if the row is a row of it.
    fn about_quotients(&self, x: &Index) -> Facts {
        let mut out = self.clone();
        for (a, _) in x.terms() {
            let Atom::Div(y, k) = a else { continue };
            for f in &self.0 {
                let Some((m, rest)) = f.about(y) else { continue };
                let quotient = Index::atom(a.clone());
                let Some(most) = m.checked_abs().and_then(|m| m.checked_mul(*k)) else { continue };
                out.learn(if m < 0 {
                    rest.div(most).sub(&quotient)
                } else {
                    // `y >= -rest / m`, rounded up.
                    quotient.sub(&rest.times(-1).plus(m - 1).div(m).div(*k))
                });
            }
        }
        out
    }

    /// Returns a lower bound of `x`: the sum of its terms' bounds, where each quotient has the range
    /// that its dividend has under the facts.
    fn least(&self, x: &Index) -> i64 {
        let terms = x.terms().map(|(a, c)| {
            let (lo, hi) = match a {
                Atom::Div(y, k) => {
                    let (lo, hi) = self.bounds(y);
                    (lo.div_euclid(*k), hi.div_euclid(*k))
                }
                a => a.range(),
            };
            i128::from(c) * i128::from(if c > 0 { lo } else { hi })
        });
        clip(terms.fold(i128::from(x.constant), |sum, t| sum + t.clamp(-UNBOUNDED, UNBOUNDED)))
    }

    /// Inclusive bounds of an index, narrowed by each fact of which a multiple is a multiple of the
    /// index plus a rest.
    fn bounds(&self, x: &Index) -> (i64, i64) {
        let (mut lo, mut hi) = x.range();
        for f in &self.0 {
            let Some((m, rest)) = f.about(x) else { continue };
            let rest = rest.range().1;
            if m > 0 {
                lo = lo.max(-rest.div_euclid(m));
            } else {
                hi = hi.min(rest.div_euclid(-m));
            }
        }
        (lo, hi)
    }

    fn prove_in(&self, x: &Index, depth: usize) -> bool {
        self.prove_unseen(x, depth, &mut FxHashMap::default())
    }

    /// `seen` are the sums that could not be proved, with the numbers of facts that were tried: the order of facts does not
    /// matter. After [`MOST_SUMS`] of them the proof is given up.
    fn prove_unseen(&self, x: &Index, depth: usize, seen: &mut FxHashMap<Index, usize>) -> bool {
        if x.range().0 >= 0 {
            return true;
        }
        let tried = |seen: &FxHashMap<Index, usize>| {
            seen.len() > MOST_SUMS || seen.get(x).is_some_and(|tried| *tried >= depth)
        };
        if depth == 0 || depth > 1 && tried(seen) {
            return false;
        }
        // The last step only asks for the range of a sum: most sums need not be made for that.
        let mut proved = |x: &Index, f: &Index, k: i64| match depth {
            1 if x.least_of_sum(f, k) >= 0 => true,
            1 if !x.has_remainder() && !f.has_remainder() => false,
            _ => self.prove_unseen(&x.add_times(f, k), depth - 1, seen),
        };
        let done = self.0.iter().any(|f| {
            // Subtract the multiple of the fact that cancels one of the atoms.
            f.terms().any(|(a, c)| {
                let k = x.terms.get(a).unwrap_or(0);
                if k == 0 || k.signum() != c.signum() {
                    return false;
                }
                if k % c == 0 {
                    proved(x, f, (k / c).saturating_neg())
                } else if c % k == 0 {
                    proved(&x.times(c / k), f, -1)
                } else {
                    false
                }
            })
        });
        if !done && depth > 1 {
            seen.insert(x.clone(), depth);
        }
        done
    }

    /// Returns the variable with its range narrowed by each fact on its own. If no value is left,
    /// the range becomes a single value.
    pub fn narrow(&self, v: &Var) -> Var {
        let atom = Atom::Var(v.clone());
        let (mut lo, mut hi) = (v.lo, v.hi);
        for f in &self.0 {
            let c = f.terms.get(&atom).unwrap_or(0);
            let rest = f.sub(&Index::from(v.clone()).times(c)).range().1;
            // A value of `v` is possible only if `c * v + rest >= 0` for the greatest value of
            // `rest`.
            match c.signum() {
                1 => lo = lo.max((-rest).div_euclid(c) + i64::from((-rest).rem_euclid(c) > 0)),
                -1 => hi = hi.min(rest.div_euclid(-c)),
                _ => {}
            }
        }
        let lo = lo.min(v.hi);
        Var { lo, hi: hi.max(lo), ..v.clone() }
    }

    /// Whether the facts are compatible with these values. Facts about variables without a value
    /// are ignored.
    pub fn admit(&self, value: &dyn Fn(&Var) -> Option<i64>) -> bool {
        self.0.iter().all(|fact| fact.eval(value).is_none_or(|x| x >= 0))
    }

    /// Returns whether the guard holds (`Some(true)`), fails (`Some(false)`), or is undecided
    /// (`None`).
    pub fn decide(&self, g: &Guard) -> Option<bool> {
        if g.0.iter().all(|c| self.prove(c)) {
            Some(true)
        } else if g.0.iter().any(|c| self.prove(&c.times(-1).plus(-1))) {
            Some(false)
        } else {
            None
        }
    }
}

impl fmt::Display for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Atom::Var(v) => f.write_str(&v.name),
            Atom::Div(x, k) => write!(f, "({x}) / {k}"),
            Atom::Mod(x, k) => write!(f, "({x}) % {k}"),
            Atom::Min(x, y) => write!(f, "min({x}, {y})"),
            Atom::Max(x, y) => write!(f, "max({x}, {y})"),
            Atom::Data(d) => write!(f, "{}", d.value),
        }
    }
}

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        // Print positive terms first: `n - i` instead of `-i + n`.
        let positive = self.terms.iter().filter(|(_, c)| *c > 0);
        let negative = self.terms.iter().filter(|(_, c)| *c < 0);
        if self.constant > 0 && self.terms.coefficients().all(|c| c < 0) {
            write!(f, "{}", self.constant)?;
            first = false;
        }
        for (a, c) in positive.chain(negative) {
            f.write_str(match (first, c < 0) {
                (true, true) => "-",
                (true, false) => "",
                (false, true) => " - ",
                (false, false) => " + ",
            })?;
            match (c.unsigned_abs(), a) {
                (1, Atom::Div(..) | Atom::Mod(..)) => write!(f, "({a})")?,
                (1, _) => write!(f, "{a}")?,
                (k, Atom::Var(_)) => write!(f, "{k} * {a}")?,
                (k, _) => write!(f, "{k} * ({a})")?,
            }
            first = false;
        }
        match (first, self.constant) {
            (true, c) => write!(f, "{c}"),
            (false, c) if c > 0 && !self.terms.coefficients().all(|c| c < 0) => write!(f, " + {c}"),
            (false, c) if c < 0 => write!(f, " - {}", c.unsigned_abs()),
            (false, _) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn var(id: u32, n: i64) -> Index {
        Index::from(Var { id, name: format!("v{id}").into(), lo: 0, hi: n - 1 })
    }

    #[test]
    fn facts_are_exact_and_few() {
        // Numbers that were clamped say nothing.
        let facts = |x: Index| Facts::default().with(&Guard::less(&Index::from(-1), &x));
        assert_eq!(facts(var(0, 10).times(1 << 60).add(&var(1, 10))).iter().count(), 0);
        assert_eq!(facts(var(0, 10).times(3)).iter().count(), 1);
        // Each remainder has bounds of its own, and each choice of them gives a fact.
        let part = |id: u32| var(id, 1000).div_mod(7).0.div_mod(5).1;
        let sum = (0..20).fold(Index::from(0), |sum, id| sum.add(&part(id)));
        assert_eq!(facts(sum).iter().count(), LEARNED);
    }

    #[test]
    fn guards_narrow_ranges() {
        let v = Var { id: 0, name: "v".into(), lo: 0, hi: 9 };
        let (x, y) = (Index::from(v.clone()), var(1, 3));
        let range = |g: Guard| {
            let n = Facts::default().with(&g).narrow(&v);
            (n.lo, n.hi)
        };
        assert_eq!(range(Guard::less(&x, &Index::from(4))), (0, 3));
        assert_eq!(range(Guard::less(&Index::from(4), &x)), (5, 9));
        // First 33 < 4 * v + y, with y at most 2; then 4 * v + y < 33, with y at least 0.
        assert_eq!(range(Guard(vec![x.times(4).add(&y).plus(-34)])), (8, 9));
        assert_eq!(range(Guard(vec![Index::from(32).sub(&x.times(4)).sub(&y)])), (0, 8));
        assert_eq!(range(Guard::less(&y, &Index::from(1))), (0, 9));
        // No value satisfies the guard.
        assert_eq!(range(Guard::less(&Index::from(20), &x)), (9, 9));
        assert_eq!(range(Guard::less(&x, &Index::from(-5))), (0, 0));
    }

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

    #[test]
    fn guards_of_lanes_agree_when_the_width_divides() {
        let i = var(0, 100);
        let n = Index::from(8);
        let g = |l| Guard::less(&i.times(4).plus(l), &n);
        assert_eq!(g(0), g(3));
        let n = Index::from(9);
        let g = |l| Guard::less(&i.times(4).plus(l), &n);
        assert_ne!(g(0), g(3));
        assert_eq!(g(0).and(&g(3)), g(3));
        assert_eq!(g(0).or(&g(3)), Some(g(0)));
    }

    #[test]
    fn facts_decide_guards() {
        let (i, n) = (var(0, 100), var(1, 50));
        let facts = Facts::default().with(&Guard::less(&i, &n));
        assert_eq!(facts.decide(&Guard::less(&i, &n.plus(3))), Some(true));
        assert_eq!(facts.decide(&Guard::less(&n, &i)), Some(false));
        assert_eq!(facts.decide(&Guard::less(&i, &n.plus(-1))), None);
    }

    #[test]
    fn bounds_of_inner_loops_are_relations() {
        // i1 < min(6, 27 - 8 * i0) keeps 8 * i0 + i1 below 27, although the ranges alone do not.
        let (i0, v1) = (var(0, 4), Var { id: 1, name: "v1".into(), lo: 0, hi: 5 });
        let place = i0.times(8).add(&Index::from(v1.clone()));
        let inside = Index::from(26).sub(&place);
        let end = Index::from(6).lesser(&Index::from(27).sub(&i0.times(8)));
        assert!(!Facts::default().prove(&inside));
        assert!(Facts::default().with_loop(&v1, &Index::from(0), &end).prove(&inside));
        // A loop that starts at a maximum starts at or after both operands.
        let past = end.greater(&Index::from(2));
        let facts = Facts::default().with_loop(&v1, &past, &Index::from(6));
        assert!(facts.prove(&Index::from(v1.clone()).plus(-2)));
        assert!(!facts.prove(&inside));
        // A loop that starts at (8 - i0) / 8 starts where 8 * v1 + i0 reaches 1.
        let start = Index::from(8).sub(&i0).div(8);
        let facts = Facts::default().with_loop(&v1, &start, &Index::from(6));
        let place = Index::from(v1).times(8).add(&i0);
        assert!(facts.prove(&place.plus(-1)));
        assert!(!facts.prove(&place.plus(-2)));
    }

    #[test]
    fn a_fact_about_a_variable_bounds_quotients_of_its_multiples() {
        // With i below 5, (2 * i) / 5 is at most 1, and (2 * i) % 5 at most 4.
        let i = var(0, 64);
        let (q, r) = i.times(2).div_mod(5);
        let inside = Index::from(58).sub(&q.times(30)).sub(&r.times(2));
        let facts = Facts::default().with(&Guard::less(&i, &Index::from(5)));
        assert!(facts.prove_hard(&inside.plus(-20)));
        assert!(!facts.prove_hard(&inside.plus(-21)));
        assert!(!Facts::default().prove_hard(&inside));
    }

    #[test]
    fn a_fact_about_a_row_bounds_the_place_in_its_matrix() {
        // Row (i / 7) % 7 of matrix i / 49, below 4, ends before place 28 of its matrix.
        let i = var(0, 342);
        let row = i.div(7).rem(7);
        let place = i.rem(49);
        let before = Facts::default().with(&Guard::less(&row, &Index::from(4)));
        assert!(before.prove_hard(&Index::from(27).sub(&place)));
        assert!(!before.prove_hard(&Index::from(26).sub(&place)));
        let behind = Facts::default().without(&Guard::less(&row, &Index::from(4)));
        assert!(behind.prove_hard(&place.plus(-28)));
        assert!(!behind.prove_hard(&place.plus(-29)));
    }

    #[test]
    fn a_fact_about_a_row_bounds_the_block_of_the_row() {
        // Rows come in tiles of 16, and lie in blocks of 8: rows 0 to 16 have 3 blocks of 256.
        let (tile, item) = (var(0, 2), var(1, 16));
        let facts = Facts::default()
            .with(&Guard::not_negative(&Index::from(16).sub(&tile.times(16)).sub(&item)));
        let place = tile.times(512).add(&item.div(8).times(256)).add(&item.rem(8).times(32));
        assert!(facts.prove_hard(&Index::from(2 * 256 + 7 * 32).sub(&place)));
        assert!(!facts.prove_hard(&Index::from(2 * 256 - 1).sub(&place)));
        assert!(!Facts::default().prove_hard(&Index::from(3 * 256 - 1).sub(&place)));
        // Four rows at a time, in tiles of 12 and blocks of 6.
        let (tile, four, column) = (var(0, 2), var(1, 3), var(2, 33));
        let facts = Facts::default()
            .with(&Guard::not_negative(&Index::from(16).sub(&tile.times(12)).sub(&four.times(4))));
        let (block, pair) = four.times(2).div_mod(3);
        let place = tile.times(768).add(&block.times(384)).add(&pair.times(64));
        let place = place.add(&column.div(32).times(192)).add(&column.rem(32));
        assert!(facts.prove_hard(&Index::from(1151).sub(&place)));
    }

    fn form() -> impl Strategy<Value = Index> {
        let leaf = prop_oneof![
            (0u32..3).prop_map(|v| var(v, [4, 6, 35][v as usize])),
            (-20i64..20).prop_map(Index::from),
        ];
        leaf.prop_recursive(4, 24, 2, |inner| {
            prop_oneof![
                (inner.clone(), inner.clone()).prop_map(|(a, b)| a.add(&b)),
                (inner.clone(), inner.clone()).prop_map(|(a, b)| a.lesser(&b)),
                (inner.clone(), inner.clone()).prop_map(|(a, b)| a.greater(&b)),
                (inner.clone(), -6i64..7).prop_map(|(a, k)| a.times(k)),
                (inner.clone(), 1i64..13).prop_map(|(a, k)| a.div(k)),
                (inner, 1i64..13).prop_map(|(a, k)| a.rem(k)),
            ]
        })
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

        #[test]
        fn what_is_proved_holds(
            x in form(), f in form(), a in 0i64..4, b in 0i64..6, c in 0i64..35,
        ) {
            let at = |v: &Var| Some([a, b, c][v.id as usize]);
            let g = Guard::not_negative(&f);
            let holds = f.eval(&at).expect("every variable has a value") >= 0;
            prop_assert_eq!(g.0[0].eval(&at).expect("every variable has a value") >= 0, holds);
            if holds && Facts::default().with(&g).prove_hard(&x) {
                prop_assert!(x.eval(&at).expect("every variable has a value") >= 0);
            }
        }
    }
}
