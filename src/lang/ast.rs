//! The syntax tree, as written: nothing resolved, nothing desugared, no comments.

use super::lexer::Number;
use super::typed::ScalarOp;
use super::types::ScalarType;
use crate::diag::Span;

/// A name with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Name {
    /// As written.
    pub text: String,
    /// Where.
    pub span: Span,
}

/// A whole file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct File {
    /// In order.
    pub decls: Vec<Decl>,
}

/// `entry` or `def`.
#[derive(Clone, Debug, PartialEq)]
pub struct Decl {
    /// Whether it is an `entry`.
    pub entry: bool,
    /// The comment directly above it, without the dashes.
    pub doc: String,
    /// Its name.
    pub name: Name,
    /// The sizes it binds: `[n]`.
    pub binders: Vec<Name>,
    /// Its parameters.
    pub params: Vec<Pat>,
    /// The declared result.
    pub result: Option<TypeExpr>,
    /// What stands after `=`.
    pub body: Expr,
}

/// What binds names.
#[derive(Clone, Debug, PartialEq)]
pub struct Pat {
    /// What it is.
    pub kind: PatKind,
    /// Where.
    pub span: Span,
}

/// Kinds of binding patterns.
#[derive(Clone, Debug, PartialEq)]
pub enum PatKind {
    /// A name.
    Name(String),
    /// `_`.
    Wild,
    /// `(p, q)`.
    Tuple(Vec<Pat>),
    /// `(p)`.
    Paren(Box<Pat>),
    /// `p : t`, inside parentheses.
    Typed(Box<Pat>, TypeExpr),
}

/// A type as written.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeExpr {
    /// What it is.
    pub kind: TypeKind,
    /// Where.
    pub span: Span,
}

/// Kinds of types.
#[derive(Clone, Debug, PartialEq)]
pub enum TypeKind {
    /// `f32`.
    Scalar(ScalarType),
    /// `f32x4`.
    Vector(ScalarType, i64),
    /// `(t, u)`.
    Tuple(Vec<TypeExpr>),
    /// `(t)`.
    Paren(Box<TypeExpr>),
    /// `[n]t`.
    Array(Box<Expr>, Box<TypeExpr>),
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Where.
    pub span: Span,
    /// The height of the tree below, which the parser keeps within its limit.
    pub depth: usize,
}

/// Kinds of expressions.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A name, or a qualified one such as `f32.i32`.
    Name(String),
    /// A number.
    Number(Number, Option<ScalarType>),
    /// `true` or `false`.
    Bool(bool),
    /// `(e, f)`.
    Tuple(Vec<Expr>),
    /// `(e)`.
    Paren(Box<Expr>),
    /// `f x y`.
    Apply(Box<Expr>, Vec<Expr>),
    /// `\x y -> e`.
    Lambda(Vec<Pat>, Box<Expr>),
    /// `let p = e in e`; with parameters, `let f x = e in e`.
    Let {
        /// What is bound.
        pat: Pat,
        /// Parameters, if it is a local function.
        params: Vec<Pat>,
        /// The declared type (of the result, for a function).
        ty: Option<TypeExpr>,
        /// Its value.
        value: Box<Expr>,
        /// Where it is known.
        body: Box<Expr>,
    },
    /// `if c then a else b`.
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `loop (p = e) ... do e`.
    Loop {
        /// The accumulator.
        pat: Pat,
        /// Its first value.
        init: Box<Expr>,
        /// How long.
        form: LoopForm,
        /// The next accumulator.
        body: Box<Expr>,
    },
    /// `a[i, j]`.
    Index(Box<Expr>, Vec<Expr>),
    /// `t.0`.
    Proj(Box<Expr>, usize),
    /// `-e` or `!e`.
    Unary(ScalarOp, Box<Expr>),
    /// `a + b`.
    Binary(ScalarOp, Box<Expr>, Box<Expr>),
    /// `(+)`.
    Section(ScalarOp),
    /// `(e +)`.
    SectionLeft(Box<Expr>, ScalarOp),
    /// `(+ e)`.
    SectionRight(ScalarOp, Box<Expr>),
    /// `x |> f`.
    Pipe(Box<Expr>, Box<Expr>),
    /// `f >-> g` (or `g <-< f`, where the second is written first): the first to be applied, then the second.
    Compose {
        /// Applied first.
        first: Box<Expr>,
        /// Applied to its result.
        second: Box<Expr>,
    },
    /// `e : t`.
    Ascribe(Box<Expr>, TypeExpr),
}

/// What ends a loop.
#[derive(Clone, Debug, PartialEq)]
pub enum LoopForm {
    /// `for i < n`.
    For(Name, Box<Expr>),
    /// `while c`.
    While(Box<Expr>),
}

/// The operator of that spelling that takes two operands, and how tightly it binds.
pub fn binary_operator(text: &str) -> Option<(ScalarOp, u8)> {
    Some(match text {
        "||" => (ScalarOp::Or, 3),
        "&&" => (ScalarOp::And, 4),
        "==" => (ScalarOp::Eq, 5),
        "!=" => (ScalarOp::Ne, 5),
        "<" => (ScalarOp::Lt, 5),
        "<=" => (ScalarOp::Le, 5),
        ">" => (ScalarOp::Gt, 5),
        ">=" => (ScalarOp::Ge, 5),
        "+" => (ScalarOp::Add, 6),
        "-" => (ScalarOp::Sub, 6),
        "*" => (ScalarOp::Mul, 7),
        "/" => (ScalarOp::Div, 7),
        "%" => (ScalarOp::Rem, 7),
        "**" => (ScalarOp::Pow, 8),
        _ => return None,
    })
}
