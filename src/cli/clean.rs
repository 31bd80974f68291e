//! Makes text from files, stores, plans and drivers safe for a terminal.

use std::borrow::Cow;

/// Replaces characters that move a terminal's cursor, change its state or reorder the displayed text by their escaped
/// code points. Newlines and tabs stay.
pub fn clean(text: &str) -> Cow<'_, str> {
    if !text.contains(unsafe_to_show) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match unsafe_to_show(c) {
            true => out.extend(c.escape_unicode()),
            false => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// As [`clean`], for text that spans refer to: replaces each unsafe character by one of the same number of bytes, so
/// that spans stay valid.
pub fn clean_source(text: &str) -> Cow<'_, str> {
    let sign = |c: char| match c.len_utf8() {
        _ if !unsafe_to_show(c) => c,
        1 => '?',
        2 => '\u{bf}',
        _ => '\u{25a1}',
    };
    match text.contains(unsafe_to_show) {
        true => Cow::Owned(text.chars().map(sign).collect()),
        false => Cow::Borrowed(text),
    }
}

/// As [`clean`], on one line, for names in tables.
pub fn clean_name(text: &str) -> String {
    clean(text).replace(['\n', '\t'], " ")
}

fn unsafe_to_show(c: char) -> bool {
    let directs =
        matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}');
    directs || (c.is_control() && c != '\n' && c != '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_directs_a_terminal_is_shown_as_numbers() {
        assert_eq!(clean("a\tb\nç λ"), "a\tb\nç λ");
        assert_eq!(clean("\u{1b}[2Jx"), "\\u{1b}[2Jx");
        assert_eq!(clean("a\rb\u{7}\u{9b}31m"), "a\\u{d}b\\u{7}\\u{9b}31m");
        assert_eq!(clean("\u{202e}cba"), "\\u{202e}cba");
        let text = "a\u{1b}\u{9b}\u{2028}b\n";
        assert_eq!(clean_source(text), "a?\u{bf}\u{25a1}b\n");
        assert_eq!(clean_source(text).len(), text.len());
        assert_eq!(clean_name("a\nb\u{1b}"), "a b\\u{1b}");
    }
}
