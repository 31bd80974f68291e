//! The table of operators: the spelling of each, its type, and whether it only rearranges.

use super::scheme::Scheme;
use super::{MapKind, Op, ReduceKind, ScanKind, Shares, Space};
use crate::lang::typed::PadMode;
use crate::lang::types::ScalarType;

/// Whether an operator only rearranges: its result is read through a changed index, at no cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cost {
    /// It computes.
    Computes,
    /// It is a view.
    View,
    /// It is a view that uses each element of its argument at most once, so that the argument can be stored
    /// directly to the result's destination.
    Invertible,
    /// It rearranges if its function arguments do.
    Frame,
    /// It rearranges if its function arguments do, and is invertible if they are.
    InvertibleFrame,
}

/// How an operator is made from its text.
pub enum Spelling {
    /// From its name alone.
    Plain(fn() -> Op),
    /// A dimension follows the name.
    Dimension(fn(u8) -> Op),
    /// A scalar type, which the operator carries, follows the sizes.
    Type(fn(ScalarType) -> Op),
    /// Its text does not begin with its name.
    Leaf,
}

/// One operator. Variants of [`Op`] with different payloads, such as the kind of a map, have several entries
/// if their names or types differ.
pub struct Entry {
    /// The name in text and in messages.
    pub name: &'static str,
    /// How the operator is made from its text.
    pub spelling: Spelling,
    /// Its type.
    pub scheme: Scheme,
    pub(super) cost: Cost,
}

macro_rules! spelling {
    (leaf: $($op:tt)+) => { Spelling::Leaf };
    ($x:ident in $how:ident: $($op:tt)+) => { Spelling::$how(|$x| $($op)+) };
    ($($op:tt)+) => { Spelling::Plain(|| $($op)+) };
}

macro_rules! pattern {
    (leaf: $($op:tt)+) => { $($op)+ };
    ($x:ident in $how:ident: $($op:tt)+) => { $($op)+ };
    ($($op:tt)+) => { $($op)+ };
}

macro_rules! operators {
    ($($name:literal [$($op:tt)+] $cost:ident $scheme:literal;)*) => {
        impl Op {
            /// Returns the entry of the operator.
            #[expect(unused_variables, reason = "the patterns also make the operators")]
            pub fn entry(&self) -> &'static Entry {
                match self {
                    $(pattern!($($op)+) => {
                        static ENTRY: Entry = Entry {
                            name: $name,
                            spelling: spelling!($($op)+),
                            scheme: Scheme::new($scheme),
                            cost: Cost::$cost,
                        };
                        &ENTRY
                    })*
                }
            }
        }

        const SPELLINGS: &[(&str, Spelling)] = &[$(($name, spelling!($($op)+)),)*];
    };
}

