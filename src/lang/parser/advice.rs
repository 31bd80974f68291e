//! What to write instead of what other languages have.

use super::{Parse, Parser};
use crate::diag::{Code, Diagnostic, Span};
use crate::lang::ast::{Pat, PatKind};
use crate::lang::lexer::Tok;

impl Parser<'_> {
    /// Adds what to write in place of a token of another language that stands here.
    pub(super) fn hinted(&self, d: Diagnostic) -> Diagnostic {
        let next = self.token_at(self.at + 1);
        match (self.tok(), next.tok) {
            (Tok::Sym("."), Tok::Sym(".")) if next.span.start == self.span().end => d.help(
                "the numbers from 0 to `n - 1` are `iota n`, others a `map` of them: `map (+ 1) (iota n)`",
            ),
            (Tok::Word("then"), _) => d.help("a further condition is `else if c then ...`"),
            _ => d,
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
