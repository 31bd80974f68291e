//! Computes the least work of a program, independent of its kernels: bytes read and written, and arithmetic.

use super::inputs::{bytes_of, input_bytes};
use super::program::{Program, Sizes};
use crate::calculus::scalar::SExpr;
use crate::calculus::size::SizeEnv;
use crate::calculus::term::{Op, Term};
use crate::diag::Result;
use crate::lang::typed::ScalarOp;
use crate::lang::types::ScalarType;

/// The least traffic and arithmetic of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Bytes for reading every input once and writing every result once.
    pub bytes: u64,
    /// The part of `bytes` that is read.
    pub read_bytes: u64,
    /// Operations on floats in the program as written; `fma` counts as two.
    pub flops: f64,
}

pub(super) fn work(program: &Program, sizes: &Sizes, term: &Term, env: &SizeEnv) -> Result<Work> {
    let read_bytes = input_bytes(program, sizes)?;
    let written =
        bytes_of(program, (&program.entry.body.ty, program.entry.span), sizes)?.unwrap_or(u64::MAX);
    let bytes = read_bytes.saturating_add(written);
    Ok(Work { bytes, read_bytes, flops: flops(term, env) })
}

/// Returns the float operations of one application of a term.
fn flops(t: &Term, env: &SizeEnv) -> f64 {
    let size = |i: usize| t.sizes().get(i).and_then(|s| s.eval(env).ok()).map_or(0.0, |n| n as f64);
    let inner: f64 = t.args().iter().map(|a| flops(a, env)).sum();
    let times = match t.op() {
        Op::Map(_) | Op::Scan(_) => size(0),
        // A reduction of n elements has n operations, since the neutral element is an operand too.
        Op::Reduce(_) => size(0),
        Op::ReducePart => size(0) * size(1),
        Op::ReduceLcl | Op::ScanLcl(_) => size(0),
        Op::Vectorize => size(0),
        Op::Histogram => size(1),
        Op::Scalar(f) => return scalar(&f.body),
        _ => 1.0,
    };
    times * inner
}

fn scalar(e: &SExpr) -> f64 {
    match e {
        SExpr::Arg | SExpr::Lit(_) | SExpr::Input(..) | SExpr::Size(..) | SExpr::Var(..) => 0.0,
        SExpr::Proj(a, _) => scalar(a),
        SExpr::Pair(a, b) | SExpr::Let(a, b) => scalar(a) + scalar(b),
        SExpr::Op(op, ty, args) => operation(*op, *ty) + args.iter().map(scalar).sum::<f64>(),
        // Only one branch is evaluated: the more expensive one counts.
        SExpr::If(c, a, b) => scalar(c) + scalar(a).max(scalar(b)),
        // The trip count is unknown here: one iteration counts.
        SExpr::For(a, b, c) | SExpr::While(a, b, c) => scalar(a) + scalar(b) + scalar(c),
    }
}

fn operation(op: ScalarOp, ty: ScalarType) -> f64 {
    use ScalarOp as S;
    match op {
        _ if !ty.is_float() => 0.0,
        S::Fma => 2.0,
        S::Cast(_) | S::Select | S::Not | S::And | S::Or => 0.0,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::Source;

    #[test]
    fn sums_and_products_count() {
        let text = "entry dot [n] (xs: [n]f32) (ys: [n]f32) : f32 = reduce (+) 0 (map2 (*) xs ys)";
        let program =
            Program::check(&Source::new("dot.pat", text), None).expect("the program is well-typed");
        let sizes = Sizes::from([("n".to_owned(), 10)]);
        let p = program.elaborate(&sizes).expect("all sizes have values");
        let w = work(&program, &sizes, &p.term, &p.env).expect("its operations can be counted");
        assert_eq!((w.bytes, w.read_bytes, w.flops), (84, 80, 20.0));
    }
}
