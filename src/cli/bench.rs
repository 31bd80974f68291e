//! `patsat bench`: times programs beside yardsticks of the device's bandwidth, hand-written kernels and other
//! programs.

mod suite;

use super::args::{DataArgs, SessionArgs, program, source};
use super::interrupt;
use super::out::{Done, Out, Stop};
use super::progress::{Progress, micros};
use super::report::{gflops, sizes};
use crate::device::DeviceInfo;
use crate::diag::{Code, Diagnostic};
use crate::session::generate::Generator;
use crate::session::{Bench, BenchRow, Program, Session, Sizes, peers};
use comfy_table::{Table, presets};
use serde_json::{Value, json};
use std::path::PathBuf;

/// The arguments of `patsat bench`.
#[derive(clap::Args)]
pub struct Args {
    /// The programs; `-` is the standard input.
    #[arg(required_unless_present = "suite", value_name = "FILE[:ENTRY]")]
    programs: Vec<String>,
    /// Time the programs of a list, and print a table in Markdown. Each line of the list has a program, as above, and
    /// values of its sizes, such as `programs/dot.pat n=4Mi`; `#` begins a comment.
    #[arg(long, value_name = "LIST", conflicts_with_all = ["programs", "peers", "peer_program"])]
    suite: Option<PathBuf>,
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    session: SessionArgs,
    /// Hand-written kernels to time beside the generated ones (see docs/architecture.md).
    #[arg(long, value_name = "FILE.cl")]
    peers: Vec<PathBuf>,
    /// Another program to time beside the generated kernels, controlled through its standard input (see
    /// docs/architecture.md).
    #[arg(long, value_name = "NAME=COMMAND", value_parser = named)]
    peer_program: Vec<(String, String)>,
}

fn named(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, command)) if !name.is_empty() && !command.is_empty() => {
            Ok((name.to_owned(), command.to_owned()))
        }
        _ => Err("needs NAME=COMMAND".into()),
    }
}

pub fn main(args: &Args, out: &mut Out) -> Done {
    if let Some(list) = &args.suite {
        return suite::main(list, args, out);
    }
    let session = args.session.session()?;
    let sources = args.peers.iter().map(|p| source(p)).collect::<Result<Vec<_>, _>>()?;
    let interrupt = interrupt::listen()?;
    for (i, file) in args.programs.iter().enumerate() {
        let program = program(file, &session.rules)?;
        let data = match args.programs.len() {
            1 => args.data.clone(),
            _ => shared(&args.data, &program),
        };
        let request = data.request(&program, Some(Generator::Normal))?;
        let mut progress = Progress::new(out, interrupt.clone(), program.entry.name.clone());
        let find = |program: &Program, sizes: &Sizes, device: &DeviceInfo| {
            let mut all = vec![];
            for s in &sources {
                all.extend(peers(s, program, sizes, device.compute_units)?);
            }
            Ok(all)
        };
        let bench = session.bench(&program, &request, find, &args.peer_program, &mut progress);
        progress.finish();
        let bench = bench?;
        if i > 0 {
            out.line("")?;
        }
        report(&bench, out)?;
        out.event("result", result(&bench))?;
        if bench.interrupted {
            return interrupted(&session, out);
        }
    }
    Ok(())
}

/// Programs share sizes and parameters by name: returns those that a program has.
fn shared(data: &DataArgs, program: &Program) -> DataArgs {
    let mut data = data.clone();
    data.sizes.retain(|(name, _)| program.entry.sizes.contains(name));
    let has = |name: &String| program.entry.params.iter().any(|p| p.name == *name);
    data.args.retain(|(name, _)| has(name));
    data.gens.retain(|(name, _)| has(name));
    data.inputs.retain(|(name, _)| has(name));
    data
}

fn interrupted(session: &Session, out: &mut Out) -> Done {
    let text = "interrupted; these figures are of fewer runs";
    let d = Diagnostic::warning(Code::Interrupted, text).note(session.kept());
    out.diagnostics(&[d])?;
    Err(Stop::Exit(Code::Interrupted.exit()))
}

fn report(b: &Bench, out: &mut Out) -> Done {
    out.line(&format!("{} {} on {}", b.entry, sizes(&b.sizes), b.device.label()))?;
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["kernel", "median", "spread", "GB/s", "of copy", "of read", "patsat is"]);
    let limit = |row: &Option<BenchRow>| row.as_ref().and_then(|r| r.gb_per_s);
    let (copy, read) = (limit(&b.copy), limit(&b.read));
    let own = b.own.outcome.as_ref().ok().map(|s| s.median_us);
    let share = |row: &BenchRow, limit: Option<f64>| {
        row.gb_per_s.zip(limit).map_or_else(String::new, |(a, b)| format!("{:.1}%", 100.0 * a / b))
    };
    let mut rows = vec![(&b.own, false)];
    rows.extend(b.peers.iter().map(|p| (p, true)));
    rows.extend(b.copy.iter().chain(&b.read).map(|y| (y, false)));
    let mut failed = vec![];
    for (row, compare) in rows {
        match &row.outcome {
            Ok(s) => table.add_row([
                row.name.clone(),
                micros(s.median_us),
                micros(s.spread_us),
                row.gb_per_s.map_or_else(String::new, |g| format!("{g:.2}")),
                share(row, copy),
                share(row, read),
                own.filter(|_| compare)
                    .map_or_else(String::new, |own| format!("{:.2}x as fast", s.median_us / own)),
            ]),
            Err(why) => {
                failed.push(format!("{} did not run: {why}", row.name));
                continue;
            }
        };
    }
    out.line(&table.to_string())?;
    for line in failed {
        out.line(&line)?;
    }
    if let Some(checked) = &b.checked {
        out.line(&format!("checked: {checked}"))?;
    }
    Ok(())
}

fn row(r: &BenchRow) -> Value {
    let s = r.outcome.as_ref().ok();
    json!({
        "name": r.name, "median_us": s.map(|s| s.median_us), "spread_us": s.map(|s| s.spread_us),
        "runs": s.map(|s| s.runs), "gbytes_per_s": r.gb_per_s, "failure": r.outcome.as_ref().err(),
    })
}

fn result(b: &Bench) -> Value {
    let s = b.own.outcome.as_ref().ok();
    let share = |limit: &Option<BenchRow>| {
        let limit = limit.as_ref()?.gb_per_s?;
        Some(b.own.gb_per_s? / limit)
    };
    json!({
        "program": b.file, "entry": b.entry, "sizes": b.sizes, "device": b.device.label(),
        "driver": b.device.driver, "bytes": b.work.bytes, "flops": b.work.flops,
        "median_us": s.map(|s| s.median_us), "spread_us": s.map(|s| s.spread_us),
        "gbytes_per_s": b.own.gb_per_s, "gflops": s.map(|s| gflops(b.work.flops, s.median_us)),
        "copy": b.copy.as_ref().map(row), "read": b.read.as_ref().map(row),
        "share_of_copy": share(&b.copy), "share_of_read": share(&b.read),
        "peers": b.peers.iter().map(row).collect::<Vec<_>>(),
        "term": b.variant.term.to_string(), "tunables": b.variant.tunables(),
        "kernels": b.variant.plan.source, "checked": b.checked,
    })
}
