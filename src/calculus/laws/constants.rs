//! The numbers that an operator mentions.

use super::find::{Site, free};
use crate::calculus::interp::{self, Sizes};
use crate::calculus::sample::Constant;
use crate::calculus::value::{Leaf, Value};
use crate::lang::typed::{Entry, Expr, ExprKind};
use crate::lang::types::Type;

/// Most numbers that are kept.
const MOST: usize = 16;
/// Whole numbers up to this one occur among random values anyway.
const COMMON: f64 = 4.0;

/// Numbers around which an operator may behave in another way than elsewhere.
pub(super) struct Constants {
    list: Vec<Constant>,
}

impl Constants {
    /// Collects the numbers of an operator, including the values of expressions without variables.
    pub(super) fn of(entry: &Entry, site: &Site) -> Constants {
        let mut out = Constants { list: vec![] };
        out.expr(entry, &site.op.body);
        out
    }

    pub(super) fn list(&self) -> &[Constant] {
        &self.list
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Adds the scalars of a value.
    pub(super) fn add(&mut self, v: &Value) {
        for leaf in v.leaves() {
            let Leaf::Scalar(ty, cell) = leaf else { continue };
            let c = Constant::of(*ty, *cell);
            let common = c.float.fract() == 0.0 && c.float.abs() <= COMMON;
            if c.float.is_finite() && !common && !self.list.contains(&c) && self.list.len() < MOST {
                self.list.push(c);
            }
        }
    }

    fn expr(&mut self, entry: &Entry, e: &Expr) {
        let mut mentioned = vec![];
        free(e, &mut mentioned);
        if mentioned.is_empty() && matches!(e.ty, Type::Scalar(_)) {
            let alone = Entry {
                params: vec![],
                sizes: vec![],
                divides: vec![],
                body: e.clone(),
                ..entry.clone()
            };
            // An expression that mentions a size has no value here; sizes are small when operators are tried.
            if let Ok(v) = interp::run(&alone, &Sizes::new(), &[]) {
                self.add(&v);
            }
            return;
        }
        match &e.kind {
            ExprKind::Lit(_) | ExprKind::Var(_) | ExprKind::Size(_) => {}
            ExprKind::Proj(a, _) => self.expr(entry, a),
            ExprKind::Index(a, b) | ExprKind::Let(_, a, b) => {
                [a, b].into_iter().for_each(|e| self.expr(entry, e));
            }
            ExprKind::Tuple(es) | ExprKind::Scalar(_, es) => {
                es.iter().for_each(|e| self.expr(entry, e));
            }
            ExprKind::If(a, b, c)
            | ExprKind::LoopFor { init: a, bound: b, body: c, .. }
            | ExprKind::LoopWhile { init: a, cond: b, body: c, .. } => {
                [a, b, c].into_iter().for_each(|e| self.expr(entry, e));
            }
            ExprKind::Prim { funs, args, .. } => {
                args.iter().for_each(|a| self.expr(entry, a));
                funs.iter().for_each(|f| self.expr(entry, &f.body));
            }
        }
    }
}
