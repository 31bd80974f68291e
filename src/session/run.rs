//! Executing a program: by its best known kernels, by newly found ones, or as it is written.

use super::inputs::{Request, bind, sizes};
use super::npy::NpyArray;
use super::plan::Plan;
use super::program::{Program, Sizes};
use super::work::{Work, work};
use super::{Device, Session, memory};
use crate::calculus::value::Comparison;
use crate::calculus::{elaborate, interp};
use crate::device::DeviceInfo;
use crate::diag::{Code, Diagnostic, Result};
use crate::extract::Candidate;
use crate::kernel;
use crate::tune::event::{Event, Observer};
use crate::tune::reference::{Checked, Reference};
use crate::tune::store::Store;
use crate::tune::variant::{Variant, tunables};
use crate::tune::worker::WorkerError;
use std::sync::Arc;

/// How the kernels were come by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// The tuning store knew the best.
    Store,
    /// They were looked for.
    Optimized,
    /// The program says itself how it runs.
    AsWritten,
    /// A plan was given.
    Plan,
}

impl How {
    /// The name in results.
    pub fn name(self) -> &'static str {
        match self {
            How::Store => "store",
            How::Optimized => "optimized",
            How::AsWritten => "as written",
            How::Plan => "plan",
        }
    }
}

/// A program's result on a device.
pub struct Execution {
    /// The result's components, tuples flattened left to right.
    pub outputs: Vec<NpyArray>,
    /// How the kernels were come by.
    pub how: How,
    /// What ran.
    pub variant: Arc<Variant>,
    /// Time of this one run by device events, in microseconds.
    pub device_us: f64,
    /// The same by the host's clock.
    pub wall_us: f64,
    /// How the result compares with the reference, when that was asked for.
    pub comparison: Option<Comparison>,
    /// How it was checked, if the reference is but a sample.
    pub checked: Option<Checked>,
    /// Value of each size parameter.
    pub sizes: Sizes,
    /// Where it ran.
    pub device: DeviceInfo,
    /// Bytes and operations the program needs at least.
    pub work: Work,
    /// What to tell a person.
    pub warnings: Vec<Diagnostic>,
    /// Stopped while looking for kernels; the best so far ran.
    pub interrupted: bool,
}

/// What to do besides running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Execute {
    /// Compile the program as it stands, in low-level patterns.
    pub as_written: bool,
    /// Compare the result with the interpreter's.
    pub verify: bool,
}

/// Kernels, and how they were come by.
struct Made {
    variant: Arc<Variant>,
    how: How,
    interrupted: bool,
}

impl Session {
    /// The kernels of a program in low-level patterns, as it stands.
    ///
    /// # Errors
    /// When the program is not in low-level patterns alone, or they are ill-nested.
    pub fn compile(&self, program: &Program, sizes: &Sizes) -> Result<Variant> {
        let (device, choice) = self.target()?;
        let elaborated = program.elaborate(sizes)?;
        let nested = kernel::check_nesting(&elaborated.term);
        nested.map_err(|d| at_entry(*d, program))?;
        self.variant(program, &elaborated, &device, &choice.model)
    }

    fn variant(
        &self,
        program: &Program,
        elaborated: &elaborate::Program,
        device: &DeviceInfo,
        model: &crate::device::cost_model::CostModel,
    ) -> Result<Variant> {
        let options = self.options(&program.entry.name, device);
        let made = Variant::new(&elaborated.term, &elaborated.env, "as written", &options, model);
        Ok(made.map_err(|d| at_entry(*d, program))?)
    }

    /// Runs a program on the device.
    ///
    /// # Errors
    /// When the program or its inputs are wrong, there is no such device, or the kernels fail on it.
    pub fn run(
        &self,
        program: &Program,
        request: &Request,
        execute: Execute,
        observer: &mut dyn Observer,
    ) -> Result<Execution> {
        let device = self.running_device()?;
        let sizes = sizes(program, request)?;
        memory::check_device(program, &sizes, &device)?;
        let (variant, how, interrupted) = if execute.as_written {
            (Arc::new(self.compile(program, &sizes)?), How::AsWritten, false)
        } else if let Some(variant) = self.known(program, &sizes, &device, observer)? {
            (Arc::new(variant), How::Store, false)
        } else {
            let found = self.optimize(program, request, observer)?;
            (found.best.variant, How::Optimized, found.interrupted)
        };
        let made = Made { variant, how, interrupted };
        self.execute(program, request, made, execute.verify, (device, sizes), observer)
    }

