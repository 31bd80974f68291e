//! Kernels check values that depend on the data: indices and divisors.

use super::{Place, floats, npy};
use patsat::session::npy::read;
use std::fs;
use std::process::Command;

const PICK: &str = "\
entry pick [n] [m] (xs: [n]f32) (is: [m]i32) : [m]f32 =\n  map (\\i -> xs[i] + 1) is\n";
const QUOTIENTS: &str = "\
entry quotients [n] (xs: [n]i32) (ys: [n]i32) : ([n]i32, [n]i32) =
  (zip xs ys |> mapGlb 0 (\\(x, y) -> x / y),
   zip xs ys |> asVector 4 |> mapGlb 0 (vectorize 4 (\\(x, y) -> x % y)) |> asScalar)\n";

/// A device that is present wherever tests run, and few candidates.
const QUICK: &str = "--device portable --budget 2";

fn ints(p: &Place, name: &str, xs: &[i32]) -> String {
    let bytes: Vec<u8> = xs.iter().flat_map(|x| x.to_le_bytes()).collect();
    p.file(name, npy("<i4", false, &format!("({},)", xs.len()), &bytes))
}

/// Writes a hundred numbers, and 64 indices of them, one of which is replaced by `index`.
fn picked(p: &Place, name: &str, at: usize, index: i32) -> String {
    let xs: Vec<f32> = (0..100u8).map(f32::from).collect();
    let xs = p.file("xs.npy", npy("<f4", false, "(100,)", &floats(&xs)));
    let mut is: Vec<i32> = (0..64).map(|k| k * 37 % 100).collect();
    is[at] = index;
    format!("--input xs={xs} --input is={}", ints(p, name, &is))
}

#[test]
fn an_index_outside_its_array_is_no_result() {
    let p = Place::new();
    let f = p.file("pick.pat", PICK);
    let good = picked(&p, "good.npy", 0, 99);
    p.run(&format!("run {f} {good} --verify {QUICK}")).ok();
    // With kernels tuned before, with kernels that must still be searched for, and with a plan.
    let plan = p.path("pick.plan");
    p.run(&format!("optimize {f} {good} {QUICK} -o {}", plan.display())).ok();
    for (at, index) in [(0, 100), (63, -1), (17, 1 << 30), (5, i32::MIN)] {
        let bad = picked(&p, "bad.npy", at, index);
        let place = format!("[{index}] is outside");
        let with_plan = format!("run {f} {bad} --device portable --plan {}", plan.display());
        for args in [format!("run {f} {bad} {QUICK}"), with_plan] {
            let ran = p.run(&args).fails("E0505", 4);
            assert!(ran.stderr().contains(&place), "{}", ran.stderr());
            assert!(ran.stderr().contains("pick.pat:2"), "{}", ran.stderr());
        }
    }
    let bad = picked(&p, "bad.npy", 9, 100);
    p.run(&format!("optimize {f} {bad} {QUICK} --no-store")).fails("E0505", 4);
    // Nothing was stored about the failed run.
    p.run(&format!("run {f} {good} --verify {QUICK}")).ok();
}

#[test]
fn integers_wrap_when_they_are_divided() {
    let p = Place::new();
    let f = p.file("quotients.pat", QUOTIENTS);
    let mut xs: Vec<i32> = (0..64).map(|k| 1000 * k - 7).collect();
    let mut ys: Vec<i32> = (0..64).map(|k| k % 7 + 1).collect();
    (xs[3], ys[3]) = (i32::MIN, -1);
    (xs[62], ys[62]) = (i32::MIN, -1);
    let given = |ys: &[i32]| {
        let (xs, ys) = (ints(&p, "xs.npy", &xs), ints(&p, "ys.npy", ys));
        format!("--input xs={xs} --input ys={ys}")
    };
    let out = p.path("out.npy");
    let args = format!(
        "run {f} {} --no-rewrite --verify --device portable --output {}",
        given(&ys),
        out.display()
    );
    p.run(&args).ok();
    let component = |k: usize| {
        read(&p.path(&format!("out.{k}.npy")))
            .expect("the result was written")
            .data
            .to_vec::<i32>()
            .expect("of that type")
    };
    let (quotients, remainders) = (component(0), component(1));
    assert_eq!(
        [quotients[3], quotients[62], remainders[3], remainders[62]],
        [i32::MIN, i32::MIN, 0, 0]
    );
    ys[40] = 0;
    let args = format!("run {f} {} --no-rewrite --device portable", given(&ys));
    let ran = p.run(&args).fails("E0505", 4);
    assert!(ran.stderr().contains("integer division by zero"), "{}", ran.stderr());
}

