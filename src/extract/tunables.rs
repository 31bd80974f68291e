//! Values for tiles, widths and rounded sizes. Constraints on divisibility and resources are solved before a
//! kernel is built.
//!
//! Every tile `t` of a size `s` has one of three roles in a term. *Small*: `t` itself is a number of
//! work-items or of registers. *Count*: `s/t` is such a number. *Chunk*: neither is; then `t` cuts the work
//! into a number of chunks for the device, or into short runs. Small values and counts are enumerated. A
//! chunk of a program's dimension is made a multiple of everything inside it, so that only program dimensions
//! (and numbers of partial results) are ever rounded up.

mod refit;

pub use refit::{assigned, refitted};

use super::slices::Slices;
use super::tiles::Tiles;
use super::{Dropped, Reason, cost};
use crate::calculus::size::{Size, SizeEnv, Sym};
use crate::calculus::term::{MapKind, Op, ReduceKind, Term};
use crate::calculus::ty::Ty;
use crate::device::cost_model::{CostModel, Locality, Search, Warps};
use crate::device::{DeviceInfo, DeviceKind};
use crate::diag::Limits;
use indexmap::{IndexMap, IndexSet};
use num_integer::gcd;
use rustc_hash::FxBuildHasher;
use std::collections::HashSet;

/// The properties of a device that the search needs.
#[derive(Clone, Debug)]
pub struct Target {
    pub(super) gpu: bool,
    pub(super) max_group: u64,
    /// Work-items that run at once.
    pub(super) items: f64,
    /// Work-groups that run at once.
    pub(super) groups: f64,
    /// Work-items of a group that run at once.
    pub(super) lanes: f64,
    /// Vector lanes of one instruction.
    pub(super) simd: f64,
    pub(super) launch_ns: f64,
    pub(super) group_ns: f64,
    pub(super) item_ns: f64,
    pub(super) barrier_ns: f64,
    pub(super) loop_ns: f64,
    /// Bandwidth of global memory, in bytes per nanosecond.
    pub(super) bytes_per_ns: f64,
    /// Work-items of a warp.
    pub(super) warp: u64,
    pub(super) warps: Warps,
    /// What is worth a try.
    pub(super) search: Search,
    /// Whether stores past the caches are worth a try.
    pub(super) streams: bool,
    /// Whether blocks are copied to local memory without registers in between.
    pub(super) copies_ahead: bool,
    units: u64,
    local: f64,
    widths: Vec<u64>,
}

impl Target {
    /// Builds the target from a device and its cost model.
    pub fn new(device: &DeviceInfo, model: &CostModel) -> Target {
        let units = u64::from(device.compute_units.max(1));
        let across = model.memory.locality == Locality::AcrossItems;
        let gpu = across || device.kind == DeviceKind::Gpu;
        let units_f = units as f64;
        let search = model.search();
        let useful = u64::from(model.compute.useful_vector_width.max(1));
        Target {
            gpu,
            max_group: device.max_work_group_size as u64,
            items: units_f * search.items_at_once as f64,
            groups: units_f * search.groups_at_once as f64,
            lanes: search.group_items_at_once as f64,
            simd: if gpu { 4.0 } else { f64::from(model.compute.simd_width.max(1)) },
            launch_ns: model.execution.launch_us * 1e3,
            group_ns: model.execution.work_group_overhead_ns,
            item_ns: model.execution.work_item_overhead_ns,
            barrier_ns: model.execution.barrier_item_ns * if gpu { 1.0 } else { 64.0 },
            loop_ns: model.loop_ns(),
            bytes_per_ns: model.memory.copy_gb_per_s,
            warp: u64::from(model.compute.simd_width.max(1)),
            warps: model.warps(),
            search,
            streams: model.may_stream(),
            copies_ahead: device.capabilities.copies_ahead,
            units,
            local: device.local_bytes_of_arrays() as f64,
            widths: [2, 4, 8, 16].into_iter().filter(|w| *w <= useful && (gpu || *w > 2)).collect(),
        }
    }

    /// Bytes of local memory that a group may have.
    pub(super) fn local_bytes(&self) -> f64 {
        self.local
    }

    /// Number of work-items of a warp.
    pub(super) fn warp(&self) -> f64 {
        self.warp as f64
    }

    /// Most accumulators of a work-item.
    pub(super) fn accumulators(&self) -> f64 {
        self.search.accumulators as f64
    }

