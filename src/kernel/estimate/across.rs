//! Estimates kernels for devices that run neighbouring work-items together (GPUs): the work-items
//! of a warp share memory transactions, and a warp that waits is hidden behind others that run.

use super::count::LANES;
use super::critical_path::LATENCIES;
use super::features::{Access, KernelProfile, Streak, real};
use super::parts::{Part, Parts, Share, bytes, is_global, operations, traffic, whole};
use crate::device::cost_model::{CostModel, LOOP_ITEMS};
use crate::kernel::ir::Mem;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// Time that matrix units of a group are idle between two blocks, in latencies of an addition; fits products on an H200.
const IDLE: f64 = 67.0;

/// How the work-items of a kernel are distributed over the device.
struct Spread {
    /// Number of work-items.
    items: f64,
    /// Work-items of one group.
    group: f64,
    /// Work-items of a group that are in one warp.
    lanes: f64,
    /// Number of compute units.
    units: f64,
    /// Maximum number of groups that are resident on a unit at once.
    per_unit: f64,
    /// Number of groups that are resident on a unit, at most; less than `per_unit` if the kernel
    /// has too few groups.
    here: f64,
    /// How many times all units are filled with groups.
    rounds: f64,
    /// Average share of the units that work.
    busy: f64,
    /// Warps of each scheduler.
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
        // Groups run in whole rounds, and the last round leaves some units idle.
        let (busy, here) = match k.groups > slots {
            true => (k.groups / (rounds * slots), per_unit),
            false => (k.groups / (most * units), most),
        };
        // Arithmetic ends with the scheduler that has the most warps. If the group size is not a
        // multiple of the warp size, the remaining lanes are idle.
        let w = m.warps();
        let warps = here * (group / warp).ceil() / f64::from(w.at_once);
        let even = warps / warps.ceil() * (warps / w.in_flight).min(1.0).powf(w.hiding);
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

/// Returns the number of groups of the kernel that are resident on a compute unit at once (the
/// occupancy).
fn resident(k: &KernelProfile, m: &CostModel) -> f64 {
    // Groups occupy whole warps.
    let group = real(k.group_size.next_multiple_of(m.compute.simd_width.max(1) as usize).max(1));
    let mut n = (whole(m.execution.items_per_compute_unit) / group).floor().max(1.0);
    if k.local_bytes > 0 && m.local.bytes_per_compute_unit > 0 {
        let fit = whole(m.local.bytes_per_compute_unit) / real(k.local_bytes);
        n = n.min(fit.floor().max(1.0));
    }
    // Besides the declared registers, some are needed for addresses.
    let most = whole(m.compute.register_bytes_per_item);
    let w = m.warps();
    let undeclared = whole(w.undeclared_register_bytes);
    let registers = (real(k.register_bytes) + undeclared).min(most.max(undeclared));
    let fit = (whole(w.register_file_bytes) / registers / group).floor().max(1.0);
    n.min(fit).min(f64::from(w.groups_per_compute_unit) * real(k.side_by_side.max(1)))
}

/// The memory levels that serve loads.
struct Levels {
    /// Bytes of the cache of one unit.
    near_bytes: f64,
    /// Bytes of the last cache.
    last_bytes: f64,
    /// Bandwidth of the caches of all units together.
    near: f64,
    /// Bandwidth of the cache that all units share.
    common: f64,
    /// Whether the last cache holds all the bytes that the kernel touches. They are then still
    /// there from the previous run.
    fits: bool,
    /// Nanoseconds that one of several independent loads costs a work-item, if it is served by the
    /// cache of the unit, by the shared cache, and by memory.
    waits: [f64; 3],
}

impl Levels {
    fn of(k: &KernelProfile, m: &CostModel, units: f64) -> Levels {
        let read = m.memory.read_gb_per_s;
        let (near, common) = (m.memory.cache.first(), m.memory.cache.get(1));
        // Little's law: the bytes in flight that saturate memory, one 4-byte load from each of
        // `items_to_saturate` work-items, divided by the bandwidth.
        let far = whole(m.execution.items_to_saturate) * 4.0 / read;
        let shared = m.memory.load_ns;
        Levels {
            near_bytes: near.map_or(0.0, |c| whole(c.bytes)) / units,
            last_bytes: m.memory.cache.last().map_or(0.0, |c| whole(c.bytes)),
            near: near.map_or(read, |c| c.gb_per_s),
            common: common.map_or(read, |c| c.gb_per_s).max(read),
            fits: m.memory.cache.last().is_some_and(|c| traffic(k) <= whole(c.bytes)),
            waits: [shared / m.sooner(), shared, far.max(shared)],
        }
    }
}

/// Share of a cache that holds lines until all of their sectors are used. A cache of few ways loses lines before it is full.
const USABLE: f64 = 0.5;

/// Bytes of which the private arrays of a warp's work-items alternate.
const WORD: f64 = 4.0;

/// Bytes of registers that a compiler keeps for addresses where registers are scarce; it spills other values.
const ADDRESSES: f64 = 64.0;

/// Private arrays that are not in registers, and registers that a work-item of a large group does not have. Their elements are in memory,
/// those of a warp side by side, and in the caches as far as those of all resident work-items fit.
struct Spilled {
    arrays: BTreeSet<Mem>,
    /// Bytes of registers that each work-item stores and loads again.
    registers: f64,
    /// Share of the accesses that the cache of a unit does not serve.
    common: f64,
    /// Share of the accesses that no cache serves.
    far: f64,
    /// Nanoseconds of a load.
    latency: f64,
}

impl Spilled {
    fn of(k: &KernelProfile, m: &CostModel, s: &Spread, l: &Levels) -> Spilled {
        let most = whole(m.compute.register_bytes_per_item);
        let sizes = k.spilled(most);
        let share = whole(m.warps().register_file_bytes) / s.group;
        let own = share.min(most) - ADDRESSES;
        let over = |live: usize| (real(live) - own).max(0.0);
        // A large group has few registers for each work-item, and what is read seldom is not in registers. If a work-item of a small
        // group needs more than there can be, it goes through values that are all alike: each is loaded when it is read.
        let registers = match share < most {
            true => k.pressure.iter().map(|(live, times)| over(*live) * times).fold(0.0, f64::max),
            false => {
                k.reads.iter().map(|(live, read)| over(*live) / real(*live).max(1.0) * read).sum()
            }
        };
        let held = k.pressure.first().map_or(0.0, |(live, _)| over(*live));
        // An element of all work-items of a warp is a block of memory, of which a small group uses a part.
        let of_unit = |block: u64| {
            let together = whole(block) / WORD;
            s.here * (s.group / together).ceil() * together * (sizes.values().sum::<f64>() + held)
        };
        let all = of_unit(m.warps().sector_bytes) * s.units;
        let near = of_unit(m.memory.line_bytes);
        let beyond = |cache: f64, of: f64| if of > cache { 1.0 - cache / of } else { 0.0 };
        Spilled {
            common: beyond(l.near_bytes, near),
            far: beyond(l.last_bytes, all),
            latency: round_trip(&|level| if level == 0 { near * s.units } else { all }, m),
            arrays: sizes.into_keys().collect(),
            registers,
        }
    }
}

/// Data that an access to global memory moves, summed over all work-items.
struct Moved {
    /// Bytes of the lines that warps request.
    asked: f64,
    /// Bytes that units fetch from outside their own caches.
    common: f64,
    /// Bytes transferred from or to memory.
    far: f64,
    /// Bytes of lines of which a warp stores parts that do not lie side by side.
    pieces: f64,
    /// Nanoseconds that the busiest work-item of a group waits for its loads.
    waiting: f64,
}

/// What the accesses of a streak have in common, found once for all of them.
struct Streaks<'a> {
    all: &'a [Streak],
    /// By the streak, the scalars of a sector, and whether the accesses store.
    company: RefCell<FxHashMap<(usize, i64, bool), f64>>,
    /// By the streak, the width, the loops, and what a cache holds.
    distinct: RefCell<FxHashMap<(usize, usize, Loops, u64), f64>>,
}

