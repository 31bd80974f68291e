//! Copies of arrays by kernels of their own.

use super::dest::Dest;
use super::lowerer::{Body, Lowerer};
use super::view::{Shape, Step, View};
use crate::calculus::term::{MapKind, Term};
use crate::calculus::ty::Ty;
use crate::kernel::ir::index::Index;
use crate::kernel::ir::{Expr, Mem};
use crate::lang::types::ScalarType;

/// Work-items that copy an array, for each compute unit, where the host's choices may leave them without work.
const COPIERS_OF_UNIT: i64 = 2048;

/// Fewest elements of a row that has work-groups of its own.
const LONG_ROW: i64 = 256;

/// What is copied, and where, by the number of the element.
type Elements<'a> = (&'a dyn Fn(&Index) -> Step<View>, &'a dyn Fn(&Index) -> Step<Dest>);

/// An array of any rank as one of its elements.
pub struct Flat<'a> {
    lengths: Vec<i64>,
    pub element: &'a Shape,
}

impl<'a> Flat<'a> {
    pub fn of(shape: &'a Shape) -> Flat<'a> {
        let (mut lengths, mut element) = (vec![], shape);
        while let Shape::Array(n, t) = element {
            lengths.push(*n);
            element = t;
        }
        Flat { lengths, element }
    }

    /// Number of elements.
    pub fn len(&self) -> i64 {
        self.lengths.iter().fold(1, |total: i64, n| total.saturating_mul(*n))
    }

    /// Indices of element `j`, the outermost first.
    fn places(&self, j: &Index) -> Vec<Index> {
        let (mut places, mut rest) = (vec![], j.clone());
        for n in self.lengths.iter().skip(1).rev() {
            let (above, place) = rest.div_mod(*n);
            places.push(place);
            rest = above;
        }
        places.push(rest);
        places.reverse();
        places
    }

    pub fn element(&self, v: &View, j: &Index) -> Step<View> {
        self.places(j).iter().try_fold(v.clone(), |v, i| v.at(i))
    }

    pub fn place(&self, d: &Dest, j: &Index) -> Step<Dest> {
        self.places(j).iter().try_fold(d.clone(), |d, i| d.at(i))
    }
}

impl Lowerer {
    /// Emits a kernel that copies a view.
    pub fn copy_on_host(&mut self, v: &View, dest: &Dest, shape: &Shape) -> Step<()> {
        self.stage_named("copy", |me| me.copies_on_host(v, dest, shape))
    }

    fn copies_on_host(&mut self, v: &View, dest: &Dest, shape: &Shape) -> Step<()> {
        match shape {
            Shape::Unit => Ok(()),
            Shape::Elem(_) => self.single(|me| me.store(v, dest, shape)),
            Shape::Pair(a, b) => {
                self.copies_on_host(&v.fst()?, &dest.component(false)?, a)?;
                self.copies_on_host(&v.snd()?, &dest.component(true)?, b)
            }
            Shape::Array(..) => {
                let id = Term::id(&Ty::Unit);
                self.in_kernel(&id, |me| me.copy_elements(v, dest, shape))
            }
        }
    }

    /// Copies the elements of an array of any rank in one dimension, so that neighbouring work-items copy neighbouring elements.
    /// Where these do not lie beside each other in memory, long rows have work-groups of their own, which need no division.
    fn copy_elements(&mut self, v: &View, dest: &Dest, shape: &Shape) -> Step<()> {
        let flat = Flat::of(shape);
        let (total, element) = (flat.len(), flat.element);
        let (from, to) = (|j: &Index| flat.element(v, j), |j: &Index| flat.place(dest, j));
        let run = self.run_of(total, element, (&from, &to))?;
        if let [n, m] = flat.lengths[..]
            && m >= LONG_ROW
            && run == 1
        {
            return self.spread(MapKind::Glb(1), n, true, &mut |me, i| {
                let (v, d) = (v.at(i)?, dest.at(i)?);
                let run = me.run_of(m, element, (&|j| v.at(j), &|j| d.at(j)))?;
                let items = me.items_of(m, run, n, element);
                me.spread(MapKind::Glb(0), items, false, &mut |me, i| {
                    me.elements_of(i, (m, run, items), &mut |me, j| {
                        me.store(&v.at(j)?, &d.at(j)?, element)
                    })
                })
            });
        }
        let items = self.copiers(self.items_of(total, run, 1, element));
        self.spread(MapKind::Glb(0), items, false, &mut |me, i| {
            me.elements_of(i, (total, run, items), &mut |me, j| {
                me.store(&from(j)?, &to(j)?, element)
            })
        })
    }

