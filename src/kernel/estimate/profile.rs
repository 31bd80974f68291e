//! Static features of kernels, the input of the cost model. They are counts, not times.
//!
//! Counts are over all work-items of one launch. If a loop bound depends on the work-item, the
//! middle of its range stands for it. Only the guarded side of a guard counts, but for guards that fail in
//! many work-groups, of which each side counts by its share. Each side of a branch on data counts half.

use super::critical_path::{LOADS, critical_path};
pub use super::op_kind::OpKind;
use super::op_kind::kind;
use super::pressure;
use super::trip_count::{Trips, UNKNOWN};
use crate::calculus::op::products::Products;
use crate::kernel::ir::index::{Guard, Index, Var};
use crate::kernel::ir::team::{Shares, shares};
use crate::kernel::ir::walk::parts;
use crate::kernel::ir::{
    Block, BufferRole, Expr, Kernel, Launched, LoopKind, Mem, Program, Scope, Stmt, Team, Update,
};
use crate::lang::typed::ScalarOp;
use indexmap::IndexSet;
use num_integer::gcd;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Number of neighbouring work-items whose places are looked at one by one.
pub const LANES: i64 = 32;

/// One load or store in the code.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// The memory.
    pub mem: Mem,
    /// Whether it stores.
    pub store: bool,
    /// Bytes of a scalar.
    pub elem_bytes: usize,
    /// Scalars in one access.
    pub width: usize,
    /// Whether the place is a multiple of the width in all executions. Other vectors are accessed
    /// scalar by scalar on devices without unaligned accesses.
    pub aligned: bool,
    /// Number of executions, over all work-items.
    pub count: f64,
    /// How many times as often the busiest work-item of a group executes it as the average one does. It is more than 1
    /// where work-items of the group are idle.
    pub uneven: f64,
    /// How many lanes of warps execute it or are idle meanwhile, for each that executes it.
    pub lanes_held: f64,
    /// Size of the array in bytes.
    pub array_bytes: f64,
    /// Distinct bytes that all work-items together touch.
    pub footprint: f64,
    /// Distinct bytes that one work-group touches.
    pub group_footprint: f64,
    /// Distinct bytes that one work-item touches.
    pub item_footprint: f64,
    /// Distance in scalars between neighbouring work-items of dimension 0; `None` if not constant.
    pub item_stride: Option<i64>,
    /// Distances in scalars of the first [`LANES`] work-items of dimension 0 from the first one, if they are known and are no
    /// multiples of one distance.
    pub lanes: Vec<i64>,
    /// Distance in scalars between iterations of the innermost sequential loop around it; `None` if
    /// not constant, 0 outside loops.
    pub loop_stride: Option<i64>,
    /// The loops around it, innermost first, including loops over work-items and groups: the
    /// distance in scalars between iterations (`None` if not constant) and the number of
    /// iterations.
    pub walk: Vec<(Option<i64>, f64)>,
    /// The number of iterations of each of these loops that one work-group executes.
    pub of_group: Vec<f64>,
    /// Index of its streak in [`KernelProfile::streaks`].
    pub streak: usize,
    /// Distance in scalars between iterations of the innermost loop around it that is not unrolled,
    /// where loops over work-items count; `None` if not constant.
    pub home_stride: Option<i64>,
    /// Number of such accesses that a compiler can vectorise; see [`KernelProfile::ops`].
    pub along: usize,
}

impl Access {
    /// Hashes the features. Memories of the program are numbered in the order of `buffers`.
    fn hash_features(&self, buffers: &mut IndexSet<usize>, h: &mut DefaultHasher) {
        let Access {
            mem,
            store,
            elem_bytes,
            width,
            aligned,
            count,
            uneven,
            lanes_held,
            array_bytes,
            footprint,
            group_footprint,
            item_footprint,
            item_stride,
            lanes,
            loop_stride,
            walk,
            of_group,
            streak,
            home_stride,
            along,
        } = self;
        let mem = match mem {
            Mem::Global(b) => Mem::Global(buffers.insert_full(*b).0),
            mem => *mem,
        };
        (mem, store, elem_bytes, width, aligned, streak, along).hash(h);
        (item_stride, lanes, loop_stride, home_stride).hash(h);
        let footprints = [array_bytes, footprint, group_footprint, item_footprint];
        for x in [count, uneven, lanes_held].into_iter().chain(footprints).chain(of_group) {
            x.to_bits().hash(h);
        }
        (walk.len(), of_group.len()).hash(h);
        walk.iter().for_each(|(stride, n)| (stride, n.to_bits()).hash(h));
    }

