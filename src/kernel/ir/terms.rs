//! The terms of a linear form: coefficients by atom, in the order of the atoms.
//!
//! A form has few terms, and generation makes and reads millions of forms. A sorted vector is several times faster for
//! them than a tree.

/// Atoms with their coefficients, sorted by atom.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Terms<A>(Vec<(A, i64)>);

impl<A> Default for Terms<A> {
    fn default() -> Self {
        Terms(vec![])
    }
}

impl<A: Ord + Clone> Terms<A> {
    /// One atom with its coefficient.
    pub fn one(a: A, c: i64) -> Terms<A> {
        Terms(vec![(a, c)])
    }

    fn place(&self, a: &A) -> Result<usize, usize> {
        self.0.binary_search_by(|(b, _)| b.cmp(a))
    }

    /// The coefficient of an atom, if the atom occurs.
    pub fn get(&self, a: &A) -> Option<i64> {
        self.place(a).ok().map(|at| self.0[at].1)
    }

    /// Adds to the coefficient of an atom. An atom whose coefficient becomes 0 is removed.
    pub fn put(&mut self, a: &A, c: i64) {
        match self.place(a) {
            Ok(at) => {
                let sum = self.0[at].1.saturating_add(c);
                if sum == 0 {
                    self.0.remove(at);
                } else {
                    self.0[at].1 = sum;
                }
            }
            Err(at) if c != 0 => self.0.insert(at, (a.clone(), c)),
            Err(_) => {}
        }
    }

    /// Adds the last atom of a form that is made in order.
    pub fn push(&mut self, a: A, c: i64) {
        debug_assert!(self.0.last().is_none_or(|(b, _)| *b < a), "atoms out of order");
        self.0.push((a, c));
    }

    /// Removes an atom.
    pub fn remove(&mut self, a: &A) {
        if let Ok(at) = self.place(a) {
            self.0.remove(at);
        }
    }

    /// Keeps the terms for which `f` holds.
    pub fn retain(&mut self, mut f: impl FnMut(&A, i64) -> bool) {
        self.0.retain(|(a, c)| f(a, *c));
    }

    /// The same atoms with other coefficients, none of which is 0.
    #[must_use]
    pub fn scaled(&self, f: impl Fn(i64) -> i64) -> Terms<A> {
        Terms(self.0.iter().map(|(a, c)| (a.clone(), f(*c))).collect())
    }

    /// Atoms with their coefficients, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&A, i64)> + Clone {
        self.0.iter().map(|(a, c)| (a, *c))
    }

    /// Atoms, in order.
    pub fn atoms(&self) -> impl Iterator<Item = &A> {
        self.0.iter().map(|(a, _)| a)
    }

    /// Coefficients, in the order of their atoms.
    pub fn coefficients(&self) -> impl Iterator<Item = i64> {
        self.0.iter().map(|(_, c)| *c)
    }

    /// The term, if there is one only.
    pub fn only(&self) -> Option<(&A, i64)> {
        match &self.0[..] {
            [(a, c)] => Some((a, *c)),
            _ => None,
        }
    }

    /// Whether there are no terms.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
