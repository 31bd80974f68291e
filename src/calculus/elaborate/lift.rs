//! Lifts views out of a map: `map (h . distl . fork f (const B)) . A = map h . cross . fork (map f . A) B`.
//!
//! A value that does not vary with the outer map becomes one side of a `cross`, even if it is only a part of
//! what the body reads: then the parts are lifted side by side and zipped. Only forms that gain a `cross`
//! change; any other body stays as it is.

use super::build::{Built, bimap, compose, factor, fork, map, proj, redomain, view};
use crate::calculus::size::Size;
use crate::calculus::term::{MapKind, Op, Term, TypeError};
use crate::calculus::ty::Ty;

/// Returns `map body . array`, with a `cross` for every array in `body` that is the same in each step.
pub(super) fn map_over(n: &Size, body: &Term, array: &Term) -> Built {
    // Elements made by `distl` share their first component.
    let chain = array.chain();
    let shared = chain.first().filter(|t| *t.op() == Op::Distl);
    let (source, feed) = match shared {
        Some(distl) => {
            let feed = match chain.get(1..).unwrap_or_default() {
                [] => Term::id(&distl.ty().dom),
                rest => recompose(rest)?,
            };
            (Source { n: n.clone(), dom: distl.ty().dom.clone(), distl: Some(distl.clone()) }, feed)
        }
        None => {
            let dom = array.ty().cod.clone();
            (Source { n: n.clone(), dom, distl: None }, array.clone())
        }
    };
    match split(body, &source)? {
        Some((rest, lifted)) => {
            let lifted = compose(&lifted, &feed)?;
            compose(&map(MapKind::Plain, n, &rest)?, &lifted)
        }
        None => compose(&map(MapKind::Plain, n, body)?, array),
    }
}

fn recompose(factors: &[Term]) -> Built {
    let mut rev = factors.iter().rev();
    let Some(last) = rev.next() else {
        return Err(TypeError("an empty composition".to_owned()));
    };
    rev.try_fold(last.clone(), |acc, f| f.after(&acc))
}

/// The source of a map's elements: an array, or the pairs of one value with each element of an array.
struct Source {
    n: Size,
    dom: Ty,
    distl: Option<Term>,
}

impl Source {
    /// Applies `f` to all elements.
    fn varying(&self, f: &Term) -> Built {
        let Some(distl) = &self.distl else {
            return map(MapKind::Plain, &self.n, f);
        };
        match factor(f, true)? {
            Some(inner) if !f.is_constant() => {
                compose(&map(MapKind::Plain, &self.n, &inner)?, &proj(&self.dom, true)?)
            }
            _ => compose(&map(MapKind::Plain, &self.n, f)?, distl),
        }
    }

    /// Returns the value of `f` if it is the same for all elements.
    fn invariant(&self, f: &Term) -> Result<Option<Term>, TypeError> {
        if f.is_constant() {
            return redomain(f, &self.dom).map(Some);
        }
        if self.distl.is_none() {
            return Ok(None);
        }
        match factor(f, false)? {
            Some(inner) => compose(&inner, &proj(&self.dom, false)?).map(Some),
            None => Ok(None),
        }
    }
}

type Split = Option<(Term, Term)>;

/// Returns `(rest, lifted)` with `map body = map rest . lifted` over the source, if this gains a `cross`.
fn split(body: &Term, source: &Source) -> Result<Split, TypeError> {
    let chain = body.chain();
    let Some((last, before)) = chain.split_last() else {
        return Ok(None);
    };
    let (a, b) = match last.op() {
        Op::Fork => (last.args()[0].clone(), last.args()[1].clone()),
        Op::Bimap => {
            let dom = &last.ty().dom;
            let a = compose(&last.args()[0], &proj(dom, false)?)?;
            (a, compose(&last.args()[1], &proj(dom, true)?)?)
        }
        _ => return Ok(None),
    };
    if let Some((distl, outer)) = before.split_last()
        && *distl.op() == Op::Distl
        && !a.is_constant()
        && let Some(fixed) = source.invariant(&b)?
    {
        let lifted = view(Op::Cross, &fork(&source.varying(&a)?, &fixed)?)?;
        let rest = match outer {
            [] => Term::id(&distl.ty().cod),
            _ => recompose(outer)?,
        };
        return Ok(Some((rest, lifted)));
    }
    let Some((rest, lifted)) = sides(&a, &b, source)? else {
        return Ok(None);
    };
    let rest = match before {
        [] => rest,
        _ => compose(&recompose(before)?, &rest)?,
    };
    Ok(Some((rest, lifted)))
}

/// As [`split`], for `fork a b`.
fn sides(a: &Term, b: &Term, source: &Source) -> Result<Split, TypeError> {
    let (left, right) = (split(a, source)?, split(b, source)?);
    if left.is_none() && right.is_none() {
        return Ok(None);
    }
    // A constant needs no lifting: it is constant after the lifted part too.
    match (left, right) {
        (Some((r, l)), None) if b.is_constant() => {
            let fixed = redomain(b, &r.ty().dom)?;
            Ok(Some((fork(&r, &fixed)?, l)))
        }
        (None, Some((r, l))) if a.is_constant() => {
            let fixed = redomain(a, &r.ty().dom)?;
            Ok(Some((fork(&fixed, &r)?, l)))
        }
        // What computes the other part stays with what uses it.
        (Some(_), None) if !b.is_view() => Ok(None),
        (None, Some(_)) if !a.is_view() => Ok(None),
        (left, right) => {
            let whole = |t: &Term, s: Split| match s {
                Some(s) => Ok(s),
                None => Ok((Term::id(&t.ty().cod), source.varying(t)?)),
            };
            let ((ra, la), (rb, lb)) = (whole(a, left)?, whole(b, right)?);
            Ok(Some((bimap(&ra, &rb)?, view(Op::Zip, &fork(&la, &lb)?)?)))
        }
    }
}
