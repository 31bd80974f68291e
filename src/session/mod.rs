//! The library's facade: one call for each command.
//!
//! A [`Program`] is an entry of a file. A [`Session`] holds the rules, limits and device under which programs are
//! optimised; a [`Request`] holds the values of a program's parameters and sizes. Every call returns values or
//! diagnostics. Nothing here prints: a caller that wants progress passes an [`Observer`].
//!
//! ```
//! use patsat::diag::Source;
//! use patsat::session::{Program, Request, Session, generate::Generator};
//!
//! let text = "entry asum [n] (xs: [n]f32) : f32 = xs |> map abs |> reduce (+) 0";
//! let program = Program::check(&Source::new("asum.pat", text), None)?;
//!
//! // The reference interpreter, on 0, 1, 2, ..., 99.
//! let mut request = Request { default: Some(Generator::Iota), ..Request::default() };
//! request.sizes.insert("n".to_owned(), 100);
//! let result = patsat::session::eval(&program, &request)?;
//! assert_eq!(result.value.to_floats(), [4950.0]);
//!
//! // The best kernel by the cost model of a generic CPU: no device is needed for that.
//! let session = Session::new()?;
//! let optimized = session.optimize(&program, &request, &mut ())?;
//! assert!(optimized.best.variant.plan.source.contains("kernel "));
//! # Ok::<(), patsat::diag::Failure>(())
//! ```

mod answer;
mod arguments;
mod bench;
mod calibrate;
mod compare;
mod emit;
pub mod examples;
mod explain;
pub mod files;
pub mod futhark;
pub mod fuzz;
pub mod generate;
mod graph;
mod imports;
pub mod inputs;
mod intake;
mod loaded;
mod memory;
mod model;
pub mod npy;
mod optimize;
mod peer_program;
mod peers;
pub mod plan;
mod portability;
mod program;
mod race;
mod recall;
mod recipe;
mod replay;
mod rules;
mod run;
pub mod snapshot;
mod staff;
mod strategies;
pub mod survey;
pub mod times;
mod whole;
mod work;

pub use crate::tune::event::{Event, Observer, Phase};
pub use crate::tune::strategy::Strategy;
pub use answer::Stored;
pub use arguments::{Argument, request_of};
pub use bench::{Bench, BenchRow};
pub use calibrate::{Calibration, Quantity};
pub use compare::Outcome;
pub use emit::{Emitted, check_directory};
pub use explain::{Explained, ProgramUse, RuleUse, RuleUses, WhyNot};
pub use graph::Graph;
pub use imports::{read_program, with_imports_by};
pub use inputs::{Bound, Given, Request};
pub use intake::check_import;
pub use loaded::{Called, Loaded, Resident};
pub use model::{Compared, LeftOut, ModelCheck, ModelReport, Predictions, Selection, check_model};
pub use optimize::{Best, Optimized, Shares, Timings};
pub use peers::{Peer, peers};
pub use plan::{Plan, Planned};
pub use portability::{Cell, Portability};
pub use program::{Program, Sizes};
pub use replay::{Replay, Round, StepCheck, replay};
pub use rules::{Float, check_own_rules, find_rule, lint_rules, read, rule_set, rules_in};
pub use run::{Execute, Execution, How};
pub use strategies::{Strategies, Trial, Tried};

use crate::calculus::interp;
use crate::calculus::op::products::Products;
use crate::calculus::value::{Leaf, Value};
use crate::device::cost_model::{Choice, CostModel, GroupLimits};
use crate::device::{Capabilities, DeviceInfo, DeviceKind};
use crate::diag::{Code, Diagnostic, Limits, Result, Source};
use crate::kernel::{ATOMICS_64, DeviceLimits, Options};
use crate::lang;
use crate::opencl::host::{HostArray, Inputs};
use crate::rules::RuleSet;
use crate::tune::worker::{self, Worker};
use npy::NpyArray;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// Where programs run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Device {
    /// No device: candidates are ranked by the cost model, and nothing is measured.
    #[default]
    None,
    /// The device that a selector names: `#k` or a part of its name. Without a selector, the first device (a GPU if
    /// there is one).
    Selected(Option<String>),
}

/// Starts a process that serves [`crate::tune::worker::serve`].
pub type WorkerCommand = Arc<dyn Fn() -> Command + Send + Sync>;

