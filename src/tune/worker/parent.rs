//! The parent's side of the worker: starts the child, limits the time of every wait, and replaces a child that
//! died.

use super::process::{Allowance, Process, Silence};
use super::{Build, CandidateFailure, FailureClass, Reply, Request};
use crate::device::DeviceInfo;
use crate::diag::{Code, Diagnostic, Failure, Interrupt, Limits, Result, not_started};
use crate::lang::types::ScalarType;
use crate::opencl::host::{HostArray, Inputs, Slot};
use crate::opencl::plan::{Buffer, HostPlan, Role};
use crate::opencl::runtime::RunTimes;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// Longest time that opening a device and uploading inputs may take.
const INIT_TIME: Duration = Duration::from_mins(2);

/// Identifies a candidate of one [`Worker`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CandidateId(pub(crate) u64);

/// Why a request got no answer.
#[derive(Debug)]
pub enum WorkerError {
    /// The candidate failed; others may still run.
    Candidate(CandidateFailure),
    /// No candidate can run: there is no device, or no process.
    Worker(Failure),
    /// The work is to stop; nothing is known about the candidate.
    Interrupted,
}

impl WorkerError {
    /// Converts the failure to start a process.
    fn unusable(failure: Failure) -> WorkerError {
        match failure.0.first() {
            Some(d) if d.code == Code::Interrupted => WorkerError::Interrupted,
            _ => WorkerError::Worker(failure),
        }
    }
}

impl From<WorkerError> for Failure {
    fn from(e: WorkerError) -> Failure {
        match e {
            WorkerError::Candidate(c) => Diagnostic::from(c).into(),
            WorkerError::Worker(f) => f,
            WorkerError::Interrupted => interrupted().into(),
        }
    }
}

fn interrupted() -> Diagnostic {
    Diagnostic::error(Code::Interrupted, "interrupted while a kernel was built or run")
}

type Answer<T> = std::result::Result<T, WorkerError>;

/// The parent's record of a candidate.
struct Candidate {
    plan: Arc<HostPlan>,
    /// Set once the candidate has failed; it is not run again.
    failure: Option<CandidateFailure>,
}

/// Runs candidates in a child process, on one device and one set of inputs.
pub struct Worker {
    command: Box<dyn Fn() -> Command + Send>,
    device: Option<String>,
    inputs: Arc<Inputs>,
    limits: Limits,
    /// The folder for built programs.
    cache: Option<PathBuf>,
    process: Option<Process>,
    /// Description of the child's device, known once a child has opened it.
    opened: Option<DeviceInfo>,
    candidates: BTreeMap<u64, Candidate>,
    next: u64,
    restarts: usize,
}

impl Worker {
    /// Returns a worker for the device that `device` selects. The child is started when first needed, by `command`,
    /// which must run [`super::serve`].
    pub fn new(
        command: impl Fn() -> Command + Send + 'static,
        device: Option<String>,
        inputs: Arc<Inputs>,
        limits: &Limits,
    ) -> Worker {
        Worker {
            command: Box::new(command),
            device,
            inputs,
            limits: limits.clone(),
            cache: None,
            process: None,
            opened: None,
            candidates: BTreeMap::new(),
            next: 0,
            restarts: 0,
        }
    }

    /// Makes the worker keep built programs in a folder, and load programs from there that were built before.
    #[must_use]
    pub fn caching(self, folder: Option<PathBuf>) -> Worker {
        Worker { cache: folder, ..self }
    }

