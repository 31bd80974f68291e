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
            (Tok::Word("for" | "while"), _) => d.help(self.inner_loop()),
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

    /// At `for` or `while` in place of an expression, says how a loop inside of a loop begins.
    fn inner_loop(&self) -> String {
        let outer = self.tokens[..self.at].iter().rposition(|t| t.tok == Tok::Word("loop"));
        let state = outer.map(|at| self.token_at(at + 1)).filter(|t| t.tok == Tok::Ident);
        let state = state.map_or("acc", |t| self.text(t.span));
        let ahead = self.tokens.iter().skip(self.at).take_while(|t| t.tok != Tok::Eof);
        let head = ahead.take(40).find(|t| t.tok == Tok::Word("do"));
        let head = head.map_or("", |end| self.text(self.span().to(end.span)));
        let head = if head.is_empty() || head.contains('\n') { "for i < n do" } else { head };
        format!("a loop names what it computes: `loop {state} = {state} {head} ...`")
    }

    /// At `[`, refuses `[f x | x <- xs]` and `[f x for x in xs]`.
    pub(super) fn no_comprehension(&mut self) -> Parse<()> {
        let (open, Some(close)) = (self.at, self.closing()) else { return Ok(()) };
        let inside = self.outermost(open, close);
        let tok = |i: usize| inside.get(i).map_or(Tok::Eof, |at| self.token_at(*at).tok);
        let of_loop = inside.iter().any(|at| self.token_at(*at).tok == Tok::Word("loop"));
        // Behind a pattern, `<-` with a space is no comparison with a negative number.
        let arrow = |i: usize| {
            let next =
                |k: usize| inside.get(i + k).map_or(Span::default(), |at| self.token_at(*at).span);
            tok(i) == Tok::Sym("<")
                && tok(i + 1) == Tok::Sym("-")
                && next(0).end == next(1).start
                && next(1).end < next(2).start
        };
        let generator = (1..inside.len()).find_map(|i| match tok(i) {
            Tok::Sym("|") if arrow(i + 2) => Some((i, i + 4)),
            Tok::Word("for") if tok(i + 2) == Tok::Word("in") && !of_loop => Some((i, i + 3)),
            _ => None,
        });
        let Some((bar, from)) = generator else { return Ok(()) };
        let to = (from..inside.len())
            .find(|i| matches!(tok(*i), Tok::Sym(",") | Tok::Word("if" | "for")));
        let place = |i: usize| inside.get(i).copied().unwrap_or(close);
        let text = |from: usize, to: usize| {
            let span = self.token_at(from).span.to(self.token_at(to.saturating_sub(1)).span);
            Some(self.text(span)).filter(|t| from < to && t.len() <= 60 && !t.contains('\n'))
        };
        let body = text(open + 1, place(bar)).unwrap_or("...");
        let element = text(place(bar + 1), place(bar + 2)).unwrap_or("x");
        let array = text(place(from), to.map_or(close, place)).unwrap_or("xs");
        // What an array is read at is an index, and what it counts to is a length.
        let array = match array.contains(' ') {
            true => format!("({array})"),
            false if body.contains(&format!("[{element}]")) => format!("(iota {array})"),
            false => array.to_owned(),
        };
        let span = self.token_at(open).span.to(self.token_at(close).span);
        let message = "there are no list comprehensions";
        let d = Diagnostic::error(Code::Parse, message).at(self.source, span, "");
        let d = d.help(format!("write `map (\\{element} -> {body}) {array}`"));
        self.fail(match to {
            Some(_) => d.help("a second array is a `map` in the function; `filter` moves the elements for which a condition holds to the front"),
            None => d,
        })
    }

    /// Returns the numbers of the tokens between two brackets, without those inside of further brackets.
    fn outermost(&self, open: usize, close: usize) -> Vec<usize> {
        let mut depth = 0usize;
        let outermost = |at: &usize| match self.token_at(*at).tok {
            Tok::Sym("(" | "[" | "{") => {
                depth += 1;
                depth == 1
            }
            Tok::Sym(")" | "]" | "}") => {
                depth = depth.saturating_sub(1);
                false
            }
            _ => depth == 0,
        };
        (open + 1..close).filter(outermost).collect()
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
