//! Which work-items of a group touch what, and whether two of them may meet in memory.
//!
//! What runs between two points of a group's code is a set of accesses, each with who makes it. Two
//! accesses are *apart* when no two different work-items touch one scalar through them; that is
//! shown from the shape of their indices, and taken as not so where it cannot be.

use super::index::{Atom, Guard, Index, Var};
use super::ir::{Block, Expr, LoopKind, Mem, Scope, Stmt};
use std::collections::{BTreeMap, BTreeSet};

/// Which work-items of a group make an access.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// Each of them.
    All,
    /// The first.
    Once,
    /// One for each value of these numbers; where other numbers are, they are 0.
    Each(BTreeSet<Var>),
}

/// A load or store of memory that work-items share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Access {
    /// The memory.
    pub mem: Mem,
    /// The first scalar.
    pub index: Index,
    /// How many scalars.
    pub width: usize,
    /// Whether it stores.
    pub write: bool,
    /// Which work-items.
    pub who: Who,
    /// The number of the warp, where warps are told apart.
    pub warp: Option<Var>,
}

/// Between which work-items data pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Meet {
    /// None: each keeps to its own.
    Never,
    /// Those of one warp.
    Warp,
    /// Any of a group.
    Group,
}

impl Access {
    /// Whether it and another of the same group may make a difference to each other, and between
    /// whom. `same` are the variables that have one value for both: numbers of work-groups, and of loops in one
    /// of whose iterations both are.
    pub fn meets(&self, other: &Access, same: &BTreeSet<u32>) -> Meet {
        if self.mem != other.mem || !(self.write || other.write) {
            return Meet::Never;
        }
        let cases = halves(&self.index, &other.index, same);
        let of_case = |(a, b): &(Index, Index)| self.meets_at(a, other, b, same);
        cases.iter().map(of_case).max().unwrap_or(Meet::Never)
    }

    fn meets_at(&self, here: &Index, other: &Access, there: &Index, same: &BTreeSet<u32>) -> Meet {
        let both = [(here, self.width), (there, other.width)];
        let apart_in = |vars: &mut dyn Iterator<Item = &Var>| apart(both, vars, same);
        match (&self.who, &other.who) {
            (Who::Once, Who::Once) => return Meet::Never,
            // Not even the same places, whoever it is.
            _ if separate(both, same) => return Meet::Never,
            (Who::Each(a), Who::Each(b))
                if apart_in(&mut a.iter().chain(b))
                    // Trying takes time, and is for blocks that are stored across: columns written as rows.
                    || (a == b
                        && self.write
                        && other.write
                        && tried_apart(both, a, same) == Some(true)) =>
            {
                return Meet::Never;
            }
            _ => {}
        }
        // One warp works alone, or each has a slice of its own.
        match (&self.warp, &other.warp) {
            (Some(v), Some(w)) if apart_in(&mut [v, w].into_iter()) => Meet::Warp,
            _ => Meet::Group,
        }
    }
}

/// Two indices for each value of what both have in common and has two values: which half of a memory is used and
/// which is filled changes from step to step of a loop.
fn halves(a: &Index, b: &Index, same: &BTreeSet<u32>) -> Vec<(Index, Index)> {
    let weight = |i: &Index, atom: &Atom| i.terms().find(|(x, _)| *x == atom).map_or(0, |t| t.1);
    let half = a.terms().chain(b.terms()).map(|(atom, _)| atom).find(|atom| match atom {
        // Where it counts the same in both, it is known to be the same without trying.
        Atom::Var(v) => {
            v.hi - v.lo == 1 && same.contains(&v.id) && weight(a, atom) != weight(b, atom)
        }
        Atom::Mod(x, 2) => {
            let mut common = !x.has_data();
            x.visit_vars(&mut |v| common &= same.contains(&v.id));
            common
        }
        _ => false,
    });
    let Some(half) = half else { return vec![(a.clone(), b.clone())] };
    let at = |i: &Index, value: i64| i.sub(&i.part(half)).plus(weight(i, half) * value);
    let (lo, hi) = half.range();
    [lo, hi].iter().flat_map(|x| halves(&at(a, *x), &at(b, *x), same)).collect()
}

