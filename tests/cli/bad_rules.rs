//! Wrong rules: each is refused with its place in the file, before it can generate a kernel.

use super::Place;
use serde_json::Value;

/// The law; the clauses from the third line on; the expected code; and the place of the error, as line and column.
const WRONG: [(&str, &str, &str, (u64, u64)); 18] = [
    // Not a term.
    ("exact", "  rewrite map f => reduce f . map f", "E0102", (5, 29)),
    // The sides have different types.
    ("exact", "  rewrite wrap . f => wrap . wrap . f", "E0402", (5, 23)),
    // The right side uses names that the left side does not bind: a function, a size, a variable of a condition.
    ("exact", "  rewrite map f => map (f . g)", "E0403", (5, 20)),
    ("exact", "  rewrite map f => join . map (map f) . split k", "E0403", (5, 20)),
    ("exact", "  when commutative op\n  rewrite map f => mapSeq f", "E0403", (6, 10)),
    // Holds only for some of the types that the left side matches: map fusion in the wrong order.
    ("exact", "  rewrite map f . map g => map (g . f)", "E0402", (5, 10)),
    // The left side matches every term.
    ("exact", "  rewrite f => f . id", "E0405", (5, 11)),
    // A permutation is not the identity, although that was published.
    ("exact", "  rewrite reorder => id", "E0404", (5, 11)),
    // A fold from the other end.
    ("exact", "  rewrite reduce op z => reduceSeq op z . reverse", "E0404", (5, 11)),
    // Interleaves subsequences, although the operator need not commute.
    (
        "reassoc",
        "  on [n]a\n  let t = tile n, r = round n\n  when tileable n 2\n  rewrite reduce op z => reduce op z . map (reduce op z) . transpose . split t . padTo r z",
        "E0404",
        (8, 11),
    ),
    // Pads with an element that is not neutral.
    (
        "reassoc",
        "  on [n]a\n  let t = tile n, r = round n\n  when tileable n 2\n  rewrite reduce op z => reduce op z . map (reduce op z) . split t . padLast r",
        "E0404",
        (8, 11),
    ),
    // Vectorises a function that has no vector form.
    (
        "exact",
        "  on [n]a\n  let w = width n, r = round n\n  rewrite map f => packed w r (map (vectorize w f))",
        "E0404",
        (7, 11),
    ),
    // Fuses a function into an operator, which then is not a valid operator of `reduce`.
    (
        "reassoc",
        "  rewrite reduce op z . map f . padTo r z => reduce (op . bimap id f) z . padTo r z",
        "E0404",
        (5, 11),
    ),
    // Changes the rounding, but claims to be exact.
    (
        "exact",
        "  on [n]a\n  let t = tile n, r = round n\n  when tileable n 2\n  rewrite reduce op z => reduce op z . map (reduce op z) . split t . padTo r z",
        "E0404",
        (8, 11),
    ),
    // Regroups a sum, or uses laws that do not hold for NaN and -0.0.
    (
        "exact",
        "  on (f32, (f32, f32))\n  rewrite \\(a, (b, c)) -> (a + b) + c => \\(a, (b, c)) -> a + (b + c)",
        "E0404",
        (6, 11),
    ),
    ("reassoc", "  on f32\n  rewrite \\x -> x * 0.0 => \\x -> 0.0", "E0404", (6, 11)),
    ("exact", "  on f32\n  rewrite \\x -> x + 0.0 => id", "E0404", (6, 11)),
    // Splits a length that need not be divisible.
    ("exact", "  on [n]a\n  rewrite map f => join . map (map f) . split 4", "E0404", (6, 11)),
];

/// Number of shipped rules in each set.
const CHECKED: [(&str, u32); 5] =
    [("default", 162), ("warp", 2), ("primitive", 91), ("thesis", 14), ("partials", 13)];

fn file(law: &str, clauses: &str) -> String {
    format!("rule planted\n  law {law}\n  says \"It is wrong.\"\n  from \"nowhere\"\n{clauses}\n")
}

