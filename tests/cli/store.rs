//! Uses of the tuning store: answers without a search, kernels for other sizes, recovery after a kill, and
//! concurrent processes.

use super::{Place, Ran};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

const OPTIMIZE: &str = "--json optimize programs/scal.pat --size n=4096 --device portable";

/// Counts the JSON lines that only a search writes.
fn searched(ran: &Ran) -> usize {
    let kinds = ["phase", "saturated", "candidate"];
    ran.json().iter().filter(|l| kinds.iter().any(|k| l["type"] == *k)).count()
}

#[test]
fn a_second_question_is_answered_without_a_search() {
    let p = Place::new();
    let first = p.run(&format!("{OPTIMIZE} --budget 3 --top 3")).ok();
    let found = first.last("result");
    assert!(searched(&first) > 3 && found["stored"].is_null());
    let second = p.run(&format!("{OPTIMIZE} --budget 3 --top 3")).ok();
    let known = second.last("result");
    assert_eq!(searched(&second), 0);
    assert_eq!(known["stored"]["budget"], 3);
    for (name, value) in found.as_object().expect("an object") {
        if name != "stored" {
            assert_eq!(known[name], *value, "{name}");
        }
    }
    // Text output says so too, and every stage can still be printed.
    let text = p.run(&format!("{} --budget 3", OPTIMIZE.replace("--json ", ""))).ok().stdout();
    assert!(text.contains("; found in the tuning store in "), "{text}");
    for what in ["kernel", "host", "stats", "dot", "egraph", "term"] {
        let emit = format!("{} --budget 3 --emit {what}", OPTIMIZE.replace("--json ", ""));
        assert!(p.run(&emit).ok().stdout().len() > 40, "{what}");
    }
    p.run("explain programs/scal.pat --size n=4096 --device portable --budget 3").ok();
}

#[test]
fn other_questions_are_not_taken_for_the_same() {
    let p = Place::new();
    let stored = |args: &str| p.run(args).ok().last("result")["stored"].clone();
    assert!(stored(&format!("{OPTIMIZE} --budget 2")).is_null());
    assert_eq!(stored(&format!("{OPTIMIZE} --budget 1"))["budget"], 2);
    // Comments are not part of a program's identity.
    let text = fs::read_to_string("programs/scal.pat").expect("a program");
    let same = p.file("same.pat", format!("-- More words.\n{text}"));
    let of_same = OPTIMIZE.replace("programs/scal.pat", &same);
    assert_eq!(stored(&format!("{of_same} --budget 2"))["budget"], 2);
    for other in ["--budget 3", "--budget 2 --float relaxed", "--budget 2 --anew"] {
        assert!(stored(&format!("{OPTIMIZE} {other}")).is_null(), "{other}");
    }
    let model = "--budget 2 --cost-model generic-cpu";
    assert!(stored(&format!("{OPTIMIZE} {model}")).is_null());
    assert_eq!(stored(&format!("{OPTIMIZE} {model}"))["budget"], 2);
    let anew = p.run(&format!("{OPTIMIZE} --budget 2 --anew")).ok().last("result");
    assert_eq!(anew["candidates"]["resumed"], 0);
    // If the stored kernels differ from those that would be generated now, they are not used as an answer.
    let raw = rusqlite::Connection::open(p.path("store.sqlite")).expect("the store");
    raw.execute_batch("UPDATE candidates SET term = 'id'").expect("changed");
    assert!(stored(&format!("{OPTIMIZE} --budget 2")).is_null());
}

