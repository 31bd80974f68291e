//! The parent's side: starts the child, waits no longer than allowed, and starts it again.

use super::{Build, CandidateFailure, FailureClass, Reply, Request, frame};
use crate::device::DeviceInfo;
use crate::diag::{Code, Diagnostic, Failure, Limits, Result};
use crate::lang::types::ScalarType;
use crate::opencl::host::{HostArray, Inputs, Slot};
use crate::opencl::plan::HostPlan;
use crate::opencl::runtime::RunTimes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How much of the child's standard error is kept, in bytes.
const LOG_BYTES: usize = 8 << 10;

/// Longest time opening a device and uploading inputs may take.
const INIT_TIME: Duration = Duration::from_secs(120);

/// Names a candidate of one [`Worker`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CandidateId(pub(crate) u64);

/// Why there is no answer.
#[derive(Debug)]
pub enum WorkerError {
    /// The candidate failed; others can go on.
    Candidate(CandidateFailure),
    /// No candidate can run: no device, or no process.
    Worker(Failure),
}

impl From<WorkerError> for Failure {
    fn from(e: WorkerError) -> Failure {
        match e {
            WorkerError::Candidate(c) => Diagnostic::from(c).into(),
            WorkerError::Worker(f) => f,
        }
    }
}

type Answer<T> = std::result::Result<T, WorkerError>;

/// What is known of a candidate.
struct Candidate {
    plan: Arc<HostPlan>,
    /// Set when it failed: it is not tried again.
    failure: Option<CandidateFailure>,
}

/// Candidates in a child process, over one device and one set of inputs.
pub struct Worker {
    command: Box<dyn Fn() -> Command + Send>,
    device: Option<String>,
    inputs: Arc<Inputs>,
    limits: Limits,
    /// Where built programs are kept.
    cache: Option<PathBuf>,
    process: Option<Process>,
    /// What the child's device is, once one has been opened.
    opened: Option<DeviceInfo>,
    candidates: BTreeMap<u64, Candidate>,
    next: u64,
    restarts: usize,
}

/// A running child.
struct Process {
    child: Child,
    stdin: ChildStdin,
    replies: Receiver<(Reply, Vec<u8>)>,
    log: Arc<Mutex<VecDeque<u8>>>,
    /// Candidates this child has built.
    ready: BTreeSet<u64>,
    /// Candidates that have run in this child: a first run may still compile.
    warm: BTreeSet<u64>,
}

