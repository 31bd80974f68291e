//! Finds races between the work-items of a group: which memory each work-item accesses, and whether
//! two of them may access the same scalar.
//!
//! The code between two points of a group's program makes a set of accesses, each with the
//! work-items that make it. Two accesses are *apart* if no two different work-items touch the same
//! scalar through them. This is proved from the form of their indices; accesses without a proof
//! count as not apart.

use super::meeting::Sites;
use crate::kernel::ir::facts::Guard;
use crate::kernel::ir::index::{Atom, Index, Var};
use crate::kernel::ir::{Block, Expr, LoopKind, Mem, Scope, Stmt};
use indexmap::IndexSet;
use num_integer::gcd;
use rustc_hash::{FxBuildHasher, FxHashSet};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

/// The work-items of a group that make an access.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// All work-items.
    All,
    /// The first work-item.
    Once,
    /// One work-item for each combination of values of these variables; its other numbers are 0.
    Each(BTreeSet<Var>),
}

/// A load or store in memory that work-items share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Access {
    /// The memory.
    pub mem: Mem,
    /// The first scalar.
    pub index: Index,
    /// Number of scalars.
    pub width: usize,
    /// Whether it stores.
    pub write: bool,
    /// Whether it combines a value with the element in one step.
    pub atomic: bool,
    /// The work-items that make the access.
    pub who: Who,
    /// The variable that numbers warps, inside a loop over warps.
    pub warp: Option<Var>,
}

/// The work-items between which data pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Meet {
    /// None: each work-item accesses only its own data.
    Never,
    /// Work-items of the same warp.
    Warp,
    /// Any work-items of the group.
    Group,
}

impl Access {
    /// Returns between which work-items this access and another one of the same group may conflict.
    /// `same` are the variables that have the same value in both: the numbers of work-groups, and
    /// the counters of loops of which both accesses are in the same iteration.
    pub fn meets(&self, other: &Access, same: &BTreeSet<u32>) -> Meet {
        if self.mem != other.mem || !(self.write || other.write) || self.atomic && other.atomic {
            return Meet::Never;
        }
        self.meets_in_cases(&self.index, other, &other.index, same)
    }

    /// As [`Access::meets`], at these indices. An expression of few values that has the same value in both is tried with
    /// each value: it selects the part of a memory that is used and the part that is filled, which take turns in the
    /// steps of a loop.
    fn meets_in_cases(
        &self,
        here: &Index,
        other: &Access,
        there: &Index,
        same: &BTreeSet<u32>,
    ) -> Meet {
        let Some(turn) = turn(here, there, same) else {
            return self.meets_at(here, other, there, same);
        };
        let at = |i: &Index, value: i64| {
            i.terms().fold(i.clone(), |all, (atom, weight)| match in_turn(atom, turn, value) {
                Some(x) => all.sub(&i.part(atom)).plus(weight.saturating_mul(x)),
                None => all,
            })
        };
        let (lo, hi) = turn.range();
        let of_value = |x: i64| self.meets_in_cases(&at(here, x), other, &at(there, x), same);
        (lo..=hi).map(of_value).max().unwrap_or(Meet::Never)
    }

    fn meets_at(&self, here: &Index, other: &Access, there: &Index, same: &BTreeSet<u32>) -> Meet {
        let both = [(here, self.width), (there, other.width)];
        let apart_in = |vars: &mut dyn Iterator<Item = &Var>| apart(both, vars, same);
        match (&self.who, &other.who) {
            (Who::Once, Who::Once) => return Meet::Never,
            // The accesses touch different places, whichever work-items make them.
            _ if separate(both, same) => return Meet::Never,
            (Who::Each(a), Who::Each(b))
                if apart_in(&mut a.iter().chain(b))
                    // Enumeration is slow. It is meant for blocks that are stored transposed:
                    // columns written as rows.
                    || (a == b
                        && self.write
                        && other.write
                        && tried_apart(both, a, same) == Some(true)) =>
            {
                return Meet::Never;
            }
            _ => {}
        }
        // Within a warp if one warp works alone, or if each warp has a slice of its own.
        match (&self.warp, &other.warp) {
            (Some(v), Some(w)) if apart_in(&mut [v, w].into_iter()) => Meet::Warp,
            _ => Meet::Group,
        }
    }
}

fn weight(i: &Index, atom: &Atom) -> i64 {
    i.terms().find(|(x, _)| *x == atom).map_or(0, |t| t.1)
}

/// Most values of an expression that are tried: parts of a memory that take turns.
const TURNS: i64 = 4;

