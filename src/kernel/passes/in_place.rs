//! Loops of the host that update their state in place.
//!
//! Lowering gives the state of a loop two buffers: each step reads the one and writes the other, and then the host exchanges
//! them. Where no step reads an old element after it stored the new one, one buffer is enough, and what a step leaves as it
//! is need not be stored. So a step costs as much as what it changes, not as much as the whole array.

use super::forward_copies::{buffers, names};
use super::memory_reuse::block;
use super::{barrier, guards};
use crate::kernel::analysis::overwrite::Touched;
use crate::kernel::analysis::race;
use crate::kernel::analysis::unchanged::Update;
use crate::kernel::ir::{Block, BufferRole, Control, Kernel, Mem, Program, Stmt};
use std::collections::BTreeSet;

/// A launch in the step of a loop.
pub(super) struct Launch {
    pub kernel: usize,
    /// The outermost loop inside of the step that contains the launch, by its position.
    pub inner: Option<usize>,
}

/// Returns the program in which `new` takes the place of the old value that is not needed after the exchange at this step of the
/// host.
pub(super) fn in_place(p: &Program, at: usize, new: usize) -> Option<Program> {
    let (first, counters) = enclosing(p, at)?;
    let old = overwritten(&p.control[..=at])?;
    let launches = launches(&p.control[first + 1..at]);
    let temporary = |b: usize| p.buffers[b].role == BufferRole::Temp;
    let outside = |k: &usize| launches.iter().all(|l| l.kernel != *k);
    let uses = |k: usize| buffers(&p.kernels[k], false).contains(&new);
    let used_outside = (0..p.kernels.len()).filter(outside).any(uses);
    if !temporary(old) || !temporary(new) || used_outside || names(&p.control, new) > 1 {
        return None;
    }
    // What the step stores to the old value, as to a copy of it, comes before the new value.
    let storing = |b: usize| {
        let stores = move |l: &Launch| buffers(&p.kernels[l.kernel], true).contains(&b);
        launches.iter().enumerate().filter(move |(_, l)| stores(l))
    };
    let last = storing(old).next_back();
    if let Some((last, _)) = last
        && storing(new).any(|(i, l)| i <= last || l.inner.is_some())
    {
        return None;
    }
    let mut next = merged(p, &launches, (old, new), &counters)?;
    next.control.remove(at);
    let mut done: Vec<usize> =
        launches.iter().map(|l| l.kernel).filter(|k| is_idle(&next.kernels[*k].body)).collect();
    done.sort_unstable();
    done.into_iter().rev().for_each(|k| next.remove_kernel(k));
    Some(next)
}

/// Returns the buffer whose old value is not needed after the last of these exchanges: its own, or, where the step passes parts
/// of the state on, that of the last part of the chain.
fn overwritten(control: &[Control]) -> Option<usize> {
    let (last, before) = control.split_last()?;
    match (last, before.last()) {
        (Control::Swap(old, _), Some(Control::Swap(_, passed))) if passed == old => {
            overwritten(before)
        }
        (Control::Swap(old, _), _) => Some(*old),
        _ => None,
    }
}

