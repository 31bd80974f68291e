//! Reductions of the reductions of rows, as one reduction of all elements:
//! `reduce op z . map (reduce op z . f)` becomes `reduce op z . join . map f`.
//!
//! A group that computes such a value has few rows, which are long: its work-items would take a row each. This is only done
//! in the function of a map. Outside of maps, rules cut a reduction into parts, and rows are good parts. A row that meets what all
//! rows share, as in a product of matrices, stays a row.

use super::build::{self, Built};
use super::distributed::gives_large;
use crate::calculus::size::SizeEnv;
use crate::calculus::term::{MapKind, Op, Term};

/// Returns the term with the nested reductions in the functions of its maps as one each.
///
/// # Errors
/// Never for a well-typed term; building the parts repeats the type checks.
pub(super) fn flat(t: &Term) -> Built {
    within(t, false)
}

fn within(t: &Term, in_map: bool) -> Built {
    let mut done = Term::id(&t.ty().dom);
    for f in t.chain().into_iter().rev() {
        let is_map = matches!(f.op(), Op::Map(_));
        let f = build::each_arg(&f, |a| within(a, in_map || is_map))?;
        if in_map && let Some(elements) = elements(&f, &done) {
            let rows = done.chain()[0].sizes()[0].clone();
            let all = build::mapped(&rows, &elements, &build::rest(&done)?)?;
            let all = build::view(Op::Join, &all)?;
            done = build::apply(f.op().clone(), &[], f.args().to_vec(), &all)?;
            continue;
        }
        done = build::compose(&f, &done)?;
    }
    Ok(done)
}

/// Returns the term with the rows of large computed matrices reduced one by one: the other direction, for stages that are shared out to
/// the whole device.
///
/// # Errors
/// Never for a well-typed term; building the parts repeats the type checks.
pub(super) fn by_rows(t: &Term, env: &SizeEnv) -> Built {
    let mut done = Term::id(&t.ty().dom);
    for f in t.chain().into_iter().rev() {
        let f = build::each_arg(&f, |a| by_rows(a, env))?;
        done = match build::is_associative(&f) {
            true => reduced_by_rows(&f, &done, env)?,
            false => build::compose(&f, &done)?,
        };
    }
    Ok(done)
}

/// Returns `total . before`; `reduce op z . map f . join . g` as `reduce op z . map (reduce op z . map f) . g` if `g` computes a large matrix.
fn reduced_by_rows(total: &Term, before: &Term, env: &SizeEnv) -> Built {
    let chain = before.chain();
    let maps = chain.iter().take_while(|f| *f.op() == Op::Map(MapKind::Plain)).count();
    let (elements, rest) = chain.split_at(maps);
    let rows = match rest.split_first() {
        Some((join, rows)) if *join.op() == Op::Join => Term::of_chain(rows).ok(),
        _ => None,
    };
    let Some(rows) = rows.filter(|rows| gives_large(rows, env)) else {
        return build::compose(total, before);
    };
    let (n, row) = build::elements(&rows.ty().cod)?;
    let (m, _) = build::elements(&row)?;
    let mut each = Term::id(&row);
    for f in elements.iter().rev() {
        each = build::compose(&build::map(MapKind::Plain, &m, &f.args()[0])?, &each)?;
    }
    let reduced = |f: &Term| Term::on(total.op().clone(), &[], &f.ty().cod, total.args().to_vec());
    let each = build::compose(&reduced(&each)?, &each)?;
    let rows = build::compose(&build::map(MapKind::Plain, &n, &each)?, &rows)?;
    reduced_by_rows(&reduced(&rows)?, &rows, env)
}

/// Returns what gives the elements of each row, if `total` combines the reductions of rows with which `before` ends.
fn elements(total: &Term, before: &Term) -> Option<Vec<Term>> {
    let chain = before.chain();
    let (rows, source) = chain.split_first()?;
    if !build::is_associative(total) || *rows.op() != Op::Map(MapKind::Plain) {
        return None;
    }
    let inner = rows.args()[0].chain();
    let (sum, elements) = inner.split_first()?;
    let same = sum.op() == total.op() && sum.args() == total.args();
    // Rows that meet an array which they share are rows of a product.
    let shared = source.first().is_some_and(|f| match f.op() {
        Op::Distl | Op::Distr => {
            let pair = build::halves(&f.ty().dom);
            pair.is_ok_and(|(a, b)| if *f.op() == Op::Distl { a } else { b }.has_array())
        }
        Op::Cross => true,
        _ => false,
    });
    (same && !shared && elements.iter().all(is_of_elements)).then(|| elements.to_vec())
}

/// Whether a factor computes of each element, or arranges the parts of a row.
fn is_of_elements(f: &Term) -> bool {
    match f.op() {
        Op::Map(MapKind::Plain) => !build::reduces(f) && !f.args()[0].ty().cod.has_array(),
        Op::Zip | Op::Unzip | Op::Distl | Op::Distr => true,
        Op::Id | Op::Fst | Op::Snd | Op::Compose | Op::Fork | Op::Bimap => {
            f.args().iter().all(|a| a.chain().iter().all(is_of_elements))
        }
        _ => false,
    }
}
