//! Which arrays of a work-item or of a group are needed at the same time, and where one of them is computed from another one
//! element by element.
//!
//! An array is live where elements of it may be read before all of them are stored. A store to an array disturbs every other
//! array that is live behind it. It does not disturb an array of which it is a copy. Nor does it if the statement around it
//! reads each element before it stores the one at the same place, and the other array is not needed any more.

use crate::kernel::analysis::hazard::{Owned, read_before_written};
use crate::kernel::analysis::unchanged::Update;
use crate::kernel::ir::facts::Guard;
use crate::kernel::ir::index::Index;
use crate::kernel::ir::{Block, Expr, Kernel, LoopKind, Mem, Stmt};
use std::collections::BTreeSet;

type Arrays = BTreeSet<Mem>;

/// Replaces the memories in a block.
pub type Renamed<'a> = &'a dyn Fn(&Block, &dyn Fn(Mem) -> Mem) -> Block;

/// A statement that stores all elements of an array, and computes each from the element of another one at the same place.
pub struct Derived {
    /// The statement, by its place in memory.
    pub statement: *const Stmt,
    /// The array that is stored.
    pub array: Mem,
    /// The array that is read.
    pub from: Mem,
}

/// The arrays of a kernel that cannot share memory, and those that would gain by it.
#[derive(Default)]
pub struct Interference {
    pairs: BTreeSet<(Mem, Mem)>,
    /// In the order of the code, backwards.
    pub derived: Vec<Derived>,
}

/// What code does with arrays.
#[derive(Default)]
struct Flow {
    /// Arrays of which it may read what was stored before it.
    reads: Arrays,
    /// Arrays of which it stores all elements.
    fills: Arrays,
}

impl Interference {
    /// Returns what a kernel without barriers does.
    pub fn of(k: &Kernel, renamed: Renamed) -> Interference {
        let mut found = Interference::default();
        let walk = Walk { kernel: k, renamed };
        walk.block(&k.body, Arrays::new(), &BTreeSet::new(), &mut found);
        found
    }

    /// Whether two arrays may be needed at the same time.
    pub fn has(&self, a: Mem, b: Mem) -> bool {
        self.pairs.contains(&(a.min(b), a.max(b)))
    }
}

/// Returns the length of an array of a work-item or of a group.
fn len(k: &Kernel, m: Mem) -> Option<usize> {
    Some(match m {
        Mem::Private(a) => k.privates.get(a)?.len,
        Mem::Local(a) => k.locals.get(a)?.len,
        Mem::Global(_) => return None,
    })
}

/// Whether one array may take the place of another one.
pub fn are_alike(k: &Kernel, a: Mem, b: Mem) -> bool {
    match (a, b) {
        (Mem::Private(a), Mem::Private(b)) => {
            let [a, b] = [a, b].map(|m| &k.privates[m]);
            a.scalar == b.scalar && a.len == b.len
        }
        (Mem::Local(a), Mem::Local(b)) => {
            let [a, b] = [a, b].map(|m| &k.locals[m]);
            a.scalar == b.scalar && a.len == b.len
        }
        _ => false,
    }
}

/// Returns the arrays that a statement stores to, and those that it loads from.
fn accesses(s: &Stmt) -> (Arrays, Arrays) {
    let (mut stored, mut loaded) = (Arrays::new(), Arrays::new());
    s.visit(&mut |s| {
        match s {
            Stmt::Store(m, ..) => {
                stored.insert(*m);
            }
            Stmt::Atomic(_, m, ..) => {
                stored.insert(*m);
                loaded.insert(*m);
            }
            _ => {}
        }
        s.exprs(&mut |e| loads(e, &mut loaded));
    });
    for set in [&mut stored, &mut loaded] {
        set.retain(|m| !matches!(m, Mem::Global(_)));
    }
    (stored, loaded)
}

fn loads(e: &Expr, found: &mut Arrays) {
    e.visit(&mut |e| {
        if let Expr::Load(m @ (Mem::Private(_) | Mem::Local(_)), ..) = e {
            found.insert(*m);
        }
    });
}

struct Walk<'a> {
    kernel: &'a Kernel,
    renamed: Renamed<'a>,
}

