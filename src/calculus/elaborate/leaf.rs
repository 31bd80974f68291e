//! Scalar leaves: separates the part of an expression that is one scalar function from the terms that it
//! needs.
//!
//! [`take_out`] replaces every maximal part that is not scalar (a *hole*: a reduction, an array element, a
//! lazy branch that contains one of these) by a fresh variable. The rest becomes the body of one leaf. A hole
//! never moves out of a binder of its variables.

use super::core::{Ex, Kind, Layout, Var, Vars};
use crate::calculus::scalar::{Lit, SExpr};
use crate::calculus::ty::Ty;
use crate::lang::typed::ScalarOp;
use crate::lang::types::ScalarType;
use std::collections::HashMap;
use std::sync::Arc;

/// The parts of a scalar expression that are not scalar.
pub(super) struct Holes<'a> {
    /// Holes in order of occurrence.
    pub(super) found: Vec<(Var, Ex)>,
    fresh: &'a mut dyn FnMut() -> Var,
}

impl<'a> Holes<'a> {
    /// Starts without holes; `fresh` makes their variables.
    pub(super) fn new(fresh: &'a mut dyn FnMut() -> Var) -> Self {
        Holes { found: vec![], fresh }
    }

    fn hole(&mut self, e: &Ex) -> Ex {
        if let Some((v, _)) = self.found.iter().find(|(_, h)| h.kind == e.kind) {
            return Ex::new(Kind::Var(*v), e.ty.clone(), e.span);
        }
        let v = (self.fresh)();
        self.found.push((v, e.clone()));
        Ex::new(Kind::Var(v), e.ty.clone(), e.span)
    }

    /// Whether holes found since `mark` mention variables that `layouts` bind.
    fn caught(&self, mark: usize, layouts: &[&Layout]) -> bool {
        let bound: Vars = layouts.iter().flat_map(|l| l.vars()).map(|(v, _)| v).collect();
        let new = self.found.get(mark..).unwrap_or_default();
        new.iter().any(|(_, h)| !h.free().is_disjoint(&bound))
    }
}

/// Returns the expression with its holes taken out.
pub(super) fn take_out(e: &Ex, holes: &mut Holes) -> Ex {
    if !e.ty.is_scalar() {
        return holes.hole(e);
    }
    if e.is_pure_scalar() {
        return e.clone();
    }
    let boxed = |e: Ex| Box::new(e);
    let mark = holes.found.len();
    let kind = match &e.kind {
        Kind::Pair(a, b) => Kind::Pair(boxed(take_out(a, holes)), boxed(take_out(b, holes))),
        Kind::Proj(a, second) if a.ty.is_scalar() => Kind::Proj(boxed(take_out(a, holes)), *second),
        Kind::Op(op @ (ScalarOp::And | ScalarOp::Or), es) => match es.as_slice() {
            [a, b] if b.is_pure_scalar() => Kind::Op(*op, vec![take_out(a, holes), b.clone()]),
            // The second operand is lazy.
            [a, b] => {
                let known = Ex::new(Kind::Lit(truth(*op == ScalarOp::Or)), e.ty.clone(), e.span);
                let (yes, no) = match op {
                    ScalarOp::And => (b.clone(), known),
                    _ => (known, b.clone()),
                };
                let lazy = Kind::If(boxed(a.clone()), boxed(yes), boxed(no));
                return holes.hole(&Ex::new(lazy, e.ty.clone(), e.span));
            }
            _ => return holes.hole(e),
        },
        Kind::Op(op, es) => Kind::Op(*op, es.iter().map(|x| take_out(x, holes)).collect()),
        Kind::If(c, t, f) if t.is_pure_scalar() && f.is_pure_scalar() => {
            Kind::If(boxed(take_out(c, holes)), t.clone(), f.clone())
        }
        Kind::Let(p, v, b) if v.ty.is_scalar() => {
            let (v, b) = (take_out(v, holes), take_out(b, holes));
            if holes.caught(mark, &[p]) {
                holes.found.truncate(mark);
                return holes.hole(e);
            }
            Kind::Let(p.clone(), boxed(v), boxed(b))
        }
        Kind::For(init, bound, index, acc, body) => {
            let (init, bound) = (take_out(init, holes), take_out(bound, holes));
            let body = take_out(body, holes);
            if holes.caught(mark, &[index, acc]) {
                holes.found.truncate(mark);
                return holes.hole(e);
            }
            Kind::For(boxed(init), boxed(bound), index.clone(), acc.clone(), boxed(body))
        }
        Kind::While(init, acc, cond, body) => {
            let init = take_out(init, holes);
            let (cond, body) = (take_out(cond, holes), take_out(body, holes));
            if holes.caught(mark, &[acc]) {
                holes.found.truncate(mark);
                return holes.hole(e);
            }
            Kind::While(boxed(init), acc.clone(), boxed(cond), boxed(body))
        }
        Kind::Unit
        | Kind::Var(_)
        | Kind::Input(_)
        | Kind::ScalarInput(..)
        | Kind::Lit(_)
        | Kind::Size(_)
        | Kind::Proj(..)
        | Kind::Index(..)
        | Kind::If(..)
        | Kind::Let(..)
        | Kind::Map(..)
        | Kind::Prim(..) => return holes.hole(e),
    };
    Ex::new(kind, e.ty.clone(), e.span)
}

