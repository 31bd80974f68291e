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

/// Drops the parameters that a function does not use any more; one remains.
pub(super) fn keep_used(f: &mut Lambda, args: &mut Vec<Ex>) {
    let used = f.body.free();
    let params = std::mem::take(&mut f.params).into_iter().zip(std::mem::take(args));
    let (kept, dropped): (Vec<_>, Vec<_>) = params.partition(|(p, _)| p.meets(&used));
    let kept = if kept.is_empty() { dropped.into_iter().take(1).collect() } else { kept };
    (f.params, *args) = kept.into_iter().unzip();
}
