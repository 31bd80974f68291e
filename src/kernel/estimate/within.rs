//! Estimates kernels for devices that run a work-item as an iteration of a loop (CPUs): cores with
//! vector units and caches.

use super::features::{Access, KernelProfile, Streak, WRITTEN_OUT, real};
use super::parts::{Part, Parts, Share, bytes, is_global, operations, traffic, whole};
use crate::device::cost_model::CostModel;
use crate::kernel::ir::Mem;

/// Share of the latency of an addition that is visible where nothing else hides it.
const SEEN: f64 = 0.75;

/// Associativity of a cache: the number of places that a line can be at. This is the smallest
/// number among common caches.
const WAYS: f64 = 8.0;

/// Stride in bytes from which prefetchers do not foresee the next access: they keep to a page, or
/// to half of one.
const PAGE: f64 = 2048.0;

/// Number of streams that prefetchers follow at the same time.
const STREAMS: f64 = 16.0;

/// Number of outstanding line fills of a core.
const BUFFERS: f64 = 10.0;

/// Lines that a unit has to fetch because its cache does not hold them any more, or not yet.
struct Misses {
    /// Number of misses, over all work-items.
    lines: f64,
    /// Number of distinct lines among them.
    distinct: f64,
    /// Whether prefetchers foresee the accesses.
    foreseen: bool,
}

/// Counts the misses of a cache of this many bytes when a unit goes through a streak in the order
/// of its loops.
///
/// The count proceeds from the innermost loop outwards. It describes the lines touched so far as
/// `runs` runs of neighbouring lines, each `long` lines long. As long as these lines stay in the
/// cache, an iteration of the next loop misses only the lines that are new in it. Runs at a
/// distance of a large power of two compete for a few sets of the cache.
fn misses(a: &Access, streak: &Streak, line: f64, cache: f64) -> Misses {
    let scalar = real(a.elem_bytes.max(1));
    let in_line = (line / scalar).max(1.0);
    #[expect(clippy::cast_possible_truncation, reason = "a few bytes")]
    let blocks = streak.line_blocks(in_line as i64);
    let mut runs = real(1 + blocks.windows(2).filter(|w| w[1] > w[0] + 1).count());
    let mut long = (real(blocks.len()) / runs).max(real(a.width) / in_line).max(1.0);
    let power = |bytes: f64| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a distance")]
        let n = (bytes as u64).max(1);
        whole(1 << n.trailing_zeros()).max(line)
    };
    let mut apart = blocks
        .windows(2)
        .filter(|w| w[1] > w[0] + 1)
        .map(|w| power((w[1] - w[0]) as f64 * line))
        .fold(f64::INFINITY, f64::min);
    let most = (a.footprint * real(streak.places.len()) / line).max(1.0);
    let lines = cache / line;
    let room = |long: f64, apart: f64| {
        (lines * (long * line / apart).min(1.0)).max(WAYS * long).min(lines)
    };
    // The places of a streak are not visited in ascending order: if its lines do not fit, each
    // visit misses.
    let crowd = runs * long >= room(long, apart);
    let mut missed = if crowd { real(streak.places.len()).max(runs * long) } else { runs * long };
    let mut foreseen = true;
    let mut first = true;
    for &(stride, trips) in &a.walk {
        let trips = trips.max(1.0);
        let distinct = (runs * long).min(most);
        let room = room(long, apart);
        // Strictly less, because the other data of the kernel need space in the cache, too.
        let fits = distinct < room;
        let Some(stride) = stride else {
            // The addresses are arbitrary: a line misses if the cache does not hold it yet, or not
            // any more.
            let total = missed * trips;
            let absent = (1.0 - lines / most).max(0.0);
            missed = (total * absent).max(total.min(most));
            long = most;
            runs = 1.0;
            foreseen = false;
            continue;
        };
        let step = stride.unsigned_abs() as f64 * scalar;
        let new = if step / line >= long { 1.0 } else { step / line / long };
        missed *= 1.0 + (trips - 1.0) * if fits { new } else { 1.0 };
        if first && step >= PAGE && trips > STREAMS {
            foreseen = false;
        }
        if step > 0.0 {
            first = false;
        }
        if new >= 1.0 {
            runs *= trips;
            apart = apart.min(power(step));
        } else {
            long *= 1.0 + (trips - 1.0) * new;
        }
    }
    Misses { lines: missed, distinct: (runs * long).min(most).min(missed), foreseen }
}

