//! Sizes that stand outside programs.

use super::{failed, parse};
use crate::diag::Source;
use crate::lang::ast::{Expr, ExprKind, Operator};
use crate::lang::lexer::Number;
use crate::lang::size::Size;
use crate::lang::typed::ScalarOp;

/// Reads a size such as `2*n - 1`; `None` if the text is none.
pub fn size(text: &str) -> Option<Size> {
    let (file, diagnostics) = parse(&Source::new("size", format!("def size = {text}")));
    let [decl] = file.decls.as_slice() else { return None };
    let alone = !failed(&diagnostics) && file.types.is_empty() && decl.binders.sizes().count() == 0;
    if alone { of(&decl.body) } else { None }
}

fn of(e: &Expr) -> Option<Size> {
    Some(match &e.kind {
        ExprKind::Name(name) if !name.contains('.') => Size::var(name),
        ExprKind::Number(Number::Int(n), None) => Size::constant(i64::try_from(*n).ok()?),
        ExprKind::Paren(inner) => of(inner)?,
        ExprKind::Unary(ScalarOp::Neg, a) => of(a)?.neg(),
        ExprKind::Binary(Operator::Scalar(op), a, b) => {
            let (a, b) = (of(a)?, of(b)?);
            match op {
                ScalarOp::Add => a.add(&b),
                ScalarOp::Sub => a.sub(&b),
                ScalarOp::Mul => a.mul(&b),
                ScalarOp::Div => a.div(&b),
                ScalarOp::Pow => a.pow(u32::try_from(b.as_constant()?).ok().filter(|k| *k < 64)?),
                _ => return None,
            }
        }
        _ => return None,
    })
}
