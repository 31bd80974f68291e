//! Plans with their buffers: checks, uploads, runs, times and fetches.

use super::error::driver;
use super::walk::{BEFORE_LOOP, What};
use super::{Built, Bytes, DeviceArray, Runtime, steps};
use crate::device::{ARRAY_ALIGNMENT, DeviceInfo};
use crate::diag::{Code, Diagnostic, Result};
use crate::lang::types::ScalarType;
use crate::opencl::host::{HostArray, Inputs, Slot};
use crate::opencl::plan::{Arg, Control, HostPlan, Launch, Role};
use half::{bf16, f16};
use opencl3::error_codes::{CL_INVALID_OPERATION, CL_SUCCESS, ClError};
use opencl3::event::{CL_COMPLETE, CL_RUNNING, Event};
use opencl3::kernel::Kernel;
use opencl3::memory::{CL_MEM_READ_WRITE, ClMem};
use opencl3::program::Program;
use opencl3::types::{CL_BLOCKING, cl_command_queue, cl_kernel};
use serde::{Deserialize, Serialize};
use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap};
use std::ptr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Value of every byte of an output before a checked run: NaN in every float type, -1 in every signed integer type.
/// An element that a kernel forgets to write then differs from the reference.
const POISON: u8 = 0xFF;

/// Launches that may wait for the device. A loop of the host may launch more kernels than a driver has room for.
const LAUNCHES_AHEAD: usize = 4096;

/// Inputs on the device, shared by all plans that read them. Scalars stay on the host.
pub struct DeviceInputs {
    pub(super) buffers: BTreeMap<Slot, (ScalarType, usize, Arc<Bytes>)>,
    pub(super) host: BTreeMap<Slot, HostArray>,
}

/// Times of one run of a plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunTimes {
    /// Time from the start of the first kernel to the end of the last, by device events, in microseconds.
    pub device_us: f64,
    /// Time of each kernel of the plan, by device events, in microseconds: the sum over its launches. Empty if only the
    /// ends of the run were timed.
    pub kernels_us: Vec<f64>,
    /// Time from the first enqueue until everything is done, by the host's clock, in microseconds.
    pub wall_us: f64,
}

impl RunTimes {
    /// Returns the time of the run beyond the device's own time, in microseconds: the cost of launching, and in a
    /// first run the time that some drivers still compile.
    pub fn overhead_us(&self) -> f64 {
        (self.wall_us - self.device_us).max(0.0)
    }
}

/// The launches of a run that get a device event. On some drivers a launch with an event takes three times as long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timed {
    /// The first launch and the last.
    Ends,
    /// Every launch.
    All,
}

/// The progress of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A kernel is running, according to the driver.
    Begun,
    /// The kernel has ended.
    Ended,
}

/// A callback that receives the progress of a run.
pub type Watch<'a> = Option<&'a mut dyn FnMut(Progress)>;

/// A plan that is ready to run: its kernels have their arguments. It owns its program or borrows it.
pub struct Prepared<B = Built> {
    built: B,
    /// The plan's buffers. OpenCL implementations need not retain buffers that are set as arguments (PoCL does
    /// not), so the buffers are kept here as long as the kernels.
    pub(super) buffers: Vec<Arc<Bytes>>,
    /// The steps of the host. All loops with a number of iterations have it.
    pub(super) steps: Vec<Control>,
}

/// Where a prepared plan writes its outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outputs {
    /// To buffers from the pool, which other plans write to, too.
    Pooled,
    /// To new buffers.
    Own,
}

pub(super) fn internal(message: String) -> Diagnostic {
    Diagnostic::error(Code::Internal, message)
}

/// Returns the size of a buffer in bytes. An empty array takes one element, since OpenCL has no empty buffers.
pub(super) fn bytes_of(elem: ScalarType, len: usize) -> Option<usize> {
    len.max(1).checked_mul(elem.bytes())
}

