//! Small programs for tests: a builder of typed programs, and a generator of random well-typed ones.
//!
//! [`Build`] infers every type from the parts, so that tests read like programs. [`random`] makes
//! a program from a seed: maps, reductions, rearrangements, captured variables, `let`s and tuples over
//! a handful of inputs. Only for tests; a wrong use gives an ill-typed program, not an error.

use super::eval::Inputs;
use super::value::Value;
use crate::diag::Span;
use crate::lang::size::Size;
use crate::lang::typed::{Entry, Expr, ExprKind, Fun, Literal, Param, Prim, ScalarOp, VarId};
use crate::lang::types::{ScalarType, Type};
use indexmap::IndexMap;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Builds typed expressions.
#[derive(Debug, Default)]
pub struct Build {
    names: Vec<String>,
    params: Vec<Param>,
    sizes: Vec<String>,
}

/// `[n]t`.
pub fn array(n: &Size, t: &Type) -> Type {
    Type::Array(n.clone(), Box::new(t.clone()))
}

/// A scalar type.
pub fn scalar(s: ScalarType) -> Type {
    Type::Scalar(s)
}

/// `f32`.
pub fn f32() -> Type {
    Type::Scalar(ScalarType::F32)
}

/// `i32`.
pub fn i32() -> Type {
    Type::Scalar(ScalarType::I32)
}

/// An expression without a place.
pub fn expr(kind: ExprKind, ty: Type) -> Expr {
    Expr {
        kind,
        ty,
        span: Span::default(),
    }
}

fn element(t: &Type) -> (Size, Type) {
    match t {
        Type::Array(n, t) => (n.clone(), (**t).clone()),
        _ => (Size::constant(0), t.clone()),
    }
}

/// A float literal of type `f32`.
pub fn float(x: f64) -> Expr {
    expr(ExprKind::Lit(Literal::Float(x)), f32())
}

/// An integer literal of type `i32`.
pub fn int(x: i128) -> Expr {
    expr(ExprKind::Lit(Literal::Int(x)), i32())
}

/// A scalar operation whose result has the type of its first operand, or is a truth value.
pub fn op(op: ScalarOp, args: Vec<Expr>) -> Expr {
    use ScalarOp::{And, Eq, Ge, Gt, Le, Lt, Ne, Not, Or, Select};
    let ty = match (op, args.as_slice()) {
        (Eq | Ne | Lt | Le | Gt | Ge | And | Or | Not, _) => scalar(ScalarType::Bool),
        (ScalarOp::Cast(t), _) => scalar(t),
        (Select, [_, a, ..]) | (_, [a, ..]) => a.ty.clone(),
        (_, []) => f32(),
    };
    expr(ExprKind::Scalar(op, args), ty)
}

/// `a + b`.
pub fn add(a: Expr, b: Expr) -> Expr {
    op(ScalarOp::Add, vec![a, b])
}

/// `a - b`.
pub fn sub(a: Expr, b: Expr) -> Expr {
    op(ScalarOp::Sub, vec![a, b])
}

/// `a * b`.
pub fn mul(a: Expr, b: Expr) -> Expr {
    op(ScalarOp::Mul, vec![a, b])
}

/// A tuple.
pub fn tuple(parts: Vec<Expr>) -> Expr {
    let ty = Type::Tuple(parts.iter().map(|e| e.ty.clone()).collect());
    expr(ExprKind::Tuple(parts), ty)
}

/// `t.i`.
pub fn proj(t: Expr, i: usize) -> Expr {
    let ty = match &t.ty {
        Type::Tuple(ts) => ts.get(i).cloned().unwrap_or_else(f32),
        other => other.clone(),
    };
    expr(ExprKind::Proj(Box::new(t), i), ty)
}

/// `a[i]`.
pub fn index(a: Expr, i: Expr) -> Expr {
    let (_, ty) = element(&a.ty);
    expr(ExprKind::Index(Box::new(a), Box::new(i)), ty)
}

/// `if c then a else b`.
pub fn cond(c: Expr, a: Expr, b: Expr) -> Expr {
    let ty = a.ty.clone();
    expr(ExprKind::If(Box::new(c), Box::new(a), Box::new(b)), ty)
}

