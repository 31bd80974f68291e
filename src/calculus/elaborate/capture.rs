//! Rewrites patterns whose operators or initial values capture variables of an enclosing function in terms of
//! other patterns, because the closed operators of the calculus have no place for captured values.

use super::bracket::Bracket;
use super::core::{Ex, Kind, Lambda, Layout, Var};
use super::inner_problem;
use crate::calculus::scalar::Lit;
use crate::calculus::size::Size;
use crate::calculus::ty::Ty;
use crate::diag::{Result, Span};
use crate::lang::typed::{PadMode, Prim, ScalarOp, ScanKind};
use crate::lang::types::ScalarType;

fn truth(x: bool, span: Span) -> Ex {
    let lit = Lit::int(ScalarType::Bool, i128::from(x));
    Ex::new(Kind::Lit(lit), Ty::Scalar(ScalarType::Bool), span)
}

/// Returns some value of a type.
pub(super) fn any(ty: &Ty, span: Span) -> Option<Ex> {
    Some(match ty {
        Ty::Unit => Ex::new(Kind::Unit, Ty::Unit, span),
        Ty::Scalar(t) => Ex::new(Kind::Lit(Lit::int(*t, 0)), ty.clone(), span),
        Ty::Pair(a, b) => Ex::pair(any(a, span)?, any(b, span)?),
        Ty::Array(n, t) => {
            let kind = Kind::Prim(Prim::Replicate, vec![], vec![n.clone()], vec![any(t, span)?]);
            Ex::new(kind, ty.clone(), span)
        }
        Ty::Vector(..) | Ty::Meta(_) => return None,
    })
}

impl Bracket {
    fn fresh(&mut self, ty: &Ty) -> (Layout, Ex, Span) {
        let v = Var(self.next);
        self.next += 1;
        let span = Span::default();
        (Layout::Var(v, ty.clone()), Ex::new(Kind::Var(v), ty.clone(), span), span)
    }

    /// Returns a copy of a layout with fresh variables.
    fn renamed(&mut self, layout: &Layout) -> Layout {
        match layout {
            Layout::Unit => Layout::Unit,
            Layout::Var(_, t) => self.fresh(t).0,
            Layout::Pair(a, b) => {
                let a = self.renamed(a);
                Layout::Pair(Box::new(a), Box::new(self.renamed(b)))
            }
        }
    }

    /// Returns the same pattern in terms of others, if it captures variables and has no form for that, or if
    /// it needs no operator of its own.
    pub(super) fn in_other_patterns(&mut self, e: &Ex) -> Result<Option<Ex>> {
        let Kind::Prim(prim, funs, sizes, args) = &e.kind else {
            return Ok(None);
        };
        let open = |k: usize| args.get(k).is_some_and(|a| !a.free().is_empty());
        let captures = funs.first().is_some_and(|f| !f.captures().is_empty());
        match *prim {
            Prim::Scan(ScanKind::Exclusive) if open(0) || captures => {
                self.scan_before(&funs[0], args, e).map(Some)
            }
            Prim::Scan(_) if open(0) => self.scan_from(&funs[0], args, e).map(Some),
            // Rules on maps and reductions then apply to it, whether it captures or not.
            Prim::ReducePart => self.parts(&funs[0], args, e).map(Some),
            Prim::Histogram if open(0) || captures => self.bins(&funs[0], args, e).map(Some),
            Prim::Pad(PadMode::Constant) if open(1) => self.padded(sizes, args, e).map(Some),
            // `padConstant` repeats its value at each place of the padding.
            Prim::Pad(PadMode::Constant) if args.get(1).is_some_and(|z| !z.may_be_repeated()) => {
                let (shared, z, span) = self.fresh(&args[1].ty);
                let padded = self.padded(sizes, &[args[0].clone(), z], e)?;
                let kind = Kind::Let(shared, Box::new(args[1].clone()), Box::new(padded));
                Ok(Some(Ex::new(kind, e.ty.clone(), span)))
            }
            _ => Ok(None),
        }
    }

