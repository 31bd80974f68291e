//! Runs every verb to success, and compares its JSON lines with the schema. The test fails if a verb is added without a run here.

use super::{Place, json_lines};
use std::collections::BTreeSet;

const DATA: &str = "programs/scal.pat --size n=1000 --device portable --budget 2";

/// A run of each verb, in this order. `DIR` is a folder of the test's own. Later runs use the results of earlier
/// ones.
const RUNS: [(&str, &str); 39] = [
    ("fuzz", "--programs 2 --seed 1 --device none"),
    ("examples", ""),
    ("init", "DIR/first"),
    ("check", "programs/scal.pat"),
    ("fmt", "--check programs/scal.pat"),
    // Without a client, it ends.
    ("lsp", ""),
    ("eval", "programs/asum.pat --size n=4 --gen xs=iota"),
    ("optimize", "DATA -o DIR/plan"),
    ("optimize", "DATA --store DIR/other.sqlite"),
    ("explain", "programs/scal.pat --size n=1000 --device none"),
    ("run", "DATA --gen xs=iota --arg alpha=2"),
    ("search compare", "DATA --strategies random"),
    ("emit", "programs/scal.pat --size n=64 --device none -o DIR/emitted"),
    ("compare", "DIR/plan DIR/other.sqlite"),
    ("portability", "programs/scal.pat --size n=1000 --budget 2 --devices portable"),
    ("bench", "DATA"),
    ("bench", "--suite DIR/list.txt --device portable --budget 2"),
    ("model check", ""),
    ("egraph", "programs/scal.pat --size n=1000"),
    ("gen", "DIR/a.npy --shape 3"),
    ("devices", ""),
    ("rules list", ""),
    ("rules show", "map-fusion"),
    ("rules check", "rules/fusion.rules"),
    ("rules lint", "default"),
    (
        "rules compare",
        "default default programs/scal.pat programs/asum.pat --size n=64 --device none",
    ),
    ("rules doc", ""),
    ("rules stats", "programs/scal.pat --size n=64"),
    ("snapshot", "DIR/noted.pat"),
    ("store list", ""),
    ("store best", "scal"),
    ("store export", "-o DIR/store.json"),
    ("store import", "DIR/store.json --yes"),
    ("store merge", "DIR/other.sqlite --yes"),
    ("store gc", "--keep 1"),
    ("report", "-o DIR/page.html --no-derivations"),
    ("completions", "bash"),
    ("man", "DIR/man"),
    // This verb takes so long that it has a test of its own, `calibrate::a_device_is_measured_and_its_model_used`.
    ("calibrate", "--help"),
];

/// Collects the verbs without subcommands, except hidden ones.
fn verbs(command: &clap::Command, above: &str, found: &mut BTreeSet<String>) {
    for verb in command.get_subcommands().filter(|v| !v.is_hide_set()) {
        let name = format!("{above}{}", verb.get_name());
        match verb.has_subcommands() {
            true => verbs(verb, &format!("{name} "), found),
            false => _ = found.insert(name),
        }
    }
}

#[test]
fn every_verb_has_a_run() {
    let mut there = BTreeSet::new();
    verbs(&patsat::cli::command(), "", &mut there);
    let tried: BTreeSet<String> = RUNS.iter().map(|(verb, _)| (*verb).to_owned()).collect();
    assert_eq!(there, tried);
}

/// Runs every verb with these options, and gives what each prints to `check`.
fn run_all(options: &str, check: impl Fn(&str, &str)) {
    let p = Place::new();
    let folder = p.path("").display().to_string();
    let scal = std::fs::read_to_string("programs/scal.pat").expect("a program");
    p.file("noted.pat", format!("{scal}\n-- expect stats size n=64\n-- | stop saturated\n"));
    p.file("list.txt", "# One program.\nprograms/scal.pat n=1000\n");
    for (verb, args) in RUNS {
        let args = args.replace("DATA", DATA).replace("DIR/", &folder);
        let ran = p.run(&format!("{options} {verb} {args}"));
        assert_eq!(ran.0.status.code(), Some(0), "{verb} {args}\n{}", ran.stderr());
        check(verb, &ran.stdout());
    }
}

#[test]
fn every_verb_runs() {
    run_all("", |_, _| ());
}

#[test]
fn every_verb_prints_lines_of_the_schema() {
    run_all("--json", json_lines::check);
}

#[test]
fn rules_are_compared_on_several_programs() {
    let args =
        "rules compare default -to-stream-items programs/scal.pat programs/asum.pat --size n=64";
    let ran = Place::new().run(&format!("--json {args} --device none")).ok();
    let outcomes: Vec<_> = ran.json().into_iter().filter(|l| l["type"] == "outcome").collect();
    let of = |o: &serde_json::Value| (o["program"].clone(), o["rules"].clone());
    let told: BTreeSet<String> = outcomes.iter().map(|o| format!("{:?}", of(o))).collect();
    assert_eq!((outcomes.len(), told.len()), (4, 4), "every program under both sets");
    assert!(outcomes.iter().all(|o| o["outcome"]["predicted_us"].is_number()));
}