    /// Bytes of registers: of a compute unit, of a work-item besides its accumulators, and of those the bytes for
    /// addresses and what the compiler makes.
    pub(super) fn register_bytes(&self) -> [f64; 3] {
        let w = self.warps;
        [w.register_file_bytes, w.spare_register_bytes, w.undeclared_register_bytes]
            .map(|bytes| bytes as f64)
    }

    /// Number of compute units.
    pub(super) fn units(&self) -> f64 {
        self.units as f64
    }

    /// Returns a lower bound on `size` over all choices of the tunables: a tile may be 1, or all of the size
    /// that it divides.
    fn least(&self, size: &Size, dims: &SizeEnv) -> f64 {
        let (num, den) = size.coefficient();
        size.factors().fold(num as f64 / den as f64, |out, (sym, e)| {
            let one = match (sym, e > 0) {
                (Sym::Dim(_), _) => dims.get(sym).copied().unwrap_or(1) as f64,
                (Sym::Round(of), true) => self.least(of, dims),
                (Sym::Width(_), false) => self.widths.last().copied().unwrap_or(1) as f64,
                (Sym::Tile(_) | Sym::Width(_) | Sym::Meta(_), true) => 1.0,
                (Sym::Tile(_) | Sym::Round(_) | Sym::Meta(_), false) => f64::INFINITY,
            };
            out * one.powi(e)
        })
    }

    /// Returns a lower bound on the bytes of a value over all choices of the tunables.
    pub(super) fn least_bytes(&self, t: &Ty, dims: &SizeEnv) -> f64 {
        let parts = t.components();
        let bytes = parts.iter().map(|(lengths, element)| {
            let scalar = match element {
                Ty::Vector(_, t) => t,
                t => t,
            };
            let Ty::Scalar(scalar) = scalar else { return 0.0 };
            // Tiles cancel in the product of the lengths.
            let all =
                lengths.iter().chain(element.width()).fold(Size::constant(1), |a, n| a.mul(n));
            scalar.bytes() as f64 * self.least(&all, dims)
        });
        bytes.sum()
    }

    /// Returns the numbers of work-items of a group to try.
    fn local_sizes(&self) -> Vec<u64> {
        let all: &[u64] = if self.gpu { &[64, 128, 256, 512, 1024] } else { &[4, 16, 64] };
        all.iter().copied().filter(|n| *n <= self.max_group).collect()
    }

    /// The lengths of unrolled loops and register arrays to try.
    const UNROLLS: &[u64] = &[2, 4, 8];

    /// The numbers of columns of a turned tile to try. A row of it is a run in memory.
    const TURNED: &[u64] = &[16, 32, 64];

    /// Returns the numbers of chunks to try for a dimension, for chunks of work-items or of groups.
    fn counts(&self, items: bool) -> Vec<u64> {
        let factors: &[u64] = match (self.gpu, items) {
            (true, true) => &[256, 512, 1024, 2048, 4096],
            (true, false) => &[1, 2, 4, 8, 16, 32, 64],
            (false, _) => &[1, 2, 4, 8, 32, 256],
        };
        factors.iter().map(|f| f * self.units).collect()
    }

    /// Returns the lengths to try for short runs of one work-item.
    fn runs(&self) -> &'static [u64] {
        if self.gpu { &[1, 2, 4, 8] } else { &[1, 4, 16, 64] }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Lanes,
    Unroll,
    CountLanes,
    CountUnroll,
    /// For work-items when true, for groups when false.
    Chunk(bool),
}

/// Returns rough values of sizes for the dynamic programming, before a term is known.
pub(super) fn nominal(
    target: &Target,
    env: &SizeEnv,
    tiles: IndexMap<Sym, f64>,
) -> impl Fn(&Size) -> f64 + use<> {
    let width = target.widths.last().copied().unwrap_or(1);
    let n = Nominal {
        env: env.clone(),
        chunks: target.units as f64 * target.search.chunks as f64,
        gpu: target.gpu,
        lanes: target.lanes,
        width,
        tiles,
    };
    move |s: &Size| n.size(s)
}

struct Nominal {
    env: SizeEnv,
    /// Number of chunks that keep the device busy.
    chunks: f64,
    gpu: bool,
    /// Work-items of a group.
    lanes: f64,
    width: u64,
    /// Tiles of products of all pairs.
    tiles: IndexMap<Sym, f64>,
}

