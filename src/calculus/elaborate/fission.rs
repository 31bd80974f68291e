//! Puts products in nests of maps of their own (loop fission): where a reduction of two rows, one of each of two nested maps,
//! stands among other work, the reductions of all pairs of rows become a matrix in front of the outer map.
//!
//! `map (\q -> softmax (map2 (\k j -> mask j (dot q k)) ks js)) qs` becomes
//! `map (\s -> softmax (map2 (\r j -> mask j r) s js)) (map (\q -> map (\k -> dot q k) ks) qs)`.
//!
//! In the same way, reductions of columns leave a map that also reduces rows.
//!
//! The matrix is then a product with the tiles of a product, whatever is done with its elements. If that is cheap, rules
//! move it back behind the reduction. Else the matrix is stored, so this is another form of a program, and the cost model
//! decides. Nothing moves out of a branch or a loop (see `branches`).

use super::again;
use super::core::{Ex, Kind, Lambda, Layout, Var, Vars};
use super::hoist;
use super::interchange::named;
use super::recurrences::number_of_steps;
use super::unused::keep_used;
use crate::calculus::size::SizeEnv;
use crate::calculus::ty::Ty;
use crate::lang::typed::{Prim, ScalarOp};

/// Fewest operations of one result, and fewest results, for which a nest of its own may pay.
pub(super) const ROW: u64 = 16;
pub(super) const RESULTS: u64 = 1 << 16;

/// How many times as long as there are results a reduction is at least, for which few results pay, too.
pub(super) const TALL: u64 = 16;

/// Returns the program with its products in nests of their own; `None` if there are none among other work.
pub(super) fn products_apart(e: &Ex, env: &SizeEnv, fresh: &mut dyn FnMut() -> Var) -> Option<Ex> {
    let mut out = e.clone();
    Fission { env, fresh, all_steps: false }.walk(&mut out, 1).then_some(out)
}

/// The same, where the results of all steps of a loop count: those that do not need the loop's state may be computed in front of it.
pub(super) fn products_of_steps_apart(
    e: &Ex,
    env: &SizeEnv,
    fresh: &mut dyn FnMut() -> Var,
) -> Option<Ex> {
    let mut out = e.clone();
    Fission { env, fresh, all_steps: true }.walk(&mut out, 1).then_some(out)
}

struct Fission<'a> {
    env: &'a SizeEnv,
    fresh: &'a mut dyn FnMut() -> Var,
    /// Whether the results of all steps of a loop count.
    all_steps: bool,
}

/// The place of an inner map in the function of an outer one.
struct Place {
    /// The parameters of the outer map.
    rows: Vars,
    /// What is bound between the beginning of the outer function and the place.
    lets: Vec<(Layout, Ex)>,
    /// Number of times that the outer function is computed.
    times: u64,
    /// The products that were found: the name of a row of each, and the row.
    found: Vec<(Layout, Ex)>,
}

