//! `patsat optimize`: finds the best kernels of a program and reports them.

use super::args::{DataArgs, SessionArgs, program};
use super::interrupt;
use super::out::{Done, Out, Stop};
use super::output::{ForceArg, Output};
use super::progress::Progress;
use super::report;
use crate::calculus::size::SizeEnv;
use crate::device::DeviceInfo;
use crate::device::cost_model::CostModel;
use crate::diag::{Code, Diagnostic, Limits};
use crate::extract::{self, Told};
use crate::saturate::export::{self, Focus, Shown};
use crate::saturate::{Report, Saturated};
use crate::session::files::Kind;
use crate::session::generate::Generator;
use crate::session::inputs::sizes;
use crate::session::{Graph, Optimized, Program, Request, Session};
use serde_json::json;
use std::path::PathBuf;

/// The arguments of `patsat optimize`.
#[derive(clap::Args)]
pub struct Args {
    /// The program; `-` is the standard input.
    #[arg(value_name = "FILE[:ENTRY]")]
    program: String,
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    session: SessionArgs,
    /// Write the best kernels to a plan, for use with `run --plan` and `emit --plan`.
    #[arg(short, long, value_name = "PLAN")]
    output: Option<PathBuf>,
    #[command(flatten)]
    force: ForceArg,
    /// Print this instead of the report.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT")]
    emit: Vec<Emit>,
    /// Also show the K best candidates.
    #[arg(long, default_value_t = 1, value_name = "K")]
    top: usize,
    /// Also show the best term, its kernels, and what the search did.
    #[arg(short, long, conflicts_with = "emit")]
    verbose: bool,
}

/// The result of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Emit {
    /// The program and its best low-level term.
    Term,
    /// What lowering decided for the best kernels: loops, memories, and each access as a function of indices.
    Schedule,
    /// The best kernels, in OpenCL C.
    Kernel,
    /// The host plan, as JSON: buffers, launches, options.
    Host,
    /// The e-graph, as JSON in the layout of egraph-serialize; `patsat egraph` also shows parts of it.
    Egraph,
    /// The e-graph, for Graphviz.
    Dot,
    /// Statistics of the saturation, by iteration and by rule, and what extraction dropped and why, as JSON.
    Stats,
}

pub fn main(args: &Args, out: &mut Out) -> Done {
    let session = args.session.session()?;
    args.session.refuse_unmeasured(&session.device)?;
    let program = program(&args.program, &session.rules)?;
    // Only the check depends on the data, so missing inputs are generated.
    let requests = match args.output {
        Some(_) => vec![args.data.request(&program, Some(Generator::Normal))?],
        None => args.data.requests(&program, Some(Generator::Normal))?,
    };
    // All sizes are checked before the first search of several.
    if requests.len() > 1 {
        for request in &requests {
            program.placed(program.elaborate(&sizes(&program, request)?))?;
        }
    }
    let inputs = [vec![PathBuf::from(&program.source.name)], args.data.files()].concat();
    let plan = args.output.as_ref();
    let plan = plan.map(|path| Output::new(path, Kind::Plan, &inputs, args.force.force, out));
    let plan = plan.transpose()?;
    out.event("start", start(&program, &args.session))?;
    for (i, request) in requests.iter().enumerate() {
        if i > 0 && args.emit.is_empty() {
            out.line("")?;
        }
        one(args, (&session, &program, request), plan.as_ref(), out)?;
    }
    Ok(())
}

