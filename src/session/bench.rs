//! Programs beside the device's bandwidth and hand-written kernels, all timed in one run.

use super::inputs::{Request, bind, sizes};
use super::peers::Peer;
use super::program::{Program, Sizes};
use super::race::{Finish, Racer, add_yardstick, best, field, race};
use super::work::{Work, work};
use super::{Device, Session, memory};
use crate::calculus::term::Term;
use crate::device::DeviceInfo;
use crate::diag::{Code, Diagnostic, Result};
use crate::opencl::yardstick::Traffic;
use crate::tune::event::{Event, Observer, Phase};
use crate::tune::reference::Reference;
use crate::tune::statistics::Summary;
use crate::tune::variant::Variant;
use crate::tune::worker::WorkerError;
use std::sync::Arc;

/// Rounds of the race.
const ROUNDS: usize = 15;

/// One kernel of a bench.
#[derive(Clone, Debug)]
pub struct BenchRow {
    /// `patsat`, `copy: ...`, `read: ...`, or a peer's name.
    pub name: String,
    /// Its times, or why there are none.
    pub outcome: std::result::Result<Summary, String>,
    /// Bytes over median time, in GB/s.
    pub gb_per_s: Option<f64>,
}

/// A program's bench.
#[derive(Clone, Debug)]
pub struct Bench {
    /// The entry.
    pub entry: String,
    /// The file.
    pub file: String,
    /// Value of each size parameter.
    pub sizes: Sizes,
    /// Where it ran.
    pub device: DeviceInfo,
    /// Bytes and operations the program needs at least.
    pub work: Work,
    /// The generated kernels.
    pub variant: Arc<Variant>,
    /// The program as a term.
    pub term: Term,
    /// The generated kernels' times.
    pub own: BenchRow,
    /// The best copy and the best read of the device.
    pub copy: Option<BenchRow>,
    /// The best read.
    pub read: Option<BenchRow>,
    /// Hand-written kernels for the same program.
    pub peers: Vec<BenchRow>,
    /// Stopped early.
    pub interrupted: bool,
}

impl Session {
    /// Times a program's best kernels (from the store, or looked for now) beside the device's
    /// bandwidth and the peers that `peers` gives for the device, all interleaved.
    ///
    /// # Errors
    /// As [`Session::optimize`], and when there is no device.
    pub fn bench(
        &self,
        program: &Program,
        request: &Request,
        peers: impl FnOnce(&Program, &Sizes, &DeviceInfo) -> Result<Vec<Peer>>,
        observer: &mut dyn Observer,
    ) -> Result<Bench> {
        if self.device == Device::None {
            return Err(Diagnostic::error(Code::Usage, "a bench needs a device").into());
        }
        let (device, _) = self.target()?;
        let sizes = sizes(program, request)?;
        memory::check_device(program, &sizes, &device)?;
        let peers = peers(program, &sizes, &device)?;
        let variant = match self.known(program, &sizes, &device, observer)? {
            Some(variant) => Arc::new(variant),
            None => {
                let quiet = Session { shares: false, ..self.clone() };
                quiet.optimize(program, request, observer)?.best.variant
            }
        };
        let elaborated = program.elaborate(&sizes)?;
        let work = work(program, &sizes, &elaborated.term, &elaborated.env)?;
        let mut bound = bind(program, request)?;
        let mut reference = Reference::start(&program.entry, &sizes, &bound.values);
        let len = add_yardstick(&mut bound.inputs, work.read_bytes, &device);
        let mut worker = self.start_worker(&device, bound.inputs);
        let device = worker.device()?;
        observer.event(&Event::Phase(Phase::Compare));
        let mut racers = match len {
            0 => vec![],
            len => field(&mut worker, &device, len, observer)?,
        };
        let mut wrong = vec![];
        let own = Peer { name: "patsat".into(), plan: variant.plan.clone() };
        for peer in std::iter::once(own).chain(peers) {
            // What is timed must be right, a peer no less than a candidate.
            let checked = worker.prepare(peer.plan.clone()).and_then(|(id, _)| {
                let (_, outputs) = worker.check(id)?;
                worker.forget(id);
                Ok(outputs)
            });
            let outcome = match checked {
                Ok(outputs) => {
                    program.placed(reference.wait(|| !observer.stop()).map(drop))?;
                    match reference.compare(outputs) {
                        Some(c) if !c.ok => Err(format!("wrong: {}", c.first.unwrap_or_default())),
                        Some(_) => Ok(()),
                        None => Err("stopped".into()),
                    }
                }
                Err(WorkerError::Candidate(f)) => Err(format!("{}: {}", f.class, f.log)),
                Err(WorkerError::Worker(failure)) => return Err(failure),
            };
            match outcome {
                Ok(()) => racers.push(Racer {
                    name: peer.name,
                    plan: peer.plan,
                    bytes: work.bytes,
                    traffic: None,
                }),
                Err(why) => {
                    wrong.push(BenchRow { name: peer.name, outcome: Err(why), gb_per_s: None });
                }
            }
        }
        let finishes = race(&mut worker, &racers, ROUNDS, observer)?;
        let row = |f: &Finish| BenchRow {
            name: f.name.clone(),
            outcome: f.outcome.clone(),
            gb_per_s: f.gb_per_s(),
        };
        let mut ran: Vec<BenchRow> =
            finishes.iter().filter(|f| f.traffic.is_none()).map(row).collect();
        ran.extend(wrong);
        let own = ran.iter().position(|r| r.name == "patsat").map(|i| ran.remove(i));
        let lost = || Diagnostic::error(Code::Internal, "the program's own kernels did not race");
        Ok(Bench {
            entry: program.entry.name.clone(),
            file: program.source.name.clone(),
            sizes,
            device,
            work,
            variant,
            term: elaborated.term,
            own: own.ok_or_else(lost)?,
            copy: best(&finishes, &[Traffic::Copy, Traffic::CopyNontemporal]).map(row),
            read: best(&finishes, &[Traffic::Read]).map(row),
            peers: ran,
            interrupted: observer.stop(),
        })
    }
}
