//! Sizes of the surface language: polynomials over size parameters, in normal form.
//!
//! Division is exact: `a / b` stands for the number whose product with `b` is `a`. If it does not simplify, one
//! [`Atom::Quot`] remains. Numerators and denominators contain no further quotients, a quotient has coefficient 1
//! and is the only atom of its monomial, and no two quotients have the same denominator. The caller must ensure
//! that divisions are exact; [`Size::eval`] checks it. Lengths that round down are quotients of what a divisor leaves
//! no rest of: `(a - a%b)/b`.

use super::linear::exact_quotient;
use crate::diag::Limits;
use num_integer::{div_floor, gcd};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// An atom of a polynomial.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Atom {
    /// A size parameter (or an inference variable, whose name starts with `?`).
    Var(String),
    /// An exact quotient that does not simplify.
    Quot(Box<Size>, Box<Size>),
    /// The rest of a division, at least 0 and below the divisor. The dividend is not negative.
    Rest(Box<Size>, Box<Size>),
}

/// A product of atoms: each atom with its exponent, which is at least 1.
pub type Monomial = BTreeMap<Atom, u32>;

/// A polynomial: each monomial with its coefficient, which is not zero. Equal sizes have equal normal forms.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Size(pub BTreeMap<Monomial, i64>);

/// Why a size has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// A parameter without a value.
    #[error("the size `{0}` has no value")]
    Unbound(String),
    /// A value outside 64 bits.
    #[error("the size exceeds 64 bits")]
    Overflow,
    /// A value below zero.
    #[error("the size is negative: {0}")]
    Negative(i64),
    /// A quotient with a remainder, or by zero.
    #[error("{1} does not divide {0}")]
    NotExact(i64, i64),
}

/// The variable that marks a polynomial with a coefficient beyond 64 bits, or with too many terms.
const OVERFLOW: &str = "%overflow";
/// The variable that marks a quotient by zero.
const UNDEFINED: &str = "%undefined";
/// Most terms of a polynomial. Products of sums grow exponentially.
const MAX_TERMS: usize = Limits::DEFAULT.size_terms;

/// Advice for a division of lengths with a remainder.
pub const EXACT: &str = "`/` divides lengths without a remainder, and rounds down only as a value: choose other sizes, declare a multiple such as `[2*m]f32`, or let the caller give the length, `[m] (m: i64)`";

impl Size {
    /// Returns a constant size.
    pub fn constant(n: i64) -> Size {
        let mut terms = BTreeMap::new();
        if n != 0 {
            terms.insert(Monomial::new(), n);
        }
        Size(terms)
    }

    /// Returns the size of a size parameter.
    pub fn var(name: &str) -> Size {
        Size(BTreeMap::from([(Monomial::from([(Atom::Var(name.to_owned()), 1)]), 1)]))
    }

    /// Returns the size variable for the current length inside the `i`th `iterate` of an entry.
    pub fn iter_var(i: usize) -> Size {
        Size::var(&format!("%{i}"))
    }

    fn overflow() -> Size {
        Size::var(OVERFLOW)
    }

    fn term(monomial: Monomial, coefficient: i64) -> Size {
        let mut terms = BTreeMap::new();
        if coefficient != 0 {
            terms.insert(monomial, coefficient);
        }
        Size(terms)
    }

    /// Returns the value of a constant size.
    pub fn as_constant(&self) -> Option<i64> {
        match self.0.len() {
            0 => Some(0),
            1 => self.0.get(&Monomial::new()).copied(),
            _ => None,
        }
    }

    /// Returns the name, if the size is a single parameter.
    pub fn as_var(&self) -> Option<&str> {
        let (monomial, coefficient) = self.0.first_key_value()?;
        let (atom, exponent) = monomial.first_key_value()?;
        match atom {
            Atom::Var(name)
                if self.0.len() == 1
                    && monomial.len() == 1
                    && *coefficient == 1
                    && *exponent == 1 =>
            {
                Some(name)
            }
            Atom::Var(_) | Atom::Quot(..) | Atom::Rest(..) => None,
        }
    }