impl Nominal {
    fn size(&self, s: &Size) -> f64 {
        let (num, den) = s.coefficient();
        s.factors().fold(num as f64 / den as f64, |out, (sym, e)| {
            let v = match (self.tiles.get(sym), sym) {
                (Some(v), Sym::Tile(of) | Sym::Width(of)) => v.min(self.size(of)).max(1.0),
                (_, Sym::Dim(_)) => self.env.get(sym).copied().unwrap_or(1024) as f64,
                (_, Sym::Meta(_)) => 1.0,
                (_, Sym::Width(_)) => self.width as f64,
                (_, Sym::Round(of)) => self.size(of),
                (_, Sym::Tile(of)) => {
                    let n = self.size(of);
                    match of.level() {
                        // A chunk for each group if there is enough to share out, else one for the work-items
                        // of a group.
                        0 => (n / self.chunks).max(if self.gpu { n.min(self.lanes) } else { 1.0 }),
                        _ if self.gpu => n.clamp(1.0, self.lanes),
                        _ => n.clamp(1.0, 4.0),
                    }
                }
            };
            out * v.max(1e-9).powi(e)
        })
    }
}

/// Returns concrete environments for a term, at most [`Limits::assignments`]. Environments with a score come
/// with the ratio of their expected cost to that of the best one. With `total`, accumulators need not fit into
/// registers. Counts the others in `dropped`.
pub(super) fn assignments(
    term: &Term,
    compact: &Term,
    dims: &SizeEnv,
    target: &Target,
    limits: &Limits,
    total: bool,
    dropped: &mut Dropped,
) -> Vec<(SizeEnv, Option<f64>)> {
    let uses = Uses::of(term, compact, total);
    let choices: Vec<(Sym, Vec<u64>)> =
        uses.symbols.iter().map(|s| (s.clone(), uses.options(s, dims, target))).collect();
    if let Some(tiles) = &uses.tiles {
        return tiled(&uses, tiles, &choices, dims, target, limits, dropped);
    }
    let all = untiled(&uses, &choices, dims, target, limits, dropped);
    all.into_iter().map(|env| (env, None)).collect()
}

/// Returns the first assignments of a term without tiles.
fn untiled(
    uses: &Uses,
    choices: &[(Sym, Vec<u64>)],
    dims: &SizeEnv,
    target: &Target,
    limits: &Limits,
    dropped: &mut Dropped,
) -> Vec<SizeEnv> {
    let walk = Walk::new(choices);
    let mut out: Vec<SizeEnv> = vec![];
    let mut distinct = Distinct::default();
    let mut tried = 0;
    while tried < walk.len().min(limits.assignments * 16) && out.len() < limits.assignments {
        let picked = walk.get(tried);
        tried += 1;
        let solved = match &uses.slices {
            Some(s) if !s.fits(&picked, target) => Err(Reason::GroupUnsuited),
            _ => uses.solve(&picked, dims, target, limits),
        };
        match solved {
            Ok(env) if distinct.is_new(&env) => out.push(env),
            Ok(_) => dropped.add(Reason::Same),
            Err(reason) => dropped.add(reason),
        }
    }
    dropped.add_all(Reason::ValuesUntried, walk.len() - tried);
    out
}

/// Assignments of the same symbols that were seen.
#[derive(Default)]
struct Distinct {
    symbols: Vec<Sym>,
    values: HashSet<Vec<Option<u64>>, FxBuildHasher>,
}

impl Distinct {
    /// Whether an assignment differs from all before it.
    fn is_new(&mut self, env: &SizeEnv) -> bool {
        if self.symbols.is_empty() {
            self.symbols = env.keys().cloned().collect();
        }
        self.values.insert(self.symbols.iter().map(|s| env.get(s).copied()).collect())
    }
}

/// A walk over all combinations of choices, each once. A part of the walk already varies every choice.
struct Walk<'a> {
    choices: &'a [(Sym, Vec<u64>)],
    total: u128,
    /// Coprime to `total`.
    stride: u128,
}

