//! Compares the predictions of the model of kernels with measured times.

mod anew;

use crate::device::cost_model::CostModel;
use crate::diag::Result;
use crate::tune::statistics::{median, spearman};
use crate::tune::store::{Fate, Key, Record, Store};
use anew::Anew;
use serde::Serialize;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Which of the stored results are compared; all of them by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// A part of the name of the device or its platform, in upper or lower case.
    pub device: Option<String>,
    /// The name of the entry.
    pub program: Option<String>,
}

impl Selection {
    fn meets(&self, key: &Key) -> bool {
        let named =
            |part: &String| key.device.to_lowercase().contains(part.to_lowercase().as_str());
        self.device.as_ref().is_none_or(named)
            && self.program.as_ref().is_none_or(|name| key.entry == *name)
    }
}

/// Which predictions are compared.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Predictions {
    /// The stored predictions, which the search used.
    #[default]
    Stored,
    /// New predictions, by this cost model, or by the one for the device if `None`.
    Anew(Option<Box<CostModel>>),
}

/// The result of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelReport {
    /// One check for each program, size and device: ordered by device, then by number of candidates, the most first.
    pub checks: Vec<ModelCheck>,
    /// Measured candidates that could not be predicted again.
    pub left_out: Vec<LeftOut>,
}

/// Measured candidates of one program, at one size, on one device, without a prediction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LeftOut {
    /// Platform and name of the device.
    pub device: String,
    /// Name of the entry.
    pub program: String,
    /// Value of each size.
    pub sizes: BTreeMap<String, u64>,
    /// Why they have no prediction.
    pub reason: String,
    /// How many candidates.
    pub candidates: usize,
}

/// A candidate with its predicted and its measured time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// Hash of the host plan, its name under its key.
    pub plan: String,
    /// The low-level term, as printed.
    pub term: String,
    /// Its skeleton.
    pub skeleton: String,
    /// Value of each tunable.
    pub tunables: BTreeMap<String, u64>,
    /// What bounds its time, by the model.
    pub bound: String,
    /// Time that the model predicts, in microseconds.
    pub predicted_us: f64,
    /// Median of the measured times, in microseconds.
    pub measured_us: f64,
}

impl Compared {
    fn ratio(&self) -> f64 {
        self.predicted_us / self.measured_us
    }

    /// Makes a comparison from a record; `None` unless it has both times.
    fn of(record: Record) -> Option<Compared> {
        let usable = |t: &f64| t.is_finite() && *t > 0.0;
        Some(Compared {
            predicted_us: record.predicted_us.filter(usable)?,
            measured_us: record.median_us.filter(usable)?,
            plan: record.plan,
            term: record.term,
            skeleton: record.skeleton.unwrap_or_default(),
            tunables: record.tunables,
            bound: record.bound.unwrap_or_default(),
        })
    }
}

/// The comparison for one program, at one size, on one device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelCheck {
    /// Platform and name of the device.
    pub device: String,
    /// Version of its driver.
    pub driver: String,
    /// Name of the entry.
    pub program: String,
    /// Value of each size.
    pub sizes: BTreeMap<String, u64>,
    /// The float mode.
    pub float: String,
    /// Candidates that were both predicted and measured.
    pub candidates: usize,
    /// Spearman's rank correlation of predicted and measured times; see [`spearman`].
    pub rank_correlation: Option<f64>,
    /// Measured time of the candidate that the model ranks first, divided by that of the best: 1 is optimal. If
    /// several candidates tie for the first place, the slowest of them counts.
    pub regret: f64,
    /// The median of predicted time divided by measured time.
    pub median_ratio: f64,
    /// The ratio that is farthest from 1 in either direction, on a logarithmic scale.
    pub worst_ratio: f64,
    /// The candidates, ordered by the distance of their ratio from the median ratio, the farthest first.
    #[serde(skip)]
    pub compared: Vec<Compared>,
}

/// Compares predicted with measured times, for each program, size and device of a store. Candidates that failed or
/// have no prediction do not count. Needs no device.
///
/// # Errors
/// When the store cannot be read.
pub fn check_model(
    store: &Store,
    wanted: &Selection,
    predictions: &Predictions,
) -> Result<ModelReport> {
    let mut anew = match predictions {
        Predictions::Stored => None,
        Predictions::Anew(model) => Some(Anew::new(store, model.as_deref())?),
    };
    let mut out = ModelReport::default();
    for entry in store.list()? {
        let key = entry.key;
        if !wanted.meets(&key) {
            continue;
        }
        let mut records = store.measured(&key)?;
        records.retain(|r| matches!(r.fate, Fate::Timed | Fate::Slow) && r.median_us.is_some());
        if let Some(anew) = &mut anew {
            let (predicted, reasons) = anew.predict(&key, records)?;
            records = predicted;
            out.left_out.extend(reasons.into_iter().map(|(reason, candidates)| LeftOut {
                device: key.device.clone(),
                program: key.entry.clone(),
                sizes: key.sizes.clone(),
                reason: reason.to_owned(),
                candidates,
            }));
        }
        out.checks.extend(compare(&key, records));
    }
    out.checks.sort_by(|a, b| {
        let order = a.device.cmp(&b.device).then(b.candidates.cmp(&a.candidates));
        order.then_with(|| (&a.program, &a.sizes).cmp(&(&b.program, &b.sizes)))
    });
    Ok(out)
}

