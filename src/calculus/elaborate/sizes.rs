//! Translates sizes and types of the surface language into those of the calculus.
//!
//! A surface size is a polynomial, a size of a term a monomial. The common factor of all terms of a
//! polynomial and its linear factors become factors; if a sum is left, it becomes a dimension of its own,
//! named by its printed form. So `2*n + 4` is `2 * "n + 2"`, and equal polynomials become equal monomials.
//! Two different polynomials never get one symbol, whatever their values.

use super::problem;
use crate::calculus::size::{Size, SizeEnv, Sym};
use crate::calculus::ty::Ty;
use crate::diag::{Code, Result, Span};
use crate::lang::size::{Atom, EXACT, Monomial, Size as Poly, SizeError};
use crate::lang::types::Type;
use indexmap::IndexMap;
use num_integer::gcd;
use std::collections::HashMap;

/// The values of size parameters, and the translations of the sizes met so far.
pub(super) struct Sizes<'a> {
    values: &'a IndexMap<String, u64>,
    /// Size variables of the `iterate` steps being unrolled.
    steps: HashMap<String, Poly>,
    known: HashMap<Poly, Size>,
    env: SizeEnv,
}

impl<'a> Sizes<'a> {
    /// Starts with the values of the size parameters.
    pub(super) fn new(values: &'a IndexMap<String, u64>) -> Self {
        Sizes { values, steps: HashMap::new(), known: HashMap::new(), env: SizeEnv::default() }
    }

    /// The values of every dimension met.
    pub(super) fn env(&self) -> &SizeEnv {
        &self.env
    }

    /// Returns the values of every dimension met, to add others.
    pub(super) fn env_mut(&mut self) -> &mut SizeEnv {
        &mut self.env
    }

    /// Returns the values of every dimension met.
    pub(super) fn into_env(self) -> SizeEnv {
        self.env
    }

    /// Lets an iterate's size variable stand for `now`; returns what it stood for before.
    pub(super) fn step(&mut self, name: &str, now: Option<Poly>) -> Option<Poly> {
        match now {
            Some(poly) => self.steps.insert(name.to_owned(), poly),
            None => self.steps.remove(name),
        }
    }

    /// Returns the polynomial over the entry's own parameters. Rests of divisions are numbers in it, so that divisions without a rest
    /// are exact quotients.
    pub(super) fn closed(&self, size: &Poly) -> Poly {
        let lookup = |name: &str| self.values.get(name).and_then(|v| i64::try_from(*v).ok());
        let value = |p: &Poly, q: &Poly| p.rest(q).eval(&lookup).ok().map(Poly::constant);
        size.substitute(&|name| self.steps.get(name).cloned()).with_rests(&value)
    }

    /// Returns the value of a size.
    pub(super) fn value(&self, size: &Poly, span: Span) -> Result<u64> {
        let closed = self.closed(size);
        let lookup = |name: &str| self.values.get(name).and_then(|v| i64::try_from(*v).ok());
        let value = closed.eval(&lookup).map_err(|e| match e {
            SizeError::Unbound(name) if self.values.contains_key(&name) => {
                problem(Code::SizeRange, format!("`{name}` is larger than 63 bits hold"), span)
            }
            SizeError::Unbound(name) => {
                problem(Code::SizeUnknown, format!("`{name}` has no value"), span)
                    .help(format!("give it one with `--size {name}=...`"))
            }
            SizeError::Overflow => {
                problem(Code::SizeRange, format!("`{closed}` is larger than 64 bits hold"), span)
            }
            SizeError::Negative(x) => problem(Code::SizeRange, format!("`{closed}` is {x}"), span),
            SizeError::NotExact(a, b) => problem(
                Code::NotDivisible,
                format!("`{closed}` is not a whole number: {b} does not divide {a}"),
                span,
            )
            .help(EXACT),
        })?;
        Ok(value.unsigned_abs())
    }

    /// Translates a size; its value is checked and its symbols are recorded.
    pub(super) fn size(&mut self, size: &Poly, span: Span) -> Result<Size> {
        let closed = self.closed(size);
        if let Some(s) = self.known.get(&closed) {
            return Ok(s.clone());
        }
        self.value(&closed, span)?;
        let (over, under) = closed.ratio();
        let over = self.monomial(&over, span)?;
        let under = self.monomial(&under, span)?;
        let out = over.div(&under);
        self.known.insert(closed, out.clone());
        Ok(out)
    }

