//! Writing files: whole ones or none.

use crate::diag::{Code, Diagnostic, Result};
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Writes a file, which is there whole or as it was before.
///
/// # Errors
/// [`Code::Io`] when it cannot be written.
pub(super) fn write(path: &Path, encode: impl FnOnce(&File) -> io::Result<()>) -> Result<()> {
    whole(path, encode).map_err(|e| {
        let d = Diagnostic::error(Code::Io, format!("{} cannot be written: {e}", path.display()));
        match e.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                d.help("free some space, or write elsewhere").into()
            }
            _ => d.into(),
        }
    })
}

fn whole(path: &Path, encode: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|m| !m.is_file()) {
        return encode(&File::options().write(true).open(path)?);
    }
    // A link is written through, not replaced.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut temporary = tempfile::Builder::new();
    temporary.prefix(".patsat-").suffix(".tmp");
    // As any new file: readable by whom the umask allows.
    #[cfg(unix)]
    temporary.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let file = temporary.tempfile_in(folder)?;
    encode(file.as_file())?;
    file.persist(path).map_err(|e| e.error)?;
    Ok(())
}
