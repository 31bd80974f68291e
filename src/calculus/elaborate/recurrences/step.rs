//! What the steps of a loop read and store, by the counter.

use super::super::capture::any;
use super::super::core::{Ex, Kind, Layout, Var, Vars};
use super::super::interchange::named;
use super::runs::{Counted, Run};
use crate::calculus::scalar::Lit;
use crate::calculus::size::SizeEnv;
use crate::calculus::ty::Ty;
use crate::diag::Span;
use crate::lang::typed::{Prim, ScalarOp};
use crate::lang::types::ScalarType;
use std::collections::HashMap;

/// Most steps for which an element that a step has stored is kept for later ones.
const KEPT: i128 = 8;

/// The steps of a loop.
pub(super) struct Step<'a> {
    pub(super) counted: Counted<'a>,
    /// The names from outside of the loop.
    pub(super) outside: Vars,
    pub(super) lets: Vec<(Layout, Ex)>,
    /// The elements that a step takes from arrays outside.
    pub(super) elements: Vec<Element>,
    /// The arrays that the steps build.
    pub(super) arrays: Vec<Stored>,
    /// The other state.
    pub(super) state: Vec<Component>,
}

/// An element that a step takes from an array.
pub(super) struct Element {
    pub(super) array: Ex,
    pub(super) run: Run,
    pub(super) name: Layout,
}

/// An array of the state of which each step stores one element.
pub(super) struct Stored {
    /// The number of the component.
    pub(super) of: usize,
    pub(super) var: Var,
    pub(super) run: Run,
    /// The array before the loop.
    pub(super) old: Ex,
    /// The element that a step stores.
    pub(super) value: Ex,
    /// Names for the elements that the step before has stored, the step before that, and so on, as far as they are read.
    pub(super) kept: Vec<Layout>,
    /// Whether those are read under conditions alone.
    pub(super) guarded: bool,
}

/// A component of the state of a scan.
pub(super) struct Component {
    /// The number of the loop's component.
    pub(super) of: Option<usize>,
    pub(super) name: Layout,
    pub(super) first: Ex,
    pub(super) next: Ex,
}

impl Stored {
    /// Returns what stands, before the loop, at the place that lies some steps behind the first one.
    pub(super) fn before(&self, steps: i128, env: &SizeEnv) -> Option<Ex> {
        let at = self.run.ahead(-steps).first;
        let n = i128::from(self.old.length()?.eval(env).ok()?);
        if (0..n).contains(&at) {
            let t = ScalarType::I64;
            return self.old.element(&Ex::new(
                Kind::Lit(Lit::int(t, at)),
                Ty::Scalar(t),
                self.old.span,
            ));
        }
        if self.guarded { any(&self.value.ty, self.value.span) } else { None }
    }
}

