//! Indices, slices, updates and array literals. They become patterns that the language has without them, so that rules
//! see nothing new: a slice is `take` and `drop`, a column a row of the transposed array, an update of an element a map
//! that chooses, and a literal a concatenation.

use super::advice::of_computed_change;
use super::elab::{Abort, Checker, Res};
use super::env::{Arg, Elab, Env};
use super::infer::{Class, Ty};
use super::ir::{Fun, Node, NodeKind};
use crate::diag::{Code, Span};
use crate::lang::ast::{Expr, ExprKind, Pat, Slice, Subscript};
use crate::lang::lexer::Number;
use crate::lang::size::Size;
use crate::lang::typed::{Prim, ScalarOp, VarId};
use crate::lang::types::ScalarType;
use std::rc::Rc;

/// What is chosen along one dimension, with its place.
enum Cut<'a> {
    At(Node),
    Slice(&'a Slice),
}

pub fn array(n: &Size, element: &Ty) -> Ty {
    Ty::Array(n.clone(), Rc::new(element.clone()))
}

pub fn pattern(prim: Prim, sizes: Vec<Size>, args: Vec<Node>, ty: Ty, span: Span) -> Node {
    Node::new(NodeKind::Prim { prim, funs: vec![], sizes, args }, ty, span)
}

pub fn variable((var, ty): &(VarId, Ty), span: Span) -> Node {
    Node::new(NodeKind::Var(*var), ty.clone(), span)
}

/// Returns the subscripts up to the last index, if each of them is an index or stands for a whole dimension (`None`), and
/// nothing but whole dimensions follows.
fn indices_and_wholes(cuts: &[Cut<'_>]) -> Option<Vec<Option<Node>>> {
    let whole = |s: &Slice| s.from.is_none() && s.to.is_none() && s.step.is_none();
    let index = |cut: &Cut<'_>| match cut {
        Cut::At(index) => Some(Some(index.clone())),
        Cut::Slice(slice) => whole(slice).then_some(None),
    };
    let mut indices: Vec<_> = cuts.iter().map(index).collect::<Option<_>>()?;
    let last = indices.iter().rposition(Option::is_some)?;
    indices.truncate(last + 1);
    Some(indices)
}

/// Returns the magnitude of a negative number.
fn below_zero(e: &Expr) -> Option<i128> {
    match &e.kind {
        ExprKind::Paren(e) => below_zero(e),
        ExprKind::Unary(ScalarOp::Neg, e) => match e.kind {
            ExprKind::Number(Number::Int(n), _) if n > 0 => Some(n),
            _ => None,
        },
        _ => None,
    }
}

impl<'a> Checker<'a> {
    /// Elaborates `array[...]`.
    pub fn subscripted(
        &mut self,
        array: Node,
        subscripts: &'a [Subscript],
        span: Span,
        env: &Env<'a>,
    ) -> Res<Node> {
        // An index that only its use makes negative may stand behind a condition that is false there.
        for (dimension, subscript) in subscripts.iter().enumerate() {
            if let Subscript::At(index) = subscript
                && let Some(back) = below_zero(index)
            {
                let place = (dimension, subscripts.len());
                return Err(self.counted_back(&array, place, back, index.span).into());
            }
        }
        let cuts = self.cuts(subscripts, env);
        self.chosen(array, &cuts.iter().collect::<Vec<_>>(), span, env)
    }

