//! Terms that differ from the best one in a single stage.
//!
//! The best terms of a program with many stages share the best choices for most of them: the beam has no room for all choices of
//! every stage. The choices of each stage are known, though. Here the best term of a form gets them one at a time, so that each
//! stage is seen in one term, and [`crate::extract::Joiner`] can join it with the best of the others. So do parts of a few stages,
//! whose choices may cut them at other places.

use super::choice::Choice;
use super::{Key, Search, Set};
use crate::calculus::term::{Op, Space};
use crate::extract::context::{Level, Verdict};
use std::collections::HashMap;
use std::rc::Rc;

/// Programs with at least this many kernels get such terms: the beam has room for the stages of others.
const MANY: u8 = 3;
/// Most terms for a form of the program.
const MOST: usize = 192;
/// Most stages of a part that gets other choices as a whole.
const STAGES: usize = 5;

/// A stage of a choice for the program, or a part of a few stages.
struct Stage {
    key: Key,
    skeleton: u64,
    /// Which argument to follow at each node, from the root.
    path: Vec<usize>,
}

impl Search<'_> {
    /// Returns choices for a form of the program: its best choice, each time with another choice for one stage. `found` are the
    /// choices that were kept, best first, and `seen` are the choices of stages that occur.
    pub(super) fn with_other_stages(
        &mut self,
        root: Key,
        found: &[Rc<Choice>],
        seen: &mut Set<(Key, u64)>,
    ) -> Vec<Rc<Choice>> {
        let Some(best) = found.first().filter(|c| c.outline.kernels >= MANY) else {
            return vec![];
        };
        // The best comes last, and its stages stay.
        let mut stages = vec![];
        for choice in found.iter().rev() {
            stages.clear();
            self.stages(choice, root, &mut vec![], &mut stages);
            seen.extend(stages.iter().map(|s| (s.key, s.skeleton)));
        }
        let each = MOST / stages.len().max(1);
        let mut out = vec![];
        for stage in stages {
            let all = self.best(stage.key);
            let fresh = in_turns(&all).filter(|c| seen.insert((stage.key, c.skeleton)));
            out.extend(fresh.take(each).map(|c| with(best, &stage.path, c)));
        }
        out
    }

    /// Collects the stages of a choice, which are its largest parts outside kernels that are one kernel at most, and its parts of
    /// a few stages. Returns the number of stages.
    fn stages(
        &mut self,
        c: &Choice,
        key: Key,
        path: &mut Vec<usize>,
        out: &mut Vec<Stage>,
    ) -> usize {
        let (_, at) = key;
        if c.skeleton == 0 || at.level() != Level::Host {
            return 0;
        }
        let args: Vec<_> = c.node.args().iter().map(|a| self.egraph.find(*a)).collect();
        let parts = match c.node.function() {
            Some(Op::Compose | Op::Fork | Op::Bimap) => self.parts(&c.node, &args, at),
            Some(op @ Op::ToMem(Space::Global)) => match at.enter(op, false, true) {
                Verdict::Inside(inner) => vec![(args[0], inner)],
                Verdict::No => vec![],
            },
            _ => vec![],
        };
        if c.outline.kernels <= 1 || parts.is_empty() {
            out.push(Stage { key, skeleton: c.skeleton, path: path.clone() });
            return 1;
        }
        let mut inside = 0;
        for (k, (arg, key)) in c.args.iter().zip(parts).enumerate() {
            path.push(k);
            inside += self.stages(arg, key, path, out);
            path.pop();
        }
        if (2..=STAGES).contains(&inside) && !path.is_empty() {
            out.push(Stage { key, skeleton: c.skeleton, path: path.clone() });
        }
        inside
    }
}

/// Returns the choices in another order: the best of each number of kernels, then the second of each, and so on. What takes two
/// kernels in place of one is cheaper only once it is timed, and would come behind all variants of the one.
fn in_turns(all: &[Rc<Choice>]) -> impl Iterator<Item = &Rc<Choice>> {
    let mut before = HashMap::new();
    let mut ranked: Vec<(usize, &Rc<Choice>)> = vec![];
    for c in all {
        let rank: &mut usize = before.entry(c.outline.kernels).or_default();
        ranked.push((*rank, c));
        *rank += 1;
    }
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().map(|(_, c)| c)
}

/// Returns a choice with `part` at a place.
fn with(c: &Choice, path: &[usize], part: &Rc<Choice>) -> Rc<Choice> {
    let Some((k, path)) = path.split_first() else { return part.clone() };
    let mut args = c.args.clone();
    args[*k] = with(&args[*k], path, part);
    Rc::new(Choice { args, ..c.clone() })
}
