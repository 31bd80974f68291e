//! The e-graph as text: JSON for tools, dot for pictures. Whole: nothing is left out silently.

use super::analysis::Data;
use super::run::Saturated;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Every class with its type and nodes, in order of their numbers.
pub fn json(graph: &Saturated) -> Value {
    let mut classes = BTreeMap::new();
    for class in graph.egraph.classes() {
        let ty = match &class.data {
            Data::Fn(t, _) => t.to_string(),
            Data::Size(_) => "size".to_owned(),
            Data::Ty(_) => "type".to_owned(),
            Data::Broken => "broken".to_owned(),
        };
        let nodes: Vec<Value> = class
            .nodes
            .iter()
            .map(|n| {
                let children = n.children.iter().map(|c| usize::from(graph.egraph.find(*c)));
                json!({"op": n.to_string(), "children": children.collect::<Vec<_>>()})
            })
            .collect();
        classes.insert(usize::from(class.id), json!({"type": ty, "nodes": nodes}));
    }
    let classes: serde_json::Map<String, Value> =
        classes.into_iter().map(|(id, c)| (id.to_string(), c)).collect();
    json!({"root": usize::from(graph.root), "classes": classes})
}

/// Every class of functions as a box, with an edge from each node's argument to the argument's class.
pub fn dot(graph: &Saturated) -> String {
    let mut out = String::from("digraph egraph {\n  compound=true\n  node [shape=box]\n");
    let mut edges = String::new();
    let mut classes: Vec<_> =
        graph.egraph.classes().filter(|c| c.data.function().is_some()).collect();
    classes.sort_by_key(|c| c.id);
    // Writing to a `String` cannot fail.
    for class in classes {
        let id = usize::from(class.id);
        let _ = writeln!(out, "  subgraph cluster_{id} {{\n    style=dotted");
        for (k, node) in class.nodes.iter().enumerate() {
            let label = node.to_string().replace('\\', "\\\\").replace('"', "\\\"");
            let _ = writeln!(out, "    n{id}_{k} [label=\"{label}\"]");
            for arg in node.args() {
                let to = usize::from(graph.egraph.find(*arg));
                let _ = writeln!(edges, "  n{id}_{k} -> n{to}_0 [lhead=cluster_{to}]");
            }
        }
        out.push_str("  }\n");
    }
    out.push_str(&edges);
    out.push_str("}\n");
    out
}
