//! Equations and divisibility conditions between sizes.
//!
//! An unknown size is a variable whose name starts with `?`. An equation is solved for an unknown that occurs in it
//! once and linearly. An equation that cannot be solved yet waits until more is known.

use super::infer::Clash;
use crate::diag::Span;
use crate::lang::size::{Atom, Size};
use std::collections::BTreeMap;

/// The condition that `dividend` is a multiple of `divisor`.
#[derive(Clone, Debug, PartialEq)]
pub struct Divides {
    /// The size that is divided.
    pub dividend: Size,
    /// The size that divides it.
    pub divisor: Size,
    /// The place that requires it.
    pub span: Span,
}

/// A known rest of a division.
#[derive(Clone, Debug)]
struct Rest {
    dividend: Size,
    divisor: Size,
    value: i64,
}

impl Rest {
    /// Largest divisor for which all rests are tried.
    const MOST: i64 = 64;

    /// Returns the rest of another division that follows: by the same divisor, of a dividend that is apart by a known number or by a
    /// multiple.
    fn of(&self, dividend: &Size, divisor: &Size) -> Option<Size> {
        let apart = dividend.sub(&self.dividend);
        if *divisor != self.divisor {
            return None;
        }
        let Some(k) = divisor.as_constant() else {
            return apart.is_multiple_of(divisor).then(|| Size::constant(self.value));
        };
        let whole = apart.without_constant();
        let number = apart.sub(&whole).as_constant()?;
        whole.is_multiple_of(divisor).then(|| Size::constant((self.value + number).rem_euclid(k)))
    }
}

/// An unknown, its value, and the condition that one size is a multiple of another, if the value needs one.
type Solution = (String, Size, Option<(Size, Size)>);

/// The state of size inference.
#[derive(Clone, Debug, Default)]
pub struct SizeVars {
    count: usize,
    solved: BTreeMap<String, Size>,
    /// Unknowns for axes of the entry's parameters. Equations are preferably solved for other unknowns.
    axes: Vec<String>,
    /// Rigid unknowns, which stand for the length inside an `iterate`. Equations are never solved for them.
    rigid: Vec<String>,
    waiting: Vec<(Size, Size, Span)>,
    rests: Vec<Rest>,
    /// The conditions found so far.
    pub divides: Vec<Divides>,
}

impl SizeVars {
    fn next(&mut self) -> String {
        self.count += 1;
        format!("?{}", self.count)
    }

    /// Returns the amount of state.
    pub fn extent(&self) -> usize {
        self.solved.len() + self.waiting.len() + self.divides.len() + self.rests.len()
    }

    /// Returns a fresh unknown.
    pub fn fresh(&mut self) -> Size {
        Size::var(&self.next())
    }

    /// Returns the name of a fresh unknown for an axis of a parameter.
    pub fn fresh_axis(&mut self) -> String {
        let name = self.next();
        self.axes.push(name.clone());
        name
    }

    /// Returns the name of a fresh size that no equation may determine.
    pub fn fresh_rigid(&mut self) -> String {
        let name = self.next();
        self.rigid.push(name.clone());
        name
    }

    /// Sets the value of an unknown or rigid size.
    pub fn assign(&mut self, name: &str, value: Size) {
        self.solved.insert(name.to_owned(), value);
    }

    /// Replaces solved unknowns until none is left.
    pub fn resolve(&self, size: &Size) -> Size {
        let mut size = size.clone();
        // The solutions have no cycles. The bound only guards against an error here.
        for _ in 0..=self.solved.len() {
            let next = size.substitute(&|v| self.solved.get(v).cloned());
            let next = next.with_rests(&|p, q| self.rests.iter().find_map(|known| known.of(p, q)));
            if next == size {
                break;
            }
            size = next;
        }
        size
    }

    fn is_unknown(&self, name: &str) -> bool {
        name.starts_with('?') && !self.rigid.iter().any(|r| r == name)
    }

    /// Returns whether unknowns are left in a resolved size.
    pub fn has_unknowns(&self, size: &Size) -> bool {
        size.variables().iter().any(|v| self.is_unknown(v))
    }

    /// Returns the exact quotient, and adds the condition that the division is exact.
    pub fn quotient(&mut self, dividend: &Size, divisor: &Size, span: Span) -> Size {
        let (dividend, divisor) = (self.resolve(dividend), self.resolve(divisor));
        let demand = Divides { dividend: dividend.clone(), divisor: divisor.clone(), span };
        self.divides.push(demand);
        dividend.div(&divisor)
    }

    /// Returns the rest of a division. `None` if an equation may still determine a size: the quotient must be exact, so that the
    /// equation can be solved.
    pub fn rest(&self, dividend: &Size, divisor: &Size) -> Option<Size> {
        let (dividend, divisor) = (self.resolve(dividend), self.resolve(divisor));
        let mut variables = dividend.variables().into_iter().chain(divisor.variables());
        let is_open = |name: String| name.starts_with('?') && !self.axes.contains(&name);
        (!variables.any(is_open)).then(|| dividend.rest(&divisor))
    }

