//! Where a rule came nearest to applying in a saturated graph.

use super::derivation::Part;
use super::partial::{Partial, Seen, is_operator, left_sides, name, operators};
use super::place::Places;
use super::{Explainer, Typed, broken};
use crate::calculus::term::{Term, TypeError};
use crate::diag::Result;
use crate::rules::matching::Verdict;
use crate::rules::{Condition, Rule};
use crate::saturate::analysis::Data;
use crate::saturate::compile::{self, Match};
use crate::saturate::language::Node;
use egg::{ENodeOrVar, Id};
use serde::Serialize;
use std::cmp::Reverse;

/// A term of the graph with the part where a rule applied, or nearly.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Site {
    /// Where the part is, in words.
    pub place: String,
    /// The smallest term equal to the program that has the part.
    #[serde(flatten)]
    pub part: Part,
}

/// What became of a rule.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// It applies, and its results are in the graph.
    Applied {
        /// In how many places.
        times: usize,
        /// A few of them, those nearest to the whole program first.
        sites: Vec<Site>,
    },
    /// Its left side is there, but nowhere do all side conditions hold.
    Condition {
        /// Places where the left side is.
        times: usize,
        /// The place where most conditions hold.
        nearest: Site,
        /// The conditions there.
        conditions: Vec<Verdict>,
    },
    /// The operators of its left side are there, but their sizes, types or arguments do not go together.
    Mismatch {
        /// The place.
        nearest: Site,
        /// What is not the same.
        differs: String,
    },
    /// Nowhere are all operators of its left side.
    Structure {
        /// How many operators of the left side are at the nearest place.
        matched: usize,
        /// How many it has.
        of: usize,
        /// The operator that is not there.
        expected: String,
        /// What is in its place, in all terms of the graph.
        found: Vec<String>,
        /// The nearest place; none when no operator of the left side is anywhere.
        nearest: Option<Site>,
    },
}

/// Sites shown of a rule that applied.
const SHOWN: usize = 3;

impl Explainer {
    /// Where a rule applied, or came nearest to it, in the terms that were found equal to the program.
    ///
    /// # Errors
    /// Never for a sound graph: terms taken from it are type-checked again.
    pub fn why_not(&self, rule: &Rule) -> Result<Outcome> {
        WhyNot { explainer: self, places: Places::new(&self.graph) }.outcome(rule).map_err(broken)
    }
}

struct WhyNot<'a> {
    explainer: &'a Explainer,
    places: Places<'a>,
}

