//! What the interpreter executes: a program resolved to registers and slots, all sizes known.
//!
//! Both front ends, the one of the surface core and the one of closed terms, compile to this once
//! and run it many times. Scalars (and tuples of scalars) live in registers, one for each component;
//! everything else in slots. There is no recursion, so that each variable has one fixed place.
//! Nothing here evaluates.

use crate::calculus::value::{Cell, Value};
use crate::diag::Span;
use crate::lang::typed::{PadMode, ScalarOp};
use crate::lang::types::ScalarType;
use std::ops::Range;
use std::sync::Arc;

/// Who to blame: the pattern and where it stands.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// As a person knows it.
    pub name: &'static str,
    /// In the source, if there is one.
    pub span: Option<Span>,
}

/// Where a variable lives.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// So many registers from `base`.
    Regs {
        /// The first.
        base: usize,
        /// How many.
        n: usize,
    },
    /// A slot, holding a value of so many components.
    Slot {
        /// Which.
        slot: usize,
        /// Components.
        n: usize,
    },
}

/// A computation of either kind.
#[derive(Clone, Debug)]
pub enum Code {
    /// Of scalars.
    Cells(Cells),
    /// Of anything else.
    Value(Values),
}

/// A computation of scalars, one cell for each component.
#[derive(Clone, Debug)]
pub enum Cells {
    /// One constant.
    Const(Cell),
    /// One register.
    Reg(usize),
    /// One result.
    Op(Box<Op>),
    /// Several, each with its number of cells.
    Tuple(Vec<(Cells, usize)>),
    /// Condition, then, else, and the types of either; lazy.
    If(Box<(Cells, Cells, Cells, Vec<ScalarType>)>),
    /// Put in place, then go on.
    Let(Box<(Place, Code, Cells)>),
    /// A loop whose accumulator lives in registers.
    Loop(Box<Loop>),
    /// A fold whose accumulator lives in registers.
    Fold(Box<Fold>),
    /// An element of an array of scalars.
    Index(Box<Index>),
    /// The cells of a value without dimensions.
    Unpack(Box<Values>),
}

/// A scalar operation.
#[derive(Clone, Debug)]
pub struct Op {
    /// Which.
    pub op: ScalarOp,
    /// Type of the operands.
    pub from: ScalarType,
    /// Type of the result.
    pub to: ScalarType,
    /// Whether floats stay unrounded.
    pub exact: bool,
    /// As many as the operation takes, each of one cell.
    pub args: Vec<Cells>,
    /// For faults.
    pub site: Site,
}

/// `array[i, j, ...]`, as many indices as dimensions.
#[derive(Clone, Debug)]
pub struct Index {
    /// The array.
    pub array: Values,
    /// Each index with its type.
    pub at: Vec<(Cells, ScalarType)>,
    /// So many registers, and one more for each cell of the element.
    pub scratch: usize,
    /// For faults.
    pub site: Site,
}

/// A loop; its result is left in `acc`.
#[derive(Clone, Debug)]
pub struct Loop {
    /// The accumulator.
    pub acc: Place,
    /// As many registers as the accumulator has, for its next value.
    pub next: usize,
    /// The types of its components.
    pub types: Vec<ScalarType>,
    /// Its first value.
    pub init: Code,
    /// What ends it.
    pub until: Until,
    /// The next accumulator.
    pub body: Code,
}

/// What ends a loop.
#[derive(Clone, Debug)]
pub enum Until {
    /// Counts from zero in a register up to a bound of a type.
    Bound(usize, Cells, ScalarType),
    /// Goes on while it is true.
    Not(Cells),
}

/// A function of two parameters with the value its first one starts with.
#[derive(Clone, Debug)]
pub struct Operator {
    /// First parameter.
    pub acc: Place,
    /// As many registers as the accumulator has, for its next value.
    pub next: usize,
    /// The types of its components.
    pub types: Vec<ScalarType>,
    /// Second parameter.
    pub x: Place,
    /// The next accumulator.
    pub body: Code,
    /// The first accumulator.
    pub init: Code,
}

