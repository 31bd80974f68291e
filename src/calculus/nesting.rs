//! Checks that a term respects the device hierarchy, by the rules of [`crate::lang::hierarchy`].

use super::term::{MapKind, Op, ReduceKind, ScanKind, Space, Term};
use super::ty::Ty;
use crate::diag::{Code, Diagnostic};
use crate::lang::hierarchy::{Place, Rule, Step};

/// Returns what an operator asks of the hierarchy; `None` if it may stand anywhere.
pub fn step(op: &Op) -> Option<Step> {
    Some(match op {
        Op::Map(MapKind::Glb(d)) => Step::Glb(*d),
        Op::Map(MapKind::Wrg(d)) => Step::Wrg(*d),
        Op::Map(MapKind::Lcl(d)) => Step::Lcl(*d),
        Op::Map(MapKind::Warp) => Step::Warp,
        Op::Map(MapKind::Lane) => Step::Lane,
        Op::Map(MapKind::Seq | MapKind::Unroll)
        | Op::Reduce(ReduceKind::Seq | ReduceKind::Unroll)
        | Op::Scan(ScanKind::Seq | ScanKind::Exclusive) => Step::Loop,
        Op::Fold | Op::While => Step::Repeat,
        Op::Cond => Step::Choice,
        Op::ReduceLcl | Op::ScanLcl(_) => Step::Together,
        Op::Scatter | Op::CountingSort => Step::Update,
        Op::Histogram => Step::Bins,
        Op::ToMem(Space::Local | Space::LocalAhead) => Step::Local,
        _ => return None,
    })
}

/// Checks that parallel maps and memory spaces stand where the device has them.
///
/// # Errors
/// Returns [`Code::IllNested`] with the operator and the rule that it breaks.
pub fn check_nesting(term: &Term) -> Result<(), Box<Diagnostic>> {
    walk(term, Place::PROGRAM)
}

fn walk(t: &Term, at: Place) -> Result<(), Box<Diagnostic>> {
    let Some(step) = step(t.op()) else {
        return t.args().iter().try_for_each(|a| walk(a, at));
    };
    let inside = at.enter(step).map_err(|rule| Box::new(broken(t.op(), rule)))?;
    t.args().iter().try_for_each(|a| {
        let stages = Stages::of(a, step);
        walk(a, if stages.akin && stages.other { inside.settled() } else { inside })
    })
}

fn broken(op: &Op, rule: Rule) -> Diagnostic {
    let name = op.name().unwrap_or("this");
    let name = match op {
        Op::Map(MapKind::Glb(d) | MapKind::Wrg(d) | MapKind::Lcl(d)) => format!("{name} {d}"),
        _ => name.to_owned(),
    };
    Diagnostic::error(Code::IllNested, format!("`{name}` {rule}")).help(rule.advice())
}

/// Whether a term, which may contain constants and parameters, only rearranges and needs no code of its own.
pub fn is_pure(t: &Term) -> bool {
    match t.op() {
        Op::Vectorize => t.args().iter().all(is_pure),
        Op::Scalar(f) => f.body.rearranges() || (f.dom == Ty::Unit && f.body.inlines()),
        Op::OnRead => t.args().iter().all(is_read),
        op => (op.is_view() || op.is_frame()) && t.args().iter().all(is_pure),
    }
}

/// Whether the function only finds a row that is there already.
pub fn finds_row(f: &Term) -> bool {
    f.chain().iter().all(|f| match f.op() {
        Op::Index => true,
        Op::Scalar(f) => !f.body.has_loop(),
        Op::Fork | Op::Bimap => f.args().iter().all(finds_row),
        _ => is_pure(f),
    })
}

/// Whether each element of a term's result can be computed where it is read, by an expression.
pub fn is_read(t: &Term) -> bool {
    match t.op() {
        Op::Scalar(f) => f.body.is_expression(),
        Op::Map(MapKind::Plain) => t.args().iter().all(is_read),
        op => (op.is_view() || op.is_frame()) && t.args().iter().all(is_read),
    }
}

