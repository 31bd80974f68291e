//! A running child process as the parent sees it: one request at a time, and no wait without a time limit.

use super::{Reply, Request, frame};
use crate::diag::Interrupt;
use crate::opencl::host::{HostArray, Inputs};
use std::collections::{BTreeSet, VecDeque};
use std::io::{self, BufReader, Read};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How much of the child's standard error is kept, in bytes.
const LOG_BYTES: usize = 8 << 10;

/// Interval at which a wait polls for an interrupt.
const POLL: Duration = Duration::from_millis(20);

/// Time that a child gets to answer after an interrupt.
const GRACE: Duration = Duration::from_millis(500);

/// Most time for compiling that remains once a kernel is reported to run. PoCL reports a run before it has finished
/// compiling.
const LATE: Duration = Duration::from_secs(5);

/// Time that a child gets to exit after its streams were closed or it was killed.
const LAST: Duration = Duration::from_secs(1);

/// Number of replies that may wait to be read; then the child blocks.
const UNREAD: usize = 16;

/// A running child.
pub(super) struct Process {
    child: Child,
    requests: Sender<Sent>,
    replies: Receiver<io::Result<Received>>,
    /// Number of the last request.
    asked: u64,
    /// Most raw bytes that the reply may have.
    most: Arc<AtomicU64>,
    log: Arc<Mutex<VecDeque<u8>>>,
    /// Candidates that this child has built.
    pub ready: BTreeSet<u64>,
    /// Candidates that have run in this child. A first run may still compile.
    pub warm: BTreeSet<u64>,
}

type Sent = ((u64, Request), Option<Arc<Inputs>>);
type Received = ((u64, Reply), Vec<u8>);

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// Why a child did not answer.
pub(super) enum Silence {
    /// It took longer than this time.
    Timeout(Duration),
    /// It exited, or sent something that cannot be understood.
    Death(String),
    /// The user interrupted the work.
    Interrupted,
}

/// The time that a reply may take, for compiling and for running. The child reports when a kernel starts and ends;
/// until the first report, it is assumed to compile.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    build: Duration,
    run: Duration,
    running: bool,
    since: Instant,
}

impl Allowance {
    /// Returns an allowance that starts now.
    pub fn new(build: Duration, run: Duration) -> Allowance {
        Allowance { build, run, running: false, since: Instant::now() }
    }

    /// Returns the remaining time.
    fn left(&self) -> Duration {
        let build = if self.running { self.build.min(LATE) } else { self.build };
        build.saturating_add(self.run).saturating_sub(self.since.elapsed())
    }

    /// Charges the time since the last call to the current activity, then switches: a kernel starts to run, or has
    /// ended.
    fn set(&mut self, running: bool) {
        let spent = self.since.elapsed();
        let from = if self.running { &mut self.run } else { &mut self.build };
        *from = from.saturating_sub(spent);
        (self.running, self.since) = (running, Instant::now());
    }
}

