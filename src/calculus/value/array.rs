//! Views of flat buffers of numbers, and the builder that fills buffers.
//!
//! An [`Array`] is one component of a value: a buffer, an offset, and a stride for each dimension, so that
//! splitting, transposing, sliding, replicating and the like cost nothing. It knows nothing of tuples, nor
//! what its trailing dimensions mean.

use super::cell::Cell;
use crate::lang::types::ScalarType;
use std::sync::Arc;

/// A flat buffer: the bits of each [`Cell`], and a bound on its error.
#[derive(Debug)]
struct Buffer {
    bits: Vec<u64>,
    doubts: Doubts,
}

/// The error bounds of numbers, stored one by one only if the values do not determine them.
#[derive(Debug)]
enum Doubts {
    /// Elements as in inputs: [`Cell::stored`].
    Stored,
    /// Results whose magnitudes are their absolute values: [`Cell::rounded`].
    Rounded,
    /// A bound for each element.
    Own(Vec<u64>),
}

impl Doubts {
    #[inline]
    fn cell(&self, ty: ScalarType, i: usize, bits: u64) -> Cell {
        match self {
            Doubts::Stored => Cell::stored(ty, bits),
            Doubts::Rounded => Cell::rounded(ty, bits),
            Doubts::Own(all) => Cell { bits, doubt: all[i] },
        }
    }

    /// Returns the bounds of all elements so far, one by one.
    fn each(self, ty: ScalarType, bits: &[u64], capacity: usize) -> Vec<u64> {
        if let Doubts::Own(all) = self {
            return all;
        }
        let mut all = Vec::with_capacity(capacity);
        all.extend(bits.iter().enumerate().map(|(i, b)| self.cell(ty, i, *b).doubt));
        all
    }
}

/// One dimension of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Dim {
    len: usize,
    /// The distance between neighbouring elements, in elements; 0 repeats one element.
    stride: isize,
}

/// A view of a buffer with one dimension or more. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Array {
    ty: ScalarType,
    dims: Vec<Dim>,
    offset: isize,
    buffer: Arc<Buffer>,
}

/// Most elements of one component; a longer one does not fit in memory.
const MOST: usize = 1 << 32;

/// Returns the product of lengths, if that many elements can be held.
pub(crate) fn room(lengths: &[usize]) -> Result<usize, String> {
    let zero = lengths.contains(&0);
    let count = lengths.iter().try_fold(1usize, |n, k| n.checked_mul(*k).filter(|n| *n <= MOST));
    if zero {
        Ok(0)
    } else {
        count.ok_or_else(|| format!("more elements ({lengths:?}) than the interpreter holds"))
    }
}

/// An index or length as a signed distance; no buffer is longer than that.
fn signed(n: usize) -> isize {
    isize::try_from(n).unwrap_or(isize::MAX)
}

impl Array {
    /// Element type.
    pub fn ty(&self) -> ScalarType {
        self.ty
    }

    /// Lengths, outermost first.
    pub fn shape(&self) -> Vec<usize> {
        self.dims.iter().map(|d| d.len).collect()
    }

    /// Length of the outermost dimension.
    pub fn len(&self) -> usize {
        self.dims.first().map_or(1, |d| d.len)
    }

    /// Whether the outermost dimension is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// Number of elements.
    pub fn count(&self) -> usize {
        self.dims.iter().fold(1, |n, d| n.saturating_mul(d.len))
    }

    fn at(&self, position: isize) -> Cell {
        let i = position.cast_unsigned();
        self.buffer.doubts.cell(self.ty, i, self.buffer.bits[i])
    }

    /// Returns element `i` of an array with one dimension; `i` must be below [`Array::len`].
    #[inline]
    pub fn cell(&self, i: usize) -> Cell {
        let stride = self.dims.first().map_or(0, |d| d.stride);
        self.at(self.offset + signed(i) * stride)
    }

    /// Returns the element at an index for each dimension; `None` if one is out of bounds.
    pub fn get(&self, index: impl IntoIterator<Item = i128>) -> Option<Cell> {
        let (mut position, mut rank) = (self.offset, 0);
        for i in index {
            let d = self.dims.get(rank)?;
            let i = usize::try_from(i).ok().filter(|i| *i < d.len)?;
            position += signed(i) * d.stride;
            rank += 1;
        }
        (rank == self.dims.len()).then(|| self.at(position))
    }

