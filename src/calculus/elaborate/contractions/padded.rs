//! Reads that are tested to lie in an array: they read the array with a border.
//!
//! `if y + d >= 1 && y + d - 1 < h then x[y + d - 1] else 0` is `(pad 1 1 0 x)[y + d]`, whose values at all counters are a view: windows.

use super::super::core::{Ex, Kind, Vars};
use super::conditions::conjuncts;
use super::counters::{Affine, Axis, affine};
use super::operands::Operands;
use crate::lang::typed::ScalarOp;

impl Operands<'_> {
    /// Returns the read of an array with a border that a read with tests is; `None` if there are no tests, or others.
    pub(super) fn padded(&mut self, e: &Ex, axes: &[&Axis]) -> Option<Ex> {
        let counters: Vars = axes.iter().map(|a| a.counter).collect();
        let (mut tests, mut read, mut border) = (vec![], e, None);
        while let Kind::If(c, yes, no) = &read.kind {
            for test in conjuncts(c) {
                tests.push(not_negative(test, &counters, self)?);
            }
            if !matches!(no.kind, Kind::Lit(_)) || border.is_some_and(|b: &Ex| *b != **no) {
                return None;
            }
            (read, border) = (yes, Some(&**no));
        }
        let border = border?;
        let (mut array, mut places) = (read, vec![]);
        while let Kind::Index(a, at) = &array.kind {
            let n = i128::from(a.length()?.eval(self.env).ok()?);
            places.push((affine(at, &counters, self.env)?, &**at, n));
            array = a;
        }
        if !array.free().is_disjoint(&counters) || !array.is_free_of_cost() {
            return None;
        }
        let (mut out, mut moved) = (array.clone(), vec![]);
        // The innermost dimension comes first.
        let depth = places.len();
        for (k, (place, at, n)) in places.into_iter().enumerate() {
            let (least, most) = place.range(axes, self.env)?;
            let mut tested = |test: &Affine| {
                let before = tests.len();
                tests.retain(|t| t != test);
                tests.len() < before
            };
            let above = tested(&place);
            let below = tested(&Affine { counters: vec![], constant: n - 1 }.plus(&place, -1)?);
            let (left, right) = ((-least).max(0), (most - n + 1).max(0));
            // A border that is longer than the array would hold little else.
            if left > 0 && !above || right > 0 && !below || left + right > n {
                return None;
            }
            let (left, right) = (u64::try_from(left).ok()?, u64::try_from(right).ok()?);
            if left + right > 0 {
                out = self.at(depth - 1 - k, out, &mut |this, a| {
                    a.with_border(left, right, border, this.env)
                })?;
            }
            moved.push(at.further(left)?);
        }
        // Tests that always hold say nothing.
        let holds = |t: &Affine| t.range(axes, self.env).is_some_and(|(least, _)| least >= 0);
        if !tests.iter().all(holds) {
            return None;
        }
        moved.iter().rev().try_fold(out, |array, at| array.element(at))
    }
}

/// Returns what a comparison of places says is not negative.
fn not_negative(test: &Ex, counters: &Vars, of: &Operands) -> Option<Affine> {
    let Kind::Op(op, sides) = &test.kind else { return None };
    let [a, b] = &sides[..] else { return None };
    let (a, b) = (affine(a, counters, of.env)?, affine(b, counters, of.env)?);
    match op {
        ScalarOp::Ge => a.plus(&b, -1),
        ScalarOp::Gt => a.plus(&b, -1).map(|t| t.further(-1)),
        ScalarOp::Le => b.plus(&a, -1),
        ScalarOp::Lt => b.plus(&a, -1).map(|t| t.further(-1)),
        _ => None,
    }
}
