//! Histograms of rows as histograms of elements: where an operator combines rows element by element, the bins of the elements
//! are independent.
//!
//! `histogram (map2 op) (replicate d z) m is rows` becomes
//! `split d (histogram op z (m*d) (join (map (\i -> map (\c -> i*d + c) (iota d)) is)) (join rows))`.
//!
//! The second form has work for every element, reads neighbouring elements together, and an operator that a device may have
//! as an atomic operation. The first one combines whole rows, perhaps as vectors. So this is another form of a program, and
//! the cost model decides.

use super::core::{Ex, Kind, Lambda, Layout, Var, Vars};
use super::interchange::named;
use crate::calculus::scalar::Lit;
use crate::calculus::size::{Size, SizeEnv};
use crate::calculus::ty::Ty;
use crate::lang::typed::{Prim, ScalarOp};
use crate::lang::types::ScalarType;

/// Returns the program with all such histograms flat; `None` if there are none.
pub(super) fn histograms(e: &Ex, env: &SizeEnv, fresh: &mut dyn FnMut() -> Var) -> Option<Ex> {
    let mut out = e.clone();
    Flat { env, fresh }.walk(&mut out).then_some(out)
}

struct Flat<'a> {
    env: &'a SizeEnv,
    fresh: &'a mut dyn FnMut() -> Var,
}

impl Flat<'_> {
    /// Changes all histograms of an expression. Returns whether there were any.
    fn walk(&mut self, e: &mut Ex) -> bool {
        let flat = self.histogram(e);
        let mut changed = flat.is_some();
        // The elements of the rows may be rows, too.
        if let Some(flat) = flat {
            *e = flat;
        }
        e.parts_mut().into_iter().for_each(|part| changed |= self.walk(part));
        changed
    }

    fn histogram(&mut self, e: &Ex) -> Option<Ex> {
        let Kind::Prim(Prim::Histogram, funs, _, args) = &e.kind else { return None };
        let ([op], [z, is, rows]) = (&funs[..], &args[..]) else { return None };
        let step = of_elements(op)?;
        let Kind::Prim(Prim::Replicate, _, _, zs) = &z.kind else { return None };
        let (Ty::Array(m, row), Ty::Array(_, i)) = (&e.ty, &is.ty) else { return None };
        let (Ty::Array(d, t), Ty::Scalar(i)) = (&**row, &**i) else { return None };
        let bins = m.mul(d);
        let place = comparable(*i);
        let places = self.places(is, place, m, d)?.join()?;
        let args = vec![zs.first()?.clone(), places, rows.clone().join()?];
        let flat = Kind::Prim(Prim::Histogram, vec![step], vec![bins.clone()], args);
        let flat = Ex::new(flat, Ty::array(&bins, t), e.span);
        flat.split(m, d)
    }

    /// Returns the bins of the elements of each row, as numbers of type `t`: `d` for each of the `m` bins of rows, and -1 for a row
    /// without a bin. `None` if there are more bins than 32 bits count.
    fn places(&mut self, is: &Ex, t: ScalarType, m: &Size, d: &Size) -> Option<Ex> {
        let bins = m.mul(d).eval(self.env).ok()?;
        if bins > i32::MAX.unsigned_abs().into() {
            return None;
        }
        let (span, ty) = (is.span, Ty::Scalar(t));
        let Ty::Array(_, of_bin) = &is.ty else { return None };
        let (bin, column) = (named(of_bin, self.fresh), named(&ty, self.fresh));
        let row = cast(bin.value(span), t);
        let length = Ex::new(Kind::Size(d.clone()), ty.clone(), span);
        let start = Ex::op(ScalarOp::Mul, vec![row.clone(), length], t, span);
        let place = Ex::op(ScalarOp::Add, vec![start, column.value(span)], t, span);
        let place = only_within(&row, m, place)?;
        let columns = Ex::iota(d, &ty, span);
        let of_row = Ex::map_of(place, [(&column, &columns)], self.fresh)?;
        Ex::map_of(of_row, [(&bin, is)], self.fresh)
    }
}

/// The type in which an index of type `t` is compared with lengths: other types than `i32` as `i64`, which holds both their
/// values and the lengths.
pub(super) fn comparable(t: ScalarType) -> ScalarType {
    if t == ScalarType::I32 { t } else { ScalarType::I64 }
}

/// Returns a scalar as a value of another type.
pub(super) fn cast(e: Ex, t: ScalarType) -> Ex {
    let span = e.span;
    if e.ty == Ty::Scalar(t) { e } else { Ex::op(ScalarOp::Cast(t), vec![e], t, span) }
}

/// Returns a place if an index is in `0..n`, and -1 otherwise.
pub(super) fn only_within(i: &Ex, n: &Size, place: Ex) -> Option<Ex> {
    let span = place.span;
    let test = |op, limit| Ex::op(op, vec![i.clone(), limit], ScalarType::Bool, span);
    let none = number_like(&place, -1)?;
    let length = Ex::new(Kind::Size(n.clone()), i.ty.clone(), span);
    let below = Ex::choice(test(ScalarOp::Lt, length), place, none.clone());
    Some(Ex::choice(test(ScalarOp::Ge, number_like(i, 0)?), below, none))
}

/// Returns a number of the type of a scalar.
fn number_like(e: &Ex, x: i128) -> Option<Ex> {
    let Ty::Scalar(t) = e.ty else { return None };
    Some(Ex::new(Kind::Lit(Lit::int(t, x)), e.ty.clone(), e.span))
}

/// Returns the operator of the elements, if an operator combines two rows element by element, and needs nothing else.
fn of_elements(op: &Lambda) -> Option<Lambda> {
    let Kind::Map(Prim::Map, step, args) = &op.body.kind else { return None };
    let own = |e: &Ex| match e.kind {
        Kind::Var(v) => Some(v),
        _ => None,
    };
    let given: Vec<Var> = args.iter().map(own).collect::<Option<_>>()?;
    let params = op.params.iter().flat_map(Layout::vars).map(|(v, _)| v);
    let same = op.params.len() == 2 && step.params.len() == 2 && params.eq(given);
    (same && step.captures() == Vars::new()).then(|| step.clone())
}
