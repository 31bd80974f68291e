//! Injects faults into tuning runs. A run may fail, but the measurements that it has reported must stay in the
//! store, the store must stay sound, and a new run must continue from it. The results are in docs/reliability.md.
#![cfg(unix)]

mod around;
mod kills;
mod liar;
mod signals;

use rusqlite::Connection;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

/// A folder with a tuning store.
struct Place {
    folder: tempfile::TempDir,
}

/// The state that a faulty run left behind.
struct Left {
    /// Plans that were reported as measured.
    reported: BTreeSet<String>,
}

impl Place {
    fn new() -> Place {
        Place { folder: tempfile::TempDir::new().expect("a temporary folder") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn store(&self) -> PathBuf {
        self.path("store.sqlite")
    }

    /// Returns the command for tuning with a vector of length `n`.
    fn tuning(&self, n: usize, budget: usize) -> Command {
        self.under(Command::new(env!("CARGO_BIN_EXE_patsat")), n, budget)
    }

    /// Returns the same command run through another one, such as a shell that gets it as arguments.
    fn under(&self, mut command: Command, n: usize, budget: usize) -> Command {
        command.args(["--json", "optimize", "programs/scal.pat", "--device", "portable"]);
        command.args(["--size", &format!("n={n}"), "--budget", &budget.to_string()]);
        command.current_dir(env!("CARGO_MANIFEST_DIR"));
        command.env("PATSAT_STORE", self.store()).env("NO_COLOR", "1");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Returns the plans in the store, which must be sound.
    #[track_caller]
    fn stored(&self) -> BTreeSet<String> {
        let store = self.store();
        if !store.exists() {
            return BTreeSet::new();
        }
        let open = || -> rusqlite::Result<BTreeSet<String>> {
            let connection = Connection::open(&store)?;
            let sound: String =
                connection.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
            assert_eq!(sound, "ok");
            // A process that was killed early may not have created the tables.
            let tables = "SELECT COUNT(*) FROM sqlite_schema WHERE name = 'candidates'";
            if connection.query_row(tables, [], |row| row.get::<_, i64>(0))? == 0 {
                return Ok(BTreeSet::new());
            }
            let mut all = connection.prepare("SELECT plan FROM candidates")?;
            all.query_map([], |row| row.get(0))?.collect()
        };
        open().expect("a store that can be read")
    }

    /// Requires that the store has every reported plan.
    #[track_caller]
    fn has(&self, left: &Left) {
        let stored = self.stored();
        let lost: Vec<&String> = left.reported.difference(&stored).collect();
        assert!(lost.is_empty(), "lost: {lost:?} of {:?}", left.reported);
    }
}

/// Reads what a run reported from its standard output.
fn left(stdout: &[u8]) -> Left {
    // The last line of a killed process may be incomplete.
    let lines = String::from_utf8_lossy(stdout).into_owned();
    let lines = lines.lines().filter_map(|l| serde_json::from_str::<serde_json::Value>(l).ok());
    let measured = lines.filter(|l| l["type"] == "candidate");
    Left { reported: measured.filter_map(|l| Some(l["plan"].as_str()?.to_owned())).collect() }
}

/// Runs a tuning, which must succeed.
#[track_caller]
fn succeeds(mut command: Command) -> Output {
    let out = command.output().expect("it starts");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    out
}

/// Requires a failure without a panic or an internal error.
#[track_caller]
fn fails_in_order(out: &Output) {
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(!said.contains("panicked") && !said.contains("E0999"), "{said}");
    assert!(out.status.code().is_some(), "it was killed: {said}");
}

/// Returns the workers of a process.
fn workers(of: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{of}/task/{of}/children"));
    let threads = fs::read_dir(format!("/proc/{of}/task")).into_iter().flatten().flatten();
    let mut found: Vec<u32> = threads
        .filter_map(|t| fs::read_to_string(t.path().join("children")).ok())
        .chain(children)
        .flat_map(|text| text.split_whitespace().filter_map(|p| p.parse().ok()).collect::<Vec<_>>())
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn signal(process: u32, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &process.to_string()]).output();
    drop(sent.expect("there is a kill command"));
}

/// Waits until a condition holds; fails after a time limit.
#[track_caller]
fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_mins(2), "not in time: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Returns whether a process exists and is not a zombie.
fn alive(process: u32) -> bool {
    fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|s| !s.contains(") Z "))
}

/// Returns the number of faults to inject. The slow suite sets a larger number.
fn count(few: usize) -> usize {
    std::env::var("PATSAT_FAULTS").ok().and_then(|n| n.parse().ok()).unwrap_or(few)
}

/// Returns the seed of the random moments, so that several processes may share the slow suite.
fn seed(usual: u64) -> u64 {
    std::env::var("PATSAT_FAULTS_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

/// Compiles a C library to be preloaded into processes.
fn preload(place: &Place, source: &str) -> PathBuf {
    let (c, so) = (place.path("shim.c"), place.path("shim.so"));
    fs::write(&c, source).expect("written");
    let mut gcc = Command::new("gcc");
    gcc.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&so).arg(&c);
    let out = gcc.arg("-ldl").output().expect("gcc is there: `make tools`");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    so
}

/// Returns the contents of a file; empty if there is none.
fn bytes(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_default()
}
