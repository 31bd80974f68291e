//! Linear factors of polynomials, so that `n*n + 7*n + 12` and `(n + 3)*(n + 4)` are one size.
//!
//! The linear polynomials known here are sums such as `2*n - m + 3` of at most [`MOST_VARIABLES`] variables, with coefficients
//! of at most [`MOST_TIMES`] and a constant of at most [`MOST_APART`]. Division by them and factors of this form use the same
//! set: if a quotient simplifies for the checker, then its parts cancel as symbols of the calculus, too.

use super::size::{Atom, Monomial, Size};
use num_integer::gcd;
use std::ops::RangeInclusive;

/// Largest magnitude of the constant in a linear factor.
const MOST_APART: i64 = 64;
/// Largest magnitude of a variable's coefficient in a linear factor.
const MOST_TIMES: i64 = 8;
/// Most variables in a linear factor.
const MOST_VARIABLES: usize = 4;
/// Highest power of a variable in polynomials that are divided or factored.
const MOST_DEGREE: u32 = 16;
/// Most candidates for factors that are tried for a variable.
const MOST_TRIED: usize = 1024;
/// The modulus of the test that excludes most candidates for factors: a prime.
const MODULUS: i128 = (1 << 61) - 1;
/// Values of the other variables at which the zeros in one variable are sought: the first is `BASE`, each further one `STRIDE`
/// more. No factor that is common in programs, such as `n - 1`, vanishes there.
const BASE: i64 = 11;
const STRIDE: usize = 6;

/// The polynomial `lead * variable + rest`, where `lead` is positive and `rest` does not contain the variable.
struct Linear {
    variable: String,
    lead: i64,
    rest: Size,
}

impl Linear {
    /// Reads a polynomial as one of the linear polynomials known here.
    fn of(size: &Size) -> Option<Linear> {
        let mut variables = vec![];
        for (monomial, c) in &size.0 {
            match monomial.first_key_value() {
                None if c.abs() <= MOST_APART => {}
                Some((Atom::Var(name), 1)) if monomial.len() == 1 && c.abs() <= MOST_TIMES => {
                    variables.push((*c, name));
                }
                _ => return None,
            }
        }
        if variables.len() > MOST_VARIABLES {
            return None;
        }
        let (lead, variable) = variables.into_iter().filter(|(c, _)| *c > 0).min()?;
        let rest = size.sub(&Size::var(variable).mul(&Size::constant(lead)));
        Some(Linear { variable: variable.clone(), lead, rest })
    }

    fn size(&self) -> Size {
        Size::var(&self.variable).mul(&Size::constant(self.lead)).add(&self.rest)
    }

    /// Divides by long division in the variable. Returns `None` if there is a remainder.
    fn divides(&self, top: &Size) -> Option<Size> {
        let mut coefficients = coefficients(top, &self.variable)?.into_iter().rev();
        let constant = coefficients.next_back()?;
        let (mut quotient, mut carried) = (Size::constant(0), Size::constant(0));
        let variable = Size::var(&self.variable);
        for coefficient in coefficients {
            carried = coefficient.sub(&self.rest.mul(&carried)).over_number(self.lead)?;
            quotient = quotient.mul(&variable).add(&carried);
        }
        let remainder = constant.sub(&self.rest.mul(&carried));
        (remainder.is_zero() && !quotient.overflowed()).then_some(quotient)
    }
}

/// Returns the coefficients of the powers of a variable, the constant one first.
fn coefficients(size: &Size, variable: &str) -> Option<Vec<Size>> {
    let atom = Atom::Var(variable.to_owned());
    let mut found: Vec<Size> = Vec::new();
    for (monomial, c) in &size.0 {
        let mut rest = monomial.clone();
        let power = rest.remove(&atom).unwrap_or(0);
        if power > MOST_DEGREE {
            return None;
        }
        let index = power as usize;
        while found.len() <= index {
            found.push(Size::constant(0));
        }
        found[index].0.insert(rest, *c);
    }
    Some(found)
}

/// Returns `q` with `top = q * bottom`, if `bottom` is a linear polynomial known here. Neither contains quotients.
pub(super) fn exact_quotient(top: &Size, bottom: &Size) -> Option<Size> {
    Linear::of(bottom)?.divides(top)
}

