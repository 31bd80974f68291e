//! Arrays of numbers that are cheaper to compute than to load, such as `a..<b`.
//!
//! Such an array is a map of sums and products over `iota`. A map over it becomes a map over `iota` that computes the element. Without
//! this, an interval in the function of a map depends on nothing there: it would be computed in front of the program, and stored.

use super::core::{Ex, Kind, Layout, Var};
use super::interchange::named;
use crate::calculus::ty::Ty;
use crate::lang::typed::{Prim, ScalarOp};
use rustc_hash::FxHashMap;

/// Most operations of an element.
const FEW: usize = 4;

/// Returns the program with maps over `iota` in place of maps over intervals.
pub(super) fn counted(mut e: Ex, fresh: &mut dyn FnMut() -> Var) -> Ex {
    Intervals { fresh, named: FxHashMap::default() }.walk(&mut e);
    e
}

/// An array of numbers.
#[derive(Clone)]
struct Interval {
    /// An element, as a function of its place.
    place: Var,
    element: Ex,
    /// The places.
    places: Ex,
}

struct Intervals<'a> {
    fresh: &'a mut dyn FnMut() -> Var,
    /// Intervals with a name.
    named: FxHashMap<Var, Interval>,
}

impl Intervals<'_> {
    fn walk(&mut self, e: &mut Ex) {
        if let Kind::Let(Layout::Var(v, _), value, _) = &e.kind
            && let Some(interval) = self.interval(value)
        {
            self.named.insert(*v, interval);
        }
        if let Kind::Map(_, f, args) = &mut e.kind {
            for (p, array) in f.params.iter_mut().zip(args) {
                let Layout::Var(v, _) = *p else { continue };
                let Some(Interval { place, mut element, places }) = self.interval(array) else {
                    continue;
                };
                let Some(ty) = places.element_type() else { continue };
                let name = named(&ty, self.fresh);
                element.put(place, &name.value(array.span));
                f.body.put(v, &element);
                (*p, *array) = (name, places);
            }
        }
        e.parts_mut().into_iter().for_each(|part| self.walk(part));
        // Nothing else reads most intervals with a name.
        if let Kind::Let(p @ Layout::Var(v, _), _, body) = &e.kind
            && self.named.contains_key(v)
            && !p.meets(&body.free())
        {
            *e = (**body).clone();
        }
    }

    fn interval(&self, e: &Ex) -> Option<Interval> {
        match &e.kind {
            Kind::Var(v) => self.named.get(v).cloned(),
            Kind::Map(Prim::Map, f, args) => {
                let ([Layout::Var(place, _)], [places]) = (&f.params[..], &args[..]) else {
                    return None;
                };
                let is_iota = matches!(places.kind, Kind::Prim(Prim::Iota, ..));
                if !is_iota || operations(&f.body).is_none_or(|n| n > FEW) {
                    return None;
                }
                let (element, places) = ((*f.body).clone(), places.clone());
                Some(Interval { place: *place, element, places })
            }
            _ => None,
        }
    }
}

/// Returns the number of operations of a number; `None` if it takes others than sums and products.
fn operations(e: &Ex) -> Option<usize> {
    match &e.kind {
        Kind::Var(_) | Kind::ScalarInput(..) | Kind::Lit(_) | Kind::Size(_) => {
            matches!(e.ty, Ty::Scalar(t) if t.is_integer()).then_some(0)
        }
        Kind::Op(ScalarOp::Add | ScalarOp::Sub | ScalarOp::Mul, args) => {
            args.iter().try_fold(1, |n, arg| Some(n + operations(arg)?))
        }
        _ => None,
    }
}