    /// Returns `(a, b)` if the size is `a * name + b` with numbers `a`, which is not zero, and `b`.
    pub fn as_linear(&self, name: &str) -> Option<(i64, i64)> {
        let own = Monomial::from([(Atom::Var(name.to_owned()), 1)]);
        let factor = *self.0.get(&own)?;
        let rest = self.0.get(&Monomial::new()).copied();
        let terms = 1 + usize::from(rest.is_some());
        (self.0.len() == terms).then_some((factor, rest.unwrap_or(0)))
    }

    /// Returns the sum without its number.
    #[must_use]
    pub fn without_constant(&self) -> Size {
        let terms = self.0.iter().filter(|(monomial, _)| !monomial.is_empty());
        Size(terms.map(|(m, c)| (m.clone(), *c)).collect())
    }

    /// Returns whether the size is 0.
    pub fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether every term has a negative coefficient, so that no value is positive.
    pub fn is_below_zero(&self) -> bool {
        !self.is_zero() && self.0.values().all(|c| *c < 0)
    }

    /// Returns whether the arithmetic exceeded 64 bits. Such a size has no value.
    pub fn overflowed(&self) -> bool {
        self.mentions(OVERFLOW)
    }

    /// Returns whether there was a division by zero. Such a size has no value.
    pub fn divided_by_zero(&self) -> bool {
        self.mentions(UNDEFINED)
    }

    /// Returns whether the size contains a quotient.
    pub fn has_quotient(&self) -> bool {
        self.0.keys().any(|m| quotient(m).is_some())
    }

    /// Returns `self + other`.
    #[must_use]
    pub fn add(&self, other: &Size) -> Size {
        let mut sum = self.0.clone();
        for (monomial, c) in &other.0 {
            let slot = sum.entry(monomial.clone()).or_insert(0);
            match slot.checked_add(*c) {
                Some(x) => *slot = x,
                None => return Size::overflow(),
            }
        }
        sum.retain(|_, c| *c != 0);
        let sum = Size(sum).merge_quotients();
        // Quotients with different denominators may still cancel.
        if sum.has_quotient() && sum.ratio().0.is_zero() { Size::constant(0) } else { sum }
    }

    /// Returns `-self`.
    #[must_use]
    pub fn neg(&self) -> Size {
        let mut terms = self.0.clone();
        for c in terms.values_mut() {
            match c.checked_neg() {
                Some(x) => *c = x,
                None => return Size::overflow(),
            }
        }
        Size(terms).merge_quotients()
    }

    /// Returns `self - other`.
    #[must_use]
    pub fn sub(&self, other: &Size) -> Size {
        self.add(&other.neg())
    }

    /// Returns `self * other`.
    #[must_use]
    pub fn mul(&self, other: &Size) -> Size {
        if self.has_quotient() || other.has_quotient() {
            let (a, b) = self.ratio();
            let (c, d) = other.ratio();
            return reduced(&a.mul(&c), &b.mul(&d));
        }
        if self.0.len().saturating_mul(other.0.len()) > MAX_TERMS {
            return Size::overflow();
        }
        let mut product: BTreeMap<Monomial, i64> = BTreeMap::new();
        for (m1, c1) in &self.0 {
            for (m2, c2) in &other.0 {
                let Some(c) = c1.checked_mul(*c2) else { return Size::overflow() };
                let slot = product.entry(times(m1, m2)).or_insert(0);
                match slot.checked_add(c) {
                    Some(x) => *slot = x,
                    None => return Size::overflow(),
                }
            }
        }
        product.retain(|_, c| *c != 0);
        Size(product)
    }

    /// Returns `self ** exponent`.
    #[must_use]
    pub fn pow(&self, exponent: u32) -> Size {
        (0..exponent).fold(Size::constant(1), |power, _| power.mul(self))
    }

