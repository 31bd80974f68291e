//! Merges memories whose lifetimes do not overlap: temporary buffers, and arrays of a work-group.

use super::barrier;
use super::lifetimes::{self, touched};
use crate::kernel::ir::facts::Guard;
use crate::kernel::ir::index::Index;
use crate::kernel::ir::walk::statements;
use crate::kernel::ir::{
    Block, Buffer, BufferRole, Control, Expr, Kernel, Mem, MemArray, Program, Scope, Stmt,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Merges temporaries of the same element type that no kernel needs at the same time, and drops
/// unused ones.
pub fn temporaries(p: &mut Program) {
    let mut life: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
    for (k, kernel) in p.kernels.iter().enumerate() {
        for s in &kernel.body {
            touched(s, &mut |m| {
                if let Mem::Global(b) = m {
                    life.entry(*b).or_insert((k, k)).1 = k;
                }
            });
        }
    }
    let exchanged = in_loops(p, &mut life);
    let mut order: Vec<usize> = (0..p.buffers.len()).collect();
    order.sort_by_key(|b| (life.get(b).map(|l| l.0), *b));
    // The physical buffer of each buffer, and the last kernel that needs each physical temporary.
    let mut home: BTreeMap<usize, usize> = BTreeMap::new();
    let mut busy: Vec<(usize, usize)> = vec![];
    for b in order {
        if p.buffers[b].role != BufferRole::Temp || exchanged.contains(&b) {
            home.insert(b, b);
            continue;
        }
        let Some((first, last)) = life.get(&b).copied() else {
            continue;
        };
        let scalar = p.buffers[b].array.scalar;
        let free = busy
            .iter_mut()
            .find(|(t, until)| *until < first && p.buffers[*t].array.scalar == scalar);
        match free {
            Some((t, until)) => {
                *until = last;
                home.insert(b, *t);
                let len = p.buffers[b].array.len.max(p.buffers[*t].array.len);
                p.buffers[*t].array.len = len;
            }
            None => {
                busy.push((b, last));
                home.insert(b, b);
            }
        }
    }
    let mut position: BTreeMap<usize, usize> = BTreeMap::new();
    let mut kept: Vec<Buffer> = vec![];
    for (b, buffer) in p.buffers.iter().enumerate() {
        if home.get(&b) == Some(&b) {
            position.insert(b, kept.len());
            kept.push(buffer.clone());
        }
    }
    p.buffers = kept;
    let moved: BTreeMap<usize, usize> =
        home.iter().filter_map(|(b, t)| Some((*b, *position.get(t)?))).collect();
    if moved.iter().all(|(b, t)| b == t) {
        return;
    }
    let to = |m: Mem| match m {
        Mem::Global(b) => Mem::Global(moved.get(&b).copied().unwrap_or(b)),
        Mem::Local(_) | Mem::Private(_) => m,
    };
    for k in &mut p.kernels {
        k.body = block(&k.body, &to);
    }
    let new = |b: usize| moved.get(&b).copied().unwrap_or(b);
    for c in &mut p.control {
        match c {
            Control::Check(b) => *b = new(*b),
            Control::Swap(a, b) => (*a, *b) = (new(*a), new(*b)),
            Control::Launch(_)
            | Control::Repeat(..)
            | Control::While
            | Control::Together(_)
            | Control::End => {}
        }
    }
}

/// Extends the lifetime of each buffer that a host loop touches to the whole loop. Returns the
/// buffers that the host itself names.
fn in_loops(p: &Program, life: &mut BTreeMap<usize, (usize, usize)>) -> BTreeSet<usize> {
    let mut named = BTreeSet::new();
    // The first kernel of each open loop, and the first and last kernel of each completed loop.
    let (mut open, mut done, mut next) = (vec![], vec![], 0);
    for c in &p.control {
        match c {
            Control::Launch(k) => next = k + 1,
            Control::Repeat(..) | Control::While => open.push(next),
            Control::End => done.push((open.pop().unwrap_or(0), next.saturating_sub(1))),
            Control::Check(b) => {
                named.insert(*b);
            }
            Control::Swap(a, b) => named.extend([*a, *b]),
            Control::Together(_) => {}
        }
    }
    // Inner loops are completed before outer ones.
    for (first, last) in done {
        for (from, to) in life.values_mut() {
            if *from <= last && *to >= first {
                (*from, *to) = ((*from).min(first), (*to).max(last));
            }
        }
    }
    named
}

/// Most statements that are looked at to find which arrays can be merged: each attempt looks at the whole kernel. Copies of an
/// unrolled loop may have hundreds of arrays.
const LOOKED_AT: usize = 200_000;

/// Merges arrays of a work-group that are never needed at the same time, if that adds no barrier.
/// `sub_groups` is that of [`barrier::insert`], which runs afterwards.
pub fn locals(k: &mut Kernel, sub_groups: bool) {
    let life = lifetimes::of_arrays(&k.body);
    let mut order: Vec<usize> = (0..k.locals.len()).filter(|a| life.contains_key(a)).collect();
    order.sort_by_key(|a| life[a].0);
    // Arrays that others may share, and the last section that needs each of them.
    let mut homes: Vec<(usize, usize)> = vec![];
    let mut least = None;
    let mut attempts = LOOKED_AT / statements(&k.body).max(1);
    for a in order {
        let (first, last) = life[&a];
        let len = k.locals[a].len;
        let mut free: Vec<usize> = (0..homes.len())
            .filter(|h| {
                let (home, until) = homes[*h];
                let (home, own) = (&k.locals[home], &k.locals[a]);
                let kind = |a: &MemArray| (a.scalar, a.ahead, a.pieces);
                until < first && kind(home) == kind(own)
            })
            .collect();
        // Prefer the smallest array that is large enough, else the largest.
        free.sort_by_key(|h| {
            let room = k.locals[homes[*h].0].len;
            (room < len, if room < len { usize::MAX - room } else { room })
        });
        let shared = free.into_iter().find_map(|h| {
            attempts = attempts.checked_sub(1)?;
            let least = *least.get_or_insert_with(|| barriers(k, sub_groups));
            let home = homes[h].0;
            let to = |m: Mem| if m == Mem::Local(a) { Mem::Local(home) } else { m };
            let mut merged = Kernel { body: block(&k.body, &to), ..k.clone() };
            merged.locals[home].len = merged.locals[home].len.max(len);
            let cost = barriers(&merged, sub_groups);
            (cost.0 <= least.0 && cost.1 <= least.1).then_some((h, merged))
        });
        match shared {
            Some((h, merged)) => {
                *k = merged;
                homes[h].1 = last;
            }
            None => homes.push((a, last)),
        }
    }
    let mut kept: Vec<usize> = homes.into_iter().map(|(a, _)| a).collect();
    kept.sort_unstable();
    let to = |m: Mem| match m {
        Mem::Local(a) => Mem::Local(kept.binary_search(&a).unwrap_or(a)),
        Mem::Global(_) | Mem::Private(_) => m,
    };
    k.body = block(&k.body, &to);
    k.locals = kept.iter().map(|a| k.locals[*a].clone()).collect();
}

/// Returns the number of group barriers and of warp barriers that the kernel would have.
fn barriers(k: &Kernel, sub_groups: bool) -> (usize, usize) {
    let mut k = k.clone();
    barrier::insert(&mut k, sub_groups);
    (barrier::count(&k.body, Scope::Group), barrier::count(&k.body, Scope::Warp))
}

pub type To<'a> = &'a dyn Fn(Mem) -> Mem;

/// Replaces the memories in a block.
pub fn block(b: &Block, to: To<'_>) -> Block {
    b.iter().map(|s| stmt(s, to)).collect()
}

fn stmt(s: &Stmt, to: To<'_>) -> Stmt {
    let index = |i: &Index| i.map_data(&|e| expr(e, to));
    match s {
        Stmt::Decl(r, e) => Stmt::Decl(r.clone(), e.as_ref().map(|e| expr(e, to))),
        Stmt::Set(r, e) => Stmt::Set(r.clone(), expr(e, to)),
        Stmt::Store(m, i, e) => Stmt::Store(to(*m), index(i), expr(e, to)),
        Stmt::Atomic(update, m, i, e) => {
            Stmt::Atomic(update.clone(), to(*m), index(i), expr(e, to))
        }
        Stmt::Loop { kind, var, lo, hi, body } => Stmt::Loop {
            kind: *kind,
            var: var.clone(),
            lo: index(lo),
            hi: index(hi),
            body: block(body, to),
        },
        Stmt::If(g, a, b) => {
            let g = Guard(g.0.iter().map(index).collect());
            Stmt::If(g, block(a, to), block(b, to))
        }
        Stmt::Branch(c, a, b) => Stmt::Branch(expr(c, to), block(a, to), block(b, to)),
        Stmt::While(a, c, b) => Stmt::While(block(a, to), expr(c, to), block(b, to)),
        Stmt::Once(b) => Stmt::Once(block(b, to)),
        Stmt::Barrier { .. } => s.clone(),
    }
}

fn expr(e: &Expr, to: To<'_>) -> Expr {
    let index = |i: &Index| i.map_data(&|e| expr(e, to));
    let go = |e: &Arc<Expr>| Arc::new(expr(e, to));
    let all = |es: &[Expr]| es.iter().map(|e| expr(e, to)).collect();
    match e {
        Expr::Lit(_) | Expr::Arg(..) | Expr::Reg(_) => e.clone(),
        Expr::Index(i, t) => Expr::Index(index(i), *t),
        Expr::Load(m, t, i) => Expr::Load(to(*m), *t, index(i)),
        Expr::Op(op, t, es) => Expr::Op(*op, *t, all(es)),
        Expr::Checked(check, es) => Expr::Checked(*check, all(es)),
        Expr::Vector(es) => Expr::Vector(all(es)),
        Expr::Products(of, es) => Expr::Products(*of, all(es)),
        Expr::If(c, a, b) => Expr::If(go(c), go(a), go(b)),
        Expr::Guarded(g, a, b) => {
            let g = Guard(g.0.iter().map(index).collect());
            Expr::Guarded(g, go(a), go(b))
        }
        Expr::Splat(e, w) => Expr::Splat(go(e), *w),
        Expr::Lane(e, k) => Expr::Lane(go(e), *k),
        Expr::Matrices(turned, e) => Expr::Matrices(*turned, go(e)),
    }
}
