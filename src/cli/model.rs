//! `patsat model`: compares predicted with measured times.

use super::args::open_store;
use super::out::{Done, Out};
use crate::diag::{Code, Diagnostic};
use crate::session::{
    Compared, LeftOut, ModelCheck, Predictions, Selection, check_model, cost_model,
};
use crate::tune::statistics::median;
use comfy_table::{Table, presets};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The subcommands of `patsat model`.
#[derive(clap::Subcommand)]
pub enum Verb {
    /// Compare predicted with measured times, over all stored results.
    Check {
        /// The tuning store [default: $PATSAT_STORE, or in the user's data folder].
        #[arg(long, value_name = "FILE")]
        store: Option<PathBuf>,
        /// Only results of devices with this in their or their platform's name.
        #[arg(long, value_name = "DEVICE")]
        device: Option<String>,
        /// Only results of this entry.
        #[arg(long, value_name = "ENTRY")]
        program: Option<String>,
        /// Predict every candidate again with the present model, instead of using the stored predictions. The device
        /// need not be present.
        #[arg(long)]
        repredict: bool,
        /// Use this cost model instead of the one for the device: a file, or the name of a shipped model.
        #[arg(long, value_name = "FILE|NAME", requires = "repredict")]
        cost_model: Option<String>,
        /// Also list the N candidates of each program whose predictions deviate most.
        #[arg(long, value_name = "N", default_value_t = 0)]
        worst: usize,
    },
}

pub fn main(verb: &Verb, out: &mut Out) -> Done {
    let Verb::Check { store, device, program, repredict, cost_model: model, worst } = verb;
    let store = open_store(store.as_ref())?;
    let wanted = Selection { device: device.clone(), program: program.clone() };
    let predictions = match repredict {
        true => Predictions::Anew(model.as_deref().map(cost_model).transpose()?.map(Box::new)),
        false => Predictions::Stored,
    };
    let report = check_model(&store, &wanted, &predictions)?;
    for l in &report.left_out {
        out.event("left_out", json!(l))?;
    }
    let checks = report.checks;
    if checks.is_empty() {
        let path = store.path().display();
        let what = match wanted == Selection::default() {
            true => "nothing",
            false => "none of the requested results",
        };
        let message = format!("{what} was both predicted and measured");
        let d = Diagnostic::error(Code::NothingStored, message)
            .note(format!("the tuning store is {path}"))
            .help("`patsat optimize FILE` measures candidates and keeps them there");
        return Err(report.left_out.iter().fold(d, |d, l| d.note(left_out(l))).into());
    }
    for c in &checks {
        out.event("model", json!(c))?;
        for candidate in c.compared.iter().take(*worst) {
            let mut fields = json!(candidate);
            fields["program"] = json!(c.program);
            fields["sizes"] = json!(c.sizes);
            fields["device"] = json!(c.device);
            out.event("candidate", fields)?;
        }
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
                sizes(&c.sizes),
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
        for c in of_device.iter().filter(|_| *worst > 0) {
            out.line(&format!("\n{} {}: the most out of order", c.program, sizes(&c.sizes)))?;
            for candidate in c.compared.iter().take(*worst) {
                out.line(&listed(candidate))?;
            }
        }
    }
    for l in &report.left_out {
        out.line(&left_out(l))?;
    }
    Ok(())
}

/// Returns two lines about a candidate.
fn listed(c: &Compared) -> String {
    format!(
        "  {:.1} us predicted, {:.1} us measured: {}; {}\n    {}",
        c.predicted_us,
        c.measured_us,
        sizes(&c.tunables),
        c.bound,
        c.term
    )
}

fn left_out(l: &LeftOut) -> String {
    let LeftOut { device, program, reason, candidates, .. } = l;
    format!("left out: {candidates} of {program} {} on {device}: {reason}", sizes(&l.sizes))
}

/// Returns values as text, such as `n=16 n.t0=4`.
fn sizes(values: &BTreeMap<String, u64>) -> String {
    values.iter().map(|(n, v)| format!("{n}={v}")).collect::<Vec<_>>().join(" ")
}

/// Returns the median rank correlation, the median regret and the worst regret.
fn summary(checks: &[ModelCheck]) -> (Option<f64>, Option<f64>, f64) {
    let correlations: Vec<f64> = checks.iter().filter_map(|c| c.rank_correlation).collect();
    let regrets: Vec<f64> = checks.iter().map(|c| c.regret).collect();
    (median(&correlations), median(&regrets), regrets.iter().copied().fold(1.0, f64::max))
}
