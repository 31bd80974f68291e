//! Which subpatterns of the rules' left sides each e-class may match.
//!
//! Most searches from a class find nothing, but only after they have gone through the chains of its nodes. So each class
//! has the set of subpatterns that one of its nodes matches, whatever the variables stand for, and a pattern is searched
//! only in the classes whose sets have it. The sets are made from the leaves up, as by the automaton of Hoffmann and O'Donnell
//! (Pattern matching in trees, JACM 1982), and only again for classes above a change.

use super::EGraph;
use super::language::{Kind, Node, NodeOp};
use egg::{ENodeOrVar, Id, PatternAst};
use indexmap::{IndexMap, IndexSet};
use std::collections::VecDeque;

/// The number of a subpattern.
type Number = usize;

/// A node of a pattern. A child is the number of its subpattern, or `None` if it is a variable.
#[derive(PartialEq, Eq, Hash)]
struct Subpattern {
    op: NodeOp,
    children: Vec<Option<Number>>,
}

/// All subpatterns, and the set of each class.
#[derive(Default)]
pub struct Subpatterns {
    all: IndexSet<Subpattern>,
    /// Of each kind, those whose children are all variables.
    flat: IndexMap<Kind, Vec<Number>>,
    /// Of each subpattern, the others in which it is the first child that is not a variable, each with that child's place.
    above: Vec<Vec<(usize, Number)>>,
    /// The set of each class, as `words` words of bits.
    sets: Vec<u64>,
    words: usize,
}

const BITS: usize = u64::BITS as usize;

impl Subpatterns {
    /// Adds a pattern and returns its number, or `None` if it is a variable, which every class matches.
    ///
    /// All patterns are added before the first update.
    pub fn insert(&mut self, pattern: &PatternAst<Node>) -> Option<Number> {
        let mut numbers: Vec<Option<Number>> = vec![];
        for part in pattern {
            numbers.push(match part {
                ENodeOrVar::Var(_) => None,
                ENodeOrVar::ENode(n) => {
                    let children = n.children.iter().map(|c| numbers[usize::from(*c)]).collect();
                    Some(self.number(Subpattern { op: n.op.clone(), children }))
                }
            });
        }
        self.words = self.all.len().div_ceil(BITS);
        numbers.last().copied().flatten()
    }

    fn number(&mut self, part: Subpattern) -> Number {
        let kind = part.op.kind();
        let first = part.children.iter().enumerate().find_map(|(place, c)| Some((place, (*c)?)));
        let (number, is_new) = self.all.insert_full(part);
        if is_new {
            self.above.push(vec![]);
            match first {
                Some((place, child)) => self.above[child].push((place, number)),
                None => self.flat.entry(kind).or_default().push(number),
            }
        }
        number
    }

    fn set(&self, class: Id) -> &[u64] {
        let start = usize::from(class) * self.words;
        self.sets.get(start..start + self.words).unwrap_or_default()
    }

    /// Whether a class may match the pattern with a number.
    pub fn may_match(&self, class: Id, pattern: Option<Number>) -> bool {
        pattern
            .is_none_or(|p| self.set(class).get(p / BITS).is_some_and(|w| w >> (p % BITS) & 1 == 1))
    }

    /// Makes the sets of the classes whose nodes have changed, and of those above.
    pub fn update(&mut self, egraph: &EGraph, changed: &[Id]) {
        let len = egraph.classes().map(|c| usize::from(c.id) + 1).max().unwrap_or(0);
        self.sets.resize((len * self.words).max(self.sets.len()), 0);
        let mut waits = vec![false; len];
        for c in changed {
            waits[usize::from(*c)] = true;
        }
        let mut queue: VecDeque<Id> = changed.iter().copied().collect();
        while let Some(class) = queue.pop_front() {
            waits[usize::from(class)] = false;
            let set = self.make(egraph, class);
            if set == self.set(class) {
                continue;
            }
            let start = usize::from(class) * self.words;
            self.sets[start..start + self.words].copy_from_slice(&set);
            for parent in egraph[class].parents().map(|p| egraph.find(p)) {
                if !std::mem::replace(&mut waits[usize::from(parent)], true) {
                    queue.push_back(parent);
                }
            }
        }
    }

