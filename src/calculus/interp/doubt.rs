//! Execution when rounding decides how a program continues.
//!
//! A condition, an index or a number of steps may depend on floats so close to a threshold that rounding
//! decides. The machine then does everything that devices may legally do: both branches, every index, every
//! number of steps. The result is that of the interpreter itself, extended by the other possible results
//! ([`either`]). A branch that may not be taken and has no value is left out. Code without doubtful values
//! never pays for this.

use super::code::{Cells, Histogram, Index, Loop, Op, Operator, Place, Site, Values};
use super::machine::{Machine, Rows, Run, below, fault};
use crate::calculus::value::number::{anything, apply, either};
use crate::calculus::value::{Array, Cell, Slack, Spread, Value};
use crate::diag::Code as Error;
use crate::lang::types::ScalarType;

/// Positions of indices that are in doubt, with the spread of their values.
pub type Doubtful = Vec<(usize, Spread)>;

/// Most steps of a loop beyond those that the program itself takes.
const BEYOND: u64 = 10_000;

/// Most steps of all loops in a branch that may not be taken; a branch that takes more counts as having no
/// value.
const FUEL: u64 = 1 << 20;

/// Most positions at which elements are read one by one.
const PLACES: usize = 64;

/// The number of loop steps left; unlimited outside branches that may not be taken.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fuel(Option<u64>);

impl Fuel {
    /// Uses up one step.
    #[inline]
    pub fn burn(&mut self, site: impl FnOnce() -> Site) -> Run<()> {
        match &mut self.0 {
            None => Ok(()),
            Some(0) => Err(fault(site(), Error::Eval, "too many steps")),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
        }
    }
}

/// The contents of an accumulator.
enum State {
    Cells(Vec<Cell>),
    Value(Value),
}

impl State {
    /// Returns this state, or perhaps `other`.
    fn either(self, types: &[ScalarType], slack: &Slack, other: &State) -> State {
        match (self, other) {
            (State::Cells(mut xs), State::Cells(ys)) => {
                for ((x, y), ty) in xs.iter_mut().zip(ys).zip(types) {
                    *x = either(*ty, slack, *x, *y);
                }
                State::Cells(xs)
            }
            (State::Value(x), State::Value(y)) => State::Value(x.either(slack, y)),
            (state, _) => state,
        }
    }

    fn anything(self, types: &[ScalarType]) -> State {
        match self {
            State::Cells(xs) => {
                State::Cells(xs.into_iter().zip(types).map(|(x, ty)| anything(*ty, x)).collect())
            }
            State::Value(x) => State::Value(x.anything()),
        }
    }

    /// Whether every step from the other state is the same as from this one.
    fn same(&self, other: &State) -> bool {
        match (self, other) {
            (State::Cells(xs), State::Cells(ys)) => {
                xs.len() == ys.len() && xs.iter().zip(ys).all(|(x, y)| x.same(*y))
            }
            (State::Value(x), State::Value(y)) => x.same(y),
            _ => false,
        }
    }

    fn is_certain(&self, types: &[ScalarType]) -> bool {
        match self {
            State::Cells(xs) => xs.iter().zip(types).all(|(x, ty)| match ty.is_float() {
                true => x.is_exact(),
                false => !x.is_doubtful(),
            }),
            State::Value(x) => x.is_certain(),
        }
    }
}

/// The states in which a loop may end.
struct Exits<'a> {
    types: &'a [ScalarType],
    slack: Slack,
    /// The state in which the program itself ends the loop.
    own: Option<State>,
    /// The other states in which it may end.
    others: Option<State>,
}

impl Exits<'_> {
    fn other(&mut self, state: State) {
        self.others = Some(match self.others.take() {
            Some(all) => all.either(self.types, &self.slack, &state),
            None => state,
        });
    }

    /// Returns the final state; it may be anything if the possible numbers of steps were not all tried.
    fn finish(self, all: bool) -> Option<State> {
        let own = self.own?;
        Some(match self.others {
            _ if !all => own.anything(self.types),
            Some(others) => own.either(self.types, &self.slack, &others),
            None => own,
        })
    }
}

