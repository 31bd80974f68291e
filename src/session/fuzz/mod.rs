//! The differential fuzzer: random programs, compiled under random subsets of the rules, and random candidates of each
//! compared with the interpreter.
//!
//! A program is tried as its [`Case`] says, which is a comment of the program itself: the file alone is enough to
//! try it again. Without a device, the candidates' terms are evaluated instead of their kernels.

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

/// Programs of each reason for a refusal that are made small, where examples are written down.
const EXAMPLES: usize = 12;
/// Longest time for each of these.
const EXAMPLE_TIME: Duration = Duration::from_secs(20);
/// How often whoever watches is asked whether to go on.
const POLL: Duration = Duration::from_millis(200);

/// What is tried.
#[derive(Clone, Debug)]
pub struct Fuzz {
    /// Programs.
    pub programs: u64,
    /// Decides all of them.
    pub seed: u64,
    /// Number of the first program: a long run can be continued.
    pub first: u64,
    /// Candidates that run, of each program.
    pub candidates: usize,
    /// No program is begun after so long.
    pub time: Option<Duration>,
    /// Lengths that size parameters have; none for the usual ones.
    pub lengths: Vec<u64>,
    /// Programs that are tried at a time, each in threads and a worker of its own.
    pub jobs: usize,
    /// Where findings are written; nowhere when not given.
    pub output: Option<PathBuf>,
    /// Longest time that making a failing program smaller may take.
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
            shrink: Duration::from_secs(120),
        }
    }
}

/// Watches a run, and may end it.
pub trait Watcher {
    /// What there is so far.
    fn tally(&mut self, _: &Tally) {}

    /// Something is wrong.
    fn finding(&mut self, _: &Finding) {}

    /// Whether to stop at the next opportunity.
    fn stop(&self) -> bool {
        false
    }
}

/// Watches nothing.
impl Watcher for () {}

/// What every thread works with.
struct Shared<'a> {
    session: &'a Session,
    fuzz: &'a Fuzz,
    device: DeviceInfo,
    model: CostModel,
    scalars: Vec<ScalarType>,
    stop: AtomicBool,
    /// How many programs were refused for each reason.
    examples: Mutex<HashMap<String, usize>>,
}

/// Limits that suit small programs, so many times as large: little is sought, and soon given up.
fn modest(limits: &Limits, times: u32) -> Limits {
    Limits {
        nodes: limits.nodes.min(4_000 * times as usize),
        // Not by the clock alone, or a program would fare otherwise on a busy machine.
        saturation_time: Some(Duration::from_secs(20)),
        skeletons: 16,
        skeletons_per_class: 6,
        assignments: 4,
        ..limits.clone()
    }
}

/// Gives the program of a number.
type Programs<'a> = dyn Fn(&Shared, u64) -> Result<(Arc<Source>, Case)> + Sync + 'a;

impl Session {
    /// Tries random programs.
    ///
    /// # Errors
    /// When there is no such device, or findings cannot be written. What is found wrong is no error, but in the tally.
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

    /// Tries given programs, each as its comment says.
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
            ScalarType::F16 => device.fp16,
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
                            let mut trial = Trial { shared, worker: worker.as_mut() };
                            let outcome = trial.run(&source, &case);
                            shared.finished(&mut trial, source, case, outcome)
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
            let out = self.gather(fuzz, &results, &mut tally, &shared.stop, begun, watcher);
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

    /// Counts results until there are no more.
    fn gather(
        &self,
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

    /// Findings of an outcome, made small; examples of what is refused, too.
    fn finished(
        &self,
        trial: &mut Trial,
        source: Arc<Source>,
        case: Case,
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

    /// Whether one more small example of a reason is wanted.
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

/// The seed of a program.
fn mix(seed: u64, number: u64) -> u64 {
    // The finaliser of SplitMix64.
    let mut z = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(number);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)) >> 16
}
