//! `patsat calibrate`

use super::interrupt;
use super::out::{Done, Out};
use super::progress::Progress;
use crate::diag::{Code, Diagnostic};
use crate::session::{Device, Quantity, Session};
use crate::tune::worker::Worker;
use comfy_table::{Table, presets};
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;

/// What to measure, and where the model goes.
#[derive(clap::Args)]
pub struct Args {
    /// The device: `#k`, or a part of its or its platform's name.
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// Where the cost model is written, for `--cost-model`; printed when not given.
    #[arg(long, short, value_name = "FILE.toml")]
    output: Option<PathBuf>,
    /// Measure with less care.
    #[arg(long)]
    quick: bool,
}

pub fn main(args: &Args, out: &mut Out) -> Done {
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
    if let Some(path) = &args.output {
        let name = path.display();
        std::fs::write(path, &made.text).map_err(|e| {
            Diagnostic::error(Code::Io, format!("the cost model {name} cannot be written: {e}"))
        })?;
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
            "output": args.output, "model": made.model,
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
