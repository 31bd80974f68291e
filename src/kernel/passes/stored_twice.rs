//! Copies that the kernel before can make itself.
//!
//! A loop of the host that keeps what each step computes, `(out with [k] <- new, new)`, computes an array in one kernel and copies it to
//! its place in another. A launch takes longer than the copy of a row: the first kernel stores each element to both places.

use super::forward_copies::buffers;
use crate::kernel::ir::facts::Guard;
use crate::kernel::ir::index::{Index, Var};
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
        let (to, i, e) = only_store(&k.body)?;
        let Expr::Load(Mem::Global(source), ty, j) = e else { return None };
        let (from, distance) = (*source, i.sub(j));
        let mut stores = vec![];
        stores_of(&k.body, to, &mut (vec![], vec![]), &mut stores);
        let Some(Some(Places { loops, guards, .. })) = stores.pop() else { return None };
        let fixed = !distance.has_data() && loops.iter().all(|(v, _)| !distance.mentions(v.id));
        let read = Places { index: j, loops, guards };
        let (temporary, target) = (&p.buffers[from], &p.buffers[to].array);
        let alike = temporary.array.scalar == target.scalar && from != to && ty.width == 1;
        let whole = temporary.role == BufferRole::Temp && read.is_all(temporary.array.len);
        (fixed && alike && whole).then_some(Moved { from, to, distance })
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
                let mut atomic = false;
                let from = Mem::Global(self.from);
                kernel.body.iter().for_each(|s| {
                    s.visit(&mut |s| atomic |= matches!(s, Stmt::Atomic(_, m, ..) if *m == from));
                });
                return (!atomic && self.is_complete(p, *m)).then_some(*m);
            }
        }
        None
    }

    /// Whether a kernel stores all elements of the temporary: no other kernel stores to it, or its one store is to all places.
    fn is_complete(&self, p: &Program, maker: usize) -> bool {
        let mut others = p.kernels.iter().enumerate().filter(|(k, _)| *k != maker);
        if others.all(|(_, k)| !buffers(k, true).contains(&self.from)) {
            return true;
        }
        let mut stores = vec![];
        stores_of(&p.kernels[maker].body, self.from, &mut (vec![], vec![]), &mut stores);
        match stores.as_slice() {
            [Some(all)] => all.is_all(p.buffers[self.from].array.len),
            _ => false,
        }
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

/// Returns the buffer, the place and the value of the store of a kernel that does nothing else.
fn only_store(block: &Block) -> Option<(usize, &Index, &Expr)> {
    match block.as_slice() {
        [Stmt::Loop { body, .. }] => only_store(body),
        [Stmt::If(_, body, other)] if other.is_empty() => only_store(body),
        [Stmt::Store(Mem::Global(to), i, e)] => Some((*to, i, e)),
        _ => None,
    }
}

/// The place of a store, the counters around it with their numbers of steps, and the guards.
struct Places<'a> {
    index: &'a Index,
    loops: Vec<(&'a Var, i64)>,
    guards: Vec<&'a Guard>,
}

/// Collects the stores to a buffer. `None` stands for one whose places are not known.
fn stores_of<'a>(
    block: &'a Block,
    to: usize,
    around: &mut (Vec<(&'a Var, i64)>, Vec<&'a Guard>),
    out: &mut Vec<Option<Places<'a>>>,
) {
    for s in block {
        match s {
            Stmt::Store(m, index, e) if *m == Mem::Global(to) => {
                let (loops, guards) = around.clone();
                out.push((e.ty().width == 1).then_some(Places { index, loops, guards }));
            }
            Stmt::Loop { var, lo, hi, body, .. } => {
                let n = (lo.as_constant() == Some(0)).then(|| hi.as_constant()).flatten();
                // No index takes all values in a loop that begins or ends where another one says.
                around.0.push((var, n.unwrap_or(0)));
                stores_of(body, to, around, out);
                around.0.pop();
            }
            Stmt::If(g, body, other) if other.is_empty() => {
                around.1.push(g);
                stores_of(body, to, around, out);
                around.1.pop();
            }
            Stmt::Once(body) => stores_of(body, to, around, out),
            s => {
                s.visit(&mut |s| {
                    if matches!(s, Stmt::Store(m, ..) if *m == Mem::Global(to)) {
                        out.push(None);
                    }
                });
            }
        }
    }
}

impl Places<'_> {
    /// Whether these are all places below `len`.
    fn is_all(&self, len: usize) -> bool {
        let Ok(len) = i64::try_from(len) else { return false };
        let (mut rest, mut parts) = (self.index.clone(), vec![]);
        for (var, n) in self.loops.iter().filter(|(_, n)| *n != 1) {
            let Some((step, other)) = rest.linear_in(var.id) else { return false };
            parts.push((step, *n));
            rest = other;
        }
        // The places of a counter follow each other at the distance that those of the counters before it cover.
        parts.sort_unstable();
        let covered = parts.into_iter().try_fold(1i64, |covered, (step, n)| {
            (step == covered).then(|| covered.checked_mul(n)).flatten()
        });
        let Some(covered) = covered.filter(|_| rest.as_constant() == Some(0)) else { return false };
        match self.guards.as_slice() {
            [] => covered == len,
            [guard] => covered >= len && **guard == Guard::less(self.index, &Index::from(len)),
            _ => false,
        }
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
