//! The last elements of the chunks of a scan.
//!
//! `map last (split r (scan op z xs))` is `scan op z (map (reduce op z) (split r xs))`: what the scan gives inside of the chunks is neither
//! computed nor stored.

use super::core::{Ex, Kind, Lambda, Layout, Var};
use super::counting::{Known, constant};
use super::interchange::named;
use crate::calculus::size::SizeEnv;
use crate::calculus::ty::Ty;
use crate::lang::typed::{Prim, ScanKind};

/// Returns the program with scans of chunks in place of scans of which the last element of each chunk is used.
pub(super) fn of_chunks(mut e: Ex, env: &SizeEnv, fresh: &mut dyn FnMut() -> Var) -> Ex {
    walk(&mut e, env, fresh);
    e
}

fn walk(e: &mut Ex, env: &SizeEnv, fresh: &mut dyn FnMut() -> Var) {
    // A scan with a name that is used for the ends alone has none.
    if let Kind::Let(Layout::Var(v, _), value, body) = &e.kind
        && is_scan(value)
        && body.uses(*v) == 1
        && contains_ends(body, *v, env)
    {
        let mut inlined = (**body).clone();
        inlined.put(*v, value);
        *e = inlined;
    }
    if let Some(other) = ends(e, env, fresh) {
        *e = other;
    }
    e.parts_mut().into_iter().for_each(|part| walk(part, env, fresh));
}

fn is_scan(e: &Ex) -> bool {
    matches!(e.kind, Kind::Prim(Prim::Scan(ScanKind::Assoc), ..))
}

fn contains_ends(e: &Ex, v: Var, env: &SizeEnv) -> bool {
    chunked(e, env).is_some_and(|(array, _)| array.kind == Kind::Var(v))
        || e.parts().iter().any(|(_, part)| contains_ends(part, v, env))
}

/// Returns the array whose chunks an expression has the last elements of, and the chunks.
fn chunked<'e>(e: &'e Ex, env: &SizeEnv) -> Option<(&'e Ex, &'e Ex)> {
    let Kind::Map(Prim::Map, f, args) = &e.kind else { return None };
    let ([Layout::Var(row, ty)], [chunks]) = (&f.params[..], &args[..]) else { return None };
    let (Kind::Index(of, at), Ty::Array(length, _)) = (&f.body.kind, ty) else { return None };
    let last = i128::from(length.eval(env).ok()?) - 1;
    let Kind::Prim(Prim::Split, _, _, split) = &chunks.kind else { return None };
    let is_last = constant(at, &Known::new(), env) == Some(last);
    (of.kind == Kind::Var(*row) && is_last).then_some((split.first()?, chunks))
}

fn ends(e: &Ex, env: &SizeEnv, fresh: &mut dyn FnMut() -> Var) -> Option<Ex> {
    let (scan, chunks) = chunked(e, env)?;
    let Kind::Prim(Prim::Scan(ScanKind::Assoc), ops, _, args) = &scan.kind else { return None };
    let [start, xs] = &args[..] else { return None };
    if !start.may_be_repeated() || xs.ty != scan.ty {
        return None;
    }
    let (Kind::Prim(_, _, sizes, _), span) = (&chunks.kind, e.span) else { return None };
    let split = Kind::Prim(Prim::Split, vec![], sizes.clone(), vec![xs.clone()]);
    let chunks = Ex::new(split, chunks.ty.clone(), span);
    let row = named(&chunks.element_type()?, fresh);
    let args = vec![start.clone(), row.value(span)];
    let total =
        Ex::new(Kind::Prim(Prim::Reduce, ops.clone(), vec![], args), start.ty.clone(), span);
    let f = Lambda { params: vec![row], body: Box::new(total.refreshed(fresh)) };
    let totals = Ex::new(Kind::Map(Prim::Map, f, vec![chunks]), e.ty.clone(), span);
    let args = vec![start.clone(), totals];
    let scan = Kind::Prim(Prim::Scan(ScanKind::Assoc), ops.clone(), vec![], args);
    Some(Ex::new(scan, e.ty.clone(), span))
}
