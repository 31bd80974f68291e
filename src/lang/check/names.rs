//! Checks names of definitions: finds duplicates and recursion.

use super::apply::pattern_name;
use crate::diag::{Code, Diagnostic, Diagnostics, Source, Span};
use crate::lang::ast::{
    Binders, Decl, Expr, ExprKind, File, LoopForm, Name, Pat, PatKind, Subscript, TypeExpr,
    TypeKind,
};
use crate::lang::naming::duplicate;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Returns the definitions by name, and the errors in their names.
pub fn resolve<'a>(
    source: &Arc<Source>,
    file: &'a File,
) -> (BTreeMap<&'a str, &'a Decl>, Vec<Diagnostic>) {
    let mut decls: BTreeMap<&str, &Decl> = BTreeMap::new();
    let mut diagnostics = Diagnostics::default();
    for decl in &file.decls {
        if let Some(first) = decls.get(decl.name.text.as_str()) {
            diagnostics.push(duplicate(source, &decl.name.text, decl.name.span, first.name.span));
        } else {
            decls.insert(&decl.name.text, decl);
        }
        let mut seen: BTreeMap<String, Span> = BTreeMap::new();
        let mut bind = |(name, span): (String, Span)| match seen.get(&name) {
            Some(first) => diagnostics.push(duplicate(source, &name, span, *first)),
            None => drop(seen.insert(name, span)),
        };
        decl.binders.sizes().for_each(|b| bind((b.text.clone(), b.span)));
        // A parameter with the name of a size is that size.
        let mut own: BTreeSet<&str> = decl.binders.sizes().map(|b| b.text.as_str()).collect();
        let is_size = |pat: &&Pat| pattern_name(pat).is_some_and(|name| own.remove(name));
        let (_, values): (Vec<&Pat>, Vec<&Pat>) = decl.params.iter().partition(is_size);
        let mut bound = vec![];
        values.into_iter().for_each(|p| pattern_names(p, &mut bound));
        bound.into_iter().for_each(bind);
    }
    diagnostics.extend(recursion(source, file, &decls));
    (decls, diagnostics.into_vec())
}

fn recursion(source: &Arc<Source>, file: &File, decls: &BTreeMap<&str, &Decl>) -> Vec<Diagnostic> {
    let mut uses: BTreeMap<&str, Vec<(String, Span)>> = BTreeMap::new();
    for decl in &file.decls {
        let mut walk = Walk::default();
        walk.decl(decl);
        let used = walk.free().filter(|(name, _)| decls.contains_key(name.as_str()));
        uses.insert(&decl.name.text, used.collect());
    }
    // Definitions whose uses have all been checked for recursion.
    let mut finished: BTreeSet<&str> = BTreeSet::new();
    let mut diagnostics = vec![];
    for decl in &file.decls {
        let mut path: Vec<(&str, usize)> = vec![(&decl.name.text, 0)];
        while let Some((name, next)) = path.last_mut() {
            let current: &str = name;
            let used = uses.get(current).and_then(|u| u.get(*next));
            *next += 1;
            match used {
                None => {
                    finished.insert(current);
                    path.pop();
                }
                Some((used, span)) => {
                    if finished.contains(used.as_str()) {
                        continue;
                    }
                    let open = path.iter().position(|(p, _)| p == used);
                    match (open, decls.get_key_value(used.as_str())) {
                        (Some(i), _) => {
                            let mut cycle: Vec<&str> = path[i..].iter().map(|(p, _)| *p).collect();
                            cycle.push(used);
                            let d = Diagnostic::error(Code::Recursion, format!("`{used}` is defined by itself"))
                                .at(source, *span, "this use closes the circle")
                                .help("definitions are inlined, so they cannot be recursive; use `loop` or `iterate`");
                            diagnostics.push(if cycle.len() > 2 {
                                d.note(cycle.join(" uses "))
                            } else {
                                d
                            });
                        }
                        (None, Some((key, _))) => path.push((key, 0)),
                        (None, None) => {}
                    }
                }
            }
        }
    }
    diagnostics
}

/// Returns the warnings for conditions that nothing checks.
pub fn unchecked(
    source: &Arc<Source>,
    file: &File,
    decls: &BTreeMap<&str, &Decl>,
) -> Vec<Diagnostic> {
    let mut walk = Walk::default();
    for decl in file.decls.iter().filter(|_| !decls.contains_key("assert")) {
        walk.local.clear();
        walk.decl(decl);
    }
    let uses = walk.free().filter(|(name, _)| name == "assert");
    let warning = |(_, span)| {
        let d = Diagnostic::warning(Code::NoEffect, "the condition of `assert` is not checked");
        d.at(source, span, "").help("check it outside, or return it as a further result")
    };
    uses.map(warning).collect()
}

