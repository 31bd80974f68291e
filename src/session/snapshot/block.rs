//! Expectation blocks: reads them from a program's comments, and replaces their contents.

use crate::diag::{Code, Diagnostic, Failure, Result, Source, Span};
use crate::session::{Float, Sizes};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// The kind of an expectation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The best term by the cost model.
    Term,
    /// Its kernels.
    Kernel,
    /// A term that is in the saturated graph.
    Found,
    /// Figures of the saturated graph.
    Stats,
    /// The program is refused with this code.
    Error(Code),
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Term => f.write_str("term"),
            Kind::Kernel => f.write_str("kernel"),
            Kind::Found => f.write_str("found"),
            Kind::Stats => f.write_str("stats"),
            Kind::Error(code) => write!(f, "error {code}"),
        }
    }
}

/// The options of an expectation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The entry; `None` for the file's only one.
    pub entry: Option<String>,
    /// Values of its size parameters.
    pub sizes: Sizes,
    /// A shipped cost model, or a file beside the program.
    pub model: Option<String>,
    /// The rules: names and files, separated by commas.
    pub rules: Option<String>,
    /// Which arithmetic may change.
    pub float: Float,
    /// Whether the program is taken as written, in low-level patterns.
    pub as_written: bool,
}

/// An expectation in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its kind.
    pub kind: Kind,
    /// Its options.
    pub options: Options,
    /// The place of the first line, without surrounding white space.
    pub header: Span,
    /// The place of the code of [`Kind::Error`].
    code: Span,
    /// The whole lines below the first line.
    body: Range<usize>,
    /// The place of the text in each of these lines.
    texts: Vec<Range<usize>>,
    /// The white space before `--` in the first line.
    indent: String,
}

impl Block {
    /// Returns the number of its first line, from 1.
    pub fn line(&self, source: &Source) -> usize {
        source.text[..self.header.start as usize].matches('\n').count() + 1
    }

    /// Returns the expected lines, without trailing white space.
    pub fn lines<'a>(&self, source: &'a Source) -> Vec<&'a str> {
        self.texts.iter().map(|r| source.text[r.clone()].trim_end()).collect()
    }

    /// Returns whether its text is empty.
    pub fn is_empty(&self, source: &Source) -> bool {
        self.lines(source).iter().all(|l| l.is_empty())
    }

    /// Returns the file with everything but this block's text replaced by blanks, so that places in the text stay
    /// valid.
    pub fn alone(&self, source: &Source) -> Arc<Source> {
        let blank = |c: char| match c {
            '\n' => "\n".to_owned(),
            c => " ".repeat(c.len_utf8()),
        };
        let (mut out, mut at) = (String::new(), 0);
        for r in &self.texts {
            out.extend(source.text[at..r.start].chars().map(blank));
            out.push_str(&source.text[r.clone()]);
            at = r.end;
        }
        out.extend(source.text[at..].chars().map(blank));
        Source::new(source.name.clone(), out)
    }

    /// Returns the edits of the file that give the block the contents of `renewal`.
    pub fn renewed(&self, source: &Source, renewal: &Renewal) -> Vec<(Range<usize>, String)> {
        let text = &source.text;
        let newline = if text[..self.body.start].ends_with("\r\n") { "\r\n" } else { "\n" };
        let mut body: String = renewal
            .lines
            .iter()
            .map(|line| format!("{}-- | {line}", self.indent).trim_end().to_owned() + newline)
            .collect();
        if !text[..self.body.end].ends_with('\n') {
            // The file ends here, without a newline.
            body.truncate(body.trim_end_matches(['\r', '\n']).len());
        }
        if !text[..self.body.start].ends_with('\n') && !body.is_empty() {
            body = newline.to_owned() + &body;
        }
        let mut out = vec![(self.body.clone(), body)];
        if let Some(code) = renewal.code {
            out.push((self.code.range(), code.to_string()));
        }
        out
    }
}

/// The contents with which a block would hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Renewal {
    /// Its lines.
    pub lines: Vec<String>,
    /// Its code, if it differs.
    pub code: Option<Code>,
}

/// Returns a text after the given edits.
pub fn replaced(text: &str, mut edits: Vec<(Range<usize>, String)>) -> String {
    edits.sort_by_key(|(range, _)| range.start);
    let mut out = text.to_owned();
    for (range, new) in edits.iter().rev() {
        out.replace_range(range.clone(), new);
    }
    out
}

