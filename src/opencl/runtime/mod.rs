//! The driver: devices, building, buffers, launches and timing, based on `opencl3`.
//!
//! This is the only module that talks to OpenCL, and the only one with `unsafe`. The OpenCL library is loaded when
//! the first function here is called; without the library, everything else in patsat works. Nothing here decides
//! what to run: the runtime executes a [`HostPlan`], after checking it against the device.

mod bandwidth;
mod cache;
mod copies;
mod error;
mod listing;
mod meeting;
mod prepared;
mod products;
mod resident;
mod steps;
mod sub_group;
mod walk;

pub use bandwidth::{Bandwidth, Figure, bandwidth};
pub use listing::remembered_devices;
pub use prepared::{DeviceInputs, Prepared, Progress, RunTimes, Watch};
pub use resident::DeviceArray;

use crate::calculus::op::products::Products;
use crate::device::{Capabilities, DeviceInfo, DeviceKind, select};
use crate::diag::{Code, Diagnostic, Result};
use crate::opencl::plan::HostPlan;
use crate::opencl::yardstick::NONTEMPORAL_PROBE;
use cache::Cache;
use error::driver;
use opencl3::command_queue::{CL_QUEUE_PROFILING_ENABLE, CommandQueue};
use opencl3::context::Context;
use opencl3::device::{CL_DEVICE_TYPE_ALL, CL_DEVICE_TYPE_CPU, CL_DEVICE_TYPE_GPU, Device};
use opencl3::error_codes::ClError;
use opencl3::kernel::Kernel;
use opencl3::platform::{Platform, get_platforms};
use opencl3::program::Program;
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// A buffer on the device, as raw bytes.
type Bytes = opencl3::memory::Buffer<u8>;

/// Returns every device of every platform, in the platforms' order.
pub fn devices() -> Result<Vec<DeviceInfo>> {
    Ok(handles()?.into_iter().map(|(info, _)| info).collect())
}

/// Held while devices are listed. PoCL reports no devices to a thread that asks while it still answers the first
/// request of another thread.
static LISTING: Mutex<()> = Mutex::new(());

/// Returns every device with its driver handle.
fn handles() -> Result<Vec<(DeviceInfo, Device)>> {
    let _alone = LISTING.lock().unwrap_or_else(PoisonError::into_inner);
    let none = || {
        Diagnostic::error(Code::NoOpenCl, "no OpenCL platform is installed")
            .help("for the CPU, on Debian or Ubuntu: `apt-get install pocl-opencl-icd`")
            .help("for a GPU: install its vendor's driver with OpenCL, and `ocl-icd-libopencl1`")
    };
    // Loaders report a missing library and a library without platforms in several ways. To the user, these are the
    // same problem.
    let platforms = get_platforms().map_err(|e| none().note(format!("the loader says {e}")))?;
    if platforms.is_empty() {
        return Err(none().into());
    }
    let mut found = vec![];
    for platform in platforms {
        // A platform without a device of its kind (a GPU driver on a machine without the GPU) is not an error.
        for id in platform.get_devices(CL_DEVICE_TYPE_ALL).unwrap_or_default() {
            let device = Device::new(id);
            if device.available().unwrap_or(false) && device.compiler_available().unwrap_or(false) {
                let info = describe(found.len(), platform, device)
                    .map_err(|e| driver(e, "describing a device"))?;
                found.push((info, device));
            }
        }
    }
    if found.is_empty() {
        return Err(none().note("there are platforms, but none of them has a device").into());
    }
    Ok(found)
}

