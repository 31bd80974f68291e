//! The search: decides which candidates are built and timed, and which of them is best.
//!
//! A strategy ([`super::strategy`]) proposes candidates, a few at a time, until the budget is spent. Every
//! candidate is checked against the reference before its time counts, is timed interleaved with the best so far,
//! and goes into the store as soon as it is measured. Finally the best few are timed against each other once more,
//! which separates them or shows a tie.

mod finals;
mod stored;

use crate::diag::{Code, Diagnostic, Result};
use crate::extract::Told;
use crate::opencl::host::HostArray;
use crate::tune::crew::Crew;
use crate::tune::event::{Event, Observer, Phase};
use crate::tune::kernel_times::ByKernel;
use crate::tune::measure::{Outcome, Schedule, measure};
use crate::tune::reference::{Reference, Verdict};
use crate::tune::statistics::Summary;
use crate::tune::store::{Fate, Key, Record, Store};
use crate::tune::strategy::{Strategy, Tried};
use crate::tune::variant::{Pool, Variant};
use crate::tune::worker::{
    Build, CandidateFailure, CandidateId, FailureClass, Worker, WorkerError,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use stored::not_kept;

/// Number of candidates that are timed together, besides the best so far.
const BATCH: usize = 6;
/// Number of candidates that are built ahead while others are timed, where building does not disturb timing.
const AHEAD: usize = 3 * BATCH;

/// Counts of candidates by outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Terms drawn from the e-graph, with those that extraction dropped.
    #[serde(default)]
    pub terms: usize,
    /// What extraction lost on the way to the candidates: first what, then why.
    #[serde(default)]
    pub dropped: Told,
    /// Candidates drawn from the e-graph: terms with values.
    pub generated: usize,
    /// Different skeletons among these.
    pub skeletons: usize,
    /// Candidates for which no kernels were generated, since nothing asked for more: the kernel model did not rank them.
    #[serde(default)]
    pub unranked: usize,
    /// Candidates whose kernels were generated, without duplicates.
    pub lowered: usize,
    /// Candidates whose kernels were the same as another's.
    pub duplicates: usize,
    /// Candidates for which no kernel could be generated, by reason.
    pub rejected: BTreeMap<String, usize>,
    /// Candidates that the driver built.
    pub built: usize,
    /// Candidates among these that were loaded from the cache of built programs instead of compiled.
    #[serde(default)]
    pub cached: usize,
    /// Candidates that were checked and timed.
    pub timed: usize,
    /// Candidates that were checked, then given up as slow.
    pub slow: usize,
    /// Candidates that failed, by class of failure.
    pub failed: BTreeMap<String, usize>,
    /// Candidates among all these whose outcome came from the tuning store.
    pub resumed: usize,
}

/// A variant with its times.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The variant.
    pub variant: Arc<Variant>,
    /// Its times.
    pub summary: Summary,
    /// The median time of each of its kernels in microseconds; empty if they were not timed in this run.
    pub kernels_us: Vec<f64>,
    /// Whether it was timed to the end (and not given up as slow).
    pub finished: bool,
    /// Whether it was timed against the other leaders at the end. Only times from that comparison are comparable.
    pub compared: bool,
    /// Largest relative error against the reference.
    pub max_rel_err: f64,
    /// Time its build took, in milliseconds.
    pub build_ms: f64,
    /// Whether its times come from the tuning store.
    pub resumed: bool,
}

/// The result of a search.
#[derive(Debug, Default)]
pub struct Found {
    /// Every candidate that ran and gave the right result, best first.
    pub ranking: Vec<Measured>,
    /// Number of candidates at the head of the ranking that tie with the best.
    pub ties: usize,
    /// Time spent building, in milliseconds.
    pub compile_ms: f64,
    /// Time spent checking and timing, in milliseconds.
    pub measure_ms: f64,
    /// Whether the search ended early.
    pub interrupted: bool,
    /// The log of the first failure of each class.
    pub logs: BTreeMap<String, String>,
    /// Whether every measurement was written to the store.
    pub kept: bool,
}

