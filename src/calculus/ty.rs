//! Types inside terms. Tuples are nested pairs: `(a, b, c)` is `(a, (b, c))`.

use super::hashed::{Hashed, Latest, hash_of};
use super::size::{Size, Sym};
use crate::lang::types::ScalarType;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// The type of a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Ty {
    /// The one value.
    Unit,
    /// A scalar.
    Scalar(ScalarType),
    /// A vector of that many elements, which are scalars or a rule's variable. A vector of pairs is a pair of
    /// vectors, and a vector of arrays is an array of vectors: use [`Ty::vector`].
    Vector(Size, Shared),
    /// Two components.
    Pair(Shared, Shared),
    /// An array of that many elements.
    Array(Size, Shared),
    /// A type variable of a rule.
    Meta(Arc<str>),
}

/// A part of a type. It knows its hash and what is in it, since the types of environments are as deep as a program has variables.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shared(Arc<Hashed<Part>>);

#[derive(PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Part {
    ty: Ty,
    has_array: bool,
    is_chosen: bool,
}

impl Deref for Shared {
    type Target = Ty;

    fn deref(&self) -> &Ty {
        &self.0.ty
    }
}

static LATEST: Latest<Part> = Latest::new();

impl From<Ty> for Shared {
    fn from(ty: Ty) -> Shared {
        let hash = hash_of(&ty);
        if let Some(known) = LATEST.find(hash, |part| part.ty == ty) {
            return Shared(known);
        }
        let (has_array, is_chosen) = (ty.has_array(), ty.is_chosen());
        let part = Arc::new(Hashed::with(hash, Part { ty, has_array, is_chosen }));
        LATEST.keep(part.clone());
        Shared(part)
    }
}

impl fmt::Display for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&**self, f)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// The type of a function; every term is one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FnTy {
    /// The argument type.
    pub dom: Ty,
    /// The result type.
    pub cod: Ty,
}

impl FnTy {
    /// `dom -> cod`.
    pub fn new(dom: Ty, cod: Ty) -> FnTy {
        FnTy { dom, cod }
    }
}

impl Ty {
    /// `[n]t`.
    pub fn array(n: &Size, t: &Ty) -> Ty {
        Ty::Array(n.clone(), t.clone().into())
    }

    /// `(a, b)`.
    pub fn pair(a: &Ty, b: &Ty) -> Ty {
        Ty::Pair(a.clone().into(), b.clone().into())
    }

    /// Returns the type of `w` values of type `t`, one in each lane: component-wise over pairs and arrays;
    /// `None` for a type without a vector form.
    pub fn vector(w: &Size, t: &Ty) -> Option<Ty> {
        match t {
            Ty::Unit => Some(Ty::Unit),
            Ty::Scalar(_) | Ty::Meta(_) => Some(Ty::Vector(w.clone(), t.clone().into())),
            Ty::Pair(a, b) => Some(Ty::pair(&Ty::vector(w, a)?, &Ty::vector(w, b)?)),
            Ty::Array(n, t) => Some(Ty::array(n, &Ty::vector(w, t)?)),
            Ty::Vector(..) => None,
        }
    }

    /// The inverse of [`Ty::vector`].
    pub fn unvector(&self, w: &Size) -> Option<Ty> {
        match self {
            Ty::Unit => Some(Ty::Unit),
            Ty::Vector(v, t) if v == w => Some((**t).clone()),
            Ty::Pair(a, b) => Some(Ty::pair(&a.unvector(w)?, &b.unvector(w)?)),
            Ty::Array(n, t) => Some(Ty::array(n, &t.unvector(w)?)),
            Ty::Scalar(_) | Ty::Vector(..) | Ty::Meta(_) => None,
        }
    }

    /// Returns the width of the vectors in the type.
    pub fn width(&self) -> Option<&Size> {
        match self {
            Ty::Vector(w, _) => Some(w),
            Ty::Pair(a, b) => a.width().or_else(|| b.width()),
            Ty::Array(_, t) => t.width(),
            Ty::Unit | Ty::Scalar(_) | Ty::Meta(_) => None,
        }
    }

