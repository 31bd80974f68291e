//! Devices are measured, and the model's predictions are compared with measurements.

use super::Place;
use patsat::device::cost_model::CostModel;
use std::fs;
use std::path::Path;

#[test]
fn a_device_is_measured_and_its_model_used() {
    let p = Place::new();
    let file = p.path("mine.toml");
    let name = file.display();
    let ran = p.run(&format!("--json calibrate --quick --device portable -o {name}")).ok();
    // The file loads, which includes that every quantity is finite and no rate is zero.
    let model = CostModel::load(&file).expect("a cost model");
    let m = &model.memory;
    assert_eq!(model.name, "pocl");
    assert!(m.cache.windows(2).all(|c| c[0].bytes < c[1].bytes && c[0].gb_per_s >= c[1].gb_per_s));
    assert!(model.compute.scalar_efficiency <= 1.0 && model.compute.simd_width >= 1);
    assert_eq!(model.local.banks, 1, "local memory is ordinary memory on a CPU");
    let measured = model.calibrated.as_ref().expect("it says what was measured");
    assert!(measured.device.contains("cpu") || !measured.device.is_empty());
    assert_eq!(measured.date.split('-').map(str::len).collect::<Vec<_>>(), [4, 2, 2]);
    // Above every number are its unit and how it was measured.
    let text = fs::read_to_string(&file).expect("the file");
    assert!(text.starts_with("# ") && text.contains("`patsat calibrate` on 20"));
    let lines: Vec<&str> = text.lines().collect();
    for (i, line) in lines.iter().enumerate() {
        let number = line.split_once(" = ").is_some_and(|(_, v)| v.parse::<f64>().is_ok());
        if number && !line.starts_with('#') && !line.starts_with("schema_version") {
            assert!(lines[i - 1].starts_with('#'), "nothing is said of {line}");
        }
    }
    for unit in ["# GB/s: ", "# ns: ", "# us: ", "# 10^9 operations/s: ", "# lanes: "] {
        assert!(text.contains(unit), "no {unit}");
    }
    // What cannot be measured is kept.
    let shipped = CostModel::shipped().expect("the shipped models");
    let base = shipped.into_iter().find(|m| m.name == "pocl").expect("the model");
    assert!(model.search.is_some() && model.search == base.search && model.warps == base.warps);
    // The same as JSON lines.
    let result = ran.last("result");
    assert_eq!(result["model"]["memory"]["read_gb_per_s"].as_f64(), Some(m.read_gb_per_s));
    let quantities: Vec<_> = ran.json().into_iter().filter(|l| l["type"] == "quantity").collect();
    assert!(quantities.len() > 30, "{}", quantities.len());
    for q in &quantities {
        let value = q["value"].as_f64().expect("a value");
        assert!(value.is_finite() && value >= 0.0 && q["how"].is_string(), "{q}");
    }
    // The model can be used.
    let args = "--json optimize programs/asum.pat --device none --size n=100000 --cost-model";
    let used = p.run(&format!("{args} {name}")).ok().last("result");
    assert_eq!(used["cost_model"], "pocl");
}

#[test]
fn devices_that_cannot_be_measured_are_told_of() {
    let p = Place::new();
    p.run("calibrate --device #99").fails("E0602", 5);
    p.run("calibrate --device nonsense -o x.toml").fails("E0602", 5);
    assert!(!Path::new("x.toml").exists());
}

#[test]
fn predictions_are_held_against_measurements() {
    let p = Place::new();
    p.run("model check").fails("E0806", 8);
    p.run("optimize programs/scal.pat --size n=1000 --budget 4 --device portable").ok();
    let ran = p.run("model check").ok();
    assert!(ran.stdout().contains("rank correlation"), "{}", ran.stdout());
    assert!(ran.stdout().contains("scal") && ran.stdout().contains("n=1000"));
    let ran = p.run("--json model check --device portable --program scal").ok();
    let row = ran.last("model");
    assert_eq!(row["candidates"], 4);
    let number = |name: &str| row[name].as_f64().unwrap_or_else(|| panic!("no {name} in {row}"));
    assert!(number("regret") >= 1.0 && number("median_ratio") > 0.0);
    assert!(row["rank_correlation"].as_f64().is_none_or(|r| r.abs() <= 1.0));
    assert_eq!(ran.last("device")["programs"], 1);
    let none = p.run("model check --program dot").fails("E0806", 8);
    assert!(none.stderr().contains("of the requested results"), "{}", none.stderr());
}

#[test]
fn predictions_are_made_again() {
    let p = Place::new();
    p.run("optimize programs/scal.pat --size n=1000 --budget 4 --device portable").ok();
    let ran = |more: &str| p.run(&format!("--json model check {more}")).ok();
    let check = |more: &str| ran(more).last("model");
    // Nothing has changed since, so the predictions are the same.
    let stored = check("");
    assert_eq!(stored["candidates"], 4);
    assert_eq!(check("--repredict"), stored);
    // With another model, the predictions differ. For kernels that are generated differently now, there are none.
    let by_gpu = check("--repredict --cost-model generic-gpu");
    assert!(by_gpu["candidates"] == 4 && by_gpu["median_ratio"] != stored["median_ratio"]);
    let raw = rusqlite::Connection::open(p.path("store.sqlite")).expect("the store");
    let change = |what: &str| {
        let best = "(SELECT id FROM candidates ORDER BY median_us LIMIT 1)";
        raw.execute_batch(&format!("UPDATE candidates SET {what} WHERE id = {best}"))
            .expect("changed");
    };
    change("plan = 'another'");
    assert_eq!(check("")["candidates"], 4);
    let fewer = ran("--repredict");
    assert_eq!(fewer.last("model")["candidates"], 3);
    let left_out = fewer.last("left_out");
    assert_eq!((&left_out["candidates"], &left_out["program"]), (&1.into(), &"scal".into()));
    assert_eq!(left_out["reason"], "other kernels are generated for it now");
    change("term = 'nonsense'");
    let said = p.run("model check --repredict --worst 2").ok().stdout();
    assert!(said.contains("left out: 1 of scal n=1000 on "), "{said}");
    assert!(said.contains("this version of patsat does not accept its term"), "{said}");
    assert_eq!(said.matches(" us predicted, ").count(), 2, "{said}");
    assert_eq!(ran("--worst 3").json().iter().filter(|l| l["type"] == "candidate").count(), 3);
    // The store describes the device, which need not be present.
    let gone = "NO SUCH DEVICE (NOWHERE)";
    raw.execute_batch(&format!("UPDATE runs SET device = '{gone}'")).expect("changed");
    assert_eq!(ran("--repredict").last("model")["device"], gone);
    raw.execute_batch("DELETE FROM answers").expect("changed");
    let unknown = p.run("model check --repredict").fails("E0806", 8).stderr();
    assert!(unknown.contains("neither described in the store nor present"), "{unknown}");
    // A cost model is only accepted with new predictions.
    p.run("model check --cost-model pocl").fails("--repredict", 2);
}