/// The loops around an access, with the bits of their numbers of iterations.
type Loops = Vec<(i64, u64)>;

impl Streaks<'_> {
    fn of(k: &KernelProfile) -> Streaks<'_> {
        Streaks { all: &k.streaks, company: RefCell::default(), distinct: RefCell::default() }
    }

    /// Returns the average number of accesses of the streak that share a block of this many scalars.
    fn company(&self, a: &Access, scalars: i64) -> f64 {
        let Some(streak) = self.all.get(a.streak) else { return 1.0 };
        let mut known = self.company.borrow_mut();
        *known.entry((a.streak, scalars, a.store)).or_insert_with(|| {
            real(streak.different(a.store)) / real(streak.blocks(scalars).max(1))
        })
    }

    /// Returns the share of what the streak touches that is different: see [`Streak::distinct`].
    fn distinct(&self, a: &Access, of_group: bool, cache: f64) -> f64 {
        match self.all.get(a.streak) {
            // A single access has nothing in common with others.
            Some(streak) if !a.store && (a.width > 1 || streak.places.len() > 1) => {
                let most = cache / real(a.elem_bytes.max(1));
                let loops = a.loops(of_group, streak.step);
                let bits = loops.iter().map(|(stride, n)| (*stride, n.to_bits())).collect();
                let mut known = self.distinct.borrow_mut();
                let entry = known.entry((a.streak, a.width, bits, most.to_bits()));
                *entry.or_insert_with(|| streak.distinct(a.width, &loops, most))
            }
            _ => 1.0,
        }
    }
}

