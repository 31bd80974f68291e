//! Warps and lanes.
//!
//! A warp consists of [`Building::warp`](super::lowerer::Building) consecutive work-items of
//! dimension 0; a lane is one of them. Every `mapLane` is a stage of the code of the whole
//! work-group: a loop over warps around a loop over lanes, with the guards of both inside. So all
//! work-items of the group reach the barrier between two stages, whichever kind it is, and the code
//! never relies on lock-step execution.

use super::leaf::Emit;
use super::lowerer::{Body, Context, InWarp, Lowerer};
use super::view::{Step, stop};
use crate::calculus::term::{MapKind, Op, Term};
use crate::diag::Code;
use crate::kernel::ir::facts::{Facts, Guard};
use crate::kernel::ir::index::{Index, Var};
use crate::kernel::ir::{LoopKind, Stmt};

/// Number of work-items of a warp if the device does not say.
const WIDTH: usize = 32;

impl Lowerer {
    /// Returns the number of work-items of a warp in the kernel of `f`; 0 if the kernel has no
    /// warps. It is the length of the longest `mapLane`, rounded up to a power of two, and at most
    /// the size of a sub-group of the device (32 if it has none).
    pub fn warp_width(&self, f: &Term) -> Step<i64> {
        let mut lanes: Option<i64> = None;
        let mut failed = None;
        f.visit(&mut |t| {
            let n = match t.op() {
                Op::Map(MapKind::Lane) => self.views.size(&t.sizes()[0]),
                Op::Map(MapKind::Warp) => Ok(1),
                _ => return,
            };
            match n {
                Ok(n) => lanes = Some(lanes.map_or(n, |most| most.max(n))),
                Err(e) => failed = Some(e),
            }
        });
        if let Some(e) = failed {
            return Err(e);
        }
        let Some(lanes) = lanes else { return Ok(0) };
        let device = &self.options.device;
        let most = if device.sub_group > 0 { device.sub_group } else { WIDTH };
        let most = most.min(device.max_item_sizes[0]).min(device.max_work_group_size).max(1);
        let lanes = usize::try_from(lanes.max(1)).unwrap_or(usize::MAX);
        Ok(i64::try_from(lanes.min(most).next_power_of_two().min(most)).unwrap_or(1))
    }

    /// Emits one iteration for each warp of the group.
    pub fn warps(&mut self, n: i64, body: Body) -> Step<()> {
        if n <= 0 {
            return Ok(());
        }
        let there = self.kernel.group[0] / self.kernel.warp.max(1);
        if there < 1 {
            return stop(Code::Internal, "a work-group smaller than a warp");
        }
        let count = n.min(there);
        let var = Var { id: self.kernel.warp_ids[0], name: "warp".into(), lo: 0, hi: count - 1 };
        let rounds = n / count + i64::from(n % count != 0);
        let (was, outer) = (self.context, self.kernel.in_warp.take());
        self.kernel.workers.push(var.clone());
        let done = self.repeat(rounds, false, &mut |me, t| {
            let i = Index::from(var.clone()).add(&t.times(count));
            let guard = Guard::less(&i, &Index::from(n));
            let always = Facts::default().decide(&guard) == Some(true);
            let guard = if always { Guard::default() } else { guard };
            me.kernel.in_warp = Some(InWarp { var: var.clone(), guard });
            me.context = Context::Warp;
            let done = me.looped(LoopKind::Warp, (&var, count), |me| body(me, &i));
            me.context = was;
            done
        });
        self.kernel.workers.pop();
        self.context = was;
        self.kernel.in_warp = outer;
        done
    }

    /// Runs `body` only in the warps for which the guard holds.
    pub fn where_in_warp(
        &mut self,
        g: &Guard,
        body: impl FnOnce(&mut Lowerer) -> Step<()>,
    ) -> Step<()> {
        let outer = self.kernel.in_warp.clone();
        if let Some(w) = &mut self.kernel.in_warp {
            w.guard = w.guard.and(g);
        }
        let done = self.guarded(g, body);
        self.kernel.in_warp = outer;
        done
    }

    /// Emits one iteration for each lane of a warp.
    pub fn lanes(&mut self, n: i64, body: Body) -> Step<()> {
        let Some(warp) = self.kernel.in_warp.clone() else {
            return stop(Code::IllNested, "`mapLane` outside `mapWarp`");
        };
        if n <= 0 {
            return Ok(());
        }
        let count = n.min(self.kernel.warp).max(1);
        let lane = Var { id: self.kernel.warp_ids[1], name: "lane".into(), lo: 0, hi: count - 1 };
        let was = std::mem::replace(&mut self.context, Context::Item);
        self.kernel.workers.push(lane.clone());
        self.begin();
        let done =
            self.looped(LoopKind::Lane, (&lane, count), |me| me.strided(&lane, n, count, body));
        let block = self.end();
        self.kernel.workers.pop();
        self.context = was;
        done?;
        if block.is_empty() {
            return Ok(());
        }
        let (lo, warps) = (Index::from(0), Index::from(warp.var.hi + 1));
        let hi = Index::from(count);
        let lanes = Stmt::Loop { kind: LoopKind::Lane, var: lane, lo: lo.clone(), hi, body: block };
        let inside = match warp.guard.0.is_empty() {
            true => lanes,
            false => Stmt::If(warp.guard, vec![lanes], vec![]),
        };
        self.alone(Stmt::Loop {
            kind: LoopKind::Warp,
            var: warp.var,
            lo,
            hi: warps,
            body: vec![inside],
        })
    }
}
