//! Rules to egg rewrites.
//!
//! Sizes and types of a rule's left side become pattern variables of their own; after a match they
//! are compared with the rule's expressions, which binds the rule's size and type variables. A rule
//! on a composition is compiled a second time with a tail, so that it applies inside longer chains.

use super::EGraph;
use super::analysis::{Data, Typed};
use super::language::{Kind, Node, NodeOp};
use crate::calculus::size::{Size, Sym};
use crate::calculus::term::{Op, ReduceKind, Term};
use crate::calculus::ty::{FnTy, Ty};
use crate::rules::{Condition, LetSize, Rule, can_tile, can_unroll};
use egg::{Applier, ENodeOrVar, Id, Pattern, PatternAst, Rewrite, Subst, Symbol, Var};
use std::str::FromStr;
use std::sync::Arc;

/// Values of a rule's variables.
#[derive(Clone, Debug, Default)]
struct Bindings {
    // A handful each: a list is faster than a map.
    sizes: Vec<(Arc<str>, Size)>,
    types: Vec<(Arc<str>, Ty)>,
}

impl Bindings {
    fn size_of(&self, name: &str) -> Option<&Size> {
        self.sizes.iter().find(|(n, _)| **n == *name).map(|(_, s)| s)
    }

    fn type_of(&self, name: &str) -> Option<&Ty> {
        self.types.iter().find(|(n, _)| **n == *name).map(|(_, t)| t)
    }

    fn size(&self, s: &Size) -> Size {
        // Most are one variable.
        if let Some(Sym::Meta(m)) = s.as_sym()
            && let Some(v) = self.size_of(m)
        {
            return v.clone();
        }
        s.substitute(&|sym| match sym {
            Sym::Meta(m) => self.size_of(m).cloned(),
            _ => None,
        })
    }

    fn ty(&self, t: &Ty) -> Ty {
        t.substitute(&|m| self.type_of(m).cloned(), &|sym| match sym {
            Sym::Meta(m) => self.size_of(m).cloned(),
            _ => None,
        })
    }

    /// Binds or checks; sizes with several unknown variables are put off.
    fn match_size(&mut self, want: &Size, got: &Size, later: &mut Vec<(Size, Size)>) -> bool {
        if let Some(Sym::Meta(m)) = want.as_sym() {
            return match self.size_of(m) {
                Some(v) => v == got,
                None => {
                    self.sizes.push((m.clone(), got.clone()));
                    true
                }
            };
        }
        let want = self.size(want);
        let unknown: Vec<(Arc<str>, i32)> = want
            .factors()
            .filter_map(|(s, e)| match s {
                Sym::Meta(m) => Some((m.clone(), e)),
                _ => None,
            })
            .collect();
        match unknown.as_slice() {
            [] => want == *got,
            [(m, e)] if e.abs() == 1 => {
                let me = Size::sym(Sym::Meta(m.clone()));
                if got.as_constant() == Some(0) {
                    return false;
                }
                let rest = if *e == 1 { want.div(&me) } else { want.mul(&me) };
                let value = if *e == 1 { got.div(&rest) } else { rest.div(got) };
                self.sizes.push((m.clone(), value));
                true
            }
            _ => {
                later.push((want, got.clone()));
                true
            }
        }
    }

    fn match_ty(&mut self, want: &Ty, got: &Ty, later: &mut Vec<(Size, Size)>) -> bool {
        match (want, got) {
            (Ty::Meta(m), _) => match self.type_of(m) {
                Some(t) => t == got,
                None => {
                    self.types.push((m.clone(), got.clone()));
                    true
                }
            },
            (Ty::Unit, Ty::Unit) => true,
            (Ty::Scalar(a), Ty::Scalar(b)) => a == b,
            (Ty::Pair(a, b), Ty::Pair(c, d)) => {
                self.match_ty(a, c, later) && self.match_ty(b, d, later)
            }
            (Ty::Array(n, a), Ty::Array(m, b)) => {
                self.match_size(n, m, later) && self.match_ty(a, b, later)
            }
            (Ty::Vector(w, a), _) => match self.size(w) {
                // A vector of a variable may stand for a pair of vectors.
                w if !w.has_meta() => {
                    got.unvector(&w).is_some_and(|got| self.match_ty(a, &got, later))
                }
                w => match got {
                    Ty::Vector(v, b) => self.match_size(&w, v, later) && self.match_ty(a, b, later),
                    _ => false,
                },
            },
            _ => false,
        }
    }
}

/// One compiled direction of a rule.
struct Action {
    name: String,
    /// Pattern variables that stand for sizes and types, with the rule's expressions for them.
    sizes: Vec<(Var, Size)>,
    types: Vec<(Var, Ty)>,
    functions: Vec<(Var, FnTy, String)>,
    lets: Vec<LetSize>,
    when: Vec<Condition>,
    /// The right side, whose size and type positions are variables too.
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

    /// The factors of a chain with `?rest` behind them, nested to the right.
    fn chain_with_tail(&mut self, t: &Term) -> Id {
        let mut parts = t.chain();
        parts.retain(|p| *p.op() != Op::Id);
        let ids: Vec<Id> = parts.iter().map(|p| self.term(p)).collect();
        let mut out = self.ast.add(ENodeOrVar::Var(var("?rest")));
        for id in ids.into_iter().rev() {
            out = self.node(&Op::Compose, vec![id, out]);
        }
        out
    }
}

/// A rewrite, and the operators without which its left side cannot match.
pub(super) struct Compiled {
    pub rewrite: Rewrite<Node, Typed>,
    pub needs: Vec<Kind>,
}

