//! The default rules and the papers' rules saturate on every shipped program, with every capability that rules may
//! require, and the graphs stay small.

use patsat::calculus::elaborate::elaborate;
use patsat::diag::{Limits, Source};
use patsat::rules::Library;
use patsat::saturate::{self, StopReason};
use patsat::session::{Program, Sizes};

/// Most e-nodes that any of these programs may need.
const MOST: usize = 40_000;

/// A matrix product, which is tiled, staged, distributed over work-items, vectorised and packed.
const PRODUCT: &str = "entry mm [n][m][k] (A: [n][k]f32) (B: [k][m]f32) : [n][m]f32 =
  map (\\row -> map (\\col -> reduce (+) 0 (map2 (*) row col)) (transpose B)) A";

#[test]
fn shipped_programs_saturate() {
    let root = env!("CARGO_MANIFEST_DIR");
    let mut texts = vec![("a product of matrices".to_owned(), PRODUCT.to_owned())];
    for file in std::fs::read_dir(format!("{root}/programs")).expect("the programs") {
        let path = file.expect("a file").path();
        if path.extension().is_some_and(|e| e == "pat") {
            let text = std::fs::read_to_string(&path).expect("a program");
            texts.push((path.display().to_string(), text));
        }
    }
    assert!(texts.len() > 8, "{} programs", texts.len());
    let library = Library::shipped().expect("shipped rules");
    let sets = ["default", "published"].map(|s| (s, library.set(s).expect("a shipped set")));
    let limits = Limits { saturation_time: None, ..Limits::default() };
    for (name, text) in texts {
        let program = Program::check(&Source::new(&name, text), None).expect("a program");
        let sizes: Sizes = program.entry.sizes.iter().map(|n| (n.clone(), 4096)).collect();
        let term = elaborate(&program.entry, &sizes).expect("a term").term;
        for (set, rules) in &sets {
            let report = saturate::saturate(std::slice::from_ref(&term), rules, &limits)
                .expect("sound rules")
                .report;
            let nodes = report.nodes;
            println!("{name}, {set}: {nodes} nodes, {:.0} ms", report.ms);
            assert_eq!(report.stop_reason, StopReason::Saturated, "{name}, {set}: {nodes} nodes");
            assert!(nodes <= MOST, "{name}, {set}: {nodes} nodes");
        }
    }
}
