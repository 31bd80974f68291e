//! Lifetimes of the arrays of a work-group: the first and the last section of a kernel that needs each of them.
//!
//! A section is a statement of the code that a group runs together. An array that only the body of a loop touches, or one branch of a
//! choice, needs no more than the sections there: nothing initialised it before, so each iteration stores what it loads. That
//! does not hold if the iterations differ, that is, if a guard or an inner loop around an access depends on the counter; then, and for
//! any other array in a loop, the whole loop is one section.

use crate::kernel::ir::{Block, Expr, Kernel, LoopKind, Mem, MemArray, Stmt};
use std::collections::BTreeMap;

/// The first and the last section of each array.
pub type Lifetimes = BTreeMap<usize, (usize, usize)>;

/// Returns the lifetimes of the arrays of a kernel.
pub fn of_arrays(body: &Block) -> Lifetimes {
    let mut life = Lifetimes::new();
    let all = touches(body.iter());
    sections(body, &mut 0, &mut life, &all);
    life
}

/// Returns how many bytes of local memory a kernel needs more than there are, whatever arrays share memory.
pub fn missing_bytes(k: &Kernel, most: usize) -> usize {
    match k.local_bytes() > most {
        true => least_bytes(k).saturating_sub(most),
        false => 0,
    }
}

/// Returns the least bytes of local memory that a kernel needs, whatever arrays share memory: those of the arrays that one section
/// needs.
fn least_bytes(k: &Kernel) -> usize {
    let life = of_arrays(&k.body);
    let at = |section: usize| {
        let needed = life.iter().filter(|(_, (first, last))| (*first..=*last).contains(&section));
        needed
            .filter_map(|(a, _)| k.locals.get(*a))
            .map(MemArray::local_bytes)
            .fold(0, usize::saturating_add)
    };
    // The most are needed where one of them is needed first.
    life.values().map(|(first, _)| at(*first)).max().unwrap_or(0)
}

fn sections(b: &Block, next: &mut usize, life: &mut Lifetimes, all: &BTreeMap<usize, usize>) {
    for s in b {
        match s {
            Stmt::Loop { kind: LoopKind::Wrg(_) | LoopKind::Glb(_), .. } | Stmt::If(..) => {
                s.blocks().into_iter().for_each(|b| sections(b, next, life, all));
            }
            Stmt::Loop { kind: LoopKind::Seq, .. } | Stmt::Branch(..) if is_of_group(s) => {
                let first = *next + 1;
                let mut inner = Lifetimes::new();
                s.blocks().into_iter().for_each(|b| sections(b, next, &mut inner, all));
                *next = first.max(*next);
                for (a, here) in touches([s]) {
                    let own = all.get(&a) == Some(&here) && is_fresh(s, a);
                    let (from, to) = match inner.get(&a) {
                        Some(range) if own => *range,
                        _ => (first, *next),
                    };
                    extend(life, a, from, to);
                }
            }
            _ => {
                *next += 1;
                touches([s]).into_keys().for_each(|a| extend(life, a, *next, *next));
            }
        }
    }
}

fn extend(life: &mut Lifetimes, a: usize, from: usize, to: usize) {
    let range = life.entry(a).or_insert((from, to));
    *range = (range.0.min(from), range.1.max(to));
}

/// Returns how often statements touch each array.
fn touches<'a>(b: impl IntoIterator<Item = &'a Stmt>) -> BTreeMap<usize, usize> {
    let mut out = BTreeMap::new();
    for s in b {
        touched(s, &mut |m| {
            if let Mem::Local(a) = m {
                *out.entry(*a).or_insert(0) += 1;
            }
        });
    }
    out
}

/// Whether the work-items of a group run a statement together, and share out work inside.
fn is_of_group(s: &Stmt) -> bool {
    let mut found = false;
    s.visit(&mut |s| found |= matches!(s, Stmt::Loop { kind, .. } if kind.is_local()));
    found
}

