//! Nests whose elements go through arrays of contractions, such as the maximum or the softmax over all channels of a convolution.

use super::super::core::{Ex, Kind, Layout};
use super::super::elements::contains_reduction;
use super::super::fission::keep_used;
use super::{Around, Contractions};
use crate::calculus::ty::Ty;
use crate::lang::typed::Prim;

impl Contractions<'_> {
    /// Returns a nest whose element goes through an array of contractions, such as the maximum of all channels of a convolution:
    /// the array of all of them is a nest of its own, and the element goes through its rows.
    pub(super) fn inner(&mut self, e: &Ex) -> Option<Ex> {
        let (mut around, mut body) = (vec![], e);
        while let Kind::Map(Prim::Map, function, args) = &body.kind {
            let mut of_map = Around { function, args, lets: vec![] };
            body = &function.body;
            while let Kind::Let(p, value, inner) = &body.kind {
                of_map.lets.push((p.clone(), (**value).clone()));
                body = inner;
            }
            around.push(of_map);
        }
        let array = array_of_reductions(body)?;
        let all = around.iter().rev().try_fold(array.clone(), |e, a| {
            let e = e.behind(a.lets.iter(), self.fresh);
            Ex::map_of(e, a.function.params.iter().zip(a.args), self.fresh)
        })?;
        let all = self.nest(&all)?;
        let mut out = e.clone();
        self.with_rows(&mut out, all, array);
        Some(out)
    }

    /// Gives a nest the rows of an array, where they stand for the array that it computes.
    fn with_rows(&mut self, e: &mut Ex, rows: Ex, array: &Ex) {
        let mut body = e;
        while let Kind::Let(..) = &body.kind {
            let Kind::Let(_, _, inner) = &mut body.kind else { return };
            body = inner;
        }
        let (Kind::Map(Prim::Map, f, args), Ty::Array(_, row)) = (&mut body.kind, &rows.ty) else {
            return body.replace(array, &rows);
        };
        let name = Layout::Var((self.fresh)(), (**row).clone());
        self.with_rows(&mut f.body, name.value(rows.span), array);
        f.params.insert(0, name);
        args.insert(0, rows);
        keep_used(f, args);
    }
}

/// Returns an array that an element goes through, whose elements are reductions.
fn array_of_reductions(e: &Ex) -> Option<&Ex> {
    match &e.kind {
        Kind::Map(Prim::Map, f, _) if contains_reduction(&f.body) => Some(e),
        Kind::Prim(_, _, _, args) => args.iter().find_map(array_of_reductions),
        Kind::Pair(..) | Kind::Proj(..) | Kind::Op(..) => {
            e.parts().into_iter().find_map(|(_, part)| array_of_reductions(part))
        }
        Kind::Let(_, value, body) => {
            array_of_reductions(value).or_else(|| array_of_reductions(body))
        }
        _ => None,
    }
}
