//! Patterns that combine values at computed places, or whose parts depend on each other: histograms and scans.

use super::bin_runs::{Binned, Own};
use super::dest::Dest;
use super::leaf::{self, Emit};
use super::lowerer::{Body, Context, Lowerer};
use super::memory::Storage;
use super::shared_bins::{Shared, choice};
use super::view::{Shape, Step, View, stop, within};
use crate::calculus::scalar::Lit;
use crate::calculus::term::{MapKind, Space, Term};
use crate::calculus::ty::Ty;
use crate::diag::Code;
use crate::kernel::ir::facts::{Facts, Guard};
use crate::kernel::ir::index::{Index, Var};
use crate::kernel::ir::{ElemTy, Expr, Lanes, Mem, Stmt, Update};
use crate::lang::typed::ScalarOp;
use crate::lang::types::ScalarType;
use std::rc::Rc;

/// Maximum number of scalars in all partial histograms together.
const PARTS: i64 = 1 << 26;

/// Partial histograms for each compute unit: enough work-items to keep a GPU busy.
const PARTS_OF_UNIT: i64 = 64;

/// Fewest groups of parts for which a kernel of their own pays, when the bins of parts are combined.
const FEW_PARTS: i64 = 8;

/// Work-items of a group with bins of its own.
pub const GROUP: i64 = 256;

/// Such groups for each compute unit, and of groups whose bins take more than half of the local memory that a group may have.
const GROUPS_OF_UNIT: [i64; 2] = [8, 4];

/// Most copies of a group's bins: one for each lane of a warp.
const COPIES: i64 = 32;

/// Bytes of all copies of a group's bins where a device has operations for them. More would cost occupancy.
const BYTES_OF_NATIVE_COPIES: usize = 8 << 10;

impl Lowerer {
    /// Combines values by bin. Outside kernels, either by atomic operations, or each work-item first combines one part of the
    /// values into bins of its own, and a second kernel combines these bins. In one work-item, all
    /// values are one part.
    pub fn histogram(&mut self, f: &Term, x: &View, dest: &Dest) -> Step<()> {
        let (m, n) = (self.views.size(&f.sizes()[0])?, self.views.size(&f.sizes()[1])?);
        let shape = self.views.shape(&f.ty().cod)?;
        let Shape::Array(_, elem) = &shape else {
            return stop(Code::Internal, "a histogram is an array");
        };
        let (places, values) = (x.fst()?, x.snd()?);
        if self.context == Context::Host && self.combines_at_once(m, n, elem) {
            let op = &f.args()[0];
            if let Some(shared) = Shared::of(op, elem, self.options.device.atomics_64) {
                return self.histogram_at_once(f, x, dest, &Rc::new(shared));
            }
            if n < i64::from(u32::MAX)
                && let Some(keeps) = choice(op)
            {
                return self.histogram_by_number((f, &keeps), x, (m, n), dest);
            }
        }
        let (op, z) = (f.args()[0].chain(), f.args()[1].chain());
        let room = PARTS / (m.max(1).saturating_mul(elem.scalars().max(1)));
        let parts = match self.context {
            Context::Host => (self.compute_units() * PARTS_OF_UNIT).min(n).min(room).max(1),
            _ => 1,
        };
        let counted = self.allocate(&Shape::Array(parts, Box::new(shape.clone())), None)?;
        self.each(parts, &mut |me, p| {
            let (view, dest) = (counted.view.at(p)?, counted.dest.at(p)?);
            me.repeat(m, false, &mut |me, i| me.write(&z, &View::Unit, &dest.at(i)?))?;
            // Parts are interleaved, so that neighbouring work-items read neighbouring elements.
            me.repeat(length(n, parts), false, &mut |me, t| {
                let j = p.add(&t.times(parts));
                me.where_less(&j, &Index::from(n), &mut |me| {
                    me.at_place(&places, &j, m, &mut |me, i| {
                        let pair = View::pair(view.at(i)?, me.emitted(|| values.at(&j))?);
                        me.update(&op, &pair, &dest.at(i)?, &counted.owned, elem)
                    })
                })
            })
        })?;
        self.combine_parts(&counted, parts, (m, elem), &op, dest)
    }

