//! The saturation run: applies all rules until nothing changes or a limit is reached, and reports what each
//! rule did.

use super::EGraph;
use super::analysis::Typed;
use super::changes::{Changes, Depth};
use super::compile;
use super::guard::Guard;
use super::language::{Node, add_term};
use super::subpatterns::Subpatterns;
use crate::calculus::term::Term;
use crate::diag::{Code, Diagnostic, Limits, Result, on_all_cores};
use crate::rules::RuleSet;
use egg::{
    ENodeOrVar, Id, Language, RecExpr, Rewrite, RewriteScheduler, Runner, RunnerLimits,
    RunnerResult, SearchMatches, Symbol,
};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Why the run stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// No rule adds anything: the whole space is in the graph.
    Saturated,
    /// At [`Limits::iterations`].
    IterationLimit,
    /// At [`Limits::nodes`].
    NodeLimit,
    /// At [`Limits::saturation_time`].
    TimeLimit,
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StopReason::Saturated => "saturated",
            StopReason::IterationLimit => "iteration limit",
            StopReason::NodeLimit => "node limit",
            StopReason::TimeLimit => "time limit",
        })
    }
}

/// Sizes of the graph after one iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Iteration {
    /// E-nodes.
    pub nodes: usize,
    /// E-classes.
    pub classes: usize,
}

/// The effect and cost of one rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RuleStat {
    /// Matches found, over all iterations. A match is found again if something near it has changed.
    pub matches: usize,
    /// Matches that merged two classes.
    pub applied: usize,
    /// E-nodes added, including those that congruence later merged with others.
    pub new_nodes: usize,
    /// Time spent searching, in milliseconds.
    pub search_ms: f64,
    /// Time spent applying, in milliseconds.
    pub apply_ms: f64,
}

impl RuleStat {
    /// Adds the counts of another run.
    pub fn add(&mut self, other: &RuleStat) {
        self.matches += other.matches;
        self.applied += other.applied;
        self.new_nodes += other.new_nodes;
        self.search_ms += other.search_ms;
        self.apply_ms += other.apply_ms;
    }
}

/// How the run went.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Why the run stopped.
    pub stop_reason: StopReason,
    /// E-nodes at the end.
    pub nodes: usize,
    /// E-classes at the end.
    pub classes: usize,
    /// Wall-clock time in milliseconds.
    pub ms: f64,
    /// Sizes after each iteration.
    pub iterations: Vec<Iteration>,
    /// What each rule did, in the order of the set.
    pub rules: IndexMap<String, RuleStat>,
}

/// The e-graph after the run.
pub struct Saturated {
    /// The graph.
    pub egraph: EGraph,
    /// The class of the program.
    pub root: Id,
    /// The classes of the program's forms: one, if the forms were merged. The first is the root.
    pub forms: Vec<Id>,
    /// The report of the run.
    pub report: Report,
}

impl Saturated {
    /// Returns the class with a number, if there is one.
    pub fn class(&self, number: usize) -> Option<Id> {
        self.egraph.classes().map(|c| c.id).find(|id| usize::from(*id) == number)
    }
}

/// A rewrite's left side.
struct Left {
    /// Its number among the subpatterns of all left sides.
    number: Option<usize>,
    depth: Depth,
    guard: Guard,
}

/// A scheduler that applies every new match of every rule in every iteration and measures each rule. It also
/// checks the limits between matches: egg checks them between rules only, and one rule can add many times the
/// allowed nodes.
struct Timed {
    limits: Limits,
    start: Instant,
    stats: Arc<Mutex<IndexMap<String, RuleStat>>>,
    /// By the name of the rewrite.
    left: IndexMap<Symbol, Left>,
    changes: Changes,
    subpatterns: Subpatterns,
}

/// Returns the name of the rule that a rewrite was compiled from.
fn rule_of(rewrite: &str) -> &str {
    rewrite.split('/').next().unwrap_or(rewrite)
}

fn ms(d: Duration) -> f64 {
    d.as_secs_f64() * 1e3
}