impl Step<'_> {
    /// Returns where the steps store an element of the array `v`, and what; `None` if a step changes something else of it.
    pub(super) fn stored(&self, v: Var, ty: &Ty, next: &Ex, env: &SizeEnv) -> Option<(Run, Ex)> {
        let Ty::Array(n, _) = ty else { return None };
        let n = i128::from(n.eval(env).ok()?);
        let (place, value) = self.store(v, next)?;
        let run = self.counted.run(&place, env)?;
        run.is_inside(self.counted.steps, n).then_some((run, value))
    }

    /// Returns the place and the element.
    fn store(&self, v: Var, next: &Ex) -> Option<(Ex, Ex)> {
        match &next.kind {
            Kind::Var(name) if *name != v => self.store(v, self.counted.names.get(name)?),
            Kind::Prim(Prim::Scatter, _, _, args) => match args.as_slice() {
                [array, place, value] if array.kind == Kind::Var(v) => {
                    Some((only(place)?.clone(), only(value)?.clone()))
                }
                _ => None,
            },
            // An element that is not stored stays as it is.
            Kind::If(c, a, b) => {
                let keeps = |e: &Ex| e.kind == Kind::Var(v);
                let (a, b) = match (keeps(a), keeps(b)) {
                    (false, true) => (self.store(v, a)?, None),
                    (true, false) => (self.store(v, b)?, None),
                    (false, false) => (self.store(v, a)?, Some(self.store(v, b)?)),
                    (true, true) => return None,
                };
                let (place, yes) = a;
                let no = match b {
                    Some((other, no)) => (other.kind == place.kind).then_some(no)?,
                    None => {
                        let array = Ex::new(Kind::Var(v), next.ty.clone(), next.span);
                        array.element(&place)?
                    }
                };
                let first = matches!(&next.kind, Kind::If(_, a, _) if !keeps(a));
                let (yes, no) = if first { (yes, no) } else { (no, yes) };
                Some((place, Ex::choice((**c).clone(), yes, no)))
            }
            _ => None,
        }
    }

    /// Replaces what the steps read of arrays at places that the counter gives. `None` if they read something else of an array
    /// that they change.
    pub(super) fn read_all(&mut self, env: &SizeEnv, fresh: &mut dyn FnMut() -> Var) -> Option<()> {
        self.drop_unused_names();
        let mut lets = std::mem::take(&mut self.lets);
        for (_, value) in &mut lets {
            self.read(value, false, env, fresh)?;
        }
        self.lets = lets;
        for k in 0..self.state.len() {
            let mut next = self.state[k].next.clone();
            self.read(&mut next, false, env, fresh)?;
            self.state[k].next = next;
        }
        for k in 0..self.arrays.len() {
            let mut value = self.arrays[k].value.clone();
            self.read(&mut value, false, env, fresh)?;
            self.arrays[k].value = value;
        }
        let arrays: Vars = self.arrays.iter().map(|a| a.var).collect();
        self.all().all(|e| e.free().is_disjoint(&arrays)).then_some(())
    }

    /// Replaces the reads in an expression. `guarded` says that a condition decides whether it is computed.
    fn read(
        &mut self,
        e: &mut Ex,
        guarded: bool,
        env: &SizeEnv,
        fresh: &mut dyn FnMut() -> Var,
    ) -> Option<()> {
        if let Kind::Index(array, place) = &e.kind
            && let Some(run) = self.counted.run(place, env)
        {
            if let Kind::Var(v) = array.kind
                && let Some(k) = self.arrays.iter().position(|a| a.var == v)
            {
                *e = self.own(k, run, guarded, e.span, env, fresh)?;
                return Some(());
            }
            if self.is_outside(array)
                && let Some(element) = self.element(array, run, env, fresh)
            {
                *e = element;
                return Some(());
            }
        }
        match &mut e.kind {
            Kind::If(c, a, b) => {
                self.read(c, guarded, env, fresh)?;
                self.read(a, true, env, fresh)?;
                self.read(b, true, env, fresh)
            }
            Kind::Op(ScalarOp::And | ScalarOp::Or, es) => {
                let mut sides = es.iter_mut().enumerate();
                sides.try_for_each(|(k, e)| self.read(e, guarded || k > 0, env, fresh))
            }
            _ => {
                let mut parts = e.parts_mut().into_iter();
                parts.try_for_each(|part| self.read(part, guarded, env, fresh))
            }
        }
    }

    /// Whether an expression is an array that is the same in all steps, and need not be computed.
    fn is_outside(&self, e: &Ex) -> bool {
        let is_read = match &e.kind {
            Kind::Index(array, at) => self.is_outside(array) && at.is_pure_scalar(),
            _ => e.is_free_of_cost(),
        };
        is_read && e.free().is_subset(&self.outside)
    }

    /// Returns the element of an array outside of the loop; `None` if not all places are in the array.
    fn element(
        &mut self,
        array: &Ex,
        run: Run,
        env: &SizeEnv,
        fresh: &mut dyn FnMut() -> Var,
    ) -> Option<Ex> {
        let length = i128::from(array.length()?.eval(env).ok()?);
        if !run.is_inside(self.counted.steps, length) {
            return None;
        }
        let known = self.elements.iter().find(|x| x.run == run && x.array.kind == array.kind);
        if let Some(known) = known {
            return Some(known.name.value(array.span));
        }
        let name = named(&array.element_type()?, fresh);
        let value = name.value(array.span);
        self.elements.push(Element { array: array.clone(), run, name });
        Some(value)
    }

    /// Returns what a step reads of an array that it changes.
    fn own(
        &mut self,
        k: usize,
        run: Run,
        guarded: bool,
        span: Span,
        env: &SizeEnv,
        fresh: &mut dyn FnMut() -> Var,
    ) -> Option<Ex> {
        let a = &mut self.arrays[k];
        let ahead = a.run.distance(run)?;
        if ahead >= 0 {
            let old = a.old.clone();
            return self.element(&old, run, env, fresh);
        }
        if ahead < -KEPT {
            return None;
        }
        let back = usize::try_from(-ahead).ok()?;
        while a.kept.len() < back {
            a.kept.push(named(&a.value.ty, fresh));
        }
        a.guarded &= guarded;
        Some(a.kept[back - 1].value(span))
    }

    /// Adds what the steps store to the state. Returns where it is there, for the number of each array.
    pub(super) fn results(
        &mut self,
        env: &SizeEnv,
        fresh: &mut dyn FnMut() -> Var,
    ) -> Option<HashMap<usize, usize>> {
        let mut place = HashMap::new();
        for a in &self.arrays {
            let known = self.state.iter().position(|c| c.next == a.value);
            if let (Some(known), true) = (known, a.kept.is_empty()) {
                place.insert(a.of, known);
                continue;
            }
            place.insert(a.of, self.state.len());
            let mut next = a.value.clone();
            if a.kept.is_empty() {
                let (name, first) = (named(&next.ty, fresh), any(&next.ty, next.span)?);
                self.state.push(Component { of: None, name, first, next });
                continue;
            }
            for (back, name) in (1..).zip(&a.kept) {
                let (name, first) = (name.clone(), a.before(back, env)?);
                let this = name.value(next.span);
                self.state.push(Component { of: None, name, first, next });
                next = this;
            }
        }
        Some(place)
    }

    /// Drops the components on which no component in `needed` depends. Returns where the others are then.
    pub(super) fn drop_unused(&mut self, needed: Vec<usize>) -> HashMap<usize, usize> {
        let (mut kept, mut open) = (vec![false; self.state.len()], needed);
        while let Some(k) = open.pop() {
            if std::mem::replace(&mut kept[k], true) {
                continue;
            }
            let mut free = self.state[k].next.free();
            for (names, value) in self.lets.iter().rev() {
                if names.meets(&free) {
                    free.extend(value.free());
                }
            }
            open.extend((0..kept.len()).filter(|j| self.state[*j].name.meets(&free)));
        }
        let place = (0..kept.len()).filter(|k| kept[*k]).zip(0..).collect();
        let mut at = kept.into_iter();
        self.state.retain(|_| at.next().unwrap_or(false));
        self.arrays.iter_mut().for_each(|a| a.value = Ex::new(Kind::Unit, Ty::Unit, a.value.span));
        self.drop_unused_names();
        place
    }

    /// Drops the names that nothing needs.
    fn drop_unused_names(&mut self) {
        let mut free = Vars::new();
        self.state.iter().for_each(|c| free.extend(c.next.free()));
        self.arrays.iter().for_each(|a| free.extend(a.value.free()));
        let mut kept = vec![];
        for (names, value) in std::mem::take(&mut self.lets).into_iter().rev() {
            if names.meets(&free) {
                free.extend(value.free());
                kept.push((names, value));
            }
        }
        self.lets = kept.into_iter().rev().collect();
    }

    /// Returns all expressions of a step.
    pub(super) fn all(&self) -> impl Iterator<Item = &Ex> {
        let next = self.state.iter().map(|c| &c.next);
        let values = self.arrays.iter().map(|a| &a.value);
        self.lets.iter().map(|(_, value)| value).chain(next).chain(values)
    }
}

/// Returns the element of an array of one element.
fn only(e: &Ex) -> Option<&Ex> {
    match (&e.kind, e.length()?.as_constant()) {
        (Kind::Prim(Prim::Replicate, _, _, args), Some(1)) => args.first(),
        _ => None,
    }
}
