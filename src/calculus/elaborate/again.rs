//! A form in which what is cheap is computed again.
//!
//! An array that is used several times is stored for all uses. If a map of a scalar function computes it, or a nest of such maps, then computing it again
//! costs little, and in each use it becomes part of a pass that runs anyway: of a scan, a reduction, a scatter. The last element of a
//! scan is a reduction, which needs no array. Inlined arrays are read more often, so this is another form of the
//! program, and the cost model decides.
//!
//! In the function of a map, an array is a row. A row that fits in the local memory of a group is stored there, which costs little. So only
//! longer rows are computed again.

use super::core::{Ex, Kind, Layout, Var, is_view};
use super::loops_out;
use crate::calculus::size::{Size, SizeEnv};
use crate::calculus::ty::Ty;
use crate::lang::typed::{Prim, ScalarOp, ScanKind};

/// Maximum number of nodes of a function that is computed again for each use.
const CHEAP: usize = 40;

/// Maximum number of arrays that such a function reads: for each use they are read again.
const ARRAYS: usize = 2;

/// Fewest scalars of a row that is computed again, and maximum number of nodes of the function that computes it: the row would be
/// stored in global memory.
const LONG: u64 = 1 << 12;
const CHEAPER_THAN_ROWS: usize = 400;

/// Returns the program with cheap arrays in place of their names; `None` if there are none.
pub(super) fn computed_again(e: &Ex, env: &SizeEnv, fresh: &mut dyn FnMut() -> Var) -> Option<Ex> {
    let mut out = e.clone();
    let changed = walk(&mut out, fresh);
    (rows(&mut out, env, false, fresh) || changed).then_some(out)
}

/// Maximum number of arrays that a row reads, if nothing follows it but elements that are computed of it.
const ARRAYS_OF_ROW: usize = 4;

/// Puts cheap rows in place of their names in the function of a map where nothing is reduced: the function is one pass over
/// elements then, and no row is stored.
pub(super) fn rows_of_elements(e: &mut Ex, fresh: &mut dyn FnMut() -> Var) {
    let Kind::Let(name, value, body) = &mut e.kind else { return };
    rows_of_elements(body, fresh);
    if let Layout::Var(v, Ty::Array(..)) = name
        && body.uses(*v) < usize::MAX
        && is_cheap(value, CHEAP, ARRAYS_OF_ROW)
        && has_only_elements(body)
    {
        put_each(body, *v, value, fresh);
        *e = (**body).clone();
    }
}

/// Whether an expression has no patterns but views, and maps of scalar functions.
fn has_only_elements(e: &Ex) -> bool {
    let is_known = match &e.kind {
        Kind::Map(Prim::Map, f, _) => f.body.is_pure_scalar() && !loops(&f.body),
        Kind::Prim(prim, funs, _, _) => is_view(*prim) && funs.is_empty(),
        Kind::Let(..) | Kind::Pair(..) | Kind::Proj(..) | Kind::Op(..) => true,
        _ => e.is_free_of_cost(),
    };
    let parts = e.parts();
    is_known
        && parts
            .iter()
            .filter(|(bound, _)| bound.is_empty() || matches!(e.kind, Kind::Let(..)))
            .all(|(_, part)| has_only_elements(part))
}

/// Changes the names of long rows in the functions of maps, also in the steps of loops. `inside` says that the expression is in a
/// function. Returns whether there were any.
fn rows(e: &mut Ex, env: &SizeEnv, inside: bool, fresh: &mut dyn FnMut() -> Var) -> bool {
    let mut changed = false;
    if let Kind::Let(Layout::Var(v, ty), value, body) = &mut e.kind {
        changed |= rows(value, env, inside, fresh);
        let long = loops_out::scalars_of_arrays(ty, env) >= LONG;
        let uses = body.uses(*v);
        if inside
            && long
            && uses > 1
            && uses < usize::MAX
            && is_cheap(value, CHEAPER_THAN_ROWS, ARRAYS)
        {
            put_each(body, *v, value, fresh);
            *e = (**body).clone();
            rows(e, env, inside, fresh);
            return true;
        }
        return changed | rows(body, env, inside, fresh);
    }
    match &mut e.kind {
        Kind::Map(Prim::Map, f, args) => {
            changed |= rows(&mut f.body, env, true, fresh);
            args.iter_mut().for_each(|a| changed |= rows(a, env, inside, fresh));
        }
        // Where low-level patterns store their arrays is the program's own choice.
        Kind::Map(..) => {}
        Kind::Prim(_, _, _, args) => {
            args.iter_mut().for_each(|a| changed |= rows(a, env, inside, fresh));
        }
        _ => e.parts_mut().into_iter().for_each(|p| changed |= rows(p, env, inside, fresh)),
    }
    changed
}

/// Changes all names outside of functions. Returns whether there were any.
fn walk(e: &mut Ex, fresh: &mut dyn FnMut() -> Var) -> bool {
    let mut changed = false;
    if let Kind::Index(array, at) = &e.kind
        && let Some(total) = of_last(array, at)
    {
        *e = total;
        return true;
    }
    if let Kind::Let(Layout::Var(v, _), value, body) = &mut e.kind {
        changed |= walk(value, fresh);
        changed |= replace_last(body, *v, value, fresh) > 0;
        let uses = body.uses(*v);
        let again = uses > 1 && uses < usize::MAX && is_cheap(value, CHEAP, ARRAYS);
        // Of a scan, maybe nothing but the last element was used.
        if again || changed && uses == 0 {
            put_each(body, *v, value, fresh);
            *e = (**body).clone();
            walk(e, fresh);
            return true;
        }
        return changed | walk(body, fresh);
    }
    if let Some(apart) = components(e, fresh) {
        *e = apart;
        return walk(e, fresh);
    }
    match &mut e.kind {
        Kind::Map(_, _, args) | Kind::Prim(_, _, _, args) => {
            args.iter_mut().for_each(|a| changed |= walk(a, fresh));
        }
        // A step of a loop reads arrays that others have stored.
        Kind::For(init, ..) | Kind::While(init, ..) => changed |= walk(init, fresh),
        _ => e.parts_mut().into_iter().for_each(|part| changed |= walk(part, fresh)),
    }
    changed
}

