//! Measures memory: streams, levels, strides, latency, local memory.

use super::Bench;
use super::compute::{GAIN, listed};
use super::lab::{Answer, Reading, Trial};
use super::levels::{Plateau, held, plateaus};
use super::record::Record;
use crate::device::cost_model::Cache;
use crate::diag::Result;
use crate::opencl::probe::memory::{self as probe, Floats, Parts, Traffic};
use crate::opencl::probe::{Count, Fleet};
use crate::opencl::yardstick::Traffic as Stream;
use crate::session::race::{Finish, SLOT, best, field, race};
use crate::tune::statistics::median;

/// Vectors that a work-item of a sweep has in flight. The length of a part is a multiple of this number.
const STREAMS: usize = 4;

pub fn measure(b: &mut Bench) -> Result<()> {
    streams(b)?;
    widths(b)?;
    saturation(b)?;
    levels(b)?;
    strides(b)?;
    waiting(b)?;
    local(b)
}

impl Bench<'_> {
    fn floats(&self) -> Floats<'static> {
        Floats { param: SLOT, len: self.len }
    }

    /// Returns a vector width that moves data fast.
    fn width(&self) -> usize {
        if self.across() { 4 } else { 16 }
    }

    /// Returns the largest part of a group, in vectors, for which the parts of all groups fit in the array.
    fn largest(&self, width: usize, fleet: Fleet) -> Count {
        Count::power_within(self.len / width / fleet.groups)
    }
}

/// Measures the bandwidth of the best hand-written kernels over an array that exceeds the caches.
fn streams(b: &mut Bench) -> Result<()> {
    let racers = field(&mut b.lab.worker, &b.info, b.len, b.observer)?;
    let rounds = if b.quick { 5 } else { 15 };
    let finishes = race(&mut b.lab.worker, &racers, &mut [], rounds, b.observer)?;
    let of = |kind: Stream| -> Option<(&Finish, f64, f64)> {
        let f = best(&finishes, &[kind])?;
        let s = f.outcome.as_ref().ok()?;
        Some((f, f.gb_per_s()?, s.spread_us / s.median_us.max(1e-3)))
    };
    // A fill gives the write bandwidth if the times of copies do not.
    let (floats, width, fleet) =
        (b.floats(), b.width(), b.fleet(if b.across() { 1024 } else { 1 }));
    let part = b.largest(width, fleet);
    let fill = b.lab.measure(Trial::growing(Count::ONE, |n| {
        probe::sweep(Traffic::Write, Parts::Own, floats, width, fleet, part, n)
    }))?;
    let (r, m) = (&mut b.record, &mut b.model.memory);
    let mib = (b.len * 4) >> 20;
    let how = |f: &Finish| format!("the best of several kernels over {mib} MiB ({})", f.name);
    let slow = "no kernel ran";
    m.read_gb_per_s = match of(Stream::Read) {
        Some((f, rate, spread)) => r.measured("memory.read_gb_per_s", "GB/s", rate, spread, how(f)),
        None => r.kept("memory.read_gb_per_s", "GB/s", m.read_gb_per_s, slow),
    };
    m.copy_gb_per_s = match of(Stream::Copy) {
        Some((f, rate, spread)) => r.measured("memory.copy_gb_per_s", "GB/s", rate, spread, how(f)),
        None => r.kept("memory.copy_gb_per_s", "GB/s", m.copy_gb_per_s, slow),
    };
    if let Ok(f) = &fill {
        r.measured("observed.fill_gb_per_s", "GB/s", f.rate(), f.spread, "filling the same array");
    }
    // A copy is a read and a write: the write takes the copy's time less that of the read.
    let read = m.read_gb_per_s;
    let rest = |copy: f64| {
        let ns = 2.0 / copy - 1.0 / read;
        (ns > 0.1 / copy).then(|| 1.0 / ns)
    };
    let spread = of(Stream::Copy).map_or(0.0, |c| c.2);
    m.write_gb_per_s = match (rest(m.copy_gb_per_s), &fill) {
        (Some(rate), _) => {
            let how = "what remains of a copy's time after its read";
            r.measured("memory.write_gb_per_s", "GB/s", rate, spread, how)
        }
        (None, Ok(f)) => {
            let how = "filling the array: a copy takes hardly longer than a read";
            r.measured("memory.write_gb_per_s", "GB/s", f.rate(), f.spread, how)
        }
        (None, Err(why)) => r.kept("memory.write_gb_per_s", "GB/s", m.write_gb_per_s, why),
    };
    if let Some((f, rate, spread)) = of(Stream::CopyNontemporal) {
        let rate = rest(rate).unwrap_or(rate);
        let how = format!("what remains of a copy's time after its read ({})", f.name);
        let key = "memory.nontemporal_write_gb_per_s";
        m.nontemporal_write_gb_per_s = Some(r.measured(key, "GB/s", rate, spread, how));
    } else {
        m.nontemporal_write_gb_per_s = None;
    }
    let why = "the model's own for this kind of device";
    r.kept("memory.line_bytes", "bytes", m.line_bytes as f64, why);
    Ok(())
}

