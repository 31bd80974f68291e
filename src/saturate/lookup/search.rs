//! Matches pieces of the sought term against classes.
//!
//! The result for a piece and a class does not depend on what is around them. Every pair is therefore matched
//! once, and gives every system of equations under which the two are equal.

use super::equations::{Equations, Symbols};
use super::pattern::{Chains, Slice, lengths};
use super::scalar;
use super::short::is_short;
use crate::calculus::scalar::SExpr;
use crate::calculus::size::{Size, SizeEnv};
use crate::calculus::term::{MapKind, Op, Term};
use crate::calculus::ty::Ty;
use crate::saturate::{EGraph, Node};
use egg::{AstSize, Extractor, Id};
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// Most systems of equations kept for a piece and a class.
const SYSTEMS: usize = 256;
/// Most expressions kept for a class.
const EXPRESSIONS: usize = 8;

/// A way in which a class holds a piece.
#[derive(Clone, Debug)]
pub(super) struct Solution {
    /// The equations that the sizes must satisfy.
    pub equations: Equations,
    /// The member of the class.
    pub term: Term,
}

/// A class that equals another one under equations that make the parts between them do nothing.
#[derive(Clone)]
pub(super) struct Shortcut {
    pub class: Id,
    pub equations: Equations,
    /// The parts left out, outermost first; true for a part in front of the rest, false for one behind it.
    skipped: Vec<(Term, bool)>,
}

/// The members of a class as expressions, each with the term that it was made from.
type Expressions = Rc<Vec<(SExpr, Term)>>;

pub(super) struct Search<'a> {
    pub egraph: &'a EGraph,
    pub known: &'a SizeEnv,
    pub symbols: Symbols<'a>,
    pub chains: Chains,
    /// Whether some class held a piece in more ways than were kept.
    pub cut: bool,
    found: FxHashMap<(Slice, Id), Rc<Vec<Solution>>>,
    shortcuts: FxHashMap<Id, Rc<Vec<Shortcut>>>,
    /// The equations under which each class is the identity; `None` while they are being computed.
    identities: FxHashMap<Id, Option<Rc<Vec<Solution>>>>,
    expressions: FxHashMap<Id, Option<Expressions>>,
    /// The definitions of short forms, with holes for their arguments.
    pub definitions: FxHashMap<Node, Option<Rc<Term>>>,
    smallest: Extractor<'a, AstSize, Node, crate::saturate::Typed>,
}

impl<'a> Search<'a> {
    pub(super) fn new(egraph: &'a EGraph, known: &'a SizeEnv) -> Self {
        Search {
            egraph,
            known,
            symbols: Symbols::new(known),
            chains: Chains::default(),
            cut: false,
            found: FxHashMap::default(),
            shortcuts: FxHashMap::default(),
            identities: FxHashMap::default(),
            expressions: FxHashMap::default(),
            definitions: FxHashMap::default(),
            smallest: Extractor::new(egraph, AstSize),
        }
    }

    /// Returns a term as a piece, with short forms expanded.
    pub(super) fn sought(&mut self, term: &Term) -> Slice {
        let plain = term.unpacked().unwrap_or_else(|_| term.clone());
        self.chains.of(&plain, self.known)
    }

    /// Returns the piece for an argument of a sought part.
    pub(super) fn argument(&mut self, term: &Term) -> Slice {
        self.chains.of(term, self.known)
    }

    /// Returns every way in which a class holds a piece.
    pub(super) fn find(&mut self, piece: Slice, class: Id) -> Rc<Vec<Solution>> {
        let class = self.egraph.find(class);
        if let Some(known) = self.found.get(&(piece, class)) {
            return known.clone();
        }
        let mut out = Ways::default();
        for shortcut in self.shortcuts(class).iter() {
            let mut equations = shortcut.equations.clone();
            if !self.fits(piece, shortcut.class, &mut equations) {
                continue;
            }
            for found in self.exactly(piece, shortcut.class) {
                let mut all = equations.clone();
                if self.symbols.join(&mut all, &found.equations)
                    && let Some(term) = around(&shortcut.skipped, found.term)
                {
                    out.push(Solution { equations: all, term });
                }
            }
        }
        self.cut |= out.cut;
        let out = Rc::new(out.kept);
        self.found.insert((piece, class), out.clone());
        out
    }

