//! Windows at counted places are windows of `slide`.
//!
//! `generate n (\i -> f xs[i:i + 3])` computes each slice by index: `generate 3 (\t -> xs[i + t])`. Here it becomes a map over
//! `slide 3 1 xs`, and slices of several dimensions become windows of several dimensions. The rules know such windows: they are
//! views, they are tiled together, and no array is captured by the function of a map. This is done if the windows of all `i` lie in
//! the array.

use super::contractions::affine;
use super::core::{Ex, Kind, Lambda, Layout, Var, Vars};
use super::elements::{bound_in, indexed, is_read, scalars_named};
use super::interchange::named;
use super::parts::dimension;
use super::unused::keep_used;
use crate::calculus::size::{Size, SizeEnv};
use crate::lang::typed::Prim;

/// Returns the program with windows of `slide` in place of slices at counted places.
pub(super) fn by_slide(mut e: Ex, env: &mut SizeEnv, fresh: &mut dyn FnMut() -> Var) -> Ex {
    Windows { env, fresh }.walk(&mut e);
    e
}

struct Windows<'a> {
    env: &'a mut SizeEnv,
    fresh: &'a mut dyn FnMut() -> Var,
}

/// Slices of an array: one for each value of the counter of a map.
#[derive(Clone, Debug, PartialEq)]
struct Slices {
    /// The array that is sliced: it is the same for all values of the counter, or an element of such an array.
    array: Ex,
    /// The first slice begins here.
    from: u64,
    /// Each begins this far after the one before.
    step: u64,
    /// Their length.
    width: Size,
}

impl Windows<'_> {
    /// Changes the maps of an expression. The outer ones come first: an inner one may take windows of the rows of a window.
    fn walk(&mut self, e: &mut Ex) {
        if let Kind::Map(Prim::Map, f, args) = &mut e.kind {
            for k in 0..args.len() {
                self.slices(k, f, args);
            }
        }
        e.parts_mut().into_iter().for_each(|part| self.walk(part));
        match &mut e.kind {
            Kind::Map(Prim::Map, f, args) => {
                keep_used(f, args);
                if let ([p], [array]) = (&f.params[..], &args[..])
                    && p.value(array.span).kind == f.body.kind
                {
                    *e = array.clone();
                }
            }
            Kind::Let(Layout::Var(v, _), value, body) if matches!(value.kind, Kind::Var(_)) => {
                body.put(*v, value);
                *e = (**body).clone();
            }
            // The place of a slice that is a window now.
            Kind::Let(p, _, body) if !p.meets(&body.free()) => *e = (**body).clone(),
            _ => {}
        }
    }

    /// Changes the slices that begin at the counter which is parameter `k` of a map.
    fn slices(&mut self, k: usize, f: &mut Lambda, args: &mut Vec<Ex>) {
        let Layout::Var(i, _) = f.params[k] else { return };
        let (Kind::Prim(Prim::Iota, ..), Some(n)) = (&args[k].kind, args[k].length().cloned())
        else {
            return;
        };
        let mut lets = vec![];
        scalars_named(&f.body, &mut lets);
        let mut found: Vec<Slices> = vec![];
        Places { i, lets: &lets, env: self.env }.slices(&f.body, &mut |s| {
            if !found.contains(&s) {
                found.push(s);
            }
        });
        let inner = bound_in(f);
        for s in found {
            let Some((base, path)) = owner(&f.body, &s.array, &inner) else { continue };
            let Some(windows) = self.windows(base, &s, path.len(), &n) else { continue };
            let Some(window) = windows.element_type() else { continue };
            let name = named(&window, self.fresh);
            let value = name.value(s.array.span);
            let at = Places { i, lets: &lets, env: self.env };
            at.read(&mut f.body, &s, &path, &value, self.fresh);
            f.params.push(name);
            args.push(windows);
        }
    }

    /// Returns the windows of arrays that are `depth` levels inside `base`, with the number of the window as the outermost
    /// dimension; `None` if some are not within their array.
    fn windows(&mut self, base: Ex, s: &Slices, depth: usize, n: &Size) -> Option<Ex> {
        if depth > 0 {
            let row = named(&base.element_type()?, self.fresh);
            let inside = self.windows(row.value(base.span), s, depth - 1, n)?;
            return Ex::map_of(inside, [(&row, &base)], self.fresh)?.transpose();
        }
        let value = |n: &Size| n.eval(self.env).ok();
        let (len, count) = (value(base.length()?)?, value(n)?);
        let reach = s.step.checked_mul(count.checked_sub(1)?)?.checked_add(value(&s.width)?)?;
        let rest = len.checked_sub(s.from)?;
        if reach > rest {
            return None;
        }
        let mut base = base;
        if s.from > 0 {
            base = base.drop(&dimension(n, "rest", rest, self.env))?;
        }
        if reach < rest {
            base = base.take(&dimension(n, "reach", reach, self.env))?;
        }
        base.slide(&s.width, s.step, n)
    }
}

