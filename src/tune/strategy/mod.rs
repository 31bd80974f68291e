//! Strategies: which candidates are measured, in which order. What is measured is checked, timed and
//! kept in the same way by all of them.

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

/// Candidates that are proposed at a time where each answer may change what is asked next.
pub(super) const AT_A_TIME: usize = 6;

/// How candidates are chosen for measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// The cost model decides: the candidate with the best prediction, and nothing else, is taken.
    Model,
    /// The best predictions of every shape, then what the model, corrected by the measurements so far
    /// ([`super::surrogate`]), promises most of.
    #[default]
    Default,
    /// Candidates at random, all with the same chance.
    Random,
    /// Monte-Carlo descent (Steuwer et al., ICFP 2015, section 5): from the outermost pattern inwards, every
    /// choice is judged by random candidates that have it, and the best is fixed before the next.
    Mcts,
    /// All candidates, the best predictions first, until the budget is spent.
    Exhaustive,
}

impl Strategy {
    /// All of them, in the order of reports.
    pub const ALL: [Strategy; 5] = [
        Strategy::Model,
        Strategy::Default,
        Strategy::Random,
        Strategy::Mcts,
        Strategy::Exhaustive,
    ];

    /// The name on command lines and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Strategy::Model => "model",
            Strategy::Default => "default",
            Strategy::Random => "random",
            Strategy::Mcts => "mcts",
            Strategy::Exhaustive => "exhaustive",
        }
    }

    /// Whether another seed makes another search.
    pub fn is_random(self) -> bool {
        matches!(self, Strategy::Random | Strategy::Mcts)
    }

    /// By its name.
    pub fn from_name(name: &str) -> Option<Strategy> {
        Strategy::ALL.into_iter().find(|s| s.name() == name)
    }

    /// A search by this strategy; `seed` decides what is left to chance. `known` are the hashes of plans whose
    /// outcome is known already.
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

/// A candidate that was built, and what came of it.
#[derive(Clone, Debug)]
pub struct Tried {
    /// Which.
    pub variant: Arc<Variant>,
    /// Its median time in microseconds; `None` when it failed.
    pub median_us: Option<f64>,
}

/// Chooses what is measured next.
pub(super) trait Propose {
    /// The next candidates, no more than `left`; none when there are no others. `tried` are all so far, in the order in
    /// which they were measured; `go_on` says whether to bother.
    fn propose(
        &mut self,
        pool: &mut Pool,
        tried: &[Tried],
        left: usize,
        go_on: &dyn Fn() -> bool,
    ) -> Vec<Variant>;
}

/// The best predictions first.
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

/// In random order.
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
        // What has no kernels, or another's, does not count.
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