/// With explicit kernels: a work-item for each element, vectors, and branches that are not evaluated.
#[test]
fn what_is_not_evaluated_does_not_fail() {
    let p = Place::new();
    let programs = [
        "mapGlb 0 (\\(x, y) -> if y != 0 && x / y > 2 then x % y else 7) (zip xs ys)",
        "mapGlb 0 (mapSeq (\\(x, y) -> if y == 0 then 1 else x / y + x / y)) (split 8 (zip xs ys)) |> join",
        "zip xs ys |> asVector 4 |> mapGlb 0 (vectorize 4 (\\(x, y) -> if y != 0 then x / y else 1)) |> asScalar",
        "zip xs ys |> asVector 4 |> mapGlb 0 (vectorize 4 (\\(x, y) -> if y == 0 || x % y < 2 then x else 1)) |> asScalar",
        "mapGlb 0 (\\i -> if i + 1 < 64 then xs[i + 1] else xs[i]) (iota n)",
        "iota n |> asVector 4 |> mapGlb 0 (vectorize 4 (\\i -> if ys[i] >= 0 then xs[ys[i]] else 5)) |> asScalar",
    ];
    let xs: Vec<i32> = (0..64).map(|k| 11 * k - 300).collect();
    let ys: Vec<i32> = (0..64).map(|k| k % 5 - (k % 2)).collect();
    let args =
        format!("--input xs={} --input ys={}", ints(&p, "xs.npy", &xs), ints(&p, "ys.npy", &ys));
    for (k, body) in programs.iter().enumerate() {
        let text = format!("entry f [n] (xs: [n]i32) (ys: [n]i32) : [n]i32 =\n  {body}\n");
        let f = p.file(&format!("p{k}.pat"), text);
        p.run(&format!("run {f} {args} --no-rewrite --verify --device portable")).ok();
    }
    // In branches that are evaluated, the check fails.
    let zeros = ints(&p, "zeros.npy", &[0; 64]);
    for (k, body) in [
        "zip xs ys |> asVector 4 |> mapGlb 0 (vectorize 4 (\\(x, y) -> if x > 0 then x / y else 1)) |> asScalar",
        "mapGlb 0 (\\(x, y) -> x > 0 && x / y > 1) (zip xs ys) |> mapGlb 0 (\\b -> select b 1 0)",
    ]
    .iter()
    .enumerate()
    {
        let text = format!("entry f [n] (xs: [n]i32) (ys: [n]i32) : [n]i32 =\n  {body}\n");
        let f = p.file(&format!("q{k}.pat"), text);
        let args = format!("--input xs={} --input ys={zeros}", p.path("xs.npy").display());
        p.run(&format!("run {f} {args} --no-rewrite --device portable")).fails("E0505", 4);
    }
}

