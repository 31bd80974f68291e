//! Maps that are cut at an expression of their function, so that the expression can stand outside of the map.
//!
//! `map (\x -> after x (e x)) xs` becomes `map2 after xs es`, where `es` is an array of what `e` gives for each element. How `es` is
//! computed is the caller's choice. What the function computes before the expression is an array of all elements, too.

use super::core::{Ex, Kind, Lambda, Layout, Var};
use super::interchange::named;
use crate::calculus::ty::Ty;
use crate::lang::typed::Prim;

/// A map without one expression of its function, which has a name there.
pub(super) struct Cut {
    f: Lambda,
    args: Vec<Ex>,
    /// What costs nothing, and is repeated in each part of the function that needs it.
    cheap: Vec<(Layout, Ex)>,
    /// Names of the arrays that the parts of the map share.
    outside: Vec<(Layout, Ex)>,
    name: Layout,
}

impl Cut {
    /// Cuts a map at the first expression of its function that `moves` chooses, outside of inner functions, branches and loops.
    /// Returns the expression, too. `None` if there is none.
    pub(super) fn at(
        map: &Ex,
        moves: &dyn Fn(&Ex) -> bool,
        fresh: &mut dyn FnMut() -> Var,
    ) -> Option<(Cut, Ex)> {
        let Kind::Map(Prim::Map, f, args) = &map.kind else { return None };
        let (mut f, mut args) = (f.clone(), args.clone());
        let (mut lets, mut found) = (vec![], None);
        take(&mut f.body, moves, &mut lets, &mut found, fresh);
        let (name, value) = found?;
        let mut outside = vec![];
        for arg in args.iter_mut().filter(|arg| !arg.is_free_of_cost()) {
            *arg = shared(arg.clone(), &mut outside, fresh);
        }
        let mut cut = Cut { f, args, cheap: vec![], outside, name };
        for (p, value) in lets {
            if value.is_free_of_cost() || value.may_be_repeated() {
                cut.cheap.push((p, value));
                continue;
            }
            let array = cut.array(value, fresh)?;
            let array = shared(array, &mut cut.outside, fresh);
            unbind(&mut cut.f.body, &p);
            cut.f.params.push(p);
            cut.args.push(array);
        }
        Some((cut, value))
    }

    /// Gives a name to a value that is computed outside of the map, of arrays that the cut gave.
    pub(super) fn bind(&mut self, name: Layout, value: Ex) {
        self.outside.push((name, value));
    }

    /// Returns the array of what an expression of the function gives for each element.
    pub(super) fn array(&self, e: Ex, fresh: &mut dyn FnMut() -> Var) -> Option<Ex> {
        self.array_with(&[], e, fresh)
    }

    /// The same for an expression that also uses elements of other arrays.
    pub(super) fn array_with(
        &self,
        others: &[(&Layout, &Ex)],
        e: Ex,
        fresh: &mut dyn FnMut() -> Var,
    ) -> Option<Ex> {
        let body = e.behind(self.cheap.iter(), fresh);
        let own = self.f.params.iter().zip(&self.args);
        map_by_parts(body, &others.iter().copied().chain(own).collect::<Vec<_>>(), false, fresh)
    }

    /// Returns the map with the arrays of the expression's components. With `apart`, components of its result that have nothing to
    /// compute in common are maps of their own, so that long rows are shared out.
    pub(super) fn with(
        self,
        components: Vec<Ex>,
        apart: bool,
        fresh: &mut dyn FnMut() -> Var,
    ) -> Option<Ex> {
        let Cut { mut f, mut args, outside, name, .. } = self;
        f.params.extend(parts_of(name, components.len())?);
        // Several maps may read a component, which is computed once.
        let mut named = vec![];
        args.extend(components.into_iter().map(|array| shared(array, &mut named, fresh)));
        let rows: Vec<_> = f.params.iter().zip(&args).collect();
        let all = map_by_parts(*f.body, &rows, apart, fresh)?;
        let all = named.into_iter().rev().fold(all, |mut all, (p, array)| {
            let Layout::Var(v, _) = &p else { return all };
            if all.uses(*v) > 1 && !array.is_free_of_cost() {
                return all.bound(p, array);
            }
            all.put(*v, &array);
            all
        });
        Some(all.after(outside))
    }
}

