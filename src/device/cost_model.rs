//! Cost models: quantities with units that describe the speed of a device, read from `cost-models/*.toml`.
//!
//! A model contains the quantities that estimates of kernels need and that micro-benchmarks can measure. The
//! estimates themselves are made in `kernel` and `extract`. `cost-models/README.md` explains every quantity.

use super::{DeviceInfo, DeviceKind};
use crate::calculus::op::products::Products;
use crate::diag::{Code, Diagnostic, Result, Source, Span};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Version of the layout of the files.
pub const SCHEMA_VERSION: u32 = 1;

/// How many times as fast stores past the caches must be to be worth a try: more than the noise of both measurements.
const STREAMING: f64 = 1.02;

/// The shipped models: file name and text. The generic ones match only a kind of device.
const SHIPPED: [(&str, &str); 6] = [
    ("pocl.toml", include_str!("../../cost-models/pocl.toml")),
    ("intel-cpu.toml", include_str!("../../cost-models/intel-cpu.toml")),
    ("nvidia-h200.toml", include_str!("../../cost-models/nvidia-h200.toml")),
    ("nvidia-h100.toml", include_str!("../../cost-models/nvidia-h100.toml")),
    ("generic-cpu.toml", include_str!("../../cost-models/generic-cpu.toml")),
    ("generic-gpu.toml", include_str!("../../cost-models/generic-gpu.toml")),
];

/// On devices where neighbouring work-items run together: number of work-items per compute unit with which loops
/// are timed. This number keeps the unit busy, so that more work-items take longer.
pub const LOOP_ITEMS: usize = 512;

/// On devices where neighbouring work-items run together: number of iterations that compilers unroll of a loop
/// without being asked.
const AT_ONCE: f64 = 4.0;

/// A cost model: the speed of a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostModel {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Its name in reports.
    pub name: String,
    /// What it describes, and the origin of its numbers, in one sentence.
    pub description: String,
    /// The devices that it is for.
    pub matches: Matches,
    /// What it was measured on, if it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibrated: Option<Calibrated>,
    /// Global memory and caches.
    pub memory: Memory,
    /// Local memory.
    pub local: Local,
    /// Arithmetic.
    pub compute: Compute,
    /// Work-items, work-groups and launches.
    pub execution: Execution,
    /// How compute units run warps; see [`CostModel::warps`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warps: Option<Warps>,
    /// What is worth a try; see [`CostModel::search`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<Search>,
    /// What the driver allows, for programs that are optimised without the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<GroupLimits>,
}

/// The devices that a model is for. Every given condition must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Matches {
    /// The kind of device.
    pub kind: Option<DeviceKind>,
    /// One of these must be part of the platform's name, ignoring case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub platform: Vec<String>,
    /// One of these must be part of the device's name, ignoring case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub device: Vec<String>,
}

/// The origin of a model that `patsat calibrate` measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibrated {
    /// The date, as `YYYY-MM-DD`.
    pub date: String,
    /// The device's name.
    pub device: String,
    /// The platform's name.
    pub platform: String,
    /// Version of the driver.
    pub driver: String,
    /// Version of patsat.
    pub tool: String,
}

/// The accesses that share a cache line at no cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Locality {
    /// Successive accesses of one work-item (a CPU, where a work-item is a loop iteration).
    WithinItem,
    /// Simultaneous accesses of neighbouring work-items (a GPU: coalescing).
    AcrossItems,
}

/// Global memory and caches. Bandwidths are those of the whole device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Read bandwidth, in GB/s (10^9 bytes).
    pub read_gb_per_s: f64,
    /// Write bandwidth, in GB/s.
    pub write_gb_per_s: f64,
    /// Copy bandwidth, in GB/s; counts bytes read and bytes written.
    pub copy_gb_per_s: f64,
    /// Bandwidth of stores that bypass the caches, in GB/s, if the compiler has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nontemporal_write_gb_per_s: Option<f64>,
    /// Size of a unit of transfer from memory, in bytes.
    pub line_bytes: u64,
    /// The accesses that share a line.
    pub locality: Locality,
    /// Factor by which the time of a byte grows when the accesses of [`Memory::locality`] are far apart.
    pub uncoalesced_penalty: f64,
    /// Time of a load from memory on which the next operation depends, in nanoseconds.
    #[serde(default = "round_trip")]
    pub latency_ns: f64,
    /// Time of a load by a single work-item (or warp) on an otherwise idle device, in a sequence of independent
    /// loads, in nanoseconds.
    #[serde(default = "lone_load")]
    pub load_ns: f64,
    /// Rate of atomic operations on elements of global memory that data decide, in 10^9 operations a second; not a limit if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub atomic_gops: Option<f64>,
    /// Caches, smallest first; may be empty.
    #[serde(default)]
    pub cache: Vec<Cache>,
}