// Sizes, types, function arguments, type: see `scheme`.
operators! {
    "id" [Op::Id] Invertible "; A; ; A -> A";
    "composition" [leaf: Op::Compose] InvertibleFrame "; ; f: B -> C, g: A -> B; A -> C";
    "fst" [Op::Fst] Invertible "; A B; ; (A, B) -> A";
    "snd" [Op::Snd] Invertible "; A B; ; (A, B) -> B";
    "fork" [Op::Fork] Frame "; ; f: A -> B, g: A -> C; A -> (B, C)";
    "bimap" [Op::Bimap] InvertibleFrame "; ; f: A -> C, g: B -> D; (A, B) -> (C, D)";
    "bang" [Op::Bang] View "; A; ; A -> ()";
    "input" [leaf: Op::Input(_)] View "; D T; ; D -> T";
    "constant" [leaf: Op::Lit(_)] View "; D; ; D -> *";
    "sizeOf" [t in Type: Op::SizeValue(t)] View "s!; D; ; D -> *";
    "scalar function" [leaf: Op::Scalar(_)] Computes "; ; ; * -> *";
    "cond" [Op::Cond] Computes "; ; p: A -> bool, f: A -> B, g: A -> B; A -> B";
    "map" [Op::Map(MapKind::Plain)] InvertibleFrame "n; ; f: A -> B; [n]A -> [n]B";
    "mapSeq" [Op::Map(MapKind::Seq)] Computes "n; ; f: A -> B; [n]A -> [n]B";
    "mapUnroll" [Op::Map(MapKind::Unroll)] Computes "n; ; f: A -> B; [n]A -> [n]B";
    "mapGlb" [d in Dimension: Op::Map(MapKind::Glb(d))] Computes "n; ; f: A -> B; [n]A -> [n]B";
    "mapWrg" [d in Dimension: Op::Map(MapKind::Wrg(d))] Computes "n; ; f: A -> B; [n]A -> [n]B";
    "mapLcl" [d in Dimension: Op::Map(MapKind::Lcl(d))] Computes "n; ; f: A -> B; [n]A -> [n]B";
    "mapWarp" [Op::Map(MapKind::Warp)] Computes "n; ; f: A -> B; [n]A -> [n]B";
    "mapLane" [Op::Map(MapKind::Lane)] Computes "n; ; f: A -> B; [n]A -> [n]B";
    "reduce" [Op::Reduce(ReduceKind::Assoc)] Computes
        "n; ; op: (A, A) -> A, z: () -> A; [n]A -> A";
    "reduceComm" [Op::Reduce(ReduceKind::Comm)] Computes
        "n; ; op: (A, A) -> A, z: () -> A; [n]A -> A";
    "reduceSeq" [Op::Reduce(ReduceKind::Seq)] Computes
        "n; ; op: (B, A) -> B, z: () -> B; [n]A -> B";
    "reduceUnroll" [Op::Reduce(ReduceKind::Unroll)] Computes
        "n; ; op: (B, A) -> B, z: () -> B; [n]A -> B";
    "reduceLcl" [Op::ReduceLcl] Computes
        "n t/; ; op: (B, B) -> B, z: () -> B, f: A -> B; [n]A -> B";
    "reducePart" [Op::ReducePart] Computes
        "k m/; ; op: (A, A) -> A, z: () -> A; [k*m]A -> [m]A";
    "scan" [Op::Scan(ScanKind::Assoc)] Computes "n; ; op: (A, A) -> A, z: () -> A; [n]A -> [n]A";
    "scanExclusive" [Op::Scan(ScanKind::Exclusive)] Computes
        "n; ; op: (A, A) -> A, z: () -> A; [n]A -> [n]A";
    "scanSeq" [Op::Scan(ScanKind::Seq)] Computes "n; ; op: (B, A) -> B, z: () -> B; [n]A -> [n]B";
    "scanLcl" [Op::ScanLcl(false)] Computes
        "n t/; ; op: (B, B) -> B, z: () -> B, f: A -> B; (B, [n]A) -> [n]B";
    "scanExclusiveLcl" [Op::ScanLcl(true)] Computes
        "n t/; ; op: (B, B) -> B, z: () -> B, f: A -> B; (B, [n]A) -> [n]B";
    "zip" [Op::Zip] Invertible "n; A B; ; ([n]A, [n]B) -> [n](A, B)";
    "unzip" [Op::Unzip] Invertible "n; A B; ; [n](A, B) -> ([n]A, [n]B)";
    "split" [Op::Split] Invertible "k/ m; A; ; [k*m]A -> [m][k]A";
    "join" [Op::Join] Invertible "k m; A; ; [m][k]A -> [k*m]A";
    "transpose" [Op::Transpose] Invertible "n m; A; ; [n][m]A -> [m][n]A";
    "cross" [Op::Cross] View "n m; A B; ; ([n]A, [m]B) -> [n][m](A, B)";
    "distl" [Op::Distl] View "n; A B; ; (A, [n]B) -> [n](A, B)";
    "distr" [Op::Distr] View "n; A B; ; ([n]A, B) -> [n](A, B)";
    "asVector" [Op::AsVector] Invertible "w/ m; A; ; [w*m]A -> [m]<w>A";
    "asScalar" [Op::AsScalar] Invertible "w m; A; ; [m]<w>A -> [w*m]A";
    "vectorize" [Op::Vectorize] Computes "w!; ; f: A -> B; <w>A -> <w>B";
    "splat" [Op::Splat] View "w!; A; ; A -> <w>A";
    "toGlobal" [Op::ToMem(Space::Global)] Computes "; ; f: A -> B; A -> B";
    "toStream" [Op::ToMem(Space::Stream)] Computes "; ; f: A -> B; A -> B";
    "toLocal" [Op::ToMem(Space::Local)] Computes "; ; f: A -> B; A -> B";
    "toLocalAhead" [Op::ToMem(Space::LocalAhead)] Computes "; ; f: A -> B; A -> B";
    "toPrivate" [Op::ToMem(Space::Private)] Computes "; ; f: A -> B; A -> B";
    "onRead" [Op::OnRead] View "; ; f: A -> B; A -> B";
    "reorderStride" [Op::Stride] Invertible "s/ m; A; ; [s*m]A -> [s*m]A";
    "reorder" [Op::Reorder] Invertible "n; A; ; [n]A -> [n]A";
    "padTo" [Op::PadTo] View "n r!; ; z: () -> A; [n]A -> [r]A";
    "padLast" [Op::PadLast] View "n r!; A; ; [n]A -> [r]A";
    "mask" [Op::Mask] View "n r!; A; ; [n]A -> [r](bool, A)";
    "take" [Op::Take] Invertible "k! n; A; ; [n]A -> [k]A";
    "drop" [Op::Drop] Invertible "r! n; A; ; [n]A -> [r]A";
    "slide" [Op::Slide] View "w! s! n m!; A; ; [n]A -> [m][w]A";
    "padClamp" [Op::Pad(PadMode::Clamp)] View "l! n m!; A; ; [n]A -> [m]A";
    "padWrap" [Op::Pad(PadMode::Wrap)] View "l! n m!; A; ; [n]A -> [m]A";
    "padMirror" [Op::Pad(PadMode::Mirror)] View "l! n m!; A; ; [n]A -> [m]A";
    "padConstant" [Op::Pad(PadMode::Constant)] View "l! n m!; A; z: () -> A; [n]A -> [m]A";
    "gather" [Op::Gather] View "n m; A I; ; ([n]A, [m]I) -> [m]A";
    "scatter" [Op::Scatter] Computes "n m; A I; ; ([n]A, ([m]I, [m]A)) -> [n]A";
    "histogram" [Op::Histogram] Computes
        "m! n; I; op: (A, A) -> A, z: () -> A; ([n]I, [n]A) -> [m]A";
    "countingSort" [Op::CountingSort] Computes "k! n; I A; ; ([n]I, [n]A) -> ([k]I, [n]A)";
    "iota" [Op::Iota] View "n!; D S!; ; D -> [n]S";
    "replicate" [Op::Replicate] View "n!; A; ; A -> [n]A";
    "concat" [Op::Concat] Invertible "n m r!; A; ; ([n]A, [m]A) -> [r]A";
    "reverse" [Op::Reverse] Invertible "n; A; ; [n]A -> [n]A";
    "rotate" [Op::Rotate] Invertible "k! n; A; ; [n]A -> [n]A";
    "index" [Op::Index] View "n; A I; ; ([n]A, I) -> A";
    "the" [Op::The] Invertible "; A; ; [1]A -> A";
    "wrap" [Op::Wrap] Invertible "; A; ; A -> [1]A";
    "chunked" [Op::Chunked] Computes "n k/ r!; ; h: [r/k][k]A -> [r/k][k]B; [n]A -> [n]B";
    "packed" [Op::Packed] Computes "n w/ r!; ; h: [r/w]<w>A -> [r/w]<w>B; [n]A -> [n]B";
    "foldSeq" [Op::Fold] Computes "n; ; op: (A, B) -> A; (A, [n]B) -> A";
    "loopWhile" [Op::While] Computes "; ; p: (A, E) -> bool, f: (A, E) -> A; (A, E) -> A";
    "tiled" [Op::Tiled(false)] Computes
        "n m t/ u/ r! q!; ; pa: [r/t][t]A -> [r/t][t]A, pb: [q/u][u]B -> [q/u][u]B, \
         h: [r/t][q/u]([t]A, [u]B) -> [r/t][q/u][t][u]C; ([n]A, [m]B) -> [n][m]C";
    "tiledWith" [Op::Tiled(true)] Computes
        "n m t/ u/ r! q!; ; pa: [r/t][t]A -> [r/t][t]A, pb: [q/u][u]B -> [q/u][u]B, \
         h: [r/t][q/u](([t]A, [u]B), [t][u]X) -> [r/t][q/u][t][u]C; \
         (([n]A, [m]B), [n][m]X) -> [n][m]C";
    "tiledRows" [Op::TiledRows] Computes
        "n m t/ r!; ; h: [r/t]([t]A, [m]B) -> [r/t][t]C; ([n]A, [m]B) -> [n]C";
    "turned" [Op::Turned] Computes
        "n m t/ u/ r! q!; ; h: [r/t][q/u][t][u]A -> [r/t][q/u][u][t]B; [n][m]A -> [m][n]B";
    "blocked" [Op::Blocked(false)] Computes
        "n m k t/ r!; ; sa: [t][n]A -> [t][n]A, sb: [t][m]B -> [t][m]B, \
         u: [n][m](C, [t](bool, (A, B))) -> [n][m]C, z: () -> C, f: [n][m]C -> D; \
         ([n][k]A, [m][k]B) -> D";
    "blockedWith" [Op::Blocked(true)] Computes
        "n m k t/ r!; ; sa: [t][n]A -> [t][n]A, sb: [t][m]B -> [t][m]B, \
         u: [n][m](C, [t](bool, (A, B))) -> [n][m]C, z: () -> C, f: ([n][m]C, X) -> D; \
         (([n][k]A, [m][k]B), X) -> D";
    "blockedRows" [Op::BlockedRows] Computes
        "n k t/ r!; ; s: [t]B -> [t]B, u: [n](C, [t](bool, (A, B))) -> [n]C, z: () -> C, \
         f: [n]C -> D; ([n]A, [k]B) -> D";
    "spread" [Op::Spread(Shares::Rows)] Computes
        "n m t/ u/ v! w!; ; h: [n/t*m/u][t][u]A -> [n/t*m/u][t][u]B; [n][m]A -> [n][m]B";
    "spreadWarps" [Op::Spread(Shares::Warps)] Computes
        "n m t/ u/ v! w!; ; h: [n/t*m/u][t][u]A -> [n/t*m/u][t][u]B; [n][m]A -> [n][m]B";
    "spreadFragments" [Op::Spread(Shares::Fragments)] Computes
        "n m t/ u/ v! w!; ; h: [n/t*m/u][t][u]A -> [n/t*m/u][t][u]B; [n][m]A -> [n][m]B";
    "sumProducts" [Op::SumProducts] Computes
        "t u k; A C; ; [t][u](C, [k](bool, (A, A))) -> [t][u]C";
    "spreadRows" [Op::SpreadRows] Computes "n t/; ; h: [n/t][t]A -> [n/t][t]B; [n]A -> [n]B";
    "sliced" [Op::Sliced] Computes
        "n c; ; w: X -> [c]A, h: [c*n]A -> [c*n]B, f: [n]([c]B, X) -> D; [n]X -> D";
    "variable" [leaf: Op::Meta(_)] Computes "; A B; ; A -> B";
}

