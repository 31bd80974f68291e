//! Measures the costs of execution: launches, work-groups, work-items, loop iterations, barriers, atomics.

use super::Bench;
use super::lab::{Reading, Trial};
use crate::device::cost_model::LOOP_ITEMS;
use crate::diag::Result;
use crate::opencl::probe::{Count, Fleet, execution as probe};

/// Launches in a sequence.
const LAUNCHES: usize = 8;

/// Iterations of a kernel that runs longer than its driver needs to launch the next one.
const BUSY: Count = Count::power(13);

pub fn measure(b: &mut Bench) -> Result<()> {
    starting(b)?;
    let x = &b.model.execution;
    let (resident, units) = (x.items_per_compute_unit as f64, b.units() as f64);
    b.model.execution.groups_to_saturate = b.units() as u64;
    b.record.told("execution.groups_to_saturate", "work-groups", units, "compute units");
    b.record.kept(
        "execution.items_per_compute_unit",
        "work-items",
        resident,
        "OpenCL does not say",
    );
    loops(b)?;
    barriers(b)?;
    atomics(b)
}

fn starting(b: &mut Bench) -> Result<()> {
    let one = Fleet { groups: 1, group: 1 };
    let most = b.info.max_work_group_size;
    let (many, few) = if b.across() {
        (
            Fleet { groups: 1 << 18, group: 32.min(most) },
            Fleet { groups: 1 << 15, group: 256.min(most) },
        )
    } else {
        (Fleet { groups: 1 << 16, group: 1 }, Fleet { groups: 1 << 12, group: 1024.min(most) })
    };
    launching(b, one)?;
    let trials = [
        Trial::fixed(probe::launches(one, 1)),
        Trial::fixed(probe::launches(many, 1)),
        Trial::fixed(probe::launches(few, 1)),
    ];
    let answers = b.lab.compare(&trials)?;
    let [single, many_groups, few_groups] = &answers[..] else { return Ok(()) };
    let across = b.across();
    let (r, x) = (&mut b.record, &mut b.model.execution);
    if let Ok(s) = single {
        r.measured(
            "observed.single_launch",
            "us",
            s.ns / 1e3,
            s.spread,
            "one empty kernel by itself",
        );
    }
    // Two equations, one for each shape: time = launch + groups * a + items * b.
    let start = single.as_ref().map_or(0.0, |s| s.ns);
    // On a CPU the costs are those of one compute unit: the estimate divides by the number of busy units.
    let units = if across { 1.0 } else { f64::from(b.info.compute_units.max(1)) };
    let solved = |many_groups: &Reading, few_groups: &Reading| -> (f64, f64) {
        let (t, u) = ((many_groups.ns - start).max(0.0), (few_groups.ns - start).max(0.0));
        let (g, n) = (many.groups as f64, many.items() as f64);
        let (h, m) = (few.groups as f64, few.items() as f64);
        let det = g * m - h * n;
        ((t * m - u * n) / det * units, (g * u - h * t) / det * units)
    };
    let both = match (many_groups, few_groups) {
        (Ok(a), Ok(b)) => Ok((solved(a, b), a.spread.max(b.spread))),
        (Err(why), _) | (_, Err(why)) => Err(why.clone()),
    };
    let how = format!(
        "the difference in time between an empty kernel of {} groups of {} and one of {} groups of {}",
        many.groups, many.group, few.groups, few.group
    );
    let whose = if across { ", of the whole device" } else { ", of one compute unit" };
    let mut set = |key: &str, old: f64, value: Option<f64>| match (value, &both) {
        (Some(v), Ok((_, spread))) if v > 0.0 && v.is_finite() => {
            r.measured(key, "ns", v, *spread, format!("{how}{whose}"))
        }
        (_, Err(why)) => r.kept(key, "ns", old, why),
        _ => r.kept(key, "ns", old, "it is less than can be told from noise"),
    };
    let of = both.as_ref().ok().map(|(v, _)| *v);
    let (groups, items) = (x.work_group_overhead_ns, x.work_item_overhead_ns);
    x.work_group_overhead_ns = set("execution.work_group_overhead_ns", groups, of.map(|v| v.0));
    x.work_item_overhead_ns = set("execution.work_item_overhead_ns", items, of.map(|v| v.1));
    Ok(())
}

