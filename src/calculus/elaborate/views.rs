//! Arrays that only rearrange others, and elements of arrays.
//!
//! The functions return `None` if their argument is no array, or has too few dimensions.

use super::core::{Ex, Kind};
use crate::calculus::scalar::Lit;
use crate::calculus::size::{Size, SizeEnv};
use crate::calculus::ty::Ty;
use crate::diag::Span;
use crate::lang::typed::{PadMode, Prim, ScalarOp};
use crate::lang::types::ScalarType;

/// Returns the type of places in an array of this length.
pub(super) fn place_in(n: &Size, env: &SizeEnv) -> Ty {
    let long = n.eval(env).is_ok_and(|n| i32::try_from(n).is_err());
    Ty::Scalar(if long { ScalarType::I64 } else { ScalarType::I32 })
}

impl Ex {
    /// Returns the numbers below `n`, of type `t`.
    pub(super) fn iota(n: &Size, t: &Ty, span: Span) -> Ex {
        let kind = Kind::Prim(Prim::Iota, vec![], vec![n.clone()], vec![]);
        Ex::new(kind, Ty::array(n, t), span)
    }

    /// Returns an array of `n` times the same element.
    pub(super) fn replicate(self, n: &Size) -> Ex {
        let ty = Ty::array(n, &self.ty);
        self.rearranged(Prim::Replicate, vec![n.clone()], ty)
    }

    /// Returns the pairs of the elements of two arrays of one length.
    pub(super) fn zip(self, other: Ex) -> Option<Ex> {
        let span = self.span.to(other.span);
        let pair = Ty::pair(&self.element_type()?, &other.element_type()?);
        let ty = Ty::array(self.length()?, &pair);
        Some(Ex::new(Kind::Prim(Prim::Zip, vec![], vec![], vec![self, other]), ty, span))
    }

    /// Returns an array of arrays as one array.
    pub(super) fn join(self) -> Option<Ex> {
        let (n, m, t) = self.two_dimensions()?;
        Some(self.rearranged(Prim::Join, vec![], Ty::array(&n.mul(&m), &t)))
    }

    /// Returns the columns of an array of rows.
    pub(super) fn transpose(self) -> Option<Ex> {
        let (n, m, t) = self.two_dimensions()?;
        Some(self.rearranged(Prim::Transpose, vec![], Ty::array(&m, &Ty::array(&n, &t))))
    }

    /// Returns an array as `n` rows of `m` elements.
    pub(super) fn split(self, n: &Size, m: &Size) -> Option<Ex> {
        let t = self.element_type()?;
        Some(self.rearranged(Prim::Split, vec![m.clone()], Ty::array(n, &Ty::array(m, &t))))
    }

    /// Returns the first `n` elements.
    pub(super) fn take(self, n: &Size) -> Option<Ex> {
        let t = self.element_type()?;
        Some(self.rearranged(Prim::Take, vec![n.clone()], Ty::array(n, &t)))
    }

    /// Returns the last `n` elements.
    pub(super) fn drop(self, n: &Size) -> Option<Ex> {
        let t = self.element_type()?;
        Some(self.rearranged(Prim::Drop, vec![], Ty::array(n, &t)))
    }

    /// Returns the elements with `left` and `right` more before and behind them, which hold a literal everywhere.
    pub(super) fn with_border(
        self,
        left: u64,
        right: u64,
        border: &Ex,
        env: &SizeEnv,
    ) -> Option<Ex> {
        let n = left.checked_add(right)?.checked_add(self.length()?.eval(env).ok()?)?;
        let of = self.element_type()?;
        let mut lengths = vec![];
        let mut t = &of;
        while let Ty::Array(n, row) = t {
            lengths.push(n.clone());
            t = row;
        }
        let value = lengths.iter().rev().fold(border.clone(), Ex::replicate);
        let (ty, span) = (Ty::array(&Size::constant(n), &of), self.span);
        let sizes = [left, right].map(Size::constant).to_vec();
        let kind = Kind::Prim(Prim::Pad(PadMode::Constant), vec![], sizes, vec![self, value]);
        Some(Ex::new(kind, ty, span))
    }

    /// Returns the elements in the opposite order.
    pub(super) fn reverse(self) -> Option<Ex> {
        self.element_type()?;
        let ty = self.ty.clone();
        Some(self.rearranged(Prim::Reverse, vec![], ty))
    }

    /// Returns the elements of two arrays one after the other, `n` elements in all.
    pub(super) fn concat(self, other: Ex, n: &Size) -> Option<Ex> {
        let (ty, span) = (Ty::array(n, &self.element_type()?), self.span.to(other.span));
        Some(Ex::new(Kind::Prim(Prim::Concat, vec![], vec![], vec![self, other]), ty, span))
    }

    /// Returns the `n` windows of `width` elements that begin every `step` elements.
    pub(super) fn slide(self, width: &Size, step: u64, n: &Size) -> Option<Ex> {
        let t = self.element_type()?;
        let sizes = vec![width.clone(), Size::constant(step)];
        Some(self.rearranged(Prim::Slide, sizes, Ty::array(n, &Ty::array(width, &t))))
    }

    /// Returns the element at a place.
    pub(super) fn element(&self, at: &Ex) -> Option<Ex> {
        let kind = Kind::Index(Box::new(self.clone()), Box::new(at.clone()));
        Some(Ex::new(kind, self.element_type()?, self.span))
    }

    /// Returns a number of the type of this one.
    pub(super) fn number(&self, k: u64) -> Option<Ex> {
        let Ty::Scalar(t) = self.ty else { return None };
        Some(Ex::new(Kind::Lit(Lit::int(t, k.into())), self.ty.clone(), self.span))
    }

    /// Returns a place that is `k` further on.
    pub(super) fn further(&self, k: u64) -> Option<Ex> {
        if k == 0 {
            return Some(self.clone());
        }
        let kind = Kind::Op(ScalarOp::Add, vec![self.clone(), self.number(k)?]);
        Some(Ex::new(kind, self.ty.clone(), self.span))
    }

    /// Returns the type of an array's elements.
    pub(super) fn element_type(&self) -> Option<Ty> {
        match &self.ty {
            Ty::Array(_, t) => Some((**t).clone()),
            _ => None,
        }
    }

    /// Returns the length of an array.
    pub(super) fn length(&self) -> Option<&Size> {
        match &self.ty {
            Ty::Array(n, _) => Some(n),
            _ => None,
        }
    }

    fn two_dimensions(&self) -> Option<(Size, Size, Ty)> {
        let Ty::Array(n, row) = &self.ty else { return None };
        let Ty::Array(m, t) = &**row else { return None };
        Some((n.clone(), m.clone(), (**t).clone()))
    }

    fn rearranged(self, prim: Prim, sizes: Vec<Size>, ty: Ty) -> Ex {
        let span = self.span;
        Ex::new(Kind::Prim(prim, vec![], sizes, vec![self]), ty, span)
    }
}
