//! What side conditions ask of a function: facts that follow from a node and the facts of its arguments.

use crate::calculus::term::{MapKind, Op, Term};
use crate::calculus::ty::{FnTy, Ty};

/// Facts about a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// It only rearranges.
    pub view: bool,
    /// It works on elements alone, without loops: it has a component-wise form.
    pub vectorisable: bool,
    /// It is a commutative binary operation.
    pub commutative: bool,
}

impl Facts {
    /// The facts of a node with that type, from those of its arguments.
    pub fn of_node(op: &Op, ty: &FnTy, args: &[Facts]) -> Facts {
        let all = |f: fn(&Facts) -> bool| args.iter().all(f);
        let elements = ty.dom.is_element() || ty.dom == Ty::Unit;
        match op {
            Op::Compose | Op::Fork | Op::Bimap => Facts {
                view: all(|f| f.view),
                vectorisable: all(|f| f.vectorisable),
                commutative: false,
            },
            Op::Id | Op::Fst | Op::Snd | Op::Bang => {
                Facts { view: true, vectorisable: elements, commutative: false }
            }
            Op::Scalar(f) => Facts {
                view: false,
                vectorisable: !f.body.has_loop(),
                commutative: f.is_commutative(),
            },
            Op::Cond => {
                Facts { view: false, vectorisable: all(|f| f.vectorisable), commutative: false }
            }
            Op::Map(MapKind::Plain) => Facts { view: all(|f| f.view), ..Facts::default() },
            // Component-wise, so it commutes when its argument does.
            Op::Vectorize => Facts {
                commutative: args.first().is_some_and(|f| f.commutative),
                ..Facts::default()
            },
            op => Facts { view: op.is_view(), ..Facts::default() },
        }
    }

    /// The facts of a whole term.
    pub fn of(term: &Term) -> Facts {
        let args: Vec<Facts> = term.args().iter().map(Facts::of).collect();
        Facts::of_node(term.op(), term.ty(), &args)
    }
}
