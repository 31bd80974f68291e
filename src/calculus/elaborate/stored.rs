//! Keeps the stages of a program apart.
//!
//! A stage that reduces, such as one pass of a blur, may be followed by a stage that reads its result. The rules offer to fuse each pair of
//! stages, and what is fused of three, in all ways to share out the work, so that the e-graph of many stages is too large to be
//! saturated. In the form that is made here, `toGlobal` stands around each stage that gives a large array. No rule moves or
//! fuses it: the graph is as large as the graphs of the stages together. The host stores the result of each kernel in global
//! memory anyway, so extraction leaves the operator out again, and stages are joined with those of other forms.

use super::build::{self, Built, reduces};
use super::distributed::has_large;
use crate::calculus::size::SizeEnv;
use crate::calculus::term::{Op, Space, Term, TypeError};
use crate::calculus::ty::Ty;

/// Returns the term with `toGlobal` around its stages, outside of maps; `None` if there are no such stages.
///
/// # Errors
/// Never for a well-typed term; building the parts repeats the type checks.
pub(super) fn stages_stored(t: &Term, env: &SizeEnv) -> Result<Option<Term>, TypeError> {
    let stored = within(t, true, env)?;
    Ok((stored != *t).then_some(stored))
}

/// As [`stages_stored`]; `last` says whether nothing is computed of the term's result.
fn within(t: &Term, last: bool, env: &SizeEnv) -> Built {
    let mut done = Term::id(&t.ty().dom);
    // The factors since the last stage, the first that is applied first.
    let mut stage: Vec<Term> = vec![];
    let chain = t.chain();
    for (i, f) in chain.iter().enumerate().rev() {
        let last = last && chain[..i].iter().all(Term::is_view);
        let f = match f.op() {
            Op::Fork | Op::Bimap => build::each_arg(f, |a| within(a, last, env))?,
            Op::Fold => f.with_args(vec![within(&f.args()[0], true, env)?])?,
            _ => f.clone(),
        };
        if !f.is_view() {
            (done, stage) = apart(done, stage, env)?;
        }
        stage.push(f);
    }
    if !last {
        (done, stage) = apart(done, stage, env)?;
    }
    match stage.is_empty() {
        true => Ok(done),
        false => build::compose(&in_order(&stage)?, &done),
    }
}

/// Returns `done` with a stage, and the views that follow the stage, if it reduces and gives a large array.
fn apart(done: Term, stage: Vec<Term>, env: &SizeEnv) -> Result<(Term, Vec<Term>), TypeError> {
    let computed = stage.iter().rposition(|f| !f.is_view()).map_or(0, |last| last + 1);
    let (before, views) = stage.split_at(computed);
    let large = before.last().is_some_and(|f| match f.ty().cod {
        Ty::Array(..) => has_large(&f.ty().cod, 1, env),
        _ => false,
    });
    if !large || !before.iter().any(reduces) {
        return Ok((done, stage));
    }
    let stored = Term::new(Op::ToMem(Space::Global), vec![], vec![], vec![in_order(before)?])?;
    Ok((build::compose(&stored, &done)?, views.to_vec()))
}

/// Returns the term of factors of which the first is applied first.
fn in_order(factors: &[Term]) -> Built {
    Term::of_chain(&factors.iter().rev().cloned().collect::<Vec<_>>())
}