    /// Number of elements that a work-item of a GPU copies as a vector: 1 if neighbouring elements are not neighbours in memory, or
    /// do not begin at multiples of the vector's length.
    pub fn run_of(&mut self, n: i64, element: &Shape, at: Elements) -> Step<i64> {
        let mut run = self.most_in_vector(element);
        while run > 1 {
            if n >= run && self.is_run(n, run, element, at)? {
                return Ok(run);
            }
            run /= 2;
        }
        Ok(1)
    }

    fn is_run(&mut self, n: i64, run: i64, element: &Shape, at: Elements) -> Step<bool> {
        let first = self.any(n / run).times(run);
        // What needs statements is no plain copy.
        let mut elements = vec![];
        for k in 0..run {
            let place = first.plus(k);
            let (value, statements) = self.collected(|| (at.0)(&place));
            if !statements.is_empty() {
                return Ok(false);
            }
            elements.push((value?, (at.1)(&place)?));
        }
        is_run(&elements, element, run)
    }

    /// Scalars of the widest access; of a pair, those of the widest component.
    fn most_in_vector(&self, element: &Shape) -> i64 {
        let widest = element.components().iter().map(|(t, _)| t.bytes()).max().unwrap_or(0);
        i64::try_from(self.options.device.access_bytes / widest.max(1)).unwrap_or(1).clamp(1, 16)
    }

    /// Number of work-items that copy `n` elements, in runs or, if there are enough for all compute units, several each. A group of work-items
    /// that copy one element each takes longer to start than to run. There are `rows` such copies.
    pub fn items_of(&self, n: i64, run: i64, rows: i64, element: &Shape) -> i64 {
        let several = self.most_in_vector(element);
        let items = |each: i64| (n / each + i64::from(n % each != 0)).max(1);
        let enough = self.compute_units().saturating_mul(COPIERS_OF_UNIT);
        match run == 1 && items(several).saturating_mul(rows) >= enough {
            true => (items(several) + 31) / 32 * 32,
            false => items(run),
        }
        .min(n.max(1))
    }

    /// Emits the work of one of `items` work-items that go through `n` elements: runs of neighbours, and what is left by the last
    /// one, or single elements at a distance.
    pub fn elements_of(
        &mut self,
        i: &Index,
        (n, run, items): (i64, i64, i64),
        body: Body,
    ) -> Step<()> {
        if run == 1 {
            return self.strided_items(i, n, items, body);
        }
        let (whole, left) = (n / run, n % run);
        self.strided_items(i, whole + i64::from(left > 0), items, &mut |me, r| {
            let first = r.times(run);
            me.where_less(r, &Index::from(whole), &mut |me| {
                (0..run).try_for_each(|k| body(me, &first.plus(k)))
            })?;
            match left {
                0 => Ok(()),
                _ => me.where_less(&Index::from(whole - 1), r, &mut |me| {
                    me.repeat(left, false, &mut |me, t| body(me, &first.add(t)))
                }),
            }
        })
    }

    /// Work-items that copy `n` elements. A kernel that may have nothing to do, since the host's choices around it are made
    /// on the device, has no more work-items than a GPU runs at the same time: it takes as long as they take to start.
    fn copiers(&self, n: i64) -> i64 {
        match !self.choices.is_empty() && self.options.device.shares_local_memory() {
            true => n.min(self.compute_units() * COPIERS_OF_UNIT),
            false => n,
        }
    }

