//! Fills open holes with their defaults, checks ranges, and builds the typed core.

use super::elab::Checker;
use super::infer::Ty;
use super::ir::{Fun as IrFun, Lit, Node, NodeKind};
use super::sizes::Divides;
use crate::diag::{Code, Diagnostic, Source, Span};
use crate::lang::size::{EXACT, Size};
use crate::lang::typed::{Expr, ExprKind, Fun, Literal, ScalarOp};
use crate::lang::types::{ScalarType, Type};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The state while a definition is converted to the typed core.
pub struct Finish<'c, 'a> {
    checker: &'c Checker<'a>,
    source: &'a Arc<Source>,
    /// Final names of the rigid sizes.
    iterates: BTreeMap<String, Size>,
    /// The errors found.
    pub diagnostics: Vec<Diagnostic>,
}

/// Returns whether an integer is in the range of the type.
fn fits(v: i128, ty: ScalarType) -> bool {
    let bits = ty.bits();
    match (ty.is_integer(), ty.is_signed()) {
        (false, _) => true,
        (true, true) => v >= -(1i128 << (bits - 1)) && v < 1i128 << (bits - 1),
        (true, false) => v >= 0 && v < 1i128 << bits,
    }
}

/// Returns the greatest or least value of a type.
fn extreme(ty: ScalarType, highest: bool) -> Literal {
    let bits = ty.bits();
    match (ty.is_float(), ty.is_signed(), highest) {
        (true, _, true) => Literal::Float(f64::INFINITY),
        (true, _, false) => Literal::Float(f64::NEG_INFINITY),
        (false, ..) if ty == ScalarType::Bool => Literal::Bool(highest),
        (false, true, true) => Literal::Int((1i128 << (bits - 1)) - 1),
        (false, true, false) => Literal::Int(-(1i128 << (bits - 1))),
        (false, false, true) => Literal::Int((1i128 << bits) - 1),
        (false, false, false) => Literal::Int(0),
    }
}

impl<'c, 'a> Finish<'c, 'a> {
    /// Returns the initial state for the result of a checker.
    pub fn new(checker: &'c Checker<'a>) -> Self {
        let rigid = checker.iterates.iter().enumerate();
        let iterates = rigid.map(|(i, name)| (name.clone(), Size::iter_var(i))).collect();
        Finish { checker, source: checker.source, iterates, diagnostics: vec![] }
    }

    fn error(&mut self, code: Code, message: String, span: Span) {
        self.diagnostics.push(Diagnostic::error(code, message).at(self.source, span, ""));
    }

    /// Converts a size to its final form.
    pub fn size(&mut self, size: &Size, span: Span) -> Size {
        let size = self.checker.infer.sizes.resolve(size);
        let size = size.substitute(&|v| self.iterates.get(v).cloned());
        if size.overflowed() {
            self.error(Code::SizeRange, "a size exceeds 64 bits".to_owned(), span);
        } else if size.as_constant().is_some_and(|c| c < 0) {
            self.error(Code::SizeRange, format!("a size is negative: {size}"), span);
        } else if size.variables().iter().any(|v| v.starts_with('?')) {
            let message = "nothing determines this size".to_owned();
            let d = Diagnostic::error(Code::Ambiguous, message).at(self.source, span, "");
            self.diagnostics.push(
                d.help("a size bound by a `def` must occur by itself in the type of a parameter, or the context must require the length: `(e : [8][8]f32)`"),
            );
        }
        size
    }

    /// Converts a type to its final form.
    pub fn ty(&mut self, ty: &Ty, span: Span) -> Type {
        match self.checker.infer.shallow(ty) {
            Ty::Scalar(s) => Type::Scalar(s),
            Ty::Meta(i) => match self.checker.infer.class(i).default() {
                Some(ty) => Type::Scalar(ty),
                None => {
                    let message = "nothing determines the type of this expression".to_owned();
                    let d = Diagnostic::error(Code::Ambiguous, message).at(self.source, span, "");
                    self.diagnostics.push(d.help("say which: `(e : f32)`"));
                    Type::Scalar(ScalarType::I32)
                }
            },
            Ty::Vector(w, t) => {
                let w = self.size(&w, span);
                match self.ty(&t, span) {
                    Type::Scalar(s) => Type::Vector(w, s),
                    other => other,
                }
            }
            Ty::Tuple(ts) => Type::Tuple(ts.iter().map(|t| self.ty(t, span)).collect()),
            Ty::Record(_, ts) => match &*ts {
                [t] => self.ty(t, span),
                ts => Type::Tuple(ts.iter().map(|t| self.ty(t, span)).collect()),
            },
            Ty::Array(n, t) => Type::Array(self.size(&n, span), Box::new(self.ty(&t, span))),
        }
    }

    /// Returns a type as text, with the names of records.
    pub fn shown(&mut self, ty: &Ty, span: Span) -> String {
        match self.checker.infer.shallow(ty) {
            Ty::Tuple(ts) => {
                let parts: Vec<_> = ts.iter().map(|t| self.shown(t, span)).collect();
                format!("({})", parts.join(", "))
            }
            Ty::Record(names, ts) => {
                let parts = names.iter().zip(&*ts);
                let parts: Vec<_> =
                    parts.map(|(name, t)| format!("{name}: {}", self.shown(t, span))).collect();
                format!("{{{}}}", parts.join(", "))
            }
            Ty::Array(n, t) => format!("[{}]{}", self.size(&n, span), self.shown(&t, span)),
            other => self.ty(&other, span).to_string(),
        }
    }

