//! Random programs compared with the interpreter: a short run with a fixed seed, and every program that once gave a
//! wrong result or broke the compiler.

use patsat::device::DeviceKind;
use patsat::device::cost_model::CostModel;
use patsat::diag::Source;
use patsat::lang::arbitrary::{LENGTHS, random};
use patsat::lang::types::ScalarType;
use patsat::session::fuzz::{Case, Finding, Fuzz, Kind, Tally, Watcher};
use patsat::session::{Device, Float, Program, Session, rule_set};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

fn session(device: &str) -> Session {
    let mut session = Session::new().expect("a session");
    session.device = match device {
        "none" => Device::None,
        name => Device::Selected(Some(name.to_owned())),
    };
    session.worker = Some(Arc::new(|| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_patsat"));
        command.arg("worker");
        command
    }));
    session
}

/// Prints findings to the test's output.
struct Told;

impl Watcher for Told {
    fn finding(&mut self, f: &Finding) {
        eprintln!("{}: {}\n{}", f.kind(), f.says(), f.source.text);
    }
}

fn clean(tally: &Tally) {
    assert!(tally.is_clean(), "{:?}", tally.wrong);
    assert_eq!(tally.programs, tally.accepted, "not well-typed: {:?}", tally.rejections);
    assert_eq!(tally.accepted, tally.no_value + tally.refused + tally.compiled, "{tally:?}");
}

#[test]
fn kernels_of_random_programs_are_right() {
    let fuzz = Fuzz { programs: 60, seed: 2026, candidates: 2, ..Fuzz::default() };
    let tally = session("portable").fuzz(&fuzz, &mut Told).expect("PoCL");
    clean(&tally);
    assert!(tally.compiled >= 10 && tally.candidates >= tally.compiled, "{tally:?}");
    // Every refused program is counted under a reason, each with an example.
    assert_eq!(tally.refused, tally.refusals.values().map(|r| r.count).sum::<u64>());
    assert!(tally.refusals.values().all(|r| r.examples[0].0.contains("entry random")));
}

#[test]
fn terms_of_random_programs_are_right() {
    let fuzz = Fuzz { programs: 60, seed: 7, jobs: 2, ..Fuzz::default() };
    let tally = session("none").fuzz(&fuzz, &mut Told).expect("no device is needed");
    clean(&tally);
    assert!(tally.candidates >= 20, "{tally:?}");
}

/// Returns the programs in a folder of the tests.
fn programs(folder: &str) -> Vec<Arc<Source>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).expect("a folder").map(|e| e.expect("a file").path()).collect();
    paths.sort();
    let text = |p: &Path| std::fs::read_to_string(p).expect("a text");
    paths.iter().map(|p| Source::new(p.display().to_string(), text(p))).collect()
}

#[test]
fn what_was_found_stays_mended() {
    let programs = programs("tests/differential");
    let fuzz = Fuzz { candidates: 16, ..Fuzz::default() };
    let tally = session("portable").fuzz_programs(&fuzz, &programs, &mut Told).expect("PoCL");
    clean(&tally);
    assert_eq!(tally.programs, programs.len() as u64);
}

/// Every pattern has kernels, even without a fused form: shared rows, scans, scatters, histograms, loops over
/// arrays, choices between arrays, captures.
#[test]
fn every_pattern_compiles_everywhere() {
    let programs = programs("tests/total");
    let fuzz = Fuzz { candidates: 2, jobs: 2, ..Fuzz::default() };
    let tally = session("portable").fuzz_programs(&fuzz, &programs, &mut Told).expect("PoCL");
    clean(&tally);
    assert_eq!((tally.refused, tally.compiled), (0, programs.len() as u64), "{:?}", tally.refusals);
    let mut gpu = session("none");
    let models = CostModel::shipped().expect("shipped models");
    gpu.cost_model = models.into_iter().find(|m| m.matches.kind == Some(DeviceKind::Gpu));
    assert!(gpu.cost_model.is_some(), "no model of a GPU");
    let fuzz = Fuzz { candidates: 1, jobs: 2, ..Fuzz::default() };
    let tally = gpu.fuzz_programs(&fuzz, &programs, &mut Told).expect("no device is needed");
    clean(&tally);
    assert_eq!((tally.refused, tally.compiled), (0, programs.len() as u64), "{:?}", tally.refusals);
}

/// Forms that hold up to rounding give the same results.
#[test]
fn relaxed_forms_are_right() {
    let programs = programs("tests/relaxed");
    for source in &programs {
        let program = Program::check(source, None).expect("a program");
        let sizes = Case::of(source).expect("says how it is tried").sizes;
        let elaborated = program.elaborate(&sizes).expect("a term");
        assert!(!elaborated.relaxed.is_empty(), "{} has no relaxed form", source.name);
    }
    are_right_if_relaxed(&programs, 8);
}