/// Returns the program in which these kernels of a step, in their order, store to `old` instead of `new`, without the stores
/// of what is there; `None` if one of them would read an element of `old` that was overwritten.
pub(super) fn merged(
    p: &Program,
    launches: &[Launch],
    (old, new): (usize, usize),
    counters: &BTreeSet<u32>,
) -> Option<Program> {
    let [from, to] = [old, new].map(Mem::Global);
    let launches: Vec<(&Launch, BTreeSet<usize>)> = launches
        .iter()
        .map(|l| (l, buffers(&p.kernels[l.kernel], false)))
        .filter(|(_, used)| used.contains(&old) || used.contains(&new))
        .collect();
    let bodies: Vec<(Update, Block)> = launches
        .iter()
        .map(|(l, _)| {
            let update = Update::of(&p.kernels[l.kernel].body, from, to);
            let body = update.by_side(&p.kernels[l.kernel].body);
            (update, body)
        })
        .collect();
    let found: Vec<Touched> = bodies
        .iter()
        .zip(&launches)
        .map(|((update, body), (launch, _))| {
            let alone = p.kernels[launch.kernel].global == [1; 3];
            Touched::of(body, (from, to), alone, &|i, e| update.keeps(i, e))
        })
        .collect();
    for (i, earlier) in found.iter().enumerate().filter(|(_, t)| t.stores()) {
        for (j, later) in found.iter().enumerate() {
            let [a, b] = [i, j].map(|k| launches[k].0.inner);
            let again = a.is_some() && a == b;
            let follows = j > i || again;
            let survives = !follows || later.survives(earlier, counters);
            if !survives || i == j && !earlier.may_overwrite(counters) {
                return None;
            }
        }
    }
    let mut next = p.clone();
    for ((launch, used), (update, body)) in launches.iter().zip(&bodies) {
        let kernel = &mut next.kernels[launch.kernel];
        // Only where two buffers become one may work-items meet that did not meet before.
        if !used.contains(&new) {
            continue;
        }
        let body = update.without_kept(body);
        let changed = body != kernel.body;
        kernel.body = block(&body, &|m| if m == to { from } else { m });
        if changed {
            guards::resolve(kernel);
        }
        if used.contains(&old) && !is_race_free(kernel) {
            return None;
        }
    }
    Some(next)
}

/// Returns the program with the kernels that store to a buffer as late in their step as what they read and store allows;
/// `None` if they are already. `at` is the position of the end of the step.
pub(super) fn with_late_stores(p: &Program, at: usize, buffer: usize) -> Option<Program> {
    let (first, _) = enclosing(p, at)?;
    let mut p = p.clone();
    let mut moved = false;
    let late = |p: &Program, k: usize| buffers(&p.kernels[k], true).contains(&buffer);
    for from in (first + 1..at).rev() {
        let Control::Launch(k) = p.control[from] else { continue };
        if !late(&p, k) {
            continue;
        }
        for to in from + 1..at {
            match p.control[to] {
                Control::Launch(next) if are_independent(&p.kernels[k], &p.kernels[next]) => {
                    p.control.swap(to - 1, to);
                    moved = true;
                }
                _ => break,
            }
        }
    }
    if !moved {
        return None;
    }
    // Kernels have the order in which they run.
    let mut kernels = vec![];
    for c in &mut p.control {
        if let Control::Launch(k) = c {
            kernels.push(p.kernels[*k].clone());
            *k = kernels.len() - 1;
        }
    }
    p.kernels = kernels;
    Some(p)
}

/// Whether two kernels may run in either order.
fn are_independent(a: &Kernel, b: &Kernel) -> bool {
    let apart = |a, b| buffers(a, true).is_disjoint(&buffers(b, false));
    apart(a, b) && apart(b, a)
}

/// Returns where the innermost loop around a step of the host begins, and the counters that do not change within one
/// of its iterations.
pub(super) fn enclosing(p: &Program, at: usize) -> Option<(usize, BTreeSet<u32>)> {
    let mut open = vec![];
    for (k, c) in p.control[..at].iter().enumerate() {
        match c {
            Control::Repeat(_, counter) => open.push((k, Some(counter.id))),
            Control::While => open.push((k, None)),
            Control::End => {
                open.pop();
            }
            Control::Launch(_) | Control::Check(_) | Control::Swap(..) | Control::Together(_) => {}
        }
    }
    let first = open.last()?.0;
    Some((first, open.into_iter().filter_map(|(_, id)| id).collect()))
}