/// How programs are optimised. [`Session::new`] takes the shipped rules, default limits, no device and no tuning
/// store.
#[derive(Clone)]
pub struct Session {
    /// The rewrite rules.
    pub rules: RuleSet,
    /// All limits but the number of candidates.
    pub limits: Limits,
    /// Which arithmetic may change.
    pub float: Float,
    /// Where programs run.
    pub device: Device,
    /// The cost model; `None` chooses one for the device.
    pub cost_model: Option<CostModel>,
    /// How many candidates are measured; 0 ranks by the model alone.
    pub budget: usize,
    /// How candidates are chosen for measurement.
    pub strategy: Strategy,
    /// Seed of the strategy's random choices.
    pub search_seed: u64,
    /// The tuning store, where measurements are kept and looked up; `None` for no store.
    pub store: Option<PathBuf>,
    /// Whether to search and measure again, without the results in the store.
    pub anew: bool,
    /// The folder of the cache of built kernels, which saves building them twice; `None` for no cache.
    pub kernels: Option<PathBuf>,
    /// How to start the worker process that runs candidates; `None` starts the `patsat` on the search path.
    pub worker: Option<WorkerCommand>,
    /// Whether the best kernel is compared with the device's bandwidth, measured in the same run.
    pub shares: bool,
    /// Whether to trust that a program's operators obey the laws of their patterns. If not, the operators are tested
    /// before the program is rewritten.
    pub trust_laws: bool,
    /// Whether rules that are not shipped were trusted without a test. Measurements under such rules have keys of
    /// their own.
    pub trust_rules: bool,
    /// Whether kernels leave out the checks of indices and divisors that depend on data: an index outside its array
    /// then reads foreign memory, and the result of an integer division by zero is undefined.
    pub unchecked: bool,
}

impl Session {
    /// The default budget: how many candidates are measured.
    pub const BUDGET: usize = 40;

    /// Returns the default session.
    ///
    /// # Errors
    /// Never for a tested build: the shipped rules are checked by a test.
    pub fn new() -> Result<Session> {
        Ok(Session {
            rules: rule_set::<&str>(&[], Float::default())?,
            limits: Limits::default(),
            float: Float::default(),
            device: Device::None,
            cost_model: None,
            budget: Session::BUDGET,
            strategy: Strategy::Default,
            search_seed: 0,
            store: None,
            anew: false,
            kernels: None,
            worker: None,
            shares: true,
            trust_laws: false,
            trust_rules: false,
            unchecked: false,
        })
    }

    /// Returns the description of the device and its cost model.
    ///
    /// # Errors
    /// When there is no such device.
    pub fn target(&self) -> Result<(DeviceInfo, Choice)> {
        let info = match &self.device {
            Device::None => offline(self.cost_model.as_ref()),
            Device::Selected(selector) => {
                // The device is opened, not only listed, to find out what its compiler accepts.
                let command = self.worker_command();
                let none = Arc::new(Inputs::default());
                Worker::new(move || command(), selector.clone(), none, &self.limits).device()?
            }
        };
        let choice = self.cost_model_for(&info)?;
        Ok((info, choice))
    }

    /// Returns the strategy, with the seed if it is random, and the limits of the search that are not the default
    /// ones: the part of a stored answer's identity that names its search.
    fn searched_by(&self) -> String {
        let mut text = self.strategy.to_string();
        if self.strategy.is_random() {
            text.push_str(&format!(" {}", self.search_seed));
        }
        let default = Limits::default();
        let of = |l: &Limits| [l.nodes, l.iterations, l.skeletons_per_class];
        if (of(&self.limits), self.limits.saturation_time)
            != (of(&default), default.saturation_time)
        {
            text.push_str(&format!(" {:?} {:?}", of(&self.limits), self.limits.saturation_time));
        }
        text
    }

    /// Returns the cost model for a device.
    fn cost_model_for(&self, info: &DeviceInfo) -> Result<Choice> {
        match &self.cost_model {
            Some(model) => Ok(Choice {
                model: model.clone(),
                why: format!("the cost model `{}`, as requested", model.name),
                fallback: false,
            }),
            None => CostModel::choose(info),
        }
    }

    /// Returns the options of the code generator.
    fn options(&self, name: &str, device: &DeviceInfo) -> Options {
        let mut options = Options::new(name, DeviceLimits::of(device), &self.limits);
        options.contract = self.float == Float::Contract;
        options.relaxed = self.float == Float::Relaxed;
        options.unchecked = self.unchecked;
        if device.kind == DeviceKind::Gpu {
            // Starting groups dominates the time of short work-items, so groups are large and few.
            options.global_group = device.max_work_group_size.min(256);
        }
        options
    }

    /// Returns all devices, in the order of their numbers.
    ///
    /// # Errors
    /// When there is none, and when a driver does not answer.
    pub fn devices(&self) -> Result<Vec<DeviceInfo>> {
        worker::devices((self.worker_command())(), &self.limits.interrupt)
    }

    /// Returns the command that starts the worker.
    fn worker_command(&self) -> WorkerCommand {
        self.worker.clone().unwrap_or_else(|| {
            Arc::new(|| {
                let mut command = Command::new("patsat");
                command.arg("worker");
                command
            })
        })
    }
}

