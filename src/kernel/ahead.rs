//! Double buffering: a reduction whose steps begin with copies of a block to local memory loads the next block
//! into registers before it uses the one that is there, and stores it to the other half of the memory afterwards.
//!
//! ```text
//! half 0 = block 0
//! for i in 0..n-1 { registers = block i+1; step with half i%2; half (i+1)%2 = registers }
//! step with the last half
//! ```
//!
//! So loads are on their way during a step, and one barrier is enough for each: it stands before the step, between
//! the stores of a block and its use, and also parts the use of a half from the stores of the next but one.

use super::index::Index;
use super::lower::{Context, Lowerer};
use super::reduce::Accumulator;
use super::stage::Tile;
use super::view::{Shape, Step, View, is_pure, stop};
use crate::calculus::term::{Op, Space, Term};
use crate::diag::Code;
use std::rc::Rc;

/// What to do with a block that is to be copied, in place of which another is read.
type Copy<'a> = &'a mut dyn FnMut(View, Shape) -> Step<View>;

fn copies_ahead(t: &Term) -> bool {
    *t.op() == Op::ToMem(Space::LocalAhead) || t.args().iter().any(copies_ahead)
}

/// The operator of a reduction as a step and the copies before it; `None` where no block is to be loaded ahead.
pub fn parts(op: &[Term]) -> Option<(&[Term], &[Term])> {
    let at = op.iter().position(copies_ahead).filter(|at| *at > 0)?;
    Some(op.split_at(at))
}

impl Lowerer {
    /// Reduces `n` elements of `x`, at least one.
    pub fn reduce_ahead(
        &mut self,
        (step, copies): (&[Term], &[Term]),
        x: &View,
        n: i64,
        acc: &Accumulator,
        shape: &Shape,
    ) -> Step<()> {
        let arg = |i: &Index| -> Step<View> { Ok(View::pair(acc.view.clone(), x.at(i)?)) };
        // Blocks as they are read in the loop decide how all of them are.
        let any = self.number(n);
        let tiles = self
            .blocks_of(copies, &arg(&any)?)?
            .iter()
            .map(|(v, shape)| Ok(Rc::new(self.tile(v, shape, n.min(2))?)))
            .collect::<Step<Vec<Rc<Tile>>>>()?;
        let first = Index::from(0);
        for (tile, (v, _)) in tiles.iter().zip(self.blocks_of(copies, &arg(&first)?)?) {
            self.copy_block(tile, &v, &first)?;
        }
        self.repeat(n - 1, false, &mut |me, i| {
            let half = i.rem(2);
            let next = me.blocks_of(copies, &arg(&i.plus(1))?)?;
            let loaded = tiles
                .iter()
                .zip(&next)
                .map(|(tile, (v, _))| me.load_block(tile, v))
                .collect::<Step<Vec<_>>>()?;
            me.update(
                step,
                &me.staged(copies, &arg(i)?, &tiles, &half)?,
                &acc.dest,
                &acc.owned,
                shape,
            )?;
            let other = Index::from(1).sub(&half);
            tiles.iter().zip(&loaded).try_for_each(|(tile, v)| me.store_block(tile, v, &other))
        })?;
        let last = Index::from(n - 1);
        let arg = self.staged(copies, &arg(&last)?, &tiles, &last.rem(2))?;
        self.update(step, &arg, &acc.dest, &acc.owned, shape)
    }

    /// What is copied, in order.
    fn blocks_of(&self, copies: &[Term], x: &View) -> Step<Vec<(View, Shape)>> {
        let mut out = vec![];
        self.through(copies, x, &mut |v, shape| {
            out.push((v.clone(), shape));
            Ok(v)
        })?;
        Ok(out)
    }

    /// The result of the copies, each in its tile.
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

    /// Any of the numbers below `n`.
    fn number(&mut self, n: i64) -> Index {
        let (id, name) = self.fresh("p");
        Index::from(super::index::Var { id, name, lo: 0, hi: (n - 1).max(0) })
    }

    /// Whether blocks can be loaded ahead here: the group keeps the accumulator.
    pub fn may_load_ahead(&self, n: i64) -> bool {
        self.context == Context::Group && n > 0
    }
}
