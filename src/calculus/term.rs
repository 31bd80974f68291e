//! Terms: closed, typed, point-free functions. A program is a term that takes [`Ty::Unit`].
//!
//! A node has the sizes, types and function arguments that its operator requires; see [`super::op`].

use super::hashed::Hashed;
use super::scalar::ScalarFn;
use super::size::{Size, Sym};
use super::ty::{FnTy, Ty};
use rustc_hash::FxHashMap;
use std::sync::Arc;

pub use super::op::{MapKind, Op, ReduceKind, ScanKind, Shares, Space, TypeError, signature};

fn fail<T>(text: String) -> Result<T, TypeError> {
    Err(TypeError(text))
}

#[derive(Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Node {
    op: Op,
    sizes: Vec<Size>,
    tys: Vec<Ty>,
    args: Vec<Term>,
    ty: FnTy,
    /// The number of nodes, counted once for each use.
    size: usize,
    /// Whether the result does not depend on the argument.
    constant: bool,
}

/// A well-typed closed function. Cheap to clone; equal terms are structurally equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Term(Arc<Hashed<Node>>);

impl Term {
    /// Builds a node and checks its type.
    ///
    /// # Errors
    /// When the parts do not fit together; see [`signature`].
    pub fn new(op: Op, sizes: Vec<Size>, tys: Vec<Ty>, args: Vec<Term>) -> Result<Term, TypeError> {
        let arg_types: Vec<FnTy> = args.iter().map(|a| a.ty().clone()).collect();
        let ty = signature(&op, &sizes, &tys, &arg_types)?;
        Ok(Term::node(op, sizes, tys, args, ty))
    }

    fn node(op: Op, sizes: Vec<Size>, tys: Vec<Ty>, args: Vec<Term>, ty: FnTy) -> Term {
        let size = args.iter().fold(1, |sum: usize, a| sum.saturating_add(a.size()));
        let constant = ty.dom == Ty::Unit
            || match &op {
                Op::Compose => args.last().is_some_and(Term::is_constant),
                Op::Input(_) | Op::Lit(_) | Op::SizeValue(_) | Op::Bang | Op::Iota => true,
                Op::Fork | Op::Cond | Op::ToMem(_) => args.iter().all(Term::is_constant),
                Op::Scalar(f) => !f.body.mentions_arg(),
                _ => false,
            };
        Term(Arc::new(Hashed::new(Node { op, sizes, tys, args, ty, size, constant })))
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
        &self.0.op
    }

    /// Returns the sizes.
    pub fn sizes(&self) -> &[Size] {
        &self.0.sizes
    }

    /// Returns the types.
    pub fn tys(&self) -> &[Ty] {
        &self.0.tys
    }

    /// Returns the function arguments.
    pub fn args(&self) -> &[Term] {
        &self.0.args
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

    /// Returns the same term with every chain nested to the right, so that terms that differ only in the
    /// nesting of chains become equal.
    ///
    /// # Errors
    /// Never for a well-typed term; building the parts repeats the type checks.
    pub fn flat(&self) -> Result<Term, TypeError> {
        let factor = |t: &Term| {
            let args = t.args().iter().map(Term::flat).collect::<Result<Vec<_>, _>>()?;
            t.with_args(args)
        };
        let factors = self.chain().iter().map(factor).collect::<Result<Vec<_>, _>>()?;
        Term::of_chain(&factors)
    }

    /// Returns the term with [`Op::Chunked`], [`Op::Packed`], the operators of tiling, and [`Op::Vectorize`]
    /// of functions that work on more than elements expanded everywhere.
    ///
    /// # Errors
    /// When a vectorised function has no vector form; the error says which.
    pub fn expand(&self) -> Result<Term, TypeError> {
        self.expand_where(&|_| true)
    }

    /// As [`Term::expand`], but [`Op::Vectorize`] stays as it is.
    ///
    /// # Errors
    /// Never for a well-typed term; building the parts repeats the type checks.
    pub fn unpacked(&self) -> Result<Term, TypeError> {
        self.expand_where(&|op| *op != Op::Vectorize)
    }

    fn expand_where(&self, which: &dyn Fn(&Op) -> bool) -> Result<Term, TypeError> {
        let args =
            self.args().iter().map(|a| a.expand_where(which)).collect::<Result<Vec<_>, _>>()?;
        if *self.op() == Op::Compose {
            return args[0].after(&args[1]);
        }
        let out = self.with_args(args)?;
        if which(out.op()) { Ok(out.definition()?.unwrap_or(out)) } else { Ok(out) }
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
        let op = self.op();
        *op == Op::OnRead
            || (op.is_view() || op.is_frame()) && self.args().iter().all(Term::is_view)
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
        Resized { f, terms: FxHashMap::default(), types: FxHashMap::default() }.term(self)
    }

    /// Returns the number of nodes.
    pub fn size(&self) -> usize {
        self.0.size
    }

    /// Whether the result does not depend on the argument. Nothing is said of operators such as `map` over constants.
    pub fn is_constant(&self) -> bool {
        self.0.constant
    }

    /// Calls `f` on every node, parents first.
    pub fn visit(&self, f: &mut dyn FnMut(&Term)) {
        f(self);
        for a in self.args() {
            a.visit(f);
        }
    }
}

/// Replaces size symbols. Parts that occur often are replaced once.
struct Resized<'a> {
    f: &'a dyn Fn(&Sym) -> Option<Size>,
    terms: FxHashMap<Term, Term>,
    types: FxHashMap<Ty, Ty>,
}

impl Resized<'_> {
    fn term(&mut self, t: &Term) -> Result<Term, TypeError> {
        if let Some(known) = self.terms.get(t) {
            return Ok(known.clone());
        }
        let args = t.args().iter().map(|a| self.term(a)).collect::<Result<Vec<_>, _>>()?;
        let sizes: Vec<Size> = t.sizes().iter().map(|s| s.substitute(self.f)).collect();
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
            Ty::Array(n, t) => Ty::array(&n.substitute(self.f), &self.ty(t)),
            _ => t.substitute(&|_| None, self.f),
        };
        self.types.insert(t.clone(), new.clone());
        new
    }
}
