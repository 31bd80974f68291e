//! Errors in the published rules (notes on the papers, section 10): the rules as printed are refused or cannot be
//! stated, and their corrected forms hold.
//!
//! Nesting, memory and barriers (traps 4 to 6, and lock-step warps) are tested on kernels in `tests/golden`. The
//! second kernel of a reduction (trap 8) is tested by every golden program, which computes the sum and not partial
//! sums.

use patsat::calculus::elaborate::elaborate;
use patsat::calculus::term::Op;
use patsat::diag::{Code, Limits, Source};
use patsat::rules::check::{Check, Outcome, check};
use patsat::rules::{Library, RuleSet};
use patsat::saturate::{self, Saturated, StopReason};
use patsat::session::{Float, Program, Sizes, rule_set};

fn rule(text: &str) -> Result<RuleSet, Code> {
    let text =
        format!("set trap\nrule trap\n law exact\n says \"A trap.\"\n from \"print\"\n{text}\n");
    let mut set = RuleSet::default();
    match set.add(&Source::new("trap.rules", text), "trap") {
        Ok(()) => Ok(set),
        Err(failure) => Err(failure.0[0].code),
    }
}

/// Returns whether the rule is refused, taken as an equality up to reassociation.
fn refused(text: &str) -> bool {
    let Ok(set) = rule(text) else { return true };
    let mut all = set.iter().cloned().collect::<Vec<_>>();
    for r in &mut all {
        r.law = patsat::rules::Law::Reassoc;
    }
    all.iter().any(|r| matches!(check(r, Check::default()), Outcome::Broken(_)))
}

fn holds(name: &str) -> bool {
    let all = Library::shipped().expect("shipped rules").all();
    let rule = all.get(name).unwrap_or_else(|| panic!("no rule `{name}`"));
    matches!(check(rule, Check::default()), Outcome::Holds(_))
}

fn saturated(text: &str) -> Saturated {
    let program = Program::check(&Source::new("program", text), None).expect("a program");
    let sizes: Sizes = program.entry.sizes.iter().map(|n| (n.clone(), 4096)).collect();
    let program = elaborate(&program.entry, &sizes).expect("a term");
    let rules = rule_set::<&str>(&[], Float::Exact).expect("rules");
    let limits = Limits { saturation_time: None, ..Limits::default() };
    let out = saturate::saturate(&program.forms(), &rules, &limits).expect("sound rules");
    assert_eq!(out.report.stop_reason, StopReason::Saturated);
    out
}

/// Trap 1: `reorder` chooses a permutation, so it is not an equality.
#[test]
fn reorder_is_a_refinement() {
    assert!(refused("on [n]a\n rewrite reorder => id"));
    assert!(refused("on [n]a\n let s = tile n\n rewrite reorder => reorderStride s"));
    assert!(refused("on [n]a\n let s = tile n\n rewrite id => reorderStride s"));
    assert!(holds("reduce-reorder") && holds("reduce-stride") && holds("reorder-map"));
    // In the graph of a program with `reorder`, no permutation may have become equal to the identity.
    let text =
        "entry f [n] (xs: [n]f32) : f32 = reduce_comm (\\a b -> a + b) 0 (map abs (reorder xs))";
    let graph = saturated(text);
    for class in graph.egraph.classes() {
        let has = |op: fn(&Op) -> bool| class.nodes.iter().any(|n| n.function().is_some_and(op));
        let permutes = has(|o| matches!(o, Op::Stride | Op::Reorder | Op::Reverse | Op::Transpose));
        assert!(!(permutes && has(|o| *o == Op::Id)), "{class:?}");
    }
}

/// Trap 1, second half: partial results may not be permuted, since they may be the sums of a user's rows.
#[test]
fn partial_reductions_keep_their_order() {
    let reordered = "let s = tile n\n on [n]a\n when commutative op\n \
                     rewrite reducePart m op z => reducePart m op z . reorderStride s";
    assert!(refused(reordered));
    assert!(holds("reduce-split-strided") && holds("part-chunks") && holds("part-once"));
}

