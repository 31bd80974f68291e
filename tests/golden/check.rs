//! Helpers for programs in low-level patterns, which are compiled without rewriting, run on the CPU and under
//! oclgrind, and compared with the interpreter.

use patsat::calculus::interp;
use patsat::calculus::size::{Size, SizeEnv};
use patsat::calculus::text::{Context, read_term};
use patsat::calculus::ty::Ty;
use patsat::calculus::value::{Value, compare};
use patsat::diag::{Failure, Limits, Source};
use patsat::kernel::ir::Program as Ir;
use patsat::kernel::{self, DeviceLimits, Options};
use patsat::lang::types::ScalarType;
use patsat::opencl::host::{HostArray, Inputs};
use patsat::opencl::plan::HostPlan;
use patsat::opencl::print::print;
use patsat::opencl::runtime::Runtime;
use patsat::session::generate::{Generator, generate};
use patsat::session::{self, Program, Request, Sizes};
use patsat::tune::worker::Worker;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// Loads a shipped program.
pub fn shipped(path: &str) -> Program {
    let path = format!("{}/programs/{path}.pat", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).expect("a shipped program");
    Program::check(&Source::new(path.as_str(), text), None).expect("well-typed")
}

/// Returns the limits of a fictitious device, for kernels that are only inspected or that run on any device.
pub fn device() -> DeviceLimits {
    DeviceLimits { max_work_group_size: 1024, max_item_sizes: [1024; 3], ..DeviceLimits::default() }
}

/// A program's kernels at given sizes.
pub struct Kernels {
    pub program: Program,
    pub sizes: Sizes,
    pub term: String,
    pub ir: Ir,
    pub plan: Arc<HostPlan>,
}

/// Compiles a program without rewriting.
pub fn compile(
    program: &Program,
    sizes: &[(&str, u64)],
    device: &DeviceLimits,
) -> Result<Kernels, Failure> {
    let sizes: Sizes = sizes.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect();
    let elaborated = program.elaborate(&sizes)?;
    let options = Options::new(&program.entry.name, device.clone(), &Limits::default());
    let ir = kernel::lower(&elaborated.term, &elaborated.env, &options).map_err(|d| *d)?;
    let (plan, term) = (Arc::new(print(&ir)), elaborated.term.to_string());
    Ok(Kernels { program: program.clone(), sizes, term, ir, plan })
}

/// Returns the type of an array of floats.
pub fn array(dims: &[u64]) -> Ty {
    let f32 = Ty::Scalar(ScalarType::F32);
    dims.iter().rev().fold(f32, |t, n| Ty::array(&Size::constant(*n), &t))
}

/// Generates the kernels of a term over inputs of these types. Their results are compared with a program's.
pub fn kernels(program: &str, sizes: &[(&str, u64)], inputs: &[(&str, Ty)], term: &str) -> Kernels {
    let device = DeviceLimits { access_bytes: 16, ..DeviceLimits::default() };
    kernels_for(device, program, sizes, inputs, term)
}

/// As [`kernels`], for a device.
pub fn kernels_for(
    device: DeviceLimits,
    program: &str,
    sizes: &[(&str, u64)],
    inputs: &[(&str, Ty)],
    term: &str,
) -> Kernels {
    let program = Program::check(&Source::new("program.pat", program), None).expect("well-typed");
    let inputs = inputs.iter().map(|(name, t)| ((*name).to_owned(), t.clone())).collect();
    let context = Context { inputs, variables: None };
    let term = read_term(&Source::new("term", term), &Ty::Unit, &context).expect("a term");
    let term = term.expand().and_then(|t| t.flat()).expect("definitions");
    let options = Options::new("product", device, &Limits::default());
    let ir = kernel::lower(&term, &SizeEnv::default(), &options)
        .unwrap_or_else(|e| panic!("{e}\n{term}"));
    let plan = Arc::new(print(&ir));
    let sizes: Sizes = sizes.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect();
    Kernels { program, sizes, term: term.to_string(), ir, plan }
}

/// A program at given sizes, with its inputs and the interpreter's result.
pub struct Case {
    program: Program,
    sizes: Sizes,
    pub inputs: Inputs,
    expected: Value,
}

