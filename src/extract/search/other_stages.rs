//! Terms that differ from the best one in a single stage.
//!
//! The best terms of a program with many stages share the best choices for most of them: the beam has no room for all choices of
//! every stage. The choices of each stage are known, though. Here the best term of a form gets them one at a time, so that each
//! stage is seen in one term, and [`crate::extract::Joiner`] can join it with the best of the others.

use super::choice::Choice;
use super::{Key, Search, Set};
use crate::calculus::term::{Op, Space};
use crate::extract::context::{Level, Verdict};
use std::rc::Rc;

/// Programs with at least this many kernels get such terms: the beam has room for the stages of others.
const MANY: u8 = 3;
/// Most terms for a form of the program.
const MOST: usize = 192;

/// A stage of a choice for the program.
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
            let fresh = all.iter().filter(|c| seen.insert((stage.key, c.skeleton)));
            out.extend(fresh.take(each).map(|c| with(best, &stage.path, c)));
        }
        out
    }

    /// Collects the stages of a choice: its largest parts outside kernels that are one kernel at most.
    fn stages(&mut self, c: &Choice, key: Key, path: &mut Vec<usize>, out: &mut Vec<Stage>) {
        let (_, at) = key;
        if c.skeleton == 0 || at.level() != Level::Host {
            return;
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
            return;
        }
        for (k, (arg, key)) in c.args.iter().zip(parts).enumerate() {
            path.push(k);
            self.stages(arg, key, path, out);
            path.pop();
        }
    }
}

/// Returns a choice with `part` at a place.
fn with(c: &Choice, path: &[usize], part: &Rc<Choice>) -> Rc<Choice> {
    let Some((k, path)) = path.split_first() else { return part.clone() };
    let mut args = c.args.clone();
    args[*k] = with(&args[*k], path, part);
    Rc::new(Choice { args, ..c.clone() })
}
