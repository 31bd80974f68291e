//! The command line: one file for each verb, and the only part of patsat that prints.
//!
//! Results go to the standard output, everything else to the standard error. With `--json`, the standard output holds
//! only JSON lines, each an object with `v` (the version of this layout) and `type`.

mod args;
mod bench;
mod calibrate;
mod check;
mod clean;
mod compare;
mod completions;
mod config;
mod devices;
mod egraph;
mod emit;
mod eval;
mod examples;
mod explain;
mod fmt;
mod folders;
mod fuzz;
mod generate;
mod html;
mod init;
mod interrupt;
mod lsp;
mod manual;
mod model;
mod optimize;
mod out;
mod output;
mod page;
mod portability;
mod progress;
mod render;
mod report;
mod rules;
mod run;
mod search;
mod size;
mod snapshot;
mod stats;
mod store;
mod value;
mod why_not;
mod worker;

use crate::diag::{Code, Diagnostic, Exit, Failure};
use crate::session::Optimized;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use config::Config;
use out::{Out, Stop};
use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::Mutex;

/// Compile functional pattern programs to fast OpenCL kernels, by equality saturation.
#[derive(Parser)]
#[command(name = "patsat", version, about, arg_required_else_help = true)]
struct Cli {
    /// Print JSON lines on the standard output, and no progress.
    #[arg(long, global = true)]
    json: bool,
    /// When to colour diagnostics.
    #[arg(long, global = true, value_enum, default_value = "auto", value_name = "WHEN")]
    color: Color,
    #[command(subcommand)]
    verb: Verb,
}

/// When to colour diagnostics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

#[derive(Subcommand)]
enum Verb {
    /// List the programs that patsat ships, or write one.
    Examples(examples::Args),
    /// Write a small program with comments, to start with.
    Init(init::Args),
    /// Check programs: syntax, names, types, sizes, and the laws of operators.
    Check(check::Args),
    /// Format programs: bring them into the standard form.
    Fmt(fmt::Args),
    /// Serve an editor: diagnostics, types, definitions and formatting, by the Language Server Protocol on the standard streams.
    Lsp(lsp::Args),
    /// Run a program in the reference interpreter; needs no device.
    Eval(eval::Args),
    /// Find the best kernels for a program.
    Optimize(optimize::Args),
    /// Show how the best term, or a given one, is derived from a program, why a rule did not apply, or what the code of
    /// an error means.
    Explain(explain::Args),
    /// Run a program on a device, with the best known kernels.
    Run(run::Args),
    /// Compare strategies of searching for the best kernel.
    #[command(subcommand)]
    Search(search::Verb),
    /// Write kernels for use elsewhere, with host programs in C and in Rust that run and check them without patsat.
    Emit(emit::Args),
    /// Compare the times of kernels in two plans or tuning stores.
    Compare(compare::Args),
    /// Tune programs for each device, and run every kernel on every device.
    Portability(Box<portability::Args>),
    /// Time programs beside the device's memory bandwidth and hand-written kernels.
    Bench(bench::Args),
    /// Measure a device, and write its cost model.
    Calibrate(calibrate::Args),
    /// Check the model that predicts the times of kernels.
    #[command(subcommand)]
    Model(model::Verb),
    /// Show a program's e-graph, as a picture or for tools.
    Egraph(egraph::Args),
    /// Generate an array from a seed, and write it to a file.
    Gen(generate::Args),
    /// List the OpenCL devices.
    Devices,
    /// List, show, test and compare the rewrite rules.
    #[command(subcommand)]
    Rules(rules::Verb),
    /// Check the expectations in the comments of programs, or update them.
    Snapshot(snapshot::Args),
    /// Inspect, clean, export and import the tuning store.
    #[command(subcommand)]
    Store(store::Verb),
    /// Write an HTML page about everything in the tuning store.
    Report(page::Args),
    /// Compile and run random programs, and compare the results with the interpreter's.
    Fuzz(Box<fuzz::Args>),
    /// Print a completion script for a shell.
    Completions(completions::Args),
    /// Write manual pages.
    Man(manual::Args),
    /// Build and run candidates for a parent process.
    #[command(hide = true)]
    Worker,
}

/// Returns the definition of the command line.
pub fn command() -> clap::Command {
    let exits = Exit::ALL.iter().map(|e| format!("; {} {}", *e as u8, e.meaning()));
    Cli::command().after_help(format!("Exit status: 0 done{}.", exits.collect::<String>()))
}

/// Returns a diagnostic as text, with the lines of the source that it refers to.
pub fn rendered(d: &Diagnostic) -> String {
    render::text(d, false)
}