/// Checks that a plan's buffers fit the device, before anything is allocated.
pub(super) fn check_memory(plan: &HostPlan, info: &DeviceInfo) -> Result<()> {
    let mut total = 0u64;
    for b in &plan.buffers {
        let bytes = bytes_of(b.elem, b.len).map_or(u64::MAX, |n| n as u64);
        if bytes > info.max_alloc_bytes {
            return Err(Diagnostic::error(
                Code::DeviceMemory,
                format!(
                    "the array `{}` takes {bytes} bytes, more than one buffer may have",
                    b.name
                ),
            )
            .note(format!("{} allows {} bytes for one buffer", info.label(), info.max_alloc_bytes))
            .into());
        }
        total = total.saturating_add(bytes);
    }
    if total > info.global_mem_bytes {
        return Err(Diagnostic::error(
            Code::DeviceMemory,
            format!("the program's arrays take {total} bytes, more than the device has"),
        )
        .note(format!("{} has {} bytes of global memory", info.label(), info.global_mem_bytes))
        .into());
    }
    Ok(())
}

/// Returns the value of a scalar argument, by its index into [`HostPlan::scalars`].
fn scalar_of<'a>(plan: &HostPlan, s: usize, inputs: &'a DeviceInputs) -> Result<&'a HostArray> {
    let scalar =
        plan.scalars.get(s).ok_or_else(|| internal(format!("the plan has no scalar {s}")))?;
    let slot = Slot { param: scalar.param.clone(), component: scalar.component };
    let value = inputs.host.get(&slot).ok_or_else(|| {
        let message = format!("no value was given for `{}`", scalar.param);
        Diagnostic::error(Code::InputMissing, message)
    })?;
    if value.ty() != scalar.ty {
        let (is, want) = (value.ty(), scalar.ty);
        let message = format!("`{}` is {is}; the plan wants {want}", scalar.param);
        return Err(Diagnostic::error(Code::InputType, message).into());
    }
    Ok(value)
}

/// Creates the kernel of every launch, and checks each launch against the device's limits.
pub(super) fn kernels(rt: &Runtime, program: &Program, plan: &HostPlan) -> Result<Vec<Kernel>> {
    plan.launches.iter().map(|launch| kernel(rt, program, launch)).collect()
}

fn kernel(rt: &Runtime, program: &Program, launch: &Launch) -> Result<Kernel> {
    let name = &launch.kernel;
    if name.contains('\0') {
        return Err(internal(format!("a kernel is named {name:?}")).into());
    }
    let kernel = Kernel::create(program, name)
        .map_err(|e| driver(e, &format!("looking up the kernel `{name}`")))?;
    let args = kernel.num_args().map_err(|e| driver(e, "describing a kernel"))?;
    if args as usize != launch.args.len() {
        let given = launch.args.len();
        return Err(
            internal(format!("`{name}` takes {args} arguments, the plan has {given}")).into()
        );
    }
    let limit =
        |what: String| Diagnostic::error(Code::KernelLimit, format!("the kernel `{name}` {what}"));
    for d in 0..3 {
        let (global, local) = (launch.global[d], launch.local[d]);
        if local == 0 || !global.is_multiple_of(local) {
            return Err(limit(format!("has {global} work-items in work-groups of {local}")).into());
        }
        if local > rt.info.max_work_item_sizes[d] {
            let most = rt.info.max_work_item_sizes[d];
            return Err(limit(format!(
                "has {local} work-items in dimension {d}; {most} are allowed"
            ))
            .into());
        }
    }
    let group =
        launch.local.iter().try_fold(1usize, |a, &b| a.checked_mul(b)).unwrap_or(usize::MAX);
    // A kernel may allow smaller groups than the device, since registers are limited. This does not apply to a
    // kernel that was compiled for exactly this group size, whatever the driver reports.
    let compiled = kernel.get_compile_work_group_size(rt.device.id()).unwrap_or_default();
    let most = if compiled == launch.local {
        rt.info.max_work_group_size
    } else {
        kernel
            .get_work_group_size(rt.device.id())
            .unwrap_or(rt.info.max_work_group_size)
            .min(rt.info.max_work_group_size)
    };
    if group > most {
        return Err(limit(format!("has work-groups of {group}; {most} are allowed")).into());
    }
    let local_mem = kernel.get_local_mem_size(rt.device.id()).unwrap_or(0);
    // Drivers report what the alignment of arrays may take, too.
    let spare = ARRAY_ALIGNMENT as u64;
    if local_mem > rt.info.local_bytes_of_arrays() + spare {
        let has = rt.info.local_mem_bytes;
        return Err(
            limit(format!("takes {local_mem} bytes of local memory; there are {has}")).into()
        );
    }
    Ok(kernel)
}

