//! Counting sorts with many buckets as sorts by the digits of the bucket's number, the least first.
//!
//! A counting sort needs a counter for each bucket in each of its blocks. With hundreds of thousands of buckets, memory allows few
//! blocks, hence few work-items, and the counters of a block do not fit in local memory. `countingSort k is xs` becomes
//!
//! ```text
//! let ds = map (clamp 0 (k - 1)) is
//! let (ds, xs) = (countingSort 2^b (map (digit 0) ds) (zip ds xs)).1
//! ...
//! (histogram (+) 0 k ds 1, (countingSort 2^b (map (digit p) ds) xs).1)
//! ```
//!
//! The elements move once for each digit, but in all work-items. One work-item, or a few, may still be faster where caches are large. So this is
//! another form of a program, and the cost model decides.

use super::core::{Ex, Kind, Lambda, Layout, Var};
use super::interchange::named;
use crate::calculus::scalar::Lit;
use crate::calculus::size::{Size, SizeEnv};
use crate::calculus::ty::Ty;
use crate::lang::typed::{Prim, ScalarOp};
use crate::lang::types::ScalarType;

/// A digit has at most so many bits: a group keeps tables of the buckets in local memory, where 1024 buckets leave room for few
/// groups, and looks for each bucket in each tile. So two passes by five bits take less time than one by ten.
const BITS_OF_DIGIT: u32 = 8;

/// Returns the program with all sorts of many buckets by digits; `None` if there are none. A sort in a function belongs to one
/// work-item.
pub(super) fn sorts_by_digits(e: &Ex, env: &SizeEnv, fresh: &mut dyn FnMut() -> Var) -> Option<Ex> {
    let (mut out, mut digits) = (e.clone(), Digits { env, fresh });
    out.change_outside_functions(&mut |e| digits.by_digits(e)).then_some(out)
}

pub(super) struct Digits<'a> {
    pub(super) env: &'a SizeEnv,
    pub(super) fresh: &'a mut dyn FnMut() -> Var,
}

