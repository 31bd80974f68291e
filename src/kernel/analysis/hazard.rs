//! Decides whether an accumulator can be updated in place.

use crate::kernel::ir::index::Index;
use crate::kernel::ir::{Block, Expr, LoopKind, Mem, Reg, Stmt};
use std::collections::BTreeSet;

/// The registers and memories of an accumulator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owned {
    regs: BTreeSet<u32>,
    mems: BTreeSet<Mem>,
}

/// What becomes of stores to a value that is updated in place: they follow all of the update's reads.
pub struct Later {
    /// The registers and memories of the value.
    pub owned: Owned,
    /// Declarations of what is stored, in front of the update.
    pub declared: Block,
    /// The stores.
    pub stores: Block,
}

impl Owned {
    /// The accumulator consists of these registers.
    pub fn regs(regs: &[Reg]) -> Owned {
        Owned { regs: regs.iter().map(|r| r.id).collect(), mems: BTreeSet::new() }
    }

    /// The accumulator consists of two parts.
    pub fn both(mut self, other: &Owned) -> Owned {
        self.regs.extend(&other.regs);
        self.mems.extend(&other.mems);
        self
    }

    /// Whether an expression reads a part of the accumulator.
    pub fn is_read_by(&self, e: &Expr) -> bool {
        let mut found = false;
        e.visit(&mut |e| {
            found |= match e {
                Expr::Load(m, ..) => self.has_memory(*m),
                Expr::Reg(r) => self.has_register(r),
                _ => false,
            }
        });
        found
    }

    /// Whether the memory belongs to the accumulator.
    pub fn has_memory(&self, m: Mem) -> bool {
        self.mems.contains(&m)
    }

    /// Whether the register belongs to the accumulator.
    pub fn has_register(&self, r: &Reg) -> bool {
        self.regs.contains(&r.id)
    }

    /// The global buffers of the accumulator.
    pub fn buffers(&self) -> impl Iterator<Item = usize> {
        self.mems.iter().filter_map(|m| match m {
            Mem::Global(b) => Some(*b),
            Mem::Local(_) | Mem::Private(_) => None,
        })
    }

    /// The accumulator consists of these memories.
    pub fn mems(mems: impl Iterator<Item = Mem>) -> Owned {
        Owned { regs: BTreeSet::new(), mems: mems.collect() }
    }
}

/// Whether the block reads one of these registers after writing it, or reads an element of one of these memories that it may
/// have written. An update writes each element once.
pub fn reads_what_it_wrote(block: &Block, owned: &Owned) -> bool {
    let elements = Elements::of(block, owned);
    let foreign =
        !elements.are_single(block) && elements.reads_late(block, &mut Written::default());
    foreign || registers(block, owned, &mut BTreeSet::new())
}

/// Returns the memories of which the block reads no element that it may have written.
pub fn read_before_written(block: &Block, owned: &Owned) -> Vec<Mem> {
    let early = |m: &Mem| {
        let elements = Elements::of(block, &Owned::mems(std::iter::once(*m)));
        !elements.stores.is_empty() && !elements.reads_late(block, &mut Written::default())
    };
    owned.mems.iter().copied().filter(early).collect()
}

/// An element, or several side by side.
type Element = (Mem, Index, usize);

/// Where an update stores.
struct Elements {
    stores: BTreeSet<Element>,
}

/// What was stored so far.
#[derive(Clone, Default)]
struct Written {
    elements: BTreeSet<Element>,
    /// Memories to which the loops around store: an earlier iteration may have stored.
    looped: BTreeSet<Mem>,
}

impl Elements {
    fn of(block: &Block, owned: &Owned) -> Elements {
        let mut stores = BTreeSet::new();
        for s in block {
            s.visit(&mut |s| {
                if let Stmt::Store(m, i, e) | Stmt::Atomic(_, m, i, e) = s
                    && owned.mems.contains(m)
                {
                    stores.insert((*m, i.clone(), e.ty().width));
                }
            });
        }
        Elements { stores }
    }

    fn are_stored(&self, m: Mem) -> bool {
        self.stores.iter().any(|(to, ..)| *to == m)
    }

