//! `patsat rules compare`: compares two sets of rules on programs.

use crate::cli::args::{DataArgs, SessionArgs, program};
use crate::cli::interrupt;
use crate::cli::out::{Done, Out};
use crate::cli::progress::{Progress, micros};
use crate::session::generate::Generator;
use crate::session::rule_set;
use comfy_table::{Table, presets};
use serde_json::json;

/// The arguments of `patsat rules compare`.
#[derive(clap::Args)]
pub struct Args {
    /// The first set of rules, as for `--rules`.
    #[arg(value_name = "SET_A", allow_hyphen_values = true)]
    a: String,
    /// The second set of rules.
    #[arg(value_name = "SET_B", allow_hyphen_values = true)]
    b: String,
    /// The programs; `-` is the standard input.
    #[arg(value_name = "FILE[:ENTRY]", required = true)]
    programs: Vec<String>,
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    session: SessionArgs,
}

pub fn main(args: &Args, out: &mut Out) -> Done {
    let session = args.session.session()?;
    let float = session.float;
    let sets = [&args.a, &args.b]
        .map(|spec| Ok::<_, crate::cli::out::Stop>((spec, rule_set(&[spec], float)?)));
    let interrupt = interrupt::listen()?;
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header([
        "program",
        "rules",
        "nodes",
        "classes",
        "iterations",
        "stopped",
        "ms",
        "candidates",
        "skeletons",
        "predicted",
        "measured",
    ]);
    for set in sets {
        let (spec, rules) = set?;
        out.event("rules", json!({"rules": spec, "count": rules.len(), "hash": rules.hash()}))?;
        for file in &args.programs {
            let program = program(file, &rules)?;
            let request = args.data.request(&program, Some(Generator::Normal))?;
            let mut progress = Progress::new(out, interrupt.clone(), program.entry.name.clone());
            let outcome = session.outcome(&rules, &program, &request, &mut progress);
            progress.finish();
            let o = match outcome {
                Ok(o) => o,
                Err(failure) if interrupt.requested() => return Err(failure.into()),
                // A program without kernels under a set is a result, not an error.
                Err(failure) => {
                    let report = session.figures(&rules, &program, &request)?;
                    let why = failure.0.first().map_or_else(String::new, |d| d.message.clone());
                    out.event(
                        "outcome",
                        json!({
                            "program": file, "rules": spec, "report": report, "failure": why,
                        }),
                    )?;
                    table.add_row(row(file, spec, &report, ["0", "0", "none", "none"]));
                    continue;
                }
            };
            interrupt.check("while comparing rules")?;
            out.event("outcome", json!({"program": file, "rules": spec, "outcome": o}))?;
            table.add_row(row(
                file,
                spec,
                &o.report,
                [
                    &o.candidates.to_string(),
                    &o.skeletons.to_string(),
                    &micros(o.predicted_us),
                    &o.measured_us.map_or_else(|| "not measured".to_owned(), micros),
                ],
            ));
        }
    }
    out.line(&table.to_string())
}

fn row(file: &str, spec: &str, r: &crate::saturate::Report, rest: [&str; 4]) -> Vec<String> {
    let mut out = vec![
        file.to_owned(),
        spec.to_owned(),
        r.nodes.to_string(),
        r.classes.to_string(),
        r.iterations.len().to_string(),
        r.stop_reason.to_string(),
        format!("{:.0}", r.ms),
    ];
    out.extend(rest.map(str::to_owned));
    out
}
