//! Vectorises accesses: loads and stores of neighbouring scalars in straight-line code become
//! vector accesses.
//!
//! This requires that all lanes are accessed unconditionally, that the place is aligned for all
//! values of the variables, and that no statement in between may touch the same memory. Private
//! arrays stay as they are, because compilers keep their elements in registers.

use crate::kernel::ir::index::{Index, Var};
use crate::kernel::ir::walk::{Effects, Fresh, parts, rebuild, rebuilt, rebuilt_index};
use crate::kernel::ir::{Block, ElemTy, Expr, Kernel, LoopKind, Mem, Reg, Stmt};
use crate::lang::types::ScalarType;
use rustc_hash::{FxHashMap, FxHashSet};

/// Widens the accesses of a kernel to at most this many bytes.
pub fn widen(k: &mut Kernel, bytes: usize, fresh: &mut Fresh) {
    if bytes > 0 {
        let written = Effects::of(&k.body).stored;
        block(&mut k.body, bytes, &written, fresh);
    }
}

fn block(b: &mut Block, bytes: usize, written: &FxHashSet<Mem>, fresh: &mut Fresh) {
    b.iter_mut().flat_map(Stmt::blocks_mut).for_each(|b| block(b, bytes, written, fresh));
    b.iter_mut().for_each(|s| copy_loop(s, bytes));
    stores(b, bytes);
    loads(b, bytes, written, fresh);
}

/// Key that neighbouring accesses share: memory, type, and index without its constant.
type Base = (Mem, ScalarType, Index);

fn base(m: Mem, t: ScalarType, i: &Index) -> (Base, i64) {
    ((m, t, i.plus(-i.constant())), i.constant())
}

/// Returns the vectors that cover neighbouring places: their first place and number of lanes, at
/// most this many bytes wide. Returns none if a place occurs twice.
fn vectors(base: &Base, places: &[i64], bytes: usize) -> Vec<(i64, usize)> {
    let (mem, scalar, index) = base;
    let most = (bytes / scalar.bytes().max(1)).min(16);
    let all: FxHashSet<i64> = places.iter().copied().collect();
    if most < 2 || matches!(mem, Mem::Private(_)) || all.len() != places.len() {
        return vec![];
    }
    let mut sorted = places.to_vec();
    sorted.sort_unstable();
    let mut out: Vec<(i64, usize)> = vec![];
    let mut free = i64::MIN;
    for at in sorted {
        if at < free {
            continue;
        }
        let widths =
            [16i64, 8, 4, 2].into_iter().filter(|w| usize::try_from(*w).is_ok_and(|w| w <= most));
        let fits =
            |w: &i64| index.plus(at).is_multiple_of(*w) && (1..*w).all(|k| all.contains(&(at + k)));
        if let Some(w) = widths.into_iter().find(fits) {
            out.push((at, usize::try_from(w).unwrap_or(1)));
            free = at + w;
        }
    }
    out
}

/// Makes a loop that copies neighbouring scalars to neighbouring places copy vectors.
fn copy_loop(s: &mut Stmt, bytes: usize) {
    let Stmt::Loop { kind: LoopKind::Seq, var, lo, hi, body } = s else { return };
    let [Stmt::Store(to, into, Expr::Load(from, ty, place))] = body.as_slice() else { return };
    let (Some(first), Some(end)) = (lo.as_constant(), hi.as_constant()) else { return };
    let shared = |m: &Mem| !matches!(m, Mem::Private(_));
    if ty.width != 1 || ty.scalar == ScalarType::Bool || to == from || !shared(to) || !shared(from)
    {
        return;
    }
    let most = (bytes / ty.scalar.bytes().max(1)).min(16);
    let fits = |w: &i64| {
        let aligned = |i: &Index| {
            !i.has_data()
                && i.linear_in(var.id).is_some_and(|(c, rest)| c == 1 && rest.is_multiple_of(*w))
        };
        first % w == 0 && end % w == 0 && aligned(into) && aligned(place)
    };
    let widths =
        [16i64, 8, 4, 2].into_iter().filter(|w| usize::try_from(*w).is_ok_and(|w| w <= most));
    let Some(w) = widths.into_iter().find(fits) else { return };
    let (lo, hi) = (first / w, end / w);
    let vectors = Var { lo, hi: (hi - 1).max(lo), ..var.clone() };
    let start = Index::from(vectors.clone()).times(w);
    let at = |i: &Index| i.substitute(&|v| (v.id == var.id).then(|| start.clone()));
    let ty = ElemTy { width: usize::try_from(w).unwrap_or(1), ..*ty };
    let copy = Stmt::Store(*to, at(into), Expr::Load(*from, ty, at(place)));
    *s = if hi - lo == 1 {
        copy
    } else {
        let (lo, hi) = (Index::from(lo), Index::from(hi));
        Stmt::Loop { kind: LoopKind::Seq, var: vectors, lo, hi, body: vec![copy] }
    };
}

