//! Builds candidates ahead in processes of their own, so that the measuring process need not wait for compilers.
//!
//! The crew's members leave built programs in the cache, from which the measuring process loads them. If candidates
//! run on the same processors that build them, members also run each candidate once (some drivers finish compiling
//! then), and the measuring process lets them finish before it times anything: see [`Crew::is_in_the_way`].

use super::worker::{Build, CandidateFailure, FailureClass, Worker, WorkerError};
use crate::opencl::plan::HostPlan;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Interval at which a wait polls whether to go on.
const POLL: Duration = Duration::from_millis(20);

type Outcome = Result<Build, WorkerError>;

/// A plan with its hash, to be built.
type Job = (String, Arc<HostPlan>);

/// Processes that build candidates.
pub struct Crew {
    jobs: Sender<Job>,
    done: Receiver<(String, Outcome)>,
    /// Hashes of the plans asked for and not yet built.
    pending: HashSet<String>,
    outcomes: HashMap<String, Outcome>,
    in_the_way: bool,
    over: Arc<AtomicBool>,
}

impl Crew {
    /// Returns a crew of these workers. They must use the cache of the measuring worker. With `in_the_way`, they
    /// also run candidates, and must have the inputs.
    pub fn new(members: Vec<Worker>, in_the_way: bool) -> Crew {
        let (jobs, inbox) = mpsc::channel::<Job>();
        let (report, done) = mpsc::channel();
        let inbox = Arc::new(Mutex::new(inbox));
        let over = Arc::new(AtomicBool::new(false));
        for mut member in members {
            let (inbox, report, over) = (inbox.clone(), report.clone(), over.clone());
            let work = move || {
                loop {
                    let next = inbox.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok((hash, plan)) = next else { return };
                    if over.load(Ordering::Relaxed) {
                        return;
                    }
                    let outcome = match in_the_way {
                        true => member.try_out(plan),
                        false => member.compile(&plan),
                    };
                    let broken =
                        matches!(outcome, Err(WorkerError::Worker(_) | WorkerError::Interrupted));
                    if report.send((hash, outcome)).is_err() || broken {
                        return;
                    }
                }
            };
            // If no thread can be started, nothing is built ahead: the channel is closed, which `ask` and `wait`
            // notice.
            drop(thread::Builder::new().name("crew".into()).spawn(work));
        }
        let (pending, outcomes) = (HashSet::new(), HashMap::new());
        Crew { jobs, done, pending, outcomes, in_the_way, over }
    }

    /// Returns whether building disturbs measuring. If so, nothing may be measured while a build is pending.
    pub fn is_in_the_way(&self) -> bool {
        self.in_the_way
    }

    /// Asks for a candidate to be built, unless it was asked for before.
    pub fn ask(&mut self, hash: &str, plan: &Arc<HostPlan>) {
        if self.pending.contains(hash) || self.outcomes.contains_key(hash) {
            return;
        }
        if self.jobs.send((hash.to_owned(), plan.clone())).is_ok() {
            self.pending.insert(hash.to_owned());
        }
    }

    /// Waits for a candidate that was asked for. Returns `None` if its outcome is unknown: it was not asked for,
    /// the crew could not work or had too little memory, or `go_on` returned `false`.
    pub fn wait(
        &mut self,
        hash: &str,
        go_on: impl Fn() -> bool,
    ) -> Option<Result<Build, CandidateFailure>> {
        while self.pending.contains(hash) {
            match self.done.recv_timeout(POLL) {
                Ok((done, outcome)) => {
                    self.pending.remove(&done);
                    self.outcomes.insert(done, outcome);
                }
                Err(RecvTimeoutError::Timeout) if go_on() => {}
                Err(RecvTimeoutError::Timeout) => return None,
                Err(RecvTimeoutError::Disconnected) => self.pending.clear(),
            }
        }
        match self.outcomes.remove(hash)? {
            Ok(build) => Some(Ok(build)),
            // Members share the device's memory; the candidate may fit when it runs alone.
            Err(WorkerError::Candidate(f)) if f.class == FailureClass::Resources => None,
            Err(WorkerError::Candidate(failure)) => Some(Err(failure)),
            Err(WorkerError::Worker(_) | WorkerError::Interrupted) => None,
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        // Queued builds are not needed any more. A build in progress ends with its process.
        self.over.store(true, Ordering::Relaxed);
    }
}
