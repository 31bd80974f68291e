//! Quotients and remainders get names, so that none is computed again and again: in front of the loops in
//! which they do not change, or where they are first wanted of several times.

use crate::kernel::index::{Atom, Guard, Index};
use crate::kernel::ir::{Block, Expr, LoopKind, Stmt};
use std::collections::BTreeMap;

/// Where an atom is wanted in a block.
#[derive(Default)]
struct Wanted {
    /// Statements of the block, the first of them first.
    statements: Vec<usize>,
    /// How often outside blocks inside it.
    here: usize,
    /// Whether in a loop that is a statement of the block.
    repeated: bool,
}

/// What surrounds an index in a statement.
struct Place<'a> {
    /// Variables of loops around it.
    bound: Vec<u32>,
    /// Blocks around it.
    depth: usize,
    /// Whether the statement repeats it.
    repeated: bool,
    /// Called with each quotient or remainder that only surroundings of the statement decide; atoms in it are not
    /// looked at.
    found: &'a mut dyn FnMut(&Atom, usize, bool),
}

/// For each statement of the block, the quotients and remainders to be named in front of it.
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

/// Whether an index of the block divides anywhere.
pub(super) fn divides(b: &Block) -> bool {
    let mut any = false;
    let guard = |g: &Guard| g.0.iter().any(Index::has_division);
    for s in b {
        s.visit(&mut |s| {
            any |= match s {
                Stmt::Store(_, i, _) => i.has_division(),
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
            Stmt::Store(_, i, _) => self.index(i),
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
                // Deeper loops have a block of their own in front of them.
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
