//! What editors ask about a text: what stands at a place, its type, its definition, and what a file defines. The text may have
//! errors: what can be parsed is known. Places are in bytes.

mod complete;
mod outline;

pub use complete::{Candidate, candidates};
pub use outline::{Kind, Symbol, symbols};

use super::ast::{Decl, File};
use super::check::{Mention, Referent, mentions, types_at};
use super::index;
use super::lexer::{Lexed, Tok, Token};
use super::parser;
use super::prelude;
use super::types::ScalarType;
use crate::diag::{Source, Span, on_own_stack};
use std::sync::Arc;

/// What is known of a place.
#[derive(Clone, Debug, PartialEq)]
pub struct Hover {
    /// What it is about.
    pub span: Span,
    /// Code: names with their types.
    pub code: String,
    /// What is said of it, in Markdown.
    pub text: String,
}

/// A parsed text, which may have errors.
struct Text<'s> {
    source: &'s Arc<Source>,
    file: File,
    lexed: Lexed,
}

impl<'s> Text<'s> {
    fn new(source: &'s Arc<Source>) -> Text<'s> {
        let (file, lexed, _) = parser::parse_tokens(source);
        Text { source, file, lexed }
    }

    /// Returns the token at a place, or else the one that ends there.
    fn token(&self, at: usize) -> Option<(usize, Token)> {
        let tokens = &self.lexed.tokens;
        let next = tokens.partition_point(|t| t.span.end as usize <= at);
        let here = tokens.get(next).filter(|t| t.span.range().contains(&at)).map(|_| next);
        let word = |i: &usize| matches!(tokens[*i].tok, Tok::Ident | Tok::Qualified | Tok::Field);
        let before = next.checked_sub(1).filter(|i| tokens[*i].span.end as usize == at);
        // At the end of a name, editors mean the name.
        let i = here.filter(word).or(before.filter(word)).or(here)?;
        (tokens[i].tok != Tok::Eof).then_some((i, tokens[i]))
    }

    fn slice(&self, span: Span) -> &'s str {
        self.source.text.get(span.range()).unwrap_or_default()
    }

    fn mention(&self, span: Span) -> Option<Mention> {
        mentions(&self.file).into_iter().find(|m| m.span == span)
    }

    /// Returns the definition with this name.
    fn decl(&self, name: &str) -> Option<&Decl> {
        self.file.decls.iter().find(|d| d.name.text == name)
    }

    /// Returns the definition whose name stands at a place.
    fn decl_at(&self, span: Span) -> Option<&Decl> {
        self.file.decls.iter().find(|d| d.name.span == span)
    }

    /// Returns a definition without its body, in one line.
    fn header(&self, decl: &Decl) -> String {
        let whole = Span { end: decl.body.span.start, ..decl.name.span };
        let tokens = self.tokens(whole);
        let end =
            tokens.iter().rfind(|t| t.tok == Tok::Sym("=")).map_or(whole.end, |t| t.span.start);
        let text = one_line(self.slice(Span { end, ..whole }));
        format!("{} {text}", if decl.entry { "entry" } else { "def" })
    }

    /// Returns the tokens in a part of the text.
    fn tokens(&self, span: Span) -> &[Token] {
        let tokens = &self.lexed.tokens;
        let start = tokens.partition_point(|t| t.span.start < span.start);
        let end = tokens.partition_point(|t| t.span.end <= span.end);
        tokens.get(start..end).unwrap_or_default()
    }

    /// Returns a local function or a parameter with what is written of its type; the name alone, if nothing is.
    fn local(&self, bound: Span) -> String {
        let rest = self.tokens(Span { end: u32::MAX, ..bound });
        let mut open = 0usize;
        let typed = rest.get(1).is_some_and(|t| t.tok == Tok::Sym(":"));
        let function = rest.get(1).is_some_and(|t| {
            matches!(t.tok, Tok::Ident | Tok::TypeParam | Tok::Sym("(" | "[" | "{" | "_"))
        });
        let mut end = bound.end;
        for token in rest.iter().skip(1).filter(|_| typed || function) {
            match token.tok {
                Tok::Sym("(" | "[" | "{") => open += 1,
                Tok::Sym(")" | "]" | "}") if open > 0 => open -= 1,
                Tok::Sym("=" | ")" | "]" | "}" | ",") if open == 0 => {
                    end = token.span.start;
                    break;
                }
                // Parameters of a function without a name.
                Tok::Sym("->") if open == 0 && function => break,
                Tok::Word(_) | Tok::Eof => break,
                _ => {}
            }
        }
        one_line(self.slice(Span { end, ..bound }))
    }

