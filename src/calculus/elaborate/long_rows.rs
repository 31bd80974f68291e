//! Scalars that a function reduces from a row, such as its mean, get arrays of their own, if the rows are few and long.
//!
//! ```text
//! map (\r -> let m = sum r / n let v = sum (map (f m) r) in map (g m v) r) rs
//!   = let ms = map (\r -> sum r / n) rs let vs = map2 (\r m -> sum (map (f m) r)) rs ms in map3 (\r m v -> map (g m v) r) rs ms vs
//! ```
//!
//! One work-group for each of a few rows leaves most of a device idle. A map for each scalar is shared out to the whole device: rules cut
//! the rows into parts. Short vectors that a function reduces, such as the gates of an image's channels, have arrays, too, each layer
//! its own: what follows them is then shared out as one nest of maps. If a function gives scalars alone, and many of them, each of its reductions has
//! an array. The arrays are in global memory, so that no rule joins the maps again; and each has a name, so that it is computed
//! once. This is another form of a program, and the cost model decides.

use super::core::{Ex, Kind, Lambda, Layout, Var};
use super::cut::Cut;
use super::fission::count;
use super::hoist;
use super::row_scalars::{has_pattern, in_global};
use crate::calculus::size::{Size, SizeEnv};
use crate::calculus::ty::Ty;
use crate::lang::typed::Prim;

/// Most rows that are too few for a work-group each.
const FEW: u64 = 256;

/// Fewest elements of a row that several work-groups share.
const LONG: u64 = 1 << 15;

/// Most elements of a vector that has an array, such as the means of an image's channels.
const SHORT: u64 = 1 << 10;

/// Fewest reductions of a function that gives scalars alone, for which they are stages: the rules share out fewer without this form.
const SEVERAL: usize = 4;

/// Returns the program with arrays of what is reduced of few, long rows; `None` if there are no such rows.
pub(super) fn scalars_in_arrays(
    e: &Ex,
    env: &SizeEnv,
    fresh: &mut dyn FnMut() -> Var,
) -> Option<Ex> {
    let mut out = e.clone();
    out.change_outside_functions(&mut |e| in_arrays(e, env, fresh)).then_some(out)
}

/// Returns a map with arrays of the scalars that its function reduces.
fn in_arrays(e: &Ex, env: &SizeEnv, fresh: &mut dyn FnMut() -> Var) -> Option<Ex> {
    let Kind::Map(Prim::Map, f, args) = &e.kind else { return None };
    let rows = args.first()?.length()?.eval(env).ok()?;
    let long = args.iter().any(|a| elements(&a.ty, env) / rows.max(1) >= LONG);
    let is_scalar = f.body.ty.is_scalar();
    if rows > FEW || !long || is_scalar && count(&f.body) < SEVERAL {
        return None;
    }
    let scalars = |dims: &[Size]| {
        dims.iter().fold(1u64, |all, n| all.saturating_mul(n.eval(env).unwrap_or(u64::MAX)))
    };
    let is_short = |e: &Ex| e.ty.components().iter().all(|(dims, _)| scalars(dims) <= SHORT);
    let vectors = !is_scalar && only_short(&f.body, &is_short);
    let moves = |e: &Ex| match is_scalar {
        // Nothing goes through the row at last, so each reduction is a stage.
        true => hoist::reduces(&e.kind) && e.ty.is_scalar(),
        false if e.ty.is_scalar() => has_pattern(e),
        false => {
            let inside = e.parts().into_iter().filter(|(bound, _)| bound.is_empty());
            let alone = inside.map(|(_, part)| count(part)).sum::<usize>() == 0;
            vectors && is_short(e) && matches!(e.kind, Kind::Map(..)) && alone && count(e) > 0
        }
    };
    let f = Lambda { params: f.params.clone(), body: Box::new(one_by_one((*f.body).clone())) };
    let map = Kind::Map(Prim::Map, f, args.clone());
    let (mut map, mut lets) = (Ex::new(map, e.ty.clone(), e.span), vec![]);
    while let Some((cut, value)) = Cut::at(&map, &moves, fresh) {
        let array = cut.array(value, fresh)?;
        let name = Layout::Var(fresh(), array.ty.clone());
        map = cut.with(vec![name.value(e.span)], false, fresh)?;
        while let Kind::Let(p, value, body) = map.kind {
            lets.push((p, *value));
            map = *body;
        }
        lets.push((name, stored(array, fresh)));
    }
    (!lets.is_empty()).then(|| map.after(lets))
}

/// Whether the values with names and the arrays that a function's results are computed from are short, or cost nothing.
fn only_short(body: &Ex, is_short: &dyn Fn(&Ex) -> bool) -> bool {
    let fits = |e: &Ex| e.is_free_of_cost() || is_short(e) && only_short(e, is_short);
    match &body.kind {
        Kind::Let(_, value, rest) => fits(value) && only_short(rest, is_short),
        Kind::Map(_, _, args) | Kind::Prim(_, _, _, args) => args.iter().all(fits),
        _ => true,
    }
}

/// Returns a body in which the `let`s of values come one after the other, each once. What only one other value needs has no name: a
/// mean is computed once for all that need it, and a deviation is one value with the variance.
fn one_by_one(body: Ex) -> Ex {
    let mut lets = vec![];
    let body = spine(body, &mut lets);
    let mut kept: Vec<(Layout, Ex)> = vec![];
    while !lets.is_empty() {
        let (p, value) = lets.remove(0);
        let all = |v| {
            lets.iter().map(|(_, e)| e).chain([&body]).map(move |e| uses(e, v, true)).sum::<usize>()
        };
        let one = |v| lets.iter().position(|(_, e)| uses(e, v, false) == 1);
        let user = match p {
            Layout::Var(v, _) if all(v) == 1 => one(v).map(|at| (v, at)),
            _ => None,
        };
        match user {
            Some((v, at)) => lets[at].1.put(v, &value),
            None => kept.push((p, value)),
        }
    }
    body.after(kept)
}

/// Adds the `let`s of an expression, those of their values first. A moved value has copies of those that it needs. Returns what is behind them.
fn spine(e: Ex, lets: &mut Vec<(Layout, Ex)>) -> Ex {
    let Kind::Let(p, value, body) = e.kind else { return e };
    let one = (p, spine(*value, lets));
    if !lets.contains(&one) {
        lets.push(one);
    }
    spine(*body, lets)
}

/// Returns how often an expression mentions a variable, also in functions or outside of them only.
fn uses(e: &Ex, v: Var, in_functions: bool) -> usize {
    let parts = e.parts().into_iter().filter(|(bound, _)| in_functions || bound.is_empty());
    usize::from(e.kind == Kind::Var(v))
        + parts.map(|(_, part)| uses(part, v, in_functions)).sum::<usize>()
}

/// Returns an array in global memory, if a map computes it.
fn stored(array: Ex, fresh: &mut dyn FnMut() -> Var) -> Ex {
    let stored = match &array.kind {
        Kind::Map(Prim::Map, Lambda { params, body }, args) => {
            in_global((**body).clone(), params.iter().zip(args), fresh)
        }
        _ => None,
    };
    stored.unwrap_or(array)
}

/// Returns the number of elements of an array.
fn elements(t: &Ty, env: &SizeEnv) -> u64 {
    match t {
        Ty::Array(n, t) => n.eval(env).unwrap_or(1).saturating_mul(elements(t, env)),
        _ => 1,
    }
}
