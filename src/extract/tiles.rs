//! Values for the tiles of products of all pairs: the purpose of each tile, the values that a device can
//! take, and a score for the reuse that they promise.

use super::Reason;
use super::tunables::Target;
use crate::calculus::op::products::{self, Products};
use crate::calculus::size::{Size, SizeEnv, Sym};
use crate::calculus::term::{MapKind, Op, Space, Term};
use crate::device::cost_model::Search;
use crate::saturate::EGraph;
use indexmap::IndexMap;

/// The purpose of each tunable of a tiled term. The sizes are those of the operators of tiling in the term.
#[derive(Clone, Debug, Default)]
pub(super) struct Tiles {
    /// The number of rows and their tile; then the number of columns and their tile, unless only rows are
    /// tiled.
    outer: Vec<[Size; 2]>,
    /// The length of the reduction, rounded up, and its block.
    depth: Option<[Size; 2]>,
    /// Rows and columns of one work-item; columns are 1 when only rows are tiled.
    inner: Option<[Size; 2]>,
    /// Lengths of the runs of rows and columns of one work-item.
    runs: Vec<Size>,
    /// Sizes of the batch: how many such products there are side by side.
    batch: Vec<Size>,
    /// Number of blocks that are copied to local memory.
    staged: usize,
    /// Whether the next blocks are loaded while the current ones are used.
    ahead: bool,
    /// Whether the work-items of a group share a tile.
    grouped: bool,
    /// The matrix instructions that compute a tile.
    fragments: Option<Products>,
    /// Whether elements of an operand are computed where they are read.
    on_read: bool,
    /// Lanes of the vectors along columns, if there are any.
    vector: Option<Size>,
}

/// Returns usual values of the tiles in a graph, for estimates before a term is chosen.
pub(super) fn usual(egraph: &EGraph, target: &Target) -> IndexMap<Sym, f64> {
    let mut out = IndexMap::new();
    let (rows, columns, depth) = if target.gpu { (64.0, 64.0, 16.0) } else { (8.0, 32.0, 256.0) };
    for node in egraph.classes().flat_map(|c| &c.nodes) {
        let Some(op) = node.function() else { continue };
        // The index of each tile among the sizes of the operator, with its usual value.
        let values: &[(usize, f64)] = match op {
            Op::Tiled(_) => &[(2, rows), (3, columns)],
            Op::TiledRows => &[(2, rows)],
            Op::Blocked(_) => &[(3, depth)],
            Op::BlockedRows => &[(2, depth)],
            Op::Spread(_) => &[(2, 4.0), (3, 4.0), (4, 4.0), (5, 4.0)],
            Op::SpreadRows => &[(1, 4.0)],
            _ => &[],
        };
        for (k, v) in values {
            if let Some(s) = node.children.get(*k).and_then(|c| egraph[*c].data.size())
                && let Some(sym) = s.as_sym()
            {
                out.insert(sym.clone(), *v);
            }
        }
    }
    out
}

/// Columns of a long part of a matrix that matrix instructions compute, and the registers that are used beside those for
/// accumulators.
const LONG: u64 = 16;
const SUMS: f64 = 64.0;

/// Sums of a work-item to which a warp adds by instructions that depend on nothing else, so that few warps keep matrix units busy.
const FRAGMENTS: f64 = 64.0;

/// Approximate bytes of a staged partner.
const PARTNER_BYTES: f64 = 16.0;

/// Bytes of a register. Elements count as 4 bytes; the verifier of the kernel knows their real size.
const REGISTER: f64 = 4.0;

/// The least tile that the work-items of a group share, and the least of a dimension that is not shorter.
const LEAST: u64 = 4;
const SMALL: u64 = 32;

/// How long a word takes from which elements are computed, in multiply-adds.
const WORDS: f64 = 16.0;

