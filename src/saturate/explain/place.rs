//! Terms for classes: the smallest term of each class, and the smallest term of the program around it.

use super::derivation::Part;
use super::path::position;
use crate::calculus::term::{Term, TypeError};
use crate::saturate::analysis::Data;
use crate::saturate::language::Node;
use crate::saturate::run::Saturated;
use egg::{Id, Language};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A node that has another class as a function argument.
#[derive(Clone)]
struct Parent {
    class: Id,
    node: Node,
    arg: usize,
}

/// The smallest terms of a graph.
pub(super) struct Places<'a> {
    graph: &'a Saturated,
    smallest: FxHashMap<Id, (usize, Node)>,
    /// For each class that the root reaches: the size of the smallest context around it, and its parent
    /// there.
    around: FxHashMap<Id, (usize, Option<Parent>)>,
}

impl<'a> Places<'a> {
    pub fn new(graph: &'a Saturated) -> Places<'a> {
        let mut out =
            Places { graph, smallest: FxHashMap::default(), around: FxHashMap::default() };
        out.find_smallest();
        out.find_around();
        out
    }

    fn find(&self, id: Id) -> Id {
        self.graph.egraph.find(id)
    }

    fn find_smallest(&mut self) {
        loop {
            let mut changed = false;
            for class in self.graph.egraph.classes() {
                for node in &class.nodes {
                    let mut parts = node.args().iter().map(|a| self.size(*a));
                    let size = parts.try_fold(1_usize, |all, s| Some(all.saturating_add(s?)));
                    let known = self.smallest.get(&class.id).map(|(s, _)| *s);
                    if node.function().is_some()
                        && let Some(size) = size
                        && known.is_none_or(|s| size < s)
                    {
                        self.smallest.insert(class.id, (size, node.clone()));
                        changed = true;
                    }
                }
            }
            if !changed {
                return;
            }
        }
    }

    fn size(&self, class: Id) -> Option<usize> {
        self.smallest.get(&self.find(class)).map(|(s, _)| *s)
    }

    fn find_around(&mut self) {
        let root = self.find(self.graph.root);
        self.around.insert(root, (0, None));
        let mut todo = BinaryHeap::from([Reverse((0, root))]);
        while let Some(Reverse((size, class))) = todo.pop() {
            if self.around.get(&class).is_some_and(|(known, _)| *known < size) {
                continue;
            }
            for node in &self.graph.egraph[class].nodes {
                for (arg, inner) in node.args().iter().enumerate() {
                    let others = node.args().iter().enumerate().filter(|(i, _)| *i != arg);
                    let others = others.filter_map(|(_, o)| self.size(*o)).sum::<usize>();
                    let (inner, around) = (self.find(*inner), size + 1 + others);
                    if self.around.get(&inner).is_none_or(|(known, _)| around < *known) {
                        let parent = Parent { class, node: node.clone(), arg };
                        self.around.insert(inner, (around, Some(parent)));
                        todo.push(Reverse((around, inner)));
                    }
                }
            }
        }
    }

    /// Returns the size of the smallest context of the program around the class; `None` when the program does
    /// not reach it.
    pub fn distance(&self, class: Id) -> Option<usize> {
        self.around.get(&self.find(class)).map(|(d, _)| *d)
    }

    /// Returns the smallest term of a class of functions.
    pub fn term(&self, class: Id) -> Result<Term, TypeError> {
        let (_, node) = self.smallest.get(&self.find(class)).ok_or_else(|| no_term(class))?;
        let args = node.args().iter().map(|a| self.term(*a)).collect::<Result<_, _>>()?;
        self.node(node, args)
    }

    /// Returns the term of a node with these arguments.
    pub fn node(&self, node: &Node, args: Vec<Term>) -> Result<Term, TypeError> {
        let op = node.function().ok_or_else(|| no_term(0.into()))?;
        let (mut sizes, mut tys) = (vec![], vec![]);
        for c in node.children() {
            match &self.graph.egraph[*c].data {
                Data::Size(s) => sizes.push(s.clone()),
                Data::Ty(t) => tys.push(t.clone()),
                Data::Fn(..) | Data::Broken => {}
            }
        }
        Term::new(op.clone(), sizes, tys, args)
    }

    /// Returns the smallest term of the program that contains `term` in the place of its class.
    pub fn whole(&self, class: Id, term: Term) -> Result<Part, TypeError> {
        let (mut whole, mut path, mut at) = (term, vec![], self.find(class));
        while let Some((_, Some(p))) = self.around.get(&at) {
            let mut args = vec![];
            for (i, a) in p.node.args().iter().enumerate() {
                args.push(if i == p.arg { whole.clone() } else { self.term(*a)? });
            }
            whole = self.node(&p.node, args)?;
            path.insert(0, p.arg);
            at = p.class;
        }
        Ok(Part { at: position(&whole, &path), term: whole.flat()? })
    }
}

fn no_term(class: Id) -> TypeError {
    TypeError(format!("the class {class} is no function"))
}
