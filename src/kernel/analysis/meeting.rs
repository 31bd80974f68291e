//! Proves that two accesses under conditions never touch the same scalar.
//!
//! [`race::separate`](super::race::separate) and [`race::apart`](super::race::apart) look at indices alone. A step of an
//! elimination reads row `k` and stores rows below it: its places are different because of the condition of the store. Here,
//! equality of two places is read as equations between rows and columns, and one of these contradicts what is known where the
//! accesses are made.

use super::conditions::guard;
use crate::kernel::ir::facts::{Facts, Guard};
use crate::kernel::ir::index::{Atom, Index, Var};
use crate::kernel::ir::{Block, Expr, Mem, Stmt};
use crate::lang::typed::ScalarOp;
use std::collections::BTreeSet;

/// What is known about indices at a point of a kernel.
#[derive(Clone, Debug, Default)]
pub struct When {
    /// All of these hold.
    facts: Vec<Index>,
    /// Of each of these, at least one condition fails.
    failed: Vec<Vec<Index>>,
}

/// An access, by its place and by what is known where it is made.
#[derive(Clone, Debug)]
pub struct Site {
    /// The first scalar.
    pub index: Index,
    /// Number of scalars.
    pub width: usize,
    /// What is known.
    pub when: When,
}

/// Greatest number of cases of a proof.
const CASES: usize = 16;

/// Bit that marks the variables of the second access.
const OTHER: u32 = 1 << 30;

impl When {
    /// Inside of a loop. Bounds that are numbers are the range of its variable.
    #[must_use]
    pub fn inside(&self, v: &Var, lo: &Index, hi: &Index) -> When {
        let x = Index::from(v.clone());
        let bounds = [x.sub(lo), hi.sub(&x).plus(-1)];
        self.given(&Guard(bounds.into_iter().filter(|b| b.range().0 < 0).collect()), true)
    }

    /// On one side of a choice.
    #[must_use]
    pub fn given(&self, g: &Guard, holds: bool) -> When {
        let mut out = self.clone();
        // Data may be different whenever it is read.
        let known = |c: &&Index| !c.has_data();
        match g.0.as_slice() {
            conditions if holds => out.facts.extend(conditions.iter().filter(known).cloned()),
            conditions if conditions.iter().any(Index::has_data) => {}
            [c] => out.facts.push(c.times(-1).plus(-1)),
            conditions => out.failed.push(conditions.to_vec()),
        }
        out
    }

    /// On one side of a choice by a condition on data, of which only comparisons of indices are known.
    #[must_use]
    pub fn chosen(&self, c: &Expr, holds: bool) -> When {
        match guard(c) {
            Some((g, same)) => self.given(&g, holds == same),
            None => self.clone(),
        }
    }

    /// On one side of a statement.
    #[must_use]
    pub fn on_side(&self, s: &Stmt, side: bool) -> When {
        match s {
            Stmt::If(g, ..) => self.given(g, side),
            Stmt::Branch(c, ..) => self.chosen(c, side),
            _ => self.clone(),
        }
    }

    /// Calls `f` on all loads in an expression, with what is known where each is made. Lanes of a vector evaluate both sides
    /// of a choice.
    pub fn visit_loads(&self, e: &Expr, f: &mut dyn FnMut(&When, &Expr)) {
        match e {
            Expr::Guarded(g, a, b) => {
                for (side, holds) in [(a, true), (b, false)] {
                    self.given(g, holds).visit_loads(side, f);
                }
                for c in &g.0 {
                    c.visit_data(&mut |e| self.visit_loads(e, f));
                }
            }
            Expr::If(c, a, b) if c.ty().width == 1 => {
                self.visit_loads(c, f);
                for (side, holds) in [(a, true), (b, false)] {
                    self.chosen(c, holds).visit_loads(side, f);
                }
            }
            Expr::Load(_, _, i) => {
                f(self, e);
                i.visit_data(&mut |e| self.visit_loads(e, f));
            }
            Expr::Index(i, _) => i.visit_data(&mut |e| self.visit_loads(e, f)),
            Expr::Lit(_) | Expr::Arg(..) | Expr::Reg(_) => {}
            // The right side is evaluated only if the left one does not decide.
            Expr::Op(op @ (ScalarOp::And | ScalarOp::Or), t, es) if t.width == 1 => {
                let mut here = self.clone();
                for e in es {
                    here.visit_loads(e, f);
                    here = here.chosen(e, *op == ScalarOp::And);
                }
            }
            Expr::Op(_, _, es)
            | Expr::Vector(es)
            | Expr::Checked(_, es)
            | Expr::Products(_, es) => {
                es.iter().for_each(|e| self.visit_loads(e, f));
            }
            Expr::If(c, a, b) => [c, a, b].into_iter().for_each(|e| self.visit_loads(e, f)),
            Expr::Splat(e, _) | Expr::Lane(e, _) | Expr::Matrices(_, e) => self.visit_loads(e, f),
        }
    }

