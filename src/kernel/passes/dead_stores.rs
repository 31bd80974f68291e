//! Stores that nothing reads: to parts of a tuple, or of a state, that no later kernel uses. What was computed for them alone
//! goes, too, and so do kernels and loops of the host in which nothing is left.

use crate::kernel::ir::{Block, BufferRole, Control, Expr, Mem, Program, Stmt};
use std::collections::BTreeSet;

/// Removes the stores to temporaries that are never read.
pub fn remove(p: &mut Program) {
    loop {
        let read = read(p);
        let mut changed = false;
        let buffers = &p.buffers;
        let dead = |m: Mem| match m {
            Mem::Global(b) => buffers[b].role == BufferRole::Temp && !read.contains(&b),
            _ => false,
        };
        for kernel in &mut p.kernels {
            loop {
                let used = registers(&kernel.body);
                if !clean(&mut kernel.body, &dead, &used) {
                    break;
                }
                changed = true;
            }
            // Registers that loops carry use each other.
            if !kernel.body.is_empty() && !has_effect(&kernel.body) {
                kernel.body.clear();
                changed = true;
            }
        }
        if !changed {
            break;
        }
        p.control.retain(|c| !matches!(c, Control::Swap(a, _) if !read.contains(a)));
    }
    for k in (0..p.kernels.len()).rev() {
        if p.kernels[k].body.is_empty() {
            p.remove_kernel(k);
        }
    }
    let empty = |two: &[Control]| matches!(two, [Control::Repeat(..), Control::End]);
    while let Some(at) = p.control.windows(2).position(empty) {
        p.control.drain(at..at + 2);
    }
}

/// Whether a kernel changes a buffer, or may report an error.
fn has_effect(b: &Block) -> bool {
    let mut found = false;
    for s in b {
        s.visit(&mut |s| {
            let changes = match s {
                Stmt::Store(m, ..) | Stmt::Atomic(_, m, ..) => matches!(m, Mem::Global(_)),
                _ => false,
            };
            found |= changes || may_report(s);
        });
    }
    found
}

/// Returns the buffers that a kernel or the host reads, and those that are exchanged with one.
fn read(p: &Program) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut add = |m: &Mem| {
        if let Mem::Global(b) = m {
            found.insert(*b);
        }
    };
    for s in p.kernels.iter().flat_map(|k| &k.body) {
        s.visit(&mut |s| {
            if let Stmt::Atomic(_, m, ..) = s {
                add(m);
            }
            s.exprs(&mut |e| {
                e.visit(&mut |e| {
                    if let Expr::Load(m, ..) = e {
                        add(m);
                    }
                });
            });
        });
    }
    let outputs = p.buffers.iter().enumerate().filter(|(_, b)| b.role != BufferRole::Temp);
    found.extend(outputs.map(|(b, _)| b));
    loop {
        let before = found.len();
        for c in &p.control {
            match c {
                Control::Check(b) => found.extend([*b]),
                Control::Swap(a, b) if found.contains(a) || found.contains(b) => {
                    found.extend([*a, *b]);
                }
                _ => {}
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

/// Returns the registers that expressions read, and those that atomic operations or values with a check set, which stay.
fn registers(b: &Block) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    for s in b {
        s.visit(&mut |s| {
            match s {
                Stmt::Atomic(update, ..) => found.extend(update.register().map(|r| r.id)),
                Stmt::Decl(r, _) | Stmt::Set(r, _) if may_report(s) => drop(found.insert(r.id)),
                _ => {}
            }
            s.exprs(&mut |e| {
                e.visit(&mut |e| {
                    if let Expr::Reg(r) = e {
                        found.insert(r.id);
                    }
                });
            });
        });
    }
    found
}

/// Removes dead stores, values of registers that nothing uses, and statements without a body. A check that may report an error
/// stays. Returns whether anything was removed.
fn clean(b: &mut Block, dead: &dyn Fn(Mem) -> bool, used: &BTreeSet<u32>) -> bool {
    let before = b.len();
    let mut changed = false;
    b.retain_mut(|s| {
        s.blocks_mut().into_iter().for_each(|b| changed |= clean(b, dead, used));
        let goes = match s {
            Stmt::Store(m, ..) => dead(*m),
            Stmt::Decl(r, _) | Stmt::Set(r, _) => !used.contains(&r.id),
            Stmt::Loop { body, .. } | Stmt::Once(body) => body.is_empty(),
            Stmt::If(_, a, b) | Stmt::Branch(_, a, b) => a.is_empty() && b.is_empty(),
            Stmt::While(..) | Stmt::Atomic(..) | Stmt::Barrier { .. } => false,
        };
        !goes || may_report(s)
    });
    changed || b.len() < before
}

/// Whether an expression of the statement itself has a check.
fn may_report(s: &Stmt) -> bool {
    let mut found = false;
    s.exprs(&mut |e| e.visit(&mut |e| found |= matches!(e, Expr::Checked(..))));
    found
}

#[cfg(test)]
mod tests {
    use crate::calculus::size::SizeEnv;
    use crate::kernel::lower;
    use crate::kernel::lower::testing::{options, term};

    /// Each step compares the new state with the old one, in a loop with a register. The result may not be used.
    #[test]
    fn kernels_without_an_effect_go() {
        let next = "mapGlb 0 (reduceUnroll (||) false) . slide 3 1 100 . padConstant 1 102 false";
        let changed = "the . mapWrg 0 (reduceLcl 16 (||) false (!=)) . wrap . zip";
        let step = format!("fork snd ({changed}) . fork id ({next}) . fst . fst");
        let of = |used: &str| {
            let text = format!("{used} . foldSeq ({step}) . fork (fork x true) (iota 100 i32)");
            let term = term(&text, &[("x", "[100]bool")]);
            let program = lower(&term, &SizeEnv::default(), &options()).expect("lowers");
            program.to_string().matches("Ne(").count()
        };
        assert_eq!((of("fst"), of("id") > 0), (0, true));
    }
}
