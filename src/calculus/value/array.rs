//! Views of flat buffers of numbers, and the builder that fills them.
//!
//! An [`Array`] is one component of a value: a buffer, an offset and a stride for each dimension, so
//! that splitting, transposing, sliding, replicating and the like cost nothing. Never knows of
//! tuples, nor what its trailing dimensions mean.

use super::number::Cell;
use crate::lang::types::ScalarType;
use std::sync::Arc;

/// A flat buffer: the bits of each [`Cell`], and magnitudes only where one differs from `|x|`.
#[derive(Debug)]
struct Buffer {
    bits: Vec<u64>,
    mags: Option<Vec<f64>>,
}

/// One dimension of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Dim {
    len: usize,
    /// From one element to the next, in elements; 0 repeats.
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

/// The most elements of one component: what is longer has no place in memory.
const MOST: usize = 1 << 32;

/// The product of lengths, if so many elements can be held.
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
        let bits = self.buffer.bits[i];
        match &self.buffer.mags {
            Some(mags) => Cell { bits, mag: mags[i] },
            None => Cell::stored(self.ty, bits),
        }
    }

    /// Element `i` of an array with one dimension; `i` is below [`Array::len`].
    #[inline]
    pub fn cell(&self, i: usize) -> Cell {
        let stride = self.dims.first().map_or(0, |d| d.stride);
        self.at(self.offset + signed(i) * stride)
    }

    /// The element at an index for each dimension; `None` outside.
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

    /// Row `i`, the outermost dimension gone. Of an array with one dimension the result has none
    /// left: use [`Array::cell`].
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

    /// The outermost dimension replaced by `new`.
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
            // Of one chunk the stride does not matter.
            stride: stride.wrapping_mul(signed(k)),
        };
        self.outer(0, &[outer, Dim { len: k, stride }])
    }

    /// `[m][k]a -> [m*k]a`; copies where the rows do not follow each other.
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

    /// The first two dimensions exchanged.
    pub(super) fn transpose(&self) -> Array {
        let mut dims = self.dims.clone();
        if dims.len() >= 2 {
            dims.swap(0, 1);
        }
        self.with(self.offset, dims)
    }

    /// Dimension `from` (as counted before) becomes dimension `to` (as counted after).
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

    /// From the last to the first.
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
            // Of one window the step does not matter.
            stride: stride.wrapping_mul(signed(s)),
        };
        self.outer(0, &[outer, Dim { len: w, stride }])
    }

    /// `n` times the whole.
    pub(super) fn replicate(&self, n: usize) -> Array {
        let new = Dim { len: n, stride: 0 };
        self.with(self.offset, [&[new], &self.dims[..]].concat())
    }

    /// The second dimension becomes the first, `n` times each: `[m]a -> [m][n]a`.
    pub(super) fn replicate_inside(&self, n: usize) -> Array {
        self.replicate(n).transpose()
    }

    /// The chosen indices of each leading dimension, all of the others, in a copy.
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

    /// A contiguous copy.
    fn compact(&self) -> Array {
        let mut column = Column::new(self.ty, self.count());
        self.for_each(&mut |c| column.push(c));
        column.finish(&self.shape())
    }
}

/// A growing contiguous component.
#[derive(Debug)]
pub struct Column {
    ty: ScalarType,
    bits: Vec<u64>,
    mags: Option<Vec<f64>>,
}

impl Column {
    /// An empty column with room for `count` elements.
    pub fn new(ty: ScalarType, count: usize) -> Column {
        Column { ty, bits: Vec::with_capacity(count), mags: None }
    }

    /// Elements whose magnitudes are their absolute values.
    pub(super) fn plain(ty: ScalarType, bits: Vec<u64>) -> Column {
        Column { ty, bits, mags: None }
    }

    /// Appends.
    #[inline]
    pub fn push(&mut self, c: Cell) {
        if let Some(mags) = &mut self.mags {
            mags.push(c.mag);
        } else if self.ty.is_float() {
            let plain = c.as_float().abs();
            // A NaN's magnitude tells nothing that its value does not.
            if c.mag != plain && !plain.is_nan() {
                let mut mags = Vec::with_capacity(self.bits.capacity());
                mags.extend(self.bits.iter().map(|b| f64::from_bits(*b).abs()));
                mags.push(c.mag);
                self.mags = Some(mags);
            }
        }
        self.bits.push(c.bits);
    }

    /// Appends all of another column of the same type.
    pub fn append(&mut self, more: Column) {
        let plain =
            |bits: &[u64]| -> Vec<f64> { bits.iter().map(|b| f64::from_bits(*b).abs()).collect() };
        match (&mut self.mags, more.mags) {
            (None, None) => {}
            (Some(mags), None) => mags.extend(plain(&more.bits)),
            (mine, Some(mags)) => mine.get_or_insert_with(|| plain(&self.bits)).extend(mags),
        }
        self.bits.extend(more.bits);
    }

    /// Appends every element of `a`.
    pub fn extend(&mut self, a: &Array) {
        a.for_each(&mut |c| self.push(c));
    }

    /// The array of these dimensions, whose product is the number of elements pushed.
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
            buffer: Arc::new(Buffer { bits: self.bits, mags: self.mags }),
        }
    }
}