    /// Returns the loops around the access, or those of a group: the distance between iterations in scalars, and the number
    /// of iterations, the greatest distance first. Loops whose iterations are consecutive are one loop. If a distance is not constant, it
    /// is one loop that takes a step of its streak at a time.
    pub fn loops(&self, of_group: bool, step: i64) -> Vec<(i64, f64)> {
        let counts = self.walk.iter().zip(&self.of_group);
        let counts =
            counts.map(|((stride, n), group)| (*stride, if of_group { *group } else { *n }));
        let moving = counts.filter(|(stride, n)| *stride != Some(0) && *n > 1.0);
        let loops: Option<Vec<(i64, f64)>> =
            moving.map(|(stride, n)| Some((stride?.saturating_abs(), n))).collect();
        let Some(mut loops) = loops else {
            let touched = if of_group { self.group_footprint } else { self.footprint };
            let places = touched / real(self.elem_bytes.max(1) * self.width.max(1));
            return vec![(step.max(1), places.max(1.0))];
        };
        loops.sort_by_key(|(stride, _)| *stride);
        let mut out: Vec<(i64, f64)> = vec![];
        for (stride, n) in loops {
            match out.last_mut() {
                Some((step, count)) if signed(*step) * *count == signed(stride) => *count *= n,
                _ => out.push((stride, n)),
            }
        }
        out.reverse();
        out
    }
}

/// Accesses whose indices differ only by a constant: those of an unrolled loop.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Streak {
    /// Positions of the accesses in scalars from a common origin, ascending.
    pub places: Vec<i64>,
    /// What divides all distances between the places of one access; 0 if it has a single place.
    pub step: i64,
}

impl Streak {
    /// Returns the blocks of this many scalars that contain the places, ascending. The origin is
    /// assumed to start a block.
    pub fn line_blocks(&self, scalars: i64) -> Vec<i64> {
        let mut blocks: Vec<i64> =
            self.places.iter().map(|p| p.div_euclid(scalars.max(1))).collect();
        blocks.dedup();
        blocks
    }

    /// Number of accesses, or of their places if these are `stores`: two stores whose places differ by data alone write two sectors.
    pub fn different(&self, stores: bool) -> usize {
        match stores {
            true => self.places.iter().collect::<BTreeSet<_>>().len(),
            false => self.places.len(),
        }
    }

    /// Length of the run of consecutive places that begins with the first place.
    pub fn run(&self) -> usize {
        let mut places = self.places.clone();
        places.sort_unstable();
        places.dedup();
        1 + places.windows(2).take_while(|w| w[1] == w[0] + 1).count()
    }

    /// Returns how many of the scalars that the accesses touch are different, as a share of their sum. Each access is in
    /// these [`loops`](Access::loops), and touches `width` scalars at a time. Accesses further than `most` scalars apart do
    /// not count as touching the same, since a cache does not hold what lies between.
    pub fn distinct(&self, width: usize, loops: &[(i64, f64)], most: f64) -> f64 {
        let lanes = i64::try_from(width.max(1)).unwrap_or(1);
        let mut all: Vec<i64> =
            self.places.iter().flat_map(|p| (0..lanes).map(move |k| p + k)).collect();
        all.sort_unstable();
        all.dedup();
        let sum = real(self.places.len() * width.max(1));
        if self.step == 0 {
            return real(all.len()) / sum.max(1.0);
        }
        let mut last: FxHashMap<i64, i64> = FxHashMap::default();
        let mut different = 0.0;
        for place in all {
            different += match last.insert(place.rem_euclid(self.step), place) {
                Some(before) if signed(place - before) <= most => {
                    1.0 - overlap(place - before, loops)
                }
                _ => 1.0,
            };
        }
        different / sum.max(1.0)
    }

    /// Number of blocks of this many scalars that contain the places.
    pub fn blocks(&self, scalars: i64) -> usize {
        self.line_blocks(scalars).len()
    }
}

