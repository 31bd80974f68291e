//! Monte-Carlo descent over the choices that make a candidate.
//!
//! Steuwer et al. (ICFP 2015, section 5) walk down the tree of rule applications: at each node every rule that
//! applies is judged by random walks below it, whose ends are generated and timed, and the best is fixed. Here
//! the e-graph holds all ends at once, and a candidate's path is its skeleton from the outermost pattern
//! inwards, then its tunables.

use super::super::variant::{Pool, Variant};
use super::{Propose, Tried};
use crate::extract::Candidate;
use indexmap::IndexMap;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::collections::{HashMap, HashSet};

/// Random candidates by which a choice is judged.
const WALKS: usize = 2;

/// A descent under way.
pub(super) struct Descent {
    rng: ChaCha8Rng,
    paths: Vec<Vec<String>>,
    /// Candidates that share all choices made so far, and how many choices that is.
    here: Vec<usize>,
    depth: usize,
    /// Candidates that have been asked for.
    asked: HashSet<usize>,
    /// Numbers of candidates by the hash of their plans.
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

    /// The alternatives at this node: each with the candidates below it.
    fn children(&self) -> IndexMap<&str, Vec<usize>> {
        let mut children: IndexMap<&str, Vec<usize>> = IndexMap::new();
        for i in &self.here {
            let choice = self.paths[*i].get(self.depth).map_or("", String::as_str);
            children.entry(choice).or_default().push(*i);
        }
        children
    }

    /// Goes down to the best child as long as enough is known of all of them; back to the root from where nothing new is left.
    fn descend(&mut self, times: &HashMap<usize, f64>) {
        loop {
            if self.here.iter().all(|i| self.asked.contains(i)) {
                self.here = (0..self.paths.len()).filter(|i| !self.asked.contains(i)).collect();
                // What was timed on the way still says which choices are good.
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
            // A node where everything is known: any of what is left below it.
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

/// The choices that make a candidate: the words of its skeleton in their order, then its tunables.
fn path(c: &Candidate) -> Vec<String> {
    let words = c.skeleton.split(['(', ')', ' ']).filter(|w| !w.is_empty()).map(str::to_owned);
    let tunables = super::super::variant::tunables(&c.env);
    words.chain(tunables.into_iter().map(|(s, n)| format!("{s}={n}"))).collect()
}