    /// Combines the bins of parts. If there are many parts, another kernel first combines groups of them, so that there is work
    /// for more work-items than there are bins.
    fn combine_parts(
        &mut self,
        counted: &Storage,
        parts: i64,
        (m, elem): (i64, &Shape),
        op: &[Term],
        dest: &Dest,
    ) -> Step<()> {
        // Combines every `step`-th part from `first` on.
        let combine =
            |me: &mut Lowerer, from: &View, i: &Index, first: &Index, (step, all), to: &Dest| {
                let acc = me.allocate(elem, None)?;
                me.store(&from.at(first)?.at(i)?, &acc.dest, elem)?;
                me.repeat(length(all, step) - 1, false, &mut |me, p| {
                    let q = p.plus(1).times(step).add(first);
                    me.where_less(&q, &Index::from(all), &mut |me| {
                        let pair = View::pair(acc.view.clone(), from.at(&q)?.at(i)?);
                        me.update(op, &pair, &acc.dest, &acc.owned, elem)
                    })
                })?;
                me.store(&acc.view, to, elem)
            };
        let groups = parts.isqrt();
        if groups < FEW_PARTS {
            return self.each(m, &mut |me, i| {
                combine(me, &counted.view, i, &Index::from(0), (1, parts), &dest.at(i)?)
            });
        }
        let bins = Shape::Array(m, Box::new(elem.clone()));
        let partial = self.allocate(&Shape::Array(groups, Box::new(bins)), None)?;
        self.each(groups.saturating_mul(m), &mut |me, k| {
            let (g, i) = k.div_mod(m);
            let to = partial.dest.at(&g)?.at(&i)?;
            combine(me, &counted.view, &i, &g, (groups, parts), &to)
        })?;
        self.each(m, &mut |me, i| {
            combine(me, &partial.view, i, &Index::from(0), (1, groups), &dest.at(i)?)
        })
    }

    /// Whether a histogram of `n` values into `m` bins combines values in bins that work-items share: on a GPU, and everywhere
    /// if there are so many bins that parts of the values have none of their own.
    fn combines_at_once(&self, m: i64, n: i64, elem: &Shape) -> bool {
        let parts = self.compute_units() * PARTS_OF_UNIT;
        let room = PARTS / (m.max(1).saturating_mul(elem.scalars().max(1)));
        // Updates of one element meet rarely if there are many: those of floats, which a device repeats then, are slow only
        // in few bins, which fit into local memory.
        self.options.device.shares_local_memory() || room < parts || m.saturating_mul(parts) > n
    }

    /// A histogram in a work-group, with bins in local memory. Returns the bins. If there is no atomic operation for the
    /// operator, one work-item combines all values.
    pub fn histogram_in_group(&mut self, f: &Term, x: &View) -> Step<View> {
        let (m, n) = (self.views.size(&f.sizes()[0])?, self.views.size(&f.sizes()[1])?);
        let shape = self.views.shape(&f.ty().cod)?;
        let Shape::Array(_, elem) = &shape else {
            return stop(Code::Internal, "a histogram is an array");
        };
        let (places, values) = (x.fst()?, x.snd()?);
        let (op, z) = (f.args()[0].chain(), f.args()[1].chain());
        let shared = Shared::of(&f.args()[0], elem, self.options.device.atomics_64).map(Rc::new);
        let bin = shared.as_ref().map_or((**elem).clone(), |s| s.bin());
        let mut copies = match self.options.device.shares_local_memory() && shared.is_some() {
            true => self.copies_of_bins(&Shape::Array(m, Box::new(bin.clone())), true),
            false => 1,
        };
        // Clearing and combining the copies is less work than counting.
        while copies > 1 && m.saturating_mul(copies) > n / 4 {
            copies /= 2;
        }
        let all = Shape::Array(m * copies, Box::new(bin));
        let bins = self.allocate(&all, Some(Space::Local))?;
        self.local(0, m * copies, false, &mut |me, i| match &shared {
            Some(shared) => me.clear_bin(shared, &z, &bins.dest.at(i)?),
            None => me.write(&z, &View::Unit, &bins.dest.at(i)?),
        })?;
        match &shared {
            Some(shared) => self.local(0, n, false, &mut |me, j| {
                me.at_place(&places, j, m, &mut |me, i| {
                    let value = me.emitted(|| values.at(j))?;
                    let bin = bins.dest.at(&copy_of_bin(i, j, copies))?;
                    me.combine_shared(shared, &value, &bin, lanes(copies))
                })
            })?,
            None => self.local(0, 1, false, &mut |me, _| {
                me.repeat(n, false, &mut |me, j| {
                    me.at_place(&places, j, m, &mut |me, i| {
                        let pair = View::pair(bins.view.at(i)?, me.emitted(|| values.at(j))?);
                        me.update(&op, &pair, &bins.dest.at(i)?, &bins.owned, elem)
                    })
                })
            })?,
        }
        let values = unpacked(shared.clone(), &bins.view, m * copies);
        if copies == 1 {
            return Ok(values);
        }
        let combined = self.allocate(&shape, Some(Space::Local))?;
        self.local(0, m, false, &mut |me, i| {
            let sum = me.combined_copies(&values, i, copies, &op, elem)?;
            me.store(&sum, &combined.dest.at(i)?, elem)
        })?;
        Ok(combined.view)
    }

