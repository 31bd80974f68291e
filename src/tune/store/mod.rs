//! The tuning store: measurements, kept in an SQLite file.
//!
//! Every measurement is a transaction of its own, so that an interrupted run loses nothing and can be resumed.
//! Several processes may use one store. A measurement is never changed, only replaced by a newer one of the same
//! candidate. The result of a completed search is kept as an [`Answer`], so that the same question need not be
//! searched again.

mod dump;
mod open;
mod place;
mod record;
mod schema;
mod write;

pub use dump::{Absorbed, Dump, Run};
pub use place::{cache_of, default_path, move_to_data};
pub use record::{About, Answer, Entry, Fate, Host, Key, Ranked, Record};

use crate::diag::{Code, Diagnostic, Result};
use record::{answer, entry, json, key, optional, record, signed};
use rusqlite::{
    Connection, ErrorCode, OptionalExtension, TransactionBehavior, named_params, params,
};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Longest wait for another process's transaction.
const BUSY: Duration = Duration::from_secs(5);

/// What [`Store::gc`] keeps. Keeps everything by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// Only this many of the fastest timed candidates of each key; failed and slow candidates are removed.
    pub best: Option<usize>,
    /// Only what was recorded at most this long ago.
    pub within: Option<Duration>,
    /// Only what this version of patsat recorded.
    pub tool: Option<String>,
}

/// An open store.
pub struct Store {
    connection: Connection,
    path: PathBuf,
    /// Set if the file cannot be written: the connection is a copy in memory, and additions are lost.
    frozen: bool,
}

impl Store {
    /// Returns the path of the store's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the file cannot be written, so that additions are lost when the store is closed.
    pub fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// Fails if the file cannot be written.
    fn thaw(&self) -> Result<()> {
        match self.frozen {
            true => Err(open::unwritable(&self.path, "it is read-only").into()),
            false => Ok(()),
        }
    }

    /// Keeps a measurement durably. It replaces an earlier one of the same candidate under the same key, and takes
    /// its place in the order of measuring.
    pub fn record(&mut self, key: &Key, record: &Record) -> Result<()> {
        self.writing(|w| {
            let run = write::run(w, key)?;
            write::candidate(w, run, record)
        })
    }

    /// Keeps a description of a key's measurements.
    pub fn describe(&mut self, key: &Key, about: &About) -> Result<()> {
        self.writing(|w| {
            let run = write::run(w, key)?;
            write::about(w, run, about)
        })
    }

    /// Keeps the result of a search. It replaces an earlier result of the same strategy and cost model.
    pub fn conclude(&mut self, key: &Key, answer: &Answer) -> Result<()> {
        self.writing(|w| {
            let run = write::run(w, key)?;
            write::answer(w, run, answer)
        })
    }

    /// Runs one transaction. It takes the write lock at the start, so that it cannot fail half-way for lack of the
    /// lock.
    fn writing<T>(&mut self, body: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        let raw = || -> rusqlite::Result<T> {
            let write =
                self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let out = body(&write)?;
            write.commit()?;
            Ok(out)
        };
        raw().map_err(|e| explain(&e, &self.path).into())
    }

    /// Records that the kernels of a plan gave the right result on this device.
    pub fn verify(&mut self, key: &Key, plan: &str) -> Result<()> {
        self.writing(|w| {
            let run = write::run(w, key)?;
            write::verified(w, run, plan)
        })
    }

    /// Returns whether the kernels of a plan gave the right result on this device.
    pub fn is_verified(&self, key: &Key, plan: &str) -> Result<bool> {
        let raw = || -> rusqlite::Result<bool> {
            let Some(run) = find(&self.connection, key)? else { return Ok(false) };
            let mut query = self.connection.prepare_cached(
                "SELECT EXISTS (SELECT 1 FROM checked WHERE run = ?1 AND plan = ?2)
                 OR EXISTS (SELECT 1 FROM candidates WHERE run = ?1 AND plan = ?2 AND verified
                     AND outcome IN ('timed', 'slow'))",
            )?;
            query.query_row(params![run, plan], |row| row.get(0))
        };
        raw().map_err(|e| explain(&e, &self.path).into())
    }

    /// Returns the description of a key's measurements, if there is one.
    pub fn about(&self, key: &Key) -> Result<Option<About>> {
        let raw = || -> rusqlite::Result<Option<About>> {
            let Some(run) = find(&self.connection, key)? else { return Ok(None) };
            let mut query =
                self.connection.prepare_cached("SELECT about FROM runs WHERE id = ?1")?;
            query.query_row([run], |row| optional(row, "about"))
        };
        raw().map_err(|e| explain(&e, &self.path).into())
    }

    /// Returns the results of searches under a key, the latest first.
    pub fn answers(&self, key: &Key) -> Result<Vec<Answer>> {
        let raw = || -> rusqlite::Result<Vec<Answer>> {
            let Some(run) = find(&self.connection, key)? else { return Ok(vec![]) };
            let mut query = self.connection.prepare_cached(
                "SELECT * FROM answers WHERE run = ?1 ORDER BY recorded DESC, strategy, model",
            )?;
            query.query_map([run], answer)?.collect()
        };
        raw().map_err(|e| explain(&e, &self.path).into())
    }

