//! Reductions by all work-items of a group together.

use super::index::Index;
use super::lower::Lowerer;
use super::memory::Storage;
use super::view::{Shape, Step, Stop, View};
use crate::calculus::term::{Space, Term};

/// Elements side by side that a work-item may take at a time, best first: so many are one vector access.
const RUNS: [i64; 3] = [4, 2, 1];

/// Longest loop of one work-item that is written out, so that what it reads may stay in registers.
pub const WRITTEN_OUT: i64 = 16;

/// Most partial results that every work-item combines for itself.
const LAST: i64 = 32;

impl Lowerer {
    /// `reduceLcl`: each work-item reduces its share, the shares' results are combined in local memory, and every
    /// work-item has the result. The share of a work-item is that which it has in maps over the same elements,
    /// so that it may read what it keeps in registers.
    pub fn reduce_in_group(&mut self, f: &Term, x: &View) -> Step<View> {
        let (n, shape) = (self.views.size(&f.sizes()[0])?, self.views.shape(&f.ty().cod)?);
        let count = self.kernel.group[0].min(n).max(1);
        let part = self.partial_results(f, x, n, count, &shape)?;
        // Few results are combined by all work-items alike; of many, some work-items combine shares first.
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

    /// The result of each work-item's share, in local memory.
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
        let g = f.args()[1].chain();
        let z = f.args()[2].chain();
        for run in RUNS {
            let last = run == 1;
            if !last && (n % run != 0 || n < run * count) {
                continue;
            }
            let shares = n / run;
            let rounds = shares / count + i64::from(shares % count != 0);
            let unroll = rounds * run <= WRITTEN_OUT * RUNS[0] && rounds <= WRITTEN_OUT;
            let mark = self.mark();
            let done = self.local(0, count, false, &mut |me, i| {
                let own = me.allocate(shape, Some(Space::Private))?;
                me.write(&z, &View::Unit, &own.dest)?;
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
            });
            match done {
                // Another work-item has the element in its registers, in runs of another length.
                Err(Stop::Elsewhere(_)) if !last => self.back_to(mark),
                done => return done.map(|()| out),
            }
        }
        Ok(out)
    }

    /// A value in registers that changes.
    fn from(&mut self, v: &View, shape: &Shape) -> Step<Storage> {
        let own = self.allocate(shape, Some(Space::Private))?;
        self.store(v, &own.dest, shape)?;
        Ok(own)
    }

    fn combine(&mut self, f: &Term, own: &Storage, v: View, shape: &Shape) -> Step<()> {
        let op = f.args()[0].chain();
        self.update(&op, &View::pair(own.view.clone(), v), &own.dest, &own.owned, shape)
    }
}