/// Stores that may be combined. Between the first and the last one, no other statement touches
/// their memory or changes the inputs of their values.
#[derive(Default)]
struct Run {
    /// The place of each store, and the position of its statement.
    stores: Vec<(i64, usize)>,
    /// Registers that the values read.
    regs: FxHashSet<u32>,
    /// Memories that the values load from.
    loaded: FxHashSet<Mem>,
}

fn stores(b: &mut Block, bytes: usize) {
    let mut open: FxHashMap<Mem, (Base, Run)> = FxHashMap::default();
    let mut done: Vec<(Base, Run)> = vec![];
    for (at, s) in b.iter().enumerate() {
        let (mut loaded, mut read) = (FxHashSet::default(), FxHashSet::default());
        let mut effects = Effects::default();
        effects.add(s);
        s.visit(&mut |s| {
            s.exprs(&mut |e| {
                e.visit(&mut |e| match e {
                    Expr::Load(m, ..) => {
                        loaded.insert(*m);
                    }
                    Expr::Reg(r) => {
                        read.insert(r.id);
                    }
                    _ => {}
                });
            });
        });
        let single = match s {
            Stmt::Store(m, i, e) if e.ty().width == 1 => Some(base(*m, e.ty().scalar, i)),
            _ => None,
        };
        let ends: Vec<Mem> = open
            .iter()
            .filter(|(m, (base, run))| {
                let joins = single.as_ref().is_some_and(|(b, place)| {
                    b == base && run.stores.iter().all(|(p, _)| p != place)
                });
                loaded.contains(m)
                    || effects.meets
                    || (effects.stored.contains(m) && !joins)
                    || effects.stored.iter().any(|m| run.loaded.contains(m))
                    || effects.regs.iter().any(|r| run.regs.contains(r))
            })
            .map(|(m, _)| *m)
            .collect();
        done.extend(ends.iter().filter_map(|m| open.remove(m)));
        if let Some((base, place)) = single {
            // A store whose value loads from the same memory is not moved.
            if loaded.contains(&base.0) {
                continue;
            }
            let run = &mut open.entry(base.0).or_insert_with(|| (base, Run::default())).1;
            run.stores.push((place, at));
            run.regs.extend(read);
            run.loaded.extend(loaded);
        }
    }
    done.extend(open.into_values());
    let mut gone: FxHashSet<usize> = FxHashSet::default();
    for (base, run) in done {
        let places: FxHashMap<i64, usize> = run.stores.iter().copied().collect();
        let order: Vec<i64> = run.stores.iter().map(|s| s.0).collect();
        for (first, width) in vectors(&base, &order, bytes) {
            let lanes = (first..).take(width);
            let at: Vec<usize> = lanes.filter_map(|p| places.get(&p).copied()).collect();
            let values = at.iter().filter_map(|at| match &b[*at] {
                Stmt::Store(_, _, e) => Some(e.clone()),
                _ => None,
            });
            let value = Expr::vector(values.collect());
            let Some(last) = at.iter().copied().max() else { continue };
            gone.extend(at.into_iter().filter(|at| *at != last));
            b[last] = Stmt::Store(base.0, base.2.plus(first), value);
        }
    }
    let mut at = 0;
    b.retain(|_| {
        at += 1;
        !gone.contains(&(at - 1))
    });
}

/// Loads from a memory between two changes of it.
#[derive(Default)]
struct Loads {
    /// Places in order of their first use, each with the position of the statement that uses it
    /// first.
    places: Vec<(i64, usize)>,
    known: FxHashSet<i64>,
}

/// For each group and place: the vector, the lane, and the position of the first statement after
/// the vector load.
type Lanes = FxHashMap<(usize, i64), (Reg, usize, usize)>;