    /// Whether the types of a piece and a class are equal, given equations between sizes, which are added.
    pub(super) fn fits(&mut self, piece: Slice, class: Id, equations: &mut Equations) -> bool {
        let Some(ty) = self.egraph[class].data.function() else { return false };
        let (dom, cod) = self.chains.ends(piece);
        types(&mut self.symbols, &ty.cod, cod, true, equations)
            && types(&mut self.symbols, &ty.dom, dom, true, equations)
    }

    /// Returns the ways without shortcuts.
    fn exactly(&mut self, piece: Slice, class: Id) -> Vec<Solution> {
        let mut out = Ways::default();
        self.as_expression(piece, class, &mut out);
        let parts = self.chains.get(piece);
        for node in &self.egraph[class].nodes {
            if let ([part], Some(op)) = (&*parts, node.function())
                && part.op() == op
            {
                self.part(part, node, &mut out);
            }
            match node.function() {
                Some(Op::Compose) => self.chain(piece, node, &mut out),
                Some(op) if is_short(op) => self.short_for(piece, node, &mut out),
                Some(Op::Cond) => self.unmasked(piece, node, &mut out),
                _ => {}
            }
        }
        self.cut |= out.cut;
        out.kept
    }

    /// Matches `f . g`, where `f` takes one part of the piece or more.
    fn chain(&mut self, piece: Slice, node: &Node, out: &mut Ways) {
        let [f, g] = node.children[..] else { return };
        for count in 1..=self.heads(piece, f) {
            let first = self.find(piece.head(count), f);
            if first.is_empty() {
                continue;
            }
            let second = self.find(piece.tail(count), g);
            self.product(node, &[first, second], &Equations::default(), out);
        }
    }

    /// Returns how many parts of a piece the class can take, leaving at least one.
    pub(super) fn heads(&mut self, piece: Slice, class: Id) -> usize {
        let long = |op: &Op| *op == Op::Compose || is_short(op);
        let classes = self.shortcuts(class);
        let mut nodes = classes.iter().flat_map(|s| &self.egraph[s.class].nodes);
        let several = nodes.any(|n| n.function().is_some_and(long));
        if several { piece.len() - 1 } else { 1.min(piece.len() - 1) }
    }

    /// Matches one part: the same operator with equal sizes, types and arguments.
    fn part(&mut self, part: &Term, node: &Node, out: &mut Ways) {
        let mut equations = Equations::default();
        if !self.same_sizes(part, node, &mut equations) {
            return;
        }
        let mut args = vec![];
        for (arg, class) in part.args().iter().zip(node.args()) {
            let piece = self.argument(arg);
            args.push(self.find(piece, *class));
            if args.last().is_some_and(|a| a.is_empty()) {
                return;
            }
        }
        self.product(node, &args, &equations, out);
    }

    pub(super) fn same_sizes(
        &mut self,
        part: &Term,
        node: &Node,
        equations: &mut Equations,
    ) -> bool {
        let (sizes, tys) = self.carried(node);
        let equal = |(have, want): (&Size, &Size)| self.symbols.equate(have, want, equations);
        if !sizes.iter().zip(part.sizes()).all(equal) {
            return false;
        }
        match (part.op(), &tys[..], part.tys()) {
            // A mask must not be ignored here, or the first component could not be told from the second.
            (Op::Fst | Op::Snd, [a, b], [c, d]) => {
                let (have, want) = (Ty::pair(a, b), Ty::pair(c, d));
                types(&mut self.symbols, &have, &want, false, equations)
            }
            (_, have, want) => {
                let mut pairs = have.iter().zip(want);
                pairs.all(|(h, w)| types(&mut self.symbols, h, w, true, equations))
            }
        }
    }