    /// Returns the exact quotient `self / other`.
    #[must_use]
    pub fn div(&self, other: &Size) -> Size {
        let (a, b) = self.ratio();
        let (c, d) = other.ratio();
        reduced(&a.mul(&d), &b.mul(&c))
    }

    /// Returns the rest of the division `self / other`.
    #[must_use]
    pub fn rest(&self, other: &Size) -> Size {
        if other.is_zero() {
            return Size::var(UNDEFINED);
        }
        let whole = self.without_constant();
        let number = self.sub(&whole).as_constant();
        match (number, other.as_constant()) {
            (Some(number), Some(k)) if k > 0 && whole.is_multiple_of(other) => {
                Size::constant(number.rem_euclid(k))
            }
            _ if self.is_multiple_of(other) => Size::constant(0),
            _ => {
                let atom = Atom::Rest(Box::new(self.clone()), Box::new(other.clone()));
                Size::term(Monomial::from([(atom, 1)]), 1)
            }
        }
    }

    /// Returns the dividend and the divisor of each rest in the size.
    pub fn rests(&self) -> BTreeSet<(&Size, &Size)> {
        let mut found = BTreeSet::new();
        for atom in self.0.keys().flat_map(|m| m.keys()) {
            match atom {
                Atom::Var(_) => {}
                Atom::Quot(p, q) => found.extend(p.rests().into_iter().chain(q.rests())),
                Atom::Rest(p, q) => {
                    found.insert((&**p, &**q));
                }
            }
        }
        found
    }

    /// Returns whether the size is a multiple of `other` for all values of the parameters.
    pub fn is_multiple_of(&self, other: &Size) -> bool {
        if self.is_zero() || !other.is_zero() && !self.div(other).has_new_quotient(self) {
            return true;
        }
        // A dividend and its rest differ by a multiple.
        let is_own = |(p, q): &(&Size, &Size)| *q == other && self.has_term_of_rest(p, q);
        let Some((p, q)) = self.rests().into_iter().find(is_own) else { return false };
        let (p, q) = (p.clone(), q.clone());
        self.with_rests(&|a, b| (*a == p && *b == q).then(|| p.clone())).is_multiple_of(other)
    }

    /// Returns whether a rest is a term of the sum, or a factor of one, and not in a quotient.
    fn has_term_of_rest(&self, p: &Size, q: &Size) -> bool {
        let atoms = self.0.keys().flat_map(|m| m.keys());
        atoms.into_iter().any(|a| matches!(a, Atom::Rest(b, c) if **b == *p && **c == *q))
    }

    /// Returns whether the size contains a quotient with a denominator that no quotient of `from` has.
    fn has_new_quotient(&self, from: &Size) -> bool {
        let known: BTreeSet<&Size> =
            from.0.keys().filter_map(|m| quotient(m)).map(|(_, d)| d).collect();
        self.0.keys().filter_map(|m| quotient(m)).any(|(_, d)| !known.contains(d))
    }

    /// Returns numerator and denominator, both without quotients.
    pub fn ratio(&self) -> (Size, Size) {
        let mut numerator = Size::constant(0);
        let mut denominator = Size::constant(1);
        for (monomial, c) in &self.0 {
            match quotient(monomial) {
                None => {
                    let term = Size::term(monomial.clone(), *c);
                    numerator = numerator.add(&term.mul(&denominator));
                }
                Some((p, q)) => {
                    let p = p.mul(&Size::constant(*c));
                    numerator = numerator.mul(q).add(&p.mul(&denominator));
                    denominator = denominator.mul(q);
                }
            }
        }
        (numerator, denominator)
    }

