//! Terms: closed, typed, point-free functions. A program is a term from [`Ty::Unit`].
//!
//! Every operator has a fixed number of sizes, types and function arguments ([`Op::shape`]) and one
//! typing rule ([`signature`]); the printer, the parser, the e-graph and the checks all read these two.

use super::scalar::{Lit, ScalarFn};
use super::size::{Size, Sym};
use super::ty::{FnTy, Ty};
use crate::lang::typed::PadMode;
use crate::lang::types::ScalarType;
use std::sync::Arc;

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

/// Operators. The comment gives `sizes; types; arguments : type`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Op {
    /// `; A; : A -> A`
    Id,
    /// `; ; f g : A -> C` for `g : A -> B`, `f : B -> C`. Printed `f . g`.
    Compose,
    /// `; A B; : (A, B) -> A`
    Fst,
    /// `; A B; : (A, B) -> B`
    Snd,
    /// `; ; f g : A -> (B, C)`
    Fork,
    /// `; ; f g : (A, B) -> (C, D)`
    Bimap,
    /// `; A; : A -> ()`
    Bang,
    /// `; D T; : D -> T`: the entry's parameter, whole.
    Input(Arc<str>),
    /// `; D; : D -> lit.ty`
    Lit(Lit),
    /// `s; D; : D -> T`: a size as a value.
    SizeValue(ScalarType),
    /// `; ;`: a scalar leaf.
    Scalar(Arc<ScalarFn>),
    /// `; ; p f g : A -> B` for `p : A -> bool`; lazy.
    Cond,
    /// `n; ; f : [n]A -> [n]B`
    Map(MapKind),
    /// `n; ; op z : [n]A -> B` for `z : () -> B`.
    Reduce(ReduceKind),
    /// `n t; ; op z f : [n]A -> B` for `op : (B, B) -> B`, `f : A -> B`, `z : () -> B`: a reduction of what `f` gives by `t`
    /// work-items of a group, in any order; `op` is associative and commutative, with neutral element `z`.
    ReduceLcl,
    /// `k m; ; op z : [k*m]A -> [m]A`: one result for each contiguous chunk of `k`.
    ReducePart,
    /// `n; ; op z : [n]A -> [n]B`, inclusive; sequential when true (then `op : (B, A) -> B`).
    Scan(bool),
    /// `n; A B; : ([n]A, [n]B) -> [n](A, B)`
    Zip,
    /// `n; A B; : [n](A, B) -> ([n]A, [n]B)`
    Unzip,
    /// `k m; A; : [k*m]A -> [m][k]A`
    Split,
    /// `k m; A; : [m][k]A -> [k*m]A`
    Join,
    /// `n m; A; : [n][m]A -> [m][n]A`
    Transpose,
    /// `n m; A B; : ([n]A, [m]B) -> [n][m](A, B)`
    Cross,
    /// `n; A B; : (A, [n]B) -> [n](A, B)`
    Distl,
    /// `n; A B; : ([n]A, B) -> [n](A, B)`
    Distr,
    /// `w m; A; : [w*m]A -> [m]<w>A`, `A` scalar
    AsVector,
    /// `w m; A; : [m]<w>A -> [w*m]A`
    AsScalar,
    /// `w; ; f : <w>A -> <w>B`: every lane by itself as `f`
    Vectorize,
    /// `w; A; : A -> <w>A`, every lane the same
    Splat,
    /// `; ; f`: as `f`, the result in that space.
    ToMem(Space),
    /// `s m; A; : [s*m]A -> [s*m]A`: `y[j] = x[j / m + s * (j % m)]` (thesis, definition 5.11).
    Stride,
    /// `n; A; : [n]A -> [n]A`: some permutation.
    Reorder,
    /// `n r; ; z : [n]A -> [r]A` for `z : () -> A`: the elements, then `z`; `r >= n`; of nothing, `r` is 0.
    PadTo,
    /// `n r; A; : [n]A -> [r]A`: the elements, then the last one again; `r >= n`; of nothing, `r` is 0.
    PadLast,
    /// `n r; A; : [n]A -> [r](bool, A)`: as [`Op::PadLast`], each element with whether it is one of the `n`.
    Mask,
    /// `k n; A; : [n]A -> [k]A`: the first `k`.
    Take,
    /// `r n; A; : [n]A -> [r]A`: the last `r`.
    Drop,
    /// `w s n m; A; : [n]A -> [m][w]A`, `m = (n - w) / s + 1`
    Slide,
    /// `l n m; A; : [n]A -> [m]A`: `l` before, the rest after. [`PadMode::Constant`] has an argument `z : () -> A`.
    Pad(PadMode),
    /// `n m; A I; : ([n]A, [m]I) -> [m]A`
    Gather,
    /// `n m; A I; : ([n]A, ([m]I, [m]A)) -> [n]A`
    Scatter,
    /// `m n; I; op z : ([n]I, [n]A) -> [m]A`
    Histogram,
    /// `n; D S; : D -> [n]S`, `S` an integer type
    Iota,
    /// `n; A; : A -> [n]A`
    Replicate,
    /// `n m r; A; : ([n]A, [m]A) -> [r]A`, `r = n + m`
    Concat,
    /// `n; A; : [n]A -> [n]A`
    Reverse,
    /// `k n; A; : [n]A -> [n]A`: `y[i] = x[(i + k) % n]`
    Rotate,
    /// `n; A I; : ([n]A, I) -> A`
    Index,
    /// `; A; : [1]A -> A`
    The,
    /// `; A; : A -> [1]A`
    Wrap,
    /// `n k r; ; h : [n]A -> [n]B` for `h : [r/k][k]A -> [r/k][k]B`: short for
    /// `take n . join . h . split k . padLast r`, so that rules on chains do not take it apart.
    Chunked,
    /// `n w r; ; h : [n]A -> [n]B` for `h : [r/w]<w>A -> [r/w]<w>B`: short for
    /// `take n . asScalar . h . asVector w . padLast r`.
    Packed,
    /// `n; ; op : (A, [n]B) -> A` for `op : (A, B) -> A`: from the left, in one work-item.
    Fold,
    /// `; ; p f : (A, E) -> A` for `p : (A, E) -> bool`, `f : (A, E) -> A`: `f` again and again while `p` holds.
    /// `E` is what both read besides and does not change.
    While,
    /// `n m t u r q; ; pa pb h : ([n]A, [m]B) -> [n][m]C` for `h : [r/t][q/u]([t]A, [u]B) -> [r/t][q/u][t][u]C`:
    /// short for `h` of all pairs of tiles of `t` and `u`, lengths rounded up to `r` and `q`. `pa` and `pb`
    /// are on the arrays of tiles: identities that may copy them. When true (`tiledWith`), a matrix is in tiles
    /// along: `(([n]A, [m]B), [n][m]X) -> [n][m]C` for `h : [r/t][q/u](([t]A, [u]B), [t][u]X) -> [r/t][q/u][t][u]C`.
    Tiled(bool),
    /// `n m t r; ; h : ([n]A, [m]B) -> [n]C` for `h : [r/t]([t]A, [m]B) -> [r/t][t]C`: as [`Op::Tiled`], of rows alone.
    TiledRows,
    /// `n m k t r; ; sa sb u z f : ([n][k]A, [m][k]B) -> D`: all pairs of rows are reduced together, `t` elements at
    /// a time, `k` rounded up to `r`. `z : () -> C` is where each of the `[n][m]C` begins,
    /// `u : [n][m](C, [t](bool, (A, B))) -> [n][m]C` a step (the flag says whether an element is one of the `k`),
    /// `f : [n][m]C -> D` the end. `sa` and `sb` are on the blocks `[t][n]A` and `[t][m]B`: identities that may copy.
    /// When true (`blockedWith`), the end reads something besides: `(([n][k]A, [m][k]B), X) -> D` for
    /// `f : ([n][m]C, X) -> D`.
    Blocked(bool),
    /// `n k t r; ; s u z f : ([n]A, [k]B) -> D`: as [`Op::Blocked`], every `A` meeting all `B`s, with
    /// `u : [n](C, [t](bool, (A, B))) -> [n]C` and `s` on `[t]B`.
    BlockedRows,
    /// `n m t u v w; ; h : [n][m]A -> [n][m]B` for `h : [n/t * m/u][t][u]A -> ...B`: a matrix shared out in parts of
    /// `t` by `u`, whose rows come in runs of `v` and columns in runs of `w` from all over. The parts go
    /// row by row, or (when true) in blocks of 4 by 8, the shape of a warp.
    Spread(bool),
    /// `n t; ; h : [n]A -> [n]B` for `h : [n/t][t]A -> [n/t][t]B`: as [`Op::Spread`], of rows alone, one by one: part `i`
    /// has the rows `i`, `i + n/t`, `i + 2*n/t`, and so on.
    SpreadRows,
    /// `n c; ; w h f : [n]X -> D`: every element is taken apart into `c` slices by `w : X -> [c]A`; `h : [c*n]A -> [c*n]B` is
    /// done with all slices, where those at one place of neighbouring elements are neighbours; and
    /// `f : [n]([c]B, X) -> D` puts what has become of an element's slices together.
    Sliced,
    /// `; A B; : A -> B`: a function variable of a rule; occurs in no program.
    Meta(Arc<str>),
}

