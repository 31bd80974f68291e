//! The report about the tuning store.

use super::Place;
use std::fs;

#[test]
fn a_page_tells_all_that_is_stored() {
    let p = Place::new();
    let page = p.path("report.html");
    let report = format!("report -o {}", page.display());
    p.run(&report).ok();
    assert!(fs::read_to_string(&page).expect("a page").contains("Nothing is stored yet"));
    for program in ["scal", "asum"] {
        let args = "--size n=2048 --budget 3 --device portable";
        p.run(&format!("optimize programs/{program}.pat {args}")).ok();
    }
    let ran = p.run(&format!("--json {report}")).ok().last("result");
    assert_eq!((&ran["programs"], &ran["derivations"]), (&2.into(), &2.into()), "{ran}");
    let html = fs::read_to_string(&page).expect("a page");
    for text in
        ["scal n=2048", "asum n=2048", "The derivation, ", "kernel ", "entry asum", "Roofline"]
    {
        assert!(html.contains(text), "{text}");
    }
    // Two programs with three charts each, and the best marked in each.
    assert_eq!(html.matches("<svg ").count(), 6);
    assert_eq!(html.matches("class=\"best\"").count(), 6);
    assert!(!html.contains("http"));
    let ran = p.run(&format!("--json {report} asum --no-derivations")).ok().last("result");
    assert_eq!((&ran["programs"], &ran["derivations"]), (&1.into(), &0.into()), "{ran}");
    p.run("report").fails("--output", 2);
    p.run("report -o /no/such/folder/page.html").fails("E0901", 9);
}