    /// Makes a difference without unknowns zero by the rest of one division, or by divisions that are all exact.
    fn solve_rests(&mut self, difference: &Size, span: Span) -> bool {
        let found = difference.rests();
        let known =
            |(p, q): (&Size, &Size), value| Rest { dividend: p.clone(), divisor: q.clone(), value };
        let vanishes = |known: &Rest| difference.with_rests(&|p, q| known.of(p, q)).is_zero();
        let solution = found.iter().find_map(|(p, q)| {
            let most = q.as_constant().map_or(1, |q| q.min(Rest::MOST));
            (0..most).map(|rest| known((p, q), rest)).find(vanishes)
        });
        let solution: Vec<Rest> = match solution {
            Some(one) => vec![one],
            None if difference.with_rests(&|_, _| Some(Size::constant(0))).is_zero() => {
                found.into_iter().map(|division| known(division, 0)).collect()
            }
            None => return false,
        };
        for Rest { dividend, divisor, value } in &solution {
            let dividend = dividend.sub(&Size::constant(*value));
            self.divides.push(Divides { dividend, divisor: divisor.clone(), span });
        }
        self.rests.extend(solution);
        true
    }

    /// Moves conditions from these places to another.
    pub fn moved(&mut self, from: &dyn Fn(Span) -> bool, to: Span) {
        let places = self.divides.iter_mut().map(|d| &mut d.span);
        let places = places.chain(self.waiting.iter_mut().map(|(.., span)| span));
        places.filter(|span| from(**span)).for_each(|span| *span = to);
    }

    /// Makes two sizes equal, now or later.
    pub fn unify(&mut self, a: &Size, b: &Size, span: Span) -> Result<(), Clash> {
        let (a, b) = (self.resolve(a), self.resolve(b));
        if a == b {
            return Ok(());
        }
        let difference = a.sub(&b);
        if difference.is_zero() {
            return Ok(());
        }
        if !self.has_unknowns(&difference) || difference.overflowed() {
            let equal = !difference.overflowed() && self.solve_rests(&difference, span);
            return if equal { Ok(()) } else { Err(Clash::Size(a, b)) };
        }
        match self.solve(&difference) {
            Some((name, value, demand)) => {
                if let Some((dividend, divisor)) = demand {
                    self.divides.push(Divides { dividend, divisor, span });
                }
                self.solved.insert(name, value);
            }
            None => self.waiting.push((a, b, span)),
        }
        Ok(())
    }

    /// Solves `difference = 0` for an unknown. Returns the unknown, its value, and the condition that the value
    /// needs.
    fn solve(&self, difference: &Size) -> Option<Solution> {
        let mut best = None;
        for (monomial, coefficient) in &difference.0 {
            for (atom, exponent) in monomial {
                let Atom::Var(name) = atom else { continue };
                let mut others = difference.clone();
                others.0.remove(monomial);
                if *exponent != 1 || !self.is_unknown(name) || others.mentions(name) {
                    continue;
                }
                let mut factor = monomial.clone();
                factor.remove(atom);
                let factor = Size([(factor, *coefficient)].into());
                // An unknown factor may turn out to be zero.
                if self.has_unknowns(&factor) {
                    continue;
                }
                let others = others.neg();
                let value = others.div(&factor);
                let demand = (!others.is_multiple_of(&factor)).then_some((others, factor));
                let age: usize = name[1..].parse().unwrap_or(0);
                let rank = (self.axes.contains(name), demand.is_some(), std::cmp::Reverse(age));
                if best.as_ref().is_none_or(|(r, _)| rank < *r) {
                    best = Some((rank, (name.clone(), value, demand)));
                }
            }
        }
        if let Some((_, solution)) = best {
            return Some(solution);
        }
        // If an unknown occurs in a quotient, multiply by the denominator and try again.
        let denominator =
            difference.0.keys().flat_map(|m| m.keys()).find_map(|atom| match atom {
                Atom::Quot(p, q) if self.has_unknowns(p) && !self.has_unknowns(q) => {
                    Some((**q).clone())
                }
                Atom::Quot(..) | Atom::Var(_) | Atom::Rest(..) => None,
            })?;
        let scaled = difference.mul(&denominator);
        if scaled == *difference { None } else { self.solve(&scaled) }
    }

    /// Returns whether an unknown that is older than a rigid size depends on it.
    pub fn escapes(&self, rigid: &str) -> bool {
        let age = |name: &str| name[1..].parse::<usize>().unwrap_or(0);
        let mut older = self.solved.keys().filter(|name| age(name) < age(rigid));
        older.any(|name| self.resolve(&Size::var(name)).mentions(rigid))
    }

    /// Retries the waiting equations until nothing changes. Returns those that are false and those that remain.
    pub fn settle(&mut self) -> Vec<(Size, Size, Span)> {
        let mut wrong = vec![];
        loop {
            let waiting = std::mem::take(&mut self.waiting);
            let before = (waiting.len(), self.solved.len());
            for (a, b, span) in waiting {
                if self.unify(&a, &b, span).is_err() {
                    wrong.push((self.resolve(&a), self.resolve(&b), span));
                }
            }
            if before == (self.waiting.len(), self.solved.len()) || self.waiting.is_empty() {
                break;
            }
        }
        wrong.extend(std::mem::take(&mut self.waiting));
        wrong
    }
}
