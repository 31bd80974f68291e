//! Conditions of the products that a sum takes, such as those of a triangular matrix.

use super::super::core::{Ex, Kind, Vars};
use super::super::ranges::Ranges;
use super::counters::Axis;
use super::{Contractions, Sum, is_zero};
use crate::lang::typed::ScalarOp;

impl Contractions<'_> {
    /// Puts the conditions of a sum over some of the products of two operands into the operands that they depend on:
    /// `if c then a * b else 0` is `(if c then a else 0) * b`, unless `b` is infinite or no number. What is then computed without
    /// all of the conditions must not fail.
    pub(super) fn conditions_into_operands(&mut self, sum: &mut Sum, nest: &[Axis]) {
        let Kind::If(c, yes, no) = &sum.element.kind else { return };
        let Kind::Op(ScalarOp::Mul, factors) = &yes.kind else { return };
        let counters: Vars = nest.iter().map(|a| a.counter).collect();
        let depends = |e: &Ex| -> Vars { e.free().intersection(&counters).copied().collect() };
        let conditions = conjuncts(c);
        let places = conditions.iter().map(|c| {
            let of_condition = depends(c);
            factors.iter().position(|f| of_condition.is_subset(&depends(f)))
        });
        let Some(places) = places.collect::<Option<Vec<usize>>>() else { return };
        let mut ranges = Ranges::new(self.env);
        nest.iter().chain(&sum.axes).for_each(|a| ranges.counter(a.counter, &a.n));
        let mut guarded = vec![];
        for (k, factor) in factors.iter().enumerate() {
            let own: Vec<&Ex> = conditions
                .iter()
                .zip(&places)
                .filter(|(_, at)| **at == k)
                .map(|(c, _)| *c)
                .collect();
            let all = own.len() == conditions.len();
            if !all
                && ![factor].into_iter().chain(own.iter().copied()).all(|e| ranges.cannot_fail(e))
            {
                return;
            }
            // The first condition is the outermost, since later ones may need it.
            guarded.push(
                own.into_iter()
                    .rev()
                    .fold(factor.clone(), |f, c| Ex::choice(c.clone(), f, (**no).clone())),
            );
        }
        if is_zero(no) && self.approx.use_it() {
            sum.element = Ex { kind: Kind::Op(ScalarOp::Mul, guarded), ..sum.element.clone() };
        }
    }
}

/// Returns the conditions that make a condition together.
pub(super) fn conjuncts(c: &Ex) -> Vec<&Ex> {
    match &c.kind {
        Kind::Op(ScalarOp::And, parts) => parts.iter().flat_map(conjuncts).collect(),
        _ => vec![c],
    }
}
