//! Drops names and arrays that nothing reads.
//!
//! Steps that move parts of a function elsewhere leave behind what only these parts read: a name, or an array of a map. Each would travel into
//! the functions around which it is bound, as data that they capture, and the rules would try all ways to compute it.

use super::core::{Ex, Kind, Lambda, Layout};
use crate::lang::typed::Prim;

/// Drops the names and the arrays of maps that an expression does not read, and puts variables in place of other names that they have.
pub(super) fn dropped(e: &mut Ex) {
    match &mut e.kind {
        Kind::Let(Layout::Var(v, _), value, body) if matches!(value.kind, Kind::Var(_)) => {
            body.put(*v, value);
            *e = (**body).clone();
            dropped(e);
        }
        Kind::Let(p, value, body) => {
            dropped(body);
            if p.meets(&body.free()) {
                dropped(value);
            } else {
                *e = (**body).clone();
            }
        }
        Kind::Map(Prim::Map, f, args) => {
            dropped(&mut f.body);
            keep_used(f, args);
            args.iter_mut().for_each(dropped);
        }
        _ => e.parts_mut().into_iter().for_each(dropped),
    }
}

/// Drops the parameters that a function does not use any more, and those that have the same array as another one; one remains.
pub(super) fn keep_used(f: &mut Lambda, args: &mut Vec<Ex>) {
    for k in 1..args.len() {
        let same = |j: &usize| args[*j].kind == args[k].kind && args[k].is_free_of_cost();
        let Some(j) = (0..k).find(same) else { continue };
        let (first, other) = (f.params[j].vars(), f.params[k].vars());
        if first.len() == other.len() {
            for ((first, ty), (other, _)) in first.into_iter().zip(other) {
                f.body.put(other, &Ex::new(Kind::Var(first), ty, args[k].span));
            }
        }
    }
    let used = f.body.free();
    let params = std::mem::take(&mut f.params).into_iter().zip(std::mem::take(args));
    let (kept, dropped): (Vec<_>, Vec<_>) = params.partition(|(p, _)| p.meets(&used));
    let kept = if kept.is_empty() { dropped.into_iter().take(1).collect() } else { kept };
    (f.params, *args) = kept.into_iter().unzip();
}