    /// Returns the facts of each case: of everything that fails, one condition.
    fn cases(&self) -> Vec<Vec<Index>> {
        let mut cases = vec![self.facts.clone()];
        for conditions in &self.failed {
            // What is left out makes a proof harder, not wrong.
            if cases.len() * conditions.len() > CASES {
                break;
            }
            let with = |case: &Vec<Index>, c: &Index| {
                let fails = c.times(-1).plus(-1);
                case.iter().cloned().chain([fails]).collect()
            };
            cases = cases
                .iter()
                .flat_map(|case| conditions.iter().map(move |c| with(case, c)))
                .collect();
        }
        cases
    }
}

/// The accesses of a kernel to memory that work-items share.
pub struct Sites {
    /// Each with its memory, and whether it stores.
    all: Vec<(Mem, bool, Site)>,
    /// The variables of loops around the kernel, which do not change in it.
    same: BTreeSet<u32>,
}

impl Sites {
    /// The accesses of this kernel.
    pub fn of(b: &Block) -> Sites {
        let (mut all, mut own, mut used) = (vec![], BTreeSet::new(), BTreeSet::new());
        collect(b, &When::default(), &mut all, &mut own);
        for (_, _, site) in &all {
            let indices = site.when.facts.iter().chain(site.when.failed.iter().flatten());
            indices.chain([&site.index]).for_each(|i| {
                i.visit_vars(&mut |v| {
                    used.insert(v.id);
                });
            });
        }
        Sites { all, same: used.difference(&own).copied().collect() }
    }

    /// Whether no access of the one kind touches what an access of the other one touches. A kind is an index, a number of
    /// scalars, and whether they are stored.
    pub fn never_meet(&self, m: Mem, a: (&Index, usize, bool), b: (&Index, usize, bool)) -> bool {
        let of = |(index, width, write): (&Index, usize, bool)| -> Vec<&Site> {
            let alike = |(n, w, s): &&(Mem, bool, Site)| {
                (*n, *w, s.width, &s.index) == (m, write, width, index)
            };
            self.all.iter().filter(alike).map(|(_, _, s)| s).collect()
        };
        let (a, b) = (of(a), of(b));
        let (Some(first), false) = (b.first(), a.is_empty()) else { return false };
        // Mostly the conditions of one side are enough.
        let anywhere = Site { when: When::default(), ..(*first).clone() };
        a.iter().all(|a| {
            never_meet(a, &anywhere, &self.same) || b.iter().all(|b| never_meet(a, b, &self.same))
        })
    }
}

/// Collects all accesses of a block, and the variables of the loops in it.
fn collect(b: &Block, when: &When, all: &mut Vec<(Mem, bool, Site)>, own: &mut BTreeSet<u32>) {
    for s in b {
        let mut add = |m: Mem, write: bool, index: &Index, width: usize, when: &When| {
            if !matches!(m, Mem::Private(_)) {
                all.push((m, write, Site { index: index.clone(), width, when: when.clone() }));
            }
        };
        match s {
            Stmt::Store(m, i, e) => add(*m, true, i, e.ty().width, when),
            Stmt::Atomic(_, m, i, _) => add(*m, true, i, 1, when),
            _ => {}
        }
        s.exprs(&mut |e| {
            when.visit_loads(e, &mut |when, e| {
                if let Expr::Load(m, t, i) = e {
                    add(*m, false, i, t.width, when);
                }
            });
        });
        match s {
            Stmt::Loop { var, lo, hi, body, .. } => {
                own.insert(var.id);
                collect(body, &when.inside(var, lo, hi), all, own);
            }
            s => {
                let sides = s.blocks().into_iter().zip([true, false]);
                sides.for_each(|(b, side)| collect(b, &when.on_side(s, side), all, own));
            }
        }
    }
}

