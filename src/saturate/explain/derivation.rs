//! Derivations as plain values: terms, rules, places, verdicts.

use super::path::Move;
use crate::calculus::position::Position;
use crate::calculus::size::{Size, SizeEnv, Sym};
use crate::calculus::term::{Op, Shares, Term, TypeError};
use crate::calculus::text::marked;
use crate::diag::{Code, Diagnostic, Result};
use crate::rules::matching::{Application, Verdict, application};
use crate::rules::{Facts, Law, Rule, RuleSet};
use serde::ser::{Serialize, SerializeStruct, Serializer};
use std::fmt;

/// A sequence of steps that makes one term from another.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Derivation {
    /// The first term.
    #[serde(serialize_with = "as_text")]
    pub start: Term,
    /// The steps in order; empty when the terms are the same.
    pub steps: Vec<Step>,
}

impl Derivation {
    /// Returns the last term.
    pub fn goal(&self) -> &Term {
        self.steps.last().map_or(&self.start, |s| &s.after.term)
    }

    /// Whether a step uses the rule.
    pub fn uses(&self, rule: &str) -> bool {
        self.steps.iter().any(|s| s.rule == rule && matches!(s.law, StepLaw::Rule(_)))
    }

    /// Whether every step passed the check on terms alone.
    pub fn holds(&self) -> bool {
        self.steps.iter().all(Step::holds)
    }
}

/// The direction in which a rule was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From its left side to its right.
    Forwards,
    /// From its right side to its left.
    Backwards,
}

/// The sense in which the terms before and after a step are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StepLaw {
    /// Equal by a rule.
    Rule(Law),
    /// Equal by the definition of an operator.
    Definition,
    /// Not equal: tunables got values.
    Choice,
}

impl fmt::Display for StepLaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StepLaw::Rule(law) => write!(f, "{law}"),
            StepLaw::Definition => f.write_str("definition"),
            StepLaw::Choice => f.write_str("choice"),
        }
    }
}

/// A term with the part of it that a step changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The whole term, chains nested to the right.
    pub term: Term,
    /// The position of the part in the term.
    pub at: Position,
}

impl Part {
    /// Whether the part is the whole term.
    pub fn is_whole(&self) -> bool {
        self.at == Position::whole(&self.term)
    }

    /// Returns the whole term as text, with the part between `open` and `close`.
    pub fn marked(&self, open: &str, close: &str) -> String {
        let (text, at) = marked(&self.term, &self.at);
        format!("{}{open}{}{close}{}", &text[..at.start], &text[at.clone()], &text[at.end..])
    }
}

/// One application of a rule, of a definition, or the choice of the tunables.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Step {
    /// The name of the rule; that of the operator for a definition, `tunables` for the choice.
    pub rule: String,
    /// The direction in which the rule was read.
    pub direction: Direction,
    /// The sense in which the step holds.
    #[serde(serialize_with = "as_text")]
    pub law: StepLaw,
    /// The rule's sentence.
    pub says: String,
    /// The source of the rule: paper and equation.
    pub from: String,
    /// The rule as its file states it.
    pub statement: String,
    /// The place where the rule applied, in words.
    pub place: String,
    /// The term before.
    pub before: Part,
    /// The term after.
    pub after: Part,
    /// The size variables of the rule, including those that it makes, in the order in which matching met
    /// them.
    #[serde(serialize_with = "size_map")]
    pub sizes: Vec<(String, Size)>,
    /// The side conditions, evaluated again on the terms.
    pub conditions: Vec<Verdict>,
    /// Whether matching found that the rule makes the part before into the part after.
    pub matched: bool,
}

impl Step {
    /// Whether the rule matches and all its side conditions hold.
    pub fn holds(&self) -> bool {
        self.matched && self.conditions.iter().all(|c| c.holds)
    }
}

fn as_text<S: Serializer>(value: &impl fmt::Display, s: S) -> std::result::Result<S::Ok, S::Error> {
    s.collect_str(value)
}

fn size_map<S: Serializer>(sizes: &[(String, Size)], s: S) -> std::result::Result<S::Ok, S::Error> {
    s.collect_map(sizes.iter().map(|(n, v)| (n, v.to_string())))
}

