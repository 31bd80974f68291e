//! What holds at a point of a kernel: guards around it, and proofs from them.

use super::index::{Atom, Index, UNBOUNDED, Var, clip};
use num_integer::gcd;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// Most sums of an index and facts that a proof tries. A proof that succeeds tries few; with hundreds of facts there are millions.
const MOST_SUMS: usize = 1 << 16;

/// What a proof has tried in vain: how many sums, and those that were tried with further facts, with the numbers of these. The
/// order of facts does not matter.
#[derive(Default)]
struct Tried {
    sums: usize,
    failed: FxHashMap<Index, usize>,
}

/// A conjunction of conditions `index >= 0`, each divided by the common factor of its coefficients
/// (so that the guards of the lanes of a vector that does not straddle the edge are equal).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Guard(pub Vec<Index>);

impl Guard {
    /// `index >= 0`.
    pub fn not_negative(x: &Index) -> Guard {
        let g = x.terms.coefficients().fold(0, gcd);
        Guard(vec![if g > 1 {
            Index { terms: x.terms.scaled(|c| c / g), constant: x.constant.div_euclid(g) }
        } else {
            x.clone()
        }])
    }

    /// `a < b`.
    pub fn less(a: &Index, b: &Index) -> Guard {
        Guard::not_negative(&b.sub(a).plus(-1))
    }

    /// The conjunction of both. A condition that another one implies is dropped.
    #[must_use]
    pub fn and(&self, other: &Guard) -> Guard {
        let mut out: Vec<Index> = vec![];
        for c in self.0.iter().chain(&other.0) {
            let implied = |by: &Index, x: &Index| x.terms == by.terms && x.constant >= by.constant;
            if out.iter().any(|o| implied(o, c)) {
                continue;
            }
            out.retain(|o| !implied(c, o));
            out.push(c.clone());
        }
        Guard(out)
    }

    /// Returns a guard that both imply, if their conditions differ only by constants: the weaker of
    /// each pair.
    pub fn or(&self, other: &Guard) -> Option<Guard> {
        if self.0.len() != other.0.len() {
            return None;
        }
        let mut out = vec![];
        for (a, b) in self.0.iter().zip(&other.0) {
            let d = a.sub(b).as_constant()?;
            out.push(if d >= 0 { a.clone() } else { b.clone() });
        }
        Some(Guard(out))
    }
}

/// Most facts that are learned from one: quotients of quotients have very many bounds.
const LEARNED: usize = 64;

/// Facts that hold at a point of a kernel: a list of indices that are not negative.
#[derive(Clone, Debug, Default)]
pub struct Facts(Vec<Index>);

impl Facts {
    /// Iterates over the facts.
    pub fn iter(&self) -> impl Iterator<Item = &Index> {
        self.0.iter()
    }

    /// Returns the facts with the conditions of the guard added.
    #[must_use]
    pub fn with(&self, g: &Guard) -> Facts {
        let mut out = self.clone();
        g.0.iter().for_each(|c| out.learn(c.clone()));
        out
    }

    /// Returns the facts with the negation of the guard added, if the guard is a single condition.
    #[must_use]
    pub fn without(&self, g: &Guard) -> Facts {
        let mut out = self.clone();
        if let [c] = g.0.as_slice() {
            out.learn(c.times(-1).plus(-1));
        }
        out
    }

    /// Returns the facts with `lo <= v < hi` added.
    #[must_use]
    pub fn with_loop(&self, v: &Var, lo: &Index, hi: &Index) -> Facts {
        let x = Index::from(v.clone());
        let mut out = self.clone();
        out.learn(x.sub(lo));
        out.learn(hi.sub(&x).plus(-1));
        out
    }

