//! Loops of the host that one launch runs.
//!
//! A launch takes some microseconds, which is the time of a loop with many small kernels. A team of resident work-groups runs such a
//! loop in one launch: the kernels of a step are its phases, with a barrier of all work-items between them. One work-group can do
//! that on every device. Several need a device on which all of them go on while they wait for each other
//! ([`DeviceLimits::resident_groups`]).
//!
//! The kernels stay as they are, and so do the proofs about them: what was true of two launches is true of two phases. The loop is
//! marked ([`Control::Together`]); the printer makes one function of it.

use super::forward_copies::buffers;
use crate::kernel::ir::team::{Shares, can_run_loop, shares};
use crate::kernel::ir::{BufferRole, Control, Program, Team, Times};
use crate::kernel::options::DeviceLimits;
use crate::lang::types::ScalarType;
use std::collections::BTreeSet;
use std::ops::Range;

/// Fewest work-items of a group of several.
const LEAST: usize = 128;
/// Work-items of a kernel with barriers from which on the only group has no more.
const WIDE: usize = 256;
/// Most work-items of the only group on a device that does not run neighbouring work-items together.
const SERIAL: usize = 64;

/// Returns the steps of each outermost loop of the host.
pub fn loops(p: &Program) -> Vec<Range<usize>> {
    let (mut out, mut at) = (vec![], 0);
    while at < p.control.len() {
        if matches!(p.control[at], Control::Repeat(..) | Control::While) {
            let end = p.end_of_loop(at);
            out.push(at..end);
            at = end;
        } else {
            at += 1;
        }
    }
    out
}

/// Returns the team of at most so many work-groups that may run a loop, if there is one.
pub fn team(p: &Program, steps: &Range<usize>, most: usize, device: &DeviceLimits) -> Option<Team> {
    if most == 0 || !is_closed(p, steps) {
        return None;
    }
    let shared: Vec<Shares> = p.phases(steps.clone()).map(|k| shares(&p.kernels[k])).collect();
    let of_items = shared.iter().filter_map(|s| match s {
        Shares::Items(n) => Some(*n),
        Shares::Groups { .. } => None,
    });
    let apart = of_items.max().unwrap_or(0);
    let of_groups = shared.iter().filter_map(|s| match s {
        Shares::Groups { items, .. } => Some(*items),
        Shares::Items(_) => None,
    });
    let largest = of_groups.max().unwrap_or(1);
    let limit = device.max_work_group_size.min(device.max_item_sizes[0]);
    let wanted = match (most, device.access_bytes > 0) {
        (1, false) => apart.min(SERIAL),
        // Work-items that are too many for a kernel with barriers take part in all of its barriers.
        (1, true) if largest >= WIDE => largest,
        (1, true) => apart.next_multiple_of(32).min(limit),
        _ => apart.div_ceil(most).next_multiple_of(32).clamp(LEAST.min(limit), limit),
    };
    // Kernels whose work-items do more than meet take their own number alone.
    [wanted.max(largest), largest].into_iter().find_map(|items| {
        let parts = |s: &Shares| match s {
            Shares::Items(n) => n.div_ceil(items.max(1)),
            Shares::Groups { groups, .. } => *groups,
        };
        let groups = shared.iter().map(parts).max()?.clamp(1, most);
        let team = Team { groups, items };
        can_run_loop(p, steps.clone(), team, device).then_some(team)
    })
}

/// Marks a loop, of which the number is its place among the outermost ones, for a team of at most so many work-groups. Returns
/// false, and changes nothing, if there is no such team.
pub fn run(p: &mut Program, number: usize, most: usize, device: &DeviceLimits) -> bool {
    let Some(steps) = loops(p).get(number).cloned() else { return false };
    let Some(team) = team(p, &steps, most, device) else { return false };
    let after = if parity_is_known(p, &steps) { exchanges(p, &steps) } else { vec![] };
    p.control.splice(steps.end..steps.end, after);
    p.control.insert(steps.start, Control::Together(team));
    true
}

