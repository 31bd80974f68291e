//! `patsat optimize`

use super::args::{DataArgs, SessionArgs, program};
use super::interrupt::Interrupt;
use super::out::{Done, Out, Stop};
use super::output::{ForceArg, Output};
use super::progress::Progress;
use super::report;
use crate::diag::{Code, Diagnostic};
use crate::saturate::export::{self, Focus, Shown};
use crate::session::files::Kind;
use crate::session::generate::Generator;
use crate::session::{Graph, Optimized, Program};
use serde_json::json;
use std::path::PathBuf;

/// What to optimise.
#[derive(clap::Args)]
pub struct Args {
    /// The program.
    #[arg(value_name = "FILE[:ENTRY]")]
    program: String,
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    session: SessionArgs,
    /// Write the best kernels to a plan, for `run --plan` and `emit --plan`.
    #[arg(short, long, value_name = "PLAN")]
    output: Option<PathBuf>,
    #[command(flatten)]
    force: ForceArg,
    /// Print this instead of the report.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT")]
    emit: Vec<Emit>,
    /// Also show so many of the best candidates.
    #[arg(long, default_value_t = 1, value_name = "K")]
    top: usize,
}

/// A stage's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Emit {
    /// The program and its best low-level term.
    Term,
    /// The best kernels, in OpenCL C.
    Kernel,
    /// The host plan, as JSON: buffers, launches, options.
    Host,
    /// The e-graph, as JSON in the layout of egraph-serialize; `patsat egraph` also shows parts of it.
    Egraph,
    /// The e-graph, for Graphviz.
    Dot,
    /// How saturation went, by iteration and rule, as JSON.
    Stats,
}

pub fn main(args: &Args, out: &mut Out) -> Done {
    let session = args.session.session()?;
    args.session.refuse_unmeasured(&session.device)?;
    let program = program(&args.program)?;
    // Data decide nothing but the check: what is not given is made up.
    let request = args.data.request(Some(Generator::Normal))?;
    let inputs = [vec![PathBuf::from(&program.source.name)], args.data.files()].concat();
    let plan = args.output.as_ref();
    let plan = plan.map(|path| Output::new(path, Kind::Plan, &inputs, args.force.force, out));
    let plan = plan.transpose()?;
    out.event("start", start(&program, &args.session))?;
    let interrupt = Interrupt::listen()?;
    let mut progress = Progress::new(out, interrupt, program.entry.name.clone());
    let optimized = session.optimize(&program, &request, &mut progress);
    progress.finish();
    let optimized = optimized?;
    if let Some(output) = &plan {
        output.write_text(out, &session.plan(&program, &optimized)?.to_text()?)?;
        out.event("plan", json!({"output": output.name()}))?;
    }
    if args.emit.is_empty() {
        report::optimized(&optimized, args.top, out)?;
        if let Some(output) = &plan {
            out.line(&format!("plan       {}", output.name()))?;
        }
    } else {
        for what in &args.emit {
            let text = emit(*what, &optimized, || session.graph(&program, &request))?;
            out.event("emit", json!({"what": format!("{what:?}").to_lowercase(), "text": text}))?;
            out.text(&text)?;
        }
    }
    out.event("result", report::result(&optimized, args.top))?;
    if optimized.interrupted {
        let text = "interrupted; this is the best so far";
        out.diagnostics(&[Diagnostic::warning(Code::Interrupted, text)])?;
        return Err(Stop::Exit(Code::Interrupted.exit()));
    }
    Ok(())
}

/// What a run starts with.
pub fn start(program: &Program, session: &SessionArgs) -> serde_json::Value {
    json!({
        "tool": env!("CARGO_PKG_VERSION"), "program": program.source.name,
        "entry": program.entry.name, "budget": session.budget(), "device": session.device,
    })
}

fn pretty(v: &serde_json::Value) -> Result<String, Stop> {
    let text = serde_json::to_string_pretty(v).map_err(|e| {
        Diagnostic::error(Code::Internal, format!("a value cannot be written: {e}"))
    })?;
    Ok(text + "\n")
}

/// `graph` makes the e-graph where an answer from the tuning store has none.
fn emit(
    what: Emit,
    o: &Optimized,
    graph: impl FnOnce() -> crate::diag::Result<Graph>,
) -> Result<String, Stop> {
    let shown = |focus: &Focus, write: &dyn Fn(&Shown) -> Result<String, Stop>| match &o.saturated {
        Some(saturated) => write(&Shown::new(saturated, focus)),
        None => write(&Shown::new(&graph()?.saturated, focus)),
    };
    let plan = &o.best.variant.plan;
    match what {
        Emit::Term => Ok(format!("{}\n{}\n", o.term, o.best.variant.term)),
        Emit::Kernel => Ok(plan.source.trim_end().to_owned() + "\n"),
        Emit::Host => pretty(&json!({
            "options": plan.options, "buffers": plan.buffers, "scalars": plan.scalars,
            "launches": plan.launches,
        })),
        Emit::Egraph => {
            let focus = Focus { leaves: true, ..Focus::default() };
            shown(&focus, &|s| pretty(&export::json(s)))
        }
        Emit::Dot => shown(&Focus::default(), &|s| Ok(export::dot(s))),
        Emit::Stats => pretty(&json!(o.report)),
    }
}