/// The pattern in which warps go through memory at an access.
struct Pattern {
    /// Sectors and lines that a warp touches at once.
    sectors: f64,
    lines: f64,
    /// Bytes of a sector.
    sector: f64,
    /// Whether the rest of a sector is used by neighbouring work-items.
    beside: bool,
    /// Bytes that are transferred for each byte that is used.
    waste: f64,
    /// Share of the work-item's loads that touch a sector for the first time.
    new: f64,
    /// Whether the work-item uses a sector in several accesses.
    in_parts: bool,
    /// Times that memory takes for a sector alone, against one of many side by side.
    lone: f64,
}

impl Pattern {
    fn of(a: &Access, streaks: &Streaks<'_>, s: &Spread, m: &CostModel) -> Pattern {
        let wanted = bytes(a);
        let sector = whole(m.warps().sector_bytes);
        let apart =
            |stride: Option<i64>| stride.map(|s| s.unsigned_abs() as f64 * real(a.elem_bytes));
        let (item, step) = (apart(a.item_stride), apart(a.loop_stride));
        let blocks_of = |unit: f64, wanted: f64| match item {
            _ if !a.lanes.is_empty() => {
                let scale = s.lanes / real(a.lanes.len());
                scale * real(touched(a, unit / real(a.elem_bytes.max(1))))
            }
            Some(0.0) => (wanted / unit).ceil(),
            Some(d) if d <= unit => (s.lanes * d.max(wanted) / unit).ceil(),
            _ => s.lanes * (wanted / unit).ceil(),
        };
        // A small table has few blocks, wherever data say that the work-items read it. The elements at multiples of a stride do not
        // lie beside each other.
        let anywhere = item.is_none() && a.lanes.is_empty();
        let blocks_of = |unit: f64, wanted: f64| match anywhere {
            true => blocks_of(unit, wanted).min((a.footprint / unit).max(wanted / unit).ceil()),
            false => blocks_of(unit, wanted),
        };
        let blocks = |unit: f64| blocks_of(unit, wanted);
        // A vector at any place is as many accesses as it has scalars.
        let line = whole(m.memory.line_bytes);
        let lines = match scalars(a) {
            1.0 => blocks(line),
            n => n * blocks_of(line, real(a.elem_bytes)),
        };
        let beside = match a.lanes.is_empty() {
            true => item.is_some_and(|d| d <= sector),
            // Neighbours use all of what is fetched, or the same.
            false => blocks(sector) * sector <= s.lanes * wanted,
        };
        let next = step.is_some_and(|d| d != 0.0 && d <= sector.max(wanted));
        // If the access belongs to an unrolled loop, the average number of its accesses that share
        // a sector.
        let elements = (m.warps().sector_bytes / a.elem_bytes.max(1) as u64).max(1);
        let company = streaks.company(a, elements.cast_signed());
        let alone = (sector / wanted / company).max(1.0);
        let waste = if beside || next { 1.0 } else { alone.min(m.memory.uncoalesced_penalty) };
        let within = next && (!beside || item == Some(0.0));
        let new = if within { (wanted / sector).min(1.0) } else { 1.0 };
        Pattern {
            sectors: blocks(sector),
            lines,
            sector,
            beside,
            waste,
            new: new.min(1.0 / company.max(1.0)),
            in_parts: next || company > 1.0,
            lone: (m.memory.uncoalesced_penalty * WORD / sector).max(1.0),
        }
    }
}

