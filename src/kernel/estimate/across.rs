//! Devices where neighbouring work-items run together: warps that share transactions, and wait while others run.

use super::{Part, Parts, Share, bytes, is_global, operations, real, traffic, whole};
use crate::device::cost_model::{CostModel, LOOP_ITEMS};
use crate::kernel::ir::Mem;
use crate::kernel::profile::{Access, KernelProfile};

/// Warps that a compute unit runs side by side.
const SCHEDULERS: f64 = 4.0;

/// Work-groups that a compute unit holds at most, however small.
const GROUPS: f64 = 32.0;

/// Bytes that memory moves at least.
const SECTOR: f64 = 32.0;

/// Warps by which a scheduler is kept busy with arithmetic, and the power of their share that remains where there are
/// fewer: of a product in tiles of 128 by 128 on an H200, two reach five sixths of what four do.
const WARPS_IN_FLIGHT: f64 = 4.0;
const HIDING: f64 = 0.27;

/// Bytes of registers for addresses and what a compiler keeps, besides those that are declared.
const UNDECLARED: f64 = 160.0;

/// Bytes of registers of a compute unit.
const REGISTER_FILE: f64 = 262_144.0;

/// How many times sooner a load comes from what a unit has for itself than from what all have in common, where that was
/// not measured.
const SOONER: f64 = 7.0;

/// How a kernel's work-items lie on the device.
struct Spread {
    /// Work-items.
    items: f64,
    /// Work-items of a group.
    group: f64,
    /// Those of them that a warp has.
    lanes: f64,
    /// Compute units.
    units: f64,
    /// Groups that a unit holds at once, were there enough.
    per_unit: f64,
    /// Groups that it does hold, at most.
    here: f64,
    /// How often all units are filled with groups.
    rounds: f64,
    /// Share of the units that work, on average.
    busy: f64,
    /// Warps of a scheduler.
    warps: f64,
    /// Share of the lanes of all schedulers that arithmetic can use.
    used: f64,
}

impl Spread {
    fn of(k: &KernelProfile, m: &CostModel) -> Spread {
        let group = real(k.group_size).max(1.0);
        let warp = f64::from(m.compute.simd_width.max(1));
        let units = whole(m.execution.groups_to_saturate).max(1.0);
        let per_unit = resident(k, m);
        let slots = units * per_unit;
        let rounds = (k.groups / slots).ceil().max(1.0);
        let most = (k.groups / units).ceil();
        // Whole rounds of groups: the last one leaves units idle.
        let (busy, here) = match k.groups > slots {
            true => (k.groups / (rounds * slots), per_unit),
            false => (k.groups / (most * units), most),
        };
        // Arithmetic ends with the scheduler that has most warps. Work-items that a group does not have are lanes that do
        // nothing.
        let warps = here * (group / warp).ceil() / SCHEDULERS;
        let even = warps / warps.ceil() * (warps / WARPS_IN_FLIGHT).min(1.0).powf(HIDING);
        let lanes_used = group / ((group / warp).ceil() * warp);
        Spread {
            items: k.groups * group,
            group,
            lanes: group.min(warp),
            units,
            per_unit,
            here,
            rounds,
            busy: busy.max(1e-6),
            warps,
            used: (busy * even * lanes_used).max(1e-6),
        }
    }
}

/// Groups of the kernel that one compute unit holds at once.
fn resident(k: &KernelProfile, m: &CostModel) -> f64 {
    // In whole warps.
    let group = real(k.group_size.next_multiple_of(m.compute.simd_width.max(1) as usize).max(1));
    let mut n = (whole(m.execution.items_per_compute_unit) / group).floor().max(1.0);
    if k.local_bytes > 0 && m.local.bytes_per_compute_unit > 0 {
        let fit = whole(m.local.bytes_per_compute_unit) / real(k.local_bytes);
        n = n.min(fit.floor().max(1.0));
    }
    // Registers: of 4 bytes, some for addresses besides those that are declared.
    let most = whole(m.compute.register_bytes_per_item);
    let registers = (real(k.register_bytes) + UNDECLARED).min(most.max(UNDECLARED));
    n.min((REGISTER_FILE / registers / group).floor().max(1.0)).min(GROUPS)
}

