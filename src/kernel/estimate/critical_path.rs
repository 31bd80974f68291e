//! Finds how long one work-item takes at least: the time of its longest chain of dependent operations, in which the
//! iterations of a loop follow each other if one needs what the one before it computed, and all that a barrier separates.
//!
//! The code is executed for the first work-item with times in place of values. Of each loop, a few iterations are executed:
//! by as much as each of the last of them ends later than the one before, so much each further iteration takes.

use super::dependence_chain::{latency, of_products};
use super::trip_count::Trips;
use crate::kernel::ir::copies::Copied;
use crate::kernel::ir::index::{Index, Var};
use crate::kernel::ir::{Block, Expr, LoopKind, Mem, MemArray, Scope, Stmt};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Latency of a load from local memory, in latencies of an addition.
const NEAR: f64 = 8.0;

/// Time in which the work-items of a group meet at a barrier.
const BARRIER: f64 = 10.0;

/// Time between the issue of two instructions of a warp that do not depend on each other.
const ISSUE: f64 = 0.25;

/// Instructions of a loop iteration besides its body.
const COUNTING: f64 = 4.0;

/// Iterations of an innermost loop that a compiler writes out, so that their loads are issued together.
const LOADED_TOGETHER: f64 = 4.0;

/// Iterations that are executed: the first fills the chains, the others show what an iteration adds. Two of them also show it
/// where every second iteration waits.
const EXECUTED: i64 = 3;

/// Latencies of a load from global memory, and from a private array that is not in registers.
#[derive(Clone, Copy, Debug)]
pub struct Loads {
    pub global: f64,
    pub private: f64,
}

/// About the latencies of the nearest cache and of memory.
pub const LATENCIES: [f64; 2] = [10.0, 160.0];

/// The latencies for which the time is computed: all loads from the nearest cache; those from global memory from memory; those
/// from private arrays from memory.
pub const LOADS: [Loads; 3] = {
    let [near, far] = LATENCIES;
    [
        Loads { global: near, private: near },
        Loads { global: far, private: near },
        Loads { global: near, private: far },
    ]
};

/// Returns the time of the first work-item of a kernel with this body, in latencies of an addition, as if it were alone on
/// the device. `locals` are its arrays of the group, `spilled` the private arrays that are not in registers; `loads` gives the
/// latencies of loads.
pub fn critical_path(
    body: &Block,
    locals: &[MemArray],
    spilled: &BTreeMap<Mem, f64>,
    loads: Loads,
    trips: &Trips,
) -> f64 {
    let mut w = Walk {
        locals,
        spilled,
        loads,
        trips,
        barrier: 0.0,
        issue: 0.0,
        started: 0.0,
        arriving: VecDeque::new(),
        loops: 0,
        ready: FxHashMap::default(),
        stored: BTreeMap::new(),
        changed: vec![],
        values: FxHashMap::default(),
        steps: FxHashMap::default(),
    };
    w.block(body);
    w.front()
}

/// The element of a memory; `None` if data decide it.
type Cell = (Mem, Option<i64>);

/// What has a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Reg(u32),
    Cell(Cell),
}

struct Walk<'a> {
    locals: &'a [MemArray],
    spilled: &'a BTreeMap<Mem, f64>,
    loads: Loads,
    trips: &'a Trips,
    /// When the last barrier was passed, or the condition of the branch was known.
    barrier: f64,
    /// When the next instruction can be issued if it waits for nothing.
    issue: f64,
    /// When the latest instruction so far started.
    started: f64,
    /// When the copies are there for which the next barrier waits, and each barrier after it.
    arriving: VecDeque<f64>,
    /// How many loops have ended.
    loops: usize,
    /// When the value of each register is ready.
    ready: FxHashMap<u32, f64>,
    /// When each element was stored.
    stored: BTreeMap<Cell, f64>,
    /// What was set or stored, in the order of execution.
    changed: Vec<Place>,
    /// Values of the loops' variables.
    values: FxHashMap<u32, i64>,
    /// What an iteration of each loop adds, by the address of its body.
    steps: FxHashMap<*const Stmt, f64>,
}

