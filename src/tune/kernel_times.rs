//! The times of single kernels, which tell about every candidate that has one of them.
//!
//! Most candidates of a program with several kernels share some of them. A kernel's time hardly depends on the kernels around
//! it, so the sum of the times of measured kernels predicts a candidate better than the cost model does.

use super::measure::Runner;
use super::statistics::median;
use super::strategy::Tried;
use super::variant::Kernel;
use super::worker::{CandidateId, Worker, WorkerError};
use std::collections::HashMap;
use std::time::Duration;

/// A worker that keeps the times of kernels.
pub struct ByKernel<'a> {
    worker: &'a mut Worker,
    /// For each candidate, the times of each kernel in microseconds.
    runs: HashMap<CandidateId, Vec<Vec<f64>>>,
}

impl<'a> ByKernel<'a> {
    /// Returns a worker that has kept no times yet.
    pub fn new(worker: &'a mut Worker) -> ByKernel<'a> {
        ByKernel { worker, runs: HashMap::new() }
    }

    /// Returns the median time of each kernel of a candidate in microseconds; nothing if it did not run. The times add up to
    /// the time of the candidate: each kernel has its share of the time between kernels.
    pub fn kernels_us(&self, id: CandidateId) -> Vec<f64> {
        self.runs.get(&id).into_iter().flatten().filter_map(|times| median(times)).collect()
    }
}

impl Runner for ByKernel<'_> {
    fn run_us(
        &mut self,
        id: CandidateId,
        repetitions: usize,
        budget: Duration,
    ) -> Result<Vec<f64>, WorkerError> {
        let runs = self.worker.run(id, repetitions, budget)?;
        for run in runs.iter().filter(|run| !run.kernels_us.is_empty()) {
            let scale = run.device_us / run.kernels_us.iter().sum::<f64>();
            let kernels = self.runs.entry(id).or_default();
            kernels.resize(run.kernels_us.len(), vec![]);
            for (times, us) in kernels.iter_mut().zip(&run.kernels_us) {
                times.extend(scale.is_finite().then_some(us * scale));
            }
        }
        Ok(runs.iter().map(|run| run.device_us).collect())
    }
}

/// The kernels that were measured.
#[derive(Debug, Default)]
pub struct KernelTimes {
    /// The least time in microseconds, by features.
    known: HashMap<u64, f64>,
}

/// What is expected of a variant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// Its time in microseconds.
    pub us: f64,
    /// The share of kernels in it that were not measured.
    pub unknown: f64,
}

impl KernelTimes {
    /// Returns the times of the kernels of candidates that were measured.
    pub fn of(tried: &[Tried]) -> KernelTimes {
        let mut known: HashMap<u64, f64> = HashMap::new();
        for t in tried {
            for (kernel, us) in t.variant.kernels.iter().zip(&t.kernels_us) {
                let least = known.entry(kernel.features).or_insert(*us);
                *least = least.min(*us);
            }
        }
        KernelTimes { known }
    }

    /// Returns what is expected of a variant with these kernels. `error` is the logarithm of measured over predicted time that
    /// is expected of kernels that were not measured.
    pub fn expected(&self, kernels: &[Kernel], predicted_us: f64, error: f64) -> Expected {
        let (mut measured, mut rest) = (0.0, predicted_us);
        for k in kernels {
            if let Some(us) = self.known.get(&k.features) {
                measured += us;
                rest -= k.us;
            }
        }
        // Without kernels that were not measured, what is left is an error of rounding.
        let all = kernels.iter().all(|k| self.known.contains_key(&k.features));
        let rest = if all && !kernels.is_empty() { 0.0 } else { rest.max(0.0) * error.exp() };
        let us = measured + rest;
        Expected { us, unknown: if us > 0.0 { rest / us } else { 1.0 } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_kernels_replace_predictions() {
        let known = HashMap::from([(1, 30.0), (2, 5.0)]);
        let times = KernelTimes { known };
        let kernel = |features, us| Kernel { features, us };
        let expected = |kernels: &[Kernel], us| times.expected(kernels, us, 2f64.ln());
        // Without measured kernels, the prediction is corrected by the expected error.
        assert_eq!(expected(&[kernel(7, 10.0)], 10.0), Expected { us: 20.0, unknown: 1.0 });
        assert_eq!(expected(&[], 10.0), Expected { us: 20.0, unknown: 1.0 });
        let half = expected(&[kernel(1, 10.0), kernel(8, 15.0)], 25.0);
        assert_eq!(half, Expected { us: 60.0, unknown: 0.5 });
        let all = expected(&[kernel(1, 10.0), kernel(2, 15.0)], 26.0);
        assert_eq!(all, Expected { us: 35.0, unknown: 0.0 });
    }
}
