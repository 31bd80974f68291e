//! The papers' low-level terms are found in the saturated e-graphs of the high-level programs.

use patsat::calculus::elaborate::elaborate;
use patsat::calculus::term::Term;
use patsat::diag::{Limits, Source};
use patsat::saturate::{self, Saturated, StopReason, lookup};
use patsat::session::{Float, Program, Sizes, rule_set};
use std::path::Path;

/// 32 Mi elements, a number: these sets have numbers for tiles.
const N: u64 = 1 << 25;

fn saturated(text: &str, rules: &str) -> Saturated {
    let program = Program::check(&Source::new("program", text), None).expect("a program");
    let term = elaborate(&program.entry, &Sizes::default()).expect("a term").term;
    let rules = rule_set(&[rules], Float::Exact).expect("rules");
    let limits = Limits { saturation_time: None, ..Limits::default() };
    let out = saturate::saturate(&term, &rules, &limits).expect("sound rules");
    assert_eq!(out.report.stop_reason, StopReason::Saturated, "{} nodes", out.report.nodes);
    out
}

/// A golden program as a term, with these sizes.
fn golden(name: &str, sizes: &[(&str, u64)]) -> (Term, patsat::calculus::size::SizeEnv) {
    let path = Path::new("programs/golden").join(name).with_extension("pat");
    let program = Program::load(&path, None).expect("a program");
    let sizes = sizes.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect();
    let program = elaborate(&program.entry, &sizes).expect("a term");
    (program.term, program.env)
}

fn find(graph: &Saturated, name: &str, sizes: &[(&str, u64)]) {
    let (term, env) = golden(name, sizes);
    if let Err(missing) = lookup(graph, &term, &env) {
        panic!("{name}: {term}\n{missing}");
    }
}

fn sum() -> String {
    format!("entry sum (xs: [{N}]f32) : f32 = reduce (+) 0 xs")
}

#[test]
fn reductions_of_the_thesis() {
    let graph = saturated(&sum(), "thesis,warp");
    for listing in ["sum_5_8", "sum_5_9", "sum_5_10", "sum_5_11", "sum_5_12"] {
        find(&graph, listing, &[("n", N)]);
    }
    find(&graph, "sum_5_13", &[("g", N / 1024), ("k", 8)]);
}

#[test]
fn results_of_the_search() {
    let graph = saturated(&sum(), "partials,to-global");
    for name in ["sum_nvidia", "sum_amd", "sum_intel"] {
        find(&graph, name, &[("n", N)]);
    }
}

#[test]
fn vectorised_scaling() {
    let text = format!("entry scal (alpha: f32) (xs: [{N}]f32) : [{N}]f32 = map (* alpha) xs");
    find(&saturated(&text, "partials"), "scal_vector", &[("n", N)]);
}

#[test]
fn fused_sum_of_absolute_values() {
    let text = format!("entry asum (xs: [{N}]f32) : f32 = reduce (+) 0 (map abs xs)");
    find(&saturated(&text, "partials,fusion"), "asum_fused", &[("m", N / 32768), ("k", 32768)]);
}

/// What is not equal is not found.
#[test]
fn other_terms_are_missing() {
    let graph = saturated(&sum(), "partials");
    let (term, env) = golden("sum_5_9", &[("n", N)]);
    assert!(lookup(&graph, &term, &env).is_err());
}