/// Returns an expression of few values in the indices that has the same value in both.
fn turn<'a>(a: &'a Index, b: &'a Index, same: &BTreeSet<u32>) -> Option<&'a Atom> {
    a.terms().chain(b.terms()).map(|(atom, _)| atom).find(|atom| match atom {
        // A variable with the same weight in both indices cancels out, so its values need not be
        // tried.
        Atom::Var(v) => {
            v.hi - v.lo == 1 && same.contains(&v.id) && weight(a, atom) != weight(b, atom)
        }
        Atom::Mod(x, 2..=TURNS) => {
            let mut common = !x.has_data();
            x.visit_vars(&mut |v| common &= same.contains(&v.id));
            common
        }
        _ => false,
    })
}

/// Returns the value of an expression where `turn` has this value, if the one follows from the other.
fn in_turn(atom: &Atom, turn: &Atom, value: i64) -> Option<i64> {
    match (atom, turn) {
        (Atom::Mod(x, m), Atom::Mod(y, n)) if m == n => {
            Some((value + x.sub(y).as_constant()?).rem_euclid(*m))
        }
        _ => (atom == turn).then_some(value),
    }
}

/// Whether two accesses touch no scalar in common, whichever work-items make them. The ranges of
/// the two places must not overlap; variables of `same` cancel out.
pub fn separate([(a, wa), (b, wb)]: [(&Index, usize); 2], same: &BTreeSet<u32>) -> bool {
    let range = |i: &Index, other: &Index| {
        let other = summands(other);
        let mut ends = (i128::from(i.constant()), i128::from(i.constant()));
        for (summand, (c, lo, hi)) in summands(i) {
            let fixed = matches!(&summand, Summand::Var(id) if same.contains(id))
                && other.get(&summand).is_some_and(|o| o.0 == c);
            if !fixed {
                let (x, y) = (i128::from(c) * i128::from(lo), i128::from(c) * i128::from(hi));
                ends = (ends.0 + x.min(y), ends.1 + x.max(y));
            }
        }
        ends
    };
    let (p, q) = (range(a, b), range(b, a));
    let width = |w: usize| i128::try_from(w).unwrap_or(i128::MAX / 2);
    p.1 + width(wa) <= q.0 || q.1 + width(wb) <= p.0
}

/// Whether two accesses never touch the same scalar if their workers differ in at least one of
/// `vars`. All other variables may have different values in the two accesses, except those in
/// `same`.
///
/// The difference of the two indices is a sum of weights times differences of variables. Read as a
/// number in mixed radix, it is zero only if every digit is zero, provided that the weight of each
/// digit exceeds the largest sum of the lower digits. Terms that weigh less than each of `vars`
/// form the lowest digit, which may have any value.
pub fn apart(
    accesses: [(&Index, usize); 2],
    vars: &mut dyn Iterator<Item = &Var>,
    same: &BTreeSet<u32>,
) -> bool {
    // The widest range of each variable.
    let mut ranges: BTreeMap<u32, (i64, i64)> = BTreeMap::new();
    for v in vars {
        let r = ranges.entry(v.id).or_insert((v.lo, v.hi));
        *r = (r.0.min(v.lo), r.1.max(v.hi));
    }
    let [(a, _), (b, _)] = accesses;
    let (mut left, mut right) = (summands(a), summands(b));
    // Weight and largest difference of each digit.
    let mut digits: Vec<(i128, i128)> = vec![];
    for (id, (lo, hi)) in ranges.into_iter().filter(|(_, (lo, hi))| hi > lo) {
        let c = left.remove(&Summand::Var(id)).map_or(0, |s| s.0);
        if right.remove(&Summand::Var(id)).map_or(0, |s| s.0) != c {
            return false;
        }
        digits.push((i128::from(c).abs(), i128::from(hi) - i128::from(lo)));
    }
    let Some(least) = digits.iter().map(|d| d.0).min() else { return true };
    left.retain(|summand, (c, ..)| {
        let fixed = matches!(summand, Summand::Var(id) if same.contains(id))
            && right.get(summand).is_some_and(|o| o.0 == *c);
        if fixed {
            right.remove(summand);
        }
        !fixed
    });
    let width = accesses.iter().map(|(_, w)| *w).max().unwrap_or(1);
    let width = i128::try_from(width).unwrap_or(i128::MAX / 2);
    let others = left.values().chain(right.values()).map(|(c, ..)| i128::from(*c));
    let shift = i128::from(a.constant()) - i128::from(b.constant());
    if are_lowest(&digits, width, others.chain([shift])) {
        return true;
    }
    // The lowest digit: the scalars that the light terms reach in either index.
    let mut other: Vec<(i128, i128)> = vec![];
    let mut light = [(0, 0), (0, 0)];
    if shift.abs() < least {
        light[0] = (shift, shift);
    } else {
        other.push((shift.abs(), 1));
    }
    for (k, summands) in [&mut left, &mut right].into_iter().enumerate() {
        summands.retain(|_, (c, lo, hi)| {
            let weight = i128::from(*c);
            if weight.abs() >= least {
                return true;
            }
            let ends = (weight * i128::from(*lo), weight * i128::from(*hi));
            light[k] = (light[k].0 + ends.0.min(ends.1), light[k].1 + ends.0.max(ends.1));
            false
        });
        light[k].1 += i128::try_from(accesses[k].1).unwrap_or(i128::MAX / 2);
    }
    let span = (light[0].1 - light[1].0).max(light[1].1 - light[0].0);
    for (summand, (c, lo, hi)) in left {
        // The same term in both indices is one digit, with the values of both.
        let same = right.get(&summand).copied().filter(|o| o.0 == c);
        let (lo, hi) = match same {
            Some((_, l, h)) => (lo.min(l), hi.max(h)),
            None => (lo.min(0), hi.max(0)),
        };
        if same.is_some() {
            right.remove(&summand);
        }
        other.push((i128::from(c).abs(), i128::from(hi) - i128::from(lo)));
    }
    for (c, lo, hi) in right.into_values() {
        other.push((i128::from(c).abs(), i128::from(hi.max(0)) - i128::from(lo.min(0))));
    }
    are_digits(&digits, &other, span).is_some()
}

