//! Decides whether kernels may store the new value of an array over the old one, which they read.
//!
//! They may if no work-item reads an element of the old value after it was stored to. So an element is overwritten only by
//! the work-item that reads it, and not before it reads it.

use super::meeting::{Site, When, never_meet};
use super::race::{apart, separate};
use crate::kernel::ir::index::{Index, Var};
use crate::kernel::ir::{Block, Expr, Mem, Stmt};
use std::collections::{BTreeMap, BTreeSet};

/// A load of the old value, or a store to the new one.
struct Touch {
    site: Site,
    /// Position in the text of the kernel.
    order: usize,
    /// The loops around, each with its first and its last value.
    loops: Vec<Var>,
    /// The sides of the choices around, by the position of the choice.
    sides: Vec<(usize, bool)>,
    /// Whether a loop without a counter is around.
    uncounted: bool,
}

/// What one kernel does with both values.
#[derive(Default)]
pub struct Touched {
    loads: Vec<Touch>,
    stores: Vec<Touch>,
    /// Whether the kernel has a single work-item.
    alone: bool,
}

/// Where the traversal of a kernel is.
#[derive(Clone, Default)]
struct Place {
    loops: Vec<Var>,
    sides: Vec<(usize, bool)>,
    uncounted: bool,
    when: When,
}

impl Touched {
    /// Collects the loads from `old` and the stores to `new`, except those that are `unchanged`: they store what `old` has
    /// at the same place.
    pub fn of(
        body: &Block,
        (old, new): (Mem, Mem),
        alone: bool,
        unchanged: &dyn Fn(&Index, &Expr) -> bool,
    ) -> Touched {
        let found = Touched { alone, ..Touched::default() };
        let mut walk = Walk { old, new, unchanged, order: 0, found };
        walk.block(body, &Place::default());
        walk.found
    }

    /// Whether the kernel stores anything that changes.
    pub fn stores(&self) -> bool {
        !self.stores.is_empty()
    }

    /// Whether the kernel may store over what it reads. The variables in `same` have one value in the whole kernel.
    pub fn may_overwrite<'a>(&'a self, same: &'a BTreeSet<u32>) -> bool {
        let mut proofs = Proofs { same, known: BTreeMap::new() };
        self.pairs(self).all(|(l, s)| {
            self.alone && l.is_done_before(s)
                || l.precedes(s, same)
                || l.avoids(s, same)
                || proofs.never_meet(l, s)
        })
    }

    /// Whether what this kernel reads is there after the other one stored.
    pub fn survives<'a>(&'a self, other: &'a Touched, same: &'a BTreeSet<u32>) -> bool {
        let mut proofs = Proofs { same, known: BTreeMap::new() };
        self.pairs(other)
            .all(|(l, s)| separate([l.span(), s.span()], same) || proofs.never_meet(l, s))
    }

    fn pairs<'a>(&'a self, other: &'a Touched) -> impl Iterator<Item = (&'a Touch, &'a Touch)> {
        self.loads.iter().flat_map(|l| other.stores.iter().map(move |s| (l, s)))
    }
}

impl Touch {
    fn span(&self) -> (&Index, usize) {
        (&self.site.index, self.site.width)
    }

    /// Whether this load and the store touch different elements unless they are in the same iteration of all loops around.
    fn meets_only_here(&self, store: &Touch, same: &BTreeSet<u32>) -> bool {
        let mut loops = self.loops.iter().chain(&store.loops);
        !self.uncounted && !store.uncounted && apart([self.span(), store.span()], &mut loops, same)
    }

    /// Whether no iteration contains both.
    fn excludes(&self, store: &Touch) -> bool {
        let other_side = |(at, side): &(usize, bool)| store.sides.contains(&(*at, !side));
        // One loop may be written out as several, each for a part of its iterations.
        let other_part =
            |v: &Var| store.loops.iter().any(|w| v.id == w.id && (v.hi < w.lo || w.hi < v.lo));
        self.sides.iter().any(other_side) || self.loops.iter().any(other_part)
    }

    /// Whether a single work-item stores only after the last time it loads: no loop contains both.
    fn is_done_before(&self, store: &Touch) -> bool {
        let shared = |v: &Var| store.loops.iter().any(|w| v.id == w.id);
        let repeated = self.uncounted && store.uncounted || self.loops.iter().any(shared);
        self.order <= store.order && !repeated
    }

