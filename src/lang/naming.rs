//! What several stages say about names: that one is defined twice, and which other name may be meant.

use crate::diag::{Code, Diagnostic, Source, Span};
use std::sync::Arc;

/// Returns the known name most similar to an unknown one, if there is a similar one.
pub fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    // The comparison takes time proportional to the product of the lengths.
    if name.len() > 64 {
        return None;
    }
    let limit = (name.len() / 3).clamp(1, 3);
    known
        .filter(|k| k.len().abs_diff(name.len()) <= limit && *k != name)
        .map(|k| (distance(name, k), k))
        .filter(|(d, k)| *d <= limit && *d < k.len())
        .min_by_key(|(d, _)| *d)
        .map(|(_, k)| k)
}

/// Adds the known name that is probably meant to an error about an unknown one, if there is a similar one.
#[must_use]
pub fn meant<'n>(d: Diagnostic, name: &str, known: impl Iterator<Item = &'n str>) -> Diagnostic {
    match nearest(name, known) {
        Some(near) => d.help(format!("did you mean `{near}`?")),
        None => d,
    }
}

/// Returns the edit distance of two words, ignoring case. Two letters in the wrong order are one mistake.
pub fn distance(a: &str, b: &str) -> usize {
    strsim::osa_distance(&a.to_lowercase(), &b.to_lowercase())
}

/// Returns the error for a name that is defined at `first`, too.
pub fn duplicate(source: &Arc<Source>, name: &str, span: Span, first: Span) -> Diagnostic {
    Diagnostic::error(Code::DuplicateName, format!("`{name}` is defined twice"))
        .at(source, span, "defined again")
        .also(first, "first defined here")
        .help("rename one of them")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name() {
        assert_eq!(distance("widht", "width"), 1);
        assert_eq!(distance("Map", "map2"), 1);
        assert_eq!(distance("abc", ""), 3);
        assert_eq!(nearest("valeus", ["value", "values"].into_iter()), Some("values"));
        assert_eq!(nearest("x", ["y"].into_iter()), None);
    }
}
