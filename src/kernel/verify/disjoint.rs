//! Proves that different work-items store to different scalars.
//!
//! [`race::apart`] understands only linear indices. This module first brings the indices that tiles
//! and permutations produce into that form: a variable under a division is written in digits, and a
//! sum that a condition bounds (a column that must be inside its row) becomes one digit of that
//! range.

use crate::kernel::analysis::race::apart;
use crate::kernel::ir::facts::Facts;
use crate::kernel::ir::index::{Atom, Index, Var};
use std::collections::BTreeSet;

/// Whether workers that differ in at least one of `vars` never store to the same scalar through
/// this index. Each worker stores only where `facts` hold.
pub fn stores_apart(index: &Index, width: usize, vars: &[Var], facts: &Facts) -> bool {
    let (index, vars) = &without_rotations(index, vars);
    let mut all: Vec<Index> = facts.iter().cloned().collect();
    if apart_within(index, width, vars, &all, NESTED) {
        return true;
    }
    all.push(index.clone());
    let (mut all, digits) = in_digits(all, vars.clone());
    let in_digits = all.pop().unwrap_or_default();
    apart_within(&in_digits, width, &digits, &all, NESTED) || tried(index, width, vars, facts)
}

/// Replaces each remainder `(v + c) % k` by a worker's variable of its own if `v` has at most `k` values and occurs
/// nowhere else in the index. Workers that differ in `v` then differ in the remainder.
fn without_rotations(index: &Index, vars: &[Var]) -> (Index, Vec<Var>) {
    let mut index = index.clone();
    let mut number = ROTATED;
    let replaced = vars.iter().map(|v| {
        let rotated = |(a, _): &(&Atom, i64)| match a {
            Atom::Mod(x, k) => v.hi - v.lo < *k && **x == Index::from(v.clone()).plus(x.constant()),
            _ => false,
        };
        let Some((a, c)) = index.terms().find(rotated).map(|(a, c)| (a.clone(), c)) else {
            return v.clone();
        };
        let rest = index.sub(&index.part(&a));
        if rest.mentions(v.id) {
            return v.clone();
        }
        let place = fresh(number, &v.name, 0, a.range().1);
        number += 1;
        index = rest.add(&Index::from(place.clone()).times(c));
        place
    });
    let vars = replaced.collect();
    (index, vars)
}

/// Number of the first variable that stands for a remainder.
const ROTATED: u32 = 2 * MOST;

/// Maximum number of conditions that a proof may use: one for each dimension of a batch of
/// matrices.
const NESTED: u32 = 3;

/// Returns a variable that does not clash with those of the kernel, which are numbered from 0
/// upwards.
fn fresh(number: u32, name: &str, lo: i64, hi: i64) -> Var {
    Var { id: u32::MAX - number, name: name.into(), lo, hi }
}

/// As [`stores_apart`], but limited to what [`apart`] can show if sums that a fact bounds are
/// treated as digits.
fn apart_within(index: &Index, width: usize, vars: &[Var], facts: &[Index], depth: u32) -> bool {
    if apart([(index, width); 2], &mut vars.iter(), &BTreeSet::new()) {
        return true;
    }
    if depth == 0 {
        return false;
    }
    facts.iter().filter_map(|fact| Sum::of(fact, index)).any(|sum| {
        let (inside, mut around): (Vec<Var>, Vec<Var>) =
            vars.iter().cloned().partition(|v| sum.vars.contains(&v.id));
        sum.rest.visit_vars(&mut |v| {
            if around.iter().all(|w| w.id != v.id) {
                around.push(v.clone());
            }
        });
        // Treat the sum as one digit within its bounds. Workers that differ in a variable outside
        // the sum must be apart for every value of that digit. Workers that differ only inside the
        // sum must be apart within the sum.
        let digit = Index::from(fresh(MOST + depth, "sum", sum.lo, sum.hi)).times(sum.times);
        apart_within(&sum.rest.add(&digit), width, &around, facts, depth - 1)
            && apart_within(&sum.whole, width, &inside, facts, depth - 1)
    })
}

