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
//! Products of few rows with a matrix that the whole batch shares are one product of all rows.
//!
//! `fission` moves products out of nests of rows first. Nothing moves out of a branch or a loop.

use super::core::{Ex, Kind, Var, Vars};
use super::cut::Cut;
use super::epilogues;
use super::fission::{flattened, parts_that_reduce, takes_arrays};
use crate::calculus::size::SizeEnv;
use crate::calculus::ty::Ty;
use crate::lang::typed::Prim;

/// Elements of a matrix that is so small that a work-item or a group may hold it.
const HELD: u64 = 1024;

/// Fewest elements of a row for which tiles may pay.
const LENGTH: u64 = 8;

/// Fewer rows than this leave tiles of each product of a batch partly empty.
const SHORT: u64 = 256;

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
        let env = self.env;
        let product = |part: &Ex| is_product(part, env);
        let Kind::Map(Prim::Map, f, _) = &mut e.kind else { return false };
        if !contains(&f.body, &product) {
            return false;
        }
        let mut changed = epilogues::in_one_nest(&mut f.body, &product);
        // The product that is all that the function gives stays: the map is its batch.
        let last = f.body.behind_lets().clone();
        let moves = |part: &Ex| product(part) && *part != last;
        if let Some(rest) = self.apart(e, &moves) {
            *e = rest;
            changed = true;
        }
        changed | self.one_product(e)
    }

    /// Returns a map whose function computes a product with the first product in front of it.
    fn apart(&mut self, e: &Ex, moves: &dyn Fn(&Ex) -> bool) -> Option<Ex> {
        let (cut, product) = Cut::at(e, moves, self.fresh)?;
        let mut products = cut.array(product, self.fresh)?;
        self.batch(&mut products);
        let mut rest = cut.with(vec![products], false, self.fresh)?;
        self.batch(last_mut(&mut rest));
        Some(rest)
    }

    /// Makes one product of a batch of products of few rows with the same matrix.
    fn one_product(&mut self, e: &mut Ex) -> bool {
        let is_short = |e: &Ex| e.length().and_then(|n| n.eval(self.env).ok()) < Some(SHORT);
        let Kind::Map(Prim::Map, f, _) = &e.kind else { return false };
        if !is_short(&f.body) {
            return false;
        }
        let Some(one) = flattened(e, &Vars::new()) else { return false };
        let is_one = one.parts().iter().any(|(_, all)| is_product(all, self.env));
        if is_one {
            *e = one;
        }
        is_one
    }
}

/// Whether an expression has such a part.
fn contains(e: &Ex, part: &dyn Fn(&Ex) -> bool) -> bool {
    part(e) || e.parts().iter().any(|(_, inner)| contains(inner, part))
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
