//! Random programs mean the same before and after elaboration.
//!
//! The meaning before is defined here once more, as plainly as possible and only for the constructs of the
//! generator, so that neither the interpreter nor the evaluator is its own judge.

#![expect(clippy::cast_possible_truncation, reason = "the conversions of the language")]

use super::{Program, elaborate};
use crate::calculus::arbitrary::{Sample, inputs, random};
use crate::calculus::eval;
use crate::calculus::value::Value;
use crate::lang::size::Size;
use crate::lang::typed::{Expr, ExprKind, Fun, Literal, Prim, ScalarOp, ScanKind, VarId};
use crate::lang::types::{ScalarType, Type};
use std::collections::HashMap;

/// A structured value.
#[derive(Clone, Debug)]
enum V {
    F(f32),
    I(i32),
    B(bool),
    T(Vec<V>),
    A(Vec<V>),
}

struct Plain<'a> {
    sample: &'a Sample,
    vars: HashMap<VarId, V>,
}

impl Plain<'_> {
    fn size(&self, n: &Size) -> usize {
        let look = |s: &str| self.sample.sizes.get(s).map(|v| i64::try_from(*v).expect("small"));
        usize::try_from(n.eval(&look).expect("has a value")).expect("small")
    }

    fn call(&mut self, f: &Fun, args: Vec<V>) -> V {
        for ((v, _), a) in f.params.iter().zip(args) {
            self.vars.insert(*v, a);
        }
        self.eval(&f.body)
    }

    fn array(&mut self, e: &Expr) -> Vec<V> {
        match self.eval(e) {
            V::A(xs) => xs,
            other => panic!("{other:?} is no array"),
        }
    }

    fn eval(&mut self, e: &Expr) -> V {
        match &e.kind {
            ExprKind::Lit(Literal::Float(x)) => V::F(*x as f32),
            ExprKind::Lit(Literal::Int(x)) => V::I(i32::try_from(*x).expect("fits")),
            ExprKind::Lit(Literal::Bool(x)) => V::B(*x),
            ExprKind::Var(v) => self.vars[v].clone(),
            ExprKind::Tuple(es) => V::T(es.iter().map(|x| self.eval(x)).collect()),
            ExprKind::Proj(t, i) => match self.eval(t) {
                V::T(ts) => ts[*i].clone(),
                other => panic!("{other:?} is no tuple"),
            },
            ExprKind::Index(a, i) => {
                let V::I(i) = self.eval(i) else { panic!("an index") };
                self.array(a)[usize::try_from(i).expect("inside")].clone()
            }
            ExprKind::If(c, t, f) => match self.eval(c) {
                V::B(true) => self.eval(t),
                _ => self.eval(f),
            },
            ExprKind::Let(v, x, b) => {
                let x = self.eval(x);
                self.vars.insert(*v, x);
                self.eval(b)
            }
            ExprKind::Scalar(op, es) => {
                let es: Vec<V> = es.iter().map(|x| self.eval(x)).collect();
                scalar(*op, &es)
            }
            ExprKind::Prim { prim, funs, args, .. } => self.prim(*prim, funs, args, &e.ty),
            other => panic!("{other:?} is not generated"),
        }
    }

    fn prim(&mut self, prim: Prim, funs: &[Fun], args: &[Expr], ty: &Type) -> V {
        let length = |t: &Type| match t {
            Type::Array(n, _) => self.size(n),
            other => panic!("{other} is no array"),
        };
        V::A(match prim {
            Prim::Map => {
                let n = length(ty);
                let arrays: Vec<_> = args.iter().map(|a| self.array(a)).collect();
                let row = |i: usize| arrays.iter().map(|a| a[i].clone()).collect();
                (0..n).map(|i| self.call(&funs[0], row(i))).collect()
            }
            Prim::Zip => {
                let n = length(ty);
                let arrays: Vec<_> = args.iter().map(|a| self.array(a)).collect();
                let row = |i: usize| V::T(arrays.iter().map(|a| a[i].clone()).collect());
                (0..n).map(row).collect()
            }
            Prim::Reduce => {
                let (z, xs) = (self.eval(&args[0]), self.array(&args[1]));
                return xs.into_iter().fold(z, |acc, x| self.call(&funs[0], vec![acc, x]));
            }
            Prim::Scan(ScanKind::Assoc) => {
                let (mut acc, xs) = (self.eval(&args[0]), self.array(&args[1]));
                let mut out = vec![];
                for x in xs {
                    acc = self.call(&funs[0], vec![acc, x]);
                    out.push(acc.clone());
                }
                out
            }
            Prim::Transpose => {
                let n = length(ty);
                let rows = self.array(&args[0]);
                let at = |row: &V, j: usize| match row {
                    V::A(xs) => xs[j].clone(),
                    other => panic!("{other:?} is no row"),
                };
                (0..n).map(|j| V::A(rows.iter().map(|r| at(r, j)).collect())).collect()
            }
            Prim::Split => {
                let m = length(ty);
                let xs = self.array(&args[0]);
                xs.chunks(xs.len() / m).map(|c| V::A(c.to_vec())).collect()
            }
            Prim::Reverse => self.array(&args[0]).into_iter().rev().collect(),
            Prim::Rotate => {
                let mut xs = self.array(&args[0]);
                xs.rotate_left(1);
                xs
            }
            Prim::Iota => (0..length(ty)).map(|i| V::I(i32::try_from(i).expect("small"))).collect(),
            Prim::Replicate => {
                let n = length(ty);
                vec![self.eval(&args[0]); n]
            }
            other => panic!("{other:?} is not generated"),
        })
    }
}

