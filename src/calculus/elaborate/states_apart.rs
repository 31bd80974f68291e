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
use super::interchange::{named, of_scan};
use super::sizes::nest;
use crate::calculus::ty::Ty;
use crate::lang::typed::{Prim, ScanKind};

/// Returns the program with such results apart; `None` if there are none.
pub(super) fn results_apart(e: &Ex, fresh: &mut dyn FnMut() -> Var) -> Option<Ex> {
    let mut out = e.clone();
    walk(&mut out, fresh).then_some(out)
}

fn walk(e: &mut Ex, fresh: &mut dyn FnMut() -> Var) -> bool {
    let apart = match &e.kind {
        // The program itself chose where the functions of low-level patterns run.
        Kind::Map(prim, ..) if *prim != Prim::Map => return false,
        // What follows takes components of the states, perhaps not the rows.
        Kind::Map(_, f, args) if f.body.is_free_of_cost() => match args.as_slice() {
            [scan] => Scan::of(scan).and_then(|s| s.apart(f, fresh)),
            _ => None,
        },
        _ => Scan::of(e).and_then(|s| {
            let all = named(&s.acc.ty(), fresh);
            let body = Box::new(all.value(e.span));
            s.apart(&Lambda { params: vec![all], body }, fresh)
        }),
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
    /// The next value of each component.
    next: Vec<&'a Ex>,
    /// The components that steps read. The others are results.
    rows: Vec<Row<'a>>,
}

/// A component of the state.
struct Row<'a> {
    name: Layout,
    first: &'a Ex,
    next: &'a Ex,
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
        if !components(acc, init, &mut first) || !components(acc, last, &mut next) {
            return None;
        }
        let read = f.body.free();
        let all = acc.vars().into_iter().zip(first.into_iter().zip(&next));
        let rows = all.filter(|((v, _), _)| read.contains(v)).map(|((v, ty), (first, next))| Row {
            name: Layout::Var(v, ty),
            first,
            next,
        });
        let rows: Vec<Row> = rows.collect();
        Some(Scan { whole: e, acc, element, xs, lets, next, rows })
    }

    /// Returns the scan of the rows, with what `taken` makes of the states behind it.
    fn apart(&self, taken: &Lambda, fresh: &mut dyn FnMut() -> Var) -> Option<Ex> {
        let Ty::Array(steps, _) = &self.xs.ty else { return None };
        if !self.rows.iter().any(|r| matches!(r.name.ty(), Ty::Array(..))) {
            return None;
        }
        // The results use the names that the steps give to the next rows.
        let names = self.rows.iter().map(|r| match r.next.kind {
            Kind::Var(v) => Some(Layout::Var(v, r.next.ty.clone())),
            _ => None,
        });
        let names: Vec<Layout> = names.collect::<Option<_>>()?;
        let mut results = (*taken.body).clone();
        let params = taken.params.iter().flat_map(Layout::vars);
        params.zip(&self.next).for_each(|((p, _), next)| results.put(p, next));
        let given: Vars = names.iter().flat_map(Layout::vars).map(|(v, _)| v).collect();
        let lets: Vec<_> = self.lets.iter().filter(|(p, _)| !p.meets(&given)).collect();
        let results = results.behind(lets.into_iter(), fresh);
        if self.acc.meets(&results.free()) || parts_that_reduce(&results).is_empty() {
            return None;
        }
        let name = Layout::Var(fresh(), self.xs.ty.clone());
        let is_free = self.xs.is_free_of_cost();
        let xs = if is_free { self.xs.clone() } else { name.value(self.whole.span) };
        let array = |of, element: &Ty| Ex::new(of, Ty::array(steps, element), self.whole.span);
        // The rows of all steps, by a scan for each element.
        let next = nest(self.rows.iter().map(|r| r.next.clone()).collect(), Ex::pair)?;
        let next = next.behind(self.lets.iter(), fresh);
        let first = nest(self.rows.iter().map(|r| r.first.clone()).collect(), Ex::pair)?;
        let state = nest(self.rows.iter().map(|r| r.name.clone()).collect(), Layout::pair)?;
        let ty = next.ty.clone();
        let f = Lambda { params: vec![state, self.element.clone()], body: Box::new(next) };
        let args = vec![first, xs.clone()];
        let rows = array(Kind::Prim(Prim::Scan(ScanKind::Seq), vec![f], vec![], args), &ty);
        let rows = of_scan(&rows.refreshed(fresh), fresh)?;
        let ty = results.ty.clone();
        let params = vec![nest(names, Layout::pair)?, self.element.clone()];
        let f = Lambda { params, body: Box::new(results) };
        let results = array(Kind::Map(Prim::Map, f, vec![rows, xs]), &ty);
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
