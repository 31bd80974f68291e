//! Maps over elements that share a matrix become nests of maps.
//!
//! `map2 f xs (join (map (replicate g) ms))` becomes `join (map2 (\x m -> map (\x -> f x m) x) (split g xs) ms)`, where `f` takes a row `x`
//! and a matrix `m`, and reduces.
//!
//! Heads of queries that share the keys of their group are of this kind. In one map, each row meets a matrix of its own: a product of a matrix
//! and a vector, which reads the matrix again for each row. In the nest, the rows that share a matrix are the rows of a product. If an
//! element is a matrix itself, the product has rows enough, and the map stays.

use super::core::{Ex, Kind, Lambda, Layout, Var};
use super::hoist::contains_reduction;
use crate::calculus::size::Size;
use crate::calculus::ty::Ty;
use crate::lang::typed::Prim;

/// Returns the program with nests of maps over elements that share a matrix; `None` if there are none.
pub(super) fn in_nests(e: &Ex, fresh: &mut dyn FnMut() -> Var) -> Option<Ex> {
    let mut out = e.clone();
    walk(&mut out, fresh).then_some(out)
}

fn walk(e: &mut Ex, fresh: &mut dyn FnMut() -> Var) -> bool {
    // The program itself has chosen what a low-level map computes.
    if matches!(e.kind, Kind::Map(p, ..) if p != Prim::Map) {
        return false;
    }
    let mut changed = false;
    for part in e.parts_mut() {
        changed |= walk(part, fresh);
    }
    let nest = nest(e, fresh);
    changed |= nest.is_some();
    if let Some(nest) = nest {
        *e = nest;
    }
    changed
}

/// Returns a map over elements that share a matrix as a nest of maps.
fn nest(e: &Ex, fresh: &mut dyn FnMut() -> Var) -> Option<Ex> {
    let Kind::Map(Prim::Map, f, args) = &e.kind else { return None };
    let shared = |arg| repeated(arg).filter(|(all, _)| rank(&all.ty) > 2);
    let (first, each) = args.iter().find_map(shared)?;
    let count = first.length()?;
    if !contains_reduction(&f.body) {
        return None;
    }
    let (mut groups, mut elements) = (vec![], vec![]);
    for (p, arg) in f.params.iter().zip(args) {
        match shared(arg) {
            Some((all, times)) if times == each => groups.push((p.clone(), all.clone())),
            _ if rank(&arg.ty) > 2 => return None,
            _ => {
                let rows = arg.clone().split(count, each)?;
                let name = Layout::Var(fresh(), rows.element_type()?);
                elements.push((p.clone(), name.value(arg.span)));
                groups.push((name, rows));
            }
        }
    }
    let map = |body: Ex, of: Vec<(Layout, Ex)>, n: &Size| {
        let (params, args) = of.into_iter().unzip();
        let ty = Ty::array(n, &body.ty);
        Ex::new(Kind::Map(Prim::Map, Lambda { params, body: Box::new(body) }, args), ty, e.span)
    };
    if elements.is_empty() {
        return None;
    }
    let inner = map((*f.body).clone(), elements, each);
    map(inner, groups, count).join().filter(|nest| nest.ty == e.ty)
}

/// Returns an array and how often each of its elements stands in another one, one time after the other.
fn repeated(e: &Ex) -> Option<(&Ex, &Size)> {
    let Kind::Prim(Prim::Join, _, _, joined) = &e.kind else { return None };
    let [Ex { kind: Kind::Map(Prim::Map, f, args), .. }] = &joined[..] else { return None };
    let (Kind::Prim(Prim::Replicate, _, n, element), [p], [all]) =
        (&f.body.kind, &f.params[..], &args[..])
    else {
        return None;
    };
    let each = element.first()? == &p.value(e.span);
    each.then_some((all, n.first()?))
}

/// Returns the number of dimensions of the largest array in a value.
fn rank(t: &Ty) -> usize {
    t.components().iter().map(|(lengths, _)| lengths.len()).max().unwrap_or(0)
}
