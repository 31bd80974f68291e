//! The parts that make up the predicted time of a kernel, and what all models of devices compute
//! alike.

use super::features::{Access, KernelProfile, real};
use super::op_kind::OpKind;
use crate::device::cost_model::CostModel;
use crate::kernel::ir::Mem;
use std::collections::BTreeMap;

/// A predicted time.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// Time of the whole program, in microseconds.
    pub us: f64,
    /// Time of what each launch runs, over all launches of it, in microseconds.
    pub kernels_us: Vec<f64>,
    /// Description of the resource that bounds the slowest kernel, for people.
    pub bound: String,
}

/// Exponent of the norm that combines overlapping times, `(sum of t^POWER)^(1 / POWER)`. Reads on
/// an H200 by too few work-items, which both their number and the bandwidth limit, fit an exponent
/// of 2.7.
const POWER: f64 = 3.0;

/// The times that make up the time of a kernel.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// Resources that work at the same time.
    pub(super) overlapping: Vec<Part>,
    /// Costs that nothing overlaps.
    pub(super) alone: Vec<Part>,
}

/// One resource.
#[derive(Debug)]
pub(super) struct Part {
    /// Name for people.
    what: String,
    /// Time in nanoseconds that the kernel needs of this resource.
    ns: f64,
    /// The work done, the peak rate per nanosecond, and the unit; `None` if only a time is known.
    rate: Option<(f64, f64, &'static str)>,
}

impl Part {
    /// A resource with a rate, in bytes or operations.
    pub(super) fn rate(
        what: impl Into<String>,
        share: Share,
        peak: f64,
        unit: &'static str,
    ) -> Part {
        Part { what: what.into(), ns: share.ns, rate: Some((share.work, peak, unit)) }
    }

    pub(super) fn time(what: &str, ns: f64) -> Part {
        Part { what: what.to_owned(), ns, rate: None }
    }
}

impl Parts {
    /// Returns the time of one launch in microseconds, and what bounds it.
    pub(super) fn predict(&self, m: &CostModel) -> (f64, String) {
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
        (whole / 1e3, bound)
    }
}

/// Work of one kind, and the time that it takes alone.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Share {
    /// Bytes or operations.
    pub(super) work: f64,
    /// Nanoseconds.
    pub(super) ns: f64,
}

impl Share {
    pub(super) fn add(&mut self, work: f64, ns: f64) {
        self.work += work;
        self.ns += ns;
    }

    /// The same work in a time multiplied by `factor`.
    pub(super) fn times(self, factor: f64) -> Share {
        Share { ns: self.ns * factor, ..self }
    }
}

/// Formats work in a time as a share of a peak in 10^9 units a second: `71% of 4.1 TB/s`.
pub(super) fn of_peak(work: f64, ns: f64, peak: f64, unit: &str) -> String {
    let share = (100.0 * work / ns / peak).min(999.0);
    if peak >= 1000.0 {
        format!("{share:.0}% of {:.1} T{unit}", peak / 1000.0)
    } else {
        format!("{share:.0}% of {peak:.0} G{unit}")
    }
}

/// Arithmetic: a group of operations of one kind and width.
pub(super) struct Operations {
    /// Number of operations.
    pub(super) work: f64,
    /// Peak rate per nanosecond.
    pub(super) rate: f64,
    /// Whether they are integer operations.
    pub(super) integer: bool,
    /// Whether matrix units do them.
    pub(super) matrix: bool,
}

/// Converts operations on vectors of `lanes` lanes to work and peak rate.
pub(super) fn operations(
    kind: OpKind,
    lanes: f64,
    bytes: usize,
    count: f64,
    m: &CostModel,
) -> Operations {
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
        // The results of a work-item are the products' share of 16 by 8.
        OpKind::Products(of) => (
            (4 * 2 * of.terms() * of.instructions()) as f64,
            c.products(of).unwrap_or(c.f32_gflops),
        ),
        OpKind::Other => (1.0, c.integer_gops),
    };
    Operations {
        work: count * lanes * flops,
        rate,
        integer: kind == OpKind::Other,
        matrix: matches!(kind, OpKind::Products(_)),
    }
}

/// Bandwidth of the smallest cache that holds this many bytes.
pub(super) fn level(bytes: f64, m: &CostModel) -> Option<f64> {
    m.memory.cache.iter().find(|c| bytes <= whole(c.bytes)).map(|c| c.gb_per_s)
}

/// Returns the distinct bytes of each global memory that kernels touch, each launched so many times.
pub(super) fn touched<'a>(
    kernels: impl IntoIterator<Item = (&'a KernelProfile, f64)>,
) -> BTreeMap<Mem, f64> {
    let mut all = BTreeMap::new();
    for (k, launches) in kernels {
        for a in k.accesses.iter().filter(|a| is_global(a)) {
            let bytes: &mut f64 = all.entry(a.mem).or_default();
            *bytes = (*bytes + launches * a.footprint).min(a.array_bytes);
        }
    }
    all
}

/// Number of distinct bytes of global memory that one launch of the kernel touches.
pub(super) fn traffic(k: &KernelProfile) -> f64 {
    touched([(k, 1.0)]).values().sum()
}

/// Number of bytes of one access.
pub(super) fn bytes(a: &Access) -> f64 {
    real(a.width * a.elem_bytes)
}

pub(super) fn is_global(a: &Access) -> bool {
    matches!(a.mem, Mem::Global(_))
}

pub(super) fn whole(n: u64) -> f64 {
    n as f64
}
