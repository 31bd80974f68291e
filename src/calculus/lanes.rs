//! Vectorised functions written out: `vectorize w f` of a function on rows in terms of its parts, so that
//! it becomes loops over vectors.
//!
//! What works on elements alone, and what only rearranges, keeps its `vectorize`; a reduction becomes one of
//! vectors: `vectorize w (reduce op z) = reduce (vectorize w op) (splat w . z)`.

use super::size::Size;
use super::term::{Op, Term, TypeError};
use super::ty::Ty;
use crate::lang::typed::PadMode;

/// `vectorize w f`, the vectorising pushed inwards as far as loops reach.
///
/// # Errors
/// When a part of `f` has no vector form; says which.
pub(super) fn push(w: &Size, f: &Term) -> Result<Term, TypeError> {
    if is_elementary(f) || only_rearranges(f) {
        return vectorize(w, f);
    }
    let new = |args: Vec<Term>| {
        let tys = f.tys().iter().map(|t| lanes(w, t)).collect::<Result<_, _>>()?;
        Term::new(f.op().clone(), f.sizes().to_vec(), tys, args)
    };
    match (f.op(), f.args()) {
        (Op::Compose, _) => chain(w, &f.chain()),
        (Op::Fork | Op::Bimap, [a, b]) => new(vec![push(w, a)?, push(w, b)?]),
        (Op::Map(_), [g]) => new(vec![push(w, g)?]),
        (Op::Reduce(_) | Op::Scan(_), [op, z]) => {
            new(vec![push(w, op)?, splat(w, &z.ty().cod)?.after(z)?])
        }
        _ => Err(TypeError(format!("`{f}` has no vector form"))),
    }
}

/// Neighbouring factors that only rearrange stay together: their lanes are taken apart once.
fn chain(w: &Size, factors: &[Term]) -> Result<Term, TypeError> {
    let mut out: Option<Term> = None;
    let mut rest = factors;
    while let Some((first, _)) = rest.split_first() {
        let views = rest.iter().take_while(|f| only_rearranges(f)).count();
        let (run, behind) = rest.split_at(views.max(1));
        let part = match views {
            0 => push(w, first)?,
            _ => {
                let whole = run[1..].iter().try_fold(first.clone(), |all, f| all.after(f))?;
                vectorize(w, &whole)?
            }
        };
        out = Some(match out {
            None => part,
            Some(all) => all.after(&part)?,
        });
        rest = behind;
    }
    out.ok_or_else(|| TypeError("an empty chain".to_owned()))
}

fn vectorize(w: &Size, f: &Term) -> Result<Term, TypeError> {
    Term::new(Op::Vectorize, vec![w.clone()], vec![], vec![f.clone()])
}

fn lanes(w: &Size, t: &Ty) -> Result<Ty, TypeError> {
    Ty::vector(w, t).ok_or_else(|| TypeError(format!("`{t}` has no vector form")))
}

/// A value of this type in every lane.
fn splat(w: &Size, t: &Ty) -> Result<Term, TypeError> {
    match t {
        Ty::Array(n, t) => {
            let map = Op::Map(super::term::MapKind::Plain);
            Term::new(map, vec![n.clone()], vec![], vec![splat(w, t)?])
        }
        Ty::Pair(a, b) if t.has_array() => {
            Term::new(Op::Bimap, vec![], vec![], vec![splat(w, a)?, splat(w, b)?])
        }
        t => Term::new(Op::Splat, vec![w.clone()], vec![t.clone()], vec![]),
    }
}

/// Whether it works on elements alone, without loops: in vectors it is the same code.
fn is_elementary(f: &Term) -> bool {
    let mut elements = true;
    f.visit(&mut |t| elements &= !t.ty().dom.has_array() && !t.ty().cod.has_array());
    elements
}

/// Whether it only picks elements and puts them elsewhere, constants included.
fn only_rearranges(f: &Term) -> bool {
    match f.op() {
        Op::Compose | Op::Fork | Op::Bimap | Op::Map(super::term::MapKind::Plain) => {
            f.args().iter().all(only_rearranges)
        }
        // What they pad with is computed.
        Op::PadTo | Op::Pad(PadMode::Constant) => f.args()[0].ty().dom == Ty::Unit,
        op => op.is_view(),
    }
}
