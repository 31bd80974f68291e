//! The tuning store: what was measured, kept in an SQLite file.
//!
//! Every measurement is a transaction of its own, so an interrupted run loses nothing and can be
//! resumed. Several processes may use one store; a measurement is never changed, only replaced by a
//! newer one of the same candidate.

mod schema;

use super::worker::FailureClass;
use crate::diag::{Code, Diagnostic, Result};
use rusqlite::{Connection, ErrorCode, OptionalExtension, Row, named_params, params};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long another process's transaction is waited for.
const BUSY: Duration = Duration::from_secs(5);

/// What a set of measurements belongs to: equal keys, comparable times.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
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

/// One candidate as it was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The low-level term, as printed.
    pub term: String,
    /// Value of each tunable.
    pub tunables: BTreeMap<String, u64>,
    /// Hash of the host plan: names the candidate within its key.
    pub plan: String,
    /// The OpenCL source.
    pub source: String,
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
    /// Largest relative error against the reference.
    pub max_rel_err: Option<f64>,
    /// When, in seconds since 1970. Set by [`Store::record`] when 0.
    pub when: u64,
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

/// What [`Store::gc`] keeps. Everything by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// Only so many of the best measured candidates of each key; failures go.
    pub best: Option<usize>,
    /// Only what was recorded within this time.
    pub within: Option<Duration>,
    /// Only what this version of patsat recorded.
    pub tool: Option<String>,
}

/// An open store.
pub struct Store {
    connection: Connection,
    path: PathBuf,
}

/// Where the store lies unless a person says otherwise: `$PATSAT_STORE`, else in `$XDG_CACHE_HOME`,
/// else in `~/.cache`. `None` when none of them is set.
pub fn default_path() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let cache = || set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
    set("PATSAT_STORE").or_else(|| Some(cache()?.join("patsat").join("store.sqlite")))
}

impl Store {
    /// Opens the store at a path, and makes it (and its folder) when it is not there.
    pub fn open(path: &Path) -> Result<Store> {
        Store::open_within(path, BUSY)
    }

    /// The same, waiting no longer than `busy` for other processes.
    pub fn open_within(path: &Path, busy: Duration) -> Result<Store> {
        if let Some(folder) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(|e| {
                let message = format!("the folder of the tuning store cannot be made: {e}");
                Diagnostic::error(Code::StoreFailed, message).note(folder.display().to_string())
            })?;
        }
        let mut connection = Connection::open(path).map_err(|e| explain(&e, path))?;
        connection.busy_timeout(busy).map_err(|e| explain(&e, path))?;
        schema::prepare(&mut connection, path)?;
        Ok(Store { connection, path: path.to_path_buf() })
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps a measurement, durably. One of the same candidate under the same key is replaced.
    pub fn record(&mut self, key: &Key, record: &Record) -> Result<()> {
        let path = self.path.clone();
        self.record_raw(key, record).map_err(|e| explain(&e, &path).into())
    }

    fn record_raw(&mut self, key: &Key, record: &Record) -> rusqlite::Result<()> {
        let when = if record.when == 0 { now() } else { record.when };
        let write = self.connection.transaction()?;
        write.execute(
            "INSERT OR IGNORE INTO runs (program, entry, sizes, rules, device, driver, tool, float)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            params![
                key.program,
                key.entry,
                json(&key.sizes),
                key.rules,
                key.device,
                key.driver,
                key.tool,
                key.float
            ],
        )?;
        let run = find(&write, key)?;
        write.execute(
            "INSERT OR REPLACE INTO candidates (run, term, tunables, plan, source, outcome, log,
                 build_ms, median_us, spread_us, predicted_us, max_rel_err, recorded)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
            params![
                run,
                record.term,
                json(&record.tunables),
                record.plan,
                record.source,
                record.fate.name(),
                record.log,
                record.build_ms,
                record.median_us,
                record.spread_us,
                record.predicted_us,
                record.max_rel_err,
                signed(when)
            ],
        )?;
        write.commit()
    }

    /// Everything measured under a key, best first and failures last: what a resumed run need not
    /// measure again.
    pub fn measured(&self, key: &Key) -> Result<Vec<Record>> {
        self.select(key, u32::MAX)
    }

    /// The best measured candidate of a key.
    pub fn best(&self, key: &Key) -> Result<Option<Record>> {
        Ok(self.select(key, 1)?.into_iter().find(|r| r.fate == Fate::Timed))
    }

    fn select(&self, key: &Key, most: u32) -> Result<Vec<Record>> {
        let raw = || -> rusqlite::Result<Vec<Record>> {
            let Some(run) = find(&self.connection, key)? else { return Ok(vec![]) };
            let mut query = self.connection.prepare_cached(
                "SELECT * FROM candidates WHERE run = ?1
                 ORDER BY outcome <> 'timed', median_us IS NULL, median_us, plan LIMIT ?2",
            )?;
            query.query_map(params![run, most], record)?.collect()
        };
        raw().map_err(|e| explain(&e, &self.path).into())
    }

    /// Every key with what there is under it, the latest first.
    pub fn list(&self) -> Result<Vec<Entry>> {
        let raw = || -> rusqlite::Result<Vec<Entry>> {
            let mut query = self.connection.prepare_cached(
                "SELECT runs.*, COUNT(*) AS candidates, SUM(outcome = 'timed') AS timed,
                     MIN(CASE outcome WHEN 'timed' THEN median_us END) AS best_us,
                     MAX(recorded) AS latest
                 FROM runs JOIN candidates ON candidates.run = runs.id
                 GROUP BY runs.id ORDER BY latest DESC, runs.id DESC",
            )?;
            query.query_map([], entry)?.collect()
        };
        raw().map_err(|e| explain(&e, &self.path).into())
    }

    /// Removes all but what is to be kept; says how many candidates went.
    pub fn gc(&mut self, keep: &Keep) -> Result<usize> {
        let path = self.path.clone();
        self.gc_raw(keep).map_err(|e| explain(&e, &path).into())
    }

    fn gc_raw(&mut self, keep: &Keep) -> rusqlite::Result<usize> {
        let write = self.connection.transaction()?;
        let mut gone = 0;
        if let Some(tool) = &keep.tool {
            gone += write.execute(
                "DELETE FROM candidates WHERE run IN (SELECT id FROM runs WHERE tool <> ?1)",
                [tool],
            )?;
        }
        if let Some(within) = keep.within {
            let since = now().saturating_sub(within.as_secs());
            gone += write.execute("DELETE FROM candidates WHERE recorded < ?1", [signed(since)])?;
        }
        if let Some(best) = keep.best {
            gone += write.execute(
                "DELETE FROM candidates WHERE outcome <> 'timed' OR id NOT IN (
                     SELECT id FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY run
                         ORDER BY outcome <> 'timed', median_us, plan) AS place FROM candidates)
                     WHERE place <= :best)",
                named_params! { ":best": i64::try_from(best).unwrap_or(i64::MAX) },
            )?;
        }
        write.execute("DELETE FROM runs WHERE id NOT IN (SELECT run FROM candidates)", [])?;
        write.commit()?;
        if gone > 0 {
            // Gives the space back to the file system; done without it when another process reads.
            match self.connection.execute("VACUUM", []) {
                Ok(_) => {}
                Err(e) if e.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(gone)
    }
}

