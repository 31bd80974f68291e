//! Which e-classes an iteration must search again.
//!
//! A match of a pattern depends on the nodes of the classes that the pattern's operators matched, and on the facts of
//! those and of the classes that its variables matched. If none of these has changed since the last iteration, the match
//! was found and applied then, and applying it again changes nothing. So a rule is searched only from classes that are
//! near enough above a change. (Datalog's semi-naive evaluation, for e-graphs: Zhang et al., PLDI 2023, section 4.3.
//! Here whole classes are searched again, and not only the new rows of a join.)

use super::EGraph;
use super::language::Node;
use crate::rules::Facts;
use egg::{ENodeOrVar, Id, Language, PatternAst};
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};

/// Number of edges from the root of a pattern to its deepest operator, and to its deepest variable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// To the deepest operator.
    pub operators: u8,
    /// To the deepest operator or variable.
    pub all: u8,
}

impl Depth {
    /// Returns the depth of a pattern.
    pub fn of(pattern: &PatternAst<Node>) -> Depth {
        let mut depths: Vec<(Option<u8>, u8)> = vec![];
        for part in pattern {
            depths.push(match part {
                ENodeOrVar::Var(_) => (None, 0),
                ENodeOrVar::ENode(n) => {
                    let below = n.children().iter().map(|c| depths[usize::from(*c)]);
                    let next = |d: u8| d.saturating_add(1);
                    below.fold((Some(0), 0), |(operators, all), (o, a)| {
                        (operators.max(o.map(next)), all.max(next(a)))
                    })
                }
            });
        }
        let (operators, all) = depths.last().copied().unwrap_or_default();
        Depth { operators: operators.unwrap_or(0), all }
    }
}

/// The state of a class at the last iteration.
#[derive(Clone, Copy, PartialEq, Eq)]
struct State {
    /// Hash of the kinds and children of its nodes. A class gains nodes, or their children are merged; both show.
    nodes: u64,
    facts: Facts,
}

/// Distances from each class down to the nearest change since the last iteration, in edges.
#[derive(Default)]
pub struct Changes {
    /// Of the class with each number at the last iteration.
    states: Vec<Option<State>>,
    /// To a class whose nodes changed.
    to_nodes: Vec<u8>,
    /// To a class whose facts changed.
    to_facts: Vec<u8>,
}

fn state(egraph: &EGraph, class: Id) -> State {
    let class = &egraph[class];
    let mut hasher = FxHasher::default();
    for n in &class.nodes {
        n.op.kind().hash(&mut hasher);
        n.children.hash(&mut hasher);
    }
    State { nodes: hasher.finish(), facts: class.data.facts() }
}

/// Returns the distance of each class to the nearest of `changed`, by breadth-first search through parents.
fn distances(egraph: &EGraph, len: usize, mut changed: Vec<Id>, deepest: u8) -> Vec<u8> {
    let mut out = vec![u8::MAX; len];
    for c in &changed {
        out[usize::from(*c)] = 0;
    }
    for distance in 1..=deepest {
        let mut next = vec![];
        for c in changed {
            for parent in egraph[c].parents().map(|p| egraph.find(p)) {
                let d = &mut out[usize::from(parent)];
                if *d == u8::MAX {
                    *d = distance;
                    next.push(parent);
                }
            }
        }
        changed = next;
    }
    out
}

impl Changes {
    /// Compares the graph with that of the last iteration, and returns the classes whose nodes changed. `deepest` is the
    /// depth of the deepest pattern.
    pub fn update(&mut self, egraph: &EGraph, deepest: u8) -> Vec<Id> {
        let (mut nodes, mut facts) = (vec![], vec![]);
        let len = egraph.classes().map(|c| usize::from(c.id) + 1).max().unwrap_or(0);
        let mut states = vec![None; len];
        for class in egraph.classes().map(|c| c.id) {
            let now = state(egraph, class);
            states[usize::from(class)] = Some(now);
            match self.states.get(usize::from(class)).copied().flatten() {
                // What refers to a new class is new, too.
                None => nodes.push(class),
                Some(before) => {
                    if before.nodes != now.nodes {
                        nodes.push(class);
                    }
                    if before.facts != now.facts {
                        facts.push(class);
                    }
                }
            }
        }
        self.states = states;
        self.to_nodes = distances(egraph, len, nodes.clone(), deepest);
        self.to_facts = distances(egraph, len, facts, deepest);
        nodes
    }

    /// Whether a pattern of this depth may have matches in a class that it did not have in the last iteration.
    pub fn concern(&self, class: Id, depth: Depth) -> bool {
        let near = |distances: &[u8], depth: u8| {
            distances.get(usize::from(class)).is_none_or(|d| *d <= depth)
        };
        near(&self.to_nodes, depth.operators) || near(&self.to_facts, depth.all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calculus::size::Size;
    use crate::saturate::language::NodeOp;
    use egg::Pattern;

    fn node(op: NodeOp, children: &[Id]) -> Node {
        Node { op, children: children.to_vec() }
    }

    #[test]
    fn depths_of_patterns() {
        let mut ast = PatternAst::default();
        let x = ast.add(ENodeOrVar::Var("?x".parse().expect("a variable")));
        assert_eq!(Depth::of(&ast), Depth { operators: 0, all: 0 });
        let compose = || NodeOp::Fn(crate::calculus::term::Op::Compose);
        let inner = ast.add(ENodeOrVar::ENode(node(compose(), &[x, x])));
        assert_eq!(Depth::of(&ast), Depth { operators: 0, all: 1 });
        ast.add(ENodeOrVar::ENode(node(compose(), &[x, inner])));
        assert_eq!(Depth::of(&Pattern::new(ast).ast), Depth { operators: 1, all: 2 });
    }

    #[test]
    fn a_change_concerns_the_classes_above_it() {
        let mut egraph = EGraph::default();
        let size = |n: u64| Node::size(&Size::constant(n));
        let sizes: Vec<Id> = (1..4).map(|n| egraph.add(size(n))).collect();
        // A chain: each class refers to the one before it.
        let input = |n: &str| NodeOp::Fn(crate::calculus::term::Op::Input(n.into()));
        let unit = egraph.add(Node::ty(&crate::calculus::ty::Ty::Unit));
        let a = egraph.add(node(input("a"), &[unit, unit]));
        let b = egraph.add(node(input("b"), &[unit, unit]));
        let compose = || NodeOp::Fn(crate::calculus::term::Op::Compose);
        let one = egraph.add(node(compose(), &[a, a]));
        let two = egraph.add(node(compose(), &[one, a]));
        let three = egraph.add(node(compose(), &[two, a]));
        egraph.rebuild();
        let mut changes = Changes::default();
        let near = |operators| Depth { operators, all: operators + 1 };
        changes.update(&egraph, 3);
        assert!(sizes.iter().all(|s| changes.concern(*s, near(0))), "everything is new");
        changes.update(&egraph, 3);
        assert!(!changes.concern(three, near(2)), "nothing changed");
        // Another node in the class of `one`.
        let other = egraph.add(node(compose(), &[b, a]));
        egraph.union(one, other);
        egraph.rebuild();
        changes.update(&egraph, 3);
        let find = |c| egraph.find(c);
        assert!(changes.concern(find(one), near(0)));
        assert!(changes.concern(find(two), near(1)));
        assert!(changes.concern(find(three), near(2)));
        assert!(!changes.concern(find(three), near(0)), "three levels above");
        assert!(!changes.concern(find(sizes[0]), near(3)), "below the change");
    }
}
