//! Names of operators and how many explicit arguments each takes in text.

use crate::calculus::term::{MapKind, Op, ReduceKind, Space};
use crate::lang::typed::{PadMode, ScalarOp};

/// How an operator is written: its name, a dimension argument or none, explicit sizes, functions.
pub(super) struct Spelling {
    pub name: &'static str,
    /// Sizes written out; the others are inferred.
    pub sizes: usize,
    /// Function arguments.
    pub args: usize,
    /// The operator (dimension 0 where it has one).
    pub op: fn() -> Op,
    /// Whether a dimension follows the name.
    pub dim: bool,
}

macro_rules! spellings {
    ($($name:literal $sizes:literal $args:literal $dim:literal $op:expr;)*) => {
        /// Every operator with a name.
        pub(super) const SPELLINGS: &[Spelling] = &[
            $(Spelling { name: $name, sizes: $sizes, args: $args, dim: $dim, op: || $op },)*
        ];
    };
}

spellings! {
    "id" 0 0 false Op::Id;
    "fst" 0 0 false Op::Fst;
    "snd" 0 0 false Op::Snd;
    "fork" 0 2 false Op::Fork;
    "bimap" 0 2 false Op::Bimap;
    "bang" 0 0 false Op::Bang;
    "cond" 0 3 false Op::Cond;
    "map" 0 1 false Op::Map(MapKind::Plain);
    "mapSeq" 0 1 false Op::Map(MapKind::Seq);
    "mapUnroll" 0 1 false Op::Map(MapKind::Unroll);
    "mapGlb" 0 1 true Op::Map(MapKind::Glb(0));
    "mapWrg" 0 1 true Op::Map(MapKind::Wrg(0));
    "mapLcl" 0 1 true Op::Map(MapKind::Lcl(0));
    "mapWarp" 0 1 false Op::Map(MapKind::Warp);
    "mapLane" 0 1 false Op::Map(MapKind::Lane);
    "reduce" 0 2 false Op::Reduce(ReduceKind::Assoc);
    "reduceComm" 0 2 false Op::Reduce(ReduceKind::Comm);
    "reduceSeq" 0 2 false Op::Reduce(ReduceKind::Seq);
    "reduceUnroll" 0 2 false Op::Reduce(ReduceKind::Unroll);
    "reduceLcl" 1 3 false Op::ReduceLcl;
    "reducePart" 1 2 false Op::ReducePart;
    "scan" 0 2 false Op::Scan(false);
    "scanSeq" 0 2 false Op::Scan(true);
    "zip" 0 0 false Op::Zip;
    "unzip" 0 0 false Op::Unzip;
    "split" 1 0 false Op::Split;
    "join" 0 0 false Op::Join;
    "transpose" 0 0 false Op::Transpose;
    "cross" 0 0 false Op::Cross;
    "distl" 0 0 false Op::Distl;
    "distr" 0 0 false Op::Distr;
    "asVector" 1 0 false Op::AsVector;
    "asScalar" 0 0 false Op::AsScalar;
    "vectorize" 1 1 false Op::Vectorize;
    "splat" 1 0 false Op::Splat;
    "toGlobal" 0 1 false Op::ToMem(Space::Global);
    "toStream" 0 1 false Op::ToMem(Space::Stream);
    "toLocal" 0 1 false Op::ToMem(Space::Local);
    "toLocalAhead" 0 1 false Op::ToMem(Space::LocalAhead);
    "toPrivate" 0 1 false Op::ToMem(Space::Private);
    "reorderStride" 1 0 false Op::Stride;
    "reorder" 0 0 false Op::Reorder;
    "padTo" 1 1 false Op::PadTo;
    "padLast" 1 0 false Op::PadLast;
    "mask" 1 0 false Op::Mask;
    "chunked" 2 1 false Op::Chunked;
    "packed" 2 1 false Op::Packed;
    "foldSeq" 0 1 false Op::Fold;
    "loopWhile" 0 2 false Op::While;
    "tiled" 4 3 false Op::Tiled(false);
    "tiledWith" 4 3 false Op::Tiled(true);
    "tiledRows" 2 1 false Op::TiledRows;
    "blocked" 2 5 false Op::Blocked(false);
    "blockedWith" 2 5 false Op::Blocked(true);
    "blockedRows" 2 4 false Op::BlockedRows;
    "spread" 4 1 false Op::Spread(false);
    "spreadWarps" 4 1 false Op::Spread(true);
    "spreadRows" 1 1 false Op::SpreadRows;
    "sliced" 0 3 false Op::Sliced;
    "take" 1 0 false Op::Take;
    "drop" 1 0 false Op::Drop;
    "slide" 3 0 false Op::Slide;
    "padClamp" 2 0 false Op::Pad(PadMode::Clamp);
    "padWrap" 2 0 false Op::Pad(PadMode::Wrap);
    "padMirror" 2 0 false Op::Pad(PadMode::Mirror);
    "padConstant" 2 1 false Op::Pad(PadMode::Constant);
    "gather" 0 0 false Op::Gather;
    "scatter" 0 0 false Op::Scatter;
    "histogram" 1 2 false Op::Histogram;
    "replicate" 1 0 false Op::Replicate;
    "concat" 1 0 false Op::Concat;
    "reverse" 0 0 false Op::Reverse;
    "rotate" 1 0 false Op::Rotate;
    "index" 0 0 false Op::Index;
    "the" 0 0 false Op::The;
    "wrap" 0 0 false Op::Wrap;
}