    /// Returns the sizes and types of a node.
    fn carried(&self, node: &Node) -> (Vec<Size>, Vec<Ty>) {
        let data = || node.children.iter().map(|c| &self.egraph[*c].data);
        (
            data().filter_map(|d| d.size().cloned()).collect(),
            data().filter_map(|d| d.ty().cloned()).collect(),
        )
    }

    /// After a mask that does nothing, matches `cond fst (f . snd) z` as `f`.
    fn unmasked(&mut self, piece: Slice, node: &Node, out: &mut Ways) {
        let &[p, f, z] = node.args() else { return };
        let Some(Ty::Pair(mask, element)) = self.egraph[f].data.function().map(|t| t.dom.clone())
        else {
            return;
        };
        let reads_mask = self.egraph[p].nodes.iter().any(|n| n.function() == Some(&Op::Fst));
        if !reads_mask || !scalar::is_mask(&mask, self.chains.ends(piece).0) {
            return;
        }
        let tys = vec![(*mask).clone(), (*element).clone()];
        let Ok(snd) = Term::new(Op::Snd, vec![], tys, vec![]) else { return };
        let mut parts = self.chains.get(piece).to_vec();
        parts.push(snd);
        let piece = self.chains.parts(parts, self.known);
        let any = |class: Id| {
            let term = self.any_term(class)?;
            Some(Rc::new(vec![Solution { equations: Equations::default(), term }]))
        };
        let (Some(condition), Some(otherwise)) = (any(p), any(z)) else { return };
        let inside = self.find(piece, f);
        self.product(node, &[condition, inside, otherwise], &Equations::default(), out);
    }

    /// Adds every combination of the arguments' ways whose equations have a solution together.
    pub(super) fn product(
        &self,
        node: &Node,
        args: &[Rc<Vec<Solution>>],
        equations: &Equations,
        out: &mut Ways,
    ) {
        let mut partial = vec![(equations.clone(), vec![])];
        for ways in args {
            let mut next = vec![];
            for (equations, chosen) in &partial {
                for way in ways.iter() {
                    let mut all = equations.clone();
                    if self.symbols.join(&mut all, &way.equations) {
                        let mut chosen: Vec<Term> = chosen.clone();
                        chosen.push(way.term.clone());
                        next.push((all, chosen));
                    }
                }
            }
            partial = next;
        }
        for (equations, args) in partial {
            if let Some(term) = self.term(node, args) {
                out.push(Solution { equations, term });
            }
        }
    }

    /// Returns the term of a node with these arguments.
    pub(super) fn term(&self, node: &Node, args: Vec<Term>) -> Option<Term> {
        if let (Some(Op::Compose), [f, g]) = (node.function(), &args[..]) {
            return f.after(g).ok();
        }
        let (sizes, tys) = self.carried(node);
        Term::new(node.function()?.clone(), sizes, tys, args).ok()
    }

    /// Returns the smallest member of a class.
    pub(super) fn any_term(&self, class: Id) -> Option<Term> {
        let node = self.smallest.find_best_node(class);
        self.rooted(node)
    }

    /// Returns the smallest term whose outermost node is this one.
    pub(super) fn rooted(&self, node: &Node) -> Option<Term> {
        let args = node.args().iter().map(|a| self.any_term(*a)).collect::<Option<Vec<_>>>()?;
        self.term(node, args)
    }

    /// Returns the class itself and the classes that it equals when certain lengths are equal.
    pub(super) fn shortcuts(&mut self, class: Id) -> Rc<Vec<Shortcut>> {
        let class = self.egraph.find(class);
        if let Some(known) = self.shortcuts.get(&class) {
            return known.clone();
        }
        let first = Shortcut { class, equations: Equations::default(), skipped: vec![] };
        let mut seen: FxHashSet<(Id, Equations)> = FxHashSet::default();
        seen.insert((class, first.equations.clone()));
        let mut out = vec![first];
        let mut at = 0;
        while at < out.len() && out.len() < SYSTEMS {
            let here = out[at].clone();
            at += 1;
            for node in &self.egraph[here.class].nodes {
                let (Some(Op::Compose), [f, g]) = (node.function(), &node.children[..]) else {
                    continue;
                };
                for (nothing, rest, in_front) in [(*f, *g, true), (*g, *f, false)] {
                    for way in self.identity(nothing).iter() {
                        let mut next = here.clone();
                        next.class = self.egraph.find(rest);
                        if self.symbols.join(&mut next.equations, &way.equations)
                            && seen.insert((next.class, next.equations.clone()))
                        {
                            next.skipped.push((way.term.clone(), in_front));
                            out.push(next);
                        }
                    }
                }
            }
        }
        self.cut |= at < out.len();
        let out = Rc::new(out);
        self.shortcuts.insert(class, out.clone());
        out
    }

