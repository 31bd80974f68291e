//! Sequential reductions and scans: accumulators stay where they are and change in place.

use super::dest::{Dest, is_invertible};
use super::hazard;
use super::leaf::Emit;
use super::lower::{Context, Lowerer, is_parallel};
use super::memory::Storage;
use super::view::{Shape, Step, View, is_pure};
use crate::calculus::term::{Op, ReduceKind, Space, Term};

impl Lowerer {
    /// Memory for an accumulator with its first value.
    fn accumulator(&mut self, op: &Term, z: &Term, shape: &Shape) -> Step<Storage> {
        let z = z.chain();
        if shape.is_element() {
            let zero = self.read(&z, &View::Unit)?;
            let space = (self.context != Context::Warp).then_some(Space::Private);
            let out = self.allocate(shape, space)?;
            self.store(&zero, &out.dest, shape)?;
            return Ok(out);
        }
        let outer = op.chain();
        let outer = outer.iter().find(|f| !is_invertible(f)).unwrap_or(op);
        let grouped = matches!(self.context, Context::Group | Context::Warp);
        let spread = grouped && is_parallel(outer);
        let out = match outer.op() {
            Op::ToMem(Space::Private) if spread => self.distributed(outer, shape)?,
            Op::ToMem(space) => self.allocate(shape, Some(*space))?,
            _ => self.allocate(shape, None)?,
        };
        if spread && z.iter().all(is_pure) {
            let zero = self.apply(&z, &View::Unit)?;
            self.spread_copy(&Lowerer::levels(outer), &zero, &out.dest, shape)?;
        } else {
            self.write(&z, &View::Unit, &out.dest)?;
        }
        Ok(out)
    }

    /// Copies with each array level spread over a dimension of the group.
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

    pub fn reduce(&mut self, f: &Term, x: &View, shape: &Shape) -> Step<View> {
        let n = self.views.size(&f.sizes()[0])?;
        let (op, z) = (f.args()[0].clone(), f.args()[1].clone());
        let acc = self.accumulator(&op, &z, shape)?;
        let unroll = *f.op() == Op::Reduce(ReduceKind::Unroll);
        let op = op.chain();
        self.repeat(n, unroll, &mut |me, i| {
            let arg = View::pair(acc.view.clone(), x.at(i)?);
            me.update(&op, &arg, &acc, shape)
        })?;
        Ok(acc.view)
    }

    /// `acc = op(arg)`, in place unless that would read what it has already overwritten.
    fn update(&mut self, op: &[Term], arg: &View, acc: &Storage, shape: &Shape) -> Step<()> {
        self.begin();
        let done = self.write(op, arg, &acc.dest);
        let block = self.end();
        done?;
        if !hazard::reads_what_it_wrote(&block, &acc.owned) {
            return block.into_iter().try_for_each(|s| self.emit(s));
        }
        let fresh = self.allocate(shape, None)?;
        self.write(op, arg, &fresh.dest)?;
        self.copy(&fresh.view, &acc.dest, shape)
    }

    pub fn scan(&mut self, f: &Term, x: &View, dest: &Dest) -> Step<()> {
        let n = self.views.size(&f.sizes()[0])?;
        let (op, z) = (f.args()[0].clone(), f.args()[1].clone());
        let shape = self.views.shape(&z.ty().cod)?;
        let acc = self.accumulator(&op, &z, &shape)?;
        let op = op.chain();
        self.repeat(n, false, &mut |me, i| {
            let arg = View::pair(acc.view.clone(), x.at(i)?);
            me.update(&op, &arg, &acc, &shape)?;
            me.store(&acc.view, &dest.at(i)?, &shape)
        })
    }
}
