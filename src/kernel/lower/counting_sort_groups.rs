//! Counting sorts as the work-groups of a GPU run them.
//!
//! A group has a block of a few tiles. A first kernel counts the elements of each block by bucket. A second one scans the
//! counts of each bucket, and a third one the sums of the buckets. The last one reads a tile, sorts it in local memory by
//! bucket (`tile_sort`), and stores each bucket's run of elements. What is sorted in local memory are words that hold the
//! bucket of an element and its place in the tile.
//!
//! Blocks are short: then the groups that run at the same time store to neighbouring places.

use super::counting_sort::{Blocks, INT, Sorting, below, counts, difference, int, quotient, sum};
use super::dest::Dest;
use super::irregular::{bytes, lanes};
use super::leaf::{self, Emit};
use super::lowerer::Lowerer;
use super::memory::Storage;
use super::tile_sort::{FIELD, SHARE, TileSort, WORD, bits_of, memory, op, word};
use super::view::{Shape, Step, View};
use crate::calculus::term::{MapKind, Space, Term};
use crate::calculus::ty::Ty;
use crate::kernel::ir::index::Index;
use crate::kernel::ir::{ARRAY_ALIGNMENT, ElemTy, Expr, Stmt};
use crate::lang::typed::ScalarOp;
use crate::lang::types::ScalarType;

/// Numbers of work-items of a group that sorts a tile, best first. More work-items make longer runs.
const ITEMS: [i64; 3] = [256, 192, 128];

/// Most work-items of a group that scans counts.
const SCANNERS: i64 = 1024;

/// Blocks are longer than a tile where there are more tiles than this for each compute unit.
const TILES_OF_UNIT: i64 = 8;

/// Tiles of a block, where blocks are longer.
const TILES_OF_BLOCK: i64 = 2;

/// Fewest elements that a group sorts by digits. Of fewer, each work-item compares its elements with all others.
const COMPARED: i64 = 128;

/// Least number of elements of a long block for each counter.
const ELEMENTS_OF_COUNTER: i64 = 8;

/// Most buckets with several counters each. With more of them, work-items rarely meet.
const BUCKETS_WITH_COPIES: i64 = 64;

/// How a group sorts an array of its own.
enum OfGroup {
    /// The array is one tile.
    Tile(Tiles),
    /// The array is a block of several tiles.
    Block(Tiles),
    /// Each work-item compares its elements with all others.
    Compared,
}

/// What a group keeps in local memory while it stores the elements of a block.
struct BlockTables {
    /// For each bucket: its first place in the tile, how much further it is in the result, and the first place in the result for
    /// the next tile.
    start: Storage,
    further: Storage,
    next: Storage,
    sort: TileSort,
    /// The elements of the tile.
    stage: Option<Storage>,
}

/// How groups sort tiles.
pub struct Tiles {
    /// Work-items of a group, and elements of each.
    items: i64,
    share: i64,
    /// Bits of the bucket number by which each round sorts, the lowest first.
    rounds: Vec<i64>,
    /// Bits of a place in the tile.
    low: i64,
    /// Whether the elements of a tile are kept in local memory.
    staged: bool,
}

impl Tiles {
    fn len(&self) -> i64 {
        self.items * self.share
    }

    /// The bucket of a word.
    fn bucket(&self, w: Expr) -> Expr {
        bits_of(w, self.low, self.rounds.iter().sum())
    }

    fn widest(&self) -> i64 {
        self.rounds.iter().copied().max().unwrap_or(1)
    }
}

/// Number of bits of the numbers below `n`.
fn bits_below(n: i64) -> i64 {
    i64::from(u64::try_from(n - 1).unwrap_or(0).checked_ilog2().map_or(0, |b| b + 1))
}

/// Returns by how many bits each round sorts.
fn rounds(bits: i64) -> Vec<i64> {
    let rounds = quotient(bits, FIELD);
    (0..rounds).map(|r| bits / rounds + i64::from(r < bits % rounds)).collect()
}

impl Lowerer {
    /// Returns how groups sort tiles; `None` if the device has no local memory of its own, or too little.
    pub fn tiles_for(&self, s: Sorting) -> Option<Tiles> {
        let device = &self.options.device;
        let bits = bits_below(s.k).max(1);
        let staged = s.elem.is_element();
        let mut t = Tiles { items: 0, share: SHARE, rounds: rounds(bits), low: 0, staged };
        let most = i64::try_from(device.max_work_group_size).unwrap_or(1);
        loop {
            for items in ITEMS.into_iter().filter(|n| device.shares_local_memory() && *n <= most) {
                t = Tiles { items, low: bits_below(items * SHARE), ..t };
                if t.low + bits <= 32 && self.fits(s, &t) {
                    return Some(t);
                }
            }
            if !t.staged {
                return None;
            }
            t.staged = false;
        }
    }

