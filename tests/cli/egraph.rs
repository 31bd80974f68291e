//! E-graphs as pictures and for other tools.

use super::Place;
use std::fs;

#[test]
fn every_format_is_written_and_a_cut_is_told() {
    let p = Place::new();
    let args = "egraph programs/asum.pat --size n=1024";
    let ran = p.run(&format!("{args} --max-nodes 20")).ok();
    assert!(ran.stdout().starts_with("digraph egraph {\n"), "{}", ran.stdout());
    let said = ran.stderr();
    assert!(said.contains("W0706") && said.contains("20 of "), "{said}");
    assert!(ran.stdout().contains(" e-nodes shown ("));
    let svg = p.path("a.svg");
    let ran = p.run(&format!("{args} --format svg -o {}", svg.display())).ok();
    assert!(ran.stdout().contains(" e-nodes shown ("), "{}", ran.stdout());
    let picture = fs::read_to_string(&svg).expect("the file is there");
    assert!(picture.starts_with("<svg ") && picture.contains("150 of "));
    let ran = p.run(&format!("{args} --format json")).ok();
    assert_eq!(ran.stderr(), "");
    let all: egraph_serialize::EGraph =
        serde_json::from_str(&ran.stdout()).expect("it prints JSON");
    assert!(all.nodes.len() > 150 && all.root_eclasses.len() == 1);
    // The same output as a stage of `optimize`.
    let emitted =
        p.run("optimize programs/asum.pat --size n=1024 --device none --emit egraph").ok();
    let emitted: egraph_serialize::EGraph =
        serde_json::from_str(&emitted.stdout()).expect("it prints JSON");
    assert_eq!(emitted, all);
}

#[test]
fn a_part_can_be_shown() {
    let p = Place::new();
    let mut command = p.command("egraph programs/asum.pat --size n=1024 --format json --around");
    let ran = super::Ran(command.arg("map abs . xs").output().expect("patsat starts")).ok();
    let part: egraph_serialize::EGraph =
        serde_json::from_str(&ran.stdout()).expect("it prints JSON");
    let root = &part.root_eclasses[0];
    assert_eq!(part.class_data[root].typ.as_deref(), Some("() -> [n]f32"));
    let args = "egraph programs/asum.pat --size n=1024 --format json --class";
    let same = p.run(&format!("{args} {root}")).ok();
    assert_eq!(same.stdout(), ran.stdout());
    p.run(&format!("{args} 999999999")).fails("E0201", 3);
    let mut command = p.command("egraph programs/asum.pat --size n=1024 --around");
    super::Ran(command.arg("map sqrt . xs").output().expect("patsat starts")).fails("E0201", 3);
    let mut command = p.command("egraph programs/asum.pat --size n=1024 --around");
    super::Ran(command.arg("map ( . xs").output().expect("patsat starts")).fails("E0102", 3);
    p.run("egraph programs/asum.pat").fails("E0308", 4);
    let png = p.run("egraph programs/asum.pat --size n=4 --format png");
    assert_eq!(png.0.status.code(), Some(2));
    p.run("egraph programs/asum.pat --size n=4 -o /no/such/folder/a.dot").fails("E0901", 9);
}
