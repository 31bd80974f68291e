//! Programs in low-level patterns, compiled as they stand: run on the CPU, run under oclgrind,
//! and compared with the oracle.

use indexmap::IndexMap;
use patsat::calculus::interp;
use patsat::calculus::value::{Value, compare};
use patsat::diag::{Failure, Limits, Source};
use patsat::kernel::ir::Program as Ir;
use patsat::kernel::{self, DeviceLimits, Options};
use patsat::lang::types::ScalarType;
use patsat::opencl::host::{HostArray, Inputs};
use patsat::opencl::plan::HostPlan;
use patsat::opencl::print::print;
use patsat::opencl::runtime::Runtime;
use patsat::session::Program;
use patsat::session::generate::{Generator, generate};
use patsat::tune::worker::Worker;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// A shipped program.
pub fn shipped(path: &str) -> Program {
    let path = format!("{}/programs/{path}.pat", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).expect("a shipped program");
    Program::check(&Source::new(path.as_str(), text), None).expect("well-typed")
}

/// A device for kernels that are only looked at, or run anywhere.
pub fn device() -> DeviceLimits {
    DeviceLimits { max_work_group_size: 1024, max_item_sizes: [1024; 3], ..DeviceLimits::default() }
}

/// A program's kernels at some sizes.
pub struct Kernels {
    program: Program,
    sizes: IndexMap<String, u64>,
    pub term: String,
    pub ir: Ir,
    pub plan: Arc<HostPlan>,
}

/// Compiles a program as it stands.
pub fn compile(
    program: &Program,
    sizes: &[(&str, u64)],
    device: &DeviceLimits,
) -> Result<Kernels, Failure> {
    let sizes: IndexMap<String, u64> = sizes.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect();
    let elaborated = program.elaborate(&sizes)?;
    let options = Options::new(&program.entry.name, device.clone(), &Limits::default());
    let ir = kernel::lower(&elaborated.term, &elaborated.env, &options).map_err(|d| *d)?;
    let (plan, term) = (Arc::new(print(&ir)), elaborated.term.to_string());
    Ok(Kernels { program: program.clone(), sizes, term, ir, plan })
}

impl Kernels {
    /// Small whole numbers for every parameter: sums of a million of them are exact in any order.
    fn data(&self) -> (Inputs, Vec<Value>) {
        let mut inputs = Inputs::default();
        let mut values = vec![];
        for (i, p) in self.program.entry.params.iter().enumerate() {
            let shape = interp::shape(&p.ty, &self.sizes).expect("a shape");
            let mut parts = vec![];
            for (k, (ty, dims)) in shape.components().into_iter().enumerate() {
                let len = dims.iter().product();
                let normal = generate(Generator::Normal, ScalarType::F32, len, 7, (i * 8 + k) as u64)
                    .expect("generated")
                    .to_vec::<f32>()
                    .expect("floats");
                let whole = normal.into_iter().map(|x| (3.0 * x).round());
                let array = match ty {
                    ScalarType::F32 => HostArray::from_slice(&whole.collect::<Vec<f32>>()),
                    ScalarType::I32 => {
                        HostArray::from_slice(&whole.map(|x| x as i32).collect::<Vec<i32>>())
                    }
                    other => panic!("no data of type {other}"),
                };
                parts.push(array.bytes().to_vec());
                inputs.insert(p.name.clone(), k, array);
            }
            values.push(Value::from_bytes(&shape, &parts).expect("a value"));
        }
        (inputs, values)
    }

    fn compare(&self, values: &[Value], outputs: &[HostArray]) {
        let entry = &self.program.entry;
        let expected = interp::run(entry, &self.sizes, values).expect("a result");
        let bytes: Vec<&[u8]> = outputs.iter().map(HostArray::bytes).collect();
        let comparison = compare(&expected, &bytes, interp::terms(entry, &self.sizes));
        assert!(comparison.ok, "{comparison:?}\n{}\n{}", self.term, self.plan.source);
    }

    /// Runs the plan on the CPU and compares with the oracle.
    pub fn run(&self, rt: &Runtime) {
        let (inputs, values) = self.data();
        let ran = rt.build(&self.plan).and_then(|b| rt.prepare(b, &rt.upload(&inputs)?)?.check(rt));
        let (_, outputs) = ran.unwrap_or_else(|e| panic!("{e}\n{}", self.plan.source));
        self.compare(&values, &outputs);
    }

    /// Runs the plan under oclgrind, which finds nothing, and compares with the oracle.
    pub fn grind(&self) {
        let (inputs, values) = self.data();
        let (outputs, log) = grind(&self.plan, inputs);
        assert!(log.is_empty(), "{}\n{log}\n{}", self.term, self.plan.source);
        self.compare(&values, &outputs.expect("results"));
    }

    /// The text of kernel `k`.
    pub fn text(&self, k: usize) -> &str {
        self.plan.source.split("\nkernel ").nth(k + 1).expect("a kernel")
    }
}

/// Runs a plan under oclgrind: the results, unless it failed, and what oclgrind has to say of races
/// (uniform writes count), of accesses outside, and of barriers that not all work-items reach.
pub fn grind(plan: &Arc<HostPlan>, inputs: Inputs) -> (Option<Vec<HostArray>>, String) {
    let driver = std::env::var("OCLGRIND_ICD")
        .unwrap_or_else(|_| "/usr/lib/oclgrind/liboclgrind-rt-icd.so".to_owned());
    assert!(std::path::Path::new(&driver).exists(), "{driver} is missing: `make tools`");
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("oclgrind.icd"), driver).expect("written");
    let log = folder.path().join("log");
    let (vendors, log_path) = (folder.path().to_owned(), log.clone());
    let command = move || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_patsat"));
        command
            .arg("worker")
            .env("OCL_ICD_VENDORS", &vendors)
            .env("OCLGRIND_LOG", &log_path)
            .env("OCLGRIND_DATA_RACES", "1")
            .env("OCLGRIND_UNIFORM_WRITES", "1");
        command
    };
    let slow = Duration::from_secs(300);
    let limits = Limits { run_time: slow, build_time: slow, ..Limits::default() };
    let mut worker = Worker::new(command, None, Arc::new(inputs), &limits);
    assert!(worker.device().expect("a device").name.contains("Oclgrind"));
    let ran = worker.prepare(plan.clone()).and_then(|(id, _)| worker.check(id));
    drop(worker);
    (ran.ok().map(|(_, outputs)| outputs), std::fs::read_to_string(log).unwrap_or_default())
}

/// The CPU device.
pub fn cpu() -> Runtime {
    Runtime::open(Some("Portable")).expect("PoCL")
}
