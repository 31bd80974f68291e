//! What the steps of a loop of the host compute without its state is computed in front of the loop: for all steps at once if it
//! depends on the number of the step, and once if it does not.
//!
//! `loop s = s0 for k < n do f s (W * X[k])` becomes `let all = map (\x -> W * x) X in loop s = s0 for k < n do f s all[k]`: one large
//! product in place of `n` small ones, as recurrent networks are computed. Only expressions with a reduction move. What costs less is
//! fused with what reads it. Where a product of the input stands beside one of the state in the element of a map, `products_out` and
//! `fission` put both in front of that map, so what they have left in a loop moves, too ([`again`]). Nothing moves out of a branch, or out of a function, and nothing if the loop may not run: the expression
//! may fail.
//!
//! A scalar of a few operations, such as `k + 1`, is computed where it is used: a kernel of its own takes a launch in each step.

use super::core::{Ex, Kind, Lambda, Layout, Var, Vars};
use super::hoist::reduces;
use super::interchange::named;
use super::loops_out::scalars_of_arrays;
use super::recurrences::number_of_steps;
use crate::calculus::size::{Size, SizeEnv};
use crate::calculus::ty::Ty;
use crate::lang::typed::Prim;

/// Most scalars of what is computed for all steps, which are stored.
const MOST: u64 = 1 << 28;

/// Most nodes of a scalar that is computed where it is used.
const CHEAP: usize = 8;

/// Changes the loops of the host.
pub(super) fn of_loops(mut e: Ex, env: &SizeEnv, fresh: &mut dyn FnMut() -> Var) -> Ex {
    walk(&mut e, env, fresh);
    e
}

/// Returns the program with what the steps of its loops compute of their number in front of the loops; `None` if there is nothing.
pub(super) fn again(e: &Ex, env: &SizeEnv, fresh: &mut dyn FnMut() -> Var) -> Option<Ex> {
    let mut out = e.clone();
    walk(&mut out, env, fresh).then_some(out)
}

/// Changes the loops in an expression. Returns whether anything moves.
fn walk(e: &mut Ex, env: &SizeEnv, fresh: &mut dyn FnMut() -> Var) -> bool {
    while let Kind::Let(Layout::Var(v, ty), value, body) = &mut e.kind {
        if !ty.is_scalar() || !value.may_be_repeated() || value.size() > CHEAP {
            break;
        }
        body.put(*v, value);
        let body = std::mem::replace(&mut body.kind, Kind::Unit);
        e.kind = body;
    }
    let parts = e.parts_outside_functions_mut().into_iter();
    let inside = parts.fold(false, |any, part| walk(part, env, fresh) | any);
    let Kind::For(_, bound, Layout::Var(counter, ty), acc, body) = &mut e.kind else {
        return inside;
    };
    let Some(steps) = number_of_steps(bound).filter(|n| n.eval(env).is_ok_and(|n| n > 0)) else {
        return inside;
    };
    let state = acc.vars().into_iter().map(|(v, _)| v).collect();
    let counter = (*counter, ty.clone());
    let mut ahead = Ahead { counter, steps, state, lets: vec![], moved: vec![], env, fresh };
    ahead.collect(body);
    let moved = ahead.moved;
    let any = !moved.is_empty();
    if any {
        *e = e.clone().after(moved);
    }
    any | inside
}

struct Ahead<'a> {
    /// The variable of the number of the step, and its type.
    counter: (Var, Ty),
    steps: Size,
    /// The variables that depend on the state.
    state: Vars,
    /// The other names of the step.
    lets: Vec<(Layout, Ex)>,
    /// What is computed in front of the loop.
    moved: Vec<(Layout, Ex)>,
    env: &'a SizeEnv,
    fresh: &'a mut dyn FnMut() -> Var,
}

impl Ahead<'_> {
    fn collect(&mut self, e: &mut Ex) {
        if let Some(other) = self.moved(e) {
            *e = other;
            return;
        }
        match &mut e.kind {
            Kind::Let(names, value, body) => {
                self.collect(value);
                if value.free().is_disjoint(&self.state) {
                    self.lets.push((names.clone(), (**value).clone()));
                } else {
                    self.state.extend(names.vars().into_iter().map(|(v, _)| v));
                }
                self.collect(body);
            }
            Kind::If(c, ..) => self.collect(c),
            Kind::For(init, ..) | Kind::While(init, ..) => self.collect(init),
            _ => e.parts_outside_functions_mut().into_iter().for_each(|part| self.collect(part)),
        }
    }

    /// Returns what stands for an expression that moves.
    fn moved(&mut self, e: &Ex) -> Option<Ex> {
        let one = matches!(e.ty, Ty::Array(..)) || e.ty.is_scalar();
        if !one || !has_reduction(e) || !e.free().is_disjoint(&self.state) {
            return None;
        }
        let mut value = e.clone().behind(self.lets.iter(), self.fresh);
        let (counter, ty) = &self.counter;
        if !value.free().contains(counter) {
            let name = named(&value.ty, self.fresh);
            let known = name.value(e.span);
            self.moved.push((name, value));
            return Some(known);
        }
        let all = Ty::array(&self.steps, &value.ty);
        if scalars_of_arrays(&all, self.env) > MOST {
            return None;
        }
        let step = named(ty, self.fresh);
        value.put(*counter, &step.value(e.span));
        let f = Lambda { params: vec![step], body: Box::new(value) };
        let steps = Ex::iota(&self.steps, ty, e.span);
        let value = Ex::new(Kind::Map(Prim::Map, f, vec![steps]), all, e.span);
        let name = named(&value.ty, self.fresh);
        let rows = Box::new(name.value(e.span));
        let at = Box::new(Ex::new(Kind::Var(*counter), ty.clone(), e.span));
        self.moved.push((name, value));
        Some(Ex::new(Kind::Index(rows, at), e.ty.clone(), e.span))
    }
}

fn has_reduction(e: &Ex) -> bool {
    reduces(&e.kind) || e.parts().iter().any(|(_, part)| has_reduction(part))
}