impl Runtime {
    pub(super) fn allocate(&self, bytes: usize) -> Result<Arc<Bytes>> {
        // SAFETY: no host pointer is passed, so there is nothing that has to be valid or outlive the call.
        let buffer =
            unsafe { Bytes::create(&self.context, CL_MEM_READ_WRITE, bytes, ptr::null_mut()) };
        let buffer = buffer.map_err(|e| driver(e, &format!("a buffer of {bytes} bytes")))?;
        Ok(Arc::new(buffer))
    }

    pub(super) fn write(&self, buffer: &Bytes, data: &[u8]) -> Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        // The wrapper requires a unique reference for writing. Plans share the handle, but runs in one in-order
        // queue do not overlap. Dropping a second wrapper would release the handle twice, hence `ManuallyDrop`.
        let mut alias = std::mem::ManuallyDrop::new(Bytes::new(buffer.get()));
        // SAFETY: blocking, so `data` is alive throughout; callers allocate at least `data.len()`.
        unsafe { self.queue.enqueue_write_buffer(&mut alias, CL_BLOCKING, 0, data, &[]) }
            .map_err(|e| driver(e, "writing a buffer"))?;
        Ok(())
    }

    fn poison(&self, buffer: &Bytes, bytes: usize) -> Result<()> {
        let mut alias = std::mem::ManuallyDrop::new(Bytes::new(buffer.get()));
        // A long pattern is much faster on some drivers. Its length must divide the size of the filled range.
        let bulk = bytes / 16 * 16;
        for (pattern, offset, size) in
            [(&[POISON; 16][..], 0, bulk), (&[POISON], bulk, bytes - bulk)]
        {
            if size > 0 {
                // SAFETY: the range lies within the buffer; the pattern is copied by the call.
                unsafe { self.queue.enqueue_fill_buffer(&mut alias, pattern, offset, size, &[]) }
                    .map_err(|e| driver(e, "filling a buffer"))?;
            }
        }
        Ok(())
    }

    pub(super) fn read(&self, buffer: &Bytes, data: &mut [u8]) -> Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        // SAFETY: blocking, so `data` is alive throughout; callers allocated at least `data.len()`.
        unsafe { self.queue.enqueue_read_buffer(buffer, CL_BLOCKING, 0, data, &[]) }
            .map_err(|e| driver(e, "reading a buffer"))?;
        Ok(())
    }

    /// Copies inputs to the device.
    pub fn upload(&self, inputs: &Inputs) -> Result<DeviceInputs> {
        let mut total = 0u64;
        let mut buffers = BTreeMap::new();
        let mut host = BTreeMap::new();
        for (slot, array) in &inputs.0 {
            let bytes = array.bytes().len().max(array.ty().bytes());
            total = total.saturating_add(bytes as u64);
            if bytes as u64 > self.info.max_alloc_bytes || total > self.info.global_mem_bytes {
                let name = &slot.param;
                return Err(Diagnostic::error(
                    Code::DeviceMemory,
                    format!("the input `{name}` ({bytes} bytes) does not fit the device's memory"),
                )
                .note(format!(
                    "{} has {} bytes of global memory, and allows {} bytes for one buffer",
                    self.info.label(),
                    self.info.global_mem_bytes,
                    self.info.max_alloc_bytes
                ))
                .into());
            }
            let buffer = self.allocate(bytes)?;
            self.write(&buffer, array.bytes())?;
            buffers.insert(slot.clone(), (array.ty(), array.len(), buffer));
            if array.len() == 1 {
                host.insert(slot.clone(), array.clone());
            }
        }
        Ok(DeviceInputs { buffers, host })
    }

    /// Assigns buffers to a built plan and sets every argument. Temporaries and outputs come from a pool that
    /// prepared plans share, so outputs must be fetched before another plan runs: [`Prepared::check`] runs and
    /// fetches in one call.
    pub fn prepare(&self, built: Built, inputs: &DeviceInputs) -> Result<Prepared> {
        self.prepare_with(built, inputs, Outputs::Pooled)
    }

    /// Like [`Runtime::prepare`], with the place of the outputs.
    pub(super) fn prepare_with<B: Borrow<Built>>(
        &self,
        built: B,
        inputs: &DeviceInputs,
        outputs: Outputs,
    ) -> Result<Prepared<B>> {
        let program: &Built = built.borrow();
        let plan = program.plan.clone();
        check_memory(&plan, &self.info)?;
        let mut used: HashMap<usize, usize> = HashMap::new();
        let mut buffers = Vec::with_capacity(plan.buffers.len());
        for b in &plan.buffers {
            buffers.push(match &b.role {
                Role::Input(param, component) => {
                    let slot = Slot { param: param.clone(), component: *component };
                    match inputs.buffers.get(&slot) {
                        Some((ty, len, buffer)) if (*ty, *len) == (b.elem, b.len) => buffer.clone(),
                        Some((ty, len, _)) => {
                            let want = format!("{} of {}", b.len, b.elem);
                            let message =
                                format!("`{param}` is {len} of {ty}; the plan wants {want}");
                            return Err(Diagnostic::error(Code::InputShape, message).into());
                        }
                        None => {
                            let message = format!("no value was given for `{param}`");
                            return Err(Diagnostic::error(Code::InputMissing, message).into());
                        }
                    }
                }
                Role::GoesOn => {
                    let buffer = self.allocate(BEFORE_LOOP.len())?;
                    self.write(&buffer, &BEFORE_LOOP)?;
                    buffer
                }
                Role::Meeting => {
                    let bytes = bytes_of(b.elem, b.len).unwrap_or_default();
                    let buffer = self.allocate(bytes)?;
                    self.write(&buffer, &vec![0; bytes])?;
                    buffer
                }
                Role::Temp | Role::Output(_) | Role::Faults => {
                    let bytes = bytes_of(b.elem, b.len)
                        .ok_or_else(|| internal(format!("the size of `{}` overflows", b.name)))?;
                    if outputs == Outputs::Own && matches!(b.role, Role::Output(_)) {
                        buffers.push(self.allocate(bytes)?);
                        continue;
                    }
                    let k = used.entry(bytes).or_default();
                    *k += 1;
                    self.pooled(bytes, *k - 1)?
                }
            });
        }
        for (launch, kernel) in plan.launches.iter().zip(&program.kernels) {
            for (i, arg) in (0u32..).zip(&launch.args) {
                match *arg {
                    Arg::Buffer(b) => {
                        let buffer = buffers
                            .get(b)
                            .ok_or_else(|| internal(format!("the plan has no buffer {b}")))?;
                        // SAFETY: the argument is a `cl_mem`, kept alive in `Prepared::buffers`.
                        unsafe { kernel.set_arg(i, &buffer.get()) }
                    }
                    Arg::Scalar(s) => set_scalar(kernel, i, scalar_of(&plan, s, inputs)?),
                    // SAFETY: the value has the size of the kernel's `int`; its bytes are copied.
                    Arg::Counter(_) => unsafe { kernel.set_arg(i, &0i32) },
                }
                .map_err(|e| {
                    driver(e, &format!("argument {i} of the kernel `{}`", launch.kernel))
                })?;
            }
        }
        let steps = plan.steps();
        steps::check(&steps, &plan)?;
        let steps = steps::given(steps, &|k| scalar_of(&plan, k, inputs))?;
        Ok(Prepared { built, buffers, steps })
    }

    /// Returns the `k`-th pooled buffer of a size.
    fn pooled(&self, bytes: usize, k: usize) -> Result<Arc<Bytes>> {
        let have = self.pool.borrow().get(&bytes).and_then(|v| v.get(k)).cloned();
        match have {
            Some(buffer) => Ok(buffer),
            None => {
                let buffer = self.allocate(bytes)?;
                self.pool.borrow_mut().entry(bytes).or_default().push(buffer.clone());
                Ok(buffer)
            }
        }
    }

    /// Frees pooled buffers that no prepared plan uses.
    pub fn trim(&self) {
        for buffers in self.pool.borrow_mut().values_mut() {
            buffers.retain(|b| Arc::strong_count(b) > 1);
        }
    }

    /// Enqueues a kernel, and returns its event if it is timed.
    fn launch(
        &self,
        kernel: &Kernel,
        global: &[usize; 3],
        local: &[usize; 3],
        timed: bool,
    ) -> opencl3::Result<Option<Event>> {
        // Leave out trailing dimensions of one, which take time in some drivers.
        let dims = (1u32..=3).rev().find(|&d| global[d as usize - 1] > 1).unwrap_or(1);
        let (global, local) = (global.as_ptr(), local.as_ptr());
        let queue = &self.queue;
        // SAFETY: every argument was set in `prepare`, its buffers are kept in `Prepared`, and sizes were checked
        // against the device. The code generator is responsible for what the kernel does with its pointers;
        // candidates run in a worker process for that reason.
        unsafe {
            if timed {
                queue
                    .enqueue_nd_range_kernel(kernel.get(), dims, ptr::null(), global, local, &[])
                    .map(Some)
            } else {
                untimed_launch(queue.get(), kernel.get(), dims, global, local).map(|()| None)
            }
        }
    }
}

