//! Trust in stores and plans: results are believed if they were measured here, with the same things taken on trust,
//! on data that make no difference. Everything else is checked first.

use super::{Place, Ran};
use serde_json::{Value, json};
use std::fs;

const SCALED: &str = "entry f [n] (a: f32) (xs: [n]f32) : [n]f32 = map (\\x -> a * x) xs\n";
const MOVED: &str = "entry f [n] (a: f32) (xs: [n]f32) : [n]f32 = map (\\x -> a + x) xs\n";
const RUN: &str = "--size n=64 --arg a=3 --gen xs=iota --device portable";
const DATA: &str = "--size n=64 --arg a=3 --gen xs=iota --device portable --budget 2";

fn sql(p: &Place, text: &str) {
    let raw = rusqlite::Connection::open(p.path("store.sqlite")).expect("the store");
    raw.execute_batch(text).expect("SQL that SQLite accepts");
}

/// Returns the export of a store in which one program was tuned.
fn tuned(p: &Place, file: &str) -> Value {
    tuned_with(p, file, DATA)
}

fn tuned_with(p: &Place, file: &str, data: &str) -> Value {
    let store = format!("{file}.sqlite");
    p.run(&format!("optimize {file} {data} --store {store}")).ok();
    serde_json::from_str(&p.run(&format!("store export --store {store}")).ok().stdout())
        .expect("an export")
}

/// Runs a program with kernels from the given source. The result must start with the expected text. Returns the
/// messages.
#[track_caller]
fn runs(p: &Place, args: &str, first: &str, from: &str) -> String {
    let ran = p.run(&format!("run {args} {DATA}")).ok();
    assert!(ran.stdout().starts_with(&format!("[64]f32 [{first}")), "{}", ran.stdout());
    assert!(ran.stderr().contains(&format!("kernels {from}")), "{}", ran.stderr());
    ran.stderr()
}

#[test]
fn what_was_tuned_on_trust_is_not_used_without_it() {
    let p = Place::new();
    let f = p.file("less.pat", "entry less [n] (xs: [n]f32) : f32 = reduce (-) 0 xs\n");
    // On zeros, any order of operations gives the same result.
    let zeros = "--gen xs=const:0 --device portable --budget 2";
    p.run(&format!("optimize {f} --size n=64 {zeros} --trust-laws")).ok();
    let again = p.run(&format!("--json run {f} --size n=64 {zeros} --trust-laws")).ok();
    assert_eq!(again.last("result")["kernels_from"], "store");
    let near = p.run(&format!("--json run {f} --size n=96 {zeros} --trust-laws")).ok();
    assert_eq!(near.last("result")["kernels_from"], "nearest size");
    for n in [64, 96, 128] {
        for verb in ["run", "optimize"] {
            p.run(&format!("{verb} {f} --size n={n} {zeros}")).fails("E0310", 3);
        }
    }
    assert!(p.run("store list").ok().stdout().contains("contract, laws trusted"));
    let key = &p.run("--json store list").ok().last("entry")["key"];
    assert_eq!(key["trust"], "laws");
}

#[test]
fn failures_that_data_can_cause_are_tried_again() {
    let p = Place::new();
    let f = p.file("f.pat", SCALED);
    p.run(&format!("optimize {f} {DATA}")).ok();
    let failed = |set: &str| {
        sql(&p, &format!("DELETE FROM answers; UPDATE candidates SET median_us = NULL, {set}"));
        p.run(&format!("--json optimize {f} {DATA}"))
    };
    for set in [
        "outcome = 'crash'",
        "outcome = 'wrong'",
        "outcome = 'timeout', inputs = 'others', limit_s = 1e6",
        "outcome = 'timeout', limit_s = 1",
        // Failures that would be believed for single candidates are observed again before all candidates are said
        // to fail.
        "outcome = 'resources'",
    ] {
        let found = failed(set).ok().last("result");
        assert_eq!(found["candidates"]["resumed"], 0, "{set}");
        assert_eq!(found["candidates"]["failed"], json!({}), "{set}");
    }
    // A build failure does not depend on the data, so it is believed, and the message says what to do.
    let d = failed("outcome = 'build', log = 'no'").fails("", 6).last("diagnostic");
    assert_eq!(d["code"], "E0605");
    assert!(d["help"].to_string().contains("`--anew` tries them again"), "{d}");
    p.run(&format!("optimize {f} {DATA} --anew")).ok();
}

