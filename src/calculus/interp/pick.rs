//! Code for chosen elements of a result that computes little else.
//!
//! A choice of indices for some leading dimensions is pushed from the result inwards, through maps and
//! rearrangements, as far as that saves work. Beyond that point, the whole value is computed and the elements
//! are selected from it. Every chosen element is computed by the same operations in the same order.

use super::code::{Axis, Code, Map, Site, Values, View};
use super::demand::narrowed;
use crate::calculus::value::{Cell, Leaf, Shape, Value, padded};
use std::ops::Range;

/// A part of a result whose arrays share their leading dimensions. Results other than tuples are a single
/// part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The components of the part.
    pub components: Range<usize>,
    /// The lengths that the components share, outermost first; none for scalars.
    pub lengths: Vec<usize>,
}

/// Returns the length and the row of an array, or of a tuple of arrays with equal lengths.
fn row(shape: &Shape) -> Option<(usize, Shape)> {
    match shape {
        Shape::Array(n, t) => Some((*n, (**t).clone())),
        Shape::Tuple(ts) => {
            let rows: Vec<_> = ts.iter().map(row).collect::<Option<_>>()?;
            let n = rows.first()?.0;
            let equal = rows.iter().all(|(m, _)| *m == n);
            equal.then(|| (n, Shape::Tuple(rows.into_iter().map(|(_, t)| t).collect())))
        }
        Shape::Scalar(_) | Shape::Vector(..) => None,
    }
}

/// Returns the leading lengths that all components of a value of this shape share, outermost first.
pub fn shared_lengths(shape: &Shape) -> Vec<usize> {
    let (mut lengths, mut inner) = (vec![], shape.clone());
    while let Some((n, t)) = row(&inner) {
        lengths.push(n);
        inner = t;
    }
    lengths
}

/// Returns the components of a tuple that are chosen from separately.
fn split(shape: &Shape) -> Option<&[Shape]> {
    match shape {
        Shape::Tuple(ts) if !shape.is_scalar() && row(shape).is_none() => Some(ts),
        _ => None,
    }
}

/// Returns the parts of a result of this shape, in order.
pub fn parts(shape: &Shape) -> Vec<Part> {
    fn visit(shape: &Shape, from: usize, out: &mut Vec<Part>) {
        if let Some(ts) = split(shape) {
            let mut from = from;
            for t in ts {
                visit(t, from, out);
                from += t.width();
            }
            return;
        }
        out.push(Part { components: from..from + shape.width(), lengths: shared_lengths(shape) });
    }
    let mut out = vec![];
    visit(shape, 0, &mut out);
    out
}

/// Returns the code of a result of this shape with `axes` chosen from each of its [`parts`].
pub fn choose(v: Values, shape: &Shape, axes: &[Vec<Axis>]) -> Values {
    if axes.iter().flatten().all(Option::is_none) {
        return v;
    }
    choose_each(v, shape, &mut axes.iter())
}

fn choose_each(v: Values, shape: &Shape, axes: &mut dyn Iterator<Item = &Vec<Axis>>) -> Values {
    let Some(ts) = split(shape) else {
        return pick(v, axes.next().map_or(&[], Vec::as_slice));
    };
    match v {
        Values::Let(b) => {
            let (place, code, v) = *b;
            Values::Let(Box::new(narrowed(place, code, choose_each(v, shape, axes))))
        }
        Values::Tuple(vs) if vs.len() == ts.len() => {
            Values::Tuple(vs.into_iter().zip(ts).map(|(v, t)| choose_each(v, t, axes)).collect())
        }
        // Compute the value again for each part: the picked elements of each may need little of it.
        v => {
            let mut from = 0;
            let each = ts.iter().map(|t| {
                let range = from..from + t.width();
                from = range.end;
                choose_each(part(v.clone(), range), t, axes)
            });
            Values::Tuple(each.collect())
        }
    }
}

