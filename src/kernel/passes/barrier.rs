//! Inserts barriers exactly where data of a work-group cross work-items.
//!
//! The code of a work-group is a sequence of sections: loops over work-items, statements that one
//! work-item runs alone, and statements that all work-items run alike. A barrier is inserted before
//! a section that reads elements that another work-item wrote since the last barrier, or that
//! overwrites elements that another work-item may still read.

use crate::kernel::analysis::race::{
    Access, Meet, Phase, Who, accesses, group_numbers, stored, within,
};
use crate::kernel::ir::{Block, Expr, Kernel, LoopKind, Mem, Scope, Stmt};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

/// Inserts the barriers of a kernel. Where data pass only within warps, a sub-group barrier is
/// enough; `sub_groups` says that the device has sub-groups that consist of whole warps. The
/// work-items of a warp are never assumed to run in lock-step.
pub fn insert(k: &mut Kernel, sub_groups: bool) {
    // Where `mapGlb` spreads single work-items, each one stays in its own part of the memory that
    // it stores to, so none has to wait for others.
    if k.group.iter().product::<usize>() == 1 || k.spreads_items() {
        return;
    }
    let stored = stored(&k.body);
    let crossing = crossing(&k.body, &stored);
    if crossing.is_empty() {
        return;
    }
    let same = group_numbers(&k.body);
    let (alone, known) = Default::default();
    let cx =
        Cx { same, stored: &stored, crossing: &crossing, alone: &alone, known: &known, sub_groups };
    k.body = cx.block(&k.body, &mut Phase::default());
}

/// Returns the memories through which data may cross between work-items: of global memory, what is also loaded.
fn crossing(b: &Block, stored: &BTreeSet<Mem>) -> BTreeSet<Mem> {
    let mut loaded = BTreeSet::new();
    for s in b {
        s.visit(&mut |s| {
            s.exprs(&mut |e| {
                e.visit(&mut |e| {
                    if let Expr::Load(m, ..) = e {
                        loaded.insert(*m);
                    }
                });
            });
        });
    }
    let mut found = stored.clone();
    found.retain(|m| !matches!(m, Mem::Global(_)) || loaded.contains(m));
    found
}

/// Returns the number of barriers of this scope in the code.
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

struct Cx<'a> {
    /// Variables that have the same value in all compared accesses.
    same: BTreeSet<u32>,
    /// The memories that the kernel stores to.
    stored: &'a BTreeSet<Mem>,
    /// Those of them through which data may cross between work-items.
    crossing: &'a BTreeSet<Mem>,
    /// The loops that were looked at alone, by their place in memory. Each loop around one looks at it several times.
    alone: &'a RefCell<FxHashMap<*const Stmt, Alone>>,
    /// The accesses of statements to all memories, by their place in memory. They are asked for as often.
    known: &'a RefCell<FxHashMap<*const Stmt, Rc<BTreeSet<Access>>>>,
    sub_groups: bool,
}

/// What a loop needs if nothing is pending before it.
#[derive(Clone)]
struct Alone {
    /// The accesses that an iteration leaves pending for the next.
    carried: Phase,
    /// The number of its barriers.
    barriers: usize,
}

/// Returns a barrier for these memories and for all pending stores, so that no later access needs
/// another barrier because of them.
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

