//! Static features of one kernel. They are counts, not times.

use super::op_kind::OpKind;
use crate::kernel::ir::Mem;
use crate::kernel::ir::team::Shares;
use indexmap::IndexSet;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Maximum trip count of a loop that compilers are assumed to unroll.
pub const WRITTEN_OUT: f64 = 16.0;

/// One load or store in the code.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// The memory.
    pub mem: Mem,
    /// Whether it stores.
    pub store: bool,
    /// Bytes of a scalar.
    pub elem_bytes: usize,
    /// Scalars in one access.
    pub width: usize,
    /// Whether the place is a multiple of the width in all executions. Other vectors are accessed
    /// scalar by scalar on devices without unaligned accesses.
    pub aligned: bool,
    /// Number of executions, over all work-items.
    pub count: f64,
    /// How many times as often the busiest work-item of a group executes it as the average one does. It is more than 1
    /// where work-items of the group are idle.
    pub uneven: f64,
    /// How many lanes of warps execute it or are idle meanwhile, for each that executes it.
    pub lanes_held: f64,
    /// Size of the array in bytes.
    pub array_bytes: f64,
    /// Distinct bytes that all work-items together touch.
    pub footprint: f64,
    /// Distinct bytes that one work-group touches.
    pub group_footprint: f64,
    /// Distinct bytes that one work-item touches.
    pub item_footprint: f64,
    /// Distance in scalars between neighbouring work-items of dimension 0; `None` if not constant.
    pub item_stride: Option<i64>,
    /// Distances in scalars of the first [`LANES`] work-items of dimension 0 from the first one, if they are known and are no
    /// multiples of one distance.
    pub lanes: Vec<i64>,
    /// Distance in scalars between iterations of the innermost sequential loop around it; `None` if
    /// not constant, 0 outside loops.
    pub loop_stride: Option<i64>,
    /// The loops around it, innermost first, including loops over work-items and groups: the
    /// distance in scalars between iterations (`None` if not constant) and the number of
    /// iterations.
    pub walk: Vec<(Option<i64>, f64)>,
    /// The number of iterations of each of these loops that one work-group executes.
    pub of_group: Vec<f64>,
    /// Index of its streak in [`KernelProfile::streaks`].
    pub streak: usize,
    /// Distance in scalars between iterations of the innermost loop around it that is not unrolled,
    /// where loops over work-items count; `None` if not constant.
    pub home_stride: Option<i64>,
    /// Number of such accesses that a compiler can vectorise; see [`KernelProfile::ops`].
    pub along: usize,
}

impl Access {
    /// Hashes the features. Memories of the program are numbered in the order of `buffers`.
    fn hash_features(&self, buffers: &mut IndexSet<usize>, h: &mut DefaultHasher) {
        let Access {
            mem,
            store,
            elem_bytes,
            width,
            aligned,
            count,
            uneven,
            lanes_held,
            array_bytes,
            footprint,
            group_footprint,
            item_footprint,
            item_stride,
            lanes,
            loop_stride,
            walk,
            of_group,
            streak,
            home_stride,
            along,
        } = self;
        let mem = match mem {
            Mem::Global(b) => Mem::Global(buffers.insert_full(*b).0),
            mem => *mem,
        };
        (mem, store, elem_bytes, width, aligned, streak, along).hash(h);
        (item_stride, lanes, loop_stride, home_stride).hash(h);
        let footprints = [array_bytes, footprint, group_footprint, item_footprint];
        for x in [count, uneven, lanes_held].into_iter().chain(footprints).chain(of_group) {
            x.to_bits().hash(h);
        }
        (walk.len(), of_group.len()).hash(h);
        walk.iter().for_each(|(stride, n)| (stride, n.to_bits()).hash(h));
    }

