//! The finals: time the best few candidates against each other, which separates them or shows a tie.

use super::{Measured, State};
use crate::diag::Result;
use crate::tune::event::{Event, Phase};
use crate::tune::measure::{Outcome, Schedule, measure};
use crate::tune::store::Fate;
use crate::tune::variant::Variant;
use crate::tune::worker::{CandidateId, WorkerError};
use std::sync::Arc;
use std::time::Instant;

/// Most candidates in one comparison.
const FINALISTS: usize = 8;
/// Most comparisons.
const FINALS: usize = 3;
/// Candidates whose time exceeds this many times the best are not compared.
const FINAL_FACTOR: f64 = 1.25;

impl State<'_, '_> {
    /// Unloads all but the fastest candidates, to free their memory on the device.
    pub(super) fn thin(&mut self) {
        let mut ranked: Vec<(&str, f64)> = self
            .found
            .ranking
            .iter()
            .map(|m| (m.variant.hash.as_str(), m.summary.median_us))
            .collect();
        ranked.sort_by(|a, b| a.1.total_cmp(&b.1));
        let keep: Vec<String> =
            ranked.into_iter().take(FINALISTS).map(|(h, _)| h.to_owned()).collect();
        let gone: Vec<String> = self.alive.keys().filter(|h| !keep.contains(h)).cloned().collect();
        for hash in gone {
            if let Some(id) = self.alive.remove(&hash) {
                self.search.worker.forget(id);
            }
        }
    }

    /// Times the best few candidates against each other. Repeats this, including candidates whose earlier times are
    /// better than the winner's new time, since the machine may have been less busy then.
    pub(super) fn finals(&mut self) -> Result<()> {
        self.rank();
        for _ in 0..FINALS {
            if self.stopped() {
                break;
            }
            self.compare()?;
            let Some(first) = self.found.ranking.first().filter(|m| m.compared) else { break };
            let best = first.summary.median_us;
            let luckier = |m: &Measured| !m.compared && m.summary.median_us < best;
            if !self.found.ranking.iter().any(|m| m.finished && luckier(m)) {
                break;
            }
        }
        Ok(())
    }

    fn compare(&mut self) -> Result<()> {
        let Some(limit) = self.best().map(|m| m.summary.median_us * FINAL_FACTOR) else {
            return Ok(());
        };
        let finalists: Vec<Arc<Variant>> = self
            .found
            .ranking
            .iter()
            .filter(|m| m.finished && m.summary.median_us <= limit)
            .take(FINALISTS)
            .map(|m| m.variant.clone())
            .collect();
        if finalists.len() < 2 {
            return Ok(());
        }
        self.search.observer.event(&Event::Phase(Phase::Compare));
        let begun = Instant::now();
        let mut ids = vec![];
        for variant in &finalists {
            let id = match self.alive.get(&variant.hash) {
                Some(id) => *id,
                None => match self.search.worker.prepare(variant.plan.clone()) {
                    Ok((id, _)) => id,
                    Err(WorkerError::Candidate(_)) => continue,
                    Err(WorkerError::Worker(failure)) => return Err(failure),
                    Err(WorkerError::Interrupted) => return Ok(()),
                },
            };
            ids.push((id, variant.clone()));
        }
        let schedule = Schedule { rounds: 21, trial_factor: FINAL_FACTOR, ..Schedule::default() };
        let only: Vec<CandidateId> = ids.iter().map(|(id, _)| *id).collect();
        let observer = &*self.search.observer;
        let outcomes = measure(self.search.worker, &only, &schedule, || !observer.stop())?;
        for ((_, outcome), (_, variant)) in outcomes.into_iter().zip(ids) {
            let (summary, finished) = match outcome {
                Outcome::Timed(summary) => (summary, true),
                // The earlier time, which looked better, was luck.
                Outcome::Slow(summary) => (summary, false),
                Outcome::Failed(_) | Outcome::Stopped(_) => continue,
            };
            let mut build_ms = None;
            let mut max_rel_err = None;
            let known = self.found.ranking.iter_mut().find(|m| m.variant.hash == variant.hash);
            if let Some(m) = known {
                m.summary = summary;
                m.finished = finished;
                m.compared = true;
                build_ms = Some(m.build_ms);
                max_rel_err = Some(m.max_rel_err);
            }
            let fate = if finished { Fate::Timed } else { Fate::Slow };
            self.record(&variant, fate, None, build_ms, Some(summary), max_rel_err);
        }
        self.found.measure_ms += begun.elapsed().as_secs_f64() * 1e3;
        self.rank();
        Ok(())
    }

    fn rank(&mut self) {
        self.found.ranking.sort_by(|a, b| {
            let order = (!a.finished, !a.compared).cmp(&(!b.finished, !b.compared));
            order.then(a.summary.median_us.total_cmp(&b.summary.median_us))
        });
    }
}
