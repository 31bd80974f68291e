//! Values of programs: inputs, results and everything in between, as the interpreter represents them.
//!
//! A value is the list of its *components*: tuples are flattened from left to right, and an array of tuples
//! is stored as one array for each component (structure of arrays), exactly as device buffers are. So `zip`
//! and `unzip` change nothing, and an n-ary tuple `(a, b, c)` and the nested pairs `(a, (b, c))` are the same
//! value. Vectors are a trailing dimension. Types ([`Shape`]) say what tuples and dimensions mean. This
//! module neither reads files nor talks to devices.

mod agree;
mod array;
mod cell;
mod compare;
mod doubt;
mod float;
pub mod number;
mod show;
mod spread;
mod view;

pub use agree::{Disagreement, agree};
pub(super) use array::room;
pub use array::{Array, Column};
pub use cell::Cell;
pub use compare::{Comparison, Slack, Tolerance, compare, compare_at, compare_values};
pub use float::value as of_floats;
pub use spread::Spread;
pub(super) use view::padded;

use crate::lang::types::ScalarType;
use std::fmt;

/// A type whose sizes all have values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One element.
    Scalar(ScalarType),
    /// A vector of that many elements.
    Vector(usize, ScalarType),
    /// Components; without any, the unit type.
    Tuple(Vec<Shape>),
    /// `[n]t`.
    Array(usize, Box<Shape>),
}

impl Shape {
    /// `[n]t`.
    pub fn array(n: usize, t: Shape) -> Shape {
        Shape::Array(n, Box::new(t))
    }

    /// Components in order: element type and dimensions, outermost first, a vector's width last.
    pub fn components(&self) -> Vec<(ScalarType, Vec<usize>)> {
        match self {
            Shape::Scalar(s) => vec![(*s, vec![])],
            Shape::Vector(w, s) => vec![(*s, vec![*w])],
            Shape::Tuple(ts) => ts.iter().flat_map(Shape::components).collect(),
            Shape::Array(n, t) => {
                let mut inner = t.components();
                for (_, dims) in &mut inner {
                    dims.insert(0, *n);
                }
                inner
            }
        }
    }

    /// Number of components.
    pub fn width(&self) -> usize {
        match self {
            Shape::Scalar(_) | Shape::Vector(..) => 1,
            Shape::Tuple(ts) => ts.iter().map(Shape::width).sum(),
            Shape::Array(_, t) => t.width(),
        }
    }

    /// Whether this is a scalar, or tuples of scalars.
    pub fn is_scalar(&self) -> bool {
        match self {
            Shape::Scalar(_) => true,
            Shape::Tuple(ts) => ts.iter().all(Shape::is_scalar),
            Shape::Vector(..) | Shape::Array(..) => false,
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shape::Scalar(s) => write!(f, "{s}"),
            Shape::Vector(w, s) => write!(f, "{s}x{w}"),
            Shape::Tuple(ts) => {
                let parts: Vec<String> = ts.iter().map(Shape::to_string).collect();
                write!(f, "({})", parts.join(", "))
            }
            Shape::Array(n, t) => write!(f, "[{n}]{t}"),
        }
    }
}

/// One component of a value.
#[derive(Clone, Debug)]
pub enum Leaf {
    /// A component without dimensions.
    Scalar(ScalarType, Cell),
    /// A component with one dimension or more.
    Array(Array),
}

impl Leaf {
    /// Element type.
    pub fn ty(&self) -> ScalarType {
        match self {
            Leaf::Scalar(ty, _) => *ty,
            Leaf::Array(a) => a.ty(),
        }
    }

    /// Lengths, outermost first.
    pub fn shape(&self) -> Vec<usize> {
        match self {
            Leaf::Scalar(..) => vec![],
            Leaf::Array(a) => a.shape(),
        }
    }

    /// Number of elements.
    pub fn count(&self) -> usize {
        match self {
            Leaf::Scalar(..) => 1,
            Leaf::Array(a) => a.count(),
        }
    }

    /// Returns the least positive magnitude of its floats; 0 if there is none.
    pub fn least_magnitude(&self) -> f64 {
        let mut least = f64::INFINITY;
        self.for_each(&mut |c| {
            if c.mag() > 0.0 {
                least = least.min(c.mag());
            }
        });
        if self.ty().is_float() && least.is_finite() { least } else { 0.0 }
    }

    /// Calls `f` on every element in row-major order.
    pub fn for_each(&self, f: &mut dyn FnMut(Cell)) {
        match self {
            Leaf::Scalar(_, c) => f(*c),
            Leaf::Array(a) => a.for_each(f),
        }
    }

