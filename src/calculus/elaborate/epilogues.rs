//! Makes one nest of nests of maps that follow each other element by element, with one product of matrices at most.
//!
//! `map2 (map2 (+)) r (map (\x -> map (\w -> dot x w) ws) a)` becomes
//! `map2 (\r x -> map2 (\c w -> c + dot x w) r ws) r a`.
//!
//! The rules know the second form as a product with a function of its results, also in a batch. A second product stays an
//! argument: the element of a product reads one pair of rows.

use super::core::{Ex, Kind, Lambda, Layout};
use super::fission::only_computes;
use crate::lang::typed::Prim;

/// Makes one nest of the nests at the end of a function, and of those that have a name for one use. `is_product` tells nests that
/// are products. Returns whether there were any.
pub(super) fn in_one_nest(body: &mut Ex, is_product: &dyn Fn(&Ex) -> bool) -> bool {
    if let Kind::Let(Layout::Var(v, _), value, rest) = &body.kind
        && is_nest(value)
        && rest.uses(*v) == 1
    {
        let mut whole = (**rest).clone();
        whole.put(*v, value);
        if in_one_nest(&mut whole, is_product) {
            *body = whole;
            return true;
        }
    }
    match &mut body.kind {
        Kind::Let(_, _, rest) => in_one_nest(rest, is_product),
        _ => merge(body, is_product),
    }
}

/// Takes the nests that compute the arguments of a nest into it.
fn merge(e: &mut Ex, is_product: &dyn Fn(&Ex) -> bool) -> bool {
    let mut product = is_product(e);
    let computes = only_computes(element(e));
    let Kind::Map(Prim::Map, g, args) = &mut e.kind else { return false };
    let mut changed = false;
    for arg in args.iter_mut() {
        changed |= merge(arg, is_product);
    }
    let mut k = 0;
    while k < args.len() {
        let further = is_product(&args[k]);
        let fits = match &args[k].kind {
            Kind::Map(Prim::Map, h, _) => meets(g, k, h) && !(further && (product || !computes)),
            _ => false,
        };
        if fits {
            product |= further;
            absorb(g, args, k);
            changed = true;
        } else {
            k += 1;
        }
    }
    changed
}

/// Returns the element of a nest of maps.
fn element(e: &Ex) -> &Ex {
    match &e.kind {
        Kind::Map(Prim::Map, f, _) => element(&f.body),
        _ => e,
    }
}

fn is_nest(e: &Ex) -> bool {
    matches!(&e.kind, Kind::Map(Prim::Map, f, _) if matches!(f.body.kind, Kind::Map(Prim::Map, ..)))
}

/// Whether a nest goes through the elements of its argument `k`, which a nest with the function `h` computes, and does nothing else with
/// them.
fn meets(g: &Lambda, k: usize, h: &Lambda) -> bool {
    if h.body.ty.is_scalar() {
        return g.body.ty.is_scalar();
    }
    let (Layout::Var(row, _), Kind::Map(Prim::Map, inner, args), Kind::Map(Prim::Map, of, _)) =
        (&g.params[k], &g.body.kind, &h.body.kind)
    else {
        return false;
    };
    let at = args.iter().position(|a| a.kind == Kind::Var(*row));
    g.body.uses(*row) == 1 && at.is_some_and(|at| meets(inner, at, of))
}

/// Puts the function of the nest that computes argument `k` into the function of the nest that reads it.
fn absorb(g: &mut Lambda, args: &mut Vec<Ex>, k: usize) {
    let Kind::Map(_, h, arrays) = args.remove(k).kind else {
        unreachable!("invariant: `meets` has seen a map")
    };
    let name = g.params.remove(k);
    match &name {
        Layout::Var(row, _) if !h.body.ty.is_scalar() => {
            if let Kind::Map(_, inner, args) = &mut g.body.kind
                && let Some(at) = args.iter().position(|a| a.kind == Kind::Var(*row))
            {
                args[at] = *h.body;
                absorb(inner, args, at);
            }
        }
        Layout::Var(v, _) if g.body.uses(*v) == 1 => g.body.put(*v, &h.body),
        _ => *g.body = (*g.body).clone().bound(name, *h.body),
    }
    g.params.extend(h.params);
    args.extend(arrays);
}
