//! Terms: closed, typed, point-free functions. A program is a term that takes [`Ty::Unit`].
//!
//! A node has the sizes, types and function arguments that its operator requires; see [`super::op`].

use super::hashed::{Hashed, Latest, hash_of};
use super::scalar::ScalarFn;
use super::size::{Size, Sym};
use super::ty::{FnTy, Ty};
use rustc_hash::FxHashMap;
use std::cmp::Ordering;
use std::convert::Infallible;
use std::sync::{Arc, OnceLock};

pub use super::op::{MapKind, Op, ReduceKind, ScanKind, Shares, Space, TypeError, signature};

fn fail<T>(text: String) -> Result<T, TypeError> {
    Err(TypeError(text))
}

/// A node is determined by its parts; the rest is what is known of it.
#[derive(Debug)]
struct Node {
    parts: Parts,
    ty: FnTy,
    /// The number of nodes, counted once for each use.
    size: usize,
    /// The number of reductions, scans and histograms, counted once for each use.
    reductions: usize,
    known: Facts,
    /// See [`Term::expand`]; not set for a term that is its own expansion.
    expanded: OnceLock<Term>,
}

#[derive(Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Parts {
    op: Op,
    sizes: Vec<Size>,
    tys: Vec<Ty>,
    args: Vec<Term>,
}

/// What holds for a term.
#[derive(Debug)]
struct Facts {
    /// The result does not depend on the argument.
    constant: bool,
    /// No part takes or gives an array.
    elementary: bool,
    /// A size or a type in the term depends on a symbol whose value tuning chooses.
    chosen: bool,
    /// See [`Term::is_view`].
    view: bool,
    /// Chains are nested to the right.
    flat: bool,
    /// There is nothing to expand, and no identity in a chain.
    plain: bool,
}

impl Facts {
    fn of(parts: &Parts, ty: &FnTy) -> Facts {
        let Parts { op, sizes, tys, args } = parts;
        let all = |holds: fn(&Facts) -> bool| args.iter().all(|a| holds(&a.0.known));
        let any = |holds: fn(&Facts) -> bool| args.iter().any(|a| holds(&a.0.known));
        let constant = ty.dom == Ty::Unit
            || match op {
                Op::Compose => args.last().is_some_and(Term::is_constant),
                Op::Input(_) | Op::Lit(_) | Op::SizeValue(_) | Op::Bang | Op::Iota => true,
                Op::Fork | Op::Cond | Op::ToMem(_) => all(|a| a.constant),
                Op::Scalar(f) => !f.body.mentions_arg(),
                _ => false,
            };
        let elementary = !ty.dom.has_array() && !ty.cod.has_array() && all(|a| a.elementary);
        let chosen =
            sizes.iter().any(Size::is_chosen) || tys.iter().any(Ty::is_chosen) || any(|a| a.chosen);
        let view = *op == Op::OnRead || (op.is_view() || op.is_frame()) && all(|a| a.view);
        let nested = *op == Op::Compose && *args[0].op() == Op::Compose;
        let flat = !nested && all(|a| a.flat);
        let kept = match op {
            Op::Compose => args.iter().all(|a| *a.op() != Op::Id),
            Op::Vectorize => all(|a| a.elementary),
            op => !super::tiling::is_defined(op),
        };
        let plain = flat && kept && all(|a| a.plain);
        Facts { constant, elementary, chosen, view, flat, plain }
    }
}

impl PartialEq for Node {
    fn eq(&self, other: &Node) -> bool {
        self.parts == other.parts
    }
}

impl Eq for Node {}

impl PartialOrd for Node {
    fn partial_cmp(&self, other: &Node) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Node {
    fn cmp(&self, other: &Node) -> Ordering {
        self.parts.cmp(&other.parts)
    }
}

static LATEST: Latest<Node> = Latest::new();

/// A well-typed closed function. Cheap to clone; equal terms are structurally equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Term(Arc<Hashed<Node>>);

impl Term {
    /// Builds a node and checks its type.
    ///
    /// # Errors
    /// When the parts do not fit together; see [`signature`].
    pub fn new(op: Op, sizes: Vec<Size>, tys: Vec<Ty>, args: Vec<Term>) -> Result<Term, TypeError> {
        Term::made(Parts { op, sizes, tys, args }, |Parts { op, sizes, tys, args }| {
            let arg_types: Vec<FnTy> = args.iter().map(|a| a.ty().clone()).collect();
            signature(op, sizes, tys, &arg_types)
        })
    }