    /// Adds a fact, and the facts without minima, maxima, quotients and remainders that follow from it.
    fn learn(&mut self, fact: Index) {
        let mut open = vec![fact];
        let most = self.0.len() + LEARNED;
        while let Some(f) = open.pop().filter(|_| self.0.len() < most) {
            // Numbers that were clamped say nothing.
            if !f.is_exact() {
                continue;
            }
            for (a, c) in f.terms() {
                let mut rest = f.clone();
                rest.terms.put(a, -c);
                match a {
                    // `min(x, y)` is at most `x` and `y`; `max(x, y)` is at least `x` and `y`.
                    Atom::Min(x, y) if c > 0 => {
                        open.extend([rest.add(&x.times(c)), rest.add(&y.times(c))]);
                    }
                    Atom::Max(x, y) if c < 0 => {
                        open.extend([rest.add(&x.times(c)), rest.add(&y.times(c))]);
                    }
                    // `x - (d - 1) <= d * (x / d) <= x`; the bounds of split loops have this form.
                    Atom::Div(x, d) => {
                        let most = if c > 0 { (**x).clone() } else { x.plus(1 - d) };
                        open.push(rest.times(*d).add(&most.times(c)));
                    }
                    // `x - d * greatest quotient <= x % d <= x` if `x` is not negative; borders of joined dimensions have
                    // this form. `x / k % d` is the quotient of `x % (k * d)` by `k`.
                    Atom::Mod(x, d) => {
                        if let Some((y, k)) = x.as_quotient() {
                            let both = y.rem(k.saturating_mul(*d));
                            let most = if c > 0 { both } else { both.plus(1 - k) };
                            open.push(rest.times(k).add(&most.times(c)));
                        }
                        let (lo, hi) = self.bounds(x);
                        if lo >= 0 && i128::from(hi) < UNBOUNDED {
                            let most = if c > 0 { (**x).clone() } else { x.plus(-(hi - hi % d)) };
                            open.push(rest.add(&most.times(c)));
                        }
                    }
                    _ => {}
                }
            }
            if !self.0.contains(&f) {
                self.0.push(f);
            }
        }
    }

    /// Whether `x >= 0` follows from ranges and at most two facts.
    pub fn prove(&self, x: &Index) -> bool {
        self.prove_in(x, 2)
    }

    /// As [`Facts::prove`], with at most one fact.
    pub fn prove_at_once(&self, x: &Index) -> bool {
        self.prove_in(x, 1)
    }

    /// As [`Facts::prove`], also with the ranges that facts give to dividends: of `x < n * m` follows `x / m < n`.
    pub fn prove_with_quotients(&self, x: &Index) -> bool {
        self.prove_in(x, 2) || self.least(x) >= 0
    }

    /// As [`Facts::prove`], with twice as many facts, and with what they say about dividends. An
    /// element of a batch of matrices whose three dimensions are all padded is in bounds because of
    /// one condition for each dimension. Meant for proofs that must succeed, not for simplification.
    pub fn prove_hard(&self, x: &Index) -> bool {
        // Most proofs need few facts, and are found soon if proofs with more are not tried before.
        if self.prove_in(x, 1) || self.prove_in(x, 2) || self.least(x) >= 0 {
            return true;
        }
        let narrow = |v: &Var| Some(Index::from(self.narrow(v)));
        let facts = Facts(self.iter().map(|f| f.substitute(&narrow)).collect());
        let narrowed = x.substitute(&narrow);
        let facts = facts.about_quotients(&narrowed);
        facts.prove_in(&narrowed, 2)
            || self.about_places().is_some_and(|facts| facts.prove_in(x, 2))
            || self.prove_in(x, 4)
            || facts.prove_in(&narrowed, 4)
    }

    /// Returns the facts, with what facts about the row `y / d` and about the column `y % d` say about `y`: from `y / d >= a` and
    /// `y % d >= b` follows `y >= a * d + b`. So what lies within the border of an image is a place of the image. `None` if there are no such
    /// facts.
    fn about_places(&self) -> Option<Facts> {
        let mut out = self.clone();
        let most = out.0.len() + LEARNED;
        for column in &self.0 {
            for (a, c) in column.terms() {
                let Atom::Mod(y, d) = a else { continue };
                let is_row = |a: &Atom| match a {
                    Atom::Div(z, k) => (z, k) == (y, d),
                    Atom::Mod(z, _) => z.as_quotient() == Some((&**y, *d)),
                    _ => false,
                };
                for row in &self.0 {
                    let Some((_, k)) = row.terms().find(|(a, _)| is_row(a)) else { continue };
                    let whole = c.saturating_mul(*d);
                    let g = gcd(k, whole);
                    if k.signum() == c.signum() && out.0.len() < most {
                        let place = row.times((whole / g).abs()).add_times(column, (k / g).abs());
                        if place.is_exact() && !out.0.contains(&place) {
                            out.0.push(place);
                        }
                    }
                }
            }
        }
        (out.0.len() > self.0.len()).then_some(out)
    }