impl Walk<'_> {
    fn block(&mut self, b: &Block) {
        for s in b {
            self.stmt(s);
        }
    }

    fn stmt(&mut self, s: &Stmt) {
        match s {
            Stmt::Decl(_, None) | Stmt::Barrier { scope: Scope::Warp, .. } => {}
            Stmt::Decl(r, Some(e)) | Stmt::Set(r, e) => {
                let at = self.expr(e);
                self.ready.insert(r.id, at);
                self.changed.push(Place::Reg(r.id));
            }
            Stmt::Store(m @ Mem::Local(a), i, e) if Copied::late(self.locals, *m, e).is_some() => {
                let from = self.index(i);
                let at = self.start(from, 1.0);
                let barriers = self.locals.get(*a).map_or(1, |a| a.ahead);
                self.arriving.resize(self.arriving.len().max(barriers), 0.0);
                if let Some(arrived) = self.arriving.get_mut(barriers - 1) {
                    *arrived = arrived.max(at + self.loads.global);
                }
            }
            Stmt::Store(m, i, e) | Stmt::Atomic(_, m, i, e) => {
                let from = self.expr(e).max(self.index(i));
                let at = self.start(from, 1.0);
                for lane in 0..e.ty().width {
                    let place = self.place(i).map(|p| p + i64::try_from(lane).unwrap_or(0));
                    self.stored.insert((*m, place), at);
                    self.changed.push(Place::Cell((*m, place)));
                }
                if let Some(r) = s.assigned() {
                    let far = match m {
                        Mem::Global(_) => self.loads.global,
                        Mem::Private(_) | Mem::Local(_) => NEAR,
                    };
                    self.ready.insert(r.id, at + far);
                    self.changed.push(Place::Reg(r.id));
                }
            }
            Stmt::Loop { kind: LoopKind::Seq, var, lo, hi, body } => {
                let first = lo.eval(&|v| Some(self.value(v))).unwrap_or(var.lo);
                self.iterations(body, self.trips.of_loop(lo, hi, body), &mut |me, done| {
                    me.values.insert(var.id, first.saturating_add(done));
                    me.block(body);
                });
            }
            Stmt::Loop { var, lo, hi, body, .. } => {
                if self.trips.of_loop(lo, hi, body) > 0.0 {
                    self.values.insert(var.id, var.lo);
                    self.block(body);
                }
            }
            Stmt::While(head, go_on, body) => {
                self.iterations(body, self.trips.of_while(body), &mut |me, _| {
                    me.block(head);
                    let known = me.expr(go_on);
                    me.issue = me.issue.max(known);
                    me.block(body);
                });
            }
            Stmt::If(_, a, b) => self.block(if a.is_empty() { b } else { a }),
            Stmt::Branch(c, a, b) => {
                let before = self.barrier;
                self.barrier = before.max(self.expr(c));
                self.block(a);
                self.block(b);
                self.barrier = before;
            }
            Stmt::Once(b) => self.block(b),
            Stmt::Barrier { scope: Scope::Group, .. } => {
                let arrived = self.arriving.pop_front().unwrap_or_default();
                self.barrier = self.started.max(self.issue).max(arrived) + BARRIER;
                self.issue = self.barrier;
            }
        }
    }

    /// Executes a few iterations and adds the time of the others. `run` executes the iteration of this number.
    fn iterations(&mut self, body: &Block, trips: f64, run: &mut dyn FnMut(&mut Self, i64)) {
        let id = body.as_ptr();
        let known = self.steps.get(&id).copied();
        // Copies that were begun in an iteration are waited for in a later one.
        let longest = self.locals.iter().map(|a| a.ahead).max().unwrap_or_default();
        let enough = EXECUTED.max(i64::try_from(longest).unwrap_or_default() + 1);
        let executed = if known.is_some() { 1 } else { enough };
        let (mut done, mut logged) = (0, self.changed.len());
        let (mut first, mut barrier) = (self.front(), self.barrier);
        while done < executed && (done as f64) < trips {
            (barrier, logged) = (self.barrier, self.changed.len());
            if done <= 1 {
                first = self.front();
            }
            let loops = self.loops;
            self.issue += ISSUE * COUNTING;
            run(self, done);
            done += 1;
            // A warp issues its instructions in order: the next iteration is issued once the last instruction of this one has
            // started.
            let together = if self.loops == loops { LOADED_TOGETHER } else { 1.0 };
            let waited = (self.started - self.issue).max(0.0);
            self.issue += waited / together;
        }
        self.loops += 1;
        let step = known.unwrap_or((self.front() - first) / (done - 1).max(1) as f64);
        if done == enough {
            self.steps.insert(id, step);
        }
        let rest = step * (trips - done as f64).max(0.0);
        // What changed in the last of these iterations changes in each.
        let changed: BTreeSet<Place> = self.changed.drain(logged..).collect();
        for place in &changed {
            let at = match place {
                Place::Reg(r) => self.ready.get_mut(r),
                Place::Cell(cell) => self.stored.get_mut(cell),
            };
            if let Some(at) = at {
                *at += rest;
            }
        }
        self.changed.extend(changed);
        self.issue += rest;
        self.started += rest;
        self.arriving.iter_mut().for_each(|at| *at += rest);
        if self.barrier != barrier {
            self.barrier += rest;
        }
    }

    /// Returns when the latest instruction so far has started.
    fn front(&self) -> f64 {
        self.started.max(self.issue)
    }

    /// Issues an instruction whose operands are ready at `from`; returns when it starts.
    fn start(&mut self, from: f64, instructions: f64) -> f64 {
        let at = from.max(self.barrier).max(self.issue);
        self.issue += ISSUE * instructions;
        self.started = self.started.max(at);
        at
    }

    fn value(&self, v: &Var) -> i64 {
        self.values.get(&v.id).copied().unwrap_or(v.lo)
    }

    fn place(&self, i: &Index) -> Option<i64> {
        i.eval(&|v| Some(self.value(v)))
    }

    fn all(&mut self, es: &[Expr]) -> f64 {
        es.iter().map(|e| self.expr(e)).fold(0.0, f64::max)
    }

    fn index(&mut self, i: &Index) -> f64 {
        let mut ready: f64 = 0.0;
        i.visit_data(&mut |e| ready = ready.max(self.expr(e)));
        ready
    }

    /// Returns when what a load reads was stored.
    fn was_stored(&self, m: Mem, i: &Index, width: usize) -> f64 {
        let at = |cell: &Cell| self.stored.get(cell).copied().unwrap_or_default();
        let anywhere = at(&(m, None));
        match self.place(i) {
            Some(first) => (0..i64::try_from(width).unwrap_or(1))
                .map(|lane| at(&(m, Some(first + lane))))
                .fold(anywhere, f64::max),
            None => {
                let cells = self.stored.range((m, None)..).take_while(|((of, _), _)| *of == m);
                cells.map(|(_, at)| *at).fold(anywhere, f64::max)
            }
        }
    }

    /// Returns when the value is ready.
    fn expr(&mut self, e: &Expr) -> f64 {
        match e {
            Expr::Lit(_) | Expr::Arg(..) => 0.0,
            Expr::Reg(r) => self.ready.get(&r.id).copied().unwrap_or_default(),
            Expr::Index(i, _) => self.index(i),
            Expr::Load(m, t, i) => {
                let from = self.index(i).max(self.was_stored(*m, i, t.width));
                if matches!(m, Mem::Private(_)) && !self.spilled.contains_key(m) {
                    return from;
                }
                self.start(from, 1.0)
                    + match m {
                        Mem::Global(_) => self.loads.global,
                        Mem::Private(_) => self.loads.private,
                        Mem::Local(_) => NEAR,
                    }
            }
            Expr::Op(op, t, es) => {
                let from = self.all(es);
                let width = es.iter().map(|e| e.ty().width).max().unwrap_or(t.width) as f64;
                let (adds, instructions) = latency(*op, t.scalar.is_float());
                self.start(from, instructions * width) + adds
            }
            Expr::Checked(_, es) => {
                let from = self.all(es);
                self.start(from, 2.0) + 1.0
            }
            Expr::If(c, a, b) => {
                let from = self.expr(c).max(self.expr(a)).max(self.expr(b));
                self.start(from, 1.0) + 1.0
            }
            // Only the guarded side counts: the guard holds in the common case.
            Expr::Guarded(_, a, _) => self.expr(a),
            Expr::Splat(e, _) | Expr::Lane(e, _) | Expr::Matrices(_, e) => self.expr(e),
            Expr::Vector(es) => self.all(es),
            Expr::Products(of, es) => {
                let from = self.all(es);
                let (latency, instructions) = of_products(*of);
                self.start(from, instructions) + latency
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calculus::scalar::Lit;
    use crate::kernel::ir::{ElemTy, Reg};
    use crate::lang::typed::ScalarOp;
    use crate::lang::types::ScalarType;

    const FLOAT: ElemTy = ElemTy::scalar(ScalarType::F32);

    fn var(n: i64) -> Var {
        Var { id: 0, name: "i".into(), lo: 0, hi: n - 1 }
    }

    fn plus_one(e: Expr) -> Expr {
        Expr::Op(ScalarOp::Add, FLOAT, vec![e, Expr::Lit(Lit::float(ScalarType::F32, 1.0))])
    }

    fn array(ahead: usize) -> MemArray {
        MemArray { name: "a".into(), scalar: ScalarType::F32, len: 1, ahead, pieces: 0 }
    }

    /// The time of a loop with this body, for each iteration.
    fn step(n: i64, body: Block) -> f64 {
        let (lo, hi) = (Index::from(0), Index::from(n));
        let all = vec![Stmt::Loop { kind: LoopKind::Seq, var: var(n), lo, hi, body }];
        critical_path(
            &all,
            &[array(0), array(1), array(2)],
            &BTreeMap::new(),
            Loads { global: 100.0, private: 20.0 },
            &Trips::default(),
        ) / n as f64
    }

    #[test]
    fn iterations_wait_for_what_the_one_before_computed() {
        let n = 1000;
        let at = |d: i64| Index::from(var(n)).plus(d);
        let next = |to: Mem, from: Mem| {
            vec![Stmt::Store(to, at(1), plus_one(Expr::Load(from, FLOAT, at(0))))]
        };
        let (a, b) = (Mem::Local(0), Mem::Local(1));
        // Each element needs the one before it.
        assert!((step(n, next(a, a)) - (NEAR + 1.0)).abs() < 0.1);
        // No iteration needs another: only the last instruction of several iterations is waited for.
        let free = step(n, next(a, b));
        let issued = ISSUE * (COUNTING + 3.0);
        // The store starts when the load and the sum are done, which began behind the counting.
        let waited = ISSUE * COUNTING + NEAR + 1.0 - issued;
        assert!((free - issued - waited / LOADED_TOGETHER).abs() < 0.1, "{free}");
        // An element is needed two iterations later.
        let later = vec![Stmt::Store(a, at(2), plus_one(Expr::Load(a, FLOAT, at(0))))];
        assert!((2.0 * step(n, later) - (NEAR + 1.0)).abs() < 1.0);
        // A load whose place the one before decides.
        let r = Reg { id: 1, name: "p".into(), ty: ElemTy::scalar(ScalarType::I32) };
        let there = Index::data(Expr::Reg(r.clone()));
        let chase = vec![Stmt::Set(r.clone(), Expr::Load(Mem::Global(0), r.ty, there))];
        assert!((step(n, chase) - 100.0).abs() < 1.0);
    }

    #[test]
    fn all_wait_at_a_barrier() {
        let n = 1000;
        let at = Index::from(0);
        let barrier = Stmt::Barrier { scope: Scope::Group, local: true, global: false };
        let stored = Expr::Load(Mem::Global(0), FLOAT, Index::from(var(n)));
        let store = Stmt::Store(Mem::Local(0), at, stored);
        let waits = step(n, vec![store.clone(), barrier]);
        assert!((waits - (100.0 + BARRIER)).abs() < 2.0, "{waits}");
        let (free, issued) = (step(n, vec![store]), ISSUE * (COUNTING + 2.0));
        let waited = ISSUE * COUNTING + 100.0 - issued;
        assert!((free - issued - waited / LOADED_TOGETHER).abs() < 0.1, "{free}");
    }

    #[test]
    fn copies_arrive_at_a_barrier() {
        let n = 1000;
        let barrier = Stmt::Barrier { scope: Scope::Group, local: true, global: false };
        let copy = |to: usize| {
            let value = Expr::Load(Mem::Global(0), FLOAT, Index::from(var(n)));
            Stmt::Store(Mem::Local(to), Index::from(0), value)
        };
        // A sum of so many terms, each of which needs the one before.
        let r = Reg { id: 1, name: "t".into(), ty: FLOAT };
        let sums = |n| (0..n).map(|_| Stmt::Set(r.clone(), plus_one(Expr::Reg(r.clone()))));
        let beside = |to, n| {
            let mut body = vec![copy(to)];
            body.extend(sums(n));
            body.push(barrier.clone());
            step(1000, body)
        };
        // Both take as long as the longer of them.
        assert!((beside(1, 10) - (100.0 + BARRIER)).abs() < 3.0, "{}", beside(1, 10));
        assert!((beside(1, 300) - (300.0 + BARRIER)).abs() < 3.0, "{}", beside(1, 300));
        // Two barriers share the time of a copy that arrives at the second one.
        assert!((beside(2, 10) - 50.0 - BARRIER / 2.0).abs() < 6.0, "{}", beside(2, 10));
        // Nothing else waits for a copy, as a store waits for what it stores.
        let [waits, goes_on] = [0, 1].map(|to| step(n, vec![copy(to)]));
        assert!((goes_on - ISSUE * (COUNTING + 1.0)).abs() < 0.1, "{goes_on}");
        assert!(waits > 10.0 * goes_on, "{waits} {goes_on}");
    }
}
