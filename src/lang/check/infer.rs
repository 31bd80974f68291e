//! Types with holes, and their unification. Sizes are handled by [`super::sizes`].
//!
//! Nothing here reports errors. A failed unification returns a [`Clash`], and the caller explains what was unified.

use super::sizes::SizeVars;
use crate::diag::Span;
use crate::lang::size::Size;
use crate::lang::types::{ScalarType, Type};

use std::rc::Rc;

/// A type that may have holes. Copies share their parts, because every expression has a type.
#[derive(Clone, Debug, PartialEq)]
pub enum Ty {
    /// A hole.
    Meta(usize),
    /// One element.
    Scalar(ScalarType),
    /// A vector with this number of elements. The element type is a scalar or a hole.
    Vector(Size, Rc<Ty>),
    /// Two or more components.
    Tuple(Rc<[Ty]>),
    /// The fields of a record, in the order of their names.
    Record(Rc<[String]>, Rc<[Ty]>),
    /// An array.
    Array(Size, Rc<Ty>),
}

impl From<&Type> for Ty {
    fn from(ty: &Type) -> Ty {
        match ty {
            Type::Scalar(s) => Ty::Scalar(*s),
            Type::Vector(w, s) => Ty::Vector(w.clone(), Rc::new(Ty::Scalar(*s))),
            Type::Tuple(ts) => Ty::Tuple(ts.iter().map(Ty::from).collect()),
            Type::Array(n, t) => Ty::Array(n.clone(), Rc::new(Ty::from(&**t))),
        }
    }
}

/// The types that may fill a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Any type.
    Any,
    /// Any scalar.
    Scalar,
    /// An integer or float, or a vector of these; `i32` by default.
    Number,
    /// A float, or a vector of floats; `f32` by default.
    Float,
    /// An integer; `i32` by default.
    Integer,
    /// An integer or truth value, or a vector of these; `i32` by default.
    Bits,
}

impl Class {
    fn admits(self, s: ScalarType) -> bool {
        match self {
            Class::Any | Class::Scalar => true,
            Class::Number => s != ScalarType::Bool,
            Class::Float => s.is_float(),
            Class::Integer => s.is_integer(),
            Class::Bits => !s.is_float(),
        }
    }

    fn meet(self, other: Class) -> Option<Class> {
        Some(match (self, other) {
            (Class::Any, c) | (c, Class::Any) => c,
            (Class::Scalar, c) | (c, Class::Scalar) => c,
            (Class::Bits, Class::Bits) => Class::Bits,
            (Class::Bits, Class::Float) | (Class::Float, Class::Bits) => return None,
            (Class::Bits, _) | (_, Class::Bits) => Class::Integer,
            (Class::Number, c) | (c, Class::Number) => c,
            (Class::Float, Class::Float) => Class::Float,
            (Class::Integer, Class::Integer) => Class::Integer,
            (Class::Float, Class::Integer) | (Class::Integer, Class::Float) => return None,
        })
    }

    /// Returns the type of a value of which nothing else is known.
    pub fn default(self) -> Option<ScalarType> {
        match self {
            Class::Number | Class::Integer | Class::Bits => Some(ScalarType::I32),
            Class::Float => Some(ScalarType::F32),
            Class::Any | Class::Scalar => None,
        }
    }

    /// Returns a description of the class for error messages.
    pub fn describe(self) -> &'static str {
        match self {
            Class::Any => "any type",
            Class::Scalar => "a scalar",
            Class::Number => "a number",
            Class::Float => "a float",
            Class::Integer => "an integer",
            Class::Bits => "an integer or `bool`",
        }
    }
}

/// Why two types cannot be made equal.
#[derive(Clone, Debug, PartialEq)]
pub enum Clash {
    /// They have different kinds.
    Type,
    /// A scalar type that is not in this class.
    Class(Class),
    /// These two lengths differ.
    Size(Size, Size),
    /// A type would have to contain itself.
    Infinite,
}

