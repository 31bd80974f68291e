//! Shrinks failing programs: generates the smaller programs that replace one part. The caller keeps one that still
//! fails, and repeats.
//!
//! An edit replaces the text of an expression by the text of a part of it or by a constant of its type, or removes
//! something that may not be needed. The checker decides whether the result is a valid program.

use super::ast::{Decl, Expr, ExprKind, File, LoopForm, Pat, PatKind, Subscript};
use super::parser::{failed, parse_tokens};
use super::typed;
use super::types::{ScalarType, Type};
use super::{check_entry, size::Size};
use crate::diag::{Source, Span};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Returns the programs that result from one edit, shortest first.
pub fn smaller(source: &Arc<Source>) -> Vec<String> {
    let (file, _, diagnostics) = parse_tokens(source);
    if failed(&diagnostics) {
        return vec![];
    }
    let mut edits = Edits { text: &source.text, found: vec![], types: types(source) };
    edits.file(&file);
    let text = &source.text;
    let mut out: Vec<String> = edits
        .found
        .iter()
        .filter_map(|(span, new)| {
            let (before, after) = (text.get(..span.range().start)?, text.get(span.range().end..)?);
            Some(format!("{before}{new}{after}"))
        })
        .chain(edits.without_parameters(&file))
        .filter(|new| new.len() < text.len())
        .collect();
    out.sort_by_key(String::len);
    out.dedup();
    out
}

struct Edits<'a> {
    text: &'a str,
    found: Vec<(Span, String)>,
    /// Types of the entry's expressions, by place.
    types: BTreeMap<Span, Type>,
}

impl Edits<'_> {
    fn file(&mut self, file: &File) {
        for decl in &file.decls {
            if !decl.entry {
                self.found.push((whole(decl, self.text), String::new()));
            }
            if let Some(result) = &decl.result {
                self.found.push((self.with_colon(result.span), String::new()));
            }
            for binder in &decl.binders.named {
                let span = Span { start: binder.span.start - 1, end: binder.span.end + 1 };
                self.found.push((span, String::new()));
            }
            self.expr(&decl.body);
        }
    }

    /// Returns the span of a type and the colon before it.
    fn with_colon(&self, span: Span) -> Span {
        let before = self.text.get(..span.range().start).unwrap_or_default();
        Span::new(before.rfind(':').unwrap_or(before.len()), span.range().end)
    }

    fn expr(&mut self, e: &Expr) {
        let mut parts = children(e);
        // Parts of parts are included. Otherwise, an argument could not replace an expression before the function
        // around it was removed.
        let inner: Vec<&Expr> = parts.iter().flat_map(|p| children(p)).collect();
        parts.extend(inner);
        for part in parts {
            if let Some(text) = self.text.get(part.span.range()) {
                self.found.push((e.span, format!("({text})")));
            }
        }
        if let Some(ty) = self.types.get(&e.span) {
            self.found.push((e.span, constant(ty)));
        }
        if let ExprKind::Let { ty: Some(ty), .. } = &e.kind {
            self.found.push((self.with_colon(ty.span), String::new()));
        }
        children(e).into_iter().for_each(|c| self.expr(c));
    }

    /// Returns the entries without one of their parameters, and without the words of the comment that say how its
    /// input is generated.
    fn without_parameters(&self, file: &File) -> Vec<String> {
        let mut out = vec![];
        for decl in file.decls.iter().filter(|d| d.entry) {
            for p in &decl.params {
                let Some(name) = name_of(p) else { continue };
                let (Some(before), Some(after)) =
                    (self.text.get(..p.span.range().start), self.text.get(p.span.range().end..))
                else {
                    continue;
                };
                let about = |word: &&str| {
                    let of = word.split(['=', '.']).next().unwrap_or_default();
                    of == name && word.contains('=')
                };
                let lines = before.lines().map(|l| match l.starts_with("-- gen:") {
                    true => {
                        let words: Vec<&str> = l.split_whitespace().filter(|w| !about(w)).collect();
                        words.join(" ")
                    }
                    false => l.to_owned(),
                });
                out.push(format!("{}{after}", lines.collect::<Vec<_>>().join("\n")));
            }
        }
        out
    }
}

/// Returns the span of a definition, from its keyword to the end of its body.
fn whole(decl: &Decl, text: &str) -> Span {
    let before = text.get(..decl.name.span.range().start).unwrap_or_default();
    let keyword = before.rfind("def").max(before.rfind("let"));
    Span::new(keyword.unwrap_or(before.len()), decl.body.span.range().end)
}

fn name_of(p: &Pat) -> Option<&str> {
    match &p.kind {
        PatKind::Name(name) => Some(name),
        PatKind::Paren(p) | PatKind::Typed(p, _) => name_of(p),
        PatKind::Wild | PatKind::Tuple(_) | PatKind::Record(_) => None,
    }
}