impl Fission<'_> {
    /// Changes all nests in an expression that is computed `times` times. Returns whether there were any.
    fn walk(&mut self, e: &mut Ex, times: u64) -> bool {
        let length = self.rows(&e.ty);
        let mut shared = vec![];
        let changed = match &mut e.kind {
            Kind::Map(Prim::Map, f, args) => {
                let inside = times.saturating_mul(length);
                let mut changed = false;
                // The products of the function will be of these arrays.
                for arg in args.iter_mut() {
                    changed |= self.walk(arg, times);
                }
                changed |= self.columns(f, args, inside);
                changed |= self.nest(f, args, &mut shared, inside);
                changed | self.walk(&mut f.body, inside)
            }
            // The program itself has chosen what a low-level map computes.
            Kind::Map(..) => false,
            Kind::For(init, bound, _, _, body) if self.all_steps => {
                let steps = number_of_steps(bound).and_then(|n| n.eval(self.env).ok());
                let all = times.saturating_mul(steps.unwrap_or(1).max(1));
                self.walk(init, times) | self.walk(body, all)
            }
            _ => {
                let mut changed = false;
                for part in e.parts_mut() {
                    changed |= self.walk(part, times);
                }
                changed
            }
        };
        if !shared.is_empty() {
            *e = e.clone().after(shared);
        }
        changed
    }

    /// Moves the products in the function of a map in front of the map: they become its first arrays. Returns whether there are any. Arrays
    /// that are computed, and that both the products and the rest of the function read, get names in `shared`.
    fn nest(
        &mut self,
        f: &mut Lambda,
        args: &mut Vec<Ex>,
        shared: &mut Vec<(Layout, Ex)>,
        times: u64,
    ) -> bool {
        // The rules know products, and products with scalar functions of their results. But the tiles of a product with a
        // mask are better off without other work, and so are two products, whether of different rows or of common ones (matrix
        // instructions compute one product), and a product that is summed in parts.
        let body = f.body.behind_lets();
        if let Kind::Map(Prim::Map, g, _) = &body.kind
            && only_computes(&g.body)
            && count(&f.body) == count(&g.body)
            && !has_apart(&g.body)
            && !has_several_products(&g.body)
            && !self.is_tall(&g.body, times.saturating_mul(self.rows(&body.ty)))
        {
            return false;
        }
        let mut place = Place { rows: f.own(), lets: vec![], times, found: vec![] };
        self.inner(&mut f.body, &mut place);
        let free = f.body.free();
        for (p, arg) in f.params.iter().zip(args.iter_mut()) {
            let read = |(_, row): &(Layout, Ex)| p.meets(&row.free());
            if p.meets(&free) && !arg.is_free_of_cost() && place.found.iter().any(read) {
                let name = Layout::Var((self.fresh)(), arg.ty.clone());
                let value = name.value(arg.span);
                shared.push((name, std::mem::replace(arg, value)));
            }
        }
        for (name, row) in &place.found {
            let Some(mut product) =
                Ex::map_of(row.clone(), f.params.iter().zip(&*args), self.fresh)
            else {
                continue;
            };
            // What it reduces may be a product itself, as in a quadratic form.
            if let Kind::Map(_, rows, _) = &mut product.kind {
                self.walk(&mut rows.body, times);
            }
            f.params.insert(0, name.clone());
            args.insert(0, product);
        }
        if !place.found.is_empty() {
            again::rows_of_elements(&mut f.body, self.fresh);
        }
        keep_used(f, args);
        !place.found.is_empty()
    }

    /// Moves the reductions of columns in front of a map that reduces rows, too. Work-items that are neighbours read a column one
    /// after the other, and a row together: one map cannot do both well.
    fn columns(&mut self, f: &mut Lambda, args: &mut Vec<Ex>, times: u64) -> bool {
        let is_turned = |arg: &Ex| matches!(arg.kind, Kind::Prim(Prim::Transpose, ..));
        let own = |turned: bool| -> Vars {
            let params = f.params.iter().zip(&*args).filter(|(_, arg)| is_turned(arg) == turned);
            params.flat_map(|(p, _)| p.vars()).map(|(v, _)| v).collect()
        };
        let (columns, rows) = (own(true), own(false));
        let mut found = vec![];
        self.reductions(&f.body, &mut vec![], &mut found);
        let reads = |e: &Ex, these: &Vars, others: &Vars| {
            takes_arrays(e, these) && !takes_arrays(e, others)
        };
        if !found.iter().any(|(_, whole)| reads(whole, &rows, &columns)) {
            return false;
        }
        let before = f.params.len();
        for (reduction, whole) in found {
            let operations = reduced(&reduction, self.env).saturating_mul(times);
            if !reads(&whole, &columns, &rows) || operations < ROW * RESULTS {
                continue;
            }
            let arrays = f.params.iter().zip(&*args);
            let Some(results) = Ex::map_of(whole.clone(), arrays, self.fresh) else { continue };
            let name = named(&whole.ty, self.fresh);
            f.body.replace(&reduction, &name.value(whole.span));
            f.params.insert(0, name);
            args.insert(0, results);
        }
        let changed = f.params.len() > before;
        keep_used(f, args);
        changed
    }

    /// Finds inner maps, outside functions, branches and loops.
    fn inner(&mut self, e: &mut Ex, place: &mut Place) {
        let names = place.lets.iter().flat_map(|(p, _)| p.vars()).map(|(v, _)| v);
        if let Some(flat) = flattened(e, &names.chain(place.rows.iter().copied()).collect()) {
            *e = flat;
        }
        let results = place.times.saturating_mul(self.rows(&e.ty));
        if let Kind::Map(Prim::Map, g, args) = &mut e.kind
            && (results >= RESULTS || self.is_tall(&g.body, results))
        {
            self.map(g, args, place);
        }
        match &mut e.kind {
            Kind::Let(p, value, body) => {
                self.inner(value, place);
                place.lets.push((p.clone(), (**value).clone()));
                self.inner(body, place);
                place.lets.pop();
            }
            Kind::Pair(..) | Kind::Proj(..) | Kind::Op(..) => {
                e.parts_mut().into_iter().for_each(|part| self.inner(part, place));
            }
            Kind::Map(_, _, args) | Kind::Prim(_, _, _, args) => {
                args.iter_mut().for_each(|arg| self.inner(arg, place));
            }
            _ => {}
        }
    }

    /// Moves the reductions in the function of an inner map to a map of their own.
    fn map(&mut self, g: &mut Lambda, args: &mut Vec<Ex>, place: &mut Place) {
        let columns = g.own();
        let (mut lets, mut found) = (vec![], vec![]);
        self.reductions(&g.body, &mut lets, &mut found);
        let bound: Vars = place.lets.iter().flat_map(|(p, _)| p.vars()).map(|(v, _)| v).collect();
        for (reduction, whole) in found {
            let free = whole.free();
            // The partners of all rows are the same.
            let closed = g.params.iter().zip(args.iter()).filter(|(p, _)| p.meets(&free)).all(
                |(_, array)| {
                    let free = array.free();
                    free.is_disjoint(&place.rows) && free.is_disjoint(&bound)
                },
            );
            if !closed || !takes_arrays(&whole, &columns) {
                continue;
            }
            let arrays = g.params.iter().zip(&*args);
            let Some(product) = Ex::map_of(whole.clone(), arrays, self.fresh) else { continue };
            let product = product.behind(place.lets.iter(), self.fresh);
            if !takes_arrays(&product, &place.rows) || count(&product) > count(&reduction) {
                continue;
            }
            let (name, row) = (named(&whole.ty, self.fresh), named(&product.ty, self.fresh));
            g.body.replace(&reduction, &name.value(whole.span));
            g.params.insert(0, name);
            args.insert(0, row.value(whole.span));
            place.found.push((row, product));
        }
        keep_used(g, args);
    }

    /// Adds the long reductions to a scalar, outside functions, branches and loops: each as it stands, and with the `let`s
    /// that it needs.
    fn reductions(&mut self, e: &Ex, lets: &mut Vec<(Layout, Ex)>, out: &mut Vec<(Ex, Ex)>) {
        if reduces(e) {
            let is_scalar = e.ty.components().iter().all(|(dims, _)| dims.is_empty());
            let known = out.iter().any(|(known, _)| known == e);
            let whole = e.clone().behind(lets.iter(), self.fresh);
            if is_scalar && !known && reduced(e, self.env) >= ROW && count(&whole) == count(e) {
                out.push((e.clone(), whole));
            }
            return;
        }
        match &e.kind {
            Kind::Let(p, value, body) => {
                self.reductions(value, lets, out);
                lets.push((p.clone(), (**value).clone()));
                self.reductions(body, lets, out);
                lets.pop();
            }
            Kind::Pair(..) | Kind::Proj(..) | Kind::Op(..) => {
                e.parts().into_iter().for_each(|(_, part)| self.reductions(part, lets, out));
            }
            Kind::If(condition, ..) => self.reductions(condition, lets, out),
            _ => {}
        }
    }

    /// Returns the length of an array.
    fn rows(&self, ty: &Ty) -> u64 {
        length(ty, self.env)
    }

    /// Whether an expression computes more of a long reduction, of which there are so few results that it is summed in parts.
    fn is_tall(&self, e: &Ex, results: u64) -> bool {
        let e = e.behind_lets();
        !reduces(e) && parts_that_reduce(e).iter().any(|r| reduced(r, self.env) / TALL >= results)
    }
}

