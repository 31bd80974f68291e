//! The kernel model: predicts the time of a kernel from its static features and a device's cost
//! model, and says which resource bounds it.
//!
//! For each kernel, the model computes the time that every resource would take on its own (each
//! level of memory, waiting for loads, arithmetic, starting work-groups). Together they take
//! somewhat longer than the longest of them. Costs that nothing hides are added on top: the launch
//! and barriers. The prediction only ranks candidates; measurements decide.

mod across;
mod count;
mod critical_path;
mod dependence_chain;
mod features;
mod op_kind;
mod parts;
mod pressure;
pub mod profile;
mod team;
mod trip_count;
mod within;

pub use parts::Prediction;
pub use trip_count::UNKNOWN;

use crate::device::cost_model::{CostModel, Locality};
use features::{KernelProfile, real};
use parts::{level, of_peak};
use profile::{Profile, Unit};

/// Predicts the time of a program on a device.
pub fn estimate(profile: &Profile, model: &CostModel) -> Prediction {
    let mut out = Prediction { us: 0.0, kernels_us: vec![], bound: NOTHING.to_owned() };
    let mut slowest = 0.0;
    let mut launches = 0.0;
    for unit in &profile.units {
        let (us, bound) = match unit {
            Unit::Kernel(k) => {
                let (each, bound) = kernel(&profile.kernels[*k], model);
                launches += profile.launches[*k];
                (each * profile.launches[*k], bound)
            }
            Unit::Loop(team, phases) => {
                let of = phases.iter().map(|k| (&profile.kernels[*k], profile.launches[*k]));
                launches += 1.0;
                team::predicted(*team, of, model)
            }
        };
        out.us += us;
        out.kernels_us.push(us);
        if us > slowest {
            slowest = us;
            out.bound = bound;
        }
    }
    // Lower bound, whatever the footprints of single accesses are: each input is read and each
    // result is written.
    let launches = launches * model.execution.launch_us;
    let bandwidth = level(profile.bytes, model).unwrap_or(model.memory.read_gb_per_s);
    let least = launches + profile.bytes / bandwidth / 1e3;
    if least > out.us {
        out.us = least + TIE * out.us;
        out.bound =
            format!("global memory, {}", of_peak(profile.bytes, least * 1e3, bandwidth, "B/s"));
    }
    out
}

/// Share of its own time that a program takes beside the lower bound, so that programs which the bound makes equal have an order.
const TIE: f64 = 0.01;

/// What bounds kernels without work-items.
const NOTHING: &str = "nothing to do";

/// Returns the time of one launch in microseconds, and what bounds it.
fn kernel(k: &KernelProfile, m: &CostModel) -> (f64, String) {
    if k.groups * real(k.group_size) == 0.0 {
        return (0.0, NOTHING.to_owned());
    }
    let parts = match m.memory.locality {
        Locality::AcrossItems => across::parts(k, m),
        Locality::WithinItem => within::parts(k, m),
    };
    parts.predict(m)
}

