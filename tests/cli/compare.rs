//! `compare`: times in two plans or stores.

use super::Place;
use std::fs;

/// Writes a plan that was made without a device, and the same with another predicted time. Returns both paths.
fn plans(p: &Place, factor: f64) -> [String; 2] {
    let a = p.path("a.plan").display().to_string();
    p.run(&format!("optimize programs/scal.pat --size n=4096 --device none -o {a}")).ok();
    let text = fs::read_to_string(&a).expect("a plan");
    let line = text.lines().find(|l| l.starts_with("predicted_us")).expect("a time");
    let us: f64 = line.rsplit(' ').next().and_then(|n| n.parse().ok()).expect("a number");
    let b = p.file("b.plan", text.replace(line, &format!("predicted_us = {:?}", us * factor)));
    [a, b]
}

#[test]
fn plans_are_compared() {
    let p = Place::new();
    let [a, b] = plans(&p, 1.25);
    let said = p.run(&format!("compare {a} {b}")).ok().stdout();
    let row = said.lines().find(|l| l.contains("scal")).expect("a row");
    assert!(row.contains("n=4096") && row.trim_end().ends_with("1.250 predicted"), "{said}");
    let json = p.run(&format!("--json compare {a} {b} --fail-if-slower 30%")).ok();
    assert_eq!(json.last("pair")["slower"], false);
    let json = p.run(&format!("--json compare {a} {b} --fail-if-slower 20%"));
    assert_eq!(json.0.status.code(), Some(1));
    assert_eq!(json.last("pair")["ratio"].as_f64().map(|r| (r * 1e3).round()), Some(1250.0));
    assert_eq!(
        (&json.last("result")["slower"], &json.last("diagnostic")["code"]),
        (&1.into(), &"E0909".into())
    );
    let said = p.run(&format!("compare {a} {b} --fail-if-slower 7%")).fails("E0909", 1).stderr();
    assert!(said.contains("b.plan are more than 7% slower") && said.contains(": 1 of 1"), "{said}");
    // What has become faster never fails.
    p.run(&format!("compare {b} {a} --fail-if-slower 0%")).ok();
}

#[test]
fn stores_are_compared() {
    let p = Place::new();
    let [store, export, plan] =
        ["store.sqlite", "store.json", "a.plan"].map(|f| p.path(f).display().to_string());
    p.run(&format!(
        "optimize programs/scal.pat --size n=1000 --device portable --budget 1 -o {plan}"
    ))
    .ok();
    p.run(&format!("store export -o {export}")).ok();
    for other in [&export, &plan] {
        let ran = p.run(&format!("--json compare {store} {other} --fail-if-slower 1000%")).ok();
        let pair = ran.last("pair");
        assert_eq!((&pair["entry"], &pair["predicted"]), (&"scal".into(), &false.into()));
        assert!(pair["a"]["spread_us"].is_number() && pair["ratio"].is_number(), "{pair}");
    }
}

#[test]
fn files_without_common_kernels_are_told() {
    let p = Place::new();
    let [a, _] = plans(&p, 1.0);
    let c = p.path("c.plan").display().to_string();
    p.run(&format!("optimize programs/scal.pat --size n=64 --device none -o {c}")).ok();
    let said = p.run(&format!("compare {a} {c}")).fails("E0903", 2).stderr();
    assert!(said.contains("scal n=4096 on") && said.contains("scal n=64 on"), "{said}");
    let said = p.run(&format!("compare {a} programs/asum.pat")).fails("E0903", 2).stderr();
    assert!(said.contains("programs/asum.pat is neither a plan nor a tuning store"), "{said}");
    p.run(&format!("compare {a} /none")).fails("E0901", 9);
    let said = p.run(&format!("compare {a} {c} --fail-if-slower 5"));
    assert_eq!(said.0.status.code(), Some(2));
    assert!(said.stderr().contains("`5` is not a share such as `5%`"), "{}", said.stderr());
}