impl Op {
    /// How many sizes, types and function arguments it has.
    pub fn shape(&self) -> (usize, usize, usize) {
        match self {
            Op::Id | Op::Bang | Op::Lit(_) | Op::The | Op::Wrap => (0, 1, 0),
            Op::Compose | Op::Fork | Op::Bimap => (0, 0, 2),
            Op::Fst | Op::Snd | Op::Input(_) | Op::Meta(_) => (0, 2, 0),
            Op::SizeValue(_) | Op::Replicate | Op::Reverse | Op::Reorder | Op::Splat => (1, 1, 0),
            Op::Scalar(_) => (0, 0, 0),
            Op::Cond => (0, 0, 3),
            Op::Map(_) | Op::Vectorize => (1, 0, 1),
            Op::Reduce(_) | Op::Scan(_) => (1, 0, 2),
            Op::ReducePart => (2, 0, 2),
            Op::ReduceLcl => (2, 0, 3),
            Op::Zip | Op::Unzip | Op::Distl | Op::Distr | Op::Iota | Op::Index => (1, 2, 0),
            Op::Split
            | Op::Join
            | Op::Transpose
            | Op::AsVector
            | Op::AsScalar
            | Op::Stride
            | Op::PadLast
            | Op::Mask
            | Op::Take
            | Op::Drop
            | Op::Rotate => (2, 1, 0),
            Op::Cross | Op::Gather | Op::Scatter => (2, 2, 0),
            Op::ToMem(_) => (0, 0, 1),
            Op::PadTo => (2, 0, 1),
            Op::Slide => (4, 1, 0),
            Op::Chunked | Op::Packed => (3, 0, 1),
            Op::Fold => (1, 0, 1),
            Op::While => (0, 0, 2),
            Op::Tiled(_) => (6, 0, 3),
            Op::TiledRows => (4, 0, 1),
            Op::Blocked(_) => (5, 0, 5),
            Op::BlockedRows => (4, 0, 4),
            Op::Spread(_) => (6, 0, 1),
            Op::SpreadRows => (2, 0, 1),
            Op::Sliced => (2, 0, 3),
            Op::Pad(PadMode::Constant) => (3, 1, 1),
            Op::Pad(PadMode::Clamp | PadMode::Wrap | PadMode::Mirror) | Op::Concat => (3, 1, 0),
            Op::Histogram => (2, 1, 2),
        }
    }