#[test]
fn run_takes_the_kernels_of_the_nearest_size() {
    let p = Place::new();
    let run = |n: u64, more: &str| {
        let args = format!("--size n={n} --gen xs=iota --arg alpha=2 --budget 2 --device portable");
        p.run(&format!("--json run programs/scal.pat {args} {more}")).ok().last("result")
    };
    p.run(&format!("{OPTIMIZE} --budget 4")).ok();
    assert_eq!(run(4096, "")["kernels_from"], "store");
    let near = run(5003, "--verify");
    assert_eq!(
        (&near["kernels_from"], &near["tuned_for"]),
        (&json!("nearest size"), &json!({"n": 4096}))
    );
    assert_eq!(near["verified"], true);
    assert_eq!(near["result"][0]["shape"], json!([5003]), "{near}");
    let args = "run programs/scal.pat --size n=5003 --gen xs=iota --arg alpha=2 --device portable";
    let says = p.run(args).ok().stderr();
    assert!(says.contains("kernels from n=4096, the nearest size tuned"), "{says}");
    let anew = run(5003, "--anew");
    assert_eq!((&anew["kernels_from"], &anew["tuned_for"]), (&json!("optimized"), &Value::Null));
    assert_eq!(run(5003, "")["kernels_from"], "store");
    assert_eq!(run(5003, "--no-store")["kernels_from"], "optimized");
}

