//! Loops of the host that one launch runs.

use super::*;
use crate::calculus::size::Sym;
use crate::calculus::text::{Context, parse_type, read_term};
use crate::diag::Source;
use crate::opencl::plan::Control;

/// The term with this text.
pub(super) fn of(text: &str, inputs: &[(&str, &str)]) -> Term {
    let ty = |text: &str| parse_type(&Source::new("t", text), 0..text.len()).expect("a type");
    let inputs = inputs.iter().map(|(n, t)| ((*n).to_owned(), ty(t))).collect();
    read_term(&Source::new("f", text), &Ty::Unit, &Context { inputs, variables: None })
        .expect("a term")
}

/// Runs the loop of a term in one work-group, and compares the result. Returns the plan.
fn in_one_launch(t: &Term, inputs: &[(&str, Value)]) -> HostPlan {
    let by_host = check(t, inputs);
    let plan = check_with(t, &SizeEnv::from_iter([(Sym::of_loop(0), 1)]), inputs);
    assert!(plan.launches.len() <= by_host.launches.len(), "{}", plan.source);
    let in_loops = |plan: &HostPlan| {
        let mut depth = 0;
        plan.control.iter().any(|c| {
            match c {
                Control::Repeat(_) | Control::RepeatGiven { .. } => depth += 1,
                Control::End => depth -= 1,
                _ => {}
            }
            depth > 0 && matches!(c, Control::Launch(_))
        })
    };
    assert!(in_loops(&by_host) && !in_loops(&plan), "{:?}", plan.control);
    plan
}

#[test]
fn states_are_exchanged_in_a_launch() {
    // An element becomes the sum of itself and the one opposite, so there are two buffers. With an even number of steps, the
    // result is where the first state was, with an odd one where it was not.
    for n in [20, 21] {
        let step = "mapGlb 0 ((\\x -> 0.5 * x) . (+)) . zip . fork fst (reverse . fst)";
        let text = format!("foldSeq ({step}) . fork xs (iota {n} i32 . bang)");
        let t = of(&text, &[("xs", "[70]f32")]);
        let plan = in_one_launch(&t, &[("xs", floats(&[70]))]);
        assert!(plan.source.contains("other"), "{}", plan.source);
    }
}

#[test]
fn work_groups_follow_each_other() {
    // Five work-groups of 32, with local memory and barriers, and a kernel of single work-items between them.
    let group = "mapLcl 0 (\\x -> x + 1.0) . reverse . toLocal (mapLcl 0 (\\x -> 0.5 * x))";
    let step = format!(
        "mapGlb 0 (+) . zip . fork id reverse . join . mapWrg 0 ({group}) . split 32 . fst"
    );
    let text = format!("foldSeq ({step}) . fork xs (iota 18 i32 . bang)");
    let t = of(&text, &[("xs", "[160]f32")]);
    let plan = in_one_launch(&t, &[("xs", floats(&[160]))]);
    assert!(plan.source.contains("get_local_id(0)"), "{}", plan.source);
}

#[test]
fn groups_of_different_sizes_are_run_by_one() {
    let group = |n: usize| {
        format!(
            "join . mapWrg 0 (mapLcl 0 (\\x -> x + 1.0) . reverse . toLocal (mapLcl 0 (\\x -> 0.5 * x))) . split {n}"
        )
    };
    let text =
        format!("foldSeq ({} . {} . fst) . fork xs (iota 18 i32 . bang)", group(64), group(16));
    let t = of(&text, &[("xs", "[128]f32")]);
    let plan = in_one_launch(&t, &[("xs", floats(&[128]))]);
    // Work-items that the smaller groups do not have store nothing.
    assert!(plan.source.contains("if (works)"), "{}", plan.source);
}

#[test]
fn a_launch_finds_out_that_a_loop_has_ended() {
    let condition = "(\\x -> x > 0.02) . index . fork fst (0 . bang)";
    let step = "mapGlb 0 (\\(x, y) -> 0.25 * x + 0.125 * y) . zip . fork id reverse . fst";
    for factor in ["1.0", "4.0", "16.0"] {
        let start = format!("mapGlb 0 (\\x -> {factor} * abs x + 1.0) . xs");
        let text = format!("loopWhile ({condition}) ({step}) . fork ({start}) bang");
        let t = of(&text, &[("xs", "[40]f32")]);
        let plan = in_one_launch(&t, &[("xs", floats(&[40]))]);
        assert!(plan.source.contains("break"), "{}", plan.source);
    }
}

#[test]
fn scans_of_any_length_are_cut_into_even_runs() {
    for (n, members) in [(77, 8), (2049, 128), (64, 8), (5, 8)] {
        let text = format!(
            "the . mapWrg 0 (scanLcl {members} (+) 0.0 id . fork (0.0 . bang) id) . wrap . xs"
        );
        check(&of(&text, &[("xs", &format!("[{n}]f32"))]), &[("xs", floats(&[n]))]);
        let text = text.replace("scanLcl", "scanExclusiveLcl");
        check(&of(&text, &[("xs", &format!("[{n}]f32"))]), &[("xs", floats(&[n]))]);
    }
}
