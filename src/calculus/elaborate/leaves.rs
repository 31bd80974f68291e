//! Scalar functions that follow each other become one: `f . g` of two leaves is a leaf. Rules name what follows a product by
//! one variable, which stands for one factor.

use crate::calculus::term::{Op, Term, TypeError};

/// Most operations of a function that is written out at each use by the next one.
const WRITTEN_OUT: f64 = 4.0;

/// Returns the term with its scalar functions composed.
///
/// # Errors
/// Never for a well-typed term; building the parts repeats the type checks.
pub(super) fn together(t: &Term) -> Result<Term, TypeError> {
    let mut done: Vec<Term> = vec![];
    for f in t.chain().into_iter().rev() {
        let args = f.args().iter().map(together).collect::<Result<Vec<_>, _>>()?;
        let f = f.with_args(args)?;
        let both = done.last().and_then(|first| composed(&f, first));
        if both.is_some() {
            done.pop();
        }
        done.push(both.unwrap_or(f));
    }
    done.reverse();
    Term::of_chain(&done)
}

fn composed(second: &Term, first: &Term) -> Option<Term> {
    let (Op::Scalar(second), Op::Scalar(first)) = (second.op(), first.op()) else { return None };
    let written_out = !first.body.has_loop() && first.body.operations() <= WRITTEN_OUT;
    written_out.then(|| Term::scalar(second.after(first)))
}
