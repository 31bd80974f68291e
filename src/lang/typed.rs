//! The typed core of a program: the checker's output, and the input of the interpreter and the elaboration.
//!
//! Names are resolved, `def`s inlined, operators and patterns saturated (a partially applied `map abs` has become
//! `\x -> map abs x`). `map2 f xs ys` is [`Prim::Map`] with a two-parameter function and two arrays. Pipes and
//! compositions are gone. Every expression has a type whose sizes mention only the entry's size parameters (and,
//! inside an `iterate`, its own size variable).

pub use super::scalar_op::ScalarOp;
use super::size::Size;
use super::types::{ScalarType, Type};
use crate::diag::Span;

/// A variable, unique within an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VarId(pub u32);

/// A parameter of an entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// The name as written.
    pub name: String,
    /// The variable that stands for it in the body.
    pub var: VarId,
    /// Its type.
    pub ty: Type,
    /// The names of its components, if there are records in its type: `x`, `p.x`, `0.x`.
    pub labels: Vec<String>,
    /// Place of its declaration.
    pub span: Span,
}

impl Param {
    /// Returns the number of the component with this name, which is that number in digits or the path to a field.
    pub fn component(&self, name: &str) -> Option<usize> {
        self.labels.iter().position(|l| l == name).or_else(|| name.parse().ok())
    }

    /// Returns the name of a component.
    pub fn label(&self, component: usize) -> String {
        self.labels.get(component).cloned().unwrap_or_else(|| component.to_string())
    }
}

/// An `entry`, checked and inlined.
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
    /// The sizes that stand among the parameters, as `(n: i64)`, each with the number of value parameters before it.
    pub size_params: Vec<(usize, String)>,
    /// The parameters, with the sizes among them, and the result, which has no name; each with its type as text, with the names of
    /// fields.
    pub shown: Vec<(String, String)>,
    /// Conditions on the sizes, found while checking: `.0` must be a multiple of `.1`, as required at the place
    /// `.2`.
    pub divides: Vec<(Size, Size, Span)>,
    /// The body.
    pub body: Expr,
    /// Names of variables, for printing, indexed by [`VarId`].
    pub names: Vec<String>,
    /// Place of the entry's name.
    pub span: Span,
}

impl Entry {
    /// Returns a parameter's type as text, with the names of fields.
    pub fn shown_type(&self, param: &Param) -> String {
        let shown = self.shown.iter().find(|(name, _)| *name == param.name);
        shown.map_or_else(|| param.ty.to_string(), |(_, ty)| ty.clone())
    }

    /// Returns the place of the first parameter or expression with elements of this type.
    pub fn mentions(&self, scalar: ScalarType) -> Option<Span> {
        let param = self.params.iter().find(|p| p.ty.mentions(scalar)).map(|p| p.span);
        param.or_else(|| self.body.mentions(scalar))
    }
}

impl Expr {
    fn mentions(&self, scalar: ScalarType) -> Option<Span> {
        let functions: &[Fun] = match &self.kind {
            ExprKind::Prim { funs, .. } => funs,
            _ => &[],
        };
        let bodies = functions.iter().map(|f| &*f.body);
        let inside = bodies.chain(self.parts()).find_map(|e| e.mentions(scalar));
        inside.or_else(|| self.ty.mentions(scalar).then_some(self.span))
    }

    /// Returns the expressions directly inside this one, without the bodies of its functions.
    pub fn parts(&self) -> impl Iterator<Item = &Expr> {
        let (few, many): ([Option<&Expr>; 3], &[Expr]) = match &self.kind {
            ExprKind::Lit(_) | ExprKind::Var(_) | ExprKind::Size(_) => ([None; 3], &[]),
            ExprKind::Tuple(es) | ExprKind::Scalar(_, es) => ([None; 3], es),
            ExprKind::Prim { args, .. } => ([None; 3], args),
            ExprKind::Proj(e, _) => ([Some(e), None, None], &[]),
            ExprKind::Index(a, b) | ExprKind::Let(_, a, b) => ([Some(a), Some(b), None], &[]),
            ExprKind::If(a, b, c) => ([Some(a), Some(b), Some(c)], &[]),
            ExprKind::LoopFor { init, bound, body, .. } => {
                ([Some(init), Some(bound), Some(body)], &[])
            }
            ExprKind::LoopWhile { init, cond, body, .. } => {
                ([Some(init), Some(cond), Some(body)], &[])
            }
        };
        few.into_iter().flatten().chain(many)
    }
}