/// Enqueues a kernel without an event, for which `opencl3` has no function.
///
/// # Safety
/// As for `enqueue_nd_range_kernel`: handles are valid, arguments are set, and sizes have `dims` elements.
unsafe fn untimed_launch(
    queue: cl_command_queue,
    kernel: cl_kernel,
    dims: u32,
    global: *const usize,
    local: *const usize,
) -> opencl3::Result<()> {
    let (none, waits) = (ptr::null(), ptr::null());
    // The library is there, since the queue is; likewise the function.
    let library = cl3::load_library().as_ref();
    let status = library.ok().and_then(|library| {
        library.clEnqueueNDRangeKernel(
            queue,
            kernel,
            dims,
            none,
            global,
            local,
            0,
            waits,
            ptr::null_mut(),
        )
    });
    match status.unwrap_or(CL_INVALID_OPERATION) {
        CL_SUCCESS => Ok(()),
        status => Err(ClError(status)),
    }
}

/// Sets a scalar argument, in the C type that the kernel declares.
fn set_scalar(kernel: &Kernel, i: u32, value: &HostArray) -> opencl3::Result<()> {
    macro_rules! set {
        ($t:ty) => {{
            let v: Option<Vec<$t>> = value.to_vec();
            let v: $t = v.and_then(|v| v.first().copied()).unwrap_or_default();
            // SAFETY: `v` has the size of the kernel's parameter, or the driver reports the difference; the call
            // copies its bytes.
            unsafe { kernel.set_arg(i, &v) }
        }};
    }
    match value.ty() {
        ScalarType::F16 => set!(f16),
        ScalarType::BF16 => set!(bf16),
        ScalarType::F32 => set!(f32),
        ScalarType::F64 => set!(f64),
        ScalarType::I8 => set!(i8),
        ScalarType::I16 => set!(i16),
        ScalarType::I32 => set!(i32),
        ScalarType::I64 => set!(i64),
        ScalarType::U8 => set!(u8),
        ScalarType::U16 => set!(u16),
        ScalarType::U32 => set!(u32),
        ScalarType::U64 => set!(u64),
        ScalarType::Bool => set!(bool),
    }
}

