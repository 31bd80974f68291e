//! The kernel model: predicted time from static features and a device's quantities, and what bounds it.
//!
//! For each kernel the time is its launch, plus the larger of memory and arithmetic, plus what
//! neither hides: starting groups and items, barriers, and the longest chain of one work-item.
//! It ranks candidates; the clock decides.

use super::ir::Mem;
use super::profile::{Access, KernelProfile, OpKind, Profile};
use crate::device::cost_model::{CostModel, Locality};

/// A predicted time.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// The whole program, in microseconds.
    pub us: f64,
    /// What bounds its slowest kernel, for people.
    pub bound: String,
}

/// What is seen of waiting for an addition where nothing else hides it: most of its latency.
const SEEN: f64 = 0.75;

/// Warps that a compute unit runs side by side, where work-items run in warps.
const SCHEDULERS: f64 = 4.0;

/// Predicts the time of a program on a device.
pub fn estimate(profile: &Profile, model: &CostModel) -> Prediction {
    let mut out = Prediction { us: 0.0, bound: "nothing to do".to_owned() };
    let mut slowest = 0.0;
    for k in &profile.kernels {
        let t = kernel(k, model);
        out.us += t.us;
        if t.us > slowest {
            slowest = t.us;
            out.bound = t.bound;
        }
    }
    // Whatever the footprints of single accesses came to: every input is read, every result written.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let launches = profile.kernels.len() as f64 * model.execution.launch_us;
    let bandwidth = level(profile.bytes, model).unwrap_or(model.memory.read_gb_per_s);
    let least = launches + profile.bytes / bandwidth / 1e3;
    if least > out.us {
        out.us = least;
        out.bound =
            format!("global memory, {}", of_peak(profile.bytes, least * 1e3, bandwidth, "B/s"));
    }
    out
}