/// What caches cannot hold of the lines that the resident work-items are reading and writing at the moment.
struct Crowded {
    /// Whether the cache of a unit is too small. A sector of which a work-item uses a part at a time is then fetched for each part.
    unit: bool,
    /// Whether the last cache is too small. Such sectors then come from memory each time, each alone.
    device: bool,
}

impl Crowded {
    fn of(
        global: &[(&Access, Pattern)],
        k: &KernelProfile,
        s: &Spread,
        l: &Levels,
        m: &CostModel,
    ) -> Crowded {
        let line = whole(m.memory.line_bytes);
        let mut seen = BTreeSet::new();
        let lines: f64 = global
            .iter()
            .filter(|(a, _)| seen.insert(a.streak))
            .map(|(a, p)| {
                let scalars = (m.memory.line_bytes / a.elem_bytes.max(1) as u64).max(1);
                p.lines
                    * k.streaks
                        .get(a.streak)
                        .map_or(1.0, |streak| real(streak.blocks(scalars.cast_signed()).max(1)))
            })
            .sum();
        let bytes = s.here * (s.group / s.lanes).ceil() * lines * line;
        Crowded { unit: bytes > l.near_bytes, device: bytes * s.units > USABLE * l.last_bytes }
    }
}

/// Returns the data that an access moves.
fn moved(
    (a, p): &(&Access, Pattern),
    k: &KernelProfile,
    streaks: &Streaks<'_>,
    s: &Spread,
    l: &Levels,
    crowded: &Crowded,
    m: &CostModel,
) -> Moved {
    let line = whole(m.memory.line_bytes);
    let wanted = a.count * bytes(a);
    let requests = a.count / s.lanes;
    // What several accesses of a work-item touch in common is fetched once.
    let distinct = |of_group, cache| streaks.distinct(a, of_group, cache);
    // Each group fetches its own bytes, except that bytes which all groups use may stay in the
    // cache of the unit.
    let anew = (k.groups * a.group_footprint).max(a.footprint).min(wanted);
    let same = a.group_footprint >= 0.99 * a.footprint;
    let kept = same && a.footprint * p.waste <= l.near_bytes;
    let all = requests * p.sectors * p.sector;
    // Each load of a place that data decide fetches a sector, unless a cache has it by chance.
    let scattered = !a.store && a.item_stride.is_none() && a.lanes.is_empty();
    // A work-item uses a sector bit by bit, and the cache has lost it in between.
    let again = crowded.unit && p.in_parts && !p.beside;
    let common = if a.store {
        all
    } else if kept {
        (s.units * a.footprint).min(anew) * p.waste
    } else if again {
        all
    } else {
        anew * p.waste
    };
    let each = a.count / s.items;
    let first = (a.item_footprint / (each * bytes(a))).min(1.0) * if again { 1.0 } else { p.new };
    let gone = if l.fits { 0.0 } else { (a.footprint / anew).min(1.0) };
    let [near, shared, far] = l.waits;
    let wait = (1.0 - first) * near + first * (gone * far + (1.0 - gone) * shared);
    let asked = requests * p.lines * line;
    let leaps = !p.beside && (a.item_stride.is_some() || !a.lanes.is_empty());
    Moved {
        asked,
        // No cache of a unit gathers the pieces that a work-item stores one by one: each takes the time of its line.
        pieces: if a.store && leaps { asked } else { 0.0 },
        common: common * distinct(true, l.near_bytes),
        far: match (l.fits, scattered) {
            (true, _) => 0.0,
            (false, true) => (all * (1.0 - l.last_bytes / a.footprint)).max(a.footprint),
            (false, false) if again && crowded.device => all * p.lone,
            (false, false) => a.footprint * p.waste * distinct(false, l.last_bytes),
        },
        // A group waits for its busiest work-item.
        waiting: if a.store { 0.0 } else { scalars(a) * each * a.uneven * wait },
    }
}

