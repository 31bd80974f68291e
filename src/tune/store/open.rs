//! Opening a store: to work with, to read where it cannot be written, or to copy from.

use super::{BUSY, Store, explain, schema};
use crate::diag::{Code, Diagnostic, Failure, Result};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

impl Store {
    /// Opens the store at a path, and makes it (and its folder) when it is not there. One that is there and
    /// cannot be written is read: see [`Store::is_frozen`].
    ///
    /// # Errors
    /// [`Code::StoreUnwritable`] when the disk is full or its owner does not let it be made; others when it cannot be
    /// used at all.
    pub fn open(path: &Path) -> Result<Store> {
        Store::open_within(path, BUSY)
    }

    /// The same, waiting no longer than `busy` for other processes.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_within(path: &Path, busy: Duration) -> Result<Store> {
        if let Some(folder) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
            fs::create_dir_all(folder).map_err(|e| no_folder(folder, &e))?;
        }
        let open = || -> Result<Store> {
            let mut connection = Connection::open(path).map_err(|e| explain(&e, path))?;
            connection.busy_timeout(busy).map_err(|e| explain(&e, path))?;
            if connection.is_readonly("main").map_err(|e| explain(&e, path))? {
                return Err(unwritable(path, "it is read-only").into());
            }
            schema::prepare(&mut connection, path)?;
            Ok(Store { connection, path: path.to_path_buf(), frozen: false })
        };
        open().or_else(|failure| {
            let hopeless = |Failure(ds): &Failure| {
                ds.iter().all(|d| !matches!(d.code, Code::StoreUnwritable | Code::StoreFailed))
            };
            if hopeless(&failure) || !path.is_file() {
                return Err(failure);
            }
            // What it holds is of use all the same.
            let mut connection = duplicate(path).map_err(|_| failure)?;
            schema::prepare(&mut connection, path)?;
            Ok(Store { connection, path: path.to_path_buf(), frozen: true })
        })
    }

    /// A copy in memory of another's store, which stays as it is, whatever its version. It must have the tables that
    /// patsat makes and nothing else: a database may hold code of its own (triggers, views, computed columns).
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub fn copy(path: &Path) -> Result<Store> {
        let mut connection = duplicate(path).map_err(|e| explain(&e, path))?;
        schema::check_tables(&connection, path)?;
        schema::prepare(&mut connection, path)?;
        Ok(Store { connection, path: path.to_path_buf(), frozen: true })
    }
}

/// A copy in memory of the database at a path.
fn duplicate(path: &Path) -> rusqlite::Result<Connection> {
    let copy = |from: &Path| -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let from = Connection::open_with_flags(from, flags)?;
        from.busy_timeout(BUSY)?;
        let mut copy = Connection::open_in_memory()?;
        let backup = rusqlite::backup::Backup::new(&from, &mut copy)?;
        backup.run_to_completion(1024, Duration::ZERO, None)?;
        drop(backup);
        Ok(copy)
    };
    copy(path).or_else(|e| match e.sqlite_error_code() {
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            // Even to read, SQLite makes files beside a database: beside another copy, then.
            let Ok(folder) = tempfile::tempdir() else { return Err(e) };
            let there = folder.path().join("store.sqlite");
            if fs::copy(path, &there).is_err() {
                return Err(e);
            }
            // The last commits are in a log, if there is one.
            let _ = fs::copy(log_of(path), log_of(&there));
            copy(&there)
        }
        _ => Err(e),
    })
}

/// Where SQLite keeps the write-ahead log of a database.
fn log_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

/// Why a folder for the store cannot be made.
fn no_folder(folder: &Path, e: &std::io::Error) -> Diagnostic {
    let message = format!("the folder of the tuning store cannot be made: {e}");
    let code = match e.kind() {
        ErrorKind::PermissionDenied
        | ErrorKind::ReadOnlyFilesystem
        | ErrorKind::StorageFull
        | ErrorKind::QuotaExceeded => Code::StoreUnwritable,
        _ => Code::StoreFailed,
    };
    Diagnostic::error(code, message).note(folder.display().to_string())
}

/// That a store cannot be written, and why.
pub(super) fn unwritable(path: &Path, why: &str) -> Diagnostic {
    let text = format!("the tuning store cannot be written: {why}");
    Diagnostic::error(Code::StoreUnwritable, text)
        .note(path.display().to_string())
        .help("use another store (`--store FILE`, `PATSAT_STORE=FILE`)")
}
