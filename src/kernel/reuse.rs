//! Temporary buffers whose lifetimes do not overlap become one.

use super::index::Index;
use super::ir::{Block, Buffer, BufferRole, Expr, Mem, Program, Stmt};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Merges temporaries of one element type that no kernel needs at the same time, and drops unused ones.
pub fn temporaries(p: &mut Program) {
    let mut life: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
    for (k, kernel) in p.kernels.iter().enumerate() {
        let mut touch = |m: &Mem| {
            if let Mem::Global(b) = m {
                life.entry(*b).or_insert((k, k)).1 = k;
            }
        };
        for s in &kernel.body {
            s.visit(&mut |s| {
                if let Stmt::Store(m, ..) = s {
                    touch(m);
                }
                s.exprs(&mut |e| {
                    e.visit(&mut |e| {
                        if let Expr::Load(m, ..) = e {
                            touch(m);
                        }
                    });
                });
            });
        }
    }
    let mut order: Vec<usize> = (0..p.buffers.len()).collect();
    order.sort_by_key(|b| (life.get(b).map(|l| l.0), *b));
    // Where each buffer goes, and until when each physical temporary is needed.
    let mut home: BTreeMap<usize, usize> = BTreeMap::new();
    let mut busy: Vec<(usize, usize)> = vec![];
    for b in order {
        if p.buffers[b].role != BufferRole::Temp {
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
    for k in &mut p.kernels {
        k.body = block(&k.body, &moved);
    }
}

type Moved = BTreeMap<usize, usize>;

fn mem(m: Mem, to: &Moved) -> Mem {
    match m {
        Mem::Global(b) => Mem::Global(to.get(&b).copied().unwrap_or(b)),
        Mem::Local(_) | Mem::Private(_) => m,
    }
}

fn block(b: &Block, to: &Moved) -> Block {
    b.iter().map(|s| stmt(s, to)).collect()
}

fn stmt(s: &Stmt, to: &Moved) -> Stmt {
    let index = |i: &Index| i.map_data(&|e| expr(e, to));
    match s {
        Stmt::Decl(r, e) => Stmt::Decl(r.clone(), e.as_ref().map(|e| expr(e, to))),
        Stmt::Set(r, e) => Stmt::Set(r.clone(), expr(e, to)),
        Stmt::Store(m, i, e) => Stmt::Store(mem(*m, to), index(i), expr(e, to)),
        Stmt::Loop { kind, var, lo, hi, body } => Stmt::Loop {
            kind: *kind,
            var: var.clone(),
            lo: index(lo),
            hi: index(hi),
            body: block(body, to),
        },
        Stmt::If(g, a, b) => {
            let g = super::index::Guard(g.0.iter().map(index).collect());
            Stmt::If(g, block(a, to), block(b, to))
        }
        Stmt::Branch(c, a, b) => Stmt::Branch(expr(c, to), block(a, to), block(b, to)),
        Stmt::While(a, c, b) => Stmt::While(block(a, to), expr(c, to), block(b, to)),
        Stmt::Once(b) => Stmt::Once(block(b, to)),
        Stmt::Barrier { .. } => s.clone(),
    }
}

fn expr(e: &Expr, to: &Moved) -> Expr {
    let index = |i: &Index| i.map_data(&|e| expr(e, to));
    let go = |e: &Arc<Expr>| Arc::new(expr(e, to));
    let all = |es: &[Expr]| es.iter().map(|e| expr(e, to)).collect();
    match e {
        Expr::Lit(_) | Expr::Arg(..) | Expr::Reg(_) => e.clone(),
        Expr::Index(i, t) => Expr::Index(index(i), *t),
        Expr::Load(m, t, i) => Expr::Load(mem(*m, to), *t, index(i)),
        Expr::Op(op, t, es) => Expr::Op(*op, *t, all(es)),
        Expr::Vector(es) => Expr::Vector(all(es)),
        Expr::If(c, a, b) => Expr::If(go(c), go(a), go(b)),
        Expr::Guarded(g, a, b) => {
            let g = super::index::Guard(g.0.iter().map(index).collect());
            Expr::Guarded(g, go(a), go(b))
        }
        Expr::Splat(e, w) => Expr::Splat(go(e), *w),
        Expr::Lane(e, k) => Expr::Lane(go(e), *k),
    }
}
