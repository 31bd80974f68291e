//! Runs a program: with its best stored kernels, with the kernels of a new search or of a plan, or as written.

use super::inputs::{Bound, Request, bind, sizes};
use super::npy::NpyArray;
use super::plan::Plan;
use super::program::{Program, Sizes};
use super::work::{Work, work};
use super::{Device, Session, memory};
use crate::calculus::value::{Comparison, Value};
use crate::calculus::{elaborate, interp};
use crate::device::DeviceInfo;
use crate::diag::{Code, Diagnostic, Failure, Interrupt, Limits, Result};
use crate::kernel::{self, Generator};
use crate::opencl::host::HostArray;
use crate::opencl::runtime::RunTimes;
use crate::tune::event::{Event, Observer};
use crate::tune::reference::{Checked, Reference};
use crate::tune::statistics::median;
use crate::tune::store::{Key, Store};
use crate::tune::variant::Variant;
use crate::tune::worker::WorkerError;
use std::sync::Arc;
use std::time::Duration;

/// Where the kernels come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// From the tuning store.
    Store,
    /// From the tuning store, tuned for other sizes.
    Nearest,
    /// From a search.
    Optimized,
    /// From the program as written, in low-level patterns.
    AsWritten,
    /// From a plan.
    Plan,
}

impl How {
    /// The name in results.
    pub fn name(self) -> &'static str {
        match self {
            How::Store => "store",
            How::Nearest => "nearest size",
            How::Optimized => "optimized",
            How::AsWritten => "as written",
            How::Plan => "plan",
        }
    }
}

/// A program's result on a device.
pub struct Execution {
    /// The components of the result, with tuples flattened from left to right.
    pub outputs: Vec<NpyArray>,
    /// Where the kernels come from.
    pub how: How,
    /// The sizes that the kernels were tuned for, if they differ from `sizes`.
    pub tuned_for: Option<Sizes>,
    /// The kernels that ran.
    pub variant: Arc<Variant>,
    /// Median time of the runs by device events, in microseconds.
    pub device_us: f64,
    /// The same by the host's clock.
    pub wall_us: f64,
    /// How many runs were timed, after a first one that warms up; 0 if the first one is the only one.
    pub runs: usize,
    /// The median time of the kernels in the tuning store, in microseconds, if they are from there.
    pub tuned_us: Option<f64>,
    /// The comparison of the result with the reference, if the result was checked.
    pub comparison: Option<Comparison>,
    /// How the result was checked, if the reference is only a sample.
    pub checked: Option<Checked>,
    /// Value of each size parameter.
    pub sizes: Sizes,
    /// Where it ran.
    pub device: DeviceInfo,
    /// The least number of bytes and operations that the program needs.
    pub work: Work,
    /// Warnings for the user.
    pub warnings: Vec<Diagnostic>,
    /// Whether the search for kernels was stopped early. The best kernels so far ran.
    pub interrupted: bool,
}

/// The result of running kernels once.
pub(super) struct Ran {
    variant: Arc<Variant>,
    /// The first run, and those that were timed after it.
    times: (RunTimes, Vec<RunTimes>),
    tuned_us: Option<f64>,
    arrays: Vec<HostArray>,
    comparison: Option<Comparison>,
    checked: Option<Checked>,
    warnings: Vec<Diagnostic>,
}

/// Options of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Execute {
    /// Compile the program as written, in low-level patterns.
    pub as_written: bool,
    /// Compare the result with the interpreter's.
    pub verify: bool,
    /// How often the kernels run after the first run; `None` for once, unless the first run takes longer than
    /// [`SLOW`].
    pub repeat: Option<usize>,
}

/// Programs that take longer run only once, unless the user asks for more: drivers' compilers and caches matter little.
const SLOW: Duration = Duration::from_secs(1);

/// The origin of kernels, for [`Execution`].
struct Made {
    how: How,
    tuned_for: Option<Sizes>,
    interrupted: bool,
}

