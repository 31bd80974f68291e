//! Numbers of 16 bits that the compiler does not calculate with: `f16` without `cl_khr_fp16`, and `bf16`, which is no type of OpenCL C.
//!
//! Such a compiler still converts halves: `vload_half` and `vstore_half` belong to every OpenCL C. A number of `bf16` is the upper half
//! of a `float`. So numbers are kept as their bits, in memory and in registers, and converted around each operation. An operation on
//! `float` whose result is rounded to 16 bits gives what the operation on the short type would, since `float` has more than twice as
//! many digits. Copies convert nothing.

use super::types::{c_type, vector_suffix};
use crate::calculus::scalar::Lit;
use crate::kernel::ir::walk::{rebuild, rebuilt};
use crate::kernel::ir::{Block, ElemTy, Expr, MemArray, Program, Reg, Stmt, Update};
use crate::lang::typed::ScalarOp;
use crate::lang::types::ScalarType;

/// The type of the bits.
const BITS: ScalarType = ScalarType::U16;

/// Whether numbers of a type are kept as their bits. `halves` says that the device calculates with `f16`.
pub(super) fn is_kept(t: ScalarType, halves: bool) -> bool {
    t == ScalarType::BF16 || t == ScalarType::F16 && !halves
}

/// Whether one of two types is that of the bits of the other, so that nothing is converted between them.
pub(super) fn are_bits(a: ScalarType, b: ScalarType, halves: bool) -> bool {
    is_kept(a, halves) && b == BITS || is_kept(b, halves) && a == BITS
}

/// Returns a program that keeps these numbers as their bits.
pub(super) fn as_bits(program: &Program) -> Program {
    let mut out = program.clone();
    let kept = Kept { halves: program.halves };
    out.buffers.iter_mut().for_each(|b| kept.array(&mut b.array));
    out.scalars.iter_mut().for_each(|s| s.scalar = kept.bits(s.scalar));
    for k in &mut out.kernels {
        k.locals.iter_mut().chain(&mut k.privates).for_each(|a| kept.array(a));
        kept.block(&mut k.body);
    }
    out
}

/// The types that are kept as bits.
#[derive(Clone, Copy)]
struct Kept {
    halves: bool,
}

impl Kept {
    fn is(self, t: ElemTy) -> bool {
        is_kept(t.scalar, self.halves)
    }

    fn bits(self, t: ScalarType) -> ScalarType {
        if is_kept(t, self.halves) { BITS } else { t }
    }

    fn of_bits(self, t: ElemTy) -> ElemTy {
        ElemTy { scalar: self.bits(t.scalar), ..t }
    }

    fn array(self, a: &mut MemArray) {
        a.scalar = self.bits(a.scalar);
    }

    fn register(self, r: &mut Reg) {
        r.ty = self.of_bits(r.ty);
    }

    fn block(self, b: &mut Block) {
        for s in b {
            rebuild(s, &mut |e| self.expr(e));
            match s {
                Stmt::Decl(r, _)
                | Stmt::Set(r, _)
                | Stmt::Atomic(Update::Read(r) | Update::Swap(r), ..) => self.register(r),
                _ => {}
            }
            s.blocks_mut().into_iter().for_each(|b| self.block(b));
        }
    }

    /// Returns the expression whose value is the bits of this one, if its type is kept so, and the same value otherwise.
    fn expr(self, e: &Expr) -> Expr {
        if let Expr::Op(op, t, es) = e {
            return self.operation(*op, *t, es);
        }
        match rebuilt(e, &mut |e, _| self.expr(e)) {
            Expr::Lit(l) if is_kept(l.ty, self.halves) => Expr::Lit(Lit::int(BITS, l.bits.into())),
            Expr::Arg(k, t) => Expr::Arg(k, self.bits(t)),
            Expr::Reg(mut r) => {
                self.register(&mut r);
                Expr::Reg(r)
            }
            Expr::Index(i, t) if is_kept(t, self.halves) => {
                narrow(t, Expr::Index(i, ScalarType::F32))
            }
            Expr::Load(m, t, i) => Expr::Load(m, self.of_bits(t), i),
            e => e,
        }
    }