impl Timed {
    /// Whether the iteration must end here; egg then determines which limit was reached.
    fn is_over(&self, egraph: &EGraph) -> bool {
        egraph.total_size() > self.limits.nodes
            || self.limits.interrupt.requested()
            || self.limits.saturation_time.is_some_and(|most| self.start.elapsed() > most)
    }

    /// As [`Rewrite::search`], but only in classes that may have new matches, checking the limits.
    fn search<'a>(
        &self,
        egraph: &EGraph,
        rewrite: &'a Rewrite<Node, Typed>,
    ) -> Vec<SearchMatches<'a, Node>> {
        let left = &self.left[&rewrite.name];
        let root = rewrite.searcher.get_pattern_ast().and_then(|ast| ast.last());
        let classes: Vec<Id> = match root {
            Some(ENodeOrVar::ENode(node)) => {
                egraph.classes_for_op(&node.discriminant()).into_iter().flatten().collect()
            }
            Some(ENodeOrVar::Var(_)) | None => egraph.classes().map(|c| c.id).collect(),
        };
        let mut found = vec![];
        let may_match = |c: &Id| {
            self.subpatterns.may_match(*c, left.number)
                && self.changes.concern(*c, left.depth)
                && left.guard.admits(&egraph[*c].data)
        };
        for class in classes.into_iter().filter(may_match) {
            if self.is_over(egraph) {
                break;
            }
            found.extend(rewrite.searcher.search_eclass(egraph, class));
        }
        found
    }

    /// As [`Rewrite::apply`], but match by match, checking the limits.
    fn apply(
        &self,
        egraph: &mut EGraph,
        rewrite: &Rewrite<Node, Typed>,
        matches: Vec<SearchMatches<'_, Node>>,
    ) -> usize {
        let mut applied = 0;
        for SearchMatches { eclass, substs, ast } in matches {
            // An explanation names the left side.
            let ast = ast.as_deref().filter(|_| egraph.are_explanations_enabled());
            for subst in substs {
                if self.is_over(egraph) {
                    return applied;
                }
                applied +=
                    rewrite.applier.apply_one(egraph, eclass, &subst, ast, rewrite.name).len();
            }
        }
        applied
    }
}

impl RewriteScheduler<Node, Typed> for Timed {
    fn search_rewrites<'a>(
        &mut self,
        iteration: usize,
        egraph: &EGraph,
        rewrites: &[&'a Rewrite<Node, Typed>],
        limits: &RunnerLimits,
    ) -> RunnerResult<Vec<Vec<SearchMatches<'a, Node>>>> {
        let deepest = self.left.values().map(|l| l.depth.all).max().unwrap_or(0);
        let changed = self.changes.update(egraph, deepest);
        self.subpatterns.update(egraph, &changed);
        let searched = on_all_cores(rewrites, |rewrite| {
            let start = Instant::now();
            (self.search(egraph, rewrite), ms(start.elapsed()))
        });
        let mut all = vec![];
        let mut stats = self.stats.lock().unwrap_or_else(PoisonError::into_inner);
        for (rewrite, (found, search_ms)) in rewrites.iter().zip(searched) {
            let stat = stats.entry(rule_of(rewrite.name.as_str()).to_owned()).or_default();
            stat.search_ms += search_ms;
            stat.matches += found.iter().map(|m| m.substs.len()).sum::<usize>();
            all.push(found);
        }
        limits.check_limits(iteration, egraph)?;
        Ok(all)
    }

    fn apply_rewrite(
        &mut self,
        _iteration: usize,
        egraph: &mut EGraph,
        rewrite: &Rewrite<Node, Typed>,
        matches: Vec<SearchMatches<'_, Node>>,
    ) -> usize {
        let (start, before) = (Instant::now(), egraph.total_size());
        let applied = self.apply(egraph, rewrite, matches);
        let mut stats = self.stats.lock().unwrap_or_else(PoisonError::into_inner);
        let stat = stats.entry(rule_of(rewrite.name.as_str()).to_owned()).or_default();
        stat.apply_ms += ms(start.elapsed());
        stat.applied += applied;
        stat.new_nodes += egraph.total_size().saturating_sub(before);
        applied
    }
}