fn loads(b: &mut Block, bytes: usize, written: &FxHashSet<Mem>, fresh: &mut Fresh) {
    // Collect the loads in groups. A change of a memory starts new groups for it.
    let mut groups: Vec<(Base, Loads)> = vec![];
    let mut open: FxHashMap<Base, usize> = FxHashMap::default();
    let mut of: Vec<FxHashMap<Base, usize>> = vec![];
    for (at, s) in b.iter().enumerate() {
        let mut mine = FxHashMap::default();
        // For a counted loop, `exprs` visits only the bounds, which are evaluated even if the body
        // never runs. The condition of a `While` runs after its head, so it is skipped.
        if !matches!(s, Stmt::While(..)) {
            s.exprs(&mut |e| {
                scalar_loads(e, written, &mut |base, place| {
                    let group = *open.entry(base.clone()).or_insert_with(|| {
                        groups.push((base.clone(), Loads::default()));
                        groups.len() - 1
                    });
                    mine.insert(base, group);
                    let loads = &mut groups[group].1;
                    if loads.known.insert(place) {
                        loads.places.push((place, at));
                    }
                });
            });
        }
        of.push(mine);
        let mut effects = Effects::default();
        effects.add(s);
        if effects.meets {
            open.retain(|(m, ..), _| !written.contains(m));
        }
        if !effects.stored.is_empty() {
            open.retain(|(m, ..), _| !effects.stored.contains(m));
        }
        if !effects.regs.is_empty() {
            open.retain(|(_, _, i), _| !reads_any(i, &effects.regs));
        }
    }
    let mut lanes: Lanes = FxHashMap::default();
    let mut before: Vec<Vec<Stmt>> = vec![vec![]; b.len()];
    for (group, (base, loads)) in groups.iter().enumerate() {
        let order: Vec<i64> = loads.places.iter().map(|p| p.0).collect();
        let when: FxHashMap<i64, usize> = loads.places.iter().copied().collect();
        for (first, width) in vectors(base, &order, bytes) {
            let all = (first..).take(width);
            let Some(at) = all.clone().filter_map(|p| when.get(&p).copied()).min() else {
                continue;
            };
            let ty = ElemTy { scalar: base.1, width };
            let r = fresh.reg(ty);
            for (k, p) in all.enumerate() {
                lanes.insert((group, p), (r.clone(), k, at));
            }
            // The place may be computed from lanes of the groups before, which were found inside of it.
            let place = rebuilt_index(&base.2.plus(first), &mut |e| {
                in_lanes(e, at, &of[at], written, &lanes)
            });
            before[at].push(Stmt::Decl(r, Some(Expr::Load(base.0, ty, place))));
        }
    }
    if lanes.is_empty() {
        return;
    }
    let mut out = Vec::with_capacity(b.len());
    for (at, (mut s, (before, of))) in b.drain(..).zip(before.into_iter().zip(of)).enumerate() {
        out.extend(before);
        if !matches!(s, Stmt::While(..)) && !of.is_empty() {
            rebuild(&mut s, &mut |e| in_lanes(e, at, &of, written, &lanes));
        }
        out.push(s);
    }
    *b = out;
}

/// Calls `f` on the scalar loads that are made unconditionally, those inside of places first.
fn scalar_loads(e: &Expr, written: &FxHashSet<Mem>, f: &mut dyn FnMut(Base, i64)) {
    parts(e, &mut |e, lazy| {
        if !lazy {
            scalar_loads(e, written, f);
        }
    });
    if let Expr::Load(m, t, i) = e
        && t.width == 1
        && is_fixed(i, written)
    {
        let (base, place) = base(*m, t.scalar, i);
        f(base, place);
    }
}

/// Whether a place depends on data, if at all, only through registers and memory that the kernel does not write to.
fn is_fixed(i: &Index, written: &FxHashSet<Mem>) -> bool {
    let mut fixed = true;
    i.visit_data(&mut |e| {
        e.visit(&mut |e| fixed &= !matches!(e, Expr::Load(m, ..) if written.contains(m)));
    });
    fixed
}

/// Whether a place depends on one of these registers.
fn reads_any(i: &Index, regs: &FxHashSet<u32>) -> bool {
    let mut found = false;
    i.visit_data(&mut |e| {
        e.visit(&mut |e| found |= matches!(e, Expr::Reg(r) if regs.contains(&r.id)));
    });
    found
}

/// Returns an expression of statement `now` with its scalar loads replaced by lanes of vectors.
fn in_lanes(
    e: &Expr,
    now: usize,
    of: &FxHashMap<Base, usize>,
    written: &FxHashSet<Mem>,
    lanes: &Lanes,
) -> Expr {
    if let Expr::Load(m, t, i) = e
        && t.width == 1
        && is_fixed(i, written)
    {
        let (base, place) = base(*m, t.scalar, i);
        let lane = of.get(&base).and_then(|group| lanes.get(&(*group, place)));
        // A load that is evaluated only sometimes may precede the vector load.
        if let Some((r, k, at)) = lane
            && *at <= now
        {
            return Expr::Reg(r.clone()).lane(*k);
        }
    }
    rebuilt(e, &mut |e, _| in_lanes(e, now, of, written, lanes))
}
