//! Nests of maps over scalars: views between the maps move out of the nest, `map (map f . distl) . v` becomes
//! `map (map f) . map distl . v`.
//!
//! A view of every row is a view of the matrix, so this costs nothing, and the rules that share out a nest to work-items in
//! two or three dimensions see its maps one inside the other. Nests that read what a reduction computes stay as they are: the
//! rules that give a product what is done with its results want the views where they are.

use super::build;
use crate::calculus::term::{MapKind, Op, Term, TypeError};

/// Returns the term with the views in its nests of maps moved out.
///
/// # Errors
/// Never for a well-typed term; building the parts repeats the type checks.
pub(super) fn perfect(t: &Term) -> Result<Term, TypeError> {
    let mut done: Option<Term> = None;
    for f in t.chain().into_iter().rev() {
        let args = f.args().iter().map(perfect).collect::<Result<Vec<_>, _>>()?;
        let f = Term::new(f.op().clone(), f.sizes().to_vec(), f.tys().to_vec(), args)?;
        let reduced = done.as_ref().is_some_and(reduces);
        let (f, views) = if reduced { (f, None) } else { split(&f)? };
        for part in views.into_iter().chain([f]) {
            done = Some(match done {
                None => part,
                Some(before) => part.after(&before)?,
            });
        }
    }
    Ok(done.unwrap_or_else(|| Term::id(&t.ty().dom)))
}

/// Splits a nest of maps over scalars into the nest without views, and what the views come to, if it has any.
fn split(f: &Term) -> Result<(Term, Option<Term>), TypeError> {
    let whole = || Ok((f.clone(), None));
    if *f.op() != Op::Map(MapKind::Plain) {
        return whole();
    }
    let chain = f.args()[0].chain();
    let [inner, before @ ..] = chain.as_slice() else { return whole() };
    let is_nest = *inner.op() == Op::Map(MapKind::Plain) && computes_scalars(inner);
    if !is_nest || !before.iter().all(is_view) {
        return whole();
    }
    let (nest, views) = split(inner)?;
    let views: Vec<Term> =
        views.iter().flat_map(Term::chain).chain(before.iter().cloned()).collect();
    if views.is_empty() {
        return whole();
    }
    let n = &f.sizes()[0];
    let map = |f: &Term| build::map(MapKind::Plain, n, f);
    Ok((map(&nest)?, Some(map(&Term::of_chain(&views)?)?)))
}

/// Whether a map, or a nest of maps with views between them, computes scalars and nothing else.
fn computes_scalars(map: &Term) -> bool {
    let chain = map.args()[0].chain();
    match chain.as_slice() {
        [inner, before @ ..] if *inner.op() == Op::Map(MapKind::Plain) => {
            computes_scalars(inner) && before.iter().all(is_view)
        }
        chain => map.args()[0].ty().dom.is_scalar() && chain.iter().all(|f| !reduces(f)),
    }
}

fn is_view(f: &Term) -> bool {
    match f.op() {
        Op::Fork | Op::Bimap | Op::Map(MapKind::Plain) => {
            f.args().iter().all(|a| a.chain().iter().all(is_view))
        }
        op => op.is_view() || matches!(op, Op::Id | Op::Fst | Op::Snd),
    }
}

/// Whether a term contains a reduction, a scan, or what else goes through an array.
fn reduces(t: &Term) -> bool {
    let mut found = false;
    t.visit(&mut |t| {
        found |= matches!(
            t.op(),
            Op::Reduce(_) | Op::ReducePart | Op::Scan(_) | Op::Histogram | Op::Fold | Op::While
        );
    });
    found
}