impl<'a> Walk<'a> {
    fn new(choices: &'a [(Sym, Vec<u64>)]) -> Walk<'a> {
        // Where there are more combinations, the last choices are not varied.
        const MOST: u128 = 1 << 96;
        let count = |total: u128, (_, options): &(_, Vec<u64>)| {
            (total * options.len().max(1) as u128).min(MOST)
        };
        let total = choices.iter().fold(1, count);
        // The golden ratio spreads the first steps evenly.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            clippy::cast_sign_loss,
            reason = "any number near it will do"
        )]
        let golden = (total as f64 * 0.618_033_988_7) as u128;
        let stride = (golden..golden + total).find(|s| coprime(*s, total)).unwrap_or(1);
        Walk { choices, total, stride }
    }

    /// Returns the number of combinations, or the largest number if there are more.
    fn len(&self) -> usize {
        usize::try_from(self.total).unwrap_or(usize::MAX)
    }

    /// Returns the combination at a step: the digits of its number in mixed radix are indices into the lists of options.
    fn get(&self, step: usize) -> IndexMap<Sym, u64> {
        let mut number = step as u128 * self.stride % self.total;
        self.choices
            .iter()
            .filter_map(|(s, options)| {
                let radix = options.len().max(1) as u128;
                let v = usize::try_from(number % radix).ok().and_then(|i| options.get(i).copied());
                number /= radix;
                v.map(|v| (s.clone(), v))
            })
            .collect()
    }
}

fn coprime(mut a: u128, mut b: u128) -> bool {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a == 1
}

/// Most combinations of tiles that are tried, that are solved, and that are kept for a skeleton.
const COMBINATIONS: usize = 40_000;
const SOLVED: usize = 2_000;
const KEPT: usize = 16;

/// Most that are kept with one share of a work-item: the score does not know well which other values go best
/// with it.
const KEPT_OF_SHARE: usize = 8;

/// Returns the assignments of a tiled term with the best scores.
fn tiled(
    uses: &Uses,
    tiles: &Tiles,
    choices: &[(Sym, Vec<u64>)],
    dims: &SizeEnv,
    target: &Target,
    limits: &Limits,
    dropped: &mut Dropped,
) -> Vec<(SizeEnv, Option<f64>)> {
    let walk = Walk::new(choices);
    let mut scored: Vec<(f64, SizeEnv)> = vec![];
    let mut distinct = Distinct::default();
    let (mut tried, mut solved) = (0, 0);
    while tried < walk.len().min(COMBINATIONS) {
        let picked = walk.get(tried);
        if let Err(reason) = tiles.fits(&picked, target) {
            tried += 1;
            dropped.add(reason);
            continue;
        }
        solved += 1;
        if solved > SOLVED {
            break;
        }
        tried += 1;
        let score = |env: SizeEnv| Ok((tiles.score(&env, target)?, env));
        match uses.solve(&picked, dims, target, limits).and_then(score) {
            Ok(found) if distinct.is_new(&found.1) => scored.push(found),
            Ok(_) => dropped.add(Reason::Same),
            Err(reason) => dropped.add(reason),
        }
    }
    dropped.add_all(Reason::ValuesUntried, walk.len() - tried);
    let found = scored.len();
    scored.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut of_share: IndexMap<Vec<u64>, usize> = IndexMap::new();
    scored.retain(|(_, env)| {
        let Some(share) = tiles.share(env) else { return true };
        let n = of_share.entry(share).or_default();
        *n += 1;
        *n <= KEPT_OF_SHARE
    });
    scored.truncate(KEPT.min(limits.assignments));
    dropped.add_all(Reason::WorseScore, found - scored.len());
    let best = scored.first().map_or(1.0, |(s, _)| *s);
    scored.into_iter().map(|(s, env)| (env, Some(s / best))).collect()
}

/// Returns the number of vectors in a tile.
fn vectors(tile: &Sym) -> Size {
    let tile = Size::sym(tile.clone());
    tile.div(&tile.width())
}

/// How a term uses its symbols.
struct Uses {
    term: Term,
    /// Tiles and widths, in the order of [`in_order`].
    symbols: Vec<Sym>,
    roles: IndexMap<Sym, Role>,
    /// Every size in the term.
    sizes: IndexSet<Size>,
    /// Numbers of work-items of a group: lengths of maps over them, and numbers that reduce together.
    lanes: IndexSet<Size>,
    /// Numbers of work-items that reduce together; a number above that of the elements does no harm.
    together: IndexSet<Size>,
    /// Lengths that are unrolled.
    unrolled: IndexSet<Size>,
    /// The tiles of a product of all pairs.
    tiles: Option<Tiles>,
    /// The slices of the elements of a group.
    slices: Option<Slices>,
    /// Numbers of columns of the tiles that are turned, through which each work-item goes.
    turned: IndexSet<Size>,
}

