//! Temporaries whose layout follows the work-items.
//!
//! If each work-item computes a short row, such as the populations of a cell of a lattice, the elements of a temporary that
//! neighbouring work-items access at the same time lie a row apart, so that each access moves a whole sector of memory for
//! one element. No one but the kernels sees a temporary: with the elements of all rows at the same place beside each other, the accesses of
//! neighbours are neighbours.

use super::forward_copies::names;
use crate::kernel::ir::index::{Index, Var};
use crate::kernel::ir::walk::{rebuild, rebuilt};
use crate::kernel::ir::{Block, BufferRole, Expr, LoopKind, Mem, MemArray, Program, Stmt};
use std::collections::BTreeMap;

/// Fewest rows of a temporary that is turned: fewer do not fill the work-items of a device.
const ROWS: i64 = 1024;

/// Longest rows that are turned, in bytes: a line of a cache. Work-items go through longer rows step by step, with accesses of vectors.
const LINE: usize = 128;

/// Rows of at most so many bytes, in whole pairs of scalars, are accessed by one or two vectors, which move no more than they need.
const VECTORS: usize = 32;

/// Turns the temporaries that work-items access row by row.
pub fn of_temporaries(p: &mut Program) {
    let free = |b: &usize| p.buffers[*b].role == BufferRole::Temp && names(&p.control, *b) == 0;
    let mut all: Accesses = (0..p.buffers.len()).filter(free).map(|b| (b, vec![])).collect();
    for (k, kernel) in p.kernels.iter().enumerate() {
        accesses(&kernel.body, k, &mut (None, vec![]), &mut all);
    }
    for (b, all) in all {
        if let Some(length) = row(&p.buffers[b].array, &all) {
            let rows = i64::try_from(p.buffers[b].array.len).unwrap_or(0) / length;
            let turned = |i: &Index| {
                let (row, place) = i.div_mod(length);
                (Mem::Global(b), place.times(rows).add(&row))
            };
            p.kernels.iter_mut().for_each(|k| place(&mut k.body, Mem::Global(b), &turned));
        }
    }
}

/// The accesses to each temporary that the host does not name. Of an atomic one, the width is 0.
type Accesses = BTreeMap<usize, Vec<Access>>;

/// An access to a temporary.
struct Access {
    kernel: usize,
    index: Index,
    width: usize,
    /// The number of the work-item in the innermost parallel loop around the access.
    item: Option<u32>,
    /// The counters of the sequential loops around it.
    counters: Vec<u32>,
}

/// Returns the length of the rows of a temporary that is to be turned.
fn row(array: &MemArray, all: &[Access]) -> Option<i64> {
    let distance = |a: &Access| Some(a.index.linear_in(a.item?)?.0.abs());
    let mut distances = all.iter().filter_map(distance).filter(|d| *d != 0);
    let length = distances.next().filter(|d| *d > 1 && distances.all(|other| other == *d))?;
    let len = i64::try_from(array.len).ok()?;
    let bytes = usize::try_from(length).ok()?.saturating_mul(array.scalar.bytes());
    let vectors = bytes <= VECTORS && bytes % (2 * array.scalar.bytes()) == 0;
    let fits = bytes <= LINE && len % length == 0 && len / length >= ROWS && !vectors;
    (fits && all.iter().all(|a| a.width == 1 && splits(a, length)) && !gathers_rows(all, length))
        .then_some(length)
}

/// Whether an index is one of a row and a place in it, without divisions that it does not have already.
fn splits(a: &Access, length: i64) -> bool {
    let (row, place) = a.index.div_mod(length);
    a.index.has_division() || !row.has_division() && !place.has_division()
}

/// Whether a work-item reads several elements of a row that data decide: they are better beside each other.
fn gathers_rows(all: &[Access], length: i64) -> bool {
    let mut seen: Vec<(usize, Index, Index)> = vec![];
    for a in all.iter().filter(|a| a.index.has_data()) {
        let (row, place) = a.index.div_mod(length);
        let walks = a.counters.iter().any(|c| place.mentions(*c) && !row.mentions(*c));
        let meets = |(k, r, e): &(usize, Index, Index)| *k == a.kernel && *r == row && *e != place;
        if walks || seen.iter().any(meets) {
            return true;
        }
        seen.push((a.kernel, row, place));
    }
    false
}

