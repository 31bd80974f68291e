//! What the steps of a scan compute of its rows, and no step needs, leaves the scan (loop fission).
//!
//! ```text
//! map snd (scanSeq (\(h, _) x -> let h' = map2 f h x in (h', sum h')) (h, 0) xs) = map sum (scanSeq (\h x -> map2 f h x) h xs)
//! ```
//!
//! If the elements of the rows never meet, the scan of rows is a scan for each element (`interchange`): there is work for all elements
//! at once, and what is made of the rows is shared out as well. State-space models, banks of recursive filters and linear attention
//! are such scans. But the rows of all steps are in memory then, so this is another form of a program.

use super::core::{Ex, Kind, Lambda, Layout, Var, Vars};
use super::fission::parts_that_reduce;
use super::interchange;
use crate::calculus::size::SizeEnv;
use crate::calculus::ty::Ty;
use crate::lang::typed::{Prim, ScanKind};

/// Returns the program with such results apart; `None` if there are none.
pub(super) fn results_apart(e: &Ex, _: &SizeEnv, fresh: &mut dyn FnMut() -> Var) -> Option<Ex> {
    let mut out = e.clone();
    walk(&mut out, fresh).then_some(out)
}

fn walk(e: &mut Ex, fresh: &mut dyn FnMut() -> Var) -> bool {
    let apart = match &e.kind {
        // What follows takes components of the states, perhaps not the rows.
        Kind::Map(Prim::Map, f, args) if f.body.is_free_of_cost() => match args.as_slice() {
            [scan] => Scan::of(scan).and_then(|s| s.apart(Some(f), fresh)),
            _ => None,
        },
        _ => Scan::of(e).and_then(|s| s.apart(None, fresh)),
    };
    if let Some(apart) = apart {
        *e = apart;
        return true;
    }
    e.parts_mut().into_iter().fold(false, |changed, part| walk(part, fresh) | changed)
}

/// A sequential scan whose state is a tuple.
struct Scan<'a> {
    whole: &'a Ex,
    acc: &'a Layout,
    element: &'a Layout,
    xs: &'a Ex,
    lets: Vec<(Layout, Ex)>,
    /// The first and the next value of each component.
    first: Vec<&'a Ex>,
    next: Vec<&'a Ex>,
    /// The components that steps read. The others are results.
    rows: Vars,
}

