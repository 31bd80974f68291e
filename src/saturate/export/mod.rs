//! Export of the e-graph for people and tools, as [JSON](json()), [dot](dot()) or [SVG](svg()).
//!
//! [`Shown`] selects the part to export: everything that a class reaches, nearest classes first, up to a
//! number of nodes. The selection stays connected, classes beyond the cut are marked, and [`Shown::note`]
//! says how much is shown.

mod dot;
mod json;
mod svg;
#[cfg(test)]
mod tests;

pub use dot::dot;
pub use json::json;
pub use svg::svg;

use super::analysis::Data;
use super::language::{Node, NodeOp};
use super::run::Saturated;
use crate::calculus::size::Size;
use crate::calculus::term::Op;
use crate::calculus::text::head;
use crate::calculus::ty::Ty;
use egg::Id;
use indexmap::IndexMap;
use std::collections::HashMap;

/// Selects the part of a graph to show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Focus {
    /// The class to start from; the program's if `None`.
    pub class: Option<Id>,
    /// Most e-nodes to show; all if `None`.
    pub max_nodes: Option<usize>,
    /// Whether sizes and types are nodes of their own, as in the graph, instead of parts of labels.
    pub leaves: bool,
}

/// A class with the nodes of it that are shown.
struct Class<'a> {
    id: Id,
    /// The distance from the start of the picture, in edges.
    depth: usize,
    nodes: Vec<&'a Node>,
    /// The number of nodes that the class has.
    of: usize,
}

/// The part of a graph that is shown.
pub struct Shown<'a> {
    graph: &'a Saturated,
    from: Id,
    leaves: bool,
    /// By id, in the order in which they are reached. Classes without nodes are beyond the cut.
    classes: IndexMap<Id, Class<'a>>,
    all_nodes: usize,
    all_classes: usize,
}

impl<'a> Shown<'a> {
    /// Selects the part of a graph that a focus asks for.
    pub fn new(graph: &'a Saturated, focus: &Focus) -> Shown<'a> {
        let from = graph.egraph.find(focus.class.unwrap_or(graph.root));
        let mut shown = Shown {
            graph,
            from,
            leaves: focus.leaves,
            classes: IndexMap::new(),
            all_nodes: 0,
            all_classes: 0,
        };
        shown.walk(usize::MAX, usize::MAX);
        (shown.all_nodes, shown.all_classes) = (shown.nodes(), shown.classes());
        if let Some(most) = focus.max_nodes.map(|most| most.max(1))
            && most < shown.all_nodes
        {
            // Show a few nodes of many classes rather than all nodes of one class, and raise the limit if
            // classes run out.
            let mut of_class = most.isqrt();
            shown.walk(most, of_class);
            while shown.nodes() < most {
                of_class *= 2;
                shown.walk(most, of_class);
            }
        }
        shown
    }

    /// Walks breadth-first until `most` nodes are shown, with at most `of_class` of each class.
    fn walk(&mut self, most: usize, of_class: usize) {
        let class = |id, depth| Class { id, depth, nodes: vec![], of: 0 };
        self.classes.clear();
        self.classes.insert(self.from, class(self.from, 0));
        let (mut at, mut left) = (0, most);
        while let Some((&id, here)) = self.classes.get_index(at) {
            let depth = here.depth;
            let mut nodes: Vec<&Node> = self.graph.egraph[id].nodes.iter().collect();
            let of = nodes.len();
            let room = left.min(of_class);
            if of > room {
                // One node of each label first.
                let mut seen: HashMap<String, usize> = HashMap::new();
                let mut counted: Vec<(usize, &Node)> = vec![];
                for node in nodes {
                    let count = seen.entry(self.label(node)).or_default();
                    *count += 1;
                    counted.push((*count, node));
                }
                counted.sort_by_key(|(count, _)| *count);
                nodes = counted.into_iter().map(|(_, node)| node).collect();
            }
            let taken: Vec<&Node> = nodes.into_iter().take(room).collect();
            left -= taken.len();
            for node in &taken {
                for child in self.children(node) {
                    self.classes.entry(child).or_insert_with(|| class(child, depth + 1));
                }
            }
            self.classes[at].nodes = taken;
            self.classes[at].of = of;
            at += 1;
        }
    }

    /// Returns the classes of a node's arguments; sizes and types only if they are shown as nodes.
    fn children(&self, node: &Node) -> Vec<Id> {
        let children = if self.leaves { &node.children[..] } else { node.args() };
        children.iter().map(|c| self.graph.egraph.find(*c)).collect()
    }

    /// Returns the number of e-nodes that are shown.
    pub fn nodes(&self) -> usize {
        self.classes.values().map(|c| c.nodes.len()).sum()
    }

    /// Returns the number of classes with nodes that are shown.
    pub fn classes(&self) -> usize {
        self.classes.values().filter(|c| !c.nodes.is_empty()).count()
    }

    /// Whether some reachable nodes are not shown.
    pub fn is_cut(&self) -> bool {
        self.nodes() < self.all_nodes
    }

    /// Returns a sentence that says how much of the reachable graph is shown.
    pub fn note(&self) -> String {
        let (nodes, classes) = (self.nodes(), self.classes());
        let what = if self.leaves { "" } else { ", besides sizes and types" };
        if self.is_cut() {
            let (n, l) = (self.all_nodes, self.all_classes);
            format!("{nodes} of {n} e-nodes shown ({classes} of {l} classes){what}")
        } else {
            format!("all {nodes} e-nodes in {classes} classes{what}")
        }
    }

    /// Returns the label of a node: its text in a term, without sizes and types if those are nodes.
    fn label(&self, node: &Node) -> String {
        match &node.op {
            // A composition alone says little: add an operator of its outer function.
            NodeOp::Fn(Op::Compose) if !self.leaves => {
                let first = &self.graph.egraph[node.children[0]].nodes;
                let plain = first.iter().find(|n| n.function() != Some(&Op::Compose));
                plain.map_or_else(|| ".".to_owned(), |n| format!("{} .", self.label(n)))
            }
            NodeOp::Fn(op) if !self.leaves => {
                let data = || node.children.iter().map(|c| &self.graph.egraph[*c].data);
                let sizes: Vec<Size> = data().filter_map(|d| d.size().cloned()).collect();
                let tys: Vec<Ty> = data().filter_map(|d| d.ty().cloned()).collect();
                head(op, &sizes, &tys)
            }
            NodeOp::Fn(_) | NodeOp::Size(_) | NodeOp::Ty(_) => node.to_string(),
        }
    }

    /// Returns the type of a class as text.
    fn ty(&self, class: Id) -> String {
        match &self.graph.egraph[class].data {
            Data::Fn(t, _) => t.to_string(),
            Data::Size(_) => "size".to_owned(),
            Data::Ty(_) => "type".to_owned(),
            Data::Broken => "ill-typed".to_owned(),
        }
    }

    /// Returns the first line of a class's box.
    fn title(&self, class: &Class) -> String {
        let mark = if class.id == self.graph.egraph.find(self.graph.root) { "root " } else { "" };
        let part = match class.nodes.len() {
            shown if shown < class.of => format!(" ({shown} of {})", class.of),
            _ => String::new(),
        };
        format!("{mark}{}{part} : {}", class.id, self.ty(class.id))
    }
}