/// Returns the times that the resources take for the kernel.
pub(super) fn parts(k: &KernelProfile, m: &CostModel) -> Parts {
    let x = &m.execution;
    let items = k.groups * real(k.group_size).max(1.0);
    // Groups run in whole rounds, and the last round leaves some units idle.
    let units = whole(x.groups_to_saturate).max(1.0);
    let busy = (k.groups / ((k.groups / units).ceil().max(1.0) * units)).max(1e-6);
    let workers = k.groups.min(units).max(1.0);
    let streaming = (k.groups.min(units) / whole(x.items_to_saturate)).min(1.0);
    let simd = f64::from(m.compute.simd_width.max(1));
    let line = whole(m.memory.line_bytes);
    let touched = traffic(k);
    let mut ports = Share::default();
    let kept = whole(m.compute.register_bytes_per_item);
    for a in &k.accesses {
        // A small array of one work-item, with indices that are known when it is compiled, is in
        // registers.
        let own = !is_global(a) && (k.group_size == 1 || matches!(a.mem, Mem::Private(_)));
        let known = a.walk.iter().all(|(s, trips)| *s == Some(0) || *trips <= WRITTEN_OUT);
        if own && known && a.array_bytes <= kept {
            continue;
        }
        // A scalar access takes as long as a vector access, unless a compiler combines it with its
        // neighbours.
        let dense = a.home_stride.is_some_and(|s| s != 0) && a.width == 1;
        let at_once = if dense { real(a.along.min(m.compute.simd_width as usize)) } else { 1.0 };
        let slots = a.count * bytes(a).max(simd * 4.0 / at_once);
        ports.add(slots, slots / nearest(m));
    }
    // Each level serves the misses of the level before it.
    let caches = &m.memory.cache;
    let mut levels: Vec<Share> = vec![Share::default(); caches.len() + 1];
    let mut late = 0.0;
    for (s, streak) in k.streaks.iter().enumerate() {
        let Some(a) = k.accesses.iter().find(|a| a.streak == s && is_global(a)) else { continue };
        let visits = a.walk.iter().map(|w| w.1.max(1.0)).product::<f64>();
        let all = a.count * real(streak.places.len());
        for (level, share) in levels.iter_mut().enumerate().skip(1) {
            let (size, all_units) =
                (whole(caches[level - 1].bytes) / units, whole(caches[level - 1].bytes));
            let missed = misses(a, streak, line, size);
            // A hoisted or guarded load does not run in every iteration of its loops.
            let share_of = (a.count / visits).min(1.0);
            let mut lines = (missed.lines * share_of.max(missed.distinct / missed.lines))
                .min(all * (bytes(a) / line).max(1.0));
            // Data that fit are still in the cache from the previous run.
            if touched <= all_units {
                lines = (lines - missed.distinct).max(0.0);
            }
            let behind = caches.get(level);
            let rate = match behind {
                Some(c) => c.gb_per_s,
                None if a.store => m.memory.write_gb_per_s,
                None => m.memory.read_gb_per_s,
            };
            share.add(lines * line, lines * line / rate);
            if !missed.foreseen && !a.store {
                let ns = behind.and_then(|c| c.latency_ns).unwrap_or(m.memory.latency_ns);
                late += lines * ns / BUFFERS / workers;
            }
        }
    }
    let (mut floats, mut integers) = (Share::default(), Share::default());
    for ((kind, width, bytes, along), count) in &k.ops {
        let wide = real(*width * *bytes) / 4.0;
        let wide = if *width == 1 {
            wide * real((*along).min(m.compute.simd_width as usize))
        } else {
            wide
        };
        let efficiency = (wide / simd).clamp(m.compute.scalar_efficiency, 1.0);
        let o = operations(*kind, real(*width), *bytes, *count, m);
        let ns = o.work / o.rate / efficiency;
        if o.integer { &mut integers } else { &mut floats }.add(o.work, ns);
    }
    let iterations = k.iterations - k.iterations_along * (1.0 - 1.0 / simd);
    let loops = iterations * m.compute.loop_overhead_ns / workers;
    let waiting = k.waiting * SEEN * m.compute.add_latency_ns / workers;
    let calculating = floats.ns / busy + waiting;
    let starting =
        (k.groups * x.work_group_overhead_ns + items * x.work_item_overhead_ns) / workers;
    let barriers = k.barriers * items * x.barrier_item_ns;
    let slow = 1.0 / streaming.min(busy).max(1e-6);
    // Cores have separate ports for floats and for indices, and work on both at the same time.
    let floats = if 2.0 * waiting > calculating {
        Part::time("operations that wait for each other", calculating)
    } else {
        let share = Share { ns: calculating, ..floats };
        Part::rate("arithmetic", share, m.compute.f32_gflops, "FLOP/s")
    };
    let integers = integers.times(1.0 / busy);
    let mut overlapping = vec![
        Part::rate("loads from the nearest cache", ports.times(1.0 / busy), nearest(m), "B/s"),
        floats,
        Part::rate("integer arithmetic", integers, m.compute.integer_gops, "op/s"),
        Part::time("loop overhead", loops),
        Part::time("loads that are not foreseen", late),
    ];
    for (n, share) in levels.into_iter().enumerate().skip(1) {
        let share = share.times(slow);
        overlapping.push(match caches.get(n) {
            Some(c) => Part::rate("cache traffic", share, c.gb_per_s, "B/s"),
            None => Part::rate("global memory", share, m.memory.read_gb_per_s, "B/s"),
        });
    }
    Parts {
        overlapping,
        alone: vec![Part::time("starting work-groups", starting), Part::time("barriers", barriers)],
    }
}

