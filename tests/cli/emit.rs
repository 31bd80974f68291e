//! Emitted kernels: the host programs build, run, and check the result.

use super::{Place, floats, npy};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Programs with several kernels and temporaries, vectors, tuples, indices, and integers that must be exactly
/// equal.
const PROGRAMS: [(&str, &str); 5] = [
    ("programs/asum.pat", "--size n=100003 --cost-model generic-gpu"),
    ("programs/gemv.pat", "--size n=100 --size m=96"),
    ("programs/matmul.pat", "--size n=64 --size m=48 --size k=40"),
    ("programs/kmeans.pat", "--size n=200 --size k=5 --size d=4"),
    ("programs/md.pat", "--size n=256 --size k=8 --seed 3"),
];

const MIXED: &str = "\
-- gen: is=uniform:-9..n us=letters:ACGT ds=shuffle
entry mixed [n] (is: [n]i64) (bs: [n]bool) (us: [n]u8) (ds: [n]f64) (xs: [n]f32) (c: i16)
  : ([n]i64, [n]bool, [n]f64) =
  unzip3 (map (\\(i, b, u, d, x) ->
    (if b then i + i64.i16 c else i64.u8 u, i < 5, d * f64.f32 x)) (zip5 is bs us ds xs))
";

/// Loops that the host counts, from inputs, and exchanges of three buffers.
const LOOPS: &str = "\
entry loops [n] (steps: i32) (last: u64) (a: [n]f32) (b: [n]f32) : ([n]f32, [n]f32, [n]f32) =
  let around xs = map (\\w -> w[0] + w[2]) (slide 3 1 (pad 1 1 0 xs))
  let (a, b) = loop (a, b) for s < steps do (b, map2 (-) (around b) (reverse a))
  let (c, _) = loop (c, i) = (a, 1) while i <= last - 2 do (map (* f32.u64 i) (around c), i + 1)
  in (a, b, c)
";

/// A loop that data end. Kernels for a GPU find out for themselves that it has ended.
const UNTIL: &str = "\
-- gen: xs=uniform:-100..100
entry until [n] (xs: [n]f32) : ([n]f32, i32) =
  loop (xs, steps = 0) while reduce max 0 (map abs xs) > 1 do (map (* 0.5) xs, steps + 1)
";

/// Emits a program and returns the folder.
fn emit(p: &Place, program: &str, args: &str) -> PathBuf {
    let dir = p.path("out");
    p.run(&format!("emit {program} --device none {args} -o {}", dir.display())).ok();
    dir
}

fn run(command: &mut Command, dir: &Path) -> Output {
    command.current_dir(dir).output().expect("it runs")
}

#[track_caller]
fn says(output: &Output, status: i32, word: &str) {
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "{out}{err}");
    assert!(out.contains(word), "{out}{err}");
}

/// Builds and runs the host program in C. Warnings are errors.
fn in_c(dir: &Path) -> Output {
    let made = run(Command::new("make").arg("CFLAGS=-O1 -Wall -Wextra -Werror"), dir);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    run(Command::new("./host").arg("portable"), dir)
}

/// Builds and runs the host program in Rust, from the crates that patsat itself was built from.
fn in_rust(dir: &Path) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    fs::copy(root.join("Cargo.lock"), dir.join("Cargo.lock")).expect("a lock file");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["run", "--quiet", "--offline", "--", "portable"]);
    cargo.env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("emitted"));
    run(cargo.env("RUSTFLAGS", "-D warnings"), dir)
}

/// Changes the first expected element.
fn spoil(dir: &Path) {
    let file = dir.join("expected.bin");
    let mut bytes = fs::read(&file).expect("expected results");
    // The value follows the count and the position; flip the highest bit of the float's exponent.
    bytes[23] ^= 0x40;
    fs::write(&file, bytes).expect("other results");
}

fn programs(p: &Place) -> Vec<(String, &'static str)> {
    let mut all: Vec<_> = PROGRAMS.iter().map(|(f, args)| ((*f).to_owned(), *args)).collect();
    all.push((p.file("mixed.pat", MIXED), "--size n=1000 --arg c=-7"));
    all.push((p.file("loops.pat", LOOPS), "--size n=1000 --arg steps=6 --arg last=5"));
    all.push((p.file("until.pat", UNTIL), "--size n=200003 --cost-model generic-gpu"));
    all.push((p.file("none.pat", LOOPS), "--size n=100 --arg steps=-6 --arg last=2"));
    all
}

