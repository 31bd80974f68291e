//! Histograms by sorting, where the operator has no atomic operation for each component of a value.
//!
//! `histogram op z m is xs` becomes
//!
//! ```text
//! let ds = map (\\i -> if 0 <= i && i < m then i else m) is
//! let (ds, xs) = both in the order of ds, by its digits
//! let starts = map (\\j -> j == 0 || ds[j] != ds[j - 1]) (iota n)
//! let sums = (scan (\\(f, x) (g, y) -> (f || g, if g then y else op x y)) (false, z) (zip starts xs)).1
//! scatter (replicate m z) (map (\\j -> if j == n - 1 || ds[j] != ds[j + 1] then ds[j] else m) (iota n)) sums
//! ```
//!
//! The sort keeps the order of the elements of a bin, so the operator need not commute. The work does not depend on how the
//! elements are spread over the bins, and no work-item changes what another one changes. Bins that work-items share take
//! fewer passes over the elements, where a device can combine values in them. So this is another form of a program, and the
//! cost model decides.

use super::core::{Ex, Kind, Lambda, Layout, Var, Vars};
use super::digits::Digits;
use super::interchange::named;
use crate::calculus::scalar::Lit;
use crate::calculus::size::{Size, SizeEnv};
use crate::calculus::ty::Ty;
use crate::lang::typed::{Prim, ScalarOp, ScanKind};
use crate::lang::types::ScalarType;

/// So many elements take less time in any other way than the launches of a sort.
const FEW: u64 = 1024;

/// The type of the numbers of bins.
const NUMBER: ScalarType = ScalarType::U32;

/// Returns the program with such histograms sorted; `None` if there are none. A histogram in a function belongs to a work-item or a
/// group.
pub(super) fn histograms(e: &Ex, env: &SizeEnv, fresh: &mut dyn FnMut() -> Var) -> Option<Ex> {
    let (mut out, mut by_sort) = (e.clone(), BySort { env, fresh });
    out.change_outside_functions(&mut |e| by_sort.histogram(e)).then_some(out)
}

struct BySort<'a> {
    env: &'a SizeEnv,
    fresh: &'a mut dyn FnMut() -> Var,
}

