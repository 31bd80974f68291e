//! Gives arrays that all elements of a product meet to the rows of its inner map.
//!
//! `map (\a -> map (\b -> sum (map3 f a b p)) bs) as`, where neither map changes `p`, becomes
//! `map (\a -> map2 (\b p' -> sum (map3 f a b p')) bs (replicate m p)) as`. Then an element is a function of a row of `as` and a
//! row of `bs` with `p`, which the rules for products are written for. Else `p` would travel into both maps as data. For an input of
//! the program, which does not travel, `sides` has the same result.

use super::core::{Ex, Kind, Layout, Var, Vars};
use super::fission::{parts_that_reduce, takes_arrays};
use crate::calculus::ty::Ty;
use crate::lang::typed::Prim;

/// Returns the program with such arrays among those of the inner maps.
pub(super) fn with_rows(mut e: Ex, fresh: &mut dyn FnMut() -> Var) -> Ex {
    walk(&mut e, fresh);
    e
}

fn walk(e: &mut Ex, fresh: &mut dyn FnMut() -> Var) {
    e.parts_mut().into_iter().for_each(|part| walk(part, fresh));
    let Kind::Map(Prim::Map, f, _) = &mut e.kind else { return };
    let mut rows = f.own();
    inner(&mut f.body, &mut rows, fresh);
}

/// Changes the map behind the `let`s of the function of an outer map with these variables.
fn inner(e: &mut Ex, rows: &mut Vars, fresh: &mut dyn FnMut() -> Var) {
    let Ty::Array(m, _) = &e.ty else { return };
    let (m, span) = (m.clone(), e.span);
    match &mut e.kind {
        Kind::Let(p, _, body) => {
            rows.extend(p.vars().into_iter().map(|(v, _)| v));
            inner(body, rows, fresh);
        }
        Kind::Map(Prim::Map, g, columns) => {
            let own = g.own();
            let outside = &g.captures() - rows;
            let mut met: Vec<(Var, Ty)> = vec![];
            for reduction in parts_that_reduce(&g.body) {
                if takes_arrays(reduction, rows) && takes_arrays(reduction, &own) {
                    zipped(reduction, &outside, &mut met);
                }
            }
            for (v, ty) in met {
                let row = Layout::Var(fresh(), ty.clone());
                g.body.put(v, &row.value(span));
                let all = Ex::new(Kind::Var(v), ty, span).replicate(&m);
                g.params.push(row);
                columns.push(all);
            }
        }
        _ => {}
    }
}

/// Adds the arrays among `outside` that a reduction goes through element by element, each once.
fn zipped(e: &Ex, outside: &Vars, out: &mut Vec<(Var, Ty)>) {
    let (Kind::Prim(_, _, _, args) | Kind::Map(Prim::Map, _, args)) = &e.kind else { return };
    for arg in args {
        let is_new = |v| outside.contains(&v) && out.iter().all(|(known, _)| *known != v);
        match arg.kind {
            Kind::Var(v) if is_new(v) && matches!(arg.ty, Ty::Array(..)) => {
                out.push((v, arg.ty.clone()));
            }
            Kind::Map(Prim::Map, ..) => zipped(arg, outside, out),
            _ => {}
        }
    }
}
