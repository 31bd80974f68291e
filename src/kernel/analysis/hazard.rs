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

/// Whether the block reads one of these registers after writing it, or reads an element of one of
/// these memories other than the one that it writes.
pub fn reads_what_it_wrote(block: &Block, owned: &Owned) -> bool {
    let mut stores: BTreeSet<(Mem, Index)> = BTreeSet::new();
    for s in block {
        s.visit(&mut |s| {
            if let Stmt::Store(m, i, _) | Stmt::Atomic(_, m, i, _) = s
                && owned.mems.contains(m)
            {
                stores.insert((*m, i.clone()));
            }
        });
    }
    let mut foreign = false;
    for s in block {
        s.visit(&mut |s| {
            s.exprs(&mut |e| {
                e.visit(&mut |e| {
                    if let Expr::Load(m, _, i) = e {
                        foreign |= owned.mems.contains(m)
                            && stores.iter().any(|(to, _)| to == m)
                            && (stores.len() > 1 || !stores.contains(&(*m, i.clone())));
                    }
                });
            });
        });
    }
    foreign || registers(block, owned, &mut BTreeSet::new())
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
