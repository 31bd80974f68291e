//! Barriers: exactly where a work-group's data crosses work-items.
//!
//! The code of a work-group is a sequence of sections: loops over work-items, statements that one
//! work-item runs alone, and statements that all run alike. A barrier goes before a section that
//! reads what another wrote since the last barrier, or overwrites what another may still read.

use super::ir::{Block, Kernel, LoopKind, Mem, Scope, Stmt};
use super::race::{Access, Meet, Phase, Who, accesses, group_numbers, within};
use std::collections::BTreeSet;

/// Puts the barriers of a kernel. Where data pass only within warps, a barrier of the sub-group is
/// enough; `sub_groups` says that the device has such, of whole warps. Work-items of a warp
/// are never taken to run in lock-step.
pub fn insert(k: &mut Kernel, sub_groups: bool) {
    // Where `mapGlb` spreads single work-items, each keeps to its own part of what it stores: nobody waits for others.
    if k.group.iter().product::<usize>() == 1 || k.spreads_items() {
        return;
    }
    let cx = Cx { same: group_numbers(&k.body), sub_groups };
    k.body = cx.block(&k.body, &mut Phase::default());
}

/// How many barriers of this scope the code has.
pub fn count(b: &Block, wanted: Scope) -> usize {
    let mut n = 0;
    for s in b {
        s.visit(&mut |s| {
            n += usize::from(matches!(s, Stmt::Barrier { scope, .. } if *scope == wanted));
        });
    }
    n
}

fn all(b: &Block) -> usize {
    count(b, Scope::Group) + count(b, Scope::Warp)
}

struct Cx {
    /// Variables that have one value for all that is compared.
    same: BTreeSet<u32>,
    sub_groups: bool,
}

/// A barrier for these memories and for everything pending, so that nothing needs a second one.
fn fence(since: &Phase, mut met: BTreeSet<Mem>, scope: Scope) -> Stmt {
    met.extend(since.written());
    let global = met.iter().any(|m| matches!(m, Mem::Global(_)));
    let local = !global || met.iter().any(|m| matches!(m, Mem::Local(_)));
    Stmt::Barrier { scope, local, global }
}

/// Ends a side of a conditional that has barriers with a barrier. PoCL 3.1 needs it: it assumes that every branch between the
/// last barrier of such a side and the side's end is uniform, and lets all work-items take the branch of the first one.
fn closed(mut side: Block, since: &Phase) -> Block {
    if count(&side, Scope::Group) > 0 && !matches!(side.last(), Some(Stmt::Barrier { .. })) {
        side.push(fence(since, BTreeSet::new(), Scope::Group));
    }
    side
}

impl Cx {
    fn meets(&self, a: &Access, b: &Access) -> Meet {
        // Two stages store one element of global memory only where one of them also reads it.
        if a.write && b.write && matches!(a.mem, Mem::Global(_)) {
            return Meet::Never;
        }
        // The single element that a stage leaves is for all.
        let single = |x: &Access| x.index.as_constant().is_some() && x.who != Who::Once;
        match a.meets(b, &self.same) {
            Meet::Never if a.mem == b.mem && (a.write || b.write) && single(a) && single(b) => {
                Meet::Group
            }
            meet => meet,
        }
    }

    fn block(&self, b: &Block, since: &mut Phase) -> Block {
        let mut out = vec![];
        for s in b {
            self.stmt(s, since, &mut out);
        }
        out
    }

    fn stmt(&self, s: &Stmt, since: &mut Phase, out: &mut Block) {
        match s {
            Stmt::Loop {
                kind: kind @ (LoopKind::Seq | LoopKind::Wrg(_) | LoopKind::Glb(_)),
                var,
                lo,
                hi,
                body,
            } => {
                let before = since.clone();
                let inside = Cx { same: within(&self.same, *kind, var), ..*self };
                let body = if *kind == LoopKind::Seq {
                    // What the end of one iteration leaves, the next begins with.
                    let mut carried = Phase::default();
                    inside.block(body, &mut carried);
                    carried.iterated(var);
                    let alone = inside.block(body, &mut carried.clone());
                    let mut both = since.clone();
                    both.union(&carried);
                    let within = inside.block(body, &mut both);
                    let body = if all(&within) == all(&alone) {
                        *since = both;
                        within
                    } else {
                        // What only the first iteration needs is done once, before the loop.
                        out.push(fence(since, BTreeSet::new(), Scope::Group));
                        *since = carried;
                        inside.block(body, since)
                    };
                    since.iterated(var);
                    body
                } else {
                    inside.block(body, since)
                };
                if hi.sub(lo).range().0 < 1 {
                    // It may be left out, with the barriers in it.
                    since.union(&before);
                }
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
                out.push(Stmt::If(g.clone(), closed(a, since), closed(b, since)));
            }
            Stmt::Branch(c, a, b) => {
                self.section(&Stmt::Branch(c.clone(), vec![], vec![]), since, out, false);
                let mut other = since.clone();
                let (a, b) = (self.block(a, since), self.block(b, &mut other));
                since.union(&other);
                out.push(Stmt::Branch(c.clone(), closed(a, since), closed(b, since)));
            }
            Stmt::Loop { kind: LoopKind::Lcl(_) | LoopKind::Warp | LoopKind::Lane, .. }
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

    fn section(&self, s: &Stmt, since: &mut Phase, out: &mut Block, keep: bool) {
        let next = accesses(s);
        let (meet, met) = since.meets(&next, &|a, b| self.meets(a, b));
        match meet {
            Meet::Never => {}
            Meet::Warp if self.sub_groups => {
                out.push(fence(since, met, Scope::Warp));
                since.warps_meet();
            }
            Meet::Warp | Meet::Group => {
                out.push(fence(since, met, Scope::Group));
                since.group_meets();
            }
        }
        since.extend(next);
        if keep {
            out.push(s.clone());
        }
    }
}
