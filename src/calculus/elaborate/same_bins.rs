//! Histograms with the same bins become one histogram of pairs.
//!
//! The sums and the counts of groups are two histograms: `(histogram (+) 0 m is xs, histogram (+) 0 m is ones)` becomes
//! `unzip (histogram (\(a, b) (c, d) -> (a + c, b + d)) (0, 0) m is (zip xs ones))`. So the numbers of bins are computed, read and
//! tested once, and one kernel takes the place of two. Components that an operator combines without each other stay atomic
//! operations of their own.
//!
//! Bins that fit into the local memory of a group should still do so, which bounds the bytes of all bins of such a histogram.

use super::by_sort::bytes;
use super::common::comparable;
use super::core::{Ex, Kind, Lambda, Layout, Var};
use super::interchange::named;
use crate::calculus::size::{Size, SizeEnv};
use crate::calculus::ty::Ty;
use crate::lang::typed::Prim;

/// Most bytes of the bins of such a histogram, half of what a group's local memory should hold of bins.
const LOCAL: usize = 16 << 10;

/// Bytes of bins that do not fit into the local memory of a group in any case.
const GLOBAL: usize = 64 << 10;

/// Returns the program with histograms of the same bins together. One in a function belongs to a work-item or a group, and stays.
pub(super) fn together(mut e: Ex, env: &SizeEnv, fresh: &mut dyn FnMut() -> Var) -> Ex {
    if count(&e) > 1 {
        e.change_outside_functions(&mut |e| one_for_two(e, env, fresh));
    }
    e
}

/// Returns the number of histograms in an expression.
fn count(e: &Ex) -> usize {
    let own = usize::from(matches!(e.kind, Kind::Prim(Prim::Histogram, ..)));
    own + e.parts().iter().map(|(_, part)| count(part)).sum::<usize>()
}

/// Returns an expression with one histogram in place of the first two that are known in front of it and have the same bins.
fn one_for_two(e: &Ex, env: &SizeEnv, fresh: &mut dyn FnMut() -> Var) -> Option<Ex> {
    let (mut out, mut changed) = (e.clone(), false);
    loop {
        let mut found = vec![];
        histograms(&out, &mut vec![], &mut found);
        let pair = found.iter().enumerate().find_map(|(k, a)| {
            found[k + 1..]
                .iter()
                .find(|b| may_join(a, b, env))
                .map(|b| ((*a).clone(), (*b).clone()))
        });
        let Some((a, b)) = pair else { return changed.then_some(out) };
        let names = [named(&a.ty, fresh), named(&b.ty, fresh)];
        let both = joined(&a, &b, fresh)?;
        // Equal histograms have one place.
        let [x, y] = [0, 1].map(|k| names[k].value(e.span));
        out.replace(&a, &x);
        out.replace(&b, &y);
        let [x, y] = names;
        out = out.bound(Layout::Pair(Box::new(x), Box::new(y)), both);
        changed = true;
    }
}

/// Adds the histograms outside functions, branches and loops that need none of the variables that the expression binds.
fn histograms<'a>(e: &'a Ex, bound: &mut Vec<Var>, out: &mut Vec<&'a Ex>) {
    match &e.kind {
        Kind::Prim(Prim::Histogram, ..) => {
            let free = e.free();
            if !bound.iter().any(|v| free.contains(v)) {
                out.push(e);
            }
        }
        Kind::Let(p, value, body) => {
            histograms(value, bound, out);
            let outside = bound.len();
            bound.extend(p.vars().into_iter().map(|(v, _)| v));
            histograms(body, bound, out);
            bound.truncate(outside);
        }
        Kind::Map(_, _, args) | Kind::Prim(_, _, _, args) | Kind::Op(_, args) => {
            args.iter().for_each(|a| histograms(a, bound, out));
        }
        Kind::Pair(a, b) | Kind::Index(a, b) => {
            histograms(a, bound, out);
            histograms(b, bound, out);
        }
        Kind::Proj(a, _) => histograms(a, bound, out),
        _ => {}
    }
}

/// Whether two histograms have the same bins, and those of both are as near as those of one.
fn may_join(a: &Ex, b: &Ex, env: &SizeEnv) -> bool {
    let (Some((m, is, t)), Some((other, js, u))) = (bins(a), bins(b)) else { return false };
    let Ok(m_now) = m.eval(env) else { return false };
    let (Some(t), Some(u)) = (bytes(t), bytes(u)) else { return false };
    let of = |bytes: usize| usize::try_from(m_now).unwrap_or(usize::MAX).saturating_mul(bytes);
    let near = of(t + u) <= LOCAL || of(t.min(u)) >= GLOBAL;
    near && m == other && is.ty == js.ty && comparable(is) == comparable(js)
}

/// Returns the number of bins, the places, and the type of an element.
fn bins(e: &Ex) -> Option<(&Size, &Ex, &Ty)> {
    let (Kind::Prim(Prim::Histogram, _, _, args), Ty::Array(m, t)) = (&e.kind, &e.ty) else {
        return None;
    };
    Some((m, args.get(1)?, t))
}

/// Returns the two histograms as one.
fn joined(a: &Ex, b: &Ex, fresh: &mut dyn FnMut() -> Var) -> Option<Ex> {
    let (Kind::Prim(prim, fs, sizes, xs), Kind::Prim(_, gs, _, ys)) = (&a.kind, &b.kind) else {
        return None;
    };
    let ([f], [g], [z, is, xs], [w, _, ys]) = (&fs[..], &gs[..], &xs[..], &ys[..]) else {
        return None;
    };
    let op = side_by_side(f, g, fresh)?;
    let args = vec![Ex::pair(z.clone(), w.clone()), is.clone(), xs.clone().zip(ys.clone())?];
    let (m, t, u) = (bins(a)?.0, bins(a)?.2, bins(b)?.2);
    let ty = Ty::array(m, &Ty::pair(t, u));
    let one = Ex::new(Kind::Prim(*prim, vec![op], sizes.clone(), args), ty, a.span);
    let unzip = Kind::Prim(Prim::Unzip, vec![], vec![], vec![one]);
    Some(Ex::new(unzip, Ty::pair(&a.ty, &b.ty), a.span))
}

/// Returns the operator on pairs that combines the first components by one operator and the second ones by another.
fn side_by_side(f: &Lambda, g: &Lambda, fresh: &mut dyn FnMut() -> Var) -> Option<Lambda> {
    let (mut first, mut second) = ((*f.body).clone(), (*g.body).clone());
    let params = f.params.iter().zip(&g.params).map(|(p, q)| {
        let (p, q) = (p.renamed(&mut first, fresh), q.renamed(&mut second, fresh));
        Layout::Pair(Box::new(p), Box::new(q))
    });
    let params: Vec<Layout> = params.collect();
    (params.len() == 2).then(|| Lambda { params, body: Box::new(Ex::pair(first, second)) })
}
