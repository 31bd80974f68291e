//! Loops whose counter is only used behind an offset count from the offset.
//!
//! `for d < m - 1 - i do s + A[i + 1 + d]` goes through the elements from `i + 1` up to `m`. With `k = i + 1 + d` for a counter, a
//! reduction reads `A[k]` for all `k < m`, of which those before `i + 1` are neutral: its elements are those of the array itself,
//! as the rules need them, and not those of a window that differs for each `i`.

use super::core::{Ex, Kind, Layout, Var, Vars};
use super::ranges::Ranges;
use crate::calculus::scalar::Lit;
use crate::calculus::size::Size;
use crate::calculus::ty::Ty;
use crate::diag::Span;
use crate::lang::typed::ScalarOp;
use crate::lang::types::ScalarType;
use std::collections::HashMap;

/// The values of names for sums.
pub(super) type Sums = HashMap<Var, Sum>;

/// A loop that counts from an offset.
pub(super) struct Shifted {
    pub(super) counter: Layout,
    pub(super) body: Ex,
    /// The counter stays below this size.
    pub(super) n: Size,
    /// The first value of the counter.
    pub(super) from: Ex,
    /// The counter ends below this value, if that is not the size.
    pub(super) to: Option<Ex>,
}

/// Returns a loop of at most `most` steps with another counter; `None` if the counter is used without an offset, with several, or if
/// most of the new counter's values would be outside of the loop.
pub(super) fn shifted(
    (counter, acc, bound, body): ((Var, ScalarType), &Layout, &Ex, &Ex),
    most: u64,
    ranges: &Ranges,
    names: &Sums,
    fresh: &mut dyn FnMut() -> Var,
) -> Option<Shifted> {
    let (old, ty) = counter;
    let span = bound.span;
    let mut body = body.clone();
    inline_sums(&mut body);
    let mut own = acc.vars().into_iter().map(|(v, _)| v).collect();
    binders(&body, &mut own);
    let mut shift = Shift { old, new: fresh(), names, offset: None };
    if !shift.replace(&mut body) {
        return None;
    }
    let (new, offset) = (shift.new, shift.offset.filter(|offset| *offset != Sum::default())?);
    // What the loop itself names is not known in front of it, nor is its state.
    let known = |(term, _): &(Term, i128)| match term {
        Term::Name(v) => !own.contains(v),
        Term::Size(_) => true,
    };
    if !offset.terms.iter().all(known) {
        return None;
    }
    let from = offset.value(ty, span)?;
    ranges.natural(&from)?;
    let end = Sum::of(bound, names).map(|bound| offset.plus(&bound, 1));
    let (n, to) = match end.as_ref().and_then(|end| end.size(ranges)) {
        Some(n) => (n, None),
        None => {
            let to = Ex::op(ScalarOp::Add, vec![from.clone(), bound.clone()], ty, span);
            (Size::constant(u64::try_from(ranges.greatest(&to)?).ok()?), Some(to))
        }
    };
    let steps = ranges.size(&n)?;
    if steps > most.saturating_mul(2) || i128::from(steps) > limit(ty)? {
        return None;
    }
    Some(Shifted { counter: Layout::Var(new, Ty::Scalar(ty)), body, n, from, to })
}

/// Returns the length of an array whose elements a counter below `most` reads, if it is little more: then the counter goes through the
/// whole array.
pub(super) fn length_of_read(body: &Ex, counter: Var, most: u64, ranges: &Ranges) -> Option<Size> {
    if let Kind::Index(array, at) = &body.kind
        && at.kind == Kind::Var(counter)
        && let Ty::Array(n, _) = &array.ty
        && let Some(len) = ranges.size(n)
        && (most..=most.saturating_add(most / 16 + 1)).contains(&len)
    {
        return Some(n.clone());
    }
    body.parts().iter().find_map(|(_, part)| length_of_read(part, counter, most, ranges))
}

/// Puts sums of names and numbers where their names are used.
fn inline_sums(e: &mut Ex) {
    while let Kind::Let(Layout::Var(v, _), value, body) = &mut e.kind
        && Sum::of(value, &Sums::new()).is_some()
    {
        body.put(*v, value);
        *e = (**body).clone();
    }
    e.parts_mut().into_iter().for_each(inline_sums);
}

/// Collects the names that an expression binds.
fn binders(e: &Ex, out: &mut Vars) {
    for (layouts, part) in e.parts() {
        out.extend(layouts.iter().flat_map(|p| p.vars()).map(|(v, _)| v));
        binders(part, out);
    }
}

/// Returns the greatest number of an integer type.
fn limit(ty: ScalarType) -> Option<i128> {
    let bits = ty.bits() - usize::from(ty.is_signed());
    (!ty.is_float() && ty != ScalarType::Bool).then_some((1 << bits) - 1)
}

