//! The values that the store holds, and how they are read from database rows.

use crate::opencl::plan::{Buffer, Control, Fault, HostPlan, Launch, Scalar};
use crate::tune::statistics::Summary;
use crate::tune::variant::{Kernel, Variant};
use crate::tune::worker::FailureClass;
use rusqlite::Row;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Identifies a set of measurements. Times under equal keys are comparable.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Key {
    /// Hash of the normalised program.
    pub program: String,
    /// Name of the entry.
    pub entry: String,
    /// Value of each size.
    pub sizes: BTreeMap<String, u64>,
    /// Hash of the rule set.
    pub rules: String,
    /// Platform and name of the device.
    pub device: String,
    /// Version of its driver.
    pub driver: String,
    /// Version of patsat.
    pub tool: String,
    /// The float mode.
    pub float: String,
    /// What the user asked patsat to trust instead of testing, as words separated by blanks; empty if nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub trust: String,
}

/// The outcome of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// Checked and measured in every round.
    Timed,
    /// Checked, and given up as too slow after a few runs.
    Slow,
    /// Failed, and excluded from the ranking.
    #[serde(untagged)]
    Failed(FailureClass),
}

impl Fate {
    /// The name in the store and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Fate::Timed => "timed",
            Fate::Slow => "slow",
            Fate::Failed(class) => class.name(),
        }
    }

    fn from_name(name: &str) -> Option<Fate> {
        match name {
            "timed" => Some(Fate::Timed),
            "slow" => Some(Fate::Slow),
            other => FailureClass::from_name(other).map(Fate::Failed),
        }
    }
}

/// A measured candidate. Fields with a default were added after version 1 of the store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The low-level term, as printed.
    pub term: String,
    /// Value of each tunable.
    pub tunables: BTreeMap<String, u64>,
    /// The term as it stands in the e-graph, with `chunked`, `packed` and the like not expanded.
    #[serde(default)]
    pub compact: Option<String>,
    /// The term without its tile sizes: distinguishes candidates that do not differ in tunables alone.
    #[serde(default)]
    pub skeleton: Option<String>,
    /// Hash of the host plan: identifies the candidate under its key.
    pub plan: String,
    /// The OpenCL source.
    pub source: String,
    /// How its kernels are launched.
    #[serde(default)]
    pub host: Option<Host>,
    /// Outcome of the candidate.
    pub fate: Fate,
    /// The driver's message about a failure.
    pub log: Option<String>,
    /// Time its build took, in milliseconds.
    pub build_ms: Option<f64>,
    /// Median time of a run, in microseconds.
    pub median_us: Option<f64>,
    /// Spread of the runs, in microseconds (see [`super::statistics::Summary`]).
    pub spread_us: Option<f64>,
    /// Time the cost model predicted, in microseconds.
    pub predicted_us: Option<f64>,
    /// The resource that bounds the kernel, by the cost model.
    #[serde(default)]
    pub bound: Option<String>,
    /// Largest relative error against the reference.
    pub max_rel_err: Option<f64>,
    /// Time of recording, in seconds since 1970. [`super::Store::record`] sets it if it is 0.
    pub when: u64,
    /// Digest of the inputs that the candidate ran on; present if its fate may depend on them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<String>,
    /// Time allowed for building it and running it once, in seconds; present if the candidate exceeded that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_s: Option<f64>,
    /// Whether the owner of this store measured or checked the candidate. Never exported: measurements of others
    /// count as unverified.
    #[serde(skip)]
    pub verified: bool,
}

impl Record {
    /// Returns a record of a candidate and its fate, without any measurements.
    pub fn of(variant: &Variant, fate: Fate) -> Record {
        Record {
            term: variant.term.to_string(),
            compact: variant.compact.as_ref().map(ToString::to_string),
            skeleton: Some(variant.skeleton.clone()),
            tunables: variant.tunables(),
            plan: variant.hash.clone(),
            source: variant.plan.source.clone(),
            host: Some(Host::of(&variant.plan)),
            fate,
            log: None,
            build_ms: None,
            median_us: None,
            spread_us: None,
            predicted_us: Some(variant.predicted_us),
            bound: Some(variant.bound.clone()),
            max_rel_err: None,
            when: 0,
            inputs: None,
            limit_s: None,
            verified: true,
        }
    }

