//! Conditions of the products that a sum takes, such as those of a triangular matrix.

use super::super::core::{Ex, Kind, Vars};
use super::{Contractions, Sum, is_zero};
use crate::lang::typed::ScalarOp;

impl Contractions<'_> {
    /// Puts the conditions of a sum over some of the products of two operands into the operands that they depend on:
    /// `if c then a * b else 0` is `(if c then a else 0) * b`, unless `b` is infinite or no number.
    pub(super) fn conditions_into_operands(&mut self, sum: &mut Sum, counters: &Vars) {
        let Kind::If(c, yes, no) = &sum.element.kind else { return };
        let Kind::Op(ScalarOp::Mul, factors) = &yes.kind else { return };
        let depends = |e: &Ex| -> Vars { e.free().intersection(counters).copied().collect() };
        let of_factors: Vec<Vars> = factors.iter().map(depends).collect();
        let mut factors = factors.clone();
        for c in conjuncts(c) {
            let of_condition = depends(c);
            let Some(k) = of_factors.iter().position(|f| of_condition.is_subset(f)) else { return };
            factors[k] = Ex::choice(c.clone(), factors[k].clone(), (**no).clone());
        }
        if is_zero(no) && self.approx.use_it() {
            sum.element = Ex { kind: Kind::Op(ScalarOp::Mul, factors), ..sum.element.clone() };
        }
    }
}

/// Returns the conditions that make a condition together.
fn conjuncts(c: &Ex) -> Vec<&Ex> {
    match &c.kind {
        Kind::Op(ScalarOp::And, parts) => parts.iter().flat_map(conjuncts).collect(),
        _ => vec![c],
    }
}
