//! Counts the features of a kernel.
//!
//! Counts are over all work-items of one launch. If a loop bound depends on the work-item, the
//! middle of its range stands for it. Only the guarded side of a guard counts, but for guards that fail in
//! many work-groups, of which each side counts by its share. Both sides of a branch count if its condition differs between
//! neighbouring work-items, and each side counts half if not.

use super::critical_path::{LOADS, critical_path};
use super::features::{Access, KernelProfile, Streak, WRITTEN_OUT, real, signed};
use super::op_kind::{OpKind, kind};
use super::pressure;
use super::trip_count::Trips;
use crate::calculus::op::products::Products;
use crate::kernel::ir::copies::Copied;
use crate::kernel::ir::facts::Guard;
use crate::kernel::ir::index::{Index, Var};
use crate::kernel::ir::team::shares;
use crate::kernel::ir::walk::parts;
use crate::kernel::ir::{
    Block, BufferRole, Expr, Kernel, LoopKind, Mem, MemArray, Program, Scope, Stmt, Update,
};
use crate::lang::typed::ScalarOp;
use num_integer::gcd;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};

/// Number of neighbouring work-items whose places are looked at one by one.
pub const LANES: i64 = 32;

/// Bytes of registers that a work-item has on most devices.
const REGISTERS: f64 = 1024.0;

/// Counts the features of a kernel of a program.
pub fn kernel(program: &Program, k: &Kernel) -> KernelProfile {
    let group_size: usize = k.group.iter().product();
    let groups =
        k.global.iter().zip(k.group).map(|(n, g)| real(*n) / real(g.max(1))).product::<f64>();
    let trips = Trips::of(&k.body, &|arg| program.scalars.get(arg)?.number());
    let mut w = Walk {
        program,
        kernel: k,
        trips: &trips,
        out: KernelProfile {
            name: k.name.clone(),
            groups,
            group_size,
            side_by_side: k.side_by_side,
            shares: Some(shares(k)),
            local_bytes: k.local_bytes(),
            register_bytes: register_bytes(&k.body),
            ..KernelProfile::default()
        },
        loops: vec![],
        copied: false,
        read: FxHashSet::default(),
        traces: FxHashMap::default(),
        cut: BTreeSet::new(),
        streaks: FxHashMap::default(),
        body: None,
        ops: vec![],
        homes: vec![],
        runs: BTreeMap::new(),
        serial: BTreeSet::new(),
        sums: BTreeSet::new(),
    };
    // Code outside loops over work-items is run by all of them.
    w.block(&k.body, 1.0, true);
    w.side_by_side();
    let spilled = w.out.spilled(REGISTERS);
    let live = pressure::of(k, &spilled, &trips);
    (w.out.pressure, w.out.reads) = (live.blocks, live.reads);
    w.out.path = LOADS.map(|loads| critical_path(&k.body, &k.locals, &spilled, loads, &trips));
    for streak in &mut w.out.streaks {
        streak.places.sort_unstable();
    }
    w.out
}

/// Whether a value is in registers already: one, a part of one, or several that matrix instructions use together.
fn is_name(e: &Expr) -> bool {
    match e {
        Expr::Reg(_) | Expr::Lane(..) => true,
        Expr::Vector(es) => es.iter().all(is_name),
        _ => false,
    }
}

fn register_bytes(b: &Block) -> usize {
    let own = |s: &Stmt| match s {
        Stmt::Decl(_, Some(e)) if is_name(e) => 0,
        Stmt::Decl(r, _) => r.ty.bytes(),
        _ => 0,
    };
    let inside = |s: &Stmt| s.blocks().into_iter().map(register_bytes).max().unwrap_or(0);
    b.iter().map(own).sum::<usize>() + b.iter().map(inside).max().unwrap_or(0)
}

/// Whether work-items both load from global memory and store to local memory, and wait for it.
fn copies(b: &Block, locals: &[MemArray]) -> bool {
    let (mut loads, mut stores) = (false, false);
    for s in b {
        s.visit(&mut |s| {
            if let Stmt::Store(m, _, e) = s
                && Copied::late(locals, *m, e).is_some()
            {
                return;
            }
            stores |=
                matches!(s, Stmt::Store(Mem::Local(_), ..) | Stmt::Atomic(_, Mem::Local(_), ..));
            s.exprs(&mut |e| {
                e.visit(&mut |e| loads |= matches!(e, Expr::Load(Mem::Global(_), ..)));
            });
        });
    }
    loads && stores
}