/// Returns the times that the resources take for the kernel.
pub(super) fn parts(k: &KernelProfile, m: &CostModel) -> Parts {
    let x = &m.execution;
    let s = Spread::of(k, m);
    let l = Levels::of(k, m, s.units);
    let streaks = Streaks::of(k);
    let global: Vec<(&Access, Pattern)> = k
        .accesses
        .iter()
        .filter(|a| is_global(a))
        .map(|a| (a, Pattern::of(a, &streaks, &s, m)))
        .collect();
    let crowded = Crowded::of(&global, k, &s, &l, m);
    let [mut read, mut written, mut common, mut near, mut local, mut pieces] =
        [Share::default(); 6];
    let mut waiting = 0.0;
    for found in &global {
        let (a, moved) = (found.0, moved(found, k, &streaks, &s, &l, &crowded, m));
        near.add(moved.asked, moved.asked / l.near);
        common.add(moved.common, moved.common / l.common);
        match a.store {
            true => written.add(moved.far, moved.far / m.memory.write_gb_per_s),
            false => read.add(moved.far, moved.far / m.memory.read_gb_per_s),
        }
        pieces.add(moved.pieces, moved.pieces / m.memory.write_gb_per_s);
        waiting += moved.waiting;
    }
    let spilled = Spilled::of(k, m, &s, &l);
    // `asked` are the bytes of the lines that warps request, `moved` those of the sectors.
    let mut spill = |store: bool, asked: f64, moved: f64| {
        near.add(asked, asked / l.near);
        common.add(moved * spilled.common, moved * spilled.common / l.common);
        let far = moved * spilled.far;
        match store {
            true => written.add(far, far / m.memory.write_gb_per_s),
            false => read.add(far, far / m.memory.read_gb_per_s),
        }
    };
    for store in [false, true] {
        let bytes = spilled.registers * s.items;
        spill(store, bytes, bytes);
    }
    for a in k.accesses.iter().filter(|a| !is_global(a)) {
        let bytes = a.count * a.lanes_held * bytes(a);
        if !spilled.arrays.contains(&a.mem) {
            local.add(bytes, bytes * conflicts(a, m) / m.local.gb_per_s);
            continue;
        }
        // The work-items of a warp have their arrays side by side, so they are apart only at places that data decide.
        let apart = a.walk.iter().any(|(stride, _)| stride.is_none());
        let of = |block: f64| if apart { block / real(a.elem_bytes) } else { 1.0 };
        spill(
            a.store,
            bytes * of(whole(m.memory.line_bytes)),
            bytes * of(whole(m.warps().sector_bytes)),
        );
    }
    let waiting = s.rounds * waiting;
    let [mut floats, mut integers, mut matrix] = [Share::default(); 3];
    for ((kind, width, bytes, _), count) in &k.ops_held {
        let o = operations(*kind, real(*width), *bytes, *count, m);
        let of = match (o.matrix, o.integer) {
            (true, _) => &mut matrix,
            (false, true) => &mut integers,
            (false, false) => &mut floats,
        };
        of.add(o.work, o.work / o.rate);
    }
    // With few warps, arithmetic is not hidden behind the waits of other warps.
    let exposed = waiting * (1.0 - (s.warps / m.warps().in_flight).min(1.0));
    let looping = s.items.min(s.units * s.per_unit * s.group).min(s.units * real(LOOP_ITEMS));
    let loops = k.iterations * m.loop_ns() / looping.max(1.0);
    let arithmetic = (floats.ns + integers.ns + matrix.ns) / s.used + loops + exposed;
    let memory = read.ns + written.ns;
    let started = k.groups / real(k.side_by_side.max(1));
    let starting = started * x.work_group_overhead_ns + s.items * x.work_item_overhead_ns;
    let barriers = k.barriers * s.items * x.barrier_item_ns;
    // While one group waits for a block, the other groups of its unit go on.
    let company = (k.groups / s.units).min(s.per_unit).max(1.0);
    let far = round_trip(&|_| traffic(k), m);
    let dependent =
        alone(k, [far, spilled.latency], m) * (k.groups / (s.units * s.per_unit)).max(1.0);
    let turns = (k.groups / (s.units * company)).ceil();
    // Matrix units are idle after a barrier until the first operands are loaded and split, and while the last sums are added.
    let idle = if matrix.ns > 0.0 { k.barriers * IDLE * m.compute.add_latency_ns } else { 0.0 };
    let stalls = turns * (k.stalls * far + idle) / company;
    let peak_of_atomics = m.memory.atomic_gops.unwrap_or(f64::INFINITY);
    let atomics = Share { work: k.atomics, ns: k.atomics / peak_of_atomics };
    let all = Share { work: read.work + written.work, ns: memory };
    let (what, peak) = match read.ns >= written.ns {
        true => ("global reads", m.memory.read_gb_per_s),
        false => ("global writes", m.memory.copy_gb_per_s),
    };
    let parts = [loops, exposed, floats.ns / s.used, integers.ns / s.used, matrix.ns / s.used];
    let most = parts.iter().copied().fold(0.0, f64::max);
    let computing = if most == loops {
        Part::time("loop overhead", arithmetic)
    } else if most == exposed {
        Part::time("the latency of one work-item's loads", arithmetic)
    } else if matrix.ns > floats.ns.max(integers.ns) {
        let peak = matrix.work / matrix.ns;
        Part::rate("matrix arithmetic", Share { ns: arithmetic, ..matrix }, peak, "FLOP/s")
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
            Part::rate("stores of parts of lines", pieces, m.memory.write_gb_per_s, "B/s"),
            Part::rate("local memory", local.times(1.0 / s.busy), m.local.gb_per_s, "B/s"),
            Part::time("the latency of one work-item's loads", waiting),
            Part::time("the latency of dependent operations", dependent),
            computing,
            Part::time("starting work-groups", starting),
            Part::rate("atomic operations", atomics, peak_of_atomics, "op/s"),
        ],
        alone: vec![
            Part::time("barriers", barriers),
            Part::time("waiting for what is copied to local memory", stalls),
        ],
    }
}

