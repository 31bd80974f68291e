//! The formatter. It prints the tokens of the source in their order and chooses only the white space between them,
//! so that it can lose neither a token nor a comment. The syntax tree determines where lines may break.

use super::ast::{
    Binders, Decl, Expr, ExprKind, File, LoopForm, Name, Pat, PatKind, Subscript, TypeDecl,
    TypeExpr, TypeKind, binary_operator,
};
use super::lexer::{Comment, Lexed, Tok, lex};
use super::parser;
use crate::diag::{Code, Diagnostic, Failure, Result, Source};
use std::collections::BTreeSet;
use std::sync::Arc;

const WIDTH: usize = 100;
const INDENT: usize = 2;
/// Stands for the precedence of functions in quotes, the least.
const INFIX: u8 = u8::MAX;
const OPERATORS: [&str; 17] =
    ["||", "&&", "==", "!=", "<", "<=", ">", ">=", "+", "-", "++", "*", "/", "%", "//", "%%", "**"];

/// Returns the program in the standard form: with the same tokens and comments, but other white space.
pub fn format(source: &Arc<Source>) -> Result<String> {
    let (file, lexed, diagnostics) = parser::parse_tokens(source);
    if parser::failed(&diagnostics) {
        return Err(Failure(diagnostics));
    }
    let mut builder = Builder { lexed: &lexed, at: 0 };
    let decls = builder.file(&file);
    let starts = decls.iter().map(|d| d.first).collect();
    let mut writer = Writer { source, lexed: &lexed, starts, out: String::new(), gap: Gap::None };
    for decl in &decls {
        writer.top_level(decl.first);
        writer.doc(&decl.doc, 0, false);
        writer.gap = Gap::Line(0);
    }
    writer.top_level(lexed.tokens.len().saturating_sub(1));
    if !writer.out.is_empty() {
        writer.out.push('\n');
    }
    let out = writer.out;
    if !same_tokens(source, &lexed, &out) {
        let d = Diagnostic::error(
            Code::Internal,
            "the formatter would change the program; it is left as it is",
        );
        return Err(d.into());
    }
    Ok(out)
}

/// Returns whether the text has the same tokens and comments as the source.
fn same_tokens(source: &Source, lexed: &Lexed, out: &str) -> bool {
    let other = Source::new("formatted", out);
    let again = lex(&other);
    let text =
        |s: &Source, span: crate::diag::Span| s.text.get(span.range()).unwrap_or("").to_owned();
    let mut tokens = lexed.tokens.iter().zip(&again.tokens);
    let mut comments = lexed.comments.iter().zip(&again.comments);
    lexed.tokens.len() == again.tokens.len()
        && lexed.comments.len() == again.comments.len()
        && tokens.all(|(a, b)| a.tok == b.tok && text(source, a.span) == text(&other, b.span))
        && comments
            .all(|(a, b)| a.before == b.before && text(source, a.span) == text(&other, b.span))
}

/// A layout: tokens by index, with the places where lines may break.
enum Doc {
    Token(usize),
    Space,
    /// A space, or a line break if the enclosing group does not fit on a line.
    Line,
    /// A line break.
    HardLine,
    /// Indents its contents.
    Nest(Box<Doc>),
    /// Puts its contents on one line if they fit.
    Group(Box<Doc>),
    Seq(Vec<Doc>),
}

struct TopLevel {
    first: usize,
    doc: Doc,
}

fn nest(docs: Vec<Doc>) -> Doc {
    Doc::Nest(Box::new(Doc::Seq(docs)))
}

fn group(docs: Vec<Doc>) -> Doc {
    Doc::Group(Box::new(Doc::Seq(docs)))
}

/// Builds a layout by walking the tree in the order of the tokens.
struct Builder<'a> {
    lexed: &'a Lexed,
    at: usize,
}

