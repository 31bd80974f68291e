//! Values that are copies of memory, as they are.

use super::facts::Guard;
use super::index::Index;
use super::{ElemTy, Expr, Mem, MemArray};
use crate::lang::typed::ScalarOp;

/// A load whose bits are stored elsewhere.
#[derive(Debug)]
pub struct Copied<'a> {
    pub from: Mem,
    /// The type that is loaded: 4, 8 or 16 bytes.
    pub t: ElemTy,
    pub at: &'a Index,
    /// The value is zero where this does not hold.
    pub guard: Option<&'a Guard>,
}

impl Copied<'_> {
    /// The load that a value is, if it is one of as many bytes as devices copy at once.
    pub fn of(e: &Expr) -> Option<Copied<'_>> {
        match e {
            Expr::Load(from, t, at) if matches!(t.bytes(), 4 | 8 | 16) => {
                Some(Copied { from: *from, t: *t, at, guard: None })
            }
            Expr::Op(ScalarOp::Bits, t, args) => match &args[..] {
                [e] if e.ty().bytes() == t.bytes() => Copied::of(e),
                _ => None,
            },
            Expr::Guarded(g, e, other) if is_zero(other) => {
                Copied::of(e).filter(|c| c.guard.is_none()).map(|c| Copied { guard: Some(g), ..c })
            }
            _ => None,
        }
    }

    /// The load from global memory of which a store to an array of the group is a copy that may arrive late.
    pub fn late<'a>(locals: &[MemArray], m: Mem, e: &'a Expr) -> Option<Copied<'a>> {
        let Mem::Local(a) = m else { return None };
        let copied = locals.get(a).filter(|a| a.ahead > 0).and_then(|_| Copied::of(e))?;
        matches!(copied.from, Mem::Global(_)).then_some(copied)
    }
}

/// Whether all bits of a value are zero.
fn is_zero(e: &Expr) -> bool {
    match e {
        Expr::Lit(l) => l.bits == 0,
        Expr::Splat(e, _) => is_zero(e),
        Expr::Vector(es) => es.iter().all(is_zero),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calculus::scalar::Lit;
    use crate::kernel::ir::testing::var;
    use crate::lang::types::ScalarType;

    #[test]
    fn copies_are_loads_or_zeros() {
        let t = ElemTy { scalar: ScalarType::F16, width: 8 };
        let load = |t| Expr::Load(Mem::Global(0), t, var(0, 8).times(8));
        let words = ElemTy { scalar: ScalarType::U32, width: 4 };
        let bits = Expr::Op(ScalarOp::Bits, words, vec![load(t)]);
        let copied = Copied::of(&bits).expect("a copy");
        assert_eq!((copied.t, copied.guard), (t, None));
        let (guard, zero) = (Guard::less(&var(0, 8), &Index::from(5)), |n: i128| {
            Expr::Lit(Lit::int(ScalarType::U32, n)).widen(4)
        });
        let guarded =
            |other| Expr::Guarded(guard.clone(), bits.clone().into(), std::sync::Arc::new(other));
        assert_eq!(Copied::of(&guarded(zero(0))).and_then(|c| c.guard), Some(&guard));
        assert!(Copied::of(&guarded(zero(1))).is_none());
        // A number that is converted, and a single half.
        let wide = Expr::Op(
            ScalarOp::Cast(ScalarType::F32),
            ElemTy { scalar: ScalarType::F32, ..t },
            vec![load(t)],
        );
        assert!(Copied::of(&wide).is_none());
        assert!(Copied::of(&load(ElemTy::scalar(ScalarType::F16))).is_none());
    }
}
