//! Histograms whose work-items take several neighbouring values each.
//!
//! A work-item loads all of its values before it combines the first one, so that several loads are in flight: atomic operations
//! keep loads that follow them back. Then it combines the values of a run with the same bin in registers, and changes the bin
//! once for each run. So bins in order (times, keys of sorted rows) and few bins take few atomic operations.
//!
//! If the bin depends on the place of the value, as with the elements of rows that are summed, then neighbouring values have different bins.
//! Neighbouring work-items take these, so that they change neighbouring bins at a time.

use super::interleave::side_by_side;
use super::leaf::{self, Emit};
use super::lowerer::Lowerer;
use super::memory::Storage;
use super::view::{Shape, Step, View};
use crate::calculus::term::Term;
use crate::kernel::ir::index::Index;
use crate::kernel::ir::walk::{parts, statements};
use crate::kernel::ir::{ElemTy, Expr, Lanes, Stmt};
use crate::lang::typed::ScalarOp;
use crate::lang::types::ScalarType;

/// Most neighbouring values of a work-item.
const MOST: i64 = 8;

/// Work-items of each compute unit that should have such values, on a device with local memory and elsewhere.
const ITEMS_OF_UNIT: i64 = 2048;
const ITEMS_OF_CORE: i64 = 64;

/// Most statements that compute a value and its bin, for each of a work-item's values.
const STATEMENTS: usize = 16;

/// The values of a histogram.
pub struct Binned<'a> {
    /// Numbers of bins, and values.
    pub places: &'a View,
    pub values: &'a View,
    /// Number of values, and of bins.
    pub n: i64,
    pub m: i64,
    pub elem: &'a Shape,
    pub op: &'a [Term],
    /// Number of neighbouring values that a work-item takes.
    pub length: i64,
}

/// The bins of a work-item.
pub struct Own<'a> {
    /// Combines a value with a bin.
    pub change: &'a dyn Fn(&mut Lowerer, &Index, &View, Lanes) -> Step<()>,
    /// Whether neighbouring work-items have the same bins.
    pub lanes: Lanes,
}

impl Lowerer {
    /// Number of neighbouring values that a work-item takes, of `n` values.
    pub fn values_of_item(&self, n: i64) -> i64 {
        let items = match self.options.device.shares_local_memory() {
            true => ITEMS_OF_UNIT,
            false => ITEMS_OF_CORE,
        };
        let least = self.compute_units() * items;
        let mut length = MOST;
        while length > 1 && n / length < least {
            length /= 2;
        }
        length
    }

    /// Combines part `c` of the values, if there is one.
    pub fn combine_part(&mut self, h: &Binned, c: &Index, own: &Own) -> Step<()> {
        let whole = Index::from(h.n / h.length);
        self.where_less(c, &whole, &mut |me| match h.length {
            1 => me.combine_one(h, c, own),
            _ => me.combine_whole_part(h, c, own),
        })
    }

    /// Combines the values behind the last part, of which work-item `w` of all has one at most.
    pub fn combine_rest(&mut self, h: &Binned, w: &Index, own: &Own) -> Step<()> {
        let rest = h.n % h.length;
        if rest == 0 {
            return Ok(());
        }
        let first = h.n - rest;
        self.where_less(w, &Index::from(rest), &mut |me| me.combine_one(h, &w.plus(first), own))
    }

    fn combine_one(&mut self, h: &Binned, j: &Index, own: &Own) -> Step<()> {
        self.at_place(h.places, j, h.m, &mut |me, i| {
            let value = me.emitted(|| h.values.at(j))?;
            (own.change)(me, i, &value, own.lanes)
        })
    }

