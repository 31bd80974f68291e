//! Scans by all work-items of a group together (`scanLcl`).

use super::dest::Dest;
use super::lowerer::Lowerer;
use super::view::{Shape, Step, View};
use crate::calculus::term::{Op, Space, Term};
use crate::kernel::ir::index::Index;

/// Numbers of adjacent elements that a work-item may process at a time, best first.
const RUNS: [i64; 4] = [8, 4, 2, 1];

/// Returns the number of adjacent elements that each of `members` work-items processes at a time. If none of the usual numbers divides the
/// length without more rounds than are needed, each has as many as share them out evenly, and the last run is shorter.
fn run_of(n: i64, members: i64) -> i64 {
    let fits = |run: &i64| n % run == 0 && n >= run * members;
    let usual = RUNS.into_iter().find(fits).unwrap_or(1);
    let ceil = |n: i64, by: i64| n / by + i64::from(n % by != 0);
    let least = ceil(n, RUNS[0] * members).max(1);
    if ceil(n, usual * members) <= least { usual } else { ceil(n, least * members) }
}

impl Lowerer {
    /// `scanLcl`: the group goes through the array from the left, a run of adjacent elements for each
    /// work-item at a time. Each work-item scans its run in registers; the totals of the runs are scanned in
    /// two levels in local memory; each work-item combines the total of all runs before its own with the
    /// elements of its run.
    pub fn scan_in_group(&mut self, f: &Term, x: &View, dest: &Dest) -> Step<()> {
        let n = self.views.size(&f.sizes()[0])?;
        let (op, z, g) = (f.args()[0].chain(), f.args()[1].chain(), f.args()[2].chain());
        let shape = self.views.shape(&f.args()[1].ty().cod)?;
        let exclusive = *f.op() == Op::ScanLcl(true);
        let (start, xs) = (x.fst()?, x.snd()?);
        let members = self.kernel.group[0].min(n).max(1);
        let run = run_of(n, members);
        let shares = n / run + i64::from(n % run != 0);
        let rounds = shares / members + i64::from(shares % members != 0);
        let shares = Index::from(shares);
        // The last run may be shorter.
        let even = n % run == 0;
        let exists =
            |me: &mut Lowerer, at: &Index, body: &mut dyn FnMut(&mut Lowerer) -> Step<()>| {
                if even { body(me) } else { me.where_less(at, &Index::from(n), body) }
            };
        // The runs' totals are scanned by this many work-items, each of which has `each` of them.
        let scanners = u64::try_from(members).unwrap_or(1).isqrt().next_power_of_two();
        let scanners = i64::try_from(scanners).unwrap_or(1);
        let each = members / scanners + i64::from(members % scanners != 0);
        let array = |n: i64| Shape::Array(n, Box::new(shape.clone()));
        let carry = self.from(&start, &shape)?;
        let totals = self.allocate(&array(members), Some(Space::Local))?;
        let sums = self.allocate(&array(scanners), Some(Space::Local))?;
        let befores = self.allocate(&array(scanners), Some(Space::Local))?;
        let last = Index::from(scanners - 1);
        let kept = self.allocate(&array(run), Some(Space::Private))?;
        self.repeat(rounds, false, &mut |me, t| {
            let share = |i: &Index| t.times(members).add(i);
            me.local(0, members, false, &mut |me, i| {
                let total = me.neutral(&z, &shape)?;
                me.where_less(&share(i), &shares, &mut |me| {
                    (0..run).try_for_each(|lane| {
                        if exclusive {
                            me.store(&total.view, &kept.dest.at(&Index::from(lane))?, &shape)?;
                        }
                        let at = share(i).times(run).plus(lane);
                        exists(me, &at, &mut |me| {
                            let v = me.read(&g, &xs.at(&at)?)?;
                            me.combine(f, &total, v, &shape)?;
                            if exclusive {
                                return Ok(());
                            }
                            me.store(&total.view, &kept.dest.at(&Index::from(lane))?, &shape)
                        })
                    })
                })?;
                me.store(&total.view, &totals.dest.at(i)?, &shape)
            })?;
            // The total of a run is replaced by the total of the runs before it.
            me.local(0, scanners, false, &mut |me, s| {
                let sum = me.neutral(&z, &shape)?;
                me.repeat(each, false, &mut |me, k| {
                    let i = s.times(each).add(k);
                    me.where_less(&i, &Index::from(members), &mut |me| {
                        let total = me.from(&totals.view.at(&i)?, &shape)?;
                        me.store(&sum.view, &totals.dest.at(&i)?, &shape)?;
                        me.combine(f, &sum, total.view, &shape)
                    })
                })?;
                me.store(&sum.view, &sums.dest.at(s)?, &shape)
            })?;
            me.local(0, scanners, false, &mut |me, s| {
                let before = me.from(&carry.view, &shape)?;
                me.repeat(scanners - 1, true, &mut |me, k| {
                    me.where_less(k, s, &mut |me| me.combine(f, &before, sums.view.at(k)?, &shape))
                })?;
                me.store(&before.view, &befores.dest.at(s)?, &shape)
            })?;
            me.local(0, members, false, &mut |me, i| {
                let before = me.from(&befores.view.at(&i.div(each))?, &shape)?;
                me.combine(f, &before, totals.view.at(i)?, &shape)?;
                me.where_less(&share(i), &shares, &mut |me| {
                    (0..run).try_for_each(|lane| {
                        let own = kept.view.at(&Index::from(lane))?;
                        let at = share(i).times(run).plus(lane);
                        exists(me, &at, &mut |me| {
                            let pair = View::pair(before.view.clone(), own.clone());
                            me.write(&op, &pair, &dest.at(&at)?)
                        })
                    })
                })
            })?;
            if rounds > 1 {
                me.store(&befores.view.at(&last)?, &carry.dest, &shape)?;
                me.combine(f, &carry, sums.view.at(&last)?, &shape)?;
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::run_of;

    #[test]
    fn runs_leave_few_work_items_idle() {
        let of = |n, members| run_of(n, members);
        // One round, or as few as runs of eight take.
        assert_eq!([of(2048, 256), of(2049, 256), of(2049, 512), of(1000, 128)], [8, 5, 5, 8]);
        assert_eq!([of(7, 7), of(77, 8), of(1 << 20, 256)], [1, 5, 8]);
    }
}
