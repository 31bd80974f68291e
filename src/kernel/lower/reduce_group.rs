//! Reductions by all work-items of a group together (`reduceLcl`).

use super::lowerer::Lowerer;
use super::memory::Storage;
use super::view::{Shape, Step, Stop, View};
use crate::calculus::term::{Space, Term};
use crate::kernel::ir::index::Index;

/// Numbers of adjacent elements that a work-item may process at a time, best first; each is one
/// vector access.
const RUNS: [i64; 3] = [4, 2, 1];

/// Maximum trip count of a loop of one work-item that is unrolled, so that the elements it reads
/// can stay in registers.
pub const WRITTEN_OUT: i64 = 16;

/// Maximum number of partial results that every work-item combines by itself.
const LAST: i64 = 32;

impl Lowerer {
    /// `reduceLcl`: each work-item reduces its share, the partial results are combined in local
    /// memory, and every work-item gets the result. The share of a work-item is the same as in maps
    /// over the same elements, so that it can read elements that it keeps in registers.
    pub fn reduce_in_group(&mut self, f: &Term, x: &View) -> Step<View> {
        let (n, shape) = (self.views.size(&f.sizes()[0])?, self.views.shape(&f.ty().cod)?);
        let count = self.kernel.group[0].min(n).max(1);
        let part = self.partial_results(f, x, n, count, &shape)?;
        // All work-items combine a few partial results redundantly. If there are many, some
        // work-items first combine shares of them.
        let (part, left) = if count > LAST {
            let few = u64::try_from(count).unwrap_or(1).isqrt().next_power_of_two();
            let few = i64::try_from(few).unwrap_or(1);
            let fewer =
                self.allocate(&Shape::Array(few, Box::new(shape.clone())), Some(Space::Local))?;
            self.local(0, few, false, &mut |me, i| {
                let own = me.from(&part.view.at(i)?, &shape)?;
                let rounds = count / few + i64::from(count % few != 0);
                me.repeat(rounds - 1, true, &mut |me, t| {
                    let j = i.add(&t.plus(1).times(few));
                    me.where_less(&j, &Index::from(count), &mut |me| {
                        me.combine(f, &own, part.view.at(&j)?, &shape)
                    })
                })?;
                me.store(&own.view, &fewer.dest.at(i)?, &shape)
            })?;
            (fewer, few)
        } else {
            (part, count)
        };
        let all = self.from(&part.view.at(&Index::from(0))?, &shape)?;
        self.repeat(left - 1, true, &mut |me, i| {
            me.combine(f, &all, part.view.at(&i.plus(1))?, &shape)
        })?;
        Ok(all.view)
    }

    /// Computes the partial result of each work-item's share, in local memory.
    fn partial_results(
        &mut self,
        f: &Term,
        x: &View,
        n: i64,
        count: i64,
        shape: &Shape,
    ) -> Step<Storage> {
        let parts = Shape::Array(count, Box::new(shape.clone()));
        let out = self.allocate(&parts, Some(Space::Local))?;
        let (z, g) = (f.args()[1].chain(), f.args()[2].chain());
        // Prefer the run length of the maps, so that a work-item has the values at hand that it
        // loaded or computed in other stages.
        let wanted = self.kernel.run.filter(|r| RUNS.contains(r)).unwrap_or(RUNS[0]);
        let others = RUNS.into_iter().filter(|r| *r != wanted);
        let fits = |r: &i64| *r == 1 || n % r == 0 && (*r == wanted || n >= r * count);
        let runs: Vec<i64> = std::iter::once(wanted).chain(others).filter(fits).collect();
        for (k, run) in runs.iter().copied().enumerate() {
            let shares = n / run;
            let rounds = shares / count + i64::from(shares % count != 0);
            let unroll = rounds * run <= WRITTEN_OUT * RUNS[0] && rounds <= WRITTEN_OUT;
            let mark = self.mark();
            let done = self.on_trial(Step::is_ok, |me| {
                me.local(0, count, false, &mut |me, i| {
                    let own = me.neutral(&z, shape)?;
                    me.repeat(rounds, unroll, &mut |me, t| {
                        let share = i.add(&t.times(count));
                        me.where_less(&share, &Index::from(shares), &mut |me| {
                            (0..run).try_for_each(|lane| {
                                let v = x.at(&share.times(run).plus(lane))?;
                                let v = me.read(&g, &v)?;
                                me.combine(f, &own, v, shape)
                            })
                        })
                    })?;
                    me.store(&own.view, &out.dest.at(i)?, shape)
                })
            });
            match done {
                // Another work-item has the element in its registers. Try the next run length.
                Err(Stop::Elsewhere(_)) if k + 1 < runs.len() => self.back_to(mark),
                done => return done.map(|()| out),
            }
        }
        Ok(out)
    }

    /// Puts the neutral element into registers that can be updated.
    pub fn neutral(&mut self, z: &[Term], shape: &Shape) -> Step<Storage> {
        let own = self.allocate(shape, Some(Space::Private))?;
        self.write(z, &View::Unit, &own.dest)?;
        Ok(own)
    }

    /// Copies a value to registers that can be updated.
    pub fn from(&mut self, v: &View, shape: &Shape) -> Step<Storage> {
        let own = self.allocate(shape, Some(Space::Private))?;
        self.store(v, &own.dest, shape)?;
        Ok(own)
    }

    /// Combines a value with the value in `own` by the operator of `f`.
    pub fn combine(&mut self, f: &Term, own: &Storage, v: View, shape: &Shape) -> Step<()> {
        let op = f.args()[0].chain();
        self.update(&op, &View::pair(own.view.clone(), v), &own.dest, &own.owned, shape)
    }
}