impl Uses {
    fn of(term: &Term, compact: &Term, total: bool) -> Uses {
        let slices = Slices::of(compact);
        // Tiles of slices promise no reuse, so they get no score.
        let tiles = Tiles::of(compact).filter(|_| slices.is_none());
        let (mut sizes, mut lanes, mut unrolled) =
            (IndexSet::new(), IndexSet::new(), IndexSet::new());
        let (mut global, mut chunks) = (IndexSet::new(), IndexSet::new());
        let mut together = IndexSet::new();
        term.visit(&mut |t| {
            sizes.extend(t.sizes().iter().cloned());
            match t.op() {
                Op::Map(MapKind::Lcl(_) | MapKind::Lane) => {
                    lanes.insert(t.sizes()[0].clone());
                }
                Op::ReduceLcl | Op::ScanLcl(_) => {
                    together.insert(t.sizes()[1].clone());
                    lanes.insert(t.sizes()[1].clone());
                }
                Op::Map(MapKind::Unroll) | Op::Reduce(ReduceKind::Unroll) => {
                    unrolled.insert(t.sizes()[0].clone());
                }
                Op::Map(MapKind::Glb(_)) => {
                    global.insert(t.sizes()[0].clone());
                }
                Op::Split => {
                    chunks.insert(t.sizes()[1].clone());
                }
                _ => {}
            }
            // The accumulators of a tile that a group shares are spread over its work-items, hence not
            // unrolled.
            let shared = tiles.as_ref().is_some_and(Tiles::is_shared);
            if let (Op::Reduce(ReduceKind::Seq), false) = (t.op(), shared || total) {
                arrays(&t.ty().cod, &mut unrolled);
            }
        });
        let mut turned = IndexSet::new();
        compact.visit(&mut |t| {
            if *t.op() == Op::Turned {
                turned.insert(t.sizes()[3].clone());
            }
        });
        let mut symbols: IndexSet<Sym> = IndexSet::new();
        for s in &sizes {
            s.visit(&mut |sym| {
                if matches!(sym, Sym::Tile(_) | Sym::Width(_)) {
                    symbols.insert(sym.clone());
                }
            });
        }
        let mut symbols: Vec<Sym> = symbols.into_iter().collect();
        symbols.sort_by_cached_key(|s| (s.level(), s.to_string()));
        let symbols = in_order(symbols, &sizes);
        let mut roles = IndexMap::new();
        for s in &symbols {
            let Sym::Tile(of) = s else { continue };
            let me = Size::sym(s.clone());
            let count = [of.div(&me), of.round().div(&me)];
            let role = if lanes.contains(&me) {
                Role::Lanes
            } else if unrolled.contains(&me) {
                Role::Unroll
            } else if count.iter().any(|c| lanes.contains(c)) {
                Role::CountLanes
            } else if count.iter().any(|c| unrolled.contains(c)) {
                Role::CountUnroll
            } else {
                Role::Chunk(count.iter().any(|c| global.contains(c)))
            };
            roles.insert(s.clone(), role);
        }
        let term = term.clone();
        Uses { term, symbols, roles, sizes, lanes, together, unrolled, tiles, slices, turned }
    }

    /// Returns the options for a symbol: widths, values of a tile, or numbers of chunks into which the tile
    /// cuts its size. [`COUNT`] marks the numbers of chunks.
    fn options(&self, s: &Sym, dims: &SizeEnv, target: &Target) -> Vec<u64> {
        let tiles = self.tiles.as_ref();
        if let Some(options) = tiles.and_then(|t| t.options(s, dims, target)) {
            return options;
        }
        if let Some(options) = self.slices.as_ref().and_then(|x| x.options(s)) {
            return options;
        }
        match s {
            s if self.turned.contains(&Size::sym(s.clone())) => Target::TURNED.to_vec(),
            Sym::Width(_) => target.widths.clone(),
            Sym::Tile(of) => match self.roles.get(s) {
                Some(Role::Lanes) => target.local_sizes(),
                Some(Role::Unroll) => Target::UNROLLS.to_vec(),
                Some(Role::CountLanes) => {
                    target.local_sizes().into_iter().map(|n| n | COUNT).collect()
                }
                Some(Role::CountUnroll) => Target::UNROLLS.iter().map(|n| n | COUNT).collect(),
                Some(Role::Chunk(items)) if is_free(of) => {
                    let counts = target.counts(*items).into_iter().map(|n| n | COUNT);
                    counts.chain(target.runs().iter().copied()).collect()
                }
                // A small number of vectors, unrolled.
                Some(Role::Chunk(_)) if self.unrolled.contains(&vectors(s)) => {
                    Target::UNROLLS.to_vec()
                }
                Some(Role::Chunk(_)) | None => target.runs().to_vec(),
            },
            Sym::Dim(_) | Sym::Round(_) | Sym::Meta(_) => vec![],
        }
    }

