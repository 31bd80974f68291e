//! The processes of one search: a worker that measures, and a crew of workers that build candidates ahead.

use super::{Session, memory};
use crate::device::{DeviceInfo, DeviceKind};
use crate::diag::{Code, Diagnostic, Result};
use crate::opencl::host::Inputs;
use crate::tune::crew::Crew;
use crate::tune::worker::Worker;
use std::sync::Arc;
use std::thread;
use tempfile::TempDir;

/// The largest crew for a GPU. More processes hardly help, since candidates are measured one at a time.
const BUILDERS: usize = 6;
/// The largest crew for a device whose candidates run on the same processors that build them.
const TRIERS: usize = 4;
/// Searches with a smaller budget end before a crew is useful.
const FEW: usize = 4;
/// A crew's copies of the inputs take at most this fraction (a divisor) of the available memory.
const SHARE_OF_MEMORY: u64 = 4;

/// The processes of a search.
pub(super) struct Staff {
    /// Runs and times candidates.
    pub worker: Worker,
    /// Builds them ahead.
    pub crew: Option<Crew>,
    /// The temporary cache of built programs, if the session has no permanent one.
    _folder: Option<TempDir>,
}

impl Session {
    /// Starts a worker on a device.
    pub(super) fn start_worker(
        &self,
        device: &DeviceInfo,
        inputs: impl Into<Arc<Inputs>>,
    ) -> Worker {
        self.member(device, inputs.into()).caching(self.kernels.clone())
    }

    /// Starts a worker and its crew on a device.
    ///
    /// # Errors
    /// When no temporary folder can be created.
    pub(super) fn start_staff(
        &self,
        device: &DeviceInfo,
        inputs: impl Into<Arc<Inputs>>,
    ) -> Result<Staff> {
        let inputs = inputs.into();
        let in_the_way = device.kind != DeviceKind::Gpu;
        let members = self.members(device, &inputs, in_the_way);
        let folder = match (&self.kernels, members) {
            (None, 1..) => Some(tempfile::tempdir().map_err(|e| {
                Diagnostic::error(Code::Io, format!("no folder for built programs: {e}"))
            })?),
            _ => None,
        };
        let cache = self.kernels.clone().or(folder.as_ref().map(|f| f.path().to_owned()));
        // A crew that only builds, and does not run candidates, needs no inputs.
        let given = if in_the_way { inputs.clone() } else { Arc::default() };
        let crew: Vec<Worker> = (0..members)
            .map(|_| self.member(device, given.clone()).caching(cache.clone()))
            .collect();
        Ok(Staff {
            worker: self.member(device, inputs).caching(cache),
            crew: (members > 0).then(|| Crew::new(crew, in_the_way)),
            _folder: folder,
        })
    }

    fn member(&self, device: &DeviceInfo, inputs: Arc<Inputs>) -> Worker {
        let command = self.worker_command();
        Worker::new(move || command(), Some(format!("#{}", device.index)), inputs, &self.limits)
    }

    fn members(&self, device: &DeviceInfo, inputs: &Inputs, in_the_way: bool) -> usize {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        if self.budget < FEW || cores == 1 || device.is_simulator() {
            return 0;
        }
        if !in_the_way {
            return (cores - 1).min(BUILDERS);
        }
        let bytes: u64 = inputs.0.values().map(|a| a.bytes().len() as u64).sum();
        let room = memory::available().map_or(u64::MAX, |room| room / SHARE_OF_MEMORY);
        let fit = usize::try_from(room / bytes.max(1)).unwrap_or(usize::MAX);
        cores.min(TRIERS).min(fit)
    }
}
