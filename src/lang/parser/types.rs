//! Types, and the declarations that name them.
//!
//! A name may be used before its declaration. The parser then parses the declaration first, so that each use has the
//! type that it stands for.

use super::{Parse, Parser, Reported};
use crate::diag::{Code, Diagnostic, Limits};
use crate::lang::ast::{
    Binders, Expr, ExprKind, Name, Pat, PatKind, TypeDecl, TypeExpr, TypeKind, UNKNOWN,
};
use crate::lang::lexer::Tok;
use crate::lang::naming::{duplicate, nearest};
use crate::lang::types::ScalarType;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The names that types may mention.
#[derive(Default)]
pub(super) struct Types {
    /// The declarations of types: the place of each in the tokens, and what is known of it.
    named: BTreeMap<String, (usize, State)>,
    /// The type parameters of the current definition.
    pub params: Vec<Name>,
    /// The sizes that `[]` stands for in the parameters that are being parsed.
    pub unnamed: Option<Vec<Name>>,
    /// Every name in the text.
    names: BTreeSet<String>,
    /// Whether a name without a declaration may be a type of a file that is imported.
    pub elsewhere: bool,
}

/// What is known of a declaration.
#[derive(Clone)]
enum State {
    Unread,
    /// It is being parsed.
    Open,
    Wrong,
    /// It ends before this token.
    Known(Arc<TypeDecl>, usize),
}

