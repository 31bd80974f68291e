//! `patsat fuzz`: compiles random programs and compares their candidates with the interpreter.

use super::args::{FloatArg, program_source, seconds};
use super::interrupt;
use super::out::{Done, Out, Stop};
use super::output::check_folder;
use crate::diag::{Code, Diagnostic, Interrupt, Limits, Result};
use crate::rules::check::Check;
use crate::session::fuzz::{Finding, Fuzz, Tally, Watcher};
use crate::session::{Device, Session, check_own_rules, cost_model, rule_set};
use crate::tune::worker::Worker;
use serde_json::json;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The interval between progress reports.
const EVERY: Duration = Duration::from_secs(10);

/// The arguments of `patsat fuzz`.
#[derive(clap::Args)]
pub struct Args {
    /// Programs to try again, each with the seed and sizes of its line `-- fuzz:`, instead of random ones.
    #[arg(value_name = "FILE")]
    programs_given: Vec<PathBuf>,
    /// The number of random programs.
    #[arg(long, default_value_t = 1_000, value_name = "N")]
    programs: u64,
    /// The seed of all programs, their inputs, rules and candidates.
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// The number of the first program, to continue a run.
    #[arg(long, default_value_t = 0, value_name = "N")]
    first: u64,
    /// The number of candidates that run for each program.
    #[arg(long, default_value_t = 3, value_name = "K")]
    candidates: usize,
    /// Start no program after M minutes; `--programs` limits their number as well.
    #[arg(long, value_name = "M", value_parser = minutes)]
    minutes: Option<Duration>,
    /// The values for size parameters [default: 0, 1, 2, primes and powers of two with their neighbours, up to 33].
    #[arg(long, value_name = "N", value_delimiter = ',')]
    sizes: Vec<u64>,
    /// The number of programs that are tried at a time.
    #[arg(long, default_value_t = 1, value_name = "N")]
    jobs: usize,
    /// The output folder: a folder for each failing program, and `refused.md`.
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// The longest time for shrinking a failing program, in seconds.
    #[arg(long, default_value = "120", value_name = "S", value_parser = seconds)]
    shrink: Duration,
    /// The number of reasons for refusals to show.
    #[arg(long, default_value_t = 10, value_name = "K")]
    top: usize,
    /// The device: `#k`, a part of its or its platform's name, or `none` (evaluate the candidates' terms).
    #[arg(long, default_value = "portable", value_name = "DEVICE")]
    device: String,
    /// Use this cost model instead of the one for the device: a file, or the name of a shipped model.
    #[arg(long, value_name = "FILE|NAME")]
    cost_model: Option<String>,
    /// The rules from which subsets are drawn, as for `optimize`.
    #[arg(long, value_name = "SPEC", allow_hyphen_values = true)]
    rules: Vec<PathBuf>,
    /// Which changes to float arithmetic are allowed.
    #[arg(long, value_enum, default_value = "contract")]
    float: FloatArg,
    /// The longest time that a candidate may take to build, in seconds.
    #[arg(long, default_value = "60", value_name = "S", value_parser = seconds)]
    build_timeout: Duration,
    /// The longest time that one run of a candidate may take, in seconds.
    #[arg(long, default_value = "20", value_name = "S", value_parser = seconds)]
    run_timeout: Duration,
}

fn minutes(text: &str) -> std::result::Result<Duration, String> {
    let m: f64 = text.parse().map_err(|_| format!("`{text}` is no number of minutes"))?;
    Duration::try_from_secs_f64(60.0 * m).map_err(|e| e.to_string())
}

impl Args {
    fn session(&self) -> Result<Session> {
        let float = self.float.into();
        let rules = rule_set(&self.rules, float)?;
        check_own_rules(&rules, Check::default())?;
        Ok(Session {
            rules,
            limits: Limits {
                build_time: self.build_timeout,
                run_time: self.run_timeout,
                ..Limits::default()
            },
            float,
            device: match self.device.as_str() {
                "none" => Device::None,
                selector => Device::Selected(Some(selector.to_owned())),
            },
            cost_model: self.cost_model.as_deref().map(cost_model).transpose()?,
            worker: Some(Arc::new(Worker::own_executable()?)),
            ..Session::new()?
        })
    }