/// Trap 2: the vectorised reduction is a rule of its own. It interleaves elements, so it holds only for commutative
/// operators.
#[test]
fn vectorised_reduction() {
    let body = "rewrite reduce op z => reduce op z . asScalar . wrap . \
                reduce (vectorize w op) (splat w . z) . asVector w . padTo r z";
    let lets = "on [n]a\n let w = width n, r = round n\n when scalar a, vectorisable op";
    assert!(refused(&format!("{lets}\n {body}")));
    assert!(holds("vectorise-reduce"));
    let sums = |op: &str| {
        let text = format!("entry f [n] (xs: [n]f32) : f32 = reduce ({op}) 0 xs");
        let graph = saturated(&text).egraph;
        let of_vectors =
            |id| graph[id].nodes.iter().any(|n| matches!(n.function(), Some(Op::Vectorize)));
        graph
            .classes()
            .flat_map(|c| &c.nodes)
            .any(|n| matches!(n.function(), Some(Op::Reduce(_))) && of_vectors(n.args()[0]))
    };
    assert!(sums("+"));
    // This operator is only known to be associative.
    assert!(!sums("\\a b -> if a == 0 then b else a"));
}

/// Trap 3: two partial reductions in a row equal a single one, which listings 5.11 to 5.13 need.
#[test]
fn reversed_iterate() {
    assert!(holds("part-twice") && holds("part-once"));
}

/// Trap 7: a sequential fold goes from the left, and is not a reduction.
#[test]
fn folds_go_from_the_left() {
    assert!(refused("on [n]a\n rewrite reduceSeq op z => reduceSeq op z . reverse"));
    let text = "entry f [n] (xs: [n]i32) : i32 = reduceSeq (\\a x -> 2 * a - x) 1 xs";
    let program = Program::check(&Source::new("program", text), None).expect("a program");
    let mut request = patsat::session::Request {
        default: Some(patsat::session::generate::Generator::Iota),
        ..Default::default()
    };
    request.sizes.insert("n".into(), 4);
    let result = patsat::session::eval(&program, &request).expect("a value");
    // ((((1*2 - 0)*2 - 1)*2 - 2)*2 - 3)
    assert_eq!(result.value.to_floats(), [5.0]);
}

/// Trap 10: fusing a function into an operator makes it non-associative, so only sequential reductions are fused.
#[test]
fn fusion_is_for_sequential_reductions() {
    assert!(refused("rewrite reduce op z . map f => reduce (op . bimap id f) z"));
    assert!(holds("reduce-seq-map-fusion"));
    // Fusion in the wrong order.
    assert!(refused("rewrite map f . map g => map (g . f)"));
}

/// The implicit preconditions of the cancellations: equal lengths, and equal widths.
#[test]
fn cancellations_ask_for_equal_lengths() {
    assert!(rule("on [m][j]a\n rewrite split k . join => id").is_err());
    assert!(rule("on [m]<v>a\n rewrite asVector w . asScalar => id").is_err());
    assert!(holds("split-join-cancel") && holds("as-vector-as-scalar"));
}

/// Laws of operators: `reduce` requires an associative operator with a neutral element, which is tested.
#[test]
fn operators_keep_what_they_promise() {
    let laws = |op: &str, z: &str| {
        let text = format!("entry f [n] (xs: [n]f32) : f32 = reduce ({op}) {z} xs");
        let program = Program::check(&Source::new("program", text), None).expect("a program");
        program.check_laws(&[("n".to_owned(), 16)].into_iter().collect())
    };
    assert!(laws("\\a b -> a - b", "0").is_err(), "not associative");
    assert!(laws("\\a b -> (a + b) / 2", "0").is_err(), "not associative");
    assert!(
        laws("\\a b -> a + b", "1").is_ok(),
        "the neutral element is known: 1 is added to the sum"
    );
    assert!(laws("\\a b -> if a == 0 then b else a", "1").is_err(), "not neutral");
    assert!(laws("\\a b -> a + b", "0").is_ok());
    assert!(laws("\\a b -> if a == 0 then b else a", "0").is_ok());
}
