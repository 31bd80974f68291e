//! Copies of arrays by kernels of their own.

use super::dest::Dest;
use super::lowerer::{Body, Lowerer};
use super::view::{Shape, Step, View};
use crate::calculus::term::{MapKind, Term};
use crate::calculus::ty::Ty;
use crate::kernel::ir::index::Index;

/// Work-items that copy an array, for each compute unit, where the host's choices may leave them without work.
const COPIERS_OF_UNIT: i64 = 2048;

/// Fewest elements of a row that has work-groups of its own.
const LONG_ROW: i64 = 256;

impl Lowerer {
    /// Emits a kernel that copies a view. Each work-item copies an element.
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
            Shape::Array(n, t) => {
                let id = Term::id(&Ty::Unit);
                self.in_kernel(&id, |me| match &**t {
                    Shape::Array(m, inner)
                        if *m >= LONG_ROW && !matches!(**inner, Shape::Array(..)) =>
                    {
                        me.spread(MapKind::Glb(1), *n, true, &mut |me, i| {
                            let (v, d) = (v.at(i)?, dest.at(i)?);
                            me.spread(MapKind::Glb(0), *m, false, &mut |me, j| {
                                me.store(&v.at(j)?, &d.at(j)?, inner)
                            })
                        })
                    }
                    _ => me.copy_elements(v, dest, shape),
                })
            }
        }
    }

    /// Copies the elements of an array of any rank in one dimension, so that neighbouring work-items copy neighbouring elements.
    fn copy_elements(&mut self, v: &View, dest: &Dest, shape: &Shape) -> Step<()> {
        let (mut lengths, mut element) = (vec![], shape);
        while let Shape::Array(n, t) = element {
            lengths.push(*n);
            element = t;
        }
        let total = lengths.iter().fold(1, |total: i64, n| total.saturating_mul(*n));
        let items = self.copiers(total);
        self.spread(MapKind::Glb(0), items, false, &mut |me, i| {
            me.strided_items(i, total, items, &mut |me, j| {
                let (mut places, mut rest) = (vec![], j.clone());
                for n in lengths.iter().skip(1).rev() {
                    let (above, place) = rest.div_mod(*n);
                    places.push(place);
                    rest = above;
                }
                places.push(rest);
                let (mut v, mut d) = (v.clone(), dest.clone());
                for place in places.iter().rev() {
                    (v, d) = (v.at(place)?, d.at(place)?);
                }
                me.store(&v, &d, element)
            })
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
