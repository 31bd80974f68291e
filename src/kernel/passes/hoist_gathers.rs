//! Hoists gathers: a vector that a loop gathers lane by lane again and again, without changing it,
//! is gathered once in front of the loop into a private array.
//!
//! A gather costs a load and an insertion for every lane, whereas the private array costs one
//! vector load. As in [`super::licm`], the pass only moves gathers out of loops that run, and only
//! those that every iteration makes unconditionally.

use crate::kernel::ir::index::{Index, Var};
use crate::kernel::ir::walk::{Effects, Fresh, rebuild, rebuilt};
use crate::kernel::ir::{Block, ElemTy, Expr, Kernel, LoopKind, Mem, MemArray, Stmt};
use rustc_hash::FxHashSet;

/// Minimum number of lanes. Gathering fewer lanes again is as fast as storing and reloading them.
/// This also excludes GPUs: their vectors are narrower, and their private arrays are slow.
const LANES: usize = 8;

/// Maximum number of scalars in all new arrays of a work-item together: half of a first-level cache
/// of 32 KiB.
const MOST: usize = 4096;

/// Hoists the repeated gathers of a kernel.
pub fn once(k: &mut Kernel, fresh: &mut Fresh) {
    let written = Effects::of(&k.body).stored;
    let mut pass = Pass { written, fresh, arrays: vec![], first: k.privates.len(), free: MOST };
    pass.block(&mut k.body, &mut vec![]);
    k.privates.append(&mut pass.arrays);
}

/// A sequential loop around the current code.
struct Level {
    var: Var,
    lo: i64,
    /// Trip count; 0 if it is not known.
    trips: i64,
    /// Statements to insert before the loop.
    before: Block,
}

struct Pass<'a> {
    /// Memories that the kernel stores to.
    written: FxHashSet<Mem>,
    fresh: &'a mut Fresh,
    arrays: Vec<MemArray>,
    /// The number of the first new array.
    first: usize,
    /// Scalars left of the limit [`MOST`].
    free: usize,
}

impl Pass<'_> {
    fn block(&mut self, b: &mut Block, path: &mut Vec<Level>) {
        let mut out = Vec::with_capacity(b.len());
        for mut s in b.drain(..) {
            match &mut s {
                Stmt::Loop { kind: LoopKind::Seq, var, lo, hi, body } => {
                    let known = lo.as_constant().zip(hi.as_constant());
                    let (lo, trips) = known.map_or((0, 0), |(a, b)| (a, b.saturating_sub(a)));
                    path.push(Level { var: var.clone(), lo, trips, before: vec![] });
                    self.block(body, path);
                    out.extend(path.pop().into_iter().flat_map(|l| l.before));
                }
                Stmt::Decl(..) | Stmt::Set(..) | Stmt::Store(..) => {
                    rebuild(&mut s, &mut |e| self.expr(e, path));
                }
                // The outer loops do not always reach this code, or more than one work-item shares
                // it: do not hoist past this statement.
                Stmt::Loop { .. }
                | Stmt::If(..)
                | Stmt::Branch(..)
                | Stmt::While(..)
                | Stmt::Atomic(..)
                | Stmt::Once(_)
                | Stmt::Barrier { .. } => {
                    s.blocks_mut().into_iter().for_each(|b| self.block(b, &mut vec![]));
                }
            }
            out.push(s);
        }
        *b = out;
    }

    fn expr(&mut self, e: &Expr, path: &mut [Level]) -> Expr {
        self.kept(e, path).unwrap_or_else(|| {
            rebuilt(e, &mut |e, lazy| if lazy { e.clone() } else { self.expr(e, path) })
        })
    }

    /// Returns a load that replaces a gather, and moves the gather in front of the outermost loop
    /// that does not change it.
    fn kept(&mut self, e: &Expr, path: &mut [Level]) -> Option<Expr> {
        let Expr::Vector(lanes) = e else { return None };
        let from_input = |e: &Expr| match e {
            Expr::Load(m @ Mem::Global(_), t, i) => {
                t.width == 1 && !i.has_data() && !self.written.contains(m)
            }
            _ => false,
        };
        if lanes.len() < LANES || !lanes.iter().all(from_input) {
            return None;
        }
        let mentions =
            |v: &Var| lanes.iter().any(|e| matches!(e, Expr::Load(_, _, i) if i.mentions(v.id)));
        let fixed = path.iter().position(|l| l.trips > 1 && !mentions(&l.var))?;
        let (around, inside) = path.split_at_mut(fixed + 1);
        if inside.iter().any(|l| l.trips < 1) {
            return None;
        }
        let width = i64::try_from(lanes.len()).ok()?;
        let (mut place, mut len) = (Index::from(0), width);
        let over: Vec<&Level> = inside.iter().filter(|l| mentions(&l.var)).rev().collect();
        for l in &over {
            place = place.add(&Index::from(l.var.clone()).plus(-l.lo).times(len));
            len = len.checked_mul(l.trips)?;
        }
        let size = usize::try_from(len).ok().filter(|n| *n <= self.free)?;
        self.free -= size;
        let t = e.ty();
        let name = self.fresh.reg(ElemTy::scalar(t.scalar)).name;
        self.arrays.push(MemArray { name, scalar: t.scalar, len: size, ahead: 0, pieces: 0 });
        let mem = Mem::Private(self.first + self.arrays.len() - 1);
        let mut fill = Stmt::Store(mem, place.clone(), e.clone());
        for l in over {
            let (lo, hi) = (Index::from(l.lo), Index::from(l.lo + l.trips));
            fill = Stmt::Loop { kind: LoopKind::Seq, var: l.var.clone(), lo, hi, body: vec![fill] };
        }
        around.last_mut()?.before.push(fill);
        Some(Expr::Load(mem, t, place))
    }
}
