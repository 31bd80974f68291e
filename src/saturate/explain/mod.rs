//! Explanations: derivations that show why two terms are equal, with each step checked again on terms alone.
//!
//! [`Explainer`] saturates a second e-graph that records how its classes were merged. egg turns the record
//! into a list of terms, each made from the one before by one rewrite. This module turns them into terms of
//! the calculus with flat chains. Each step is then found again by matching ([`crate::rules::matching`]),
//! which knows nothing of e-graphs, so that a derivation does not rely on egg.

mod derivation;
mod partial;
mod path;
mod place;
mod shorten;
mod why_not;

pub use derivation::{Derivation, Direction, Part, Step, StepLaw};
pub use why_not::{Outcome, Site};

use super::language::{Node, add_term};
use super::lookup::lookup;
use super::run::{FORM, Saturated, saturate_explained};
use crate::calculus::size::SizeEnv;
use crate::calculus::term::{Op, Term, TypeError};
use crate::calculus::ty::Ty;
use crate::diag::{Code, Diagnostic, Failure, Limits, Result};
use crate::rules::RuleSet;
use egg::{RecExpr, TreeTerm};
use std::collections::HashMap;
use std::rc::Rc;

type Typed<T> = std::result::Result<T, TypeError>;

/// An e-graph that can explain why its terms are equal.
pub struct Explainer {
    /// The graph.
    pub graph: Saturated,
    /// The program's term, and its other forms.
    forms: Vec<Term>,
    rules: RuleSet,
    most_steps: usize,
}

impl Explainer {
    /// Inserts the term, with its other forms, and saturates the rules. Derivations start from the first form.
    ///
    /// # Errors
    /// Those of [`super::saturate`].
    pub fn new(forms: &[Term], rules: &RuleSet, limits: &Limits) -> Result<Explainer> {
        // A graph with explanations grows more slowly and numbers its classes differently. When a limit stops
        // the ordinary run, this run needs higher limits to contain everything that the ordinary graph
        // contains.
        let further = Limits {
            nodes: limits.nodes.saturating_mul(2),
            saturation_time: limits.saturation_time.map(|t| t.saturating_mul(4)),
            ..limits.clone()
        };
        let graph = saturate_explained(forms, rules, &further)?;
        Ok(Explainer {
            graph,
            forms: forms.to_vec(),
            rules: rules.clone(),
            most_steps: limits.explanation_steps,
        })
    }

    /// Whether the term is in the class of the program.
    pub fn knows(&self, t: &Term) -> bool {
        let class = self.graph.egraph.lookup_expr(&expression(t));
        class.is_some_and(|c| self.graph.egraph.find(c) == self.graph.egraph.find(self.graph.root))
    }

    /// Returns the derivation of a term of the graph from the program's term.
    ///
    /// # Errors
    /// [`Code::NotDerived`] when the graph does not hold it, or the derivation is longer than
    /// [`Limits::explanation_steps`].
    pub fn derive(&mut self, goal: &Term) -> Result<Derivation> {
        if !self.knows(goal) {
            return Err(self.unknown(goal).into());
        }
        let (left, right) = (expression(&self.forms[0]), expression(goal));
        let mut explanation = self.graph.egraph.explain_equivalence(&left, &right);
        let steps = count(&explanation.explanation_trees, &mut HashMap::new());
        if steps > self.most_steps {
            let text = format!("the derivation has more than {} steps", self.most_steps);
            return Err(Diagnostic::error(Code::NotDerived, text).into());
        }
        let moves = path::moves(explanation.make_flat_explanation()).map_err(broken)?;
        let narrow = |m: &path::Move| match m.rewrite == FORM {
            true => Ok(m.clone()),
            false => derivation::narrow(m, &self.rules),
        };
        let moves = moves.iter().map(narrow).collect::<Result<_>>()?;
        let moves = shorten::shorten(moves);
        let known = |f: &Term| {
            let class = self.graph.egraph.lookup_expr(&expression(f));
            class.map(|c| self.graph.egraph[c].data.facts()).unwrap_or_default()
        };
        let forms = self.forms.iter().map(Term::flat).collect::<Typed<Vec<_>>>().map_err(broken)?;
        let step = |m: &path::Move| match m.rewrite == FORM {
            true => Ok(derivation::form(m, &forms)),
            false => derivation::step(m, &self.rules, &known),
        };
        let steps = moves.iter().map(step).collect::<Result<_>>()?;
        let start = self.forms[0].flat().map_err(broken)?;
        Ok(Derivation { start, steps })
    }

    /// As [`Explainer::derive`], and adds the steps from a term of the graph to a candidate: operators such
    /// as `chunked` and `tiled` are expanded, stages get symbols of their own, and the tunables get values. `goal` is the
    /// term of the graph, `term` is the candidate's, from which kernels are generated.
    ///
    /// # Errors
    /// Those of [`Explainer::derive`].
    pub fn derive_candidate(
        &mut self,
        goal: &Term,
        term: &Term,
        env: &SizeEnv,
    ) -> Result<Derivation> {
        let mut out = self.derive(goal)?;
        derivation::write_out(&mut out).map_err(broken)?;
        derivation::part_stages(&mut out, term).map_err(broken)?;
        derivation::choose(&mut out, env).map_err(broken)?;
        Ok(out)
    }