    /// A scan with a captured initial value: its state says whether the scan has begun.
    fn scan_from(&mut self, op: &Lambda, args: &[Ex], e: &Ex) -> Result<Ex> {
        let span = e.span;
        let [acc, x] = op.params.as_slice() else {
            return Err(inner_problem("a scan's operator with other than two parameters", span));
        };
        let Some(nothing) = any(&acc.ty(), span) else {
            return Err(inner_problem("a scan of vectors that begins with a captured value", span));
        };
        let (begun, is_begun, _) = self.fresh(&Ty::Scalar(ScalarType::Bool));
        let last = self.renamed(acc);
        let from =
            Kind::If(Box::new(is_begun), Box::new(last.value(span)), Box::new(args[0].clone()));
        let from = Ex::new(from, acc.ty(), span);
        let next = Kind::Let(acc.clone(), Box::new(from), op.body.clone());
        let next = Ex::pair(truth(true, span), Ex::new(next, acc.ty(), span));
        let state = Layout::Pair(Box::new(begun), Box::new(last));
        let step = Lambda { params: vec![state.clone(), x.clone()], body: Box::new(next) };
        let (n, _) = super::build::elements(&e.ty).map_err(super::bracket::at(span))?;
        let start = Ex::pair(truth(false, span), nothing);
        let scanned =
            Kind::Prim(Prim::Scan(ScanKind::Seq), vec![step], vec![], vec![start, args[1].clone()]);
        let scanned = Ex::new(scanned, Ty::array(&n, &state.ty()), span);
        let result = self.renamed(&state);
        let Layout::Pair(_, value) = &result else {
            return Err(inner_problem("a state that is no pair", span));
        };
        let body = Box::new(value.value(span));
        let f = Lambda { params: vec![result], body };
        Ok(Ex::new(Kind::Map(Prim::Map, f, vec![scanned]), e.ty.clone(), span))
    }

    /// An exclusive scan with a captured initial value or operator: its state is the value after an element and the
    /// one before it, which is the result.
    fn scan_before(&mut self, op: &Lambda, args: &[Ex], e: &Ex) -> Result<Ex> {
        let span = e.span;
        let [acc, x] = op.params.as_slice() else {
            return Err(inner_problem("a scan's operator with other than two parameters", span));
        };
        let pair = |a: &Layout, b: Layout| Layout::Pair(Box::new(a.clone()), Box::new(b));
        let next = Ex::pair((*op.body).clone(), acc.value(span));
        let state = pair(acc, self.renamed(acc));
        let step = Lambda { params: vec![state.clone(), x.clone()], body: Box::new(next) };
        let (n, _) = super::build::elements(&e.ty).map_err(super::bracket::at(span))?;
        let start = Ex::pair(args[0].clone(), args[0].clone());
        let scanned =
            Kind::Prim(Prim::Scan(ScanKind::Seq), vec![step], vec![], vec![start, args[1].clone()]);
        let scanned = Ex::new(scanned, Ty::array(&n, &state.ty()), span);
        let (after, result) = (self.renamed(acc), self.renamed(acc));
        let body = Box::new(result.value(span));
        let f = Lambda { params: vec![pair(&after, result)], body };
        Ok(Ex::new(Kind::Map(Prim::Map, f, vec![scanned]), e.ty.clone(), span))
    }

    /// Reduces the parts one by one.
    fn parts(&mut self, op: &Lambda, args: &[Ex], e: &Ex) -> Result<Ex> {
        let (span, at) = (e.span, super::bracket::at(e.span));
        let (m, _) = super::build::elements(&e.ty).map_err(&at)?;
        let (n, t) = super::build::elements(&args[1].ty).map_err(&at)?;
        let chunk = Ty::array(&n.div(&m), &t);
        let chunks = Kind::Prim(Prim::Split, vec![], vec![n.div(&m)], vec![args[1].clone()]);
        let chunks = Ex::new(chunks, Ty::array(&m, &chunk), span);
        let (param, xs, _) = self.fresh(&chunk);
        let reduced = Kind::Prim(Prim::Reduce, vec![op.clone()], vec![], vec![args[0].clone(), xs]);
        let body = Box::new(Ex::new(reduced, args[0].ty.clone(), span));
        let f = Lambda { params: vec![param], body };
        Ok(Ex::new(Kind::Map(Prim::Map, f, vec![chunks]), e.ty.clone(), span))
    }