impl Case {
    /// Uses small whole numbers and random flags as inputs: sums of a million of them are exact in any order.
    pub fn new(program: &Program, sizes: &Sizes) -> Case {
        let mut inputs = Inputs::default();
        let mut values = vec![];
        for (i, p) in program.entry.params.iter().enumerate() {
            let shape = interp::shape(&p.ty, sizes).expect("a shape");
            let mut parts = vec![];
            for (k, (ty, dims)) in shape.components().into_iter().enumerate() {
                let (len, stream) = (dims.iter().product(), (i * 8 + k) as u64);
                let normal = generate(&Generator::Normal, ty, len, 7, stream).expect("generated");
                let array = match ty {
                    ScalarType::F32 => {
                        let normal = normal.to_vec::<f32>().expect("floats");
                        let whole = normal.into_iter().map(|x| (3.0 * x).round());
                        HostArray::from_slice(&whole.collect::<Vec<f32>>())
                    }
                    ScalarType::Bool => normal,
                    _ => panic!("other data are not made here"),
                };
                parts.push(array.bytes().to_vec());
                inputs.insert(p.name.clone(), k, array);
            }
            values.push(Value::from_bytes(&shape, &parts).expect("a value"));
        }
        Case::with(program, sizes, inputs, &values)
    }

    /// Uses inputs of any type, as the program's comment states.
    pub fn stated(program: &Program, request: &Request) -> Case {
        let bound = session::inputs::bind(program, request).expect("inputs");
        Case::with(program, &bound.sizes, bound.inputs, &bound.values)
    }

    fn with(program: &Program, sizes: &Sizes, inputs: Inputs, values: &[Value]) -> Case {
        let expected = interp::run(&program.entry, sizes, values).expect("a result");
        Case { program: program.clone(), sizes: sizes.clone(), inputs, expected }
    }

    /// Compares a plan's results with the interpreter's.
    pub fn compare(&self, outputs: &[HostArray], plan: &HostPlan) {
        let bytes: Vec<&[u8]> = outputs.iter().map(HostArray::bytes).collect();
        let terms = interp::terms(&self.program.entry, &self.sizes);
        let comparison = compare(&self.expected, &bytes, terms);
        assert!(comparison.ok, "{comparison:?}\n{}", plan.source);
    }

    /// Runs plans under oclgrind, which must report nothing, and compares the results with the interpreter's.
    pub fn grind(&self, plans: &[Arc<HostPlan>]) {
        let (ran, log) = grind(plans, &self.inputs);
        let sources = || plans.iter().map(|p| p.source.as_str()).collect::<Vec<_>>().join("\n");
        assert!(log.is_empty(), "{log}\n{}", sources());
        for (outputs, plan) in ran.iter().zip(plans) {
            self.compare(outputs.as_ref().expect("results"), plan);
        }
    }
}

impl Kernels {
    fn case(&self) -> Case {
        Case::new(&self.program, &self.sizes)
    }

    /// Runs the plan on the CPU and compares the result with the interpreter's.
    pub fn run(&self, rt: &Runtime) {
        let case = self.case();
        let ran =
            rt.build(&self.plan).and_then(|b| rt.prepare(b, &rt.upload(&case.inputs)?)?.check(rt));
        let (_, outputs) = ran.unwrap_or_else(|e| panic!("{e}\n{}", self.plan.source));
        case.compare(&outputs, &self.plan);
    }

    /// Runs the plan under oclgrind, which must report nothing, and compares the result with the interpreter's.
    pub fn grind(&self) {
        self.case().grind(std::slice::from_ref(&self.plan));
    }

    /// Returns the text of kernel `k`.
    pub fn text(&self, k: usize) -> &str {
        self.plan.source.split("\nkernel ").nth(k + 1).expect("a kernel")
    }
}

/// Runs plans under oclgrind. Returns the results, unless a plan failed, and oclgrind's reports of races (including
/// uniform writes), accesses outside arrays, and divergent barriers.
pub fn grind(plans: &[Arc<HostPlan>], inputs: &Inputs) -> (Vec<Option<Vec<HostArray>>>, String) {
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
    let slow = Duration::from_mins(5);
    let limits = Limits { run_time: slow, build_time: slow, ..Limits::default() };
    let mut worker = Worker::new(command, None, Arc::new(inputs.clone()), &limits);
    assert!(worker.device().expect("a device").name.contains("Oclgrind"));
    let ran = plans.iter().map(|plan| {
        let (id, _) = worker.prepare(plan.clone()).ok()?;
        worker.check(id).ok().map(|(_, outputs)| outputs)
    });
    let ran = ran.collect();
    drop(worker);
    (ran, std::fs::read_to_string(log).unwrap_or_default())
}

/// Opens the CPU device.
pub fn cpu() -> Runtime {
    Runtime::open(Some("Portable")).expect("PoCL")
}
