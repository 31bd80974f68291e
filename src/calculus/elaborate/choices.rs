//! Choices between rows, element by element.
//!
//! In the function of a map, `if c then table[i] else replicate n 0` becomes an array of `n` elements, each of which is chosen. Then the
//! elements are shared out to work-items like those of any map, no row is stored, and what follows is fused. This is done if
//! an element of either side is read, or computed, for itself. The side that is not chosen is not read, so it may be
//! out of its array.

use super::core::{Ex, Kind, Lambda, Layout, Var};
use super::elements::{bound_within, indexed};
use super::interchange::named;
use super::views::place_in;
use crate::calculus::size::SizeEnv;
use crate::calculus::ty::Ty;
use crate::lang::typed::Prim;

/// Largest side of a choice, in nodes, which each element computes.
const LARGEST: usize = 64;

/// Changes the choices between rows in the functions of maps.
pub(super) fn by_element(mut e: Ex, env: &SizeEnv, fresh: &mut dyn FnMut() -> Var) -> Ex {
    walk(&mut e, false, env, fresh);
    e
}

fn walk(e: &mut Ex, in_map: bool, env: &SizeEnv, fresh: &mut dyn FnMut() -> Var) {
    let is_map = matches!(e.kind, Kind::Map(Prim::Map, ..) | Kind::Prim(Prim::Generate, ..));
    e.parts_mut().into_iter().for_each(|part| walk(part, in_map || is_map, env, fresh));
    if let Kind::If(c, yes, no) = &e.kind
        && in_map
        && matches!(e.ty, Ty::Array(..))
    {
        let (mut lets, mut condition) = (vec![], (**c).clone());
        if !condition.may_be_repeated() {
            let name = named(&condition.ty, fresh);
            let value = std::mem::replace(&mut condition, name.value(c.span));
            lets.push((name, value));
        }
        if let Some(all) = chosen(&condition, yes, no, env, fresh) {
            *e = all.after(lets);
        }
    }
}

/// Returns the array of the elements that are chosen of two arrays.
fn chosen(c: &Ex, yes: &Ex, no: &Ex, env: &SizeEnv, fresh: &mut dyn FnMut() -> Var) -> Option<Ex> {
    let Ty::Array(n, element_ty) = &yes.ty else {
        return (!yes.ty.has_array()).then(|| Ex::choice(c.clone(), yes.clone(), no.clone()));
    };
    let counter = place_in(n, env);
    let i = named(&counter, fresh);
    let at = i.value(yes.span);
    let mut sides = [element(yes, &at, element_ty)?, element(no, &at, element_ty)?];
    let mut arrays = elements_of_arrays(&mut sides, &at, fresh);
    let [yes, no] = sides;
    let body = chosen(c, &yes, &no, env, fresh)?;
    arrays.push((i, Ex::iota(n, &counter, body.span)));
    Ex::map_of(body, arrays.iter().map(|(p, array)| (p, array)), fresh)
}

/// Replaces the elements that both sides read of whole arrays at the counter `at` by names, for the elements of a map. They are in
/// the array, whatever the condition. Returns the names with the arrays.
fn elements_of_arrays(
    sides: &mut [Ex; 2],
    at: &Ex,
    fresh: &mut dyn FnMut() -> Var,
) -> Vec<(Layout, Ex)> {
    let mut read: Vec<(Ex, Ex)> = vec![];
    for side in &*sides {
        let inner = bound_within(side);
        indexed(side, &mut |array, place| {
            if place.kind == at.kind
                && array.is_free_of_cost()
                && inner.is_disjoint(&array.free())
                && !read.iter().any(|(a, _)| a.kind == array.kind)
                && let Some(ty) = array.element_type()
            {
                let element = Kind::Index(Box::new(array.clone()), Box::new(place.clone()));
                read.push((array.clone(), Ex::new(element, ty, place.span)));
            }
        });
    }
    let named = |(array, element): (Ex, Ex)| {
        let name = named(&element.ty, fresh);
        sides.iter_mut().for_each(|side| {
            side.replace(&element, &name.value(element.span));
        });
        (name, array)
    };
    read.into_iter().map(named).collect()
}

/// Returns element `at` of an array, if it is read or computed for itself.
pub(super) fn element(e: &Ex, at: &Ex, ty: &Ty) -> Option<Ex> {
    if e.size() > LARGEST {
        return None;
    }
    match &e.kind {
        Kind::Prim(Prim::Replicate, _, _, args) => args.first().filter(|x| is_cheap(x)).cloned(),
        Kind::Let(p, value, body) if value.is_pure_scalar() && is_cheap(value) => {
            Some(element(body, at, ty)?.bound(p.clone(), (**value).clone()))
        }
        Kind::If(c, yes, no) if c.may_be_repeated() => {
            Some(Ex::choice((**c).clone(), element(yes, at, ty)?, element(no, at, ty)?))
        }
        Kind::Map(Prim::Map, f, args) if f.body.ty.has_array() => {
            let mut body = (*f.body).clone();
            for (p, arg) in f.params.iter().zip(args) {
                let (Layout::Var(v, _), Ty::Array(_, t)) = (p, &arg.ty) else { return None };
                body.put(*v, &element(arg, at, t)?);
            }
            Some(body)
        }
        Kind::Map(Prim::Map, f, args) if is_cheap_of_scalars(f) => {
            let mut body = (*f.body).clone();
            for (p, arg) in f.params.iter().zip(args).rev() {
                let Ty::Array(_, t) = &arg.ty else { return None };
                body = body.bound(p.clone(), element(arg, at, t)?);
            }
            Some(body)
        }
        _ if e.is_free_of_cost() || e.is_row_at_place() => {
            let kind = Kind::Index(Box::new(e.clone()), Box::new(at.clone()));
            Some(Ex::new(kind, ty.clone(), e.span))
        }
        _ => None,
    }
}

/// Whether each element may compute an expression for itself: it has no pattern and no loop.
fn is_cheap(e: &Ex) -> bool {
    let repeats = matches!(e.kind, Kind::Map(..) | Kind::For(..) | Kind::While(..))
        || matches!(e.kind, Kind::Prim(..)) && !e.is_free_of_cost();
    !repeats && e.parts().iter().all(|(_, part)| is_cheap(part))
}

/// Whether a function of scalars may be computed for each element that is read.
fn is_cheap_of_scalars(f: &Lambda) -> bool {
    let scalar = |p: &Layout| p.vars().iter().all(|(_, t)| t.is_scalar());
    f.params.iter().all(scalar) && is_cheap(&f.body)
}