    /// Returns the derivation of a term as a person writes it; the graph may hold the term with short forms
    /// instead.
    ///
    /// # Errors
    /// Those of [`Explainer::derive`].
    pub fn derive_written(&mut self, goal: &Term) -> Result<Derivation> {
        let goal = goal.flat().map_err(broken)?;
        if self.knows(&goal) {
            return self.derive(&goal);
        }
        let mut compact = self.compact(&goal).map_err(broken)?;
        if !self.knows(&compact)
            && let Ok(found) = lookup(&self.graph, &goal, &SizeEnv::default())
            && found.sizes.is_empty()
        {
            compact = found.term.flat().map_err(broken)?;
        }
        if !self.knows(&compact) {
            return Err(self.unknown(&compact).into());
        }
        let mut out = self.derive(&compact)?;
        derivation::write_out(&mut out).map_err(broken)?;
        Ok(out)
    }

    fn holds(&self, t: &Term) -> bool {
        self.graph.egraph.lookup_expr(&expression(t)).is_some()
    }

    /// Returns the term with `chunked` and `packed` in place of the chains that they abbreviate, if the graph
    /// holds the result.
    fn compact(&self, t: &Term) -> Typed<Term> {
        let inside = |f: &Term| {
            let args = f.args().iter().map(|a| self.compact(a)).collect::<Typed<Vec<_>>>()?;
            f.with_args(args)
        };
        let mut chain = t.chain().iter().map(inside).collect::<Typed<Vec<_>>>()?;
        // From the right, so that inner pairs of `split` and `join` are replaced first.
        let mut from = chain.len();
        while from > 0 {
            from -= 1;
            let short = (from + 2..=chain.len()).find_map(|to| {
                let short = shorter(&chain[from..to])?;
                self.holds(&short).then_some((to, short))
            });
            if let Some((to, short)) = short {
                chain.splice(from..to, [short]);
            }
        }
        Term::of_chain(&chain)
    }

    fn unknown(&self, goal: &Term) -> Diagnostic {
        let d = Diagnostic::error(Code::NotDerived, "the term is not in the program's e-graph")
            .note(format!("the term: {goal}"))
            .note(format!(
                "saturation stopped: {}, with {} nodes",
                self.graph.report.stop_reason, self.graph.report.nodes
            ));
        match self.missing(goal) {
            Some(part) => d.note(format!("nowhere in it is: {part}")),
            None => d.note("it is there, but not known to be equal to the program"),
        }
    }

    /// Returns the innermost subterm that the graph lacks although it holds the subterm's arguments.
    fn missing(&self, t: &Term) -> Option<Term> {
        t.args()
            .iter()
            .find_map(|a| self.missing(a))
            .or_else(|| (!self.holds(t)).then(|| t.clone()))
    }
}

/// Returns the derivation of `goal` from `start` under the rules.
///
/// # Errors
/// Those of [`Explainer::new`] and [`Explainer::derive`].
pub fn explain(start: &Term, goal: &Term, rules: &RuleSet, limits: &Limits) -> Result<Derivation> {
    Explainer::new(std::slice::from_ref(start), rules, limits)?.derive(goal)
}

/// Returns the operator that abbreviates these factors, if there is one.
fn shorter(factors: &[Term]) -> Option<Term> {
    let inner = match factors {
        [take, inner @ .., pad] if *take.op() == Op::Take && *pad.op() == Op::PadLast => inner,
        all => all,
    };
    let [unpack, h @ .., pack] = inner else { return None };
    let op = match (unpack.op(), pack.op()) {
        (Op::Join, Op::Split) => Op::Chunked,
        (Op::AsScalar, Op::AsVector) => Op::Packed,
        _ => return None,
    };
    let [k, m] = pack.sizes() else { return None };
    let Ty::Array(n, _) = factors.last()?.ty().dom.clone() else { return None };
    let short = Term::new(op, vec![n, k.clone(), k.mul(m)], vec![], vec![Term::of_chain(h).ok()?]);
    let short = short.ok()?;
    let same =
        short.definition().ok()??.flat().ok()? == Term::of_chain(factors).ok()?.flat().ok()?;
    // The factors in `h` may contain short forms already, so compare the expanded terms.
    same.then_some(short)
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn broken(e: TypeError) -> Failure {
    Diagnostic::error(Code::Internal, format!("an explanation holds an ill-typed term: {e}")).into()
}

fn expression(t: &Term) -> RecExpr<Node> {
    let mut out = RecExpr::default();
    add_term(&mut out, t);
    out
}

/// Returns the number of steps in the flat form of a list of trees; shared trees count each time.
fn count(trees: &[Rc<TreeTerm<Node>>], known: &mut HashMap<*const TreeTerm<Node>, usize>) -> usize {
    let mut all = 0_usize;
    for tree in trees {
        let here = match known.get(&Rc::as_ptr(tree)) {
            Some(n) => *n,
            None => {
                let inside = tree.child_proofs.iter().map(|p| count(p, known));
                let inside = inside.fold(0_usize, usize::saturating_add);
                let own = usize::from(tree.forward_rule.is_some() || tree.backward_rule.is_some());
                known.insert(Rc::as_ptr(tree), inside.saturating_add(own));
                inside.saturating_add(own)
            }
        };
        all = all.saturating_add(here);
    }
    all
}

#[cfg(test)]
mod tests;
