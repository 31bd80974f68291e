//! Rows of work-items that go through local memory.
//!
//! If each work-item computes a row of a result, neighbouring work-items store to places that lie a row apart, and each store takes
//! memory the time of a whole line for every work-item. The rows of a work-group are one block of memory, though. So work-items
//! store their rows to local memory, from where the group copies the block: neighbours store neighbouring elements. What work-items
//! read of rows of their own is copied to local memory first, likewise.

use super::layout::place;
use crate::kernel::ir::facts::Guard;
use crate::kernel::ir::index::{Index, Var};
use crate::kernel::ir::walk::{Fresh, with_var};
use crate::kernel::ir::{
    Block, BufferRole, ElemTy, Expr, Kernel, LoopKind, Mem, MemArray, Program, Scope, Stmt,
};
use crate::kernel::options::DeviceLimits;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes that memory moves at once: shorter rows are stored by few accesses.
const SECTOR: i64 = 32;

/// Most bytes of the rows of one work-item. With longer ones, few work-items would be resident.
const MOST: i64 = 1024;

/// Longest rows that are loaded in vectors and nevertheless come through local memory, in bytes.
const WIDE: i64 = 256;

/// Fewest work-items of a group: those of a warp.
const FEWEST: i64 = 32;

/// Bytes that one bank of local memory holds side by side.
const BANK: i64 = 4;

/// Returns a kernel with rows that go through local memory; `None` if it has none that should. `reserved` are the names that nothing
/// in a kernel may get.
pub fn stage(
    p: &Program,
    k: usize,
    device: &DeviceLimits,
    reserved: &BTreeSet<String>,
) -> Option<Kernel> {
    let kernel = &p.kernels[k];
    let simple = kernel.locals.is_empty() && kernel.warp == 0 && kernel.side_by_side == 1;
    if device.access_bytes == 0 || !simple || kernel.group[1..] != [1, 1] {
        return None;
    }
    let nest = Nest::of(kernel)?;
    let mut rows = nest.rows(p, device);
    // Caches serve vectors of neighbouring rows nearly as fast as local memory. They come the same way only where groups meet anyway.
    let meets = rows.iter().any(|r| r.store || r.narrow);
    rows.retain(|r| r.store || r.narrow || meets && r.length * r.scalar_bytes() <= WIDE);
    let mut bytes = 0;
    rows.retain(|r| {
        let fits = bytes + r.stride_bytes() <= MOST;
        bytes += if fits { r.stride_bytes() } else { 0 };
        fits
    });
    if rows.is_empty() {
        return None;
    }
    let local = i64::try_from(device.local_mem_bytes).ok()?;
    let most = i64::try_from(kernel.group[0]).ok()?.min(local / bytes);
    let items = 1 << most.checked_ilog2()?;
    let mut fresh = Fresh::after(kernel, reserved);
    (items >= FEWEST).then(|| nest.staged(kernel, &rows, items, &mut fresh)).flatten()
}

/// The loops over the work-items of a kernel, each but the innermost one with nothing but declarations before the next.
struct Nest<'a> {
    /// The variables of the outer loops.
    outer: Vec<&'a Var>,
    /// The variable of the innermost loop, which numbers neighbouring work-items, and the number of its iterations.
    item: &'a Var,
    items: i64,
    /// What each work-item does.
    body: &'a Block,
    /// What is declared before.
    before: Vec<&'a Stmt>,
}

/// An access of a work-item to global memory.
struct Access<'a> {
    store: bool,
    index: Index,
    ty: ElemTy,
    /// The sequential loops around a store that each work-item executes in any case.
    loops: Option<Vec<(&'a Var, i64)>>,
}

/// Rows of a buffer that work-items access, each its own.
struct Rows {
    buffer: usize,
    store: bool,
    array: MemArray,
    /// Number of scalars of a row, and the distance between rows in local memory.
    length: i64,
    stride: i64,
    /// Where the row of the first work-item begins.
    start: Index,
    /// Scalars that one work-item copies at once.
    width: i64,
    /// Whether work-items access less than the widest vectors.
    narrow: bool,
}

impl Rows {
    fn scalar_bytes(&self) -> i64 {
        i64::try_from(self.array.scalar.bytes()).unwrap_or(i64::MAX)
    }

