//! Writes the output files that the user asks for. A file is written completely or not at all, and does not replace a
//! file of another kind or an input unless the caller forces it.

use crate::diag::{Code, Diagnostic, Result};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The kind of an output file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An array (`.npy`).
    Array,
    /// Values of Futhark.
    Values,
    /// A program.
    Program,
    /// A plan.
    Plan,
    /// A cost model (TOML).
    CostModel,
    /// A page for a browser.
    Page,
    /// A picture (SVG).
    Picture,
    /// A graph for Graphviz.
    Dot,
    /// An e-graph (JSON).
    Graph,
    /// The export of a tuning store (JSON).
    Export,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Array => "a .npy array",
            Kind::Values => "a file of Futhark's values",
            Kind::Program => "a program",
            Kind::Plan => "a plan",
            Kind::CostModel => "a cost model",
            Kind::Page => "an HTML page",
            Kind::Picture => "an SVG picture",
            Kind::Dot => "a Graphviz graph",
            Kind::Graph => "an e-graph as JSON",
            Kind::Export => "the export of a tuning store",
        }
    }

    /// Returns whether a file that begins with `head` is of this kind.
    fn begins(self, head: &[u8]) -> bool {
        let has = |text: &str| head.windows(text.len()).any(|w| w == text.as_bytes());
        match self {
            Kind::Array => head.starts_with(b"\x93NUMPY"),
            Kind::Values => super::futhark::begins(head),
            Kind::Program => head.starts_with(b"entry ") || has("\nentry "),
            Kind::Plan => head.starts_with(super::plan::HEAD.as_bytes()),
            Kind::CostModel => has("schema_version"),
            Kind::Page => head.starts_with(b"<!DOCTYPE html>"),
            Kind::Picture => head.starts_with(b"<svg"),
            Kind::Dot => head.starts_with(b"digraph"),
            Kind::Graph => head.starts_with(b"{") && has("\"class_data\""),
            Kind::Export => head.starts_with(b"{") && has("\"patsat store\""),
        }
    }
}

/// How many bytes of a file are read to find its kind.
const HEAD_BYTES: u64 = 1 << 14;

/// Checks that an output can be written to `path`, so that a long run does not fail at its end. An existing file may
/// be replaced only if it is empty or of the same kind, and is not one of the `inputs`; `force` replaces any file.
///
/// # Errors
/// [`Code::WouldReplace`] when a file would be lost; [`Code::Io`] when the place cannot be written to.
pub fn check(path: &Path, kind: Kind, inputs: &[PathBuf], force: bool) -> Result<()> {
    let there = match fs::metadata(path) {
        Ok(there) => there,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return match folder(path).is_dir() {
                true => Ok(()),
                false => Err(unwritable(path, &e).into()),
            };
        }
        Err(e) => return Err(unwritable(path, &e).into()),
    };
    if there.is_dir() {
        return Err(unwritable(path, &io::ErrorKind::IsADirectory.into()).into());
    }
    // Devices and pipes hold no contents that could be lost.
    if force || !there.is_file() {
        return Ok(());
    }
    if inputs.iter().any(|input| same(input, path)) {
        return Err(would_replace(path, "is an input").into());
    }
    let mut head = vec![];
    let file = File::open(path).map_err(|e| unwritable(path, &e))?;
    file.take(HEAD_BYTES).read_to_end(&mut head).map_err(|e| unwritable(path, &e))?;
    match head.is_empty() || kind.begins(&head) {
        true => Ok(()),
        false => Err(would_replace(path, &format!("is not {}", kind.name())).into()),
    }
}

/// Returns whether two paths lead to the same file.
fn same(a: &Path, b: &Path) -> bool {
    matches!((fs::canonicalize(a), fs::canonicalize(b)), (Ok(a), Ok(b)) if a == b)
}

fn would_replace(path: &Path, why: &str) -> Diagnostic {
    let text = format!("{} exists and {why}", path.display());
    Diagnostic::error(Code::WouldReplace, text)
        .help("choose another name, or replace it with `--force`")
}

fn unwritable(path: &Path, e: &io::Error) -> Diagnostic {
    let d = Diagnostic::error(Code::Io, format!("{} cannot be written: {e}", path.display()));
    match e.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            d.help("free some space, or write elsewhere")
        }
        _ => d,
    }
}