/// Whether a kernel can do all that the host does in a loop.
fn is_closed(p: &Program, steps: &Range<usize>) -> bool {
    let control = &p.control[steps.clone()];
    let few = matches!(control.first(), Some(Control::Repeat(Times::Known(..2), _)));
    let known = control.iter().all(|c| match c {
        Control::Repeat(Times::Given { arg, .. }, _) => p.scalars.get(*arg).is_some_and(|s| {
            s.scalar.is_integer() && s.scalar.bytes() <= 4 && s.scalar != ScalarType::Bool
        }),
        Control::Together(_) => false,
        _ => true,
    });
    let launches = control.iter().filter(|c| matches!(c, Control::Launch(_))).count();
    let done_after_check = control.iter().enumerate().all(|(at, c)| match c {
        // Another phase lies between the check and what decides the next one.
        Control::Check(_) => matches!(control.get(at + 1), Some(Control::Launch(_))),
        _ => true,
    });
    !few && known
        && launches > 0
        && done_after_check
        && (parity_is_known(p, steps) || states_return(p, steps))
}

/// Whether the host knows how often a loop exchanges buffers.
fn parity_is_known(p: &Program, steps: &Range<usize>) -> bool {
    let control = &p.control[steps.clone()];
    !control.contains(&Control::While) || !control.iter().any(|c| matches!(c, Control::Swap(..)))
}

/// Whether at most one of two buffers that are exchanged is needed after the loop.
fn states_return(p: &Program, steps: &Range<usize>) -> bool {
    let pairs = p.exchanged(steps.clone());
    let all: BTreeSet<usize> = pairs.iter().flat_map(|(a, b)| [*a, *b]).collect();
    all.len() == 2 * pairs.len()
        && pairs.iter().all(|(a, b)| !(is_needed(p, steps, *a) && is_needed(p, steps, *b)))
}

/// Whether anything outside of a loop needs what it leaves in a buffer.
fn is_needed(p: &Program, steps: &Range<usize>, buffer: usize) -> bool {
    let inside: BTreeSet<usize> = p.phases(steps.clone()).collect();
    let outside = |at: &usize| !steps.contains(at);
    let named = p.control.iter().enumerate().filter(|(at, _)| outside(at)).any(|(_, c)| match c {
        Control::Check(b) => *b == buffer,
        Control::Swap(a, b) => *a == buffer || *b == buffer,
        _ => false,
    });
    let reads = |(k, kernel)| !inside.contains(&k) && buffers(kernel, false).contains(&buffer);
    matches!(p.buffers[buffer].role, BufferRole::Output(_))
        || named
        || p.kernels.iter().enumerate().any(reads)
}

/// The steps by which the host exchanges buffers as often as a loop does.
fn exchanges(p: &Program, steps: &Range<usize>) -> Vec<Control> {
    let mut out: Vec<Control> = vec![];
    for c in &p.control[steps.clone()] {
        match c {
            Control::Launch(_) | Control::Check(_) | Control::Together(_) | Control::While => {}
            Control::End => match out.pop() {
                Some(Control::Repeat(..)) | None => {}
                Some(last) => out.extend([last, Control::End]),
            },
            c => out.push(c.clone()),
        }
    }
    let disjoint = p.exchanged(steps.clone());
    let all: BTreeSet<usize> = disjoint.iter().flat_map(|(a, b)| [*a, *b]).collect();
    // Two exchanges of the same pair are none.
    if let [Control::Repeat(Times::Known(n), _), body @ .., Control::End] = out.as_slice()
        && all.len() == 2 * disjoint.len()
        && body.iter().all(|c| matches!(c, Control::Swap(..)))
    {
        return if n % 2 == 0 { vec![] } else { body.to_vec() };
    }
    out
}
