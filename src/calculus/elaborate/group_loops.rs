//! Loops with a small state in one work-group: `loop` becomes `the . map loop . wrap`.
//!
//! Outside of maps, the host runs a loop, with a launch or more for each step. If a step has little to do, as in the solution of a
//! system of a few dozen unknowns or in a table of dynamic programming, launches take nearly all of the time. One work-group runs
//! all steps with barriers between them, and keeps the state in local memory if it fits. Where the state is small, both forms are inserted into the e-graph, as equals: a step may
//! also read large arrays.

use super::build::{self, Built};
use super::loops_out::scalars_of_arrays;
use crate::calculus::size::{Size, SizeEnv};
use crate::calculus::term::{MapKind, Op, Term, TypeError};
use crate::calculus::ty::Ty;

/// Most scalars of the arrays of a state.
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
            Op::Fold | Op::While if is_small(&f.ty().cod, env) => {
                let one = build::view(Op::Wrap, &done)?;
                let looped = build::map(MapKind::Plain, &Size::constant(1), &f)?;
                build::view(Op::The, &build::compose(&looped, &one)?)?
            }
            Op::Fork | Op::Bimap => {
                let args = f.args().iter().map(|a| within(a, env));
                build::compose(&f.with_args(args.collect::<Result<Vec<_>, _>>()?)?, &done)?
            }
            _ => build::compose(&f, &done)?,
        };
    }
    Ok(done)
}

/// Whether a state has arrays, and these have few scalars in all.
fn is_small(state: &Ty, env: &SizeEnv) -> bool {
    state.has_array() && scalars_of_arrays(state, env) <= SMALL
}