impl Tiles {
    /// Returns the tiles of a term as it stands in the graph; `None` when nothing is tiled.
    pub(super) fn of(compact: &Term) -> Option<Tiles> {
        let mut out = Tiles::default();
        compact.visit(&mut |t| {
            let s = t.sizes();
            match t.op() {
                Op::Tiled(_) => {
                    out.grouped = is_of_group(t);
                    out.outer = vec![[s[0].clone(), s[2].clone()], [s[1].clone(), s[3].clone()]];
                }
                Op::TiledRows => {
                    out.grouped = is_of_group(t);
                    out.outer = vec![[s[0].clone(), s[2].clone()]];
                }
                Op::Blocked(_) => out.depth = Some([s[4].clone(), s[3].clone()]),
                Op::BlockedRows => out.depth = Some([s[3].clone(), s[2].clone()]),
                Op::Spread(_) => {
                    out.inner = Some([s[2].clone(), s[3].clone()]);
                    out.runs = vec![s[4].clone(), s[5].clone()];
                }
                Op::SumProducts => out.fragments = Products::of(&t.ty().dom),
                Op::OnRead => out.on_read = true,
                Op::SpreadRows => out.inner = Some([s[1].clone(), Size::constant(1)]),
                Op::ToMem(Space::Local) => out.staged += 1,
                Op::ToMem(Space::LocalAhead) => {
                    out.staged += 1;
                    out.ahead = true;
                }
                Op::Map(MapKind::Wrg(2) | MapKind::Glb(2)) => out.batch.push(s[0].clone()),
                Op::Vectorize => out.vector = s.first().cloned(),
                _ => {}
            }
        });
        (!out.outer.is_empty()).then_some(out)
    }

    /// Whether the work-items of a group share a tile's accumulators.
    pub(super) fn is_shared(&self) -> bool {
        self.grouped && self.depth.is_some()
    }

    /// Elements that are staged in a word.
    fn in_word(&self) -> f64 {
        self.fragments.map_or(1, Products::in_word) as f64
    }

    /// Whether only rows are tiled.
    fn is_rows(&self) -> bool {
        self.outer.len() == 1
    }

    /// Returns the values to try for a symbol; `None` when it is not one of these tiles.
    pub(super) fn options(&self, s: &Sym, dims: &SizeEnv, target: &Target) -> Option<Vec<u64>> {
        let is = |x: &Size| x.as_sym() == Some(s);
        if self.vector.as_ref().is_some_and(is) {
            return None;
        }
        if let Some(place) = self.runs.iter().rposition(is) {
            return Some(match self.fragments {
                // Work-items that neighbour load rows, and neighbouring columns, of matrices that neighbour in memory.
                Some(Products::F16 | Products::BF16) => vec![1 + place as u64],
                Some(_) if place > 0 => vec![2, 4],
                _ => vec![1, 4],
            });
        }
        if self.inner.iter().flatten().any(is) {
            let across = self.inner.as_ref().is_some_and(|[_, c]| is(c));
            return Some(match (self.is_rows(), self.fragments) {
                (true, _) => vec![2, 3, 4, 6, 8],
                (_, Some(of)) if across && of.in_word() > 1 => vec![2, 4, 8, LONG],
                _ => vec![2, 4, 8],
            });
        }
        if self.is_rows()
            && target.gpu
            && (self.grouped || self.inner.is_some())
            && self.outer.iter().any(|[_, t]| is(t))
        {
            return Some(vec![64, 96, 128, 192, 256, 384, 512, 768, 1024]);
        }
        if self.depth.as_ref().is_some_and(|[_, t]| is(t)) {
            return Some(match (target.gpu, self.grouped) {
                (true, true) if self.is_rows() => vec![64, 128, 256, 512],
                // Elements of fewer than 4 bytes are in words only where they are staged.
                (true, _) if self.in_word() > 1.0 && self.staged < 2 => vec![],
                (true, _) => {
                    let terms = self.fragments.map_or(8, Products::terms);
                    vec![terms, 2 * terms, 4 * terms]
                }
                (false, _) => vec![128, 256, 512],
            });
        }
        let place = self.outer.iter().position(|[_, t]| is(t))?;
        Some(match (target.gpu, self.grouped, self.inner.is_some()) {
            (true, true, true) => {
                // A dimension of few rows, or columns, is one tile.
                let length = whole(&self.outer[place][0]).eval(dims).unwrap_or(SMALL);
                let least = length.next_power_of_two().clamp(LEAST, SMALL);
                let tiles = [LEAST, 8, 16, SMALL, 64, 128, 256].into_iter();
                tiles
                    .filter(|t| (least..=if least < SMALL { SMALL } else { 256 }).contains(t))
                    .collect()
            }
            // Each work-item takes one row with all columns of the tile (next arm).
            (true, true, false) if place == 0 => vec![64, 128, 256],
            (true, ..) => vec![1, 2, 4, 8],
            (false, ..) if place == 0 => vec![1, 2, 4, 6, 8, 12, 16],
            (false, ..) => vec![16, 32, 48, 64],
        })
    }

