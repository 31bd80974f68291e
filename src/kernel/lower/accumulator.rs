//! The form in which a reduction keeps its accumulator from step to step.
//!
//! The operator of a reduction may end in views, as in
//! `asScalar . mapUnroll (vectorize w f) . asVector w`. The accumulator then stays in the form that
//! the last computing stage produces (vectors, or the parts of a tile that belong to work-items),
//! and the views are applied only where the accumulator is read or stored.

use super::apply::is_pure;
use super::dest::Dest;
use super::view::{Shape, Step, View, stop};
use crate::calculus::term::{MapKind, Op, Space, Term, TypeError};
use crate::calculus::ty::Ty;
use crate::diag::Code;
use crate::kernel::analysis::hazard::Owned;

/// The form of an accumulator.
pub struct Form {
    /// Type of the kept value.
    pub ty: Ty,
    /// Views that turn the kept value into the accumulator.
    pub out: Term,
    /// The inverse of `out`.
    pub back: Term,
    /// How the outer array levels are spread over work-items: `Some(d)` for a `mapLcl d`, `None`
    /// for a `mapLane`.
    pub levels: Vec<Option<u8>>,
    /// Memory space that the operator names, if any.
    pub space: Option<Space>,
}

/// The accumulator of a reduction.
pub struct Accumulator {
    /// Reads the accumulator.
    pub view: View,
    /// Writes the accumulator.
    pub dest: Dest,
    /// The registers and memories of the accumulator.
    pub owned: Owned,
    /// View of the accumulator in the form in which it is kept.
    pub kept: View,
    /// Writes the accumulator in that form.
    pub kept_dest: Dest,
    /// Shape of that view.
    pub kept_shape: Shape,
    /// The form in which it is kept.
    pub form: Form,
    /// Whether each work-item keeps its own part.
    pub spread: bool,
}

fn made<T>(r: Result<T, TypeError>) -> Step<T> {
    r.or_else(|e| stop(Code::Internal, e.0))
}

/// Returns the form in which the operator, given as a chain of factors, leaves its accumulator.
pub fn form(op: &[Term]) -> Step<Form> {
    let Some(last) = op.first() else { return stop(Code::Internal, "an operator without steps") };
    if *last.op() == Op::Compose {
        return form(&[&last.chain()[..], &op[1..]].concat());
    }
    let plain = |t: &Term| {
        let id = Term::id(&t.ty().cod);
        Form { ty: t.ty().cod.clone(), out: id.clone(), back: id, levels: vec![], space: None }
    };
    if is_pure(last) {
        let Some(back) = last.inverse().filter(|_| op.len() > 1) else { return Ok(plain(last)) };
        let f = form(&op[1..])?;
        return Ok(Form { out: made(last.after(&f.out))?, back: made(f.back.after(&back))?, ..f });
    }
    match last.op() {
        Op::ToMem(space) => Ok(Form { space: Some(*space), ..form(&last.args()[..1])? }),
        Op::Fold => form(&last.args()[..1]),
        Op::Map(kind) => {
            let f = form(&last.args()[..1])?;
            let n = &last.sizes()[0];
            let each = |t: &Term| {
                if *t.op() == Op::Id {
                    return Ok(Term::id(&Ty::array(n, &t.ty().dom)));
                }
                let kind = Op::Map(MapKind::Plain);
                made(Term::new(kind, vec![n.clone()], vec![], vec![t.clone()]))
            };
            let mut levels = match kind {
                MapKind::Lcl(d) => vec![Some(*d)],
                MapKind::Lane => vec![None],
                _ => vec![],
            };
            if !levels.is_empty() {
                levels.extend(f.levels);
            }
            Ok(Form {
                ty: Ty::array(n, &f.ty),
                out: each(&f.out)?,
                back: each(&f.back)?,
                levels,
                space: None,
            })
        }
        _ => Ok(plain(last)),
    }
}