/// Returns the driver's description of a device. Fails if a limit cannot be queried; properties that an old driver
/// may not know get defaults.
fn describe(
    index: usize,
    platform: Platform,
    device: Device,
) -> std::result::Result<DeviceInfo, ClError> {
    let kind = match device.dev_type()? {
        t if t & CL_DEVICE_TYPE_GPU != 0 => DeviceKind::Gpu,
        t if t & CL_DEVICE_TYPE_CPU != 0 => DeviceKind::Cpu,
        _ => DeviceKind::Other,
    };
    let text = |s: String| s.trim_matches(['\0', ' ', '\n']).to_string();
    let sizes = device.max_work_item_sizes()?;
    let size = |d: usize| sizes.get(d).copied().unwrap_or(1);
    let extensions: Vec<String> =
        text(device.extensions()?).split_whitespace().map(str::to_string).collect();
    let has = |name: &str| extensions.iter().any(|e| e == name);
    const CL_LOCAL_MEM_IS_LOCAL: u32 = 1; // CL_LOCAL, as against CL_GLOBAL (2)
    Ok(DeviceInfo {
        index,
        platform: text(platform.name()?),
        name: text(device.name()?),
        vendor: text(device.vendor()?),
        driver: text(device.driver_version()?),
        opencl_version: text(device.version()?),
        kind,
        compute_units: device.max_compute_units()?,
        max_work_group_size: device.max_work_group_size()?,
        max_work_item_sizes: [size(0), size(1), size(2)],
        local_mem_bytes: device.local_mem_size()?,
        local_mem_dedicated: device.local_mem_type()? == CL_LOCAL_MEM_IS_LOCAL,
        global_mem_bytes: device.global_mem_size()?,
        max_alloc_bytes: device.max_mem_alloc_size()?,
        cache_bytes: device.global_mem_cache_size().unwrap_or(0),
        vector_width_f32: device.max_preferred_vector_width_float().unwrap_or(1),
        // Doubles are an extension before OpenCL 1.2, and on some drivers also later.
        fp64: has("cl_khr_fp64") || device.double_fp_config().is_ok_and(|c| c != 0),
        fp16: has("cl_khr_fp16"),
        extensions,
        capabilities: Capabilities::default(),
    })
}

/// An open device: a context, an in-order queue with profiling, and a pool of buffers.
pub struct Runtime {
    info: DeviceInfo,
    device: Device,
    context: Context,
    queue: CommandQueue,
    /// Buffers for temporaries and outputs, by size in bytes. Prepared plans share them, since runs do not overlap
    /// and a check fetches its outputs before the next run.
    pool: RefCell<HashMap<usize, Vec<Arc<Bytes>>>>,
    /// The cache of built programs.
    cache: Option<Cache>,
    /// Most iterations of a loop that are launched before it is known whether there are any.
    iterations_ahead: usize,
    /// The kernel that counts such iterations, once it is needed.
    step: OnceCell<(Kernel, Program)>,
}

impl Runtime {
    /// Opens the device that the selector means (see [`select`]), and tests what its compiler accepts.
    pub fn open(selector: Option<&str>) -> Result<Runtime> {
        Runtime::open_with(selector, None)
    }

    /// Like [`Runtime::open`], with a folder for built programs.
    pub fn open_with(selector: Option<&str>, cache: Option<&Path>) -> Result<Runtime> {
        let all = handles()?;
        let infos: Vec<DeviceInfo> = all.iter().map(|(info, _)| info.clone()).collect();
        let wanted = select(&infos, selector)?.index;
        let (info, device) = all
            .into_iter()
            .find(|(info, _)| info.index == wanted)
            .ok_or_else(|| Diagnostic::error(Code::Internal, "a selected device vanished"))?;
        let context = Context::from_device(&device).map_err(|e| driver(e, "creating a context"))?;
        // The OpenCL 1.x form also works in every later version, and needs no null-terminated list.
        #[allow(deprecated)]
        let queue = CommandQueue::create_default(&context, CL_QUEUE_PROFILING_ENABLE)
            .map_err(|e| driver(e, "creating a command queue"))?;
        let pool = RefCell::new(HashMap::new());
        let cache = cache.map(Cache::new);
        let iterations_ahead = walk::iterations_ahead(info.kind);
        let step = OnceCell::new();
        let mut runtime =
            Runtime { info, device, context, queue, pool, cache, iterations_ahead, step };
        runtime.info.capabilities = Capabilities {
            nontemporal: runtime.compiles(NONTEMPORAL_PROBE),
            sub_group: sub_group::size(&runtime),
            products: products::available(&runtime, Products::F32),
            products_f16: products::available(&runtime, Products::F16),
            products_bf16: products::available(&runtime, Products::BF16),
            products_i8: products::available(&runtime, Products::I8),
            copies_ahead: copies::available(&runtime),
            resident_groups: meeting::available(&runtime),
        };
        Ok(runtime)
    }