/// A sum of variables that occurs, multiplied by a factor, in an index, and the bounds of the sum.
struct Sum {
    /// The sum multiplied by its factor.
    whole: Index,
    /// The index without the sum.
    rest: Index,
    vars: BTreeSet<u32>,
    times: i64,
    lo: i64,
    hi: i64,
}

impl Sum {
    /// Returns the sum that `fact` bounds from above (`hi - sum >= 0`), if the sum is a part of
    /// `index`.
    fn of(fact: &Index, index: &Index) -> Option<Sum> {
        let sum = fact.times(-1).plus(fact.constant());
        let mut vars = BTreeSet::new();
        let mut times = None;
        let mut rest = index.clone();
        for (atom, c) in sum.terms() {
            let Atom::Var(v) = atom else { return None };
            let (there, without) = rest.linear_in(v.id)?;
            rest = without;
            if there == 0 || there % c != 0 || times.is_some_and(|t| t != there / c) {
                return None;
            }
            times = Some(there / c);
            vars.insert(v.id);
        }
        let (lo, hi) = (sum.range().0, fact.constant().min(sum.range().1));
        // The range of a single variable already states its bounds, and a sum without values occurs
        // in no store.
        let useful = vars.len() > 1 && lo <= hi;
        times.filter(|_| useful).map(|times| Sum {
            whole: sum.times(times),
            rest,
            vars,
            times,
            lo,
            hi,
        })
    }
}

/// Enumerates all workers that `facts` admit. Used if there are few of them and the index has no
/// other variables.
fn tried(index: &Index, width: usize, vars: &[Var], facts: &Facts) -> bool {
    const FEW: i64 = 1 << 14;
    let mut known = true;
    index.visit_vars(&mut |v| known &= vars.iter().any(|w| w.id == v.id));
    let count = vars.iter().fold(1i64, |n, v| n.saturating_mul(v.hi - v.lo + 1));
    if !known || count > FEW {
        return false;
    }
    let width = i64::try_from(width).unwrap_or(i64::MAX);
    let mut starts: Vec<i64> = vec![];
    let mut values = vec![0; vars.len()];
    for k in 0..count {
        let mut rest = k;
        for (v, value) in vars.iter().zip(&mut values) {
            let n = v.hi - v.lo + 1;
            *value = v.lo + rest % n;
            rest /= n;
        }
        let place = |v: &Var| vars.iter().position(|w| w.id == v.id);
        let value = |v: &Var| place(v).map(|i| values[i]);
        if !facts.admit(&value) {
            continue;
        }
        let Some(i) = index.eval(&value) else { return false };
        starts.push(i);
    }
    starts.sort_unstable();
    starts.windows(2).all(|w| w[1] - w[0] >= width)
}

/// Maximum number of digits. Divisors are few: tile sizes and lengths of rows.
const MOST: u32 = 16;

/// Rewrites every variable `v` that the last index divides by some `k` as `k * q + r`, in all
/// indices. The simplifier then removes the division, because quotient and remainder are variables
/// of their own. The workers are rewritten in the same digits: two workers differ if one of their
/// digits differs. The digits cover more workers than there are, which is conservative.
fn in_digits(mut all: Vec<Index>, mut workers: Vec<Var>) -> (Vec<Index>, Vec<Var>) {
    for round in 0..MOST / 2 {
        // The last index is the one of the store.
        let Some((v, shift, k)) = all.last().and_then(divided) else { break };
        let (lo, hi) = (v.lo.saturating_add(shift), v.hi.saturating_add(shift));
        let q = fresh(2 * round, &v.name, lo.div_euclid(k), hi.div_euclid(k));
        let r = fresh(2 * round + 1, &v.name, 0, k - 1);
        let whole = Index::from(q.clone()).times(k).add(&Index::from(r.clone())).plus(-shift);
        for index in &mut all {
            *index = index.substitute(&|w| (w.id == v.id).then(|| whole.clone()));
        }
        if let Some(at) = workers.iter().position(|w| w.id == v.id) {
            workers.splice(at..=at, [q, r]);
        }
    }
    (all, workers)
}