impl Serialize for Part {
    /// Serializes the term as text, with the part and its byte range in the text.
    fn serialize<S: Serializer>(&self, s: S) -> std::result::Result<S::Ok, S::Error> {
        let (text, at) = marked(&self.term, &self.at);
        let mut out = s.serialize_struct("Part", 4)?;
        out.serialize_field("part", &text[at.clone()])?;
        out.serialize_field("start", &at.start)?;
        out.serialize_field("end", &at.end)?;
        out.serialize_field("term", &text)?;
        out.end()
    }
}

/// Returns the rule that a rewrite was compiled from, in the form that was compiled.
fn rule_of(rewrite: &str, rules: &RuleSet) -> Result<Rule> {
    let mut parts = rewrite.split('/');
    let found = parts.next().and_then(|name| rules.get(name)).and_then(|rule| {
        if parts.any(|form| form == "comm") { rule.for_commutative() } else { Some(rule.clone()) }
    });
    found.ok_or_else(|| {
        let text = format!("a rewrite `{rewrite}` that no rule was compiled to");
        Diagnostic::error(Code::Internal, text).into()
    })
}

/// Returns the move with the smallest part for which the rule still explains it.
pub(super) fn narrow(m: &Move, rules: &RuleSet) -> Result<Move> {
    let mut out = m.clone();
    if let Some((_, front, back)) = smallest(&rule_of(&m.rewrite, rules)?, m) {
        for at in [&mut out.old, &mut out.new] {
            at.factors = at.factors.start + front..at.factors.end - back;
        }
    }
    Ok(out)
}

/// Returns a move as a step, checked again. If a condition fails on a function itself, `known` gives the
/// facts known of all functions that are equal to it.
pub(super) fn step(m: &Move, rules: &RuleSet, known: &dyn Fn(&Term) -> Facts) -> Result<Step> {
    let rule = rule_of(&m.rewrite, rules)?;
    let found = smallest(&rule, m);
    let matched = found.is_some();
    let (sizes, conditions) = match found {
        Some((a, ..)) => {
            let sizes = a.bindings.sizes().filter(|(n, _)| !n.starts_with('_'));
            let sizes = sizes.map(|(n, s)| (n.to_owned(), s.clone())).collect();
            let mut verdicts = a.verdicts;
            for v in verdicts.iter_mut().filter(|v| !v.holds) {
                let function = v.condition.function().and_then(|f| a.bindings.function_of(f));
                if function.is_some_and(|f| v.condition.holds(&a.bindings, &|_| known(f))) {
                    v.holds = true;
                    v.values.push_str(", and an equal function shows it");
                }
            }
            (sizes, verdicts)
        }
        None => (vec![], vec![]),
    };
    Ok(Step {
        rule: rule.name.clone(),
        direction: if m.backwards { Direction::Backwards } else { Direction::Forwards },
        law: StepLaw::Rule(rule.law),
        says: rule.says,
        from: rule.from,
        statement: rule.statement,
        place: m.old.words(&m.before),
        before: Part { term: m.before.clone(), at: m.old.clone() },
        after: Part { term: m.after.clone(), at: m.new.clone() },
        sizes,
        conditions,
        matched,
    })
}

/// Returns a move from one form of the program to another as a step.
pub(super) fn form(m: &Move, forms: &[Term]) -> Step {
    Step {
        rule: "form".to_owned(),
        direction: if m.backwards { Direction::Backwards } else { Direction::Forwards },
        law: StepLaw::Rule(Law::Reassoc),
        says: "Elaboration gives this form of the program, too: reductions of rows or products are apart, long products are in parts, or reductions are in front of branches."
            .to_owned(),
        from: "elaboration; fission of maps, and associativity of reductions".to_owned(),
        statement: String::new(),
        place: m.old.words(&m.before),
        before: Part { term: m.before.clone(), at: m.old.clone() },
        after: Part { term: m.after.clone(), at: m.new.clone() },
        sizes: vec![],
        conditions: vec![],
        matched: forms.contains(&m.before) && forms.contains(&m.after),
    }
}