    /// Builds a node whose type is known to be this one.
    fn node(op: Op, sizes: Vec<Size>, tys: Vec<Ty>, args: Vec<Term>, ty: FnTy) -> Term {
        let parts = Parts { op, sizes, tys, args };
        Term::made(parts, |_| Ok::<_, Infallible>(ty)).unwrap_or_else(|never| match never {})
    }

    /// Returns the node of these parts, whose type `ty` gives if there is no such node yet.
    fn made<E>(parts: Parts, ty: impl FnOnce(&Parts) -> Result<FnTy, E>) -> Result<Term, E> {
        let hash = hash_of(&parts);
        if let Some(known) = LATEST.find(hash, |node| node.parts == parts) {
            return Ok(Term(known));
        }
        let ty = ty(&parts)?;
        let known = Facts::of(&parts, &ty);
        let Parts { op, args, .. } = &parts;
        let sum = |own: usize, of: fn(&Term) -> usize| {
            args.iter().fold(own, |sum, a| sum.saturating_add(of(a)))
        };
        let reduces = matches!(op, Op::Reduce(_) | Op::ReducePart | Op::Scan(_) | Op::Histogram);
        let (size, reductions) = (sum(1, Term::size), sum(reduces.into(), Term::reductions));
        let expanded = OnceLock::new();
        let node = Node { parts, ty, size, reductions, known, expanded };
        let node = Arc::new(Hashed::with(hash, node));
        LATEST.keep(node.clone());
        Ok(Term(node))
    }

    /// Builds the node that takes `dom`; its other sizes and its types follow from `written`, `dom` and the
    /// arguments.
    ///
    /// # Errors
    /// When the parts do not fit together.
    pub fn on(op: Op, written: &[Size], dom: &Ty, args: Vec<Term>) -> Result<Term, TypeError> {
        let arg_types: Vec<FnTy> = args.iter().map(|a| a.ty().clone()).collect();
        let (sizes, tys) = super::op::parts(&op, written, dom, &arg_types)?;
        Term::new(op, sizes, tys, args)
    }

    /// Returns the term with other function arguments.
    ///
    /// # Errors
    /// When the arguments do not fit.
    pub fn with_args(&self, args: Vec<Term>) -> Result<Term, TypeError> {
        if args == self.args() {
            return Ok(self.clone());
        }
        let (op, sizes, tys) = (self.op().clone(), self.sizes().to_vec(), self.tys().to_vec());
        if args.iter().map(Term::ty).eq(self.args().iter().map(Term::ty)) {
            return Ok(Term::node(op, sizes, tys, args, self.ty().clone()));
        }
        Term::new(op, sizes, tys, args)
    }

    /// Returns the operator.
    pub fn op(&self) -> &Op {
        &self.0.parts.op
    }

    /// Returns the sizes.
    pub fn sizes(&self) -> &[Size] {
        &self.0.parts.sizes
    }

    /// Returns the types.
    pub fn tys(&self) -> &[Ty] {
        &self.0.parts.tys
    }

    /// Returns the function arguments.
    pub fn args(&self) -> &[Term] {
        &self.0.parts.args
    }

    /// Returns the type.
    pub fn ty(&self) -> &FnTy {
        &self.0.ty
    }

    /// The identity.
    pub fn id(t: &Ty) -> Term {
        let ty = FnTy::new(t.clone(), t.clone());
        Term::node(Op::Id, vec![], vec![t.clone()], vec![], ty)
    }

    /// A scalar leaf.
    pub fn scalar(f: ScalarFn) -> Term {
        let ty = FnTy::new(f.dom.clone(), f.cod.clone());
        let op = Op::Scalar(Arc::new(f));
        Term::node(op, vec![], vec![], vec![], ty)
    }

    /// Returns `self . g`, nested to the right, without identities.
    ///
    /// # Errors
    /// When the result type of `g` is not the argument type of `self`.
    pub fn after(&self, g: &Term) -> Result<Term, TypeError> {
        let (given, taken) = (&g.ty().cod, &self.ty().dom);
        if given != taken {
            return fail(format!("composition: `{given}` is not `{taken}`"));
        }
        Ok(match (self.op(), g.op()) {
            (Op::Id, _) => g.clone(),
            (_, Op::Id) => self.clone(),
            (Op::Compose, _) => self.args()[0].after(&self.args()[1].after(g)?)?,
            _ => self.composed(g),
        })
    }

