//! Vectors that are gathered lane by lane, again and again in a loop that does not change them, are gathered once
//! in front of it, into a private array.
//!
//! A gather is a load and an insertion for every lane; what is in a private array is one load. As in
//! [`super::hoist`], only out of loops that run, and only what each iteration gathers in any case.

use super::index::{Index, Var};
use super::ir::{Block, ElemTy, Expr, Kernel, LoopKind, Mem, MemArray, Stmt};
use super::walk::{Effects, Fresh, rebuild, rebuilt};
use rustc_hash::FxHashSet;

/// Fewest lanes of a gather: fewer are as soon gathered as they are written and read again. The vectors of GPUs, whose
/// private arrays are slow, are narrower.
const LANES: usize = 8;

/// Most scalars that are kept by all work-items' arrays together: half of a first-level cache of 32 KiB.
const MOST: usize = 4096;

/// Gathers once what a kernel's loops gather again.
pub fn once(k: &mut Kernel, fresh: &mut Fresh) {
    let written = Effects::of(&k.body).stored;
    let mut pass = Pass { written, fresh, arrays: vec![], first: k.privates.len(), free: MOST };
    pass.block(&mut k.body, &mut vec![]);
    k.privates.append(&mut pass.arrays);
}

/// A sequential loop around the code being looked at.
struct Level {
    var: Var,
    lo: i64,
    /// How often it runs; 0 where that is not known.
    trips: i64,
    /// What goes in front of it.
    before: Block,
}

struct Pass<'a> {
    /// Memories that the kernel stores to.
    written: FxHashSet<Mem>,
    fresh: &'a mut Fresh,
    arrays: Vec<MemArray>,
    /// The number of the first new array.
    first: usize,
    /// Scalars that are left of [`MOST`].
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
                // Loops outside do not always come to what is in here, or not for one work-item alone.
                Stmt::Loop { .. }
                | Stmt::If(..)
                | Stmt::Branch(..)
                | Stmt::While(..)
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

    /// A load in place of a gather, which is made in front of a loop that does not change it.
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
        self.arrays.push(MemArray { name, scalar: t.scalar, len: size });
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