    /// Returns how the work-items of a group sort an array of their own. Without local memory, or if there are few elements, comparing
    /// them is as good.
    fn sort_of_group(&self, k: i64, n: i64) -> OfGroup {
        let bits = bits_below(k).max(1);
        let [group, 1, 1] = self.kernel.group else { return OfGroup::Compared };
        if n < COMPARED || !self.options.device.shares_local_memory() {
            return OfGroup::Compared;
        }
        // All work-items take part, each with an odd number of elements.
        let share = (quotient(n, group) | 1).min(SHARE);
        let items = quotient(n, share);
        let tiles = |items: i64, share: i64| {
            let low = bits_below(items * share);
            Tiles { items, share, rounds: rounds(bits), low, staged: false }
        };
        let most = self.options.device.local_mem_bytes;
        let fits = |t: &Tiles, bytes| t.low + bits <= 32 && bytes <= most;
        // The tiles of a block are about as long as each other.
        let count = quotient(n, group * SHARE);
        let of_block = (quotient(n, count * group) | 1).min(SHARE);
        let (tile, block) = (tiles(items, share), tiles(group, of_block));
        if items <= group && fits(&tile, Self::needs(&tile, [])) {
            OfGroup::Tile(tile)
        } else if fits(&block, Self::needs_for_block(&block, k)) {
            OfGroup::Block(block)
        } else {
            OfGroup::Compared
        }
    }

    /// Whether the work-items of a group sort an array of their own in tiles.
    pub fn has_tiles(&self, k: i64, n: i64) -> bool {
        !matches!(self.sort_of_group(k, n), OfGroup::Compared)
    }

    /// The work-items of a group sort an array of their own in tiles, if that is better than comparing the elements. Returns whether it is.
    pub fn sort_by_tiles(&mut self, s: Sorting, counted: &Dest, to: &Dest) -> Step<bool> {
        match self.sort_of_group(s.k, s.n) {
            OfGroup::Tile(t) => self.sort_tile_in_group(s, &t, counted, to)?,
            OfGroup::Block(t) => self.sort_block_in_group(s, &t, counted, to)?,
            OfGroup::Compared => return Ok(false),
        }
        Ok(true)
    }

    /// Bytes of local memory that sorting an array of a group needs, apart from the array.
    pub fn bytes_to_sort(&self, k: i64, n: i64) -> usize {
        match self.sort_of_group(k, n) {
            OfGroup::Tile(t) => Self::needs(&t, []),
            OfGroup::Block(t) => Self::needs_for_block(&t, k),
            OfGroup::Compared => bytes(&counts(n)),
        }
    }

    /// Bytes of local memory that a group needs to sort a tile, apart from these arrays.
    fn needs(t: &Tiles, others: impl IntoIterator<Item = Shape>) -> usize {
        memory(t.items, t.share, t.widest()).into_iter().chain(others).fold(0usize, |sum, shape| {
            sum.saturating_add(bytes(&shape).next_multiple_of(ARRAY_ALIGNMENT))
        })
    }

    /// Whether local memory has room for what a group needs to sort a tile.
    fn fits(&self, s: Sorting, t: &Tiles) -> bool {
        let stage = Shape::Array(if t.staged { t.len() } else { 0 }, Box::new(s.elem.clone()));
        let tables = [counts(s.k), counts(s.k), counts(s.k), stage];
        Self::needs(t, tables) <= self.options.device.local_mem_bytes
    }

    /// Bytes of local memory that a group needs to sort an array of its own tile by tile.
    fn needs_for_block(t: &Tiles, k: i64) -> usize {
        Self::needs(t, [k, k, k, t.items, t.items].map(counts))
    }

