//! Operators: what terms are made of, each described once.
//!
//! An operator is a variant of [`Op`], whose comment says what it computes, and an entry of the table in `table`:
//! how it is written, its type scheme, and whether it only rearranges. Type checking, type inference, the parser and
//! the printer read that entry. What it computes stands in `calculus::eval`.

mod scheme;
mod solve;
mod table;

pub use solve::{Equality, Solution, TypeError, parts, signature};
pub use table::{Entry, Spelling};

use super::scalar::{Lit, ScalarFn};
use crate::lang::typed::PadMode;
use crate::lang::types::ScalarType;
use std::sync::Arc;
use table::Cost;

/// How a map runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MapKind {
    /// Not decided. Of a body that only rearranges, a view.
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

/// How a reduction runs, and what is known of its operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ReduceKind {
    /// Not decided; `op : (a, a) -> a` is associative with neutral element `z`.
    Assoc,
    /// As `Assoc`, and commutative.
    Comm,
    /// A loop from the left in one work-item (or uniformly in a work-group); `op : (acc, a) -> acc`.
    Seq,
    /// As `Seq`, unrolled.
    Unroll,
}

/// An address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Space {
    /// Device memory.
    Global,
    /// Device memory, written past the caches: for a result that is not read again soon.
    Stream,
    /// Memory of a work-group.
    Local,
    /// As [`Space::Local`], twice, where a loop copies a block in each step: the next one is loaded while this one
    /// is used (double buffering).
    LocalAhead,
    /// Registers of a work-item.
    Private,
}

/// Operators. Names of sizes and functions are those of the operator's type in the table.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Op {
    /// The argument.
    Id,
    /// `f` of what `g` gives. Printed `f . g`.
    Compose,
    /// The first component.
    Fst,
    /// The second component.
    Snd,
    /// What both functions give for one argument.
    Fork,
    /// What each function gives for a component.
    Bimap,
    /// The value `()`.
    Bang,
    /// The entry's parameter, whole.
    Input(Arc<str>),
    /// A constant.
    Lit(Lit),
    /// A size as a value.
    SizeValue(ScalarType),
    /// A scalar function.
    Scalar(Arc<ScalarFn>),
    /// `f` where `p` holds, else `g`; the other is not evaluated.
    Cond,
    /// `f` of every element.
    Map(MapKind),
    /// All elements combined, from `z` on.
    Reduce(ReduceKind),
    /// A reduction of what `f` gives by `t` work-items of a group, in any order; `op` is associative and commutative,
    /// with neutral element `z`.
    ReduceLcl,
    /// As [`Op::Reduce`], one result for each contiguous chunk of `k`.
    ReducePart,
    /// All inclusive prefixes combined, from `z` on; in sequence when true.
    Scan(bool),
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
    /// Every element with every other.
    Cross,
    /// The first component with every element of the second.
    Distl,
    /// Every element of the first component with the second.
    Distr,
    /// Chunks of `w` as vectors.
    AsVector,
    /// The inverse of [`Op::AsVector`].
    AsScalar,
    /// `f` of every lane by itself.
    Vectorize,
    /// A vector with the argument in every lane.
    Splat,
    /// As `f`, the result in that space.
    ToMem(Space),
    /// `y[j] = x[j / m + s * (j % m)]` (thesis, definition 5.11).
    Stride,
    /// Some permutation.
    Reorder,
    /// The elements, then `z`; `r >= n`; of nothing, `r` is 0.
    PadTo,
    /// The elements, then the last one again; `r >= n`; of nothing, `r` is 0.
    PadLast,
    /// As [`Op::PadLast`], each element with whether it is one of the `n`.
    Mask,
    /// The first `k`.
    Take,
    /// The last `r`.
    Drop,
    /// Windows of `w`, each `s` further; `m = (n - w) / s + 1`.
    Slide,
    /// `l` elements before, the rest after. [`PadMode::Constant`] has an argument `z`.
    Pad(PadMode),
    /// The elements at these indices.
    Gather,
    /// The first array with these elements at these indices.
    Scatter,
    /// For each of `m` bins, the elements with that index combined.
    Histogram,
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
    /// A first value and elements combined, from the left, in one work-item.
    Fold,
    /// `f` again and again while `p` holds. `E` is what both read besides and does not change.
    While,
    /// Short for `h` of all pairs of tiles of `t` and `u`, lengths rounded up to `r` and `q`. `pa` and `pb`
    /// are on the arrays of tiles: identities that may copy them. When true (`tiledWith`), a matrix is in tiles
    /// along.
    Tiled(bool),
    /// As [`Op::Tiled`], of rows alone.
    TiledRows,
    /// All pairs of rows are reduced together, `t` elements at a time, `k` rounded up to `r`. `z` is where each of the
    /// results begins, `u` a step (the flag says whether an element is one of the `k`), `f` the end. `sa` and `sb` are
    /// on the blocks: identities that may copy. When true (`blockedWith`), the end reads something besides.
    Blocked(bool),
    /// As [`Op::Blocked`], every `A` meeting all `B`s.
    BlockedRows,
    /// A matrix shared out in parts of
    /// `t` by `u`, whose rows come in runs of `v` and columns in runs of `w` from all over. The parts go
    /// row by row, or (when true) in blocks of 4 by 8, the shape of a warp.
    Spread(bool),
    /// As [`Op::Spread`], of rows alone, one by one: part `i`
    /// has the rows `i`, `i + n/t`, `i + 2*n/t`, and so on.
    SpreadRows,
    /// Every element is taken apart into `c` slices by `w`; `h` is done with all slices, where those at one place of
    /// neighbouring elements are neighbours; and `f` puts what has become of an element's slices together.
    Sliced,
    /// A function variable of a rule; occurs in no program.
    Meta(Arc<str>),
}

impl Op {
    /// How many sizes, types and function arguments it has.
    pub fn shape(&self) -> (usize, usize, usize) {
        self.entry().scheme.shape()
    }

    /// The name that its text begins with, as in `mapGlb`; `None` for leaves that print otherwise.
    pub fn name(&self) -> Option<&'static str> {
        let entry = self.entry();
        (!matches!(entry.spelling, Spelling::Leaf)).then_some(entry.name)
    }

    /// Whether it only rearranges: its result is read through a changed index, and it costs nothing.
    pub fn is_view(&self) -> bool {
        matches!(self.entry().cost, Cost::View | Cost::Invertible)
    }

    /// Whether it is a view, if its function arguments are, that each element of its argument passes at most once. What
    /// gives the argument can then store where the result goes.
    pub fn is_invertible(&self) -> bool {
        matches!(self.entry().cost, Cost::Invertible | Cost::InvertibleFrame)
    }

    /// Whether it only rearranges if its function arguments do.
    pub fn is_frame(&self) -> bool {
        matches!(self.entry().cost, Cost::Frame | Cost::InvertibleFrame)
    }
}
