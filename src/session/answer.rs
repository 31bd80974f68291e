//! Answers: the stored results of complete searches. The same request is answered from the store, without a new
//! search.
//!
//! [`Session::conclude`] stores an answer when a search ends. [`Session::answered`] reads it again, generates the best
//! kernels from their stored term, and returns the answer only if these kernels are the ones that were measured.

use super::optimize::{Best, Optimized, Shares, Timings, ms, not_saturated};
use super::program::{Program, Sizes};
use super::work::{Work, work};
use super::{Device, Session, recall};
use crate::calculus::elaborate;
use crate::device::cost_model::CostModel;
use crate::device::{DeviceInfo, select};
use crate::diag::{Code, Diagnostic, Result};
use crate::opencl::runtime;
use crate::saturate::{Report, StopReason};
use crate::tune::reference::Checked;
use crate::tune::search::Counts;
use crate::tune::store::{About, Answer, Key, Ranked, Record, Store, cache_of};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Instant;

/// Threads that read stored terms.
const READERS: usize = 4;

/// Marks a result that was read from the store, with the search that it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Stored {
    /// When the search ended, in seconds since 1970.
    pub when: u64,
    /// Its budget: the number of candidates that it was allowed to measure.
    pub budget: u64,
    /// Time for reading and checking the answer, in milliseconds; [`Optimized::timings`] are those of the search.
    pub ms: f64,
}

/// The parts of a report that are stored nowhere else.
#[derive(Serialize, Deserialize)]
struct Summary {
    device: DeviceInfo,
    report: Report,
    ties: usize,
    counts: Counts,
    /// Whether the search also compared the best candidate with the device's bandwidth.
    compared: bool,
    shares: Option<Shares>,
    checked: Option<Checked>,
    timings: Timings,
}

/// Returns a hash of a cost model's whole contents.
fn hash(model: &CostModel) -> String {
    let text = format!("{model:?}");
    blake3::hash(text.as_bytes()).to_hex()[..16].to_owned()
}

impl Session {
    /// Returns the result of an earlier search for the same key, if that search was complete, had at least the present
    /// budget, and its best kernels are those that would be generated now. Opens no device, and asks the drivers for
    /// their devices only if the list of devices is not cached. The flag says whether the best kernels are verified:
    /// measured here, or compared with the interpreter here.
    pub(super) fn answered(
        &self,
        program: &Program,
        sizes: &Sizes,
        begun: Instant,
    ) -> Result<Option<(Optimized, bool)>> {
        let (Some(path), Some(store)) = (&self.store, self.look()?) else { return Ok(None) };
        let Device::Selected(selector) = &self.device else { return Ok(None) };
        let devices = runtime::remembered_devices(&cache_of(path, "devices"), || self.devices())?;
        let listed = select(&devices, selector.as_deref())?.clone();
        let key = self.key(program, sizes, &listed);
        let model = self.cost_model_for(&listed)?;
        let named = hash(&model.model);
        let fits = |a: &Answer| {
            a.strategy == self.searched_by() && a.model == named && a.budget >= self.budget as u64
        };
        for answer in store.answers(&key)?.into_iter().filter(fits) {
            // Another version of patsat may have written a summary of another layout: such an answer is skipped.
            let Ok(s) = serde_json::from_value::<Summary>(answer.summary.clone()) else { continue };
            if self.shares && !s.compared {
                continue;
            }
            let device = DeviceInfo { index: listed.index, ..s.device };
            let elaborated = program.elaborate(sizes)?;
            let Some(ranking) =
                self.ranking(&store, &key, &answer, &elaborated, (&device, &model.model))?
            else {
                continue;
            };
            let Some(best) = ranking.first().cloned() else { continue };
            let mut warnings = self.about_model(&model, &device);
            if s.report.stop_reason != StopReason::Saturated {
                warnings.push(not_saturated(&s.report, &self.limits));
            }
            let verified = store.is_verified(&key, &best.variant.hash)?;
            let answer = Optimized {
                entry: program.entry.name.clone(),
                file: program.source.name.clone(),
                sizes: sizes.clone(),
                device,
                model,
                rules: key.rules,
                float: self.float,
                work: work(program, sizes, &elaborated.term, &elaborated.env)?,
                forms: self.float.forms(&elaborated),
                report: s.report,
                saturated: None,
                best,
                ranking,
                ties: s.ties,
                counts: s.counts,
                shares: s.shares,
                checked: s.checked,
                timings: s.timings,
                interrupted: false,
                stored: Some(Stored { when: answer.when, budget: answer.budget, ms: ms(begun) }),
                warnings,
            };
            return Ok(Some((answer, verified)));
        }
        Ok(None)
    }