#[test]
fn host_programs_in_c_check_the_kernels() {
    let p = Place::new();
    for (program, args) in programs(&p) {
        let dir = emit(&p, &program, args);
        let kernels = fs::read_to_string(dir.join("kernels.cl")).expect("kernels");
        assert_eq!(kernels.contains("goes_on"), program.ends_with("until.pat"), "{kernels}");
        let ran = in_c(&dir);
        says(&ran, 0, ": OK on ");
        spoil(&dir);
        says(&in_c(&dir), 1, ": MISMATCH on ");
    }
    let dir = p.path("out");
    let bytes = fs::read(dir.join("expected.bin")).expect("expected results");
    fs::write(dir.join("expected.bin"), &bytes[..30]).expect("too few of them");
    says(&in_c(&dir), 2, "");
    fs::write(dir.join("expected.bin"), &bytes).expect("all of them");
    let none = run(Command::new("./host").arg("no such device"), &dir);
    says(&none, 2, "");
    let other = run(Command::new("./host").env("DEVICE", "#0"), &dir);
    says(&other, 1, "MISMATCH");
    fs::remove_file(dir.join("kernels.cl")).expect("it was there");
    says(&run(&mut Command::new("./host"), &dir), 2, "");
}

#[test]
fn host_programs_in_rust_check_the_kernels() {
    let p = Place::new();
    for (program, args) in programs(&p) {
        let dir = emit(&p, &program, args);
        says(&in_rust(&dir), 0, ": OK on ");
        spoil(&dir);
        says(&in_rust(&dir), 1, ": MISMATCH on ");
    }
}

#[test]
fn a_plan_emits_its_kernels_without_a_device() {
    let p = Place::new();
    let plan = p.path("scal.plan").display().to_string();
    let none = p.path("none").display().to_string();
    let found =
        p.run(&format!("--json optimize programs/scal.pat --size n=1000 --device none -o {plan}"));
    let found = found.ok().last("result");
    let dir = p.path("out");
    let xs = p.file("xs.npy", npy("<f4", false, "(1000,)", &floats(&[0.5; 1000])));
    let args = format!("--plan {plan} --input xs={xs} --arg alpha=3 -o {}", dir.display());
    let mut command = p.command(&format!("--json emit programs/scal.pat {args}"));
    let ran = super::Ran(command.env("OCL_ICD_VENDORS", none).output().expect("patsat runs")).ok();
    assert_eq!(ran.last("result")["kernels_from"], "plan");
    let read = |name: &str| fs::read_to_string(dir.join(name)).expect("an emitted file");
    assert_eq!(read("kernels.cl"), found["kernels"].as_str().expect("kernels"));
    assert_eq!(read("kernels.plan"), fs::read_to_string(&plan).expect("a plan"));
    let readme = read("README.md");
    for what in ["`scal`", "n=1000", "generic CPU", "not measured", "input-0.bin", "make run"] {
        assert!(readme.contains(what), "no {what} in\n{readme}");
    }
    for file in ran.last("result")["files"].as_array().expect("a list") {
        assert!(dir.join(file.as_str().expect("a name")).exists(), "{file}");
    }
    says(&in_c(&dir), 0, ": OK on ");
    // The emitted folder contains all that is needed to emit it again.
    let again = p.path("again");
    let from = |name: &str| dir.join(name).display().to_string();
    let args = format!("{} --plan {}", from("program.pat"), from("kernels.plan"));
    p.run(&format!("emit {args} -o {}", again.display())).ok();
    assert_eq!(fs::read(again.join("kernels.cl")).expect("kernels"), read("kernels.cl").as_bytes());
}

#[test]
fn only_emitted_directories_are_written_over() {
    let p = Place::new();
    let dir = emit(&p, "programs/scal.pat", "--size n=64");
    emit(&p, "programs/asum.pat", "--size n=64");
    let readme = fs::read_to_string(dir.join("README.md")).expect("a description");
    assert!(readme.contains("`asum`"), "{readme}");
    let own = p.path("own");
    fs::create_dir(&own).expect("a directory");
    fs::write(own.join("README.md"), "# Mine\n").expect("a file");
    let args = format!("emit programs/scal.pat --size n=64 --device none -o {}", own.display());
    p.run(&args).fails("E0908", 9);
    assert_eq!(fs::read_dir(&own).expect("a directory").count(), 1);
    p.run(&format!("{args} --force")).ok();
    p.run("emit programs/scal.pat --size n=64 --device none -o /proc/none").fails("E0901", 9);
    let neighbours = "emit programs/scal.pat --size n=64 --device none --gen xs=neighbours:n";
    p.run(&format!("{neighbours} -o {}", p.path("new").display())).fails("E0903", 2);
    assert!(!p.path("new").exists());
    let file = p.file("file", "");
    p.run(&format!("emit programs/scal.pat --size n=64 --device none -o {file}")).fails("E0901", 9);
}