    /// Returns whether the stored fate still holds for these inputs and this time limit, so that the candidate need
    /// not be measured again. A crash, a wrong result or one without a decision may depend on the inputs or on other load on the
    /// machine, and trying again is cheap. A timeout is expensive to repeat, so the candidate is tried again only with other
    /// inputs or a longer limit. Unverified fates never hold.
    pub fn holds(&self, inputs: &str, limit_s: f64) -> bool {
        self.verified
            && match self.fate {
                Fate::Timed | Fate::Slow => true,
                Fate::Failed(FailureClass::Build | FailureClass::Resources) => true,
                Fate::Failed(
                    FailureClass::Crash | FailureClass::Wrong | FailureClass::Undecided,
                ) => false,
                Fate::Failed(FailureClass::Timeout) => {
                    self.inputs.as_deref() == Some(inputs)
                        && self.limit_s.is_some_and(|limit| limit >= limit_s)
                }
            }
    }
}

/// A host plan without its source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// See [`HostPlan::options`].
    pub options: String,
    /// See [`HostPlan::buffers`].
    pub buffers: Vec<Buffer>,
    /// See [`HostPlan::scalars`].
    pub scalars: Vec<Scalar>,
    /// See [`HostPlan::launches`].
    pub launches: Vec<Launch>,
    /// See [`HostPlan::control`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub control: Vec<Control>,
    /// See [`HostPlan::faults`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
}

impl Host {
    /// Returns the plan without its source.
    pub fn of(plan: &HostPlan) -> Host {
        let HostPlan { source: _, options, buffers, scalars, launches, control, faults } =
            plan.clone();
        Host { options, buffers, scalars, launches, control, faults }
    }

    /// Returns the complete plan, given its source.
    pub fn plan(self, source: String) -> HostPlan {
        let Host { options, buffers, scalars, launches, control, faults } = self;
        HostPlan { source, options, buffers, scalars, launches, control, faults }
    }
}

/// Describes the program and the device behind a key in more detail than the key itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// File name of the program, as given by the user.
    pub file: String,
    /// The program's text, formatted.
    pub text: String,
    /// Least number of bytes that the program must move.
    pub bytes: u64,
    /// Number of floating-point operations that the program states.
    pub flops: f64,
    /// Extensions of the device beyond the OpenCL standard, by the names that rules use for them.
    pub capabilities: Vec<String>,
    /// The cost model that ranked the candidates.
    pub cost_model: String,
    /// The device's read bandwidth by that model, in GB/s.
    pub gb_per_s: f64,
    /// The device's floating-point rate by that model, in GFLOP/s.
    pub gflops: f64,
}

/// The result of a search that ran to completion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The strategy.
    pub strategy: String,
    /// Hash of the cost model.
    pub model: String,
    /// The number of candidates that the search was allowed to measure.
    pub budget: u64,
    /// The best of the candidates that ran, best first.
    pub ranking: Vec<Ranked>,
    /// Further results, in a form that belongs to the caller who stored the answer.
    pub summary: serde_json::Value,
    /// Time of recording, in seconds since 1970. [`super::Store::conclude`] sets it if it is 0.
    pub when: u64,
}

/// An entry of a ranking.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ranked {
    /// Hash of the candidate's plan.
    pub plan: String,
    /// The times that decided its rank.
    pub times: Summary,
    /// Largest relative error against the reference.
    pub max_rel_err: f64,
    /// Its kernels, as the cost model sees them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernels: Vec<Kernel>,
    /// The median time of each kernel in microseconds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernels_us: Vec<f64>,
}

