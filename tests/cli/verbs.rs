//! Every verb does what it is for.

use super::{Place, floats, npy, read_floats};
use std::fs;

#[test]
fn check_lists_entries() {
    let ran = Place::new().run("check programs/gemv.pat programs/asum.pat:asum").ok();
    assert!(ran.stdout().contains("entry gemv [n] [m] (A: [n][m]f32)"), "{}", ran.stdout());
    let p = Place::new();
    let f = p.file(
        "r.pat",
        "entry f [n] (ps: [n]{y: f32, on: {x: bool}}) : ({b: i32, a: f32}, f32) = ({b = 1, a = 2}, ps[0].y)\n",
    );
    let said = p.run(&format!("check {f}")).ok().stdout();
    let types = "(ps: [n]{on: {x: bool}, y: f32}) : ({a: f32, b: i32}, f32)";
    assert!(said.contains(types), "{said}");
    let ran = Place::new().run("--json check programs/dot.pat").ok();
    assert_eq!(ran.last("entry")["result"], "f32");
}

#[test]
fn check_warns_of_what_is_not_done() {
    let p = Place::new();
    let f = p.file("m.pat", "def main [n] (xs: [n]f32) : f32 = sum xs\n");
    let said = p.run(&format!("check {f}")).ok().stderr();
    assert!(said.contains("W0107") && said.contains("write `entry main`"), "{said}");
    let f = p.file("a.pat", "entry f [n] (xs: [n]f32) : f32 = assert (n > 0) (sum xs)\n");
    let ran = p.run(&format!("check {f}")).ok();
    assert!(ran.stderr().contains("the condition of `assert`"), "{}", ran.stderr());
    assert!(ran.stdout().contains("entry f"), "{}", ran.stdout());
}

#[test]
fn fmt_rewrites_and_checks() {
    let p = Place::new();
    let f = p.file("a.pat", "entry   f [n] (xs: [n]f32) : f32 =\n reduce (+)   0 xs -- kept\n");
    p.run(&format!("fmt --check {f}")).fails("E0902", 1);
    p.run(&format!("fmt {f}")).ok();
    assert!(fs::read_to_string(p.path("a.pat")).expect("the file is there").contains("-- kept"));
    p.run(&format!("fmt --check {f}")).ok();
    let ran =
        p.command("fmt -").write_stdin("entry f (x:f32):f32=x").output().expect("patsat starts");
    assert!(String::from_utf8_lossy(&ran.stdout).contains("entry f (x: f32) : f32 ="));
    let golden = fs::read_dir("programs/golden").expect("the file is there");
    for program in fs::read_dir("programs").expect("the file is there").chain(golden) {
        let path = program.expect("an entry").path();
        if path.extension().is_some_and(|e| e == "pat") {
            p.run(&format!("fmt --check {}", path.display())).ok();
        }
    }
}

#[test]
fn eval_takes_files_numbers_and_made_up_data() {
    let p = Place::new();
    let xs = p.file("xs.npy", npy("<f4", false, "(3,)", &floats(&[1.0, -2.0, 4.0])));
    assert_eq!(p.run(&format!("eval programs/asum.pat --input xs={xs}")).ok().stdout(), "7.0\n");
    let y = p.path("y.npy");
    let args = format!("--input xs={xs} --arg alpha=-2 --output {}", y.display());
    assert_eq!(p.run(&format!("eval programs/scal.pat {args}")).ok().stdout(), "");
    assert_eq!(read_floats(&y), [-2.0, 4.0, -8.0]);
    let ran = p.run("--json eval programs/asum.pat --size n=4 --gen xs=iota").ok();
    assert_eq!(ran.last("result")["result"][0]["value"], "6.0");
    let two =
        p.file("two.pat", "entry two [n] (xs: [n](f32, i32)) : ([n]f32, [n]i32) = unzip xs\n");
    let out = p.path("z.npy");
    p.run(&format!("eval {two} --size n=2 --gen xs=iota --output {}", out.display())).ok();
    assert_eq!(read_floats(&p.path("z.0.npy")), [0.0, 1.0]);
    assert!(p.path("z.1.npy").exists());
}

