//! Reorders sums of products so that a compiler can contract every product with an addition.
//!
//! A sum should begin with a summand that is not a product: in `x * x + y * y + c` one product is
//! left without an addition, in `c + x * x + y * y` none is. The pass runs only if floating-point
//! operations may be reassociated.

use crate::kernel::ir::walk::{rebuild_all, rebuilt};
use crate::kernel::ir::{ElemTy, Expr, Kernel};
use crate::lang::typed::ScalarOp;

/// Reorders the sums of a kernel.
pub fn sums(k: &mut Kernel) {
    rebuild_all(&mut k.body, &mut expr);
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

/// Collects the summands of a sum from left to right.
fn summands(e: &Expr, t: ElemTy, out: &mut Vec<Expr>) {
    match e {
        Expr::Op(ScalarOp::Add, u, es) if *u == t => es.iter().for_each(|e| summands(e, t, out)),
        e => out.push(e.clone()),
    }
}