    /// Whether it only rearranges: its result is read through a changed index, and it costs nothing.
    pub fn is_view(&self) -> bool {
        match self {
            Op::Id
            | Op::Fst
            | Op::Snd
            | Op::Bang
            | Op::Input(_)
            | Op::Lit(_)
            | Op::SizeValue(_)
            | Op::Zip
            | Op::Unzip
            | Op::Split
            | Op::Join
            | Op::Transpose
            | Op::Cross
            | Op::Distl
            | Op::Distr
            | Op::AsVector
            | Op::AsScalar
            | Op::Splat
            | Op::Stride
            | Op::Reorder
            | Op::PadTo
            | Op::PadLast
            | Op::Mask
            | Op::Take
            | Op::Drop
            | Op::Slide
            | Op::Pad(_)
            | Op::Gather
            | Op::Iota
            | Op::Replicate
            | Op::Concat
            | Op::Reverse
            | Op::Rotate
            | Op::Index
            | Op::The
            | Op::Wrap => true,
            Op::Compose
            | Op::Fork
            | Op::Bimap
            | Op::Scalar(_)
            | Op::Cond
            | Op::Map(_)
            | Op::Reduce(_)
            | Op::ReducePart
            | Op::ReduceLcl
            | Op::Scan(_)
            | Op::Vectorize
            | Op::ToMem(_)
            | Op::Scatter
            | Op::Histogram
            | Op::Chunked
            | Op::Packed
            | Op::Fold
            | Op::While
            | Op::Tiled(_)
            | Op::TiledRows
            | Op::Blocked(_)
            | Op::BlockedRows
            | Op::Spread(_)
            | Op::SpreadRows
            | Op::Sliced
            | Op::Meta(_) => false,
        }
    }
}

