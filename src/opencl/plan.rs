//! The host plan: everything needed to build and run a program's kernels, as plain data.
//!
//! It crosses the process boundary to the worker, goes into the store, and is what `--emit host` prints.

use crate::lang::types::ScalarType;
use serde::{Deserialize, Serialize};

/// Kernels, buffers and launches of one program at one size.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HostPlan {
    /// One OpenCL C translation unit with every kernel.
    pub source: String,
    /// Options for the OpenCL compiler.
    pub options: String,
    /// Every global buffer.
    pub buffers: Vec<Buffer>,
    /// Scalar inputs.
    pub scalars: Vec<Scalar>,
    /// Kernel launches, in order.
    pub launches: Vec<Launch>,
    /// What the host does, where that is more than every launch once, in order: loops over launches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub control: Vec<Control>,
    /// What kernels check of the data. A check that fails writes its position in this list, counted from 1, to the
    /// buffer of [`Role::Faults`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
}

/// One step of the host. Loops are bracketed: from [`Control::Repeat`] to the [`Control::End`] that belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// Launches a kernel: index into [`HostPlan::launches`].
    Launch(usize),
    /// Repeats what follows so many times; without a number, until a [`Control::Check`] ends the loop.
    Repeat(Option<u64>),
    /// Reads the one truth value in a buffer, and leaves the innermost loop when it is false.
    Check(usize),
    /// Exchanges two buffers: what was written is read from now on.
    Swap(usize, usize),
    /// The end of the innermost loop.
    End,
}

impl HostPlan {
    /// What the host does, loops or not.
    pub fn steps(&self) -> Vec<Control> {
        if self.control.is_empty() {
            return (0..self.launches.len()).map(Control::Launch).collect();
        }
        self.control.clone()
    }
}

/// Elements of the buffer of [`Role::Faults`]: the number of the check that failed first, or 0, then the lower and the
/// upper half of the index as an integer of 64 bits, where one was wrong.
pub const FAULT_WORDS: usize = 3;

/// A check that a kernel makes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Fault {
    /// The kernel.
    pub kernel: String,
    /// What is wrong when it fails.
    pub kind: FaultKind,
}

/// What is wrong when a check fails.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// An index lies outside an array.
    Index {
        /// The array's length.
        len: i64,
        /// Buffers that are read there.
        arrays: Vec<String>,
        /// The index's type.
        index: ScalarType,
    },
    /// An integer is divided by zero.
    Division,
    /// An integer has a negative exponent.
    Exponent,
}

impl Fault {
    /// What an index is, or that something else is wrong.
    pub fn text(&self) -> String {
        match &self.kind {
            FaultKind::Index { len, arrays, .. } => {
                let names: Vec<String> = arrays.iter().map(|a| format!("`{a}`")).collect();
                let of = match names.is_empty() {
                    true => String::new(),
                    false => format!(" ({})", names.join(", ")),
                };
                format!("outside an array of {len} elements{of}")
            }
            FaultKind::Division => "integer division by zero".to_owned(),
            FaultKind::Exponent => "a negative integer exponent".to_owned(),
        }
    }
}

impl HostPlan {
    /// What failed, as its faults buffer says; `None` when nothing did.
    pub fn fault(&self, words: &[i32]) -> Option<String> {
        let [number, low, high] = *words else { return None };
        let fault = self.faults.get(usize::try_from(number.checked_sub(1)?).ok()?)?;
        let bits = u64::from(low.cast_unsigned()) | u64::from(high.cast_unsigned()) << 32;
        Some(match &fault.kind {
            FaultKind::Index { index: ScalarType::U64, .. } => {
                format!("index {bits} is {}", fault.text())
            }
            FaultKind::Index { .. } => format!("index {} is {}", bits.cast_signed(), fault.text()),
            FaultKind::Division | FaultKind::Exponent => fault.text(),
        })
    }
}

/// One global buffer of scalars. Arrays of tuples are one buffer for each component.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Buffer {
    /// The name kernels know it by.
    pub name: String,
    /// Element type as stored (`bool` as one byte).
    pub elem: ScalarType,
    /// Number of elements; may be 0 (the runtime then allocates one).
    pub len: usize,
    /// Where its contents come from or go to.
    pub role: Role,
}

/// What a buffer is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Component `.1` of the entry's parameter `.0` (tuples flattened left to right).
    Input(String, usize),
    /// Between kernels.
    Temp,
    /// Component `.0` of the result (tuples flattened left to right). A scalar has length 1.
    Output(usize),
    /// Zeros, and after a run what failed: see [`HostPlan::faults`].
    Faults,
}

/// A scalar argument.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Scalar {
    /// The entry's parameter.
    pub param: String,
    /// Which component of it (tuples flattened).
    pub component: usize,
    /// Its type.
    pub ty: ScalarType,
}

/// One kernel launch. `global` is a multiple of `local` in every dimension; a launch with a zero in
/// `global` is skipped.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Launch {
    /// Kernel function name.
    pub kernel: String,
    /// Arguments, in the kernel's order.
    pub args: Vec<Arg>,
    /// Work-items in each dimension.
    pub global: [usize; 3],
    /// Work-group size in each dimension.
    pub local: [usize; 3],
}

/// A kernel argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arg {
    /// Index into [`HostPlan::buffers`].
    Buffer(usize),
    /// Index into [`HostPlan::scalars`].
    Scalar(usize),
    /// The number of the iteration, an `int`, of a loop of the host: 0 is the outermost around the launch.
    Counter(usize),
}
