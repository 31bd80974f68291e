//! Finds where in a saturated graph a rule applied, or came nearest to applying.

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

/// A term of the graph, with the part where a rule applied or nearly applied.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Site {
    /// The place of the part, in words.
    pub place: String,
    /// The smallest term equal to the program that has the part.
    #[serde(flatten)]
    pub part: Part,
}

/// Whether and where a rule applied.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// The rule applies, and its results are in the graph.
    Applied {
        /// The number of places.
        times: usize,
        /// A few of the places, those nearest to the whole program first.
        sites: Vec<Site>,
    },
    /// The left side matches, but all side conditions hold nowhere.
    Condition {
        /// The number of places where the left side matches.
        times: usize,
        /// The place where most conditions hold.
        nearest: Site,
        /// The conditions there.
        conditions: Vec<Verdict>,
    },
    /// All operators of the left side are in place, but their sizes, types or arguments do not fit.
    Mismatch {
        /// The place.
        nearest: Site,
        /// The values that differ, as text.
        differs: String,
    },
    /// No place has all operators of the left side.
    Structure {
        /// How many operators of the left side the nearest place has.
        matched: usize,
        /// How many operators the left side has.
        of: usize,
        /// The operator that is missing.
        expected: String,
        /// The operators that the graph has in its place.
        found: Vec<String>,
        /// The nearest place; `None` when no operator of the left side is in the graph.
        nearest: Option<Site>,
    },
}

/// Most sites shown for a rule that applied.
const SHOWN: usize = 3;

impl Explainer {
    /// Returns where a rule applied, or came nearest to it, in the terms that are equal to the program.
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

    /// Returns the match of the left side within the program.
    fn site(&self, m: &Match) -> Typed<Site> {
        let mut terms: Vec<Option<Term>> = vec![];
        for node in &m.pattern {
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

    /// Returns `term` within the program; the part leaves out the factors of `rest` at its end.
    fn shown(&self, class: Id, term: Term, rest: Option<Term>) -> Typed<Site> {
        let mut part = self.places.whole(class, term)?;
        part.at.factors.end -= rest.map_or(0, |r| r.chain().len());
        Ok(Site { place: part.at.words(&part.term), part })
    }

    /// Returns the term of a pattern node; its children are earlier nodes of the pattern.
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

    /// Returns the place that has most operators of the left side, whatever the sizes and repeated variables.
    fn nearest(&self, rule: &Rule) -> Typed<Outcome> {
        let egraph = &self.explainer.graph.egraph;
        let mut partial = Partial::new(egraph, &self.places);
        let (of, sides) = (operators(&rule.lhs), left_sides(rule)?);
        let Some((matched, lhs, class)) = self.closest(&mut partial, &sides) else {
            // No class has the root operator of the left side: look for its inner operators elsewhere.
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

    /// Returns the class and the pattern with the most operators in place; of several, the one with the
    /// smallest context around it in the program.
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

    /// Returns the names of the operators of a class.
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