/// Why a node does not type-check.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TypeError(pub String);

fn fail<T>(text: String) -> Result<T, TypeError> {
    Err(TypeError(text))
}

fn same(what: &str, a: &Ty, b: &Ty) -> Result<(), TypeError> {
    if a == b { Ok(()) } else { fail(format!("{what}: `{a}` is not `{b}`")) }
}

/// The type of a node from its sizes, types and the types of its arguments.
///
/// # Errors
/// When the parts do not fit together.
pub fn signature(op: &Op, sizes: &[Size], tys: &[Ty], args: &[FnTy]) -> Result<FnTy, TypeError> {
    let shape = (sizes.len(), tys.len(), args.len());
    if shape != op.shape() {
        return fail(format!(
            "{op:?} takes {:?} sizes, types, arguments, not {shape:?}",
            op.shape()
        ));
    }
    let arr = Ty::array;
    let vector = |w: &Size, t: &Ty| {
        Ty::vector(w, t).ok_or_else(|| TypeError(format!("`{t}` has no vector form")))
    };
    let init = |z: &FnTy, t: &Ty| {
        same("the initial value's argument", &z.dom, &Ty::Unit)?;
        same("the initial value", &z.cod, t)
    };
    Ok(match op {
        Op::Id => FnTy::new(tys[0].clone(), tys[0].clone()),
        Op::Compose => {
            same("composition", &args[1].cod, &args[0].dom)?;
            FnTy::new(args[1].dom.clone(), args[0].cod.clone())
        }
        Op::Fst => FnTy::new(Ty::pair(&tys[0], &tys[1]), tys[0].clone()),
        Op::Snd => FnTy::new(Ty::pair(&tys[0], &tys[1]), tys[1].clone()),
        Op::Fork => {
            same("fork", &args[0].dom, &args[1].dom)?;
            FnTy::new(args[0].dom.clone(), Ty::pair(&args[0].cod, &args[1].cod))
        }
        Op::Bimap => {
            FnTy::new(Ty::pair(&args[0].dom, &args[1].dom), Ty::pair(&args[0].cod, &args[1].cod))
        }
        Op::Bang => FnTy::new(tys[0].clone(), Ty::Unit),
        Op::Input(_) | Op::Meta(_) => FnTy::new(tys[0].clone(), tys[1].clone()),
        Op::Lit(l) => FnTy::new(tys[0].clone(), Ty::Scalar(l.ty)),
        Op::SizeValue(t) => FnTy::new(tys[0].clone(), Ty::Scalar(*t)),
        Op::Scalar(f) => FnTy::new(f.dom.clone(), f.cod.clone()),
        Op::Cond => {
            same("condition", &args[0].cod, &Ty::Scalar(ScalarType::Bool))?;
            same("branches' arguments", &args[1].dom, &args[2].dom)?;
            same("condition's argument", &args[0].dom, &args[1].dom)?;
            same("branches", &args[1].cod, &args[2].cod)?;
            args[1].clone()
        }
        Op::While => {
            let Ty::Pair(state, _) = &args[1].dom else {
                return fail(format!("a loop's body takes `{}`, not a pair", args[1].dom));
            };
            same("the condition's argument", &args[0].dom, &args[1].dom)?;
            same("condition", &args[0].cod, &Ty::Scalar(ScalarType::Bool))?;
            same("the body's result", &args[1].cod, state)?;
            args[1].clone()
        }
        Op::Map(_) => FnTy::new(arr(&sizes[0], &args[0].dom), arr(&sizes[0], &args[0].cod)),
        Op::Reduce(kind) => {
            let Ty::Pair(acc, x) = &args[0].dom else {
                return fail(format!("a reduction's operator takes `{}`, not a pair", args[0].dom));
            };
            same("the operator's result", &args[0].cod, acc)?;
            init(&args[1], acc)?;
            match kind {
                ReduceKind::Assoc | ReduceKind::Comm => same("the operator's arguments", acc, x)?,
                ReduceKind::Seq | ReduceKind::Unroll => {}
            }
            FnTy::new(arr(&sizes[0], x), (**acc).clone())
        }
        Op::ReduceLcl => {
            let b = &args[0].cod;
            same("the operator's arguments", &args[0].dom, &Ty::pair(b, b))?;
            init(&args[1], b)?;
            same("what is reduced", &args[2].cod, b)?;
            FnTy::new(arr(&sizes[0], &args[2].dom), b.clone())
        }
        Op::ReducePart => {
            let a = &args[0].cod;
            same("the operator's arguments", &args[0].dom, &Ty::pair(a, a))?;
            init(&args[1], a)?;
            FnTy::new(arr(&sizes[0].mul(&sizes[1]), a), arr(&sizes[1], a))
        }
        Op::Scan(_) => {
            let Ty::Pair(acc, x) = &args[0].dom else {
                return fail(format!("a scan's operator takes `{}`, not a pair", args[0].dom));
            };
            same("the operator's result", &args[0].cod, acc)?;
            init(&args[1], acc)?;
            FnTy::new(arr(&sizes[0], x), arr(&sizes[0], acc))
        }
        Op::Zip => FnTy::new(
            Ty::pair(&arr(&sizes[0], &tys[0]), &arr(&sizes[0], &tys[1])),
            arr(&sizes[0], &Ty::pair(&tys[0], &tys[1])),
        ),
        Op::Unzip => FnTy::new(
            arr(&sizes[0], &Ty::pair(&tys[0], &tys[1])),
            Ty::pair(&arr(&sizes[0], &tys[0]), &arr(&sizes[0], &tys[1])),
        ),
        Op::Split => FnTy::new(
            arr(&sizes[0].mul(&sizes[1]), &tys[0]),
            arr(&sizes[1], &arr(&sizes[0], &tys[0])),
        ),
        Op::Join => FnTy::new(
            arr(&sizes[1], &arr(&sizes[0], &tys[0])),
            arr(&sizes[0].mul(&sizes[1]), &tys[0]),
        ),
        Op::Transpose => FnTy::new(
            arr(&sizes[0], &arr(&sizes[1], &tys[0])),
            arr(&sizes[1], &arr(&sizes[0], &tys[0])),
        ),
        Op::Cross => FnTy::new(
            Ty::pair(&arr(&sizes[0], &tys[0]), &arr(&sizes[1], &tys[1])),
            arr(&sizes[0], &arr(&sizes[1], &Ty::pair(&tys[0], &tys[1]))),
        ),
        Op::Distl => FnTy::new(
            Ty::pair(&tys[0], &arr(&sizes[0], &tys[1])),
            arr(&sizes[0], &Ty::pair(&tys[0], &tys[1])),
        ),
        Op::Distr => FnTy::new(
            Ty::pair(&arr(&sizes[0], &tys[0]), &tys[1]),
            arr(&sizes[0], &Ty::pair(&tys[0], &tys[1])),
        ),
        Op::AsVector => FnTy::new(
            arr(&sizes[0].mul(&sizes[1]), &tys[0]),
            arr(&sizes[1], &vector(&sizes[0], &tys[0])?),
        ),
        Op::AsScalar => FnTy::new(
            arr(&sizes[1], &vector(&sizes[0], &tys[0])?),
            arr(&sizes[0].mul(&sizes[1]), &tys[0]),
        ),
        Op::Vectorize => {
            FnTy::new(vector(&sizes[0], &args[0].dom)?, vector(&sizes[0], &args[0].cod)?)
        }
        Op::Splat => FnTy::new(tys[0].clone(), vector(&sizes[0], &tys[0])?),
        Op::ToMem(_) => args[0].clone(),
        Op::Stride => {
            let t = arr(&sizes[0].mul(&sizes[1]), &tys[0]);
            FnTy::new(t.clone(), t)
        }
        Op::Reorder | Op::Reverse => {
            let t = arr(&sizes[0], &tys[0]);
            FnTy::new(t.clone(), t)
        }
        Op::PadTo => {
            same("the padding's argument", &args[0].dom, &Ty::Unit)?;
            FnTy::new(arr(&sizes[0], &args[0].cod), arr(&sizes[1], &args[0].cod))
        }
        Op::PadLast => FnTy::new(arr(&sizes[0], &tys[0]), arr(&sizes[1], &tys[0])),
        Op::Mask => FnTy::new(
            arr(&sizes[0], &tys[0]),
            arr(&sizes[1], &Ty::pair(&Ty::Scalar(ScalarType::Bool), &tys[0])),
        ),
        Op::Take | Op::Drop => FnTy::new(arr(&sizes[1], &tys[0]), arr(&sizes[0], &tys[0])),
        Op::Chunked => {
            let chunks = sizes[2].div(&sizes[1]);
            let inside = |t: &Ty| match t {
                Ty::Array(m, x) if *m == chunks => match &**x {
                    Ty::Array(k, a) if *k == sizes[1] => Ok(arr(&sizes[0], a)),
                    _ => fail(format!("`{t}` has no chunks of {}", sizes[1])),
                },
                _ => fail(format!("`{t}` is not {chunks} chunks")),
            };
            FnTy::new(inside(&args[0].dom)?, inside(&args[0].cod)?)
        }
        Op::Packed => {
            let packs = sizes[2].div(&sizes[1]);
            let inside = |t: &Ty| match t {
                Ty::Array(m, x) if *m == packs => x
                    .unvector(&sizes[1])
                    .map(|a| arr(&sizes[0], &a))
                    .ok_or_else(|| TypeError(format!("`{t}` has no vectors of {}", sizes[1]))),
                _ => fail(format!("`{t}` is not {packs} vectors")),
            };
            FnTy::new(inside(&args[0].dom)?, inside(&args[0].cod)?)
        }
        Op::Fold
        | Op::Tiled(_)
        | Op::TiledRows
        | Op::Blocked(_)
        | Op::BlockedRows
        | Op::Spread(_)
        | Op::SpreadRows
        | Op::Sliced => super::tiling::signature(op, sizes, args)?,
        Op::Slide => FnTy::new(arr(&sizes[2], &tys[0]), arr(&sizes[3], &arr(&sizes[0], &tys[0]))),
        Op::Pad(mode) => {
            if *mode == PadMode::Constant {
                init(&args[0], &tys[0])?;
            }
            FnTy::new(arr(&sizes[1], &tys[0]), arr(&sizes[2], &tys[0]))
        }
        Op::Gather => FnTy::new(
            Ty::pair(&arr(&sizes[0], &tys[0]), &arr(&sizes[1], &tys[1])),
            arr(&sizes[1], &tys[0]),
        ),
        Op::Scatter => {
            let dest = arr(&sizes[0], &tys[0]);
            let updates = Ty::pair(&arr(&sizes[1], &tys[1]), &arr(&sizes[1], &tys[0]));
            FnTy::new(Ty::pair(&dest, &updates), dest)
        }
        Op::Histogram => {
            let a = &args[0].cod;
            same("the operator's arguments", &args[0].dom, &Ty::pair(a, a))?;
            init(&args[1], a)?;
            FnTy::new(Ty::pair(&arr(&sizes[1], &tys[0]), &arr(&sizes[1], a)), arr(&sizes[0], a))
        }
        Op::Iota => FnTy::new(tys[0].clone(), arr(&sizes[0], &tys[1])),
        Op::Replicate => FnTy::new(tys[0].clone(), arr(&sizes[0], &tys[0])),
        Op::Concat => FnTy::new(
            Ty::pair(&arr(&sizes[0], &tys[0]), &arr(&sizes[1], &tys[0])),
            arr(&sizes[2], &tys[0]),
        ),
        Op::Rotate => {
            let t = arr(&sizes[1], &tys[0]);
            FnTy::new(t.clone(), t)
        }
        Op::Index => FnTy::new(Ty::pair(&arr(&sizes[0], &tys[0]), &tys[1]), tys[0].clone()),
        Op::The => FnTy::new(arr(&Size::constant(1), &tys[0]), tys[0].clone()),
        Op::Wrap => FnTy::new(tys[0].clone(), arr(&Size::constant(1), &tys[0])),
    })
}

