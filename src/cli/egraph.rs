//! `patsat egraph`: shows a program's saturated e-graph, or a part of it.

use super::args::program;
use super::out::{Done, Out};
use super::output::{ForceArg, Output, is_stdout};
use super::size::size;
use crate::diag::{Code, Diagnostic, Result, Source};
use crate::extract;
use crate::saturate::export::{self, Focus, Shown};
use crate::saturate::{ClassId, lookup, lookup_anywhere};
use crate::session::files::Kind;
use crate::session::{Float, Graph, Request, Session, rule_set};
use serde_json::json;
use std::path::PathBuf;

/// The default number of e-nodes in a picture.
const READABLE: usize = 150;

/// The arguments of `patsat egraph`.
#[derive(clap::Args)]
pub struct Args {
    /// The program; `-` is the standard input.
    #[arg(value_name = "FILE[:ENTRY]")]
    program: String,
    /// The value of a size parameter.
    #[arg(long = "size", value_name = "NAME=N", value_parser = size)]
    sizes: Vec<(String, u64)>,
    /// Rules, separated by commas: a file, or a shipped theme or rule, is added; a folder of `*.rules` files or a
    /// shipped set replaces the default set; `-NAME` leaves out a set, theme or rule.
    #[arg(long, value_name = "SPEC", allow_hyphen_values = true)]
    rules: Vec<PathBuf>,
    /// The output format.
    #[arg(long, value_enum, default_value = "dot")]
    format: Format,
    /// The output file [default: `-`, the standard output].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    force: ForceArg,
    /// The largest number of e-nodes shown, those nearest to the program's class first [default: 150; all with
    /// `json`].
    #[arg(long, value_name = "N")]
    max_nodes: Option<usize>,
    /// Show the part of the e-graph that is reachable from this class instead of the program's class.
    #[arg(long, value_name = "ID")]
    class: Option<usize>,
    /// Show the part that is reachable from the class of this term, such as `map abs . xs`; tile sizes are written as
    /// numbers or as printed.
    #[arg(long, value_name = "TERM", conflicts_with = "class")]
    around: Option<String>,
    /// Show sizes and types as nodes instead of in the labels (always so with `json`).
    #[arg(long)]
    leaves: bool,
}

/// The output formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// A graph for Graphviz.
    Dot,
    /// An SVG picture.
    Svg,
    /// JSON in the layout of the crate egraph-serialize.
    Json,
}

pub fn main(args: &Args, out: &mut Out) -> Done {
    let session = Session { rules: rule_set(&args.rules, Float::default())?, ..Session::new()? };
    let program = program(&args.program, &session.rules)?;
    let mut request = Request::default();
    request.sizes.extend(args.sizes.iter().cloned());
    let kind = match args.format {
        Format::Dot => Kind::Dot,
        Format::Svg => Kind::Picture,
        Format::Json => Kind::Graph,
    };
    let inputs = [PathBuf::from(&program.source.name)];
    let output = args.output.as_ref().filter(|path| !is_stdout(path));
    let output = output.map(|path| Output::new(path, kind, &inputs, args.force.force, out));
    let output = output.transpose()?;
    let graph = session.graph(&program, &request)?;
    out.diagnostics(&graph.warnings)?;
    let json = args.format == Format::Json;
    let class = match (&args.around, args.class) {
        (Some(term), _) => Some(around(term, &graph)?),
        (None, Some(id)) => Some(numbered(id, &graph)?),
        (None, None) => None,
    };
    let focus = Focus {
        class,
        max_nodes: args.max_nodes.or((!json).then_some(READABLE)),
        leaves: args.leaves || json,
    };
    let shown = Shown::new(&graph.saturated, &focus);
    let (device, choice) = session.target()?;
    let env = &graph.program.env;
    let costs = extract::node_costs(&graph.saturated, env, &device, &choice.model);
    let text = match args.format {
        Format::Dot => export::dot(&shown),
        Format::Svg => export::svg(&shown),
        Format::Json => {
            serde_json::to_string_pretty(&export::json(&shown, &costs)).map_err(|e| {
                Diagnostic::error(Code::Internal, format!("a value cannot be written: {e}"))
            })?
        }
    };
    if shown.is_cut() {
        let cut = Diagnostic::warning(Code::Cut, shown.note());
        out.diagnostics(&[cut.help("`--max-nodes N` shows more, `--class ID` another part")])?;
    }
    out.event(
        "egraph",
        json!({
            "program": program.source.name, "nodes": shown.nodes(), "classes": shown.classes(),
            "cut": shown.is_cut(), "note": shown.note(), "stop_reason": graph.saturated.report.stop_reason,
            "file": output.as_ref().map(Output::name),
        }),
    )?;
    match &output {
        Some(output) => {
            output.write_text(out, &text)?;
            out.line(&format!("{}: {}", output.name(), shown.note()))
        }
        None if out.is_json() => out.event("text", json!({"text": text})),
        None => out.text(&(text.trim_end().to_owned() + "\n")),
    }
}

/// Returns the class that holds a term.
fn around(term: &str, graph: &Graph) -> Result<ClassId> {
    let source = Source::new("<--around>", term);
    let sought = lookup::read(&source, &graph.program)?;
    match lookup_anywhere(&graph.saturated, &sought, &graph.program.env) {
        Some(found) => Ok(found.class),
        None => {
            Err(Diagnostic::error(Code::UnknownName, format!("no class holds `{term}`")).into())
        }
    }
}

/// Returns the class with this number, as shown in pictures.
fn numbered(id: usize, graph: &Graph) -> Result<ClassId> {
    graph.saturated.class(id).ok_or_else(|| {
        Diagnostic::error(Code::UnknownName, format!("there is no class {id}"))
            .help("classes have the numbers that `patsat egraph` shows without `--class`")
            .into()
    })
}
