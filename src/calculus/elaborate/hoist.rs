//! Hoists loop-invariant reductions: a reduction or scan inside a pattern's function that does not depend on
//! the function's variables is computed once, in front of the program.
//!
//! Only expressions that cost work move. Views of inputs stay where they are, because `cross` is found by
//! constants in place. Nothing moves out of a branch, or out of a low-level map, whose place the program
//! itself has chosen.

use super::core::{Ex, Kind, Lambda, Layout, Var};
use crate::lang::typed::{Prim, ScanKind};

/// Returns the program with its invariant reductions in front.
pub(super) fn hoist(body: Ex, fresh: &mut dyn FnMut() -> Var) -> Ex {
    let mut moved = vec![];
    let mut body = body;
    walk(&mut body, false, &mut moved, fresh);
    for (v, e) in moved.into_iter().rev() {
        let layout = Layout::Var(v, e.ty.clone());
        body = body.bound(layout, e);
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
        // The program itself chose where the function of a low-level pattern runs.
        Kind::Map(_, _, args) => args.iter_mut().for_each(|a| walk(a, inside, moved, fresh)),
        Kind::Prim(_, _, _, args) => args.iter_mut().for_each(|a| walk(a, inside, moved, fresh)),
        Kind::Pair(a, b) | Kind::Index(a, b) | Kind::Let(_, a, b) => {
            walk(a, inside, moved, fresh);
            walk(b, inside, moved, fresh);
        }
        Kind::Proj(a, _) => walk(a, inside, moved, fresh),
        Kind::Op(_, es) => es.iter_mut().for_each(|x| walk(x, inside, moved, fresh)),
        // A branch may not be taken, and the body of a loop may not run.
        Kind::If(c, _, _) => walk(c, inside, moved, fresh),
        Kind::For(init, bound, ..) => {
            walk(init, inside, moved, fresh);
            walk(bound, inside, moved, fresh);
        }
        Kind::While(init, ..) => walk(init, inside, moved, fresh),
    }
}

/// Whether an expression of this kind is a reduction or a scan.
pub(super) fn reduces(kind: &Kind) -> bool {
    matches!(
        kind,
        Kind::Prim(
            Prim::Reduce
                | Prim::ReduceComm
                | Prim::ReducePart
                | Prim::Scan(ScanKind::Assoc | ScanKind::Exclusive)
                | Prim::Histogram,
            ..
        )
    )
}
