//! Parallel maps: loops over work-groups and work-items.

use super::leaf::Emit;
use super::lowerer::{Body, Context, Lowerer};
use super::view::{Step, stop};
use crate::calculus::term::MapKind;
use crate::diag::Code;
use crate::kernel::ir::facts::{Facts, Guard};
use crate::kernel::ir::index::{Index, Var};
use crate::kernel::ir::{LoopKind, Stmt};

impl Lowerer {
    /// Emits a loop over one dimension of work-items or work-groups.
    pub fn spread(&mut self, kind: MapKind, n: i64, nested: bool, body: Body) -> Step<()> {
        if n <= 0 {
            return Ok(());
        }
        let (kind, d, inside) = match kind {
            MapKind::Glb(d) => (LoopKind::Glb(d), d, Context::Item),
            MapKind::Wrg(d) => (LoopKind::Wrg(d), d, Context::Group),
            _ => return stop(Code::Internal, "not a parallel map"),
        };
        let slot = usize::from(d.min(2));
        // Devices limit the number of groups, in the upper dimensions to 65535.
        let most = if slot == 0 { 1 << 30 } else { 65_535 };
        let count = n.min(most);
        self.kernel.grid[slot] = self.kernel.grid[slot].max(count);
        let var = Var {
            id: self.kernel.ids[slot],
            name: format!("{}{slot}", if inside == Context::Item { "i" } else { "g" }).into(),
            lo: 0,
            hi: count - 1,
        };
        let was = self.context;
        self.context = if nested { Context::Nest } else { inside };
        self.kernel.workers.push(var.clone());
        self.begin();
        let done = self.looped(kind, (&var, count), |me| me.strided(&var, n, count, body));
        self.kernel.workers.pop();
        self.context = was;
        let block = self.end();
        done?;
        if block.is_empty() {
            return Ok(());
        }
        self.emit(Stmt::Loop { kind, var, lo: Index::from(0), hi: Index::from(count), body: block })
    }

    /// Emits the work of one of `count` workers: elements `worker`, `worker + count`, ... below
    /// `n`.
    pub fn strided(&mut self, worker: &Var, n: i64, count: i64, body: Body) -> Step<()> {
        let rounds = n / count + i64::from(n % count != 0);
        let first = Index::from(worker.clone());
        let written_out = self.kernel.together && rounds <= super::reduce_group::WRITTEN_OUT;
        self.repeat(rounds, written_out, &mut |me, t| {
            let i = first.add(&t.times(count));
            let guard = Guard::less(&i, &Index::from(n));
            let always = Facts::default().decide(&guard) == Some(true);
            if always {
                return body(me, &i);
            }
            me.where_holds(&guard, |me| body(me, &i))
        })
    }

    /// Emits a loop over one dimension of the work-items of a group.
    pub fn local(&mut self, d: u8, n: i64, nested: bool, body: Body) -> Step<()> {
        if n <= 0 {
            return Ok(());
        }
        if self.context == Context::Nest && self.kernel.local_dims.is_empty() {
            return stop(Code::IllNested, "`mapLcl` between two dimensions of `mapWrg`");
        }
        let slot = usize::from(d.min(2));
        let count = n.min(self.kernel.group[slot]).max(1);
        let var = Var {
            id: self.kernel.ids[3 + slot],
            name: format!("l{slot}").into(),
            lo: 0,
            hi: count - 1,
        };
        let was = self.context;
        self.kernel.local_dims.push(d);
        self.context = if nested { Context::Nest } else { Context::Item };
        self.kernel.workers.push(var.clone());
        self.begin();
        let kind = LoopKind::Lcl(d);
        // What a step defers would leave the loop without its variable.
        let done = self
            .undeferred(|me| me.looped(kind, (&var, count), |me| me.strided(&var, n, count, body)));
        let block = self.end();
        self.kernel.workers.pop();
        self.kernel.local_dims.pop();
        self.context = was;
        done?;
        if block.is_empty() {
            return Ok(());
        }
        let l = Stmt::Loop { kind, var, lo: Index::from(0), hi: Index::from(count), body: block };
        if was == Context::Group { self.alone(l) } else { self.emit(l) }
    }

    /// Emits loops over work-items of a group. In dimensions that the loops do not cover, only
    /// work-item 0 runs them.
    pub fn alone(&mut self, s: Stmt) -> Step<()> {
        let mut dims = [false; 3];
        s.visit(&mut |s| match s {
            Stmt::Loop { kind: LoopKind::Lcl(d), .. } => dims[usize::from((*d).min(2))] = true,
            Stmt::Loop { kind: LoopKind::Warp, .. } => dims[0] = true,
            _ => {}
        });
        let mut block = s;
        for d in (0..3u8).filter(|d| !dims[usize::from(*d)]) {
            let slot = usize::from(d);
            if self.kernel.group[slot] > 1 {
                let var = Var {
                    id: self.kernel.ids[3 + slot],
                    name: format!("l{slot}").into(),
                    lo: 0,
                    hi: 0,
                };
                let (lo, hi) = (Index::from(0), Index::from(1));
                let body = vec![block];
                block = Stmt::Loop { kind: LoopKind::Lcl(d), var, lo, hi, body };
            }
        }
        self.emit(block)
    }
}