fn truth(x: bool) -> Lit {
    Lit { ty: ScalarType::Bool, bits: u64::from(x) }
}

/// Whether an expression consists of variables, pairs and projections: it does no work.
pub(super) fn only_arranges(e: &Ex) -> bool {
    match &e.kind {
        Kind::Var(_) => true,
        Kind::Pair(a, b) => only_arranges(a) && only_arranges(b),
        Kind::Proj(a, _) => only_arranges(a),
        _ => false,
    }
}

/// Binds the variables of `layout` to the components of `value`.
fn bind(layout: &Layout, value: &SExpr, names: &mut HashMap<Var, SExpr>) {
    match layout {
        Layout::Unit => {}
        Layout::Var(v, _) => {
            names.insert(*v, value.clone());
        }
        Layout::Pair(a, b) => {
            bind(a, &value.clone().proj(false), names);
            bind(b, &value.clone().proj(true), names);
        }
    }
}

/// Returns the body of a leaf whose argument has this layout; `None` when something in it is not scalar.
pub(super) fn body(e: &Ex, layout: &Layout) -> Option<SExpr> {
    let mut names = HashMap::new();
    bind(layout, &SExpr::Arg, &mut names);
    Writer { names, depth: 0 }.write(e)
}

struct Writer {
    names: HashMap<Var, SExpr>,
    /// Number of levels bound so far.
    depth: u32,
}

impl Writer {
    /// Writes `e` under one more level for each layout.
    fn under(&mut self, layouts: &[&Layout], e: &Ex) -> Option<SExpr> {
        let outer = self.depth;
        for l in layouts {
            bind(l, &SExpr::Var(self.depth, l.ty()), &mut self.names);
            self.depth += 1;
        }
        let out = self.write(e);
        self.depth = outer;
        out
    }

    fn write(&mut self, e: &Ex) -> Option<SExpr> {
        let scalar = |t: &Ty| match t {
            Ty::Scalar(s) => Some(*s),
            _ => None,
        };
        Some(match &e.kind {
            Kind::Var(v) => self.names.get(v)?.clone(),
            Kind::ScalarInput(name, i) => SExpr::Input(name.clone(), *i, scalar(&e.ty)?),
            Kind::Lit(l) => SExpr::Lit(*l),
            Kind::Size(s) => SExpr::Size(s.clone(), scalar(&e.ty)?),
            Kind::Pair(a, b) => SExpr::pair(self.write(a)?, self.write(b)?),
            Kind::Proj(a, second) => self.write(a)?.proj(*second),
            Kind::Op(op, es) => {
                // A cast in a term names the source type, a cast of the language the target type.
                let op = match (op, es.as_slice()) {
                    (ScalarOp::Cast(_), [x]) => ScalarOp::Cast(scalar(&x.ty)?),
                    _ => *op,
                };
                let es = es.iter().map(|x| self.write(x)).collect::<Option<_>>()?;
                SExpr::Op(op, scalar(&e.ty)?, es)
            }
            Kind::If(c, t, f) => SExpr::If(
                Arc::new(self.write(c)?),
                Arc::new(self.write(t)?),
                Arc::new(self.write(f)?),
            ),
            Kind::Let(p, v, b) => {
                let v = self.write(v)?;
                SExpr::Let(Arc::new(v), Arc::new(self.under(&[p], b)?))
            }
            Kind::For(init, bound, index, acc, b) => {
                let (init, bound) = (self.write(init)?, self.write(bound)?);
                let b = self.under(&[index, acc], b)?;
                SExpr::For(Arc::new(init), Arc::new(bound), Arc::new(b))
            }
            Kind::While(init, acc, cond, b) => {
                let init = self.write(init)?;
                let cond = self.under(&[acc], cond)?;
                let b = self.under(&[acc], b)?;
                SExpr::While(Arc::new(init), Arc::new(cond), Arc::new(b))
            }
            Kind::Unit | Kind::Input(_) | Kind::Index(..) | Kind::Map(..) | Kind::Prim(..) => {
                return None;
            }
        })
    }
}