    fn boxed(&mut self, node: &Node) -> Box<Expr> {
        Box::new(self.expr(node))
    }

    fn fun(&mut self, fun: &IrFun) -> Fun {
        let span = fun.body.span;
        let params = fun.params.iter().map(|(v, t)| (*v, self.ty(t, span))).collect();
        Fun { params, body: self.boxed(&fun.body) }
    }

    /// Converts an expression to its final form.
    pub fn expr(&mut self, node: &Node) -> Expr {
        let span = node.span;
        let ty = self.ty(&node.ty, span);
        let kind = match &node.kind {
            NodeKind::Hole => ExprKind::Lit(Literal::Int(0)),
            NodeKind::Lit(lit) => return self.literal(*lit, ty, span),
            NodeKind::Var(v) => ExprKind::Var(*v),
            NodeKind::Size(s) => ExprKind::Size(self.size(s, span)),
            NodeKind::Tuple(parts) => ExprKind::Tuple(parts.iter().map(|p| self.expr(p)).collect()),
            NodeKind::Proj(e, i) => ExprKind::Proj(self.boxed(e), *i),
            NodeKind::Index(a, i) => ExprKind::Index(self.boxed(a), self.boxed(i)),
            NodeKind::Scalar(op, args) => {
                ExprKind::Scalar(*op, args.iter().map(|a| self.expr(a)).collect())
            }
            NodeKind::Broadcast(e) => match &ty {
                Type::Vector(_, s) => ExprKind::Scalar(ScalarOp::Cast(*s), vec![self.expr(e)]),
                Type::Scalar(_) | Type::Tuple(_) | Type::Array(..) => return self.expr(e),
            },
            NodeKind::If(c, a, b) => ExprKind::If(self.boxed(c), self.boxed(a), self.boxed(b)),
            NodeKind::Let(v, value, body) => ExprKind::Let(*v, self.boxed(value), self.boxed(body)),
            NodeKind::LoopFor(acc, init, index, bound, body) => ExprKind::LoopFor {
                acc: *acc,
                init: self.boxed(init),
                index: *index,
                bound: self.boxed(bound),
                body: self.boxed(body),
            },
            NodeKind::LoopWhile(acc, init, cond, body) => ExprKind::LoopWhile {
                acc: *acc,
                init: self.boxed(init),
                cond: self.boxed(cond),
                body: self.boxed(body),
            },
            NodeKind::Prim { prim, funs, sizes, args } => ExprKind::Prim {
                prim: *prim,
                funs: funs.iter().map(|f| self.fun(f)).collect(),
                sizes: sizes.iter().map(|s| self.size(s, span)).collect(),
                args: args.iter().map(|a| self.expr(a)).collect(),
            },
        };
        Expr { kind, ty, span }
    }

    fn literal(&mut self, lit: Lit, ty: Type, span: Span) -> Expr {
        let (scalar, vector) = match &ty {
            Type::Scalar(s) => (*s, false),
            Type::Vector(_, s) => (*s, true),
            Type::Tuple(_) | Type::Array(..) => (ScalarType::I32, false),
        };
        let literal = match lit {
            Lit::Bool(b) => Literal::Bool(b),
            Lit::Float(v) => Literal::Float(v),
            Lit::Int(v) if scalar.is_float() => Literal::Float(v as f64),
            Lit::Int(v) => {
                if !fits(v, scalar) {
                    self.error(
                        Code::TypeMismatch,
                        format!("{v} is not a value of type {scalar}"),
                        span,
                    );
                }
                Literal::Int(v)
            }
            Lit::Extreme { highest } => extreme(scalar, highest),
        };
        let inner = Expr { kind: ExprKind::Lit(literal), ty: Type::Scalar(scalar), span };
        if vector {
            Expr { kind: ExprKind::Scalar(ScalarOp::Cast(scalar), vec![inner]), ty, span }
        } else {
            inner
        }
    }

    /// Returns the conditions on the sizes, without those that always hold.
    pub fn divides(&mut self, demands: &[Divides]) -> Vec<(Size, Size, Span)> {
        let mut out: Vec<(Size, Size, Span)> = vec![];
        for demand in demands {
            let mut dividend = self.size(&demand.dividend, demand.span);
            let divisor = self.size(&demand.divisor, demand.span);
            let whole = dividend.without_constant();
            // `n - 2` is even if `n` is.
            if !whole.is_zero() && dividend.sub(&whole).is_multiple_of(&divisor) {
                dividend = whole;
            }
            if divisor.is_zero() {
                self.error(Code::NotDivisible, "a size is divided by zero".to_owned(), demand.span);
            } else if let (Some(a), Some(b)) = (dividend.as_constant(), divisor.as_constant()) {
                if a % b != 0 {
                    let message = format!("{b} does not divide {a}");
                    let d = Diagnostic::error(Code::NotDivisible, message);
                    let d = d.at(self.source, demand.span, format!("of a length of {a}"));
                    let d = d.help("choose a factor of the length, or pad the array first");
                    self.diagnostics.push(d.help(EXACT));
                }
            } else if !dividend.is_multiple_of(&divisor)
                && !out.iter().any(|(a, b, _)| *b == divisor && a.sub(&dividend).is_multiple_of(b))
            {
                out.push((dividend, divisor, demand.span));
            }
        }
        out
    }
}
