//! Loops whose first step differs: a register says whether the loop has begun.
//!
//! A scan or a fold with a computed initial value has a flag in its state: the first step takes the initial value, the others take the
//! state. In a loop that runs at least once, the state can have the initial value before the loop. Then the steps have no choice, and
//! loads of several steps can become wide. If the loop was split, the flag is true before its other parts, which have no choice either.

use crate::kernel::ir::index::Index;
use crate::kernel::ir::walk::Effects;
use crate::kernel::ir::{Block, Expr, Kernel, LoopKind, Mem, Reg, Stmt};
use std::collections::BTreeSet;

/// Moves what only the first steps of loops do in front of the loops.
pub fn before_loops(k: &mut Kernel) {
    block(&mut k.body);
}

fn block(b: &mut Block) {
    b.iter_mut().flat_map(Stmt::blocks_mut).for_each(block);
    let mut at = 0;
    while at < b.len() {
        let (before, rest) = b.split_at_mut(at);
        let (mut first, mut after) = (vec![], vec![]);
        if let Stmt::Loop { kind: LoopKind::Seq, var, lo, hi, body } = &mut rest[0] {
            for (flag, begun) in flags(body) {
                let of_loop = Loop { var: var.id, flag: flag.id, effects: Effects::of(body) };
                match value_after(before, flag.id) {
                    Some(false) if hi.sub(lo).range().0 >= 1 => {
                        first.append(&mut of_loop.first_step(body));
                    }
                    Some(true) => of_loop.later_steps(body),
                    _ => continue,
                }
                if !body.iter().any(|s| mentions(s, flag.id)) {
                    body.retain(|s| !changes(s, flag.id));
                    after.push(Stmt::Set(flag, begun));
                }
            }
        }
        let behind = at + 1;
        let next = behind + first.len() + after.len();
        b.splice(behind..behind, after);
        b.splice(at..at, first);
        at = next;
    }
    remove_unused(b);
}

/// Removes flags of a block that are never read.
fn remove_unused(b: &mut Block) {
    let is_constant = |e: &Expr| e.is_false() || e.is_true();
    let is_used = |r: &Reg| {
        b.iter().any(|s| {
            let gives = matches!(s, Stmt::Decl(_, Some(e)) | Stmt::Set(_, e) if is_constant(e));
            mentions(s, r.id) || changes(s, r.id) && !gives
        })
    };
    let unused: BTreeSet<u32> = b
        .iter()
        .filter_map(|s| match s {
            Stmt::Decl(r, Some(e)) if is_constant(e) && !is_used(r) => Some(r.id),
            _ => None,
        })
        .collect();
    b.retain(|s| !matches!(s, Stmt::Decl(r, _) | Stmt::Set(r, _) if unused.contains(&r.id)));
}

/// Returns the registers that each step of a loop sets to true, and what they are set to.
fn flags(body: &Block) -> Vec<(Reg, Expr)> {
    let mut out = vec![];
    for (at, s) in body.iter().enumerate() {
        let Stmt::Set(r, e) = s else { continue };
        let others = body.iter().enumerate().filter(|(k, _)| *k != at);
        let once = others.clone().all(|(_, s)| !changes(s, r.id));
        // No step may read the flag after it is set.
        let read = others.filter(|(k, _)| *k > at).any(|(_, s)| mentions(s, r.id));
        if e.is_true() && once && !read {
            out.push((r.clone(), e.clone()));
        }
    }
    out
}

/// The constant that a register has after these statements.
fn value_after(before: &[Stmt], r: u32) -> Option<bool> {
    match before.iter().rev().find(|s| changes(s, r))? {
        Stmt::Decl(_, Some(e)) | Stmt::Set(_, e) if e.is_false() => Some(false),
        Stmt::Decl(_, Some(e)) | Stmt::Set(_, e) if e.is_true() => Some(true),
        _ => None,
    }
}

struct Loop {
    /// The loop's counter.
    var: u32,
    /// The register that says whether the loop has begun.
    flag: u32,
    effects: Effects,
}

impl Loop {
    /// Changes the choices of a loop's steps by the flag. Returns what takes the place of the first step's side.
    fn first_step(&self, body: &mut Block) -> Block {
        let mut first = vec![];
        let mut at = 0;
        while at < body.len() && !changes(&body[at], self.flag) {
            if let Some((mut initial, other)) = self.choice(body, at) {
                first.append(&mut initial);
                let len = other.len();
                body.splice(at..=at, other);
                at += len;
            } else {
                at += 1;
            }
        }
        first
    }

    /// Replaces the choices of a loop that has begun before.
    fn later_steps(&self, body: &mut Block) {
        let is_flag = |e: &Expr| matches!(e, Expr::Reg(r) if r.id == self.flag);
        *body = std::mem::take(body)
            .into_iter()
            .flat_map(|s| match s {
                Stmt::Branch(c, other, _) if is_flag(&c) => other,
                Stmt::Decl(r, Some(Expr::If(c, a, _))) if is_flag(&c) => {
                    vec![Stmt::Decl(r, Some((*a).clone()))]
                }
                s => vec![s],
            })
            .collect();
    }

