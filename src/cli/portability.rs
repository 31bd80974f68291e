//! `patsat portability`: tunes programs for each device and runs every kernel on every device.

use super::args::{DataArgs, SessionArgs, program};
use super::interrupt;
use super::out::{Done, Out, Stop};
use super::progress::{Progress, micros};
use super::report::sizes;
use crate::device::{DeviceInfo, select};
use crate::diag::{Code, Diagnostic};
use crate::session::generate::Generator;
use crate::session::{Cell, Portability};
use comfy_table::{Table, presets};
use serde_json::{Value, json};

/// The arguments of `patsat portability`.
#[derive(clap::Args)]
pub struct Args {
    /// The programs; `-` is the standard input.
    #[arg(required = true, value_name = "FILE[:ENTRY]")]
    programs: Vec<String>,
    /// The devices to tune for and run on, each as for `--device`, separated by commas [default: all except
    /// simulators].
    #[arg(long, value_delimiter = ',', value_name = "DEVICE,...")]
    devices: Vec<String>,
    /// The devices on which kernels are run and checked, but neither tuned nor timed [default: simulators (Oclgrind)].
    #[arg(long, value_delimiter = ',', value_name = "DEVICE,...")]
    checked: Vec<String>,
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    session: SessionArgs,
}

pub fn main(args: &Args, out: &mut Out) -> Done {
    if args.session.has("--device") {
        let text = "`--device` names one device; this is about several";
        return Err(Diagnostic::error(Code::Usage, text).help("name them with `--devices`").into());
    }
    let session = args.session.session()?;
    if session.budget == 0 {
        return Err(
            Diagnostic::error(Code::Usage, "kernels are not tuned with `--budget 0`").into()
        );
    }
    let all = session.devices()?;
    let (tuned, checked) =
        (chosen(&all, &args.devices, false)?, chosen(&all, &args.checked, true)?);
    let interrupt = interrupt::listen()?;
    // Sums of the logarithms of shares over all programs, by kernel and device.
    let mut logs = vec![vec![Some(0.0_f64); tuned.len()]; tuned.len()];
    for file in &args.programs {
        let program = program(file, &session.rules)?;
        let mut data = args.data.clone();
        if args.programs.len() > 1 {
            data.sizes.retain(|(name, _)| program.entry.sizes.contains(name));
        }
        let request = data.request(&program, Some(Generator::Normal))?;
        let mut progress = Progress::new(out, interrupt.clone(), program.entry.name.clone());
        let matrix = session.portability(&program, &request, &tuned, &checked, &mut progress);
        progress.finish();
        let matrix = matrix?;
        for (k, row) in logs.iter_mut().enumerate() {
            for (on, sum) in row.iter_mut().enumerate() {
                *sum = sum.zip(matrix.share(k, on)).map(|(sum, share)| sum + share.ln());
            }
        }
        out.line(&format!("{} {}", matrix.entry, sizes(&matrix.sizes)))?;
        out.line(&table(&matrix).to_string())?;
        for (d, cells) in &matrix.ran {
            for ((for_device, _), cell) in matrix.tuned.iter().zip(cells) {
                if let Cell::Failed(f) = cell {
                    let first = f.log.lines().next().unwrap_or_default();
                    let text = format!(
                        "  on {}, the kernel for {}: {}: {first}",
                        d.label(),
                        for_device.label(),
                        f.class
                    );
                    out.line(&text)?;
                }
            }
        }
        out.line("")?;
        out.event("result", result(&matrix))?;
        if matrix.interrupted {
            let text = "interrupted; some kernels were not tuned to the end or not timed";
            let d = Diagnostic::warning(Code::Interrupted, text).note(session.kept());
            out.diagnostics(&[d])?;
            return Err(Stop::Exit(Code::Interrupted.exit()));
        }
    }
    if args.programs.len() > 1 {
        let n = args.programs.len() as f64;
        out.line("geometric mean of the shares")?;
        let mut table = heading(&tuned);
        for (k, d) in tuned.iter().enumerate() {
            let cells =
                logs[k].iter().map(|sum| sum.map_or("-".into(), |s| percent((s / n).exp())));
            table.add_row([d.name.clone()].into_iter().chain(cells));
        }
        out.line(&table.to_string())?;
        let means: Vec<Vec<Option<f64>>> =
            logs.iter().map(|row| row.iter().map(|s| s.map(|s| (s / n).exp())).collect()).collect();
        let names: Vec<String> = tuned.iter().map(DeviceInfo::label).collect();
        out.event("mean", json!({"devices": names, "shares": means}))?;
    }
    Ok(())
}

/// Returns the devices that the selectors name. Without selectors, returns all simulators, or all other devices.
fn chosen(
    all: &[DeviceInfo],
    selectors: &[String],
    simulators: bool,
) -> Result<Vec<DeviceInfo>, Stop> {
    if selectors.is_empty() {
        let simulated = |d: &&DeviceInfo| d.is_simulator() == simulators;
        return Ok(all.iter().filter(simulated).cloned().collect());
    }
    let mut out: Vec<DeviceInfo> = vec![];
    for s in selectors {
        let d = select(all, Some(s))?;
        if !out.iter().any(|o| o.index == d.index) {
            out.push(d.clone());
        }
    }
    Ok(out)
}

fn percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

fn heading<'a>(devices: impl IntoIterator<Item = &'a DeviceInfo>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let names = devices.into_iter().map(|d| format!("on {}", d.name));
    table.set_header(["tuned for".to_owned()].into_iter().chain(names));
    table
}

/// Makes a table with a row for each kernel and a column for each device. A cell has the kernel's share of the speed
/// of the best kernel on that device, and its time.
fn table(m: &Portability) -> Table {
    let mut table = heading(m.ran.iter().map(|(d, _)| d));
    for (k, (d, _)) in m.tuned.iter().enumerate() {
        let cells = m.ran.iter().enumerate().map(|(on, (_, cells))| match cells.get(k) {
            Some(Cell::Timed(s)) => {
                let share = m.share(k, on).map_or_else(String::new, percent);
                format!("{share} ({})", micros(s.median_us))
            }
            Some(Cell::Right) => "right".to_owned(),
            Some(Cell::Failed(f)) => f.class.to_string(),
            None => "-".to_owned(),
        });
        table.add_row([d.name.clone()].into_iter().chain(cells));
    }
    table
}

fn result(m: &Portability) -> Value {
    let tuned: Vec<Value> = m
        .tuned
        .iter()
        .map(|(d, v)| {
            json!({"device": d.label(), "term": v.term.to_string(), "tunables": v.tunables()})
        })
        .collect();
    let ran: Vec<Value> = m
        .ran
        .iter()
        .enumerate()
        .map(|(on, (d, cells))| {
            let cells: Vec<Value> = cells
                .iter()
                .enumerate()
                .map(|(k, c)| match c {
                    Cell::Timed(s) => json!({
                        "outcome": "timed", "median_us": s.median_us, "spread_us": s.spread_us,
                        "share": m.share(k, on),
                    }),
                    Cell::Right => json!({"outcome": "right"}),
                    Cell::Failed(f) => json!({"outcome": f.class.name(), "log": f.log}),
                })
                .collect();
            json!({"device": d.label(), "kernels": cells})
        })
        .collect();
    json!({
        "entry": m.entry, "sizes": m.sizes, "tuned": tuned, "ran": ran, "interrupted": m.interrupted,
    })
}