    /// Returns the composition with a term whose result type fits.
    fn composed(&self, g: &Term) -> Term {
        let ty = FnTy::new(g.ty().dom.clone(), self.ty().cod.clone());
        Term::node(Op::Compose, vec![], vec![], vec![self.clone(), g.clone()], ty)
    }

    /// Returns the factors of a chain of compositions, outermost (applied last) first.
    pub fn chain(&self) -> Vec<Term> {
        let (mut out, mut rest) = (vec![], self.clone());
        while *rest.op() == Op::Compose {
            out.extend(rest.args()[0].chain());
            rest = rest.args()[1].clone();
        }
        out.push(rest);
        out
    }

    /// Returns the chain of these factors, given outermost first, nested to the right; identities stay.
    ///
    /// # Errors
    /// When there is no factor, or they do not fit together.
    pub fn of_chain(factors: &[Term]) -> Result<Term, TypeError> {
        let Some((last, before)) = factors.split_last() else {
            return fail("a chain of nothing".to_owned());
        };
        before.iter().rev().try_fold(last.clone(), |inner, outer| {
            if outer.ty().dom != inner.ty().cod {
                return fail(format!(
                    "composition: `{}` is not `{}`",
                    inner.ty().cod,
                    outer.ty().dom
                ));
            }
            Ok(outer.composed(&inner))
        })
    }

    /// Whether every chain in the term is nested to the right.
    pub fn is_flat(&self) -> bool {
        self.0.known.flat
    }

    /// Returns the same term with every chain nested to the right, so that terms that differ only in the
    /// nesting of chains become equal.
    ///
    /// # Errors
    /// Never for a well-typed term; building the parts repeats the type checks.
    pub fn flat(&self) -> Result<Term, TypeError> {
        if self.0.known.flat {
            return Ok(self.clone());
        }
        let factor = |t: &Term| {
            let args = t.args().iter().map(Term::flat).collect::<Result<Vec<_>, _>>()?;
            t.with_args(args)
        };
        let factors = self.chain().iter().map(factor).collect::<Result<Vec<_>, _>>()?;
        Term::of_chain(&factors)
    }

    /// Returns the term that kernels compute: with [`Op::Chunked`], [`Op::Packed`], the operators of tiling, and
    /// [`Op::Vectorize`] of functions that work on more than elements expanded everywhere.
    ///
    /// # Errors
    /// When a vectorised function has no vector form; the error says which.
    pub fn expand(&self) -> Result<Term, TypeError> {
        if let Some(known) = self.0.expanded.get() {
            return Ok(known.clone());
        }
        let out = self.expand_with(&Term::expand, |t| match t.op() {
            Op::Vectorize => t.definition(),
            _ => super::tiling::lowered(t),
        })?;
        if out != *self {
            // Another thread has set the same.
            self.0.expanded.set(out.clone()).ok();
        }
        Ok(out)
    }

    /// Returns the term with the [definitions](Term::definition) of its operators, but [`Op::Vectorize`] stays as it is.
    ///
    /// # Errors
    /// Never for a well-typed term; building the parts repeats the type checks.
    pub fn unpacked(&self) -> Result<Term, TypeError> {
        self.expand_with(&Term::unpacked, super::tiling::definition)
    }

    /// Expands the operator as `long` does, and the arguments as `expand` does.
    fn expand_with(
        &self,
        expand: &dyn Fn(&Term) -> Result<Term, TypeError>,
        long: fn(&Term) -> Result<Option<Term>, TypeError>,
    ) -> Result<Term, TypeError> {
        if self.0.known.plain {
            return Ok(self.clone());
        }
        let args = self.args().iter().map(expand).collect::<Result<Vec<_>, _>>()?;
        if *self.op() == Op::Compose {
            return args[0].after(&args[1]);
        }
        let out = self.with_args(args)?;
        Ok(long(&out)?.unwrap_or(out))
    }