impl Session {
    /// Compiles a program in low-level patterns as written, without rewriting.
    ///
    /// # Errors
    /// When the program uses patterns that are not low-level, or nests them wrongly.
    pub fn compile(&self, program: &Program, sizes: &Sizes) -> Result<Variant> {
        let (device, choice) = self.target()?;
        let elaborated = program.elaborate(sizes)?;
        let nested = kernel::check_nesting(&elaborated.term);
        nested.map_err(|d| program.at_entry(*d))?;
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
        let made = Variant::new(
            &elaborated.term,
            &elaborated.env,
            "as written",
            &Generator::new(&options),
            model,
        );
        Ok(made.map_err(|d| program.at_entry(*d))?)
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
        let mut interrupted = false;
        let (mut how, mut tuned_for) = (How::Store, None);
        let mut ran = if execute.as_written {
            how = How::AsWritten;
            let variant = Arc::new(self.compile(program, &sizes)?);
            Some(self.once(program, request, &device, variant, execute, observer)?)
        } else {
            self.known_once(program, request, (&device, &sizes), execute, observer)?
        };
        if ran.is_none()
            && let Some(near) = self.neighbour(program, &sizes, &device)?
        {
            // These kernels have never been checked at these sizes, so they are now. If they fail, the search below
            // finds others.
            let tried = self.once(
                program,
                request,
                &device,
                Arc::new(near.variant),
                verified(execute),
                observer,
            );
            let right = |r: &Ran| r.comparison.as_ref().is_none_or(|c| c.ok);
            ran = match tried {
                Err(failure) if has_no_value(&failure) => return Err(failure),
                tried => tried.ok().filter(right),
            };
            if ran.is_some() {
                (how, tuned_for) = (How::Nearest, Some(near.sizes));
                interrupted = observer.stop();
            }
        }
        let ran = match ran {
            Some(ran) => ran,
            None => {
                let found = self.optimize(program, request, observer)?;
                (how, interrupted) = (How::Optimized, found.interrupted);
                let best = found.best.variant;
                // A user who stops the search still gets the result of the best kernels so far.
                let limits = Limits { interrupt: Interrupt::default(), ..self.limits.clone() };
                let rested = Session { limits, ..self.clone() };
                let session = if interrupted { &rested } else { self };
                session.once(program, request, &device, best, execute, observer)?
            }
        };
        let made = Made { how, tuned_for, interrupted };
        executed(program, ran, made, (device, sizes), observer)
    }

    /// Runs the best kernels in the store, if there are any. The result of imported kernels is compared with the
    /// interpreter's; they are skipped if it is wrong.
    fn known_once(
        &self,
        program: &Program,
        request: &Request,
        (device, sizes): (&DeviceInfo, &Sizes),
        execute: Execute,
        observer: &mut dyn Observer,
    ) -> Result<Option<Ran>> {
        let mut refused = vec![];
        while let Some(known) = self.known(program, sizes, device, &refused)? {
            let variant = Arc::new(known.variant);
            let tuned_us = known.median_us;
            if known.verified {
                let ran = self.once(program, request, device, variant, execute, observer)?;
                return Ok(Some(Ran { tuned_us, ..ran }));
            }
            let ran =
                self.first_use(program, request, (device, sizes), &variant, execute, observer)?;
            if ran.is_some() || observer.stop() {
                return Ok(ran);
            }
            refused.push(variant.hash.clone());
        }
        Ok(None)
    }

    /// Runs imported kernels and compares their result with the interpreter's; `None` when they fail or are wrong, or
    /// the comparison was stopped.
    pub(super) fn first_use(
        &self,
        program: &Program,
        request: &Request,
        (device, sizes): (&DeviceInfo, &Sizes),
        variant: &Arc<Variant>,
        execute: Execute,
        observer: &mut dyn Observer,
    ) -> Result<Option<Ran>> {
        // Errors in the inputs must not count against the kernels.
        bind(program, request)?;
        let tried =
            self.once(program, request, device, variant.clone(), verified(execute), observer);
        let wrong = match &tried {
            Ok(Ran { comparison: None, .. }) => return Ok(None),
            Ok(Ran { comparison: Some(c), .. }) if c.ok => None,
            Ok(Ran { comparison: Some(c), .. }) => {
                let first = c.first.clone().unwrap_or_default();
                Some(format!("{} elements are wrong; {first}", c.mismatches))
            }
            Err(Failure(ds)) => Some(ds.iter().map(ToString::to_string).collect()),
        };
        let right = wrong.is_none();
        self.judge((program, sizes), device, variant, wrong, observer);
        Ok(tried.ok().filter(|_| right))
    }

    /// Runs a program with the kernels of a plan. Sizes that the request leaves open are those of the plan. The result
    /// is compared with the interpreter's if `execute` asks for it, if the kernels differ from those that the plan was
    /// made from (which only `force` allows), or if the store has no record that they were right on this device.
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
        let key = Key {
            rules: plan.rules.clone(),
            float: plan.float.clone(),
            ..self.key(program, &sizes, &device)
        };
        let variant = Arc::new(planned.variant);
        let known = match self.look()? {
            Some(store) => store.is_verified(&key, &variant.hash)?,
            None => false,
        };
        let verify = execute.verify || planned.other_kernels || !known;
        let execute = Execute { verify, ..execute };
        let ran = self.once(program, &request, &device, variant, execute, observer)?;
        if let Some(path) = &self.store
            && !known
            && ran.comparison.as_ref().is_some_and(|c| c.ok)
        {
            // If the store cannot be written, the kernels are checked again next time.
            let _ = Store::open(path).and_then(|mut s| s.verify(&key, &ran.variant.hash));
        }
        let made = Made { how: How::Plan, tuned_for: None, interrupted: false };
        executed(program, ran, made, (device, sizes), observer)
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