/// Finds the widest useful vectors, in copies or in arithmetic (which is measured before).
fn widths(b: &mut Bench) -> Result<()> {
    let (floats, fleet) = (b.floats(), b.fleet(if b.across() { 1024 } else { 1 }));
    let widths = [1usize, 2, 4, 8, 16];
    let trials: Vec<Trial> = widths
        .iter()
        .map(|&width| {
            let part = b.largest(width, fleet);
            Trial::growing(Count::ONE, move |n| {
                probe::sweep(Traffic::Copy, Parts::Own, floats, width, fleet, part, n)
            })
        })
        .collect();
    let rates: Vec<(usize, Answer)> = widths.into_iter().zip(b.lab.compare(&trials)?).collect();
    let rate = |w: usize| {
        rates.iter().find(|(v, _)| *v == w).and_then(|(_, a)| Some(a.as_ref().ok()?.rate()))
    };
    let top = widths.into_iter().filter_map(rate).fold(0.0, f64::max);
    let near = |w: &usize| rate(*w).is_some_and(|r| GAIN * r >= top);
    // The widest one within a small margin: narrower vectors are candidates in any case.
    let moved = widths.into_iter().rev().find(near).unwrap_or(1);
    let across = b.across();
    let c = &mut b.model.compute;
    let computed = if across { 1 } else { c.simd_width as usize };
    let how = format!(
        "the widest vectors of floats that are within a twentieth of the best, in copies and arithmetic; bytes/s of \
         copies by width: {}",
        listed(&rates)
    );
    let spread =
        rates.iter().filter_map(|(_, a)| Some(a.as_ref().ok()?.spread)).fold(0.0, f64::max);
    let useful = moved.max(computed);
    b.record.measured("compute.useful_vector_width", "lanes", useful as f64, spread, how);
    c.useful_vector_width = u32::try_from(useful).unwrap_or(u32::MAX);
    Ok(())
}