/// Reports when a kernel begins and ends, if it runs long enough to be observed. Errors are reported after the run.
fn follow(event: &Event, tell: &mut dyn FnMut(Progress)) {
    let (mut begun, mut pause) = (false, Duration::from_micros(50));
    while let Ok(status) = event.command_execution_status()
        && status.0 > CL_COMPLETE
    {
        if status.0 == CL_RUNNING && !begun {
            begun = true;
            tell(Progress::Begun);
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(5));
    }
    if begun {
        tell(Progress::Ended);
    }
}

impl<B: Borrow<Built>> Prepared<B> {
    pub(super) fn built(&self) -> &Built {
        self.built.borrow()
    }

    /// Returns the plan.
    pub fn plan(&self) -> &HostPlan {
        &self.built().plan
    }

    /// Returns the build time, in milliseconds.
    pub fn build_ms(&self) -> f64 {
        self.built().build_ms
    }

    /// Returns whether the program was loaded from the cache.
    pub fn cached(&self) -> bool {
        self.built().cached
    }

    /// Runs every step in order and waits for the end. The time of each kernel is known only if there is one.
    pub fn run(&self, rt: &Runtime) -> Result<RunTimes> {
        self.run_with(rt, Timed::Ends, None)
    }

    /// Like [`Prepared::run`], but times each kernel and reports progress.
    pub fn run_watched(&self, rt: &Runtime, watch: Watch) -> Result<RunTimes> {
        self.run_with(rt, Timed::All, watch)
    }

