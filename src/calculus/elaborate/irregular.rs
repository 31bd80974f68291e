//! A form in which scatters, histograms and counting sorts of long rows move out of maps (flattening, as in NESL).
//!
//! `map (\x -> scatter (dest x) (is x) (vs x)) xs` becomes `split n (scatter (join dests) (join places) (join vss))`, where a row's
//! number and an index in the row give the place of an element in all rows. Histograms number the bins of all rows, and sorts their
//! buckets. An index that is outside of its row stays outside of all rows.
//!
//! Inside the map, one work-group or one work-item treats each row, which pays as long as the row fits in local memory. Outside, the whole device
//! treats all rows, however few or long they are. This is another form of the program, and the cost model decides.

use super::core::{Ex, Kind, Layout, Var};
use super::cut::Cut;
use super::digits;
use super::flat::{cast, comparable, only_within};
use super::interchange::named;
use super::loops_out::scalars_of_arrays;
use super::ranges::Ranges;
use crate::calculus::scalar::Lit;
use crate::calculus::size::{Size, SizeEnv};
use crate::calculus::ty::Ty;
use crate::lang::typed::{Prim, ScalarOp};
use crate::lang::types::ScalarType;

/// Fewest scalars of a row for which the whole device may be better than one group.
const LONG: u64 = 1 << 12;

/// Places and buckets of all rows have this type.
const PLACE: ScalarType = ScalarType::I32;

/// Returns the program with irregular operations of long rows outside of maps, and their sorts by digits, as the rows together have
/// many buckets; `None` if there are none to move.
pub(super) fn out_of_maps(e: &Ex, env: &SizeEnv, fresh: &mut dyn FnMut() -> Var) -> Option<Ex> {
    let mut out = e.clone();
    let moved = Irregular { env, fresh }.walk(&mut out).then_some(out)?;
    Some(digits::sorts_by_digits(&moved, env, fresh).unwrap_or(moved))
}

struct Irregular<'a> {
    env: &'a SizeEnv,
    fresh: &'a mut dyn FnMut() -> Var,
}

