//! `patsat search`: compares search strategies.

use super::args::{DataArgs, SessionArgs, program};
use super::interrupt;
use super::out::{Done, Out, Stop};
use super::output::{ForceArg, Output};
use super::page::chart::{Axis, Chart};
use super::progress::{Progress, micros};
use super::report::sizes;
use crate::diag::{Code, Diagnostic};
use crate::session::files::Kind;
use crate::session::generate::Generator;
use crate::session::{Strategies, Strategy, Trial, Tried};
use comfy_table::{Table, presets};
use serde_json::json;
use std::fmt::Write;
use std::path::PathBuf;

/// The subcommands of `patsat search`.
#[derive(clap::Subcommand)]
pub enum Verb {
    /// Compare search strategies: the best time so far against the number of candidates measured.
    Compare(Box<Args>),
}

/// Options of a session that a comparison ignores.
const UNREAD: [&str; 4] = ["--strategy", "--anew", "--store", "--no-store"];

/// The arguments of `patsat search compare`.
#[derive(clap::Args)]
#[command(mut_args(|a| {
    let hidden = a.get_long().is_some_and(|name| UNREAD.iter().any(|u| u[2..] == *name));
    a.hide(hidden)
}))]
pub struct Args {
    /// The program; `-` is the standard input.
    #[arg(value_name = "FILE[:ENTRY]")]
    program: String,
    /// The strategies, separated by commas; `NAME=N` measures N candidates instead of `--budget`.
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME[=N],...",
        value_parser = named,
        default_value = "model,default,random,mcts"
    )]
    strategies: Vec<(Strategy, Option<usize>)>,
    /// How many times random strategies run, each time with another seed.
    #[arg(long, default_value_t = 1, value_name = "K")]
    seeds: u64,
    /// Also draw the curves in this file, as SVG.
    #[arg(short, long, value_name = "FILE.svg")]
    output: Option<PathBuf>,
    #[command(flatten)]
    force: ForceArg,
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    session: SessionArgs,
}

fn named(text: &str) -> Result<(Strategy, Option<usize>), String> {
    let (name, budget) = match text.split_once('=') {
        Some((name, n)) => {
            let n = n.parse().ok().filter(|n| *n > 0);
            (name, Some(n.ok_or_else(|| format!("`{text}` wants a number of candidates"))?))
        }
        None => (text, None),
    };
    let strategy = Strategy::from_name(name).ok_or_else(|| {
        let names: Vec<_> = Strategy::ALL.iter().map(|s| s.name()).collect();
        format!("there is no strategy `{name}`; there are {}", names.join(", "))
    })?;
    Ok((strategy, budget))
}

pub fn main(verb: &Verb, out: &mut Out) -> Done {
    let Verb::Compare(args) = verb;
    args.session
        .refuse(&UNREAD, "`--strategies` names the strategies, and nothing is kept in a store")?;
    let session = args.session.session()?;
    let program = program(&args.program, &session.rules)?;
    let request = args.data.request(&program, Some(Generator::Normal))?;
    if session.budget == 0 {
        return Err(Diagnostic::error(Code::Usage, "nothing is compared with `--budget 0`").into());
    }
    let inputs = [vec![PathBuf::from(&program.source.name)], args.data.files()].concat();
    let output = args.output.as_ref();
    let output =
        output.map(|path| Output::new(path, Kind::Picture, &inputs, args.force.force, out));
    let output = output.transpose()?;
    let mut trials = vec![];
    for (strategy, budget) in &args.strategies {
        let budget = match strategy {
            Strategy::Model => 1,
            _ => budget.unwrap_or(session.budget),
        };
        for k in 0..if strategy.is_random() { args.seeds.max(1) } else { 1 } {
            let seed = session.search_seed + k;
            trials.push(Trial { strategy: *strategy, budget, seed });
        }
    }
    let interrupt = interrupt::listen()?;
    let mut progress = Progress::new(out, interrupt, program.entry.name.clone());
    let compared = session.strategies(&program, &request, &trials, &mut progress);
    progress.finish();
    let compared = compared?;
    if let Some(output) = &output {
        output.write_text(out, &drawing(&compared))?;
    }
    report(&compared, out)?;
    out.event("result", result(&compared))?;
    if compared.interrupted {
        let text = "interrupted; these figures are of fewer candidates";
        let d = Diagnostic::warning(Code::Interrupted, text).note(session.kept());
        out.diagnostics(&[d])?;
        return Err(Stop::Exit(Code::Interrupted.exit()));
    }
    Ok(())
}

/// Returns the name of a search, with its seed if the strategy runs several times.
fn label(t: &Tried, all: &[Tried]) -> String {
    let name = t.trial.strategy.name();
    match all.iter().filter(|o| o.trial.strategy == t.trial.strategy).count() {
        1 => name.to_owned(),
        _ => format!("{name} {}", t.trial.seed),
    }
}