/// The places that the counter of a map gives.
struct Places<'a> {
    i: Var,
    /// The scalars with a name in the function of the map, the outer ones first.
    lets: &'a [(Ex, Ex)],
    env: &'a SizeEnv,
}

impl Places<'_> {
    /// Calls `f` on each of the slices that an expression reads.
    fn slices(&self, e: &Ex, f: &mut dyn FnMut(Slices)) {
        if let Kind::Map(Prim::Map, g, args) = &e.kind {
            for (t, width) in counters(g, args) {
                indexed(&g.body, &mut |array, at| {
                    self.slice(array, at, t, &width).into_iter().for_each(&mut *f);
                });
            }
        }
        e.parts().into_iter().for_each(|(_, part)| self.slices(part, f));
    }

    /// Returns what element `at` of an array is one element of, if `t` counts these elements.
    fn slice(&self, array: &Ex, at: &Ex, t: Var, width: &Size) -> Option<Slices> {
        let mut at = at.clone();
        self.lets.iter().rev().for_each(|(name, value)| at.replace(name, value));
        let place = affine(&at, &Vars::from([self.i, t]), self.env)?;
        let step = u64::try_from(place.coefficient(self.i)).ok()?;
        if step == 0 || place.coefficient(t) != 1 {
            return None;
        }
        let from = u64::try_from(place.constant).ok()?;
        Some(Slices { array: array.clone(), from, step, width: width.clone() })
    }

    /// Replaces what is read of slices by the elements of `window`. `path` has the variables from an element of the array that is the
    /// same for all places to the array that is sliced.
    fn read(
        &self,
        e: &mut Ex,
        s: &Slices,
        path: &[Var],
        window: &Ex,
        fresh: &mut dyn FnMut() -> Var,
    ) {
        if let Kind::Map(Prim::Map, g, args) = &mut e.kind
            && let Some(part) = window.element_type()
        {
            let name = named(&part, fresh);
            let value = name.value(window.span);
            let of_path = path.first().is_some_and(|v| g.own().contains(v));
            let mut changed = of_path;
            if of_path {
                self.read(&mut g.body, s, &path[1..], &value, fresh);
            } else if path.is_empty() {
                for (t, width) in counters(g, args) {
                    let mut elements = vec![];
                    indexed(&g.body, &mut |array, at| {
                        if self.slice(array, at, t, &width).as_ref() == Some(s) {
                            let kind = Kind::Index(Box::new(array.clone()), Box::new(at.clone()));
                            elements.push(Ex::new(kind, part.clone(), at.span));
                        }
                    });
                    changed |= !elements.is_empty();
                    elements.iter().for_each(|element| g.body.replace(element, &value));
                }
            }
            if changed {
                g.params.push(name);
                args.push(window.clone());
            }
        }
        e.parts_mut().into_iter().for_each(|part| self.read(part, s, path, window, fresh));
    }
}

/// Returns the parameters of a map that count, with the number of their values.
fn counters(f: &Lambda, args: &[Ex]) -> Vec<(Var, Size)> {
    let counter = |(p, arg): (&Layout, &Ex)| match (p, &arg.kind) {
        (Layout::Var(t, _), Kind::Prim(Prim::Iota, ..)) => Some((*t, arg.length()?.clone())),
        _ => None,
    };
    f.params.iter().zip(args).filter_map(counter).collect()
}

/// Returns the array that is the same for all calls of a function, of which `array` is an element of an element, with the variables of
/// the elements, the outermost first. `inner` are the variables of the function, `body` is its body.
fn owner(body: &Ex, array: &Ex, inner: &Vars) -> Option<(Ex, Vec<Var>)> {
    if inner.is_disjoint(&array.free()) {
        return is_read(array).then(|| (array.clone(), vec![]));
    }
    let Kind::Var(v) = array.kind else { return None };
    let (base, mut path) = owner(body, element_of(body, v)?, inner)?;
    path.push(v);
    Some((base, path))
}

/// Returns the array through which a map goes with a variable.
fn element_of(e: &Ex, v: Var) -> Option<&Ex> {
    if let Kind::Map(Prim::Map, f, args) = &e.kind {
        let is_v = |p: &Layout| matches!(p, Layout::Var(w, _) if *w == v);
        if let Some(k) = f.params.iter().position(is_v) {
            return Some(&args[k]);
        }
    }
    e.parts().into_iter().find_map(|(_, part)| element_of(part, v))
}
