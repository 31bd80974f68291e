//! Puts the rows that products read into arrays (loop fission).
//!
//! `map (\x -> let n = normalised x in map (\w -> dot w n) ws) xs` becomes
//! `map (\n -> map (\w -> dot w n) ws) (map (\x -> normalised x) xs)`.
//!
//! The second map is a product, with the tiles of a product. Where one function computes a row and multiplies it by a matrix, one
//! work-group computes both, and each group reads the whole matrix. A chain of layers that is written row by row becomes a chain of
//! products of matrices in this way.
//!
//! This is done where computing the row takes reductions, which `fission` does not repeat, and where the matrix is the same for all
//! rows. The rows are stored, so this is part of another form of a program. Nothing moves out of a branch or a loop.

use super::core::{Ex, Kind, Lambda, Layout, Var, Vars};
use super::cut::Cut;
use super::fission::{RESULTS, ROW, count, length, parts_that_reduce, reduced, takes_arrays};
use super::unused::dropped;
use crate::calculus::size::SizeEnv;
use crate::calculus::ty::Ty;
use crate::lang::typed::Prim;

/// Returns the program with the rows that products read in arrays; `None` if it computes no such rows.
pub(super) fn in_arrays(e: &Ex, env: &SizeEnv, fresh: &mut dyn FnMut() -> Var) -> Option<Ex> {
    let mut out = e.clone();
    Rows { env, fresh }.walk(&mut out, 1).then_some(out)
}

struct Rows<'a> {
    env: &'a SizeEnv,
    fresh: &'a mut dyn FnMut() -> Var,
}

impl Rows<'_> {
    /// Changes all maps in an expression that is computed `times` times. Returns whether there were any.
    fn walk(&mut self, e: &mut Ex, times: u64) -> bool {
        let inside = times.saturating_mul(length(&e.ty, self.env));
        if let Some(apart) = self.apart(e, inside) {
            *e = apart;
            // What follows the row may be the row of another product.
            self.walk(e, times);
            return true;
        }
        match &mut e.kind {
            Kind::Map(Prim::Map, f, args) => {
                let changed = self.walk(&mut f.body, inside);
                args.iter_mut().fold(changed, |changed, arg| self.walk(arg, times) | changed)
            }
            // The program itself has chosen what a low-level map computes.
            Kind::Map(..) => false,
            _ => e.parts_mut().into_iter().fold(false, |c, part| self.walk(part, times) | c),
        }
    }

    /// Returns a map, whose function is computed `times` times, with the first row that a product reads in an array.
    fn apart(&mut self, e: &Ex, times: u64) -> Option<Ex> {
        let Kind::Map(Prim::Map, f, args) = &e.kind else { return None };
        let (mut lets, mut last) = (vec![], (*f.body).clone());
        in_front(&mut last, &mut lets);
        let names = lets.iter().flat_map(|(p, _)| p.vars()).map(|(v, _)| v);
        let bound: Vars = f.own().into_iter().chain(names).collect();
        let k = (0..lets.len()).find(|k| {
            let after = || lets[k + 1..].iter().map(|(_, value)| value).chain([&last]);
            let Layout::Var(v, Ty::Array(..)) = &lets[*k].0 else { return false };
            let row = Vars::from([*v]);
            after().any(|part| self.multiplies(part, &row, &bound, times))
                && count(&lets[*k].1.clone().behind(lets[..*k].iter(), self.fresh)) > 0
        })?;
        let (before, after) = (&lets[..k], &lets[k + 1..]);
        let (name, mut row) = lets[k].clone();
        // What only the row needs is computed with it.
        let mut kept: Vec<(Layout, Ex)> = vec![];
        for (p, value) in before.iter().rev() {
            let values = kept.iter().chain(after).map(|(_, value)| value);
            let shared = values.chain([&last]).any(|e| p.meets(&e.free()));
            if p.meets(&row.free()) && !shared {
                row = row.bound(p.clone(), value.clone());
            } else {
                kept.insert(0, (p.clone(), value.clone()));
            }
        }
        let body = last.after(after.to_vec()).bound(name, row.clone()).after(kept);
        let f = Lambda { params: f.params.clone(), body: Box::new(body) };
        let map = Ex::new(Kind::Map(Prim::Map, f, args.clone()), e.ty.clone(), e.span);
        let (cut, row) = Cut::at(&map, &|part| *part == row, self.fresh)?;
        let rows = cut.array(row, self.fresh)?;
        let mut apart = cut.with(vec![rows], false, self.fresh)?;
        dropped(&mut apart);
        Some(apart)
    }

    /// Whether an expression has a product of a row with a matrix that does not depend on the names in `bound`.
    fn multiplies(&self, e: &Ex, row: &Vars, bound: &Vars, times: u64) -> bool {
        match &e.kind {
            Kind::Map(Prim::Map, g, args) => {
                let results = times.saturating_mul(length(&e.ty, self.env));
                let own = g.own();
                let closed = |sum: &Ex| {
                    let free = sum.free();
                    let mut used = g.params.iter().zip(args).filter(|(p, _)| p.meets(&free));
                    used.all(|(_, array)| array.free().is_disjoint(bound))
                };
                let is_product = |sum: &&Ex| {
                    reduced(sum, self.env) >= ROW
                        && takes_arrays(sum, &own)
                        && takes_arrays(sum, row)
                        && closed(sum)
                };
                results >= RESULTS && parts_that_reduce(&g.body).iter().any(is_product)
                    || self.multiplies(&g.body, row, bound, results)
                    || args.iter().any(|arg| self.multiplies(arg, row, bound, times))
            }
            Kind::Map(..) | Kind::If(..) | Kind::For(..) | Kind::While(..) => false,
            _ => e.parts().iter().any(|(_, part)| self.multiplies(part, row, bound, times)),
        }
    }
}

/// Moves the `let`s outside of functions and branches in front of an expression, the outermost first.
fn in_front(e: &mut Ex, lets: &mut Vec<(Layout, Ex)>) {
    while let Kind::Let(p, value, body) = &mut e.kind {
        in_front(value, lets);
        lets.push((p.clone(), (**value).clone()));
        *e = (**body).clone();
    }
    match &mut e.kind {
        Kind::Pair(..) | Kind::Proj(..) | Kind::Op(..) | Kind::Index(..) => {
            e.parts_mut().into_iter().for_each(|part| in_front(part, lets));
        }
        Kind::Map(_, _, args) | Kind::Prim(_, _, _, args) => {
            args.iter_mut().for_each(|arg| in_front(arg, lets));
        }
        _ => {}
    }
}