/// Returns what exceeds the largest sum of all digits, if the weight of each digit exceeds the largest sum of the lower ones,
/// of which the lowest is less than `span`. The digits of `other` between two `digits` are one digit, whose weight is what
/// divides their weights.
fn are_digits(digits: &[(i128, i128)], other: &[(i128, i128)], mut span: i128) -> Option<i128> {
    let mut digits = digits.to_vec();
    digits.sort_unstable();
    digits.push((i128::MAX, 0));
    let mut lightest = 0;
    for (weight, most) in digits {
        let between = other.iter().filter(|(w, _)| lightest <= *w && *w < weight);
        let (common, all) = between.fold((0, 0_i128), |(common, sum), (w, most)| {
            (gcd(common, *w), sum.saturating_add(w.saturating_mul(*most)))
        });
        if all > 0 && common < span || weight < span.saturating_add(all) {
            return None;
        }
        span = span.saturating_add(all).saturating_add(weight.saturating_mul(most));
        lightest = weight;
    }
    Some(span)
}

/// Whether the digits of the workers are the lowest ones: all other terms of the difference are multiples of a number that
/// exceeds the largest sum of these digits. So it is where each element of an array has a place for each work-item.
fn are_lowest(digits: &[(i128, i128)], width: i128, others: impl Iterator<Item = i128>) -> bool {
    let common = others.fold(0, gcd);
    common > 0 && are_digits(digits, &[], width).is_some_and(|span| span <= common)
}

/// As [`apart`], by enumerating which work-item touches which scalar; `None` if there are too many.
fn tried_apart(
    accesses: [(&Index, usize); 2],
    workers: &BTreeSet<Var>,
    same: &BTreeSet<u32>,
) -> Option<bool> {
    const FEW: i64 = 1 << 13;
    // A variable that occurs in both indices only as the same linear term cancels out.
    let plain = |id: &u32| {
        let [a, b] = accesses.map(|(i, _)| i.linear_in(*id).map(|(c, _)| c));
        a.is_some() && a == b
    };
    let same: BTreeSet<u32> = same.iter().copied().filter(plain).collect();
    // Pairs of a scalar and the worker that touches it, given by its position among all workers.
    let touched = |(index, width): (&Index, usize)| -> Option<Vec<(i64, i64)>> {
        let mut vars: Vec<Var> = workers.iter().cloned().collect();
        index.visit_vars(&mut |v| {
            if !same.contains(&v.id) && !vars.contains(v) {
                vars.push(v.clone());
            }
        });
        let width = i64::try_from(width).ok()?;
        let range = |v: &Var| v.hi - v.lo + 1;
        let count = vars.iter().fold(width, |n, v| n.saturating_mul(range(v)));
        if count > FEW || index.has_data() {
            return None;
        }
        // The workers' variables change fastest, so that the position of a worker is a remainder.
        let all = workers.iter().map(range).product::<i64>();
        let mut out = vec![];
        for k in 0..count / width {
            let value = |v: &Var| {
                let mut rest = k;
                for w in &vars {
                    if w.id == v.id {
                        return Some(w.lo + rest % range(w));
                    }
                    rest /= range(w);
                }
                // A variable of `same` is the same linear term of both indices, so any value will
                // do.
                Some(0)
            };
            let at = index.eval(&value)?;
            out.extend((at..at + width).map(|i| (i, k % all)));
        }
        out.sort_unstable();
        out.dedup();
        Some(out)
    };
    let [first, second] = [touched(accesses[0])?, touched(accesses[1])?];
    Some(second.iter().all(|(at, who)| {
        let from = first.partition_point(|(i, _)| i < at);
        first[from..].iter().take_while(|(i, _)| i == at).all(|(_, other)| other == who)
    }))
}

/// A term of an index; variables are identified by their ids.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Summand {
    Var(u32),
    Other(Atom),
}

