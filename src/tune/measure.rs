//! Times candidates that are built and checked, in an interleaved schedule.
//!
//! Each round runs every candidate, so that all candidates share every disturbance of the machine. The caller
//! decides from the summaries which candidate is best.

use super::statistics::{Summary, median};
use super::worker::{CandidateFailure, CandidateId, Worker, WorkerError};
use crate::diag::Result;
use std::time::Duration;

/// The thoroughness of a measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    /// Number of rounds of timed runs.
    pub rounds: usize,
    /// Time that each candidate runs in one round, in microseconds. Short kernels are repeated to fill it.
    pub round_us: f64,
    /// Most repetitions of a candidate in a round.
    pub max_repetitions: usize,
    /// A candidate is given up if all its first runs take more than this many times the least median.
    pub slow_factor: f64,
    /// A candidate is given up if all its runs in the first [`Schedule::trial_rounds`] rounds take more than this
    /// many times the least median.
    pub trial_factor: f64,
    /// Number of rounds after which [`Schedule::trial_factor`] is applied.
    pub trial_rounds: usize,
}

impl Default for Schedule {
    fn default() -> Self {
        Schedule {
            rounds: 9,
            round_us: 5_000.0,
            max_repetitions: 50,
            slow_factor: 3.0,
            trial_factor: 1.3,
            trial_rounds: 3,
        }
    }
}

/// The outcome of measuring one candidate.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Measured in every round.
    Timed(Summary),
    /// Given up as too slow; the summary covers the runs so far.
    Slow(Summary),
    /// Failed while it was measured.
    Failed(CandidateFailure),
    /// Not measured to the end, since the measurement was stopped; the summary covers the runs so far, if any.
    Stopped(Option<Summary>),
}

/// Runs candidates: a [`Worker`], or a simulated clock in tests.
pub trait Runner {
    /// Runs a candidate `repetitions` times, or until `budget` is spent, but at least once. Returns the times on
    /// the device, in microseconds.
    fn run_us(
        &mut self,
        id: CandidateId,
        repetitions: usize,
        budget: Duration,
    ) -> std::result::Result<Vec<f64>, WorkerError>;
}

impl Runner for Worker {
    fn run_us(
        &mut self,
        id: CandidateId,
        repetitions: usize,
        budget: Duration,
    ) -> std::result::Result<Vec<f64>, WorkerError> {
        Ok(self.run(id, repetitions, budget)?.iter().map(|t| t.device_us).collect())
    }
}

/// A candidate being measured.
struct Racer {
    id: CandidateId,
    times: Vec<f64>,
    repetitions: usize,
    out: Option<Out>,
}

/// Why a candidate is no longer run.
enum Out {
    Slow,
    Failed(CandidateFailure),
}

impl Racer {
    fn running(&self) -> bool {
        self.out.is_none()
    }

    fn median(&self) -> Option<f64> {
        median(&self.times)
    }

    /// Runs the candidate and keeps its times, or its failure. Returns whether to go on.
    fn run(
        &mut self,
        runner: &mut impl Runner,
        repetitions: usize,
        budget: Duration,
    ) -> Result<bool> {
        match runner.run_us(self.id, repetitions, budget) {
            Ok(times) => self.times.extend(times),
            Err(WorkerError::Candidate(failure)) => self.out = Some(Out::Failed(failure)),
            Err(WorkerError::Worker(failure)) => return Err(failure),
            Err(WorkerError::Interrupted) => return Ok(false),
        }
        Ok(true)
    }

    /// Returns whether the candidate is still running and all its times exceed `us`. Disturbances only ever add
    /// time, so one faster run is enough to keep a candidate.
    fn slower(&self, us: f64) -> bool {
        self.running() && !self.times.is_empty() && self.times.iter().all(|t| *t > us)
    }
}

