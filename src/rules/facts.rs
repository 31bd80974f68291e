//! What side conditions ask of functions.

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
    /// What a node shows of itself, its function arguments having these facts.
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
            Op::Vectorize => Facts { commutative: args[0].commutative, ..Facts::default() },
            op => Facts { view: op.is_view(), ..Facts::default() },
        }
    }

    /// What a term shows. An equal term may show more.
    pub fn of(t: &Term) -> Facts {
        let args: Vec<Facts> = t.args().iter().map(Facts::of).collect();
        Facts::of_node(t.op(), t.ty(), &args)
    }
}