/// Measures how many work-items saturate the read bandwidth.
fn saturation(b: &mut Bench) -> Result<()> {
    let (key, unit) = ("execution.items_to_saturate", "work-items");
    let read = b.model.memory.read_gb_per_s;
    let of_unit: Vec<usize> = if b.across() {
        (6..=11)
            .map(|k| 1 << k)
            .filter(|&n| n as u64 <= b.model.execution.items_per_compute_unit)
            .collect()
    } else {
        vec![1, 2, 4, 8]
    };
    let fleets: Vec<Fleet> = if b.across() {
        of_unit.iter().map(|n| Fleet { groups: b.units() * n / 64, group: 64 }).collect()
    } else {
        // Includes fewer work-items than compute units.
        let fewer = (0..b.units().ilog2()).map(|k| 1usize << k);
        let more = of_unit.iter().map(|n| n * b.units());
        fewer.chain(more).map(|groups| Fleet { groups, group: 1 }).collect()
    };
    let mut needed = vec![];
    let mut said = vec![];
    let mut spread = 0.0f64;
    for width in if b.across() { vec![1usize, 4] } else { vec![16] } {
        let floats = b.floats();
        let trials: Vec<Trial> = fleets
            .iter()
            .map(|&fleet| {
                let part = b.largest(width, fleet);
                Trial::growing(Count::ONE, move |n| {
                    probe::sweep(Traffic::Read, Parts::Own, floats, width, fleet, part, n)
                })
            })
            .collect();
        let answers = b.lab.compare(&trials)?;
        let rates: Vec<(usize, Answer)> = fleets.iter().map(|f| f.items()).zip(answers).collect();
        said.push(format!("bytes/s of floats by {width}, by work-items: {}", listed(&rates)));
        let seen: Vec<(usize, Reading)> =
            rates.into_iter().filter_map(|(n, a)| Some((n, a.ok()?))).collect();
        spread = seen.iter().map(|(_, r)| r.spread).fold(spread, f64::max);
        // On a CPU the access pattern matters more than the number of work-items, so the fleets are compared with
        // their best.
        let most = seen.iter().map(|(_, r)| r.rate()).fold(0.0, f64::max);
        let full = if b.across() { read } else { most };
        needed.extend(saturating(&seen, full).map(|n| n * in_flight(b.across(), width)));
    }
    let how = format!(
        "the full bandwidth divided by the bandwidth of one work-item, measured with the fewest of these; {}",
        said.join("; ")
    );
    if needed.is_empty() {
        let old = b.model.execution.items_to_saturate as f64;
        b.record.kept(key, unit, old, "no kernel ran");
        return Ok(());
    }
    // The geometric mean over the widths.
    let mean = (needed.iter().map(|n| n.ln()).sum::<f64>() / needed.len() as f64).exp();
    b.record.measured(key, unit, mean.round(), spread, how);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a mean of counts")]
    let items = mean.round().max(1.0) as u64;
    b.model.execution.items_to_saturate = items;
    Ok(())
}

/// Returns how many work-items with single floats one work-item with vectors counts for in the estimate.
fn in_flight(across: bool, width: usize) -> f64 {
    if across { width.min(4) as f64 } else { 1.0 }
}

/// Returns how many work-items would reach the bandwidth `full` if each had the bandwidth of a work-item of the first
/// fleet in `rates`.
fn saturating(rates: &[(usize, Reading)], full: f64) -> Option<f64> {
    let (n, r) = rates.first()?;
    Some((*n as f64 * full / r.rate()).max(1.0))
}

/// The bandwidth of working sets of several sizes.
struct Curve {
    fleet: Fleet,
    /// Bytes of all groups together, the smallest set first.
    points: Vec<(u64, Reading)>,
}

impl Curve {
    /// Measures working sets from the smallest one to the whole array.
    fn measure(b: &mut Bench, parts: Parts, fleet: Fleet) -> Result<Curve> {
        let (floats, width) = (b.floats(), b.width());
        let (least, most) = (STREAMS * fleet.group.max(32), b.largest(width, fleet).value());
        let mut sizes = vec![];
        for power in least.next_power_of_two().ilog2()..=most.ilog2() {
            sizes.push(Count::power(power));
            let between = Count::at_most((3 << power) >> 1);
            let whole = between.value().is_multiple_of(STREAMS * fleet.group);
            if !b.quick && whole && between.value() < most {
                sizes.push(between);
            }
        }
        let trials: Vec<Trial> = sizes
            .iter()
            .map(|&part| {
                let from = Count::at_most((most / part.value()).max(1));
                Trial::growing(from, move |n| {
                    probe::sweep(Traffic::Read, parts, floats, width, fleet, part, n)
                })
            })
            .collect();
        let answers = b.lab.compare(&trials)?;
        let bytes = |part: &Count| (fleet.groups * part.value() * width * 4) as u64;
        let seen = sizes.iter().zip(&answers);
        let points = seen.filter_map(|(p, a)| Some((bytes(p), *a.as_ref().ok()?))).collect();
        Ok(Curve { fleet, points })
    }

