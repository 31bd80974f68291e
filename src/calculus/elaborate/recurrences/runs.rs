//! Runs: the places of an array that the counter of a loop goes through one by one, upwards or downwards.

use crate::calculus::elaborate::core::{Ex, Kind, Var};
use crate::calculus::elaborate::counting::{self, Known};
use crate::calculus::elaborate::parts::dimension;
use crate::calculus::scalar::Lit;
use crate::calculus::size::{Size, SizeEnv};
use crate::calculus::ty::Ty;
use crate::lang::typed::ScalarOp;
use std::collections::HashMap;

/// The places `first`, `first + 1`, ... or `first`, `first - 1`, ..., one for each step of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// The place in the first step.
    pub(super) first: i128,
    /// Whether the places descend.
    pub(super) descends: bool,
}

/// A loop's counter, and the names that its steps bind.
pub(super) struct Counted<'a> {
    pub(super) counter: Var,
    /// The number of steps, which is not 0.
    pub(super) n: &'a Size,
    pub(super) steps: i128,
    pub(super) names: HashMap<Var, Ex>,
}

impl Run {
    /// Returns the place that lies `k` steps ahead, or behind if `k` is negative, in the first step.
    pub(super) fn ahead(self, k: i128) -> Run {
        Run { first: self.first + if self.descends { -k } else { k }, ..self }
    }

    /// Returns by how many steps another run in the same direction is ahead.
    pub(super) fn distance(self, other: Run) -> Option<i128> {
        let up = other.first - self.first;
        (self.descends == other.descends).then_some(if self.descends { -up } else { up })
    }

    /// Returns the lowest place of so many steps, and the one behind the highest.
    pub(super) fn range(self, steps: i128) -> (i128, i128) {
        match self.descends {
            true => (self.first + 1 - steps, self.first + 1),
            false => (self.first, self.first + steps),
        }
    }

    /// Whether all places of so many steps are in an array of this length.
    pub(super) fn is_inside(self, steps: i128, length: i128) -> bool {
        let (from, to) = self.range(steps);
        from >= 0 && to <= length
    }
}

impl Counted<'_> {
    /// Returns the run of a place; `None` if the place is no sum of the counter, or of its opposite, and a number.
    pub(super) fn run(&self, place: &Ex, env: &SizeEnv) -> Option<Run> {
        match self.linear(place, env)? {
            (1, first) => Some(Run { first, descends: false }),
            (-1, first) => Some(Run { first, descends: true }),
            _ => None,
        }
    }

    /// Returns the factor of the counter and the value in the first step. All values are numbers of the expression's type, so
    /// nothing wraps.
    fn linear(&self, e: &Ex, env: &SizeEnv) -> Option<(i128, i128)> {
        let Ty::Scalar(t) = e.ty else { return None };
        if t.is_float() {
            return None;
        }
        let (factor, first) = match &e.kind {
            Kind::Var(v) if *v == self.counter => (1, 0),
            Kind::Var(v) => self.linear(self.names.get(v)?, env)?,
            Kind::Op(op, args) => match (op, args.as_slice()) {
                (ScalarOp::Add | ScalarOp::Sub, [a, b]) => {
                    let ((f, x), (g, y)) = (self.linear(a, env)?, self.linear(b, env)?);
                    if *op == ScalarOp::Add { (f + g, x + y) } else { (f - g, x - y) }
                }
                (ScalarOp::Cast(_), [a]) => self.linear(a, env)?,
                _ => (0, counting::constant(e, &Known::new(), env)?),
            },
            _ => (0, counting::constant(e, &Known::new(), env)?),
        };
        let last = first + factor * (self.steps - 1);
        [first, last]
            .iter()
            .all(|x| Lit::int(t, *x).as_int() == Some(*x))
            .then_some((factor, first))
    }

    /// Returns the elements of an array at the places of a run, which are in the array.
    pub(super) fn elements(&self, array: Ex, run: Run, env: &mut SizeEnv) -> Option<Ex> {
        let (from, _) = run.range(self.steps);
        let mut out = array;
        if from > 0 {
            out = self.behind(out, from, env)?;
        }
        if out.length() != Some(self.n) {
            out = out.take(self.n)?;
        }
        if run.descends { out.reverse() } else { Some(out) }
    }

    /// Returns an array with other elements at the places of a run, given in the order of the steps.
    pub(super) fn replaced(&self, old: &Ex, run: Run, new: Ex, env: &mut SizeEnv) -> Option<Ex> {
        let (from, to) = run.range(self.steps);
        let n = old.length()?.clone();
        let length = i128::from(n.eval(env).ok()?);
        let mut out = if run.descends { new.reverse()? } else { new };
        if from > 0 {
            let front = old.clone().take(&Size::constant(u64::try_from(from).ok()?))?;
            let both = if to == length { n.clone() } else { size(&n, to, env)? };
            out = front.concat(out, &both)?;
        }
        if to < length {
            out = out.concat(self.behind(old.clone(), to, env)?, &n)?;
        }
        // Lengths of one value may be different dimensions.
        if out.length() == Some(&n) { Some(out) } else { out.take(&n) }
    }

    /// Returns the elements of an array from a place on.
    fn behind(&self, array: Ex, from: i128, env: &mut SizeEnv) -> Option<Ex> {
        let n = array.length()?.clone();
        let rest = i128::from(n.eval(env).ok()?) - from;
        let rest = if rest == self.steps { self.n.clone() } else { size(&n, rest, env)? };
        array.drop(&rest)
    }
}

/// Returns a length with this value of a part of a dimension.
fn size(of: &Size, value: i128, env: &mut SizeEnv) -> Option<Size> {
    Some(dimension(of, "part", u64::try_from(value).ok()?, env))
}