    /// Returns the loops around the access, or those of a group: the distance between iterations in scalars, and the number
    /// of iterations, the greatest distance first. Loops whose iterations are consecutive are one loop. If a distance is not constant, it
    /// is one loop that takes a step of its streak at a time.
    pub fn loops(&self, of_group: bool, step: i64) -> Vec<(i64, f64)> {
        let counts = self.walk.iter().zip(&self.of_group);
        let counts =
            counts.map(|((stride, n), group)| (*stride, if of_group { *group } else { *n }));
        let moving = counts.filter(|(stride, n)| *stride != Some(0) && *n > 1.0);
        let loops: Option<Vec<(i64, f64)>> =
            moving.map(|(stride, n)| Some((stride?.saturating_abs(), n))).collect();
        let Some(mut loops) = loops else {
            let touched = if of_group { self.group_footprint } else { self.footprint };
            let places = touched / real(self.elem_bytes.max(1) * self.width.max(1));
            return vec![(step.max(1), places.max(1.0))];
        };
        loops.sort_by_key(|(stride, _)| *stride);
        let mut out: Vec<(i64, f64)> = vec![];
        for (stride, n) in loops {
            match out.last_mut() {
                Some((step, count)) if signed(*step) * *count == signed(stride) => *count *= n,
                _ => out.push((stride, n)),
            }
        }
        out.reverse();
        out
    }
}

/// Accesses whose indices differ only by a constant: those of an unrolled loop.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Streak {
    /// Positions of the accesses in scalars from a common origin, ascending.
    pub places: Vec<i64>,
    /// What divides all distances between the places of one access; 0 if it has a single place.
    pub step: i64,
}

impl Streak {
    /// Returns the blocks of this many scalars that contain the places, ascending. The origin is
    /// assumed to start a block.
    pub fn line_blocks(&self, scalars: i64) -> Vec<i64> {
        let mut blocks: Vec<i64> =
            self.places.iter().map(|p| p.div_euclid(scalars.max(1))).collect();
        blocks.dedup();
        blocks
    }

    /// Number of accesses, or of their places if these are `stores`: two stores whose places differ by data alone write two sectors.
    pub fn different(&self, stores: bool) -> usize {
        match stores {
            true => self.places.iter().collect::<BTreeSet<_>>().len(),
            false => self.places.len(),
        }
    }

    /// Length of the run of consecutive places that begins with the first place.
    pub fn run(&self) -> usize {
        let mut places = self.places.clone();
        places.sort_unstable();
        places.dedup();
        1 + places.windows(2).take_while(|w| w[1] == w[0] + 1).count()
    }

    /// Returns how many of the scalars that the accesses touch are different, as a share of their sum. Each access is in
    /// these [`loops`](Access::loops), and touches `width` scalars at a time. Accesses further than `most` scalars apart do
    /// not count as touching the same, since a cache does not hold what lies between.
    pub fn distinct(&self, width: usize, loops: &[(i64, f64)], most: f64) -> f64 {
        let lanes = i64::try_from(width.max(1)).unwrap_or(1);
        let mut all: Vec<i64> =
            self.places.iter().flat_map(|p| (0..lanes).map(move |k| p + k)).collect();
        all.sort_unstable();
        all.dedup();
        let sum = real(self.places.len() * width.max(1));
        if self.step == 0 {
            return real(all.len()) / sum.max(1.0);
        }
        let mut last: FxHashMap<i64, i64> = FxHashMap::default();
        let mut different = 0.0;
        for place in all {
            different += match last.insert(place.rem_euclid(self.step), place) {
                Some(before) if signed(place - before) <= most => {
                    1.0 - overlap(place - before, loops)
                }
                _ => 1.0,
            };
        }
        different / sum.max(1.0)
    }

    /// Number of blocks of this many scalars that contain the places.
    pub fn blocks(&self, scalars: i64) -> usize {
        self.line_blocks(scalars).len()
    }
}

