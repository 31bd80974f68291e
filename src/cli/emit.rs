//! `patsat emit`: writes kernels with host programs into a directory.

use super::args::{DataArgs, MEASURING, REWRITING, SEARCH, SessionArgs, plan, program};
use super::interrupt;
use super::optimize::start;
use super::out::{Done, Out, Stop};
use super::output::check_folder;
use super::progress::Progress;
use super::report::sizes;
use crate::diag::{Code, Diagnostic};
use crate::session::generate::Generator;
use crate::session::{Device, check_directory};
use serde_json::json;
use std::path::PathBuf;

/// The arguments of `patsat emit`.
#[derive(clap::Args)]
pub struct Args {
    /// The program; `-` is the standard input.
    #[arg(value_name = "FILE[:ENTRY]")]
    program: String,
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    session: SessionArgs,
    /// Emit the kernels of a plan from `optimize -o`, at the plan's sizes, without a search or a device.
    #[arg(long, value_name = "PLAN")]
    plan: Option<PathBuf>,
    /// The output directory. A directory that was emitted earlier is overwritten.
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Write into the directory even if it holds other files or an input. With `--plan`, also accept kernels that
    /// differ from those that the plan was made from.
    #[arg(long)]
    force: bool,
}

pub fn main(args: &Args, out: &mut Out) -> Done {
    let mut session = args.session.session()?;
    if args.plan.is_some() {
        let why = "with `--plan` no kernels are searched for";
        args.session.refuse(&[&SEARCH[..], &REWRITING, &MEASURING].concat(), why)?;
    } else {
        args.session.refuse_unmeasured(&session.device)?;
    }
    let program = program(&args.program, &session.rules)?;
    let given = args.plan.as_deref().map(plan).transpose()?;
    let request = args.data.request(&program, Some(Generator::Normal))?;
    check_folder(&args.output)?;
    check_directory(&args.output, args.force)?;
    out.event("start", start(&program, &args.session))?;
    let mut interrupted = false;
    let plan = match given {
        Some(plan) => {
            if !args.session.has("--device") {
                session.device = Device::None;
            }
            plan
        }
        None => {
            let interrupt = interrupt::listen()?;
            let mut progress = Progress::new(out, interrupt, program.entry.name.clone());
            let optimized = session.optimize(&program, &request, &mut progress);
            progress.finish();
            let optimized = optimized?;
            interrupted = optimized.interrupted;
            session.plan(&program, &optimized)?
        }
    };
    let emitted = session.emit(&program, &plan, &request, &args.output, args.force)?;
    out.diagnostics(&emitted.warnings)?;
    let (checked, all) = emitted.checked;
    let directory = args.output.display();
    out.event(
        "result",
        json!({
            "program": program.source.name, "entry": program.entry.name, "sizes": emitted.sizes,
            "output": directory.to_string(), "files": emitted.files,
            "kernels_from": if args.plan.is_some() { "plan" } else { "optimized" },
            "term": emitted.variant.term.to_string(), "tunables": emitted.variant.tunables(),
            "kernels": emitted.variant.plan.source, "checked": checked, "of_elements": all,
        }),
    )?;
    out.line(&format!("{} {} in {directory}:", program.entry.name, sizes(&emitted.sizes)))?;
    out.line(&format!("  {}", emitted.files.join(" ")))?;
    out.line(&format!("  its host programs check {checked} of {all} elements of the result"))?;
    if interrupted {
        let text = "interrupted while looking for kernels; the best so far are emitted";
        let d = Diagnostic::warning(Code::Interrupted, text).note(session.kept());
        out.diagnostics(&[d])?;
        return Err(Stop::Exit(Code::Interrupted.exit()));
    }
    Ok(())
}
