//! Checks that a term respects the device hierarchy.

use crate::calculus::term::{MapKind, Op, Space, Term};
use crate::diag::{Code, Diagnostic};

#[derive(Clone, Copy, Default)]
struct Path {
    glb: [bool; 3],
    wrg: [bool; 3],
    lcl: [bool; 3],
    warp: bool,
    lane: bool,
}

/// Checks that parallel maps and memory spaces stand where the device has them.
///
/// # Errors
/// Returns [`Code::IllNested`] with a message that names the pattern and what it lacks.
pub fn check_nesting(term: &Term) -> Result<(), Box<Diagnostic>> {
    walk(term, Path::default())
}

fn fail(text: String) -> Result<(), Box<Diagnostic>> {
    Err(Box::new(Diagnostic::error(Code::IllNested, text)))
}

fn walk(t: &Term, mut p: Path) -> Result<(), Box<Diagnostic>> {
    let any = |d: [bool; 3]| d.iter().any(|x| *x);
    match t.op() {
        Op::Map(kind) => match kind {
            MapKind::Plain | MapKind::Seq | MapKind::Unroll => {}
            MapKind::Glb(d) => {
                if any(p.wrg) || any(p.lcl) {
                    return fail(format!("`mapGlb {d}` inside a work-group"));
                }
                take(&mut p.glb, *d, "mapGlb")?;
            }
            MapKind::Wrg(d) => {
                if any(p.glb) {
                    return fail(format!("`mapWrg {d}` inside `mapGlb`"));
                }
                if any(p.lcl) || p.warp {
                    return fail(format!("`mapWrg {d}` inside a work-group"));
                }
                take(&mut p.wrg, *d, "mapWrg")?;
            }
            MapKind::Lcl(d) => {
                if !any(p.wrg) {
                    return fail(format!("`mapLcl {d}` outside `mapWrg`"));
                }
                if p.warp {
                    return fail(format!("`mapLcl {d}` inside `mapWarp`"));
                }
                take(&mut p.lcl, *d, "mapLcl")?;
            }
            MapKind::Warp => {
                if !any(p.wrg) || any(p.lcl) || p.warp {
                    return fail("`mapWarp` must stand directly in a work-group".to_owned());
                }
                p.warp = true;
            }
            MapKind::Lane => {
                if !p.warp || p.lane {
                    return fail("`mapLane` outside `mapWarp`".to_owned());
                }
                p.lane = true;
            }
        },
        Op::ToMem(Space::Local | Space::LocalAhead) if !any(p.wrg) => {
            return fail("`toLocal` outside `mapWrg`: local memory belongs to a work-group".into());
        }
        Op::ToMem(Space::Local | Space::LocalAhead) if any(p.lcl) || p.lane => {
            let name = if p.lane { "mapLane" } else { "mapLcl" };
            return fail(format!(
                "`toLocal` inside `{name}`: local memory belongs to a work-group"
            ));
        }
        _ => {}
    }
    t.args().iter().try_for_each(|a| walk(a, p))
}

fn take(used: &mut [bool; 3], d: u8, name: &str) -> Result<(), Box<Diagnostic>> {
    match used.get_mut(usize::from(d)) {
        None => fail(format!("`{name} {d}`: dimensions are 0, 1 and 2")),
        Some(true) => fail(format!("`{name} {d}` twice on one path")),
        Some(free) => {
            *free = true;
            Ok(())
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
