//! Applies terms that only rearrange: their results are views.

use super::leaf;
use super::view::{Shape, Step, View, Views, gather_lanes, guarded, ill_formed, lane};
pub use crate::calculus::nesting::is_pure;
use crate::calculus::scalar::Lit;
use crate::calculus::size::Size;
use crate::calculus::term::{Op, ReduceKind, Term};
use crate::calculus::ty::Ty;
use crate::kernel::ir::facts::{Facts, Guard};
use crate::kernel::ir::index::Index;
use crate::kernel::ir::{Check, ElemTy, Expr};
use crate::lang::typed::{PadMode, ScalarOp};
use crate::lang::types::ScalarType;
use std::rc::Rc;

/// Returns zeros in place of an element of an array that has none. Code that reads one is generated,
/// but runs only if a check is to fail.
fn no_element(shape: &Shape, index: &Expr, checked: bool) -> View {
    match shape {
        Shape::Unit => View::Unit,
        Shape::Elem(t) if checked => {
            let zero = Expr::Checked(Check::Index(0), vec![index.clone()]);
            let t = *t;
            View::Elem(
                Expr::Op(ScalarOp::Cast(t.scalar), ElemTy::scalar(t.scalar), vec![zero])
                    .widen(t.width),
            )
        }
        Shape::Elem(t) => View::Elem(Expr::Lit(Lit::int(t.scalar, 0)).widen(t.width)),
        Shape::Pair(a, b) => {
            View::pair(no_element(a, index, checked), no_element(b, index, checked))
        }
        Shape::Array(n, t) => {
            let (t, index) = ((**t).clone(), index.clone());
            View::array(*n, move |_| Ok(no_element(&t, &index, checked)))
        }
    }
}

/// Whether an element of the result of a view is one of two elements, of which one may be outside of its array.
pub fn chooses(t: &Term) -> bool {
    matches!(t.op(), Op::Concat | Op::Pad(_) | Op::PadTo | Op::PadLast | Op::Mask | Op::Rotate)
}

/// Most elements that are combined where the result is read.
const FEW: u64 = 8;

/// Whether a term combines a few elements, such as those of a window, in order.
pub fn is_short(t: &Term) -> bool {
    let few = |n: &Size| n.as_constant().is_some_and(|n| n <= FEW);
    matches!(t.op(), Op::Reduce(ReduceKind::Seq | ReduceKind::Unroll))
        && t.ty().cod.is_scalar()
        && t.sizes().first().is_some_and(few)
}

/// Returns the element, of the given shape, of an array at a computed index. Guards of the index
/// become guards of the element. If `checked` is set, an index that is not known to lie in the array
/// gets a check; otherwise it is taken to lie in the array.
fn at_value(array: &View, shape: &Shape, index: &Expr, facts: &Facts, checked: bool) -> Step<View> {
    let View::Array(a) = array else { return ill_formed("an array") };
    let at = match index {
        index if index.ty().width > 1 => {
            let lane = |k| at_value(array, shape, &index.lane(k), facts, checked);
            let lanes = (0..index.ty().width).map(lane).collect::<Step<Vec<_>>>()?;
            return gather_lanes(&lanes);
        }
        Expr::Guarded(g, a, b) => {
            let a = at_value(array, shape, a, &facts.with(g), checked)?;
            return guarded(g, a, at_value(array, shape, b, &facts.without(g), checked)?);
        }
        Expr::Index(i, _) => i.clone(),
        Expr::Lit(l) => match l.as_int().and_then(|x| i64::try_from(x).ok()) {
            Some(x) => Index::from(x),
            None => return ill_formed("an integer index"),
        },
        e if checked => Index::data(e.clone()),
        e => Index::data_below(e.clone(), a.len),
    };
    if a.len == 0 {
        return Ok(no_element(shape, index, checked));
    }
    let inside = facts.prove(&at) && facts.prove(&Index::from(a.len - 1).sub(&at));
    if !checked || inside {
        return array.at(&at);
    }
    array.at(&Index::data(Expr::Checked(Check::Index(a.len), vec![index.clone()])))
}

