//! Checks names, types and sizes: converts the syntax tree to the typed core.
//!
//! Definitions are inlined while types are inferred. Every function is known at compile time where it is used, so
//! that functions need no types. The checker collects errors and continues after the first.

mod advice;
mod apply;
mod builtins;
mod elab;
mod entry;
mod env;
mod finish;
mod infer;
mod ir;
mod names;
mod nesting;
mod places;
mod prims;
mod records;
mod sizes;
mod slices;
mod subscripts;
mod updates;
mod uses;

pub use builtins::members;
pub use names::{Mention, Referent, mentions};
pub use places::types_at;

use super::ast::{Decl, File, Name, PatKind};
use super::naming::meant;
use super::parser;
use super::size::Size;
use super::typed::Entry;
use crate::diag::{
    Code, Diagnostic, Diagnostics, Failure, Limits, Result, Severity, Source, on_own_stack,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Sizes that general inference introduced, each with the equal declared size.
pub type FreshSizes = Vec<(String, Size)>;

/// Returns the names of all functions of the language and of its prelude.
pub fn functions() -> impl Iterator<Item = &'static str> {
    builtins::names().chain(super::prelude::names())
}

/// Checks a whole file. Returns the entries with their declared sizes, and all diagnostics.
pub fn check(source: &Arc<Source>) -> (Vec<Entry>, Vec<Diagnostic>) {
    on_own_stack(|| check_here(source)).unwrap_or_else(|failure| (vec![], failure.0))
}

fn check_here(source: &Arc<Source>) -> (Vec<Entry>, Vec<Diagnostic>) {
    let (file, mut diagnostics) = parsed(source);
    if parser::failed(&diagnostics) {
        return (vec![], diagnostics);
    }
    let (decls, wrong) = names::resolve(source, &file);
    if !wrong.is_empty() {
        return (vec![], wrong);
    }
    diagnostics.extend(names::unchecked(source, &file, &decls));
    diagnostics.extend(without_entry(source, &file));
    if let Some(main) = decls.get("main").filter(|_| !file.decls.iter().any(|d| d.entry)) {
        let d = Diagnostic::warning(Code::NoEffect, "nothing is compiled: there is no `entry`");
        let d = d.at(source, main.name.span, "");
        diagnostics.push(d.help("write `entry main` in place of `def main`"));
    }
    let mut entries = vec![];
    let mut left = Limits::DEFAULT.file_expressions;
    for decl in &file.decls {
        if decl.entry {
            let (entry, found) = entry::declared(source, &decls, decl, &mut left);
            entries.extend(entry);
            diagnostics.extend(found);
        } else if is_annotated(decl) {
            diagnostics.extend(entry::definition(source, &decls, decl, &mut left));
        }
    }
    (entries, distinct(diagnostics))
}

/// Returns warnings for the `gen:` lines of no entry.
fn without_entry(source: &Arc<Source>, file: &File) -> Vec<Diagnostic> {
    let entries = file.decls.iter().filter(|d| d.entry);
    let used: BTreeSet<_> =
        entries.flat_map(|d| file.generators_of(d)).map(|line| line.span).collect();
    let lost = file.generators.iter().filter(|line| !used.contains(&line.span));
    let warned = lost.map(|line| {
        let text = "this `gen:` line belongs to no entry, and has no effect";
        let d = Diagnostic::warning(Code::NoEffect, text).at(source, line.span, "");
        d.help("move it directly above the entry whose parameters it describes")
    });
    warned.collect()
}

/// Returns what stands behind `gen:` in the lines that belong to an entry of a program that is correct.
pub fn generators(source: &Arc<Source>, entry: &str) -> Result<Vec<Name>> {
    on_own_stack(|| {
        let (file, _) = parser::parse(source);
        let decl = file.decls.iter().find(|d| d.entry && d.name.text == entry);
        decl.map_or(vec![], |decl| file.generators_of(decl).to_vec())
    })
}

/// Parses a program. Its imports must have been replaced by what they name, since nothing here reads files.
fn parsed(source: &Arc<Source>) -> (File, Vec<Diagnostic>) {
    let (file, mut diagnostics) = parser::parse(source);
    diagnostics.extend(file.imports.iter().map(|import| {
        let message = format!("the file `{}` is not part of this text", import.path);
        let d = Diagnostic::error(Code::UnknownName, message).at(source, import.span, "");
        d.help("imports are resolved where programs are read from files")
    }));
    (file, diagnostics)
}

/// Checks one entry with its declared sizes. The name may be omitted if there is only one entry.
pub fn check_entry(source: &Arc<Source>, name: Option<&str>) -> Result<Entry> {
    with_entry(source, name, |decls, decl| {
        let mut left = Limits::DEFAULT.inlined_expressions;
        let (entry, diagnostics) = entry::declared(source, decls, decl, &mut left);
        finished(entry, diagnostics)
    })
}