/// Returns the code of the components `range`, without computing the others where possible.
fn part(v: Values, range: Range<usize>) -> Values {
    match v {
        Values::Let(b) => {
            let (place, code, v) = *b;
            Values::Let(Box::new((place, code, part(v, range))))
        }
        Values::If(b) => {
            let (c, x, y) = *b;
            Values::If(Box::new((c, part(x, range.clone()), part(y, range))))
        }
        Values::View(view, v, site) => Values::View(view, Box::new(part(*v, range)), site),
        Values::Part(v, outer) => {
            let range = outer.start + range.start..outer.start + range.end;
            part(*v, range)
        }
        Values::Map(mut m) if matches!(m.body, Code::Value(_)) => {
            m.row = m.row.get(range.clone()).unwrap_or_default().to_vec();
            if let Code::Value(body) = m.body {
                m.body = Code::Value(part(body, range));
            }
            Values::Map(m)
        }
        Values::Tuple(vs) => {
            let mut from = 0;
            for v in &vs {
                let Some(n) = width(v) else { break };
                if from <= range.start && range.end <= from + n {
                    return part(v.clone(), range.start - from..range.end - from);
                }
                from += n;
            }
            Values::Part(Box::new(Values::Tuple(vs)), range)
        }
        Values::Given(v) => Values::Given(v.part(range)),
        v if width(&v) == Some(range.len()) => v,
        v => Values::Part(Box::new(v), range),
    }
}

/// Returns the number of components, if the code shows it.
fn width(v: &Values) -> Option<usize> {
    match v {
        Values::Given(v) => Some(v.leaves().len()),
        Values::Part(_, range) => Some(range.len()),
        Values::Tuple(vs) => vs.iter().map(width).sum(),
        Values::Pack(_, _, types) => Some(types.len()),
        Values::If(b) => width(&b.1),
        Values::Let(b) => width(&b.2),
        Values::View(_, v, _) => width(v),
        Values::Pick(v, _) => width(v),
        Values::Concat(b, _) | Values::PadWith(b, ..) => width(&b.1),
        Values::Row(b, ..) => width(&b.0),
        Values::Gather(b, _) => width(&b.0),
        Values::Scatter(b, _) => width(&b.0),
        Values::Iota(..) => Some(1),
        Values::Map(m) => Some(m.row.len()),
        Values::Scan(s) => Some(s.row.len()),
        Values::Histogram(h) => Some(h.row.len()),
        Values::CountingSort(_, _, b, _) => Some(1 + width(&b.1)?),
        Values::Slot(..) | Values::Loop(_) | Values::Fold(_) => None,
    }
}

/// Returns the leading lengths that the code shows, maybe not all of them.
pub fn lengths(v: &Values) -> Vec<usize> {
    let under = |n: usize, v: &Values, skip: usize| {
        let mut out = vec![n];
        out.extend(lengths(v).into_iter().skip(skip));
        out
    };
    let component = |ty: &[(_, Vec<usize>)]| ty.first().map_or_else(Vec::new, |r| r.1.clone());
    match v {
        Values::Given(v) => v.leaves().first().map_or_else(Vec::new, Leaf::shape),
        // Components may differ in lengths that they do not share.
        Values::Part(..) | Values::Loop(_) | Values::Fold(_) | Values::CountingSort(..) => vec![],
        Values::Slot(_, lengths) => lengths.to_vec(),
        Values::Pack(..) => vec![],
        // The longest list that is known: callers only use shared lengths.
        Values::Tuple(vs) => vs.iter().map(lengths).max_by_key(Vec::len).unwrap_or_default(),
        Values::If(b) => lengths(&b.1),
        Values::Let(b) => lengths(&b.2),
        Values::View(view, v, _) => match view {
            View::Split(k, m) | View::Slide(k, _, m) => {
                let mut out = vec![*m];
                out.extend(under(*k, v, 1));
                out
            }
            View::Join => match lengths(v).as_slice() {
                [m, k, rest @ ..] => [&[m.saturating_mul(*k)], rest].concat(),
                _ => vec![],
            },
            View::Transpose => match lengths(v).as_slice() {
                [n, m, rest @ ..] => [&[*m, *n], rest].concat(),
                _ => vec![],
            },
            View::Inward(k) | View::Outward(k) => lengths(v).into_iter().take(*k).collect(),
            View::Reverse | View::Stride(_) | View::Rotate(_) => lengths(v),
            View::Slice(_, n) | View::PadLast(n) | View::Pad(_, _, n) => under(*n, v, 1),
            View::Replicate(n) => under(*n, v, 0),
            View::ReplicateRows(n) => match lengths(v).as_slice() {
                [m, rest @ ..] => [&[*m, *n], rest].concat(),
                [] => vec![],
            },
            View::Only => inside(lengths(v)),
        },
        Values::Pick(v, axes) => {
            let mut out = lengths(v);
            for (n, axis) in out.iter_mut().zip(axes) {
                if let Some(at) = axis {
                    *n = at.len();
                }
            }
            out
        }
        Values::Concat(b, _) => match (lengths(&b.0).first(), lengths(&b.1).first()) {
            (Some(n), Some(m)) => under(n + m, &b.0, 1),
            _ => vec![],
        },
        Values::PadWith(b, _, m, _) => under(*m, &b.1, 1),
        Values::Row(b, ..) => inside(lengths(&b.0)),
        Values::Gather(b, _) => match lengths(&b.1).first() {
            Some(n) => under(*n, &b.0, 1),
            None => vec![],
        },
        Values::Scatter(b, _) => lengths(&b.0),
        Values::Iota(n, _) => vec![*n],
        Values::Map(m) => [&[m.n], &component(&m.row)[..]].concat(),
        Values::Scan(s) => [&[s.fold.n], &component(&s.row)[..]].concat(),
        Values::Histogram(h) => [&[h.m], &component(&h.row)[..]].concat(),
    }
}

