//! Descriptions of devices: their properties, their limits, and cost models of their speed.
//!
//! All of this is plain data, so that programs can be optimised for a device that is not present. Nothing here
//! talks to a driver: `opencl::runtime` fills in a [`DeviceInfo`], or a test creates one.

pub mod cost_model;

use crate::calculus::op::products::Products;
use crate::diag::{Code, Diagnostic, Result};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The kind of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceKind {
    /// A host processor.
    Cpu,
    /// A graphics processor.
    Gpu,
    /// An accelerator, or something the driver does not classify.
    Other,
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DeviceKind::Cpu => "CPU",
            DeviceKind::Gpu => "GPU",
            DeviceKind::Other => "accelerator",
        })
    }
}

/// Extensions beyond the standard that a device's compiler accepts, found by trying them and never guessed from a
/// name. All are absent until the device has been opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Capabilities {
    /// `__builtin_nontemporal_store(value, pointer)` on vectors: stores that bypass the caches.
    pub nontemporal: bool,
    /// Number of work-items in a sub-group, which are consecutive and support `sub_group_barrier`; 0 without
    /// sub-groups.
    pub sub_group: u32,
    /// NVIDIA's matrix instruction `mma.sync` in inline PTX, of tf32 numbers with sums in `f32`.
    #[serde(default)]
    pub products: bool,
    /// The same of `f16` numbers.
    #[serde(default)]
    pub products_f16: bool,
    /// The same of `bf16` numbers.
    #[serde(default)]
    pub products_bf16: bool,
    /// The same of `i8` numbers, with sums in `i32`.
    #[serde(default)]
    pub products_i8: bool,
    /// NVIDIA's `cp.async` in inline PTX: copies from global to local memory that go on beside other instructions.
    #[serde(default)]
    pub copies_ahead: bool,
    /// Work-groups of which each compute unit holds one go on while they wait for each other, and a fence of NVIDIA's inline PTX
    /// orders what they store.
    #[serde(default)]
    pub resident_groups: bool,
}

impl Capabilities {
    /// Returns the names of the available capabilities, as rules use them.
    pub fn names(&self) -> Vec<&'static str> {
        [
            ("nontemporal", self.nontemporal),
            ("subgroups", self.sub_group > 0),
            (Products::F32.capability(), self.products),
            (Products::F16.capability(), self.products_f16),
            (Products::BF16.capability(), self.products_bf16),
            (Products::I8.capability(), self.products_i8),
        ]
        .into_iter()
        .filter(|c| c.1)
        .map(|c| c.0)
        .collect()
    }
}

/// A device's description and limits, as its driver reports them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// Position among the devices of all platforms: the `k` of the selector `#k`.
    pub index: usize,
    /// The platform's name.
    pub platform: String,
    /// The device's name.
    pub name: String,
    /// Name of the manufacturer.
    pub vendor: String,
    /// Version of its driver.
    pub driver: String,
    /// The OpenCL version it offers, such as `OpenCL 3.0 CUDA`.
    pub opencl_version: String,
    /// CPU, GPU or other.
    pub kind: DeviceKind,
    /// Number of cores or multiprocessors.
    pub compute_units: u32,
    /// Most work-items in a work-group.
    pub max_work_group_size: usize,
    /// Most work-items of a work-group in each dimension.
    pub max_work_item_sizes: [usize; 3],
    /// Local memory of a work-group, in bytes.
    pub local_mem_bytes: u64,
    /// Whether local memory is separate (and not an ordinary cached part of global memory).
    pub local_mem_dedicated: bool,
    /// Global memory, in bytes.
    pub global_mem_bytes: u64,
    /// Largest single buffer, in bytes.
    pub max_alloc_bytes: u64,
    /// Size of the last-level cache, in bytes; 0 if the driver reports none.
    pub cache_bytes: u64,
    /// Preferred number of `float`s in a vector.
    pub vector_width_f32: u32,
    /// Whether `double` is available.
    pub fp64: bool,
    /// Whether `half` arithmetic is available.
    pub fp16: bool,
    /// Names of the extensions.
    pub extensions: Vec<String>,
    /// What its compiler was found to accept.
    pub capabilities: Capabilities,
}

/// Arrays in local and private memory begin at multiples of this number of bytes, so that any vector of OpenCL may be at their beginning.
pub const ARRAY_ALIGNMENT: usize = 64;

impl DeviceInfo {
    /// Bytes of local memory that the arrays of a kernel may have. Drivers add as much as their alignment may take, but NVIDIA's for devices
    /// with copies ahead adds nothing.
    pub fn local_bytes_of_arrays(&self) -> u64 {
        let added = if self.capabilities.copies_ahead { 0 } else { ARRAY_ALIGNMENT as u64 };
        self.local_mem_bytes.saturating_sub(added)
    }

    /// Returns `NAME (PLATFORM)`, for messages.
    pub fn label(&self) -> String {
        format!("{} ({})", self.name, self.platform)
    }

    /// Returns a short name for people, such as `NVIDIA H200` or `Intel Xeon Processor (PoCL)`.
    pub fn short(&self) -> String {
        // PoCL puts its driver and the microarchitecture in front of the processor's name.
        let mut name = &*self.name;
        let is_lower = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        while self.platform == POCL
            && let Some((first, rest)) = name.split_once('-')
            && first.chars().all(is_lower)
        {
            name = rest;
        }
        let mut name = name.to_owned();
        for sign in ["(R)", "(TM)", "(tm)"] {
            name = name.replace(sign, "");
        }
        let name = name.split(" @ ").next().unwrap_or(&name);
        let words: Vec<&str> = name.split_whitespace().collect();
        let name = words.join(" ");
        match self.platform == POCL {
            true => format!("{name} (PoCL)"),
            false => name,
        }
    }