/// Features of one kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelProfile {
    /// Its name.
    pub name: String,
    /// Number of work-groups.
    pub groups: f64,
    /// Number of work-items in a group.
    pub group_size: usize,
    /// Groups that start as one; at least 1 counts.
    pub side_by_side: usize,
    /// What a team shares out of it; `None` if no team ever runs it.
    pub shares: Option<Shares>,
    /// Number of barriers that each work-item passes.
    pub barriers: f64,
    /// Bytes of local memory of one group.
    pub local_bytes: usize,
    /// Number of times that a group waits, in a loop, for a copy from global to local memory that
    /// nothing overlaps.
    pub stalls: f64,
    /// Atomic operations on elements of global memory that data decide, over all work-items.
    pub atomics: f64,
    /// Bytes of declared registers of one work-item. Among nested blocks that follow each other,
    /// only the one with the most registers counts.
    pub register_bytes: usize,
    /// Bytes of registers that are live at once in a block of the code, and how often a work-item runs the block. Of two blocks, one
    /// has more and runs less often.
    pub pressure: Vec<(usize, f64)>,
    /// Bytes of registers that a work-item reads while so many bytes of them are live.
    pub reads: Vec<(usize, f64)>,
    /// Memory accesses in code order.
    pub accesses: Vec<Access>,
    /// Streaks of the accesses, indexed by [`Access::streak`].
    pub streaks: Vec<Streak>,
    /// Number of operations over all work-items. The key is the kind, the vector width, the bytes
    /// of a float (4 for other types), and the number of operations that a compiler can vectorise.
    /// These belong to neighbouring iterations of the innermost loop, where loops over work-items
    /// count, or to one iteration that is unrolled.
    pub ops: BTreeMap<(OpKind, usize, usize, usize), f64>,
    /// The same with the lanes of warps that are idle meanwhile.
    pub ops_held: BTreeMap<(OpKind, usize, usize, usize), f64>,
    /// Loop iterations over all work-items.
    pub iterations: f64,
    /// Iterations of loops that a compiler can vectorise.
    pub iterations_along: f64,
    /// Total stall of dependency chains over all work-items, in latencies of an addition.
    pub waiting: f64,
    /// Time of one work-item that is alone on the device, in latencies of an addition, for each of [`LOADS`].
    pub path: [f64; 3],
}

impl KernelProfile {
    /// Returns the private arrays that are not in registers, of which a work-item has `most` bytes, with their bytes: those that are
    /// larger, and those with an index that is not known when they are compiled.
    pub fn spilled(&self, most: f64) -> BTreeMap<Mem, f64> {
        let known = |a: &Access| a.walk.iter().all(|(s, n)| *s == Some(0) || *n <= WRITTEN_OUT);
        let spills =
            |a: &&Access| matches!(a.mem, Mem::Private(_)) && (a.array_bytes > most || !known(a));
        self.accesses.iter().filter(spills).map(|a| (a.mem, a.array_bytes)).collect()
    }

    /// Returns a number that kernels with the same features share, whatever the names of kernels and arrays. The model cannot
    /// tell such kernels apart.
    pub fn fingerprint(&self) -> u64 {
        let KernelProfile {
            name: _,
            groups,
            group_size,
            side_by_side,
            shares: _,
            barriers,
            local_bytes,
            stalls,
            atomics,
            register_bytes,
            pressure,
            reads,
            accesses,
            streaks,
            ops,
            ops_held,
            iterations,
            iterations_along,
            waiting,
            path,
        } = self;
        let mut h = DefaultHasher::new();
        for x in [groups, barriers, stalls, atomics, iterations, iterations_along, waiting] {
            x.to_bits().hash(&mut h);
        }
        (path.map(f64::to_bits), group_size, side_by_side, local_bytes, register_bytes)
            .hash(&mut h);
        (pressure.len(), reads.len(), accesses.len(), streaks.len(), ops.len()).hash(&mut h);
        let live = pressure.iter().chain(reads);
        live.for_each(|(live, times)| (live, times.to_bits()).hash(&mut h));
        let mut buffers = IndexSet::new();
        accesses.iter().for_each(|a| a.hash_features(&mut buffers, &mut h));
        streaks.iter().for_each(|s| (&s.places, s.step).hash(&mut h));
        for (op, count) in ops.iter().chain(ops_held) {
            (op, count.to_bits()).hash(&mut h);
        }
        h.finish()
    }
}

/// Returns the share of the places of an access that an access at this distance touches, too. The places are sums of multiples of the
/// loops' distances, which are given with the numbers of iterations, the greatest first. The distance is written as such a
/// sum: it leads out of a loop's range at as many iterations as its factor there says.
fn overlap(distance: i64, loops: &[(i64, f64)]) -> f64 {
    let (mut rest, mut share) = (distance, 1.0);
    for (step, iterations) in loops {
        let factor = (signed(rest) / signed(*step)).round();
        share *= (1.0 - factor.abs() / iterations).max(0.0);
        #[expect(clippy::cast_possible_truncation, reason = "at most the distance")]
        let factor = factor as i64;
        rest -= factor * step;
    }
    if rest == 0 { share } else { 0.0 }
}

