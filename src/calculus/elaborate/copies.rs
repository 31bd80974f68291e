//! A program that only rearranges has no pattern that rules could share out. If it turns a matrix, or if its elements are narrower than
//! the words that a work-item stores, its result is copied by a map of the identity, so that rules decide how: element by element, in
//! vectors, or tile by tile.

use crate::calculus::scalar::{SExpr, ScalarFn};
use crate::calculus::term::{MapKind, Op, Term, TypeError};
use crate::calculus::ty::Ty;

/// Returns the term with its result copied by maps, if it is an array of scalars and the term only rearranges, and turns or has narrow
/// elements.
///
/// # Errors
/// Never for a well-typed term; building the parts repeats the type checks.
pub(super) fn copied(t: Term) -> Result<Term, TypeError> {
    let mut turns = false;
    t.visit(&mut |t| turns |= *t.op() == Op::Transpose);
    let (mut lengths, mut element) = (vec![], &t.ty().cod);
    while let Ty::Array(n, inner) = element {
        lengths.push(n.clone());
        element = inner;
    }
    let narrow = matches!(element, Ty::Scalar(t) if t.bytes() < 4);
    if !(turns || narrow) || !t.is_view() || !element.is_scalar() {
        return Ok(t);
    }
    let (dom, cod) = (element.clone(), element.clone());
    let copy = Term::scalar(ScalarFn { dom, cod, body: SExpr::Arg });
    let maps = lengths
        .into_iter()
        .rev()
        .try_fold(copy, |f, n| Term::new(Op::Map(MapKind::Plain), vec![n], vec![], vec![f]))?;
    maps.after(&t)
}
