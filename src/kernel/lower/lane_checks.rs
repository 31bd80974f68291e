//! Restricts checks to the lanes that need them.
//!
//! A vectorised choice evaluates both of its sides in all lanes. The checks of each side are
//! therefore made only in the lanes that take that side.

use super::view::View;
use crate::calculus::scalar::Lit;
use crate::kernel::ir::walk::{rebuild_all, rebuilt};
use crate::kernel::ir::{Block, Check, ElemTy, Expr};
use crate::lang::typed::ScalarOp;
use crate::lang::types::ScalarType;

/// Whether the code or the value contains a check. The checks of an array's elements are not
/// visible here.
pub fn any(b: &Block, v: &View) -> bool {
    let mut found = false;
    for s in b {
        s.visit(&mut |s| s.exprs(&mut |e| found |= e.has_check()));
    }
    found || in_view(v)
}

fn in_view(v: &View) -> bool {
    match v {
        View::Unit | View::Array(_) => false,
        View::Elem(e) => e.has_check(),
        View::Pair(a, b) => in_view(a) || in_view(b),
    }
}

/// Restricts the checks of the code and of the value to the lanes where `c` holds.
pub fn only_where(c: &Expr, b: &mut Block, v: &mut View) {
    rebuild_all(b, &mut |e| expr(c, e));
    view(c, v);
}

fn view(c: &Expr, v: &mut View) {
    match v {
        View::Unit | View::Array(_) => {}
        View::Elem(e) => *e = expr(c, e),
        View::Pair(a, b) => {
            let (mut x, mut y) = ((**a).clone(), (**b).clone());
            view(c, &mut x);
            view(c, &mut y);
            *v = View::pair(x, y);
        }
    }
}

/// Returns the expression with its checks restricted to the lanes where `c` holds. `c` has one
/// lane, or as many as the expression.
fn expr(c: &Expr, e: &Expr) -> Expr {
    if !e.has_check() {
        return e.clone();
    }
    if e.ty().width == 1 && c.ty().width > 1 {
        return expr(&some_lane(c), e);
    }
    match e {
        Expr::Vector(es) if c.ty().width > 1 => {
            Expr::Vector(es.iter().enumerate().map(|(k, e)| expr(&c.lane(k), e)).collect())
        }
        // A splat has one value for all lanes, and a load has one address for all lanes, so check
        // if any lane needs it.
        Expr::Splat(..) | Expr::Load(..) | Expr::Index(..) => {
            let c = some_lane(c);
            rebuilt(e, &mut |e, _| expr(&c, e))
        }
        // The other lanes of the vector are not used.
        Expr::Lane(v, k) => {
            let width = v.ty().width;
            let none = Expr::Lit(Lit::int(ScalarType::Bool, 0));
            let lanes = (0..width).map(|j| if j == *k { c.clone() } else { none.clone() });
            expr(&Expr::vector(lanes.collect()), v).lane(*k)
        }
        Expr::Checked(check, es) => {
            let mut es: Vec<Expr> = es.iter().map(|e| expr(c, e)).collect();
            if let Some(first) = es.first_mut() {
                *first = chosen(c, first, *check);
            }
            Expr::Checked(*check, es)
        }
        e => rebuilt(e, &mut |e, _| expr(c, e)),
    }
}

/// Returns the operand where `c` holds, and elsewhere a value that passes the check.
fn chosen(c: &Expr, e: &Expr, check: Check) -> Expr {
    let ty = e.ty();
    let passes = match check {
        Check::Divisor => 1,
        Check::Index(_) | Check::Exponent => 0,
    };
    let other = Expr::Lit(Lit::int(ty.scalar, passes)).widen(ty.width);
    Expr::Op(ScalarOp::Select, ty, vec![c.clone().widen(ty.width), e.clone(), other])
}

/// Returns a condition that is true if `c` holds in any lane.
fn some_lane(c: &Expr) -> Expr {
    let ty = ElemTy::scalar(ScalarType::Bool);
    if c.ty().width == 1 {
        return c.clone();
    }
    let lanes = (0..c.ty().width).map(|k| c.lane(k));
    lanes
        .reduce(|a, b| Expr::Op(ScalarOp::Or, ty, vec![a, b]))
        .unwrap_or_else(|| Expr::Lit(Lit::int(ScalarType::Bool, 1)))
}
