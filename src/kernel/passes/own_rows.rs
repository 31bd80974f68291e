//! Writes out several steps of loops whose steps need what the step before computed, so that the steps wait for memory together.
//!
//! If each work-item goes through a row of its own, the work-items of a sub-group access places that lie far apart, and each
//! access moves a whole sector of memory for one scalar. Several steps access neighbours, which become a vector
//! (`wide_accesses.rs`). Where rows begin or are gone through at places that no vector begins at, the first steps are written out
//! apart from the rounds of the others. If each step stores, too, compilers do not move the loads of the next steps in front of the
//! store, so that each step waits for its own loads. The loads of all steps that are written out come first. The order of
//! operations stays.
//!
//! Many work-items hide each other's waits for memory. If a kernel has few, a round has more steps, and a work-item makes the loads
//! of later rounds before it computes the steps of this one (`rounds_ahead.rs`).

use super::overlap::{STATEMENTS, append, renamed, written_out};
use super::rounds_ahead::Ahead;
use crate::kernel::ir::index::{Atom, Index, Var};
use crate::kernel::ir::walk::{Effects, Fresh, parts, rebuild, rebuilt};
use crate::kernel::ir::{Block, Expr, Kernel, LoopKind, Mem, Reg, Stmt};
use crate::kernel::options::DeviceLimits;
use crate::lang::types::ScalarType;

/// Bytes that memory moves at once.
const SECTOR_BYTES: usize = 32;

/// Steps whose loads are made together, where the loads cannot be vectors.
const AHEAD: i64 = 8;

/// Most loads of the steps of a round: each has a register.
const LOADS: usize = 64;

/// Most registers of the loads of all rounds that are under way.
const REGISTERS: usize = 64;

/// Bytes on their way to a compute unit that keep the memory of a GPU busy: its bandwidth, times the time that a load takes.
const IN_FLIGHT: usize = 16 << 10;

/// Unrolls the loops of a kernel so far that accesses of rows are as wide as the device's. Returns the loops whose rounds should make
/// the loads of later rounds.
pub fn unroll(k: &mut Kernel, device: &DeviceLimits, fresh: &mut Fresh) -> Vec<Ahead> {
    let mut ahead = vec![];
    if device.access_bytes > 0 {
        let items: usize = k.global.iter().product();
        let device = Device {
            bytes: device.access_bytes,
            wanted: IN_FLIGHT.saturating_mul(device.compute_units) / items.max(1),
            alone: k.group[0] == 1,
        };
        block(&mut k.body, &device, None, fresh, &mut ahead);
    }
    ahead
}

/// What the loops of a kernel are unrolled for.
struct Device {
    /// Greatest width of an access.
    bytes: usize,
    /// Bytes that each work-item should be waiting for.
    wanted: usize,
    /// Whether work-items have no neighbours.
    alone: bool,
}

/// `item` is the variable that numbers neighbouring work-items.
fn block(
    b: &mut Block,
    device: &Device,
    item: Option<u32>,
    fresh: &mut Fresh,
    ahead: &mut Vec<Ahead>,
) {
    let mut out = Vec::with_capacity(b.len());
    for mut s in b.drain(..) {
        let item = match &s {
            Stmt::Loop { kind: LoopKind::Glb(0) | LoopKind::Lcl(0), var, .. } => Some(var.id),
            _ => item,
        };
        s.blocks_mut().into_iter().for_each(|b| block(b, device, item, fresh, ahead));
        match item.and_then(|item| Rounds::of(&s, device, item)) {
            Some(rounds) => rounds.write(fresh, &mut out, ahead),
            None => out.push(s),
        }
    }
    *b = out;
}

/// A loop of which several steps are written out.
struct Rounds {
    /// Steps in front of the first round.
    skipped: i64,
    /// Steps of a round: as many as access neighbours in the work-item's row, or so many that their loads hide each other's latency.
    steps: i64,
    var: Var,
    range: (i64, i64),
    body: Block,
    /// The loads of a step that come before all steps.
    ahead: Vec<Expr>,
    /// For how many rounds loads are under way while the steps of a round are computed.
    under_way: usize,
}

