//! The operators of terms, each described once.
//!
//! An operator is a variant of [`Op`], whose comment says what it computes, and an entry of the table in
//! `table`: its spelling, its type scheme, and whether it only rearranges. Type checking, type inference, the
//! parser and the printer read that entry. `calculus::eval` defines the meaning of each operator.

pub mod products;
mod scheme;
mod solve;
mod table;

pub use crate::lang::typed::ScanKind;
pub use solve::{Equality, Solution, TypeError, parts, signature};
pub use table::{Entry, Spelling};

use super::scalar::{Lit, ScalarFn};
use crate::lang::typed::PadMode;
use crate::lang::types::ScalarType;
use std::sync::Arc;
use table::Cost;

/// How the iterations of a map run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MapKind {
    /// Not decided; with a body that only rearranges, the map is a view.
    Plain,
    /// A loop in one work-item.
    Seq,
    /// An unrolled loop in one work-item.
    Unroll,
    /// Work-items of dimension 0, 1 or 2, outside any work-group.
    Glb(u8),
    /// Work-groups.
    Wrg(u8),
    /// Work-items of the enclosing work-group.
    Lcl(u8),
    /// Warps (sub-groups) of the enclosing work-group.
    Warp,
    /// Work-items of the enclosing warp.
    Lane,
}

/// How a reduction runs, and which laws its operator keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ReduceKind {
    /// Not decided; `op : (a, a) -> a` is associative with neutral element `z`.
    Assoc,
    /// As `Assoc`, with a commutative operator.
    Comm,
    /// A loop from the left in one work-item (or uniformly in a work-group); `op : (acc, a) -> acc`.
    Seq,
    /// As `Seq`, unrolled.
    Unroll,
}

/// The order of the parts of [`Op::Spread`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Shares {
    /// Row by row.
    Rows,
    /// In blocks of 4 by 8, the shape of a warp.
    Warps,
    /// In blocks of 8 by 4, as matrix instructions share a result out to the work-items of a warp.
    Fragments,
}

impl Shares {
    /// Returns the rows and columns of parts that a warp has; `None` for parts that are ordered row by row.
    pub fn block(self) -> Option<[u64; 2]> {
        match self {
            Shares::Rows => None,
            Shares::Warps => Some([4, 8]),
            Shares::Fragments => Some([8, 4]),
        }
    }
}

/// An address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Space {
    /// Device memory.
    Global,
    /// Device memory, written past the caches, for a result that is not read again soon.
    Stream,
    /// Memory of a work-group.
    Local,
    /// As [`Space::Local`], but twice, for a loop that copies a block in each step: the next block is loaded
    /// while this one is used (double buffering).
    LocalAhead,
    /// Registers of a work-item.
    Private,
}

