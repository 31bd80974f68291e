//! The code that the interpreter executes: a program resolved to registers and slots, with all sizes known.
//!
//! Both front ends, that of the surface core and that of closed terms, compile to this code once and run it
//! many times. Scalars (and tuples of scalars) are in registers, one for each component; everything else is
//! in slots. There is no recursion, so each variable has one fixed place. This module evaluates nothing.

use crate::calculus::value::{Cell, Value};
use crate::diag::Span;
use crate::lang::typed::{PadMode, ScalarOp};
use crate::lang::types::ScalarType;
use std::ops::Range;
use std::sync::Arc;

/// The pattern that an error is attributed to, and its place.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// The name of the pattern for people.
    pub name: &'static str,
    /// The place in the source, if there is one.
    pub span: Option<Span>,
}

/// The place of a variable.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// `n` registers from `base` on.
    Regs {
        /// The first register.
        base: usize,
        /// The number of registers.
        n: usize,
    },
    /// A slot with a value of `n` components.
    Slot {
        /// The slot.
        slot: usize,
        /// The number of components.
        n: usize,
    },
}

/// A computation of either kind.
#[derive(Clone, Debug)]
pub enum Code {
    /// A computation of scalars.
    Cells(Cells),
    /// A computation of anything else.
    Value(Values),
}

/// A computation of scalars, one cell for each component.
#[derive(Clone, Debug)]
pub enum Cells {
    /// One constant.
    Const(Cell),
    /// One register.
    Reg(usize),
    /// The result of one operation.
    Op(Box<Op>),
    /// Several computations, each with its number of cells.
    Tuple(Vec<(Cells, usize)>),
    /// Condition, then, else, and the types of either branch; lazy.
    If(Box<(Cells, Cells, Cells, Vec<ScalarType>)>),
    /// Stores code in a place, then evaluates the cells.
    Let(Box<(Place, Code, Cells)>),
    /// A loop whose accumulator is in registers.
    Loop(Box<Loop>),
    /// A fold whose accumulator is in registers.
    Fold(Box<Fold>),
    /// An element of an array of scalars.
    Index(Box<Index>),
    /// The cells of a value without dimensions.
    Unpack(Box<Values>),
}

/// A scalar operation.
#[derive(Clone, Debug)]
#[expect(clippy::struct_field_names, reason = "`op` is the name of the operation everywhere")]
pub struct Op {
    /// The operation.
    pub op: ScalarOp,
    /// Type of the operands.
    pub from: ScalarType,
    /// Type of the result.
    pub to: ScalarType,
    /// Whether floats stay unrounded.
    pub exact: bool,
    /// The operands, each of one cell.
    pub args: Vec<Cells>,
    /// The site for errors.
    pub site: Site,
}

/// `array[i, j, ...]`, with as many indices as the array has dimensions.
#[derive(Clone, Debug)]
pub struct Index {
    /// The array.
    pub array: Values,
    /// Each index with its type.
    pub at: Vec<(Cells, ScalarType)>,
    /// The first scratch register: one for each index, then one for each cell of the element.
    pub scratch: usize,
    /// The site for errors.
    pub site: Site,
}

/// A loop, which leaves its result in `acc`.
#[derive(Clone, Debug)]
pub struct Loop {
    /// The accumulator.
    pub acc: Place,
    /// The first of as many spare registers as the accumulator has, for its next value.
    pub next: usize,
    /// The types of its components.
    pub types: Vec<ScalarType>,
    /// The accumulator's initial value.
    pub init: Code,
    /// The condition that ends the loop.
    pub until: Until,
    /// Computes the next accumulator.
    pub body: Code,
}

/// The condition that ends a loop.
#[derive(Clone, Debug)]
pub enum Until {
    /// Counts in a register from zero up to a bound of a type.
    Bound(usize, Cells, ScalarType),
    /// Continues while the condition is true.
    Not(Cells),
}

/// A function of two parameters, with the initial value of the first one.
#[derive(Clone, Debug)]
pub struct Operator {
    /// The first parameter.
    pub acc: Place,
    /// The first of as many spare registers as the accumulator has, for its next value.
    pub next: usize,
    /// The types of its components.
    pub types: Vec<ScalarType>,
    /// The second parameter.
    pub x: Place,
    /// Computes the next accumulator.
    pub body: Code,
    /// The initial accumulator.
    pub init: Code,
}

/// A fold from the left, which leaves its result in the operator's accumulator.
#[derive(Clone, Debug)]
pub struct Fold {
    /// The operator.
    pub op: Operator,
    /// The operator with every operation rounded, if devices may do the fold in this order: the drift of its
    /// result is no error.
    pub drift: Option<Operator>,
    /// The array.
    pub xs: Values,
    /// The length of the array.
    pub n: usize,
    /// The site for errors.
    pub site: Site,
}

