//! Sequential reductions, folds and scans. The accumulator stays in one place and is updated there.

use super::accumulator::{Accumulator, form};
use super::apply::is_pure;
use super::dest::{Dest, inverse};
use super::double_buffer;
use super::lowerer::{Context, Lowerer};
use super::view::{Shape, Step, View};
use crate::calculus::term::{Op, ReduceKind, ScanKind, Space, Term};

impl Lowerer {
    /// Allocates an accumulator and stores its first value.
    fn accumulator(&mut self, op: &Term, z: &Term) -> Step<Accumulator> {
        let form = form(&op.chain())?;
        let z = z.chain();
        let shape = self.views.shape(&form.ty)?;
        let grouped = matches!(self.context, Context::Group | Context::Warp);
        let spread = grouped && !form.levels.is_empty();
        let out = if shape.is_element() {
            let space = (self.context != Context::Warp).then_some(Space::Private);
            self.allocate(&shape, space)?
        } else if spread && form.space == Some(Space::Private) {
            self.distributed(&form.levels, &shape, None)?
        } else {
            self.allocate(&shape, form.space)?
        };
        let acc = Accumulator {
            view: self.views.apply(&form.out, &out.view)?,
            dest: inverse(&self.views, &form.back, &out.dest)?,
            owned: out.owned,
            kept: out.view,
            kept_dest: out.dest,
            kept_shape: shape,
            form,
            spread,
        };
        if acc.kept_shape.is_element() {
            let zero = self.read(&z, &View::Unit)?;
            self.store(&zero, &acc.dest, &acc.kept_shape)?;
        } else if z.iter().all(is_pure) {
            let zero = self.views.apply(&acc.form.back, &self.apply(&z, &View::Unit)?)?;
            self.keep(&acc, &zero, &acc.kept_dest)?;
        } else {
            self.write(&z, &View::Unit, &acc.dest)?;
        }
        Ok(acc)
    }

    /// Stores a value in the form in which the accumulator is kept.
    fn keep(&mut self, acc: &Accumulator, v: &View, d: &Dest) -> Step<()> {
        if acc.spread {
            self.spread_copy(&acc.form.levels, v, d, &acc.kept_shape)
        } else {
            self.copy(v, d, &acc.kept_shape)
        }
    }

    /// Stores the result of a reduction.
    pub fn write_reduce(&mut self, f: &Term, x: &View, dest: &Dest) -> Step<()> {
        let acc = self.reduce(f, x)?;
        // The kept form is stored directly: vectors as vectors, and the part of each work-item by
        // that work-item.
        let dest = inverse(&self.views, &acc.form.out, dest)?;
        if acc.spread {
            return self.keep(&acc, &acc.kept, &dest);
        }
        self.store(&acc.kept, &dest, &acc.kept_shape)
    }

    /// Copies a value with each outer array level spread over a dimension of the group.
    fn spread_copy(&mut self, dims: &[Option<u8>], v: &View, d: &Dest, shape: &Shape) -> Step<()> {
        match (dims.split_first(), shape) {
            (Some((None, _)), Shape::Array(n, t)) => {
                self.lanes(*n, &mut |me, i| me.store(&v.at(i)?, &d.at(i)?, t))
            }
            (Some((Some(dim), rest)), Shape::Array(n, t)) => {
                self.local(*dim, *n, !rest.is_empty(), &mut |me, i| {
                    me.spread_copy(rest, &v.at(i)?, &d.at(i)?, t)
                })
            }
            _ => self.store(v, d, shape),
        }
    }

    pub fn reduce(&mut self, f: &Term, x: &View) -> Step<Accumulator> {
        let n = self.views.size(&f.sizes()[0])?;
        let (op, z) = (f.args()[0].clone(), f.args()[1].clone());
        let acc = self.accumulator(&op, &z)?;
        let unroll = *f.op() == Op::Reduce(ReduceKind::Unroll);
        let (op, shape) = (op.chain(), self.views.shape(&z.ty().cod)?);
        if let Some(parts) = double_buffer::parts(&op).filter(|_| self.may_load_ahead(n)) {
            self.reduce_ahead(parts, x, n, &acc, &shape)?;
            return Ok(acc);
        }
        self.repeat(n, unroll, &mut |me, i| {
            let arg = View::pair(acc.view.clone(), x.at(i)?);
            me.step(&op, &arg, &acc, &shape)
        })?;
        Ok(acc)
    }

    /// As [`Lowerer::update`], for a step of a reduction.
    pub fn step(&mut self, op: &[Term], arg: &View, acc: &Accumulator, shape: &Shape) -> Step<()> {
        if acc.spread {
            return self.update(op, arg, &acc.dest, &acc.owned, shape);
        }
        if self.in_place(op, arg, &acc.dest, &acc.owned)? {
            return Ok(());
        }
        // The copy has the form of the accumulator, so that vectors are copied as vectors.
        let fresh = self.allocate(&acc.kept_shape, None)?;
        self.write(op, arg, &inverse(&self.views, &acc.form.back, &fresh.dest)?)?;
        self.copy(&fresh.view, &acc.kept_dest, &acc.kept_shape)
    }

    /// `foldSeq`: the accumulator is an argument, and is updated in registers of its own.
    pub fn fold(&mut self, f: &Term, x: &View) -> Step<Accumulator> {
        let n = self.views.size(&f.sizes()[0])?;
        let op = f.args()[0].chain();
        let form = form(&op)?;
        let kept_shape = self.views.shape(&form.ty)?;
        let out = self.allocate(&kept_shape, Some(Space::Private))?;
        let start = self.views.apply(&form.back, &x.fst()?)?;
        self.store(&start, &out.dest, &kept_shape)?;
        let acc = Accumulator {
            view: self.views.apply(&form.out, &out.view)?,
            dest: inverse(&self.views, &form.back, &out.dest)?,
            owned: out.owned,
            kept: out.view,
            kept_dest: out.dest,
            kept_shape,
            form,
            spread: false,
        };
        let xs = x.snd()?;
        let whole = self.views.shape(&f.ty().cod)?;
        self.repeat(n, false, &mut |me, i| {
            let arg = View::pair(acc.view.clone(), xs.at(i)?);
            me.step(&op, &arg, &acc, &whole)
        })?;
        Ok(acc)
    }

    /// Stores the results of a scan in a work-item. Returns the last state.
    pub fn scan(&mut self, f: &Term, x: &View, dest: &Dest) -> Step<View> {
        let n = self.views.size(&f.sizes()[0])?;
        let (op, z) = (f.args()[0].clone(), f.args()[1].clone());
        let shape = self.views.shape(&z.ty().cod)?;
        let acc = self.accumulator(&op, &z)?;
        let op = op.chain();
        let exclusive = *f.op() == Op::Scan(ScanKind::Exclusive);
        self.repeat(n, false, &mut |me, i| {
            if exclusive {
                me.store(&acc.view, &dest.at(i)?, &shape)?;
            }
            let arg = View::pair(acc.view.clone(), x.at(i)?);
            me.step(&op, &arg, &acc, &shape)?;
            if exclusive { Ok(()) } else { me.store(&acc.view, &dest.at(i)?, &shape) }
        })?;
        Ok(acc.view)
    }
}
