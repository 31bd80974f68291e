//! Executes the steps of the host of a prepared plan.
//!
//! Where a check ends a loop, a host that waits for the check leaves the device idle. A plan for a GPU has a buffer of
//! [`Role::GoesOn`]: kernels in such loops do nothing once it says that the loop has ended. So several iterations are launched at a
//! time. After each check, a kernel of one work-item updates the buffer, which also counts the checks that were passed. When the host
//! reads the count, it goes back to what it knew at the check that ended the loop: which buffers had been exchanged.

use super::error::driver;
use super::prepared::Prepared;
use super::{Built, Bytes, Runtime};
use crate::device::DeviceKind;
use crate::diag::Result;
use crate::opencl::plan::{Arg, Control, Launch, Role};
use opencl3::kernel::Kernel;
use opencl3::memory::ClMem;
use std::borrow::Borrow;
use std::mem;

/// Contents of a buffer of [`Role::GoesOn`] before a loop: 1 and 0, as the device stores integers.
pub(super) const BEFORE_LOOP: [u8; 8] = [1, 0, 0, 0, 0, 0, 0, 0];

/// Iterations of a loop that are launched at first before a check is read.
const AT_FIRST: usize = 2;

/// How many launches take about as long as reading a check. Estimated from the times of loops on an H200, where a launch takes
/// 4.4 us; not measured by itself.
const LAUNCHES_OF_READ: usize = 6;

/// Returns the most iterations that are launched ahead on a device. The work of those that are too many is a launch
/// that does nothing. On a CPU, that takes as long as waiting.
pub(super) fn iterations_ahead(kind: DeviceKind) -> usize {
    match kind {
        DeviceKind::Gpu => 16,
        DeviceKind::Cpu | DeviceKind::Other => 1,
    }
}

/// Updates the buffer of [`Role::GoesOn`] after a check.
const STEP: &str = "
kernel void count_check(global const uchar* flag, global int* goes_on) {
    if (*flag == 0) goes_on[0] = 0;
    goes_on[1] += goes_on[0];
}
";

/// What is launched.
pub(super) enum What<'a> {
    /// The launch of this number in the plan.
    Kernel(usize),
    /// The kernel that updates the buffer of [`Role::GoesOn`]: one work-item.
    Step(&'a Kernel),
}

/// A loop of the host that runs.
struct Loop {
    /// The step at which its body begins.
    begin: usize,
    /// The iterations left, if they are counted.
    left: Option<u64>,
    /// The number of the current iteration.
    number: i32,
    /// The checks that were not read yet, if they need not be read at once.
    ahead: Option<Ahead>,
}

/// Checks that were not read yet.
struct Ahead {
    /// The checks that were passed before.
    passed: usize,
    /// How many are read at a time.
    batch: usize,
    /// Launches of an iteration, with that of the kernel that counts.
    launches: usize,
    /// For each, the step after it, and the buffer in each place.
    unread: Vec<(usize, Vec<usize>)>,
}

impl Ahead {
    /// Returns what a loop with this body begins with. `None` if it has a loop with checks inside, which would use the same buffer.
    fn of(body: &[Control]) -> Option<Ahead> {
        let launches = 1 + body.iter().filter(|step| matches!(step, Control::Launch(_))).count();
        let alone = !body.contains(&Control::Repeat(None));
        alone.then(|| Ahead { passed: 0, batch: AT_FIRST, launches, unread: vec![] })
    }

