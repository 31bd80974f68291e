//! Compiles rules to egg rewrites.
//!
//! Each size and type on the left side of a rule becomes a pattern variable. After a match, the sizes and
//! types that were found are matched with the rule's expressions, which binds the rule's own size and type
//! variables. A rule whose left side is a composition is compiled a second time with a tail, so that it also
//! applies inside longer chains. If a function variable begins a chain inside the left side, the rule is also
//! compiled with two or more variables in its place, since chains are nested to the right: `map (f . reduce op z)`
//! would not match `map (a . (b . reduce op z))`.

use super::EGraph;
use super::analysis::{Data, Typed};
use super::guard::Guard;
use super::language::{Node, NodeOp};
use crate::calculus::size::Size;
use crate::calculus::term::{Op, Term, TypeError};
use crate::calculus::ty::{FnTy, Ty};
use crate::rules::{Bindings, Condition, Facts, LetSize, Rule};
use egg::{
    Applier, ConditionalApplier, ENodeOrVar, Id, Pattern, PatternAst, Rewrite, Searcher, Subst,
    Symbol, Var,
};
use std::str::FromStr;

/// Most factors for which a function variable at the beginning of an inner chain stands.
const PREFIX: usize = 3;

/// One compiled direction of a rule.
struct Action {
    name: String,
    /// Pattern variables that stand for sizes and types, with the rule's expressions for them.
    sizes: Vec<(Var, Size)>,
    types: Vec<(Var, Ty)>,
    functions: Vec<(Var, FnTy, String)>,
    lets: Vec<LetSize>,
    when: Vec<Condition>,
    /// The right side; its sizes and types are variables too.
    rhs: Pattern<Node>,
    made_sizes: Vec<(Var, Size)>,
    made_types: Vec<(Var, Ty)>,
}

/// Turns a term with variables into an egg pattern.
#[derive(Default)]
struct Builder {
    ast: PatternAst<Node>,
    prefix: &'static str,
    count: usize,
    sizes: Vec<(Var, Size)>,
    types: Vec<(Var, Ty)>,
    functions: Vec<(Var, FnTy, String)>,
}

fn var(text: &str) -> Var {
    Var::from_str(text).expect("invariant: variables start with a question mark")
}

impl Builder {
    fn fresh(&mut self, kind: &str) -> Var {
        self.count += 1;
        var(&format!("?{}{kind}{}", self.prefix, self.count))
    }

    fn node(&mut self, op: &Op, children: Vec<Id>) -> Id {
        self.ast.add(ENodeOrVar::ENode(Node { op: NodeOp::Fn(op.clone()), children }))
    }

    fn term(&mut self, t: &Term) -> Id {
        if let Op::Meta(name) = t.op() {
            let v = var(&format!("?f.{name}"));
            if !self.functions.iter().any(|(w, _, _)| *w == v) {
                self.functions.push((v, t.ty().clone(), name.to_string()));
            }
            return self.ast.add(ENodeOrVar::Var(v));
        }
        let mut children = vec![];
        for s in t.sizes() {
            let v = match self.sizes.iter().find(|(_, known)| known == s) {
                Some((v, _)) => *v,
                None => {
                    let v = self.fresh("s");
                    self.sizes.push((v, s.clone()));
                    v
                }
            };
            children.push(self.ast.add(ENodeOrVar::Var(v)));
        }
        for ty in t.tys() {
            let v = match self.types.iter().find(|(_, known)| known == ty) {
                Some((v, _)) => *v,
                None => {
                    let v = self.fresh("t");
                    self.types.push((v, ty.clone()));
                    v
                }
            };
            children.push(self.ast.add(ENodeOrVar::Var(v)));
        }
        for a in t.args() {
            children.push(self.term(a));
        }
        self.node(t.op(), children)
    }

    /// Adds the factors of a chain with `?rest` after them, nested to the right.
    fn chain_with_tail(&mut self, t: &Term) -> Id {
        let ids: Vec<Id> = factors(t).iter().map(|p| self.term(p)).collect();
        let mut out = self.ast.add(ENodeOrVar::Var(var("?rest")));
        for id in ids.into_iter().rev() {
            out = self.node(&Op::Compose, vec![id, out]);
        }
        out
    }
}