    /// Returns the command line that runs this executable's hidden `worker` command.
    pub fn own_executable() -> Result<impl Fn() -> Command + Send + 'static> {
        let path = std::env::current_exe().map_err(|e| {
            Diagnostic::error(Code::Io, format!("the running executable cannot be found: {e}"))
        })?;
        Ok(move || {
            let mut command = Command::new(&path);
            command.arg("worker");
            command
        })
    }

    /// Returns the description of the device that the child has opened.
    pub fn device(&mut self) -> Result<DeviceInfo> {
        self.process()?;
        let none = || Diagnostic::error(Code::Internal, "the worker runs without a device");
        Ok(self.opened.clone().ok_or_else(none)?)
    }

    /// Returns a digest that identifies the inputs.
    pub fn inputs_digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for (slot, array) in &self.inputs.0 {
            hasher.update(format!("{slot:?} {}[{}]", array.ty(), array.len()).as_bytes());
            hasher.update(array.bytes());
        }
        hasher.finalize().to_hex()[..16].to_owned()
    }

    /// Returns the time that building a candidate and running it once may take together.
    pub fn limit(&self) -> Duration {
        self.limits.build_time.saturating_add(self.limits.run_time)
    }

    /// Replaces the inputs and forgets all candidates, so that the same child can serve another program.
    pub fn give(&mut self, inputs: Arc<Inputs>) {
        self.candidates.clear();
        self.inputs = inputs;
        let layout = layout(&self.inputs);
        let Some(process) = &mut self.process else { return };
        process.ready.clear();
        process.warm.clear();
        let allowed = Allowance::new(INIT_TIME, Duration::ZERO);
        let inputs = Some(self.inputs.clone());
        let request = Request::Give { inputs: layout };
        let answer = process.ask(request, inputs, 0, allowed, &self.limits.interrupt);
        if !matches!(answer, Ok((Reply::Given, _))) {
            // The next child takes the inputs when it starts, or says why it cannot.
            self.process = None;
        }
    }

    /// Takes what the child has written to its standard error since the last call.
    pub fn said(&mut self) -> String {
        self.process.as_mut().map(Process::take_log).unwrap_or_default()
    }

    /// Returns how many times a child had to be replaced.
    pub fn restarts(&self) -> usize {
        self.restarts
    }

    /// Builds a candidate.
    pub fn prepare(&mut self, plan: Arc<HostPlan>) -> Answer<(CandidateId, Build)> {
        let id = self.next;
        self.next += 1;
        self.candidates.insert(id, Candidate { plan, failure: None });
        let built = self.build(id);
        if built.is_err() {
            self.candidates.remove(&id);
        }
        Ok((CandidateId(id), built?))
    }

    /// Builds a program into the cache of built programs, and keeps nothing else of it.
    pub fn compile(&mut self, plan: &HostPlan) -> Answer<Build> {
        let id = self.next;
        self.next += 1;
        let request = Request::Compile { plan: Box::new(plan.clone()) };
        let allowed = Allowance::new(self.limits.build_time, Duration::ZERO);
        match self.ask(id, request, 0, allowed)? {
            (Reply::Built(build), _) => Ok(build),
            (other, _) => Err(self.broken(id, &other)),
        }
    }

    /// Builds a candidate, runs it once and forgets it. The time of the run beyond the kernels' own counts as
    /// building.
    pub fn try_out(&mut self, plan: Arc<HostPlan>) -> Answer<Build> {
        let (id, build) = self.prepare(plan)?;
        let ran = self.run(id, 1, Duration::ZERO);
        self.forget(id);
        let first = ran?.first().map_or(0.0, RunTimes::overhead_us);
        Ok(Build { ms: build.ms + first / 1e3, ..build })
    }

    /// Runs a candidate `repetitions` times, or until `budget` is spent, but at least once.
    pub fn run(
        &mut self,
        CandidateId(id): CandidateId,
        repetitions: usize,
        budget: Duration,
    ) -> Answer<Vec<RunTimes>> {
        let budget_us = budget.as_secs_f64() * 1e6;
        let more = u32::try_from(repetitions.saturating_sub(1)).unwrap_or(u32::MAX);
        let more = self.limits.run_time.saturating_mul(more).min(budget);
        let request = Request::Run { id, repetitions, budget_us };
        let fine = |t: &RunTimes| t.device_us.is_finite() && t.device_us >= 0.0;
        match self.candidate(id, request, 0, more)? {
            (Reply::Timed { times }, _) if !times.is_empty() && times.iter().all(fine) => Ok(times),
            (other, _) => Err(self.broken(id, &other)),
        }
    }

    /// Runs a candidate once on poisoned buffers, and fetches its outputs in order.
    pub fn check(&mut self, id: CandidateId) -> Answer<(RunTimes, Vec<HostArray>)> {
        let (times, outputs) = self.check_unless(id, None)?;
        Ok((times, outputs.unwrap_or_default()))
    }

    /// Like [`Worker::check`], but does not transfer outputs whose [`digest`](super::digest) is `known`.
    pub fn check_unless(
        &mut self,
        CandidateId(id): CandidateId,
        known: Option<&str>,
    ) -> Answer<(RunTimes, Option<Vec<HostArray>>)> {
        let plan = self.candidates.get(&id).map(|c| c.plan.clone());
        let most = plan.as_ref().map_or(0, |plan| output_bytes(plan));
        let request = Request::Check { id, known: known.map(str::to_owned) };
        match self.candidate(id, request, most, Duration::ZERO)? {
            (Reply::Known { times }, _) if known.is_some() => Ok((times, None)),
            (Reply::Refused { code, message, notes, help }, _) => {
                Err(WorkerError::Worker(refusal(&code, message, notes, help).into()))
            }
            (Reply::Outputs { times, outputs }, bulk) => {
                let mut rest = &bulk[..];
                let mut arrays = vec![];
                for (ty, len) in outputs {
                    let bytes = len.checked_mul(ty.bytes()).and_then(|n| rest.split_at_checked(n));
                    let array = bytes.and_then(|(mine, others)| {
                        rest = others;
                        HostArray::from_bytes(ty, mine.to_vec())
                    });
                    arrays.extend(array);
                }
                let wanted = plan.iter().flat_map(|plan| outputs_of(plan));
                if wanted.eq(arrays.iter().map(|a| (a.ty(), a.len()))) {
                    return Ok((times, Some(arrays)));
                }
                let outputs = arrays.iter().map(|a| (a.ty(), a.len())).collect();
                Err(self.broken(id, &Reply::Outputs { times, outputs }))
            }
            (other, _) => Err(self.broken(id, &other)),
        }
    }

    /// Forgets a candidate and frees its resources on the device.
    pub fn forget(&mut self, CandidateId(id): CandidateId) {
        self.candidates.remove(&id);
        let Some(process) = &mut self.process else { return };
        process.warm.remove(&id);
        if !process.ready.remove(&id) {
            return;
        }
        let allowed = Allowance::new(Duration::ZERO, self.limits.run_time);
        let dropped = process.ask(Request::Drop { id }, None, 0, allowed, &self.limits.interrupt);
        if dropped.is_err() {
            self.process = None;
        }
    }

    /// Records that a candidate's result is wrong, so that the candidate is not run again.
    pub fn condemn(&mut self, CandidateId(id): CandidateId, failure: CandidateFailure) {
        if let Some(candidate) = self.candidates.get_mut(&id) {
            candidate.failure = Some(failure);
        }
    }

    /// Sends a request about a candidate, after building the candidate if the child is new. The request may take
    /// the time of one run plus `more`. A first run may also take the time of a build, since some drivers finish
    /// compiling then.
    fn candidate(
        &mut self,
        id: u64,
        request: Request,
        most: u64,
        more: Duration,
    ) -> Answer<(Reply, Vec<u8>)> {
        if !self.process().map_err(WorkerError::unusable)?.ready.contains(&id) {
            self.build(id)?;
        }
        let warm = self.process.as_ref().is_some_and(|p| p.warm.contains(&id));
        let build = if warm { Duration::ZERO } else { self.limits.build_time };
        let allowed = Allowance::new(build, self.limits.run_time.saturating_add(more));
        let answer = self.ask(id, request, most, allowed)?;
        if let Some(process) = &mut self.process {
            process.warm.insert(id);
        }
        Ok(answer)
    }

    /// Builds a candidate in the child.
    fn build(&mut self, id: u64) -> Answer<Build> {
        let unknown = || Diagnostic::error(Code::Internal, format!("there is no candidate {id}"));
        let candidate =
            self.candidates.get(&id).ok_or_else(|| WorkerError::Worker(unknown().into()))?;
        if let Some(failure) = &candidate.failure {
            return Err(WorkerError::Candidate(failure.clone()));
        }
        let request = Request::Prepare { id, plan: Box::new(HostPlan::clone(&candidate.plan)) };
        let allowed = Allowance::new(self.limits.build_time, Duration::ZERO);
        match self.ask(id, request, 0, allowed)? {
            (Reply::Built(build), _) => {
                if let Some(process) = &mut self.process {
                    process.ready.insert(id);
                }
                Ok(build)
            }
            (other, _) => Err(self.broken(id, &other)),
        }
    }

    /// Sends a request. A child that dies, takes too long, or fails to run a kernel is replaced at the next request, and
    /// candidate `id` has failed.
    fn ask(
        &mut self,
        id: u64,
        request: Request,
        most: u64,
        allowed: Allowance,
    ) -> Answer<(Reply, Vec<u8>)> {
        let interrupt = self.limits.interrupt.clone();
        let runs = matches!(request, Request::Run { .. } | Request::Check { .. });
        let process = self.process().map_err(WorkerError::unusable)?;
        match process.ask(request, None, most, allowed, &interrupt) {
            // After a kernel's fault, some drivers refuse whatever the process asks for next.
            Ok((Reply::Failed(CandidateFailure { class, log }), _)) if runs => {
                Err(self.lost(id, class, log))
            }
            Ok((Reply::Failed(failure), _)) => Err(self.out(id, failure)),
            Ok(answer) => Ok(answer),
            Err(Silence::Interrupted) => {
                self.process = None;
                Err(WorkerError::Interrupted)
            }
            Err(Silence::Timeout(after)) => {
                let what = format!("no answer within {:.1} s", after.as_secs_f64());
                Err(self.lost(id, FailureClass::Timeout, what))
            }
            Err(Silence::Death(how)) => Err(self.lost(id, FailureClass::Crash, how)),
        }
    }

    /// Handles a reply of the wrong kind.
    fn broken(&mut self, id: u64, reply: &Reply) -> WorkerError {
        let what = format!("the worker process answered out of turn: {reply:?}");
        self.lost(id, FailureClass::Crash, what)
    }

    /// Gives up the child because of a candidate, and records that the candidate failed.
    fn lost(&mut self, id: u64, class: FailureClass, what: String) -> WorkerError {
        let log = self.process.take().map_or_else(String::new, |process| process.log());
        self.restarts += 1;
        let log = if log.is_empty() { what } else { format!("{what}\n{log}") };
        self.out(id, CandidateFailure { class, log })
    }

    /// Records why a candidate failed.
    fn out(&mut self, id: u64, failure: CandidateFailure) -> WorkerError {
        if let Some(candidate) = self.candidates.get_mut(&id) {
            candidate.failure = Some(failure.clone());
        }
        WorkerError::Candidate(failure)
    }

    /// Returns the running child; starts and initialises one if there is none.
    fn process(&mut self) -> Result<&mut Process> {
        let process = match self.process.take() {
            Some(process) => process,
            None => self.start()?,
        };
        Ok(self.process.insert(process))
    }

    fn start(&mut self) -> Result<Process> {
        let (device, cache) = (self.device.clone(), self.cache.clone());
        let request = Request::Init { device, inputs: layout(&self.inputs), cache };
        let inputs = Some(self.inputs.clone());
        match begin((self.command)(), request, inputs, &self.limits.interrupt)? {
            (process, Reply::Ready { device }) => {
                self.opened = Some(device);
                Ok(process)
            }
            (_, reply) => Err(out_of_turn(&reply)),
        }
    }
}