    /// Returns the value of every symbol, from what was picked for tiles and widths.
    fn solve(
        &self,
        picked: &IndexMap<Sym, u64>,
        dims: &SizeEnv,
        target: &Target,
        limits: &Limits,
    ) -> Result<SizeEnv, Reason> {
        let mut env = dims.clone();
        // Widths first: the sizes around them are made multiples of them.
        for (s, v) in picked {
            if matches!(s, Sym::Width(_)) {
                env.insert(s.clone(), *v);
            }
        }
        for s in &self.symbols {
            let Sym::Tile(of) = s else { continue };
            self.round(of, &mut env).ok_or(Reason::NoSize)?;
            let value = self.tile(s, of, &env, picked, target)?;
            env.insert(s.clone(), value);
        }
        // The remaining rounded sizes: those that only vectors divide, or nothing divides.
        for of in self.rounded() {
            self.round_final(&of, &mut env).ok_or(Reason::NoSize)?;
        }
        for s in &self.sizes {
            s.eval(&env)?;
        }
        self.fits(&env, dims, target, limits)?;
        Ok(env)
    }

    /// Returns the value of tile `s` of a size, from what was picked for it.
    fn tile(
        &self,
        s: &Sym,
        of: &Size,
        env: &SizeEnv,
        picked: &IndexMap<Sym, u64>,
        target: &Target,
    ) -> Result<u64, Reason> {
        let pick = *picked.get(s).ok_or(Reason::NoOptions)?;
        let inside = self.inside(s, picked);
        let n = of.eval(env)?;
        let fixed = |t: &Tiles| t.options(s, env, target).is_some();
        let value = if self.tiles.as_ref().is_some_and(fixed) {
            pick
        } else if pick & COUNT == 0 {
            // A number of work-items or unrolled steps must be a multiple of `inside`; other values count
            // in units of it.
            if matches!(self.roles.get(s), Some(Role::Lanes | Role::Unroll)) {
                (pick % inside == 0).then_some(pick).ok_or(Reason::NotDividing)?
            } else {
                pick.checked_mul(inside).ok_or(Reason::NoSize)?
            }
        } else {
            let count = pick & !COUNT;
            if is_free(of) {
                n.div_ceil(count).max(1).next_multiple_of(inside)
            } else {
                (n % count == 0 && n > 0).then_some(n / count).ok_or(Reason::NotDividing)?
            }
        };
        if is_free(of) {
            // A tile much longer than its dimension wastes the device on padding, unless it is a group of which some work-items
            // are idle.
            let waste = value > 2 * n.max(1).next_multiple_of(inside.min(target.max_group.max(1)));
            if waste && !self.together.contains(&Size::sym(s.clone())) {
                return Err(Reason::Padding);
            }
        } else if value == 0 || n % value != 0 {
            return Err(Reason::NotDividing);
        }
        Ok(value)
    }

    /// Whether groups are small enough for the device, and loops short enough to be unrolled.
    fn fits(
        &self,
        env: &SizeEnv,
        dims: &SizeEnv,
        target: &Target,
        limits: &Limits,
    ) -> Result<(), Reason> {
        // If no choice makes a number of work-items small enough, each work-item takes several elements.
        let too_many = |s: &Size| {
            let fit = |n: u64| n <= target.max_group;
            s.eval(env).is_ok_and(|n| !fit(n) && target.least(s, dims) <= target.max_group as f64)
        };
        if self.lanes.iter().any(too_many) {
            return Err(Reason::GroupTooLarge);
        }
        for s in &self.unrolled {
            if s.eval(env)? > limits.unroll as u64 {
                return Err(Reason::UnrolledTooLong);
            }
        }
        let length = |s: &Size| s.eval(env).map_or(1.0, |n| n as f64);
        let operations = || cost::straight_line(&self.term, &length);
        if !self.unrolled.is_empty() && operations() > limits.unrolled_operations as f64 {
            return Err(Reason::UnrolledTooLarge);
        }
        Ok(())
    }

    /// Returns the sizes that the term rounds up, sorted so that a size comes after those that it depends on.
    fn rounded(&self) -> Vec<Size> {
        let mut out: IndexSet<Size> = IndexSet::new();
        for s in &self.sizes {
            s.visit(&mut |sym| {
                if let Sym::Round(of) = sym {
                    out.insert(of.clone());
                }
            });
        }
        let mut out: Vec<Size> = out.into_iter().collect();
        out.sort_by_cached_key(|s| (s.level(), s.to_string()));
        out
    }

