//! Double buffering: loads the next block while the current one is used.
//!
//! It applies to a reduction whose steps begin with copies of a block to local memory. Each step
//! loads the next block into registers, uses the block that is in local memory, and then stores the
//! next block to the other half of the memory. A device that copies by itself (`cp.async`) needs no registers: a step begins
//! with the copy of the next block to the other half. Then local memory may hold more than two blocks, which take turns, and each
//! step begins the copy of the last of them. Such a copy may go on for several steps: it arrives at the barrier before its block is used.
//!
//! ```text
//! half 0 = block 0
//! for i in 0..n-1 { registers = block i+1; step with half i%2; half (i+1)%2 = registers }
//! step with the last half
//! ```
//!
//! The loads are in flight during a step, and each step needs a single barrier, which stands before
//! it. That barrier separates the stores of a block from its use. It also separates the use of a
//! half from the stores of the block after next, which fill the same half.

use super::accumulator::Accumulator;
use super::apply::is_pure;
use super::leaf::Emit;
use super::lowerer::{Context, Lowerer};
use super::staging::Tile;
use super::view::{Shape, Step, View, stop};
use crate::calculus::term::{Op, Space, Term};
use crate::diag::Code;
use crate::kernel::analysis::masks::{Masks, most};
use crate::kernel::ir::index::{Index, Var};
use crate::kernel::ir::{Scope, Stmt};
use std::rc::Rc;

/// Most blocks that local memory holds at once.
const MOST: i64 = 4;

/// Fewest blocks of which some may be left out.
const LEAST: i64 = 4;

/// Callback for each block to be copied. It takes the block's source view and shape, and returns
/// the view that is read in its place.
type Copy<'a> = &'a mut dyn FnMut(View, Shape) -> Step<View>;

fn copies_ahead(t: &Term) -> bool {
    *t.op() == Op::ToMem(Space::LocalAhead) || t.args().iter().any(copies_ahead)
}

/// Splits the operator of a reduction into its step and the copies before it. Returns `None` if no
/// block is to be loaded ahead.
pub fn parts(op: &[Term]) -> Option<(&[Term], &[Term])> {
    let at = op.iter().position(copies_ahead).filter(|at| *at > 0)?;
    Some(op.split_at(at))
}

impl Lowerer {
    /// Reduces `n` elements of `x`; `n` must be at least 1.
    pub fn reduce_ahead(
        &mut self,
        (step, copies): (&[Term], &[Term]),
        x: &View,
        n: i64,
        acc: &Accumulator,
        shape: &Shape,
    ) -> Step<()> {
        let arg = |i: &Index| -> Step<View> { Ok(View::pair(acc.view.clone(), x.at(i)?)) };
        // Plan the tiles for the block of an arbitrary iteration, so that one layout suits all
        // blocks.
        let any = self.number(n);
        let blocks = self.blocks_of(copies, &arg(&any)?)?;
        let plans =
            blocks.iter().map(|(v, shape)| self.layout(v, shape)).collect::<Step<Vec<Tile>>>()?;
        let (first, last) = match self.blocks_that_count(step, copies, &arg, n)? {
            Some(bounds) => bounds,
            None => (Index::from(0), Index::from(n - 1)),
        };
        let all = matches!((first.as_constant(), last.as_constant()), (Some(0), Some(_)));
        let alone = plans
            .iter()
            .zip(self.blocks_of(copies, &arg(&first)?)?)
            .map(|(tile, (v, _))| self.copies_ahead(tile, &v))
            .collect::<Step<Vec<bool>>>()?;
        let held = match all && alone.iter().all(|alone| *alone) {
            true => self.blocks_held(&plans, n),
            false => n.min(2),
        };
        let later = (held - 1).max(1);
        let mut tiles = vec![];
        for (tile, alone) in plans.into_iter().zip(&alone) {
            let tile = Rc::new(self.tile_of(tile, held));
            if *alone {
                self.arrives(&tile, usize::try_from(later).unwrap_or(1));
            }
            tiles.push(tile);
        }
        // Copies that go on by themselves arrive at a barrier, also if work-items read only what they have copied.
        let arrive = |me: &mut Lowerer| match alone.contains(&true) {
            true => me.emit(Stmt::Barrier { scope: Scope::Group, local: true, global: false }),
            false => Ok(()),
        };
        for k in 0..later {
            let block = first.plus(k);
            if k > 0 {
                arrive(self)?;
            }
            let sources = self.blocks_of(copies, &arg(&block)?)?;
            for ((tile, alone), (v, _)) in tiles.iter().zip(&alone).zip(sources) {
                match alone {
                    true => self.copy_block_ahead(tile, &v, &block.rem(held))?,
                    false => self.copy_block(tile, &v, &block.rem(held))?,
                }
            }
        }
        let mut each = |me: &mut Lowerer, i: &Index| {
            arrive(me)?;
            let turn = i.rem(held);
            let other = match held {
                2 => Index::from(1).sub(&turn),
                _ => i.plus(later).rem(held),
            };
            let next = me.blocks_of(copies, &arg(&i.plus(later))?)?;
            let mut loaded = vec![];
            for ((tile, alone), (v, _)) in tiles.iter().zip(&alone).zip(&next) {
                match alone {
                    true => me.copy_block_ahead(tile, v, &other)?,
                    false => loaded.push((tile, me.load_block(tile, v)?)),
                }
            }
            me.step(step, &me.staged(copies, &arg(i)?, &tiles, &turn)?, acc, shape)?;
            loaded.iter().try_for_each(|(tile, v)| me.store_block(tile, v, &other))
        };
        match all {
            true => self.repeat(n - later, false, &mut each)?,
            false => self.repeat_within(n - later, (first, last.clone()), &mut each)?,
        }
        let rest = last.plus(1 - later);
        self.repeat(later, false, &mut |me, k| {
            arrive(me)?;
            let i = rest.add(k);
            me.step(step, &me.staged(copies, &arg(&i)?, &tiles, &i.rem(held))?, acc, shape)
        })
    }

