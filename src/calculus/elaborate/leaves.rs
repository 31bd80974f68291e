//! Scalar functions that follow each other become one: `f . g` of two leaves is a leaf. Rules name what follows a product by
//! one variable, which stands for one factor. Sums and products of two elements take them in order: rules know `_1 * _2`, not
//! `_2 * _1`. For rules, too, a reduction beside elements comes first: `f . fork g (reduce op z)`
//! becomes `f' . fork (reduce op z) g`.

use super::build;
use crate::calculus::scalar::{SExpr, ScalarFn};
use crate::calculus::term::{Op, Term, TypeError};
use crate::calculus::ty::Ty;
use crate::lang::typed::ScalarOp;

/// Most operations of a function that is written out at each use by the next one.
const WRITTEN_OUT: f64 = 4.0;

/// Returns the term with its scalar functions composed.
///
/// # Errors
/// Never for a well-typed term; building the parts repeats the type checks.
pub(super) fn together(t: &Term) -> Result<Term, TypeError> {
    let mut done: Vec<Term> = vec![];
    for f in t.chain().into_iter().rev() {
        let mut f = ordered(build::each_arg(&f, together)?);
        if let Some((user, fork)) =
            done.last().map(|first| swapped(&f, first)).transpose()?.flatten()
        {
            done.pop();
            done.push(fork);
            f = user;
        }
        let both = done.last().and_then(|first| composed(&f, first));
        if both.is_some() {
            done.pop();
        }
        done.push(both.unwrap_or(f));
    }
    done.reverse();
    Term::of_chain(&done)
}

/// Returns a sum or a product of two components of the argument with these in order.
fn ordered(f: Term) -> Term {
    let Op::Scalar(function) = f.op() else { return f };
    let SExpr::Op(op @ (ScalarOp::Add | ScalarOp::Mul), ty, args) = &function.body else {
        return f;
    };
    match &args[..] {
        [a, b] if a > b && is_component(a) && is_component(b) => {
            let body = SExpr::Op(*op, *ty, vec![b.clone(), a.clone()]);
            Term::scalar(ScalarFn { body, ..(**function).clone() })
        }
        _ => f,
    }
}

fn is_component(e: &SExpr) -> bool {
    match e {
        SExpr::Arg => true,
        SExpr::Proj(of, _) => is_component(of),
        _ => false,
    }
}

/// Returns a scalar function and the fork in front of it with the reduction of the fork first, if it is second.
fn swapped(user: &Term, fork: &Term) -> Result<Option<(Term, Term)>, TypeError> {
    let (Op::Scalar(f), Op::Fork) = (user.op(), fork.op()) else { return Ok(None) };
    let (a, b) = (&fork.args()[0], &fork.args()[1]);
    if build::reduces(a) || !build::reduces(b) {
        return Ok(None);
    }
    let swap = ScalarFn {
        dom: Ty::pair(&b.ty().cod, &a.ty().cod),
        cod: f.dom.clone(),
        body: SExpr::pair(SExpr::Arg.proj(true), SExpr::Arg.proj(false)),
    };
    Ok(Some((Term::scalar(f.after(&swap)), build::fork(b, a)?)))
}

fn composed(second: &Term, first: &Term) -> Option<Term> {
    let (Op::Scalar(second), Op::Scalar(first)) = (second.op(), first.op()) else { return None };
    let written_out = !first.body.has_loop() && first.body.operations() <= WRITTEN_OUT;
    written_out.then(|| Term::scalar(second.after(first)))
}