/// Features of one kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelProfile {
    /// Its name.
    pub name: String,
    /// Number of work-groups.
    pub groups: f64,
    /// Number of work-items in a group.
    pub group_size: usize,
    /// Groups that start as one; at least 1 counts.
    pub side_by_side: usize,
    /// What a team shares out of it; `None` if no team ever runs it.
    pub shares: Option<Shares>,
    /// Number of barriers that each work-item passes.
    pub barriers: f64,
    /// Bytes of local memory of one group.
    pub local_bytes: usize,
    /// Number of times that a group waits, in a loop, for a copy from global to local memory that
    /// nothing overlaps.
    pub stalls: f64,
    /// Atomic operations on elements of global memory that data decide, over all work-items.
    pub atomics: f64,
    /// Bytes of declared registers of one work-item. Among nested blocks that follow each other,
    /// only the one with the most registers counts.
    pub register_bytes: usize,
    /// Bytes of registers that are live at once in a block of the code, and how often a work-item runs the block. Of two blocks, one
    /// has more and runs less often.
    pub pressure: Vec<(usize, f64)>,
    /// Memory accesses in code order.
    pub accesses: Vec<Access>,
    /// Streaks of the accesses, indexed by [`Access::streak`].
    pub streaks: Vec<Streak>,
    /// Number of operations over all work-items. The key is the kind, the vector width, the bytes
    /// of a float (4 for other types), and the number of operations that a compiler can vectorise.
    /// These belong to neighbouring iterations of the innermost loop, where loops over work-items
    /// count, or to one iteration that is unrolled.
    pub ops: BTreeMap<(OpKind, usize, usize, usize), f64>,
    /// The same with the lanes of warps that are idle meanwhile.
    pub ops_held: BTreeMap<(OpKind, usize, usize, usize), f64>,
    /// Loop iterations over all work-items.
    pub iterations: f64,
    /// Iterations of loops that a compiler can vectorise.
    pub iterations_along: f64,
    /// Total stall of dependency chains over all work-items, in latencies of an addition.
    pub waiting: f64,
    /// Time of one work-item that is alone on the device, in latencies of an addition, for each of [`LOADS`].
    pub path: [f64; 3],
}

impl KernelProfile {
    /// Returns the private arrays that are not in registers, of which a work-item has `most` bytes, with their bytes: those that are
    /// larger, and those with an index that is not known when they are compiled.
    pub fn spilled(&self, most: f64) -> BTreeMap<Mem, f64> {
        let known = |a: &Access| a.walk.iter().all(|(s, n)| *s == Some(0) || *n <= WRITTEN_OUT);
        let spills =
            |a: &&Access| matches!(a.mem, Mem::Private(_)) && (a.array_bytes > most || !known(a));
        self.accesses.iter().filter(spills).map(|a| (a.mem, a.array_bytes)).collect()
    }

    /// Returns a number that kernels with the same features share, whatever the names of kernels and arrays. The model cannot
    /// tell such kernels apart.
    pub fn fingerprint(&self) -> u64 {
        let KernelProfile {
            name: _,
            groups,
            group_size,
            side_by_side,
            shares: _,
            barriers,
            local_bytes,
            stalls,
            atomics,
            register_bytes,
            pressure,
            accesses,
            streaks,
            ops,
            ops_held,
            iterations,
            iterations_along,
            waiting,
            path,
        } = self;
        let mut h = DefaultHasher::new();
        for x in [groups, barriers, stalls, atomics, iterations, iterations_along, waiting] {
            x.to_bits().hash(&mut h);
        }
        (path.map(f64::to_bits), group_size, side_by_side, local_bytes, register_bytes)
            .hash(&mut h);
        (pressure.len(), accesses.len(), streaks.len(), ops.len()).hash(&mut h);
        pressure.iter().for_each(|(live, times)| (live, times.to_bits()).hash(&mut h));
        let mut buffers = IndexSet::new();
        accesses.iter().for_each(|a| a.hash_features(&mut buffers, &mut h));
        streaks.iter().for_each(|s| (&s.places, s.step).hash(&mut h));
        for (op, count) in ops.iter().chain(ops_held) {
            (op, count.to_bits()).hash(&mut h);
        }
        h.finish()
    }
}

/// What one launch runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Unit {
    /// A kernel.
    Kernel(usize),
    /// A loop that a team runs, with its kernels.
    Loop(Team, Vec<usize>),
}

impl Unit {
    /// Its kernels.
    pub fn kernels(&self) -> &[usize] {
        match self {
            Unit::Kernel(k) => std::slice::from_ref(k),
            Unit::Loop(_, kernels) => kernels,
        }
    }
}