    /// Returns the component as a device buffer holds it: row-major, little-endian, floats rounded to the
    /// type, one byte for a bool.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "elements are in their type's range, floats are to be rounded"
    )]
    pub fn bytes(&self) -> Vec<u8> {
        let ty = self.ty();
        let mut out = Vec::with_capacity(self.count() * ty.bytes());
        self.for_each(&mut |c| match ty {
            ScalarType::F16 => {
                out.extend_from_slice(&half::f16::from_f64(c.as_float()).to_le_bytes());
            }
            ScalarType::BF16 => {
                let nearest = half::bf16::from_f32(c.as_float() as f32);
                out.extend_from_slice(&nearest.to_le_bytes());
            }
            ScalarType::F32 => out.extend_from_slice(&(c.as_float() as f32).to_le_bytes()),
            _ => out.extend_from_slice(&c.bits.to_le_bytes()[..ty.bytes()]),
        });
        out
    }

    /// Reads a component of these dimensions from a device buffer; `None` when the length differs.
    pub fn from_bytes(ty: ScalarType, shape: &[usize], bytes: &[u8]) -> Option<Leaf> {
        let count = room(shape).ok()?;
        if bytes.len() != count.checked_mul(ty.bytes())? {
            return None;
        }
        // The fast path: inputs of millions of elements nearly always have this type.
        let bits = match ty {
            ScalarType::F32 => {
                let float = |e: &[u8; 4]| f64::from(f32::from_le_bytes(*e)).to_bits();
                bytes.as_chunks().0.iter().map(float).collect()
            }
            _ => bytes.chunks_exact(ty.bytes()).map(|e| decode(ty, e).bits).collect(),
        };
        Some(Leaf::from_column(ty, Column::plain(ty, bits), shape))
    }

    fn from_column(ty: ScalarType, column: Column, shape: &[usize]) -> Leaf {
        let array = column.finish(shape);
        match array.get([]) {
            Some(cell) => Leaf::Scalar(ty, cell),
            None => Leaf::Array(array),
        }
    }
}

/// Decodes one element of a device buffer, which has the type's own length.
fn decode(ty: ScalarType, element: &[u8]) -> Cell {
    let mut word = [0; 8];
    word[..element.len()].copy_from_slice(element);
    let raw = u64::from_le_bytes(word);
    #[expect(clippy::cast_possible_truncation, reason = "the bytes above the type's width are 0")]
    match ty {
        ScalarType::F16 => Cell::float(ty, half::f16::from_bits(raw as u16).to_f64()),
        ScalarType::BF16 => Cell::float(ty, half::bf16::from_bits(raw as u16).to_f64()),
        ScalarType::F32 => Cell::float(ty, f64::from(f32::from_bits(raw as u32))),
        ScalarType::F64 => Cell::float(ty, f64::from_bits(raw)),
        ScalarType::Bool => Cell::bool(raw != 0),
        _ => Cell::from_int(ty, i128::from(raw)),
    }
}

/// A value. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Value {
    leaves: Vec<Leaf>,
}

impl Value {
    /// The value of the unit type.
    pub fn unit() -> Value {
        Value::default()
    }

    /// The value with these components.
    pub fn new(leaves: Vec<Leaf>) -> Value {
        Value { leaves }
    }

    /// One scalar.
    pub fn scalar(ty: ScalarType, cell: Cell) -> Value {
        Value::new(vec![Leaf::Scalar(ty, cell)])
    }

    /// A tuple, whose components are those of its parts in order.
    pub fn tuple(parts: impl IntoIterator<Item = Value>) -> Value {
        Value::new(parts.into_iter().flat_map(|v| v.leaves).collect())
    }

    /// Floats of type `ty` in row-major order, rounded; `shape` gives their number.
    pub fn floats(ty: ScalarType, shape: &[usize], xs: &[f64]) -> Value {
        Value::cells(ty, shape, xs.iter().map(|x| Cell::float(ty, number::round(ty, *x))))
    }

    /// Integers of type `ty` in row-major order, wrapped; `shape` gives their number.
    pub fn ints(ty: ScalarType, shape: &[usize], xs: &[i64]) -> Value {
        Value::cells(ty, shape, xs.iter().map(|x| Cell::from_int(ty, i128::from(*x))))
    }

    /// One component from its elements in row-major order. Missing elements are 0, extra ones are ignored.
    pub fn cells(ty: ScalarType, shape: &[usize], xs: impl IntoIterator<Item = Cell>) -> Value {
        let count = shape.iter().product();
        let zeros = std::iter::repeat(Cell::default());
        let mut column = Column::new(ty, count);
        xs.into_iter().chain(zeros).take(count).for_each(|c| column.push(c));
        Value::new(vec![Leaf::from_column(ty, column, shape)])
    }

