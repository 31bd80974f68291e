//! Moves products of matrices out of maps over batches (loop fission).
//!
//! `map2 (\r a -> map2 (map2 (+)) r (product a w)) rs as` becomes
//! `map2 (\r p -> map2 (map2 (+)) r p) rs (map (\a -> product a w) as)`.
//!
//! A map whose function is one product, with scalar functions of its results, is a batch of products, which the rules cut into
//! tiles. With anything else in the function, one work-group would compute all of it for an element of the batch. Here,
//! each product gets a batch of its own in front of the map, whether it has a name in the function or not, and so does what the
//! function computes before it. Inner maps come first, so that products also leave batches of batches.
//!
//! `fission` moves products out of nests of rows first. Nothing moves out of a branch or a loop.

use super::core::{Ex, Kind, Var, Vars};
use super::cut::Cut;
use super::fission::{parts_that_reduce, takes_arrays};
use crate::calculus::size::SizeEnv;
use crate::calculus::ty::Ty;
use crate::lang::typed::Prim;

/// Elements of a matrix that is so small that a work-item or a group may hold it.
const HELD: u64 = 1024;

/// Fewest elements of a row for which tiles may pay.
const LENGTH: u64 = 8;

/// Returns the program with its products outside of batches that compute more; `None` if there are none.
pub(super) fn out_of_batches(e: &Ex, env: &SizeEnv, fresh: &mut dyn FnMut() -> Var) -> Option<Ex> {
    let mut out = e.clone();
    ProductsOut { env, fresh }.walk(&mut out).then_some(out)
}

struct ProductsOut<'a> {
    env: &'a SizeEnv,
    fresh: &'a mut dyn FnMut() -> Var,
}

impl ProductsOut<'_> {
    /// Changes all batches in an expression, the inner ones first. Returns whether there were any.
    fn walk(&mut self, e: &mut Ex) -> bool {
        // The program itself has chosen what a low-level map computes.
        if matches!(e.kind, Kind::Map(p, ..) if p != Prim::Map) {
            return false;
        }
        let mut changed = false;
        for part in e.parts_mut() {
            changed |= self.walk(part);
        }
        changed | self.batch(e)
    }

    /// Moves the products in the function of a map in front of the map, one after the other.
    fn batch(&mut self, e: &mut Ex) -> bool {
        let Kind::Map(Prim::Map, f, _) = &e.kind else { return false };
        let env = self.env;
        // The product that is all that the function gives stays: the map is its batch.
        let last = f.body.behind_lets().clone();
        let moves = |part: &Ex| is_product(part, env) && *part != last;
        let Some((cut, product)) = Cut::at(e, &moves, self.fresh) else { return false };
        let Some(mut products) = cut.array(product, self.fresh) else { return false };
        self.batch(&mut products);
        let Some(mut rest) = cut.with(vec![products], false, self.fresh) else { return false };
        self.batch(last_mut(&mut rest));
        *e = rest;
        true
    }
}

/// Whether an expression computes large matrices by reductions, each of a row and of a partner that other rows meet, too.
fn is_product(e: &Ex, env: &SizeEnv) -> bool {
    let (mut levels, mut lengths): (Vec<Vars>, Vec<u64>) = (vec![], vec![]);
    let mut body = e;
    while let (Kind::Map(Prim::Map, f, _), Ty::Array(n, _)) = (&body.kind, &body.ty) {
        levels.push(f.own());
        lengths.push(n.eval(env).unwrap_or(1));
        body = f.body.behind_lets();
    }
    let ([outer @ .., own], [.., n, m]) = (&levels[..], &lengths[..]) else { return false };
    let rows: Vars = outer.iter().flatten().copied().collect();
    n.saturating_mul(*m) > HELD
        && body.ty.components().iter().all(|(dims, _)| dims.is_empty())
        && parts_that_reduce(body).iter().any(|sum| {
            length(sum, env) >= LENGTH && takes_arrays(sum, own) && takes_arrays(sum, &rows)
        })
}

/// Returns the length of what a reduction reduces.
fn length(sum: &Ex, env: &SizeEnv) -> u64 {
    let array = match &sum.kind {
        Kind::Prim(_, _, _, args) => args.last(),
        _ => None,
    };
    array.and_then(Ex::length).and_then(|n| n.eval(env).ok()).unwrap_or(1)
}

/// Returns what stands behind the `let`s, to change it.
fn last_mut(e: &mut Ex) -> &mut Ex {
    match e.kind {
        Kind::Let(_, _, ref mut body) => last_mut(body),
        _ => e,
    }
}
