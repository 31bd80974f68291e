//! Looks up whether a term is in the saturated graph.
//!
//! The graph's sizes are symbols (`n.t0`, `n^`), but a person writes numbers. So the lookup matches the term
//! against the graph from a class on and collects equations between sizes, which must have a solution in
//! positive whole numbers. These differences between the term and the graph do not count:
//!
//! - the nesting of chains of `.`, and identities in them;
//! - operators that abbreviate others (`chunked`, `packed`, those of tiling), and their definitions;
//! - `take`, `padTo`, `padLast` and `mask` that do nothing because the lengths happen to be equal, and their
//!   absence; after a `mask` that does nothing, elements and elements paired with `true` (but a `mask` of
//!   elements that are themselves pairs with a truth value must be written);
//! - how functions on elements are composed, if they come to the same expression.

mod equations;
mod missing;
mod pattern;
mod scalar;
mod search;
mod short;
#[cfg(test)]
mod tests;

pub use missing::{Missing, Why};

use super::language::Node;
use super::run::Saturated;
use crate::calculus::elaborate::Program;
use crate::calculus::size::{Size, SizeEnv, Sym};
use crate::calculus::term::{Op, Term};
use crate::calculus::text::{Context, read_term_at};
use crate::calculus::ty::Ty;
use crate::diag::{Code, Diagnostic, Result, Source, Span};
use egg::Id;
use indexmap::IndexSet;
use pattern::Slice;
use search::Search;
use std::sync::Arc;

/// A term that is in the graph.
#[derive(Clone, Debug)]
pub struct Found {
    /// The class that contains the term.
    pub class: Id,
    /// The term in the graph's own symbols, including parts that do nothing at these sizes.
    pub term: Term,
    /// The values of the term's symbols that make it the sought term: those of tiles, widths and rounded
    /// sizes for which a number was written. Values known beforehand are not included.
    pub sizes: SizeEnv,
}

/// The result of a lookup.
pub type Looked = std::result::Result<Found, Box<Missing>>;

/// Reads a term to be looked up in a program's graph. Names of dimensions are replaced by their values, so
/// that names and numbers can be mixed: with `n` of 1024, `split 128 . xs` and `split 8 . padLast n . xs` are
/// both well-typed. `n.t0` and `n^` stay symbols.
///
/// # Errors
/// When the text does not parse or type-check (with the place), or a length is not whole.
pub fn read(source: &Arc<Source>, program: &Program) -> Result<Term> {
    let known = &program.env;
    let value = |s: &Size| {
        s.substitute(&|sym| match sym {
            Sym::Dim(_) => known.get(sym).map(|v| Size::constant(*v)),
            // These symbols are named after a size, and differ from those of another size of the same value.
            _ => Some(Size::sym(sym.clone())),
        })
    };
    let inputs = program.inputs.iter().map(|(name, _, ty)| (name.clone(), at(ty, &value)));
    let context = Context { inputs: inputs.collect(), variables: None };
    let term = read_term_at(source, &Ty::Unit, &context, &value)?;
    let mut broken = None;
    term.visit(&mut |t| {
        let whole = |s: &&Size| s.factors().next().is_some() || s.as_constant().is_some();
        if let Some(s) = t.sizes().iter().find(|s| !whole(s)) {
            broken.get_or_insert_with(|| (t.to_string(), s.coefficient()));
        }
    });
    match broken {
        None => Ok(term),
        Some((part, (n, k))) => {
            let text = format!("`{part}` has a length that is not whole: {n}/{k}");
            let text_at = source.text.len() - source.text.trim_start().len();
            let all = Span::new(text_at, source.text.trim_end().len());
            Err(Diagnostic::error(Code::NotDivisible, text).at(source, all, "in this term").into())
        }
    }
}

/// Returns a term with values for all sizes, without the parts that do nothing at those values; `None` if a
/// size has no whole value.
pub fn at_values(term: &Term, values: &SizeEnv) -> Option<Term> {
    let value = |s: &Size| s.eval(values).map_or_else(|_| s.clone(), Size::constant);
    let sizes: Vec<Size> = term.sizes().iter().map(value).collect();
    if sizes.iter().any(|s| s.as_constant().is_none()) {
        return None;
    }
    let tys: Vec<Ty> = term.tys().iter().map(|t| at(t, &value)).collect();
    let args: Option<Vec<Term>> = term.args().iter().map(|a| at_values(a, values)).collect();
    let made = match (term.op(), args?.as_slice()) {
        (Op::Compose, [f, g]) => f.after(g).ok()?,
        (op, args) => Term::new(op.clone(), sizes, tys, args.to_vec()).ok()?,
    };
    let nothing = pattern::does_nothing(&made, values);
    Some(if nothing { Term::id(&made.ty().dom) } else { made })
}

fn at(ty: &Ty, value: &dyn Fn(&Size) -> Size) -> Ty {
    match ty {
        Ty::Unit | Ty::Scalar(_) | Ty::Meta(_) => ty.clone(),
        Ty::Vector(w, t) => Ty::Vector(value(w), at(t, value).into()),
        Ty::Pair(a, b) => Ty::pair(&at(a, value), &at(b, value)),
        Ty::Array(n, t) => Ty::array(&value(n), &at(t, value)),
    }
}

/// Looks a term up in the program's class. `known` gives the values of the program's dimensions; without
/// them, a number in the term also stands for any value of a dimension.
///
/// # Errors
/// [`Missing`] when the term is not there: how much of it is, and what the graph has instead.
pub fn lookup(graph: &Saturated, term: &Term, known: &SizeEnv) -> Looked {
    lookup_from(graph, graph.root, term, known)
}

/// Looks a term up in a class, as [`lookup`] does.
///
/// # Errors
/// [`Missing`] when the term is not there: how much of it is, and what the graph has instead.
pub fn lookup_from(graph: &Saturated, class: Id, term: &Term, known: &SizeEnv) -> Looked {
    let mut search = Search::new(&graph.egraph, known);
    let slice = search.sought(term);
    let class = graph.egraph.find(class);
    if let Some(found) = there(&mut search, slice, class) {
        return Ok(found);
    }
    Err(Box::new(missing::explain(&mut search, slice, class)))
}

/// Looks a term up in every class that the program reaches, nearest first.
pub fn lookup_anywhere(graph: &Saturated, term: &Term, known: &SizeEnv) -> Option<Found> {
    let mut search = Search::new(&graph.egraph, known);
    let slice = search.sought(term);
    let mut classes: IndexSet<Id> = [graph.egraph.find(graph.root)].into();
    let mut at = 0;
    while let Some(&class) = classes.get_index(at) {
        at += 1;
        if let Some(found) = there(&mut search, slice, class) {
            return Some(found);
        }
        let nodes = graph.egraph[class].nodes.iter();
        classes.extend(nodes.flat_map(Node::args).map(|c| graph.egraph.find(*c)));
    }
    None
}

/// Returns the first solution, for a piece in a class, whose equations can be solved.
fn there(search: &mut Search, slice: Slice, class: Id) -> Option<Found> {
    search.find(slice, class).iter().find_map(|solution| {
        let mut whole = vec![];
        solution.term.visit(&mut |t| whole.extend(t.sizes().iter().cloned()));
        let sizes = search.symbols.solve(&solution.equations, &whole)?;
        Some(Found { class, term: solution.term.clone(), sizes })
    })
}