/// Whether each execution of a loop's body, or of a branch, stores an array before it loads it, and does so in the same way.
fn is_fresh(s: &Stmt, a: usize) -> bool {
    let same = match s {
        Stmt::Loop { var, body, .. } => !differs(body, a, var.id),
        _ => true,
    };
    same && s.blocks().into_iter().all(|b| first_access(b, a) != Some(Access::Load))
}

/// Whether a guard or the bound of a loop around an access to an array depends on a counter.
fn differs(b: &Block, a: usize, counter: u32) -> bool {
    b.iter().any(|s| {
        let depends = match s {
            Stmt::If(g, ..) => g.0.iter().any(|i| i.mentions(counter)),
            Stmt::Loop { lo, hi, .. } => lo.mentions(counter) || hi.mentions(counter),
            Stmt::Branch(c, ..) | Stmt::While(_, c, _) => expr_mentions(c, counter),
            _ => false,
        };
        depends && touches([s]).contains_key(&a)
            || s.blocks().into_iter().any(|b| differs(b, a, counter))
    })
}

fn expr_mentions(e: &Expr, counter: u32) -> bool {
    let mut found = false;
    e.visit(&mut |e| {
        if let Expr::Index(i, _) | Expr::Load(_, _, i) = e {
            found |= i.mentions(counter);
        }
    });
    found
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Load,
    Store,
}

/// Returns the first access to an array; a load if it depends on a choice.
fn first_access(b: &Block, a: usize) -> Option<Access> {
    b.iter().find_map(|s| {
        let mut loads = false;
        s.exprs(&mut |e| {
            e.visit(&mut |e| loads |= matches!(e, Expr::Load(Mem::Local(m), ..) if *m == a));
        });
        match s {
            _ if loads => Some(Access::Load),
            Stmt::Store(Mem::Local(m), ..) if *m == a => Some(Access::Store),
            Stmt::Atomic(_, Mem::Local(m), ..) if *m == a => Some(Access::Load),
            // What one branch stores and others load may be older.
            Stmt::Branch(..) if touches([s]).get(&a) < touches(b).get(&a) => {
                touches([s]).contains_key(&a).then_some(Access::Load)
            }
            _ => {
                let inner: Vec<Access> =
                    s.blocks().into_iter().filter_map(|b| first_access(b, a)).collect();
                match inner.contains(&Access::Load) {
                    true => Some(Access::Load),
                    false => inner.first().copied(),
                }
            }
        }
    })
}

/// Calls `f` on every memory that a statement loads from or stores to.
pub fn touched(s: &Stmt, f: &mut dyn FnMut(&Mem)) {
    s.visit(&mut |s| {
        if let Stmt::Store(m, ..) | Stmt::Atomic(_, m, ..) = s {
            f(m);
        }
        s.exprs(&mut |e| {
            e.visit(&mut |e| {
                if let Expr::Load(m, ..) = e {
                    f(m);
                }
            });
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::ir::index::Index;
    use crate::kernel::ir::testing::kernel;
    use crate::kernel::ir::{ARRAY_ALIGNMENT, ElemTy};
    use crate::lang::types::ScalarType::I32;

    #[test]
    fn arrays_of_one_section_need_memory_of_their_own() {
        let at = Index::from(0);
        let load = |a: usize| Expr::Load(Mem::Local(a), ElemTy::scalar(I32), at.clone());
        let pass = |from: usize, to: usize| Stmt::Store(Mem::Local(to), at.clone(), load(from));
        let mut k = kernel(vec![pass(0, 1), pass(1, 2), pass(2, 0)]);
        let array = |len| MemArray { name: "a".into(), scalar: I32, len, ahead: 0, pieces: 0 };
        k.locals = [1, 2, 3].map(|n| array(n * ARRAY_ALIGNMENT)).to_vec();
        assert_eq!(k.local_bytes(), 4 * 6 * ARRAY_ALIGNMENT);
        // The first array is needed to the end.
        assert_eq!(least_bytes(&k), k.local_bytes());
        k.body.pop();
        assert_eq!(least_bytes(&k), 4 * 5 * ARRAY_ALIGNMENT);
    }
}
