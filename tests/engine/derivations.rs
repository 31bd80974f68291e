//! Derivations: those of larger rules from smaller ones, and those of the best terms of every shipped program. Each
//! step of the latter is confirmed on terms and tested in the interpreter.

use patsat::calculus::term::{Op, Term};
use patsat::diag::Limits;
use patsat::rules::{Library, RuleSet, derivation};
use patsat::saturate::explain::{Derivation, Explainer, StepLaw};
use patsat::saturate::{lookup, saturate};
use patsat::session::generate::Generator;
use patsat::session::{Program, Request, Session, Sizes, replay};
use std::path::Path;

fn request(program: &Program, n: u64) -> Request {
    let sizes: Sizes = program.entry.sizes.iter().map(|s| (s.clone(), n)).collect();
    Request { sizes, default: Some(Generator::Normal), ..Request::default() }
}

/// Checks that each step starts where the previous one ended, and was confirmed.
fn holds(d: &Derivation, what: &str) {
    let mut at = &d.start;
    for s in &d.steps {
        assert_eq!(*at, s.before.term, "{what}: {}", s.rule);
        assert!(s.holds(), "{what}: {s:?}");
        at = &s.after.term;
    }
}

#[test]
fn best_terms_of_every_other_program() {
    best_terms(0);
}

#[test]
fn best_terms_of_the_programs_between() {
    best_terms(1);
}

/// Checks half of the programs. The two halves run on two cores.
fn best_terms(half: usize) {
    // PATSAT_EVERY=1 checks every term whose kernels the model ranks.
    let most = if std::env::var_os("PATSAT_EVERY").is_some() { usize::MAX } else { 4 };
    let session = Session::new().expect("the shipped rules");
    let root = env!("CARGO_MANIFEST_DIR");
    let mut programs = 0;
    let mut paths: Vec<_> = std::fs::read_dir(format!("{root}/programs"))
        .expect("the programs")
        .map(|f| f.expect("a file").path())
        .filter(|p| p.extension().is_some_and(|e| e == "pat"))
        .collect();
    paths.sort_unstable();
    for path in paths.into_iter().skip(half).step_by(2) {
        let program = Program::load(&path, None).expect("a program");
        let request = request(&program, 4096);
        let optimized = session.optimize(&program, &request, &mut ()).expect("kernels");
        let rules = session.rules.offered(&optimized.device.capabilities.names());
        let mut explainer =
            Explainer::new(&optimized.forms, &rules, &session.limits).expect("sound rules");
        let mut laws = vec![];
        for (rank, b) in optimized.ranking.iter().take(most).enumerate() {
            let what = format!("{} {rank}: {}", path.display(), b.variant.term);
            let v = &b.variant;
            let compact = v.compact.as_ref().expect("a term from the graph");
            let d = explainer.derive_candidate(compact, &v.term, &v.env).expect("a derivation");
            // Before the final choice of numbers, the derivation reaches the term from which kernels are generated.
            let last = d.steps.iter().rfind(|s| s.law != StepLaw::Choice);
            let last = last.map(|s| of_one_stage(&s.after.term));
            assert_eq!(last, Some(of_one_stage(&v.term)), "{what}");
            holds(&d, &what);
            let replayed = replay(&program, &request, &d).expect("small sizes");
            assert!(replayed.ok() && !replayed.rounds.is_empty(), "{what}: {replayed:?}");
            laws.extend(d.steps.iter().map(|s| s.law));
            // The text of the term must lead to the same derivation. This excludes vectorised loops: the graph
            // holds them in expanded form, which cannot be found from the text.
            let mut rows = false;
            compact.visit(&mut |t| {
                rows |= *t.op() == Op::Vectorize && t.definition().is_ok_and(|long| long.is_some());
            });
            // A known limitation: for vectors in a tile, the text leads to another form of the same class.
            let staged = of_one_stage(&v.term) != v.term.to_string();
            if !rows && !staged && !vectors_in_a_tile(compact) {
                let written = explainer.derive_written(&v.term).expect("a derivation");
                assert_eq!(written.goal(), &v.term, "{what}");
            }
        }
        assert!(laws.contains(&StepLaw::Choice), "{}", path.display());
        programs += 1;
    }
    assert!(programs >= 8, "{programs}");
}