impl Irregular<'_> {
    /// Moves the operations in an expression that the host computes. Returns whether there were any.
    fn walk(&mut self, e: &mut Ex) -> bool {
        let mut changed = false;
        match &mut e.kind {
            Kind::Map(prim, f, args) => {
                args.iter_mut().for_each(|arg| changed |= self.walk(arg));
                if *prim == Prim::Map {
                    // An inner map may contain the operation.
                    changed |= self.walk(&mut f.body);
                    if let Some(split) = self.split(e) {
                        (*e, changed) = (split, true);
                        self.walk(e);
                    }
                }
            }
            Kind::Prim(_, _, _, args) => {
                args.iter_mut().for_each(|arg| changed |= self.walk(arg));
            }
            _ => e.parts_mut().into_iter().for_each(|part| changed |= self.walk(part)),
        }
        changed
    }

    /// Returns a map whose function contains such an operation as the operation on all rows, with maps before and after it.
    fn split(&mut self, e: &Ex) -> Option<Ex> {
        let mut e = e.clone();
        let given = e.free();
        let Kind::Map(Prim::Map, f, args) = &mut e.kind else { return None };
        let Ty::Array(rows, _) = args.first()?.ty.clone() else { return None };
        self.chosen_later(&mut f.body);
        let env = self.env;
        let fits =
            |n: &Size| rows.mul(n).eval(env).is_ok_and(|n| n <= i32::MAX.unsigned_abs().into());
        let moves = |e: &Ex| {
            let Kind::Prim(prim, funs, _, xs) = &e.kind else { return false };
            let outer = match (prim, &xs[..]) {
                (Prim::CountingSort | Prim::Scatter, _) => true,
                (Prim::Histogram, [z, ..]) => {
                    z.free().is_subset(&given)
                        && funs.iter().all(|op| op.captures().is_subset(&given))
                }
                _ => false,
            };
            outer && is_long(e, env) && bins(e).is_some_and(fits)
        };
        let (cut, operation) = Cut::at(&e, &moves, self.fresh)?;
        let n = bins(&operation)?.clone();
        let Kind::Prim(prim, funs, _, operands) = operation.kind else { return None };
        let span = operation.span;
        let all = |e: &Ex, fresh: &mut dyn FnMut() -> Var| cut.array(e.clone(), fresh);
        let components = match (prim, &operands[..]) {
            (Prim::CountingSort, [is, xs]) => {
                let (is, xs) = (all(is, self.fresh)?, all(xs, self.fresh)?);
                let Ty::Pair(counts, sorted) = &operation.ty else { return None };
                let places = self.places(&is, &rows, &n, Outside::Clamped)?.join()?;
                let (buckets, xs) = (rows.mul(&n), xs.join()?);
                let ty = Ty::pair(&Ty::array(&buckets, &Ty::Scalar(PLACE)), &xs.ty);
                let kind = Kind::Prim(prim, vec![], vec![buckets], vec![places, xs]);
                // Both components come from one sort, so the pair has a name.
                let both = Ex::new(kind, ty, span);
                return self.with_sort(cut, both, &rows, counts, sorted);
            }
            (Prim::Scatter, [dest, is, vs]) => {
                let (dest, is, vs) =
                    (all(dest, self.fresh)?, all(is, self.fresh)?, all(vs, self.fresh)?);
                let places = self.places(&is, &rows, &n, Outside::Skipped)?.join()?;
                let dest = dest.join()?;
                let ty = dest.ty.clone();
                let args = vec![dest, places, vs.join()?];
                vec![Ex::new(Kind::Prim(prim, vec![], vec![], args), ty, span).split(&rows, &n)?]
            }
            (Prim::Histogram, [z, is, vs]) => {
                let (is, vs) = (all(is, self.fresh)?, all(vs, self.fresh)?);
                let places = self.places(&is, &rows, &n, Outside::Skipped)?.join()?;
                let ty = Ty::array(&rows.mul(&n), &z.ty);
                let args = vec![z.clone(), places, vs.join()?];
                let kind = Kind::Prim(prim, funs, vec![rows.mul(&n)], args);
                vec![Ex::new(kind, ty, span).split(&rows, &n)?]
            }
            _ => return None,
        };
        cut.with(components, true, self.fresh)
    }

    /// Returns the rest of a map around a sort of all rows.
    fn with_sort(
        &mut self,
        mut cut: Cut,
        both: Ex,
        rows: &Size,
        counts: &Ty,
        sorted: &Ty,
    ) -> Option<Ex> {
        let (Ty::Array(k, count), Ty::Array(n, _)) = (counts, sorted) else { return None };
        let span = both.span;
        let name = named(&both.ty, self.fresh);
        let value = name.value(span);
        let mut numbers = value.clone().proj(false)?;
        if **count != Ty::Scalar(PLACE) {
            let Ty::Scalar(t) = **count else { return None };
            let x = named(&Ty::Scalar(PLACE), self.fresh);
            numbers = Ex::map_of(cast(x.value(span), t), [(&x, &numbers)], self.fresh)?;
        }
        let numbers = numbers.split(rows, k)?;
        // The sort reads what the map computed before it.
        cut.bind(name, both);
        cut.with(vec![numbers, value.proj(true)?.split(rows, n)?], true, self.fresh)
    }

    /// Returns where the indices of each row, below `n` there, lie in all rows.
    fn places(&mut self, is: &Ex, rows: &Size, n: &Size, outside: Outside) -> Option<Ex> {
        let (span, ty) = (is.span, Ty::Scalar(PLACE));
        let of_row = is.element_type()?;
        let Ty::Array(_, index) = &of_row else { return None };
        let Ty::Scalar(own) = **index else { return None };
        let (row, indices, i) =
            (named(&ty, self.fresh), named(&of_row, self.fresh), named(index, self.fresh));
        let op = |op, a: Ex, b: Ex, t| Ex::op(op, vec![a, b], t, span);
        let lit = |t, x| Ex::new(Kind::Lit(Lit::int(t, x)), Ty::Scalar(t), span);
        let size = |t| Ex::new(Kind::Size(n.clone()), Ty::Scalar(t), span);
        let wide = comparable(own);
        let own = cast(i.value(span), wide);
        let within = match outside {
            Outside::Clamped => {
                let last = op(ScalarOp::Sub, size(wide), lit(wide, 1), wide);
                op(ScalarOp::Max, lit(wide, 0), op(ScalarOp::Min, own.clone(), last, wide), wide)
            }
            Outside::Skipped => own.clone(),
        };
        let start = op(ScalarOp::Mul, row.value(span), size(PLACE), PLACE);
        let mut place = op(ScalarOp::Add, start, cast(within, PLACE), PLACE);
        if outside == Outside::Skipped {
            place = only_within(&own, n, place)?;
        }
        let places = Ex::map_of(place, [(&i, &indices.value(span))], self.fresh)?;
        let numbers = Ex::iota(rows, &ty, span);
        Ex::map_of(places, [(&row, &numbers), (&indices, is)], self.fresh)
    }

    /// Computes both sides of the choices that contain such operations, and chooses element by element. What may fail on a side is
    /// computed with other operands where the side is not chosen.
    fn chosen_later(&mut self, e: &mut Ex) {
        match &mut e.kind {
            Kind::If(c, yes, no) => {
                if !contains(yes, self.env) && !contains(no, self.env) {
                    return;
                }
                let condition = named(&c.ty, self.fresh);
                let is_yes = condition.value(c.span);
                let mut lets: Vec<(Layout, Ex)> = vec![(condition, (**c).clone())];
                for (part, side) in [(&**yes, true), (&**no, false)] {
                    let mut part = part.clone();
                    let chosen = Chosen { condition: &is_yes, side };
                    if !chosen.or_harmless(&mut part, &mut Ranges::new(self.env)) {
                        return;
                    }
                    self.chosen_later(&mut part);
                    lets.push((named(&part.ty, self.fresh), part));
                }
                let [yes, no] = [&lets[1].0, &lets[2].0].map(|name| name.value(e.span));
                let Some(chosen) = self.choice(&is_yes, yes, no) else { return };
                *e = chosen.after(lets);
            }
            Kind::Map(_, _, args) | Kind::Prim(_, _, _, args) => {
                args.iter_mut().for_each(|arg| self.chosen_later(arg));
            }
            Kind::Let(..) | Kind::Pair(..) | Kind::Proj(..) | Kind::Op(..) | Kind::Index(..) => {
                e.parts_mut().into_iter().for_each(|part| self.chosen_later(part));
            }
            _ => {}
        }
    }

    /// Returns the scalars of one of two values, as a condition says.
    fn choice(&mut self, c: &Ex, yes: Ex, no: Ex) -> Option<Ex> {
        match yes.ty.clone() {
            Ty::Pair(..) => {
                let mut part =
                    |second| self.choice(c, yes.clone().proj(second)?, no.clone().proj(second)?);
                Some(Ex::pair(part(false)?, part(true)?))
            }
            Ty::Array(_, t) => {
                let (x, y) = (named(&t, self.fresh), named(&t, self.fresh));
                let chosen = self.choice(c, x.value(yes.span), y.value(no.span))?;
                Ex::map_of(chosen, [(&x, &yes), (&y, &no)], self.fresh)
            }
            _ => Some(Ex::choice(c.clone(), yes, no)),
        }
    }
}

