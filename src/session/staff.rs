//! The processes of one search: one that measures, and others that build ahead for it.

use super::{Session, memory};
use crate::device::{DeviceInfo, DeviceKind};
use crate::diag::{Code, Diagnostic, Result};
use crate::opencl::host::Inputs;
use crate::tune::crew::Crew;
use crate::tune::worker::Worker;
use std::sync::Arc;
use std::thread;
use tempfile::TempDir;

/// Most processes that build for a device that is none of the processors they run on: more hardly help, since only one
/// candidate is measured at a time.
const BUILDERS: usize = 6;
/// Most processes that build and try candidates on the processors which measure them.
const TRIERS: usize = 4;
/// Searches for fewer candidates are over before a crew would be of use.
const FEW: usize = 4;
/// Copies of the inputs that a crew holds may take this share of the memory that is left.
const SHARE_OF_MEMORY: u64 = 4;

/// Who works on a search.
pub(super) struct Staff {
    /// Runs and times candidates.
    pub worker: Worker,
    /// Builds them ahead.
    pub crew: Option<Crew>,
    /// Where built programs go when they are not to be kept.
    _folder: Option<TempDir>,
}

impl Session {
    /// A worker on a device.
    pub(super) fn start_worker(
        &self,
        device: &DeviceInfo,
        inputs: impl Into<Arc<Inputs>>,
    ) -> Worker {
        self.member(device, inputs.into()).caching(self.kernels.clone())
    }

    /// A worker and its crew on a device.
    ///
    /// # Errors
    /// When there is no place for temporary files.
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
        // Who only builds needs no inputs.
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