    /// Returns the candidates of an answer, best first; `None` if the best one is no longer stored, or if its term now
    /// gives other kernels.
    fn ranking(
        &self,
        store: &Store,
        key: &Key,
        answer: &Answer,
        elaborated: &elaborate::Program,
        (device, model): (&DeviceInfo, &CostModel),
    ) -> Result<Option<Vec<Best>>> {
        let Some((first, others)) = answer.ranking.split_first() else { return Ok(None) };
        let Some(record) = store.candidate(key, &first.plan)? else { return Ok(None) };
        let Some(variant) = self.again(elaborated, &record, device, model) else {
            return Ok(None);
        };
        let mut records = vec![];
        for place in others {
            records.extend(store.candidate(key, &place.plan)?.map(|record| (place, record)));
        }
        // Parsing terms dominates the time of an answer, so several threads share it.
        let each = records.len().div_ceil(READERS).max(1);
        let mut out = vec![recall::best(Arc::new(variant), first)];
        std::thread::scope(|scope| {
            let read = |part: Vec<(&Ranked, Record)>| -> Vec<Best> {
                let best = |(place, record)| recall::ranked(elaborated, place, record);
                part.into_iter().filter_map(best).collect()
            };
            let mut parts = vec![];
            while !records.is_empty() {
                let rest = records.split_off(each.min(records.len()));
                let part = std::mem::replace(&mut records, rest);
                parts.push(scope.spawn(move || read(part)));
            }
            for part in parts {
                match part.join() {
                    Ok(best) => out.extend(best),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
        });
        Ok(Some(out))
    }

    /// Stores the result of a search as an answer. The caller does not store interrupted searches: they continue from
    /// the stored measurements.
    pub(super) fn conclude(&self, store: &mut Store, key: &Key, o: &Optimized) -> Result<()> {
        let place = |b: &Best| {
            let times = b.summary?;
            let max_rel_err = b.max_rel_err.unwrap_or(0.0);
            Some(Ranked {
                plan: b.variant.hash.clone(),
                times,
                max_rel_err,
                kernels: b.variant.kernels.clone(),
                kernels_us: b.kernels_us.clone(),
            })
        };
        let summary = Summary {
            device: o.device.clone(),
            report: o.report.clone(),
            ties: o.ties,
            counts: o.counts.clone(),
            compared: self.shares,
            shares: o.shares.clone(),
            checked: o.checked.clone(),
            timings: o.timings,
        };
        let summary = serde_json::to_value(summary).map_err(|e| {
            Diagnostic::error(Code::Internal, format!("an answer cannot be written: {e}"))
        })?;
        let answer = Answer {
            strategy: self.searched_by(),
            model: hash(&o.model.model),
            budget: self.budget as u64,
            ranking: o.ranking.iter().filter_map(place).collect(),
            summary,
            when: 0,
        };
        store.conclude(key, &answer)
    }

    /// Returns the description of a program that the store keeps besides its measurements.
    pub(super) fn about(
        program: &Program,
        work: Work,
        device: &DeviceInfo,
        model: &CostModel,
    ) -> About {
        let text = super::format(&program.source).unwrap_or_else(|_| program.source.text.clone());
        let doubles = program.entry.params.iter().any(|p| {
            let parts = super::program::components(&p.ty);
            parts.iter().any(|(s, _)| *s == crate::lang::types::ScalarType::F64)
        });
        let gflops = if doubles { model.compute.f64_gflops } else { model.compute.f32_gflops };
        About {
            file: program.source.name.clone(),
            text,
            bytes: work.bytes,
            flops: work.flops,
            capabilities: device.capabilities.names().into_iter().map(str::to_owned).collect(),
            cost_model: model.name.clone(),
            gb_per_s: model.memory.read_gb_per_s,
            gflops,
        }
    }
}
