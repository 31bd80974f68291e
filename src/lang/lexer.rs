//! Converts text to tokens. Comments are kept in a list of their own, for the formatter and for documentation. The
//! lexer does not stop at errors: it reports and skips characters that the language does not have.

use super::types::ScalarType;
use crate::diag::{Code, Diagnostic, Diagnostics, Source, Span};
use std::sync::Arc;

/// A kind of token. The token's text is the text of its span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tok {
    /// A name.
    Ident,
    /// A name or an operator in the name space of a scalar type, such as `f32.i32` or `f32.+`.
    Qualified,
    /// A number, with its suffix.
    Number,
    /// `.0`, directly after an operand or `(`.
    Proj,
    /// `.x`, directly after an operand or `(`.
    Field,
    /// `'t`, a type parameter.
    TypeParam,
    /// A text in quotation marks.
    Text,
    /// A keyword.
    Word(&'static str),
    /// Punctuation or an operator.
    Sym(&'static str),
    /// The end of the text.
    Eof,
}

/// A token with its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// The kind.
    pub tok: Tok,
    /// The place.
    pub span: Span,
}

/// A comment, or an attribute `#[...]`, which has no effect either. Without its line end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comment {
    /// The place, including the dashes or brackets.
    pub span: Span,
    /// The index of the token that follows.
    pub before: usize,
    /// Whether it follows a token on the same line.
    pub trailing: bool,
}

/// The lexer's output.
#[derive(Clone, Debug, Default)]
pub struct Lexed {
    /// The tokens; the last is [`Tok::Eof`].
    pub tokens: Vec<Token>,
    /// The comments in order.
    pub comments: Vec<Comment>,
    /// The errors found.
    pub diagnostics: Diagnostics,
}

/// The words of the language.
pub const KEYWORDS: [&str; 16] = [
    "import", "entry", "def", "let", "in", "if", "then", "else", "loop", "for", "while", "do",
    "true", "false", "with", "type",
];
/// Longer symbols first.
const SYMBOLS: [&str; 49] = [
    "..<", "...", ">->", "<-<", ">>>", "|>", "<|", "->", "++", "**", "//", "%%", ":>", "==", "!=",
    "<=", ">=", "<<", ">>", "&&", "||", "+", "-", "*", "/", "%", "&", "|", "^", "~", "<", ">", "!",
    "=", ":", ",", "\\", "(", ")", "[", "]", ".", "{", "}", ";", "#", "@", "_", "`",
];

/// The value of a number token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A number without a point or exponent.
    Int(i128),
    /// A number with a point or exponent.
    Float(f64),
}

fn is_name_start(c: u8) -> bool {
    c.is_ascii_alphabetic() || c == b'_'
}

fn is_name(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_' || c == b'\''
}

/// Splits a text into tokens and comments.
pub fn lex(source: &Arc<Source>) -> Lexed {
    let text = source.text.as_bytes();
    let mut out = Lexed::default();
    let mut at = 0;
    let mut line_has_token = false;
    while at < text.len() {
        let start = at;
        let c = text[at];
        if c == b'\n' {
            line_has_token = false;
            at += 1;
        } else if c.is_ascii_whitespace() {
            at += 1;
        } else if text[at..].starts_with(b"--") {
            while at < text.len() && text[at] != b'\n' {
                at += 1;
            }
            let end = start + source.text[start..at].trim_end().len();
            out.comments.push(Comment {
                span: Span::new(start, end),
                before: out.tokens.len(),
                trailing: line_has_token,
            });
        } else if let Some(end) = attribute(text, at) {
            at = end;
            let span = Span::new(start, end);
            let comment = Comment { span, before: out.tokens.len(), trailing: line_has_token };
            out.comments.push(comment);
            let text = format!("the attribute `{}` has no effect", &source.text[start..end]);
            let d = Diagnostic::warning(Code::NoEffect, text);
            out.diagnostics.push(d.at(source, span, "").help("patsat decides how, by measurement"));
        } else if let Some((tok, end)) = token(source, at, out.tokens.last()) {
            at = end;
            line_has_token = true;
            out.tokens.push(Token { tok, span: Span::new(start, end) });
            if tok == Tok::Number
                && let Err(why) = number(&source.text[start..end])
            {
                let d = Diagnostic::error(Code::Lex, why);
                out.diagnostics.push(d.at(source, Span::new(start, end), ""));
            }
        } else {
            let c = source.text[at..].chars().next().unwrap_or(' ');
            let run = source.text[at..].chars().take_while(|other| *other == c).count();
            at += run * c.len_utf8();
            let d = Diagnostic::error(
                Code::Lex,
                format!("the language has no character `{}`", c.escape_debug()),
            )
            .at(source, Span::new(start, at), "");
            out.diagnostics.push(match c {
                '"' => d.help("a text in quotation marks ends on the same line"),
                'λ' => d.help("write a function as `\\x -> ...`"),
                '?' => d.help("a choice is `if c then a else b`"),
                '×' | '·' => d.help("write the product as `*`"),
                _ => d,
            });
        }
    }
    let end = Span::new(text.len(), text.len());
    out.tokens.push(Token { tok: Tok::Eof, span: end });
    out
}

