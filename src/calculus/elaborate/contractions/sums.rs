//! Sums of sums of products become sums of products, which are products of matrices each:
//! `map (\a -> map (\b -> sum of (a1 * b2 + b1 * a2)) bs) as` has two sums in its element then.
//!
//! Only products of elements of different maps are taken apart. Other sums read the same arrays, and one pass is better.

use super::super::approx::Approx;
use super::super::core::{Ex, Kind, Lambda, Layout, Var};
use super::super::fission::keep_used;
use super::{is_sum, is_zero};
use crate::lang::typed::{Prim, ScalarOp};
use std::collections::{BTreeSet, HashMap};

/// The maps, by depth, on which a value depends.
type Depends = BTreeSet<usize>;

/// Returns the program with such sums apart; `None` if it has none.
pub(in super::super) fn apart(
    e: &Ex,
    fresh: &mut dyn FnMut() -> Var,
    approx: &mut Approx,
) -> Option<Ex> {
    let mut out = e.clone();
    Sums { fresh, approx, depends: HashMap::new() }.walk(&mut out, 0).then_some(out)
}

struct Sums<'a> {
    fresh: &'a mut dyn FnMut() -> Var,
    approx: &'a mut Approx,
    depends: HashMap<Var, Depends>,
}

impl Sums<'_> {
    /// Changes all sums in an expression in `depth` maps. Returns whether there were any.
    fn walk(&mut self, e: &mut Ex, depth: usize) -> bool {
        match &mut e.kind {
            Kind::Map(Prim::Map, f, args) => {
                let mut changed = false;
                for (p, array) in f.params.iter().zip(&mut *args) {
                    changed |= self.walk(array, depth);
                    let mut depends = self.of(array);
                    depends.insert(depth);
                    self.bind(p, &depends);
                }
                return changed | self.walk(&mut f.body, depth + 1);
            }
            // The program itself has chosen what a low-level map computes.
            Kind::Map(..) => return false,
            Kind::Let(p, value, body) => {
                let changed = self.walk(value, depth);
                let depends = self.of(value);
                self.bind(p, &depends);
                return changed | self.walk(body, depth);
            }
            _ => {}
        }
        if depth > 1
            && let Some(sums) = self.sums(e)
            && self.approx.use_it()
        {
            *e = sums;
            return true;
        }
        e.parts_mut().into_iter().fold(false, |changed, part| changed | self.walk(part, depth))
    }

    fn bind(&mut self, p: &Layout, depends: &Depends) {
        self.depends.extend(p.vars().into_iter().map(|(v, _)| (v, depends.clone())));
    }

    fn of(&self, e: &Ex) -> Depends {
        e.free().iter().filter_map(|v| self.depends.get(v)).flatten().copied().collect()
    }

    /// Returns a sum of sums or differences of products as sums of products.
    fn sums(&mut self, reduction: &Ex) -> Option<Ex> {
        let Kind::Prim(prim @ (Prim::Reduce | Prim::ReduceComm), funs, sizes, args) =
            &reduction.kind
        else {
            return None;
        };
        let [start, array] = &args[..] else { return None };
        let Kind::Map(Prim::Map, f, arrays) = &array.kind else { return None };
        let Kind::Op(op @ (ScalarOp::Add | ScalarOp::Sub), parts) = &f.body.kind else {
            return None;
        };
        let depends = |factor: &Ex| -> Depends {
            let free = factor.free();
            let own = f.params.iter().zip(arrays).filter(|(p, _)| p.meets(&free));
            own.flat_map(|(_, a)| self.of(a)).chain(self.of(factor)).collect()
        };
        let is_product = |e: &Ex| match &e.kind {
            Kind::Op(ScalarOp::Mul, factors) => {
                let [a, b] = [0, 1].map(|k: usize| depends(&factors[k]));
                !a.is_subset(&b) && !b.is_subset(&a)
            }
            _ => false,
        };
        if !is_sum(reduction) || !is_zero(start) || !parts.iter().all(is_product) {
            return None;
        }
        let sums = parts.iter().map(|part| {
            let mut f = Lambda { params: f.params.clone(), body: Box::new(part.clone()) };
            let mut arrays = arrays.clone();
            keep_used(&mut f, &mut arrays);
            let mapped = Ex { kind: Kind::Map(Prim::Map, f, arrays), ..array.clone() };
            let args = vec![start.clone(), mapped];
            let kind = Kind::Prim(*prim, funs.clone(), sizes.clone(), args);
            Ex { kind, ..reduction.clone() }.refreshed(self.fresh)
        });
        let sums = sums.collect();
        Some(Ex { kind: Kind::Op(*op, sums), ..reduction.clone() })
    }
}
