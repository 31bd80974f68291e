//! The sought term as chains of parts, and slices of chains.

use crate::calculus::size::{Size, SizeEnv, Sym};
use crate::calculus::term::{Op, Term};
use crate::calculus::ty::Ty;
use indexmap::IndexMap;
use std::rc::Rc;

/// A slice of a chain, with at least one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Slice {
    chain: usize,
    start: usize,
    end: usize,
}

impl Slice {
    /// Returns the number of parts.
    pub(super) fn len(self) -> usize {
        self.end - self.start
    }

    /// Returns the first `count` parts.
    pub(super) fn head(self, count: usize) -> Slice {
        Slice { end: self.start + count, ..self }
    }

    /// Returns the parts after the first `skip`.
    pub(super) fn tail(self, skip: usize) -> Slice {
        Slice { start: self.start + skip, ..self }
    }
}

/// The chains of a sought term, without the parts that do nothing at the known sizes.
#[derive(Default)]
pub(super) struct Chains {
    chains: Vec<Rc<[Term]>>,
    known: IndexMap<Vec<Term>, usize>,
}

impl Chains {
    /// Returns the term as a chain.
    pub(super) fn of(&mut self, term: &Term, sizes: &SizeEnv) -> Slice {
        self.parts(term.chain(), sizes)
    }

    /// Returns these parts as a chain; the part that is applied last comes first.
    pub(super) fn parts(&mut self, mut parts: Vec<Term>, sizes: &SizeEnv) -> Slice {
        let last = parts.last().cloned();
        parts.retain(|p| !does_nothing(p, sizes));
        if let (true, Some(last)) = (parts.is_empty(), last) {
            parts.push(Term::id(&last.ty().dom));
        }
        let end = parts.len();
        let chain = match self.known.get(&parts) {
            Some(chain) => *chain,
            None => {
                self.chains.push(parts.as_slice().into());
                self.known.insert(parts, self.chains.len() - 1);
                self.chains.len() - 1
            }
        };
        Slice { chain, start: 0, end }
    }

    /// Returns the parts of a piece; the part that is applied last comes first.
    pub(super) fn get(&self, s: Slice) -> Rc<[Term]> {
        self.chains[s.chain][s.start..s.end].into()
    }

    /// Returns the types of a piece's argument and result.
    pub(super) fn ends(&self, s: Slice) -> (&Ty, &Ty) {
        let chain = &self.chains[s.chain];
        (&chain[s.end - 1].ty().dom, &chain[s.start].ty().cod)
    }

    /// Returns the piece as text.
    pub(super) fn text(&self, s: Slice) -> String {
        let part = |p: &Term| p.to_string();
        self.chains[s.chain][s.start..s.end].iter().map(part).collect::<Vec<_>>().join(" . ")
    }
}

/// Whether a part does nothing at the known sizes.
pub(super) fn does_nothing(t: &Term, known: &SizeEnv) -> bool {
    let value = |s: &Size| {
        s.substitute(&|sym| match sym {
            Sym::Dim(_) => known.get(sym).map(|v| Size::constant(*v)),
            _ => Some(Size::sym(sym.clone())),
        })
    };
    match (t.op(), t.sizes()) {
        (Op::Id, _) => true,
        (Op::PadTo | Op::PadLast | Op::Take, [a, b]) => a == b || value(a) == value(b),
        _ => false,
    }
}

/// Returns the two lengths of [`Op::PadTo`] and similar operators, which do nothing when the lengths are
/// equal.
pub(super) fn lengths<'a>(op: &Op, sizes: &'a [Size]) -> Option<(&'a Size, &'a Size)> {
    match (op, sizes) {
        (Op::PadTo | Op::PadLast | Op::Mask | Op::Take, [a, b]) => Some((a, b)),
        _ => None,
    }
}