    /// Whether there is one place that is stored to, and no other one is read.
    fn are_single(&self, block: &Block) -> bool {
        let mut single = true;
        for s in block {
            s.visit(&mut |s| {
                s.exprs(&mut |e| {
                    e.visit(&mut |e| {
                        if let Expr::Load(m, _, i) = e {
                            single &= !self.are_stored(*m)
                                || (self.stores.len() == 1
                                    && self.stores.iter().all(|(to, j, _)| (to, j) == (m, i)));
                        }
                    });
                });
            });
        }
        single
    }

    /// Whether a statement may read an element after it was stored. Of elements that are stored where an iteration reads them, an
    /// iteration reads its own ones; any other element must be read before all stores to its memory.
    fn reads_late(&self, block: &Block, written: &mut Written) -> bool {
        for s in block {
            let mut late = false;
            s.exprs(&mut |e| {
                e.visit(&mut |e| {
                    if let Expr::Load(m, t, i) = e
                        && self.are_stored(*m)
                    {
                        late |= self.is_late(&(*m, i.clone(), t.width), written);
                    }
                });
            });
            if late {
                return true;
            }
            match s {
                Stmt::Store(m, i, e) | Stmt::Atomic(_, m, i, e) if self.are_stored(*m) => {
                    written.elements.insert((*m, i.clone(), e.ty().width));
                }
                Stmt::Loop { var, body, .. } => {
                    let mut inside = written.clone();
                    let stores = Elements::of(body, &Owned::mems(self.memories()));
                    // Each iteration stores to elements of its own, or the next one may read what this one stored.
                    let own = |(_, i, _): &&Element| i.mentions(var.id) && !i.has_data();
                    let again = stores.stores.iter().filter(|e| !own(e)).cloned();
                    inside.elements.extend(again);
                    inside.looped.extend(stores.memories());
                    if self.reads_late(body, &mut inside) {
                        return true;
                    }
                    written.elements.extend(inside.elements);
                }
                Stmt::While(head, _, body) => {
                    let both = [head.clone(), body.clone()].concat();
                    let stores = Elements::of(&both, &Owned::mems(self.memories()));
                    written.elements.extend(stores.stores);
                    if self.reads_late(&both, written) {
                        return true;
                    }
                }
                Stmt::If(_, a, b) | Stmt::Branch(_, a, b) => {
                    let mut left = written.clone();
                    if self.reads_late(a, &mut left) || self.reads_late(b, written) {
                        return true;
                    }
                    written.elements.extend(left.elements);
                }
                s => {
                    if s.blocks().iter().any(|b| self.reads_late(b, written)) {
                        return true;
                    }
                }
            }
        }
        false
    }

    fn memories(&self) -> impl Iterator<Item = Mem> {
        self.stores.iter().map(|(m, ..)| *m)
    }

    fn is_late(&self, e: &Element, written: &Written) -> bool {
        let own = self.stores.contains(e) && !e.1.has_data();
        match own {
            true => written.elements.contains(e),
            false => {
                written.looped.contains(&e.0) || written.elements.iter().any(|(m, ..)| *m == e.0)
            }
        }
    }
}

fn registers(block: &Block, owned: &Owned, written: &mut BTreeSet<u32>) -> bool {
    for s in block {
        let mut bad = false;
        s.exprs(&mut |e| {
            e.visit(&mut |e| {
                if let Expr::Reg(r) = e {
                    bad |= written.contains(&r.id);
                }
            });
        });
        if bad {
            return true;
        }
        match s {
            Stmt::Set(r, _) => {
                if owned.regs.contains(&r.id) {
                    written.insert(r.id);
                }
            }
            Stmt::Decl(..) | Stmt::Store(..) | Stmt::Atomic(..) | Stmt::Barrier { .. } => {}
            Stmt::Loop { kind, body, .. } => {
                // An iteration may read what the previous one wrote. A work-item runs each parallel
                // loop once.
                let again = *kind == LoopKind::Seq;
                if registers(body, owned, written) || again && registers(body, owned, written) {
                    return true;
                }
            }
            Stmt::While(a, _, b) => {
                if registers(a, owned, written)
                    || registers(b, owned, written)
                    || registers(a, owned, written)
                {
                    return true;
                }
            }
            Stmt::Once(b) => {
                if registers(b, owned, written) {
                    return true;
                }
            }
            Stmt::If(_, a, b) | Stmt::Branch(_, a, b) => {
                let mut left = written.clone();
                if registers(a, owned, &mut left) || registers(b, owned, written) {
                    return true;
                }
                written.extend(left);
            }
        }
    }
    false
}
