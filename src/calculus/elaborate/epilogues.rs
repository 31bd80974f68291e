//! Makes one nest of nests of maps that follow each other element by element, with one product of matrices at most.
//!
//! `map2 (map2 (+)) r (map (\x -> map (\w -> dot x w) ws) a)` becomes
//! `map2 (\r x -> map2 (\c w -> c + dot x w) r ws) r a`.
//!
//! The rules know the second form as a product with a function of its results, also in a batch. A second product stays an
//! argument: the element of a product reads one pair of rows.
//!
//! Products outside of batches and contractions are joined with what follows them in the same way, in forms of their own: a bias that is added to each
//! channel of a convolution is then part of the function of one nest of maps.

use super::core::{Ex, Kind, Lambda, Layout, Var};
use super::fission::{in_branch, only_computes};
use super::hoist::contains_reduction;
use super::outward;
use super::unused::keep_used;
use crate::lang::typed::Prim;

/// Which nests become one.
struct Epilogues<'a> {
    /// Tells nests that are products, of which one nest has one at most.
    is_product: &'a dyn Fn(&Ex) -> bool,
    /// Whether the nests of products are all that is of interest, and what follows them may choose between values.
    anywhere: bool,
}

/// Makes one nest of the nests at the end of a function, and of those that have a name for one use. `is_product` tells nests that
/// are products. Returns whether there were any.
pub(super) fn in_one_nest(body: &mut Ex, is_product: &dyn Fn(&Ex) -> bool) -> bool {
    Epilogues { is_product, anywhere: false }.at_end(body)
}

/// Makes one nest of a product and the nests that follow it, anywhere in an expression, also behind views of the product.
/// Returns whether there were any.
pub(super) fn everywhere(
    e: &mut Ex,
    is_product: &dyn Fn(&Ex) -> bool,
    fresh: &mut dyn FnMut() -> Var,
) -> bool {
    Epilogues { is_product, anywhere: true }.walk(e, fresh)
}

/// As [`everywhere`], where each nest that reduces something for each element counts as a product.
pub(super) fn of_nests(e: &mut Ex, fresh: &mut dyn FnMut() -> Var) -> bool {
    let is_product = |e: &Ex| is_nest(e) && contains_reduction(element(e));
    everywhere(e, &is_product, fresh)
}

impl Epilogues<'_> {
    fn walk(&self, e: &mut Ex, fresh: &mut dyn FnMut() -> Var) -> bool {
        // The program itself has chosen what a low-level map computes.
        if matches!(e.kind, Kind::Map(p, ..) if p != Prim::Map) {
            return false;
        }
        let mut changed = false;
        for part in e.parts_mut() {
            changed |= self.walk(part, fresh);
        }
        changed |= self.at_end(e);
        if let Some(view) = outward::outward(e, self.is_product, fresh) {
            *e = view;
            e.parts_mut().into_iter().for_each(|map| _ = self.at_end(map));
            changed = true;
        }
        changed
    }

    /// Joins the nests at the end of a function.
    fn at_end(&self, body: &mut Ex) -> bool {
        if let Kind::Let(Layout::Var(v, _), value, rest) = &body.kind
            && is_nest(value)
            && rest.uses(*v) == 1
        {
            let mut whole = (**rest).clone();
            whole.put(*v, value);
            if self.at_end(&mut whole) {
                *body = whole;
                return true;
            }
        }
        match &mut body.kind {
            Kind::Let(_, _, rest) => self.at_end(rest),
            _ => self.merge(body),
        }
    }

    /// Takes the nests that compute the arguments of a nest into it.
    fn merge(&self, e: &mut Ex) -> bool {
        if !matches!(e.kind, Kind::Map(Prim::Map, ..)) {
            return false;
        }
        let mut product = (self.is_product)(e);
        let follows = self.anywhere || only_computes(element(e));
        let Kind::Map(Prim::Map, g, args) = &mut e.kind else { return false };
        let mut changed = false;
        for arg in args.iter_mut() {
            changed |= self.merge(arg);
        }
        let mut k = 0;
        while k < args.len() {
            let fits = match &args[k].kind {
                Kind::Map(Prim::Map, h, _) if meets(g, k, h) => {
                    let further = (self.is_product)(&args[k]);
                    let fits = match further {
                        true => !product && follows,
                        false => product || !self.anywhere,
                    };
                    product |= fits && further;
                    fits
                }
                _ => false,
            };
            if fits {
                absorb(g, args, k);
                changed = true;
            } else {
                k += 1;
            }
        }
        changed
    }
}

/// Returns the element of a nest of maps.
fn element(e: &Ex) -> &Ex {
    match &e.kind {
        Kind::Map(Prim::Map, f, _) => {
            // What stands between two maps belongs to neither.
            let inner = f.body.behind_lets();
            if matches!(inner.kind, Kind::Map(Prim::Map, ..)) { element(inner) } else { &f.body }
        }
        _ => e,
    }
}

fn is_nest(e: &Ex) -> bool {
    matches!(&e.kind, Kind::Map(Prim::Map, f, _) if matches!(f.body.behind_lets().kind, Kind::Map(Prim::Map, ..)))
}

/// Whether a nest goes through the elements of its argument `k`, which a nest with the function `h` computes, and does nothing else with
/// them.
fn meets(g: &Lambda, k: usize, h: &Lambda) -> bool {
    if h.body.ty.is_scalar() {
        return g.body.ty.is_scalar();
    }
    let (Layout::Var(row, _), Kind::Map(Prim::Map, inner, args), Kind::Map(Prim::Map, of, _)) =
        (&g.params[k], &g.body.behind_lets().kind, &h.body.behind_lets().kind)
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
            let (lets, rest) = h.body.apart_from_lets();
            if let Kind::Map(_, inner, args) = &mut g.body.behind_lets_mut().kind
                && let Some(at) = args.iter().position(|a| a.kind == Kind::Var(*row))
            {
                args[at] = rest;
                absorb(inner, args, at);
            }
            *g.body = (*g.body).clone().after(lets);
        }
        // A product in a branch would be none.
        Layout::Var(v, _) if g.body.uses(*v) == 1 && !in_branch(&g.body, *v) => {
            g.body.put(*v, &h.body);
        }
        _ => *g.body = (*g.body).clone().bound(name, *h.body),
    }
    g.params.extend(h.params);
    args.extend(arrays);
    keep_used(g, args);
}