    /// Reads a value of a shape from device buffers, one for each component.
    ///
    /// # Errors
    /// A text, when the number of components or the length of one differs.
    pub fn from_bytes(shape: &Shape, buffers: &[impl AsRef<[u8]>]) -> Result<Value, String> {
        let specs = shape.components();
        if specs.len() != buffers.len() {
            return Err(format!("{} buffers for the {} of `{shape}`", buffers.len(), specs.len()));
        }
        let leaves = specs.iter().zip(buffers).enumerate().map(|(i, ((ty, dims), buffer))| {
            let bytes = buffer.as_ref();
            Leaf::from_bytes(*ty, dims, bytes)
                .ok_or_else(|| format!("component {i} of `{shape}` has {} bytes", bytes.len()))
        });
        leaves.collect::<Result<_, _>>().map(Value::new)
    }

    /// Returns the components as device buffers hold them, with tuples flattened from left to right.
    pub fn components(&self) -> Vec<(ScalarType, Vec<u8>)> {
        self.leaves.iter().map(|l| (l.ty(), l.bytes())).collect()
    }

    /// Components.
    pub fn leaves(&self) -> &[Leaf] {
        &self.leaves
    }

    /// Returns the components, consuming the value.
    pub fn into_leaves(self) -> Vec<Leaf> {
        self.leaves
    }

    /// Returns the components `range` of a tuple; none for a range out of bounds.
    #[must_use]
    pub fn part(&self, range: std::ops::Range<usize>) -> Value {
        Value::new(self.leaves.get(range).unwrap_or_default().to_vec())
    }

    /// Checks that the value has this shape.
    ///
    /// # Errors
    /// A text that says how it differs.
    pub fn conforms(&self, shape: &Shape) -> Result<(), String> {
        let want = shape.components();
        if want.len() != self.leaves.len() {
            return Err(format!(
                "`{shape}` has {} components, the value {}",
                want.len(),
                self.leaves.len()
            ));
        }
        for (i, (leaf, (ty, dims))) in self.leaves.iter().zip(&want).enumerate() {
            if leaf.ty() != *ty || leaf.shape() != *dims {
                return Err(format!(
                    "component {i} should be {ty} with dimensions {dims:?}, and is {} with {:?}",
                    leaf.ty(),
                    leaf.shape()
                ));
            }
        }
        Ok(())
    }

    /// Whether types, dimensions and the bits of every element are the same; all NaNs count as one.
    pub fn same_bits(&self, other: &Value) -> bool {
        self.agrees(other, |ty, x, y| {
            x.bits == y.bits || ty.is_float() && x.as_float().is_nan() && y.as_float().is_nan()
        })
    }

    /// Whether types, dimensions, the bits of every element and the bounds on their errors are the same.
    pub fn same(&self, other: &Value) -> bool {
        self.agrees(other, |_, x, y| x.same(y))
    }

    /// Whether types and dimensions are the same, and `same` holds for all pairs of corresponding elements.
    fn agrees(&self, other: &Value, same: impl Fn(ScalarType, Cell, Cell) -> bool) -> bool {
        let outline =
            |v: &Value| -> Vec<_> { v.leaves.iter().map(|l| (l.ty(), l.shape())).collect() };
        outline(self) == outline(other)
            && self.leaves.iter().zip(&other.leaves).all(|(a, b)| {
                let mut elements = Vec::with_capacity(b.count());
                b.for_each(&mut |c| elements.push(c));
                let mut others = elements.into_iter();
                let mut equal = true;
                a.for_each(&mut |x| equal &= others.next().is_some_and(|y| same(a.ty(), x, y)));
                equal
            })
    }

    /// Returns every element as `f64` in row-major order, components one after another.
    pub fn to_floats(&self) -> Vec<f64> {
        let mut out = vec![];
        for leaf in &self.leaves {
            let ty = leaf.ty();
            leaf.for_each(&mut |c| {
                out.push(if ty.is_float() { c.as_float() } else { c.as_wide(ty) as f64 });
            });
        }
        out
    }

    /// Returns every element of integer or bool components in row-major order; floats are left out.
    pub fn to_ints(&self) -> Vec<i128> {
        let mut out = vec![];
        for leaf in self.leaves.iter().filter(|l| !l.ty().is_float()) {
            leaf.for_each(&mut |c| out.push(c.as_wide(leaf.ty())));
        }
        out
    }
}

/// Compares types, dimensions and elements, but not magnitudes; NaN equals NaN, and -0 equals 0.
impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        self.agrees(other, |ty, x, y| {
            let (p, q) = (x.as_float(), y.as_float());
            x.bits == y.bits || ty.is_float() && (p == q || p.is_nan() && q.is_nan())
        })
    }
}

/// Shows every component with its elements in row-major order, for debugging.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, leaf) in self.leaves.iter().enumerate() {
            if i > 0 {
                write!(f, ", ")?;
            }
            let mut elements = vec![];
            leaf.for_each(&mut |c| elements.push(c.show(leaf.ty())));
            match leaf {
                Leaf::Scalar(..) => write!(f, "{}", elements.join(" "))?,
                Leaf::Array(_) => write!(f, "{:?}[{}]", leaf.shape(), elements.join(" "))?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