impl Walk<'_> {
    /// Notes what is disturbed in a block behind which these arrays are live. `spared` are pairs of which neither disturbs the
    /// other one there.
    fn block(
        &self,
        b: &[Stmt],
        mut live: Arrays,
        spared: &BTreeSet<(Mem, Mem)>,
        found: &mut Interference,
    ) {
        for s in b.iter().rev() {
            self.stmt(s, &live, spared, found);
            live = before(self.flow(s), live);
        }
    }

    fn stmt(
        &self,
        s: &Stmt,
        live: &Arrays,
        spared: &BTreeSet<(Mem, Mem)>,
        found: &mut Interference,
    ) {
        match s {
            Stmt::Decl(..) | Stmt::Set(..) | Stmt::Barrier { .. } => {}
            Stmt::Store(m, ..) | Stmt::Atomic(_, m, ..) => {
                let more = self.derived(s, live, found);
                for other in live {
                    let pair = ((*m).min(*other), (*m).max(*other));
                    if other != m && !spared.contains(&pair) && !more.contains(&pair) {
                        found.pairs.insert(pair);
                    }
                }
            }
            Stmt::Loop { body, .. } => {
                let mut spared = spared.clone();
                spared.extend(self.derived(s, live, found));
                let again = self.flow_of(body).reads;
                self.block(body, live | &again, &spared, found);
            }
            Stmt::If(_, a, b) | Stmt::Branch(_, a, b) => {
                self.block(a, live.clone(), spared, found);
                self.block(b, live.clone(), spared, found);
            }
            Stmt::While(head, c, body) => {
                let again = self.flow(s).reads;
                let end = live | &again;
                self.block(body, end.clone(), spared, found);
                let mut between = &end | &self.flow_of(body).reads;
                loads(c, &mut between);
                self.block(head, between, spared, found);
            }
            Stmt::Once(b) => self.block(b, live.clone(), spared, found),
        }
    }

    /// Notes the arrays that a statement computes from others element by element, and returns the pairs.
    fn derived(&self, s: &Stmt, live: &Arrays, found: &mut Interference) -> BTreeSet<(Mem, Mem)> {
        let mut pairs = BTreeSet::new();
        let (stored, loaded) = accesses(s);
        let alike = |a: Mem| {
            let others = loaded.iter().copied();
            others.filter(move |b| *b != a && are_alike(self.kernel, a, *b))
        };
        for array in stored.iter().copied() {
            if alike(array).next().is_none() || !self.fills(s, array) {
                continue;
            }
            for from in alike(array) {
                let is_last_use = !live.contains(&from)
                    && !stored.contains(&from)
                    && !loaded.contains(&array)
                    && self.reads_first(s, array, from);
                if is_last_use || Self::copies(s, array, from) {
                    pairs.insert((array.min(from), array.max(from)));
                    found.derived.push(Derived { statement: s, array, from });
                }
            }
        }
        pairs
    }

    /// Whether a statement reads no element of an array behind its store to the element of the other array at the same place.
    fn reads_first(&self, s: &Stmt, array: Mem, from: Mem) -> bool {
        let to = |m| if m == array { from } else { m };
        let one = (self.renamed)(&vec![s.clone()], &to);
        read_before_written(&one, &Owned::mems([from].into_iter())).contains(&from)
    }

    /// Whether each store to an array is one of the element of the other array at the same place.
    fn copies(s: &Stmt, array: Mem, from: Mem) -> bool {
        let update = Update::of(&vec![s.clone()], from, array);
        let mut all = true;
        s.visit(&mut |s| match s {
            Stmt::Store(m, i, e) if *m == array => all &= update.keeps(i, e),
            Stmt::Store(m, ..) if *m == from => all = false,
            Stmt::Atomic(_, m, ..) => all &= ![array, from].contains(m),
            _ => {}
        });
        all
    }

    fn flow_of(&self, b: &[Stmt]) -> Flow {
        b.iter().rev().fold(Flow::default(), |after, s| {
            let flow = self.flow(s);
            let fills = &after.fills | &flow.fills;
            Flow { reads: before(flow, after.reads), fills }
        })
    }

    fn flow(&self, s: &Stmt) -> Flow {
        let mut own = Arrays::new();
        s.exprs(&mut |e| loads(e, &mut own));
        let mut flow = match s {
            Stmt::Decl(..) | Stmt::Set(..) | Stmt::Store(..) | Stmt::Barrier { .. } => {
                Flow::default()
            }
            Stmt::Atomic(_, m, ..) => Flow { reads: [*m].into(), fills: Arrays::new() },
            Stmt::Loop { lo, hi, body, .. } => {
                let mut flow = self.flow_of(body);
                if hi.sub(lo).range().0 < 1 {
                    flow.fills.clear();
                }
                flow
            }
            Stmt::If(_, a, b) | Stmt::Branch(_, a, b) => {
                let [a, b] = [a, b].map(|b| self.flow_of(b));
                Flow { reads: &a.reads | &b.reads, fills: &a.fills & &b.fills }
            }
            Stmt::While(head, _, body) => {
                let [head, body] = [head, body].map(|b| self.flow_of(b));
                Flow { reads: &head.reads | &body.reads, fills: head.fills }
            }
            Stmt::Once(b) => self.flow_of(b),
        };
        flow.reads.extend(own);
        if matches!(s, Stmt::Loop { .. } | Stmt::Store(..)) {
            let more = accesses(s).0.into_iter().filter(|m| self.fills(s, *m));
            flow.fills.extend(more.collect::<Vec<_>>());
        }
        flow
    }

    /// Whether a statement stores all elements of an array.
    fn fills(&self, s: &Stmt, m: Mem) -> bool {
        let Some(len) = len(self.kernel, m) else { return false };
        let mut filled = Filled { array: m, stored: vec![false; len], rest: 4 * len + 16 };
        filled.stmt(s, &mut vec![]).is_some() && filled.stored.iter().all(|stored| *stored)
    }
}