/// Inserts a term, with forms of it that are known to be equal, and saturates the graph under the rules. The
/// first form is the root.
///
/// # Errors
/// [`Code::RuleUnsound`] when a rule makes an ill-typed term or merges two types, [`Code::Interrupted`] when
/// an interrupt was requested.
pub fn saturate(forms: &[Term], rules: &RuleSet, limits: &Limits) -> Result<Saturated> {
    run(EGraph::default(), forms, true, rules, limits)
}

/// As [`saturate`], but each form keeps a class of its own unless the rules show that it is another's. Extraction then
/// keeps the best terms of each form: within one class, those of a form that the additive estimate favours would displace
/// the others.
///
/// A graph that reaches the limit on nodes lacks what the rules make last, such as tiles, in all forms. Then the result has the first
/// form, and of the others as many of those with the smallest graphs as saturate together.
///
/// # Errors
/// Those of [`saturate`].
pub fn saturate_apart(forms: &[Term], rules: &RuleSet, limits: &Limits) -> Result<Saturated> {
    let start = Instant::now();
    let mut out = saturated_apart(forms, rules, limits)?;
    out.report.ms = ms(start.elapsed());
    Ok(out)
}

fn saturated_apart(forms: &[Term], rules: &RuleSet, limits: &Limits) -> Result<Saturated> {
    let saturate =
        |forms: &[Term], limits: &Limits| run(EGraph::default(), forms, false, rules, limits);
    let saturates = |report: &Report| report.stop_reason == StopReason::Saturated;
    if forms.len() == 1 {
        return saturate(forms, limits);
    }
    // A form's graph is part of the graph of all forms, so within half of the limit every form saturates by itself, and all together do.
    let half = Limits { nodes: limits.nodes / 2, ..limits.clone() };
    let all = saturate(forms, &half)?;
    if all.report.stop_reason != StopReason::NodeLimit {
        return Ok(all);
    }
    drop(all);
    let first = saturate(&forms[..1], limits)?;
    if !saturates(&first.report) {
        return saturate(forms, limits);
    }
    let alone = |form: &Term| saturate(std::slice::from_ref(form), &half).map(|s| s.report);
    let mut others: Vec<(usize, usize)> = vec![];
    for (i, report) in on_all_cores(&forms[1..], alone).into_iter().enumerate() {
        let report = report?;
        others.extend(saturates(&report).then_some((report.nodes, i + 1)));
    }
    others.sort_unstable();
    // Forms share nodes, so they may take less together; but what the rules show of one form may also lead to more nodes of another.
    let mut tried = 0;
    for most in [usize::MAX, limits.nodes, limits.nodes / 2] {
        let mut nodes = first.report.nodes;
        let small = others.iter().take_while(|(more, _)| {
            nodes += more;
            nodes <= most
        });
        let mut chosen: Vec<usize> = std::iter::once(0).chain(small.map(|(_, i)| *i)).collect();
        chosen.sort_unstable();
        if chosen.len() == 1 || chosen.len() == tried {
            continue;
        }
        tried = chosen.len();
        let chosen: Vec<Term> = chosen.into_iter().map(|i| forms[i].clone()).collect();
        let some = saturate(&chosen, limits)?;
        if saturates(&some.report) {
            return Ok(some);
        }
    }
    Ok(first)
}

/// As [`saturate`], but the graph can explain why two terms are equal. It is slower and takes several times
/// the memory.
///
/// # Errors
/// Those of [`saturate`].
pub fn saturate_explained(forms: &[Term], rules: &RuleSet, limits: &Limits) -> Result<Saturated> {
    run(EGraph::default().with_explanations_enabled(), forms, true, rules, limits)
}

/// The step of a proof from one form of a program to another.
pub(super) const FORM: &str = "form";

fn insert(egraph: &mut EGraph, term: &Term) -> Id {
    let mut expr = RecExpr::default();
    add_term(&mut expr, term);
    egraph.add_expr_uncanonical(&expr)
}