    /// Returns what all copies of bin `i` come to. Neighbouring work-items begin with different copies, so that they do not meet
    /// in a bank of local memory.
    fn combined_copies(
        &mut self,
        bins: &View,
        i: &Index,
        copies: i64,
        op: &[Term],
        elem: &Shape,
    ) -> Step<View> {
        let copy = |q: &Index| bins.at(&copy_of_bin(i, &q.add(i), copies));
        if copies == 1 {
            return copy(&Index::from(0));
        }
        let acc = self.allocate(elem, None)?;
        self.store(&copy(&Index::from(0))?, &acc.dest, elem)?;
        self.repeat(copies - 1, false, &mut |me, q| {
            let pair = View::pair(acc.view.clone(), copy(&q.plus(1))?);
            me.update(op, &pair, &acc.dest, &acc.owned, elem)
        })?;
        Ok(acc.view)
    }

    /// A histogram in bins that work-items share, by atomic operations. If the bins fit into local memory, each group of a
    /// GPU has bins of its own. At its end, it adds them to the result if the device has operations for that; else another
    /// kernel combines the bins of all groups, since updates of one bin by all groups would start again and again.
    fn histogram_at_once(
        &mut self,
        f: &Term,
        x: &View,
        dest: &Dest,
        shared: &Rc<Shared>,
    ) -> Step<()> {
        let (m, n) = (self.views.size(&f.sizes()[0])?, self.views.size(&f.sizes()[1])?);
        let shape = self.views.shape(&f.ty().cod)?;
        let Shape::Array(_, elem) = &shape else {
            return stop(Code::Internal, "a histogram is an array");
        };
        let (places, values) = (x.fst()?, x.snd()?);
        let z = f.args()[1].chain();
        let own_shape = Shape::Array(m, Box::new(shared.bin()));
        let device = &self.options.device;
        let local = device.shares_local_memory() && bytes(&own_shape) <= device.local_mem_bytes;
        let native = shared.has_operations();
        let copies = if local { self.copies_of_bins(&own_shape, native) } else { 1 };
        let items = GROUP.min(i64::try_from(self.options.device.max_work_group_size).unwrap_or(1));
        let op = f.args()[0].chain();
        let (places, values) = (&places, &values);
        let h = Binned { places, values, n, m, elem, op: &op, length: self.values_of_item(n) };
        let count = n / h.length;
        // Each group passes on all of its bins: no more work than to count its share of the values.
        let [of_unit, of_unit_if_large] = GROUPS_OF_UNIT;
        let large = local && 2 * bytes(&own_shape) > self.options.device.local_mem_bytes;
        let of_unit = if large { of_unit_if_large } else { of_unit };
        let groups = (self.compute_units() * of_unit).min(length(n, items.max(m * copies))).max(1);
        let parts = if local && !native { groups } else { 1 };
        // The bins of groups are combined as values.
        let of_part = if local { &shape } else { &own_shape };
        // Bins that are values are combined where the result goes.
        let in_place = parts == 1 && shared.is_native() && is_memory(dest, m, elem)?;
        let bins = match in_place {
            true => None,
            false => Some(self.allocate(&Shape::Array(parts, Box::new(of_part.clone())), None)?),
        };
        let result = match &bins {
            Some(bins) => bins.dest.at(&Index::from(0))?,
            None => dest.clone(),
        };
        if !local || native {
            self.each(m, &mut |me, i| me.clear_bin(shared, &z, &result.at(i)?))?;
        }
        if !local {
            let change = |me: &mut Lowerer, i: &Index, value: &View, lanes| {
                me.combine_shared(shared, value, &result.at(i)?, lanes)
            };
            let own = &Own { change: &change, lanes: Lanes::Together };
            self.each(count, &mut |me, c| {
                me.combine_part(&h, c, own)?;
                me.combine_rest(&h, c, own)
            })?;
            let Some(bins) = bins else { return Ok(()) };
            let first = bins.view.at(&Index::from(0))?;
            return match shared.is_native() {
                true => self.copy(&first, dest, &shape),
                false => self.each(m, &mut |me, i| {
                    let bin = leaf::bind(&first.at(i)?, me)?;
                    me.store(&shared.unpacked(&bin)?, &dest.at(i)?, elem)
                }),
            };
        }
        let id = Term::id(&Ty::Unit);
        self.in_kernel(&id, |me| {
            me.kernel.group = [items, 1, 1];
            me.spread(MapKind::Wrg(0), groups, false, &mut |me, g| {
                let all = Shape::Array(m * copies, Box::new(shared.bin()));
                let own = me.allocate(&all, Some(Space::Local))?;
                me.local(0, m * copies, false, &mut |me, k| {
                    me.clear_bin(shared, &z, &own.dest.at(k)?)
                })?;
                me.local(0, items, false, &mut |me, l| {
                    let change = |me: &mut Lowerer, i: &Index, value: &View, lanes| {
                        let bin = own.dest.at(&copy_of_bin(i, l, copies))?;
                        me.combine_shared(shared, value, &bin, lanes)
                    };
                    let own = &Own { change: &change, lanes: lanes(copies) };
                    me.repeat(length(count, groups * items), false, &mut |me, t| {
                        let c = t.times(groups).add(g).times(items).add(l);
                        me.combine_part(&h, &c, own)
                    })?;
                    me.combine_rest(&h, &g.times(items).add(l), own)
                })?;
                let values = unpacked(Some(shared.clone()), &own.view, m * copies);
                me.local(0, m, false, &mut |me, i| {
                    let sum = me.combined_copies(&values, i, copies, &op, elem)?;
                    match &bins {
                        _ if native => {
                            me.combine_shared(shared, &sum, &result.at(i)?, Lanes::Apart)
                        }
                        Some(bins) => me.store(&sum, &bins.dest.at(g)?.at(i)?, elem),
                        // There is one group.
                        None => me.store(&sum, &result.at(i)?, elem),
                    }
                })
            })
        })?;
        match &bins {
            None => Ok(()),
            Some(bins) if parts == 1 => self.copy(&bins.view.at(&Index::from(0))?, dest, &shape),
            Some(bins) => self.combine_parts(bins, parts, (m, elem), &op, dest),
        }
    }

