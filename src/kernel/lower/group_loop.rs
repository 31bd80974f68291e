//! `foldSeq` in a work-group: its work-items run the steps together.
//!
//! Scalars of the state are in registers, where each work-item computes them for itself. Arrays are in local memory. An
//! array whose elements at computed places change is updated where it is: the stores follow all reads of the step.
//! Of any other array, the work-items compute the next one beside the present one; then both change places, so the loop has
//! two steps in an iteration.

use super::dest::Dest;
use super::leaf::Emit;
use super::lowerer::Lowerer;
use super::memory::Storage;
use super::updated::{Part, parts};
use super::view::{Shape, Step, View};
use crate::calculus::term::{Op, Space, Term};
use crate::kernel::analysis::hazard::{Later, Owned};
use crate::kernel::ir::index::Index;

/// Memory of the states before and after a step.
struct States {
    now: Storage,
    next: Storage,
    /// What is in the same memory in both.
    common: Owned,
}

impl States {
    /// The states of a pair.
    fn pair(a: States, b: States) -> States {
        let both = |a: Storage, b: Storage| Storage {
            view: View::pair(a.view, b.view),
            dest: Dest::pair(a.dest, b.dest),
            owned: a.owned.both(&b.owned),
        };
        States {
            now: both(a.now, b.now),
            next: both(a.next, b.next),
            common: a.common.both(&b.common),
        }
    }
}

impl Lowerer {
    /// `foldSeq` in a work-group. `factors` give the pair of the first state and the elements.
    pub fn group_fold(&mut self, f: &Term, factors: &[Term], x: &View) -> Step<View> {
        let parts = parts(&f.args()[0].chain(), &f.ty().cod);
        if parts != Part::New {
            let mark = self.mark();
            self.begin();
            let done = self.on_trial(
                |done| matches!(done, Ok(Some(_))),
                |me| me.group_loop(f, factors, x, &parts),
            );
            if let Ok(Some(v)) = done {
                let block = self.end();
                block.into_iter().try_for_each(|s| self.put(s))?;
                return Ok(v);
            }
            self.back_to(mark);
            done?;
        }
        // A store of the step would be read in the same step.
        match self.group_loop(f, factors, x, &Part::New)? {
            Some(v) => Ok(v),
            None => super::lowerer::unlowered(f),
        }
    }

    /// Emits the loop, if no step reads what it has updated.
    fn group_loop(
        &mut self,
        f: &Term,
        factors: &[Term],
        x: &View,
        parts: &Part,
    ) -> Step<Option<View>> {
        let n = self.views.size(&f.sizes()[0])?;
        let shape = self.views.shape(&f.ty().cod)?;
        let op = f.args()[0].chain();
        let States { now, next, common } = self.states(&shape, parts)?;
        let xs = self.begin_loop(factors, x, &now.dest, &shape)?;
        let mut updates = true;
        let mut step = |me: &mut Lowerer, i: &Index, from: &Storage, to: &Storage| {
            let arg = View::pair(from.view.clone(), xs.at(i)?);
            let later = Later { owned: common.clone(), declared: vec![], stores: vec![] };
            updates &= me.update_with(&op, &arg, &to.dest, &common, Some(later))?;
            Ok(())
        };
        if now.owned == common {
            self.repeat(n, false, &mut |me, i| step(me, i, &now, &now))?;
            return Ok(updates.then_some(now.view));
        }
        self.repeat(n / 2, false, &mut |me, i| {
            step(me, &i.times(2), &now, &next)?;
            step(me, &i.times(2).plus(1), &next, &now)
        })?;
        let odd = n % 2 != 0;
        if odd {
            step(self, &Index::from(n - 1), &now, &next)?;
        }
        Ok(updates.then_some(if odd { next.view } else { now.view }))
    }

    /// Stores the first state, and returns the elements.
    fn begin_loop(
        &mut self,
        factors: &[Term],
        x: &View,
        state: &Dest,
        shape: &Shape,
    ) -> Step<View> {
        let factors: Vec<Term> = factors.iter().flat_map(Term::chain).collect();
        match factors.split_first() {
            Some((both, before)) if *both.op() == Op::Fork => {
                let x = if before.is_empty() { x.clone() } else { self.read(before, x)? };
                self.write(&both.args()[0].chain(), &x, state)?;
                self.read(&both.args()[1].chain(), &x)
            }
            first => {
                let x = if first.is_some() { self.read(&factors, x)? } else { x.clone() };
                self.copy(&x.fst()?, state, shape)?;
                x.snd()
            }
        }
    }

    fn states(&mut self, shape: &Shape, part: &Part) -> Step<States> {
        if let Shape::Pair(a, b) = shape {
            let a = self.states(a, part.component(false))?;
            return Ok(States::pair(a, self.states(b, part.component(true))?));
        }
        let space = if shape.is_element() { Space::Private } else { Space::Local };
        let now = self.allocate(shape, Some(space))?;
        Ok(match part.is_new() {
            false => States { next: now.clone(), common: now.owned.clone(), now },
            true => {
                States { next: self.allocate(shape, Some(space))?, common: Owned::default(), now }
            }
        })
    }
}