#[derive(Clone, Debug)]
enum Hole {
    Open(Class),
    Filled(Ty),
}

/// The state of inference.
#[derive(Clone, Debug, Default)]
pub struct Infer {
    holes: Vec<Hole>,
    /// The state of size inference.
    pub sizes: SizeVars,
}

impl Infer {
    /// Returns a fresh hole.
    pub fn fresh(&mut self, class: Class) -> Ty {
        self.holes.push(Hole::Open(class));
        Ty::Meta(self.holes.len() - 1)
    }

    /// Follows filled holes at the root of a type.
    pub fn shallow(&self, ty: &Ty) -> Ty {
        let mut ty = ty;
        while let Ty::Meta(i) = ty {
            match self.holes.get(*i) {
                Some(Hole::Filled(t)) => ty = t,
                Some(Hole::Open(_)) | None => break,
            }
        }
        ty.clone()
    }

    /// Returns the class of an open hole.
    pub fn class(&self, hole: usize) -> Class {
        match self.holes.get(hole) {
            Some(Hole::Open(class)) => *class,
            Some(Hole::Filled(_)) | None => Class::Any,
        }
    }

    fn fill(&mut self, hole: usize, ty: Ty) {
        if let Some(slot) = self.holes.get_mut(hole) {
            *slot = Hole::Filled(ty);
        }
    }

    /// Returns the number of components of a type, including nested ones. Stops counting at `most`.
    pub fn components(&self, ty: &Ty, most: usize) -> usize {
        let mut ty = ty;
        let mut count = 1;
        loop {
            match ty {
                Ty::Meta(i) => match self.holes.get(*i) {
                    Some(Hole::Filled(t)) => ty = t,
                    Some(Hole::Open(_)) | None => return count,
                },
                Ty::Scalar(_) => return count,
                Ty::Vector(_, t) | Ty::Array(_, t) => {
                    count += 1;
                    ty = t;
                    if count >= most {
                        return count;
                    }
                }
                Ty::Tuple(ts) | Ty::Record(_, ts) => {
                    for t in ts.iter() {
                        if count >= most {
                            return count;
                        }
                        count += self.components(t, most - count);
                    }
                    return count;
                }
            }
        }
    }

    /// Returns the cost of a copy, in holes and sizes.
    pub fn extent(&self) -> usize {
        self.holes.len() + self.sizes.extent()
    }

    fn occurs(&self, hole: usize, ty: &Ty) -> bool {
        match self.shallow(ty) {
            Ty::Meta(i) => i == hole,
            Ty::Scalar(_) => false,
            Ty::Vector(_, t) | Ty::Array(_, t) => self.occurs(hole, &t),
            Ty::Tuple(ts) | Ty::Record(_, ts) => ts.iter().any(|t| self.occurs(hole, t)),
        }
    }

    /// Restricts a type to a class.
    pub fn restrict(&mut self, ty: &Ty, class: Class) -> Result<(), Clash> {
        match self.shallow(ty) {
            Ty::Meta(i) => {
                let met = self.class(i).meet(class).ok_or(Clash::Class(class))?;
                if let Some(slot) = self.holes.get_mut(i) {
                    *slot = Hole::Open(met);
                }
                Ok(())
            }
            Ty::Scalar(s) if class.admits(s) => Ok(()),
            Ty::Vector(_, t) if matches!(class, Class::Number | Class::Float) => {
                self.restrict(&t, class)
            }
            _ if class == Class::Any => Ok(()),
            Ty::Scalar(_) | Ty::Vector(..) | Ty::Tuple(_) | Ty::Record(..) | Ty::Array(..) => {
                Err(Clash::Class(class))
            }
        }
    }

