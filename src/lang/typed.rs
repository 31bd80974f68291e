//! The typed core of a program: what the checker gives and the interpreter and the elaboration take.
//!
//! Names are resolved, `def`s inlined, operators and patterns saturated (a partially applied
//! `map abs` has become `\x -> map abs x`), `map2 f xs ys` is [`Prim::Map`] with a two-parameter
//! function and two arrays, pipes and compositions are gone. Every expression has a type whose
//! sizes mention only the entry's size parameters (and, inside an `iterate`, its own size variable).

use super::size::Size;
use super::types::{ScalarType, Type};
use crate::diag::Span;

/// A variable, unique within an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VarId(pub u32);

/// One parameter of an entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// As written.
    pub name: String,
    /// The variable the body mentions.
    pub var: VarId,
    /// Its type.
    pub ty: Type,
    /// Where it is declared.
    pub span: Span,
}

/// One `entry`, checked and inlined.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// The comment directly above it, without the dashes.
    pub doc: String,
    /// Size parameters in order of declaration.
    pub sizes: Vec<String>,
    /// Value parameters in order.
    pub params: Vec<Param>,
    /// What must hold of the sizes, found while checking: `.0` is a multiple of `.1`, because of the place `.2`.
    pub divides: Vec<(Size, Size, Span)>,
    /// The body.
    pub body: Expr,
    /// Names of variables, for printing, indexed by [`VarId`].
    pub names: Vec<String>,
    /// Where the entry's name stands.
    pub span: Span,
}

impl Entry {
    /// Where the first expression or parameter with elements of this type stands.
    pub fn mentions(&self, scalar: ScalarType) -> Option<Span> {
        let param = self.params.iter().find(|p| p.ty.mentions(scalar)).map(|p| p.span);
        param.or_else(|| self.body.mentions(scalar))
    }
}

impl Expr {
    fn mentions(&self, scalar: ScalarType) -> Option<Span> {
        let within = |es: &[&Expr]| es.iter().find_map(|e| e.mentions(scalar));
        let inside = match &self.kind {
            ExprKind::Lit(_) | ExprKind::Var(_) | ExprKind::Size(_) => None,
            ExprKind::Tuple(es) | ExprKind::Scalar(_, es) => {
                es.iter().find_map(|e| e.mentions(scalar))
            }
            ExprKind::Proj(e, _) => within(&[e]),
            ExprKind::Index(a, b) | ExprKind::Let(_, a, b) => within(&[a, b]),
            ExprKind::If(a, b, c) => within(&[a, b, c]),
            ExprKind::LoopFor { init, bound, body, .. } => within(&[init, bound, body]),
            ExprKind::LoopWhile { init, cond, body, .. } => within(&[init, cond, body]),
            ExprKind::Prim { funs, args, .. } => {
                let functions = funs.iter().find_map(|f| f.body.mentions(scalar));
                functions.or_else(|| args.iter().find_map(|e| e.mentions(scalar)))
            }
        };
        inside.or_else(|| self.ty.mentions(scalar).then_some(self.span))
    }
}

/// A function: parameters and a body. It may mention variables from outside.
#[derive(Clone, Debug, PartialEq)]
pub struct Fun {
    /// Parameters with their types.
    pub params: Vec<(VarId, Type)>,
    /// Result.
    pub body: Box<Expr>,
}

/// An expression with its type and place.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Its type.
    pub ty: Type,
    /// Where it stands in the source (inlined bodies keep the place in their `def`).
    pub span: Span,
}

/// A literal. Floats may be infinite (`f32.highest`). Floats are kept as `f64`, integers as `i128`, and rounded to the expression's type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Literal {
    /// For float types.
    Float(f64),
    /// For integer types; fits the type (the checker sees to it).
    Int(i128),
    /// For `bool`.
    Bool(bool),
}

/// What an expression is.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A literal of the expression's (scalar) type.
    Lit(Literal),
    /// A variable.
    Var(VarId),
    /// A size as a value of the expression's (integer) type.
    Size(Size),
    /// A tuple of two or more.
    Tuple(Vec<Expr>),
    /// `t.i`.
    Proj(Box<Expr>, usize),
    /// `a[i]`, one index; the index is of any integer type.
    Index(Box<Expr>, Box<Expr>),
    /// A scalar operation on scalars (or component-wise on vectors under `vectorize`).
    Scalar(ScalarOp, Vec<Expr>),
    /// `if c then a else b`, lazy.
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `let v = e in body`; tuple patterns have become projections.
    Let(VarId, Box<Expr>, Box<Expr>),
    /// `loop (acc = init) for i < bound do body`; `i` has the type of the bound.
    LoopFor {
        /// Accumulator.
        acc: VarId,
        /// Its first value.
        init: Box<Expr>,
        /// The counter, from zero.
        index: VarId,
        /// Excluded upper bound.
        bound: Box<Expr>,
        /// The next accumulator.
        body: Box<Expr>,
    },
    /// `loop (acc = init) while cond do body`.
    LoopWhile {
        /// Accumulator.
        acc: VarId,
        /// Its first value.
        init: Box<Expr>,
        /// Mentions `acc`.
        cond: Box<Expr>,
        /// The next accumulator.
        body: Box<Expr>,
    },
    /// A pattern applied to all its arguments.
    Prim {
        /// Which.
        prim: Prim,
        /// Its function arguments, in order.
        funs: Vec<Fun>,
        /// Its size arguments, in order.
        sizes: Vec<Size>,
        /// Its value arguments, in order.
        args: Vec<Expr>,
    },
}