impl Builder<'_> {
    fn token(&mut self) -> Doc {
        self.at += 1;
        Doc::Token(self.at - 1)
    }

    fn next_is(&self, symbol: &str) -> bool {
        let tok = self.lexed.tokens.get(self.at).map(|t| t.tok);
        matches!(tok, Some(Tok::Sym(s) | Tok::Word(s)) if s == symbol)
    }

    fn file(&mut self, file: &File) -> Vec<TopLevel> {
        let mut out = vec![];
        let mut imports = vec![];
        for i in 0..file.imports.len() {
            imports.extend((i > 0).then_some(Doc::HardLine));
            imports.extend([self.token(), Doc::Space, self.token()]);
        }
        if !imports.is_empty() {
            out.push(TopLevel { first: 0, doc: Doc::Seq(imports) });
        }
        let mut types = file.types.iter().peekable();
        for decl in &file.decls {
            while let Some(ty) = types.next_if(|t| t.name.span < decl.name.span) {
                out.push(TopLevel { first: self.at, doc: self.named_type(ty) });
            }
            out.push(TopLevel { first: self.at, doc: self.decl(decl) });
        }
        out.extend(types.map(|ty| TopLevel { first: self.at, doc: self.named_type(ty) }));
        out
    }

    fn named_type(&mut self, ty: &TypeDecl) -> Doc {
        let mut head = vec![self.token(), Doc::Space, self.token()];
        for i in 0..ty.params.len() {
            head.extend((i == 0).then_some(Doc::Space));
            head.extend([self.token(), self.token(), self.token()]);
        }
        head.extend([Doc::Space, self.token(), nest(vec![Doc::Line, self.ty(&ty.body)])]);
        group(head)
    }

    fn decl(&mut self, decl: &Decl) -> Doc {
        let mut head = vec![self.token(), Doc::Space, self.token(), self.binders(&decl.binders)];
        let mut rest = vec![];
        for param in &decl.params {
            rest.extend([Doc::Line, self.pattern(param)]);
        }
        if let Some(ty) = &decl.result {
            rest.extend([Doc::Line, self.token(), Doc::Space, self.ty(ty)]);
        }
        rest.extend([Doc::Space, self.token()]);
        head.push(nest(rest));
        let line = if decl.entry { Doc::HardLine } else { Doc::Line };
        let body = self.expr(&decl.body);
        if decl.entry {
            Doc::Seq(vec![group(head), nest(vec![line, body])])
        } else {
            group(vec![group(head), nest(vec![line, body])])
        }
    }

    /// Lays out `[n] 't`, and the space before it.
    fn binders(&mut self, binders: &Binders) -> Doc {
        let mut docs = vec![];
        let mut last = None;
        for _ in 0..binders.named.len() + binders.types.len() {
            let size = self.next_is("[");
            if !size || last != Some(size) {
                docs.push(Doc::Space);
            }
            docs.push(self.token());
            if size {
                docs.extend([self.token(), self.token()]);
            }
            last = Some(size);
        }
        Doc::Seq(docs)
    }

    fn pattern(&mut self, pat: &Pat) -> Doc {
        match &pat.kind {
            PatKind::Name(_) | PatKind::Wild => self.token(),
            PatKind::Paren(p) => Doc::Seq(vec![self.token(), self.pattern(p), self.token()]),
            PatKind::Typed(p, ty) => {
                Doc::Seq(vec![self.pattern(p), self.token(), Doc::Space, self.ty(ty)])
            }
            PatKind::Tuple(parts) => self.listed(parts, Self::pattern),
            PatKind::Record(fields) => self.fields(fields, Self::pattern),
        }
    }

    fn ty(&mut self, ty: &TypeExpr) -> Doc {
        match &ty.kind {
            TypeKind::Scalar(_) | TypeKind::Vector(..) | TypeKind::Param(_) => self.token(),
            TypeKind::Paren(t) => Doc::Seq(vec![self.token(), self.ty(t), self.token()]),
            TypeKind::Tuple(ts) => self.listed(ts, Self::ty),
            TypeKind::Record(fields) => self.listed(fields, |this, (_, t)| {
                Doc::Seq(vec![this.token(), this.token(), Doc::Space, this.ty(t)])
            }),
            TypeKind::Array(n, t) => Doc::Seq(vec![self.size(n), self.ty(t)]),
            TypeKind::Named(_, sizes) => {
                let mut docs = vec![self.token()];
                for (i, n) in sizes.iter().enumerate() {
                    docs.extend((i == 0).then_some(Doc::Space));
                    docs.push(self.size(n));
                }
                Doc::Seq(docs)
            }
            TypeKind::Unique(t) => Doc::Seq(vec![self.token(), self.ty(t)]),
            TypeKind::Function(t, u) => {
                Doc::Seq(vec![self.ty(t), Doc::Space, self.token(), Doc::Space, self.ty(u)])
            }
        }
    }

    /// Lays out `[n]` or `[]`.
    fn size(&mut self, n: &Expr) -> Doc {
        let mut docs = vec![self.token()];
        if !self.next_is("]") {
            docs.push(self.expr(n));
        }
        docs.push(self.token());
        Doc::Seq(docs)
    }

    /// Lays out the fields of a record.
    fn fields<T>(&mut self, fields: &[(Name, Option<T>)], part: fn(&mut Self, &T) -> Doc) -> Doc {
        self.listed(fields, |this, (_, value)| {
            let mut docs = vec![this.token()];
            if let Some(value) = value {
                docs.extend([Doc::Space, this.token(), Doc::Space, part(this, value)]);
            }
            Doc::Seq(docs)
        })
    }

    /// Lays out a comma-separated list in parentheses.
    fn listed<T>(&mut self, parts: &[T], part: impl Fn(&mut Self, &T) -> Doc) -> Doc {
        let open = self.token();
        let mut inner = vec![];
        for (i, p) in parts.iter().enumerate() {
            if i > 0 {
                inner.push(Doc::Line);
            }
            inner.extend([part(self, p), self.token()]);
        }
        group(vec![open, nest(inner)])
    }

    /// Lays out indices and slices, in brackets.
    fn subscripts(&mut self, subscripts: &[Subscript]) -> Doc {
        let mut docs = vec![self.token()];
        for (i, subscript) in subscripts.iter().enumerate() {
            if i > 0 {
                docs.push(Doc::Space);
            }
            match subscript {
                Subscript::At(index) => docs.push(self.expr(index)),
                Subscript::Slice(s) => {
                    docs.extend(s.from.as_ref().map(|e| self.expr(e)));
                    docs.push(self.token());
                    docs.extend(s.to.as_ref().map(|e| self.expr(e)));
                    if s.stepped {
                        docs.push(self.token());
                    }
                    docs.extend(s.step.as_ref().map(|e| self.expr(e)));
                }
            }
            docs.push(self.token());
        }
        Doc::Seq(docs)
    }

    /// Lays out operands of operators with the same precedence: either all on one line, or each on its own.
    fn chain(&mut self, e: &Expr) -> Doc {
        let level = level(&e.kind);
        let mut rights = vec![];
        let mut left = e;
        while let Some((l, r)) = operands(&left.kind).filter(|_| self::level(&left.kind) == level) {
            rights.push(r);
            left = l;
        }
        let first = self.expr(left);
        let mut rest = vec![];
        for right in rights.into_iter().rev() {
            rest.extend([Doc::Line, self.token()]);
            if level == INFIX {
                rest.extend([self.token(), self.token()]);
            }
            rest.extend([Doc::Space, self.expr(right)]);
        }
        group(vec![first, nest(rest)])
    }

    fn expr(&mut self, e: &Expr) -> Doc {
        match &e.kind {
            ExprKind::Let { .. } | ExprKind::If(..) => {
                let doc = self.open(e);
                group(vec![doc])
            }
            _ => self.open(e),
        }
    }

    /// Like [`Builder::expr`], but a `let` or `if` breaks together with the enclosing group.
    fn open(&mut self, e: &Expr) -> Doc {
        match &e.kind {
            ExprKind::Name(_) | ExprKind::Number(..) | ExprKind::Bool(_) => self.token(),
            ExprKind::Tuple(parts) => self.listed(parts, Self::expr),
            ExprKind::Paren(x) => Doc::Seq(vec![self.token(), self.expr(x), self.token()]),
            ExprKind::Apply(f, args) => {
                let mut docs = vec![self.expr(f)];
                let mut rest = vec![];
                for (i, arg) in args.iter().enumerate() {
                    let last_function = i + 1 == args.len()
                        && matches!(&arg.kind, ExprKind::Paren(x) if matches!(x.kind, ExprKind::Lambda(..)));
                    rest.push(if last_function { Doc::Space } else { Doc::Line });
                    let arg = self.expr(arg);
                    // A function in the last position breaks inside; the arguments before it stay on its first
                    // line.
                    if last_function {
                        docs.push(group(vec![nest(std::mem::take(&mut rest))]));
                        docs.push(arg);
                    } else {
                        rest.push(arg);
                    }
                }
                docs.push(nest(rest));
                group(docs)
            }
            ExprKind::Record(fields) => self.fields(fields, Self::expr),
            ExprKind::Field(x, _) => Doc::Seq(vec![self.expr(x), self.token()]),
            ExprKind::Update(x, path, value) => {
                let mut docs = vec![self.expr(x), Doc::Line, self.token(), Doc::Space];
                docs.extend(path.iter().map(|_| self.token()));
                docs.extend([Doc::Space, self.token(), nest(vec![Doc::Line, self.expr(value)])]);
                group(docs)
            }
            ExprKind::Lambda(params, result, body) => {
                let mut docs = vec![self.token()];
                for (i, p) in params.iter().enumerate() {
                    if i > 0 {
                        docs.push(Doc::Space);
                    }
                    docs.push(self.pattern(p));
                }
                if let Some(ty) = result {
                    docs.extend([Doc::Space, self.token(), Doc::Space, self.ty(ty)]);
                }
                docs.extend([Doc::Space, self.token()]);
                docs.push(nest(vec![Doc::Line, self.expr(body)]));
                group(docs)
            }
            ExprKind::Let { pat, binders, params, ty, value, body } => {
                let mut docs = vec![self.token(), Doc::Space, self.pattern(pat)];
                let mut value = value;
                if let ExprKind::With(array, places, new) = &value.kind
                    && array.span == pat.span
                {
                    // `let xs[i] = e`.
                    docs.push(self.subscripts(places));
                    value = new;
                }
                docs.push(self.binders(binders));
                for p in params {
                    docs.extend([Doc::Space, self.pattern(p)]);
                }
                if let Some(ty) = ty {
                    docs.extend([Doc::Space, self.token(), Doc::Space, self.ty(ty)]);
                }
                docs.extend([Doc::Space, self.token()]);
                let value = nest(vec![Doc::Line, self.expr(value)]);
                docs.push(group(vec![value]));
                if self.next_is("in") {
                    docs.extend([Doc::Space, self.token()]);
                }
                docs.extend([Doc::Line, self.open(body)]);
                Doc::Seq(docs)
            }
            ExprKind::If(c, a, b) => {
                let head = vec![self.token(), Doc::Space, self.expr(c)];
                let yes = vec![Doc::Line, self.token(), Doc::Space, nest(vec![self.expr(a)])];
                let word = self.token();
                let no = if matches!(b.kind, ExprKind::If(..)) {
                    self.open(b)
                } else {
                    nest(vec![self.expr(b)])
                };
                Doc::Seq(
                    head.into_iter().chain(yes).chain([Doc::Line, word, Doc::Space, no]).collect(),
                )
            }
            ExprKind::Loop { pat, init, form, body } => {
                let mut docs = vec![self.token(), Doc::Space];
                let whole =
                    self.lexed.tokens.get(self.at).is_some_and(|t| t.span.start < pat.span.start);
                if whole {
                    docs.push(self.token());
                }
                // `(a = e, b)`: the first value stands before the last name. A name without a value is its own.
                let several = match (&pat.kind, &init.kind) {
                    (PatKind::Tuple(pats), ExprKind::Tuple(values))
                        if init.span.start < pat.span.end
                            && pats.iter().zip(values).any(|(p, v)| p.span != v.span) =>
                    {
                        pats.iter().zip(values).collect()
                    }
                    _ => vec![],
                };
                for (k, (pat, value)) in several.iter().enumerate() {
                    if k > 0 {
                        docs.extend([self.token(), Doc::Space]);
                    }
                    docs.push(self.pattern(pat));
                    if value.span != pat.span {
                        docs.extend([Doc::Space, self.token(), Doc::Space, self.expr(value)]);
                    }
                }
                if several.is_empty() {
                    docs.push(self.pattern(pat));
                    if init.span != pat.span {
                        docs.extend([Doc::Space, self.token(), Doc::Space, self.expr(init)]);
                    }
                }
                if whole {
                    docs.push(self.token());
                }
                docs.extend([Doc::Space, self.token(), Doc::Space]);
                match form {
                    LoopForm::For(_, bound) => {
                        docs.extend([self.token(), Doc::Space, self.token(), Doc::Space]);
                        docs.push(self.expr(bound));
                    }
                    LoopForm::In(element, array) => {
                        docs.extend([self.pattern(element), Doc::Space, self.token(), Doc::Space]);
                        docs.push(self.expr(array));
                    }
                    LoopForm::While(cond) => docs.push(self.expr(cond)),
                }
                docs.extend([Doc::Space, self.token()]);
                docs.push(nest(vec![Doc::Line, self.expr(body)]));
                group(docs)
            }
            ExprKind::Index(a, indices) => Doc::Seq(vec![self.expr(a), self.subscripts(indices)]),
            ExprKind::With(a, places, value) => {
                let mut docs = vec![self.expr(a), Doc::Line, self.token(), Doc::Space];
                docs.extend([self.subscripts(places), Doc::Space]);
                // `<-` is two tokens, `=` one.
                if self.next_is("<") {
                    docs.push(self.token());
                }
                docs.extend([self.token(), nest(vec![Doc::Line, self.expr(value)])]);
                group(docs)
            }
            ExprKind::Array(parts) => self.listed(parts, Self::expr),
            ExprKind::Proj(x, _) => Doc::Seq(vec![self.expr(x), self.token()]),
            ExprKind::Unary(_, x) => {
                let mut docs = vec![self.token()];
                // Two adjacent dashes would start a comment.
                if matches!(x.kind, ExprKind::Unary(..)) {
                    docs.push(Doc::Space);
                }
                docs.push(self.expr(x));
                Doc::Seq(docs)
            }
            ExprKind::Section(_) => Doc::Seq(vec![self.token(), self.token(), self.token()]),
            ExprKind::SectionLeft(x, _) => {
                Doc::Seq(vec![self.token(), self.expr(x), Doc::Space, self.token(), self.token()])
            }
            ExprKind::SectionPart(parts) => {
                Doc::Seq((0..parts.len() + 2).map(|_| self.token()).collect())
            }
            ExprKind::SectionRight(_, x) => {
                Doc::Seq(vec![self.token(), self.token(), Doc::Space, self.expr(x), self.token()])
            }
            ExprKind::Binary(..)
            | ExprKind::Pipe(..)
            | ExprKind::Compose { .. }
            | ExprKind::Infix(..) => self.chain(e),
            ExprKind::Ascribe(x, ty) => {
                Doc::Seq(vec![self.expr(x), Doc::Space, self.token(), Doc::Space, self.ty(ty)])
            }
        }
    }
}

