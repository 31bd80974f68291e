//! Spans, diagnostics with codes, and the limits of the pipeline.
//!
//! Errors are data: a [`Diagnostic`] has a [`Code`], a message, labelled spans in a [`Source`], notes and help.
//! Nothing here prints; `cli` renders diagnostics.

mod code;
mod cores;
mod interrupt;
mod limits;
mod stack;

pub use code::{Code, Exit};
pub use cores::on_all_cores;
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
    /// Returns the span from byte `start` to byte `end`.
    pub fn new(start: usize, end: usize) -> Self {
        let clip = |x: usize| u32::try_from(x).unwrap_or(u32::MAX);
        Span { start: clip(start), end: clip(end) }
    }

    /// Returns the smallest span that covers both.
    #[must_use]
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// Returns the byte range, for slicing.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// A named text that spans refer to: a program, a rule file, a cost model, a build log.
#[derive(PartialEq, Eq)]
pub struct Source {
    /// File name, or a description such as `<argument>`.
    pub name: String,
    /// The whole text.
    pub text: String,
    /// If the text was joined from several, the first byte and the name of each, in order; else empty.
    pub parts: Vec<(usize, String)>,
}

impl fmt::Debug for Source {
    /// Prints only the name, since the text in every diagnostic would hide the rest.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source({:?})", self.name)
    }
}

impl Source {
    /// Returns a shared source.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Arc<Source> {
        Arc::new(Source { name: name.into(), text: text.into(), parts: vec![] })
    }

    /// Returns the name of the text that a byte belongs to, and the range of that text.
    pub fn part(&self, at: usize) -> (&str, std::ops::Range<usize>) {
        let next = self.parts.partition_point(|(start, _)| *start <= at);
        let end = self.parts.get(next).map_or(self.text.len(), |(start, _)| *start);
        match next.checked_sub(1).and_then(|i| self.parts.get(i)) {
            Some((start, name)) => (name, *start..end),
            None => (&self.name, 0..end),
        }
    }
}

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// The command cannot continue.
    Error,
    /// The command continues; the user should know.
    Warning,
}

/// A span with an explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// The explanation; may be empty.
    pub text: String,
    /// Whether this is the place of the error itself, as opposed to a related place.
    pub primary: bool,
}

/// An error or warning: what is wrong, where, why, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The stable code, which also determines the exit status.
    pub code: Code,
    /// Error or warning.
    pub severity: Severity,
    /// The message, in one line.
    pub message: String,
    /// The text that the labels refer to.
    pub source: Option<Arc<Source>>,
    /// Labelled spans.
    pub labels: Vec<Label>,
    /// Further facts about the error.
    pub notes: Vec<String>,
    /// Advice on what to do.
    pub help: Vec<String>,
}

impl Diagnostic {
    /// Returns an error without a place.
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

    /// Returns a warning without a place.
    pub fn warning(code: Code, message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(code, message) }
    }

    /// Adds the place of the error, in `source`.
    #[must_use]
    pub fn at(mut self, source: &Arc<Source>, span: Span, text: impl Into<String>) -> Self {
        self.source = Some(source.clone());
        self.labels.push(Label { span, text: text.into(), primary: true });
        self
    }

    /// Adds a related place in the same source.
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

/// A collection of diagnostics. Keeps the first [`Limits::diagnostics`] and counts the others.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    kept: Vec<Diagnostic>,
    more: usize,
}

impl Diagnostics {
    /// Adds a diagnostic.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        if self.kept.len() < Limits::DEFAULT.diagnostics {
            self.kept.push(diagnostic);
        } else {
            self.more += 1;
        }
    }

    /// Returns whether there are no diagnostics.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Sorts by position in the text.
    pub fn sort(&mut self) {
        self.kept.sort_by_key(|d| d.labels.first().map(|l| l.span));
    }

    /// Returns the diagnostics kept, in order. The last one says how many others there are.
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
    /// Returns the exit class of the first error.
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

/// The result of a stage.
pub type Result<T> = std::result::Result<T, Failure>;