    fn stride_bytes(&self) -> i64 {
        self.stride.saturating_mul(self.scalar_bytes())
    }
}

impl<'a> Nest<'a> {
    fn of(kernel: &'a Kernel) -> Option<Nest<'a>> {
        let (mut block, mut outer, mut before) = (&kernel.body, vec![], vec![]);
        loop {
            let (last, first) = block.split_last()?;
            before.extend(first.iter());
            let Stmt::Loop { kind: LoopKind::Glb(d), var, lo, hi, body } = last else {
                return None;
            };
            let items = hi.as_constant().filter(|_| lo.as_constant() == Some(0))?;
            if !first.iter().all(|s| matches!(s, Stmt::Decl(..))) {
                return None;
            }
            if *d == 0 {
                let all = i64::try_from(kernel.global[0]).ok()? >= items;
                return all.then_some(Nest { outer, item: var, items, body, before });
            }
            outer.push(var);
            block = body;
        }
    }

    /// Returns the rows that should go through local memory, those that are stored first.
    fn rows(&self, p: &Program, device: &DeviceLimits) -> Vec<Rows> {
        let mut all: BTreeMap<usize, Option<Vec<Access<'_>>>> = BTreeMap::new();
        collect(self.body, Some(&[]), &mut all);
        // What is accessed elsewhere is not only rows of the work-items.
        for s in &self.before {
            s.exprs(&mut |e| {
                e.visit(&mut |e| {
                    if let Expr::Load(Mem::Global(b), ..) = e {
                        all.insert(*b, None);
                    }
                });
            });
        }
        let of = |(b, of): (usize, Option<Vec<Access<'_>>>)| self.rows_of(p, b, &of?, device);
        let mut rows: Vec<Rows> = all.into_iter().filter_map(of).collect();
        rows.sort_by_key(|r| !r.store);
        rows
    }

    fn rows_of(
        &self,
        p: &Program,
        buffer: usize,
        all: &[Access<'_>],
        device: &DeviceLimits,
    ) -> Option<Rows> {
        let array = &p.buffers.get(buffer)?.array;
        let bytes = i64::try_from(array.scalar.bytes()).ok()?;
        let store = all.first()?.store;
        let mut found: Option<(i64, Index)> = None;
        let (mut widest, mut places) = (1, vec![]);
        for a in all {
            let (length, rest) = a.index.linear_in(self.item.id)?;
            let (start, place) = self.parts(&rest);
            let (lo, hi) = place.range();
            let width = i64::try_from(a.ty.width).ok()?;
            let known = found.get_or_insert_with(|| (length, start.clone()));
            let fits = lo >= 0 && hi.checked_add(width)? <= length;
            let aligned = length % width == 0 && a.index.is_multiple_of(width);
            if a.store != store || *known != (length, start) || !fits || !aligned {
                return None;
            }
            widest = widest.max(width);
            places.push((place, width));
        }
        let (length, start) = found?;
        let row = length.checked_mul(bytes)?;
        if !(SECTOR..=MOST).contains(&row) || widest == length {
            return None;
        }
        if store {
            let role = &p.buffers.get(buffer)?.role;
            if matches!(role, BufferRole::Input(..)) || !covers(all, &places, length) {
                return None;
            }
        } else {
            let (lo, hi) = places.iter().fold((length, 0), |(lo, hi), (place, width)| {
                let (first, last) = place.range();
                (lo.min(first), hi.max(last + width))
            });
            if 2 * (hi - lo) < length {
                return None;
            }
        }
        let wide = i64::try_from(device.access_bytes).ok()?;
        let most = wide / bytes.max(1);
        let fits = |w: &i64| length % w == 0 && start.is_multiple_of(*w) && *w <= most.max(1);
        let width = [16, 8, 4, 2, 1].into_iter().find(fits)?;
        let stride = stride(length, bytes, width.max(widest));
        let array = array.clone();
        let narrow = widest * bytes < wide;
        Some(Rows { buffer, store, array, length, stride, start, width, narrow })
    }

    /// Splits the rest of an index into what the outer loops decide and the place in a row.
    fn parts(&self, rest: &Index) -> (Index, Index) {
        let (mut start, mut place) = (Index::from(0), Index::from(rest.constant()));
        for (atom, _) in rest.terms() {
            let part = rest.part(atom);
            let (mut outside, mut any) = (!part.has_data(), false);
            part.visit_vars(&mut |v| {
                any = true;
                outside &= self.outer.iter().any(|o| o.id == v.id);
            });
            let to = if outside && any { &mut start } else { &mut place };
            *to = to.add(&part);
        }
        (start, place)
    }

    /// Returns the kernel with groups of `items` work-items, whose rows go through local memory.
    fn staged(&self, k: &Kernel, rows: &[Rows], items: i64, fresh: &mut Fresh) -> Option<Kernel> {
        let groups = self.items / items + i64::from(self.items % items != 0);
        let var = |name: &str, n: i64, fresh: &mut Fresh| {
            let (id, name) = fresh.name(name);
            Var { id, name, lo: 0, hi: n - 1 }
        };
        let (group, local) = (var("g", groups, fresh), var("l", items, fresh));
        let first = Index::from(group.clone()).times(items);
        let of_items = |body: Block| Stmt::Loop {
            kind: LoopKind::Lcl(0),
            var: local.clone(),
            lo: Index::from(0),
            hi: Index::from(items),
            body,
        };
        let meet = || Stmt::Barrier { scope: Scope::Group, local: true, global: false };
        let mut kernel = k.clone();
        let mut own = self.body.clone();
        let (mut loaded, mut stored) = (vec![], vec![]);
        for r in rows {
            let mem = Mem::Local(kernel.locals.len());
            let (_, name) = fresh.name("rows");
            let len = usize::try_from(items.checked_mul(r.stride)?).ok()?;
            kernel.locals.push(MemArray { name, len, ahead: 0, ..r.array.clone() });
            place(&mut own, Mem::Global(r.buffer), &|i| {
                let (_, rest) = i.linear_in(self.item.id).expect("invariant: one row each");
                let in_row = self.parts(&rest).1;
                (mem, Index::from(local.clone()).times(r.stride).add(&in_row))
            });
            let copied = self.copied(r, mem, &first, &local, items, fresh);
            if r.store { &mut stored } else { &mut loaded }.push(of_items(copied));
        }
        let item = first.add(&Index::from(local.clone()));
        with_var(&mut own, self.item.id, &item);
        let mut body = loaded;
        if !body.is_empty() {
            body.push(meet());
        }
        body.push(of_items(where_less(&item, self.items, own)));
        if !stored.is_empty() {
            body.push(meet());
        }
        body.extend(stored);
        let inner = Stmt::Loop {
            kind: LoopKind::Wrg(0),
            var: group.clone(),
            lo: Index::from(0),
            hi: Index::from(groups),
            body,
        };
        kernel.body = around(&k.body, &inner);
        kernel.group[0] = usize::try_from(items).ok()?;
        kernel.global[0] = usize::try_from(groups.checked_mul(items)?).ok()?;
        Some(kernel)
    }

    /// Copies the rows of a group from or to local memory: what one work-item does. As many work-items as a power of two copy a
    /// row together.
    fn copied(
        &self,
        r: &Rows,
        mem: Mem,
        first: &Index,
        local: &Var,
        items: i64,
        fresh: &mut Fresh,
    ) -> Block {
        let vectors = r.length / r.width;
        let together = (1 << vectors.max(1).ilog2()).min(items);
        let mut counter = |n: i64| {
            let (id, name) = fresh.name("i");
            Var { id, name, lo: 0, hi: n - 1 }
        };
        let of_row = vectors / together + i64::from(vectors % together != 0);
        let (down, along) = (counter(together), counter(of_row));
        let at = Index::from(local.clone());
        let row = at.div(together).add(&Index::from(down.clone()).times(items / together));
        let vector = at.rem(together).add(&Index::from(along.clone()).times(together));
        let place = vector.times(r.width);
        let inside = row.times(r.stride).add(&place);
        let outside = first.add(&row).times(r.length).add(&r.start).add(&place);
        let width = usize::try_from(r.width).unwrap_or(1);
        let ty = ElemTy { scalar: r.array.scalar, width };
        let (global, copy) =
            (Mem::Global(r.buffer), |from, i: &Index| Expr::Load(from, ty, i.clone()));
        let one = match r.store {
            true => Stmt::Store(global, outside.clone(), copy(mem, &inside)),
            false => Stmt::Store(mem, inside, copy(global, &outside)),
        };
        let counted = |var: Var, body: Block| match var.hi {
            0 => body,
            last => vec![Stmt::Loop {
                kind: LoopKind::Seq,
                var,
                lo: Index::from(0),
                hi: Index::from(last + 1),
                body,
            }],
        };
        let inner = where_less(&vector, vectors, vec![one]);
        let rows = where_less(&first.add(&row), self.items, counted(along, inner));
        counted(down, rows)
    }
}

/// Runs the block where the index is less than `n`.
fn where_less(i: &Index, n: i64, block: Block) -> Block {
    match i.range().1 < n {
        true => block,
        false => vec![Stmt::If(Guard::less(i, &Index::from(n)), block, vec![])],
    }
}

/// Puts `inner` in the place of the innermost loop of a nest. The loops around it are over work-groups.
fn around(nest: &Block, inner: &Stmt) -> Block {
    let mut out = nest.clone();
    if let Some(Stmt::Loop { kind: kind @ LoopKind::Glb(_), body, .. }) = out.last_mut() {
        match *kind {
            LoopKind::Glb(d) if d > 0 => {
                *kind = LoopKind::Wrg(d);
                *body = around(body, inner);
            }
            _ => *out.last_mut().expect("invariant: it has a last statement") = inner.clone(),
        }
    }
    out
}

/// Distance between rows in local memory, in scalars: as many vectors of `width` as is odd, so that the work-items of a warp meet
/// different banks.
fn stride(length: i64, bytes: i64, width: i64) -> i64 {
    let unit = width.max(BANK / bytes.clamp(1, BANK));
    let units = length / unit + i64::from(length % unit != 0);
    unit * (units + i64::from(units % 2 == 0))
}

/// Whether stores that each work-item executes in any case store each scalar of a row.
fn covers(all: &[Access<'_>], places: &[(Index, i64)], length: i64) -> bool {
    let mut stored = BTreeSet::new();
    let mut known = true;
    for (a, (place, width)) in all.iter().zip(places) {
        let Some(loops) = &a.loops else { return false };
        let times = loops.iter().try_fold(1_i64, |all, (_, n)| all.checked_mul(*n));
        let Some(times) = times.filter(|n| *n <= length) else { return false };
        for step in 0..times {
            let value = |v: &Var| {
                let mut rest = step;
                for (counter, n) in loops {
                    if counter.id == v.id {
                        return Some(rest % n);
                    }
                    rest /= n;
                }
                None
            };
            match place.eval(&value) {
                Some(at) => stored.extend(at..at + width),
                None => known = false,
            }
        }
    }
    known && i64::try_from(stored.len()) == Ok(length)
}

/// Collects the accesses to each buffer, or `None` for one that is not only loaded and stored. `loops` are the sequential loops
/// around, if each work-item executes the block in any case.
fn collect<'a>(
    block: &'a Block,
    loops: Option<&[(&'a Var, i64)]>,
    all: &mut BTreeMap<usize, Option<Vec<Access<'a>>>>,
) {
    for s in block {
        let mut add = |b: usize, store, index, ty, loops| {
            if let Some(of) = all.entry(b).or_insert_with(|| Some(vec![])) {
                of.push(Access { store, index, ty, loops });
            }
        };
        s.exprs(&mut |e| {
            e.visit(&mut |e| {
                if let Expr::Load(Mem::Global(b), ty, i) = e {
                    add(*b, false, i.clone(), *ty, None);
                }
            });
        });
        match s {
            Stmt::Store(Mem::Global(b), i, e) => {
                add(*b, true, i.clone(), e.ty(), loops.map(<[_]>::to_vec));
            }
            Stmt::Atomic(_, Mem::Global(b), ..) => _ = all.insert(*b, None),
            _ => {}
        }
        let inside = match s {
            Stmt::Loop { kind: LoopKind::Seq, var, lo, hi, .. } => {
                let times = hi.as_constant().filter(|_| lo.as_constant() == Some(0));
                loops.zip(times).map(|(loops, n)| [loops, &[(var, n)]].concat())
            }
            _ => None,
        };
        s.blocks().into_iter().for_each(|b| collect(b, inside.as_deref(), all));
    }
}
