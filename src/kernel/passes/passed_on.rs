//! Loops of the host that pass arrays of their state on: `(a, b)` becomes `(b, f a b)`.
//!
//! Lowering copies what is passed on to the second buffer of its new place, and the host then exchanges the two buffers of
//! each place. But the host can give the array's own buffer to the new place, without a copy. The exchanges at the end of a
//! step are a permutation of buffers, and stay one: the buffer that held the old value of the new place, which nobody needs
//! any more, becomes the second buffer of the place that the array leaves.

use super::forward_copies::{buffers, copied, names};
use super::in_place::{Launch, enclosing, launches};
use super::memory_reuse::block;
use crate::kernel::ir::{BufferRole, Control, Expr, Mem, Program};
use std::collections::BTreeMap;

/// Removes copies of arrays that a step passes on to another place of the state.
pub fn states(p: &mut Program) {
    let mut at = 0;
    while at < p.control.len() {
        match without_copy(p, at) {
            Some(next) => {
                *p = next;
                at = 0;
            }
            None => at += 1,
        }
    }
}

/// If a loop ends at this step of the host, returns the program without one of the copies in its step.
fn without_copy(p: &Program, at: usize) -> Option<Program> {
    if p.control[at] != Control::End {
        return None;
    }
    let end = StepEnd::of(p, at)?;
    let copy = end.step.iter().find_map(|l| end.copy(l))?;
    Some(end.without(&copy))
}

/// The buffer that each buffer of the exchanges at the end of a step gets.
#[derive(Clone)]
struct Exchanges(BTreeMap<usize, usize>);

impl Exchanges {
    fn of(steps: &[Control]) -> Exchanges {
        let mut comes = BTreeMap::new();
        for c in steps {
            if let Control::Swap(a, b) = c {
                let [x, y] = [a, b].map(|k| comes.get(k).copied().unwrap_or(*k));
                comes.extend([(*a, y), (*b, x)]);
            }
        }
        Exchanges(comes)
    }

    /// Returns the place that gets a buffer.
    fn goes(&self, buffer: usize) -> Option<usize> {
        self.0.iter().find(|(_, from)| **from == buffer).map(|(place, _)| *place)
    }

    /// Returns the exchanges that replace a copy. The buffer that was copied to is no part of them.
    fn with(mut self, copy: &Copy) -> Exchanges {
        self.0.insert(copy.place, copy.from);
        self.0.insert(copy.free, copy.to);
        if let Some(next) = self.0.remove(&copy.to)
            && copy.free != copy.to
        {
            self.0.insert(copy.free, next);
        }
        self
    }

    /// Returns the exchanges as steps. If a buffer of `last` is among those that change places, it comes last.
    fn steps(&self, last: &[usize]) -> Vec<Control> {
        let (mut rest, mut steps) = (self.0.clone(), vec![]);
        while let Some(end) = last.iter().chain(self.0.keys()).find(|b| rest.contains_key(b)) {
            let Some(mut place) = rest.remove(end) else { break };
            while place != *end {
                let Some(from) = rest.remove(&place) else { break };
                steps.push(Control::Swap(place, from));
                place = from;
            }
        }
        steps
    }
}

/// A copy of a part of the state to the second buffer of another part.
struct Copy {
    kernel: usize,
    from: usize,
    to: usize,
    /// The place that gets the copy.
    place: usize,
    /// The second buffer that gets the old value.
    free: usize,
}

/// The end of a step: the exchanges in front of the end of a loop.
struct StepEnd<'a> {
    program: &'a Program,
    /// The kernels of the step.
    step: Vec<Launch>,
    /// The position of the first exchange.
    first: usize,
    /// The position of the end.
    end: usize,
    exchanges: Exchanges,
}

