//! One rule: two typed sides, and what must hold.

use super::condition::{Condition, LetSize};
use crate::calculus::term::Term;
use crate::diag::{Source, Span};
use std::fmt;
use std::sync::Arc;

/// In what sense the sides are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Law {
    /// On every input, bit for bit.
    Exact,
    /// Up to the order of an associative (and, where the rule says so, commutative) operator.
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

/// A rewrite rule: `lhs` may be replaced by (is made equal to) `rhs`.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Unique in its set; kebab-case.
    pub name: String,
    /// The theme: the file's name without extension.
    pub theme: String,
    /// In what sense it holds.
    pub law: Law,
    /// One sentence.
    pub says: String,
    /// Where it comes from: paper and equation.
    pub from: String,
    /// The statement as written.
    pub statement: String,
    /// The left side; variables are [`crate::calculus::term::Op::Meta`] and size and type variables.
    pub lhs: Term,
    /// The right side.
    pub rhs: Term,
    /// Sizes the right side introduces.
    pub lets: Vec<LetSize>,
    /// Side conditions.
    pub when: Vec<Condition>,
    /// A capability of the device without which the rule is left out.
    pub needs: Option<String>,
    /// A term the rule applies to, as text, with the type of its argument.
    pub example: Option<String>,
    /// Where the example stands.
    pub example_at: Option<Span>,
    /// The file.
    pub source: Arc<Source>,
    /// Where the statement stands.
    pub span: Span,
}
