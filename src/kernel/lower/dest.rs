//! Destinations: the places that values are stored to.
//!
//! The inverse of a view turns a destination of the view's result into a destination of its
//! argument, so that a stage stores its result directly in the final place.

use super::view::{Shape, Slot, Step, Stop, View, Views, advance, chosen, stop};
use crate::calculus::term::{Op, Term};
use crate::diag::Code;
use crate::kernel::ir::facts::{Facts, Guard};
use crate::kernel::ir::index::Index;
use crate::kernel::ir::{ElemTy, Mem, Reg};
use std::rc::Rc;

type At = dyn Fn(&Index) -> Step<Dest>;

/// An array of destinations as a function of its index.
#[derive(Clone)]
pub struct ArrayDest {
    at: Rc<At>,
}

/// The place that a value is stored to.
#[derive(Clone)]
pub enum Dest {
    /// Discards the value, which is not needed.
    Nowhere,
    /// Consecutive scalars of a memory.
    Mem(Mem, ElemTy, Index),
    /// A register.
    Reg(Reg),
    /// One lane of a register. The lanes of a register can only be stored to all at once.
    Lane(Reg, usize),
    /// Two components.
    Pair(Rc<Dest>, Rc<Dest>),
    /// An array.
    Array(ArrayDest),
    /// Stores only if the guard holds.
    Guarded(Guard, Rc<Dest>),
    /// The lanes of a vector, each stored to a place of its own.
    Lanes(Vec<Dest>),
    /// Stores to the first destination if the guard holds, else to the second.
    Either(Guard, Rc<Dest>, Rc<Dest>),
    /// Stores a value at a computed place.
    Placed(Rc<Placed>),
}

/// A destination at a computed place. The work-items compute the place or the value in parallel; the other is read then.
#[derive(Clone)]
pub struct Placed {
    /// The array.
    pub all: Dest,
    /// Its length. Places outside it are skipped.
    pub n: i64,
    /// The shape of its elements.
    pub elem: Shape,
    /// Whether the place is what is stored here, and the values are read.
    pub by_place: bool,
    /// The values, or the places.
    pub others: View,
    /// The number of the value and its place.
    pub index: Index,
}

impl Dest {
    /// An array.
    pub fn array(at: impl Fn(&Index) -> Step<Dest> + 'static) -> Dest {
        Dest::Array(ArrayDest { at: Rc::new(at) })
    }

    /// Two components.
    pub fn pair(a: Dest, b: Dest) -> Dest {
        Dest::Pair(Rc::new(a), Rc::new(b))
    }

    fn guarded(g: Guard, d: Dest) -> Dest {
        match Facts::default().decide(&g) {
            Some(true) => d,
            Some(false) => Dest::Nowhere,
            None => Dest::Guarded(g, Rc::new(d)),
        }
    }

    /// Element `i` of an array.
    pub fn at(&self, i: &Index) -> Step<Dest> {
        match self {
            Dest::Nowhere => Ok(Dest::Nowhere),
            Dest::Array(a) => (a.at)(i),
            Dest::Guarded(g, d) => Ok(Dest::guarded(g.clone(), d.at(i)?)),
            _ => stop(Code::Internal, "code generation expected an array to store to"),
        }
    }

    /// The first component of a pair, or the second if `second` is set.
    pub fn component(&self, second: bool) -> Step<Dest> {
        match self {
            Dest::Nowhere => Ok(Dest::Nowhere),
            Dest::Pair(a, b) => Ok((**if second { b } else { a }).clone()),
            Dest::Guarded(g, d) => Ok(Dest::guarded(g.clone(), d.component(second)?)),
            Dest::Either(g, a, b) => Ok(Dest::Either(
                g.clone(),
                Rc::new(a.component(second)?),
                Rc::new(b.component(second)?),
            )),
            Dest::Lanes(ds) => {
                Dest::of_lanes(ds.iter().map(|d| d.component(second)).collect::<Step<Vec<_>>>()?)
            }
            Dest::Mem(..) | Dest::Reg(_) | Dest::Lane(..) | Dest::Array(_) | Dest::Placed(_) => {
                stop(Code::Internal, "code generation expected a pair to store to")
            }
        }
    }

