use super::derivation::{narrow, step};
use super::path::Move;
use super::shorten::shorten;
use super::*;
use crate::calculus::position::Position;
use crate::calculus::text::{Context, parse_type, read_term};
use crate::diag::Source;
use crate::rules::Facts;
use crate::saturate::run::tests::program;

const XS: &[(&str, &str)] = &[("xs", "[n]f32")];

fn rules() -> RuleSet {
    RuleSet::shipped().expect("shipped rules")
}

fn limits() -> Limits {
    Limits { saturation_time: None, ..Limits::default() }
}

fn explainer(text: &str, inputs: &[(&str, &str)]) -> Explainer {
    Explainer::new(&[program(text, inputs)], &rules(), &limits()).expect("sound rules")
}

/// A move between two programs over `xs` that changes everything but `xs` itself.
fn a_move(rewrite: &str, before: &str, after: &str) -> Move {
    let (before, after) = (program(before, XS), program(after, XS));
    let at = |t: &Term| Position { path: vec![], factors: 0..t.chain().len() - 1 };
    let (old, new) = (at(&before), at(&after));
    Move { rewrite: rewrite.to_owned(), backwards: false, before, after, old, new }
}

fn nothing(_: &Term) -> Facts {
    Facts::default()
}

#[test]
fn derivations_go_from_start_to_goal() {
    let mut e = explainer("reduce (+) 0.0 . map abs . xs", XS);
    let goal = program("reduceSeq ((+) . bimap id abs) 0.0 . xs", XS);
    let d = e.derive(&goal).expect("it is in the graph");
    let rules: Vec<&str> = d.steps.iter().map(|s| s.rule.as_str()).collect();
    assert_eq!(rules, ["lower-reduce-seq", "reduce-seq-map-fusion"]);
    assert!(d.holds() && d.goal() == &goal && d.uses("lower-reduce-seq") && !d.uses("map-fusion"));
    let last = &d.steps[1];
    assert_eq!(last.before.marked("[", "]"), "[reduceSeq (+) 0.0 . map abs] . xs");
    assert_eq!(last.after.marked("[", "]"), "[reduceSeq ((+) . bimap id abs) 0.0] . xs");
    assert_eq!(
        (last.place.as_str(), last.law.to_string().as_str()),
        ("1st to 2nd factor", "exact")
    );
    let json = serde_json::to_value(&d).expect("a value");
    assert_eq!(json["start"], "reduce (+) 0.0 . map abs . xs");
    assert_eq!(json["steps"][1]["after"]["part"], "reduceSeq ((+) . bimap id abs) 0.0");
    assert_eq!(json["steps"][1]["direction"], "forwards");
    // From the other end, every rule is read backwards.
    let mut e = explainer("reduceSeq ((+) . bimap id abs) 0.0 . xs", XS);
    assert!(e.derive(&program("reduce (+) 0.0 . map abs . xs", XS)).is_err());
}

#[test]
fn what_is_not_derived_is_said() {
    let mut e = explainer("map abs . xs", XS);
    let failure = e.derive(&program("map sqrt . xs", XS)).expect_err("another function");
    assert_eq!(failure.0[0].code, Code::NotDerived);
    assert!(failure.0[0].notes.iter().any(|n| n == "nowhere in it is: sqrt"), "{failure:?}");
    let part = e.derive(&program("xs", XS)).expect_err("only a part of the program");
    assert!(part.0[0].notes.iter().any(|n| n.contains("not known to be equal")), "{part:?}");
    let few = Limits { explanation_steps: 1, ..limits() };
    let mut e = Explainer::new(&[program("map abs . map sqrt . xs", XS)], &rules(), &few)
        .expect("sound rules");
    let goal = program("mapGlb 0 (abs . sqrt) . xs", XS);
    assert_eq!(e.derive(&goal).expect_err("two steps").0[0].code, Code::NotDerived);
}

