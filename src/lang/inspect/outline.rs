//! The outline of a file: what it defines.

use super::Text;
use crate::diag::{Source, Span, on_own_stack};
use std::sync::Arc;

/// What a definition is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An `entry`.
    Entry,
    /// A `def` with parameters.
    Function,
    /// A `def` without parameters.
    Constant,
    /// A named type.
    Type,
}

/// A definition in a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Symbol {
    /// Its name.
    pub name: String,
    /// Its head in one line.
    pub header: String,
    /// What it is.
    pub kind: Kind,
    /// The whole definition.
    pub span: Span,
    /// Its name's place.
    pub name_span: Span,
}

impl Text<'_> {
    pub(super) fn symbols(&self) -> Vec<Symbol> {
        let symbol = |name: &crate::lang::ast::Name, header: String, kind, end: Span| {
            let tokens = &self.lexed.tokens;
            let at = tokens.partition_point(|t| t.span.start < name.span.start);
            let keyword = at.checked_sub(1).and_then(|i| tokens.get(i));
            let span = keyword.map_or(name.span, |t| t.span).to(end);
            Symbol { name: name.text.clone(), header, kind, span, name_span: name.span }
        };
        let decls = self.file.decls.iter().map(|d| {
            let kind = match (d.entry, d.params.is_empty()) {
                (true, _) => Kind::Entry,
                (false, true) => Kind::Constant,
                (false, false) => Kind::Function,
            };
            symbol(&d.name, self.header(d), kind, d.body.span)
        });
        let types = self
            .file
            .types
            .iter()
            .map(|d| symbol(&d.name, format!("type {}", d.name.text), Kind::Type, d.body.span));
        let mut symbols: Vec<_> = decls.chain(types).collect();
        symbols.sort_by_key(|s| s.span);
        symbols
    }
}

/// Returns what a file defines, in order.
pub fn symbols(source: &Arc<Source>) -> Vec<Symbol> {
    on_own_stack(|| Text::new(source).symbols()).unwrap_or_default()
}
