//! Runs other programs, such as a vendor's library, and times them beside generated kernels.
//!
//! A peer program is a process that answers lines on its standard input with lines on its standard output:
//!
//! | asked | answered |
//! |---|---|
//! | | `ready`, once it has read its inputs and may be timed |
//! | `check` | `done`, once its result is in the folder |
//! | `run N` | the times of `N` runs in microseconds, separated by spaces |
//!
//! Any other answer is an error message. The arguments of the process are a folder and the sizes (`n=512`). The folder
//! holds the parameters' values in `NAME.npy` (`NAME.K.npy` for component `K` of tuples); the process writes its
//! result there as `out.npy` (`out.K.npy`).

use super::inputs::Bound;
use super::npy::{self, NpyArray};
use super::program::{Program, components};
use crate::diag::{Code, Diagnostic, Result};
use crate::lang::size::Size;
use crate::lang::types::Type;
use crate::opencl::host::HostArray;
use crate::tune::measure::Runner;
use crate::tune::worker::{CandidateFailure, CandidateId, FailureClass, Worker, WorkerError};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// A running peer program.
pub(super) struct PeerProgram {
    /// Its name in the result.
    pub name: String,
    /// The bytes that it moves, from which its bandwidth is computed.
    pub bytes: u64,
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

/// The folder through which peer programs get their inputs and return their results.
pub(super) struct Exchange {
    folder: TempDir,
    /// The files of a result, and the shape of each.
    outputs: Vec<(PathBuf, Vec<usize>)>,
}

fn failed(what: &str, e: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::error(Code::Io, format!("{what}: {e}"))
}

impl Exchange {
    /// Creates the folder and writes the inputs.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn new(program: &Program, bound: &Bound) -> Result<Exchange> {
        let folder = tempfile::tempdir().map_err(|e| failed("no folder for the inputs", e))?;
        let files = |name: &str, ty: &Type| -> Result<Vec<(PathBuf, Vec<usize>)>> {
            let all = components(ty);
            let tuple = all.len() > 1;
            let of = |(k, (_, dims)): (usize, (_, Vec<Size>))| {
                let file = if tuple { format!("{name}.{k}.npy") } else { format!("{name}.npy") };
                let value = |n: &str| bound.sizes.get(n).and_then(|v| i64::try_from(*v).ok());
                let length = |s: &Size| {
                    let length = s.eval(&value).map_err(|e| failed("a length", e))?;
                    usize::try_from(length).map_err(|e| failed("a length", e))
                };
                let shape = dims.iter().map(length).collect::<std::result::Result<_, _>>()?;
                Ok((folder.path().join(file), shape))
            };
            all.into_iter().enumerate().map(of).collect()
        };
        for p in &program.entry.params {
            for (k, (path, shape)) in files(&p.name, &p.ty)?.into_iter().enumerate() {
                if let Some(data) = bound.inputs.get(&p.name, k) {
                    npy::write(&path, &NpyArray { shape, data: data.clone() })?;
                }
            }
        }
        let outputs = files("out", &program.entry.body.ty)?;
        Ok(Exchange { folder, outputs })
    }

    /// Reads the result that a program has written, and removes its files.
    fn take(&self) -> Result<Vec<HostArray>> {
        self.outputs
            .iter()
            .map(|(path, shape)| {
                let array = npy::read(path)?;
                std::fs::remove_file(path)
                    .map_err(|e| failed("the result cannot be removed", e))?;
                if array.shape != *shape {
                    let text = format!("its result has the shape {:?}, not {shape:?}", array.shape);
                    return Err(Diagnostic::error(Code::InputFormat, text).into());
                }
                Ok(array.data)
            })
            .collect()
    }
}

impl PeerProgram {
    /// Starts `command` in a shell, and waits until it is ready.
    ///
    /// # Errors
    /// When it cannot be started, or does not answer `ready`.
    pub fn start(
        name: &str,
        command: &str,
        exchange: &Exchange,
        bound: &Bound,
        bytes: u64,
    ) -> Result<PeerProgram> {
        let path: &Path = exchange.folder.path();
        let mut child = Command::new("sh")
            .args(["-c", &format!("exec {command} \"$@\""), "sh"])
            .arg(path)
            .args(bound.sizes.iter().map(|(n, v)| format!("{n}={v}")))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| failed(&format!("`{command}` does not start"), e))?;
        let lost = || failed(&format!("`{command}`"), "it has no standard input or output");
        let to = child.stdin.take().ok_or_else(lost)?;
        let from = BufReader::new(child.stdout.take().ok_or_else(lost)?);
        let mut program = PeerProgram { name: name.to_owned(), bytes, child, to, from };
        match program.answer() {
            Ok(line) if line == "ready" => Ok(program),
            Ok(line) | Err(line) => {
                let text = format!("the peer program `{name}` is not ready: {line}");
                let help = format!("`{command}` should answer `ready` when it can be timed");
                Err(Diagnostic::error(Code::Usage, text).help(help).into())
            }
        }
    }

    fn answer(&mut self) -> std::result::Result<String, String> {
        let mut line = String::new();
        match self.from.read_line(&mut line) {
            Ok(0) => Err("it has ended".into()),
            Ok(_) => Ok(line.trim().to_owned()),
            Err(e) => Err(e.to_string()),
        }
    }

    fn ask(&mut self, question: &str) -> std::result::Result<String, String> {
        writeln!(self.to, "{question}")
            .and_then(|()| self.to.flush())
            .map_err(|e| e.to_string())?;
        self.answer()
    }

    /// Asks for the result and returns it.
    ///
    /// # Errors
    /// The reason why there is no result.
    pub fn check(&mut self, exchange: &Exchange) -> std::result::Result<Vec<HostArray>, String> {
        match self.ask("check")?.as_str() {
            "done" => exchange.take().map_err(|d| d.to_string()),
            other => Err(other.to_owned()),
        }
    }

    /// Asks for runs and returns their times, in microseconds.
    fn run(&mut self, repetitions: usize) -> std::result::Result<Vec<f64>, String> {
        let answer = self.ask(&format!("run {repetitions}"))?;
        let times: Option<Vec<f64>> =
            answer.split_whitespace().map(|t| t.parse().ok().filter(|t| *t > 0.0)).collect();
        times.filter(|t| t.len() == repetitions).ok_or(answer)
    }
}

