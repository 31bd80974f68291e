//! `patsat rules stats`: shows what each rule does in programs.

use super::args::{FloatArg, program};
use super::interrupt;
use super::out::{Done, Out};
use super::progress::Progress;
use super::rules::SetArgs;
use super::size::size;
use crate::diag::Result;
use crate::rules::check::Check;
use crate::session::generate::Generator;
use crate::session::{
    Device, Program, Request, RuleUse, RuleUses, Session, check_own_rules, cost_model, rule_set,
};
use comfy_table::{CellAlignment, Table, presets};
use serde_json::json;
use std::cmp::Reverse;

/// The default value of a size parameter, large enough for every way to split it.
const SIZE: u64 = 4096;

/// The arguments of `patsat rules stats`.
#[derive(clap::Args)]
pub struct Args {
    /// The programs; `-` is the standard input.
    #[arg(required = true, value_name = "FILE[:ENTRY]")]
    files: Vec<String>,
    /// The value of a size parameter, in every program that has it [default: 4096].
    #[arg(long = "size", value_name = "NAME=N", value_parser = size)]
    sizes: Vec<(String, u64)>,
    /// How many of the best terms of each program are derived.
    #[arg(long, default_value_t = 10, value_name = "K")]
    best: usize,
    /// The order of the rules.
    #[arg(long, value_enum, default_value = "best", value_name = "BY")]
    sort: Sort,
    /// The device: `#k`, a part of its or its platform's name, or `none` (rank by the cost model alone) [default:
    /// none].
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// Use this cost model instead of the one for the device: a file, or the name of a shipped model.
    #[arg(long, value_name = "FILE|NAME")]
    cost_model: Option<String>,
    #[command(flatten)]
    rules: SetArgs,
    /// Use the rules of `--rules` without testing them first.
    #[arg(long)]
    trust_rules: bool,
    /// Trust that the operators of reductions obey the laws of their patterns, such as associativity, without testing
    /// them first.
    #[arg(long)]
    trust_laws: bool,
    /// Which changes to float arithmetic are allowed.
    #[arg(long, value_enum, default_value = "contract")]
    float: FloatArg,
}

/// The orders of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Sort {
    /// The rules that derive most of the best terms first.
    Best,
    /// The rules with the most matches first.
    Matches,
    /// The rules with the most new nodes first.
    Nodes,
    /// The rules that took longest first.
    Time,
}

pub fn main(args: &Args, out: &mut Out) -> Done {
    let session = session(args)?;
    let mut programs = vec![];
    for file in &args.files {
        let program = program(file, &session.rules)?;
        let request = request(&program, args);
        programs.push((program, request));
    }
    let interrupt = interrupt::listen()?;
    let mut progress = Progress::new(out, interrupt, "rules".to_owned());
    let uses = session.rule_uses(&programs, args.best, &mut progress);
    progress.finish();
    let mut uses = uses?;
    let time = |r: &RuleUse| r.stat.search_ms + r.stat.apply_ms;
    // The sort is stable: ties stay in the order of the set.
    match args.sort {
        Sort::Best => {
            uses.rules.sort_by_key(|r| Reverse((r.in_best.iter().sum::<usize>(), r.stat.matches)));
        }
        Sort::Matches => uses.rules.sort_by_key(|r| Reverse(r.stat.matches)),
        Sort::Nodes => uses.rules.sort_by_key(|r| Reverse(r.stat.new_nodes)),
        Sort::Time => uses.rules.sort_by(|a, b| time(b).total_cmp(&time(a))),
    }
    for r in &uses.rules {
        let programs = uses.programs.iter().zip(&r.in_best);
        let in_best: Vec<_> = programs
            .map(|(p, terms)| json!({"program": p.program, "entry": p.entry, "terms": terms}))
            .collect();
        out.event("rule", json!({"rule": r.rule, "stat": r.stat, "in_best": in_best}))?;
    }
    out.event("result", json!({"rules": session.rules.hash(), "programs": uses.programs}))?;
    out.line(&table(&uses))
}

/// Makes a session for saturation and the cost model. Nothing is measured.
fn session(args: &Args) -> Result<Session> {
    let float = args.float.into();
    let rules = rule_set(&args.rules.rules, float)?;
    if !args.trust_rules {
        check_own_rules(&rules, Check::default())?;
    }
    let device = match args.device.as_deref() {
        None | Some("none") => Device::None,
        Some(selector) => Device::Selected(Some(selector.to_owned())),
    };
    let cost_model = args.cost_model.as_deref().map(cost_model).transpose()?;
    let trust_laws = args.trust_laws;
    Ok(Session { rules, float, device, cost_model, trust_laws, ..Session::new()? })
}

/// Makes a request with the given sizes that the program has, and the default for the others.
fn request(program: &Program, args: &Args) -> Request {
    let given = |name: &String| args.sizes.iter().find(|(n, _)| n == name).map(|(_, v)| *v);
    let sizes = program.entry.sizes.iter().map(|n| (n.clone(), given(n).unwrap_or(SIZE)));
    Request { sizes: sizes.collect(), default: Some(Generator::Normal), ..Request::default() }
}

fn table(uses: &RuleUses) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let fixed = ["rule", "matches", "applied", "new nodes", "search ms", "apply ms"];
    let best = uses.programs.iter().map(|p| format!("{} (of {})", p.entry, p.best));
    table.set_header(fixed.into_iter().map(str::to_owned).chain(best));
    for r in &uses.rules {
        let s = &r.stat;
        let counts = [s.matches, s.applied, s.new_nodes].map(|n| n.to_string());
        let times = [s.search_ms, s.apply_ms].map(|ms| format!("{ms:.1}"));
        let parts = r.in_best.iter().map(|n| if *n == 0 { ".".to_owned() } else { n.to_string() });
        let row = std::iter::once(r.rule.clone()).chain(counts).chain(times).chain(parts);
        table.add_row(row);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.to_string()
}