/// Returns the nanoseconds that one work-item takes alone, where a load from global memory and one from a private array take
/// this many nanoseconds.
fn alone(k: &KernelProfile, [global, private]: [f64; 2], m: &CostModel) -> f64 {
    let add = m.compute.add_latency_ns;
    let ([near, far], [least, with_global, with_private]) = (LATENCIES, k.path);
    let share = |load: f64| ((load / add - near) / (far - near)).max(0.0);
    let longer = share(global) * (with_global - least) + share(private) * (with_private - least);
    add * (least + longer)
}

/// Returns the latency in nanoseconds of a load from data that take this many bytes of each level of caches.
fn round_trip(bytes: &dyn Fn(usize) -> f64, m: &CostModel) -> f64 {
    let mut levels = m.memory.cache.iter().enumerate();
    let holds = levels.find(|(level, c)| bytes(*level) <= whole(c.bytes));
    holds.and_then(|(_, c)| c.latency_ns).unwrap_or(m.memory.latency_ns)
}

/// Returns the number of accesses that one access becomes.
fn scalars(a: &Access) -> f64 {
    if a.aligned { 1.0 } else { real(a.width) }
}

/// Returns the number of blocks of this many scalars that the work-items of a warp touch.
fn touched(a: &Access, unit: f64) -> usize {
    let block = |place: i64| (place as f64 / unit.max(1.0)).floor().to_bits();
    let last = i64::try_from(a.width).unwrap_or(1) - 1;
    let blocks = a.lanes.iter().flat_map(|at| [block(*at), block(at + last)]);
    blocks.collect::<BTreeSet<_>>().len()
}

