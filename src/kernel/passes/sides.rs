//! Moves what only one side of a choice needs to that side.
//!
//! A score that a mask leaves out, or a sum that is used below a diagonal alone, stands in front of the choice if the form of
//! the program needs it there. On its side, it is not computed where the other side is taken, and what it loads is not read.
//!
//! What a single work-item of a group does is such a side, too: the others need not go through a loop whose results only that one
//! stores. A device that runs the work-items of a group one after the other would repeat the loop for each of them.

use crate::kernel::analysis::conditions::guard;
use crate::kernel::ir::walk::{Effects, changed};
use crate::kernel::ir::{Block, BufferRole, Expr, Kernel, LoopKind, Mem, Program, Stmt};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

/// Most statements that move together.
const MOVED: usize = 64;

/// Moves loops, and what goes with them, to the side of a choice that needs them.
pub fn loops(k: &mut Kernel) {
    let is_loop = |s: &Stmt| matches!(s, Stmt::Loop { kind: LoopKind::Seq, .. });
    move_to_sides(k, &is_loop, &|s| sides(s).is_some());
}

/// Returns the sides of a choice, or of what the first work-item of a group does alone.
fn sides(s: &Stmt) -> Option<[&[Stmt]; 2]> {
    match s {
        Stmt::Branch(_, yes, no) | Stmt::If(_, yes, no) => Some([yes, no]),
        Stmt::Once(body) => Some([body, &[]]),
        Stmt::Loop { kind: LoopKind::Lcl(_), lo, hi, body, .. } => {
            (hi.sub(lo).as_constant() == Some(1)).then_some([body, &[]])
        }
        _ => None,
    }
}

/// Whether this is a choice that a work-item makes by data or indices.
pub fn is_choice(s: &Stmt) -> bool {
    matches!(s, Stmt::If(..) | Stmt::Branch(..))
}

/// Moves loads from temporaries to the side of a choice by indices that needs them: elements that no kernel reads need not be
/// computed.
pub fn loads(p: &mut Program) {
    let buffers = &p.buffers;
    let is_temporary =
        |m: &Mem| matches!(m, Mem::Global(b) if buffers[*b].role == BufferRole::Temp);
    let loads = |s: &Stmt| {
        let mut found = false;
        s.exprs(&mut |e| {
            e.visit(&mut |e| found |= matches!(e, Expr::Load(m, ..) if is_temporary(m)));
        });
        found && matches!(s, Stmt::Decl(..))
    };
    for k in &mut p.kernels {
        let by_indices = |s: &Stmt| match s {
            Stmt::If(..) => true,
            Stmt::Branch(c, ..) => guard(c).is_some(),
            _ => false,
        };
        move_to_sides(k, &loads, &by_indices);
    }
}

/// Moves to sides of choices what they need, if that `pays` for one of the statements.
fn move_to_sides(k: &mut Kernel, pays: &dyn Fn(&Stmt) -> bool, choice: &dyn Fn(&Stmt) -> bool) {
    let stored = Effects::of(&k.body).stored;
    // No other work-group stores what is loaded, and no check is left out.
    let may_move = |e: &Expr| {
        let mut free = !e.has_check();
        e.visit(&mut |e| {
            free &= match e {
                Expr::Load(m @ Mem::Global(_), ..) => !stored.contains(m),
                Expr::Load(m, ..) => matches!(m, Mem::Local(_)),
                Expr::Products(..) | Expr::Matrices(..) => false,
                _ => true,
            };
        });
        free
    };
    block(&mut k.body, &may_move, pays, choice);
}

fn block(
    b: &mut Block,
    may_move: &dyn Fn(&Expr) -> bool,
    pays: &dyn Fn(&Stmt) -> bool,
    choice: &dyn Fn(&Stmt) -> bool,
) {
    in_block(b, may_move, pays, choice);
    for s in b.iter_mut() {
        s.blocks_mut().into_iter().for_each(|b| block(b, may_move, pays, choice));
    }
}