/// A rewrite, with its left side.
pub(super) struct Compiled {
    pub rewrite: Rewrite<Node, Typed>,
    pub left: PatternAst<Node>,
    pub guard: Guard,
}

/// Returns every egg rewrite of a rule.
pub(super) fn compile(rule: &Rule) -> Vec<Compiled> {
    let mut rewrites = vec![];
    for (name, rule) in forms(rule) {
        rewrites.push(one(&name, &rule, false));
        if in_chains(&rule) {
            rewrites.push(one(&format!("{name}/chain"), &rule, true));
        }
    }
    rewrites
}

/// Whether the rule still changes something inside a longer chain, where identities are not written.
fn in_chains(rule: &Rule) -> bool {
    *rule.lhs.op() == Op::Compose && factors(&rule.lhs) != factors(&rule.rhs)
}

fn factors(t: &Term) -> Vec<Term> {
    let mut parts = t.chain();
    parts.retain(|p| *p.op() != Op::Id);
    parts
}

/// Returns the rule, its form for commutative operators if it has one, and the forms of both for longer prefixes of
/// chains, each with the name of its rewrite.
fn forms(rule: &Rule) -> Vec<(String, Rule)> {
    let mut forms = vec![(rule.name.clone(), rule.clone())];
    if let Some(commutative) = rule.for_commutative() {
        forms.push((format!("{}/comm", rule.name), commutative));
    }
    for (name, rule) in forms.clone() {
        for prefix in prefixes(&rule.lhs) {
            let longer =
                (2..=PREFIX).map(|k| (format!("{name}/{k}"), with_prefix(&rule, &prefix, k)));
            forms.extend(longer);
        }
    }
    forms
}

/// Returns the function variables that begin a chain inside a term, if an operator follows: of `f . g`, either variable
/// may stand for the rest of a chain.
fn prefixes(t: &Term) -> Vec<Term> {
    let mut out: Vec<Term> = vec![];
    for arg in t.chain().iter().flat_map(|f| f.args().to_vec()) {
        let chain = arg.chain();
        let is_variable = |f: &Term| matches!(f.op(), Op::Meta(_));
        let fixed = chain.iter().any(|f| !is_variable(f));
        let first = chain.first().filter(|f| fixed && is_variable(f));
        out.extend(first.filter(|f| !out.contains(f)).cloned());
        for f in prefixes(&arg) {
            if !out.contains(&f) {
                out.push(f);
            }
        }
    }
    out
}

/// The name of the `k`-th of the variables that stand for variable `f`, from 1.
fn factor_name(f: &str, k: usize) -> String {
    format!("{f}.{k}")
}

/// Returns the rule with a chain of `k` variables in place of a function variable.
fn with_prefix(rule: &Rule, prefix: &Term, k: usize) -> Rule {
    let Op::Meta(name) = prefix.op() else { return rule.clone() };
    let ty = prefix.ty();
    // The types between the factors are variables, too.
    let between = |i: usize| match i {
        0 => ty.cod.clone(),
        i if i == k => ty.dom.clone(),
        i => Ty::Meta(factor_name(name, i).into()),
    };
    let factor = |i: usize| {
        let op = Op::Meta(factor_name(name, i).into());
        Term::new(op, vec![], vec![between(i), between(i - 1)], vec![])
            .expect("invariant: a variable has any type")
    };
    let factors: Vec<Term> = (1..=k).map(factor).collect();
    let replaced = |t: &Term| replace(t, name, &factors);
    Rule { lhs: replaced(&rule.lhs), rhs: replaced(&rule.rhs), ..rule.clone() }
}

/// Returns the term with a chain in place of a function variable.
fn replace(t: &Term, name: &str, chain: &[Term]) -> Term {
    fn place(t: &Term, name: &str, chain: &[Term]) -> Result<Term, TypeError> {
        if matches!(t.op(), Op::Meta(n) if **n == *name) {
            return Term::of_chain(chain);
        }
        let args = t.args().iter().map(|a| place(a, name, chain)).collect::<Result<Vec<_>, _>>()?;
        t.with_args(args)
    }
    let out = place(t, name, chain).and_then(|t| t.flat());
    out.expect("invariant: the chain has the type of the variable")
}