/// Returns the coefficient and the range of every term except the constant.
fn summands(i: &Index) -> BTreeMap<Summand, (i64, i64, i64)> {
    i.terms()
        .map(|(a, c)| match a {
            Atom::Var(v) => (Summand::Var(v.id), (c, v.lo, v.hi)),
            a => {
                let (lo, hi) = a.range();
                (Summand::Other(a.clone()), (c, lo, hi))
            }
        })
        .collect()
}

/// Returns the memories that work-items share and that code stores to.
pub fn stored(b: &Block) -> BTreeSet<Mem> {
    let mut out = BTreeSet::new();
    for s in b {
        s.visit(&mut |s| {
            if let Stmt::Store(m, ..) | Stmt::Atomic(_, m, ..) = s
                && !matches!(m, Mem::Private(_))
            {
                out.insert(*m);
            }
        });
    }
    out
}

/// Returns the accesses to some memories of a statement that runs in a work-group, outside loops over its
/// work-items.
pub fn accesses(s: &Stmt, of: &BTreeSet<Mem>) -> BTreeSet<Access> {
    let mut out = Accesses { of, found: BTreeSet::new() };
    match s {
        Stmt::Once(b) => out.block(b, &Who::Once, None),
        _ => out.statement(s, &Who::All, None),
    }
    out.found
}

/// The accesses to some memories.
struct Accesses<'a> {
    of: &'a BTreeSet<Mem>,
    found: BTreeSet<Access>,
}

impl Accesses<'_> {
    fn block(&mut self, b: &Block, who: &Who, warp: Option<&Var>) {
        b.iter().for_each(|s| self.statement(s, who, warp));
    }

    fn statement(&mut self, s: &Stmt, who: &Who, warp: Option<&Var>) {
        let mut add = |mem: Mem, index: &Index, width: usize, write: bool, atomic: bool| {
            if self.of.contains(&mem) {
                let (index, who, warp) = (index.clone(), who.clone(), warp.cloned());
                self.found.insert(Access { mem, index, width, write, atomic, who, warp });
            }
        };
        match s {
            Stmt::Store(m, i, e) => add(*m, i, e.ty().width, true, false),
            Stmt::Atomic(_, m, i, _) => add(*m, i, 1, true, true),
            _ => {}
        }
        s.exprs(&mut |e| {
            e.visit(&mut |e| {
                if let Expr::Load(m, t, i) = e {
                    add(*m, i, t.width, false, false);
                }
            });
        });
        match s {
            Stmt::Loop { kind, var, body, .. } if kind.is_local() => {
                let mut vars = match who {
                    Who::Each(vars) => vars.clone(),
                    Who::All | Who::Once => BTreeSet::new(),
                };
                if var.hi > var.lo {
                    vars.insert(var.clone());
                }
                let warp = if *kind == LoopKind::Warp { Some(var) } else { warp };
                self.block(body, &Who::Each(vars), warp);
            }
            Stmt::Once(b) => self.block(b, &Who::Once, None),
            _ => s.blocks().into_iter().for_each(|b| self.block(b, who, warp)),
        }
    }
}

/// Bit that marks a loop variable in accesses of an iteration other than the current one.
const EARLIER: u32 = 1 << 31;

/// The accesses since the last barrier.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Phase {
    /// The accesses, each with whether a barrier of its warp has followed.
    seen: BTreeMap<Access, bool>,
}

impl Phase {
    /// Returns between which work-items data pass if these accesses follow, and the memories
    /// involved; `meets` decides for a pair of accesses.
    pub fn meets(
        &self,
        next: &BTreeSet<Access>,
        meets: &dyn Fn(&Access, &Access) -> Meet,
    ) -> (Meet, BTreeSet<Mem>) {
        let mut worst = Meet::Never;
        let mut mems = BTreeSet::new();
        for (a, ordered) in &self.seen {
            for b in next {
                // Nothing is worse, and the memory is known: the pair adds nothing.
                if worst == Meet::Group && mems.contains(&b.mem) {
                    continue;
                }
                let m = meets(a, b);
                if m == Meet::Never || (m == Meet::Warp && *ordered) {
                    continue;
                }
                worst = worst.max(m);
                mems.insert(b.mem);
            }
        }
        (worst, mems)
    }

    /// Adds the accesses that follow.
    pub fn extend(&mut self, next: impl IntoIterator<Item = Access>) {
        self.seen.extend(next.into_iter().map(|a| (a, false)));
    }

    /// Records a barrier of each warp.
    pub fn warps_meet(&mut self) {
        self.seen.values_mut().for_each(|ordered| *ordered = true);
    }

    /// Records a barrier of the group.
    pub fn group_meets(&mut self) {
        self.seen.clear();
    }

    /// Merges the state of another path to the same point.
    pub fn union(&mut self, other: &Phase) {
        for (a, ordered) in &other.seen {
            let entry = self.seen.entry(a.clone()).or_insert(*ordered);
            *entry &= *ordered;
        }
    }

