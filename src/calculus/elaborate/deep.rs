//! A form in which the outer maps of a deep nest are one.
//!
//! The rules share out three maps that stand one inside the other. In a nest of four, such as the images of a batch with their
//! channels, rows and columns, the innermost is left to a work-item, and neighbouring work-items access elements that are a row
//! apart. `map (map f . v)` over a batch, with a view `v`, becomes `split m . map f . join . map v`, which has one map less.
//! The first form keeps all maps, since what the outer one shares may be worth more.

use super::build;
use crate::calculus::term::{MapKind, Op, Term, TypeError};

/// Most maps of a nest that are shared out.
const SHARED: usize = 3;

/// Returns the term with at most three maps in each nest; `None` if it has no deeper one.
///
/// # Errors
/// Never for a well-typed term; building the parts repeats the type checks.
pub(super) fn outer_maps_together(t: &Term) -> Result<Option<Term>, TypeError> {
    let mut changed = false;
    let out = together(t, &mut changed)?;
    Ok(changed.then_some(out))
}

fn together(t: &Term, changed: &mut bool) -> Result<Term, TypeError> {
    build::each_factor(t, |f| match one_less(&f)? {
        Some(fewer) => {
            *changed = true;
            together(&fewer, changed)
        }
        None if *f.op() == Op::Map(MapKind::Plain) => Ok(f),
        None => build::each_arg(&f, |arg| together(arg, changed)),
    })
}

/// Returns a map that is a nest with its two outer maps together; `None` if they can be shared out as they are.
fn one_less(f: &Term) -> Result<Option<Term>, TypeError> {
    let Some((inner, views)) = in_nest(f).filter(|_| depth(f) > SHARED) else { return Ok(None) };
    let (n, m) = (&f.sizes()[0], &inner.sizes()[0]);
    let rows = build::mapped(n, &views, &Term::id(&f.ty().dom))?;
    let all = build::view(Op::Join, &rows)?;
    let all = build::compose(&build::map(MapKind::Plain, &n.mul(m), &inner.args()[0])?, &all)?;
    build::apply(Op::Split, std::slice::from_ref(m), vec![], &all).map(Some)
}

/// Returns the number of maps that stand one inside the other, with views between them.
fn depth(f: &Term) -> usize {
    let inside = |f: &Term| in_nest(f).map_or(0, |(inner, _)| depth(&inner));
    usize::from(*f.op() == Op::Map(MapKind::Plain)) + inside(f)
}

/// Returns the map that computes the results of a map's function, and the views that come before it.
fn in_nest(f: &Term) -> Option<(Term, Vec<Term>)> {
    if *f.op() != Op::Map(MapKind::Plain) {
        return None;
    }
    let chain = f.args()[0].chain();
    let [inner, views @ ..] = chain.as_slice() else { return None };
    let is_nest = *inner.op() == Op::Map(MapKind::Plain) && views.iter().all(only_moves);
    is_nest.then(|| (inner.clone(), views.to_vec()))
}

/// Whether a term only rearranges, or adds constants, such as padding.
fn only_moves(t: &Term) -> bool {
    let moves = t.op().is_view() || t.op().is_frame();
    t.is_constant() || moves && t.args().iter().all(only_moves)
}
