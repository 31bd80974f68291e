//! Ranges of the counters of maps and loops, and of what is computed of them: which indices are in their arrays, and which
//! expressions always have a value.

use super::core::{Ex, Kind, Layout, Var};
use crate::calculus::size::{Size, SizeEnv};
use crate::calculus::ty::Ty;
use crate::lang::typed::{Prim, ScalarOp};
use crate::lang::types::ScalarType;
use std::collections::HashMap;

/// What is known of names. A walk says which expressions it enters.
pub(super) struct Ranges<'a> {
    env: &'a SizeEnv,
    /// The greatest values of counters, and of names for what is computed of them. None of them is negative.
    most: HashMap<Var, i128>,
}

impl<'a> Ranges<'a> {
    pub(super) fn new(env: &'a SizeEnv) -> Ranges<'a> {
        Ranges { env, most: HashMap::new() }
    }

    /// Notes a counter of `n` steps.
    pub(super) fn counter(&mut self, v: Var, n: &Size) {
        if let Ok(n) = n.eval(self.env) {
            self.most.insert(v, i128::from(n) - 1);
        }
    }

    /// Returns the value of a size.
    pub(super) fn size(&self, n: &Size) -> Option<u64> {
        n.eval(self.env).ok()
    }

    /// Notes what an expression binds.
    pub(super) fn enter(&mut self, e: &Ex) {
        match &e.kind {
            Kind::Map(Prim::Map, f, args) => {
                for (p, array) in f.params.iter().zip(args) {
                    if let (Layout::Var(v, _), Kind::Prim(Prim::Iota, ..), Ty::Array(n, _)) =
                        (p, &array.kind, &array.ty)
                    {
                        self.counter(*v, n);
                    }
                }
            }
            Kind::For(_, bound, Layout::Var(v, _), ..) => {
                if let Some(most) = self.greatest(bound) {
                    self.most.insert(*v, most - 1);
                }
            }
            Kind::Let(Layout::Var(v, _), value, _) => {
                if let Some(most) = self.natural(value) {
                    self.most.insert(*v, most);
                }
            }
            _ => {}
        }
    }

    /// Whether an expression has a value whatever its variables are, in their ranges: no index that may be outside of its array, no
    /// divisor that may be zero, no loop without a bound.
    pub(super) fn cannot_fail(&mut self, e: &Ex) -> bool {
        self.enter(e);
        !self.may_fail(e) && e.parts().iter().all(|(_, part)| self.cannot_fail(part))
    }

    /// Whether an expression may have no value although its parts have one.
    pub(super) fn may_fail(&self, e: &Ex) -> bool {
        match &e.kind {
            Kind::Index(array, place) => !self.has(array, place),
            Kind::While(..) => true,
            Kind::Op(ScalarOp::Div | ScalarOp::Rem, args) => {
                !is_float(&e.ty) && positive(&args[1]).is_none()
            }
            Kind::Op(ScalarOp::Pow, _) => !is_float(&e.ty),
            _ => false,
        }
    }

    /// Whether an array has an element at a place.
    fn has(&self, array: &Ex, place: &Ex) -> bool {
        let (Ty::Array(n, _), Some(most)) = (&array.ty, self.natural(place)) else { return false };
        n.eval(self.env).is_ok_and(|n| most < i128::from(n))
    }

    /// Returns a number that an integer never exceeds, if it is never negative, either.
    pub(super) fn natural(&self, e: &Ex) -> Option<i128> {
        let (most, limit) = (self.greatest(e)?, limit(&e.ty)?);
        let naturals = |args: &[Ex]| args.iter().all(|a| self.natural(a).is_some());
        let is_natural = match &e.kind {
            Kind::Var(_) | Kind::Size(_) => true,
            Kind::Lit(_) => most >= 0,
            Kind::Op(ScalarOp::Max, args) => args.iter().any(|a| self.natural(a).is_some()),
            // What is too large for the type wraps around.
            Kind::Op(ScalarOp::Add | ScalarOp::Mul | ScalarOp::Cast(_), args) => {
                most <= limit && naturals(args)
            }
            Kind::Op(ScalarOp::Min | ScalarOp::Div | ScalarOp::Rem, args) => naturals(args),
            Kind::Op(ScalarOp::Sub, args) => naturals(args) && self.least(e) >= Some(0),
            _ => false,
        };
        is_natural.then_some(most)
    }

    /// Returns a number that an integer is never below; `None` if none is known.
    fn least(&self, e: &Ex) -> Option<i128> {
        match &e.kind {
            Kind::Lit(n) => n.as_int(),
            Kind::Size(n) => Some(i128::from(n.eval(self.env).ok()?)),
            // The difference of natural numbers with a sign does not wrap around.
            Kind::Op(ScalarOp::Sub, args) => {
                self.natural(&args[0]).filter(|_| is_signed(&e.ty))?;
                let most = self.natural(&args[1])?;
                Some(self.least(&args[0])? - most)
            }
            _ => self.natural(e).map(|_| 0),
        }
    }

    /// Returns a number that an integer never exceeds; `None` if none is known.
    pub(super) fn greatest(&self, e: &Ex) -> Option<i128> {
        let args = match &e.kind {
            Kind::Var(v) => return self.most.get(v).copied(),
            Kind::Lit(n) => return n.as_int(),
            Kind::Size(n) => return Some(i128::from(n.eval(self.env).ok()?)),
            Kind::Op(_, args) => args,
            _ => return None,
        };
        let natural = |k: usize| self.natural(&args[k]);
        let of = |k: usize| self.greatest(&args[k]);
        let Kind::Op(op, _) = &e.kind else { return None };
        match op {
            // The sum of a natural number and a negative one does not wrap around.
            ScalarOp::Add if natural(0).or(natural(1)).is_some() => of(0)?.checked_add(of(1)?),
            // Nor does the difference of natural numbers with a sign.
            ScalarOp::Sub if is_signed(&e.ty) => {
                natural(1)?;
                Some(natural(0)? - self.least(&args[1])?)
            }
            ScalarOp::Mul => natural(0)?.checked_mul(natural(1)?),
            ScalarOp::Div => Some(natural(0)? / positive(&args[1])?),
            ScalarOp::Rem => Some(natural(0)?.min(positive(&args[1])? - 1)),
            ScalarOp::Cast(_) => natural(0),
            ScalarOp::Min => match (of(0), of(1)) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            },
            ScalarOp::Max => Some(of(0)?.max(of(1)?)),
            _ => None,
        }
    }
}

/// Returns the value of a positive literal.
fn positive(e: &Ex) -> Option<i128> {
    match &e.kind {
        Kind::Lit(n) => n.as_int().filter(|n| *n > 0),
        _ => None,
    }
}

/// Returns the greatest number of an integer type.
fn limit(t: &Ty) -> Option<i128> {
    match t {
        Ty::Scalar(ScalarType::Bool) => None,
        Ty::Scalar(t) if !t.is_float() => Some((1 << (t.bits() - usize::from(t.is_signed()))) - 1),
        _ => None,
    }
}

fn is_signed(t: &Ty) -> bool {
    matches!(t, Ty::Scalar(t) if t.is_signed())
}

fn is_float(t: &Ty) -> bool {
    matches!(t, Ty::Scalar(t) if t.is_float())
}