struct Shift<'a> {
    old: Var,
    new: Var,
    names: &'a Sums,
    /// What is added to the counter wherever it is used.
    offset: Option<Sum>,
}

impl Shift<'_> {
    /// Replaces the sums with the counter; `false` if another one is used as well.
    fn replace(&mut self, e: &mut Ex) -> bool {
        if let Some(sum) = Sum::of(e, self.names)
            && let Some((_, times)) = sum.terms.iter().find(|(t, _)| *t == Term::Name(self.old))
        {
            let counter = Sum { terms: vec![(Term::Name(self.old), *times)], constant: 0 };
            let offset = sum.plus(&counter, -1);
            let known = self.offset.get_or_insert_with(|| offset.clone());
            if *times != 1 || *known != offset {
                return false;
            }
            e.kind = Kind::Var(self.new);
            return true;
        }
        e.parts_mut().into_iter().all(|part| self.replace(part))
    }
}

/// A sum of multiples of names and sizes, and a number. No term is zero times something, and the terms have an order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sum {
    terms: Vec<(Term, i128)>,
    constant: i128,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Term {
    Name(Var),
    Size(Size),
}

impl Sum {
    /// Returns an integer as a sum; `None` if it is none.
    pub(super) fn of(e: &Ex, names: &Sums) -> Option<Sum> {
        let Ty::Scalar(ty) = &e.ty else { return None };
        limit(*ty)?;
        let one = |term| Some(Sum { terms: vec![(term, 1)], constant: 0 });
        match &e.kind {
            Kind::Lit(l) => Some(Sum { terms: vec![], constant: l.as_int()? }),
            Kind::Size(n) => match n.as_constant() {
                Some(n) => Some(Sum { terms: vec![], constant: n.into() }),
                None => one(Term::Size(n.clone())),
            },
            Kind::Var(v) => match names.get(v) {
                Some(value) => Some(value.clone()),
                None => one(Term::Name(*v)),
            },
            Kind::Op(op @ (ScalarOp::Add | ScalarOp::Sub), args) => {
                let (a, b) = (Sum::of(&args[0], names)?, Sum::of(&args[1], names)?);
                Some(a.plus(&b, if *op == ScalarOp::Add { 1 } else { -1 }))
            }
            _ => None,
        }
    }

    /// The sum with a multiple of another one.
    fn plus(&self, other: &Sum, times: i128) -> Sum {
        let mut out = self.clone();
        let multiple = |n: i128| n.saturating_mul(times);
        out.constant = out.constant.saturating_add(multiple(other.constant));
        for (term, n) in &other.terms {
            match out.terms.iter_mut().find(|(t, _)| t == term) {
                Some((_, known)) => *known = known.saturating_add(multiple(*n)),
                None => out.terms.push((term.clone(), multiple(*n))),
            }
        }
        out.terms.retain(|(_, n)| *n != 0);
        out.terms.sort();
        out
    }

    /// Returns the sum as a size, if no names are left in it.
    fn size(&self, ranges: &Ranges) -> Option<Size> {
        if let ([(Term::Size(n), 1)], 0) = (&self.terms[..], self.constant) {
            return Some(n.clone());
        }
        let mut sum = self.constant;
        for (term, times) in &self.terms {
            let Term::Size(n) = term else { return None };
            sum = sum.checked_add(times.checked_mul(i128::from(ranges.size(n)?))?)?;
        }
        u64::try_from(sum).ok().map(Size::constant)
    }

    /// Returns the sum as an expression in which what is added comes first.
    fn value(&self, ty: ScalarType, span: Span) -> Option<Ex> {
        let scalar = |kind| Ex::new(kind, Ty::Scalar(ty), span);
        let number = |n: i128| scalar(Kind::Lit(Lit::int(ty, n)));
        let mut out: Option<Ex> = None;
        for sign in [1, -1] {
            let terms = self.terms.iter().filter(|(_, n)| n.signum() == sign).map(|(term, n)| {
                let kind = match term {
                    Term::Name(v) => Kind::Var(*v),
                    Term::Size(n) => Kind::Size(n.clone()),
                };
                (n.unsigned_abs() == 1).then(|| scalar(kind))
            });
            let constant = (self.constant.signum() == sign)
                .then(|| Some(number(self.constant.saturating_abs())));
            for term in terms.chain(constant) {
                out = Some(match out {
                    None if sign == 1 => term?,
                    None => return None,
                    Some(sum) => {
                        let op = if sign == 1 { ScalarOp::Add } else { ScalarOp::Sub };
                        Ex::op(op, vec![sum, term?], ty, span)
                    }
                });
            }
        }
        out
    }
}