impl BySort<'_> {
    fn histogram(&mut self, e: &Ex) -> Option<Ex> {
        let Kind::Prim(Prim::Histogram, funs, _, args) = &e.kind else { return None };
        let ([op], [z, is, xs]) = (&funs[..], &args[..]) else { return None };
        let Ty::Array(m, t) = &e.ty else { return None };
        bytes(t)?;
        let closed = z.free().is_empty() && op.captures() == Vars::new();
        if !closed || has_operations(op) {
            return None;
        }
        let bins = m.eval(self.env).ok()?;
        // Numbers of bins are the numbers up to `m`, which stands for none.
        let bits = u64::BITS - bins.leading_zeros();
        let (span, n) = (e.span, xs.length()?.clone());
        // Places are compared with lengths as numbers of 32 bits.
        let count = n.eval(self.env).ok()?;
        if bins == 0 || bits > i32::BITS - 1 || count <= FEW || i32::try_from(count).is_err() {
            return None;
        }
        let numbers = self.numbers(is, m, bins)?;
        let name = named(&numbers.ty, self.fresh);
        let mut lets = vec![(name.clone(), numbers)];
        let numbers = name.value(span);
        let (sorted, values) = moved(xs)?;
        let mut digits = Digits { env: self.env, fresh: &mut *self.fresh };
        let (numbers, sorted) = digits.sorted(numbers, sorted, bits, true, &mut lets)?;
        let xs = match values {
            Some(f) => self.applied(f, sorted, xs)?,
            None => sorted,
        };
        let (starts, places) = self.ends(&numbers, &n, m)?;
        let sums = self.scanned(op, z, starts, xs)?;
        let none = Ex::new(
            Kind::Prim(Prim::Replicate, vec![], vec![m.clone()], vec![z.clone()]),
            e.ty.clone(),
            span,
        );
        let scatter = Kind::Prim(Prim::Scatter, vec![], vec![], vec![none, places, sums]);
        let out = Ex::new(scatter, e.ty.clone(), span);
        Some(out.after(lets))
    }

    /// Returns the number of the bin of each element; `m` for an element without a bin.
    fn numbers(&mut self, is: &Ex, m: &Size, bins: u64) -> Option<Ex> {
        let ty = is.element_type()?;
        let Ty::Scalar(t) = ty else { return None };
        let span = is.span;
        let i = named(&ty, self.fresh);
        let own = i.value(span);
        let mut number = match t {
            NUMBER => own.clone(),
            _ => Ex::op(ScalarOp::Cast(NUMBER), vec![own.clone()], NUMBER, span),
        };
        let none = || Ex::new(Kind::Size(m.clone()), Ty::Scalar(NUMBER), span);
        let test = |of, n| {
            let n = Ex::new(Kind::Lit(Lit::int(t, n)), ty.clone(), span);
            Ex::op(of, vec![own.clone(), n], ScalarType::Bool, span)
        };
        // If the type cannot hold the number of bins, its values are all below it.
        if Lit::int(t, i128::from(bins)).as_int() == Some(i128::from(bins)) {
            number = Ex::choice(test(ScalarOp::Lt, i128::from(bins)), number, none());
        }
        if t.is_signed() {
            number = Ex::choice(test(ScalarOp::Ge, 0), number, none());
        }
        Ex::map_of(number, [(&i, is)], self.fresh)
    }

    /// Returns a function of several parameters, mapped over tuples.
    fn applied(&mut self, f: Lambda, tuples: Ex, like: &Ex) -> Option<Ex> {
        let mut body = *f.body;
        let params: Vec<Layout> =
            f.params.iter().map(|p| p.renamed(&mut body, self.fresh)).collect();
        let param = params
            .into_iter()
            .rev()
            .reduce(|rest, first| Layout::Pair(Box::new(first), Box::new(rest)))?;
        let f = Lambda { params: vec![param], body: Box::new(body) };
        Some(Ex::new(Kind::Map(Prim::Map, f, vec![tuples]), like.ty.clone(), like.span))
    }

    /// Returns, for numbers in order, whether a run of equal ones begins at each, and the number where a run ends and `m` elsewhere.
    fn ends(&mut self, numbers: &Ex, n: &Size, m: &Size) -> Option<(Ex, Ex)> {
        let (ty, span) = (numbers.ty.clone(), numbers.span);
        let view = |prim, sizes, xs: Ex| {
            Ex::new(Kind::Prim(prim, vec![], sizes, vec![xs]), ty.clone(), span)
        };
        let one = || vec![Size::constant(1)];
        let after = view(Prim::Rotate, one(), numbers.clone());
        let turned = view(Prim::Reverse, vec![], numbers.clone());
        let before = view(Prim::Reverse, vec![], view(Prim::Rotate, one(), turned));
        let index = Ty::Scalar(ScalarType::I32);
        let places = Ex::iota(n, &index, span);
        let number = Ty::Scalar(NUMBER);
        let (j, d, other) =
            (named(&index, self.fresh), named(&number, self.fresh), named(&number, self.fresh));
        let is = |of, a: Ex, b: Ex| Ex::op(of, vec![a, b], ScalarType::Bool, span);
        let apart = is(ScalarOp::Ne, d.value(span), other.value(span));
        let first = Ex::new(Kind::Lit(Lit::int(ScalarType::I32, 0)), index.clone(), span);
        let is_first = is(ScalarOp::Eq, j.value(span), first);
        let one = Ex::new(Kind::Lit(Lit::int(ScalarType::I32, 1)), index.clone(), span);
        let length = Ex::new(Kind::Size(n.clone()), index, span);
        let next = Ex::op(ScalarOp::Add, vec![j.value(span), one], ScalarType::I32, span);
        let is_last = is(ScalarOp::Eq, next, length);
        let starts = is(ScalarOp::Or, is_first, apart.clone());
        let starts =
            Ex::map_of(starts, [(&j, &places), (&d, numbers), (&other, &before)], self.fresh)?;
        let none = Ex::new(Kind::Size(m.clone()), number, span);
        let place = Ex::choice(is(ScalarOp::Or, is_last, apart), d.value(span), none);
        let ends = Ex::map_of(place, [(&j, &places), (&d, numbers), (&other, &after)], self.fresh)?;
        Some((starts, ends))
    }

    /// Returns the elements combined from the last start on.
    fn scanned(&mut self, f: &Lambda, z: &Ex, starts: Ex, xs: Ex) -> Option<Ex> {
        let span = xs.span;
        let [x, y] = &f.params[..] else { return None };
        let mut body = (*f.body).clone();
        let (x, y) = (x.renamed(&mut body, self.fresh), y.renamed(&mut body, self.fresh));
        let flag = Ty::Scalar(ScalarType::Bool);
        let (before, here) = (named(&flag, self.fresh), named(&flag, self.fresh));
        let either = vec![before.value(span), here.value(span)];
        let either = Ex::op(ScalarOp::Or, either, ScalarType::Bool, span);
        let combined = Ex::choice(here.value(span), y.value(span), body);
        let flagged = |flag, x| Layout::Pair(Box::new(flag), Box::new(x));
        let step = Lambda {
            params: vec![flagged(before, x), flagged(here, y)],
            body: Box::new(Ex::pair(either, combined)),
        };
        let start = Ex::new(Kind::Lit(Lit::int(ScalarType::Bool, 0)), flag, span);
        let elements = starts.zip(xs)?;
        let ty = elements.ty.clone();
        let args = vec![Ex::pair(start, z.clone()), elements];
        let scan = Kind::Prim(Prim::Scan(ScanKind::Assoc), vec![step], vec![], args);
        Digits { env: self.env, fresh: &mut *self.fresh }.component(&Ex::new(scan, ty, span), true)
    }
}

