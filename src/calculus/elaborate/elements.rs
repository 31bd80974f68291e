//! Turns indices into elements: `map (\i -> f a[i]) (iota n)` goes through `a` itself.
//!
//! Who computes an array by index writes `a[i]` where `i` counts the elements of a map, and `b[k][j]` or
//! `map (\row -> row[j]) b` for a column. The rules for reductions and products know elements, rows and pairs of them, and
//! no indices. So where something is reduced, and in what else is computed beside it, in the function of a map over `iota n`:
//!
//! - `a[i]` becomes the element of another array of the map, if `a` is the same for all `i`. Arrays of which the function
//!   also reads other places that depend on `i` (stencils) keep their indices;
//! - a row `a[g(i)]`, where `g(i)` depends on no other variable, becomes the element of `gather a (map g (iota n))`, and of a view,
//!   `take n (drop c a)`, `join (map (replicate r) a)` or `join (replicate m a)`, if `g(i)` is `i + c`, `i / r` or `i % r`;
//! - if the function of a map needs of each row only the element at one place, which is the same for all rows, the map goes
//!   through this column instead.
//!
//! A product of matrices by index, `generate n (\i -> generate m (\j -> reduce (+) 0 (generate k (\p -> a[i][p] * b[p][j]))))`,
//! becomes one of the rows of `a` and the columns of `b`.

use super::contractions::affine;
use super::core::{Ex, Kind, Lambda, Layout, Var, Vars};
use super::hoist::{contains_reduction, reduces};
use super::interchange::named;
use super::ranges::Ranges;
use super::unused::keep_used;
use crate::calculus::size::{Size, SizeEnv};
use crate::calculus::ty::Ty;
use crate::lang::typed::{Prim, ScalarOp};

/// Returns the program with elements in place of indices. `env` has the values of all dimensions.
pub(super) fn by_element(mut e: Ex, env: &SizeEnv, fresh: &mut dyn FnMut() -> Var) -> Ex {
    Elements { env, fresh, ranges: Ranges::new(env) }.walk(&mut e, false, false);
    e
}

struct Elements<'a> {
    env: &'a SizeEnv,
    fresh: &'a mut dyn FnMut() -> Var,
    ranges: Ranges<'a>,
}

