//! Expressions by counters: what the functions of nested maps take becomes what they read, at the counters of the maps.
//!
//! In `map (\xs -> map2 (\x i -> f x ys[i]) xs (iota n)) xss`, with counters `c` and `d`, `x` is `xss[c][d]` and `i` is `d`. Then
//! the arrays that an expression reads are those of the program, and the places are sums of counters.

use super::super::again::loops;
use super::super::core::{Ex, Kind, Lambda, Layout, Var, Vars};
use super::super::hoist::contains_reduction;
use super::super::interchange::named;
use crate::calculus::size::{Size, SizeEnv};
use crate::calculus::ty::Ty;
use crate::lang::typed::{Prim, ScalarOp};
use crate::lang::types::ScalarType;

/// A dimension of a nest of maps.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    /// The counter.
    pub(super) counter: Var,
    /// The type of the counter.
    pub(super) ty: Ty,
    /// The length.
    pub(super) n: Size,
}

impl Axis {
    /// Returns the counter as an expression.
    pub(super) fn place(&self, of: &Ex) -> Ex {
        Ex::new(Kind::Var(self.counter), self.ty.clone(), of.span)
    }
}

/// Returns the counter of a map over these arrays; `None` if the arrays have counters of different types.
pub(super) fn axis(n: &Size, arrays: &[Ex], fresh: &mut dyn FnMut() -> Var) -> Option<Axis> {
    let mut types = arrays.iter().filter_map(|a| match (&a.kind, &a.ty) {
        (Kind::Prim(Prim::Iota, ..), Ty::Array(_, t)) => Some((**t).clone()),
        _ => None,
    });
    let ty = types.next().unwrap_or(Ty::Scalar(ScalarType::I32));
    types.all(|t| t == ty).then(|| Axis { counter: fresh(), ty, n: n.clone() })
}

/// Returns what the parameters of a map's function are at the map's counter.
pub(super) fn read_at(f: &Lambda, arrays: &[Ex], axis: &Axis) -> Option<Vec<(Layout, Ex)>> {
    let element = |a: &Ex| a.element(&axis.place(a));
    f.params.iter().zip(arrays).map(|(p, a)| Some((p.clone(), element(a)?))).collect()
}

/// Replaces names by what they stand for, the last ones first: earlier ones may occur in later ones.
pub(super) fn substitute(e: &mut Ex, names: &[(Layout, Ex)]) {
    for (layout, value) in names.iter().rev() {
        layout.put_in(e, value);
    }
}

/// Simplifies the reads of an expression: of views, of maps of cheap functions, and of counters.
pub(super) struct Reads<'a> {
    pub(super) env: &'a SizeEnv,
    pub(super) fresh: &'a mut dyn FnMut() -> Var,
}

