//! `patsat model`

use super::args::open_store;
use super::out::{Done, Out};
use crate::diag::{Code, Diagnostic};
use crate::session::{ModelCheck, Selection, check_model};
use crate::tune::statistics::median;
use comfy_table::{Table, presets};
use serde_json::json;
use std::path::PathBuf;

/// What to do with the model that predicts times of kernels.
#[derive(clap::Subcommand)]
pub enum Verb {
    /// Compare what the model predicted with what was measured, over all stored results.
    Check {
        /// The tuning store [default: $PATSAT_STORE, or in the user's cache].
        #[arg(long, value_name = "FILE")]
        store: Option<PathBuf>,
        /// Only of devices with this in their or their platform's name.
        #[arg(long, value_name = "DEVICE")]
        device: Option<String>,
        /// Only of this entry.
        #[arg(long, value_name = "ENTRY")]
        program: Option<String>,
    },
}

pub fn main(verb: &Verb, out: &mut Out) -> Done {
    let Verb::Check { store, device, program } = verb;
    let store = open_store(store.as_ref())?;
    let wanted = Selection { device: device.clone(), program: program.clone() };
    let checks = check_model(&store, &wanted)?;
    if checks.is_empty() {
        let path = store.path().display();
        let what = if wanted == Selection::default() { "" } else { " of what was asked for" };
        let message = format!("nothing{what} was both predicted and measured");
        return Err(Diagnostic::error(Code::NothingStored, message)
            .note(format!("the tuning store is {path}"))
            .help("`patsat optimize FILE` measures candidates and keeps them there")
            .into());
    }
    for c in &checks {
        out.event("model", json!(c))?;
    }
    let correlation = |r: Option<f64>| r.map_or_else(|| "-".into(), |r| format!("{r:.2}"));
    for of_device in checks.chunk_by(|a, b| a.device == b.device) {
        let name = of_device.first().map_or("", |c| c.device.as_str());
        out.line(name)?;
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        let of = ["program", "sizes", "candidates", "rank correlation", "regret"];
        let ratios = ["predicted/measured", "at worst"];
        table.set_header(of.into_iter().chain(ratios));
        for c in of_device {
            table.add_row([
                c.program.clone(),
                sizes(c),
                c.candidates.to_string(),
                correlation(c.rank_correlation),
                format!("{:.2}", c.regret),
                format!("{:.2}", c.median_ratio),
                format!("{:.2}", c.worst_ratio),
            ]);
        }
        out.line(&table.to_string())?;
        let s = summary(of_device);
        out.event(
            "device",
            json!({
                "device": name, "programs": of_device.len(), "median_rank_correlation": s.0,
                "median_regret": s.1, "worst_regret": s.2,
            }),
        )?;
        out.line(&format!(
            "median rank correlation {}, median regret {:.2}, worst {:.2}",
            correlation(s.0),
            s.1.unwrap_or(1.0),
            s.2
        ))?;
    }
    Ok(())
}

fn sizes(c: &ModelCheck) -> String {
    c.sizes.iter().map(|(n, v)| format!("{n}={v}")).collect::<Vec<_>>().join(" ")
}

/// Median rank correlation, median regret and worst regret.
fn summary(checks: &[ModelCheck]) -> (Option<f64>, Option<f64>, f64) {
    let correlations: Vec<f64> = checks.iter().filter_map(|c| c.rank_correlation).collect();
    let regrets: Vec<f64> = checks.iter().map(|c| c.regret).collect();
    (median(&correlations), median(&regrets), regrets.iter().copied().fold(1.0, f64::max))
}