    /// Makes two types equal. `span` is the place for size equations that cannot be solved yet.
    pub fn unify(&mut self, a: &Ty, b: &Ty, span: Span) -> Result<(), Clash> {
        match (self.shallow(a), self.shallow(b)) {
            (Ty::Meta(i), Ty::Meta(j)) if i == j => Ok(()),
            (Ty::Meta(i), Ty::Meta(j)) => {
                let (ci, cj) = (self.class(i), self.class(j));
                let class = ci.meet(cj).ok_or(Clash::Class(ci))?;
                self.fill(i, Ty::Meta(j));
                if let Some(slot) = self.holes.get_mut(j) {
                    *slot = Hole::Open(class);
                }
                Ok(())
            }
            (Ty::Meta(i), t) | (t, Ty::Meta(i)) => {
                if self.occurs(i, &t) {
                    return Err(Clash::Infinite);
                }
                self.restrict(&t, self.class(i))?;
                self.fill(i, t);
                Ok(())
            }
            (Ty::Scalar(s), Ty::Scalar(t)) if s == t => Ok(()),
            (Ty::Vector(v, s), Ty::Vector(w, t)) => {
                self.sizes.unify(&v, &w, span)?;
                self.unify(&s, &t, span)
            }
            (Ty::Tuple(ts), Ty::Tuple(us)) if ts.len() == us.len() => {
                ts.iter().zip(&*us).try_for_each(|(t, u)| self.unify(t, u, span))
            }
            (Ty::Record(names, ts), Ty::Record(others, us)) if names == others => {
                ts.iter().zip(&*us).try_for_each(|(t, u)| self.unify(t, u, span))
            }
            (Ty::Array(n, t), Ty::Array(m, u)) => {
                self.unify(&t, &u, span)?;
                self.sizes.unify(&n, &m, span)
            }
            (Ty::Scalar(_) | Ty::Vector(..) | Ty::Tuple(_) | Ty::Record(..) | Ty::Array(..), _) => {
                Err(Clash::Type)
            }
        }
    }

    /// Returns the type for an error message, with holes in words and unknown sizes as `_`.
    pub fn show(&self, ty: &Ty) -> String {
        self.shown(ty, &|class| match class {
            Class::Any => "_".to_owned(),
            class => class.describe().to_owned(),
        })
    }

    /// Returns the type at the end of inference: numbers that nothing else is known of have their default types.
    pub fn settled(&self, ty: &Ty) -> String {
        self.shown(ty, &|class| class.default().map_or("_".to_owned(), |s| s.to_string()))
    }

    /// Returns the type as text. `hole` shows what is not known.
    fn shown(&self, ty: &Ty, hole: &dyn Fn(Class) -> String) -> String {
        match self.shallow(ty) {
            Ty::Meta(i) => hole(self.class(i)),
            Ty::Scalar(s) => s.to_string(),
            Ty::Vector(w, t) => format!("{}x{}", self.shown(&t, hole), self.show_size(&w)),
            Ty::Tuple(ts) => {
                let parts: Vec<_> = ts.iter().map(|t| self.shown(t, hole)).collect();
                format!("({})", parts.join(", "))
            }
            Ty::Record(names, ts) => {
                let parts = names.iter().zip(ts.iter());
                let parts: Vec<_> =
                    parts.map(|(n, t)| format!("{n}: {}", self.shown(t, hole))).collect();
                format!("{{{}}}", parts.join(", "))
            }
            Ty::Array(n, t) => {
                let element = self.shown(&t, hole);
                let plain = element.strip_prefix("an ").or_else(|| element.strip_prefix("a "));
                format!("[{}]{}", self.show_size(&n), plain.unwrap_or(&element))
            }
        }
    }

    /// Returns the size for an error message.
    pub fn show_size(&self, size: &Size) -> String {
        let size = self.sizes.resolve(size);
        if size.as_var().is_some_and(|v| v.starts_with('?')) {
            return "_".to_owned();
        }
        let hide = |v: &str| v.starts_with('?').then(|| Size::var("_"));
        size.substitute(&hide).to_string()
    }
}