#[cfg(test)]
mod tests {
    use super::features::{Access, Streak};
    use super::op_kind::OpKind;
    use super::parts::traffic;
    use super::*;
    use crate::kernel::ir::Mem;
    use std::collections::BTreeMap;

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
            aligned: true,
            count,
            uneven: 1.0,
            lanes_held: 1.0,
            array_bytes: bytes,
            footprint: bytes,
            group_footprint: bytes.min(1024.0),
            item_footprint: 4.0,
            item_stride: Some(1),
            lanes: vec![],
            loop_stride: Some(0),
            walk: vec![(Some(1), count)],
            of_group: vec![count],
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
        alone(k, &model("generic-gpu")).bound
    }

    /// Estimates a program of one kernel.
    fn alone(k: KernelProfile, model: &CostModel) -> Prediction {
        let (kernels, units) = (vec![k], vec![Unit::Kernel(0)]);
        estimate(&Profile { kernels, launches: vec![1.0], units, bytes: 0.0 }, model)
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
                KernelProfile { ops_held: ops(OpKind::Fma, 1e4 * items), ..large() },
                "arithmetic, ",
                "of 10.0 TFLOP/s",
            ),
            (
                KernelProfile { ops_held: ops(OpKind::Other, 1e4 * items), ..large() },
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
    fn atomic_operations_have_a_rate_where_it_is_known() {
        let of = |m: &CostModel, atomics| alone(KernelProfile { atomics, ..large() }, m);
        let mut m = model("generic-gpu");
        assert_eq!(of(&m, 1e9).us, of(&m, 0.0).us);
        m.memory.atomic_gops = Some(50.0);
        let slow = of(&m, 1e9);
        assert!(
            slow.us >= 20_000.0 && slow.bound.starts_with("atomic operations, "),
            "{}",
            slow.bound
        );
    }

    #[test]
    fn loads_at_random_fetch_a_sector_each() {
        let random = Access {
            item_stride: None,
            array_bytes: 1e9,
            footprint: 1e9,
            group_footprint: 1e9,
            ..access(Mem::Global(0), false, 1e9)
        };
        let of = |a: Access| {
            alone(KernelProfile { accesses: vec![a], ..large() }, &model("nvidia-h200")).us
        };
        // 32 bytes for each, but for what the cache of all units has by chance.
        let least = 1e9 * 32.0 * 0.9 / 4230.0 / 1e3;
        let us = of(random.clone());
        assert!(us > least, "{us} {least}");
        assert!(of(Access { item_stride: Some(1), ..random }) < us / 4.0);
    }

    /// A load of 16 bytes by each of so many work-items, of which neighbours are `stride` scalars apart. The array has so many bytes for
    /// each work-item.
    fn vector(stride: i64, items: f64, array_bytes: f64) -> Access {
        Access {
            width: 4,
            item_stride: Some(stride),
            footprint: 16.0 * items,
            array_bytes: array_bytes * items,
            group_footprint: 16.0 * 256.0,
            item_footprint: 16.0,
            ..access(Mem::Global(0), false, items)
        }
    }

    #[test]
    fn stores_of_parts_of_lines_take_the_time_of_the_lines() {
        // 256 MiB in vectors of 16 bytes. On an H200: 62 us side by side, 480 us if each is in a line of its own.
        let us = |stride, store| {
            let vector = Access { store, ..vector(stride, f64::from(1 << 24), 16.0) };
            let streak = Streak { places: (0..8).map(|k| 4 * k).collect(), step: 0 };
            let (accesses, streaks) = (vec![vector], vec![streak]);
            let k = KernelProfile { accesses, streaks, ..large() };
            alone(k, &model("nvidia-h200")).us
        };
        let (beside, apart) = (us(4, true), us(32, true));
        assert!((6.0..10.0).contains(&(apart / beside)), "{apart} {beside}");
        assert!(us(32, false) < apart / 3.0, "caches gather what is loaded in parts");
    }

    #[test]
    fn sectors_that_are_used_in_parts_are_fetched_again_where_caches_are_crowded() {
        // A row of 64 floats for each work-item in 16 vectors, or the same floats by neighbours.
        let us = |stride, groups: f64| {
            let items = groups * 256.0;
            let vector = vector(stride, items, 256.0);
            let streak = Streak { places: (0..16).map(|k| 4 * k).collect(), step: 0 };
            let accesses = vec![vector; 16];
            let k = KernelProfile { groups, accesses, streaks: vec![streak], ..large() };
            alone(k, &model("nvidia-h200")).us
        };
        let (rows, neighbours) = (us(64, 65_536.0), us(4, 65_536.0));
        assert!(rows > 4.0 * neighbours, "{rows} {neighbours}");
    }

    #[test]
    fn doubles_and_halves_have_their_own_rates() {
        let of = |m: &CostModel, bytes| {
            let ops_held = BTreeMap::from([((OpKind::Fma, 1, bytes, 1), 1e12)]);
            alone(KernelProfile { ops_held, ..large() }, m).us
        };
        let mut m = model("generic-gpu");
        assert!(of(&m, 8) > 20.0 * of(&m, 4));
        assert_eq!(of(&m, 2), of(&m, 4));
        m.compute.f16_gflops = Some(2.0 * m.compute.f32_gflops);
        assert!(of(&m, 2) < of(&m, 4));
    }

    #[test]
    fn programs_that_the_lower_bound_makes_equal_have_an_order() {
        let us = |items| {
            let of = KernelProfile { accesses: vec![vector(4, items, 16.0)], ..large() };
            let (units, launches) = (vec![Unit::Kernel(0)], vec![1.0]);
            let profile = Profile { kernels: vec![of], launches, units, bytes: 1e10 };
            estimate(&profile, &model("nvidia-h200")).us
        };
        let (less, more) = (us(1e6), us(1e7));
        assert!(less < more && more < 1.02 * less, "{less} {more}");
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
