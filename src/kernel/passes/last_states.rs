//! The last state of a counted loop of the host as a result.
//!
//! A loop of the host has two buffers for its state, which it exchanges after each step. Lowering copies the last state to the result. If the loop counts
//! its steps, the host knows in which of the two buffers the last state will be, and lets that one be the result.

use super::forward_copies::{buffers, copied, names};
use super::in_place::enclosing;
use super::memory_reuse::block;
use crate::kernel::ir::index::Var;
use crate::kernel::ir::walk::Fresh;
use crate::kernel::ir::{BufferRole, Control, Kernel, Mem, Program, Times};

/// Removes the kernels that only copy the last state of a counted loop to a result. `fresh` names the counters of new loops of the host.
pub fn to_results(p: &mut Program, fresh: &mut Fresh) {
    while let Some(last) = LastState::find(p) {
        last.to_result(p, fresh);
    }
}

/// A copy of a loop's last state to a result.
struct LastState {
    /// The kernel that copies.
    copy: usize,
    /// The buffer of the state, that of the next state, and the result.
    state: usize,
    next: usize,
    result: usize,
    /// How many steps the loop has.
    times: Times,
}

impl LastState {
    fn find(p: &Program) -> Option<LastState> {
        (0..p.control.len()).find_map(|at| LastState::at(p, at))
    }

    /// Returns the copy at a step of the host; `None` if the next state cannot be in the result.
    fn at(p: &Program, at: usize) -> Option<LastState> {
        let Control::Launch(copy) = p.control[at] else { return None };
        let (state, result) = copied(&p.kernels[copy])?;
        let exchange = |c: &Control| match c {
            Control::Swap(a, b) if *a == state => Some(*b),
            Control::Swap(a, b) if *b == state => Some(*a),
            _ => None,
        };
        let (swap, next) =
            p.control[..at].iter().enumerate().find_map(|(k, c)| Some((k, exchange(c)?)))?;
        let (begin, _) = enclosing(p, swap)?;
        let Control::Repeat(times, _) = p.control[begin] else { return None };
        let outside = [begin, at].iter().all(|k| enclosing(p, *k).is_none());
        let alike = |b: usize| {
            let (a, b) = (&p.buffers[b].array, &p.buffers[result].array);
            a.scalar == b.scalar && a.len == b.len
        };
        let temporary = |b: usize| {
            p.buffers[b].role == BufferRole::Temp && names(&p.control, b) == 1 && alike(b)
        };
        let is_result = matches!(p.buffers[result].role, BufferRole::Output(_))
            && names(&p.control, result) == 0;
        let touches =
            |(k, kernel): (usize, &Kernel)| k != copy && buffers(kernel, false).contains(&result);
        let alone = !p.kernels.iter().enumerate().any(touches);
        // Nothing stores to the state later.
        let stores = |c: &Control| match c {
            Control::Launch(k) => buffers(&p.kernels[*k], true).contains(&state),
            _ => false,
        };
        let stays = !p.control[at + 1..].iter().any(stores);
        let fits = outside && temporary(state) && temporary(next) && is_result && alone && stays;
        fits.then_some(LastState { copy, state, next, result, times })
    }

    /// Lets the result be the buffer of the next state. Each step of the loop exchanges the two buffers. With as many exchanges before, and one
    /// more, the result is the state at the end, whatever the number of steps.
    fn to_result(&self, p: &mut Program, fresh: &mut Fresh) {
        let LastState { copy, state, next, result, times } = *self;
        p.remove_kernel(copy);
        let place = |m: Mem| if m == Mem::Global(next) { Mem::Global(result) } else { m };
        for kernel in &mut p.kernels {
            kernel.body = block(&kernel.body, &place);
        }
        for c in &mut p.control {
            if let Control::Swap(a, b) = c {
                for buffer in [a, b] {
                    if *buffer == next {
                        *buffer = result;
                    }
                }
            }
        }
        let exchange = Control::Swap(state, result);
        let mut before = vec![];
        if !matches!(times, Times::Known(n) if n.max(0) % 2 == 1) {
            before.push(exchange.clone());
        }
        if matches!(times, Times::Given { .. }) {
            let (id, name) = fresh.name("step");
            let counter = Var { id, name, lo: 0, hi: i64::from(i32::MAX) };
            before.extend([Control::Repeat(times, counter), exchange, Control::End]);
        }
        p.control.splice(0..0, before);
    }
}

#[cfg(test)]
mod tests {
    use crate::calculus::size::SizeEnv;
    use crate::kernel::ir::{BufferRole, Control, Program};
    use crate::kernel::lower;
    use crate::kernel::lower::testing::{options, term};

    /// A loop with this condition on the number of the step and an argument, and what the host does in front of the first kernel.
    fn looped(condition: &str) -> (Program, Vec<Control>) {
        let step = "fork (mapGlb 0 (+) . zip . fork id (rotate 1) . fst . fst) ((\\i -> i + 1) . snd . fst)";
        let start = "fork (fork x 0) steps";
        let text = format!("fst . loopWhile (({condition}) . bimap snd id) ({step}) . {start}");
        let term = term(&text, &[("x", "[100]f32"), ("steps", "i32")]);
        let program = lower(&term, &SizeEnv::default(), &options()).expect("lowers");
        let is_launch = |c: &&Control| matches!(c, Control::Launch(_));
        let before = program.control.iter().take_while(|c| !is_launch(c)).cloned().collect();
        (program, before)
    }

    #[test]
    fn the_last_state_of_a_counted_loop_is_the_result() {
        for (condition, exchanges) in [
            ("\\(i, n) -> i < n", 2),
            ("\\(i, n) -> i < 4", 1),
            ("\\(i, n) -> i < 5", 0),
            ("\\(i, n) -> i < 0", 1),
        ] {
            let (program, before) = looped(condition);
            // One copies the input, the other is the step.
            assert_eq!(program.kernels.len(), 2, "{condition}");
            let swaps: Vec<_> = program
                .control
                .iter()
                .filter_map(|c| match c {
                    Control::Swap(a, b) => Some([*a, *b]),
                    _ => None,
                })
                .collect();
            assert_eq!(swaps.len(), exchanges + 1, "{condition}");
            let is_result = |b: &usize| matches!(program.buffers[*b].role, BufferRole::Output(_));
            assert!(swaps.iter().all(|s| s.iter().any(is_result)), "{condition}");
            let before = before.iter().filter(|c| matches!(c, Control::Swap(..))).count();
            assert_eq!(before, exchanges, "{condition}");
        }
        // Nobody knows how many steps it has.
        let (program, before) = looped("\\(i, n) -> i != n");
        assert_eq!((before.len(), program.kernels.len() > 2), (0, true));
    }
}