    /// Returns the definition of this operator, without expanding its arguments; `None` for all operators but
    /// [`Op::Chunked`], [`Op::Packed`], those of tiling, and [`Op::Vectorize`] of functions that work on more
    /// than elements.
    ///
    /// # Errors
    /// When a vectorised function has no vector form; the error says which.
    pub fn definition(&self) -> Result<Option<Term>, TypeError> {
        if *self.op() == Op::Vectorize {
            let long = super::lanes::push(&self.sizes()[0], &self.args()[0])?;
            return Ok((long != *self).then_some(long));
        }
        super::tiling::definition(self)
    }

    /// Whether the term is made of operators that only rearrange: see [`Op::is_view`].
    pub fn is_view(&self) -> bool {
        self.0.known.view
    }

    /// Whether the term is a view that can be stored through: see [`Op::is_invertible`].
    pub fn is_invertible(&self) -> bool {
        self.op().is_invertible() && self.args().iter().all(Term::is_invertible)
    }

    /// Returns the inverse of an invertible view, if it loses no element and an operator undoes it.
    pub fn inverse(&self) -> Option<Term> {
        let swapped = || self.sizes().iter().rev().cloned().collect();
        let (op, sizes) = match self.op() {
            Op::Compose => {
                let (f, g) = (self.args()[0].inverse()?, self.args()[1].inverse()?);
                return g.after(&f).ok();
            }
            op @ (Op::Id | Op::Bimap | Op::Map(MapKind::Plain)) => {
                (op.clone(), self.sizes().to_vec())
            }
            Op::Split => (Op::Join, self.sizes().to_vec()),
            Op::Join => (Op::Split, self.sizes().to_vec()),
            Op::AsVector => (Op::AsScalar, self.sizes().to_vec()),
            Op::AsScalar => (Op::AsVector, self.sizes().to_vec()),
            Op::Zip => (Op::Unzip, self.sizes().to_vec()),
            Op::Unzip => (Op::Zip, self.sizes().to_vec()),
            Op::Transpose => (Op::Transpose, swapped()),
            _ => return None,
        };
        let args = self.args().iter().map(Term::inverse).collect::<Option<_>>()?;
        Term::new(op, sizes, self.tys().to_vec(), args).ok()
    }

    /// Replaces size symbols, also in types; symbols for which `f` returns `None` stay.
    ///
    /// # Errors
    /// When the new sizes make a part ill-typed.
    pub fn with_sizes(&self, f: &dyn Fn(&Sym) -> Option<Size>) -> Result<Term, TypeError> {
        Resized::by(f, false).term(self)
    }

    /// As [`Term::with_sizes`], for an `f` that replaces only symbols whose values tuning chooses.
    ///
    /// # Errors
    /// As [`Term::with_sizes`].
    pub fn with_chosen_sizes(&self, f: &dyn Fn(&Sym) -> Option<Size>) -> Result<Term, TypeError> {
        Resized::by(f, true).term(self)
    }

    /// Returns the number of nodes.
    pub fn size(&self) -> usize {
        self.0.size
    }

    /// Whether the result does not depend on the argument. Nothing is said of operators such as `map` over constants.
    pub fn is_constant(&self) -> bool {
        self.0.known.constant
    }

    /// Whether no part of the term takes or gives an array.
    pub fn is_elementary(&self) -> bool {
        self.0.known.elementary
    }

    /// Whether a size or a type in the term depends on a symbol whose value tuning chooses.
    pub fn is_chosen(&self) -> bool {
        self.0.known.chosen
    }

    /// Returns the number of reductions, scans and histograms in the term, counted once for each use.
    pub fn reductions(&self) -> usize {
        self.0.reductions
    }

    /// Calls `f` on every node, parents first.
    pub fn visit(&self, f: &mut dyn FnMut(&Term)) {
        f(self);
        for a in self.args() {
            a.visit(f);
        }
    }

    /// Whether the operator stands in the term.
    pub fn contains(&self, op: &Op) -> bool {
        self.op() == op || self.args().iter().any(|a| a.contains(op))
    }

    /// As [`Term::visit`], but leaves out the terms in which no size or type depends on a symbol whose value tuning chooses.
    pub fn visit_chosen(&self, f: &mut dyn FnMut(&Term)) {
        if self.is_chosen() {
            f(self);
            self.args().iter().for_each(|a| a.visit_chosen(f));
        }
    }
}

/// Replaces size symbols. Parts that occur often are replaced once.
struct Resized<'a> {
    f: &'a dyn Fn(&Sym) -> Option<Size>,
    /// Whether terms without chosen symbols stay.
    chosen: bool,
    terms: FxHashMap<Term, Term>,
    types: FxHashMap<Ty, Ty>,
    sizes: FxHashMap<Size, Size>,
}