impl Parser<'_> {
    /// Returns the declarations of types in the text, of which none is parsed yet.
    pub(super) fn named_types(&self) -> Types {
        let mut types = Types::default();
        for (i, token) in self.tokens.iter().enumerate().filter(|(_, t)| t.tok == Tok::Ident) {
            let name = self.text(token.span).to_owned();
            if i > 0 && self.tokens[i - 1].tok == Tok::Word("type") {
                types.named.entry(name.clone()).or_insert((i - 1, State::Unread));
            }
            types.names.insert(name);
        }
        types
    }

    /// Parses a declaration of a type, unless a use was parsed before it.
    pub(super) fn named_type(&mut self) -> Parse<Arc<TypeDecl>> {
        let at = self.at;
        self.advance();
        let name = self.name("the name of the type")?;
        if scalar_or_vector(&name.text).is_some() {
            let message = format!("`{}` is a type of the language", name.text);
            let d = Diagnostic::error(Code::DuplicateName, message);
            return self.fail(d.at(self.source, name.span, "choose another name"));
        }
        let (first, state) = match self.types.named.get(&name.text) {
            Some((first, state)) => (*first, state.clone()),
            None => (at, State::Unread),
        };
        if first != at {
            let other = self.token_at(first + 1).span;
            let d = duplicate(self.source, &name.text, name.span, other);
            return self.fail(d);
        }
        match state {
            State::Known(decl, end) => {
                self.at = end;
                return Ok(decl);
            }
            State::Wrong => return Err(Reported),
            State::Open => {
                let message = format!("the type `{}` contains itself", name.text);
                let d = Diagnostic::error(Code::Recursion, message);
                return self.fail(d.at(self.source, name.span, ""));
            }
            State::Unread => {}
        }
        self.types.named.insert(name.text.clone(), (at, State::Open));
        // The declaration is not a part of the definition that uses it.
        let params = std::mem::take(&mut self.types.params);
        let unnamed = self.types.unnamed.take();
        let decl = self.type_body(name.clone());
        (self.types.params, self.types.unnamed) = (params, unnamed);
        let state = decl.as_ref().map_or(State::Wrong, |d| State::Known(d.clone(), self.at));
        self.types.named.insert(name.text, (at, state));
        decl
    }

    fn type_body(&mut self, name: Name) -> Parse<Arc<TypeDecl>> {
        let mut params = vec![];
        while self.is("[") {
            params.push(self.size_name()?);
        }
        self.expect("=", "and the type")?;
        let body = self.ty()?;
        let components = components(&body);
        let most = Limits::DEFAULT.type_components;
        if components > most {
            let message = format!("this type has more than {most} components");
            let d = Diagnostic::error(Code::KernelLimit, message).at(self.source, name.span, "");
            return self.fail(d.help("the components of its components count, too"));
        }
        let depth = depth(&body);
        if depth > self.limit {
            return self.too_deep(name.span);
        }
        if self.tok() != Tok::Eof && !self.is_decl() {
            return self.unexpected("a declaration, after that of a type");
        }
        Ok(Arc::new(TypeDecl { name, params, body, components, depth }))
    }

    /// Binds the parameters of integer types that stand in a size of the signature, which began at this token.
    pub(super) fn implicit_sizes(&self, signature: usize, params: &[Pat], binders: &mut Binders) {
        let mut open = 0usize;
        let mut mentioned = BTreeSet::new();
        for token in &self.tokens[signature..self.at] {
            match token.tok {
                Tok::Sym("[") => open += 1,
                Tok::Sym("]") => open = open.saturating_sub(1),
                Tok::Ident if open > 0 => drop(mentioned.insert(self.text(token.span))),
                _ => {}
            }
        }
        for pat in params {
            let (mut inner, mut integer) = (pat, false);
            while let PatKind::Paren(p) | PatKind::Typed(p, _) = &inner.kind {
                integer |= matches!(&inner.kind, PatKind::Typed(_, t) if matches!(t.kind, TypeKind::Scalar(s) if s.is_integer()));
                inner = p;
            }
            if let PatKind::Name(name) = &inner.kind
                && integer
                && mentioned.contains(name.as_str())
                && binders.sizes().all(|size| size.text != *name)
            {
                binders.unnamed.push(Name { text: name.clone(), span: inner.span });
            }
        }
    }

    /// Parses `[n]`.
    pub(super) fn size_name(&mut self) -> Parse<Name> {
        self.expect("[", "before the name of a size")?;
        if self.is("]") {
            return self.unexpected("the name of a size");
        }
        let name = self.name("the name of a size")?;
        self.expect("]", "after the name of a size")?;
        Ok(name)
    }

    /// Parses a type; that of a function, too.
    pub(super) fn function_type(&mut self) -> Parse<TypeExpr> {
        let from = self.ty()?;
        if !self.eat("->") {
            return Ok(from);
        }
        let to = self.nested(Self::function_type)?;
        let span = from.span.to(to.span);
        Ok(TypeExpr { kind: TypeKind::Function(Box::new(from), Box::new(to)), span })
    }

    pub(super) fn ty(&mut self) -> Parse<TypeExpr> {
        self.nested(Self::type_here)
    }

    fn type_here(&mut self) -> Parse<TypeExpr> {
        let start = self.span();
        let kind = match self.tok() {
            Tok::Ident => self.type_name()?,
            Tok::Sym("(") => {
                self.advance();
                let mut parts = vec![self.function_type()?];
                while self.eat(",") {
                    parts.push(self.function_type()?);
                }
                self.expect(")", "to close the type")?;
                match (parts.len(), parts.pop()) {
                    (1, Some(part)) => TypeKind::Paren(Box::new(part)),
                    (_, last) => {
                        parts.extend(last);
                        TypeKind::Tuple(parts)
                    }
                }
            }
            Tok::Sym("{") => {
                self.advance();
                let mut fields = vec![];
                loop {
                    let name = self.name("the name of a field")?;
                    self.expect(":", "and the type of the field")?;
                    fields.push((name, self.ty()?));
                    if !self.eat(",") {
                        break;
                    }
                }
                self.expect("}", "to close the type")?;
                TypeKind::Record(fields)
            }
            Tok::Sym("[") => {
                let size = self.size()?;
                TypeKind::Array(Box::new(size), Box::new(self.ty()?))
            }
            Tok::Sym("*") => {
                self.advance();
                let d = Diagnostic::warning(Code::NoEffect, "the mark `*` of a type has no effect");
                let d = d.at(self.source, start, "");
                self.diagnostics.push(d.help("patsat decides itself what may be overwritten"));
                TypeKind::Unique(Box::new(self.ty()?))
            }
            _ => return self.unexpected("a type"),
        };
        Ok(TypeExpr { kind, span: start.to(self.last_span()) })
    }

    /// Parses `[size]` or `[]`.
    fn size(&mut self) -> Parse<Expr> {
        self.expect("[", "before the size")?;
        if !self.is("]") {
            let size = self.expr()?;
            self.expect("]", "after the size")?;
            return Ok(size);
        }
        let mut span = self.advance().span;
        let mut name = UNKNOWN.to_owned();
        if let Some(unnamed) = &mut self.types.unnamed {
            let letters = ["n", "m", "k"].map(str::to_owned);
            let more = (1..).map(|i| format!("n{i}"));
            let free = |s: &String| {
                !self.types.names.contains(s) && unnamed.iter().all(|other| other.text != *s)
            };
            name = letters.into_iter().chain(more).find(free).unwrap_or(name);
            unnamed.push(Name { text: name.clone(), span });
        }
        span.end = span.start;
        Ok(Expr { kind: ExprKind::Name(name), span, depth: 1 })
    }

    /// Returns whether this is the name of a type.
    pub(super) fn is_type(&self, name: &str) -> bool {
        scalar_or_vector(name).is_some()
            || self.types.params.iter().any(|p| p.text == name)
            || self.types.named.contains_key(name)
    }

    fn type_name(&mut self) -> Parse<TypeKind> {
        let span = self.span();
        let text = self.text(span).to_owned();
        if let Some(kind) = scalar_or_vector(&text) {
            self.advance();
            return Ok(kind);
        }
        if self.types.params.iter().any(|p| p.text == text) {
            self.advance();
            return Ok(TypeKind::Param(text));
        }
        let Some((at, _)) = self.types.named.get(&text) else {
            if self.types.elsewhere {
                return self.imported_type(text);
            }
            let names = ScalarType::ALL.map(ScalarType::name).join(", ");
            let d = Diagnostic::error(Code::UnknownName, format!("there is no type `{text}`"));
            let d = d.at(self.source, span, "not a type");
            let known = self.types.named.keys().map(String::as_str);
            let of_other_languages = match text.to_lowercase().as_str() {
                "int" | "integer" => Some("i32"),
                "long" => Some("i64"),
                "float" | "real" => Some("f32"),
                "double" => Some("f64"),
                "half" => Some("f16"),
                "bfloat" | "bfloat16" => Some("bf16"),
                "byte" | "char" => Some("u8"),
                "boolean" => Some("bool"),
                _ => None,
            };
            let known = known.chain(ScalarType::ALL.map(ScalarType::name));
            let near = || nearest(&text, known).filter(|_| text.len() > 1);
            let d = match of_other_languages.or_else(near) {
                Some(near) => d.help(format!("did you mean `{near}`?")),
                None => d,
            };
            return self.fail(d.help(format!("element types are {names}")));
        };
        let here = std::mem::replace(&mut self.at, *at);
        let decl = self.nested(Self::named_type);
        self.at = here + 1;
        let decl = decl?;
        let mut sizes = vec![];
        while sizes.len() < decl.params.len() && self.is("[") {
            sizes.push(self.size()?);
        }
        if sizes.len() < decl.params.len() {
            let params: Vec<_> = decl.params.iter().map(|p| format!("[{}]", p.text)).collect();
            let message = format!("the type `{text}` lacks a size");
            let d = Diagnostic::error(Code::Arity, message).at(self.source, span, "");
            return self.fail(d.help(format!("write `{text} {}`", params.join(""))));
        }
        Ok(TypeKind::Named(decl, sizes))
    }
}