/// A cache level of the whole device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    /// Total size over all compute units, in bytes.
    pub bytes: u64,
    /// Read bandwidth, in GB/s.
    pub gb_per_s: f64,
    /// Time of a load from it on which the next operation depends, in nanoseconds; the memory's if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<f64>,
}

/// Defaults for quantities that a file does not have.
fn round_trip() -> f64 {
    300.0
}

fn lone_load() -> f64 {
    40.0
}

fn no_banks() -> u32 {
    1
}

/// Ratio of the latencies of the second and the first level of cache, for devices on which neighbouring work-items
/// run together and these were not measured.
const SOONER: f64 = 7.0;

/// Four cycles at 4 GHz.
fn add_latency() -> f64 {
    1.0
}

/// Local memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Local {
    /// Bandwidth of reads or writes, in GB/s over the whole device.
    pub gb_per_s: f64,
    /// Local memory that the work-groups of a compute unit share, in bytes. It limits the number of resident
    /// work-groups. 0 if local memory is ordinary memory.
    pub bytes_per_compute_unit: u64,
    /// Number of banks of four bytes. Work-items whose addresses differ by a multiple of the banks' total size
    /// conflict. 1 if the distance does not matter.
    #[serde(default = "no_banks")]
    pub banks: u32,
}

/// Arithmetic. A fused multiply-add counts as two operations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compute {
    /// Peak single-precision rate, in 10^9 operations a second (with vectors or full warps).
    pub f32_gflops: f64,
    /// Peak double-precision rate, in 10^9 operations a second.
    pub f64_gflops: f64,
    /// Peak half-precision rate, in 10^9 operations a second, if there is half precision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub f16_gflops: Option<f64>,
    /// Rate of the matrix instructions that add products of tf32 numbers to `f32`, in 10^9 operations a second; none if the
    /// device does not have those of NVIDIA.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub products_gflops: Option<f64>,
    /// The same of `f16` numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub products_f16_gflops: Option<f64>,
    /// The same of `bf16` numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub products_bf16_gflops: Option<f64>,
    /// The same of `i8` numbers, added to `i32`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub products_i8_gflops: Option<f64>,
    /// Peak rate of integer operations (adds, compares, index arithmetic), in 10^9 a second.
    pub integer_gops: f64,
    /// Number of lanes of an instruction: `float`s in a vector register, or work-items in a warp.
    pub simd_width: u32,
    /// Share of the peak rate that code without vector types reaches.
    pub scalar_efficiency: f64,
    /// Widest vector type (in `float`s) that is worth using.
    pub useful_vector_width: u32,
    /// Cost of a division, in operations.
    pub divide_flops: f64,
    /// Cost of a square root, in operations.
    pub sqrt_flops: f64,
    /// Cost of an `exp`, `log`, `sin` and the like, in operations.
    pub special_flops: f64,
    /// Time of a float addition or fused multiply-add on which the next operation depends, in nanoseconds.
    #[serde(default = "add_latency")]
    pub add_latency_ns: f64,
    /// Time of an iteration of a loop that is not unrolled, in nanoseconds of one work-item. On devices where
    /// neighbouring work-items run together, it is the time when each unit has [`LOOP_ITEMS`] work-items.
    pub loop_overhead_ns: f64,
    /// Private memory of a work-item that fits in registers, in bytes; more than this spills.
    pub register_bytes_per_item: u64,
}

impl Compute {
    /// Rate of matrix instructions, in 10^9 operations a second; none if the device does not have them.
    pub fn products(&self, of: Products) -> Option<f64> {
        match of {
            Products::F32 => self.products_gflops,
            Products::F16 => self.products_f16_gflops,
            Products::BF16 => self.products_bf16_gflops,
            Products::I8 => self.products_i8_gflops,
        }
    }
}

