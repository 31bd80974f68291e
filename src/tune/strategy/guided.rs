//! The default strategy: follows the cost model, corrected by measurements.

use super::super::choose::{NEAR, spread};
use super::super::kernel_times::KernelTimes;
use super::super::surrogate::{Features, Observation, Surrogate};
use super::super::variant::{Kernel, Pool, Variant};
use super::{AT_A_TIME, Propose, Tried};
use crate::calculus::size::Sym;
use std::collections::HashSet;

/// Most variants of one skeleton that the first round measures.
const OF_SKELETON: usize = 2;
/// Share of the budget that the first round spends.
const FIRST_SHARE: f64 = 0.5;
/// Number of skeletons, those with the best times, for which further tunables are drawn, and number of candidates
/// drawn at a time.
const LEADERS: usize = 4;
const DRAWN: usize = 64;
/// Share of the remaining budget, after the first round, that goes to different sizes of a work-item's part of a
/// tile: the best prediction for each size. The best size depends on latencies, which a model knows least about.
const OF_SHARES: f64 = 0.4;
/// A failure counts as a measured time of this many times the predicted time.
const FAILED: f64 = 8.0;
/// Number of standard deviations subtracted from the expected time of a candidate, in favour of uncertain
/// candidates. The last few candidates of a search are chosen by expected time alone.
const HOPE: f64 = 1.0;
/// For every other candidate, [`HOPE`] is multiplied by this: otherwise all candidates would lie where much was
/// measured already.
const DARING: f64 = 4.0;

/// A search in progress.
pub(super) struct Guided {
    budget: usize,
    /// Hashes of plans whose outcome is stored: of the candidates, these are proposed first, since they need no
    /// measurement.
    known: HashSet<String>,
    begun: bool,
    spread: bool,
    shared: bool,
    rest: Vec<Variant>,
}

impl Guided {
    pub(super) fn new(budget: usize, known: HashSet<String>) -> Guided {
        Guided { budget, known, begun: false, spread: false, shared: false, rest: vec![] }
    }

    /// Takes the variants whose outcome is stored out of `rest`, at most `left` of them.
    fn recall(&mut self, mut left: usize) -> Vec<Variant> {
        let known = &mut self.known;
        let taken = self.rest.extract_if(.., |v| {
            let take = left > 0 && known.remove(&v.hash);
            left -= usize::from(take);
            take
        });
        taken.collect()
    }
}

impl Propose for Guided {
    fn propose(
        &mut self,
        pool: &mut Pool,
        tried: &[Tried],
        left: usize,
        go_on: &dyn Fn() -> bool,
    ) -> Vec<Variant> {
        if !self.begun {
            self.begun = true;
            self.rest = pool.draw_rounds(go_on);
            let best = self.rest.first().map_or(0.0, |v| v.predicted_us);
            let near: HashSet<String> = (self.rest.iter())
                .take_while(|v| v.predicted_us <= NEAR * best)
                .map(|v| v.skeleton_of_term().to_owned())
                .collect();
            let others = pool.draw(DRAWN, usize::MAX, |c| near.contains(&c.skeleton), go_on);
            self.rest.extend(others);
            self.rest.sort_by(|a, b| a.predicted_us.total_cmp(&b.predicted_us));
            let recalled = self.recall(left);
            if !recalled.is_empty() {
                return recalled;
            }
        }
        if !self.spread {
            self.spread = true;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a share of a count"
            )]
            let quota = (self.budget as f64 * FIRST_SHARE).ceil() as usize;
            let count = quota.saturating_sub(tried.len()).min(left);
            let (chosen, rest) = spread(std::mem::take(&mut self.rest), count, OF_SKELETON);
            self.rest = rest;
            if !chosen.is_empty() {
                return chosen;
            }
        }
        let leaders = leaders(tried);
        self.rest.extend(pool.draw(
            DRAWN,
            usize::MAX,
            |c| leaders.contains(&c.skeleton.as_str()),
            go_on,
        ));
        let times = KernelTimes::of(tried);
        let error = Surrogate::fit(&observations(tried)).mean_error();
        let expected_us = |k: &Kernel| times.expected(std::slice::from_ref(k), k.us, error).us;
        self.rest.extend(pool.join_by(expected_us, go_on));
        let recalled = self.recall(left);
        if !recalled.is_empty() {
            return recalled;
        }
        if !self.shared {
            self.shared = true;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a share of a count"
            )]
            let count = ((left as f64 * OF_SHARES).ceil() as usize).min(left);
            let chosen = shares(&mut self.rest, tried, &leaders, count);
            if !chosen.is_empty() {
                return chosen;
            }
        }
        let hope = if left <= AT_A_TIME { 0.0 } else { HOPE };
        promising(&mut self.rest, tried, left.min(AT_A_TIME), hope)
    }
}