    fn hover(&self, at: usize) -> Option<Hover> {
        let (_, token) = self.token(at)?;
        let span = token.span;
        let start = span.start as usize;
        let types = || types_at(self.source, &self.file, start);
        // The types of a name alone, not of what it is part of.
        let own = || types().filter(|(at, _)| *at == span).map_or(vec![], |(_, types)| types);
        let typed = |name: &str, types: &[String]| {
            types.iter().map(|ty| format!("{name}: {ty}")).collect::<Vec<_>>().join("\n")
        };
        let hover = |code: String, text: &str| Hover { span, code, text: text.to_owned() };
        let name = self.slice(span);
        if let Some(decl) = self.decl_at(span) {
            return Some(self.described(decl, span));
        }
        let Some(mention) = self.mention(span) else {
            if let Some(import) = self.file.imports.iter().find(|i| i.span == span) {
                return Some(hover(format!("import \"{}\"", import.path), ""));
            }
            if !matches!(token.tok, Tok::Ident | Tok::TypeParam) {
                let (span, types) = types()?;
                return Some(Hover { span, code: types.join("\n"), text: String::new() });
            }
            return None;
        };
        match mention.referent {
            Referent::Value(bound) => {
                let types = own();
                let code = if types.is_empty() { self.local(bound) } else { typed(name, &types) };
                Some(hover(code, ""))
            }
            Referent::Size(_) => Some(hover(format!("[{name}]"), "a size")),
            Referent::TypeParam(_) => {
                Some(hover(format!("'{name}"), "a type that each use infers"))
            }
            Referent::Type(declared) => {
                let decl = self.file.types.iter().find(|d| d.name.span == declared)?;
                let body = self.slice(declared.to(decl.body.span));
                Some(hover(format!("type {}", one_line(body)), ""))
            }
            Referent::Free => match self.decl(name) {
                Some(decl) => Some(self.described(decl, span)),
                None => function(name).map(|(code, text)| Hover { span, code, text }),
            },
        }
    }

    /// Returns what is known of a definition, for a hover at `span`.
    fn described(&self, decl: &Decl, span: Span) -> Hover {
        let mut code = self.header(decl);
        if decl.result.is_none() {
            let at = decl.name.span;
            let types = types_at(self.source, &self.file, at.start as usize);
            if let Some((_, types)) =
                types.filter(|(found, types)| *found == at && types.len() == 1)
            {
                code = format!("{code} : {}", types.concat());
            }
        }
        Hover { span, code, text: decl.doc.clone() }
    }

    fn definition(&self, at: usize) -> Option<Span> {
        let (_, token) = self.token(at)?;
        if self.decl_at(token.span).is_some() {
            return Some(token.span);
        }
        let mention = self.mention(token.span)?;
        match mention.referent {
            Referent::Free => self.decl(&mention.name).map(|d| d.name.span),
            Referent::Value(span)
            | Referent::Size(span)
            | Referent::TypeParam(span)
            | Referent::Type(span) => Some(span),
        }
    }
}

/// Returns the type of a function of the language, and what the manual and the prelude say of it.
fn function(name: &str) -> Option<(String, String)> {
    if let Some((to, from)) = name.split_once('.')
        && let (Some(to), Some(from)) = (ScalarType::from_name(to), ScalarType::from_name(from))
    {
        return Some((format!("{name} : {from} -> {to}"), "the conversion".to_owned()));
    }
    let about = index::about(name)?;
    let ty = about.ty.replace('`', "");
    let mut text = format!("{}. Cost: {}.", without_links(about.meaning), about.cost);
    if let Some(decl) = prelude::get(name) {
        text.push_str(&format!("\n\n{}", decl.doc));
    }
    Some((format!("{name} : {ty}"), text.replace("\\|", "|")))
}

/// Returns a text of the manual without references to its other sections, such as ` ([above](#types))`.
fn without_links(text: &str) -> String {
    let mut parts = text.split(" ([above](");
    let mut out = parts.next().unwrap_or_default().to_owned();
    parts.for_each(|rest| out.push_str(rest.split_once("))").map_or("", |(_, rest)| rest)));
    out
}

/// Returns a text with each run of white space as one blank.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns what is known of a place.
pub fn hover(source: &Arc<Source>, at: usize) -> Option<Hover> {
    on_own_stack(|| Text::new(source).hover(at)).ok().flatten()
}

/// Returns the place where the name at a place is defined, if that is in the text.
pub fn definition(source: &Arc<Source>, at: usize) -> Option<Span> {
    on_own_stack(|| Text::new(source).definition(at)).ok().flatten()
}

#[cfg(test)]
mod tests;