/// Moves statements of a block, which evaluate only what `may_move`, to sides of its choices, if that `pays` for one of them.
pub fn in_block(
    b: &mut Block,
    may_move: &dyn Fn(&Expr) -> bool,
    pays: &dyn Fn(&Stmt) -> bool,
    choice: &dyn Fn(&Stmt) -> bool,
) {
    let Some(first) = b.iter().position(pays) else { return };
    let mut uses = None;
    let mut at = b.len();
    while at > first + 1 {
        at -= 1;
        if !choice(&b[at]) {
            continue;
        }
        for second in [false, true] {
            let known = uses.get_or_insert_with(|| Uses::of(b));
            let moved = known.needed(b, at, second, may_move);
            if moved.iter().any(|i| pays(&b[*i])) {
                to_side(b, at, second, &moved);
                at -= moved.len();
                uses = None;
            }
        }
    }
}

/// Moves statements in front of a choice to the beginning of one of its sides.
fn to_side(b: &mut Block, at: usize, second: bool, moved: &[usize]) {
    let front: Block = moved.iter().map(|i| b[*i].clone()).collect();
    match &mut b[at] {
        Stmt::Branch(_, yes, no) | Stmt::If(_, yes, no) => {
            (if second { no } else { yes }).splice(0..0, front);
        }
        Stmt::Once(body) | Stmt::Loop { body, .. } => {
            body.splice(0..0, front);
        }
        _ => {}
    }
    let mut i = 0;
    b.retain(|_| {
        i += 1;
        !moved.contains(&(i - 1))
    });
}

/// The registers of the statements of a block.
struct Uses {
    /// What each statement sets, and what it names.
    sets: Vec<FxHashSet<u32>>,
    names: Vec<FxHashSet<u32>>,
    /// The places that name a register, in order.
    places: FxHashMap<u32, Vec<usize>>,
    /// The places of declarations.
    declared: FxHashMap<u32, usize>,
}

impl Uses {
    /// The registers of a block.
    fn of(b: &Block) -> Uses {
        let sets = b.iter().map(set).collect();
        let named = |s: &Stmt| {
            let mut found = FxHashSet::default();
            registers(s, &mut |r| _ = found.insert(r));
            found
        };
        let names: Vec<FxHashSet<u32>> = b.iter().map(named).collect();
        let mut places: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
        for (i, all) in names.iter().enumerate() {
            all.iter().for_each(|r| places.entry(*r).or_default().push(i));
        }
        let declared = b.iter().enumerate().filter_map(|(i, s)| match s {
            Stmt::Decl(r, _) => Some((r.id, i)),
            _ => None,
        });
        Uses { sets, names, places, declared: declared.collect() }
    }