    /// Returns the equations under which a class is the identity.
    pub(super) fn identity(&mut self, class: Id) -> Rc<Vec<Solution>> {
        let class = self.egraph.find(class);
        if let Some(known) = self.identities.get(&class) {
            return known.clone().unwrap_or_default();
        }
        self.identities.insert(class, None);
        let mut out = Ways::default();
        for node in &self.egraph[class].nodes {
            let Some(op) = node.function() else { continue };
            let (sizes, _) = self.carried(node);
            if *op == Op::Map(MapKind::Plain) {
                let inside = self.identity(node.args()[0]);
                self.product(node, &[inside], &Equations::default(), &mut out);
                continue;
            }
            let mut equations = Equations::default();
            let nothing = match lengths(op, &sizes) {
                Some((a, b)) => self.symbols.equate(a, b, &mut equations),
                None => *op == Op::Id,
            };
            if nothing && let Some(term) = self.rooted(node) {
                out.push(Solution { equations, term });
            }
        }
        let out = Rc::new(out.kept);
        self.identities.insert(class, Some(out.clone()));
        out
    }

    /// Matches both sides as one expression, if both are functions on elements.
    fn as_expression(&mut self, piece: Slice, class: Id, out: &mut Ways) {
        let Some(ty) = self.egraph[class].data.function().cloned() else { return };
        let (dom, cod) = self.chains.ends(piece);
        if !scalar::on_elements(dom, cod) || !scalar::on_elements(&ty.dom, &ty.cod) {
            return;
        }
        // Only the argument may be masked, not the result.
        let (dom, cod) = (dom.clone(), cod.clone());
        let mut equations = Equations::default();
        if !types(&mut self.symbols, &ty.cod, &cod, false, &mut equations) {
            return;
        }
        let Some(want) = scalar::of_chain(&self.chains.get(piece)) else { return };
        for (have, term) in self.expressions(class).iter() {
            let have = scalar::unmasked(have, &ty.dom, &dom);
            let mut equations = equations.clone();
            if expressions(&mut self.symbols, &have, &want, &mut equations) {
                out.push(Solution { equations, term: term.clone() });
            }
        }
    }

    /// Returns the distinct expressions of a class's members.
    fn expressions(&mut self, class: Id) -> Expressions {
        let class = self.egraph.find(class);
        if let Some(known) = self.expressions.get(&class) {
            return known.clone().unwrap_or_default();
        }
        self.expressions.insert(class, None);
        let mut out: Vec<(SExpr, Term)> = vec![];
        for node in &self.egraph[class].nodes {
            let Some(op) = node.function() else { continue };
            let (_, tys) = self.carried(node);
            let mut choices: Vec<(Vec<SExpr>, Vec<Term>)> = vec![(vec![], vec![])];
            for arg in node.args() {
                let members = self.expressions(*arg);
                let with = |(es, ts): &(Vec<SExpr>, Vec<Term>)| {
                    let (es, ts) = (es.clone(), ts.clone());
                    let add = |(e, t): &(SExpr, Term)| {
                        (
                            [es.clone(), vec![e.clone()]].concat(),
                            [ts.clone(), vec![t.clone()]].concat(),
                        )
                    };
                    members.iter().map(add).collect::<Vec<_>>()
                };
                choices = choices.iter().flat_map(with).take(EXPRESSIONS).collect();
            }
            for (args, terms) in choices {
                if out.len() < EXPRESSIONS
                    && let Some(e) = scalar::apply(op, &tys, &args)
                    && !out.iter().any(|(known, _)| *known == e)
                    && let Some(term) = self.term(node, terms)
                {
                    out.push((e, term));
                }
            }
        }
        let out = Rc::new(out);
        self.expressions.insert(class, Some(out.clone()));
        out
    }
}

