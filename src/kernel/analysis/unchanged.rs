//! Stores of what a place holds already, once a kernel stores the new value of an array over the old one.

use crate::kernel::analysis::conditions::{any_lane, guard, scalar};
use crate::kernel::ir::index::Index;
use crate::kernel::ir::walk::changed;
use crate::kernel::ir::{Block, Expr, Mem, Reg, Stmt};
use std::collections::BTreeMap;

/// The old value of an array, the new one, and the registers that hold an element of the old one.
pub struct Update {
    old: Mem,
    new: Mem,
    held: BTreeMap<u32, Expr>,
}

impl Update {
    /// The update of `old` to `new` by a kernel.
    pub fn of(body: &Block, old: Mem, new: Mem) -> Update {
        let mut update = Update { old, new, held: BTreeMap::new() };
        let changed = changed(body);
        for s in body {
            s.visit(&mut |s| {
                if let Stmt::Decl(r, Some(e)) = s
                    && let Some(e) = update.element(e)
                    && !changed.contains(&r.id)
                {
                    update.held.insert(r.id, e);
                }
            });
        }
        update
    }

    /// Returns the load of what the value is, if it is from the old array.
    fn element(&self, e: &Expr) -> Option<Expr> {
        match e {
            Expr::Load(m, ..) => (*m == self.old).then(|| e.clone()),
            Expr::Reg(r) => self.held.get(&r.id).cloned(),
            Expr::Lane(v, k) => Some(self.element(v)?.lane(*k)),
            _ => None,
        }
    }

    /// Whether the value is what the old array has at this place.
    pub fn keeps(&self, at: &Index, e: &Expr) -> bool {
        matches!(self.element(e), Some(Expr::Load(_, _, i)) if i == *at)
    }

    /// Turns each store of a choice between a new element and the old one into a choice between stores.
    pub fn by_side(&self, b: &Block) -> Block {
        let mut b = b.clone();
        while let Some(next) = (0..b.len())
            .find_map(|at| self.moved_to_sides(&b, at).or_else(|| self.lanes_on_sides(&b, at)))
        {
            b = next;
        }
        b.iter()
            .flat_map(|s| match s {
                Stmt::Store(m, i, e) if *m == self.new => self.store(i, e),
                s => {
                    let mut s = s.clone();
                    s.blocks_mut().into_iter().for_each(|b| *b = self.by_side(b));
                    vec![s]
                }
            })
            .collect()
    }

    /// Returns a block without the stores of old elements, and without what is empty then.
    pub fn without_kept(&self, b: &Block) -> Block {
        b.iter().filter_map(|s| self.needed(s)).collect()
    }

    fn needed(&self, s: &Stmt) -> Option<Stmt> {
        if matches!(s, Stmt::Store(m, i, e) if *m == self.new && self.keeps(i, e)) {
            return None;
        }
        let mut s = s.clone();
        s.blocks_mut().into_iter().for_each(|b| *b = self.without_kept(b));
        let mut checks = false;
        s.exprs(&mut |e| checks |= e.has_check());
        let nests =
            matches!(s, Stmt::Loop { .. } | Stmt::If(..) | Stmt::Branch(..) | Stmt::Once(_));
        let empty = nests && !checks && s.blocks().iter().all(|b| b.is_empty());
        (!empty).then_some(s)
    }

    fn keeps_a_side(&self, at: &Index, e: &Expr) -> bool {
        match e {
            Expr::If(_, a, b) | Expr::Guarded(_, a, b) => {
                self.keeps_a_side(at, a) || self.keeps_a_side(at, b)
            }
            e => self.keeps(at, e),
        }
    }

