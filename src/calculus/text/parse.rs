//! The parser of terms, sizes and types as text.

use super::raw::{Raw, RawKind, RawPattern, RawScalar, RawScalarKind};
use crate::calculus::op::{Entry, Spelling};
use crate::calculus::scalar::Lit;
use crate::calculus::size::{Size, Sym};
use crate::calculus::ty::Ty;
use crate::diag::{Code, Diagnostic, Limits, Result, Source, Span};
use crate::lang::scalar_op::{self, ScalarOp};
use crate::lang::types::ScalarType;
use std::ops::Range;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq)]
enum Tok {
    /// An identifier, which may contain dots: `n.t0`, `f32.i32`, `p.1`.
    Ident(String),
    /// `'name`.
    Quoted(String),
    /// Digits with an optional fraction, exponent and type.
    Number(String),
    /// A dot and a name directly after another token: `.t0`.
    Post(String),
    Sym(&'static str),
    End,
}

const SYMBOLS: &[&str] = &[
    "->", "||", "&&", "==", "!=", "<=", ">=", "<<", ">>", "**", "(", ")", "[", "]", ",", "\\", "=",
    "<", ">", "+", "-", "*", "/", "%", "&", "|", "^", "#", ".",
];

fn lex(source: &Arc<Source>, range: Range<usize>) -> Result<Vec<(Tok, Span)>> {
    let text = &source.text[..range.end];
    let mut out: Vec<(Tok, Span)> = vec![];
    let mut at = range.start;
    let word = |c: char| c.is_alphanumeric() || c == '_';
    while let Some(c) = text[at..].chars().next() {
        let start = at;
        if c.is_whitespace() {
            at += c.len_utf8();
            continue;
        }
        if text[at..].starts_with("--") {
            at += text[at..].find('\n').unwrap_or(text.len() - at);
            continue;
        }
        let run =
            |from: usize| text[from..].find(|c: char| !word(c)).map_or(text.len(), |i| from + i);
        let name = |from: usize| {
            // A prime may be part of a name, but not its first character.
            text[from..].find(|c: char| !word(c) && c != '\'').map_or(text.len(), |i| from + i)
        };
        let digit = |i: usize| text.as_bytes().get(i).is_some_and(u8::is_ascii_digit);
        // `5'1` is a dimension: the number 5 in one stage of a term.
        let of_stage = text[run(at)..].starts_with('\'') && digit(run(at) + 1);
        let tok = if c.is_ascii_digit() && !of_stage {
            at = run(at);
            if text[at..].starts_with('.') && digit(at + 1) {
                at = run(at + 1);
            }
            if text[..at].ends_with(['e', 'E']) && text[at..].starts_with('-') && digit(at + 1) {
                at = run(at + 1);
            }
            Tok::Number(text[start..at].to_owned())
        } else if word(c) {
            at = name(at);
            while text[at..].starts_with('.') && text[at + 1..].starts_with(word) {
                at = name(at + 1);
            }
            Tok::Ident(text[start..at].to_owned())
        } else if c == '\'' {
            at = name(at + 1);
            Tok::Quoted(text[start + 1..at].to_owned())
        } else if c == '.' && text[at + 1..].starts_with(word) {
            at = run(at + 1);
            Tok::Post(text[start + 1..at].to_owned())
        } else if let Some(s) = SYMBOLS.iter().find(|s| text[at..].starts_with(**s)) {
            at += s.len();
            Tok::Sym(s)
        } else {
            let span = Span::new(at, at + c.len_utf8());
            return Err(Diagnostic::error(Code::Parse, format!("unexpected character `{c}`"))
                .at(source, span, "not part of a term")
                .into());
        };
        out.push((tok, Span::new(start, at)));
    }
    out.push((Tok::End, Span::new(range.end, range.end)));
    Ok(out)
}

struct Parser<'a> {
    source: &'a Arc<Source>,
    toks: Vec<(Tok, Span)>,
    pos: usize,
    depth: usize,
    bounds: Bounds,
}