    fn rates(&self) -> Vec<(u64, f64)> {
        self.points.iter().map(|(n, r)| (*n, r.rate())).collect()
    }

    /// Returns the caches in the curve, the fastest first: all plateaus but the last, which is the memory.
    fn caches(&self) -> Vec<Plateau> {
        let mut found = plateaus(&self.rates());
        found.pop();
        found
    }

    fn spread(&self) -> f64 {
        self.points.iter().map(|(_, r)| r.spread).fold(0.0, f64::max)
    }

    /// Lists the points of the curve as text.
    fn listed(&self) -> String {
        let points = self.points.iter().map(|(n, r)| format!("{}: {:.0}", n >> 10, r.rate()));
        format!(
            "in {} work-items; GB/s by KiB: {}",
            self.fleet.items(),
            points.collect::<Vec<_>>().join(", ")
        )
    }
}

/// Measures the caches: their sizes and read bandwidths, then the bandwidth of stores and copies in each.
fn levels(b: &mut Bench) -> Result<()> {
    // Each level with how it was found.
    let mut found: Vec<(Plateau, String)> = vec![];
    let mut spread = 0.0f64;
    let own = if b.across() {
        // One group for each unit, as large as possible: its working set is the contents of the unit's own cache.
        let group = 1024.min(b.info.max_work_group_size);
        Curve::measure(b, Parts::Together, Fleet { groups: b.units(), group })?
    } else {
        Curve::measure(b, Parts::Own, b.fleet(1))?
    };
    let caches = own.caches();
    // On a GPU this curve shows only the first level: the caches behind it are shared by all units.
    let near = if b.across() { 1 } else { caches.len() };
    for (k, level) in caches.into_iter().take(near).enumerate() {
        spread = spread.max(own.spread());
        let more = if k == 0 { format!(", {}", own.listed()) } else { String::new() };
        found.push((level, format!("each group a part of its own, over and over{more}")));
    }
    if b.across() {
        let all = Curve::measure(b, Parts::InTurns, b.fleet(1024))?;
        let slower = |p: &Plateau| found.first().is_none_or(|(near, _)| p.gb_per_s < near.gb_per_s);
        if let Some(mut far) = all.caches().into_iter().rfind(slower) {
            // Groups that take turns drift apart, so the curve `all` shows more than the cache holds. The curve `own`,
            // of groups that each read their own part, does not.
            if let Some(bytes) = held(&own.rates(), far.gb_per_s) {
                let within: Vec<f64> = all
                    .rates()
                    .iter()
                    .filter(|(n, _)| *n <= bytes)
                    .map(|(_, rate)| *rate)
                    .collect();
                let gb_per_s = median(&within).unwrap_or(far.gb_per_s);
                far = Plateau { bytes, gb_per_s };
            }
            // The shared cache is larger than the caches in front of it.
            let least = found.first().map_or(0, |(near, _)| near.bytes + b.model.memory.line_bytes);
            far.bytes = far.bytes.max(least);
            spread = spread.max(all.spread());
            let how = format!("each group another's part every time, {}", all.listed());
            found.push((far, how));
        }
    }
    if found.is_empty() {
        kept_caches(&mut b.record, &b.model.memory.cache);
        return Ok(());
    }
    let width = b.width();
    let mut cache: Vec<Cache> = vec![];
    for (k, (level, how)) in found.iter().enumerate() {
        let how = format!("reading a working set of this level in vectors of {width}: {how}");
        let key = format!("memory.cache.{k}.gb_per_s");
        let gb_per_s = b.record.measured(key, "GB/s", level.gb_per_s, spread, how);
        let how = if b.across() && k > 0 {
            "the largest working set, of those that groups go over together, that is nearer to this than to memory"
        } else {
            "the largest working set with this bandwidth, of all compute units together"
        };
        let key = format!("memory.cache.{k}.bytes");
        b.record.measured(key, "bytes", level.bytes as f64, 0.0, how);
        cache.push(Cache { bytes: level.bytes, gb_per_s, latency_ns: None });
    }
    b.model.memory.cache = cache;
    let caches: Vec<Plateau> = found.into_iter().map(|(level, _)| level).collect();
    let fleet = b.fleet(if b.across() { 1024 } else { 1 });
    stores(b, &caches, fleet)
}

