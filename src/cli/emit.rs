//! `patsat emit`

use super::args::{DataArgs, SessionArgs, plan, program};
use super::interrupt;
use super::optimize::start;
use super::out::{Done, Out, Stop};
use super::progress::Progress;
use super::report::sizes;
use crate::diag::{Code, Diagnostic};
use crate::session::generate::Generator;
use crate::session::{Device, check_directory};
use serde_json::json;
use std::path::PathBuf;

/// What to emit.
#[derive(clap::Args)]
pub struct Args {
    /// The program.
    #[arg(value_name = "FILE[:ENTRY]")]
    program: String,
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    session: SessionArgs,
    /// Emit the kernels of a plan that `optimize -o` wrote, at its sizes and without a search; no device is needed for
    /// that.
    #[arg(long, value_name = "PLAN")]
    plan: Option<PathBuf>,
    /// The directory to write; one that was emitted earlier is written over.
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Write into a directory that holds something else, too, and use the kernels of a plan even if they are others than
    /// those that it was made from.
    #[arg(long)]
    force: bool,
}

pub fn main(args: &Args, out: &mut Out) -> Done {
    let mut session = args.session.session()?;
    let program = program(&args.program)?;
    let given = args.plan.as_deref().map(plan).transpose()?;
    let request = args.data.request(Some(Generator::Normal))?;
    check_directory(&args.output, args.force)?;
    out.event("start", start(&program, &args.session))?;
    let mut interrupted = false;
    let plan = match given {
        Some(plan) => {
            if args.session.device.is_none() {
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