    /// Launches the kernel that counts the last of the unread checks, and reads the count if it is time. Returns the check that ended
    /// the loop, as it is in [`Ahead::unread`]; `None` as far as the loop goes on.
    fn check(
        &mut self,
        rt: &Runtime,
        flag: &Bytes,
        goes_on: &Bytes,
        launch: &mut dyn FnMut(What<'_>, bool) -> Result<()>,
    ) -> Result<Option<(usize, Vec<usize>)>> {
        let kernel = rt.step_kernel()?;
        for (i, buffer) in [(0, flag), (1, goes_on)] {
            // SAFETY: the argument is a `cl_mem`, kept alive in `Prepared::buffers`.
            unsafe { kernel.set_arg(i, &buffer.get()) }
                .map_err(|e| driver(e, "checking a loop"))?;
        }
        let reads = self.unread.len() >= self.batch;
        launch(What::Step(kernel), reads)?;
        if !reads {
            return Ok(None);
        }
        let mut words = [0u8; BEFORE_LOOP.len()];
        rt.read(goes_on, &mut words)?;
        let count = i32::from_ne_bytes([words[4], words[5], words[6], words[7]]);
        let passed = usize::try_from(count).unwrap_or(0);
        let new = passed.saturating_sub(self.passed);
        let ended = mem::take(&mut self.unread).into_iter().nth(new);
        self.pass(passed, rt.iterations_ahead);
        if ended.is_some() {
            rt.write(goes_on, &BEFORE_LOOP)?;
        }
        Ok(ended)
    }

    /// Takes the number of checks that were passed in all, and chooses how many are read at a time. If a loop ends after `n`
    /// more iterations, `b` at a time take `n / b` reads and `b / 2` iterations too many. Their sum is least for `b` as below; a loop is
    /// expected to go on as long as it has gone.
    fn pass(&mut self, passed: usize, most: usize) {
        self.passed = passed;
        let best = (2 * passed * LAUNCHES_OF_READ / self.launches).isqrt();
        self.batch = best.clamp(AT_FIRST, most.max(AT_FIRST));
    }
}

impl<B: Borrow<Built>> Prepared<B> {
    /// Executes the steps of the host; calls `launch` for each kernel that has work-items, and says whether it may be the last.
    pub(super) fn walk(
        &self,
        rt: &Runtime,
        launch: &mut dyn FnMut(What<'_>, bool) -> Result<()>,
    ) -> Result<()> {
        // The buffer in each place, since steps may swap buffers.
        let mut place: Vec<usize> = (0..self.buffers.len()).collect();
        let mut swapped = false;
        let mut open: Vec<Loop> = vec![];
        let goes_on = self.plan().buffers.iter().position(|b| b.role == Role::GoesOn);
        let goes_on = goes_on.filter(|_| rt.iterations_ahead > 1).map(|b| &*self.buffers[b]);
        let mut at = 0;
        while let Some(step) = self.steps.get(at) {
            at += 1;
            match *step {
                Control::Launch(k) if !self.has_work(k) => {}
                Control::Launch(k) => {
                    let (l, kernel) = (&self.plan().launches[k], &self.built().kernels[k]);
                    if swapped || !open.is_empty() {
                        self.bind(l, kernel, &place, &open)?;
                    }
                    launch(What::Kernel(k), self.may_be_last(at, &open))?;
                }
                Control::Repeat(Some(0)) => at = self.end_of(at),
                Control::Repeat(left) => {
                    let ahead = goes_on.filter(|_| left.is_none());
                    let ahead = ahead.and_then(|_| Ahead::of(&self.steps[at..self.end_of(at)]));
                    open.push(Loop { begin: at, left, number: 0, ahead });
                }
                // `prepare` leaves none of these.
                Control::RepeatGiven { .. } => at = self.end_of(at),
                Control::Check(b) => {
                    let flag = &self.buffers[place[b]];
                    let ahead = open.last_mut().and_then(|l| l.ahead.as_mut());
                    let left = match (ahead, goes_on) {
                        (Some(ahead), Some(goes_on)) => {
                            ahead.unread.push((at, place.clone()));
                            ahead.check(rt, flag, goes_on, launch)?
                        }
                        _ => {
                            let mut value = [0u8; 1];
                            rt.read(flag, &mut value)?;
                            (value == [0]).then(|| (at, place.clone()))
                        }
                    };
                    if let Some((of_check, then)) = left {
                        place = then;
                        open.pop();
                        at = self.end_of(of_check);
                    }
                }
                Control::Swap(a, b) => {
                    place.swap(a, b);
                    swapped = true;
                }
                Control::End => {
                    if let Some(l) = open.last_mut() {
                        l.left = l.left.map(|n| n - 1);
                        l.number = l.number.wrapping_add(1);
                        if l.left == Some(0) {
                            open.pop();
                        } else {
                            at = l.begin;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns whether a launch has work-items.
    fn has_work(&self, k: usize) -> bool {
        !self.plan().launches[k].global.contains(&0)
    }

    /// Returns whether the launch before the step `at` may be the last: a check may end a loop, and a loop may be empty.
    fn may_be_last(&self, at: usize, open: &[Loop]) -> bool {
        let mut open = open.iter().rev();
        for step in self.steps.get(at..).unwrap_or_default() {
            match *step {
                Control::Launch(k) if self.has_work(k) => return false,
                Control::Launch(_) | Control::Swap(..) => {}
                // The kernel that updates the buffer follows.
                Control::Check(_) => return open.next().is_none_or(|l| l.ahead.is_none()),
                Control::Repeat(_) | Control::RepeatGiven { .. } => return true,
                Control::End => match open.next() {
                    Some(Loop { left: Some(1), .. }) => {}
                    Some(l) => return l.left.is_none() && l.ahead.is_none(),
                    None => return true,
                },
            }
        }
        true
    }

    /// Returns the position after the end of the loop that contains the step `at`.
    fn end_of(&self, mut at: usize) -> usize {
        let mut depth = 0usize;
        while let Some(step) = self.steps.get(at) {
            at += 1;
            match step {
                Control::Repeat(_) | Control::RepeatGiven { .. } => depth += 1,
                Control::End if depth == 0 => break,
                Control::End => depth -= 1,
                Control::Launch(_) | Control::Check(_) | Control::Swap(..) => {}
            }
        }
        at
    }

    /// Sets the arguments that change between iterations: swapped buffers, and counters.
    fn bind(&self, launch: &Launch, kernel: &Kernel, place: &[usize], open: &[Loop]) -> Result<()> {
        for (i, arg) in (0u32..).zip(&launch.args) {
            match *arg {
                Arg::Buffer(b) => {
                    // SAFETY: the argument is a `cl_mem`, kept alive in `Prepared::buffers`.
                    unsafe { kernel.set_arg(i, &self.buffers[place[b]].get()) }
                }
                Arg::Counter(depth) => {
                    let number = open.get(depth).map_or(0, |l| l.number);
                    // SAFETY: the value has the size of the kernel's `int`; its bytes are copied.
                    unsafe { kernel.set_arg(i, &number) }
                }
                Arg::Scalar(_) => continue,
            }
            .map_err(|e| driver(e, &format!("argument {i} of the kernel `{}`", launch.kernel)))?;
        }
        Ok(())
    }
}

impl Runtime {
    /// Returns the kernel that updates a buffer of [`Role::GoesOn`].
    fn step_kernel(&self) -> Result<&Kernel> {
        if self.step.get().is_none() {
            let program = self.compile(STEP, "-cl-std=CL1.2")?;
            let kernel = Kernel::create(&program, "count_check")
                .map_err(|e| driver(e, "looking up the kernel `count_check`"))?;
            drop(self.step.set((kernel, program)));
        }
        let unset = || super::prepared::internal("a kernel vanished".to_owned());
        Ok(self.step.get().map(|(kernel, _)| kernel).ok_or_else(unset)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_iterations_are_launched_the_longer_a_loop_goes_on() {
        let batches = |launches| {
            let mut ahead = Ahead { passed: 0, batch: AT_FIRST, launches, unread: vec![] };
            [0, 2, 14, 80, 1000].map(|passed| {
                ahead.pass(passed, 16);
                ahead.batch
            })
        };
        assert_eq!(batches(3), [2, 2, 7, 16, 16]);
        assert_eq!(batches(10), [2, 2, 4, 9, 16]);
    }
}