fn scalar(op: ScalarOp, args: &[V]) -> V {
    match (op, args) {
        (ScalarOp::Add, [V::F(a), V::F(b)]) => V::F(a + b),
        (ScalarOp::Sub, [V::F(a), V::F(b)]) => V::F(a - b),
        (ScalarOp::Mul, [V::F(a), V::F(b)]) => V::F(a * b),
        (ScalarOp::Min, [V::F(a), V::F(b)]) => V::F(a.min(*b)),
        (ScalarOp::Max, [V::F(a), V::F(b)]) => V::F(a.max(*b)),
        (ScalarOp::Lt, [V::F(a), V::F(b)]) => V::B(a < b),
        (ScalarOp::Clamp, [V::F(a), V::F(l), V::F(h)]) => V::F(a.max(*l).min(*h)),
        (ScalarOp::Floor, [V::F(a)]) => V::F(a.floor()),
        // There are only two types here: the language names the target type, a term the source type.
        (ScalarOp::Cast(_), [V::F(a)]) => V::I(*a as i32),
        (ScalarOp::Cast(_), [V::I(a)]) => V::F(*a as f32),
        (ScalarOp::Add, [V::I(a), V::I(b)]) => V::I(a.wrapping_add(*b)),
        (ScalarOp::Sub, [V::I(a), V::I(b)]) => V::I(a.wrapping_sub(*b)),
        (ScalarOp::Mul, [V::I(a), V::I(b)]) => V::I(a.wrapping_mul(*b)),
        (ScalarOp::Min, [V::I(a), V::I(b)]) => V::I(*a.min(b)),
        (ScalarOp::Max, [V::I(a), V::I(b)]) => V::I(*a.max(b)),
        (ScalarOp::Lt, [V::I(a), V::I(b)]) => V::B(a < b),
        other => panic!("{other:?} is not generated"),
    }
}