/// Returns all lengths but the first.
fn inside(mut lengths: Vec<usize>) -> Vec<usize> {
    if lengths.is_empty() { lengths } else { lengths.split_off(1) }
}

/// Returns the value with only the chosen indices in its leading dimensions, which all components share.
pub fn pick(v: Values, axes: &[Axis]) -> Values {
    let used = axes.iter().rposition(Option::is_some).map_or(0, |i| i + 1);
    let axes = &axes[..used];
    let Some((first, rest)) = axes.split_first() else { return v };
    match v {
        Values::Tuple(vs) => Values::Tuple(vs.into_iter().map(|v| pick(v, axes)).collect()),
        Values::If(b) => {
            let (c, x, y) = *b;
            Values::If(Box::new((c, pick(x, axes), pick(y, axes))))
        }
        Values::Let(b) => {
            let (place, code, v) = *b;
            Values::Let(Box::new(narrowed(place, code, pick(v, axes))))
        }
        Values::Map(m) => map(*m, first, rest),
        Values::Part(v, range) => match part(*v, range) {
            // A map of scalars: its body has no dimensions to choose from.
            Values::Part(v, range) if matches!(*v, Values::Map(_)) && rest.is_empty() => {
                Values::Part(Box::new(pick(*v, axes)), range)
            }
            v @ Values::Part(..) => taken(v, axes),
            v => pick(v, axes),
        },
        Values::View(view, v, site) => through(view, *v, axes, site),
        Values::Concat(b, site) => concat(*b, first, rest, site),
        Values::PadWith(b, l, m, site) => pad_with(*b, l, m, first, rest, site),
        Values::Row(b, ty, site) => {
            let (v, i) = *b;
            Values::Row(Box::new((pick(v, &behind(None, axes)), i)), ty, site)
        }
        Values::Gather(b, site) => {
            let (xs, is) = *b;
            let xs = pick(xs, &behind(None, rest));
            Values::Gather(Box::new((xs, pick(is, std::slice::from_ref(first)))), site)
        }
        // The chosen numbers are known; all of them would cost as much as a long map.
        Values::Iota(n, ty) => match first.as_deref() {
            Some(at) if at.iter().all(|i| *i < n) => {
                let numbers = at.iter().map(|i| Cell::from_int(ty, *i as i128));
                Values::Given(Value::cells(ty, &[at.len()], numbers))
            }
            _ => taken(Values::Iota(n, ty), axes),
        },
        v => taken(v, axes),
    }
}

fn behind(first: Axis, rest: &[Axis]) -> Vec<Axis> {
    let mut out = vec![first];
    out.extend_from_slice(rest);
    out
}

/// Selects elements of the whole value.
fn taken(v: Values, axes: &[Axis]) -> Values {
    Values::Pick(Box::new(v), axes.to_vec())
}

