//! Names that may stand at a place. While a definition is written it cannot be parsed, so its names are taken from the
//! tokens.

use super::{Kind, Text, function};
use crate::diag::{Source, on_own_stack};
use crate::lang::check::{functions, members};
use crate::lang::lexer::{KEYWORDS, Tok};
use crate::lang::types::ScalarType;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A name that may stand at a place.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The name; behind a type and a point, without these.
    pub name: String,
    /// What it is, in one line; may be empty.
    pub detail: String,
    /// The kind of definition; none for a word of the language or a name without a known definition.
    pub kind: Option<Kind>,
    /// Whether it is a word of the language.
    pub keyword: bool,
}

impl Text<'_> {
    fn candidates(&self, at: usize) -> Vec<Candidate> {
        let of = |name: &str, detail: String, kind: Option<Kind>| Candidate {
            name: name.to_owned(),
            detail,
            kind,
            keyword: false,
        };
        let language = |name: &str, full: &str| {
            let detail = function(full).map_or(String::new(), |(code, _)| code);
            of(name, detail, Some(Kind::Function))
        };
        let before = self.source.text.get(..at).unwrap_or_default();
        let part_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '\'');
        let stem = before.trim_end_matches(part_of_name);
        if let Some(qualifier) = stem.strip_suffix('.') {
            let ty = qualifier.rsplit(|c| !part_of_name(c)).next().unwrap_or_default();
            let Some(ty) = ScalarType::from_name(ty) else { return vec![] };
            let types = ScalarType::ALL.into_iter().map(ScalarType::name);
            return types.chain(members()).map(|m| language(m, &format!("{ty}.{m}"))).collect();
        }
        let mut seen = BTreeSet::new();
        let mut found = vec![];
        let own = self.symbols().into_iter().map(|s| of(&s.name, s.header, Some(s.kind)));
        let written = self.lexed.tokens.iter().filter(|t| t.tok == Tok::Ident);
        // The name that is being written is none yet.
        let written = written.filter(|t| !(stem.len()..=at).contains(&(t.span.start as usize)));
        let written: BTreeSet<&str> = written.map(|t| self.slice(t.span)).collect();
        let local = written.into_iter().filter(|name| function(name).is_none());
        let local = local.map(|name| of(name, String::new(), None));
        let words = KEYWORDS.into_iter().chain(ScalarType::ALL.into_iter().map(ScalarType::name));
        let words = words.map(|word| Candidate { keyword: true, ..of(word, String::new(), None) });
        let language = functions().map(|name| language(name, name));
        for candidate in own.chain(local).chain(language).chain(words) {
            if seen.insert(candidate.name.clone()) {
                found.push(candidate);
            }
        }
        found
    }
}

/// Returns the names that may stand at a place.
pub fn candidates(source: &Arc<Source>, at: usize) -> Vec<Candidate> {
    on_own_stack(|| Text::new(source).candidates(at)).unwrap_or_default()
}
