//! Stable sorts of the words of a tile by the work-items of a group, in local memory.
//!
//! A round sorts by up to [`FIELD`] bits, as in Satish, Harris and Garland, "Designing efficient sorting algorithms for
//! manycore GPUs" (IPDPS 2009), and Merrill and Grimshaw, "High performance and scalable radix sorting" (2011). Each
//! work-item counts its words in registers, in which counters of four bits are packed. Two counters of 16 bits share a word
//! of local memory, where they are scanned: by bucket, and by work-item within each. Each work-item then knows the places
//! of its words.
//!
//! Loops over the words of a work-item are not unrolled here. The words are in an array of the work-item, which compilers
//! place in registers, since they are asked to unroll short loops.

use super::counting_sort::below;
use super::leaf;
use super::lowerer::Lowerer;
use super::memory::Storage;
use super::view::{Shape, Step, View};
use crate::calculus::scalar::Lit;
use crate::calculus::term::Space;
use crate::kernel::ir::index::Index;
use crate::kernel::ir::{ElemTy, Expr};
use crate::lang::typed::ScalarOp;
use crate::lang::types::ScalarType;
use std::sync::Arc;

/// Most bits by which a round sorts.
pub const FIELD: i64 = 4;

/// Most words of a tile that a work-item sorts: as many as a counter of four bits counts. The number is odd, so that
/// work-items that read their words one by one read from different banks.
pub const SHARE: i64 = 15;

/// Words are numbers of this type.
pub const WORD: ElemTy = ElemTy::scalar(ScalarType::U32);

/// Bits of a packed counter in a register, and number of such counters.
const COUNTER: i64 = 4;
const COUNTERS: i64 = 8;

/// Bits of a packed counter in local memory.
const HALF: i64 = 16;

/// What is needed to sort the words of a tile.
pub struct TileSort {
    items: i64,
    /// Words of each work-item: an odd number, at most [`SHARE`].
    share: i64,
    /// The words, in local memory.
    pub words: Storage,
    counters: Storage,
    sums: [Storage; 2],
    /// For each word of a work-item: the word, and how many of the work-item's words before it have its bucket.
    own: Storage,
    ranks: Storage,
    /// The counters that a work-item scans.
    kept: Storage,
    sum: Storage,
}

/// Returns the shape of an array of words.
pub fn words(n: i64) -> Shape {
    Shape::Array(n, Box::new(Shape::Elem(WORD)))
}

pub fn word(n: i64) -> Expr {
    Expr::Lit(Lit::int(ScalarType::U32, i128::from(n)))
}

pub fn op(op: ScalarOp, a: Expr, b: Expr) -> Expr {
    Expr::Op(op, WORD, vec![a, b])
}

/// `bits` bits of a word from bit `low` on.
pub fn bits_of(w: Expr, low: i64, bits: i64) -> Expr {
    let w = if low > 0 { op(ScalarOp::Shr, w, word(low)) } else { w };
    if low + bits >= 32 { w } else { op(ScalarOp::BitAnd, w, word((1 << bits) - 1)) }
}

/// Words of counters that each work-item has in a round: the counters of half of the buckets.
fn lanes(bits: i64) -> i64 {
    1 << (bits - 1)
}

/// Words of counters that a work-item scans: an odd number, for the same reason as [`SHARE`].
fn row(bits: i64) -> i64 {
    lanes(bits) | 1
}

/// Returns the shapes of the arrays in local memory with which `items` work-items sort `share` words each by up to `bits` bits a
/// round.
pub fn memory(items: i64, share: i64, bits: i64) -> [Shape; 4] {
    [words(items * share), words(items * row(bits)), words(items), words(items)]
}

impl Lowerer {
    /// Allocates memory for sorts of tiles by up to `bits` bits a round: `share` words for each of `items` work-items.
    pub fn tile_sort(&mut self, items: i64, share: i64, bits: i64) -> Step<TileSort> {
        let [tile, counters, first, second] =
            memory(items, share, bits).map(|s| self.allocate(&s, Some(Space::Local)));
        let kept = self.allocate(&words(row(bits)), Some(Space::Private))?;
        Ok(TileSort {
            items,
            share,
            words: tile?,
            counters: counters?,
            sums: [first?, second?],
            own: self.array_of_items(share)?,
            ranks: self.array_of_items(share)?,
            kept,
            sum: self.allocate(&Shape::Elem(WORD), Some(Space::Private))?,
        })
    }