    /// Translates a polynomial without quotients: common factors times one symbol for the rest.
    fn monomial(&mut self, poly: &Poly, span: Span) -> Result<Size> {
        let Some((common, content)) = common_factor(poly) else {
            return Ok(Size::constant(0));
        };
        let mut out = Size::constant(content.unsigned_abs());
        for (atom, exponent) in &common {
            let Atom::Var(name) = atom else { continue };
            let value = self.value(&Poly::var(name), span)?;
            self.env.insert(Sym::Dim(name.as_str().into()), value);
            for _ in 0..*exponent {
                out = out.mul(&Size::dim(name));
            }
        }
        let rest = divided(poly, &common, content);
        // A symbol stands for a natural number: of two negative factors, both get the other sign.
        let exists = |part: &Poly| self.value(part, span).is_ok();
        let factors = rest.linear_factor().and_then(|(factor, other)| {
            let negative = (factor.neg(), other.neg());
            [(factor, other), negative]
                .into_iter()
                .find(|(factor, other)| exists(factor) && exists(other))
        });
        if let Some((factor, other)) = factors {
            return Ok(out.mul(&self.size(&factor, span)?).mul(&self.size(&other, span)?));
        }
        if rest.as_constant() != Some(1) {
            let value = self.value(&rest, span)?;
            // Of `n - m` and `m - n`, both 0, only one is a symbol, for the sign of a factor is then not known.
            let rest = if value == 0 { rest.neg().min(rest) } else { rest };
            let name = rest.to_string();
            self.env.insert(Sym::Dim(name.as_str().into()), value);
            out = out.mul(&Size::dim(&name));
        }
        Ok(out)
    }

    /// Translates a type, whose size in bytes must fit in 63 bits.
    pub(super) fn ty(&mut self, ty: &Type, span: Span) -> Result<Ty> {
        if self.extent(ty, span)?.is_none() {
            let text = format!("`{ty}` has more bytes than 63 bits count");
            return Err(problem(Code::SizeRange, text, span).into());
        }
        self.translated(ty, span)
    }

    /// Returns the bytes of a value; `None` when the number does not fit in 63 bits.
    fn extent(&self, ty: &Type, span: Span) -> Result<Option<i64>> {
        let times = |n: u64, t: Option<i64>| t?.checked_mul(i64::try_from(n).ok()?);
        Ok(match ty {
            Type::Scalar(s) => i64::try_from(s.bytes()).ok(),
            Type::Vector(w, s) => times(self.value(w, span)?, i64::try_from(s.bytes()).ok()),
            Type::Tuple(ts) => {
                let mut sum = Some(0i64);
                for t in ts {
                    let part = self.extent(t, span)?;
                    sum = sum.and_then(|s| s.checked_add(part?));
                }
                sum
            }
            Type::Array(n, t) => times(self.value(n, span)?, self.extent(t, span)?),
        })
    }

    fn translated(&mut self, ty: &Type, span: Span) -> Result<Ty> {
        Ok(match ty {
            Type::Scalar(s) => Ty::Scalar(*s),
            Type::Vector(w, s) => {
                let w = self.size(w, span)?;
                Ty::Vector(w, Ty::Scalar(*s).into())
            }
            Type::Tuple(ts) => {
                let tys =
                    ts.iter().map(|t| self.translated(t, span)).collect::<Result<Vec<_>>>()?;
                nest(tys, |a, b| Ty::pair(&a, &b)).unwrap_or(Ty::Unit)
            }
            Type::Array(n, t) => {
                let (n, t) = (self.size(n, span)?, self.translated(t, span)?);
                Ty::array(&n, &t)
            }
        })
    }

    /// Checks that `whole` is a multiple of `part`.
    pub(super) fn check_divides(&self, whole: &Poly, part: &Poly, span: Span) -> Result<()> {
        let (w, p) = (self.value(whole, span)?, self.value(part, span)?);
        if p == 0 || w % p != 0 {
            let text = format!("{} does not divide {}", part.with_value(p), whole.with_value(w));
            return Err(problem(Code::NotDivisible, text, span).help(EXACT).into());
        }
        Ok(())
    }
}

/// Nests `[a, b, c]` as `pair(a, pair(b, c))`; `None` for an empty list.
pub(super) fn nest<T>(items: Vec<T>, pair: impl Fn(T, T) -> T) -> Option<T> {
    items.into_iter().rev().reduce(|tail, head| pair(head, tail))
}

/// Returns the common factor of all terms of a polynomial; `None` for the polynomial 0.
fn common_factor(poly: &Poly) -> Option<(Monomial, i64)> {
    let mut terms = poly.0.iter();
    let (first, c) = terms.next()?;
    let (mut common, mut content) = (first.clone(), c.unsigned_abs());
    for (m, c) in terms {
        content = gcd(content, c.unsigned_abs());
        common =
            common.into_iter().filter_map(|(a, e)| m.get(&a).map(|f| (a, e.min(*f)))).collect();
    }
    Some((common, i64::try_from(content).unwrap_or(1).max(1)))
}

fn divided(poly: &Poly, common: &Monomial, content: i64) -> Poly {
    let strip = |m: &Monomial| -> Monomial {
        m.iter()
            .map(|(a, e)| (a.clone(), e - common.get(a).copied().unwrap_or(0)))
            .filter(|(_, e)| *e > 0)
            .collect()
    };
    Poly(poly.0.iter().map(|(m, c)| (strip(m), c / content)).collect())
}
