//! The shipped rules hold, and wrong rules are refuted on a small instance.

use super::*;
use crate::diag::Source;
use crate::rules::{Condition, Library, RuleSet, SizeMaker};

#[test]
fn the_shipped_rules_hold() {
    let all = Library::shipped().expect("the shipped rules are well-formed").all();
    let rules: Vec<_> = all.iter().collect();
    let mut wrong = vec![];
    check_all(&rules, &all, Check::default(), |_, tested| {
        wrong.extend(tested.wrong.map(|d| format!("{d}\n{}\n", d.notes.join("\n"))));
        Ok::<_, ()>(())
    })
    .expect("nothing stops the check");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_shipped_rules_need_their_commutative_operators() {
    let set = RuleSet::shipped().expect("the shipped rules are well-formed");
    let mut seen = 0;
    for rule in set.iter() {
        let mut weaker = rule.clone();
        weaker.when.retain(|c| !matches!(c, Condition::Commutative(_)));
        if weaker.when.len() < rule.when.len() {
            let outcome = check(&weaker, Check::default());
            assert!(matches!(outcome, Outcome::Broken(_)), "{}: {outcome:?}", rule.name);
            seen += 1;
        }
    }
    assert!(seen >= 3, "{seen} rules want an operator that commutes");
}

#[test]
fn approximate_rules_may_round() {
    let third = "on [n]f32\n rewrite map (\\x -> x / 3.0) => map (\\x -> x * 0.33333334)";
    holds("approx", third);
    broken("exact", third);
    broken("approx", &third.replace("0.33333334", "0.3334"));
}

#[test]
fn exact_is_bit_for_bit_on_every_float() {
    let laws = [
        // Equal up to rounding only.
        (
            "on (f32, (f32, f32))\n rewrite \\(a, (b, c)) -> (a + b) + c => \\(a, (b, c)) -> a + (b + c)",
            "reassoc",
        ),
        ("on f32\n rewrite \\x -> x / 3.0 => \\x -> x * 0.33333334", "approx"),
        // Wrong for -0.0.
        ("on f32\n rewrite \\x -> x + 0.0 => id", "reassoc"),
        // Wrong for infinities and NaN.
        ("on f32\n rewrite \\x -> x * 0.0 => \\x -> 0.0", "approx"),
        ("on f32\n rewrite \\x -> x - x => \\x -> 0.0", "approx"),
        // Wrong for large numbers: the sum overflows.
        (
            "on (f32, f32)\n rewrite \\(a, b) -> (a + b) / 2.0 => \\(a, b) -> a / 2.0 + b / 2.0",
            "approx",
        ),
    ];
    for (clauses, weakest) in laws {
        broken("exact", clauses);
        if weakest == "reassoc" {
            holds("reassoc", clauses);
        }
        holds("approx", clauses);
    }
    broken("reassoc", laws[3].0);
    for clauses in [
        "on f32\n rewrite \\x -> x * 1.0 => id",
        "on f32\n rewrite \\x -> x - 0.0 => id",
        "on f32\n rewrite \\x -> x * 2.0 => \\x -> x + x",
        "on (f32, f32)\n rewrite \\(a, b) -> a + b => \\(a, b) -> b + a",
        "rewrite reduceSeq op z . map f => reduceSeq (op . bimap id f) z",
        "rewrite reduce op z => reduceSeq op z",
        "rewrite map f . reverse => reverse . map f",
    ] {
        holds("exact", clauses);
    }
}

#[test]
fn sizes_need_not_divide() {
    let split = "on [n]a\n  rewrite map f => join . map (map f) . split 4";
    let c = broken("exact", split);
    assert!(c.got.starts_with("nothing: ") && c.got.ends_with(" is no whole number"), "{c:?}");
    assert!(c.sizes.iter().any(|(n, v)| n == "n" && v % 4 != 0), "{c:?}");
    holds("exact", &split.replace("rewrite", "when divides 4 n\n  rewrite"));
    broken("exact", &split.replace("rewrite", "when divides 2 n\n  rewrite"));
    holds("exact", &split.replace("rewrite", "when divides 8 n\n  rewrite"));
    // A tunable is chosen so that it divides.
    holds(
        "exact",
        &split.replace("rewrite", "let k = tile n\n  rewrite").replace("split 4", "split k"),
    );
    let halves = "on [n]a\n  rewrite reduce op z => reduce op z . map (reduce op z) . split (n/2)";
    broken("reassoc", halves);
    holds(
        "reassoc",
        "on [2*n]a\n  rewrite reduce op z => reduce op z . map (reduce op z) . split n",
    );
}

#[test]
fn the_ends_are_among_the_sizes() {
    // Wrong for no elements only, and for one element only.
    let c = broken(
        "exact",
        "on [n]i32\n rewrite reduceSeq (\\(a, b) -> b) 7 => reduceSeq (\\(a, b) -> b) 8",
    );
    assert_eq!((c.input.as_str(), c.expected.as_str(), c.got.as_str()), ("[]", "7", "8"));
    broken("exact", "on [m][n]i32\n rewrite map (reduceSeq snd 7) => map (reduceSeq snd 8)");
    broken(
        "exact",
        "on [n]i32\n rewrite reduceSeq (\\(a, b) -> 3) 7 . map (\\x -> 1) => reduceSeq (\\(a, b) -> 3) 6 . map (\\x -> 1)",
    );
}

/// Returns the result of replaying the derivation of a rule.
fn derived(text: &str) -> Result<(), String> {
    let mut set = Library::shipped().expect("the shipped rules are well-formed").all();
    set.add(&Source::new("own.rules", text), "own").expect("the rule is well-formed");
    let rule = set.get("own").expect("it was added").clone();
    derivation(&rule, &set, Check::default()).map_err(|f| f.0[0].message.clone())
}

#[test]
fn derivations_keep_laws_and_conditions() {
    let own = |law: &str, clauses: &str| {
        format!("set mine\nrule own\n  law {law}\n  says \"A.\"\n  from \"B\"\n  {clauses}\n")
    };
    let split = "on [n]a\n  when from n 8, divides 4 n\n  \
                 rewrite reduce op z => reduce op z . map (reduce op z) . split 4\n  derivation\n    \
                 by part-intro: reduce op z . reducePart (n/4) op z\n    by part-definition";
    assert_eq!(derived(&own("reassoc", split)), Ok(()));
    let law = derived(&own("exact", split)).unwrap_err();
    assert!(law.contains("`part-intro`, which only holds as `reassoc`"), "{law}");
    // The first step has no value if 4 does not divide the length.
    let uneven = derived(&own("reassoc", &split.replace(", divides 4 n", ""))).unwrap_err();
    assert_eq!(uneven, "step 1 of the derivation of `own` does not hold");
    // The rule of a step has a condition on sizes that the derived rule lacks.
    let primitive = own(
        "exact",
        "on [n]a\n  when divides 6 n\n  rewrite reverse => reverse . reverse . reverse",
    )
    .replace("rule own", "rule sixes");
    let by = |when: &str| {
        let clauses = format!(
            "on [n]a\n  when {when}\n  rewrite map f . reverse => map f . reverse . reverse . reverse\n  derivation\n    by sixes"
        );
        derived(&(primitive.clone() + &own("exact", &clauses).replace("set mine\n", "")))
    };
    assert_eq!(by("divides 6 n"), Ok(()));
    assert_eq!(by("divides 12 n"), Ok(()));
    assert!(by("divides 3 n").unwrap_err().contains("step 1 of `own` is not one by `sixes`"));
    // Circular derivations.
    let circle = own("exact", "rewrite map f . map g => map (f . g)\n  derivation\n    by other")
        + &own("exact", "rewrite map f . map g => map (f . g)\n  derivation\n    by own")
            .replace("rule own", "rule other")
            .replace("set mine\n", "");
    assert!(derived(&circle).unwrap_err().contains("derived of it"));
}

#[test]
fn many_rules_are_told_in_order() {
    let all = Library::shipped().expect("the shipped rules are well-formed").all();
    let rules: Vec<_> = all.iter().take(12).collect();
    let mut seen = vec![];
    let how = Check { instances: 5, seed: 0 };
    check_all(&rules, &all, how, |rule, tested| {
        assert!(tested.wrong.is_none(), "{:?}", tested.wrong);
        seen.push(rule.name.clone());
        Ok::<_, ()>(())
    })
    .expect("nothing stops the check");
    assert_eq!(seen, rules.iter().map(|r| r.name.clone()).collect::<Vec<_>>());
    let mut told = 0;
    let stopped = check_all(&rules, &all, how, |_, _| {
        told += 1;
        if told == 3 { Err("stop") } else { Ok(()) }
    });
    assert_eq!((stopped, told), (Err("stop"), 3));
}

fn outcomes(law: &str, clauses: &str, how: Check) -> Outcome {
    let text = format!("rule own\n  law {law}\n  says \"A.\"\n  from \"B\"\n  {clauses}\n");
    let mut set = RuleSet::default();
    if let Err(e) = set.add(&Source::new("own.rules", text), "own") {
        panic!("{clauses}: {e}");
    }
    check(set.get("own").expect("it was added"), how)
}

#[track_caller]
fn broken(law: &str, clauses: &str) -> Counterexample {
    for seed in 0..3 {
        match outcomes(law, clauses, Check { seed, ..Check::default() }) {
            Outcome::Broken(c) if seed == 0 => return *c,
            Outcome::Broken(_) => {}
            other => panic!("{clauses}, seed {seed}: {other:?}"),
        }
    }
    unreachable!("the first seed returns")
}

#[track_caller]
fn holds(law: &str, clauses: &str) {
    match outcomes(law, clauses, Check::default()) {
        Outcome::Holds(200) => {}
        other => panic!("{clauses}: {other:?}"),
    }
}

#[test]
fn reorder_is_any_permutation() {
    let c = broken("exact", "rewrite reorder => id");
    assert_eq!(
        (c.input.as_str(), c.expected.as_str(), c.got.as_str()),
        ("[0, 1]", "[1, 0]", "[0, 1]")
    );
    assert!(c.notes[0].contains("takes elements [1, 0]"), "{:?}", c.notes);
    broken("exact", "rewrite reorder => reverse");
    broken("exact", "rewrite reorder . reorder => id");
    broken("reassoc", "rewrite reduce op z . reorder => reduce op z");
    holds("exact", "rewrite map f . reorder => reorder . map f");
    holds("reassoc", "rewrite reduceComm op z . reorder => reduceComm op z");
    holds(
        "reassoc",
        "on [n]a\n when commutative op\n rewrite reduce op z . reorder => reduce op z",
    );
}

#[test]
fn reductions_group_anyhow_and_only_they() {
    let c = broken("reassoc", "rewrite reduce op z => reduce op z . reverse");
    assert!(c.left.contains("[2]"), "two elements show it: {}", c.left);
    holds("reassoc", "rewrite reduceComm op z => reduceComm op z . reverse");
    holds("reassoc", "when commutative op\n rewrite reduce op z => reduce op z . reverse");
    // A fold from the left promises nothing about its operator.
    broken("reassoc", "rewrite reduceSeq op z . padTo r z => reduce op z . padTo r z");
    broken("reassoc", "rewrite scanSeq op z . padTo r z => scan op z . padTo r z");
    broken("reassoc", "rewrite reduce op z => reduceComm op z");
    // The operator with a function composed into it is not associative.
    broken(
        "reassoc",
        "rewrite reduce op z . map f . padTo r z => reduce (op . bimap id f) z . padTo r z",
    );
    holds("reassoc", "rewrite scan op z . padTo r z => scanSeq op z . padTo r z");
    holds("reassoc", "on [k*m]a\n rewrite reduce op z => reduce op z . reducePart m op z");
}

const TILED: &str = "on [n]a\n  let t = tile n, r = round n\n  when tileable n 2";

#[test]
fn tiles_need_not_divide() {
    let rule = |right: &str| format!("{TILED}\n  rewrite reduce op z => {right}");
    let split = "reduce op z . map (reduce op z) . split t . padTo r z";
    holds("reassoc", &rule(split));
    let c = broken("exact", &rule(split));
    assert!(c.notes.iter().any(|n| n.contains("law reassoc")), "{:?}", c.notes);
    let c = broken("reassoc", &rule("reduce op z . map (reduce op z) . split t . padLast r"));
    assert!(c.sizes.contains(&("n".into(), 1)), "{c:?}");
    // Strides need a commutative operator.
    broken("reassoc", &rule("reduce op z . map (reduce op z) . transpose . split t . padTo r z"));
    let map = |right: &str| format!("{TILED}\n  rewrite map f => {right}");
    holds("exact", &map("take n . join . map (map f) . split t . padLast r"));
    let c = broken("exact", &map("take n . join . transpose . map (map f) . split t . padLast r"));
    assert!(c.sizes.iter().all(|(_, v)| *v <= 4), "{c:?}");
}

#[test]
fn vectors_hold_what_has_a_vector_form() {
    let rule = |when: &str| {
        format!(
            "on [n]a\n  let w = width n, r = round n\n  when {when}\n  \
             rewrite map f => packed w r (map (vectorize w f))"
        )
    };
    holds("exact", &rule("scalar a, vectorisable f"));
    assert!(broken("exact", &rule("tileable n 2")).got.contains("no vector form"));
    assert!(broken("exact", &rule("scalar a")).got.contains("no vector form"));
}

#[test]
fn rearrangements_are_compared_element_by_element() {
    let c = broken("exact", "rewrite join . transpose => join");
    assert_eq!(c.left, "join . transpose : [2][2]i32 -> [4]i32");
    broken("exact", "rewrite rotate k . reverse => reverse . rotate k");
    broken("exact", "rewrite map reverse . transpose => transpose . map reverse");
    broken("exact", "on [n]a\n rewrite reorderStride s => id");
    holds("exact", "rewrite reverse . map f => map f . reverse");
}

#[test]
fn rules_without_instances_are_no_passes() {
    // No neutral element makes `fst` an operator of `reduce`.
    let outcome = outcomes("exact", "rewrite reduce fst z => reduceSeq fst z", Check::default());
    assert!(matches!(outcome, Outcome::Untested(0)), "{outcome:?}");
    // For a given operator, the neutral element is found.
    holds("exact", "on [n]i32\n rewrite reduce (\\(a, b) -> a + b * 1) z => reduceSeq (+) z");
}

const BLOCKS: &str = "on ([n][k]a, [m][k]b)\n  let t = tile k, r = round k\n  when tile n, tile m";
const PAIRS: &str =
    "on ([n]a, [m]b)\n  let t = tile n, r = round n, u = tile m, q = round m\n  when computes e";
const SHARES: &str = "on [n][m]a\n  let t = tile n, u = tile m, v = width t, w = width u\n  \
                      when tile n, tile m, computes f";

#[test]
fn wrong_tilings_are_found() {
    let blocked = |step: &str| {
        format!(
            "{BLOCKS}\n  rewrite map (map (reduceSeq op z . zip)) . cross => \
             blocked t r id id (map (map (foldSeq ({step})))) z id"
        )
    };
    holds("exact", &blocked("cond (fst . snd) (op . bimap id snd) fst"));
    // The elements past the end are counted, or only those.
    broken("exact", &blocked("op . bimap id snd"));
    broken("exact", &blocked("cond (fst . snd) fst (op . bimap id snd)"));
    let rows = "on ([n]a, [k]b)\n  let t = tile k, r = round k\n  when tile n\n  \
                rewrite map (reduceSeq op z) . cross => \
                blockedRows t r id (map (foldSeq (op . bimap id snd))) z id";
    broken("exact", rows);
    let tiled = |copies: &str| {
        format!(
            "{PAIRS}\n  rewrite map (map e) . cross => \
             tiled t u r q {copies} (map (map (map (map e) . cross)))"
        )
    };
    holds("exact", &tiled("id id"));
    holds("exact", &tiled("(reverse . reverse) id"));
    broken("exact", &tiled("reverse id"));
    broken("exact", &tiled("id (map reverse)"));
    let with = |tile: &str| {
        let sizes = PAIRS.split_once('\n').expect("a clause for each line").1;
        format!(
            "on (([n]a, [m]b), [n][m]c)\n{sizes}\n  rewrite map (map e . zip) . zip . bimap cross id => \
             tiledWith t u r q id id (map (map (map (map e . zip) . zip . bimap cross {tile})))"
        )
    };
    holds("exact", &with("id"));
    broken("exact", &with("reverse"));
    broken("exact", &with("(map reverse)"));
    for name in ["spread", "spreadWarps"] {
        let shared = |inside: &str| {
            format!("{SHARES}\n  rewrite map (map f) => {name} t u v w ({inside}map (map (map f)))")
        };
        holds("exact", &shared(""));
        broken("exact", &shared("reverse . "));
        broken("exact", &shared("map (map reverse) . "));
    }
    let rows = |inside: &str| {
        format!(
            "on [n]a\n  let v = tile n\n  when tile n, tileable n 2\n  rewrite map f => spreadRows v ({inside}map (map f))"
        )
    };
    holds("exact", &rows(""));
    broken("exact", &rows("reverse . "));
    broken("exact", &rows("map reverse . "));
    let interleaved = |order: &str| {
        format!(
            "on [n](c, [k]a)\n  rewrite map (foldSeq g) => \
             foldSeq (map g . zip) . bimap id ({order}transpose) . unzip"
        )
    };
    holds("exact", &interleaved(""));
    broken("exact", &interleaved("reverse . "));
}

/// Numbers of instances of a rule, by kind.
#[derive(Default, Debug)]
struct Seen {
    all: usize,
    /// Every dimension of the argument has elements.
    full: usize,
    /// A length is rounded up.
    padded: usize,
    /// A length is less than its tile.
    short: usize,
    /// A width is less than the tile that it divides, and there is more than one tile.
    runs: usize,
    /// The reduced length is 0, or 1.
    ends: [usize; 2],
}

#[test]
fn tilings_are_tested_where_they_are_hard() {
    let library = Library::shipped().expect("the shipped rules are well-formed");
    let themes = ["tiling", "pairs"].map(|t| library.theme(t).expect("the theme is shipped"));
    for rule in themes.iter().flat_map(RuleSet::iter) {
        let plan = Plan::of(rule);
        let mut seen = Seen::default();
        for attempt in 0..200 * ATTEMPTS {
            let rng = &mut sample::rng(1, &rule.name, attempt as u64);
            let Some(i) = plan.draw(rng, Scale { most: LONGEST, plain: false }) else { continue };
            if plan.judge(&i) != Verdict::Same {
                continue;
            }
            seen.all += 1;
            let left = plan.sides(&i).expect("the sides have types").left;
            let leaves = left.ty().dom.components();
            let zero = |d: &crate::calculus::size::Size| d.as_constant() == Some(0);
            seen.full += usize::from(!leaves.iter().any(|(dims, _)| dims.iter().any(zero)));
            let made = |maker, of: u64| {
                rule.lets.iter().any(|l| {
                    l.maker == maker
                        && l.of.eval(&i.sizes) == Ok(of)
                        && size_of(&i, &l.name).is_some_and(|v| v > of)
                })
            };
            let lengths = || rule.lets.iter().filter_map(|l| l.of.eval(&i.sizes).ok());
            seen.padded += usize::from(lengths().any(|n| n > 0 && made(SizeMaker::Round, n)));
            seen.short += usize::from(lengths().any(|n| n > 0 && made(SizeMaker::Tile, n)));
            let widths = rule.lets.iter().filter(|l| l.maker == SizeMaker::Width);
            seen.runs += usize::from(widths.clone().any(|w| {
                let tile = rule
                    .lets
                    .iter()
                    .find(|l| w.of.as_sym() == Some(&Sym::Meta(l.name.as_str().into())));
                let (t, v) = (w.of.eval(&i.sizes).unwrap_or(0), size_of(&i, &w.name).unwrap_or(0));
                let n = tile.and_then(|l| l.of.eval(&i.sizes).ok()).unwrap_or(0);
                t > v && n > t
            }));
            if let Some(k @ 0..=1) = size_of(&i, "k") {
                seen.ends[usize::try_from(k).expect("an end is a small number")] += 1;
            }
            if seen.all == 200 {
                break;
            }
        }
        let has = |maker| rule.lets.iter().any(|l| l.maker == maker);
        let least = |n: usize, at_least: usize, what: &str| {
            assert!(n >= at_least, "{}: {n} of {} instances {what}", rule.name, seen.all);
        };
        least(seen.all, 200, "at all");
        least(seen.full, 80, "have elements");
        if has(SizeMaker::Round) {
            least(seen.padded, 30, "are padded");
            if has(SizeMaker::Tile) {
                least(seen.short, 10, "are smaller than a tile");
            }
        }
        if has(SizeMaker::Width) {
            least(seen.runs, 20, "have several runs in a tile");
        }
        if rule.name.contains("block") && rule.theme == "tiling" {
            least(seen.ends[0], 1, "reduce nothing");
            least(seen.ends[1], 1, "reduce one element");
        }
    }
}