    /// Fixes the rounded sizes that `s` mentions; all their tiles have values by now.
    fn round(&self, s: &Size, env: &mut SizeEnv) -> Option<()> {
        let mut needed = vec![];
        s.visit(&mut |sym| {
            if let Sym::Round(of) = sym {
                needed.push(of.clone());
            }
        });
        for of in needed {
            self.round_final(&of, env)?;
        }
        Some(())
    }

    /// Sets `of^` to the least multiple that is not below `of` of all divisors that the term has for it.
    fn round_final(&self, of: &Size, env: &mut SizeEnv) -> Option<()> {
        let me = Sym::Round(of.clone());
        if env.contains_key(&me) {
            return Some(());
        }
        let mut multiple = 1_u64;
        for s in &self.sizes {
            if !s.factors().any(|(sym, e)| *sym == me && e > 0) {
                continue;
            }
            let (_, den) = s.coefficient();
            let mut divisor = den;
            for (sym, e) in s.factors() {
                if e < 0 {
                    for _ in 0..e.unsigned_abs() {
                        divisor = divisor.checked_mul(*env.get(sym)?)?;
                    }
                }
            }
            multiple = lcm(multiple, divisor.max(1))?;
        }
        let value = of.eval(env).ok()?.checked_next_multiple_of(multiple)?;
        env.insert(me, value);
        Some(())
    }

    /// Returns the product of everything that must divide a tile: widths and small numbers inside it.
    fn inside(&self, tile: &Sym, picked: &IndexMap<Sym, u64>) -> u64 {
        let mentions = |s: &Size| {
            let mut found = false;
            s.visit(&mut |x| found |= x == tile);
            found
        };
        self.symbols
            .iter()
            .filter(|s| match s {
                Sym::Tile(of) | Sym::Width(of) => mentions(of),
                Sym::Dim(_) | Sym::Round(_) | Sym::Meta(_) => false,
            })
            // A tile of a size that is rounded up need not divide it.
            .filter(|s| match s {
                Sym::Tile(of) => !is_free(of),
                Sym::Width(of) => !is_free(of),
                Sym::Dim(_) | Sym::Round(_) | Sym::Meta(_) => false,
            })
            .filter_map(|s| picked.get(s).map(|v| v & !COUNT))
            .product::<u64>()
            .max(1)
    }
}

/// Sorts symbols so that each comes after those that the value of its size depends on: those that the size mentions,
/// and if it mentions a rounded size, those that must divide that.
fn in_order(mut symbols: Vec<Sym>, sizes: &IndexSet<Size>) -> Vec<Sym> {
    let divisors = |rounded: &Sym| -> Vec<Sym> {
        let of = sizes.iter().filter(|s| s.factors().any(|(sym, e)| sym == rounded && e > 0));
        of.flat_map(|s| s.factors().filter(|(_, e)| *e < 0).map(|(sym, _)| sym.clone())).collect()
    };
    let needs = |s: &Sym| -> Vec<Sym> {
        let mut out = vec![];
        if let Sym::Tile(of) | Sym::Width(of) = s {
            of.visit(&mut |sym| match sym {
                Sym::Round(_) => out.extend(divisors(sym)),
                _ => out.push(sym.clone()),
            });
        }
        out
    };
    let mut ordered = vec![];
    while !symbols.is_empty() {
        let waits = |s: &Sym| needs(s).iter().any(|n| n != s && symbols.contains(n));
        let next = symbols.iter().position(|s| !waits(s)).unwrap_or(0);
        ordered.push(symbols.remove(next));
    }
    ordered
}

/// Marks an option that is a number of chunks rather than a length.
pub(super) const COUNT: u64 = 1 << 62;

/// Whether the size is given (a program's dimension, or a number of chunks of one), so that it must
/// be rounded up where tiles do not divide it.
fn is_free(s: &Size) -> bool {
    crate::rules::round_up(s) != *s
}

fn lcm(a: u64, b: u64) -> Option<u64> {
    let g = gcd(usize::try_from(a).ok()?, usize::try_from(b).ok()?) as u64;
    a.checked_mul(b / g.max(1))
}

