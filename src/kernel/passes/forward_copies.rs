//! Copies that are not needed, since the copy can take the place of what is copied, or the other way round.
//!
//! A value that is both a result and an operand of a further kernel is stored in a temporary first. Lowering then copies
//! it to the result. The kernels can store to the result at once, and read it there. If the temporary has padding, they store what belongs to the
//! result.

use super::lifetimes::touched;
use super::memory_reuse::block;
use super::shortened;
use crate::kernel::ir::{Block, BufferRole, Control, Expr, Kernel, Mem, Program, Stmt};
use std::collections::BTreeSet;

/// Removes the kernels that only copy a whole temporary to a result.
pub fn to_results(p: &mut Program) {
    let mut depth = 0;
    let mut at = 0;
    while at < p.control.len() {
        match p.control[at] {
            Control::Repeat(..) | Control::While => depth += 1,
            Control::End => depth -= 1,
            Control::Launch(k) if depth == 0 => {
                if let Some((from, to)) = copied(&p.kernels[k]).filter(|c| may_forward(p, k, *c))
                    && let Some(bodies) = shortened(p, k, (from, to))
                {
                    let place = |m: Mem| if m == Mem::Global(from) { Mem::Global(to) } else { m };
                    for (kernel, body) in p.kernels.iter_mut().zip(bodies) {
                        kernel.body = body;
                    }
                    p.remove_kernel(k);
                    for kernel in &mut p.kernels {
                        kernel.body = block(&kernel.body, &place);
                    }
                    continue;
                }
            }
            Control::Launch(_) | Control::Check(_) | Control::Swap(..) | Control::Together(_) => {}
        }
        at += 1;
    }
}

/// Removes the kernels that only copy the condition of a loop from where it was computed. The host can read it there.
pub fn to_checks(p: &mut Program) {
    let mut at = 0;
    while at < p.control.len() {
        if let [Control::Launch(k), Control::Check(flag), ..] = p.control[at..]
            && let Some((from, to)) = copied(&p.kernels[k])
            && to == flag
            && [from, to].iter().all(|b| p.buffers[*b].array.len == 1)
            && names(&p.control, flag) == 1
            && (0..p.kernels.len())
                .all(|other| other == k || !buffers(&p.kernels[other], false).contains(&flag))
        {
            p.control[at + 1] = Control::Check(from);
            p.remove_kernel(k);
        }
        at += 1;
    }
}

/// Returns how many steps of the host name a buffer.
pub(super) fn names(control: &[Control], buffer: usize) -> usize {
    let named = |c: &&Control| match c {
        Control::Check(b) => *b == buffer,
        Control::Swap(a, b) => *a == buffer || *b == buffer,
        Control::Launch(_)
        | Control::Repeat(..)
        | Control::While
        | Control::Together(_)
        | Control::End => false,
    };
    control.iter().filter(named).count()
}

/// Returns the two buffers of a kernel that only copies elements to the same places.
pub(super) fn copied(k: &Kernel) -> Option<(usize, usize)> {
    // A long dimension is a loop with a last part of its own.
    fn of(block: &Block) -> Option<(usize, usize)> {
        let mut parts = block.iter().map(|s| match s {
            Stmt::Loop { body, .. } => of(body),
            Stmt::If(_, body, other) if other.is_empty() => of(body),
            Stmt::Store(Mem::Global(to), i, Expr::Load(Mem::Global(from), _, j)) => {
                (i == j).then_some((*from, *to))
            }
            _ => None,
        });
        let first = parts.next()??;
        parts.all(|other| other == Some(first)).then_some(first)
    }
    of(&k.body)
}

/// Returns the kernels' code, with what a temporary that is longer than the result has behind it left out: the padding of a length that
/// tiles or vectors do not divide. `None` if a kernel but the copy, `k`, reads the padding.
fn shortened(p: &Program, k: usize, (from, to): (usize, usize)) -> Option<Vec<Block>> {
    let len = |b: usize| p.buffers[b].array.len;
    let n = i64::try_from(len(to)).ok()?;
    let body = |(other, kernel): (usize, &Kernel)| {
        if len(from) == len(to) || other == k || !buffers(kernel, false).contains(&from) {
            return Some(kernel.body.clone());
        }
        shortened::to(&kernel.body, Mem::Global(from), n)
    };
    p.kernels.iter().enumerate().map(body).collect()
}

/// Whether the result may take the place of the temporary: kernel `k` alone touches the result, no later kernel stores to
/// the temporary, and the host names neither.
fn may_forward(p: &Program, k: usize, (from, to): (usize, usize)) -> bool {
    let (temporary, result) = (&p.buffers[from], &p.buffers[to]);
    let alike =
        temporary.array.scalar == result.array.scalar && temporary.array.len >= result.array.len;
    let roles = temporary.role == BufferRole::Temp && matches!(result.role, BufferRole::Output(_));
    let named = [from, to].iter().any(|b| names(&p.control, *b) > 0);
    let others = p.kernels.iter().enumerate().filter(|(other, _)| *other != k);
    let touches = others.clone().any(|(_, kernel)| buffers(kernel, false).contains(&to));
    let stores = others
        .filter(|(other, _)| *other > k)
        .any(|(_, kernel)| buffers(kernel, true).contains(&from));
    alike && roles && !named && !touches && !stores
}

/// Returns the global buffers that a kernel touches, or only those that it stores to.
pub(super) fn buffers(k: &Kernel, stored: bool) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut add = |m: &Mem| {
        if let Mem::Global(b) = m {
            found.insert(*b);
        }
    };
    for s in &k.body {
        if stored {
            s.visit(&mut |s| {
                if let Stmt::Store(m, ..) | Stmt::Atomic(_, m, ..) = s {
                    add(m);
                }
            });
        } else {
            touched(s, &mut add);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::calculus::size::SizeEnv;
    use crate::kernel::lower;
    use crate::kernel::lower::testing::{options, term};

    /// There are more rows than groups in the second dimension of a grid.
    #[test]
    fn a_result_that_is_read_again_is_not_copied() {
        let rows = "mapGlb 1 (mapGlb 0 abs) . a";
        for n in [100, 70_000, 1 << 20] {
            let text = format!("fork id (mapGlb 0 (reduceSeq (+) 0.0)) . {rows}");
            let term = term(&text, &[("a", &format!("[{n}][4]f32"))]);
            let program = lower(&term, &SizeEnv::default(), &options()).expect("lowers");
            assert_eq!(program.kernels.len(), 2, "{n}");
        }
    }

    #[test]
    fn a_result_without_its_padding_is_not_copied() {
        let padded = "take 1001 . join . mapGlb 0 (mapSeq abs) . split 4 . padLast 1004 . a";
        let reader = |f: &str, kernels: usize| {
            let term = term(&format!("fork id ({f}) . {padded}"), &[("a", "[1001]f32")]);
            let program = lower(&term, &SizeEnv::default(), &options()).expect("lowers");
            assert_eq!(program.kernels.len(), kernels, "{:?}", program.kernels);
            program.kernels[0].to_string()
        };
        let text = reader("mapGlb 0 abs", 2);
        assert!(!text.contains("1004"), "{text}");
        // The first of the elements is a vector that a condition guards.
        assert!(text.contains("if"), "{text}");
    }
}
