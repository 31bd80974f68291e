//! Compares the times of kernels that two files tell of: plans, tuning stores, and exports of tuning stores.

use super::plan::{HEAD, Plan};
use super::rules::read;
use crate::diag::{Code, Diagnostic, Result};
use crate::tune::store::{Dump, Fate, Run, Store};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The beginning of every SQLite file.
const DATABASE: &[u8] = b"SQLite format 3\0";

/// What is timed. Times of equal subjects can be compared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subject {
    /// The entry.
    pub entry: String,
    /// Value of each size.
    pub sizes: BTreeMap<String, u64>,
    /// The label of the device.
    pub device: String,
    /// Name of the float mode.
    pub float: String,
    /// Hash of the program.
    pub program: String,
}

/// The time of a run, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Time {
    /// The median of the measurements, or the prediction.
    pub us: f64,
    /// The spread of the measurements; `None` for a prediction.
    pub spread_us: Option<f64>,
}

/// What a file tells of the best kernels of a subject.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Told {
    measured: Option<Time>,
    predicted: Option<Time>,
}

/// A subject that two files tell of, with the time in each.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// What is timed.
    pub subject: Subject,
    /// The time in the first file.
    pub a: Time,
    /// The time in the second file.
    pub b: Time,
}

impl Pair {
    /// Returns the second time as a share of the first.
    pub fn ratio(&self) -> f64 {
        self.b.us / self.a.us
    }

    /// Returns whether the times are predictions.
    pub fn is_predicted(&self) -> bool {
        self.a.spread_us.is_none()
    }
}

/// Two files compared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Compared {
    /// The subjects whose times can be compared, sorted.
    pub pairs: Vec<Pair>,
    /// The subjects that are in the first file alone, or whose times cannot be compared: one is measured, and the other is not.
    pub only_a: Vec<Subject>,
    /// The same for the second file.
    pub only_b: Vec<Subject>,
}

/// Compares two files. Times that were measured are compared if both files have them, else times that the cost model predicted.
///
/// # Errors
/// When a file cannot be read, or is neither a plan nor a tuning store.
pub fn compare(a: &Path, b: &Path) -> Result<Compared> {
    Ok(matched(told(a)?, told(b)?))
}

fn matched(a: BTreeMap<Subject, Told>, mut b: BTreeMap<Subject, Told>) -> Compared {
    let mut out = Compared::default();
    for (subject, a) in a {
        let times = b
            .get(&subject)
            .and_then(|b| a.measured.zip(b.measured).or_else(|| a.predicted.zip(b.predicted)));
        match times.filter(|(a, _)| a.us > 0.0) {
            Some((a, b_time)) => {
                b.remove(&subject);
                out.pairs.push(Pair { subject, a, b: b_time });
            }
            None => out.only_a.push(subject),
        }
    }
    out.only_b = b.into_keys().collect();
    out
}

/// Reads what a file tells.
fn told(path: &Path) -> Result<BTreeMap<Subject, Told>> {
    if is_database(path) {
        return Ok(of_store(&Store::copy(path)?.dump()?));
    }
    let source = read(path)?;
    if source.text.contains(HEAD) {
        return Ok(BTreeMap::from([of_plan(Plan::parse(&source)?)]));
    }
    if source.text.trim_start().starts_with('{') {
        return Ok(of_store(&Dump::parse(&source)?));
    }
    let text = format!("{} is neither a plan nor a tuning store", source.name);
    let d = Diagnostic::error(Code::Usage, text);
    Err(d
        .help("`patsat optimize FILE -o PLAN` writes a plan, `patsat store export` a store")
        .into())
}

fn is_database(path: &Path) -> bool {
    let mut head = [0; DATABASE.len()];
    File::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok() && head == DATABASE
}

fn of_plan(plan: Plan) -> (Subject, Told) {
    let measured = plan.measured.map(|s| Time { us: s.median_us, spread_us: Some(s.spread_us) });
    let predicted = Some(Time { us: plan.predicted_us, spread_us: None });
    let subject = Subject {
        entry: plan.entry,
        sizes: plan.sizes.into_iter().collect(),
        device: plan.device,
        float: plan.float,
        program: plan.program,
    };
    (subject, Told { measured, predicted })
}