#[derive(Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Node {
    op: Op,
    sizes: Vec<Size>,
    tys: Vec<Ty>,
    args: Vec<Term>,
    ty: FnTy,
}

/// A well-typed closed function. Cheap to clone; equal terms are structurally equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Term(Arc<Node>);

impl Term {
    /// The node, type-checked.
    ///
    /// # Errors
    /// When the parts do not fit together; see [`signature`].
    pub fn new(op: Op, sizes: Vec<Size>, tys: Vec<Ty>, args: Vec<Term>) -> Result<Term, TypeError> {
        let arg_types: Vec<FnTy> = args.iter().map(|a| a.ty().clone()).collect();
        let ty = signature(&op, &sizes, &tys, &arg_types)?;
        Ok(Term(Arc::new(Node { op, sizes, tys, args, ty })))
    }

    /// Its operator.
    pub fn op(&self) -> &Op {
        &self.0.op
    }

    /// Its sizes.
    pub fn sizes(&self) -> &[Size] {
        &self.0.sizes
    }

    /// Its types.
    pub fn tys(&self) -> &[Ty] {
        &self.0.tys
    }

    /// Its function arguments.
    pub fn args(&self) -> &[Term] {
        &self.0.args
    }

    /// Its type.
    pub fn ty(&self) -> &FnTy {
        &self.0.ty
    }

