//! The child's side of the worker: handles one request at a time until its input ends.

use super::{Build, CandidateFailure, FailureClass, Reply, Request, digest, frame};
use crate::diag::{Code, Diagnostic, Exit, Failure, Result};
use crate::lang::types::ScalarType;
use crate::opencl::host::{HostArray, Inputs, Slot};
use crate::opencl::plan::HostPlan;
use crate::opencl::runtime::{DeviceInputs, Prepared, Progress, RunTimes, Runtime, devices};
use std::collections::{HashMap, HashSet};
use std::io::{self, BufReader, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Most time of a run that is repeated to time its kernels, in microseconds.
const MOST_DETAILED_US: f64 = 1e6;

/// An open device with the inputs on it, and the candidates built so far.
struct Session {
    runtime: Runtime,
    inputs: DeviceInputs,
    candidates: HashMap<u64, Prepared>,
    /// Candidates that have run at least once.
    warm: HashSet<u64>,
    /// Candidates of which each kernel was timed.
    detailed: HashSet<u64>,
}

/// Serves a parent until `input` ends. Must have a process of its own: if the parent exits while a kernel runs, the
/// process exits too, since nobody is left to report to.
pub fn serve(input: impl Read + Send + 'static, mut output: impl Write) -> io::Result<()> {
    let (requests, inbox) = mpsc::channel();
    // `busy` is dropped when the main thread has seen the end of the requests.
    let (busy, idle) = mpsc::channel::<()>();
    thread::spawn(move || {
        let mut input = BufReader::with_capacity(1 << 16, input);
        while let Ok(Some(request)) = frame::read::<(u64, Request)>(&mut input, || u64::MAX) {
            if requests.send(request).is_err() {
                return;
            }
        }
        drop(requests);
        // If the main thread does not see the end within a second, it is in a kernel that may never end.
        if idle.recv_timeout(Duration::from_secs(1)) == Err(mpsc::RecvTimeoutError::Timeout) {
            std::process::exit(Exit::Interrupted as i32);
        }
    });
    let mut session = None;
    for ((number, request), bulk) in inbox {
        // A failed write means that the parent is gone, which the write of the reply will notice.
        let mut tell = |reply: Reply| drop(frame::write(&mut output, &(number, reply), &[]));
        let (reply, outputs) = answer(&mut session, request, &bulk, &mut tell);
        let bulk: Vec<&[u8]> = outputs.iter().map(HostArray::bytes).collect();
        frame::write(&mut output, &(number, reply), &bulk)?;
    }
    drop(busy);
    Ok(())
}

/// Handles a request. `tell` sends progress to the parent before the reply.
fn answer(
    session: &mut Option<Session>,
    request: Request,
    bulk: &[u8],
    tell: &mut dyn FnMut(Reply),
) -> (Reply, Vec<HostArray>) {
    let failed = |failure: Failure| {
        let d = failure.0.into_iter().next();
        Reply::Failed(d.map_or_else(unasked, |d| CandidateFailure::of(&d)))
    };
    let alone = |reply| (reply, vec![]);
    match (request, session) {
        (Request::Devices, _) => alone(match devices() {
            Ok(devices) => Reply::Devices { devices },
            Err(failure) => refused(failure),
        }),
        (Request::Init { device, inputs, cache }, session) => {
            alone(match open(device.as_deref(), &inputs, cache.as_deref(), bulk) {
                Ok(opened) => {
                    let device = opened.runtime.info().clone();
                    *session = Some(opened);
                    Reply::Ready { device }
                }
                Err(failure) => refused(failure),
            })
        }
        (Request::Give { inputs }, Some(s)) => alone(match s.give(&inputs, bulk) {
            Ok(()) => Reply::Given,
            Err(failure) => refused(failure),
        }),
        (Request::Compile { plan }, Some(s)) => alone(match s.runtime.build(&Arc::new(*plan)) {
            Ok(built) => Reply::Built(Build { ms: built.build_ms, cached: built.cached }),
            Err(failure) => failed(failure),
        }),
        (Request::Prepare { id, plan }, Some(s)) => alone(match s.prepare(id, *plan) {
            Ok(build) => Reply::Built(build),
            Err(failure) => failed(failure),
        }),
        (Request::Run { id, repetitions, budget_us }, Some(s)) => {
            alone(match s.run(id, repetitions, budget_us, tell) {
                Ok(times) => Reply::Timed { times },
                Err(failure) => failed(failure),
            })
        }
        (Request::Check { id, known }, Some(s)) => match s.check(id, tell) {
            Ok((times, arrays)) if known.is_some_and(|known| known == digest(&arrays)) => {
                alone(Reply::Known { times })
            }
            Ok((times, arrays)) => {
                let outputs = arrays.iter().map(|a| (a.ty(), a.len())).collect();
                (Reply::Outputs { times, outputs }, arrays)
            }
            Err(failure) if is_about_inputs(&failure) => alone(refused(failure)),
            Err(failure) => alone(failed(failure)),
        },
        (Request::Drop { id }, Some(s)) => {
            s.warm.remove(&id);
            s.detailed.remove(&id);
            if s.candidates.remove(&id).is_some() {
                s.runtime.trim();
            }
            alone(Reply::Dropped)
        }
        (
            Request::Give { .. }
            | Request::Compile { .. }
            | Request::Prepare { .. }
            | Request::Run { .. }
            | Request::Check { .. }
            | Request::Drop { .. },
            None,
        ) => alone(Reply::Failed(unasked())),
    }
}

/// The failure for a request before `Init`: the parent broke the protocol.
fn unasked() -> CandidateFailure {
    CandidateFailure { class: FailureClass::Crash, log: "the worker was not initialised".into() }
}

/// Returns whether the failure is due to the inputs, so that every candidate would fail.
fn is_about_inputs(failure: &Failure) -> bool {
    failure.0.iter().any(|d| d.code == Code::Eval)
}

fn refused(failure: Failure) -> Reply {
    let d = failure
        .0
        .into_iter()
        .next()
        .unwrap_or_else(|| Diagnostic::error(Code::Internal, "a failure without a diagnostic"));
    Reply::Refused {
        code: d.code.as_str().into(),
        message: d.message,
        notes: d.notes,
        help: d.help,
    }
}

fn open(
    device: Option<&str>,
    layout: &[(Slot, ScalarType, usize)],
    cache: Option<&Path>,
    bulk: &[u8],
) -> Result<Session> {
    let runtime = Runtime::open_with(device, cache)?;
    let inputs = runtime.upload(&read_inputs(layout, bulk)?)?;
    let (candidates, warm, detailed) = Default::default();
    Ok(Session { runtime, inputs, candidates, warm, detailed })
}

fn read_inputs(layout: &[(Slot, ScalarType, usize)], mut bulk: &[u8]) -> Result<Inputs> {
    let mut inputs = Inputs::default();
    for (slot, ty, len) in layout {
        let bytes = len.checked_mul(ty.bytes()).and_then(|n| bulk.split_at_checked(n));
        let array = bytes.and_then(|(mine, rest)| {
            bulk = rest;
            HostArray::from_bytes(*ty, mine.to_vec())
        });
        let short = || Diagnostic::error(Code::Internal, "the worker got too few bytes");
        inputs.insert(slot.param.clone(), slot.component, array.ok_or_else(short)?);
    }
    Ok(inputs)
}

impl Session {
    fn candidate(&self, id: u64) -> Result<&Prepared> {
        self.candidates.get(&id).ok_or_else(|| {
            Diagnostic::error(Code::Internal, format!("candidate {id} was not prepared")).into()
        })
    }

    fn give(&mut self, layout: &[(Slot, ScalarType, usize)], bulk: &[u8]) -> Result<()> {
        self.candidates.clear();
        self.runtime.trim();
        self.inputs = self.runtime.upload(&read_inputs(layout, bulk)?)?;
        Ok(())
    }

    fn prepare(&mut self, id: u64, plan: HostPlan) -> Result<Build> {
        let prepared = self.runtime.prepare(self.runtime.build(&Arc::new(plan))?, &self.inputs)?;
        let build = Build { ms: prepared.build_ms(), cached: prepared.cached() };
        self.candidates.insert(id, prepared);
        Ok(build)
    }

    fn check(
        &mut self,
        id: u64,
        tell: &mut dyn FnMut(Reply),
    ) -> Result<(RunTimes, Vec<HostArray>)> {
        let first = self.warm.insert(id);
        let mut told = |progress| tell(of(progress));
        self.candidate(id)?.check_watched(&self.runtime, first.then_some(&mut told))
    }

    fn run(
        &mut self,
        id: u64,
        repetitions: usize,
        budget_us: f64,
        tell: &mut dyn FnMut(Reply),
    ) -> Result<Vec<RunTimes>> {
        let first = self.warm.insert(id);
        let detail = !first && self.detailed.insert(id);
        let candidate = self.candidate(id)?;
        let started = Instant::now();
        let mut times = vec![];
        let mut told = |progress| tell(of(progress));
        loop {
            times.push(match first && times.is_empty() {
                true => candidate.run_watched(&self.runtime, Some(&mut told))?,
                false => candidate.run(&self.runtime)?,
            });
            if times.len() >= repetitions || started.elapsed().as_secs_f64() * 1e6 >= budget_us {
                break;
            }
        }
        // Events between the kernels slow a run down, so the kernels are timed in a run that does not count.
        if detail
            && let Some(run) = times.first_mut()
            && run.kernels_us.is_empty()
            && run.wall_us < MOST_DETAILED_US
        {
            run.kernels_us = candidate.run_watched(&self.runtime, None)?.kernels_us;
        }
        Ok(times)
    }
}

/// Converts the progress of a run to a reply.
fn of(progress: Progress) -> Reply {
    match progress {
        Progress::Begun => Reply::Begun,
        Progress::Ended => Reply::Ended,
    }
}