/// Optimises a program for one choice of sizes.
fn one(
    args: &Args,
    (session, program, request): (&Session, &Program, &Request),
    plan: Option<&Output>,
    out: &mut Out,
) -> Done {
    let interrupt = interrupt::listen()?;
    let mut progress = Progress::new(out, interrupt, program.entry.name.clone());
    let optimized = session.optimize(program, request, &mut progress);
    progress.finish();
    let optimized = match optimized {
        Ok(optimized) => optimized,
        Err(failure) => {
            // Without a term, the results of saturation can still be printed.
            let wanted = args.emit.iter().any(|what| what.is_of_graph());
            if wanted && failure.0.iter().any(|d| d.code == Code::NoTerm) {
                let graph = session.graph(program, request)?;
                let (device, choice) = session.target()?;
                let target = (&device, &choice.model);
                for what in &args.emit {
                    let text = match what {
                        Emit::Stats => Some(stats_of_nothing(&graph, target, &session.limits)?),
                        _ => of_graph(*what, &graph.saturated, &graph.program.env, target)?,
                    };
                    emitted(*what, text, out)?;
                }
            }
            return Err(failure.into());
        }
    };
    if let Some(output) = plan {
        output.write_text(out, &session.plan(program, &optimized)?.to_text()?)?;
        out.event("plan", json!({"output": output.name()}))?;
    }
    if args.emit.is_empty() {
        report::optimized(&optimized, (args.verbose, args.top), out)?;
        if let Some(store) = session.store.as_ref().filter(|_| optimized.best.summary.is_some()) {
            report::line("stored", &store.display().to_string(), out)?;
        }
        if let Some(output) = plan {
            report::line("plan", &output.name(), out)?;
        }
        report::line("next", &next(args, program, &optimized, plan), out)?;
    } else {
        for what in &args.emit {
            let text = match (of_result(*what, &optimized)?, &optimized.saturated) {
                _ if *what == Emit::Schedule => {
                    Some(session.schedule(program, &optimized)?.to_string())
                }
                (Some(text), _) => Some(text),
                (None, Some(saturated)) => {
                    let env = program.elaborate(&optimized.sizes)?.env;
                    let target = (&optimized.device, &optimized.model.model);
                    of_graph(*what, saturated, &env, target)?
                }
                // An answer from the tuning store has no e-graph.
                (None, None) => {
                    let graph = session.graph(program, request)?;
                    let target = (&optimized.device, &optimized.model.model);
                    of_graph(*what, &graph.saturated, &graph.program.env, target)?
                }
            };
            emitted(*what, text, out)?;
        }
    }
    out.event("result", report::result(&optimized, args.top))?;
    if optimized.interrupted {
        let text = "interrupted; this is the best so far";
        let d = Diagnostic::warning(Code::Interrupted, text).note(session.kept());
        out.diagnostics(&[d])?;
        return Err(Stop::Exit(Code::Interrupted.exit()));
    }
    Ok(())
}