    /// Runs a program by the kernels of a plan. Sizes that the request does not say are those of the plan. The result
    /// is compared with the interpreter's when `execute` says so, and when the kernels are not those that were
    /// written down, which only `force` allows.
    ///
    /// # Errors
    /// Those of [`Session::run`] and [`Session::planned`].
    pub fn run_plan(
        &self,
        program: &Program,
        plan: &Plan,
        request: &Request,
        execute: Execute,
        force: bool,
        observer: &mut dyn Observer,
    ) -> Result<Execution> {
        let device = self.running_device()?;
        let (sizes, request) = plan.sizes_for(program, request)?;
        memory::check_device(program, &sizes, &device)?;
        let planned = self.planned(program, plan, &sizes, force)?;
        for warning in &planned.warnings {
            observer.event(&Event::Warning(warning));
        }
        let made = Made { variant: Arc::new(planned.variant), how: How::Plan, interrupted: false };
        let verify = execute.verify || planned.other_kernels;
        self.execute(program, &request, made, verify, (device, sizes), observer)
    }

    fn running_device(&self) -> Result<DeviceInfo> {
        let (device, _) = self.target()?;
        if self.device == Device::None {
            return Err(Diagnostic::error(Code::Usage, "a program runs on a device")
                .help("`patsat eval` runs it in the interpreter")
                .into());
        }
        Ok(device)
    }

    /// Runs kernels once.
    fn execute(
        &self,
        program: &Program,
        request: &Request,
        Made { variant, how, interrupted }: Made,
        verify: bool,
        (device, sizes): (DeviceInfo, Sizes),
        observer: &mut dyn Observer,
    ) -> Result<Execution> {
        let elaborated = program.elaborate(&sizes)?;
        let work = work(program, &sizes, &elaborated.term, &elaborated.env)?;
        let bound = bind(program, request)?;
        for warning in &bound.warnings {
            if how != How::Optimized {
                observer.event(&Event::Warning(warning));
            }
        }
        let reference =
            verify.then(|| Reference::start(&program.entry, &sizes, &bound.values, &self.limits));
        let mut worker = self.start_worker(&device, bound.inputs);
        let answer = worker.prepare(variant.plan.clone()).and_then(|(id, _)| worker.check(id));
        let (times, arrays) = match answer {
            Ok(answer) => answer,
            Err(WorkerError::Worker(failure)) => return Err(failure),
            Err(WorkerError::Candidate(failure)) => {
                let text = format!("`{}` failed: {}", program.entry.name, failure.class);
                let d = Diagnostic::error(failure.class.code(), text);
                return Err(d.note(failure.log).into());
            }
        };
        let (mut comparison, mut checked) = (None, None);
        if let Some(mut reference) = reference
            && program.placed(reference.wait(|| !observer.stop()))?
        {
            let verdict = program.placed(reference.compare(arrays.clone()))?;
            comparison = verdict.map(|v| v.comparison);
            checked = reference.checked();
        }
        let shape = program.placed(interp::shape(&program.entry.body.ty, &sizes))?;
        let outputs = shape
            .components()
            .into_iter()
            .zip(arrays)
            .map(|((_, shape), data)| NpyArray { shape, data })
            .collect();
        Ok(Execution {
            outputs,
            how,
            variant,
            device_us: times.device_us,
            wall_us: times.wall_us,
            comparison,
            checked,
            sizes,
            device,
            work,
            warnings: bound.warnings,
            interrupted,
        })
    }

    /// The best kernels that the store knows, made again.
    pub(super) fn known(
        &self,
        program: &Program,
        sizes: &Sizes,
        device: &DeviceInfo,
        observer: &mut dyn Observer,
    ) -> Result<Option<Variant>> {
        let Some(path) = &self.store else { return Ok(None) };
        let store = Store::open(path)?;
        let Some(record) = store.best(&self.key(program, sizes, device))? else {
            return Ok(None);
        };
        let rewritten = self.rewrite(program, sizes, observer)?;
        let options = self.options(&program.entry.name, &rewritten.device);
        let same = |c: &&Candidate| {
            tunables(&c.env) == record.tunables && c.term.to_string() == record.term
        };
        let made = rewritten.candidates.iter().filter(same).filter_map(|c| {
            Variant::new(&c.term, &c.env, &c.skeleton, &options, &rewritten.model.model).ok()
        });
        // Kernels that have changed since must be measured again.
        Ok(made.into_iter().find(|v| v.hash == record.plan))
    }
}

/// Points a diagnostic about a term at the entry it is of.
fn at_entry(d: Diagnostic, program: &Program) -> Diagnostic {
    if d.labels.is_empty() {
        d.at(&program.source, program.entry.span, "")
    } else {
        Diagnostic { source: Some(program.source.clone()), ..d }
    }
}
