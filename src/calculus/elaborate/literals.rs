//! Literals of rows become rows of literals: `[map f xs, map g xs]` is the transpose of `map (\x -> [f x, g x]) xs`.
//!
//! A butterfly of a transform, or a rotation of vectors, computes two rows side by side from the same elements. In a function of a map, a literal
//! of such rows keeps the maps in it from being one nest with the map around them, so that one work-item would compute whole rows. A
//! map whose results are literals of scalars belongs to the nest, and reads its elements once for all rows.

use super::core::{Ex, Kind, Lambda, Layout, Var, is_view};
use super::interchange::{bind, named};
use crate::calculus::size::Size;
use crate::calculus::ty::Ty;
use crate::lang::typed::Prim;

/// Returns the program without literals of rows that are computed element by element.
pub(super) fn of_rows(mut e: Ex, fresh: &mut dyn FnMut() -> Var) -> Ex {
    walk(&mut e, fresh);
    e
}

fn walk(e: &mut Ex, fresh: &mut dyn FnMut() -> Var) {
    // The program itself chose where the functions of low-level patterns run.
    if !matches!(&e.kind, Kind::Map(prim, ..) if *prim != Prim::Map) {
        e.parts_mut().into_iter().for_each(|part| walk(part, fresh));
    }
    if let Some(rows) = transposed(e, fresh) {
        *e = rows;
    }
}

fn transposed(e: &Ex, fresh: &mut dyn FnMut() -> Var) -> Option<Ex> {
    let mut rows = vec![];
    elements(e, &mut rows)?;
    let n = rows.first()?.length()?.clone();
    let alike = |r: &&Ex| r.length() == Some(&n) && (r.is_free_of_cost() || is_by_element(r));
    let computed = rows.iter().any(|r| !r.is_free_of_cost());
    if rows.len() < 2 || !computed || !rows.iter().all(alike) {
        return None;
    }
    let (mut names, mut arrays): (Vec<Layout>, Vec<Ex>) = (vec![], vec![]);
    let mut element_of = |array: &Ex| {
        let known = arrays.iter().position(|a| a.kind == array.kind && a.is_free_of_cost());
        let k = match known {
            Some(k) => k,
            None => {
                names.push(named(&array.element_type()?, fresh));
                arrays.push(array.clone());
                arrays.len() - 1
            }
        };
        Some(names[k].value(array.span))
    };
    let mut each = vec![];
    for row in rows {
        each.push(match &row.kind {
            Kind::Map(Prim::Map, f, args) => {
                let args = args.iter().map(&mut element_of).collect::<Option<Vec<_>>>()?;
                let bindings = f.params.iter().cloned().zip(args).rev();
                bindings.fold((*f.body).clone(), |body, (p, value)| bind(p, value, body))
            }
            _ => element_of(row)?,
        });
    }
    let mut body = literal(e, &mut each.into_iter())?;
    // The elements may be rows themselves.
    if let Some(rows) = transposed(&body, fresh) {
        body = rows;
    }
    let ty = Ty::array(&n, &body.ty);
    let f = Lambda { params: names, body: Box::new(body) };
    Ex::new(Kind::Map(Prim::Map, f, arrays), ty, e.span).transpose()
}

/// Adds the elements of an array literal; `None` if the expression is none.
fn elements<'a>(e: &'a Ex, out: &mut Vec<&'a Ex>) -> Option<()> {
    let Kind::Prim(prim, _, sizes, args) = &e.kind else { return None };
    match (prim, args.as_slice()) {
        (Prim::Concat, [a, b]) => {
            elements(a, out)?;
            elements(b, out)
        }
        (Prim::Replicate, [one]) if sizes.first() == Some(&Size::constant(1)) => {
            out.push(one);
            Some(())
        }
        _ => None,
    }
}

/// Returns a literal of the form of another one, with other elements.
fn literal(like: &Ex, values: &mut dyn Iterator<Item = Ex>) -> Option<Ex> {
    let Kind::Prim(prim, _, sizes, args) = &like.kind else { return None };
    match args.as_slice() {
        [a, b] => {
            let a = literal(a, values)?;
            a.concat(literal(b, values)?, like.length()?)
        }
        _ => {
            let value = values.next()?;
            let ty = Ty::array(&Size::constant(1), &value.ty);
            Some(Ex::new(Kind::Prim(*prim, vec![], sizes.clone(), vec![value]), ty, like.span))
        }
    }
}

/// Whether an array is a map whose function only goes through elements.
fn is_by_element(e: &Ex) -> bool {
    fn is_light(e: &Ex) -> bool {
        let here = match &e.kind {
            Kind::Map(prim, ..) => *prim == Prim::Map,
            Kind::Prim(prim, ..) => is_view(*prim),
            _ => true,
        };
        here && e.parts().iter().all(|(_, part)| is_light(part))
    }
    matches!(&e.kind, Kind::Map(Prim::Map, f, _) if is_light(&f.body))
}