    /// Number of copies of a group's bins, a power of two. Work-items that update one bin at once wait for each other where a
    /// device has an operation for that, and start again where it has none; with copies they rarely meet.
    pub fn copies_of_bins(&self, shape: &Shape, native: bool) -> i64 {
        let half = self.options.device.local_mem_bytes / 2;
        let most = if native { half.min(BYTES_OF_NATIVE_COPIES) } else { half };
        let fits = |copies: i64| {
            bytes(shape).saturating_mul(usize::try_from(copies).unwrap_or(usize::MAX)) <= most
        };
        let mut copies = COPIES;
        while copies > 1 && !fits(copies) {
            copies /= 2;
        }
        copies
    }

    /// Combines each component of a value with that of an element, by one atomic operation.
    pub fn atomically(
        &mut self,
        steps: &[(Vec<bool>, ScalarOp)],
        v: &View,
        dest: &Dest,
        lanes: Lanes,
    ) -> Step<()> {
        for (path, op) in steps {
            let (mut v, mut dest) = (v.clone(), dest.clone());
            for second in path {
                v = if *second { v.snd()? } else { v.fst()? };
                dest = dest.component(*second)?;
            }
            let Dest::Mem(mem, _, at) = dest else {
                return stop(Code::Internal, "an element of a histogram outside memory");
            };
            self.emit(Stmt::Atomic(Update::Combine(*op, lanes), mem, at, v.expr()?))?;
        }
        Ok(())
    }

