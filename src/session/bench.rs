//! Benchmarks: a program's best kernels, the device's bandwidth yardsticks, hand-written kernels and programs of
//! others, timed interleaved in one run.

use super::inputs::{Request, bind, sizes};
use super::peer_program::{Exchange, PeerProgram};
use super::peers::Peer;
use super::program::{Program, Sizes};
use super::race::{Finish, Racer, add_yardstick, best, field, race};
use super::work::{Work, work};
use super::{Device, Session, memory};
use crate::calculus::term::Term;
use crate::device::DeviceInfo;
use crate::diag::{Code, Diagnostic, Result};
use crate::opencl::host::HostArray;
use crate::opencl::yardstick::Traffic;
use crate::tune::event::{Event, Observer, Phase};
use crate::tune::reference::{Checked, Reference};
use crate::tune::statistics::Summary;
use crate::tune::variant::Variant;
use crate::tune::worker::{Worker, WorkerError};
use std::sync::Arc;

/// Rounds of the race.
const ROUNDS: usize = 15;

/// One competitor of a bench.
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
    /// The best copy kernel of the device.
    pub copy: Option<BenchRow>,
    /// The best read kernel of the device.
    pub read: Option<BenchRow>,
    /// Hand-written kernels for the same program.
    pub peers: Vec<BenchRow>,
    /// How results were checked, if the interpreter computed only a sample of them.
    pub checked: Option<Checked>,
    /// Whether the run was stopped early.
    pub interrupted: bool,
}

impl Session {
    /// Times a program's best kernels (from the store, else from a search), the yardsticks of the device's bandwidth,
    /// the peers that `peers` returns for the device, and other `programs` (each a name and a command, see
    /// `docs/architecture.md`), all interleaved.
    ///
    /// # Errors
    /// As [`Session::optimize`], and when there is no device.
    pub fn bench(
        &self,
        program: &Program,
        request: &Request,
        peers: impl FnOnce(&Program, &Sizes, &DeviceInfo) -> Result<Vec<Peer>>,
        programs: &[(String, String)],
        observer: &mut dyn Observer,
    ) -> Result<Bench> {
        if self.device == Device::None {
            return Err(Diagnostic::error(Code::Usage, "a bench needs a device").into());
        }
        let (device, _) = self.target()?;
        let sizes = sizes(program, request)?;
        memory::check_device(program, &sizes, &device)?;
        let peers = peers(program, &sizes, &device)?;
        let variant = match self.known(program, &sizes, &device, &[])?.filter(|k| k.verified) {
            Some(known) => Arc::new(known.variant),
            None => {
                let quiet = Session { shares: false, ..self.clone() };
                quiet.optimize(program, request, observer)?.best.variant
            }
        };
        let elaborated = program.elaborate(&sizes)?;
        let work = work(program, &sizes, &elaborated.term, &elaborated.env)?;
        let mut bound = bind(program, request)?;
        let exchange =
            (!programs.is_empty()).then(|| Exchange::new(program, &bound)).transpose()?;
        let mut others = vec![];
        for ((name, command), exchange) in programs.iter().zip(exchange.iter().cycle()) {
            others.push(PeerProgram::start(name, command, exchange, &bound, work.bytes)?);
        }
        let mut reference = Reference::start(&program.entry, &sizes, &bound.values, &self.limits);
        let len = add_yardstick(&mut bound.inputs, work.read_bytes, &device);
        let mut worker = self.start_worker(&device, bound.inputs);
        let device = worker.device()?;
        observer.event(&Event::Phase(Phase::Compare));
        let mut racers = match len {
            0 => vec![],
            len => field(&mut worker, &device, len, observer)?,
        };
        let own = Peer { name: "patsat".into(), plan: variant.plan.clone() };
        // Every peer is compiled with the options of the program's own kernels.
        let alike = |mut peer: Peer| {
            Arc::make_mut(&mut peer.plan).options.insert_str(0, &variant.plan.options);
            peer
        };
        let all: Vec<Peer> = std::iter::once(own).chain(peers.into_iter().map(alike)).collect();
        let mut outcomes = vec![];
        // A result that others were compared with may turn out to be wrong: then all are compared again. The loop ends
        // because each repetition rules out one more result.
        let mut again = true;
        while std::mem::take(&mut again) {
            outcomes.clear();
            for peer in &all {
                let (outcome, overturned) =
                    checked(program, &mut worker, &mut reference, peer, observer)?;
                outcomes.push(outcome);
                again |= overturned;
            }
            for (other, exchange) in others.iter_mut().zip(exchange.iter().cycle()) {
                let (outcome, overturned) = match other.check(exchange) {
                    Ok(outputs) => compared(program, &mut reference, outputs, observer)?,
                    Err(why) => (Err(why), false),
                };
                outcomes.push(outcome);
                again |= overturned;
            }
        }
        let mut wrong = vec![];
        let of_others = outcomes.split_off(all.len());
        for (peer, outcome) in all.into_iter().zip(outcomes) {
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
        let mut right = vec![];
        for (other, outcome) in others.into_iter().zip(of_others) {
            match outcome {
                Ok(()) => right.push(other),
                Err(why) => {
                    wrong.push(BenchRow {
                        name: other.name.clone(),
                        outcome: Err(why),
                        gb_per_s: None,
                    });
                }
            }
        }
        let finishes = race(&mut worker, &racers, &mut right, ROUNDS, observer)?;
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
            checked: reference.checked(),
            interrupted: observer.stop(),
        })
    }
}

/// Runs a kernel and compares its result, since only correct kernels are timed, peers included. Returns the reason if
/// the kernel is rejected, and whether a result that was accepted before turned out to be wrong.
fn checked(
    program: &Program,
    worker: &mut Worker,
    reference: &mut Reference,
    peer: &Peer,
    observer: &dyn Observer,
) -> Result<(std::result::Result<(), String>, bool)> {
    let answer = worker.prepare(peer.plan.clone()).and_then(|(id, _)| {
        let (_, outputs) = worker.check(id)?;
        worker.forget(id);
        Ok(outputs)
    });
    let outputs = match answer {
        Ok(outputs) => outputs,
        Err(WorkerError::Candidate(f)) => {
            return Ok((Err(format!("{}: {}", f.class, f.log)), false));
        }
        Err(e) => return Err(e.into()),
    };
    compared(program, reference, outputs, observer)
}

/// Compares the outputs of a competitor; returns the same as [`checked`].
fn compared(
    program: &Program,
    reference: &mut Reference,
    outputs: Vec<HostArray>,
    observer: &dyn Observer,
) -> Result<(std::result::Result<(), String>, bool)> {
    program.placed(reference.wait(|| !observer.stop()))?;
    Ok(match program.placed(reference.compare(outputs))? {
        Some(v) if v.comparison.ok => (Ok(()), v.overturned),
        Some(v) => {
            let why = format!("{}: {}", v.class(), v.comparison.first.unwrap_or_default());
            (Err(why), v.overturned)
        }
        None => (Err("stopped".into()), false),
    })
}
