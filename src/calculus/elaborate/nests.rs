//! Nests of maps: views move out of them. Between maps over scalars, `map (map f . distl) . v` becomes
//! `map (map f) . map distl . v`; and `map (join . map f)`, for any `f`, becomes `map join . map (map f)`.
//!
//! A view of every row is a view of the matrix, so this costs nothing, and the rules that share out a nest to work-items in
//! two or three dimensions see its maps one inside the other. Nests that read what a reduction computes stay as they are: the
//! rules that give a product what is done with its results want the views where they are.

use super::build::{self, reduces};
use crate::calculus::nesting::is_pure;
use crate::calculus::term::{MapKind, Op, Term, TypeError};

/// Returns the term with the views in its nests of maps moved out.
///
/// # Errors
/// Never for a well-typed term; building the parts repeats the type checks.
pub(super) fn perfect(t: &Term) -> Result<Term, TypeError> {
    let mut done: Vec<Term> = vec![];
    for f in t.chain().into_iter().rev() {
        let (f, after) = rest(build::each_arg(&f, perfect)?)?;
        let (nest, views) = if done.iter().any(reduces) { (f, None) } else { split(&f)? };
        done.extend(views);
        done.push(nest);
        done.extend(after);
    }
    done.reverse();
    Term::of_chain(&done)
}

/// Splits a nest of maps into the nest without the views that follow its inner map, and these views.
fn rest(f: Term) -> Result<(Term, Option<Term>), TypeError> {
    if *f.op() != Op::Map(MapKind::Plain) {
        return Ok((f, None));
    }
    let chain = f.args()[0].chain();
    let views = chain.iter().take_while(|f| f.is_view()).count();
    if views == 0 || chain.get(views).is_none_or(|f| *f.op() != Op::Map(MapKind::Plain)) {
        return Ok((f, None));
    }
    let part = |of: &[Term]| build::map(MapKind::Plain, &f.sizes()[0], &Term::of_chain(of)?);
    Ok((part(&chain[views..])?, Some(part(&chain[..views])?)))
}

/// Returns a nest of maps over scalars with its views moved out.
///
/// # Errors
/// Those of [`perfect`].
pub(super) fn perfect_nest(f: &Term) -> Result<Term, TypeError> {
    let (nest, views) = split(f)?;
    views.map_or(Ok(nest.clone()), |views| build::compose(&nest, &views))
}

/// Returns the term with what only rearranges moved out of nests of maps whose functions reduce rows, such as a softmax of the rows
/// of all matrices of a batch: a work-group for each row can then run the whole nest.
///
/// # Errors
/// Never for a well-typed term; building the parts repeats the type checks.
pub(super) fn rows(t: &Term) -> Result<Term, TypeError> {
    build::each_factor(t, |f| {
        let f = build::each_arg(&f, rows)?;
        if *f.op() != Op::Map(MapKind::Plain) {
            return Ok(f);
        }
        let chain = f.args()[0].chain();
        let [inner, before @ ..] = chain.as_slice() else { return Ok(f) };
        let goes_through_rows = *inner.op() == Op::Map(MapKind::Plain)
            && reduces(inner)
            && inner.args()[0].ty().dom.has_array()
            && !meets_pairs(inner);
        if before.is_empty() || !goes_through_rows || !before.iter().all(is_pure) {
            return Ok(f);
        }
        let map = |part: &Term| build::map(MapKind::Plain, &f.sizes()[0], part);
        build::compose(&map(inner)?, &map(&Term::of_chain(before)?)?)
    })
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
    if !is_nest || !before.iter().all(Term::is_view) {
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
            computes_scalars(inner) && before.iter().all(Term::is_view)
        }
        chain => {
            map.args()[0].ty().dom.is_scalar() && !chain.iter().any(|f| reduces(f) && has_arrays(f))
        }
    }
}

/// Whether a function goes through all pairs of rows, as a product does.
fn meets_pairs(f: &Term) -> bool {
    let mut pairs = false;
    f.visit(&mut |t| pairs |= *t.op() == Op::Cross);
    pairs
}

/// Whether a term makes or reads an array anywhere, as a loop over scalars does not.
fn has_arrays(t: &Term) -> bool {
    let mut found = false;
    t.visit(&mut |t| {
        found |= match t.op() {
            // The counter of a loop, and elements at computed places.
            Op::Iota | Op::Index | Op::Input(_) | Op::Compose | Op::Fork | Op::Bimap => false,
            _ => t.ty().cod.has_array(),
        };
    });
    found
}

#[cfg(test)]
mod tests {
    use super::super::texts::elaborated;
    use super::rows;

    #[test]
    fn rows_of_all_matrices_are_one_nest() {
        let text = "
            entry f [b][h][n][m][k] (s: [b][h][n][m]f32) (l: [b]i32) (w: [b][h][m][k]f32) : [b][h][n][k]f32 =
              map3 (\\s l w -> map2 (\\s w -> map (\\r ->
                let e = map2 (\\j x -> if j < l then exp x else 0) (iota m) r
                let z = sum e
                let p = map (/ z) e
                in map (\\c -> sum (map2 (*) p c)) (transpose w)) s) s w) s l w";
        let forms = elaborated(300, text).forms();
        // The number of each element stands between the heads and their rows.
        let between = forms.iter().find(|f| f.to_string().contains(". zip) . zip . fork (cross"));
        let moved = rows(between.expect("such a form")).expect("a term").to_string();
        assert!(moved.contains(". zip))) . map (map (zip . fork (cross"), "{moved}");
    }
}