    fn make(&self, egraph: &EGraph, class: Id) -> Vec<u64> {
        let mut set = vec![0; self.words];
        for node in egraph[class].iter() {
            let flat = self.flat.get(&node.op.kind()).into_iter().flatten().copied();
            let above = node.children.iter().enumerate().flat_map(|(place, c)| {
                let uses = ones(self.set(*c)).flat_map(|number| &self.above[number]);
                uses.filter(move |(at, _)| *at == place).map(|(_, number)| *number)
            });
            for number in flat.chain(above).filter(|n| self.matches(*n, node)) {
                set[number / BITS] |= 1 << (number % BITS);
            }
        }
        set
    }

    fn matches(&self, number: Number, node: &Node) -> bool {
        let part = &self.all[number];
        part.children.len() == node.children.len()
            && part.op == node.op
            && part.children.iter().zip(&node.children).all(|(p, c)| self.may_match(*c, *p))
    }
}

/// Returns the numbers in a set.
fn ones(set: &[u64]) -> impl Iterator<Item = Number> {
    set.iter().enumerate().flat_map(|(i, word)| {
        let rest = |w: &u64| Some(w & (w - 1)).filter(|w| *w != 0);
        std::iter::successors(Some(*word).filter(|w| *w != 0), rest)
            .map(move |w| i * BITS + w.trailing_zeros() as usize)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calculus::term::Op;
    use crate::calculus::ty::Ty;

    #[test]
    fn a_class_has_the_subpatterns_of_its_nodes() {
        let mut egraph = EGraph::default();
        let node =
            |op: Op, children: &[Id]| Node { op: NodeOp::Fn(op), children: children.to_vec() };
        let unit = egraph.add(Node::ty(&Ty::Unit));
        let input = |name: &str| node(Op::Input(name.into()), &[unit, unit]);
        let (a, b) = (egraph.add(input("a")), egraph.add(input("b")));
        let inner = egraph.add(node(Op::Compose, &[a, b]));
        let outer = egraph.add(node(Op::Compose, &[b, inner]));
        egraph.rebuild();

        // `?x . (b . ?y)`
        let mut ast = PatternAst::default();
        let var = |ast: &mut PatternAst<Node>, v: &str| {
            ast.add(ENodeOrVar::Var(v.parse().expect("a variable")))
        };
        let (x, y, t) = (var(&mut ast, "?x"), var(&mut ast, "?y"), var(&mut ast, "?t"));
        let add = |ast: &mut PatternAst<Node>, op: Op, children: &[Id]| {
            ast.add(ENodeOrVar::ENode(node(op, children)))
        };
        let b_pattern = add(&mut ast, Op::Input("b".into()), &[t, t]);
        let below = add(&mut ast, Op::Compose, &[b_pattern, y]);
        add(&mut ast, Op::Compose, &[x, below]);

        let mut subpatterns = Subpatterns::default();
        let pattern = subpatterns.insert(&ast);
        assert_eq!(subpatterns.insert(&ast), pattern, "it is there");
        let variable: PatternAst<Node> = vec![ENodeOrVar::Var("?x".parse().expect("one"))].into();
        assert_eq!(subpatterns.insert(&variable), None);

        let all = |egraph: &EGraph| egraph.classes().map(|c| c.id).collect::<Vec<_>>();
        subpatterns.update(&egraph, &all(&egraph));
        assert!(all(&egraph).iter().all(|c| !subpatterns.may_match(*c, pattern)));
        assert!(subpatterns.may_match(outer, None), "every class matches a variable");
        // In the class of `inner`, `b` comes first now. Only that class has changed.
        let other = egraph.add(node(Op::Compose, &[b, a]));
        egraph.union(inner, other);
        egraph.rebuild();
        subpatterns.update(&egraph, &[egraph.find(inner)]);
        assert!(subpatterns.may_match(egraph.find(outer), pattern), "the class above");
        assert!(!subpatterns.may_match(egraph.find(inner), pattern));
    }
}