fn kernel(k: &KernelProfile, m: &CostModel) -> Prediction {
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let real = |n: u64| n as f64;
    let x = &m.execution;
    let across = m.memory.locality == Locality::AcrossItems;
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let group = (k.group_size as f64).max(1.0);
    let items = k.groups * group;
    if items == 0.0 {
        return Prediction { us: 0.0, bound: "nothing to do".to_owned() };
    }

    // A warp runs as one: work-items that a group does not have are lanes that do nothing.
    let warp = f64::from(m.compute.simd_width.max(1));
    let lanes_used = if across { group / ((group / warp).ceil() * warp) } else { 1.0 };

    // Whole rounds of groups: the last one leaves units idle.
    let units = real(x.groups_to_saturate).max(1.0);
    let per_unit = if across { resident(k, m) } else { 1.0 };
    let slots = units * per_unit;
    let tail = k.groups / ((k.groups / slots).ceil().max(1.0) * slots);
    let busy = if across {
        (k.groups / units).min(1.0) * if k.groups > slots { tail } else { 1.0 }
    } else {
        tail
    };

    // Arithmetic ends with the unit that has most groups, and there with the scheduler that has most warps.
    let even = if across {
        let most = if k.groups > slots { per_unit } else { (k.groups / units).ceil() };
        let warps = most * (group / warp).ceil();
        let units = if k.groups > slots { busy } else { k.groups / (most * units) };
        let each = warps / SCHEDULERS;
        units * each / each.ceil() * (each / WARPS_IN_FLIGHT).min(1.0).powf(HIDING)
    } else {
        busy
    };

    // Memory in flight hides latency: wide accesses count for as many narrow ones.
    let width =
        k.accesses.iter().filter(|a| is_global(a) && !a.store).map(|a| a.width).max().unwrap_or(1);
    #[expect(clippy::cast_precision_loss, reason = "a vector width")]
    let in_flight = items.min(slots * group) * (width.min(4) as f64).sqrt();
    let streaming = (in_flight / real(x.items_to_saturate)).min(1.0);
    let traffic: f64 = k.accesses.iter().filter(|a| is_global(a)).map(|a| a.footprint).sum();
    let (mut read, mut written, mut cached, mut local) =
        (Share::default(), Share::default(), Share::default(), Share::default());
    let mut ports = Share::default();
    for a in &k.accesses {
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let moved = a.count * (a.width * a.elem_bytes) as f64;
        if !across {
            let moved = a.count * slot(a, m);
            ports.add(moved, moved / nearest(m));
            // Local memory is memory like any other, and what a group has of it is in the nearest cache.
            if !is_global(a) {
                continue;
            }
        }
        if !is_global(a) {
            local.add(moved, moved * conflicts(a, m) / m.local.gb_per_s);
            continue;
        }
        let wasted = penalty(a, m, across, k.group_size == 1);
        let first = (a.footprint * wasted).min(moved * wasted);
        let again = (moved - a.footprint).max(0.0) * wasted;
        let bandwidth = if a.store { m.memory.write_gb_per_s } else { m.memory.read_gb_per_s };
        // What fits in a cache was left there by the run before.
        let near = level(traffic, m).unwrap_or(bandwidth).max(bandwidth);
        if a.store { &mut written } else { &mut read }.add(first, first / near);
        // Neighbours that read one address share it.
        let shared = if across && a.item_stride == Some(0) { group.min(warp) } else { 1.0 };
        cached.add(again / shared, again / shared / level(a.footprint, m).unwrap_or(bandwidth));
    }
    let global_ns = (read.ns + written.ns + cached.ns) / streaming.min(busy).max(1e-6);
    let local_ns = local.ns / busy.max(1e-6);
    let ports_ns = ports.ns / busy.max(1e-6);
    let memory = (global_ns + local_ns).max(ports_ns);

    let (mut floats, mut others) = (Share::default(), Share::default());
    for ((kind, width, bytes), count) in &k.ops {
        #[expect(clippy::cast_precision_loss, reason = "a vector width")]
        let (lanes, wide) = (*width as f64, (*width * *bytes) as f64 / 4.0);
        let simd = f64::from(m.compute.simd_width.max(1));
        let efficiency =
            if across { 1.0 } else { (wide / simd).clamp(m.compute.scalar_efficiency, 1.0) };
        let peak = match bytes {
            2 => m.compute.f16_gflops.unwrap_or(m.compute.f32_gflops),
            8 => m.compute.f64_gflops,
            _ => m.compute.f32_gflops,
        };
        let (flops, rate) = match kind {
            // The peak rate counts a fused multiply-add as two.
            OpKind::Add | OpKind::Mul | OpKind::Fma => (2.0, peak),
            OpKind::Div => (m.compute.divide_flops, peak),
            OpKind::Special => (m.compute.special_flops, peak),
            OpKind::Other => (1.0, m.compute.integer_gops),
        };
        let work = count * lanes * flops;
        let of = if *kind == OpKind::Other { &mut others } else { &mut floats };
        of.add(work, work / rate / efficiency);
    }
    let workers = if across { items.min(slots * group) } else { k.groups.min(units) };
    let loops = k.iterations * m.compute.loop_overhead_ns / workers.max(1.0);
    // On a GPU other work-items run meanwhile.
    let waiting =
        if across { 0.0 } else { k.waiting * SEEN * m.compute.add_latency_ns / workers.max(1.0) };
    let used = (even * lanes_used).max(1e-6);
    let arithmetic = (floats.ns + others.ns) / used + loops + waiting;

    // One work-item waits for its own loads, however idle the device is.
    let own: f64 =
        k.accesses.iter().filter(|a| is_global(a) && !a.store).map(|a| a.count / items).sum();
    let chain = if across { own * m.memory.load_ns } else { 0.0 };
    let starting = (k.groups * x.work_group_overhead_ns + items * x.work_item_overhead_ns)
        / if across { 1.0 } else { units.min(k.groups).max(1.0) };
    let barriers = k.barriers * items * x.barrier_item_ns;
    // While a group waits for a block, the others of its unit go on.
    let company = (k.groups / units).min(per_unit).max(1.0);
    let stalls = if across {
        (k.groups / (units * company)).ceil() * k.stalls * round_trip(traffic, m) / company
    } else {
        0.0
    };

    let busiest = memory.max(arithmetic).max(chain);
    let ns =
        busiest + 0.1 * (memory + arithmetic - busiest).max(0.0) + starting + barriers + stalls;
    let us = x.launch_us + ns / 1e3;
    let whole = us * 1e3;
    let time = |what: &str, ns: f64| format!("{what}, {:.0}% of the time", 100.0 * ns / whole);
    let rate = |what: &str, work: f64, peak: f64, unit: &str| {
        format!("{what}, {}", of_peak(work, whole, peak, unit))
    };
    let launch = x.launch_us * 1e3;
    let bound = if launch >= ns {
        time("the launch", launch)
    } else if starting.max(barriers).max(stalls) > busiest {
        if stalls > starting.max(barriers) {
            time("waiting for what is copied to local memory", stalls)
        } else if barriers > starting {
            time("barriers", barriers)
        } else {
            time("starting work-groups", starting)
        }
    } else if busiest == chain {
        time("the latency of one work-item's loads", chain)
    } else if busiest == arithmetic {
        let most = arithmetic / 2.0;
        if loops > most {
            time("loop overhead", loops)
        } else if waiting > most {
            time("operations that wait for each other", waiting)
        } else if others.ns > floats.ns {
            rate("integer arithmetic", others.work, m.compute.integer_gops, "op/s")
        } else {
            rate("arithmetic", floats.work, m.compute.f32_gflops, "FLOP/s")
        }
    } else if ports_ns > global_ns + local_ns {
        rate("loads from the nearest cache", ports.work, nearest(m), "B/s")
    } else if local_ns > global_ns {
        rate("local memory", local.work, m.local.gb_per_s, "B/s")
    } else if cached.ns > read.ns + written.ns {
        rate("cache traffic", cached.work, cached.work / cached.ns, "B/s")
    } else {
        let near = level(traffic, m);
        let (what, peak) = if read.ns >= written.ns {
            ("reads", m.memory.read_gb_per_s)
        } else {
            ("writes", m.memory.copy_gb_per_s)
        };
        match near.filter(|n| *n > peak) {
            Some(near) => rate(&format!("{what} in caches"), traffic, near, "B/s"),
            None => rate(&format!("global {what}"), traffic, peak, "B/s"),
        }
    };
    Prediction { us, bound }
}