    /// Restores the invariant: one quotient for each denominator, with coefficient 1.
    fn merge_quotients(self) -> Size {
        let quotients = self.0.iter().filter(|(m, _)| quotient(m).is_some());
        let mut seen = BTreeSet::new();
        let normal = quotients
            .filter_map(|(m, c)| quotient(m).map(|(_, q)| (q, *c)))
            .all(|(q, c)| c == 1 && seen.insert(q));
        if normal {
            return self;
        }
        let mut plain = BTreeMap::new();
        let mut numerators: BTreeMap<Size, Size> = BTreeMap::new();
        for (monomial, c) in &self.0 {
            match quotient(monomial) {
                None => {
                    plain.insert(monomial.clone(), *c);
                }
                Some((p, q)) => {
                    let p = p.mul(&Size::constant(*c));
                    let sum = numerators.entry(q.clone()).or_insert_with(|| Size::constant(0));
                    *sum = sum.add(&p);
                }
            }
        }
        numerators.iter().fold(Size(plain), |sum, (q, p)| sum.add(&reduced(p, q)))
    }

    /// Returns the variables in the size, in alphabetical order.
    pub fn variables(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        self.collect_variables(&mut found);
        found
    }

    fn collect_variables(&self, found: &mut BTreeSet<String>) {
        for atom in self.0.keys().flat_map(|m| m.keys()) {
            match atom {
                Atom::Var(name) => {
                    found.insert(name.clone());
                }
                Atom::Quot(p, q) | Atom::Rest(p, q) => {
                    p.collect_variables(found);
                    q.collect_variables(found);
                }
            }
        }
    }

    /// Returns whether the variable occurs in the size.
    pub fn mentions(&self, name: &str) -> bool {
        self.0.keys().flat_map(|m| m.keys()).any(|atom| match atom {
            Atom::Var(v) => v == name,
            Atom::Quot(p, q) | Atom::Rest(p, q) => p.mentions(name) || q.mentions(name),
        })
    }

    /// Replaces variables simultaneously. Variables for which `replacement` returns `None` stay.
    #[must_use]
    pub fn substitute(&self, replacement: &dyn Fn(&str) -> Option<Size>) -> Size {
        if self.variables().iter().all(|v| replacement(v).is_none()) {
            return self.clone();
        }
        self.replaced(&|atom| match atom {
            Atom::Var(name) => replacement(name),
            Atom::Quot(p, q) => Some(p.substitute(replacement).div(&q.substitute(replacement))),
            Atom::Rest(p, q) => Some(p.substitute(replacement).rest(&q.substitute(replacement))),
        })
    }

    /// Replaces the rests of divisions, given by dividend and divisor. Those for which `replacement` returns `None` stay.
    #[must_use]
    pub fn with_rests(&self, replacement: &dyn Fn(&Size, &Size) -> Option<Size>) -> Size {
        if self.rests().is_empty() {
            return self.clone();
        }
        self.replaced(&|atom| match atom {
            Atom::Var(_) => None,
            Atom::Quot(p, q) => Some(p.with_rests(replacement).div(&q.with_rests(replacement))),
            Atom::Rest(p, q) => replacement(p, q),
        })
    }

    /// Replaces atoms. Those for which `replacement` returns `None` stay.
    fn replaced(&self, replacement: &dyn Fn(&Atom) -> Option<Size>) -> Size {
        let mut sum = Size::constant(0);
        for (monomial, c) in &self.0 {
            let mut product = Size::constant(*c);
            for (atom, exponent) in monomial {
                let own = || Size::term(Monomial::from([(atom.clone(), 1)]), 1);
                let value = replacement(atom).unwrap_or_else(own);
                product = product.mul(&value.pow(*exponent));
            }
            sum = sum.add(&product);
        }
        sum
    }

    /// Returns the text for a message about the value: "`n` (37)", or a number alone.
    pub fn with_value(&self, value: u64) -> String {
        match self.as_constant() {
            Some(_) => value.to_string(),
            None => format!("`{self}` ({value})"),
        }
    }

    /// Returns the value for the given values of the parameters. A negative value is an error.
    pub fn eval(&self, env: &dyn Fn(&str) -> Option<i64>) -> Result<i64, SizeError> {
        let value = i64::try_from(self.value(env)?).map_err(|_| SizeError::Overflow)?;
        if value < 0 { Err(SizeError::Negative(value)) } else { Ok(value) }
    }

