//! Calibration: measures a device and makes the cost model that `patsat calibrate` writes.
//!
//! Probes run in a worker, like candidates. A quantity that cannot be measured keeps its value from the model that the
//! session would otherwise use for the device; the comments of the file say for each quantity where it comes from.

mod compute;
mod execution;
mod lab;
mod levels;
mod memory;
mod record;

pub use record::Quantity;

use super::race::add_yardstick;
use super::{Device, Session};
use crate::device::cost_model::{Calibrated, CostModel, GroupLimits, Locality, Matches};
use crate::device::{DeviceInfo, DeviceKind};
use crate::diag::{Code, Diagnostic, Result};
use crate::opencl::host::{HostArray, Inputs};
use crate::opencl::probe::memory::{RING, ring};
use crate::opencl::probe::{COUNTS, Count, Fleet};
use crate::tune::event::{Event, Observer, Phase};
use lab::Lab;
use record::{Record, wrapped};
use std::time::{SystemTime, UNIX_EPOCH};

/// The measured cost model of a device.
#[derive(Clone, Debug)]
pub struct Calibration {
    /// The device.
    pub device: DeviceInfo,
    /// Its cost model.
    pub model: CostModel,
    /// Every quantity, with how it was obtained. Those under `observed.` are not part of the model.
    pub quantities: Vec<Quantity>,
    /// The model as TOML with comments.
    pub text: String,
    /// Duration of the calibration, in seconds.
    pub seconds: f64,
}

/// The state that the parts of a calibration share.
struct Bench<'a> {
    lab: Lab<'a>,
    observer: &'a dyn Observer,
    record: Record,
    info: DeviceInfo,
    /// The model, with the values measured so far; the others are those of the model that was chosen for the device.
    model: CostModel,
    /// Length in floats of the array for bandwidth probes: a power of two.
    len: usize,
    /// Size in bytes of each ring of addresses for latency probes.
    rings: Vec<usize>,
    quick: bool,
}

impl Bench<'_> {
    /// Returns whether neighbouring work-items run together, as on a GPU.
    fn across(&self) -> bool {
        self.model.memory.locality == Locality::AcrossItems
    }

    fn units(&self) -> usize {
        self.info.compute_units.max(1) as usize
    }

    /// Returns a fleet of `items_of_unit` work-items for each compute unit: in groups of up to 256 where work-items
    /// run together, else in groups of one.
    fn fleet(&self, items_of_unit: usize) -> Fleet {
        if self.across() {
            let group = 256.min(self.info.max_work_group_size).min(items_of_unit).max(1);
            Fleet { groups: self.units() * (items_of_unit / group), group }
        } else {
            Fleet { groups: self.units() * items_of_unit, group: 1 }
        }
    }

    /// Returns a fleet that keeps every unit busy.
    fn crowd(&self) -> Fleet {
        self.fleet(if self.across() {
            usize::try_from(self.model.execution.items_per_compute_unit).unwrap_or(usize::MAX)
        } else {
            8
        })
    }
}

impl Session {
    /// Measures the session's device. `quick` takes less time, with shorter runs, fewer rounds and a smaller array.
    ///
    /// # Errors
    /// When there is no such device, it has too little memory, its driver fails, or the observer stops it.
    pub fn calibrate(&self, quick: bool, observer: &mut dyn Observer) -> Result<Calibration> {
        if self.device == Device::None {
            return Err(Diagnostic::error(Code::Usage, "a calibration needs a device").into());
        }
        let (info, choice) = self.target()?;
        let (inputs, len, rings) = arrays(&info, quick)?;
        let mut worker = self.start_worker(&info, inputs);
        // The worker's description also says what the device's compiler accepts.
        let info = worker.device()?;
        observer.event(&Event::Phase(Phase::Measure));
        let observer: &dyn Observer = observer;
        let record = Record { base: choice.model.name.clone(), ..Record::default() };
        let lab = Lab::new(worker, quick, observer);
        let model = choice.model;
        let mut bench = Bench { lab, observer, record, info, model, len, rings, quick };
        execution::measure(&mut bench)?;
        compute::measure(&mut bench)?;
        memory::measure(&mut bench)?;
        if bench.lab.stopped() {
            let message = "interrupted; the device is not measured";
            return Err(Diagnostic::error(Code::Interrupted, message).into());
        }
        finish(bench, choice.fallback)
    }
}

