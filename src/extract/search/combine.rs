//! Combines the choices of an e-node's parts.

use super::choice::{Choice, FRAGMENTS, Offer, Outline, number_of, parts};
use super::{Gathered, Key, Lists, Scope, Search, Set, sizes_of};
use crate::calculus::op::products::WORDS;
use crate::calculus::size::Size;
use crate::calculus::term::{MapKind, Op, ReduceKind, Space};
use crate::calculus::ty::Ty;
use crate::extract::context::{Context, Level};
use crate::extract::{Reason, cost, tiles};
use crate::saturate::Data;
use indexmap::map::Entry;
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

/// Most combinations of arguments that are tried for one e-node with several arguments.
const PAIRS: usize = 256;

impl Search<'_> {
    /// Returns the offers of e-node `place` of a class, which combine the choices of its parts.
    pub(super) fn combine(&self, place: usize, key: Key, lists: &Lists) -> Gathered {
        let mut found = Gathered::default();
        let (class, at) = key;
        let egraph = self.egraph;
        let node = &egraph[class].nodes[place];
        let (Some(op), Data::Fn(ty, _)) = (node.function(), &egraph[class].data) else {
            return found;
        };
        let result = &ty.cod;
        let args = node.args();
        let Lists { of_parts, short, short_state } = lists;
        let is_short = *short || *short_state;
        let sizes = sizes_of(egraph, node);
        let mut share = cost::share(op, &sizes, at, self.target, self.sizes.nominal, result);
        if *op == Op::Map(MapKind::Unroll) {
            // The length of an unrolled map will be chosen small.
            share.times = share.times.min(8.0);
        }
        let tag = skeleton_tag(op, at, &sizes);
        let passed = match (op, args.get(1)) {
            (Op::Compose, Some(inner)) => match &egraph[*inner].data {
                Data::Fn(t, _) => cost::passing(&t.cod, at, self.target, self.sizes.nominal),
                Data::Size(_) | Data::Ty(_) | Data::Broken => 0.0,
            },
            _ => 0.0,
        };
        let in_registers = *op == Op::Map(MapKind::Unroll) && at.registers;
        let staged =
            matches!(op, Op::Map(MapKind::Lcl(_) | MapKind::Warp | MapKind::Lane)) && !at.sink;
        // No block of matrix instructions divides this length: copies of blocks have zeros at the end.
        let uneven = matches!(op, Op::Blocked(_))
            && sizes.get(4).is_some_and(|n| {
                tiles::whole(n).eval(self.sizes.dims).is_ok_and(|n| n % WORDS != 0)
            });
        let mut combine = |number: usize, chosen: &[&Rc<Choice>]| -> Option<(u64, f64)> {
            let reduces = matches!(op, Op::Reduce(_) | Op::ReduceLcl | Op::Fold | Op::SumProducts)
                || *op == Op::While && at.level() == Level::Group
                || chosen.iter().any(|c| c.reduces);
            let inner_loops = chosen.iter().any(|c| c.loops);
            // Several copies of a loop make a longer program, not a faster one. Copies of a reduction to one
            // element are one loop with several accumulators (`kernel::lower::interleave`), which loads once
            // what they have in common.
            let joined = self.scope == Scope::SideBySide
                && !at.registers
                && matches!(result, Ty::Array(_, t) if t.components().iter().all(|(dims, _)| dims.is_empty()));
            if *op == Op::Map(MapKind::Unroll) && inner_loops && !joined && !at.total {
                found.dropped.add(Reason::LoopCopied);
                return None;
            }
            let loops = inner_loops
                || matches!(op, Op::Map(MapKind::Seq) | Op::Reduce(ReduceKind::Seq) | Op::Fold);
            // Local memory passes on partial results of reductions. A stage that only maps is fused instead,
            // or stays with its work-items for a reader that reads it twice. Elements of a register array
            // contain no further reduction.
            let mut kept = *short || staged && !reduces && at.keeps();
            let unfit = (staged && !kept && (!reduces || at.keeps())) || (in_registers && reduces);
            if !at.total && unfit {
                found.dropped.add(Reason::NotFused);
                return None;
            }
            match (op, chosen) {
                (Op::Compose, [outer, inner]) if outer.skeleton == 0 => {
                    kept = inner.kept && (outer.reads < 2 || at.level() != Level::Item);
                }
                (Op::Compose, [outer, inner]) => {
                    if inner.kept && outer.reads < 2 && !at.total {
                        found.dropped.add(Reason::NotFused);
                        return None;
                    }
                    kept = outer.kept;
                }
                (Op::Fork | Op::Bimap, chosen) => kept |= chosen.iter().any(|c| c.kept),
                // The rows of a short array are parts of it.
                _ if is_short => {}
                (_, chosen) if chosen.iter().any(|c| c.kept) && !at.total => {
                    found.dropped.add(Reason::NotFused);
                    return None;
                }
                _ => {}
            }
            // A higher dimension needs a map of the next lower dimension inside; a single parallel map has
            // dimension 0.
            if let Op::Map(MapKind::Glb(d) | MapKind::Wrg(d)) = *op
                && d > 0
                && !chosen[0].spreads(d - 1)
            {
                return None;
            }
            let plain = |n: usize| chosen.iter().take(n).filter(|c| c.skeleton == 0).count();
            if uneven && plain(2) > 0 && chosen.iter().any(|c| c.outline.features & FRAGMENTS != 0)
            {
                found.dropped.add(Reason::NoValues);
                return None;
            }
            // The few results of a reduction are not worth storing past the caches.
            if *op == Op::ToMem(Space::Stream) && reduces {
                found.dropped.add(Reason::NoGain);
                return None;
            }
            let mut cost = share.own + share.times * chosen.iter().map(|c| c.cost).sum::<f64>();
            if at.level() == Level::Group {
                // A block that is not staged is read from global memory by every work-item.
                let sources = match op {
                    Op::Blocked(_) => 2,
                    Op::BlockedRows => 1,
                    _ => 0,
                };
                let again = 1.0 + 0.5 * plain(sources) as f64;
                cost *= again;
            }
            if *op == Op::Compose && chosen[0].skeleton != 0 && chosen[1].skeleton != 0 {
                cost += passed;
            }
            let skeleton = match (tag, chosen) {
                (None, [one]) => one.skeleton,
                (None, [a, b]) if a.skeleton == 0 => b.skeleton,
                (None, [a, b]) if b.skeleton == 0 => a.skeleton,
                (tag, chosen) => {
                    let mut h = FxHasher::default();
                    tag.hash(&mut h);
                    chosen.iter().for_each(|c| c.skeleton.hash(&mut h));
                    h.finish()
                }
            };
            let skeleton =
                if tag.is_none() && chosen.iter().all(|c| c.skeleton == 0) { 0 } else { skeleton };
            let offer = || Offer {
                node: place,
                number,
                cost,
                skeleton,
                outline: Outline::of(op, at, chosen),
                reduces,
                loops,
                kept,
            };
            match found.best.entry(skeleton) {
                Entry::Occupied(mut known) => {
                    if cost < known.get().cost {
                        known.insert(offer());
                    }
                }
                Entry::Vacant(new) => _ = new.insert(offer()),
            }
            Some((skeleton, cost))
        };
        match of_parts.as_slice() {
            [] => {
                combine(0, &[]);
            }
            [a] => a.iter().enumerate().for_each(|(i, x)| {
                combine(i, &[x]);
            }),
            // At host level the two parts are kernels that do not affect each other: every choice of either
            // list is combined at least with the best choice of the other.
            [a, b] if at.level() == Level::Host => {
                let near = |i: usize| 0..b.len().min((PAIRS / 4 / (i + 1)).max(1));
                let near = (0..a.len()).flat_map(|i| near(i).map(move |j| (i, j)));
                // Choices of equal rank meet, too: each is seen beside another than the best.
                let equal = |i: usize| (i % a.len(), i % b.len());
                let equal: Set<(usize, usize)> = (0..a.len().max(b.len())).map(equal).collect();
                let pairs: Set<(usize, usize)> = near.chain(equal.iter().copied()).collect();
                let mut cover = vec![];
                let mut least = f64::INFINITY;
                for pair in &pairs {
                    let number = number_of(of_parts, [pair.0, pair.1].into_iter());
                    let made = combine(number, &[&a[pair.0], &b[pair.1]]);
                    if let (Some((skeleton, cost)), true) = (made, equal.contains(pair)) {
                        cover.push(skeleton);
                        least = least.min(cost);
                    }
                }
                // A part of views alone passes on what covers the other part.
                let both_compute = a.iter().chain(b.iter()).all(|c| c.skeleton != 0);
                if both_compute || a.len().max(b.len()) > self.keep {
                    found.covers.push((least, cover));
                }
                found.dropped.add_all(Reason::PartsUntried, a.len() * b.len() - pairs.len());
            }
            [a, b] => {
                // Both lists are cut if they are long: few of their pairs could be kept.
                let most = (PAIRS / b.len()).max(4);
                for (i, x) in a.iter().take(most).enumerate() {
                    for (j, y) in b.iter().enumerate() {
                        combine(number_of(of_parts, [i, j].into_iter()), &[x, y]);
                    }
                }
                let untried = a.len().saturating_sub(most) * b.len();
                found.dropped.add_all(Reason::PartsUntried, untried);
            }
            // The arguments do not affect each other: combine the best of each list; at host level, where the
            // arguments are kernels, also the second best of each list, and so on.
            more if *op == Op::Cond => {
                let longest = more.iter().map(|l| l.len()).max().unwrap_or(0);
                let most = if at.level() == Level::Host { longest } else { 1 };
                for i in 0..most {
                    let number = number_of(more, more.iter().map(|l| i % l.len()));
                    combine(number, &parts(more, number));
                }
            }
            more => {
                // All combinations, up to `PAIRS` that fit.
                let total: usize = more.iter().map(|l| l.len()).product();
                let (mut looked, mut fitting) = (0, 0);
                while looked < total && fitting < PAIRS {
                    let chosen = parts(more, looked);
                    if ends_where_it_is(op, &chosen) {
                        fitting += 1;
                        combine(looked, &chosen);
                    }
                    looked += 1;
                }
                found.dropped.add_all(Reason::EndsElsewhere, looked - fitting);
                found.dropped.add_all(Reason::PartsUntried, total - looked);
            }
        }
        found
    }
}

