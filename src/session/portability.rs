//! Measures performance portability: runs kernels that were tuned for one device on the others.
//!
//! Follows Steuwer et al. (ICFP 2015, figure 1), who compare each implementation with the best one on every device.

use super::inputs::{Bound, Request, bind};
use super::{Device, Observer, Phase, Program, Session, Sizes, memory};
use crate::device::DeviceInfo;
use crate::diag::{Code, Diagnostic, Result};
use crate::tune::event::Event;
use crate::tune::measure::{Outcome, Schedule, measure};
use crate::tune::reference::Reference;
use crate::tune::statistics::Summary;
use crate::tune::variant::Variant;
use crate::tune::worker::{CandidateFailure, WorkerError};
use std::sync::Arc;

/// Rounds in which the kernels are timed interleaved on a device.
const ROUNDS: usize = 15;

/// The outcome of one kernel on one device.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// The result is right, and the kernel was timed beside the others.
    Timed(Summary),
    /// The result is right; nothing is timed on this device.
    Right,
    /// The kernel failed or gave a wrong result.
    Failed(CandidateFailure),
}

/// A program's kernels on every device.
#[derive(Debug)]
pub struct Portability {
    /// The entry.
    pub entry: String,
    /// Value of each size.
    pub sizes: Sizes,
    /// The devices that kernels were tuned for, each with its kernel.
    pub tuned: Vec<(DeviceInfo, Arc<Variant>)>,
    /// The devices that kernels ran on, each with the outcome of every kernel, in the order of `tuned`.
    pub ran: Vec<(DeviceInfo, Vec<Cell>)>,
    /// Whether the run was stopped early.
    pub interrupted: bool,
}

impl Portability {
    /// Returns the speed of kernel `k` on device `on` as a share of the fastest kernel there (1 is best); `None` if it
    /// was not timed.
    pub fn share(&self, k: usize, on: usize) -> Option<f64> {
        let (_, cells) = self.ran.get(on)?;
        let time = |c: &Cell| match c {
            Cell::Timed(s) => Some(s.median_us),
            Cell::Right | Cell::Failed(_) => None,
        };
        let best = cells.iter().filter_map(time).fold(f64::INFINITY, f64::min);
        Some(best / time(cells.get(k)?)?)
    }
}

impl Session {
    /// Tunes a program for each of `devices`, and runs every kernel on each of them. On the devices of `checked` (a
    /// simulator, say), results are compared and nothing is timed. The session's own device is not used.
    ///
    /// # Errors
    /// As [`Session::optimize`], and when a device's worker is lost.
    pub fn portability(
        &self,
        program: &Program,
        request: &Request,
        devices: &[DeviceInfo],
        checked: &[DeviceInfo],
        observer: &mut dyn Observer,
    ) -> Result<Portability> {
        if devices.is_empty() {
            return Err(Diagnostic::error(Code::UnknownDevice, "there is no device to tune for")
                .help("`patsat devices` lists those there are")
                .into());
        }
        let mut tuned = vec![];
        let mut interrupted = false;
        for device in devices {
            let session = Session {
                device: Device::Selected(Some(format!("#{}", device.index))),
                shares: false,
                ..self.clone()
            };
            let found = session.optimize(program, request, observer)?;
            interrupted |= found.interrupted;
            tuned.push((device.clone(), found.best.variant));
        }
        let Bound { sizes, inputs, values, .. } = bind(program, request)?;
        let mut reference = Reference::start(&program.entry, &sizes, &values, &self.limits);
        drop(values);
        let mut ran = vec![];
        for (device, timed) in
            devices.iter().map(|d| (d, true)).chain(checked.iter().map(|d| (d, false)))
        {
            if observer.stop() {
                interrupted = true;
                break;
            }
            memory::check_device(program, &sizes, device)?;
            observer.event(&Event::Phase(Phase::Compare));
            let mut worker = self.start_worker(device, inputs.clone());
            let mut cells: Vec<Cell> = vec![];
            let mut ids = vec![];
            for (_, variant) in &tuned {
                let answer = worker
                    .prepare(variant.plan.clone())
                    .and_then(|(id, _)| Ok((id, worker.check(id)?.1)));
                let (id, outputs) = match answer {
                    Ok(answer) => answer,
                    Err(WorkerError::Worker(failure)) => return Err(failure),
                    Err(WorkerError::Interrupted) => {
                        interrupted = true;
                        break;
                    }
                    Err(WorkerError::Candidate(failure)) => {
                        cells.push(Cell::Failed(failure));
                        continue;
                    }
                };
                if !program.placed(reference.wait(|| !observer.stop()))? {
                    interrupted = true;
                    break;
                }
                let verdict = program.placed(reference.compare(outputs))?;
                match verdict.filter(|v| !v.comparison.ok) {
                    Some(v) => cells.push(Cell::Failed(CandidateFailure {
                        class: v.class(),
                        log: v.comparison.first.unwrap_or_default(),
                    })),
                    None => {
                        ids.push((id, cells.len()));
                        cells.push(Cell::Right);
                    }
                }
            }
            if timed && !interrupted {
                let schedule = Schedule {
                    rounds: ROUNDS,
                    slow_factor: f64::INFINITY,
                    trial_factor: f64::INFINITY,
                    ..Schedule::default()
                };
                let only: Vec<_> = ids.iter().map(|(id, _)| *id).collect();
                let outcomes = measure(&mut worker, &only, &schedule, || !observer.stop())?;
                for ((_, outcome), (_, k)) in outcomes.into_iter().zip(&ids) {
                    match outcome {
                        Outcome::Timed(s) | Outcome::Slow(s) => cells[*k] = Cell::Timed(s),
                        Outcome::Failed(f) => cells[*k] = Cell::Failed(f),
                        Outcome::Stopped(_) => interrupted = true,
                    }
                }
            }
            ran.push((device.clone(), cells));
        }
        Ok(Portability { entry: program.entry.name.clone(), sizes, tuned, ran, interrupted })
    }
}
