//! Export to dot, the language of Graphviz.

use super::Shown;
use std::fmt::Write;

/// Returns the graph with every class as a box around its nodes, and an edge from each node to the classes of
/// its arguments.
pub fn dot(shown: &Shown) -> String {
    let mut out = String::from("digraph egraph {\n  compound=true\n  rankdir=LR\n");
    let mut edges = String::new();
    // Writing to a `String` cannot fail.
    let _ = writeln!(out, "  label={}\n  labelloc=t\n  node [shape=box]", quoted(&shown.note()));
    for class in shown.classes.values() {
        let id = class.id;
        if class.nodes.is_empty() {
            let text = quoted(&format!("class {id} ..."));
            let _ = writeln!(out, "  n{id}_0 [label={text}, shape=plaintext]");
            continue;
        }
        let style = if id == shown.from { "bold" } else { "dotted" };
        let title = quoted(&shown.title(class));
        let _ = writeln!(out, "  subgraph cluster_{id} {{\n    style={style}\n    label={title}");
        for (k, node) in class.nodes.iter().enumerate() {
            let _ = writeln!(out, "    n{id}_{k} [label={}]", quoted(&shown.label(node)));
            let children = shown.children(node);
            for (i, to) in children.iter().enumerate() {
                let cut = shown.classes.get(to).is_none_or(|c| c.nodes.is_empty());
                // An edge cannot end at the box that it starts in.
                let head = match cut || *to == id {
                    true => String::new(),
                    false => format!("lhead=cluster_{to}"),
                };
                let number = match children.len() {
                    0 | 1 => String::new(),
                    _ => format!("taillabel={}", quoted(&(i + 1).to_string())),
                };
                let sep = if head.is_empty() || number.is_empty() { "" } else { ", " };
                let _ = writeln!(edges, "  n{id}_{k} -> n{to}_0 [{head}{sep}{number}]");
            }
        }
        out.push_str("  }\n");
    }
    out + &edges + "}\n"
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
