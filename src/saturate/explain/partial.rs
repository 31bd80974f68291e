//! Partial matching: how many operators of a rule's left side a class has, whatever the sizes, types and
//! variables.

use super::place::Places;
use crate::calculus::size::{Size, Sym};
use crate::calculus::term::{Op, Term, TypeError};
use crate::calculus::ty::{FnTy, Ty};
use crate::rules::{Bindings, Rule};
use crate::saturate::EGraph;
use crate::saturate::analysis::Data;
use crate::saturate::language::Node;
use egg::Id;
use rustc_hash::FxHashMap;

/// The variable for the tail of a longer chain; no rule has a variable of that name.
const REST: &str = "_rest";

/// Returns the left sides that the graph is searched for: those of both forms of a rule, alone and with a
/// tail.
pub(super) fn left_sides(rule: &Rule) -> Result<Vec<Term>, TypeError> {
    let mut out = vec![];
    for lhs in [Some(rule.lhs.clone()), rule.for_commutative().map(|r| r.lhs)].into_iter().flatten()
    {
        if *lhs.op() == Op::Compose {
            let tys = vec![Ty::Meta(REST.into()), lhs.ty().dom.clone()];
            let rest = Term::new(Op::Meta(REST.into()), vec![], tys, vec![])?;
            let mut factors = lhs.chain();
            factors.retain(|f| *f.op() != Op::Id);
            factors.push(rest);
            out.push(Term::of_chain(&factors)?);
        }
        out.push(lhs);
    }
    Ok(out)
}

/// Returns the number of operators of a pattern, not counting compositions.
pub(super) fn operators(pattern: &Term) -> usize {
    let mut count = 0;
    pattern.visit(&mut |t| count += usize::from(is_operator(t.op())));
    count
}

/// Whether the operator counts in the score of a pattern.
pub(super) fn is_operator(op: &Op) -> bool {
    !matches!(op, Op::Compose | Op::Meta(_))
}

/// Returns the name of an operator for people.
pub(super) fn name(op: &Op) -> String {
    match (op.name(), op) {
        (Some(name), _) => name.to_owned(),
        (None, Op::Scalar(f)) => f.to_string(),
        (None, Op::Input(name)) => name.to_string(),
        (None, Op::Compose) => "a chain".to_owned(),
        (None, _) => "a constant".to_owned(),
    }
}

/// Scores of patterns for classes.
pub(super) struct Partial<'a> {
    pub egraph: &'a EGraph,
    pub places: &'a Places<'a>,
    known: FxHashMap<(Term, Id), usize>,
}

impl<'a> Partial<'a> {
    pub fn new(egraph: &'a EGraph, places: &'a Places<'a>) -> Partial<'a> {
        Partial { egraph, places, known: FxHashMap::default() }
    }

    /// Returns how many operators of the pattern the best member of the class has in the same places.
    pub fn score(&mut self, pattern: &Term, class: Id) -> usize {
        if let Op::Meta(_) = pattern.op() {
            return 0;
        }
        let key = (pattern.clone(), self.egraph.find(class));
        if let Some(score) = self.known.get(&key) {
            return *score;
        }
        // Classes are cyclic, but the recursion ends with the pattern.
        let score = self.best(pattern, class).map_or(0, |(score, _)| score);
        self.known.insert(key, score);
        score
    }

    fn best(&mut self, pattern: &Term, class: Id) -> Option<(usize, &'a Node)> {
        let egraph = self.egraph;
        let mut best: Option<(usize, &Node)> = None;
        for node in &egraph[egraph.find(class)].nodes {
            if node.function() != Some(pattern.op()) {
                continue;
            }
            let inner: usize =
                pattern.args().iter().zip(node.args()).map(|(p, a)| self.score(p, *a)).sum();
            let score = inner + usize::from(is_operator(pattern.op()));
            if best.is_none_or(|(s, _)| score > s) {
                best = Some((score, node));
            }
        }
        best
    }

    /// Returns the member with the best score, and records in `seen` what the pattern's expressions met.
    pub fn align(&mut self, pattern: &Term, class: Id, seen: &mut Seen) -> Result<Term, TypeError> {
        if let Op::Meta(name) = pattern.op() {
            let term = self.places.term(class)?;
            if **name == *REST {
                seen.rest = Some(term.clone());
            }
            seen.functions.push((name.to_string(), pattern.ty().clone(), self.egraph.find(class)));
            seen.terms.push(term.clone());
            return Ok(term);
        }
        let Some((_, node)) = self.best(pattern, class) else {
            seen.missing.get_or_insert_with(|| {
                let expected = match pattern.op() {
                    Op::Compose => pattern.to_string().replace(REST, "..."),
                    op => name(op),
                };
                (expected, class)
            });
            return self.places.term(class);
        };
        let (mut sizes, mut tys) = (pattern.sizes().iter(), pattern.tys().iter());
        for c in &node.children {
            match &self.egraph[*c].data {
                Data::Size(s) => seen.sizes.extend(sizes.next().map(|w| (w.clone(), s.clone()))),
                Data::Ty(t) => seen.types.extend(tys.next().map(|w| (w.clone(), t.clone()))),
                Data::Fn(..) | Data::Broken => {}
            }
        }
        let args = pattern.args().iter().zip(node.args());
        let args = args.map(|(p, a)| self.align(p, *a, seen)).collect::<Result<_, _>>()?;
        self.places.node(node, args)
    }
}

/// The record of an alignment: the pattern's expressions, each with its counterpart in the graph.
#[derive(Default)]
pub(super) struct Seen {
    /// The first operator that was missing, and the class that lacks it.
    pub missing: Option<(String, Id)>,
    /// The tail of a longer chain.
    pub rest: Option<Term>,
    sizes: Vec<(Size, Size)>,
    types: Vec<(Ty, Ty)>,
    functions: Vec<(String, FnTy, Id)>,
    terms: Vec<Term>,
}

impl Seen {
    /// Returns the reason why the sizes, types or repeated variables do not fit, as text.
    pub fn differs(&self) -> String {
        let plain = |t: &dyn std::fmt::Display| t.to_string().replace('?', "");
        for (i, (name, _, class)) in self.functions.iter().enumerate() {
            for (k, (other, _, also)) in self.functions[..i].iter().enumerate() {
                if name == other && class != also {
                    return format!("{name} would be both {} and {}", self.terms[k], self.terms[i]);
                }
            }
        }
        let mut b = Bindings::default();
        for (want, got) in &self.sizes {
            let before = b.size(want);
            if !b.match_size(want, got) {
                return match want.as_sym() {
                    Some(Sym::Meta(_)) => {
                        format!("{} would be both {before} and {got}", plain(want))
                    }
                    _ => format!("{} would be {before}, and is {got}", plain(want)),
                };
            }
        }
        let functions = self.functions.iter().zip(&self.terms).flat_map(|((_, want, _), got)| {
            [(want.dom.clone(), got.ty().dom.clone()), (want.cod.clone(), got.ty().cod.clone())]
        });
        for (want, got) in self.types.iter().cloned().chain(functions) {
            let before = b.ty(&want);
            if !b.match_ty(&want, &got) {
                return format!("the type {} would be {got}", plain(&before));
            }
        }
        "the sizes do not determine each other".to_owned()
    }
}
