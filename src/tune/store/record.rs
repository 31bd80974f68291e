//! What the store holds, and how its rows are read.

use crate::opencl::plan::{Buffer, Control, Fault, HostPlan, Launch, Scalar};
use crate::tune::statistics::Summary;
use crate::tune::variant::Variant;
use crate::tune::worker::FailureClass;
use rusqlite::Row;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a set of measurements belongs to: equal keys, comparable times.
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
    /// What a person vouched for instead of having it tested, in words separated by blanks; empty for nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub trust: String,
}

/// What became of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// Checked and measured in every round.
    Timed,
    /// Checked, and given up as too slow after a few runs.
    Slow,
    /// Out.
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

/// One candidate as it was measured. What may be missing, version 1 of the store did not have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The low-level term, as printed.
    pub term: String,
    /// Value of each tunable.
    pub tunables: BTreeMap<String, u64>,
    /// The term as it stands in the e-graph.
    #[serde(default)]
    pub compact: Option<String>,
    /// What tells it from others apart from tunables.
    #[serde(default)]
    pub skeleton: Option<String>,
    /// Hash of the host plan: names the candidate within its key.
    pub plan: String,
    /// The OpenCL source.
    pub source: String,
    /// How its kernels are launched.
    #[serde(default)]
    pub host: Option<Host>,
    /// What became of it.
    pub fate: Fate,
    /// What the driver had to say of a failure.
    pub log: Option<String>,
    /// Time its build took, in milliseconds.
    pub build_ms: Option<f64>,
    /// Median time of a run, in microseconds.
    pub median_us: Option<f64>,
    /// Spread of the runs, in microseconds (see [`super::statistics::Summary`]).
    pub spread_us: Option<f64>,
    /// Time the cost model predicted, in microseconds.
    pub predicted_us: Option<f64>,
    /// What bounds it, by the cost model.
    #[serde(default)]
    pub bound: Option<String>,
    /// Largest relative error against the reference.
    pub max_rel_err: Option<f64>,
    /// When, in seconds since 1970. Set by [`super::Store::record`] when 0.
    pub when: u64,
    /// Digest of the inputs it ran on, where its fate may be due to them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<String>,
    /// The time that building and running it once were given, in seconds, when that was too short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_s: Option<f64>,
    /// Whether it was measured or checked by the owner of this store. No export says so: what comes from others
    /// is not verified.
    #[serde(skip)]
    pub verified: bool,
}

impl Record {
    /// A candidate of which nothing is known yet but what it is.
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

    /// Whether its fate holds for these inputs and for so much time, too. What crashes or is wrong may
    /// do so because of the inputs or of whatever else the machine did, and soon shows it again; waiting for what
    /// takes too long is repeated only for other inputs or more time. Fates that others tell of do not hold.
    pub fn holds(&self, inputs: &str, limit_s: f64) -> bool {
        self.verified
            && match self.fate {
                Fate::Timed | Fate::Slow => true,
                Fate::Failed(FailureClass::Build | FailureClass::Resources) => true,
                Fate::Failed(FailureClass::Crash | FailureClass::Wrong) => false,
                Fate::Failed(FailureClass::Timeout) => {
                    self.inputs.as_deref() == Some(inputs)
                        && self.limit_s.is_some_and(|limit| limit >= limit_s)
                }
            }
    }
}

/// A host plan but for its source.
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
    /// That of a plan.
    pub fn of(plan: &HostPlan) -> Host {
        let HostPlan { source: _, options, buffers, scalars, launches, control, faults } =
            plan.clone();
        Host { options, buffers, scalars, launches, control, faults }
    }

    /// The plan with its source.
    pub fn plan(self, source: String) -> HostPlan {
        let Host { options, buffers, scalars, launches, control, faults } = self;
        HostPlan { source, options, buffers, scalars, launches, control, faults }
    }
}

/// What the measurements under a key are of, in more words than a key has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// The program's file, as it was named.
    pub file: String,
    /// Its text in the standard form.
    pub text: String,
    /// Bytes that the program must move at least.
    pub bytes: u64,
    /// Operations on floats that it states.
    pub flops: f64,
    /// What the device offers beyond the standard, as rules ask for it.
    pub capabilities: Vec<String>,
    /// The cost model that ranked the candidates.
    pub cost_model: String,
    /// The device's read bandwidth by that model, in GB/s.
    pub gb_per_s: f64,
    /// Its operations on floats by that model, in 10^9 a second.
    pub gflops: f64,
}

/// What a search that was carried through came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The strategy.
    pub strategy: String,
    /// Hash of the cost model.
    pub model: String,
    /// The candidates it was to measure.
    pub budget: u64,
    /// The best of those that ran, best first.
    pub ranking: Vec<Ranked>,
    /// What else there is to say of it, for who had it written.
    pub summary: serde_json::Value,
    /// When, in seconds since 1970. Set by [`super::Store::answer`] when 0.
    pub when: u64,
}

/// A place in a ranking.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ranked {
    /// The candidate's plan.
    pub plan: String,
    /// Its times as they decided.
    pub times: Summary,
    /// Largest relative error against the reference.
    pub max_rel_err: f64,
}

/// A key with what the store has under it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The key.
    pub key: Key,
    /// How many candidates.
    pub candidates: u64,
    /// How many of them were measured.
    pub timed: u64,
    /// Median time of the best, in microseconds.
    pub best_us: Option<f64>,
    /// When the last candidate was recorded, in seconds since 1970.
    pub latest: u64,
}

/// Sorted, hence equal for equal maps.
pub(super) fn json(map: &BTreeMap<String, u64>) -> String {
    let object = map.iter().map(|(k, v)| (k.clone(), (*v).into())).collect();
    serde_json::Value::Object(object).to_string()
}

/// Any value as text. Values here are plain data, which can always be written.
pub(super) fn text(value: &impl Serialize) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(|e| rusqlite::Error::ToSqlConversionFailure(e.into()))
}

fn parsed<T: DeserializeOwned>(text: &str) -> rusqlite::Result<T> {
    serde_json::from_str(text).map_err(|e| unreadable(Box::new(e)))
}

/// Of a column that may be empty.
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

/// SQLite's integers are signed.
pub(super) fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

pub(super) fn unsigned(n: i64) -> u64 {
    u64::try_from(n).unwrap_or(0)
}
