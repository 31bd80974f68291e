//! Functions on elements as one expression, however they are composed: `(+) . bimap id abs` and
//! `\(a, b) -> a + abs b` give the same expression. A vector counts as one of its elements; the types distinguish
//! the two.

use crate::calculus::scalar::{Lit, SExpr};
use crate::calculus::term::{Op, Term};
use crate::calculus::ty::Ty;
use crate::lang::types::ScalarType;

/// Longest expression that is built, in nodes.
const LONGEST: usize = 1024;

/// Whether functions between these types can be turned into expressions.
pub(super) fn on_elements(dom: &Ty, cod: &Ty) -> bool {
    (*dom == Ty::Unit || dom.is_element()) && cod.is_element()
}

/// Returns the expression of an operator with expressions for its arguments; `None` if it does not work on
/// elements.
pub(super) fn apply(op: &Op, tys: &[Ty], args: &[SExpr]) -> Option<SExpr> {
    let out = match (op, args) {
        (Op::Id, _) => SExpr::Arg,
        (Op::Fst, _) => SExpr::Arg.proj(false),
        (Op::Snd, _) => SExpr::Arg.proj(true),
        // The argument stands for the unit: no function looks at a unit.
        (Op::Bang, _) => SExpr::Arg,
        (Op::Lit(l), _) => SExpr::Lit(*l),
        (Op::Input(name), _) => match &tys[1] {
            Ty::Scalar(t) => SExpr::Input(name.clone(), 0, *t),
            _ => return None,
        },
        (Op::Scalar(f), _) => f.body.at(&SExpr::Arg),
        (Op::Splat, _) => SExpr::Arg,
        (Op::Vectorize, [f]) => f.clone(),
        (Op::Fork, [f, g]) => SExpr::joined(f.clone(), g.clone()),
        (Op::Bimap, [f, g]) => {
            SExpr::joined(f.at(&SExpr::Arg.proj(false)), g.at(&SExpr::Arg.proj(true)))
        }
        (Op::Cond, [p, f, g]) => SExpr::chosen(p.clone(), f.clone(), g.clone()),
        (Op::Compose, [f, g]) => f.at(g),
        _ => return None,
    };
    (nodes(&out) <= LONGEST).then_some(out)
}

/// Returns the expression of a chain; the part that is applied last comes first.
pub(super) fn of_chain(chain: &[Term]) -> Option<SExpr> {
    chain.iter().rev().try_fold(SExpr::Arg, |inner, part| {
        let args = part.args().iter().map(|a| of_chain(&a.chain())).collect::<Option<Vec<_>>>()?;
        apply(&Op::Compose, &[], &[apply(part.op(), part.tys(), &args)?, inner])
    })
}

/// Returns the expression for an argument without masks: each pair with a truth value that `with` has and
/// `without` lacks is replaced by a pair with `true`.
pub(super) fn unmasked(e: &SExpr, with: &Ty, without: &Ty) -> SExpr {
    fn lift(with: &Ty, without: &Ty, arg: SExpr) -> SExpr {
        match (with, without) {
            (Ty::Pair(mask, x), _) if is_mask(mask, without) => {
                let yes = SExpr::Lit(Lit { ty: ScalarType::Bool, bits: 1 });
                SExpr::pair(yes, lift(x, without, arg))
            }
            (Ty::Pair(a, b), Ty::Pair(c, d)) => {
                let (first, second) = (arg.clone().proj(false), arg.proj(true));
                SExpr::joined(lift(a, c, first), lift(b, d, second))
            }
            _ => arg,
        }
    }
    e.at(&lift(with, without, SExpr::Arg))
}

/// Whether a pair of `mask` and an element type is a masked `other`.
pub(super) fn is_mask(mask: &Ty, other: &Ty) -> bool {
    is_truth(mask) && !matches!(other, Ty::Pair(a, _) if is_truth(a))
}

/// Whether the type is a truth value or a vector of them.
pub(super) fn is_truth(t: &Ty) -> bool {
    match t {
        Ty::Scalar(t) => *t == ScalarType::Bool,
        Ty::Vector(_, t) => is_truth(t),
        _ => false,
    }
}

fn nodes(e: &SExpr) -> usize {
    match e {
        SExpr::Arg | SExpr::Lit(_) | SExpr::Input(..) | SExpr::Size(..) | SExpr::Var(..) => 1,
        SExpr::Proj(e, _) => 1 + nodes(e),
        SExpr::Op(_, _, es) => 1 + es.iter().map(nodes).sum::<usize>(),
        SExpr::Pair(a, b) | SExpr::Let(a, b) => 1 + nodes(a) + nodes(b),
        SExpr::If(a, b, c) | SExpr::For(a, b, c) | SExpr::While(a, b, c) => {
            1 + nodes(a) + nodes(b) + nodes(c)
        }
    }
}
