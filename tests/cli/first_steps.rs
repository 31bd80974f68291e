//! What a new user sees first: examples, sizes with units, short results, manual pages, the meaning of codes.

use super::{Place, read_floats};
use std::fs;

#[test]
fn examples_are_listed_and_written() {
    let p = Place::new();
    let list = p.run("examples").ok().stdout();
    assert!(list.contains("asum") && list.contains("The sum of absolute values"), "{list}");
    let file = p.path("own.pat").display().to_string();
    p.run(&format!("examples gemv -o {file}")).ok();
    let text = fs::read_to_string(&file).expect("it was written");
    assert_eq!(text, p.run("examples gemv").ok().stdout());
    p.run(&format!("check {file}")).ok();
    // Another program may be replaced, other files may not.
    p.run(&format!("examples dot -o {file}")).ok();
    let other = p.file("notes.txt", "the entry point is elsewhere\n");
    p.run(&format!("examples dot -o {other}")).fails("E0908", 9);
    let said = p.run("examples gem").fails("E0201", 3).stderr();
    assert!(said.contains("did you mean `gemm`?") || said.contains("`gemv`"), "{said}");
}

#[test]
fn a_first_program_is_written_once() {
    let p = Place::new();
    let folder = p.path("new/first").display().to_string();
    let last = p.run(&format!("--json init {folder}")).ok().last("result");
    let program = last["program"].as_str().expect("a path");
    let next = last["next"].as_array().expect("commands");
    assert_eq!(next.len(), 5);
    // What is said to be next works, without a device, too.
    for command in next.iter().filter_map(|c| c.as_str()?.strip_prefix("patsat ")) {
        let device = match command.split(' ').next() {
            Some("optimize") => " --device none",
            Some("run") => " --budget 1",
            _ => "",
        };
        p.run(&format!("{command}{device}")).ok();
    }
    p.run(&format!("fmt --check {program}")).ok();
    fs::write(program, "-- mine\n").expect("written");
    let said = p.run(&format!("init {folder}")).fails("E0908", 9).stderr();
    assert!(said.contains("distance.pat exists") && said.contains("patsat init DIR"), "{said}");
    assert_eq!(fs::read_to_string(program).expect("the file"), "-- mine\n");
    let mut here = p.command("init");
    let said = super::Ran(here.current_dir(p.path("new")).output().expect("patsat runs")).ok();
    assert!(said.stdout().contains("  patsat eval distance.pat  "), "{}", said.stdout());
    p.run("init -").fails("E0903", 2);
}

#[test]
fn sizes_have_units() {
    let p = Place::new();
    let last = p.run("--json eval programs/asum.pat --size n=1Ki --gen xs=const:1").ok();
    assert_eq!(last.last("result")["result"][0]["value"], "1024.0");
    let said = p.run("eval programs/asum.pat --size n=1.5 --gen xs=iota").0;
    assert_eq!(said.status.code(), Some(2));
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(said.contains("`1.5` is not a size") && said.contains("2**20"), "{said}");
    let said = p.run("eval programs/asum.pat --size n=1,2 --gen xs=iota").fails("E0903", 2);
    assert!(said.stderr().contains("several sizes"), "{}", said.stderr());
}

