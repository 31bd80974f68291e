//! Half precision on devices whose compiler does not calculate with it (`cl_khr_fp16`).
//!
//! Such a compiler still converts: `vload_half` and `vstore_half` belong to every OpenCL C. So numbers are kept as their
//! bits, in memory and in registers, and converted around each operation. An operation on `float` whose result is rounded
//! to `f16` gives what the operation on `f16` would, since `float` has more than twice as many digits. Copies convert nothing.

use super::types::{c_type, vector_suffix};
use crate::calculus::scalar::Lit;
use crate::kernel::ir::walk::{rebuild, rebuilt};
use crate::kernel::ir::{Block, ElemTy, Expr, MemArray, Program, Reg, Stmt, Update};
use crate::lang::typed::ScalarOp;
use crate::lang::types::ScalarType;

/// The type of the bits.
const BITS: ScalarType = ScalarType::U16;

/// Returns a program that keeps numbers of half precision as their bits.
pub(super) fn as_bits(program: &Program) -> Program {
    let mut out = program.clone();
    out.buffers.iter_mut().for_each(|b| array(&mut b.array));
    out.scalars.iter_mut().for_each(|s| s.scalar = bits(s.scalar));
    for k in &mut out.kernels {
        k.locals.iter_mut().chain(&mut k.privates).for_each(array);
        block(&mut k.body);
    }
    out
}

fn bits(t: ScalarType) -> ScalarType {
    if t == ScalarType::F16 { BITS } else { t }
}

fn of_bits(t: ElemTy) -> ElemTy {
    ElemTy { scalar: bits(t.scalar), ..t }
}

fn array(a: &mut MemArray) {
    a.scalar = bits(a.scalar);
}

fn register(r: &mut Reg) {
    r.ty = of_bits(r.ty);
}

fn block(b: &mut Block) {
    for s in b {
        rebuild(s, &mut expr);
        match s {
            Stmt::Decl(r, _)
            | Stmt::Set(r, _)
            | Stmt::Atomic(Update::Read(r) | Update::Swap(r), ..) => register(r),
            _ => {}
        }
        s.blocks_mut().into_iter().for_each(block);
    }
}

/// Returns the expression whose value is the bits of this one, if it has half precision, and the same value otherwise.
fn expr(e: &Expr) -> Expr {
    if let Expr::Op(op, t, es) = e {
        return operation(*op, *t, es);
    }
    match rebuilt(e, &mut |e, _| expr(e)) {
        Expr::Lit(l) if l.ty == ScalarType::F16 => Expr::Lit(Lit::int(BITS, l.bits.into())),
        Expr::Arg(k, t) => Expr::Arg(k, bits(t)),
        Expr::Reg(mut r) => {
            register(&mut r);
            Expr::Reg(r)
        }
        Expr::Index(i, ScalarType::F16) => narrow(Expr::Index(i, ScalarType::F32)),
        Expr::Load(m, t, i) => Expr::Load(m, of_bits(t), i),
        e => e,
    }
}

fn operation(op: ScalarOp, t: ElemTy, es: &[Expr]) -> Expr {
    let is_half = |t: ElemTy| t.scalar == ScalarType::F16;
    let from = es.first().map_or(t, Expr::ty);
    let parts = || es.iter().map(expr).collect::<Vec<_>>();
    let wide = |t: ElemTy| if is_half(t) { ElemTy { scalar: ScalarType::F32, ..t } } else { t };
    let wider = |e: &Expr| if is_half(e.ty()) { widen(expr(e)) } else { expr(e) };
    match op {
        ScalarOp::Select => Expr::Op(op, of_bits(t), parts()),
        // The bits are there.
        ScalarOp::Bits if is_half(t) || is_half(from) && of_bits(from) == t => {
            parts().swap_remove(0)
        }
        ScalarOp::Bits => Expr::Op(op, t, parts()),
        ScalarOp::OrderKey if is_half(from) => {
            let number = Expr::Op(ScalarOp::Bits, from, parts());
            Expr::Op(op, t, vec![number])
        }
        ScalarOp::Cast(_) if is_half(from) && is_half(t) => parts().swap_remove(0),
        ScalarOp::Cast(_) if is_half(from) && wide(from) == t => widen(parts().swap_remove(0)),
        ScalarOp::Cast(_) if is_half(t) => match from.scalar {
            ScalarType::F32 | ScalarType::F64 => narrow(parts().swap_remove(0)),
            _ => narrow(Expr::Op(ScalarOp::Cast(ScalarType::F32), wide(t), parts())),
        },
        _ => {
            let e = Expr::Op(op, wide(t), es.iter().map(wider).collect());
            if is_half(t) { narrow(e) } else { e }
        }
    }
}

/// The number with these bits, as a `float`.
fn widen(bits: Expr) -> Expr {
    let t = |scalar| ElemTy { scalar, ..bits.ty() };
    let (half, float) = (t(ScalarType::F16), t(ScalarType::F32));
    let number = Expr::Op(ScalarOp::Bits, half, vec![bits]);
    Expr::Op(ScalarOp::Cast(ScalarType::F32), float, vec![number])
}

/// The bits of the number of half precision that is nearest.
fn narrow(number: Expr) -> Expr {
    let t = |scalar| ElemTy { scalar, ..number.ty() };
    let (half, bits) = (t(ScalarType::F16), t(BITS));
    let nearest = Expr::Op(ScalarOp::Cast(ScalarType::F16), half, vec![number]);
    Expr::Op(ScalarOp::Bits, bits, vec![nearest])
}

/// The name of the function that converts between numbers of half precision, as bits, and others.
pub(super) fn function(from: ElemTy, to: ElemTy) -> String {
    let name = |t: ElemTy| if t.scalar == ScalarType::F16 { "half".into() } else { c_type(t) };
    let w = if to.scalar == ScalarType::F16 { vector_suffix(to.width) } else { String::new() };
    format!("{}{w}_of_{}", name(to), name(from))
}

/// The function that converts between numbers of half precision, as bits, and others.
pub(super) fn definition(from: ElemTy, to: ElemTy) -> String {
    let (name, w) = (function(from, to), vector_suffix(to.width));
    let (argument, result) = (c_type(of_bits(from)), c_type(of_bits(to)));
    if from.scalar == ScalarType::F16 {
        return format!(
            "\n{result} {name}(const {argument} x) {{\n    \
             return vload_half{w}(0, (private const half*)&x);\n}}\n"
        );
    }
    format!(
        "\n{result} {name}(const {argument} x) {{\n    {result} bits;\n    \
         vstore_half{w}_rte(x, 0, (private half*)&bits);\n    return bits;\n}}\n"
    )
}
