//! Tracks the uses of an entry's parameters when sizes are inferred as generally as the body allows.
//!
//! A parameter that is mapped over and used again inside the function of that map is traversed by two nested loops.
//! In an all-pairs program, for instance, one loop runs over the bodies that are attracted, the other over those
//! that attract. The loops are different dimensions, though equally long, and must be tiled independently.
//! Therefore, a use in another function gets an outermost axis of its own. Uses in the same function share theirs,
//! so that one pass can serve all of them. A use that only gives the parameter another name does not count, and types that
//! the body is annotated with do not tie axes together.

use super::elab::{Checker, Res};
use super::entry::DIMENSION;
use super::env::Env;
use super::infer::Ty;
use super::ir::{Node, NodeKind};
use crate::lang::ast::TypeExpr;
use crate::lang::size::Size;
use crate::lang::typed::VarId;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// The uses found so far.
#[derive(Clone, Debug, Default)]
pub struct Uses {
    /// The entry's parameters.
    params: BTreeSet<VarId>,
    /// The declared name, or number, of each inferred axis.
    declared: BTreeMap<String, String>,
    /// The axes created here, in order: unknown and declared name or number.
    pub made: Vec<(String, String)>,
    /// The outermost axis of each parameter in each function that uses it, and the number of uses.
    axes: BTreeMap<VarId, BTreeMap<usize, (Size, usize)>>,
}

impl Uses {
    /// Returns a state without any uses.
    pub fn new(params: BTreeSet<VarId>, declared: BTreeMap<String, String>) -> Uses {
        Uses { params, declared, ..Uses::default() }
    }
}

impl<'a> Checker<'a> {
    /// Converts the type that an expression or a parameter inside the body is annotated with. If sizes are inferred as
    /// generally as possible, an axis by name may be any other of the same length: `[n][n]f32` is any matrix then. The
    /// check with the declared sizes has found the lengths to be equal.
    pub fn annotation(&mut self, ty: &'a TypeExpr, env: &Env<'a>) -> Res<Ty> {
        let ty = self.ty(ty, env)?;
        Ok(if self.uses.is_some() { self.loosened(&ty, &mut BTreeSet::new()) } else { ty })
    }

    /// Gives axes by name or number, and unknown lengths that recur, unknowns of their own. `seen` has the unknown lengths so far.
    fn loosened(&mut self, ty: &Ty, seen: &mut BTreeSet<String>) -> Ty {
        match ty {
            Ty::Meta(_) | Ty::Scalar(_) | Ty::Vector(..) => ty.clone(),
            Ty::Tuple(ts) => Ty::Tuple(ts.iter().map(|t| self.loosened(t, seen)).collect()),
            Ty::Record(names, ts) => {
                let parts = ts.iter().map(|t| self.loosened(t, seen));
                Ty::Record(names.clone(), parts.collect())
            }
            Ty::Array(n, t) => {
                let resolved = self.infer.sizes.resolve(n);
                let unknown = resolved.as_var().filter(|v| v.starts_with('?'));
                let is_axis = |v| self.uses.as_ref().is_some_and(|u| u.declared.contains_key(v));
                let own = unknown.is_some_and(|v| is_axis(v) || !seen.insert(v.to_owned()))
                    || resolved.as_constant().is_some_and(|n| n >= DIMENSION);
                let n = if own { self.infer.sizes.fresh() } else { n.clone() };
                Ty::Array(n, Rc::new(self.loosened(t, seen)))
            }
        }
    }

    /// Returns whether a number that was declared as a length is a size of its own here, in general mode.
    pub fn stands_for_number(&self, size: &Size) -> bool {
        let Some(uses) = &self.uses else { return false };
        let declared = |v: &String| uses.declared.get(v).is_some_and(|d| d.parse::<i64>().is_ok());
        self.infer.sizes.resolve(size).variables().iter().any(declared)
    }

    /// Records a use of a name. For a parameter, returns it with the outermost axis that it has in this function.
    pub fn used(&mut self, node: Node) -> Node {
        let (NodeKind::Var(v), Ty::Array(n, element)) = (&node.kind, &node.ty) else {
            return node;
        };
        let Some(uses) = &mut self.uses else { return node };
        let declared = n.as_var().and_then(|n| uses.declared.get(n)).cloned();
        let (Some(declared), true) = (declared, uses.params.contains(v)) else { return node };
        let known = uses.axes.entry(*v).or_default();
        let first = known.is_empty();
        let axis = match known.get_mut(&self.function) {
            Some((axis, uses)) => {
                *uses += 1;
                return Node { ty: Ty::Array(axis.clone(), element.clone()), ..node };
            }
            // The first use keeps the parameter's axis.
            None if first => n.clone(),
            None => {
                let unknown = self.infer.sizes.fresh_axis();
                uses.declared.insert(unknown.clone(), declared.clone());
                uses.made.push((unknown.clone(), declared));
                Size::var(&unknown)
            }
        };
        known.insert(self.function, (axis.clone(), 1));
        Node { ty: Ty::Array(axis, element.clone()), ..node }
    }

    /// Takes back the use of a value that only gets another name: the uses of that name count.
    pub fn named(&mut self, node: &Node) {
        let (NodeKind::Var(v), Some(uses)) = (&node.kind, &mut self.uses) else { return };
        let Some(known) = uses.axes.get_mut(v) else { return };
        let last = known.get_mut(&self.function).is_some_and(|(_, uses)| {
            *uses = uses.saturating_sub(1);
            *uses == 0
        });
        if last {
            known.remove(&self.function);
        }
    }
}