/// Collects the names that a pattern binds.
pub fn pattern_names(pat: &Pat, names: &mut Vec<(String, Span)>) {
    match &pat.kind {
        PatKind::Name(name) => names.push((name.clone(), pat.span)),
        PatKind::Wild => {}
        PatKind::Tuple(parts) => parts.iter().for_each(|p| pattern_names(p, names)),
        PatKind::Record(fields) => fields.iter().for_each(|(name, part)| match part {
            Some(part) => pattern_names(part, names),
            None => names.push((name.text.clone(), name.span)),
        }),
        PatKind::Paren(p) | PatKind::Typed(p, _) => pattern_names(p, names),
    }
}

/// What a name in a definition refers to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Referent {
    /// A definition of the file, or a function of the language.
    Free,
    /// What a pattern binds at this place.
    Value(Span),
    /// The size that is bound at this place.
    Size(Span),
    /// The type parameter that is bound at this place.
    TypeParam(Span),
    /// The type that is declared at this place.
    Type(Span),
}

/// A name in a text.
#[derive(Clone, Debug)]
pub struct Mention {
    /// The name.
    pub name: String,
    /// Its place.
    pub span: Span,
    /// What it refers to.
    pub referent: Referent,
}

/// Returns the names in the definitions of a file, and the declared types' own.
pub fn mentions(file: &File) -> Vec<Mention> {
    let mut walk = Walk::default();
    for decl in &file.decls {
        walk.local.clear();
        walk.decl(decl);
    }
    for decl in &file.types {
        walk.local.clear();
        walk.add(&decl.name.text, decl.name.span, Referent::Type(decl.name.span));
        walk.sizes(decl.params.iter());
        walk.ty(&decl.body);
    }
    walk.found
}

/// Collects the names in expressions.
#[derive(Default)]
struct Walk {
    found: Vec<Mention>,
    /// The names that are bound, innermost last. That of a type parameter begins with a quote.
    local: Vec<(String, Referent)>,
}

impl Walk {
    /// Returns the names that nothing in their definitions binds.
    fn free(self) -> impl Iterator<Item = (String, Span)> {
        let free = self.found.into_iter().filter(|m| m.referent == Referent::Free);
        free.map(|m| (m.name, m.span))
    }

    fn add(&mut self, name: &str, span: Span, referent: Referent) {
        self.found.push(Mention { name: name.to_owned(), span, referent });
    }

    /// Binds a name, and adds the place where that is done.
    fn local(&mut self, name: &str, span: Span, referent: Referent) {
        self.add(name.trim_start_matches('\''), span, referent);
        self.local.push((name.to_owned(), referent));
    }

