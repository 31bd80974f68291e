//! The additive estimate: the work of a term, in nanoseconds, from trip counts alone.
//!
//! The estimate knows parallelism and vectors, but neither reuse nor coalescing. It therefore only orders
//! terms within a skeleton and prunes hopeless ones; the model of the generated kernel ranks the rest.

use super::context::{Context, Level, Verdict};
use super::tunables::Target;
use crate::calculus::size::{Size, SizeEnv};
use crate::calculus::term::{MapKind, Op, ReduceKind, ScanKind, Term};
use crate::calculus::ty::Ty;
use rustc_hash::FxHashMap;
use std::cell::RefCell;

/// The cost of one node: what it adds to its arguments' costs, and the factor on them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    /// Nanoseconds.
    pub own: f64,
    /// Factor on the arguments' sum.
    pub times: f64,
}

/// One scalar operation in one work-item, in nanoseconds.
const OPERATION_NS: f64 = 0.3;
/// One view in an index computation, in nanoseconds: nearly nothing, but it makes shorter terms win ties.
pub(super) const VIEW_NS: f64 = 1e-4;

/// Returns the share of one node. `value` gives the value of a size; `result` is the type of the node's
/// result.
pub(super) fn share(
    op: &Op,
    sizes: &[Size],
    at: Context,
    target: &Target,
    value: &dyn Fn(&Size) -> f64,
    result: &Ty,
) -> Share {
    let n = || sizes.first().map_or(1.0, value);
    let only = |own| Share { own, times: 1.0 };
    match op {
        Op::Map(kind) => {
            let n = n();
            match kind {
                MapKind::Plain => only(VIEW_NS),
                MapKind::Seq => Share { own: target.loop_ns * n, times: n },
                MapKind::Unroll => Share { own: 0.0, times: n },
                MapKind::Glb(_) => Share {
                    own: target.launch_ns + n * target.item_ns,
                    times: (n / target.items).max(1.0),
                },
                MapKind::Wrg(_) => Share {
                    own: target.launch_ns + n * target.group_ns,
                    times: (n / target.groups).max(1.0),
                },
                MapKind::Lcl(_) | MapKind::Warp | MapKind::Lane => {
                    Share { own: target.barrier_ns, times: (n / target.lanes).max(1.0) }
                }
            }
        }
        Op::Reduce(kind) => {
            let n = n();
            let loop_ns = if *kind == ReduceKind::Unroll { 0.0 } else { target.loop_ns };
            // At host level this is a kernel of one work-item.
            let launch = if at.level() == Level::Host { target.launch_ns } else { 0.0 };
            Share { own: launch + n * (loop_ns + element(result, value, target)), times: n }
        }
        Op::ReduceLcl => {
            let n = n();
            let each = (n / target.lanes).max(1.0);
            let own = 2.0 * target.barrier_ns + each * element(result, value, target);
            Share { own, times: each }
        }
        Op::Scan(kind) => {
            let n = n();
            let step = target.loop_ns + element(result, value, target) / n.max(1.0);
            let launch = if at.level() == Level::Host { target.launch_ns } else { 0.0 };
            // At host level, every element is visited twice, by all work-items in parallel.
            if *kind == ScanKind::Assoc && at.level() == Level::Host {
                let each = 2.0 * (n / target.items).max(n.sqrt());
                Share { own: 2.0 * launch + each * step, times: each }
            } else {
                Share { own: launch + n * step, times: n }
            }
        }
        Op::ScanLcl(_) => {
            let n = n();
            let each = (n / target.lanes).max(1.0);
            let step = element(result, value, target) / n.max(1.0);
            Share { own: 4.0 * target.barrier_ns + each * step, times: each }
        }
        Op::Fold => {
            let n = n();
            let step = match at.level() {
                // The work-items of a group wait for each other after each step.
                Level::Group => target.barrier_ns,
                _ => element(result, value, target),
            };
            Share { own: n * (target.loop_ns + step), times: n }
        }
        // Extraction compares steps; how many there are is unknown.
        Op::While if at.level() == Level::Group => {
            Share { own: target.loop_ns + target.barrier_ns, times: 1.0 }
        }
        Op::Histogram => {
            let n = sizes.get(1).map_or(1.0, value);
            let step = target.loop_ns + OPERATION_NS;
            match at.level() {
                Level::Item => Share { own: n * step, times: n },
                Level::Group | Level::Warp => {
                    let each = (n / target.lanes).max(1.0);
                    Share { own: 2.0 * target.barrier_ns + each * step, times: each }
                }
                Level::Host => {
                    let each = (n / target.items).max(1.0);
                    Share { own: 2.0 * target.launch_ns + each * step, times: each }
                }
            }
        }
        Op::Blocked(_) => Share {
            own: 0.0,
            times: sizes.get(4).map_or(1.0, value) / sizes.get(3).map_or(1.0, value),
        },
        Op::BlockedRows => Share {
            own: 0.0,
            times: sizes.get(3).map_or(1.0, value) / sizes.get(2).map_or(1.0, value),
        },
        Op::Scalar(f) => only(OPERATION_NS * f.body.operations()),
        Op::Vectorize => {
            let w = n();
            Share { own: 0.0, times: (w / target.simd).ceil().max(1.0) }
        }
        Op::Cond => only(OPERATION_NS),
        _ => only(VIEW_NS),
    }
}

