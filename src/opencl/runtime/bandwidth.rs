//! Measures a device's memory with the hand-written kernels of [`crate::opencl::yardstick`].

use super::{DeviceInputs, Prepared, Runtime};
use crate::diag::{Code, Diagnostic, Result};
use crate::opencl::host::{HostArray, Inputs};
use crate::opencl::yardstick::{INPUT, Traffic, Yardstick, yardsticks};
use serde::{Deserialize, Serialize};

/// Number of timed runs of each kernel that takes part.
const ROUNDS: usize = 15;

/// A kernel takes part if its first time is at most this many times the best.
const SLOW: f64 = 1.6;

/// The result of one yardstick.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// A short description of the kernel.
    pub kernel: String,
    /// Bytes read and written in one run.
    pub bytes: u64,
    /// Median time of a run by device events, in microseconds.
    pub median_us: f64,
    /// Bytes over median time, in GB/s (10^9 bytes).
    pub gb_per_s: f64,
}

/// A device's memory bandwidth at one size: the best kernel's median for each kind of traffic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bandwidth {
    /// The best copy, with any kind of store that the compiler has. Counts bytes read and bytes written.
    pub copy: Figure,
    /// The best copy in standard OpenCL C.
    pub copy_plain: Figure,
    /// The best read.
    pub read: Figure,
    /// Every kernel that was measured to the end, best first.
    pub all: Vec<Figure>,
}

/// Measures copying and reading of `bytes` bytes. Runs of the kernels are interleaved, and medians are compared.
pub fn bandwidth(rt: &Runtime, bytes: usize) -> Result<Bandwidth> {
    let len = bytes / 4;
    let mut inputs = Inputs::default();
    // Memory systems may share or compress pages with equal contents, so all pages differ.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the low bits differ from page to page, too"
    )]
    let xs: Vec<f32> = (0..len).map(|i| (i as u32).wrapping_mul(2_654_435_761) as f32).collect();
    inputs.insert(INPUT, 0, HostArray::from_slice(&xs));
    drop(xs);
    let inputs = rt.upload(&inputs)?;
    let mut runners = vec![];
    let mut best = [f64::INFINITY; 3];
    for yardstick in yardsticks(rt.info(), len) {
        let runner = Runner::start(rt, yardstick, &inputs)?;
        let class = runner.class();
        best[class] = best[class].min(runner.first_us);
        runners.push(runner);
    }
    runners.retain(|r| r.first_us <= SLOW * best[r.class()]);
    for round in 0..ROUNDS {
        // The order alternates, so that no kernel always follows the same neighbour.
        let count = runners.len();
        for k in 0..count {
            let k = if round % 2 == 0 { k } else { count - 1 - k };
            let time = runners[k].prepared.run(rt)?.device_us;
            runners[k].times.push(time);
        }
    }
    let mut figures: Vec<(Traffic, Figure)> = runners.into_iter().map(Runner::figure).collect();
    rt.trim();
    figures.sort_by(|a, b| b.1.gb_per_s.total_cmp(&a.1.gb_per_s));
    let best = |of: &[Traffic]| {
        figures.iter().find(|(t, _)| of.contains(t)).map(|(_, f)| f.clone()).ok_or_else(|| {
            Diagnostic::error(
                Code::Usage,
                format!("{bytes} bytes are too few to measure bandwidth"),
            )
        })
    };
    Ok(Bandwidth {
        copy: best(&[Traffic::Copy, Traffic::CopyNontemporal])?,
        copy_plain: best(&[Traffic::Copy])?,
        read: best(&[Traffic::Read])?,
        all: figures.into_iter().map(|(_, f)| f).collect(),
    })
}

/// A yardstick that is being measured.
struct Runner {
    yardstick: Yardstick,
    prepared: Prepared,
    first_us: f64,
    times: Vec<f64>,
}

impl Runner {
    /// Builds and warms up a yardstick. The first run may compile; the second gives the first valid time.
    fn start(rt: &Runtime, yardstick: Yardstick, inputs: &DeviceInputs) -> Result<Runner> {
        let prepared = rt.prepare(rt.build(&yardstick.plan)?, inputs)?;
        prepared.run(rt)?;
        let first_us = prepared.run(rt)?.device_us;
        Ok(Runner { yardstick, prepared, first_us, times: vec![] })
    }

    /// Returns the number of the kind of traffic. Only kernels of the same kind are compared.
    fn class(&self) -> usize {
        match self.yardstick.traffic {
            Traffic::Copy => 0,
            Traffic::CopyNontemporal => 1,
            Traffic::Read => 2,
        }
    }

    fn figure(mut self) -> (Traffic, Figure) {
        self.times.sort_by(f64::total_cmp);
        let median_us = self.times.get(self.times.len() / 2).copied().unwrap_or(self.first_us);
        let bytes = self.yardstick.bytes;
        let gb_per_s = bytes as f64 * 1e-3 / median_us.max(1e-3);
        let figure = Figure { kernel: self.yardstick.name, bytes, median_us, gb_per_s };
        (self.yardstick.traffic, figure)
    }
}