#[test]
fn planted_rules_are_refused_with_their_place() {
    let p = Place::new();
    for (law, clauses, code, place) in WRONG {
        let f = p.file("planted.rules", file(law, clauses));
        let args =
            format!("--json optimize programs/asum.pat --size n=64 --device none --rules {f}");
        let ran = p.run(&args);
        let d = ran.last("diagnostic");
        let shown = format!("{clauses}\n{d:#}");
        assert_eq!(ran.0.status.code(), Some(3), "{shown}");
        assert_eq!(d["code"], code, "{shown}");
        assert!(d["file"].as_str().is_some_and(|n| n.ends_with("planted.rules")), "{shown}");
        let labels = d["labels"].as_array().expect("the result has this field");
        let at = labels.iter().find(|l| l["primary"] == true).expect("a primary label");
        assert_eq!(
            (at["line"].as_u64(), at["column"].as_u64()),
            (Some(place.0), Some(place.1)),
            "{shown}"
        );
        assert!(ran.json().iter().all(|l| l["type"] != "result"), "{shown}");
        if code == "E0404" {
            let notes = d["notes"].as_array().expect("the result has this field");
            let has = |start: &str| {
                notes
                    .iter()
                    .any(|n| n.as_str().expect("the result has this field").starts_with(start))
            };
            assert!(
                has("on the input") && has("the left side gives") && has("the right side gives"),
                "{shown}"
            );
        }
    }
}

#[test]
fn derivations_of_own_rules_are_replayed() {
    let p = Place::new();
    let rule = "  rewrite reverse . map f => map f . reverse . map id\n  derivation\n    by map-identity back: reverse . map f . map id\n    by ";
    let bad = p.file("bad.rules", file("exact", &format!("{rule}map-fusion")));
    p.run(&format!("rules check {bad} --instances 20")).fails("E0406", 1);
    p.run(&format!("optimize programs/asum.pat --size n=64 --device none --rules {bad}"))
        .fails("E0406", 1);
}

#[test]
fn every_verb_that_rewrites_checks_rules_first() {
    let p = Place::new();
    let f = p.file("planted.rules", file("exact", "  rewrite reorder => id"));
    for verb in ["optimize", "run", "bench"] {
        p.run(&format!(
            "{verb} programs/asum.pat --size n=64 --gen xs=iota --device portable --rules {f}"
        ))
        .fails("planted.rules:5:11", 3);
    }
    // With `--trust-rules`, the rule is used without a test.
    p.run(&format!(
        "optimize programs/asum.pat --size n=64 --device none --rules {f} --trust-rules"
    ))
    .ok();
    // Valid rules are used, and so is a folder with the shipped set.
    let good = p.file("good.rules", file("exact", "  rewrite reverse . map f => map f . reverse"));
    p.run(&format!("optimize programs/asum.pat --size n=64 --device none --rules {good}")).ok();
    p.run("optimize programs/asum.pat --size n=64 --device none --rules rules").ok();
}

#[test]
fn check_shows_a_counterexample_and_counts() {
    let p = Place::new();
    let text = file("exact", "  rewrite reorder => id")
        + &file("exact", "  rewrite reverse . map f => map f . reverse").replace("planted", "fine");
    let f = p.file("two.rules", text);
    let said = p.run(&format!("rules check {f}")).fails("E0404", 3);
    assert!(said.stdout().contains("1 of 2 rules do not hold"), "{}", said.stdout());
    assert!(said.stderr().contains("note: on the input [0, 1]"), "{}", said.stderr());
    let lines = p.run(&format!("--json rules check {f} --instances 30 --seed 5"));
    let rules: Vec<Value> = lines.json().into_iter().filter(|l| l["type"] == "rule").collect();
    assert_eq!((&rules[0]["outcome"], &rules[1]["outcome"]), (&"wrong".into(), &"holds".into()));
    assert_eq!(rules[0]["counterexample"]["expected"], "[1, 0]");
    assert_eq!(rules[1]["instances"], 30);
    assert_eq!(lines.last("result")["wrong"], 1);
    let none = p.file("none.rules", file("exact", "  rewrite reduce fst z => reduceSeq fst z"));
    p.run(&format!("rules check {none}")).fails("E0407", 3);
    // Every rule of every set is checked, with or without files.
    let counts: u32 = CHECKED.iter().map(|(_, n)| n).sum();
    for what in ["", " rules"] {
        let ran = p.run(&format!("rules check{what} --instances 5")).ok();
        assert!(
            ran.stdout().contains(&format!("{counts} rules hold on 5 instances each")),
            "{}",
            ran.stdout()
        );
        for (set, n) in CHECKED {
            assert!(ran.stdout().contains(&format!("{set} {n}")), "{}", ran.stdout());
        }
    }
    assert!(p.run("rules lint rules").ok().stdout().starts_with(&format!("{counts} rules")));
}