    /// Ends an iteration of the loop over this variable: the recorded accesses may now belong to
    /// any other iteration.
    pub fn iterated(&mut self, var: &Var) {
        let earlier = Var { id: var.id | EARLIER, ..var.clone() };
        let of_earlier = |v: &Var| (v.id == var.id).then(|| Index::from(earlier.clone()));
        let seen = std::mem::take(&mut self.seen);
        for (mut a, ordered) in seen {
            a.index = a.index.substitute(&of_earlier);
            *self.seen.entry(a).or_insert(true) &= ordered;
        }
    }

    /// Memories that the accesses store to.
    pub fn written(&self) -> impl Iterator<Item = Mem> + '_ {
        self.seen.keys().filter(|a| a.write).map(|a| a.mem)
    }
}

/// Describes a missing barrier in the code of a work-group: two conflicting accesses of different
/// work-items of a group that no barrier orders. Elements that the program itself chooses (scatter)
/// are the program's own responsibility.
pub fn find(b: &Block) -> Option<String> {
    Check { same: group_numbers(b), stored: &stored(b), sites: &OnceCell::new(), whole: b }
        .block(b, &mut Phase::default())
}

/// Describes two conflicting accesses that no barrier can order, because their work-items are in
/// different groups or in none.
pub fn across_groups(b: &Block) -> Option<String> {
    let stored = stored(b);
    let mut all = Accesses { of: &stored, found: BTreeSet::new() };
    let mut vars = BTreeSet::new();
    for s in b {
        s.visit(&mut |s| {
            if let Stmt::Loop { kind: LoopKind::Wrg(_) | LoopKind::Glb(_), var, .. } = s {
                vars.insert(var.clone());
            }
        });
        all.statement(s, &Who::All, None);
    }
    let found = all.found;
    let sites = OnceCell::new();
    let global: Vec<&Access> = found.iter().filter(|a| matches!(a.mem, Mem::Global(_))).collect();
    // Most accesses belong to an unrolled loop, and differ by a constant. Whether two are apart depends on the difference alone.
    let mut shapes: IndexSet<Index, FxBuildHasher> = IndexSet::default();
    let mut shape = |a: &&Access| {
        let constant = a.index.constant();
        let linear = a.index.plus(constant.checked_neg()?);
        Some((shapes.insert_full(linear).0, constant, a.width))
    };
    let shaped: Vec<_> = global.iter().map(|a| (*a, shape(a))).collect();
    let mut known = FxHashSet::default();
    for (a, of_a) in shaped.iter().filter(|(a, _)| a.write) {
        for (l, of_l) in shaped.iter().filter(|(l, _)| !l.write && l.mem == a.mem) {
            let pair = of_a
                .zip(*of_l)
                .and_then(|((s, c, w), (t, d, v))| Some(([s, t], [w, v], c.checked_sub(d)?)));
            if pair.is_some_and(|pair| known.contains(&pair)) {
                continue;
            }
            let both = [(&a.index, a.width), (&l.index, l.width)];
            let kinds = [a, l].map(|x| (&x.index, x.width, x.write));
            let never = || sites.get_or_init(|| Sites::of(b)).never_meet(a.mem, kinds[0], kinds[1]);
            if apart(both, &mut vars.iter(), &BTreeSet::new()) {
                known.extend(pair);
            } else if !never() {
                return Some(format!(
                    "work-groups store `{}[{}]` and others load `{}[{}]`",
                    a.mem, a.index, l.mem, l.index
                ));
            }
        }
    }
    None
}

/// Returns the variables that number work-groups.
pub fn group_numbers(b: &Block) -> BTreeSet<u32> {
    let mut out = BTreeSet::new();
    for s in b {
        s.visit(&mut |s| {
            if let Stmt::Loop { kind: LoopKind::Wrg(_), var, .. } = s {
                out.insert(var.id);
            }
        });
    }
    out
}

/// Adds the variable of a loop outside work-items to those that have the same value, for accesses
/// in one iteration.
pub fn within(same: &BTreeSet<u32>, kind: LoopKind, var: &Var) -> BTreeSet<u32> {
    let mut same = same.clone();
    if kind == LoopKind::Seq {
        same.insert(var.id);
    }
    same
}

struct Check<'a> {
    /// Variables that have the same value in all compared accesses.
    same: BTreeSet<u32>,
    /// The memories that the kernel stores to: others have no conflicts.
    stored: &'a BTreeSet<Mem>,
    /// The accesses of the whole kernel, once they are needed.
    sites: &'a OnceCell<Sites>,
    whole: &'a Block,
}