fn one(name: &str, rule: &Rule, tail: bool) -> Compiled {
    let (searcher, applier) = parts(name, rule, tail);
    compiled(Rewrite::new(name, searcher, applier), Guard::of(rule, tail))
}

fn parts(name: &str, rule: &Rule, tail: bool) -> (Pattern<Node>, Action) {
    let mut left = Builder { prefix: "l", ..Builder::default() };
    let mut right = Builder { prefix: "r", ..Builder::default() };
    if tail {
        left.chain_with_tail(&rule.lhs);
        right.chain_with_tail(&rule.rhs);
    } else {
        left.term(&rule.lhs);
        right.term(&rule.rhs);
    }
    let applier = Action {
        name: name.to_owned(),
        sizes: left.sizes,
        types: left.types,
        functions: left.functions,
        lets: rule.lets.clone(),
        when: rule.when.clone(),
        rhs: Pattern::new(right.ast),
        made_sizes: right.sizes,
        made_types: right.types,
    };
    (Pattern::new(left.ast), applier)
}

/// A place where the operators of a rule's left side match. The sizes may not fit, and side conditions may
/// fail.
pub(super) struct Match {
    /// The class that the whole pattern matched.
    pub class: Id,
    /// The pattern that matched, including the tail of a chain.
    pub pattern: PatternAst<Node>,
    pub subst: Subst,
    /// Values of the rule's variables; `None` if sizes or types do not fit.
    pub bindings: Option<Bindings>,
    /// The tail of the chain, which the rule leaves as it is.
    pub rest: Option<Id>,
    /// The side conditions: whether each holds, and the class of the function that it asks about.
    pub conditions: Vec<(Condition, bool, Option<Id>)>,
}

/// Returns every match of a rule's left side in the graph as it is.
pub(super) fn matches(rule: &Rule, egraph: &EGraph) -> Vec<Match> {
    let mut out = vec![];
    for (name, rule) in forms(rule) {
        for tail in if in_chains(&rule) { vec![false, true] } else { vec![false] } {
            let (searcher, action) = parts(&name, &rule, tail);
            for found in searcher.search(egraph) {
                for subst in found.substs {
                    let bindings = action.bind(egraph, &subst);
                    let conditions = bindings.as_ref().map_or(vec![], |b| {
                        let facts = |f: &str| action.facts(egraph, &subst, f);
                        let verdict = |c: &Condition| {
                            let of = c.function().and_then(|f| action.class_of(&subst, f));
                            (c.clone(), c.holds(b, &facts), of)
                        };
                        action.when.iter().map(verdict).collect()
                    });
                    let rest = tail.then(|| subst[var("?rest")]);
                    let (class, pattern) = (found.eclass, searcher.ast.clone());
                    out.push(Match { class, pattern, subst, bindings, rest, conditions });
                }
            }
        }
    }
    out
}

fn compiled(rewrite: Result<Rewrite<Node, Typed>, String>, guard: Guard) -> Compiled {
    let rewrite =
        rewrite.expect("invariant: variables of the right side are bound, as the reader checked");
    let left = rewrite.searcher.get_pattern_ast().cloned();
    Compiled { left: left.expect("invariant: left sides are patterns"), rewrite, guard }
}

/// Rewrites `(f . g) . h` to `f . (g . h)`, in this direction only, so that chains have one shape. The
/// rewrite does not apply if `f . g` equals `f`, as with `bang` after anything: it would add chains of `g`
/// without end.
pub(super) fn associate() -> Compiled {
    let chain = |left: bool| {
        let mut ast = PatternAst::default();
        let mut v = |n: &str| ast.add(ENodeOrVar::Var(var(n)));
        let (f, g, h) = (v("?f"), v("?g"), v("?h"));
        let mut dot = |a, b| {
            ast.add(ENodeOrVar::ENode(Node { op: NodeOp::Fn(Op::Compose), children: vec![a, b] }))
        };
        if left {
            let fg = dot(f, g);
            dot(fg, h);
        } else {
            let gh = dot(g, h);
            dot(f, gh);
        }
        Pattern::new(ast)
    };
    let absorbs = |egraph: &mut EGraph, _: Id, subst: &Subst| {
        let (f, g) = (subst[var("?f")], subst[var("?g")]);
        let both = Node { op: NodeOp::Fn(Op::Compose), children: vec![f, g] };
        egraph.lookup(both).is_some_and(|both| both == egraph.find(f))
    };
    let condition =
        move |egraph: &mut EGraph, class: Id, subst: &Subst| !absorbs(egraph, class, subst);
    let applier = ConditionalApplier { condition, applier: chain(false) };
    compiled(Rewrite::new("associate", chain(true), applier), Guard::default())
}

