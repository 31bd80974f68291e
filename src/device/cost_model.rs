//! Cost models: how fast a device is, in quantities with units, from `cost-models/*.toml`.
//!
//! A model holds what an estimate of a kernel needs and a micro-benchmark can measure; the estimate
//! itself is made in `kernel` and `extract`. `cost-models/README.md` explains every number.

use super::{DeviceInfo, DeviceKind};
use crate::diag::{Code, Diagnostic, Result, Source, Span};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Version of the files' layout.
pub const SCHEMA_VERSION: u32 = 1;

/// The shipped models: name of the file, text. The generic ones match a kind of device only.
const SHIPPED: [(&str, &str); 5] = [
    ("pocl.toml", include_str!("../../cost-models/pocl.toml")),
    ("intel-cpu.toml", include_str!("../../cost-models/intel-cpu.toml")),
    ("nvidia-h200.toml", include_str!("../../cost-models/nvidia-h200.toml")),
    ("generic-cpu.toml", include_str!("../../cost-models/generic-cpu.toml")),
    ("generic-gpu.toml", include_str!("../../cost-models/generic-gpu.toml")),
];

/// Work-items of a compute unit that loops are timed with where neighbours run together: they keep it busy, so that
/// more of them take longer.
pub const LOOP_ITEMS: usize = 512;

/// Iterations of a loop that compilers write out at a time where neighbours run together, in spite of nobody asking them.
const AT_ONCE: f64 = 4.0;

/// How fast a device is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostModel {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Its name in reports.
    pub name: String,
    /// What it describes, and where its numbers are from: one sentence.
    pub description: String,
    /// Which devices it is for.
    pub matches: Matches,
    /// What it was measured on, if it was.
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
}

/// Which devices a model is for: every condition given has to hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Matches {
    /// The kind of device.
    pub kind: Option<DeviceKind>,
    /// One of these is part of the platform's name, in any case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub platform: Vec<String>,
    /// One of these is part of the device's name, in any case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub device: Vec<String>,
}

/// What `patsat calibrate` measured, and when.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibrated {
    /// The day, as `YYYY-MM-DD`.
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

/// Which accesses share a cache line for free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Locality {
    /// Successive accesses of one work-item (a CPU, where a work-item is a loop iteration).
    WithinItem,
    /// Simultaneous accesses of neighbouring work-items (a GPU: coalescing).
    AcrossItems,
}

/// Global memory and caches. Bandwidths are the whole device's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Reading, in GB/s (10^9 bytes).
    pub read_gb_per_s: f64,
    /// Writing, in GB/s.
    pub write_gb_per_s: f64,
    /// Copying, in GB/s; bytes read and bytes written both count.
    pub copy_gb_per_s: f64,
    /// Writing with stores that bypass the caches, in GB/s, where the compiler has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nontemporal_write_gb_per_s: Option<f64>,
    /// Bytes that come together from memory.
    pub line_bytes: u64,
    /// Which accesses share a line.
    pub locality: Locality,
    /// How many times longer a byte takes when the accesses of [`Memory::locality`] are far apart.
    pub uncoalesced_penalty: f64,
    /// A round trip: a load from memory that has to be waited for, in nanoseconds.
    #[serde(default = "round_trip")]
    pub latency_ns: f64,
    /// One load of a work-item (or warp) that has no company, among loads that do not wait for each other, in
    /// nanoseconds.
    #[serde(default = "lone_load")]
    pub load_ns: f64,
    /// Caches, the smallest first; may be empty.
    #[serde(default)]
    pub cache: Vec<Cache>,
}

/// One level of cache, over the whole device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    /// Its size, all units together.
    pub bytes: u64,
    /// Reading from it, in GB/s.
    pub gb_per_s: f64,
    /// A load from it that has to be waited for, in nanoseconds; that of the memory when not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<f64>,
}

/// What stands for quantities in files that do not have them.
fn round_trip() -> f64 {
    300.0
}

fn lone_load() -> f64 {
    40.0
}

fn no_banks() -> u32 {
    1
}

