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

/// Returns the definition as written.
pub fn text(decl: &Decl) -> String {
    let Span { start, .. } = decl.name.span;
    let text = TEXT.get((start as usize).saturating_sub(BASE)..);
    let text = text.unwrap_or_default().split("\n\n").next().unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
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
        assert_eq!(text(get("sum").expect("a function")), "sum xs = reduce (+) 0 xs");
    }
}