#[test]
fn an_index_of_an_empty_array_fails_where_it_is_evaluated() {
    let p = Place::new();
    let f = p.file(
        "none.pat",
        "entry none [n][m] (is: [n]i32) (ys: [m](f32, i16)) (xs: [n]f32) : [n]f32 =
  mapGlb 0 (\\(i, x) -> if i > 0 then ys[i - 9].0 else x) (zip is xs)\n",
    );
    let sizes = "--size n=3 --size m=0 --gen ys=iota --gen xs=iota";
    let run = |is| {
        p.run(&format!("run {f} --no-rewrite --verify {sizes} --device portable --gen is={is}"))
    };
    run("const:0").ok();
    for (is, index) in [("iota", "[-8]"), ("const:9", "[0]")] {
        let said = run(is).fails("E0505", 4).stderr();
        assert!(said.contains(&format!("{index} is outside an array of dimensions [0]")), "{said}");
    }
}

#[test]
fn unchecked_kernels_are_kept_apart() {
    let p = Place::new();
    let f = p.file("pick.pat", PICK);
    let good = picked(&p, "good.npy", 0, 99);
    let kernel = |args: &str| {
        let args = format!("optimize {f} {good} {QUICK} --emit kernel {args}");
        p.run(&args).ok().stdout()
    };
    assert!(!kernel("--unchecked").contains("checked_"));
    assert!(kernel("").contains("checked_index_int"));
    let plan = p.path("pick.plan");
    p.run(&format!("optimize {f} {good} {QUICK} --unchecked -o {}", plan.display())).ok();
    let text = fs::read_to_string(&plan).expect("the file is there");
    assert!(text.contains("unchecked = true"), "{text}");
    // Without checks, the value next to the array is read, whatever it is.
    let bad = picked(&p, "bad.npy", 9, 100);
    p.run(&format!("run {f} {bad} {QUICK} --unchecked")).ok();
    p.run(&format!("run {f} {bad} {QUICK}")).fails("E0505", 4);
}

#[test]
fn emitted_programs_say_what_is_wrong() {
    let p = Place::new();
    let f = p.file("pick.pat", PICK);
    let good = picked(&p, "good.npy", 0, 99);
    let dir = p.path("out");
    p.run(&format!("emit {f} --device none {good} -o {}", dir.display())).ok();
    let stored = fs::read_dir(&dir)
        .expect("the file is there")
        .map(|e| e.expect("the file is there").path());
    let is = stored
        .filter(|f| f.extension().is_some_and(|x| x == "bin"))
        .find(|f| fs::metadata(f).expect("the file is there").len() == 4 * 64)
        .expect("a file of indices");
    let run = |command: &mut Command| command.current_dir(&dir).output().expect("it runs");
    let make = || run(Command::new("make").arg("CFLAGS=-O1 -Wall -Wextra -Werror"));
    assert!(make().status.success());
    let host = || run(Command::new("./host").arg("portable"));
    assert_eq!(host().status.code(), Some(0));
    let mut bytes = fs::read(&is).expect("the file is there");
    bytes[4..8].copy_from_slice(&(-7i32).to_le_bytes());
    fs::write(&is, bytes).expect("the folder can be written");
    let said = host();
    let text = String::from_utf8_lossy(&said.stderr).into_owned();
    assert_eq!(said.status.code(), Some(2), "{text}");
    assert!(text.contains("index -7 is outside an array of 100 elements (`xs`)"), "{text}");
}

#[test]
fn a_choice_between_parallel_patterns_is_no_bug() {
    let p = Place::new();
    let f = p.file(
        "choice.pat",
        "entry choice [n] (xs: [n]f32) (c: f32) : [n]f32 =
  if c > 0 then mapGlb 0 (* 2) xs else mapGlb 0 (+ 1) xs\n",
    );
    let args = "--size n=16 --gen xs=iota --arg c=1 --device portable";
    p.run(&format!("run {f} --no-rewrite {args}")).ok();
    let f = p.file(
        "single.pat",
        "entry single [n] (xs: [n]f32) (c: f32) : [n]f32 =
  if c > 0 then mapSeq (* 2) xs else mapSeq (+ 1) xs\n",
    );
    p.run(&format!("run {f} --no-rewrite --verify {args}")).ok();
}