#[test]
fn comments_give_what_the_command_does_not() {
    let p = Place::new();
    let f = p.file(
        "a.pat",
        "-- gen: w=const:2 n=const:2*w xs=iota c=const:n-1\n\
         entry f [n] [w] (w: i64) (xs: [n]f32) (c: f32) (d: f32) : [w]f32 = map (\\x -> x * c + d) xs[:w]\n",
    );
    p.run(&format!("eval {f}")).fails("E0501", 4);
    for verb in ["eval", "run --no-store --budget 1"] {
        let given = |args: &str| p.run(&format!("{verb} {f} --arg d=1 {args}")).ok().stdout();
        assert_eq!(given(""), "[2]f32 [1.0, 4.0]\n");
        assert_eq!(given("--size w=1"), "[1]f32 [1.0]\n");
        assert_eq!(given("--gen xs=const:w --arg c=1"), "[2]f32 [3.0, 3.0]\n");
    }
}

#[test]
fn indices_outside_of_bins_have_no_effect() {
    let p = Place::new();
    let f = p.file(
        "a.pat",
        "-- gen: n=const:3000 is=whole:-3..9 xs=whole:0..10\n\
         entry f [n] (is: [n]i32) (xs: [n]i32) : ([4]i32, [4]i32) =\n  \
         (histogram (+) 0 4 is xs, reduce_by_index (replicate 4 1) max 0 is xs)\n",
    );
    p.run(&format!("run {f} --verify --no-store --budget 2")).ok();
}

#[test]
fn big_endian_and_scalar_files_are_read() {
    let p = Place::new();
    let xs = p.file("xs.npy", npy(">f4", false, "(1,)", &3.0f32.to_be_bytes()));
    let a = p.file("a.npy", npy("<f4", false, "()", &floats(&[2.0])));
    let ran = p.run(&format!("eval programs/scal.pat --input xs={xs} --input alpha={a}")).ok();
    assert_eq!(ran.stdout(), "[1]f32 [6.0]\n");
}

