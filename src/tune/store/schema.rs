//! The store's tables, and what is done with stores of other versions.

use super::explain;
use crate::diag::{Code, Diagnostic, Result};
use rusqlite::{Connection, TransactionBehavior};
use std::path::Path;

/// Version of the tables below. A change of the tables raises it, and adds a step to [`prepare`].
pub(super) const VERSION: i64 = 1;

/// Marks the file as patsat's (`PSAT`).
const APPLICATION: i64 = 0x5053_4154;

const TABLES: &str = "
    CREATE TABLE runs (
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
    CREATE INDEX candidates_by_time ON candidates (run, outcome, median_us);
";

/// Makes the tables in a new file, and checks an old one.
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
        let empty = connection
            .query_row("SELECT COUNT(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0))
            .map_err(|e| explain(&e, path))?
            == 0;
        if !empty && !ours(connection).map_err(|e| explain(&e, path))? {
            return Err(foreign(path));
        }
        create(connection).map_err(|e| explain(&e, path))?;
    }
    // A write-ahead log: readers and the one writer do not wait for each other, and each commit is
    // one append. `NORMAL` may lose the last commits in a power failure, never in a crash of patsat.
    connection
        .pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))
        .and_then(|()| connection.pragma_update(None, "synchronous", "NORMAL"))
        .and_then(|()| connection.pragma_update(None, "foreign_keys", "ON"))
        .map_err(|e| explain(&e, path))?;
    Ok(())
}

fn foreign(path: &Path) -> crate::diag::Failure {
    Diagnostic::error(Code::StoreCorrupt, "the file is a database, but not a tuning store")
        .note(path.display().to_string())
        .help("name another file (`PATSAT_STORE=FILE`)")
        .into()
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

fn ours(connection: &Connection) -> rusqlite::Result<bool> {
    let id: i64 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    Ok(id == APPLICATION)
}

fn create(connection: &mut Connection) -> rusqlite::Result<()> {
    let write = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have been faster.
    if version(&write)? < VERSION {
        write.execute_batch(TABLES)?;
        write.pragma_update(None, "application_id", APPLICATION)?;
        write.pragma_update(None, "user_version", VERSION)?;
    }
    write.commit()
}