impl Cx<'_> {
    fn meets(&self, a: &Access, b: &Access) -> Meet {
        // Two stages store the same element of global memory only if one of them also reads it, and
        // that read already requires the barrier.
        if a.write && b.write && matches!(a.mem, Mem::Global(_)) {
            return Meet::Never;
        }
        // A constant index names the single result of a stage, which all work-items use. Order its
        // accesses even if `Access::meets` sees no conflict.
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

    fn alone(&self, s: &Stmt, find: impl FnOnce() -> Alone) -> Alone {
        let known = self.alone.borrow().get(&std::ptr::from_ref(s)).cloned();
        known.unwrap_or_else(|| {
            let found = find();
            self.alone.borrow_mut().insert(s, found.clone());
            found
        })
    }

    /// Returns the accesses of a statement of the kernel.
    fn accesses(&self, s: &Stmt) -> Rc<BTreeSet<Access>> {
        let known = self.known.borrow().get(&std::ptr::from_ref(s)).cloned();
        known.unwrap_or_else(|| {
            let found = Rc::new(accesses(s, self.stored));
            self.known.borrow_mut().insert(s, found.clone());
            found
        })
    }

    fn stmt(&self, s: &Stmt, since: &mut Phase, out: &mut Block) {
        // A loop is looked at several times, so loops without need of barriers are told apart first.
        if matches!(s, Stmt::Loop { .. } | Stmt::While(..)) {
            let all = self.accesses(s);
            if all.iter().all(|access| !self.crossing.contains(&access.mem)) {
                since.extend(all.iter().cloned());
                out.push(s.clone());
                return;
            }
        }
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
                    // Each iteration begins with the accesses that the previous one left pending.
                    let Alone { carried, barriers } = self.alone(s, || {
                        let mut carried = Phase::default();
                        inside.block(body, &mut carried);
                        carried.iterated(var);
                        let barriers = all(&inside.block(body, &mut carried.clone()));
                        Alone { carried, barriers }
                    });
                    let mut both = since.clone();
                    both.union(&carried);
                    let within = inside.block(body, &mut both);
                    let body = if all(&within) == barriers {
                        *since = both;
                        within
                    } else {
                        // The accesses before the loop would require additional barriers in every
                        // iteration. One barrier before the loop replaces them.
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
                    // The loop may run zero times, and then its barriers are not reached either.
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
            Stmt::While(head, go_on, body) => {
                // As for a loop with a counter. The loop ends behind its head.
                let run = |since: &mut Phase| {
                    let head = self.block(head, since);
                    let end = since.clone();
                    (head, self.block(body, since), end)
                };
                let count = |(head, body, _): &(Block, Block, Phase)| all(head) + all(body);
                let Alone { mut carried, barriers } = self.alone(s, || {
                    let mut carried = Phase::default();
                    run(&mut carried);
                    let barriers = count(&run(&mut carried.clone()));
                    Alone { carried, barriers }
                });
                let mut both = since.clone();
                both.union(&carried);
                let mut whole = run(&mut both);
                if count(&whole) != barriers {
                    out.push(fence(since, BTreeSet::new(), Scope::Group));
                    whole = run(&mut carried);
                }
                let (head, body, end) = whole;
                *since = end;
                out.push(Stmt::While(head, go_on.clone(), body));
            }
            Stmt::If(g, a, b) => {
                let mut other = since.clone();
                let (a, b) = (self.block(a, since), self.block(b, &mut other));
                since.union(&other);
                out.push(Stmt::If(g.clone(), closed(a, since), closed(b, since)));
            }
            Stmt::Branch(c, a, b) => {
                let condition = Stmt::Branch(c.clone(), vec![], vec![]);
                self.section(&accesses(&condition, self.stored), since, out);
                let mut other = since.clone();
                let (a, b) = (self.block(a, since), self.block(b, &mut other));
                since.union(&other);
                out.push(Stmt::Branch(c.clone(), closed(a, since), closed(b, since)));
            }
            // Lowering asks for it.
            Stmt::Barrier { scope: Scope::Group, .. } => {
                out.push(fence(since, BTreeSet::new(), Scope::Group));
                since.group_meets();
            }
            Stmt::Loop { kind: LoopKind::Lcl(_) | LoopKind::Warp | LoopKind::Lane, .. }
            | Stmt::Decl(..)
            | Stmt::Set(..)
            | Stmt::Store(..)
            | Stmt::Atomic(..)
            | Stmt::Once(_)
            | Stmt::Barrier { .. } => {
                self.section(&self.accesses(s), since, out);
                out.push(s.clone());
            }
        }
    }

    /// Adds a barrier before code with these accesses, if it needs one.
    fn section(&self, next: &BTreeSet<Access>, since: &mut Phase, out: &mut Block) {
        let (meet, met) = since.meets(next, &|a, b| self.meets(a, b));
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
        since.extend(next.iter().cloned());
    }
}