    /// Whether the type is a scalar, or pairs of scalars.
    pub fn is_scalar(&self) -> bool {
        match self {
            Ty::Scalar(_) => true,
            Ty::Pair(a, b) => a.is_scalar() && b.is_scalar(),
            Ty::Unit | Ty::Vector(..) | Ty::Array(..) | Ty::Meta(_) => false,
        }
    }

    /// Whether the type contains an array.
    pub fn has_array(&self) -> bool {
        match self {
            Ty::Array(..) => true,
            Ty::Pair(a, b) => a.0.has_array || b.0.has_array,
            Ty::Unit | Ty::Scalar(_) | Ty::Vector(..) | Ty::Meta(_) => false,
        }
    }

    /// Whether a length or width in the type depends on a symbol whose value tuning chooses.
    pub fn is_chosen(&self) -> bool {
        match self {
            Ty::Unit | Ty::Scalar(_) | Ty::Meta(_) => false,
            Ty::Vector(n, t) | Ty::Array(n, t) => t.0.is_chosen || n.is_chosen(),
            Ty::Pair(a, b) => a.0.is_chosen || b.0.is_chosen,
        }
    }

    /// Whether the type contains a vector.
    pub fn has_vector(&self) -> bool {
        match self {
            Ty::Vector(..) => true,
            Ty::Pair(a, b) => a.has_vector() || b.has_vector(),
            Ty::Array(_, t) => t.has_vector(),
            Ty::Unit | Ty::Scalar(_) | Ty::Meta(_) => false,
        }
    }

    /// Whether the type is a scalar or vector, or pairs of them, so that a value fits in registers.
    pub fn is_element(&self) -> bool {
        match self {
            Ty::Scalar(_) | Ty::Vector(..) => true,
            Ty::Pair(a, b) => a.is_element() && b.is_element(),
            Ty::Unit | Ty::Array(..) | Ty::Meta(_) => false,
        }
    }

    /// Returns the scalar (and vector) components in order, with the sizes of the arrays around each,
    /// outermost first.
    pub fn components(&self) -> Vec<(Vec<Size>, Ty)> {
        match self {
            Ty::Unit => vec![],
            Ty::Scalar(_) | Ty::Vector(..) | Ty::Meta(_) => vec![(vec![], self.clone())],
            Ty::Pair(a, b) => [a.components(), b.components()].concat(),
            Ty::Array(n, t) => {
                let mut inner = t.components();
                for (dims, _) in &mut inner {
                    dims.insert(0, n.clone());
                }
                inner
            }
        }
    }

    /// Replaces type variables and size symbols; those without a replacement stay.
    #[must_use]
    pub fn substitute(
        &self,
        types: &dyn Fn(&str) -> Option<Ty>,
        sizes: &dyn Fn(&Sym) -> Option<Size>,
    ) -> Ty {
        match self {
            Ty::Unit | Ty::Scalar(_) => self.clone(),
            Ty::Meta(m) => types(m).unwrap_or_else(|| self.clone()),
            Ty::Vector(w, t) => {
                let (w, t) = (w.substitute(sizes), t.substitute(types, sizes));
                Ty::vector(&w, &t).unwrap_or(Ty::Vector(w, t.into()))
            }
            Ty::Pair(a, b) => Ty::pair(&a.substitute(types, sizes), &b.substitute(types, sizes)),
            Ty::Array(n, t) => Ty::array(&n.substitute(sizes), &t.substitute(types, sizes)),
        }
    }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ty::Unit => f.write_str("()"),
            Ty::Scalar(s) => write!(f, "{s}"),
            Ty::Vector(w, t) => write!(f, "<{w}>{t}"),
            Ty::Pair(a, b) => write!(f, "({a}, {b})"),
            Ty::Array(n, t) => write!(f, "[{n}]{t}"),
            Ty::Meta(m) => write!(f, "?{m}"),
        }
    }
}

impl fmt::Display for FnTy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}", self.dom, self.cod)
    }
}