impl Size {
    /// Returns a polynomial of the second or a higher degree as `linear * rest`, if it has a linear factor. Equal
    /// polynomials give equal factors.
    pub fn linear_factor(&self) -> Option<(Size, Size)> {
        let degree = |m: &Monomial| m.values().sum::<u32>();
        if self.has_quotient() || self.0.keys().all(|m| degree(m) < 2) {
            return None;
        }
        let variables = self.variables();
        variables.iter().find_map(|v| {
            let others: Vec<&str> =
                variables.iter().filter(|w| *w != v).map(String::as_str).collect();
            let lead = coefficients(self, v)?.pop()?;
            let content = lead.0.values().fold(0, |g, c| gcd(g, *c));
            (1..=MOST_TIMES).filter(|lead| content % lead == 0).find_map(|lead| {
                self.candidates(v, &others, lead).into_iter().take(MOST_TRIED).find_map(|rest| {
                    let linear = Linear { variable: v.clone(), lead, rest };
                    let quotient =
                        self.may_vanish(&linear).then(|| linear.divides(self)).flatten()?;
                    Some((linear.size(), quotient))
                })
            })
        })
    }

    /// Returns all `rest` for which `lead * variable + rest` may be a linear factor. Where the other variables have fixed
    /// values, such a factor is zero at a whole value of `lead * variable`. How this zero changes with one more of another
    /// variable is that variable's coefficient.
    fn candidates(&self, variable: &str, others: &[&str], lead: i64) -> Vec<Size> {
        let bases: Vec<i64> = (BASE..).step_by(STRIDE).take(others.len()).collect();
        let zeros = |more: Option<usize>| {
            let at = |name: &str| {
                let i = others.iter().position(|w| *w == name)?;
                Some(bases[i] + i64::from(more == Some(i)))
            };
            let most: i64 = bases.iter().take(MOST_VARIABLES).map(|base| base + 1).sum();
            let reach = MOST_APART + MOST_TIMES * most;
            self.zeros(variable, lead, &at, -reach..=reach)
        };
        let first = zeros(None);
        if first.is_empty() {
            return vec![];
        }
        let moved: Vec<Vec<i64>> = (0..others.len()).map(|i| zeros(Some(i))).collect();
        let mut found = vec![];
        for zero in first {
            let mut rests = vec![(Size::constant(0), -zero)];
            for ((w, moved), base) in others.iter().zip(&moved).zip(&bases) {
                let times: Vec<i64> =
                    moved.iter().map(|m| zero - m).filter(|t| t.abs() <= MOST_TIMES).collect();
                let next = rests.iter().flat_map(|(rest, left)| {
                    times.iter().map(move |t| {
                        let term = Size::var(w).mul(&Size::constant(*t));
                        (rest.add(&term), left - t * base)
                    })
                });
                rests = next.take(MOST_TRIED).collect();
            }
            let known = rests.into_iter().filter(|(_, left)| left.abs() <= MOST_APART);
            found.extend(known.map(|(rest, left)| rest.add(&Size::constant(left))));
        }
        found
    }

    /// Returns the whole numbers `z` of a range for which the polynomial is zero at `variable = z / lead`, modulo a prime.
    fn zeros(
        &self,
        variable: &str,
        lead: i64,
        at: &dyn Fn(&str) -> Option<i64>,
        range: RangeInclusive<i64>,
    ) -> Vec<i64> {
        let Some(coefficients) = coefficients(self, variable) else { return vec![] };
        let point = |name: &str| i128::from(at(name).unwrap_or(0));
        let numbers: Vec<i128> = coefficients.iter().map(|c| c.modulo(&point)).collect();
        if numbers.iter().all(|x| *x == 0) {
            return vec![];
        }
        // The polynomial times the highest power of `lead`, so that there are no fractions.
        let lead = i128::from(lead);
        let vanishes = |z: &i64| {
            let (mut sum, mut scale) = (0, 1);
            for c in numbers.iter().rev() {
                sum = (sum * i128::from(*z) + c * scale) % MODULUS;
                scale = scale * lead % MODULUS;
            }
            sum == 0
        };
        range.filter(vanishes).collect()
    }

