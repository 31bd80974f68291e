//! Types of a term as written, from the type of its argument on.

use super::raw::{Raw, RawKind, RawPattern, RawScalar, RawScalarKind, TypedLeaf};
use super::unify::Unifier;
use crate::calculus::scalar::{Lit, SExpr, ScalarFn};
use crate::calculus::size::Size;
use crate::calculus::term::{Op, ReduceKind, Term};
use crate::calculus::ty::{FnTy, Ty};
use crate::diag::{Code, Diagnostic, Limits, Result, Source, Span};
use crate::lang::typed::{PadMode, ScalarOp};
use crate::lang::types::ScalarType;
use indexmap::IndexMap;
use std::sync::Arc;

/// What names mean.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// Inputs of the program with their types.
    pub inputs: IndexMap<String, Ty>,
    /// Function variables, when the term is a side of a rule.
    pub variables: Option<IndexMap<String, FnTy>>,
}

/// A term with types that may still mention variables of the unifier.
#[derive(Clone, Debug)]
pub struct Inferred {
    op: Op,
    sizes: Vec<Size>,
    tys: Vec<Ty>,
    args: Vec<Inferred>,
    span: Span,
    /// What it gives.
    pub cod: Ty,
}

impl Inferred {
    /// The term, every variable that is left becoming a variable of the term.
    ///
    /// # Errors
    /// When the parts do not fit together after all.
    pub fn open(&self, source: &Arc<Source>, unifier: &Unifier) -> Result<Term> {
        let args = self.args.iter().map(|a| a.open(source, unifier)).collect::<Result<Vec<_>>>()?;
        if self.op == Op::Compose {
            // As written, identities included: a rule may be about them.
            let mut args = args.into_iter().rev();
            let first = args.next().ok_or_else(|| bad(source, self.span, "empty chain"))?;
            return args.try_fold(first, |inner, outer| {
                Term::new(Op::Compose, vec![], vec![], vec![outer, inner])
                    .map_err(|e| bad(source, self.span, &e.0).into())
            });
        }
        let sizes = self.sizes.iter().map(|s| unifier.size(s)).collect();
        let tys = self.tys.iter().map(|t| unifier.ty(t)).collect();
        Term::new(self.op.clone(), sizes, tys, args)
            .map_err(|e| bad(source, self.span, &e.0).into())
    }

    /// The term, with nothing left open.
    ///
    /// # Errors
    /// When a type or size is not determined.
    pub fn close(&self, source: &Arc<Source>, unifier: &Unifier) -> Result<Term> {
        let term = self.open(source, unifier)?;
        let mut open = None;
        term.visit(&mut |t| {
            if t.sizes().iter().any(Size::has_meta) || t.tys().iter().any(has_meta) {
                open.get_or_insert_with(|| t.to_string());
            }
        });
        match open {
            None => Ok(term),
            Some(t) => Err(Diagnostic::error(
                Code::Ambiguous,
                format!("nothing determines the type of `{t}`"),
            )
            .at(source, self.span, "in this term")
            .into()),
        }
    }
}

fn has_meta(t: &Ty) -> bool {
    match t {
        Ty::Unit | Ty::Scalar(_) => false,
        Ty::Meta(_) => true,
        Ty::Vector(n, t) | Ty::Array(n, t) => n.has_meta() || has_meta(t),
        Ty::Pair(a, b) => has_meta(a) || has_meta(b),
    }
}

fn bad(source: &Arc<Source>, span: Span, why: &str) -> Diagnostic {
    Diagnostic::error(Code::BadTerm, why.to_owned()).at(source, span, "here")
}

/// Infers the types of `raw` for an argument of type `dom`.
///
/// # Errors
/// A [`Code::BadTerm`] or [`Code::UnknownName`] with its place.
pub fn infer(
    source: &Arc<Source>,
    raw: &Raw,
    dom: &Ty,
    context: &Context,
    unifier: &mut Unifier,
) -> Result<Inferred> {
    Infer { source, context, u: unifier }.term(raw, dom)
}

struct Infer<'a> {
    source: &'a Arc<Source>,
    context: &'a Context,
    u: &'a mut Unifier,
}