    /// Returns the other keys with timed candidates of the same program, entry, device, float mode and trust, those
    /// with the nearest sizes first. The distance is the sum of the logarithms of the ratios of sizes. Keys with
    /// the same sizes are included if something else differs (rules, driver or version).
    pub fn nearest(&self, wanted: &Key) -> Result<Vec<Key>> {
        let raw = || -> rusqlite::Result<Vec<Key>> {
            let mut query = self.connection.prepare_cached(
                "SELECT * FROM runs WHERE program = ?1 AND entry = ?2 AND device = ?3 AND float = ?4 AND trust = ?5
                 AND EXISTS (SELECT 1 FROM candidates WHERE run = runs.id AND outcome = 'timed')
                 ORDER BY id DESC",
            )?;
            let Key { program, entry, device, float, trust, .. } = wanted;
            query.query_map(params![program, entry, device, float, trust], key)?.collect()
        };
        let mut found = raw().map_err(|e| explain(&e, &self.path))?;
        found.retain(|k| k != wanted && k.sizes.keys().eq(wanted.sizes.keys()));
        let log = |n: u64| (n.max(1) as f64).ln();
        let far = |k: &Key| -> f64 {
            k.sizes
                .values()
                .zip(wanted.sizes.values())
                .map(|(a, b)| (log(*a) - log(*b)).abs())
                .sum()
        };
        found.sort_by(|a, b| far(a).total_cmp(&far(b)));
        Ok(found)
    }

    /// Returns everything measured under a key, in the order of measuring.
    pub fn history(&self, key: &Key) -> Result<Vec<Record>> {
        let raw = || -> rusqlite::Result<Vec<Record>> {
            let Some(run) = find(&self.connection, key)? else { return Ok(vec![]) };
            let mut query = self
                .connection
                .prepare_cached("SELECT * FROM candidates WHERE run = ?1 ORDER BY id")?;
            query.query_map([run], record)?.collect()
        };
        raw().map_err(|e| explain(&e, &self.path).into())
    }

    /// Returns a candidate of a key by the hash of its plan.
    pub fn candidate(&self, key: &Key, plan: &str) -> Result<Option<Record>> {
        let raw = || -> rusqlite::Result<Option<Record>> {
            let Some(run) = find(&self.connection, key)? else { return Ok(None) };
            let mut query = self
                .connection
                .prepare_cached("SELECT * FROM candidates WHERE run = ?1 AND plan = ?2")?;
            query.query_row(params![run, plan], record).optional()
        };
        raw().map_err(|e| explain(&e, &self.path).into())
    }

    /// Returns everything measured under a key, timed candidates first and fastest first. A resumed run need not
    /// measure these again.
    pub fn measured(&self, key: &Key) -> Result<Vec<Record>> {
        self.select(key, u32::MAX)
    }

    /// Returns the fastest timed candidate of a key.
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

    /// Returns every key with a summary of its candidates, the latest first.
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

    /// Removes everything that `keep` does not name, and returns how many candidates were removed. The result of a
    /// search is removed along with the candidate that it found best.
    pub fn gc(&mut self, keep: &Keep) -> Result<usize> {
        self.thaw()?;
        let gone = self.writing(|write| gc(write, keep))?;
        if gone > 0 {
            // Returns the space to the file system, unless another process is reading.
            match self.connection.execute("VACUUM", []) {
                Ok(_) => {}
                Err(e) if e.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {}
                Err(e) => return Err(explain(&e, &self.path).into()),
            }
        }
        Ok(gone)
    }
}

fn gc(write: &Connection, keep: &Keep) -> rusqlite::Result<usize> {
    let mut gone = 0;
    if let Some(tool) = &keep.tool {
        gone += write.execute(
            "DELETE FROM candidates WHERE run IN (SELECT id FROM runs WHERE tool NOT IN (?1, ?1 || ' unchecked'))",
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
    write.execute(
        "DELETE FROM answers WHERE NOT EXISTS (SELECT 1 FROM candidates
             WHERE run = answers.run AND plan = ranking ->> '$[0].plan')",
        [],
    )?;
    Ok(gone)
}

/// Returns a key in the form and order of the columns of the table `runs`.
fn columns(key: &Key) -> [String; 9] {
    let Key { program, entry, sizes, rules, device, driver, tool, float, trust } = key.clone();
    [program, entry, json(&sizes), rules, device, driver, tool, float, trust]
}

/// Returns the id of a key's row.
fn find(connection: &Connection, key: &Key) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached(
            "SELECT id FROM runs WHERE program = ?1 AND entry = ?2 AND sizes = ?3 AND rules = ?4
             AND device = ?5 AND driver = ?6 AND tool = ?7 AND float = ?8
             AND trust = ?9",
        )?
        .query_row(columns(key), |row| row.get(0))
        .optional()
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

/// Explains an SQLite error to the user.
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
        Some(ErrorCode::DiskFull) => open::unwritable(path, "the disk is full"),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            open::unwritable(path, "it is read-only")
        }
        Some(ErrorCode::CannotOpen) => d(Code::StoreFailed, "cannot be opened"),
        Some(_) => d(Code::StoreFailed, "could not be read or written"),
        // The error comes from the contents rather than from SQLite: columns or texts that do not fit.
        None => corrupt(),
    }
}

#[cfg(test)]
mod tests;