    /// A scan between kernels, in two kernels. In the first one, each work-item combines one part
    /// of the elements. In the second one, it combines the totals of the parts before its own, and
    /// then scans its own part.
    pub fn scan_in_parts(&mut self, f: &Term, x: &View, dest: &Dest) -> Step<()> {
        let n = self.views.size(&f.sizes()[0])?;
        let (op, z) = (f.args()[0].chain(), f.args()[1].chain());
        let elem = self.views.shape(&f.args()[1].ty().cod)?;
        // Each work-item of the second kernel goes through all totals, so there should be no more
        // parts than elements in a part.
        let parts = (self.compute_units() * PARTS_OF_UNIT).min(n.isqrt()).max(1);
        let totals = self.allocate(&Shape::Array(parts, Box::new(elem.clone())), None)?;
        let start = |me: &mut Lowerer| -> Step<Storage> {
            let acc = me.allocate(&elem, None)?;
            me.write(&z, &View::Unit, &acc.dest)?;
            Ok(acc)
        };
        let combine = |me: &mut Lowerer, acc: &Storage, x: View| {
            let pair = View::pair(acc.view.clone(), x);
            me.update(&op, &pair, &acc.dest, &acc.owned, &elem)
        };
        let through_part = |me: &mut Lowerer, p: &Index, body: Body| {
            let long = length(n, parts);
            me.repeat(long, false, &mut |me, t| {
                let j = p.times(long).add(t);
                me.where_less(&j, &Index::from(n), &mut |me| body(me, &j))
            })
        };
        self.each(parts, &mut |me, p| {
            let acc = start(me)?;
            through_part(me, p, &mut |me, j| combine(me, &acc, x.at(j)?))?;
            me.store(&acc.view, &totals.dest.at(p)?, &elem)
        })?;
        self.each(parts, &mut |me, p| {
            let acc = start(me)?;
            me.repeat(parts, false, &mut |me, q| {
                me.where_less(q, p, &mut |me| combine(me, &acc, totals.view.at(q)?))
            })?;
            through_part(me, p, &mut |me, j| {
                combine(me, &acc, x.at(j)?)?;
                me.store(&acc.view, &dest.at(j)?, &elem)
            })
        })
    }

    /// Number of the device's compute units.
    pub fn compute_units(&self) -> i64 {
        i64::try_from(self.options.device.compute_units).unwrap_or(1).max(1)
    }

    /// Emits a loop in this work-item, or outside kernels a kernel with a work-item for each
    /// iteration.
    pub fn each(&mut self, n: i64, body: Body) -> Step<()> {
        if self.context != Context::Host {
            return self.repeat(n, false, body);
        }
        let id = Term::id(&Ty::Unit);
        self.in_kernel(&id, |me| me.spread(MapKind::Glb(0), n, false, body))
    }

    /// Runs the body if place `j` of those that are computed is in `0..n`.
    pub fn at_place(&mut self, places: &View, j: &Index, n: i64, body: Body) -> Step<()> {
        if n == 0 {
            return Ok(());
        }
        let place = self.emitted(|| places.at(j))?;
        self.where_placed(&place, n, body)
    }