    fn lane(&self, k: &Index) -> Step<Dest> {
        match self {
            Dest::Nowhere => Ok(Dest::Nowhere),
            Dest::Mem(m, t, i) => Ok(Dest::Mem(*m, ElemTy::scalar(t.scalar), i.add(k))),
            Dest::Pair(a, b) => Ok(Dest::pair(a.lane(k)?, b.lane(k)?)),
            Dest::Guarded(g, d) => Ok(Dest::guarded(g.clone(), d.lane(k)?)),
            Dest::Reg(r) if r.ty.width == 1 && k.as_constant() == Some(0) => Ok(self.clone()),
            Dest::Reg(r) if r.ty.width > 1 => match k.as_constant().map(usize::try_from) {
                Some(Ok(k)) => Ok(Dest::Lane(r.clone(), k)),
                _ => Err(Stop::Dynamic(k.clone())),
            },
            Dest::Array(a) => {
                let (a, k) = (a.clone(), k.clone());
                Ok(Dest::array(move |i| (a.at)(i)?.lane(&k)))
            }
            Dest::Reg(_)
            | Dest::Lane(..)
            | Dest::Lanes(_)
            | Dest::Either(..)
            | Dest::Placed(..) => {
                stop(Code::KernelLimit, "single lanes of a vector in registers cannot be stored to")
            }
        }
    }

    /// Returns the destination of a vector whose lanes go to these places.
    fn of_lanes(lanes: Vec<Dest>) -> Step<Dest> {
        let Some(first) = lanes.first() else {
            return Ok(Dest::Nowhere);
        };
        if lanes.iter().any(|d| matches!(d, Dest::Guarded(..))) {
            return Dest::guarded_lanes(lanes);
        }
        match first {
            Dest::Pair(..) => {
                let side = |second| {
                    Dest::of_lanes(
                        lanes.iter().map(|d| d.component(second)).collect::<Step<Vec<_>>>()?,
                    )
                };
                return Ok(Dest::pair(side(false)?, side(true)?));
            }
            Dest::Mem(mem, t, start) => {
                let consecutive = lanes.iter().zip(0i64..).all(|(d, k)| match d {
                    Dest::Mem(m, _, i) => m == mem && *i == start.plus(k),
                    _ => false,
                });
                if consecutive {
                    let ty = ElemTy { width: lanes.len(), ..*t };
                    return Ok(Dest::Mem(*mem, ty, start.clone()));
                }
            }
            Dest::Lane(r, _) => {
                let whole = lanes.len() == r.ty.width
                    && lanes
                        .iter()
                        .enumerate()
                        .all(|(k, d)| matches!(d, Dest::Lane(x, j) if x.id == r.id && *j == k));
                if whole {
                    return Ok(Dest::Reg(r.clone()));
                }
            }
            Dest::Array(_) => {
                return Ok(Dest::array(move |i| {
                    Dest::of_lanes(lanes.iter().map(|d| d.at(i)).collect::<Step<Vec<_>>>()?)
                }));
            }
            Dest::Nowhere
            | Dest::Reg(_)
            | Dest::Guarded(..)
            | Dest::Lanes(_)
            | Dest::Either(..)
            | Dest::Placed(..) => {}
        }
        Ok(Dest::Lanes(lanes))
    }

    /// Returns a destination that stores one vector if the guards of all lanes hold, and otherwise
    /// lane by lane if any of them holds.
    fn guarded_lanes(lanes: Vec<Dest>) -> Step<Dest> {
        let (mut all, mut any) = (Guard::default(), None::<Option<Guard>>);
        let mut inside = vec![];
        for d in &lanes {
            match d {
                Dest::Guarded(g, d) => {
                    all = all.and(g);
                    any = Some(match any {
                        None => Some(g.clone()),
                        Some(weakest) => weakest.and_then(|w| w.or(g)),
                    });
                    inside.push((**d).clone());
                }
                // This lane is stored unconditionally, so there is no common guard.
                d => {
                    any = Some(None);
                    inside.push(d.clone());
                }
            }
        }
        let fast = Rc::new(Dest::of_lanes(inside)?);
        Ok(match any.flatten() {
            Some(any) if any == all => Dest::Guarded(all, fast),
            Some(any) => {
                let slow = Rc::new(Dest::Lanes(lanes));
                Dest::Guarded(any, Rc::new(Dest::Either(all, fast, slow)))
            }
            None => Dest::Either(all, fast, Rc::new(Dest::Lanes(lanes))),
        })
    }