/// Features of a whole program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// The kernels in order.
    pub kernels: Vec<KernelProfile>,
    /// Number of launches of each kernel.
    pub launches: Vec<f64>,
    /// What one launch runs, in order.
    pub units: Vec<Unit>,
    /// Bytes of inputs and results, each counted once.
    pub bytes: f64,
}

/// Returns the share of the places of an access that an access at this distance touches, too. The places are sums of multiples of the
/// loops' distances, which are given with the numbers of iterations, the greatest first. The distance is written as such a
/// sum: it leads out of a loop's range at as many iterations as its factor there says.
fn overlap(distance: i64, loops: &[(i64, f64)]) -> f64 {
    let (mut rest, mut share) = (distance, 1.0);
    for (step, iterations) in loops {
        let factor = (signed(rest) / signed(*step)).round();
        share *= (1.0 - factor.abs() / iterations).max(0.0);
        #[expect(clippy::cast_possible_truncation, reason = "at most the distance")]
        let factor = factor as i64;
        rest -= factor * step;
    }
    if rest == 0 { share } else { 0.0 }
}

fn real(n: usize) -> f64 {
    n as f64
}

fn signed(n: i64) -> f64 {
    n as f64
}

/// Bytes of registers that a work-item has on most devices.
const REGISTERS: f64 = 1024.0;

/// Computes the features of a program.
pub fn profile(program: &Program) -> Profile {
    let bytes = program
        .buffers
        .iter()
        .filter(|b| b.role != BufferRole::Temp)
        .map(|b| real(b.array.len) * real(b.array.scalar.bytes()))
        .sum();
    Profile {
        kernels: program.kernels.iter().map(|k| kernel(program, k)).collect(),
        launches: program.launches(UNKNOWN),
        units: units(program),
        bytes,
    }
}

/// Returns what each launch of a program runs.
pub fn units(program: &Program) -> Vec<Unit> {
    let unit = |launched| match launched {
        Launched::Kernel(k) => Unit::Kernel(k),
        Launched::Loop(team, steps) => Unit::Loop(team, program.phases(steps).collect()),
    };
    program.launched().into_iter().map(unit).collect()
}

fn kernel(program: &Program, k: &Kernel) -> KernelProfile {
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
    w.out.pressure = pressure::of(k, &spilled, &trips);
    w.out.path = LOADS.map(|loads| critical_path(&k.body, &spilled, loads, &trips));
    for streak in &mut w.out.streaks {
        streak.places.sort_unstable();
    }
    w.out
}

fn register_bytes(b: &Block) -> usize {
    let own = |s: &Stmt| match s {
        // Another name for a register, or for a part of one.
        Stmt::Decl(_, Some(Expr::Reg(_) | Expr::Lane(..))) => 0,
        Stmt::Decl(r, _) => r.ty.bytes(),
        _ => 0,
    };
    let inside = |s: &Stmt| s.blocks().into_iter().map(register_bytes).max().unwrap_or(0);
    b.iter().map(own).sum::<usize>() + b.iter().map(inside).max().unwrap_or(0)
}

/// Whether work-items both load from global memory and store to local memory.
fn copies(b: &Block) -> bool {
    let (mut loads, mut stores) = (false, false);
    for s in b {
        s.visit(&mut |s| {
            stores |=
                matches!(s, Stmt::Store(Mem::Local(_), ..) | Stmt::Atomic(_, Mem::Local(_), ..));
            s.exprs(&mut |e| {
                e.visit(&mut |e| loads |= matches!(e, Expr::Load(Mem::Global(_), ..)));
            });
        });
    }
    loads && stores
}

/// Maximum trip count of a loop that compilers are assumed to unroll.
pub(super) const WRITTEN_OUT: f64 = 16.0;

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
                if kind.is_local() && in_group && repeated && !self.copied && copies(body) {
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
            Stmt::Branch(_, a, b) => {
                self.block(a, count / 2.0, uniform);
                self.block(b, count / 2.0, uniform);
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
            lanes: item.and_then(|l| lanes(along, l.1, l.2)).unwrap_or_default(),
            loop_stride: stride(innermost.map(|l| l.1)),
            walk: self.loops.iter().rev().map(|(_, id, n)| (stride(Some(*id)), *n)).collect(),
            of_group: self.loops.iter().rev().map(|(kind, _, n)| of_group(*kind, *n)).collect(),
            streak,
            home_stride: stride(self.body),
            along: 1,
        });
        self.homes.push(self.body);
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

