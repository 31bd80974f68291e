//! Snapshots of terms and kernels of the shipped programs, for fictitious devices, so that nothing depends on the
//! machine or the time. `INSTA_UPDATE=always cargo test` updates them.

mod common;

use common::device;
use indexmap::IndexMap;
use insta::Settings;
use patsat::calculus::elaborate::elaborate;
use patsat::device::DeviceKind;
use patsat::device::cost_model::CostModel;
use patsat::diag::{Limits, Source};
use patsat::kernel::{DeviceLimits, Options, lower, schedule};
use patsat::opencl::print::print;
use patsat::rules::RuleSet;
use patsat::{extract, lang, saturate};

const PROGRAMS: &[(&str, &[(&str, u64)])] = &[
    ("scal", &[("n", 1 << 20)]),
    ("asum", &[("n", 1 << 20)]),
    ("dot", &[("n", 1_000_003)]),
    ("gemv", &[("n", 512), ("m", 1024)]),
    ("gemv_t", &[("n", 4096), ("m", 4096)]),
    ("nrm2", &[("n", 1 << 20)]),
    ("axpy", &[("n", 1000)]),
    ("sumsq", &[("n", 127)]),
    ("chain", &[("n", 1 << 20)]),
    ("blackscholes", &[("n", 1 << 22)]),
    ("md", &[("n", 12_288), ("k", 128)]),
    ("matmul", &[("n", 1000), ("m", 1000), ("k", 1000)]),
    ("gemm", &[("n", 512), ("m", 512), ("k", 512)]),
    ("batched", &[("b", 16), ("n", 64), ("m", 64), ("k", 64)]),
    ("nbody", &[("n", 4096)]),
    ("kmeans", &[("n", 10_000), ("k", 5), ("d", 34)]),
];

/// The programs of which the schedule of the first term is shown, too.
const SCHEDULED: &[&str] = &["asum", "gemv", "matmul"];

/// Returns the program, its five best terms by the additive estimate, and the kernels of the first; and the schedule of
/// these kernels.
fn show(program: &str, sizes: &[(&str, u64)], kind: DeviceKind) -> (String, String) {
    let path = format!("{}/programs/{program}.pat", env!("CARGO_MANIFEST_DIR"));
    let source = Source::new(&path, std::fs::read_to_string(&path).expect("a shipped program"));
    let entry = lang::check_entry(&source, None).expect("well-typed");
    let sizes: IndexMap<String, u64> = sizes.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect();
    let program = elaborate(&entry, &sizes).expect("elaborates");
    let rules = RuleSet::shipped().expect("shipped rules").offered(&[]);
    let limits = Limits { saturation_time: None, ..Limits::default() };
    let graph = saturate::saturate(&program.forms(), &rules, &limits).expect("sound rules");
    assert_eq!(graph.report.stop_reason, saturate::StopReason::Saturated);
    let info = device(kind);
    let model = CostModel::choose(&info).expect("a model").model;
    let found = extract::candidates(&graph, &program.env, &info, &model, &limits)
        .expect("terms")
        .candidates;
    let mut out = format!("{}\n\n", program.term);
    let mut seen: Vec<&str> = vec![];
    for c in &found {
        if seen.len() < 5 && !seen.contains(&c.skeleton.as_str()) {
            seen.push(&c.skeleton);
            let at: Vec<String> = c.env.iter().map(|(s, v)| format!("{s} = {v}")).collect();
            out.push_str(&format!("{}\n  where {}\n", c.term, at.join(", ")));
        }
    }
    let options = Options::new(&entry.name, DeviceLimits::of(&info), &limits);
    let best = &found[0];
    let plan = print(&lower(&best.term, &best.env, &options).expect("lowers"));
    out.push_str(&format!("\n{}", plan.source));
    for l in &plan.launches {
        out.push_str(&format!("// {}: {:?} in groups of {:?}\n", l.kernel, l.global, l.local));
    }
    let schedule = schedule(&best.term, &best.env, &options).expect("lowers");
    (out, format!("{}\n\n{schedule}", best.term))
}

#[test]
fn programs() {
    for (kind, folder) in [(DeviceKind::Cpu, "cpu"), (DeviceKind::Gpu, "gpu")] {
        let mut settings = Settings::clone_current();
        settings.set_snapshot_path(format!("../snapshots/{folder}"));
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.bind(|| {
            for (program, sizes) in PROGRAMS {
                let (text, schedule) = show(program, sizes, kind);
                insta::assert_snapshot!(*program, text);
                if SCHEDULED.contains(program) {
                    insta::assert_snapshot!(format!("{program}-schedule"), schedule);
                }
            }
        });
    }
}