/// Returns the names of arrays of tuples' components, each with a map of its own, if the map of the tuples is cheap:
/// `let (p, q) = unzip (map (\x -> (f x, g x)) a)` becomes `let p = map f a let q = map g a`.
fn components(e: &Ex, fresh: &mut dyn FnMut() -> Var) -> Option<Ex> {
    let Kind::Let(names @ Layout::Pair(..), value, body) = &e.kind else { return None };
    let Kind::Prim(Prim::Unzip, _, _, map) = &value.kind else { return None };
    let [map] = map.as_slice() else { return None };
    let Kind::Map(Prim::Map, f, args) = &map.kind else { return None };
    if !is_cheap(map, CHEAP, ARRAYS) {
        return None;
    }
    let mut found = vec![];
    parts(names, &f.body, &mut found)?;
    let mut out = (**body).clone();
    for (v, part) in found.into_iter().rev() {
        let map = Ex::map_of(part.clone(), f.params.iter().zip(args), fresh)?;
        out = out.bound(Layout::Var(v, map.ty.clone()), map);
    }
    Some(out)
}

/// Adds each name of a layout with the part of the value that it stands for.
fn parts<'e>(names: &Layout, value: &'e Ex, out: &mut Vec<(Var, &'e Ex)>) -> Option<()> {
    match (names, &value.kind) {
        (Layout::Var(v, _), _) => out.push((*v, value)),
        (Layout::Pair(a, b), Kind::Pair(x, y)) => {
            parts(a, x, out)?;
            parts(b, y, out)?;
        }
        _ => return None,
    }
    Some(())
}

/// Whether a map of a scalar function, or a nest of such maps, of at most `nodes` nodes over at most `most` arrays computes the value.
fn is_cheap(e: &Ex, nodes: usize, most: usize) -> bool {
    fn arrays(e: &Ex) -> Option<usize> {
        match &e.kind {
            _ if e.is_free_of_cost() => Some(1),
            Kind::Map(Prim::Map, f, args) => {
                let read: usize = args.iter().map(arrays).sum::<Option<_>>()?;
                // In a nest, the function reads rows of these arrays, and maybe others.
                let inside = if f.body.is_pure_scalar() { 0 } else { arrays(&f.body)? };
                Some(read.max(inside))
            }
            _ => None,
        }
    }
    matches!(&e.kind, Kind::Map(Prim::Map, ..))
        && !loops(e)
        && e.size() <= nodes
        && arrays(e).is_some_and(|n| n <= most)
}

/// Whether an expression contains a loop.
pub(super) fn loops(e: &Ex) -> bool {
    matches!(e.kind, Kind::For(..) | Kind::While(..)) || e.parts().iter().any(|(_, e)| loops(e))
}

/// Returns the reduction that gives the last element of a scan, if that is what `at` is.
fn of_last(scan: &Ex, at: &Ex) -> Option<Ex> {
    let Kind::Prim(Prim::Scan(ScanKind::Assoc), op, _, args) = &scan.kind else { return None };
    let Ty::Array(n, t) = &scan.ty else { return None };
    let total = Kind::Prim(Prim::Reduce, op.clone(), vec![], args.clone());
    (is_last(at, n) && t.is_scalar()).then(|| Ex::new(total, (**t).clone(), scan.span))
}

/// Replaces the last element of the scan with the name `v`, if its elements are cheap. Returns how often it occurs.
fn replace_last(e: &mut Ex, v: Var, scan: &Ex, fresh: &mut dyn FnMut() -> Var) -> usize {
    if let Kind::Index(array, at) = &e.kind
        && array.kind == Kind::Var(v)
        && let Some(total) = of_last(scan, at)
        && let Kind::Prim(_, _, _, args) = &scan.kind
        && args.iter().all(|xs| xs.may_be_repeated() || is_cheap(xs, CHEAP, ARRAYS))
    {
        *e = total.refreshed(fresh);
        return 1;
    }
    // Inside of a function it would be computed for each element.
    let bound = |(layouts, _): &(Vec<&Layout>, &Ex)| !layouts.is_empty();
    let inner: Vec<bool> = e.parts().iter().map(bound).collect();
    let is_let = matches!(e.kind, Kind::Let(..));
    let parts = e.parts_mut().into_iter().zip(inner);
    parts.filter(|(_, inner)| is_let || !inner).map(|(p, _)| replace_last(p, v, scan, fresh)).sum()
}

fn is_last(at: &Ex, n: &Size) -> bool {
    let Kind::Op(ScalarOp::Sub, sides) = &at.kind else { return false };
    match &sides[..] {
        [Ex { kind: Kind::Size(m), .. }, Ex { kind: Kind::Lit(l), .. }] => {
            m == n && l.as_int() == Some(1)
        }
        _ => false,
    }
}

/// Substitutes `value` for a variable, each time with bound variables of its own.
pub(super) fn put_each(e: &mut Ex, v: Var, value: &Ex, fresh: &mut dyn FnMut() -> Var) {
    if e.kind == Kind::Var(v) {
        *e = value.refreshed(fresh);
        return;
    }
    e.parts_mut().into_iter().for_each(|part| put_each(part, v, value, fresh));
}
