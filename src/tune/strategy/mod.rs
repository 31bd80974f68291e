//! Strategies, which decide which candidates are measured, and in which order. Checking, timing and storing are the
//! same for all strategies.

mod descent;
mod guided;

use super::variant::{Pool, Variant};
use descent::Descent;
use guided::Guided;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

/// Most candidates proposed at a time by strategies that use earlier results.
pub(super) const AT_A_TIME: usize = 6;

/// A strategy for choosing candidates to measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// Takes the candidate with the best prediction of the cost model, and nothing else.
    Model,
    /// Takes the best predictions of every shape, then the most promising candidates according to the cost model,
    /// corrected by the measurements so far ([`super::surrogate`]).
    #[default]
    Default,
    /// Takes candidates at random, all with the same probability.
    Random,
    /// Monte-Carlo descent (Steuwer et al., ICFP 2015, section 5): from the outermost pattern inwards, judges every
    /// choice by random candidates with that choice, and fixes the best before it goes on to the next.
    Mcts,
    /// Takes all candidates, best predictions first, until the budget is spent.
    Exhaustive,
}

impl Strategy {
    /// All strategies, in the order of reports.
    pub const ALL: [Strategy; 5] = [
        Strategy::Model,
        Strategy::Default,
        Strategy::Random,
        Strategy::Mcts,
        Strategy::Exhaustive,
    ];

    /// Returns the name on command lines and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Strategy::Model => "model",
            Strategy::Default => "default",
            Strategy::Random => "random",
            Strategy::Mcts => "mcts",
            Strategy::Exhaustive => "exhaustive",
        }
    }

    /// Returns whether the search depends on the seed.
    pub fn is_random(self) -> bool {
        matches!(self, Strategy::Random | Strategy::Mcts)
    }

    /// Returns the strategy with this name.
    pub fn from_name(name: &str) -> Option<Strategy> {
        Strategy::ALL.into_iter().find(|s| s.name() == name)
    }

    /// Returns a proposer for a search. `seed` is the seed of random choices; `known` holds the hashes of plans
    /// whose outcome is stored.
    pub(super) fn proposer(
        self,
        budget: usize,
        seed: u64,
        known: HashSet<String>,
    ) -> Box<dyn Propose> {
        let rng = ChaCha8Rng::seed_from_u64(seed);
        match self {
            Strategy::Model => Box::new(Best { most: 1, ranked: None }),
            Strategy::Default => Box::new(Guided::new(budget, known)),
            Strategy::Random => Box::new(Random { rng, order: None }),
            Strategy::Mcts => Box::new(Descent::new(rng)),
            Strategy::Exhaustive => Box::new(Best { most: usize::MAX, ranked: None }),
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A candidate that was tried, and its result.
#[derive(Clone, Debug)]
pub struct Tried {
    /// The candidate.
    pub variant: Arc<Variant>,
    /// Its median time in microseconds; `None` if it failed.
    pub median_us: Option<f64>,
    /// The median time of each of its kernels in microseconds; empty if they were not timed in this run.
    pub kernels_us: Vec<f64>,
}

/// Chooses the candidates to measure next.
pub(super) trait Propose {
    /// Returns the next candidates, at most `left`; none if there are no others. `tried` holds all candidates so
    /// far, in the order of measuring. Generation of kernels stops when `go_on` returns `false`.
    fn propose(
        &mut self,
        pool: &mut Pool,
        tried: &[Tried],
        left: usize,
        go_on: &dyn Fn() -> bool,
    ) -> Vec<Variant>;
}

/// Proposes candidates in the order of their predictions.
struct Best {
    most: usize,
    ranked: Option<std::vec::IntoIter<Variant>>,
}

impl Propose for Best {
    fn propose(
        &mut self,
        pool: &mut Pool,
        _: &[Tried],
        left: usize,
        go_on: &dyn Fn() -> bool,
    ) -> Vec<Variant> {
        let ranked = self.ranked.get_or_insert_with(|| {
            let mut all = pool.draw(usize::MAX, usize::MAX, |_| true, go_on);
            all.truncate(self.most);
            all.into_iter()
        });
        ranked.by_ref().take(left).collect()
    }
}

/// Proposes candidates in random order.
struct Random {
    rng: ChaCha8Rng,
    order: Option<std::vec::IntoIter<usize>>,
}

impl Propose for Random {
    fn propose(
        &mut self,
        pool: &mut Pool,
        _: &[Tried],
        left: usize,
        go_on: &dyn Fn() -> bool,
    ) -> Vec<Variant> {
        let order = self.order.get_or_insert_with(|| {
            let mut all: Vec<usize> = (0..pool.candidates().len()).collect();
            all.shuffle(&mut self.rng);
            all.into_iter()
        });
        let most = left.min(AT_A_TIME);
        let mut out = vec![];
        // Candidates without kernels, or with those of another candidate, do not count.
        while out.len() < most && go_on() {
            let next: Vec<usize> = order.take(most - out.len()).collect();
            if next.is_empty() {
                break;
            }
            out.extend(pool.take(&next, go_on).into_iter().map(|(_, v)| v));
        }
        out
    }
}
