//! Races: times kernels interleaved with each other and with yardsticks of the device's memory bandwidth, in one
//! worker and one run.

use super::peer_program::{Field, PeerProgram};
use crate::device::DeviceInfo;
use crate::diag::Result;
use crate::lang::types::ScalarType;
use crate::opencl::host::{HostArray, Inputs};
use crate::opencl::plan::{HostPlan, Role};
use crate::opencl::yardstick::{INPUT, Traffic, yardsticks};
use crate::tune::event::Observer;
use crate::tune::measure::{Outcome, Schedule, measure};
use crate::tune::statistics::Summary;
use crate::tune::worker::{CandidateId, Worker, WorkerError};
use std::sync::Arc;

/// The worker's name for the array that yardsticks read. No parameter of a program can have this name.
pub(super) const SLOT: &str = "%bandwidth";

/// The fewest bytes for which a bandwidth is measured.
const LEAST: u64 = 1 << 20;

/// How many yardsticks of each kind of traffic enter the final race.
const FINALISTS: usize = 2;

/// Adds the array that yardsticks read, of the given size, and returns its length in elements; 0 if it is too small to
/// measure or too large for the device.
pub(super) fn add_yardstick(inputs: &mut Inputs, bytes: u64, device: &DeviceInfo) -> usize {
    let bytes = bytes.min(device.max_alloc_bytes);
    if bytes < LEAST || bytes.saturating_mul(4) > device.global_mem_bytes {
        return 0;
    }
    let len = usize::try_from(bytes / 4).unwrap_or(0);
    // All elements differ, since pages of equal contents may be shared or compressed.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the low bits differ from page to page, too"
    )]
    let xs: Vec<f32> = (0..len).map(|i| (i as u32).wrapping_mul(2_654_435_761) as f32).collect();
    inputs.insert(SLOT, 0, HostArray::from_slice(&xs));
    len
}

/// A kernel in a race.
pub(super) struct Racer {
    /// Its name in the result.
    pub name: String,
    /// Its host plan.
    pub plan: Arc<HostPlan>,
    /// The bytes that it moves, from which its bandwidth is computed.
    pub bytes: u64,
    /// The traffic that a yardstick measures; `None` for a program or a peer.
    pub traffic: Option<Traffic>,
}

/// The result of a racer.
#[derive(Clone, Debug)]
pub(super) struct Finish {
    pub name: String,
    pub traffic: Option<Traffic>,
    pub bytes: u64,
    pub outcome: std::result::Result<Summary, String>,
}

impl Finish {
    /// Returns the bandwidth in GB/s: bytes divided by the median time.
    pub fn gb_per_s(&self) -> Option<f64> {
        let summary = self.outcome.as_ref().ok()?;
        Some(self.bytes as f64 * 1e-3 / summary.median_us.max(1e-3))
    }
}

/// Returns the best yardsticks of each kind of traffic on a device, found by a short race.
pub(super) fn field(
    worker: &mut Worker,
    device: &DeviceInfo,
    len: usize,
    observer: &dyn Observer,
) -> Result<Vec<Racer>> {
    let all: Vec<Racer> = yardsticks(device, len).into_iter().map(|y| racer(&y)).collect();
    let schedule = Schedule { rounds: 3, ..Schedule::default() };
    let mut ranked = vec![];
    for traffic in [Traffic::Copy, Traffic::CopyNontemporal, Traffic::Read] {
        let of: Vec<&Racer> = all.iter().filter(|r| r.traffic == Some(traffic)).collect();
        let mut times = vec![];
        for finish in race_of(worker, &of, &mut [], &schedule, observer)? {
            times.push(finish.outcome.map_or(f64::INFINITY, |s| s.median_us / finish.bytes as f64));
        }
        let mut order: Vec<usize> = (0..of.len()).filter(|&i| times[i].is_finite()).collect();
        order.sort_by(|&a, &b| times[a].total_cmp(&times[b]));
        ranked.extend(order.into_iter().take(FINALISTS).map(|i| of[i].name.clone()));
    }
    Ok(all.into_iter().filter(|r| ranked.contains(&r.name)).collect())
}