/// What a step accesses in the row of its work-item.
struct Place {
    /// 1, or -1 if the row is gone through backwards.
    step: i64,
    /// The place without the counter.
    row: Index,
    /// Scalars of the widest access, and of a sector.
    most: i64,
    sector: i64,
}

impl Place {
    /// Whether the places of this many steps from step `at` on are a vector.
    fn is_vector(&self, at: i64, width: i64) -> bool {
        // Backwards, the last step accesses the first place.
        let first = if self.step == 1 { self.row.plus(at) } else { self.row.plus(1 - at) };
        first.is_multiple_of(width)
    }

    /// Scalars of the widest vector that begins or ends with step `at`, if so many steps are left.
    fn width(&self, at: i64, left: i64) -> i64 {
        let fits = |w: &i64| *w <= self.most.min(left) && self.is_vector(at, *w);
        [16, 8, 4, 2].into_iter().find(fits).unwrap_or(1)
    }
}

impl Rounds {
    fn of(s: &Stmt, device: &Device, item: u32) -> Option<Rounds> {
        let Stmt::Loop { kind: LoopKind::Seq, var, lo, hi, body } = s else { return None };
        let (first, end) = (lo.as_constant()?, hi.as_constant()?);
        let simple =
            |s: &Stmt| matches!(s, Stmt::Decl(_, Some(_)) | Stmt::Set(..) | Stmt::Store(..));
        if !body.iter().all(simple) {
            return None;
        }
        let places = places(body, var, device, item);
        let gain = |skipped: &i64| -> i64 {
            let (at, left) = (first + skipped, end - first - skipped);
            let gain = |p: &Place| match p.width(at, left) {
                1 => 0,
                w => w + i64::from(p.is_vector(at, p.sector)),
            };
            places.iter().map(gain).sum()
        };
        let long = end - first >= 8 * AHEAD;
        let skipped =
            (0..if long { 2 * AHEAD } else { 1 }).max_by_key(|n| (gain(n), -n)).unwrap_or(0);
        let left = end - first - skipped;
        let widest = places.iter().map(|p| {
            let width = p.width(first + skipped, left);
            // A sector that is read in several steps may leave the cache in between.
            let whole = width * (p.sector / width).max(1);
            if width > 1 && whole <= left { whole } else { width }
        });
        let widest = widest.max().unwrap_or(1);
        let copies = |steps: i64| usize::try_from(steps).unwrap_or(usize::MAX);
        let stores = |s: &Stmt| matches!(s, Stmt::Store(Mem::Global(_) | Mem::Local(_), ..));
        let stores = body.iter().any(stores);
        let mut ahead = loads(body, var);
        let each: usize = ahead.iter().map(|e| e.ty().bytes()).sum();
        // Whether two rounds of so many steps do not keep memory busy.
        let idles = |steps: i64| each > 0 && device.wanted >= 2 * each * copies(steps);
        let room = |steps: &i64| copies(*steps) * ahead.len() <= LOADS;
        let mut steps = widest;
        if widest == 1 && stores && !ahead.is_empty() && left >= 2 * AHEAD {
            let together = [AHEAD, AHEAD / 2].into_iter().find(room).unwrap_or(1);
            steps = if together == AHEAD || idles(together) { together } else { 1 };
        }
        let few = idles(steps);
        // Compilers unroll other loops.
        if !few && !body.iter().any(|s| matches!(s, Stmt::Set(..))) {
            return None;
        }
        let small = |steps: i64| body.len().saturating_mul(copies(steps)) <= STATEMENTS;
        let twice = 2 * steps;
        if few && steps > 1 && small(twice) && room(&twice) && 4 * twice <= left {
            steps = twice;
        }
        ahead.truncate(if stores || few { LOADS / copies(steps).max(1) } else { 0 });
        let round = ahead.len() * copies(steps);
        let most = (REGISTERS / round.max(1)).min(copies(left / steps / 2));
        let under_way = if few && round > 0 { device.wanted / each / copies(steps) } else { 0 };
        (steps > 1 && small(steps)).then(|| Rounds {
            skipped,
            steps,
            var: var.clone(),
            range: (first, end),
            body: body.clone(),
            under_way: under_way.min(most),
            ahead,
        })
    }