/// Returns how the rule explains the move, and the numbers of factors in front and behind that it leaves as
/// they are, as large as possible.
fn smallest(rule: &Rule, m: &Move) -> Option<(Application, usize, usize)> {
    let (old, new) = (m.old.part(&m.before)?, m.new.part(&m.after)?);
    let (left, right) = if m.backwards { (&new, &old) } else { (&old, &new) };
    let room = left.len().min(right.len()) - 1;
    let same = |pairs: &mut dyn Iterator<Item = (&Term, &Term)>| {
        pairs.take_while(|(a, b)| a == b).count().min(room)
    };
    let front = same(&mut left.iter().zip(right));
    let back = same(&mut left.iter().rev().zip(right.iter().rev()));
    let mut cuts: Vec<(usize, usize)> =
        (0..=front).flat_map(|f| (0..=back.min(room - f)).map(move |b| (f, b))).collect();
    cuts.sort_by_key(|(f, b)| std::cmp::Reverse(f + b));
    let found = cuts.into_iter().filter_map(|(f, b)| {
        let (from, to) = (&left[f..left.len() - b], &right[f..right.len() - b]);
        Some((application(rule, from, to).or_else(|| cancelled(rule, from, to))?, f, b))
    });
    let mut found: Vec<_> = found.collect();
    let first = found.iter().position(|(a, ..)| a.holds()).unwrap_or(0);
    (first < found.len()).then(|| found.swap_remove(first))
}

/// Returns how the rule makes an identity, which is not written in front of the rest of a chain.
fn cancelled(rule: &Rule, from: &[Term], to: &[Term]) -> Option<Application> {
    let (rest, from) = from.split_last()?;
    let id = Term::id(&rest.ty().cod);
    if to == [rest.clone()] && !from.is_empty() { application(rule, from, &[id]) } else { None }
}

/// Returns the name of a short form, the names of its sizes, and its definition for people.
fn short_form(op: &Op) -> (&'static str, &'static str, &'static str) {
    match op {
        Op::Packed => {
            ("packed", "n w r", "packed w r h => take n . asScalar . h . asVector w . padLast r")
        }
        Op::Vectorize => {
            ("vectorize", "w", "vectorize w f: f with every loop in it one over vectors")
        }
        Op::Tiled(false) => {
            ("tiled", "n m t u r q", "tiled t u r q pa pb h: h of all pairs of tiles")
        }
        Op::Tiled(true) => (
            "tiledWith",
            "n m t u r q",
            "tiledWith t u r q pa pb h: h of all pairs of tiles, each with its tile of a matrix",
        ),
        Op::TiledRows => ("tiledRows", "n m t r", "tiledRows t r h: h of all tiles of rows"),
        Op::Turned => ("turned", "n m t u r q", "turned t u r q h: h turns all tiles of a matrix"),
        Op::Blocked(true) => (
            "blockedWith",
            "n m k t r",
            "blockedWith t r sa sb u z f: all pairs of rows reduced by u, block after block; f reads more",
        ),
        Op::Blocked(false) => (
            "blocked",
            "n m k t r",
            "blocked t r sa sb u z f: all pairs of rows reduced by u, block after block",
        ),
        Op::BlockedRows => (
            "blockedRows",
            "n k t r",
            "blockedRows t r s u z f: rows and partners reduced by u, block after block",
        ),
        Op::Spread(Shares::Rows) => {
            ("spread", "n m t u v w", "spread t u v w h: h of all parts of a matrix")
        }
        Op::Spread(Shares::Warps) => {
            ("spreadWarps", "n m t u v w", "spreadWarps t u v w h: h of all parts, 4 by 8 together")
        }
        Op::Spread(Shares::Fragments) => (
            "spreadFragments",
            "n m t u v w",
            "spreadFragments t u v w h: h of all parts, 8 by 4 together",
        ),
        Op::SpreadRows => ("spreadRows", "n t", "spreadRows t h: h of all parts of t rows"),
        Op::Sliced => {
            ("sliced", "n c", "sliced w h f: h of the slices that w makes of all elements, then f")
        }
        _ => ("chunked", "n k r", "chunked k r h => take n . join . h . split k . padLast r"),
    }
}