    /// Returns how many blocks local memory should hold if all are copied without registers: the copies of a block take longer than
    /// matrix instructions on one block.
    fn blocks_held(&self, tiles: &[Tile], n: i64) -> i64 {
        let most = if self.kernel.fragments { MOST } else { 2 };
        let used = self.kernel.locals.iter().map(|a| a.len.saturating_mul(a.scalar.bytes()));
        let room = self.options.device.local_mem_bytes.saturating_sub(used.sum());
        let bytes =
            |held: i64| tiles.iter().map(|tile| tile.bytes(held)).fold(0, usize::saturating_add);
        (3..=most.min(n)).rev().find(|held| bytes(*held) <= room).unwrap_or(n.min(2))
    }

    /// Returns the first and the last block that change a sum of products, if others are known to be zero: of a triangular or banded
    /// matrix, or of weights behind a mask.
    fn blocks_that_count(
        &mut self,
        step: &[Term],
        copies: &[Term],
        arg: &dyn Fn(&Index) -> Step<View>,
        n: i64,
    ) -> Step<Option<(Index, Index)>> {
        let sums = step.iter().any(|t| t.contains(&Op::SumProducts));
        if !sums || !self.options.relaxed || n < LEAST {
            return Ok(None);
        }
        let block = self.number(n);
        let mut id = 0;
        block.visit_vars(&mut |v| id = v.id);
        let mut conditions = vec![];
        for (v, shape) in self.blocks_of(copies, &arg(&block)?)? {
            let Shape::Array(rows, row) = &shape else { continue };
            let Shape::Array(columns, _) = **row else { continue };
            let (i, j) = (self.number(*rows), self.number(columns));
            let View::Elem(e) = v.at(&i)?.at(&j)? else { continue };
            let Some(known) = Masks::of(&self.program).value(None, &e) else { continue };
            if known.value.as_float() == Some(0.0) {
                let in_block = |v: &Var| [&i, &j].iter().any(|x| x.mentions(v.id));
                conditions.extend(known.unless.iter().filter_map(|c| most(c, &in_block)));
            }
        }
        let (all, zero) = (Index::from(n - 1), Index::from(0));
        let (mut first, mut last) = (zero.clone(), all.clone());
        for (k, rest) in conditions.iter().filter_map(|c| c.linear_in(id)) {
            // One condition for each side: proofs go through all minima and maxima.
            if rest.has_data() || rest.has_division() {
                continue;
            }
            if k < 0 && last == all {
                last = last.lesser(&rest.greater(&zero).div(-k));
            } else if k > 0 && first == zero {
                first = first.greater(&rest.times(-1).plus(k - 1).greater(&zero).div(k));
            }
        }
        if (&first, &last) == (&zero, &all) {
            return Ok(None);
        }
        // A block of zeros does no harm. So one block is taken in any case, and turns of the memory are known where they can be.
        let first = first.lesser(&all).div(2).times(2);
        let last = last.greater(&first);
        let last = if n % 2 == 0 { last.div(2).times(2).plus(1) } else { last };
        Ok(Some((first, last)))
    }

    /// Returns the source view and shape of each block to be copied, in order.
    fn blocks_of(&self, copies: &[Term], x: &View) -> Step<Vec<(View, Shape)>> {
        let mut out = vec![];
        self.through(copies, x, &mut |v, shape| {
            out.push((v.clone(), shape));
            Ok(v)
        })?;
        Ok(out)
    }

    /// Returns the result of the copies, each read from its tile.
    fn staged(&self, copies: &[Term], x: &View, tiles: &[Rc<Tile>], half: &Index) -> Step<View> {
        let mut tiles = tiles.iter();
        self.through(copies, x, &mut |_, _| match tiles.next() {
            Some(tile) => Ok(tile.view(half)),
            None => stop(Code::Internal, "a copy without a tile"),
        })
    }

    fn through(&self, factors: &[Term], x: &View, copy: Copy) -> Step<View> {
        factors.iter().rev().try_fold(x.clone(), |x, f| {
            let args = f.args();
            match f.op() {
                _ if is_pure(f) => self.views.apply(f, &x),
                Op::Compose => self.through(&f.chain(), &x, copy),
                Op::Bimap => Ok(View::pair(
                    self.through(&args[..1], &x.fst()?, copy)?,
                    self.through(&args[1..], &x.snd()?, copy)?,
                )),
                Op::Fork => Ok(View::pair(
                    self.through(&args[..1], &x, copy)?,
                    self.through(&args[1..], &x, copy)?,
                )),
                Op::ToMem(Space::LocalAhead) if is_pure(&args[0]) => {
                    copy(self.views.apply(&args[0], &x)?, self.views.shape(&f.ty().cod)?)
                }
                _ => stop(Code::NotYetCompiled, "`toLocalAhead` of what is computed in the step"),
            }
        })
    }

    /// Returns a fresh variable that stands for any number in `0..n`.
    fn number(&mut self, n: i64) -> Index {
        let (id, name) = self.fresh("p");
        Index::from(Var { id, name, lo: 0, hi: (n - 1).max(0) })
    }

    /// Whether blocks can be loaded ahead here. The accumulator must belong to the work-group.
    pub fn may_load_ahead(&self, n: i64) -> bool {
        self.context == Context::Group && n > 0
    }
}