/// Whether the block contains neither a loop nor a barrier.
fn plain(b: &Block) -> bool {
    let mut plain = true;
    for s in b {
        s.visit(&mut |s| {
            plain &= !matches!(s, Stmt::Loop { .. } | Stmt::While(..) | Stmt::Barrier { .. });
        });
    }
    plain
}

/// Operations: their home loop, the first three parts of their key in [`KernelProfile::ops`], their number, and the lanes
/// that are held for each.
type Operation = (Option<u32>, (OpKind, usize, usize), f64, f64);

/// What a value depends on that differs between neighbouring work-items.
#[derive(Clone, Debug, Default)]
struct Trace {
    /// The place of a load, if data do not decide it.
    load: Option<Index>,
    /// An index.
    index: Option<Index>,
    /// Whether it depends on loads, or on values that are as good as loaded data.
    loads: bool,
}

impl Trace {
    fn of_index(i: &Index) -> Trace {
        Trace { load: None, index: Some(i.clone()), loads: i.has_data() }
    }

    /// Whether the value differs between neighbouring work-items.
    fn differs(&self) -> bool {
        self.loads || self.index.is_some()
    }

    fn join(&mut self, other: Trace) {
        self.load = self.load.take().or(other.load);
        self.index = self.index.take().or(other.index);
        self.loads |= other.loads;
    }
}

struct Walk<'a> {
    program: &'a Program,
    kernel: &'a Kernel,
    trips: &'a Trips,
    out: KernelProfile,
    /// Enclosing loops: kind, variable and trip count.
    loops: Vec<(LoopKind, u32, f64)>,
    /// Whether a block was copied to local memory since the last barrier.
    copied: bool,
    /// Inputs that the innermost loop has already loaded; compilers keep them in registers.
    read: FxHashSet<(Mem, usize, Index)>,
    /// What the values of registers depend on.
    traces: FxHashMap<u32, Trace>,
    /// Operands of matrix instructions that were split in two parts.
    cut: BTreeSet<Expr>,
    /// Index of each streak, by memory, direction, width, and index without its constant.
    streaks: FxHashMap<(Mem, bool, usize, Index), usize>,
    /// The home loop of the current code: the innermost loop that is not unrolled, in a work-item
    /// or over work-items.
    body: Option<u32>,
    /// Operations with their home loops.
    ops: Vec<Operation>,
    /// Home loop of each access.
    homes: Vec<Option<u32>>,
    /// Number of iterations of each sequential loop, over all work-items.
    runs: BTreeMap<u32, f64>,
    /// Loops that a compiler cannot vectorise: they contain other loops or special functions, or go
    /// through memory in leaps.
    serial: BTreeSet<u32>,
    /// Loops that assign registers, which may carry values between iterations; compilers do not
    /// reorder sums.
    sums: BTreeSet<u32>,
}

/// Values of each variable at which a guard is looked at.
const PLACES: i64 = 8;

/// Greatest share of the work-groups of which a guard makes a difference.
const MOST: f64 = 0.8;