/// Records caches that no curve shows.
fn kept_caches(record: &mut Record, caches: &[Cache]) {
    let why = "the bandwidth is the same for all working sets";
    for (k, cache) in caches.iter().enumerate() {
        record.kept(&format!("memory.cache.{k}.gb_per_s"), "GB/s", cache.gb_per_s, why);
        record.kept(&format!("memory.cache.{k}.bytes"), "bytes", cache.bytes as f64, why);
    }
}

/// Measures stores and copies in each cache.
fn stores(b: &mut Bench, caches: &[Plateau], fleet: Fleet) -> Result<()> {
    let (floats, width) = (b.floats(), b.width());
    for (k, level) in caches.iter().enumerate() {
        let vectors =
            usize::try_from(level.bytes).unwrap_or(usize::MAX) / (fleet.groups * width * 4);
        let trial = |traffic, share: usize| {
            let part = Count::power_within((vectors / share).max(STREAMS * fleet.group));
            Trial::growing(Count::power(4), move |n| {
                probe::sweep(traffic, Parts::Own, floats, width, fleet, part, n)
            })
        };
        let answers = b.lab.compare(&[trial(Traffic::Write, 1), trial(Traffic::Copy, 2)])?;
        for (what, answer) in ["write", "copy"].into_iter().zip(answers) {
            if let Ok(r) = answer {
                let key = format!("observed.cache_{k}_{what}_gb_per_s");
                let how = format!("as memory.cache.{k}");
                b.record.measured(key, "GB/s", r.rate(), r.spread, how);
            }
        }
    }
    Ok(())
}

/// Measures reads of floats at a distance from each other.
fn strides(b: &mut Bench) -> Result<()> {
    let (floats, len) = (b.floats(), b.len);
    let line = usize::try_from(b.model.memory.line_bytes).unwrap_or(usize::MAX) / 4;
    let fleet = if b.across() {
        let group = 256.min(b.info.max_work_group_size);
        let items = Count::power_within(b.units() * 1024).value();
        Fleet { groups: items / group, group }
    } else {
        Fleet { groups: b.units(), group: 1 }
    };
    let mut strides = vec![];
    let mut trials = vec![];
    for k in 0..=(2 * line).ilog2() {
        let stride = Count::power(k);
        let (apart, step) = if b.across() {
            (stride, Count::power_within(fleet.items()).doubled(k))
        } else {
            (Count::power_within(len / fleet.items()), stride)
        };
        let reach = if b.across() { len / step.value() } else { apart.value() / step.value() };
        if reach >= STREAMS {
            let loads = Count::power_within(reach);
            strides.push(stride.value());
            trials.push(Trial::fixed(probe::strided(floats, fleet, apart, step, loads)));
        }
    }
    let answers = b.lab.compare(&trials)?;
    let rates: Vec<(usize, Answer)> = strides.into_iter().zip(answers).collect();
    let far: Vec<Reading> = rates
        .iter()
        .filter(|(stride, _)| *stride >= line)
        .filter_map(|(_, a)| a.as_ref().ok().copied())
        .collect();
    let each: Vec<f64> = far.iter().map(|r| r.ns * b.model.memory.read_gb_per_s).collect();
    let (key, unit) = ("memory.uncoalesced_penalty", "times");
    let old = b.model.memory.uncoalesced_penalty;
    b.model.memory.uncoalesced_penalty = match median(&each) {
        Some(penalty) => {
            let whose = if b.across() { "neighbouring work-items" } else { "a work-item's next" };
            let how = format!(
                "reading floats a line or more apart ({whose}), against read_gb_per_s; useful bytes/s by distance in \
                 floats: {}",
                listed(&rates)
            );
            let spread = far.iter().map(|r| r.spread).fold(0.0, f64::max);
            b.record.measured(key, unit, penalty.clamp(1.0, line as f64), spread, how)
        }
        None => b.record.kept(key, unit, old, "no kernel ran"),
    };
    Ok(())
}