impl Elements<'_> {
    /// Changes the maps of an expression that reduce something, and the maps whose results are reduced. The inner ones come
    /// first: what they then read may be an element for an outer one. `joined` says that the rows of the result become one
    /// array.
    fn walk(&mut self, e: &mut Ex, reduced: bool, joined: bool) {
        self.ranges.enter(e);
        let beside = matches!(&e.kind, Kind::Map(_, f, _) if contains_reduction(&f.body));
        let reduces = reduces(&e.kind);
        let reduced_inside = reduced || beside || reduces;
        let joined_inside = !reduces && (joined || matches!(e.kind, Kind::Prim(Prim::Join, ..)));
        let parts = e.parts_mut().into_iter();
        parts.for_each(|part| self.walk(part, reduced_inside, joined_inside));
        if let Kind::Map(Prim::Map, f, args) = &mut e.kind
            && (reduced || contains_reduction(&f.body))
        {
            self.counters(f, args, joined);
            self.columns(f, args);
            without_unused_places(&mut f.body);
        }
    }

    /// Replaces what the function reads at the counters of the map. Where the rows of the results become one array, each of its
    /// elements is computed alone, and rows of one array at several places would be rows for it alone: they stay indices, too.
    fn counters(&mut self, f: &mut Lambda, args: &mut Vec<Ex>, joined: bool) {
        for k in 0..args.len() {
            let Kind::Prim(Prim::Iota, ..) = &args[k].kind else { continue };
            let (Layout::Var(i, _), Ty::Array(n, _)) = (&f.params[k], &args[k].ty) else {
                continue;
            };
            let (i, n) = (*i, n.clone());
            let inner = bound_in(f);
            let safe = unconditional(&f.body);
            let mut read = vec![];
            indexed(&f.body, &mut |array, at| {
                let element = Kind::Index(Box::new(array.clone()), Box::new(at.clone()));
                let fits =
                    at.kind == Kind::Var(i) && is_read(array) && inner.is_disjoint(&array.free());
                let fits = fits && (self.ranges.cannot_fail(array) || safe.contains(&element));
                if fits && !read.iter().any(|(a, _): &(Ex, Ex)| a.kind == array.kind) {
                    read.extend(
                        array.element_type().map(|t| (array.clone(), Ex::new(element, t, at.span))),
                    );
                }
            });
            for (array, element) in read {
                let mut stencil = false;
                indexed(&f.body, &mut |a, at| {
                    let elsewhere = at.kind != Kind::Var(i) && at.free().contains(&i);
                    stencil |= a.kind == array.kind && elsewhere;
                    stencil |= joined && a.kind != array.kind && same_rows(a, &array);
                });
                let Some(rows) = (if stencil { None } else { self.first(&n, array) }) else {
                    continue;
                };
                let name = named(&element.ty, self.fresh);
                f.body.replace(&element, &name.value(element.span));
                f.params.push(name);
                args.push(rows);
            }
            self.gathered(i, k, f, args);
        }
        keep_used(f, args);
    }

    /// Replaces the rows that the function reads at places that are computed from the counter `i`, parameter `k`, alone.
    fn gathered(&mut self, i: Var, k: usize, f: &mut Lambda, args: &mut Vec<Ex>) {
        let inner = bound_in(f);
        let mut places = vec![];
        scalars_named(&f.body, &mut places);
        // Each array with the place and the row.
        let mut read: Vec<(Ex, Ex, Ex)> = vec![];
        // Arrays of which other places that depend on the counter are read: stencils keep their indices.
        let mut stencils = vec![];
        let safe = unconditional(&f.body);
        indexed(&f.body, &mut |array, at| {
            let Some(row) = array.element_type().filter(|t| !t.is_scalar()) else { return };
            let whole = places.iter().rev().fold(at.clone(), |mut whole, (name, value)| {
                whole.replace(name, value);
                whole
            });
            let free = whole.free();
            if !free.contains(&i) {
                return;
            }
            if read.iter().any(|(a, w, _)| a.kind == array.kind && w.kind != whole.kind) {
                stencils.push(array.kind.clone());
            }
            // Windows keep their indices: their places also depend on what is around the map.
            let alone = free.iter().all(|v| *v == i);
            let closed = is_read(array) && inner.is_disjoint(&array.free());
            let element = Kind::Index(Box::new(array.clone()), Box::new(at.clone()));
            let moves = whole.kind != Kind::Var(i) && whole.is_pure_scalar();
            if alone && closed && moves && safe.contains(&element) {
                read.push((array.clone(), whole, Ex::new(element, row, at.span)));
            } else if closed {
                stencils.push(array.kind.clone());
            }
        });
        let mut done: Vec<Kind> = vec![];
        for (array, whole, element) in read {
            if stencils.contains(&array.kind) || done.contains(&element.kind) {
                continue;
            }
            let counter = [(&f.params[k], &args[k])];
            let view = self.moved(i, &args[k], &array, &whole);
            let view = view.or_else(|| self.repeated(i, &args[k], &array, &whole));
            let Some(all) = Ex::map_of(whole, counter, self.fresh) else { continue };
            let Ty::Array(n, _) = &all.ty else { continue };
            let (ty, span) = (Ty::array(n, &element.ty), element.span);
            let gathered = Kind::Prim(Prim::Gather, vec![], vec![], vec![array, all]);
            let name = named(&element.ty, self.fresh);
            f.body.replace(&element, &name.value(span));
            f.params.push(name);
            args.push(view.unwrap_or(Ex::new(gathered, ty, span)));
            done.push(element.kind);
        }
    }

    /// Returns the rows of an array at the places `at` for all numbers `i` of `counter`, if these are rows one after the other (`i + 4`):
    /// a view. `None` if they are not, or if a place may be outside.
    fn moved(&self, i: Var, counter: &Ex, array: &Ex, at: &Ex) -> Option<Ex> {
        let n = counter.length()?;
        let place = affine(at, &Vars::from([i]), self.env)?;
        let from = u64::try_from(place.constant).ok()?;
        let len = array.length()?.eval(self.env).ok()?;
        let rest = len.checked_sub(from).filter(|_| place.coefficient(i) == 1)?;
        self.first(n, array.clone().drop(&Size::constant(rest))?)
    }

    /// Returns the rows of an array at the places `at` for all numbers `i` of `counter`, if they are its first rows, each several times
    /// in turn (`i / r`) or all of them several times (`i % r`): a view. `None` if they are not, or if a place may be outside.
    fn repeated(&mut self, i: Var, counter: &Ex, array: &Ex, at: &Ex) -> Option<Ex> {
        let (Kind::Op(op, sides), n) = (&at.kind, counter.length()?) else { return None };
        let [of, by] = sides.as_slice() else { return None };
        let (times, by) = (multiple(of, i)?, size_of(by)?);
        if !matches!(&at.ty, Ty::Scalar(t) if t.bytes() >= 4) {
            return None;
        }
        let value = |s: &Size| s.eval(self.env).ok().filter(|n| *n > 0);
        // Neither the product nor the counter leaves its type.
        value(&n.mul(&times)).filter(|n| i32::try_from(*n).is_ok())?;
        let (rows, each) = match op {
            ScalarOp::Div => {
                let each = by.div(&times);
                (n.div(&each), each)
            }
            ScalarOp::Rem if times.as_constant() == Some(1) => (by.clone(), n.div(&by)),
            _ => return None,
        };
        value(&each)?;
        value(&rows)?;
        let first = self.first(&rows, array.clone())?;
        if *op == ScalarOp::Rem {
            return first.replicate(&each).join();
        }
        let row = named(&first.element_type()?, self.fresh);
        Ex::map_of(row.value(at.span).replicate(&each), [(&row, &first)], self.fresh)?.join()
    }

    /// Returns the first `n` elements of an array; `None` if it may have fewer.
    fn first(&self, n: &Size, array: Ex) -> Option<Ex> {
        let Ty::Array(len, _) = &array.ty else { return None };
        let value = |s: &Size| s.eval(self.env).ok();
        if len == n {
            return Some(array);
        }
        if value(n)? > value(len)? {
            return None;
        }
        array.take(n)
    }

    /// Replaces arrays of rows of which the function needs one column.
    fn columns(&mut self, f: &mut Lambda, args: &mut [Ex]) {
        let inner = bound_in(f);
        for (p, rows) in f.params.iter_mut().zip(args) {
            let Layout::Var(row, one) = p else { continue };
            let (row, one) = (*row, one.clone());
            let (mut at, mut places) = (None, 0);
            indexed(&f.body, &mut |array, place| {
                if array.kind == Kind::Var(row) {
                    places += 1;
                    at = at
                        .take()
                        .filter(|first: &Ex| first.kind == place.kind)
                        .or_else(|| (places == 1).then(|| place.clone()));
                }
            });
            let Some(at) = at.filter(|at| is_read(rows) && inner.is_disjoint(&at.free())) else {
                continue;
            };
            let element = Kind::Index(Box::new(p.value(at.span)), Box::new(at.clone()));
            if !matches!(at.kind, Kind::Lit(_)) && !unconditional(&f.body).contains(&element) {
                continue;
            }
            let Ty::Array(_, t) = &one else { continue };
            if mentions(&f.body, row) != places {
                continue;
            }
            let (span, columns) = (rows.span, rows.clone().transpose());
            let Some(columns) = columns else { continue };
            let Some(column) = columns.element_type() else { continue };
            let name = named(t, self.fresh);
            f.body.replace(&Ex::new(element, (**t).clone(), at.span), &name.value(at.span));
            *rows = Ex::new(Kind::Index(Box::new(columns), Box::new(at)), column, span);
            *p = name;
        }
    }
}

