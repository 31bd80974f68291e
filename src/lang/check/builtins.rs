//! The built-in names: scalar functions, casts and patterns, with their parameters.

use super::infer::Class;
use crate::lang::ast::{Operator, binary_operator};
use crate::lang::scalar_op::{self, ScalarOp};
use crate::lang::typed::{PadMode, Prim, ScanKind};
use crate::lang::types::ScalarType;

/// A built-in function (or mode).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Builtin {
    /// A scalar operation. If it is qualified by a type (`f32.max`), its operands have that type.
    Scalar(ScalarOp, Option<ScalarType>),
    /// Another name of an operator, for a class of numbers alone: `pow` is `**` on floats, `//` is `/` on integers.
    Only(Class, ScalarOp, Option<ScalarType>),
    /// A cast, written `to.from`.
    Cast(ScalarType, ScalarType),
    /// A constant of a type, such as `f32.highest`.
    Constant(ScalarType, Constant),
    /// A pattern; `width` is the number of arrays of `map`, `zip` and `unzip`.
    Pattern(Prim, usize),
    /// A mode of `pad`.
    Mode(PadMode),
    /// `id`.
    Id,
    /// `length`.
    Length,
    /// `highest` or `lowest`, of the type that the context requires.
    Extreme {
        /// Whether it is the greatest value.
        highest: bool,
    },
}

/// Constants in the name space of a scalar type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Constant {
    /// The greatest value; infinite for floats.
    Highest,
    /// The least value; minus infinity for floats.
    Lowest,
    /// Infinity.
    Inf,
    /// Not a number.
    Nan,
    /// The ratio of a circle's circumference to its diameter.
    Pi,
    /// The base of the natural logarithm.
    E,
}

/// The kind of a pattern's argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// A function.
    Fun,
    /// A size known before the program runs.
    Size,
    /// A dimension: 0, 1 or 2.
    Dim,
    /// A mode of `pad`.
    Mode,
    /// A value.
    Value,
}

const PATTERNS: [(&str, Prim, usize); 63] = [
    ("map", Prim::Map, 1),
    ("map1", Prim::Map, 1),
    ("map2", Prim::Map, 2),
    ("map3", Prim::Map, 3),
    ("map4", Prim::Map, 4),
    ("map5", Prim::Map, 5),
    ("zip", Prim::Zip, 2),
    ("zip2", Prim::Zip, 2),
    ("zip3", Prim::Zip, 3),
    ("zip4", Prim::Zip, 4),
    ("zip5", Prim::Zip, 5),
    ("unzip", Prim::Unzip, 2),
    ("unzip2", Prim::Unzip, 2),
    ("unzip3", Prim::Unzip, 3),
    ("unzip4", Prim::Unzip, 4),
    ("unzip5", Prim::Unzip, 5),
    ("reduce", Prim::Reduce, 1),
    ("reduce_comm", Prim::ReduceComm, 1),
    ("reducePart", Prim::ReducePart, 1),
    ("scan", Prim::Scan(ScanKind::Assoc), 1),
    ("scan_exclusive", Prim::Scan(ScanKind::Exclusive), 1),
    ("exscan", Prim::Scan(ScanKind::Exclusive), 1),
    ("split", Prim::Split, 1),
    ("join", Prim::Join, 1),
    ("transpose", Prim::Transpose, 1),
    ("iterate", Prim::Iterate, 1),
    ("reorder", Prim::Reorder, 1),
    ("slide", Prim::Slide, 1),
    ("pad", Prim::Pad(PadMode::Clamp), 1),
    ("gather", Prim::Gather, 1),
    ("scatter", Prim::Scatter, 1),
    ("histogram", Prim::Histogram, 1),
    ("counting_sort", Prim::CountingSort, 1),
    (FEW, Prim::Few, 1),
    (SORTED, Prim::Sorted, 2),
    (IN_ORDER, Prim::InOrder, 1),
    ("iota", Prim::Iota, 1),
    ("replicate", Prim::Replicate, 1),
    ("generate", Prim::Generate, 1),
    ("concat", Prim::Concat, 1),
    ("take", Prim::Take, 1),
    ("drop", Prim::Drop, 1),
    ("reverse", Prim::Reverse, 1),
    ("rotate", Prim::Rotate, 1),
    ("mapWrg", Prim::MapWrg(0), 1),
    ("mapLcl", Prim::MapLcl(0), 1),
    ("mapGlb", Prim::MapGlb(0), 1),
    ("mapSeq", Prim::MapSeq, 1),
    ("mapUnroll", Prim::MapUnroll, 1),
    ("mapWarp", Prim::MapWarp, 1),
    ("mapLane", Prim::MapLane, 1),
    ("reduceSeq", Prim::ReduceSeq, 1),
    ("reduceUnroll", Prim::ReduceUnroll, 1),
    ("scanSeq", Prim::Scan(ScanKind::Seq), 1),
    ("iterateSeq", Prim::IterateSeq, 1),
    ("toGlobal", Prim::ToGlobal, 1),
    ("toLocal", Prim::ToLocal, 1),
    ("toPrivate", Prim::ToPrivate, 1),
    ("reorderStride", Prim::ReorderStride, 1),
    ("asVector", Prim::AsVector, 1),
    ("asScalar", Prim::AsScalar, 1),
    ("vectorize", Prim::Vectorize, 1),
    ("vectorise", Prim::Vectorize, 1),
];