#[test]
fn gen_writes_arrays() {
    let p = Place::new();
    let f = p.path("a.npy");
    p.run(&format!("gen {} --shape 2,3 --how iota", f.display())).ok();
    assert_eq!(read_floats(&f), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    p.run(&format!("gen {} --shape 2 --type f33", f.display())).fails("E0903", 2);
    p.run(&format!("gen {} --shape 99999999999999", f.display())).fails("E0309", 3);
}

#[test]
fn optimize_works_without_a_device() {
    let p = Place::new();
    let none = p.path("none").display().to_string();
    let mut command =
        p.command("--json optimize programs/asum.pat --device none --size n=1000 --top 3");
    let ran =
        super::Ran(command.env("OCL_ICD_VENDORS", none).output().expect("patsat starts")).ok();
    let r = ran.last("result");
    for field in [
        "program",
        "entry",
        "sizes",
        "device",
        "driver",
        "rules",
        "stop_reason",
        "egraph_nodes",
        "egraph_classes",
        "saturate_ms",
        "candidates",
        "bytes",
        "flops",
        "term",
        "kernels",
        "predicted_us",
    ] {
        assert!(!r[field].is_null(), "no {field}");
    }
    assert_eq!(r["stop_reason"], "saturated");
    assert!(r["median_us"].is_null() && ran.stderr().is_empty());
    assert_eq!(r["top"].as_array().expect("the result has this field").len(), 3);
    assert_eq!(r["bytes"], 4004);
}

#[test]
fn every_stage_can_be_printed() {
    let p = Place::new();
    let emit = |what| {
        p.run(&format!("optimize programs/scal.pat --device none --size n=64 --emit {what}"))
            .ok()
            .stdout()
    };
    assert!(emit("term").starts_with("map "));
    assert!(emit("kernel").contains("kernel "));
    assert!(emit("dot").starts_with("digraph"));
    for what in ["host", "egraph", "stats"] {
        let value: serde_json::Value = serde_json::from_str(&emit(what)).expect("it prints JSON");
        assert!(value.is_object());
    }
}

#[test]
fn optimize_measures_and_resumes() {
    let p = Place::new();
    let args = "--json optimize programs/scal.pat --size n=1000 --budget 4 --device portable";
    let ran = p.run(args).ok();
    let r = ran.last("result");
    assert!(r["median_us"].is_number() && r["gbytes_per_s"].is_number(), "{r}");
    assert!(r["max_rel_err"].as_f64().expect("the result has this field") < 1e-5);
    assert_eq!(r["candidates"]["resumed"], 0);
    let measured = ran.json().iter().filter(|l| l["type"] == "candidate").count();
    assert_eq!(measured, 4);
    // With a larger budget, the candidates measured before are known.
    let more = p.run(&args.replace("--budget 4", "--budget 5")).ok().last("result");
    assert_eq!(more["candidates"]["resumed"], 4, "{more}");
    assert!(more["stored"].is_null());
    assert!(p.run("store list").ok().stdout().contains("n=1000"));
    assert!(p.run("store best scal --source").ok().stdout().contains("kernel"));
    // A known best kernel is used without a search.
    let ran = p.run("--json run programs/scal.pat --size n=1000 --gen xs=iota --arg alpha=2 --verify --device portable").ok();
    assert_eq!(ran.last("result")["kernels_from"], "store");
    assert_eq!(ran.last("result")["verified"], true);
    assert!(p.run("store gc --keep 1").ok().stdout().contains("4 measurements removed"));
}

#[test]
fn run_writes_the_result() {
    let p = Place::new();
    let xs = p.file("xs.npy", npy("<f4", false, "(3,)", &floats(&[1.0, -2.0, 4.0])));
    let y = p.path("y.npy");
    let args =
        format!("--input xs={xs} --arg alpha=3 --output {} --budget 0 --no-store", y.display());
    p.run(&format!("run programs/scal.pat {args} --device portable")).ok();
    assert_eq!(read_floats(&y), [3.0, -6.0, 12.0]);
}

#[test]
fn a_program_in_low_level_patterns_runs_as_it_stands() {
    let p = Place::new();
    let f = p.file("low.pat", "entry low [n] (xs: [n]f32) : [n]f32 = mapGlb 0 (* 2) xs\n");
    let ran = p
        .run(&format!("run {f} --no-rewrite --size n=3 --gen xs=iota --device portable --verify"))
        .ok();
    assert_eq!(ran.stdout(), "[3]f32 [0.0, 2.0, 4.0]\n");
    assert!(ran.stderr().contains("as written"));
}

#[test]
fn bench_times_peers_and_bandwidth_together() {
    let p = Place::new();
    let args = "--json bench programs/asum.pat --size n=1048576 --budget 2 --device portable --peers benches/peers/vector.cl";
    let r = p.run(args).ok().last("result");
    assert!(r["share_of_read"].is_number() && r["share_of_copy"].is_number(), "{r}");
    let peers = r["peers"].as_array().expect("the result has this field");
    assert_eq!(peers.len(), 2);
    assert!(peers.iter().all(|x| x["median_us"].is_number()), "{r}");
}

#[test]
fn rules_are_listed_shown_replaced_and_extended() {
    let p = Place::new();
    assert!(p.run("rules list").ok().stdout().contains("hash"));
    let rules = p.run("--json rules list").ok();
    let name = rules.last("rule")["name"].as_str().expect("the result has this field").to_owned();
    assert!(p.run(&format!("rules show {name}")).ok().stdout().contains("from:"));
    // The same for a rule of a named set.
    assert!(p.run("rules show part-intro").ok().stdout().contains("set primitive"));
    p.run("rules show no-such-rule").fails("E0201", 3);
    let all = rules.last("rules")["count"].as_u64().expect("the result has this field");
    fs::create_dir(p.path("rules")).expect("the folder can be written");
    fs::copy("rules/fusion.rules", p.path("rules/fusion.rules"))
        .expect("the folder can be written");
    let folder = p.path("rules").display().to_string();
    let few =
        p.run(&format!("--json rules list --rules {folder}")).ok().last("rules")["count"].as_u64();
    assert!(few.expect("a count") < all);
    let bad = p.file("bad.rules", "rule broken {");
    p.run(&format!("rules list --rules {bad}")).fails("E0401", 3);
}

#[test]
fn devices_and_completions_are_printed() {
    let p = Place::new();
    assert!(p.run("devices").ok().stdout().contains("Portable Computing Language"));
    assert!(p.run("--json devices").ok().last("device")["max_work_group_size"].is_number());
    for shell in ["bash", "zsh", "fish"] {
        assert!(p.run(&format!("completions {shell}")).ok().stdout().contains("optimize"));
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let p = Place::new();
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_patsat"))
        .args(["rules", "list"])
        .env("PATSAT_STORE", p.path("s"))
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("patsat starts");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("it was started").code(), Some(0));
}

#[test]
fn usage_errors_have_their_status() {
    let p = Place::new();
    for args in [
        "",
        "nonsense",
        "eval",
        "eval programs/asum.pat --size n",
        "optimize programs/asum.pat --emit x",
    ] {
        assert_eq!(p.run(args).0.status.code(), Some(2), "{args}");
    }
    p.run("eval programs/asum.pat --size n=1 --size n=2 --gen xs=iota").fails("E0903", 2);
    p.run("--version").ok();
    p.run("optimize --help").ok();
}
