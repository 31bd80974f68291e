//! Nests whose elements go through arrays of contractions, such as the maximum or the softmax over all channels of a convolution.

use super::super::core::{Ex, Kind, Layout};
use super::super::hoist::contains_reduction;
use super::super::unused::keep_used;
use super::{Around, Contractions};
use crate::calculus::ty::Ty;
use crate::lang::typed::Prim;

impl Contractions<'_> {
    /// Returns a nest whose element goes through an array of contractions, such as the maximum of all channels of a convolution:
    /// the array of all of them is a nest of its own, and the element goes through its rows.
    pub(super) fn inner(&mut self, e: &Ex) -> Option<Ex> {
        let (mut around, mut body): (Vec<Around>, &Ex) = (vec![], e);
        // The arrays, each in so many maps and behind so many names of the innermost.
        let mut arrays: Vec<(&Ex, usize, usize)> = vec![];
        while let Kind::Map(Prim::Map, function, args) = &body.kind {
            // What the map goes through, all of it or a view of it, may be an array of contractions.
            if let Some(outer) = around.last() {
                let found = args.iter().filter_map(array_of_reductions);
                arrays.extend(found.map(|a| (a, around.len(), outer.lets.len())));
            }
            let mut of_map = Around { function, args, lets: vec![] };
            body = &function.body;
            while let Kind::Let(p, value, inner) = &body.kind {
                let array = array_of_reductions(value);
                arrays.extend(array.map(|a| (a, around.len() + 1, of_map.lets.len())));
                of_map.lets.push((p.clone(), (**value).clone()));
                body = inner;
            }
            around.push(of_map);
        }
        let names = around.last()?.lets.len();
        arrays.extend(array_of_reductions(body).map(|a| (a, around.len(), names)));
        for (array, depth, names) in arrays {
            let all =
                around[..depth].iter().enumerate().rev().try_fold(array.clone(), |e, (k, a)| {
                    let lets = if k + 1 == depth { &a.lets[..names] } else { &a.lets[..] };
                    let e = e.behind(lets.iter(), self.fresh);
                    Ex::map_of(e, a.function.params.iter().zip(a.args), self.fresh)
                });
            let nest = all.and_then(|all| self.nest(&all).or_else(|| self.inner(&all)));
            if let Some(all) = nest {
                let mut out = e.clone();
                self.with_rows(&mut out, all, array, depth);
                return Some(self.inner(&out).unwrap_or(out));
            }
        }
        None
    }

    /// Gives `depth` maps the rows of an array, where they stand for the array that the maps compute.
    fn with_rows(&mut self, e: &mut Ex, rows: Ex, array: &Ex, depth: usize) {
        if depth == 0 {
            return e.replace(array, &rows);
        }
        match (&mut e.kind, &rows.ty) {
            (Kind::Let(_, _, body), _) => self.with_rows(body, rows, array, depth),
            (Kind::Map(_, f, args), Ty::Array(_, row)) => {
                let name = Layout::Var((self.fresh)(), (**row).clone());
                self.with_rows(&mut f.body, name.value(rows.span), array, depth - 1);
                f.params.insert(0, name);
                args.insert(0, rows);
                keep_used(f, args);
            }
            _ => {}
        }
    }
}

/// Returns an array that an element goes through, whose elements are reductions or computed of reductions.
fn array_of_reductions(e: &Ex) -> Option<&Ex> {
    match &e.kind {
        Kind::Map(Prim::Map, ..) if contains_reduction(e) => Some(e),
        Kind::Prim(_, _, _, args) => args.iter().find_map(array_of_reductions),
        Kind::Pair(..) | Kind::Proj(..) | Kind::Op(..) => {
            e.parts().into_iter().find_map(|(_, part)| array_of_reductions(part))
        }
        _ => None,
    }
}
