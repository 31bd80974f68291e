//! Loops with a small state in one work-group: `loop` becomes `the . map loop . wrap`.
//!
//! Outside of maps, the host runs a loop, with a launch or more for each step. If a step has little to do, as in the solution of a
//! system of a few dozen unknowns or in a table of dynamic programming, launches take nearly all of the time. One work-group runs
//! all steps with barriers between them, and keeps the state in local memory if it fits. Where steps change few scalars, both forms are
//! inserted into the e-graph, as equals: a step may also read large arrays, or store one row of a large state.

use super::build::{self, Built};
use super::loops_out::scalars_of_arrays;
use crate::calculus::size::{Size, SizeEnv};
use crate::calculus::term::{MapKind, Op, Term, TypeError};
use crate::calculus::ty::Ty;

/// Most scalars of arrays that a step changes.
const SMALL: u64 = 1 << 14;

/// Returns the term with its loops with a small state in a work-group each; `None` if there are none.
///
/// # Errors
/// Never for a well-typed term; building the parts repeats the type checks.
pub(super) fn in_groups(t: &Term, env: &SizeEnv) -> Result<Option<Term>, TypeError> {
    let changed = within(t, env)?;
    Ok((changed != *t).then_some(changed))
}

fn within(t: &Term, env: &SizeEnv) -> Built {
    let mut done = Term::id(&t.ty().dom);
    for f in t.chain().into_iter().rev() {
        done = match f.op() {
            Op::Fold | Op::While if f.ty().cod.has_array() && changes_little(&f, env) => {
                let one = build::view(Op::Wrap, &done)?;
                let looped = build::map(MapKind::Plain, &Size::constant(1), &f)?;
                build::view(Op::The, &build::compose(&looped, &one)?)?
            }
            Op::Fork | Op::Bimap => {
                build::compose(&build::each_arg(&f, |a| within(a, env))?, &done)?
            }
            _ => build::compose(&f, &done)?,
        };
    }
    Ok(done)
}

/// Whether the steps of a loop change few scalars of the arrays of the state.
fn changes_little(f: &Term, env: &SizeEnv) -> bool {
    f.args().last().is_some_and(|step| changed(step, env) <= SMALL)
}

/// Returns how many scalars of the arrays of a state a step changes.
fn changed(step: &Term, env: &SizeEnv) -> u64 {
    let chain = step.chain();
    let keeps_array = |f: &Term| *f.op() == Op::Fork && f.args().first().is_some_and(Term::is_view);
    match (chain[0].op(), &chain[0].ty().dom) {
        (Op::Fork, _) => {
            chain[0].args().iter().map(|a| changed(a, env)).fold(0, u64::saturating_add)
        }
        // Of an array of the state, only some elements change.
        (Op::Scatter, Ty::Pair(_, updates)) if chain.get(1).is_some_and(keeps_array) => {
            scalars_of_arrays(updates, env)
        }
        _ => scalars_of_arrays(&step.ty().cod, env),
    }
}