/// Returns what is sorted in place of the values: the arrays that a map computes them from, if their elements are smaller
/// than the values, with the function of the map.
fn moved(xs: &Ex) -> Option<(Ex, Option<Lambda>)> {
    let wide = bytes(&xs.element_type()?)?;
    if let Kind::Map(Prim::Map, f, args) = &xs.kind {
        let of = |a: &Ex| bytes(&a.element_type()?);
        let narrow = args.iter().map(of).sum::<Option<usize>>();
        if narrow.is_some_and(|narrow| narrow < wide) {
            let all = args.iter().rev().cloned().map(Some);
            let zipped = all.reduce(|rest, first| first?.zip(rest?))?;
            return Some((zipped?, Some(f.clone())));
        }
    }
    Some((xs.clone(), None))
}

/// Returns the bytes of a value; `None` if it has arrays.
pub(super) fn bytes(t: &Ty) -> Option<usize> {
    match t {
        Ty::Scalar(t) => Some(t.bytes()),
        Ty::Pair(a, b) => Some(bytes(a)? + bytes(b)?),
        _ => None,
    }
}

/// Whether an operator combines each component of its arguments by an operation that devices may have as an atomic one.
fn has_operations(f: &Lambda) -> bool {
    use ScalarOp::{Add, BitAnd, BitOr, BitXor, Max, Min};
    fn of(e: &Ex, x: &Ex, y: &Ex) -> bool {
        match &e.kind {
            Kind::Pair(a, b) => [(a, false), (b, true)].into_iter().all(|(e, second)| {
                let side = |v: &Ex| v.clone().proj(second);
                side(x).zip(side(y)).is_some_and(|(x, y)| of(e, &x, &y))
            }),
            Kind::Op(Add | Min | Max | BitAnd | BitOr | BitXor, args) => {
                args[..] == [x.clone(), y.clone()] || args[..] == [y.clone(), x.clone()]
            }
            _ => false,
        }
    }
    let [x, y] = &f.params[..] else { return false };
    let span = f.body.span;
    of(&f.body, &x.value(span), &y.value(span))
}
