//! Moves what only one side of a choice needs to that side.
//!
//! A score that a mask leaves out, or a sum that is used below a diagonal alone, stands in front of the choice if the form of
//! the program needs it there. On its side, it is not computed where the other side is taken, and what it loads is not read.

use crate::kernel::ir::walk::{Effects, changed};
use crate::kernel::ir::{Block, BufferRole, Expr, Kernel, LoopKind, Mem, Program, Stmt};
use rustc_hash::{FxHashMap, FxHashSet};

/// Most statements that move together.
const MOVED: usize = 64;

/// Moves loops, and what goes with them, to the side of a choice that needs them.
pub fn loops(k: &mut Kernel) {
    let is_loop = |s: &Stmt| matches!(s, Stmt::Loop { kind: LoopKind::Seq, .. });
    move_to_sides(k, &is_loop, &|_| true);
}

/// Moves loads from temporaries to the side of a choice by indices that needs them: elements that no kernel reads need not be
/// computed.
pub fn loads(p: &mut Program) {
    let buffers = &p.buffers;
    let is_temporary = |m: &Mem| matches!(m, Mem::Global(b) if buffers[*b].role == BufferRole::Temp);
    let loads = |s: &Stmt| {
        let mut found = false;
        s.exprs(&mut |e| {
            e.visit(&mut |e| found |= matches!(e, Expr::Load(m, ..) if is_temporary(m)));
        });
        found && matches!(s, Stmt::Decl(..))
    };
    for k in &mut p.kernels {
        move_to_sides(k, &loads, &|s| matches!(s, Stmt::If(..)));
    }
}

/// Moves to sides of choices what they need, if that `pays` for one of the statements.
fn move_to_sides(
    k: &mut Kernel,
    pays: &dyn Fn(&Stmt) -> bool,
    choice: &dyn Fn(&Stmt) -> bool,
) {
    let stored = Effects::of(&k.body).stored;
    // No other work-item stores what is loaded, and no check is left out.
    let may_move = |e: &Expr| {
        let mut free = !e.has_check();
        e.visit(&mut |e| {
            free &= match e {
                Expr::Load(m, ..) => matches!(m, Mem::Global(_)) && !stored.contains(m),
                Expr::Products(_) => false,
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
    for s in b.iter_mut() {
        s.blocks_mut().into_iter().for_each(|b| block(b, may_move, pays, choice));
    }
    let Some(first) = b.iter().position(pays) else { return };
    let mut at = b.len();
    while at > first + 1 {
        at -= 1;
        if !choice(&b[at]) {
            continue;
        }
        for second in [false, true] {
            let moved = needed(b, at, second, may_move);
            if moved.iter().any(|i| pays(&b[*i])) {
                to_side(b, at, second, &moved);
                at -= moved.len();
            }
        }
    }
}

/// Moves statements in front of a choice to the beginning of one of its sides.
pub fn to_side(b: &mut Block, at: usize, second: bool, moved: &[usize]) {
    let front: Block = moved.iter().map(|i| b[*i].clone()).collect();
    if let Stmt::Branch(_, yes, no) | Stmt::If(_, yes, no) = &mut b[at] {
        (if second { no } else { yes }).splice(0..0, front);
    }
    let mut i = 0;
    b.retain(|_| {
        i += 1;
        !moved.contains(&(i - 1))
    });
}

/// Returns the places of the statements in front of a choice that compute what one side of it needs, in order. They evaluate
/// only what `may_move`.
pub fn needed(
    b: &Block,
    at: usize,
    second: bool,
    may_move: &dyn Fn(&Expr) -> bool,
) -> Vec<usize> {
    let (Stmt::Branch(_, yes, no) | Stmt::If(_, yes, no)) = &b[at] else { return vec![] };
    let (side, other) = if second { (no, yes) } else { (yes, no) };
    // The registers that are declared in front of the choice, and the places that name each.
    let mut names: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
    for s in &b[..at] {
        if let Stmt::Decl(r, _) = s {
            names.insert(r.id, vec![]);
        }
    }
    for (i, s) in b.iter().enumerate() {
        let mut add = |r: u32| {
            if let Some(places) = names.get_mut(&r)
                && places.last() != Some(&i)
            {
                places.push(i);
            }
        };
        if i != at {
            registers(s, &mut add);
            continue;
        }
        // What the condition or the other side names is not only for this side.
        let mut elsewhere = |r: u32| {
            if let Some(places) = names.get_mut(&r) {
                places.push(b.len());
            }
        };
        read(s, &mut elsewhere);
        other.iter().for_each(|s| registers(s, &mut elsewhere));
    }
    // All that the side needs, directly or not, and then what is for it alone.
    let mut inner: FxHashSet<u32> = FxHashSet::default();
    let add = |r: u32, inner: &mut FxHashSet<u32>| {
        if names.contains_key(&r) {
            inner.insert(r);
        }
    };
    side.iter().for_each(|s| registers(s, &mut |r| add(r, &mut inner)));
    let mut moved: Vec<usize> = vec![];
    for i in (0..at).rev() {
        let sets = set(&b[i]);
        if moved.len() < MOVED
            && !sets.is_empty()
            && sets.is_subset(&inner)
            && is_pure(&b[i], may_move)
        {
            registers(&b[i], &mut |r| add(r, &mut inner));
            moved.push(i);
        }
    }
    moved.reverse();
    loop {
        let before = moved.len();
        let alone = |r: &u32| {
            names.get(r).is_some_and(|p| p.iter().all(|i| *i == at || moved.contains(i)))
        };
        // A value that changes before the choice is read where it is.
        let changes = |i: usize| {
            let stays = (i + 1..at).filter(|k| !moved.contains(k));
            let mut later = FxHashSet::default();
            stays.for_each(|k| later.extend(set(&b[k])));
            let mut found = false;
            registers(&b[i], &mut |r| found |= later.contains(&r));
            found
        };
        let kept: Vec<usize> = moved
            .iter()
            .copied()
            .filter(|i| set(&b[*i]).iter().all(alone) && !changes(*i))
            .collect();
        moved = kept;
        if moved.len() == before {
            return moved;
        }
    }
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
pub fn registers(s: &Stmt, f: &mut dyn FnMut(u32)) {
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
