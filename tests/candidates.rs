//! Candidates of the shipped programs, built and run on the CPU and compared with the oracle, at
//! sizes that tiles do not divide.

use indexmap::IndexMap;
use patsat::calculus::{elaborate, interp, value};
use patsat::device::cost_model::CostModel;
use patsat::diag::{Limits, Source};
use patsat::kernel::{self, DeviceLimits, Options};
use patsat::lang;
use patsat::opencl::host::{HostArray, Inputs};
use patsat::opencl::runtime::Runtime;
use patsat::rules::RuleSet;
use patsat::session::generate::{Generator, generate};
use patsat::{extract, opencl, saturate};
use std::sync::Arc;

/// Checks every `step`th candidate of the program at these sizes; gives how many were run.
fn check(program: &str, sizes: &[(&str, u64)], step: usize) -> usize {
    let path = format!("{}/programs/{program}.pat", env!("CARGO_MANIFEST_DIR"));
    let source = Source::new(&path, std::fs::read_to_string(&path).expect("a shipped program"));
    let (entry, equal) = lang::check_entry_general(&source, None).expect("well-typed");
    let given: IndexMap<String, u64> = sizes.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect();
    let value =
        |s: &lang::size::Size| s.eval(&|n| given.get(n).and_then(|v| i64::try_from(*v).ok()));
    let all: IndexMap<String, u64> = equal
        .iter()
        .map(|(n, s)| (n.clone(), u64::try_from(value(s).expect("a size")).expect("not negative")))
        .chain(given.clone())
        .collect();
    let term = elaborate::elaborate(&entry, &all).expect("elaborates");
    let rules = RuleSet::shipped().expect("shipped rules");
    let limits = Limits { saturation_time: None, ..Limits::default() };
    let graph = saturate::saturate(&term.term, &rules, &limits).expect("sound rules");
    assert_eq!(graph.report.stop_reason, saturate::StopReason::Saturated, "{program}");

    let rt = Runtime::open(Some("Portable")).expect("PoCL");
    let info = rt.info().clone();
    let model = CostModel::choose(&info).expect("a model").model;
    let found = extract::candidates(&graph, &term.env, &info, &model, &limits).expect("terms");

    let mut inputs = Inputs::default();
    let mut values = vec![];
    for (i, p) in entry.params.iter().enumerate() {
        let shape = interp::shape(&p.ty, &all).expect("a shape");
        let mut parts = vec![];
        for (k, (ty, dims)) in shape.components().into_iter().enumerate() {
            let len = dims.iter().product();
            let array: HostArray =
                generate(Generator::Normal, ty, len, 7, (i * 8 + k) as u64).expect("generated");
            parts.push(array.bytes().to_vec());
            inputs.insert(p.name.clone(), k, array);
        }
        values.push(value::Value::from_bytes(&shape, &parts).expect("a value"));
    }
    let expected = interp::run(&entry, &all, &values).expect("a result");
    let terms = interp::terms(&entry, &all);
    let uploaded = rt.upload(&inputs).expect("uploaded");
    let mut run = 0;
    for c in found.iter().step_by(step) {
        let device = DeviceLimits::of(&info);
        let options = Options::new(program, device, &limits);
        let at = || {
            let env: Vec<String> = c.env.iter().map(|(s, v)| format!("{s}={v}")).collect();
            format!("{program} {sizes:?}\n{}\n{}\n{}", c.skeleton, c.term, env.join(" "))
        };
        let lowered = match kernel::lower(&c.term, &c.env, &options) {
            Ok(p) => p,
            Err(d) => panic!("{d}\n{:?}\n{}", d.notes, at()),
        };
        let plan = Arc::new(opencl::print::print(&lowered));
        let built = rt.build(&plan).unwrap_or_else(|e| panic!("{e}\n{}\n{}", at(), plan.source));
        let prepared = rt.prepare(built, &uploaded).expect("prepared");
        let (_, out) = prepared.check(&rt).expect("ran");
        let bytes: Vec<&[u8]> = out.iter().map(HostArray::bytes).collect();
        let comparison = value::compare(&expected, &bytes, terms);
        assert!(comparison.ok, "{:?}\n{}\n{}\n{:?}", comparison, at(), plan.source, plan.launches);
        run += 1;
    }
    run
}

#[test]
fn asum() {
    for n in [0, 1, 2, 3, 127, 1_000_003] {
        eprintln!("asum {n}: {}", check("asum", &[("n", n)], 97));
    }
}

#[test]
fn dot() {
    for n in [0, 1, 3, 127, 1_000_003] {
        eprintln!("dot {n}: {}", check("dot", &[("n", n)], 101));
    }
}

#[test]
fn scal() {
    for n in [0, 1, 2, 3, 127, 1_000_003] {
        eprintln!("scal {n}: {}", check("scal", &[("n", n)], 11));
    }
}

#[test]
fn gemv() {
    for (n, m) in [(0, 3), (3, 0), (1, 1), (7, 127), (127, 7), (100, 1000)] {
        eprintln!("gemv {n} {m}: {}", check("gemv", &[("n", n), ("m", m)], 97));
    }
}