/// A pattern with its result type.
pub fn prim(prim: Prim, funs: Vec<Fun>, sizes: Vec<Size>, args: Vec<Expr>, ty: Type) -> Expr {
    expr(
        ExprKind::Prim {
            prim,
            funs,
            sizes,
            args,
        },
        ty,
    )
}

/// `zip xs ys ...`.
pub fn zip(arrays: Vec<Expr>) -> Expr {
    let n = arrays
        .first()
        .map_or_else(|| Size::constant(0), |a| element(&a.ty).0);
    let ts = arrays.iter().map(|a| element(&a.ty).1).collect();
    prim(
        Prim::Zip,
        vec![],
        vec![],
        arrays,
        array(&n, &Type::Tuple(ts)),
    )
}

/// `transpose xss`.
pub fn transpose(xss: Expr) -> Expr {
    let (n, row) = element(&xss.ty);
    let (m, t) = element(&row);
    prim(
        Prim::Transpose,
        vec![],
        vec![],
        vec![xss],
        array(&m, &array(&n, &t)),
    )
}

/// `split k xs`, for a length `k * m`.
pub fn split(k: &Size, xs: Expr) -> Expr {
    let (n, t) = element(&xs.ty);
    let ty = array(&n.div(k), &array(k, &t));
    prim(Prim::Split, vec![], vec![k.clone()], vec![xs], ty)
}

/// `join xss`.
pub fn join(xss: Expr) -> Expr {
    let (m, row) = element(&xss.ty);
    let (k, t) = element(&row);
    prim(Prim::Join, vec![], vec![], vec![xss], array(&m.mul(&k), &t))
}

/// A pattern from an array to one of the same type.
pub fn same(p: Prim, sizes: Vec<Size>, xs: Expr) -> Expr {
    let ty = xs.ty.clone();
    prim(p, vec![], sizes, vec![xs], ty)
}

impl Build {
    /// With nothing declared.
    pub fn new() -> Build {
        Build::default()
    }

    /// A size parameter.
    pub fn size(&mut self, name: &str) -> Size {
        self.sizes.push(name.to_owned());
        Size::var(name)
    }

    /// A fresh variable.
    pub fn var(&mut self, name: &str) -> VarId {
        self.names.push(name.to_owned());
        VarId(u32::try_from(self.names.len() - 1).unwrap_or(u32::MAX))
    }

    /// A parameter of the entry.
    pub fn input(&mut self, name: &str, ty: Type) -> Expr {
        let var = self.var(name);
        let param = Param {
            name: name.to_owned(),
            var,
            ty: ty.clone(),
            span: Span::default(),
        };
        self.params.push(param);
        expr(ExprKind::Var(var), ty)
    }

    /// A function of parameters of these types.
    pub fn fun(&mut self, types: &[Type], body: impl FnOnce(&mut Build, &[Expr]) -> Expr) -> Fun {
        let params: Vec<_> = types.iter().map(|t| (self.var("x"), t.clone())).collect();
        let args: Vec<_> = params
            .iter()
            .map(|(v, t)| expr(ExprKind::Var(*v), t.clone()))
            .collect();
        Fun {
            params,
            body: Box::new(body(self, &args)),
        }
    }

    /// A map-like pattern over arrays.
    pub fn map_as(
        &mut self,
        kind: Prim,
        arrays: Vec<Expr>,
        body: impl FnOnce(&mut Build, &[Expr]) -> Expr,
    ) -> Expr {
        let types: Vec<_> = arrays.iter().map(|a| element(&a.ty).1).collect();
        let n = arrays
            .first()
            .map_or_else(|| Size::constant(0), |a| element(&a.ty).0);
        let f = self.fun(&types, body);
        let ty = array(&n, &f.body.ty);
        prim(kind, vec![f], vec![], arrays, ty)
    }

    /// `map f xs ...`.
    pub fn map(
        &mut self,
        arrays: Vec<Expr>,
        body: impl FnOnce(&mut Build, &[Expr]) -> Expr,
    ) -> Expr {
        self.map_as(Prim::Map, arrays, body)
    }

    /// A reduction-like pattern with an operator on the accumulator and an element.
    pub fn reduce_as(
        &mut self,
        kind: Prim,
        z: Expr,
        xs: Expr,
        body: impl FnOnce(&mut Build, &[Expr]) -> Expr,
    ) -> Expr {
        let (n, t) = element(&xs.ty);
        let acc = z.ty.clone();
        let f = self.fun(&[acc.clone(), t], body);
        let ty = match kind {
            Prim::Scan | Prim::ScanSeq => array(&n, &acc),
            _ => acc,
        };
        prim(kind, vec![f], vec![], vec![z, xs], ty)
    }