/// Makes the arrays that probes read: returns the inputs, the length of the large array in floats, and the sizes of
/// the rings in bytes.
fn arrays(info: &DeviceInfo, quick: bool) -> Result<(Inputs, usize, Vec<usize>)> {
    let wanted = match info.kind {
        // At least four times the last-level cache (drivers may report another level). With eight times, less of the
        // array remains in the cache from one run to the next.
        DeviceKind::Cpu => {
            let cached = info.cache_bytes.max(32 << 20) * if quick { 4 } else { 8 };
            cached.min(512 << 20)
        }
        DeviceKind::Gpu | DeviceKind::Other if quick => 256 << 20,
        DeviceKind::Gpu | DeviceKind::Other => 512 << 20,
    };
    let fits = wanted.min(info.max_alloc_bytes).min(info.global_mem_bytes / 8).max(1);
    let mut inputs = Inputs::default();
    let len = add_yardstick(&mut inputs, 1 << fits.ilog2(), info);
    if len == 0 {
        let message = format!("{} has too little memory to be measured", info.label());
        return Err(Diagnostic::error(Code::DeviceMemory, message).into());
    }
    for (component, count) in Count::inputs() {
        inputs.insert(COUNTS, component, count);
    }
    // One ring for each usual level of memory; none is larger than the array for bandwidth.
    let sets = [16 << 10, 128 << 10, 1 << 20, 8 << 20, 64 << 20, 256 << 20];
    let rings: Vec<usize> = sets.into_iter().filter(|&bytes| bytes <= 4 * len).collect();
    for (component, &bytes) in rings.iter().enumerate() {
        inputs.insert(RING, component, HostArray::from_slice(&ring(bytes)));
    }
    Ok((inputs, len, rings))
}

/// Completes the model and makes the text of its file.
fn finish(bench: Bench, fallback: bool) -> Result<Calibration> {
    let Bench { lab, record, info, mut model, .. } = bench;
    let seconds = lab.elapsed().as_secs_f64();
    let date = today();
    if fallback {
        // The generic model becomes a model of this device. The name of a CPU says little about its performance under
        // OpenCL, so a CPU is matched by kind and platform alone.
        let name: String = info.name.to_lowercase();
        let parts: Vec<&str> =
            name.split(|c: char| !c.is_alphanumeric()).filter(|p| !p.is_empty()).collect();
        model.name = parts.join("-");
        let device = if info.kind == DeviceKind::Cpu { vec![] } else { vec![info.name.clone()] };
        let platform = vec![info.platform.clone()];
        model.matches = Matches { kind: Some(info.kind), platform, device };
    }
    model.description = format!(
        "{}, {} compute units; measured by `patsat calibrate`.",
        info.label(),
        info.compute_units
    );
    model.limits =
        Some(GroupLimits { items: info.max_work_group_size, local_bytes: info.local_mem_bytes });
    model.calibrated = Some(Calibrated {
        date: date.clone(),
        device: info.name.clone(),
        platform: info.platform.clone(),
        driver: info.driver.clone(),
        tool: env!("CARGO_PKG_VERSION").to_owned(),
    });
    let mut header = wrapped(&format!(
        "{}, driver {}: measured by `patsat calibrate` on {date} in {seconds:.0} s.",
        info.label(),
        info.driver
    ));
    header.extend(wrapped(
        "Each quantity has its unit and how it was measured above it; a value is a median, a spread half the distance \
         between the quartiles of its timings, as a share of it. README.md explains what each is for.",
    ));
    let observed = record.observed();
    if !observed.is_empty() {
        header.push(String::new());
        header.push("Also measured, and not in the model:".to_owned());
        header.extend(observed.into_iter().map(|l| format!("  {l}")));
    }
    header.push(String::new());
    let note = |key: &str| match key.split_once('.') {
        Some(("warps" | "search", _)) => {
            wrapped(&format!("not measured (OpenCL does not say): as in `{}`", record.base))
        }
        Some(("limits", _)) => vec!["says the driver".to_owned()],
        _ => record.comment(key),
    };
    let text = model.to_annotated_toml(&header, &note)?;
    Ok(Calibration { device: info, model, quantities: record.quantities, text, seconds })
}

/// Returns today's date in UTC, as `YYYY-MM-DD`.
fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    date(seconds / 86_400)
}

/// Returns the date `days` days after 1970-01-01, in the Gregorian calendar.
fn date(mut days: u64) -> String {
    let leap = |y: u64| y.is_multiple_of(4) && (!y.is_multiple_of(100) || y.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_dates() {
        let known = [
            (0, "1970-01-01"),
            (364, "1970-12-31"),
            (11_016, "2000-02-29"),
            (20_514, "2026-03-02"),
        ];
        for (days, text) in known {
            assert_eq!(date(days), text);
        }
    }
}
