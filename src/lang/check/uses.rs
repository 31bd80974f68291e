//! Tracks the uses of an entry's parameters when sizes are inferred as generally as the body allows.
//!
//! A parameter that is mapped over and used again inside the function of that map is traversed by two nested loops.
//! In an all-pairs program, for instance, one loop runs over the bodies that are attracted, the other over those
//! that attract. The loops are different dimensions, though equally long, and must be tiled independently.
//! Therefore, a use in another function gets an outermost axis of its own. Uses in the same function share theirs,
//! so that one pass can serve all of them.

use super::elab::Checker;
use super::infer::Ty;
use super::ir::{Node, NodeKind};
use crate::lang::size::Size;
use crate::lang::typed::VarId;
use std::collections::{BTreeMap, BTreeSet};

/// The uses found so far.
#[derive(Clone, Debug, Default)]
pub struct Uses {
    /// The entry's parameters.
    params: BTreeSet<VarId>,
    /// The declared name of each inferred axis.
    declared: BTreeMap<String, String>,
    /// The axes created here, in order: unknown and declared name.
    pub made: Vec<(String, String)>,
    /// The outermost axis of each parameter in each function that uses it.
    axes: BTreeMap<VarId, BTreeMap<usize, Size>>,
}

impl Uses {
    /// Returns a state without any uses.
    pub fn new(params: BTreeSet<VarId>, declared: BTreeMap<String, String>) -> Uses {
        Uses { params, declared, ..Uses::default() }
    }
}

impl Checker<'_> {
    /// Records a use of a name. For a parameter, returns it with the outermost axis that it has in this function.
    pub fn used(&mut self, node: Node) -> Node {
        let (NodeKind::Var(v), Ty::Array(n, element)) = (&node.kind, &node.ty) else {
            return node;
        };
        let Some(uses) = &mut self.uses else { return node };
        let declared = n.as_var().and_then(|n| uses.declared.get(n)).cloned();
        let (Some(declared), true) = (declared, uses.params.contains(v)) else { return node };
        let known = uses.axes.entry(*v).or_default();
        let axis = match known.get(&self.function) {
            Some(axis) => axis.clone(),
            // The first use keeps the parameter's axis.
            None if known.is_empty() => n.clone(),
            None => {
                let unknown = self.infer.sizes.fresh_axis();
                uses.declared.insert(unknown.clone(), declared.clone());
                uses.made.push((unknown.clone(), declared));
                Size::var(&unknown)
            }
        };
        known.insert(self.function, axis.clone());
        Node { ty: Ty::Array(axis, element.clone()), ..node }
    }
}