/// Returns the map of a function with this body over arrays. A component of the body that only rearranges rows is an array of its own:
/// a map would copy it. With `apart`, so is each component that has nothing to compute in common with another.
fn map_by_parts(
    body: Ex,
    rows: &[(&Layout, &Ex)],
    apart: bool,
    fresh: &mut dyn FnMut() -> Var,
) -> Option<Ex> {
    let (mut lets, mut last) = (vec![], &body);
    while let Kind::Let(p, value, body) = &last.kind {
        lets.push((p.clone(), (**value).clone()));
        last = body;
    }
    if let Kind::Pair(a, b) = &last.kind {
        let [a, b] = [a, b].map(|e| (**e).clone().behind(lets.iter(), fresh));
        let alone = apart && lets.is_empty() && [&a, &b].iter().any(|e| e.ty.has_array());
        if alone || rearranges(&a) || rearranges(&b) {
            let a = map_by_parts(a, rows, apart, fresh)?;
            return a.zip(map_by_parts(b, rows, apart, fresh)?);
        }
    }
    if let Some((_, array)) = rows.iter().find(|(p, _)| p.value(body.span).kind == body.kind) {
        return Some((*array).clone());
    }
    if let Some(map) = Ex::map_of(body.clone(), rows.iter().copied(), fresh) {
        return Some(map);
    }
    // It uses none of them.
    let (array, span) = (rows.last()?.1, body.span);
    let n = array.length()?.clone();
    let ty = Ty::array(&n, &body.ty);
    Some(Ex::new(Kind::Prim(Prim::Replicate, vec![], vec![n], vec![body]), ty, span))
}

/// Whether an expression gives arrays that exist already.
fn rearranges(e: &Ex) -> bool {
    match &e.kind {
        Kind::Let(_, value, body) => value.is_free_of_cost() && rearranges(body),
        _ => !e.ty.is_scalar() && e.is_free_of_cost(),
    }
}

/// Returns the names of that many components of a value.
fn parts_of(name: Layout, n: usize) -> Option<Vec<Layout>> {
    match (name, n) {
        (name, 1) => Some(vec![name]),
        (Layout::Pair(a, b), n) => {
            let mut out = vec![*a];
            out.extend(parts_of(*b, n.checked_sub(1)?)?);
            Some(out)
        }
        _ => None,
    }
}

/// Gives an array a name, and returns the name's value.
fn shared(array: Ex, outside: &mut Vec<(Layout, Ex)>, fresh: &mut dyn FnMut() -> Var) -> Ex {
    let v = fresh();
    let name = Ex::new(Kind::Var(v), array.ty.clone(), array.span);
    outside.push((Layout::Var(v, array.ty.clone()), array));
    name
}

/// Replaces the first expression that `moves` chooses by a name. Adds what is bound before it to `lets`.
fn take(
    e: &mut Ex,
    moves: &dyn Fn(&Ex) -> bool,
    lets: &mut Vec<(Layout, Ex)>,
    found: &mut Option<(Layout, Ex)>,
    fresh: &mut dyn FnMut() -> Var,
) {
    if found.is_some() {
        return;
    }
    if moves(e) {
        let name = named(&e.ty, fresh);
        let value = name.value(e.span);
        *found = Some((name, std::mem::replace(e, value)));
        return;
    }
    match &mut e.kind {
        Kind::Let(p, value, body) => {
            take(value, moves, lets, found, fresh);
            if found.is_none() {
                lets.push((p.clone(), (**value).clone()));
                take(body, moves, lets, found, fresh);
            }
        }
        Kind::Proj(whole, second) => {
            take(whole, moves, lets, found, fresh);
            if let Kind::Pair(a, b) = &whole.kind {
                *e = (**if *second { b } else { a }).clone();
            }
        }
        Kind::Pair(..) | Kind::Op(..) | Kind::Index(..) => {
            e.parts_mut().into_iter().for_each(|part| take(part, moves, lets, found, fresh));
        }
        Kind::Map(_, _, args) | Kind::Prim(_, _, _, args) => {
            args.iter_mut().for_each(|arg| take(arg, moves, lets, found, fresh));
        }
        _ => {}
    }
}

/// Removes the `let` of a parameter.
fn unbind(e: &mut Ex, of: &Layout) {
    match &mut e.kind {
        Kind::Let(p, _, body) if p == of => *e = (**body).clone(),
        _ => e.parts_mut().into_iter().for_each(|part| unbind(part, of)),
    }
}
