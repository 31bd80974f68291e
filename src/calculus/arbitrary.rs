//! Small programs for tests: a builder of typed programs, and a generator of random well-typed ones.
//!
//! [`Build`] infers every type from the parts, so that tests read like programs. [`random`] makes a program
//! from a seed: maps, reductions, rearrangements, captured variables, `let`s and tuples over a few inputs.
//! For tests only: a wrong use gives an ill-typed program, not an error.

mod generator;

pub use generator::{Sample, inputs, random};

use crate::diag::Span;
use crate::lang::size::Size;
use crate::lang::typed::{Entry, Expr, ExprKind, Fun, Literal, Param, Prim, ScalarOp, VarId};
use crate::lang::types::{ScalarType, Type};

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
    Expr { kind, ty, span: Span::default() }
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

/// A scalar operation, whose result has a type of its own or that of its first operand.
pub fn op(op: ScalarOp, args: Vec<Expr>) -> Expr {
    let ty = match (op, op.fixed_result(), args.as_slice()) {
        (_, Some(t), _) | (ScalarOp::Cast(t), ..) => scalar(t),
        (ScalarOp::Select, _, [_, a, ..]) | (.., [a, ..]) => a.ty.clone(),
        (.., []) => f32(),
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
    expr(ExprKind::Prim { prim, funs, sizes, args }, ty)
}

/// `zip xs ys ...`.
pub fn zip(arrays: Vec<Expr>) -> Expr {
    let n = arrays.first().map_or_else(|| Size::constant(0), |a| element(&a.ty).0);
    let ts = arrays.iter().map(|a| element(&a.ty).1).collect();
    prim(Prim::Zip, vec![], vec![], arrays, array(&n, &Type::Tuple(ts)))
}

/// `transpose xss`.
pub fn transpose(xss: Expr) -> Expr {
    let (n, row) = element(&xss.ty);
    let (m, t) = element(&row);
    prim(Prim::Transpose, vec![], vec![], vec![xss], array(&m, &array(&n, &t)))
}

/// `split k xs`, for an array of length `k * m`.
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

/// A pattern whose result has the type of its argument.
pub fn same(p: Prim, sizes: Vec<Size>, xs: Expr) -> Expr {
    let ty = xs.ty.clone();
    prim(p, vec![], sizes, vec![xs], ty)
}

impl Build {
    /// A builder without declarations.
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
            labels: vec![],
            span: Span::default(),
        };
        self.params.push(param);
        expr(ExprKind::Var(var), ty)
    }

    /// A function with parameters of these types.
    pub fn fun(&mut self, types: &[Type], body: impl FnOnce(&mut Build, &[Expr]) -> Expr) -> Fun {
        let params: Vec<_> = types.iter().map(|t| (self.var("x"), t.clone())).collect();
        let args: Vec<_> = params.iter().map(|(v, t)| expr(ExprKind::Var(*v), t.clone())).collect();
        Fun { params, body: Box::new(body(self, &args)) }
    }

    /// A map-like pattern over arrays.
    pub fn map_as(
        &mut self,
        kind: Prim,
        arrays: Vec<Expr>,
        body: impl FnOnce(&mut Build, &[Expr]) -> Expr,
    ) -> Expr {
        let types: Vec<_> = arrays.iter().map(|a| element(&a.ty).1).collect();
        let n = arrays.first().map_or_else(|| Size::constant(0), |a| element(&a.ty).0);
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

    /// A reduction-like pattern, with an operator on an accumulator and an element.
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
            Prim::Scan(_) => array(&n, &acc),
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
            size_params: vec![],
            shown: vec![],
            divides: vec![],
            body,
            names: self.names,
            span: Span::default(),
        }
    }
}
