//! The syntax tree as written: without resolved names, desugaring or comments.

use super::lexer::Number;
use super::scalar_op::{self, ScalarOp};
use super::types::ScalarType;
use crate::diag::Span;
use std::sync::Arc;

/// A name with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Name {
    /// The name as written.
    pub text: String,
    /// Its place.
    pub span: Span,
}

/// A whole file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct File {
    /// The files that it imports.
    pub imports: Vec<Import>,
    /// The declarations in order.
    pub decls: Vec<Decl>,
    /// The names of types in order.
    pub types: Vec<Arc<TypeDecl>>,
    /// What stands behind `gen:` in its comments.
    pub generators: Vec<Name>,
}

impl File {
    /// Returns the `gen:` lines of an entry: those directly above it, or all of the file if it is the only entry.
    pub fn generators_of<'a>(&'a self, decl: &'a Decl) -> &'a [Name] {
        let alone = self.decls.iter().filter(|d| d.entry).count() == 1;
        if alone { &self.generators } else { &decl.generators }
    }
}

/// `import "path"`.
#[derive(Clone, Debug, PartialEq)]
pub struct Import {
    /// The path as written.
    pub path: String,
    /// Its place.
    pub span: Span,
}

/// `type t [n] = ...`.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeDecl {
    /// Its name.
    pub name: Name,
    /// Its size parameters.
    pub params: Vec<Name>,
    /// The type that it stands for.
    pub body: TypeExpr,
    /// The number of components of the type, those of other named types in it included.
    pub components: usize,
    /// The height of the type's tree, with the same other types.
    pub depth: usize,
}

/// `entry`, `def` or, with the same meaning, `let`.
#[derive(Clone, Debug, PartialEq)]
pub struct Decl {
    /// Whether it is an `entry`.
    pub entry: bool,
    /// The comment directly above it, without the dashes.
    pub doc: String,
    /// What stands behind `gen:` in that comment.
    pub generators: Vec<Name>,
    /// Its name.
    pub name: Name,
    /// The sizes and types that it binds.
    pub binders: Binders,
    /// Its parameters.
    pub params: Vec<Pat>,
    /// The declared result type.
    pub result: Option<TypeExpr>,
    /// The expression after `=`.
    pub body: Expr,
}

/// What a definition binds besides its parameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Binders {
    /// Sizes that stand behind its name: `[n]`.
    pub named: Vec<Name>,
    /// Sizes that `[]` in the types of its parameters stands for, and parameters that its types mention as sizes.
    pub unnamed: Vec<Name>,
    /// Types that stand behind its name: `'t`, without the quote.
    pub types: Vec<Name>,
}

impl Binders {
    /// Returns all sizes.
    pub fn sizes(&self) -> impl Iterator<Item = &Name> {
        self.named.iter().chain(&self.unnamed)
    }
}

/// A pattern that binds names.
#[derive(Clone, Debug, PartialEq)]
pub struct Pat {
    /// The kind of pattern.
    pub kind: PatKind,
    /// Its place.
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
    /// `{x = p, y}`.
    Record(Vec<(Name, Option<Pat>)>),
    /// `(p)`.
    Paren(Box<Pat>),
    /// `p : t`, inside parentheses.
    Typed(Box<Pat>, TypeExpr),
}

/// A type as written.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeExpr {
    /// The kind of type.
    pub kind: TypeKind,
    /// Its place.
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
    /// `[n]t`. Without a size, `[]t`, the expression is [`UNKNOWN`] or a name of [`Decl::unnamed`], and takes no space.
    Array(Box<Expr>, Box<TypeExpr>),
    /// `{x: t, y: u}`.
    Record(Vec<(Name, TypeExpr)>),
    /// A named type with its sizes.
    Named(Arc<TypeDecl>, Vec<Expr>),
    /// A type parameter.
    Param(String),
    /// `*t`. The mark has no effect.
    Unique(Box<TypeExpr>),
    /// `t -> u`.
    Function(Box<TypeExpr>, Box<TypeExpr>),
}

/// The name of a size that is inferred.
pub const UNKNOWN: &str = "_";

