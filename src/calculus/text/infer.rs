//! Infers the types of a term as written, from the type of its argument.

use super::raw::{Raw, RawKind, RawPattern, RawScalar, RawScalarKind};
use super::unify::Unifier;
use crate::calculus::op::Solution;
use crate::calculus::scalar::{Lit, SExpr, ScalarFn};
use crate::calculus::size::Size;
use crate::calculus::term::{Op, Term, TypeError};
use crate::calculus::ty::{FnTy, Ty};
use crate::diag::{Code, Diagnostic, Failure, Limits, Result, Source, Span};
use crate::lang::typed::ScalarOp;
use crate::lang::types::ScalarType;
use indexmap::IndexMap;
use std::sync::Arc;

/// The meaning of names.
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
    /// The result type.
    pub cod: Ty,
}

impl Inferred {
    /// Returns the term; variables that are still unknown become variables of the term.
    ///
    /// # Errors
    /// When the parts do not fit together after all.
    pub fn open(&self, source: &Arc<Source>, unifier: &Unifier) -> Result<Term> {
        let args = self.args.iter().map(|a| a.open(source, unifier)).collect::<Result<Vec<_>>>()?;
        if self.op == Op::Compose {
            // As written, identities included, because a rule may be about them.
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

    /// Returns the term, in which nothing may be unknown.
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
            RawKind::Op { op, sizes, ty, args } => {
                let sizes = op.entry().scheme.written().zip(sizes.iter().cloned()).collect();
                self.op(span, op, sizes, *ty, args, dom)?
            }
        })
    }

    /// A constant: a scalar leaf from `()`, and that after `bang` from another type.
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

    /// Infers an operator from its written sizes (each with its number among all sizes) and its written type.
    fn op(
        &mut self,
        span: Span,
        op: &Op,
        sizes: Vec<(usize, Size)>,
        ty: Option<ScalarType>,
        raw_args: &[Raw],
        dom: &Ty,
    ) -> Result<Inferred> {
        let (scheme, source) = (&op.entry().scheme, self.source);
        let wrong = |e: TypeError| Failure::from(bad(source, span, &e.0));
        if sizes.iter().any(|(i, k)| scheme.divides(*i) && k.as_constant() == Some(0)) {
            return Err(bad(source, span, "0 divides no length").into());
        }
        let mut parts = Solution::new(op, sizes, scheme.written_type().zip(ty.map(Ty::Scalar)));
        parts.takes(self.u, dom).map_err(wrong)?;
        let mut args: Vec<Option<Inferred>> = raw_args.iter().map(|_| None).collect();
        let mut open: Vec<usize> = (0..args.len()).collect();
        while let Some(i) = parts.next_arg(&open) {
            open.retain(|j| *j != i);
            let f = self.term(&raw_args[i], &parts.arg_dom(self.u, i).map_err(wrong)?)?;
            parts.arg_gives(self.u, i, &f.cod).map_err(wrong)?;
            args[i] = Some(f);
        }
        let cod = parts.cod(self.u).map_err(wrong)?;
        match (parts.parts(), args.into_iter().collect()) {
            (Some((sizes, tys)), Some(args)) => {
                Ok(Inferred { op: op.clone(), sizes, tys, args, span, cod })
            }
            _ => Err(bad(source, span, "its argument does not determine its type").into()),
        }
    }

    fn scalar_op(&mut self, span: Span, op: ScalarOp, dom: &Ty) -> Result<Inferred> {
        let arity = op.arity();
        let pattern = match arity {
            1 => RawPattern::Name("a".into()),
            2 => RawPattern::Pair(
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
                    ScalarOp::Cast(to) => *to,
                    ScalarOp::Select => types[1],
                    _ => op.result_of(types[0]).unwrap_or(types[0]),
                };
                let uniform = if *op == ScalarOp::Select { &types[1..] } else { &types[..] };
                if uniform.windows(2).any(|w| w[0] != w[1]) {
                    return err("operands of different types".to_owned());
                }
                // A cast in a term carries the type that it converts from; the node has the result type.
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
            RawScalarKind::Let(..) => {
                // Chains of definitions are long, so they are typed by iteration.
                let (outer, mut rest, mut depth) = (scope.len(), e, depth);
                let mut values = vec![];
                while let RawScalarKind::Let(name, a, b) = &rest.kind {
                    let (a, t) = self.scalar(a, scope, depth)?;
                    scope.push((name.clone(), SExpr::Var(depth, t.clone()), t));
                    values.push(Arc::new(a));
                    (rest, depth) = (&**b, depth + 1);
                }
                let (last, t) = self.scalar(rest, scope, depth)?;
                scope.truncate(outer);
                let wrap = |rest, a| SExpr::Let(a, Arc::new(rest));
                (values.into_iter().rev().fold(last, wrap), t)
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
