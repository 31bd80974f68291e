//! Renders diagnostics, as text and as JSON.

use super::clean::{clean, clean_source};
use crate::diag::{Diagnostic, Label, Severity};
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use serde_json::{Value, json};
use std::ops::Range;

/// Renders a diagnostic as text, with the lines of the source that it refers to.
pub fn text(d: &Diagnostic, styled: bool) -> String {
    let level = match d.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let message = clean(&d.message);
    let title = level.primary_title(&*message).id(d.code.as_str());
    let [notes, help] = [&d.notes, &d.help].map(|l| l.iter().map(|t| clean(t)).collect::<Vec<_>>());
    let labels: Vec<_> = d.labels.iter().map(|l| clean(&l.text)).collect();
    let mut group = Group::with_title(title);
    let parts = parts(d);
    let texts: Vec<_> =
        parts.iter().map(|(name, text, _)| (clean(name), clean_source(text))).collect();
    for ((_, part, start), (path, shown)) in parts.iter().zip(&texts) {
        let mut snippet = Snippet::source(&**shown).path(Some(&**path));
        for (label, text) in d.labels.iter().zip(&labels) {
            if start_of(d, label) != *start {
                continue;
            }
            let kind =
                if label.primary { AnnotationKind::Primary } else { AnnotationKind::Context };
            let Range { start: from, end: to } = label.span.range();
            let range = clip(part, from - start..to.max(from) - start);
            let text = (!text.is_empty()).then_some(&**text);
            snippet = snippet.annotation(kind.span(range).label(text));
        }
        group = group.element(snippet);
    }
    for note in &notes {
        group = group.element(Level::NOTE.message(&**note));
    }
    for help in &help {
        group = group.element(Level::HELP.message(&**help));
    }
    let renderer = if styled { Renderer::styled() } else { Renderer::plain() };
    renderer.render(&[group])
}

/// Returns the texts that a diagnostic shows, that of the error itself first: name, text, and first byte in the source.
fn parts(d: &Diagnostic) -> Vec<(&str, &str, usize)> {
    let Some(source) = &d.source else { return vec![] };
    let mut out: Vec<(&str, &str, usize)> = vec![];
    let (primary, others): (Vec<&Label>, Vec<&Label>) = d.labels.iter().partition(|l| l.primary);
    for label in primary.into_iter().chain(others) {
        let (name, range) = source.part(label.span.start as usize);
        if out.iter().all(|(.., start)| *start != range.start) {
            let start = range.start;
            out.push((name, source.text.get(range).unwrap_or_default(), start));
        }
    }
    out
}

/// Returns the first byte of the text that a label belongs to.
fn start_of(d: &Diagnostic, label: &Label) -> usize {
    d.source.as_ref().map_or(0, |s| s.part(label.span.start as usize).1.start)
}

/// Clips a range to a text and extends it to the boundaries of characters.
fn clip(text: &str, range: Range<usize>) -> Range<usize> {
    let start = text.floor_char_boundary(range.start.min(text.len()));
    let end = text.ceil_char_boundary(range.end.min(text.len()));
    start..end.max(start)
}

/// Renders a diagnostic as a JSON object. Spans are in bytes; lines and columns count from 1.
pub fn json(d: &Diagnostic) -> Value {
    let severity = match d.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let parts = parts(d);
    let place = |label: &Label| {
        let start = start_of(d, label);
        let text = parts.iter().find(|(.., s)| *s == start).map_or("", |(_, text, _)| text);
        let at = label.span.start as usize - start;
        let before = &text[..text.floor_char_boundary(at.min(text.len()))];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |l| l.chars().count()) + 1;
        (line, column)
    };
    let labels: Vec<Value> = d
        .labels
        .iter()
        .map(|l| {
            let (line, column) = place(l);
            let start = start_of(d, l);
            let [from, to] =
                [l.span.start, l.span.end].map(|at| (at as usize).saturating_sub(start));
            json!({
                "start": from, "end": to, "line": line, "column": column,
                "text": l.text, "primary": l.primary,
            })
        })
        .collect();
    json!({
        "code": d.code.as_str(),
        "severity": severity,
        "message": d.message,
        "file": parts.first().map(|p| p.0).or(d.source.as_ref().map(|s| s.name.as_str())),
        "labels": labels,
        "notes": d.notes,
        "help": d.help,
        "exit": d.code.exit() as u8,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::{Code, Source, Span};

    #[test]
    fn shows_the_place() {
        let source = Source::new("a.pat", "entry f = é\n");
        let d = Diagnostic::error(Code::UnknownName, "nothing is named `é`")
            .at(&source, Span::new(10, 11), "here")
            .help("name something");
        let shown = text(&d, false);
        assert!(shown.contains("error[E0201]: nothing is named"), "{shown}");
        assert!(shown.contains("a.pat:1:11") && shown.contains("help: name something"), "{shown}");
        assert_eq!(json(&d)["labels"][0]["column"], 11);
        // Control characters are removed everywhere.
        let evil = "\u{1b}]0;x\u{7}\u{9b}2J";
        let source = Source::new(evil, format!("entry {evil} = 1\n"));
        let d = Diagnostic::error(Code::Parse, evil).at(&source, Span::new(0, 5), evil);
        let shown = text(&d.note(evil).help(evil), false);
        assert!(!shown.contains(|c: char| c.is_control() && c != '\n'), "{shown:?}");
        // A place beyond the text must not panic.
        let beyond = Diagnostic::error(Code::Parse, "m").at(&source, Span::new(90, 99), "");
        text(&beyond, true);
        json(&beyond);
    }
}
