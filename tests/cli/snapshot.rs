//! Expectations in programs: fulfilled, violated, updated and malformed.

use super::Place;
use std::fs;

const ASUM: &str = "entry asum [n] (xs: [n]f32) : f32 = xs |> map abs |> reduce (+) 0\n";

#[test]
fn own_expectations_hold() {
    let ran = Place::new().run("snapshot snapshots/rewrites").ok();
    let said = ran.stdout();
    let summary = said.lines().last().unwrap_or_default();
    let (holding, all) = summary.split_once(" of ").expect("k of n");
    assert!(all.starts_with(&format!("{holding} expectations hold")), "{summary}");
    assert!(holding.parse::<usize>().expect("a number") >= 10);
}

#[test]
fn what_does_not_hold_is_shown_and_renewed() {
    let p = Place::new();
    let text = format!("{ASUM}\n-- expect stats size n=64\n-- | stop early\n\n-- the end");
    let f = p.file("a.pat", &text);
    let ran = p.run(&format!("snapshot {f}")).fails("E0906", 1);
    assert!(ran.stderr().contains("a.pat:3:1"), "{}", ran.stderr());
    let said = ran.stdout();
    for line in [
        &format!("--- {f}"),
        "@@ -1,6 +1,6 @@",
        "--- | stop early",
        "+-- | stop saturated",
        "0 of 1 expectations hold",
    ] {
        assert!(said.lines().any(|l| l == line), "no `{line}` in\n{said}");
    }
    assert_eq!(fs::read_to_string(&f).expect("the file is there"), text);
    assert!(p.run(&format!("snapshot --bless {f}")).ok().stdout().contains("1 of them new"));
    assert_eq!(
        fs::read_to_string(&f).expect("the file is there"),
        text.replace("early", "saturated")
    );
    let ran = p.run(&format!("--json snapshot {f}")).ok();
    assert_eq!(ran.last("expectation")["line"], 3);
    assert_eq!(ran.last("result")["hold"], 1);
}

#[test]
fn a_term_that_is_not_there_is_explained_and_stays() {
    let p = Place::new();
    let text = format!(
        "{ASUM}-- expect found size n=64\n-- | reduce (+) 0.0 . map (reduce (+) 0.0) . split 3 . padTo 66 1.0 . map abs . xs\n"
    );
    let f = p.file("a.pat", &text);
    let said = p.run(&format!("snapshot --bless {f}")).fails("E0906", 1).stderr();
    assert!(
        said.contains("not in the graph: 1.0") && said.contains("in its place:     0.0"),
        "{said}"
    );
    assert_eq!(fs::read_to_string(&f).expect("the file is there"), text);
}

#[test]
fn rules_and_models_lie_beside_the_program() {
    let p = Place::new();
    fs::create_dir(p.path("rules")).expect("the folder can be written");
    fs::copy("rules/fusion.rules", p.path("rules/fusion.rules"))
        .expect("the folder can be written");
    fs::copy("cost-models/generic-gpu.toml", p.path("own.toml"))
        .expect("the folder can be written");
    let folder = p.path("programs");
    fs::create_dir_all(folder.join("deeper")).expect("the folder can be written");
    let text = format!(
        "{ASUM}-- expect stats rules=../../rules size n=64\n-- | stop saturated\n\
         -- expect error E0702 rules=../../rules model=../../own.toml size n=64\n\
         -- expect found rules=../../rules size n=64\n-- | reduceSeq (+) 0.0 . map abs . xs\n"
    );
    fs::write(folder.join("deeper/a.pat"), text).expect("the folder can be written");
    let ran = p.run(&format!("snapshot {}", folder.display()));
    assert!(
        ran.stdout().ends_with("2 of 3 expectations hold\n"),
        "{}{}",
        ran.stdout(),
        ran.stderr()
    );
    ran.fails("E0906", 1);
}

#[test]
fn malformed_expectations_have_a_place() {
    let p = Place::new();
    let f = p.file("a.pat", format!("{ASUM}-- expect term size=64\n"));
    let ran = p.run(&format!("snapshot {f}")).fails("E0106", 3);
    assert!(ran.stderr().contains("a.pat:2:16"), "{}", ran.stderr());
}

#[test]
fn files_without_expectations_are_no_test() {
    let p = Place::new();
    p.run("snapshot programs/asum.pat").fails("E0903", 2);
    p.run("snapshot programs").fails("E0903", 2);
    p.run("snapshot").0.status.code().filter(|c| *c == 2).expect("usage");
    p.run("snapshot /no/such.pat").fails("E0901", 9);
    // A file without expectations is accepted beside others.
    let f = p.file("a.pat", format!("{ASUM}-- expect error E0308\n"));
    p.run(&format!("snapshot programs/asum.pat {f}")).ok();
    // An error in the program is reported.
    let f = p.file("b.pat", "entry f (x: f32) : i32 = x\n-- expect stats\n-- | nodes 1\n");
    let said = p.run(&format!("snapshot {f}")).fails("E0906", 1).stderr();
    assert!(said.contains("E0301"), "{said}");
}
