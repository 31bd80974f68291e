//! Stable counting sorts (`countingSort`).
//!
//! The elements are cut into blocks. A first kernel counts how many elements of each block belong to each bucket, a second
//! one turns the counts into the first place of each block's elements in each bucket, and a third one stores the elements,
//! block by block in their order. In one work-item, all elements are one block.
//!
//! On a GPU, a work-group has a block and goes through it tile by tile, as in Satish, Harris and Garland, "Designing
//! efficient sorting algorithms for manycore GPUs" (IPDPS 2009): each work-item counts the buckets of its share of the
//! tile in a row of local memory, the columns are scanned, and each work-item then knows the places of its elements.

use super::dest::Dest;
use super::irregular::{bytes, within};
use super::leaf;
use super::lowerer::{Context, Lowerer};
use super::memory::Storage;
use super::view::{Shape, Step, View, stop};
use crate::calculus::scalar::Lit;
use crate::calculus::term::{MapKind, Space, Term};
use crate::calculus::ty::Ty;
use crate::diag::Code;
use crate::kernel::ir::index::Index;
use crate::kernel::ir::{ElemTy, Expr};
use crate::lang::typed::ScalarOp;
use crate::lang::types::ScalarType;

/// Blocks for each compute unit: enough work-items to keep a CPU busy.
const BLOCKS_OF_UNIT: i64 = 16;

/// Work-groups for each compute unit of a GPU.
const GROUPS_OF_UNIT: i64 = 8;

/// Work-items of a group that sorts a block.
const ITEMS: i64 = 128;

/// Adjacent elements of a tile that a work-item sorts.
const SHARE: i64 = 16;

/// Work-items of the group that scans the counts, and those that scan the sums of its work-items.
const SCANNERS: [i64; 2] = [1024, 32];

/// Counts are numbers of this type.
const INT: ElemTy = ElemTy::scalar(ScalarType::I32);

/// A counting sort of `n` elements into `k` buckets, at least one.
#[derive(Clone, Copy)]
struct Sorting<'a> {
    k: i64,
    n: i64,
    buckets: &'a View,
    values: &'a View,
    elem: &'a Shape,
    /// The type of the counts that are a result.
    count: &'a Shape,
}

/// The elements, cut into blocks of one length.
#[derive(Clone, Copy)]
struct Blocks {
    count: i64,
    length: i64,
}

fn int(n: i64) -> Expr {
    Expr::Lit(Lit::int(ScalarType::I32, i128::from(n)))
}

fn sum(a: Expr, b: Expr) -> View {
    View::Elem(Expr::Op(ScalarOp::Add, INT, vec![a, b]))
}

/// Number of counters in the rows of all work-items, in sums of them, and four for each bucket.
fn rows_of(k: i64) -> i64 {
    (ITEMS + parts_of(k)) * (k | 1) + 4 * k
}

/// Number of parts in which columns of counters are scanned: one for each work-item, but no more than rows in a part.
fn parts_of(k: i64) -> i64 {
    let mut parts = 16;
    while parts > 1 && parts * (k | 1) > ITEMS {
        parts /= 2;
    }
    parts
}

fn difference(a: Expr, b: Expr) -> View {
    View::Elem(Expr::Op(ScalarOp::Sub, INT, vec![a, b]))
}

fn counts(n: i64) -> Shape {
    Shape::Array(n, Box::new(Shape::Elem(INT)))
}