/// Four cycles at 4 GHz.
fn add_latency() -> f64 {
    1.0
}

/// Local memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Local {
    /// Reading or writing it, in GB/s over the whole device.
    pub gb_per_s: f64,
    /// Local memory of one compute unit that its work-groups share, in bytes: limits how many are
    /// resident. 0 when local memory is ordinary memory.
    pub bytes_per_compute_unit: u64,
    /// Banks of four bytes: work-items whose addresses differ by a multiple of all banks wait for each other. 1 where
    /// the distance does not matter.
    #[serde(default = "no_banks")]
    pub banks: u32,
}

/// Arithmetic. One fused multiply-add counts as two operations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compute {
    /// Single precision, in 10^9 operations a second, at best (vectors or full warps).
    pub f32_gflops: f64,
    /// Double precision, at best.
    pub f64_gflops: f64,
    /// Half precision, at best, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub f16_gflops: Option<f64>,
    /// Integer operations (adds, compares, index arithmetic) in 10^9 a second, at best.
    pub integer_gops: f64,
    /// Lanes of one instruction: `float`s in a vector register, or work-items of a warp.
    pub simd_width: u32,
    /// Share of the best rate that code reaches which names no vector types.
    pub scalar_efficiency: f64,
    /// Widest vector type (in `float`s) that pays.
    pub useful_vector_width: u32,
    /// One division, in operations.
    pub divide_flops: f64,
    /// One square root, in operations.
    pub sqrt_flops: f64,
    /// One `exp`, `log`, `sin`, ..., in operations.
    pub special_flops: f64,
    /// An addition of floats, or a fused multiply-add, that has to be waited for, in nanoseconds.
    #[serde(default = "add_latency")]
    pub add_latency_ns: f64,
    /// One more iteration of a loop that is not unrolled, in nanoseconds of one work-item: of one among [`LOOP_ITEMS`] in
    /// each unit where neighbours run together.
    pub loop_overhead_ns: f64,
    /// Private memory of a work-item that stays in registers, in bytes: more of it spills.
    pub register_bytes_per_item: u64,
}

/// Work-items, work-groups and launches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Execution {
    /// One launch of a kernel in a sequence of launches, in microseconds.
    pub launch_us: f64,
    /// Starting one work-group, in nanoseconds of the whole device.
    pub work_group_overhead_ns: f64,
    /// Starting one work-item, in nanoseconds of the whole device.
    pub work_item_overhead_ns: f64,
    /// One barrier of one work-group, in nanoseconds of the whole device, for each work-item in it.
    pub barrier_item_ns: f64,
    /// How many times the bandwidth that one work-item has among few goes into the device's: fewer work-items, with one
    /// scalar for another that each reads at a time, do not reach it.
    pub items_to_saturate: u64,
    /// Work-groups needed to use every compute unit.
    pub groups_to_saturate: u64,
    /// Work-items resident on one compute unit at most.
    pub items_per_compute_unit: u64,
}

/// A model and why it was taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The model.
    pub model: CostModel,
    /// A sentence for people; says so when the model is a fallback.
    pub why: String,
    /// Whether the model is only for this kind of device.
    pub fallback: bool,
}