fn run(
    mut egraph: EGraph,
    forms: &[Term],
    merge: bool,
    rules: &RuleSet,
    limits: &Limits,
) -> Result<Saturated> {
    let (mut rewrites, mut left) = (vec![], IndexMap::new());
    let mut subpatterns = Subpatterns::default();
    for c in std::iter::once(compile::associate()).chain(rules.iter().flat_map(compile::compile)) {
        let (number, depth) = (subpatterns.insert(&c.left), Depth::of(&c.left));
        left.insert(c.rewrite.name, Left { number, depth, guard: c.guard });
        rewrites.push(c.rewrite);
    }
    let forms: Vec<Id> = forms.iter().map(|f| insert(&mut egraph, f)).collect();
    let root = *forms.first().expect("invariant: a program has a form");
    for form in forms[1..].iter().filter(|_| merge) {
        egraph.union_trusted(root, *form, FORM);
    }
    egraph.rebuild();
    let stats = Arc::new(Mutex::new(IndexMap::new()));
    let start = Instant::now();
    let sizes = Rc::new(RefCell::new(vec![]));
    let (seen, interrupt) = (sizes.clone(), limits.interrupt.clone());
    let runner = Runner::<Node, Typed>::default()
        .with_egraph(egraph)
        .with_iter_limit(limits.iterations)
        .with_node_limit(limits.nodes)
        .with_time_limit(limits.saturation_time.unwrap_or(Duration::from_secs(u64::from(u32::MAX))))
        .with_scheduler(Timed {
            limits: limits.clone(),
            start,
            stats: stats.clone(),
            left,
            changes: Changes::default(),
            subpatterns,
        })
        .with_hook(move |r| {
            seen.borrow_mut().push(Iteration {
                nodes: r.egraph.total_size(),
                classes: r.egraph.number_of_classes(),
            });
            let stop = interrupt.requested().then(|| "interrupted".to_owned());
            compile::is_broken(&r.egraph).or(stop).map_or(Ok(()), Err)
        })
        .run(&rewrites);
    let elapsed = ms(start.elapsed());
    limits.interrupt.check("while rewriting")?;
    if let Some(what) = compile::is_broken(&runner.egraph) {
        return Err(Diagnostic::error(Code::RuleUnsound, what)
            .note("every class of the e-graph has one type; a rule that breaks this is no equality")
            .help("correct the rule, or leave it out with `--rules`")
            .into());
    }
    let stop_reason = match runner.stop_reason {
        Some(egg::StopReason::Saturated) => StopReason::Saturated,
        Some(egg::StopReason::NodeLimit(_)) => StopReason::NodeLimit,
        Some(egg::StopReason::TimeLimit(_)) => StopReason::TimeLimit,
        Some(egg::StopReason::IterationLimit(_) | egg::StopReason::Other(_)) | None => {
            StopReason::IterationLimit
        }
    };
    let report = Report {
        stop_reason,
        nodes: runner.egraph.total_size(),
        classes: runner.egraph.number_of_classes(),
        ms: elapsed,
        iterations: sizes.borrow().clone(),
        rules: stats.lock().unwrap_or_else(PoisonError::into_inner).clone(),
    };
    let mut classes: Vec<Id> = vec![];
    for class in forms.iter().map(|f| runner.egraph.find(*f)) {
        if !classes.contains(&class) {
            classes.push(class);
        }
    }
    let root = runner.egraph.find(root);
    Ok(Saturated { egraph: runner.egraph, root, forms: classes, report })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::calculus::text::{Context, parse_type, read_term};
    use crate::calculus::ty::Ty;
    use crate::diag::Source;
    use std::slice;

    pub(crate) fn program(text: &str, inputs: &[(&str, &str)]) -> Term {
        let inputs = inputs
            .iter()
            .map(|(n, t)| {
                let s = Source::new("type", *t);
                ((*n).to_owned(), parse_type(&s, 0..t.len()).expect("a type"))
            })
            .collect();
        let context = Context { inputs, variables: None };
        read_term(&Source::new("term", text), &Ty::Unit, &context).expect("a term")
    }

    #[test]
    fn limits_hold_within_an_iteration() {
        let rules = RuleSet::shipped().expect("shipped rules");
        let text = "map (reduce (+) 0.0 . map (*) . zip . fork id x) . A";
        let program = program(text, &[("A", "[n][m]f32"), ("x", "[m]f32")]);
        for nodes in [50, 200, 1_000] {
            let limits = Limits { saturation_time: None, nodes, ..Limits::default() };
            let report =
                saturate(slice::from_ref(&program), &rules, &limits).expect("sound rules").report;
            assert_eq!(report.stop_reason, StopReason::NodeLimit);
            // The last rule may exceed the limit by its right side.
            assert!((nodes..nodes + 100).contains(&report.nodes), "{} nodes", report.nodes);
        }
        let limits = Limits { saturation_time: Some(Duration::ZERO), ..Limits::default() };
        let report =
            saturate(slice::from_ref(&program), &rules, &limits).expect("sound rules").report;
        assert_eq!(report.stop_reason, StopReason::TimeLimit);
        let limits = Limits::default();
        limits.interrupt.request();
        let failure =
            saturate(slice::from_ref(&program), &rules, &limits).err().expect("it is interrupted");
        assert_eq!(failure.0[0].code, Code::Interrupted);
    }

    /// A form that is too large by itself is left out; the others stay.
    #[test]
    fn forms_that_are_too_large_are_left_out() {
        let rules = RuleSet::shipped().expect("shipped rules");
        let inputs = [("A", "[n][m]f32"), ("x", "[m]f32")];
        let forms = [
            "map abs . x",
            "map (\\v -> v + 1.0) . x",
            "map (reduce (+) 0.0 . map (*) . zip . fork id x) . A",
        ];
        let forms = forms.map(|text| program(text, &inputs));
        let limits = |nodes| Limits { saturation_time: None, nodes, ..Limits::default() };
        let nodes = |forms: &[Term]| {
            let all = saturate_apart(forms, &rules, &limits(1 << 20)).expect("sound rules");
            assert_eq!(all.report.stop_reason, StopReason::Saturated);
            all.report.nodes
        };
        let (two, three) = (nodes(&forms[..2]), nodes(&forms));
        assert!(4 * two < three, "{two} and {three}");
        let some = saturate_apart(&forms, &rules, &limits(3 * two)).expect("sound rules");
        assert_eq!((some.report.stop_reason, some.forms.len()), (StopReason::Saturated, 2));
        // Nothing is left out if the first form does not saturate.
        let none = saturate_apart(&forms, &rules, &limits(two / 4)).expect("sound rules");
        assert_eq!((none.report.stop_reason, none.forms.len()), (StopReason::NodeLimit, 3));
    }

    #[test]
    fn vector_programs_saturate() {
        let rules = RuleSet::shipped().expect("shipped rules");
        let limits = Limits { saturation_time: None, ..Limits::default() };
        for (text, inputs) in [
            ("map (\\x -> c * x) . xs", &[("xs", "[n]f32"), ("c", "f32")][..]),
            ("reduce (+) 0.0 . map abs . xs", &[("xs", "[n]f32")][..]),
            (
                "reduce (+) 0.0 . map (*) . zip . fork xs ys",
                &[("xs", "[n]f32"), ("ys", "[n]f32")][..],
            ),
            (
                "map (\\(d, y) -> alpha * d + beta * y) . map (bimap (reduce (+) 0.0 . map (*) . zip . fork id x) id) . zip . fork A y",
                &[
                    ("A", "[n][m]f32"),
                    ("x", "[m]f32"),
                    ("y", "[n]f32"),
                    ("alpha", "f32"),
                    ("beta", "f32"),
                ][..],
            ),
        ] {
            let out = saturate(&[program(text, inputs)], &rules, &limits).expect("sound rules");
            let r = &out.report;
            eprintln!(
                "{text}: {} {} nodes {} classes {} iterations {:.1} ms",
                r.stop_reason,
                r.nodes,
                r.classes,
                r.iterations.len(),
                r.ms
            );
            for (n, s) in r.rules.iter().filter(|(_, s)| s.search_ms + s.apply_ms > 5.0) {
                eprintln!("   {n}: {s:?}");
            }
        }
    }
}