    /// Returns the places of the statements in front of a choice that compute what one side of it needs, in order. They evaluate
    /// only what `may_move`.
    fn needed(
        &self,
        b: &Block,
        at: usize,
        second: bool,
        may_move: &dyn Fn(&Expr) -> bool,
    ) -> Vec<usize> {
        let Some([yes, no]) = sides(&b[at]) else { return vec![] };
        let (side, other) = if second { (no, yes) } else { (yes, no) };
        let mut elsewhere = FxHashSet::default();
        read(&b[at], &mut |r| _ = elsewhere.insert(r));
        other.iter().for_each(|s| registers(s, &mut |r| _ = elsewhere.insert(r)));
        let may_be_inner = |r: &u32| {
            self.declared.get(r).is_some_and(|d| *d < at)
                && !elsewhere.contains(r)
                && self.places[r].last().is_none_or(|last| *last <= at)
        };
        // All that the side needs, directly or not.
        let mut open = vec![];
        side.iter().for_each(|s| registers(s, &mut |r| open.push(r)));
        let (mut inner, mut moved) = (FxHashSet::default(), BTreeSet::new());
        while let Some(r) = open.pop().filter(|_| moved.len() <= MOVED) {
            if !may_be_inner(&r) || !inner.insert(r) {
                continue;
            }
            for i in self.places[&r].iter().copied().filter(|i| *i < at) {
                if self.sets[i].contains(&r)
                    && self.sets[i].iter().all(may_be_inner)
                    && is_pure(&b[i], may_move)
                    && loads_the_same(b, i, at)
                    && moved.insert(i)
                {
                    open.extend(&self.names[i]);
                }
            }
        }
        // Then what is for it alone.
        loop {
            let before = moved.len();
            let alone = |r: &u32| self.places[r].iter().all(|i| *i == at || moved.contains(i));
            // A value that changes before the choice is read where it is.
            let changes = |i: usize, r: &u32| {
                let mut between = self.places[r].iter().filter(|k| (i + 1..at).contains(k));
                between.any(|k| !moved.contains(k) && self.sets[*k].contains(r))
            };
            let stays = |i: &usize| {
                self.sets[*i].iter().all(alone) && !self.names[*i].iter().any(|r| changes(*i, r))
            };
            moved = moved.iter().copied().filter(stays).collect();
            if moved.len() == before {
                return moved.into_iter().collect();
            }
        }
    }
}

/// Whether a statement would load the same from local memory behind all statements up to another one: no work-item stores there in
/// between.
fn loads_the_same(b: &Block, i: usize, at: usize) -> bool {
    let mut loaded = FxHashSet::default();
    b[i].visit(&mut |s| {
        s.exprs(&mut |e| {
            e.visit(&mut |e| {
                if let Expr::Load(m @ Mem::Local(_), ..) = e {
                    loaded.insert(*m);
                }
            });
        });
    });
    if loaded.is_empty() {
        return true;
    }
    let mut between = Effects::default();
    b[i + 1..at].iter().for_each(|s| between.add(s));
    !between.meets && between.stored.is_disjoint(&loaded)
}

/// Whether a statement only computes values of registers.
fn is_pure(s: &Stmt, may_move: &dyn Fn(&Expr) -> bool) -> bool {
    let mut pure = true;
    s.visit(&mut |s| {
        pure &= match s {
            Stmt::Decl(..) | Stmt::Set(..) | Stmt::If(..) | Stmt::Branch(..) => true,
            Stmt::Loop { kind, .. } => *kind == LoopKind::Seq,
            _ => false,
        };
        s.exprs(&mut |e| pure &= may_move(e));
    });
    pure
}

/// Returns the registers that a statement sets, without those that it declares inside of itself.
fn set(s: &Stmt) -> FxHashSet<u32> {
    let mut found = changed(std::slice::from_ref(s));
    if let Stmt::Decl(r, _) = s {
        found.insert(r.id);
        return found;
    }
    for b in s.blocks() {
        for s in b {
            s.visit(&mut |s| {
                if let Stmt::Decl(r, _) = s {
                    found.remove(&r.id);
                }
            });
        }
    }
    found
}

/// Calls `f` on each register that a statement reads or sets, inside it, too.
fn registers(s: &Stmt, f: &mut dyn FnMut(u32)) {
    s.visit(&mut |s| {
        match s {
            Stmt::Decl(r, _) => f(r.id),
            s => s.assigned().into_iter().for_each(|r| f(r.id)),
        }
        read(s, f);
    });
}