    fn write(self, fresh: &mut Fresh, out: &mut Block, rounds: &mut Vec<Ahead>) {
        let Rounds { skipped, steps, var, range: (first, end), body, ahead, under_way } = self;
        let begin = first + skipped;
        if skipped > 0 {
            let (lo, hi) = (Index::from(first), Index::from(begin));
            let body = renamed(body.clone(), fresh);
            out.push(Stmt::Loop { kind: LoopKind::Seq, var: var.clone(), lo, hi, body });
        }
        let body = named(held(body, fresh), &ahead, fresh);
        let mut round = vec![];
        let rest = written_out(&var, (begin, end), steps, body, fresh, &mut round);
        match &mut round[..] {
            [Stmt::Loop { body, .. }] => {
                loads_first(body, &ahead);
                let from = ahead.iter().filter_map(loaded).collect();
                let count = (end - begin) / steps;
                if under_way > 0 {
                    rounds.push(Ahead { var: var.id, count, under_way, from });
                }
            }
            _ => loads_first(&mut round, &ahead),
        }
        append(out, round, fresh);
        out.extend(rest);
    }
}

/// The memory that a load reads.
fn loaded(e: &Expr) -> Option<Mem> {
    if let Expr::Load(m, ..) = e { Some(*m) } else { None }
}

/// Returns the places in the rows of work-items that a step accesses.
fn places(body: &Block, var: &Var, device: &Device, item: u32) -> Vec<Place> {
    let mut found = vec![];
    let mut access = |m: &Mem, t: ScalarType, i: &Index| {
        if !matches!(m, Mem::Global(_)) || i.has_data() {
            return;
        }
        let scalars = |bytes: usize| i64::try_from(bytes / t.bytes().max(1)).unwrap_or(1);
        let (most, sector) = (scalars(device.bytes).min(16), scalars(SECTOR_BYTES));
        let of_row = i.linear_in(var.id).or_else(|| in_tiles(i, var, most));
        let Some((step @ (1 | -1), row)) = of_row else { return };
        if device.alone || are_apart(&row, item) {
            found.push(Place { step, row, most, sector });
        }
    };
    for s in body {
        if let Stmt::Store(m, i, e) = s
            && e.ty().width == 1
        {
            access(m, e.ty().scalar, i);
        }
        s.exprs(&mut |e| {
            e.visit(&mut |e| {
                if let Expr::Load(m, t, i) = e
                    && t.width == 1
                {
                    access(m, t.scalar, i);
                }
            });
        });
    }
    found
}

/// The number of a step in its window. Nothing else has this id.
const OFFSET: u32 = u32::MAX;

/// Returns the distance of steps, and the place of the first step of a window of so many steps, if the row lies in tiles of an array that
/// windows divide: the array that a product has stored tile by tile.
fn in_tiles(i: &Index, var: &Var, window: i64) -> Option<(i64, Index)> {
    let counter = Index::from(var.clone());
    let tile = i.terms().find_map(|(a, _)| match a {
        Atom::Mod(x, n) if **x == counter => Some(*n),
        _ => None,
    })?;
    if tile % window != 0 {
        return None;
    }
    let offset = Var { id: OFFSET, name: var.name.clone(), lo: 0, hi: window - 1 };
    let first = Index::from(Var { hi: var.hi / window, ..var.clone() }).times(window);
    let at = first.add(&offset.into());
    i.substitute(&|v| (v.id == var.id).then(|| at.clone())).linear_in(OFFSET)
}

