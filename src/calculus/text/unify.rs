//! Unification of types and sizes with variables.

use crate::calculus::op::Equality;
use crate::calculus::size::{Size, Sym};
use crate::calculus::ty::Ty;
use indexmap::IndexMap;
use std::sync::Arc;

/// Bindings of type and size variables. The names of fresh variables begin with `_`.
#[derive(Clone, Debug, Default)]
pub struct Unifier {
    types: IndexMap<Arc<str>, Ty>,
    sizes: IndexMap<Arc<str>, Size>,
    fresh: usize,
}

impl Unifier {
    /// A new type variable.
    pub fn fresh_type(&mut self) -> Ty {
        self.fresh += 1;
        Ty::Meta(format!("_{}", self.fresh).into())
    }

    /// A new size variable.
    pub fn fresh_size(&mut self) -> Size {
        self.fresh += 1;
        Size::meta(&format!("_{}", self.fresh))
    }

    /// Returns the size with every binding applied.
    pub fn size(&self, s: &Size) -> Size {
        if !s.has_meta() {
            return s.clone();
        }
        s.substitute(&|sym| match sym {
            Sym::Meta(m) => self.sizes.get(m).map(|b| self.size(b)),
            _ => None,
        })
    }

    /// Returns the type with every binding applied.
    pub fn ty(&self, t: &Ty) -> Ty {
        t.substitute(&|m| self.types.get(m).map(|b| self.ty(b)), &|sym| match sym {
            Sym::Meta(m) => self.sizes.get(m).map(|b| self.size(b)),
            _ => None,
        })
    }

    /// Returns the number of components of the type with every binding applied, including those of its
    /// components. Counts to `most` at most.
    pub fn components(&self, t: &Ty, most: usize) -> usize {
        let (mut t, mut count) = (t, 1);
        while count < most {
            t = match t {
                Ty::Unit | Ty::Scalar(_) => break,
                Ty::Meta(m) => match self.types.get(m) {
                    Some(bound) => bound,
                    None => break,
                },
                Ty::Vector(_, inner) | Ty::Array(_, inner) => inner,
                Ty::Pair(a, b) => {
                    count += self.components(a, most - count);
                    b
                }
            };
            count += 1;
        }
        count
    }

    /// Makes two sizes equal by binding one variable; fresh ones are bound before a rule's own.
    pub fn unify_sizes(&mut self, a: &Size, b: &Size) -> bool {
        let (a, b) = (self.size(a), self.size(b));
        if a == b {
            return true;
        }
        if b.as_constant() == Some(0) || a.as_constant() == Some(0) {
            return false;
        }
        // `a / b = 1`, solved for a variable with the exponent 1 or -1: `m^e * rest = 1`.
        let ratio = a.div(&b);
        let mut candidates: Vec<(Arc<str>, i32)> = ratio
            .factors()
            .filter_map(|(s, e)| match s {
                Sym::Meta(m) if e.abs() == 1 => Some((m.clone(), e)),
                _ => None,
            })
            .collect();
        candidates.sort_by_key(|(m, _)| (!m.starts_with('_'), m.clone()));
        for (m, e) in candidates {
            let me = Size::sym(Sym::Meta(m.clone()));
            let rest = if e == 1 { ratio.div(&me) } else { ratio.mul(&me) };
            let value = if e == 1 { Size::constant(1).div(&rest) } else { rest };
            let mut occurs = false;
            value.visit(&mut |s| occurs |= *s == Sym::Meta(m.clone()));
            if !occurs {
                self.sizes.insert(m, value);
                return true;
            }
        }
        false
    }

    /// Makes two types equal.
    pub fn unify(&mut self, a: &Ty, b: &Ty) -> bool {
        let (a, b) = (self.ty(a), self.ty(b));
        if a == b {
            return true;
        }
        match (&a, &b) {
            (Ty::Meta(m), t) | (t, Ty::Meta(m)) => {
                if mentions(t, m) {
                    return false;
                }
                // Prefer to keep a rule's own variable unbound.
                match t {
                    Ty::Meta(other) if other.starts_with('_') && !m.starts_with('_') => {
                        self.types.insert(other.clone(), Ty::Meta(m.clone()));
                    }
                    _ => {
                        self.types.insert(m.clone(), t.clone());
                    }
                }
                true
            }
            (Ty::Array(n, x), Ty::Array(m, y)) | (Ty::Vector(n, x), Ty::Vector(m, y)) => {
                self.unify_sizes(n, m) && self.unify(x, y)
            }
            (Ty::Pair(x, y), Ty::Pair(u, v)) => self.unify(x, u) && self.unify(y, v),
            _ => false,
        }
    }
}

impl Equality for Unifier {
    fn types(&mut self, a: &Ty, b: &Ty) -> bool {
        self.unify(a, b)
    }

    fn sizes(&mut self, a: &Size, b: &Size) -> bool {
        self.unify_sizes(a, b)
    }

    fn array(&mut self, t: &Ty) -> Option<(Size, Ty)> {
        let t = self.ty(t);
        if let Ty::Array(n, x) = t {
            return Some((n, (*x).clone()));
        }
        let (n, x) = (self.fresh_size(), self.fresh_type());
        self.unify(&t, &Ty::array(&n, &x)).then_some((n, x))
    }

    fn pair(&mut self, t: &Ty) -> Option<(Ty, Ty)> {
        let t = self.ty(t);
        if let Ty::Pair(a, b) = t {
            return Some(((*a).clone(), (*b).clone()));
        }
        let (a, b) = (self.fresh_type(), self.fresh_type());
        self.unify(&t, &Ty::pair(&a, &b)).then_some((a, b))
    }

    fn lane(&mut self, w: Option<&Size>, t: &Ty) -> Option<(Size, Ty)> {
        let t = self.ty(t);
        let w = match w.or_else(|| t.width()) {
            Some(w) => self.size(w),
            None => self.fresh_size(),
        };
        if let Some(x) = t.unvector(&w) {
            return Some((w, x));
        }
        let x = self.fresh_type();
        let vector = Ty::Vector(w.clone(), x.clone().into());
        self.unify(&t, &vector).then(|| (w, self.ty(&x)))
    }

    fn known(&self, t: &Ty) -> Ty {
        self.ty(t)
    }

    fn known_size(&self, n: &Size) -> Size {
        self.size(n)
    }
}

fn mentions(t: &Ty, m: &str) -> bool {
    match t {
        Ty::Unit | Ty::Scalar(_) => false,
        Ty::Meta(x) => **x == *m,
        Ty::Vector(_, t) | Ty::Array(_, t) => mentions(t, m),
        Ty::Pair(a, b) => mentions(a, m) || mentions(b, m),
    }
}
