//! Terms as text in the papers' notation, `join . mapWrg 0 (map abs) . split 128`: a printer, and a parser
//! that infers types from the type of the argument.

mod infer;
mod parse;
mod print;
mod raw;
mod unify;

pub use infer::{Context, Inferred, infer};
use parse::parse_large_term;
pub use parse::{parse_size, parse_term, parse_type};
pub use print::{head, marked};
pub use raw::{Raw, RawKind};
pub use unify::Unifier;

use super::scalar::SExpr;
use super::size::Size;
use super::term::{Op, Term};
use super::ty::Ty;
use crate::diag::{Limits, Result, Source, on_own_stack};
use std::ops::Range;
use std::sync::Arc;

/// What is written in place of each size.
pub type Sizes<'a> = &'a (dyn Fn(&Size) -> Size + Sync);

/// Parses a closed term whose argument has type `dom`.
///
/// # Errors
/// When the text does not parse or does not type-check, with the place.
pub fn read_term(source: &Arc<Source>, dom: &Ty, context: &Context) -> Result<Term> {
    read_term_at(source, dom, context, &Size::clone)
}

/// As [`read_term`], for a part of the source.
///
/// # Errors
/// When the text does not parse or does not type-check, with the place.
pub fn read_term_in(
    source: &Arc<Source>,
    range: Range<usize>,
    dom: &Ty,
    context: &Context,
) -> Result<Term> {
    read(source, range, dom, context, None)
}

/// As [`read_term`], with each written size replaced by what `value` gives for it.
///
/// # Errors
/// When the text does not parse or does not type-check, with the place.
pub fn read_term_at(
    source: &Arc<Source>,
    dom: &Ty,
    context: &Context,
    value: Sizes<'_>,
) -> Result<Term> {
    read(source, 0..source.text.len(), dom, context, Some(value))
}

fn read(
    source: &Arc<Source>,
    range: Range<usize>,
    dom: &Ty,
    context: &Context,
    value: Option<Sizes<'_>>,
) -> Result<Term> {
    on_own_stack(|| {
        let mut raw = parse_large_term(source, range)?;
        if let Some(value) = value {
            raw = raw.with_sizes(value);
        }
        let mut unifier = Unifier::default();
        let inferred = infer(source, &raw, dom, context, &mut unifier)?;
        inferred.close(source, &unifier)
    })?
}

/// Whether the text of a term can be read again: it may be nested too deeply.
pub fn can_be_read(term: &Term) -> bool {
    // Hardly any term comes near the limits. The text decides about those that do: what the parser reads by iteration
    // counts as nesting here.
    let deep = Limits::DEFAULT.term_nesting / 2;
    term_depth(term) < deep || {
        let source = Source::new("", term.to_string());
        on_own_stack(|| parse_large_term(&source, 0..source.text.len()).is_ok()).unwrap_or(false)
    }
}

/// Returns a bound of how deep the expressions of a term are nested.
fn term_depth(term: &Term) -> usize {
    let of_parts = term.chain().into_iter().map(|part| {
        let args = part.args().iter().map(term_depth).max().unwrap_or(0);
        let here = match part.op() {
            Op::Scalar(f) => scalar_depth(&f.body) + type_depth(&f.dom),
            _ => 0,
        };
        args.max(here)
    });
    1 + of_parts.max().unwrap_or(0)
}

fn scalar_depth(e: &SExpr) -> usize {
    let parts: Vec<&SExpr> = match e {
        SExpr::Arg | SExpr::Lit(_) | SExpr::Input(..) | SExpr::Size(..) | SExpr::Var(..) => vec![],
        SExpr::Proj(e, _) => vec![e],
        SExpr::Op(_, _, es) => es.iter().collect(),
        SExpr::Pair(a, b) | SExpr::Let(a, b) => vec![a, b],
        SExpr::If(a, b, c) | SExpr::For(a, b, c) | SExpr::While(a, b, c) => vec![a, b, c],
    };
    // An operand in parentheses is nested twice.
    2 + parts.into_iter().map(scalar_depth).max().unwrap_or(0)
}

fn type_depth(t: &Ty) -> usize {
    match t {
        Ty::Pair(a, b) => 1 + type_depth(a).max(type_depth(b)),
        _ => 1,
    }
}
