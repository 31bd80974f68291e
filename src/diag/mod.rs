//! Spans, diagnostics with codes, and every limit named once.
//!
//! Errors are data: a [`Diagnostic`] has a [`Code`], a message, labelled spans in a [`Source`],
//! notes and help. Nothing here prints; rendering belongs to `cli`.

mod code;
mod interrupt;
mod limits;
mod stack;

pub use code::{Code, Exit};
pub use interrupt::Interrupt;
pub use limits::Limits;
pub use stack::{STACK_BYTES, no_thread, not_started, on_own_stack};

use std::fmt;
use std::sync::Arc;

/// A half-open byte range in a [`Source`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The span from `start` to `end` (bytes).
    pub fn new(start: usize, end: usize) -> Self {
        let clip = |x: usize| u32::try_from(x).unwrap_or(u32::MAX);
        Span { start: clip(start), end: clip(end) }
    }

    /// The smallest span that covers both.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// As a byte range for slicing.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// A named text that spans point into: a program, a rule file, a cost model, a build log.
#[derive(PartialEq, Eq)]
pub struct Source {
    /// File name, or a description such as `<argument>`.
    pub name: String,
    /// The whole text.
    pub text: String,
}

impl fmt::Debug for Source {
    /// The name alone: a text in every diagnostic would hide the rest.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source({:?})", self.name)
    }
}

impl Source {
    /// A shared source.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Arc<Source> {
        Arc::new(Source { name: name.into(), text: text.into() })
    }
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// The command cannot go on.
    Error,
    /// The command goes on; the person should know.
    Warning,
}

/// A span with a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Where.
    pub span: Span,
    /// What is there; may be empty.
    pub text: String,
    /// Whether this is the place of the error itself (as against related places).
    pub primary: bool,
}

/// What is wrong, where, why, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The stable code; also decides the exit status.
    pub code: Code,
    /// Error or warning.
    pub severity: Severity,
    /// One line.
    pub message: String,
    /// The text the labels point into.
    pub source: Option<Arc<Source>>,
    /// Labelled spans.
    pub labels: Vec<Label>,
    /// Further facts.
    pub notes: Vec<String>,
    /// What to do about it.
    pub help: Vec<String>,
}

impl Diagnostic {
    /// An error without a place.
    pub fn error(code: Code, message: impl Into<String>) -> Self {
        Diagnostic {
            code,
            severity: Severity::Error,
            message: message.into(),
            source: None,
            labels: vec![],
            notes: vec![],
            help: vec![],
        }
    }

    /// A warning without a place.
    pub fn warning(code: Code, message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(code, message) }
    }

    /// Points at `span` of `source`: the place of the error.
    #[must_use]
    pub fn at(mut self, source: &Arc<Source>, span: Span, text: impl Into<String>) -> Self {
        self.source = Some(source.clone());
        self.labels.push(Label { span, text: text.into(), primary: true });
        self
    }

    /// Points at a related place of the same source.
    #[must_use]
    pub fn also(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label { span, text: text.into(), primary: false });
        self
    }

    /// Adds a fact.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }

    /// Adds advice.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help.push(text.into());
        self
    }
}

/// Diagnostics as they are found. Keeps the first [`Limits::diagnostics`] and counts the others.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    kept: Vec<Diagnostic>,
    more: usize,
}

impl Diagnostics {
    /// One more.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        if self.kept.len() < Limits::DEFAULT.diagnostics {
            self.kept.push(diagnostic);
        } else {
            self.more += 1;
        }
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Puts them in the order of the text.
    pub fn sort(&mut self) {
        self.kept.sort_by_key(|d| d.labels.first().map(|l| l.span));
    }

    /// Those that are kept, in order. The last says how many more there are.
    pub fn into_vec(mut self) -> Vec<Diagnostic> {
        if self.more > 0
            && let Some(last) = self.kept.last_mut()
        {
            last.notes.push(format!("{} more are not shown", self.more));
        }
        self.kept
    }
}

impl Extend<Diagnostic> for Diagnostics {
    fn extend<T: IntoIterator<Item = Diagnostic>>(&mut self, diagnostics: T) {
        diagnostics.into_iter().for_each(|d| self.push(d));
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for Diagnostic {}

/// One or more diagnostics, at least one of them an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(pub Vec<Diagnostic>);

impl Failure {
    /// The exit class of the first error.
    pub fn exit(&self) -> Exit {
        self.0
            .iter()
            .find(|d| d.severity == Severity::Error)
            .map_or(Exit::Internal, |d| d.code.exit())
    }
}

impl From<Diagnostic> for Failure {
    fn from(d: Diagnostic) -> Self {
        Failure(vec![d])
    }
}

impl From<Vec<Diagnostic>> for Failure {
    fn from(d: Vec<Diagnostic>) -> Self {
        Failure(d)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, d) in self.0.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(f, "{d}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}

/// What a stage gives back.
pub type Result<T> = std::result::Result<T, Failure>;