#[test]
fn lint_tells_places_and_has_its_status() {
    let p = Place::new();
    assert!(p.run("rules lint").ok().stdout().contains("nothing found"));
    let example =
        |clauses: &str, example: &str| file("exact", &format!("{clauses}\n  example {example}"));
    for (text, found, place) in [
        (file("exact", "  rewrite reverse . map f => map f . reverse"), "no example", "5:11"),
        (
            example("  rewrite reverse . map f => map f . reverse", "map abs : [4]f32"),
            "does not apply to its example",
            "6:11",
        ),
        (
            example("  rewrite reverse . map f => map f . reverse", "reverse . map abs : f32"),
            "the example of rule `planted`",
            "6:21",
        ),
        (example("  rewrite map f => map (id . f)", "map abs : [4]f32"), "feeds itself", "5:11"),
        (
            example("  rewrite map g . map k => map (g . k)", "map abs . map abs : [4]f32"),
            "is rule `map-fusion` with other names",
            "5:11",
        ),
        (
            example(
                "  on [n]a\n  let t = tile n\n  rewrite reverse . map f => map f . reverse",
                "reverse . map abs : [4]f32",
            ),
            "`t` is not used",
            "7:11",
        ),
    ] {
        let f = p.file("planted.rules", &text);
        let ran = p.run(&format!("rules lint {f}")).fails("W0408", 1);
        let said = ran.stderr();
        assert!(said.contains(found) && said.contains(&format!("planted.rules:{place}")), "{said}");
    }
    // A file that does not parse is reported as such.
    let f = p.file("planted.rules", file("exact", "  rewrite map f => map g"));
    p.run(&format!("rules lint {f}")).fails("E0403", 3);
}

#[test]
fn operators_that_break_their_laws_are_refused() {
    let p = Place::new();
    let f = p.file(
        "mean.pat",
        "entry mean [n] (xs: [n]f32) : f32 =\n  reduce (\\a b -> (a + b) / 2) 0 xs\n",
    );
    for verb in ["optimize --device none", "optimize --device portable", "run --device portable"] {
        let ran = p.run(&format!("{verb} {f} --size n=64 --gen xs=iota")).fails("E0310", 3);
        let said = ran.stderr();
        assert!(said.contains("mean.pat:2:19") && said.contains("op (op a b) c = "), "{said}");
    }
    p.run(&format!("optimize {f} --size n=64 --device none --trust-laws")).ok();
    p.run(&format!("eval {f} --size n=4 --gen xs=iota")).ok();
    let ties = "entry least [n] (xs: [n](f32, i32)) : (f32, i32) =\n  reduce_comm (\\(a, i) (b, j) -> if a <= b then (a, i) else (b, j)) (f32.highest, -1) xs\n";
    let f = p.file("least.pat", ties);
    p.run(&format!("optimize {f} --size n=64 --device none")).fails("not commutative", 3);
    // Low-level patterns are not rewritten, so no laws are tested.
    let low = "entry last [n] (xs: [n]f32) : [1]f32 =\n  xs |> split n |> mapGlb 0 (reduceSeq (\\a b -> b) 0)\n";
    let f = p.file("last.pat", low);
    p.run(&format!("run {f} --no-rewrite --size n=64 --gen xs=iota --device portable")).ok();
}