    /// Groups sort the elements block by block.
    pub fn sort_by_groups(&mut self, s: Sorting, t: &Tiles, counted: &Dest, to: &Dest) -> Step<()> {
        let tiles = quotient(s.n, t.len());
        let each = match tiles <= self.compute_units() * TILES_OF_UNIT {
            true => 1,
            false => TILES_OF_BLOCK.max(quotient(ELEMENTS_OF_COUNTER * s.k, t.len())),
        };
        let b = Blocks { count: quotient(tiles, each), length: each * t.len() };
        let first = self.allocate(&counts(self.pitch(b.count) * s.k), Some(Space::Global))?;
        let starts = self.allocate(&counts(s.k), Some(Space::Global))?;
        self.count_in_groups(s, t, b, &first)?;
        self.scan_rows(&first, s.k, b.count, Some(&starts))?;
        self.scan_rows(&starts, 1, s.k, None)?;
        if !matches!(counted, Dest::Nowhere) {
            self.each(s.k, &mut |me, d| me.store_size(s, &starts, d, counted))?;
        }
        self.place_in_groups(s, t, b, [&first, &starts], to)
    }

    /// Stores the number of elements of a bucket, given where buckets start.
    fn store_size(&mut self, s: Sorting, starts: &Storage, d: &Index, to: &Dest) -> Step<()> {
        let one = Shape::Elem(INT);
        let here = starts.view.at(d)?.expr()?;
        let next = self.from(&View::Elem(int(s.n)), &one)?;
        self.where_less(&d.plus(1), &Index::from(s.k), &mut |me| {
            me.store(&starts.view.at(&d.plus(1))?, &next.dest, &one)
        })?;
        self.store_count(s, &difference(next.view.expr()?, here), &to.at(d)?)
    }

    /// Counts the elements of each block, for one bucket after the other.
    fn count_in_groups(&mut self, s: Sorting, t: &Tiles, b: Blocks, first: &Storage) -> Step<()> {
        let copies = match s.k < BUCKETS_WITH_COPIES {
            true => self.copies_of_bins(&counts(s.k), true),
            false => 1,
        };
        let (k, row, one) = (s.k, self.pitch(b.count), Shape::Elem(INT));
        let id = Term::id(&Ty::Unit);
        self.in_kernel(&id, |me| {
            me.kernel.group = [t.items, 1, 1];
            me.spread(MapKind::Wrg(0), b.count, false, &mut |me, g| {
                let own = me.allocate(&counts((k + 1) * copies), Some(Space::Local))?;
                me.local(0, k * copies, false, &mut |me, i| {
                    me.store(&View::Elem(int(0)), &own.dest.at(i)?, &one)
                })?;
                me.local(0, t.items, false, &mut |me, l| {
                    let copy = l.div_mod(copies).1;
                    let held = me.array_of_items(t.share)?;
                    me.repeat(b.length / t.len(), false, &mut |me, tile| {
                        // All loads come first: atomic operations keep loads that follow them back.
                        me.repeat(t.share, false, &mut |me, i| {
                            let j = g.times(b.length).add(&tile.times(t.len()));
                            let j = j.add(&i.times(t.items)).add(l);
                            let d = me.bucket_number(s, &j.lesser(&Index::from(s.n - 1)))?;
                            // What is past the end counts in a bucket of its own: a branch would keep the next loads back.
                            let mut d = op(ScalarOp::Min, as_word(d), word(k - 1));
                            if let Some(exists) = exists(s, &j) {
                                d = Expr::If(exists.into(), d.into(), word(k).into());
                            }
                            me.store(&View::Elem(d), &held.dest.at(i)?, &Shape::Elem(WORD))
                        })?;
                        me.repeat(t.share, false, &mut |me, i| {
                            let d = held.view.at(i)?.expr()?;
                            let at = below(d, k + 1).times(copies).add(&copy);
                            me.atomically(
                                &[(vec![], ScalarOp::Add)],
                                &View::Elem(int(1)),
                                &own.dest.at(&at)?,
                                lanes(copies),
                            )
                        })
                    })
                })?;
                me.local(0, k, false, &mut |me, d| {
                    let all = me.from(&View::Elem(int(0)), &one)?;
                    me.repeat(copies, false, &mut |me, c| {
                        let at = d.times(copies).add(&c.add(d).div_mod(copies).1);
                        let both = sum(all.view.expr()?, own.view.at(&at)?.expr()?);
                        me.store(&both, &all.dest, &one)
                    })?;
                    me.store(&all.view, &first.dest.at(&d.times(row).add(g))?, &one)
                })
            })
        })
    }

    /// Work-items of a group that scans a row of counts.
    fn scanners(&self, length: i64) -> i64 {
        let most = i64::try_from(self.options.device.max_work_group_size).unwrap_or(1);
        (1 << bits_below(length)).clamp(1, SCANNERS.min(most).max(1))
    }