    /// Returns row `i`, without the outermost dimension. For an array with one dimension, the result would
    /// have none: use [`Array::cell`].
    #[must_use]
    pub fn row(&self, i: usize) -> Array {
        let stride = self.dims.first().map_or(0, |d| d.stride);
        Array {
            ty: self.ty,
            dims: self.dims.get(1..).unwrap_or_default().to_vec(),
            offset: self.offset + signed(i) * stride,
            buffer: self.buffer.clone(),
        }
    }

    /// Calls `f` on every element in row-major order.
    pub fn for_each(&self, f: &mut dyn FnMut(Cell)) {
        self.walk(&self.dims, self.offset, f);
    }

    fn walk(&self, dims: &[Dim], offset: isize, f: &mut dyn FnMut(Cell)) {
        match dims {
            [] => f(self.at(offset)),
            [last] => {
                for i in 0..signed(last.len) {
                    f(self.at(offset + i * last.stride));
                }
            }
            [first, rest @ ..] => {
                for i in 0..signed(first.len) {
                    self.walk(rest, offset + i * first.stride, f);
                }
            }
        }
    }

    fn with(&self, offset: isize, dims: Vec<Dim>) -> Array {
        Array { ty: self.ty, dims, offset, buffer: self.buffer.clone() }
    }

    /// Replaces the outermost dimension by `new`, starting at element `skip`.
    fn outer(&self, skip: usize, new: &[Dim]) -> Array {
        let (first, rest) = self
            .dims
            .split_first()
            .map_or((Dim { len: 1, stride: 0 }, &self.dims[..]), |(d, rest)| (*d, rest));
        let offset = self.offset + signed(skip) * first.stride;
        self.with(offset, [new, rest].concat())
    }

    fn stride(&self) -> isize {
        self.dims.first().map_or(0, |d| d.stride)
    }

    /// `[k*m]a -> [m][k]a`.
    pub(super) fn split(&self, k: usize, m: usize) -> Array {
        let stride = self.stride();
        let outer = Dim {
            len: m,
            // With a single chunk, the stride does not matter.
            stride: stride.wrapping_mul(signed(k)),
        };
        self.outer(0, &[outer, Dim { len: k, stride }])
    }

    /// `[m][k]a -> [m*k]a`; copies if the rows are not contiguous.
    pub(super) fn join(&self) -> Result<Array, String> {
        room(&self.shape())?;
        match self.dims.as_slice() {
            [a, b, rest @ ..] => {
                let merged = Dim { len: a.len * b.len, stride: b.stride };
                if a.stride == b.stride * signed(b.len) || a.len <= 1 {
                    Ok(self.with(self.offset, [&[merged], rest].concat()))
                } else {
                    self.compact().join()
                }
            }
            _ => Ok(self.clone()),
        }
    }

    /// Exchanges the first two dimensions.
    pub(super) fn transpose(&self) -> Array {
        let mut dims = self.dims.clone();
        if dims.len() >= 2 {
            dims.swap(0, 1);
        }
        self.with(self.offset, dims)
    }

    /// Moves dimension `from` (as counted before) to dimension `to` (as counted after).
    pub(super) fn move_axis(&self, from: usize, to: usize) -> Array {
        let mut dims = self.dims.clone();
        let dim = dims.remove(from);
        dims.insert(to, dim);
        self.with(self.offset, dims)
    }

    /// Elements `from`, `from + 1`, ... (`len` of them).
    pub(super) fn slice(&self, from: usize, len: usize) -> Array {
        let stride = self.stride();
        self.outer(from, &[Dim { len, stride }])
    }

    /// Reverses the order of the elements.
    pub(super) fn reverse(&self) -> Array {
        let len = self.len();
        let stride = -self.stride();
        self.outer(len.saturating_sub(1), &[Dim { len, stride }])
    }

    /// `m` windows of `w`, `s` apart.
    pub(super) fn slide(&self, w: usize, s: usize, m: usize) -> Array {
        let stride = self.stride();
        let outer = Dim {
            len: m,
            // With a single window, the step does not matter.
            stride: stride.wrapping_mul(signed(s)),
        };
        self.outer(0, &[outer, Dim { len: w, stride }])
    }

    /// Repeats the whole `n` times.
    pub(super) fn replicate(&self, n: usize) -> Array {
        let new = Dim { len: n, stride: 0 };
        self.with(self.offset, [&[new], &self.dims[..]].concat())
    }

    /// Repeats each row `n` times: `[m]a -> [m][n]a`.
    pub(super) fn replicate_inside(&self, n: usize) -> Array {
        self.replicate(n).transpose()
    }