    /// `reduce op z xs` with a scalar operation.
    pub fn reduce(&mut self, o: ScalarOp, z: Expr, xs: Expr) -> Expr {
        self.reduce_as(Prim::Reduce, z, xs, |_, x| op(o, x.to_vec()))
    }

    /// `let v = value in body`.
    pub fn bind(&mut self, value: Expr, body: impl FnOnce(&mut Build, Expr) -> Expr) -> Expr {
        let v = self.var("v");
        let known = expr(ExprKind::Var(v), value.ty.clone());
        let body = body(self, known);
        let ty = body.ty.clone();
        expr(ExprKind::Let(v, Box::new(value), Box::new(body)), ty)
    }

    /// The entry with this body.
    pub fn entry(self, name: &str, body: Expr) -> Entry {
        Entry {
            name: name.to_owned(),
            doc: String::new(),
            sizes: self.sizes,
            params: self.params,
            divides: vec![],
            body,
            names: self.names,
            span: Span::default(),
        }
    }
}

/// A random program.
#[derive(Debug)]
pub struct Sample {
    /// The program.
    pub entry: Entry,
    /// Values of its size parameters.
    pub sizes: IndexMap<String, u64>,
}

/// The program of a seed. Its inputs are `f32` and `i32` scalars, tuples of them, and arrays; with
/// small integers for inputs no operation in it fails.
pub fn random(seed: u64) -> Sample {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut build = Build::new();
    let sizes: IndexMap<String, u64> = ["n", "m", "k"]
        .iter()
        .map(|s| ((*s).to_owned(), rng.random_range(1..6)))
        .collect();
    let dims: Vec<Size> = sizes.keys().map(|s| build.size(s)).collect();
    let mut g = Generator {
        rng,
        dims,
        scope: vec![],
        fuel: 24,
    };
    let count = g.below(4) + 1;
    for i in 0..count {
        let ty = g.input_type();
        let input = build.input(&format!("a{i}"), ty);
        g.scope.push(input);
    }
    let goal = g.goal(2);
    let body = g.make(&mut build, &goal, 5);
    Sample {
        entry: build.entry("random", body),
        sizes,
    }
}

struct Generator {
    rng: ChaCha8Rng,
    dims: Vec<Size>,
    scope: Vec<Expr>,
    /// Constructs that may still be made; then only variables, literals and replicas.
    fuel: usize,
}

type Make<'a> = &'a mut Build;

impl Generator {
    fn below(&mut self, n: usize) -> usize {
        self.rng.random_range(0..n.max(1))
    }

    fn dim(&mut self) -> Size {
        let i = self.below(self.dims.len() + 1);
        self.dims
            .get(i)
            .cloned()
            .unwrap_or_else(|| Size::constant(2))
    }

    fn element(&mut self) -> Type {
        if self.below(4) == 0 { i32() } else { f32() }
    }

    fn scalars(&mut self) -> Type {
        match self.below(4) {
            0 => Type::Tuple(vec![self.element(), self.element()]),
            1 if self.below(3) == 0 => {
                Type::Tuple(vec![self.element(), self.element(), self.element()])
            }
            _ => self.element(),
        }
    }

    fn input_type(&mut self) -> Type {
        let t = self.scalars();
        let (n, m) = (self.dim(), self.dim());
        match self.below(6) {
            0 => t,
            1 | 2 => array(&n, &array(&m, &t)),
            _ => array(&n, &t),
        }
    }

    fn goal(&mut self, rank: usize) -> Type {
        match self.below(6) {
            0 => self.scalars(),
            1 if rank > 0 => Type::Tuple(vec![self.goal(rank - 1), self.goal(rank - 1)]),
            _ if rank > 0 => {
                let n = self.dim();
                array(&n, &self.goal(rank - 1))
            }
            _ => self.scalars(),
        }
    }

