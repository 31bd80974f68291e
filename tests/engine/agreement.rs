//! Random well-typed programs: all terms that saturation makes equal must compute the same result, in the evaluator
//! and as kernels on the CPU. The interpreter of the language is the reference.

use patsat::calculus::arbitrary::{Sample, inputs, random};
use patsat::calculus::elaborate::{self, elaborate};
use patsat::calculus::eval;
use patsat::calculus::interp;
use patsat::calculus::value::{Tolerance, Value, compare, compare_values};
use patsat::device::cost_model::CostModel;
use patsat::device::{Capabilities, DeviceInfo, DeviceKind};
use patsat::diag::Limits;
use patsat::extract::{self, Candidate};
use patsat::kernel::{self, DeviceLimits, Options};
use patsat::opencl::host::{HostArray, Inputs};
use patsat::opencl::runtime::Runtime;
use patsat::rules::RuleSet;
use patsat::{opencl, saturate};
use std::sync::Arc;

/// Returns a fictitious device, so that the candidates do not depend on the machine.
fn made_up(kind: DeviceKind) -> DeviceInfo {
    DeviceInfo {
        index: 0,
        platform: "none".into(),
        name: "none".into(),
        vendor: "none".into(),
        driver: "0".into(),
        opencl_version: "OpenCL 1.2".into(),
        kind,
        compute_units: 2,
        max_work_group_size: 256,
        max_work_item_sizes: [256; 3],
        local_mem_bytes: 32 << 10,
        local_mem_dedicated: false,
        global_mem_bytes: 1 << 30,
        max_alloc_bytes: 1 << 28,
        cache_bytes: 1 << 20,
        vector_width_f32: 8,
        fp64: true,
        fp16: false,
        extensions: vec![],
        capabilities: Capabilities::default(),
    }
}

/// How many candidates of a program are evaluated, evenly chosen. `PATSAT_EVERY` asks for all.
fn most_terms() -> usize {
    if std::env::var_os("PATSAT_EVERY").is_some() { usize::MAX } else { 64 }
}

struct Case {
    sample: Sample,
    program: elaborate::Program,
    candidates: Vec<Candidate>,
    inputs: eval::Inputs,
    expected: Value,
    terms: u64,
}

/// Returns the candidates of a random program; `None` if it uses something that cannot be lowered yet.
fn case(seed: u64, rules: &RuleSet, kind: DeviceKind) -> Option<Case> {
    let limits = Limits {
        nodes: 4_000,
        saturation_time: None,
        skeletons: 12,
        skeletons_per_class: 6,
        assignments: 2,
        ..Limits::default()
    };
    let sample = random(seed);
    let program = elaborate(&sample.entry, &sample.sizes).expect("random programs elaborate");
    let inputs = inputs(&sample.entry, &sample.sizes, seed);
    let values: Vec<Value> =
        sample.entry.params.iter().map(|p| inputs[p.name.as_str()].clone()).collect();
    let expected = interp::run(&sample.entry, &sample.sizes, &values).ok()?;
    let terms = interp::terms(&sample.entry, &sample.sizes);
    let graph = match saturate::saturate(&program.forms(), rules, &limits) {
        Ok(g) => g,
        Err(e) => panic!("seed {seed}: {e}\n{}", program.term),
    };
    let device = made_up(kind);
    let model = CostModel::choose(&device).expect("a model").model;
    let drawn = extract::candidates(&graph, &program.env, &device, &model, &limits).ok()?;
    let candidates = drawn.candidates;
    Some(Case { sample, program, candidates, inputs, expected, terms })
}

#[test]
fn rewritten_terms_agree_with_the_interpreter() {
    let rules = RuleSet::shipped().expect("shipped rules");
    let (mut programs, mut terms) = (0, 0);
    for seed in 0..160 {
        let kind = if seed % 2 == 0 { DeviceKind::Cpu } else { DeviceKind::Gpu };
        let Some(case) = case(seed, &rules, kind) else { continue };
        programs += 1;
        for c in case.candidates.iter().step_by(case.candidates.len().div_ceil(most_terms()).max(1))
        {
            let got = match eval::apply(&c.term, &c.env, &case.inputs, &Value::tuple(vec![])) {
                Ok(v) => v,
                Err(e) => panic!("seed {seed}: {e}\n{}\n{}", case.program.term, c.term),
            };
            let same = compare_values(&case.expected, &got, |t| Tolerance::of(t, case.terms));
            assert!(
                same.ok,
                "seed {seed}: {same:?}\n{}\n{}\n{:?}",
                case.program.term, c.term, c.env
            );
            terms += 1;
        }
    }
    eprintln!("{terms} terms of {programs} programs");
    assert!(programs >= 60, "only {programs} programs have candidates");
}

#[test]
fn kernels_of_random_programs_agree_with_the_interpreter() {
    let rules = RuleSet::shipped().expect("shipped rules");
    let rt = Runtime::open(Some("Portable")).expect("PoCL: apt-get install pocl-opencl-icd");
    let (mut run, mut refused) = (0, vec![]);
    for seed in 1000..1080 {
        let Some(case) = case(seed, &rules, DeviceKind::Cpu) else { continue };
        let Some(c) =
            case.candidates.get(usize::try_from(seed).expect("small") % case.candidates.len())
        else {
            continue;
        };
        let options =
            Options::new(&case.sample.entry.name, DeviceLimits::of(rt.info()), &Limits::default());
        let program = match kernel::lower(&c.term, &c.env, &options) {
            Ok(p) => p,
            Err(d) => {
                refused.push(format!("seed {seed}: {d}\n  {}", c.term));
                continue;
            }
        };
        let plan = Arc::new(opencl::print::print(&program));
        let mut given = Inputs::default();
        for (name, value) in &case.inputs {
            for (k, (ty, bytes)) in value.components().into_iter().enumerate() {
                let array = HostArray::from_bytes(ty, bytes).expect("whole elements");
                given.insert(name.to_string(), k, array);
            }
        }
        let uploaded = rt.upload(&given).expect("uploaded");
        let built = match rt.build(&plan) {
            Ok(b) => b,
            Err(e) => panic!("seed {seed}: {e}\n{}\n{}", c.term, plan.source),
        };
        let prepared = rt.prepare(built, &uploaded).expect("prepared");
        let (_, out) = prepared.check(&rt).expect("ran");
        let bytes: Vec<&[u8]> = out.iter().map(HostArray::bytes).collect();
        let same = compare(&case.expected, &bytes, case.terms);
        assert!(
            same.ok,
            "seed {seed}: {same:?}\n{}\n{}\n{:?}\n{}",
            case.program.term, c.term, c.env, plan.source
        );
        run += 1;
    }
    eprintln!("{run} programs run, {} refused", refused.len());
    for r in &refused {
        eprintln!("{r}");
    }
    assert!(run >= 25, "only {run} programs ran; refused:\n{}", refused.join("\n"));
}