/// What the function of a map over a dimension does.
#[derive(Clone, Copy, Default)]
struct Stages {
    /// It maps over further dimensions of the same kind.
    akin: bool,
    /// It computes outside these maps.
    other: bool,
}

impl Stages {
    fn of(t: &Term, outer: Step) -> Stages {
        let both =
            |a: Stages, b: Stages| Stages { akin: a.akin || b.akin, other: a.other || b.other };
        let parts = || t.args().iter().map(|a| Stages::of(a, outer));
        match t.op() {
            _ if is_pure(t) => Stages::default(),
            Op::Compose => {
                // Of two stages, one passes its result to the other between the dimensions.
                let chained = !t.args().iter().any(is_pure);
                let all = parts().fold(Stages::default(), both);
                Stages { other: all.other || chained, ..all }
            }
            Op::Fork | Op::Bimap | Op::ToMem(_) => parts().fold(Stages::default(), both),
            op if step(op).is_some_and(|s| s.is_akin(outer)) => Stages { akin: true, other: false },
            _ => Stages { other: true, ..parts().fold(Stages::default(), both) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calculus::size::Size;
    use crate::calculus::ty::Ty;
    use crate::lang::types::ScalarType;

    fn map(kind: MapKind, f: &Term) -> Term {
        let n = vec![Size::constant(4)];
        Term::new(Op::Map(kind), n, vec![], vec![f.clone()]).expect("the term is well-typed")
    }

    #[test]
    fn hierarchy() {
        let id = Term::id(&Ty::Scalar(ScalarType::F32));
        let lcl = map(MapKind::Lcl(0), &id);
        let good = [
            map(MapKind::Wrg(1), &map(MapKind::Wrg(0), &lcl)),
            map(MapKind::Glb(1), &map(MapKind::Glb(0), &map(MapKind::Seq, &id))),
        ];
        for t in good {
            assert!(check_nesting(&t).is_ok());
        }
        let local = Term::new(Op::ToMem(Space::Local), vec![], vec![], vec![id.clone()])
            .expect("the term is well-typed");
        let lane = map(MapKind::Lane, &id);
        let warp = map(MapKind::Warp, &lane);
        let stages = lane.after(&lane).expect("the types meet");
        for t in [map(MapKind::Wrg(0), &warp), map(MapKind::Wrg(0), &map(MapKind::Warp, &stages))] {
            assert!(check_nesting(&t).is_ok());
        }
        let bad = [
            warp.clone(),
            lane.clone(),
            map(MapKind::Wrg(0), &lane),
            map(MapKind::Glb(0), &warp),
            map(MapKind::Wrg(0), &map(MapKind::Lcl(0), &warp)),
            map(MapKind::Wrg(0), &map(MapKind::Lcl(0), &lane)),
            map(MapKind::Wrg(0), &map(MapKind::Warp, &lcl)),
            map(MapKind::Wrg(0), &map(MapKind::Warp, &map(MapKind::Lane, &lcl))),
            map(MapKind::Wrg(0), &map(MapKind::Warp, &warp)),
            map(MapKind::Wrg(0), &map(MapKind::Warp, &map(MapKind::Lane, &lane))),
            map(MapKind::Wrg(0), &map(MapKind::Warp, &map(MapKind::Lane, &local))),
            map(MapKind::Wrg(0), &map(MapKind::Warp, &map(MapKind::Wrg(1), &id))),
            lcl.clone(),
            map(MapKind::Glb(0), &lcl),
            map(MapKind::Wrg(0), &map(MapKind::Glb(0), &id)),
            map(MapKind::Wrg(0), &map(MapKind::Wrg(0), &id)),
            map(MapKind::Wrg(0), &map(MapKind::Lcl(0), &lcl)),
            map(MapKind::Glb(3), &id),
            map(MapKind::Glb(0), &local),
        ];
        for t in bad {
            assert_eq!(check_nesting(&t).unwrap_err().code, Code::IllNested);
        }
    }
}