/// A fold from the left; its result is left in the operator's accumulator.
#[derive(Clone, Debug)]
pub struct Fold {
    /// The operator.
    pub op: Operator,
    /// Of a fold that devices may do in this order, the operator with every operation rounded: how far that drifts
    /// away is no error.
    pub drift: Option<Operator>,
    /// The array.
    pub xs: Values,
    /// Its length.
    pub n: usize,
    /// For faults.
    pub site: Site,
}

/// Element type and dimensions of each component of a row.
pub type Row = Vec<(ScalarType, Vec<usize>)>;

/// One function, applied to every row.
#[derive(Clone, Debug)]
pub struct Map {
    /// The function's parameters; their components together are the components of `xs`.
    pub params: Vec<Place>,
    /// Its body.
    pub body: Code,
    /// As many registers as the body has cells.
    pub next: usize,
    /// The rows.
    pub xs: Values,
    /// How many.
    pub n: usize,
    /// What the body gives.
    pub row: Row,
    /// For faults.
    pub site: Site,
}

/// An inclusive scan.
#[derive(Clone, Debug)]
pub struct Scan {
    /// The fold it shows the steps of.
    pub fold: Fold,
    /// What the accumulator is.
    pub row: Row,
}

/// Folds into one of `m` accumulators each.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// The operator.
    pub op: Operator,
    /// How many accumulators.
    pub m: usize,
    /// Into which; one component.
    pub is: Values,
    /// What.
    pub vs: Values,
    /// What the accumulators are.
    pub row: Row,
    /// For faults.
    pub site: Site,
}

/// A rearrangement of one array; see the functions of [`Value`] of these names.
#[derive(Clone, Copy, Debug)]
pub enum View {
    /// Chunk length and number of chunks.
    Split(usize, usize),
    /// Rows to one.
    Join,
    /// Two dimensions exchanged.
    Transpose,
    /// That dimension becomes the last.
    Inward(usize),
    /// The last dimension becomes that one.
    Outward(usize),
    /// Backwards.
    Reverse,
    /// First element and how many.
    Slice(usize, usize),
    /// Width, step, how many windows.
    Slide(usize, usize, usize),
    /// Of a whole, so many.
    Replicate(usize),
    /// Of each row, so many.
    ReplicateRows(usize),
    /// Strided by so much.
    Stride(usize),
    /// Rotated by so much.
    Rotate(usize),
    /// So many before, and how long it becomes.
    Pad(PadMode, usize, usize),
    /// How long it becomes.
    PadLast(usize),
    /// The only element.
    Only,
}

/// Which indices of a dimension are chosen, in this order; `None` is all of them.
pub type Axis = Option<Arc<[usize]>>;

/// A computation of a value.
#[derive(Clone, Debug)]
pub enum Values {
    /// A constant.
    Given(Value),
    /// What a slot holds.
    Slot(usize),
    /// Some components of a slot, or of another value.
    Part(Box<Values>, Range<usize>),
    /// Components one after another.
    Tuple(Vec<Values>),
    /// Scalars as a value, by way of registers from the number on.
    Pack(Box<Cells>, usize, Vec<ScalarType>),
    /// Condition, then, else; lazy.
    If(Box<(Cells, Values, Values)>),
    /// Put in place, then go on.
    Let(Box<(Place, Code, Values)>),
    /// A loop whose accumulator lives in a slot.
    Loop(Box<Loop>),
    /// A fold whose accumulator lives in a slot.
    Fold(Box<Fold>),
    /// A rearrangement.
    View(View, Box<Values>, Site),
    /// Of an array, or of arrays of the same leading lengths, what is chosen in each leading dimension.
    Pick(Box<Values>, Vec<Axis>),
    /// The rows of one, then of the other.
    Concat(Box<(Values, Values)>, Site),
    /// The filling, the array; so many before, and how long it becomes.
    PadWith(Box<(Values, Values)>, usize, usize, Site),
    /// One row, an array itself.
    Row(Box<(Values, Cells)>, ScalarType, Site),
    /// Rows of an array by an array of indices.
    Gather(Box<(Values, Values)>, Site),
    /// Destination, indices, rows.
    Scatter(Box<(Values, Values, Values)>, Site),
    /// From 0, so many.
    Iota(usize, ScalarType),
    /// See [`Map`].
    Map(Box<Map>),
    /// See [`Scan`].
    Scan(Box<Scan>),
    /// See [`Histogram`].
    Histogram(Box<Histogram>),
}
