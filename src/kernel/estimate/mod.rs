//! The kernel model: predicts the time of a kernel from its static features and a device's cost
//! model, and says which resource bounds it.
//!
//! For each kernel, the model computes the time that every resource would take on its own (each
//! level of memory, waiting for loads, arithmetic, starting work-groups). Together they take
//! somewhat longer than the longest of them. Costs that nothing hides are added on top: the launch
//! and barriers. The prediction only ranks candidates; measurements decide.

mod across;
mod within;

use super::ir::Mem;
use super::profile::{Access, KernelProfile, OpKind, Profile};
use crate::device::cost_model::{CostModel, Locality};
use std::collections::BTreeMap;

/// A predicted time.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// Time of the whole program, in microseconds.
    pub us: f64,
    /// Description of the resource that bounds the slowest kernel, for people.
    pub bound: String,
}

/// Exponent of the norm that combines overlapping times, `(sum of t^POWER)^(1 / POWER)`. Reads on
/// an H200 by too few work-items, which both their number and the bandwidth limit, fit an exponent
/// of 2.7.
const POWER: f64 = 3.0;

/// Predicts the time of a program on a device.
pub fn estimate(profile: &Profile, model: &CostModel) -> Prediction {
    let mut out = Prediction { us: 0.0, bound: "nothing to do".to_owned() };
    let mut slowest = 0.0;
    for (k, times) in profile.kernels.iter().zip(&profile.launches) {
        let t = kernel(k, model);
        let us = t.us * times;
        out.us += us;
        if us > slowest {
            slowest = us;
            out.bound = t.bound;
        }
    }
    // Lower bound, whatever the footprints of single accesses are: each input is read and each
    // result is written.
    let launches = profile.launches.iter().sum::<f64>() * model.execution.launch_us;
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
    if k.groups * real(k.group_size) == 0.0 {
        return Prediction { us: 0.0, bound: "nothing to do".to_owned() };
    }
    let parts = match m.memory.locality {
        Locality::AcrossItems => across::parts(k, m),
        Locality::WithinItem => within::parts(k, m),
    };
    parts.predict(m)
}

/// The times that make up the time of a kernel.
#[derive(Debug, Default)]
struct Parts {
    /// Resources that work at the same time.
    overlapping: Vec<Part>,
    /// Costs that nothing overlaps.
    alone: Vec<Part>,
}

/// One resource.
#[derive(Debug)]
struct Part {
    /// Name for people.
    what: String,
    /// Time in nanoseconds that the kernel needs of this resource.
    ns: f64,
    /// The work done, the peak rate per nanosecond, and the unit; `None` if only a time is known.
    rate: Option<(f64, f64, &'static str)>,
}

impl Part {
    /// A resource with a rate, in bytes or operations.
    fn rate(what: impl Into<String>, share: Share, peak: f64, unit: &'static str) -> Part {
        Part { what: what.into(), ns: share.ns, rate: Some((share.work, peak, unit)) }
    }

    fn time(what: &str, ns: f64) -> Part {
        Part { what: what.to_owned(), ns, rate: None }
    }
}

impl Parts {
    fn predict(&self, m: &CostModel) -> Prediction {
        let alone: f64 = self.alone.iter().map(|p| p.ns).sum();
        let powers: f64 = self.overlapping.iter().map(|p| p.ns.powf(POWER)).sum();
        let ns = powers.powf(1.0 / POWER) + alone;
        let launch = Part::time("the launch", m.execution.launch_us * 1e3);
        let whole = ns + launch.ns;
        let longest = self.overlapping.iter().chain(&self.alone);
        let longest = longest.max_by(|a, b| a.ns.total_cmp(&b.ns));
        let most = longest.filter(|_| ns > launch.ns).unwrap_or(&launch);
        let bound = match most.rate {
            Some((work, peak, unit)) => {
                format!("{}, {}", most.what, of_peak(work, whole, peak, unit))
            }
            None => format!("{}, {:.0}% of the time", most.what, 100.0 * most.ns / whole),
        };
        Prediction { us: whole / 1e3, bound }
    }
}

/// Work of one kind, and the time that it takes alone.
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

    /// The same work in a time multiplied by `factor`.
    fn times(self, factor: f64) -> Share {
        Share { ns: self.ns * factor, ..self }
    }
}

/// Formats work in a time as a share of a peak in 10^9 units a second: `71% of 4.1 TB/s`.
fn of_peak(work: f64, ns: f64, peak: f64, unit: &str) -> String {
    let share = (100.0 * work / ns / peak).min(999.0);
    if peak >= 1000.0 {
        format!("{share:.0}% of {:.1} T{unit}", peak / 1000.0)
    } else {
        format!("{share:.0}% of {peak:.0} G{unit}")
    }
}