    fn run_with(&self, rt: &Runtime, timed: Timed, watch: Watch) -> Result<RunTimes> {
        let started = Instant::now();
        let mut events: Vec<(Option<usize>, Event)> = vec![];
        let mut launched = 0usize;
        // The position in `events` of the launch to wait for next, so that not too many launches wait for the device.
        let mut behind = None;
        self.walk(rt, &mut |what, last| {
            let mark = launched.is_multiple_of(LAUNCHES_AHEAD / 2);
            launched += 1;
            let timed = timed == Timed::All || mark || last;
            let (k, event) = match what {
                What::Kernel(k) => {
                    let (l, kernel) = (&self.plan().launches[k], &self.built().kernels[k]);
                    let event = rt.launch(kernel, &l.global, &l.local, timed);
                    let doing = || format!("launching `{}`", l.kernel);
                    (Some(k), event.map_err(|e| driver(e, &doing()))?)
                }
                What::Step(kernel) => {
                    let event = rt.launch(kernel, &[1; 3], &[1; 3], timed);
                    (None, event.map_err(|e| driver(e, "checking a loop"))?)
                }
            };
            events.extend(event.map(|event| (k, event)));
            if mark && let Some(behind) = behind.replace(events.len() - 1) {
                let (_, event) = &events[behind];
                event.wait().map_err(|e| driver(e, "running a kernel"))?;
            }
            Ok(())
        })?;
        if let Some(tell) = watch {
            rt.queue.flush().map_err(|e| driver(e, "running the kernels"))?;
            events.iter().for_each(|(_, event)| follow(event, tell));
        }
        rt.queue.finish().map_err(|e| driver(e, "running the kernels"))?;
        let wall_us = started.elapsed().as_secs_f64() * 1e6;
        let us = |ns: u64| ns as f64 * 1e-3;
        let (mut first, mut last) = (u64::MAX, 0);
        let mut kernels_us = vec![0.0; self.built().kernels.len()];
        for (k, event) in &events {
            let status =
                event.command_execution_status().map_err(|e| driver(e, "running a kernel"))?;
            if status.0 < 0 {
                return Err(driver(ClError(status.0), "running a kernel").into());
            }
            let start =
                event.profiling_command_start().map_err(|e| driver(e, "timing a kernel"))?;
            let end = event.profiling_command_end().map_err(|e| driver(e, "timing a kernel"))?;
            first = first.min(start);
            last = last.max(end);
            if let Some(k) = k {
                kernels_us[*k] += us(end.saturating_sub(start));
            }
        }
        if timed == Timed::Ends && launched > 1 {
            kernels_us.clear();
        }
        Ok(RunTimes { device_us: us(last.saturating_sub(first.min(last))), kernels_us, wall_us })
    }

