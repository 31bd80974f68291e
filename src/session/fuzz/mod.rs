//! The differential fuzzer: compiles random programs under random subsets of the rules, and compares random candidates
//! of each with the interpreter.
//!
//! The [`Case`] of a program decides everything else about its trial. The case is a comment of the program itself, so
//! the file alone reproduces the trial. Without a device, the fuzzer evaluates the candidates' terms instead of
//! running their kernels.

mod case;
mod finding;
mod shrink;
mod tally;
mod trial;

pub use case::Case;
pub use finding::{Finding, Kind};
pub use tally::{Reason, Tally};

use super::{Device, Session};
use crate::device::DeviceInfo;
use crate::device::cost_model::CostModel;
use crate::diag::{Code, Diagnostic, Limits, Result, STACK_BYTES, Source, no_thread};
use crate::lang::arbitrary::{LENGTHS, random};
use crate::lang::types::ScalarType;
use crate::opencl::host::Inputs;
use crate::tune::worker::Worker;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use trial::{Outcome, Stage, Trial};

/// How many refused programs are shrunk for each reason, if an output folder is given.
const EXAMPLES: usize = 12;
/// The longest time for shrinking one of these.
const EXAMPLE_TIME: Duration = Duration::from_secs(20);
/// The interval at which the watcher is asked whether to stop.
const POLL: Duration = Duration::from_millis(200);

/// The options of a fuzzing run.
#[derive(Clone, Debug)]
pub struct Fuzz {
    /// Number of programs.
    pub programs: u64,
    /// The seed that decides all programs.
    pub seed: u64,
    /// Number of the first program, so that a long run can be continued.
    pub first: u64,
    /// How many candidates of each program run.
    pub candidates: usize,
    /// The time after which no new program starts.
    pub time: Option<Duration>,
    /// The values to choose size parameters from; empty for the usual ones.
    pub lengths: Vec<u64>,
    /// How many programs are tried at a time, each with its own thread and worker.
    pub jobs: usize,
    /// The folder for findings; `None` does not write them.
    pub output: Option<PathBuf>,
    /// The longest time for shrinking a failing program.
    pub shrink: Duration,
}

impl Default for Fuzz {
    fn default() -> Fuzz {
        Fuzz {
            programs: 1_000,
            seed: 0,
            first: 0,
            candidates: 3,
            time: None,
            lengths: vec![],
            jobs: 1,
            output: None,
            shrink: Duration::from_mins(2),
        }
    }
}

/// Observes a run, and may stop it.
pub trait Watcher {
    /// Receives the counts so far.
    fn tally(&mut self, _: &Tally) {}

    /// Receives a finding.
    fn finding(&mut self, _: &Finding) {}

    /// Returns whether to stop at the next opportunity.
    fn stop(&self) -> bool {
        false
    }
}

/// Ignores everything, and never stops a run.
impl Watcher for () {}

/// The data that all threads share.
struct Shared<'a> {
    session: &'a Session,
    fuzz: &'a Fuzz,
    device: DeviceInfo,
    model: CostModel,
    scalars: Vec<ScalarType>,
    stop: AtomicBool,
    /// How many programs were refused for each reason; counted only if there is an output folder.
    examples: Mutex<HashMap<String, usize>>,
}

/// Returns limits for small programs: small graphs, few candidates, little time. `times` multiplies the limit on
/// nodes.
fn modest(limits: &Limits, times: u32) -> Limits {
    Limits {
        nodes: limits.nodes.min(4_000 * times as usize),
        // The limit on nodes should take effect first: a limit on time makes the outcome depend on the machine's load.
        saturation_time: Some(Duration::from_secs(20)),
        skeletons: 16,
        skeletons_per_class: 6,
        assignments: 4,
        ..limits.clone()
    }
}

/// Returns the program with a given number.
type Programs<'a> = dyn Fn(&Shared, u64) -> Result<(Arc<Source>, Case)> + Sync + 'a;

impl Session {
    /// Tries random programs.
    ///
    /// # Errors
    /// When there is no such device, or findings cannot be written. Findings are not errors: they are counted in the
    /// tally.
    pub fn fuzz(&self, fuzz: &Fuzz, watcher: &mut dyn Watcher) -> Result<Tally> {
        self.fuzz_with(fuzz, watcher, fuzz.programs, &|shared, number| {
            let seed = mix(fuzz.seed, fuzz.first + number);
            let lengths = if fuzz.lengths.is_empty() { &LENGTHS[..] } else { &fuzz.lengths };
            let sample = random(seed, lengths, &shared.scalars);
            let case = Case { seed, sizes: sample.sizes };
            let name = format!("random-{}-{}.pat", fuzz.seed, fuzz.first + number);
            Ok((Source::new(name, case.comment() + &sample.text), case))
        })
    }

    /// Tries the given programs, each with the case in its comment.
    ///
    /// # Errors
    /// As [`Session::fuzz`], and when a program has no [`Case`].
    pub fn fuzz_programs(
        &self,
        fuzz: &Fuzz,
        programs: &[Arc<Source>],
        watcher: &mut dyn Watcher,
    ) -> Result<Tally> {
        let read: Result<Vec<(Arc<Source>, Case)>> =
            programs.iter().map(|s| Ok((s.clone(), Case::of(s)?))).collect();
        let read = read?;
        self.fuzz_with(fuzz, watcher, read.len() as u64, &|_, number| {
            let none = || Diagnostic::error(Code::Internal, "there is no such program");
            let found = usize::try_from(number).ok().and_then(|i| read.get(i));
            Ok(found.cloned().ok_or_else(none)?)
        })
    }