    /// Returns the greatest whole number that does not exceed the value, in which quotients need not be whole. It may be
    /// negative.
    pub fn floor(&self, env: &dyn Fn(&str) -> Option<i64>) -> Result<i64, SizeError> {
        let (numerator, denominator) = self.ratio();
        let (p, q) = (numerator.value(env)?, denominator.value(env)?);
        if q == 0 {
            return Err(SizeError::NotExact(clip(p), 0));
        }
        i64::try_from(div_floor(p, q)).map_err(|_| SizeError::Overflow)
    }

    fn value(&self, env: &dyn Fn(&str) -> Option<i64>) -> Result<i128, SizeError> {
        let mut sum = 0i128;
        for (monomial, c) in &self.0 {
            let mut product = i128::from(*c);
            for (atom, exponent) in monomial {
                let base = match atom {
                    Atom::Var(name) if name == OVERFLOW => return Err(SizeError::Overflow),
                    Atom::Var(name) if name == UNDEFINED => {
                        return Err(SizeError::NotExact(1, 0));
                    }
                    Atom::Var(name) => {
                        i128::from(env(name).ok_or_else(|| SizeError::Unbound(name.clone()))?)
                    }
                    Atom::Quot(p, q) => {
                        let (p, q) = (p.value(env)?, q.value(env)?);
                        if q == 0 || p % q != 0 {
                            return Err(SizeError::NotExact(clip(p), clip(q)));
                        }
                        p / q
                    }
                    Atom::Rest(p, q) => match (p.value(env)?, q.value(env)?) {
                        (p, q) if q <= 0 => return Err(SizeError::NotExact(clip(p), clip(q))),
                        (p, _) if p < 0 => return Err(SizeError::Negative(clip(p))),
                        (p, q) => p % q,
                    },
                };
                let power = base.checked_pow(*exponent).ok_or(SizeError::Overflow)?;
                product = product.checked_mul(power).ok_or(SizeError::Overflow)?;
            }
            sum = sum.checked_add(product).ok_or(SizeError::Overflow)?;
        }
        Ok(sum)
    }
}

/// Returns the number for a message, if it has 64 bits.
fn clip(x: i128) -> i64 {
    i64::try_from(x).unwrap_or(i64::MAX)
}

/// Returns numerator and denominator of a monomial that is a quotient.
fn quotient(monomial: &Monomial) -> Option<(&Size, &Size)> {
    monomial.keys().find_map(|atom| match atom {
        Atom::Quot(p, q) => Some((&**p, &**q)),
        Atom::Var(_) | Atom::Rest(..) => None,
    })
}

fn times(a: &Monomial, b: &Monomial) -> Monomial {
    let mut product = a.clone();
    for (atom, exponent) in b {
        let slot = product.entry(atom.clone()).or_insert(0);
        *slot = slot.saturating_add(*exponent);
    }
    product
}

/// Returns `a / b` if it is a monomial.
fn over(a: &Monomial, b: &Monomial) -> Option<Monomial> {
    let mut quotient = a.clone();
    for (atom, exponent) in b {
        let left = quotient.get(atom)?.checked_sub(*exponent)?;
        if left == 0 {
            quotient.remove(atom);
        } else {
            quotient.insert(atom.clone(), left);
        }
    }
    Some(quotient)
}

/// Returns the largest term that divides every term of both sizes.
fn common_term(a: &Size, b: &Size) -> (Monomial, i64) {
    let mut terms = a.0.iter().chain(&b.0);
    let Some((first, c)) = terms.next() else { return (Monomial::new(), 1) };
    let mut monomial = first.clone();
    let mut factor = c.unsigned_abs();
    for (m, c) in terms {
        factor = gcd(factor, c.unsigned_abs());
        monomial = monomial
            .into_iter()
            .filter_map(|(atom, e)| m.get(&atom).map(|f| (atom, e.min(*f))))
            .collect();
    }
    (monomial, i64::try_from(factor).unwrap_or(1).max(1))
}