/// Whether the accesses touch no scalar in common, whichever work-items make them. The variables in `same` have the same value
/// in both accesses.
pub fn never_meet(a: &Site, b: &Site, same: &BTreeSet<u32>) -> bool {
    let other = |i: &Index| {
        i.substitute(&|v| {
            let renamed = Var { id: v.id | OTHER, ..v.clone() };
            (!same.contains(&v.id)).then(|| renamed.into())
        })
    };
    let lane = |number: u32, width: usize| {
        let hi = i64::try_from(width).unwrap_or(i64::MAX).max(1) - 1;
        Index::from(Var { id: OTHER - 1 - number, name: "lane".into(), lo: 0, hi })
    };
    let here = without_data(&a.index, 3).add(&lane(0, a.width));
    let there = other(&without_data(&b.index, 3)).add(&lane(1, b.width));
    let difference = here.sub(&there);
    a.when.cases().iter().all(|x| {
        b.when.cases().iter().all(|y| {
            let facts = x.iter().cloned().chain(y.iter().map(other)).collect();
            is_not_zero(&difference, &Facts::default().with(&Guard(facts)))
        })
    })
}

/// Returns an index with a variable in place of each term that is computed from data, which may be different in the other
/// access. The variables are numbered from `first` backwards.
fn without_data(i: &Index, first: u32) -> Index {
    let (mut out, mut number) = (Index::from(i.constant()), first);
    for (a, c) in i.terms() {
        let part = i.part(a);
        if part.has_data() {
            let (lo, hi) = a.range();
            let v = Var { id: OTHER - number, name: "data".into(), lo, hi };
            out = out.add(&Index::from(v).times(c));
            number += 1;
        } else {
            out = out.add(&part);
        }
    }
    out
}

/// Whether the facts exclude that a difference of two places is zero.
fn is_not_zero(difference: &Index, facts: &Facts) -> bool {
    let digits = digits(difference, facts);
    let sides = |d: &Index| [d.plus(-1), d.times(-1).plus(-1)];
    // What follows from one fact is looked for first: that is fast, and mostly enough.
    if digits.iter().any(|d| sides(d).iter().any(|x| facts.prove_at_once(x))) {
        return true;
    }
    (0..digits.len()).any(|at| {
        let others = digits.iter().enumerate().filter(|(k, _)| *k != at).map(|(_, d)| d);
        let (known, digit) = with_zeros(facts, &digits[at], others);
        sides(&digit).iter().any(|x| known.prove(x))
    })
}

/// Returns facts and a digit in which the variables have the values that make the other digits zero.
fn with_zeros<'a>(
    facts: &Facts,
    digit: &Index,
    others: impl Iterator<Item = &'a Index>,
) -> (Facts, Index) {
    let mut all: Vec<Index> = facts.iter().cloned().chain([digit.clone()]).collect();
    for zero in others {
        let single = zero.terms().find_map(|(a, c)| match a {
            Atom::Var(v) if c.abs() == 1 => zero.linear_in(v.id).map(|(c, rest)| (v.id, c, rest)),
            _ => None,
        });
        let Some((id, c, rest)) = single else { continue };
        let value = rest.times(-c);
        all.iter_mut().for_each(|i| {
            *i = i.substitute(&|v| (v.id == id).then(|| value.clone()));
        });
    }
    let digit = all.pop().unwrap_or_default();
    (Facts::default().with(&Guard(all)), digit)
}

