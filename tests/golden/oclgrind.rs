//! Kernels under oclgrind: no race, no access outside an array, no barrier that some work-items do not
//! reach. `make check-kernels` runs these.

use crate::check::{compile, device, grind, shipped};
use crate::listings::GOLDEN;
use crate::patterns::LEGAL;
use patsat::diag::Source;
use patsat::lang::types::ScalarType;
use patsat::opencl::host::Inputs;
use patsat::opencl::plan::{Arg, Buffer, HostPlan, Launch, Role};
use patsat::session::Program;
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
        grind(&Arc::new(plan), Inputs::default()).1
    };
    let fence = "barrier(CLK_LOCAL_MEM_FENCE);";
    assert_eq!(says(&format!("t[l] = l; {fence} out[l] = t[63 - l];")), "");
    assert!(says("t[l] = l; out[l] = t[63 - l];").contains("data race"));
    assert!(says("out[0] = 7;").contains("data race"));
    assert!(says("out[l + 1] = 7;").contains("Invalid write"));
    let divergent = format!("if (l < 32) {{ t[l] = l; {fence} }} out[l] = 1;");
    assert!(says(&divergent).contains("divergence"), "{}", says(&divergent));
}