/// Returns how many times as long a warp's access to local memory takes because its work-items wait for the same banks.
fn conflicts(a: &Access, m: &CostModel) -> f64 {
    let banks = i64::from(m.local.banks);
    if banks <= 1 || !matches!(a.mem, Mem::Local(_)) {
        return 1.0;
    }
    let stride = a.item_stride.unwrap_or(0);
    let places = match a.lanes.is_empty() {
        true => (0..LANES).map(|lane| lane * stride).collect(),
        false => a.lanes.clone(),
    };
    let length = |n: usize| i64::try_from(n).unwrap_or(1);
    let words = length(a.elem_bytes.div_ceil(4));
    let each = length(a.width) * words;
    let of_lane = |at: &i64| at * words..at * words + each;
    let asked: BTreeSet<i64> = places.iter().flat_map(of_lane).collect();
    let mut of_bank: BTreeMap<i64, usize> = BTreeMap::new();
    for word in asked {
        *of_bank.entry(word.rem_euclid(banks)).or_default() += 1;
    }
    // What a warp takes in any case, if all banks work.
    let least = real(places.len()) * each as f64 / banks as f64;
    let most = of_bank.into_values().max().unwrap_or(1);
    (real(most) / least.max(1.0)).max(1.0)
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
        // Rows of a transposed tile: with padding, the two halves of a warp use different banks.
        let halves = |row: i64| {
            let lanes = (0..LANES).map(|lane| lane / 2 + row * 4 * (lane % 2)).collect();
            let local = access(Mem::Local(0), true, 1.0);
            conflicts(&Access { item_stride: Some(4 * row), lanes, ..local }, &m)
        };
        assert_eq!((halves(128), halves(132)), (2.0, 1.0));
    }

    #[test]
    fn values_that_do_not_fit_into_registers_are_loaded() {
        let m = model("nvidia-h200");
        let spilled = |group_size, live, read| {
            let (pressure, reads) = (vec![(live, 1.0)], vec![(live, read)]);
            let groups = 4096.0;
            let k =
                KernelProfile { groups, group_size, pressure, reads, ..KernelProfile::default() };
            let s = Spread::of(&k, &m);
            Spilled::of(&k, &m, &s, &Levels::of(&k, &m, s.units)).registers
        };
        // A small group has 255 registers for each work-item.
        assert_eq!(spilled(64, 900, 1e4), 0.0);
        assert!((1e3..3e3).contains(&spilled(64, 1152, 1e4)));
        // One of 1024 has 64, and loads each value that is over once in each run of a block.
        assert!((1e2..3e2).contains(&spilled(1024, 400, 1e4)));
    }

    #[test]
    fn a_round_trip_is_to_where_the_data_are() {
        let mut m = model("generic-gpu");
        assert_eq!(round_trip(&|_| 1e3, &m), 300.0);
        m.memory.cache[1].latency_ns = Some(200.0);
        m.memory.latency_ns = 500.0;
        assert_eq!([1e3, 2e6, 1e9].map(|bytes| round_trip(&|_| bytes, &m)), [500.0, 200.0, 500.0]);
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
            Pattern::of(&a, &Streaks::of(&k), &s, &m)
        };
        let near = of(1, 4096);
        assert_eq!((near.sectors, near.lines, near.waste, near.new), (4.0, 1.0, 1.0, 1.0));
        // Each work-item reads a row of its own: every lane touches a different line, but the next
        // iterations use the rest of it.
        let rows = of(4096, 1);
        assert_eq!((rows.sectors, rows.lines, rows.waste, rows.new), (32.0, 32.0, 1.0, 0.125));
        // The rest of a sector is not used.
        let apart = of(4096, 4096);
        assert_eq!((apart.lines, apart.waste, apart.new), (32.0, 8.0, 1.0));
        // A vector that need not be aligned is read scalar by scalar.
        let vector = |aligned| {
            let global = access(Mem::Global(0), false, 1e6);
            Pattern::of(
                &Access { item_stride: Some(4), width: 4, aligned, ..global },
                &Streaks::of(&k),
                &s,
                &m,
            )
        };
        assert_eq!((vector(true).lines, vector(false).lines), (4.0, 16.0));
        // Two work-items read the beginning of each row: a sector of each line, all of which they use.
        let lanes = (0..LANES).map(|lane| 4096 * (lane / 2) + 4 * (lane % 2)).collect();
        let global = access(Mem::Global(0), false, 1e6);
        let a = Access { item_stride: Some(4), width: 4, lanes, ..global };
        let halves = Pattern::of(&a, &Streaks::of(&k), &s, &m);
        assert_eq!((halves.sectors, halves.lines, halves.waste), (16.0, 16.0, 1.0));
        // A table with a stride between the elements that work-items read has a line for each; at unknown places, only its own lines.
        let table = |item_stride| {
            let global = access(Mem::Global(0), false, 1e6);
            let a = Access { item_stride, width: 4, footprint: 1024.0, ..global };
            Pattern::of(&a, &Streaks::of(&k), &s, &m).lines
        };
        assert_eq!((table(Some(64)), table(None)), (32.0, 8.0));
        // All work-items read the same place.
        let one = of(0, 1);
        assert_eq!((one.sectors, one.lines, one.new), (1.0, 1.0, 0.125));
    }
}
