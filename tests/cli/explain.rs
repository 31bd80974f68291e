//! `patsat explain` and `patsat rules stats`.

use super::Place;
use std::fs;

const ASUM: &str = "explain programs/asum.pat --size n=1000";

#[test]
fn derivations_are_told() {
    let ran = Place::new().run("explain programs/scal.pat --size n=1000 --check").ok();
    let said = ran.stdout();
    for text in [
        "program\n  map (\\x -> x * alpha) . xs\n",
        "1. split-join (exact): A map over an array is a map over its chunks.\n",
        "   holds  tileable n 2: n is n, 0 tiles deep\n",
        "   from   «map (\\x -> x * alpha)» . xs\n",
        "chunked (definition)",
        "tunables (choice)",
        "   check  the same bits\n",
        "checked at n=",
    ] {
        assert!(said.contains(text), "no {text:?} in:\n{said}");
    }
    assert!(!said.contains("FAILS"), "{said}");
}

#[test]
fn derivations_as_json() {
    let ran = Place::new().run(&format!("--json {ASUM} --check")).ok();
    let (head, result) = (ran.last("derivation"), ran.last("result"));
    assert_eq!(head["start"], "reduce (+) 0.0 . map abs . xs");
    assert_eq!((&result["holds"], &result["checked"]), (&true.into(), &true.into()));
    let tunables = result["tunables"].as_object().expect("an object");
    assert!(!tunables.is_empty() && tunables.values().all(serde_json::Value::is_u64));
    assert!(result["rounds"][0]["sizes"]["n"].is_u64());
    let steps: Vec<_> = ran.json().into_iter().filter(|l| l["type"] == "step").collect();
    assert_eq!(head["steps"], steps.len());
    let mut at = head["start"].clone();
    for (i, s) in steps.iter().enumerate() {
        for field in ["rule", "direction", "law", "says", "from", "statement", "place"] {
            assert!(s[field].is_string(), "no {field} in {s}");
        }
        assert_eq!((&s["index"], &s["holds"]), (&(i + 1).into(), &true.into()));
        assert_eq!(s["check"]["ok"], true);
        assert!(s["sizes"].is_object() && s["conditions"].is_array());
        assert_eq!(s["before"]["term"], at);
        for side in ["before", "after"] {
            let part = &s[side];
            let place =
                |end: &str| usize::try_from(part[end].as_u64().expect("a place")).expect("small");
            let text = part["term"].as_str().expect("a term");
            assert_eq!(part["part"], text[place("start")..place("end")]);
        }
        at = s["after"]["term"].clone();
    }
    assert_eq!(at, head["goal"]);
    let laws: Vec<_> = steps.iter().map(|s| s["law"].as_str().expect("a law")).collect();
    assert!(laws.contains(&"reassoc") && laws.contains(&"exact") && laws.last() == Some(&"choice"));
}

#[test]
fn derivations_as_a_page() {
    let p = Place::new();
    let file = p.path("asum.html");
    let term = "mapGlb 0 (\\x -> x * alpha) . xs";
    let mut command = p.command("explain programs/scal.pat --size n=9 --check");
    command.arg("--term").arg(term).arg("--html").arg(&file);
    super::Ran(command.output().expect("patsat runs")).ok();
    let page = fs::read_to_string(&file).expect("a page");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("prefers-color-scheme: dark"));
    assert!(
        page.contains("<pre><code><del>map (\\x -&gt; x * alpha)</del> . xs</code></pre>"),
        "{page}"
    );
    assert!(
        page.contains("<pre><code><ins>mapGlb 0 (\\x -&gt; x * alpha)</ins> . xs</code></pre>")
    );
    assert!(!page.contains("http") && !page.contains("<script") && !page.contains("src="));
    for tag in
        ["html", "body", "main", "details", "summary", "pre", "code", "del", "ins", "ul", "dl"]
    {
        let opened =
            page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
        assert!(opened > 0, "{tag}");
    }
    // An output path that cannot be written.
    let args =
        format!("explain programs/scal.pat --size n=9 --html {}", p.path("no/a.html").display());
    p.run(&args).fails("E0901", 9);
}

#[test]
fn a_wrong_rule_fails_the_check() {
    let p = Place::new();
    let rules = p.file(
        "wrong.rules",
        "rule backwards\n  law exact\n  says \"Wrong.\"\n  from \"nowhere\"\n  rewrite reverse => id\n",
    );
    let f = p.file("f.pat", "entry f [n] (xs: [n]f32) : [n]f32 = map (* 2) (reverse xs)\n");
    let args = format!("explain {f} --size n=100 --rules {rules} --trust-rules");
    assert!(p.run(&args).ok().stdout().contains("backwards (exact)"));
    let ran = p.run(&format!("{args} --check")).fails("E0406", 1);
    assert!(ran.stdout().contains("   FAILS  result 0, element"), "{}", ran.stdout());
    assert!(ran.stderr().contains("the rule: reverse => id"), "{}", ran.stderr());
    let ran = p.run(&format!("--json {args} --check"));
    assert_eq!(ran.last("result")["checked"], false);
    let replace = format!("explain {f} --size n=100 --check");
    p.run(&replace).ok();
}