/// Bandwidth of the nearest cache.
fn nearest(m: &CostModel) -> f64 {
    m.memory.cache.first().map_or(m.memory.read_gb_per_s, |c| c.gb_per_s)
}

#[cfg(test)]
mod tests {
    use super::super::tests::access;
    use super::*;

    /// Lines that a cache of 32 KiB misses in 1024 rows of 4096 floats, with loops in this order
    /// and accesses at these places.
    fn missed(walk: &[(i64, f64)], places: &[i64]) -> f64 {
        let count: f64 = walk.iter().map(|w| w.1).product();
        let a = Access {
            footprint: 4.0 * count,
            walk: walk.iter().map(|(s, t)| (Some(*s), *t)).collect(),
            of_group: walk.iter().map(|w| w.1).collect(),
            ..access(Mem::Global(0), false, count)
        };
        let streak = Streak { places: places.to_vec(), ..Streak::default() };
        misses(&a, &streak, 64.0, 32768.0).lines
    }

    #[test]
    fn caches_miss_by_the_order_of_loops() {
        let near = |got: f64, wanted: f64| {
            assert!((got / wanted - 1.0).abs() < 0.02, "{got} for {wanted}");
        };
        let all = 1024.0 * 4096.0;
        // Along rows, a line serves sixteen floats.
        near(missed(&[(1, 4096.0), (4096, 1024.0)], &[0]), all / 16.0);
        // Down columns a line serves one float, unless only a few rows are walked at a time and
        // they do not share the same sets.
        near(missed(&[(4096, 1024.0), (1, 4096.0)], &[0]), all);
        near(missed(&[(4096, 16.0), (1, 4096.0)], &[0]), 16.0 * 4096.0);
        near(missed(&[(4096, 4.0), (1, 4096.0)], &[0]), 4.0 * 4096.0 / 16.0);
        near(missed(&[(4112, 16.0), (1, 4096.0)], &[0]), 4096.0);
        // The same with an unrolled loop.
        let rows = |n: i64| (0..n).map(|r| 4096 * r).collect::<Vec<_>>();
        near(missed(&[(1, 4096.0)], &rows(16)), 16.0 * 4096.0);
        near(missed(&[(1, 4096.0)], &rows(4)), 4.0 * 4096.0 / 16.0);
        // Data that fit are read once, however often they are used.
        near(missed(&[(1, 4096.0), (0, 100.0)], &[0]), 256.0);
        near(missed(&[(1, 65536.0), (0, 100.0)], &[0]), 100.0 * 4096.0);
    }
}
