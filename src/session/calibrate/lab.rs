//! Runs probes in a worker: lengthens each until it can be timed, then times probes that are compared with each other
//! interleaved.

use crate::diag::Result;
use crate::opencl::probe::{Count, Probe};
use crate::tune::event::Observer;
use crate::tune::measure::{Outcome, Runner, Schedule, measure};
use crate::tune::worker::{CandidateId, Worker, WorkerError};
use std::time::{Duration, Instant};

/// The time that one unit of a probe's work takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// Median time of the whole device for one unit (a byte, an operation, ...), in nanoseconds.
    pub ns: f64,
    /// Half the distance between the quartiles, as a share of the median.
    pub spread: f64,
    /// Number of timed runs.
    pub runs: usize,
}

impl Reading {
    /// Returns the rate in 10^9 units a second.
    pub fn rate(&self) -> f64 {
        1.0 / self.ns
    }
}

/// The outcome of a probe: a reading, or why there is none.
pub type Answer = std::result::Result<Reading, String>;

/// A probe that can be made longer.
pub struct Trial<'a> {
    make: Box<dyn Fn(Count) -> Probe + 'a>,
    /// The first count that is tried.
    from: Count,
    /// Whether its work depends on the count.
    grows: bool,
}

impl<'a> Trial<'a> {
    /// Makes a trial of a probe whose work is proportional to its count; `from` is tried first.
    pub fn growing(from: Count, make: impl Fn(Count) -> Probe + 'a) -> Trial<'a> {
        Trial { make: Box::new(make), from, grows: true }
    }

    /// Makes a trial of a probe of fixed length.
    pub fn fixed(probe: Probe) -> Trial<'a> {
        Trial { make: Box::new(move |_| probe.clone()), from: Count::ONE, grows: false }
    }
}

/// A worker with a schedule and a time limit.
pub struct Lab<'a> {
    pub worker: Worker,
    observer: &'a dyn Observer,
    schedule: Schedule,
    /// The least time that a run of a probe should take, in microseconds.
    target_us: f64,
    started: Instant,
    /// The time after which no more probes start.
    limit: Duration,
}

impl<'a> Lab<'a> {
    pub fn new(worker: Worker, quick: bool, observer: &'a dyn Observer) -> Lab<'a> {
        let forever = f64::INFINITY;
        let schedule = Schedule {
            rounds: if quick { 5 } else { 9 },
            round_us: if quick { 1_000.0 } else { 4_000.0 },
            max_repetitions: 20,
            slow_factor: forever,
            trial_factor: forever,
            ..Schedule::default()
        };
        let (target_us, limit) = if quick { (500.0, 60) } else { (2_000.0, 100) };
        let limit = Duration::from_secs(limit);
        Lab { worker, observer, schedule, target_us, started: Instant::now(), limit }
    }

    /// Returns the time since the lab was made.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns whether the observer asks to stop.
    pub fn stopped(&self) -> bool {
        self.observer.stop()
    }

    /// Measures one probe.
    ///
    /// # Errors
    /// As [`Lab::compare`].
    pub fn measure(&mut self, trial: Trial) -> Result<Answer> {
        let answers = self.compare(&[trial])?;
        Ok(answers.into_iter().next().unwrap_or_else(|| Err("nothing was measured".into())))
    }

    /// Measures probes that are compared with each other, interleaved. The answers are in the order of the trials.
    ///
    /// # Errors
    /// When no probe can run: the device or its driver is gone.
    pub fn compare(&mut self, trials: &[Trial]) -> Result<Vec<Answer>> {
        let mut fitted = vec![];
        // Probes that are compared take about as long, so each starts at the length that the one before it needed.
        let mut grown = 0;
        for trial in trials {
            fitted.push(self.fit(trial, &mut grown)?);
        }
        let ids: Vec<CandidateId> = fitted.iter().flatten().map(|(id, _)| *id).collect();
        let observer = self.observer;
        let outcomes = measure(&mut self.worker, &ids, &self.schedule, || !observer.stop())?;
        let mut outcomes = outcomes.into_iter();
        let mut answers = vec![];
        for fit in fitted {
            answers.push(match fit {
                Err(why) => Err(why),
                Ok((id, work)) => {
                    let outcome = outcomes.next().map(|(_, outcome)| outcome);
                    self.worker.forget(id);
                    reading(outcome, work)
                }
            });
        }
        Ok(answers)
    }

    /// Builds a probe that is long enough to be timed, and returns it with its work. Starts with the trial's first
    /// count doubled `grown` times; raises `grown` if the probe is still too short.
    fn fit(
        &mut self,
        trial: &Trial,
        grown: &mut u32,
    ) -> Result<std::result::Result<(CandidateId, f64), String>> {
        // The first attempt gives the order of magnitude; the others correct for caches and clock rates.
        for attempt in 0.. {
            let count = trial.from.doubled(*grown);
            if self.elapsed() > self.limit {
                return Ok(Err("there was no time left".into()));
            }
            let probe = (trial.make)(count);
            let tried = self.worker.prepare(probe.plan).and_then(|(id, _)| {
                if !trial.grows {
                    return Ok((id, f64::INFINITY));
                }
                // The first run may still compile and others may be disturbed, so the least time counts.
                let times = self.worker.run_us(id, 5, Duration::from_millis(20))?;
                Ok((id, times.into_iter().min_by(f64::total_cmp).unwrap_or(0.0)))
            });
            let (id, us) = match tried {
                Ok(tried) => tried,
                Err(WorkerError::Candidate(f)) => {
                    let log = f.log.lines().next().unwrap_or_default().to_owned();
                    return Ok(Err(format!("{}: {log}", f.class)));
                }
                Err(e) => return Err(e.into()),
            };
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "from 0 to 12"
            )]
            let more = (self.target_us / us.max(0.1)).log2().ceil().clamp(0.0, 12.0) as u32;
            let longest = count.doubled(more) == count;
            if us >= 0.7 * self.target_us || longest || attempt == 3 {
                return Ok(Ok((id, probe.work)));
            }
            self.worker.forget(id);
            *grown += more;
        }
        Ok(Err("it is too short to be timed".into()))
    }
}

fn reading(outcome: Option<Outcome>, work: f64) -> Answer {
    match outcome {
        Some(Outcome::Timed(s) | Outcome::Slow(s)) => Ok(Reading {
            ns: s.median_us.max(1e-3) * 1e3 / work,
            spread: s.spread_us / s.median_us.max(1e-3),
            runs: s.runs,
        }),
        Some(Outcome::Failed(f)) => Err(f.class.to_string()),
        Some(Outcome::Stopped(_)) | None => Err("stopped".into()),
    }
}
