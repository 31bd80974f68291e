//! The e-graph language: terms, with sizes and types as leaf nodes so that patterns can bind them.

use crate::calculus::size::Size;
use crate::calculus::term::{Op, Term};
use crate::calculus::ty::Ty;
use egg::{Id, Language, RecExpr};
use std::fmt;
use std::mem::{Discriminant, discriminant};

/// The contents of an e-node.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NodeOp {
    /// A size argument.
    Size(Size),
    /// A type argument.
    Ty(Ty),
    /// A function.
    Fn(Op),
}

/// The variant of an operator, without its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kind(Discriminant<NodeOp>, Option<Discriminant<Op>>);

impl NodeOp {
    /// Returns the variant of the operator.
    pub fn kind(&self) -> Kind {
        let op = match self {
            NodeOp::Fn(op) => Some(discriminant(op)),
            NodeOp::Size(_) | NodeOp::Ty(_) => None,
        };
        Kind(discriminant(self), op)
    }
}

/// An e-node. The children of a function are its sizes, then its types, then its function arguments.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Node {
    /// A size, a type or a function.
    pub op: NodeOp,
    /// The children, as many as [`Op::shape`] says; none for sizes and types.
    pub children: Vec<Id>,
}

impl Language for Node {
    // egg asks for the discriminant often, so it is coarse and cheap; `matches` is exact.
    type Discriminant = Kind;

    fn discriminant(&self) -> Kind {
        self.op.kind()
    }

    // The numbers of children differ more often than not.
    fn matches(&self, other: &Self) -> bool {
        self.children.len() == other.children.len() && self.op == other.op
    }

    fn children(&self) -> &[Id] {
        &self.children
    }

    fn children_mut(&mut self) -> &mut [Id] {
        &mut self.children
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.op {
            NodeOp::Size(s) => write!(f, "{s}"),
            NodeOp::Ty(t) => write!(f, "{t}"),
            NodeOp::Fn(op) => match (op.name(), op) {
                (Some(name), _) => f.write_str(name),
                (None, Op::Compose) => f.write_str("."),
                (None, Op::Scalar(s)) => write!(f, "{s}"),
                (None, Op::Input(name)) => f.write_str(name),
                (None, other) => write!(f, "{other:?}"),
            },
        }
    }
}

impl Node {
    /// A size leaf.
    pub fn size(s: &Size) -> Node {
        Node { op: NodeOp::Size(s.clone()), children: vec![] }
    }

    /// A type leaf.
    pub fn ty(t: &Ty) -> Node {
        Node { op: NodeOp::Ty(t.clone()), children: vec![] }
    }

    /// Returns the operator, if the node is a function.
    pub fn function(&self) -> Option<&Op> {
        match &self.op {
            NodeOp::Fn(op) => Some(op),
            NodeOp::Size(_) | NodeOp::Ty(_) => None,
        }
    }

    /// Returns the function arguments among the children.
    pub fn args(&self) -> &[Id] {
        match &self.op {
            NodeOp::Fn(op) => {
                let (s, t, _) = op.shape();
                &self.children[s + t..]
            }
            NodeOp::Size(_) | NodeOp::Ty(_) => &[],
        }
    }
}

/// Adds a term to an expression of the e-graph language and returns the id of its root.
pub fn add_term(expr: &mut RecExpr<Node>, term: &Term) -> Id {
    let mut children: Vec<Id> = term.sizes().iter().map(|s| expr.add(Node::size(s))).collect();
    children.extend(term.tys().iter().map(|t| expr.add(Node::ty(t))));
    for a in term.args() {
        let id = add_term(expr, a);
        children.push(id);
    }
    expr.add(Node { op: NodeOp::Fn(term.op().clone()), children })
}
