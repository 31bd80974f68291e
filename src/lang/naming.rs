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

/// Returns the edit distance of two words, ignoring case.
pub fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) =
        (a.to_lowercase().chars().collect(), b.to_lowercase().chars().collect());
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let cost = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = cost.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// Returns the error for a name that is defined at `first`, too.
pub fn duplicate(source: &Arc<Source>, name: &str, span: Span, first: Span) -> Diagnostic {
    Diagnostic::error(Code::DuplicateName, format!("`{name}` is defined twice"))
        .at(source, span, "defined again")
        .also(first, "first defined here")
        .help("rename one of them")
}