impl Drop for Process {
    fn drop(&mut self) {
        // A child that is gone already cannot be killed; either way it must be waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Why a child did not answer.
enum Silence {
    Timeout,
    Death(String),
}

impl Process {
    fn ask(
        &mut self,
        request: &Request,
        bulk: &[&[u8]],
        wait: Duration,
    ) -> std::result::Result<(Reply, Vec<u8>), Silence> {
        // A failed write means that the child is gone, which the closed channel says too.
        let _ = frame::write(&mut self.stdin, request, bulk);
        match self.replies.recv_timeout(wait) {
            Ok(answer) => Ok(answer),
            Err(RecvTimeoutError::Timeout) => Err(Silence::Timeout),
            Err(RecvTimeoutError::Disconnected) => {
                let ended = match self.child.wait() {
                    Ok(status) => format!("the worker process ended: {status}"),
                    Err(e) => format!("the worker process ended: {e}"),
                };
                Err(Silence::Death(ended))
            }
        }
    }

    /// The last of what the child wrote on its standard error.
    fn log(&self) -> String {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = log.iter().copied().collect();
        String::from_utf8_lossy(&bytes).trim().to_string()
    }
}

impl Worker {
    /// A worker on the device that `device` selects. The child is started when it is first needed, by
    /// `command`, which must lead to [`super::serve`].
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

    /// Keeps built programs in a folder, and takes from there what was built before.
    #[must_use]
    pub fn caching(self, folder: Option<PathBuf>) -> Worker {
        Worker { cache: folder, ..self }
    }

    /// This executable's hidden `worker` command.
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

    /// The device, opened in the child.
    pub fn device(&mut self) -> Result<DeviceInfo> {
        self.process()?;
        let none = || Diagnostic::error(Code::Internal, "the worker runs without a device");
        Ok(self.opened.clone().ok_or_else(none)?)
    }

    /// Changes the inputs, and forgets all candidates: another program may follow in the same child.
    pub fn give(&mut self, inputs: Arc<Inputs>) {
        self.candidates.clear();
        self.inputs = inputs;
        let Some(process) = &mut self.process else { return };
        process.ready.clear();
        process.warm.clear();
        let (inputs, bulk) = layout(&self.inputs);
        let answer = process.ask(&Request::Give { inputs }, &bulk, INIT_TIME);
        if !matches!(answer, Ok((Reply::Given, _))) {
            // A new child takes them when it starts, or says why it cannot.
            self.process = None;
        }
    }

    /// What the child has written on its standard error since the last call.
    pub fn said(&mut self) -> String {
        let Some(process) = &self.process else { return String::new() };
        let text = process.log();
        process.log.lock().unwrap_or_else(PoisonError::into_inner).clear();
        text
    }

    /// How many times a child had to be replaced.
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

    /// Builds a program and keeps no more of it than what is cached.
    pub fn compile(&mut self, plan: Arc<HostPlan>) -> Answer<Build> {
        let id = self.next;
        self.next += 1;
        let request = Request::Compile { plan: Box::new(HostPlan::clone(&plan)) };
        match self.ask(id, &request, self.limits.build_time)? {
            (Reply::Built(build), _) => Ok(build),
            (other, _) => Err(self.broken(&other)),
        }
    }

    /// Builds a candidate, runs it once and forgets it: what the first run takes longer than the device needs for
    /// it counts as building.
    pub fn try_out(&mut self, plan: Arc<HostPlan>) -> Answer<Build> {
        let (id, build) = self.prepare(plan)?;
        let ran = self.run(id, 1, Duration::ZERO);
        self.forget(id);
        let first = ran?.first().map_or(0.0, RunTimes::overhead_us);
        Ok(Build { ms: build.ms + first / 1e3, ..build })
    }

    /// Runs a candidate `repetitions` times, or until `budget` is spent (but once at least).
    pub fn run(
        &mut self,
        CandidateId(id): CandidateId,
        repetitions: usize,
        budget: Duration,
    ) -> Answer<Vec<RunTimes>> {
        let budget_us = budget.as_secs_f64() * 1e6;
        let more = u32::try_from(repetitions.saturating_sub(1)).unwrap_or(u32::MAX);
        let more = self.limits.run_time.saturating_mul(more).min(budget);
        let wait = self.run_time(id)?.saturating_add(more);
        let request = Request::Run { id, repetitions, budget_us };
        match self.candidate(id, &request, wait)? {
            (Reply::Timed { times }, _) => Ok(times),
            (other, _) => Err(self.broken(&other)),
        }
    }

    /// Runs a candidate once on poisoned buffers and fetches its outputs, in order.
    pub fn check(&mut self, id: CandidateId) -> Answer<(RunTimes, Vec<HostArray>)> {
        let (times, outputs) = self.check_unless(id, None)?;
        Ok((times, outputs.unwrap_or_default()))
    }

    /// As [`Worker::check`], but for outputs of a known [`digest`](super::digest): they stay where they are.
    pub fn check_unless(
        &mut self,
        CandidateId(id): CandidateId,
        known: Option<&str>,
    ) -> Answer<(RunTimes, Option<Vec<HostArray>>)> {
        let wait = self.run_time(id)?;
        let request = Request::Check { id, known: known.map(str::to_owned) };
        match self.candidate(id, &request, wait)? {
            (Reply::Known { times }, _) => Ok((times, None)),
            (Reply::Outputs { times, outputs }, bulk) => {
                let mut rest = &bulk[..];
                let mut arrays = vec![];
                for (ty, len) in outputs {
                    let bytes = len.checked_mul(ty.bytes()).and_then(|n| rest.split_at_checked(n));
                    let array = bytes.and_then(|(mine, others)| {
                        rest = others;
                        HostArray::from_bytes(ty, mine.to_vec())
                    });
                    let short = || Diagnostic::error(Code::Internal, "outputs came in short");
                    arrays.push(array.ok_or_else(|| WorkerError::Worker(short().into()))?);
                }
                Ok((times, Some(arrays)))
            }
            (other, _) => Err(self.broken(&other)),
        }
    }

    /// Forgets a candidate and frees what it holds on the device.
    pub fn forget(&mut self, CandidateId(id): CandidateId) {
        self.candidates.remove(&id);
        let Some(process) = &mut self.process else { return };
        process.warm.remove(&id);
        if process.ready.remove(&id)
            && process.ask(&Request::Drop { id }, &[], self.limits.run_time).is_err()
        {
            self.process = None;
        }
    }

    /// Records that a candidate's result is wrong, so that it is not run again.
    pub fn condemn(&mut self, CandidateId(id): CandidateId, failure: CandidateFailure) {
        if let Some(candidate) = self.candidates.get_mut(&id) {
            candidate.failure = Some(failure);
        }
    }

    /// The time a candidate's next run is allowed: more for its first, since some drivers finish
    /// compiling then.
    fn run_time(&mut self, id: u64) -> Answer<Duration> {
        let warm = self.process().map_err(WorkerError::Worker)?.warm.contains(&id);
        let compile = if warm { Duration::ZERO } else { self.limits.build_time };
        Ok(self.limits.run_time.saturating_add(compile))
    }

    /// Asks something of a candidate, after building it when the child is new.
    fn candidate(
        &mut self,
        id: u64,
        request: &Request,
        wait: Duration,
    ) -> Answer<(Reply, Vec<u8>)> {
        if !self.process().map_err(WorkerError::Worker)?.ready.contains(&id) {
            self.build(id)?;
        }
        let answer = self.ask(id, request, wait)?;
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
        match self.ask(id, &request, self.limits.build_time)? {
            (Reply::Built(build), _) => {
                if let Some(process) = &mut self.process {
                    process.ready.insert(id);
                }
                Ok(build)
            }
            (other, _) => Err(self.broken(&other)),
        }
    }

    /// Asks; a child that dies or takes too long is replaced at the next question, and the candidate
    /// it was about is out.
    fn ask(&mut self, id: u64, request: &Request, wait: Duration) -> Answer<(Reply, Vec<u8>)> {
        let process = self.process().map_err(WorkerError::Worker)?;
        let failure = match process.ask(request, &[], wait) {
            Ok((Reply::Failed(failure), _)) => failure,
            Ok(answer) => return Ok(answer),
            Err(silence) => {
                let (class, what) = match silence {
                    Silence::Timeout => (
                        FailureClass::Timeout,
                        format!("no answer within {:.1} s", wait.as_secs_f64()),
                    ),
                    Silence::Death(how) => (FailureClass::Crash, how),
                };
                let log = process.log();
                self.process = None;
                self.restarts += 1;
                let log = if log.is_empty() { what } else { format!("{what}\n{log}") };
                CandidateFailure { class, log }
            }
        };
        if let Some(candidate) = self.candidates.get_mut(&id) {
            candidate.failure = Some(failure.clone());
        }
        Err(WorkerError::Candidate(failure))
    }

    /// The child answered something else than it was asked.
    fn broken(&mut self, reply: &Reply) -> WorkerError {
        self.process = None;
        let message = format!("the worker answered out of turn: {reply:?}");
        WorkerError::Worker(Diagnostic::error(Code::Internal, message).into())
    }

    /// The child, started and initialised.
    fn process(&mut self) -> Result<&mut Process> {
        let process = match self.process.take() {
            Some(process) => process,
            None => self.start()?,
        };
        Ok(self.process.insert(process))
    }

    fn start(&mut self) -> Result<Process> {
        let failed = |what: &str, e: String| {
            Diagnostic::error(Code::Internal, format!("the worker process {what}: {e}"))
        };
        let mut command = (self.command)();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A group of its own: Ctrl-C is the parent's to handle, and it ends the child itself.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().map_err(|e| failed("did not start", e.to_string()))?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(failed("has no pipes", "none were made".into()).into());
        };
        let (sender, replies) = mpsc::channel();
        thread::spawn(move || {
            let mut stdout = BufReader::with_capacity(1 << 16, stdout);
            while let Ok(Some(reply)) = frame::read(&mut stdout) {
                if sender.send(reply).is_err() {
                    return;
                }
            }
        });
        let log = Arc::new(Mutex::new(VecDeque::new()));
        let tail = log.clone();
        thread::spawn(move || keep_tail(stderr, &tail));
        let (ready, warm) = (BTreeSet::new(), BTreeSet::new());
        let mut process = Process { child, stdin, replies, log, ready, warm };
        let (inputs, bulk) = layout(&self.inputs);
        let (device, cache) = (self.device.clone(), self.cache.clone());
        let request = Request::Init { device, inputs, cache };
        match process.ask(&request, &bulk, INIT_TIME) {
            Ok((Reply::Ready { device }, _)) => self.opened = Some(device),
            Ok((Reply::Refused { code, message, notes, help }, _)) => {
                let code = Code::ALL.iter().copied().find(|c| c.as_str() == code);
                let d = Diagnostic::error(code.unwrap_or(Code::Internal), message);
                return Err(Diagnostic { notes, help, ..d }.into());
            }
            Ok((reply, _)) => {
                return Err(failed("answered out of turn", format!("{reply:?}")).into());
            }
            Err(silence) => {
                let how = match silence {
                    Silence::Timeout => format!("no answer within {} s", INIT_TIME.as_secs()),
                    Silence::Death(how) => how,
                };
                let d = Diagnostic::error(Code::Driver, "the device's driver could not be started");
                return Err(d.note(how).note(process.log()).into());
            }
        }
        Ok(process)
    }
}

/// What a child is told of inputs, and their bytes.
fn layout(inputs: &Inputs) -> (Vec<(Slot, ScalarType, usize)>, Vec<&[u8]>) {
    let told = inputs.0.iter().map(|(slot, a)| (slot.clone(), a.ty(), a.len())).collect();
    (told, inputs.0.values().map(HostArray::bytes).collect())
}

/// Reads a stream to its end and keeps the last part.
fn keep_tail(mut stream: impl Read, tail: &Mutex<VecDeque<u8>>) {
    let mut chunk = [0; 4096];
    while let Ok(n) = stream.read(&mut chunk) {
        if n == 0 {
            return;
        }
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend(&chunk[..n]);
        let excess = tail.len().saturating_sub(LOG_BYTES);
        tail.drain(..excess);
    }
}