impl Lowerer {
    /// Counts the elements of each bucket, and stores the elements bucket by bucket, in their order within each.
    pub fn counting_sort(&mut self, f: &Term, x: &View, dest: &Dest) -> Step<()> {
        let (k, n) = (self.views.size(&f.sizes()[0])?, self.views.size(&f.sizes()[1])?);
        let Ty::Pair(_, sorted) = &f.ty().cod else {
            return stop(Code::Internal, "a counting sort gives two arrays");
        };
        let shape = self.views.shape(sorted)?;
        let Shape::Array(_, elem) = &shape else {
            return stop(Code::Internal, "a counting sort gives an array");
        };
        let (buckets, values) = (x.fst()?, x.snd()?);
        let (counted, to) = (dest.component(false)?, dest.component(true)?);
        let Shape::Pair(all, _) = self.views.shape(&f.ty().cod)? else {
            return stop(Code::Internal, "a counting sort gives two arrays");
        };
        let Shape::Array(_, count) = *all else {
            return stop(Code::Internal, "counts that are not an array");
        };
        let s = Sorting { k, n, buckets: &buckets, values: &values, elem, count: &count };
        if k == 0 || n == 0 {
            self.each(k, &mut |me, d| me.store_count(s, &View::Elem(int(0)), &counted.at(d)?))?;
            return self.copy(&values, &to, &shape);
        }
        let in_groups = self.options.device.shares_local_memory()
            && ITEMS <= i64::try_from(self.options.device.max_work_group_size).unwrap_or(1)
            && bytes(&counts(rows_of(k))) <= self.options.device.local_mem_bytes / 2;
        if self.context != Context::Host || !in_groups {
            return self.sort_by_items(s, &counted, &to);
        }
        let tile = ITEMS * SHARE;
        let tiles = quotient(n, tile);
        let groups = (self.compute_units() * GROUPS_OF_UNIT).min(tiles);
        let b = Blocks { count: groups, length: quotient(tiles, groups) * tile };
        let first = self.allocate(&counts(groups * k), Some(Space::Global))?;
        self.count_in_groups(s, b, &first)?;
        self.scan_counts(s, b, &first, &counted)?;
        self.place_in_groups(s, b, &first, &to)
    }

    /// Each work-item sorts a block.
    fn sort_by_items(&mut self, s: Sorting, counted: &Dest, to: &Dest) -> Step<()> {
        let most = match self.context {
            Context::Host => self.compute_units() * BLOCKS_OF_UNIT,
            _ => 1,
        };
        let blocks = most.min(quotient(s.n, s.k)).max(1);
        let b = Blocks { count: blocks, length: quotient(s.n, blocks) };
        let first = self.allocate(&counts(blocks * s.k), None)?;
        let one = Shape::Elem(INT);
        let through = |me: &mut Lowerer, p: &Index, body: Through| {
            me.repeat(b.length, false, &mut |me, t| {
                let j = p.times(b.length).add(t);
                me.where_less(&j, &Index::from(s.n), &mut |me| {
                    let d = me.bucket(s, &j)?;
                    let at = p.times(s.k).add(&d);
                    body(me, &j, (first.view.at(&at)?, first.dest.at(&at)?))
                })
            })
        };
        self.each(blocks, &mut |me, p| {
            me.repeat(s.k, false, &mut |me, d| {
                me.store(&View::Elem(int(0)), &first.dest.at(&p.times(s.k).add(d))?, &one)
            })?;
            through(me, p, &mut |me, _, (seen, counter)| {
                me.store(&sum(seen.expr()?, int(1)), &counter, &one)
            })
        })?;
        let scan = |me: &mut Lowerer| {
            let total = me.from(&View::Elem(int(0)), &one)?;
            me.repeat(s.k, false, &mut |me, d| {
                let before = leaf::bind(&total.view, me)?;
                let before = me.from(&before, &one)?;
                me.repeat(blocks, false, &mut |me, p| {
                    let at = p.times(s.k).add(d);
                    me.scanned(&total, &first, &at)
                })?;
                let here = difference(total.view.expr()?, before.view.expr()?);
                me.store_count(s, &here, &counted.at(d)?)
            })
        };
        match self.context {
            Context::Host => self.single(scan)?,
            _ => scan(self)?,
        }
        self.each(blocks, &mut |me, p| {
            through(me, p, &mut |me, j, (place, counter)| {
                let place = leaf::bind(&place, me)?;
                me.store(&sum(place.expr()?, int(1)), &counter, &one)?;
                me.put_in_place(s, j, &place, to)
            })
        })
    }

