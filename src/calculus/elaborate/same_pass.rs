//! Histograms with the same bins become one histogram of pairs, and scans of the same array become one scan of pairs.
//!
//! The sums and the counts of groups are two histograms: `(histogram (+) 0 m is xs, histogram (+) 0 m is ones)` becomes
//! `unzip (histogram (\\(a, b) (c, d) -> (a + c, b + d)) (0, 0) m is (zip xs ones))`. So the numbers of bins are computed, read and
//! tested once, and one kernel takes the place of two. Components that an operator combines without each other stay atomic
//! operations of their own. Bins that fit into the local memory of a group should still do so, which bounds the bytes of all
//! bins of such a histogram.
//!
//! Likewise the prefix sums of numbers and of their squares read the numbers once.

use super::by_sort::bytes;
use super::common::comparable;
use super::core::{Ex, Kind, Lambda, Layout, Var};
use super::interchange::named;
use crate::calculus::size::{Size, SizeEnv};
use crate::calculus::ty::Ty;
use crate::lang::typed::{Prim, ScanKind};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Most bytes of the bins of such a histogram, half of what a group's local memory should hold of bins.
const LOCAL: usize = 16 << 10;

/// Bytes of bins that do not fit into the local memory of a group in any case.
const GLOBAL: usize = 64 << 10;

/// Most bytes of an element of a scan of pairs: a work-item keeps some of them in registers.
const ELEMENT: usize = 16;

/// Returns the program with such histograms and scans together. One in a function belongs to a work-item or a group, and stays.
pub(super) fn together(mut e: Ex, env: &SizeEnv, fresh: &mut dyn FnMut() -> Var) -> Ex {
    if count(&e) > 1 {
        e.change_outside_functions(&mut |e| one_for_two(e, env, fresh));
    }
    e
}

fn is_pass(e: &Ex) -> bool {
    let of = |p| matches!(p, Prim::Histogram | Prim::Scan(ScanKind::Assoc | ScanKind::Exclusive));
    matches!(e.kind, Kind::Prim(p, ..) if of(p))
}

/// Returns the number of histograms and scans in an expression.
fn count(e: &Ex) -> usize {
    let own = usize::from(is_pass(e));
    own + e.parts().iter().map(|(_, part)| count(part)).sum::<usize>()
}

/// Returns an expression with one histogram or scan in place of each two that are known in front of it and belong together.
fn one_for_two(e: &Ex, env: &SizeEnv, fresh: &mut dyn FnMut() -> Var) -> Option<Ex> {
    if count(e) < 2 {
        return None;
    }
    let (mut out, mut changed) = (e.clone(), false);
    loop {
        let mut found = vec![];
        passes(&out, &mut vec![], &mut found);
        let pair = found.iter().enumerate().find_map(|(k, a)| {
            found[k + 1..]
                .iter()
                .find(|b| may_join(a, b, env))
                .map(|b| ((*a).clone(), (*b).clone()))
        });
        let Some((a, b)) = pair else { return changed.then_some(out) };
        let names = [named(&a.ty, fresh), named(&b.ty, fresh)];
        let both = joined(&a, &b, fresh)?;
        let [x, y] = [0, 1].map(|k| names[k].value(e.span));
        out.replace(&a, &x);
        out.replace(&b, &y);
        let [x, y] = names;
        out = out.bound(Layout::Pair(Box::new(x), Box::new(y)), both);
        changed = true;
    }
}

/// Adds the histograms and scans outside functions, branches and loops that need none of the variables that the expression binds.
fn passes<'a>(e: &'a Ex, bound: &mut Vec<Var>, out: &mut Vec<&'a Ex>) {
    match &e.kind {
        Kind::Prim(..) if is_pass(e) => {
            let free = e.free();
            if !bound.iter().any(|v| free.contains(v)) {
                out.push(e);
            }
        }
        Kind::Let(p, value, body) => {
            passes(value, bound, out);
            let outside = bound.len();
            bound.extend(p.vars().into_iter().map(|(v, _)| v));
            passes(body, bound, out);
            bound.truncate(outside);
        }
        Kind::Map(_, _, args) | Kind::Prim(_, _, _, args) | Kind::Op(_, args) => {
            args.iter().for_each(|a| passes(a, bound, out));
        }
        Kind::Pair(a, b) | Kind::Index(a, b) => {
            passes(a, bound, out);
            passes(b, bound, out);
        }
        Kind::Proj(a, _) => passes(a, bound, out),
        _ => {}
    }
}

/// Whether one pass is better than two.
fn may_join(a: &Ex, b: &Ex, env: &SizeEnv) -> bool {
    let (Some((n, t)), Some((m, u))) = (elements(a), elements(b)) else { return false };
    let (Kind::Prim(p, f, _, xs), Kind::Prim(q, g, _, ys)) = (&a.kind, &b.kind) else {
        return false;
    };
    let (Some(t), Some(u)) = (bytes(t), bytes(u)) else { return false };
    if p != q || n != m {
        return false;
    }
    match (&xs[..], &ys[..]) {
        ([_, is, _], [_, js, _]) => {
            let count = n.eval(env).ok().and_then(|n| usize::try_from(n).ok());
            let of = |bytes: usize| count.unwrap_or(usize::MAX).saturating_mul(bytes);
            let near = of(t + u) <= LOCAL || of(t.min(u)) >= GLOBAL;
            near && is.ty == js.ty && comparable(is) == comparable(js)
        }
        ([_, xs], [_, ys]) => {
            let closed = f.iter().chain(g).all(|f| f.captures().is_empty());
            closed && t + u <= ELEMENT && !arrays(xs).is_disjoint(&arrays(ys))
        }
        _ => false,
    }
}

/// Returns the length and the type of an element of the result.
fn elements(e: &Ex) -> Option<(&Size, &Ty)> {
    if let Ty::Array(n, t) = &e.ty { Some((n, t)) } else { None }
}

/// Returns the arrays with names, and the inputs, that an expression reads.
fn arrays(e: &Ex) -> BTreeSet<(Option<Var>, Option<Arc<str>>)> {
    let is_array = e.ty.has_array();
    match &e.kind {
        Kind::Var(v) if is_array => [(Some(*v), None)].into(),
        Kind::Input(name) => [(None, Some(name.clone()))].into(),
        _ => e.parts().iter().flat_map(|(_, part)| arrays(part)).collect(),
    }
}

/// Returns the two passes as one.
fn joined(a: &Ex, b: &Ex, fresh: &mut dyn FnMut() -> Var) -> Option<Ex> {
    let (Kind::Prim(prim, fs, sizes, xs), Kind::Prim(_, gs, _, ys)) = (&a.kind, &b.kind) else {
        return None;
    };
    let ([f], [g]) = (&fs[..], &gs[..]) else { return None };
    let op = side_by_side(f, g, fresh)?;
    // The bins are the same.
    let mut args = xs.clone();
    *args.first_mut()? = Ex::pair(xs.first()?.clone(), ys.first()?.clone());
    *args.last_mut()? = xs.last()?.clone().zip(ys.last()?.clone())?;
    let ((n, t), (_, u)) = (elements(a)?, elements(b)?);
    let ty = Ty::array(n, &Ty::pair(t, u));
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