    /// The identity.
    pub fn id(t: &Ty) -> Term {
        let ty = FnTy::new(t.clone(), t.clone());
        Term(Arc::new(Node { op: Op::Id, sizes: vec![], tys: vec![t.clone()], args: vec![], ty }))
    }

    /// A scalar leaf.
    pub fn scalar(f: ScalarFn) -> Term {
        let ty = FnTy::new(f.dom.clone(), f.cod.clone());
        let op = Op::Scalar(Arc::new(f));
        Term(Arc::new(Node { op, sizes: vec![], tys: vec![], args: vec![], ty }))
    }

    /// `self . g`, nested to the right, identities dropped.
    ///
    /// # Errors
    /// When `g` gives another type than `self` takes.
    pub fn after(&self, g: &Term) -> Result<Term, TypeError> {
        same("composition", &g.ty().cod, &self.ty().dom)?;
        Ok(match (self.op(), g.op()) {
            (Op::Id, _) => g.clone(),
            (_, Op::Id) => self.clone(),
            (Op::Compose, _) => self.args()[0].after(&self.args()[1].after(g)?)?,
            _ => Term::new(Op::Compose, vec![], vec![], vec![self.clone(), g.clone()])?,
        })
    }

    /// The factors of a chain of compositions, outermost (last applied) first.
    pub fn chain(&self) -> Vec<Term> {
        let (mut out, mut rest) = (vec![], self.clone());
        while *rest.op() == Op::Compose {
            out.extend(rest.args()[0].chain());
            rest = rest.args()[1].clone();
        }
        out.push(rest);
        out
    }