/// Work-items, work-groups and launches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Execution {
    /// Time of a kernel launch in a sequence of launches, in microseconds.
    pub launch_us: f64,
    /// Time to start a work-group, in nanoseconds of the whole device.
    pub work_group_overhead_ns: f64,
    /// Time to start a work-item, in nanoseconds of the whole device.
    pub work_item_overhead_ns: f64,
    /// Time of a barrier for each work-item in the work-group, in nanoseconds of the whole device.
    pub barrier_item_ns: f64,
    /// The device's bandwidth, divided by the bandwidth of one work-item when only few run and each reads one
    /// scalar at a time. Fewer work-items than this cannot saturate the memory.
    pub items_to_saturate: u64,
    /// Number of work-groups needed to use every compute unit.
    pub groups_to_saturate: u64,
    /// Most work-items resident on a compute unit.
    pub items_per_compute_unit: u64,
    /// Time of a barrier of a work-group on each compute unit, through global memory, in microseconds; `None` for a device whose
    /// work-groups cannot wait for each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meeting_us: Option<f64>,
    /// Whether the device has NVIDIA's copies to local memory that go on beside other instructions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub copies_ahead: bool,
}

/// How a compute unit runs warps, on devices where neighbouring work-items run together. The defaults are what the
/// estimates were fitted with.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Warps {
    /// Number of warps that a compute unit executes at the same time: its schedulers.
    pub at_once: u32,
    /// Number of warps that keep a scheduler busy with arithmetic.
    pub in_flight: f64,
    /// Exponent of the loss with fewer warps: the throughput falls with `(warps / in_flight)^hiding`. In a
    /// product with tiles of 128 by 128 on an H200, two warps reach five sixths of the throughput of four.
    pub hiding: f64,
    /// Throughput of matrix instructions in a work-group that has its compute unit for itself, as a share of that of several: it waits at
    /// barriers meanwhile. Products of `f16` and of `f32` in parts on an H200.
    pub lone_group: f64,
    /// Fewest work-items of a group that hide such waits themselves.
    pub lone_group_items: f64,
    /// Most work-groups that a compute unit holds, however small they are.
    pub groups_per_compute_unit: u32,
    /// Smallest number of bytes that memory transfers at once.
    pub sector_bytes: u64,
    /// Bytes of the register file of a compute unit.
    pub register_file_bytes: u64,
    /// Bytes of registers that a work-item needs for addresses and compiler temporaries, in addition to the
    /// declared ones.
    pub undeclared_register_bytes: u64,
    /// As `undeclared_register_bytes`, for a work-item with accumulators, which also has loads in flight.
    pub spare_register_bytes: u64,
}

impl Default for Warps {
    fn default() -> Warps {
        Warps {
            at_once: 4,
            in_flight: 4.0,
            hiding: 0.27,
            lone_group: 0.75,
            lone_group_items: 512.0,
            groups_per_compute_unit: 32,
            sector_bytes: 32,
            register_file_bytes: 262_144,
            undeclared_register_bytes: 160,
            spare_register_bytes: 256,
        }
    }
}

/// What is worth a try on a device, before any kernel is generated. A file has all of it or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// Whether a copy to local memory pays. It does not where local memory is a part of the caches.
    pub stages: bool,
    /// Whether a copy that reorders global memory pays. It does where caches prefetch what lies in order.
    pub packs: bool,
    /// Whether it pays that the work-items of a group share a reduction, or slices of neighbouring ones. It does
    /// where only simultaneous accesses of neighbours share a line.
    pub slices: bool,
    /// Whether a work-item's share of a tile may be in vectors. Nothing is gained where work-items are lanes.
    pub tile_vectors: bool,
    /// Work-items of a compute unit that run at once, for estimates of terms.
    pub items_at_once: u64,
    /// Work-groups of a compute unit that run at once, likewise.
    pub groups_at_once: u64,
    /// Work-items of a group that run at once, likewise.
    pub group_items_at_once: u64,
    /// Chunks for each compute unit into which a dimension is usually cut.
    pub chunks: u64,
    /// Share of the beam for tiles with accumulators, if there are enough: their advantage is reuse, which the
    /// additive cost does not see.
    pub blocked_share: f64,
    /// Most accumulators of a work-item: scalars where work-items are lanes, else vectors.
    pub accumulators: u64,
    /// Fewest and most work-items that share a tile.
    pub tile_items: [u64; 2],
    /// Fewest and most work-items that share the slices of neighbouring reductions.
    pub slice_items: [u64; 2],
    /// Time of reading an operand from local memory or the nearest cache, in multiply-adds. With 8, a work-item
    /// reads as fast as it computes if it has eight rows and eight columns.
    pub near_read: f64,
    /// Time of reading an operand from global memory, in multiply-adds.
    pub far_read: f64,
    /// Independent multiply-adds of one work-item that keep its compute unit busy.
    pub chains: f64,
}