    fn fuzz_with(
        &self,
        fuzz: &Fuzz,
        watcher: &mut dyn Watcher,
        count: u64,
        program: &Programs,
    ) -> Result<Tally> {
        let begun = Instant::now();
        let (device, choice) = self.target()?;
        let model = choice.model;
        let scalars = ScalarType::ALL.into_iter().filter(|s| match s {
            ScalarType::F64 => device.fp64,
            _ => true,
        });
        let scalars = scalars.collect();
        let stop = AtomicBool::new(false);
        let shared = Shared {
            session: self,
            fuzz,
            device,
            model,
            scalars,
            stop,
            examples: Mutex::default(),
        };
        let next = AtomicU64::new(0);
        let mut tally = Tally::new(shared.device.label(), fuzz.seed);
        thread::scope(|scope| {
            let (send, results) = mpsc::channel();
            for _ in 0..fuzz.jobs.max(1) {
                let (send, shared, next) = (send.clone(), &shared, &next);
                let work = move || {
                    let mut worker = shared.worker();
                    loop {
                        let late = fuzz.time.is_some_and(|most| begun.elapsed() >= most);
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= count || late || shared.stop.load(Ordering::Relaxed) {
                            return;
                        }
                        let tried = program(shared, number).map(|(source, case)| {
                            let mut trial = Trial { shared, worker: worker.as_mut(), until: None };
                            let outcome = trial.run(&source, &case);
                            shared.finished(&mut trial, &source, &case, outcome)
                        });
                        if send.send(tried).is_err() {
                            return;
                        }
                    }
                };
                let builder = thread::Builder::new().stack_size(STACK_BYTES);
                builder.spawn_scoped(scope, work).map_err(|e| no_thread(&e))?;
            }
            drop(send);
            let out = Self::gather(fuzz, &results, &mut tally, &shared.stop, begun, watcher);
            shared.stop.store(true, Ordering::Relaxed);
            out
        })?;
        tally.seconds = begun.elapsed().as_secs_f64();
        if let Some(folder) = &fuzz.output {
            let path = folder.join("refused.md");
            let written = std::fs::create_dir_all(folder)
                .and_then(|()| std::fs::write(&path, tally.refusals_text()));
            written.map_err(|e| {
                Diagnostic::error(Code::Io, format!("{} cannot be written: {e}", path.display()))
            })?;
        }
        Ok(tally)
    }

    /// Receives and counts results until all threads have ended.
    fn gather(
        fuzz: &Fuzz,
        results: &mpsc::Receiver<Result<(Outcome, Vec<Finding>)>>,
        tally: &mut Tally,
        stop: &AtomicBool,
        begun: Instant,
        watcher: &mut dyn Watcher,
    ) -> Result<()> {
        loop {
            match results.recv_timeout(POLL) {
                Ok(tried) => {
                    let (outcome, findings) = tried?;
                    tally.count(&outcome);
                    for mut finding in findings {
                        if let Some(folder) = &fuzz.output {
                            finding.write(folder)?;
                        }
                        watcher.finding(&finding);
                        tally.found(&finding);
                    }
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(()),
            }
            tally.seconds = begun.elapsed().as_secs_f64();
            watcher.tally(tally);
            if watcher.stop() {
                tally.interrupted = true;
                stop.store(true, Ordering::Relaxed);
            }
        }
    }
}

impl Shared<'_> {
    fn worker(&self) -> Option<Worker> {
        match self.session.device {
            Device::None => None,
            Device::Selected(_) => Some(self.session.start_worker(&self.device, Inputs::default())),
        }
    }

    /// Shrinks the failures of an outcome, one of each kind, and returns them as findings. Also shrinks a refused
    /// program if another example of the reason is wanted.
    fn finished(
        &self,
        trial: &mut Trial,
        source: &Arc<Source>,
        case: &Case,
        mut outcome: Outcome,
    ) -> (Outcome, Vec<Finding>) {
        let most = self.fuzz.shrink;
        if let Stage::Refused(why, message) = &outcome.stage
            && self.is_wanted(why)
        {
            let same = |o: Outcome| match o.stage {
                Stage::Refused(other, message) if other == *why => Some(message),
                _ => None,
            };
            let first = (source.clone(), case.clone(), message.clone());
            let (less, _, message) = shrink::shrink(trial, first, most.min(EXAMPLE_TIME), same);
            outcome.text.clone_from(&less.text);
            outcome.stage = Stage::Refused(why.clone(), message);
        }
        let mut kinds: Vec<Kind> = vec![];
        let mut findings = vec![];
        for failure in &outcome.failures {
            if kinds.contains(&failure.kind) {
                continue;
            }
            kinds.push(failure.kind);
            let original = source.clone();
            let kind = failure.kind;
            let same = |o: Outcome| o.failures.into_iter().find(|f| f.kind == kind);
            let first = (source.clone(), case.clone(), failure.clone());
            let (source, case, failure) = shrink::shrink(trial, first, most, same);
            findings.push(Finding { source, original, case, failure, folder: None });
        }
        (outcome, findings)
    }

    /// Returns whether another shrunk example of a reason is wanted.
    fn is_wanted(&self, why: &str) -> bool {
        if self.fuzz.output.is_none() {
            return false;
        }
        let mut examples = self.examples.lock().unwrap_or_else(PoisonError::into_inner);
        let count = examples.entry(why.to_owned()).or_insert(0);
        *count += 1;
        *count <= EXAMPLES
    }
}

/// Returns the seed of the program with a given number.
fn mix(seed: u64, number: u64) -> u64 {
    // The finaliser of SplitMix64.
    let mut z = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(number);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)) >> 16
}