/// Returns the factor of a variable in an expression that is a multiple of it.
fn multiple(e: &Ex, i: Var) -> Option<Size> {
    match &e.kind {
        Kind::Var(v) if *v == i => Some(Size::constant(1)),
        Kind::Op(ScalarOp::Mul, sides) => match sides.as_slice() {
            [a, b] if a.kind == Kind::Var(i) => size_of(b),
            [a, b] if b.kind == Kind::Var(i) => size_of(a),
            _ => None,
        },
        _ => None,
    }
}

/// Returns a number that is known before the program runs.
fn size_of(e: &Ex) -> Option<Size> {
    match &e.kind {
        Kind::Size(size) => Some(size.clone()),
        Kind::Lit(lit) => u64::try_from(lit.as_int()?).ok().filter(|n| *n > 0).map(Size::constant),
        _ => None,
    }
}

/// Removes names of scalars that were places only.
fn without_unused_places(e: &mut Ex) {
    while let Kind::Let(name, value, body) = &mut e.kind
        && value.is_pure_scalar()
        && !name.meets(&body.free())
    {
        *e = (**body).clone();
    }
    if let Kind::Let(_, _, body) = &mut e.kind {
        without_unused_places(body);
    }
}

/// Returns the variables bound by a function, in its body too.
pub(super) fn bound_in(f: &Lambda) -> Vars {
    let mut out = f.own();
    out.extend(bound_within(&f.body));
    out
}