    fn cuts(&mut self, subscripts: &'a [Subscript], env: &Env<'a>) -> Vec<Cut<'a>> {
        let cut = |subscript: &'a Subscript| match subscript {
            Subscript::At(index) => Cut::At(self.value(index, env)),
            Subscript::Slice(slice) => Cut::Slice(slice),
        };
        subscripts.iter().map(cut).collect()
    }

    fn chosen(&mut self, node: Node, cuts: &[&Cut<'a>], span: Span, env: &Env<'a>) -> Res<Node> {
        let Some((first, rest)) = cuts.split_first() else { return Ok(node) };
        // Indices first: what they choose is a part of the array as it is, whatever the slices before them leave out.
        let index = cuts.iter().enumerate().find_map(|(at, cut)| match cut {
            Cut::At(index) => Some((at, index.clone())),
            Cut::Slice(_) => None,
        });
        if let Some((at, index)) = index {
            let others: Vec<_> = cuts[..at].iter().chain(&cuts[at + 1..]).copied().collect();
            let front = self.outermost(node, at, span)?;
            let part = self.index(front, index, span)?;
            return self.chosen(part, &others, span, env);
        }
        let Cut::Slice(slice) = first else { return Ok(node) };
        let (n, _) = self.sliced(&node, slice.span)?;
        let mut lets = vec![];
        let range = self.range(slice, &n, env, &mut lets);
        let range = range.map_err(|abort| self.of_computed_part(abort, slice))?;
        if !rest.is_empty() && range.is_moving() {
            let of_row = |this: &mut Self, row| this.chosen(row, rest, span, env);
            let part = self.moving(node, &range, false, span, of_row)?;
            return self.defining(part, lets);
        }
        let mut part = self.part(node, &range, false, span)?;
        if !rest.is_empty() {
            part = self.map_rows(vec![part], span, |this, mut rows| match rows.pop() {
                Some(row) => this.chosen(row, rest, span, env),
                None => Err(Abort(None)),
            })?;
        }
        self.defining(part, lets)
    }

    /// Returns the length and the element type of what is sliced.
    pub fn sliced(&self, node: &Node, span: Span) -> Res<(Size, Ty)> {
        match self.infer.shallow(&node.ty) {
            Ty::Array(n, element) => Ok((self.infer.sizes.resolve(&n), (*element).clone())),
            _ if self.is_lost(node) => Err(Abort(None)),
            ty => {
                let found = self.infer.show(&ty);
                let message = format!("this must be an array, but it is {found}");
                Err(self.error(Code::TypeMismatch, message, span).into())
            }
        }
    }

    /// Makes dimension `at` the outermost one.
    fn outermost(&mut self, node: Node, at: usize, span: Span) -> Res<Node> {
        if at == 0 {
            return Ok(node);
        }
        let node = self.map_rows(vec![node], span, |this, mut rows| match rows.pop() {
            Some(row) => this.outermost(row, at - 1, span),
            None => Err(Abort(None)),
        })?;
        let (n, row) = self.sliced(&node, span)?;
        let inner = node.stand_in(row);
        let (m, element) = self.sliced(&inner, span)?;
        let ty = array(&m, &array(&n, &element));
        Ok(pattern(Prim::Transpose, vec![], vec![node], ty, span))
    }

    /// Returns the map of a function over arrays of one length; one of them itself, if the function returns its row.
    fn map_rows(
        &mut self,
        arrays: Vec<Node>,
        span: Span,
        f: impl FnOnce(&mut Self, Vec<Node>) -> Res<Node>,
    ) -> Res<Node> {
        let mut params = vec![];
        let mut length = Size::constant(0);
        for a in &arrays {
            let (n, element) = self.sliced(a, span)?;
            params.push((self.fresh_var("row"), element));
            length = n;
        }
        let body = f(self, params.iter().map(|p| variable(p, span)).collect())?;
        if let NodeKind::Var(v) = body.kind
            && let Some(same) = params.iter().position(|(p, _)| *p == v)
            && let Some(whole) = arrays.get(same)
        {
            return Ok(whole.clone());
        }
        let ty = array(&length, &body.ty);
        let funs = vec![Fun { params, body: Box::new(body) }];
        let kind = NodeKind::Prim { prim: Prim::Map, funs, sizes: vec![], args: arrays };
        Ok(Node::new(kind, ty, span))
    }

    /// Elaborates `array with [...] <- value`.
    pub fn updated(
        &mut self,
        array: Node,
        subscripts: &'a [Subscript],
        value: Node,
        span: Span,
        env: &Env<'a>,
    ) -> Res<Node> {
        let cuts = self.cuts(subscripts, env);
        let (in_item, of_host) = (self.is_in_step(), self.updates_state(&array));
        let mut lets = vec![];
        let array = self.shared(array, "old", &mut lets);
        let mut shared = vec![];
        for cut in cuts {
            shared.push(match cut {
                Cut::At(index) => {
                    self.restrict(&index, Class::Integer, "an index")?;
                    Cut::At(self.shared(index, "i", &mut lets))
                }
                Cut::Slice(slice) => Cut::Slice(slice),
            });
        }
        let value = self.shared(value, "new", &mut lets);
        if let Some(indices) = indices_and_wholes(&shared) {
            let wholes = indices.iter().filter(|i| i.is_none()).count();
            if of_host && wholes <= 1 || in_item && wholes == 0 {
                let node = self.scattered(array, &indices, value, span)?;
                return self.defining(node, lets);
            }
            // A work-item has a small matrix in registers, which have no computed places.
            if in_item && wholes == 1 {
                let few = self.is_few(array.clone(), indices.len(), span)?;
                let all = self.changed(array.clone(), &shared, vec![], value.clone(), span, env)?;
                let some = self.scattered(array, &indices, value, span)?;
                let ty = all.ty.clone();
                let kind = NodeKind::If(Box::new(few), Box::new(all), Box::new(some));
                return self.defining(Node::new(kind, ty, span), lets);
            }
        }
        let node = self.changed(array, &shared, vec![], value, span, env)?;
        self.defining(node, lets)
    }

    /// Returns the array with a part of it changed, where all of `conditions` hold.
    fn changed(
        &mut self,
        node: Node,
        cuts: &[Cut<'a>],
        conditions: Vec<Node>,
        value: Node,
        span: Span,
        env: &Env<'a>,
    ) -> Res<Node> {
        let Some((first, rest)) = cuts.split_first() else {
            let ty = node.ty.clone();
            let value = self.coerce(value, &ty, "the new value")?;
            return self.replaced(node, value, &conditions, span);
        };
        let (n, _) = self.sliced(&node, span)?;
        match first {
            Cut::At(index) => {
                let ty = array(&n, &index.ty);
                let indices = pattern(Prim::Iota, vec![n], vec![], ty, span);
                self.map_rows(vec![indices, node], span, |this, rows| {
                    let [i, row] = <[Node; 2]>::try_from(rows).map_err(|_| Abort(None))?;
                    let here = this.scalar(ScalarOp::Eq, None, vec![i, index.clone()], span)?;
                    let conditions = conditions.into_iter().chain([here]).collect();
                    this.changed(row, rest, conditions, value, span, env)
                })
            }
            Cut::Slice(slice) => {
                let mut lets = vec![];
                let range = self.range(slice, &n, env, &mut lets).map_err(of_computed_change)?;
                let (count, element) = self.sliced(&value, slice.span)?;
                if self.infer.sizes.unify(&count, range.count(), slice.span).is_err() {
                    let (a, b) =
                        (self.infer.show_size(range.count()), self.infer.show_size(&count));
                    let message = format!("this slice has {a} elements, but the new value has {b}");
                    return Err(self.error(Code::SizeMismatch, message, slice.span).into());
                }
                let value = Node { ty: array(range.count(), &element), ..value };
                let part = self.part(node.clone(), &range, true, span)?;
                let part = self.map_rows(vec![part, value], span, |this, rows| {
                    let [row, new] = <[Node; 2]>::try_from(rows).map_err(|_| Abort(None))?;
                    this.changed(row, rest, conditions, new, span, env)
                })?;
                let whole = self.put_back(node, part, &range, span)?;
                self.defining(whole, lets)
            }
        }
    }

    /// Returns `new` where all conditions hold, else `old`. Arrays are compared element by element, so that only scalars
    /// are chosen.
    fn replaced(&mut self, old: Node, new: Node, conditions: &[Node], span: Span) -> Res<Node> {
        if conditions.is_empty() {
            return Ok(new);
        }
        if matches!(self.infer.shallow(&old.ty), Ty::Array(..)) {
            return self.map_rows(vec![old, new], span, |this, rows| {
                let [old, new] = <[Node; 2]>::try_from(rows).map_err(|_| Abort(None))?;
                this.replaced(old, new, conditions, span)
            });
        }
        let mut all = conditions.iter().cloned();
        let Some(mut here) = all.next() else { return Ok(new) };
        for condition in all {
            here = self.scalar(ScalarOp::And, None, vec![here, condition], span)?;
        }
        let ty = old.ty.clone();
        Ok(Node::new(NodeKind::If(Box::new(here), Box::new(new), Box::new(old)), ty, span))
    }

    /// Elaborates `loop (pat = init) for element in array do body`: a fold if the accumulator holds no arrays, else a
    /// counted loop, whose steps may be parallel.
    pub fn fold_over(
        &mut self,
        (pat, init): (&'a Pat, Node),
        (element, elements): (&'a Pat, Node),
        body: &'a Expr,
        span: Span,
        env: &Env<'a>,
    ) -> Res<Node> {
        let (n, element_ty) = self.sliced(&elements, elements.span)?;
        let ty = init.ty.clone();
        let name = |pat, other| super::apply::pattern_name(pat).unwrap_or(other);
        let acc = (self.fresh_var(name(pat, "acc")), ty.clone());
        let x = (self.fresh_var(name(element, "x")), element_ty);
        let mut lets = vec![];
        let arg = |node: Node, span| Arg { elab: Elab::Value(node), span };
        let inner = self.bind(
            pat,
            arg(variable(&acc, pat.span), init.span),
            env,
            env,
            &mut lets,
            "the accumulator",
        )?;
        let inner = self.bind(
            element,
            arg(variable(&x, element.span), elements.span),
            &inner,
            env,
            &mut lets,
            "the element",
        )?;
        let fold = !self.has_array(&ty);
        if !fold {
            self.is_state_of_loop(acc.0);
        }
        let function = self.function;
        if fold {
            self.functions += 1;
            self.function = self.functions;
        }
        let next = match fold {
            true => self.value(body, &inner),
            false => self.in_step(|this| this.value(body, &inner)),
        };
        self.function = function;
        let next = self.defining(next, lets)?;
        let next = self.coerce(next, &ty, "the next accumulator")?;
        if fold {
            let funs = vec![Fun { params: vec![acc, x], body: Box::new(next) }];
            let args = vec![init, elements];
            let kind = NodeKind::Prim { prim: Prim::ReduceSeq, funs, sizes: vec![], args };
            return Ok(Node::new(kind, ty, span));
        }
        let mut around = vec![];
        let elements = self.shared(elements, "xs", &mut around);
        let counter = (self.fresh_var("i"), Ty::Scalar(ScalarType::I32));
        let bound = Node::new(NodeKind::Size(n), counter.1.clone(), span);
        let here = self.index(elements, variable(&counter, span), span)?;
        let next = self.defining(next, vec![(x.0, here)])?;
        let kind =
            NodeKind::LoopFor(acc.0, Box::new(init), counter.0, Box::new(bound), Box::new(next));
        self.defining(Node::new(kind, ty, span), around)
    }

    fn has_array(&self, ty: &Ty) -> bool {
        match self.infer.shallow(ty) {
            Ty::Array(..) => true,
            Ty::Tuple(ts) | Ty::Record(_, ts) => ts.iter().any(|t| self.has_array(t)),
            Ty::Meta(_) | Ty::Scalar(_) | Ty::Vector(..) => false,
        }
    }

    /// Elaborates `[e, f, ...]`.
    pub fn literal(&mut self, parts: &'a [Expr], span: Span, env: &Env<'a>) -> Res<Node> {
        let mut element: Option<Ty> = None;
        let mut rows = vec![];
        for part in parts {
            let node = self.value(part, env);
            let node = match &element {
                None => node,
                Some(ty) => self.coerce(node, ty, "an element of the array")?,
            };
            element.get_or_insert_with(|| node.ty.clone());
            let one = Size::constant(1);
            let ty = array(&one, &node.ty);
            rows.push(pattern(Prim::Replicate, vec![one], vec![node], ty, part.span));
        }
        self.concatenated(rows, span)
    }

    /// Returns arrays one after the other, combined in a balanced tree: an access makes few tests.
    pub fn concatenated(&mut self, parts: Vec<Node>, span: Span) -> Res<Node> {
        let mut parts = parts;
        while parts.len() > 1 {
            let mut next = vec![];
            let mut left = parts.into_iter();
            while let Some(a) = left.next() {
                let Some(b) = left.next() else {
                    next.push(a);
                    break;
                };
                let ((n, element), (m, _)) = (self.sliced(&a, span)?, self.sliced(&b, span)?);
                let ty = array(&n.add(&m), &element);
                next.push(pattern(Prim::Concat, vec![], vec![a, b], ty, span));
            }
            parts = next;
        }
        parts.pop().ok_or(Abort(None))
    }
}