/// Whether two accesses touch no scalar in common, whoever makes them: the difference of their places, in
/// which the variables of `same` have one value, leaves no room.
fn separate([(a, wa), (b, wb)]: [(&Index, usize); 2], same: &BTreeSet<u32>) -> bool {
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

/// Whether two accesses by workers that differ in one of `vars` never touch one scalar, whatever the
/// other variables are in either; those in `same` alone have one value.
///
/// The difference of the two indices is a sum of weights times differences of variables. Read as a number in
/// mixed radix, it is zero only where every digit is, as long as each digit's weight exceeds all that the
/// lower ones can come to. What weighs less than any of `vars` is one digit, the lowest, and may be anything.
pub fn apart(
    accesses: [(&Index, usize); 2],
    vars: &mut dyn Iterator<Item = &Var>,
    same: &BTreeSet<u32>,
) -> bool {
    // The longest range of each variable.
    let mut ranges: BTreeMap<u32, (i64, i64)> = BTreeMap::new();
    for v in vars {
        let r = ranges.entry(v.id).or_insert((v.lo, v.hi));
        *r = (r.0.min(v.lo), r.1.max(v.hi));
    }
    let [(a, _), (b, _)] = accesses;
    let (mut left, mut right) = (summands(a), summands(b));
    // Weight and largest difference.
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
    // The lowest digit: from where to where the light summands of either go.
    let mut light = [a, b].map(|i| (i128::from(i.constant()), i128::from(i.constant())));
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
    }
    let width = accesses.iter().map(|(_, w)| *w).max().unwrap_or(1);
    let mut span = (light[0].1 - light[1].0).max(light[1].1 - light[0].0)
        + i128::try_from(width).unwrap_or(i128::MAX / 2);
    for (summand, (c, lo, hi)) in left {
        // The same summand in both is one digit, of whatever values it has in either.
        let other = right.get(&summand).copied().filter(|o| o.0 == c);
        let (lo, hi) = match other {
            Some((_, l, h)) => (lo.min(l), hi.max(h)),
            None => (lo.min(0), hi.max(0)),
        };
        if other.is_some() {
            right.remove(&summand);
        }
        digits.push((i128::from(c).abs(), i128::from(hi) - i128::from(lo)));
    }
    for (c, lo, hi) in right.into_values() {
        digits.push((i128::from(c).abs(), i128::from(hi.max(0)) - i128::from(lo.min(0))));
    }
    digits.sort_unstable();
    digits.into_iter().all(|(weight, most)| {
        let above = weight >= span;
        span = span.saturating_add(weight.saturating_mul(most));
        above
    })
}

/// As [`apart`], by trying: which work-item touches which scalar, where all of that is few; `None` where it is not.
fn tried_apart(
    accesses: [(&Index, usize); 2],
    workers: &BTreeSet<Var>,
    same: &BTreeSet<u32>,
) -> Option<bool> {
    const FEW: i64 = 1 << 13;
    // Those that count for nothing, whatever their value.
    let plain = |id: &u32| {
        let [a, b] = accesses.map(|(i, _)| i.linear_in(*id).map(|(c, _)| c));
        a.is_some() && a == b
    };
    let same: BTreeSet<u32> = same.iter().copied().filter(plain).collect();
    // Which scalars, and by whom: the worker's place among all.
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
        // Workers change fastest, so that the place among them is a remainder.
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
                // What is the same for both counts for nothing: it is a plain summand of both.
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

/// What an index is a sum of, variables by their numbers.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Summand {
    Var(u32),
    Other(Atom),
}

/// Coefficient and range of every summand but the constant.
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

/// The accesses of a statement that runs in a work-group, outside loops over its work-items.
pub fn accesses(s: &Stmt) -> BTreeSet<Access> {
    let mut out = BTreeSet::new();
    match s {
        Stmt::Once(b) => block(b, &Who::Once, None, &mut out),
        _ => statement(s, &Who::All, None, &mut out),
    }
    out
}

fn block(b: &Block, who: &Who, warp: Option<&Var>, out: &mut BTreeSet<Access>) {
    b.iter().for_each(|s| statement(s, who, warp, out));
}