/// What serves loads.
struct Levels {
    /// Bytes that a unit has for itself.
    near_bytes: f64,
    /// Its bandwidth, of all units.
    near: f64,
    /// Bandwidth of what all units have in common.
    common: f64,
    /// Whether that holds all that the kernel touches, from the run before.
    fits: bool,
    /// Nanoseconds of a work-item for one of several loads that do not wait for each other, when it comes from the unit,
    /// from what all have in common, and from memory.
    waits: [f64; 3],
}

impl Levels {
    fn of(k: &KernelProfile, m: &CostModel, units: f64) -> Levels {
        let read = m.memory.read_gb_per_s;
        let (near, common) = (m.memory.cache.first(), m.memory.cache.get(1));
        let latency = |c: Option<&crate::device::cost_model::Cache>| c.and_then(|c| c.latency_ns);
        let sooner = match (latency(near), latency(common)) {
            (Some(near), Some(common)) => common / near,
            _ => SOONER,
        };
        // As many loads as go into the bandwidth in the time of one: they come out one by one.
        let far = whole(m.execution.items_to_saturate) * 4.0 / read;
        let shared = m.memory.load_ns;
        Levels {
            near_bytes: near.map_or(0.0, |c| whole(c.bytes)) / units,
            near: near.map_or(read, |c| c.gb_per_s),
            common: common.map_or(read, |c| c.gb_per_s).max(read),
            fits: m.memory.cache.last().is_some_and(|c| traffic(k) <= whole(c.bytes)),
            waits: [shared / sooner, shared, far.max(shared)],
        }
    }
}

/// What an access to global memory comes to, over all work-items.
struct Moved {
    /// Bytes of lines that warps ask for.
    asked: f64,
    /// Bytes that units have to get from elsewhere.
    common: f64,
    /// Bytes that come from memory or go there.
    far: f64,
    /// Nanoseconds that a work-item waits for loads.
    waiting: f64,
}

/// How warps go through memory by an access.
struct Pattern {
    /// Sectors and lines that a warp touches at once.
    sectors: f64,
    lines: f64,
    /// Whether neighbours, or the work-item itself in its next iterations, want the rest of a sector.
    beside: bool,
    next: bool,
    /// Bytes that come, for each that is ever wanted.
    waste: f64,
    /// Share of the loads that go to a sector that no earlier one of the work-item was to.
    new: f64,
}

impl Pattern {
    fn of(a: &Access, k: &KernelProfile, s: &Spread, m: &CostModel) -> Pattern {
        let wanted = bytes(a);
        let apart = |stride: Option<i64>| {
            #[expect(clippy::cast_precision_loss, reason = "an estimate")]
            stride.map(|s| s.unsigned_abs() as f64 * real(a.elem_bytes))
        };
        let (item, step) = (apart(a.item_stride), apart(a.loop_stride));
        let blocks = |unit: f64| match item {
            Some(0.0) => (wanted / unit).ceil(),
            Some(d) if d <= unit => (s.lanes * d.max(wanted) / unit).ceil(),
            _ => s.lanes * (wanted / unit).ceil(),
        };
        let beside = item.is_some_and(|d| d <= SECTOR);
        let next = step.is_some_and(|d| d != 0.0 && d <= SECTOR.max(wanted));
        // Of a loop that is written out: how many of its accesses share a sector.
        let streak = k.streaks.get(a.streak);
        let sector = (SECTOR as usize / a.elem_bytes.max(1)).max(1);
        let company = streak.map_or(1.0, |streak| {
            real(streak.places.len()) / real(streak.blocks(sector as i64).max(1))
        });
        let alone = (SECTOR / wanted / company).max(1.0);
        let waste = if beside || next { 1.0 } else { alone.min(m.memory.uncoalesced_penalty) };
        let within = next && (!beside || item == Some(0.0));
        let new = if within { (wanted / SECTOR).min(1.0) } else { 1.0 };
        Pattern {
            sectors: blocks(SECTOR),
            lines: blocks(whole(m.memory.line_bytes)),
            beside,
            next,
            waste,
            new: new.min(1.0 / company.max(1.0)),
        }
    }
}