#[test]
fn imports_under_the_key_of_another_program_are_refused_or_found_out() {
    let p = Place::new();
    let (f, g) = (p.file("f.pat", SCALED), p.file("g.pat", MOVED));
    let (mut of_f, of_g) = (tuned(&p, &f), tuned(&p, &g));
    let run = of_f["runs"][0].as_object_mut().expect("a run");
    run["key"]["program"] = of_g["runs"][0]["key"]["program"].clone();
    // The program's text shows that it is another program.
    let forged = p.file("forged.json", json!(of_f).to_string());
    p.run(&format!("store import --yes {forged}")).fails("E0805", 8);
    // The kernels do not match their names.
    let mut renamed = of_g.clone();
    renamed["runs"][0]["candidates"][0]["plan"] = json!("0123456789abcdef");
    let renamed = p.file("renamed.json", renamed.to_string());
    p.run(&format!("store import --yes {renamed}")).fails("E0805", 8);
    assert!(!p.path("store.sqlite").exists());
    // Without the text, the import cannot detect the forgery; the first use does.
    of_f["runs"][0]["about"] = Value::Null;
    let forged = p.file("forged.json", of_f.to_string());
    p.run(&format!("store import --yes {forged}")).ok();
    let told = runs(&p, &g, "3.0, 4.0", "optimized");
    assert!(told.contains("W0809"), "{told}");
    // The import is neither an answer nor a candidate that need not be measured.
    let other = p.path("other.sqlite").display().to_string();
    p.run(&format!("store import --yes {forged} --store {other}")).ok();
    let found = p.run(&format!("--json optimize {g} {DATA} --store {other}")).ok();
    assert!(found.stdout().contains("W0809"));
    let found = found.last("result");
    assert!(found["stored"].is_null());
    assert_eq!(found["candidates"]["resumed"], 0);
    runs(&p, &format!("{g} --store {other}"), "3.0, 4.0", "from the store");
}

#[test]
fn imports_are_checked_once() {
    let p = Place::new();
    let f = p.file("f.pat", SCALED);
    // Of several kernels, noise decides which one the store calls the best.
    let data = DATA.replace("budget 2", "budget 1");
    let export = p.file("f.json", tuned_with(&p, &f, &data).to_string());
    // The user must agree explicitly.
    let asked = p.run(&format!("store import {export}")).fails("E0903", 2).stderr();
    assert!(asked.contains("f n=64 on ") && asked.contains("--yes"), "{asked}");
    assert!(!p.path("store.sqlite").exists());
    p.run(&format!("store import -y {export}")).ok();
    assert!(p.run("store best").ok().stdout().contains("not verified here yet"));
    let verified = || {
        let ran = p.run(&format!("--json run {f} {data}")).ok().last("result");
        assert_eq!(ran["kernels_from"], "store");
        ran["verified"].clone()
    };
    assert_eq!((verified(), verified()), (json!(true), Value::Null));
    assert!(!p.run("store best").ok().stdout().contains("not verified"));
    let merged = p.path("other.sqlite").display().to_string();
    p.run(&format!("store merge --yes {f}.sqlite --store {merged}")).ok();
    assert!(p.run(&format!("store best --store {merged}")).ok().stdout().contains("not verified"));
    // The answer is used once its kernels are found right.
    let found = p.run(&format!("--json optimize {f} {data} --store {merged}")).ok();
    assert_eq!(found.last("result")["stored"]["budget"], 1);
    assert!(!p.run(&format!("store best --store {merged}")).ok().stdout().contains("not verified"));
}

#[test]
fn plans_are_checked_when_they_are_first_used() {
    let p = Place::new();
    let (f, g) = (p.file("f.pat", SCALED), p.file("g.pat", MOVED));
    let plan = |of: &str| {
        let to = format!("{of}.plan");
        p.run(&format!("optimize {of} --size n=64 --device none -o {to}")).ok();
        fs::read_to_string(&to).expect("a plan")
    };
    let (of_f, of_g) = (plan(&f), plan(&g));
    let verified = |args: &str| {
        let ran = p.run(&format!("--json run {f} --plan {f}.plan {RUN} {args}")).ok();
        ran.last("result")["verified"].clone()
    };
    assert_eq!(verified("--no-store"), true);
    assert_eq!((verified(""), verified("")), (json!(true), Value::Null));
    // The kernels of one program under the name of another.
    let program = |text: &str| {
        let start = text.find("[program]").expect("a program");
        start..start + text[start..].find("[sizes]").expect("sizes")
    };
    let swapped = of_f.replacen(&of_f[program(&of_f)], &of_g[program(&of_g)], 1);
    let swapped_ = p.file("swapped.plan", &swapped);
    p.run(&format!("run {g} --plan {swapped_} {RUN}")).fails("E0609", 1);
    p.run(&format!("run {f} --plan {swapped_} {RUN}")).fails("E0904", 1);
    // The hash of one program with the term of another.
    let hash = |text: &str| {
        let start = text.find("\nhash = ").expect("a hash") + 1;
        text[start..start + text[start..].find('\n').expect("a line")].to_owned()
    };
    let mixed = p.file("mixed.plan", of_f.replace(&hash(&of_f), &hash(&of_g)));
    p.run(&format!("run {g} --plan {mixed} {RUN}")).fails("E0905", 3);
    // Options that would generate endless kernels.
    let line = of_f.lines().find(|l| l.starts_with("unroll = ")).expect("an option");
    let endless = p.file("endless.plan", of_f.replace(line, "unroll = 1000000000"));
    p.run(&format!("run {f} --plan {endless} {RUN}")).fails("E0905", 3);
}