/// The row of a key.
fn find(connection: &Connection, key: &Key) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached(
            "SELECT id FROM runs WHERE program = ?1 AND entry = ?2 AND sizes = ?3 AND rules = ?4
             AND device = ?5 AND driver = ?6 AND tool = ?7 AND float = ?8",
        )?
        .query_row(
            params![
                key.program,
                key.entry,
                json(&key.sizes),
                key.rules,
                key.device,
                key.driver,
                key.tool,
                key.float
            ],
            |row| row.get(0),
        )
        .optional()
}

/// Sorted, hence equal for equal maps.
fn json(map: &BTreeMap<String, u64>) -> String {
    let object = map.iter().map(|(k, v)| (k.clone(), (*v).into())).collect();
    serde_json::Value::Object(object).to_string()
}

fn map(row: &Row, column: &str) -> rusqlite::Result<BTreeMap<String, u64>> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text).map_err(|e| unreadable(Box::new(e)))
}

fn unreadable(e: Box<dyn std::error::Error + Send + Sync>) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, e)
}

fn record(row: &Row) -> rusqlite::Result<Record> {
    let fate: String = row.get("outcome")?;
    Ok(Record {
        term: row.get("term")?,
        tunables: map(row, "tunables")?,
        plan: row.get("plan")?,
        source: row.get("source")?,
        fate: Fate::from_name(&fate)
            .ok_or_else(|| unreadable(format!("`{fate}` is no outcome").into()))?,
        log: row.get("log")?,
        build_ms: row.get("build_ms")?,
        median_us: row.get("median_us")?,
        spread_us: row.get("spread_us")?,
        predicted_us: row.get("predicted_us")?,
        max_rel_err: row.get("max_rel_err")?,
        when: unsigned(row.get("recorded")?),
    })
}

fn entry(row: &Row) -> rusqlite::Result<Entry> {
    Ok(Entry {
        key: Key {
            program: row.get("program")?,
            entry: row.get("entry")?,
            sizes: map(row, "sizes")?,
            rules: row.get("rules")?,
            device: row.get("device")?,
            driver: row.get("driver")?,
            tool: row.get("tool")?,
            float: row.get("float")?,
        },
        candidates: unsigned(row.get("candidates")?),
        timed: unsigned(row.get("timed")?),
        best_us: row.get("best_us")?,
        latest: unsigned(row.get("latest")?),
    })
}

/// SQLite's integers are signed.
fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn unsigned(n: i64) -> u64 {
    u64::try_from(n).unwrap_or(0)
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

/// What an SQLite error means to a person.
fn explain(e: &rusqlite::Error, path: &Path) -> Diagnostic {
    let file = path.display();
    let d = |code, what: &str| {
        Diagnostic::error(code, format!("the tuning store {what}")).note(format!("{file}: {e}"))
    };
    let corrupt = || {
        d(Code::StoreCorrupt, "is damaged, or is not a tuning store")
            .help(format!("move {file} away; patsat then starts a new store"))
    };
    match e.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            d(Code::StoreLocked, "is in use by another process")
                .help("wait for the other process, or use another store (`PATSAT_STORE=FILE`)")
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => corrupt(),
        Some(ErrorCode::DiskFull) => d(Code::StoreFailed, "cannot be written: the disk is full"),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            d(Code::StoreFailed, "cannot be written: it is read-only")
        }
        Some(ErrorCode::CannotOpen) => d(Code::StoreFailed, "cannot be opened"),
        Some(_) => d(Code::StoreFailed, "could not be read or written"),
        // Not from the file system but from what the file says: columns or texts that do not fit.
        None => corrupt(),
    }
}

#[cfg(test)]
mod tests;
