//! The store's tables, and the migration of stores of older versions.

use super::explain;
use crate::diag::{Code, Diagnostic, Result};
use rusqlite::{Connection, ErrorCode, TransactionBehavior};
use std::path::Path;
use std::time::{Duration, Instant};

/// Version of the tables: the number of steps below. Every change of the tables adds a step.
#[expect(clippy::cast_possible_wrap, reason = "a few steps")]
pub(super) const VERSION: i64 = STEPS.len() as i64;

/// SQLite's application id, which marks the file as patsat's (`PSAT`).
const APPLICATION: i64 = 0x5053_4154;

/// SQL that migrates a store from each version to the next. The first step starts from an empty file.
pub(super) const STEPS: [&str; 3] = [
    "CREATE TABLE runs (
        id INTEGER PRIMARY KEY,
        program TEXT NOT NULL, entry TEXT NOT NULL, sizes TEXT NOT NULL, rules TEXT NOT NULL,
        device TEXT NOT NULL, driver TEXT NOT NULL, tool TEXT NOT NULL, float TEXT NOT NULL,
        UNIQUE (program, entry, sizes, rules, device, driver, tool, float)
    ) STRICT;
    CREATE TABLE candidates (
        id INTEGER PRIMARY KEY,
        run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        term TEXT NOT NULL, tunables TEXT NOT NULL, plan TEXT NOT NULL, source TEXT NOT NULL,
        outcome TEXT NOT NULL, log TEXT,
        build_ms REAL, median_us REAL, spread_us REAL, predicted_us REAL, max_rel_err REAL,
        recorded INTEGER NOT NULL,
        UNIQUE (run, plan)
    ) STRICT;
    CREATE INDEX candidates_by_time ON candidates (run, outcome, median_us);",
    // Descriptions of runs, further properties of candidates, and results of completed searches.
    "ALTER TABLE runs ADD COLUMN about TEXT;
    ALTER TABLE candidates ADD COLUMN compact TEXT;
    ALTER TABLE candidates ADD COLUMN skeleton TEXT;
    ALTER TABLE candidates ADD COLUMN bound TEXT;
    ALTER TABLE candidates ADD COLUMN host TEXT;
    CREATE TABLE answers (
        run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        strategy TEXT NOT NULL, model TEXT NOT NULL, budget INTEGER NOT NULL,
        ranking TEXT NOT NULL, summary TEXT NOT NULL, recorded INTEGER NOT NULL,
        PRIMARY KEY (run, strategy, model)
    ) STRICT;",
    // A run's key includes what was taken on trust. SQLite cannot extend a constraint, so the table is recreated.
    // Older stores do not say whether candidates were measured here or imported, nor what was trusted, so their
    // candidates are unverified. `checked` lists kernels from elsewhere (plans) that gave the right result here.
    "CREATE TABLE runs_3 (
        id INTEGER PRIMARY KEY,
        program TEXT NOT NULL, entry TEXT NOT NULL, sizes TEXT NOT NULL, rules TEXT NOT NULL,
        device TEXT NOT NULL, driver TEXT NOT NULL, tool TEXT NOT NULL, float TEXT NOT NULL,
        trust TEXT NOT NULL, about TEXT,
        UNIQUE (program, entry, sizes, rules, device, driver, tool, float, trust)
    ) STRICT;
    INSERT INTO runs_3
        SELECT id, program, entry, sizes, rules, device, driver, tool, float, '', about FROM runs;
    DROP TABLE runs;
    ALTER TABLE runs_3 RENAME TO runs;
    ALTER TABLE candidates ADD COLUMN verified INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE candidates ADD COLUMN inputs TEXT;
    ALTER TABLE candidates ADD COLUMN limit_s REAL;
    CREATE TABLE checked (
        run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        plan TEXT NOT NULL,
        PRIMARY KEY (run, plan)
    ) STRICT;",
];

