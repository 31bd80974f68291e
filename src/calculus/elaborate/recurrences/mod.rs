//! Loops that build arrays element by element become sequential scans.
//!
//! `loop (out, y) = (out0, y0) for i < n do let v = f y xs[i] in (out with [i] <- v, v)` becomes `scanSeq f y0 xs`. As a loop, the
//! array is part of a state: it has an initial value, lies in the memory of a work-item or a group, and is copied at the end. A scan
//! stores each element where the result is, and its other state is in registers.
//!
//! An array of the state is such a result if each step changes nothing but the element at the place that the counter gives
//! ([`runs`]), upwards or downwards, and reads nothing but elements that have their initial values, which are elements of another
//! array, or elements that the last steps stored, which become state ([`step`]). Where the loop leaves elements as they were, they are put
//! around the results. Of the other state, the last values are the last results.
//!
//! One work-item runs a scan. So a loop whose steps have much work that a group could share out stays a loop, as do the loops beside
//! it in the function of a map, and a loop of the host unless its steps are scalars.

mod runs;
mod step;
#[cfg(test)]
mod tests;

use super::core::{Ex, Kind, Lambda, Layout, Var, Vars};
use super::interchange::{is_scalar_step, named, of_scan};
use super::loops_out::scalars_of_arrays;
use super::sizes::nest;
use crate::calculus::scalar::Lit;
use crate::calculus::size::{Size, SizeEnv};
use crate::calculus::ty::Ty;
use crate::lang::typed::{Prim, ScalarOp, ScanKind};
use crate::lang::types::ScalarType;
use runs::Counted;
use std::collections::HashMap;
use step::{Component, Step, Stored};

/// Most scalars in arrays of a scan's state, which a work-item has in registers.
const STATE: u64 = 64;

/// A group of so few work-items would leave most of a warp idle, and have barriers between all parts of a step.
const NARROW: u64 = 8;

/// Most operations of one part of a step that are work for one work-item, however many work-items could share them.
const WORK: u64 = 64;

/// Returns the program with scans in place of such loops, the inner ones first. Parts of dimensions become dimensions, whose values
/// are added to the environment.
pub(super) fn as_scans(mut e: Ex, env: &mut SizeEnv, fresh: &mut dyn FnMut() -> Var) -> Ex {
    Scans { env, fresh }.walk(&mut e, false);
    e
}

struct Scans<'a> {
    env: &'a mut SizeEnv,
    fresh: &'a mut dyn FnMut() -> Var,
}

/// What a scan gives for the components of a loop's state, behind names.
struct Values {
    lets: Vec<(Layout, Ex)>,
    /// For the variable of each component that is used.
    components: HashMap<Var, Ex>,
}

impl Values {
    /// Returns the tuple of components that stand for the variables of a layout.
    fn tuple(self, shape: &Layout) -> Ex {
        fn of(shape: &Layout, components: &HashMap<Var, Ex>) -> Ex {
            match shape {
                Layout::Pair(a, b) => Ex::pair(of(a, components), of(b, components)),
                Layout::Var(v, _) if components.contains_key(v) => components[v].clone(),
                other => other.value(crate::diag::Span::default()),
            }
        }
        of(shape, &self.components).after(self.lets)
    }
}