fn children(e: &Expr) -> Vec<&Expr> {
    match &e.kind {
        ExprKind::Name(_)
        | ExprKind::Number(..)
        | ExprKind::Bool(_)
        | ExprKind::Section(_)
        | ExprKind::SectionPart(_) => vec![],
        ExprKind::Tuple(es) | ExprKind::Array(es) => es.iter().collect(),
        ExprKind::Apply(f, args) => [&**f].into_iter().chain(args).collect(),
        ExprKind::Paren(e)
        | ExprKind::Lambda(_, _, e)
        | ExprKind::Proj(e, _)
        | ExprKind::Field(e, _)
        | ExprKind::Unary(_, e)
        | ExprKind::SectionLeft(e, _)
        | ExprKind::SectionRight(_, e)
        | ExprKind::Ascribe(e, _) => vec![e],
        ExprKind::Record(fields) => fields.iter().filter_map(|(_, e)| e.as_ref()).collect(),
        ExprKind::Update(e, _, value) => vec![e, value],
        ExprKind::Let { value, body, .. } => vec![body, value],
        ExprKind::If(c, a, b) => vec![a, b, c],
        ExprKind::Loop { init, form, body, .. } => match form {
            LoopForm::For(_, n) | LoopForm::In(_, n) => vec![init, n, body],
            LoopForm::While(c) => vec![init, c, body],
        },
        ExprKind::Index(a, is) => {
            [&**a].into_iter().chain(is.iter().flat_map(Subscript::parts)).collect()
        }
        ExprKind::With(a, is, e) => {
            [&**a, e].into_iter().chain(is.iter().flat_map(Subscript::parts)).collect()
        }
        ExprKind::Binary(_, a, b)
        | ExprKind::Pipe(a, b)
        | ExprKind::Infix(a, _, b)
        | ExprKind::Compose { first: a, second: b } => vec![a, b],
    }
}

/// Returns the types of the entry's expressions, by place.
fn types(source: &Arc<Source>) -> BTreeMap<Span, Type> {
    fn of_fun(f: &typed::Fun, out: &mut BTreeMap<Span, Type>) {
        of(&f.body, out);
    }
    fn of(e: &typed::Expr, out: &mut BTreeMap<Span, Type>) {
        use typed::ExprKind as K;
        out.entry(e.span).or_insert_with(|| e.ty.clone());
        match &e.kind {
            K::Lit(_) | K::Var(_) | K::Size(_) => {}
            K::Tuple(es) | K::Scalar(_, es) => es.iter().for_each(|e| of(e, out)),
            K::Proj(e, _) => of(e, out),
            K::Index(a, b) | K::Let(_, a, b) => [a, b].into_iter().for_each(|e| of(e, out)),
            K::If(a, b, c) => [a, b, c].into_iter().for_each(|e| of(e, out)),
            K::LoopFor { init, bound, body, .. } => {
                [init, bound, body].into_iter().for_each(|e| of(e, out));
            }
            K::LoopWhile { init, cond, body, .. } => {
                [init, cond, body].into_iter().for_each(|e| of(e, out));
            }
            K::Prim { funs, args, .. } => {
                funs.iter().for_each(|f| of_fun(f, out));
                args.iter().for_each(|e| of(e, out));
            }
        }
    }
    let mut out = BTreeMap::new();
    if let Ok(entry) = check_entry(source, None) {
        of(&entry.body, &mut out);
    }
    out
}

/// Returns a simple constant of a type.
fn constant(ty: &Type) -> String {
    let size = |n: &Size| format!("({n})");
    match ty {
        Type::Scalar(ScalarType::Bool) => "true".to_owned(),
        Type::Scalar(s) | Type::Vector(_, s) => format!("1{s}"),
        Type::Tuple(ts) => {
            format!("({})", ts.iter().map(constant).collect::<Vec<_>>().join(", "))
        }
        Type::Array(n, t) => format!("(replicate {} {})", size(n), constant(t)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_shrinks_to_what_matters() {
        let text = "-- gen: xs=whole:0..3 c=whole:0..2\ndef twice (x: i32) : i32 = x + x\n\nentry f [n] (xs: [n]i32) (c: i32) : [n]i32 =\n  let y = c * 2 in map (\\x -> abs (x + y)) (reverse (map twice xs))\n";
        let mut now = Source::new("f.pat", text);
        // The simulated failure requires a reversal.
        let fails = |text: &String| {
            text.contains("reverse")
                && check_entry(&Source::new("f.pat", text.as_str()), None).is_ok()
        };
        while let Some(less) = smaller(&now).into_iter().find(fails) {
            now = Source::new("f.pat", less);
        }
        assert!(now.text.len() < 90, "{}", now.text);
        assert!(!now.text.contains("c: i32") && !now.text.contains("c="), "{}", now.text);
        assert!(!now.text.contains("twice"), "{}", now.text);
    }
}
