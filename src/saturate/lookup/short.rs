//! Matches operators that abbreviate chains (`chunked`, `tiled`, `blocked`, ...) with an expanded piece.
//!
//! The definition of a node is built with a hole for each argument and laid over the piece. Every part of the
//! definition, except holes and parts that do nothing, must be in the piece, with sizes that become
//! equations. Holes take the rest.

use super::equations::Equations;
use super::pattern::{Slice, lengths};
use super::search::{Search, Solution, Ways, types};
use crate::calculus::term::{Op, Term};
use crate::saturate::Node;
use std::rc::Rc;

/// Most ways in which a definition is laid over a piece.
const LAYINGS: usize = 64;

/// A definition laid over a piece.
#[derive(Clone, Debug)]
pub(super) struct Laid {
    /// The equations that the definition requires.
    pub equations: Equations,
    /// The piece that each hole takes; `None` for the identity, which is not written.
    pub holes: Vec<Option<Slice>>,
}

/// Whether nodes of this operator abbreviate a chain, whatever their arguments are.
pub(super) fn is_short(op: &Op) -> bool {
    matches!(
        op,
        Op::Chunked
            | Op::Packed
            | Op::Tiled(_)
            | Op::TiledRows
            | Op::Turned
            | Op::Blocked(_)
            | Op::BlockedRows
            | Op::Spread(_)
            | Op::SpreadRows
            | Op::Sliced
    )
}

fn hole(t: &Term) -> Option<usize> {
    match t.op() {
        Op::Meta(name) => name.parse().ok(),
        _ => None,
    }
}

impl Search<'_> {
    /// Matches a short form with the chain that it abbreviates.
    pub(super) fn short_for(&mut self, piece: Slice, node: &Node, out: &mut Ways) {
        for laid in self.laid(piece, node) {
            let mut args = vec![];
            for (taken, class) in laid.holes.iter().zip(node.args()) {
                args.push(match taken {
                    Some(taken) => self.find(*taken, *class),
                    None => self.identity(*class),
                });
            }
            self.product(node, &args, &laid.equations, out);
        }
    }

    /// Returns the ways in which the node's definition lies over a piece, without looking at what the holes
    /// take.
    pub(super) fn laid(&mut self, piece: Slice, node: &Node) -> Vec<Laid> {
        let Some(definition) = self.definition(node) else { return vec![] };
        let start = Laid { equations: Equations::default(), holes: vec![None; node.args().len()] };
        let mut out = vec![];
        let classes = node.args();
        self.lay(&definition.chain(), Some(piece), classes, &start, &mut out);
        out
    }

    fn definition(&mut self, node: &Node) -> Option<Rc<Term>> {
        if !node.function().is_some_and(is_short) {
            return None;
        }
        if let Some(known) = self.definitions.get(node) {
            return known.clone();
        }
        let made = self.with_holes(node).and_then(|t| t.definition().ok().flatten()).map(Rc::new);
        self.definitions.insert(node.clone(), made.clone());
        made
    }

    fn with_holes(&self, node: &Node) -> Option<Term> {
        let args = node.args().iter().enumerate().map(|(i, class)| {
            let ty = self.egraph[*class].data.function()?;
            let tys = vec![ty.dom.clone(), ty.cod.clone()];
            Term::new(Op::Meta(i.to_string().into()), vec![], tys, vec![]).ok()
        });
        self.term(node, args.collect::<Option<Vec<_>>>()?)
    }

    /// Lays a chain over the rest of a piece, and adds every way to `out`.
    fn lay(
        &mut self,
        parts: &[Term],
        left: Option<Slice>,
        classes: &[egg::Id],
        so_far: &Laid,
        out: &mut Vec<Laid>,
    ) {
        if out.len() >= LAYINGS {
            return;
        }
        let Some((first, rest)) = parts.split_first() else {
            if left.is_none() {
                out.push(so_far.clone());
            }
            return;
        };
        let after = |left: Slice, count: usize| (count < left.len()).then(|| left.tail(count));
        // A part that does nothing need not be written.
        for laid in self.nothing(first, classes, so_far) {
            self.lay(rest, left, classes, &laid, out);
        }
        let Some(piece) = left else { return };
        if let Some(i) = hole(first) {
            for count in 1..=piece.len() {
                let mut laid = so_far.clone();
                laid.holes[i] = Some(piece.head(count));
                self.lay(rest, after(piece, count), classes, &laid, out);
            }
            return;
        }
        let there = self.chains.get(piece.head(1));
        let there = &there[0];
        if first.op() != there.op() {
            return;
        }
        let mut laid = so_far.clone();
        let sizes = first.sizes().iter().zip(there.sizes());
        let mut same = sizes.map(|(a, b)| self.symbols.equate(a, b, &mut laid.equations));
        if !same.all(|s| s) {
            return;
        }
        let tys = first.tys().iter().zip(there.tys());
        let mut same = tys.map(|(a, b)| types(&mut self.symbols, a, b, true, &mut laid.equations));
        if !same.all(|s| s) {
            return;
        }
        let mut ways = vec![laid];
        for (arg, there) in first.args().iter().zip(there.args()) {
            let inside = self.argument(there);
            let mut next = vec![];
            for way in &ways {
                self.lay(&arg.chain(), self.written(inside), classes, way, &mut next);
            }
            ways = next;
        }
        for way in ways {
            self.lay(rest, after(piece, 1), classes, &way, out);
        }
    }

    /// Returns the piece, or `None` when it is the identity.
    fn written(&self, piece: Slice) -> Option<Slice> {
        let parts = self.chains.get(piece);
        parts.iter().any(|p| *p.op() != Op::Id).then_some(piece)
    }

    /// Returns the ways in which a part of a definition does nothing.
    fn nothing(&mut self, part: &Term, classes: &[egg::Id], so_far: &Laid) -> Vec<Laid> {
        if let Some(i) = hole(part) {
            let ways: Rc<Vec<Solution>> = self.identity(classes[i]);
            let mut laid = so_far.clone();
            laid.holes[i] = None;
            return if ways.is_empty() { vec![] } else { vec![laid] };
        }
        match part.op() {
            Op::Id => vec![so_far.clone()],
            Op::Map(_) | Op::Bimap | Op::Compose => {
                let mut ways = vec![so_far.clone()];
                for arg in part.args() {
                    ways = ways.iter().flat_map(|w| self.nothing(arg, classes, w)).collect();
                }
                ways
            }
            op => {
                let Some((a, b)) = lengths(op, part.sizes()) else { return vec![] };
                let mut laid = so_far.clone();
                let equal = self.symbols.equate(a, b, &mut laid.equations);
                if equal { vec![laid] } else { vec![] }
            }
        }
    }
}
