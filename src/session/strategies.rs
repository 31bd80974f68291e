//! Compares search strategies: how good a kernel each finds, and after how many measurements.

use super::inputs::{Bound, Request, bind, expected};
use super::optimize::{drawn_counts, nothing};
use super::{Device, Observer, Phase, Program, Session, Sizes, Strategy, memory};
use crate::device::DeviceInfo;
use crate::diag::{Code, Diagnostic, Result};
use crate::kernel::Options;
use crate::tune::event::Event;
use crate::tune::measure::{Outcome, Schedule, measure};
use crate::tune::reference::Reference;
use crate::tune::search::{Search, search};
use crate::tune::statistics::spearman;
use crate::tune::store::{Fate, Store};
use crate::tune::variant::Variant;
use crate::tune::worker::WorkerError;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Rounds in which the best kernels are timed interleaved.
const ROUNDS: usize = 21;

/// The parameters of one search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trial {
    /// How candidates are chosen.
    pub strategy: Strategy,
    /// How many candidates it may measure.
    pub budget: usize,
    /// Seed of the strategy's random choices.
    pub seed: u64,
}

/// The result of one search.
#[derive(Clone, Debug)]
pub struct Tried {
    /// The search.
    pub trial: Trial,
    /// The best time so far in microseconds, after each candidate; `None` before the first candidate that ran. The
    /// times are from the final race, in which the leaders of all searches are timed together.
    pub best_us: Vec<Option<f64>>,
    /// Candidates that failed.
    pub failed: usize,
    /// The kernel that it chose.
    pub winner: Arc<Variant>,
    /// Its time in the final race, in microseconds.
    pub winner_us: f64,
    /// The spread of that time.
    pub spread_us: f64,
}

impl Tried {
    /// Returns the number of candidates after which the best time so far was at most `factor` times `best_us`.
    pub fn within(&self, factor: f64, best_us: f64) -> Option<usize> {
        let near = |b: &Option<f64>| b.is_some_and(|us| us <= factor * best_us);
        self.best_us.iter().position(near).map(|i| i + 1)
    }
}

/// The comparison of strategies on one program.
#[derive(Debug)]
pub struct Strategies {
    /// The entry.
    pub entry: String,
    /// Value of each size.
    pub sizes: Sizes,
    /// Where it ran.
    pub device: DeviceInfo,
    /// Number of candidates that were drawn.
    pub candidates: usize,
    /// Number of different kernels that all searches together measured.
    pub measured: usize,
    /// The least time in the final race, in microseconds.
    pub best_us: f64,
    /// The result of each search.
    pub tried: Vec<Tried>,
    /// Spearman's rank correlation of predicted and measured times, over all kernels that ran.
    pub correlation: Option<f64>,
    /// Whether the run was stopped early.
    pub interrupted: bool,
}