/// Whether neighbouring work-items have rows that are no neighbours.
fn are_apart(row: &Index, item: u32) -> bool {
    if let Some((c, _)) = row.linear_in(item) {
        return c != 0;
    }
    let of = |k: i64| row.substitute(&|v| (v.id == item).then(|| Index::from(k)));
    of(1).sub(&of(0)).as_constant().is_none_or(|d| d.abs() > 1)
}

/// Returns the loads from global memory that every step makes, at places that do not depend on data, if no step before has stored
/// there.
fn loads(body: &Block, var: &Var) -> Vec<Expr> {
    fn of(e: &Expr, from: &dyn Fn(Mem) -> bool, found: &mut Vec<Expr>) {
        if let Expr::Load(m @ Mem::Global(_), t, i) = e
            && t.width == 1
            && !i.has_data()
            && from(*m)
            && !found.contains(e)
        {
            found.push(e.clone());
        }
        parts(e, &mut |e, lazy| {
            if !lazy {
                of(e, from, found);
            }
        });
    }
    let stored = Effects::of(body).stored;
    let from = |m: Mem| !stored.contains(&m) || stores_behind(body, m, var);
    let mut found = vec![];
    body.iter().for_each(|s| s.exprs(&mut |e| of(e, &from, &mut found)));
    found
}

/// Whether steps load from this memory only what no step before has stored: a step stores at the place that it has loaded from, as in
/// an update in place, or behind it.
fn stores_behind(body: &Block, mem: Mem, var: &Var) -> bool {
    let mut loaded: Vec<(usize, Option<Index>)> = vec![];
    let mut stored: Vec<(usize, &Index)> = vec![];
    for (at, s) in body.iter().enumerate() {
        s.exprs(&mut |e| {
            e.visit(&mut |e| {
                if let Expr::Load(m, t, i) = e
                    && *m == mem
                {
                    loaded.push((at, Some(i.clone()).filter(|i| t.width == 1 && !i.has_data())));
                }
            });
        });
        if let Stmt::Store(m, i, e) = s
            && *m == mem
        {
            if e.ty().width != 1 || i.has_data() {
                return false;
            }
            stored.push((at, i));
        }
    }
    stored.iter().all(|(after, store)| {
        let Some((step, _)) = store.linear_in(var.id).filter(|(step, _)| *step != 0) else {
            return false;
        };
        loaded.iter().all(|(at, load)| {
            let apart = load.as_ref().and_then(|i| i.sub(store).as_constant());
            apart.is_some_and(|d| d * step.signum() > 0 || (d == 0 && at <= after))
        })
    })
}

/// Gives each of these loads a register, at the beginning of the body.
fn named(mut body: Block, loads: &[Expr], fresh: &mut Fresh) -> Block {
    let names: Vec<(&Expr, Reg)> = loads.iter().map(|e| (e, fresh.reg(e.ty()))).collect();
    for s in &mut body {
        rebuild(s, &mut |e| in_registers(e, &names));
    }
    names.into_iter().map(|(e, r)| Stmt::Decl(r, Some(e.clone()))).chain(body).collect()
}

fn in_registers(e: &Expr, names: &[(&Expr, Reg)]) -> Expr {
    match names.iter().find(|(load, _)| *load == e) {
        Some((_, r)) => Expr::Reg(r.clone()),
        None => rebuilt(e, &mut |e, _| in_registers(e, names)),
    }
}

/// Moves the loads of the steps in front of the first step. `loads` are those of one step.
fn loads_first(body: &mut Block, loads: &[Expr]) {
    let memories: Vec<Mem> = loads.iter().filter_map(loaded).collect();
    let is_load = |s: &Stmt| matches!(s, Stmt::Decl(_, Some(Expr::Load(m, _, i))) if memories.contains(m) && !i.has_data());
    let (mut all, rest): (Block, Block) = std::mem::take(body).into_iter().partition(is_load);
    all.extend(rest);
    *body = all;
}