    /// Returns the approximate relative time per multiply-add that the program asks for, for ordering.
    ///
    /// # Errors
    /// When the tiles do not fit the device.
    pub(super) fn score(&self, env: &SizeEnv, target: &Target) -> Result<f64, Reason> {
        // Instructions on matrices read no flags. A copy of a block has zeros where it has no elements; a block that is read where it
        // lies must be whole.
        let deeper = match (self.fragments, &self.depth) {
            (Some(_), Some(depth)) => padding(depth, env),
            _ => 1.0,
        };
        if deeper > 1.0 && self.staged < 2 {
            return Err(Reason::UnevenShares);
        }
        let value = |s: &Size| s.eval(env).map_or(1.0, |v| v as f64);
        let tile = |k: usize| self.outer.get(k).map_or(1.0, |[_, t]| value(t));
        let (rows, columns) = (tile(0), tile(1));
        let parts = |k: usize| {
            self.outer.get(k).map_or(1.0, |[n, t]| (value(n) / value(t)).ceil().max(1.0))
        };
        let groups = parts(0) * parts(1) * self.batch.iter().map(value).product::<f64>();
        let [r, c] = match &self.inner {
            Some([r, c]) => [value(r), value(c)],
            None if self.grouped => [1.0, columns],
            None => [rows, columns],
        };
        if target.gpu {
            let items = if self.grouped { rows / r * (columns / c) } else { 1.0 };
            // Elements that are staged in one word are loaded, and kept, as one.
            let depth = self.depth.as_ref().map_or(1.0, |[_, t]| value(t)) / self.in_word();
            let halves = if self.ahead { 2.0 } else { 1.0 };
            if self.grouped && self.is_rows() {
                let local = halves * self.staged as f64 * depth * PARTNER_BYTES;
                return (local <= target.local_bytes())
                    .then(|| rows_score(groups, items, r, depth, target))
                    .ok_or(Reason::LocalMemory);
            }
            // With loading ahead, the next block is on its way to local memory, which holds two blocks. Most devices need registers for
            // that.
            let loaded = match (self.ahead && !target.copies_ahead, self.outer.len()) {
                (false, _) => 0.0,
                (true, 1) => depth / items,
                (true, _) => depth * (rows + columns) / items,
            };
            let long = self.fragments.is_some() && c >= LONG as f64;
            let read = match self.fragments {
                // Some of the sums of a block are beside the results, and all rows of the block.
                Some(of) if long && of.sums_apart() => {
                    32.0 + 2.0 * r * depth / products::WORDS as f64 + 4.0
                }
                Some(of) if of.sums_apart() => r * c + 2.0 * r + c,
                // An instruction takes two words of each row.
                Some(_) => 2.0 * r + c,
                None => r + c,
            };
            let registers = r * c + loaded + read;
            let most = target.accumulators() + if self.fragments.is_some() { SUMS } else { 0.0 };
            let [file, spare, undeclared] = target.register_bytes().map(|bytes| bytes / REGISTER);
            // What matrix instructions take is known better.
            let spare = if self.fragments.is_some() { undeclared } else { spare };
            if (registers + spare) * items > file || registers > most {
                return Err(Reason::Registers);
            }
            let [fewest, most] = target.search.tile_items;
            if self.grouped && !(fewest as f64..=most as f64).contains(&items) {
                return Err(Reason::GroupUnsuited);
            }
            // Rows are padded.
            let pad = if self.fragments.is_some() { 16.0 } else { 4.0 };
            let local = self.staged as f64 * depth * (rows.max(columns) + pad) * 4.0;
            if self.grouped
                && halves * local.min(depth * (rows + columns + pad) * 4.0) > target.local_bytes()
            {
                return Err(Reason::LocalMemory);
            }
            // The number of resident groups is limited by registers; few resident warps hide little latency.
            let resident = (file / (registers + undeclared) / items.max(64.0)).floor();
            let warps = target.warps;
            let each =
                resident.max(1.0) * (items / target.warp()).ceil() / f64::from(warps.at_once);
            // Instructions on matrices that do not depend on each other hide latency, too.
            let alike = match self.fragments {
                Some(of) if !of.sums_apart() => r * c / FRAGMENTS,
                _ => 1.0,
            };
            let hidden = (each * alike / warps.in_flight).min(1.0).powf(warps.hiding);
            // Matrix instructions are so fast that a group which waits at a barrier should leave work to another.
            let hidden = match self.fragments {
                Some(_) if resident < 2.0 && items < warps.lone_group_items => {
                    hidden * warps.lone_group
                }
                _ => hidden,
            };
            let slots = target.units() * resident.max(1.0);
            let waves = (groups / slots).ceil().max(1.0);
            let full =
                (groups / (waves * slots)).max(groups.min(target.units()) / target.units() / 2.0);
            let reads = (r + c) / (r * c);
            // Each work-item reads an operand that is not staged on its own, through the caches.
            let global = match self.staged {
                0 => reads,
                1 => (1.0 / rows + 1.0 / columns).max(reads / 2.0),
                _ => 1.0 / rows + 1.0 / columns,
            };
            // Longer runs are read as vectors.
            let narrow = match self.fragments {
                Some(_) => 0,
                None => self.runs.iter().filter(|v| value(v) < 2.0).count(),
            };
            let reads = reads * (1.0 + 0.25 * narrow as f64);
            // One barrier before a block is used; a second one after its use when local memory holds a single
            // block.
            let barriers = if self.ahead { 1.0 } else { 2.0 };
            let Search { near_read, far_read, .. } = target.search;
            // Elements of a row are often computed of the same word, which a block of them loads once.
            let words = if self.on_read { WORDS } else { 0.0 };
            let time = 1.0 + near_read * reads + far_read * global + (barriers + words) / depth;
            let padding: f64 = self.outer.iter().map(|dimension| padding(dimension, env)).product();
            Ok(time * padding * deeper / full.min(1.0) / hidden)
        } else {
            let w = self.vector.as_ref().map_or(1.0, value);
            let registers = r * (c / w).ceil();
            if registers + (c / w).ceil() > target.accumulators() {
                return Err(Reason::Registers);
            }
            let vectors = (c / w).ceil();
            let reads = (r + vectors) / (r * vectors);
            let full = groups / ((groups / target.units()).ceil() * target.units());
            let chains = (target.search.chains / registers).max(1.0);
            // All lanes of a vector take the time of one.
            Ok((1.0 + target.search.near_read * reads) * chains / full / w)
        }
    }