/// Compares the records of one key; `None` when no candidate was both predicted and measured.
fn compare(key: &Key, records: Vec<Record>) -> Option<ModelCheck> {
    let mut compared: Vec<Compared> = records.into_iter().filter_map(Compared::of).collect();
    let (predicted, measured): (Vec<f64>, Vec<f64>) =
        compared.iter().map(|c| (c.predicted_us, c.measured_us)).unzip();
    let best = measured.iter().copied().min_by(f64::total_cmp)?;
    // The first by prediction; on a tie, the slowest by measurement.
    let first = |a: &&Compared, b: &&Compared| {
        let order = a.predicted_us.total_cmp(&b.predicted_us);
        order.then(b.measured_us.total_cmp(&a.measured_us))
    };
    let pick = compared.iter().min_by(first)?.measured_us;
    let ratios: Vec<f64> = compared.iter().map(Compared::ratio).collect();
    let off = |r: &f64| r.ln().abs();
    let worse = |a: &&f64, b: &&f64| off(a).partial_cmp(&off(b)).unwrap_or(Ordering::Equal);
    let worst_ratio = *ratios.iter().max_by(worse)?;
    let median_ratio = median(&ratios)?;
    let from_median = |c: &Compared| off(&(c.ratio() / median_ratio));
    compared.sort_by(|a, b| from_median(b).total_cmp(&from_median(a)));
    Some(ModelCheck {
        device: key.device.clone(),
        driver: key.driver.clone(),
        program: key.entry.clone(),
        sizes: key.sizes.clone(),
        float: key.float.clone(),
        candidates: compared.len(),
        rank_correlation: spearman(&predicted, &measured),
        regret: pick / best,
        median_ratio,
        worst_ratio,
        compared,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn key(entry: &str, device: &str) -> Key {
        Key {
            program: entry.into(),
            entry: entry.into(),
            sizes: BTreeMap::from([("n".to_owned(), 16)]),
            rules: "r".into(),
            device: device.into(),
            driver: "1".into(),
            tool: "0".into(),
            float: "exact".into(),
            trust: String::new(),
        }
    }

    fn record(plan: &str, fate: Fate, predicted_us: Option<f64>, median_us: Option<f64>) -> Record {
        Record {
            term: "id".into(),
            tunables: BTreeMap::new(),
            compact: None,
            skeleton: None,
            plan: plan.into(),
            source: String::new(),
            host: None,
            bound: None,
            fate,
            log: None,
            build_ms: None,
            median_us,
            spread_us: None,
            predicted_us,
            max_rel_err: None,
            when: 1,
            inputs: None,
            limit_s: None,
            verified: false,
        }
    }

    #[test]
    fn order_regret_and_ratios_follow_from_what_is_stored() {
        let mut store = Store::open(Path::new(":memory:")).expect("a store in memory");
        let k = key("asum", "PoCL cpu");
        let failed = Fate::Failed(crate::tune::worker::FailureClass::Build);
        for r in [
            record("a", Fate::Timed, Some(10.0), Some(40.0)),
            record("b", Fate::Timed, Some(10.0), Some(32.0)),
            record("c", Fate::Timed, Some(20.0), Some(20.0)),
            record("d", Fate::Slow, Some(80.0), Some(50.0)),
            record("e", failed, Some(1.0), None),
            record("f", Fate::Timed, None, Some(1.0)),
        ] {
            store.record(&k, &r).expect("it is kept");
        }
        store
            .record(&key("dot", "CUDA gpu"), &record("a", Fate::Timed, Some(2.0), Some(1.0)))
            .expect("it is kept");
        let of = |wanted: Selection| {
            check_model(&store, &wanted, &Predictions::Stored).expect("a comparison").checks
        };
        assert_eq!(of(Selection::default()).len(), 2);
        let cpu = of(Selection { device: Some("pocl".into()), program: None });
        let c = &cpu[0];
        assert_eq!((cpu.len(), c.program.as_str(), c.candidates), (1, "asum", 4));
        // The model puts two first; the slower of them counts.
        assert_eq!(c.regret, 2.0);
        assert_eq!((c.median_ratio, c.worst_ratio), (0.65625, 0.25));
        // Ratios 1/4, 5/16, 1 and 8/5, of which 21/32 is the median.
        let order: Vec<&str> = c.compared.iter().map(|c| c.plan.as_str()).collect();
        assert_eq!(order, ["a", "d", "b", "c"]);
        // Ranks 1.5, 1.5, 3, 4 and 3, 2, 1, 4.
        let r = c.rank_correlation.expect("a correlation");
        assert!((r - 1.5 / (4.5f64 * 5.0).sqrt()).abs() < 1e-12, "{r}");
        let dot = of(Selection { device: None, program: Some("dot".into()) });
        assert_eq!((dot[0].regret, dot[0].rank_correlation), (1.0, None));
        assert!(
            of(Selection { device: Some("pocl".into()), program: Some("dot".into()) }).is_empty()
        );
    }
}