/// The folder that a file is in.
fn folder(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes a temporary file in the same folder and renames it, so that a failure leaves the old file intact. Devices
/// and pipes are written directly.
///
/// # Errors
/// [`Code::Io`] when it cannot be written.
pub fn write(path: &Path, encode: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    whole(path, encode).map_err(|e| unwritable(path, &e).into())
}

fn whole(path: &Path, encode: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let there = fs::metadata(path).ok();
    if there.as_ref().is_some_and(|m| !m.is_file()) {
        return encode(&mut File::options().write(true).open(path)?);
    }
    if there.as_ref().is_some_and(|m| m.permissions().readonly()) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    // A symbolic link is followed, not replaced.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let mut file = temporary(0o666).tempfile_in(folder(path))?;
    encode(file.as_file_mut())?;
    if let Some(there) = there {
        file.as_file().set_permissions(there.permissions())?;
    }
    file.persist(path).map_err(|e| e.error)?;
    Ok(())
}

/// Returns a builder for temporary files and folders. They get `mode` less the umask, like any new file or folder.
fn temporary(
    #[cfg_attr(not(unix), expect(unused))] mode: u32,
) -> tempfile::Builder<'static, 'static> {
    let mut temporary = tempfile::Builder::new();
    temporary.prefix(".patsat-").suffix(".tmp");
    #[cfg(unix)]
    temporary.permissions(std::os::unix::fs::PermissionsExt::from_mode(mode));
    temporary
}

/// Writes several files into a folder, and creates the folder if necessary. The files are moved into place only after
/// all of them are written. A file that is one of the `inputs` is replaced only by the same contents, or with `force`.
///
/// # Errors
/// [`Code::WouldReplace`] when an input would be lost; [`Code::Io`] when the folder cannot be written to.
pub fn write_folder(
    directory: &Path,
    files: &[(String, Vec<u8>)],
    inputs: &[PathBuf],
    force: bool,
) -> Result<()> {
    for (name, contents) in files {
        let path = directory.join(name);
        let lost =
            |input: &PathBuf| same(input, &path) && fs::read(&path).ok().as_ref() != Some(contents);
        if !force && inputs.iter().any(lost) {
            return Err(would_replace(&path, "is an input").into());
        }
    }
    staged(directory, files).map_err(|e| unwritable(directory, &e).into())
}

fn staged(directory: &Path, files: &[(String, Vec<u8>)]) -> io::Result<()> {
    let there = directory.is_dir();
    let beside = if there { directory } else { folder(directory) };
    fs::create_dir_all(beside)?;
    let stage = temporary(0o777).tempdir_in(beside)?;
    for (name, contents) in files {
        fs::write(stage.path().join(name), contents)?;
    }
    if !there {
        fs::rename(stage.path(), directory)?;
        // The folder was renamed, so there is nothing to remove.
        _ = stage.keep();
        return Ok(());
    }
    for (name, _) in files {
        fs::rename(stage.path().join(name), directory.join(name))?;
    }
    stage.close()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(result: Result<()>) -> Code {
        result.expect_err("it is refused").0[0].code
    }

    #[test]
    fn only_files_of_the_same_kind_are_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        check(&path, Kind::Page, &[], false).expect("nothing is there");
        for (kind, other, text) in [
            (Kind::Array, Kind::Plan, "\u{93}NUMPY"),
            (Kind::Page, Kind::Picture, "<!DOCTYPE html>\n<title>"),
            (Kind::Picture, Kind::Page, "<svg xmlns="),
            (Kind::Dot, Kind::Graph, "digraph egraph {"),
            (Kind::Graph, Kind::Export, "{\n  \"class_data\": {"),
            (Kind::Export, Kind::Graph, "{\n  \"format\": \"patsat store\","),
            (Kind::CostModel, Kind::Plan, "# A device.\nschema_version = 1\n"),
            (Kind::Plan, Kind::CostModel, "# patsat plan\n"),
        ] {
            // The first byte of the magic number is not UTF-8.
            let bytes: Vec<u8> = text.chars().map(|c| c as u8).collect();
            fs::write(&path, bytes).expect("written");
            check(&path, kind, &[], false).expect("of the same kind");
            assert_eq!(code(check(&path, other, &[], false)), Code::WouldReplace, "{text}");
            check(&path, other, &[], true).expect("forced");
            assert_eq!(
                code(check(&path, kind, std::slice::from_ref(&path), false)),
                Code::WouldReplace
            );
        }
        fs::write(&path, "").expect("written");
        check(&path, Kind::Array, &[], false).expect("an empty file holds nothing");
        assert_eq!(code(check(folder.path(), Kind::Array, &[], true)), Code::Io);
        assert_eq!(code(check(&path.join("b"), Kind::Array, &[], true)), Code::Io);
        assert_eq!(code(check(Path::new("/no/such/a"), Kind::Array, &[], true)), Code::Io);
    }

    #[test]
    fn a_failure_leaves_what_was_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        fs::write(&path, "old").expect("written");
        let full = |to: &mut dyn Write| {
            to.write_all(b"half of")?;
            Err(io::ErrorKind::StorageFull.into())
        };
        let failure = write(&path, full).expect_err("the disk is full");
        assert!(failure.0[0].help[0].contains("free some space"));
        assert_eq!(fs::read_to_string(&path).expect("a file"), "old");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
        write(&path, |to| to.write_all(b"new")).expect("written");
        assert_eq!(fs::read_to_string(&path).expect("a file"), "new");
    }

    #[test]
    fn folders_keep_what_else_is_in_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let made = folder.path().join("deep/made");
        let files = |text: &str| vec![("a".to_owned(), text.into()), ("b".to_owned(), vec![1])];
        write_folder(&made, &files("one"), &[], false).expect("written");
        fs::write(made.join("own"), "kept").expect("written");
        let inputs = [made.join("a")];
        write_folder(&made, &files("one"), &inputs, false).expect("the same contents");
        assert_eq!(code(write_folder(&made, &files("two"), &inputs, false)), Code::WouldReplace);
        assert_eq!(fs::read_to_string(made.join("a")).expect("a file"), "one");
        write_folder(&made, &files("two"), &inputs, true).expect("forced");
        assert_eq!(fs::read_to_string(made.join("a")).expect("a file"), "two");
        assert_eq!(fs::read_to_string(made.join("own")).expect("a file"), "kept");
        assert_eq!(fs::read_dir(&made).expect("a folder").count(), 3);
    }
}
