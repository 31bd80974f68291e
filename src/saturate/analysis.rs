//! What is known of every e-class: its one type, and a few facts that side conditions ask for.

use super::language::{Node, NodeOp};
use crate::calculus::size::Size;
use crate::calculus::term::{MapKind, Op, signature};
use crate::calculus::ty::{FnTy, Ty};
use egg::{Analysis, DidMerge, EGraph, Id};

/// Facts about the function that a class stands for. Each is true when some member shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// A member only rearranges.
    pub view: bool,
    /// A member works on elements alone, without loops: it has a component-wise form.
    pub vectorisable: bool,
    /// A member is made of what every lane of a vector can do by itself: views, reductions, and
    /// functions of elements.
    pub lanewise: bool,
    /// A member is a commutative binary operation.
    pub commutative: bool,
}

/// What a class stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// A size.
    Size(Size),
    /// A type.
    Ty(Ty),
    /// A function of that type.
    Fn(FnTy, Facts),
    /// Something ill-typed; the run stops with [`Typed::broken`].
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

/// The analysis. One type for each class: a merge of two is a bug, kept in `broken`.
#[derive(Clone, Debug, Default)]
pub struct Typed {
    /// The first thing that went wrong.
    pub broken: Option<String>,
}

fn facts(op: &Op, ty: &FnTy, args: &[Facts]) -> Facts {
    let all = |f: fn(&Facts) -> bool| args.iter().all(f);
    let elements = ty.dom.is_element() || ty.dom == Ty::Unit;
    // Vectors have no vectors in their lanes.
    let lanes = !ty.dom.has_vector() && !ty.cod.has_vector() && all(|f| f.lanewise);
    match op {
        Op::Compose | Op::Fork | Op::Bimap => Facts {
            view: all(|f| f.view),
            vectorisable: all(|f| f.vectorisable),
            lanewise: lanes,
            commutative: false,
        },
        Op::Id | Op::Fst | Op::Snd | Op::Bang => {
            Facts { view: true, vectorisable: elements, lanewise: lanes, commutative: false }
        }
        Op::Scalar(f) => {
            let plain = !f.body.has_loop();
            let commutative = f.is_commutative();
            Facts { view: false, vectorisable: plain, lanewise: plain, commutative }
        }
        Op::Cond => {
            let plain = all(|f| f.vectorisable);
            Facts { vectorisable: plain, lanewise: plain && lanes, ..Facts::default() }
        }
        Op::Map(MapKind::Plain) => {
            Facts { view: all(|f| f.view), lanewise: lanes, ..Facts::default() }
        }
        Op::Reduce(_) => Facts { lanewise: lanes, ..Facts::default() },
        // Component-wise, so it commutes when its argument does.
        Op::Vectorize => Facts { commutative: args[0].commutative, ..Facts::default() },
        op => Facts { view: op.is_view(), lanewise: op.is_view() && lanes, ..Facts::default() },
    }
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
                let facts = facts(op, &ty, &known);
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
                    commutative: f.commutative || g.commutative,
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