/// Checks a whole file, and returns its entries and all diagnostics. Unless `trust_laws`, operators of reductions that break a
/// law of their pattern are errors. They are not tried where a loop may not end on random inputs.
pub fn check(source: &Arc<Source>, trust_laws: bool) -> (Vec<lang::typed::Entry>, Vec<Diagnostic>) {
    let (entries, mut diagnostics) = lang::check(source);
    for entry in &entries {
        diagnostics.extend(program::samples(source, entry).err().into_iter().flat_map(|f| f.0));
        if !trust_laws && !interp::may_not_end(entry) {
            diagnostics.extend(program::broken_laws(source, entry));
        }
    }
    (entries, diagnostics)
}

/// Returns a file in the standard form.
///
/// # Errors
/// When it does not parse.
pub fn format(source: &Arc<Source>) -> Result<String> {
    lang::format(source)
}

/// Checks that arrays of `bytes` bytes fit in this machine's memory before they are allocated.
///
/// # Errors
/// [`Code::SizeRange`] when they do not.
pub fn check_memory(bytes: u64) -> Result<()> {
    memory::check(bytes, "the arrays")
}

/// The result of the interpreter.
#[derive(Clone, Debug)]
pub struct Evaluated {
    /// The result.
    pub value: Value,
    /// The values of the sizes.
    pub sizes: Sizes,
    /// Warnings about the inputs.
    pub warnings: Vec<Diagnostic>,
}

impl Evaluated {
    /// Returns the components of the result as arrays, with tuples flattened from left to right.
    ///
    /// # Errors
    /// Never: a component has as many elements as its shape says.
    pub fn arrays(&self) -> Result<Vec<NpyArray>> {
        self.value.leaves().iter().map(array).collect()
    }
}

fn array(leaf: &Leaf) -> Result<NpyArray> {
    let broken = || Diagnostic::error(Code::Internal, "a component has half an element");
    let data = HostArray::from_bytes(leaf.ty(), leaf.bytes()).ok_or_else(broken)?;
    Ok(NpyArray { shape: leaf.shape(), data })
}

/// Returns the shipped cost model with this name, or reads a file with one.
///
/// # Errors
/// When there is neither, or the file holds no cost model.
pub fn cost_model(name: &str) -> Result<CostModel> {
    let shipped = CostModel::shipped()?;
    if let Some(model) = shipped.iter().find(|m| m.name == name) {
        return Ok(model.clone());
    }
    CostModel::load(Path::new(name)).map_err(|mut failure| {
        let names: Vec<&str> = shipped.iter().map(|m| m.name.as_str()).collect();
        for d in failure.0.iter_mut().filter(|d| d.code == Code::Io) {
            d.help.push(format!("the shipped cost models are {}", names.join(", ")));
        }
        failure
    })
}

/// Runs a program in the reference interpreter, which needs no device.
///
/// # Errors
/// When inputs are missing or do not fit, or the program has no value on them.
pub fn eval(program: &Program, request: &Request) -> Result<Evaluated> {
    let bound = inputs::bind(program, request)?;
    let value = program.placed(interp::run(&program.entry, &bound.sizes, &bound.values))?;
    Ok(Evaluated { value, sizes: bound.sizes, warnings: bound.warnings })
}

/// Returns the description of the device that a model is for, as far as the model has it. Otherwise the device has the
/// features that nearly every CPU (or GPU) with OpenCL offers.
fn offline(model: Option<&CostModel>) -> DeviceInfo {
    let kind = model.and_then(|m| m.matches.kind).unwrap_or(DeviceKind::Cpu);
    let gpu = kind == DeviceKind::Gpu;
    let has = |of| model.is_some_and(|m| m.compute.products(of).is_some());
    let units = model.and_then(|m| u32::try_from(m.execution.groups_to_saturate).ok());
    let limits = model.and_then(|m| m.limits);
    let limits = limits.unwrap_or(GroupLimits { items: 256, local_bytes: 32 << 10 });
    DeviceInfo {
        index: 0,
        platform: "no device".into(),
        name: format!("generic {kind}"),
        vendor: String::new(),
        driver: String::new(),
        opencl_version: "OpenCL 1.2".into(),
        kind,
        compute_units: units.unwrap_or(if gpu { 64 } else { 8 }),
        max_work_group_size: limits.items,
        max_work_item_sizes: [limits.items, limits.items, 64],
        local_mem_bytes: limits.local_bytes,
        local_mem_dedicated: gpu,
        global_mem_bytes: 8 << 30,
        max_alloc_bytes: 2 << 30,
        cache_bytes: 0,
        vector_width_f32: if gpu { 1 } else { 8 },
        fp64: true,
        fp16: false,
        extensions: ATOMICS_64.map(str::to_owned).to_vec(),
        capabilities: Capabilities {
            products: has(Products::F32),
            products_f16: has(Products::F16),
            products_bf16: has(Products::BF16),
            products_i8: has(Products::I8),
            copies_ahead: model.is_some_and(|m| m.execution.copies_ahead),
            resident_groups: model.is_some_and(|m| m.execution.meeting_us.is_some()),
            ..Capabilities::default()
        },
    }
}