fn arrays(t: &Ty, out: &mut IndexSet<Size>) {
    match t {
        Ty::Unit | Ty::Scalar(_) | Ty::Vector(..) | Ty::Meta(_) => {}
        Ty::Pair(a, b) => {
            arrays(a, out);
            arrays(b, out);
        }
        Ty::Array(n, t) => {
            out.insert(n.clone());
            arrays(t, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calculus::text::{Context, read_term};
    use crate::device::tests::device;
    use crate::diag::Source;
    use crate::lang::types::ScalarType;

    /// Returns the values of `n.t0` in a term over an array of length `n`, and what was dropped.
    fn tiles(text: &str, n: u64) -> (Vec<u64>, Dropped) {
        let xs = Ty::array(&Size::dim("n"), &Ty::Scalar(ScalarType::F32));
        let context = Context { inputs: [("xs".to_owned(), xs)].into(), variables: None };
        let term = read_term(&Source::new("t", text), &Ty::Unit, &context).expect("a term");
        let mut cpu = device(0, "P", "D", DeviceKind::Cpu);
        cpu.compute_units = 2;
        let model = CostModel::choose(&cpu).expect("a shipped model").model;
        let dims = SizeEnv::from_iter([(Sym::Dim("n".into()), n)]);
        let (target, mut dropped) = (Target::new(&cpu, &model), Dropped::default());
        let all =
            assignments(&term, &term, &dims, &target, &Limits::default(), false, &mut dropped);
        let tile = Sym::Tile(Size::dim("n"));
        (all.into_iter().map(|(env, _)| env[&tile]).collect(), dropped)
    }

    #[test]
    fn walks_visit_each_combination_once() {
        let choice = |i: usize| (Sym::Dim(format!("n{i}").into()), vec![1, 2, 4]);
        let choices: Vec<_> = (0..4).map(choice).collect();
        let walk = Walk::new(&choices);
        let all: std::collections::BTreeSet<Vec<u64>> =
            (0..walk.len()).map(|i| walk.get(i).into_values().collect()).collect();
        assert_eq!((walk.len(), all.len()), (81, 81));
        // More combinations than numbers of 64 bits.
        let choices: Vec<_> = (0..50).map(choice).collect();
        let walk = Walk::new(&choices);
        assert_eq!(walk.len(), usize::MAX);
        assert_ne!(walk.get(39_998), walk.get(39_999));
    }

    #[test]
    fn lost_values_are_counted() {
        // Six numbers of chunks and four runs are tried. Five of the tiles are 1.
        let text = "join . mapGlb 0 (mapSeq abs) . split n.t0 . xs";
        let (mut kept, dropped) = tiles(text, 6);
        kept.sort_unstable();
        assert_eq!(kept, [1, 2, 3]);
        let counts = [Reason::Same, Reason::Padding, Reason::NotDividing].map(|r| dropped.count(r));
        assert_eq!(counts, [4, 2, 1]);
        // The same tile divides a length that is rounded up.
        let text = "mapGlb 0 (reduceSeq (+) 0.0) . split n.t0 . padLast n^ . xs";
        let (mut kept, dropped) = tiles(text, 6);
        kept.sort_unstable();
        assert_eq!((kept, dropped.count(Reason::NotDividing)), (vec![1, 2, 3, 4], 0));
    }

    #[test]
    fn tiles_of_tiles_do_not_multiply_padding() {
        let part = "mapWrg 0 (reduceLcl (n^/n.t0).t1.t2 (+) 0.0 (reduceSeq (+) 0.0) . transpose . split (n^/n.t0).t1
            . padTo (n^/n.t0)^ 0.0) . transpose . split n.t0 . padTo n^ 0.0 . xs";
        let text = format!(
            "mapWrg 0 (reduceLcl n.t0.t1.t2 (+) 0.0 id) . wrap . mapGlb 0 (reduceUnroll (+) 0.0) . transpose . split n.t0.t1 . {part}"
        );
        let (kept, dropped) = tiles(&text, 500);
        // At most two of the device's groups of 4096 work-items.
        assert!(!kept.is_empty() && kept.iter().all(|t| *t <= 8192), "{kept:?}");
        assert!(dropped.count(Reason::Padding) > 0);
    }

    #[test]
    fn lanes_at_computed_places_count_as_operations() {
        let most = |f: &str| {
            let chunk = format!("mapUnroll (mapUnroll ({f}) . replicate 8)");
            tiles(&format!("join . mapGlb 0 ({chunk}) . split n.t0 . xs"), 4096).0.into_iter().max()
        };
        // 8 * 8 operations, and 16 times as many loads.
        assert_eq!(most("abs"), Some(8));
        let gather = "vectorize 16 index . fork (asVector 16 . replicate 16) (splat 16 . 0 . bang)";
        assert_eq!(most(gather), Some(4));
    }
}