/// Returns the end of the attribute that starts at `at`.
fn attribute(text: &[u8], at: usize) -> Option<usize> {
    if !text[at..].starts_with(b"#[") {
        return None;
    }
    let line = text[at..].iter().take_while(|c| **c != b'\n').enumerate();
    let mut open = 0usize;
    for (i, c) in line {
        match c {
            b'[' => open += 1,
            b']' if open == 1 => return Some(at + i + 1),
            b']' => open -= 1,
            _ => {}
        }
    }
    None
}

/// Returns whether a symbol is spelled as an operator of two numbers.
fn is_operator(symbol: &str) -> bool {
    symbol.bytes().all(|c| b"+-*/%<>=!&|^".contains(&c))
        && !matches!(symbol, "=" | "!" | "->" | "|>" | "<|" | ">->" | "<-<" | "++" | ">>>")
}

/// Returns the token at `at`, and the position of its end.
fn token(source: &Source, at: usize, last: Option<&Token>) -> Option<(Tok, usize)> {
    let text = source.text.as_bytes();
    let run = |from: usize, ok: fn(u8) -> bool| {
        from + text[from..].iter().take_while(|c| ok(**c)).count()
    };
    let c = text[at];
    if is_name_start(c) {
        let end = run(at, is_name);
        let name = &source.text[at..end];
        if ScalarType::from_name(name).is_some() && text.get(end) == Some(&b'.') {
            if text.get(end + 1).is_some_and(|c| is_name_start(*c)) {
                return Some((Tok::Qualified, run(end + 1, is_name)));
            }
            let rest = &text[end + 1..];
            let operator = SYMBOLS.into_iter().find(|s| rest.starts_with(s.as_bytes()));
            if let Some(operator) = operator.filter(|s| is_operator(s)) {
                return Some((Tok::Qualified, end + 1 + operator.len()));
            }
        }
        if name == "_" {
            return Some((Tok::Sym("_"), end));
        }
        let keyword = KEYWORDS.into_iter().find(|k| *k == name);
        return Some((keyword.map_or(Tok::Ident, Tok::Word), end));
    }
    if c == b'"' {
        let end = run(at + 1, |c| !matches!(c, b'"' | b'\n'));
        return (text.get(end) == Some(&b'"')).then_some((Tok::Text, end + 1));
    }
    if c.is_ascii_digit() {
        return Some((Tok::Number, number_end(text, at)));
    }
    let attached = last.is_some_and(|t| {
        t.span.end as usize == at
            && matches!(
                t.tok,
                Tok::Ident | Tok::Proj | Tok::Field | Tok::Sym("(" | ")" | "]" | "}")
            )
    });
    if c == b'.' && attached {
        match text.get(at + 1) {
            Some(c) if c.is_ascii_digit() => {
                return Some((Tok::Proj, run(at + 1, |c| c.is_ascii_digit())));
            }
            Some(c) if is_name_start(*c) => return Some((Tok::Field, run(at + 1, is_name))),
            _ => {}
        }
    }
    if c == b'\'' && text.get(at + 1).is_some_and(|c| is_name_start(*c)) {
        return Some((Tok::TypeParam, run(at + 1, is_name)));
    }
    let symbol = SYMBOLS.into_iter().find(|s| text[at..].starts_with(s.as_bytes()))?;
    Some((Tok::Sym(symbol), at + symbol.len()))
}

/// Returns the end of the number that starts at `at`: digits, point, exponent and suffix.
fn number_end(text: &[u8], at: usize) -> usize {
    let digits = |mut i: usize| {
        while i < text.len() && (text[i].is_ascii_digit() || text[i] == b'_') {
            i += 1;
        }
        i
    };
    if text[at] == b'0' && matches!(text.get(at + 1), Some(b'x' | b'X' | b'b' | b'B')) {
        return at
            + text[at..].iter().take_while(|c| c.is_ascii_alphanumeric() || **c == b'_').count();
    }
    let mut end = digits(at);
    if text.get(end) == Some(&b'.') && text.get(end + 1).is_some_and(u8::is_ascii_digit) {
        end = digits(end + 1);
    }
    if matches!(text.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(end + 1), Some(b'+' | b'-')));
        if text.get(end + 1 + sign).is_some_and(u8::is_ascii_digit) {
            end = digits(end + 1 + sign);
        }
    }
    end + text[end..].iter().take_while(|c| is_name(**c)).count()
}