/// Everything a search works with.
pub struct Search<'a> {
    /// The process that runs candidates.
    pub worker: &'a mut Worker,
    /// The processes that build candidates ahead, if any.
    pub crew: Option<&'a mut Crew>,
    /// The expected result.
    pub reference: &'a mut Reference,
    /// The store that keeps measurements, and the key to keep them under.
    pub store: Option<(&'a mut Store, &'a Key)>,
    /// Receives progress, and may stop the search.
    pub observer: &'a mut dyn Observer,
    /// Number of candidates to measure, including those whose outcome the store knows.
    pub budget: usize,
    /// Whether to measure candidates again whose outcome the store knows.
    pub anew: bool,
    /// How candidates are chosen.
    pub strategy: Strategy,
    /// Seed of the strategy's random choices.
    pub seed: u64,
}

/// A search under way.
struct State<'a, 'b> {
    search: Search<'a>,
    known: HashMap<String, Record>,
    counts: &'b mut Counts,
    found: Found,
    /// Every candidate that was tried, in order.
    tried: Vec<Tried>,
    done: usize,
    of: usize,
    started: Instant,
    /// Number of candidates measured in this run; the estimate of the remaining time is based on it.
    fresh: usize,
    /// Candidates that are still loaded in the worker, kept for the finals.
    alive: HashMap<String, CandidateId>,
    /// Set when the witness turned out to be wrong: candidates accepted because they agreed with it must be checked
    /// again.
    overturned: bool,
    /// Candidates that failed according to the store but might not fail now.
    doubted: Vec<Arc<Variant>>,
}

/// Searches a pool for its best candidate.
///
/// # Errors
/// When no candidate can run at all: there is no device, the program has no value on these inputs, or the store
/// cannot be read.
pub fn search(search: Search, pool: &mut Pool, counts: &mut Counts) -> Result<Found> {
    let mut known = match &search.store {
        Some((store, key)) if !search.anew => store.measured(key)?,
        Some(_) | None => vec![],
    };
    if !known.is_empty() {
        let (inputs, limit) = (search.worker.inputs_digest(), search.worker.limit().as_secs_f64());
        known.retain(|r| r.holds(&inputs, limit));
    }
    let plans = known.iter().map(|r| r.plan.clone()).collect();
    let mut proposer = search.strategy.proposer(search.budget, search.seed, plans);
    let budget = search.budget;
    let mut state = State {
        search,
        known: known.into_iter().map(|r| (r.plan.clone(), r)).collect(),
        counts,
        found: Found { kept: true, ..Found::default() },
        tried: vec![],
        done: 0,
        of: budget.min(pool.candidates().len()),
        started: Instant::now(),
        fresh: 0,
        alive: HashMap::new(),
        overturned: false,
        doubted: vec![],
    };
    state.search.observer.event(&Event::Phase(Phase::Generate));
    while state.done < budget && !state.stopped() {
        let observer = &*state.search.observer;
        let left = budget - state.done;
        let next = proposer.propose(pool, &state.tried, left, &|| !observer.stop());
        state.counts.lowered = pool.lowered();
        if next.is_empty() {
            if state.stopped() || !pool.fall_back()? {
                break;
            }
            proposer = state.search.strategy.proposer(budget, state.search.seed, HashSet::new());
            continue;
        }
        if state.tried.is_empty() {
            state.search.observer.event(&Event::Phase(Phase::Measure));
        }
        state.round(next.into_iter().map(Arc::new).collect())?;
    }
    state.doubt()?;
    state.of = state.done;
    counts_of(pool, state.counts);
    state.finals()?;
    Ok(state.finish())
}

