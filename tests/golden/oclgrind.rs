//! Kernels under oclgrind: no race, no access outside an array, no barrier that some work-items do not
//! reach. `make check-kernels` runs these.

use crate::check::{Case, compile, device, grind, shipped};
use crate::listings::GOLDEN;
use crate::patterns::LEGAL;
use patsat::device::cost_model::CostModel;
use patsat::diag::Source;
use patsat::lang::types::ScalarType;
use patsat::opencl::host::Inputs;
use patsat::opencl::plan::{Arg, Buffer, HostPlan, Launch, Role};
use patsat::session::generate::Generator;
use patsat::session::{Program, Request, Session};
use std::sync::Arc;

#[test]
fn oclgrind_finds_nothing_in_golden_files() {
    for (name, sizes, _) in GOLDEN {
        let program = shipped(&format!("golden/{name}"));
        // Enough for two groups, where that takes no minutes.
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

/// Shipped programs with sizes that tiles do not divide.
const SHIPPED: &[(&str, &[(&str, u64)])] = &[
    ("scal", &[("n", 1003)]),
    ("asum", &[("n", 1003)]),
    ("dot", &[("n", 127)]),
    ("gemv", &[("n", 7), ("m", 130)]),
    ("nrm2", &[("n", 1024)]),
    ("axpy", &[("n", 77)]),
    ("sumsq", &[("n", 513)]),
    ("chain", &[("n", 300)]),
];

#[test]
fn oclgrind_finds_nothing_in_shipped_programs() {
    for (name, sizes) in SHIPPED {
        let program = shipped(name);
        let mut request = Request { default: Some(Generator::Normal), ..Request::default() };
        request.sizes = sizes.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect();
        let mut plans: Vec<Arc<HostPlan>> = vec![];
        let models = CostModel::shipped().expect("shipped models");
        for model in models.into_iter().filter(|m| m.name.starts_with("generic")) {
            let mut session = Session::new().expect("a session");
            session.cost_model = Some(model);
            let found = session.optimize(&program, &request, &mut ()).expect("kernels");
            for best in found.ranking {
                if !plans.contains(&best.variant.plan) {
                    plans.push(best.variant.plan.clone());
                }
            }
        }
        assert!(!plans.is_empty());
        Case::new(&program, &request.sizes.clone().into_iter().collect()).grind(&plans);
    }
}

/// What is looked for is found: oclgrind runs as it should.
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
