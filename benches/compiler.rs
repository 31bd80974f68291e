//! Benchmarks of the compiler's stages on the shipped programs (parse and check, saturate, extract, emit), and of
//! the reference interpreter.

use criterion::{Criterion, criterion_group, criterion_main};
use indexmap::IndexMap;
use patsat::calculus::elaborate::elaborate;
use patsat::calculus::interp;
use patsat::calculus::value::Value;
use patsat::device::cost_model::CostModel;
use patsat::diag::{Limits, Source};
use patsat::kernel::{DeviceLimits, Options, lower};
use patsat::lang::types::ScalarType;
use patsat::opencl::print::print;
use patsat::rules::RuleSet;
use patsat::{device, extract, lang, saturate};
use std::hint::black_box;

fn stages(c: &mut Criterion) {
    let rules = RuleSet::shipped().expect("shipped rules");
    let limits = Limits { saturation_time: None, ..Limits::default() };
    // Any CPU will do, since nothing is run.
    let info = device::DeviceInfo {
        index: 0,
        platform: "bench".into(),
        name: "bench".into(),
        vendor: "bench".into(),
        driver: "0".into(),
        opencl_version: "OpenCL 3.0".into(),
        kind: device::DeviceKind::Cpu,
        compute_units: 2,
        max_work_group_size: 4096,
        max_work_item_sizes: [4096; 3],
        local_mem_bytes: 1 << 20,
        local_mem_dedicated: false,
        global_mem_bytes: 1 << 34,
        max_alloc_bytes: 1 << 32,
        cache_bytes: 1 << 25,
        vector_width_f32: 16,
        fp64: true,
        fp16: false,
        extensions: vec![],
        capabilities: device::Capabilities::default(),
    };
    let model = CostModel::choose(&info).expect("a model").model;
    for (name, text, sizes) in [
        ("scal", include_str!("../programs/scal.pat"), &[("n", 1_u64 << 24)][..]),
        ("asum", include_str!("../programs/asum.pat"), &[("n", 1 << 24)]),
        ("gemv", include_str!("../programs/gemv.pat"), &[("n", 4096), ("m", 4096)]),
        ("blackscholes", include_str!("../programs/blackscholes.pat"), &[("n", 1 << 22)]),
        ("md", include_str!("../programs/md.pat"), &[("n", 12_288), ("k", 128)]),
    ] {
        let source = Source::new(name, text);
        let sizes: IndexMap<String, u64> =
            sizes.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect();
        let entry = lang::check_entry(&source, None).expect("well-typed");
        let program = elaborate(&entry, &sizes).expect("elaborates");
        let graph = saturate::saturate(&program.forms(), &rules, &limits).expect("sound rules");
        let found = extract::candidates(&graph, &program.env, &info, &model, &limits)
            .expect("terms")
            .candidates;
        let options = Options::new(name, DeviceLimits::of(&info), &limits);
        let mut group = c.benchmark_group(name);
        group.sample_size(10);
        group.bench_function("parse", |b| {
            b.iter(|| lang::check_entry(black_box(&source), None));
        });
        group.bench_function("saturate", |b| {
            b.iter(|| {
                saturate::saturate(black_box(&program.forms()), &rules, &limits).map(|s| s.root)
            });
        });
        group.bench_function("extract", |b| {
            b.iter(|| extract::candidates(&graph, &program.env, &info, &model, &limits));
        });
        group.bench_function("emit", |b| {
            b.iter(|| lower(&found[0].term, &found[0].env, &options).map(|p| print(&p)));
        });
        group.finish();
    }
}

/// The reference interpreter, on a vector of 2^20 elements.
fn oracle(c: &mut Criterion) {
    let n = 1 << 20;
    let xs = Value::floats(ScalarType::F32, &[n], &vec![-1.5; n]);
    let mut group = c.benchmark_group("oracle");
    group.sample_size(10);
    for (name, text, inputs) in [
        ("asum", include_str!("../programs/asum.pat"), vec![xs.clone()]),
        ("dot", include_str!("../programs/dot.pat"), vec![xs.clone(), xs.clone()]),
    ] {
        let source = Source::new(name, text);
        let sizes: IndexMap<String, u64> = IndexMap::from([("n".to_owned(), n as u64)]);
        let entry = lang::check_entry(&source, None).expect("well-typed");
        group.bench_function(name, |b| b.iter(|| interp::run(&entry, &sizes, &inputs)));
    }
    group.finish();
}

criterion_group!(benches, stages, oracle);
criterion_main!(benches);