impl Views {
    /// Returns the result of applying a pure term ([`is_pure`]) to `x`.
    pub fn apply(self: &Rc<Self>, t: &Term, x: &View) -> Step<View> {
        let n = |k: usize| match t.sizes().get(k) {
            Some(s) => self.size(s),
            None => ill_formed("a size argument"),
        };
        let arg = |k: usize| &t.args()[k];
        Ok(match t.op() {
            Op::Id | Op::Reorder => x.clone(),
            Op::OnRead => self.apply(arg(0), x)?,
            Op::Compose => self.apply(arg(0), &self.apply(arg(1), x)?)?,
            Op::Fst => x.fst()?,
            Op::Snd => x.snd()?,
            Op::Fork => View::pair(self.apply(arg(0), x)?, self.apply(arg(1), x)?),
            Op::Bimap => View::pair(self.apply(arg(0), &x.fst()?)?, self.apply(arg(1), &x.snd()?)?),
            Op::Bang => View::Unit,
            Op::Input(name) => match self.inputs.get(name) {
                Some(v) => v.clone(),
                None => return ill_formed("a known parameter"),
            },
            Op::Lit(l) => View::Elem(Expr::Lit(*l)),
            Op::SizeValue(s) => View::Elem(self.size_lit(&t.sizes()[0], *s)?),
            Op::Scalar(f) => leaf::inline(f, x, self)?,
            Op::Map(_) => {
                let (me, f, x) = (self.clone(), arg(0).clone(), x.clone());
                View::array(n(0)?, move |i| me.apply(&f, &x.at(i)?))
            }
            Op::Zip => {
                let (a, b) = (x.fst()?, x.snd()?);
                View::array(n(0)?, move |i| Ok(View::pair(a.at(i)?, b.at(i)?)))
            }
            Op::Unzip => {
                let (a, b) = (x.clone(), x.clone());
                View::pair(
                    View::array(n(0)?, move |i| a.at(i)?.fst()),
                    View::array(n(0)?, move |i| b.at(i)?.snd()),
                )
            }
            Op::Split => {
                let (k, x) = (n(0)?, x.clone());
                View::array(n(1)?, move |i| {
                    let (x, start) = (x.clone(), i.times(k));
                    Ok(View::array(k, move |j| x.at(&start.add(j))))
                })
            }
            Op::Join => {
                let (k, x) = (n(0)?, x.clone());
                View::array(k.saturating_mul(n(1)?), move |i| {
                    let (q, r) = i.div_mod(k);
                    x.at(&q)?.at(&r)
                })
            }
            Op::Transpose => {
                let (rows, x) = (n(0)?, x.clone());
                View::array(n(1)?, move |j| {
                    let (x, j) = (x.clone(), j.clone());
                    Ok(View::array(rows, move |i| x.at(i)?.at(&j)))
                })
            }
            Op::Cross => {
                let (a, b, m) = (x.fst()?, x.snd()?, n(1)?);
                View::array(n(0)?, move |i| {
                    let (a, b) = (a.at(i)?, b.clone());
                    Ok(View::array(m, move |j| Ok(View::pair(a.clone(), b.at(j)?))))
                })
            }
            Op::Distl => {
                let (a, b) = (x.fst()?, x.snd()?);
                View::array(n(0)?, move |i| Ok(View::pair(a.clone(), b.at(i)?)))
            }
            Op::Distr => {
                let (a, b) = (x.fst()?, x.snd()?);
                View::array(n(0)?, move |i| Ok(View::pair(a.at(i)?, b.clone())))
            }
            Op::AsVector => {
                let (w, x) = (n(0)?, x.clone());
                View::array(n(1)?, move |i| {
                    let start = i.times(w);
                    let lanes = (0..w).map(|l| x.at(&start.plus(l))).collect::<Step<Vec<_>>>()?;
                    gather_lanes(&lanes)
                })
            }
            Op::AsScalar => {
                let (w, x) = (n(0)?, x.clone());
                View::array(w.saturating_mul(n(1)?), move |i| {
                    let (q, r) = i.div_mod(w);
                    lane(&x.at(&q)?, &r)
                })
            }
            Op::Splat => x.widen(usize::try_from(n(0)?).unwrap_or(0))?,
            Op::Vectorize => {
                let lanes = (0..n(0)?)
                    .map(|l| self.apply(arg(0), &lane(x, &Index::from(l))?))
                    .collect::<Step<Vec<_>>>()?;
                gather_lanes(&lanes)?
            }
            Op::Stride => {
                let (s, m, x) = (n(0)?, n(1)?, x.clone());
                View::array(s.saturating_mul(m), move |j| {
                    let (q, r) = j.div_mod(m);
                    x.at(&q.add(&r.times(s)))
                })
            }
            Op::PadTo => {
                let (len, x) = (n(0)?, x.clone());
                let z = self.apply(arg(0), &View::Unit)?;
                View::array(n(1)?, move |i| {
                    guarded(&Guard::less(i, &len.into()), x.at(i)?, z.clone())
                })
            }
            Op::PadLast => {
                let (len, x) = (n(0)?, x.clone());
                View::array(n(1)?, move |i| {
                    let last = x.at(&Index::from(len - 1))?;
                    guarded(&Guard::less(i, &len.into()), x.at(i)?, last)
                })
            }
            Op::Mask => {
                let (len, x) = (n(0)?, x.clone());
                View::array(n(1)?, move |i| {
                    let real = Guard::less(i, &len.into());
                    let truth = |b| View::Elem(Expr::Lit(Lit::int(ScalarType::Bool, b)));
                    let flag = guarded(&real, truth(1), truth(0))?;
                    let last = x.at(&Index::from(len - 1))?;
                    Ok(View::pair(flag, guarded(&real, x.at(i)?, last)?))
                })
            }
            Op::Take => {
                let x = x.clone();
                View::array(n(0)?, move |i| x.at(i))
            }
            Op::Drop => {
                let (skip, x) = (n(1)? - n(0)?, x.clone());
                View::array(n(0)?, move |i| x.at(&i.plus(skip)))
            }
            Op::Slide => {
                let (w, s, x) = (n(0)?, n(1)?, x.clone());
                View::array(n(3)?, move |i| {
                    let (x, start) = (x.clone(), i.times(s));
                    Ok(View::array(w, move |j| x.at(&start.add(j))))
                })
            }
            Op::Pad(mode) => {
                let (l, len, x, mode) = (n(0)?, n(1)?, x.clone(), *mode);
                let z = match mode {
                    PadMode::Constant => Some(self.apply(arg(0), &View::Unit)?),
                    PadMode::Clamp | PadMode::Wrap | PadMode::Mirror => None,
                };
                View::array(n(2)?, move |i| {
                    let j = i.plus(-l);
                    let inside = Guard::not_negative(&j).and(&Guard::less(&j, &len.into()));
                    let outside = match (mode, &z) {
                        (PadMode::Constant, Some(z)) => z.clone(),
                        (PadMode::Constant | PadMode::Clamp, _) => {
                            x.at(&j.lesser(&Index::from(len - 1)).greater(&Index::from(0)))?
                        }
                        (PadMode::Wrap, _) => x.at(&j.rem(len.max(1)))?,
                        (PadMode::Mirror, _) => {
                            // The pattern x0 .. xl xl .. x0 repeats every 2 * len.
                            let r = j.rem(len.max(1).saturating_mul(2));
                            let back = r.times(-1).plus(len.saturating_mul(2) - 1);
                            x.at(&r.lesser(&back))?
                        }
                    };
                    guarded(&inside, x.at(&j)?, outside)
                })
            }
            Op::Gather => {
                let (a, is) = (x.fst()?, x.snd()?);
                let checked = self.checked;
                let facts = Facts::default();
                let Shape::Array(m, shape) = self.shape(&t.ty().cod)? else {
                    return ill_formed("an array of elements");
                };
                View::array(m, move |i| at_value(&a, &shape, &is.at(i)?.expr()?, &facts, checked))
            }
            Op::Index => {
                let (a, i, shape) = (x.fst()?, x.snd()?.expr()?, self.shape(&t.ty().cod)?);
                at_value(&a, &shape, &i, &Facts::default(), self.checked)?
            }
            Op::Iota => {
                let Some(Ty::Scalar(s)) = t.tys().get(1).cloned() else {
                    return ill_formed("an integer type");
                };
                View::array(n(0)?, move |i| Ok(View::Elem(Expr::Index(i.clone(), s))))
            }
            Op::Replicate => {
                let x = x.clone();
                View::array(n(0)?, move |_| Ok(x.clone()))
            }
            Op::Concat => {
                let (len, a, b) = (n(0)?, x.fst()?, x.snd()?);
                View::array(n(2)?, move |i| {
                    guarded(&Guard::less(i, &len.into()), a.at(i)?, b.at(&i.plus(-len))?)
                })
            }
            Op::Reverse => {
                let (len, x) = (n(0)?, x.clone());
                View::array(len, move |i| x.at(&i.times(-1).plus(len - 1)))
            }
            Op::Rotate => {
                let (len, x) = (n(1)?, x.clone());
                let k = n(0)?.rem_euclid(len.max(1));
                View::array(len, move |i| {
                    let j = i.plus(k);
                    guarded(&Guard::less(&j, &len.into()), x.at(&j)?, x.at(&j.plus(-len))?)
                })
            }
            Op::The => x.at(&Index::from(0))?,
            Op::Wrap => {
                let x = x.clone();
                View::array(1, move |_| Ok(x.clone()))
            }
            // A few elements are combined where the result is read, by the statements that the reader emits.
            Op::Reduce(_) if is_short(t) && self.inside.borrow().is_some() => {
                let mut sum = self.apply(arg(1), &View::Unit)?;
                for k in 0..n(0)? {
                    sum = self.apply(arg(0), &View::pair(sum, x.at(&Index::from(k))?))?;
                }
                sum
            }
            Op::Cond
            | Op::Reduce(_)
            | Op::ReducePart
            | Op::ReduceLcl
            | Op::Scan(_)
            | Op::ScanLcl(_)
            | Op::ToMem(_)
            | Op::Scatter
            | Op::Histogram
            | Op::CountingSort
            | Op::Chunked
            | Op::Packed
            | Op::Fold
            | Op::While
            | Op::Tiled(_)
            | Op::TiledRows
            | Op::Turned
            | Op::Blocked(_)
            | Op::BlockedRows
            | Op::Spread(_)
            | Op::SpreadRows
            | Op::SumProducts
            | Op::Sliced
            | Op::Meta(_) => return ill_formed("a pattern that only rearranges"),
        })
    }
}