/// Measures candidates against each other. Returns the outcomes in the order of `ids`. `go_on` is called before
/// every run; when it returns `false` (Ctrl-C), the measurement ends, and the times so far are returned.
pub fn measure(
    runner: &mut impl Runner,
    ids: &[CandidateId],
    schedule: &Schedule,
    mut go_on: impl FnMut() -> bool,
) -> Result<Vec<(CandidateId, Outcome)>> {
    let start = |&id| Racer { id, times: vec![], repetitions: 1, out: None };
    let mut racers: Vec<Racer> = ids.iter().map(start).collect();
    let mut finished = warm_up(runner, &mut racers, schedule, &mut go_on)?;
    for round in 0..schedule.rounds {
        let count = racers.len();
        for k in 0..count {
            // The order alternates, so that no candidate always follows the same neighbour.
            let racer = &mut racers[if round % 2 == 0 { k } else { count - 1 - k }];
            if !racer.running() {
                continue;
            }
            finished = finished && go_on();
            if !finished {
                break;
            }
            let budget = Duration::from_secs_f64(schedule.round_us.max(0.0) * 4e-6);
            finished = racer.run(runner, racer.repetitions, budget)?;
            if !finished {
                break;
            }
        }
        if round + 1 == schedule.trial_rounds {
            drop_slow(&mut racers, schedule.trial_factor);
        }
    }
    let outcome = |r: Racer| {
        let outcome = match (r.out, Summary::of(&r.times)) {
            (Some(Out::Failed(failure)), _) => Outcome::Failed(failure),
            (Some(Out::Slow), Some(summary)) => Outcome::Slow(summary),
            (None, Some(summary)) if finished => Outcome::Timed(summary),
            (_, summary) => Outcome::Stopped(summary),
        };
        (r.id, outcome)
    };
    Ok(racers.into_iter().map(outcome).collect())
}

/// Number of additional runs of a candidate that looked slow in the warm-up. Other load on the machine can make one
/// short run take ten times as long.
const DOUBTS: usize = 4;

/// A candidate that looks this many times as slow as the best is slow, whatever the other load on the machine, and
/// gets no additional runs.
const HOPELESS: f64 = 30.0;

/// Runs each candidate twice. The first run may still compile, and touches its memory for the first time; the
/// second gives the number of repetitions per round. A candidate that looks slow is run again before it is given
/// up. Returns whether the warm-up was completed.
fn warm_up(
    runner: &mut impl Runner,
    racers: &mut [Racer],
    schedule: &Schedule,
    go_on: &mut impl FnMut() -> bool,
) -> Result<bool> {
    for racer in racers.iter_mut() {
        if !go_on() {
            return Ok(false);
        }
        if !racer.run(runner, 2, Duration::MAX)? {
            return Ok(false);
        }
        if let Some(time) = racer.times.pop() {
            racer.times = vec![time];
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "what does not fit is cut"
            )]
            let fit = (schedule.round_us / time.max(0.1)).ceil() as usize;
            racer.repetitions = fit.clamp(1, schedule.max_repetitions.max(1));
        }
    }
    if let Some(best) = best(racers) {
        let doubtful =
            |r: &&mut Racer| r.slower(schedule.slow_factor * best) && !r.slower(HOPELESS * best);
        for racer in racers.iter_mut().filter(doubtful) {
            if !go_on() {
                return Ok(false);
            }
            let budget = Duration::from_secs_f64(schedule.round_us.max(0.0) * 1e-6);
            if !racer.run(runner, DOUBTS, budget)? {
                return Ok(false);
            }
        }
    }
    drop_slow(racers, schedule.slow_factor);
    // Times of the warm-up count only for the candidates that it excludes.
    racers.iter_mut().filter(|r| r.running()).for_each(|r| r.times.clear());
    Ok(true)
}

/// Returns the least median of the candidates that are still running.
fn best(racers: &[Racer]) -> Option<f64> {
    racers.iter().filter(|r| r.running()).filter_map(Racer::median).min_by(f64::total_cmp)
}

fn drop_slow(racers: &mut [Racer], factor: f64) {
    let Some(best) = best(racers) else { return };
    for racer in racers.iter_mut().filter(|r| r.slower(factor * best)) {
        racer.out = Some(Out::Slow);
    }
}

#[cfg(test)]
mod tests {
    use super::super::worker::FailureClass;
    use super::*;
    use std::collections::HashMap;

