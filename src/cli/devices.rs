//! `patsat devices`: lists the OpenCL devices and the cost model for each.

use super::out::{Done, Out};
use crate::device::cost_model::CostModel;
use crate::diag::Interrupt;
use crate::tune::worker::{self, Worker};
use comfy_table::{Table, presets};
use serde_json::json;

pub fn main(out: &mut Out) -> Done {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["", "device", "platform", "kind", "units", "memory", "driver", "cost model"]);
    let worker = Worker::own_executable()?;
    for d in worker::devices(worker(), &Interrupt::NEVER)? {
        let choice = CostModel::choose(&d)?;
        let model = choice.model.name.clone();
        let mut fields = json!(d);
        fields["cost_model"] = json!(model);
        fields["cost_model_fallback"] = json!(choice.fallback);
        out.event("device", fields)?;
        table.add_row([
            format!("#{}", d.index),
            d.name,
            d.platform,
            d.kind.to_string(),
            d.compute_units.to_string(),
            format!("{:.1} GiB", d.global_mem_bytes as f64 / f64::from(1 << 30)),
            d.driver,
            if choice.fallback { format!("{model} (fallback)") } else { model },
        ]);
    }
    out.line(&table.to_string())
}