#[test]
fn why_not_tells_where_a_rule_applied() {
    let p = Place::new();
    let said = p.run(&format!("{ASUM} --why-not reduce-split")).ok().stdout();
    assert!(
        said.contains("It applied: in ") && said.contains("«reduce (+) 0.0» . map abs . xs"),
        "{said}"
    );
    assert!(said.contains("best terms"), "{said}");
    let w = p.run(&format!("--json {ASUM} --why-not reduce-seq-map-fusion")).ok().last("why_not");
    assert_eq!((&w["result"]["outcome"], w["best"].as_u64()), (&"applied".into(), Some(10)));
    assert!(w["stat"]["new_nodes"].as_u64() > Some(0) && w["in_best"][0].is_u64(), "{w}");
}

#[test]
fn why_not_tells_which_condition_failed() {
    let p = Place::new();
    let f = p.file(
        "f.pat",
        "entry f [n] (xs: [n]f32) : f32 = reduce (\\a b -> if a == 0 then b else a) 0 xs\n",
    );
    let args = format!("explain {f} --size n=1000 --why-not reduce-split-strided");
    let said = p.run(&args).ok().stdout();
    assert!(said.contains("a side condition fails in each"), "{said}");
    assert!(said.contains("  tileable n 2 holds: n is n, 0 tiles deep\n"), "{said}");
    assert!(
        said.contains("  commutative op fails: op is \\(a, b) -> if a == 0.0 then b else a\n"),
        "{said}"
    );
    assert!(said.contains("None of the 10 best terms is derived with it."), "{said}");
    assert_eq!(
        p.run(&format!("--json {args}")).ok().last("why_not")["result"]["outcome"],
        "condition"
    );
}

#[test]
fn why_not_tells_what_is_missing() {
    let p = Place::new();
    let said = p.run(&format!("{ASUM} --why-not zip-bimap-maps")).ok().stdout();
    assert!(said.contains("It applies nowhere: at most 3 of the 4 operators"), "{said}");
    assert!(said.contains("  expected map, found "), "{said}");
    let said = p.run(&format!("{ASUM} --why-not reverse-reverse")).ok().stdout();
    assert!(said.contains("It applies nowhere: there is no reverse in the e-graph."), "{said}");
    // The device lacks a capability, or the float mode excludes the rule.
    let said = p.run(&format!("{ASUM} --why-not to-stream-items")).ok().stdout();
    assert!(said.contains("lacks the capability `nontemporal`"), "{said}");
    let rules = p.file(
        "near.rules",
        "rule near\n  law approx\n  says \"Nearly.\"\n  from \"nowhere\"\n  rewrite map f => mapSeq f\n",
    );
    let args = format!("{ASUM} --rules {rules} --why-not near");
    let said = p.run(&args).ok().stdout();
    assert!(said.contains("it is approx, and the float mode is contract"), "{said}");
    assert!(p.run(&format!("{args} --float relaxed")).ok().stdout().contains("It applied: in "));
}

#[test]
fn wrong_questions() {
    let p = Place::new();
    let ran = p.run(&format!("{ASUM} --why-not map-fusoin")).fails("E0201", 3);
    assert!(ran.stderr().contains("there are map-fusion"), "{}", ran.stderr());
    p.run(&format!("{ASUM} --why-not map-fusion --check")).fails("cannot be used with", 2);
    p.run("explain programs/asum.pat").fails("E0308", 4);
    p.run("explain programs/none.pat").fails("E0901", 9);
    let term = |text: &str| {
        let mut command = p.command(ASUM);
        super::Ran(command.arg("--term").arg(text).output().expect("patsat runs"))
    };
    term("reduce (+) 0.0 .").fails("E0102", 3);
    term("map abs . ys").fails("E0", 3);
    let ran = term("reduce (+) 0.0 . map sqrt . xs").fails("E0705", 7);
    assert!(ran.stderr().contains("nowhere in it is: sqrt"), "{}", ran.stderr());
    term("reduce (+) 0.0 . map abs . xs").ok();
}

#[test]
fn stats_count_for_each_rule() {
    let p = Place::new();
    let said = p.run("rules stats programs/scal.pat programs/axpy.pat --best 3").ok().stdout();
    let header = said.lines().next().unwrap_or_default();
    for column in
        ["rule", "matches", "new nodes", "search ms", "apply ms", "scal (of 3)", "axpy (of 3)"]
    {
        assert!(header.contains(column), "no {column} in {header}");
    }
    let first = said.lines().nth(1).unwrap_or_default();
    assert!(
        first.ends_with('3') || first.contains("  3 "),
        "the most used rule comes first: {said}"
    );
    let ran = p.run("--json rules stats programs/scal.pat --size n=1000 --sort nodes").ok();
    let lines = ran.json();
    let rules: Vec<_> = lines.iter().filter(|l| l["type"] == "rule").collect();
    let nodes: Vec<u64> =
        rules.iter().map(|r| r["stat"]["new_nodes"].as_u64().expect("a count")).collect();
    assert!(nodes.is_sorted_by(|a, b| a >= b) && nodes[0] > 0, "{nodes:?}");
    let of = |name: &str| rules.iter().find(|r| r["rule"] == name).expect("a rule");
    assert_eq!(of("lower-map-global")["in_best"][0]["entry"], "scal");
    assert!(of("split-join")["in_best"][0]["terms"].as_u64() > Some(0));
    assert_eq!(of("reverse-reverse")["stat"]["matches"], 0);
    assert_eq!(ran.last("result")["programs"][0]["best"], 10);
    // Nothing is searched or measured, so options for these are refused.
    p.run("rules stats programs/scal.pat --strategy random").fails("--strategy", 2);
    p.run("rules stats").fails("required", 2);
    p.run("rules stats programs/none.pat").fails("E0901", 9);
}