impl Reads<'_> {
    pub(super) fn simplify(&mut self, e: &mut Ex) {
        e.parts_mut().into_iter().for_each(|part| self.simplify(part));
        match &e.kind {
            Kind::Proj(pair, second) => {
                if let Kind::Pair(a, b) = &pair.kind {
                    *e = (**if *second { b } else { a }).clone();
                }
            }
            Kind::Index(array, at) => {
                if let Some(read) = self.read(array, at) {
                    *e = Ex::new(read.kind, e.ty.clone(), e.span);
                    self.simplify(e);
                }
            }
            _ => {}
        }
    }

    /// Returns the element of an array at a place as a read of what the array is made of; `None` if it stays as it is.
    fn read(&mut self, array: &Ex, at: &Ex) -> Option<Ex> {
        match &array.kind {
            Kind::Prim(Prim::Iota, ..) => match &array.ty {
                Ty::Array(_, t) if **t == at.ty => Some(at.clone()),
                _ => None,
            },
            Kind::Prim(Prim::Zip, _, _, args) => match &args[..] {
                [a, b] => Some(Ex::pair(a.element(at)?, b.element(at)?)),
                _ => None,
            },
            Kind::Prim(Prim::Replicate, _, _, args) => args.first().cloned(),
            Kind::Prim(Prim::Gather, _, _, args) => match &args[..] {
                [xs, places] => xs.element(&places.element(at)?),
                _ => None,
            },
            Kind::Prim(Prim::Take, _, _, args) => args.first()?.element(at),
            Kind::Prim(Prim::Drop, _, _, args) => {
                let cut = self.length(&args.first()?.ty)?.checked_sub(self.length(&array.ty)?)?;
                args.first()?.element(&at.further(cut)?)
            }
            Kind::Map(Prim::Map, f, args)
                if !contains_pattern(&f.body) && (!is_view(&f.body) || is_window(&f.body)) =>
            {
                let mut element = (*f.body).clone();
                for (p, a) in f.params.iter().zip(args) {
                    p.put_in(&mut element, &a.element(at)?);
                }
                // Names inside occur twice now.
                element.rename(self.fresh);
                Some(element)
            }
            Kind::Index(rows, i) => match &rows.kind {
                Kind::Prim(Prim::Transpose, _, _, args) => args.first()?.element(at)?.element(i),
                Kind::Prim(Prim::Slide, _, sizes, args) => {
                    let step = sizes.get(1)?.eval(self.env).ok()?;
                    let first = product(i, step)?;
                    let kind = Kind::Op(ScalarOp::Add, vec![first, at.clone()]);
                    let place = Ex::new(kind, at.ty.clone(), at.span);
                    (i.ty == at.ty).then_some(())?;
                    args.first()?.element(&place)
                }
                _ => None,
            },
            _ => self.lifted(array).and_then(|a| a.element(at)),
        }
    }

    /// Returns a view of a row as a row of an array of views: `pad xs[c]` is `(map pad xs)[c]`.
    fn lifted(&mut self, view: &Ex) -> Option<Ex> {
        let args = match &view.kind {
            _ if is_window(view) => return None,
            Kind::Prim(_, funs, _, args) if funs.is_empty() && is_view_of_rows(view) => args,
            Kind::Map(Prim::Map, _, args) => args,
            _ => return None,
        };
        let mut rows = args.iter().filter(|a| matches!(a.kind, Kind::Index(..)));
        let (row, None) = (rows.next()?, rows.next()) else { return None };
        let Kind::Index(all, c) = &row.kind else { return None };
        let (Ty::Array(n, of), Kind::Var(_)) = (&all.ty, &c.kind) else { return None };
        let name = named(of, self.fresh);
        let mut body = view.clone();
        body.replace(row, &name.value(view.span));
        // Else it would be taken apart again.
        let stays = is_view(&body) && matches!(**of, Ty::Array(..));
        if !stays || !body.free().is_disjoint(&c.free()) {
            return None;
        }
        let (ty, span) = (Ty::array(n, &view.ty), view.span);
        let f = Lambda { params: vec![name], body: Box::new(body) };
        let map = Ex::new(Kind::Map(Prim::Map, f, vec![(**all).clone()]), ty, span);
        map.element(c)
    }

    fn length(&self, ty: &Ty) -> Option<u64> {
        match ty {
            Ty::Array(n, _) => n.eval(self.env).ok(),
            _ => None,
        }
    }
}

/// Whether an expression contains a pattern that computes more than a map does, or a loop.
pub(super) fn contains_pattern(e: &Ex) -> bool {
    contains_reduction(e) || loops(e)
}

/// Whether an expression is an array that costs nothing.
fn is_view(e: &Ex) -> bool {
    e.is_free_of_cost() && e.ty.has_array()
}

/// Whether an expression rearranges one array, whose rows keep their elements.
fn is_view_of_rows(e: &Ex) -> bool {
    let Kind::Prim(prim, ..) = &e.kind else { return false };
    matches!(prim, Prim::Pad(_) | Prim::Split | Prim::Join | Prim::Reverse)
}

