//! The results of a function as a list, behind the names that they need, in place of nested pairs behind nested `let`s.

use super::core::{Ex, Kind, Layout, Var};
use crate::calculus::ty::Ty;

/// The results of a function, behind the names that they need.
pub(super) struct Block {
    /// The names and their values, the outermost first.
    pub(super) lets: Vec<(Layout, Ex)>,
    /// The results, without the pairs around them, from left to right.
    pub(super) leaves: Vec<Ex>,
    /// The maps that compute results which have been put together.
    pub(super) maps: Vec<Ex>,
}

impl Block {
    /// Takes an expression apart. Returns the arrangement of its results, too.
    pub(super) fn of(e: Ex) -> (Block, Ex) {
        let mut block = Block { lets: vec![], leaves: vec![], maps: vec![] };
        let arrangement = block.enter(e);
        block.inline();
        (block, arrangement)
    }

    /// Takes the names and the results out of an expression. Returns the arrangement of the results.
    fn enter(&mut self, e: Ex) -> Ex {
        match e.kind {
            Kind::Let(p, value, body) => {
                self.name(p, *value);
                self.enter(*body)
            }
            Kind::Pair(a, b) => {
                let a = self.enter(*a);
                Ex::pair(a, self.enter(*b))
            }
            _ => {
                let leaf = self.float(e);
                let place = Ex::new(Kind::Unit, leaf.ty.clone(), leaf.span);
                self.leaves.push(leaf);
                place
            }
        }
    }

    /// Adds names, one for each component of a pair.
    fn name(&mut self, p: Layout, value: Ex) {
        match (p, value.kind) {
            (Layout::Pair(p, q), Kind::Pair(a, b)) => {
                self.name(*p, *a);
                self.name(*q, *b);
            }
            (p, kind) => {
                let value = self.float(Ex { kind, ..value });
                self.lets.push((p, value));
            }
        }
    }

    /// Puts what is named for one result alone in the result's place.
    fn inline(&mut self) {
        for k in (0..self.lets.len()).rev() {
            let Layout::Var(v, _) = self.lets[k].0 else { continue };
            let leaf = self.leaves.iter().position(|leaf| leaf.kind == Kind::Var(v));
            if let Some(leaf) = leaf.filter(|_| self.uses(v) == 1) {
                self.leaves[leaf] = self.lets.remove(k).1;
            }
        }
    }

    /// Takes the names out of an expression and of the arrays of its maps.
    fn float(&mut self, mut e: Ex) -> Ex {
        match e.kind {
            Kind::Let(p, value, body) => {
                self.name(p, *value);
                self.float(*body)
            }
            Kind::Map(_, _, ref mut args) => {
                for a in args {
                    let array = std::mem::replace(a, Ex::new(Kind::Unit, Ty::Unit, a.span));
                    *a = self.float(array);
                }
                e
            }
            _ => e,
        }
    }

    /// Returns how often a name is mentioned.
    pub(super) fn uses(&self, v: Var) -> usize {
        let all = self.lets.iter().map(|(_, value)| value).chain(&self.leaves);
        all.chain(&self.maps).fold(0, |n, e| n.saturating_add(e.uses(v)))
    }
}

/// Returns an arrangement with results in its places.
pub(super) fn arranged(e: &Ex, leaves: &mut dyn Iterator<Item = Ex>) -> Ex {
    match &e.kind {
        Kind::Pair(a, b) => {
            let a = arranged(a, leaves);
            Ex::pair(a, arranged(b, leaves))
        }
        _ => leaves.next().unwrap_or_else(|| e.clone()),
    }
}