impl WhyNot<'_> {
    fn outcome(&self, rule: &Rule) -> Typed<Outcome> {
        let egraph = &self.explainer.graph.egraph;
        let mut found: Vec<(usize, Match)> = compile::matches(rule, egraph)
            .into_iter()
            .filter_map(|m| Some((self.places.distance(m.class)?, m)))
            .collect();
        found.retain(|(_, m)| m.bindings.is_some());
        let failing = |m: &Match| m.conditions.iter().filter(|(_, holds, _)| !holds).count();
        found.sort_by_key(|(distance, m)| (failing(m), *distance));
        let Some((_, first)) = found.first() else {
            return self.nearest(rule);
        };
        if failing(first) > 0 {
            return Ok(Outcome::Condition {
                times: found.len(),
                nearest: self.site(first)?,
                conditions: self.verdicts(first),
            });
        }
        let applied: Vec<&Match> =
            found.iter().map(|(_, m)| m).filter(|m| failing(m) == 0).collect();
        let sites = applied.iter().take(SHOWN).map(|m| self.site(m)).collect::<Typed<_>>()?;
        Ok(Outcome::Applied { times: applied.len(), sites })
    }

    fn verdicts(&self, m: &Match) -> Vec<Verdict> {
        let Some(b) = &m.bindings else { return vec![] };
        let verdict = |(c, holds, function): &(Condition, bool, Option<Id>)| {
            let text = function.and_then(|f| self.places.term(f).ok());
            let text = |f: &str| text.as_ref().map_or_else(|| f.to_owned(), ToString::to_string);
            Verdict { condition: c.clone(), holds: *holds, values: c.values(b, &text) }
        };
        m.conditions.iter().map(verdict).collect()
    }

    /// The left side as it was found, in the program.
    fn site(&self, m: &Match) -> Typed<Site> {
        let mut terms: Vec<Option<Term>> = vec![];
        for node in m.pattern.iter() {
            terms.push(match node {
                ENodeOrVar::Var(v) => self.places.term(m.subst[*v]).ok(),
                ENodeOrVar::ENode(n) => Some(self.instance(n, m, &terms)?),
            });
        }
        let whole = terms.pop().flatten();
        let whole = whole.map_or_else(|| self.places.term(m.class), Ok)?;
        let rest = m.rest.map(|rest| self.places.term(rest)).transpose()?;
        self.shown(m.class, whole, rest)
    }

    /// The part that is `term`, without the `rest` at its end, in the program.
    fn shown(&self, class: Id, term: Term, rest: Option<Term>) -> Typed<Site> {
        let mut part = self.places.whole(class, term)?;
        part.at.factors.end -= rest.map_or(0, |r| r.chain().len());
        Ok(Site { place: part.at.words(&part.term), part })
    }

    /// A node of the pattern, its children being earlier nodes of the pattern.
    fn instance(&self, node: &Node, m: &Match, terms: &[Option<Term>]) -> Typed<Term> {
        let egraph = &self.explainer.graph.egraph;
        let (mut sizes, mut tys, mut args) = (vec![], vec![], vec![]);
        for c in &node.children {
            let i = usize::from(*c);
            let data = match &m.pattern[*c] {
                ENodeOrVar::Var(v) => Some(&egraph[m.subst[*v]].data),
                ENodeOrVar::ENode(_) => None,
            };
            match data {
                Some(Data::Size(s)) => sizes.push(s.clone()),
                Some(Data::Ty(t)) => tys.push(t.clone()),
                Some(Data::Fn(..) | Data::Broken) | None => args.extend(terms[i].clone()),
            }
        }
        let op = node.function().ok_or_else(|| TypeError("a pattern without operator".into()))?;
        Term::new(op.clone(), sizes, tys, args)
    }

    /// Where the operators of the left side come nearest, sizes and repeated variables aside.
    fn nearest(&self, rule: &Rule) -> Typed<Outcome> {
        let egraph = &self.explainer.graph.egraph;
        let mut partial = Partial::new(egraph, &self.places);
        let (of, sides) = (operators(&rule.lhs), left_sides(rule)?);
        let Some((matched, lhs, class)) = self.closest(&mut partial, &sides) else {
            // Not even one operator at the place it has in the left side: perhaps elsewhere.
            let mut parts = vec![];
            rule.lhs.visit(&mut |t| parts.extend(is_operator(t.op()).then(|| t.clone())));
            let elsewhere = self.closest(&mut partial, &parts);
            let nearest = match &elsewhere {
                Some((.., class)) => Some(self.shown(*class, self.places.term(*class)?, None)?),
                None => None,
            };
            let name_of = |t: &Term| name(t.op());
            return Ok(Outcome::Structure {
                matched: elsewhere.as_ref().map_or(0, |(matched, ..)| *matched),
                of,
                expected: match &elsewhere {
                    Some(_) => rule.lhs.to_string(),
                    None => parts.first().map(name_of).unwrap_or_default(),
                },
                found: elsewhere.map(|(_, part, _)| name_of(&part)).into_iter().collect(),
                nearest,
            });
        };
        let mut seen = Seen::default();
        let term = partial.align(&lhs, class, &mut seen)?;
        let nearest = self.shown(class, term, seen.rest.take())?;
        Ok(match seen.missing {
            Some((expected, at)) => Outcome::Structure {
                matched,
                of,
                expected,
                found: self.names(at),
                nearest: Some(nearest),
            },
            None => Outcome::Mismatch { nearest, differs: seen.differs() },
        })
    }

    /// The class, and which pattern, with the most operators in the right places; the least of the program is
    /// around it.
    fn closest(&self, partial: &mut Partial, patterns: &[Term]) -> Option<(usize, Term, Id)> {
        let mut best: Option<(usize, Reverse<usize>, Term, Id)> = None;
        for pattern in patterns {
            for class in self.explainer.graph.egraph.classes() {
                let Some(distance) = self.places.distance(class.id) else { continue };
                let score = (partial.score(pattern, class.id), Reverse(distance));
                if score.0 > 0 && best.as_ref().is_none_or(|b| score > (b.0, b.1)) {
                    best = Some((score.0, score.1, pattern.clone(), class.id));
                }
            }
        }
        best.map(|(score, _, pattern, class)| (score, pattern, class))
    }

    /// The operators of a class.
    fn names(&self, class: Id) -> Vec<String> {
        let egraph = &self.explainer.graph.egraph;
        let mut out: Vec<String> = vec![];
        for node in &egraph[egraph.find(class)].nodes {
            if let Some(op) = node.function() {
                let name = name(op);
                if !out.contains(&name) {
                    out.push(name);
                }
            }
        }
        out.sort();
        out
    }
}
