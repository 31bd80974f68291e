//! Random well-typed programs, and inputs for any program. Every program has a value on these inputs.

use super::{
    Build, array, cond, f32, float, i32, index, int, op, prim, proj, same, split, transpose, tuple,
    zip,
};
use crate::calculus::eval::Inputs;
use crate::calculus::value::Value;
use crate::lang::size::Size;
use crate::lang::typed::{Entry, Expr, Prim, ScalarOp, ScanKind};
use crate::lang::types::{ScalarType, Type};
use indexmap::IndexMap;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A random program.
#[derive(Debug)]
pub struct Sample {
    /// The program.
    pub entry: Entry,
    /// Values of its size parameters.
    pub sizes: IndexMap<String, u64>,
}

/// Returns the program of a seed. Its inputs are `f32` and `i32` scalars, tuples of them, and arrays. It has
/// a value on inputs that are small integers.
pub fn random(seed: u64) -> Sample {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut build = Build::new();
    let sizes: IndexMap<String, u64> =
        ["n", "m", "k"].iter().map(|s| ((*s).to_owned(), rng.random_range(1..6))).collect();
    let dims: Vec<Size> = sizes.keys().map(|s| build.size(s)).collect();
    let mut g = Generator { rng, dims, scope: vec![], fuel: 24 };
    let count = g.below(4) + 1;
    for i in 0..count {
        let ty = g.input_type();
        let input = build.input(&format!("a{i}"), ty);
        g.scope.push(input);
    }
    let goal = g.goal(2);
    let body = g.make(&mut build, &goal, 5);
    Sample { entry: build.entry("random", body), sizes }
}

struct Generator {
    rng: ChaCha8Rng,
    dims: Vec<Size>,
    scope: Vec<Expr>,
    /// The number of constructs that may still be made; then only variables, literals and replicas are.
    fuel: usize,
}

type Make<'a> = &'a mut Build;

impl Generator {
    fn below(&mut self, n: usize) -> usize {
        self.rng.random_range(0..n.max(1))
    }

    fn dim(&mut self) -> Size {
        let i = self.below(self.dims.len() + 1);
        self.dims.get(i).cloned().unwrap_or_else(|| Size::constant(2))
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

    /// Returns a variable of that type, or a component of one.
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
        // Prefer the variable that was bound last: that gives captures and uses of parameters.
        let i = if self.below(2) == 0 { fitting.len().saturating_sub(1) } else { i };
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
                prim(Prim::Replicate, vec![], vec![n.clone()], vec![x], goal.clone())
            }
        }
    }

    /// Makes an expression with new variables in scope.
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
                        // Only small floats can be converted to an integer.
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
                let arrays = ts.iter().map(|t| self.make(b, &array(n, t), depth)).collect();
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
                b.reduce_as(Prim::Scan(ScanKind::Assoc), float(0.0), xs, |_, x| {
                    op(ScalarOp::Add, x.to_vec())
                })
            }
            _ => {
                // A map, over arrays in scope if some have this length.
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

/// Returns inputs for an entry: small integers, so that sums are exact in any order.
pub fn inputs(entry: &Entry, sizes: &IndexMap<String, u64>, seed: u64) -> Inputs {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut out = Inputs::new();
    for p in &entry.params {
        let mut columns = vec![];
        columns_of(&p.ty, sizes, &mut vec![], &mut columns);
        let parts = columns.into_iter().map(|(dims, s)| {
            let count = dims.iter().product();
            let xs = (0..count).map(|_| rng.random_range(-4..5)).collect::<Vec<i64>>();
            if s.is_float() {
                let xs: Vec<f64> =
                    xs.iter().map(|x| f64::from(i32::try_from(*x).unwrap_or(0))).collect();
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
        n.eval(&look).ok().and_then(|v| usize::try_from(v).ok()).unwrap_or(0)
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