/// Returns the operands in the order of the text.
fn operands(kind: &ExprKind) -> Option<(&Expr, &Expr)> {
    match kind {
        ExprKind::Binary(_, l, r) | ExprKind::Infix(l, _, r) => Some((l, r)),
        ExprKind::Pipe(a, b) | ExprKind::Compose { first: a, second: b } => {
            Some(if a.span <= b.span { (a, b) } else { (b, a) })
        }
        _ => None,
    }
}

/// Returns the precedence of the outermost operator.
fn level(kind: &ExprKind) -> u8 {
    match kind {
        ExprKind::Binary(op, ..) => OPERATORS
            .iter()
            .filter_map(|t| binary_operator(t))
            .find(|(o, _)| o == op)
            .map_or(0, |(_, l)| l),
        ExprKind::Pipe(x, f) if x.span <= f.span => 1,
        ExprKind::Pipe(..) | ExprKind::Compose { .. } => 2,
        ExprKind::Infix(..) => INFIX,
        _ => 0,
    }
}

/// The white space before the next token.
#[derive(Clone, Copy, PartialEq)]
enum Gap {
    None,
    Space,
    Line(usize),
}

struct Writer<'a> {
    source: &'a Source,
    lexed: &'a Lexed,
    /// The first token of each definition.
    starts: BTreeSet<usize>,
    out: String,
    gap: Gap,
}

