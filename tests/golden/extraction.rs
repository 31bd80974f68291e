//! Warps and lanes in the e-graph: rules may introduce them, and extraction places them only where they are legal.

use crate::check::{cpu, device};
use indexmap::IndexMap;
use patsat::calculus::elaborate::elaborate;
use patsat::device::cost_model::CostModel;
use patsat::diag::{Limits, Source};
use patsat::kernel::{Options, check_nesting, lower};
use patsat::opencl::print::print;
use patsat::rules::RuleSet;
use patsat::{extract, lang, saturate};

const RULES: &str = "
rule lower-map-warp
  law exact
  says \"A map may run over the warps of a work-group.\"
  from \"thesis, equation 5.9\"
  when computes f
  rewrite map f => mapWarp f
  example map abs : [4]f32

rule lower-map-lane
  law exact
  says \"A map may run over the lanes of a warp.\"
  from \"thesis, equation 5.9\"
  when computes f
  rewrite map f => mapLane f
  example map abs : [4]f32
";

#[test]
fn warps_are_extracted_where_they_may_stand() {
    let text = "entry f (a: [4][6][32]f32) : [4][6][32]f32 = map (map (map (\\x -> x * x + 1))) a";
    let entry = lang::check_entry(&Source::new("f.pat", text), None).expect("well-typed");
    let program = elaborate(&entry, &IndexMap::new()).expect("elaborates");
    let mut rules = RuleSet::shipped().expect("shipped rules").offered(&[]);
    rules.add(&Source::new("warp.rules", RULES), "warp").expect("well-formed rules");
    let limits = Limits { saturation_time: None, skeletons: 4096, ..Limits::default() };
    let graph = saturate::saturate(&program.forms(), &rules, &limits).expect("sound rules");
    assert_eq!(graph.report.stop_reason, saturate::StopReason::Saturated);
    let info = cpu().info().clone();
    let model = CostModel::choose(&info).expect("a model").model;
    let found = extract::candidates(&graph, &program.env, &info, &model, &limits)
        .expect("terms")
        .candidates;
    assert!(found.iter().all(|c| check_nesting(&c.term).is_ok()));
    let warps = found.iter().find(|c| c.term.to_string().contains("mapWrg 0 (mapWarp (mapLane"));
    let skeletons: Vec<&str> = found.iter().map(|c| c.skeleton.as_str()).collect();
    let c = warps.unwrap_or_else(|| panic!("{skeletons:#?}"));
    let options = Options::new("f", device(), &limits);
    let source = print(&lower(&c.term, &c.env, &options).expect("lowers")).source;
    assert!(source.contains("192 * g0 + 32 * warp + lane"), "{source}");
}