    /// The memory that starts at these slots, one slot for each component.
    pub fn of_slots(shape: &Shape, slots: &[Slot]) -> Step<Dest> {
        Ok(match shape {
            Shape::Unit => Dest::Nowhere,
            Shape::Elem(t) => match slots {
                [s] => Dest::Mem(s.mem, *t, s.index.clone()),
                _ => return stop(Code::Internal, "a destination without its memory"),
            },
            Shape::Pair(a, b) => {
                let (x, y) = slots.split_at(a.components().len().min(slots.len()));
                Dest::pair(Dest::of_slots(a, x)?, Dest::of_slots(b, y)?)
            }
            Shape::Array(_, t) => {
                let (t, slots) = ((**t).clone(), slots.to_vec());
                Dest::array(move |i| Dest::of_slots(&t, &advance(&t, &slots, i)))
            }
        })
    }

    /// These registers, one for each scalar or vector of the shape, in order.
    pub fn of_regs(shape: &Shape, regs: &[Reg]) -> Step<Dest> {
        Ok(match shape {
            Shape::Unit => Dest::Nowhere,
            Shape::Elem(_) => match regs {
                [r] => Dest::Reg(r.clone()),
                _ => return stop(Code::Internal, "a destination without its register"),
            },
            Shape::Pair(a, b) => {
                let k = usize::try_from(a.elems()).unwrap_or(0);
                let (x, y) = regs.split_at(k.min(regs.len()));
                Dest::pair(Dest::of_regs(a, x)?, Dest::of_regs(b, y)?)
            }
            Shape::Array(_, t) => {
                let (t, regs) = ((**t).clone(), regs.to_vec());
                let each = usize::try_from(t.elems()).unwrap_or(usize::MAX);
                Dest::array(move |i| {
                    chosen(&regs, each, i, &|r| Dest::of_regs(&t, r), &|g, a, b| {
                        Ok(Dest::either(g, a, b))
                    })
                })
            }
        })
    }

    /// `a` where the guard holds, else `b`, which have the same type.
    fn either(g: &Guard, a: Dest, b: Dest) -> Dest {
        match (a, b) {
            (Dest::Nowhere, Dest::Nowhere) => Dest::Nowhere,
            (Dest::Pair(a1, a2), Dest::Pair(b1, b2)) => Dest::pair(
                Dest::either(g, (*a1).clone(), (*b1).clone()),
                Dest::either(g, (*a2).clone(), (*b2).clone()),
            ),
            (Dest::Array(a), Dest::Array(b)) => {
                let g = g.clone();
                Dest::array(move |i| Ok(Dest::either(&g, (a.at)(i)?, (b.at)(i)?)))
            }
            (a, b) => Dest::Either(g.clone(), Rc::new(a), Rc::new(b)),
        }
    }
}

/// Returns the destination of the argument of a term that only arranges the components of pairs, given the destination of its
/// result. `None` if it does anything else, or needs a component twice.
pub fn unarranged(t: &Term, d: &Dest) -> Step<Option<Dest>> {
    Ok(match (t.op(), t.args()) {
        (Op::Id, _) => Some(d.clone()),
        (Op::Fst, _) => Some(Dest::pair(d.clone(), Dest::Nowhere)),
        (Op::Snd, _) => Some(Dest::pair(Dest::Nowhere, d.clone())),
        (Op::Compose, [f, g]) => match unarranged(f, d)? {
            Some(d) => unarranged(g, &d)?,
            None => None,
        },
        (Op::Fork | Op::Bimap, [f, g]) => {
            let a = unarranged(f, &d.component(false)?)?;
            let b = unarranged(g, &d.component(true)?)?;
            match (t.op(), a.zip(b)) {
                (Op::Fork, Some((a, b))) => merged(&a, &b),
                (_, both) => both.map(|(a, b)| Dest::pair(a, b)),
            }
        }
        _ => None,
    })
}