/// A side of a choice.
struct Chosen<'a> {
    condition: &'a Ex,
    side: bool,
}

impl Chosen<'_> {
    /// Changes what may fail on the side, so that it has a value where the side is not chosen. Returns whether all of it has one.
    fn or_harmless(&self, e: &mut Ex, ranges: &mut Ranges) -> bool {
        ranges.enter(e);
        if ranges.may_fail(e) {
            match &mut e.kind {
                Kind::Index(array, place) if !may_be_empty(array, ranges) => self.or(place, 0),
                Kind::Op(_, args) => self.or(&mut args[1], 1),
                _ => return false,
            }
        }
        e.parts_mut().into_iter().all(|part| self.or_harmless(part, ranges))
    }

    /// Puts a number in the place of an integer where the side is not chosen.
    fn or(&self, e: &mut Ex, n: i128) {
        let Ty::Scalar(t) = e.ty else { return };
        let other = Ex::new(Kind::Lit(Lit::int(t, n)), e.ty.clone(), e.span);
        let (yes, no) = if self.side { (e.clone(), other) } else { (other, e.clone()) };
        *e = Ex::choice(self.condition.clone(), yes, no);
    }
}

/// Whether an array may have no elements.
fn may_be_empty(array: &Ex, ranges: &Ranges) -> bool {
    array.length().and_then(|n| ranges.size(n)).is_none_or(|n| n == 0)
}

/// What becomes of an index that is outside of its row.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outside {
    Clamped,
    Skipped,
}

/// Returns the number of places, bins or buckets of a row.
fn bins(e: &Ex) -> Option<&Size> {
    match (&e.kind, &e.ty) {
        (Kind::Prim(Prim::CountingSort, _, sizes, _), _) => sizes.first(),
        (_, Ty::Array(n, _)) => Some(n),
        _ => None,
    }
}

/// Whether an operation has a long operand or a long result.
fn is_long(e: &Ex, env: &SizeEnv) -> bool {
    let Kind::Prim(_, _, _, args) = &e.kind else { return false };
    args.iter().chain([e]).any(|x| scalars_of_arrays(&x.ty, env) >= LONG)
}

/// Whether a long irregular operation is in an expression, outside of functions and loops.
fn contains(e: &Ex, env: &SizeEnv) -> bool {
    let of_host = |args: &[Ex]| args.iter().any(|e| contains(e, env));
    match &e.kind {
        Kind::Prim(Prim::CountingSort | Prim::Scatter | Prim::Histogram, ..) if is_long(e, env) => {
            true
        }
        Kind::Map(_, _, args) | Kind::Prim(_, _, _, args) => of_host(args),
        Kind::For(..) | Kind::While(..) => false,
        _ => e.parts().iter().any(|(_, part)| contains(part, env)),
    }
}