    fn combine_whole_part(&mut self, h: &Binned, c: &Index, own: &Own) -> Step<()> {
        let (length, mut taken, mut copies) = (h.length, vec![], vec![]);
        if self.numbers_of_place(h, c)? != self.numbers_of_place(h, &c.plus(1))? {
            return self.combine_apart(h, c, own);
        }
        for e in 0..length {
            self.begin();
            let value = self.loaded(h, &c.times(length).plus(e));
            copies.push(self.end());
            taken.push(value?);
            // Long functions are computed in a loop.
            if statements(&copies[0]) > STATEMENTS {
                return self.combine_apart(h, c, own);
            }
        }
        side_by_side(copies).into_iter().try_for_each(|s| self.put(s))?;
        self.combine_taken(h, &taken, own)
    }

    /// Combines the values of part `c` one after the other. Neighbouring work-items take neighbouring values.
    fn combine_apart(&mut self, h: &Binned, c: &Index, own: &Own) -> Step<()> {
        let step = h.n / h.length;
        self.repeat(h.length, false, &mut |me, e| me.combine_one(h, &e.times(step).add(c), own))
    }

    /// Returns the indices from which the bin of a value is computed, but for those of loads: what is loaded is taken to be equal.
    fn numbers_of_place(&mut self, h: &Binned, j: &Index) -> Step<Vec<Index>> {
        self.begin();
        let place = self.emitted(|| h.places.at(j));
        let code = self.end();
        let mut found = vec![];
        for s in &code {
            s.visit(&mut |s| s.exprs(&mut |e| numbers(e, &mut found)));
        }
        numbers(&place?.expr()?, &mut found);
        Ok(found)
    }

    /// Returns the bin and the value with a number in registers.
    fn loaded(&mut self, h: &Binned, j: &Index) -> Step<(View, View)> {
        let place = self.emitted(|| h.places.at(j))?;
        let place = leaf::bind(&place, self)?;
        let value = self.emitted(|| h.values.at(j))?;
        Ok((place, leaf::bind(&value, self)?))
    }

    fn combine_taken(&mut self, h: &Binned, taken: &[(View, View)], own: &Own) -> Step<()> {
        let Some(((place, value), rest)) = taken.split_first() else { return Ok(()) };
        let bin = Shape::Elem(place.expr()?.ty());
        let (at, sum) = (self.from(place, &bin)?, self.from(value, h.elem)?);
        for (place, value) in rest {
            let operands = vec![place.expr()?, at.view.expr()?];
            let same = Expr::Op(ScalarOp::Eq, ElemTy::scalar(ScalarType::Bool), operands);
            self.begin();
            let joined = self.join(h, &sum, value);
            let same_bin = self.end();
            joined?;
            self.begin();
            // Neighbouring work-items are at the ends of runs in different steps.
            let apart = Own { lanes: Lanes::Apart, ..*own };
            let changed = self.change_bin(h, &at.view, &sum.view, &apart);
            let next = changed
                .and_then(|()| self.store(value, &sum.dest, h.elem))
                .and_then(|()| self.store(place, &at.dest, &bin));
            let next_bin = self.end();
            next?;
            self.put(Stmt::Branch(same, same_bin, next_bin))?;
        }
        self.change_bin(h, &at.view, &sum.view, own)
    }

    fn join(&mut self, h: &Binned, sum: &Storage, value: &View) -> Step<()> {
        let pair = View::pair(sum.view.clone(), value.clone());
        self.update(h.op, &pair, &sum.dest, &sum.owned, h.elem)
    }

    fn change_bin(&mut self, h: &Binned, place: &View, value: &View, own: &Own) -> Step<()> {
        self.where_placed(place, h.m, &mut |me, i| (own.change)(me, i, value, own.lanes))
    }
}

/// Adds the indices in an expression that are not those of loads, with the same number in place of all data.
fn numbers(e: &Expr, found: &mut Vec<Index>) {
    if matches!(e, Expr::Load(..)) {
        return;
    }
    if let Expr::Index(i, _) = e {
        found.push(i.map_data(&|e| Expr::Arg(0, e.ty().scalar)));
    }
    parts(e, &mut |part, _| numbers(part, found));
}
