//! The functions that are written in the language itself (`prelude.pat`).
//!
//! Places in its text begin at [`BASE`], so that they differ from those in a program: the checker moves what it finds
//! there to the place where the program uses the function, and resolves names there without the program's own.

use super::ast::Decl;
use super::parser;
use crate::diag::{Limits, Source, Span};
use std::collections::BTreeMap;
use std::sync::LazyLock;

const TEXT: &str = include_str!("prelude.pat");

/// The place of the first byte, behind that of any program.
const BASE: usize = 2 * Limits::DEFAULT.program_bytes;

static DECLS: LazyLock<BTreeMap<String, Decl>> = LazyLock::new(|| {
    let (file, ..) = parser::parse_at(&Source::new("prelude.pat", TEXT), BASE, false);
    file.decls.into_iter().map(|d| (d.name.text.clone(), d)).collect()
});

/// Returns the function with this name.
pub fn get(name: &str) -> Option<&'static Decl> {
    DECLS.get(name)
}

/// Returns all names.
pub fn names() -> impl Iterator<Item = &'static str> {
    DECLS.keys().map(String::as_str)
}

/// Returns whether a place is in the text of the prelude.
pub fn holds(span: Span) -> bool {
    span.start as usize >= BASE
}

/// Returns the text from a place on.
fn from(span: Span) -> &'static str {
    TEXT.get((span.start as usize).saturating_sub(BASE)..).unwrap_or_default()
}

/// Returns what stands at a place.
pub fn excerpt(span: Span) -> &'static str {
    from(span).get(..span.range().len()).unwrap_or_default()
}

/// Returns the definition as written.
fn text(decl: &Decl) -> String {
    let text = from(decl.name.span).split("\n\n").next().unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Says what a function is: its definition if that is short, else its parameters and its documentation.
pub fn about(decl: &Decl) -> String {
    const SHORT: usize = 120;
    let (name, text) = (&decl.name.text, text(decl));
    if text.len() <= SHORT {
        return format!("`{name}` is defined as `{text}`");
    }
    let (head, _) = text.split_once(" =").unwrap_or((&text, ""));
    let doc = decl.doc.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("`{head}`: {doc}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lang::{check, format};

    #[test]
    fn the_prelude_is_well_formed() {
        let source = Source::new("prelude.pat", TEXT);
        assert_eq!(format(&source).expect("it parses"), TEXT);
        assert_eq!(check(&source).1, vec![]);
        assert!(DECLS.values().all(|d| !d.entry && !d.doc.is_empty() && !d.params.is_empty()));
        let said = |name| about(get(name).expect("a function"));
        assert_eq!(said("sum"), "`sum` is defined as `sum xs = reduce (+) 0 xs`");
        let long =
            "`sort_by_key key xs`: The elements in the order of the numbers that `key` gives;";
        assert!(said("sort_by_key").starts_with(long));
    }
}