    /// A simulated clock. Candidate `i` takes `times[i]`, and a candidate with a negative time crashes on its third
    /// request. `disturbed` is added to the last run of every request, except the first request for candidate 0.
    struct Clock {
        times: Vec<f64>,
        disturbed: f64,
        asked: HashMap<CandidateId, usize>,
    }

    impl Runner for Clock {
        fn run_us(
            &mut self,
            id: CandidateId,
            repetitions: usize,
            _: Duration,
        ) -> std::result::Result<Vec<f64>, WorkerError> {
            let time = self.times[usize::try_from(id.0).expect("small")];
            let asked = self.asked.entry(id).or_default();
            *asked += 1;
            if time < 0.0 && *asked == 3 {
                let log = String::new();
                let failure = CandidateFailure { class: FailureClass::Crash, log };
                return Err(WorkerError::Candidate(failure));
            }
            let mut times = vec![time.abs() + *asked as f64 * 0.01; repetitions];
            if (id.0, *asked) != (0, 1) {
                times[repetitions - 1] += self.disturbed;
            }
            Ok(times)
        }
    }

    fn race(times: &[f64], go_on: impl FnMut() -> bool) -> (Clock, Vec<Outcome>) {
        let clock = Clock { times: times.to_vec(), disturbed: 0.0, asked: HashMap::new() };
        race_by(clock, go_on)
    }

    fn race_by(mut clock: Clock, go_on: impl FnMut() -> bool) -> (Clock, Vec<Outcome>) {
        let ids: Vec<_> = (0..clock.times.len() as u64).map(CandidateId).collect();
        let measured = measure(&mut clock, &ids, &Schedule::default(), go_on);
        let measured = measured.expect("a clock is no worker that fails");
        (clock, measured.into_iter().map(|(_, outcome)| outcome).collect())
    }

    #[test]
    fn slow_candidates_are_given_up() {
        let (clock, outcomes) = race(&[100.0, 1000.0, 150.0, 101.0, -100.0, 4000.0], || true);
        assert!(matches!(outcomes[0], Outcome::Timed(s) if s.runs == 9 * 50));
        assert!(matches!(outcomes[1], Outcome::Slow(s) if s.runs == 1 + DOUBTS));
        assert!(matches!(outcomes[2], Outcome::Slow(s) if s.median_us < 151.0));
        assert!(matches!(outcomes[3], Outcome::Timed(_)));
        assert!(matches!(outcomes[5], Outcome::Slow(s) if s.runs == 1));
        assert!(matches!(&outcomes[4], Outcome::Failed(f) if f.class == FailureClass::Crash));
        assert_eq!(clock.asked[&CandidateId(1)], 1 + 1);
        assert_eq!(clock.asked[&CandidateId(2)], 1 + 3);
        assert_eq!(clock.asked[&CandidateId(3)], 1 + 9);
    }

    #[test]
    fn one_disturbed_run_puts_nobody_out() {
        let clock = Clock { times: vec![100.0; 2], disturbed: 900.0, asked: HashMap::new() };
        let (clock, outcomes) = race_by(clock, || true);
        for outcome in outcomes {
            assert!(matches!(outcome, Outcome::Timed(s) if (s.median_us - 100.0).abs() < 0.2));
        }
        assert_eq!(clock.asked[&CandidateId(1)], 2 + 9);
    }

    #[test]
    fn long_kernels_are_not_repeated() {
        let (_, outcomes) = race(&[9_000.0], || true);
        assert!(matches!(outcomes[0], Outcome::Timed(s) if s.runs == 9));
    }

    #[test]
    fn a_stopped_measurement_keeps_what_it_has() {
        let mut left = 4;
        let (_, outcomes) = race(&[100.0, 100.0], || {
            left -= 1;
            left >= 0
        });
        assert!(outcomes.iter().all(|o| matches!(o, Outcome::Stopped(Some(s)) if s.runs == 50)));
        let (_, outcomes) = race(&[100.0], || false);
        assert_eq!(outcomes, [Outcome::Stopped(None)]);
        assert!(race(&[], || true).1.is_empty());
    }
}