/// Returns the rows `at` of a value that has the rows `sorted`, which are ascending and distinct.
fn arranged(v: Values, sorted: &[usize], at: &[usize]) -> Values {
    if sorted == at {
        return v;
    }
    let end = sorted.last().map_or(0, |i| i + 1);
    let places: Axis = if is_dense(end, at.len()) {
        let mut place = vec![0; end];
        sorted.iter().enumerate().for_each(|(k, i)| place[*i] = k);
        Some(at.iter().map(|i| place.get(*i).copied().unwrap_or_default()).collect())
    } else {
        let find = |i: &usize| sorted.binary_search(i).unwrap_or_default();
        Some(at.iter().map(find).collect())
    };
    taken(v, &[places])
}

/// Whether so many indices below `end` are marked in an array faster than they are sorted. Windows that overlap have far more
/// indices than there are elements.
fn is_dense(end: usize, indices: usize) -> bool {
    end / 4 < indices
}

/// Returns the indices in ascending order, without repetitions.
pub(super) fn sorted(at: impl IntoIterator<Item = usize>) -> Vec<usize> {
    let mut out: Vec<usize> = at.into_iter().collect();
    let end = out.iter().max().map_or(0, |i| i + 1);
    if is_dense(end, out.len()) {
        let mut marked = vec![false; end];
        out.iter().for_each(|i| marked[*i] = true);
        return marked.iter().enumerate().filter_map(|(i, m)| m.then_some(i)).collect();
    }
    out.sort_unstable();
    out.dedup();
    out
}

/// As [`pick`], for rows that may repeat: each is computed once.
fn rows(v: Values, at: &[usize], rest: &[Axis]) -> Values {
    let once = sorted(at.iter().copied());
    arranged(pick(v, &behind(Some(once.as_slice().into()), rest)), &once, at)
}

fn map(mut m: Map, first: &Axis, rest: &[Axis]) -> Values {
    if !rest.is_empty() && matches!(m.body, Code::Cells(_)) {
        return taken(Values::Map(Box::new(m)), &behind(first.clone(), rest));
    }
    if let Some(at) = first {
        m.n = at.len();
        m.xs = pick(m.xs, std::slice::from_ref(first));
    }
    if let Code::Value(body) = m.body {
        m.body = Code::Value(pick(body, rest));
        for (_, dims) in &mut m.row {
            for (n, axis) in dims.iter_mut().zip(rest) {
                if let Some(at) = axis {
                    *n = at.len();
                }
            }
        }
    }
    Values::Map(Box::new(m))
}

/// Returns the chosen elements of a view of `v`.
fn through(view: View, v: Values, axes: &[Axis], site: Site) -> Values {
    let seen = |view: View, v: Values| Values::View(view, Box::new(v), site);
    let first = axes.first().cloned().flatten();
    let second = axes.get(1).cloned().flatten();
    let (rest, inner) = (axes.get(1..).unwrap_or_default(), axes.get(2..).unwrap_or_default());
    let or_all = |axis: Axis, n: usize| axis.unwrap_or_else(|| (0..n).collect());
    match view {
        View::Split(..) | View::Slide(..) if first.is_none() && second.is_none() => {
            seen(view, pick(v, &behind(None, inner)))
        }
        View::Split(k, m) | View::Slide(k, _, m) => {
            let step = if let View::Slide(_, s, _) = view { s } else { k };
            let (chunks, places) = (or_all(first, m), or_all(second, k));
            let at: Vec<usize> =
                chunks.iter().flat_map(|i| places.iter().map(move |j| i * step + j)).collect();
            seen(View::Split(places.len(), chunks.len()), rows(v, &at, inner))
        }
        View::Join => {
            let Some(at) = first else {
                let under = behind(None, &behind(None, rest));
                return seen(view, pick(v, &under));
            };
            let Some(k) = lengths(&v).get(1).copied().filter(|k| *k > 0) else {
                return taken(seen(view, v), axes);
            };
            let (is, js) = (sorted(at.iter().map(|i| i / k)), sorted(at.iter().map(|i| i % k)));
            let there: Vec<usize> =
                is.iter().flat_map(|i| js.iter().map(move |j| i * k + j)).collect();
            let under = behind(Some(is.into()), &behind(Some(js.into()), rest));
            arranged(seen(view, pick(v, &under)), &there, &at)
        }
        View::Transpose => seen(view, pick(v, &behind(second, &behind(first, inner)))),
        View::Inward(k) | View::Outward(k) => {
            if axes.len() <= k {
                seen(view, pick(v, axes))
            } else {
                taken(seen(view, v), axes)
            }
        }
        View::Replicate(n) => {
            let n = first.map_or(n, |at| at.len());
            seen(View::Replicate(n), pick(v, rest))
        }
        View::ReplicateRows(n) => {
            let n = second.map_or(n, |at| at.len());
            seen(View::ReplicateRows(n), pick(v, &behind(first, inner)))
        }
        View::Only => pick(v, &behind(None, axes)),
        View::Reverse
        | View::Slice(..)
        | View::Stride(_)
        | View::Rotate(_)
        | View::Pad(..)
        | View::PadLast(_) => {
            let Some(at) = first else { return seen(view, pick(v, &behind(None, rest))) };
            let n = lengths(&v).first().copied();
            let from: Option<Vec<usize>> = at.iter().map(|i| source(view, *i, n)).collect();
            match from {
                Some(from) => rows(v, &from, rest),
                None => taken(seen(view, v), axes),
            }
        }
    }
}

