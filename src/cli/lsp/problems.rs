//! Diagnostics, for each file that they are about.

use super::documents::{Document, Documents};
use crate::diag::{Code, Diagnostic, Failure, Severity, Source};
use crate::lang::parser;
use crate::session;
use lsp_types::{
    Diagnostic as Problem, DiagnosticRelatedInformation, DiagnosticSeverity, NumberOrString,
    PublishDiagnosticsParams, Range, Uri,
};
use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;
use std::sync::Arc;

/// The problems that were found by checking a document, for each address.
type Found = BTreeMap<String, Vec<Problem>>;

/// What is known of all documents. A file that several documents import has the problems that each of them shows.
#[derive(Default)]
pub struct Problems(BTreeMap<String, Found>);

impl Problems {
    /// Replaces what was found by checking a document. Returns what is to be shown now, for each file that changes.
    pub fn replace(
        &mut self,
        document: &str,
        found: Found,
        documents: &Documents,
    ) -> Vec<PublishDiagnosticsParams> {
        let changed: BTreeSet<String> = found.keys().cloned().collect();
        let before = self.0.insert(document.to_owned(), found).unwrap_or_default();
        let changed = changed.into_iter().chain(before.into_keys()).collect::<BTreeSet<_>>();
        let shown = changed.into_iter().filter_map(|uri| {
            let mut diagnostics: Vec<Problem> = vec![];
            for problem in self.0.values().filter_map(|found| found.get(&uri)).flatten() {
                // The places where a definition is used differ, not what is wrong with it.
                let same = |d: &Problem| {
                    (d.range, &d.code, &d.message)
                        == (problem.range, &problem.code, &problem.message)
                };
                if !diagnostics.iter().any(same) {
                    diagnostics.push(problem.clone());
                }
            }
            let version = documents.get(&uri).map(|d| d.version);
            Some(PublishDiagnosticsParams { uri: Uri::from_str(&uri).ok()?, diagnostics, version })
        });
        shown.collect()
    }
}

/// Checks a document.
pub fn check(document: &Document, documents: &Documents) -> Found {
    let diagnostics = match documents.joined(document) {
        Ok(source) => session::check(&source, false).1,
        Err(Failure(mut diagnostics)) => {
            diagnostics.extend(elsewhere(&document.source, &diagnostics));
            diagnostics
        }
    };
    found(&diagnostics, document, documents)
}

/// Returns what is shown of diagnostics. The document has an entry even if nothing is wrong with it.
pub fn found(diagnostics: &[Diagnostic], document: &Document, documents: &Documents) -> Found {
    let mut found = Found::from([(document.uri.to_string(), vec![])]);
    for d in diagnostics {
        let (uri, problem) = problem(d, document, documents);
        found.entry(uri.to_string()).or_default().push(problem);
    }
    found
}

/// Returns an error at the import of a file that cannot be parsed: nothing else of the document is checked.
fn elsewhere(source: &Arc<Source>, diagnostics: &[Diagnostic]) -> Option<Diagnostic> {
    let other =
        diagnostics.iter().find_map(|d| d.source.as_ref().filter(|s| s.name != source.name))?;
    let (file, _) = parser::parse(source);
    let stem =
        |path: &str| path.rsplit('/').next().unwrap_or(path).trim_end_matches(".pat").to_owned();
    let same = file.imports.iter().find(|i| stem(&i.path) == stem(&other.name));
    let import = same.or(file.imports.first())?;
    let message = format!("{} has errors, so that this file is not checked", other.name);
    Some(Diagnostic::error(Code::Parse, message).at(source, import.span, ""))
}

/// Returns a diagnostic in the form of the protocol, and the file that it is about.
fn problem(d: &Diagnostic, document: &Document, documents: &Documents) -> (Uri, Problem) {
    let place = |label: &crate::diag::Label| documents.location(d.source.as_ref()?, label.span);
    let primary = d.labels.iter().position(|l| l.primary).unwrap_or(0);
    let at = d.labels.get(primary).and_then(place);
    let (uri, range) = at.map_or((document.uri.clone(), Range::default()), |at| (at.uri, at.range));
    let mut message = d.message.clone();
    let own = d.labels.get(primary).map(|l| l.text.as_str()).filter(|t| !t.is_empty());
    let notes = d.notes.iter().map(|n| format!("note: {n}"));
    let help = d.help.iter().map(|h| format!("help: {h}"));
    own.map(str::to_owned).into_iter().chain(notes).chain(help).for_each(|line| {
        message.push('\n');
        message.push_str(&line);
    });
    let others = d.labels.iter().enumerate().filter(|(i, _)| *i != primary);
    let related = others.filter_map(|(_, label)| {
        let text = if label.text.is_empty() { "here" } else { &label.text };
        Some(DiagnosticRelatedInformation { location: place(label)?, message: text.to_owned() })
    });
    let related: Vec<_> = related.collect();
    let severity = match d.severity {
        Severity::Error => DiagnosticSeverity::ERROR,
        Severity::Warning => DiagnosticSeverity::WARNING,
    };
    let problem = Problem {
        range,
        severity: Some(severity),
        code: Some(NumberOrString::String(d.code.as_str().to_owned())),
        source: Some("patsat".to_owned()),
        message,
        related_information: (!related.is_empty()).then_some(related),
        ..Problem::default()
    };
    (uri, problem)
}
