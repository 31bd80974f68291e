//! Comments that say something: documentation, and how inputs are generated.

use super::Parser;
use crate::diag::Span;
use crate::lang::ast::Name;
use crate::lang::lexer::Comment;

impl Parser<'_> {
    /// Returns the comments directly above the token at `index`.
    pub(super) fn comments_above(&self, index: usize) -> &[Comment] {
        let newlines = |from: u32, to: u32| {
            self.text(Span { start: from, end: to }).bytes().filter(|b| *b == b'\n').count()
        };
        let end = self.comments.partition_point(|c| c.before <= index);
        let (mut start, mut next) = (end, self.token_at(index).span.start);
        while let Some(comment) = start.checked_sub(1).and_then(|i| self.comments.get(i)) {
            let above = comment.before == index && !comment.trailing;
            if !above || newlines(comment.span.end, next) > 1 {
                break;
            }
            (start, next) = (start - 1, comment.span.start);
        }
        self.comments.get(start..end).unwrap_or_default()
    }

    /// Returns the lines of comments, without dashes. An attribute is none.
    pub(super) fn lines(&self, comments: &[Comment]) -> String {
        let texts = comments.iter().map(|c| self.text(c.span)).filter(|t| t.starts_with('-'));
        let lines: Vec<_> = texts.map(|t| t.trim_start_matches('-').trim()).collect();
        lines.join("\n").trim().to_owned()
    }

    /// Returns what stands behind `gen:` in comments.
    pub(super) fn generators(&self, comments: &[Comment]) -> Vec<Name> {
        let line = |c: &Comment| {
            let text = self.text(c.span).trim_start_matches('-').trim_start();
            let text = text.strip_prefix("gen:")?.trim();
            let start = c.span.end as usize - text.len();
            Some(Name { text: text.to_owned(), span: Span::new(start, c.span.end as usize) })
        };
        comments.iter().filter_map(line).collect()
    }
}
