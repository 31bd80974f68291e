//! How a search uses the store: takes known outcomes from it, and records new ones.

use super::{Measured, State};
use crate::diag::{Code, Diagnostic, Failure, Result};
use crate::tune::event::Event;
use crate::tune::statistics::Summary;
use crate::tune::store::{Fate, Record};
use crate::tune::variant::Variant;
use crate::tune::worker::FailureClass;
use std::collections::VecDeque;
use std::sync::Arc;

/// Warns that measurements are not stored from now on, and says why.
pub fn not_kept(failure: Failure) -> Diagnostic {
    let mut d = Diagnostic::warning(Code::NotStored, "what is measured is not kept");
    for why in failure.0 {
        d = d.note(why.message);
        d.notes.extend(why.notes);
    }
    d
}

impl State<'_, '_> {
    /// Takes the outcome of a candidate from the store.
    pub(super) fn resume(&mut self, variant: &Arc<Variant>, record: &Record) {
        self.counts.resumed += 1;
        self.done += 1;
        let ran = matches!(record.fate, Fate::Timed | Fate::Slow);
        self.learn(variant, record.median_us.filter(|_| ran), vec![]);
        match (record.fate, record.median_us) {
            (Fate::Timed | Fate::Slow, Some(median_us)) => {
                let finished = record.fate == Fate::Timed;
                let spread_us = record.spread_us.unwrap_or(0.0);
                let summary = Summary { median_us, spread_us, min_us: median_us, runs: 0 };
                self.found.ranking.push(Measured {
                    variant: variant.clone(),
                    summary,
                    kernels_us: vec![],
                    finished,
                    compared: false,
                    max_rel_err: record.max_rel_err.unwrap_or(0.0),
                    build_ms: record.build_ms.unwrap_or(0.0),
                    resumed: true,
                });
                if finished {
                    self.counts.timed += 1;
                } else {
                    self.counts.slow += 1;
                }
                self.counts.built += 1;
            }
            (Fate::Failed(class), _) => {
                self.count_failure(class, record.log.as_deref());
                if class != FailureClass::Build {
                    self.doubted.push(variant.clone());
                }
            }
            (Fate::Timed | Fate::Slow, None) => {}
        }
        self.tell(variant, record.fate, record.median_us, record.log.as_deref(), true);
    }

    /// If no candidate survived, tries those again that failed only according to the store. Every failure has then
    /// been observed in this run before the user is told that all candidates fail.
    pub(super) fn doubt(&mut self) -> Result<()> {
        if !self.found.ranking.is_empty() || self.stopped() {
            return Ok(());
        }
        let doubted: VecDeque<_> = std::mem::take(&mut self.doubted).into();
        for variant in &doubted {
            let Some(record) = self.known.remove(&variant.hash) else { continue };
            self.counts.resumed = self.counts.resumed.saturating_sub(1);
            self.done = self.done.saturating_sub(1);
            let class = record.fate.name();
            if let Some(count) = self.counts.failed.get_mut(class) {
                *count -= 1;
            }
            self.counts.failed.retain(|_, count| *count > 0);
            self.found.logs.remove(class);
        }
        self.round(doubted)
    }

    /// Stores the outcome of a candidate. If that fails, the search goes on without the store, since its result
    /// matters more than the record.
    pub(super) fn record(
        &mut self,
        variant: &Variant,
        fate: Fate,
        log: Option<String>,
        build_ms: Option<f64>,
        summary: Option<Summary>,
        max_rel_err: Option<f64>,
    ) {
        let Some((store, key)) = &mut self.search.store else { return };
        let (mut inputs, mut limit_s) = (None, None);
        if fate == Fate::Failed(FailureClass::Timeout) {
            inputs = Some(self.search.worker.inputs_digest());
            limit_s = Some(self.search.worker.limit().as_secs_f64());
        }
        let record = Record {
            log,
            inputs,
            limit_s,
            build_ms,
            median_us: summary.map(|s| s.median_us),
            spread_us: summary.map(|s| s.spread_us),
            max_rel_err,
            ..Record::of(variant, fate)
        };
        if let Err(failure) = store.record(key, &record) {
            self.search.store = None;
            self.found.kept = false;
            self.search.observer.event(&Event::Warning(&not_kept(failure)));
        }
    }
}
