//! The typed core while its types still have holes. Mirrors [`crate::lang::typed`].

use super::infer::Ty;
use crate::diag::Span;
use crate::lang::size::Size;
use crate::lang::typed::{Prim, ScalarOp, VarId};

/// An expression.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it is.
    pub kind: NodeKind,
    /// Its type.
    pub ty: Ty,
    /// Where it stands.
    pub span: Span,
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
    /// Whether it costs nothing to write it twice: a name, a literal, a size, or a component of a name.
    pub fn is_atomic(&self) -> bool {
        match &self.kind {
            NodeKind::Hole | NodeKind::Lit(_) | NodeKind::Var(_) | NodeKind::Size(_) => true,
            NodeKind::Proj(e, _) => e.is_atomic(),
            // Arithmetic on sizes and literals must stay visible: it may become a size argument.
            NodeKind::Scalar(_, args) => args.iter().all(Node::is_size_like),
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

    fn is_size_like(&self) -> bool {
        match &self.kind {
            NodeKind::Lit(_) | NodeKind::Size(_) => true,
            NodeKind::Scalar(_, args) => args.iter().all(Node::is_size_like),
            _ => false,
        }
    }

    /// Wraps definitions around it, the first outermost.
    pub fn under(self, lets: Vec<(VarId, Node)>) -> Node {
        lets.into_iter().rev().fold(self, |body, (var, value)| {
            let (ty, span) = (body.ty.clone(), body.span);
            Node { kind: NodeKind::Let(var, Box::new(value), Box::new(body)), ty, span }
        })
    }
}