    /// The distance of rows of counts: whole rounds of the groups that scan them, so that each group plainly has elements of
    /// its own.
    fn pitch(&self, length: i64) -> i64 {
        quotient(length, self.scanners(length)) * self.scanners(length)
    }

    /// Replaces each element of a row by the sum of those before it. The sums of the rows are stored in `totals`.
    fn scan_rows(
        &mut self,
        rows: &Storage,
        count: i64,
        length: i64,
        totals: Option<&Storage>,
    ) -> Step<()> {
        let one = Shape::Elem(INT);
        let (items, pitch) = (self.scanners(length), self.pitch(length));
        let id = Term::id(&Ty::Unit);
        self.in_kernel(&id, |me| {
            me.kernel.group = [items, 1, 1];
            me.spread(MapKind::Wrg(0), count, false, &mut |me, r| {
                let all = me.scan_row(rows, (&r.times(pitch), length), items)?;
                let Some(totals) = totals else { return Ok(()) };
                me.local(0, 1, false, &mut |me, _| me.store(&all, &totals.dest.at(r)?, &one))
            })
        })
    }

    /// Replaces each of so many elements from an index on by the sum of those before it, by the work-items of a group. Returns the sum
    /// of all.
    fn scan_row(
        &mut self,
        rows: &Storage,
        (from, length): (&Index, i64),
        items: i64,
    ) -> Step<View> {
        let one = Shape::Elem(INT);
        let [a, b] = [(); 2].map(|()| self.allocate(&counts(items), Some(Space::Local)));
        let sums = [a?, b?];
        let (own, before) = (self.allocate(&one, Some(Space::Private))?, int(0));
        let before = self.from(&View::Elem(before), &one)?;
        self.repeat(quotient(length, items), false, &mut |me, part| {
            let place = |l: &Index| part.times(items).add(l);
            let length = Index::from(length);
            me.local(0, items, false, &mut |me, l| {
                me.store(&View::Elem(int(0)), &own.dest, &one)?;
                me.where_less(&place(l), &length, &mut |me| {
                    me.store(&rows.view.at(&from.add(&place(l)))?, &own.dest, &one)
                })
            })?;
            let (through, all) = me.scan_of_items(&own.view, items, &sums, INT)?;
            me.local(0, items, false, &mut |me, l| {
                me.where_less(&place(l), &length, &mut |me| {
                    let here = difference(through.view.expr()?, own.view.expr()?);
                    let here = sum(before.view.expr()?, here.expr()?);
                    me.store(&here, &rows.dest.at(&from.add(&place(l)))?, &one)
                })
            })?;
            me.store(&sum(before.view.expr()?, all.expr()?), &before.dest, &one)
        })?;
        Ok(before.view)
    }

    /// Stores the elements, each tile bucket by bucket.
    fn place_in_groups(
        &mut self,
        s: Sorting,
        t: &Tiles,
        b: Blocks,
        [first, starts]: [&Storage; 2],
        to: &Dest,
    ) -> Step<()> {
        let (k, tile, row, one) = (s.k, t.len(), self.pitch(b.count), Shape::Elem(INT));
        let id = Term::id(&Ty::Unit);
        self.in_kernel(&id, |me| {
            me.kernel.group = [t.items, 1, 1];
            me.spread(MapKind::Wrg(0), b.count, false, &mut |me, g| {
                let block = me.block_tables(s, t)?;
                me.local(0, k, false, &mut |me, d| {
                    let before = first.view.at(&d.times(row).add(g))?.expr()?;
                    let place = sum(starts.view.at(d)?.expr()?, before);
                    me.store(&place, &block.next.dest.at(d)?, &one)
                })?;
                me.place_block(s, t, &block, (&g.times(b.length), b.length / tile), to)
            })
        })
    }

    /// Allocates what a group needs to store the elements of a block.
    fn block_tables(&mut self, s: Sorting, t: &Tiles) -> Step<BlockTables> {
        let [start, further, next] =
            [(); 3].map(|()| self.allocate(&counts(s.k), Some(Space::Local)));
        let (start, further, next) = (start?, further?, next?);
        let sort = self.tile_sort(t.items, t.share, t.widest())?;
        let stage = match t.staged {
            true => {
                let values = Shape::Array(t.len(), Box::new(s.elem.clone()));
                Some(self.allocate(&values, Some(Space::Local))?)
            }
            false => None,
        };
        Ok(BlockTables { start, further, next, sort, stage })
    }