/// Whether an expression has the elements of an array in windows and transposed, which [`Reads::read`] sees through.
fn is_window(e: &Ex) -> bool {
    match &e.kind {
        Kind::Prim(Prim::Transpose | Prim::Slide, _, _, args) => args.iter().all(is_window),
        Kind::Map(Prim::Map, f, args) => is_window(&f.body) && args.iter().all(is_window),
        Kind::Var(_) | Kind::Input(_) | Kind::Index(..) => e.ty.has_array(),
        _ => false,
    }
}

/// Returns a multiple of a place.
fn product(place: &Ex, k: u64) -> Option<Ex> {
    let kind = Kind::Op(ScalarOp::Mul, vec![place.number(k)?, place.clone()]);
    Some(if k == 1 { place.clone() } else { Ex::new(kind, place.ty.clone(), place.span) })
}

/// A place as a sum: the counters in order, with their coefficients, and a number.
#[derive(Debug, PartialEq)]
pub(in crate::calculus::elaborate) struct Affine {
    pub(in crate::calculus::elaborate) counters: Vec<(Var, i64)>,
    pub(in crate::calculus::elaborate) constant: i128,
}

impl Affine {
    /// Returns the coefficient of a counter.
    pub(in crate::calculus::elaborate) fn coefficient(&self, counter: Var) -> i64 {
        self.counters.iter().find(|(v, _)| *v == counter).map_or(0, |(_, k)| *k)
    }

    /// The sum with a multiple of another one; `None` if a number is too large.
    pub(super) fn plus(mut self, other: &Affine, times: i64) -> Option<Affine> {
        for (v, k) in &other.counters {
            let more = k.checked_mul(times)?;
            match self.counters.iter_mut().find(|(w, _)| w == v) {
                Some((_, k)) => *k = k.checked_add(more)?,
                None => self.counters.push((*v, more)),
            }
        }
        self.counters.retain(|(_, k)| *k != 0);
        self.counters.sort_unstable();
        self.constant = self.constant.checked_add(other.constant.checked_mul(times.into())?)?;
        Some(self)
    }

    /// The sum with a number.
    pub(super) fn further(mut self, constant: i128) -> Affine {
        self.constant += constant;
        self
    }

    /// Returns the least and the greatest place; `None` if a counter has no value.
    pub(super) fn range(&self, axes: &[&Axis], env: &SizeEnv) -> Option<(i128, i128)> {
        let (mut least, mut greatest) = (self.constant, self.constant);
        for (v, k) in &self.counters {
            let n = axes.iter().find(|a| a.counter == *v)?.n.eval(env).ok()?;
            let last = i128::from(*k) * i128::from(n.checked_sub(1)?);
            (least, greatest) = (least + last.min(0), greatest + last.max(0));
        }
        Some((least, greatest))
    }
}

/// Returns a place as a sum of multiples of counters and a number; `None` if it is no such sum.
pub(in crate::calculus::elaborate) fn affine(
    place: &Ex,
    counters: &Vars,
    env: &SizeEnv,
) -> Option<Affine> {
    let number = |constant| Affine { counters: vec![], constant };
    match &place.kind {
        Kind::Var(v) if counters.contains(v) => {
            Some(Affine { counters: vec![(*v, 1)], constant: 0 })
        }
        Kind::Lit(l) => Some(number(l.as_int()?)),
        Kind::Size(s) => Some(number(s.eval(env).ok()?.into())),
        Kind::Op(op @ (ScalarOp::Add | ScalarOp::Sub | ScalarOp::Mul), args) => {
            let [a, b] = &args[..] else { return None };
            let (a, b) = (affine(a, counters, env)?, affine(b, counters, env)?);
            match op {
                ScalarOp::Add => a.plus(&b, 1),
                ScalarOp::Sub => a.plus(&b, -1),
                _ => {
                    let (a, k) = match (a.counters.is_empty(), b.counters.is_empty()) {
                        (_, true) => (a, b.constant),
                        (true, false) => (b, a.constant),
                        (false, false) => return None,
                    };
                    number(0).plus(&a, i64::try_from(k).ok()?)
                }
            }
        }
        _ => None,
    }
}