/// Returns the text of a term in which all stages have the same symbols, as in the graph: `n.t0` for `n'1.t0`.
fn of_one_stage(t: &Term) -> String {
    let text = t.to_string();
    let mut parts = text.split('\'');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| all + part.trim_start_matches(|c: char| c.is_ascii_digit()))
}

fn vectors_in_a_tile(compact: &Term) -> bool {
    let (mut tile, mut vector) = (false, false);
    compact.visit(&mut |t| {
        tile |= matches!(t.op(), Op::Blocked(_) | Op::BlockedRows);
        vector |= *t.op() == Op::Vectorize;
    });
    tile && vector
}

#[test]
fn a_wrong_rule_is_found_in_the_derivation() {
    let text = "rule backwards\n  law exact\n  says \"Wrong.\"\n  from \"nowhere\"\n  rewrite reverse => id\n";
    let mut session = Session::new().expect("the shipped rules");
    let source = patsat::diag::Source::new("wrong.rules", text);
    session.rules.add(&source, "wrong").expect("a well-typed rule");
    let program = "entry f [n] (xs: [n]f32) : [n]f32 = map (* 2) (reverse xs)";
    let program =
        Program::check(&patsat::diag::Source::new("f.pat", program), None).expect("right");
    let request = request(&program, 1000);
    let e = session.explain(&program, &request, None, &mut ()).expect("a derivation");
    assert!(e.derivation.uses("backwards") && e.derivation.holds());
    let replayed = replay(&program, &request, &e.derivation).expect("small sizes");
    for (step, check) in e.derivation.steps.iter().zip(&replayed.steps) {
        assert_eq!(check.ok, step.rule != "backwards", "{}: {}", step.rule, check.says);
    }
    assert!(!replayed.ok());
    // With the shipped rules alone, nothing is wrong.
    let plain = Session::new().expect("the shipped rules");
    let e = plain.explain(&program, &request, None, &mut ()).expect("a derivation");
    assert!(replay(&program, &request, &e.derivation).expect("small sizes").ok());
}