/// What moves; `crowded` says that the lines that all work-items of a unit are at do not fit in what it has for itself.
fn moved(
    a: &Access,
    p: &Pattern,
    k: &KernelProfile,
    s: &Spread,
    l: &Levels,
    crowded: bool,
    line: f64,
) -> Moved {
    let wanted = a.count * bytes(a);
    let requests = a.count / s.lanes;
    // What each group wants anew; what all want may stay where it is.
    let anew = (k.groups * a.group_footprint).max(a.footprint).min(wanted);
    let same = a.group_footprint >= 0.99 * a.footprint;
    let kept = same && a.footprint * p.waste <= l.near_bytes;
    let all = requests * p.sectors * SECTOR;
    let common = if a.store {
        all
    } else if kept {
        (s.units * a.footprint).min(anew) * p.waste
    } else if crowded && p.next && !p.beside {
        all
    } else {
        anew * p.waste
    };
    let each = a.count / s.items;
    let again = crowded && p.next && !p.beside;
    let first = (a.item_footprint / (each * bytes(a))).min(1.0) * if again { 1.0 } else { p.new };
    let gone = if l.fits { 0.0 } else { (a.footprint / anew).min(1.0) };
    let [near, shared, far] = l.waits;
    let wait = (1.0 - first) * near + first * (gone * far + (1.0 - gone) * shared);
    Moved {
        asked: requests * p.lines * line,
        common,
        far: if l.fits { 0.0 } else { a.footprint * p.waste },
        waiting: if a.store { 0.0 } else { each * wait },
    }
}

/// What the kernel takes.
pub(super) fn parts(k: &KernelProfile, m: &CostModel) -> Parts {
    let x = &m.execution;
    let s = Spread::of(k, m);
    let l = Levels::of(k, m, s.units);
    let line = whole(m.memory.line_bytes);
    let global: Vec<(&Access, Pattern)> =
        k.accesses.iter().filter(|a| is_global(a)).map(|a| (a, Pattern::of(a, k, &s, m))).collect();
    let lines: f64 = global.iter().map(|(_, p)| p.lines).sum();
    let crowded = s.here * (s.group / s.lanes).ceil() * lines * line > l.near_bytes;
    let [mut read, mut written, mut common, mut near, mut local] = [Share::default(); 5];
    let mut waiting = 0.0;
    for (a, p) in &global {
        let moved = moved(a, p, k, &s, &l, crowded, line);
        near.add(moved.asked, moved.asked / l.near);
        common.add(moved.common, moved.common / l.common);
        match a.store {
            true => written.add(moved.far, moved.far / m.memory.write_gb_per_s),
            false => read.add(moved.far, moved.far / m.memory.read_gb_per_s),
        }
        waiting += moved.waiting;
    }
    for a in k.accesses.iter().filter(|a| !is_global(a)) {
        let bytes = a.count * bytes(a);
        local.add(bytes, bytes * conflicts(a, m) / m.local.gb_per_s);
    }
    let waiting = s.rounds * waiting;
    let (mut floats, mut integers) = (Share::default(), Share::default());
    for ((kind, width, bytes, _), count) in &k.ops {
        let o = operations(*kind, real(*width), *bytes, *count, m);
        if o.integer { &mut integers } else { &mut floats }.add(o.work, o.work / o.rate);
    }
    // Where there are few warps, arithmetic has to wait for what they wait for.
    let exposed = waiting * (1.0 - (s.warps / WARPS_IN_FLIGHT).min(1.0));
    let looping = s.items.min(s.units * s.per_unit * s.group).min(s.units * real(LOOP_ITEMS));
    let loops = k.iterations * m.loop_ns() / looping.max(1.0);
    let arithmetic = (floats.ns + integers.ns) / s.used + loops + exposed;
    let memory = read.ns + written.ns;
    let starting = k.groups * x.work_group_overhead_ns + s.items * x.work_item_overhead_ns;
    let barriers = k.barriers * s.items * x.barrier_item_ns;
    // While a group waits for a block, the others of its unit go on.
    let company = (k.groups / s.units).min(s.per_unit).max(1.0);
    let turns = (k.groups / (s.units * company)).ceil();
    let stalls = turns * k.stalls * round_trip(traffic(k), m) / company;
    let all = Share { work: read.work + written.work, ns: memory };
    let (what, peak) = match read.ns >= written.ns {
        true => ("global reads", m.memory.read_gb_per_s),
        false => ("global writes", m.memory.copy_gb_per_s),
    };
    let parts = [loops, exposed, floats.ns / s.used, integers.ns / s.used];
    let most = parts.iter().copied().fold(0.0, f64::max);
    let computing = if most == loops {
        Part::time("loop overhead", arithmetic)
    } else if most == exposed {
        Part::time("the latency of one work-item's loads", arithmetic)
    } else if integers.ns > floats.ns {
        let all = Share { ns: arithmetic, ..integers };
        Part::rate("integer arithmetic", all, m.compute.integer_gops, "op/s")
    } else {
        Part::rate("arithmetic", Share { ns: arithmetic, ..floats }, m.compute.f32_gflops, "FLOP/s")
    };
    Parts {
        overlapping: vec![
            Part::rate(what, all, peak, "B/s"),
            Part::rate("traffic between units", common.times(1.0 / s.busy), l.common, "B/s"),
            Part::rate("loads and stores of a unit", near.times(1.0 / s.busy), l.near, "B/s"),
            Part::rate("local memory", local.times(1.0 / s.busy), m.local.gb_per_s, "B/s"),
            Part::time("the latency of one work-item's loads", waiting),
            computing,
            Part::time("starting work-groups", starting),
        ],
        alone: vec![
            Part::time("barriers", barriers),
            Part::time("waiting for what is copied to local memory", stalls),
        ],
    }
}

