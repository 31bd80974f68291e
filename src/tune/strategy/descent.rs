//! Monte-Carlo descent over the choices that determine a candidate.
//!
//! Steuwer et al. (ICFP 2015, section 5) descend the tree of rule applications: at each node they judge every
//! applicable rule by random walks below it, whose final programs are generated and timed, and then fix the best
//! rule. Here the e-graph holds all final programs at once. The path to a candidate consists of the patterns of its
//! skeleton, from the outermost inwards, then its tunables.

use super::super::variant::{Pool, Variant};
use super::{Propose, Tried};
use crate::extract::Candidate;
use indexmap::IndexMap;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::collections::{HashMap, HashSet};

/// Number of random candidates by which a choice is judged.
const WALKS: usize = 2;

/// A descent in progress.
pub(super) struct Descent {
    rng: ChaCha8Rng,
    paths: Vec<Vec<String>>,
    /// Candidates that share all choices made so far; `depth` is the number of these choices.
    here: Vec<usize>,
    depth: usize,
    /// Candidates that have been proposed.
    asked: HashSet<usize>,
    /// Index of each candidate, by the hash of its plan.
    numbers: HashMap<String, usize>,
}

impl Descent {
    pub(super) fn new(rng: ChaCha8Rng) -> Descent {
        Descent {
            rng,
            paths: vec![],
            here: vec![],
            depth: 0,
            asked: HashSet::new(),
            numbers: HashMap::new(),
        }
    }

    /// Returns the choices at this node, each with the candidates below it.
    fn children(&self) -> IndexMap<&str, Vec<usize>> {
        let mut children: IndexMap<&str, Vec<usize>> = IndexMap::new();
        for i in &self.here {
            let choice = self.paths[*i].get(self.depth).map_or("", String::as_str);
            children.entry(choice).or_default().push(*i);
        }
        children
    }

    /// Descends to the best child while enough candidates of every child are known. Returns to the root when no
    /// unproposed candidate is left below the node.
    fn descend(&mut self, times: &HashMap<usize, f64>) {
        loop {
            if self.here.iter().all(|i| self.asked.contains(i)) {
                self.here = (0..self.paths.len()).filter(|i| !self.asked.contains(i)).collect();
                // Candidates that were timed still show which choices are good.
                self.here.extend(times.keys().copied());
                self.here.sort_unstable();
                self.here.dedup();
                self.depth = 0;
                return;
            }
            let children = self.children();
            let known = |c: &[usize]| c.iter().filter(|i| self.asked.contains(i)).count();
            if children.values().any(|c| known(c) < WALKS.min(c.len())) {
                return;
            }
            let fresh = |c: &&Vec<usize>| c.iter().any(|i| !self.asked.contains(i));
            let time = |c: &[usize]| {
                c.iter().filter_map(|i| times.get(i)).copied().fold(f64::INFINITY, f64::min)
            };
            let best = children.values().filter(fresh).min_by(|a, b| time(a).total_cmp(&time(b)));
            let Some(best) = best.cloned() else { return };
            self.here = best;
            self.depth += 1;
        }
    }
}

impl Propose for Descent {
    fn propose(
        &mut self,
        pool: &mut Pool,
        tried: &[Tried],
        left: usize,
        go_on: &dyn Fn() -> bool,
    ) -> Vec<Variant> {
        if self.paths.is_empty() {
            self.paths = pool.candidates().iter().map(path).collect();
            self.here = (0..self.paths.len()).collect();
        }
        let times: HashMap<usize, f64> = tried
            .iter()
            .filter_map(|t| Some((*self.numbers.get(&t.variant.hash)?, t.median_us?)))
            .collect();
        let mut out = vec![];
        while out.is_empty() && self.asked.len() < self.paths.len() && go_on() {
            self.descend(&times);
            let mut next = vec![];
            let wanted: Vec<Vec<usize>> = self
                .children()
                .into_values()
                .map(|c| {
                    let known = c.iter().filter(|i| self.asked.contains(i)).count();
                    let fresh = c.iter().copied().filter(|i| !self.asked.contains(i));
                    let fresh: Vec<usize> = fresh.collect();
                    let most = WALKS.saturating_sub(known).min(fresh.len());
                    [vec![most], fresh].concat()
                })
                .collect();
            for mut fresh in wanted {
                let most = fresh.remove(0);
                fresh.shuffle(&mut self.rng);
                next.extend(fresh.into_iter().take(most));
            }
            // After a return to the root, every child may be judged already: take any candidate not yet proposed.
            if next.is_empty() {
                next = self.here.iter().copied().filter(|i| !self.asked.contains(i)).collect();
                next.shuffle(&mut self.rng);
                next.truncate(1);
            }
            next.truncate(left);
            self.asked.extend(&next);
            for (i, v) in pool.take(&next, go_on) {
                self.numbers.insert(v.hash.clone(), i);
                out.push(v);
            }
        }
        out
    }
}

/// Returns the choices that determine a candidate: the words of its skeleton in order, then its tunables.
fn path(c: &Candidate) -> Vec<String> {
    let words = c.skeleton.split(['(', ')', ' ']).filter(|w| !w.is_empty()).map(str::to_owned);
    let tunables = super::super::variant::tunables(&c.env);
    words.chain(tunables.into_iter().map(|(s, n)| format!("{s}={n}"))).collect()
}
