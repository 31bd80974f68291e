//! Tests rules: evaluates both sides of random instances and compares the results.
//!
//! An instance gives every variable of a rule a random value: sizes (among them primes, equal ones, 0, 1, and
//! sizes that no tile divides), types, functions, operators with the laws that their pattern promises, and an
//! input. Choices that a pattern leaves open are random too: `reorder` is some permutation, and a reduction
//! groups its elements in some way. If a rule is not an equality, an instance shows that it is wrong; the
//! instance is made small before it is shown.
//!
//! A rule under `law exact` is tested on floats of every kind (fractions, huge and tiny ones, NaN,
//! infinities, -0.0), rounded as a device rounds them. Both sides must give the same bits; all NaNs count as
//! one. If the order of a reduction is open, floats are whole numbers, which are exact in every order. Half
//! of the instances of an exact rule instead fold every reduction from the left, with operators that are not
//! associative, on any floats.

mod all;
mod instance;
mod meaning;
mod shrink;
mod sizes;

use super::{Law, Rule};
use crate::calculus::eval;
use crate::calculus::sample;
use crate::calculus::size::{SizeEnv, Sym};
use crate::calculus::term::{Op, Term};
use crate::calculus::value::{Shape, Value};
use crate::diag::{Code, Diagnostic, Span};
pub use all::{Tested, check_all, derivation};
use instance::{Instance, Plan, Reading, Scale, Verdict, size_of};
use std::sync::Arc;

/// The longest dimension of an instance, unless the sides need a longer one.
const LONGEST: u64 = 24;

/// Attempts for each instance before a rule counts as untestable.
const ATTEMPTS: usize = 60;

/// How rules are tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check {
    /// Number of instances of each rule.
    pub instances: usize,
    /// The seed of the instances; each rule has its own sequence, by its name.
    pub seed: u64,
}

impl Default for Check {
    fn default() -> Check {
        Check { instances: 200, seed: 0 }
    }
}

/// The result of testing a rule.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The sides agreed on this many instances.
    Holds(usize),
    /// The sides differ on an instance.
    Broken(Box<Counterexample>),
    /// Too few instances could be made: only this many.
    Untested(usize),
}

/// A small instance on which a rule's sides differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counterexample {
    /// Values of sizes by name, without sizes that the rule does not name.
    pub sizes: Vec<(String, u64)>,
    /// Types by name.
    pub types: Vec<(String, String)>,
    /// Terms for the function variables.
    pub functions: Vec<(String, String)>,
    /// The left side with its type.
    pub left: String,
    /// The right side.
    pub right: String,
    /// The argument.
    pub input: String,
    /// The result of the left side.
    pub expected: String,
    /// The result of the right side, or why it has none.
    pub got: String,
    /// Other facts: the permutation that `reorder` was, how reductions were ordered.
    pub notes: Vec<String>,
}

impl Counterexample {
    /// Returns the counterexample as text, one line for each fact.
    pub fn lines(&self) -> Vec<String> {
        let mut out = vec![];
        if !self.sizes.is_empty() {
            let sizes: Vec<String> = self.sizes.iter().map(|(n, v)| format!("{n} = {v}")).collect();
            out.push(format!("sizes: {}", sizes.join(", ")));
        }
        if !self.types.is_empty() {
            let types: Vec<String> = self.types.iter().map(|(n, t)| format!("{n} = {t}")).collect();
            out.push(format!("types: {}", types.join(", ")));
        }
        out.extend(self.functions.iter().map(|(n, f)| format!("{n} = {f}")));
        out.push(format!("left side: {}", self.left));
        out.push(format!("right side: {}", self.right));
        out.push(format!("on the input {}", self.input));
        out.push(format!("the left side gives {}", self.expected));
        out.push(format!("the right side gives {}", self.got));
        out.extend(self.notes.iter().cloned());
        out
    }
}

/// Tests one rule.
pub fn check(rule: &Rule, how: Check) -> Outcome {
    let rule = rule.stand_in.as_deref().unwrap_or(rule);
    let plan = Plan::of(rule);
    let mut done = 0;
    for attempt in 0..how.instances * ATTEMPTS {
        let rng = &mut sample::rng(how.seed, &rule.name, attempt as u64);
        let scale = Scale { most: LONGEST, plain: false };
        let Some(instance) = plan.draw(rng, scale) else { continue };
        match plan.judge(&instance) {
            Verdict::Void => {}
            Verdict::Same => {
                done += 1;
                if done == how.instances {
                    return Outcome::Holds(done);
                }
            }
            Verdict::Differs(..) => {
                let small = shrink::shrink(&plan, instance, rng);
                return match counterexample(&plan, &small) {
                    Some(c) => Outcome::Broken(Box::new(c)),
                    None => Outcome::Untested(done),
                };
            }
        }
    }
    if done == how.instances { Outcome::Holds(done) } else { Outcome::Untested(done) }
}