/// Arithmetic: a group of operations of one kind and width.
struct Operations {
    /// Number of operations.
    work: f64,
    /// Peak rate per nanosecond.
    rate: f64,
    /// Whether they are integer operations.
    integer: bool,
}

/// Converts operations on vectors of `lanes` lanes to work and peak rate.
fn operations(kind: OpKind, lanes: f64, bytes: usize, count: f64, m: &CostModel) -> Operations {
    let c = &m.compute;
    let peak = match bytes {
        2 => c.f16_gflops.unwrap_or(c.f32_gflops),
        8 => c.f64_gflops,
        _ => c.f32_gflops,
    };
    let (flops, rate) = match kind {
        // The peak rate counts a fused multiply-add as two.
        OpKind::Add | OpKind::Mul | OpKind::Fma => (2.0, peak),
        OpKind::Div => (c.divide_flops, peak),
        OpKind::Special => (c.special_flops, peak),
        OpKind::Other => (1.0, c.integer_gops),
    };
    Operations { work: count * lanes * flops, rate, integer: kind == OpKind::Other }
}

/// Bandwidth of the smallest cache that holds this many bytes.
fn level(bytes: f64, m: &CostModel) -> Option<f64> {
    m.memory.cache.iter().find(|c| bytes <= whole(c.bytes)).map(|c| c.gb_per_s)
}

/// Number of distinct bytes of global memory that the kernel touches.
fn traffic(k: &KernelProfile) -> f64 {
    let mut touched: BTreeMap<Mem, (f64, f64)> = BTreeMap::new();
    for a in k.accesses.iter().filter(|a| is_global(a)) {
        let of = touched.entry(a.mem).or_default();
        *of = (of.0 + a.footprint, a.array_bytes);
    }
    touched.values().map(|(bytes, array)| bytes.min(*array)).sum()
}

/// Number of bytes of one access.
fn bytes(a: &Access) -> f64 {
    real(a.width * a.elem_bytes)
}

fn is_global(a: &Access) -> bool {
    matches!(a.mem, Mem::Global(_))
}

#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn real(n: usize) -> f64 {
    n as f64
}

#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn whole(n: u64) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn model(name: &str) -> CostModel {
        let shipped = CostModel::shipped().expect("the shipped models");
        shipped.into_iter().find(|m| m.name == name).expect("the model")
    }

    pub(super) fn access(mem: Mem, store: bool, count: f64) -> Access {
        let bytes = if matches!(mem, Mem::Global(_)) { 4.0 * count } else { 1024.0 };
        Access {
            mem,
            store,
            elem_bytes: 4,
            width: 1,
            count,
            array_bytes: bytes,
            footprint: bytes,
            group_footprint: bytes.min(1024.0),
            item_footprint: 4.0,
            item_stride: Some(1),
            loop_stride: Some(0),
            walk: vec![(Some(1), count)],
            streak: 0,
            home_stride: Some(1),
            along: 1,
        }
    }

    /// A kernel of many work-items on a GPU.
    fn large() -> KernelProfile {
        KernelProfile { groups: 65_536.0, group_size: 256, ..KernelProfile::default() }
    }

    fn bound(k: KernelProfile) -> String {
        let profile = Profile { kernels: vec![k], launches: vec![1.0], bytes: 0.0 };
        estimate(&profile, &model("generic-gpu")).bound
    }

    #[test]
    fn every_kind_of_bound_says_how_near_it_is() {
        let items = 65_536.0 * 256.0;
        let ops = |kind, count| BTreeMap::from([((kind, 1, 4, 1), count)]);
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
            let ops = BTreeMap::from([((OpKind::Fma, 1, bytes, 1), 1e12)]);
            let kernels = vec![KernelProfile { ops, ..large() }];
            estimate(&Profile { kernels, launches: vec![1.0], bytes: 0.0 }, m).us
        };
        let mut m = model("generic-gpu");
        assert!(of(&m, 8) > 20.0 * of(&m, 4));
        assert_eq!(of(&m, 2), of(&m, 4));
        m.compute.f16_gflops = Some(2.0 * m.compute.f32_gflops);
        assert!(of(&m, 2) < of(&m, 4));
    }

    #[test]
    fn a_buffer_is_touched_once() {
        let half =
            Access { footprint: 600.0, array_bytes: 1000.0, ..access(Mem::Global(0), false, 1.0) };
        let other = Access { mem: Mem::Global(1), ..half.clone() };
        let own = access(Mem::Local(0), false, 1e9);
        let k = KernelProfile { accesses: vec![half.clone(), half, other, own], ..large() };
        assert_eq!(traffic(&k), 1600.0);
    }
}