impl Search {
    /// Returns what is usually worth a try, for the accesses that share a line on a device.
    pub fn usual(locality: Locality) -> Search {
        let across = locality == Locality::AcrossItems;
        Search {
            stages: across,
            packs: !across,
            slices: across,
            tile_vectors: !across,
            items_at_once: if across { 1024 } else { 1 },
            groups_at_once: if across { 4 } else { 1 },
            group_items_at_once: if across { 256 } else { 1 },
            chunks: if across { 8 } else { 4 },
            blocked_share: 0.5,
            accumulators: if across { 160 } else { 28 },
            tile_items: [32, 512],
            slice_items: [128, 1024],
            near_read: if across { 8.0 } else { 0.5 },
            far_read: if across { 24.0 } else { 0.0 },
            // Two multiply-adds a cycle, each of which takes five.
            chains: if across { 1.0 } else { 10.0 },
        }
    }
}

/// What a driver allows a work-group. A file without it stands for a device with what nearly every device has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupLimits {
    /// Most work-items of a group.
    pub items: usize,
    /// Most bytes of local memory of a group.
    pub local_bytes: u64,
}

/// A model, and the reason for its choice.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The model.
    pub model: CostModel,
    /// The reason in a sentence for the user, which says if the model is a fallback.
    pub why: String,
    /// Whether the model matches only the kind of device.
    pub fallback: bool,
}

impl CostModel {
    /// Parses a model.
    pub fn parse(source: &Arc<Source>) -> Result<CostModel> {
        let wrong = |message: String, span: Option<std::ops::Range<usize>>| {
            let d = Diagnostic::error(Code::CostModel, "the cost model cannot be read");
            let d = match span {
                Some(s) => d.at(source, Span::new(s.start, s.end), message),
                None => d.note(format!("{}: {message}", source.name)),
            };
            d.help("`cost-models/README.md` lists every quantity")
        };
        // Check the version first: for another layout, the complete parse would only report unknown fields.
        #[derive(Deserialize)]
        struct Head {
            schema_version: toml::Spanned<u32>,
        }
        let head: Head =
            toml::from_str(&source.text).map_err(|e| wrong(e.message().to_string(), e.span()))?;
        if *head.schema_version.get_ref() != SCHEMA_VERSION {
            let message = format!("this patsat reads version {SCHEMA_VERSION}");
            return Err(wrong(message, Some(head.schema_version.span())).into());
        }
        let model: CostModel =
            toml::from_str(&source.text).map_err(|e| wrong(e.message().to_string(), e.span()))?;
        let problems: Vec<Diagnostic> = model
            .problems()
            .into_iter()
            .map(|(key, message)| wrong(message.to_string(), place(&source.text, key)))
            .collect();
        if problems.is_empty() { Ok(model) } else { Err(problems.into()) }
    }