/// The operators. The names of sizes and functions are those of the operator's type in the table.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Op {
    /// The argument.
    Id,
    /// `f` applied to the result of `g`. Printed `f . g`.
    Compose,
    /// The first component.
    Fst,
    /// The second component.
    Snd,
    /// The results of both functions on the same argument.
    Fork,
    /// The result of each function on its component.
    Bimap,
    /// The value `()`.
    Bang,
    /// The whole value of an entry's parameter.
    Input(Arc<str>),
    /// A constant.
    Lit(Lit),
    /// A size as a value.
    SizeValue(ScalarType),
    /// A scalar function.
    Scalar(Arc<ScalarFn>),
    /// `f` if `p` holds, else `g`; the other one is not evaluated.
    Cond,
    /// `f` applied to every element.
    Map(MapKind),
    /// All elements combined, starting from `z`.
    Reduce(ReduceKind),
    /// A reduction of the results of `f` by `t` work-items of a group, in any order; `op` is associative and
    /// commutative, with neutral element `z`.
    ReduceLcl,
    /// As [`Op::Reduce`], one result for each contiguous chunk of `k`.
    ReducePart,
    /// All prefixes combined, starting from `z`.
    Scan(ScanKind),
    /// A scan of the results of `f` by `t` work-items of a group, starting from the first component of its
    /// argument; `op` is associative, with neutral element `z`. Exclusive if true.
    ScanLcl(bool),
    /// Pairs of elements.
    Zip,
    /// The inverse of [`Op::Zip`].
    Unzip,
    /// Chunks of `k`.
    Split,
    /// The inverse of [`Op::Split`].
    Join,
    /// Rows become columns.
    Transpose,
    /// Every element paired with every element of the other array.
    Cross,
    /// The first component paired with every element of the second.
    Distl,
    /// Every element of the first component paired with the second.
    Distr,
    /// Chunks of `w` as vectors.
    AsVector,
    /// The inverse of [`Op::AsVector`].
    AsScalar,
    /// `f` applied to every lane by itself.
    Vectorize,
    /// A vector with the argument in every lane.
    Splat,
    /// As `f`, with the result in that space.
    ToMem(Space),
    /// As `f`, which rearranges and applies scalar functions; each element is computed where it is read, each time that it is read.
    OnRead,
    /// `y[j] = x[j / m + s * (j % m)]` (thesis, definition 5.11).
    Stride,
    /// Some permutation.
    Reorder,
    /// The elements, then `z`, up to length `r >= n`; for an empty array, `r` is 0.
    PadTo,
    /// The elements, then the last one again, up to length `r >= n`; for an empty array, `r` is 0.
    PadLast,
    /// As [`Op::PadLast`], with each element paired with whether it is one of the `n`.
    Mask,
    /// The first `k` elements.
    Take,
    /// The last `r` elements.
    Drop,
    /// Windows of `w` elements, each `s` further than the last; `m = (n - w) / s + 1`.
    Slide,
    /// `l` elements before the array, the rest after it. [`PadMode::Constant`] has an argument `z`.
    Pad(PadMode),
    /// The elements at these indices.
    Gather,
    /// The first array, with these elements stored at these indices.
    Scatter,
    /// For each of `m` bins, the combined elements with that index.
    Histogram,
    /// How many elements belong to each of `k` buckets, and the elements bucket by bucket, in their order within each.
    /// Numbers outside `0..k` stand for the first or the last bucket.
    CountingSort,
    /// 0, 1, ... of an integer type `S`.
    Iota,
    /// The argument, `n` times.
    Replicate,
    /// One array after the other; `r = n + m`.
    Concat,
    /// The last element first.
    Reverse,
    /// `y[i] = x[(i + k) % n]`
    Rotate,
    /// The element at that index.
    Index,
    /// The only element.
    The,
    /// An array of one element.
    Wrap,
    /// Short for
    /// `take n . join . h . split k . padLast r`, so that rules on chains do not take it apart.
    Chunked,
    /// Short for
    /// `take n . asScalar . h . asVector w . padLast r`.
    Packed,
    /// An initial value and elements combined from the left, in one work-item.
    Fold,
    /// `f` repeated while `p` holds. `E` is a value that both read and that does not change.
    While,
    /// Short for `h` on all pairs of tiles of `t` and `u`, with lengths rounded up to `r` and `q`. `pa` and
    /// `pb` apply to the arrays of tiles: identities that may copy them. If true (`tiledWith`), a matrix is
    /// cut into the same tiles and zipped to them.
    Tiled(bool),
    /// As [`Op::Tiled`], for rows alone.
    TiledRows,
    /// Short for `h` on all tiles of `t` by `u` of a matrix, with lengths rounded up to `r` and `q`. `h` turns each
    /// tile; the result has rows for the columns of the matrix.
    Turned,
    /// All pairs of rows are reduced together, `t` elements at a time, with `k` rounded up to `r`. `z` is the
    /// initial value of each result, `u` a step (its flag says whether an element is one of the `k`), `f` the
    /// end. `sa` and `sb` apply to the blocks: identities that may copy them. If true (`blockedWith`), the
    /// end reads another value too.
    Blocked(bool),
    /// As [`Op::Blocked`], where every `A` meets all `B`s.
    BlockedRows,
    /// A matrix shared out in parts of `t` by `u`, whose rows come in runs of `v` and columns in runs of `w`
    /// from all over the matrix.
    Spread(Shares),
    /// As [`Op::Spread`], for rows alone, one by one: part `i` has the rows `i`, `i + n/t`, `i + 2*n/t`, and
    /// so on.
    SpreadRows,
    /// For each element of a part of a matrix, a sum to which `k` products are added, each if its flag holds. What is
    /// multiplied is converted to the type of the sum first ([`Products`](products::Products) has the types). The work-items of a warp compute it together with matrix instructions: they have the parts that
    /// [`Shares::Fragments`] orders, and each loads some of the elements of their common rows and columns.
    SumProducts,
    /// `w` cuts every element into `c` slices. `h` is applied to all slices, ordered so that corresponding
    /// slices of neighbouring elements are neighbours. `f` combines the results for the slices of an element.
    Sliced,
    /// A function variable of a rule; no program contains one.
    Meta(Arc<str>),
}

impl Op {
    /// Returns the numbers of sizes, types and function arguments.
    pub fn shape(&self) -> (usize, usize, usize) {
        self.entry().scheme.shape()
    }

    /// Returns the name that the operator's text begins with, as in `mapGlb`; `None` for leaves that print
    /// otherwise.
    pub fn name(&self) -> Option<&'static str> {
        let entry = self.entry();
        (!matches!(entry.spelling, Spelling::Leaf)).then_some(entry.name)
    }

    /// Whether the operator only rearranges: its result is read through a changed index, at no cost.
    pub fn is_view(&self) -> bool {
        matches!(self.entry().cost, Cost::View | Cost::Invertible)
    }

    /// Whether the operator is a view (if its function arguments are) that uses each element of its argument
    /// at most once. The producer of the argument can then store directly to the result's destination.
    pub fn is_invertible(&self) -> bool {
        matches!(self.entry().cost, Cost::Invertible | Cost::InvertibleFrame)
    }

    /// Whether the operator only rearranges if its function arguments do.
    pub fn is_frame(&self) -> bool {
        matches!(self.entry().cost, Cost::Frame | Cost::InvertibleFrame)
    }
}
