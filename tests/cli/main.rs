//! The command line as the user sees it: every verb, and everything that can go wrong.

#![expect(clippy::missing_panics_doc, reason = "tests panic when they fail")]

mod bad_data;
mod bad_device;
mod bad_program;
mod bad_rules;
mod bad_store;
mod calibrate;
mod checks;
mod compare;
mod config;
mod egraph;
mod emit;
mod every_verb;
mod explain;
mod first_steps;
mod folders;
mod futhark;
mod fuzz;
mod json_lines;
mod lsp;
mod options;
mod outputs;
mod package;
mod plans;
mod reference;
mod report;
mod search;
mod snapshot;
mod store;
mod streams;
mod trust;
mod verbs;

use assert_cmd::Command;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

/// A temporary folder with a tuning store.
pub struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    #[expect(clippy::new_without_default, reason = "every place is another")]
    pub fn new() -> Place {
        Place { folder: tempfile::TempDir::new().expect("a temporary folder") }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file, and returns its path as text.
    pub fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> String {
        fs::write(self.path(name), contents).expect("a file is written");
        self.path(name).display().to_string()
    }

    /// Returns a `patsat` command with arguments separated by blanks.
    pub fn command(&self, args: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_patsat"));
        command.args(args.split_whitespace());
        command.current_dir(env!("CARGO_MANIFEST_DIR"));
        command.env("PATSAT_STORE", self.path("store.sqlite")).env("NO_COLOR", "1");
        command
    }

    /// Runs a command.
    pub fn run(&self, args: &str) -> Ran {
        Ran(self.command(args).output().expect("patsat runs"))
    }
}

/// The outcome of a command.
pub struct Ran(pub Output);

impl Ran {
    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.0.stdout).into_owned()
    }

    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.0.stderr).into_owned()
    }

    /// Requires that the command succeeded.
    #[track_caller]
    #[expect(clippy::return_self_not_must_use, reason = "the check itself may be all")]
    pub fn ok(self) -> Ran {
        assert_eq!(self.0.status.code(), Some(0), "{}\n{}", self.stdout(), self.stderr());
        self
    }

    /// Requires that the command failed with this code and status, with a message and without a panic.
    #[track_caller]
    #[expect(clippy::return_self_not_must_use, reason = "the check itself may be all")]
    pub fn fails(self, code: &str, status: i32) -> Ran {
        let said = self.stderr();
        assert_eq!(self.0.status.code(), Some(status), "{}\n{said}", self.stdout());
        assert!(said.contains(code), "no {code} in:\n{said}");
        assert!(!said.contains("panicked") && !said.contains("error[E0999]"), "{said}");
        self
    }

    /// Returns the JSON lines on standard output.
    #[track_caller]
    pub fn json(&self) -> Vec<Value> {
        let line = |l: &str| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}"));
        let lines: Vec<Value> = self.stdout().lines().map(line).collect();
        assert!(lines.iter().all(|l| l["v"] == 1 && l["type"].is_string()));
        lines
    }

    /// Returns the last JSON line of a type.
    #[track_caller]
    pub fn last(&self, kind: &str) -> Value {
        let found = self.json().into_iter().rfind(|l| l["type"] == kind);
        found.unwrap_or_else(|| panic!("no `{kind}` in {}", self.stdout()))
    }
}

/// Returns the contents of an `.npy` file.
pub fn npy(descr: &str, fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
    let fortran = if fortran { "True" } else { "False" };
    let mut text =
        format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}");
    while !(10 + text.len() + 1).is_multiple_of(64) {
        text.push(' ');
    }
    text.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(text.len()).expect("a short header").to_le_bytes());
    bytes.extend(text.bytes());
    bytes.extend(data);
    bytes
}

/// Returns floats as little-endian bytes.
pub fn floats(xs: &[f32]) -> Vec<u8> {
    xs.iter().flat_map(|x| x.to_le_bytes()).collect()
}

/// Reads the floats of a file that patsat wrote.
pub fn read_floats(path: &Path) -> Vec<f32> {
    let array = patsat::session::npy::read(path).expect("an array");
    array.data.to_vec::<f32>().expect("floats")
}