impl Machine {
    /// Evaluates something that may not be needed; `None` when it has no value.
    pub(super) fn perhaps<T>(&mut self, f: impl FnOnce(&mut Machine) -> Run<T>) -> Option<T> {
        let outermost = self.fuel.0.is_none();
        if outermost {
            self.fuel = Fuel(Some(FUEL));
        }
        let found = f(self).ok();
        if outermost {
            self.fuel = Fuel(None);
        }
        found
    }

    #[cold]
    pub(super) fn either_cell(
        &mut self,
        condition: Cell,
        (yes, no): (&Cells, &Cells),
        types: &[ScalarType],
    ) -> Run<Cell> {
        let (chosen, other) = if condition.is_true() { (yes, no) } else { (no, yes) };
        let other = self.perhaps(|m| m.cell(other));
        let chosen = self.cell(chosen)?;
        Ok(match (other, types.first()) {
            (Some(other), Some(ty)) => either(*ty, &self.slack, chosen, other),
            _ => chosen,
        })
    }

    #[cold]
    pub(super) fn either_cells(
        &mut self,
        condition: Cell,
        (yes, no): (&Cells, &Cells),
        types: &[ScalarType],
        to: usize,
    ) -> Run<()> {
        let (chosen, other) = if condition.is_true() { (yes, no) } else { (no, yes) };
        let range = to..to + types.len();
        let other = self.perhaps(|m| m.cells(other, to).map(|()| m.regs[range.clone()].to_vec()));
        self.cells(chosen, to)?;
        for ((k, other), ty) in range.zip(other.unwrap_or_default()).zip(types) {
            self.regs[k] = either(*ty, &self.slack, self.regs[k], other);
        }
        Ok(())
    }

    #[cold]
    pub(super) fn either_value(
        &mut self,
        condition: Cell,
        (yes, no): (&Values, &Values),
    ) -> Run<Value> {
        let (chosen, other) = if condition.is_true() { (yes, no) } else { (no, yes) };
        let other = self.perhaps(|m| m.value(other));
        let chosen = self.value(chosen)?;
        Ok(other.map_or_else(|| chosen.clone(), |other| chosen.either(&self.slack, &other)))
    }

    /// Evaluates `a && b` or `a || b` when `a` is in doubt; `decided` says whether the program itself skips
    /// `b`.
    #[cold]
    pub(super) fn connect(&mut self, op: &Op, a: Cell, decided: bool, b: &Cells) -> Run<Cell> {
        let b = if decided { self.perhaps(|m| m.cell(b)) } else { Some(self.cell(b)?) };
        let Some(b) = b else { return Ok(a) };
        apply(op.op, op.from, op.to, op.exact, &self.slack, [a, b, Cell::default()])
            .map_err(|e| fault(op.site, Error::Eval, &e.to_string()))
    }

    fn state(&self, place: Place) -> State {
        match place {
            Place::Regs { base, n } => State::Cells(self.regs[base..base + n].to_vec()),
            Place::Slot { slot, .. } => State::Value(self.slots[slot].clone()),
        }
    }

    fn restore(&mut self, place: Place, state: State) {
        match (place, state) {
            (Place::Regs { base, n }, State::Cells(cells)) => {
                self.regs[base..base + n].copy_from_slice(&cells);
            }
            (Place::Slot { slot, .. }, State::Value(v)) => self.slots[slot] = v,
            _ => {}
        }
    }