    /// Runs once on poisoned temporaries and outputs, and fetches the outputs in order.
    ///
    /// # Errors
    /// [`Code::Eval`] when a kernel finds that the program has no value on the inputs.
    pub fn check(&self, rt: &Runtime) -> Result<(RunTimes, Vec<HostArray>)> {
        self.check_watched(rt, None)
    }

    /// Like [`Prepared::check`], but reports progress.
    pub fn check_watched(&self, rt: &Runtime, watch: Watch) -> Result<(RunTimes, Vec<HostArray>)> {
        for (b, buffer) in self.plan().buffers.iter().zip(&self.buffers) {
            match b.role {
                Role::Input(..) | Role::GoesOn | Role::Meeting => {}
                Role::Temp | Role::Output(_) => rt.poison(buffer, b.len * b.elem.bytes())?,
                Role::Faults => rt.write(buffer, &vec![0; b.len * b.elem.bytes()])?,
            }
        }
        let times = self.run_watched(rt, watch)?;
        self.faults(rt)?;
        Ok((times, self.fetch(rt)?))
    }

    /// Runs once, and returns the buffers of the outputs in order.
    pub(super) fn call(&self, rt: &Runtime) -> Result<(RunTimes, Vec<DeviceArray>)> {
        let faults = self.plan().buffers.iter().zip(&self.buffers);
        for (b, buffer) in faults.filter(|(b, _)| b.role == Role::Faults) {
            rt.write(buffer, &vec![0; b.len * b.elem.bytes()])?;
        }
        let times = self.run(rt)?;
        self.faults(rt)?;
        let mut outputs = BTreeMap::new();
        for (b, bytes) in self.plan().buffers.iter().zip(&self.buffers) {
            if let Role::Output(k) = b.role {
                outputs.insert(k, DeviceArray { ty: b.elem, len: b.len, bytes: bytes.clone() });
            }
        }
        Ok((times, outputs.into_values().collect()))
    }

    /// Fails if the kernels reported a failed check.
    fn faults(&self, rt: &Runtime) -> Result<()> {
        for (b, buffer) in self.plan().buffers.iter().zip(&self.buffers) {
            if b.role != Role::Faults {
                continue;
            }
            let mut bytes = vec![0; b.len * b.elem.bytes()];
            rt.read(buffer, &mut bytes)?;
            let words = HostArray::from_bytes(b.elem, bytes).and_then(|a| a.to_vec());
            if let Some(text) = words.and_then(|words| self.plan().fault(&words)) {
                return Err(Diagnostic::error(Code::Eval, text).into());
            }
        }
        Ok(())
    }

    /// Fetches the outputs in order. They are valid only directly after a run of this plan, since prepared plans
    /// share buffers.
    fn fetch(&self, rt: &Runtime) -> Result<Vec<HostArray>> {
        let mut outputs = BTreeMap::new();
        for (b, buffer) in self.plan().buffers.iter().zip(&self.buffers) {
            if let Role::Output(k) = b.role {
                let mut data = vec![0; b.len * b.elem.bytes()];
                rt.read(buffer, &mut data)?;
                let array = HostArray::from_bytes(b.elem, data)
                    .ok_or_else(|| internal("an output of half an element".into()))?;
                if outputs.insert(k, array).is_some() {
                    return Err(internal(format!("the plan has output {k} twice")).into());
                }
            }
        }
        Ok(outputs.into_values().collect())
    }
}
