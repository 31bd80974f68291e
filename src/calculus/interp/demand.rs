//! Computes only those elements of a named value that are read.
//!
//! [`pick`](super::pick) pushes a choice of elements from the result inwards. At a variable it stops: `Pick` of a slot. If
//! every use of a variable is such a choice, its value needs no other elements, and the choice goes on in the value.

use super::code::{Axis, Cells, Code, Fold, Loop, Map, Operator, Place, Until, Values};
use super::pick::{pick, sorted};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Returns the code of a variable with only those elements that `user` reads, and the user, which reads them at their new
/// indices.
pub fn narrowed(place: Place, code: Code, mut user: Values) -> (Place, Code, Values) {
    let Place::Slot { slot, .. } = place else { return (place, code, user) };
    let Some(wanted) = wanted(slot, &mut user) else { return (place, code, user) };
    let axes: Vec<Axis> = wanted.iter().map(|w| w.as_deref().map(Into::into)).collect();
    let code = match code {
        Code::Value(v) => Code::Value(pick(v, &axes)),
        // Scalars have no dimensions to choose from, and are in registers.
        Code::Cells(_) => return (place, code, user),
    };
    each(&mut user, &mut |v| {
        let Values::Pick(from, axes) = v else { return ControlFlow::Continue(()) };
        let Values::Slot(s, lengths) = &mut **from else { return ControlFlow::Continue(()) };
        if *s != slot {
            return ControlFlow::Continue(());
        }
        let new =
            |(d, n): (usize, &usize)| wanted.get(d).and_then(Option::as_ref).map_or(*n, Vec::len);
        let lengths: Arc<[usize]> = lengths.iter().enumerate().map(new).collect();
        **from = Values::Slot(slot, lengths.clone());
        for (axis, wanted) in axes.iter_mut().zip(&wanted) {
            if let (Some(at), Some(wanted)) = (&*axis, wanted) {
                let place = |i: &usize| wanted.binary_search(i).unwrap_or_default();
                *axis = (**at != **wanted).then(|| at.iter().map(place).collect());
            }
        }
        if axes.iter().all(Option::is_none) {
            *v = Values::Slot(slot, lengths);
        }
        ControlFlow::Break(())
    });
    (place, code, user)
}

/// Returns the indices that are read in each leading dimension of a slot, in ascending order; `None` in a dimension that is
/// read whole. Returns `None` if all dimensions are, or if nothing is read.
fn wanted(slot: usize, user: &mut Values) -> Option<Vec<Option<Vec<usize>>>> {
    let mut all: Option<Vec<Option<Vec<usize>>>> = None;
    let mut whole = false;
    each(user, &mut |v| match v {
        Values::Pick(from, axes) if is_slot(from, slot) => {
            let here = axes.iter().map(|a| a.as_ref().map(|at| at.to_vec()));
            all = Some(match all.take() {
                None => here.map(|at| at.map(sorted)).collect(),
                Some(so_far) => {
                    let both = |(a, b): (Option<Vec<usize>>, Option<Vec<usize>>)| {
                        Some(sorted(a?.into_iter().chain(b?)))
                    };
                    so_far.into_iter().zip(here).map(both).collect()
                }
            });
            ControlFlow::Break(())
        }
        v if is_slot(v, slot) => {
            whole = true;
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    });
    all.filter(|axes| !whole && axes.iter().any(Option::is_some))
}

/// Whether the value is the slot. Some components of it are not: they may have dimensions that the others lack.
fn is_slot(v: &Values, slot: usize) -> bool {
    matches!(v, Values::Slot(s, _) if *s == slot)
}

type Visit<'a> = &'a mut dyn FnMut(&mut Values) -> ControlFlow<()>;

/// Calls `f` on a value and the values in it, outermost first; not on those inside a value for which `f` breaks.
fn each(v: &mut Values, f: Visit) {
    if f(v).is_break() {
        return;
    }
    match v {
        Values::Given(_) | Values::Slot(..) | Values::Iota(..) => {}
        Values::Part(v, _) | Values::View(_, v, _) | Values::Pick(v, _) => each(v, f),
        Values::Tuple(vs) => vs.iter_mut().for_each(|v| each(v, f)),
        Values::Pack(e, ..) => in_cells(e, f),
        Values::If(b) => {
            in_cells(&mut b.0, f);
            each(&mut b.1, f);
            each(&mut b.2, f);
        }
        Values::Let(b) => {
            in_code(&mut b.1, f);
            each(&mut b.2, f);
        }
        Values::Loop(l) => in_loop(l, f),
        Values::Fold(fold) => in_fold(fold, f),
        Values::Concat(b, _)
        | Values::PadWith(b, ..)
        | Values::Gather(b, _)
        | Values::CountingSort(_, _, b, _) => {
            each(&mut b.0, f);
            each(&mut b.1, f);
        }
        Values::Row(b, ..) => {
            each(&mut b.0, f);
            in_cells(&mut b.1, f);
        }
        Values::Scatter(b, _) => {
            each(&mut b.0, f);
            each(&mut b.1, f);
            each(&mut b.2, f);
        }
        Values::Map(m) => {
            let Map { body, xs, .. } = &mut **m;
            each(xs, f);
            in_code(body, f);
        }
        Values::Scan(s) => in_fold(&mut s.fold, f),
        Values::Histogram(h) => {
            each(&mut h.is, f);
            each(&mut h.vs, f);
            in_operator(&mut h.op, f);
        }
    }
}

fn in_code(c: &mut Code, f: Visit) {
    match c {
        Code::Cells(e) => in_cells(e, f),
        Code::Value(v) => each(v, f),
    }
}

fn in_cells(e: &mut Cells, f: Visit) {
    match e {
        Cells::Const(_) | Cells::Reg(_) => {}
        Cells::Op(op) => op.args.iter_mut().for_each(|e| in_cells(e, f)),
        Cells::Tuple(es) => es.iter_mut().for_each(|(e, _)| in_cells(e, f)),
        Cells::If(b) => {
            in_cells(&mut b.0, f);
            in_cells(&mut b.1, f);
            in_cells(&mut b.2, f);
        }
        Cells::Let(b) => {
            in_code(&mut b.1, f);
            in_cells(&mut b.2, f);
        }
        Cells::Loop(l) => in_loop(l, f),
        Cells::Fold(fold) => in_fold(fold, f),
        Cells::Index(i) => {
            each(&mut i.array, f);
            i.at.iter_mut().for_each(|(e, _)| in_cells(e, f));
        }
        Cells::Unpack(v) => each(v, f),
    }
}

fn in_loop(l: &mut Loop, f: Visit) {
    in_code(&mut l.init, f);
    match &mut l.until {
        Until::Bound(_, e, _) | Until::Not(e) => in_cells(e, f),
    }
    in_code(&mut l.body, f);
}

fn in_fold(fold: &mut Fold, f: Visit) {
    each(&mut fold.xs, f);
    in_operator(&mut fold.op, f);
    if let Some(drift) = &mut fold.drift {
        in_operator(drift, f);
    }
}

fn in_operator(op: &mut Operator, f: Visit) {
    in_code(&mut op.init, f);
    in_code(&mut op.body, f);
}
