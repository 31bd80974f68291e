//! Loop-invariant reductions: what is reduced or scanned inside a function under a pattern, but
//! mentions nothing of it, is computed once in front of the program.
//!
//! Only what costs work moves: views of inputs stay where they are, because constants in place are
//! what `cross` is found by. Nothing moves out of a branch, nor out of a low-level map, whose place is
//! the program's own choice.

use super::core::{Ex, Kind, Lambda, Layout, Var};
use crate::lang::typed::Prim;

/// The program with its invariant reductions in front.
pub(super) fn hoist(body: Ex, fresh: &mut dyn FnMut() -> Var) -> Ex {
    let mut moved = vec![];
    let mut body = body;
    walk(&mut body, false, &mut moved, fresh);
    for (v, e) in moved.into_iter().rev() {
        let layout = Layout::Var(v, e.ty.clone());
        let (ty, span) = (body.ty.clone(), body.span);
        body = Ex::new(Kind::Let(layout, Box::new(e), Box::new(body)), ty, span);
    }
    body
}

fn walk(e: &mut Ex, inside: bool, moved: &mut Vec<(Var, Ex)>, fresh: &mut dyn FnMut() -> Var) {
    if inside && reduces(&e.kind) && e.free().is_empty() {
        let known = moved.iter().find(|(_, m)| m.kind == e.kind).map(|(v, _)| *v);
        let v = known.unwrap_or_else(|| {
            let v = fresh();
            moved.push((v, e.clone()));
            v
        });
        e.kind = Kind::Var(v);
        return;
    }
    let mut lambda =
        |f: &mut Lambda, moved: &mut Vec<(Var, Ex)>| walk(&mut f.body, true, moved, fresh);
    match &mut e.kind {
        Kind::Unit
        | Kind::Var(_)
        | Kind::Input(_)
        | Kind::ScalarInput(..)
        | Kind::Lit(_)
        | Kind::Size(_) => {}
        Kind::Map(Prim::Map, f, args) => {
            lambda(f, moved);
            args.iter_mut().for_each(|a| walk(a, inside, moved, fresh));
        }
        // The place of what runs in a low-level pattern is the program's choice.
        Kind::Map(_, _, args) => args.iter_mut().for_each(|a| walk(a, inside, moved, fresh)),
        Kind::Prim(_, _, _, args) => args.iter_mut().for_each(|a| walk(a, inside, moved, fresh)),
        Kind::Pair(a, b) | Kind::Index(a, b) | Kind::Let(_, a, b) => {
            walk(a, inside, moved, fresh);
            walk(b, inside, moved, fresh);
        }
        Kind::Proj(a, _) => walk(a, inside, moved, fresh),
        Kind::Op(_, es) => es.iter_mut().for_each(|x| walk(x, inside, moved, fresh)),
        // A branch may not be taken, a loop not be entered.
        Kind::If(c, _, _) => walk(c, inside, moved, fresh),
        Kind::For(init, bound, ..) => {
            walk(init, inside, moved, fresh);
            walk(bound, inside, moved, fresh);
        }
        Kind::While(init, ..) => walk(init, inside, moved, fresh),
    }
}

fn reduces(kind: &Kind) -> bool {
    matches!(
        kind,
        Kind::Prim(
            Prim::Reduce | Prim::ReduceComm | Prim::ReducePart | Prim::Scan | Prim::Histogram,
            ..
        )
    )
}
