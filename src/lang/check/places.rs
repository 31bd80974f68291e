//! The types at one place of a text, for editors. The checker keeps those of the expressions and bound names that contain
//! the place, if one is asked for. The innermost is what stands there.

use super::elab::Checker;
use super::infer::Ty;
use super::{entry, is_annotated, names};
use crate::diag::{Code, Limits, Source, Span};
use crate::lang::ast::{Decl, File};
use std::sync::Arc;

/// A place, and the types of what contains it.
#[derive(Clone)]
pub struct Watch {
    at: u32,
    /// The places that contain it, each with its type.
    pub seen: Vec<(Span, Ty)>,
}

impl Watch {
    /// Returns a watch that has seen nothing.
    pub fn new(at: u32) -> Watch {
        Watch { at, seen: vec![] }
    }
}

impl Checker<'_> {
    /// Keeps the type of an expression or of a name that is bound, if it contains the place that is asked for.
    pub fn seen(&mut self, span: Span, ty: &Ty) {
        if let Some(watch) = &mut self.watch
            && (span.start..span.end).contains(&watch.at)
        {
            watch.seen.push((span, ty.clone()));
        }
    }
}

/// Returns the types of the innermost expression or bound name that contains a place, in a file that may have errors.
/// What is in a definition whose parameters have no types may have another type at each use.
pub fn types_at(source: &Arc<Source>, file: &File, at: usize) -> Option<(Span, Vec<String>)> {
    let at = u32::try_from(at).ok()?;
    let (decls, wrong) = names::resolve(source, file);
    // What is defined by itself cannot be inlined.
    if wrong.iter().any(|d| d.code == Code::Recursion) {
        return None;
    }
    let holds = |d: &&Decl| d.name.span.start <= at && at < d.body.span.end;
    let whole = file.decls.iter().filter(|d| d.entry || is_annotated(d));
    let (own, others): (Vec<&Decl>, Vec<&Decl>) = whole.partition(holds);
    let mut left = Limits::DEFAULT.file_expressions;
    let mut types = |decls_here: Vec<&Decl>| {
        let each = decls_here.into_iter();
        let mut found: Vec<_> =
            each.flat_map(|d| entry::types_at(source, &decls, d, &mut left, at)).collect();
        let innermost = found.iter().map(|(span, _)| *span).min_by_key(|s| s.end - s.start)?;
        found.retain(|(span, _)| *span == innermost);
        let mut types = vec![];
        for (_, ty) in found {
            if !types.contains(&ty) {
                types.push(ty);
            }
        }
        Some((innermost, types))
    };
    types(own).or_else(|| types(others))
}