    /// Reads a model from a file.
    pub fn load(path: &Path) -> Result<CostModel> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|e| {
            Diagnostic::error(Code::Io, format!("the cost model {name} cannot be read: {e}"))
        })?;
        CostModel::parse(&Source::new(name, text))
    }

    /// Returns the model as TOML, without comments.
    pub fn to_toml(&self) -> Result<String> {
        let failed = |e| Diagnostic::error(Code::Internal, format!("a cost model is no TOML: {e}"));
        Ok(toml::to_string_pretty(self).map_err(failed)?)
    }

    /// Returns the model as TOML, with comments. `note` returns the lines above a quantity, which is named by its
    /// path, such as `memory.read_gb_per_s` or `memory.cache.0.bytes`. `header` is at the top of the file.
    ///
    /// # Errors
    /// In practice never, since a cost model can always be written as TOML.
    pub fn to_annotated_toml(
        &self,
        header: &[String],
        note: &dyn Fn(&str) -> Vec<String>,
    ) -> Result<String> {
        let comment = |lines: &[String]| -> String {
            lines.iter().map(|l| format!("{}\n", format!("# {l}").trim_end())).collect()
        };
        let mut out = comment(header);
        let mut table = String::new();
        let mut arrays: BTreeMap<String, usize> = BTreeMap::new();
        for line in self.to_toml()?.lines() {
            if let Some(name) = line.strip_prefix("[[").and_then(|l| l.strip_suffix("]]")) {
                let count = arrays.entry(name.to_owned()).or_default();
                table = format!("{name}.{count}.");
                *count += 1;
            } else if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
                table = format!("{name}.");
                out.push_str(&comment(&note(name)));
            } else if let Some((key, _)) = line.split_once(" = ") {
                out.push_str(&comment(&note(&format!("{table}{key}"))));
            }
            out.push_str(line);
            out.push('\n');
        }
        Ok(out)
    }

    /// Returns the time of a loop iteration after the unrolling that compilers do, in nanoseconds of one work-item;
    /// see [`Compute::loop_overhead_ns`].
    pub fn loop_ns(&self) -> f64 {
        let at_once = match self.memory.locality {
            Locality::AcrossItems => AT_ONCE,
            Locality::WithinItem => 1.0,
        };
        self.compute.loop_overhead_ns / at_once
    }

    /// Whether stores past the caches may gain time: if they were not measured, or were found to be faster than others.
    pub fn may_stream(&self) -> bool {
        let m = &self.memory;
        m.nontemporal_write_gb_per_s.is_none_or(|past| past > STREAMING * m.write_gb_per_s)
    }

    /// Returns how compute units run warps: as the file says, else as usual.
    pub fn warps(&self) -> Warps {
        self.warps.unwrap_or_default()
    }

    /// Returns what is worth a try: as the file says, else as usual for its [`Locality`].
    pub fn search(&self) -> Search {
        self.search.unwrap_or_else(|| Search::usual(self.memory.locality))
    }

    /// Returns by what factor a load from the cache that all units share takes longer than one from a unit's own.
    pub fn sooner(&self) -> f64 {
        let latency = |level: usize| self.memory.cache.get(level).and_then(|c| c.latency_ns);
        match (latency(0), latency(1)) {
            (Some(near), Some(common)) => common / near,
            _ => SOONER,
        }
    }

    /// Returns the shipped models, specific ones before generic ones.
    pub fn shipped() -> Result<Vec<CostModel>> {
        SHIPPED.iter().map(|(name, text)| CostModel::parse(&Source::new(*name, *text))).collect()
    }

    /// Returns the shipped model for a device: the first that matches, specific ones first.
    pub fn choose(info: &DeviceInfo) -> Result<Choice> {
        choose(CostModel::shipped()?, info)
    }

    /// Returns whether the model was measured on another GPU of the device's platform. Such a device is more like that
    /// GPU than like any GPU. CPUs of one platform differ too much: in their vectors, caches and memory.
    fn is_relative_of(&self, info: &DeviceInfo) -> bool {
        info.kind == DeviceKind::Gpu
            && self.matches.kind == Some(DeviceKind::Gpu)
            && self.calibrated.as_ref().is_some_and(|c| c.platform == info.platform)
    }

    /// Returns the model for a device of the same make with another number of compute units. All rates are those of the
    /// whole device, and so they and what saturates the device grow with the number of units. Latencies stay.
    fn scaled_to(mut self, units: u32) -> CostModel {
        let (units, measured) = (u64::from(units.max(1)), self.execution.groups_to_saturate.max(1));
        let share = units as f64 / measured as f64;
        let count = |n: u64| (n.saturating_mul(units) / measured).max(1);
        let (m, c, e) = (&mut self.memory, &mut self.compute, &mut self.execution);
        for rate in [
            &mut m.read_gb_per_s,
            &mut m.write_gb_per_s,
            &mut m.copy_gb_per_s,
            &mut self.local.gb_per_s,
            &mut c.f32_gflops,
            &mut c.f64_gflops,
            &mut c.integer_gops,
        ] {
            *rate *= share;
        }
        let rates = [
            &mut m.nontemporal_write_gb_per_s,
            &mut m.atomic_gops,
            &mut c.f16_gflops,
            &mut c.products_gflops,
            &mut c.products_f16_gflops,
            &mut c.products_bf16_gflops,
            &mut c.products_i8_gflops,
        ];
        for rate in rates.into_iter().flatten() {
            *rate *= share;
        }
        for level in &mut m.cache {
            level.gb_per_s *= share;
            level.bytes = count(level.bytes);
        }
        for time in [
            &mut m.load_ns,
            &mut e.work_group_overhead_ns,
            &mut e.work_item_overhead_ns,
            &mut e.barrier_item_ns,
        ] {
            *time /= share;
        }
        e.items_to_saturate = count(e.items_to_saturate);
        e.groups_to_saturate = count(e.groups_to_saturate);
        self
    }

    /// Returns the impossible quantities, each with its key and the problem.
    fn problems(&self) -> Vec<(&'static str, &'static str)> {
        let (m, c, e) = (&self.memory, &self.compute, &self.execution);
        let positive = [
            ("read_gb_per_s", m.read_gb_per_s),
            ("write_gb_per_s", m.write_gb_per_s),
            ("copy_gb_per_s", m.copy_gb_per_s),
            ("nontemporal_write_gb_per_s", m.nontemporal_write_gb_per_s.unwrap_or(1.0)),
            ("atomic_gops", m.atomic_gops.unwrap_or(1.0)),
            ("latency_ns", m.latency_ns),
            ("load_ns", m.load_ns),
            ("gb_per_s", self.local.gb_per_s),
            ("banks", f64::from(self.local.banks)),
            ("f32_gflops", c.f32_gflops),
            ("f64_gflops", c.f64_gflops),
            ("f16_gflops", c.f16_gflops.unwrap_or(1.0)),
            ("products_gflops", c.products_gflops.unwrap_or(1.0)),
            ("products_f16_gflops", c.products_f16_gflops.unwrap_or(1.0)),
            ("products_bf16_gflops", c.products_bf16_gflops.unwrap_or(1.0)),
            ("products_i8_gflops", c.products_i8_gflops.unwrap_or(1.0)),
            ("integer_gops", c.integer_gops),
            ("add_latency_ns", c.add_latency_ns),
            ("scalar_efficiency", c.scalar_efficiency),
            ("line_bytes", m.line_bytes as f64),
            ("simd_width", f64::from(c.simd_width)),
            ("useful_vector_width", f64::from(c.useful_vector_width)),
            ("register_bytes_per_item", c.register_bytes_per_item as f64),
            ("items_to_saturate", e.items_to_saturate as f64),
            ("groups_to_saturate", e.groups_to_saturate as f64),
            ("items_per_compute_unit", e.items_per_compute_unit as f64),
        ];
        let not_negative = [
            ("divide_flops", c.divide_flops),
            ("sqrt_flops", c.sqrt_flops),
            ("special_flops", c.special_flops),
            ("loop_overhead_ns", c.loop_overhead_ns),
            ("launch_us", e.launch_us),
            ("work_group_overhead_ns", e.work_group_overhead_ns),
            ("work_item_overhead_ns", e.work_item_overhead_ns),
            ("barrier_item_ns", e.barrier_item_ns),
            ("meeting_us", e.meeting_us.unwrap_or(0.0)),
        ];
        let mut problems = vec![];
        let bad = |v: f64, least_open: bool| !v.is_finite() || v < 0.0 || (least_open && v == 0.0);
        let mut check = |key, wrong: bool, message| {
            if wrong {
                problems.push((key, message));
            }
        };
        for (key, v) in positive {
            check(key, bad(v, true), "this has to be positive");
        }
        for (key, v) in not_negative {
            check(key, bad(v, false), "this cannot be negative");
        }
        check("uncoalesced_penalty", !(1.0..=1e6).contains(&m.uncoalesced_penalty), "at least 1");
        check("scalar_efficiency", c.scalar_efficiency > 1.0, "a share is at most 1");
        let (w, s) = (self.warps(), self.search());
        let positive = [
            ("at_once", f64::from(w.at_once)),
            ("in_flight", w.in_flight),
            ("lone_group", w.lone_group),
            ("lone_group_items", w.lone_group_items),
            ("groups_per_compute_unit", f64::from(w.groups_per_compute_unit)),
            ("sector_bytes", w.sector_bytes as f64),
            ("register_file_bytes", w.register_file_bytes as f64),
            ("chains", s.chains),
            ("items_at_once", s.items_at_once as f64),
            ("groups_at_once", s.groups_at_once as f64),
            ("group_items_at_once", s.group_items_at_once as f64),
            ("chunks", s.chunks as f64),
        ];
        for (key, v) in positive {
            check(key, bad(v, true), "this has to be positive");
        }
        for (key, v) in [("hiding", w.hiding), ("near_read", s.near_read), ("far_read", s.far_read)]
        {
            check(key, bad(v, false), "this cannot be negative");
        }
        check("blocked_share", !(0.0..=1.0).contains(&s.blocked_share), "a share is at most 1");
        check("lone_group", w.lone_group > 1.0, "a share is at most 1");
        for (key, [least, most]) in [("tile_items", s.tile_items), ("slice_items", s.slice_items)] {
            check(key, least > most, "the fewest stand first");
        }
        let sound = |l: &Cache| {
            l.bytes > 0 && !bad(l.gb_per_s, true) && !bad(l.latency_ns.unwrap_or(1.0), true)
        };
        let cached = m.cache.iter().all(sound);
        check("cache", !cached, "sizes, bandwidths and latencies have to be positive");
        let ascending = m.cache.windows(2).all(|w| w[0].bytes < w[1].bytes);
        check("cache", !ascending, "caches stand in order, the smallest first");
        problems
    }
}

