//! The host plan: everything needed to build and run a program's kernels, as plain data.
//!
//! The plan is sent to the worker process, kept in the store, and printed by `--emit host`.

use crate::calculus::scalar::Lit;
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
    /// The steps of the host, if there are loops over launches. If empty, the host runs every launch once, in
    /// order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub control: Vec<Control>,
    /// The checks that kernels make on the data. A check that fails writes its position in this list, counted from
    /// 1, to the buffer of [`Role::Faults`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
}

/// One step of the host. A loop extends from [`Control::Repeat`] or [`Control::RepeatGiven`] to the matching
/// [`Control::End`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// Launches a kernel: index into [`HostPlan::launches`].
    Launch(usize),
    /// Repeats the following steps this many times, or without a number, until a [`Control::Check`] ends the loop.
    Repeat(Option<u64>),
    /// Repeats the following steps as often as [`times_given`] says.
    RepeatGiven {
        /// Index into [`HostPlan::scalars`]. The scalar is an integer.
        scalar: usize,
        /// What is added to the scalar.
        plus: i64,
        /// What is subtracted from the sum.
        less: i64,
    },
    /// Reads the single truth value in a buffer, and leaves the innermost loop if it is false.
    Check(usize),
    /// Exchanges two buffers, so that later launches read what was written.
    Swap(usize, usize),
    /// The end of the innermost loop.
    End,
}

/// Returns how often a loop repeats, given an integer of a type: `value + plus - less` times, or never if that is negative.
/// The sum wraps as the type does, since a kernel would compute it so; the difference does not.
pub fn times_given(ty: ScalarType, value: i128, plus: i64, less: i64) -> u64 {
    let bound = Lit::int(ty, value + i128::from(plus)).as_int().unwrap_or(0);
    let times = (bound - i128::from(less)).clamp(0, i128::from(i64::MAX));
    u64::try_from(times).unwrap_or(0)
}

impl HostPlan {
    /// Returns the steps of the host, with or without loops.
    pub fn steps(&self) -> Vec<Control> {
        if self.control.is_empty() {
            return (0..self.launches.len()).map(Control::Launch).collect();
        }
        self.control.clone()
    }
}

/// Number of elements in the buffer of [`Role::Faults`]: the number of the check that failed first, or 0; then, if
/// an index was wrong, the lower and the upper half of the index as a 64-bit integer.
pub const FAULT_WORDS: usize = 3;

/// A check that a kernel makes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Fault {
    /// Name of the kernel.
    pub kernel: String,
    /// The kind of failure that is checked.
    pub kind: FaultKind,
}

/// A kind of failure.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// An index is outside an array.
    Index {
        /// The array's length.
        len: i64,
        /// Names of the buffers that are read at the index.
        arrays: Vec<String>,
        /// Type of the index.
        index: ScalarType,
    },
    /// An integer is divided by zero.
    Division,
    /// An integer exponent is negative.
    Exponent,
}

impl Fault {
    /// Describes the failure. For an index, the text continues "index N is ...".
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
    /// Returns a description of the failure that the faults buffer reports; `None` if nothing failed.
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

/// A global buffer of scalars. An array of tuples has one buffer for each component.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Buffer {
    /// The name in the kernels.
    pub name: String,
    /// Element type as stored (`bool` takes one byte).
    pub elem: ScalarType,
    /// Number of elements; may be 0 (the runtime then allocates one).
    pub len: usize,
    /// The use of the buffer.
    pub role: Role,
}

/// The use of a buffer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Component `.1` of the entry's parameter `.0` (tuples flattened left to right).
    Input(String, usize),
    /// A temporary between kernels.
    Temp,
    /// Component `.0` of the result (tuples flattened left to right). A scalar result has length 1.
    Output(usize),
    /// Zeros before a run; afterwards, what failed: see [`HostPlan::faults`].
    Faults,
    /// Two integers, 1 and 0 before a run. If the first becomes 0, kernels in loops that a [`Control::Check`] ends do nothing.
    /// So a host may launch the next iterations before it knows the result of a check. One that waits for each check has no
    /// use for it.
    GoesOn,
    /// An integer at which the work-groups of a launch meet: 0 before the first run, and then what the launch before has left.
    Meeting,
}

/// Number of elements in the buffer of [`Role::GoesOn`].
pub const GOES_ON_WORDS: usize = 2;

/// A scalar argument.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Scalar {
    /// The entry's parameter.
    pub param: String,
    /// The component of the parameter (tuples flattened).
    pub component: usize,
    /// Its type.
    pub ty: ScalarType,
}

/// A kernel launch. `global` is a multiple of `local` in every dimension. A launch with a zero in `global` is
/// skipped.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Launch {
    /// Kernel function name.
    pub kernel: String,
    /// Arguments, in the kernel's order.
    pub args: Vec<Arg>,
    /// Number of work-items in each dimension.
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
    /// The iteration number, an `int`, of a loop of the host. 0 is the outermost loop around the launch.
    Counter(usize),
}

#[cfg(test)]
mod tests {
    use super::times_given;
    use crate::lang::types::ScalarType;

    #[test]
    fn loops_repeat_as_often_as_a_counter_is_below_the_bound() {
        let int = |value: i128, plus, less| times_given(ScalarType::I32, value, plus, less);
        assert_eq!([int(5, 0, 0), int(5, -1, 2), int(5, 1, -3)], [5, 2, 9]);
        assert_eq!([int(0, 0, 0), int(-3, 0, 0), int(5, 0, 6)], [0; 3]);
        // The bound wraps, as it does in a kernel.
        assert_eq!(int(i128::from(i32::MAX), 1, 0), 0);
        assert_eq!(int(i128::from(i32::MIN), -1, 0), u64::from(i32::MAX.unsigned_abs()));
        assert_eq!(times_given(ScalarType::U8, 3, -4, 0), 255);
        assert_eq!(times_given(ScalarType::U64, i128::from(u64::MAX), 0, -1), i64::MAX as u64);
    }
}