/// Checks one entry with sizes as general as its body allows. Also returns every size of the result with the
/// declared size that it equals. Lengths that are numbers stay so unless `numbers`. If the general check fails, the entry
/// has its declared sizes.
pub fn check_entry_general(
    source: &Arc<Source>,
    name: Option<&str>,
    numbers: bool,
) -> Result<(Entry, FreshSizes)> {
    with_entry(source, name, |decls, decl| {
        let mut left = Limits::DEFAULT.inlined_expressions;
        let (entry, diagnostics) = entry::declared(source, decls, decl, &mut left);
        let entry = finished(entry, diagnostics)?;
        Ok(entry::general(source, decls, decl, &entry, numbers).unwrap_or_else(|| {
            let same = entry.sizes.iter().map(|n| (n.clone(), Size::var(n))).collect();
            (entry, same)
        }))
    })
}

fn with_entry<T: Send>(
    source: &Arc<Source>,
    name: Option<&str>,
    check: impl FnOnce(&BTreeMap<&str, &Decl>, &Decl) -> Result<T> + Send,
) -> Result<T> {
    on_own_stack(|| with_entry_here(source, name, check))?
}

fn with_entry_here<T>(
    source: &Arc<Source>,
    name: Option<&str>,
    check: impl FnOnce(&BTreeMap<&str, &Decl>, &Decl) -> Result<T>,
) -> Result<T> {
    let (file, diagnostics) = parsed(source);
    if parser::failed(&diagnostics) {
        return Err(Failure(diagnostics));
    }
    let (decls, wrong) = names::resolve(source, &file);
    if !wrong.is_empty() {
        return Err(Failure(wrong));
    }
    check(&decls, find_entry(source, &file, name)?)
}

fn find_entry<'f>(source: &Arc<Source>, file: &'f File, name: Option<&str>) -> Result<&'f Decl> {
    let entries: Vec<&Decl> = file.decls.iter().filter(|d| d.entry).collect();
    let listed: Vec<&str> = entries.iter().map(|d| d.name.text.as_str()).collect();
    let fail = |message: String| {
        let mut d = Diagnostic::error(Code::NoEntry, message);
        d.source = Some(source.clone());
        if listed.is_empty() {
            return d.help("mark what is to be compiled with `entry` in place of `def`");
        }
        d.note(format!("entries: {}", listed.join(", ")))
    };
    match name {
        Some(name) => match entries.iter().find(|d| d.name.text == name) {
            Some(decl) => Ok(decl),
            None => {
                let d = fail(format!("there is no entry `{name}` in {}", source.name));
                let is_def = file.decls.iter().any(|d| d.name.text == name);
                Err(if is_def {
                    d.help(format!("`{name}` is a `def`; mark it with `entry`")).into()
                } else {
                    meant(d, name, listed.iter().copied()).into()
                })
            }
        },
        None => match entries.as_slice() {
            [decl] => Ok(decl),
            [] => Err(fail(format!("{} has no entry", source.name)).into()),
            _ => {
                let d = fail(format!("{} has several entries", source.name));
                Err(d.help(format!("say which: `{}:{}`", source.name, listed[0])).into())
            }
        },
    }
}

fn finished(entry: Option<Entry>, diagnostics: Vec<Diagnostic>) -> Result<Entry> {
    match entry {
        Some(entry) => Ok(entry),
        None => Err(Failure(distinct(diagnostics))),
    }
}

/// Returns whether every parameter has a type, so that a definition can be checked without its uses.
fn is_annotated(decl: &Decl) -> bool {
    fn typed(kind: &PatKind) -> bool {
        match kind {
            PatKind::Typed(_, ty) => !ty.is_function(),
            PatKind::Paren(p) => typed(&p.kind),
            PatKind::Record(fields) => {
                fields.iter().all(|(_, p)| p.as_ref().is_some_and(|p| typed(&p.kind)))
            }
            PatKind::Tuple(ps) => ps.iter().all(|p| typed(&p.kind)),
            PatKind::Name(_) | PatKind::Wild => false,
        }
    }
    decl.binders.types.is_empty() && decl.params.iter().all(|p| typed(&p.kind))
}

/// Removes repeated diagnostics: an error in a definition is found at every use of it. Sorts the others by place,
/// errors before warnings.
fn distinct(diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let place = |d: &Diagnostic| d.labels.iter().find(|l| l.primary).map(|l| l.span);
    let mut diagnostics = diagnostics;
    let mut seen = BTreeSet::new();
    diagnostics.retain(|d| place(d).is_none_or(|place| seen.insert((d.code, place))));
    diagnostics.sort_by_key(|d| (d.severity == Severity::Warning, place(d)));
    let mut out = Diagnostics::default();
    out.extend(diagnostics);
    out.into_vec()
}