/// Every egg rewrite of a rule.
pub(super) fn compile(rule: &Rule) -> Vec<Compiled> {
    let mut forms = vec![(rule.name.clone(), rule.clone())];
    let commutative = for_commutative(rule);
    if commutative.lhs != rule.lhs {
        forms.push((format!("{}/comm", rule.name), commutative));
    }
    let mut rewrites = vec![];
    for (name, rule) in forms {
        rewrites.push(one(&name, &rule, false));
        if *rule.lhs.op() == Op::Compose {
            rewrites.push(one(&format!("{name}/chain"), &rule, true));
        }
    }
    rewrites
}

/// What holds of `reduce` holds of `reduceComm`, whose operator is known to be commutative.
fn for_commutative(rule: &Rule) -> Rule {
    fn swap(t: &Term) -> Term {
        let op = match t.op() {
            Op::Reduce(ReduceKind::Assoc) => Op::Reduce(ReduceKind::Comm),
            other => other.clone(),
        };
        let args = t.args().iter().map(swap).collect();
        Term::new(op, t.sizes().to_vec(), t.tys().to_vec(), args)
            .expect("invariant: both kinds of reduction have one typing rule")
    }
    let mut out = rule.clone();
    out.lhs = swap(&rule.lhs);
    out.rhs = swap(&rule.rhs);
    out.when.retain(|c| !matches!(c, Condition::Commutative(_)));
    out
}

fn one(name: &str, rule: &Rule, tail: bool) -> Compiled {
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
    compiled(Rewrite::new(name, Pattern::new(left.ast), applier))
}

fn compiled(rewrite: Result<Rewrite<Node, Typed>, String>) -> Compiled {
    let rewrite =
        rewrite.expect("invariant: variables of the right side are bound, as the reader checked");
    let mut needs = vec![];
    for n in rewrite.searcher.get_pattern_ast().into_iter().flat_map(|ast| ast.iter()) {
        if let ENodeOrVar::ENode(n) = n
            && !needs.contains(&n.op.kind())
        {
            needs.push(n.op.kind());
        }
    }
    Compiled { rewrite, needs }
}

/// `(f . g) . h = f . (g . h)`, to the right only: chains have one shape.
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
    compiled(Rewrite::new("associate", chain(true), chain(false)))
}

impl Action {
    fn bind(&self, egraph: &EGraph, subst: &Subst) -> Option<Bindings> {
        let mut b = Bindings::default();
        let mut later = vec![];
        for (v, want) in &self.sizes {
            if !b.match_size(want, egraph[subst[*v]].data.size()?, &mut later) {
                return None;
            }
        }
        for (v, want) in &self.types {
            if !b.match_ty(want, egraph[subst[*v]].data.ty()?, &mut later) {
                return None;
            }
        }
        for (v, want, _) in &self.functions {
            let got = egraph[subst[*v]].data.function()?;
            if !b.match_ty(&want.dom, &got.dom, &mut later)
                || !b.match_ty(&want.cod, &got.cod, &mut later)
            {
                return None;
            }
        }
        // What was put off, until nothing changes.
        while !later.is_empty() {
            let before = later.len();
            let round = std::mem::take(&mut later);
            for (want, got) in round {
                if !b.match_size(&want, &got, &mut later) {
                    return None;
                }
            }
            if later.len() == before {
                return None;
            }
        }
        for l in &self.lets {
            let of = b.size(&l.of);
            b.sizes.push((l.name.as_str().into(), l.maker.make(&of)));
        }
        Some(b)
    }

    fn holds(&self, c: &Condition, egraph: &EGraph, subst: &Subst, b: &Bindings) -> bool {
        let facts = |f: &String| {
            let v = self.functions.iter().find(|(_, _, n)| n == f).map(|(v, _, _)| *v);
            v.map(|v| egraph[subst[v]].data.facts()).unwrap_or_default()
        };
        let ty = |a: &String| b.type_of(a);
        match c {
            Condition::Tileable(n, k) => can_tile(&b.size(n), *k),
            Condition::Whole(n) => {
                let mut rounded = false;
                b.size(n).visit(&mut |s| rounded |= matches!(s, Sym::Round(_)));
                !rounded
            }
            Condition::Dimension(n) => {
                matches!(b.size(n).as_sym(), Some(Sym::Dim(_) | Sym::Tile(_)))
            }
            Condition::Tile(n) => matches!(b.size(n).as_sym(), Some(Sym::Tile(_))),
            Condition::Differ(n, m) => b.size(n) != b.size(m),
            Condition::Small(n) => can_unroll(&b.size(n)),
            Condition::Commutative(f) => facts(f).commutative,
            Condition::Vectorisable(f) => facts(f).vectorisable,
            Condition::Lanewise(f) => {
                let v = self.functions.iter().find(|(_, _, n)| n == f).map(|(v, _, _)| *v);
                let ty = v.and_then(|v| egraph[subst[v]].data.function());
                facts(f).lanewise && ty.is_some_and(|t| t.cod.is_scalar())
            }
            Condition::Computes(f) => !facts(f).view,
            Condition::Scalar(a) => ty(a).is_some_and(Ty::is_scalar),
            Condition::Element(a) => ty(a).is_some_and(Ty::is_element),
        }
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
        if !self.when.iter().all(|c| self.holds(c, egraph, subst, &b)) {
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
        // Sizes and types of the right side are made here; egg need not find them on the left.
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

/// Marks a class ill-typed data cannot hide: used by the runner's hook.
pub(super) fn is_broken(egraph: &EGraph) -> Option<String> {
    egraph.analysis.broken.clone().or_else(|| {
        let broken = egraph.classes().any(|c| c.data == Data::Broken);
        broken.then(|| "an ill-typed class".to_owned())
    })
}