    /// Copies the chosen indices of each leading dimension, and all of the others.
    pub(super) fn pick(&self, axes: &[Option<Arc<[usize]>>]) -> Result<Array, String> {
        if axes.len() > self.dims.len() {
            return Err(format!("{} dimensions where {} belong", self.dims.len(), axes.len()));
        }
        let mut shape = self.shape();
        for (n, at) in shape.iter_mut().zip(axes) {
            let Some(at) = at else { continue };
            if let Some(i) = at.iter().find(|i| **i >= *n) {
                return Err(format!("element {i} of an array of {n}"));
            }
            *n = at.len();
        }
        let mut column = Column::new(self.ty, room(&shape)?);
        self.walk_picked(axes, &self.dims, self.offset, &mut |c| column.push(c));
        Ok(column.finish(&shape))
    }

    fn walk_picked(
        &self,
        axes: &[Option<Arc<[usize]>>],
        dims: &[Dim],
        offset: isize,
        f: &mut dyn FnMut(Cell),
    ) {
        let (Some((axis, inner)), Some((dim, rest))) = (axes.split_first(), dims.split_first())
        else {
            return self.walk(dims, offset, f);
        };
        let mut go = |i: usize| self.walk_picked(inner, rest, offset + signed(i) * dim.stride, f);
        match axis {
            Some(at) => at.iter().for_each(|i| go(*i)),
            None => (0..dim.len).for_each(go),
        }
    }

    /// Returns a contiguous copy.
    fn compact(&self) -> Array {
        let mut column = Column::new(self.ty, self.count());
        self.for_each(&mut |c| column.push(c));
        column.finish(&self.shape())
    }
}

/// A contiguous component that is being built.
#[derive(Debug)]
pub struct Column {
    ty: ScalarType,
    bits: Vec<u64>,
    doubts: Doubts,
}

impl Column {
    /// An empty column with room for `count` elements.
    pub fn new(ty: ScalarType, count: usize) -> Column {
        Column { ty, bits: Vec::with_capacity(count), doubts: Doubts::Stored }
    }

    /// A column of elements as in inputs.
    pub(super) fn plain(ty: ScalarType, bits: Vec<u64>) -> Column {
        Column { ty, bits, doubts: Doubts::Stored }
    }

    /// Appends an element.
    #[inline]
    pub fn push(&mut self, c: Cell) {
        match &mut self.doubts {
            Doubts::Own(all) => all.push(c.doubt),
            some if some.cell(self.ty, 0, c.bits).doubt == c.doubt => {}
            _ => self.push_own(c),
        }
        self.bits.push(c.bits);
    }

    fn push_own(&mut self, c: Cell) {
        if self.bits.is_empty() && Cell::rounded(self.ty, c.bits).doubt == c.doubt {
            self.doubts = Doubts::Rounded;
        } else {
            let mut own = self.take_doubts(self.bits.capacity());
            own.push(c.doubt);
            self.doubts = Doubts::Own(own);
        }
    }

    fn take_doubts(&mut self, capacity: usize) -> Vec<u64> {
        let doubts = std::mem::replace(&mut self.doubts, Doubts::Stored);
        doubts.each(self.ty, &self.bits, capacity)
    }

    /// Appends all of another column of the same type.
    pub fn append(&mut self, more: Column) {
        if self.bits.is_empty() {
            *self = more;
            return;
        }
        let same = matches!(
            (&self.doubts, &more.doubts),
            (Doubts::Stored, Doubts::Stored) | (Doubts::Rounded, Doubts::Rounded)
        );
        if !same && !more.bits.is_empty() {
            let mut mine = self.take_doubts(self.bits.len() + more.bits.len());
            mine.extend(more.doubts.each(more.ty, &more.bits, more.bits.len()));
            self.doubts = Doubts::Own(mine);
        }
        self.bits.extend(more.bits);
    }

    /// Appends every element of `a`.
    pub fn extend(&mut self, a: &Array) {
        a.for_each(&mut |c| self.push(c));
    }

    /// Returns the array of these dimensions, whose product must be the number of elements pushed.
    pub fn finish(self, shape: &[usize]) -> Array {
        debug_assert_eq!(shape.iter().product::<usize>(), self.bits.len());
        let mut stride = 1;
        let mut dims: Vec<Dim> = shape
            .iter()
            .rev()
            .map(|&len| {
                let d = Dim { len, stride };
                stride *= signed(len);
                d
            })
            .collect();
        dims.reverse();
        Array {
            ty: self.ty,
            dims,
            offset: 0,
            buffer: Arc::new(Buffer { bits: self.bits, doubts: self.doubts }),
        }
    }
}