/// Returns the length of an array.
pub(super) fn length(ty: &Ty, env: &SizeEnv) -> u64 {
    match ty {
        Ty::Array(n, _) => n.eval(env).unwrap_or(1),
        _ => 1,
    }
}

/// Returns the length of what a reduction reduces.
pub(super) fn reduced(e: &Ex, env: &SizeEnv) -> u64 {
    match &e.kind {
        Kind::Prim(_, _, _, args) => args.last().map_or(0, |a| length(&a.ty, env)),
        _ => 0,
    }
}

/// Returns a map over rows of rows as one map over all rows, if the inner function takes nothing else of the outer row, and the rows do
/// not depend on the names in `inside`:
/// `map2 (\xs ys -> map2 h xs ys) xss yss` is `split m (map2 h (join xss) (join yss))`. Then products with all rows are one product.
pub(super) fn flattened(e: &Ex, inside: &Vars) -> Option<Ex> {
    let Kind::Map(Prim::Map, f, args) = &e.kind else { return None };
    let Kind::Map(Prim::Map, h, rows) = &f.body.kind else { return None };
    if !h.body.free().is_disjoint(&f.own()) || count(&h.body) == 0 {
        return None;
    }
    let all = |row: &Ex| {
        let own =
            |p: &Layout| matches!((p, &row.kind), (Layout::Var(p, _), Kind::Var(v)) if p == v);
        let array = &args[f.params.iter().position(own)?];
        if array.free().is_disjoint(inside) { array.clone().join() } else { None }
    };
    let all: Vec<Ex> = rows.iter().map(all).collect::<Option<_>>()?;
    let Ty::Array(n, of) = &e.ty else { return None };
    let Ty::Array(m, result) = &**of else { return None };
    let map = Kind::Map(Prim::Map, h.clone(), all);
    Ex::new(map, Ty::array(&n.mul(m), result), e.span).split(n, m)
}