    /// Runs the rest of a loop, from the first doubtful condition on.
    #[cold]
    pub(super) fn repeat_doubtfully(
        &mut self,
        l: &Loop,
        condition: &Cells,
        mut going: Cell,
    ) -> Run<()> {
        let mut exits = Exits { types: &l.types, slack: self.slack, own: None, others: None };
        let (mut left, mut all) = (BEYOND, true);
        loop {
            let ended = exits.own.is_some();
            if !going.is_true() && !ended {
                exits.own = Some(self.state(l.acc));
            } else if !going.is_true() || going.is_doubtful() {
                exits.other(self.state(l.acc));
            }
            if !going.is_true() && !going.is_doubtful() {
                break;
            }
            if exits.own.is_none() {
                self.fuel.burn(|| Site { name: "while", span: None })?;
                self.step(l.acc, l.next, &l.body)?;
                going = self.cell(condition)?;
                continue;
            }
            left -= 1;
            all = left > 0;
            let before = self.state(l.acc);
            let next = self.perhaps(|m| {
                m.step(l.acc, l.next, &l.body)?;
                m.cell(condition)
            });
            // A loop that runs until nothing changes compares equal floats at its end, which stays in doubt.
            match next {
                Some(next) if all && !self.state(l.acc).same(&before) => going = next,
                _ => break,
            }
        }
        if let Some(state) = exits.finish(all) {
            self.restore(l.acc, state);
        }
        Ok(())
    }

    /// Runs a loop whose number of steps is in doubt.
    #[cold]
    pub(super) fn count_doubtfully(
        &mut self,
        l: &Loop,
        index: usize,
        bound: Cell,
        ty: ScalarType,
    ) -> Run<()> {
        let (own, spread) = (bound.as_wide(ty).max(0), bound.spread());
        let last = spread.ends(bound.as_wide(ty)).map(|(_, high)| high);
        let last = last.filter(|high| *high <= own + i128::from(BEYOND));
        let mut exits = Exits { types: &l.types, slack: self.slack, own: None, others: None };
        for i in 0.. {
            if i == own {
                exits.own = Some(self.state(l.acc));
            } else if spread.contains(bound.as_wide(ty), i) {
                exits.other(self.state(l.acc));
            }
            if i >= last.unwrap_or(own).max(own) {
                break;
            }
            self.regs[index] = Cell::from_int(ty, i);
            if i < own {
                self.step(l.acc, l.next, &l.body)?;
            } else if self.perhaps(|m| m.step(l.acc, l.next, &l.body)).is_none() {
                break;
            }
        }
        if let Some(state) = exits.finish(last.is_some()) {
            self.restore(l.acc, state);
        }
        Ok(())
    }

    /// After a fold in exact arithmetic, adds the result of the same fold with every operation rounded, if it
    /// differs.
    pub(super) fn fold_drift(&mut self, op: &Operator, drift: &Operator, xs: &Value, n: usize) {
        let state = self.state(op.acc);
        if state.is_certain(&op.types) {
            return;
        }
        let drifted = self.perhaps(|m| {
            m.fold_with(drift, xs, n, &mut |_, _| Ok(()))?;
            Ok(m.state(drift.acc))
        });
        let state = match drifted {
            Some(drifted) => state.either(&op.types, &self.slack, &drifted),
            None => state,
        };
        self.restore(op.acc, state);
    }

    /// Computes a histogram when some of the indices are in doubt.
    #[cold]
    pub(super) fn histogram_doubtfully(
        &mut self,
        h: &Histogram,
        is: &[i128],
        doubtful: &Doubtful,
        vs: &Value,
    ) -> Run<Value> {
        let Operator { acc, next, types, x, body, init } = &h.op;
        self.put(*acc, init)?;
        let mut bins: Vec<State> = (0..h.m).map(|_| self.state(*acc)).collect();
        let mut doubtful = doubtful.iter().peekable();
        for (j, &i) in is.iter().enumerate() {
            let spread = doubtful.next_if(|d| d.0 == j).map_or(Spread::NONE, |d| d.1);
            let own = below(i, h.m);
            for k in targets(i, spread, h.m) {
                let placeholder = State::Cells(vec![]);
                let before = std::mem::replace(&mut bins[k], placeholder);
                let kept = match &before {
                    State::Cells(cells) => State::Cells(cells.clone()),
                    State::Value(v) => State::Value(v.clone()),
                };
                self.restore(*acc, before);
                self.enter(&[*x], vs.leaves(), j);
                if Some(k) == own {
                    self.step(*acc, *next, body)?;
                } else if self.perhaps(|m| m.step(*acc, *next, body)).is_none() {
                    bins[k] = kept;
                    continue;
                }
                let after = self.state(*acc);
                bins[k] = match (spread.is_none(), Some(k) == own) {
                    (true, _) => after,
                    (false, true) => after.either(types, &self.slack, &kept),
                    (false, false) => kept.either(types, &self.slack, &after),
                };
            }
        }
        let mut rows = Rows::new(&h.row, h.m, h.site)?;
        for bin in &bins {
            match bin {
                State::Cells(cells) => rows.cells(cells),
                State::Value(v) => rows.value(v, h.site)?,
            }
        }
        Ok(rows.finish())
    }
}