/// Kernels that leave out what a mask makes neutral, or reorder the sums of narrow numbers, give the same results.
#[test]
fn relaxed_kernels_are_right() {
    are_right_if_relaxed(&programs("tests/relaxed_kernels"), 4);
}

fn are_right_if_relaxed(programs: &[Arc<Source>], candidates: usize) {
    let mut session = session("portable");
    session.float = Float::Relaxed;
    session.rules = rule_set::<&str>(&[], Float::Relaxed).expect("the shipped rules");
    let fuzz = Fuzz { candidates, jobs: 2, ..Fuzz::default() };
    let tally = session.fuzz_programs(&fuzz, programs, &mut Told).expect("PoCL");
    clean(&tally);
    assert_eq!((tally.refused, tally.compiled), (0, programs.len() as u64), "{:?}", tally.refusals);
}

/// A program whose operator is wrong, accepted under `trust_laws`: its candidates differ. The fuzzer must find it,
/// shrink it, and write a file that reproduces the failure.
#[test]
fn what_is_wrong_is_found_made_small_and_written_down() {
    // The seed determines which rules are tried. With at least one of several seeds, the candidates differ.
    let text = "-- fuzz: seed=SEED n=33 m=5\n-- gen: xs=whole:1..5 ys=whole:1..5\n\
        def twice (x: i32) : i32 = x + x\n\
        entry f [n][m] (xs: [n]i32) (ys: [m]i32) : (i32, [m]i32) =\n  \
        (reduce (\\a b -> a - b) 0 (map (\\x -> twice x) xs), map abs ys)\n";
    let mut session = session("none");
    session.trust_laws = true;
    let place = tempfile::TempDir::new().expect("a folder");
    let output = Some(place.path().to_owned());
    let fuzz = Fuzz { candidates: 24, output, ..Fuzz::default() };
    let tally = (0..12)
        .map(|seed| Source::new("wrong.pat", text.replace("SEED", &seed.to_string())))
        .map(|source| session.fuzz_programs(&fuzz, &[source], &mut ()).expect("tries it"))
        .find(|tally| !tally.is_clean())
        .expect("a seed that shows it");
    assert_eq!(tally.wrong_of(Kind::Wrong), tally.wrong.values().sum::<u64>());
    let folder = Path::new(&tally.findings[0]);
    let found = std::fs::read_to_string(folder.join("program.pat")).expect("a program");
    assert!(found.len() < text.len() / 2, "{found}");
    assert!(!found.contains("ys") && !found.contains("twice"), "{found}");
    let again = Source::new("program.pat", found);
    assert!(Case::of(&again).expect("says how it is tried").sizes["n"] < 33);
    let again =
        session.fuzz_programs(&Fuzz { candidates: 64, ..Fuzz::default() }, &[again], &mut ());
    assert!(!again.expect("tries it").is_clean());
}

#[test]
fn the_generator_uses_the_whole_language() {
    let scalars: Vec<_> = ScalarType::ALL.into_iter().filter(|t| *t != ScalarType::F16).collect();
    let text: String = (0..4000).map(|seed| random(seed, &LENGTHS, &scalars).text).collect();
    for word in [
        "map ",
        "map2",
        "zip ",
        "unzip",
        "reduce ",
        "reduce_comm",
        "reduceSeq",
        "reducePart",
        "scan ",
        "scanSeq",
        "split",
        "join",
        "transpose",
        "iterate",
        "reorder",
        "slide",
        "pad",
        "clamp",
        "wrap",
        "mirror",
        "gather",
        "scatter",
        "histogram",
        "counting_sort",
        "iota",
        "replicate",
        "generate",
        "concat",
        "take",
        "drop",
        "reverse",
        "rotate",
        "loop",
        "while",
        "for",
        "if",
        "select",
        "let",
        "def",
        "def",
        "f64",
        "i64",
        "u8",
        "bool",
        "sqrt",
        "|>",
        "%",
        "**",
        "&&",
        " & ",
        " ^ ",
        "<<",
        ">>",
        "~",
        "popcount",
        "mulhi",
        "order_key",
        "tanh",
        "erf",
        "log2",
        "hypot",
        "trunc",
        "[",
        "::",
        "with [",
        "([",
        "sum ",
        "argmin",
        "any ",
        "find ",
        "fmod",
        "pow ",
        "exp10",
        "tan (",
        "atan2",
        "isnan",
        "isinf",
        "not ",
        ".pi",
        ".nan",
        ".lowest",
        "flatten",
        "unflatten",
        "tabulate ",
        "tabulate_2d",
        "map_2d",
        "head ",
        "last ",
        "length ",
        "foldl",
        "foldr",
        "type t",
        "def k",
        "let k",
        "++",
        ">>>",
        "//",
        "%%",
        "<|",
        ":>",
        "exscan",
        "(i64.i32 ",
        "let v",
        "hist ",
        "zip2 ",
    ] {
        assert!(text.contains(word), "{word}");
    }
}