/// Returns the expectations in a file's comments.
///
/// # Errors
/// [`Code::BadExpectation`] for each block that is malformed, with its place.
pub fn blocks(source: &Arc<Source>) -> Result<Vec<Block>> {
    let (mut out, mut wrong): (Vec<Block>, Vec<Diagnostic>) = (vec![], vec![]);
    // Whether the lines that follow belong to the last block.
    let mut open = false;
    let mut at = 0;
    for line in source.text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let indent = line.len() - line.trim_start().len();
        let Some(comment) = line[indent..].strip_prefix("--") else {
            open = false;
            continue;
        };
        let comment_at = start + indent + 2;
        if let Some(text) = comment.trim_start().strip_prefix('|') {
            if let (true, Some(block)) = (open, out.last_mut()) {
                let text = text.strip_prefix(' ').unwrap_or(text);
                let from = at - text.len();
                block.texts.push(from..from + text.trim_end().len());
                block.body.end = at;
            }
            continue;
        }
        let words = words(comment, comment_at);
        open = words.first().is_some_and(|(w, _)| *w == "expect");
        if !open {
            continue;
        }
        let header = Span::new(start + indent, start + line.trim_end().len());
        match head(source, &words, header) {
            Ok((kind, code, options)) => out.push(Block {
                kind,
                options,
                header,
                code,
                body: at..at,
                texts: vec![],
                indent: line[..indent].to_owned(),
            }),
            Err(Failure(ds)) => {
                wrong.extend(ds);
                open = false;
            }
        }
    }
    if wrong.is_empty() { Ok(out) } else { Err(wrong.into()) }
}

/// Returns the words of a text with their places.
fn words(text: &str, at: usize) -> Vec<(&str, Span)> {
    text.split_whitespace()
        .map(|w| {
            // `w` is a slice of `text`.
            let from = at + (w.as_ptr() as usize - text.as_ptr() as usize);
            (w, Span::new(from, from + w.len()))
        })
        .collect()
}

fn head(source: &Arc<Source>, words: &[(&str, Span)], all: Span) -> Result<(Kind, Span, Options)> {
    let wrong = |span: Span, text: String| {
        Diagnostic::error(Code::BadExpectation, text).at(source, span, "here")
    };
    const KINDS: &str = "`term`, `kernel`, `found`, `stats` or `error CODE`";
    let Some((word, span)) = words.get(1).copied() else {
        let text = format!("the kind of the expectation is missing: {KINDS}");
        return Err(wrong(all, text).into());
    };
    let mut rest = 2;
    let mut place = span;
    let kind = match word {
        "term" => Kind::Term,
        "kernel" => Kind::Kernel,
        "found" => Kind::Found,
        "stats" => Kind::Stats,
        "error" => {
            let Some((word, span)) = words.get(2).copied() else {
                return Err(wrong(all, "`error` wants a code, such as E0301".to_owned()).into());
            };
            let Some(code) = Code::ALL.iter().find(|c| c.as_str() == word) else {
                return Err(wrong(span, format!("there is no code `{word}`")).into());
            };
            (rest, place) = (3, span);
            Kind::Error(*code)
        }
        other => {
            let d = wrong(span, format!("`{other}` cannot be expected"));
            return Err(d.help(format!("the kinds are {KINDS}")).into());
        }
    };
    let options = options(&words[rest..], &wrong)?;
    if options.as_written && matches!(kind, Kind::Found | Kind::Stats) {
        return Err(wrong(all, format!("`{kind}` is about rewriting")).into());
    }
    Ok((kind, place, options))
}

fn options(words: &[(&str, Span)], wrong: &dyn Fn(Span, String) -> Diagnostic) -> Result<Options> {
    let mut out = Options::default();
    let mut words = words.iter().copied().peekable();
    let number = |w: &str| w.replace('_', "").parse::<u64>().ok();
    while let Some((word, span)) = words.next() {
        let again = || wrong(span, format!("`{word}` is given twice"));
        match word.split_once('=') {
            None if word == "no-rewrite" => out.as_written = true,
            None if word == "size" => {
                let before = out.sizes.len();
                while let Some((size, span)) = words.peek().copied()
                    && let Some((name, value)) = size.split_once('=')
                    && let Some(value) = number(value)
                {
                    words.next();
                    if out.sizes.insert(name.to_owned(), value).is_some() {
                        return Err(wrong(span, format!("the size `{name}` is given twice")).into());
                    }
                }
                if out.sizes.len() == before {
                    return Err(
                        wrong(span, "`size` must be followed by NAME=NUMBER".to_owned()).into()
                    );
                }
            }
            Some((name, value)) if !value.is_empty() => match name {
                "entry" | "model" | "rules" => {
                    let slot = match name {
                        "entry" => &mut out.entry,
                        "model" => &mut out.model,
                        _ => &mut out.rules,
                    };
                    if slot.replace(value.to_owned()).is_some() {
                        return Err(again().into());
                    }
                }
                "float" if value == "exact" => out.float = Float::Exact,
                "float" if value == "contract" => out.float = Float::Contract,
                "float" if value == "relaxed" => out.float = Float::Relaxed,
                _ => return Err(unknown(wrong(span, format!("`{word}` is no option"))).into()),
            },
            _ => return Err(unknown(wrong(span, format!("`{word}` is no option"))).into()),
        }
    }
    Ok(out)
}

fn unknown(d: Diagnostic) -> Diagnostic {
    d.help(
        "the options are `entry=NAME`, `size NAME=NUMBER ...`, `model=NAME`, `rules=NAME,...`, \
         `float=MODE` and `no-rewrite`",
    )
}