#[test]
fn written_out_terms_are_found() {
    let mut e = explainer("map abs . xs", XS);
    let goal = program("take n . join . mapGlb 0 (mapSeq abs) . split n.t0 . padLast n^ . xs", XS);
    assert!(!e.knows(&goal));
    let d = e.derive_written(&goal).expect("short for it is in the graph");
    assert_eq!((d.goal(), d.steps.last().map(|s| s.law)), (&goal, Some(StepLaw::Definition)));
    assert!(d.holds());
    let short = program("chunked n.t0 n^ (mapGlb 0 (mapSeq abs)) . xs", XS);
    assert_eq!(e.derive_written(&short).expect("as it is").goal(), &short);
    assert!(e.derive_written(&program("map abs . map abs . xs", XS)).is_err());
}

#[test]
fn steps_are_checked_without_the_graph() {
    let rules = rules();
    let right = a_move("map-fusion/chain", "map abs . map sqrt . xs", "map (abs . sqrt) . xs");
    let s = step(&narrow(&right, &rules).expect("a rule"), &rules, &nothing).expect("a rule");
    assert!(s.holds());
    let wrong = a_move("map-fusion/chain", "map abs . map sqrt . xs", "map (sqrt . abs) . xs");
    let s = step(&narrow(&wrong, &rules).expect("a rule"), &rules, &nothing).expect("a rule");
    assert!(!s.matched && !s.holds());
    // The rule matches, but its side conditions are evaluated again.
    let unheard = "lower-map-unroll";
    let long = a_move(unheard, "map abs . xs", "mapUnroll abs . xs");
    let s = step(&long, &rules, &nothing).expect("a rule");
    assert!(s.matched && !s.holds());
    let verdicts: Vec<(String, bool)> =
        s.conditions.iter().map(|c| (c.condition.to_string(), c.holds)).collect();
    assert_eq!(verdicts, [("computes f".to_owned(), true), ("small n".to_owned(), false)]);
    assert!(step(&a_move("no-such-rule", "xs", "xs"), &rules, &nothing).is_err());
}

#[test]
fn facts_of_equal_functions_count() {
    let text = "reduce (\\(a, b) -> a * 0.0 + b) 0.0 . xs";
    let goal = "reduce (\\(a, b) -> a * 0.0 + b) 0.0 . map (reduce (\\(a, b) -> a * 0.0 + b) 0.0) \
                . transpose . split n.t0 . padTo n^ 0.0 . xs";
    let m = a_move("reduce-split-strided", text, goal);
    let commutative = |_: &Term| Facts { commutative: true, ..Facts::default() };
    assert!(!step(&m, &rules(), &nothing).expect("a rule").holds());
    let s = step(&m, &rules(), &commutative).expect("a rule");
    assert!(s.holds() && s.conditions[1].values.ends_with("an equal function shows it"), "{s:?}");
}

#[test]
fn detours_are_left_out() {
    let terms = [
        "map abs . map sqrt . xs",
        "map (id . abs) . map sqrt . xs",
        "map (id . abs) . mapSeq sqrt . xs",
        "map abs . mapSeq sqrt . xs",
    ];
    let terms = terms.map(|t| program(t, XS));
    let at = |path: &[(usize, usize)], factors| Position { path: path.to_vec(), factors };
    let m = |i: usize, backwards, old: Position, new: Position| Move {
        rewrite: String::new(),
        backwards,
        before: terms[i].clone(),
        after: terms[i + 1].clone(),
        old,
        new,
    };
    // The parser drops identities, so put one in by hand.
    let with_id = |t: &Term| {
        let abs = program("map abs . xs", XS).chain()[0].args()[0].clone();
        let pair = Term::of_chain(&[Term::id(&abs.ty().cod), abs]).expect("well-typed");
        at(&[(0, 0)], 0..1).replace(t, &pair.chain()).expect("well-typed")
    };
    let mut moves = vec![
        m(0, true, at(&[(0, 0)], 0..1), at(&[(0, 0)], 0..2)),
        m(1, false, at(&[], 1..2), at(&[], 1..2)),
        m(2, false, at(&[(0, 0)], 0..2), at(&[(0, 0)], 0..1)),
    ];
    moves[0].after = with_id(&terms[0]);
    moves[1].before = moves[0].after.clone();
    moves[1].after = with_id(&terms[3]);
    moves[2].before = moves[1].after.clone();
    let short = shorten(moves.clone());
    assert_eq!(short.len(), 1);
    assert_eq!((&short[0].before, &short[0].after), (&terms[0], &terms[3]));
    // The detour is kept if a change around it depends on it.
    moves[1].old = at(&[], 0..2);
    moves[1].new = at(&[], 0..2);
    assert_eq!(shorten(moves).len(), 3);
}