/// Calls `f` on each register that a statement itself reads.
pub fn read(s: &Stmt, f: &mut dyn FnMut(u32)) {
    s.exprs(&mut |e| {
        e.visit(&mut |e| {
            if let Expr::Reg(r) = e {
                f(r.id);
            }
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calculus::scalar::Lit;
    use crate::kernel::ir::Scope;
    use crate::kernel::ir::facts::Guard;
    use crate::kernel::ir::index::{Index, Var};
    use crate::kernel::ir::testing::{FLOAT, get, reg};
    use crate::lang::typed::ScalarOp;
    use crate::lang::types::ScalarType::F32;

    fn index(id: u32) -> Index {
        Index::from(Var { id, name: format!("i{id}").into(), lo: 0, hi: 9 })
    }

    /// A sum in register 1, and a choice of register 2 that takes it on one side.
    fn masked_sum(from: Mem, other: Expr) -> Block {
        let zero = Expr::Lit(Lit::float(F32, 0.0));
        let x = Expr::Load(from, FLOAT, index(5));
        let sum = Expr::Op(ScalarOp::Add, FLOAT, vec![get(1), x]);
        let var = Var { id: 5, name: "i5".into(), lo: 0, hi: 9 };
        let (lo, hi) = (Index::from(0), Index::from(10));
        let body = vec![Stmt::Set(reg(1), sum)];
        vec![
            Stmt::Decl(reg(1), Some(zero)),
            Stmt::Loop { kind: LoopKind::Seq, var, lo, hi, body },
            Stmt::Decl(reg(2), None),
            Stmt::If(
                Guard::less(&index(6), &index(7)),
                vec![Stmt::Set(reg(2), get(1))],
                vec![Stmt::Set(reg(2), other)],
            ),
            Stmt::Store(Mem::Global(1), index(6), get(2)),
        ]
    }

    fn moved(body: Block) -> usize {
        let mut b = body;
        let is_loop = |s: &Stmt| matches!(s, Stmt::Loop { .. });
        let stored = Effects::of(&b).stored;
        let may_move = |e: &Expr| {
            let mut free = true;
            e.visit(&mut |e| free &= !matches!(e, Expr::Load(m, ..) if stored.contains(m)));
            free
        };
        block(&mut b, &may_move, &is_loop, &|_| true);
        let sides = |s: &Stmt| if let Stmt::If(_, yes, _) = s { yes.len() - 1 } else { 0 };
        b.iter().map(sides).sum()
    }

    #[test]
    fn a_sum_that_one_work_item_stores_is_computed_by_it() {
        let alone = |between: Vec<Stmt>| {
            let mut b = masked_sum(Mem::Local(0), get(1));
            b.truncate(2);
            b.extend(between);
            let var = Var { id: 8, name: "l0".into(), lo: 0, hi: 0 };
            let (lo, hi) = (Index::from(0), Index::from(1));
            let body = vec![Stmt::Store(Mem::Global(1), index(6), get(1))];
            b.push(Stmt::Loop { kind: LoopKind::Lcl(0), var, lo, hi, body });
            let is_loop = |s: &Stmt| matches!(s, Stmt::Loop { kind: LoopKind::Seq, .. });
            block(&mut b, &|_| true, &is_loop, &|s| sides(s).is_some());
            b.len()
        };
        assert_eq!(alone(vec![]), 1);
        // Others may store what the sum is of.
        let barrier = Stmt::Barrier { scope: Scope::Group, local: true, global: false };
        assert_eq!(alone(vec![barrier]), 4);
        assert_eq!(alone(vec![Stmt::Store(Mem::Local(0), index(7), get(3))]), 4);
        // All work-items need the sum.
        assert_eq!(alone(vec![Stmt::Store(Mem::Local(1), index(7), get(1))]), 4);
    }

    #[test]
    fn a_sum_that_one_side_takes_is_computed_there() {
        let none = Expr::Lit(Lit::float(F32, f64::NEG_INFINITY));
        assert_eq!(moved(masked_sum(Mem::Global(0), none.clone())), 2);
        // What both sides take, what is read later, and what others may store.
        assert_eq!(moved(masked_sum(Mem::Global(0), get(1))), 0);
        assert_eq!(moved(masked_sum(Mem::Global(1), none.clone())), 0);
        let mut b = masked_sum(Mem::Global(0), none);
        b.push(Stmt::Store(Mem::Global(1), index(7), get(1)));
        assert_eq!(moved(b), 0);
    }
}
