//! Reductions of rows apart: the same program with a map of its own for each reduction (fission). `map (h . reduce op z . f)`
//! becomes `map h . map (reduce op z . f)`, and `map (h . fork p q)` becomes `map h . zip . fork (map p) (map q)` if `p` or `q`
//! reduces, with what comes before the fork in both.
//!
//! The normal form reads a row once and keeps it, which suits many rows of moderate length. If there are few rows, or if rows
//! do not lie in a piece, a reduction of its own can be shared out to the whole device. So where that may pay, both forms
//! are inserted into the e-graph, as equals.

use super::build::{self, Built, reduces};
use super::nests;
use crate::calculus::size::{Size, SizeEnv};
use crate::calculus::term::{MapKind, Op, Term, TypeError};

/// Rows that are enough for a device with a work-group for each.
const ENOUGH: u64 = 1024;

/// Returns the term with the reductions apart of rows that are few or do not lie in a piece; `None` if there are none.
///
/// # Errors
/// Never for a well-typed term; building the parts repeats the type checks.
pub(super) fn reductions_apart(t: &Term, env: &SizeEnv) -> Result<Option<Term>, TypeError> {
    let apart = within(t, 1, env)?;
    Ok((apart != *t).then_some(apart))
}

/// As [`reductions_apart`], for a term that is applied to each of `outer` rows.
fn within(t: &Term, outer: u64, env: &SizeEnv) -> Built {
    let mut done = Term::id(&t.ty().dom);
    for f in t.chain().into_iter().rev() {
        let f = match f.op() {
            Op::Map(MapKind::Plain) if reduces(&f) => {
                let n = &f.sizes()[0];
                let count = n.eval(env).unwrap_or(u64::MAX).saturating_mul(outer);
                let inner = within(&f.args()[0], count, env)?;
                if count < ENOUGH || strided(&done) {
                    rows(n, &inner)?
                } else {
                    f.with_args(vec![inner])?
                }
            }
            Op::Fork | Op::Bimap | Op::Fold | Op::While | Op::ToMem(_) => {
                build::each_arg(&f, |a| within(a, outer, env))?
            }
            _ => f,
        };
        done = build::compose(&f, &done)?;
    }
    Ok(done)
}

/// Whether what a term gives are columns, or has columns beside other elements.
fn strided(t: &Term) -> bool {
    for f in t.chain() {
        match f.op() {
            Op::Transpose => return true,
            Op::Fork | Op::Bimap => return f.args().iter().any(strided),
            _ if f.is_view() => {}
            _ => return false,
        }
    }
    false
}

/// Builds `map f` of `n` rows, cut after each factor of `f` that reduces. What other factors compute of the elements is computed
/// where it is used.
fn rows(n: &Size, f: &Term) -> Built {
    let each = |f: &Term| build::map(MapKind::Plain, n, f);
    let (mut done, mut next) = (Term::id(&each(f)?.ty().dom), Term::id(&f.ty().dom));
    for f in f.chain().into_iter().rev() {
        if !reduces(&f) {
            next = after(&f, &next)?;
            continue;
        }
        let id = Term::id(&next.ty().dom);
        // Rows of results stay with what computes them of the rows.
        let of_scalars = |f: &Term| f.args().iter().all(|a| !reduces(a) || a.ty().cod.is_scalar());
        let cut = if *f.op() == Op::Fork || *f.op() == Op::Bimap && of_scalars(&f) {
            let sides = [0, 1].map(|k| {
                let side = &f.args()[k];
                let side = match f.op() {
                    Op::Fork => side.clone(),
                    _ => build::compose(side, &build::proj(&f.ty().dom, k == 1)?)?,
                };
                build::compose(&side, &next)
            });
            let sides = sides.into_iter().collect::<Result<Vec<_>, _>>()?;
            let apart = |t: &Term| if reduces(t) { rows(n, t) } else { each(&id) };
            let cut = build::view(Op::Zip, &build::fork(&apart(&sides[0])?, &apart(&sides[1])?)?)?;
            let rest = |t: &Term| if reduces(t) { Term::id(&t.ty().cod) } else { t.clone() };
            next = build::bimap(&rest(&sides[0]), &rest(&sides[1]))?;
            cut
        } else {
            let cut = match next.chain().iter().all(Term::is_view) {
                // Views stand apart, so that nests of maps are perfect.
                true => build::compose(&each(&f)?, &each(&next)?)?,
                false => each(&build::compose(&f, &next)?)?,
            };
            next = Term::id(&f.ty().cod);
            cut
        };
        done = build::compose(&cut, &done)?;
    }
    build::compose(&nests::perfect_nest(&each(&next)?)?, &done)
}

/// Builds `f . g`, with maps behind the views that pair elements, and with maps that follow each other as one.
fn after(f: &Term, g: &Term) -> Built {
    let chain = g.chain();
    let (Some(head), Ok(tail)) = (chain.first(), build::rest(g)) else {
        return build::compose(f, g);
    };
    let is_map = |t: &Term| *t.op() == Op::Map(MapKind::Plain);
    match (f.op(), head.op()) {
        (Op::Map(MapKind::Plain), Op::Map(MapKind::Plain)) => {
            let both = build::compose(&f.args()[0], &head.args()[0])?;
            build::compose(&build::map(MapKind::Plain, &f.sizes()[0], &both)?, &tail)
        }
        (Op::Distl | Op::Distr | Op::Zip, Op::Bimap) => {
            let paired = |k: usize| {
                let side = &head.args()[k];
                let first = side.chain().swap_remove(0);
                let taken = match f.op() {
                    Op::Distl => k == 1,
                    Op::Distr => k == 0,
                    _ => true,
                };
                Ok(match taken && is_map(&first) {
                    true => (Some(first.args()[0].clone()), build::rest(side)?),
                    false => (None, side.clone()),
                })
            };
            let ((a, left), (b, right)) = (paired(0)?, paired(1)?);
            let pairs = build::apply(f.op().clone(), &[], vec![], &build::bimap(&left, &right)?)?;
            let (n, element) = build::elements(&pairs.ty().cod)?;
            let (x, y) = build::halves(&element)?;
            let both = build::bimap(&a.unwrap_or(Term::id(&x)), &b.unwrap_or(Term::id(&y)))?;
            let map = build::map(MapKind::Plain, &n, &both)?;
            build::compose(&map, &build::compose(&pairs, &tail)?)
        }
        _ => build::compose(f, g),
    }
}