/// Options with whether a value follows.
type Options<'a> = &'a [(&'a str, bool)];

/// Options of a report that the next command does not have. Sizes are written anew.
const OWN: Options<'_> =
    &[("--size", true), ("--top", true), ("--force", false), ("--verbose", false), ("-v", false)];

/// Options that decide by which rules a plan is found. A plan that is read under others gives a warning.
const OF_RULES: Options<'_> =
    &[("--float", true), ("--rules", true), ("--trust-rules", false), ("--trust-laws", false)];

/// Returns the words of this command, without its own name: those of some options, or all others.
fn words(options: Options<'_>, of_options: bool) -> Vec<String> {
    let mut all = std::env::args().skip(1);
    let mut words = vec![];
    while let Some(word) = all.next() {
        let known = options.iter().find(|(name, _)| {
            word.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        });
        let value = known.filter(|(name, value)| *value && word == *name).and_then(|_| all.next());
        if known.is_some() == of_options {
            words.extend([Some(word), value].into_iter().flatten().map(|word| quoted(&word)));
        }
    }
    words
}

/// Returns the command that a user would run next, with the options of this one: to use the kernels, or to see them.
fn next(args: &Args, program: &Program, optimized: &Optimized, plan: Option<&Output>) -> String {
    let file = &args.program;
    if let Some(plan) = plan {
        let (plan, folder) = (plan.name(), format!("{}-kernels", optimized.entry));
        let rules: String = words(OF_RULES, true).iter().map(|word| format!(" {word}")).collect();
        return format!("patsat emit {file} --plan {plan} -o {folder}{rules}");
    }
    let mut kept = words(OWN, false);
    let measured = optimized.best.summary.is_some();
    if measured && let Some(verb) = kept.iter_mut().find(|word| *word == "optimize") {
        *verb = "run".into();
    }
    kept.extend(optimized.sizes.iter().map(|(name, n)| format!("--size {name}={n}")));
    if measured {
        let open = program.without_data(&args.data.names());
        kept.extend(open.iter().map(|name| format!("--gen {name}=normal")));
    } else {
        kept.push("--emit kernel".into());
    }
    format!("patsat {}", kept.join(" "))
}

/// Returns a word as a shell reads it: in quotes if it has characters that mean something to a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_=./:,+%@#~^".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Returns the fields of the JSON line `start`.
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

impl Emit {
    /// Returns whether the result is available before extraction.
    fn is_of_graph(self) -> bool {
        matches!(self, Emit::Egraph | Emit::Dot | Emit::Stats)
    }
}

/// Prints the result of a stage, if there is one.
fn emitted(what: Emit, text: Option<String>, out: &mut Out) -> Done {
    let Some(text) = text else { return Ok(()) };
    out.event("emit", json!({"what": format!("{what:?}").to_lowercase(), "text": text}))?;
    out.text(&text)
}

/// Returns the result of a stage that needs no e-graph, else `None`.
fn of_result(what: Emit, o: &Optimized) -> Result<Option<String>, Stop> {
    let plan = &o.best.variant.plan;
    Ok(Some(match what {
        Emit::Term => format!("{}\n{}\n", o.forms[0], o.best.variant.term),
        Emit::Kernel => plan.source.trim_end().to_owned() + "\n",
        Emit::Host => pretty(&json!({
            "options": plan.options, "buffers": plan.buffers, "scalars": plan.scalars,
            "launches": plan.launches,
        }))?,
        Emit::Stats => {
            let c = &o.counts;
            stats(&o.report, [c.terms, c.skeletons, c.generated], &c.dropped)?
        }
        Emit::Egraph | Emit::Dot | Emit::Schedule => return Ok(None),
    }))
}

/// Returns the result of a stage from the e-graph; `None` for stages after extraction.
fn of_graph(
    what: Emit,
    saturated: &Saturated,
    env: &SizeEnv,
    (device, model): (&DeviceInfo, &CostModel),
) -> Result<Option<String>, Stop> {
    Ok(Some(match what {
        Emit::Egraph => {
            let shown = Shown::new(saturated, &Focus { leaves: true, ..Focus::default() });
            let costs = extract::node_costs(saturated, env, device, model);
            pretty(&export::json(&shown, &costs))?
        }
        Emit::Dot => export::dot(&Shown::new(saturated, &Focus::default())),
        Emit::Term | Emit::Schedule | Emit::Kernel | Emit::Host | Emit::Stats => return Ok(None),
    }))
}

/// How saturation went, and what extraction made of the graph.
fn stats(
    report: &Report,
    [terms, skeletons, candidates]: [usize; 3],
    dropped: &Told,
) -> Result<String, Stop> {
    let mut all = json!(report);
    all["extraction"] = json!({
        "terms": terms, "skeletons": skeletons, "candidates": candidates, "dropped": dropped,
    });
    pretty(&all)
}

/// As [`stats`], when there is no result: terms are drawn once more, to see what became of them.
fn stats_of_nothing(
    graph: &Graph,
    (device, model): (&DeviceInfo, &CostModel),
    limits: &Limits,
) -> Result<String, Stop> {
    let drawn = extract::draw(&graph.saturated, &graph.program.env, device, model, limits)?;
    let counts = [drawn.terms, drawn.skeletons(), drawn.candidates.len()];
    stats(&graph.saturated.report, counts, &drawn.dropped.told())
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quoted("--size"), "--size");
        assert_eq!(quoted("programs/asum.pat:asum"), "programs/asum.pat:asum");
        assert_eq!(quoted("--gen=k=uniform:0..2*n"), "'--gen=k=uniform:0..2*n'");
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(quoted(""), "''");
    }
}