/// Returns the best kernels of each subject. A store may have results of one subject under several keys, with other rules, drivers
/// or versions: the latest count.
fn of_store(dump: &Dump) -> BTreeMap<Subject, Told> {
    let mut found: BTreeMap<Subject, (u64, Told)> = BTreeMap::new();
    for run in &dump.runs {
        let Some((latest, told)) = of_run(run) else { continue };
        let key = run.key.clone();
        let subject = Subject {
            entry: key.entry,
            sizes: key.sizes,
            device: key.device,
            float: key.float,
            program: key.program,
        };
        if found.get(&subject).is_none_or(|(before, _)| *before <= latest) {
            found.insert(subject, (latest, told));
        }
    }
    found.into_iter().map(|(subject, (_, told))| (subject, told)).collect()
}

/// Returns what is known of the fastest candidate of a run, and when the last one was measured; `None` if none was timed.
fn of_run(run: &Run) -> Option<(u64, Told)> {
    let timed = run.candidates.iter().filter(|c| c.fate == Fate::Timed);
    let timed = timed.filter_map(|c| Some((c, c.median_us?)));
    let (best, us) = timed.min_by(|(_, a), (_, b)| a.total_cmp(b))?;
    let measured = Some(Time { us, spread_us: Some(best.spread_us.unwrap_or(0.0)) });
    let predicted = best.predicted_us.map(|us| Time { us, spread_us: None });
    let latest = run.candidates.iter().map(|c| c.when).max()?;
    Some((latest, Told { measured, predicted }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::Source;
    use serde_json::json;

    fn subject(n: u64) -> Subject {
        let text = || "x".to_owned();
        let sizes = BTreeMap::from([("n".to_owned(), n)]);
        Subject { entry: text(), sizes, device: text(), float: text(), program: text() }
    }

    #[test]
    fn measured_times_come_before_predicted_ones() {
        let measured = |us| Some(Time { us, spread_us: Some(0.5) });
        let predicted = |us| Some(Time { us, spread_us: None });
        let both = |us| Told { measured: measured(us), predicted: predicted(2.0 * us) };
        let a = BTreeMap::from([(subject(1), both(10.0)), (subject(2), both(10.0))]);
        let model = Told { measured: None, predicted: predicted(10.0) };
        let b =
            BTreeMap::from([(subject(1), both(12.0)), (subject(2), model), (subject(3), model)]);
        let Compared { pairs, only_a, only_b } = matched(a, b);
        let ratios: Vec<_> = pairs.iter().map(|p| (p.ratio(), p.is_predicted())).collect();
        assert_eq!(ratios, [(1.2, false), (0.5, true)]);
        assert_eq!((only_a, only_b), (vec![], vec![subject(3)]));
        let unlike = Told { measured: measured(1.0), predicted: None };
        let there = |told| BTreeMap::from([(subject(1), told)]);
        let apart = matched(there(unlike), there(model));
        assert_eq!((apart.only_a.len(), apart.only_b.len(), apart.pairs.len()), (1, 1, 0));
    }

    /// Returns an export with a run of two candidates for each of these versions.
    fn export(runs: &[(&str, f64, u64)]) -> BTreeMap<Subject, Told> {
        let candidate = |plan: &str, fate: &str, us: f64, when: u64| {
            json!({
                "term": "xs", "tunables": {}, "plan": plan, "source": "", "fate": fate, "log": null,
                "build_ms": null, "median_us": us, "spread_us": null, "predicted_us": 4.0,
                "max_rel_err": null, "when": when,
            })
        };
        let run = |(tool, us, when): &(&str, f64, u64)| {
            json!({
                "key": {
                    "program": "p", "entry": "f", "sizes": {"n": 3}, "rules": "r", "device": "d", "driver": "v",
                    "tool": tool, "float": "exact",
                },
                "about": null, "answers": [],
                "candidates": [candidate("a", "slow", 1.0, *when), candidate("b", "timed", *us, 0)],
            })
        };
        let runs: Vec<_> = runs.iter().map(run).collect();
        let text = json!({"format": "patsat store", "version": 1, "runs": runs}).to_string();
        of_store(&Dump::parse(&Source::new("store.json", text)).expect("an export"))
    }

    #[test]
    fn the_latest_results_of_a_subject_count() {
        let told = export(&[("1", 10.0, 70), ("2", 30.0, 90), ("3", 20.0, 80)]);
        let times: Vec<_> = told.values().map(|told| told.measured.map(|time| time.us)).collect();
        assert_eq!(times, [Some(30.0)]);
        assert_eq!(export(&[]).len(), 0);
    }
}
