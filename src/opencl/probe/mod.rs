//! Small kernels that each measure one property of a device, for `patsat calibrate`.
//!
//! A probe is an ordinary [`HostPlan`] and states the amount of work in one run, so that time divided by work gives
//! the property. The number of iterations of its loop is an argument, a [`Count`], and not part of the kernel's
//! text, so that a compiler with a cache compiles each kernel once. This module knows nothing about programs, and
//! runs nothing.

pub mod compute;
pub mod execution;
pub mod memory;

use super::host::HostArray;
use super::plan::{Arg, Buffer, HostPlan, Launch, Role, Scalar};
use crate::lang::types::ScalarType;
use std::sync::Arc;

/// The parameter whose components hold all counts.
pub const COUNTS: &str = "%count";

/// A kernel with the amount of its work.
#[derive(Clone, Debug)]
pub struct Probe {
    /// How to run it.
    pub plan: Arc<HostPlan>,
    /// The amount of work in one run: bytes, operations, iterations or whatever the probe measures.
    pub work: f64,
}

/// A count that probes take as an argument: a power of two, or three times a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Count {
    shift: u32,
    three: bool,
}

impl Count {
    /// The largest exponent of the power of two.
    pub const MOST: u32 = 28;
    /// The count one.
    pub const ONE: Count = Count::power(0);

    /// Returns two to the power of `shift`, or of [`Count::MOST`] if that is less.
    pub const fn power(shift: u32) -> Count {
        Count { shift: if shift > Count::MOST { Count::MOST } else { shift }, three: false }
    }

    /// Returns the largest count that is at most `n`; one for 0.
    pub fn at_most(n: usize) -> Count {
        let power = Count::power(n.max(1).ilog2());
        let three = Count { shift: power.shift.saturating_sub(1), three: true };
        if power.shift > 0 && three.value() <= n { three } else { power }
    }

    /// Returns the largest power of two that is at most `n`; one for 0.
    pub fn power_within(n: usize) -> Count {
        Count::power(n.max(1).ilog2())
    }

    /// Returns the count, doubled `times` times.
    #[must_use]
    pub fn doubled(self, times: u32) -> Count {
        Count { shift: (self.shift + times).min(Count::MOST), ..self }
    }

    /// Returns the value.
    pub fn value(self) -> usize {
        (if self.three { 3 } else { 1 }) << self.shift
    }

    /// Returns the component of [`COUNTS`] that holds this count.
    fn component(self) -> usize {
        self.shift as usize * 2 + usize::from(self.three)
    }

    /// Returns every count as an input for probes: the component of [`COUNTS`], and its value.
    pub fn inputs() -> impl Iterator<Item = (usize, HostArray)> {
        (0..=Count::MOST).flat_map(|shift| {
            [false, true].map(|three| {
                let count = Count { shift, three };
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_possible_wrap,
                    reason = "at most three times 2^28"
                )]
                let value = count.value() as i32;
                (count.component(), HostArray::from_slice(&[value]))
            })
        })
    }
}

/// The number and size of work-groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fleet {
    /// Number of work-groups.
    pub groups: usize,
    /// Number of work-items in each group.
    pub group: usize,
}

impl Fleet {
    /// Returns the number of work-items in all groups.
    pub fn items(self) -> usize {
        self.groups * self.group
    }
}

/// The buffers and counts of a probe's kernel. Its arguments are, in this order: the input, the output, the counts.
struct Interface<'a> {
    /// Parameter, component, element type and length of the input.
    input: Option<(&'a str, usize, ScalarType, usize)>,
    /// Element type and length of the output.
    output: (ScalarType, usize),
    counts: &'a [Count],
}

/// A work-group size that every driver allows for any kernel.
const USUAL: usize = 256;

/// Returns a plan that launches the kernel `probe` the given number of times.
fn plan(source: String, io: &Interface, fleet: Fleet, launches: usize) -> Arc<HostPlan> {
    // For larger groups, some compilers need the size in the source.
    let source = match fleet.group {
        0..=USUAL => source,
        group => {
            let head = format!("kernel __attribute__((reqd_work_group_size({group}, 1, 1))) void");
            source.replacen("kernel void", &head, 1)
        }
    };
    let mut buffers = vec![];
    if let Some((param, component, elem, len)) = io.input {
        buffers.push(Buffer {
            name: "x".into(),
            elem,
            len,
            role: Role::Input(param.to_owned(), component),
        });
    }
    let (elem, len) = io.output;
    buffers.push(Buffer { name: "y".into(), elem, len, role: Role::Output(0) });
    let scalars: Vec<Scalar> = io
        .counts
        .iter()
        .map(|c| Scalar { param: COUNTS.into(), component: c.component(), ty: ScalarType::I32 })
        .collect();
    let args = (0..buffers.len()).map(Arg::Buffer).chain((0..scalars.len()).map(Arg::Scalar));
    let launch = Launch {
        kernel: "probe".into(),
        args: args.collect(),
        global: [fleet.items(), 1, 1],
        local: [fleet.group, 1, 1],
    };
    let launches = vec![launch; launches];
    Arc::new(HostPlan {
        source,
        options: String::new(),
        buffers,
        scalars,
        launches,
        control: vec![],
        faults: vec![],
    })
}

/// Returns the name of a vector type of OpenCL C.
fn vector(scalar: &str, width: usize) -> String {
    if width == 1 { scalar.to_owned() } else { format!("{scalar}{width}") }
}

/// Returns an expression for the sum of the lanes of the vector `name`.
fn lanes(name: &str, width: usize) -> String {
    if width == 1 {
        return name.to_owned();
    }
    (0..width).map(|l| format!("{name}.s{l:x}")).collect::<Vec<_>>().join(" + ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn counts_are_distinct_and_near() {
        let all: Vec<(usize, HostArray)> = Count::inputs().collect();
        let places: BTreeSet<usize> = all.iter().map(|(k, _)| *k).collect();
        assert_eq!(places.len(), all.len());
        for n in [1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 1000, 1 << 27] {
            let (near, power) = (Count::at_most(n).value(), Count::power_within(n).value());
            assert!(near <= n && 3 * near >= 2 * n, "{near} for {n}");
            assert!(power.is_power_of_two() && power <= n && 2 * power > n);
        }
        let three = Count::at_most(3);
        assert_eq!(
            (three.value(), three.doubled(2).value(), Count::at_most(0).value()),
            (3, 12, 1)
        );
        let stored = all.iter().find(|(k, _)| *k == three.component()).map(|(_, a)| a.to_vec());
        assert_eq!(stored, Some(Some(vec![3i32])));
    }
}