impl CostModel {
    /// Reads a model from its text.
    pub fn parse(source: &Arc<Source>) -> Result<CostModel> {
        let wrong = |message: String, span: Option<std::ops::Range<usize>>| {
            let d = Diagnostic::error(Code::CostModel, "the cost model cannot be read");
            let d = match span {
                Some(s) => d.at(source, Span::new(s.start, s.end), message),
                None => d.note(format!("{}: {message}", source.name)),
            };
            d.help("`cost-models/README.md` lists every quantity")
        };
        // The version first: a file of another layout would only get a list of strange fields.
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

    /// As TOML, without comments.
    pub fn to_toml(&self) -> Result<String> {
        let failed = |e| Diagnostic::error(Code::Internal, format!("a cost model is no TOML: {e}"));
        Ok(toml::to_string_pretty(self).map_err(failed)?)
    }

    /// As TOML, with what is to be said of a quantity in lines above it. A quantity is named by its place, such as
    /// `memory.read_gb_per_s` or `memory.cache.0.bytes`; `header` stands above everything.
    ///
    /// # Errors
    /// Never: a cost model is TOML.
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

    /// One more iteration of a loop as compilers leave it, in nanoseconds of one work-item; see
    /// [`Compute::loop_overhead_ns`].
    pub fn loop_ns(&self) -> f64 {
        let at_once = match self.memory.locality {
            Locality::AcrossItems => AT_ONCE,
            Locality::WithinItem => 1.0,
        };
        self.compute.loop_overhead_ns / at_once
    }

    /// The shipped models, the particular before the generic.
    pub fn shipped() -> Result<Vec<CostModel>> {
        SHIPPED.iter().map(|(name, text)| CostModel::parse(&Source::new(*name, *text))).collect()
    }

    /// The shipped model for a device: the first that matches it, particular ones first.
    pub fn choose(info: &DeviceInfo) -> Result<Choice> {
        choose(CostModel::shipped()?, info)
    }

    /// Quantities that no device has, by the key they stand under.
    fn problems(&self) -> Vec<(&'static str, &'static str)> {
        let (m, c, e) = (&self.memory, &self.compute, &self.execution);
        let positive = [
            ("read_gb_per_s", m.read_gb_per_s),
            ("write_gb_per_s", m.write_gb_per_s),
            ("copy_gb_per_s", m.copy_gb_per_s),
            ("nontemporal_write_gb_per_s", m.nontemporal_write_gb_per_s.unwrap_or(1.0)),
            ("latency_ns", m.latency_ns),
            ("load_ns", m.load_ns),
            ("gb_per_s", self.local.gb_per_s),
            ("banks", f64::from(self.local.banks)),
            ("f32_gflops", c.f32_gflops),
            ("f64_gflops", c.f64_gflops),
            ("f16_gflops", c.f16_gflops.unwrap_or(1.0)),
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
    /// Whether a device meets every condition.
    fn meets(&self, info: &DeviceInfo) -> bool {
        let part = |list: &[String], name: &str| {
            let name = name.to_lowercase();
            list.is_empty() || list.iter().any(|s| name.contains(&s.to_lowercase()))
        };
        self.kind.is_none_or(|k| k == info.kind)
            && part(&self.platform, &info.platform)
            && part(&self.device, &info.name)
    }

    /// Whether only the kind of device is asked for.
    fn generic(&self) -> bool {
        self.platform.is_empty() && self.device.is_empty()
    }
}

fn choose(models: Vec<CostModel>, info: &DeviceInfo) -> Result<Choice> {
    let label = info.label();
    let (generic, particular): (Vec<_>, Vec<_>) =
        models.into_iter().partition(|m| m.matches.generic());
    if let Some(model) = particular.into_iter().find(|m| m.matches.meets(info)) {
        let why = format!("the cost model `{}` is for {label}", model.name);
        return Ok(Choice { model, why, fallback: false });
    }
    // An accelerator of no known kind is nearer to a GPU: many work-items, slow memory.
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

/// Where a key stands in a text.
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

    /// The text an error points at.
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
        let choice = choose("Intel(R) OpenCL", "Xeon", DeviceKind::Cpu);
        assert_eq!((choice.model.name.as_str(), choice.fallback), ("intel-cpu", false));
        let choice = choose("A platform", "Xeon", DeviceKind::Cpu);
        assert_eq!((choice.model.name.as_str(), choice.fallback), ("generic-cpu", true));
        assert!(choice.why.contains("Xeon") && choice.why.contains("generic-cpu"));
        assert_eq!(choose("X", "fpga", DeviceKind::Other).model.name, "generic-gpu");
        // PoCL on a GPU is no CPU.
        let choice = choose("Portable Computing Language", "NVIDIA GPU", DeviceKind::Gpu);
        assert_eq!(choice.model.name, "generic-gpu");
    }
}
