//! Reductions of pairs of rows apart from what is reduced of their results (fission):
//! `map (reduce op z . map (g . reduce (+) 0 . p))` becomes `map (reduce op z . map g) . map (map (reduce (+) 0 . p))`, where
//! `g` is a function of scalars. A scan or a histogram of the results is like a reduction here.
//!
//! The results are then a matrix, with the tiles of a product or with matrix instructions, and are stored. Computed where they are
//! reduced, each of them is a loop of its own, which reads both rows anew. Sums of kernel functions, counts of near
//! neighbours and log-sum-exps of similarities are such programs. The cost model decides, so this is another form.

use super::build::{self, Built, reduces};
use crate::calculus::size::SizeEnv;
use crate::calculus::term::{MapKind, Op, Term, TypeError};

/// Fewest results of all pairs for which a matrix may pay.
const RESULTS: u64 = 1 << 16;

/// Returns the term with such reductions apart; `None` if there are none.
///
/// # Errors
/// Never for a well-typed term; building the parts repeats the type checks.
pub(super) fn results_in_front(t: &Term, env: &SizeEnv) -> Result<Option<Term>, TypeError> {
    let apart = within(t, env)?;
    Ok((apart != *t).then_some(apart))
}

fn within(t: &Term, env: &SizeEnv) -> Built {
    build::each_factor(t, |f| match f.op() {
        Op::Map(MapKind::Plain) if reduces(&f) => Ok(of_rows(&f, env)?.unwrap_or(f)),
        Op::Fork | Op::Bimap | Op::Fold | Op::While => build::each_arg(&f, |a| within(a, env)),
        _ => Ok(f),
    })
}

/// Returns a map of rows with the matrix in front of it.
fn of_rows(f: &Term, env: &SizeEnv) -> Result<Option<Term>, TypeError> {
    let n = &f.sizes()[0];
    let row = f.args()[0].chain();
    let is_map = |f: &Term| *f.op() == Op::Map(MapKind::Plain) && reduces(f);
    // Before the elements are computed, there are only views of the row.
    let Some(at) = row.iter().rposition(|f| !f.is_view()).filter(|at| is_map(&row[*at])) else {
        return Ok(None);
    };
    let (after, before) = (&row[..at], &row[at + 1..]);
    let m = &row[at].sizes()[0];
    let element = row[at].args()[0].chain();
    let reduction = element.iter().position(reduces).unwrap_or(0);
    let (scalars, pair) = element.split_at(reduction);
    let passes = |f: &Term| matches!(f.op(), Op::Reduce(_) | Op::Scan(_) | Op::Histogram);
    let reduced = after.last().is_some_and(passes);
    let results = n.mul(m).eval(env).unwrap_or(0);
    let of_pair = matches!(pair[0].op(), Op::Reduce(_)) && pair[0].ty().cod.is_scalar();
    if !reduced || scalars.is_empty() || !of_pair || results < RESULTS {
        return Ok(None);
    }
    let chain = |factors: &[Term]| Term::of_chain(factors);
    let each = |f: &Term| build::map(MapKind::Plain, m, f);
    let matrix = [&[each(&chain(pair)?)?], before].concat();
    let rest = [after, &[each(&chain(scalars)?)?]].concat();
    let rows = |factors: &[Term]| build::map(MapKind::Plain, n, &chain(factors)?);
    Ok(Some(build::compose(&rows(&rest)?, &rows(&matrix)?)?))
}
