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

/// Reading global memory once without company, in nanoseconds, where neighbours are what makes it fast.
const LATENCY_NS: f64 = 40.0;

/// A round trip to global memory, in nanoseconds, for which a group waits at a barrier.
const ROUND_TRIP_NS: f64 = 300.0;

/// What is seen of waiting for an addition, in nanoseconds, where nothing else hides it: most of four
/// cycles at some 4 GHz.
const WAIT_NS: f64 = 0.75;

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
        out.bound = "global memory".to_owned();
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
    let (mut read, mut written, mut cached, mut local) = (0.0, 0.0, 0.0, 0.0);
    for a in &k.accesses {
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let moved = a.count * (a.width * a.elem_bytes) as f64;
        if !is_global(a) {
            local += moved / m.local.gb_per_s;
            continue;
        }
        let wasted = penalty(a, m, across, k.group_size == 1);
        let first = (a.footprint * wasted).min(moved * wasted);
        let again = (moved - a.footprint).max(0.0) * wasted;
        let bandwidth = if a.store { m.memory.write_gb_per_s } else { m.memory.read_gb_per_s };
        // What fits in a cache was left there by the run before.
        let near = level(traffic, m).unwrap_or(bandwidth).max(bandwidth);
        if a.store {
            written += first / near;
        } else {
            read += first / near;
        }
        // Neighbours that read one address share it.
        let shared = if across && a.item_stride == Some(0) { group.min(warp) } else { 1.0 };
        cached += again / shared / level(a.footprint, m).unwrap_or(bandwidth);
    }
    let memory = (read + written + cached) / streaming.min(busy).max(1e-6) + local / busy.max(1e-6);

    let mut arithmetic = 0.0;
    for ((kind, width), count) in &k.ops {
        #[expect(clippy::cast_precision_loss, reason = "a vector width")]
        let lanes = *width as f64;
        let simd = f64::from(m.compute.simd_width.max(1));
        let efficiency =
            if across { 1.0 } else { (lanes / simd).clamp(m.compute.scalar_efficiency, 1.0) };
        let (flops, rate) = match kind {
            // The peak rate counts a fused multiply-add as two.
            OpKind::Add | OpKind::Mul | OpKind::Fma => (2.0, m.compute.f32_gflops),
            OpKind::Div => (m.compute.divide_flops, m.compute.f32_gflops),
            OpKind::Special => (m.compute.special_flops, m.compute.f32_gflops),
            OpKind::Other => (1.0, m.compute.integer_gops),
        };
        arithmetic += count * lanes * flops / rate / efficiency;
    }
    let workers = if across { items.min(slots * group) } else { k.groups.min(units) };
    let loops = k.iterations * m.compute.loop_overhead_ns / workers.max(1.0);
    arithmetic = arithmetic / (even * lanes_used).max(1e-6) + loops;
    // On a GPU other work-items run meanwhile.
    if !across {
        arithmetic += k.waiting * WAIT_NS / workers.max(1.0);
    }

    // One work-item waits for its own loads, however idle the device is.
    let own: f64 =
        k.accesses.iter().filter(|a| is_global(a) && !a.store).map(|a| a.count / items).sum();
    let chain = if across { own * LATENCY_NS } else { 0.0 };
    let starting = (k.groups * x.work_group_overhead_ns + items * x.work_item_overhead_ns)
        / if across { 1.0 } else { units.min(k.groups).max(1.0) };
    let barriers = k.barriers * items * x.barrier_item_ns;
    // While a group waits for a block, the others of its unit go on.
    let company = (k.groups / units).min(per_unit).max(1.0);
    let stalls = if across {
        (k.groups / (units * company)).ceil() * k.stalls * ROUND_TRIP_NS / company
    } else {
        0.0
    };

    let busiest = memory.max(arithmetic).max(chain);
    let ns =
        busiest + 0.1 * (memory + arithmetic - busiest).max(0.0) + starting + barriers + stalls;
    let us = x.launch_us + ns / 1e3;
    let share = |gb_per_s: f64| {
        format!(
            "{:.0}% of {gb_per_s:.0} GB/s",
            (traffic / (us * 1e3) / gb_per_s * 100.0).min(999.0)
        )
    };
    let launch = x.launch_us * 1e3;
    let bound = if launch >= ns {
        "the launch".to_owned()
    } else if starting + barriers > busiest {
        if barriers > starting { "barriers" } else { "starting work-groups" }.to_owned()
    } else if busiest == chain {
        "the latency of one work-item's loads".to_owned()
    } else if busiest == arithmetic {
        if loops > arithmetic / 2.0 { "loop overhead" } else { "arithmetic" }.to_owned()
    } else if cached > read + written {
        "cache traffic".to_owned()
    } else if read >= written {
        format!("global reads, {}", share(m.memory.read_gb_per_s))
    } else {
        format!("global writes, {}", share(m.memory.copy_gb_per_s))
    };
    Prediction { us, bound }
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