/// Returns the distances of the first work-items from the first one, for an index that is not linear in the number of the
/// work-item, which runs up to `trips`.
fn lanes(i: &Index, item: u32, trips: f64) -> Option<Vec<i64>> {
    if i.has_data() || i.linear_in(item).is_some() {
        return None;
    }
    let at = |lane: i64| i.eval(&|v| Some(if v.id == item { lane } else { v.lo }));
    let first = at(0)?;
    (0..LANES)
        .take_while(|lane| signed(*lane) < trips)
        .map(|lane| Some(at(lane)? - first))
        .collect()
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
    use super::super::tests::access;
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
        let kernels = profile(&program).kernels;
        let [access] = kernels[0].accesses.iter().filter(|a| !a.store).collect::<Vec<_>>()[..]
        else {
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
    fn stores_at_unknown_places_do_not_share_sectors() {
        let streak = Streak { places: vec![0, 0, 0, 1], ..Streak::default() };
        assert_eq!((streak.different(true), streak.different(false)), (2, 4));
    }

    #[test]
    fn accesses_that_overlap_touch_the_same() {
        let of = |places: &[i64], step, width, loops: &[(i64, f64)], most| {
            Streak { places: places.to_vec(), step }.distinct(width, loops, most)
        };
        // Neighbours in a long array: `a[i]`, `a[i + 1]`, `a[i + 2]`.
        let long = [(1, 1e6)];
        assert!((of(&[0, 1, 2], 1, 1, &long, 1e3) - 1.0 / 3.0).abs() < 1e-5);
        // The parts of a row of four, and the first parts of the next row.
        assert_eq!(of(&[0, 1, 2, 3], 4, 1, &[(4, 1e6)], 1e3), 1.0);
        assert!((of(&[0, 4, 8, 12], 8, 4, &[(8, 1e6)], 1e3) - 0.5).abs() < 1e-5);
        // Planes that are further apart than a cache is large, or than they are long.
        assert_eq!(of(&[0, 4096], 1, 1, &long, 1e3), 1.0);
        assert_eq!(of(&[0, 4096], 1, 1, &[(1, 1024.0)], 1e6), 1.0);
        // The same place twice.
        assert_eq!(of(&[7, 7], 0, 1, &[], 1e6), 0.5);
        // The neighbours beside of an element of rows of 64, and above; the latter is compared with the former.
        let rows = [(64, 32.0), (1, 64.0)];
        let wanted = (1.0 + 1.0 / 64.0 + 1.0 / 32.0 + 1.0 / 64.0) / 3.0;
        assert!((of(&[0, 1, 64], 1, 1, &rows, 1e6) - wanted).abs() < 1e-3);
        // Eight rows that a loop has been unrolled over lie between those of its iterations.
        let unrolled: Vec<i64> = (0..8).map(|k| 64 * k).collect();
        assert_eq!(of(&unrolled, 4, 4, &[(512, 32.0), (4, 16.0)], 1e6), 1.0);
    }

    #[test]
    fn loops_with_consecutive_iterations_are_one() {
        let a = Access {
            walk: vec![(Some(0), 9.0), (Some(1), 16.0), (Some(16), 4.0), (Some(1024), 8.0)],
            of_group: vec![9.0, 16.0, 4.0, 1.0],
            ..access(Mem::Global(0), false, 4608.0)
        };
        assert_eq!(a.loops(false, 1), [(1024, 8.0), (1, 64.0)]);
        assert_eq!(a.loops(true, 1), [(1, 64.0)]);
    }

    /// Kernels have the same features whatever the names of kernels and buffers are.
    #[test]
    fn fingerprints_tell_features_apart() {
        let on = |buffers: [usize; 2]| {
            let of = |b: usize| access(Mem::Global(b), false, 4.0);
            let accesses = buffers.map(of).to_vec();
            KernelProfile { name: format!("k{}", buffers[0]), accesses, ..KernelProfile::default() }
        };
        let same = on([3, 5]).fingerprint();
        assert_eq!(on([0, 1]).fingerprint(), same);
        assert_ne!(on([3, 3]).fingerprint(), same);
        let mut counted = on([3, 5]);
        counted.accesses[1].count += 1.0;
        assert_ne!(counted.fingerprint(), same);
        let waiting = KernelProfile { waiting: 1.0, ..on([3, 5]) };
        assert_ne!(waiting.fingerprint(), same);
        let path = KernelProfile { path: [0.0, 1.0, 0.0], ..on([3, 5]) };
        assert_ne!(path.fingerprint(), same);
    }
}
