//! Sums of products begin with what is no product, so that a compiler contracts every product with an addition: of
//! `x * x + y * y + c` one product would stand alone, of `c + x * x + y * y` none does. Only where
//! floating-point operations may be reassociated.

use super::ir::{Block, ElemTy, Expr, Kernel};
use super::walk::{rebuild, rebuilt};
use crate::lang::typed::ScalarOp;

/// Orders the sums of a kernel.
pub fn sums(k: &mut Kernel) {
    block(&mut k.body);
}

fn block(b: &mut Block) {
    for s in b {
        rebuild(s, &mut expr);
        s.blocks_mut().into_iter().for_each(block);
    }
}

fn expr(e: &Expr) -> Expr {
    let e = rebuilt(e, &mut |e, _| expr(e));
    let Expr::Op(ScalarOp::Add, t, _) = &e else { return e };
    if !t.scalar.is_float() {
        return e;
    }
    let mut terms = vec![];
    summands(&e, *t, &mut terms);
    let is_product = |e: &Expr| matches!(e, Expr::Op(ScalarOp::Mul, ..));
    let Some(plain) = terms.iter().position(|e| !is_product(e)).filter(|p| *p > 0) else {
        return e;
    };
    terms[..=plain].rotate_right(1);
    let sum = terms.into_iter().reduce(|a, b| Expr::Op(ScalarOp::Add, *t, vec![a, b]));
    sum.unwrap_or(e)
}

/// What a sum adds up, from left to right.
fn summands(e: &Expr, t: ElemTy, out: &mut Vec<Expr>) {
    match e {
        Expr::Op(ScalarOp::Add, u, es) if *u == t => es.iter().for_each(|e| summands(e, t, out)),
        e => out.push(e.clone()),
    }
}