    /// The chain of these factors, outermost first, nested to the right; identities stay.
    ///
    /// # Errors
    /// When there is no factor, or they do not fit together.
    pub fn of_chain(factors: &[Term]) -> Result<Term, TypeError> {
        let Some((last, before)) = factors.split_last() else {
            return fail("a chain of nothing".to_owned());
        };
        before.iter().rev().try_fold(last.clone(), |inner, outer| {
            Term::new(Op::Compose, vec![], vec![], vec![outer.clone(), inner])
        })
    }

    /// The same term with every chain nested to the right. Terms that differ in the nesting of chains
    /// alone become equal.
    ///
    /// # Errors
    /// Never for a well-typed term; the type checks of the parts are repeated.
    pub fn flat(&self) -> Result<Term, TypeError> {
        let factor = |t: &Term| {
            let args = t.args().iter().map(Term::flat).collect::<Result<Vec<_>, _>>()?;
            Term::new(t.op().clone(), t.sizes().to_vec(), t.tys().to_vec(), args)
        };
        let factors = self.chain().iter().map(factor).collect::<Result<Vec<_>, _>>()?;
        Term::of_chain(&factors)
    }

    /// What [`Op::Chunked`], [`Op::Packed`] and the operators of tiling are short for, everywhere in the term, and
    /// [`Op::Vectorize`] of more than elements in terms of its parts.
    ///
    /// # Errors
    /// When something that is vectorised has no vector form; says what.
    pub fn expand(&self) -> Result<Term, TypeError> {
        self.expand_where(&|_| true)
    }

