//! Stable counting sorts (`countingSort`).
//!
//! The elements are cut into blocks. A first kernel counts how many elements of each block belong to each bucket, a second
//! one turns the counts into the first place of each block's elements in each bucket, and a third one stores the elements,
//! block by block in their order. In one work-item, all elements are one block.
//!
//! On a GPU, work-groups sort blocks (`counting_sort_groups`), and an array of a group is one such block. If it is short, or if the
//! device has no local memory of its own, each work-item finds the place of its elements by comparison with all others.

use super::dest::Dest;
use super::leaf::{self, Emit};
use super::lowerer::{Context, Lowerer};
use super::memory::Storage;
use super::view::{Shape, Step, View, stop, within};
use crate::calculus::scalar::Lit;
use crate::calculus::term::{Op, Space, Term};
use crate::calculus::ty::Ty;
use crate::diag::Code;
use crate::kernel::ir::index::Index;
use crate::kernel::ir::{ElemTy, Expr, Stmt};
use crate::lang::typed::ScalarOp;
use crate::lang::types::ScalarType;

/// Blocks for each compute unit: enough work-items to keep a CPU busy.
const BLOCKS_OF_UNIT: i64 = 16;

/// Counts are numbers of this type.
pub const INT: ElemTy = ElemTy::scalar(ScalarType::I32);

const TRUTH: ElemTy = ElemTy::scalar(ScalarType::Bool);

/// A counting sort of `n` elements into `k` buckets, at least one.
#[derive(Clone, Copy)]
pub struct Sorting<'a> {
    pub k: i64,
    pub n: i64,
    pub buckets: &'a View,
    pub values: &'a View,
    pub elem: &'a Shape,
    /// The type of the counts that are a result.
    pub count: &'a Shape,
}

/// The elements, cut into blocks of one length.
#[derive(Clone, Copy)]
pub struct Blocks {
    pub count: i64,
    pub length: i64,
}

pub fn int(n: i64) -> Expr {
    Expr::Lit(Lit::int(ScalarType::I32, i128::from(n)))
}

pub fn sum(a: Expr, b: Expr) -> View {
    View::Elem(Expr::Op(ScalarOp::Add, INT, vec![a, b]))
}

fn is_zero(a: Expr) -> Expr {
    Expr::Op(ScalarOp::Eq, TRUTH, vec![a, int(0)])
}

pub fn difference(a: Expr, b: Expr) -> View {
    View::Elem(Expr::Op(ScalarOp::Sub, INT, vec![a, b]))
}

/// A place that the algorithm keeps in `0..n`. The minimum of unsigned numbers says so.
pub fn below(at: Expr, n: i64) -> Index {
    const WORD: ElemTy = ElemTy::scalar(ScalarType::U32);
    if at.bounds().is_some_and(|(lo, hi)| lo >= 0 && hi < n) {
        return Index::data(at);
    }
    let at =
        if at.ty() == WORD { at } else { Expr::Op(ScalarOp::Cast(WORD.scalar), WORD, vec![at]) };
    let last = Expr::Lit(Lit::int(ScalarType::U32, i128::from(n - 1)));
    Index::data(Expr::Op(ScalarOp::Min, WORD, vec![at, last]))
}