impl Matches {
    /// Returns whether a device meets every condition.
    fn meets(&self, info: &DeviceInfo) -> bool {
        let part = |list: &[String], name: &str| {
            let name = name.to_lowercase();
            list.is_empty() || list.iter().any(|s| name.contains(&s.to_lowercase()))
        };
        self.kind.is_none_or(|k| k == info.kind)
            && part(&self.platform, &info.platform)
            && part(&self.device, &info.name)
    }

    /// Returns whether only the kind of device is given.
    fn generic(&self) -> bool {
        self.platform.is_empty() && self.device.is_empty()
    }
}

fn choose(models: Vec<CostModel>, info: &DeviceInfo) -> Result<Choice> {
    let label = info.label();
    let (generic, particular): (Vec<_>, Vec<_>) =
        models.into_iter().partition(|m| m.matches.generic());
    if let Some(model) = particular.iter().find(|m| m.matches.meets(info)) {
        let why = format!("the cost model `{}` is for {label}", model.name);
        return Ok(Choice { model: model.clone(), why, fallback: false });
    }
    if let Some(relative) = particular.into_iter().find(|m| m.is_relative_of(info)) {
        let why = format!(
            "no cost model is for {label}; `{}` is used, for a device with {} compute units",
            relative.name, info.compute_units
        );
        return Ok(Choice { model: relative.scaled_to(info.compute_units), why, fallback: true });
    }
    // An unknown accelerator is more like a GPU: it has many work-items and slow memory.
    let wanted = match info.kind {
        DeviceKind::Cpu => DeviceKind::Cpu,
        DeviceKind::Gpu | DeviceKind::Other => DeviceKind::Gpu,
    };
    let model = generic.into_iter().find(|m| m.matches.kind == Some(wanted)).ok_or_else(|| {
        Diagnostic::error(Code::CostModel, format!("there is no cost model for {label}"))
    })?;
    let why = format!(
        "no cost model is for {label}; `{}` is used, since it is a {}",
        model.name, info.kind
    );
    Ok(Choice { model, why, fallback: true })
}

