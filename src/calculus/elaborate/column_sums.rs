//! Reductions of long columns in parts, in the function of a map: `map (map (reduce op z . map f) . transpose)` becomes
//! `map (map (reduce op z) . transpose) . map (map (map (reduce op z . map f) . transpose) . split m)`.
//!
//! The elements of a column are far apart, so neighbouring work-items take neighbouring columns. If the matrices of a batch have fewer
//! columns than a device has work-items in flight, a work-item for each part of each column hides the time of the loads. Outside of
//! maps, rules cut the columns (`reduce-rows`). In the function of a map, what they cut stays in one kernel: the form has a map
//! for the parts of all matrices, and one for what is made of them. It is inserted into the e-graph as an equal.

use super::build::{self, Built};
use super::parts::dimension;
use crate::calculus::size::{Size, SizeEnv};
use crate::calculus::term::{MapKind, Op, Term, TypeError};

/// Columns that are enough for a device.
const ENOUGH: u64 = 1 << 17;

/// The least length of a column that is cut.
const LONG: u64 = 256;

/// The least number of elements that a work-item loads one after the other.
const PART: u64 = 64;

/// Work-items that are enough for a device.
const ITEMS: u64 = 1 << 20;

/// Returns the term with the reductions of long columns in its maps in parts, if it has any. The number of parts and their length
/// become dimensions of their own, whose values are added to the environment.
///
/// # Errors
/// Never for a well-typed term; building the parts repeats the type checks.
pub(super) fn in_parts(t: &Term, env: &mut SizeEnv) -> Result<Option<Term>, TypeError> {
    let parted = whole(within(t, None, env)?)?;
    Ok((parted != *t).then_some(parted))
}

/// Returns stages that follow each other as one term.
fn whole(stages: Vec<Term>) -> Built {
    let mut stages = stages.into_iter();
    let first = stages.next().expect("invariant: a term has a stage");
    stages.try_fold(first, |done, stage| build::compose(&stage, &done))
}

/// Returns the stages of a term, the first one first: it ends a stage with the parts of columns. The term is applied that many times, if it is
/// in the function of a map.
fn within(t: &Term, times: Option<u64>, env: &mut SizeEnv) -> Result<Vec<Term>, TypeError> {
    let (mut stages, mut done) = (vec![], Term::id(&t.ty().dom));
    for f in t.chain().into_iter().rev() {
        let next = match f.op() {
            Op::Map(MapKind::Plain) => match parts_of(&f, &done, times, env)? {
                Some(parted) => parted,
                None => of_map(&f, &done, times, env)?,
            },
            Op::Fork | Op::Bimap | Op::Fold | Op::While | Op::ToMem(_) => {
                let f = build::each_arg(&f, |a| whole(within(a, times, env)?))?;
                vec![build::compose(&f, &done)?]
            }
            _ => vec![build::compose(&f, &done)?],
        };
        stages.extend(next);
        done = stages.pop().expect("invariant: a term has a stage");
    }
    stages.push(done);
    Ok(stages)
}

/// Returns the stages of `f . done`, where `f` is a map: those of its function are maps of their own.
fn of_map(
    f: &Term,
    done: &Term,
    times: Option<u64>,
    env: &mut SizeEnv,
) -> Result<Vec<Term>, TypeError> {
    let n = &f.sizes()[0];
    let count = n.eval(env).unwrap_or(u64::MAX).saturating_mul(times.unwrap_or(1));
    // Matrices may be transposed by a map of its own.
    let last = done.chain().swap_remove(0);
    let turns = *last.op() == Op::Map(MapKind::Plain) && last.is_view() && turns(&last);
    let together = match turns {
        true => Some((build::compose(&f.args()[0], &last.args()[0])?, build::rest(done)?)),
        false => None,
    };
    for (inner, before) in together.into_iter().chain([(f.args()[0].clone(), done.clone())]) {
        let stages = within(&inner, Some(count), env)?;
        let [first, others @ ..] = &stages[..] else { continue };
        if others.is_empty() {
            continue;
        }
        let mut out = vec![build::compose(&build::map(MapKind::Plain, n, first)?, &before)?];
        for stage in others {
            out.push(build::map(MapKind::Plain, n, stage)?);
        }
        return Ok(out);
    }
    let inner = whole(within(&f.args()[0], Some(count), env)?)?;
    Ok(vec![build::compose(&build::map(MapKind::Plain, n, &inner)?, done)?])
}

/// Whether a view turns a matrix, and pairs no rows with each other.
fn turns(view: &Term) -> bool {
    let (mut turns, mut crosses) = (false, false);
    view.visit(&mut |t| {
        turns |= *t.op() == Op::Transpose;
        crosses |= *t.op() == Op::Cross;
    });
    turns && !crosses
}

