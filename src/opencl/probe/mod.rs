//! Small kernels that each show one quantity of a device: what `patsat calibrate` runs.
//!
//! A probe is an ordinary [`HostPlan`] and says how much of the quantity's work one run does, so that time over
//! work is the quantity. How often its loop runs is an argument, a [`Count`], and not part of its text: a compiler that
//! keeps what it has built compiles each kernel once. Knows nothing of programs; runs nothing.

pub mod compute;
pub mod execution;
pub mod memory;

use super::host::HostArray;
use super::plan::{Arg, Buffer, HostPlan, Launch, Role, Scalar};
use crate::lang::types::ScalarType;
use std::sync::Arc;

/// The parameter that holds every count a probe may be given.
pub const COUNTS: &str = "%count";

/// A kernel and the work it does.
#[derive(Clone, Debug)]
pub struct Probe {
    /// How to run it.
    pub plan: Arc<HostPlan>,
    /// Bytes, operations, iterations or whatever it is about, in one run.
    pub work: f64,
}

/// A number that probes take as an argument: a power of two, or three times one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Count {
    shift: u32,
    three: bool,
}

impl Count {
    /// The largest power of two.
    pub const MOST: u32 = 28;
    /// One.
    pub const ONE: Count = Count::power(0);

    /// Two to the power `shift`, at most [`Count::MOST`].
    pub const fn power(shift: u32) -> Count {
        Count { shift: if shift > Count::MOST { Count::MOST } else { shift }, three: false }
    }

    /// The largest that is no greater than `n`; one for 0.
    pub fn at_most(n: usize) -> Count {
        let power = Count::power(n.max(1).ilog2());
        let three = Count { shift: power.shift.saturating_sub(1), three: true };
        if power.shift > 0 && three.value() <= n { three } else { power }
    }

    /// The largest power of two that is no greater than `n`; one for 0.
    pub fn power_within(n: usize) -> Count {
        Count::power(n.max(1).ilog2())
    }

    /// Twice as often, `times` times.
    pub fn doubled(self, times: u32) -> Count {
        Count { shift: (self.shift + times).min(Count::MOST), ..self }
    }

    /// Its value.
    pub fn value(self) -> usize {
        (if self.three { 3 } else { 1 }) << self.shift
    }

    /// Where it stands among the components of [`COUNTS`].
    fn component(self) -> usize {
        self.shift as usize * 2 + usize::from(self.three)
    }

    /// Every count, as the inputs that probes take them from: component of [`COUNTS`], value.
    pub fn inputs() -> impl Iterator<Item = (usize, HostArray)> {
        (0..=Count::MOST).flat_map(|shift| {
            [false, true].map(|three| {
                let count = Count { shift, three };
                // At most three times two to the 28th.
                (count.component(), HostArray::from_slice(&[count.value() as i32]))
            })
        })
    }
}

/// How many work-groups of how many work-items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fleet {
    /// Work-groups.
    pub groups: usize,
    /// Work-items in each.
    pub group: usize,
}

impl Fleet {
    /// Work-items of all groups.
    pub fn items(self) -> usize {
        self.groups * self.group
    }
}

/// What a probe's kernel reads and writes, besides its counts. Arguments come in this order: input, output, counts.
struct Interface<'a> {
    /// Parameter, component, element type and length of the input.
    input: Option<(&'a str, usize, ScalarType, usize)>,
    /// Element type and length of the output.
    output: (ScalarType, usize),
    counts: &'a [Count],
}

/// Work-items of a group that any kernel may have on any driver.
const USUAL: usize = 256;

/// A plan of the one kernel `probe`, launched so often.
fn plan(source: String, io: &Interface, fleet: Fleet, launches: usize) -> Arc<HostPlan> {
    // For larger groups, some compilers want to know.
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

/// A vector type of OpenCL C.
fn vector(scalar: &str, width: usize) -> String {
    if width == 1 { scalar.to_owned() } else { format!("{scalar}{width}") }
}

/// The lanes of a vector `name`, added.
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
