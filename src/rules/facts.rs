//! Facts about functions, which side conditions ask for.

use crate::calculus::term::{MapKind, Op, Term};
use crate::calculus::ty::{FnTy, Ty};

/// Most operations of a scalar function that is computed again rather than stored.
const QUICK: usize = 2;

/// Facts about a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// It only rearranges its argument.
    pub view: bool,
    /// It works on elements, without loops, so that it has a component-wise form.
    pub vectorisable: bool,
    /// Every lane of a vector can run it by itself: it consists of views, reductions and functions of
    /// elements.
    pub lanewise: bool,
    /// It is a function of elements, or a map of such functions.
    pub elementwise: bool,
    /// Its result is a scalar, or pairs of scalars.
    pub scalar: bool,
    /// It is a commutative binary operation.
    pub commutative: bool,
    /// It works on all pairs, tile by tile.
    pub tiles: bool,
    /// It scans an array.
    pub scans: bool,
    /// It rearranges, and computes elements by a few quick operations.
    pub cheap: bool,
}

impl Facts {
    /// Returns the facts that a node shows, given the facts of its function arguments.
    pub fn of_node(op: &Op, ty: &FnTy, args: &[Facts]) -> Facts {
        let all = |f: fn(&Facts) -> bool| args.iter().all(f);
        let elements = ty.dom.is_element() || ty.dom == Ty::Unit;
        // A vector cannot contain vectors.
        let lanes = !ty.dom.has_vector() && !ty.cod.has_vector() && all(|f| f.lanewise);
        let none = Facts {
            scalar: ty.cod.is_scalar(),
            elementwise: ty.dom.is_element() && ty.cod.is_element(),
            ..Facts::default()
        };
        match op {
            Op::Compose | Op::Fork | Op::Bimap => Facts {
                view: all(|f| f.view),
                vectorisable: all(|f| f.vectorisable),
                lanewise: lanes,
                elementwise: none.elementwise || *op == Op::Compose && all(|f| f.elementwise),
                tiles: *op == Op::Compose && args.iter().any(|f| f.tiles),
                scans: args.iter().any(|f| f.scans),
                cheap: all(|f| f.cheap),
                ..none
            },
            Op::Tiled(_) | Op::Turned => Facts { tiles: true, ..none },
            Op::Id | Op::Fst | Op::Snd | Op::Bang => {
                Facts { view: true, vectorisable: elements, lanewise: lanes, cheap: true, ..none }
            }
            Op::Scalar(f) => {
                let plain = !f.body.has_loop();
                let commutative = f.is_commutative();
                let cheap = f.body.quick_operations().is_some_and(|n| n <= QUICK);
                Facts { vectorisable: plain, lanewise: plain, commutative, cheap, ..none }
            }
            Op::Cond => {
                let plain = all(|f| f.vectorisable);
                Facts { vectorisable: plain, lanewise: plain && lanes, ..none }
            }
            Op::Map(MapKind::Plain) => Facts {
                view: all(|f| f.view),
                lanewise: lanes,
                elementwise: all(|f| f.elementwise),
                cheap: all(|f| f.cheap),
                ..none
            },
            Op::Scan(_) | Op::ScanLcl(_) => Facts { scans: true, ..none },
            Op::Reduce(_) => Facts { lanewise: lanes, ..none },
            // `vectorize` is component-wise, so it commutes when its argument does.
            Op::Vectorize => Facts { commutative: args[0].commutative, ..none },
            op => Facts {
                view: op.is_view(),
                lanewise: op.is_view() && lanes,
                cheap: op.is_view() && all(|f| f.cheap),
                ..none
            },
        }
    }

    /// Returns the facts that a term shows. An equal term may show more.
    pub fn of(t: &Term) -> Facts {
        let args: Vec<Facts> = t.args().iter().map(Facts::of).collect();
        Facts::of_node(t.op(), t.ty(), &args)
    }
}