    /// Returns the quotient by a number, if it divides all coefficients.
    fn over_number(&self, divisor: i64) -> Option<Size> {
        let exact = self.0.values().all(|c| c % divisor == 0);
        exact.then(|| Size(self.0.iter().map(|(m, c)| (m.clone(), c / divisor)).collect()))
    }

    /// Returns whether the polynomial is zero, modulo a prime, at one zero of the linear polynomial. If it is not,
    /// the linear polynomial is not a factor.
    fn may_vanish(&self, linear: &Linear) -> bool {
        let point = |name: &str| {
            // Different variables have different values; only their number and order matter.
            name.bytes().fold(7i128, |h, b| (h * 1_000_003 + i128::from(b)) % MODULUS)
        };
        let root =
            -linear.rest.modulo(&point) % MODULUS * inverse(i128::from(linear.lead)) % MODULUS;
        self.modulo(&|name| if name == linear.variable { root } else { point(name) }) == 0
    }

    /// Returns the value of a polynomial without quotients modulo a prime.
    fn modulo(&self, point: &dyn Fn(&str) -> i128) -> i128 {
        let term = |(monomial, c): (&Monomial, &i64)| {
            monomial.iter().fold(i128::from(*c), |product, (atom, power)| {
                let Atom::Var(name) = atom else { return product };
                (0..*power).fold(product, |p, _| p * point(name) % MODULUS)
            })
        };
        self.0.iter().map(term).sum::<i128>() % MODULUS
    }
}

/// Returns the inverse modulo the prime, by Fermat's little theorem.
fn inverse(x: i128) -> i128 {
    let (mut power, mut square, mut exponent) = (1, x, MODULUS - 2);
    while exponent > 0 {
        if exponent % 2 == 1 {
            power = power * square % MODULUS;
        }
        square = square * square % MODULUS;
        exponent /= 2;
    }
    power
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn n() -> Size {
        Size::var("n")
    }
    fn c(x: i64) -> Size {
        Size::constant(x)
    }

    #[test]
    fn factors_of_sums() {
        let square = n().add(&c(4)).mul(&n().add(&c(4)));
        assert_eq!(square.linear_factor(), Some((n().add(&c(4)), n().add(&c(4)))));
        let m = Size::var("m");
        let difference = n().mul(&n()).sub(&m.mul(&m));
        assert_eq!(difference.linear_factor(), Some((m.add(&n()), n().sub(&m))));
        assert_eq!(n().add(&c(4)).linear_factor(), None);
        assert_eq!(n().mul(&n()).add(&c(1)).linear_factor(), None);
        assert_eq!(n().mul(&m).add(&c(1)).linear_factor(), None);
    }

    #[test]
    fn quotients_by_sums() {
        let product = n().mul(&n()).add(&n().mul(&c(7))).add(&c(12));
        assert_eq!(exact_quotient(&product, &n().add(&c(4))), Some(n().add(&c(3))));
        assert_eq!(exact_quotient(&product, &n().add(&c(5))), None);
        assert_eq!(exact_quotient(&product, &n().mul(&c(2)).add(&c(5))), None);
        let odd = n().mul(&c(2)).add(&c(5));
        assert_eq!(exact_quotient(&product.mul(&odd), &odd), Some(product));
    }

    /// Linear polynomials known to [`Linear::of`], whose coefficients have no common divisor.
    fn linear() -> impl Strategy<Value = Size> {
        let times = || -4i64..=4;
        (1i64..=4, times(), times(), -64i64..=64, 0usize..3).prop_map(|(lead, a, b, c, at)| {
            let sum =
                [lead, a, b].into_iter().enumerate().fold(Size::constant(c), |sum, (i, x)| {
                    sum.add(&Size::var(["n", "m", "k"][(at + i) % 3]).mul(&Size::constant(x)))
                });
            let content = [lead, a, b, c].into_iter().fold(0, gcd);
            sum.over_number(content).expect("a divisor")
        })
    }

    proptest! {
        #[test]
        fn products_have_their_factors(a in linear(), b in linear(), k in linear()) {
            let product = a.mul(&b).mul(&k);
            prop_assert_eq!(product.div(&a), b.mul(&k));
            let (first, rest) = product.linear_factor().expect("a factor");
            prop_assert_eq!(first.mul(&rest), product);
            prop_assert!([&a, &b, &k].iter().any(|f| **f == first || f.neg() == first), "{}", first);
        }
    }
}
