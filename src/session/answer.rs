//! What a search came to, kept so that the same question is answered without another.

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
use crate::tune::store::{About, Answer, Key, Ranked, Record, Store};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Instant;

/// Threads that read stored terms.
const READERS: usize = 4;

/// That a result is not of now.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Stored {
    /// When the search ended, in seconds since 1970.
    pub when: u64,
    /// The candidates that it was to measure.
    pub budget: u64,
    /// Time it took to find the answer, in milliseconds; [`Optimized::timings`] are the search's.
    pub ms: f64,
}

/// What a report says and nothing else in the store does.
#[derive(Serialize, Deserialize)]
struct Summary {
    device: DeviceInfo,
    report: Report,
    ties: usize,
    counts: Counts,
    /// Whether the best was to be compared with the device's bandwidth.
    compared: bool,
    shares: Option<Shares>,
    checked: Option<Checked>,
    timings: Timings,
}

/// Names a cost model by all that is in it.
fn hash(model: &CostModel) -> String {
    let text = format!("{model:?}");
    blake3::hash(text.as_bytes()).to_hex()[..16].to_owned()
}

impl Session {
    /// What an earlier search for the same came to, if it was carried through with as many candidates and its
    /// kernels are what would be generated now. No device is opened for it, and none is asked
    /// for if the list of them is known. Also says whether its kernels were measured or checked here.
    pub(super) fn answered(
        &self,
        program: &Program,
        sizes: &Sizes,
        begun: Instant,
    ) -> Result<Option<(Optimized, bool)>> {
        let (Some(path), Some(store)) = (&self.store, self.look()?) else { return Ok(None) };
        let Device::Selected(selector) = &self.device else { return Ok(None) };
        let devices =
            runtime::remembered_devices(&path.with_extension("devices"), || self.devices())?;
        let listed = select(&devices, selector.as_deref())?.clone();
        let key = self.key(program, sizes, &listed);
        let model = self.cost_model_for(&listed)?;
        let named = hash(&model.model);
        let fits = |a: &Answer| {
            a.strategy == self.searched_by() && a.model == named && a.budget >= self.budget as u64
        };
        for answer in store.answers(&key)?.into_iter().filter(fits) {
            // Of another version of patsat, perhaps: then it is no answer.
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
                term: elaborated.term,
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

    /// The candidates of an answer; `None` when the best is gone, or other kernels would be generated for it now.
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
        // Reading terms is what takes longest here: side by side.
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

    /// Keeps what a search came to. One that was interrupted is none: it goes on from what was measured.
    pub(super) fn conclude(&self, store: &mut Store, key: &Key, o: &Optimized) -> Result<()> {
        let place = |b: &Best| {
            let times = b.summary?;
            let max_rel_err = b.max_rel_err.unwrap_or(0.0);
            Some(Ranked { plan: b.variant.hash.clone(), times, max_rel_err })
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

    /// What the store is to say of a program besides its measurements.
    pub(super) fn about(
        &self,
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
