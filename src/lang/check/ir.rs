//! The typed core while its types still have holes. Mirrors [`crate::lang::typed`].

use super::infer::Ty;
use crate::diag::{Limits, Span};
use crate::lang::size::Size;
use crate::lang::typed::{Prim, ScalarOp, VarId};

/// An expression. [`Node::new`] makes it.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it is.
    pub kind: NodeKind,
    /// Its type.
    pub ty: Ty,
    /// Where it stands.
    pub span: Span,
    /// The height of the tree of expressions below it, itself included.
    pub depth: usize,
}

/// A literal before its type is known.
#[derive(Clone, Copy, Debug)]
pub enum Lit {
    /// Without a point: of any number type.
    Int(i128),
    /// Of a float type.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// The largest (or smallest) value of its type; infinite for floats.
    Extreme {
        /// Whether the largest.
        highest: bool,
    },
}

/// A function of the core.
#[derive(Clone, Debug)]
pub struct Fun {
    /// Parameters.
    pub params: Vec<(VarId, Ty)>,
    /// Result.
    pub body: Box<Node>,
}

/// Kinds of expressions.
#[derive(Clone, Debug)]
pub enum NodeKind {
    /// Where an error has been reported: fits anywhere.
    Hole,
    /// A literal.
    Lit(Lit),
    /// A variable.
    Var(VarId),
    /// A size as a value.
    Size(Size),
    /// A tuple.
    Tuple(Vec<Node>),
    /// A component.
    Proj(Box<Node>, usize),
    /// An element.
    Index(Box<Node>, Box<Node>),
    /// A scalar operation.
    Scalar(ScalarOp, Vec<Node>),
    /// A scalar in every component of a vector.
    Broadcast(Box<Node>),
    /// A conditional.
    If(Box<Node>, Box<Node>, Box<Node>),
    /// A definition.
    Let(VarId, Box<Node>, Box<Node>),
    /// A counted loop: accumulator, first value, counter, bound, body.
    LoopFor(VarId, Box<Node>, VarId, Box<Node>, Box<Node>),
    /// A conditional loop: accumulator, first value, condition, body.
    LoopWhile(VarId, Box<Node>, Box<Node>, Box<Node>),
    /// A saturated pattern.
    Prim {
        /// Which.
        prim: Prim,
        /// Functions.
        funs: Vec<Fun>,
        /// Sizes.
        sizes: Vec<Size>,
        /// Values.
        args: Vec<Node>,
    },
}

impl Node {
    /// An expression over its parts.
    pub fn new(kind: NodeKind, ty: Ty, span: Span) -> Node {
        let depth = 1 + kind.depth();
        Node { kind, ty, span, depth }
    }

    /// For checks of the type alone: an expression of another type at the same place, without its parts.
    pub fn stand_in(&self, ty: Ty) -> Node {
        let kind = match self.kind {
            NodeKind::Hole => NodeKind::Hole,
            _ => NodeKind::Var(VarId(u32::MAX)),
        };
        Node::new(kind, ty, self.span)
    }

    /// Whether it costs nothing to write it twice: a name, a literal, a size, or a component of a name.
    pub fn is_atomic(&self) -> bool {
        match &self.kind {
            NodeKind::Hole | NodeKind::Lit(_) | NodeKind::Var(_) | NodeKind::Size(_) => true,
            NodeKind::Proj(e, _) => e.is_atomic(),
            // Arithmetic on sizes and literals must stay visible: it may become a size argument.
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

    /// Whether it is arithmetic on sizes and literals, of at most so many operations.
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

    /// Its depth with definitions around it.
    pub fn depth_under(&self, lets: &[(VarId, Node)]) -> usize {
        lets.iter().rev().fold(self.depth, |depth, (_, value)| 1 + depth.max(value.depth))
    }

    /// Wraps definitions around it, the first outermost.
    pub fn under(self, lets: Vec<(VarId, Node)>) -> Node {
        lets.into_iter().rev().fold(self, |body, (var, value)| {
            let (ty, span) = (body.ty.clone(), body.span);
            Node::new(NodeKind::Let(var, Box::new(value), Box::new(body)), ty, span)
        })
    }
}

impl NodeKind {
    /// The depth of the deepest part, 0 without parts.
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