    /// Returns whether this is a simulator, which finds errors in kernels but whose times are meaningless.
    pub fn is_simulator(&self) -> bool {
        self.platform.contains("Oclgrind")
    }
}

/// PoCL's name of its platform.
const POCL: &str = "Portable Computing Language";

/// Returns the device that a selector means: `#k` selects by position, any other text selects the first device
/// whose name or platform contains it (ignoring case). Without a selector, this is the first GPU, or else the first
/// device; simulators come last.
pub fn select<'a>(devices: &'a [DeviceInfo], selector: Option<&str>) -> Result<&'a DeviceInfo> {
    let found = match selector {
        None => {
            let real = || devices.iter().filter(|d| !d.is_simulator());
            real().find(|d| d.kind == DeviceKind::Gpu).or(real().next()).or(devices.first())
        }
        Some(text) => match text.strip_prefix('#').map(str::parse::<usize>) {
            Some(Ok(k)) => devices.iter().find(|d| d.index == k),
            Some(Err(_)) | None => {
                let wanted = text.to_lowercase();
                let has = |s: &str| s.to_lowercase().contains(&wanted);
                devices.iter().find(|d| has(&d.name) || has(&d.platform))
            }
        },
    };
    found.ok_or_else(|| {
        let message = match selector {
            Some(text) => format!("no device matches `{text}`"),
            None => "no OpenCL platform has a device".to_string(),
        };
        let mut d = Diagnostic::error(Code::UnknownDevice, message);
        for info in devices {
            d = d.note(format!("#{} is {}", info.index, info.label()));
        }
        if !devices.is_empty() {
            d = d.help("name a device by `#k`, or by a part of its or its platform's name");
        }
        d.into()
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns a fictitious device for tests.
    pub(crate) fn device(index: usize, platform: &str, name: &str, kind: DeviceKind) -> DeviceInfo {
        DeviceInfo {
            index,
            platform: platform.into(),
            name: name.into(),
            vendor: "V".into(),
            driver: "1".into(),
            opencl_version: "OpenCL 3.0".into(),
            kind,
            compute_units: 2,
            max_work_group_size: 4096,
            max_work_item_sizes: [4096; 3],
            local_mem_bytes: 1 << 18,
            local_mem_dedicated: kind == DeviceKind::Gpu,
            global_mem_bytes: 1 << 33,
            max_alloc_bytes: 1 << 31,
            cache_bytes: 1 << 25,
            vector_width_f32: 16,
            fp64: true,
            fp16: false,
            extensions: vec![],
            capabilities: Capabilities::default(),
        }
    }

    fn two() -> Vec<DeviceInfo> {
        vec![
            device(0, "Portable Computing Language", "pthread-cpu", DeviceKind::Cpu),
            device(1, "NVIDIA CUDA", "NVIDIA H200", DeviceKind::Gpu),
        ]
    }

    #[test]
    fn devices_have_short_names() {
        let short = |platform, name| device(0, platform, name, DeviceKind::Cpu).short();
        let xeon = "pthread-skylake-avx512-Intel(R) Xeon(R) CPU @ 2.70GHz";
        assert_eq!(short(POCL, xeon), "Intel Xeon CPU (PoCL)");
        let epyc = "cpu-znver2-AMD EPYC 64-Core Processor";
        assert_eq!(short(POCL, epyc), "AMD EPYC 64-Core Processor (PoCL)");
        assert_eq!(short("NVIDIA CUDA", "NVIDIA H200"), "NVIDIA H200");
    }

    #[test]
    fn selects_by_default_number_and_name() {
        let ds = two();
        assert_eq!(select(&ds, None).expect("there is such a device").index, 1);
        assert_eq!(select(&ds[..1], None).expect("there is such a device").index, 0);
        assert_eq!(select(&ds, Some("#0")).expect("there is such a device").index, 0);
        assert_eq!(select(&ds, Some("portable")).expect("there is such a device").index, 0);
        assert_eq!(select(&ds, Some("h200")).expect("there is such a device").index, 1);
    }

    #[test]
    fn simulators_are_chosen_by_name_or_for_want_of_anything_else() {
        let simulator = device(0, "Oclgrind", "Oclgrind Simulator", DeviceKind::Gpu);
        let ds = [simulator, device(1, "Portable Computing Language", "cpu", DeviceKind::Cpu)];
        let index = |ds, selector| select(ds, selector).expect("a device").index;
        assert_eq!(index(&ds, None), 1);
        assert_eq!(index(&ds, Some("oclgrind")), 0);
        assert_eq!(index(&ds[..1], None), 0);
    }

    #[test]
    fn unknown_devices_list_what_there_is() {
        for selector in ["#2", "amd", "#x"] {
            let failure = select(&two(), Some(selector)).unwrap_err();
            assert_eq!(failure.0[0].code, Code::UnknownDevice);
            assert_eq!(failure.0[0].notes.len(), 2);
        }
        assert_eq!(select(&[], None).unwrap_err().0[0].code, Code::UnknownDevice);
    }
}