/// Divides a size by a term that divides each of its terms.
fn over_term(a: &Size, (monomial, factor): &(Monomial, i64)) -> Size {
    Size(a.0.iter().filter_map(|(m, c)| Some((over(m, monomial)?, c / factor))).collect())
}

/// Returns `numerator / denominator` in normal form. Neither may contain quotients.
fn reduced(numerator: &Size, denominator: &Size) -> Size {
    if numerator.overflowed() || denominator.overflowed() {
        return Size::overflow();
    }
    if denominator.is_zero() {
        return Size::var(UNDEFINED);
    }
    if numerator.is_zero() {
        return Size::constant(0);
    }
    let common = common_term(numerator, denominator);
    let mut top = over_term(numerator, &common);
    let mut bottom = over_term(denominator, &common);
    // Normalise the sign of the denominator: its last coefficient is positive.
    if bottom.0.last_key_value().is_some_and(|(_, c)| *c < 0) {
        top = top.neg();
        bottom = bottom.neg();
    }
    if bottom.as_constant() == Some(1) {
        return top;
    }
    if let Some(whole) = term_multiple(&top, &bottom).or_else(|| exact_quotient(&top, &bottom)) {
        return whole;
    }
    // Take terms that a denominator of one term divides out of the quotient: (n + s)/s = n/s + 1.
    let mut whole = Size::constant(0);
    if let (1, Some((m, c))) = (bottom.0.len(), bottom.0.first_key_value()) {
        let mut rest = BTreeMap::new();
        for (monomial, coefficient) in &top.0 {
            match over(monomial, m).filter(|_| coefficient % c == 0) {
                Some(q) => whole = whole.add(&Size::term(q, coefficient / c)),
                None => {
                    rest.insert(monomial.clone(), *coefficient);
                }
            }
        }
        if !whole.is_zero() {
            return Size(rest).div(&bottom).add(&whole);
        }
    }
    let atom = Atom::Quot(Box::new(top), Box::new(bottom));
    Size::term(Monomial::from([(atom, 1)]), 1)
}

/// Returns `q` with `top = q * bottom`, if `q` is a single term and `bottom` has several. (In the calculus, a sum
/// without linear factors is one symbol. More quotients must not be found here than follow from products of such
/// symbols there.)
fn term_multiple(top: &Size, bottom: &Size) -> Option<Size> {
    if bottom.0.len() < 2 {
        return None;
    }
    let (lead, c) = bottom.0.first_key_value()?;
    top.0.iter().find_map(|(m, d)| {
        let q = Size::term(over(m, lead).filter(|_| d % c == 0)?, d / c);
        (q.mul(bottom) == *top).then_some(q)
    })
}

/// Prints a power. `alone` says that it is no factor of a product.
fn fmt_factor(atom: &Atom, exponent: u32, alone: bool, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match atom {
        Atom::Var(name) => f.write_str(name)?,
        Atom::Quot(p, q) => {
            fmt_operand(p, true, f)?;
            f.write_str("/")?;
            fmt_operand(q, false, f)?;
        }
        Atom::Rest(p, q) => {
            f.write_str(if alone { "" } else { "(" })?;
            fmt_operand(p, false, f)?;
            f.write_str("%")?;
            fmt_operand(q, false, f)?;
            f.write_str(if alone { "" } else { ")" })?;
        }
    }
    for _ in 1..exponent {
        f.write_str("*")?;
        fmt_factor(atom, 1, alone, f)?;
    }
    Ok(())
}