/// The operator's name in text, as in `mapGlb`; `None` for leaves that print otherwise.
pub fn op_name(op: &Op) -> Option<&'static str> {
    let plain = match op {
        Op::Map(MapKind::Glb(_)) => Op::Map(MapKind::Glb(0)),
        Op::Map(MapKind::Wrg(_)) => Op::Map(MapKind::Wrg(0)),
        Op::Map(MapKind::Lcl(_)) => Op::Map(MapKind::Lcl(0)),
        other => other.clone(),
    };
    SPELLINGS.iter().find(|s| (s.op)() == plain).map(|s| s.name)
}

/// Infix operators: text, operation, binding strength.
pub(super) const INFIX: &[(&str, ScalarOp, u8)] = &[
    ("||", ScalarOp::Or, 1),
    ("&&", ScalarOp::And, 2),
    ("==", ScalarOp::Eq, 3),
    ("!=", ScalarOp::Ne, 3),
    ("<=", ScalarOp::Le, 3),
    (">=", ScalarOp::Ge, 3),
    ("<", ScalarOp::Lt, 3),
    (">", ScalarOp::Gt, 3),
    ("+", ScalarOp::Add, 4),
    ("-", ScalarOp::Sub, 4),
    ("**", ScalarOp::Pow, 6),
    ("*", ScalarOp::Mul, 5),
    ("/", ScalarOp::Div, 5),
    ("%", ScalarOp::Rem, 5),
];

/// Named scalar functions: name, operation, number of arguments.
pub(super) const FUNCTIONS: &[(&str, ScalarOp, usize)] = &[
    ("not", ScalarOp::Not, 1),
    ("neg", ScalarOp::Neg, 1),
    ("abs", ScalarOp::Abs, 1),
    ("min", ScalarOp::Min, 2),
    ("max", ScalarOp::Max, 2),
    ("sqrt", ScalarOp::Sqrt, 1),
    ("rsqrt", ScalarOp::Rsqrt, 1),
    ("exp", ScalarOp::Exp, 1),
    ("log", ScalarOp::Log, 1),
    ("sin", ScalarOp::Sin, 1),
    ("cos", ScalarOp::Cos, 1),
    ("tan", ScalarOp::Tan, 1),
    ("atan", ScalarOp::Atan, 1),
    ("atan2", ScalarOp::Atan2, 2),
    ("floor", ScalarOp::Floor, 1),
    ("ceil", ScalarOp::Ceil, 1),
    ("round", ScalarOp::Round, 1),
    ("fma", ScalarOp::Fma, 3),
    ("sign", ScalarOp::Sign, 1),
    ("clamp", ScalarOp::Clamp, 3),
    ("select", ScalarOp::Select, 3),
];
