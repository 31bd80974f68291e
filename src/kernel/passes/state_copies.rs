//! Copies that a step of a loop of the host makes of the state, and from the value that becomes the next state. Once they are
//! gone, the state is updated in place ([`in_place`](super::in_place)).

use super::forward_copies::{buffers, copied, names};
use super::in_place::{Launch, enclosing, in_place, launches, merged, with_late_stores};
use super::memory_reuse::block;
use crate::kernel::ir::{BufferRole, Control, Mem, Program};

/// Gives one buffer to each part of a loop's state that its steps can update in place.
pub fn states(p: &mut Program) {
    let mut at = 0;
    while at < p.control.len() {
        match p.control[at] {
            Control::Swap(_, new) => {
                at -= without_temporary(p, at, new);
                while let Some(next) = without_copy(p, at) {
                    *p = next;
                    at -= 1;
                }
                let here = |p: &Program| in_place(p, at, new);
                match here(p).or_else(|| here(&with_late_stores(p, at, new)?)) {
                    Some(next) => {
                        *p = next;
                        at = 0;
                    }
                    None => at += 1,
                }
            }
            _ => at += 1,
        }
    }
}

/// If a step computes the new state in a temporary, which it reads, and then copies it, the new state takes the place of that
/// temporary. The temporary may be longer, for a tile at the end; the buffers of the state then are, too. Returns how many kernels
/// are gone.
fn without_temporary(p: &mut Program, at: usize, new: usize) -> usize {
    let Some((first, _)) = enclosing(p, at) else { return 0 };
    let step = launches(&p.control[first + 1..at]);
    let Control::Swap(old, _) = p.control[at] else { return 0 };
    let may_grow = [old, new]
        .iter()
        .all(|b| p.buffers[*b].role == BufferRole::Temp && names(&p.control, *b) == 1);
    let whole = |k: usize| {
        let (from, to) = copied(&p.kernels[k])?;
        let [a, b] = [from, to].map(|b| &p.buffers[b]);
        let room = a.array.len <= b.array.len || may_grow;
        let alike = a.array.scalar == b.array.scalar && room && a.array.len >= b.array.len;
        let temporary = a.role == BufferRole::Temp && names(&p.control, from) == 0;
        (to == new && alike && temporary).then_some(from)
    };
    let found = step.iter().enumerate().find_map(|(i, l)| Some((i, l.kernel, whole(l.kernel)?)));
    let Some((place, copy, from)) = found else { return 0 };
    let (before, after) = (&step[..place], &step[place + 1..]);
    let in_step = |k: usize| step.iter().any(|l| l.kernel == k);
    let touches = |k: usize, b: usize| buffers(&p.kernels[k], false).contains(&b);
    let stores = |k: usize, b: usize| buffers(&p.kernels[k], true).contains(&b);
    let keeps = |l: &Launch| !stores(l.kernel, from) && !stores(l.kernel, new);
    let free = step.iter().all(|l| l.inner.is_none())
        && before.iter().all(|l| !touches(l.kernel, new))
        && (after.iter().all(|l| !touches(l.kernel, from)) || after.iter().all(keeps))
        && (0..p.kernels.len()).all(|k| in_step(k) || !touches(k, from));
    if !free {
        return 0;
    }
    p.remove_kernel(copy);
    let len = p.buffers[from].array.len;
    [old, new].iter().for_each(|b| p.buffers[*b].array.len = len);
    let place = |m: Mem| if m == Mem::Global(from) { Mem::Global(new) } else { m };
    p.kernels.iter_mut().for_each(|k| k.body = block(&k.body, &place));
    1
}

/// If a step copies an array and changes the copy, but does not need what changes in the original any more, returns the
/// program in which it changes the original. `at` is the position of the end of the step.
fn without_copy(p: &Program, at: usize) -> Option<Program> {
    let (first, counters) = enclosing(p, at)?;
    let step = launches(&p.control[first + 1..at]);
    step.iter().enumerate().filter(|(_, l)| l.inner.is_none()).find_map(|(place, copy)| {
        let (from, to) = copied(&p.kernels[copy.kernel])?;
        let (before, after) = (&step[..place], &step[place + 1..]);
        let touches = |k: usize, b: usize, stored| buffers(&p.kernels[k], stored).contains(&b);
        let [a, b] = [from, to].map(|b| &p.buffers[b]);
        let alike = a.array.scalar == b.array.scalar && a.array.len == b.array.len;
        let temporary = [a, b].iter().all(|b| b.role == BufferRole::Temp);
        let in_step = |k: usize| step.iter().any(|l| l.kernel == k);
        let outside = |b: usize| (0..p.kernels.len()).any(|k| !in_step(k) && touches(k, b, false));
        // The original is the old state, or a temporary of this step.
        let is_state = |c: &Control| matches!(c, Control::Swap(old, _) if *old == from);
        let ends = |c: &Control| matches!(c, Control::End);
        let end = at + p.control[at..].iter().position(ends)?;
        let passing = match names(&p.control, from) {
            0 => !outside(from),
            1 => p.control[at..end].iter().any(is_state),
            _ => false,
        };
        let only_copy = names(&p.control, to) == 0
            && !outside(to)
            && !before.iter().any(|l| touches(l.kernel, to, false));
        let changes = |l: &Launch| touches(l.kernel, to, true);
        let disturbs =
            |l: &Launch| touches(l.kernel, from, true) || changes(l) && l.inner.is_some();
        let ordered = !after.iter().any(disturbs);
        if !(alike && temporary && passing && only_copy && ordered) {
            return None;
        }
        let mut next = merged(p, after, (from, to), &counters)?;
        next.remove_kernel(copy.kernel);
        Some(next)
    })
}

#[cfg(test)]
mod tests {
    use crate::calculus::size::SizeEnv;
    use crate::kernel::ir::Control;
    use crate::kernel::lower;
    use crate::kernel::lower::testing::{options, term};

    #[test]
    fn a_new_state_that_the_step_reads_is_not_copied() {
        // A step computes tiles of 32 elements, and then compares the new state with the old one.
        let next = "take 100 . join . mapWrg 0 (mapLcl 0 (reduceUnroll (||) false)) . split 32 . \
                    padLast 128 . slide 3 1 100 . padConstant 1 102 false";
        let changed = "the . mapWrg 0 (reduceLcl 16 (||) false (!=)) . wrap . zip";
        let step = format!("fork snd ({changed}) . fork id ({next}) . fst . fst");
        let text = format!("foldSeq ({step}) . fork (fork x true) (iota 100 i32)");
        let term = term(&text, &[("x", "[100]bool")]);
        let program = lower(&term, &SizeEnv::default(), &options()).expect("lowers");
        let begin = |c: &Control| matches!(c, Control::Repeat(..));
        let first = program.control.iter().position(begin).expect("a loop");
        let step = program.control[first..].iter().take_while(|c| **c != Control::End);
        assert_eq!(step.filter(|c| matches!(c, Control::Launch(_))).count(), 2, "{program}");
    }
}
