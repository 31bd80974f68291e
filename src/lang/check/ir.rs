//! The typed core while its types may still have holes. Mirrors [`crate::lang::typed`].

use super::infer::Ty;
use crate::diag::{Limits, Span};
use crate::lang::size::Size;
use crate::lang::typed::{Prim, ScalarOp, VarId};

/// An expression. Created by [`Node::new`].
#[derive(Clone, Debug)]
pub struct Node {
    /// The kind of expression.
    pub kind: NodeKind,
    /// Its type.
    pub ty: Ty,
    /// Its place.
    pub span: Span,
    /// Height of the expression tree, including this node.
    pub depth: usize,
}

/// A literal before its type is known.
#[derive(Clone, Copy, Debug)]
pub enum Lit {
    /// A number without a point, of any number type.
    Int(i128),
    /// A number of a float type.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// The greatest or least value of its type; infinite for floats.
    Extreme {
        /// Whether it is the greatest.
        highest: bool,
    },
}

/// A function of the core.
#[derive(Clone, Debug)]
pub struct Fun {
    /// Parameters, with their types.
    pub params: Vec<(VarId, Ty)>,
    /// The result.
    pub body: Box<Node>,
}

/// Kinds of expressions.
#[derive(Clone, Debug)]
pub enum NodeKind {
    /// Stands for an expression with an error that was already reported. Fits anywhere.
    Hole,
    /// A literal.
    Lit(Lit),
    /// A variable.
    Var(VarId),
    /// A size as a value.
    Size(Size),
    /// A tuple.
    Tuple(Vec<Node>),
    /// A component of a tuple.
    Proj(Box<Node>, usize),
    /// An element of an array.
    Index(Box<Node>, Box<Node>),
    /// A scalar operation.
    Scalar(ScalarOp, Vec<Node>),
    /// A vector with the scalar in every component.
    Broadcast(Box<Node>),
    /// A conditional.
    If(Box<Node>, Box<Node>, Box<Node>),
    /// A `let`.
    Let(VarId, Box<Node>, Box<Node>),
    /// A counted loop: accumulator, first value, counter, bound, body.
    LoopFor(VarId, Box<Node>, VarId, Box<Node>, Box<Node>),
    /// A conditional loop: accumulator, first value, condition, body.
    LoopWhile(VarId, Box<Node>, Box<Node>, Box<Node>),
    /// A pattern with all its arguments.
    Prim {
        /// The pattern.
        prim: Prim,
        /// Function arguments.
        funs: Vec<Fun>,
        /// Size arguments.
        sizes: Vec<Size>,
        /// Value arguments.
        args: Vec<Node>,
    },
}

impl Node {
    /// Returns a node, whose depth is computed from its parts.
    pub fn new(kind: NodeKind, ty: Ty, span: Span) -> Node {
        let depth = 1 + kind.depth();
        Node { kind, ty, span, depth }
    }

    /// Returns an expression of another type at the same place, without the parts. Used to check types alone.
    pub fn stand_in(&self, ty: Ty) -> Node {
        let kind = match self.kind {
            NodeKind::Hole => NodeKind::Hole,
            _ => NodeKind::Var(VarId(u32::MAX)),
        };
        Node::new(kind, ty, self.span)
    }

    /// Returns whether the expression may be repeated at no cost: a name, a literal, a size, or a component of a
    /// name.
    pub fn is_atomic(&self) -> bool {
        match &self.kind {
            NodeKind::Hole | NodeKind::Lit(_) | NodeKind::Var(_) | NodeKind::Size(_) => true,
            NodeKind::Proj(e, _) => e.is_atomic(),
            // Arithmetic on sizes and literals must stay visible, since it may become a size argument.
            NodeKind::Scalar(..) => {
                let mut operations = Limits::DEFAULT.size_operations;
                self.is_size_like(&mut operations)
            }
            NodeKind::Tuple(_)
            | NodeKind::Index(..)
            | NodeKind::Broadcast(_)
            | NodeKind::If(..)
            | NodeKind::Let(..)
            | NodeKind::LoopFor(..)
            | NodeKind::LoopWhile(..)
            | NodeKind::Prim { .. } => false,
        }
    }

    /// Returns whether the expression is arithmetic on sizes and literals, with at most `operations` operations.
    fn is_size_like(&self, operations: &mut usize) -> bool {
        match &self.kind {
            NodeKind::Lit(_) | NodeKind::Size(_) => true,
            NodeKind::Scalar(_, args) if *operations > 0 => {
                *operations -= 1;
                args.iter().all(|a| a.is_size_like(operations))
            }
            _ => false,
        }
    }

    /// Moves the parts at these places to another.
    pub fn moved(&mut self, from: &dyn Fn(Span) -> bool, to: Span) {
        if from(self.span) {
            self.span = to;
        }
        self.kind.parts_mut().into_iter().for_each(|part| part.moved(from, to));
    }

    /// Returns the depth of the expression inside these `let`s.
    pub fn depth_under(&self, lets: &[(VarId, Node)]) -> usize {
        lets.iter().rev().fold(self.depth, |depth, (_, value)| 1 + depth.max(value.depth))
    }

    /// Wraps the expression in `let`s, the first outermost.
    pub fn under(self, lets: Vec<(VarId, Node)>) -> Node {
        lets.into_iter().rev().fold(self, |body, (var, value)| {
            let (ty, span) = (body.ty.clone(), body.span);
            Node::new(NodeKind::Let(var, Box::new(value), Box::new(body)), ty, span)
        })
    }
}

impl NodeKind {
    /// Returns the direct parts, to change them.
    fn parts_mut(&mut self) -> Vec<&mut Node> {
        match self {
            NodeKind::Hole | NodeKind::Lit(_) | NodeKind::Var(_) | NodeKind::Size(_) => vec![],
            NodeKind::Tuple(parts) | NodeKind::Scalar(_, parts) => parts.iter_mut().collect(),
            NodeKind::Proj(e, _) | NodeKind::Broadcast(e) => vec![e],
            NodeKind::Index(a, b) | NodeKind::Let(_, a, b) => vec![a, b],
            NodeKind::If(a, b, c)
            | NodeKind::LoopFor(_, a, _, b, c)
            | NodeKind::LoopWhile(_, a, b, c) => vec![a, b, c],
            NodeKind::Prim { funs, args, .. } => {
                funs.iter_mut().map(|f| &mut *f.body).chain(args).collect()
            }
        }
    }

    /// Returns the depth of the deepest part; 0 if there are no parts.
    fn depth(&self) -> usize {
        let all = |parts: &[Node]| parts.iter().map(|p| p.depth).max().unwrap_or(0);
        match self {
            NodeKind::Hole | NodeKind::Lit(_) | NodeKind::Var(_) | NodeKind::Size(_) => 0,
            NodeKind::Tuple(parts) | NodeKind::Scalar(_, parts) => all(parts),
            NodeKind::Proj(e, _) | NodeKind::Broadcast(e) => e.depth,
            NodeKind::Index(a, b) | NodeKind::Let(_, a, b) => a.depth.max(b.depth),
            NodeKind::If(a, b, c)
            | NodeKind::LoopFor(_, a, _, b, c)
            | NodeKind::LoopWhile(_, a, b, c) => a.depth.max(b.depth).max(c.depth),
            NodeKind::Prim { funs, args, .. } => {
                funs.iter().map(|f| f.body.depth).fold(all(args), usize::max)
            }
        }
    }
}