fn report(c: &Strategies, out: &mut Out) -> Done {
    out.line(&format!("{} {} on {}", c.entry, sizes(&c.sizes), c.device.label()))?;
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header([
        "strategy",
        "measured",
        "failed",
        "best",
        "of the best",
        "within 5% after",
        "10%",
    ]);
    for t in &c.tried {
        let after = |factor| t.within(factor, c.best_us).map_or("never".into(), |n| n.to_string());
        table.add_row([
            label(t, &c.tried),
            t.best_us.len().to_string(),
            t.failed.to_string(),
            micros(t.winner_us),
            format!("{:.2}", t.winner_us / c.best_us),
            after(1.05),
            after(1.10),
        ]);
    }
    out.line(&table.to_string())?;
    out.line(&format!(
        "{} of {} candidates measured; every time is from a measurement at the end of all kernels that were the best of a \
         search at some time, the fastest {}",
        c.measured,
        c.candidates,
        micros(c.best_us)
    ))?;
    if let Some(rho) = c.correlation {
        out.line(&format!("rank correlation of predicted and measured times: {rho:.2}"))?;
    }
    Ok(())
}

fn result(c: &Strategies) -> serde_json::Value {
    let tried: Vec<_> = c
        .tried
        .iter()
        .map(|t| {
            json!({
                "strategy": t.trial.strategy.name(), "seed": t.trial.seed, "budget": t.trial.budget,
                "measured": t.best_us.len(), "failed": t.failed,
                "best_us": t.winner_us, "spread_us": t.spread_us,
                "within_5_percent_after": t.within(1.05, c.best_us),
                "within_10_percent_after": t.within(1.10, c.best_us),
                "skeleton": t.winner.skeleton, "tunables": t.winner.tunables(),
                "best_so_far_us": t.best_us,
            })
        })
        .collect();
    json!({
        "entry": c.entry, "sizes": c.sizes, "device": c.device.label(),
        "candidates": c.candidates, "measured": c.measured, "best_us": c.best_us,
        "correlation": c.correlation, "strategies": tried, "interrupted": c.interrupted,
    })
}

/// Colours that most readers can distinguish, on light and on dark backgrounds (after Okabe and Ito).
const COLOURS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];

/// Draws the best time so far against the number of candidates measured, the usual picture of search efficiency in
/// papers.
fn drawing(c: &Strategies) -> String {
    let most = c.tried.iter().map(|t| t.best_us.len()).max().unwrap_or(1);
    let all = c.tried.iter().flat_map(|t| t.best_us.iter().flatten().copied());
    let mut chart =
        Chart::new(Axis::count("candidates measured", most), Axis::log("best so far", all, micros));
    let mut style = String::from(
        "text{font:11px sans-serif;fill:#444}.axis{fill:none;stroke:#888}.grid{stroke:#8884}\
         polyline{fill:none;stroke-width:1.6}@media(prefers-color-scheme:dark){text{fill:#ccc}}",
    );
    let mut key = String::new();
    for (i, t) in c.tried.iter().enumerate() {
        let place = Strategy::ALL.iter().position(|s| *s == t.trial.strategy).unwrap_or(i);
        let colour = COLOURS[place % COLOURS.len()];
        let class = format!("s{i}");
        // Writing into a string does not fail.
        let _ =
            write!(style, ".{class}{{stroke:{colour};fill:{colour}}}polyline.{class}{{fill:none}}");
        let known =
            t.best_us.iter().enumerate().filter_map(|(n, us)| Some((n as f64 + 1.0, (*us)?)));
        let mut points: Vec<(f64, f64)> = vec![];
        for (n, us) in known {
            // The curve has steps: the best time is constant until a better one is found.
            points.extend(points.last().map(|(_, before)| (n, *before)));
            points.push((n, us));
        }
        if let Some((n, us)) = points.last().copied() {
            chart.dot(&class, (n, us), &format!("{}: {}", label(t, &c.tried), micros(us)));
        }
        chart.line(&class, &points);
        let y = 24 + 15 * i;
        let _ = writeln!(
            key,
            "<text x=\"446\" y=\"{y}\" text-anchor=\"end\" style=\"fill:{colour}\">{}</text>",
            label(t, &c.tried)
        );
    }
    let says =
        format!("best so far against candidates measured, {} on {}", c.entry, c.device.label());
    let svg = chart.svg(&says);
    let head = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"920\" height=\"600\" ";
    let svg =
        svg.replacen("<svg ", head, 1).replacen(">\n", &format!(">\n<style>{style}</style>\n"), 1);
    svg.replacen("</svg>", &format!("{key}</svg>"), 1)
}
