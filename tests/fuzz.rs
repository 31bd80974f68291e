//! Runs the fuzz targets without a fuzzer: on the seeds, and on a fixed number of mutations of them. `make fuzz`
//! searches further.

#[path = "../fuzz/src/lib.rs"]
mod targets;

use patsat::calculus::text::{Context, parse_size, read_term};
use patsat::calculus::ty::Ty;
use patsat::diag::{Code, Source};
use patsat::lang::{self, types::ScalarType};
use patsat::rules::RuleSet;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Words that mutations insert, from all input languages, separated by `~`.
const WORDS: &str = concat!(
    "(~)~[~]~=~->~|>~>->~<-<~,~:~let a = ~ in ~map ~reduce (+) 0 ~zip ~split 4 ~join~",
    "iterate 3 ~x~xs~[n]~f32~\\x -> ~fork id id~bimap ~ . ~0~1~-1~",
    "18446744073709551616~1e999~nan~n^~n.t0~{~}~\"~'''~null~\n~\0~\u{e9}~--~rule ~",
    "  when ~  rewrite ~ => ~ == ",
);

/// Collects the files in a folder, or the file itself.
fn files(path: &Path, found: &mut Vec<PathBuf>) {
    match fs::read_dir(path) {
        Err(_) => found.push(path.to_owned()),
        Ok(entries) => {
            let mut entries: Vec<_> = entries.map(|e| e.expect("an entry").path()).collect();
            entries.sort();
            entries.iter().for_each(|e| files(e, found));
        }
    }
}

/// The longest program outside of the corpus that is a seed, in bytes. A longer one is not mutated, and may take minutes.
const PROGRAM_BYTES: usize = 5000;

/// Returns the seeds of a target: its own corpus, and files of the same kind in the repository.
fn seeds(name: &str) -> Vec<Vec<u8>> {
    let (folder, end) = match name {
        "program" | "formatter" => ("programs", ".pat"),
        "rules" => ("rules", ".rules"),
        "cost_model" => ("cost-models", ".toml"),
        _ => ("", ""),
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = vec![];
    files(&root.join("fuzz/corpus").join(name), &mut paths);
    let own = paths.len();
    if !folder.is_empty() {
        files(&root.join(folder), &mut paths);
    }
    let fits = |(i, p): &(usize, PathBuf)| *i < own || p.display().to_string().ends_with(end);
    let paths = paths.into_iter().enumerate().filter(fits);
    let read = |(i, p): (usize, PathBuf)| {
        (i, fs::read(&p).unwrap_or_else(|e| panic!("{}: {e}", p.display())))
    };
    let seeds = paths
        .map(read)
        .filter(|(i, seed)| *i < own || folder != "programs" || seed.len() < PROGRAM_BYTES);
    seeds.map(|(_, seed)| seed).collect()
}

/// Makes a small change, or inserts a part of another seed.
fn mutate(data: &mut Vec<u8>, seeds: &[Vec<u8>], rng: &mut ChaCha8Rng) {
    let at = rng.random_range(0..=data.len());
    let end = (at + rng.random_range(0..24usize)).min(data.len());
    match rng.random_range(0..6) {
        0 if at < data.len() => data[at] ^= 1 << rng.random_range(0..8),
        1 => drop(data.drain(at..end)),
        2 => {
            let copy = data[at..end].repeat(rng.random_range(1..4));
            data.splice(at..at, copy);
        }
        3 => {
            let other = &seeds[rng.random_range(0..seeds.len())];
            let from = rng.random_range(0..=other.len());
            let to = (from + rng.random_range(0..64usize)).min(other.len());
            data.splice(at..end, other[from..to].iter().copied());
        }
        4 if at < data.len() => data[at] = (rng.next_u32() & 0xff) as u8,
        _ => {
            let words: Vec<_> = WORDS.split('~').collect();
            let word = words[rng.random_range(0..words.len())];
            data.splice(at..at, word.bytes());
        }
    }
}

/// Runs a target and returns the time it took. Shows the input if the target panics.
fn drive(name: &str, target: fn(&[u8]), data: &[u8]) -> Duration {
    let start = Instant::now();
    assert!(
        catch_unwind(AssertUnwindSafe(|| target(data))).is_ok(),
        "`{name}` panics on {:?}",
        String::from_utf8_lossy(data)
    );
    start.elapsed()
}

fn run(name: &str, mutations: usize) {
    let (_, target) = targets::TARGETS.into_iter().find(|(n, _)| *n == name).expect("a target");
    let seeds = seeds(name);
    for seed in &seeds {
        drive(name, target, seed);
    }
    let small: Vec<_> = seeds.iter().filter(|s| s.len() < 5000).cloned().collect();
    // For longer runs without nightly Rust: another seed, and another number of mutations.
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse::<usize>().ok());
    let mut rng = ChaCha8Rng::seed_from_u64(number("FUZZ_SEED").unwrap_or(1) as u64);
    let count = number("FUZZ_MUTATIONS").unwrap_or(mutations);
    let (start, mut slowest) = (Instant::now(), (Duration::ZERO, vec![]));
    for _ in 0..count {
        let mut data = small[rng.random_range(0..small.len())].clone();
        for _ in 0..rng.random_range(1..6) {
            mutate(&mut data, &small, &mut rng);
        }
        let took = drive(name, target, &data);
        if took > slowest.0 {
            slowest = (took, data);
        }
    }
    let (longest, data) = slowest;
    println!("{name}: {count} executions in {:.1?}, the slowest {longest:.3?}", start.elapsed());
    println!("slowest: {:?}", String::from_utf8_lossy(&data));
}