/// Measures the latency of dependent loads, and the time of independent loads of a single warp or work-item.
fn waiting(b: &mut Bench) -> Result<()> {
    let rings = b.rings.clone();
    // The slowest one first, since each probe starts at the length of the one before.
    let trials: Vec<Trial> = rings
        .iter()
        .enumerate()
        .rev()
        .map(|(k, &bytes)| Trial::growing(Count::power(10), move |n| probe::chase(k, bytes, n)))
        .collect();
    let answers = b.lab.compare(&trials)?;
    let seen: Vec<(usize, Reading)> = rings
        .iter()
        .copied()
        .zip(answers.into_iter().rev())
        .filter_map(|(bytes, a)| Some((bytes, a.ok()?)))
        .collect();
    let all: Vec<String> = seen.iter().map(|(n, r)| format!("{}: {:.1}", n >> 10, r.ns)).collect();
    let (key, unit) = ("memory.latency_ns", "ns");
    let old = b.model.memory.latency_ns;
    b.model.memory.latency_ns = match seen.last() {
        Some((bytes, r)) => {
            let how = format!(
                "one work-item following a ring of addresses through {} MiB; ns by KiB: {}",
                bytes >> 20,
                all.join(", ")
            );
            b.record.measured(key, unit, r.ns, r.spread, how)
        }
        None => b.record.kept(key, unit, old, "no kernel ran"),
    };
    // One work-item uses the caches of one unit and those that all units share.
    let units = b.units() as u64;
    let mut before = 0;
    for (k, cache) in b.model.memory.cache.iter_mut().enumerate() {
        let key = format!("memory.cache.{k}.latency_ns");
        let inside = |n: &&(usize, Reading)| n.0 as u64 > before && n.0 as u64 <= cache.bytes;
        if let Some((bytes, r)) = seen.iter().find(inside) {
            let how = format!("the same through {} KiB", bytes >> 10);
            cache.latency_ns = Some(b.record.measured(key, unit, r.ns, r.spread, how));
        } else if let Some(ns) = cache.latency_ns {
            b.record.kept(&key, unit, ns, "no ring of addresses is in this cache alone");
        }
        before = cache.bytes * 3 / 2 / units;
    }
    // No level has a lower latency than the level in front of it.
    let mut sofar = 0.0f64;
    for cache in &mut b.model.memory.cache {
        if let Some(ns) = &mut cache.latency_ns {
            *ns = ns.max(sofar);
            sofar = *ns;
        }
    }
    let warp = if b.across() { (b.model.compute.simd_width as usize).clamp(1, 32) } else { 1 };
    let alone = Fleet { groups: 1, group: warp };
    let floats = b.floats();
    let answer = b.lab.measure(Trial::fixed(probe::strided(
        floats,
        alone,
        Count::ONE,
        Count::power_within(warp),
        Count::power(14),
    )))?;
    let old = b.model.memory.load_ns;
    let how = format!("a load of {warp} work-items alone, of many that do not wait for each other");
    let each = |r: &Reading| r.ns * (4 * warp) as f64;
    b.model.memory.load_ns = b.record.answer(("memory.load_ns", "ns"), old, &answer, each, &how);
    Ok(())
}