    /// Returns the facts, with what they say about quotients in `x`: from `m * y <= r` follows
    /// `y / k <= r / (m * k)`. So the block of a row is a block of the array, if the row is a row of it.
    fn about_quotients(&self, x: &Index) -> Facts {
        let mut out = self.clone();
        for (a, _) in x.terms() {
            let Atom::Div(y, k) = a else { continue };
            for f in &self.0 {
                let Some((m, rest)) = f.about(y) else { continue };
                let quotient = Index::atom(a.clone());
                let Some(most) = m.checked_abs().and_then(|m| m.checked_mul(*k)) else { continue };
                out.learn(if m < 0 {
                    rest.div(most).sub(&quotient)
                } else {
                    // `y >= -rest / m`, rounded up.
                    quotient.sub(&rest.times(-1).plus(m - 1).div(m).div(*k))
                });
            }
        }
        out
    }

    /// Returns a lower bound of `x`: the sum of its terms' bounds, where each quotient has the range
    /// that its dividend has under the facts.
    fn least(&self, x: &Index) -> i64 {
        let terms = x.terms().map(|(a, c)| {
            let (lo, hi) = match a {
                Atom::Div(y, k) => {
                    let (lo, hi) = self.bounds(y);
                    (lo.div_euclid(*k), hi.div_euclid(*k))
                }
                a => a.range(),
            };
            i128::from(c) * i128::from(if c > 0 { lo } else { hi })
        });
        clip(terms.fold(i128::from(x.constant), |sum, t| sum + t.clamp(-UNBOUNDED, UNBOUNDED)))
    }

    /// Inclusive bounds of an index, narrowed by each fact of which a multiple is a multiple of the
    /// index plus a rest.
    fn bounds(&self, x: &Index) -> (i64, i64) {
        let (mut lo, mut hi) = x.range();
        for f in &self.0 {
            let Some((m, rest)) = f.about(x) else { continue };
            let rest = rest.range().1;
            if m > 0 {
                lo = lo.max(-rest.div_euclid(m));
            } else {
                hi = hi.min(rest.div_euclid(-m));
            }
        }
        (lo, hi)
    }

    fn prove_in(&self, x: &Index, depth: usize) -> bool {
        self.prove_untried(x, depth, &mut Tried::default())
    }

    /// Whether `x >= 0` follows from at most `depth` facts. After [`MOST_SUMS`] sums the proof is given up.
    fn prove_untried(&self, x: &Index, depth: usize, tried: &mut Tried) -> bool {
        if x.range().0 >= 0 {
            return true;
        }
        let in_vain = |tried: &Tried| tried.failed.get(x).is_some_and(|most| *most >= depth);
        if depth == 0 || tried.sums > MOST_SUMS || depth > 1 && in_vain(tried) {
            return false;
        }
        // Multiples of the sum, of the facts, and the least value of the sum, as far as ranges tell.
        let mut sums: Vec<(i64, i64, &Index, i64)> = vec![];
        for f in &self.0 {
            // Subtract the multiple of the fact that cancels one of the atoms.
            for (a, c) in f.terms() {
                let k = x.terms.get(a).unwrap_or(0);
                if k == 0 || k.signum() != c.signum() {
                    continue;
                }
                let (of_x, of_f) = if k % c == 0 {
                    (1, (k / c).saturating_neg())
                } else if c % k == 0 {
                    (c / k, -1)
                } else {
                    continue;
                };
                let least = match of_x {
                    1 => x.least_of_sum(f, of_f),
                    m => x.times(m).least_of_sum(f, of_f),
                };
                if least >= 0 {
                    return true;
                }
                tried.sums += 1;
                // The last step asks for the range of a sum only: most sums need not be made for that.
                if depth > 1 || x.has_remainder() || f.has_remainder() {
                    sums.push((least / of_x, of_x, f, of_f));
                }
            }
        }
        // Facts that leave the least to prove are tried first: a proof with one fact for each dimension is among hundreds of
        // facts about lanes that lead nowhere.
        sums.sort_by_key(|(least, ..)| Reverse(*least));
        let done = sums.iter().any(|(_, of_x, f, of_f)| {
            self.prove_untried(&x.times(*of_x).add_times(f, *of_f), depth - 1, tried)
        });
        if !done && depth > 1 {
            tried.failed.insert(x.clone(), depth);
        }
        done
    }

