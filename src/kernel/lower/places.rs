//! The places, for a schedule, that views read and destinations store to.

use super::dest::Dest;
use super::schedule::Place;
use super::view::View;
use crate::kernel::ir::{Expr, Reg};

/// The place of a register.
pub fn register(r: &Reg) -> Place {
    Place::Regs(vec![r.name.clone()])
}

/// Adds the places that an expression reads, each once.
pub fn read_by(e: &Expr, out: &mut Vec<Place>) {
    e.visit(&mut |e| {
        let place = match e {
            Expr::Load(m, t, i) => Place::Mem(*m, i.clone(), t.width),
            Expr::Reg(r) => register(r),
            Expr::Arg(k, _) => Place::Arg(*k),
            _ => return,
        };
        if !out.contains(&place) {
            out.push(place);
        }
    });
}

/// Adds the places that the elements of a view are read from.
pub fn read_by_view(v: &View, out: &mut Vec<Place>) {
    match v {
        View::Elem(e) => read_by(e, out),
        View::Pair(a, b) => {
            read_by_view(a, out);
            read_by_view(b, out);
        }
        View::Unit | View::Array(_) => {}
    }
}

/// Adds the registers that hold a view.
pub fn held_by(v: &View, out: &mut Vec<Place>) {
    match v {
        View::Elem(Expr::Reg(r)) => out.push(register(r)),
        View::Pair(a, b) => {
            held_by(a, out);
            held_by(b, out);
        }
        View::Unit | View::Elem(_) | View::Array(_) => {}
    }
}

/// Adds the places that an element is stored to.
pub fn written(d: &Dest, out: &mut Vec<Place>) {
    match d {
        Dest::Nowhere | Dest::Array(_) => {}
        Dest::Mem(m, t, i) => out.push(Place::Mem(*m, i.clone(), t.width)),
        Dest::Reg(r) | Dest::Lane(r, _) => out.push(register(r)),
        Dest::Pair(a, b) => {
            written(a, out);
            written(b, out);
        }
        Dest::Guarded(_, d) => written(d, out),
        Dest::Either(_, a, b) => {
            written(a, out);
            written(b, out);
        }
        Dest::Placed(p) => written(&p.all, out),
        Dest::Lanes(ds) => ds.iter().for_each(|d| written(d, out)),
    }
}
