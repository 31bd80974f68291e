//! Keeps the stages of a program apart where fusing them would compute elements several times.
//!
//! A stage that reduces, such as one pass of a blur, may be followed by a stage that reads each of its elements several times. Fused,
//! the first stage is computed again for each use, or its rows stay in local memory. The rules offer both, for each pair of stages, and
//! for what is fused of three, so that the e-graph of a long chain of stages is too large to be saturated. In the form that is made
//! here, `toGlobal` stands around such a stage, which no rule moves or fuses: the graph is as large as the stages' graphs
//! together. The host stores the result of each kernel in global memory anyway, so extraction leaves the operator out again.

use super::build::{self, Built, reduces};
use crate::calculus::size::{Size, SizeEnv};
use crate::calculus::term::{MapKind, Op, Space, Term, TypeError};
use crate::calculus::ty::Ty;

/// Elements of an array from which on its stage stands apart.
const LARGE: u64 = 8192;

/// Returns the term with `toGlobal` around its stages, outside of maps; `None` if there are no such stages.
///
/// # Errors
/// Never for a well-typed term; building the parts repeats the type checks.
pub(super) fn stages_stored(t: &Term, env: &SizeEnv) -> Result<Option<Term>, TypeError> {
    let stored = within(t, env)?;
    Ok((stored != *t).then_some(stored))
}

fn within(t: &Term, env: &SizeEnv) -> Built {
    let mut done = Term::id(&t.ty().dom);
    // The factors since the last stage, the first that is applied first.
    let mut stage: Vec<Term> = vec![];
    for f in t.chain().into_iter().rev() {
        let f = match f.op() {
            Op::Fork | Op::Bimap | Op::Fold => {
                let args = f.args().iter().map(|a| within(a, env));
                f.with_args(args.collect::<Result<Vec<_>, _>>()?)?
            }
            _ => f,
        };
        let computed = stage.iter().rposition(|f| !f.is_view()).map_or(0, |last| last + 1);
        let (before, views) = stage.split_at(computed);
        let again = views.iter().any(repeats) || reads_again(&f);
        if !f.is_view() && again && before.iter().any(reduces) && is_large(before, env) {
            let stored = in_order(before)?;
            let stored = Term::new(Op::ToMem(Space::Global), vec![], vec![], vec![stored])?;
            done = build::compose(&stored, &done)?;
            stage = views.to_vec();
        }
        stage.push(f);
    }
    match stage.is_empty() {
        true => Ok(done),
        false => build::compose(&in_order(&stage)?, &done),
    }
}

/// Returns the term of factors of which the first is applied first.
fn in_order(factors: &[Term]) -> Built {
    Term::of_chain(&factors.iter().rev().cloned().collect::<Vec<_>>())
}

/// Whether the last of the factors gives an array that is large.
fn is_large(factors: &[Term], env: &SizeEnv) -> bool {
    let elements = |lengths: &[Size]| {
        let lengths = lengths.iter().map(|n| n.eval(env).unwrap_or(1));
        lengths.fold(1, u64::saturating_mul)
    };
    let large = |t: &Ty| t.components().iter().any(|(n, _)| elements(n) > LARGE);
    factors.last().is_some_and(|f| matches!(f.ty().cod, Ty::Array(..)) && large(&f.ty().cod))
}

/// Whether a view gives an element several times.
fn repeats(view: &Term) -> bool {
    let mut found = false;
    view.visit(&mut |t| found |= matches!(t.op(), Op::Slide | Op::Cross));
    found
}

/// Whether a function reads the elements of its argument several times, as it stands.
fn reads_again(f: &Term) -> bool {
    match f.op() {
        Op::Fork => f.args().iter().filter(|a| !a.is_view()).count() > 1,
        Op::Map(MapKind::Plain) => {
            let chain = f.args()[0].chain();
            let views = chain.iter().rev().take_while(|f| f.is_view());
            views.clone().any(repeats)
                || chain.iter().rev().nth(views.count()).is_some_and(reads_again)
        }
        _ => false,
    }
}