/// The name of [`Prim::Few`].
const FEW: &str = "few";

/// The name of [`Prim::Sorted`].
const SORTED: &str = "sorted";

/// The name of [`Prim::InOrder`].
const IN_ORDER: &str = "in_order";

/// Whether only the prelude knows a name.
pub fn is_internal(name: &str) -> bool {
    [FEW, SORTED, IN_ORDER].contains(&name)
}

/// Returns the built-in with this name.
pub fn lookup(name: &str) -> Option<Builtin> {
    if let Some((ty, member)) = name.split_once('.') {
        return qualified(ScalarType::from_name(ty)?, member);
    }
    if let Some(op) = scalar_op::function(name) {
        return Some(Builtin::Scalar(op, None));
    }
    if let Some((_, prim, width)) = PATTERNS.iter().find(|(n, ..)| *n == name) {
        return Some(Builtin::Pattern(*prim, *width));
    }
    match name {
        "pow" => Some(Builtin::Only(Class::Float, ScalarOp::Pow, None)),
        "fmod" => Some(Builtin::Only(Class::Float, ScalarOp::Rem, None)),
        "//" => Some(Builtin::Only(Class::Integer, ScalarOp::Div, None)),
        "%%" => Some(Builtin::Only(Class::Integer, ScalarOp::Rem, None)),
        "id" => Some(Builtin::Id),
        "length" => Some(Builtin::Length),
        "highest" => Some(Builtin::Extreme { highest: true }),
        "lowest" => Some(Builtin::Extreme { highest: false }),
        "wrap" => Some(Builtin::Mode(PadMode::Wrap)),
        "mirror" => Some(Builtin::Mode(PadMode::Mirror)),
        _ => None,
    }
}

fn qualified(ty: ScalarType, member: &str) -> Option<Builtin> {
    if let Some(from) = ScalarType::from_name(member) {
        return Some(Builtin::Cast(ty, from));
    }
    let constant = match member {
        "highest" => Some(Constant::Highest),
        "lowest" => Some(Constant::Lowest),
        "inf" if ty.is_float() => Some(Constant::Inf),
        "nan" if ty.is_float() => Some(Constant::Nan),
        "pi" if ty.is_float() => Some(Constant::Pi),
        "e" if ty.is_float() => Some(Constant::E),
        _ => None,
    };
    if let Some(constant) = constant {
        return Some(Builtin::Constant(ty, constant));
    }
    if let Some((Operator::Scalar(op), _)) = binary_operator(member) {
        return Some(Builtin::Scalar(op, Some(ty)));
    }
    match lookup(member)? {
        // Futhark's name of the complement.
        Builtin::Scalar(ScalarOp::Not, None) if ty.is_integer() => {
            Some(Builtin::Scalar(ScalarOp::BitNot, Some(ty)))
        }
        Builtin::Scalar(op, None) => Some(Builtin::Scalar(op, Some(ty))),
        Builtin::Only(class, op, None) => Some(Builtin::Only(class, op, Some(ty))),
        _ => None,
    }
}

/// Returns every unqualified name, for suggestions.
pub fn names() -> impl Iterator<Item = &'static str> {
    let scalars = scalar_op::FUNCTIONS.iter().map(|(n, _)| *n);
    scalars
        .chain(PATTERNS.iter().map(|(n, ..)| *n).filter(|n| !is_internal(n)))
        .chain(["pow", "fmod", "id", "length", "highest", "lowest"])
}

/// Returns the names that stand behind the name of a type, for suggestions.
pub fn members() -> impl Iterator<Item = &'static str> {
    let constants = ["highest", "lowest", "inf", "nan", "pi", "e", "pow", "fmod"];
    scalar_op::FUNCTIONS.iter().map(|(n, _)| *n).chain(constants)
}

/// Returns the name of a pattern.
pub fn pattern_name(prim: Prim, width: usize) -> &'static str {
    let same = |p: Prim| match (p, prim) {
        (Prim::Scan(a), Prim::Scan(b)) => a == b,
        // Dimensions and modes are arguments.
        _ => std::mem::discriminant(&p) == std::mem::discriminant(&prim),
    };
    PATTERNS.iter().find(|(_, p, w)| same(*p) && *w == width).map_or("pattern", |(n, ..)| n)
}