impl Walk<'_> {
    /// `count` is the number of executions over all groups, and over all work-items except in
    /// uniform code of a group. `uniform` says that each work-item of the group repeats the code.
    fn block(&mut self, b: &Block, count: f64, uniform: bool) {
        for s in b {
            self.stmt(s, count, uniform);
        }
    }

    /// Returns the share of the work-groups in which a guard holds, if it is much less than all of them: 1 if it is about the
    /// ends of arrays, or about work-items alone.
    fn share_of_groups(&self, g: &Guard) -> f64 {
        let mut vars: BTreeMap<u32, Var> = BTreeMap::new();
        g.0.iter().for_each(|c| c.visit_vars(&mut |v| _ = vars.insert(v.id, v.clone())));
        let is_group =
            |id: u32| self.loops.iter().any(|(k, v, _)| matches!(k, LoopKind::Wrg(_)) && *v == id);
        let by_groups = vars.keys().any(|id| is_group(*id));
        if !by_groups || vars.len() > 3 || g.0.iter().any(Index::has_data) {
            return 1.0;
        }
        let vars: Vec<Var> = vars.into_values().collect();
        let all = PLACES.pow(u32::try_from(vars.len()).unwrap_or(0));
        let holds = |place: &i64| {
            let at = |v: &Var| {
                let k = vars.iter().position(|w| w.id == v.id)?;
                let step = place / PLACES.pow(u32::try_from(k).ok()?) % PLACES;
                Some(v.lo + (v.hi - v.lo) * (2 * step + 1) / (2 * PLACES))
            };
            g.0.iter().all(|c| c.eval(&at).is_none_or(|n| n >= 0))
        };
        let share = (0..all).filter(holds).count() as f64 / all as f64;
        if share > MOST { 1.0 } else { share.max(1.0 / all as f64) }
    }

    fn stmt(&mut self, s: &Stmt, count: f64, uniform: bool) {
        let grouped = self.loops.iter().any(|(k, ..)| matches!(k, LoopKind::Wrg(_)));
        let each = if uniform && grouped { count * real(self.out.group_size) } else { count };
        s.exprs(&mut |e| self.expr(e, each));
        match s {
            Stmt::Decl(_, None) => {}
            Stmt::Decl(r, Some(e)) | Stmt::Set(r, e) => {
                let trace = self.trace(e);
                self.traces.entry(r.id).or_default().join(trace);
            }
            Stmt::Store(m, i, e) => {
                let along = self.place_of_store(i, e);
                self.access(*m, true, e.ty().scalar.bytes(), e.ty().width, i, &along, each);
            }
            // The memory reads and writes the element.
            Stmt::Atomic(update, m, i, e) => {
                if matches!(m, Mem::Global(_)) && i.has_data() {
                    self.out.atomics += each;
                }
                if let Some(r) = update.register() {
                    let trace = Trace { load: None, index: None, loads: true };
                    self.traces.entry(r.id).or_default().join(trace);
                }
                let writes = !matches!(update, Update::Read(_));
                for write in [false, true].into_iter().filter(|write| writes || !write) {
                    self.access(*m, write, e.ty().scalar.bytes(), 1, i, i, each);
                }
            }
            Stmt::Loop { kind, var, lo, hi, body } => {
                let trips = self.trips.of_loop(lo, hi, body);
                let kept = match kind {
                    LoopKind::Seq => {
                        self.out.iterations += each * trips;
                        self.runs.insert(var.id, each * trips);
                        uniform
                    }
                    LoopKind::Wrg(_) => uniform,
                    LoopKind::Glb(_) | LoopKind::Lcl(_) | LoopKind::Warp | LoopKind::Lane => false,
                };
                let in_group = !self.loops.iter().any(|(k, ..)| k.is_local());
                let repeated = self.loops.iter().any(|(k, ..)| *k == LoopKind::Seq);
                let waits = |me: &Walk| !me.copied && copies(body, &me.kernel.locals);
                if kind.is_local() && in_group && repeated && waits(self) {
                    self.out.stalls += count / self.out.groups.max(1.0);
                    self.copied = true;
                }
                self.out.waiting += count * trips * super::dependence_chain::waiting(body);
                self.loops.push((*kind, var.id, trips));
                let read = std::mem::take(&mut self.read);
                let around = self.body;
                if !(*kind == LoopKind::Seq && trips <= WRITTEN_OUT && plain(body)) {
                    // The enclosing home loop contains this loop, so its iterations cannot be
                    // vectorised.
                    self.serial.extend(around);
                    self.body = Some(var.id);
                    let sums = |s: &Stmt| matches!(s, Stmt::Set(..));
                    let mut ordered = false;
                    for s in body {
                        s.visit(&mut |s| ordered |= sums(s) || matches!(s, Stmt::While(..)));
                    }
                    if *kind == LoopKind::Seq && ordered {
                        self.sums.insert(var.id);
                    }
                }
                self.block(body, count * trips, kept);
                self.body = around;
                self.read = read;
                self.loops.pop();
            }
            Stmt::If(g, a, b) => {
                let share = self.share_of_groups(g);
                self.block(a, share * count, uniform);
                let rest = if a.is_empty() { count } else { (1.0 - share) * count };
                if rest > 0.0 {
                    self.block(b, rest, uniform);
                }
            }
            // What has no alternative is done in the common case, such as an update of a bin that exists.
            Stmt::Branch(_, a, b) if b.is_empty() => self.block(a, count, uniform),
            // Neighbouring work-items that decide differently go through both sides together.
            Stmt::Branch(c, a, b) => {
                let share = if self.trace(c).differs() { 1.0 } else { 0.5 };
                self.block(a, share * count, uniform);
                self.block(b, share * count, uniform);
            }
            Stmt::While(head, _, body) => {
                let times = self.trips.of_while(body);
                self.block(head, count * times, uniform);
                self.block(body, count * times, uniform);
            }
            Stmt::Once(b) => self.block(b, count, false),
            // The work-items of a sub-group do not wait for other sub-groups.
            Stmt::Barrier { scope: Scope::Warp, .. } => {}
            Stmt::Barrier { scope: Scope::Group, .. } => {
                self.copied = false;
                let groups: f64 = self
                    .loops
                    .iter()
                    .filter(|(k, ..)| matches!(k, LoopKind::Wrg(_)))
                    .map(|l| l.2)
                    .product();
                self.out.barriers += count / groups.max(1.0);
            }
        }
    }

    fn expr(&mut self, e: &Expr, count: f64) {
        match e {
            Expr::Lit(_) | Expr::Arg(..) | Expr::Reg(_) => {}
            Expr::Index(i, _) => self.data(i, count),
            Expr::Load(m, t, i) => {
                let mut count = count;
                if self.is_input(*m) {
                    if !self.read.insert((*m, t.width, i.clone())) {
                        return;
                    }
                    // Compilers load values that do not change in a loop before the loop.
                    let fixed = self.loops.iter().rev().take_while(|(kind, id, _)| {
                        *kind == LoopKind::Seq && !i.has_data() && !i.mentions(*id)
                    });
                    count /= fixed.map(|l| l.2.max(1.0)).product::<f64>();
                }
                self.data(i, count);
                let at = self.place_of_load(i);
                self.access(*m, false, t.scalar.bytes(), t.width, &at, &at, count);
            }
            Expr::Op(op, t, es) => {
                let width = es.iter().map(|e| e.ty().width).max().unwrap_or(t.width);
                let float = t.scalar.is_float();
                let bytes = if float { t.scalar.bytes() } else { 4 };
                let held = self.lanes_held();
                self.ops.push((self.body, (kind(*op, float), width, bytes), count, held));
                es.iter().for_each(|e| self.expr(e, count));
            }
            Expr::Checked(_, es) => {
                let width = e.ty().width;
                let held = self.lanes_held();
                self.ops.push((self.body, (OpKind::Other, width, 4), 2.0 * count, held));
                es.iter().for_each(|e| self.expr(e, count));
            }
            Expr::If(c, a, b) => {
                self.expr(c, count);
                self.expr(a, count);
                self.expr(b, count);
            }
            // Count the guarded side only: the guard holds in the common case.
            Expr::Guarded(_, a, _) => self.expr(a, count),
            Expr::Splat(e, _) | Expr::Lane(e, _) | Expr::Matrices(_, e) => self.expr(e, count),
            Expr::Products(of, es) => {
                let held = self.lanes_held();
                self.ops.push((None, (OpKind::Products(*of), 1, 4), count, held));
                for e in es {
                    // Operands are registers, and need no vector. Each `f32` is split once: by a sum, a mask, and a difference.
                    let parts = if let Expr::Vector(parts) = e { &parts[..] } else { &[] };
                    for e in parts {
                        if !self.cut.insert(e.clone()) {
                            continue;
                        }
                        if *of == Products::F32 {
                            self.ops.push((None, (OpKind::Other, 1, 4), 2.0 * count, held));
                            self.ops.push((None, (OpKind::Add, 1, 4), count, held));
                        }
                        self.expr(e, count);
                    }
                }
            }
            Expr::Vector(es) => {
                // Each lane is inserted with an operation of its own.
                let held = self.lanes_held();
                self.ops.push((None, (OpKind::Other, 1, 4), count * real(es.len()), held));
                let body = self.body.take();
                es.iter().for_each(|e| self.expr(e, count));
                self.body = body;
            }
        }
    }

    /// Whether the program only reads this memory.
    fn is_input(&self, m: Mem) -> bool {
        let Mem::Global(b) = m else { return false };
        self.program.buffers.get(b).is_some_and(|b| matches!(b.role, BufferRole::Input(..)))
    }

    fn data(&mut self, i: &Index, count: f64) {
        let mut inner = vec![];
        i.visit_data(&mut |e| inner.push(e.clone()));
        inner.iter().for_each(|e| self.expr(e, count));
    }

    /// Returns the number of the loop over neighbouring work-items.
    fn item(&self) -> Option<u32> {
        let item = |(k, ..): &&(LoopKind, u32, f64)| {
            matches!(k, LoopKind::Glb(0) | LoopKind::Lcl(0) | LoopKind::Lane)
        };
        self.loops.iter().find(item).map(|l| l.1)
    }

    /// Returns what a value depends on.
    fn trace(&self, e: &Expr) -> Trace {
        let Some(item) = self.item() else { return Trace::default() };
        let mut out = match e {
            Expr::Index(i, _) if i.mentions(item) => Trace::of_index(i),
            Expr::Load(_, _, i) if i.has_data() || i.mentions(item) => {
                let load = (!i.has_data()).then(|| i.clone());
                Trace { load, index: None, loads: true }
            }
            Expr::Reg(r) => self.traces.get(&r.id).cloned().unwrap_or_default(),
            _ => Trace::default(),
        };
        let mut inner = vec![];
        parts(e, &mut |e, _| inner.push(self.trace(e)));
        // Hash functions take values of neighbouring work-items apart: their results are as good as loaded data.
        out.loads |= match e {
            Expr::Op(ScalarOp::BitXor, ..) => inner.iter().all(Trace::differs),
            Expr::Op(ScalarOp::MulHi, ..) => inner.iter().any(Trace::differs),
            _ => false,
        };
        inner.into_iter().for_each(|t| out.join(t));
        out
    }

    /// Returns an index that changes between work-items as the place of a load does: values that are computed from indices
    /// alone, such as those of neighbours at a border, stand for these indices. A place that loaded data decide is returned as it is.
    fn place_of_load(&self, i: &Index) -> Index {
        let found = self.with_traces(i, &|t| (!t.loads).then(|| t.index.unwrap_or(Index::from(0))));
        found.unwrap_or_else(|| i.clone())
    }

    /// Returns an index that changes as the place of a store does. A place that data decide is taken to change as the place
    /// that they or the value are loaded from: a compaction, a counting sort and most permutations keep neighbours together.
    fn place_of_store(&self, i: &Index, value: &Expr) -> Index {
        let found = self.with_traces(i, &|t| t.load.or(t.index));
        let found = found.or_else(|| self.trace(value).load.filter(|_| i.has_data()));
        found.unwrap_or_else(|| i.clone())
    }

    /// Replaces data in an index by what `of` gives for them; `None` if it gives nothing.
    fn with_traces(&self, i: &Index, of: &dyn Fn(Trace) -> Option<Index>) -> Option<Index> {
        let mut out = Index::from(i.constant());
        for (atom, weight) in i.terms() {
            let term = i.part(atom);
            let mut data = None;
            term.visit_data(&mut |e| data = Some(data.take().unwrap_or_else(|| of(self.trace(e)))));
            out = match data {
                None => out.add(&term),
                Some(found) => out.add(&found?.times(weight)),
            };
        }
        Some(out)
    }

    /// Records an access whose place changes as `along` does.
    #[expect(clippy::too_many_arguments, reason = "what an access is")]
    fn access(
        &mut self,
        mem: Mem,
        store: bool,
        bytes: usize,
        width: usize,
        i: &Index,
        along: &Index,
        count: f64,
    ) {
        let stride = |id: Option<u32>| match id {
            None => Some(0),
            Some(_) if along.has_data() => None,
            Some(id) => along.linear_in(id).map(|(c, _)| c).or_else(|| {
                // The index contains a quotient or a remainder of the variable: take the difference
                // of the first two values.
                let at = |k: i64| along.eval(&|v| Some(if v.id == id { k } else { v.lo }));
                Some(at(1)? - at(0)?)
            }),
        };
        let item = self
            .loops
            .iter()
            .find(|(k, ..)| matches!(k, LoopKind::Glb(0) | LoopKind::Lcl(0) | LoopKind::Lane));
        let innermost = self.loops.iter().rev().find(|(k, ..)| *k == LoopKind::Seq);
        let len = self.kernel.array(self.program, mem).map_or(0.0, |a| real(a.len));
        // The number of distinct indices is at most the number of iterations of the loops that the
        // index depends on.
        let combinations: f64 = self
            .loops
            .iter()
            .filter(|(_, id, _)| i.has_data() || i.mentions(*id))
            .map(|l| l.2)
            .product();
        let of_group = |kind, trips: f64| match kind {
            LoopKind::Wrg(_) => 1.0,
            LoopKind::Glb(d) => trips.min(real(self.kernel.group[usize::from(d)])),
            LoopKind::Lcl(_) | LoopKind::Seq | LoopKind::Warp | LoopKind::Lane => trips,
        };
        let (mut in_group, mut in_item) = (1.0, 1.0);
        for (kind, _, trips) in
            self.loops.iter().filter(|(_, id, _)| i.has_data() || i.mentions(*id))
        {
            in_group *= of_group(*kind, *trips);
            if *kind == LoopKind::Seq {
                in_item *= trips;
            }
        }
        let (lo, hi) = i.range();
        let span = if i.has_data() { len } else { signed(hi) - signed(lo) + real(width) };
        let touched = (combinations * real(width)).min(span).min(len);
        // Windows overlap: what a group or a work-item touches lies in the span of its places.
        let in_span = |of_group: bool| {
            if i.has_data() {
                return f64::INFINITY;
            }
            let within = i.substitute(&|v| self.held(v, of_group));
            let (lo, hi) = within.range();
            signed(hi) - signed(lo) + real(width)
        };
        let group_touches = (in_group * real(width)).min(in_span(true)).min(touched);
        let item_touches = (in_item * real(width)).min(in_span(false)).min(group_touches);
        let place = i.constant();
        let next = self.streaks.len();
        let key = (mem, store, width, i.sub(&Index::from(place)));
        let streak = *self.streaks.entry(key).or_insert(next);
        if streak == next {
            let step = i.terms().map(|(_, c)| c).fold(0, gcd);
            self.out.streaks.push(Streak { step, ..Streak::default() });
        }
        self.out.streaks[streak].places.push(place);
        self.out.accesses.push(Access {
            mem,
            store,
            elem_bytes: bytes,
            width,
            aligned: i64::try_from(width).is_ok_and(|w| i.is_multiple_of(w.max(1))),
            count,
            uneven: self.uneven(),
            lanes_held: self.lanes_held(),
            array_bytes: len * real(bytes),
            footprint: touched * real(bytes),
            group_footprint: group_touches * real(bytes),
            item_footprint: item_touches * real(bytes),
            item_stride: stride(item.map(|l| l.1)),
            lanes: item.and_then(|l| self.lanes(mem, along, l.1, l.2)).unwrap_or_default(),
            loop_stride: stride(innermost.map(|l| l.1)),
            walk: self.loops.iter().rev().map(|(_, id, n)| (stride(Some(*id)), *n)).collect(),
            of_group: self.loops.iter().rev().map(|(kind, _, n)| of_group(*kind, *n)).collect(),
            streak,
            home_stride: stride(self.body),
            along: 1,
        });
        self.homes.push(self.body);
    }

    /// Returns the distances of the first work-items from the first one, for an index that is not linear in the number of the
    /// work-item, which runs up to `trips`, or elements that are not stored in their order.
    fn lanes(&self, mem: Mem, i: &Index, item: u32, trips: f64) -> Option<Vec<i64>> {
        let ordered = self.kernel.array(self.program, mem).filter(|a| a.pieces > 0);
        if i.has_data() || ordered.is_none() && i.linear_in(item).is_some() {
            return None;
        }
        let at = |lane: i64| {
            let place = i.eval(&|v| Some(if v.id == item { lane } else { v.lo }))?;
            Some(ordered.map_or(place, |a| a.stored_at(place)))
        };
        let first = at(0)?;
        (0..LANES)
            .take_while(|lane| signed(*lane) < trips)
            .map(|lane| Some(at(lane)? - first))
            .collect()
    }

    /// Returns how many times as often as the average work-item of a group the busiest one executes this code.
    fn uneven(&self) -> f64 {
        let of_loop = |(kind, _, trips): &(LoopKind, u32, f64)| match kind {
            LoopKind::Lcl(d) if *trips > 0.0 => {
                let items = real(self.kernel.group[usize::from(*d)].max(1));
                (trips / items).ceil() * items / trips
            }
            _ => 1.0,
        };
        self.loops.iter().map(of_loop).product()
    }

    /// Returns how many lanes of warps are held by this code for each lane that executes it. Warps consist of neighbouring
    /// work-items.
    fn lanes_held(&self) -> f64 {
        let of_loop = |(kind, _, trips): &(LoopKind, u32, f64)| {
            let LoopKind::Lcl(d) = kind else { return 1.0 };
            let d = usize::from(*d);
            let items = real(self.kernel.group[d].max(1));
            let before: usize = self.kernel.group[..d].iter().product();
            // Work-items of this dimension in a warp.
            let together = (signed(LANES) / real(before.max(1))).ceil().max(1.0);
            if *trips <= 0.0 {
                return 1.0;
            }
            let last = trips - (trips / items).floor() * items;
            let held = trips - last + items.min((last / together).ceil() * together);
            held / trips
        };
        self.loops.iter().map(of_loop).product()
    }

    /// Returns a variable with the values that it takes in one group, or in one work-item; `None` if these are all its
    /// values.
    fn held(&self, v: &Var, of_group: bool) -> Option<Index> {
        let (kind, ..) = self.loops.iter().find(|l| l.1 == v.id)?;
        let count = match kind {
            LoopKind::Seq => return None,
            LoopKind::Wrg(_) => 1,
            LoopKind::Glb(d) if of_group => self.kernel.group[usize::from(*d)],
            LoopKind::Lcl(_) | LoopKind::Warp | LoopKind::Lane if of_group => return None,
            _ => 1,
        };
        let last = v.lo.saturating_add(i64::try_from(count).unwrap_or(i64::MAX).saturating_sub(1));
        Some(Index::from(Var { hi: v.hi.min(last), ..v.clone() }))
    }

    /// Determines which loops can be vectorised, and assigns operations and accesses to them.
    fn side_by_side(&mut self) {
        let mut serial = std::mem::take(&mut self.serial);
        // For loops with sums, the number of adjacent places that each iteration accesses.
        let mut neighbours: BTreeMap<u32, usize> = BTreeMap::new();
        let runs: Vec<usize> = self.out.streaks.iter().map(Streak::run).collect();
        for (a, home) in self.out.accesses.iter().zip(&self.homes) {
            let Some(home) = home else { continue };
            if a.width > 1 || a.home_stride == Some(0) {
                continue;
            }
            let places = runs.get(a.streak).copied().unwrap_or(1);
            match a.home_stride {
                Some(s) if s.unsigned_abs() > places as u64 => {
                    serial.insert(*home);
                }
                _ => {
                    let least = neighbours.entry(*home).or_insert(places);
                    *least = places.min(*least);
                }
            }
        }
        let dear = |kind: &OpKind| *kind == OpKind::Special;
        serial.extend(self.ops.iter().filter(|(_, (kind, ..), ..)| dear(kind)).filter_map(|o| o.0));
        let along = |home: Option<u32>| match home {
            Some(h) if self.sums.contains(&h) => match neighbours.get(&h) {
                Some(n) if *n >= 4 => *n,
                _ => 1,
            },
            Some(h) if !serial.contains(&h) => usize::MAX,
            _ => 1,
        };
        let runs = self.runs.iter().filter(|(id, _)| along(Some(**id)) == usize::MAX);
        self.out.iterations_along = runs.map(|(_, n)| n).sum();
        let homes: Vec<usize> = self.homes.iter().map(|h| along(*h)).collect();
        let (mut ops, mut ops_held) = (BTreeMap::new(), BTreeMap::new());
        for (home, (kind, width, bytes), count, held) in &self.ops {
            let key = (*kind, *width, *bytes, along(*home));
            *ops.entry(key).or_insert(0.0) += *count;
            *ops_held.entry(key).or_insert(0.0) += *count * held;
        }
        if self.program.contract {
            fuse(&mut ops);
            fuse(&mut ops_held);
        }
        self.out.ops = ops;
        self.out.ops_held = ops_held;
        for (a, along) in self.out.accesses.iter_mut().zip(homes) {
            a.along = along;
        }
    }
}

