//! Devices that do not exist, or fail.

use super::{Place, Ran};

const SMALL: &str = "programs/scal.pat --size n=100 --budget 2 --no-store";

#[test]
fn unknown_devices_are_told_of() {
    let p = Place::new();
    let ran = p.run(&format!("optimize {SMALL} --device #99")).fails("E0602", 5);
    assert!(ran.stderr().contains("#0 is"), "{}", ran.stderr());
    p.run(&format!("optimize {SMALL} --device nonsense")).fails("E0602", 5);
}

#[test]
fn without_opencl_only_devices_are_missing() {
    let p = Place::new();
    let empty = p.path("empty");
    std::fs::create_dir(&empty).expect("the folder can be written");
    let run = |args: &str| {
        Ran(p.command(args).env("OCL_ICD_VENDORS", &empty).output().expect("patsat starts"))
    };
    for args in ["devices", &format!("optimize {SMALL}"), &format!("bench {SMALL}")] {
        let ran = run(args).fails("E0601", 5);
        assert!(ran.stderr().contains("pocl-opencl-icd"), "{}", ran.stderr());
    }
    run("run programs/asum.pat --size n=3 --gen xs=iota").fails("E0601", 5);
    run("run programs/asum.pat --size n=3 --gen xs=iota --device none").fails("E0903", 2);
    run("eval programs/asum.pat --size n=3 --gen xs=iota").ok();
    run("optimize programs/scal.pat --size n=100 --device none").ok();
}

#[test]
fn a_driver_that_does_not_build_is_told_of() {
    let p = Place::new();
    let ran = Ran(p
        .command(&format!("optimize {SMALL} --device portable"))
        .env("POCL_EXTRA_BUILD_FLAGS", "-include /no/such/header.h")
        .env("POCL_KERNEL_CACHE", "0")
        .output()
        .expect("patsat starts"));
    let ran = ran.fails("E0605", 6);
    assert!(ran.stderr().contains("2 failed: build"), "{}", ran.stderr());
}

#[test]
fn a_build_that_takes_too_long_is_given_up() {
    let p = Place::new();
    p.run(&format!("optimize {SMALL} --device portable --build-timeout 0")).fails("E0606", 6);
}

#[test]
fn a_kernel_that_takes_too_long_is_given_up() {
    let p = Place::new();
    let text = "entry slow [n] (xs: [n]f32) : [n]f32 =\n  mapGlb 0 (\\x -> loop (a = x) while a != 3 do a * 0.5 + 1) xs\n";
    let f = p.file("slow.pat", text);
    let args = "--no-rewrite --size n=16 --gen xs=const:0 --device portable --run-timeout 0.2 --build-timeout 5";
    p.run(&format!("run {f} {args}")).fails("E0606", 6);
}

#[test]
fn peers_that_fail_are_told_of() {
    let p = Place::new();
    let wrong = "// peer: wrong for scal\n// launch: k global=n local=1 args=alpha,xs,out\n\
                 kernel void k(float a, global const float *x, global float *y) { y[get_global_id(0)] = 7; }\n\
                 // peer: broken for scal\n// launch: none global=n local=1 args=alpha,xs,out\n";
    let f = p.file("peers.cl", wrong);
    let ran = p.run(&format!("bench {SMALL} --device portable --peers {f}")).ok();
    assert!(ran.stdout().contains("wrong did not run: wrong"), "{}", ran.stdout());
    assert!(ran.stdout().contains("broken did not run"), "{}", ran.stdout());
    let f = p.file("bad.cl", "// peer: a for scal\n// launch: k global=q\n");
    p.run(&format!("bench {SMALL} --device portable --peers {f}")).fails("E0903", 2);
}

#[cfg(unix)]
#[test]
fn ctrl_c_keeps_what_was_measured() {
    use std::io::{BufRead, BufReader, Read};
    use std::process::{Command, Stdio};
    let p = Place::new();
    let mut child = Command::new(env!("CARGO_BIN_EXE_patsat"))
        .args(["--json", "optimize", "programs/scal.pat", "--size", "n=100000", "--budget", "200"])
        .args(["--device", "portable"])
        .env("PATSAT_STORE", p.path("store.sqlite"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("patsat starts");
    let mut lines = BufReader::new(child.stdout.take().expect("the output is piped"));
    let mut line = String::new();
    while !line.contains("\"type\":\"candidate\"") {
        line.clear();
        assert_ne!(
            lines.read_line(&mut line).expect("the output can be read"),
            0,
            "it ended before it was interrupted"
        );
    }
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().expect("it was started").success());
    let mut rest = String::new();
    lines.read_to_string(&mut rest).expect("the output can be read");
    assert_eq!(child.wait().expect("it was started").code(), Some(130), "{rest}");
    let result: Vec<serde_json::Value> = rest
        .lines()
        .map(|l| serde_json::from_str(l).expect("it prints JSON"))
        .filter(|l: &serde_json::Value| l["type"] == "result")
        .collect();
    assert_eq!(result[0]["interrupted"], true);
    assert!(result[0]["median_us"].is_number());
    let stored = p.run("--json store list").ok().last("entry");
    assert!(stored["timed"].as_u64().expect("the result has this field") >= 1, "{stored}");
}
