//! A rewrite rule: two typed sides and the conditions under which they are equal.

use super::condition::{Condition, LetSize};
use crate::calculus::term::{Op, ReduceKind, Term};
use crate::diag::{Source, Span};
use std::fmt;
use std::sync::Arc;

/// The sense in which the sides are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Law {
    /// On every input, bit for bit.
    Exact,
    /// Up to the order in which an associative operator is applied (and a commutative one, if the rule says
    /// so).
    Reassoc,
    /// Up to rounding; only with `--float relaxed`.
    Approx,
}

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Law::Exact => "exact",
            Law::Reassoc => "reassoc",
            Law::Approx => "approx",
        })
    }
}

/// One step of a derivation: a rule applied somewhere in a term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The name of the rule.
    pub rule: String,
    /// Whether the rule is read from right to left.
    pub back: bool,
    /// The whole term after the step.
    pub gives: Term,
}

/// A rewrite rule: `lhs` may be replaced by (is made equal to) `rhs`.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Unique in its set; kebab-case.
    pub name: String,
    /// The name of the block that the rule was made from: its own name, or that without the number of a `for`
    /// clause.
    pub family: String,
    /// The theme: the file's name without extension.
    pub theme: String,
    /// The set that it belongs to: `default`, or a named one.
    pub set: String,
    /// The sense in which it holds.
    pub law: Law,
    /// The rule in one sentence.
    pub says: String,
    /// The source of the rule: paper and equation.
    pub from: String,
    /// The statement as written.
    pub statement: String,
    /// The left side; variables are [`crate::calculus::term::Op::Meta`] and size and type variables.
    pub lhs: Term,
    /// The right side.
    pub rhs: Term,
    /// Sizes that the right side introduces.
    pub lets: Vec<LetSize>,
    /// Side conditions.
    pub when: Vec<Condition>,
    /// The same rule for a smaller number of its `for` clause, which is tested instead.
    pub stand_in: Option<Box<Rule>>,
    /// The steps by which it follows from smaller rules; empty for a primitive rule.
    pub derivation: Vec<Step>,
    /// A capability of the device that the rule needs.
    pub needs: Option<String>,
    /// A term that the rule applies to, as text, with the type of its argument.
    pub example: Option<String>,
    /// The place of the example.
    pub example_at: Option<Span>,
    /// The file.
    pub source: Arc<Source>,
    /// The place of the statement.
    pub span: Span,
}

impl Rule {
    /// Returns the rule with `reduceComm` in place of `reduce`; `None` when it does not mention `reduce`. It
    /// holds because `reduceComm` promises all that `reduce` does, and that its operator is commutative.
    pub fn for_commutative(&self) -> Option<Rule> {
        fn swap(t: &Term) -> Term {
            let op = match t.op() {
                Op::Reduce(ReduceKind::Assoc) => Op::Reduce(ReduceKind::Comm),
                other => other.clone(),
            };
            let args = t.args().iter().map(swap).collect();
            Term::new(op, t.sizes().to_vec(), t.tys().to_vec(), args)
                .expect("invariant: both kinds of reduction have one typing rule")
        }
        let lhs = swap(&self.lhs);
        if lhs == self.lhs {
            return None;
        }
        let mut out = Rule { lhs, rhs: swap(&self.rhs), ..self.clone() };
        out.when.retain(|c| !matches!(c, Condition::Commutative(_)));
        Some(out)
    }
}
