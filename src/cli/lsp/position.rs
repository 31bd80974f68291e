//! Places in a text: bytes here, lines and UTF-16 units in the protocol.

use crate::diag::Span;
use lsp_types::{Position, Range};

/// Returns the position of a byte.
pub fn position(text: &str, at: usize) -> Position {
    let at = text.floor_char_boundary(at.min(text.len()));
    let before = &text[..at];
    let line = before.matches('\n').count();
    let column = before.rsplit('\n').next().map_or(0, |line| line.encode_utf16().count());
    let clip = |x: usize| u32::try_from(x).unwrap_or(u32::MAX);
    Position { line: clip(line), character: clip(column) }
}

/// Returns the range of a span.
pub fn range(text: &str, span: Span) -> Range {
    let end = text.ceil_char_boundary((span.end as usize).min(text.len()));
    Range { start: position(text, span.start as usize), end: position(text, end) }
}

/// Returns the byte at a position. Behind the end of a line is its end, behind the last line that of the text.
pub fn offset(text: &str, position: Position) -> usize {
    let mut start = 0;
    for _ in 0..position.line {
        match text[start..].find('\n') {
            Some(end) => start += end + 1,
            None => return text.len(),
        }
    }
    let line = text[start..].split('\n').next().unwrap_or_default();
    let line = line.strip_suffix('\r').unwrap_or(line);
    let mut left = position.character as usize;
    for (at, c) in line.char_indices() {
        if left < c.len_utf16() {
            return start + at;
        }
        left -= c.len_utf16();
    }
    start + line.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_units_of_utf16() {
        let text = "aä𝄞b\r\nx\n";
        for (at, line, character) in
            [(0, 0, 0), (1, 0, 1), (3, 0, 2), (7, 0, 4), (8, 0, 5), (10, 1, 0), (12, 2, 0)]
        {
            let place = Position { line, character };
            assert_eq!((position(text, at), offset(text, place)), (place, at));
        }
        // Inside a character, and behind the ends.
        assert_eq!(position(text, 4), Position { line: 0, character: 2 });
        assert_eq!(position(text, 99), Position { line: 2, character: 0 });
        let at = |line, character| offset(text, Position { line, character });
        assert_eq!([at(0, 3), at(0, 99), at(1, 5), at(7, 0)], [3, 8, 11, 12]);
        assert_eq!(at(u32::MAX, u32::MAX), 12);
    }
}
