//! Names for quotients and remainders in indices, so that none is computed repeatedly. A name is declared before
//! the outermost loop in which the value does not change, or before the first of several uses.

use crate::kernel::facts::Guard;
use crate::kernel::index::{Atom, Index};
use crate::kernel::ir::{Block, Expr, LoopKind, Stmt};
use std::collections::BTreeMap;

/// The uses of an atom in a block.
#[derive(Default)]
struct Wanted {
    /// Indices of the block's statements that use it, in order.
    statements: Vec<usize>,
    /// Number of uses outside nested blocks.
    here: usize,
    /// Whether a use is in a loop that is a statement of the block.
    repeated: bool,
}

/// The surroundings of an index in a statement.
struct Place<'a> {
    /// Variables of the loops around the index.
    bound: Vec<u32>,
    /// Number of blocks around the index.
    depth: usize,
    /// Whether the index is in a loop that is the statement itself.
    repeated: bool,
    /// Called with each quotient or remainder that does not depend on variables bound in the statement or on data,
    /// the number of blocks around it, and whether it is repeated. Atoms inside it are not visited.
    found: &'a mut dyn FnMut(&Atom, usize, bool),
}

/// Returns, for each statement of the block, the quotients and remainders to be named before it.
pub(super) fn plan(b: &Block) -> Vec<Vec<Atom>> {
    let mut wanted: BTreeMap<Atom, Wanted> = BTreeMap::new();
    for (at, s) in b.iter().enumerate() {
        let mut found = |a: &Atom, depth: usize, repeated: bool| {
            let w = wanted.entry(a.clone()).or_default();
            if w.statements.last() != Some(&at) {
                w.statements.push(at);
            }
            w.here += usize::from(depth == 0);
            w.repeated |= repeated;
        };
        Place { bound: vec![], depth: 0, repeated: false, found: &mut found }.stmt(s);
    }
    let mut out = vec![vec![]; b.len()];
    for (a, w) in wanted {
        if w.repeated || w.statements.len() > 1 || w.here > 1 {
            out[w.statements[0]].push(a);
        }
    }
    out
}

/// Returns whether an index of the block contains a quotient or remainder.
pub(super) fn divides(b: &Block) -> bool {
    let mut any = false;
    let guard = |g: &Guard| g.0.iter().any(Index::has_division);
    for s in b {
        s.visit(&mut |s| {
            any |= match s {
                Stmt::Store(_, i, _) | Stmt::Atomic(_, _, i, _) => i.has_division(),
                Stmt::Loop { lo, hi, .. } => lo.has_division() || hi.has_division(),
                Stmt::If(g, ..) => guard(g),
                _ => false,
            };
            s.exprs(&mut |e| {
                e.visit(&mut |e| {
                    any |= match e {
                        Expr::Load(_, _, i) | Expr::Index(i, _) => i.has_division(),
                        Expr::Guarded(g, ..) => guard(g),
                        _ => false,
                    };
                });
            });
        });
    }
    any
}

impl Place<'_> {
    fn stmt(&mut self, s: &Stmt) {
        match s {
            Stmt::Store(_, i, _) | Stmt::Atomic(_, _, i, _) => self.index(i),
            Stmt::Loop { lo, hi, .. } => {
                self.index(lo);
                self.index(hi);
            }
            Stmt::If(g, ..) => self.guard(g),
            Stmt::Decl(..)
            | Stmt::Set(..)
            | Stmt::Branch(..)
            | Stmt::While(..)
            | Stmt::Once(_)
            | Stmt::Barrier { .. } => {}
        }
        s.exprs(&mut |e| {
            e.visit(&mut |e| match e {
                Expr::Load(_, _, i) | Expr::Index(i, _) => self.index(i),
                Expr::Guarded(g, ..) => self.guard(g),
                _ => {}
            });
        });
        let outside = self.repeated;
        let bound = match s {
            Stmt::Loop { kind, var, .. } => {
                // A deeper loop is inside a nested block, in which the name can be declared.
                self.repeated |= self.depth == 0 && *kind == LoopKind::Seq;
                Some(var.id)
            }
            Stmt::While(..) => {
                self.repeated |= self.depth == 0;
                None
            }
            _ => None,
        };
        self.bound.extend(bound);
        self.depth += 1;
        for b in s.blocks() {
            b.iter().for_each(|s| self.stmt(s));
        }
        self.depth -= 1;
        if bound.is_some() {
            self.bound.pop();
        }
        self.repeated = outside;
    }

    fn guard(&mut self, g: &Guard) {
        g.0.iter().for_each(|i| self.index(i));
    }

    fn index(&mut self, i: &Index) {
        for (a, _) in i.terms() {
            match a {
                Atom::Var(_) | Atom::Data(_) => {}
                Atom::Min(x, y) | Atom::Max(x, y) => {
                    self.index(x);
                    self.index(y);
                }
                Atom::Div(x, _) | Atom::Mod(x, _) => {
                    let mut fixed = !x.has_data();
                    x.visit_vars(&mut |v| fixed &= !self.bound.contains(&v.id));
                    if fixed {
                        (self.found)(a, self.depth, self.repeated);
                    } else {
                        self.index(x);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