#[test]
fn plans_of_nothing() {
    let p = Place::new();
    let f = p.file("f.pat", SCALED);
    let (none, some) = (p.path("none.plan"), p.path("some.plan"));
    let args = "--arg a=2 --gen xs=normal --device portable";
    p.run(&format!("optimize {f} --size n=0 --device none -o {}", none.display())).ok();
    p.run(&format!("run {f} --plan {} {args}", none.display())).ok();
    p.run(&format!("optimize {f} --size n=1000 --device none -o {}", some.display())).ok();
    let text = fs::read_to_string(&some).expect("a plan");
    let edited = p.file("edited.plan", text.replace("\nn = 1000\n", "\nn = 0\n"));
    p.run(&format!("run {f} --plan {edited} {args}")).fails("E0905", 3);
}

#[test]
fn a_store_that_cannot_be_written_costs_nothing_but_its_records() {
    let p = Place::new();
    let f = p.file("f.pat", SCALED);
    p.run("store list").ok();
    sql(
        &p,
        "CREATE TRIGGER full BEFORE INSERT ON candidates WHEN (SELECT COUNT(*) FROM candidates) >= 1
         BEGIN SELECT RAISE(ABORT, 'full'); END",
    );
    let found = p.run(&format!("--json optimize {f} {DATA}")).ok();
    let told = found.json().iter().filter(|l| l["code"] == "W0808").count();
    assert_eq!(told, 1, "{}", found.stdout());
    assert_eq!(found.last("result")["candidates"]["built"], 2);
    // An answer is not used unless all of it is there.
    let again = p.run(&format!("--json optimize {f} {DATA}")).ok().last("result");
    assert!(again["stored"].is_null());
    runs(&p, &f, "0.0, 3.0", "from the store");
    // A database with anything but tables is not accepted as a store.
    let other = p.path("other.sqlite").display().to_string();
    let store = p.path("store.sqlite").display().to_string();
    p.run(&format!("store merge --yes {store} --store {other}")).fails("E0802", 8);
}

#[cfg(unix)]
#[test]
fn a_store_that_may_only_be_read_is_read() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;
    let p = Place::new();
    let f = p.file("f.pat", SCALED);
    p.run(&format!("optimize {f} {DATA}")).ok();
    let home = p.path("home");
    fs::create_dir(&home).expect("a folder");
    let mode = |path: &std::path::Path, bits| {
        fs::set_permissions(path, fs::Permissions::from_mode(bits)).expect("permissions");
    };
    for entry in fs::read_dir(p.path(".")).expect("a folder") {
        let path = entry.expect("an entry").path();
        mode(&path, if path.is_dir() { 0o555 } else { 0o444 });
    }
    mode(&home, 0o777);
    mode(&p.path("."), 0o555);
    // Root may write anywhere, so run as another user.
    let root = fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0);
    let run = |args: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_patsat"));
        command.args(args.split_whitespace()).current_dir(&home);
        command.env("PATSAT_STORE", p.path("store.sqlite")).env("NO_COLOR", "1");
        command.env("HOME", &home).env("TMPDIR", &home).env("POCL_CACHE_DIR", &home);
        if root {
            command.uid(65534).gid(65534);
        }
        Ran(command.output().expect("patsat runs"))
    };
    assert_eq!(run("--json store list").ok().last("entry")["candidates"], 2);
    let ran = run(&format!("--json run {f} {DATA}")).ok().last("result");
    assert_eq!(ran["kernels_from"], "store");
    // A new result is found, with a warning that it is not stored.
    let new = run(&format!("--json optimize {f} {}", DATA.replace("n=64", "n=80"))).ok();
    assert!(new.stdout().contains("W0808"), "{}", new.stdout());
    run("store gc --keep 1").fails("E0807", 8);
    mode(&p.path("."), 0o755);
}

#[test]
fn names_from_elsewhere_do_not_direct_the_terminal() {
    let p = Place::new();
    let f = p.file("f.pat", SCALED);
    let mut export = tuned(&p, &f);
    export["runs"][0]["key"]["device"] = json!("\u{1b}]0;x\u{7}");
    let evil = p.file("evil.json", export.to_string());
    p.run(&format!("store import --yes {evil}")).fails("E0805", 8);
    p.run(&format!("optimize {f} {DATA}")).ok();
    sql(
        &p,
        "UPDATE runs SET device = char(27) || '[2J' || char(10) || 'x', entry = char(155) || '31m';
         UPDATE candidates SET term = char(27) || '[31m', source = char(27) || 'c'",
    );
    for args in ["store list", "store best --source"] {
        let shown = p.run(args).ok().stdout();
        assert!(shown.contains("\\u{1b}"), "{shown:?}");
        assert!(!shown.contains(|c: char| c.is_control() && c != '\n'), "{shown:?}");
    }
}