impl Process {
    /// Starts a child process.
    pub fn start(mut command: Command) -> io::Result<Process> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // The child gets a process group of its own, so that Ctrl-C reaches only the parent, which ends the child
        // itself.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(io::Error::other("no pipes were made"));
        };
        let (requests, inbox) = mpsc::channel();
        let (sender, replies) = mpsc::sync_channel(UNREAD);
        let most = Arc::new(AtomicU64::new(0));
        let limit = most.clone();
        let log = Arc::new(Mutex::new(VecDeque::new()));
        let tail = log.clone();
        // A stopped child reads nothing. Only the writing thread then blocks.
        let thread = thread::Builder::new;
        thread().spawn(move || send(stdin, &inbox))?;
        thread().spawn(move || receive(stdout, &sender, &limit))?;
        thread().spawn(move || keep_tail(stderr, &tail))?;
        let (ready, warm) = (BTreeSet::new(), BTreeSet::new());
        Ok(Process { child, requests, replies, asked: 0, most, log, ready, warm })
    }

    /// Sends a request, with the bytes of `inputs` if given, and waits for a reply of at most `most` raw bytes.
    pub fn ask(
        &mut self,
        request: Request,
        inputs: Option<Arc<Inputs>>,
        most: u64,
        mut allowed: Allowance,
        interrupt: &Interrupt,
    ) -> Result<(Reply, Vec<u8>), Silence> {
        self.asked += 1;
        self.most.store(most, Ordering::SeqCst);
        // A send fails only if the writing thread has ended. Then so has the child, which the wait for replies
        // reports.
        let _ = self.requests.send(((self.asked, request), inputs));
        let begun = Instant::now();
        let mut stopping: Option<Instant> = None;
        loop {
            if interrupt.requested() {
                let since = *stopping.get_or_insert_with(Instant::now);
                if since.elapsed() >= GRACE {
                    return Err(Silence::Interrupted);
                }
            }
            let left = allowed.left();
            if left.is_zero() {
                return Err(Silence::Timeout(begun.elapsed()));
            }
            let ((number, reply), bulk) = match self.replies.recv_timeout(left.min(POLL)) {
                Ok(Ok(received)) => received,
                Ok(Err(e)) => return Err(self.death(&format!("its answer cannot be read: {e}"))),
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(self.death("it says nothing more"));
                }
            };
            match reply {
                // A late reply to an earlier request.
                _ if number < self.asked => {}
                _ if number > self.asked => {
                    return Err(self.death("it answers what it was not asked"));
                }
                Reply::Begun => allowed.set(true),
                Reply::Ended => allowed.set(false),
                reply => return Ok((reply, bulk)),
            }
        }
    }

    /// Returns how the child ended, or why it must be ended.
    fn death(&mut self, why: &str) -> Silence {
        Silence::Death(match self.wait() {
            Some(status) => format!("the worker process ended: {status}"),
            None => format!("the worker process was ended: {why}"),
        })
    }

    /// Waits for the child to exit, for at most [`LAST`].
    fn wait(&mut self) -> Option<std::process::ExitStatus> {
        let begun = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(None) if begun.elapsed() < LAST => thread::sleep(Duration::from_millis(2)),
                Ok(status) => return status,
                Err(_) => return None,
            }
        }
    }

    /// Kills the child. If it hangs in its driver even then, it is left alone.
    fn end(&mut self) {
        // Fails if the child has already exited.
        let _ = self.child.kill();
        self.wait();
    }

    /// Takes what the child has written to its standard error since the last call.
    pub fn take_log(&mut self) -> String {
        let text = self.log();
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clear();
        text
    }

    /// Returns the last part of what the child has written to its standard error.
    pub fn log(&self) -> String {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = log.iter().copied().collect();
        String::from_utf8_lossy(&bytes).trim().to_string()
    }
}

/// Writes requests until the channel closes or the child stops reading.
fn send(mut stdin: ChildStdin, requests: &Receiver<Sent>) {
    for (request, inputs) in requests {
        let arrays = inputs.iter().flat_map(|inputs| inputs.0.values());
        let bulk: Vec<&[u8]> = arrays.map(HostArray::bytes).collect();
        if frame::write(&mut stdin, &request, &bulk).is_err() {
            return;
        }
    }
}

/// Reads replies until the stream ends or a reply cannot be read.
fn receive(stdout: ChildStdout, replies: &SyncSender<io::Result<Received>>, most: &AtomicU64) {
    let mut stdout = BufReader::with_capacity(1 << 16, stdout);
    let limit = || most.load(Ordering::SeqCst);
    while let Some(reply) = frame::read(&mut stdout, limit).transpose() {
        let last = reply.is_err();
        if replies.send(reply).is_err() || last {
            return;
        }
    }
}

/// Reads a stream to its end and keeps its last part.
fn keep_tail(mut stream: ChildStderr, tail: &Mutex<VecDeque<u8>>) {
    let mut chunk = [0; 4096];
    while let Ok(n) = stream.read(&mut chunk) {
        if n == 0 {
            return;
        }
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend(&chunk[..n]);
        let excess = tail.len().saturating_sub(LOG_BYTES);
        tail.drain(..excess);
    }
}