    /// Returns the device's description, with its capabilities.
    pub fn info(&self) -> &DeviceInfo {
        &self.info
    }

    /// Builds a plan's program and creates its kernels. The error of a failed build contains the compiler's log.
    pub fn build(&self, plan: &Arc<HostPlan>) -> Result<Built> {
        let started = Instant::now();
        let built = |program: Program, kernels, cached| Built {
            plan: plan.clone(),
            kernels,
            build_ms: started.elapsed().as_secs_f64() * 1e3,
            cached,
            program,
        };
        let file =
            self.cache.as_ref().map(|c| (c, c.file(&self.info, &plan.source, &plan.options)));
        if let Some((_, file)) = &file
            && let Some(binary) = Cache::get(file)
        {
            // If the cached binary cannot be used for any reason, build from source.
            let loaded = self.load(&binary, &plan.options);
            match loaded.and_then(|p| Some((prepared::kernels(self, &p, plan).ok()?, p))) {
                Some((kernels, program)) => return Ok(built(program, kernels, true)),
                None => Cache::forget(file),
            }
        }
        let program = self.compile(&plan.source, &plan.options)?;
        let kernels = prepared::kernels(self, &program, plan)?;
        let built = built(program, kernels, false);
        if let Some((cache, file)) = file
            && let Some(binary) = built.program.get_binaries().ok().and_then(|mut all| all.pop())
        {
            cache.put(&file, &binary);
        }
        Ok(built)
    }

    /// Creates a program from a binary that the driver produced earlier; `None` if the driver refuses it.
    fn load(&self, binary: &[u8], options: &str) -> Option<Program> {
        // SAFETY: the device is the one that the context was created for. The binary was written by this driver and
        // is complete, since the cache names files by device and driver, and stores a hash in each.
        let made =
            unsafe { Program::create_from_binary(&self.context, &[self.device.id()], &[binary]) };
        let mut program = made.ok()?;
        program.build(&[self.device.id()], options).ok()?;
        Some(program)
    }

    /// Returns whether the compiler accepts a program.
    fn compiles(&self, source: &str) -> bool {
        self.compile(source, "").is_ok()
    }

    fn compile(&self, source: &str, options: &str) -> Result<Program> {
        if options.contains('\0') || source.contains('\0') {
            return Err(Diagnostic::error(Code::BuildFailed, "a program contains a NUL").into());
        }
        let mut program = Program::create_from_source(&self.context, source)
            .map_err(|e| driver(e, "creating a program"))?;
        program.build(&[self.device.id()], options).map_err(|e| {
            let log = program.get_build_log(self.device.id()).unwrap_or_default();
            let log = log.trim_matches(['\0', '\n', ' ']);
            let message = format!("{} did not build a program ({e})", self.info.label());
            let d = Diagnostic::error(Code::BuildFailed, message);
            if log.is_empty() { d } else { d.note(log) }
        })?;
        Ok(program)
    }
}

/// A built program, with a kernel for each launch of its plan.
pub struct Built {
    /// The plan that was built.
    pub plan: Arc<HostPlan>,
    /// Build time, in milliseconds. Some drivers (PoCL) finish compiling at the first launch.
    pub build_ms: f64,
    /// Whether the program was loaded from the cache.
    pub cached: bool,
    kernels: Vec<Kernel>,
    /// Kernels need their program as long as they exist.
    program: Program,
}

#[cfg(test)]
mod tests;