#[test]
fn a_derivation_of_nothing_is_empty() {
    let program =
        Program::load(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/programs/asum.pat")), None);
    let program = program.expect("a program");
    let request = request(&program, 64);
    let term = program.elaborate(&request.sizes).expect("a term").term;
    let rules = RuleSet::shipped().expect("the shipped rules");
    let limits = Limits::default();
    let d = patsat::saturate::explain::explain(&term, &term, &rules, &limits).expect("equal");
    assert!(d.steps.is_empty() && d.goal() == &d.start);
    let replayed = replay(&program, &request, &d).expect("small sizes");
    assert!(replayed.ok() && replayed.steps.is_empty());
}

/// The rules of the default set that split, vectorise or tile and are not derived from smaller ones: interchanges
/// of a loop and a map, and mappings to the hardware.
const PRIMITIVE: [&str; 22] = [
    "reduce-interleave",
    "reduce-columns",
    "spread-fragments",
    "spread-fragments-then",
    "spread-fragments-with",
    "spread-half-fragments",
    "spread-half-fragments-then",
    "spread-half-fragments-with",
    "spread-bfloat-fragments",
    "spread-bfloat-fragments-then",
    "spread-bfloat-fragments-with",
    "spread-byte-fragments",
    "spread-byte-fragments-then",
    "spread-byte-fragments-with",
    "fold-interleave",
    "to-private",
    "lower-maps-global",
    "lower-maps-workgroup",
    "lower-maps-global-of-views",
    "lower-maps-workgroup-of-views",
    "lower-batch-global",
    "lower-batch-workgroup",
];

#[test]
fn larger_rules_are_made_of_smaller_ones() {
    let library = Library::shipped().expect("the shipped rules");
    let all = library.all();
    let mut without = vec![];
    for theme in ["split", "vectorise", "tiling"] {
        let rules = library.theme(theme).expect("a theme");
        let own = rules.iter().filter(|r| r.derivation.is_empty());
        without.extend(own.map(|r| r.name.clone()));
    }
    assert_eq!(without, PRIMITIVE);
    // Each rule must be derivable from rules before it in some order, so that no rule is derived from itself.
    let mut known: Vec<&str> =
        all.iter().filter(|r| r.derivation.is_empty()).map(|r| r.name.as_str()).collect();
    let mut rest: Vec<_> = all.iter().filter(|r| !r.derivation.is_empty()).collect();
    while !rest.is_empty() {
        let ready = |r: &&&patsat::rules::Rule| {
            r.derivation.iter().all(|s| known.contains(&s.rule.as_str()))
        };
        let next: Vec<_> = rest.iter().filter(ready).copied().collect();
        let names = || rest.iter().map(|r| &r.name).collect::<Vec<_>>();
        assert!(!next.is_empty(), "each of these is derived of another of them: {:?}", names());
        for rule in &next {
            derivation::replay(rule, &all).unwrap_or_else(|e| panic!("{e}"));
        }
        known.extend(next.iter().map(|r| r.name.as_str()));
        rest.retain(|r| !known.contains(&r.name.as_str()));
    }
}

#[test]
fn definitions_are_those_of_the_calculus() {
    let all = Library::shipped().expect("the shipped rules").all();
    let mut seen = 0;
    for rule in all.iter().filter(|r| r.name.ends_with("-definition")) {
        let Some(long) = rule.lhs.definition().expect("well-typed") else { continue };
        assert_eq!(long.flat(), rule.rhs.flat(), "{}", rule.name);
        seen += 1;
    }
    assert_eq!(seen, 14);
}

#[test]
fn small_rules_are_not_in_the_default_set() {
    let library = Library::shipped().expect("the shipped rules");
    let default = RuleSet::shipped().expect("the shipped rules");
    for theme in ["primitive", "pairs"] {
        for rule in library.theme(theme).expect("a theme").iter() {
            assert!(default.get(&rule.name).is_none(), "{}", rule.name);
        }
    }
}

/// A tiled product with staged blocks is derived from the plain one, both as the graph has it and expanded.
#[test]
fn a_tiled_product_is_derived() {
    product_is_derived("toLocal", &["stage-rows", "stage-columns"]);
}

/// The same with double buffering: the next blocks are loaded while the current ones are used.
#[test]
fn a_product_loaded_ahead_is_derived() {
    product_is_derived("toLocalAhead", &["stage-ahead"]);
}

fn product_is_derived(staging: &str, by: &[&str]) {
    let text = "entry mm [n][m][k] (A: [n][k]f32) (B: [k][m]f32) : [n][m]f32 =
        map (\\row -> map (\\col -> reduce (+) 0 (map2 (*) row col)) (transpose B)) A";
    let program = Program::check(&patsat::diag::Source::new("mm.pat", text), None).expect("right");
    let request = request(&program, 1024);
    let elaborated = program.elaborate(&request.sizes).expect("a term");
    let rules = RuleSet::shipped().expect("the shipped rules");
    let limits = Limits { saturation_time: None, ..Limits::default() };
    let graph = saturate(&elaborated.forms(), &rules, &limits).expect("sound rules");
    let sought = r"tiled 64 64 1024 1024 id id (mapWrg 1 (mapWrg 0 (
        blocked 16 1024 (STAGING id) (STAGING id) (mapLcl 0 (mapSeq (foldSeq (
        \(c, (i, (a, b))) -> if i then c + a * b else c)))) 0.0 id))) . fork A (transpose . B)";
    let sought = sought.replace("STAGING", staging);
    let source = patsat::diag::Source::new("term", sought);
    let sought = lookup::read(&source, &elaborated).expect("a term");
    let found = lookup(&graph, &sought, &elaborated.env).expect("there").term;
    let mut explainer = Explainer::new(&elaborated.forms(), &rules, &limits).expect("sound rules");
    let short = explainer.derive_written(&found).expect("a derivation");
    holds(&short, "tiled");
    for rule in [&["cross-tile", "cross-block"], by].concat() {
        assert!(short.uses(rule), "{rule}");
    }
    let long = found.unpacked().expect("definitions").flat().expect("well-typed");
    let written = explainer.derive_written(&long).expect("a derivation");
    holds(&written, "written out");
    assert_eq!(written.goal(), &long);
    let replayed = replay(&program, &request, &written).expect("small sizes");
    assert!(replayed.ok() && !replayed.rounds.is_empty(), "{replayed:?}");
}
