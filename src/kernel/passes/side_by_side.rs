//! Small work-groups side by side: a device starts one work-group for several of the program's.
//!
//! Rows of a few dozen elements need a few dozen work-items each. With a work-group for each of many such rows, a GPU spends
//! more time on starting groups than on the rows. So a work-group of the device has several groups of the program as the rows
//! of its second dimension ([`Kernel::side_by_side`]). Each has local arrays of its own. The code stays what it is: the printer
//! gives each row its number as that of its group. Barriers then wait for all rows, so all rows must reach the same ones.

use crate::kernel::ir::walk::Effects;
use crate::kernel::ir::{Block, Expr, Kernel, LoopKind, Stmt};
use crate::kernel::options::DeviceLimits;

/// Most work-items of groups that are side by side.
const ITEMS: usize = 256;
/// Most bytes of local memory of groups that are side by side.
const BYTES: usize = 16 << 10;
/// Groups that are left at least. So many start in a moment.
const GROUPS: usize = 4096;

/// Puts the groups of a kernel side by side if they are small and many.
pub fn place(k: &mut Kernel, device: &DeviceLimits) {
    let [items, 1, 1] = k.group else { return };
    let groups = k.global[0] / items.max(1);
    // Work-items of different rows are never in one sub-group, which may have barriers of its own.
    let warps = device.sub_group.max(1);
    if !device.shares_local_memory() || k.warp > 0 || !items.is_multiple_of(warps) {
        return;
    }
    let room = |rows: &usize| {
        rows * items <= ITEMS.min(device.max_work_group_size)
            && *rows <= device.max_item_sizes[1]
            && k.local_bytes().saturating_mul(*rows) <= BYTES.min(device.local_mem_bytes)
            && groups.is_multiple_of(*rows)
            && groups / rows >= GROUPS
    };
    if let Some(rows) = [8, 4, 2].into_iter().find(room)
        && !k.spreads_items()
        && is_plain(&k.body)
        && alike(&k.body, groups)
    {
        k.side_by_side = rows;
    }
}

/// Whether no statement depends on which work-items make up a work-group of the device.
fn is_plain(b: &Block) -> bool {
    let mut plain = true;
    for s in b {
        s.visit(&mut |s| {
            plain &= !matches!(s, Stmt::Atomic(..));
            s.exprs(&mut |e| {
                e.visit(&mut |e| plain &= !matches!(e, Expr::Products(..) | Expr::Matrices(..)));
            });
        });
    }
    plain
}

/// Whether all of so many groups reach the same barriers.
fn alike(b: &Block, groups: usize) -> bool {
    let all = |n: i64| usize::try_from(n).is_ok_and(|n| n >= groups);
    b.iter().all(|s| match s {
        Stmt::Loop { kind: LoopKind::Wrg(0), hi, body, .. } => {
            (!Effects::of(body).meets || hi.as_constant().is_some_and(all)) && alike(body, groups)
        }
        Stmt::Loop { kind: LoopKind::Seq, lo, hi, body, .. } => {
            let counted = lo.as_constant().is_some() && hi.as_constant().is_some();
            (!Effects::of(body).meets || counted) && alike(body, groups)
        }
        Stmt::Loop { kind: LoopKind::Wrg(_), body, .. } => !Effects::of(body).meets,
        s => s.blocks().into_iter().all(|b| !Effects::of(b).meets),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calculus::scalar::Lit;
    use crate::kernel::ir::index::{Index, Var};
    use crate::kernel::ir::testing::kernel;
    use crate::kernel::ir::{Mem, Scope};
    use crate::lang::types::ScalarType;

    fn rows(groups: usize, items: usize, body: Block) -> usize {
        let (global, group) = ([groups * items, 1, 1], [items, 1, 1]);
        let mut k = Kernel { global, group, ..kernel(body) };
        let gpu = DeviceLimits { sub_group: 32, access_bytes: 16, ..DeviceLimits::default() };
        place(&mut k, &gpu);
        k.side_by_side
    }

    fn count(kind: LoopKind, n: i64, hi: Index, body: Block) -> Stmt {
        let var = Var { id: 1, name: "i".into(), lo: 0, hi: n - 1 };
        Stmt::Loop { kind, var, lo: Index::from(0), hi, body }
    }

    fn barrier() -> Stmt {
        Stmt::Barrier { scope: Scope::Group, local: true, global: false }
    }

    #[test]
    fn small_groups_are_side_by_side() {
        let n = 1 << 17;
        let groups = |n: i64, body| vec![count(LoopKind::Wrg(0), n, Index::from(n), body)];
        let meets = vec![barrier()];
        assert_eq!(rows(n, 32, groups(1 << 17, meets.clone())), 8);
        assert_eq!(rows(n, 64, groups(1 << 17, meets.clone())), 4);
        assert_eq!(rows(1 << 13, 32, groups(1 << 13, meets.clone())), 2, "not many groups");
        assert_eq!(rows(n, 256, groups(1 << 17, meets.clone())), 1, "large groups");
        assert_eq!(rows(n, 16, groups(1 << 17, meets.clone())), 1, "parts of warps");
        assert_eq!(rows(1 << 12, 32, groups(1 << 12, meets.clone())), 1, "few groups");
        assert_eq!(rows(n + 1, 32, groups((1 << 17) + 1, meets.clone())), 1, "an odd number");
        // The last groups would not reach the barrier.
        assert_eq!(rows(n, 32, groups(1000, meets.clone())), 1);
        let steps = |hi: Index| vec![count(LoopKind::Seq, 9, hi, meets.clone())];
        assert_eq!(rows(n, 32, groups(1 << 17, steps(Index::from(9)))), 8);
        let own = Var { id: 1, name: "i".into(), lo: 0, hi: 8 };
        assert_eq!(rows(n, 32, groups(1 << 17, steps(Index::from(own)))), 1, "steps of its own");
        let one = Expr::Lit(Lit::int(ScalarType::I32, 1));
        let store = Stmt::Store(Mem::Global(0), Index::from(0), one);
        assert_eq!(rows(n, 32, groups(1 << 17, vec![store])), 8, "without barriers");
    }
}
