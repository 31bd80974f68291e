//! The steps of the host in a plan, and what kernels need of the loops around them.

use crate::kernel::index::Var;
use crate::kernel::ir::{self, Kernel, Launched, Program, Times};
use crate::opencl::plan::Control;

/// Returns the steps of the host.
pub(super) fn steps(program: &Program) -> Vec<Control> {
    let launched = program.launched();
    let number = |wanted: &Launched| launched.iter().position(|l| l == wanted).unwrap_or(0);
    let step = |c: &ir::Control| match c {
        ir::Control::Launch(k) => Control::Launch(number(&Launched::Kernel(*k))),
        ir::Control::Repeat(Times::Known(n), _) => {
            Control::Repeat(Some(u64::try_from(*n).unwrap_or(0)))
        }
        ir::Control::Repeat(Times::Given { arg, plus, less }, _) => {
            Control::RepeatGiven { scalar: *arg, plus: *plus, less: *less }
        }
        ir::Control::While => Control::Repeat(None),
        ir::Control::Check(b) => Control::Check(*b),
        ir::Control::Swap(a, b) => Control::Swap(*a, *b),
        ir::Control::End | ir::Control::Together(_) => Control::End,
    };
    let mut out = vec![];
    let mut rest = 0..program.control.len();
    while let Some(at) = rest.next() {
        out.push(match &program.control[at] {
            // What follows is what the launch does.
            ir::Control::Together(team) => {
                let steps = at + 1..program.end_of_loop(at + 1);
                rest.start = steps.end;
                Control::Launch(number(&Launched::Loop(*team, steps)))
            }
            c => step(c),
        });
    }
    out
}

/// Returns the counters of the host's loops around a kernel, outermost first; `None` for a loop without a counter.
pub(super) fn counters(program: &Program, k: &Kernel) -> Vec<Option<Var>> {
    let mut open = vec![];
    for c in &program.control {
        match c {
            ir::Control::Launch(i) if program.kernels[*i].name == k.name => return open,
            ir::Control::Repeat(_, v) => open.push(Some(v.clone())),
            ir::Control::While => open.push(None),
            ir::Control::End => {
                open.pop();
            }
            ir::Control::Launch(_)
            | ir::Control::Check(_)
            | ir::Control::Swap(..)
            | ir::Control::Together(_) => {}
        }
    }
    vec![]
}

/// Name of the buffer that says whether the loop around a kernel goes on.
pub(super) const GOES_ON: &str = "goes_on";

/// Whether the host may launch iterations before it knows whether there are any.
pub(super) fn runs_ahead(program: &Program) -> bool {
    // A team needs no host to find out that a loop has ended.
    program.ahead && steps(program).contains(&Control::Repeat(None))
}

/// Whether a kernel is launched in a loop that a check ends: one without a counter.
pub(super) fn is_checked(program: &Program, k: &Kernel) -> bool {
    counters(program, k).contains(&None)
}