    /// A variable of that type, or a component of one.
    fn variable(&mut self, goal: &Type) -> Option<Expr> {
        let mut fitting = vec![];
        for v in &self.scope {
            if v.ty == *goal {
                fitting.push(v.clone());
            }
            if let Type::Tuple(ts) = &v.ty {
                let parts = ts.iter().enumerate().filter(|(_, t)| *t == goal);
                fitting.extend(parts.map(|(i, _)| proj(v.clone(), i)));
            }
        }
        let i = self.below(fitting.len());
        // Prefer what was bound last: captures and uses of parameters.
        let i = if self.below(2) == 0 {
            fitting.len().saturating_sub(1)
        } else {
            i
        };
        fitting.into_iter().nth(i)
    }

    fn simple(&mut self, goal: &Type) -> Expr {
        if let Some(v) = self.variable(goal) {
            return v;
        }
        match goal {
            Type::Scalar(ScalarType::I32) => int(self.rng.random_range(-3..4)),
            Type::Scalar(_) | Type::Vector(..) => float(f64::from(self.rng.random_range(-3..4))),
            Type::Tuple(ts) => {
                let parts = ts.iter().map(|t| self.simple(t)).collect();
                tuple(parts)
            }
            Type::Array(n, t) => {
                let x = self.simple(t);
                prim(
                    Prim::Replicate,
                    vec![],
                    vec![n.clone()],
                    vec![x],
                    goal.clone(),
                )
            }
        }
    }

    /// An expression under new variables.
    fn under(&mut self, b: Make, vars: &[Expr], goal: &Type, depth: usize) -> Expr {
        let outer = self.scope.len();
        self.scope.extend(vars.iter().cloned());
        let out = self.make(b, goal, depth);
        self.scope.truncate(outer);
        out
    }

    fn make(&mut self, b: Make, goal: &Type, depth: usize) -> Expr {
        if depth == 0 || self.fuel == 0 {
            return self.simple(goal);
        }
        self.fuel -= 1;
        let depth = depth - 1;
        match self.below(12) {
            0 => {
                let bound = self.goal(1);
                let value = self.make(b, &bound, depth);
                return b.bind(value, |b, v| self.under(b, &[v], goal, depth));
            }
            1 if depth > 1 => {
                let test = self.element();
                let (x, y) = (self.make(b, &test, 1), self.make(b, &test, 1));
                let c = op(ScalarOp::Lt, vec![x, y]);
                let (x, y) = (self.make(b, goal, depth), self.make(b, goal, depth));
                return cond(c, x, y);
            }
            2 => {
                if let Some(v) = self.variable(goal) {
                    return v;
                }
            }
            _ => {}
        }
        match goal {
            Type::Scalar(s) => self.make_scalar(b, *s, depth),
            Type::Tuple(ts) => {
                let parts = ts.iter().map(|t| self.make(b, t, depth)).collect();
                tuple(parts)
            }
            Type::Array(n, t) => self.make_array(b, n, t, depth),
            Type::Vector(..) => self.simple(goal),
        }
    }

    fn make_scalar(&mut self, b: Make, s: ScalarType, depth: usize) -> Expr {
        let ty = Type::Scalar(s);
        match self.below(9) {
            0..3 => {
                let n = self.dim();
                let xs = self.make(b, &array(&n, &ty), depth);
                let (o, z) = match (self.below(3), s) {
                    (0, ScalarType::I32) => (ScalarOp::Max, int(i128::from(i32::MIN))),
                    (_, ScalarType::I32) => (ScalarOp::Add, int(0)),
                    (0, _) => (ScalarOp::Min, float(f64::INFINITY)),
                    _ => (ScalarOp::Add, float(0.0)),
                };
                b.reduce(o, z, xs)
            }
            3 => {
                // Every length is at least 1.
                let n = self.dim();
                let xs = self.make(b, &array(&n, &ty), depth);
                index(xs, int(0))
            }
            4 => {
                let other = if s == ScalarType::I32 { f32() } else { i32() };
                let x = self.make(b, &other, depth.min(1));
                let x = op(ScalarOp::Min, vec![x.clone(), x]);
                match s {
                    ScalarType::I32 => {
                        // Only small floats have an integer.
                        let x = op(ScalarOp::Clamp, vec![x, float(-9.0), float(9.0)]);
                        op(ScalarOp::Cast(s), vec![op(ScalarOp::Floor, vec![x])])
                    }
                    _ => op(ScalarOp::Cast(s), vec![x]),
                }
            }
            _ => {
                let o = [ScalarOp::Add, ScalarOp::Sub, ScalarOp::Mul, ScalarOp::Max];
                let o = o.get(self.below(4)).copied().unwrap_or(ScalarOp::Add);
                let (x, y) = (self.make(b, &ty, depth), self.make(b, &ty, depth));
                op(o, vec![x, y])
            }
        }
    }