impl Scan<'_> {
    fn of(e: &Ex) -> Option<Scan<'_>> {
        let Kind::Prim(Prim::Scan(ScanKind::Seq), fs, _, args) = &e.kind else { return None };
        let ([f], [init, xs]) = (fs.as_slice(), args.as_slice()) else { return None };
        let [acc, element] = f.params.as_slice() else { return None };
        let (mut lets, mut last) = (vec![], &*f.body);
        while let Kind::Let(p, value, body) = &last.kind {
            lets.push((p.clone(), (**value).clone()));
            last = body;
        }
        let (mut first, mut next) = (vec![], vec![]);
        let tuples = components(acc, init, &mut first) && components(acc, last, &mut next);
        let read = f.body.free();
        let vars = acc.vars().into_iter();
        let rows = vars.map(|(v, _)| v).filter(|v| read.contains(v)).collect();
        let scan = Scan { whole: e, acc, element, xs, lets, first, next, rows };
        tuples.then_some(scan)
    }

    /// Returns the scan of the rows, with the results computed behind it. `taken` is a function of the states that follows.
    fn apart(&self, taken: Option<&Lambda>, fresh: &mut dyn FnMut() -> Var) -> Option<Ex> {
        let (vars, span) = (self.acc.vars(), self.whole.span);
        let is_row = |(v, ty): &(Var, Ty)| self.rows.contains(v) && matches!(ty, Ty::Array(..));
        let mut results = vars.iter().zip(&self.next).filter(|((v, _), _)| !self.rows.contains(v));
        let worth = results.any(|(_, next)| {
            let whole = (*next).clone().behind(self.lets.iter(), fresh);
            !parts_that_reduce(&whole).is_empty()
        });
        if !vars.iter().any(is_row) || !worth {
            return None;
        }
        let part = |of: &[&Ex]| {
            let own = vars.iter().zip(of).filter(|((v, _), _)| self.rows.contains(v));
            own.map(|(_, e)| (*e).clone()).rev().reduce(|rest, e| Ex::pair(e, rest))
        };
        let name = Layout::Var(fresh(), self.xs.ty.clone());
        let is_free = self.xs.is_free_of_cost();
        let xs = if is_free { self.xs.clone() } else { name.value(span) };
        // The rows of all steps, by a scan for each element.
        let state = nested(vars.iter().filter(|(v, _)| self.rows.contains(v)).cloned())?;
        let next = part(&self.next)?.behind(self.lets.iter(), fresh);
        let Ty::Array(steps, _) = &self.xs.ty else { return None };
        let (ty, body) = (Ty::array(steps, &next.ty), Box::new(next));
        let f = Lambda { params: vec![state, self.element.clone()], body };
        let args = vec![part(&self.first)?, xs.clone()];
        let rows = Kind::Prim(Prim::Scan(ScanKind::Seq), vec![f], vec![], args);
        let rows = interchange::of_scan(&Ex::new(rows, ty, span).refreshed(fresh), fresh)?;
        // The results use the names that the steps give to the next rows.
        let named = vars.iter().zip(&self.next).filter(|((v, _), _)| self.rows.contains(v));
        let names = named.map(|((_, ty), next)| match next.kind {
            Kind::Var(v) => Some((v, ty.clone())),
            _ => None,
        });
        let names: Vec<(Var, Ty)> = names.collect::<Option<_>>()?;
        let all = || vars.iter().zip(&self.next).map(|((v, _), next)| (*v, (*next).clone()));
        let value = match taken {
            Some(f) => {
                let mut value = (*f.body).clone();
                let params = f.params.iter().flat_map(Layout::vars);
                params.zip(all()).for_each(|((p, _), (_, next))| value.put(p, &next));
                value
            }
            None => shaped(self.acc, &mut all().map(|(_, next)| next))?,
        };
        let given = |p: &Layout| names.iter().any(|(v, _)| p.meets(&Vars::from([*v])));
        let lets: Vec<_> = self.lets.iter().filter(|(p, _)| !given(p)).cloned().collect();
        let value = value.behind(lets.iter(), fresh);
        if self.acc.meets(&value.free()) {
            return None;
        }
        let ty = Ty::array(steps, &value.ty);
        let params = vec![nested(names.into_iter())?, self.element.clone()];
        let f = Lambda { params, body: Box::new(value) };
        let results = Ex::new(Kind::Map(Prim::Map, f, vec![rows, xs]), ty, span);
        let out = if is_free { results } else { results.bound(name, self.xs.clone()) };
        Some(out.refreshed(fresh))
    }
}

/// Adds the components of a tuple that is arranged as a layout. Returns whether it is one.
fn components<'a>(layout: &Layout, e: &'a Ex, out: &mut Vec<&'a Ex>) -> bool {
    match (layout, &e.kind) {
        (Layout::Pair(a, b), Kind::Pair(x, y)) => components(a, x, out) && components(b, y, out),
        (Layout::Var(..), _) => {
            out.push(e);
            true
        }
        _ => false,
    }
}

/// Returns a layout of these variables.
fn nested(vars: impl DoubleEndedIterator<Item = (Var, Ty)>) -> Option<Layout> {
    vars.map(|(v, ty)| Layout::Var(v, ty)).rev().reduce(|rest, v| Layout::pair(v, rest))
}

/// Returns a tuple that is arranged as a layout.
fn shaped(layout: &Layout, parts: &mut dyn Iterator<Item = Ex>) -> Option<Ex> {
    match layout {
        Layout::Unit => None,
        Layout::Var(..) => parts.next(),
        Layout::Pair(a, b) => {
            let a = shaped(a, parts)?;
            Some(Ex::pair(a, shaped(b, parts)?))
        }
    }
}
