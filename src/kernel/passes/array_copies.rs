//! Arrays of a work-item or of a group that are copies of others, and arrays that are computed from others element by element.
//!
//! Where lowering computes the next state of a loop beside the present one, or changes a copy of an array, both may share memory if the
//! old elements are not needed any more. Then the copy is gone, and a choice between a new element and the old one stores the new one
//! alone.

use super::barrier;
use super::memory_reuse::block;
use crate::kernel::analysis::interference::{Interference, are_alike};
use crate::kernel::analysis::race;
use crate::kernel::analysis::unchanged::Update;
use crate::kernel::ir::{Block, Kernel, Mem, Stmt};
use std::collections::{BTreeMap, BTreeSet};

/// Lets arrays of a kernel without barriers share memory where that saves copies.
pub fn share(k: &mut Kernel) {
    let arrays = (0..k.privates.len()).map(Mem::Private).chain((0..k.locals.len()).map(Mem::Local));
    let arrays: Vec<Mem> = arrays.collect();
    if arrays.iter().all(|a| arrays.iter().all(|b| a == b || !are_alike(k, *a, *b))) {
        return;
    }
    let interference = Interference::of(k, &|b, to| block(b, to));
    let private = |m: Mem| matches!(m, Mem::Private(_));
    let Some(all) = shared(k, &interference, &|_| true) else { return };
    if all.locals.is_empty() || is_race_free(&all) {
        *k = all;
    } else if let Some(own) = shared(k, &interference, &private) {
        *k = own;
    }
    drop_unused(k);
}

/// Returns the kernel in which arrays share memory, of those that `may` admits.
fn shared(k: &Kernel, interference: &Interference, may: &dyn Fn(Mem) -> bool) -> Option<Kernel> {
    // The array that each array shares, and those that share each.
    let mut homes: BTreeMap<Mem, Mem> = BTreeMap::new();
    let mut sharing: BTreeMap<Mem, Vec<Mem>> = BTreeMap::new();
    let mut changed: BTreeMap<*const Stmt, BTreeSet<Mem>> = BTreeMap::new();
    for d in interference.derived.iter().rev().filter(|d| may(d.array)) {
        let [a, b] = [d.array, d.from].map(|m| homes.get(&m).copied().unwrap_or(m));
        if a != b {
            let of = |m: Mem| sharing.get(&m).cloned().unwrap_or_else(|| vec![m]);
            let [x, y] = [of(a), of(b)];
            let apart = x.iter().all(|x| y.iter().all(|y| !interference.has(*x, *y)));
            if !apart || !are_alike(k, a, b) {
                continue;
            }
            homes.extend(x.iter().map(|m| (*m, b)));
            sharing.insert(b, [y, x].concat());
        }
        changed.entry(d.statement).or_default().insert(b);
    }
    if homes.is_empty() {
        return None;
    }
    let to = |m: Mem| homes.get(&m).copied().unwrap_or(m);
    let body = without_kept(&k.body, &block(&k.body, &to), &changed);
    Some(Kernel { body, ..k.clone() })
}

/// Returns the new block, which corresponds to the old one statement by statement, without stores of what is there already.
fn without_kept(old: &Block, new: &Block, changed: &BTreeMap<*const Stmt, BTreeSet<Mem>>) -> Block {
    let mut out = Block::new();
    for (before, s) in old.iter().zip(new) {
        let mut s = s.clone();
        for (inner, b) in before.blocks().into_iter().zip(s.blocks_mut()) {
            *b = without_kept(inner, b, changed);
        }
        let here = changed.get(&std::ptr::from_ref(before)).into_iter().flatten();
        out.extend(here.fold(vec![s], |b, m| {
            let update = Update::of(&b, *m, *m);
            update.without_kept(&update.by_side(&b))
        }));
    }
    out
}

/// Whether barriers can order all accesses of different work-items to an element.
fn is_race_free(k: &Kernel) -> bool {
    let mut k = k.clone();
    barrier::insert(&mut k, false);
    race::find(&k.body).is_none()
}

/// Removes the arrays of work-items that nothing reads or stores to.
fn drop_unused(k: &mut Kernel) {
    let mut used = BTreeSet::new();
    for s in &k.body {
        super::touched(s, &mut |m| {
            if let Mem::Private(a) = m {
                used.insert(*a);
            }
        });
    }
    let places: BTreeMap<usize, usize> = used.into_iter().zip(0..).collect();
    let to = |m: Mem| match m {
        Mem::Private(a) => Mem::Private(places.get(&a).copied().unwrap_or(a)),
        m => m,
    };
    k.body = block(&k.body, &to);
    k.privates = places.keys().map(|a| k.privates[*a].clone()).collect();
}

#[cfg(test)]
mod tests {
    use crate::calculus::size::SizeEnv;
    use crate::kernel::ir::Kernel;
    use crate::kernel::lower;
    use crate::kernel::lower::testing::{options, term};

    /// Returns the kernel of a function of the matrices of a batch.
    fn of_matrices(f: &str) -> Kernel {
        let term = term(&format!("{f} . u"), &[("u", "[64][20][20]f32")]);
        let mut program = lower(&term, &SizeEnv::default(), &options()).expect("lowers");
        assert_eq!(program.kernels.len(), 1);
        program.kernels.remove(0)
    }

    fn is_long(a: &crate::kernel::ir::MemArray) -> bool {
        a.len == 400
    }

    const ROW: &str = "scatter . fork fst (fork (replicate 1 . fst . snd) \
                       (replicate 1 . mapSeq (-) . zip . fork (index . bimap id fst) (index . bimap id snd)))";

    #[test]
    fn a_loop_in_a_loop_changes_its_state() {
        let inner = format!(
            "foldSeq (cond ((\\(a, b) -> b > a) . snd) ({ROW}) fst) . bimap id (distl . fork id (iota 20 i32))"
        );
        let kernel = of_matrices(&format!("mapGlb 0 (foldSeq ({inner}) . fork id (iota 20 i32))"));
        assert_eq!(kernel.privates.iter().filter(|a| is_long(a)).count(), 1, "{:?}", kernel.body);
    }

    #[test]
    fn what_is_needed_later_is_copied() {
        let step = ROW
            .replace("fst . snd", "snd")
            .replace("bimap id fst", "id")
            .replace("bimap id snd", "id");
        let changed = format!("foldSeq ({step}) . fork id (iota 20 i32)");
        let both = format!("mapSeq (mapSeq (+) . zip) . zip . fork ({changed}) id . {changed}");
        let kernel = of_matrices(&format!("mapGlb 0 ({both})"));
        assert_eq!(kernel.privates.iter().filter(|a| is_long(a)).count(), 2, "{:?}", kernel.body);
    }

    #[test]
    fn a_row_and_then_a_column_change_in_the_memory_of_a_group() {
        let places =
            "mapLcl 0 (\\(a, b) -> b * 20i64 + i64.i32 a) . distl . fork fst (iota 20 i64)";
        let column = "mapLcl 0 (\\x -> x * 0.5) . index . fork (transpose . snd) fst";
        let row = "scatter . fork fst (fork (replicate 1 . snd) (replicate 1 . mapLcl 0 (\\x -> x * 2.0) . index))";
        let step = format!(
            "split 20 . scatter . fork (join . snd) (fork ({places}) ({column})) . fork snd ({row})"
        );
        let kernel = of_matrices(&format!("mapWrg 0 (foldSeq ({step}) . fork id (iota 20 i32))"));
        assert_eq!(kernel.locals.iter().filter(|a| is_long(a)).count(), 1, "{:?}", kernel.body);
    }
}
