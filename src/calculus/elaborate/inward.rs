//! Views of what maps compute become maps over views: `reverse (map f xs)` is `map f (reverse xs)`, and
//! `join (map (\r -> map f r) rows)` is `map f (join rows)`. Then maps of equal length are seen to be so (`beside`).
//!
//! (Terms are brought into this form later, too, by `natural`. Here, the functions still have names.)

use super::core::{Ex, Kind, Lambda, Layout, Var};
use super::interchange::named;
use crate::calculus::ty::Ty;
use crate::lang::typed::Prim;

/// Moves views inside of maps, in an expression and in the arrays that it is computed from.
pub(super) fn inward(e: &mut Ex, fresh: &mut dyn FnMut() -> Var) {
    match &mut e.kind {
        Kind::Map(Prim::Map, _, args) | Kind::Prim(_, _, _, args) => {
            args.iter_mut().for_each(|a| inward(a, fresh));
        }
        _ => return,
    }
    if let Some(moved) = moved(e, fresh) {
        *e = moved;
    }
}

/// Returns the map that a view of a map comes to.
fn moved(e: &Ex, fresh: &mut dyn FnMut() -> Var) -> Option<Ex> {
    let Kind::Prim(view, funs, sizes, views) = &e.kind else { return None };
    let ([], [map]) = (funs.as_slice(), views.as_slice()) else { return None };
    let Kind::Map(Prim::Map, f, args) = &map.kind else { return None };
    match view {
        Prim::Reverse | Prim::Rotate | Prim::Take | Prim::Drop => {
            let Ty::Array(n, _) = &e.ty else { return None };
            let of = |array: &Ex| {
                let ty = Ty::array(n, &array.element_type()?);
                let kind = Kind::Prim(*view, vec![], sizes.clone(), vec![array.clone()]);
                Some(Ex::new(kind, ty, array.span))
            };
            let args = args.iter().map(of).collect::<Option<_>>()?;
            Some(Ex::new(Kind::Map(Prim::Map, f.clone(), args), e.ty.clone(), e.span))
        }
        Prim::Join => {
            let (g, rows) = nest(f, args)?;
            let rows = rows.into_iter().map(Ex::join).collect::<Option<_>>()?;
            Some(Ex::new(Kind::Map(Prim::Map, g.clone(), rows), e.ty.clone(), e.span))
        }
        Prim::Split => {
            let Ty::Array(n, row) = &e.ty else { return None };
            let Ty::Array(m, _) = &**row else { return None };
            let rows = args.iter().map(|a| a.clone().split(n, m)).collect::<Option<_>>()?;
            nested(f, rows, e, fresh)
        }
        // Only where both turn the same: else the map would read, or write, columns.
        Prim::Transpose => {
            let (g, rows) = nest(f, args)?;
            let back = |array: Ex| match array.kind {
                Kind::Prim(Prim::Transpose, _, _, mut of) => of.pop(),
                _ => None,
            };
            nested(g, rows.into_iter().map(back).collect::<Option<_>>()?, e, fresh)
        }
        _ => None,
    }
}

/// Returns the function of the elements of rows, if a map of rows is a map of their elements, and the arrays of rows.
fn nest<'e>(f: &'e Lambda, args: &[Ex]) -> Option<(&'e Lambda, Vec<Ex>)> {
    let Kind::Map(Prim::Map, g, rows) = &f.body.kind else { return None };
    let own = f.own();
    if !g.captures().is_disjoint(&own) {
        return None;
    }
    let whole = |row: &Ex| {
        let param =
            |p: &Layout| matches!((p, &row.kind), (Layout::Var(p, _), Kind::Var(v)) if p == v);
        Some(args[f.params.iter().position(param)?].clone())
    };
    Some((g, rows.iter().map(whole).collect::<Option<_>>()?))
}

/// Returns the map of a function of elements over arrays of rows; it has the type of `like`.
fn nested(g: &Lambda, rows: Vec<Ex>, like: &Ex, fresh: &mut dyn FnMut() -> Var) -> Option<Ex> {
    let row = like.element_type()?;
    let types = rows.iter().map(Ex::element_type).collect::<Option<Vec<_>>>()?;
    let params: Vec<Layout> = types.iter().map(|t| named(t, fresh)).collect();
    let each = params.iter().map(|p| p.value(like.span)).collect();
    let body = Box::new(Ex::new(Kind::Map(Prim::Map, g.clone(), each), row, like.span));
    let kind = Kind::Map(Prim::Map, Lambda { params, body }, rows);
    Some(Ex::new(kind, like.ty.clone(), like.span))
}