pub(super) fn launches(step: &[Control]) -> Vec<Launch> {
    let (mut found, mut open) = (vec![], vec![]);
    for (at, c) in step.iter().enumerate() {
        match c {
            Control::Launch(kernel) => {
                found.push(Launch { kernel: *kernel, inner: open.first().copied() });
            }
            Control::Repeat(..) | Control::While => open.push(at),
            Control::End => {
                open.pop();
            }
            Control::Check(_) | Control::Swap(..) | Control::Together(_) => {}
        }
    }
    found
}

/// Whether the verifier can show that no work-item needs what another one stores, with the barriers that the kernel is to
/// have.
fn is_race_free(k: &Kernel) -> bool {
    if race::across_groups(&k.body).is_some() {
        return false;
    }
    if k.group.iter().product::<usize>() == 1 || k.spreads_items() {
        return true;
    }
    let mut k = k.clone();
    barrier::insert(&mut k, false);
    race::find(&k.body).is_none()
}

/// Whether a kernel stores nothing and checks nothing.
fn is_idle(b: &Block) -> bool {
    let mut busy = false;
    for s in b {
        s.visit(&mut |s| {
            busy |= matches!(s, Stmt::Store(Mem::Global(_), ..) | Stmt::Atomic(..));
            s.exprs(&mut |e| busy |= e.has_check());
        });
    }
    !busy
}

#[cfg(test)]
mod tests {
    use crate::calculus::size::SizeEnv;
    use crate::kernel::ir::Control;
    use crate::kernel::lower;
    use crate::kernel::lower::testing::{options, term};

    const MATRIX: (&str, &str) = ("A", "[100][50]f32");
    const VECTOR: (&str, &str) = ("x", "[100]f32");

    /// Returns the numbers of launches in a loop of 100 steps and of exchanges at its end.
    fn step(op: &str, start: &str, inputs: &[(&str, &str)]) -> (usize, usize) {
        let text = format!("foldSeq ({op}) . fork ({start}) (iota 100 i32)");
        let program = lower(&term(&text, inputs), &SizeEnv::default(), &options()).expect("lowers");
        let begin = |c: &Control| matches!(c, Control::Repeat(..));
        let first = program.control.iter().position(begin).expect("a loop");
        let count = |f: fn(&Control) -> bool| {
            let step = program.control[first..].iter().take_while(|c| **c != Control::End);
            step.filter(|c| f(c)).count()
        };
        let launches = count(|c| matches!(c, Control::Launch(_)));
        (launches, count(|c| matches!(c, Control::Swap(..))))
    }

    #[test]
    fn elements_that_only_their_work_items_read() {
        assert_eq!(step("mapGlb 0 (\\x -> x + 1.0) . fst", "x", &[VECTOR]), (1, 0));
    }

    #[test]
    fn elements_that_others_read() {
        let op = "mapGlb 0 (+) . zip . fork id (rotate 1) . fst";
        assert_eq!(step(op, "x", &[VECTOR]), (1, 1));
        assert_eq!(step("mapGlb 0 id . reverse . fst", "x", &[VECTOR]), (1, 1));
    }

    #[test]
    fn a_row_is_computed_and_stored() {
        let row = "replicate 1 . mapGlb 0 (\\x -> x * 2.0) . index";
        let op = format!("scatter . fork fst (fork (replicate 1 . snd) ({row}))");
        // Each element is computed from itself, where it is stored.
        assert_eq!(step(&op, "A", &[MATRIX]), (1, 0));
        // A row that is reversed is copied first.
        let op = op.replace("index)", "reverse . index)");
        assert_eq!(step(&op, "A", &[MATRIX]), (2, 0));
    }

    #[test]
    fn what_a_choice_keeps_is_not_stored() {
        // Column 3 changes.
        let element = "(\\((k, i), x) -> if k == i then x + 1.0 else x)";
        let op = format!(
            "mapGlb 1 (mapGlb 0 {element} . zip . fork (distl . fork snd (iota 50 i32)) fst) . \
             distr . fork fst (3 . bang)"
        );
        assert_eq!(step(&op, "A", &[MATRIX]), (1, 0));
    }

