//! Sizes of the surface language: polynomials over size parameters, in normal form.

use std::collections::BTreeMap;
use std::fmt;

/// What a polynomial is over.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Atom {
    /// A size parameter (or an inference variable, whose name starts with `?`).
    Var(String),
    /// An exact quotient that does not simplify.
    Quot(Box<Size>, Box<Size>),
}

/// A product of atoms: atom to exponent, exponents at least 1.
pub type Monomial = BTreeMap<Atom, u32>;

/// A polynomial: monomial to coefficient, no zero coefficients. Equal sizes have equal normal forms.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Size(pub BTreeMap<Monomial, i64>);

impl Size {
    /// A number.
    pub fn constant(n: i64) -> Size {
        let mut terms = BTreeMap::new();
        if n != 0 {
            terms.insert(Monomial::new(), n);
        }
        Size(terms)
    }

    /// A size parameter.
    pub fn var(name: &str) -> Size {
        Size(BTreeMap::from([(Monomial::from([(Atom::Var(name.to_owned()), 1)]), 1)]))
    }

    /// The size variable that stands for the current length inside the `i`th `iterate` of an entry.
    pub fn iter_var(i: usize) -> Size {
        Size::var(&format!("%{i}"))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}