    /// Returns the statements before the loop and in it that take the place of a choice.
    fn choice(&self, body: &Block, at: usize) -> Option<(Block, Block)> {
        let is_flag = |e: &Expr| matches!(e, Expr::Reg(r) if r.id == self.flag);
        let (mut initial, other): (Block, Block) = match &body[at] {
            Stmt::Branch(c, other, initial) if is_flag(c) => (initial.clone(), other.clone()),
            Stmt::Decl(r, Some(Expr::If(c, a, b))) if is_flag(c) => (
                vec![Stmt::Set(r.clone(), (**b).clone())],
                vec![Stmt::Decl(r.clone(), Some((**a).clone()))],
            ),
            _ => return None,
        };
        // The state that each of the registers takes later.
        let states: Vec<(&Reg, &Reg)> = other
            .iter()
            .map(|s| match s {
                Stmt::Set(r, Expr::Reg(state)) | Stmt::Decl(r, Some(Expr::Reg(state))) => {
                    Some((r, state))
                }
                _ => None,
            })
            .collect::<Option<_>>()?;
        let apart: BTreeSet<u32> = states.iter().map(|(_, s)| s.id).collect();
        let all = states.iter().all(|(_, s)| is_set_before_reads(body, at, s.id));
        if apart.len() < states.len() || !all {
            return None;
        }
        let own = declared(&initial);
        let mut given = BTreeSet::new();
        for s in &mut initial {
            let mut fixed = true;
            s.visit(&mut |s| {
                let mut known = states.iter().map(|(r, _)| r.id).chain(own.iter().copied());
                fixed &= self.is_fixed(s, &own);
                fixed &= s.assigned().is_none_or(|r| known.any(|k| k == r.id));
            });
            if !fixed {
                return None;
            }
            if let Stmt::Set(r, _) = s
                && let Some((_, state)) = states.iter().find(|(other, _)| other.id == r.id)
            {
                given.insert(r.id).then_some(())?;
                *r = (*state).clone();
            } else if states.iter().any(|(r, _)| mentions(s, r.id) || changes(s, r.id)) {
                return None;
            }
        }
        (given.len() == states.len()).then_some((initial, other))
    }

    /// Whether a statement itself has the same effect before the loop, on registers alone. `own` are the registers that are declared
    /// beside it.
    fn is_fixed(&self, s: &Stmt, own: &BTreeSet<u32>) -> bool {
        let index = |i: &Index| !i.mentions(self.var);
        let memory = |m: &Mem| !self.effects.stored.contains(m) && !self.effects.meets;
        let mut fixed = match s {
            Stmt::Decl(..) | Stmt::Set(..) | Stmt::Branch(..) | Stmt::While(..) => true,
            Stmt::Loop { kind, lo, hi, .. } => *kind == LoopKind::Seq && index(lo) && index(hi),
            Stmt::If(g, ..) => g.0.iter().all(index),
            Stmt::Store(..) | Stmt::Atomic(..) | Stmt::Once(_) | Stmt::Barrier { .. } => false,
        };
        s.exprs(&mut |e| {
            e.visit(&mut |e| {
                fixed &= match e {
                    Expr::Reg(r) => own.contains(&r.id) || !self.effects.regs.contains(&r.id),
                    Expr::Index(i, _) => index(i),
                    Expr::Load(m, _, i) => index(i) && memory(m),
                    Expr::Guarded(g, ..) => g.0.iter().all(index),
                    _ => true,
                }
            });
        });
        fixed
    }
}

/// Returns the registers that a block declares, at any depth.
fn declared(b: &Block) -> BTreeSet<u32> {
    let mut out = BTreeSet::new();
    b.iter().for_each(|s| {
        s.visit(&mut |s| {
            if let Stmt::Decl(r, _) = s {
                out.insert(r.id);
            }
        });
    });
    out
}

/// Whether a step sets a register before anything but the statement `at` reads it, and in any case.
fn is_set_before_reads(body: &Block, at: usize, r: u32) -> bool {
    for (k, s) in body.iter().enumerate().filter(|(k, _)| *k != at) {
        match s {
            Stmt::Set(x, e) if x.id == r && k > at => return !reads(e, r),
            s if mentions(s, r) || changes(s, r) => return false,
            _ => {}
        }
    }
    false
}

fn reads(e: &Expr, r: u32) -> bool {
    let mut found = false;
    e.visit(&mut |e| found |= matches!(e, Expr::Reg(x) if x.id == r));
    found
}

/// Whether a statement reads a register.
fn mentions(s: &Stmt, r: u32) -> bool {
    let mut found = false;
    s.visit(&mut |s| s.exprs(&mut |e| found |= reads(e, r)));
    found
}

/// Whether a statement gives a register a value.
fn changes(s: &Stmt, r: u32) -> bool {
    let mut effects = Effects::default();
    effects.add(s);
    effects.regs.contains(&r)
}
