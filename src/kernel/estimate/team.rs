//! Estimates loops that a team of resident work-groups runs in one launch.

use super::features::{Access, KernelProfile};
use super::kernel;
use crate::device::cost_model::CostModel;
use crate::kernel::ir::Team;
use crate::kernel::ir::team::Shares;

/// Returns the time of the launch in microseconds, and what bounds it. Each phase comes with the number of times that it runs.
pub(super) fn predicted<'a>(
    team: Team,
    phases: impl Iterator<Item = (&'a KernelProfile, f64)>,
    m: &CostModel,
) -> (f64, String) {
    let launch = m.execution.launch_us;
    let meeting = meeting_us(team, m);
    let (mut us, mut meetings) = (launch, 0.0);
    let (mut slowest, mut bound) = (0.0, String::new());
    for (k, times) in phases {
        let (alone, of) = kernel(&phase(k, team), m);
        let own = times * (alone - launch).max(0.0);
        meetings += times * meeting;
        us += own + times * meeting;
        if own >= slowest {
            (slowest, bound) = (own, of);
        }
    }
    if meetings > slowest {
        bound = format!("barriers of all work-groups, {:.0}% of the time", 100.0 * meetings / us);
    }
    (us, bound)
}

/// The time of a barrier of the team. One work-group meets within its compute unit, and what it has stored is in a cache.
fn meeting_us(team: Team, m: &CostModel) -> f64 {
    let near = m.memory.cache.get(1).or(m.memory.cache.first()).and_then(|c| c.latency_ns);
    let one = near.unwrap_or(m.memory.latency_ns) / 1e3;
    match team.groups {
        1 => one,
        _ => m.execution.meeting_us.unwrap_or(m.execution.launch_us),
    }
}

/// Returns the features of a kernel as the team runs it: with fewer work-groups, of which each does more.
fn phase(k: &KernelProfile, team: Team) -> KernelProfile {
    let whole = |n: usize| n as f64;
    let (groups, group_size, turns) = match k.shares {
        Some(Shares::Items(n)) => {
            let parts = n.div_ceil(team.items.max(1));
            let groups = parts.min(team.groups).max(1);
            (groups, team.items.min(n), parts.div_ceil(groups))
        }
        Some(Shares::Groups { groups: all, items }) => {
            let groups = all.min(team.groups).max(1);
            (groups, items, all.div_ceil(groups))
        }
        None => return k.clone(),
    };
    let turns = whole(turns.max(1));
    let longer = |a: &Access| Access {
        group_footprint: (turns * a.group_footprint).min(a.footprint),
        item_footprint: (turns * a.item_footprint).min(a.footprint),
        ..a.clone()
    };
    KernelProfile {
        groups: whole(groups),
        group_size,
        barriers: turns * k.barriers,
        stalls: turns * k.stalls,
        path: k.path.map(|p| turns * p),
        accesses: k.accesses.iter().map(longer).collect(),
        ..k.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{access, model};
    use super::*;
    use crate::kernel::ir::Mem;

    /// The time of 100 steps of two kernels of so many work-items, by the host and by a team of so many work-groups.
    fn us(items: usize, groups: usize) -> (f64, f64) {
        let m = model("nvidia-h200");
        let count = items as f64;
        let k = KernelProfile {
            groups: (count / 256.0).ceil(),
            group_size: 256,
            shares: Some(Shares::Items(items)),
            accesses: vec![
                access(Mem::Global(0), false, count),
                access(Mem::Global(1), true, count),
            ],
            ..KernelProfile::default()
        };
        let team = Team { groups, items: 1024 };
        (200.0 * kernel(&k, &m).0, predicted(team, [(&k, 100.0), (&k, 100.0)].into_iter(), &m).0)
    }

    #[test]
    fn one_work_group_is_enough_for_little_work() {
        let (host, one) = us(2048, 1);
        assert!(one < host / 4.0, "{one} {host}");
        let (host, one) = us(1 << 22, 1);
        assert!(one > host, "{one} {host}");
    }

    #[test]
    fn several_work_groups_do_more_and_meet_less_often() {
        let (host, several) = us(1 << 18, 132);
        assert!(several < us(1 << 18, 1).1 && several < host, "{several} {host}");
        assert!(us(2048, 1).1 < us(2048, 132).1);
    }
}