impl Writer<'_> {
    fn text(&self, span: crate::diag::Span) -> &str {
        self.source.text.get(span.range()).unwrap_or("")
    }

    fn comments(&self, before: usize) -> Vec<Comment> {
        let all = &self.lexed.comments;
        let from = all.partition_point(|c| c.before < before);
        let to = all.partition_point(|c| c.before <= before);
        all[from..to].to_vec()
    }

    fn write(&mut self, text: &str) {
        match self.gap {
            Gap::None => {}
            Gap::Space => self.out.push(' '),
            Gap::Line(_) if self.out.is_empty() => {}
            Gap::Line(indent) => {
                self.out.push('\n');
                self.out.extend(std::iter::repeat_n(' ', indent));
            }
        }
        self.out.push_str(text);
        self.gap = Gap::None;
    }

    fn column(&self) -> usize {
        match self.gap {
            Gap::Line(indent) => indent,
            Gap::None | Gap::Space => {
                let line = self.out.rsplit('\n').next().unwrap_or("");
                line.chars().count() + usize::from(self.gap == Gap::Space)
            }
        }
    }

    /// Returns whether a comment is an attribute that stands in front of a token (or of another attribute) on its line.
    fn is_prefix(&self, comment: Comment) -> bool {
        let rest = self.source.text.get(comment.span.range().end..).unwrap_or_default();
        let line = rest.lines().next().unwrap_or_default().trim_start();
        let alone = line.is_empty() || line.starts_with("--");
        self.text(comment.span).starts_with("#[") && !alone
    }

    fn comment(&mut self, comment: Comment, indent: usize) {
        let text = self.text(comment.span).to_owned();
        if self.is_prefix(comment) {
            self.write(&text);
            self.gap = Gap::Space;
            return;
        }
        let line = if let Gap::Line(indent) = self.gap { indent } else { indent };
        if comment.trailing && !self.out.is_empty() {
            self.gap = Gap::None;
            self.write("  ");
        } else {
            self.gap = Gap::Line(line);
        }
        self.write(&text);
        self.gap = Gap::Line(line);
    }

    /// Prints comments and blank lines before a definition, or before the end of the file.
    fn top_level(&mut self, token: usize) {
        let mut last_end = None;
        let blank = |this: &Self, from: u32, to: u32| {
            let between = crate::diag::Span { start: from, end: to };
            this.text(between).bytes().filter(|b| *b == b'\n').count() > 1
        };
        let mut separate = true;
        for comment in self.comments(token) {
            if comment.trailing && !self.out.is_empty() {
                self.comment(comment, 0);
                continue;
            }
            let gap = last_end.is_some_and(|end| blank(self, end, comment.span.start));
            if (separate || gap) && !self.out.is_empty() {
                self.out.push('\n');
            }
            separate = false;
            if self.gap != Gap::Space {
                self.gap = Gap::Line(0);
            }
            self.comment(comment, 0);
            last_end = Some(comment.span.end);
        }
        let Some(next) = self.lexed.tokens.get(token) else { return };
        if next.tok == Tok::Eof {
            self.gap = Gap::None;
            return;
        }
        if self.gap == Gap::Space {
            return;
        }
        let gap = last_end.is_some_and(|end| blank(self, end, next.span.start));
        if (separate || gap) && !self.out.is_empty() {
            self.out.push('\n');
        }
        self.gap = Gap::Line(0);
    }

    /// Returns the width on one line; `None` if it needs several lines. Comments before the first token do not
    /// count.
    fn width(&self, doc: &Doc, first: &mut bool) -> Option<usize> {
        match doc {
            Doc::Token(i) => {
                let (prefixes, others): (Vec<Comment>, Vec<Comment>) =
                    self.comments(*i).into_iter().partition(|c| self.is_prefix(*c));
                if !others.is_empty() && !*first {
                    return None;
                }
                *first = false;
                let prefixes = prefixes.iter().map(|c| self.text(c.span).chars().count() + 1);
                let token = self.lexed.tokens.get(*i)?;
                Some(prefixes.sum::<usize>() + self.text(token.span).chars().count())
            }
            Doc::Space | Doc::Line => Some(1),
            Doc::HardLine => None,
            Doc::Nest(d) | Doc::Group(d) => self.width(d, first),
            Doc::Seq(ds) => ds.iter().try_fold(0, |sum, d| Some(sum + self.width(d, first)?)),
        }
    }

    fn doc(&mut self, doc: &Doc, indent: usize, broken: bool) {
        match doc {
            Doc::Token(i) => {
                // The comments before a definition have been printed already.
                if !self.starts.contains(i) {
                    for comment in self.comments(*i) {
                        self.comment(comment, indent);
                    }
                }
                if let Some(token) = self.lexed.tokens.get(*i) {
                    let text = self.text(token.span).to_owned();
                    self.write(&text);
                }
            }
            Doc::Space => self.space(),
            Doc::Line if !broken => self.space(),
            Doc::Line | Doc::HardLine => self.gap = Gap::Line(indent),
            Doc::Nest(d) => self.doc(d, indent + INDENT, broken),
            Doc::Group(d) => {
                let fits = self.width(d, &mut true).is_some_and(|w| self.column() + w <= WIDTH);
                self.doc(d, indent, !fits);
            }
            Doc::Seq(ds) => ds.iter().for_each(|d| self.doc(d, indent, broken)),
        }
    }

    fn space(&mut self) {
        if self.gap == Gap::None {
            self.gap = Gap::Space;
        }
    }
}