/// Copies the pool's statistics into the counts.
pub fn counts_of(pool: &Pool, counts: &mut Counts) {
    counts.generated = pool.candidates().len();
    counts.unranked = pool.unranked();
    counts.duplicates = pool.duplicates();
    counts.rejected = pool.rejected().clone();
}

impl State<'_, '_> {
    fn stopped(&self) -> bool {
        self.search.observer.stop()
    }

    fn best(&self) -> Option<&Measured> {
        let done = self.found.ranking.iter().filter(|m| m.finished);
        done.min_by(|a, b| a.summary.median_us.total_cmp(&b.summary.median_us))
    }

    /// Measures variants, batch by batch.
    fn round(&mut self, mut queue: VecDeque<Arc<Variant>>) -> Result<()> {
        let mut batch = vec![];
        loop {
            self.ask_ahead(&queue, batch.len());
            let Some(variant) = queue.pop_front() else { break };
            if self.stopped() {
                self.found.interrupted = true;
                break;
            }
            if let Some(record) = self.known.get(&variant.hash).cloned() {
                self.resume(&variant, &record);
            } else if let Some(ready) = self.prepare(&variant)? {
                batch.push(ready);
            }
            self.check_again(&mut batch)?;
            if batch.len() >= BATCH || (queue.is_empty() && !batch.is_empty()) {
                self.batch(std::mem::take(&mut batch))?;
            }
        }
        if self.found.interrupted && !batch.is_empty() {
            self.batch(batch)?;
        }
        Ok(())
    }

    /// Asks the crew to build the next candidates. If building disturbs timing, asks only for as many as the batch
    /// has room for, so that all builds are done before the batch is timed.
    fn ask_ahead(&mut self, queue: &VecDeque<Arc<Variant>>, batch: usize) {
        let Some(crew) = &mut self.search.crew else { return };
        let room = if crew.is_in_the_way() { BATCH.saturating_sub(batch) } else { AHEAD };
        let unknown = queue.iter().filter(|v| !self.known.contains_key(&v.hash));
        unknown.take(room).for_each(|v| crew.ask(&v.hash, &v.plan));
    }

    /// Waits for the crew's build of a candidate; `None` if the crew was not asked for it or cannot say.
    fn built_ahead(
        &mut self,
        variant: &Variant,
    ) -> Option<std::result::Result<Build, CandidateFailure>> {
        let observer = &*self.search.observer;
        self.search.crew.as_mut()?.wait(&variant.hash, || !observer.stop())
    }

    /// Records the outcome of a candidate for the strategy. A later outcome replaces an earlier one.
    fn learn(&mut self, variant: &Arc<Variant>, median_us: Option<f64>, kernels_us: Vec<f64>) {
        let tried = Tried { variant: variant.clone(), median_us, kernels_us };
        match self.tried.iter_mut().find(|t| t.variant.hash == variant.hash) {
            Some(known) => *known = tried,
            None => self.tried.push(tried),
        }
    }

    fn count_failure(&mut self, class: FailureClass, log: Option<&str>) {
        *self.counts.failed.entry(class.name().to_owned()).or_default() += 1;
        if let Some(log) = log {
            self.found.logs.entry(class.name().to_owned()).or_insert_with(|| log.to_owned());
        }
    }

    fn tell(
        &mut self,
        variant: &Variant,
        fate: Fate,
        median_us: Option<f64>,
        log: Option<&str>,
        resumed: bool,
    ) {
        let left = (self.fresh > 0).then(|| {
            let each = self.started.elapsed().as_secs_f64() / self.fresh as f64;
            Duration::from_secs_f64(each * self.of.saturating_sub(self.done) as f64)
        });
        let best_us = self.best().map(|m| m.summary.median_us);
        let event = Event::Candidate {
            done: self.done,
            of: self.of,
            variant,
            fate,
            median_us,
            log,
            resumed,
            best_us,
            counts: self.counts,
            left,
        };
        self.search.observer.event(&event);
    }

