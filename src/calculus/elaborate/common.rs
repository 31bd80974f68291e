//! Computes once what a program computes several times (common subexpressions).
//!
//! Definitions are inlined, so a program that calls one twice with the same arguments, or that names a mean in two formulas,
//! contains the same loops and reductions twice. `f (g x) (g x)` becomes `let y = g x in f y y`. Cheap expressions are left alone:
//! each use computes them for itself.
//!
//! A name stands where all variables of its value are known. Something is computed in front of a function, a branch or the body
//! of a loop only if it is computed there in any case.

use super::core::{Ex, Kind, Var, Vars};
use super::hoist::reduces;
use super::interchange::named;
use crate::lang::typed::Prim;

/// Largest program that is searched, in nodes: the search compares all expressions.
const LARGEST: usize = 4000;

/// The first number of bound variables in expressions that are compared.
const COMPARED: u32 = 1 << 30;

/// Returns the program with a name for each expression with work that occurs several times.
pub(super) fn computed_once(mut e: Ex, fresh: &mut dyn FnMut() -> Var) -> Ex {
    if e.size() <= LARGEST {
        scope(&mut e, fresh);
    }
    e
}

/// Names what occurs several times in a scope: an expression in which no outer variable becomes unknown. Goes on with the scopes in it.
fn scope(e: &mut Ex, fresh: &mut dyn FnMut() -> Var) {
    while let Some(same) = largest(e) {
        let name = named(&same.ty, fresh);
        let value = name.value(same.span);
        replace(e, &comparable(&same), &value);
        let rest = std::mem::replace(e, value);
        *e = rest.bound(name, same);
    }
    inner_scopes(e, fresh);
}

fn inner_scopes(e: &mut Ex, fresh: &mut dyn FnMut() -> Var) {
    let own: Vec<bool> = e.parts().iter().map(|(bound, _)| !bound.is_empty()).collect();
    let (branches, skipped) = (matches!(e.kind, Kind::If(..)), chosen(e));
    for (k, (part, own)) in e.parts_mut().into_iter().zip(own).enumerate().skip(skipped) {
        if own || branches && k > 0 {
            scope(part, fresh);
        } else {
            inner_scopes(part, fresh);
        }
    }
}

/// Returns the number of functions of a pattern, the first parts of an expression, in which nothing is searched: operators, and those
/// of patterns for which the program itself has chosen where they run.
fn chosen(e: &Ex) -> usize {
    match &e.kind {
        Kind::Map(Prim::Map, ..) | Kind::Prim(Prim::Generate, ..) => 0,
        Kind::Map(..) => 1,
        Kind::Prim(_, functions, ..) => functions.len(),
        _ => 0,
    }
}

/// An expression with work in a scope.
struct Found<'a> {
    e: &'a Ex,
    size: usize,
    /// Whether the scope computes it in any case.
    always: bool,
}

/// Returns the largest expression that occurs several times in a scope.
fn largest(e: &Ex) -> Option<Ex> {
    let mut found = vec![];
    collect(e, true, &mut Vars::new(), &mut found);
    found.sort_by_key(|f| std::cmp::Reverse(f.size));
    for group in found.chunk_by(|a, b| a.size == b.size) {
        for (k, f) in group.iter().enumerate() {
            let this = comparable(f.e);
            let same = |o: &&Found| o.e.ty == f.e.ty && comparable(o.e) == this;
            let mut others = group[k + 1..].iter().filter(same).peekable();
            if others.peek().is_some() && (f.always || others.any(|o| o.always)) {
                return Some(f.e.clone());
            }
        }
    }
    None
}

/// Adds the expressions with work that mention no variable of `bound`, which are bound between the scope and `e`. Returns whether `e` has work.
fn collect<'a>(e: &'a Ex, always: bool, bound: &mut Vars, found: &mut Vec<Found<'a>>) -> bool {
    let mut works = is_work(e);
    let skipped = chosen(e);
    let named = matches!(e.kind, Kind::Let(..));
    let branches = matches!(e.kind, Kind::If(..));
    for (k, (layouts, part)) in e.parts().into_iter().enumerate() {
        let always = always && (layouts.is_empty() || named) && !(branches && k > 0);
        if k < skipped {
            works |= has_work(part);
            continue;
        }
        let own: Vec<Var> = layouts.iter().flat_map(|l| l.vars()).map(|(v, _)| v).collect();
        bound.extend(own.iter().copied());
        works |= collect(part, always, bound, found);
        own.iter().for_each(|v| {
            bound.remove(v);
        });
    }
    if works && e.free().is_disjoint(bound) {
        found.push(Found { e, size: e.size(), always });
    }
    works
}

/// Whether an expression is a loop, a reduction, a scan or a sort.
fn is_work(e: &Ex) -> bool {
    reduces(&e.kind)
        || matches!(
            e.kind,
            Kind::For(..)
                | Kind::While(..)
                | Kind::Prim(
                    Prim::ReduceSeq | Prim::Scan(_) | Prim::CountingSort | Prim::Sorted,
                    ..
                )
        )
}

fn has_work(e: &Ex) -> bool {
    is_work(e) || e.parts().iter().any(|(_, part)| has_work(part))
}

/// Replaces all expressions that compare equal to `same`.
fn replace(e: &mut Ex, same: &Ex, by: &Ex) {
    if e.ty == same.ty && e.size() == same.size() && comparable(e) == *same {
        *e = Ex { span: e.span, ..by.clone() };
        return;
    }
    let skipped = chosen(e);
    e.parts_mut().into_iter().skip(skipped).for_each(|part| replace(part, same, by));
}

/// Returns an expression with numbers for its bound variables that depend on nothing but their order.
pub(super) fn comparable(e: &Ex) -> Ex {
    let mut next = COMPARED;
    e.refreshed(&mut || {
        next += 1;
        Var(next)
    })
}