    /// The first kernel: counts the elements of each block, for one bucket after the other.
    fn count_in_groups(&mut self, s: Sorting, b: Blocks, first: &Storage) -> Step<()> {
        let (k, copies) = (s.k, self.copies_of_bins(&counts(s.k), true));
        let one = Shape::Elem(INT);
        let id = Term::id(&Ty::Unit);
        self.in_kernel(&id, |me| {
            me.kernel.group = [ITEMS, 1, 1];
            me.spread(MapKind::Wrg(0), b.count, false, &mut |me, g| {
                let own = me.allocate(&counts(k * copies), Some(Space::Local))?;
                me.local(0, k * copies, false, &mut |me, i| {
                    me.store(&View::Elem(int(0)), &own.dest.at(i)?, &one)
                })?;
                me.local(0, ITEMS, false, &mut |me, l| {
                    let copy = l.div_mod(copies).1;
                    me.repeat(b.length / ITEMS, false, &mut |me, t| {
                        let j = g.times(b.length).add(&t.times(ITEMS)).add(l);
                        me.where_less(&j, &Index::from(s.n), &mut |me| {
                            let at = me.bucket(s, &j)?.times(copies).add(&copy);
                            me.atomically(
                                &[(vec![], ScalarOp::Add)],
                                &View::Elem(int(1)),
                                &own.dest.at(&at)?,
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
                    me.store(&all.view, &first.dest.at(&d.times(b.count).add(g))?, &one)
                })
            })
        })
    }

    /// The second kernel: one group replaces each count by the sum of those before it, of lower buckets and of the same
    /// bucket in earlier blocks.
    fn scan_counts(&mut self, s: Sorting, b: Blocks, first: &Storage, to: &Dest) -> Step<()> {
        let one = Shape::Elem(INT);
        let most = i64::try_from(self.options.device.max_work_group_size).unwrap_or(1);
        let [items, scanners] = [SCANNERS[0].min(most), SCANNERS[1].min(most)];
        let (all, each) = (b.count * s.k, quotient(items, scanners));
        let share = quotient(all, items);
        let at = |l: &Index, c: &Index| l.times(share).add(c);
        let id = Term::id(&Ty::Unit);
        self.in_kernel(&id, |me| {
            me.kernel.group = [items, 1, 1];
            me.spread(MapKind::Wrg(0), 1, false, &mut |me, _| {
                let sums = me.allocate(&counts(items), Some(Space::Local))?;
                let parts = me.allocate(&counts(scanners), Some(Space::Local))?;
                me.local(0, items, false, &mut |me, l| {
                    let own = me.from(&View::Elem(int(0)), &one)?;
                    me.repeat(share, false, &mut |me, c| {
                        me.where_less(&at(l, c), &Index::from(all), &mut |me| {
                            let here = first.view.at(&at(l, c))?;
                            me.store(&sum(own.view.expr()?, here.expr()?), &own.dest, &one)
                        })
                    })?;
                    me.store(&own.view, &sums.dest.at(l)?, &one)
                })?;
                me.local(0, scanners, false, &mut |me, p| {
                    let own = me.from(&View::Elem(int(0)), &one)?;
                    me.repeat(each, false, &mut |me, i| {
                        let i = p.times(each).add(i);
                        me.where_less(&i, &Index::from(items), &mut |me| {
                            me.scanned(&own, &sums, &i)
                        })
                    })?;
                    me.store(&own.view, &parts.dest.at(p)?, &one)
                })?;
                me.local(0, items, false, &mut |me, l| {
                    let own = me.from(&sums.view.at(l)?, &one)?;
                    me.repeat(scanners - 1, true, &mut |me, p| {
                        me.where_less(&p.plus(1).times(each), &l.plus(1), &mut |me| {
                            let here = parts.view.at(p)?;
                            me.store(&sum(own.view.expr()?, here.expr()?), &own.dest, &one)
                        })
                    })?;
                    me.repeat(share, false, &mut |me, c| {
                        me.where_less(&at(l, c), &Index::from(all), &mut |me| {
                            me.scanned(&own, first, &at(l, c))
                        })
                    })
                })
            })
        })?;
        self.each(s.k, &mut |me, d| {
            let here = first.view.at(&d.times(b.count))?.expr()?;
            let next = me.from(&View::Elem(int(s.n)), &one)?;
            me.where_less(&d.plus(1), &Index::from(s.k), &mut |me| {
                me.store(&first.view.at(&d.plus(1).times(b.count))?, &next.dest, &one)
            })?;
            me.store_count(s, &difference(next.view.expr()?, here), &to.at(d)?)
        })
    }

    /// The third kernel: stores the elements. If they fit into local memory, the elements of a tile are sorted there first,
    /// so that neighbouring work-items store to neighbouring places.
    fn place_in_groups(&mut self, s: Sorting, b: Blocks, first: &Storage, to: &Dest) -> Step<()> {
        let one = Shape::Elem(INT);
        // An odd length of rows spreads a column over the banks.
        let (k, row, tile) = (s.k, s.k | 1, ITEMS * SHARE);
        let staged = s.elem.is_element() && self.fits_beside_rows(s);
        let parts = parts_of(k);
        let id = Term::id(&Ty::Unit);
        self.in_kernel(&id, |me| {
            me.kernel.group = [ITEMS, 1, 1];
            me.spread(MapKind::Wrg(0), b.count, false, &mut |me, g| {
                // For each bucket: how many elements the tile has, their first place in the tile and how much further it is in
                // the result, and the first place in the result for the next tile.
                let [here, start, further, next] =
                    [(); 4].map(|()| me.allocate(&counts(k), Some(Space::Local)));
                let (here, start, further, next) = (here?, start?, further?, next?);
                let rows = me.allocate(&counts(ITEMS * row), Some(Space::Local))?;
                let sums = me.allocate(&counts(parts * row), Some(Space::Local))?;
                let stage = match staged {
                    true => {
                        let values = Shape::Array(tile, Box::new(s.elem.clone()));
                        let values = me.allocate(&values, Some(Space::Local))?;
                        Some((values, me.allocate(&counts(tile), Some(Space::Local))?))
                    }
                    false => None,
                };
                me.local(0, k, false, &mut |me, d| {
                    me.store(&first.view.at(&d.times(b.count).add(g))?, &next.dest.at(d)?, &one)
                })?;
                me.repeat(b.length / tile, false, &mut |me, t| {
                    let from = g.times(b.length).add(&t.times(tile));
                    // Neighbouring work-items have shares of different parts: then the counters that are scanned together are
                    // a row apart, too.
                    let through = |me: &mut Lowerer, l: &Index, body: InTile| {
                        let (within, part) = l.div_mod(parts);
                        let share = part.times(ITEMS / parts).add(&within);
                        me.repeat(SHARE, true, &mut |me, j| {
                            let j = from.add(&share.times(SHARE)).add(j);
                            me.where_less(&j, &Index::from(s.n), &mut |me| {
                                let d = me.bucket(s, &j)?;
                                body(me, &j, &d)
                            })
                        })
                    };
                    me.local(0, ITEMS, false, &mut |me, l| {
                        me.repeat(row, false, &mut |me, d| {
                            let at = l.times(row).add(d);
                            me.store(&View::Elem(int(0)), &rows.dest.at(&at)?, &one)
                        })?;
                        through(me, l, &mut |me, _, d| {
                            let at = l.times(row).add(d);
                            let more = sum(rows.view.at(&at)?.expr()?, int(1));
                            me.store(&more, &rows.dest.at(&at)?, &one)
                        })
                    })?;
                    // Each column of counters is scanned in parts, then the sums of the parts.
                    me.local(0, parts * row, false, &mut |me, i| {
                        let own = me.from(&View::Elem(int(0)), &one)?;
                        me.repeat(ITEMS / parts, false, &mut |me, l| {
                            me.scanned(&own, &rows, &l.times(parts * row).add(i))
                        })?;
                        me.store(&own.view, &sums.dest.at(i)?, &one)
                    })?;
                    me.local(0, k, false, &mut |me, d| {
                        let own = me.from(&View::Elem(int(0)), &one)?;
                        me.repeat(parts, false, &mut |me, part| {
                            me.scanned(&own, &sums, &part.times(row).add(d))
                        })?;
                        me.store(&own.view, &here.dest.at(d)?, &one)
                    })?;
                    me.local(0, k, false, &mut |me, d| {
                        let own = me.from(&View::Elem(int(0)), &one)?;
                        me.repeat(k - 1, false, &mut |me, lower| {
                            me.where_less(lower, d, &mut |me| {
                                let both = sum(own.view.expr()?, here.view.at(lower)?.expr()?);
                                me.store(&both, &own.dest, &one)
                            })
                        })?;
                        let place = leaf::bind(&next.view.at(d)?, me)?.expr()?;
                        let more = difference(place.clone(), own.view.expr()?);
                        me.store(&more, &further.dest.at(d)?, &one)?;
                        me.store(&own.view, &start.dest.at(d)?, &one)?;
                        me.store(&sum(place, here.view.at(d)?.expr()?), &next.dest.at(d)?, &one)
                    })?;
                    me.local(0, ITEMS, false, &mut |me, l| {
                        let part = l.div_mod(parts).1;
                        through(me, l, &mut |me, j, d| {
                            let at = l.times(row).add(d);
                            let rank = leaf::bind(&rows.view.at(&at)?, me)?.expr()?;
                            me.store(&sum(rank.clone(), int(1)), &rows.dest.at(&at)?, &one)?;
                            let before = sums.view.at(&part.times(row).add(d))?.expr()?;
                            let in_tile = sum(sum(rank, before).expr()?, start.view.at(d)?.expr()?);
                            let in_tile = leaf::bind(&in_tile, me)?.expr()?;
                            let place = sum(in_tile.clone(), further.view.at(d)?.expr()?);
                            let Some((values, places)) = &stage else {
                                return me.put_in_place(s, j, &place, to);
                            };
                            let slot = within(in_tile, tile);
                            me.store(&place, &places.dest.at(&slot)?, &one)?;
                            let value = me.emitted(|| s.values.at(j))?;
                            me.store(&value, &values.dest.at(&slot)?, s.elem)
                        })
                    })?;
                    if let Some((values, places)) = &stage {
                        me.local(0, tile, false, &mut |me, i| {
                            me.where_less(&from.add(i), &Index::from(s.n), &mut |me| {
                                let place = leaf::bind(&places.view.at(i)?, me)?;
                                let at = to.at(&within(place.expr()?, s.n))?;
                                me.store(&values.view.at(i)?, &at, s.elem)
                            })
                        })?;
                    }
                    Ok(())
                })
            })
        })
    }

    /// Whether a tile and the places of its elements fit into three quarters of local memory, with the rows of counters.
    fn fits_beside_rows(&self, s: Sorting) -> bool {
        let tile = Shape::Array(ITEMS * SHARE, Box::new(s.elem.clone()));
        let all = bytes(&tile) + bytes(&counts(ITEMS * SHARE + rows_of(s.k)));
        all <= self.options.device.local_mem_bytes / 4 * 3
    }

    /// Stores a count as a number of the type that the result has.
    fn store_count(&mut self, s: Sorting, n: &View, dest: &Dest) -> Step<()> {
        let n = match s.count {
            Shape::Elem(t) if *t != INT => {
                View::Elem(Expr::Op(ScalarOp::Cast(t.scalar), *t, vec![n.expr()?]))
            }
            _ => n.clone(),
        };
        self.store(&n, dest, s.count)
    }

    /// Adds an element to a total, and replaces it by the total before it.
    fn scanned(&mut self, total: &Storage, array: &Storage, at: &Index) -> Step<()> {
        let one = Shape::Elem(INT);
        let here = leaf::bind(&array.view.at(at)?, self)?;
        self.store(&total.view, &array.dest.at(at)?, &one)?;
        self.store(&sum(total.view.expr()?, here.expr()?), &total.dest, &one)
    }

    /// Returns the bucket of element `j`.
    fn bucket(&mut self, s: Sorting, j: &Index) -> Step<Index> {
        let bucket = self.emitted(|| s.buckets.at(j))?;
        let mut bucket = leaf::bind(&bucket, self)?.expr()?;
        // In the type of the number, which may be wider than an index.
        let t = bucket.ty();
        let mut limit = |op, n: i64| {
            let n = Lit::int(t.scalar, i128::from(n));
            let operands = vec![bucket.clone(), Expr::Lit(n)];
            bucket = Expr::Op(op, t, operands);
        };
        if t.scalar.is_signed() {
            limit(ScalarOp::Max, 0);
        }
        // If the type cannot hold the last bucket, its values are all below it.
        let last = i128::from(s.k - 1);
        if Lit::int(t.scalar, last).as_int() == Some(last) {
            limit(ScalarOp::Min, s.k - 1);
        }
        let bucket = leaf::bind(&View::Elem(bucket), self)?.expr()?;
        Ok(within(bucket, s.k))
    }

    /// Stores element `j` at its place.
    fn put_in_place(&mut self, s: Sorting, j: &Index, place: &View, to: &Dest) -> Step<()> {
        let value = self.emitted(|| s.values.at(j))?;
        self.store(&value, &to.at(&within(place.expr()?, s.n))?, s.elem)
    }
}

/// What is done for an element, at which index it is, and where its counter is.
type Through<'a> = &'a mut dyn FnMut(&mut Lowerer, &Index, (View, Dest)) -> Step<()>;

/// What is done for an element of a tile, at which index it is, and its bucket.
type InTile<'a> = &'a mut dyn FnMut(&mut Lowerer, &Index, &Index) -> Step<()>;

fn quotient(n: i64, k: i64) -> i64 {
    n / k + i64::from(n % k != 0)
}
