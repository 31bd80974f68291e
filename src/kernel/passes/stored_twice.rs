//! Copies that the kernel before can make itself.
//!
//! A loop of the host that keeps what each step computes, `(out with [k] <- new, new)`, computes an array in one kernel and copies it to
//! its place in another. A launch takes longer than the copy of a row: the first kernel stores each element to both places.

use super::forward_copies::buffers;
use crate::kernel::ir::index::{Guard, Index, Var};
use crate::kernel::ir::walk::Fresh;
use crate::kernel::ir::{Block, BufferRole, Control, Expr, Kernel, Mem, Program, Stmt};
use std::collections::BTreeSet;

/// Removes the kernels that only copy a whole temporary to a place in another buffer. `reserved` are the names of parameters and buffers.
pub fn by_makers(p: &mut Program, reserved: &BTreeSet<String>) {
    let mut at = 0;
    while at < p.control.len() {
        if let Control::Launch(k) = p.control[at]
            && let Some(moved) = Moved::by(p, &p.kernels[k])
            && let Some(maker) = moved.maker(p, at)
        {
            let kernel = &mut p.kernels[maker];
            let mut fresh = Fresh::after(kernel, reserved);
            moved.store_both(&mut kernel.body, &mut fresh);
            p.remove_kernel(k);
        } else {
            at += 1;
        }
    }
}

/// What a kernel copies: each element of a temporary to the same place, plus a distance, in another buffer.
struct Moved {
    from: usize,
    to: usize,
    distance: Index,
}

impl Moved {
    fn by(p: &Program, k: &Kernel) -> Option<Moved> {
        let (mut vars, mut guard, mut body) = (vec![], None, &k.body);
        let (from, to, i, j) = loop {
            match body.as_slice() {
                [Stmt::Loop { var, lo, hi, body: inner, .. }] => {
                    let (0, n) = (lo.as_constant()?, hi.as_constant()?) else { return None };
                    vars.push((var, n));
                    body = inner;
                }
                [Stmt::If(g, inner, other)] if other.is_empty() && guard.is_none() => {
                    guard = Some(g);
                    body = inner;
                }
                [Stmt::Store(Mem::Global(to), j, Expr::Load(Mem::Global(from), ty, i))]
                    if ty.width == 1 =>
                {
                    break (*from, *to, i, j);
                }
                _ => return None,
            }
        };
        let (source, target) = (&p.buffers[from], &p.buffers[to]);
        let distance = j.sub(i);
        let fixed = !distance.has_data() && vars.iter().all(|(v, _)| !distance.mentions(v.id));
        let alike = source.array.scalar == target.array.scalar && from != to;
        (source.role == BufferRole::Temp
            && fixed
            && alike
            && is_all(i, vars, guard, source.array.len))
        .then_some(Moved { from, to, distance })
    }

    /// Returns the kernel that computes the temporary, if it runs before this step of the host in the same iteration, and nothing in
    /// between touches the other buffer.
    fn maker(&self, p: &Program, at: usize) -> Option<usize> {
        for c in p.control[..at].iter().rev() {
            let Control::Launch(m) = c else { return None };
            let kernel = &p.kernels[*m];
            if buffers(kernel, false).contains(&self.to) {
                return None;
            }
            if buffers(kernel, true).contains(&self.from) {
                let others = p.kernels.iter().enumerate().filter(|(k, _)| k != m);
                let alone = others.into_iter().all(|(_, k)| !buffers(k, true).contains(&self.from));
                let mut atomic = false;
                kernel.body.iter().for_each(|s| {
                    s.visit(&mut |s| {
                        atomic |=
                            matches!(s, Stmt::Atomic(_, m, ..) if *m == Mem::Global(self.from))
                    });
                });
                return (alone && !atomic).then_some(*m);
            }
        }
        None
    }

    fn store_both(&self, block: &mut Block, fresh: &mut Fresh) {
        let mut out = vec![];
        for mut s in std::mem::take(block) {
            s.blocks_mut().into_iter().for_each(|inner| self.store_both(inner, fresh));
            match s {
                Stmt::Store(m, i, e) if m == Mem::Global(self.from) => {
                    let value = fresh.reg(e.ty());
                    let there = i.add(&self.distance);
                    out.push(Stmt::Decl(value.clone(), Some(e)));
                    out.push(Stmt::Store(m, i, Expr::Reg(value.clone())));
                    out.push(Stmt::Store(Mem::Global(self.to), there, Expr::Reg(value)));
                }
                s => out.push(s),
            }
        }
        *block = out;
    }
}

/// Whether an index takes each value below `len` in these loops, the counters of which begin at 0, where the guard holds.
fn is_all(i: &Index, vars: Vec<(&Var, i64)>, guard: Option<&Guard>, len: usize) -> bool {
    let Ok(len) = i64::try_from(len) else { return false };
    let (mut rest, mut parts) = (i.clone(), vec![]);
    for (var, n) in vars.into_iter().filter(|(_, n)| *n > 1) {
        let Some((step, other)) = rest.linear_in(var.id) else { return false };
        parts.push((step, n));
        rest = other;
    }
    // The places of a counter follow each other at the distance that those of the counters before it cover.
    parts.sort_unstable();
    let covered = parts.into_iter().try_fold(1i64, |covered, (step, n)| {
        (step == covered).then(|| covered.checked_mul(n)).flatten()
    });
    let Some(covered) = covered.filter(|_| rest.as_constant() == Some(0)) else { return false };
    match guard {
        None => covered == len,
        Some(guard) => covered >= len && *guard == Guard::less(i, &Index::from(len)),
    }
}

#[cfg(test)]
mod tests {
    use crate::calculus::size::SizeEnv;
    use crate::kernel::ir::Control;
    use crate::kernel::lower;
    use crate::kernel::lower::testing::{options, term};

    /// The kernels of each step of a loop that stores a value in a row of the state.
    fn launches(new: &str) -> usize {
        let row = "scatter . fork (fst . fst) (bimap (replicate 1 . snd) (replicate 1))";
        let step = format!("fork ({row}) snd . fork (bimap fst id) ({new})");
        let text = format!("fst . foldSeq ({step}) . fork (fork X x) (iota 20 i32)");
        let term = term(&text, &[("X", "[20][100]f32"), ("x", "[100]f32")]);
        let program = lower(&term, &SizeEnv::default(), &options()).expect("lowers");
        let begin = |c: &Control| matches!(c, Control::Repeat(..));
        let first = program.control.iter().position(begin).expect("a loop");
        let step = program.control[first..].iter().take_while(|c| **c != Control::End);
        step.filter(|c| matches!(c, Control::Launch(_))).count()
    }

    #[test]
    fn rows_are_stored_by_the_kernel_that_computes_them() {
        assert_eq!(launches("mapGlb 0 (\\x -> x * 0.5) . rotate 1 . snd . fst"), 1);
        assert_eq!(
            launches(
                "take 100 . join . mapWrg 0 (mapLcl 0 (\\x -> x * 0.5)) . split 25 . snd . fst"
            ),
            1
        );
        // The step reads rows that were stored: the kernel would store to what other work-items read.
        let row = "index . fork (fst . fst) (0i32 . bang)";
        let reads = format!("mapGlb 0 (+) . zip . fork (snd . fst) ({row})");
        assert_eq!(launches(&reads), 2);
    }
}