impl Action {
    fn bind(&self, egraph: &EGraph, subst: &Subst) -> Option<Bindings> {
        let mut b = Bindings::default();
        for (v, want) in &self.sizes {
            if !b.match_size(want, egraph[subst[*v]].data.size()?) {
                return None;
            }
        }
        for (v, want) in &self.types {
            if !b.match_ty(want, egraph[subst[*v]].data.ty()?) {
                return None;
            }
        }
        for (v, want, _) in &self.functions {
            let got = egraph[subst[*v]].data.function()?;
            if !b.match_ty(&want.dom, &got.dom) || !b.match_ty(&want.cod, &got.cod) {
                return None;
            }
        }
        if !b.settle() {
            return None;
        }
        b.make(&self.lets);
        Some(b)
    }

    /// Returns the facts known of the function that a match found for variable `f`, or for the variables in its place.
    fn facts(&self, egraph: &EGraph, subst: &Subst, f: &str) -> Facts {
        if let Some(class) = self.class_of(subst, f) {
            return egraph[class].data.facts();
        }
        let factors: Vec<Id> =
            (1..).map_while(|k| self.class_of(subst, &factor_name(f, k))).collect();
        let ty = |id: &Id| egraph[*id].data.function();
        match (factors.first().and_then(ty), factors.last().and_then(ty)) {
            (Some(first), Some(last)) => {
                let all: Vec<Facts> = factors.iter().map(|c| egraph[*c].data.facts()).collect();
                let ty = FnTy::new(last.dom.clone(), first.cod.clone());
                Facts::of_node(&Op::Compose, &ty, &all)
            }
            _ => Facts::default(),
        }
    }

    /// Returns the class that a match found for a function variable.
    fn class_of(&self, subst: &Subst, f: &str) -> Option<Id> {
        self.functions.iter().find(|(_, _, n)| n == f).map(|(v, _, _)| subst[*v])
    }
}

impl Applier<Node, Typed> for Action {
    fn apply_one(
        &self,
        egraph: &mut EGraph,
        eclass: Id,
        subst: &Subst,
        searcher_ast: Option<&PatternAst<Node>>,
        rule_name: Symbol,
    ) -> Vec<Id> {
        let Some(b) = self.bind(egraph, subst) else {
            return vec![];
        };
        if !self.when.iter().all(|c| c.holds(&b, &|f| self.facts(egraph, subst, f))) {
            return vec![];
        }
        let mut subst = subst.clone();
        for (v, s) in &self.made_sizes {
            let id = egraph.add(Node::size(&b.size(s)));
            subst.insert(*v, id);
        }
        for (v, t) in &self.made_types {
            let id = egraph.add(Node::ty(&b.ty(t)));
            subst.insert(*v, id);
        }
        let fine = egraph.analysis.broken.is_none();
        let out = self.rhs.apply_one(egraph, eclass, &subst, searcher_ast, rule_name);
        if fine && let Some(what) = &mut egraph.analysis.broken {
            *what = format!("rule `{}` made {what}", self.name);
        }
        out
    }

    fn vars(&self) -> Vec<Var> {
        // Sizes and types of the right side are added in `apply_one`, so egg need not bind them on the left.
        let made: Vec<Var> = self
            .made_sizes
            .iter()
            .map(|(v, _)| *v)
            .chain(self.made_types.iter().map(|(v, _)| *v))
            .collect();
        let vars = <Pattern<Node> as Applier<Node, Typed>>::vars(&self.rhs);
        vars.into_iter().filter(|v| !made.contains(v)).collect()
    }
}

