//! Converts tokens to the syntax tree, by recursive descent with precedence climbing for operators.
//!
//! An error ends its declaration, and the parser continues at the next one, so that one run reports an
//! error for each faulty declaration. The height of the tree is limited, so that later stages may recurse. The
//! parser does not resolve names.

mod advice;
mod comments;
mod records;
mod sizes;
mod types;

pub use sizes::size;

use super::ast::{
    Binders, Decl, Expr, ExprKind, File, Import, LoopForm, Name, Operator, Part, Pat, PatKind,
    Slice, Subscript, TypeExpr, binary_operator,
};
use super::lexer::{self, Comment, Lexed, Number, Tok, Token};
use super::typed::ScalarOp;
use crate::diag::{Code, Diagnostic, Diagnostics, Limits, Severity, Source, Span};
use std::ops::Range;
use std::sync::Arc;

/// An error that was already added to the diagnostics.
struct Reported;
type Parse<T> = Result<T, Reported>;

/// Parses a file. Returns everything that could be parsed, even if there are errors.
pub fn parse(source: &Arc<Source>) -> (File, Vec<Diagnostic>) {
    let (file, _, diagnostics) = parse_at(source, 0, false);
    (file, diagnostics)
}

/// Returns whether there are errors among the diagnostics.
pub fn failed(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|d| d.severity == Severity::Error)
}

/// Like [`parse`], but also returns the tokens and comments. If the file imports others, any name may be one of their types.
pub fn parse_tokens(source: &Arc<Source>) -> (File, Lexed, Vec<Diagnostic>) {
    parse_at(source, 0, true)
}

/// Like [`parse_tokens`], for a text whose first byte has the place `base`. If the file is `alone`, its imports are not in the text.
pub fn parse_at(source: &Arc<Source>, base: usize, alone: bool) -> (File, Lexed, Vec<Diagnostic>) {
    let most = Limits::DEFAULT.program_bytes;
    if source.text.len() > most {
        let message = format!("the program has {} bytes, more than {most}", source.text.len());
        let mut d = Diagnostic::error(Code::KernelLimit, message);
        d.source = Some(source.clone());
        return (File::default(), Lexed::default(), vec![d]);
    }
    let mut lexed = lexer::lex(source);
    let diagnostics = std::mem::take(&mut lexed.diagnostics);
    let tokens = lexed.tokens.iter_mut().map(|t| &mut t.span);
    for span in tokens.chain(lexed.comments.iter_mut().map(|c| &mut c.span)) {
        *span = Span::new(span.start as usize + base, span.end as usize + base);
    }
    let mut parser = Parser {
        source,
        base,
        tokens: &lexed.tokens,
        comments: &lexed.comments,
        at: 0,
        nesting: 0,
        limit: Limits::DEFAULT.nesting,
        types: types::Types::default(),
        diagnostics,
    };
    parser.types = parser.named_types();
    parser.types.elsewhere = alone && lexed.tokens.iter().any(|t| t.tok == Tok::Word("import"));
    let file = parser.file();
    let mut diagnostics = parser.diagnostics;
    diagnostics.sort();
    let diagnostics = diagnostics.into_vec();
    (file, lexed, diagnostics)
}

struct Parser<'a> {
    source: &'a Arc<Source>,
    base: usize,
    tokens: &'a [Token],
    comments: &'a [Comment],
    at: usize,
    nesting: usize,
    limit: usize,
    types: types::Types,
    diagnostics: Diagnostics,
}