/// Returns what is live in front of code behind which these arrays are live.
fn before(flow: Flow, mut live: Arrays) -> Arrays {
    live.retain(|m| !flow.fills.contains(m));
    live.extend(flow.reads);
    live
}

/// The elements of an array that code certainly stores.
struct Filled {
    array: Mem,
    stored: Vec<bool>,
    /// Most statements that are still looked at.
    rest: usize,
}

impl Filled {
    /// Notes the elements that a statement stores; `None` if that depends on data, or takes too long to find out. `counters` have the
    /// values of loops around it.
    fn stmt(&mut self, s: &Stmt, counters: &mut Vec<(u32, i64)>) -> Option<()> {
        self.rest = self.rest.checked_sub(1)?;
        match s {
            Stmt::Store(m, i, e) if *m == self.array => {
                let first = usize::try_from(value(i, counters)?).ok()?;
                self.stored.get_mut(first..first + e.ty().width)?.fill(true);
            }
            Stmt::Loop { kind, var, lo, hi, body } => {
                // Each work-item has elements of its own.
                if *kind != LoopKind::Seq && matches!(self.array, Mem::Private(_)) {
                    return None;
                }
                for at in value(lo, counters)?..value(hi, counters)? {
                    counters.push((var.id, at));
                    let done = body.iter().try_for_each(|s| self.stmt(s, counters));
                    counters.pop();
                    done?;
                }
            }
            Stmt::If(Guard(conditions), a, b) => {
                let mut holds = true;
                for c in conditions {
                    holds &= value(c, counters)? >= 0;
                }
                let side = if holds { a } else { b };
                side.iter().try_for_each(|s| self.stmt(s, counters))?;
            }
            Stmt::Once(b) => b.iter().try_for_each(|s| self.stmt(s, counters))?,
            _ => {}
        }
        Some(())
    }
}

fn value(i: &Index, counters: &[(u32, i64)]) -> Option<i64> {
    i.eval(&|v| counters.iter().rev().find(|(id, _)| *id == v.id).map(|(_, at)| *at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::ir::MemArray;
    use crate::kernel::ir::index::Var;
    use crate::kernel::ir::testing::{FLOAT, kernel};
    use crate::lang::typed::ScalarOp;
    use crate::lang::types::ScalarType::F32;

    const NOW: Mem = Mem::Private(0);
    const NEXT: Mem = Mem::Private(1);
    const OLD: Mem = Mem::Private(2);

    fn place() -> Index {
        Index::from(Var { id: 1, name: "i1".into(), lo: 0, hi: 7 })
    }

    fn load(m: Mem) -> Expr {
        Expr::Load(m, FLOAT, place())
    }

    fn repeat(id: u32, body: Block) -> Stmt {
        let var = Var { id, name: format!("i{id}").into(), lo: 0, hi: 7 };
        Stmt::Loop { kind: LoopKind::Seq, var, lo: Index::from(0), hi: Index::from(8), body }
    }

    /// Returns the interference in a loop whose steps go through arrays of 8 elements.
    fn of(step: Block) -> Interference {
        let array =
            |name: &str| MemArray { name: name.into(), scalar: F32, len: 8, ahead: 0, pieces: 0 };
        let privates = ["own0", "own1", "own2"].map(array).to_vec();
        let k = Kernel { privates, ..kernel(vec![repeat(0, step)]) };
        Interference::of(&k, &|b, _| b.clone())
    }

    #[test]
    fn what_a_pass_reads_behind_a_store_is_disturbed() {
        let difference = Expr::Op(ScalarOp::Sub, FLOAT, vec![load(NEXT), load(OLD)]);
        let pass = repeat(
            1,
            vec![
                Stmt::Store(NEXT, place(), Expr::Load(Mem::Global(0), FLOAT, place())),
                Stmt::Store(OLD, place(), load(NOW)),
                Stmt::Store(NOW, place(), difference),
            ],
        );
        assert!(of(vec![pass]).has(NOW, NEXT));
    }

    #[test]
    fn a_copy_that_comes_back_is_not_disturbed() {
        let copy = |from: Mem, to: Mem| repeat(1, vec![Stmt::Store(to, place(), load(from))]);
        let step = vec![
            copy(NOW, NEXT),
            Stmt::Store(NEXT, Index::from(3), Expr::Arg(0, F32)),
            copy(NEXT, NOW),
        ];
        assert!(!of(step).has(NOW, NEXT));
    }
}