/// Distinct ways, up to the number that is kept.
#[derive(Default)]
pub(super) struct Ways {
    kept: Vec<Solution>,
    seen: FxHashSet<Equations>,
    cut: bool,
}

impl Ways {
    fn push(&mut self, way: Solution) {
        if self.seen.contains(&way.equations) {
            return;
        }
        if self.kept.len() == SYSTEMS {
            self.cut = true;
            return;
        }
        self.seen.insert(way.equations.clone());
        self.kept.push(way);
    }
}

/// Returns a term with the parts that were left out put back around it.
fn around(skipped: &[(Term, bool)], inner: Term) -> Option<Term> {
    skipped.iter().rev().try_fold(inner, |inner, (nothing, in_front)| {
        let made = if *in_front { nothing.after(&inner) } else { inner.after(nothing) };
        made.ok()
    })
}

/// Whether a type of the graph equals one of the sought term, given equations between sizes, which are added.
/// If `masked` is true, a pair of a truth value and a type may stand for that type.
pub(super) fn types(
    symbols: &mut Symbols,
    have: &Ty,
    want: &Ty,
    masked: bool,
    equations: &mut Equations,
) -> bool {
    match (have, want) {
        (Ty::Unit, Ty::Unit) => true,
        (Ty::Scalar(a), Ty::Scalar(b)) => a == b,
        (Ty::Pair(mask, x), _) if masked && scalar::is_mask(mask, want) => {
            types(symbols, x, want, false, equations)
        }
        (Ty::Pair(a, b), Ty::Pair(c, d)) => {
            // Next to a truth value of the program's own, another truth value is not taken for a mask.
            let sure = !scalar::is_truth(a);
            types(symbols, a, c, sure, equations) && types(symbols, b, d, sure, equations)
        }
        (Ty::Array(n, a), Ty::Array(m, b)) | (Ty::Vector(n, a), Ty::Vector(m, b)) => {
            symbols.equate(n, m, equations) && types(symbols, a, b, true, equations)
        }
        _ => false,
    }
}

/// Whether two expressions are the same, given equations between sizes, which are added.
fn expressions(
    symbols: &mut Symbols,
    have: &SExpr,
    want: &SExpr,
    equations: &mut Equations,
) -> bool {
    let mut all = |pairs: &[(&SExpr, &SExpr)]| {
        pairs.iter().all(|(a, b)| expressions(symbols, a, b, equations))
    };
    match (have, want) {
        (SExpr::Arg, SExpr::Arg) => true,
        (SExpr::Proj(a, x), SExpr::Proj(b, y)) => x == y && all(&[(a, b)]),
        (SExpr::Lit(a), SExpr::Lit(b)) => a == b,
        (SExpr::Input(a, i, _), SExpr::Input(b, j, _)) => a == b && i == j,
        (SExpr::Size(a, t), SExpr::Size(b, u)) => t == u && symbols.equate(a, b, equations),
        (SExpr::Op(f, t, xs), SExpr::Op(g, u, ys)) => {
            f == g && t == u && xs.len() == ys.len() && xs.iter().zip(ys).all(|pair| all(&[pair]))
        }
        (SExpr::Var(i, _), SExpr::Var(j, _)) => i == j,
        (SExpr::Pair(a, b), SExpr::Pair(c, d)) | (SExpr::Let(a, b), SExpr::Let(c, d)) => {
            all(&[(a, c), (b, d)])
        }
        (SExpr::If(a, b, c), SExpr::If(d, e, f))
        | (SExpr::For(a, b, c), SExpr::For(d, e, f))
        | (SExpr::While(a, b, c), SExpr::While(d, e, f)) => all(&[(a, d), (b, e), (c, f)]),
        _ => false,
    }
}