/// Returns the nanoseconds to write an intermediate value of type `t` and read it again.
pub(super) fn passing(t: &Ty, at: Context, target: &Target, value: &dyn Fn(&Size) -> f64) -> f64 {
    if at.level() == Level::Item {
        return 0.0;
    }
    let elements: f64 = t
        .components()
        .iter()
        .filter(|(dims, _)| !dims.is_empty())
        .map(|(dims, inner)| {
            let lanes = if let Ty::Vector(w, _) = inner { value(w) } else { 1.0 };
            dims.iter().map(value).product::<f64>() * lanes
        })
        .sum();
    match at.level() {
        Level::Host => elements * 8.0 / target.bytes_per_ns,
        // Each group has local memory of its own.
        Level::Group | Level::Warp => elements * 2.0 * OPERATION_NS / target.lanes,
        Level::Item => 0.0,
    }
}

/// Returns the nanoseconds to read one element of type `t` into an accumulator.
fn element(t: &Ty, value: &dyn Fn(&Size) -> f64, target: &Target) -> f64 {
    match t {
        Ty::Vector(w, _) => OPERATION_NS * (value(w) / target.simd).ceil().max(1.0),
        Ty::Pair(a, b) => element(a, value, target) + element(b, value, target),
        Ty::Array(n, t) => value(n) * element(t, value, target),
        Ty::Unit | Ty::Scalar(_) | Ty::Meta(_) => OPERATION_NS,
    }
}

/// Returns the estimate of a whole program, in microseconds.
pub(super) fn of_term(term: &Term, env: &SizeEnv, target: &Target) -> f64 {
    // Few sizes occur often.
    let known: RefCell<FxHashMap<Size, f64>> = RefCell::default();
    let value = |s: &Size| match s.as_constant() {
        Some(n) => n as f64,
        None => *known
            .borrow_mut()
            .entry(s.clone())
            .or_insert_with(|| s.eval(env).map_or(1.0, |v| v as f64)),
    };
    walk(term, Context::PROGRAM, target, &value) / 1e3
}

fn walk(t: &Term, at: Context, target: &Target, value: &dyn Fn(&Size) -> f64) -> f64 {
    let inside = match t.op() {
        Op::Compose | Op::Fork | Op::Bimap | Op::Map(MapKind::Plain) => at,
        op => match at.enter(op, true, false) {
            Verdict::Inside(c) => c,
            Verdict::No => at,
        },
    };
    let share = share(t.op(), t.sizes(), at, target, value, &t.ty().cod);
    let passed = match (t.op(), t.args()) {
        (Op::Compose, [outer, inner]) if computes(outer) && computes(inner) => {
            passing(&inner.ty().cod, at, target, value)
        }
        _ => 0.0,
    };
    passed
        + share.own
        + share.times * t.args().iter().map(|a| walk(a, inside, target, value)).sum::<f64>()
}

/// Returns the number of scalar operations in the code of a term; a loop that is unrolled counts once for
/// each copy. A vector whose lanes are read at computed places counts once for each lane and each place, and
/// padding on the way for a place.
pub(super) fn straight_line(t: &Term, value: &dyn Fn(&Size) -> f64) -> f64 {
    let inner: f64 = t.args().iter().map(|a| straight_line(a, value)).sum();
    let n = || t.sizes().first().map_or(1.0, value);
    match t.op() {
        Op::Map(MapKind::Unroll) | Op::Reduce(ReduceKind::Unroll) => n() * inner,
        Op::Vectorize if !computes(&t.args()[0]) => n() * places(t),
        Op::Scalar(f) => f.body.operations(),
        _ => inner,
    }
}

/// Returns how often a view reads at a computed place, or near an edge that is padded.
fn places(t: &Term) -> f64 {
    let here = f64::from(u8::from(matches!(t.op(), Op::Index | Op::Gather | Op::Pad(_))));
    here + t.args().iter().map(places).sum::<f64>()
}

/// Whether a term does more than rearrange elements.
pub(super) fn computes(t: &Term) -> bool {
    match t.op() {
        Op::Compose | Op::Fork | Op::Bimap | Op::Map(MapKind::Plain) => {
            t.args().iter().any(computes)
        }
        op => !op.is_view(),
    }
}
