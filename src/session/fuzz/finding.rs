//! Findings of the fuzzer. Each is written to a folder of its own with the program, the failure, and the command that
//! reproduces it.

use super::case::Case;
use crate::diag::{Code, Diagnostic, Result, Source};
use crate::tune::worker::FailureClass;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// The result of a kernel or of a candidate's term differs from the interpreter's.
    Wrong,
    /// A kernel crashed its process.
    Crash,
    /// A kernel did not end in time.
    Timeout,
    /// The driver failed to build a kernel.
    Build,
    /// A simulator reported an error in a kernel, such as a race or an access outside an array.
    Complaint,
    /// The compiler panicked, or reported an internal error.
    Internal,
}

impl Kind {
    /// Returns the name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Wrong => "wrong",
            Kind::Crash => "crash",
            Kind::Timeout => "timeout",
            Kind::Build => "build",
            Kind::Complaint => "complaint",
            Kind::Internal => "internal",
        }
    }

    /// Returns the kind for the failure of a candidate; `None` if the device merely lacks resources, or
    /// nobody could decide whether the result is right.
    pub(super) fn of(class: FailureClass) -> Option<Kind> {
        match class {
            FailureClass::Build => Some(Kind::Build),
            FailureClass::Timeout => Some(Kind::Timeout),
            FailureClass::Crash => Some(Kind::Crash),
            FailureClass::Wrong => Some(Kind::Wrong),
            FailureClass::Undecided | FailureClass::Resources => None,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A failure that a program showed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Failure {
    pub kind: Kind,
    /// Details: the first difference, the driver's log, or the diagnostic.
    pub says: String,
    /// The candidate: its term and the values of its symbols.
    pub candidate: Option<String>,
    /// Its kernels.
    pub kernels: Option<String>,
}

/// A program that shows a failure.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The program, after shrinking.
    pub source: Arc<Source>,
    /// The program before shrinking.
    pub original: Arc<Source>,
    /// Its seed and sizes.
    pub case: Case,
    pub(super) failure: Failure,
    /// The folder that it was written to.
    pub folder: Option<PathBuf>,
}

impl Finding {
    /// Returns the kind of the failure.
    pub fn kind(&self) -> Kind {
        self.failure.kind
    }

    /// Returns the details of the failure.
    pub fn says(&self) -> &str {
        &self.failure.says
    }

    /// Writes the finding into a folder of its own under `output`.
    pub(super) fn write(&mut self, output: &Path) -> Result<()> {
        let folder = output.join(format!("{}-{}", self.kind(), self.case.seed));
        let failed = |e: std::io::Error| {
            Diagnostic::error(Code::Io, format!("{} cannot be written: {e}", folder.display()))
        };
        fs::create_dir_all(&folder).map_err(failed)?;
        let put = |name: &str, text: &str| fs::write(folder.join(name), text).map_err(failed);
        put("program.pat", &self.source.text)?;
        put("original.pat", &self.original.text)?;
        let mut about = format!("{}\n\n{}\n", self.kind(), self.says());
        if let Some(candidate) = &self.failure.candidate {
            about.push_str(&format!("\n{candidate}\n"));
        }
        about.push_str(&format!(
            "\nTo see it again, with the options of the run:\n\n    patsat fuzz {} --candidates 64\n",
            folder.join("program.pat").display()
        ));
        put("about.txt", &about)?;
        if let Some(kernels) = &self.failure.kernels {
            put("kernels.cl", kernels)?;
        }
        self.folder = Some(folder);
        Ok(())
    }
}
