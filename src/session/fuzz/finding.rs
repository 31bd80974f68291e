//! What is found wrong, and its reproduction: a folder with the program, what was wrong, and how to see it again.

use super::case::Case;
use crate::diag::{Code, Diagnostic, Result, Source};
use crate::tune::worker::FailureClass;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// In which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// A kernel, or a candidate's term, computes something else than the interpreter.
    Wrong,
    /// A kernel took its process down.
    Crash,
    /// A kernel did not end.
    Timeout,
    /// The driver did not build a kernel.
    Build,
    /// A simulator complained of a kernel: a race, an access outside of an array.
    Complaint,
    /// The compiler panicked, or found itself in error.
    Internal,
}

impl Kind {
    /// The name in reports.
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

    /// What a candidate's failure is; nothing where the device is merely too small.
    pub(super) fn of(class: FailureClass) -> Option<Kind> {
        match class {
            FailureClass::Build => Some(Kind::Build),
            FailureClass::Timeout => Some(Kind::Timeout),
            FailureClass::Crash => Some(Kind::Crash),
            FailureClass::Wrong => Some(Kind::Wrong),
            FailureClass::Resources => None,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What was wrong with a program.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Failure {
    pub kind: Kind,
    /// The first difference, the driver's log, the diagnostic.
    pub says: String,
    /// The candidate: its term and the values of its symbols.
    pub candidate: Option<String>,
    /// Its kernels.
    pub kernels: Option<String>,
}

/// A program that shows something wrong.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The program, as small as it could be made.
    pub source: Arc<Source>,
    /// As it was first.
    pub original: Arc<Source>,
    /// How it is tried.
    pub case: Case,
    pub(super) failure: Failure,
    /// Where it is written.
    pub folder: Option<PathBuf>,
}

impl Finding {
    /// In which way it is wrong.
    pub fn kind(&self) -> Kind {
        self.failure.kind
    }

    /// What was seen.
    pub fn says(&self) -> &str {
        &self.failure.says
    }

    /// The rest of the command that shows it again, given the program's file.
    fn command(&self, path: &Path) -> String {
        format!("patsat fuzz {} --candidates 64", path.display())
    }

    /// Writes it into a folder of its own.
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
            "\nTo see it again, with the options of the run:\n\n    {}\n",
            self.command(&folder.join("program.pat"))
        ));
        put("about.txt", &about)?;
        if let Some(kernels) = &self.failure.kernels {
            put("kernels.cl", kernels)?;
        }
        self.folder = Some(folder);
        Ok(())
    }
}