    /// As [`Term::expand`], but [`Op::Vectorize`] stays as it is.
    ///
    /// # Errors
    /// Never for a well-typed term; the type checks of the parts are repeated.
    pub fn unpacked(&self) -> Result<Term, TypeError> {
        self.expand_where(&|op| *op != Op::Vectorize)
    }

    fn expand_where(&self, which: &dyn Fn(&Op) -> bool) -> Result<Term, TypeError> {
        let args =
            self.args().iter().map(|a| a.expand_where(which)).collect::<Result<Vec<_>, _>>()?;
        if *self.op() == Op::Compose {
            return args[0].after(&args[1]);
        }
        let out = Term::new(self.op().clone(), self.sizes().to_vec(), self.tys().to_vec(), args)?;
        if which(out.op()) { Ok(out.definition()?.unwrap_or(out)) } else { Ok(out) }
    }

    /// What this operator, not its arguments, is short for; `None` for all but [`Op::Chunked`], [`Op::Packed`], the
    /// operators of tiling, and [`Op::Vectorize`] of more than elements.
    ///
    /// # Errors
    /// When something that is vectorised has no vector form; says what.
    pub fn definition(&self) -> Result<Option<Term>, TypeError> {
        let element = |t: &Ty| match t {
            Ty::Array(_, a) => Ok((**a).clone()),
            other => fail(format!("`{other}` is no array")),
        };
        let (pack, unpack) = match self.op() {
            Op::Chunked => (Op::Split, Op::Join),
            Op::Packed => (Op::AsVector, Op::AsScalar),
            Op::Vectorize => {
                let long = super::lanes::push(&self.sizes()[0], &self.args()[0])?;
                return Ok((long != *self).then_some(long));
            }
            _ => return super::tiling::definition(self),
        };
        let [n, k, r] = self.sizes() else {
            return fail("three sizes".to_owned());
        };
        let (a, b) = (element(&self.ty().dom)?, element(&self.ty().cod)?);
        let parts = vec![k.clone(), r.div(k)];
        let pack = Term::new(pack, parts.clone(), vec![a.clone()], vec![])?;
        let mut out = self.args()[0].after(&pack)?;
        out = Term::new(unpack, parts, vec![b.clone()], vec![])?.after(&out)?;
        if n != r {
            let sizes = vec![n.clone(), r.clone()];
            out = out.after(&Term::new(Op::PadLast, sizes.clone(), vec![a], vec![])?)?;
            out = Term::new(Op::Take, sizes, vec![b], vec![])?.after(&out)?;
        }
        Ok(Some(out))
    }

    /// Replaces size symbols, in the types too; what `f` gives `None` for stays.
    ///
    /// # Errors
    /// When the sizes put in make parts ill-typed that were not.
    pub fn with_sizes(&self, f: &dyn Fn(&Sym) -> Option<Size>) -> Result<Term, TypeError> {
        let args = self.args().iter().map(|a| a.with_sizes(f)).collect::<Result<Vec<_>, _>>()?;
        let sizes = self.sizes().iter().map(|s| s.substitute(f)).collect();
        let tys = self.tys().iter().map(|t| t.substitute(&|_| None, f)).collect();
        Term::new(self.op().clone(), sizes, tys, args)
    }

    /// Number of nodes.
    pub fn size(&self) -> usize {
        1 + self.args().iter().map(Term::size).sum::<usize>()
    }

    /// Calls `f` on every node, parents first.
    pub fn visit(&self, f: &mut dyn FnMut(&Term)) {
        f(self);
        for a in self.args() {
            a.visit(f);
        }
    }
}
