//! Drops names and arrays that nothing reads.
//!
//! Steps that move parts of a function elsewhere leave behind what only these parts read: a name, or an array of a map. Each would travel into
//! the functions around which it is bound, as data that they capture, and the rules would try all ways to compute it.

use super::core::{Ex, Kind};
use super::fission::keep_used;
use crate::lang::typed::Prim;

/// Drops the names and the arrays of maps that an expression does not read.
pub(super) fn dropped(e: &mut Ex) {
    match &mut e.kind {
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
