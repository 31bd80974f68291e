//! Sums of products by matrix instructions, which the work-items of a warp run together.
//!
//! A work-item has a part of a matrix of sums. An instruction adds to four of them, in two rows and two columns: the first
//! row is one of the first half of the part's rows, and the second row has its place in the second half, so that rows
//! that neighbour in a part are loaded as a vector. The same holds for columns. The products of a block are summed in registers of their
//! own, and added to the sums at the end of the block: instructions truncate, and what they truncate is then a small share of a small
//! sum.

use super::dest::Dest;
use super::leaf::{self, Emit};
use super::lowerer::Lowerer;
use super::view::{Shape, Step, View, ill_formed, stop};
use super::words;
use crate::calculus::op::products::{Products, WORDS};
use crate::calculus::scalar::Lit;
use crate::calculus::term::Term;
use crate::diag::Code;
use crate::kernel::ir::index::{Index, Var};
use crate::kernel::ir::walk::with_var_in;
use crate::kernel::ir::{ElemTy, Expr, Mem, Stmt, WARP};
use crate::lang::typed::ScalarOp;
use std::sync::Arc;

const TERMS: i64 = WORDS.cast_signed();

/// Work-items of a warp that have parts beside each other.
const ACROSS: i64 = 4;

/// Most fragments of a part whose sums are in registers together.
const TOGETHER: i64 = 16;

/// The pairs of words that are multiplied, for each sum of the part of a work-item.
struct Operands<'a> {
    x: &'a View,
    of: Products,
    /// Number of the work-item in its group.
    item: Var,
    /// Stands for the place of a word in a row.
    place: Var,
}

/// Whether this is an element of two bytes, and no word.
fn is_half(e: &Expr) -> bool {
    e.ty().scalar.bytes() == 2
}

/// Returns how many elements the second load is after the first one.
fn distance(first: &Expr, second: &Expr) -> Option<i64> {
    match (first, second) {
        (Expr::Load(m, _, a), Expr::Load(n, _, b)) if m == n => b.sub(a).as_constant(),
        _ => None,
    }
}

/// Binds a word to a register.
fn bound(word: Expr, me: &mut Lowerer) -> Step<Expr> {
    match is_half(&word) {
        true => stop(Code::KernelLimit, "matrix instructions on halves that are no matrices"),
        false => leaf::bind(&View::Elem(word), me)?.expr(),
    }
}