impl Prim {
    /// Returns the name of the pattern in programs, without the number of its arrays.
    pub fn name(self) -> &'static str {
        pattern_name(self, if matches!(self, Prim::Zip | Prim::Unzip) { 2 } else { 1 })
    }
}

/// Returns the spelling of a scalar operation.
pub fn op_name(op: ScalarOp) -> &'static str {
    match op {
        ScalarOp::Neg => "-",
        ScalarOp::Not => "!",
        ScalarOp::BitNot => "~",
        ScalarOp::Cast(ty) => ty.name(),
        _ => op.infix().map(|(text, _)| text).or(op.function()).unwrap_or("?"),
    }
}

/// Returns the kinds of a pattern's arguments, in order. `vectorize` takes further values, one for each parameter
/// of its function.
pub fn slots(prim: Prim, width: usize) -> Vec<Slot> {
    use Slot::{Dim, Fun, Mode, Size, Value};
    match prim {
        Prim::Map => [Fun].into_iter().chain([Value; 5].into_iter().take(width)).collect(),
        Prim::Zip => vec![Value; width],
        Prim::MapWrg(_) | Prim::MapLcl(_) | Prim::MapGlb(_) => vec![Dim, Fun, Value],
        Prim::MapSeq | Prim::MapUnroll | Prim::MapWarp | Prim::MapLane => vec![Fun, Value],
        Prim::ToGlobal | Prim::ToLocal | Prim::ToPrivate => vec![Fun, Value],
        Prim::Unzip
        | Prim::Join
        | Prim::Transpose
        | Prim::Reorder
        | Prim::Reverse
        | Prim::AsScalar => vec![Value],
        Prim::Reduce | Prim::ReduceComm | Prim::Scan(_) | Prim::ReduceSeq | Prim::ReduceUnroll => {
            vec![Fun, Value, Value]
        }
        Prim::ReducePart => vec![Fun, Value, Size, Value],
        Prim::Split
        | Prim::Replicate
        | Prim::Take
        | Prim::Drop
        | Prim::Rotate
        | Prim::ReorderStride
        | Prim::AsVector => vec![Size, Value],
        Prim::Iterate | Prim::IterateSeq => vec![Size, Fun, Value],
        Prim::Slide => vec![Size, Size, Value],
        Prim::Pad(_) => vec![Size, Size, Mode, Value],
        Prim::Gather | Prim::Concat => vec![Value, Value],
        Prim::Scatter => vec![Value, Value, Value],
        Prim::Histogram => vec![Fun, Value, Size, Value, Value],
        Prim::CountingSort => vec![Size, Value, Value],
        Prim::Few => vec![Value],
        Prim::Sorted => vec![Value, Value],
        Prim::InOrder => vec![Value, Value, Value],
        Prim::Iota => vec![Size],
        Prim::Generate => vec![Size, Fun],
        Prim::Vectorize => vec![Size, Fun],
    }
}

impl Builtin {
    /// Returns the number of arguments (for `vectorize`, without those of its function).
    pub fn arity(self) -> usize {
        match self {
            Builtin::Scalar(op, _) | Builtin::Only(_, op, _) => op.arity(),
            Builtin::Cast(..) | Builtin::Id | Builtin::Length => 1,
            Builtin::Constant(..) | Builtin::Mode(_) | Builtin::Extreme { .. } => 0,
            Builtin::Pattern(prim, width) => slots(prim, width).len(),
        }
    }

    /// Whether it takes scalars alone.
    pub fn is_scalar(self) -> bool {
        matches!(self, Builtin::Scalar(..) | Builtin::Only(..) | Builtin::Cast(..))
    }

    /// Returns the name.
    pub fn name(self) -> String {
        match self {
            Builtin::Scalar(op, None) => op_name(op).to_owned(),
            Builtin::Scalar(op, Some(ty)) => format!("{ty}.{}", op_name(op)),
            Builtin::Only(class, op, ty) => {
                let name = match (class, op) {
                    (Class::Integer, ScalarOp::Div) => "//",
                    (Class::Integer, _) => "%%",
                    (_, ScalarOp::Pow) => "pow",
                    _ => "fmod",
                };
                ty.map_or(name.to_owned(), |ty| format!("{ty}.{name}"))
            }
            Builtin::Cast(to, from) => format!("{to}.{from}"),
            Builtin::Constant(ty, _) => format!("{ty} constant"),
            Builtin::Pattern(prim, width) => pattern_name(prim, width).to_owned(),
            Builtin::Mode(PadMode::Wrap) => "wrap".to_owned(),
            Builtin::Mode(_) => "mirror".to_owned(),
            Builtin::Id => "id".to_owned(),
            Builtin::Length => "length".to_owned(),
            Builtin::Extreme { highest: true } => "highest".to_owned(),
            Builtin::Extreme { highest: false } => "lowest".to_owned(),
        }
    }
}
