//! egg's flat explanations as a list of moves from term to term.

use crate::calculus::position::Position;
use crate::calculus::term::{Op, Term, TypeError};
use crate::saturate::language::{Node, NodeOp};
use egg::FlatTerm;

/// One rewrite of a part of a term. All chains are nested to the right.
#[derive(Clone, Debug)]
pub(super) struct Move {
    /// The name of the rewrite, as compiled.
    pub rewrite: String,
    /// Whether the rewrite was read from its right side to its left.
    pub backwards: bool,
    pub before: Term,
    pub after: Term,
    /// The changed part: one side of the rewrite, perhaps with factors around it that the rewrite left as
    /// they were.
    pub old: Position,
    pub new: Position,
}

/// Returns the moves of an explanation, leaving out those that only change how chains are nested.
pub(super) fn moves(flat: &[FlatTerm<Node>]) -> Result<Vec<Move>, TypeError> {
    let mut out = vec![];
    let mut last: Option<(Term, Term)> = None;
    for ft in flat {
        let nested = term(ft)?;
        let here = (nested.flat()?, nested);
        if let Some((before, old_nesting)) = last
            && before != here.0
            && let Some((path, rewrite, backwards)) = annotation(ft)
        {
            let old = position(&old_nesting, &path);
            let new = position(&here.1, &path);
            out.push(Move { rewrite, backwards, before, after: here.0.clone(), old, new });
        }
        last = Some(here);
    }
    Ok(out)
}

/// Returns the term with chains nested as egg has them.
fn term(ft: &FlatTerm<Node>) -> Result<Term, TypeError> {
    let NodeOp::Fn(op) = &ft.node.op else {
        return Err(TypeError("a size or type in the place of a function".to_owned()));
    };
    let (mut sizes, mut tys, mut args) = (vec![], vec![], vec![]);
    for c in &ft.children {
        match &c.node.op {
            NodeOp::Size(s) => sizes.push(s.clone()),
            NodeOp::Ty(t) => tys.push(t.clone()),
            NodeOp::Fn(_) => args.push(term(c)?),
        }
    }
    Term::new(op.clone(), sizes, tys, args)
}

/// Returns the node that was rewritten: the path of function arguments to it, the rewrite, and whether it ran
/// backwards.
fn annotation(ft: &FlatTerm<Node>) -> Option<(Vec<usize>, String, bool)> {
    if let Some(rule) = ft.forward_rule {
        return Some((vec![], rule.to_string(), false));
    }
    if let Some(rule) = ft.backward_rule {
        return Some((vec![], rule.to_string(), true));
    }
    let functions = ft.children.iter().filter(|c| matches!(c.node.op, NodeOp::Fn(_)));
    functions.enumerate().find_map(|(i, c)| {
        let (mut path, rule, backwards) = annotation(c)?;
        path.insert(0, i);
        Some((path, rule, backwards))
    })
}

/// Returns the position of a node when all chains of its term are nested to the right.
pub(super) fn position(nested: &Term, path: &[usize]) -> Position {
    let (mut at, mut before, mut outer) = (nested.clone(), 0, vec![]);
    for &arg in path {
        let inner = at.args()[arg].clone();
        match (at.op(), arg) {
            (Op::Compose, 0) => {}
            (Op::Compose, _) => before += at.args()[0].chain().len(),
            _ => {
                outer.push((before, arg));
                before = 0;
            }
        }
        at = inner;
    }
    Position { path: outer, factors: before..before + at.chain().len() }
}