/// Measures local memory and its banks.
fn local(b: &mut Bench) -> Result<()> {
    let group = 256.min(b.info.max_work_group_size);
    let fleet = Fleet { groups: b.units() * 8, group };
    let trial = |width: usize, stride: usize| {
        Trial::growing(Count::power(6), move |n| {
            probe::local(fleet, width, Count::at_most(stride), n)
        })
    };
    let strides = [1usize, 2, 4, 8, 16, 32];
    let mut trials: Vec<Trial> = strides.iter().map(|&s| trial(1, s)).collect();
    trials.push(trial(4, 1));
    let mut answers = b.lab.compare(&trials)?;
    let wide = answers.pop().unwrap_or_else(|| Err(String::new()));
    let rates: Vec<(usize, Answer)> = strides.into_iter().zip(answers).collect();
    let first = rates.first().map_or_else(|| Err(String::new()), |(_, a)| a.clone());
    let dedicated = b.info.local_mem_dedicated;
    let (r, l) = (&mut b.record, &mut b.model.local);
    let how = format!(
        "neighbours reading neighbouring floats, {} groups of {group}; bytes/s by distance in floats: {}",
        fleet.groups,
        listed(&rates)
    );
    l.gb_per_s = r.answer(("local.gb_per_s", "GB/s"), l.gb_per_s, &first, Reading::rate, &how);
    if let Ok(w) = &wide {
        let how = "the same with vectors of 4";
        r.measured("observed.local_vector_gb_per_s", "GB/s", w.rate(), w.spread, how);
    }
    let key = "local.bytes_per_compute_unit";
    if dedicated {
        let why = "OpenCL says only what one group may have";
        r.kept(key, "bytes", l.bytes_per_compute_unit as f64, why);
        let ns: Vec<(usize, f64)> =
            rates.iter().filter_map(|(s, a)| Some((*s, a.as_ref().ok()?.ns))).collect();
        let how = "the distance beyond which neighbours no longer wait longer for each other";
        let spread = first.as_ref().map_or(0.0, |r| r.spread);
        l.banks = banks(&ns);
        r.measured("local.banks", "of 4 bytes", f64::from(l.banks), spread, how);
    } else {
        let why = "local memory is ordinary memory";
        (l.bytes_per_compute_unit, l.banks) = (0, 1);
        r.told(key, "bytes", 0.0, why);
        r.told("local.banks", "of 4 bytes", 1.0, why);
    }
    Ok(())
}

/// Returns the number of banks, given times by stride: the last stride that takes much longer than the stride before;
/// 1 if none does.
fn banks(times: &[(usize, f64)]) -> u32 {
    let longer = |w: &&[(usize, f64)]| w[1].1 > 1.3 * w[0].1;
    // Up to the number of banks, each doubling of the stride adds conflicts.
    times.windows(2).rfind(longer).map_or(1, |w| u32::try_from(w[1].0).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn banks_are_where_conflicts_end() {
        let times = [1.0, 2.1, 4.0, 8.0, 16.0, 31.0];
        let of = |times: &[f64]| {
            banks(&times.iter().enumerate().map(|(k, t)| (1 << k, *t)).collect::<Vec<_>>())
        };
        assert_eq!(of(&times), 32);
        assert_eq!(of(&[1.0, 2.0, 4.0, 8.0, 16.0, 16.2]), 16);
        assert_eq!(of(&[1.0, 1.1, 1.0, 0.9, 1.0, 1.1]), 1);
        assert_eq!(of(&[]), 1);
    }

    #[test]
    fn all_numbers_of_a_cache_that_is_kept_are_recorded() {
        let mut record = Record::default();
        let cache = Cache { bytes: 1 << 16, gb_per_s: 90.0, latency_ns: Some(2.0) };
        kept_caches(&mut record, &[cache]);
        let kept = record.quantities.iter().map(|q| (q.key.as_str(), q.value));
        let all = [("memory.cache.0.gb_per_s", 90.0), ("memory.cache.0.bytes", 65536.0)];
        assert_eq!(kept.collect::<Vec<_>>(), all);
    }

    #[test]
    fn saturation_is_where_the_bandwidth_is_reached() {
        let reading = |rate: f64| Reading { ns: 1.0 / rate, spread: 0.0, runs: 1 };
        let rates = [(1, reading(10.0)), (2, reading(19.0)), (4, reading(20.0))];
        assert_eq!(saturating(&rates, 20.0), Some(2.0));
        assert_eq!(saturating(&rates, 5.0), Some(1.0));
        assert_eq!(saturating(&[], 1.0), None);
    }
}