    /// Goes through all values for each bin.
    fn bins(&mut self, op: &Lambda, args: &[Ex], e: &Ex) -> Result<Ex> {
        let (span, at) = (e.span, super::bracket::at(e.span));
        let [z, places, values] = args else {
            return Err(inner_problem("a histogram with other than three arguments", span));
        };
        let [acc, x] = op.params.as_slice() else {
            return Err(inner_problem("an operator with other than two parameters", span));
        };
        let (m, _) = super::build::elements(&e.ty).map_err(&at)?;
        let (n, place) = super::build::elements(&places.ty).map_err(&at)?;
        let (bin, this, _) = self.fresh(&place);
        let (at_place, other, _) = self.fresh(&place);
        let same = Kind::Op(ScalarOp::Eq, vec![other, this]);
        let same = Ex::new(same, Ty::Scalar(ScalarType::Bool), span);
        let next = Kind::If(Box::new(same), op.body.clone(), Box::new(acc.value(span)));
        let element = Layout::Pair(Box::new(at_place), Box::new(x.clone()));
        let ty = Ty::array(&n, &element.ty());
        let body = Box::new(Ex::new(next, acc.ty(), span));
        let step = Lambda { params: vec![acc.clone(), element], body };
        let both = Kind::Prim(Prim::Zip, vec![], vec![], vec![places.clone(), values.clone()]);
        let both = Ex::new(both, ty, span);
        let reduced = Kind::Prim(Prim::ReduceSeq, vec![step], vec![], vec![z.clone(), both]);
        let body = Box::new(Ex::new(reduced, z.ty.clone(), span));
        let all = Ex::iota(&m, &place, span);
        let f = Lambda { params: vec![bin], body };
        Ok(Ex::new(Kind::Map(Prim::Map, f, vec![all]), e.ty.clone(), span))
    }

    /// Each element of the padded array tests whether it belongs to the padding.
    fn padded(&mut self, sizes: &[Size], args: &[Ex], e: &Ex) -> Result<Ex> {
        let (span, at) = (e.span, super::bracket::at(e.span));
        let (m, t) = super::build::elements(&e.ty).map_err(&at)?;
        let (n, _) = super::build::elements(&args[0].ty).map_err(&at)?;
        let index = Ty::Scalar(ScalarType::I64);
        let left = match sizes.first() {
            Some(l) => Ex::new(Kind::Size(l.clone()), index.clone(), span),
            None => return Err(inner_problem("a pad without its sizes", span)),
        };
        let (param, i, _) = self.fresh(&index);
        let op = |op, a, b, ty: Ty| Ex::new(Kind::Op(op, vec![a, b]), ty, span);
        let bool_ty = Ty::Scalar(ScalarType::Bool);
        let j = op(ScalarOp::Sub, i, left, index.clone());
        let zero = Ex::new(Kind::Lit(Lit::int(ScalarType::I64, 0)), index.clone(), span);
        let len = Ex::new(Kind::Size(n), index.clone(), span);
        let inside = op(
            ScalarOp::And,
            op(ScalarOp::Ge, j.clone(), zero, bool_ty.clone()),
            op(ScalarOp::Lt, j.clone(), len, bool_ty.clone()),
            bool_ty,
        );
        let element = Kind::Index(Box::new(args[0].clone()), Box::new(j));
        let element = Ex::new(element, t.clone(), span);
        let body = Kind::If(Box::new(inside), Box::new(element), Box::new(args[1].clone()));
        let f = Lambda { params: vec![param], body: Box::new(Ex::new(body, t, span)) };
        let all = Ex::iota(&m, &index, span);
        Ok(Ex::new(Kind::Map(Prim::Map, f, vec![all]), e.ty.clone(), span))
    }
}