/// Returns a diagnostic as JSON, as with `--json`.
pub fn described(d: &Diagnostic) -> serde_json::Value {
    render::json(d)
}

/// Returns the result of a search as JSON, as with `--json`.
pub fn result(optimized: &Optimized) -> serde_json::Value {
    report::result(optimized, 1)
}

/// Parses the command line and runs the command.
pub fn main() -> ExitCode {
    // The worker speaks a protocol on its standard streams, so nothing else may use them.
    if std::env::args_os().nth(1).is_some_and(|a| a == "worker") {
        return worker::main();
    }
    let config = Config::find();
    let defaults = config.as_ref().map_or_else(|_| command(), |config| config.apply(command()));
    let parsed = defaults.try_get_matches().and_then(|m| Cli::from_arg_matches(&m));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(e) => {
            let code = e.exit_code();
            // If this cannot be printed, the exit status still reports the error.
            let _ = e.print();
            return ExitCode::from(u8::try_from(code).unwrap_or(Exit::Usage as u8));
        }
    };
    let mut out = Out::new(cli.json, cli.color);
    if let Err(failure) = config {
        return ExitCode::from(finish(Err(failure.into()), &mut out));
    }
    let (hook, seen) = (panic::take_hook(), std::sync::Arc::new(Mutex::new(None)));
    let place = seen.clone();
    panic::set_hook(Box::new(move |info| {
        if let Ok(mut place) = place.lock() {
            *place = info.location().map(ToString::to_string);
        }
    }));
    let done = panic::catch_unwind(AssertUnwindSafe(|| dispatch(cli.verb, &mut out)));
    panic::set_hook(hook);
    let done = done.unwrap_or_else(|payload| {
        let place = seen.lock().ok().and_then(|p| p.clone());
        Err(Stop::Failure(panicked(payload.as_ref(), place)))
    });
    ExitCode::from(finish(done, &mut out))
}

/// Returns the exit status for the outcome of a command, and prints its failure.
fn finish(done: out::Done, out: &mut Out) -> u8 {
    match done.and_then(|()| out.flush()) {
        // A reader that closes the pipe does not want the rest.
        Ok(()) | Err(Stop::Closed) => 0,
        Err(Stop::Exit(exit)) => exit as u8,
        Err(Stop::Failure(failure)) => {
            // If this cannot be written, the exit status still reports the failure.
            let _ = out.failure(&failure).and_then(|()| out.flush());
            failure.exit() as u8
        }
    }
}

fn dispatch(verb: Verb, out: &mut Out) -> out::Done {
    match verb {
        Verb::Examples(args) => examples::main(&args, out),
        Verb::Init(args) => init::main(&args, out),
        Verb::Check(args) => check::main(&args, out),
        Verb::Fmt(args) => fmt::main(&args, out),
        Verb::Lsp(args) => lsp::main(&args, out),
        Verb::Eval(args) => eval::main(&args, out),
        Verb::Optimize(args) => optimize::main(&args, out),
        Verb::Explain(args) => explain::main(&args, out),
        Verb::Run(args) => run::main(&args, out),
        Verb::Search(verb) => search::main(&verb, out),
        Verb::Emit(args) => emit::main(&args, out),
        Verb::Compare(args) => compare::main(&args, out),
        Verb::Portability(args) => portability::main(&args, out),
        Verb::Bench(args) => bench::main(&args, out),
        Verb::Calibrate(args) => calibrate::main(&args, out),
        Verb::Model(verb) => model::main(&verb, out),
        Verb::Egraph(args) => egraph::main(&args, out),
        Verb::Gen(args) => generate::main(&args, out),
        Verb::Devices => devices::main(out),
        Verb::Rules(verb) => rules::main(&verb, out),
        Verb::Snapshot(args) => snapshot::main(&args, out),
        Verb::Store(verb) => store::main(&verb, out),
        Verb::Report(args) => page::main(&args, out),
        Verb::Fuzz(args) => fuzz::main(&args, out),
        Verb::Completions(args) => completions::main(&args, out),
        Verb::Man(args) => manual::main(&args, out),
        // `main` handles the worker before it parses the command line.
        Verb::Worker => Ok(()),
    }
}

/// Turns a panic into a failure.
fn panicked(payload: &(dyn Any + Send), place: Option<String>) -> Failure {
    let text = payload
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".into());
    let mut d = Diagnostic::error(Code::Internal, format!("a bug in patsat: {text}"));
    if let Some(place) = place {
        d = d.note(format!("at {place}"));
    }
    d.note(format!("version {}", env!("CARGO_PKG_VERSION")))
        .note(format!("command: {}", std::env::args().collect::<Vec<_>>().join(" ")))
        .help("please report this with the program that caused it")
        .into()
}
