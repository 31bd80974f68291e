//! Views of products move behind the maps that follow them: `map f (join p)` is `join (map (map f) p)`, and
//! `map2 (map2 f) xs (transpose p)` is `transpose (map2 (map2 f) (transpose xs) p)`. Then the maps meet the elements of the product.
//!
//! The other arrays are brought into the order of the product by views, which cost nothing.

use super::core::{Ex, Kind, Lambda, Layout, Var};
use super::interchange::named;
use crate::calculus::size::Size;
use crate::calculus::ty::Ty;
use crate::lang::typed::Prim;

/// Returns a map as a view of a map over a product, if it goes through that view of the product.
pub(super) fn outward(
    e: &Ex,
    is_product: &dyn Fn(&Ex) -> bool,
    fresh: &mut dyn FnMut() -> Var,
) -> Option<Ex> {
    let Kind::Map(Prim::Map, g, args) = &e.kind else { return None };
    let view_of = |view: Prim| {
        args.iter().find_map(|a| match &a.kind {
            Kind::Prim(p, _, _, of) if *p == view => of.first().filter(|of| is_product(of)),
            _ => None,
        })
    };
    match g.body.ty.has_array() {
        false => joined(e, g, args, view_of(Prim::Join)?, fresh),
        true => {
            view_of(Prim::Transpose)?;
            exchanged(e, g, args, fresh)?.transpose()
        }
    }
}

/// Returns a map over the elements of all rows as a map over rows, joined.
fn joined(
    e: &Ex,
    g: &Lambda,
    args: &[Ex],
    product: &Ex,
    fresh: &mut dyn FnMut() -> Var,
) -> Option<Ex> {
    let (n, m) = lengths(&product.ty)?;
    let (mut params, mut each, mut rows) = (vec![], vec![], vec![]);
    for a in args {
        let all = match &a.kind {
            Kind::Prim(Prim::Join, _, _, of) if lengths(&of.first()?.ty)? == (n, m) => {
                of.first()?.clone()
            }
            _ => a.clone().split(n, m)?,
        };
        let name = named(&all.element_type()?, fresh);
        each.push(name.value(a.span));
        params.push(name);
        rows.push(all);
    }
    let inner = map(g.clone(), each, e)?;
    map(Lambda { params, body: Box::new(inner) }, rows, e)?.join()
}

/// Returns the nest of two maps with the maps exchanged: its result is turned.
fn exchanged(e: &Ex, g: &Lambda, args: &[Ex], fresh: &mut dyn FnMut() -> Var) -> Option<Ex> {
    let Kind::Map(Prim::Map, h, columns) = &g.body.kind else { return None };
    let own = g.own();
    let [mut outer, mut inner] = [const { Vec::<(Layout, Ex)>::new() }; 2];
    let mut whole = vec![false; args.len()];
    for (p, column) in h.params.iter().zip(columns) {
        let of =
            |q: &Layout| matches!((q, &column.kind), (Layout::Var(q, _), Kind::Var(v)) if q == v);
        match g.params.iter().position(of) {
            // The rows of a matrix become columns.
            Some(k) => {
                let Kind::Var(row) = column.kind else { return None };
                if g.body.uses(row) != 1 {
                    return None;
                }
                whole[k] = true;
                let turned = match &args[k].kind {
                    Kind::Prim(Prim::Transpose, _, _, of) => of.first()?.clone(),
                    _ => args[k].clone().transpose()?,
                };
                let name = named(&turned.element_type()?, fresh);
                inner.push((p.clone(), name.value(e.span)));
                outer.push((name, turned));
            }
            None if column.free().is_disjoint(&own) => outer.push((p.clone(), column.clone())),
            None => return None,
        }
    }
    for ((p, a), _) in g.params.iter().zip(args).zip(&whole).filter(|(_, whole)| !**whole) {
        // What is computed would be computed for each of the other rows.
        if a.element_type()?.has_array() || !a.is_free_of_cost() {
            return None;
        }
        inner.push((p.clone(), a.clone()));
    }
    let each = |parts: Vec<(Layout, Ex)>, body: Ex| {
        let (params, arrays): (Vec<Layout>, Vec<Ex>) = parts.into_iter().unzip();
        map(Lambda { params, body: Box::new(body) }, arrays, e)
    };
    let body = each(inner, (*h.body).clone())?;
    each(outer, body)
}

/// Returns the lengths of a matrix.
fn lengths(ty: &Ty) -> Option<(&Size, &Size)> {
    let Ty::Array(n, row) = ty else { return None };
    let Ty::Array(m, _) = &**row else { return None };
    Some((n, m))
}

/// Returns the map of a function over arrays.
fn map(f: Lambda, arrays: Vec<Ex>, like: &Ex) -> Option<Ex> {
    let Ty::Array(n, _) = &arrays.first()?.ty else { return None };
    let ty = Ty::array(n, &f.body.ty);
    Some(Ex::new(Kind::Map(Prim::Map, f, arrays), ty, like.span))
}