/// Work of one kind, and the time that it takes where nothing else is in the way.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    /// Bytes or operations.
    work: f64,
    /// Nanoseconds.
    ns: f64,
}

impl Share {
    fn add(&mut self, work: f64, ns: f64) {
        self.work += work;
        self.ns += ns;
    }
}

/// `71% of 4.1 TB/s`, of so much work in a time and a peak in 10^9 units a second.
fn of_peak(work: f64, ns: f64, peak: f64, unit: &str) -> String {
    let share = (100.0 * work / ns / peak).min(999.0);
    if peak >= 1000.0 {
        format!("{share:.0}% of {:.1} T{unit}", peak / 1000.0)
    } else {
        format!("{share:.0}% of {peak:.0} G{unit}")
    }
}

/// Nanoseconds that a load takes from where so many bytes lie.
fn round_trip(bytes: f64, m: &CostModel) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let level = m.memory.cache.iter().find(|c| bytes <= c.bytes as f64);
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
    #[expect(clippy::cast_precision_loss, reason = "at most the number of banks")]
    let waiting = same as f64 / (a.width as u64 * words) as f64;
    waiting.max(1.0)
}

/// Bytes that the nearest cache could have delivered in place of one access of a CPU: a scalar takes as long as a vector.
fn slot(a: &Access, m: &CostModel) -> f64 {
    let simd = f64::from(m.compute.simd_width.max(1)) * 4.0;
    real_bytes(a.width * a.elem_bytes).max(simd)
}

/// Bandwidth of the nearest cache.
fn nearest(m: &CostModel) -> f64 {
    m.memory.cache.first().map_or(m.memory.read_gb_per_s, |c| c.gb_per_s)
}

fn is_global(a: &Access) -> bool {
    matches!(a.mem, Mem::Global(_))
}

/// Groups of the kernel that one compute unit holds at once.
fn resident(k: &KernelProfile, m: &CostModel) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let (group, items) = (
        // In whole warps.
        k.group_size.next_multiple_of(m.compute.simd_width.max(1) as usize).max(1) as f64,
        m.execution.items_per_compute_unit as f64,
    );
    let mut n = (items / group).floor().max(1.0);
    if k.local_bytes > 0 && m.local.bytes_per_compute_unit > 0 {
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let fit = m.local.bytes_per_compute_unit as f64 / k.local_bytes as f64;
        n = n.min(fit.floor().max(1.0));
    }
    // Registers: of 4 bytes, some for addresses besides those that are declared.
    let most = real_bytes(m.compute.register_bytes_per_item as usize);
    let registers = (real_bytes(k.register_bytes) + UNDECLARED).min(most.max(UNDECLARED));
    n.min((REGISTER_FILE / registers / group).floor().max(1.0))
}

/// Warps by which a scheduler is kept busy with arithmetic, and the power of their share that remains where there are
/// fewer: of a product in tiles of 128 by 128 on an H200, two reach five sixths of what four do.
const WARPS_IN_FLIGHT: f64 = 4.0;
const HIDING: f64 = 0.27;

/// Bytes of registers for addresses and what a compiler keeps, besides those that are declared.
const UNDECLARED: f64 = 160.0;

/// Bytes of registers of a compute unit, where work-items share them.
const REGISTER_FILE: f64 = 262_144.0;

#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn real_bytes(n: usize) -> f64 {
    n as f64
}