/// Returns the range of the line with a key.
fn place(text: &str, key: &str) -> Option<std::ops::Range<usize>> {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let content = line.trim_end();
        let name = content.split('=').next().unwrap_or("").trim();
        if name == key || name.trim_matches(['[', ']']).rsplit('.').next() == Some(key) {
            return Some(start..start + content.len());
        }
        start += line.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::tests::device;
    use super::*;

    fn pocl() -> String {
        SHIPPED[0].1.to_string()
    }

    fn error(text: String) -> Diagnostic {
        let failure = CostModel::parse(&Source::new("m.toml", text)).unwrap_err();
        assert_eq!(failure.0[0].code, Code::CostModel);
        failure.0[0].clone()
    }

    /// Returns the text that an error points at.
    fn pointed(d: &Diagnostic) -> &str {
        &d.source.as_ref().expect("the error has a place").text[d.labels[0].span.range()]
    }

    #[test]
    fn shipped_models_are_sound_and_survive() {
        for model in CostModel::shipped().expect("the shipped models are well-formed") {
            let text = model.to_toml().expect("a model can be written");
            assert_eq!(
                CostModel::parse(&Source::new("again", text)).expect("what was written is read"),
                model
            );
        }
    }

    #[test]
    fn notes_stand_above_their_quantities() {
        let model = &CostModel::shipped().expect("the shipped models")[0];
        let note = |key: &str| match key {
            "memory" | "memory.cache.1.bytes" | "local.gb_per_s" => vec![format!("on {key}")],
            _ => vec![],
        };
        let text = model.to_annotated_toml(&["made".into(), String::new()], &note).expect("TOML");
        assert!(text.starts_with("# made\n#\nschema_version"), "{text}");
        let above = |line: &str| {
            let lines: Vec<&str> = text.lines().collect();
            let at = lines.iter().position(|l| *l == line).expect("the line");
            lines[at + 1].to_owned()
        };
        assert_eq!(above("# on memory"), "[memory]");
        assert_eq!(
            above("# on memory.cache.1.bytes"),
            format!("bytes = {}", model.memory.cache[1].bytes)
        );
        assert!(above("# on local.gb_per_s").starts_with("gb_per_s"));
        assert_eq!(CostModel::parse(&Source::new("noted", text)).expect("a model"), *model);
    }

    #[test]
    fn what_a_file_does_not_have_has_a_default() {
        let old = pocl();
        let lines = old.lines().filter(|l| {
            !["latency_ns", "load_ns", "banks", "add_latency_ns"].iter().any(|k| l.starts_with(k))
        });
        let text = lines.collect::<Vec<_>>().join("\n");
        let model = CostModel::parse(&Source::new("old", text)).expect("a model");
        assert_eq!((model.memory.latency_ns, model.memory.load_ns), (300.0, 40.0));
        assert_eq!((model.local.banks, model.compute.add_latency_ns), (1, 1.0));
    }

    #[test]
    fn tables_that_a_file_does_not_have_are_usual() {
        for mut model in CostModel::shipped().expect("the shipped models") {
            let across = model.memory.locality == Locality::AcrossItems;
            assert_eq!((model.warps.is_some(), model.search.is_some()), (across, true));
            let said = (model.warps(), model.search());
            (model.warps, model.search) = (None, None);
            let text = model.to_toml().expect("a model can be written");
            let old =
                CostModel::parse(&Source::new("old", text)).expect("what was written is read");
            assert_eq!((old.warps(), old.search()), said, "{}", model.name);
        }
        let d = error(pocl().replace("blocked_share = 0.5", "blocked_share = 1.5"));
        assert_eq!(pointed(&d), "blocked_share = 1.5");
        error(pocl().replace("blocked_share = 0.5\n", ""));
    }

    #[test]
    fn errors_have_a_place() {
        let d = error(pocl().replace("launch_us", "launch_ms"));
        assert_eq!(pointed(&d), "launch_ms");
        let d = error(pocl().replace("schema_version = 1", "schema_version = 7"));
        assert_eq!(pointed(&d), "7");
        let d = error(format!("{}\nlaunch_us = 1", pocl()));
        assert!(!d.labels.is_empty());
        let mut lines: Vec<String> = pocl().lines().map(str::to_string).collect();
        let at = lines
            .iter()
            .position(|l| l.starts_with("f32_gflops"))
            .expect("the model has this number");
        lines[at] = "f32_gflops = -1.0".into();
        assert_eq!(pointed(&error(lines.join("\n"))), "f32_gflops = -1.0");
        lines[at] = "f32_gflops = nan".into();
        assert_eq!(pointed(&error(lines.join("\n"))), "f32_gflops = nan");
        error(String::new());
    }

    #[test]
    fn the_particular_wins_and_fallbacks_are_stated() {
        let choose = |platform, name, kind| {
            CostModel::choose(&device(0, platform, name, kind))
                .expect("there is a model for every device")
        };
        let choice = choose("Portable Computing Language", "cpu-haswell", DeviceKind::Cpu);
        assert_eq!((choice.model.name.as_str(), choice.fallback), ("pocl", false));
        let choice = choose("NVIDIA CUDA", "NVIDIA H200", DeviceKind::Gpu);
        assert_eq!((choice.model.name.as_str(), choice.fallback), ("nvidia-h200", false));
        // Another GPU of the platform has the rates of its compute units; the device of the tests has two.
        let choice = choose("NVIDIA CUDA", "NVIDIA L4", DeviceKind::Gpu);
        assert_eq!((choice.model.name.as_str(), choice.fallback), ("nvidia-h200", true));
        assert!(choice.why.contains("compute units"));
        assert_eq!(choice.model.execution.groups_to_saturate, 2);
        let whole =
            CostModel::parse(&Source::new(SHIPPED[2].0, SHIPPED[2].1)).expect("it is valid");
        let share = choice.model.memory.read_gb_per_s / whole.memory.read_gb_per_s;
        assert!((share - 2.0 / 132.0).abs() < 1e-9);
        let choice = choose("Intel(R) OpenCL", "Xeon", DeviceKind::Cpu);
        assert_eq!((choice.model.name.as_str(), choice.fallback), ("intel-cpu", false));
        let choice = choose("A platform", "Xeon", DeviceKind::Cpu);
        assert_eq!((choice.model.name.as_str(), choice.fallback), ("generic-cpu", true));
        assert!(choice.why.contains("Xeon") && choice.why.contains("generic-cpu"));
        assert_eq!(choose("X", "fpga", DeviceKind::Other).model.name, "generic-gpu");
        // PoCL on a GPU is not a CPU.
        let choice = choose("Portable Computing Language", "NVIDIA GPU", DeviceKind::Gpu);
        assert_eq!(choice.model.name, "generic-gpu");
    }
}
