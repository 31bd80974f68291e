//! Loops that end after a known number of steps, whatever the data: `while` loops whose condition depends on counters alone.
//!
//! A counter is an integer or truth value of the state that starts from a number and whose next value depends on counters
//! alone. Such a loop becomes a counted one. A counter that grows by a constant, or doubles, is computed from the number of
//! the step, and is no longer part of the state.

use super::core::{Ex, Kind, Layout, Var, Vars};
use crate::calculus::scalar::Lit;
use crate::calculus::size::SizeEnv;
use crate::calculus::ty::Ty;
use crate::calculus::value::{Cell, Slack, number};
use crate::diag::{Limits, Span};
use crate::lang::typed::ScalarOp;
use crate::lang::types::ScalarType;
use std::collections::HashMap;

/// Most steps that are counted.
const MAX_STEPS: usize = Limits::DEFAULT.counted_steps;
/// Largest expression for the next value of a counter.
const MAX_NEXT: usize = Limits::DEFAULT.copied_expressions;

/// The values of names for numbers that are known.
pub(super) type Known = HashMap<Var, i128>;

/// Returns the value of an expression over integers and truth values that is known, such as the number of bits of a type or the
/// logarithm of a size.
pub(super) fn constant(e: &Ex, known: &Known, env: &SizeEnv) -> Option<i128> {
    match &e.kind {
        Kind::Lit(l) => l.as_int(),
        Kind::Var(v) => known.get(v).copied(),
        // A size that its type cannot hold wraps.
        Kind::Size(n) => {
            let n = i128::from(n.eval(env).ok()?);
            Some(n).filter(|n| discrete(e).is_some_and(|t| Lit::int(t, *n).as_int() == Some(*n)))
        }
        Kind::If(c, a, b) => {
            constant(if constant(c, known, env)? != 0 { a } else { b }, known, env)
        }
        Kind::Op(op, es) => {
            let (from, to) = (discrete(es.last()?)?, discrete(e)?);
            let mut args = [Cell::int(0); 3];
            for (arg, e) in args.iter_mut().zip(es) {
                *arg = Cell::from_int(discrete(e)?, constant(e, known, env)?);
            }
            let value = number::apply(*op, from, to, false, &Slack::of(1), args).ok()?;
            Some(value.as_wide(to))
        }
        _ => None,
    }
}

/// Returns the type of an integer or a truth value.
fn discrete(e: &Ex) -> Option<ScalarType> {
    match e.ty {
        Ty::Scalar(t) => Some(t).filter(|t| !t.is_float()),
        _ => None,
    }
}

/// A loop while a condition holds.
pub(super) struct Loop<'a> {
    pub(super) init: &'a Ex,
    pub(super) state: &'a Layout,
    pub(super) condition: &'a Ex,
    pub(super) body: &'a Ex,
    pub(super) span: Span,
}

/// A counter of a loop.
struct Counter {
    var: Var,
    ty: ScalarType,
    next: Ex,
    /// Its values before each step, and at the end.
    values: Vec<i128>,
}