/// Bandwidth of the smallest cache that holds so many bytes.
fn level(bytes: f64, m: &CostModel) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    m.memory.cache.iter().find(|c| bytes <= c.bytes as f64).map(|c| c.gb_per_s)
}

/// How many bytes move for each one that is wanted.
fn penalty(a: &Access, m: &CostModel, across: bool, alone: bool) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let (line, wanted) = (m.memory.line_bytes as f64, (a.width * a.elem_bytes) as f64);
    let worst = m.memory.uncoalesced_penalty.min(line / wanted).max(1.0);
    let width = i64::try_from(a.width).unwrap_or(1);
    let near = |stride: Option<i64>| stride.is_some_and(|s| s.abs() <= width);
    let good = if across {
        // A work-item without company has its own next accesses alone.
        near(if alone { a.loop_stride } else { a.item_stride })
    } else {
        // On a CPU a work-item is an iteration like any other.
        near(a.loop_stride.filter(|s| *s != 0)) || near(a.item_stride)
            // A few long streams are as good as one.
            || a.loop_stride.is_some_and(|s| s.unsigned_abs() <= 64 * a.width as u64 && s != 0)
    };
    if good { 1.0 } else { worst }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn model(name: &str) -> CostModel {
        let shipped = CostModel::shipped().expect("the shipped models");
        shipped.into_iter().find(|m| m.name == name).expect("the model")
    }

    fn access(mem: Mem, store: bool, count: f64) -> Access {
        Access {
            mem,
            store,
            elem_bytes: 4,
            width: 1,
            count,
            footprint: if matches!(mem, Mem::Global(_)) { 4.0 * count } else { 1024.0 },
            item_stride: Some(1),
            loop_stride: Some(0),
        }
    }

    /// A kernel of many work-items on a GPU.
    fn large() -> KernelProfile {
        KernelProfile { groups: 65_536.0, group_size: 256, ..KernelProfile::default() }
    }

    fn bound(k: KernelProfile) -> String {
        let profile = Profile { kernels: vec![k], bytes: 0.0 };
        estimate(&profile, &model("generic-gpu")).bound
    }

    #[test]
    fn every_kind_of_bound_says_how_near_it_is() {
        let items = 65_536.0 * 256.0;
        let ops = |kind, count| BTreeMap::from([((kind, 1, 4), count)]);
        let read = vec![access(Mem::Global(0), false, items)];
        let cases = [
            (KernelProfile { accesses: read, ..large() }, "global reads, ", "of 400 GB/s"),
            (
                KernelProfile { accesses: vec![access(Mem::Global(0), true, items)], ..large() },
                "global writes, ",
                "of 390 GB/s",
            ),
            (
                KernelProfile {
                    accesses: vec![access(Mem::Local(0), false, 1e3 * items)],
                    ..large()
                },
                "local memory, ",
                "of 5.0 TB/s",
            ),
            (
                KernelProfile { ops: ops(OpKind::Fma, 1e4 * items), ..large() },
                "arithmetic, ",
                "of 10.0 TFLOP/s",
            ),
            (
                KernelProfile { ops: ops(OpKind::Other, 1e4 * items), ..large() },
                "integer arithmetic, ",
                "of 5.0 Top/s",
            ),
            (
                KernelProfile { iterations: 1e4 * items, ..large() },
                "loop overhead, ",
                "of the time",
            ),
            (KernelProfile { barriers: 1e4, ..large() }, "barriers, ", "of the time"),
            (large(), "starting work-groups, ", "of the time"),
            (KernelProfile { groups: 1.0, ..large() }, "the launch, ", "of the time"),
        ];
        for (k, first, last) in cases {
            let said = bound(k);
            let share = said.strip_prefix(first).and_then(|s| s.split_once("% "));
            let (share, of) = share.unwrap_or_else(|| panic!("{said}, and not {first}"));
            let share: f64 = share.parse().expect("a share");
            assert!(share > 40.0 && share <= 100.0 && of == last, "{said}");
        }
    }

    #[test]
    fn doubles_and_halves_have_their_own_rates() {
        let of = |m: &CostModel, bytes| {
            let ops = BTreeMap::from([((OpKind::Fma, 1, bytes), 1e12)]);
            let kernels = vec![KernelProfile { ops, ..large() }];
            estimate(&Profile { kernels, bytes: 0.0 }, m).us
        };
        let mut m = model("generic-gpu");
        assert!(of(&m, 8) > 20.0 * of(&m, 4));
        assert_eq!(of(&m, 2), of(&m, 4));
        m.compute.f16_gflops = Some(2.0 * m.compute.f32_gflops);
        assert!(of(&m, 2) < of(&m, 4));
    }

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
}