impl Spelling {
    /// Returns the operator, with an arbitrary dimension and type; `None` when its text does not begin with
    /// its name.
    fn any(&self) -> Option<Op> {
        match self {
            Spelling::Plain(make) => Some(make()),
            Spelling::Dimension(make) => Some(make(0)),
            Spelling::Type(make) => Some(make(ScalarType::I32)),
            Spelling::Leaf => None,
        }
    }
}

impl Entry {
    /// Returns the operator whose text begins with that name.
    pub fn named(name: &str) -> Option<&'static Entry> {
        let written = SPELLINGS.iter().filter(|(n, _)| *n == name).find_map(|(_, s)| s.any());
        written.map(|op| op.entry())
    }

    /// Whether a scalar type follows the sizes in the operator's text.
    pub fn takes_type(&self) -> bool {
        matches!(self.spelling, Spelling::Type(_)) || self.scheme.written_type().is_some()
    }

    /// Whether the operator's text is its name alone.
    pub fn stands_alone(&self) -> bool {
        let nothing = self.scheme.written().next().is_none() && self.scheme.shape().2 == 0;
        nothing && !self.takes_type() && !matches!(self.spelling, Spelling::Dimension(_))
    }
}

/// The operators whose text begins with their name.
#[cfg(test)]
pub(super) fn written() -> impl Iterator<Item = Op> {
    SPELLINGS.iter().filter_map(|(_, spelling)| spelling.any())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ() {
        for (name, spelling) in SPELLINGS {
            if let Some(op) = spelling.any() {
                assert_eq!(op.entry().name, *name);
                let entry = Entry::named(name).expect("a written operator");
                assert!(std::ptr::eq(entry, op.entry()), "two operators are called {name}");
            }
        }
    }
}