/// Element type and dimensions of each component of a row.
pub type Row = Vec<(ScalarType, Vec<usize>)>;

/// A function, applied to every row.
#[derive(Clone, Debug)]
pub struct Map {
    /// The function's parameters; their components together are the components of `xs`.
    pub params: Vec<Place>,
    /// Its body.
    pub body: Code,
    /// Number of operations that the body computes, as [estimated](super::cost).
    pub work: f64,
    /// The first of as many spare registers as the body has cells.
    pub next: usize,
    /// The rows.
    pub xs: Values,
    /// The number of rows.
    pub n: usize,
    /// The result of the body.
    pub row: Row,
    /// The site for errors.
    pub site: Site,
}

/// A scan.
#[derive(Clone, Debug)]
pub struct Scan {
    /// The fold whose steps are the result.
    pub fold: Fold,
    /// Whether a row of the result is the accumulator before a step, and not after it.
    pub exclusive: bool,
    /// The components of the accumulator.
    pub row: Row,
}

/// A histogram: each value is folded into one of `m` accumulators.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// The operator.
    pub op: Operator,
    /// The number of accumulators.
    pub m: usize,
    /// The index of each value's accumulator; one component.
    pub is: Values,
    /// The values.
    pub vs: Values,
    /// The components of an accumulator.
    pub row: Row,
    /// The site for errors.
    pub site: Site,
}

/// A rearrangement of one array; see the methods of [`Value`] of the same names.
#[derive(Clone, Copy, Debug)]
pub enum View {
    /// Chunk length and number of chunks.
    Split(usize, usize),
    /// Joins rows into one array.
    Join,
    /// Exchanges the first two dimensions.
    Transpose,
    /// Makes that dimension the last.
    Inward(usize),
    /// Makes the last dimension that one.
    Outward(usize),
    /// Reverses the order of elements.
    Reverse,
    /// First element and number of elements.
    Slice(usize, usize),
    /// Width, step, number of windows.
    Slide(usize, usize, usize),
    /// That many copies of the whole.
    Replicate(usize),
    /// That many copies of each row.
    ReplicateRows(usize),
    /// Strided by that much.
    Stride(usize),
    /// Rotated by that much.
    Rotate(usize),
    /// Number of elements before, and length of the result.
    Pad(PadMode, usize, usize),
    /// Length of the result.
    PadLast(usize),
    /// The only element.
    Only,
}

/// The chosen indices of a dimension, in order; `None` means all of them.
pub type Axis = Option<Arc<[usize]>>;

/// A computation of a value.
#[derive(Clone, Debug)]
pub enum Values {
    /// A constant.
    Given(Value),
    /// The value in a slot, and the leading lengths that its components share.
    Slot(usize, Arc<[usize]>),
    /// Some components of a slot, or of another value.
    Part(Box<Values>, Range<usize>),
    /// The components of several values, one after another.
    Tuple(Vec<Values>),
    /// Scalars as a value, by way of registers from the number on.
    Pack(Box<Cells>, usize, Vec<ScalarType>),
    /// Condition, then, else; lazy.
    If(Box<(Cells, Values, Values)>),
    /// Stores code in a place, then evaluates the value.
    Let(Box<(Place, Code, Values)>),
    /// A loop whose accumulator is in a slot.
    Loop(Box<Loop>),
    /// A fold whose accumulator is in a slot.
    Fold(Box<Fold>),
    /// A rearrangement.
    View(View, Box<Values>, Site),
    /// The elements of an array, or of arrays with the same leading lengths, that are chosen in each leading
    /// dimension.
    Pick(Box<Values>, Vec<Axis>),
    /// The rows of the first value, then those of the second.
    Concat(Box<(Values, Values)>, Site),
    /// The filling and the array; number of elements before, and length of the result.
    PadWith(Box<(Values, Values)>, usize, usize, Site),
    /// One row, which is an array itself.
    Row(Box<(Values, Cells)>, ScalarType, Site),
    /// The rows of an array at an array of indices.
    Gather(Box<(Values, Values)>, Site),
    /// Destination, indices and rows.
    Scatter(Box<(Values, Values, Values)>, Site),
    /// That many numbers from 0 on.
    Iota(usize, ScalarType),
    /// See [`Map`].
    Map(Box<Map>),
    /// See [`Scan`].
    Scan(Box<Scan>),
    /// See [`Histogram`].
    Histogram(Box<Histogram>),
    /// A counting sort into that many buckets, whose counts have that type: the index of each row's bucket, and the rows.
    CountingSort(usize, ScalarType, Box<(Values, Values)>, Site),
}