/// Returns the index of the element (of `n`) that a rearranging view has at `i`.
fn source(view: View, i: usize, n: Option<usize>) -> Option<usize> {
    let n = n.filter(|n| *n > 0);
    match view {
        View::Slice(from, _) => Some(from + i),
        View::Reverse => n?.checked_sub(i + 1),
        View::Rotate(k) => Some((i + k % n?) % n?),
        View::Stride(s) => {
            let m = n?.checked_div(s)?;
            n?.is_multiple_of(s).then(|| i / m + s * (i % m))
        }
        View::Pad(mode, l, _) => padded(mode, i, l, n?),
        View::PadLast(_) => Some(i.min(n? - 1)),
        _ => None,
    }
}

fn concat((x, y): (Values, Values), first: &Axis, rest: &[Axis], site: Site) -> Values {
    let both = |x: Values, y: Values| Values::Concat(Box::new((x, y)), site);
    let Some(at) = first else {
        let under = behind(None, rest);
        return both(pick(x, &under), pick(y, &under));
    };
    let Some(n) = lengths(&x).first().copied() else {
        return taken(both(x, y), &behind(first.clone(), rest));
    };
    let there = sorted(at.iter().copied());
    let (left, right) = there.split_at(there.partition_point(|i| *i < n));
    let right = right.iter().map(|i| i - n).collect();
    let x = pick(x, &behind(Some(left.into()), rest));
    let y = pick(y, &behind(Some(right), rest));
    arranged(both(x, y), &there, at)
}

fn pad_with(
    (z, x): (Values, Values),
    l: usize,
    m: usize,
    first: &Axis,
    rest: &[Axis],
    site: Site,
) -> Values {
    let Some(at) = first else {
        let both = (pick(z, rest), pick(x, &behind(None, rest)));
        return Values::PadWith(Box::new(both), l, m, site);
    };
    let Some(n) = lengths(&x).first().copied() else {
        let whole = Values::PadWith(Box::new((z, x)), l, m, site);
        return taken(whole, &behind(first.clone(), rest));
    };
    let there = sorted(at.iter().copied());
    let before = there.partition_point(|i| *i < l);
    let inside = there.iter().filter(|i| (l..l + n).contains(i)).map(|i| i - l).collect();
    let both = (pick(z, rest), pick(x, &behind(Some(inside), rest)));
    arranged(Values::PadWith(Box::new(both), before, there.len(), site), &there, at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_among_few_and_among_many_indices() {
        for at in [vec![5, 1, 5, 3, 1], vec![1_000_000, 3, 1_000_000]] {
            let once = sorted(at.iter().copied());
            assert!(once.is_sorted_by(|a, b| a < b));
            let Values::Pick(_, axes) = arranged(Values::Slot(0, [].into()), &once, &at) else {
                panic!("nothing is picked");
            };
            let places = axes[0].as_ref().expect("places");
            assert_eq!(places.iter().map(|k| once[*k]).collect::<Vec<_>>(), at);
        }
    }
}