/// Lists every device. A child does so, because a driver that crashes takes down its process.
///
/// # Errors
/// When there is no device, or a driver does not answer.
pub fn devices(command: Command, interrupt: &Interrupt) -> Result<Vec<DeviceInfo>> {
    match begin(command, Request::Devices, None, interrupt)? {
        (_, Reply::Devices { devices }) => Ok(devices),
        (_, reply) => Err(out_of_turn(&reply)),
    }
}

/// Starts a child and sends it the first request, which makes it load the drivers.
fn begin(
    command: Command,
    request: Request,
    inputs: Option<Arc<Inputs>>,
    interrupt: &Interrupt,
) -> Result<(Process, Reply)> {
    if interrupt.requested() {
        return Err(interrupted().into());
    }
    let mut process = Process::start(command).map_err(|e| not_started("the worker process", &e))?;
    let allowed = Allowance::new(INIT_TIME, Duration::ZERO);
    let how = match process.ask(request, inputs, 0, allowed, interrupt) {
        Ok((Reply::Refused { code, message, notes, help }, _)) => {
            return Err(refusal(&code, message, notes, help).into());
        }
        Ok((reply, _)) => return Ok((process, reply)),
        Err(Silence::Timeout(after)) => format!("no answer within {} s", after.as_secs()),
        Err(Silence::Death(how)) => how,
        Err(Silence::Interrupted) => return Err(interrupted().into()),
    };
    let d = Diagnostic::error(Code::Driver, "a device's driver could not be started");
    let help = "where memory is limited (`ulimit -v`, the container's limits), allow more of it";
    Err(d.note(how).note(process.log()).help(help).into())
}