impl Scans<'_> {
    /// Changes the loops of an expression. `inside` says that it is in a function of a pattern.
    fn walk(&mut self, e: &mut Ex, inside: bool) {
        if let Kind::Let(names, value, body) = &mut e.kind
            && let Kind::For(_, _, _, acc, _) = &value.kind
        {
            let acc = acc.vars();
            self.parts(value, inside);
            self.walk(body, inside);
            let names: Vec<(Var, Var)> =
                names.vars().into_iter().zip(&acc).map(|((v, _), (a, _))| (v, *a)).collect();
            let used = names.iter().filter(|(v, _)| body.uses(*v) > 0).map(|(_, a)| *a).collect();
            if names.len() == acc.len()
                && let Some(values) = self.scan(value, &used, inside)
            {
                let mut out = (**body).clone();
                for (v, a) in names.into_iter().rev() {
                    if let Some(value) = values.components.get(&a) {
                        out = bound(out, v, value);
                    }
                }
                *e = out.after(values.lets);
            }
            return;
        }
        let Some((looped, shape)) = part_of_loop(e) else { return self.parts(e, inside) };
        self.parts(looped, inside);
        let used = shape.vars().into_iter().map(|(v, _)| v).collect();
        if let Some(values) = self.scan(looped, &used, inside) {
            *e = values.tuple(&shape);
        }
    }

    fn parts(&mut self, e: &mut Ex, inside: bool) {
        match &mut e.kind {
            Kind::Map(prim, f, args) => {
                // The program itself chose where the functions of low-level patterns run.
                if *prim == Prim::Map {
                    let before = f.body.clone();
                    self.walk(&mut f.body, true);
                    // A group that shares the work of a loop cannot run a scan beside it.
                    if f.body != before && self.has_shared_loop(&f.body) {
                        f.body = before;
                    }
                }
                args.iter_mut().for_each(|a| self.walk(a, inside));
            }
            Kind::Prim(_, fs, _, args) => {
                fs.iter_mut().for_each(|f| self.walk(&mut f.body, true));
                args.iter_mut().for_each(|a| self.walk(a, inside));
            }
            _ => e.parts_mut().into_iter().for_each(|part| self.walk(part, inside)),
        }
    }

    /// Returns the scan that gives the components of a loop that are used.
    fn scan(&mut self, e: &Ex, used: &Vars, inside: bool) -> Option<Values> {
        let Kind::For(init, bound, Layout::Var(counter, counter_ty), acc, body) = &e.kind else {
            return None;
        };
        let n = number_of_steps(bound)?;
        let steps = i128::from(n.eval(self.env).ok()?);
        if steps == 0 {
            return None;
        }
        let vars = acc.vars();
        let mut outside = body.free();
        outside.remove(counter);
        vars.iter().for_each(|(v, _)| _ = outside.remove(v));
        let mut names = HashMap::new();
        collect_names(body, &mut names);
        let counted = Counted { counter: *counter, n: &n, steps, names };
        let (mut before, mut first) = (vec![], vec![]);
        self.apart((**init).clone(), acc, &mut before, &mut first);
        let (mut lets, mut next) = (vec![], vec![]);
        self.apart((**body).clone(), acc, &mut lets, &mut next);
        let (elements, arrays, state) = (vec![], vec![], vec![]);
        let mut step = Step { counted, outside, lets, elements, arrays, state };
        for ((of, (var, ty)), (first, next)) in
            vars.iter().enumerate().zip(first.into_iter().zip(next))
        {
            if let Some((run, value)) = step.stored(*var, ty, &next, self.env) {
                let old = self.shared(first, &mut before);
                let (var, kept, guarded) = (*var, vec![], true);
                step.arrays.push(Stored { of, var, run, old, value, kept, guarded });
            } else {
                let name = Layout::Var(*var, ty.clone());
                step.state.push(Component { of: Some(of), name, first, next });
            }
        }
        let is_used = |of: usize| used.contains(&vars[of].0);
        if !step.arrays.iter().any(|a| is_used(a.of)) {
            return None;
        }
        step.read_all(self.env, self.fresh)?;
        step.arrays.retain(|a| is_used(a.of) || !a.kept.is_empty());
        let place = step.results(self.env, self.fresh)?;
        let arrays = step.arrays.iter().filter(|a| is_used(a.of)).map(|a| (a.of, place[&a.of]));
        let finals = step.state.iter().enumerate();
        let finals = finals.filter_map(|(k, c)| Some((c.of.filter(|of| is_used(*of))?, k)));
        let results: Vec<(usize, usize)> = arrays.chain(finals).collect();
        let place = step.drop_unused(results.iter().map(|(_, k)| *k).collect());
        let results: Vec<(usize, usize)> =
            results.into_iter().map(|(of, k)| (of, place[&k])).collect();
        let scan = match (self.is_for_one_item(&step, inside), inside) {
            (true, _) => self.scanned(&step, counter_ty)?,
            // A loop of the host over rows whose elements never meet is a scan for each element.
            (false, false) => of_scan(&self.scanned(&step, counter_ty)?, self.fresh)?,
            (false, true) => return None,
        };
        let all = self.arrays(scan, &step, &results, &mut before)?;
        let mut components = HashMap::new();
        for (of, k) in results {
            let new = all.get(&k)?.clone();
            let value = match step.arrays.iter().find(|a| a.of == of) {
                Some(a) => step.counted.replaced(&a.old, a.run, new, self.env)?,
                None => last(&new)?,
            };
            components.insert(vars[of].0, value);
        }
        Some(Values { lets: before, components })
    }

    /// Takes a value apart as a layout says. What is no tuple gets names.
    fn apart(&mut self, e: Ex, shape: &Layout, lets: &mut Vec<(Layout, Ex)>, out: &mut Vec<Ex>) {
        match (shape, e.kind) {
            (_, Kind::Let(names, value, body)) => {
                lets.push((names, *value));
                self.apart(*body, shape, lets, out);
            }
            (Layout::Pair(a, b), Kind::Pair(x, y)) => {
                self.apart(*x, a, lets, out);
                self.apart(*y, b, lets, out);
            }
            (Layout::Pair(..), kind) => {
                let names = named(&e.ty, self.fresh);
                let values = names.vars().into_iter();
                out.extend(values.map(|(v, t)| Ex::new(Kind::Var(v), t, e.span)));
                lets.push((names, Ex { kind, ..e }));
            }
            (_, kind) => out.push(Ex { kind, ..e }),
        }
    }

    /// Returns a name for an array that costs something.
    fn shared(&mut self, e: Ex, lets: &mut Vec<(Layout, Ex)>) -> Ex {
        if e.is_free_of_cost() {
            return e;
        }
        let name = Layout::Var((self.fresh)(), e.ty.clone());
        let value = name.value(e.span);
        lets.push((name, e));
        value
    }

    /// Whether the steps are work for one work-item.
    fn is_for_one_item(&self, step: &Step, inside: bool) -> bool {
        if !inside {
            return step.all().all(|e| e.ty == Ty::Unit || is_scalar_step(e));
        }
        let state = step.state.iter().map(|c| scalars_of_arrays(&c.next.ty, self.env));
        state.sum::<u64>() <= STATE && step.all().all(|e| self.is_small(e))
    }

    /// Whether a loop over arrays, outside of functions of patterns, has steps that a group shares out. One around a scan has no
    /// better way.
    fn has_shared_loop(&self, e: &Ex) -> bool {
        if let Kind::For(.., acc, step) = &e.kind
            && acc.ty().has_array()
            && !self.is_small(step)
            && !has_scan(step)
        {
            return true;
        }
        let outside = |(bound, _): &(Vec<&Layout>, &Ex)| match &e.kind {
            Kind::Map(..) | Kind::Prim(..) => bound.is_empty(),
            _ => true,
        };
        e.parts().into_iter().filter(outside).any(|(_, part)| self.has_shared_loop(part))
    }

    /// Whether no pattern in an expression is worth a group of work-items.
    fn is_small(&self, e: &Ex) -> bool {
        let narrow = self.length(e).is_none_or(|n| n <= NARROW) || self.work(e) <= WORK;
        narrow && e.parts().iter().all(|(_, part)| self.is_small(part))
    }

    /// Returns the number of elements that a pattern goes through; `None` for what is no pattern, or only rearranges.
    fn length(&self, e: &Ex) -> Option<u64> {
        let (Kind::Map(_, _, args) | Kind::Prim(_, _, _, args)) = &e.kind else { return None };
        if e.is_free_of_cost() {
            return None;
        }
        args.iter().filter_map(|a| a.length()?.eval(self.env).ok()).max()
    }

    /// Returns about how many operations on elements an expression takes.
    fn work(&self, e: &Ex) -> u64 {
        let (function, parts): (Vec<_>, Vec<_>) =
            e.parts().into_iter().partition(|(bound, _)| !bound.is_empty());
        let of = |parts: Vec<(Vec<&Layout>, &Ex)>| {
            parts.iter().map(|(_, part)| self.work(part)).fold(0, u64::saturating_add)
        };
        match self.length(e) {
            Some(n) => n.saturating_mul(of(function).max(1)).saturating_add(of(parts)),
            None => of(function).saturating_add(of(parts)),
        }
    }

    /// Returns the scan of the steps: an array of the states after each.
    fn scanned(&mut self, step: &Step, counter_ty: &Ty) -> Option<Ex> {
        let (n, span) = (step.counted.n, step.state.first()?.next.span);
        let (free, mut elements) = (free_of(step), vec![]);
        for x in step.elements.iter().filter(|x| x.name.meets(&free)) {
            let array = step.counted.elements(x.array.clone(), x.run, self.env)?;
            elements.push((x.name.clone(), array));
        }
        let counter = step.counted.counter;
        if elements.is_empty() || free.contains(&counter) {
            let name = Layout::Var(counter, counter_ty.clone());
            elements.push((name, Ex::iota(n, counter_ty, span)));
        }
        let (last, others) = elements.split_last()?;
        let (x, xs) = others.iter().rev().try_fold(last.clone(), |(name, array), (p, a)| {
            Some((pair(p.clone(), name), a.clone().zip(array)?))
        })?;
        let acc = nest(step.state.iter().map(|c| c.name.clone()).collect(), pair)?;
        let first = nest(step.state.iter().map(|c| c.first.clone()).collect(), Ex::pair)?;
        let next = nest(step.state.iter().map(|c| c.next.clone()).collect(), Ex::pair)?;
        let ty = Ty::array(n, &next.ty);
        let body = Box::new(next.after(step.lets.clone()));
        let f = Lambda { params: vec![acc, x], body };
        let kind = Kind::Prim(Prim::Scan(ScanKind::Seq), vec![f], vec![], vec![first, xs]);
        Some(Ex::new(kind, ty, span))
    }

    /// Returns the array of each component of the states that is a result, by its number.
    fn arrays(
        &mut self,
        scan: Ex,
        step: &Step,
        results: &[(usize, usize)],
        lets: &mut Vec<(Layout, Ex)>,
    ) -> Option<HashMap<usize, Ex>> {
        let (n, span) = (step.counted.n, scan.span);
        let mut kept: Vec<usize> = results.iter().map(|(_, k)| *k).collect();
        kept.sort_unstable();
        kept.dedup();
        let mut all = scan;
        if kept.len() < step.state.len() {
            let names = step.state.iter().map(|c| named(&c.next.ty, self.fresh));
            let names: Vec<Layout> = names.collect();
            let body = nest(kept.iter().map(|k| names[*k].value(span)).collect(), Ex::pair)?;
            let ty = Ty::array(n, &body.ty);
            let f = Lambda { params: vec![nest(names, pair)?], body: Box::new(body) };
            all = Ex::new(Kind::Map(Prim::Map, f, vec![all]), ty, span);
        }
        let mut out = HashMap::new();
        let (last, others) = kept.split_last()?;
        for k in others {
            let Ty::Pair(a, b) = all.element_type()? else { return None };
            let one = Layout::Var((self.fresh)(), Ty::array(n, &a));
            let rest = Layout::Var((self.fresh)(), Ty::array(n, &b));
            out.insert(*k, one.value(span));
            let value = rest.value(span);
            let ty = Ty::pair(&one.ty(), &rest.ty());
            let unzip = Kind::Prim(Prim::Unzip, vec![], vec![], vec![all]);
            lets.push((pair(one, rest), Ex::new(unzip, ty, span)));
            all = value;
        }
        if results.len() > 1 {
            all = self.shared(all, lets);
        }
        out.insert(*last, all);
        Some(out)
    }
}

