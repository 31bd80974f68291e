//! Estimates how long chains of dependent operations in straight-line code stall a processor: the
//! time in which its look-ahead window does not contain enough independent work.

use super::op_kind::{OpKind, kind};
use crate::calculus::op::products::Products;
use crate::kernel::ir::index::Index;
use crate::kernel::ir::{Block, Expr, Stmt};
use crate::lang::typed::ScalarOp;
use std::collections::BTreeMap;

/// Approximate length of a core's look-ahead window, in instructions.
const AHEAD: f64 = 400.0;

/// Returns how long one run of the block waits, in latencies of an addition: the length of its
/// longest dependency chain, scaled down if the next run of the block can begin within the
/// look-ahead window. Nested loops are not counted.
pub fn waiting(block: &Block) -> f64 {
    let mut w = Walk { ready: BTreeMap::new(), longest: 0.0, instructions: 0.0 };
    w.block(block);
    w.longest * (w.instructions / AHEAD).min(1.0)
}

/// The latency of a matrix instruction in latencies of an addition, and the number of instructions that could be issued
/// while matrix units are busy with it.
const PRODUCTS: (f64, f64) = (23.0 / 3.0, 20.0 / 3.0);

/// The same of the instructions of [`Expr::Products`], one after the other.
pub fn of_products(of: Products) -> (f64, f64) {
    let n = of.instructions() as f64;
    (PRODUCTS.0 * n, PRODUCTS.1 * n)
}

/// Returns the latency of an operation in latencies of an addition, and the number of its instructions; `float` says
/// whether its result is a float.
pub fn latency(op: ScalarOp, float: bool) -> (f64, f64) {
    match kind(op, float) {
        OpKind::Special => (16.0, 30.0),
        OpKind::Div => (4.0, 1.0),
        OpKind::Products(of) => of_products(of),
        OpKind::Add | OpKind::Mul | OpKind::Fma | OpKind::Other => (1.0, 1.0),
    }
}

struct Walk {
    /// Time at which the value of each register is ready.
    ready: BTreeMap<u32, f64>,
    longest: f64,
    instructions: f64,
}

impl Walk {
    fn block(&mut self, b: &Block) {
        for s in b {
            match s {
                Stmt::Decl(r, Some(e)) | Stmt::Set(r, e) => {
                    let at = self.expr(e);
                    self.ready.insert(r.id, at);
                }
                Stmt::Store(_, i, e) | Stmt::Atomic(_, _, i, e) => {
                    self.instructions += 1.0;
                    let at = self.expr(e).max(self.index(i));
                    // The element comes from memory, as that of a load.
                    self.ready.extend(s.assigned().map(|r| (r.id, at + 2.0)));
                }
                Stmt::Branch(c, ..) => {
                    self.expr(c);
                }
                Stmt::Decl(_, None)
                | Stmt::Loop { .. }
                | Stmt::While(..)
                | Stmt::If(..)
                | Stmt::Once(_)
                | Stmt::Barrier { .. } => {}
            }
            if matches!(s, Stmt::If(..) | Stmt::Branch(..) | Stmt::Once(_)) {
                s.blocks().into_iter().for_each(|b| self.block(b));
            }
        }
    }

    fn all(&mut self, es: &[Expr]) -> f64 {
        es.iter().map(|e| self.expr(e)).fold(0.0, f64::max)
    }

    fn index(&mut self, i: &Index) -> f64 {
        let mut ready: f64 = 0.0;
        i.visit_data(&mut |e| ready = ready.max(self.expr(e)));
        ready
    }

    /// Returns the time at which the value is ready.
    fn expr(&mut self, e: &Expr) -> f64 {
        // Start time, latency in latencies of an addition, and number of instructions.
        let (from, latency, instructions) = match e {
            Expr::Lit(_) | Expr::Arg(..) => (0.0, 0.0, 0.0),
            Expr::Reg(r) => (self.ready.get(&r.id).copied().unwrap_or(0.0), 0.0, 0.0),
            Expr::Index(i, _) => (self.index(i), 0.0, 0.0),
            Expr::Load(_, _, i) => (self.index(i), 2.0, 1.0),
            Expr::Op(op, t, es) => {
                let (latency, instructions) = latency(*op, t.scalar.is_float());
                (self.all(es), latency, instructions)
            }
            Expr::Checked(_, es) => (self.all(es), 1.0, 2.0),
            Expr::If(c, a, b) => (self.expr(c).max(self.expr(a)).max(self.expr(b)), 1.0, 1.0),
            // Count the guarded side only: the guard holds in the common case.
            Expr::Guarded(_, a, _) => (self.expr(a), 0.0, 0.0),
            Expr::Splat(e, _) | Expr::Lane(e, _) | Expr::Matrices(_, e) => (self.expr(e), 0.0, 0.0),
            Expr::Vector(es) => (self.all(es), 1.0, 0.0),
            Expr::Products(of, es) => {
                let (latency, instructions) = of_products(*of);
                (self.all(es), latency, instructions)
            }
        };
        self.instructions += instructions;
        let at = from + latency;
        self.longest = self.longest.max(at);
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::ir::{ElemTy, Reg};
    use crate::lang::types::ScalarType;

    /// `count` chains of `length` square roots; the chains stand one after the other in the code.
    fn chains(count: u32, length: u32) -> Block {
        let ty = ElemTy { scalar: ScalarType::F32, width: 16 };
        let reg = |id| Reg { id, name: format!("t{id}").into(), ty };
        let mut out = vec![];
        for c in 0..count {
            for k in 1..length {
                let e = Expr::Op(ScalarOp::Sqrt, ty, vec![Expr::Reg(reg(c * length + k - 1))]);
                out.push(Stmt::Decl(reg(c * length + k), Some(e)));
            }
        }
        out
    }

    #[test]
    fn chains_side_by_side_wait_once() {
        // A short block fits into the look-ahead window many times, so its latency is hidden behind
        // later runs.
        assert!(waiting(&chains(1, 3)) < 0.1);
        let long = waiting(&chains(1, 501));
        assert_eq!(long, 2000.0);
        assert_eq!(waiting(&chains(8, 501)), long);
    }
}