/// Returns the place of a rule's statement, without leading blanks.
pub(super) fn place(rule: &Rule) -> Span {
    let range = rule.span.range();
    let text = rule.source.text.get(range.clone()).unwrap_or_default();
    let blank = text.len() - text.trim_start().len();
    Span::new(range.start + blank, range.start + text.trim_end().len())
}

/// Returns the error to report for a rule; `None` when it holds.
pub fn diagnostic(rule: &Rule, outcome: &Outcome) -> Option<Diagnostic> {
    match outcome {
        Outcome::Holds(_) => None,
        Outcome::Broken(c) => {
            let text = format!("rule `{}` is wrong: its sides are not equal", rule.name);
            let mut d = Diagnostic::error(Code::RuleUnsound, text).at(
                &rule.source,
                place(rule),
                "the sides differ on the instance below",
            );
            for line in c.lines() {
                d = d.note(line);
            }
            Some(d.help("correct the rule, or say with `when` where it holds"))
        }
        Outcome::Untested(made) => {
            let text = format!("rule `{}` cannot be tested", rule.name);
            let d = Diagnostic::error(Code::RuleUntested, text).at(
                &rule.source,
                place(rule),
                format!("only {made} instances of it could be made"),
            );
            Some(d.help("no sizes, types and functions were found that fit the left side and the conditions"))
        }
    }
}

fn counterexample(plan: &Plan, i: &Instance) -> Option<Counterexample> {
    let rule = plan.rule;
    let sides = plan.sides(i)?;
    let Verdict::Differs(expected, got) = plan.judge(i) else { return None };
    let shown = |t: &crate::calculus::ty::Ty, v: &Value| -> String {
        eval::shape(t, &SizeEnv::default()).map_or_else(|_| v.to_string(), |s: Shape| s.show(v))
    };
    let mut names: Vec<Arc<str>> = vec![];
    for sym in i.sizes.keys() {
        if let Sym::Meta(m) = sym
            && !m.starts_with('_')
        {
            names.push(m.clone());
        }
    }
    let own = |name: &&Arc<str>| !name.starts_with('_');
    let ty = sides.left.ty();
    let (left, right) = (sides.left.to_string(), &sides.right);
    Some(Counterexample {
        sizes: names.iter().filter_map(|n| Some((n.to_string(), size_of(i, n)?))).collect(),
        types: i
            .types
            .iter()
            .filter(|(n, _)| own(n))
            .map(|(n, t)| (n.to_string(), t.to_string()))
            .collect(),
        functions: i.functions.iter().map(|(n, f)| (n.to_string(), f.to_string())).collect(),
        left: format!("{left} : {ty}"),
        right: match right {
            Ok(t) => t.to_string(),
            Err(_) => rule.rhs.to_string().replace('?', ""),
        },
        input: shown(&ty.dom, &i.input),
        expected: shown(&ty.cod, &expected),
        got: match &got {
            Ok(v) => shown(&ty.cod, v),
            Err(why) => format!("nothing: {why}"),
        },
        notes: remarks(rule, i, &sides.left, right.as_ref().ok()),
    })
}

/// Returns the choices of an instance that its terms do not show.
fn remarks(rule: &Rule, i: &Instance, left: &Term, right: Option<&Term>) -> Vec<String> {
    let mut out = vec![];
    let mut lengths: Vec<u64> = vec![];
    for side in [Some(left), right].into_iter().flatten() {
        side.visit(&mut |t| {
            if *t.op() == Op::Reorder {
                lengths.extend(t.sizes()[0].as_constant().filter(|n| !lengths.contains(n)));
            }
        });
    }
    for n in lengths {
        let p = meaning::permutation(i.order, usize::try_from(n).unwrap_or(0));
        out.push(format!(
            "`reorder` may be any permutation, here the one that takes elements {p:?}"
        ));
    }
    match i.reading {
        Reading::AsWritten if rule.law == Law::Exact => out.push(
            "reductions fold from the left here, and their operator is not associative: `law exact` promises \
             equal bits also then, `law reassoc` does not"
                .to_owned(),
        ),
        _ => {
            if let Some(right) = right
                && i.folded(left).is_some_and(|l| i.folded(right).is_some_and(|r| l == r))
            {
                out.push(
                    "the sides agree when every reduction folds from the left; they differ when it groups or \
                     orders otherwise, as it may"
                        .to_owned(),
                );
            }
        }
    }
    out
}

#[cfg(test)]
mod tests;
