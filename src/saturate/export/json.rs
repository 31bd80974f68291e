//! JSON in the layout of the `egraph-serialize` crate, which tools for e-graphs read.

use super::Shown;
use crate::saturate::language::Node;
use egg::Id;
use serde_json::{Map, Value, json};

/// Returns the graph in the layout of `egraph-serialize`: `nodes` by name (`CLASS.K`) with operator,
/// children, class and cost; `root_eclasses`; and the types in `class_data`. `cost` gives the cost of a node
/// of a class.
///
/// A child is the name of one node of its class. A class beyond the cut is a single node `...`, marked as
/// subsumed so that no tool extracts it.
pub fn json(shown: &Shown, cost: &dyn Fn(Id, &Node) -> f64) -> Value {
    let name = |class: Id| match shown.classes.get(&class) {
        Some(c) if !c.nodes.is_empty() => format!("{class}.0"),
        _ => format!("{class}.cut"),
    };
    let (mut nodes, mut data) = (Map::new(), Map::new());
    for class in shown.classes.values() {
        data.insert(class.id.to_string(), json!({"type": shown.ty(class.id)}));
        let id = class.id.to_string();
        for (k, node) in class.nodes.iter().enumerate() {
            let children: Vec<String> = shown.children(node).into_iter().map(name).collect();
            let value = json!({
                "op": shown.label(node), "children": children, "eclass": id, "cost": cost(class.id, node),
                "subsumed": false,
            });
            nodes.insert(format!("{id}.{k}"), value);
        }
        if class.nodes.is_empty() {
            let value = json!({
                "op": "...", "children": [], "eclass": id, "cost": 0.0, "subsumed": true,
            });
            nodes.insert(name(class.id), value);
        }
    }
    json!({"nodes": nodes, "root_eclasses": [shown.from.to_string()], "class_data": data})
}