    fn store(&self, at: &Index, e: &Expr) -> Block {
        let sides = |a: &Expr, b: &Expr| [a, b].map(|e| self.store(at, e));
        match e {
            Expr::If(c, a, b) if self.keeps_a_side(at, e) => {
                if let Some(c) = scalar(c) {
                    let [a, b] = sides(a, b);
                    return vec![choice(&c, a, b)];
                }
                if self.keeps(at, b)
                    && let Some(g) = any_lane(c)
                {
                    let whole = Stmt::Store(self.new, at.clone(), e.clone());
                    return vec![Stmt::If(g, vec![whole], vec![])];
                }
            }
            Expr::Guarded(g, a, b) if self.keeps_a_side(at, e) => {
                let [a, b] = sides(a, b);
                return vec![Stmt::If(g.clone(), a, b)];
            }
            Expr::Vector(lanes) => {
                let places = || lanes.iter().zip(0..).map(|(e, k)| (at.plus(k), e));
                if places().any(|(at, e)| self.keeps_a_side(&at, e)) {
                    return places().flat_map(|(at, e)| self.store(&at, e)).collect();
                }
            }
            _ => {}
        }
        vec![Stmt::Store(self.new, at.clone(), e.clone())]
    }

    /// If the statement stores a vector, and choices keep old elements in some of its lanes, stores the lanes one by one.
    fn lanes_on_sides(&self, b: &Block, at: usize) -> Option<Block> {
        let Some(Stmt::Store(m, i, Expr::Vector(lanes))) = b.get(at) else { return None };
        if *m != self.new {
            return None;
        }
        let stores = lanes.iter().zip(0..).map(|(e, k)| Stmt::Store(*m, i.plus(k), e.clone()));
        let stores = stores.collect::<Vec<_>>();
        let apart = [&b[..at], &stores, &b[at + 1..]].concat();
        (at..at + lanes.len()).rev().find_map(|lane| self.moved_to_sides(&apart, lane))
    }

    /// If the statement stores a register that the sides of a choice set, and one side sets the old element, stores on the
    /// sides.
    fn moved_to_sides(&self, b: &Block, at: usize) -> Option<Block> {
        let Some(Stmt::Store(m, i, Expr::Reg(r))) = b.get(at) else { return None };
        if *m != self.new || i.has_data() {
            return None;
        }
        let declared = b[..at].iter().position(|s| matches!(s, Stmt::Decl(d, None) if d == r))?;
        let mut naming = (0..b.len()).filter(|k| *k != at && *k != declared && names(&b[*k], r));
        let (choice, None) = (naming.next()?, naming.next()) else { return None };
        if choice > at || !b[choice + 1..at].iter().all(|s| self.may_follow(s, i)) {
            return None;
        }
        let side = self.stored(&b[choice], r, i)?;
        let mut kept = false;
        for s in self.by_side(&vec![side.clone()]) {
            s.visit(&mut |s| {
                kept |= matches!(s, Stmt::Store(m, i, e) if *m == self.new && self.keeps(i, e));
            });
        }
        kept.then(|| {
            let rest = b.iter().enumerate().filter(|(k, _)| *k != at && *k != declared);
            rest.map(|(k, s)| if k == choice { side.clone() } else { s.clone() }).collect()
        })
    }

    /// Whether a statement may run after a store at this place instead of before it.
    fn may_follow(&self, s: &Stmt, at: &Index) -> bool {
        let mut free = true;
        s.visit(&mut |s| {
            if let Stmt::Store(m, i, e) = s {
                let width = i64::try_from(e.ty().width).unwrap_or(i64::MAX);
                let distance = at.sub(i).as_constant().map(i64::abs);
                free &= *m != self.new || distance.is_some_and(|d| d >= width);
            }
            s.exprs(&mut |e| {
                e.visit(&mut |e| free &= !matches!(e, Expr::Load(m, ..) if *m == self.new));
            });
        });
        free
    }

    /// Returns a choice whose sides store where they set the register.
    fn stored(&self, s: &Stmt, r: &Reg, at: &Index) -> Option<Stmt> {
        let side = |b: &Block| -> Option<Block> {
            b.iter()
                .map(|s| match s {
                    Stmt::Set(to, e) if to == r => {
                        Some(Stmt::Store(self.new, at.clone(), e.clone()))
                    }
                    s if names(s, r) => self.stored(s, r, at),
                    s => Some(s.clone()),
                })
                .collect()
        };
        Some(match s {
            Stmt::If(g, a, b) => Stmt::If(g.clone(), side(a)?, side(b)?),
            Stmt::Branch(c, a, b) => choice(c, side(a)?, side(b)?),
            _ => return None,
        })
    }
}