fn out_of_turn(reply: &Reply) -> Failure {
    let message = format!("the worker process answered out of turn: {reply:?}");
    Diagnostic::error(Code::Internal, message).into()
}

/// Returns the types and lengths of a plan's outputs, in order.
fn outputs_of(plan: &HostPlan) -> impl Iterator<Item = (ScalarType, usize)> {
    let output = |b: &Buffer| match b.role {
        Role::Output(k) => Some((k, (b.elem, b.len))),
        Role::Input(..) | Role::Temp | Role::Faults | Role::GoesOn | Role::Meeting => None,
    };
    plan.buffers.iter().filter_map(output).collect::<BTreeMap<_, _>>().into_values()
}

fn output_bytes(plan: &HostPlan) -> u64 {
    outputs_of(plan).map(|(ty, len)| (ty.bytes() as u64).saturating_mul(len as u64)).sum()
}

/// Converts a refusal of the child to a diagnostic.
fn refusal(code: &str, message: String, notes: Vec<String>, help: Vec<String>) -> Diagnostic {
    let code = Code::ALL.iter().copied().find(|c| c.as_str() == code);
    Diagnostic { notes, help, ..Diagnostic::error(code.unwrap_or(Code::Internal), message) }
}

/// Returns the description of inputs that goes into a request: slot, type and length of each.
fn layout(inputs: &Inputs) -> Vec<(Slot, ScalarType, usize)> {
    inputs.0.iter().map(|(slot, a)| (slot.clone(), a.ty(), a.len())).collect()
}