    fn sizes<'n>(&mut self, names: impl Iterator<Item = &'n Name>) {
        names.for_each(|n| self.local(&n.text, n.span, Referent::Size(n.span)));
    }

    fn binders(&mut self, binders: &Binders) {
        self.sizes(binders.named.iter());
        // These are written as other things.
        let unnamed = binders.unnamed.iter();
        self.local.extend(unnamed.map(|n| (n.text.clone(), Referent::Size(n.span))));
        for t in &binders.types {
            self.local(&format!("'{}", t.text), t.span, Referent::TypeParam(t.span));
        }
    }

    fn decl(&mut self, decl: &Decl) {
        self.binders(&decl.binders);
        decl.params.iter().for_each(|p| self.types_of(p));
        decl.params.iter().for_each(|p| self.bind(p));
        if let Some(ty) = &decl.result {
            self.ty(ty);
        }
        self.expr(&decl.body);
    }

    fn bind(&mut self, pat: &Pat) {
        let mut names = vec![];
        pattern_names(pat, &mut names);
        names.into_iter().for_each(|(name, span)| self.local(&name, span, Referent::Value(span)));
    }

    fn types_of(&mut self, pat: &Pat) {
        match &pat.kind {
            PatKind::Name(_) | PatKind::Wild => {}
            PatKind::Tuple(parts) => parts.iter().for_each(|p| self.types_of(p)),
            PatKind::Record(fields) => {
                fields.iter().filter_map(|(_, p)| p.as_ref()).for_each(|p| self.types_of(p));
            }
            PatKind::Paren(p) => self.types_of(p),
            PatKind::Typed(p, ty) => {
                self.types_of(p);
                self.ty(ty);
            }
        }
    }

    fn ty(&mut self, ty: &TypeExpr) {
        match &ty.kind {
            TypeKind::Scalar(_) | TypeKind::Vector(..) => {}
            TypeKind::Param(name) => {
                let bound = self.referent(&format!("'{name}"));
                if bound != Referent::Free {
                    self.add(name, ty.span, bound);
                }
            }
            TypeKind::Tuple(ts) => ts.iter().for_each(|t| self.ty(t)),
            TypeKind::Record(fields) => fields.iter().for_each(|(_, t)| self.ty(t)),
            TypeKind::Paren(t) | TypeKind::Unique(t) => self.ty(t),
            TypeKind::Array(n, t) => {
                self.expr(n);
                self.ty(t);
            }
            TypeKind::Named(decl, sizes) => {
                let start = ty.span.start as usize;
                let name = Span::new(start, start + decl.name.text.len());
                self.add(&decl.name.text, name, Referent::Type(decl.name.span));
                sizes.iter().for_each(|n| self.expr(n));
                let size = |p: &Name| (p.text.clone(), Referent::Size(p.span));
                let params = decl.params.iter().map(size).collect();
                let outer = std::mem::replace(&mut self.local, params);
                self.ty(&decl.body);
                self.local = outer;
            }
            TypeKind::Function(t, u) => {
                self.ty(t);
                self.ty(u);
            }
        }
    }

    /// Walks `e` with the names of these patterns bound.
    fn within(&mut self, patterns: &[&Pat], e: &Expr) {
        let depth = self.local.len();
        patterns.iter().for_each(|p| self.bind(p));
        self.expr(e);
        self.local.truncate(depth);
    }

    fn referent(&self, name: &str) -> Referent {
        let bound = self.local.iter().rfind(|(local, _)| local == name);
        bound.map_or(Referent::Free, |(_, referent)| *referent)
    }

    fn name(&mut self, name: &str, span: Span) {
        self.add(name, span, self.referent(name));
    }

    fn expr(&mut self, e: &Expr) {
        match &e.kind {
            ExprKind::Name(name) => self.name(name, e.span),
            ExprKind::Number(..)
            | ExprKind::Bool(_)
            | ExprKind::Section(_)
            | ExprKind::SectionPart(_) => {}
            ExprKind::Tuple(parts) | ExprKind::Array(parts) => {
                parts.iter().for_each(|p| self.expr(p));
            }
            ExprKind::Paren(x)
            | ExprKind::Proj(x, _)
            | ExprKind::Field(x, _)
            | ExprKind::Unary(_, x)
            | ExprKind::SectionLeft(x, _)
            | ExprKind::SectionRight(_, x) => self.expr(x),
            ExprKind::Apply(f, args) => {
                self.expr(f);
                args.iter().for_each(|a| self.expr(a));
            }
            ExprKind::Record(fields) => fields.iter().for_each(|(name, value)| match value {
                Some(value) => self.expr(value),
                None => self.name(&name.text, name.span),
            }),
            ExprKind::Update(x, _, value) => {
                self.expr(x);
                self.expr(value);
            }
            ExprKind::Infix(a, name, b) => {
                self.name(&name.text, name.span);
                self.expr(a);
                self.expr(b);
            }
            ExprKind::Lambda(params, result, body) => {
                params.iter().for_each(|p| self.types_of(p));
                result.iter().for_each(|t| self.ty(t));
                self.within(&params.iter().collect::<Vec<_>>(), body);
            }
            ExprKind::Let { pat, binders, params, ty, value, body } => {
                self.types_of(pat);
                let outer = self.local.len();
                self.binders(binders);
                params.iter().for_each(|p| self.types_of(p));
                if let Some(ty) = ty {
                    self.ty(ty);
                }
                self.within(&params.iter().collect::<Vec<_>>(), value);
                self.local.truncate(outer);
                self.within(&[pat], body);
            }
            ExprKind::If(c, a, b) => [c, a, b].into_iter().for_each(|x| self.expr(x)),
            ExprKind::Loop { pat, init, form, body } => {
                self.types_of(pat);
                self.expr(init);
                match form {
                    LoopForm::While(cond) => self.within(&[pat], cond),
                    LoopForm::In(element, array) => {
                        self.types_of(element);
                        self.expr(array);
                        self.within(&[pat, element], body);
                        return;
                    }
                    LoopForm::For(name, bound) => {
                        self.expr(bound);
                        let outer = self.local.len();
                        self.local(&name.text, name.span, Referent::Value(name.span));
                        self.within(&[pat], body);
                        self.local.truncate(outer);
                        return;
                    }
                }
                self.within(&[pat], body);
            }
            ExprKind::Index(a, indices) => {
                self.expr(a);
                indices.iter().flat_map(Subscript::parts).for_each(|i| self.expr(i));
            }
            ExprKind::With(a, indices, value) => {
                self.expr(a);
                indices.iter().flat_map(Subscript::parts).for_each(|i| self.expr(i));
                self.expr(value);
            }
            ExprKind::Binary(_, a, b) | ExprKind::Pipe(a, b) => {
                self.expr(a);
                self.expr(b);
            }
            ExprKind::Compose { first, second } => {
                self.expr(first);
                self.expr(second);
            }
            ExprKind::Ascribe(x, ty) => {
                self.expr(x);
                self.ty(ty);
            }
        }
    }
}