/// Returns the destination of a value of which each component has one of two destinations.
pub fn merged(a: &Dest, b: &Dest) -> Option<Dest> {
    match (a, b) {
        (Dest::Nowhere, d) | (d, Dest::Nowhere) => Some(d.clone()),
        (Dest::Pair(a, b), Dest::Pair(c, d)) => Some(Dest::pair(merged(a, c)?, merged(b, d)?)),
        _ => None,
    }
}

/// Returns the destination of the argument of an invertible view ([`Term::is_invertible`]), given
/// the destination of its result.
pub fn inverse(views: &Rc<Views>, t: &Term, d: &Dest) -> Step<Dest> {
    let n = |k: usize| match t.sizes().get(k) {
        Some(s) => views.size(s),
        None => stop(Code::Internal, "a view without its size"),
    };
    let d = d.clone();
    Ok(match t.op() {
        Op::Id | Op::Reorder => d,
        Op::Compose => inverse(views, &t.args()[1], &inverse(views, &t.args()[0], &d)?)?,
        Op::Bimap => Dest::pair(
            inverse(views, &t.args()[0], &d.component(false)?)?,
            inverse(views, &t.args()[1], &d.component(true)?)?,
        ),
        Op::Map(_) => {
            let (views, f) = (views.clone(), t.args()[0].clone());
            Dest::array(move |i| inverse(&views, &f, &d.at(i)?))
        }
        Op::Fst => Dest::pair(d, Dest::Nowhere),
        Op::Snd => Dest::pair(Dest::Nowhere, d),
        Op::Zip => {
            let (a, b) = (d.clone(), d);
            Dest::pair(
                Dest::array(move |i| a.at(i)?.component(false)),
                Dest::array(move |i| b.at(i)?.component(true)),
            )
        }
        Op::Unzip => {
            let (a, b) = (d.component(false)?, d.component(true)?);
            Dest::array(move |i| Ok(Dest::pair(a.at(i)?, b.at(i)?)))
        }
        Op::Split => {
            let k = n(0)?;
            Dest::array(move |i| {
                let (q, r) = i.div_mod(k);
                d.at(&q)?.at(&r)
            })
        }
        Op::Join => {
            let k = n(0)?;
            Dest::array(move |i| {
                let (d, start) = (d.clone(), i.times(k));
                Ok(Dest::array(move |j| d.at(&start.add(j))))
            })
        }
        Op::Transpose => Dest::array(move |i| {
            let (d, i) = (d.clone(), i.clone());
            Ok(Dest::array(move |j| d.at(j)?.at(&i)))
        }),
        Op::AsScalar => {
            let w = n(0)?;
            Dest::array(move |i| {
                let lanes = (0..w).map(|l| d.at(&i.times(w).plus(l))).collect::<Step<Vec<_>>>()?;
                Dest::of_lanes(lanes)
            })
        }
        Op::AsVector => {
            let w = n(0)?;
            Dest::array(move |i| {
                let (q, r) = i.div_mod(w);
                d.at(&q)?.lane(&r)
            })
        }
        Op::Stride => {
            let (s, m) = (n(0)?, n(1)?);
            Dest::array(move |i| {
                let (q, r) = i.div_mod(s);
                d.at(&r.times(m).add(&q))
            })
        }
        Op::Take => {
            let k = n(0)?;
            Dest::array(move |i| Ok(Dest::guarded(Guard::less(i, &k.into()), d.at(i)?)))
        }
        Op::Drop => {
            let skip = n(1)? - n(0)?;
            Dest::array(move |i| {
                let j = i.plus(-skip);
                Ok(Dest::guarded(Guard::not_negative(&j), d.at(&j)?))
            })
        }
        Op::Concat => {
            let (first, e) = (n(0)?, d.clone());
            Dest::pair(Dest::array(move |i| d.at(i)), Dest::array(move |i| e.at(&i.plus(first))))
        }
        Op::Reverse => {
            let len = n(0)?;
            Dest::array(move |i| d.at(&i.times(-1).plus(len - 1)))
        }
        Op::Rotate => {
            let len = n(1)?;
            let k = n(0)?.rem_euclid(len.max(1));
            Dest::array(move |i| d.at(&i.plus(len - k).rem(len)))
        }
        Op::The => Dest::array(move |_| Ok(d.clone())),
        Op::Wrap => d.at(&Index::from(0))?,
        op => return stop(Code::Internal, format!("{op:?} has no inverse")),
    })
}