/// Returns the skeletons of the fastest candidates.
fn leaders(tried: &[Tried]) -> Vec<&str> {
    let mut ranked: Vec<(f64, &str)> = tried
        .iter()
        .filter_map(|t| t.median_us.map(|us| (us, t.variant.skeleton_of_term())))
        .collect();
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut leaders: Vec<&str> = vec![];
    for (_, skeleton) in ranked {
        if leaders.len() < LEADERS && !leaders.contains(&skeleton) {
            leaders.push(skeleton);
        }
    }
    leaders
}

/// For each skeleton of `leaders` and each size of a work-item's part of a tile, takes the variant with the best
/// prediction out of `rest`. Leaves out sizes that were tried, and variants predicted to be far from the best.
fn shares(
    rest: &mut Vec<Variant>,
    tried: &[Tried],
    leaders: &[&str],
    count: usize,
) -> Vec<Variant> {
    let mut seen: HashSet<String> = tried.iter().map(|t| share(&t.variant)).collect();
    rest.sort_by(|a, b| a.predicted_us.total_cmp(&b.predicted_us));
    let mut left = count;
    let predicted = tried.iter().map(|t| &*t.variant).chain(rest.first()).map(|v| v.predicted_us);
    let best = predicted.fold(f64::INFINITY, f64::min);
    let taken = rest.extract_if(.., |v| {
        let near = v.predicted_us <= NEAR * best;
        let new =
            left > 0 && near && leaders.contains(&v.skeleton_of_term()) && seen.insert(share(v));
        left -= usize::from(new);
        new
    });
    taken.collect()
}

/// Returns the skeleton and the sizes of a work-item's parts of tiles, which are the values of tiles of tiles.
fn share(v: &Variant) -> String {
    let nested = |s: &Sym| matches!(s, Sym::Tile(n) if matches!(n.as_sym(), Some(Sym::Tile(_))));
    let values = v.env.iter().filter(|(s, _)| nested(s)).map(|(_, n)| n.to_string());
    std::iter::once(v.skeleton.clone()).chain(values).collect::<Vec<_>>().join(" ")
}

/// Returns by how much the predictions of measured candidates were wrong.
fn observations(tried: &[Tried]) -> Vec<Observation> {
    let observation = |t: &Tried| Observation {
        at: Features::of(&t.variant),
        error: t.median_us.map_or(FAILED, |us| us / t.variant.predicted_us).ln(),
    };
    tried.iter().map(observation).collect()
}

/// Takes the `count` most promising variants out of `rest`: those with the least lower confidence bound of their
/// time. Each variant is chosen as if those chosen before it had been measured with the expected result, so that
/// the variants differ.
fn promising(rest: &mut Vec<Variant>, tried: &[Tried], count: usize, hope: f64) -> Vec<Variant> {
    let times = KernelTimes::of(tried);
    let best = tried.iter().filter_map(|t| t.median_us).fold(f64::INFINITY, f64::min);
    let mut surrogate = Surrogate::fit(&observations(tried));
    let mut features: Vec<Features> = rest.iter().map(Features::of).collect();
    let mut chosen = vec![];
    while chosen.len() < count && !rest.is_empty() {
        let promise = |(v, at): (&Variant, &Features)| {
            let (error, spread) = surrogate.error(at);
            let hope = if chosen.len() % 2 == 0 { hope } else { DARING * hope };
            let expected = times.expected(&v.kernels, v.predicted_us, error);
            // A variant of measured kernels alone that add up to no less than the best time is not measured before others.
            let idle = expected.unknown == 0.0 && expected.us >= best;
            (idle, expected.us.ln() - hope * spread * expected.unknown)
        };
        let promises: Vec<(bool, f64)> = rest.iter().zip(&features).map(promise).collect();
        let order = |a: &usize, b: &usize| {
            let (a, b) = (promises[*a], promises[*b]);
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        };
        let Some(first) = (0..rest.len()).min_by(order) else {
            break;
        };
        surrogate.believe(&features.remove(first));
        chosen.push(rest.remove(first));
    }
    chosen
}