/// Returns the variables bound in an expression.
pub(super) fn bound_within(e: &Ex) -> Vars {
    fn walk(e: &Ex, out: &mut Vars) {
        for (layouts, part) in e.parts() {
            out.extend(layouts.iter().flat_map(|l| l.vars()).map(|(v, _)| v));
            walk(part, out);
        }
    }
    let mut out = Vars::new();
    walk(e, &mut out);
    out
}

/// Whether an array is read where it is: it costs nothing, but for the elements of its rows that are chosen.
pub(super) fn is_read(e: &Ex) -> bool {
    match &e.kind {
        Kind::Index(a, i) => is_read(a) && i.is_pure_scalar(),
        Kind::Prim(Prim::Transpose | Prim::Take, _, _, args) => args.iter().all(is_read),
        _ => e.is_free_of_cost(),
    }
}

/// Whether two arrays are rows of one array, at places that depend on the same variable.
fn same_rows(a: &Ex, b: &Ex) -> bool {
    match (&a.kind, &b.kind) {
        (Kind::Index(a, i), Kind::Index(b, j)) => {
            same_rows(a, b) || (a.kind == b.kind && !i.free().is_disjoint(&j.free()))
        }
        _ => false,
    }
}

/// Calls `f` on every array and the place at which it is read.
pub(super) fn indexed<'e>(e: &'e Ex, f: &mut dyn FnMut(&'e Ex, &'e Ex)) {
    if let Kind::Index(array, at) = &e.kind {
        f(array, at);
    }
    e.parts().into_iter().for_each(|(_, part)| indexed(part, f));
}

/// Returns the elements that are read whatever the data are: outside branches and the steps of loops. Another place may be out of
/// range where it is not read.
fn unconditional(e: &Ex) -> Vec<Kind> {
    let always = match e.kind {
        Kind::If(..) | Kind::While(..) => 1,
        Kind::For(..) => 2,
        _ => usize::MAX,
    };
    let own = matches!(e.kind, Kind::Index(..)).then(|| e.kind.clone());
    let parts = e.parts().into_iter().take(always);
    own.into_iter().chain(parts.flat_map(|(_, part)| unconditional(part))).collect()
}

/// Collects the names of scalars with what they stand for, the outer ones first.
pub(super) fn scalars_named(e: &Ex, out: &mut Vec<(Ex, Ex)>) {
    if let Kind::Let(Layout::Var(v, ty), value, _) = &e.kind
        && value.is_pure_scalar()
    {
        out.push((Ex::new(Kind::Var(*v), ty.clone(), value.span), (**value).clone()));
    }
    e.parts().into_iter().for_each(|(_, part)| scalars_named(part, out));
}

/// Returns how often a variable occurs.
fn mentions(e: &Ex, v: Var) -> usize {
    if e.kind == Kind::Var(v) {
        return 1;
    }
    e.parts().into_iter().map(|(_, part)| mentions(part, v)).sum()
}