/// Finds a variable that stands alone, up to a constant, under a division or remainder. Returns the
/// variable, the constant and the divisor.
fn divided(index: &Index) -> Option<(Var, i64, i64)> {
    index.terms().find_map(|(a, _)| match a {
        Atom::Div(x, k) | Atom::Mod(x, k) => {
            let mut terms = x.terms();
            match (terms.next(), terms.next()) {
                (Some((Atom::Var(v), 1)), None) => Some((v.clone(), x.constant(), *k)),
                _ => divided(x),
            }
        }
        Atom::Min(x, y) | Atom::Max(x, y) => divided(x).or_else(|| divided(y)),
        Atom::Var(_) | Atom::Data(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::ir::facts::Guard;
    use proptest::prelude::*;

    fn var(id: u32, n: i64) -> Var {
        Var { id, name: format!("v{id}").into(), lo: 0, hi: n - 1 }
    }

    fn sum(terms: &[(i64, &Var)]) -> Index {
        let of = |(c, v): &(i64, &Var)| Index::from((*v).clone()).times(*c);
        terms.iter().fold(Index::from(0), |s, t| s.add(&of(t)))
    }

    fn alone(i: &Index, width: usize, vars: &[&Var]) -> bool {
        let vars: Vec<Var> = vars.iter().copied().cloned().collect();
        stores_apart(i, width, &vars, &Facts::default())
    }

    #[test]
    fn permutations_are_tried() {
        let l = var(0, 60);
        let x = Index::from(l.clone());
        let (q, r) = x.div_mod(4);
        let there = q.add(&r.times(15));
        let alike = apart([(&there, 1); 2], &mut [&l].into_iter(), &BTreeSet::new());
        assert!(!alike);
        assert!(alone(&there, 1, &[&l]));
        assert!(!alone(&q, 1, &[&l]));
        // Rows of length 3 over which work-items have 4 columns; only the first 3 columns of each
        // are stored.
        let rows = q.times(3).add(&r);
        assert!(!alone(&rows, 1, &[&l]));
        let few = Facts::default().with(&Guard::less(&r, &Index::from(3)));
        assert!(stores_apart(&rows, 1, &[l], &few));
    }

    #[test]
    fn permutations_of_many_are_shown_by_digits() {
        let (g, row) = (var(0, 6 * 1000 * 35), var(1, 5));
        let (q, r) = Index::from(g.clone()).div_mod(35);
        let (top, mid) = q.div_mod(1000);
        // [6][1000][35] stored as [35][6][1000]; then the same with a row of 5 scalars at each
        // place.
        let there = r.times(6000).add(&top.times(1000)).add(&mid);
        assert!(alone(&there, 1, &[&g]));
        assert!(!alone(&there, 2, &[&g]));
        assert!(alone(&there.times(5).add(&Index::from(row.clone())), 1, &[&g]));
        assert!(!alone(&there.times(4).add(&Index::from(row)), 1, &[&g]));
        // The middle digit is missing.
        assert!(!alone(&r.times(6000).add(&mid), 1, &[&g]));
        // The divided number has a constant added.
        let (q, r) = Index::from(g.clone()).plus(3).div_mod(7);
        assert!(alone(&q.add(&r.times(30_001)), 1, &[&g]));
        assert!(!alone(&q.add(&r.times(29_999)), 1, &[&g]));
    }

    #[test]
    fn rotations_are_permutations() {
        let (row, column) = (var(0, 30_011), var(1, 5));
        let rotated = Index::from(row.clone()).plus(7).rem(30_011);
        let at = rotated.times(5).add(&Index::from(column.clone()));
        let workers = [&row, &column];
        assert!(alone(&at, 1, &workers));
        assert!(!alone(&at, 2, &workers));
        assert!(!alone(&rotated.times(4).add(&Index::from(column.clone())), 1, &workers));
        // Fewer places than rows, and a row that occurs twice.
        let fewer = Index::from(row.clone()).plus(7).rem(30_010);
        assert!(!alone(&fewer, 1, &[&row]));
        assert!(!alone(&rotated.add(&Index::from(row.clone())), 1, &[&row]));
    }

    #[test]
    fn columns_are_inside_their_rows() {
        let (g, l, i) = (var(0, 1000), var(1, 63), var(2, 16));
        let inside = |columns: i64| {
            let column = sum(&[(16, &l), (1, &i)]);
            Facts::default().with(&Guard::less(&column, &Index::from(columns)))
        };
        let at = sum(&[(1000, &g), (16, &l), (1, &i)]);
        // 63 parts of 16 make 1008 columns; without the condition, rows run into each other.
        assert!(!stores_apart(&at, 1, &[g.clone(), l.clone()], &Facts::default()));
        assert!(stores_apart(&at, 1, &[g.clone(), l.clone()], &inside(1000)));
        assert!(stores_apart(&at, 1, std::slice::from_ref(&g), &inside(1000)));
        assert!(!stores_apart(&at, 1, &[g.clone(), l.clone()], &inside(1001)));
        // A work-item that stores two scalars from the last column on reaches the next row.
        assert!(!stores_apart(&at, 2, std::slice::from_ref(&g), &inside(1000)));
        assert!(stores_apart(&at, 2, std::slice::from_ref(&g), &inside(999)));
        assert!(!stores_apart(&at, 2, &[g.clone(), l.clone()], &inside(999)));
        // No condition separates parts that overlap.
        let overlap = sum(&[(1000, &g), (15, &l), (1, &i)]);
        let facts = Facts::default().with(&Guard::less(&sum(&[(15, &l), (1, &i)]), &1000.into()));
        assert!(stores_apart(&overlap, 1, std::slice::from_ref(&g), &facts));
        assert!(!stores_apart(&overlap, 1, &[g, l], &facts));
    }

    #[test]
    fn parts_of_tiles_are_inside_their_matrix() {
        // Rows of 1000 in tiles of 32; each part of a tile is two rows of four.
        let (g1, g0, l, row) = (var(0, 63), var(1, 32), var(2, 64), var(3, 2));
        let (q, r) = Index::from(l.clone()).div_mod(8);
        let column = sum(&[(32, &g0)]).add(&r.times(4));
        let at = sum(&[(16_000, &g1), (1000, &row)]).add(&q.times(2000)).add(&column);
        let workers = [g1, g0, l];
        let inside = |n: i64| Facts::default().with(&Guard::less(&column, &Index::from(n)));
        assert!(!stores_apart(&at, 4, &workers, &Facts::default()));
        assert!(stores_apart(&at, 4, &workers, &inside(997)));
        assert!(!stores_apart(&at, 4, &workers, &inside(1001)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        /// If stores are claimed to be apart under a condition, then they are for all values that
        /// fulfil it.
        #[test]
        fn bounded_is_apart(
            a in (-12i64..13, -6i64..7, -6i64..7),
            f in (-6i64..7, -6i64..7, 0i64..24),
            width in 1usize..3,
            both in any::<bool>(),
        ) {
            let (w, l, i) = (var(0, 4), var(1, 4), var(2, 5));
            let at = sum(&[(a.0, &w), (a.1, &l), (a.2, &i)]);
            let bounded = sum(&[(f.0, &l), (f.1, &i)]);
            let facts = Facts::default().with(&Guard::less(&bounded, &Index::from(f.2)));
            let workers = if both { vec![w, l] } else { vec![w] };
            if !stores_apart(&at, width, &workers, &facts) {
                return Ok(());
            }
            let values = |k: i64| [k % 4, k / 4 % 4, k / 16];
            let stores: Vec<[i64; 3]> =
                (0..80).map(values).filter(|v| f.0 * v[1] + f.1 * v[2] < f.2).collect();
            let who = |v: &[i64; 3]| if both { [v[0], v[1]] } else { [v[0], 0] };
            for p in &stores {
                for q in stores.iter().filter(|q| who(q) != who(p)) {
                    let of = |v: &[i64; 3]| a.0 * v[0] + a.1 * v[1] + a.2 * v[2];
                    prop_assert!((of(p) - of(q)).unsigned_abs() >= width as u64, "{at} {p:?} {q:?}");
                }
            }
        }
    }
}