impl Operands<'_> {
    /// Returns the words of row `i` and column `j` at a place.
    fn at(&self, i: &Index, j: &Index, place: &Index) -> Step<[Expr; 2]> {
        let n = self.of.in_word().cast_signed();
        let terms = self.x.at(i)?.at(j)?.snd()?;
        let first = terms.at(&place.times(n))?;
        let last = terms.at(&place.times(n).plus(n - 1))?;
        if !first.fst()?.expr()?.is_true() || !last.fst()?.expr()?.is_true() {
            return stop(Code::KernelLimit, "matrix instructions at the end of a reduction");
        }
        let pair = first.snd()?;
        let word = |e: Expr| {
            let whole = if matches!(e, Expr::Load(..)) { Some(&e) } else { words::whole(&e) };
            match whole {
                Some(e) => Ok(e.clone()),
                None => stop(Code::KernelLimit, "matrix instructions on what is not in memory"),
            }
        };
        Ok([word(pair.fst()?.expr()?)?, word(pair.snd()?.expr()?)?])
    }

    /// Whether each work-item loads the same value as the one that `of` gives for it.
    fn is_common(&self, e: &Expr, of: &Index) -> bool {
        let Expr::Load(_, _, at) = e else { return false };
        let is_item = |v: &Var| v.id == self.item.id;
        if *at == at.substitute(&|v| is_item(v).then(|| of.clone())) {
            return true;
        }
        let place = |item: i64, most: bool| {
            let other = |v: &Var| if most { v.hi } else { v.lo };
            at.eval(&|v| Some(if is_item(v) { item } else { other(v) }))
        };
        let same = |item: i64, most: bool| {
            let there = of.eval(&|_| Some(item)).and_then(|item| place(item, most));
            there.is_some() && there == place(item, most)
        };
        (0..=self.item.hi).all(|item| same(item, false) && same(item, true))
    }

    /// Returns the columns to which the results of instruction `j` of each row belong, of the columns of a part. Neighbours are loaded together
    /// as rows of matrices; others are loaded as vectors.
    fn columns_of(&self, j: i64, columns: i64) -> Step<[i64; 2]> {
        let [_, first] = self.at(&0.into(), &0.into(), &self.place.clone().into())?;
        Ok(match self.apart(&first) {
            Some(1) => [2 * j, 2 * j + 1],
            _ if is_half(&first) => [2 * j, 2 * j + 1],
            _ => [j, j + columns / 2],
        })
    }

    /// Returns the element of a column of another work-item, or of a second one, as `half` says.
    fn column(&self, [j, second]: [i64; 2], owner: &Index, half: &Index) -> Step<Expr> {
        let at = |j: i64| self.at(&0.into(), &j.into(), &self.place.clone().into());
        let ([_, first], [_, second]) = (at(j)?, at(second)?);
        if let Some(distance) = distance(&first, &second)
            && let Expr::Load(m, t, i) = self.of_item(&first, owner)
        {
            return Ok(Expr::Load(m, t, i.add(&half.times(distance))));
        }
        stop(Code::KernelLimit, "matrix instructions on columns that are not at one distance")
    }

    /// Returns a load as another work-item does it.
    fn of_item(&self, e: &Expr, item: &Index) -> Expr {
        match e {
            Expr::Load(m, t, at) => {
                let at = at.substitute(&|v| (v.id == self.item.id).then(|| item.clone()));
                Expr::Load(*m, *t, at)
            }
            e => e.clone(),
        }
    }

    /// Returns the index of a load at a place.
    fn there(&self, at: &Index, place: &Index) -> Index {
        at.substitute(&|v| (v.id == self.place.id).then(|| place.clone()))
    }

    /// Returns how far two words of a row lie apart.
    fn apart(&self, word: &Expr) -> Option<i64> {
        let Expr::Load(_, _, at) = word else { return None };
        let place = Index::from(self.place.clone());
        self.there(at, &place.plus(1)).sub(&self.there(at, &place)).as_constant()
    }

    /// Returns the load by which work-items of a warp load a row each of four matrices: `word` gives the word that a work-item has in the first
    /// row of the first matrix, at any place. The matrices are at these places from it.
    fn matrices(&self, word: &Expr, step: &Index, [place, from]: [Index; 2]) -> Option<Expr> {
        let (Expr::Load(m @ Mem::Local(_), t, at), Some(apart)) = (word, self.apart(word)) else {
            return None;
        };
        let at = self.there(at, &step.times(TERMS).add(&place)).add(&from);
        let (turned, at) = match is_half(word) {
            // A row has an element of each of 8 rows of a product. A word has two.
            true => (true, at.add(&Index::from(self.item.clone()).rem(8).times(apart / 2))),
            false => (false, at),
        };
        let width = 16 / t.scalar.bytes();
        let t = ElemTy { width, ..*t };
        // The words of a row lie in memory one after the other.
        let fits = (turned || apart == 1) && at.is_multiple_of(i64::try_from(width).unwrap_or(1));
        fits.then(|| Expr::Matrices(turned, Arc::new(Expr::Load(*m, t, at))))
    }

    /// Whether 8 work-items of each warp, with these numbers in it, have elements that lie in memory one after the other. What `more` says
    /// is added to the place of each.
    fn neighbours(&self, e: &Expr, items: &dyn Fn(i64) -> [i64; 2]) -> bool {
        let Expr::Load(_, _, at) = e else { return false };
        let place = |item: i64, most: bool| {
            let other = |v: &Var| if most { v.hi } else { v.lo };
            at.eval(&|v| Some(if v.id == self.item.id { item } else { other(v) }))
        };
        (0..=self.item.hi).step_by(32).all(|warp| {
            [false, true].into_iter().all(|most| {
                let first = place(warp, most);
                first.is_some()
                    && (0..8).all(|n| {
                        let [item, more] = items(n);
                        place(warp + item, most).map(|at| at + more - n) == first
                    })
            })
        })
    }

    /// Returns the words of a fragment of rows, loaded together: those of rows `i` and `i + further`.
    fn rows_together(&self, i: i64, further: i64, step: &Index) -> Step<Option<Expr>> {
        let at = |i: i64| self.at(&i.into(), &0.into(), &self.place.clone().into());
        let ([first, _], [second, _]) = (at(i)?, at(i + further)?);
        let Some(distance) = distance(&first, &second) else { return Ok(None) };
        let number = Index::from(self.item.clone());
        let lane = number.rem(WARP);
        let warp = number.div(WARP).times(WARP);
        let owner = match is_half(&first) {
            true if !self.neighbours(&first, &|n| [n * ACROSS, 0]) => return Ok(None),
            true => warp,
            false => warp.add(&lane.rem(8).times(ACROSS)),
        };
        let place = lane.div(16).times(ACROSS);
        let from = lane.div(8).rem(2).times(distance);
        Ok(self.matrices(&self.of_item(&first, &owner), step, [place, from]))
    }

    /// Returns the words of two fragments of columns, loaded together: of the columns of other work-items.
    fn columns_together(&self, pairs: [[i64; 2]; 2], step: &Index) -> Step<Option<Expr>> {
        let number = Index::from(self.item.clone());
        let lane = number.rem(WARP);
        let warp = number.div(WARP).times(WARP);
        let at = |j: i64| self.at(&0.into(), &j.into(), &self.place.clone().into());
        let ([_, first], [_, second]) = (at(pairs[0][0])?, at(pairs[0][1])?);
        let Some(half) = distance(&first, &second) else { return Ok(None) };
        let [owner, second] = match is_half(&first) {
            true if !self.neighbours(&first, &|n| [n / 2, n % 2 * half]) => return Ok(None),
            true => [warp, Index::from(0)],
            false => {
                let (across, half) = lane.rem(8).div_mod(2);
                [warp.add(&across), half]
            }
        };
        let of = |pair: [i64; 2]| self.column(pair, &owner, &second);
        let (first, next) = (of(pairs[0])?, of(pairs[1])?);
        let Some(distance) = distance(&first, &next) else { return Ok(None) };
        let place = lane.div(8).rem(2).times(ACROSS);
        Ok(self.matrices(&first, step, [place, lane.div(16).times(distance)]))
    }

    /// Checks that work-items that stand beside each other in a warp have the same rows, those below each other the same columns, and that
    /// each row meets all columns.
    fn check(&self, rows: i64, columns: i64) -> Step<()> {
        let at = |i: i64, j: i64| self.at(&i.into(), &j.into(), &self.place.clone().into());
        let item = Index::from(self.item.clone());
        let beside = item.div(ACROSS).times(ACROSS);
        let below = item.div(WARP).times(WARP).add(&item.rem(ACROSS));
        let first = (0..columns).map(|j| at(0, j)).collect::<Step<Vec<_>>>()?;
        for i in 0..rows {
            let [row, _] = at(i, 0)?;
            for (j, [_, column]) in (0..).zip(&first) {
                let [a, b] = at(i, j)?;
                if a != row
                    || b != *column
                    || j == 0 && !self.is_common(&a, &beside)
                    || i == 0 && !self.is_common(&b, &below)
                {
                    return stop(Code::BadTerm, "parts of a matrix that are no fragments");
                }
            }
        }
        Ok(())
    }
}