/// Gives stored values registers of their own, since later steps change the registers that they come from.
fn held(body: Block, fresh: &mut Fresh) -> Block {
    let mut out = vec![];
    for s in body {
        match s {
            Stmt::Store(m, i, e) => {
                let r = fresh.reg(e.ty());
                out.push(Stmt::Decl(r.clone(), Some(e)));
                out.push(Stmt::Store(m, i, Expr::Reg(r)));
            }
            s => out.push(s),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::ir::{ElemTy, Reg};
    use crate::lang::typed::ScalarOp;
    use ScalarType::{F32, U8};
    use std::collections::BTreeSet;

    /// `for item < 8 { for i < 64 { t0 = t0 + a[row * item + each * i]; b[row * item + each * i] = t0 } }`
    fn rows(t: ScalarType, row: i64, each: i64) -> Vec<Stmt> {
        placed(t, &|item, i| {
            let place = item.times(row).add(&i.times(each));
            // A row that is gone through backwards begins at its end.
            if each < 0 { place.plus(63) } else { place }
        })
    }

    /// The same, where each step loads and stores at the place that a function of the work-item and the step gives.
    fn placed(t: ScalarType, place: &dyn Fn(&Index, &Index) -> Index) -> Vec<Stmt> {
        let ty = ElemTy { scalar: t, width: 1 };
        let acc = Reg { id: 0, name: "t0".into(), ty };
        let var = |id, n: i64| Var { id, name: format!("i{id}").into(), lo: 0, hi: n - 1 };
        let place = place(&Index::from(var(1, 8)), &Index::from(var(2, 64)));
        let load = Expr::Load(Mem::Global(0), ty, place.clone());
        let sum = Expr::Op(ScalarOp::Add, ty, vec![Expr::Reg(acc.clone()), load]);
        let body =
            vec![Stmt::Set(acc.clone(), sum), Stmt::Store(Mem::Global(1), place, Expr::Reg(acc))];
        let repeat = |kind, v: Var, n: i64, body| Stmt::Loop {
            kind,
            var: v,
            lo: Index::from(0),
            hi: Index::from(n),
            body,
        };
        let inner = repeat(LoopKind::Seq, var(2, 64), 64, body);
        vec![repeat(LoopKind::Glb(0), var(1, 8), 8, vec![inner])]
    }

    /// A device for whose work-items so many bytes should be under way.
    fn device(bytes: usize, wanted: usize) -> Device {
        Device { bytes, wanted, alone: false }
    }

    /// Unrolls the loops of a block. Returns the statements of a work-item, and the loops with loads rounds ahead.
    fn unrolled(mut b: Block, device: &Device) -> (Block, Vec<Ahead>) {
        let mut fresh = Fresh { next: 100, first: 0, reserved: BTreeSet::new() };
        let mut ahead = vec![];
        block(&mut b, device, None, &mut fresh, &mut ahead);
        let Some(Stmt::Loop { body, .. }) = b.pop() else { unreachable!() };
        (body, ahead)
    }

    /// Changes the statements of a step.
    fn with_step(mut b: Block, change: impl Fn(&mut Block)) -> Block {
        let Stmt::Loop { body, .. } = &mut b[0] else { unreachable!() };
        let Stmt::Loop { body, .. } = &mut body[0] else { unreachable!() };
        change(body);
        b
    }

    /// Returns the number of rounds and the number of stores in a round, whose loads come first.
    fn shape(b: Block, device: &Device) -> (i64, usize) {
        let (body, _) = unrolled(b, device);
        let [Stmt::Loop { hi, body, .. }] = body.as_slice() else { unreachable!() };
        let stores = body.iter().filter(|s| matches!(s, Stmt::Store(..))).count();
        let is_load = |s: &&Stmt| matches!(s, Stmt::Decl(_, Some(Expr::Load(..))));
        assert_eq!(body.iter().take_while(is_load).count(), stores, "{body:?}");
        (hi.constant(), stores)
    }

    #[test]
    fn rows_of_tiles_are_gone_through_in_vectors() {
        // Each tile has 32 elements of each of the 8 rows.
        let tiles =
            |item: &Index, i: &Index| item.times(32).add(&i.div(32).times(256)).add(&i.rem(32));
        let device = device(16, 0);
        assert_eq!(shape(placed(F32, &tiles), &device), shape(rows(F32, 64, 1), &device));
    }

    #[test]
    fn rows_are_accessed_by_sectors() {
        let many = device(16, 0);
        assert_eq!(shape(rows(F32, 64, 1), &many), (8, 8));
        assert_eq!(shape(rows(U8, 64, 1), &many), (2, 32));
        assert_eq!(shape(rows(F32, 66, 1), &many), (8, 8));
        assert_eq!(shape(rows(U8, 64, -1), &many), (2, 32));
    }

    #[test]
    fn steps_that_store_load_together() {
        let many = device(16, 0);
        // Vectors of such rows would not be aligned.
        assert_eq!(shape(rows(U8, 65, 1), &many), (8, 8));
        // Neighbouring work-items access neighbours already.
        assert_eq!(shape(rows(U8, 1, 8), &many), (8, 8));
        assert_eq!(shape(rows(U8, 0, 1), &many), (8, 8));
    }

    /// Moves the places that a step loads from and stores to.
    fn moved(b: Block, [from, to]: [i64; 2], out: Mem) -> Block {
        with_step(b, |body| {
            for s in body {
                rebuild(s, &mut |e| with_places(e, from));
                if let Stmt::Store(m, i, _) = s {
                    (*m, *i) = (out, i.plus(to));
                }
            }
        })
    }

    fn with_places(e: &Expr, by: i64) -> Expr {
        match rebuilt(e, &mut |e, _| with_places(e, by)) {
            Expr::Load(m, t, i) => Expr::Load(m, t, i.plus(by)),
            e => e,
        }
    }

    #[test]
    fn rounds_begin_where_vectors_do() {
        let bounds = |row: i64, each: i64, by: i64| -> Vec<(i64, i64)> {
            let b = moved(rows(F32, row, each), [by, by], Mem::Global(1));
            let (body, _) = unrolled(b, &device(16, 0));
            let bounds = |s: &Stmt| match s {
                Stmt::Loop { lo, hi, .. } => (lo.constant(), hi.constant()),
                _ => unreachable!(),
            };
            body.iter().map(bounds).collect()
        };
        assert_eq!(bounds(72, 1, 1), [(0, 7), (0, 7), (63, 64)]);
        assert_eq!(bounds(72, 1, 8), [(0, 8)]);
        // Backwards from place 64 on: a step, and then whole sectors.
        assert_eq!(bounds(72, -1, 1), [(0, 1), (0, 7), (57, 64)]);
    }

    #[test]
    fn few_work_items_load_rounds_ahead() {
        let under_way = |wanted: usize| {
            let (_, ahead) = unrolled(rows(F32, 64, 1), &device(16, wanted));
            ahead.iter().map(|a| (a.count, a.under_way)).collect::<Vec<_>>()
        };
        assert_eq!(under_way(63), []);
        assert_eq!(under_way(64), [(4, 1)]);
        assert_eq!(under_way(1 << 20), [(4, 2)]);
    }

    #[test]
    fn updates_in_place_load_ahead() {
        let many = device(16, 0);
        let same = Mem::Global(0);
        assert_eq!(shape(moved(rows(F32, 72, 1), [0, 0], same), &many), (8, 8));
        // A step stores where later steps no longer load.
        assert_eq!(shape(moved(rows(F32, 72, 1), [8, 0], same), &many), (8, 8));
        // The next step loads what this one stores.
        let b = moved(rows(U8, 65, 1), [0, 1], same);
        let (body, ahead) = unrolled(b.clone(), &device(16, 1 << 20));
        let Stmt::Loop { body: before, .. } = &b[0] else { unreachable!() };
        assert_eq!((&body, ahead), (before, vec![]));
    }
}
