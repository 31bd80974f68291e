//! Results of a scan that go to different places: some components of each state, some of the last one.
//!
//! `fork (fst . unzip) (index . fork (snd . unzip) last) . scanSeq op z` stores the first component of each state, and the second one
//! of the last. A scan whose results were stored first would write and read all states once more.

use super::dest::{Dest, inverse, merged};
use super::lowerer::Lowerer;
use super::places::written;
use super::view::{Step, View, Views, stop};
use crate::calculus::nesting::is_pure;
use crate::calculus::scalar::SExpr;
use crate::calculus::term::{Op, ScanKind, Term};
use crate::calculus::ty::Ty;
use crate::diag::Code;
use crate::kernel::ir::index::Index;
use crate::lang::typed::ScalarOp;
use std::rc::Rc;

/// Where the results of a scan go.
struct Results {
    /// The destination of all states.
    all: Dest,
    /// The terms that read nothing of the states but the last one, and the destinations of what they give.
    last: Vec<(Vec<Term>, Dest)>,
}

impl Lowerer {
    /// Stores what views, the first factors, take from the results of a scan, the next factor, in one pass. Returns whether that
    /// was possible.
    pub fn scan_results(&mut self, factors: &[Term], x: &View, dest: &Dest) -> Step<bool> {
        let Some(q) = factors.iter().position(|f| !is_pure(f)) else { return Ok(false) };
        let (views, f) = (&factors[..q], &factors[q]);
        if *f.op() != Op::Scan(ScanKind::Seq) {
            return Ok(false);
        }
        let n = self.views.size(&f.sizes()[0])?;
        let Some(results) = results(&self.views, views, dest, n)? else { return Ok(false) };
        let x = match &factors[q + 1..] {
            [] => x.clone(),
            before => self.read(before, x)?,
        };
        let all = results.all;
        let to = |_: &View, out: &mut Vec<_>| written(&all, out);
        let last = self.stage_of(f, |me| me.element(f, &x, to, |me| me.scan(f, &x, &all)))?;
        let states = View::array(n, move |_| Ok(last.clone()));
        for (read, dest) in results.last {
            let Some(outer) = read.first() else { continue };
            let shape = self.views.shape(&outer.ty().cod)?;
            let v = self.apply(&read, &states)?;
            self.store(&v, &dest, &shape)?;
        }
        Ok(true)
    }
}

/// Returns where the `n` results of a scan go, given the views of them and the destination of what these give; `None` if a view does
/// something else than to arrange components and to read the last state.
fn results(views: &Rc<Views>, chain: &[Term], d: &Dest, n: i64) -> Step<Option<Results>> {
    let Some((f, rest)) = chain.split_first() else {
        return Ok(Some(Results { all: d.clone(), last: vec![] }));
    };
    let behind = |outer: &[Term]| [outer, rest].concat();
    match (f.op(), f.args()) {
        (Op::Compose, _) => results(views, &behind(&f.chain()), d, n),
        (Op::Fork, [a, b]) => {
            let a = results(views, &behind(&a.chain()), &d.component(false)?, n)?;
            let b = results(views, &behind(&b.chain()), &d.component(true)?, n)?;
            both(a, b)
        }
        (Op::Bimap, [a, b]) => {
            let Ty::Pair(p, q) = &f.ty().dom else { return Ok(None) };
            let component = |op| {
                let of = Term::new(op, vec![], vec![(**p).clone(), (**q).clone()], vec![]);
                of.or_else(|e| stop(Code::Internal, e.0))
            };
            let first = [a.chain(), vec![component(Op::Fst)?]].concat();
            let second = [b.chain(), vec![component(Op::Snd)?]].concat();
            let a = results(views, &behind(&first), &d.component(false)?, n)?;
            let b = results(views, &behind(&second), &d.component(true)?, n)?;
            both(a, b)
        }
        (Op::Index, _) => {
            let [both, before @ ..] = rest else { return Ok(None) };
            let (Op::Fork, [array, place]) = (both.op(), both.args()) else { return Ok(None) };
            let last = number(views, place) == Some(n - 1) && n > 0;
            let reads = last && is_elementwise(array) && before.iter().all(is_elementwise);
            let last = vec![(chain.to_vec(), d.clone())];
            Ok(reads.then_some(Results { all: Dest::Nowhere, last }))
        }
        _ if f.is_invertible() && (is_elementwise(f) || *f.op() == Op::Reverse) => {
            results(views, rest, &inverse(views, f, d)?, n)
        }
        _ => Ok(None),
    }
}

/// Joins the destinations of two results.
fn both(a: Option<Results>, b: Option<Results>) -> Step<Option<Results>> {
    let Some((a, b)) = a.zip(b) else { return Ok(None) };
    let last = [a.last, b.last].concat();
    let all = match (a.all, b.all) {
        (Dest::Nowhere, d) | (d, Dest::Nowhere) => d,
        (a, b) => {
            let first = Index::from(0);
            if merged(&a.at(&first)?, &b.at(&first)?).is_none() {
                return Ok(None);
            }
            Dest::array(move |i| match merged(&a.at(i)?, &b.at(i)?) {
                Some(d) => Ok(d),
                None => stop(Code::Internal, "two destinations of one component"),
            })
        }
    };
    Ok(Some(Results { all, last }))
}

/// Whether each element of the arrays that a term gives is one of the elements at the same place of the arrays that it reads.
fn is_elementwise(t: &Term) -> bool {
    match t.op() {
        Op::Id | Op::Fst | Op::Snd | Op::Zip | Op::Unzip => true,
        Op::Map(_) => is_pure(t),
        Op::Compose | Op::Fork | Op::Bimap => t.args().iter().all(is_elementwise),
        _ => false,
    }
}

/// Returns the number that a term gives, whatever its argument is.
fn number(views: &Rc<Views>, t: &Term) -> Option<i64> {
    fn value(views: &Rc<Views>, e: &SExpr) -> Option<i64> {
        match e {
            SExpr::Lit(l) => i64::try_from(l.as_int()?).ok(),
            SExpr::Size(n, _) => views.size(n).ok(),
            SExpr::Op(ScalarOp::Sub, _, es) => match es.as_slice() {
                [a, b] => value(views, a)?.checked_sub(value(views, b)?),
                _ => None,
            },
            _ => None,
        }
    }
    match t.chain().first()?.op() {
        Op::Lit(l) => i64::try_from(l.as_int()?).ok(),
        Op::Scalar(f) => value(views, &f.body),
        _ => None,
    }
}