    /// Builds a candidate and checks its result. Returns `None` if it failed, or if the search was stopped.
    fn prepare(&mut self, variant: &Arc<Variant>) -> Result<Option<Ready>> {
        let begun = Instant::now();
        let prepared = match self.built_ahead(variant) {
            Some(Err(failure)) => Err(WorkerError::Candidate(failure)),
            Some(Ok(ahead)) => {
                self.search.worker.prepare(variant.plan.clone()).map(|(id, _)| (id, ahead))
            }
            None if self.stopped() => return Ok(self.interrupt()),
            None => self.search.worker.prepare(variant.plan.clone()),
        };
        self.found.compile_ms += begun.elapsed().as_secs_f64() * 1e3;
        let (id, build) = match prepared {
            Ok(prepared) => prepared,
            Err(WorkerError::Worker(failure)) => return Err(failure),
            Err(WorkerError::Interrupted) => return Ok(self.interrupt()),
            Err(WorkerError::Candidate(failure)) => {
                self.failed(variant, &failure, None, None);
                return Ok(None);
            }
        };
        self.counts.cached += usize::from(build.cached);
        let mut build_ms = build.ms;
        self.counts.built += 1;
        let begun = Instant::now();
        let right = self.search.reference.right();
        let checked = self.search.worker.check_unless(id, right);
        let outputs = match checked {
            Ok((times, outputs)) => {
                // Some drivers finish compiling at the first run.
                let rest_ms = times.overhead_us() / 1e3;
                self.found.compile_ms += rest_ms;
                build_ms += rest_ms;
                outputs
            }
            Err(WorkerError::Worker(failure)) if failure.0.iter().any(|d| d.code == Code::Eval) => {
                if !self.await_reference()? {
                    return Ok(None);
                }
                // The interpreter found no such error. If it computed only a sample, the program may have the error
                // outside the sample. If it computed the whole result, the kernel is wrong.
                if self.search.reference.checked().is_some() {
                    return Err(failure);
                }
                let said = failure.0.first().map(|d| d.message.clone()).unwrap_or_default();
                let log = format!("it says: {said}; the interpreter does not");
                let failure = CandidateFailure { class: FailureClass::Wrong, log };
                self.search.worker.condemn(id, failure.clone());
                self.search.worker.forget(id);
                self.failed(variant, &failure, Some(build_ms), None);
                return Ok(None);
            }
            Err(WorkerError::Worker(failure)) => return Err(failure),
            Err(WorkerError::Interrupted) => return Ok(self.interrupt()),
            Err(WorkerError::Candidate(failure)) => {
                self.failed(variant, &failure, Some(build_ms), None);
                return Ok(None);
            }
        };
        let disputed = |reference: &mut Reference| {
            outputs.as_ref().is_some_and(|outputs| reference.is_disputed(outputs))
        };
        if !self.await_reference()? || disputed(self.search.reference) && !self.await_reference()? {
            return Ok(self.interrupt());
        }
        let verdict = self.compare_outputs(outputs)?;
        self.found.measure_ms += begun.elapsed().as_secs_f64() * 1e3;
        let max_rel_err = verdict.comparison.max_rel_err;
        if !verdict.comparison.ok {
            let failure = self.condemn(id, verdict);
            self.failed(variant, &failure, Some(build_ms), Some(max_rel_err));
            return Ok(None);
        }
        Ok(Some(Ready { variant: variant.clone(), id, build_ms, max_rel_err }))
    }

    /// Notes that the search is to stop; there is no ready candidate.
    fn interrupt(&mut self) -> Option<Ready> {
        self.found.interrupted = true;
        None
    }