impl StepEnd<'_> {
    fn of(program: &Program, end: usize) -> Option<StepEnd<'_>> {
        let control = &program.control;
        let is_swap = |c: &&Control| matches!(c, Control::Swap(..));
        let first = end - control[..end].iter().rev().take_while(is_swap).count();
        let step = launches(&control[enclosing(program, end)?.0 + 1..first]);
        let exchanges = Exchanges::of(&control[first..end]);
        Some(StepEnd { program, step, first, end, exchanges })
    }

    /// Whether the host names a temporary in these exchanges only.
    fn is_part(&self, b: usize) -> bool {
        let here = names(&self.program.control[self.first..self.end], b);
        let temporary = self.program.buffers[b].role == BufferRole::Temp;
        temporary && here > 0 && here == names(&self.program.control, b)
    }

    /// Whether what a buffer of the exchanges holds is needed within a step only: no kernel outside of the loop touches it, and
    /// the first one in a step that does stores to it.
    fn is_second(&self, b: usize) -> bool {
        let outside = |k: &usize| self.step.iter().all(|l| l.kernel != *k);
        let elsewhere = (0..self.program.kernels.len()).filter(outside).any(|k| self.touches(k, b));
        let first = self.step.iter().find(|l| self.touches(l.kernel, b));
        self.is_part(b) && !elsewhere && first.is_none_or(|l| !self.loads(l.kernel, b))
    }

    fn touches(&self, k: usize, b: usize) -> bool {
        buffers(&self.program.kernels[k], false).contains(&b)
    }

    fn stores(&self, k: usize, b: usize) -> bool {
        buffers(&self.program.kernels[k], true).contains(&b)
    }

    fn loads(&self, k: usize, b: usize) -> bool {
        let mut found = false;
        for s in &self.program.kernels[k].body {
            s.visit(&mut |s| {
                s.exprs(&mut |e| {
                    e.visit(&mut |e| {
                        found |= matches!(e, Expr::Load(Mem::Global(m), ..) if *m == b);
                    });
                });
            });
        }
        found
    }

    /// Returns what a launch of the step copies, if the host can pass it on instead.
    fn copy(&self, launch: &Launch) -> Option<Copy> {
        let (from, to) = copied(&self.program.kernels[launch.kernel])?;
        let (place, free) = (self.exchanges.goes(to)?, self.exchanges.goes(from)?);
        let [a, b] = [from, to].map(|b| &self.program.buffers[b].array);
        let alike = a.scalar == b.scalar && a.len == b.len;
        let parts = [from, place].iter().all(|b| self.is_part(*b) && !self.is_second(*b));
        let seconds = [to, free].iter().all(|b| self.is_second(*b));
        let mut storing = self.step.iter().filter(|l| self.stores(l.kernel, to));
        let only =
            storing.next().is_some_and(|l| l.kernel == launch.kernel) && storing.next().is_none();
        let first = self.step.iter().find(|l| self.touches(l.kernel, to)).map(|l| l.kernel);
        let kept = !self.step.iter().any(|l| self.stores(l.kernel, from));
        let found = alike && parts && seconds && only && first == Some(launch.kernel) && kept;
        let copy = Copy { kernel: launch.kernel, from, to, place, free };
        (found && place != from && launch.inner.is_none()).then_some(copy)
    }

    /// Returns the program without a copy.
    fn without(&self, copy: &Copy) -> Program {
        let mut p = self.program.clone();
        let exchanges = self.exchanges.clone().with(copy);
        let seconds: Vec<usize> =
            exchanges.0.keys().copied().filter(|b| self.is_second(*b)).collect();
        p.control.splice(self.first..self.end, exchanges.steps(&seconds));
        p.remove_kernel(copy.kernel);
        let [from, to] = [copy.from, copy.to].map(Mem::Global);
        let renamed = |m: Mem| if m == to { from } else { m };
        p.kernels.iter_mut().for_each(|k| k.body = block(&k.body, &renamed));
        p
    }
}

#[cfg(test)]
mod tests {
    use super::{Copy, Exchanges};
    use crate::kernel::ir::Control;

    fn swaps(pairs: &[(usize, usize)]) -> Vec<Control> {
        pairs.iter().map(|(a, b)| Control::Swap(*a, *b)).collect()
    }

    /// Where the buffers are after these steps.
    fn places(steps: &[Control]) -> Vec<usize> {
        let mut place: Vec<usize> = (0..8).collect();
        for c in steps {
            if let Control::Swap(a, b) = c {
                place.swap(*a, *b);
            }
        }
        place
    }

    /// The exchanges of a state of three parts with the second buffers 4, 5, 6, after copies between parts.
    fn passed(copies: &[(usize, usize)]) -> Vec<Control> {
        let mut exchanges = Exchanges::of(&swaps(&[(0, 4), (1, 5), (2, 6)]));
        for (from, place) in copies {
            let (to, free) = (place + 4, exchanges.goes(*from).expect("a part"));
            exchanges = exchanges.with(&Copy { kernel: 0, from: *from, to, place: *place, free });
        }
        exchanges.steps(&[4, 5, 6])
    }

    #[test]
    fn exchanges_stay_a_permutation() {
        assert_eq!(passed(&[]), swaps(&[(0, 4), (1, 5), (2, 6)]));
        // (a, b, c) becomes (b, f, g).
        assert_eq!(passed(&[(1, 0)]), swaps(&[(0, 1), (1, 5), (2, 6)]));
        // (a, b, c) becomes (b, c, f), whatever is passed on first.
        assert_eq!(passed(&[(1, 0), (2, 1)]), swaps(&[(0, 1), (1, 2), (2, 6)]));
        assert_eq!(passed(&[(2, 1), (1, 0)]), swaps(&[(0, 1), (1, 2), (2, 6)]));
        // (f, a, b): the value that is not needed is that of the last part.
        assert_eq!(passed(&[(0, 1), (1, 2)]), swaps(&[(2, 1), (1, 0), (0, 4)]));
        // (b, a, f), and (b, c, a).
        assert_eq!(passed(&[(1, 0), (0, 1)]), swaps(&[(2, 6), (1, 0)]));
        let all = passed(&[(1, 0), (2, 1), (0, 2)]);
        assert_eq!((places(&all), all.len()), (vec![1, 2, 0, 3, 4, 5, 6, 7], 2));
        let again = Exchanges::of(&all).steps(&[]);
        assert_eq!(places(&again), places(&all));
    }
}
