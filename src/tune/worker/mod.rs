//! Candidates run in a child process: a compiler that hangs or a kernel that crashes the driver costs
//! one candidate, not the tool.
//!
//! [`Worker`] is the parent's side, [`serve`] the child's; [`frame`] is how they talk. The child is the
//! same executable. What drivers write on its standard error is kept as a log and never shown raw.

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

/// What became of a candidate that did not make it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// The driver did not build it.
    Build,
    /// Building or running took longer than is allowed.
    Timeout,
    /// The process or the driver died on it.
    Crash,
    /// It ran, and its result is wrong.
    Wrong,
    /// It needs more than the device has.
    Resources,
}

impl FailureClass {
    /// Every class.
    pub const ALL: [FailureClass; 5] = [
        FailureClass::Build,
        FailureClass::Timeout,
        FailureClass::Crash,
        FailureClass::Wrong,
        FailureClass::Resources,
    ];

    /// The name in reports and in the store.
    pub fn name(self) -> &'static str {
        match self {
            FailureClass::Build => "build",
            FailureClass::Timeout => "timeout",
            FailureClass::Crash => "crash",
            FailureClass::Wrong => "wrong",
            FailureClass::Resources => "resources",
        }
    }

    /// The class of that name.
    pub fn from_name(name: &str) -> Option<FailureClass> {
        FailureClass::ALL.into_iter().find(|c| c.name() == name)
    }

    /// The code under which a person is told of it.
    pub fn code(self) -> Code {
        match self {
            FailureClass::Build => Code::BuildFailed,
            FailureClass::Timeout => Code::KernelTimeout,
            FailureClass::Crash => Code::KernelCrash,
            FailureClass::Wrong => Code::WrongResult,
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
    /// Time it took, in milliseconds.
    pub ms: f64,
    /// Whether the driver had built the same before, and it was only loaded.
    pub cached: bool,
}

/// Why a candidate is out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CandidateFailure {
    /// What became of it.
    pub class: FailureClass,
    /// What the driver or the process had to say.
    pub log: String,
}

impl CandidateFailure {
    /// From what the runtime says of a candidate.
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

/// What tells outputs from others: of equal digests, types, lengths and bytes are equal.
pub fn digest(outputs: &[HostArray]) -> String {
    let mut hasher = blake3::Hasher::new();
    for array in outputs {
        hasher.update(format!("{}[{}]", array.ty(), array.len()).as_bytes());
        hasher.update(array.bytes());
    }
    hasher.finalize().to_string()
}

/// Reads a stream as the child reads it, and as the parent does; gives the number of frames that each understands.
#[doc(hidden)]
pub fn read_frames(stream: &[u8]) -> (usize, usize) {
    fn count<T: serde::de::DeserializeOwned>(mut stream: &[u8]) -> usize {
        std::iter::from_fn(|| frame::read::<T>(&mut stream, || u64::MAX).ok().flatten()).count()
    }
    (count::<(u64, Request)>(stream), count::<(u64, Reply)>(stream))
}

/// What the parent asks. In a frame its number stands before it, which the answers have too.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Request {
    /// List the devices.
    Devices,
    /// Open a device; the frame's bulk is the inputs, one after the other. Built programs are kept in a folder if
    /// one is given.
    Init { device: Option<String>, inputs: Vec<(Slot, ScalarType, usize)>, cache: Option<PathBuf> },
    /// Take other inputs, the frame's bulk, and forget all candidates.
    Give { inputs: Vec<(Slot, ScalarType, usize)> },
    /// Build a program, for those who look for it in the folder of built programs.
    Compile { plan: Box<HostPlan> },
    /// Build a candidate and give it buffers.
    Prepare { id: u64, plan: Box<HostPlan> },
    /// Run a candidate so often, or until the time is spent (but once at least).
    Run { id: u64, repetitions: usize, budget_us: f64 },
    /// Run on poisoned buffers and fetch the outputs, unless their digest is this one.
    Check { id: u64, known: Option<String> },
    /// Forget a candidate.
    Drop { id: u64 },
}

/// What the child answers, one for each request; before that, [`Reply::Begun`] and [`Reply::Ended`] say how far the first
/// run of a candidate is.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reply {
    /// The devices that there are.
    Devices { devices: Vec<DeviceInfo> },
    /// The device is open.
    Ready { device: DeviceInfo },
    /// The inputs are taken.
    Given,
    /// The device is not usable, or the inputs are not; the code is [`Code::as_str`].
    Refused { code: String, message: String, notes: Vec<String>, help: Vec<String> },
    /// A candidate is built, or was before.
    Built(Build),
    /// A kernel runs, as the driver has it.
    Begun,
    /// A kernel has run, and the next is compiled now if it must be.
    Ended,
    /// A candidate ran.
    Timed { times: Vec<RunTimes> },
    /// A candidate's outputs; the frame's bulk is their bytes, one after the other.
    Outputs { times: RunTimes, outputs: Vec<(ScalarType, usize)> },
    /// A candidate's outputs have the digest that was asked about.
    Known { times: RunTimes },
    /// A candidate failed.
    Failed(CandidateFailure),
    /// A candidate is forgotten.
    Dropped,
}
