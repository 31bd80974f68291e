//! A form in which loops move out of maps (Futhark's flattening rule G7).
//!
//! `map (\x -> loop s = init for i < n do step s) xs` becomes
//! `loop ss = map (\x -> init) xs for i < n do map2 (\s x -> step s) ss xs`.
//!
//! Inside the map, one work-group runs all steps of an element, which pays as long as it can keep the state. A state that is
//! longer than that is better off with a kernel for each step, in which the whole device works on the states of all elements. This
//! is another form of the program, and the cost model decides. The opposite step, for states whose elements never meet, is in
//! [`super::interchange`].

use super::core::{Ex, Kind, Lambda, Layout, Var};
use super::fission::keep_used;
use super::interchange::named;
use crate::calculus::size::SizeEnv;
use crate::calculus::ty::Ty;
use crate::lang::typed::Prim;

/// Fewest scalars of a state for which a kernel for each step may pay.
const LONG: u64 = 1024;

/// Returns the program with loops outside of maps; `None` if there are none to move.
pub(super) fn out_of_maps(e: &Ex, env: &SizeEnv, fresh: &mut dyn FnMut() -> Var) -> Option<Ex> {
    let mut out = e.clone();
    LoopsOut { env, fresh }.walk(&mut out).then_some(out)
}

struct LoopsOut<'a> {
    env: &'a SizeEnv,
    fresh: &'a mut dyn FnMut() -> Var,
}