/// Measures the cost of a launch in a sequence: its time less its kernel's work. The kernels need some work, since the
/// host would bound a sequence of empty ones.
fn launching(b: &mut Bench, fleet: Fleet) -> Result<()> {
    let trials = [
        Trial::fixed(probe::sequence(fleet, BUSY, LAUNCHES)),
        Trial::fixed(probe::sequence(fleet, BUSY, 1)),
        Trial::fixed(probe::sequence(fleet, BUSY.doubled(1), 1)),
    ];
    let answers = b.lab.compare(&trials)?;
    let [sequence, once, twice] = &answers[..] else { return Ok(()) };
    let work = match (once, twice) {
        (Ok(once), Ok(twice)) => (twice.ns - once.ns).max(0.0),
        _ => f64::NAN,
    };
    let how = format!(
        "one of {LAUNCHES} launches in sequence, without its kernel's {:.1} us of work",
        work / 1e3
    );
    let old = b.model.execution.launch_us;
    let rest = |r: &Reading| (r.ns - work) / 1e3;
    b.model.execution.launch_us =
        b.record.answer(("execution.launch_us", "us"), old, sequence, rest, &how);
    Ok(())
}

fn loops(b: &mut Bench) -> Result<()> {
    // Just enough work-items to keep every unit busy.
    let fleet = if b.across() { b.fleet(LOOP_ITEMS) } else { Fleet { groups: 1, group: 1 } };
    let trial =
        |pairs| Trial::growing(Count::power(12), move |n| probe::iterations(fleet, pairs, n));
    let answers = b.lab.compare(&[trial(1), trial(2)])?;
    let [one, two] = &answers[..] else { return Ok(()) };
    let how = format!(
        "an iteration of a loop that is not unrolled, in each of {} work-items, without what it is about: what \
         remains of the time with two dependent integer operations, less what two more take",
        fleet.items()
    );
    let more = two.as_ref().map_or(f64::NAN, |r| r.ns);
    let old = b.model.compute.loop_overhead_ns;
    let each = |r: &Reading| (2.0 * r.ns - more) * fleet.items() as f64;
    b.model.compute.loop_overhead_ns =
        b.record.answer(("compute.loop_overhead_ns", "ns"), old, one, each, &how);
    Ok(())
}

fn barriers(b: &mut Bench) -> Result<()> {
    let group = 256.min(b.info.max_work_group_size);
    let groups = b.units() * if b.across() { 8 } else { 4 };
    let fleet = Fleet { groups, group };
    let trial = Trial::growing(Count::power(4), |n| probe::barriers(fleet, n));
    let answer = b.lab.measure(trial)?;
    let how = format!(
        "a barrier between a store to local memory and a load from it, for each work-item of {groups} groups of {group}"
    );
    let old = b.model.execution.barrier_item_ns;
    b.model.execution.barrier_item_ns =
        b.record.answer(("execution.barrier_item_ns", "ns"), old, &answer, |r| r.ns, &how);
    Ok(())
}

fn atomics(b: &mut Bench) -> Result<()> {
    let fleet = b.fleet(if b.across() { 1024 } else { 64 });
    let trial = |one| Trial::growing(Count::power(2), move |n| probe::atomics(fleet, one, n));
    let answers = b.lab.compare(&[trial(true), trial(false)])?;
    let names = [
        ("observed.atomic_add_one_place", "to one place"),
        ("observed.atomic_add_own_place", "each to its own place"),
    ];
    for ((key, which), answer) in names.into_iter().zip(answers) {
        if let Ok(r) = answer {
            let how = format!(
                "an atomic addition to global memory, {} work-items {which}",
                fleet.items()
            );
            b.record.measured(key, "ns of the whole device", r.ns, r.spread, how);
        }
    }
    Ok(())
}
