//! Initial values that are not neutral for their operator.
//!
//! `reduce max 0 xs` means the same as `max 0 (reduce max lowest xs)`, where the initial value is neutral. So a
//! pattern with an operator of the language begins with that operator's neutral element, if its own initial
//! value is found to change elements.

use super::decide::{keeps_laws, neutral};
use super::slice::expr;
use super::{Law, applied, find, relies, tried};
use crate::calculus::interp::Sizes;
use crate::lang::typed::{Entry, Expr, ExprKind, Fun, Prim, VarId};
use crate::lang::types::Type;

/// Returns the numbers of the sites ([`find::sites`]) at which [`begin`] gives the pattern another initial value.
pub fn foreign(entry: &Entry) -> Vec<usize> {
    let sites = find::sites(entry);
    let known = sites.iter().enumerate().filter(|(_, site)| neutral(site.op).is_some());
    let foreign = known.filter(|(i, site)| {
        let broken = tried(entry, &Sizes::new(), site, *i).broken;
        matches!(broken, Some((Law::LeftNeutral | Law::RightNeutral, _)))
    });
    foreign.map(|(i, _)| i).collect()
}

/// Lets the patterns at these sites begin with the neutral element of their operator, and combines the initial
/// value with their results.
pub fn begin(entry: &mut Entry, sites: &[usize]) {
    if !sites.is_empty() {
        let mut walk = Walk { sites, next: 0, names: &mut entry.names };
        walk.expr(&mut entry.body);
    }
}

struct Walk<'a> {
    sites: &'a [usize],
    /// The number of the next site, in the order of [`find::sites`].
    next: usize,
    names: &'a mut Vec<String>,
}

impl Walk<'_> {
    fn expr(&mut self, e: &mut Expr) {
        match &mut e.kind {
            ExprKind::Lit(_) | ExprKind::Var(_) | ExprKind::Size(_) => {}
            ExprKind::Proj(a, _) => self.expr(a),
            ExprKind::Index(a, b) | ExprKind::Let(_, a, b) => {
                [a, b].into_iter().for_each(|e| self.expr(e));
            }
            ExprKind::Tuple(es) | ExprKind::Scalar(_, es) => {
                es.iter_mut().for_each(|e| self.expr(e));
            }
            ExprKind::If(a, b, c)
            | ExprKind::LoopFor { init: a, bound: b, body: c, .. }
            | ExprKind::LoopWhile { init: a, cond: b, body: c, .. } => {
                [a, b, c].into_iter().for_each(|e| self.expr(e));
            }
            ExprKind::Prim { prim, funs, args, .. } => {
                args.iter_mut().for_each(|a| self.expr(a));
                let mut here = false;
                if let Some((op, z, commutes)) = relies(*prim, funs, args)
                    && !keeps_laws(op, z, commutes)
                {
                    here = self.sites.contains(&self.next);
                    self.next += 1;
                }
                funs.iter_mut().for_each(|f| self.expr(&mut f.body));
                if here {
                    self.start(e);
                }
            }
        }
    }

    fn fresh(&mut self, name: &str) -> VarId {
        self.names.push(name.to_owned());
        VarId(u32::try_from(self.names.len() - 1).unwrap_or(u32::MAX))
    }

    fn start(&mut self, e: &mut Expr) {
        let ExprKind::Prim { prim, funs, args, .. } = &mut e.kind else { return };
        let ([op], [z, ..]) = (funs.as_slice(), args.as_mut_slice()) else { return };
        let Some(unit) = neutral(op) else { return };
        let (op, own) = (op.clone(), std::mem::replace(z, unit));
        let one_result = matches!(prim, Prim::Reduce | Prim::ReduceComm);
        let (span, ty) = (e.span, e.ty.clone());
        let result = std::mem::replace(e, expr(ExprKind::Tuple(vec![]), ty.clone()));
        // The operator's variables are bound once more around its body, so `result`, which binds them too, stays
        // outside.
        let (z, x) = (self.fresh("z"), self.fresh("x"));
        let kind = if one_result {
            let combined = applied(&op, own, expr(ExprKind::Var(x), ty.clone()));
            ExprKind::Let(x, Box::new(result), Box::new(combined))
        } else {
            let Type::Array(_, t) = &ty else { return };
            let var = |v| expr(ExprKind::Var(v), (**t).clone());
            let f = Fun {
                params: vec![(x, (**t).clone())],
                body: Box::new(applied(&op, var(z), var(x))),
            };
            let mapped = ExprKind::Prim {
                prim: Prim::Map,
                funs: vec![f],
                sizes: vec![],
                args: vec![result],
            };
            let mapped = Expr { kind: mapped, ty: ty.clone(), span };
            ExprKind::Let(z, Box::new(own), Box::new(mapped))
        };
        *e = Expr { kind, ty, span };
    }
}