#[test]
fn nothing_measured_is_lost_when_a_search_is_killed() {
    let p = Place::new();
    let args = format!("{OPTIMIZE} --budget 12");
    let mut child = Command::new(env!("CARGO_BIN_EXE_patsat"))
        .args(args.split_whitespace())
        .env("PATSAT_STORE", p.path("store.sqlite"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("patsat starts");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let told = lines
        .map(|l| l.expect("a line"))
        .filter(|l| l.contains("\"type\":\"candidate\""))
        .take(5)
        .count();
    // A signal that the process cannot handle.
    child.kill().expect("killed");
    child.wait().expect("gone");
    assert_eq!(told, 5);
    let kept = p.run("--json store list").ok().last("entry")["candidates"].as_u64();
    assert!((5..12).contains(&kept.expect("a number")), "{kept:?}");
    let r = p.run(&args).ok().last("result");
    assert!(r["stored"].is_null());
    assert_eq!(r["candidates"]["resumed"].as_u64(), kept);
    assert_eq!(p.run(&args).ok().last("result")["stored"]["budget"], 12);
}

/// Returns an export with fictitious measurements of one program by two others.
fn export(tag: &str, when: u64) -> String {
    let candidate = |i: usize| {
        json!({
            "term": "map f", "tunables": {}, "plan": format!("{tag}{i}"), "source": "kernel".repeat(200),
            "fate": "timed", "log": null, "build_ms": 1.5, "median_us": 10.0, "spread_us": 0.1,
            "predicted_us": 9.0, "max_rel_err": 0.0, "when": when,
        })
    };
    let key = |entry: &str| {
        json!({
            "program": "p", "entry": entry, "sizes": {"n": 4}, "rules": "r", "device": "d",
            "driver": "1", "tool": "0", "float": "exact",
        })
    };
    let run = |entry: &str| {
        let all: Vec<Value> = (0..400).map(candidate).collect();
        json!({"key": key(entry), "about": null, "candidates": all, "answers": []})
    };
    json!({"format": "patsat store", "version": 1, "runs": [run("shared"), run(tag)]}).to_string()
}

#[test]
fn processes_write_at_once() {
    let p = Place::new();
    // The store does not exist yet, so that the processes also create it concurrently.
    let commands = ["a", "b", "c"].map(|tag| {
        format!("--json store import --yes {}", p.file(&format!("{tag}.json"), export(tag, 1000)))
    });
    let search = format!("{OPTIMIZE} --budget 2");
    std::thread::scope(|scope| {
        for args in commands.iter().chain([&search]) {
            let p = &p;
            scope.spawn(move || p.run(args).ok());
        }
    });
    let listed = p.run("--json store list").ok();
    let count = |entry: &str| {
        let lines = listed.json();
        let line = lines.iter().find(|l| l["key"]["entry"] == entry).expect("an entry");
        line["candidates"].as_u64()
    };
    let found = ["shared", "a", "b", "c", "scal"].map(count);
    assert_eq!(found, [1200, 400, 400, 400, 2].map(Some));
}

#[test]
fn stores_are_exported_taken_in_and_merged() {
    let p = Place::new();
    p.run(&format!("{OPTIMIZE} --budget 3")).ok();
    let text = p.run("store export").ok().stdout();
    let file = p.path("export.json").display().to_string();
    p.run(&format!("store export -o {file}")).ok();
    assert_eq!(fs::read_to_string(&file).expect("written"), text);
    // Another store that imports the export answers as the first one does.
    let other = p.path("other.sqlite").display().to_string();
    let taken = p.run(&format!("--json store import --yes {file} --store {other}")).ok();
    assert_eq!(taken.last("absorbed")["added"], 3);
    assert_eq!(p.run(&format!("store export --store {other}")).ok().stdout(), text);
    let known = p.run(&format!("{OPTIMIZE} --budget 3 --store {other}")).ok();
    assert_eq!(known.last("result")["stored"]["budget"], 3);
    let merged = p.run(&format!("--json store merge --yes {other}")).ok().last("absorbed");
    assert_eq!(merged, json!({"v": 1, "type": "absorbed", "added": 0, "replaced": 0, "kept": 3}));
    // A newer measurement replaces an older one.
    let newer = text.replace("\"when\": 1", "\"when\": 2");
    let newer = p.file("newer.json", newer);
    let taken = p.run(&format!("--json store import --yes {newer}")).ok();
    assert_eq!(taken.last("absorbed")["replaced"], 3);
}

#[test]
fn built_kernels_are_kept_and_no_trouble() {
    let p = Place::new();
    let cached = |more: &str| {
        let r = p.run(&format!("{OPTIMIZE} --budget 2 {more}")).ok().last("result");
        (r["candidates"]["cached"].as_u64(), r["candidates"]["built"].as_u64())
    };
    assert_eq!(cached(""), (Some(0), Some(2)));
    let folder = p.path("store.kernels");
    let files: Vec<_> =
        fs::read_dir(&folder).expect("a folder").map(|f| f.expect("a file").path()).collect();
    assert!(!files.is_empty());
    let (warm, _) = cached("--anew");
    assert!(warm.is_some_and(|n| n > 0), "{warm:?}");
    assert_eq!(cached("--no-store"), (Some(0), Some(2)));
    // If cached files are damaged, or the cache is not a folder, kernels are built from source.
    for file in &files {
        fs::write(file, "nonsense").expect("written");
    }
    assert_eq!(cached("--anew"), (Some(0), Some(2)));
    fs::remove_dir_all(&folder).expect("removed");
    fs::write(&folder, "a file").expect("written");
    assert_eq!(cached("--anew"), (Some(0), Some(2)));
}

/// Earlier versions had the store among the caches, which are wiped now and then.
#[test]
fn the_store_moves_from_the_cache_to_the_data_folder_once() {
    let p = Place::new();
    let list = || {
        let mut command = p.command("store list");
        let command = command.env("HOME", p.path("")).env_remove("PATSAT_STORE");
        let command = command.env_remove("XDG_CACHE_HOME").env_remove("XDG_DATA_HOME");
        let ran = Ran(command.output().expect("patsat runs")).ok();
        let stdout = ran.stdout();
        let place = stdout.trim_end().rsplit(' ').next().unwrap_or_default();
        (PathBuf::from(place), ran.stderr())
    };
    let (before, after) =
        (p.path(".cache/patsat/store.sqlite"), p.path(".local/share/patsat/store.sqlite"));
    p.run(&format!("store list --store {}", before.display())).ok();
    // Another process uses it.
    let open = patsat::tune::store::Store::open(&before).expect("a store");
    assert_eq!(list(), (before.clone(), String::new()));
    drop(open);
    let (place, told) = list();
    assert_eq!(place, after);
    let (from, to) = (before.display(), after.display());
    assert_eq!(told, format!("the tuning store has moved from {from} to {to}\n"));
    assert!(after.exists() && !before.exists());
    assert_eq!(list(), (after.clone(), String::new()));
    // Where both exist, nothing moves.
    p.run(&format!("store list --store {}", before.display())).ok();
    assert_eq!(list(), (after, String::new()));
    assert!(before.exists());
}
