//! The programs in a folder.

use crate::diag::{Code, Diagnostic, Result};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Returns a file as it is, and for a folder all programs (`*.pat`) below it, in alphabetical order. Hidden files and folders
/// are skipped. Links to folders are not followed, since they could form a cycle.
///
/// # Errors
/// When a folder cannot be read, or has no programs.
pub fn programs(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_path_buf()]);
    }
    let mut found = vec![];
    add(path, &mut found)?;
    if found.is_empty() {
        let text = format!("there are no programs (`*.pat`) below {}", path.display());
        let d = Diagnostic::error(Code::Io, text).note("hidden files and folders are skipped");
        return Err(d.help("name the files, or another folder").into());
    }
    Ok(found)
}

/// Adds the programs below a folder.
fn add(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let listing = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let listing = listing.map_err(|e| {
        let text = format!("{} cannot be read: {e}", folder.display());
        Diagnostic::error(Code::Io, text).help("check the rights of the folder")
    })?;
    let mut inside: Vec<PathBuf> = listing.into_iter().map(|entry| entry.path()).collect();
    inside.sort();
    for path in inside {
        let name = path.file_name().unwrap_or_default();
        if name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        if !path.is_dir() {
            found.extend(path.extension().is_some_and(|e| e == "pat").then_some(path));
        } else if !path.is_symlink() {
            add(&path, found)?;
        }
    }
    Ok(())
}