/// Nanoseconds that a load takes from where so many bytes lie.
fn round_trip(bytes: f64, m: &CostModel) -> f64 {
    let level = m.memory.cache.iter().find(|c| bytes <= whole(c.bytes));
    level.and_then(|c| c.latency_ns).unwrap_or(m.memory.latency_ns)
}

/// How many work-items of a warp wait for one bank of local memory.
fn conflicts(a: &Access, m: &CostModel) -> f64 {
    let banks = u64::from(m.local.banks);
    let words = (a.elem_bytes as u64).div_ceil(4);
    let stride = a.item_stride.map_or(0, i64::unsigned_abs) * words;
    if banks <= 1 || stride == 0 || !matches!(a.mem, Mem::Local(_)) {
        return 1.0;
    }
    // The greatest common divisor, as banks are a power of two; a vector is several words of one work-item anyhow.
    let same = 1 << stride.trailing_zeros().min(banks.ilog2());
    let waiting = whole(same) / whole(a.width as u64 * words);
    waiting.max(1.0)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{access, model};
    use super::*;

    #[test]
    fn work_items_wait_for_banks() {
        let mut m = model("generic-gpu");
        let at = |m: &CostModel, stride, width| {
            let local = access(Mem::Local(0), false, 1.0);
            conflicts(&Access { item_stride: stride, width, ..local }, m)
        };
        assert_eq!(at(&m, Some(32), 1), 1.0);
        m.local.banks = 32;
        for (stride, width, waiting) in [
            (0, 1, 1.0),
            (1, 1, 1.0),
            (2, 1, 2.0),
            (33, 1, 1.0),
            (64, 1, 32.0),
            (-8, 4, 2.0),
            (4, 4, 1.0),
        ] {
            assert_eq!(at(&m, Some(stride), width), waiting, "{stride} by {width}");
        }
        assert_eq!(at(&m, None, 1), 1.0);
    }

    #[test]
    fn a_round_trip_is_to_where_the_data_are() {
        let mut m = model("generic-gpu");
        assert_eq!(round_trip(1e3, &m), 300.0);
        m.memory.cache[1].latency_ns = Some(200.0);
        m.memory.latency_ns = 500.0;
        assert_eq!([1e3, 2e6, 1e9].map(|bytes| round_trip(bytes, &m)), [500.0, 200.0, 500.0]);
    }

    #[test]
    fn leaps_cost_what_a_warp_asks_for_and_only_few_sectors_are_new() {
        let m = model("generic-gpu");
        let k = KernelProfile { groups: 4096.0, group_size: 256, ..KernelProfile::default() };
        let s = Spread::of(&k, &m);
        let of = |item, step| {
            let a = Access {
                item_stride: Some(item),
                loop_stride: Some(step),
                ..access(Mem::Global(0), false, 1e6)
            };
            Pattern::of(&a, &k, &s, &m)
        };
        let near = of(1, 4096);
        assert_eq!((near.sectors, near.lines, near.waste, near.new), (4.0, 1.0, 1.0, 1.0));
        // Each work-item a row of its own: every lane another line, but the rest of it is wanted next.
        let rows = of(4096, 1);
        assert_eq!((rows.sectors, rows.lines, rows.waste, rows.new), (32.0, 32.0, 1.0, 0.125));
        // Nobody wants the rest.
        let apart = of(4096, 4096);
        assert_eq!((apart.lines, apart.waste, apart.new), (32.0, 8.0, 1.0));
        // All read one place.
        let one = of(0, 1);
        assert_eq!((one.sectors, one.lines, one.new), (1.0, 1.0, 0.125));
    }
}
