//! Uses of an entry's parameters, where sizes are to be as general as the body allows.
//!
//! A parameter that is mapped over, and used once more inside the function of that map, is walked by two loops:
//! the bodies that are pulled and those that pull. The loops are different dimensions, though equally long, and
//! are to be tiled independently: a use in another function gets an outermost axis of its own. Uses in
//! one function share theirs, so that what reads them together can be one pass.

use super::elab::Checker;
use super::infer::Ty;
use super::ir::{Node, NodeKind};
use crate::lang::size::Size;
use crate::lang::typed::VarId;
use std::collections::{BTreeMap, BTreeSet};

/// What is known of the uses so far.
#[derive(Clone, Debug, Default)]
pub struct Uses {
    /// The parameters.
    params: BTreeSet<VarId>,
    /// The declared name of each axis that is inferred.
    declared: BTreeMap<String, String>,
    /// The axes made here, in order: unknown and declared name.
    pub made: Vec<(String, String)>,
    /// Each parameter's outermost axis in each function that uses it.
    axes: BTreeMap<VarId, BTreeMap<usize, Size>>,
}

impl Uses {
    /// None yet.
    pub fn new(params: BTreeSet<VarId>, declared: BTreeMap<String, String>) -> Uses {
        Uses { params, declared, ..Uses::default() }
    }
}

impl Checker<'_> {
    /// A use of a name; of a parameter, with the outermost axis it has in this function.
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
            // The first use has the axis of the parameter.
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