fn statement(s: &Stmt, who: &Who, warp: Option<&Var>, out: &mut BTreeSet<Access>) {
    let mut add = |mem: Mem, index: &Index, width: usize, write: bool| {
        if !matches!(mem, Mem::Private(_)) {
            let (index, who, warp) = (index.clone(), who.clone(), warp.cloned());
            out.insert(Access { mem, index, width, write, who, warp });
        }
    };
    if let Stmt::Store(m, i, e) = s {
        add(*m, i, e.ty().width, true);
    }
    s.exprs(&mut |e| {
        e.visit(&mut |e| {
            if let Expr::Load(m, t, i) = e {
                add(*m, i, t.width, false);
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
            block(body, &Who::Each(vars), warp, out);
        }
        Stmt::Once(b) => block(b, &Who::Once, None, out),
        _ => s.blocks().into_iter().for_each(|b| block(b, who, warp, out)),
    }
}

/// Marks the variable of a loop in what an iteration other than the present one did.
const EARLIER: u32 = 1 << 31;

/// The accesses since the last barrier.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Phase {
    /// Each with whether a barrier of its warp has followed.
    seen: BTreeMap<Access, bool>,
}

impl Phase {
    /// Between whom data pass when these accesses follow, and through which memories; `meets`
    /// decides it for two accesses.
    pub fn meets(
        &self,
        next: &BTreeSet<Access>,
        meets: &dyn Fn(&Access, &Access) -> Meet,
    ) -> (Meet, BTreeSet<Mem>) {
        let mut worst = Meet::Never;
        let mut mems = BTreeSet::new();
        for (a, ordered) in &self.seen {
            for b in next {
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

    /// These follow.
    pub fn extend(&mut self, next: BTreeSet<Access>) {
        self.seen.extend(next.into_iter().map(|a| (a, false)));
    }

    /// A barrier of each warp.
    pub fn warps_meet(&mut self) {
        self.seen.values_mut().for_each(|ordered| *ordered = true);
    }

    /// A barrier of the group.
    pub fn group_meets(&mut self) {
        self.seen.clear();
    }

    /// Either of two ways led here.
    pub fn union(&mut self, other: &Phase) {
        for (a, ordered) in &other.seen {
            let entry = self.seen.entry(a.clone()).or_insert(*ordered);
            *entry &= *ordered;
        }
    }

    /// An iteration of the loop over this variable is over: what was in it may now be in any other.
    pub fn iterated(&mut self, var: &Var) {
        let earlier = Var { id: var.id | EARLIER, ..var.clone() };
        let of_earlier = |v: &Var| (v.id == var.id).then(|| Index::from(earlier.clone()));
        let seen = std::mem::take(&mut self.seen);
        for (mut a, ordered) in seen {
            a.index = a.index.substitute(&of_earlier);
            *self.seen.entry(a).or_insert(true) &= ordered;
        }
    }

    /// Memories stored to.
    pub fn written(&self) -> impl Iterator<Item = Mem> + '_ {
        self.seen.keys().filter(|a| a.write).map(|a| a.mem)
    }
}

/// What is wrong with the barriers in the code of a work-group: two accesses of different work-items of a group that no
/// barrier orders. Elements that the program itself chooses (scatter) are its own affair.
pub fn find(b: &Block) -> Option<String> {
    Check { same: group_numbers(b) }.block(b, &mut Phase::default())
}

/// Two accesses of work-items that no barrier can order: of different groups, or of none.
pub fn across_groups(b: &Block) -> Option<String> {
    let mut found = BTreeSet::new();
    let mut vars = BTreeSet::new();
    for s in b {
        s.visit(&mut |s| {
            if let Stmt::Loop { kind: LoopKind::Wrg(_) | LoopKind::Glb(_), var, .. } = s {
                vars.insert(var.clone());
            }
        });
        statement(s, &Who::All, None, &mut found);
    }
    let global: Vec<&Access> = found.iter().filter(|a| matches!(a.mem, Mem::Global(_))).collect();
    for a in global.iter().filter(|a| a.write) {
        for b in global.iter().filter(|b| !b.write && b.mem == a.mem) {
            let both = [(&a.index, a.width), (&b.index, b.width)];
            if !apart(both, &mut vars.iter(), &BTreeSet::new()) {
                return Some(format!(
                    "work-groups store `{}[{}]` and others load `{}[{}]`",
                    a.mem, a.index, b.mem, b.index
                ));
            }
        }
    }
    None
}

/// The variables that number work-groups.
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

/// The variables that have one value in an iteration of a loop outside work-items.
pub fn within(same: &BTreeSet<u32>, kind: LoopKind, var: &Var) -> BTreeSet<u32> {
    let mut same = same.clone();
    if kind == LoopKind::Seq {
        same.insert(var.id);
    }
    same
}

struct Check {
    /// Variables that have one value for all that is compared.
    same: BTreeSet<u32>,
}

impl Check {
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
                let inside = Check { same: within(&self.same, *kind, var) };
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
        let next = accesses(s);
        for b in &next {
            let before = phase.seen.iter().map(|(a, ordered)| (a, *ordered));
            // In one stage there is no order at all.
            let here = next.iter().filter(|a| *a <= b).map(|a| (a, false));
            let here = here.filter(|(a, _)| *a != b);
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
        // Two stages store one element of global memory only where one of them also reads it.
        if a.write && b.write && a != b && matches!(a.mem, Mem::Global(_)) {
            return false;
        }
        match a.meets(b, &self.same) {
            Meet::Never => false,
            Meet::Warp => !ordered,
            Meet::Group => true,
        }
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
        // One row is for all rows of work-items.
        assert!(!alone(&sum(&[(1, &l0)], 0), 1, &both));
        assert!(alone(&sum(&[(1, &l0), (32, &l1)], 0), 1, &both));
        assert!(!alone(&sum(&[(1, &l0), (31, &l1)], 0), 1, &both));
        // Consecutive runs, and elements dealt out in rounds.
        assert!(alone(&sum(&[(5, &l0), (1, &i)], 0), 1, &item));
        assert!(!alone(&sum(&[(4, &l0), (1, &i)], 0), 1, &item));
        assert!(alone(&sum(&[(1, &l0), (32, &i)], 0), 1, &item));
        assert!(!alone(&sum(&[(1, &l0), (16, &i)], 0), 1, &item));
    }

    #[test]
    fn slices() {
        // Lanes reverse what their warp has; others' slices are not touched.
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
        Access { mem: Mem::Local(0), index, width: 1, write, who, warp: None }
    }

    /// Two halves of 32 elements, one of them used and the other filled in each step `i`.
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
        // In steps of their own they may be in one half, and what is filled may be what is used.
        assert_eq!(used.meets(&other, &BTreeSet::new()), Meet::Group);
        assert_eq!(used.meets(&filled(&half), &step), Meet::Group);
        assert_eq!(used.meets(&filled(&Index::from(0)), &step), Meet::Group);
        // Halves that overlap.
        let long = access(Index::from(32).sub(&half.times(31)).add(&l.clone().into()), true, &l);
        assert_eq!(used.meets(&long, &step), Meet::Group);
        // What an earlier step did is in no known half.
        let mut phase = Phase::default();
        phase.extend(BTreeSet::from([used.clone()]));
        let meets = |phase: &Phase| {
            phase.meets(&BTreeSet::from([other.clone()]), &|a, b| a.meets(b, &step)).0
        };
        assert_eq!(meets(&phase), Meet::Never);
        phase.iterated(&i);
        assert_eq!(meets(&phase), Meet::Group);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        /// What is said to be apart is, for all values of all variables.
        #[test]
        fn apart_is_apart(
            a in (-9i64..10, -9i64..10, -9i64..10, -4i64..5, 1usize..4),
            b in (-9i64..10, -9i64..10, -9i64..10, -4i64..5, 1usize..4),
            alike in any::<bool>(),
        ) {
            let b = if alike { (a.0, a.1, b.2, b.3, b.4) } else { b };
            let (l0, l1, free) = (var(0, 4), var(1, 3), var(2, 4));
            let x = sum(&[(a.0, &l0), (a.1, &l1), (a.2, &free)], a.3);
            let y = sum(&[(b.0, &l0), (b.1, &l1), (b.2, &free)], b.3);
            let workers = [l0, l1];
            if !apart([(&x, a.4), (&y, b.4)], &mut workers.iter(), &BTreeSet::new()) {
                return Ok(());
            }
            for k in 0..(4 * 3 * 4) * (4 * 3 * 4) {
                let at = |k: i64| [k % 4, k / 4 % 3, k / 12];
                let (p, q) = (at(k % 48), at(k / 48));
                if p[..2] == q[..2] {
                    continue;
                }
                let i = x.eval(&|v| Some(p[v.id as usize])).expect("every variable has a value");
                let j = y.eval(&|v| Some(q[v.id as usize])).expect("every variable has a value");
                prop_assert!(i + a.4 as i64 <= j || j + b.4 as i64 <= i, "{} {} {:?} {:?}", x, y, p, q);
            }
        }
    }
}