/// Creates the tables in a new file, checks those of an existing file, and migrates them to this version.
pub(super) fn prepare(connection: &mut Connection, path: &Path) -> Result<()> {
    let found = version(connection).map_err(|e| explain(&e, path))?;
    if found > VERSION {
        let file = path.display();
        return Err(Diagnostic::error(
            Code::StoreVersion,
            "the tuning store was written by a newer version of patsat",
        )
        .note(format!("{file} has version {found}; this patsat knows up to {VERSION}"))
        .help("use the newer patsat, or another store (`PATSAT_STORE=FILE`)")
        .into());
    }
    if found == VERSION && !ours(connection).map_err(|e| explain(&e, path))? {
        return Err(foreign(path));
    }
    if found < VERSION {
        let empty = is_empty(connection).map_err(|e| explain(&e, path))?;
        if !empty && !ours(connection).map_err(|e| explain(&e, path))? {
            return Err(foreign(path));
        }
        renew(connection).map_err(|e| explain(&e, path))?;
    }
    // With a write-ahead log, readers and the one writer do not wait for each other, and each commit is one append.
    // With `NORMAL`, a power failure may lose the last commits, but a crash of patsat never does.
    ahead(connection)
        .and_then(|()| connection.pragma_update(None, "synchronous", "NORMAL"))
        .and_then(|()| connection.pragma_update(None, "foreign_keys", "ON"))
        .and_then(|()| connection.pragma_update(None, "trusted_schema", "OFF"))
        .map_err(|e| explain(&e, path))?;
    Ok(())
}

/// Checks that a database has exactly the tables that a store of its version should have.
pub(super) fn check_tables(connection: &Connection, path: &Path) -> Result<()> {
    let found = || -> rusqlite::Result<bool> {
        let Some(steps) = usize::try_from(version(connection)?).ok().and_then(|n| STEPS.get(..n))
        else {
            // The store is of a newer version, which [`prepare`] reports.
            return Ok(true);
        };
        let expected = Connection::open_in_memory()?;
        expected.pragma_update(None, "foreign_keys", "OFF")?;
        steps.iter().try_for_each(|step| expected.execute_batch(step))?;
        Ok(tables(connection)? == tables(&expected)?)
    };
    match found().map_err(|e| explain(&e, path))? {
        true => Ok(()),
        false => Err(foreign(path)),
    }
}

/// Returns the SQL of everything in a database, without what SQLite creates for itself.
fn tables(connection: &Connection) -> rusqlite::Result<Vec<(String, String)>> {
    let mut query = connection.prepare(
        "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
         ORDER BY name, sql",
    )?;
    query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

/// Switches to a write-ahead log. If several processes do so at once, one succeeds and the others fail at once,
/// without the busy timeout, so they try again until a deadline.
fn ahead(connection: &Connection) -> rusqlite::Result<()> {
    let deadline = Instant::now() + super::BUSY;
    loop {
        let mode: String = connection.pragma_query_value(None, "journal_mode", |r| r.get(0))?;
        if mode == "wal" || mode == "memory" {
            return Ok(());
        }
        match connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())) {
            Err(e)
                if e.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && Instant::now() < deadline =>
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            other => return other,
        }
    }
}

fn foreign(path: &Path) -> crate::diag::Failure {
    Diagnostic::error(Code::StoreCorrupt, "the file is a database, but not a tuning store")
        .note(path.display().to_string())
        .help("name another file (`PATSAT_STORE=FILE`)")
        .into()
}

fn is_empty(connection: &Connection) -> rusqlite::Result<bool> {
    let count = "SELECT COUNT(*) FROM sqlite_schema";
    Ok(connection.query_row(count, [], |row| row.get::<_, i64>(0))? == 0)
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

fn ours(connection: &Connection) -> rusqlite::Result<bool> {
    let id: i64 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    Ok(id == APPLICATION)
}

/// Runs the steps that the file has not seen, all or none.
fn renew(connection: &mut Connection) -> rusqlite::Result<()> {
    // With foreign keys on, recreating a table would delete the rows that refer to the old one. The pragma has no
    // effect inside a transaction.
    connection.pragma_update(None, "foreign_keys", "OFF")?;
    let write = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have migrated the store in the meantime.
    let found = usize::try_from(version(&write)?).unwrap_or(0);
    for step in STEPS.iter().skip(found) {
        write.execute_batch(step)?;
    }
    if found < STEPS.len() {
        write.pragma_update(None, "application_id", APPLICATION)?;
        write.pragma_update(None, "user_version", VERSION)?;
    }
    write.commit()
}