/// Whether the statement sets or reads a register.
fn names(s: &Stmt, r: &Reg) -> bool {
    let mut found = false;
    s.visit(&mut |s| {
        found |= s.assigned() == Some(r) || matches!(s, Stmt::Decl(to, _) if to == r);
        s.exprs(&mut |e| e.visit(&mut |e| found |= matches!(e, Expr::Reg(x) if x == r)));
    });
    found
}

/// A choice between statements. A condition on indices becomes a guard, which moves out of loops.
fn choice(c: &Expr, yes: Block, no: Block) -> Stmt {
    match guard(c) {
        Some((g, true)) => Stmt::If(g, yes, no),
        Some((g, false)) => Stmt::If(g, no, yes),
        None => Stmt::Branch(c.clone(), yes, no),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::ir::ElemTy;
    use crate::kernel::ir::facts::Guard;
    use crate::kernel::ir::index::Var;
    use crate::kernel::ir::testing::{FLOAT, reg};
    use crate::lang::typed::ScalarOp;
    use crate::lang::types::ScalarType::{Bool, F32, I32};
    use std::sync::Arc;

    const OLD: Mem = Mem::Global(0);
    const NEW: Mem = Mem::Global(1);
    fn at(id: u32) -> Index {
        Index::from(Var { id, name: format!("i{id}").into(), lo: 0, hi: 9 })
    }

    fn old(i: &Index) -> Expr {
        Expr::Load(OLD, FLOAT, i.clone())
    }

    /// A choice that sets a register to a value or to an element of the old array, and a store of that register.
    fn chosen(kept: &Index) -> Block {
        let c = vec![Expr::Index(at(1), I32); 2];
        let c = Expr::Op(ScalarOp::Lt, ElemTy::scalar(Bool), c);
        let [yes, no] = [Expr::Arg(0, F32), old(kept)].map(|e| vec![Stmt::Set(reg(7), e)]);
        vec![
            Stmt::Decl(reg(7), None),
            Stmt::Branch(c, yes, no),
            Stmt::Store(NEW, at(0), Expr::Reg(reg(7))),
        ]
    }

    fn remaining(b: &Block) -> Block {
        let update = Update::of(b, OLD, NEW);
        update.without_kept(&update.by_side(b))
    }

    #[test]
    fn a_side_that_keeps_the_element_stores_nothing() {
        let store = Stmt::Store(NEW, at(0), Expr::Arg(0, F32));
        let never = Guard::less(&at(1), &at(1));
        assert_eq!(remaining(&chosen(&at(0))), [Stmt::If(never, vec![store], vec![])]);
    }

    #[test]
    fn lanes_that_keep_their_elements_are_not_stored() {
        let pair = ElemTy { scalar: F32, width: 2 };
        let whole = Reg { id: 8, name: "t8".into(), ty: pair };
        let lane = |k| Expr::Lane(Arc::new(Expr::Reg(whole.clone())), k);
        let mut b = chosen(&at(0));
        let Some(Stmt::Branch(_, _, no)) = b.get_mut(1) else { panic!("a choice") };
        *no = vec![Stmt::Set(reg(7), lane(0))];
        b.insert(0, Stmt::Decl(whole.clone(), Some(Expr::Load(OLD, pair, at(0)))));
        b[3] = Stmt::Store(NEW, at(0), Expr::Vector(vec![Expr::Reg(reg(7)), lane(1)]));
        let store = Stmt::Store(NEW, at(0), Expr::Arg(0, F32));
        let never = Guard::less(&at(1), &at(1));
        assert_eq!(remaining(&b), [b[0].clone(), Stmt::If(never, vec![store], vec![])]);
    }

    #[test]
    fn another_element_is_stored() {
        let b = chosen(&at(2));
        assert_eq!(remaining(&b), b);
    }

    #[test]
    fn registers_hold_elements() {
        let b =
            vec![Stmt::Decl(reg(7), Some(old(&at(0)))), Stmt::Store(NEW, at(0), Expr::Reg(reg(7)))];
        assert_eq!(remaining(&b), b[..1]);
        // A register that changes does not hold the element any more.
        let changed = Stmt::Set(reg(7), Expr::Arg(0, F32));
        let b = vec![b[0].clone(), changed, b[1].clone()];
        assert_eq!(remaining(&b), b);
    }
}
