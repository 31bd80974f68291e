//! Moves maps behind the views that follow them: `reverse . map f` becomes `map f . reverse` (naturality).
//!
//! Then the map meets the next map, and the two become one kernel without an array between them; and only the elements that
//! a view keeps are computed. Each step is right in one direction, so this is done once, before rewriting: as rules, both
//! forms of a reduction's argument would be rewritten in the e-graph.

use crate::calculus::size::Size;
use crate::calculus::term::{MapKind, Op, Term, TypeError};

/// Returns the term with its maps behind views.
///
/// # Errors
/// Never for a well-typed term; building the parts repeats the type checks.
pub(super) fn views_first(t: &Term) -> Result<Term, TypeError> {
    let mut done = vec![];
    for f in t.chain().into_iter().rev() {
        let args = f.args().iter().map(views_first).collect::<Result<Vec<_>, _>>()?;
        push(Term::new(f.op().clone(), f.sizes().to_vec(), f.tys().to_vec(), args)?, &mut done)?;
    }
    done.reverse();
    Term::of_chain(&done)
}

/// Adds a factor to a chain, given innermost first.
fn push(f: Term, chain: &mut Vec<Term>) -> Result<(), TypeError> {
    let swapped = match chain.last() {
        Some(last) => swapped(&f, last)?,
        None => None,
    };
    let Some(factors) = swapped else {
        chain.push(f);
        return Ok(());
    };
    chain.pop();
    factors.into_iter().filter(|t| *t.op() != Op::Id).try_for_each(|t| push(t, chain))
}

/// Returns what a view and the factor before it become, innermost first; `None` if nothing moves.
fn swapped(view: &Term, before: &Term) -> Result<Option<Vec<Term>>, TypeError> {
    let again = |after: &Term, written: &[Size]| {
        Term::on(view.op().clone(), written, &after.ty().cod, vec![])
    };
    let mapped = |f: &Term, view: &Term| {
        Term::on(Op::Map(MapKind::Plain), &[], &view.ty().cod, vec![f.clone()])
    };
    let first = |t: &Term| -> Result<(Term, Term), TypeError> {
        let chain = t.chain();
        let rest = match &chain[1..] {
            [] => Term::id(&t.ty().dom),
            rest => Term::of_chain(rest)?,
        };
        Ok((chain[0].clone(), rest))
    };
    match (view.op(), before.op()) {
        (Op::Reverse | Op::Rotate | Op::Take | Op::Drop, Op::Map(MapKind::Plain)) => {
            let written = if *view.op() == Op::Reverse { &[][..] } else { &view.sizes()[..1] };
            let view = again(&Term::id(&before.ty().dom), written)?;
            let map = mapped(&before.args()[0], &view)?;
            Ok(Some(vec![view, map]))
        }
        (Op::Join, Op::Map(MapKind::Plain)) => {
            let (inner, rest) = first(&before.args()[0])?;
            if *inner.op() != Op::Map(MapKind::Plain) {
                return Ok(None);
            }
            let rest = match rest.op() {
                Op::Id => Term::id(&before.ty().dom),
                _ => Term::on(Op::Map(MapKind::Plain), &[], &before.ty().dom, vec![rest])?,
            };
            let view = again(&rest, &[])?;
            let map = mapped(&inner.args()[0], &view)?;
            Ok(Some(vec![rest, view, map]))
        }
        (Op::Index | Op::Gather, Op::Fork | Op::Bimap) => {
            let (map, rest) = first(&before.args()[0])?;
            // Gathered elements may be more than there are: what is dear is computed before.
            let cheap = |f: &Term| matches!(f.op(), Op::Scalar(f) if !f.body.has_loop());
            let moves = *map.op() == Op::Map(MapKind::Plain)
                && (*view.op() == Op::Index || map.args()[0].chain().iter().all(cheap));
            if !moves {
                return Ok(None);
            }
            let args = vec![rest, before.args()[1].clone()];
            let before = Term::on(before.op().clone(), &[], &before.ty().dom, args)?;
            let view = again(&before, &[])?;
            let f = match view.op() {
                Op::Index => map.args()[0].clone(),
                _ => mapped(&map.args()[0], &view)?,
            };
            Ok(Some(vec![before, view, f]))
        }
        _ => Ok(None),
    }
}