/// Collects the accesses to these temporaries. `around` has the work-item and the counters.
fn accesses(
    block: &Block,
    kernel: usize,
    around: &mut (Option<u32>, Vec<u32>),
    out: &mut Accesses,
) {
    for s in block {
        let mut access = |m: &Mem, index: &Index, width: usize| {
            let Mem::Global(b) = m else { return };
            let Some(found) = out.get_mut(b) else { return };
            let (index, item, counters) = (index.clone(), around.0, around.1.clone());
            found.push(Access { kernel, index, width, item, counters });
        };
        match s {
            Stmt::Atomic(_, m, i, _) => access(m, i, 0),
            Stmt::Store(m, i, e) => access(m, i, e.ty().width),
            _ => {}
        }
        s.exprs(&mut |e| {
            e.visit(&mut |e| {
                if let Expr::Load(m, t, i) = e {
                    access(m, i, t.width);
                }
            });
        });
        let (item, counters) = (around.0, around.1.len());
        match s {
            Stmt::Loop {
                kind: LoopKind::Glb(0) | LoopKind::Lcl(0) | LoopKind::Lane, var, ..
            } => {
                around.0 = Some(var.id);
            }
            Stmt::Loop { kind: LoopKind::Seq, var: Var { id, .. }, .. } => around.1.push(*id),
            _ => {}
        }
        s.blocks().into_iter().for_each(|b| accesses(b, kernel, around, out));
        around.0 = item;
        around.1.truncate(counters);
    }
}

/// Moves every access to a memory to the memory and the place that `to` gives for its index.
pub(super) fn place(block: &mut Block, of: Mem, to: &dyn Fn(&Index) -> (Mem, Index)) {
    fn moved(e: &Expr, of: Mem, to: &dyn Fn(&Index) -> (Mem, Index)) -> Expr {
        match rebuilt(e, &mut |e, _| moved(e, of, to)) {
            Expr::Load(m, t, i) if m == of => {
                let (m, i) = to(&i);
                Expr::Load(m, t, i)
            }
            e => e,
        }
    }
    for s in block {
        rebuild(s, &mut |e| moved(e, of, to));
        if let Stmt::Store(m, i, _) = s
            && *m == of
        {
            (*m, *i) = to(i);
        }
        s.blocks_mut().into_iter().for_each(|b| place(b, of, to));
    }
}

#[cfg(test)]
mod tests {
    use crate::calculus::size::SizeEnv;
    use crate::kernel::lower;
    use crate::kernel::lower::testing::{options, term};
    use crate::kernel::options::DeviceLimits;

    /// The code of two kernels: one stores three elements in each work-item, one reads them as `then` says.
    fn code(then: &str, access_bytes: usize) -> String {
        let makes = "mapGlb 0 (mapSeq (\\x -> x * 0.5) . replicate 3)";
        let text = format!("{then} . {makes} . X");
        let term = term(&text, &[("X", "[4000]f32"), ("I", "[4000]i32")]);
        let mut options = options();
        options.device = DeviceLimits { access_bytes, ..options.device };
        let program = lower(&term, &SizeEnv::default(), &options).expect("lowers");
        program.kernels.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn rows_of_work_items_are_turned() {
        let sums = "mapGlb 0 (reduceSeq (+) 0.0)";
        assert!(code(sums, 16).contains("global2[i0 + 4000 * "), "{}", code(sums, 16));
        assert!(code(sums, 0).contains("global2[3 * i0 + "), "{}", code(sums, 0));
    }

    #[test]
    fn rows_that_neighbours_share_stay() {
        // Neighbouring work-items read neighbouring elements of a row.
        let flat = "mapGlb 0 (\\x -> x + 1.0) . join";
        assert!(code(flat, 16).contains("global2[i0]"), "{}", code(flat, 16));
        // Each work-item reads a row that data decide.
        let rows = "mapGlb 0 (reduceSeq (+) 0.0 . index) . distl . fork id I";
        assert!(!code(rows, 16).contains("4000 * "), "{}", code(rows, 16));
    }
}