    /// Waits for the reference. Returns `false` if the search is to stop first.
    fn await_reference(&mut self) -> Result<bool> {
        if self.search.reference.is_ready() {
            return Ok(true);
        }
        self.search.observer.event(&Event::Phase(Phase::Reference));
        let observer = &*self.search.observer;
        if !self.search.reference.wait(|| !observer.stop())? {
            self.found.interrupted = true;
            return Ok(false);
        }
        self.search.observer.event(&Event::Phase(Phase::Measure));
        Ok(true)
    }

    /// Compares outputs with the reference, which must be ready. `None` stands for outputs that the worker found
    /// identical to those already known to be right.
    fn compare_outputs(&mut self, outputs: Option<Vec<HostArray>>) -> Result<Verdict> {
        let missing = || Diagnostic::error(Code::Internal, "the reference is not there");
        let reference = &mut *self.search.reference;
        let verdict = match outputs {
            Some(outputs) => reference.compare(outputs)?,
            None => reference.same(),
        };
        let verdict = verdict.ok_or_else(missing)?;
        self.overturned |= verdict.overturned;
        Ok(verdict)
    }

    /// Excludes a candidate whose result is not known to be right, and unloads it.
    fn condemn(&mut self, id: CandidateId, verdict: Verdict) -> CandidateFailure {
        let failure = CandidateFailure {
            class: verdict.class(),
            log: format!(
                "{} elements are {}; {}",
                verdict.comparison.mismatches,
                verdict.class(),
                verdict.comparison.first.unwrap_or_default()
            ),
        };
        self.search.worker.condemn(id, failure.clone());
        self.search.worker.forget(id);
        failure
    }

    /// If the witness was overturned, checks the candidates accepted in this run again, until no check overturns
    /// another witness. Candidates from the store were checked when they were measured.
    fn check_again(&mut self, batch: &mut Vec<Ready>) -> Result<()> {
        while std::mem::take(&mut self.overturned) {
            for ready in std::mem::take(batch) {
                match self.still_right(&ready.variant, Some(ready.id))? {
                    None => batch.push(ready),
                    Some(failure) => {
                        self.failed(&ready.variant, &failure, Some(ready.build_ms), None);
                    }
                }
            }
            for m in std::mem::take(&mut self.found.ranking) {
                let id = self.alive.get(&m.variant.hash).copied();
                let failure = match m.resumed {
                    true => None,
                    false => self.still_right(&m.variant, id)?,
                };
                let Some(failure) = failure else {
                    self.found.ranking.push(m);
                    continue;
                };
                self.alive.remove(&m.variant.hash);
                let counted =
                    if m.finished { &mut self.counts.timed } else { &mut self.counts.slow };
                *counted = counted.saturating_sub(1);
                self.done = self.done.saturating_sub(1);
                self.failed(&m.variant, &failure, Some(m.build_ms), None);
            }
        }
        Ok(())
    }

    /// Runs and checks a candidate once more. Returns why it failed, if it did.
    fn still_right(
        &mut self,
        variant: &Variant,
        id: Option<CandidateId>,
    ) -> Result<Option<CandidateFailure>> {
        let known = id.map_or_else(
            || {
                let prepared = self.search.worker.prepare(variant.plan.clone());
                prepared.map(|(id, _)| id)
            },
            Ok,
        );
        let checked = known.and_then(|id| Ok((id, self.search.worker.check(id)?.1)));
        let (now, outputs) = match checked {
            Ok(checked) => checked,
            Err(WorkerError::Candidate(failure)) => return Ok(Some(failure)),
            Err(e) => return Err(e.into()),
        };
        let verdict = self.compare_outputs(Some(outputs))?;
        if !verdict.comparison.ok {
            return Ok(Some(self.condemn(now, verdict)));
        }
        if id.is_none() {
            self.search.worker.forget(now);
        }
        Ok(None)
    }

