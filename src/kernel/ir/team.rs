//! How resident work-groups, a team, run a kernel as one phase of a loop.
//!
//! The team is one-dimensional. Kernels without barriers and local memory are a number of work-items, which the work-items of the
//! team share out, whatever the kernel's work-groups are. Of other kernels, each work-group of the team runs whole work-groups, one after the
//! other. If the team's work-groups are larger, the work-items that are too many do what the last one of the kernel does, but for stores.

use super::{Expr, Kernel, Program, Scope, Stmt, Team, WARP};
use crate::kernel::options::DeviceLimits;
use std::ops::Range;

/// What a team shares out of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shares {
    /// This many work-items.
    Items(usize),
    /// Work-groups of this many work-items.
    Groups {
        /// Number of work-groups.
        groups: usize,
        /// Work-items of each.
        items: usize,
    },
}

/// What the work-items of a group do together.
#[derive(Default)]
struct Together {
    /// Whether they meet, or share memory.
    meet: bool,
    /// Whether those of a warp do something together.
    warps: bool,
    /// Whether a work-item that does not store could go another way than the others.
    stores_matter: bool,
}

impl Together {
    fn of(k: &Kernel) -> Together {
        let mut out =
            Together { meet: !k.locals.is_empty(), warps: k.warp > 0, stores_matter: false };
        for s in &k.body {
            s.visit(&mut |s| {
                match s {
                    Stmt::Barrier { scope, .. } => {
                        out.meet = true;
                        out.warps |= *scope == Scope::Warp;
                    }
                    Stmt::Atomic(..) | Stmt::While(..) => out.stores_matter = true,
                    _ => {}
                }
                s.exprs(&mut |e| {
                    e.visit(&mut |e| out.warps |= matches!(e, Expr::Products(..)));
                });
            });
        }
        out.meet |= out.warps;
        out
    }
}

/// Returns what a team shares out of a kernel.
pub fn shares(k: &Kernel) -> Shares {
    let items = k.group.iter().product::<usize>().max(1);
    let all = k.global.iter().fold(1usize, |a, n| a.saturating_mul(*n));
    match Together::of(k).meet {
        true => Shares::Groups { groups: all / items, items },
        false => Shares::Items(all),
    }
}

/// Whether work-groups of this many work-items can run those of the kernel.
fn can_run(k: &Kernel, team_items: usize) -> bool {
    let Shares::Groups { items, .. } = shares(k) else { return true };
    let of = Together::of(k);
    let warps = usize::try_from(WARP).is_ok_and(|w| items.is_multiple_of(w));
    items == team_items || items < team_items && !of.stores_matter && (!of.warps || warps)
}

/// Returns the local memory that phases take together, in bytes.
fn local_bytes(p: &Program, steps: Range<usize>) -> usize {
    p.phases(steps).map(|k| p.kernels[k].local_bytes()).fold(0, usize::saturating_add)
}

/// Whether a team on this device can run a loop: the steps from its first one to its end.
pub fn can_run_loop(p: &Program, steps: Range<usize>, team: Team, device: &DeviceLimits) -> bool {
    let most = device.max_work_group_size.min(device.max_item_sizes[0]);
    (1..=device.resident_groups.max(1)).contains(&team.groups)
        && (1..=most).contains(&team.items)
        && local_bytes(p, steps.clone()) <= device.local_mem_bytes
        && p.phases(steps).all(|k| can_run(&p.kernels[k], team.items))
}