impl Session {
    /// Searches for a program's best kernel with each of `trials`. The searches share measurements through a temporary
    /// store, so that all see the same times. The session's tuning store is not used.
    ///
    /// # Errors
    /// As [`Session::optimize`].
    pub fn strategies(
        &self,
        program: &Program,
        request: &Request,
        trials: &[Trial],
        observer: &mut dyn Observer,
    ) -> Result<Strategies> {
        if self.device == Device::None {
            return Err(Diagnostic::error(Code::Usage, "strategies are compared on a device")
                .help("`patsat devices` lists those there are")
                .into());
        }
        let (device, _) = self.target()?;
        let Bound { sizes, inputs, values, warnings } = bind(program, request)?;
        memory::check_device(program, &sizes, &device)?;
        for warning in &warnings {
            observer.event(&Event::Warning(warning));
        }
        let mut reference = Reference::for_search(&program.entry, &sizes, &values, &self.limits);
        drop(values);
        let folder = tempfile::tempdir()
            .map_err(|e| Diagnostic::error(Code::Io, format!("no temporary folder: {e}")))?;
        let mut store = Store::open(&folder.path().join("shared.sqlite"))?;
        let rewritten = self.rewrite(program, &sizes, observer)?;
        let expected = expected(program, request)?;
        let options = Options { expected, ..self.options(&program.entry.name, &device) };
        let mut staff = self.start_staff(&device, inputs)?;
        let worker = &mut staff.worker;
        let device = worker.device()?;
        let key = self.key(program, &sizes, &device);
        let mut runs = vec![];
        let mut interrupted = false;
        for trial in trials {
            let mut pool = rewritten.pool(&options, &self.limits);
            let mut counts = drawn_counts(&rewritten.drawn);
            let mut recorder = Recorder { inner: observer, seen: vec![] };
            let found = program.placed(search(
                Search {
                    worker,
                    crew: staff.crew.as_mut(),
                    reference: &mut reference,
                    store: Some((&mut store, &key)),
                    observer: &mut recorder,
                    budget: trial.budget,
                    anew: false,
                    strategy: trial.strategy,
                    seed: trial.seed,
                },
                &mut pool,
                &mut counts,
            ))?;
            let seen = recorder.seen;
            interrupted |= found.interrupted;
            match found.ranking.first() {
                Some(first) => runs.push((*trial, seen, first.variant.clone())),
                None if interrupted => break,
                None => return Err(nothing(program, &found, &counts)),
            }
        }
        let records = store.measured(&key)?;
        let times: HashMap<&str, f64> = records
            .iter()
            .filter(|r| matches!(r.fate, Fate::Timed | Fate::Slow))
            .filter_map(|r| Some((r.plan.as_str(), r.median_us?)))
            .collect();
        observer.event(&Event::Phase(Phase::Compare));
        // For comparable times, every kernel that led a search at some point is timed again in one race.
        let held: Vec<Vec<Option<&Arc<Variant>>>> =
            runs.iter().map(|(_, seen, winner)| held(seen, winner, &times)).collect();
        let mut finals = BTreeMap::new();
        for variant in held.iter().flatten().flatten() {
            if finals.contains_key(&variant.hash) {
                continue;
            }
            match worker.prepare(variant.plan.clone()) {
                Ok((id, _)) => _ = finals.insert(variant.hash.clone(), id),
                Err(WorkerError::Candidate(_)) => {}
                Err(WorkerError::Worker(failure)) => return Err(failure),
                Err(WorkerError::Interrupted) => break,
            }
        }
        let schedule = Schedule {
            rounds: ROUNDS,
            slow_factor: 10.0,
            trial_factor: 1e3,
            ..Schedule::default()
        };
        let ids: Vec<_> = finals.values().copied().collect();
        let outcomes = measure(worker, &ids, &schedule, || !observer.stop())?;
        let summaries: HashMap<&str, _> = finals
            .iter()
            .filter_map(|(hash, id)| {
                let (_, outcome) = outcomes.iter().find(|(other, _)| other == id)?;
                match outcome {
                    Outcome::Timed(s) | Outcome::Slow(s) | Outcome::Stopped(Some(s)) => {
                        Some((hash.as_str(), *s))
                    }
                    Outcome::Failed(_) | Outcome::Stopped(None) => None,
                }
            })
            .collect();
        let tried = runs
            .iter()
            .zip(&held)
            .map(|((trial, seen, winner), held)| {
                let mut best: Option<f64> = None;
                let best_us = held.iter().map(|variant| {
                    let here = variant.and_then(|v| summaries.get(v.hash.as_str()));
                    best = least(best, here.map(|s| s.median_us));
                    best
                });
                let best_us = best_us.collect();
                let failed = seen.iter().filter(|v| !times.contains_key(v.hash.as_str())).count();
                let summary = summaries.get(winner.hash.as_str());
                Tried {
                    trial: *trial,
                    best_us,
                    failed,
                    winner: winner.clone(),
                    winner_us: summary.map_or(f64::NAN, |s| s.median_us),
                    spread_us: summary.map_or(f64::NAN, |s| s.spread_us),
                }
            })
            .collect();
        let (predicted, measured): (Vec<f64>, Vec<f64>) = records
            .iter()
            .filter_map(|r| Some((r.predicted_us?, *times.get(r.plan.as_str())?)))
            .unzip();
        Ok(Strategies {
            entry: program.entry.name.clone(),
            sizes,
            device,
            candidates: rewritten.drawn.candidates.len(),
            measured: records.len(),
            best_us: summaries.values().map(|s| s.median_us).fold(f64::INFINITY, f64::min),
            tried,
            correlation: spearman(&predicted, &measured),
            interrupted,
        })
    }
}

/// Returns the leader of a search after each of its candidates, by the times of the search. The last leader is the
/// winner.
fn held<'a>(
    seen: &'a [Arc<Variant>],
    winner: &'a Arc<Variant>,
    times: &HashMap<&str, f64>,
) -> Vec<Option<&'a Arc<Variant>>> {
    let mut best: Option<(f64, &Arc<Variant>)> = None;
    let mut out: Vec<Option<&Arc<Variant>>> = vec![];
    for variant in seen {
        if let Some(us) = times.get(variant.hash.as_str())
            && best.is_none_or(|(least, _)| us < &least)
        {
            best = Some((*us, variant));
        }
        out.push(best.map(|(_, variant)| variant));
    }
    if let Some(last) = out.last_mut() {
        *last = Some(winner);
    }
    out
}

fn least(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    a.zip(b).map(|(a, b)| a.min(b)).or(a).or(b)
}

/// Records the candidates in the order in which they are measured.
struct Recorder<'a> {
    inner: &'a mut dyn Observer,
    seen: Vec<Arc<Variant>>,
}

impl Observer for Recorder<'_> {
    fn event(&mut self, event: &Event) {
        if let Event::Candidate { variant, .. } = event {
            self.seen.push(Arc::new((*variant).clone()));
        }
        self.inner.event(event);
    }

    fn stop(&self) -> bool {
        self.inner.stop()
    }
}