/// Whether an expression is a reduction that may be computed in any order.
fn reduces(e: &Ex) -> bool {
    matches!(e.kind, Kind::Prim(Prim::Reduce | Prim::ReduceComm, ..))
}

/// Whether an expression computes a scalar from reductions and elements, without choices.
pub(super) fn only_computes(e: &Ex) -> bool {
    match &e.kind {
        _ if reduces(e) => !chooses(e),
        Kind::Var(_) | Kind::Lit(_) | Kind::Size(_) | Kind::ScalarInput(..) => true,
        Kind::Op(..) | Kind::Pair(..) | Kind::Proj(..) => {
            e.parts().iter().all(|(_, part)| only_computes(part))
        }
        Kind::Let(_, _, body) => only_computes(body),
        _ => false,
    }
}

/// Returns the reductions in an expression, without those inside of others.
pub(super) fn parts_that_reduce(e: &Ex) -> Vec<&Ex> {
    match e {
        e if reduces(e) => vec![e],
        e => e.parts().into_iter().flat_map(|(_, part)| parts_that_reduce(part)).collect(),
    }
}

/// Whether an expression has two reductions that have no array in common.
fn has_apart(e: &Ex) -> bool {
    let found = parts_that_reduce(e);
    let free: Vec<Vars> = found.iter().map(|r| r.free()).collect();
    free.iter().enumerate().any(|(k, a)| free[..k].iter().any(|b| a.is_disjoint(b)))
}

/// Whether an expression has several sums of products.
fn has_several_products(e: &Ex) -> bool {
    let is_sum = |e: &Ex| match &e.kind {
        Kind::Prim(_, funs, _, args) => {
            let adds = |f: &Lambda| matches!(f.body.kind, Kind::Op(ScalarOp::Add, _));
            let multiplies = |f: &Lambda| matches!(f.body.kind, Kind::Op(ScalarOp::Mul, _));
            let products = |a: &Ex| matches!(&a.kind, Kind::Map(Prim::Map, f, _) if multiplies(f));
            funs.iter().any(adds) && args.last().is_some_and(products)
        }
        _ => false,
    };
    parts_that_reduce(e).into_iter().filter(|r| is_sum(r)).count() > 1
}

/// Whether an expression contains a choice.
fn chooses(e: &Ex) -> bool {
    matches!(e.kind, Kind::If(..)) || e.parts().iter().any(|(_, part)| chooses(part))
}

/// Whether a branch mentions a name.
pub(super) fn in_branch(e: &Ex, name: Var) -> bool {
    match &e.kind {
        Kind::If(c, yes, no) => in_branch(c, name) || yes.uses(name) + no.uses(name) > 0,
        _ => e.parts().into_iter().any(|(_, part)| in_branch(part, name)),
    }
}

/// Returns the number of reductions, scans and the like in an expression.
pub(super) fn count(e: &Ex) -> usize {
    let parts = e.parts();
    usize::from(hoist::reduces(&e.kind)) + parts.iter().map(|(_, p)| count(p)).sum::<usize>()
}

/// Whether an expression mentions an array among these variables.
pub(super) fn takes_arrays(e: &Ex, of: &Vars) -> bool {
    match e.kind {
        Kind::Var(v) => of.contains(&v) && matches!(e.ty, Ty::Array(..)),
        _ => e.parts().iter().any(|(_, part)| takes_arrays(part, of)),
    }
}