impl Loop<'_> {
    /// Returns the value of the loop with a known number of steps; `None` if data decide how many there are.
    pub(super) fn counted(
        &self,
        known: &Known,
        env: &SizeEnv,
        fresh: &mut dyn FnMut() -> Var,
    ) -> Option<Ex> {
        let mut counters = self.counters(known, env);
        if !self
            .condition
            .free()
            .iter()
            .all(|v| known.contains_key(v) || counters.iter().any(|c| c.var == *v))
        {
            return None;
        }
        let steps = self.run(&mut counters, known, env)?;
        match steps {
            0 => Some(self.init.clone()),
            1 => Some(bound_if_used(self.state.clone(), self.init.clone(), self.body.clone())),
            _ => self.repeated(steps, &counters, fresh),
        }
    }

    /// Returns the counters of the state. No other part of the state has an influence on them.
    fn counters(&self, known: &Known, env: &SizeEnv) -> Vec<Counter> {
        let mut found = vec![];
        components(self.state, &mut vec![], &mut |var, ty, path| {
            let Ty::Scalar(ty) = *ty else { return };
            let first = component(self.init, path).and_then(|e| constant(&e, known, env));
            if let (false, Some(first), Some(next)) =
                (ty.is_float(), first, component(self.body, path))
            {
                found.push(Counter { var, ty, next, values: vec![first] });
            }
        });
        loop {
            let vars: Vars = found.iter().map(|c| c.var).collect();
            let mut all = known.clone();
            all.extend(found.iter().map(|c| (c.var, c.values[0])));
            let before = found.len();
            found.retain(|c| {
                c.next.free().iter().all(|v| known.contains_key(v) || vars.contains(v))
                    && constant(&c.next, &all, env).is_some()
            });
            if found.len() == before {
                return found;
            }
        }
    }

    /// Counts the steps.
    fn run(&self, counters: &mut [Counter], known: &Known, env: &SizeEnv) -> Option<usize> {
        let mut now = known.clone();
        for steps in 0..=MAX_STEPS {
            for c in counters.iter() {
                now.insert(c.var, *c.values.last()?);
            }
            if constant(self.condition, &now, env)? == 0 {
                return Some(steps);
            }
            for c in counters.iter_mut() {
                c.values.push(constant(&c.next, &now, env)?);
            }
        }
        None
    }

    /// Returns the counted loop, without the counters that the number of the step gives.
    fn repeated(
        &self,
        steps: usize,
        counters: &[Counter],
        fresh: &mut dyn FnMut() -> Var,
    ) -> Option<Ex> {
        let steps = i128::try_from(steps).ok()?;
        let t = counters.iter().map(|c| c.ty).find(|t| holds(*t, steps))?;
        let step = fresh();
        let number = Ex::new(Kind::Var(step), Ty::Scalar(t), self.span);
        let (mut body, mut last) = (self.body.clone(), HashMap::new());
        for c in counters {
            if let Some(value) = c.at(&number) {
                body.put(c.var, &value);
                last.insert(c.var, c.last(self.span)?);
            }
        }
        let rest: Vars = self.state.vars().into_iter().map(|(v, _)| v).collect();
        let rest: Vars = rest.into_iter().filter(|v| !last.contains_key(v)).collect();
        let state = self.state.restrict(&rest);
        if rest.is_empty() {
            return Some(value(self.state, &last, self.span));
        }
        let bound_of = Ex::new(Kind::Lit(Lit::int(t, steps)), Ty::Scalar(t), self.span);
        let init = part(self.init, self.state, &rest)?;
        let body = part(&body, self.state, &rest)?;
        let ty = init.ty.clone();
        let index = Layout::Var(step, Ty::Scalar(t));
        let all =
            Kind::For(Box::new(init), Box::new(bound_of), index, state.clone(), Box::new(body));
        let all = Ex::new(all, ty, self.span);
        if last.is_empty() {
            return Some(all);
        }
        let mut result = value(self.state, &last, self.span);
        let names = state.renamed(&mut result, fresh);
        Some(bound_if_used(names, all, result))
    }
}

impl Counter {
    /// Returns the value in a step as an expression of the step's number.
    fn at(&self, step: &Ex) -> Option<Ex> {
        let (first, second) = (*self.values.first()?, *self.values.get(1)?);
        let ty = Ty::Scalar(self.ty);
        let lit = |n| Ex::new(Kind::Lit(Lit::int(self.ty, n)), ty.clone(), step.span);
        let op = |op, es| Ex::new(Kind::Op(op, es), ty.clone(), step.span);
        let all = |f: &dyn Fn(i128, i128) -> bool| self.values.windows(2).all(|w| f(w[0], w[1]));
        let more = second - first;
        let steps = i128::try_from(self.values.len()).ok()?;
        if !self.ty.is_integer() || !holds(self.ty, steps) {
            return all(&|a, b| a == b).then(|| lit(first));
        }
        let step = match &step.ty {
            Ty::Scalar(t) if *t == self.ty => step.clone(),
            _ => op(ScalarOp::Cast(self.ty), vec![step.clone()]),
        };
        if more == 0 && all(&|a, b| a == b) {
            return Some(lit(first));
        }
        if all(&|a, b| b - a == more) && holds(self.ty, more) {
            let grown = match more {
                1 => step,
                _ => op(ScalarOp::Mul, vec![step, lit(more)]),
            };
            return Some(match first {
                0 => grown,
                _ => op(ScalarOp::Add, vec![grown, lit(first)]),
            });
        }
        let doubles = first > 0 && all(&|a, b| b == 2 * a);
        doubles.then(|| op(ScalarOp::Shl, vec![lit(first), step]))
    }