pub fn real(n: usize) -> f64 {
    n as f64
}

pub fn signed(n: i64) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use super::super::tests::access;
    use super::*;

    #[test]
    fn stores_at_unknown_places_do_not_share_sectors() {
        let streak = Streak { places: vec![0, 0, 0, 1], ..Streak::default() };
        assert_eq!((streak.different(true), streak.different(false)), (2, 4));
    }

    #[test]
    fn accesses_that_overlap_touch_the_same() {
        let of = |places: &[i64], step, width, loops: &[(i64, f64)], most| {
            Streak { places: places.to_vec(), step }.distinct(width, loops, most)
        };
        // Neighbours in a long array: `a[i]`, `a[i + 1]`, `a[i + 2]`.
        let long = [(1, 1e6)];
        assert!((of(&[0, 1, 2], 1, 1, &long, 1e3) - 1.0 / 3.0).abs() < 1e-5);
        // The parts of a row of four, and the first parts of the next row.
        assert_eq!(of(&[0, 1, 2, 3], 4, 1, &[(4, 1e6)], 1e3), 1.0);
        assert!((of(&[0, 4, 8, 12], 8, 4, &[(8, 1e6)], 1e3) - 0.5).abs() < 1e-5);
        // Planes that are further apart than a cache is large, or than they are long.
        assert_eq!(of(&[0, 4096], 1, 1, &long, 1e3), 1.0);
        assert_eq!(of(&[0, 4096], 1, 1, &[(1, 1024.0)], 1e6), 1.0);
        // The same place twice.
        assert_eq!(of(&[7, 7], 0, 1, &[], 1e6), 0.5);
        // The neighbours beside of an element of rows of 64, and above; the latter is compared with the former.
        let rows = [(64, 32.0), (1, 64.0)];
        let wanted = (1.0 + 1.0 / 64.0 + 1.0 / 32.0 + 1.0 / 64.0) / 3.0;
        assert!((of(&[0, 1, 64], 1, 1, &rows, 1e6) - wanted).abs() < 1e-3);
        // Eight rows that a loop has been unrolled over lie between those of its iterations.
        let unrolled: Vec<i64> = (0..8).map(|k| 64 * k).collect();
        assert_eq!(of(&unrolled, 4, 4, &[(512, 32.0), (4, 16.0)], 1e6), 1.0);
    }

    #[test]
    fn loops_with_consecutive_iterations_are_one() {
        let a = Access {
            walk: vec![(Some(0), 9.0), (Some(1), 16.0), (Some(16), 4.0), (Some(1024), 8.0)],
            of_group: vec![9.0, 16.0, 4.0, 1.0],
            ..access(Mem::Global(0), false, 4608.0)
        };
        assert_eq!(a.loops(false, 1), [(1024, 8.0), (1, 64.0)]);
        assert_eq!(a.loops(true, 1), [(1, 64.0)]);
    }

    /// Kernels have the same features whatever the names of kernels and buffers are.
    #[test]
    fn fingerprints_tell_features_apart() {
        let on = |buffers: [usize; 2]| {
            let of = |b: usize| access(Mem::Global(b), false, 4.0);
            let accesses = buffers.map(of).to_vec();
            KernelProfile { name: format!("k{}", buffers[0]), accesses, ..KernelProfile::default() }
        };
        let same = on([3, 5]).fingerprint();
        assert_eq!(on([0, 1]).fingerprint(), same);
        assert_ne!(on([3, 3]).fingerprint(), same);
        let mut counted = on([3, 5]);
        counted.accesses[1].count += 1.0;
        assert_ne!(counted.fingerprint(), same);
        let waiting = KernelProfile { waiting: 1.0, ..on([3, 5]) };
        assert_ne!(waiting.fingerprint(), same);
        let path = KernelProfile { path: [0.0, 1.0, 0.0], ..on([3, 5]) };
        assert_ne!(path.fingerprint(), same);
    }
}