/// Returns the digits of a difference of two places, all of which are zero if the places are equal. The weight of a digit is
/// the length of a row, if the facts show that what is left is less than a row.
fn digits(difference: &Index, facts: &Facts) -> Vec<Index> {
    let mut rest = difference.clone();
    let weights: BTreeSet<i64> =
        rest.terms().map(|(_, c)| c.saturating_abs()).filter(|c| *c > 1).collect();
    let mut out = vec![];
    for weight in weights.into_iter().rev() {
        let (high, low) = rest.split_by(weight);
        let most = Index::from(weight - 1);
        // The constant may belong to either digit.
        let split = [(high.clone(), low.clone()), (high.plus(1), low.plus(-weight))];
        let within = |(_, low): &(Index, Index)| {
            facts.prove_at_once(&most.sub(low)) && facts.prove_at_once(&most.add(low))
        };
        if let Some((high, low)) = split.into_iter().find(within) {
            out.push(high);
            rest = low;
        }
    }
    out.push(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const N: i64 = 6;

    fn var(id: u32) -> Index {
        Index::from(Var { id, name: format!("v{id}").into(), lo: 0, hi: N - 1 })
    }

    /// Element of a matrix of rows of `N` elements, where `less` hold: the one index is less than the other one.
    fn site(row: &Index, column: &Index, less: &[(&Index, &Index)]) -> Site {
        let when = less.iter().fold(When::default(), |w, (a, b)| w.given(&Guard::less(a, b), true));
        Site { index: row.times(N).add(column), width: 1, when }
    }

    /// The counter of the loop around.
    fn same() -> BTreeSet<u32> {
        BTreeSet::from([9])
    }

    #[test]
    fn an_elimination_reads_no_element_that_it_stores() {
        let (i, j, k) = (var(0), var(1), var(9));
        let below = site(&i, &j, &[(&k, &i), (&k, &j)]);
        assert!(never_meet(&site(&k, &j, &[]), &below, &same()));
        assert!(never_meet(&site(&i, &k, &[]), &below, &same()));
        assert!(never_meet(&site(&k, &k, &[]), &below, &same()));
        // Row `k` of another step, rows that are stored, and the row below.
        assert!(!never_meet(&site(&k, &j, &[]), &below, &BTreeSet::new()));
        assert!(!never_meet(&site(&i, &j, &[]), &below, &same()));
        assert!(!never_meet(&site(&k.plus(1), &j, &[]), &below, &same()));
        // The row above, and the element before the first one of row `k`.
        assert!(never_meet(&site(&k.plus(-1), &j, &[]), &below, &same()));
        assert!(never_meet(&site(&k, &Index::from(-1), &[]), &below, &same()));
    }

    #[test]
    fn conditions_of_both_sides_together() {
        let (i, j) = (var(0), var(1));
        // The lower triangle is stored, and the upper one is read.
        let (lower, upper) = (site(&i, &j, &[(&j, &i)]), site(&i, &j, &[(&i, &j)]));
        assert!(never_meet(&upper, &lower, &BTreeSet::new()));
        let mirrored = site(&j, &i, &[(&j, &i)]);
        assert!(never_meet(&mirrored, &lower, &BTreeSet::new()));
        assert!(!never_meet(&site(&j, &i, &[(&i, &j)]), &lower, &BTreeSet::new()));
    }

    #[test]
    fn what_fails_is_one_of_several_conditions() {
        let (i, j, k) = (var(0), var(1), var(9));
        let both = Guard::less(&k, &i).and(&Guard::less(&k, &j));
        let within = Site { when: When::default().given(&both, true), ..site(&i, &j, &[]) };
        let outside = Site { when: When::default().given(&both, false), ..site(&i, &j, &[]) };
        assert!(never_meet(&within, &outside, &same()));
        assert!(!never_meet(&outside, &outside, &same()));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1024))]

        /// Accesses that never meet differ in all scalars, for all values for which both conditions hold.
        #[test]
        fn never_is_never(
            a in (-1i64..2, -1i64..2, -2i64..3, -1i64..2, -1i64..2, -2i64..3),
            b in (-1i64..2, -1i64..2, -2i64..3, -1i64..2, -1i64..2, -2i64..3),
            (first, second) in ((-2i64..3, -2i64..3), (-2i64..3, -2i64..3)),
            (widths, holds) in ((1usize..3, 1usize..3), any::<bool>()),
        ) {
            let (i, j, k) = (var(0), var(1), var(9));
            let sum = |x: i64, y: i64, c: i64| i.times(x).add(&j.times(y)).add(&k.times(1 - x.abs())).plus(c);
            let side = |t: (i64, i64, i64, i64, i64, i64), (x, y): (i64, i64), width, holds| {
                let g = Guard(vec![i.sub(&k).plus(x), j.sub(&k).plus(y)]);
                let when = When::default().given(&g, holds);
                (Site { index: sum(t.0, t.1, t.2).times(N).add(&sum(t.3, t.4, t.5)), width, when }, g)
            };
            let (x, g) = side(a, first, widths.0, holds);
            let (y, h) = side(b, second, widths.1, true);
            if !never_meet(&x, &y, &same()) {
                return Ok(());
            }
            let all = || (0..N * N * N).map(|v| (v % N, v / N % N, v / N / N));
            for (p, q) in all().flat_map(|p| all().map(move |q| (p, q))) {
                if p.2 != q.2 {
                    continue;
                }
                let value = |i: &Index, (a, b, c): (i64, i64, i64)| {
                    i.eval(&|v| Some([a, b, c][v.id.min(2) as usize])).expect("a value")
                };
                let holds_at = |g: &Guard, p| g.0.iter().all(|c| value(c, p) >= 0);
                if holds_at(&g, p) != holds || !holds_at(&h, q) {
                    continue;
                }
                let (m, n) = (value(&x.index, p), value(&y.index, q));
                let [wm, wn] = [x.width, y.width].map(|w| i64::try_from(w).expect("small"));
                prop_assert!(m + wm <= n || n + wn <= m, "{} {} {p:?} {q:?}", x.index, y.index);
            }
        }
    }
}