/// Returns the reason why the graph is ill-typed, if it is. The runner's hook then stops the run.
pub(super) fn is_broken(egraph: &EGraph) -> Option<String> {
    egraph.analysis.broken.clone().or_else(|| {
        let broken = egraph.classes().any(|c| c.data == Data::Broken);
        broken.then(|| "an ill-typed class".to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::{forms, in_chains, parts};
    use crate::calculus::term::Op;
    use crate::diag::Limits;
    use crate::rules::RuleSet;
    use crate::saturate::guard::Guard;
    use crate::saturate::run::tests::program;
    use crate::saturate::{StopReason, saturate};
    use egg::Searcher;

    #[test]
    fn what_absorbs_its_argument_makes_no_chains() {
        let rules = RuleSet::shipped().expect("shipped rules");
        let limits = Limits { saturation_time: None, nodes: 20_000, ..Limits::default() };
        for text in [
            "map (1.0 . bang) . map abs . xs",
            "map (replicate m . 1.0 . bang) . map reverse . map (map abs) . xss",
            "map (replicate m . 1.0 . bang) . map reverse . map reverse . map (map abs) . xss",
        ] {
            let term = program(text, &[("xs", "[n]f32"), ("xss", "[n][m]f32")]);
            let report = saturate(&[term], &rules, &limits).expect("sound rules").report;
            assert_eq!(report.stop_reason, StopReason::Saturated, "{text}");
            assert!(report.nodes < 1_000, "{text}: {} nodes", report.nodes);
        }
    }

    #[test]
    fn a_variable_stands_for_several_factors_at_the_beginning_of_an_inner_chain() {
        let rules = RuleSet::shipped().expect("shipped rules");
        let limits = Limits { saturation_time: None, ..Limits::default() };
        let inputs = [("A", "[n][k]f32"), ("B", "[m][k]f32")];
        // `cross-block-then` names what follows the reduction by one variable.
        for end in ["abs", "abs . fst . fork abs id", "abs . fst . fork abs id . sqrt"] {
            let sum = "reduce (+) 0.0 . map (*) . zip";
            let term = program(&format!("map (map ({end} . {sum})) . cross . fork A B"), &inputs);
            let graph = saturate(&[term], &rules, &limits).expect("sound rules");
            assert_eq!(graph.report.stop_reason, StopReason::Saturated, "{end}");
            let nodes = graph.egraph.classes().flat_map(|c| &c.nodes);
            let blocked = nodes.filter(|n| n.function() == Some(&Op::Blocked(false))).count();
            assert!(blocked > 0, "{end}");
        }
    }

    /// A class that a guard keeps out has no match that would apply.
    #[test]
    fn guards_keep_out_no_match_that_applies() {
        let rules = RuleSet::shipped().expect("shipped rules");
        let limits = Limits { saturation_time: None, ..Limits::default() };
        let text = "map (abs . reduce (+) 0.0 . map (*) . zip . fork id x) . A";
        let term = program(text, &[("A", "[n][m]f32"), ("x", "[m]f32")]);
        let egraph = saturate(&[term], &rules, &limits).expect("sound rules").egraph;
        let mut kept_out = 0;
        for (name, rule) in rules.iter().flat_map(forms) {
            for tail in [false, true].into_iter().filter(|tail| !tail || in_chains(&rule)) {
                let (guard, (searcher, action)) =
                    (Guard::of(&rule, tail), parts(&name, &rule, tail));
                let found = searcher.search(&egraph).into_iter();
                for m in found.filter(|m| !guard.admits(&egraph[m.eclass].data)) {
                    kept_out += m.substs.len();
                    for subst in &m.substs {
                        let facts = |f: &str| action.facts(&egraph, subst, f);
                        let applies = action
                            .bind(&egraph, subst)
                            .is_some_and(|b| action.when.iter().all(|c| c.holds(&b, &facts)));
                        assert!(!applies, "{name} applies to {}", m.eclass);
                    }
                }
            }
        }
        assert!(kept_out > 0, "some lengths are known from the types");
    }
}