    /// Whether the store overwrites only what this load has read.
    fn precedes(&self, store: &Touch, same: &BTreeSet<u32>) -> bool {
        self.span() == store.span()
            && (self.order <= store.order || self.excludes(store))
            && self.meets_only_here(store, same)
    }

    /// Whether load and store never touch the same element.
    fn avoids(&self, store: &Touch, same: &BTreeSet<u32>) -> bool {
        let width = |w: usize| i64::try_from(w).unwrap_or(i64::MAX);
        let distance = self.site.index.sub(&store.site.index).as_constant();
        let beside =
            distance.is_some_and(|d| d >= width(store.site.width) || -d >= width(self.site.width));
        separate([self.span(), store.span()], same)
            || (beside || self.excludes(store)) && self.meets_only_here(store, same)
    }
}

/// Proofs that loads and stores never touch the same element because of the conditions around them.
struct Proofs<'a> {
    same: &'a BTreeSet<u32>,
    /// What is known of loads from a place, whatever their conditions, and a store, which its place in the text names.
    known: BTreeMap<(&'a Index, usize, usize, usize), bool>,
}

impl<'a> Proofs<'a> {
    fn never_meet(&mut self, load: &'a Touch, store: &'a Touch) -> bool {
        let key = (&load.site.index, load.site.width, store.order, store.site.width);
        let same = self.same;
        let anywhere = *self.known.entry(key).or_insert_with(|| {
            let load = Site { when: When::default(), ..load.site.clone() };
            never_meet(&store.site, &load, same)
        });
        anywhere || never_meet(&store.site, &load.site, same)
    }
}

struct Walk<'a> {
    old: Mem,
    new: Mem,
    unchanged: &'a dyn Fn(&Index, &Expr) -> bool,
    order: usize,
    found: Touched,
}

impl Walk<'_> {
    fn block(&mut self, b: &Block, at: &Place) {
        b.iter().for_each(|s| self.stmt(s, at));
    }

    fn touch(&self, index: &Index, width: usize, at: &Place) -> Touch {
        let Place { loops, sides, uncounted, when } = at.clone();
        let site = Site { index: index.clone(), width, when };
        Touch { site, order: self.order, loops, sides, uncounted }
    }

    fn loads(&mut self, s: &Stmt, at: &Place) {
        let mut loads = vec![];
        s.exprs(&mut |e| {
            at.when.visit_loads(e, &mut |when, e| {
                if let Expr::Load(m, t, i) = e
                    && *m == self.old
                {
                    let at = Place { when: when.clone(), ..at.clone() };
                    loads.push(self.touch(i, t.width, &at));
                }
            });
        });
        self.found.loads.append(&mut loads);
    }

    fn stmt(&mut self, s: &Stmt, at: &Place) {
        self.order += 1;
        let here = self.order;
        match s {
            // A condition of a loop is read in each of its iterations.
            Stmt::While(..) => self.loads(s, &Place { uncounted: true, ..at.clone() }),
            _ => self.loads(s, at),
        }
        match s {
            Stmt::Store(m, i, e) if *m == self.new && !(self.unchanged)(i, e) => {
                let store = self.touch(i, e.ty().width, at);
                self.found.stores.push(store);
            }
            Stmt::Atomic(_, m, i, _) if *m == self.new => {
                let store = self.touch(i, 1, at);
                self.found.stores.push(store);
            }
            Stmt::Loop { var, lo, hi, body, .. } => {
                let (first, last) = (lo.range().0.max(var.lo), (hi.range().1 - 1).min(var.hi));
                let mut at = at.clone();
                at.loops.push(Var { lo: first, hi: last.max(first), ..var.clone() });
                at.when = at.when.inside(var, lo, hi);
                self.block(body, &at);
            }
            Stmt::If(_, a, b) | Stmt::Branch(_, a, b) => {
                for (side, block) in [(true, a), (false, b)] {
                    let mut at = at.clone();
                    at.sides.push((here, side));
                    at.when = at.when.on_side(s, side);
                    self.block(block, &at);
                }
            }
            _ => {
                let uncounted = at.uncounted || matches!(s, Stmt::While(..));
                let at = Place { uncounted, ..at.clone() };
                s.blocks().into_iter().for_each(|b| self.block(b, &at));
            }
        }
    }
}
