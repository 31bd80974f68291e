//! Sums of sums of products become sums of products, which are products of matrices each:
//! `map (\a -> map (\b -> sum of (a1 * b2 + b1 * a2)) bs) as` has two sums in its element then.
//!
//! Only products of elements of different maps are taken apart. Other sums read the same arrays, and one pass is better.
//!
//! A factor of each of several sums, such as the scale of a group of weights, goes into the sums: `sum of s * (sum of a * b)` is
//! `sum of a * (s * b)`, whose factor `s * b` is computed of one of the maps.
//!
//! In a map that has no other map inside, such as that of a matrix of few bits times a vector, the sums of a group and their factors
//! are one sum: `sum of s * (sum of a - sum of b)` is `sum of s * (a - b)`. Then neighbouring work-items read neighbouring elements.

use super::super::approx::Approx;
use super::super::core::{Ex, Kind, Lambda, Layout, Var};
use super::super::unused::keep_used;
use super::counters::contains_pattern;
use super::{is_sum, is_zero};
use crate::calculus::ty::Ty;
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
        let other = match depth {
            0 => None,
            1 => self.one_sum(e),
            _ => self.sums(e).or_else(|| self.scaled(e)),
        };
        if let Some(sums) = other
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

    /// Returns a sum of sums of products, each with a factor of its own, as one sum.
    fn scaled(&mut self, reduction: &Ex) -> Option<Ex> {
        let (f, arrays) = Sums::summed(reduction)?;
        let Kind::Op(ScalarOp::Mul, factors) = &f.body.kind else { return None };
        let at = factors.iter().position(|e| Sums::summed(e).is_some())?;
        let (inner, scale) = (&factors[at], factors.get(1 - at)?);
        let (g, rows) = Sums::summed(inner)?;
        let Kind::Op(ScalarOp::Mul, pair) = &g.body.kind else { return None };
        for (p, array) in f.params.iter().zip(arrays).chain(g.params.iter().zip(rows)) {
            let depends = self.of(array);
            self.bind(p, &depends);
        }
        let [x, y, s] = [&pair[0], &pair[1], scale].map(|e| self.of(e));
        let of_two = !x.is_subset(&y) && !y.is_subset(&x);
        if !of_two || !(s.is_subset(&x) || s.is_subset(&y)) || contains_pattern(scale) {
            return None;
        }
        let with = |e: &Ex| Ex {
            kind: Kind::Op(ScalarOp::Mul, vec![scale.clone(), e.clone()]),
            ..e.clone()
        };
        let both = match s.is_subset(&y) {
            true => vec![pair[0].clone(), with(&pair[1])],
            false => vec![with(&pair[0]), pair[1].clone()],
        };
        let product = Ex { kind: Kind::Op(ScalarOp::Mul, both), ..(*g.body).clone() };
        let [_, group] = operands(inner)?;
        let g = Lambda { params: g.params.clone(), body: Box::new(product) };
        let group = Ex { kind: Kind::Map(Prim::Map, g, rows.to_vec()), ..group.clone() };
        self.joined(reduction, group)
    }

    /// Returns a sum of what is computed of sums, each with factors of its own, as one sum.
    fn one_sum(&mut self, reduction: &Ex) -> Option<Ex> {
        let (f, _) = Sums::summed(reduction)?;
        let (lets, mut body) = f.body.as_ref().clone().apart_from_lets();
        let mut scalars = vec![];
        for (p, value) in lets.into_iter().rev() {
            match p {
                Layout::Var(v, _) if Sums::summed(&value).is_some() && body.uses(v) == 1 => {
                    body.put(v, &value);
                }
                _ if contains_pattern(&value) => return None,
                p => scalars.push((p, value)),
            }
        }
        let is_bare = Sums::summed(&body).is_some();
        let (mut params, mut rows) = (vec![], vec![]);
        let element = self.element(&body, &mut params, &mut rows).filter(|_| !is_bare)?;
        let Ty::Array(m, _) = &rows.first()?.ty else { return None };
        let ty = Ty::array(m, &element.ty);
        let g = Lambda { params, body: Box::new(element) };
        scalars.reverse();
        let group = Ex::new(Kind::Map(Prim::Map, g, rows), ty, body.span).after(scalars);
        self.joined(reduction, group)
    }

    /// Returns a sum of what a map computes as the sum of all elements of the groups that the map gives instead.
    fn joined(&mut self, sum: &Ex, group: Ex) -> Option<Ex> {
        let (f, arrays) = Sums::summed(sum)?;
        let [start, outer] = operands(sum)?;
        let Ty::Array(n, _) = &outer.ty else { return None };
        let ty = Ty::array(n, &group.ty);
        let f = Lambda { params: f.params.clone(), body: Box::new(group) };
        let all = Ex { kind: Kind::Map(Prim::Map, f, arrays.to_vec()), ty, ..outer.clone() };
        let Kind::Prim(prim, funs, sizes, _) = &sum.kind else { return None };
        let operands = vec![start.clone(), all.join()?];
        let kind = Kind::Prim(*prim, funs.clone(), sizes.clone(), operands);
        Some(Ex { kind, ..sum.clone() }.refreshed(self.fresh))
    }

    /// Returns the element whose sum an expression is. Adds what it reads, and from which arrays.
    fn element(&mut self, e: &Ex, params: &mut Vec<Layout>, rows: &mut Vec<Ex>) -> Option<Ex> {
        if let Some((g, arrays)) = Sums::summed(e) {
            let mut element = g.body.as_ref().clone();
            for (p, array) in g.params.iter().zip(arrays) {
                if rows.first().is_some_and(|first: &Ex| first.length() != array.length()) {
                    return None;
                }
                let known = rows.iter().position(|row| row == array).map(|k| &params[k]);
                match (p, known) {
                    (Layout::Var(v, _), Some(same @ Layout::Var(..))) => {
                        element.put(*v, &same.value(array.span));
                    }
                    _ => {
                        params.push(p.renamed(&mut element, self.fresh));
                        rows.push(array.clone());
                    }
                }
            }
            return (!contains_pattern(&element)).then_some(element);
        }
        let Kind::Op(op, parts) = &e.kind else { return None };
        let [a, b] = parts.as_slice() else { return None };
        let both = match op {
            ScalarOp::Add | ScalarOp::Sub => {
                vec![self.element(a, params, rows)?, self.element(b, params, rows)?]
            }
            ScalarOp::Mul if !contains_pattern(a) => {
                vec![a.clone(), self.element(b, params, rows)?]
            }
            ScalarOp::Mul if !contains_pattern(b) => {
                vec![self.element(a, params, rows)?, b.clone()]
            }
            _ => return None,
        };
        Some(Ex { kind: Kind::Op(*op, both), ..e.clone() })
    }

    /// Returns the function whose results an expression sums, and what it is applied to.
    fn summed(e: &Ex) -> Option<(&Lambda, &[Ex])> {
        let [start, array] = operands(e)?;
        match &array.kind {
            Kind::Map(Prim::Map, f, arrays) if is_sum(e) && is_zero(start) => Some((f, arrays)),
            _ => None,
        }
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

/// Returns the start of a reduction, and what it reduces.
fn operands(e: &Ex) -> Option<[&Ex; 2]> {
    match &e.kind {
        Kind::Prim(Prim::Reduce | Prim::ReduceComm, _, _, args) => match &args[..] {
            [start, array] => Some([start, array]),
            _ => None,
        },
        _ => None,
    }
}