impl Parser<'_> {
    fn token_at(&self, at: usize) -> Token {
        let end = Token { tok: Tok::Eof, span: Span::default() };
        self.tokens.get(at).or(self.tokens.last()).copied().unwrap_or(end)
    }

    fn token(&self) -> Token {
        self.token_at(self.at)
    }

    fn tok(&self) -> Tok {
        self.token().tok
    }

    fn span(&self) -> Span {
        self.token().span
    }

    fn last_span(&self) -> Span {
        self.token_at(self.at.saturating_sub(1)).span
    }

    fn text(&self, span: Span) -> &str {
        let Range { start, end } = span.range();
        let range = start.saturating_sub(self.base)..end.saturating_sub(self.base);
        self.source.text.get(range).unwrap_or("")
    }

    fn advance(&mut self) -> Token {
        let token = self.token();
        if token.tok != Tok::Eof {
            self.at += 1;
        }
        token
    }

    fn is(&self, symbol: &str) -> bool {
        matches!(self.tok(), Tok::Sym(s) | Tok::Word(s) if s == symbol)
    }

    fn eat(&mut self, symbol: &str) -> bool {
        let found = self.is(symbol);
        if found {
            self.advance();
        }
        found
    }

    fn found(&self) -> String {
        match self.tok() {
            Tok::Eof => "the end of the file".to_owned(),
            _ => format!("`{}`", self.text(self.span())),
        }
    }

    fn unexpected<T>(&mut self, wanted: &str) -> Parse<T> {
        let d = self.expected(wanted);
        self.fail(d)
    }

    fn expected(&self, wanted: &str) -> Diagnostic {
        let d =
            Diagnostic::error(Code::Parse, format!("expected {wanted}, found {}", self.found()));
        self.hinted(d.at(self.source, self.span(), format!("expected {wanted}")))
    }

    fn fail<T>(&mut self, d: Diagnostic) -> Parse<T> {
        self.diagnostics.push(d);
        Err(Reported)
    }

    fn expect(&mut self, symbol: &str, context: &str) -> Parse<()> {
        if self.eat(symbol) { Ok(()) } else { self.unexpected(&format!("`{symbol}` {context}")) }
    }

    fn too_deep<T>(&mut self, span: Span) -> Parse<T> {
        let message = format!("nested more than {} levels deep", self.limit);
        let d = Diagnostic::error(Code::Parse, message).at(self.source, span, "here");
        self.fail(d.help("name parts of it with `def`"))
    }

    /// Runs a parser one level deeper.
    fn nested<T>(&mut self, parse: fn(&mut Self) -> Parse<T>) -> Parse<T> {
        if self.nesting >= self.limit {
            return self.too_deep(self.span());
        }
        self.nesting += 1;
        let result = parse(self);
        self.nesting -= 1;
        result
    }

    /// Returns an expression node with children of these heights. Its span extends from `start` to the last token.
    fn node(&mut self, kind: ExprKind, start: Span, depths: &[usize]) -> Parse<Expr> {
        let depth = 1 + depths.iter().copied().max().unwrap_or(0);
        let span = start.to(self.last_span());
        if depth > self.limit {
            return self.too_deep(span);
        }
        Ok(Expr { kind, span, depth })
    }

    fn file(&mut self) -> File {
        let generators = self.generators(self.comments);
        let mut file = File { generators, ..File::default() };
        while self.tok() != Tok::Eof {
            self.nesting = 0;
            let parsed = if self.is("type") {
                self.named_type().map(|t| file.types.push(t))
            } else if self.is_decl() {
                self.decl().map(|decl| file.decls.push(decl))
            } else if self.is("import") && file.decls.is_empty() && file.types.is_empty() {
                self.import().map(|import| file.imports.push(import))
            } else {
                let d = Diagnostic::error(
                    Code::Parse,
                    format!("expected `entry` or `def`, found {}", self.found()),
                )
                .at(self.source, self.span(), "not the start of a definition");
                let d = match self.text(self.span()) {
                    "module" | "open" | "local" => d.help(
                        "there are no modules; a definition that takes functions serves as one",
                    ),
                    "import" => d.help("imports stand before the definitions"),
                    _ => d,
                };
                self.diagnostics.push(d);
                Err(Reported)
            };
            if parsed.is_err() {
                self.skip_to_decl();
            }
        }
        file
    }

    fn import(&mut self) -> Parse<Import> {
        self.advance();
        if self.tok() != Tok::Text {
            return self.unexpected("a file in quotation marks, such as `\"lib\"`");
        }
        let span = self.advance().span;
        Ok(Import { path: self.text(span).trim_matches('"').to_owned(), span })
    }

    /// Returns whether a declaration starts here, where an expression may not.
    fn is_decl(&self) -> bool {
        matches!(self.tok(), Tok::Word("entry" | "def" | "let" | "type"))
    }

    /// Goes on to the next declaration. A `let` inside a line is part of an expression.
    fn skip_to_decl(&mut self) {
        let in_line = |this: &Self| {
            let start = u32::try_from(this.base).unwrap_or(u32::MAX);
            let before = this.text(Span { start, end: this.span().start });
            this.is("let") && !before.is_empty() && !before.ends_with('\n')
        };
        while self.tok() != Tok::Eof && (!self.is_decl() || in_line(self)) {
            self.advance();
        }
    }

    fn name(&mut self, what: &str) -> Parse<Name> {
        match self.tok() {
            Tok::Ident => {
                let span = self.advance().span;
                Ok(Name { text: self.text(span).to_owned(), span })
            }
            Tok::Word(word) => {
                let d =
                    Diagnostic::error(Code::Parse, format!("`{word}` is a keyword, not {what}"));
                self.fail(d.at(self.source, self.span(), "choose another name"))
            }
            _ => self.unexpected(what),
        }
    }

    fn decl(&mut self) -> Parse<Decl> {
        let above = self.comments_above(self.at);
        let (doc, generators) = (self.lines(above), self.generators(above));
        let entry = self.is("entry");
        let start = self.advance().span;
        let name = self.name("the name of the definition")?;
        let signature = self.at;
        self.types.params.clear();
        let mut binders = self.binders()?;
        self.types.params.clone_from(&binders.types);
        self.types.unnamed = Some(vec![]);
        let params = self.patterns();
        binders.unnamed = self.types.unnamed.take().unwrap_or_default();
        let params = params?;
        self.no_recursion(&name.text, name.span, &params)?;
        let result = if self.eat(":") { Some(self.ty()?) } else { None };
        if !self.is("=") {
            return match result {
                Some(_) => self.unexpected("`=`"),
                None => self.after_parameters(start.to(name.span), &binders),
            };
        }
        self.implicit_sizes(signature, &params, &mut binders);
        self.advance();
        let body = self.expr()?;
        if self.tok() != Tok::Eof && !self.is_decl() {
            return self.after_expression();
        }
        Ok(Decl { entry, doc, generators, name, binders, params, result, body })
    }

    /// Parses `[n] 't`, behind the name of a definition.
    fn binders(&mut self) -> Parse<Binders> {
        let mut binders = Binders::default();
        loop {
            if self.is("[") {
                binders.named.push(self.size_name()?);
            } else if self.tok() == Tok::TypeParam {
                let span = self.advance().span;
                let text = self.text(span).trim_start_matches('\'').to_owned();
                binders.types.push(Name { text, span });
            } else {
                return Ok(binders);
            }
        }
    }

    fn starts_pattern(&self) -> bool {
        matches!(self.tok(), Tok::Ident | Tok::Sym("(" | "_" | "{"))
    }

    fn patterns(&mut self) -> Parse<Vec<Pat>> {
        let mut patterns = vec![];
        while self.starts_pattern() {
            patterns.push(self.nested(Self::pattern)?);
        }
        Ok(patterns)
    }

    fn pattern(&mut self) -> Parse<Pat> {
        let start = self.span();
        let kind = match self.tok() {
            Tok::Ident => PatKind::Name(self.name("a name")?.text),
            Tok::Sym("_") => {
                self.advance();
                PatKind::Wild
            }
            Tok::Sym("{") => self.record_pattern()?,
            Tok::Sym("(") => {
                self.advance();
                let mut parts = vec![self.nested(Self::typed_pattern)?];
                while self.eat(",") {
                    parts.push(self.nested(Self::typed_pattern)?);
                }
                self.expect(")", "to close the pattern")?;
                match (parts.len(), parts.pop()) {
                    (1, Some(part)) => PatKind::Paren(Box::new(part)),
                    (_, last) => {
                        parts.extend(last);
                        PatKind::Tuple(parts)
                    }
                }
            }
            _ => return self.unexpected("a name or a pattern"),
        };
        Ok(Pat { kind, span: start.to(self.last_span()) })
    }

    fn typed_pattern(&mut self) -> Parse<Pat> {
        let pat = self.pattern()?;
        if !self.eat(":") {
            return Ok(pat);
        }
        let ty = self.function_type()?;
        let span = pat.span.to(ty.span);
        Ok(Pat { kind: PatKind::Typed(Box::new(pat), ty), span })
    }

    fn expr(&mut self) -> Parse<Expr> {
        self.nested(Self::ascribed)
    }

    fn ascribed(&mut self) -> Parse<Expr> {
        let mut e = self.operators(0)?;
        if let Tok::Sym(symbol @ ("..<" | "...")) = self.tok() {
            self.advance();
            let to = self.operators(0)?;
            let (start, depths) = (e.span, [e.depth, to.depth]);
            let range = if symbol == "..." { "closed_interval" } else { "interval" };
            let kind = ExprKind::Binary(Operator::Function(range), Box::new(e), Box::new(to));
            e = self.node(kind, start, &depths)?;
        }
        loop {
            let (start, depth) = (e.span, e.depth);
            if self.eat(":") || self.eat(":>") {
                let ty = self.ty()?;
                e = self.node(ExprKind::Ascribe(Box::new(e), ty), start, &[depth])?;
            } else if self.is("with") {
                e = self.with(e)?;
            } else {
                return Ok(e);
            }
        }
    }

    /// Parses an update of part of `array`, from `with` on.
    fn with(&mut self, array: Expr) -> Parse<Expr> {
        self.advance();
        if self.tok() == Tok::Ident {
            return self.field_update(array);
        }
        self.expect("[", "and the place of what changes, after `with`")?;
        let (subscripts, mut depths) = self.subscripts()?;
        // `<-` is not a token, since `x <-1` compares `x` with a negative number.
        let arrow = self.eat("<") && self.eat("-");
        if !arrow && !self.eat("=") {
            return self.unexpected("`<-` and the new value");
        }
        let value = self.operators(0)?;
        let start = array.span;
        depths.extend([array.depth, value.depth]);
        let kind = ExprKind::With(Box::new(array), subscripts, Box::new(value));
        self.node(kind, start, &depths)
    }

    /// Parses what stands between `[` and `]`, and `]`. Also returns the heights of the expressions.
    fn subscripts(&mut self) -> Parse<(Vec<Subscript>, Vec<usize>)> {
        let mut out = vec![self.subscript()?];
        while self.eat(",") {
            out.push(self.subscript()?);
        }
        self.no_range()?;
        self.expect("]", "after the index")?;
        let depths = out.iter().flat_map(Subscript::parts).map(|e| e.depth).collect();
        Ok((out, depths))
    }

    fn subscript(&mut self) -> Parse<Subscript> {
        let start = self.span();
        let from = if self.is(":") { None } else { Some(self.nested(|p| p.operators(0))?) };
        let from = match from {
            Some(index) if !self.is(":") => return Ok(Subscript::At(index)),
            from => from,
        };
        self.advance();
        let to = self.bound()?;
        let stepped = self.eat(":");
        let step = if stepped { self.bound()? } else { None };
        let span = start.to(self.last_span());
        Ok(Subscript::Slice(Box::new(Slice { from, to, step, stepped, span })))
    }

    /// Parses a part of a slice, which may be left out.
    fn bound(&mut self) -> Parse<Option<Expr>> {
        let missing = self.is(":") || self.is(",") || self.is("]");
        Ok(if missing { None } else { Some(self.nested(|p| p.operators(0))?) })
    }

    /// Parses operands joined by operators of precedence `least` or higher. All operators but `<|` associate to the left.
    fn operators(&mut self, least: u8) -> Parse<Expr> {
        let mut left = self.operand()?;
        while let Tok::Sym(symbol) = self.tok() {
            let level = match symbol {
                "`" => 0,
                "|>" => 1,
                ">->" | "<-<" | "<|" => 2,
                _ => match binary_operator(symbol) {
                    Some((_, level)) => level,
                    None => break,
                },
            };
            // `(e +)` is a section: the parser of parentheses takes the operator.
            if level < least || self.token_at(self.at + 1).tok == Tok::Sym(")") {
                break;
            }
            self.advance();
            let infix = if symbol == "`" { Some(self.infix()?) } else { None };
            let right = match symbol {
                "<|" => self.nested(|p| p.operators(2))?,
                _ => self.operators(level + 1)?,
            };
            let (start, depths) = (left.span, [left.depth, right.depth]);
            let (l, r) = (Box::new(left), Box::new(right));
            if let Some(name) = infix {
                left = self.node(ExprKind::Infix(l, name, r), start, &depths)?;
                continue;
            }
            let kind = match (symbol, binary_operator(symbol)) {
                (_, Some((op, _))) => ExprKind::Binary(op, l, r),
                ("|>", None) => ExprKind::Pipe(l, r),
                ("<|", None) => ExprKind::Pipe(r, l),
                ("<-<", None) => ExprKind::Compose { first: r, second: l },
                (_, None) => ExprKind::Compose { first: l, second: r },
            };
            left = self.node(kind, start, &depths)?;
        }
        Ok(left)
    }

    fn operand(&mut self) -> Parse<Expr> {
        let start = self.span();
        match self.tok() {
            Tok::Sym(symbol @ ("-" | "!" | "~")) => {
                self.advance();
                let op = match symbol {
                    "-" => ScalarOp::Neg,
                    "!" => ScalarOp::Not,
                    _ => ScalarOp::BitNot,
                };
                let e = self.nested(Self::operand)?;
                let depth = e.depth;
                self.node(ExprKind::Unary(op, Box::new(e)), start, &[depth])
            }
            Tok::Sym("\\") => self.lambda(),
            Tok::Word("let") => self.let_in(),
            Tok::Word("if") => self.conditional(),
            Tok::Word("loop") => self.looping(),
            _ => self.application(),
        }
    }

    /// Parses the name of a function and the quote behind it.
    fn infix(&mut self) -> Parse<Name> {
        let span = self.span();
        let name = if self.tok() == Tok::Qualified {
            self.advance();
            Name { text: self.text(span).to_owned(), span }
        } else {
            self.name("the name of a function")?
        };
        self.expect("`", "after the name")?;
        Ok(name)
    }

    fn lambda(&mut self) -> Parse<Expr> {
        let start = self.advance().span;
        let params = self.patterns()?;
        if params.is_empty() {
            return self.unexpected("a parameter of the function");
        }
        let result = if self.eat(":") { Some(self.ty()?) } else { None };
        self.expect("->", "after the parameters of the function")?;
        let body = self.expr()?;
        let depth = body.depth;
        self.node(ExprKind::Lambda(params, result, Box::new(body)), start, &[depth])
    }

    fn let_in(&mut self) -> Parse<Expr> {
        let start = self.advance().span;
        let pat = self.nested(Self::pattern)?;
        if self.is_update(&pat) {
            return self.let_update(pat, start);
        }
        let sized = matches!(self.token_at(self.at + 1).tok, Tok::Ident);
        if self.is("[") && !sized {
            return self.no_binders(&pat);
        }
        let signature = self.at;
        let mut binders = self.binders()?;
        let outer = self.types.params.len();
        self.types.params.extend(binders.types.iter().cloned());
        let params = self.patterns()?;
        if let PatKind::Name(name) = &pat.kind {
            self.no_recursion(name, pat.span, &params)?;
        }
        let function = binders.named.is_empty() && binders.types.is_empty() || !params.is_empty();
        if !function {
            return self.no_binders(&pat);
        }
        let ty = if self.eat(":") { Some(self.ty()?) } else { None };
        self.implicit_sizes(signature, &params, &mut binders);
        self.expect("=", "in the definition")?;
        let value = self.expr()?;
        self.types.params.truncate(outer);
        self.let_body(start, pat, Box::new(binders), params, ty, value)
    }

    /// Parses what follows the value of a `let`.
    fn let_body(
        &mut self,
        start: Span,
        pat: Pat,
        binders: Box<Binders>,
        params: Vec<Pat>,
        ty: Option<TypeExpr>,
        value: Expr,
    ) -> Parse<Expr> {
        if !self.eat("in") && !self.is("let") {
            let d = self.expected("`in` (or another `let`) after the definition");
            let lines = self.text(value.span).contains('\n');
            let help =
                "the value goes on to here: if it ends in an earlier line, write `in` behind it";
            return self.fail(if lines { d.help(help) } else { d });
        }
        let body = self.expr()?;
        let depths = [value.depth, body.depth];
        let (value, body) = (Box::new(value), Box::new(body));
        self.node(ExprKind::Let { pat, binders, params, ty, value, body }, start, &depths)
    }

    /// Returns whether `let xs[i] = e` stands here, behind `xs`.
    fn is_update(&self, pat: &Pat) -> bool {
        let adjacent = self.is("[") && self.span().start == pat.span.end;
        adjacent && self.closing().is_some_and(|at| self.token_at(at + 1).tok == Tok::Sym("="))
    }

    /// Parses `[i] = e in body`, an update of the array with this name.
    fn let_update(&mut self, pat: Pat, start: Span) -> Parse<Expr> {
        self.advance();
        let (places, mut depths) = self.subscripts()?;
        self.expect("=", "and the new value")?;
        let value = self.expr()?;
        depths.push(value.depth);
        // The array has the place of the name that is bound. The formatter knows the update by that.
        let kind = ExprKind::With(Box::new(as_expression(&pat)), places, Box::new(value));
        let value = self.node(kind, pat.span, &depths)?;
        self.let_body(start, pat, Box::default(), vec![], None, value)
    }

    fn conditional(&mut self) -> Parse<Expr> {
        let start = self.advance().span;
        let c = self.expr()?;
        self.expect("then", "after the condition")?;
        let a = self.expr()?;
        self.expect("else", "(an `if` always has both branches)")?;
        let b = self.expr()?;
        let depths = [c.depth, a.depth, b.depth];
        self.node(ExprKind::If(Box::new(c), Box::new(a), Box::new(b)), start, &depths)
    }

    fn looping(&mut self) -> Parse<Expr> {
        let start = self.advance().span;
        // Both `loop (acc = e)` and `loop acc = e` are allowed. A tuple pattern also starts with a parenthesis.
        let whole = self.is("(") && self.accumulator_in_parentheses();
        if whole {
            self.advance();
        }
        let mut pat = self.nested(Self::typed_pattern)?;
        let mut init = if self.is("for") || self.is("while") || whole && self.is(",") {
            as_expression(&pat)
        } else {
            self.expect("=", "and the accumulator's first value")?;
            self.expr()?
        };
        if whole {
            if self.is(",") {
                (pat, init) = self.accumulators(pat, init)?;
            }
            self.expect(")", "after the accumulator")?;
        }
        let form = if self.eat("for") {
            let counter = matches!(self.tok(), Tok::Ident | Tok::Sym("_"));
            if counter && self.token_at(self.at + 1).tok == Tok::Sym("<") {
                let span = self.advance().span;
                let name = Name { text: self.text(span).to_owned(), span };
                self.advance();
                LoopForm::For(name, Box::new(self.expr()?))
            } else {
                let element = self.nested(Self::pattern)?;
                self.expect("in", "and an array (or `<` and the counter's bound)")?;
                LoopForm::In(element, Box::new(self.expr()?))
            }
        } else if self.eat("while") {
            LoopForm::While(Box::new(self.expr()?))
        } else {
            return self.unexpected("`for i < n`, `for x in xs` or `while c`");
        };
        self.expect("do", "before the body of the loop")?;
        let body = self.expr()?;
        let steering = match &form {
            LoopForm::For(_, e) | LoopForm::In(_, e) | LoopForm::While(e) => e.depth,
        };
        let depths = [init.depth, steering, body.depth];
        let (init, body) = (Box::new(init), Box::new(body));
        self.node(ExprKind::Loop { pat, init, form, body }, start, &depths)
    }

    /// Parses the rest of `(a = e, b = f)`, which is short for `((a, b) = (e, f))`. A name alone begins with its value.
    fn accumulators(&mut self, pat: Pat, init: Expr) -> Parse<(Pat, Expr)> {
        let (mut of_pats, of_inits) = (pat.span, init.span);
        let (mut pats, mut inits) = (vec![pat], vec![init]);
        while self.eat(",") {
            let pat = self.nested(Self::typed_pattern)?;
            of_pats = of_pats.to(pat.span);
            inits.push(match self.is(",") || self.is(")") {
                true => as_expression(&pat),
                false => {
                    self.expect("=", "and the accumulator's first value")?;
                    self.expr()?
                }
            });
            pats.push(pat);
        }
        let depths: Vec<_> = inits.iter().map(|e| e.depth).collect();
        let init = self.node(ExprKind::Tuple(inits), of_inits, &depths)?;
        Ok((Pat { kind: PatKind::Tuple(pats), span: of_pats }, init))
    }

    /// At `(`, returns whether `=` occurs directly inside this pair of parentheses.
    fn accumulator_in_parentheses(&self) -> bool {
        let mut open = 0usize;
        for token in self.tokens.iter().skip(self.at) {
            match token.tok {
                Tok::Sym("(" | "[" | "{") => open += 1,
                Tok::Sym(")" | "]" | "}") => {
                    open = open.saturating_sub(1);
                    if open == 0 {
                        return false;
                    }
                }
                Tok::Sym("=") => return open == 1,
                Tok::Word(_) | Tok::Eof => return false,
                Tok::Ident
                | Tok::Qualified
                | Tok::TypeParam
                | Tok::Number
                | Tok::Proj
                | Tok::Field
                | Tok::Text
                | Tok::Sym(_) => {}
            }
        }
        false
    }

    /// At an opening bracket, returns the number of the token that closes it.
    fn closing(&self) -> Option<usize> {
        let mut open = 0usize;
        for (at, token) in self.tokens.iter().enumerate().skip(self.at) {
            match token.tok {
                Tok::Sym("(" | "[" | "{") => open += 1,
                Tok::Sym(")" | "]" | "}") => open = open.saturating_sub(1),
                _ => {}
            }
            if open == 0 {
                return Some(at);
            }
        }
        None
    }

    fn starts_atom(&self) -> bool {
        matches!(
            self.tok(),
            Tok::Ident
                | Tok::Qualified
                | Tok::Number
                | Tok::Word("true" | "false")
                | Tok::Sym("(" | "[" | "{")
        )
    }

    fn application(&mut self) -> Parse<Expr> {
        self.no_match()?;
        let function = self.atom()?;
        let (start, mut depths) = (function.span, vec![function.depth]);
        let mut args = vec![];
        while self.starts_atom() {
            let arg = self.atom()?;
            depths.push(arg.depth);
            args.push(arg);
        }
        if args.is_empty() {
            return Ok(function);
        }
        self.node(ExprKind::Apply(Box::new(function), args), start, &depths)
    }

    /// Parses a primary expression with the indices and projections attached to it.
    fn atom(&mut self) -> Parse<Expr> {
        let mut e = self.primary()?;
        loop {
            let (start, depth) = (e.span, e.depth);
            if let Some(part) = self.part()? {
                let whole = Box::new(e);
                let kind = match part {
                    Part::Component(i) => ExprKind::Proj(whole, i),
                    Part::Field(name) => ExprKind::Field(whole, name),
                };
                e = self.node(kind, start, &[depth])?;
                continue;
            }
            match self.tok() {
                Tok::Sym("[") if self.span().start == start.end => {
                    self.advance();
                    let (indices, mut depths) = self.subscripts()?;
                    depths.push(depth + indices.len());
                    e = self.node(ExprKind::Index(Box::new(e), indices), start, &depths)?;
                }
                _ => return Ok(e),
            }
        }
    }

    /// Parses `.0` or `.x`, if one stands here.
    fn part(&mut self) -> Parse<Option<Part>> {
        let tok = self.tok();
        if !matches!(tok, Tok::Proj | Tok::Field) {
            return Ok(None);
        }
        let span = self.advance().span;
        let name = self.text(span).trim_start_matches('.');
        if tok == Tok::Field {
            return Ok(Some(Part::Field(name.to_owned())));
        }
        match name.parse() {
            Ok(i) => Ok(Some(Part::Component(i))),
            Err(_) => {
                let d = Diagnostic::error(Code::Parse, "no tuple has that many components");
                self.fail(d.at(self.source, span, ""))
            }
        }
    }

    fn primary(&mut self) -> Parse<Expr> {
        let start = self.span();
        let kind = match self.tok() {
            Tok::Ident | Tok::Qualified => {
                self.advance();
                ExprKind::Name(self.text(start).to_owned())
            }
            Tok::Number => {
                self.advance();
                // The lexer has reported a malformed number.
                let (n, suffix) = lexer::number(self.text(start)).unwrap_or((Number::Int(0), None));
                ExprKind::Number(n, suffix)
            }
            Tok::Word(word @ ("true" | "false")) => {
                self.advance();
                ExprKind::Bool(word == "true")
            }
            Tok::Sym("(") => return self.parenthesis(),
            Tok::Sym("{") => return self.record(),
            Tok::Sym("[") => {
                self.no_slice_behind_space()?;
                self.no_comprehension()?;
                self.advance();
                if self.is("]") {
                    let d = Diagnostic::error(Code::Parse, "an array without elements").at(
                        self.source,
                        start.to(self.span()),
                        "of which type?",
                    );
                    return self.fail(d.help("write `replicate 0 x`"));
                }
                let mut parts = vec![self.expr()?];
                while self.eat(",") {
                    parts.push(self.expr()?);
                }
                self.no_repetition()?;
                self.expect("]", "after the elements")?;
                let depths: Vec<_> = parts.iter().map(|e| e.depth).collect();
                return self.node(ExprKind::Array(parts), start, &depths);
            }
            _ => return self.unexpected("an expression"),
        };
        self.node(kind, start, &[])
    }

    fn parenthesis(&mut self) -> Parse<Expr> {
        let start = self.advance().span;
        if self.is(")") {
            let d = Diagnostic::error(Code::Parse, "nothing between parentheses").at(
                self.source,
                start.to(self.span()),
                "there is no empty tuple",
            );
            return self.fail(d);
        }
        let mut parts = vec![];
        while let Some(part) = self.part()? {
            parts.push(part);
        }
        if !parts.is_empty() {
            self.expect(")", "to close the section")?;
            return self.node(ExprKind::SectionPart(parts), start, &[]);
        }
        let prefix = |symbol| match symbol {
            "!" => Some(ScalarOp::Not),
            "~" => Some(ScalarOp::BitNot),
            _ => None,
        };
        let alone = self.token_at(self.at + 1).tok == Tok::Sym(")");
        if let Tok::Sym(symbol) = self.tok()
            && alone
            && let Some(op) = prefix(symbol)
        {
            self.advance();
            self.advance();
            return self.node(ExprKind::Section(Operator::Scalar(op)), start, &[]);
        }
        if let Tok::Sym(symbol) = self.tok()
            && let Some((op, _)) = binary_operator(symbol)
        {
            if alone {
                self.advance();
                self.advance();
                return self.node(ExprKind::Section(op), start, &[]);
            }
            // `(- e)` is a negation, not a section.
            if symbol != "-" {
                self.advance();
                let e = self.expr()?;
                self.expect(")", "to close the section")?;
                let depth = e.depth;
                return self.node(ExprKind::SectionRight(op, Box::new(e)), start, &[depth]);
            }
        }
        let first = self.expr()?;
        let depth = first.depth;
        if let Tok::Sym(symbol) = self.tok()
            && let Some((op, _)) = binary_operator(symbol)
        {
            self.advance();
            self.expect(")", "to close the section")?;
            return self.node(ExprKind::SectionLeft(Box::new(first), op), start, &[depth]);
        }
        let mut parts = vec![first];
        while self.eat(",") {
            parts.push(self.expr()?);
        }
        if !self.is(")") {
            return self.unexpected("`)` (or an operator, an argument, `,`)");
        }
        self.advance();
        let depths: Vec<_> = parts.iter().map(|e| e.depth).collect();
        let kind = match (parts.len(), parts.pop()) {
            (1, Some(part)) => ExprKind::Paren(Box::new(part)),
            (_, last) => {
                parts.extend(last);
                ExprKind::Tuple(parts)
            }
        };
        self.node(kind, start, &depths)
    }
}

/// Returns the value of the names in a pattern, at the same place: `loop (a, b) for ...` begins with `(a, b)`.
fn as_expression(pat: &Pat) -> Expr {
    let parts = |pats: &[Pat]| pats.iter().map(as_expression).collect::<Vec<_>>();
    let kind = match &pat.kind {
        PatKind::Name(name) => ExprKind::Name(name.clone()),
        PatKind::Wild => ExprKind::Name("_".to_owned()),
        PatKind::Tuple(pats) => ExprKind::Tuple(parts(pats)),
        PatKind::Record(fields) => ExprKind::Record(
            fields.iter().map(|(n, p)| (n.clone(), p.as_ref().map(as_expression))).collect(),
        ),
        PatKind::Paren(p) | PatKind::Typed(p, _) => as_expression(p).kind,
    };
    let parts: &[Expr] = if let ExprKind::Tuple(parts) = &kind { parts } else { &[] };
    let depth = 1 + parts.iter().map(|e| e.depth).max().unwrap_or(0);
    Expr { kind, span: pat.span, depth }
}