/// Fuses products and sums in pairs, as far as there are both. Compilers may do so, and do.
fn fuse(ops: &mut BTreeMap<(OpKind, usize, usize, usize), f64>) {
    let products: Vec<_> = ops.keys().filter(|k| k.0 == OpKind::Mul).copied().collect();
    for (_, width, bytes, along) in products {
        let of = |kind| (kind, width, bytes, along);
        let count = |kind| ops.get(&of(kind)).copied().unwrap_or(0.0);
        let both = count(OpKind::Mul).min(count(OpKind::Add));
        for kind in [OpKind::Mul, OpKind::Add] {
            ops.entry(of(kind)).and_modify(|n| *n -= both);
        }
        *ops.entry(of(OpKind::Fma)).or_insert(0.0) += both;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calculus::size::SizeEnv;
    use crate::kernel::lower;
    use crate::kernel::lower::testing::{options, term};

    /// The distance between the places in `xs` that neighbouring work-items load from; `None` if they are anywhere.
    fn distance(place: &str) -> Option<i64> {
        let text =
            format!("mapGlb 0 (index . bimap id ({place})) . distl . fork xs (iota 4096 u32)");
        let term = term(&text, &[("xs", "[4096]f32")]);
        let program = lower(&term, &SizeEnv::default(), &options()).expect("lowers");
        let profile = kernel(&program, &program.kernels[0]);
        let [access] = profile.accesses.iter().filter(|a| !a.store).collect::<Vec<_>>()[..] else {
            panic!("one load: {program}");
        };
        access.item_stride
    }

    #[test]
    fn what_hash_functions_decide_is_random() {
        assert_eq!(distance("\\i -> i32.u32 i"), Some(1));
        assert_eq!(distance("\\i -> min (i32.u32 i + 1) 4095"), Some(1));
        assert_eq!(distance("\\i -> i32.u32 (mulhi (i * 2654435769u32) 4096u32)"), None);
        assert_eq!(distance("\\i -> i32.u32 ((i ^ i >> 3u32) % 4096u32)"), None);
        // A partner at a fixed distance.
        assert_eq!(distance("\\i -> i32.u32 (i ^ 64u32)"), Some(1));
    }

    #[test]
    fn neighbours_that_differ_go_through_both_sides_of_a_branch() {
        // Loads of one side: sums of rows of `A` where the condition holds, and of `B` elsewhere.
        let loads = |condition: &str| {
            let sum = "reduceSeq (+) 0.0 . index . bimap id (\\i -> i32.u32 i)";
            let text = format!(
                "mapGlb 0 (cond ({condition}) ({sum} . bimap fst id) ({sum} . bimap snd id)) . distl . fork (fork A B) (iota 4096 u32)"
            );
            let term = term(&text, &[("A", "[4096][40]f32"), ("B", "[4096][40]f32"), ("k", "i32")]);
            let program = lower(&term, &SizeEnv::default(), &options()).expect("lowers");
            let profile = kernel(&program, &program.kernels[0]);
            profile.accesses.iter().filter(|a| !a.store).map(|a| a.count).sum::<f64>()
        };
        let all = 4096.0 * 40.0;
        assert_eq!(loads("(\\i -> i % 2u32 == 0u32) . snd"), 2.0 * all);
        assert_eq!(loads("(\\k -> k > 0) . k . bang"), all);
    }
}
