//! Updates of elements and rows in loops. A pass over the array in each step would cost as much as the array is long. The
//! update becomes a `scatter` of one element, or of the elements of a column, which kernels do in place.
//!
//! Inside of a map a work-item or a group runs the loop, and every update is such a scatter. Outside of maps, the host runs the loop,
//! and the scatter is a kernel of its own. It is worth that if the array is the loop's state, which is not computed anyway.
//! Any other update is a pass, which joins the passes around it (`subscripts`).

use super::elab::{Abort, Checker, Res};
use super::infer::Ty;
use super::ir::{Fun, Lit, Node, NodeKind};
use super::subscripts::{array, pattern};
use crate::diag::Span;
use crate::lang::size::Size;
use crate::lang::typed::{Prim, ScalarOp, VarId};
use crate::lang::types::ScalarType;

/// The type of places in arrays of several dimensions.
const PLACE: Ty = Ty::Scalar(ScalarType::I64);

impl Checker<'_> {
    /// Runs `body`, which checks the step of a loop.
    pub fn in_step<T>(&mut self, body: impl FnOnce(&mut Self) -> T) -> T {
        let here = (self.function != 0).then_some(self.function);
        let around = std::mem::replace(&mut self.step_of, here);
        let done = body(self);
        self.step_of = around;
        done
    }

    /// Whether what is checked is part of a loop's step, inside of a map, and not of a function in that step.
    pub fn is_in_step(&self) -> bool {
        self.step_of == Some(self.function)
    }

    /// Notes the state of a loop.
    pub fn is_state_of_loop(&mut self, acc: VarId) {
        if self.function == 0 {
            self.states.insert(acc);
        }
    }

    /// Whether the value, outside of maps, is a part of the state of a loop, or an update of one.
    pub fn updates_state(&self, node: &Node) -> bool {
        self.function == 0 && self.is_of_state(node)
    }

    fn is_of_state(&self, node: &Node) -> bool {
        match &node.kind {
            NodeKind::Var(v) => self.states.contains(v),
            NodeKind::Proj(e, _) | NodeKind::Let(_, _, e) => self.is_of_state(e),
            NodeKind::Prim { prim: Prim::Scatter | Prim::Split | Prim::Join, args, .. } => {
                args.first().is_some_and(|e| self.is_of_state(e))
            }
            _ => false,
        }
    }

    /// Returns the array with `value` at the place that `indices` choose, one for each outer dimension. If one of these is
    /// not given, `value` has an element for each of its places.
    pub fn scattered(
        &mut self,
        node: Node,
        indices: &[Option<Node>],
        value: Node,
        span: Span,
    ) -> Res<Node> {
        let (mut lengths, mut row) = (vec![], node.clone());
        for _ in indices {
            let (n, element) = self.sliced(&row, span)?;
            lengths.push(n);
            row = row.stand_in(element);
        }
        let element = row.ty;
        let run = indices.iter().position(Option::is_none).and_then(|at| lengths.get(at).cloned());
        let ty = run.as_ref().map_or(element.clone(), |n| array(n, &element));
        let value = self.coerce(value, &ty, "the new value")?;
        if lengths.iter().any(Size::is_zero) {
            // There is no element to update, and `split` could not tell how many empty rows there are.
            return Ok(node);
        }
        let one = Size::constant(1);
        let of_one = |x: Node| {
            let ty = array(&one, &x.ty);
            pattern(Prim::Replicate, vec![one.clone()], vec![x], ty, span)
        };
        let (places, values) = match (indices, run) {
            ([Some(index)], _) => (of_one(index.clone()), of_one(value)),
            (_, None) => (of_one(self.flat_place(indices, &lengths, None, span)?), of_one(value)),
            (_, Some(n)) => {
                let along = (self.fresh_var("i"), PLACE);
                let here = Node::new(NodeKind::Var(along.0), PLACE, span);
                let place = self.flat_place(indices, &lengths, Some(&here), span)?;
                let funs = vec![Fun { params: vec![along], body: Box::new(place) }];
                let sizes = vec![n.clone()];
                let kind = NodeKind::Prim { prim: Prim::Generate, funs, sizes, args: vec![] };
                (Node::new(kind, array(&n, &PLACE), span), value)
            }
        };
        let all = lengths.iter().fold(Size::constant(1), |all, n| all.mul(n));
        let nested = |outer: &Size, inner: &[Size]| {
            let row = inner.iter().rev().fold(element.clone(), |t, n| array(n, &t));
            array(outer, &row)
        };
        let flat = self.flat(node, lengths.len(), span)?;
        let args = vec![flat, places, values];
        let mut out = pattern(Prim::Scatter, vec![], args, array(&all, &element), span);
        for k in (1..lengths.len()).rev() {
            let (before, inner) = lengths.split_at(k);
            let outer = before.iter().fold(Size::constant(1), |all, n| all.mul(n));
            let ty = nested(&outer, inner);
            let n = inner.first().cloned().ok_or(Abort(None))?;
            out = pattern(Prim::Split, vec![n], vec![out], ty, span);
        }
        Ok(out)
    }

    /// Returns the elements of an array with this number of dimensions, row by row.
    fn flat(&self, node: Node, dimensions: usize, span: Span) -> Res<Node> {
        (1..dimensions).try_fold(node, |node, _| {
            let (n, row) = self.sliced(&node, span)?;
            let (m, element) = self.sliced(&node.stand_in(row), span)?;
            Ok(pattern(Prim::Join, vec![], vec![node], array(&n.mul(&m), &element), span))
        })
    }

    /// Returns whether an array with this number of dimensions counts as short.
    pub fn is_few(&self, node: Node, dimensions: usize, span: Span) -> Res<Node> {
        let all = self.flat(node, dimensions, span)?;
        Ok(pattern(Prim::Few, vec![], vec![all], Ty::Scalar(ScalarType::Bool), span))
    }

    /// Returns the place of an element among all elements, row by row; -1 if an index is outside its dimension. `along` is a
    /// place in the dimension without an index.
    fn flat_place(
        &mut self,
        indices: &[Option<Node>],
        lengths: &[Size],
        along: Option<&Node>,
        span: Span,
    ) -> Res<Node> {
        let number = |v| Node::new(NodeKind::Lit(Lit::Int(v)), PLACE, span);
        let mut conditions = vec![];
        let mut place = number(0);
        for (index, n) in indices.iter().zip(lengths) {
            let n = Node::new(NodeKind::Size(n.clone()), PLACE, span);
            let i = match index {
                Some(index) => {
                    let cast = ScalarOp::Cast(ScalarType::I64);
                    let i = NodeKind::Scalar(cast, vec![index.clone()]);
                    let i = Node::new(i, PLACE, span);
                    let from = vec![i.clone(), number(0)];
                    conditions.push(self.scalar(ScalarOp::Ge, None, from, span)?);
                    let to = vec![i.clone(), n.clone()];
                    conditions.push(self.scalar(ScalarOp::Lt, None, to, span)?);
                    i
                }
                None => along.cloned().ok_or(Abort(None))?,
            };
            place = self.scalar(ScalarOp::Mul, None, vec![place, n], span)?;
            place = self.scalar(ScalarOp::Add, None, vec![place, i], span)?;
        }
        let mut all = conditions.into_iter();
        let mut inside = all.next().ok_or(Abort(None))?;
        for c in all {
            inside = self.scalar(ScalarOp::And, None, vec![inside, c], span)?;
        }
        let kind = NodeKind::If(Box::new(inside), Box::new(place), Box::new(number(-1)));
        Ok(Node::new(kind, PLACE, span))
    }
}