    fn fuzz(&self) -> Fuzz {
        Fuzz {
            programs: self.programs,
            seed: self.seed,
            first: self.first,
            candidates: self.candidates,
            time: self.minutes,
            lengths: self.sizes.clone(),
            jobs: self.jobs,
            output: self.output.clone(),
            shrink: self.shrink,
        }
    }
}

pub fn main(args: &Args, out: &mut Out) -> Done {
    args.output.as_deref().map_or(Ok(()), check_folder)?;
    let mut session = args.session()?;
    let interrupt = interrupt::listen()?;
    session.limits.interrupt = interrupt.clone();
    let sources: Result<Vec<_>> =
        args.programs_given.iter().map(|path| program_source(path)).collect();
    let sources = sources?;
    let mut watch = Watch { out, interrupt, last: Instant::now(), error: None };
    let tally = match sources.is_empty() {
        true => session.fuzz(&args.fuzz(), &mut watch),
        false => session.fuzz_programs(&args.fuzz(), &sources, &mut watch),
    };
    let error = watch.error;
    let tally = tally?;
    if let Some(stop) = error {
        return Err(stop);
    }
    report(&tally, args.top, out)?;
    out.event("result", json!(tally))?;
    if !tally.is_clean() {
        return Err(Stop::Exit(Code::WrongResult.exit()));
    }
    if tally.interrupted {
        let d = Diagnostic::warning(Code::Interrupted, "interrupted; these are the results so far");
        out.diagnostics(&[d])?;
        return Err(Stop::Exit(Code::Interrupted.exit()));
    }
    Ok(())
}

struct Watch<'a> {
    out: &'a mut Out,
    interrupt: Interrupt,
    last: Instant,
    /// The first error of the output, which ends the run.
    error: Option<Stop>,
}

impl Watcher for Watch<'_> {
    fn tally(&mut self, t: &Tally) {
        if self.last.elapsed() < EVERY {
            return;
        }
        self.last = Instant::now();
        if self.out.is_json() {
            let counts = json!({
                "programs": t.programs, "compiled": t.compiled, "refused": t.refused,
                "candidates": t.candidates, "wrong": t.wrong, "seconds": t.seconds,
            });
            self.error = self.out.event("progress", counts).err().or(self.error.take());
        } else {
            // Errors of the standard error do not end the run.
            drop(writeln!(io::stderr(), "{}", line(t)));
        }
    }

    fn finding(&mut self, f: &Finding) {
        let folder = f.folder.as_ref().map(|f| f.display().to_string());
        let found = json!({
            "kind": f.kind().name(), "says": f.says(), "program": f.source.text, "folder": folder,
        });
        let mut told = self.out.event("finding", found);
        if told.is_ok() {
            told = self.out.line(&format!("{}: {}\n{}", f.kind(), f.says(), f.source.text));
        }
        self.error = told.and_then(|()| self.out.flush()).err().or(self.error.take());
    }

    fn stop(&self) -> bool {
        self.interrupt.requested() || self.error.is_some()
    }
}

fn line(t: &Tally) -> String {
    format!(
        "{} programs ({:.1} a second), {} compiled, {} refused, {} candidates, {} findings",
        t.programs,
        t.rate(),
        t.compiled,
        t.refused,
        t.candidates,
        t.wrong.values().sum::<u64>(),
    )
}

fn report(t: &Tally, top: usize, out: &mut Out) -> Done {
    out.line(&format!("device      {}", t.device))?;
    out.line(&format!(
        "programs    {} in {:.1} s, {:.1} a second",
        t.programs,
        t.seconds,
        t.rate()
    ))?;
    out.line(&format!("accepted    {} ({} without a value)", t.accepted, t.no_value))?;
    out.line(&format!("compiled    {} ({} only under all rules)", t.compiled, t.needed_all_rules))?;
    out.line(&format!("refused     {}", t.refused))?;
    out.line(&format!("candidates  {} ({} too large)", t.candidates, t.too_large))?;
    let wrong: Vec<String> = t.wrong.iter().map(|(kind, n)| format!("{n} {kind}")).collect();
    let wrong = if wrong.is_empty() { "nothing".to_owned() } else { wrong.join(", ") };
    out.line(&format!("found       {wrong}"))?;
    for folder in &t.findings {
        out.line(&format!("            {folder}"))?;
    }
    for (why, r) in t.top_refusals().into_iter().take(top) {
        out.line(&format!("{:>10}  {why}", r.count))?;
    }
    Ok(())
}