/// Returns `f . before` in stages, where `f` reduces columns: `map (then . reduce op z . map of . first)`, and `before` ends with a view that
/// turns a matrix. `None` if it is something else, or if parts do not pay.
fn parts_of(
    f: &Term,
    before: &Term,
    times: Option<u64>,
    env: &mut SizeEnv,
) -> Result<Option<Vec<Term>>, TypeError> {
    let (Some(times), w) = (times, &f.sizes()[0]) else { return Ok(None) };
    let chain = f.args()[0].chain();
    let Some(at) = chain.iter().position(build::is_associative) else { return Ok(None) };
    let elementwise = |f: &&Term| {
        let is_map = *f.op() == Op::Map(MapKind::Plain) && !build::reduces(f) && !f.is_view();
        is_map && !f.args()[0].ty().dom.has_array() && !f.args()[0].ty().cod.has_array()
    };
    let of = chain[at + 1..].iter().take_while(elementwise).count();
    let (of, first) = chain[at + 1..].split_at(of);
    let views = before.chain();
    let views: Vec<Term> = views.into_iter().take_while(Term::is_view).collect();
    if !first.iter().all(Term::is_view) || views.is_empty() || !turns(&Term::of_chain(&views)?) {
        return Ok(None);
    }
    let rows = build::view(Op::Transpose, &build::mapped(w, first, before)?)?;
    let (h, row) = build::elements(&rows.ty().cod)?;
    let (_, element) = build::elements(&row)?;
    let (Ok(length), Ok(columns)) = (h.eval(env), w.eval(env)) else { return Ok(None) };
    let columns = columns.saturating_mul(times);
    if length < LONG || columns > ENOUGH || element.has_array() {
        return Ok(None);
    }
    let (reduce, then) = (&chain[at], &chain[..at]);
    let functions: Vec<Term> = of.iter().map(|f| f.args()[0].clone()).collect();
    let partial = partials(&rows, reduce, &functions, columns, env)?;
    // What is made of the parts may have long columns, too.
    let turned = Term::on(Op::Transpose, &[], &partial.ty().cod, vec![])?;
    let (_, column) = build::elements(&turned.ty().cod)?;
    let total = Term::on(reduce.op().clone(), &[], &column, reduce.args().to_vec())?;
    let total = then.iter().rev().try_fold(total, |done, f| build::compose(f, &done))?;
    let total = build::map(MapKind::Plain, w, &total)?;
    let last = match parts_of(&total, &turned, Some(times), env)? {
        Some(stages) => stages,
        None => vec![build::compose(&total, &turned)?],
    };
    Ok(Some([vec![partial], last].concat()))
}

/// Returns what parts of the columns of `rows` come to: `map (map (reduce op z . map f) . transpose) . split m . rows`.
fn partials(rows: &Term, reduce: &Term, of: &[Term], columns: u64, env: &mut SizeEnv) -> Built {
    let each = |n: &Size, f: &Term| build::map(MapKind::Plain, n, f);
    let (h, row) = build::elements(&rows.ty().cod)?;
    let (w, element) = build::elements(&row)?;
    let length = h.eval(env).map_err(|e| TypeError(e.to_string()))?;
    let part = (length.saturating_mul(columns) / ITEMS).clamp(PART, PART * PART);
    let divides = |m: &u64| length.is_multiple_of(*m);
    let near = (part / 2..=2 * part).filter(divides).min_by_key(|m| m.abs_diff(part));
    let value = near.unwrap_or(part);
    let parts = dimension(&h, "parts", length.div_ceil(value), env);
    let part = dimension(&h, "part", value, env);
    let padded = part.mul(&parts);
    let mut of_element =
        of.iter().rev().try_fold(Term::id(&element), |done, f| build::compose(f, &done))?;
    let rows = match near {
        // Padding tells the calculus that the parts have the length of a column; it adds no elements.
        Some(_) => build::apply(Op::PadLast, &[padded], vec![], rows)?,
        None => {
            // What lies behind the end is neutral.
            let rows = build::apply(Op::Mask, std::slice::from_ref(&padded), vec![], rows)?;
            let (_, flagged) = build::elements(&rows.ty().cod)?;
            let flags = Term::on(Op::Distl, &[], &flagged, vec![])?;
            let rows = build::compose(&each(&padded, &flags)?, &rows)?;
            let (_, pair) = build::elements(&flags.ty().cod)?;
            let (flag, value) = (build::proj(&pair, false)?, build::proj(&pair, true)?);
            let neutral = build::redomain(&reduce.args()[1], &pair)?;
            let value = build::compose(&of_element, &value)?;
            of_element = Term::new(Op::Cond, vec![], vec![], vec![flag, value, neutral])?;
            rows
        }
    };
    let rows = build::apply(Op::Split, std::slice::from_ref(&part), vec![], &rows)?;
    let (_, block) = build::elements(&rows.ty().cod)?;
    let turned = Term::on(Op::Transpose, &[], &block, vec![])?;
    let elements = match of_element.op() {
        Op::Id => Term::id(&build::elements(&turned.ty().cod)?.1),
        _ => each(&part, &of_element)?,
    };
    let column = build::apply(reduce.op().clone(), &[], reduce.args().to_vec(), &elements)?;
    build::compose(&each(&parts, &build::compose(&each(&w, &column)?, &turned)?)?, &rows)
}