impl Drop for PeerProgram {
    fn drop(&mut self) {
        // The process may have ended already; errors cannot be reported from here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs kernels of the worker and peer programs in one race.
pub(super) struct Field<'a> {
    pub worker: &'a mut Worker,
    pub programs: &'a mut [PeerProgram],
}

impl Field<'_> {
    /// Returns the id of a peer program. Ids of the worker count up from 0, those of peer programs down from the
    /// largest.
    pub fn id(program: usize) -> CandidateId {
        CandidateId(u64::MAX - program as u64)
    }
}

impl Runner for Field<'_> {
    fn run_us(
        &mut self,
        id: CandidateId,
        repetitions: usize,
        budget: Duration,
    ) -> std::result::Result<Vec<f64>, WorkerError> {
        let place = usize::try_from(u64::MAX - id.0).ok();
        match place.and_then(|k| self.programs.get_mut(k)) {
            Some(program) => program.run(repetitions).map_err(|log| {
                WorkerError::Candidate(CandidateFailure { class: FailureClass::Crash, log })
            }),
            None => self.worker.run_us(id, repetitions, budget),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::Source;
    use crate::session::generate::Generator;
    use crate::session::{Request, inputs};

    /// A peer program that computes `map (* 2)`.
    const PEER: &str = r#"python3 -c '
import sys, struct
folder, sizes = sys.argv[1], sys.argv[2:]
print("ready" if sizes == ["n=3"] else "sizes: %s" % sizes, flush=True)
for line in sys.stdin:
    if line == "check\n":
        data = open(folder + "/xs.npy", "rb").read()
        xs = struct.unpack("<3f", data[-12:])
        open(folder + "/out.npy", "wb").write(data[:-12] + struct.pack("<3f", *[2 * x for x in xs]))
        print("done", flush=True)
    else:
        print(" ".join(["2.5"] * int(line.split()[1])), flush=True)
'"#;

    fn bound() -> (Program, Bound) {
        let text = "entry twice [n] (xs: [n]f32) : [n]f32 = map (* 2) xs";
        let program = Program::check(&Source::new("f.pat", text), None).expect("well-typed");
        let request = Request {
            sizes: [("n".to_owned(), 3)].into_iter().collect(),
            default: Some(Generator::Iota),
            ..Request::default()
        };
        let bound = inputs::bind(&program, &request).expect("inputs");
        (program, bound)
    }

    #[test]
    fn a_program_gets_inputs_and_gives_results_and_times() {
        let (program, bound) = bound();
        let exchange = Exchange::new(&program, &bound).expect("a folder");
        let mut peer = PeerProgram::start("twice", PEER, &exchange, &bound, 24).expect("ready");
        let out = peer.check(&exchange).expect("a result");
        assert_eq!(out[0].to_vec::<f32>(), Some(vec![0.0, 2.0, 4.0]));
        assert_eq!(peer.run(3), Ok(vec![2.5; 3]));
        // A result can be read once.
        assert!(exchange.take().is_err());
    }

    #[test]
    fn what_a_program_says_instead_is_the_reason() {
        let (program, bound) = bound();
        let exchange = Exchange::new(&program, &bound).expect("a folder");
        let start = |command: &str| PeerProgram::start("p", command, &exchange, &bound, 24);
        let e = start("echo no library;:").err().expect("refused").to_string();
        assert!(e.contains("no library"), "{e}");
        let e = start("true").err().expect("refused").to_string();
        assert!(e.contains("has ended"), "{e}");
        let mut fails = start("sh -c 'echo ready; read x; echo out of memory; read x; echo 1 -2'")
            .expect("ready");
        assert_eq!(fails.check(&exchange), Err("out of memory".into()));
        assert_eq!(fails.run(2), Err("1 -2".into()));
    }
}