/// Makes a racer of a yardstick, which reads the array [`SLOT`].
fn racer(y: &crate::opencl::yardstick::Yardstick) -> Racer {
    let mut plan = HostPlan::clone(&y.plan);
    for buffer in &mut plan.buffers {
        debug_assert_eq!(buffer.elem, ScalarType::F32, "yardsticks move floats");
        if buffer.role == Role::Input(INPUT.into(), 0) {
            buffer.role = Role::Input(SLOT.into(), 0);
        }
    }
    let what = match y.traffic {
        Traffic::Copy | Traffic::CopyNontemporal => "copy",
        Traffic::Read => "read",
    };
    let name = format!("{what}: {}", y.name);
    Racer { name, plan: Arc::new(plan), bytes: y.bytes, traffic: Some(y.traffic) }
}

/// Times racers and peer programs interleaved. None is dropped for being slow. The programs come last in the result.
pub(super) fn race(
    worker: &mut Worker,
    racers: &[Racer],
    programs: &mut [PeerProgram],
    rounds: usize,
    observer: &dyn Observer,
) -> Result<Vec<Finish>> {
    let forever = f64::INFINITY;
    let schedule =
        Schedule { rounds, slow_factor: forever, trial_factor: forever, ..Schedule::default() };
    race_of(worker, &racers.iter().collect::<Vec<_>>(), programs, &schedule, observer)
}

fn race_of(
    worker: &mut Worker,
    racers: &[&Racer],
    programs: &mut [PeerProgram],
    schedule: &Schedule,
    observer: &dyn Observer,
) -> Result<Vec<Finish>> {
    let mut finishes: Vec<Finish> = racers
        .iter()
        .map(|r| Finish {
            name: r.name.clone(),
            traffic: r.traffic,
            bytes: r.bytes,
            outcome: Err("stopped".into()),
        })
        .collect();
    finishes.extend(programs.iter().map(|p| Finish {
        name: p.name.clone(),
        traffic: None,
        bytes: p.bytes,
        outcome: Err("stopped".into()),
    }));
    let mut ids: Vec<(usize, CandidateId)> = vec![];
    for (i, r) in racers.iter().enumerate() {
        if observer.stop() {
            return Ok(finishes);
        }
        match worker.prepare(r.plan.clone()) {
            Ok((id, _)) => ids.push((i, id)),
            Err(WorkerError::Candidate(failure)) => {
                finishes[i].outcome = Err(format!("{}: {}", failure.class, failure.log));
            }
            Err(WorkerError::Worker(failure)) => return Err(failure),
            Err(WorkerError::Interrupted) => return Ok(finishes),
        }
    }
    ids.extend((0..programs.len()).map(|k| (racers.len() + k, Field::id(k))));
    let only: Vec<CandidateId> = ids.iter().map(|(_, id)| *id).collect();
    let mut all = Field { worker: &mut *worker, programs };
    let outcomes = measure(&mut all, &only, schedule, || !observer.stop())?;
    for ((i, id), (_, outcome)) in ids.into_iter().zip(outcomes) {
        finishes[i].outcome = match outcome {
            Outcome::Timed(s) | Outcome::Slow(s) | Outcome::Stopped(Some(s)) => Ok(s),
            Outcome::Failed(failure) => Err(format!("{}: {}", failure.class, failure.log)),
            Outcome::Stopped(None) => Err("stopped".into()),
        };
        if i < racers.len() {
            worker.forget(id);
        }
    }
    Ok(finishes)
}

/// Returns the fastest yardstick of the given kinds of traffic.
pub(super) fn best<'a>(finishes: &'a [Finish], of: &[Traffic]) -> Option<&'a Finish> {
    finishes
        .iter()
        .filter(|f| f.traffic.is_some_and(|t| of.contains(&t)) && f.gb_per_s().is_some())
        .max_by(|a, b| a.gb_per_s().unwrap_or(0.0).total_cmp(&b.gb_per_s().unwrap_or(0.0)))
}