/// Small texts that once took minutes, gigabytes or the whole stack. Each must now meet the named limit.
#[test]
fn small_texts_that_explode_are_refused() {
    let doublings = |first: &str, step: fn(usize) -> String, count: usize, last: &str| {
        let lets: String =
            (1..=count).map(|i| format!("let a{i} = {} in\n", step(i - 1))).collect();
        format!("entry f (x: f32) : f32 =\nlet a0 = {first} in\n{lets}{last}")
    };
    let many = |item: &str, n: usize| vec![item; n].join(", ");
    let compose = |i: usize| format!("a{i} >-> a{i}");
    let nested = "the program is nested too deeply once its definitions are inlined";
    let large = "the program is too large once its definitions are inlined";
    let wide = "this type has more than 1000 components";
    let defs: String = (1..25).map(|i| format!("def d{i} = d{} >-> d{}\n", i - 1, i - 1)).collect();
    for (text, message) in [
        (doublings("x", |i| format!("(a{i}, a{i})"), 24, "x"), wide),
        (doublings("abs", compose, 24, "a24 x"), nested),
        (doublings("(+ 1.0)", compose, 24, "a24 x"), nested),
        (doublings("(\\y -> (y, y).0)", compose, 24, "a24 x"), large),
        (format!("def d0 (x: f32) = x\n{defs}entry f (x: f32) : f32 = d24 x"), large),
        (format!("entry f (x: f32) : f32 = ({}).0", many("x", 30_000)), wide),
        (
            format!(
                "entry f (x: f32) : f32 = let ({}) = ({}) in a0",
                (0..900).map(|i| format!("a{i}")).collect::<Vec<_>>().join(", "),
                many("x + x", 900)
            ),
            nested,
        ),
    ] {
        let source = Source::new("p", text);
        let (entries, diagnostics) = lang::check(&source);
        assert!(entries.is_empty());
        let first = &diagnostics[0];
        let shown = &source.text[..source.text.len().min(200)];
        assert_eq!((first.code, first.message.as_str()), (Code::KernelLimit, message), "{shown}");
        targets::formatter(source.text.as_bytes());
    }
}

/// Arithmetic on literals that doubles in each step is shared, and has the right value.
#[test]
fn doubled_literals_are_shared() {
    let lets: String =
        (1..=24).map(|i| format!("let a{i} = a{} + a{} in\n", i - 1, i - 1)).collect();
    let text = format!("entry f (x: i32) : i32 =\nlet a0 = 1 + 1 in\n{lets}a24 + x");
    let (entries, diagnostics) = lang::check(&Source::new("p", text.as_str()));
    assert!(diagnostics.is_empty(), "{:?}", diagnostics.first());
    assert!(format!("{:?}", entries[0].body).len() < 100_000);
    targets::program(text.as_bytes());
}

/// However many errors a text has, fifty are shown, with the number of the others.
#[test]
fn diagnostics_are_capped() {
    let notes = |text: String, shown: usize| {
        let diagnostics = lang::check(&Source::new("p", text)).1;
        assert_eq!(diagnostics.len(), shown);
        diagnostics.last().map(|d| d.notes.join(" ")).unwrap_or_default()
    };
    // A run of the same character is one error.
    assert_eq!(notes("\0".repeat(100_000), 1), "");
    assert_eq!(notes("\0\n".repeat(50_000), 50), "49950 more are not shown");
    let wrong = |i| format!("def f{i} (x: f32) : i32 = x\n");
    assert_eq!(notes((0..4000).map(wrong).collect(), 50), "3950 more are not shown");
    let rules: String = (0..60).map(|i| format!("rule r{i}\n  law exact\n")).collect();
    let failure = RuleSet::default().add(&Source::new("r", rules), "t").expect_err("no rewrites");
    assert_eq!(failure.0.len(), 50);
    assert_eq!(failure.0[49].notes, ["10 more are not shown"]);
}

/// Terms whose types double with every step are refused.
#[test]
fn terms_that_explode_are_refused() {
    let text = format!("{}id", "fork id id . ".repeat(40));
    let read =
        read_term(&Source::new("t", text), &Ty::Scalar(ScalarType::F32), &Context::default());
    let failure = read.expect_err("too many components");
    assert_eq!(failure.0[0].code, Code::KernelLimit);
    assert!(failure.0[0].message.contains("more than 1000 components"), "{failure}");
}

/// A dimension that is a sum keeps its parentheses, whether written with or without blanks.
#[test]
fn sums_without_blanks_are_read_back() {
    for text in ["(n-1)^", "(n - 1)^", "((n+1)^/n.v).t0"] {
        let read = |text: &str| parse_size(&Source::new("size", text), 0..text.len());
        let size = read(text).expect("a size");
        assert_eq!(read(&size.to_string()).ok(), Some(size));
    }
}

/// A program of more than 1 MiB is refused before it is read.
#[test]
fn long_programs_are_refused() {
    let diagnostics = lang::check(&Source::new("p", " ".repeat((1 << 20) + 1))).1;
    assert_eq!(diagnostics[0].code, Code::KernelLimit);
}

macro_rules! targets {
    ($($name:ident $mutations:literal;)*) => {
        $(#[test] fn $name() { run(stringify!($name), $mutations); })*

        #[test]
        fn every_target_is_run() {
            let run = [$(stringify!($name)),*];
            assert_eq!(targets::TARGETS.map(|(name, _)| name), run);
        }
    };
}

targets! {
    program 1000;
    formatter 1000;
    term 5000;
    rules 1000;
    plan 2000;
    cost_model 2000;
    npy 10000;
    futhark 10000;
    store 5000;
    frame 10000;
}