/// A key with a summary of what the store has under it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The key.
    pub key: Key,
    /// Number of candidates.
    pub candidates: u64,
    /// Number of candidates that were timed.
    pub timed: u64,
    /// Median time of the best candidate, in microseconds.
    pub best_us: Option<f64>,
    /// Time at which the last candidate was recorded, in seconds since 1970.
    pub latest: u64,
}

/// Returns a map as JSON. Keys are sorted, so equal maps give equal texts.
pub(super) fn json(map: &BTreeMap<String, u64>) -> String {
    let object = map.iter().map(|(k, v)| (k.clone(), (*v).into())).collect();
    serde_json::Value::Object(object).to_string()
}

/// Returns a value as JSON. Stored values are plain data, so this does not fail.
pub(super) fn text(value: &impl Serialize) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(|e| rusqlite::Error::ToSqlConversionFailure(e.into()))
}

fn parsed<T: DeserializeOwned>(text: &str) -> rusqlite::Result<T> {
    serde_json::from_str(text).map_err(|e| unreadable(Box::new(e)))
}

/// Reads a JSON value from a column that may be NULL.
pub(super) fn optional<T: DeserializeOwned>(
    row: &Row,
    column: &str,
) -> rusqlite::Result<Option<T>> {
    let text: Option<String> = row.get(column)?;
    text.map(|t| parsed(&t)).transpose()
}

pub(super) fn key(row: &Row) -> rusqlite::Result<Key> {
    Ok(Key {
        program: row.get("program")?,
        entry: row.get("entry")?,
        sizes: map(row, "sizes")?,
        rules: row.get("rules")?,
        device: row.get("device")?,
        driver: row.get("driver")?,
        tool: row.get("tool")?,
        float: row.get("float")?,
        trust: row.get("trust")?,
    })
}

pub(super) fn answer(row: &Row) -> rusqlite::Result<Answer> {
    Ok(Answer {
        strategy: row.get("strategy")?,
        model: row.get("model")?,
        budget: unsigned(row.get("budget")?),
        ranking: parsed(&row.get::<_, String>("ranking")?)?,
        summary: parsed(&row.get::<_, String>("summary")?)?,
        when: unsigned(row.get("recorded")?),
    })
}

fn map(row: &Row, column: &str) -> rusqlite::Result<BTreeMap<String, u64>> {
    parsed(&row.get::<_, String>(column)?)
}

fn unreadable(e: Box<dyn std::error::Error + Send + Sync>) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, e)
}

pub(super) fn record(row: &Row) -> rusqlite::Result<Record> {
    let fate: String = row.get("outcome")?;
    Ok(Record {
        term: row.get("term")?,
        compact: row.get("compact")?,
        skeleton: row.get("skeleton")?,
        tunables: map(row, "tunables")?,
        plan: row.get("plan")?,
        source: row.get("source")?,
        host: optional(row, "host")?,
        fate: Fate::from_name(&fate)
            .ok_or_else(|| unreadable(format!("`{fate}` is no outcome").into()))?,
        log: row.get("log")?,
        build_ms: row.get("build_ms")?,
        median_us: row.get("median_us")?,
        spread_us: row.get("spread_us")?,
        predicted_us: row.get("predicted_us")?,
        bound: row.get("bound")?,
        max_rel_err: row.get("max_rel_err")?,
        when: unsigned(row.get("recorded")?),
        inputs: row.get("inputs")?,
        limit_s: row.get("limit_s")?,
        verified: row.get("verified")?,
    })
}

pub(super) fn entry(row: &Row) -> rusqlite::Result<Entry> {
    Ok(Entry {
        key: key(row)?,
        candidates: unsigned(row.get("candidates")?),
        timed: unsigned(row.get("timed")?),
        best_us: row.get("best_us")?,
        latest: unsigned(row.get("latest")?),
    })
}

/// Converts to SQLite's integers, which are signed.
pub(super) fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

pub(super) fn unsigned(n: i64) -> u64 {
    u64::try_from(n).unwrap_or(0)
}