    /// Emits the work of one of `items` work-items: elements `i`, `i + items`, ... below `n`.
    fn strided_items(&mut self, i: &Index, n: i64, items: i64, body: Body) -> Step<()> {
        let rounds = n / items + i64::from(n % items != 0);
        self.repeat(rounds, false, &mut |me, t| {
            let j = t.times(items).add(i);
            me.where_less(&j, &Index::from(n), &mut |me| body(me, &j))
        })
    }
}

/// Whether elements that follow each other lie side by side, from a multiple of their number on, and are loaded from such places, or all
/// from one place.
fn is_run(elements: &[(View, Dest)], shape: &Shape, run: i64) -> Step<bool> {
    match shape {
        Shape::Unit => Ok(true),
        Shape::Array(..) => Ok(false),
        Shape::Pair(a, b) => {
            let part = |second: bool, shape: &Shape| {
                let of = |(v, d): &(View, Dest)| {
                    let v = if second { v.snd()? } else { v.fst()? };
                    Ok((v, d.component(second)?))
                };
                is_run(&elements.iter().map(of).collect::<Step<Vec<_>>>()?, shape, run)
            };
            Ok(part(false, a)? && part(true, b)?)
        }
        Shape::Elem(t) => {
            let mut loads: Vec<Vec<(Mem, Index)>> = vec![];
            for (k, (v, d)) in (0i64..).zip(elements) {
                let (Dest::Mem(_, _, first), Dest::Mem(_, _, i)) = (&elements[0].1, d) else {
                    return Ok(matches!(d, Dest::Nowhere));
                };
                if *i != first.plus(k) || !first.is_multiple_of(run) {
                    return Ok(false);
                }
                let mut of = vec![];
                v.expr()?.visit(&mut |e| {
                    if let Expr::Load(m, _, i) = e {
                        of.push((*m, i.clone()));
                    }
                });
                loads.push(of);
            }
            let together = |(k, of): (i64, &Vec<(Mem, Index)>)| {
                let beside = |(a, b): (&(Mem, Index), &(Mem, Index))| {
                    a.0 == b.0 && (a.1 == b.1 || b.1 == a.1.plus(k) && a.1.is_multiple_of(run))
                };
                of.len() == loads[0].len() && loads[0].iter().zip(of).all(beside)
            };
            Ok(t.width == 1 && t.scalar != ScalarType::Bool && (0i64..).zip(&loads).all(together))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::calculus::size::SizeEnv;
    use crate::kernel::lower;
    use crate::kernel::lower::testing::{options, term};

    #[test]
    fn neighbouring_work_items_copy_neighbouring_elements() {
        let text =
            "foldSeq (mapGlb 0 (mapSeq (mapSeq (\\x -> x + 1.0))) . fst) . fork a (iota 100 i32)";
        let term = term(text, &[("a", "[5][7][9]f32")]);
        let program = lower(&term, &SizeEnv::default(), &options()).expect("lowers");
        let copy = program.kernels[0].to_string();
        assert!(copy.contains("i0 in 0 .. 315"), "{copy}");
        assert!(copy.contains("global1[i0] = global0[i0]"), "{copy}");
    }

    #[test]
    fn long_rows_have_groups_of_their_own() {
        let dimensions = |m: usize| {
            let text = "foldSeq (mapGlb 0 (mapSeq (\\x -> x + 1.0)) . fst) . fork a (iota 100 i32)";
            let term = term(text, &[("a", &format!("[70000][{m}]f32"))]);
            let program = lower(&term, &SizeEnv::default(), &options()).expect("lowers");
            program.kernels[0].global.iter().filter(|n| **n > 1).count()
        };
        assert_eq!([dimensions(32), dimensions(1024)], [1, 2]);
    }
}