impl Lowerer {
    /// Stores the sums of a work-item.
    pub fn sum_products(&mut self, f: &Term, x: &View, dest: &Dest) -> Step<()> {
        let sizes = f.sizes().iter().map(|s| self.views.size(s)).collect::<Step<Vec<_>>>()?;
        let [rows, columns, k] = sizes[..] else { return ill_formed("the sizes of a part") };
        let Some(item) = self.kernel.workers.last().cloned() else {
            return ill_formed("sums of a work-item");
        };
        let whole = (item.hi + 1) % WARP == 0 && self.kernel.local_dims == [0];
        let Some(products) = Products::of(&f.ty().dom) else {
            return ill_formed("the types of products");
        };
        let terms = products.terms().cast_signed();
        if rows % 2 != 0 || columns % 2 != 0 || k % terms != 0 || !whole {
            return stop(Code::KernelLimit, "a part that is no whole number of fragments");
        }
        let steps = k / terms;
        let (id, name) = self.fresh("p");
        let place = Var { id, name, lo: 0, hi: steps * TERMS - 1 };
        let of = Operands { x, of: products, item: item.clone(), place };
        of.check(rows, columns)?;
        let number = Index::from(item.clone());
        let across = number.rem(ACROSS);
        // The column that this work-item loads of a fragment is the first or the second one of another work-item.
        let (across_there, half) = number.rem(WARP).div(ACROSS).div_mod(2);
        let owner = number.div(WARP).times(WARP).add(&across_there);
        let (down, right) = (rows / 2, columns / 2);
        let pairs = (0..right).map(|j| of.columns_of(j, columns)).collect::<Step<Vec<_>>>()?;
        let elsewhere =
            pairs.iter().map(|j| of.column(*j, &owner, &half)).collect::<Step<Vec<Expr>>>()?;
        let sum = ElemTy::scalar(products.sum());
        let t = ElemTy { width: 4, ..sum };
        let apart = products.sums_apart();
        let zero = match sum.scalar.is_float() {
            true => Lit::float(sum.scalar, 0.0),
            false => Lit::int(sum.scalar, 0),
        };
        // Parts whose sums would take too many registers beside the results have few sums at a time.
        let together = match apart && down * right > TOGETHER {
            true => (TOGETHER / 2 / down).max(1),
            false => right,
        };
        // The results of an instruction: two in each of two rows.
        let result = |i: i64, j: i64, lane: i64| {
            let column = usize::try_from(j).ok().and_then(|j| pairs.get(j));
            let column =
                column.map_or(j, |[first, second]| if lane % 2 == 0 { *first } else { *second });
            (Index::from(i + lane / 2 * down), Index::from(column))
        };
        let before = |(i, j): (Index, Index)| x.at(&i)?.at(&j)?.fst()?.expr();
        let places = |step: &Index| [0, ACROSS].map(|p| step.times(TERMS).add(&across).plus(p));
        let of_rows = |me: &mut Lowerer, step: &Index| {
            let mut out = vec![vec![]; usize::try_from(down).unwrap_or(0)];
            for (i, row) in (0..).zip(&mut out) {
                if let Some(all) = of.rows_together(i, down, step)? {
                    let all = leaf::bind(&View::Elem(all), me)?.expr()?;
                    row.extend((0..4).map(|k| all.lane(k)));
                }
            }
            for place in &places(step) {
                for half in 0..2 {
                    for (i, row) in (half * down..).zip(&mut out) {
                        if row.len() < 4 {
                            let [a, _] = of.at(&i.into(), &0.into(), place)?;
                            row.push(bound(a, me)?);
                        }
                    }
                }
            }
            Ok(out)
        };
        // The rows of all steps stay in registers if they meet the columns in several turns.
        let kept = match together < right {
            true => (0..steps).map(|s| of_rows(self, &s.into())).collect::<Step<Vec<_>>>()?,
            false => vec![],
        };
        let turn = usize::try_from(together).unwrap_or(1);
        let turns = pairs.chunks(turn).zip(elsewhere.chunks(turn));
        for (first, (pairs, elsewhere)) in (0..).step_by(turn).zip(turns) {
            let across = i64::try_from(elsewhere.len()).unwrap_or(1);
            let mut sums = vec![];
            for n in 0..down * across {
                let start = match apart {
                    true => Expr::Splat(Arc::new(Expr::Lit(zero)), t.width),
                    false => {
                        let of = |lane| before(result(n / across, first + n % across, lane));
                        Expr::vector((0..4).map(of).collect::<Step<Vec<_>>>()?)
                    }
                };
                sums.push(self.declare(t, Some(start))?);
            }
            let add = |me: &mut Lowerer, step: &Index, rows: &[Vec<Expr>]| {
                let mut of_columns = vec![vec![]; elsewhere.len()];
                for (two, pair) in pairs.chunks_exact(2).zip(of_columns.chunks_exact_mut(2)) {
                    if let Some(all) = of.columns_together([two[0], two[1]], step)? {
                        let all = leaf::bind(&View::Elem(all), me)?.expr()?;
                        let of_one = |n: usize| vec![all.lane(2 * n), all.lane(2 * n + 1)];
                        pair.clone_from_slice(&[of_one(0), of_one(1)]);
                    }
                }
                for place in &places(step) {
                    for (b, column) in elsewhere.iter().zip(&mut of_columns) {
                        if column.len() < 2 {
                            let b = with_var_in(b, of.place.id, place);
                            column.push(bound(b, me)?);
                        }
                    }
                }
                let pairs = rows.iter().flat_map(|a| of_columns.iter().map(move |b| (a, b)));
                sums.iter().zip(pairs).try_for_each(|(sum, (a, b))| {
                    let [a, b] = [a, b].map(|e| Expr::Vector(e.clone()));
                    let parts = vec![Expr::Reg(sum.clone()), a, b];
                    me.emit(Stmt::Set(sum.clone(), Expr::Products(products, parts)))
                })
            };
            if kept.is_empty() {
                self.repeat(steps, false, &mut |me, step| {
                    let rows = of_rows(me, step)?;
                    add(me, step, &rows)
                })?;
            }
            for (step, rows) in (0..).zip(&kept) {
                add(self, &Index::from(step), rows)?;
            }
            for (n, more) in (0..).zip(&sums) {
                for lane in 0..4 {
                    let (i, j) = result(n / across, first + n % across, lane);
                    let more = Expr::Reg(more.clone()).lane(usize::try_from(lane).unwrap_or(0));
                    let after = match apart {
                        true => {
                            let before = before((i.clone(), j.clone()))?;
                            Expr::Op(ScalarOp::Add, sum, vec![before, more])
                        }
                        false => more,
                    };
                    self.store(&View::Elem(after), &dest.at(&i)?.at(&j)?, &Shape::Elem(sum))?;
                }
            }
        }
        Ok(())
    }
}