impl Check<'_> {
    fn block(&self, b: &Block, phase: &mut Phase) -> Option<String> {
        b.iter().find_map(|s| self.stmt(s, phase))
    }

    fn stmt(&self, s: &Stmt, phase: &mut Phase) -> Option<String> {
        match s {
            Stmt::Barrier { scope: Scope::Group, .. } => phase.group_meets(),
            Stmt::Barrier { scope: Scope::Warp, .. } => phase.warps_meet(),
            Stmt::Loop { kind, var, lo, hi, body } if !kind.is_local() => {
                let before = phase.clone();
                let times = if *kind == LoopKind::Seq { 2 } else { 1 };
                let inside = Check { same: within(&self.same, *kind, var), ..*self };
                let found = (0..times).find_map(|_| {
                    let found = inside.block(body, phase);
                    if *kind == LoopKind::Seq {
                        phase.iterated(var);
                    }
                    found
                });
                if hi.sub(lo).range().0 < 1 {
                    phase.union(&before);
                }
                return found;
            }
            Stmt::While(head, go_on, body) => {
                // The loop ends behind its head.
                let test = Stmt::Branch(go_on.clone(), vec![], vec![]);
                let mut ends = Phase::default();
                let mut found = None;
                for _ in 0..2 {
                    found = found
                        .or_else(|| self.block(head, phase))
                        .or_else(|| self.section(&test, phase));
                    ends.union(phase);
                    found = found.or_else(|| self.block(body, phase));
                }
                let found = found
                    .or_else(|| self.block(head, phase))
                    .or_else(|| self.section(&test, phase));
                phase.union(&ends);
                return found;
            }
            Stmt::If(_, a, b) | Stmt::Branch(_, a, b) => {
                let own = match s {
                    Stmt::Branch(c, ..) => Stmt::Branch(c.clone(), vec![], vec![]),
                    _ => Stmt::If(Guard::default(), vec![], vec![]),
                };
                let found = self.section(&own, phase);
                let mut other = phase.clone();
                let found =
                    found.or_else(|| self.block(a, phase)).or_else(|| self.block(b, &mut other));
                phase.union(&other);
                return found;
            }
            _ => return self.section(s, phase),
        }
        None
    }

    fn section(&self, s: &Stmt, phase: &mut Phase) -> Option<String> {
        let next = accesses(s, self.stored);
        for b in &next {
            let before = phase.seen.iter().map(|(a, ordered)| (a, *ordered));
            // The accesses of one stage are not ordered at all. If it stores to several places that are computed from data, they
            // are chosen to differ.
            let chosen = |x: &Access| x.write && x.index.has_data();
            let here = next.range(..b).filter(|a| !chosen(a) || !chosen(b)).map(|a| (a, false));
            for (a, ordered) in before.chain(here) {
                if self.clash(a, b, ordered) {
                    let name = |x: &Access| format!("`{}[{}]`", x.mem, x.index);
                    let verb = |x: &Access| if x.write { "store" } else { "load" };
                    return Some(format!(
                        "work-items {} {} and others {} {} with no barrier between",
                        verb(a),
                        name(a),
                        verb(b),
                        name(b)
                    ));
                }
            }
        }
        phase.extend(next);
        None
    }

    fn clash(&self, a: &Access, b: &Access, ordered: bool) -> bool {
        // Two stages store the same element of global memory only if one of them also reads it,
        // which is a conflict of its own.
        if a.write && b.write && a != b && matches!(a.mem, Mem::Global(_)) {
            return false;
        }
        match a.meets(b, &self.same) {
            Meet::Never => false,
            Meet::Warp => !ordered,
            Meet::Group => !self.never_meet(a, b),
        }
    }

    /// Whether the conditions of two accesses keep them apart, in any iterations of the loops around them.
    fn never_meet(&self, a: &Access, b: &Access) -> bool {
        let original = |i: &Index| {
            let v = |v: &Var| Some(Index::from(Var { id: v.id & !EARLIER, ..v.clone() }));
            i.substitute(&v)
        };
        let (x, y) = (original(&a.index), original(&b.index));
        let sites = self.sites.get_or_init(|| Sites::of(self.whole));
        sites.never_meet(a.mem, (&x, a.width, a.write), (&y, b.width, b.write))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn var(id: u32, n: i64) -> Var {
        Var { id, name: format!("v{id}").into(), lo: 0, hi: n - 1 }
    }

    fn sum(terms: &[(i64, &Var)], constant: i64) -> Index {
        terms
            .iter()
            .fold(Index::from(constant), |s, (c, v)| s.add(&Index::from((*v).clone()).times(*c)))
    }

    fn alone(i: &Index, width: usize, vars: &[Var]) -> bool {
        apart([(i, width); 2], &mut vars.iter(), &BTreeSet::new())
    }

    #[test]
    fn elements_of_work_items() {
        let (l0, l1, i) = (var(0, 32), var(1, 8), var(2, 5));
        let item = [l0.clone()];
        let both = [l0.clone(), l1.clone()];
        assert!(alone(&sum(&[(1, &l0)], 7), 1, &item));
        assert!(!alone(&sum(&[(1, &l0)], 0), 2, &item));
        assert!(alone(&sum(&[(4, &l0)], 0), 4, &item));
        // All rows of work-items share a single row of elements.
        assert!(!alone(&sum(&[(1, &l0)], 0), 1, &both));
        assert!(alone(&sum(&[(1, &l0), (32, &l1)], 0), 1, &both));
        assert!(!alone(&sum(&[(1, &l0), (31, &l1)], 0), 1, &both));
        // Consecutive runs, and elements that are dealt out in rounds.
        assert!(alone(&sum(&[(5, &l0), (1, &i)], 0), 1, &item));
        assert!(!alone(&sum(&[(4, &l0), (1, &i)], 0), 1, &item));
        assert!(alone(&sum(&[(1, &l0), (32, &i)], 0), 1, &item));
        assert!(!alone(&sum(&[(1, &l0), (16, &i)], 0), 1, &item));
    }

    #[test]
    fn places_for_each_work_item_side_by_side() {
        let (w, k, j) = (var(0, 64), var(1, 9), var(2, 9));
        // Element `9*k + j` of 81, and the one 10 places before.
        let at = |c: i64| sum(&[(64 * 9, &k), (64, &j), (1, &w)], 64 * c);
        let apart_at = |a: &Index, b: &Index| {
            apart([(a, 1), (b, 1)], &mut std::iter::once(&w), &BTreeSet::new())
        };
        assert!(apart_at(&at(0), &at(-10)));
        assert!(!apart_at(&at(0), &sum(&[(64 * 9, &k), (64, &j), (1, &w)], 63)));
        assert!(!apart_at(&at(0), &sum(&[(32, &j), (1, &w)], 0)));
        // Vectors of two.
        let two = |c: i64| sum(&[(128, &j), (2, &w)], 128 * c);
        let vectors = |a: &Index, b: &Index| {
            apart([(a, 2), (b, 2)], &mut std::iter::once(&w), &BTreeSet::new())
        };
        assert!(vectors(&two(0), &two(3)));
        assert!(!vectors(&two(0), &sum(&[(127, &j), (2, &w)], 0)));
    }

    #[test]
    fn runs_of_each_work_item_in_a_shared_array() {
        let (g, i, j, k) = (var(0, 4096), var(1, 128), var(2, 512), var(3, 16));
        let apart_at = |a: (&Index, usize), b: (&Index, usize)| {
            apart([a, b], &mut std::iter::once(&g), &BTreeSet::new())
        };
        // Four elements are stored at once, and one of them is loaded.
        let stored = sum(&[(4, &g), (16384, &i)], 0);
        let within = Index::from(j.clone());
        let loaded = within.div(4).times(16384).add(&within.rem(4)).add(&sum(&[(4, &g)], 0));
        assert!(apart_at((&stored, 4), (&loaded, 1)));
        assert!(!apart_at((&stored, 4), (&loaded.plus(1), 1)));
        // What other loops add is a multiple of what all runs take.
        let other = sum(&[(4, &g), (3 * 16384, &j), (5 * 16384, &k)], 0);
        assert!(apart_at((&stored, 4), (&other, 4)));
        assert!(apart_at((&stored, 4), (&other.plus(-32768), 4)));
        assert!(!apart_at((&stored, 4), (&other.plus(8), 4)));
        assert!(!apart_at((&stored, 4), (&sum(&[(4, &g), (16380, &j)], 0), 4)));
    }

    #[test]
    fn slices() {
        // Each lane reads the elements of its own warp in reverse; the slices of other warps are
        // not touched.
        let (warp, lane) = (var(0, 4), var(1, 32));
        let (to, from) = (sum(&[(32, &warp), (1, &lane)], 0), sum(&[(32, &warp), (-1, &lane)], 31));
        let both = [(&to, 1), (&from, 1)];
        assert!(apart(both, &mut [&warp].into_iter(), &BTreeSet::new()));
        assert!(!apart(both, &mut [&warp, &lane].into_iter(), &BTreeSet::new()));
        let shifted = [(&to, 1), (&sum(&[(32, &warp), (-1, &lane)], 32), 1)];
        assert!(!apart(shifted, &mut [&warp].into_iter(), &BTreeSet::new()));
    }

    fn access(index: Index, write: bool, who: &Var) -> Access {
        let who = Who::Each(BTreeSet::from([who.clone()]));
        Access { mem: Mem::Local(0), index, width: 1, write, atomic: false, who, warp: None }
    }

    /// Two halves of 32 elements; each step `i` uses one of them and fills the other.
    #[test]
    fn halves_are_apart_in_one_step() {
        let (l, i) = (var(0, 32), var(1, 9));
        let half = Index::from(i.clone()).rem(2);
        let backwards = Index::from(31).sub(&Index::from(l.clone()));
        let used = access(half.times(32).add(&backwards), false, &l);
        let filled = |half: &Index| access(half.times(32).add(&l.clone().into()), true, &l);
        let other = filled(&Index::from(1).sub(&half));
        let step = BTreeSet::from([1]);
        assert_eq!(used.meets(&other, &step), Meet::Never);
        assert_eq!(other.meets(&used, &step), Meet::Never);
        assert_eq!(other.meets(&other, &step), Meet::Never);
        // In different steps, both accesses may be in the same half, and the half that is filled
        // may be the one that is used.
        assert_eq!(used.meets(&other, &BTreeSet::new()), Meet::Group);
        assert_eq!(used.meets(&filled(&half), &step), Meet::Group);
        assert_eq!(used.meets(&filled(&Index::from(0)), &step), Meet::Group);
        // Halves that overlap.
        let long = access(Index::from(32).sub(&half.times(31)).add(&l.clone().into()), true, &l);
        assert_eq!(used.meets(&long, &step), Meet::Group);
        // The half of an access in an earlier step is unknown.
        let mut phase = Phase::default();
        phase.extend(BTreeSet::from([used.clone()]));
        let meets = |phase: &Phase| {
            phase.meets(&BTreeSet::from([other.clone()]), &|a, b| a.meets(b, &step)).0
        };
        assert_eq!(meets(&phase), Meet::Never);
        phase.iterated(&i);
        assert_eq!(meets(&phase), Meet::Group);
    }

    /// Three parts of 32 elements that take turns; each step `i` uses one of them and fills the one before it.
    #[test]
    fn parts_that_take_turns_are_apart_in_one_step() {
        let (l, i) = (var(0, 32), var(1, 90));
        let turn = |later: i64| Index::from(i.clone()).plus(later).rem(3);
        let at =
            |later: i64, write| access(turn(later).times(32).add(&l.clone().into()), write, &l);
        let backwards = Index::from(31).sub(&Index::from(l.clone()));
        let used = access(turn(0).times(32).add(&backwards), false, &l);
        let step = BTreeSet::from([1]);
        for (later, meet) in
            [(0, Meet::Group), (1, Meet::Never), (2, Meet::Never), (3, Meet::Group)]
        {
            assert_eq!(used.meets(&at(later, true), &step), meet, "{later}");
            assert_eq!(at(later, true).meets(&used, &step), meet, "{later}");
        }
        assert_eq!(used.meets(&at(2, true), &BTreeSet::new()), Meet::Group);
        // Parts that overlap.
        let long = access(turn(2).times(40).add(&l.clone().into()), true, &l);
        assert_eq!(used.meets(&long, &step), Meet::Group);
    }

    #[test]
    fn atomic_operations_do_not_meet_each_other() {
        let l = var(0, 32);
        let add = Access { atomic: true, ..access(Index::from(3), true, &l) };
        assert_eq!(add.meets(&add, &BTreeSet::new()), Meet::Never);
        for write in [false, true] {
            let plain = access(Index::from(3), write, &l);
            assert_eq!(add.meets(&plain, &BTreeSet::new()), Meet::Group);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        /// Accesses that are claimed to be apart are apart for all values of all variables.
        #[test]
        fn apart_is_apart(
            a in (-9i64..10, -9i64..10, -9i64..10, -4i64..5, 1usize..4),
            b in (-9i64..10, -9i64..10, -9i64..10, -4i64..5, 1usize..4),
            far in (-3i64..4, -3i64..4),
            alike in any::<bool>(),
        ) {
            let b = if alike { (a.0, a.1, b.2, b.3, b.4) } else { b };
            let (l0, l1, free, far_free) = (var(0, 4), var(1, 3), var(2, 4), var(3, 2));
            let x = sum(&[(a.0, &l0), (a.1, &l1), (a.2, &free), (12 * far.0, &far_free)], a.3);
            let y = sum(&[(b.0, &l0), (b.1, &l1), (b.2, &free), (12 * far.1, &far_free)], b.3);
            let workers = [l0, l1];
            if !apart([(&x, a.4), (&y, b.4)], &mut workers.iter(), &BTreeSet::new()) {
                return Ok(());
            }
            let [m, n] = [a.4, b.4].map(|len| i64::try_from(len).expect("small"));
            for k in 0..96 * 96 {
                let at = |k: i64| [k % 4, k / 4 % 3, k / 12 % 4, k / 48];
                let (p, q) = (at(k % 96), at(k / 96));
                if p[..2] == q[..2] {
                    continue;
                }
                let i = x.eval(&|v| Some(p[v.id as usize])).expect("every variable has a value");
                let j = y.eval(&|v| Some(q[v.id as usize])).expect("every variable has a value");
                prop_assert!(i + m <= j || j + n <= i, "{} {} {:?} {:?}", x, y, p, q);
            }
        }
    }
}