    /// Records that a candidate failed.
    fn failed(
        &mut self,
        variant: &Arc<Variant>,
        failure: &CandidateFailure,
        build_ms: Option<f64>,
        max_rel_err: Option<f64>,
    ) {
        self.done += 1;
        self.fresh += 1;
        self.learn(variant, None, vec![]);
        self.count_failure(failure.class, Some(&failure.log));
        let fate = Fate::Failed(failure.class);
        self.record(variant, fate, Some(failure.log.clone()), build_ms, None, max_rel_err);
        self.tell(variant, fate, None, Some(&failure.log), false);
    }

    /// Times candidates together with the best so far.
    fn batch(&mut self, batch: Vec<Ready>) -> Result<()> {
        let begun = Instant::now();
        let mut ids: Vec<CandidateId> = batch.iter().map(|r| r.id).collect();
        let incumbent = self.best().map(|m| m.variant.hash.clone());
        if let Some(id) = incumbent.and_then(|h| self.alive.get(&h)) {
            ids.push(*id);
        }
        let observer = &*self.search.observer;
        let schedule = Schedule::default();
        let mut worker = ByKernel::new(self.search.worker);
        let outcomes = measure(&mut worker, &ids, &schedule, || !observer.stop())?;
        let kernels_us: HashMap<CandidateId, Vec<f64>> =
            ids.iter().map(|id| (*id, worker.kernels_us(*id))).collect();
        let outcomes: HashMap<CandidateId, Outcome> = outcomes.into_iter().collect();
        self.found.measure_ms += begun.elapsed().as_secs_f64() * 1e3;
        for ready in batch {
            let Ready { variant, id, build_ms, max_rel_err } = ready;
            let kernels_us = kernels_us.get(&id).cloned().unwrap_or_default();
            let (summary, finished) = match outcomes.get(&id) {
                Some(Outcome::Timed(s)) => (*s, true),
                Some(Outcome::Slow(s)) => (*s, false),
                Some(Outcome::Failed(f)) => {
                    self.failed(&variant, f, Some(build_ms), None);
                    continue;
                }
                // A few runs are enough to rank the candidate, but not to store its time.
                Some(Outcome::Stopped(s)) => {
                    self.found.interrupted = true;
                    if let Some(summary) = *s {
                        self.keep(&variant, (summary, kernels_us), true, max_rel_err, build_ms);
                    }
                    continue;
                }
                None => continue,
            };
            self.done += 1;
            self.fresh += 1;
            let fate = if finished { Fate::Timed } else { Fate::Slow };
            if finished {
                self.counts.timed += 1;
            } else {
                self.counts.slow += 1;
            }
            self.record(&variant, fate, None, Some(build_ms), Some(summary), Some(max_rel_err));
            self.keep(&variant, (summary, kernels_us), finished, max_rel_err, build_ms);
            self.alive.insert(variant.hash.clone(), id);
            self.tell(&variant, fate, Some(summary.median_us), None, false);
        }
        self.thin();
        Ok(())
    }

    fn keep(
        &mut self,
        variant: &Arc<Variant>,
        (summary, kernels_us): (Summary, Vec<f64>),
        finished: bool,
        max_rel_err: f64,
        build_ms: f64,
    ) {
        self.learn(variant, Some(summary.median_us), kernels_us.clone());
        let variant = variant.clone();
        let m = Measured {
            variant,
            summary,
            kernels_us,
            finished,
            compared: false,
            max_rel_err,
            build_ms,
            resumed: false,
        };
        self.found.ranking.push(m);
    }

    fn finish(mut self) -> Found {
        self.found.interrupted |= self.stopped();
        if let Some(best) = self.found.ranking.first() {
            let ties = |m: &&Measured| m.finished && m.summary.ties(&best.summary);
            self.found.ties = self.found.ranking.iter().take_while(ties).count();
        }
        for (_, id) in self.alive {
            self.search.worker.forget(id);
        }
        self.found
    }
}

/// A candidate that is built and whose result is right.
struct Ready {
    variant: Arc<Variant>,
    id: CandidateId,
    build_ms: f64,
    max_rel_err: f64,
}