impl Resized<'_> {
    fn by(f: &dyn Fn(&Sym) -> Option<Size>, chosen: bool) -> Resized<'_> {
        let (terms, types, sizes) = Default::default();
        Resized { f, chosen, terms, types, sizes }
    }

    fn size(&mut self, n: &Size) -> Size {
        self.sizes.entry(n.clone()).or_insert_with(|| n.substitute(self.f)).clone()
    }

    fn term(&mut self, t: &Term) -> Result<Term, TypeError> {
        if self.chosen && !t.is_chosen() {
            return Ok(t.clone());
        }
        if let Some(known) = self.terms.get(t) {
            return Ok(known.clone());
        }
        let args = t.args().iter().map(|a| self.term(a)).collect::<Result<Vec<_>, _>>()?;
        let sizes: Vec<Size> = t.sizes().iter().map(|s| self.size(s)).collect();
        let tys: Vec<Ty> = t.tys().iter().map(|t| self.ty(t)).collect();
        let new = if args == t.args() && sizes == t.sizes() && tys == t.tys() {
            t.clone()
        } else {
            Term::new(t.op().clone(), sizes, tys, args)?
        };
        self.terms.insert(t.clone(), new.clone());
        Ok(new)
    }

    fn ty(&mut self, t: &Ty) -> Ty {
        if matches!(t, Ty::Unit | Ty::Scalar(_)) {
            return t.clone();
        }
        if let Some(known) = self.types.get(t) {
            return known.clone();
        }
        let new = match t {
            Ty::Pair(a, b) => Ty::pair(&self.ty(a), &self.ty(b)),
            Ty::Array(n, t) => Ty::array(&self.size(n), &self.ty(t)),
            _ => t.substitute(&|_| None, self.f),
        };
        self.types.insert(t.clone(), new.clone());
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calculus::text::{Context, read_term};
    use crate::diag::Source;
    use crate::lang::types::ScalarType;

    fn term(text: &str) -> Term {
        let xs = Ty::array(&Size::dim("n"), &Ty::Scalar(ScalarType::F32));
        let context = Context { inputs: [("xs".to_owned(), xs)].into(), variables: None };
        read_term(&Source::new("t", text), &Ty::Unit, &context).expect("a term")
    }

    const TILED: &str = "chunked n.t0 n^ (mapGlb 0 (mapSeq abs)) . map sqrt . xs";

    #[test]
    fn equal_terms_are_one() {
        // The terms of another thread may take the place of one of these, but not each time.
        let mut pairs = (0..100).map(|_| (term(TILED), term(TILED)));
        let (a, b) = pairs.find(|(a, b)| Arc::ptr_eq(&a.0, &b.0)).expect("a term is found again");
        // What is expanded once is not expanded again, and what has nothing to expand stays as it is.
        let expanded = a.expand().expect("well-typed");
        assert!(expanded != a && Arc::ptr_eq(&expanded.0, &b.expand().expect("well-typed").0));
        assert!(Arc::ptr_eq(&expanded.0, &expanded.expand().expect("well-typed").0));
        assert!(Arc::ptr_eq(&expanded.0, &expanded.flat().expect("well-typed").0));
    }

    #[test]
    fn what_is_known_of_a_term() {
        let t = term(TILED);
        assert!(t.is_chosen() && !t.args()[1].is_chosen());
        assert!(!t.is_elementary() && !t.is_view());
        assert!(term("reverse . xs").args()[0].is_view());
        assert_eq!(term("fork (reduce (+) 0.0) (reduce max 0.0) . xs").reductions(), 2);
        // Sizes that are chosen are replaced where they occur.
        let four = |s: &Sym| matches!(s, Sym::Tile(_)).then(|| Size::constant(4));
        let replaced = t.with_chosen_sizes(&four).expect("well-typed");
        assert_eq!(replaced, t.with_sizes(&four).expect("well-typed"));
        assert!(Arc::ptr_eq(&replaced.args()[1].0, &t.args()[1].0));
        let mut visited = 0;
        t.visit_chosen(&mut |_| visited += 1);
        assert!(visited > 0 && visited < t.size());
    }
}
