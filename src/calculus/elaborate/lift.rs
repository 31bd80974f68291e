//! Lifts views out of a map: `map (h . distl . fork f (const B)) . A = map h . cross . fork (map f . A) B`.
//!
//! A value that does not vary with the outer map becomes one side of a `cross`, even if it is only a part of
//! what the body reads: then the parts are lifted side by side and zipped. Only forms that gain a `cross`
//! change; any other body stays as it is.

use super::build::{Built, bimap, compose, elements, factor, fork, map, proj, redomain, view};
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

/// What becomes of a value of which some parts are arrays that are the same for all elements.
enum Shape {
    /// A part of what varies, by the projections that give it.
    Varying(Vec<bool>),
    /// A part of the arrays.
    Fixed(Vec<bool>),
    Pair(Box<Shape>, Box<Shape>),
}

impl Shape {
    /// Returns the function from `(arrays, (varying, b))` to `(value, b)`.
    fn of_element(&self, element: &Ty) -> Built {
        let inner = proj(element, true)?;
        let b = compose(&proj(&inner.ty().cod, true)?, &inner)?;
        let varying = compose(&proj(&inner.ty().cod, false)?, &inner)?;
        fork(&self.of(&varying, &proj(element, false)?)?, &b)
    }

    fn of(&self, varying: &Term, arrays: &Term) -> Built {
        let part = |path: &[bool], of: &Term| {
            path.iter().try_fold(of.clone(), |t, second| compose(&proj(&t.ty().cod, *second)?, &t))
        };
        match self {
            Shape::Varying(path) => part(path, varying),
            Shape::Fixed(path) => part(path, arrays),
            Shape::Pair(a, b) => fork(&a.of(varying, arrays)?, &b.of(varying, arrays)?),
        }
    }

    /// Puts a projection in front of those of the parts that vary (`of_varying`), or of the arrays.
    fn under(&mut self, of_varying: bool, second: bool) {
        match self {
            Shape::Varying(path) if of_varying => path.insert(0, second),
            Shape::Fixed(path) if !of_varying => path.insert(0, second),
            Shape::Varying(_) | Shape::Fixed(_) => {}
            Shape::Pair(a, b) => {
                a.under(of_varying, second);
                b.under(of_varying, second);
            }
        }
    }
}

/// Returns the parts of a value that vary, and the arrays in it that are the same for all elements, as far as there are any. If
/// the value is stored, each element would have a copy of these.
fn apart(a: &Term, source: &Source) -> Result<(Option<Term>, Option<Term>, Shape), TypeError> {
    if let Ty::Array(..) = a.ty().cod
        && let Some(fixed) = source.invariant(a)?
    {
        return Ok((None, Some(fixed), Shape::Fixed(vec![])));
    }
    let chain = a.chain();
    let sides = match (chain[0].op(), &a.ty().cod) {
        (Op::Fork | Op::Bimap, _) => {
            let after = |f: &Term| match chain.get(1..) {
                None | Some([]) => Ok(f.clone()),
                Some(rest) => compose(f, &recompose(rest)?),
            };
            let [x, y] = chain[0].args() else {
                return Ok((Some(a.clone()), None, Shape::Varying(vec![])));
            };
            match chain[0].op() {
                Op::Fork => Some((after(x)?, after(y)?)),
                _ => {
                    let dom = &chain[0].ty().dom;
                    let side = |f: &Term, second| after(&compose(f, &proj(dom, second)?)?);
                    Some((side(x, false)?, side(y, true)?))
                }
            }
        }
        // The element itself, or a part of it.
        (_, t @ Ty::Pair(..)) if t.has_array() && a.is_view() => {
            let side = |second| compose(&proj(t, second)?, a);
            Some((side(false)?, side(true)?))
        }
        _ => None,
    };
    let Some((x, y)) = sides else { return Ok((Some(a.clone()), None, Shape::Varying(vec![]))) };
    let (vx, fx, mut sx) = apart(&x, source)?;
    let (vy, fy, mut sy) = apart(&y, source)?;
    let mut joined = |x: Option<Term>, y: Option<Term>, of_varying: bool| match (x, y) {
        (Some(x), Some(y)) => {
            sx.under(of_varying, false);
            sy.under(of_varying, true);
            fork(&x, &y).map(Some)
        }
        (x, y) => Ok(x.or(y)),
    };
    let (varying, arrays) = (joined(vx, vy, true)?, joined(fx, fy, false)?);
    Ok((varying, arrays, Shape::Pair(Box::new(sx), Box::new(sy))))
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
        let rest = match outer {
            [] => Term::id(&distl.ty().cod),
            _ => recompose(outer)?,
        };
        let (varying, arrays, shape) = apart(&a, source)?;
        let (Some(varying), Some(arrays)) = (varying, arrays) else {
            let lifted = view(Op::Cross, &fork(&source.varying(&a)?, &fixed)?)?;
            return Ok(Some((rest, lifted)));
        };
        // Each row of the cross gets the arrays that are the same for all, and its elements get their parts back.
        let crossed = view(Op::Cross, &fork(&source.varying(&varying)?, &fixed)?)?;
        let lifted = view(Op::Distl, &fork(&arrays, &crossed)?)?;
        let (m, _) = elements(&distl.ty().cod)?;
        let row = view(Op::Distl, &Term::id(&elements(&lifted.ty().cod)?.1))?;
        let element = elements(&row.ty().cod)?.1;
        let rebuilt = map(MapKind::Plain, &m, &shape.of_element(&element)?)?;
        return Ok(Some((compose(&rest, &compose(&rebuilt, &row)?)?, lifted)));
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