    fn operation(self, op: ScalarOp, t: ElemTy, es: &[Expr]) -> Expr {
        let from = es.first().map_or(t, Expr::ty);
        let parts = || es.iter().map(|e| self.expr(e)).collect::<Vec<_>>();
        let wide = |t: ElemTy| if self.is(t) { ElemTy { scalar: ScalarType::F32, ..t } } else { t };
        let wider = |e: &Expr| match e.ty() {
            t if self.is(t) => widen(t.scalar, self.expr(e)),
            _ => self.expr(e),
        };
        match op {
            ScalarOp::Select => Expr::Op(op, self.of_bits(t), parts()),
            // The bits are there.
            ScalarOp::Bits if self.is(t) || self.is(from) && self.of_bits(from) == t => {
                parts().swap_remove(0)
            }
            ScalarOp::Bits => Expr::Op(op, t, parts()),
            ScalarOp::OrderKey if self.is(from) => {
                let number = Expr::Op(ScalarOp::Bits, from, parts());
                Expr::Op(op, t, vec![number])
            }
            ScalarOp::Cast(_) if self.is(from) && from == t => parts().swap_remove(0),
            ScalarOp::Cast(_) if self.is(from) && wide(from) == t => {
                widen(from.scalar, parts().swap_remove(0))
            }
            // `f16` is rounded from `double` directly, and `bf16` from `float`.
            ScalarOp::Cast(_)
                if self.is(t) && t.scalar == ScalarType::F16 && from.scalar == ScalarType::F64 =>
            {
                narrow(t.scalar, parts().swap_remove(0))
            }
            ScalarOp::Cast(_) if self.is(t) && from.scalar == ScalarType::F32 => {
                narrow(t.scalar, parts().swap_remove(0))
            }
            ScalarOp::Cast(_) if self.is(t) && self.is(from) => {
                narrow(t.scalar, widen(from.scalar, parts().swap_remove(0)))
            }
            ScalarOp::Cast(_) if self.is(t) => {
                narrow(t.scalar, Expr::Op(ScalarOp::Cast(ScalarType::F32), wide(t), parts()))
            }
            _ => {
                let e = Expr::Op(op, wide(t), es.iter().map(wider).collect());
                if self.is(t) { narrow(t.scalar, e) } else { e }
            }
        }
    }
}

/// The number of type `of` with these bits, as a `float`.
fn widen(of: ScalarType, bits: Expr) -> Expr {
    let t = |scalar| ElemTy { scalar, ..bits.ty() };
    let (short, float) = (t(of), t(ScalarType::F32));
    let number = Expr::Op(ScalarOp::Bits, short, vec![bits]);
    Expr::Op(ScalarOp::Cast(ScalarType::F32), float, vec![number])
}

/// The bits of the number of type `to` that is nearest.
fn narrow(to: ScalarType, number: Expr) -> Expr {
    let t = |scalar| ElemTy { scalar, ..number.ty() };
    let (short, bits) = (t(to), t(BITS));
    let nearest = Expr::Op(ScalarOp::Cast(to), short, vec![number]);
    Expr::Op(ScalarOp::Bits, bits, vec![nearest])
}

/// The name of the function that converts between numbers kept as bits and others.
pub(super) fn function(from: ElemTy, to: ElemTy) -> String {
    let is_short = |t: ElemTy| matches!(t.scalar, ScalarType::F16 | ScalarType::BF16);
    let name = |t: ElemTy| match is_short(t) {
        true => c_type(ElemTy::scalar(t.scalar)),
        false => c_type(t),
    };
    let w = if is_short(to) { vector_suffix(to.width) } else { String::new() };
    format!("{}{w}_of_{}", name(to), name(from))
}

/// The function that converts between numbers kept as bits and others.
pub(super) fn definition(from: ElemTy, to: ElemTy) -> String {
    let (name, w) = (function(from, to), vector_suffix(to.width));
    let kept = Kept { halves: false };
    let (argument, result) = (c_type(kept.of_bits(from)), c_type(kept.of_bits(to)));
    let body = match (from.scalar, to.scalar) {
        (ScalarType::F16, _) => {
            format!("    return vload_half{w}(0, (private const half*)&x);\n")
        }
        (_, ScalarType::F16) => format!(
            "    {result} bits;\n    vstore_half{w}_rte(x, 0, (private half*)&bits);\n    return bits;\n"
        ),
        (ScalarType::BF16, _) => format!("    return as_{result}(convert_uint{w}(x) << 16);\n"),
        // To the nearest, of two that are as near to the even one. What is no number stays so.
        _ => format!(
            "    const uint{w} b = as_uint{w}(x);\n    \
             const uint{w} nearest = (b + 0x7fffu + ((b >> 16) & 1u)) >> 16;\n    \
             return convert_{result}(select(nearest, (b >> 16) | 0x40u, (b & 0x7fffffffu) > 0x7f800000u));\n"
        ),
    };
    format!("\n{result} {name}(const {argument} x) {{\n{body}}}\n")
}
