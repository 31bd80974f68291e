//! Values of a rule's variables, found by matching the rule's sides with concrete sizes, types and terms.

use super::condition::LetSize;
use crate::calculus::size::{Size, Sym};
use crate::calculus::term::{Op, Term};
use crate::calculus::ty::Ty;
use std::sync::Arc;

/// Values of a rule's variables.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bindings {
    // Each list is short, so that a search is faster than a map.
    sizes: Vec<(Arc<str>, Size)>,
    types: Vec<(Arc<str>, Ty)>,
    functions: Vec<(Arc<str>, Term)>,
    /// Sizes with several unknown variables, deferred until `settle`.
    later: Vec<(Size, Size)>,
}

fn find<'a, T>(list: &'a [(Arc<str>, T)], name: &str) -> Option<&'a T> {
    list.iter().find(|(n, _)| **n == *name).map(|(_, v)| v)
}

impl Bindings {
    /// Returns the value of a size variable.
    pub fn size_of(&self, name: &str) -> Option<&Size> {
        find(&self.sizes, name)
    }

    /// Returns the value of a type variable.
    pub fn type_of(&self, name: &str) -> Option<&Ty> {
        find(&self.types, name)
    }

    /// Returns the value of a function variable.
    pub fn function_of(&self, name: &str) -> Option<&Term> {
        find(&self.functions, name)
    }

    /// Returns every size variable with its value, in the order in which matching met them.
    pub fn sizes(&self) -> impl Iterator<Item = (&str, &Size)> {
        self.sizes.iter().map(|(n, s)| (&**n, s))
    }

    /// Returns an expression over size variables with their values put in; unknown variables stay.
    pub fn size(&self, s: &Size) -> Size {
        // Most expressions are a single variable.
        if let Some(Sym::Meta(m)) = s.as_sym()
            && let Some(v) = self.size_of(m)
        {
            return v.clone();
        }
        s.substitute(&|sym| self.symbol(sym))
    }

    fn symbol(&self, sym: &Sym) -> Option<Size> {
        match sym {
            Sym::Meta(m) => self.size_of(m).cloned(),
            Sym::Dim(_) | Sym::Tile(_) | Sym::Width(_) | Sym::Round(_) => None,
        }
    }

    /// Returns a type over variables with their values put in; unknown variables stay.
    pub fn ty(&self, t: &Ty) -> Ty {
        t.substitute(&|m| self.type_of(m).cloned(), &|sym| self.symbol(sym))
    }

    /// Returns a side of the rule with every variable replaced; `None` when the result is ill-typed or a
    /// function variable has no value.
    pub fn term(&self, side: &Term) -> Option<Term> {
        if let Op::Meta(name) = side.op() {
            return self.function_of(name).cloned();
        }
        let args = side.args().iter().map(|a| self.term(a)).collect::<Option<Vec<_>>>()?;
        let sizes = side.sizes().iter().map(|s| self.size(s)).collect();
        let tys = side.tys().iter().map(|t| self.ty(t)).collect();
        Term::new(side.op().clone(), sizes, tys, args).ok()
    }

    /// Binds or checks a function variable, whatever its type.
    pub fn match_function(&mut self, name: &Arc<str>, got: &Term) -> bool {
        match self.function_of(name) {
            Some(v) => v == got,
            None => {
                self.functions.push((name.clone(), got.clone()));
                true
            }
        }
    }

    /// Binds or checks the variables of a size. A size with several unknown variables is deferred until
    /// [`Bindings::settle`].
    pub fn match_size(&mut self, want: &Size, got: &Size) -> bool {
        if let Some(Sym::Meta(m)) = want.as_sym() {
            return match self.size_of(m) {
                Some(v) => v == got,
                None => {
                    self.sizes.push((m.clone(), got.clone()));
                    true
                }
            };
        }
        let want = self.size(want);
        let unknown: Vec<(Arc<str>, i32)> = want
            .factors()
            .filter_map(|(s, e)| match s {
                Sym::Meta(m) => Some((m.clone(), e)),
                _ => None,
            })
            .collect();
        match unknown.as_slice() {
            [] => want == *got,
            [(m, e)] if e.abs() == 1 => {
                let me = Size::sym(Sym::Meta(m.clone()));
                if got.as_constant() == Some(0) {
                    return false;
                }
                let rest = if *e == 1 { want.div(&me) } else { want.mul(&me) };
                let value = if *e == 1 { got.div(&rest) } else { rest.div(got) };
                self.sizes.push((m.clone(), value));
                true
            }
            _ => {
                self.later.push((want, got.clone()));
                true
            }
        }
    }

    /// Binds or checks the variables of a type.
    pub fn match_ty(&mut self, want: &Ty, got: &Ty) -> bool {
        match (want, got) {
            (Ty::Meta(m), _) => match self.type_of(m) {
                Some(t) => t == got,
                None => {
                    self.types.push((m.clone(), got.clone()));
                    true
                }
            },
            (Ty::Unit, Ty::Unit) => true,
            (Ty::Scalar(a), Ty::Scalar(b)) => a == b,
            (Ty::Pair(a, b), Ty::Pair(c, d)) => self.match_ty(a, c) && self.match_ty(b, d),
            (Ty::Array(n, a), Ty::Array(m, b)) => self.match_size(n, m) && self.match_ty(a, b),
            (Ty::Vector(w, a), _) => match self.size(w) {
                // `a` may stand for a pair, whose vector form is a pair of vectors.
                w if !w.has_meta() => got.unvector(&w).is_some_and(|got| self.match_ty(a, &got)),
                w => match got {
                    Ty::Vector(v, b) => self.match_size(&w, v) && self.match_ty(a, b),
                    _ => false,
                },
            },
            _ => false,
        }
    }

    /// Matches the deferred sizes, until nothing changes. Returns false when a size does not fit or stays
    /// unknown.
    pub fn settle(&mut self) -> bool {
        while !self.later.is_empty() {
            let round = std::mem::take(&mut self.later);
            let before = round.len();
            if !round.iter().all(|(want, got)| self.match_size(want, got))
                || self.later.len() == before
            {
                return false;
            }
        }
        true
    }

    /// Binds the sizes that a rule makes with `let`.
    pub fn make(&mut self, lets: &[LetSize]) {
        for l in lets {
            let of = self.size(&l.of);
            self.sizes.push((l.name.as_str().into(), l.maker.make(&of)));
        }
    }
}