    /// Stores the elements of a block that begins at an index and has so many tiles, each tile bucket by bucket.
    fn place_block(
        &mut self,
        s: Sorting,
        t: &Tiles,
        block: &BlockTables,
        (begin, tiles): (&Index, i64),
        to: &Dest,
    ) -> Step<()> {
        let (k, tile, one) = (s.k, t.len(), Shape::Elem(INT));
        let BlockTables { start, further, next, sort, stage } = block;
        self.repeat(tiles, false, &mut |me, number| {
            let from = begin.add(&number.times(tile));
            me.local(0, tile, false, &mut |me, i| {
                me.hold(s, t, sort, [&from, i])?;
                let Some(values) = stage else { return Ok(()) };
                let j = from.add(i).lesser(&Index::from(s.n - 1));
                let value = me.emitted(|| s.values.at(&j))?;
                me.store(&value, &values.dest.at(i)?, s.elem)
            })?;
            me.sort_by_bucket(t, sort)?;
            let bucket = |w: Expr| t.bucket(w);
            me.local(0, k, false, &mut |me, d| {
                let place = me.first_of(&sort.words.view, tile, &bucket, d)?;
                me.store(&place, &start.dest.at(d)?, &one)
            })?;
            me.local(0, k, false, &mut |me, d| {
                let end = me.from(&View::Elem(int(tile)), &one)?;
                me.where_less(&d.plus(1), &Index::from(k), &mut |me| {
                    me.store(&start.view.at(&d.plus(1))?, &end.dest, &one)
                })?;
                let place = leaf::bind(&next.view.at(d)?, me)?.expr()?;
                let more = difference(place, start.view.at(d)?.expr()?);
                let more = leaf::bind(&more, me)?;
                me.store(&more, &further.dest.at(d)?, &one)?;
                me.store(&sum(more.expr()?, end.view.expr()?), &next.dest.at(d)?, &one)
            })?;
            me.local(0, tile, false, &mut |me, i| {
                me.where_element(s, &from.add(i), |me| {
                    let w = leaf::bind(&sort.words.view.at(i)?, me)?.expr()?;
                    let more = further.view.at(&below(bucket(w.clone()), k))?.expr()?;
                    let place = sum(more, Expr::Index(i.clone(), INT.scalar)).expr()?;
                    let place = below(place, s.n);
                    let source = bits_of(w, 0, t.low);
                    let value = match stage {
                        Some(values) => values.view.at(&below(source, tile))?,
                        None => {
                            let last = Index::from(s.n - 1);
                            let j = from.add(&below(source, tile)).lesser(&last);
                            me.emitted(|| s.values.at(&j))?
                        }
                    };
                    me.store(&value, &to.at(&place)?, s.elem)
                })
            })
        })
    }

    /// Sorts an array of the work-items of a group tile by tile. The buckets are counted first.
    fn sort_block_in_group(
        &mut self,
        s: Sorting,
        t: &Tiles,
        counted: &Dest,
        to: &Dest,
    ) -> Step<()> {
        let (k, one) = (s.k, Shape::Elem(INT));
        let block = self.block_tables(s, t)?;
        let next = &block.next;
        self.local(0, k, false, &mut |me, d| {
            me.store(&View::Elem(int(0)), &next.dest.at(d)?, &one)
        })?;
        self.local(0, s.n, false, &mut |me, j| {
            let d = me.bucket(s, j)?;
            me.atomically(
                &[(vec![], ScalarOp::Add)],
                &View::Elem(int(1)),
                &next.dest.at(&d)?,
                lanes(1),
            )
        })?;
        self.local(0, k, false, &mut |me, d| {
            me.store_count(s, &next.view.at(d)?, &counted.at(d)?)
        })?;
        self.scan_row(next, (&Index::from(0), k), t.items)?;
        self.place_block(s, t, &block, (&Index::from(0), quotient(s.n, t.len())), to)
    }