/// Adds the steps that expand short forms.
pub(super) fn write_out(d: &mut Derivation) -> std::result::Result<(), TypeError> {
    while let Some((at, short)) = first_short(d.goal()) {
        let Some(long) = short.definition()? else { break };
        let long = long.flat()?;
        let before = d.goal().clone();
        let after = at.replace(&before, &long.chain())?;
        let start = at.factors.start;
        let new = Position { path: at.path.clone(), factors: start..start + long.chain().len() };
        let (name, sizes, statement) = short_form(short.op());
        d.steps.push(Step {
            rule: name.to_owned(),
            direction: Direction::Forwards,
            law: StepLaw::Definition,
            says: format!("What `{name}` is short for."),
            from: "definition".to_owned(),
            statement: statement.to_owned(),
            place: at.words(&before),
            sizes: sizes.split(' ').map(str::to_owned).zip(short.sizes().to_vec()).collect(),
            before: Part { term: before, at },
            after: Part { term: after, at: new },
            conditions: vec![],
            matched: true,
        });
    }
    // The last step drops the identities in chains.
    let (before, after) = (d.goal().clone(), d.goal().expand()?);
    if before != after {
        d.steps.push(Step {
            rule: "id".to_owned(),
            direction: Direction::Forwards,
            law: StepLaw::Definition,
            says: "The identity in a chain is not written.".to_owned(),
            from: "definition".to_owned(),
            statement: String::new(),
            place: "the whole term".to_owned(),
            sizes: vec![],
            before: Part { at: Position::whole(&before), term: before },
            after: Part { at: Position::whole(&after), term: after },
            conditions: vec![],
            matched: true,
        });
    }
    Ok(())
}

/// Returns the outermost short form; of several, the leftmost.
fn first_short(t: &Term) -> Option<(Position, Term)> {
    let chain = t.chain();
    let short = |f: &Term| f.definition().is_ok_and(|long| long.is_some());
    if let Some(i) = chain.iter().position(short) {
        return Some((Position { path: vec![], factors: i..i + 1 }, chain[i].clone()));
    }
    chain.iter().enumerate().find_map(|(i, f)| {
        f.args().iter().enumerate().find_map(|(k, a)| {
            let (mut at, found) = first_short(a)?;
            at.path.insert(0, (i, k));
            Some((at, found))
        })
    })
}

/// Adds the step that gives each stage symbols of its own, `n'1.t0` for `n.t0`, if the candidate's term has such symbols.
pub(super) fn part_stages(d: &mut Derivation, term: &Term) -> std::result::Result<(), TypeError> {
    let before = d.goal().clone();
    if *term == before {
        return Ok(());
    }
    let matched = term.with_sizes(&Sym::common)? == before;
    d.steps.push(Step {
        rule: "stages".to_owned(),
        direction: Direction::Forwards,
        law: StepLaw::Choice,
        says: "Kernels that share no tile have tiles of their own.".to_owned(),
        from: "extraction".to_owned(),
        statement: String::new(),
        place: "the whole term".to_owned(),
        before: Part { at: Position::whole(&before), term: before },
        after: Part { at: Position::whole(term), term: term.clone() },
        sizes: vec![],
        conditions: vec![],
        matched,
    });
    Ok(())
}

/// Adds the last step, which gives the tunables values.
pub(super) fn choose(d: &mut Derivation, env: &SizeEnv) -> std::result::Result<(), TypeError> {
    let before = d.goal().clone();
    let mut chosen: Vec<(String, Size)> = vec![];
    let mut whole = true;
    before.visit(&mut |t| {
        for s in t.sizes() {
            whole &= s.eval(env).is_ok();
            s.visit(&mut |sym| {
                if let (Some(v), true) = (env.get(sym), sym.is_chosen()) {
                    let value = (sym.to_string(), Size::constant(*v));
                    if !chosen.contains(&value) {
                        chosen.push(value);
                    }
                }
            });
        }
    });
    if chosen.is_empty() {
        return Ok(());
    }
    let value =
        |sym: &Sym| if sym.is_chosen() { env.get(sym).map(|v| Size::constant(*v)) } else { None };
    let after = before.with_sizes(&value)?;
    d.steps.push(Step {
        rule: "tunables".to_owned(),
        direction: Direction::Forwards,
        law: StepLaw::Choice,
        says: "Tiles and vector widths get values; lengths that are rounded up follow from them."
            .to_owned(),
        from: "extraction".to_owned(),
        statement: String::new(),
        place: "the whole term".to_owned(),
        before: Part { at: Position::whole(&before), term: before },
        after: Part { at: Position::whole(&after), term: after },
        sizes: chosen,
        conditions: vec![],
        matched: whole,
    });
    Ok(())
}
