//! Initial values that are not neutral for their operator.
//!
//! `reduce max 0 xs` means the same as `max 0 (reduce max lowest xs)`, where the initial value is neutral. So a
//! pattern with an operator of the language begins with that operator's neutral element, if its own initial
//! value is found to change elements.
//!
//! An infinite initial value may be neutral for all numbers, but not for itself: in the sum of exponentials
//! `\a b -> let m = max a b in m + log (exp (a - m) + exp (b - m))`, `lowest` and `lowest` give NaN. Kernels
//! combine initial values with each other where there are fewer elements than work-items, so such an operator gives the
//! initial value there.

use super::decide::{constants, keeps_laws, neutral};
use super::slice::{Slice, Values, expr, small_sizes};
use super::{Case, Law, Site, Trial, applied, find, relies, tried};
use crate::calculus::interp::Sizes;
use crate::calculus::sample::{self, Style};
use crate::lang::typed::{Entry, Expr, ExprKind, Fun, Literal, Prim, ScalarOp, VarId};
use crate::lang::types::{ScalarType, Type};

/// The sites ([`find::sites`]) that [`begin`] changes, by number.
#[derive(Clone, Debug, Default)]
pub struct Begins {
    /// The pattern gets another initial value.
    foreign: Vec<usize>,
    /// The operator gets a result for two initial values.
    alone: Vec<usize>,
}

impl Begins {
    /// Number of sites.
    pub fn len(&self) -> usize {
        self.foreign.len() + self.alone.len()
    }

    /// Whether nothing is changed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Returns the sites at which the initial value is no neutral element as it is.
pub fn begins(entry: &Entry) -> Begins {
    let sites = find::sites(entry);
    let mut out = Begins::default();
    for (i, site) in sites.iter().enumerate() {
        if neutral(site.op).is_some() {
            let broken = tried(entry, &Sizes::new(), site, i).broken;
            if matches!(broken, Some((Law::LeftNeutral | Law::RightNeutral, _))) {
                out.foreign.push(i);
            }
        } else if changes_alone(entry, site) {
            out.alone.push(i);
        }
    }
    out
}

/// Whether an operator gives something else for two initial values, one of which is infinite.
fn changes_alone(entry: &Entry, site: &Site) -> bool {
    let infinite = |l: &Literal| matches!(l, Literal::Float(x) if x.is_infinite());
    if !constants(site.z).is_some_and(|z| z.iter().any(infinite)) {
        return false;
    }
    let slice = Slice::of(entry, site, false);
    let trial = Trial::new(entry, site, &slice);
    // The operator may capture variables.
    (0..4).any(|run| {
        let rng = &mut sample::rng(0, &entry.name, run);
        let sizes = small_sizes(rng, entry, &Sizes::new());
        let Ok(Some(made)) = slice.run(rng, &sizes, Values::Of(Style::Small)) else { return false };
        let [a, b, c] = [(); 3].map(|()| made.z.clone());
        let at = Case { sizes: made.sizes, captured: made.captured, z: made.z, a, b, c };
        trial.results(&at).is_some_and(|r| r.za.to_floats() != at.z.to_floats())
    })
}

/// Lets patterns begin with the neutral element of their operator and combines the initial value with their
/// results; or lets the operator give the initial value for two of them.
pub fn begin(entry: &mut Entry, sites: &Begins) {
    if !sites.is_empty() {
        let mut walk = Walk { sites, next: 0, names: &mut entry.names };
        walk.expr(&mut entry.body);
    }
}

struct Walk<'a> {
    sites: &'a Begins,
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
                let (mut here, mut alone) = (false, None);
                if let Some((op, z, commutes)) = relies(*prim, funs, args)
                    && !keeps_laws(op, z, commutes)
                {
                    here = self.sites.foreign.contains(&self.next);
                    alone = self.sites.alone.contains(&self.next).then(|| z.clone());
                    self.next += 1;
                }
                funs.iter_mut().for_each(|f| self.expr(&mut f.body));
                if let (Some(z), [op]) = (alone, &mut funs[..]) {
                    settle(op, z);
                }
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

/// Lets an operator give the initial value for two initial values. The condition is the same with the arguments exchanged, so that a
/// commutative operator is still seen to be one.
fn settle(op: &mut Fun, z: Expr) {
    let truth = |op, args| expr(ExprKind::Scalar(op, args), Type::Scalar(ScalarType::Bool));
    let Some(units) = constants(&z) else { return };
    let mut equal = vec![];
    for (v, t) in &op.params {
        let mut parts = vec![];
        scalars(expr(ExprKind::Var(*v), t.clone()), &mut parts);
        if parts.len() != units.len() {
            return;
        }
        let tests = parts.into_iter().zip(&units).map(|(part, unit)| {
            let unit = expr(ExprKind::Lit(*unit), part.ty.clone());
            truth(ScalarOp::Eq, vec![part, unit])
        });
        equal.extend(tests.reduce(|a, b| truth(ScalarOp::And, vec![a, b])));
    }
    let Some(both) = equal.into_iter().reduce(|a, b| truth(ScalarOp::And, vec![a, b])) else {
        return;
    };
    let (ty, span) = (op.body.ty.clone(), op.body.span);
    let body = std::mem::replace(&mut *op.body, z.clone());
    let kind = ExprKind::If(Box::new(both), Box::new(z), Box::new(body));
    *op.body = Expr { kind, ty, span };
}

/// Collects the scalars of a tuple.
fn scalars(e: Expr, out: &mut Vec<Expr>) {
    match e.ty.clone() {
        Type::Tuple(types) => {
            for (k, t) in types.into_iter().enumerate() {
                scalars(expr(ExprKind::Proj(Box::new(e.clone()), k), t), out);
            }
        }
        _ => out.push(e),
    }
}
