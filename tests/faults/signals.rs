//! Ctrl-C and SIGTERM end a run within a second or two, whatever it is doing, with status 130 and the results so
//! far.

use super::{Place, alive, signal, wait_until, workers};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Output, Stdio};

/// Sends a signal once a line with `mark` was written and the workers are `ready`. Returns the output of the
/// process, and the processes that it left behind.
fn interrupted(
    mut command: Command,
    mark: &str,
    name: &str,
    ready: impl Fn(&[u32]) -> bool,
) -> (Output, Vec<u32>) {
    let mut child = command.spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut text = String::new();
    while !text.contains(mark) {
        assert_ne!(lines.read_line(&mut text).expect("a line"), 0, "it ended early: {text}");
    }
    wait_until("the run is ready", || ready(&workers(child.id())));
    let workers = workers(child.id());
    signal(child.id(), name);
    lines.read_to_string(&mut text).expect("its output");
    let mut out = child.wait_with_output().expect("it ends");
    out.stdout = text.into_bytes();
    (out, workers)
}

/// Returns whether a process has computed for two seconds, which is longer than it takes to build a small kernel.
fn is_busy(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields = stat.rsplit(") ").next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|n| n.parse::<u64>().ok()).sum();
    ticks > 200
}

/// A program for which every phase takes a while.
const LARGE: &str = "programs/attention.pat";

#[test]
fn rewriting_and_drawing_can_be_interrupted() {
    for (phase, name) in [("saturate", "TERM"), ("extract", "INT"), ("generate", "TERM")] {
        let place = Place::new();
        let mut command = Command::new(env!("CARGO_BIN_EXE_patsat"));
        command.args(["--json", "optimize", LARGE, "--device", "none"]);
        command.args(["--size", "n=512", "--size", "m=512", "--size", "d=64"]);
        command.current_dir(env!("CARGO_MANIFEST_DIR")).env("PATSAT_STORE", place.store());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mark = format!("\"phase\":\"{phase}\"");
        let (out, _) = interrupted(command, &mark, name, |_| true);
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(130), "{phase}: {said}");
        let text = String::from_utf8_lossy(&out.stdout);
        assert!(text.contains("E0910") || said.contains("E0910"), "{phase}: {said}{text}");
        assert!(!said.contains("no kernel could be generated"), "{said}");
    }
}

/// Kernels that never end, and that only the end of their process stops. The limits are far longer than a test may
/// take.
#[test]
fn a_hanging_kernel_is_interrupted() {
    for name in ["TERM", "INT"] {
        let place = Place::new();
        let text = "entry slow [n] (xs: [n]f32) : [n]f32 =\n  \
                    mapGlb 0 (\\x -> loop (a = x) while a != 3 do a * 0.5 + 1) xs\n";
        fs::write(place.path("slow.pat"), text).expect("written");
        let mut command = Command::new(env!("CARGO_BIN_EXE_patsat"));
        command.args(["--json", "run"]).arg(place.path("slow.pat"));
        command.args(["--no-rewrite", "--size", "n=16", "--gen", "xs=const:0"]);
        command.args(["--device", "portable", "--run-timeout", "1000"]);
        command.env("PATSAT_STORE", place.store());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let (out, workers) =
            interrupted(command, "\"start\"", name, |w| w.iter().any(|w| is_busy(*w)));
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(130), "{said}");
        wait_until("the worker ends", || !workers.iter().any(|w| alive(*w)));
    }
}

/// An interrupted tuning run says what is stored, and where.
#[test]
fn what_is_kept_is_said() {
    let place = Place::new();
    let (out, _) =
        interrupted(place.tuning(100_000, 200), "\"type\":\"candidate\"", "TERM", |_| true);
    assert_eq!(out.status.code(), Some(130));
    let said =
        String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    assert!(said.contains("keeps what was measured"), "{said}");
    place.has(&super::left(&out.stdout));
}