#[test]
fn several_sizes_are_optimised_in_turn() {
    let p = Place::new();
    let args = "optimize programs/gemv.pat --size n=64,1e3 --size m=2**5 --device none";
    let results: Vec<_> = p.run(&format!("--json {args}")).ok().json();
    let sizes: Vec<_> =
        results.iter().filter(|l| l["type"] == "result").map(|l| l["sizes"].to_string()).collect();
    assert_eq!(sizes, [r#"{"n":64,"m":32}"#, r#"{"n":1000,"m":32}"#]);
    // All sizes are checked before the first search.
    let ran = p.run(
        "optimize programs/gemv.pat --size n=64,99999999999 --size m=99999999999 --device none",
    );
    assert_eq!((ran.0.status.code(), ran.stdout()), (Some(3), String::new()));
    let said = p.run(&format!("{args} -o {}", p.path("a.plan").display())).fails("E0903", 2);
    assert!(said.stderr().contains("without `-o`"), "{}", said.stderr());
}

#[test]
fn the_result_comes_first_and_is_short() {
    let p = Place::new();
    let args = "optimize programs/asum.pat --size n=100000 --device portable --budget 2";
    let said = p.run(args).ok().stdout();
    let lines: Vec<&str> =
        said.lines().map(|l| l.split_whitespace().next().unwrap_or("")).collect();
    assert_eq!(lines, ["asum", "time", "rate", "error", "searched", "stored", "next"], "{said}");
    // What is next can be done.
    let next = said.lines().last().and_then(|l| l.split_once("patsat ")).expect("a command").1;
    let ran = p.run(next).ok();
    assert!(ran.stderr().contains("when tuned"), "{}", ran.stderr());
    // The details are told if they are asked for.
    let said = p.run(&format!("{args} --verbose")).ok().stdout();
    for part in ["best term", "kernel", "e-graph", "cost model", "phases", "(Portable Computing"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(p.run(&format!("{args} --verbose --emit term")).0.status.code(), Some(2));
}

#[test]
fn runs_are_repeated() {
    let p = Place::new();
    let output = p.path("y.npy").display().to_string();
    let args = "run programs/scal.pat --size n=1000 --gen xs=iota --arg alpha=2 --budget 2 --device portable";
    let ran = p.run(&format!("--json {args} --repeat 5 --output {output}")).ok().last("result");
    assert_eq!((&ran["runs"], &ran["kernels_from"]), (&5.into(), &"optimized".into()));
    assert_eq!(read_floats(&p.path("y.npy"))[..3], [0.0, 2.0, 4.0]);
    let ran = p.run(&format!("{args} --repeat 0")).ok();
    assert!(ran.stderr().contains("first run"), "{}", ran.stderr());
    let matrix = p.run("eval programs/outer.pat --size n=2 --size m=3 --gen xs=iota --gen ys=iota");
    assert_eq!(matrix.ok().stdout(), "[2][3]f32\n[[0.0, 0.0, 0.0],\n [0.0, 1.0, 2.0]]\n");
}

#[test]
fn codes_have_meanings() {
    let p = Place::new();
    let said = p.run("explain e0310").ok().stdout();
    assert!(said.starts_with("E0310: An operator that breaks a law"), "{said}");
    assert!(said.contains("exit status 3: the program"), "{said}");
    assert_eq!(p.run("--json explain W0506").ok().last("code")["code"], "W0506");
}

#[test]
fn manual_pages_are_written() {
    let p = Place::new();
    let folder = p.path("man");
    p.run(&format!("man {}", folder.display())).ok();
    let page = fs::read_to_string(folder.join("patsat-optimize.1")).expect("a page");
    assert!(page.contains(".TH") && page.contains("budget"), "{page}");
    assert!(folder.join("patsat.1").exists() && folder.join("patsat-store-gc.1").exists());
    assert!(!folder.join("patsat-worker.1").exists());
}

#[test]
fn names_that_are_meant_are_told() {
    let p = Place::new();
    let said = p.run("eval programs/dot.pat --size n=2 --gen x=iota --gen ys=iota");
    assert!(said.fails("E0201", 3).stderr().contains("did you mean `xs`?"));
}

#[test]
fn the_device_may_be_in_the_environment() {
    let p = Place::new();
    let mut command = p.command("--json optimize programs/asum.pat --size n=64");
    let ran = command.env("PATSAT_DEVICE", "none").env("PATSAT_COST_MODEL", "nvidia-h200").output();
    let ran = super::Ran(ran.expect("patsat runs")).ok();
    assert_eq!(ran.last("result")["cost_model"], "nvidia-h200");
}

#[test]
fn limits_are_options() {
    let p = Place::new();
    let args = "optimize programs/asum.pat --size n=64 --device none";
    assert!(p.run(&format!("{args} --max-nodes 500")).ok().stderr().contains("W0703"));
    assert!(p.run(&format!("{args} --max-iterations 2")).ok().stderr().contains("W0703"));
    let skeletons = |beam: &str| {
        let result = p.run(&format!("--json {args} {beam}")).ok().last("result");
        result["candidates"]["skeletons"].as_u64().expect("a count")
    };
    assert!(skeletons("--beam 1") < skeletons(""));
    assert_eq!(p.run(&format!("{args} --beam 0")).0.status.code(), Some(2));
    let written = "run programs/scal.pat --no-rewrite --size n=4 --gen xs=iota --arg alpha=1";
    let said = p.run(&format!("{written} --beam 3")).fails("E0903", 2).stderr();
    assert!(said.contains("`--beam` has no effect"), "{said}");
}

#[test]
fn an_answer_of_other_limits_is_not_taken() {
    let p = Place::new();
    let args = "--json optimize programs/scal.pat --size n=4096 --device portable --budget 1";
    p.run(args).ok();
    assert!(p.run(args).ok().last("result")["stored"].is_object());
    let other = p.run(&format!("{args} --beam 2")).ok().last("result");
    assert!(other["stored"].is_null());
}