/// What a text may need of the stacks of all that recurses over terms.
#[derive(Clone, Copy)]
struct Bounds {
    /// Deepest nesting.
    deep: usize,
    /// Most parts of a chain of definitions, choices or operations, which the parser reads by iteration.
    long: usize,
}

/// Parses a term in `range` of the source, which a person wrote.
///
/// # Errors
/// [`Code::Parse`] with its place.
pub fn parse_term(source: &Arc<Source>, range: Range<usize>) -> Result<Raw> {
    whole(source, range, Parser::chain)
}

/// Parses a term in `range` of the source, which may be as large as those that are printed. It needs a stack of
/// [`STACK_BYTES`](crate::diag::STACK_BYTES), and so does what recurses over the result.
///
/// # Errors
/// [`Code::Parse`] with its place.
pub fn parse_large_term(source: &Arc<Source>, range: Range<usize>) -> Result<Raw> {
    let limits = Limits::DEFAULT;
    let bounds = Bounds { deep: limits.term_nesting, long: limits.term_chain };
    bounded(source, range, bounds, Parser::chain)
}

/// Parses a size in `range` of the source; names are dimensions.
///
/// # Errors
/// [`Code::Parse`] with its place.
pub fn parse_size(source: &Arc<Source>, range: Range<usize>) -> Result<Size> {
    whole(source, range, Parser::size)
}

/// Parses a type in `range` of the source; names other than scalar types are variables.
///
/// # Errors
/// [`Code::Parse`] with its place.
pub fn parse_type(source: &Arc<Source>, range: Range<usize>) -> Result<Ty> {
    whole(source, range, Parser::ty)
}

fn whole<'a, T>(
    source: &'a Arc<Source>,
    range: Range<usize>,
    parse: impl FnOnce(&mut Parser<'a>) -> Result<T>,
) -> Result<T> {
    let nesting = Limits::DEFAULT.nesting;
    bounded(source, range, Bounds { deep: nesting, long: nesting }, parse)
}

fn bounded<'a, T>(
    source: &'a Arc<Source>,
    range: Range<usize>,
    bounds: Bounds,
    parse: impl FnOnce(&mut Parser<'a>) -> Result<T>,
) -> Result<T> {
    let toks = lex(source, range)?;
    let mut p = Parser { source, toks, pos: 0, depth: 0, bounds };
    let out = parse(&mut p)?;
    match p.peek() {
        Tok::End => Ok(out),
        _ => p.fail("the end"),
    }
}