impl TypeExpr {
    /// Returns whether this is the type of a function.
    pub fn is_function(&self) -> bool {
        match &self.kind {
            TypeKind::Function(..) => true,
            TypeKind::Paren(t) => t.is_function(),
            _ => false,
        }
    }
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// The kind of expression.
    pub kind: ExprKind,
    /// Its place.
    pub span: Span,
    /// Height of its tree. The parser limits it.
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
    /// `\x y -> e`; with the type of the result, `\x y : t -> e`.
    Lambda(Vec<Pat>, Option<TypeExpr>, Box<Expr>),
    /// `let p = e in e`; with parameters, `let f x = e in e`.
    Let {
        /// The pattern that is bound.
        pat: Pat,
        /// Sizes and types that a local function binds.
        binders: Box<Binders>,
        /// Parameters, if it is a local function.
        params: Vec<Pat>,
        /// The declared type (of the result, for a function).
        ty: Option<TypeExpr>,
        /// The value or function body.
        value: Box<Expr>,
        /// The expression in which the names are known.
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
        /// How the loop ends.
        form: LoopForm,
        /// The next accumulator.
        body: Box<Expr>,
    },
    /// `a[i, j]`, `a[1:n, :]`.
    Index(Box<Expr>, Vec<Subscript>),
    /// `a with [i, j] <- e`.
    With(Box<Expr>, Vec<Subscript>, Box<Expr>),
    /// `[e, f]`.
    Array(Vec<Expr>),
    /// `t.0`.
    Proj(Box<Expr>, usize),
    /// `{x = e, y}`.
    Record(Vec<(Name, Option<Expr>)>),
    /// `p.x`.
    Field(Box<Expr>, String),
    /// `p with x.y = e`.
    Update(Box<Expr>, Vec<Name>, Box<Expr>),
    /// ``a `f` b``.
    Infix(Box<Expr>, Name, Box<Expr>),
    /// `-e`, `!e` or `~e`.
    Unary(ScalarOp, Box<Expr>),
    /// `a + b`.
    Binary(Operator, Box<Expr>, Box<Expr>),
    /// `(+)`.
    Section(Operator),
    /// `(e +)`.
    SectionLeft(Box<Expr>, Operator),
    /// `(+ e)`.
    SectionRight(Operator, Box<Expr>),
    /// `(.0.x)`.
    SectionPart(Vec<Part>),
    /// `x |> f`, or `f <| x` with the function written first.
    Pipe(Box<Expr>, Box<Expr>),
    /// `f >-> g`, or `g <-< f` with the second function written first.
    Compose {
        /// The function applied first.
        first: Box<Expr>,
        /// The function applied to its result.
        second: Box<Expr>,
    },
    /// `e : t`.
    Ascribe(Box<Expr>, TypeExpr),
}

/// A part of a tuple or record.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// `.0`.
    Component(usize),
    /// `.x`.
    Field(String),
}

/// What is chosen along one dimension of an array.
#[derive(Clone, Debug, PartialEq)]
pub enum Subscript {
    /// An index.
    At(Expr),
    /// A part.
    Slice(Box<Slice>),
}

/// `from:to:step`. Each may be left out.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice {
    /// The first index.
    pub from: Option<Expr>,
    /// The index before which the part ends.
    pub to: Option<Expr>,
    /// The distance from each index to the next.
    pub step: Option<Expr>,
    /// Whether the second colon is written.
    pub stepped: bool,
    /// Its place.
    pub span: Span,
}

impl Subscript {
    /// Returns the expressions in order.
    pub fn parts(&self) -> impl Iterator<Item = &Expr> {
        let (index, slice) = match self {
            Subscript::At(index) => (Some(index), None),
            Subscript::Slice(slice) => (None, Some(&**slice)),
        };
        index.into_iter().chain(slice.into_iter().flat_map(|s| [&s.from, &s.to, &s.step]).flatten())
    }
}

/// The condition that ends a loop.
#[derive(Clone, Debug, PartialEq)]
pub enum LoopForm {
    /// `for i < n`.
    For(Name, Box<Expr>),
    /// `for x in xs`.
    In(Pat, Box<Expr>),
    /// `while c`.
    While(Box<Expr>),
}

/// A binary operator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operator {
    /// An operation on scalars.
    Scalar(ScalarOp),
    /// Another spelling of this function of the language.
    Function(&'static str),
}

/// Returns the binary operator with this spelling, and its precedence: above those of `|>` and of compositions.
pub fn binary_operator(text: &str) -> Option<(Operator, u8)> {
    let (function, like) = match text {
        "++" => ("concat", "+"),
        ">>>" => ("lshr", ">>"),
        "//" => ("//", "/"),
        "%%" => ("%%", "%"),
        _ => return scalar_op::infix(text).map(|(op, level)| (Operator::Scalar(op), level + 2)),
    };
    let (_, level) = scalar_op::infix(like)?;
    Some((Operator::Function(function), level + 2))
}
