//! Terms as parsed, before type inference.

use crate::calculus::scalar::Lit;
use crate::calculus::size::Size;
use crate::calculus::term::Op;
use crate::diag::Span;
use crate::lang::typed::ScalarOp;
use crate::lang::types::ScalarType;

/// A term as written.
#[derive(Clone, Debug, PartialEq)]
pub struct Raw {
    /// The kind of term.
    pub kind: RawKind,
    /// Its place.
    pub span: Span,
}

/// The kinds of terms as written.
#[derive(Clone, Debug, PartialEq)]
pub enum RawKind {
    /// An operator with its written sizes, type and function arguments.
    Op { op: Op, sizes: Vec<Size>, ty: Option<ScalarType>, args: Vec<Raw> },
    /// A chain; the factor that is applied last comes first.
    Compose(Vec<Raw>),
    /// An input, or a variable of a rule.
    Name(String),
    /// A literal: a constant function.
    Lit(Lit),
    /// `(+)`, `abs`.
    ScalarOp(ScalarOp),
    /// `\pattern -> body`.
    Lambda(RawPattern, RawScalar),
}

/// The parameter of a lambda.
#[derive(Clone, Debug, PartialEq)]
pub enum RawPattern {
    /// Not used.
    Ignore,
    /// The unit.
    Unit,
    /// One name.
    Name(String),
    /// Two components.
    Pair(Box<RawPattern>, Box<RawPattern>),
}

/// A scalar expression as written, with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct RawScalar {
    /// The kind of expression.
    pub kind: RawScalarKind,
    /// Its place.
    pub span: Span,
}

/// The kinds of scalar expressions as written.
#[derive(Clone, Debug, PartialEq)]
pub enum RawScalarKind {
    /// A bound name or an input (with its component).
    Name(String, usize),
    /// A literal.
    Lit(Lit),
    /// `sizeOf n T`.
    Size(Size, ScalarType),
    /// `e.0`, `e.1`.
    Proj(Box<RawScalar>, bool),
    /// An operation.
    Op(ScalarOp, Vec<RawScalar>),
    /// `if c then a else b`.
    If(Box<RawScalar>, Box<RawScalar>, Box<RawScalar>),
    /// `(a, b)`.
    Pair(Box<RawScalar>, Box<RawScalar>),
    /// `let x = a in b`.
    Let(String, Box<RawScalar>, Box<RawScalar>),
    /// `loop (acc = init) for i < bound do body`: acc, init, i, bound, body.
    For(String, Box<RawScalar>, String, Box<RawScalar>, Box<RawScalar>),
    /// `loop (acc = init) while cond do body`.
    While(String, Box<RawScalar>, Box<RawScalar>, Box<RawScalar>),
}

impl Raw {
    /// Returns the term with each size replaced.
    #[must_use]
    pub fn with_sizes(&self, value: &dyn Fn(&Size) -> Size) -> Raw {
        let all = |terms: &[Raw]| terms.iter().map(|t| t.with_sizes(value)).collect();
        let kind = match &self.kind {
            RawKind::Op { op, sizes, ty, args } => RawKind::Op {
                op: op.clone(),
                sizes: sizes.iter().map(value).collect(),
                ty: *ty,
                args: all(args),
            },
            RawKind::Compose(parts) => RawKind::Compose(all(parts)),
            RawKind::Lambda(pattern, body) => {
                RawKind::Lambda(pattern.clone(), body.with_sizes(value))
            }
            RawKind::Name(_) | RawKind::Lit(_) | RawKind::ScalarOp(_) => self.kind.clone(),
        };
        Raw { kind, span: self.span }
    }
}

impl RawScalar {
    fn with_sizes(&self, value: &dyn Fn(&Size) -> Size) -> RawScalar {
        use RawScalarKind as K;
        let go = |e: &RawScalar| Box::new(e.with_sizes(value));
        let kind = match &self.kind {
            K::Name(..) | K::Lit(_) => self.kind.clone(),
            K::Size(s, t) => K::Size(value(s), *t),
            K::Proj(e, second) => K::Proj(go(e), *second),
            K::Op(op, es) => K::Op(*op, es.iter().map(|e| e.with_sizes(value)).collect()),
            K::If(c, a, b) => K::If(go(c), go(a), go(b)),
            K::Pair(a, b) => K::Pair(go(a), go(b)),
            K::Let(name, a, b) => K::Let(name.clone(), go(a), go(b)),
            K::For(acc, init, i, bound, body) => {
                K::For(acc.clone(), go(init), i.clone(), go(bound), go(body))
            }
            K::While(acc, init, cond, body) => K::While(acc.clone(), go(init), go(cond), go(body)),
        };
        RawScalar { kind, span: self.span }
    }
}