impl Parser<'_> {
    fn peek(&self) -> &Tok {
        &self.toks[self.pos.min(self.toks.len() - 1)].0
    }

    fn span(&self) -> Span {
        self.toks[self.pos.min(self.toks.len() - 1)].1
    }

    fn last(&self) -> Span {
        self.toks[self.pos.saturating_sub(1)].1
    }

    fn next(&mut self) -> Tok {
        let t = self.peek().clone();
        self.pos += 1;
        t
    }

    fn eat(&mut self, s: &str) -> bool {
        let hit = matches!(self.peek(), Tok::Sym(t) if *t == s);
        self.pos += usize::from(hit);
        hit
    }

    fn word(&mut self, w: &str) -> bool {
        let hit = matches!(self.peek(), Tok::Ident(t) if t == w);
        self.pos += usize::from(hit);
        hit
    }

    fn expect(&mut self, s: &str) -> Result<()> {
        if self.eat(s) { Ok(()) } else { self.fail(&format!("`{s}`")) }
    }

    fn expect_word(&mut self, s: &str) -> Result<()> {
        if self.word(s) { Ok(()) } else { self.fail(&format!("`{s}`")) }
    }

    fn fail<T>(&self, wanted: &str) -> Result<T> {
        let found = match self.peek() {
            Tok::End => "the end".to_owned(),
            _ => format!("`{}`", &self.source.text[self.span().range()]),
        };
        Err(Diagnostic::error(Code::Parse, format!("expected {wanted}, found {found}"))
            .at(self.source, self.span(), "here")
            .into())
    }

    fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.depth += 1;
        if self.depth > self.bounds.deep {
            return self.fail("a term that is nested less deeply");
        }
        let out = f(self);
        self.depth -= 1;
        out
    }

    /// Fails if a chain that has `parts` parts cannot have another one.
    fn longer(&self, parts: usize) -> Result<()> {
        if parts < self.bounds.long { Ok(()) } else { self.fail("a shorter term") }
    }

    fn chain(&mut self) -> Result<Raw> {
        self.nested(|p| {
            let start = p.span();
            let mut parts = vec![p.application()?];
            while p.eat(".") {
                parts.push(p.application()?);
            }
            let span = start.to(p.last());
            Ok(match parts.len() {
                1 => parts.remove(0),
                _ => Raw { kind: RawKind::Compose(parts), span },
            })
        })
    }

    fn application(&mut self) -> Result<Raw> {
        let start = self.span();
        if let Tok::Ident(name) = self.peek()
            && let Some(entry) = Entry::named(name)
        {
            self.pos += 1;
            return self.operator(entry, start);
        }
        self.atom()
    }

    /// Parses an operator after its name.
    fn operator(&mut self, entry: &Entry, start: Span) -> Result<Raw> {
        let scheme = &entry.scheme;
        let d = match entry.spelling {
            Spelling::Dimension(_) => self.dimension()?,
            _ => 0,
        };
        let sizes = scheme.written().map(|_| self.size_atom()).collect::<Result<_>>()?;
        let ty = if entry.takes_type() { Some(self.scalar_type()?) } else { None };
        let op = match (&entry.spelling, ty) {
            (Spelling::Plain(make), _) => make(),
            (Spelling::Dimension(make), _) => make(d),
            (Spelling::Type(make), Some(ty)) => make(ty),
            (Spelling::Type(_) | Spelling::Leaf, _) => return self.fail("an operator"),
        };
        let args = (0..scheme.shape().2).map(|_| self.atom()).collect::<Result<_>>()?;
        let kind = RawKind::Op { op, sizes, ty, args };
        Ok(Raw { kind, span: start.to(self.last()) })
    }

    fn dimension(&mut self) -> Result<u8> {
        let d = match self.peek() {
            Tok::Number(n) if matches!(n.as_str(), "0" | "1" | "2") => n.as_bytes()[0] - b'0',
            _ => return self.fail("a dimension: 0, 1 or 2"),
        };
        self.pos += 1;
        Ok(d)
    }

    fn scalar_type(&mut self) -> Result<ScalarType> {
        if let Tok::Ident(n) = self.peek()
            && let Some(t) = ScalarType::from_name(n)
        {
            self.pos += 1;
            return Ok(t);
        }
        self.fail("a scalar type")
    }

    fn atom(&mut self) -> Result<Raw> {
        let start = self.span();
        let simple = |kind, p: &Self| Ok(Raw { kind, span: start.to(p.last()) });
        match self.next() {
            Tok::Ident(name) => {
                if let Some(l) = word_literal(&name) {
                    return simple(RawKind::Lit(l), self);
                }
                if let Some(op) = function(&name) {
                    return simple(RawKind::ScalarOp(op), self);
                }
                match Entry::named(&name) {
                    Some(entry) if entry.stands_alone() => self.operator(entry, start),
                    Some(_) => {
                        self.pos -= 1;
                        self.fail("an argument (put an operator with arguments in parentheses)")
                    }
                    None => simple(RawKind::Name(name), self),
                }
            }
            Tok::Quoted(name) => simple(RawKind::Name(name), self),
            Tok::Number(n) => {
                let l = self.number(&n, false)?;
                simple(RawKind::Lit(l), self)
            }
            Tok::Sym("\\") => self.lambda(start),
            Tok::Sym("(") => {
                if let Tok::Sym(s) = self.peek().clone()
                    && let Some((op, _)) = scalar_op::infix(s)
                    && matches!(self.toks.get(self.pos + 1), Some((Tok::Sym(")"), _)))
                {
                    self.pos += 2;
                    return simple(RawKind::ScalarOp(op), self);
                }
                if self.eat("-") {
                    let l = self.negative()?;
                    self.expect(")")?;
                    return simple(RawKind::Lit(l), self);
                }
                let inner = self.chain()?;
                self.expect(")")?;
                Ok(inner)
            }
            _ => {
                self.pos -= 1;
                self.fail("a term")
            }
        }
    }

    fn negative(&mut self) -> Result<Lit> {
        match self.next() {
            Tok::Number(n) => self.number(&n, true),
            Tok::Ident(n) => match word_literal(&n) {
                Some(l) => Ok(Lit::float(l.ty, -l.as_float().unwrap_or(0.0))),
                None => self.fail("a number"),
            },
            _ => {
                self.pos -= 1;
                self.fail("a number")
            }
        }
    }

    fn number(&self, text: &str, negative: bool) -> Result<Lit> {
        let suffix = ScalarType::suffix(text);
        let digits = suffix.map_or(text, |t| &text[..text.len() - t.name().len()]);
        let sign = if negative { -1.0 } else { 1.0 };
        let point = digits.contains(['.', 'e', 'E']);
        let ty = suffix.unwrap_or(if point { ScalarType::F32 } else { ScalarType::I32 });
        let lit = if ty.is_float() {
            // Parse the text at the width of the type, so that it is rounded once.
            match ty {
                ScalarType::F32 => digits.parse::<f32>().ok().map(|x| sign * f64::from(x)),
                _ => digits.parse::<f64>().ok().map(|x| sign * x),
            }
            .map(|x| Lit::float(ty, x))
        } else {
            digits.parse::<i128>().ok().map(|v| Lit::int(ty, if negative { -v } else { v }))
        };
        match lit {
            Some(l) => Ok(l),
            None => Err(Diagnostic::error(Code::Parse, format!("`{text}` is not a number"))
                .at(self.source, self.last(), "here")
                .into()),
        }
    }

    fn lambda(&mut self, start: Span) -> Result<Raw> {
        let pattern = self.pattern()?;
        self.expect("->")?;
        let body = self.scalar()?;
        Ok(Raw { kind: RawKind::Lambda(pattern, body), span: start.to(self.last()) })
    }

    fn pattern(&mut self) -> Result<RawPattern> {
        self.nested(|p| match p.next() {
            Tok::Ident(n) if n == "_" => Ok(RawPattern::Ignore),
            Tok::Ident(n) => Ok(RawPattern::Name(n)),
            Tok::Sym("(") => {
                if p.eat(")") {
                    return Ok(RawPattern::Unit);
                }
                let first = p.pattern()?;
                p.expect(",")?;
                let second = p.pattern()?;
                p.expect(")")?;
                Ok(RawPattern::Pair(Box::new(first), Box::new(second)))
            }
            _ => {
                p.pos -= 1;
                p.fail("a pattern")
            }
        })
    }

    /// Parses definitions and choices, and what follows the last of them. Sorting networks and tables have chains of
    /// thousands, so these are no nesting.
    fn scalar(&mut self) -> Result<RawScalar> {
        self.nested(|p| {
            let mut heads = vec![];
            loop {
                let start = p.span();
                let head = if p.word("if") {
                    let c = p.scalar()?;
                    p.expect_word("then")?;
                    let a = p.scalar()?;
                    p.expect_word("else")?;
                    Head::If(c, a)
                } else if p.word("let") {
                    let name = p.name()?;
                    p.expect("=")?;
                    let a = p.scalar()?;
                    p.expect_word("in")?;
                    Head::Let(name, a)
                } else {
                    break;
                };
                p.longer(heads.len())?;
                heads.push((head, start));
            }
            let last = p.without_head()?;
            Ok(heads.into_iter().rev().fold(last, |rest, (head, start)| {
                let span = start.to(rest.span);
                let kind = match head {
                    Head::If(c, a) => RawScalarKind::If(Box::new(c), Box::new(a), Box::new(rest)),
                    Head::Let(name, a) => RawScalarKind::Let(name, Box::new(a), Box::new(rest)),
                };
                RawScalar { kind, span }
            }))
        })
    }

    /// Parses a loop or an expression of operators.
    fn without_head(&mut self) -> Result<RawScalar> {
        if !self.word("loop") {
            return self.infix(1);
        }
        let start = self.last();
        let done = |kind, p: &Self| Ok(RawScalar { kind, span: start.to(p.last()) });
        self.expect("(")?;
        let acc = self.name()?;
        self.expect("=")?;
        let init = Box::new(self.scalar()?);
        self.expect(")")?;
        if self.word("while") {
            let cond = Box::new(self.scalar()?);
            self.expect_word("do")?;
            let body = Box::new(self.scalar()?);
            return done(RawScalarKind::While(acc, init, cond, body), self);
        }
        self.expect_word("for")?;
        let i = self.name()?;
        self.expect("<")?;
        let bound = Box::new(self.scalar()?);
        self.expect_word("do")?;
        let body = Box::new(self.scalar()?);
        done(RawScalarKind::For(acc, init, i, bound, body), self)
    }

    fn infix(&mut self, level: u8) -> Result<RawScalar> {
        let start = self.span();
        let mut left = self.scalar_application()?;
        let mut parts = 1;
        while let Tok::Sym(s) = self.peek().clone() {
            let Some((op, strength)) = scalar_op::infix(s) else {
                break;
            };
            if strength < level {
                break;
            }
            self.longer(parts)?;
            parts += 1;
            self.pos += 1;
            let right = self.nested(|p| p.infix(strength + 1))?;
            left = RawScalar {
                kind: RawScalarKind::Op(op, vec![left, right]),
                span: start.to(self.last()),
            };
        }
        Ok(left)
    }

    fn scalar_application(&mut self) -> Result<RawScalar> {
        let start = self.span();
        if let Tok::Ident(name) = self.peek().clone() {
            if name == "sizeOf" {
                self.pos += 1;
                let (n, t) = (self.size_atom()?, self.scalar_type()?);
                return Ok(RawScalar {
                    kind: RawScalarKind::Size(n, t),
                    span: start.to(self.last()),
                });
            }
            if let Some(op) = function(&name) {
                self.pos += 1;
                let args = (0..op.arity()).map(|_| self.scalar_atom()).collect::<Result<_>>()?;
                return Ok(RawScalar {
                    kind: RawScalarKind::Op(op, args),
                    span: start.to(self.last()),
                });
            }
        }
        self.scalar_atom()
    }

    fn scalar_atom(&mut self) -> Result<RawScalar> {
        let start = self.span();
        let kind = match self.next() {
            Tok::Ident(name) => {
                if let Some(l) = word_literal(&name) {
                    RawScalarKind::Lit(l)
                } else {
                    return self.projections(&name, start);
                }
            }
            Tok::Quoted(name) => return self.projections(&name, start),
            Tok::Number(n) => RawScalarKind::Lit(self.number(&n, false)?),
            Tok::Sym("(") => {
                if matches!(self.peek(), Tok::Sym("-")) {
                    self.pos += 1;
                    let l = self.negative()?;
                    self.expect(")")?;
                    RawScalarKind::Lit(l)
                } else {
                    let first = self.scalar()?;
                    let mut e = if self.eat(",") {
                        let second = self.scalar()?;
                        RawScalarKind::Pair(Box::new(first), Box::new(second))
                    } else {
                        first.kind
                    };
                    self.expect(")")?;
                    while let Tok::Post(p) = self.peek().clone() {
                        self.pos += 1;
                        let inner = RawScalar { kind: e, span: start.to(self.last()) };
                        e = RawScalarKind::Proj(Box::new(inner), p == "1");
                    }
                    e
                }
            }
            _ => {
                self.pos -= 1;
                return self.fail("a scalar expression");
            }
        };
        Ok(RawScalar { kind, span: start.to(self.last()) })
    }

    /// Parses `p`, `p.0.1`, `p#2`.
    fn projections(&mut self, name: &str, start: Span) -> Result<RawScalar> {
        let mut parts = name.split('.');
        let base = parts.next().unwrap_or(name).to_owned();
        let mut component = 0;
        if self.eat("#") {
            match self.next() {
                Tok::Number(n) if n.parse::<usize>().is_ok() => {
                    component = n.parse().unwrap_or(0);
                }
                _ => {
                    self.pos -= 1;
                    return self.fail("a component's number");
                }
            }
        }
        let span = start.to(self.last());
        let mut e = RawScalar { kind: RawScalarKind::Name(base, component), span };
        for p in parts {
            let second = match p {
                "0" => false,
                "1" => true,
                _ => {
                    self.pos -= 1;
                    return self.fail("`.0` or `.1`");
                }
            };
            e = RawScalar { kind: RawScalarKind::Proj(Box::new(e), second), span };
        }
        Ok(e)
    }

    fn name(&mut self) -> Result<String> {
        match self.next() {
            Tok::Ident(n) => Ok(n),
            _ => {
                self.pos -= 1;
                self.fail("a name")
            }
        }
    }

    fn size(&mut self) -> Result<Size> {
        self.nested(|p| {
            let mut out = p.size_atom()?;
            loop {
                if p.eat("*") {
                    out = out.mul(&p.size_atom()?);
                } else if p.eat("/") {
                    let by = p.size_atom()?;
                    if by.as_constant() == Some(0) {
                        return p.fail("a divisor other than 0");
                    }
                    out = out.div(&by);
                } else {
                    return Ok(out);
                }
            }
        })
    }

    fn size_atom(&mut self) -> Result<Size> {
        let start = self.span();
        let mut out = match self.next() {
            Tok::Number(n) if n.parse::<u64>().is_ok() => Size::constant(n.parse().unwrap_or(0)),
            Tok::Ident(name) => {
                let mut parts = name.split('.');
                let mut s = Size::dim(parts.next().unwrap_or(&name));
                for p in parts {
                    s = self.tunable(&s, p)?;
                }
                s
            }
            Tok::Sym("(") => {
                // A sum in parentheses is the name of a dimension. One in further parentheses is a factor: `(2*(n + 1))`.
                let inner: Vec<(i32, &Tok)> = self.toks[self.pos..]
                    .iter()
                    .scan(1, |depth, (t, _)| {
                        *depth += match t {
                            Tok::Sym("(") => 1,
                            Tok::Sym(")") => -1,
                            _ => 0,
                        };
                        (*depth > 0 && *t != Tok::End).then_some((*depth, t))
                    })
                    .collect();
                let sum = inner.iter().any(|t| matches!(t, (1, Tok::Sym("+" | "-"))));
                if sum {
                    let count = inner.len();
                    let from = self.span();
                    self.pos += count;
                    let text = &self.source.text[from.to(self.last()).range()];
                    self.expect(")")?;
                    Size::sym(Sym::Dim(text.trim().into()))
                } else {
                    let s = self.size()?;
                    self.expect(")")?;
                    s
                }
            }
            _ => {
                self.pos -= 1;
                let _ = start;
                return self.fail("a size");
            }
        };
        loop {
            if self.eat("^") {
                out = out.round();
            } else if let Tok::Post(p) = self.peek().clone() {
                self.pos += 1;
                out = self.tunable(&out, &p)?;
            } else {
                return Ok(out);
            }
        }
    }

    fn tunable(&self, of: &Size, name: &str) -> Result<Size> {
        if name == "v" {
            return Ok(of.width());
        }
        if name.strip_prefix('t').and_then(|k| k.parse::<usize>().ok()) == Some(of.level()) {
            return Ok(of.tile());
        }
        Err(Diagnostic::error(Code::Parse, format!("`{of}` has no tunable `{name}`"))
            .at(self.source, self.last(), "here")
            .help(format!("its tile is `{of}.t{}`, its vector width `{of}.v`", of.level()))
            .into())
    }

    fn ty(&mut self) -> Result<Ty> {
        self.nested(|p| match p.next() {
            Tok::Ident(n) => {
                Ok(ScalarType::from_name(&n)
                    .map_or_else(|| Ty::Meta(n.as_str().into()), Ty::Scalar))
            }
            Tok::Sym("[") => {
                let n = p.size()?;
                p.expect("]")?;
                Ok(Ty::array(&n, &p.ty()?))
            }
            Tok::Sym("<") => {
                let w = p.size()?;
                p.expect(">")?;
                let t = p.ty()?;
                match Ty::vector(&w, &t) {
                    Some(v) => Ok(v),
                    None => p.fail("a type that has a vector form"),
                }
            }
            Tok::Sym("(") => {
                if p.eat(")") {
                    return Ok(Ty::Unit);
                }
                let a = p.ty()?;
                p.expect(",")?;
                let b = p.ty()?;
                p.expect(")")?;
                Ok(Ty::pair(&a, &b))
            }
            _ => {
                p.pos -= 1;
                p.fail("a type")
            }
        })
    }
}