    /// Runs the body if the place is in `0..n`.
    pub fn where_placed(&mut self, place: &View, n: i64, body: Body) -> Step<()> {
        let at = leaf::bind(place, self)?.expr()?;
        if let Expr::Lit(place) = &at
            && place.as_int().is_none_or(|i| !(0..i128::from(n)).contains(&i))
        {
            return Ok(());
        }
        let t = at.ty();
        let test = |op, bound: i64| {
            let bound = Expr::Lit(Lit::int(t.scalar, i128::from(bound)));
            Expr::Op(op, ElemTy::scalar(ScalarType::Bool), vec![at.clone(), bound])
        };
        // If the type cannot hold the bound, its values are all below it.
        let fits = Lit::int(t.scalar, i128::from(n)).as_int() == Some(i128::from(n));
        let mut tests = vec![];
        if fits {
            tests.push(test(ScalarOp::Lt, n));
        }
        if t.scalar.is_signed() {
            tests.push(test(ScalarOp::Ge, 0));
        }
        self.begin();
        let done = body(self, &within(at.clone(), n));
        let mut block = self.end();
        done?;
        for c in tests {
            block = vec![Stmt::Branch(c, block, vec![])];
        }
        block.into_iter().try_for_each(|s| self.put(s))
    }

    /// As [`Lowerer::at_place`], where the place is the only one of its step. If it is an index, its range may decide that it
    /// is in the array. Places of other work-items are never taken for indices: the verifier could not prove that they differ.
    pub fn at_only_place(&mut self, places: &View, j: &Index, n: i64, body: Body) -> Step<()> {
        match known(places, j) {
            Some(i) => self.where_less(&Index::from(-1), &i, &mut |me| {
                me.where_less(&i, &Index::from(n), &mut |me| body(me, &i))
            }),
            None => self.at_place(places, j, n, body),
        }
    }

    /// Runs the body if one index is less than another.
    pub fn where_less(
        &mut self,
        i: &Index,
        bound: &Index,
        body: &mut dyn FnMut(&mut Lowerer) -> Step<()>,
    ) -> Step<()> {
        let guard = Guard::less(i, bound);
        if Facts::default().decide(&guard) == Some(true) {
            return body(self);
        }
        self.where_holds(&guard, body)
    }
}

/// Whether a destination has each scalar of each of its `m` elements in global memory.
fn is_memory(dest: &Dest, m: i64, elem: &Shape) -> Step<bool> {
    fn of(dest: &Dest, shape: &Shape) -> Step<bool> {
        Ok(match (dest, shape) {
            (Dest::Mem(Mem::Global(_), ..), Shape::Elem(_)) => true,
            (Dest::Pair(..), Shape::Pair(a, b)) => {
                of(&dest.component(false)?, a)? && of(&dest.component(true)?, b)?
            }
            _ => false,
        })
    }
    let any = Var { id: u32::MAX, name: "any".into(), lo: 0, hi: m - 1 };
    of(&dest.at(&Index::from(any))?, elem)
}

/// Returns place `j` if it is an index without data.
pub fn known(places: &View, j: &Index) -> Option<Index> {
    // A place that needs statements is computed from data.
    match places.at(j).ok()? {
        View::Elem(Expr::Index(i, _)) if !i.has_data() => Some(i),
        _ => None,
    }
}

/// Returns the place of the copy of bin `i` that belongs to work-item `l`. The copies of a bin are neighbours, so that
/// neighbouring work-items meet neither in a bin nor in a bank.
fn copy_of_bin(i: &Index, l: &Index, copies: i64) -> Index {
    i.times(copies).add(&l.div_mod(copies).1)
}

/// Bytes of an array.
pub fn bytes(shape: &Shape) -> usize {
    let of =
        |t: &ElemTy, n: i64| t.bytes().saturating_mul(usize::try_from(n).unwrap_or(usize::MAX));
    shape.components().iter().map(|(t, n)| of(t, *n)).sum()
}

/// Returns where neighbouring work-items combine values, if each element has so many copies.
pub fn lanes(copies: i64) -> Lanes {
    if copies > 1 { Lanes::Apart } else { Lanes::Together }
}

/// Returns an array of bins as one of values.
fn unpacked(shared: Option<Rc<Shared>>, bins: &View, n: i64) -> View {
    match shared {
        Some(shared) if !shared.is_native() => {
            let bins = bins.clone();
            View::array(n, move |i| shared.unpacked(&bins.at(i)?))
        }
        _ => bins.clone(),
    }
}

/// Length of the longest part when `n` elements are divided into this many parts.
fn length(n: i64, parts: i64) -> i64 {
    n / parts + i64::from(n % parts != 0)
}