/// Whether the end of a blocked reduction, if it computes at all, finds the accumulators where the steps
/// leave them: in registers of the same work-items.
fn ends_where_it_is(op: &Op, chosen: &[&Rc<Choice>]) -> bool {
    let (step, end) = match op {
        Op::Blocked(_) => (chosen[2], chosen[4]),
        Op::BlockedRows => (chosen[1], chosen[3]),
        _ => return true,
    };
    end.skeleton == 0 || step.form == end.form
}

/// Returns the hash by which a skeleton distinguishes a compute operator; `None` for operators that it
/// ignores.
fn skeleton_tag(op: &Op, at: Context, sizes: &[Size]) -> Option<u64> {
    let named = match op {
        Op::Map(MapKind::Plain) => false,
        Op::Map(_) | Op::Vectorize | Op::ToMem(_) | Op::Fold | Op::Spread(_) => true,
        Op::Tiled(_) | Op::TiledRows | Op::Turned => true,
        Op::Blocked(_) | Op::BlockedRows | Op::SpreadRows => true,
        Op::Reduce(ReduceKind::Seq | ReduceKind::Unroll) | Op::ReduceLcl | Op::Sliced => true,
        Op::Scan(_) | Op::ScanLcl(_) | Op::SumProducts => true,
        _ => false,
    };
    named.then(|| {
        let mut h = FxHasher::default();
        op.hash(&mut h);
        matches!(at.level(), Level::Group | Level::Warp).hash(&mut h);
        sizes.hash(&mut h);
        h.finish()
    })
}