impl Infer<'_> {
    fn unify(&mut self, span: Span, what: &str, got: &Ty, want: &Ty) -> Result<()> {
        if self.u.unify(got, want) {
            return Ok(());
        }
        let (got, want) = (self.u.ty(got), self.u.ty(want));
        Err(bad(self.source, span, &format!("{what} is `{got}`, not `{want}`")).into())
    }

    fn array(&mut self, span: Span, t: &Ty) -> Result<(Size, Ty)> {
        if let Ty::Array(n, x) = self.u.ty(t) {
            return Ok((n, (*x).clone()));
        }
        let (n, x) = (self.u.fresh_size(), self.u.fresh_type());
        self.unify(span, "its argument", t, &Ty::array(&n, &x))?;
        Ok((n, x))
    }

    fn pair(&mut self, span: Span, t: &Ty) -> Result<(Ty, Ty)> {
        if let Ty::Pair(a, b) = self.u.ty(t) {
            return Ok(((*a).clone(), (*b).clone()));
        }
        let (a, b) = (self.u.fresh_type(), self.u.fresh_type());
        self.unify(span, "its argument", t, &Ty::pair(&a, &b))?;
        Ok((a, b))
    }

    fn vector(&self, span: Span, w: &Size, t: &Ty) -> Result<Ty> {
        let t = self.u.ty(t);
        Ty::vector(w, &t)
            .ok_or_else(|| bad(self.source, span, &format!("`{t}` has no vector form")).into())
    }

    fn unvector(&mut self, span: Span, w: &Size, t: &Ty) -> Result<Ty> {
        let t = self.u.ty(t);
        if let Some(x) = t.unvector(&self.u.size(w)) {
            return Ok(x);
        }
        let x = self.u.fresh_type();
        self.unify(span, "its argument", &t, &Ty::Vector(w.clone(), Arc::new(x.clone())))?;
        Ok(self.u.ty(&x))
    }

    fn term(&mut self, raw: &Raw, dom: &Ty) -> Result<Inferred> {
        let inferred = self.term_here(raw, dom)?;
        let most = Limits::DEFAULT.type_components;
        if self.u.components(&inferred.cod, most + 1) > most {
            let why = format!("the type of its result has more than {most} components");
            return Err(Diagnostic::error(Code::KernelLimit, why)
                .at(self.source, raw.span, "here")
                .into());
        }
        Ok(inferred)
    }

    fn term_here(&mut self, raw: &Raw, dom: &Ty) -> Result<Inferred> {
        let span = raw.span;
        let leaf = |op, sizes, tys, cod| Inferred { op, sizes, tys, args: vec![], span, cod };
        Ok(match &raw.kind {
            RawKind::Compose(parts) => {
                let mut ty = dom.clone();
                let mut args = vec![];
                for p in parts.iter().rev() {
                    let inferred = self.term(p, &ty)?;
                    ty = inferred.cod.clone();
                    args.push(inferred);
                }
                args.reverse();
                Inferred { op: Op::Compose, sizes: vec![], tys: vec![], args, span, cod: ty }
            }
            RawKind::Typed(TypedLeaf::Iota, n, t) => leaf(
                Op::Iota,
                vec![n.clone()],
                vec![dom.clone(), Ty::Scalar(*t)],
                Ty::array(n, &Ty::Scalar(*t)),
            ),
            RawKind::Typed(TypedLeaf::SizeOf, n, t) => {
                leaf(Op::SizeValue(*t), vec![n.clone()], vec![dom.clone()], Ty::Scalar(*t))
            }
            RawKind::Name(name) => {
                if let Some(ty) = self.context.inputs.get(name) {
                    let op = Op::Input(name.as_str().into());
                    return Ok(leaf(op, vec![], vec![dom.clone(), ty.clone()], ty.clone()));
                }
                let Some(f) = self.context.variables.as_ref().and_then(|v| v.get(name)).cloned()
                else {
                    return Err(Diagnostic::error(
                        Code::UnknownName,
                        format!("unknown name `{name}`"),
                    )
                    .at(self.source, span, "neither an operator nor an input")
                    .into());
                };
                self.unify(span, &format!("the argument of `{name}`"), dom, &f.dom)?;
                let tys = vec![f.dom.clone(), f.cod.clone()];
                leaf(Op::Meta(name.as_str().into()), vec![], tys, f.cod)
            }
            RawKind::Lit(l) => self.literal(span, *l, dom),
            RawKind::ScalarOp(op) => self.scalar_op(span, *op, dom)?,
            RawKind::Lambda(pattern, body) => self.lambda(span, pattern, body, dom)?,
            RawKind::Op(op, sizes, args) => self.op(span, op, sizes, args, dom)?,
        })
    }

    /// A constant: from `()` a scalar leaf, from elsewhere that after `bang`.
    fn literal(&mut self, span: Span, l: Lit, dom: &Ty) -> Inferred {
        let cod = Ty::Scalar(l.ty);
        let f = ScalarFn { dom: Ty::Unit, cod: cod.clone(), body: SExpr::Lit(l) };
        let op = Op::Scalar(Arc::new(f));
        let constant =
            Inferred { op, sizes: vec![], tys: vec![], args: vec![], span, cod: cod.clone() };
        if self.u.ty(dom) == Ty::Unit {
            return constant;
        }
        let bang = Inferred {
            op: Op::Bang,
            sizes: vec![],
            tys: vec![dom.clone()],
            args: vec![],
            span,
            cod: Ty::Unit,
        };
        Inferred {
            op: Op::Compose,
            sizes: vec![],
            tys: vec![],
            args: vec![constant, bang],
            span,
            cod,
        }
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each operator")]
    fn op(
        &mut self,
        span: Span,
        op: &Op,
        explicit: &[Size],
        raw_args: &[Raw],
        dom: &Ty,
    ) -> Result<Inferred> {
        let arr = Ty::array;
        let divides = matches!(
            op,
            Op::Split
                | Op::AsVector
                | Op::Stride
                | Op::ReducePart
                | Op::ReduceLcl
                | Op::Chunked
                | Op::Packed
                | Op::Tiled(_)
                | Op::TiledRows
                | Op::Blocked(_)
                | Op::BlockedRows
                | Op::Spread(_)
                | Op::SpreadRows
        );
        if divides && explicit.first().is_some_and(|k| k.as_constant() == Some(0)) {
            return Err(bad(self.source, span, "0 divides no length").into());
        }
        let mut args = vec![];
        let (sizes, tys, cod): (Vec<Size>, Vec<Ty>, Ty) = match op {
            Op::Id => (vec![], vec![dom.clone()], dom.clone()),
            Op::Fst | Op::Snd => {
                let (a, b) = self.pair(span, dom)?;
                let cod = if *op == Op::Fst { a.clone() } else { b.clone() };
                (vec![], vec![a, b], cod)
            }
            Op::Fork => {
                let (f, g) = (self.term(&raw_args[0], dom)?, self.term(&raw_args[1], dom)?);
                let cod = Ty::pair(&f.cod, &g.cod);
                args = vec![f, g];
                (vec![], vec![], cod)
            }
            Op::Bimap => {
                let (a, b) = self.pair(span, dom)?;
                let (f, g) = (self.term(&raw_args[0], &a)?, self.term(&raw_args[1], &b)?);
                let cod = Ty::pair(&f.cod, &g.cod);
                args = vec![f, g];
                (vec![], vec![], cod)
            }
            Op::Bang => (vec![], vec![dom.clone()], Ty::Unit),
            Op::Cond => {
                let p = self.term(&raw_args[0], dom)?;
                self.unify(span, "the condition", &p.cod, &Ty::Scalar(ScalarType::Bool))?;
                let (f, g) = (self.term(&raw_args[1], dom)?, self.term(&raw_args[2], dom)?);
                self.unify(span, "the second branch", &g.cod, &f.cod)?;
                let cod = f.cod.clone();
                args = vec![p, f, g];
                (vec![], vec![], cod)
            }
            Op::Map(_) => {
                let (n, a) = self.array(span, dom)?;
                let f = self.term(&raw_args[0], &a)?;
                let cod = arr(&n, &f.cod);
                args = vec![f];
                (vec![n], vec![], cod)
            }
            Op::Reduce(_) | Op::Scan(_) => {
                let (n, a) = self.array(span, dom)?;
                let z = self.term(&raw_args[1], &Ty::Unit)?;
                let acc = z.cod.clone();
                if matches!(op, Op::Reduce(ReduceKind::Assoc | ReduceKind::Comm)) {
                    self.unify(span, "the initial value", &acc, &a)?;
                }
                let f = self.term(&raw_args[0], &Ty::pair(&acc, &a))?;
                self.unify(span, "the operator's result", &f.cod, &acc)?;
                args = vec![f, z];
                let cod = if matches!(op, Op::Scan(_)) { arr(&n, &acc) } else { acc };
                (vec![n], vec![], cod)
            }
            Op::ReduceLcl => {
                let (n, a) = self.array(span, dom)?;
                let z = self.term(&raw_args[1], &Ty::Unit)?;
                let b = z.cod.clone();
                let f = self.term(&raw_args[2], &a)?;
                self.unify(span, "what is reduced", &f.cod, &b)?;
                let op = self.term(&raw_args[0], &Ty::pair(&b, &b))?;
                self.unify(span, "the operator's result", &op.cod, &b)?;
                args = vec![op, z, f];
                (vec![n, explicit[0].clone()], vec![], b)
            }
            Op::ReducePart => {
                let (n, a) = self.array(span, dom)?;
                let m = explicit[0].clone();
                let z = self.term(&raw_args[1], &Ty::Unit)?;
                self.unify(span, "the initial value", &z.cod, &a)?;
                let f = self.term(&raw_args[0], &Ty::pair(&a, &a))?;
                self.unify(span, "the operator's result", &f.cod, &a)?;
                args = vec![f, z];
                let cod = arr(&m, &a);
                (vec![self.u.size(&n).div(&m), m], vec![], cod)
            }
            Op::Zip => {
                let (x, y) = self.pair(span, dom)?;
                let ((n, a), (m, b)) = (self.array(span, &x)?, self.array(span, &y)?);
                self.unify(span, "the second array", &arr(&m, &b), &arr(&n, &b))?;
                let cod = arr(&n, &Ty::pair(&a, &b));
                (vec![n], vec![a, b], cod)
            }
            Op::Unzip => {
                let (n, x) = self.array(span, dom)?;
                let (a, b) = self.pair(span, &x)?;
                let cod = Ty::pair(&arr(&n, &a), &arr(&n, &b));
                (vec![n], vec![a, b], cod)
            }
            Op::Split => {
                let (n, a) = self.array(span, dom)?;
                let k = explicit[0].clone();
                let m = self.u.size(&n).div(&k);
                let cod = arr(&m, &arr(&k, &a));
                (vec![k, m], vec![a], cod)
            }
            Op::Join => {
                let (m, x) = self.array(span, dom)?;
                let (k, a) = self.array(span, &x)?;
                let cod = arr(&k.mul(&m), &a);
                (vec![k, m], vec![a], cod)
            }
            Op::Transpose => {
                let (n, x) = self.array(span, dom)?;
                let (m, a) = self.array(span, &x)?;
                let cod = arr(&m, &arr(&n, &a));
                (vec![n, m], vec![a], cod)
            }
            Op::Cross => {
                let (x, y) = self.pair(span, dom)?;
                let ((n, a), (m, b)) = (self.array(span, &x)?, self.array(span, &y)?);
                let cod = arr(&n, &arr(&m, &Ty::pair(&a, &b)));
                (vec![n, m], vec![a, b], cod)
            }
            Op::Distl => {
                let (a, y) = self.pair(span, dom)?;
                let (n, b) = self.array(span, &y)?;
                let cod = arr(&n, &Ty::pair(&a, &b));
                (vec![n], vec![a, b], cod)
            }
            Op::Distr => {
                let (x, b) = self.pair(span, dom)?;
                let (n, a) = self.array(span, &x)?;
                let cod = arr(&n, &Ty::pair(&a, &b));
                (vec![n], vec![a, b], cod)
            }
            Op::AsVector => {
                let (n, a) = self.array(span, dom)?;
                let w = explicit[0].clone();
                let m = self.u.size(&n).div(&w);
                let cod = arr(&m, &self.vector(span, &w, &a)?);
                (vec![w, m], vec![a], cod)
            }
            Op::AsScalar => {
                let (m, x) = self.array(span, dom)?;
                let w = self.width(&x);
                let a = self.unvector(span, &w, &x)?;
                let cod = arr(&w.mul(&m), &a);
                (vec![w, m], vec![a], cod)
            }
            Op::Vectorize => {
                let w = explicit[0].clone();
                let a = self.unvector(span, &w, dom)?;
                let f = self.term(&raw_args[0], &a)?;
                let cod = self.vector(span, &w, &f.cod)?;
                args = vec![f];
                (vec![w], vec![], cod)
            }
            Op::Splat => {
                let w = explicit[0].clone();
                let cod = self.vector(span, &w, dom)?;
                (vec![w], vec![dom.clone()], cod)
            }
            Op::ToMem(_) => {
                let f = self.term(&raw_args[0], dom)?;
                let cod = f.cod.clone();
                args = vec![f];
                (vec![], vec![], cod)
            }
            Op::Stride => {
                let (n, a) = self.array(span, dom)?;
                let s = explicit[0].clone();
                (vec![s.clone(), self.u.size(&n).div(&s)], vec![a], dom.clone())
            }
            Op::Reorder | Op::Reverse => {
                let (n, a) = self.array(span, dom)?;
                (vec![n], vec![a], dom.clone())
            }
            Op::PadTo => {
                let (n, a) = self.array(span, dom)?;
                let r = explicit[0].clone();
                let z = self.term(&raw_args[0], &Ty::Unit)?;
                self.unify(span, "the padding", &z.cod, &a)?;
                args = vec![z];
                let cod = arr(&r, &a);
                (vec![n, r], vec![], cod)
            }
            Op::PadLast => {
                let (n, a) = self.array(span, dom)?;
                let r = explicit[0].clone();
                (vec![n, r.clone()], vec![a.clone()], arr(&r, &a))
            }
            Op::Chunked | Op::Packed => {
                let (n, a) = self.array(span, dom)?;
                let (k, r) = (explicit[0].clone(), explicit[1].clone());
                let packed = |p: &Self, t: &Ty| match op {
                    Op::Packed => p.vector(span, &k, t),
                    _ => Ok(arr(&k, t)),
                };
                let inside = arr(&r.div(&k), &packed(self, &a)?);
                let h = self.term(&raw_args[0], &inside)?;
                let (chunks, x) = self.array(span, &h.cod)?;
                let result = match op {
                    Op::Packed => self.unvector(span, &k, &x)?,
                    _ => self.array(span, &x)?.1,
                };
                let want = arr(&r.div(&k), &packed(self, &result)?);
                self.unify(span, "the result for the chunks", &arr(&chunks, &x), &want)?;
                args = vec![h];
                let cod = arr(&n, &result);
                (vec![n, k, r], vec![], cod)
            }
            Op::Fold => {
                let (c, xs) = self.pair(span, dom)?;
                let (n, x) = self.array(span, &xs)?;
                let f = self.term(&raw_args[0], &Ty::pair(&c, &x))?;
                self.unify(span, "the operator's result", &f.cod, &c)?;
                args = vec![f];
                (vec![n], vec![], c)
            }
            Op::While => {
                let (state, _) = self.pair(span, dom)?;
                let p = self.term(&raw_args[0], dom)?;
                self.unify(span, "the condition", &p.cod, &Ty::Scalar(ScalarType::Bool))?;
                let f = self.term(&raw_args[1], dom)?;
                self.unify(span, "the body's result", &f.cod, &state)?;
                args = vec![p, f];
                (vec![], vec![], state)
            }
            Op::Tiled(_)
            | Op::TiledRows
            | Op::Blocked(_)
            | Op::BlockedRows
            | Op::Spread(_)
            | Op::SpreadRows
            | Op::Sliced => self.tiling(span, op, explicit, raw_args, dom, &mut args)?,
            Op::Mask => {
                let (n, a) = self.array(span, dom)?;
                let r = explicit[0].clone();
                let cod = arr(&r, &Ty::pair(&Ty::Scalar(ScalarType::Bool), &a));
                (vec![n, r], vec![a], cod)
            }
            Op::Take | Op::Drop => {
                let (n, a) = self.array(span, dom)?;
                let k = explicit[0].clone();
                (vec![k.clone(), n], vec![a.clone()], arr(&k, &a))
            }
            Op::Rotate => {
                let (n, a) = self.array(span, dom)?;
                (vec![explicit[0].clone(), n], vec![a], dom.clone())
            }
            Op::Slide => {
                let (n, a) = self.array(span, dom)?;
                let (w, s, m) = (explicit[0].clone(), explicit[1].clone(), explicit[2].clone());
                let cod = arr(&m, &arr(&w, &a));
                (vec![w, s, n, m], vec![a], cod)
            }
            Op::Pad(mode) => {
                let (n, a) = self.array(span, dom)?;
                if *mode == PadMode::Constant {
                    let z = self.term(&raw_args[0], &Ty::Unit)?;
                    self.unify(span, "the padding", &z.cod, &a)?;
                    args = vec![z];
                }
                let cod = arr(&explicit[1], &a);
                (vec![explicit[0].clone(), n, explicit[1].clone()], vec![a], cod)
            }
            Op::Gather => {
                let (x, y) = self.pair(span, dom)?;
                let ((n, a), (m, i)) = (self.array(span, &x)?, self.array(span, &y)?);
                let cod = arr(&m, &a);
                (vec![n, m], vec![a, i], cod)
            }
            Op::Scatter => {
                let (dest, updates) = self.pair(span, dom)?;
                let (is, vs) = self.pair(span, &updates)?;
                let ((n, a), (m, i)) = (self.array(span, &dest)?, self.array(span, &is)?);
                self.unify(span, "the values", &vs, &arr(&m, &a))?;
                (vec![n, m], vec![a, i], dest)
            }
            Op::Histogram => {
                let (is, vs) = self.pair(span, dom)?;
                let ((n, i), (_, a)) = (self.array(span, &is)?, self.array(span, &vs)?);
                self.unify(span, "the values", &vs, &arr(&n, &a))?;
                let f = self.term(&raw_args[0], &Ty::pair(&a, &a))?;
                let z = self.term(&raw_args[1], &Ty::Unit)?;
                self.unify(span, "the initial value", &z.cod, &a)?;
                args = vec![f, z];
                let cod = arr(&explicit[0], &a);
                (vec![explicit[0].clone(), n], vec![i], cod)
            }
            Op::Replicate => {
                let n = explicit[0].clone();
                (vec![n.clone()], vec![dom.clone()], arr(&n, dom))
            }
            Op::Concat => {
                let (x, y) = self.pair(span, dom)?;
                let ((n, a), (m, b)) = (self.array(span, &x)?, self.array(span, &y)?);
                self.unify(span, "the second array's elements", &b, &a)?;
                let cod = arr(&explicit[0], &a);
                (vec![n, m, explicit[0].clone()], vec![a], cod)
            }
            Op::Index => {
                let (x, i) = self.pair(span, dom)?;
                let (n, a) = self.array(span, &x)?;
                (vec![n], vec![a.clone(), i], a)
            }
            Op::The => {
                let (n, a) = self.array(span, dom)?;
                self.unify(span, "its argument", &arr(&n, &a), &arr(&Size::constant(1), &a))?;
                (vec![], vec![a.clone()], a)
            }
            Op::Wrap => (vec![], vec![dom.clone()], arr(&Size::constant(1), dom)),
            Op::Compose
            | Op::Input(_)
            | Op::Lit(_)
            | Op::SizeValue(_)
            | Op::Scalar(_)
            | Op::Iota
            | Op::Meta(_) => {
                return Err(bad(self.source, span, "not an operator with a name").into());
            }
        };
        Ok(Inferred { op: op.clone(), sizes, tys, args, span, cod })
    }

    /// The vector width of an element type, or a new variable.
    /// What is inside so many arrays.
    fn inside(&mut self, span: Span, t: &Ty, arrays: usize) -> Result<Ty> {
        (0..arrays).try_fold(t.clone(), |t, _| Ok(self.array(span, &t)?.1))
    }

    /// The operators of tiling: sizes, types and result; their arguments go to `args`.
    fn tiling(
        &mut self,
        span: Span,
        op: &Op,
        explicit: &[Size],
        raw: &[Raw],
        dom: &Ty,
        args: &mut Vec<Inferred>,
    ) -> Result<(Vec<Size>, Vec<Ty>, Ty)> {
        let arr = Ty::array;
        let flagged = |t: &Ty| Ty::pair(&Ty::Scalar(ScalarType::Bool), t);
        let mut sizes = vec![];
        let cod = match op {
            Op::Spread(_) => {
                let (n, row) = self.array(span, dom)?;
                let (m, a) = self.array(span, &row)?;
                let [t, u, ..] = explicit else {
                    return Err(bad(self.source, span, "sizes").into());
                };
                let parts = self.u.size(&n).div(t).mul(&self.u.size(&m).div(u));
                let h = self.term(&raw[0], &arr(&parts, &arr(t, &arr(u, &a))))?;
                let b = self.inside(span, &h.cod, 3)?;
                let want = arr(&parts, &arr(t, &arr(u, &b)));
                self.unify(span, "the result for the parts", &h.cod, &want)?;
                args.push(h);
                sizes.extend([n.clone(), m.clone()]);
                arr(&n, &arr(&m, &b))
            }
            Op::SpreadRows => {
                let (n, a) = self.array(span, dom)?;
                let t = &explicit[0];
                let parts = self.u.size(&n).div(t);
                let h = self.term(&raw[0], &arr(&parts, &arr(t, &a)))?;
                let b = self.inside(span, &h.cod, 2)?;
                let want = arr(&parts, &arr(t, &b));
                self.unify(span, "the result for the parts", &h.cod, &want)?;
                args.push(h);
                sizes.push(n.clone());
                arr(&n, &b)
            }
            Op::Sliced => {
                let (n, x) = self.array(span, dom)?;
                let w = self.term(&raw[0], &x)?;
                let (c, a) = self.array(span, &w.cod)?;
                let all = self.u.size(&c).mul(&self.u.size(&n));
                let h = self.term(&raw[1], &arr(&all, &a))?;
                let b = self.inside(span, &h.cod, 1)?;
                self.unify(span, "the result for the slices", &h.cod, &arr(&all, &b))?;
                let f = self.term(&raw[2], &arr(&n, &Ty::pair(&arr(&c, &b), &x)))?;
                let cod = f.cod.clone();
                args.extend([w, h, f]);
                sizes.extend([n, c]);
                cod
            }
            Op::Tiled(with) => {
                let (pairs, matrix) =
                    if *with { self.pair(span, dom)? } else { (dom.clone(), Ty::Unit) };
                let (left, right) = self.pair(span, &pairs)?;
                let ((n, a), (m, b)) = (self.array(span, &left)?, self.array(span, &right)?);
                let [t, u, r, q] = explicit else {
                    return Err(bad(self.source, span, "sizes").into());
                };
                let (rows, columns) = (r.div(t), q.div(u));
                let (a, b) = (arr(t, &a), arr(u, &b));
                for (raw, tiles) in raw.iter().zip([arr(&rows, &a), arr(&columns, &b)]) {
                    let copy = self.term(raw, &tiles)?;
                    self.unify(span, "the copy of the tiles", &copy.cod, &tiles)?;
                    args.push(copy);
                }
                let tiles = |x: &Ty| arr(&rows, &arr(&columns, x));
                let mut each = Ty::pair(&a, &b);
                if *with {
                    let x = self.inside(span, &matrix, 2)?;
                    self.unify(span, "the matrix", &matrix, &arr(&n, &arr(&m, &x)))?;
                    each = Ty::pair(&each, &arr(t, &arr(u, &x)));
                }
                let h = self.term(&raw[2], &tiles(&each))?;
                let c = self.inside(span, &h.cod, 4)?;
                self.unify(span, "the result", &h.cod, &tiles(&arr(t, &arr(u, &c))))?;
                args.push(h);
                sizes.extend([n.clone(), m.clone()]);
                arr(&n, &arr(&m, &c))
            }
            Op::TiledRows => {
                let (left, right) = self.pair(span, dom)?;
                let ((n, a), (m, _)) = (self.array(span, &left)?, self.array(span, &right)?);
                let [t, r] = explicit else { return Err(bad(self.source, span, "sizes").into()) };
                let rows = r.div(t);
                let h = self.term(&raw[0], &arr(&rows, &Ty::pair(&arr(t, &a), &right)))?;
                let c = self.inside(span, &h.cod, 2)?;
                self.unify(span, "the result", &h.cod, &arr(&rows, &arr(t, &c)))?;
                args.push(h);
                sizes.extend([n.clone(), m]);
                arr(&n, &c)
            }
            Op::Blocked(with) => {
                let (pairs, besides) =
                    if *with { self.pair(span, dom)? } else { (dom.clone(), Ty::Unit) };
                let (left, right) = self.pair(span, &pairs)?;
                let ((n, row), (m, column)) = (self.array(span, &left)?, self.array(span, &right)?);
                let ((k, a), (l, b)) = (self.array(span, &row)?, self.array(span, &column)?);
                self.unify(span, "the second array", &arr(&l, &b), &arr(&k, &b))?;
                let t = &explicit[0];
                for (raw, block) in raw.iter().zip([arr(t, &arr(&n, &a)), arr(t, &arr(&m, &b))]) {
                    let copy = self.term(raw, &block)?;
                    self.unify(span, "the copy of a block", &copy.cod, &block)?;
                    args.push(copy);
                }
                let z = self.term(&raw[3], &Ty::Unit)?;
                let matrix = |x: &Ty| arr(&n, &arr(&m, x));
                let x = arr(t, &flagged(&Ty::pair(&a, &b)));
                let u = self.term(&raw[2], &matrix(&Ty::pair(&z.cod, &x)))?;
                self.unify(span, "a step's result", &u.cod, &matrix(&z.cod))?;
                let end = matrix(&z.cod);
                let end = if *with { Ty::pair(&end, &besides) } else { end };
                let f = self.term(&raw[4], &end)?;
                let cod = f.cod.clone();
                args.extend([u, z, f]);
                sizes.extend([n, m, k]);
                cod
            }
            _ => {
                let (left, right) = self.pair(span, dom)?;
                let ((n, a), (k, b)) = (self.array(span, &left)?, self.array(span, &right)?);
                let block = arr(&explicit[0], &b);
                let copy = self.term(&raw[0], &block)?;
                self.unify(span, "the copy of a block", &copy.cod, &block)?;
                let z = self.term(&raw[2], &Ty::Unit)?;
                let x = arr(&explicit[0], &flagged(&Ty::pair(&a, &b)));
                let u = self.term(&raw[1], &arr(&n, &Ty::pair(&z.cod, &x)))?;
                self.unify(span, "a step's result", &u.cod, &arr(&n, &z.cod))?;
                let f = self.term(&raw[3], &arr(&n, &z.cod))?;
                let cod = f.cod.clone();
                args.extend([copy, u, z, f]);
                sizes.extend([n, k]);
                cod
            }
        };
        sizes.extend_from_slice(explicit);
        Ok((sizes, vec![], cod))
    }

    fn width(&mut self, t: &Ty) -> Size {
        match self.u.ty(t) {
            Ty::Vector(w, _) => w,
            Ty::Pair(a, _) => self.width(&a),
            Ty::Unit | Ty::Scalar(_) | Ty::Array(..) | Ty::Meta(_) => self.u.fresh_size(),
        }
    }

    fn scalar_op(&mut self, span: Span, op: ScalarOp, dom: &Ty) -> Result<Inferred> {
        let arity = super::names::FUNCTIONS.iter().find(|f| f.1 == op).map_or(2, |f| f.2);
        let pattern = match (&op, arity) {
            (ScalarOp::Cast(_), _) | (_, 1) => RawPattern::Name("a".into()),
            (_, 2) => RawPattern::Pair(
                Box::new(RawPattern::Name("a".into())),
                Box::new(RawPattern::Name("b".into())),
            ),
            _ => RawPattern::Pair(
                Box::new(RawPattern::Name("a".into())),
                Box::new(RawPattern::Pair(
                    Box::new(RawPattern::Name("b".into())),
                    Box::new(RawPattern::Name("c".into())),
                )),
            ),
        };
        let arity = if matches!(op, ScalarOp::Cast(_)) { 1 } else { arity };
        let name = |n: &str| RawScalar { kind: RawScalarKind::Name(n.into(), 0), span };
        let args = ["a", "b", "c"][..arity].iter().map(|n| name(n)).collect();
        self.lambda(span, &pattern, &RawScalar { kind: RawScalarKind::Op(op, args), span }, dom)
    }

    fn lambda(
        &mut self,
        span: Span,
        pattern: &RawPattern,
        body: &RawScalar,
        dom: &Ty,
    ) -> Result<Inferred> {
        let dom = self.u.ty(dom);
        if !(dom.is_scalar() || dom == Ty::Unit) {
            return Err(bad(
                self.source,
                span,
                &format!("a scalar function stands where the argument is `{dom}`"),
            )
            .into());
        }
        let mut scope = vec![];
        self.bind(span, pattern, SExpr::Arg, &dom, &mut scope)?;
        let (body, cod) = self.scalar(body, &mut scope, 0)?;
        let f = ScalarFn { dom, cod: cod.clone(), body };
        let op = Op::Scalar(Arc::new(f));
        Ok(Inferred { op, sizes: vec![], tys: vec![], args: vec![], span, cod })
    }

    fn bind(
        &self,
        span: Span,
        pattern: &RawPattern,
        e: SExpr,
        ty: &Ty,
        scope: &mut Scope,
    ) -> Result<()> {
        match (pattern, ty) {
            (RawPattern::Ignore, _) | (RawPattern::Unit, Ty::Unit) => Ok(()),
            (RawPattern::Name(n), _) => {
                scope.push((n.clone(), e, ty.clone()));
                Ok(())
            }
            (RawPattern::Pair(p, q), Ty::Pair(a, b)) => {
                self.bind(span, p, e.clone().proj(false), a, scope)?;
                self.bind(span, q, e.proj(true), b, scope)
            }
            (RawPattern::Unit | RawPattern::Pair(..), _) => {
                Err(bad(self.source, span, &format!("the pattern does not fit `{ty}`")).into())
            }
        }
    }

    fn scalar(&self, e: &RawScalar, scope: &mut Scope, depth: u32) -> Result<(SExpr, Ty)> {
        let span = e.span;
        let err = |why: String| Err(bad(self.source, span, &why).into());
        Ok(match &e.kind {
            RawScalarKind::Name(n, component) => {
                if let Some((_, e, t)) = scope.iter().rev().find(|(m, _, _)| m == n) {
                    return Ok((e.clone(), t.clone()));
                }
                let parts = self.context.inputs.get(n).map(Ty::components).unwrap_or_default();
                match parts.get(*component) {
                    Some((dims, Ty::Scalar(t))) if dims.is_empty() => {
                        (SExpr::Input(n.as_str().into(), *component, *t), Ty::Scalar(*t))
                    }
                    _ => return err(format!("unknown scalar `{n}`")),
                }
            }
            RawScalarKind::Lit(l) => (SExpr::Lit(*l), Ty::Scalar(l.ty)),
            RawScalarKind::Size(s, t) => (SExpr::Size(s.clone(), *t), Ty::Scalar(*t)),
            RawScalarKind::Proj(e, second) => match self.scalar(e, scope, depth)? {
                (e, Ty::Pair(a, b)) => {
                    (e.proj(*second), if *second { (*b).clone() } else { (*a).clone() })
                }
                (_, t) => return err(format!("`{t}` has no components")),
            },
            RawScalarKind::Op(op, es) => {
                let mut args = vec![];
                let mut types = vec![];
                for e in es {
                    let (e, t) = self.scalar(e, scope, depth)?;
                    let Ty::Scalar(t) = t else {
                        return err(format!("an operation on `{t}`"));
                    };
                    args.push(e);
                    types.push(t);
                }
                let result = match op {
                    ScalarOp::Eq
                    | ScalarOp::Ne
                    | ScalarOp::Lt
                    | ScalarOp::Le
                    | ScalarOp::Gt
                    | ScalarOp::Ge => ScalarType::Bool,
                    ScalarOp::Cast(to) => *to,
                    ScalarOp::Select => types[1],
                    _ => types[0],
                };
                let uniform = if *op == ScalarOp::Select { &types[1..] } else { &types[..] };
                if uniform.windows(2).any(|w| w[0] != w[1]) {
                    return err("operands of different types".to_owned());
                }
                // A cast node keeps what it converts from; the result type is the node's.
                let op = match op {
                    ScalarOp::Cast(_) => ScalarOp::Cast(types[0]),
                    other => *other,
                };
                (SExpr::Op(op, result, args), Ty::Scalar(result))
            }
            RawScalarKind::If(c, a, b) => {
                let (c, _) = self.scalar(c, scope, depth)?;
                let ((a, t), (b, u)) =
                    (self.scalar(a, scope, depth)?, self.scalar(b, scope, depth)?);
                if t != u {
                    return err(format!("branches of types `{t}` and `{u}`"));
                }
                (SExpr::If(Arc::new(c), Arc::new(a), Arc::new(b)), t)
            }
            RawScalarKind::Pair(a, b) => {
                let ((a, t), (b, u)) =
                    (self.scalar(a, scope, depth)?, self.scalar(b, scope, depth)?);
                (SExpr::pair(a, b), Ty::pair(&t, &u))
            }
            RawScalarKind::Let(name, a, b) => {
                let (a, t) = self.scalar(a, scope, depth)?;
                scope.push((name.clone(), SExpr::Var(depth, t.clone()), t));
                let (b, u) = self.scalar(b, scope, depth + 1)?;
                scope.pop();
                (SExpr::Let(Arc::new(a), Arc::new(b)), u)
            }
            RawScalarKind::For(acc, init, i, bound, body) => {
                let (init, t) = self.scalar(init, scope, depth)?;
                let (bound, c) = self.scalar(bound, scope, depth)?;
                scope.push((i.clone(), SExpr::Var(depth, c.clone()), c));
                scope.push((acc.clone(), SExpr::Var(depth + 1, t.clone()), t.clone()));
                let (body, _) = self.scalar(body, scope, depth + 2)?;
                scope.truncate(scope.len() - 2);
                (SExpr::For(Arc::new(init), Arc::new(bound), Arc::new(body)), t)
            }
            RawScalarKind::While(acc, init, cond, body) => {
                let (init, t) = self.scalar(init, scope, depth)?;
                scope.push((acc.clone(), SExpr::Var(depth, t.clone()), t.clone()));
                let (cond, _) = self.scalar(cond, scope, depth + 1)?;
                let (body, _) = self.scalar(body, scope, depth + 1)?;
                scope.pop();
                (SExpr::While(Arc::new(init), Arc::new(cond), Arc::new(body)), t)
            }
        })
    }
}

type Scope = Vec<(String, SExpr, Ty)>;
