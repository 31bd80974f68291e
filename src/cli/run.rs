//! `patsat run`: runs a program on a device.

use super::args::{DataArgs, REWRITING, SEARCH, SessionArgs, plan, program};
use super::interrupt;
use super::optimize;
use super::out::{Done, Out, Stop};
use super::progress::{Progress, micros};
use super::report::{gb_per_s, gflops, sizes};
use super::value::{self, Outputs};
use crate::diag::{Code, Diagnostic};
use crate::session::Execute;
use serde_json::json;
use std::path::PathBuf;

/// The arguments of `patsat run`.
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("forced").args(["plan", "output"]).multiple(true))]
pub struct Args {
    /// The program; `-` is the standard input.
    #[arg(value_name = "FILE[:ENTRY]")]
    program: String,
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    session: SessionArgs,
    /// The output file for the result, or `-` for the standard output. The components of a tuple go to `NAME.0.npy`,
    /// `NAME.1.npy`, ... To a file that ends in `.out` or `.in`, all of them are written as text of Futhark's values.
    #[arg(long, value_name = "FILE.npy")]
    output: Option<PathBuf>,
    /// Compile a program in low-level patterns as written, without rewriting it.
    #[arg(long)]
    no_rewrite: bool,
    /// Use the kernels of a plan from `optimize -o`, without a search. Sizes that are not given are those of the plan.
    #[arg(long, value_name = "PLAN", conflicts_with = "no_rewrite")]
    plan: Option<PathBuf>,
    /// Replace the output file even if it is an input or a file of another kind. With `--plan`, also accept kernels
    /// that differ from those that the plan was made from; their result is compared with the interpreter's.
    #[arg(long, requires = "forced")]
    force: bool,
    /// Compare the result with the interpreter's.
    #[arg(long)]
    verify: bool,
    /// Time N runs after the first one, which warms up, and report the median [default: 1, or none if the first run
    /// takes over a second].
    #[arg(long, value_name = "N")]
    repeat: Option<usize>,
}

pub fn main(args: &Args, out: &mut Out) -> Done {
    let session = args.session.session()?;
    if args.no_rewrite {
        let unread =
            [&SEARCH[..], &REWRITING, &["--store", "--rules", "--trust-rules", "--trust-laws"]];
        let why =
            "with `--no-rewrite` the program is not rewritten, and no kernels are searched for";
        args.session.refuse(&unread.concat(), why)?;
    }
    if args.plan.is_some() {
        let why = "with `--plan` no kernels are searched for";
        args.session.refuse(&[&SEARCH[..], &REWRITING].concat(), why)?;
    }
    let program = program(&args.program, &session.rules)?;
    let plan = args.plan.as_deref().map(plan).transpose()?;
    let outputs = Outputs::new(args.output.as_deref(), &program, &args.data, args.force, out)?;
    let request = args.data.request(&program, None)?;
    out.event("start", optimize::start(&program, &args.session))?;
    let interrupt = interrupt::listen()?;
    let mut progress = Progress::new(out, interrupt, program.entry.name.clone());
    let execute = Execute { as_written: args.no_rewrite, verify: args.verify, repeat: args.repeat };
    let ran = match &plan {
        Some(plan) => {
            session.run_plan(&program, plan, &request, execute, args.force, &mut progress)
        }
        None => session.run(&program, &request, execute, &mut progress),
    };
    progress.finish();
    let ran = ran?;
    let written = outputs.write(&ran.outputs, out)?;
    let wrong = ran.comparison.as_ref().filter(|c| !c.ok);
    out.event(
        "result",
        json!({
            "program": program.source.name, "entry": program.entry.name, "sizes": ran.sizes,
            "device": ran.device.label(), "driver": ran.device.driver,
            "rules": plan.as_ref().map_or_else(|| session.rules.hash(), |p| p.rules.clone()),
            "float": plan.as_ref().map_or(session.float.name(), |p| p.float.as_str()),
            "kernels_from": ran.how.name(), "tuned_for": ran.tuned_for,
            "device_us": ran.device_us, "wall_us": ran.wall_us,
            "runs": ran.runs, "tuned_us": ran.tuned_us,
            "bytes": ran.work.bytes, "flops": ran.work.flops,
            "gbytes_per_s": gb_per_s(ran.work.bytes, ran.device_us),
            "gflops": gflops(ran.work.flops, ran.device_us),
            "verified": ran.comparison.as_ref().map(|c| c.ok),
            "max_rel_err": ran.comparison.as_ref().map(|c| c.max_rel_err),
            "checked": ran.checked,
            "term": ran.variant.term.to_string(), "tunables": ran.variant.tunables(),
            "kernels": ran.variant.plan.source, "result": value::json(&ran.outputs),
            "output": written,
        }),
    )?;
    if !out.is_json() {
        // The standard output holds only the result.
        let verified = match &ran.comparison {
            Some(c) => format!(", largest relative error {:.2e}", c.max_rel_err),
            None => String::new(),
        };
        let verified = match &ran.checked {
            Some(checked) => format!("{verified} (checked: {checked})"),
            None => verified,
        };
        let runs = match ran.runs {
            0 => "first run".to_owned(),
            1 => "second run".to_owned(),
            n => format!("median of {n} runs"),
        };
        let kernels = match (&ran.tuned_for, ran.tuned_us) {
            (Some(tuned), _) => format!("from {}, the nearest size tuned", sizes(tuned)),
            (None, Some(us)) => format!("from the store, {} when tuned", micros(us)),
            (None, None) => ran.how.name().to_owned(),
        };
        let text = format!(
            "{} {}: {} on {} ({:.2} GB/s, {runs}), kernels {kernels}{verified}",
            program.entry.name,
            sizes(&ran.sizes),
            micros(ran.device_us),
            ran.device.short(),
            gb_per_s(ran.work.bytes, ran.device_us),
        );
        out.aside(&text);
    }
    if written.is_empty() {
        out.text(&value::text(&ran.outputs))?;
    }
    if let Some(c) = wrong {
        let d = Diagnostic::error(Code::WrongResult, "the result differs from the interpreter's");
        let d = d.note(format!("{} elements are out of tolerance", c.mismatches));
        return Err(match &c.first {
            Some(first) => d.note(first.clone()).into(),
            None => d.into(),
        });
    }
    if ran.interrupted {
        let text = "interrupted while looking for kernels; the best so far ran";
        let d = Diagnostic::warning(Code::Interrupted, text).note(session.kept());
        out.diagnostics(&[d])?;
        return Err(Stop::Exit(Code::Interrupted.exit()));
    }
    Ok(())
}