    /// Returns the rows and columns of a work-item, if a tile is shared out.
    pub(super) fn share(&self, env: &SizeEnv) -> Option<Vec<u64>> {
        self.inner.as_ref()?.iter().map(|s| s.eval(env).ok()).collect()
    }

    /// That runs divide the rows and columns of a work-item, these divide the tile, and a group has a sensible
    /// number of work-items.
    ///
    /// # Errors
    /// When this is not so.
    pub(super) fn fits(&self, picked: &IndexMap<Sym, u64>, target: &Target) -> Result<(), Reason> {
        let value = |s: &Size| s.as_sym().and_then(|s| picked.get(s)).copied();
        let divides = |k: &Size, n: &Size| match (value(k), value(n)) {
            (Some(k), Some(n)) => n % k == 0,
            _ => true,
        };
        let [fewest, most] = target.search.tile_items;
        let inner: Vec<&Size> = self.inner.iter().flatten().collect();
        if let ([t, u], [r, c], true) = (
            &self.outer.iter().filter_map(|[_, t]| value(t)).collect::<Vec<_>>()[..],
            &inner.iter().filter_map(|r| value(r)).collect::<Vec<_>>()[..],
            target.gpu,
        ) && !(fewest..=most).contains(&(t / r * (u / c)))
        {
            return Err(Reason::GroupUnsuited);
        }
        // All work-items must have equally many rows, and all warps equally many work-items.
        let grouped = self.is_rows() && self.grouped && target.gpu;
        if let ([[_, t]], [r, ..], true) = (&self.outer[..], &inner[..], grouped)
            && let (Some(t), Some(r)) = (value(t), value(r))
            && !(t % r == 0 && (t / r).is_multiple_of(target.warp) && t / r <= most)
        {
            return Err(Reason::GroupUnsuited);
        }
        // The lanes of a warp have 8 by 4 parts, each with two halves.
        let lanes = self.fragments.map(|_| [8, 4]).into_iter().flatten();
        let apart = |(lanes, (r, [_, t])): (u64, (&&Size, &[Size; 2]))| match (value(r), value(t)) {
            (Some(r), Some(t)) => t % (lanes * r) == 0 && r % 2 == 0,
            _ => true,
        };
        if !lanes.zip(inner.iter().zip(&self.outer)).all(apart) {
            return Err(Reason::UnevenShares);
        }
        let even = inner.iter().zip(&self.outer).all(|(r, [_, t])| divides(r, t))
            && self.runs.iter().zip(&inner).all(|(v, r)| divides(v, r));
        if even { Ok(()) } else { Err(Reason::UnevenShares) }
    }
}