impl Digits<'_> {
    fn by_digits(&mut self, e: &Ex) -> Option<Ex> {
        let Kind::Prim(Prim::CountingSort, _, sizes, args) = &e.kind else { return None };
        let ([k], [is, xs]) = (&sizes[..], &args[..]) else { return None };
        let Ty::Pair(counts, sorted) = &e.ty else { return None };
        let buckets = k.eval(self.env).ok()?;
        let bits = u64::BITS - buckets.saturating_sub(1).leading_zeros();
        if bits <= BITS_OF_DIGIT || bits > i32::BITS - 1 {
            return None;
        }
        let span = e.span;
        let ds = self.clamped(is, buckets)?;
        let whole = named(&ds.ty, self.fresh);
        let mut lets = vec![(whole.clone(), ds)];
        let (_, elements) = self.sorted(whole.value(span), xs.clone(), bits, false, &mut lets)?;
        debug_assert_eq!(elements.ty, **sorted);
        let counted = self.counted(k, counts, &whole.value(span))?;
        let out = Ex::pair(counted, elements);
        Some(out.after(lets))
    }

    /// Returns numbers of so many bits, and elements, both in the order of the numbers. Equal numbers keep their order. The steps
    /// of the sort are added to `lets`. Unless `both` is set, the numbers that are returned are not those of the elements.
    pub(super) fn sorted(
        &mut self,
        mut numbers: Ex,
        mut elements: Ex,
        bits: u32,
        both: bool,
        lets: &mut Vec<(Layout, Ex)>,
    ) -> Option<(Ex, Ex)> {
        let rounds = bits.div_ceil(BITS_OF_DIGIT).max(1);
        let (width, span) = (bits.div_ceil(rounds), elements.span);
        for round in 0..rounds {
            let digits = self.digit(&numbers, round * width, width)?;
            if round + 1 == rounds && !both {
                elements = sort(width, digits, elements)?;
                break;
            }
            let moved = sort(width, digits, numbers.zip(elements)?)?;
            let name = named(&moved.ty, self.fresh);
            numbers = self.component(&name.value(span), false)?;
            elements = self.component(&name.value(span), true)?;
            lets.push((name, moved));
        }
        Some((numbers, elements))
    }

    /// Returns the numbers of the buckets as unsigned numbers that are in range.
    fn clamped(&mut self, is: &Ex, buckets: u64) -> Option<Ex> {
        let ty = is.element_type()?;
        let Ty::Scalar(t) = ty else { return None };
        let (last, span) = (i128::from(buckets) - 1, is.span);
        let i = named(&ty, self.fresh);
        let mut value = i.value(span);
        let mut limit = |op, n| {
            let n = Ex::new(Kind::Lit(Lit::int(t, n)), ty.clone(), span);
            value = Ex::new(Kind::Op(op, vec![value.clone(), n]), ty.clone(), span);
        };
        if t.is_signed() {
            limit(ScalarOp::Max, 0);
        }
        // If the type cannot hold the last bucket, its values are all below it.
        if Lit::int(t, last).as_int() == Some(last) {
            limit(ScalarOp::Min, last);
        }
        let word = ScalarType::U32;
        if t != word {
            value = Ex::new(Kind::Op(ScalarOp::Cast(word), vec![value]), Ty::Scalar(word), span);
        }
        Ex::map_of(value, [(&i, is)], self.fresh)
    }

    /// Returns the digit of each number that begins at a bit.
    fn digit(&mut self, numbers: &Ex, from: u32, width: u32) -> Option<Ex> {
        let (ty, span) = (numbers.element_type()?, numbers.span);
        let i = named(&ty, self.fresh);
        let word = |n: i128| Ex::new(Kind::Lit(Lit::int(ScalarType::U32, n)), ty.clone(), span);
        let op = |op, a, n| Ex::new(Kind::Op(op, vec![a, word(n)]), ty.clone(), span);
        let shifted = op(ScalarOp::Shr, i.value(span), i128::from(from));
        let digit = op(ScalarOp::BitAnd, shifted, (1 << width) - 1);
        Ex::map_of(digit, [(&i, numbers)], self.fresh)
    }

    /// Returns one component of the elements of an array of pairs.
    pub(super) fn component(&mut self, pairs: &Ex, second: bool) -> Option<Ex> {
        let pair = named(&pairs.element_type()?, self.fresh);
        Ex::map_of(pair.value(pairs.span).proj(second)?, [(&pair, pairs)], self.fresh)
    }

    /// Returns how many of the numbers are each of the `k` first numbers.
    fn counted(&mut self, k: &Size, counts: &Ty, numbers: &Ex) -> Option<Ex> {
        let Ty::Array(_, count) = counts else { return None };
        let Ty::Scalar(t) = **count else { return None };
        let span = numbers.span;
        let lit = |n| Ex::new(Kind::Lit(Lit::int(t, n)), Ty::Scalar(t), span);
        let (a, b) = (named(count, self.fresh), named(count, self.fresh));
        let sum = Kind::Op(ScalarOp::Add, vec![a.value(span), b.value(span)]);
        let body = Box::new(Ex::new(sum, (**count).clone(), span));
        let n = numbers.length()?;
        let ones = Kind::Prim(Prim::Replicate, vec![], vec![n.clone()], vec![lit(1)]);
        let ones = Ex::new(ones, Ty::array(n, count), span);
        let args = vec![lit(0), numbers.clone(), ones];
        let add = Lambda { params: vec![a, b], body };
        let histogram = Kind::Prim(Prim::Histogram, vec![add], vec![k.clone()], args);
        Some(Ex::new(histogram, counts.clone(), span))
    }
}

/// Returns the elements in the order of their digits of `width` bits.
fn sort(width: u32, digits: Ex, elements: Ex) -> Option<Ex> {
    let (buckets, span) = (Size::constant(1 << width), elements.span);
    let counts = Ty::array(&buckets, &digits.element_type()?);
    let ty = Ty::pair(&counts, &elements.ty);
    let kind = Kind::Prim(Prim::CountingSort, vec![], vec![buckets], vec![digits, elements]);
    Ex::new(kind, ty, span).proj(true)
}