    /// Runs kernels, and compares their result with the interpreter's if `execute` says so.
    fn once(
        &self,
        program: &Program,
        request: &Request,
        device: &DeviceInfo,
        variant: Arc<Variant>,
        Execute { verify, repeat, .. }: Execute,
        observer: &dyn Observer,
    ) -> Result<Ran> {
        let Bound { sizes, inputs, values, warnings } = bind(program, request)?;
        let reference =
            verify.then(|| Reference::start(&program.entry, &sizes, &values, &self.limits));
        let inputs = Arc::new(inputs);
        let mut worker = self.start_worker(device, inputs.clone());
        let answer = worker.prepare(variant.plan.clone()).and_then(|(id, _)| {
            let (first, arrays) = worker.check(id)?;
            let slow = first.device_us > SLOW.as_secs_f64() * 1e6;
            let more = match repeat.unwrap_or(usize::from(!slow)) {
                0 => vec![],
                n => worker.run(id, n, Duration::MAX)?,
            };
            Ok(((first, more), arrays))
        });
        let (times, arrays) = match answer {
            Ok(answer) => answer,
            Err(WorkerError::Worker(failure)) if has_no_value(&failure) => {
                return Err(self.no_value(program, &sizes, &values, failure, observer));
            }
            Err(WorkerError::Worker(failure)) => return Err(failure),
            Err(WorkerError::Candidate(failure)) => {
                let text = format!("`{}` failed: {}", program.entry.name, failure.class);
                let d = Diagnostic::error(failure.class.code(), text);
                return Err(d.note(failure.log).into());
            }
            Err(e) => return Err(e.into()),
        };
        let (mut comparison, mut checked) = (None, None);
        if let Some(mut reference) = reference
            && program.placed(reference.wait(|| !observer.stop()))?
        {
            let verdict = program.placed(reference.compare(arrays.clone()))?;
            comparison = verdict.map(|v| v.comparison);
            checked = reference.checked();
        }
        if comparison.as_ref().is_some_and(|c| c.ok)
            && let Some(mut whole) = self.on_whole_numbers(program, &sizes, &inputs, observer)?
            && let Some(wrong) =
                self.wrong_on_whole_numbers(device, &variant, &mut whole, observer)?
        {
            comparison = Some(wrong);
        }
        Ok(Ran { variant, times, tuned_us: None, arrays, comparison, checked, warnings })
    }

    /// Finds the place in the program where kernels found no value, with the interpreter. Returns the interpreter's
    /// diagnostic; an error if the interpreter does find a value; else `failure`.
    fn no_value(
        &self,
        program: &Program,
        sizes: &Sizes,
        values: &[Value],
        failure: Failure,
        observer: &dyn Observer,
    ) -> Failure {
        let mut reference = Reference::start(&program.entry, sizes, values, &self.limits);
        match program.placed(reference.wait(|| !observer.stop())) {
            Err(placed) if has_no_value(&placed) => placed,
            Ok(true) if reference.checked().is_none() => {
                let mut d = Diagnostic::error(
                    Code::WrongResult,
                    "the kernels find no value on these inputs, and the interpreter does",
                );
                d.notes.extend(failure.0.iter().map(|d| format!("the kernels say: {}", d.message)));
                d.into()
            }
            _ => failure,
        }
    }
}

/// Returns the same options with a comparison of the result.
fn verified(execute: Execute) -> Execute {
    Execute { verify: true, ..execute }
}

/// Returns whether a failure says that the program has no value on the inputs.
fn has_no_value(failure: &Failure) -> bool {
    failure.0.iter().any(|d| d.code == Code::Eval)
}

/// Makes the result of a run.
fn executed(
    program: &Program,
    ran: Ran,
    Made { how, tuned_for, interrupted }: Made,
    (device, sizes): (DeviceInfo, Sizes),
    observer: &mut dyn Observer,
) -> Result<Execution> {
    let Ran { variant, times: (first, more), tuned_us, arrays, comparison, checked, warnings } =
        ran;
    let timed = if more.is_empty() { std::slice::from_ref(&first) } else { &more };
    let of = |time: fn(&RunTimes) -> f64| timed.iter().map(time).collect::<Vec<_>>();
    let median = |time| median(&of(time)).unwrap_or_default();
    if how != How::Optimized {
        for warning in &warnings {
            observer.event(&Event::Warning(warning));
        }
    }
    let elaborated = program.elaborate(&sizes)?;
    let work = work(program, &sizes, &elaborated.term, &elaborated.env)?;
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
        tuned_for,
        variant,
        device_us: median(|t| t.device_us),
        wall_us: median(|t| t.wall_us),
        runs: more.len(),
        tuned_us,
        comparison,
        checked,
        sizes,
        device,
        work,
        warnings,
        interrupted,
    })
}
