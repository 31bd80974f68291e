//! Barriers: exactly where a work-group's data crosses work-items.
//!
//! The code of a work-group is a sequence of sections: loops over work-items, statements that one
//! work-item runs alone, and statements that all run alike. A barrier goes before a section that
//! reads what another wrote since the last barrier, or overwrites what another may still read.

use super::index::Index;
use super::ir::{Block, Expr, Kernel, LoopKind, Mem, Stmt};
use std::collections::{BTreeMap, BTreeSet};

type Accesses = BTreeMap<Mem, BTreeSet<Index>>;

/// What happened since the last barrier.
#[derive(Clone, Default)]
struct Since {
    reads: Accesses,
    writes: Accesses,
    /// By one work-item alone.
    once_reads: Accesses,
    once_writes: Accesses,
}

/// Puts the barriers of a kernel.
pub fn insert(k: &mut Kernel) {
    if k.group.iter().product::<usize>() == 1 {
        return;
    }
    let mut parallel = BTreeSet::new();
    for s in &k.body {
        s.visit(&mut |s| {
            if let Stmt::Loop { kind, var, .. } = s
                && *kind != LoopKind::Seq
            {
                parallel.insert(var.id);
            }
        });
    }
    let cx = Cx { parallel };
    k.body = cx.block(&k.body, &mut Since::default());
}

struct Cx {
    /// Variables that have one value in each work-item.
    parallel: BTreeSet<u32>,
}

fn merge(into: &mut Accesses, from: &Accesses) {
    for (m, is) in from {
        into.entry(*m).or_default().extend(is.iter().cloned());
    }
}

impl Since {
    /// A barrier for these memories and for everything pending, so that nothing needs a second one.
    fn fence(&self, mut met: BTreeSet<Mem>) -> Stmt {
        met.extend(self.writes.keys().chain(self.once_writes.keys()));
        let global = met.iter().any(|m| matches!(m, Mem::Global(_)));
        Stmt::Barrier { local: !global || met.iter().any(|m| matches!(m, Mem::Local(_))), global }
    }

    fn union(&mut self, other: &Since) {
        merge(&mut self.reads, &other.reads);
        merge(&mut self.writes, &other.writes);
        merge(&mut self.once_reads, &other.once_reads);
        merge(&mut self.once_writes, &other.once_writes);
    }
}

fn barriers(b: &Block) -> usize {
    let mut n = 0;
    for s in b {
        s.visit(&mut |s| n += usize::from(matches!(s, Stmt::Barrier { .. })));
    }
    n
}

/// Shared memories that the statement reads and writes.
fn accesses(s: &Stmt, reads: &mut Accesses, writes: &mut Accesses) {
    let shared = |m: &Mem| !matches!(m, Mem::Private(_));
    s.visit(&mut |s| {
        if let Stmt::Store(m, i, _) = s
            && shared(m)
        {
            writes.entry(*m).or_default().insert(i.clone());
        }
        s.exprs(&mut |e| {
            e.visit(&mut |e| {
                if let Expr::Load(m, _, i) = e
                    && shared(m)
                {
                    reads.entry(*m).or_default().insert(i.clone());
                }
            });
        });
    });
}

impl Cx {
    /// Memories through which the two sets of accesses meet in different work-items.
    fn meet<'a>(&'a self, a: &'a Accesses, b: &'a Accesses) -> impl Iterator<Item = Mem> + 'a {
        a.iter().filter_map(move |(m, is)| {
            let js = b.get(m)?;
            let own = match (is.first(), is.len(), js.len()) {
                // Each work-item meets only its own element.
                (Some(i), 1, 1) => {
                    let mut fixed = !i.has_data() && js.contains(i) && i.as_constant().is_none();
                    i.visit_vars(&mut |v| fixed &= self.parallel.contains(&v.id));
                    fixed
                }
                _ => false,
            };
            (!own).then_some(*m)
        })
    }

    fn block(&self, b: &Block, since: &mut Since) -> Block {
        let mut out = vec![];
        for s in b {
            self.stmt(s, since, &mut out);
        }
        out
    }

    fn stmt(&self, s: &Stmt, since: &mut Since, out: &mut Block) {
        match s {
            Stmt::Loop {
                kind: kind @ (LoopKind::Seq | LoopKind::Wrg(_) | LoopKind::Glb(_)),
                var,
                lo,
                hi,
                body,
            } => {
                let body = if *kind == LoopKind::Seq {
                    // What the end of one iteration leaves, the next begins with.
                    let mut carried = Since::default();
                    self.block(body, &mut carried);
                    let alone = self.block(body, &mut carried.clone());
                    let mut both = since.clone();
                    both.union(&carried);
                    let within = self.block(body, &mut both);
                    if barriers(&within) == barriers(&alone) {
                        *since = both;
                        within
                    } else {
                        // What only the first iteration needs is done once, before the loop.
                        out.push(since.fence(BTreeSet::new()));
                        *since = carried;
                        self.block(body, since)
                    }
                } else {
                    self.block(body, since)
                };
                out.push(Stmt::Loop {
                    kind: *kind,
                    var: var.clone(),
                    lo: lo.clone(),
                    hi: hi.clone(),
                    body,
                });
            }
            Stmt::If(g, a, b) => {
                let mut other = since.clone();
                let (a, b) = (self.block(a, since), self.block(b, &mut other));
                since.union(&other);
                out.push(Stmt::If(g.clone(), a, b));
            }
            Stmt::Branch(c, a, b) => {
                self.section(&Stmt::Branch(c.clone(), vec![], vec![]), since, out, false);
                let mut other = since.clone();
                let (a, b) = (self.block(a, since), self.block(b, &mut other));
                since.union(&other);
                out.push(Stmt::Branch(c.clone(), a, b));
            }
            Stmt::Loop { kind: LoopKind::Lcl(_), .. }
            | Stmt::Decl(..)
            | Stmt::Set(..)
            | Stmt::Store(..)
            | Stmt::While(..)
            | Stmt::Once(_)
            | Stmt::Barrier { .. } => {
                self.section(s, since, out, true);
            }
        }
    }

    fn section(&self, s: &Stmt, since: &mut Since, out: &mut Block, keep: bool) {
        let (mut reads, mut writes) = (Accesses::new(), Accesses::new());
        accesses(s, &mut reads, &mut writes);
        let once = matches!(s, Stmt::Once(_));
        let mut met: BTreeSet<Mem> = BTreeSet::new();
        met.extend(self.meet(&reads, &since.writes));
        met.extend(self.meet(&writes, &since.reads));
        // Two sections write one element of global memory only where one of them also reads it.
        let local = |m: &Mem| matches!(m, Mem::Local(_));
        met.extend(self.meet(&writes, &since.writes).filter(local));
        if !once {
            met.extend(self.meet(&reads, &since.once_writes));
            met.extend(self.meet(&writes, &since.once_reads));
            met.extend(self.meet(&writes, &since.once_writes).filter(local));
        }
        if !met.is_empty() {
            out.push(since.fence(met));
            *since = Since::default();
        }
        let (r, w) = if once {
            (&mut since.once_reads, &mut since.once_writes)
        } else {
            (&mut since.reads, &mut since.writes)
        };
        merge(r, &reads);
        merge(w, &writes);
        if keep {
            out.push(s.clone());
        }
    }
}
