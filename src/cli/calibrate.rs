//! `patsat calibrate`: measures a device and writes its cost model.

use super::interrupt;
use super::out::{Done, Out};
use super::output::{ForceArg, Output, is_stdout};
use super::progress::Progress;
use crate::session::files::Kind;
use crate::session::{Device, Quantity, Session};
use crate::tune::worker::Worker;
use comfy_table::{Table, presets};
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;

/// The arguments of `patsat calibrate`.
#[derive(clap::Args)]
pub struct Args {
    /// The device: `#k`, or a part of its or its platform's name.
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// The output file for the cost model, for use with `--cost-model` [default: `-`, the standard output].
    #[arg(long, short, value_name = "FILE.toml")]
    output: Option<PathBuf>,
    #[command(flatten)]
    force: ForceArg,
    /// Take less time, for less accurate results.
    #[arg(long)]
    quick: bool,
}

pub fn main(args: &Args, out: &mut Out) -> Done {
    let output = args.output.as_ref().filter(|path| !is_stdout(path));
    let output = output.map(|path| Output::new(path, Kind::CostModel, &[], args.force.force, out));
    let output = output.transpose()?;
    let session = Session {
        device: Device::Selected(args.device.clone()),
        worker: Some(Arc::new(Worker::own_executable()?)),
        ..Session::new()?
    };
    let mut progress = Progress::new(out, interrupt::listen()?, "calibrate".into());
    let made = session.calibrate(args.quick, &mut progress);
    progress.finish();
    let made = made?;
    for q in &made.quantities {
        out.event("quantity", json!(q))?;
    }
    if let Some(output) = &output {
        output.write_text(out, &made.text)?;
        let name = output.name();
        out.line(&format!("{} in {:.0} s", made.device.label(), made.seconds))?;
        out.line(&table(&made.quantities).to_string())?;
        out.line(&format!("written to {name}; `--cost-model {name}` uses it"))?;
    } else {
        out.text(&made.text)?;
    }
    out.event(
        "result",
        json!({
            "device": made.device.label(), "driver": made.device.driver, "seconds": made.seconds,
            "output": output.as_ref().map(Output::name), "model": made.model,
        }),
    )
}

fn table(quantities: &[Quantity]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["quantity", "value", "unit", "spread"]);
    for q in quantities {
        let spread =
            q.spread.map_or_else(|| "not measured".into(), |s| format!("{:.1}%", 100.0 * s));
        table.add_row([q.key.clone(), q.value.to_string(), q.unit.to_owned(), spread]);
    }
    table
}