pub fn counts(n: i64) -> Shape {
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
        if self.context == Context::Group {
            let Shape::Pair(numbers, _) = self.views.shape(&f.ty().dom)? else {
                return stop(Code::Internal, "a counting sort takes two arrays");
            };
            return match self.sort_by_tiles(s, &counted, &to)? {
                true => Ok(()),
                false => self.sort_in_group(s, &numbers, &counted, &to),
            };
        }
        match self.tiles_for(s) {
            Some(tiles) if self.context == Context::Host => {
                self.sort_by_groups(s, &tiles, &counted, &to)
            }
            _ => self.sort_by_items(s, &counted, &to),
        }
    }

    /// Whether a counting sort in a group sorts tiles, so that its results need no memory of its own.
    pub fn sorts_tiles(&self, f: &Term) -> Step<bool> {
        let (k, n) = (self.views.size(&f.sizes()[0])?, self.views.size(&f.sizes()[1])?);
        Ok(self.has_tiles(k, n))
    }

    /// Bytes of local memory that counting sorts in a group need, apart from their arrays.
    pub fn bytes_of_sorts(&self, f: &Term) -> usize {
        let mut most = 0;
        f.visit(&mut |f| {
            if *f.op() == Op::CountingSort
                && let [k, n] = f.sizes()
                && let (Ok(k), Ok(n)) = (self.views.size(k), self.views.size(n))
            {
                most = most.max(self.bytes_to_sort(k, n));
            }
        });
        most
    }

    /// Each work-item of a group puts its elements behind those of lower buckets and behind the earlier ones of the same bucket.
    /// The last element of a bucket knows how many there are. `numbers` is the shape of the numbers of buckets.
    fn sort_in_group(
        &mut self,
        s: Sorting,
        numbers: &Shape,
        counted: &Dest,
        to: &Dest,
    ) -> Step<()> {
        let Shape::Array(_, number) = numbers else {
            return stop(Code::Internal, "the buckets of a counting sort are an array");
        };
        let one = Shape::Elem(INT);
        let keys = self.allocate(numbers, Some(Space::Local))?;
        self.local(0, s.n, false, &mut |me, j| {
            let key = me.bucket_number(s, j)?;
            me.store(&View::Elem(key), &keys.dest.at(j)?, number)
        })?;
        self.local(0, s.k, false, &mut |me, d| {
            me.store_count(s, &View::Elem(int(0)), &counted.at(d)?)
        })?;
        self.local(0, s.n, false, &mut |me, j| {
            let own = leaf::bind(&keys.view.at(j)?, me)?.expr()?;
            let zero = View::Elem(int(0));
            let (lower, before, after) =
                (me.from(&zero, &one)?, me.from(&zero, &one)?, me.from(&zero, &one)?);
            me.repeat(s.n, false, &mut |me, i| {
                let key = leaf::bind(&keys.view.at(i)?, me)?.expr()?;
                let is = |op, a: &Expr, b: &Expr| Expr::Op(op, TRUTH, vec![a.clone(), b.clone()]);
                let same = is(ScalarOp::Eq, &key, &own);
                let [at, here] = [i, j].map(|i| Expr::Index(i.clone(), INT.scalar));
                let beside = |op| is(ScalarOp::And, &same, &is(op, &at, &here));
                let counts = [
                    (&lower, is(ScalarOp::Lt, &key, &own)),
                    (&before, beside(ScalarOp::Lt)),
                    (&after, beside(ScalarOp::Gt)),
                ];
                for (count, c) in counts {
                    let more = Expr::If(c.into(), int(1).into(), int(0).into());
                    me.store(&sum(count.view.expr()?, more), &count.dest, &one)?;
                }
                Ok(())
            })?;
            let place = sum(lower.view.expr()?, before.view.expr()?);
            me.put_in_place(s, j, &place, to)?;
            let last = is_zero(after.view.expr()?);
            me.begin();
            let number = me.bucket(s, j)?;
            let all = sum(before.view.expr()?, int(1));
            me.store_count(s, &all, &counted.at(&number)?)?;
            let block = me.end();
            me.emit(Stmt::Branch(last, block, vec![]))
        })
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
                let before = me.from(&total.view, &one)?;
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
                let place = me.from(&place, &one)?;
                me.store(&sum(place.view.expr()?, int(1)), &counter, &one)?;
                me.put_in_place(s, j, &place.view, to)
            })
        })
    }

    /// Stores a count as a number of the type that the result has.
    pub fn store_count(&mut self, s: Sorting, n: &View, dest: &Dest) -> Step<()> {
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
        // A counter that is a register is copied, as it gets a new value.
        let here = self.from(&array.view.at(at)?, &one)?;
        self.store(&total.view, &array.dest.at(at)?, &one)?;
        self.store(&sum(total.view.expr()?, here.view.expr()?), &total.dest, &one)
    }

    /// Returns the bucket of element `j`.
    pub fn bucket(&mut self, s: Sorting, j: &Index) -> Step<Index> {
        Ok(within(self.bucket_number(s, j)?, s.k))
    }

    /// Returns the number of the bucket of element `j`, as a value of its type that is in `0..k`.
    pub fn bucket_number(&mut self, s: Sorting, j: &Index) -> Step<Expr> {
        let bucket = self.emitted(|| s.buckets.at(j))?.expr()?;
        let known = bucket.bounds().is_some_and(|(lo, hi)| lo >= 0 && hi < s.k);
        let mut bucket = leaf::bind(&View::Elem(bucket), self)?.expr()?;
        if known {
            return Ok(bucket);
        }
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
        leaf::bind(&View::Elem(bucket), self)?.expr()
    }

    /// Stores element `j` at its place.
    fn put_in_place(&mut self, s: Sorting, j: &Index, place: &View, to: &Dest) -> Step<()> {
        let value = self.emitted(|| s.values.at(j))?;
        self.store(&value, &to.at(&within(place.expr()?, s.n))?, s.elem)
    }
}

/// What is done for an element, at which index it is, and where its counter is.
type Through<'a> = &'a mut dyn FnMut(&mut Lowerer, &Index, (View, Dest)) -> Step<()>;

pub fn quotient(n: i64, k: i64) -> i64 {
    n / k + i64::from(n % k != 0)
}