/// A function: parameters and a body. The body may mention outer variables.
#[derive(Clone, Debug, PartialEq)]
pub struct Fun {
    /// Parameters with their types.
    pub params: Vec<(VarId, Type)>,
    /// The result.
    pub body: Box<Expr>,
}

/// An expression with its type and place.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Its type.
    pub ty: Type,
    /// Place in the source. An inlined body keeps its place in the `def`.
    pub span: Span,
}

/// A literal. Floats are kept as `f64` and may be infinite (`f32.highest`); integers are kept as `i128`. Both are
/// rounded to the expression's type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Literal {
    /// For float types.
    Float(f64),
    /// For integer types. The checker ensures that the value fits the type.
    Int(i128),
    /// For `bool`.
    Bool(bool),
}

/// A kind of expression.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A literal of the expression's (scalar) type.
    Lit(Literal),
    /// A variable.
    Var(VarId),
    /// A size as a value of the expression's (integer) type.
    Size(Size),
    /// A tuple of two or more components.
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
        /// Exclusive upper bound.
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
        /// The condition, which may mention `acc`.
        cond: Box<Expr>,
        /// The next accumulator.
        body: Box<Expr>,
    },
    /// A pattern applied to all its arguments.
    Prim {
        /// The pattern.
        prim: Prim,
        /// Its function arguments, in order.
        funs: Vec<Fun>,
        /// Its size arguments, in order.
        sizes: Vec<Size>,
        /// Its value arguments, in order.
        args: Vec<Expr>,
    },
}

/// How `pad` fills the elements outside the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PadMode {
    /// With the nearest element.
    Clamp,
    /// With elements from the other end.
    Wrap,
    /// With elements mirrored at the edge; the edge element is repeated.
    Mirror,
    /// With a value, which is an additional argument.
    Constant,
}

/// How a scan runs, what it gives, and which laws its operator keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ScanKind {
    /// Not decided; `op : (a, a) -> a` is associative with neutral element `z`. Result `i` combines `z` and
    /// the elements up to and including `i`.
    Assoc,
    /// As `Assoc`, but result `i` does not include element `i`.
    Exclusive,
    /// As `Assoc`, as a loop from the left in one work-item; `op : (acc, a) -> acc`.
    Seq,
}

/// The patterns. Each comment lists `funs; sizes; args`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Prim {
    /// `f; ; xs...`: one array for each parameter of `f`.
    Map,
    /// `; ; xs...`: two or more arrays, to one array of tuples.
    Zip,
    /// `; ; xs`: array of tuples, to tuple of arrays.
    Unzip,
    /// `op; ; z, xs`. `op` has two parameters.
    Reduce,
    /// `op; ; z, xs`. `op` is also commutative.
    ReduceComm,
    /// `op; m; z, xs`.
    ReducePart,
    /// `op; ; z, xs`. `op` has two parameters; for [`ScanKind::Seq`], the accumulator and an element.
    Scan(ScanKind),
    /// `; k; xs`.
    Split,
    /// `; ; xss`.
    Join,
    /// `; ; xss`.
    Transpose,
    /// `f; k; xs`: `f` applied `k` times. If `f` keeps its type, its parameter has the type of `xs`. If `f` changes
    /// the outermost length by a fixed factor, that length of its parameter is a size variable that belongs to this
    /// `Iterate`: see [`super::size::Size::iter_var`].
    Iterate,
    /// `; ; xs`.
    Reorder,
    /// `; w, s; xs`.
    Slide,
    /// `; l, r; xs` (and the constant as a second argument for [`PadMode::Constant`]).
    Pad(PadMode),
    /// `; ; xs, is`.
    Gather,
    /// `; ; dest, is, vs`.
    Scatter,
    /// `op; m; z, is, vs`.
    Histogram,
    /// `; k; is, vs`.
    CountingSort,
    /// `; ; xs`: whether `xs` counts as short, where one way is better for short arrays, and another for long ones. The answer
    /// changes no value; elaboration decides.
    Few,
    /// `; ; xs, sorted`: `sorted`, which has the numbers `xs` in ascending order. Elaboration may compute it in another way.
    Sorted,
    /// `; ; keys, xs, sorted`: `sorted`, which has the elements of `xs` in the ascending order of their unsigned keys; equal ones keep their
    /// order. Elaboration may compute parts of it in another way.
    InOrder,
    /// `; n;`: the element type is the result's.
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
    /// `f; w; x...`: one vector for each parameter of `f`, which is applied to each component. The parameters of
    /// `f` have scalar types.
    Vectorize,
}
