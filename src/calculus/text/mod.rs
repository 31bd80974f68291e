//! Terms as text in the papers' notation, `join . mapWrg 0 (map abs) . split 128`: a printer, and a parser
//! that infers types from the type of the argument.

mod infer;
mod parse;
mod print;
mod raw;
mod unify;

pub use infer::{Context, Inferred, infer};
pub use parse::{parse_size, parse_term, parse_type};
pub use print::{head, marked};
pub use raw::{Raw, RawKind};
pub use unify::Unifier;

use super::size::Size;
use super::term::Term;
use super::ty::Ty;
use crate::diag::{Result, Source};
use std::ops::Range;
use std::sync::Arc;

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
    let raw = parse_term(source, range)?;
    let mut unifier = Unifier::default();
    let inferred = infer(source, &raw, dom, context, &mut unifier)?;
    inferred.close(source, &unifier)
}

/// As [`read_term`], with each written size replaced by what `value` gives for it.
///
/// # Errors
/// When the text does not parse or does not type-check, with the place.
pub fn read_term_at(
    source: &Arc<Source>,
    dom: &Ty,
    context: &Context,
    value: &dyn Fn(&Size) -> Size,
) -> Result<Term> {
    let raw = parse_term(source, 0..source.text.len())?.with_sizes(value);
    let mut unifier = Unifier::default();
    let inferred = infer(source, &raw, dom, context, &mut unifier)?;
    inferred.close(source, &unifier)
}