/// Returns the value and the suffix of a number token.
pub fn number(text: &str) -> Result<(Number, Option<ScalarType>), String> {
    let plain: String = text.chars().filter(|c| *c != '_').collect();
    let suffix = ScalarType::suffix(&plain);
    let hex = plain.starts_with("0x") || plain.starts_with("0X");
    let binary = plain.starts_with("0b") || plain.starts_with("0B");
    // In a hexadecimal number, `f32` may be digits, so only an integer suffix is recognised.
    let suffix = suffix.filter(|t| !hex || t.is_integer());
    let body = suffix.map_or(plain.as_str(), |t| &plain[..plain.len() - t.name().len()]);
    if suffix == Some(ScalarType::Bool) {
        return Err(no_number(text));
    }
    let large = || format!("the number `{text}` is too large");
    let radix = if hex {
        16
    } else if binary {
        2
    } else {
        10
    };
    if radix != 10 {
        let digits = &body[2..];
        if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
            return Err(no_number(text));
        }
        let value = i128::from_str_radix(digits, radix).map_err(|_| large())?;
        return Ok((Number::Int(value), suffix));
    }
    if body.contains(['.', 'e', 'E']) {
        let value: f64 = body.parse().map_err(|_| no_number(text))?;
        if suffix.is_some_and(|t| !t.is_float()) {
            return Err(format!("`{text}` has a point but an integer suffix"));
        }
        if value.is_infinite() {
            return Err(large());
        }
        return Ok((Number::Float(value), suffix));
    }
    if body.is_empty() || !body.chars().all(|c| c.is_ascii_digit()) {
        return Err(no_number(text));
    }
    let value: i128 = body.parse().map_err(|_| large())?;
    Ok((Number::Int(value), suffix))
}

/// Returns the message for a token that begins like a number.
fn no_number(text: &str) -> String {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let ty = match &text[number.len()..] {
        "u" | "U" => "u32",
        "l" | "L" => "i64",
        "ul" | "UL" => "u64",
        "f" | "F" => "f32",
        "d" | "D" => "f64",
        "h" | "H" => "f16",
        _ => return format!("`{text}` is not a number"),
    };
    format!("`{text}` is not a number; the suffix is a type: `{number}{ty}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toks(text: &str) -> Vec<Tok> {
        lex(&Source::new("t", text)).tokens.into_iter().map(|t| t.tok).collect()
    }

    #[test]
    fn projections_are_not_floats() {
        use Tok::{Eof, Field, Ident, Number, Proj, Qualified, Sym, TypeParam};
        assert_eq!(toks("t.0.1"), [Ident, Proj, Proj, Eof]);
        assert_eq!(toks("1.5"), [Number, Eof]);
        assert_eq!(toks("f32.i32 x"), [Qualified, Ident, Eof]);
        assert_eq!(toks("p.x.0"), [Ident, Field, Proj, Eof]);
        assert_eq!(toks("(f32.*)"), [Sym("("), Qualified, Sym(")"), Eof]);
        assert_eq!(toks("'t"), [TypeParam, Eof]);
        assert_eq!(toks("a>->b"), [Ident, Sym(">->"), Ident, Eof]);
    }

    #[test]
    fn numbers() {
        assert_eq!(number("1.5f32"), Ok((Number::Float(1.5), Some(ScalarType::F32))));
        assert_eq!(number("1.5bf16"), Ok((Number::Float(1.5), Some(ScalarType::BF16))));
        assert_eq!(number("0xbf16"), Ok((Number::Int(0xbf16), None)));
        assert_eq!(number("3u32"), Ok((Number::Int(3), Some(ScalarType::U32))));
        assert_eq!(number("0xff"), Ok((Number::Int(255), None)));
        assert_eq!(number("0b101i8"), Ok((Number::Int(5), Some(ScalarType::I8))));
        assert_eq!(number("1_000"), Ok((Number::Int(1000), None)));
        assert_eq!(number("1e3"), Ok((Number::Float(1000.0), None)));
        assert!(number("1.5i32").is_err());
        assert!(number("12abc").is_err());
        assert!(number("0x").is_err());
        assert!(number("1e999").is_err());
        assert!(number("9".repeat(60).as_str()).is_err());
    }

    #[test]
    fn attributes_are_comments() {
        let source = Source::new("t", "#[unroll(4)] x #[a\n]");
        let lexed = lex(&source);
        assert_eq!(lexed.comments.len(), 1);
        assert_eq!(lexed.diagnostics.into_vec()[0].code, Code::NoEffect);
        assert_eq!(lexed.tokens[1].tok, Tok::Sym("#"));
    }

    #[test]
    fn comments_know_their_place() {
        let lexed = lex(&Source::new("t", "-- a\nx -- b\n  -- c\ny"));
        let seen: Vec<_> = lexed.comments.iter().map(|c| (c.before, c.trailing)).collect();
        assert_eq!(seen, [(0, false), (1, true), (1, false)]);
    }
}