    /// Sorts an array that is one tile of the work-items of a group.
    fn sort_tile_in_group(&mut self, s: Sorting, t: &Tiles, counted: &Dest, to: &Dest) -> Step<()> {
        let sort = self.tile_sort(t.items, t.share, t.widest())?;
        let start = Index::from(0);
        self.local(0, t.len(), false, &mut |me, i| me.hold(s, t, &sort, [&start, i]))?;
        self.sort_by_bucket(t, &sort)?;
        if !matches!(counted, Dest::Nowhere) {
            self.local(0, s.k, false, &mut |me, d| {
                let words = &sort.words.view;
                let first = me.first_of(words, t.len(), &|w| t.bucket(w), d)?.expr()?;
                let end = me.from(&View::Elem(int(s.n)), &Shape::Elem(INT))?;
                me.where_less(&d.plus(1), &Index::from(s.k), &mut |me| {
                    let next = me.first_of(words, t.len(), &|w| t.bucket(w), &d.plus(1))?;
                    me.store(&next, &end.dest, &Shape::Elem(INT))
                })?;
                me.store_count(s, &difference(end.view.expr()?, first), &counted.at(d)?)
            })?;
        }
        self.local(0, s.n, false, &mut |me, i| {
            let w = leaf::bind(&sort.words.view.at(i)?, me)?.expr()?;
            let source = below(bits_of(w, 0, t.low), s.n);
            let value = me.emitted(|| s.values.at(&source))?;
            me.store(&value, &to.at(i)?, s.elem)
        })
    }

    /// Stores the word of an element of a tile, which begins at an index of the array. Places past the end stay behind the elements
    /// of the last bucket.
    fn hold(&mut self, s: Sorting, t: &Tiles, sort: &TileSort, at: [&Index; 2]) -> Step<()> {
        let [from, i] = at;
        let j = from.add(i).lesser(&Index::from(s.n - 1));
        let mut d = as_word(self.bucket_number(s, &j)?);
        if let Some(exists) = exists(s, &from.add(i)) {
            d = Expr::If(exists.into(), d.into(), word(s.k - 1).into());
        }
        let bucket = op(ScalarOp::Shl, d, word(t.low));
        let held = op(ScalarOp::BitOr, bucket, Expr::Index(i.clone(), ScalarType::U32));
        self.store(&View::Elem(held), &sort.words.dest.at(i)?, &Shape::Elem(WORD))
    }

    /// Sorts the words of a tile by bucket.
    fn sort_by_bucket(&mut self, t: &Tiles, sort: &TileSort) -> Step<()> {
        let mut low = t.low;
        for bits in &t.rounds {
            self.sort_tile(sort, low, *bits)?;
            low += bits;
        }
        Ok(())
    }

    /// Runs the body if there is an element `j`. This is a condition on data, for which loops are not split: loops over the
    /// elements of a tile stay short loops, which compilers unroll to have several loads in flight.
    fn where_element(
        &mut self,
        s: Sorting,
        j: &Index,
        body: impl FnOnce(&mut Lowerer) -> Step<()>,
    ) -> Step<()> {
        let Some(exists) = exists(s, j) else { return body(self) };
        self.begin();
        let done = self.undeferred(body);
        let block = self.end();
        done?;
        self.put(Stmt::Branch(exists, block, vec![]))
    }

    /// Returns the first place of a bucket in the words of a sorted tile, by a binary search.
    fn first_of(
        &mut self,
        words: &View,
        tile: i64,
        bucket: &dyn Fn(Expr) -> Expr,
        d: &Index,
    ) -> Step<View> {
        let one = Shape::Elem(WORD);
        let at = self.from(&View::Elem(word(0)), &one)?;
        let mut step = 1 << (bits_below(tile + 1) - 1);
        while step > 0 {
            // Behind the end, the last word decides, and the result is the end.
            let last = op(ScalarOp::Add, at.view.expr()?, word(step - 1));
            let seen = bucket(words.at(&below(last, tile))?.expr()?);
            let of = Expr::Index(d.clone(), ScalarType::U32);
            let less = Expr::Op(ScalarOp::Lt, ElemTy::scalar(ScalarType::Bool), vec![seen, of]);
            let more = Expr::If(less.into(), word(step).into(), word(0).into());
            self.store(&View::Elem(op(ScalarOp::Add, at.view.expr()?, more)), &at.dest, &one)?;
            step /= 2;
        }
        let end = op(ScalarOp::Min, at.view.expr()?, word(tile));
        Ok(View::Elem(Expr::Op(ScalarOp::Cast(INT.scalar), INT, vec![end])))
    }
}

/// Whether there is an element `j`; `None` if there is.
fn exists(s: Sorting, j: &Index) -> Option<Expr> {
    let known = j.range().1 < s.n;
    let of = ElemTy::scalar(ScalarType::Bool);
    let operands = vec![Expr::Index(j.clone(), INT.scalar), int(s.n)];
    (!known).then_some(Expr::Op(ScalarOp::Lt, of, operands))
}

/// A number that is not negative, as a word.
fn as_word(e: Expr) -> Expr {
    if e.ty() == WORD { e } else { Expr::Op(ScalarOp::Cast(WORD.scalar), WORD, vec![e]) }
}