/// Returns the length that was rounded up to whole tiles.
pub(super) fn whole(n: &Size) -> &Size {
    match n.as_sym() {
        Some(Sym::Round(whole)) => whole,
        _ => n,
    }
}

/// Returns how many times as long a dimension is in whole tiles as the program asks for.
fn padding([n, tile]: &[Size; 2], env: &SizeEnv) -> f64 {
    match (whole(n).eval(env), tile.eval(env)) {
        (Ok(n), Ok(tile)) if n > 0 && tile > 0 => (n.div_ceil(tile) * tile) as f64 / n as f64,
        _ => 1.0,
    }
}

/// Whether the work-items of a group share a tile. A work-item has a tile to itself if groups take rows of tiles, and their
/// work-items take the tiles, or if all is inside a group.
fn is_of_group(tiled: &Term) -> bool {
    let Some(h) = tiled.args().last() else { return false };
    let mut outermost = None;
    h.visit(&mut |t| {
        if let (Op::Map(kind), None) = (t.op(), outermost) {
            outermost = Some(*kind);
        }
    });
    let whole = *tiled.op() != Op::TiledRows
        && h.args().iter().any(|inside| matches!(inside.op(), Op::Map(MapKind::Lcl(_))));
    matches!(outermost, Some(MapKind::Wrg(_))) && !whole
}

/// Returns the score of `groups` work-groups of `items` work-items, each with `rows` rows, and partners in
/// blocks of `depth`. All compute units, and all schedulers of each, should have equally much to do, and each
/// partner that is read should serve several rows.
fn rows_score(groups: f64, items: f64, rows: f64, depth: f64, target: &Target) -> f64 {
    let most = (groups / target.units()).ceil().max(1.0);
    let warps = most * (items / target.warp()).ceil();
    let schedulers = f64::from(target.warps.at_once);
    let each = (warps / schedulers).ceil();
    let full = groups / (most * target.units()) * warps / (each * schedulers);
    // Several rows in a work-item hide latency too, but less than as many warps would: they stall together.
    let hidden = (each * rows.sqrt() / target.warps.in_flight).min(1.0);
    (1.0 + 1.0 / rows + 2.0 / depth) / full / hidden
}