impl Parser<'_> {
    /// Parses the name of a type that an imported file declares, with its sizes. Nobody asks what it stands for.
    fn imported_type(&mut self, text: String) -> Parse<TypeKind> {
        let name = Name { text: text.clone(), span: self.span() };
        let body = TypeExpr { kind: TypeKind::Param(text), span: self.span() };
        self.advance();
        let mut sizes = vec![];
        while self.is("[") {
            sizes.push(self.size()?);
        }
        let decl = TypeDecl { name, params: vec![], body, components: 1, depth: 1 };
        Ok(TypeKind::Named(Arc::new(decl), sizes))
    }
}

/// Returns the number of components of a type.
fn components(ty: &TypeExpr) -> usize {
    match &ty.kind {
        TypeKind::Scalar(_) | TypeKind::Vector(..) | TypeKind::Param(_) => 1,
        TypeKind::Tuple(ts) => ts.iter().map(components).sum::<usize>() + 1,
        TypeKind::Record(ts) => ts.iter().map(|(_, t)| components(t)).sum::<usize>() + 1,
        TypeKind::Paren(t) | TypeKind::Unique(t) => components(t),
        TypeKind::Array(_, t) => components(t) + 1,
        TypeKind::Named(decl, _) => decl.components,
        TypeKind::Function(t, u) => components(t) + components(u),
    }
}

/// Returns the height of a type's tree.
fn depth(ty: &TypeExpr) -> usize {
    let below = match &ty.kind {
        TypeKind::Scalar(_) | TypeKind::Vector(..) | TypeKind::Param(_) => 0,
        TypeKind::Tuple(ts) => ts.iter().map(depth).max().unwrap_or(0),
        TypeKind::Record(ts) => ts.iter().map(|(_, t)| depth(t)).max().unwrap_or(0),
        TypeKind::Paren(t) | TypeKind::Unique(t) | TypeKind::Array(_, t) => depth(t),
        TypeKind::Named(decl, _) => decl.depth,
        TypeKind::Function(t, u) => depth(t).max(depth(u)),
    };
    1 + below
}

/// Parses `f32` or `f32x4`.
fn scalar_or_vector(text: &str) -> Option<TypeKind> {
    if let Some(scalar) = ScalarType::from_name(text) {
        return Some(TypeKind::Scalar(scalar));
    }
    let (name, width) = text.split_once('x')?;
    let digits = !width.is_empty() && width.bytes().all(|b| b.is_ascii_digit());
    let width = width.parse().ok().filter(|w| digits && *w > 0)?;
    Some(TypeKind::Vector(ScalarType::from_name(name)?, width))
}