/// Returns the indices below `n` among the possible values of `i`.
pub fn targets(i: i128, spread: Spread, n: usize) -> Vec<usize> {
    few_targets(i, spread, n, n).unwrap_or_default()
}

/// As [`targets`], but returns `None` if there are more than `most`, without listing them.
fn few_targets(i: i128, spread: Spread, n: usize, most: usize) -> Option<Vec<usize>> {
    let all: Vec<usize> = match spread.values(i) {
        Some(all) => all.into_iter().filter_map(|i| below(i, n)).collect(),
        None => {
            let (low, high) = spread.ends(i).unwrap_or((0, i128::MAX - 1));
            let from = usize::try_from(low.max(0)).map_or(n, |low| low.min(n));
            let to = usize::try_from(high.max(-1) + 1).map_or(n, |end| end.min(n));
            if to.saturating_sub(from) > most {
                return None;
            }
            (from..to).collect()
        }
    };
    (all.len() <= most).then_some(all)
}

/// Returns the rows of an array at the possible values of `i`; `None` when there are too many.
pub fn rows_at(xs: &Value, n: usize, i: i128, spread: Spread) -> Option<Vec<Value>> {
    let at = few_targets(i, spread, n, PLACES)?;
    Some(at.into_iter().map(|k| xs.row(k)).collect())
}

/// Returns the element `own`, extended by the elements at other possible indices.
#[cold]
pub fn perhaps_others(a: &Array, e: &Index, at: &[Cell], slack: &Slack, own: Cell) -> Cell {
    let mut places: Vec<Vec<i128>> = vec![vec![]];
    for (((_, ty), i), n) in e.at.iter().zip(at).zip(a.shape()) {
        let most = PLACES / places.len().max(1);
        let Some(indices) = few_targets(i.as_wide(*ty), i.spread(), n, most) else {
            return anything(a.ty(), own);
        };
        let with = |k: &usize| -> Vec<Vec<i128>> {
            places.iter().map(|p| [&p[..], &[*k as i128]].concat()).collect()
        };
        places = indices.iter().flat_map(with).collect();
    }
    let elements = places.into_iter().filter_map(|at| a.get(at));
    elements.fold(own, |own, other| either(a.ty(), slack, own, other))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A doubtful index into a long array costs no more than its few targets.
    #[test]
    fn many_targets_are_not_listed() {
        let wide = Spread::range(5, -20, 40);
        assert_eq!(targets(5, wide, 30), (0..30).collect::<Vec<_>>());
        assert_eq!(targets(5, wide, 100), (0..=40).collect::<Vec<_>>());
        assert_eq!(few_targets(5, wide, 100, 41), Some((0..=40).collect()));
        assert_eq!(few_targets(5, wide, 100, 40), None);
        assert_eq!(few_targets(5, Spread::ANY, usize::MAX, PLACES), None);
        assert_eq!(targets(5, Spread::ANY, 3), [0, 1, 2]);
        assert_eq!(targets(-50, Spread::range(-50, -60, -30), 9), [0usize; 0]);
        let few = Spread::of(5, &[4, 6, 7]);
        assert_eq!(few_targets(5, few, 7, 2), None);
        assert_eq!(few_targets(5, few, 7, 3), Some(vec![5, 4, 6]));
    }
}
