use super::*;
use crate::calculus::text::{Context, parse_type, read_term};
use crate::diag::{Limits, Source};
use crate::rules::RuleSet;
use crate::saturate::saturate;

fn graph() -> Saturated {
    let ty = Source::new("type", "[n]f32");
    let inputs = [("xs".to_owned(), parse_type(&ty, 0..6).expect("a type"))].into();
    let context = Context { inputs, variables: None };
    let term = Source::new("term", "reduce (+) 0.0 . map abs . xs");
    let term = read_term(&term, &Ty::Unit, &context).expect("a term");
    let rules = RuleSet::shipped().expect("shipped rules");
    let limits = Limits { saturation_time: None, ..Limits::default() };
    saturate(&[term], &rules, &limits).expect("sound rules")
}

/// Reads the JSON with the crate that defines the layout, which checks every node and class.
fn read(shown: &Shown) -> egraph_serialize::EGraph {
    let cost = |_, node: &Node| if node.function().is_some() { 1.0 } else { 0.0 };
    let text = json(shown, &cost).to_string();
    let read: egraph_serialize::EGraph = serde_json::from_str(&text).expect("its layout");
    read.test_round_trip();
    for node in read.nodes.values() {
        for child in &node.children {
            assert!(read.nodes.contains_key(child), "{child}");
        }
    }
    for root in &read.root_eclasses {
        assert!(read.classes().contains_key(root));
    }
    read
}

#[test]
fn json_is_what_egraph_serialize_reads() {
    let graph = graph();
    let all = Shown::new(&graph, &Focus { leaves: true, ..Focus::default() });
    let read_all = read(&all);
    assert_eq!(read_all.nodes.len(), all.nodes());
    assert_eq!(read_all.classes().len(), all.classes());
    assert!(all.note().starts_with("all "), "{}", all.note());
    let root: egraph_serialize::ClassId = graph.root.to_string().into();
    let data = &read_all.class_data[&root];
    assert_eq!(data.typ.as_deref(), Some("() -> f32"));
    assert!(read_all.nodes.values().any(|n| n.op == "n.t0" && *n.cost == 0.0));
    assert!(read_all.nodes.values().any(|n| n.op == "split" && *n.cost == 1.0));
    // The picture has everything that the root reaches, and nothing else.
    assert!(all.nodes() <= graph.report.nodes);
    let folded = Shown::new(&graph, &Focus::default());
    assert!(read(&folded).nodes.values().any(|n| n.op == "split n.t0"));
}

#[test]
fn a_cut_says_so_and_stays_connected() {
    let graph = graph();
    let all = Shown::new(&graph, &Focus::default());
    for most in [1, 7, 40] {
        let focus = Focus { max_nodes: Some(most), ..Focus::default() };
        let shown = Shown::new(&graph, &focus);
        assert_eq!(shown.nodes(), most);
        let note = format!(
            "{most} of {} e-nodes shown ({} of {} classes), besides sizes and types",
            all.nodes(),
            shown.classes(),
            all.classes()
        );
        assert_eq!(shown.note(), note);
        assert!(dot(&shown).contains(&note) && svg(&shown).contains(&note));
        let cut = read(&shown);
        assert_eq!(cut.nodes.values().filter(|n| !n.subsumed).count(), most);
        // The root reaches every node that is shown.
        let mut reached: Vec<_> = cut.root_eclasses.clone();
        let mut at = 0;
        while at < reached.len() {
            for node in &cut.classes()[&reached[at]].nodes {
                for child in &cut[node].children {
                    let class = cut.nid_to_cid(child).clone();
                    if !reached.contains(&class) {
                        reached.push(class);
                    }
                }
            }
            at += 1;
        }
        assert_eq!(reached.len(), cut.classes().len());
    }
    let enough = Shown::new(&graph, &Focus { max_nodes: Some(all.nodes()), ..Focus::default() });
    assert!(!enough.is_cut());
}

#[test]
fn pictures_are_well_formed() {
    let graph = graph();
    for leaves in [false, true] {
        let shown = Shown::new(&graph, &Focus { leaves, max_nodes: Some(60), ..Focus::default() });
        let text = dot(&shown);
        let (mut depth, mut quoted, mut escaped) = (0, false, false);
        for c in text.chars() {
            match c {
                _ if escaped => escaped = false,
                '\\' if quoted => escaped = true,
                '"' => quoted = !quoted,
                '{' if !quoted => depth += 1,
                '}' if !quoted => depth -= 1,
                _ => {}
            }
            assert!(depth >= 0);
        }
        assert!(depth == 0 && !quoted);
        // Both ends of every edge are nodes.
        for line in text.lines().filter(|l| l.contains(" -> n")) {
            for end in line.split_whitespace().filter(|w| w.starts_with('n')) {
                assert!(text.contains(&format!(" {end} [label=")), "{line}");
            }
        }
        let picture = svg(&shown);
        let count = |what: &str| picture.matches(what).count();
        assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
        assert_eq!(count("<g "), count("</g>"));
        assert_eq!(count("<text "), count("</text>"));
        assert_eq!(count("<g "), shown.classes.len());
        // Tags and escapes only.
        assert!(
            picture
                .split('&')
                .skip(1)
                .all(|s| ["lt;", "gt;", "amp;"].iter().any(|e| s.starts_with(e)))
        );
    }
}

#[test]
fn another_class_can_be_the_middle() {
    let graph = graph();
    let part = graph.egraph[graph.root].nodes.iter().find_map(|n| n.args().last().copied());
    let focus = Focus { class: part, ..Focus::default() };
    let shown = Shown::new(&graph, &focus);
    assert!(shown.nodes() < Shown::new(&graph, &Focus::default()).nodes());
    assert_eq!(
        json(&shown, &|_, _| 1.0)["root_eclasses"][0],
        part.map(|p| p.to_string()).unwrap_or_default()
    );
}