    /// Sorts the words of a tile by `bits` bits from bit `low` on.
    pub fn sort_tile(&mut self, t: &TileSort, low: i64, bits: i64) -> Step<()> {
        let (lanes, row, one) = (lanes(bits), row(bits), Shape::Elem(WORD));
        let wide = 1 << bits > COUNTERS;
        self.local(0, t.items, false, &mut |me, l| {
            let zero = View::Elem(word(0));
            let lower = me.from(&zero, &one)?;
            let upper = if wide { me.from(&zero, &one)? } else { lower.clone() };
            me.repeat(t.share, false, &mut |me, j| {
                let w = leaf::bind(&t.words.view.at(&l.times(t.share).add(j))?, me)?;
                me.store(&w, &t.own.dest.at(j)?, &one)?;
                let d = me.named(bits_of(w.expr()?, low, bits))?;
                let (in_word, is_upper) = match wide {
                    true => (
                        bits_of(d.clone(), 0, FIELD - 1),
                        Expr::Op(
                            ScalarOp::Lt,
                            ElemTy::scalar(ScalarType::Bool),
                            vec![word(COUNTERS - 1), d],
                        ),
                    ),
                    false => (d, Expr::Lit(Lit::int(ScalarType::Bool, 0))),
                };
                let at = me.named(op(ScalarOp::Mul, in_word, word(COUNTER)))?;
                let is_upper = me.named(is_upper)?;
                let choice = |a: Expr, b: Expr| match wide {
                    true => Expr::If(Arc::new(is_upper.clone()), Arc::new(a), Arc::new(b)),
                    false => b,
                };
                let (u, v) = (upper.view.expr()?, lower.view.expr()?);
                let seen = op(ScalarOp::Shr, choice(u.clone(), v.clone()), at.clone());
                let seen = bits_of(seen, 0, COUNTER);
                me.store(&View::Elem(seen), &t.ranks.dest.at(j)?, &one)?;
                let more = me.named(op(ScalarOp::Shl, word(1), at))?;
                let both = op(ScalarOp::Add, v, choice(word(0), more.clone()));
                me.store(&View::Elem(both), &lower.dest, &one)?;
                if wide {
                    let both = op(ScalarOp::Add, u, choice(more, word(0)));
                    me.store(&View::Elem(both), &upper.dest, &one)?;
                }
                Ok(())
            })?;
            let counter = |d: i64| -> Step<Expr> {
                let of = if d < COUNTERS { &lower } else { &upper };
                Ok(bits_of(of.view.expr()?, COUNTER * (d % COUNTERS), COUNTER))
            };
            (0..lanes).try_for_each(|q| {
                let second = op(ScalarOp::Shl, counter(q + lanes)?, word(HALF));
                let both = op(ScalarOp::BitOr, counter(q)?, second);
                let at = l.plus(q * t.items);
                me.store(&View::Elem(both), &t.counters.dest.at(&at)?, &one)
            })?;
            (lanes..row)
                .try_for_each(|q| me.store(&zero, &t.counters.dest.at(&l.plus(q * t.items))?, &one))
        })?;
        self.scan_counters(t, row)?;
        self.local(0, t.items, false, &mut |me, l| {
            me.repeat(t.share, false, &mut |me, j| {
                let w = leaf::bind(&t.own.view.at(j)?, me)?.expr()?;
                let d = me.named(bits_of(w.clone(), low, bits))?;
                let lane = Index::data(bits_of(d.clone(), 0, bits - 1));
                let lane = if lanes > 1 { lane } else { Index::from(0) };
                let both = t.counters.view.at(&lane.times(t.items).add(l))?.expr()?;
                let is_second = bits_of(d, bits - 1, 1);
                let which = op(ScalarOp::Mul, is_second, word(HALF));
                let before = bits_of(op(ScalarOp::Shr, both, which), 0, HALF);
                let place = op(ScalarOp::Add, before, t.ranks.view.at(j)?.expr()?);
                let place = below(place, t.items * t.share);
                me.store(&View::Elem(w), &t.words.dest.at(&place)?, &one)
            })
        })
    }

    /// Replaces both counters of each word by the sums of the counters before: of the same half, and of the first half for
    /// those in the second one.
    fn scan_counters(&mut self, t: &TileSort, row: i64) -> Step<()> {
        let one = Shape::Elem(WORD);
        self.local(0, t.items, false, &mut |me, l| {
            me.store(&View::Elem(word(0)), &t.sum.dest, &one)?;
            me.repeat(row, true, &mut |me, q| {
                let c = leaf::bind(&t.counters.view.at(&l.times(row).add(q))?, me)?;
                me.store(&c, &t.kept.dest.at(q)?, &one)?;
                let both = op(ScalarOp::Add, t.sum.view.expr()?, c.expr()?);
                me.store(&View::Elem(both), &t.sum.dest, &one)
            })
        })?;
        let (through, all) = self.scan_of_items(&t.sum.view, t.items, &t.sums, WORD)?;
        self.local(0, t.items, false, &mut |me, l| {
            let first = op(ScalarOp::Shl, all.expr()?, word(HALF));
            let before = op(ScalarOp::Sub, through.view.expr()?, t.sum.view.expr()?);
            let before = me.from(&View::Elem(op(ScalarOp::Add, before, first)), &one)?;
            me.repeat(row, true, &mut |me, q| {
                me.store(&before.view, &t.counters.dest.at(&l.times(row).add(q))?, &one)?;
                let both = op(ScalarOp::Add, before.view.expr()?, t.kept.view.at(q)?.expr()?);
                me.store(&View::Elem(both), &before.dest, &one)
            })
        })
    }

    /// Returns, for each of `items` work-items, the sum of the values of all work-items up to it, and the sum of all. Two
    /// arrays take turns, so that a step needs one barrier.
    pub fn scan_of_items(
        &mut self,
        own: &View,
        items: i64,
        sums: &[Storage; 2],
        t: ElemTy,
    ) -> Step<(Storage, View)> {
        let one = Shape::Elem(t);
        let through = self.allocate(&one, Some(Space::Private))?;
        self.local(0, items, false, &mut |me, l| {
            me.store(own, &through.dest, &one)?;
            me.store(own, &sums[0].dest.at(l)?, &one)
        })?;
        let (mut at, mut by) = (0, 1);
        while by < items {
            self.local(0, items, false, &mut |me, l| {
                me.where_less(&Index::from(by - 1), l, &mut |me| {
                    let other = sums[at].view.at(&l.plus(-by))?.expr()?;
                    let both = Expr::Op(ScalarOp::Add, t, vec![through.view.expr()?, other]);
                    me.store(&View::Elem(both), &through.dest, &one)
                })?;
                me.store(&through.view, &sums[1 - at].dest.at(l)?, &one)
            })?;
            (at, by) = (1 - at, 2 * by);
        }
        Ok((through, sums[at].view.at(&Index::from(items - 1))?))
    }

    /// Binds a value to a register.
    fn named(&mut self, e: Expr) -> Step<Expr> {
        leaf::bind(&View::Elem(e), self)?.expr()
    }
}
