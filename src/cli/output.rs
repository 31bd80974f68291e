//! The destination of a command's output: a file, which is written completely or not at all, or `-`, the standard
//! output.

use super::out::{Done, Out, Stop};
use crate::diag::{self, Code, Diagnostic};
use crate::session::files::{self, Kind};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Whether outputs may replace other files.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct ForceArg {
    /// Replace the output file even if it is an input or a file of another kind.
    #[arg(long)]
    pub force: bool,
}

/// Returns whether a path means the standard output.
pub fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Fails if the path of a folder is `-`, which means the standard output elsewhere.
///
/// # Errors
/// [`Code::Usage`] for `-`.
pub fn check_folder(path: &Path) -> diag::Result<()> {
    if !is_stdout(path) {
        return Ok(());
    }
    let d = Diagnostic::error(Code::Usage, "a folder cannot go to the standard output");
    Err(d.help("name one (`./-` for one that is called `-`)").into())
}

/// A checked destination.
pub struct Output(PathBuf);

impl Output {
    /// Checks that an output can be written to `path` and replaces none of the `inputs`. With `-`, the command prints
    /// nothing else to the standard output.
    pub fn new(
        path: &Path,
        kind: Kind,
        inputs: &[PathBuf],
        force: bool,
        out: &mut Out,
    ) -> Result<Output, Stop> {
        if !is_stdout(path) {
            files::check(path, kind, inputs, force)?;
        } else if out.is_json() {
            let text = "`--json` and the output `-` both write to the standard output";
            let d = Diagnostic::error(Code::Usage, text);
            return Err(d.help("write the output to a file").into());
        } else {
            out.reserve();
        }
        Ok(Output(path.to_path_buf()))
    }

    /// Writes the output with an encoder.
    pub fn write(
        &self,
        out: &mut Out,
        encode: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Done {
        if is_stdout(&self.0) {
            return out.raw_with(encode);
        }
        Ok(files::write(&self.0, encode)?)
    }

    /// Writes a text as the output.
    pub fn write_text(&self, out: &mut Out, text: &str) -> Done {
        self.write(out, |to| to.write_all(text.as_bytes()))
    }

    /// Returns the path, for messages.
    pub fn name(&self) -> String {
        self.0.display().to_string()
    }
}