/// Prints a size, parenthesised if the surrounding quotient requires it.
fn fmt_operand(size: &Size, product_is_fine: bool, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let factors = |(m, c): (&Monomial, &i64)| m.values().sum::<u32>() + u32::from(*c != 1);
    let simple = size.0.len() <= 1
        && size.rests().is_empty()
        && size.0.values().all(|c| *c > 0)
        && (product_is_fine || size.0.iter().map(factors).sum::<u32>() <= 1);
    if simple { write!(f, "{size}") } else { write!(f, "({size})") }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Terms of higher degree come first, the constant last.
        let mut terms: Vec<(&Monomial, i64)> = self.0.iter().map(|(m, c)| (m, *c)).collect();
        terms.sort_by_key(|(m, c)| (std::cmp::Reverse(m.values().sum::<u32>()), *c < 0));
        if terms.is_empty() {
            return f.write_str("0");
        }
        for (i, (monomial, c)) in terms.into_iter().enumerate() {
            match (i, c < 0) {
                (0, false) => {}
                (0, true) => f.write_str("-")?,
                (_, false) => f.write_str(" + ")?,
                (_, true) => f.write_str(" - ")?,
            }
            let size = c.unsigned_abs();
            if size != 1 || monomial.is_empty() {
                write!(f, "{size}")?;
                if !monomial.is_empty() {
                    f.write_str("*")?;
                }
            }
            for (j, (atom, exponent)) in monomial.iter().enumerate() {
                if j > 0 {
                    f.write_str("*")?;
                }
                let alone = size == 1 && *exponent == 1 && monomial.len() == 1;
                fmt_factor(atom, *exponent, alone, f)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn n() -> Size {
        Size::var("n")
    }
    fn m() -> Size {
        Size::var("m")
    }
    fn c(x: i64) -> Size {
        Size::constant(x)
    }

    #[test]
    fn prints_as_people_write() {
        assert_eq!(c(0).to_string(), "0");
        assert_eq!(n().mul(&c(2)).to_string(), "2*n");
        assert_eq!(n().mul(&m()).to_string(), "m*n");
        assert_eq!(n().add(&c(2)).to_string(), "n + 2");
        assert_eq!(n().sub(&c(3)).div(&c(2)).add(&c(1)).to_string(), "(n - 3)/2 + 1");
        assert_eq!(n().div(&m().mul(&c(2))).to_string(), "n/(2*m)");
        assert_eq!(c(1).sub(&n()).to_string(), "-n + 1");
        let rest = n().sub(&c(1)).rest(&c(2));
        assert_eq!(n().sub(&rest).to_string(), "n - (n - 1)%2");
        assert_eq!(
            rest.mul(&n()).add(&n().rest(&m()).mul(&c(3))).to_string(),
            "n*((n - 1)%2) + 3*(n%m)"
        );
    }

    #[test]
    fn quotients_cancel() {
        assert_eq!(n().mul(&m()).div(&m()), n());
        assert_eq!(n().div(&m()).mul(&m()), n());
        assert_eq!(n().div(&c(4)).mul(&c(2)), n().div(&c(2)));
        assert_eq!(n().div(&c(4)).add(&n().div(&c(4))), n().div(&c(2)));
        assert_eq!(n().div(&m()).div(&c(2)), n().div(&m().mul(&c(2))));
        assert_eq!(n().add(&m()).div(&m()), n().div(&m()).add(&c(1)));
        let k = n().add(&m());
        assert_eq!(k.mul(&c(3)).div(&k), c(3));
        assert_eq!(k.mul(&k).mul(&m()).div(&k), k.mul(&m()));
        let q = n().add(&c(9)).div(&n().add(&c(3)));
        assert!(q.has_quotient());
        assert_eq!(q.mul(&n().add(&c(3))), n().add(&c(9)));
        assert_eq!(n().div(&c(4)).sub(&n().div(&c(4))), c(0));
    }

    #[test]
    fn multiples() {
        assert!(n().mul(&c(4)).is_multiple_of(&c(2)));
        assert!(!n().is_multiple_of(&c(2)));
        assert!(!n().div(&c(2)).is_multiple_of(&c(2)));
        assert!(c(0).is_multiple_of(&n()));
    }

    #[test]
    fn rests_of_divisions() {
        let rest = |a: &Size, k: i64| a.rest(&c(k));
        assert_eq!(rest(&c(7), 3), c(1));
        assert_eq!(rest(&n().mul(&c(4)).add(&c(5)), 2), c(1));
        assert_eq!(n().mul(&m()).rest(&m()), c(0));
        // What is left of a dividend is a multiple, and so is what a rest of the opposite adds.
        let odd = n().sub(&c(1));
        assert!(odd.sub(&rest(&odd, 4)).is_multiple_of(&c(4)));
        assert!(n().add(&rest(&n().mul(&c(3)), 4)).is_multiple_of(&c(4)));
        assert!(!odd.sub(&rest(&n(), 4)).is_multiple_of(&c(4)));
        let env = |v: &str| Some(if v == "n" { 11 } else { 4 });
        assert_eq!(odd.sub(&odd.rest(&m())).div(&m()).eval(&env), Ok(2));
        assert_eq!(n().rest(&m()).pow(2).eval(&env), Ok(9));
        assert_eq!(n().rest(&m().sub(&c(4))).eval(&env), Err(SizeError::NotExact(11, 0)));
        assert_eq!(m().sub(&n()).rest(&c(5)).eval(&env), Err(SizeError::Negative(-7)));
        // The rest is that of the values that are put in.
        let put = |size: i64| move |v: &str| (v == "n").then(|| c(size));
        assert_eq!(rest(&n(), 4).substitute(&put(7)), c(3));
        assert_eq!(n().with_rests(&|_, _| Some(c(0))), n());
        assert_eq!(rest(&odd, 2).with_rests(&|p, _| Some(p.clone())), odd);
    }

    #[test]
    fn values_and_errors() {
        let env = |v: &str| (v == "n").then_some(7);
        assert_eq!(n().mul(&n()).eval(&env), Ok(49));
        assert_eq!(m().eval(&env), Err(SizeError::Unbound("m".into())));
        assert_eq!(n().sub(&c(8)).eval(&env), Err(SizeError::Negative(-1)));
        assert_eq!(n().div(&c(2)).eval(&env), Err(SizeError::NotExact(7, 2)));
        assert_eq!(n().div(&c(2)).floor(&env), Ok(3));
        assert_eq!(n().neg().div(&c(2)).floor(&env), Ok(-4));
        assert_eq!(n().div(&c(2)).add(&n().div(&c(3))).floor(&env), Ok(5));
        assert_eq!(n().div(&n().sub(&c(7))).floor(&env), Err(SizeError::NotExact(7, 0)));
        let huge = c(i64::MAX).mul(&c(2));
        assert!(huge.overflowed());
        assert_eq!(huge.eval(&env), Err(SizeError::Overflow));
        assert_eq!(n().pow(60).eval(&env), Err(SizeError::Overflow));
    }

    fn arb() -> impl Strategy<Value = Size> {
        let leaf =
            prop_oneof![(-4i64..5).prop_map(Size::constant), "[nmk]".prop_map(|v| Size::var(&v))];
        leaf.prop_recursive(4, 16, 2, |inner| {
            (inner.clone(), inner, 0..5).prop_map(|(a, b, op)| match op {
                0 => a.add(&b),
                1 => a.sub(&b),
                2 => a.mul(&b),
                3 => a.rest(&b),
                _ => a.div(&b),
            })
        })
    }

    proptest! {
        #[test]
        fn arithmetic_agrees_with_numbers(a in arb(), b in arb(), n in 1i64..9, m in 1i64..9, k in 1i64..9) {
            let env = |v: &str| Some(match v { "n" => n, "m" => m, _ => k });
            if let (Ok(x), Ok(y)) = (a.value(&env), b.value(&env)) {
                if let Ok(sum) = a.add(&b).value(&env) { prop_assert_eq!(sum, x + y); }
                if let Ok(product) = a.mul(&b).value(&env) { prop_assert_eq!(product, x * y); }
                if y != 0 && x % y == 0 && let Ok(q) = a.div(&b).value(&env) {
                    prop_assert_eq!(q, x / y);
                }
            }
            prop_assert_eq!(a.sub(&a), Size::constant(0));
        }
    }
}