#[test]
fn terms_are_not_passed_twice() {
    let there = a_move("x", "map abs . xs", "mapSeq abs . xs");
    let back = Move {
        backwards: true,
        before: there.after.clone(),
        after: there.before.clone(),
        old: there.new.clone(),
        new: there.old.clone(),
        ..there.clone()
    };
    let on = a_move("x", "map abs . xs", "mapGlb 0 abs . xs");
    let short = shorten(vec![there, back, on.clone()]);
    assert_eq!((short.len(), &short[0].after), (1, &on.after));
}

#[test]
fn why_a_rule_plays_no_part() {
    let e = explainer("reduce (\\(a, b) -> a * 0.0 + b) 0.0 . map abs . xs", XS);
    let rules = rules();
    let why = |name: &str| e.why_not(rules.get(name).expect("a rule")).expect("typed");
    match why("reduce-split") {
        Outcome::Applied { times, sites } => {
            assert!(times >= 1 && sites.len() <= 3);
            assert!(sites[0].part.marked("[", "]").starts_with("[reduce "), "{sites:?}");
        }
        other => panic!("{other:?}"),
    }
    match why("reduce-split-strided") {
        Outcome::Condition { times, nearest, conditions } => {
            assert!(times >= 1);
            assert_eq!(nearest.place, "1st factor");
            let fails: Vec<String> = conditions
                .iter()
                .filter(|c| !c.holds)
                .map(|c| format!("{} fails: {}", c.condition, c.values))
                .collect();
            assert_eq!(fails, ["commutative op fails: op is \\(a, b) -> a * 0.0 + b"]);
        }
        other => panic!("{other:?}"),
    }
    match why("as-vector-map") {
        Outcome::Structure { matched, of, nearest, found, .. } => {
            assert!(matched < of && nearest.is_some() && !found.is_empty());
        }
        other => panic!("{other:?}"),
    }
    match why("reverse-reverse") {
        Outcome::Structure { matched: 0, of: 2, nearest: None, expected, .. } => {
            assert_eq!(expected, "reverse");
        }
        other => panic!("{other:?}"),
    }
    let json = serde_json::to_value(why("reduce-split-strided")).expect("a value");
    assert_eq!(json["outcome"], "condition");
    assert!(json["nearest"]["term"].is_string() && json["nearest"]["place"].is_string());
}

#[test]
fn why_sizes_do_not_go_together() {
    // Rules that only state what holds: nothing is rewritten.
    let none = RuleSet::default();
    let start = program("join . split 3 . join . split 2 . xs", &[("xs", "[12]f32")]);
    let e = Explainer::new(&[start], &none, &limits()).expect("sound rules");
    let rules = rules();
    match e.why_not(rules.get("split-join-cancel").expect("a rule")).expect("typed") {
        Outcome::Mismatch { nearest, differs } => {
            assert!(nearest.part.marked("[", "]").contains("[split 3 . join]"), "{nearest:?}");
            assert!(differs.contains('2') && differs.contains('3'), "{differs}");
        }
        other => panic!("{other:?}"),
    }
    let dom = parse_type(&Source::new("type", "f32"), 0..3).expect("a type");
    let two = read_term(&Source::new("term", "fork abs sqrt"), &dom, &Context::default());
    let e = Explainer::new(&[two.expect("a term")], &none, &limits()).expect("sound rules");
    match e.why_not(rules.get("fork-projections").expect("a rule")).expect("typed") {
        Outcome::Structure { matched: 1, of: 3, expected, found, .. } => {
            assert_eq!((expected.as_str(), found), ("fst", vec!["abs".to_owned()]));
        }
        other => panic!("{other:?}"),
    }
}
