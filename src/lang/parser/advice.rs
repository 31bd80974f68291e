//! What to write instead of what other languages have.

use super::{Parse, Parser, Reported};
use crate::diag::{Code, Diagnostic, Span};
use crate::lang::ast::{Binders, Pat, PatKind};
use crate::lang::lexer::{Tok, Token};
use std::fmt::Write as _;

const NO_ALTERNATIVES: &str = "there are no sum types: number the alternatives, and choose by `if tag == 0 then ... else ...`";

const FUNCTION: &str = "a function is `\\x -> ...`";

impl Parser<'_> {
    /// Adds what to write in place of a token of another language that stands here.
    pub(super) fn hinted(&self, d: Diagnostic) -> Diagnostic {
        let next = self.token_at(self.at + 1);
        let before = self.token_at(self.at.wrapping_sub(1)).tok;
        match (self.tok(), next.tok) {
            (Tok::Sym("."), Tok::Sym(".")) if next.span.start == self.span().end => d.help(
                "a range has no step: the numbers from `a` to `b - 1` are `a..<b`, others a `map` of them: `map (* 2) (0..<n)`",
            ),
            (Tok::Sym("->"), _) => d.help(FUNCTION),
            (Tok::Sym("="), Tok::Sym(">")) if next.span.start == self.span().end => d.help(FUNCTION),
            (Tok::Sym("@"), _) => d.help(
                "a product of matrices is `map (\\r -> map (\\c -> sum (map2 (*) r c)) (transpose b)) a`",
            ),
            (Tok::Sym("["), _) if matches!(before, Tok::Sym("\\") | Tok::Word("let")) => {
                d.help("take the elements of an array by index: `let (x, y) = (a[0], a[1]) in ...`")
            }
            (Tok::TypeParam, _) => match self.text(self.span()).as_bytes() {
                [_, c, b'\''] => d.help(format!("a character is its code: `{c}u8`")),
                _ => d,
            },
            (Tok::Word("then"), _) => d.help("a further condition is `else if c then ...`"),
            (Tok::Sym("#"), _) => d.help(NO_ALTERNATIVES),
            _ => d,
        }
    }

    /// Reports a token where a parameter, a type or the body should follow. `head` is what the definition begins with, up
    /// to its name.
    pub(super) fn after_parameters<T>(&mut self, head: Span, before: &Binders) -> Parse<T> {
        let wanted = "a parameter, `: type` or `=`";
        let (span, message) = (self.span(), format!("expected {wanted}, found {}", self.found()));
        let d = Diagnostic::error(Code::Parse, message);
        let d = d.at(self.source, span, format!("expected {wanted}"));
        let what = match (self.tok(), self.token_at(self.at + 1).tok) {
            (Tok::Sym("["), Tok::Ident) => "sizes",
            (Tok::TypeParam, _) => "types",
            _ => {
                let d = self.hinted(d);
                return self.fail(d);
            }
        };
        let mut start = self.text(head).to_owned();
        let Ok(late) = self.binders() else { return Err(Reported) };
        for size in before.named.iter().chain(&late.named) {
            let _ = write!(start, " [{}]", size.text);
        }
        for ty in before.types.iter().chain(&late.types) {
            let _ = write!(start, " '{}", ty.text);
        }
        self.fail(d.help(format!("{what} come directly after the name: `{start} ...`")))
    }

    /// Refuses a value that binds sizes or types, `let x [n] = e`.
    pub(super) fn no_binders<T>(&mut self, pat: &Pat) -> Parse<T> {
        let wanted = "a parameter, since a value binds no sizes or types";
        let message = format!("expected {wanted}, found {}", self.found());
        let d = Diagnostic::error(Code::Parse, message);
        let d = d.at(self.source, self.span(), format!("expected {wanted}"));
        self.fail(match (&pat.kind, self.tok()) {
            (PatKind::Name(name), Tok::Sym("=" | "[")) => d.help(format!(
                "an update is `let {name}[i] = e`, without a space and without a type"
            )),
            _ => d,
        })
    }

    /// Refuses `match x case ...`.
    pub(super) fn no_match(&mut self) -> Parse<()> {
        let ahead = self.tokens.iter().skip(self.at).take(100);
        let mut ahead = ahead.take_while(|t| !matches!(t.tok, Tok::Word("entry" | "def")));
        let case = |t: &Token| t.tok == Tok::Ident && self.text(t.span) == "case";
        if self.text(self.span()) != "match" || !ahead.any(case) {
            return Ok(());
        }
        let d = Diagnostic::error(Code::Parse, "there is no `match`");
        let d = d.at(self.source, self.span(), "");
        let d = d.help("write `if x == 1 then ... else if x == 2 then ... else ...`; `let (a, b) = x in ...` takes a tuple apart");
        self.fail(d.help(NO_ALTERNATIVES))
    }

    /// Behind the first element of an array, refuses `; n`.
    pub(super) fn no_repetition(&mut self) -> Parse<()> {
        if !self.is(";") {
            return Ok(());
        }
        let d = Diagnostic::error(Code::Parse, "an array has its elements, separated by commas");
        let d = d.at(self.source, self.span(), "");
        self.fail(d.help("an array of `n` elements `x` is `replicate n x`"))
    }

    /// Behind an index, refuses a range, which slices of other languages have.
    pub(super) fn no_range(&mut self) -> Parse<()> {
        let dots = (self.tok(), self.token_at(self.at + 1).tok) == (Tok::Sym("."), Tok::Sym("."));
        if !dots && !matches!(self.tok(), Tok::Sym("..<" | "...")) {
            return Ok(());
        }
        let d = Diagnostic::error(Code::Parse, "an index is no range");
        let d = d.at(self.source, self.span(), "");
        self.fail(d.help("a slice is `a[i:j]`, with the elements `i` to `j - 1`"))
    }

    /// At `[`, refuses a slice behind an array and a space.
    pub(super) fn no_slice_behind_space(&mut self) -> Parse<()> {
        let before = self.token_at(self.at.wrapping_sub(1));
        let behind_operand =
            matches!(before.tok, Tok::Ident | Tok::Proj | Tok::Field | Tok::Sym(")" | "]" | "}"));
        let Some(end) = self.closing().filter(|_| behind_operand) else { return Ok(()) };
        let mut open = 0usize;
        let slice = (self.at..end).any(|at| {
            match self.token_at(at).tok {
                Tok::Sym("(" | "[" | "{") => open += 1,
                Tok::Sym(")" | "]" | "}") => open -= 1,
                Tok::Sym(":") if open == 1 => return !self.is_type_at(at + 1),
                _ => {}
            }
            false
        });
        if !slice {
            return Ok(());
        }
        let span = self.span().to(self.token_at(end).span);
        let message = "a slice follows its array without a space";
        let d = Diagnostic::error(Code::Parse, message).at(self.source, span, "");
        let array = if before.tok == Tok::Ident { self.text(before.span) } else { "a" };
        let text = format!("remove the space: `{array}{}`", self.text(span));
        self.fail(d.help(text))
    }

    /// Returns whether a type may begin at this token.
    fn is_type_at(&self, at: usize) -> bool {
        let token = self.token_at(at);
        match token.tok {
            Tok::Ident => self.is_type(self.text(token.span)),
            Tok::Sym(symbol) => matches!(symbol, "(" | "[" | "{" | "*"),
            _ => false,
        }
    }

    /// Refuses `rec f x`, for which other languages have a keyword.
    pub(super) fn no_recursion(&mut self, name: &str, span: Span, params: &[Pat]) -> Parse<()> {
        let [Pat { kind: PatKind::Name(function), .. }, _, ..] = params else { return Ok(()) };
        if name != "rec" {
            return Ok(());
        }
        let message = format!("`{function}` cannot be recursive: there is no `let rec`");
        let d = Diagnostic::error(Code::Recursion, message).at(self.source, span, "");
        self.fail(
            d.help("repeat with `loop acc = e for i < n do ...` or `loop acc = e while c do ...`"),
        )
    }

    /// Reports a token where the expression should have ended.
    pub(super) fn after_expression<T>(&mut self) -> Parse<T> {
        let d = Diagnostic::error(
            Code::Parse,
            format!(
                "expected an operator, an argument or the end of the expression, found {}",
                self.found()
            ),
        )
        .at(self.source, self.span(), "the expression cannot go on like this");
        let d = match self.tok() {
            Tok::Sym("[") => d.help("an index follows its array without a space, `a[i]`"),
            Tok::Sym("=") => d.help("equality is `==`; a local definition is `let x = ... in ...`"),
            Tok::Sym(")") => d.help("this parenthesis closes nothing"),
            Tok::Sym(".") if self.token_at(self.at + 1).tok != Tok::Sym(".") => {
                d.help("a component of a tuple is `t.0`, without spaces; composition is `f >-> g`")
            }
            Tok::Sym(";") => d.help("write `let x = ... in ...`"),
            _ => self.hinted(d),
        };
        self.fail(d)
    }
}
