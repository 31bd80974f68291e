//! Linear factors of polynomials, so that `n*n + 7*n + 12` and `(n + 3)*(n + 4)` are one size.
//!
//! The linear polynomials known here are `v + c`, `v + w + c` and `v - w + c`, for variables `v` and `w` and a
//! constant `c` of at most [`MOST_APART`]. Division by them and factors of this form use the same set: if a
//! quotient simplifies for the checker, then its parts cancel as symbols of the calculus, too.

use super::size::{Atom, Monomial, Size};

/// Largest magnitude of the constant in a linear factor.
const MOST_APART: i64 = 64;
/// Highest power of a variable in polynomials that are divided or factored.
const MOST_DEGREE: u32 = 16;
/// The modulus of the test that excludes most candidates for factors: a prime.
const MODULUS: i128 = (1 << 61) - 1;

/// The polynomial `variable + rest`, where `rest` does not contain the variable.
struct Linear {
    variable: String,
    rest: Size,
}

impl Linear {
    /// Reads a polynomial as one of the linear polynomials known here.
    fn of(size: &Size) -> Option<Linear> {
        let mut variables = 0;
        let mut chosen = None;
        for (monomial, c) in &size.0 {
            match monomial.first_key_value() {
                None if c.abs() <= MOST_APART => {}
                Some((Atom::Var(name), 1)) if monomial.len() == 1 && c.abs() == 1 => {
                    variables += 1;
                    if *c == 1 {
                        chosen = Some(name);
                    }
                }
                _ => return None,
            }
        }
        let variable = chosen.filter(|_| variables <= 2)?.clone();
        let rest = size.sub(&Size::var(&variable));
        Some(Linear { variable, rest })
    }

    fn size(&self) -> Size {
        Size::var(&self.variable).add(&self.rest)
    }

    /// Divides by synthetic division in the variable. Returns `None` if there is a remainder.
    fn divides(&self, top: &Size) -> Option<Size> {
        let mut coefficients = coefficients(top, &self.variable)?.into_iter().rev();
        let mut carried = coefficients.next()?;
        let mut quotient = Size::constant(0);
        let variable = Size::var(&self.variable);
        for coefficient in coefficients {
            quotient = quotient.mul(&variable).add(&carried);
            carried = coefficient.sub(&self.rest.mul(&carried));
        }
        (carried.is_zero() && !quotient.overflowed()).then_some(quotient)
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
            let others = variables.iter().filter(|w| *w != v);
            let signed = others.flat_map(|w| [Size::var(w), Size::var(w).neg()]);
            let mut rests = std::iter::once(Size::constant(0)).chain(signed).flat_map(|rest| {
                (-MOST_APART..=MOST_APART).map(move |c| rest.add(&Size::constant(c)))
            });
            rests.find_map(|rest| {
                let linear = Linear { variable: v.clone(), rest };
                let quotient = self.may_vanish(&linear).then(|| linear.divides(self)).flatten()?;
                Some((linear.size(), quotient))
            })
        })
    }

    /// Returns whether the polynomial is zero, modulo a prime, at one zero of the linear polynomial. If it is not,
    /// the linear polynomial is not a factor.
    fn may_vanish(&self, linear: &Linear) -> bool {
        let point = |name: &str| {
            // Different variables have different values; only their number and order matter.
            name.bytes().fold(7i128, |h, b| (h * 1_000_003 + i128::from(b)) % MODULUS)
        };
        let root = -linear.rest.modulo(&point);
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
    }

    /// Linear polynomials known to [`Linear::of`].
    fn linear() -> impl Strategy<Value = Size> {
        ("[nmk]", proptest::option::of(("[nmk]", any::<bool>())), -64i64..=64).prop_map(
            |(v, w, c)| {
                let sum = Size::var(&v).add(&Size::constant(c));
                match w.filter(|(w, _)| *w != v) {
                    Some((w, true)) => sum.add(&Size::var(&w)),
                    Some((w, false)) => sum.sub(&Size::var(&w)),
                    None => sum,
                }
            },
        )
    }

    proptest! {
        #[test]
        fn products_have_their_factors(a in linear(), b in linear(), k in linear()) {
            let product = a.mul(&b).mul(&k);
            prop_assert_eq!(product.div(&a), b.mul(&k));
            let (first, rest) = product.linear_factor().expect("a factor");
            prop_assert_eq!(first.mul(&rest), product);
        }
    }
}