    #[test]
    fn a_part_that_is_passed_on_is_not_copied() {
        let op = "fork (fst . fst) (mapGlb 0 (+) . zip . fork id (rotate 1) . snd . fst)";
        assert_eq!(step(op, "fork A x", &[MATRIX, VECTOR]), (1, 1));
    }

    #[test]
    fn stores_wait_for_those_who_read() {
        // The first part is updated before the second one reads it.
        let op = "fork (mapGlb 0 (\\x -> x + 1.0) . fst . fst) \
                  (mapGlb 0 (+) . zip . fork (rotate 1 . fst) snd . fst)";
        assert_eq!(step(op, "fork x x", &[VECTOR]), (2, 0));
    }

    /// A step that subtracts row `k` from the rows `i` for which a condition holds.
    fn without_row(condition: &str) -> String {
        let element = format!("(\\((i, k), (x, y)) -> if {condition} then x - y else x)");
        let row = "distl . fork (bimap fst fst) (zip . bimap snd snd)";
        let rows = "distr . fork (zip . fork (iota 100 i32) fst) (fork snd index)";
        format!("mapGlb 1 (mapGlb 0 {element} . {row}) . {rows}")
    }

    #[test]
    fn conditions_keep_rows_apart() {
        assert_eq!(step(&without_row("i > k"), "A", &[MATRIX]), (1, 0));
        assert_eq!(step(&without_row("k + 1 < i"), "A", &[MATRIX]), (1, 0));
        // Row `k` changes, too.
        assert_eq!(step(&without_row("i >= k"), "A", &[MATRIX]), (1, 1));
        // All rows but this one change.
        assert_eq!(step(&without_row("i < k || k < i"), "A", &[MATRIX]), (1, 0));
    }

    #[test]
    fn a_copy_that_a_step_changes_is_the_state() {
        let row = "replicate 1 . mapGlb 0 (\\x -> x * 2.0) . index";
        let changed = format!("scatter . fork fst (fork (replicate 1 . snd) ({row}))");
        let op = |rest: &str| format!("{rest} . fork ({changed}) snd");
        assert_eq!(step(&op(&without_row("i > k")), "A", &[MATRIX]), (2, 0));
        assert_eq!(step(&op(&without_row("i >= k")), "A", &[MATRIX]), (2, 1));
        // What changes is needed as it was: the copy stays.
        let both = "mapGlb 1 (mapGlb 0 (+) . zip) . zip . fork (reverse . fst) snd . fst";
        let op = format!("{both} . fork (fork ({changed}) fst) snd");
        assert_eq!(step(&op, "A", &[MATRIX]), (3, 0));
    }

    #[test]
    fn parts_that_change_places_are_not_copied() {
        let op = "fork (mapGlb 0 (\\x -> x + 1.0) . snd) fst . fst";
        assert_eq!(step(op, "fork x x", &[VECTOR]), (1, 1));
        let op = "fork (mapGlb 0 id . snd) (mapGlb 0 id . fst) . fst";
        assert_eq!(step(op, "fork x x", &[VECTOR]), (0, 1));
        // The new value takes the place of the first part, which is read where it is stored.
        let op = "fork snd (mapGlb 0 (+) . zip . bimap id (rotate 1)) . fst";
        assert_eq!(step(op, "fork x x", &[VECTOR]), (1, 1));
        // Others read what would be overwritten.
        let op = "fork snd (mapGlb 0 (+) . zip . bimap (rotate 1) id) . fst";
        assert_eq!(step(op, "fork x x", &[VECTOR]), (1, 2));
        // Two parts get the same array: one is a copy.
        let op = "fork (mapGlb 0 id . snd) (mapGlb 0 id . snd) . fst";
        assert_eq!(step(op, "fork x x", &[VECTOR]).0, 1);
    }
}
