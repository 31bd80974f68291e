//! Opens stores: to work with, to read if the file cannot be written, or to copy from.

use super::{BUSY, Store, explain, schema};
use crate::diag::{Code, Diagnostic, Failure, Result};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

impl Store {
    /// Opens the store at a path, and creates the file and its folder if they do not exist. A file that exists and
    /// cannot be written is read into memory: see [`Store::is_frozen`].
    ///
    /// # Errors
    /// [`Code::StoreUnwritable`] if the file cannot be created, because the disk is full or its folder cannot be
    /// written; other codes if the store cannot be used at all.
    pub fn open(path: &Path) -> Result<Store> {
        Store::open_within(path, BUSY)
    }

    /// Like [`Store::open`], but waits at most `busy` for other processes.
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
            // The contents can still be read.
            let mut connection = duplicate(path).map_err(|_| failure)?;
            schema::prepare(&mut connection, path)?;
            Ok(Store { connection, path: path.to_path_buf(), frozen: true })
        })
    }

    /// Returns a copy in memory of another store, of any version. The file is not changed. It must have the tables
    /// that patsat creates and nothing else, because a database may contain code of its own (triggers, views,
    /// computed columns).
    ///
    /// # Errors
    /// When there is no such file, it cannot be read, or it has other tables.
    pub fn copy(path: &Path) -> Result<Store> {
        let mut connection = duplicate(path).map_err(|e| explain(&e, path))?;
        schema::check_tables(&connection, path)?;
        schema::prepare(&mut connection, path)?;
        Ok(Store { connection, path: path.to_path_buf(), frozen: true })
    }
}

/// Copies the database at a path into memory.
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
            // Even for reading, SQLite creates files beside a database. It can do so beside a copy of the file.
            let Ok(folder) = tempfile::tempdir() else { return Err(e) };
            let there = folder.path().join("store.sqlite");
            if fs::copy(path, &there).is_err() {
                return Err(e);
            }
            // The last commits may still be in the log.
            let _ = fs::copy(log_of(path), log_of(&there));
            copy(&there)
        }
        _ => Err(e),
    })
}

/// Returns the path of a database's write-ahead log.
pub(super) fn log_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

/// Reports why the store's folder cannot be created.
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

/// Reports that a store cannot be written, and why.
pub(super) fn unwritable(path: &Path, why: &str) -> Diagnostic {
    let text = format!("the tuning store cannot be written: {why}");
    Diagnostic::error(Code::StoreUnwritable, text)
        .note(path.display().to_string())
        .help("use another store (`--store FILE`, `PATSAT_STORE=FILE`)")
}