impl LoopsOut<'_> {
    /// Moves the loops in an expression that the host computes. Returns whether there were any.
    fn walk(&mut self, e: &mut Ex) -> bool {
        match &mut e.kind {
            Kind::Map(Prim::Map, ..) => match self.split(e) {
                Some(split) => {
                    *e = split;
                    true
                }
                None => self.args(e),
            },
            Kind::Map(..) | Kind::Prim(..) => self.args(e),
            _ => {
                let mut changed = false;
                for part in e.parts_mut() {
                    changed |= self.walk(part);
                }
                changed
            }
        }
    }

    fn args(&mut self, e: &mut Ex) -> bool {
        let mut changed = false;
        if let Kind::Map(_, _, args) | Kind::Prim(_, _, _, args) = &mut e.kind {
            for arg in args {
                changed |= self.walk(arg);
            }
        }
        changed
    }

    /// Returns a map whose function contains a loop as the loop, with maps before, in and after it.
    fn split(&mut self, e: &Ex) -> Option<Ex> {
        let Kind::Map(Prim::Map, f, args) = &e.kind else { return None };
        let (mut f, mut args) = (f.clone(), args.clone());
        // An inner map may contain the loop.
        self.walk(&mut f.body);
        let (mut lets, mut found) = (vec![], None);
        self.take(&mut f.body, &mut lets, &mut found);
        let (name, looped) = found?;
        let Kind::For(init, bound, index, acc, step) = looped.kind else { return None };
        // Each of the three maps may use the arrays, and what is computed of their elements before the loop.
        let mut outside: Vec<(Layout, Ex)> = vec![];
        for arg in &mut args {
            if !arg.is_free_of_cost() {
                self.name(arg, &mut outside);
            }
        }
        let mut cheap: Vec<(Layout, Ex)> = vec![];
        for (p, value) in lets {
            if value.is_free_of_cost() || value.may_be_repeated() {
                cheap.push((p, value));
                continue;
            }
            let value = value.behind(cheap.iter(), self.fresh);
            let mut array = self.over(value, &f, &args)?;
            self.name(&mut array, &mut outside);
            unbind(&mut f.body, &p);
            f.params.push(p);
            args.push(array);
        }
        let init = init.behind(cheap.iter(), self.fresh);
        let first = self.over(init, &f, &args)?;
        let state = Ex::new(Kind::Var((self.fresh)()), first.ty.clone(), e.span);
        let step = step.behind(cheap.iter(), self.fresh);
        let of_state = std::iter::once((&acc, &state));
        let step = Ex::map_of(step, of_state.chain(f.params.iter().zip(&args)), self.fresh)?;
        let Kind::Var(v) = state.kind else { return None };
        let (ty, span) = (first.ty.clone(), e.span);
        let acc = Layout::Var(v, ty.clone());
        let mut all =
            Ex::new(Kind::For(Box::new(first), bound, index, acc, Box::new(step)), ty, span);
        if f.body.kind != name.value(span).kind {
            f.params.push(name);
            args.push(all);
            keep_used(&mut f, &mut args);
            all = Ex::new(Kind::Map(Prim::Map, f, args), e.ty.clone(), span);
        }
        Some(outside.into_iter().rev().fold(all, |body, (p, value)| {
            let ty = body.ty.clone();
            Ex::new(Kind::Let(p, Box::new(value), Box::new(body)), ty, span)
        }))
    }

    /// Replaces the first loop that can move by a name, outside of functions, branches and other loops. Adds what is bound before it to
    /// `lets`.
    fn take(&mut self, e: &mut Ex, lets: &mut Vec<(Layout, Ex)>, found: &mut Option<(Layout, Ex)>) {
        if found.is_some() {
            return;
        }
        if self.moves(e) {
            let name = named(&e.ty, self.fresh);
            let value = name.value(e.span);
            *found = Some((name, std::mem::replace(e, value)));
            return;
        }
        match &mut e.kind {
            Kind::Let(p, value, body) => {
                self.take(value, lets, found);
                if found.is_none() {
                    lets.push((p.clone(), (**value).clone()));
                    self.take(body, lets, found);
                }
            }
            Kind::Pair(..) | Kind::Proj(..) | Kind::Op(..) | Kind::Index(..) => {
                e.parts_mut().into_iter().for_each(|part| self.take(part, lets, found));
            }
            Kind::Map(_, _, args) | Kind::Prim(_, _, _, args) => {
                args.iter_mut().for_each(|arg| self.take(arg, lets, found));
            }
            _ => {}
        }
    }

    /// Whether an expression is a loop with a long state whose number of steps the host knows.
    fn moves(&self, e: &Ex) -> bool {
        let Kind::For(_, bound, ..) = &e.kind else { return false };
        bound.free().is_empty() && bound.is_pure_scalar() && is_long(&e.ty, self.env)
    }

    /// Returns the map of a function with this body over the arrays that it uses, or over the first if it uses none.
    fn over(&mut self, body: Ex, f: &Lambda, args: &[Ex]) -> Option<Ex> {
        let rows = || f.params.iter().zip(args);
        if let Some(map) = Ex::map_of(body.clone(), rows(), self.fresh) {
            return Some(map);
        }
        let (array, span) = (args.first()?, body.span);
        let Ty::Array(n, t) = &array.ty else { return None };
        let ty = Ty::array(n, &body.ty);
        let f = Lambda { params: vec![named(t, self.fresh)], body: Box::new(body) };
        Some(Ex::new(Kind::Map(Prim::Map, f, vec![array.clone()]), ty, span))
    }

    /// Gives an array a name, which takes its place.
    fn name(&mut self, array: &mut Ex, outside: &mut Vec<(Layout, Ex)>) {
        let v = (self.fresh)();
        let name = Ex::new(Kind::Var(v), array.ty.clone(), array.span);
        let value = std::mem::replace(array, name);
        outside.push((Layout::Var(v, value.ty.clone()), value));
    }
}

/// Whether the arrays of a state are so long that a kernel for each step may pay.
pub(super) fn is_long(state: &Ty, env: &SizeEnv) -> bool {
    scalars_of_arrays(state, env) >= LONG
}

/// Returns the number of scalars in the arrays of a value.
pub(super) fn scalars_of_arrays(ty: &Ty, env: &SizeEnv) -> u64 {
    let arrays = ty.components().into_iter().filter(|(dims, _)| !dims.is_empty());
    let lengths = arrays.map(|(dims, _)| {
        let dims = dims.iter().map(|n| n.eval(env).unwrap_or(1));
        dims.fold(1u64, u64::saturating_mul)
    });
    lengths.fold(0, u64::saturating_add)
}

/// Removes the `let` of a parameter.
fn unbind(e: &mut Ex, of: &Layout) {
    match &mut e.kind {
        Kind::Let(p, _, body) if p == of => *e = (**body).clone(),
        _ => e.parts_mut().into_iter().for_each(|part| unbind(part, of)),
    }
}