/// Returns the loop of which an expression is a component, or the whole, and the layout of the component.
fn part_of_loop(e: &mut Ex) -> Option<(&mut Ex, Layout)> {
    match &e.kind {
        Kind::For(_, _, _, acc, _) => {
            let acc = acc.clone();
            Some((e, acc))
        }
        Kind::Proj(..) => {
            let Kind::Proj(of, second) = &mut e.kind else { return None };
            match part_of_loop(of)? {
                (of, Layout::Pair(a, b)) => Some((of, if *second { *b } else { *a })),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Returns the number of steps of a loop; `None` if data decide.
pub(super) fn number_of_steps(bound: &Ex) -> Option<Size> {
    match &bound.kind {
        Kind::Size(n) => Some(n.clone()),
        Kind::Lit(n) => Some(Size::constant(u64::try_from(n.as_int()?).ok()?)),
        _ => None,
    }
}

/// Whether an expression contains a sequential scan.
fn has_scan(e: &Ex) -> bool {
    matches!(e.kind, Kind::Prim(Prim::Scan(ScanKind::Seq), ..))
        || e.parts().iter().any(|(_, part)| has_scan(part))
}

/// Collects what the names in an expression stand for, also those in its parts.
fn collect_names(e: &Ex, names: &mut HashMap<Var, Ex>) {
    if let Kind::Let(Layout::Var(v, _), value, _) = &e.kind {
        names.insert(*v, (**value).clone());
    }
    e.parts().iter().for_each(|(_, part)| collect_names(part, names));
}

fn free_of(step: &Step) -> Vars {
    step.all().flat_map(Ex::free).collect()
}

fn pair(a: Layout, b: Layout) -> Layout {
    Layout::Pair(Box::new(a), Box::new(b))
}

/// Returns the last element of an array.
fn last(array: &Ex) -> Option<Ex> {
    let (t, span) = (ScalarType::I64, array.span);
    let n = Ex::new(Kind::Size(array.length()?.clone()), Ty::Scalar(t), span);
    let one = Ex::new(Kind::Lit(Lit::int(t, 1)), Ty::Scalar(t), span);
    array.element(&Ex::op(ScalarOp::Sub, vec![n, one], t, span))
}

/// Returns an expression in which a name stands for a value.
fn bound(mut e: Ex, v: Var, value: &Ex) -> Ex {
    if value.is_free_of_cost() || e.uses(v) == 1 {
        e.put(v, value);
        return e;
    }
    e.bound(Layout::Var(v, value.ty.clone()), value.clone())
}