    /// Returns the variable with its range narrowed by each fact on its own. If no value is left,
    /// the range becomes a single value.
    pub fn narrow(&self, v: &Var) -> Var {
        let atom = Atom::Var(v.clone());
        let (mut lo, mut hi) = (v.lo, v.hi);
        for f in &self.0 {
            let c = f.terms.get(&atom).unwrap_or(0);
            let rest = f.sub(&Index::from(v.clone()).times(c)).range().1;
            // A value of `v` is possible only if `c * v + rest >= 0` for the greatest value of
            // `rest`.
            match c.signum() {
                1 => lo = lo.max((-rest).div_euclid(c) + i64::from((-rest).rem_euclid(c) > 0)),
                -1 => hi = hi.min(rest.div_euclid(-c)),
                _ => {}
            }
        }
        let lo = lo.min(v.hi);
        Var { lo, hi: hi.max(lo), ..v.clone() }
    }

    /// Whether the facts are compatible with these values. Facts about variables without a value
    /// are ignored.
    pub fn admit(&self, value: &dyn Fn(&Var) -> Option<i64>) -> bool {
        self.0.iter().all(|fact| fact.eval(value).is_none_or(|x| x >= 0))
    }

    /// Returns whether the guard holds (`Some(true)`), fails (`Some(false)`), or is undecided
    /// (`None`).
    pub fn decide(&self, g: &Guard) -> Option<bool> {
        if g.0.iter().all(|c| self.prove(c)) {
            Some(true)
        } else if g.0.iter().any(|c| self.prove(&c.times(-1).plus(-1))) {
            Some(false)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::ir::testing::{form, var};
    use proptest::prelude::*;

    #[test]
    fn facts_are_exact_and_few() {
        // Numbers that were clamped say nothing.
        let facts = |x: Index| Facts::default().with(&Guard::less(&Index::from(-1), &x));
        assert_eq!(facts(var(0, 10).times(1 << 60).add(&var(1, 10))).iter().count(), 0);
        assert_eq!(facts(var(0, 10).times(3)).iter().count(), 1);
        // Each remainder has bounds of its own, and each choice of them gives a fact.
        let part = |id: u32| var(id, 1000).div_mod(7).0.div_mod(5).1;
        let sum = (0..20).fold(Index::from(0), |sum, id| sum.add(&part(id)));
        assert_eq!(facts(sum).iter().count(), LEARNED);
    }

    #[test]
    fn guards_narrow_ranges() {
        let v = Var { id: 0, name: "v".into(), lo: 0, hi: 9 };
        let (x, y) = (Index::from(v.clone()), var(1, 3));
        let range = |g: Guard| {
            let n = Facts::default().with(&g).narrow(&v);
            (n.lo, n.hi)
        };
        assert_eq!(range(Guard::less(&x, &Index::from(4))), (0, 3));
        assert_eq!(range(Guard::less(&Index::from(4), &x)), (5, 9));
        // First 33 < 4 * v + y, with y at most 2; then 4 * v + y < 33, with y at least 0.
        assert_eq!(range(Guard(vec![x.times(4).add(&y).plus(-34)])), (8, 9));
        assert_eq!(range(Guard(vec![Index::from(32).sub(&x.times(4)).sub(&y)])), (0, 8));
        assert_eq!(range(Guard::less(&y, &Index::from(1))), (0, 9));
        // No value satisfies the guard.
        assert_eq!(range(Guard::less(&Index::from(20), &x)), (9, 9));
        assert_eq!(range(Guard::less(&x, &Index::from(-5))), (0, 0));
    }

    #[test]
    fn guards_of_lanes_agree_when_the_width_divides() {
        let i = var(0, 100);
        let n = Index::from(8);
        let g = |l| Guard::less(&i.times(4).plus(l), &n);
        assert_eq!(g(0), g(3));
        let n = Index::from(9);
        let g = |l| Guard::less(&i.times(4).plus(l), &n);
        assert_ne!(g(0), g(3));
        assert_eq!(g(0).and(&g(3)), g(3));
        assert_eq!(g(0).or(&g(3)), Some(g(0)));
    }

    #[test]
    fn facts_decide_guards() {
        let (i, n) = (var(0, 100), var(1, 50));
        let facts = Facts::default().with(&Guard::less(&i, &n));
        assert_eq!(facts.decide(&Guard::less(&i, &n.plus(3))), Some(true));
        assert_eq!(facts.decide(&Guard::less(&n, &i)), Some(false));
        assert_eq!(facts.decide(&Guard::less(&i, &n.plus(-1))), None);
    }

    #[test]
    fn bounds_of_inner_loops_are_relations() {
        // i1 < min(6, 27 - 8 * i0) keeps 8 * i0 + i1 below 27, although the ranges alone do not.
        let (i0, v1) = (var(0, 4), Var { id: 1, name: "v1".into(), lo: 0, hi: 5 });
        let place = i0.times(8).add(&Index::from(v1.clone()));
        let inside = Index::from(26).sub(&place);
        let end = Index::from(6).lesser(&Index::from(27).sub(&i0.times(8)));
        assert!(!Facts::default().prove(&inside));
        assert!(Facts::default().with_loop(&v1, &Index::from(0), &end).prove(&inside));
        // A loop that starts at a maximum starts at or after both operands.
        let past = end.greater(&Index::from(2));
        let facts = Facts::default().with_loop(&v1, &past, &Index::from(6));
        assert!(facts.prove(&Index::from(v1.clone()).plus(-2)));
        assert!(!facts.prove(&inside));
        // A loop that starts at (8 - i0) / 8 starts where 8 * v1 + i0 reaches 1.
        let start = Index::from(8).sub(&i0).div(8);
        let facts = Facts::default().with_loop(&v1, &start, &Index::from(6));
        let place = Index::from(v1).times(8).add(&i0);
        assert!(facts.prove(&place.plus(-1)));
        assert!(!facts.prove(&place.plus(-2)));
    }

    #[test]
    fn a_fact_about_a_variable_bounds_quotients_of_its_multiples() {
        // With i below 5, (2 * i) / 5 is at most 1, and (2 * i) % 5 at most 4.
        let i = var(0, 64);
        let (q, r) = i.times(2).div_mod(5);
        let inside = Index::from(58).sub(&q.times(30)).sub(&r.times(2));
        let facts = Facts::default().with(&Guard::less(&i, &Index::from(5)));
        assert!(facts.prove_hard(&inside.plus(-20)));
        assert!(!facts.prove_hard(&inside.plus(-21)));
        assert!(!Facts::default().prove_hard(&inside));
    }

    #[test]
    fn a_fact_about_a_row_bounds_the_place_in_its_matrix() {
        // Row (i / 7) % 7 of matrix i / 49, below 4, ends before place 28 of its matrix.
        let i = var(0, 342);
        let row = i.div(7).rem(7);
        let place = i.rem(49);
        let before = Facts::default().with(&Guard::less(&row, &Index::from(4)));
        assert!(before.prove_hard(&Index::from(27).sub(&place)));
        assert!(!before.prove_hard(&Index::from(26).sub(&place)));
        let behind = Facts::default().without(&Guard::less(&row, &Index::from(4)));
        assert!(behind.prove_hard(&place.plus(-28)));
        assert!(!behind.prove_hard(&place.plus(-29)));
    }

    #[test]
    fn facts_about_the_row_and_the_column_bound_the_place() {
        // Row i / 16 and column i % 16 of an image of 8 rows with a border of one element.
        let i = var(0, 128);
        let (row, column) = i.div_mod(16);
        let (y, x) = (row.add(&var(1, 3)).plus(-1), column.add(&var(2, 3)).plus(-1));
        let place = y.times(16).add(&x);
        let low = Facts::default().with(&Guard(vec![y.clone(), x.clone()]));
        assert!(low.prove_hard(&place) && !low.prove_hard(&place.plus(-1)));
        assert!(!Facts::default().with(&Guard(vec![x.clone()])).prove_hard(&place));
        let below = |a: &Index, n: i64| Guard::less(a, &Index::from(n));
        let high = Facts::default().with(&below(&y, 8)).with(&below(&x, 16));
        assert!(high.prove_hard(&Index::from(127).sub(&place)));
        assert!(!high.prove_hard(&Index::from(126).sub(&place)));
        // Four columns at a time.
        let (row, four) = var(0, 32).div_mod(4);
        let (y, x) = (row.add(&var(1, 3)).plus(-1), four.plus(-1));
        let place = y.times(16).add(&four.times(4)).add(&var(2, 3)).plus(-1);
        assert!(Facts::default().with(&Guard(vec![y, x])).prove_hard(&place));
    }

    #[test]
    fn a_fact_about_a_row_bounds_the_block_of_the_row() {
        // Rows come in tiles of 16, and lie in blocks of 8: rows 0 to 16 have 3 blocks of 256.
        let (tile, item) = (var(0, 2), var(1, 16));
        let facts = Facts::default()
            .with(&Guard::not_negative(&Index::from(16).sub(&tile.times(16)).sub(&item)));
        let place = tile.times(512).add(&item.div(8).times(256)).add(&item.rem(8).times(32));
        assert!(facts.prove_hard(&Index::from(2 * 256 + 7 * 32).sub(&place)));
        assert!(!facts.prove_hard(&Index::from(2 * 256 - 1).sub(&place)));
        assert!(!Facts::default().prove_hard(&Index::from(3 * 256 - 1).sub(&place)));
        // Four rows at a time, in tiles of 12 and blocks of 6.
        let (tile, four, column) = (var(0, 2), var(1, 3), var(2, 33));
        let facts = Facts::default()
            .with(&Guard::not_negative(&Index::from(16).sub(&tile.times(12)).sub(&four.times(4))));
        let (block, pair) = four.times(2).div_mod(3);
        let place = tile.times(768).add(&block.times(384)).add(&pair.times(64));
        let place = place.add(&column.div(32).times(192)).add(&column.rem(32));
        assert!(facts.prove_hard(&Index::from(1151).sub(&place)));
    }

    #[test]
    fn facts_that_leave_the_least_to_prove_are_tried_first() {
        // The guards of many lanes say less about the row and the column than those of the element itself, which come last.
        let (row, column) =
            (var(0, 64).add(&var(1, 3)).plus(-1), var(2, 64).add(&var(3, 3)).plus(-1));
        let mut facts = Facts::default();
        for lane in (0..40).rev() {
            for x in [&row, &column] {
                let low = Guard::not_negative(&x.plus(lane));
                facts = facts.with(&low).with(&Guard::less(&x.plus(-lane), &Index::from(56)));
            }
        }
        let place = row.times(56).add(&column);
        for (x, holds) in [
            (Index::from(56 * 56 - 1).sub(&place), true),
            (place.clone(), true),
            (place.plus(-1), false),
        ] {
            let mut tried = Tried::default();
            assert_eq!(facts.prove_untried(&x, 2, &mut tried), holds);
            assert!(!holds || tried.sums < 1000, "{} sums", tried.sums);
        }
        // A proof that fails is given up.
        let mut tried = Tried::default();
        assert!(!facts.prove_untried(&place.plus(-1), 4, &mut tried));
        assert!(tried.sums < 2 * MOST_SUMS, "{} sums", tried.sums);
    }

    proptest! {
        #[test]
        fn what_is_proved_holds(
            x in form(), f in form(), a in 0i64..4, b in 0i64..6, c in 0i64..35,
        ) {
            let at = |v: &Var| Some([a, b, c][v.id as usize]);
            let g = Guard::not_negative(&f);
            let holds = f.eval(&at).expect("every variable has a value") >= 0;
            prop_assert_eq!(g.0[0].eval(&at).expect("every variable has a value") >= 0, holds);
            if holds && Facts::default().with(&g).prove_hard(&x) {
                prop_assert!(x.eval(&at).expect("every variable has a value") >= 0);
            }
        }
    }
}
