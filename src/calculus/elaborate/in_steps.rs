//! Elements that a loop computes where it reads them.
//!
//! In the function of a map, `let xs = map f ys in loop s for i < n do g s xs[i]` becomes `loop s for i < n do g s (f ys[i])`: no row is stored,
//! and what `f` takes from arrays that all rows share is read from these. Each step reads one element, so nothing is
//! computed twice. Reductions stay in front of the loop, as arrays of their own: products have their tiles there.

use super::choices::element;
use super::core::{Ex, Kind, Layout, Var};
use super::cut::Cut;
use super::hoist::reduces;
use super::interchange::named;
use crate::calculus::ty::Ty;
use crate::lang::typed::Prim;

/// Most reductions of an element.
const REDUCTIONS: usize = 4;

/// Changes the loops in the functions of maps.
pub(super) fn where_read(mut e: Ex, fresh: &mut dyn FnMut() -> Var) -> Ex {
    walk(&mut e, false, fresh);
    e
}

fn walk(e: &mut Ex, in_map: bool, fresh: &mut dyn FnMut() -> Var) {
    // The program itself has chosen what a low-level map stores.
    if matches!(e.kind, Kind::Map(p, ..) if p != Prim::Map) {
        return;
    }
    let is_map = matches!(e.kind, Kind::Map(..) | Kind::Prim(Prim::Generate, ..));
    e.parts_mut().into_iter().for_each(|part| walk(part, in_map || is_map, fresh));
    if !in_map {
        return;
    }
    let Kind::Let(Layout::Var(v, Ty::Array(_, t)), value, body) = &e.kind else { return };
    if !t.has_array()
        && matches!(value.kind, Kind::Map(Prim::Map, ..))
        && let Some(Reads { times: 1, at: Some(at) }) = reads(body, *v)
        && let Some((lets, map)) = without_reductions(value, fresh)
        && let Some(element) = element(&map, &at, t)
    {
        let mut body = (**body).clone();
        put(&mut body, *v, &element);
        *e = body.after(lets);
    }
}

/// How often a step of a loop reads an array at the loop's counter, and the counter.
#[derive(Default)]
struct Reads {
    times: usize,
    at: Option<Ex>,
}

impl Reads {
    fn and(self, other: Reads) -> Reads {
        Reads { times: self.times + other.times, at: self.at.or(other.at) }
    }
}

/// Returns how the loops of an expression read an array; `None` if it is needed for anything else.
fn reads(e: &Ex, v: Var) -> Option<Reads> {
    match &e.kind {
        Kind::Var(other) if *other == v => None,
        Kind::For(init, bound, Layout::Var(counter, _), _, body) => {
            let step = reads_of_step(body, v, *counter)?;
            Some(reads(init, v)?.and(reads(bound, v)?).and(step))
        }
        _ => all(e, v, &|part| reads(part, v)),
    }
}

fn reads_of_step(e: &Ex, v: Var, counter: Var) -> Option<Reads> {
    match &e.kind {
        Kind::Index(array, at) if array.kind == Kind::Var(v) && at.kind == Kind::Var(counter) => {
            Some(Reads { times: 1, at: Some((**at).clone()) })
        }
        Kind::Var(other) if *other == v => None,
        _ => all(e, v, &|part| reads_of_step(part, v, counter)),
    }
}

/// Joins what is found in the parts of an expression; `None` if a part that may be computed several times mentions the array.
fn all(e: &Ex, v: Var, of: &dyn Fn(&Ex) -> Option<Reads>) -> Option<Reads> {
    let once = matches!(e.kind, Kind::Let(..));
    e.parts().into_iter().try_fold(Reads::default(), |found, (bound, part)| {
        Some(found.and(match bound.is_empty() || once {
            true => of(part)?,
            false if part.uses(v) == 0 => Reads::default(),
            false => return None,
        }))
    })
}

/// Returns a map with the reductions of its function in arrays, and the names of these and of its other arrays.
fn without_reductions(map: &Ex, fresh: &mut dyn FnMut() -> Var) -> Option<(Vec<(Layout, Ex)>, Ex)> {
    let (mut lets, mut map) = (vec![], map.clone());
    let scalar = |part: &Ex| part.ty.is_scalar() && reduces(&part.kind);
    for _ in 0..REDUCTIONS {
        let Some((cut, reduction)) = Cut::at(&map, &scalar, fresh) else { break };
        let array = cut.array(reduction, fresh)?;
        let name = named(&array.ty, fresh);
        let (outside, rest) = cut.with(vec![name.value(map.span)], false, fresh)?.apart_from_lets();
        lets.extend(outside);
        lets.push((name, array));
        map = rest;
    }
    let Kind::Map(Prim::Map, _, args) = &mut map.kind else { return None };
    for arg in args.iter_mut().filter(|arg| !arg.is_free_of_cost()) {
        let name = named(&arg.ty, fresh);
        let value = std::mem::replace(arg, name.value(arg.span));
        lets.push((name, value));
    }
    Some((lets, map))
}

/// Puts the element in the place of the read.
fn put(e: &mut Ex, v: Var, element: &Ex) {
    if matches!(&e.kind, Kind::Index(array, _) if array.kind == Kind::Var(v)) {
        *e = element.clone();
        return;
    }
    e.parts_mut().into_iter().for_each(|part| put(part, v, element));
}
