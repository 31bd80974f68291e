//! A form in which loops move out of maps (Futhark's flattening rule G7).
//!
//! `map (\x -> loop s = init for i < n do step s) xs` becomes
//! `loop ss = map (\x -> init) xs for i < n do map2 (\s x -> step s) ss xs`.
//!
//! Inside the map, one work-group runs all steps of an element, which pays as long as it can keep the state. A state that is
//! longer than that is better off with a kernel for each step, in which the whole device works on the states of all elements. This
//! is another form of the program, and the cost model decides. The opposite step, for states whose elements never meet, is in
//! [`super::interchange`].

use super::core::{Ex, Kind, Layout, Var};
use super::cut::Cut;
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
        let mut e = e.clone();
        // An inner map may contain the loop.
        if let Kind::Map(_, f, _) = &mut e.kind {
            self.walk(&mut f.body);
        }
        let (cut, looped) = Cut::at(&e, &|e| moves(e, self.env), self.fresh)?;
        let Kind::For(init, bound, index, acc, step) = looped.kind else { return None };
        let first = cut.array(*init, self.fresh)?;
        let v = (self.fresh)();
        let state = Ex::new(Kind::Var(v), first.ty.clone(), e.span);
        let step = cut.array_with(&[(&acc, &state)], *step, self.fresh)?;
        let ty = first.ty.clone();
        let acc = Layout::Var(v, ty.clone());
        let all = Kind::For(Box::new(first), bound, index, acc, Box::new(step));
        cut.with(vec![Ex::new(all, ty, e.span)], false, self.fresh)
    }
}

/// Whether an expression is a loop with a long state whose number of steps the host knows.
fn moves(e: &Ex, env: &SizeEnv) -> bool {
    let Kind::For(_, bound, ..) = &e.kind else { return false };
    bound.free().is_empty() && bound.is_pure_scalar() && is_long(&e.ty, env)
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