    /// Returns the value after the loop.
    fn last(&self, span: Span) -> Option<Ex> {
        let lit = Lit::int(self.ty, *self.values.last()?);
        Some(Ex::new(Kind::Lit(lit), Ty::Scalar(self.ty), span))
    }
}

/// Whether the type has this number.
fn holds(t: ScalarType, n: i128) -> bool {
    t.is_integer() && Lit::int(t, n).as_int() == Some(n)
}

/// Visits the variables of a layout with their places: whether the second component of each pair around them has them.
fn components(l: &Layout, path: &mut Vec<bool>, f: &mut dyn FnMut(Var, &Ty, &[bool])) {
    match l {
        Layout::Unit => {}
        Layout::Var(v, t) => f(*v, t, path),
        Layout::Pair(a, b) => {
            for (second, l) in [(false, a), (true, b)] {
                path.push(second);
                components(l, path, f);
                path.pop();
            }
        }
    }
}

/// Returns a scalar component of a value that is computed from scalars, without names.
fn component(e: &Ex, path: &[bool]) -> Option<Ex> {
    match (&e.kind, path) {
        (Kind::Let(p, value, body), _) => {
            let mut inner = component(body, path)?;
            if p.meets(&inner.free()) {
                let Layout::Var(v, _) = p else { return None };
                if !value.is_pure_scalar() {
                    return None;
                }
                inner.put(*v, value);
            }
            Some(inner).filter(|e| e.size() <= MAX_NEXT)
        }
        (_, []) => e.is_pure_scalar().then(|| e.clone()),
        (Kind::Pair(a, b), [second, path @ ..]) => component(if *second { b } else { a }, path),
        _ => None,
    }
}

/// Returns the components of a value whose variables in a layout are in `kept`, of which there are some.
fn part(e: &Ex, layout: &Layout, kept: &Vars) -> Option<Ex> {
    if layout.vars().iter().all(|(v, _)| kept.contains(v)) {
        return Some(e.clone());
    }
    match (layout, &e.kind) {
        (_, Kind::Let(p, value, body)) => {
            let body = part(body, layout, kept)?;
            Some(bound_if_used(p.clone(), (**value).clone(), body))
        }
        (Layout::Pair(l, m), Kind::Pair(a, b)) => match (l.meets(kept), m.meets(kept)) {
            (true, true) => Some(Ex::pair(part(a, l, kept)?, part(b, m, kept)?)),
            (true, false) => part(a, l, kept),
            _ => part(b, m, kept),
        },
        _ => None,
    }
}

/// Returns the value of a layout in which some variables have these values.
fn value(layout: &Layout, known: &HashMap<Var, Ex>, span: Span) -> Ex {
    match layout {
        Layout::Var(v, _) if known.contains_key(v) => known[v].clone(),
        Layout::Pair(a, b) => Ex::pair(value(a, known, span), value(b, known, span)),
        l => l.value(span),
    }
}

/// Returns an expression behind a `let`, if it uses what the `let` binds.
fn bound_if_used(names: Layout, value: Ex, body: Ex) -> Ex {
    if !names.meets(&body.free()) {
        return body;
    }
    body.bound(names, value)
}
