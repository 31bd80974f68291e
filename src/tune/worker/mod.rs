//! Runs candidates in a child process, so that a compiler that hangs or a kernel that crashes the driver costs one
//! candidate and not the whole program.
//!
//! [`Worker`] is the parent's side, [`serve`] is the child's side, and [`frame`] is the encoding of their messages.
//! The child is the same executable. Whatever drivers write to its standard error is kept as a log and never shown
//! raw.

mod child;
mod frame;
mod parent;
mod process;

pub use child::serve;
pub use parent::{CandidateId, Worker, WorkerError, devices};

use crate::device::DeviceInfo;
use crate::diag::{Code, Diagnostic};
use crate::lang::types::ScalarType;
use crate::opencl::host::{HostArray, Slot};
use crate::opencl::plan::HostPlan;
use crate::opencl::runtime::RunTimes;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// Why a candidate failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// The driver could not build it.
    Build,
    /// Building or running it took longer than allowed.
    Timeout,
    /// The process or the driver crashed.
    Crash,
    /// It ran, but its result is wrong.
    Wrong,
    /// Its result differs from another kernel's, and the interpreter could not decide between them in time.
    Undecided,
    /// It needs more memory, registers or the like than the device has.
    Resources,
}

impl FailureClass {
    /// Every class.
    pub const ALL: [FailureClass; 6] = [
        FailureClass::Build,
        FailureClass::Timeout,
        FailureClass::Crash,
        FailureClass::Wrong,
        FailureClass::Undecided,
        FailureClass::Resources,
    ];

    /// Returns the name in reports and in the store.
    pub fn name(self) -> &'static str {
        match self {
            FailureClass::Build => "build",
            FailureClass::Timeout => "timeout",
            FailureClass::Crash => "crash",
            FailureClass::Wrong => "wrong",
            FailureClass::Undecided => "undecided",
            FailureClass::Resources => "resources",
        }
    }

    /// Returns the class with this name.
    pub fn from_name(name: &str) -> Option<FailureClass> {
        FailureClass::ALL.into_iter().find(|c| c.name() == name)
    }

    /// Returns the diagnostic code for this class.
    pub fn code(self) -> Code {
        match self {
            FailureClass::Build => Code::BuildFailed,
            FailureClass::Timeout => Code::KernelTimeout,
            FailureClass::Crash => Code::KernelCrash,
            FailureClass::Wrong | FailureClass::Undecided => Code::WrongResult,
            FailureClass::Resources => Code::DeviceMemory,
        }
    }
}

impl fmt::Display for FailureClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How a candidate was built.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Build {
    /// Build time, in milliseconds.
    pub ms: f64,
    /// Whether the program came from the cache of built programs instead of the compiler.
    pub cached: bool,
}

/// The failure of a candidate, with details.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CandidateFailure {
    /// The class of the failure.
    pub class: FailureClass,
    /// Messages of the driver or of the process.
    pub log: String,
}

impl CandidateFailure {
    /// Classifies a diagnostic of the runtime.
    fn of(d: &Diagnostic) -> CandidateFailure {
        let class = match d.code {
            Code::BuildFailed => FailureClass::Build,
            Code::DeviceMemory | Code::KernelLimit => FailureClass::Resources,
            _ => FailureClass::Crash,
        };
        let mut log = d.to_string();
        for note in &d.notes {
            log.push('\n');
            log.push_str(note);
        }
        CandidateFailure { class, log }
    }
}

impl From<CandidateFailure> for Diagnostic {
    fn from(failure: CandidateFailure) -> Diagnostic {
        let message = format!("a candidate failed ({})", failure.class);
        let d = Diagnostic::error(failure.class.code(), message);
        if failure.log.is_empty() { d } else { d.note(failure.log) }
    }
}

/// Returns a digest of outputs. Outputs with equal digests have equal types, lengths and bytes.
pub fn digest(outputs: &[HostArray]) -> String {
    let mut hasher = blake3::Hasher::new();
    for array in outputs {
        hasher.update(format!("{}[{}]", array.ty(), array.len()).as_bytes());
        hasher.update(array.bytes());
    }
    hasher.finalize().to_string()
}

/// Parses a stream as the child does and as the parent does. Returns how many frames each of them understands.
#[doc(hidden)]
pub fn read_frames(stream: &[u8]) -> (usize, usize) {
    fn count<T: serde::de::DeserializeOwned>(mut stream: &[u8]) -> usize {
        std::iter::from_fn(|| frame::read::<T>(&mut stream, || u64::MAX).ok().flatten()).count()
    }
    (count::<(u64, Request)>(stream), count::<(u64, Reply)>(stream))
}

/// A request of the parent. Each frame carries the number of the request, which the reply repeats.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Request {
    /// List the devices.
    Devices,
    /// Open a device. The frame's raw bytes are the inputs, one after the other. With `cache`, built programs are
    /// kept in that folder.
    Init { device: Option<String>, inputs: Vec<(Slot, ScalarType, usize)>, cache: Option<PathBuf> },
    /// Replace the inputs by those in the frame's raw bytes, and forget all candidates.
    Give { inputs: Vec<(Slot, ScalarType, usize)> },
    /// Build a program into the cache of built programs.
    Compile { plan: Box<HostPlan> },
    /// Build a candidate and allocate its buffers.
    Prepare { id: u64, plan: Box<HostPlan> },
    /// Run a candidate `repetitions` times or until the time is spent, but at least once.
    Run { id: u64, repetitions: usize, budget_us: f64 },
    /// Run a candidate on poisoned buffers and fetch its outputs, unless their digest is `known`.
    Check { id: u64, known: Option<String> },
    /// Forget a candidate.
    Drop { id: u64 },
}

/// A reply of the child. Each request gets one; during the first run of a candidate, [`Reply::Begun`] and
/// [`Reply::Ended`] report progress before it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reply {
    /// All devices.
    Devices { devices: Vec<DeviceInfo> },
    /// The device is open.
    Ready { device: DeviceInfo },
    /// The inputs were replaced.
    Given,
    /// The device or the inputs cannot be used. The code is [`Code::as_str`].
    Refused { code: String, message: String, notes: Vec<String>, help: Vec<String> },
    /// A candidate was built, or loaded from the cache.
    Built(Build),
    /// A kernel is running, according to the driver.
    Begun,
    /// A kernel has run; the next one may have to be compiled now.
    Ended,
    /// Times of a candidate's runs.
    Timed { times: Vec<RunTimes> },
    /// A candidate's outputs. The frame's raw bytes hold them, one after the other.
    Outputs { times: RunTimes, outputs: Vec<(ScalarType, usize)> },
    /// A candidate's outputs have the digest that the request named.
    Known { times: RunTimes },
    /// A candidate failed.
    Failed(CandidateFailure),
    /// The candidate was forgotten.
    Dropped,
}
