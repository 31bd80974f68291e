//! Moves arrays of a work-group to parts of a buffer, one for each group, if local memory does not have room for all.
//!
//! What is accessed least goes, of what makes room enough: a table that each step of a loop adds a row to, rather than the row that a
//! step goes through. Lowering knows only about single arrays that do not fit.

use super::layout::place;
use super::lifetimes::missing_bytes;
use crate::kernel::ir::index::{Index, Var};
use crate::kernel::ir::walk::Fresh;
use crate::kernel::ir::{
    Block, Buffer, BufferRole, Expr, Kernel, LoopKind, Mem, MemArray, Program, Stmt,
};
use crate::kernel::options::DeviceLimits;

/// Most bytes of a buffer with the arrays of all groups.
const MOST: usize = 1 << 28;

/// Parts of a buffer begin at a multiple of this many scalars, so that vectors are aligned.
const ALIGNED: usize = 16;

/// Steps of a loop whose number is unknown.
const STEPS: f64 = 8.0;

/// How an array is used.
#[derive(Clone, Debug, Default)]
struct Uses {
    /// Scalars that a group loads and stores.
    accesses: f64,
    /// Loops over groups around the accesses.
    groups: Vec<Var>,
    /// Whether an access is not one of a buffer: an update by several work-items, or matrices that a warp loads.
    fixed: bool,
}

/// Moves arrays of all kernels that need more local memory than there is.
pub fn to_buffers(p: &mut Program, device: &DeviceLimits, host: &mut Fresh) {
    for k in 0..p.kernels.len() {
        loop {
            let kernel = &mut p.kernels[k];
            let missing = missing_bytes(kernel, device.local_mem_bytes);
            if missing == 0 {
                break;
            }
            let Some((a, groups)) = coldest(kernel, missing) else { break };
            let array = MemArray { name: host.name("temp").1, ..kernel.locals[a].clone() };
            let len = array.len.next_multiple_of(ALIGNED);
            let (group, count) = number(&groups);
            let base = group.times(i64::try_from(len).unwrap_or(i64::MAX));
            let buffer = Mem::Global(p.buffers.len());
            place(&mut kernel.body, Mem::Local(a), &|i| (buffer, base.add(i)));
            let array = MemArray { len: len.saturating_mul(count), ..array };
            p.buffers.push(Buffer { array, role: BufferRole::Temp });
        }
    }
}

/// The number of a group, and of how many.
fn number(groups: &[Var]) -> (Index, usize) {
    groups.iter().fold((Index::from(0), 1), |(i, n), v| {
        let count = v.hi.saturating_add(1);
        let all = n.saturating_mul(usize::try_from(count).unwrap_or(usize::MAX));
        (i.times(count).add(&Index::from(v.clone())), all)
    })
}

/// Returns the array with the fewest accesses for what it gives of the missing bytes, of those that can be in a buffer, and the loops
/// over groups around it.
fn coldest(k: &Kernel, missing: usize) -> Option<(usize, Vec<Var>)> {
    let mut uses: Vec<Option<Uses>> = vec![None; k.locals.len()];
    collect(&k.body, 1.0, &mut vec![], &mut uses);
    let single = k.global == k.group;
    let warmth = |(a, uses): (usize, Option<Uses>)| {
        let (uses, array) = (uses?, &k.locals[a]);
        let bytes = array.local_bytes();
        let all = bytes.saturating_mul(number(&uses.groups).1);
        let fits = !uses.fixed && array.ahead == 0 && array.pieces == 0 && all <= MOST;
        let known = single || !uses.groups.is_empty();
        (fits && known).then(|| (uses.accesses / bytes.min(missing).max(1) as f64, a, uses.groups))
    };
    let found = uses.into_iter().enumerate().filter_map(warmth);
    found.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, a, groups)| (a, groups))
}

/// Collects how arrays are used in a block that runs `times` times in a group.
fn collect(b: &Block, times: f64, groups: &mut Vec<Var>, out: &mut [Option<Uses>]) {
    for s in b {
        let mut access = |m: &Mem, width: usize, fixed: bool| {
            let Mem::Local(a) = m else { return };
            let Some(uses) = out.get_mut(*a) else { return };
            let uses =
                uses.get_or_insert_with(|| Uses { groups: groups.clone(), ..Uses::default() });
            uses.accesses += times * width as f64;
            uses.fixed |= fixed || uses.groups != *groups;
        };
        match s {
            Stmt::Store(m, _, e) => access(m, e.ty().width, false),
            Stmt::Atomic(_, m, ..) => access(m, 1, true),
            _ => {}
        }
        s.exprs(&mut |e| {
            e.visit(&mut |e| match e {
                Expr::Load(m, t, _) => access(m, t.width, false),
                Expr::Matrices(_, e) => {
                    if let Expr::Load(m, ..) = &**e {
                        access(m, 1, true);
                    }
                }
                _ => {}
            });
        });
        let (mut inside, depth) = (times, groups.len());
        match s {
            Stmt::Loop { kind: LoopKind::Wrg(_), var, .. } => groups.push(var.clone()),
            Stmt::Loop { lo, hi, .. } => {
                inside *= hi.sub(lo).as_constant().map_or(STEPS, |n| n.max(0) as f64);
            }
            Stmt::While(..) => inside *= STEPS,
            _ => {}
        }
        s.blocks().into_iter().for_each(|b| collect(b, inside, groups, out));
        groups.truncate(depth);
    }
}
