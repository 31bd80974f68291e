//! Answers about a document: `null` where there is nothing to say.

use super::documents::{Document, Documents};
use super::position::{offset, range};
use crate::diag::{Source, Span};
use crate::lang::inspect::{self, Kind};
use crate::session;
use lsp_types::{CompletionItemKind, Position, SymbolKind};
use serde_json::{Value, json};
use std::sync::Arc;

/// Returns the text with those of the files that it imports, the text alone if that fails, and the byte at a position.
fn place(document: &Document, documents: &Documents, at: Position) -> (Arc<Source>, usize) {
    let joined = documents.joined(document).unwrap_or_else(|_| document.source.clone());
    (joined, offset(&document.source.text, at))
}

/// Returns the type of a name, and what is said of it.
pub fn hover(document: &Document, documents: &Documents, at: Position) -> Value {
    let (source, at) = place(document, documents, at);
    inspect::hover(&source, at).map_or(Value::Null, |hover| {
        let text = format!("```patsat\n{}\n```\n\n{}", hover.code, hover.text);
        json!({
            "contents": {"kind": "markdown", "value": text.trim_end()},
            "range": range(&document.source.text, hover.span),
        })
    })
}

/// Returns the place where a name is defined.
pub fn definition(document: &Document, documents: &Documents, at: Position) -> Value {
    let (source, at) = place(document, documents, at);
    let place = inspect::definition(&source, at);
    json!(place.and_then(|span| documents.location(&source, span)))
}

/// Returns the changes that bring a document into the standard form: one that replaces the lines that differ, if any do.
pub fn formatted(document: &Document) -> Value {
    let Ok(new) = session::format(&document.source) else { return Value::Null };
    let old = &document.source.text;
    if *old == new {
        return json!([]);
    }
    let common = |a: &mut dyn Iterator<Item = &str>, b: &mut dyn Iterator<Item = &str>| -> usize {
        a.zip(b).take_while(|(x, y)| x == y).map(|(x, _)| x.len()).sum()
    };
    let lines = |text| str::split_inclusive(text, '\n');
    let start = common(&mut lines(old), &mut lines(&new));
    let end = common(&mut lines(&old[start..]).rev(), &mut lines(&new[start..]).rev());
    let changed = range(old, Span::new(start, old.len() - end));
    json!([{"range": changed, "newText": &new[start..new.len() - end]}])
}

/// Returns the outline of a document.
pub fn symbols(document: &Document) -> Value {
    let text = &document.source.text;
    let symbols = inspect::symbols(&document.source).into_iter().map(|symbol| {
        let kind = match symbol.kind {
            Kind::Entry => SymbolKind::METHOD,
            Kind::Function => SymbolKind::FUNCTION,
            Kind::Constant => SymbolKind::CONSTANT,
            Kind::Type => SymbolKind::STRUCT,
        };
        json!({
            "name": symbol.name, "detail": symbol.header, "kind": kind,
            "range": range(text, symbol.span), "selectionRange": range(text, symbol.name_span),
        })
    });
    symbols.collect()
}

/// Returns the names that may stand at a place.
pub fn completions(document: &Document, documents: &Documents, at: Position) -> Value {
    let (source, at) = place(document, documents, at);
    let items = inspect::candidates(&source, at).into_iter().map(|c| {
        let kind = match c.kind {
            _ if c.keyword => CompletionItemKind::KEYWORD,
            Some(Kind::Entry | Kind::Function) => CompletionItemKind::FUNCTION,
            Some(Kind::Constant) => CompletionItemKind::CONSTANT,
            Some(Kind::Type) => CompletionItemKind::STRUCT,
            None => CompletionItemKind::VARIABLE,
        };
        json!({"label": c.name, "detail": c.detail, "kind": kind})
    });
    items.collect()
}