/// The beginning of a scalar expression that ends with another one.
enum Head {
    /// `if c then a else`.
    If(RawScalar, RawScalar),
    /// `let x = a in`.
    Let(String, RawScalar),
}

fn word_literal(name: &str) -> Option<Lit> {
    match name {
        "true" => {
            return Some(Lit { ty: ScalarType::Bool, bits: 1 });
        }
        "false" => {
            return Some(Lit { ty: ScalarType::Bool, bits: 0 });
        }
        _ => {}
    }
    let (ty, what) = name.split_once('.')?;
    let ty = ScalarType::from_name(ty).filter(|t| t.is_float())?;
    match what {
        "inf" => Some(Lit::float(ty, f64::INFINITY)),
        "nan" => Some(Lit::float(ty, f64::NAN)),
        _ => None,
    }
}

fn function(name: &str) -> Option<ScalarOp> {
    if let Some((to, from)) = name.split_once('.')
        && let (Some(to), Some(_)) = (ScalarType::from_name(to), ScalarType::from_name(from))
    {
        return Some(ScalarOp::Cast(to));
    }
    scalar_op::function(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calculus::scalar::{SExpr, ScalarFn};
    use crate::calculus::term::{Op, Term};
    use crate::calculus::text::{Context, can_be_read, read_term};
    use crate::diag::on_own_stack;
    use indexmap::IndexMap;

    fn round_trip(text: &str, inputs: &[(&str, &str)]) {
        let ty = |t: &str| {
            let s = Source::new("type", t);
            parse_type(&s, 0..t.len()).expect("a type")
        };
        let inputs: IndexMap<String, Ty> =
            inputs.iter().map(|(n, t)| ((*n).to_owned(), ty(t))).collect();
        let source = Source::new("term", text);
        let context = Context { inputs, variables: None };
        let term = match read_term(&source, &Ty::Unit, &context) {
            Ok(t) => t,
            Err(e) => panic!("{text}: {e}"),
        };
        assert_eq!(term.to_string(), text);
    }

    #[test]
    fn terms_round_trip() {
        let xs = [("xs", "[n]f32"), ("c", "f32")];
        round_trip("reduce (+) 0.0 . map abs . xs", &xs);
        round_trip("map (\\x -> c * x) . xs", &xs);
        round_trip("take n . join . mapGlb 0 (mapSeq abs) . split n.t0 . padLast n^ . xs", &xs);
        round_trip(
            "reduceSeq (\\(a, b) -> a + abs b) 0.0 . asScalar . wrap . reduceSeq (vectorize 4 (+)) (splat 4 . 0.0) . asVector 4 . xs",
            &xs,
        );
        round_trip("map (\\(a, b) -> if a < b then a else b - (-1.5)) . zip . fork xs xs", &xs);
        round_trip("map (\\x -> x << 3 & 7 ^ x >> 1 - x | complement x) . xs", &[("xs", "[n]i32")]);
        round_trip("map (\\x -> 2.0 ** x ** tanh x * 1.5) . xs", &xs[..1]);
        round_trip("reduce (^) 0 . map popcount . xs", &[("xs", "[n]u8")]);
        round_trip("mapWrg 1 (reduce min f32.inf) . split (2*n.t0) . xs", &[("xs", "[n]f32")][..]);
        round_trip("split (2*(n + 1)).t0 . xs", &[("xs", "[2*(n + 1)]f32")]);
        round_trip(
            "map join . split ((m - 2)*(n - 2)).t0 . join . xs",
            &[("xs", "[(n - 2)][(m - 2)][k]f32")],
        );
    }

    /// What a sorting network or a long sum gives is read back, and what nests too deeply is known before it is written.
    #[test]
    fn long_chains_are_read_back() {
        const LONG: usize = 5_000;
        let xs = [("xs", "[n]f32")];
        on_own_stack(|| {
            let lets = (1..LONG).map(|i| format!("let t{i} = max t{} x in ", i - 1));
            let lets = lets.collect::<String>();
            round_trip(&format!("map (\\x -> let t0 = abs x in {lets}t{}) . xs", LONG - 1), &xs);
            let choices: String =
                (0..LONG).map(|i| format!("if x < {i}.0 then 2.0 else ")).collect();
            round_trip(&format!("map (\\x -> {choices}x) . xs"), &xs);
            round_trip(&format!("map (\\x -> x{}) . xs", " + x".repeat(LONG)), &xs);
            round_trip(&format!("{}xs", "map abs . ".repeat(LONG)), &xs);
            let tuple = |n: usize| format!("{}x{}", "(x, ".repeat(n), ")".repeat(n));
            round_trip(&format!("map (\\x -> {}) . xs", tuple(400)), &xs);
        })
        .expect("a thread");
    }

    #[test]
    fn terms_that_nest_too_deeply_are_known() {
        let nested = |n: usize| {
            let (ty, x) = (Ty::Scalar(ScalarType::F32), SExpr::Arg);
            let minus = |e| SExpr::Op(ScalarOp::Neg, ScalarType::F32, vec![e]);
            let body = (0..n).fold(x, |e, _| minus(e));
            let f = ScalarFn { dom: ty.clone(), cod: ty, body };
            Term::new(Op::Scalar(Arc::new(f)), vec![], vec![], vec![]).expect("a term")
        };
        let (some, many) = (Limits::DEFAULT.term_nesting - 10, Limits::DEFAULT.term_nesting + 10);
        on_own_stack(|| {
            assert!(can_be_read(&nested(some)));
            assert!(!can_be_read(&nested(many)));
        })
        .expect("a thread");
    }

    #[test]
    fn places_of_errors() {
        let source = Source::new("term", "map . join");
        let failure = parse_term(&source, 0..10).expect_err("no argument");
        assert_eq!(failure.0[0].labels[0].span, Span::new(4, 5));
    }
}
