//! `patsat report`: writes a self-contained HTML page about everything in the tuning store, light or dark according to
//! the reader's system.

pub(super) mod chart;
mod subject;

use super::args::open_store;
use super::html::{STYLE, escaped};
use super::interrupt;
use super::out::{Done, Out, Stop};
use super::output::{ForceArg, Output};
use super::progress::{Progress, micros};
use super::report::{gb_per_s, sizes};
use super::store::known;
use crate::diag::{Code, Diagnostic};
use crate::session::Observer;
use crate::session::files::Kind;
use crate::session::survey::{Subject, Wanted, survey};
use serde_json::json;
use std::fmt::Write;
use std::path::PathBuf;

/// The arguments of `patsat report`.
#[derive(clap::Args)]
pub struct Args {
    /// The entries to include; all of them by default.
    #[arg(value_name = "ENTRY")]
    entries: Vec<String>,
    /// The output file for the page, or `-` for the standard output.
    #[arg(short, long, value_name = "FILE.html")]
    output: PathBuf,
    #[command(flatten)]
    force: ForceArg,
    /// The tuning store [default: $PATSAT_STORE, or in the user's data folder].
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
    /// The rules that the programs were optimised with, if not the default set; derivations need them.
    #[arg(long, value_name = "SPEC", allow_hyphen_values = true)]
    rules: Vec<PathBuf>,
    /// Leave out derivations, which take as long as rewriting every program again.
    #[arg(long, conflicts_with = "rules")]
    no_derivations: bool,
}

pub fn main(args: &Args, out: &mut Out) -> Done {
    let store = open_store(args.store.as_ref())?;
    known(&args.entries, &store.list()?, &store)?;
    let output = Output::new(&args.output, Kind::Page, &[], args.force.force, out)?;
    let wanted = Wanted {
        entries: args.entries.clone(),
        rules: args.rules.clone(),
        derivations: !args.no_derivations,
    };
    let interrupt = interrupt::listen()?;
    let mut progress = Progress::new(out, interrupt, "report".to_owned());
    let subjects = survey(&store, &wanted, &mut progress);
    progress.finish();
    let subjects = subjects?;
    output.write_text(out, &page(&subjects, &store.path().display().to_string()))?;
    let path = output.name();
    let derived = subjects.iter().filter(|s| s.derivation.is_ok()).count();
    out.event("result", json!({"file": path, "programs": subjects.len(), "derivations": derived}))?;
    out.line(&format!("{path}: {} programs and sizes, {derived} derivations", subjects.len()))?;
    if progress.stop() {
        let text = "interrupted; the page lacks some derivations";
        out.diagnostics(&[Diagnostic::warning(Code::Interrupted, text)])?;
        return Err(Stop::Exit(Code::Interrupted.exit()));
    }
    Ok(())
}

/// The part of the style sheet that only this page needs.
const MORE: &str = "\
:root { --mark: #1858b8; --best: #b3261e; --slow: #9aa4af; --grid: #e6e9ed; }
@media (prefers-color-scheme: dark) {
  :root { --mark: #79b0ff; --best: #ffb14e; --slow: #6b7580; --grid: #262b32; }
}
h2 { font-size: 1.25rem; margin: 2.5rem 0 .5rem; border-top: 1px solid var(--line); padding-top: 1rem; }
h3 { font-size: 1rem; margin: 1rem 0 .25rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; }
th, td { text-align: left; padding: .25rem .75rem .25rem 0; border-bottom: 1px solid var(--line); white-space: nowrap; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(18rem, 1fr)); gap: 1rem; margin: 1rem 0; }
figure { margin: 0; }
figcaption { color: var(--faint); font-size: .85rem; }
svg { width: 100%; height: auto; display: block; }
svg text { fill: var(--faint); font-size: 13px; font-family: system-ui, sans-serif; }
svg .label { fill: var(--text); }
svg .grid { stroke: var(--grid); }
svg .axis { stroke: var(--faint); fill: none; }
svg .guide { stroke: var(--faint); stroke-dasharray: 4 4; fill: none; }
svg .line, svg .roof { stroke: var(--text); stroke-width: 1.5; fill: none; }
svg .timed { fill: var(--mark); fill-opacity: .75; }
svg .slow { fill: var(--slow); fill-opacity: .75; }
svg .best { fill: var(--best); stroke: var(--page); }
.key { display: inline-block; width: .7em; height: .7em; border-radius: 50%; margin: 0 .3em 0 .8em; }
";

/// Renders the page.
fn page(subjects: &[Subject], store: &str) -> String {
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>patsat report</title>\n<style>\n{STYLE}{MORE}</style>\n</head>\n<body>\n<main>\n\
         <h1>What patsat has measured</h1>\n<p class=\"faint\">{}</p>\n",
        escaped(store)
    );
    if subjects.is_empty() {
        out.push_str("<p>Nothing is stored yet.</p>\n");
    } else {
        out.push_str(&overview(subjects));
        out.push_str(
            "<p class=\"faint\">In the charts:\
             <span class=\"key\" style=\"background: var(--best)\"></span>the best\
             <span class=\"key\" style=\"background: var(--mark)\"></span>timed\
             <span class=\"key\" style=\"background: var(--slow)\"></span>given up as slow. \
             Point at a dot for details.</p>\n",
        );
    }
    for (i, s) in subjects.iter().enumerate() {
        out.push_str(&subject::section(&format!("run-{}", i + 1), s));
    }
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

/// Returns the sizes of a subject, such as `n=16 m=4`.
fn size_list(s: &Subject) -> String {
    sizes(&s.sizes())
}

fn overview(subjects: &[Subject]) -> String {
    let mut out = "<div class=\"wide\">\n<table>\n<thead><tr><th>program</th><th>sizes</th>\
        <th>device</th><th>float</th><th class=\"number\">best</th><th class=\"number\">GB/s</th>\
        <th class=\"number\">predicted</th><th class=\"number\">candidates</th>\
        <th class=\"number\">failed</th></tr></thead>\n<tbody>\n"
        .to_owned();
    for (i, s) in subjects.iter().enumerate() {
        let us = s.best.as_ref().and_then(|b| b.median_us);
        let dash = || "-".to_owned();
        let rate = us.zip(s.about.as_ref()).map(|(us, a)| format!("{:.2}", gb_per_s(a.bytes, us)));
        let predicted = s.best.as_ref().and_then(|b| b.predicted_us);
        let failed: usize = s.failures().values().map(|(count, _)| count).sum();
        let _ = write!(
            out,
            "<tr><td><a href=\"#run-{}\">{}</a></td><td>{}</td><td>{}</td><td>{}</td>",
            i + 1,
            escaped(&s.key.entry),
            escaped(&size_list(s)),
            escaped(&s.key.device),
            escaped(&s.key.float),
        );
        for text in [
            us.map_or_else(dash, micros),
            rate.unwrap_or_else(dash),
            predicted.map_or_else(dash, micros),
            s.history.len().to_string(),
            failed.to_string(),
        ] {
            let _ = write!(out, "<td class=\"number\">{}</td>", escaped(&text));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table>\n</div>\n");
    out
}

#[cfg(test)]
mod tests;
