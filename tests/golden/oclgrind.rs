//! Runs kernels under oclgrind: there must be no races, no accesses outside arrays, and no divergent barriers.
//! `make check-kernels` runs these tests.

use crate::check::{Case, compile, device, grind, shipped};
use crate::common;
use crate::listings::GOLDEN;
use crate::patterns::LEGAL;
use patsat::device::cost_model::CostModel;
use patsat::device::{DeviceInfo, DeviceKind};
use patsat::diag::{Limits, Source};
use patsat::kernel::{DeviceLimits, Options, lower};
use patsat::lang::types::ScalarType;
use patsat::opencl::host::Inputs;
use patsat::opencl::plan::{Arg, Buffer, HostPlan, Launch, Role};
use patsat::opencl::print::print;
use patsat::rules::RuleSet;
use patsat::session::generate::Generator;
use patsat::session::{Program, Request, Session, Sizes};
use patsat::{extract, saturate};
use std::sync::Arc;

#[test]
fn oclgrind_finds_nothing_in_golden_files() {
    for (name, sizes, _) in GOLDEN {
        let program = shipped(&format!("golden/{name}"));
        // Sizes for two groups, unless that takes minutes.
        let long = matches!(*name, "sum_nvidia" | "sum_amd");
        for s in &sizes[..if long { 1 } else { 2 }] {
            compile(&program, s, &device()).expect("compiles").grind();
        }
    }
}

#[test]
fn oclgrind_finds_nothing_in_patterns() {
    for (text, sizes) in LEGAL {
        let program = Program::check(&Source::new("legal.pat", *text), None).expect("well-typed");
        compile(&program, sizes, &device()).expect("compiles").grind();
    }
}

/// Number of kernels to check for each program and cost model, each with another skeleton.
const BEST: usize = 8;

/// Values for the sizes of a shipped program, by the number of its sizes: enough for several work-groups, not
/// divisible by tiles, and small enough for oclgrind, which interprets every instruction.
fn sizes_of(program: &Program) -> Sizes {
    let sizes = &program.entry.sizes;
    let values: &[u64] = match sizes.len() {
        1 => &[261],
        2 => &[11, 37],
        3 => &[11, 19, 7],
        _ => &[3, 5, 9, 7, 2, 2, 2],
    };
    assert!(sizes.len() <= values.len(), "no sizes for {}", program.entry.name);
    sizes.iter().cloned().zip(values.iter().copied()).collect()
}

/// Two tests share the programs, so that they use two cores.
#[test]
fn oclgrind_finds_nothing_in_shipped_programs() {
    every_second_program(0);
}

#[test]
fn oclgrind_finds_nothing_in_other_shipped_programs() {
    every_second_program(1);
}

/// The best kernels of every second program in the folder, from the `first` on, according to the models of a CPU and of a
/// GPU.
fn every_second_program(first: usize) {
    let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/programs"));
    let paths = folder.expect("programs").map(|file| file.expect("a file").path());
    let mut names: Vec<String> = paths
        .filter(|p| p.extension().is_some_and(|e| e == "pat"))
        .map(|p| p.file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert!(names.len() >= 25, "programs are missing: {names:?}");
    for name in names.into_iter().skip(first).step_by(2) {
        let start = std::time::Instant::now();
        let program = shipped(&name);
        let sizes = sizes_of(&program);
        let request = Request { default: Some(Generator::Normal), sizes, ..Request::default() };
        let mut plans: Vec<Arc<HostPlan>> = vec![];
        let models = CostModel::shipped().expect("shipped models");
        for model in models.into_iter().filter(|m| m.name.starts_with("generic")) {
            let mut session = Session::new().expect("a session");
            session.cost_model = Some(model);
            let found = session.optimize(&program, &request, &mut ()).expect("kernels");
            for best in found.ranking.into_iter().take(BEST) {
                if !plans.contains(&best.variant.plan) {
                    plans.push(best.variant.plan.clone());
                }
            }
        }
        assert!(!plans.is_empty());
        eprintln!(
            "{name} {:?}: {} plans after {:.1?}",
            request.sizes,
            plans.len(),
            start.elapsed()
        );
        Case::stated(&program, &request).grind(&plans);
        eprintln!("  {:.1?}", start.elapsed());
    }
}

/// Work-group tiles of rows, with several rows for each work-item, for all tile sizes and all uses of the results.
#[test]
fn oclgrind_finds_nothing_in_shared_rows() {
    for name in ["nbody", "nn", "mriq"] {
        let program = shipped(name);
        let size = |of: &String| (of.clone(), if of == "n" { 261 } else { 37 });
        let sizes: Sizes = program.entry.sizes.iter().map(size).collect();
        let elaborated = program.elaborate(&sizes).expect("elaborates");
        let rules = RuleSet::shipped().expect("shipped rules");
        let limits = Limits { saturation_time: None, ..Limits::default() };
        let graph = saturate::saturate(&elaborated.forms(), &rules, &limits).expect("sound rules");
        let gpu = gpu();
        let model = CostModel::choose(&gpu).expect("a model").model;
        let found = extract::candidates(&graph, &elaborated.env, &gpu, &model, &limits);
        let mut plans: Vec<Arc<HostPlan>> = vec![];
        for c in found.expect("terms").candidates {
            if c.compact.to_string().contains("spreadRows") && plans.len() < BEST {
                let options = Options::new(name, DeviceLimits::of(&gpu), &limits);
                let kernels = lower(&c.term, &c.env, &options);
                let kernels = kernels.unwrap_or_else(|e| panic!("{}: {e}", c.term));
                plans.push(Arc::new(print(&kernels)));
            }
        }
        assert!(!plans.is_empty(), "{name}: no rows are shared out");
        let request = Request { default: Some(Generator::Normal), sizes, ..Request::default() };
        Case::stated(&program, &request).grind(&plans);
    }
}

/// A GPU with few compute units, so that few rows occupy it.
fn gpu() -> DeviceInfo {
    DeviceInfo { compute_units: 1, vector_width_f32: 1, ..common::device(DeviceKind::Gpu) }
}

/// Tests that oclgrind reports the errors that it should report.
#[test]
fn oclgrind_finds_what_is_wrong() {
    let says = |body: &str| {
        let plan = HostPlan {
            source: format!(
                "kernel void k(global int* restrict out) {{
                    local int t[64];
                    int l = get_local_id(0);
                    {body}
                }}"
            ),
            options: String::new(),
            buffers: vec![Buffer {
                name: "out".into(),
                elem: ScalarType::I32,
                len: 64,
                role: Role::Output(0),
            }],
            scalars: vec![],
            launches: vec![Launch {
                kernel: "k".into(),
                args: vec![Arg::Buffer(0)],
                global: [64, 1, 1],
                local: [64, 1, 1],
            }],
            faults: vec![],
            control: vec![],
        };
        grind(&[Arc::new(plan)], &Inputs::default()).1
    };
    let fence = "barrier(CLK_LOCAL_MEM_FENCE);";
    assert_eq!(says(&format!("t[l] = l; {fence} out[l] = t[63 - l];")), "");
    assert!(says("t[l] = l; out[l] = t[63 - l];").contains("data race"));
    assert!(says("out[0] = 7;").contains("data race"));
    assert!(says("out[l + 1] = 7;").contains("Invalid write"));
    let divergent = format!("if (l < 32) {{ t[l] = l; {fence} }} out[l] = 1;");
    assert!(says(&divergent).contains("divergence"), "{}", says(&divergent));
}