/// Scalar operations. All are component-wise on vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ScalarOp {
    /// `a + b`; integers wrap.
    Add,
    /// `a - b`.
    Sub,
    /// `a * b`.
    Mul,
    /// `a / b`; integers truncate towards zero; by zero is an error in checked mode.
    Div,
    /// `a % b`; sign of the dividend for integers, `fmod` for floats.
    Rem,
    /// `a ** b`; `pow` for floats, wrapping power for integers (the exponent not negative).
    Pow,
    /// `a == b`, gives bool.
    Eq,
    /// `a != b`.
    Ne,
    /// `a < b`.
    Lt,
    /// `a <= b`.
    Le,
    /// `a > b`.
    Gt,
    /// `a >= b`.
    Ge,
    /// `a && b`, lazy in `b`.
    And,
    /// `a || b`, lazy in `b`.
    Or,
    /// `!a`.
    Not,
    /// `-a`.
    Neg,
    /// `abs a`.
    Abs,
    /// `min a b`.
    Min,
    /// `max a b`.
    Max,
    /// `sqrt a`.
    Sqrt,
    /// `rsqrt a`.
    Rsqrt,
    /// `exp a`.
    Exp,
    /// `log a`.
    Log,
    /// `sin a`.
    Sin,
    /// `cos a`.
    Cos,
    /// `tan a`.
    Tan,
    /// `atan a`.
    Atan,
    /// `atan2 a b`.
    Atan2,
    /// `floor a`.
    Floor,
    /// `ceil a`.
    Ceil,
    /// `round a`, half away from zero.
    Round,
    /// `fma a b c`.
    Fma,
    /// `sign a`: -1, 0 or 1 in the type of `a`.
    Sign,
    /// `clamp x lo hi`.
    Clamp,
    /// `select c a b`: `a` where `c`, else `b`; strict in both.
    Select,
    /// `T.S a`: conversion to the expression's type. With a scalar operand and a vector result, the
    /// operand (of the vector's element type, which is `T`) stands in every component.
    Cast(ScalarType),
}

/// How `pad` fills what lies outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PadMode {
    /// The nearest element.
    Clamp,
    /// From the other end.
    Wrap,
    /// Mirrored at the edge; the edge element is repeated.
    Mirror,
    /// A value: one more value argument.
    Constant,
}

/// Which patterns; the comment gives `funs; sizes; args`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Prim {
    /// `f; ; xs...`: as many arrays as `f` has parameters.
    Map,
    /// `; ; xs...`: two or more arrays to one array of tuples.
    Zip,
    /// `; ; xs`: array of tuples to tuple of arrays.
    Unzip,
    /// `op; ; z, xs`. `op` has two parameters.
    Reduce,
    /// `op; ; z, xs`, also commutative.
    ReduceComm,
    /// `op; m; z, xs`.
    ReducePart,
    /// `op; ; z, xs`, inclusive.
    Scan,
    /// `; k; xs`.
    Split,
    /// `; ; xss`.
    Join,
    /// `; ; xss`.
    Transpose,
    /// `f; k; xs`: `f` applied `k` times. If `f` keeps its type, its parameter has the type of `xs`; if it
    /// changes the outermost length by a fixed factor, that length of its parameter is a size variable. `f`'s size variable is `Iterate`'s own: see [`super::size::Size::iter_var`].
    Iterate,
    /// `; ; xs`.
    Reorder,
    /// `; w, s; xs`.
    Slide,
    /// `; l, r; xs` (and the constant as a second argument).
    Pad(PadMode),
    /// `; ; xs, is`.
    Gather,
    /// `; ; dest, is, vs`.
    Scatter,
    /// `op; m; z, is, vs`.
    Histogram,
    /// `; n;`: element type is the result's.
    Iota,
    /// `; n; x`.
    Replicate,
    /// `f; n;`: `f` has one integer parameter.
    Generate,
    /// `; ; xs, ys`.
    Concat,
    /// `; k; xs`.
    Take,
    /// `; k; xs`.
    Drop,
    /// `; ; xs`.
    Reverse,
    /// `; k; xs`: result `i` is `xs[(i + k) % n]`.
    Rotate,
    /// `f; ; xs`: dimension 0, 1 or 2.
    MapWrg(u8),
    /// `f; ; xs`.
    MapLcl(u8),
    /// `f; ; xs`.
    MapGlb(u8),
    /// `f; ; xs`.
    MapSeq,
    /// `f; ; xs`.
    MapUnroll,
    /// `f; ; xs`.
    MapWarp,
    /// `f; ; xs`.
    MapLane,
    /// `op; ; z, xs`: `op : acc -> a -> acc`, from the left.
    ReduceSeq,
    /// As [`Prim::ReduceSeq`], unrolled.
    ReduceUnroll,
    /// `op; ; z, xs`, inclusive.
    ScanSeq,
    /// As [`Prim::Iterate`].
    IterateSeq,
    /// `f; ; x`: `f x`, the result in global memory.
    ToGlobal,
    /// `f; ; x`.
    ToLocal,
    /// `f; ; x`.
    ToPrivate,
    /// `; s; xs`: `y[j] = x[j / m + s * (j % m)]` with `m = n / s`.
    ReorderStride,
    /// `; w; xs`: `[w*m]a -> [m](a x w)`, `a` scalar or tuple of scalars.
    AsVector,
    /// `; ; xs`.
    AsScalar,
    /// `f; w; x...`: as many vectors as `f` has parameters; component-wise `f` on vectors. `f`'s parameters have the scalar types.
    Vectorize,
}