    fn make_array(&mut self, b: Make, n: &Size, t: &Type, depth: usize) -> Expr {
        let goal = array(n, t);
        match (self.below(12), t) {
            (0, Type::Array(m, t)) => {
                let xss = array(m, &array(n, t));
                transpose(self.make(b, &xss, depth))
            }
            (1, Type::Array(k, t)) => {
                let xs = self.make(b, &array(&n.mul(k), t), depth);
                split(k, xs)
            }
            (0..3, Type::Tuple(ts)) => {
                let arrays = ts
                    .iter()
                    .map(|t| self.make(b, &array(n, t), depth))
                    .collect();
                zip(arrays)
            }
            (3, _) => {
                let xs = self.make(b, &goal, depth);
                match self.below(2) {
                    0 => same(Prim::Reverse, vec![], xs),
                    _ => same(Prim::Rotate, vec![Size::constant(1)], xs),
                }
            }
            (4, Type::Scalar(ScalarType::I32)) => {
                prim(Prim::Iota, vec![], vec![n.clone()], vec![], goal)
            }
            (5, Type::Scalar(ScalarType::F32)) => {
                let xs = self.make(b, &goal, depth);
                b.reduce_as(Prim::Scan, float(0.0), xs, |_, x| {
                    op(ScalarOp::Add, x.to_vec())
                })
            }
            _ => {
                // A map, over arrays in scope where there are some of the length.
                let count = self.below(5) / 2 + 1;
                let mut arrays = vec![];
                for _ in 0..count {
                    let known: Vec<Expr> = self
                        .scope
                        .iter()
                        .filter(|v| matches!(&v.ty, Type::Array(m, _) if m == n))
                        .cloned()
                        .collect();
                    let i = self.below(known.len());
                    let xs = match known.into_iter().nth(i) {
                        Some(v) if self.below(4) > 0 => v,
                        _ => {
                            let e = self.goal(1);
                            self.make(b, &array(n, &e), depth)
                        }
                    };
                    arrays.push(xs);
                }
                b.map(arrays, |b, xs| self.under(b, xs, t, depth))
            }
        }
    }
}

/// Inputs for an entry: small integers, so that sums in any order are exact.
pub fn inputs(entry: &Entry, sizes: &IndexMap<String, u64>, seed: u64) -> Inputs {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut out = Inputs::new();
    for p in &entry.params {
        let mut columns = vec![];
        columns_of(&p.ty, sizes, &mut vec![], &mut columns);
        let parts = columns.into_iter().map(|(dims, s)| {
            let count = dims.iter().product();
            let xs = (0..count)
                .map(|_| rng.random_range(-4..5))
                .collect::<Vec<i64>>();
            if s.is_float() {
                let xs: Vec<f64> = xs
                    .iter()
                    .map(|x| f64::from(i32::try_from(*x).unwrap_or(0)))
                    .collect();
                Value::floats(s, &dims, &xs)
            } else {
                Value::ints(s, &dims, &xs)
            }
        });
        out.insert(p.name.as_str().into(), Value::tuple(parts));
    }
    out
}

type Columns = Vec<(Vec<usize>, ScalarType)>;

fn columns_of(t: &Type, sizes: &IndexMap<String, u64>, dims: &mut Vec<usize>, out: &mut Columns) {
    let value = |n: &Size| {
        let look = |s: &str| sizes.get(s).and_then(|v| i64::try_from(*v).ok());
        n.eval(&look)
            .ok()
            .and_then(|v| usize::try_from(v).ok())
            .unwrap_or(0)
    };
    match t {
        Type::Scalar(s) => out.push((dims.clone(), *s)),
        Type::Vector(w, s) => {
            let mut dims = dims.clone();
            dims.push(value(w));
            out.push((dims, *s));
        }
        Type::Tuple(ts) => ts.iter().for_each(|t| columns_of(t, sizes, dims, out)),
        Type::Array(n, t) => {
            dims.push(value(n));
            columns_of(t, sizes, dims, out);
            dims.pop();
        }
    }
}
