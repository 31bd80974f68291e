//! The e-class analysis: each class has one type and a few facts that side conditions ask about.

use super::language::{Node, NodeOp};
use crate::calculus::size::Size;
use crate::calculus::term::signature;
use crate::calculus::ty::{FnTy, Ty};
use crate::rules::Facts;
use egg::{Analysis, DidMerge, EGraph, Id};

/// The meaning of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// A size.
    Size(Size),
    /// A type.
    Ty(Ty),
    /// A function of that type. A fact holds when it is known of some member.
    Fn(FnTy, Facts),
    /// Ill-typed; the run stops with [`Typed::broken`].
    Broken,
}

impl Data {
    /// The function's type.
    pub fn function(&self) -> Option<&FnTy> {
        match self {
            Data::Fn(t, _) => Some(t),
            Data::Size(_) | Data::Ty(_) | Data::Broken => None,
        }
    }

    /// The size.
    pub fn size(&self) -> Option<&Size> {
        match self {
            Data::Size(s) => Some(s),
            Data::Ty(_) | Data::Fn(..) | Data::Broken => None,
        }
    }

    /// The type.
    pub fn ty(&self) -> Option<&Ty> {
        match self {
            Data::Ty(t) => Some(t),
            Data::Size(_) | Data::Fn(..) | Data::Broken => None,
        }
    }

    /// The facts.
    pub fn facts(&self) -> Facts {
        match self {
            Data::Fn(_, f) => *f,
            Data::Size(_) | Data::Ty(_) | Data::Broken => Facts::default(),
        }
    }
}

/// The analysis. Merging classes of two types is a bug in a rule; `broken` records it.
#[derive(Clone, Debug, Default)]
pub struct Typed {
    /// The first error.
    pub broken: Option<String>,
}

impl Analysis<Node> for Typed {
    type Data = Data;

    fn make(egraph: &mut EGraph<Node, Self>, node: &Node, _id: Id) -> Data {
        let op = match &node.op {
            NodeOp::Size(s) => return Data::Size(s.clone()),
            NodeOp::Ty(t) => return Data::Ty(t.clone()),
            NodeOp::Fn(op) => op,
        };
        let (mut sizes, mut tys, mut args, mut known) = (vec![], vec![], vec![], vec![]);
        for c in &node.children {
            match &egraph[*c].data {
                Data::Size(s) => sizes.push(s.clone()),
                Data::Ty(t) => tys.push(t.clone()),
                Data::Fn(t, f) => {
                    args.push(t.clone());
                    known.push(*f);
                }
                Data::Broken => return Data::Broken,
            }
        }
        match signature(op, &sizes, &tys, &args) {
            Ok(ty) => {
                let facts = Facts::of_node(op, &ty, &known);
                Data::Fn(ty, facts)
            }
            Err(e) => {
                egraph.analysis.broken.get_or_insert_with(|| format!("ill-typed `{node}`: {e}"));
                Data::Broken
            }
        }
    }

    fn merge(&mut self, a: &mut Data, b: Data) -> DidMerge {
        if *a == b {
            return DidMerge(false, false);
        }
        match (&mut *a, &b) {
            (Data::Fn(s, f), Data::Fn(t, g)) if s == t => {
                let both = Facts {
                    view: f.view || g.view,
                    vectorisable: f.vectorisable || g.vectorisable,
                    lanewise: f.lanewise || g.lanewise,
                    elementwise: f.elementwise || g.elementwise,
                    scalar: f.scalar || g.scalar,
                    commutative: f.commutative || g.commutative,
                    tiles: f.tiles || g.tiles,
                    scans: f.scans || g.scans,
                    cheap: f.cheap || g.cheap,
                };
                let merge = DidMerge(both != *f, both != *g);
                *f = both;
                merge
            }
            (a, _) => {
                let show = |d: &Data| match d {
                    Data::Fn(t, _) => t.to_string(),
                    Data::Size(s) => s.to_string(),
                    Data::Ty(t) => t.to_string(),
                    Data::Broken => "ill-typed".to_owned(),
                };
                let text = format!("a class of `{}` and `{}`", show(a), show(&b));
                self.broken.get_or_insert(text);
                DidMerge(false, true)
            }
        }
    }
}
