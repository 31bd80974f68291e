//! Arrays of all values that an expression by counters has: the operands of a contraction.
//!
//! A read whose places are sums of counters is a view: `x[c][i + d]` at all `i`, `c` and `d` is the transposition of the windows of
//! the rows of `x`. Anything else is computed, by maps over the counters.

use super::super::core::{Ex, Kind, Lambda, Layout, Var, Vars};
use super::counters::{Affine, Axis, affine};
use crate::calculus::size::{Size, SizeEnv};
use crate::calculus::ty::Ty;
use crate::lang::typed::Prim;

/// Builds arrays.
pub(super) struct Operands<'a> {
    pub(super) env: &'a SizeEnv,
    pub(super) fresh: &'a mut dyn FnMut() -> Var,
}

/// A function on arrays.
type OnArray<'f> = &'f mut dyn FnMut(&mut Operands, Ex) -> Option<Ex>;

impl Operands<'_> {
    /// Returns the array of the values of a scalar expression, with a dimension for each axis, in order.
    pub(super) fn array(&mut self, e: &Ex, axes: &[&Axis]) -> Option<Ex> {
        let padded = self.padded(e, axes).and_then(|e| self.windows(&e, axes));
        padded.or_else(|| self.windows(e, axes)).or_else(|| self.computed(e, axes))
    }

    /// Whether an expression is a read within the arrays at all counters, or a counter.
    pub(super) fn in_range(&self, e: &Ex, axes: &[Axis]) -> bool {
        let counters: Vars = axes.iter().map(|a| a.counter).collect();
        match &e.kind {
            Kind::Index(array, at) => {
                let place = affine(at, &counters, self.env);
                let Ty::Array(n, _) = &array.ty else { return false };
                let (Some(place), Ok(n)) = (place, n.eval(self.env)) else { return false };
                let range = place.range(&axes.iter().collect::<Vec<_>>(), self.env);
                let fits = range.is_some_and(|(least, most)| least >= 0 && most < n.into());
                fits && self.in_range(array, axes)
            }
            _ => e.is_free_of_cost(),
        }
    }

    /// Returns the maps over all counters that compute the array.
    fn computed(&mut self, e: &Ex, axes: &[&Axis]) -> Option<Ex> {
        axes.iter().rev().try_fold(e.clone(), |body, axis| {
            let counters = Ex::iota(&axis.n, &axis.ty, e.span);
            Ex::map_of(
                body.clone(),
                [(&Layout::Var(axis.counter, axis.ty.clone()), &counters)],
                self.fresh,
            )
            // The values do not depend on this counter.
            .or_else(|| {
                let ty = Ty::array(&axis.n, &body.ty);
                let copies = Kind::Prim(Prim::Replicate, vec![], vec![axis.n.clone()], vec![body]);
                Some(Ex::new(copies, ty, e.span))
            })
        })
    }

    /// Returns the array as a view; `None` if the expression is no read at sums of counters, each of which occurs once.
    fn windows(&mut self, e: &Ex, axes: &[&Axis]) -> Option<Ex> {
        let counters: Vars = axes.iter().map(|a| a.counter).collect();
        let (mut array, mut places) = (e, vec![]);
        while let Kind::Index(a, at) = &array.kind {
            places.push(affine(at, &counters, self.env)?);
            array = a;
        }
        places.reverse();
        if !array.free().is_disjoint(&counters) || !array.is_free_of_cost() {
            return None;
        }
        let mut order = vec![];
        let mut out = array.clone();
        let mut depth = 0;
        for place in &places {
            let of = |v: Var| axes.iter().find(|a| a.counter == v).copied();
            let made = place.counters.iter().map(|(v, n)| Some((of(*v)?, *n)));
            let mut made: Vec<(&Axis, i64)> = made.collect::<Option<_>>()?;
            made.sort_by_key(|(a, _)| axes.iter().position(|b| a.counter == b.counter));
            let (first, _) = place.range(axes, self.env)?;
            let first = u64::try_from(first).ok()?;
            let steps: Vec<(&Axis, u64)> =
                made.iter().map(|(a, k)| (*a, k.unsigned_abs())).collect();
            out = self.at(depth, out, &mut |this, a| this.dimension(a, first, &steps))?;
            for (inner, (axis, k)) in made.iter().enumerate() {
                if *k < 0 {
                    out = self.at(depth + inner, out, &mut |_, a| a.reverse())?;
                }
                order.push(axis.counter);
            }
            depth += made.len();
        }
        let wanted: Vec<Var> = axes.iter().map(|a| a.counter).collect();
        let all: Vars = order.iter().copied().collect();
        if order.len() != wanted.len() || all != counters {
            return None;
        }
        self.arranged(out, order, &wanted)
    }

    /// Returns the elements of an array from `first` on, at the places that the sum of the counters reaches: a dimension for
    /// each counter.
    fn dimension(&mut self, array: Ex, first: u64, counters: &[(&Axis, u64)]) -> Option<Ex> {
        let length = |axis: &Axis| axis.n.eval(self.env).ok();
        let (outer, inner) = match counters {
            [one] => (*one, None),
            [one, other] => (*one, Some(*other)),
            _ => return None,
        };
        // The inner counter goes through a window, in steps of its coefficient.
        let inside = inner.map_or(Some(1), |(a, k)| Some(k * length(a)?.checked_sub(1)? + 1))?;
        let span = outer.1 * length(outer.0)?.checked_sub(1)? + inside;
        let Ty::Array(len, _) = &array.ty else { return None };
        let len = len.eval(self.env).ok()?;
        if first + span > len || outer.1 == 0 {
            return None;
        }
        let whole =
            if inner.is_none() && outer.1 == 1 { outer.0.n.clone() } else { Size::constant(span) };
        let mut array = array;
        if first > 0 {
            array = array.drop(&Size::constant(len - first))?;
        }
        if first + span < len {
            array = array.take(&whole)?;
        } else if inner.is_none() && outer.1 == 1 {
            array = named_length(array, &whole)?;
        }
        if inner.is_none() && outer.1 == 1 {
            return Some(array);
        }
        let window = match inner {
            Some((axis, 1)) => axis.n.clone(),
            _ => Size::constant(inside),
        };
        let windows = array.slide(&window, outer.1, &outer.0.n)?;
        match inner {
            None => windows.join(),
            Some((_, 1)) => Some(windows),
            Some((axis, k)) => {
                self.at(1, windows, &mut |_, w| w.slide(&Size::constant(1), k, &axis.n)?.join())
            }
        }
    }

    /// Applies a function to the arrays `depth` dimensions inside of an array.
    pub(super) fn at(&mut self, depth: usize, array: Ex, f: OnArray) -> Option<Ex> {
        if depth == 0 {
            return f(self, array);
        }
        let Ty::Array(n, row) = &array.ty else { return None };
        let (name, span) = ((self.fresh)(), array.span);
        let param = Layout::Var(name, (**row).clone());
        let body = self.at(depth - 1, param.value(span), f)?;
        let ty = Ty::array(n, &body.ty);
        let f = Lambda { params: vec![param], body: Box::new(body) };
        Some(Ex::new(Kind::Map(Prim::Map, f, vec![array]), ty, span))
    }

    /// Brings the dimensions of an array in another order.
    pub(super) fn arranged(&mut self, array: Ex, have: Vec<Var>, want: &[Var]) -> Option<Ex> {
        let (mut out, mut have) = (array, have);
        for (k, axis) in want.iter().enumerate() {
            let from = have.iter().position(|a| a == axis)?;
            for at in (k..from).rev() {
                out = self.at(at, out, &mut |_, a| a.transpose())?;
                have.swap(at, at + 1);
            }
        }
        Some(out)
    }

    /// Makes one dimension of `count` dimensions of an array, `depth` dimensions inside.
    pub(super) fn joined(&mut self, array: Ex, depth: usize, count: usize) -> Option<Ex> {
        (1..count).try_fold(array, |a, _| self.at(depth, a, &mut |_, a| a.join()))
    }

    /// Makes dimensions of these lengths of one dimension of an array, `depth` dimensions inside.
    pub(super) fn split(&mut self, array: Ex, depth: usize, lengths: &[Size]) -> Option<Ex> {
        let mut out = array;
        for k in 1..lengths.len() {
            let rest = lengths[k..].iter().fold(Size::constant(1), |all, n| all.mul(n));
            out = self.at(depth + k - 1, out, &mut |_, a| a.split(&lengths[k - 1], &rest))?;
        }
        Some(out)
    }
}

/// Returns an array under another name of its length.
fn named_length(array: Ex, n: &Size) -> Option<Ex> {
    match &array.ty {
        Ty::Array(len, _) if len == n => Some(array),
        _ => array.take(n),
    }
}

/// Whether the places of a read are those of windows: sums of several counters, or steps of several elements.
pub(super) fn slides(place: &Affine) -> bool {
    place.counters.len() > 1 || place.counters.iter().any(|(_, k)| *k != 1)
}