/// Flattens components one after another, with an array of tuples as an array for each component.
fn flat(values: &[V]) -> Vec<f64> {
    match values.first() {
        None => vec![],
        Some(V::T(ts)) => (0..ts.len())
            .flat_map(|i| {
                let part = |v: &V| match v {
                    V::T(ts) => ts[i].clone(),
                    other => panic!("{other:?} is no tuple"),
                };
                flat(&values.iter().map(part).collect::<Vec<_>>())
            })
            .collect(),
        Some(V::A(_)) => {
            let elements = |v: &V| match v {
                V::A(xs) => xs.clone(),
                other => panic!("{other:?} is no array"),
            };
            flat(&values.iter().flat_map(elements).collect::<Vec<_>>())
        }
        Some(V::F(_) | V::I(_) | V::B(_)) => values
            .iter()
            .map(|v| match v {
                V::F(x) => f64::from(*x),
                V::I(x) => f64::from(*x),
                V::B(x) => f64::from(u8::from(*x)),
                other => panic!("{other:?} is no scalar"),
            })
            .collect(),
    }
}

/// Returns an input as a structured value; the components of `ty` are consumed in order.
fn structured(plain: &Plain, ty: &Type, value: &Value) -> V {
    fn build(
        plain: &Plain,
        ty: &Type,
        columns: &mut [std::vec::IntoIter<f64>],
        next: &mut usize,
    ) -> V {
        match ty {
            Type::Scalar(s) => {
                let x = columns[*next].next().expect("an element");
                *next += 1;
                if *s == ScalarType::I32 { V::I(x as i32) } else { V::F(x as f32) }
            }
            Type::Tuple(ts) => V::T(ts.iter().map(|t| build(plain, t, columns, next)).collect()),
            Type::Array(n, t) => {
                let start = *next;
                let each = |_| {
                    *next = start;
                    build(plain, t, columns, next)
                };
                V::A((0..plain.size(n)).map(each).collect())
            }
            Type::Vector(..) => panic!("no vectors are generated"),
        }
    }
    let mut columns: Vec<_> = value
        .leaves()
        .iter()
        .map(|l| Value::new(vec![l.clone()]).to_floats().into_iter())
        .collect();
    build(plain, ty, &mut columns, &mut 0)
}

/// Compares the program of a seed, and counts the operators of its term in `seen`; false if it could not be
/// elaborated.
fn agrees(seed: u64, seen: &mut HashMap<String, usize>) -> bool {
    let sample = random(seed);
    let program: Program = match elaborate(&sample.entry, &sample.sizes) {
        Ok(p) => p,
        Err(e) => {
            assert_eq!(e.0[0].code, crate::diag::Code::NotYetCompiled, "seed {seed}: {e}");
            return false;
        }
    };
    program.term.visit(&mut |t| {
        let name = format!("{:?}", t.op());
        let name = name.split('(').next().unwrap_or_default().to_owned();
        *seen.entry(name).or_insert(0) += 1;
    });
    let inputs = inputs(&sample.entry, &sample.sizes, seed);
    let mut plain = Plain { sample: &sample, vars: HashMap::new() };
    for p in &sample.entry.params {
        let v = structured(&plain, &p.ty, &inputs[p.name.as_str()]);
        plain.vars.insert(p.var, v);
    }
    let expected = flat(&[plain.eval(&sample.entry.body)]);
    for form in program.forms() {
        let found = eval::apply(&form, &program.env, &inputs, &Value::unit());
        let found = found.unwrap_or_else(|e| panic!("seed {seed}: {e}")).to_floats();
        let same = |a: &f64, b: &f64| a == b || a.is_nan() && b.is_nan();
        assert!(
            expected.len() == found.len() && expected.iter().zip(&found).all(|(a, b)| same(a, b)),
            "seed {seed}: {expected:?} became {found:?}\n{}\n{:?}",
            super::tests::show(&form),
            sample.entry.body
        );
    }
    true
}

#[test]
fn random_programs_mean_the_same() {
    let mut seen = HashMap::new();
    let compared = (0..4000).filter(|seed| agrees(*seed, &mut seen)).count();
    assert!(compared > 3500, "only {compared} programs were compared");
    for op in ["Cross", "Distl", "Cond", "Scan", "Reduce", "Index", "Zip", "Bimap", "Fork"] {
        let count = seen.get(op).copied().unwrap_or(0);
        assert!(count > 100, "`{op}` occurred {count} times only: {seen:?}");
    }
}
