//! Computes reductions in front of the choice that needs them.
//!
//! `if j <= i then dot q k else -inf` for all `i` and `j` is no product of matrices: each pair has a branch, and the reduction
//! is in it. With the reduction in front of the branch it is one, of which some results are not used. Whether that pays
//! depends on how many. So this is a second form of a program, and the cost model decides.
//!
//! Only what cannot fail moves: where the branch is not taken, its indices and divisors may be wrong.

use super::core::{Ex, Kind, Layout, Var};
use super::hoist::{self, contains_reduction};
use super::interchange::named;
use super::ranges::Ranges;
use crate::calculus::size::SizeEnv;
use crate::lang::typed::Prim;

/// Returns the program with reductions in front of the choices in its maps; `None` if there are none.
pub(super) fn reductions_first(
    e: &Ex,
    env: &SizeEnv,
    fresh: &mut dyn FnMut() -> Var,
) -> Option<Ex> {
    let mut out = e.clone();
    walk(&mut out, false, &mut Ranges::new(env), fresh).then_some(out)
}

/// Changes all choices in an expression. Returns whether there were any.
fn walk(e: &mut Ex, in_map: bool, ranges: &mut Ranges, fresh: &mut dyn FnMut() -> Var) -> bool {
    let in_map = in_map || matches!(e.kind, Kind::Map(Prim::Map, ..));
    ranges.enter(e);
    let mut changed = false;
    for part in e.parts_mut() {
        changed |= walk(part, in_map, ranges, fresh);
    }
    if let (true, Kind::If(_, yes, no)) = (in_map, &mut e.kind) {
        let mut moved = vec![];
        take_reductions(yes, &mut moved, ranges, fresh);
        take_reductions(no, &mut moved, ranges, fresh);
        changed |= !moved.is_empty();
        // Later ones need earlier ones.
        for (name, value) in moved.into_iter().rev() {
            let body = Box::new(e.clone());
            e.kind = Kind::Let(name, Box::new(value), body);
        }
    }
    changed
}

/// Replaces the reductions in a branch by names, and moves the names that they need with them.
fn take_reductions(
    e: &mut Ex,
    moved: &mut Vec<(Layout, Ex)>,
    ranges: &mut Ranges,
    fresh: &mut dyn FnMut() -> Var,
) {
    if hoist::reduces(&e.kind) && e.ty.is_scalar() {
        if ranges.cannot_fail(e) {
            let name = named(&e.ty, fresh);
            let value = std::mem::replace(e, name.value(e.span));
            moved.push((name, value));
        }
        return;
    }
    match &mut e.kind {
        Kind::Op(..) | Kind::Pair(..) | Kind::Proj(..) => {
            e.parts_mut().into_iter().for_each(|part| take_reductions(part, moved, ranges, fresh));
        }
        Kind::Let(name, value, body) if ranges.cannot_fail(value) => {
            let mut inner = vec![];
            take_reductions(body, &mut inner, ranges, fresh);
            if contains_reduction(value) || !inner.is_empty() {
                moved.push((name.clone(), (**value).clone()));
                moved.append(&mut inner);
                *e = (**body).clone();
            }
        }
        // What is bound inside the branch is not known in front of it.
        _ => {}
    }
}
