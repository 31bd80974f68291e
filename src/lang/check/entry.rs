//! Checks whole definitions, with their sizes as declared or as general as the body allows.

use super::FreshSizes;
use super::elab::{Abort, Checker, Res};
use super::env::{Arg, Bind, Elab, Env};
use super::finish::Finish;
use super::infer::Ty;
use super::ir::{Node, NodeKind};
use super::places::Watch;
use super::uses::Uses;
use crate::diag::{Code, Diagnostic, Limits, Source, Span};
use crate::lang::ast::{Decl, ExprKind, Pat, PatKind, TypeExpr, TypeKind};
use crate::lang::size::Size;
use crate::lang::typed::{Entry, Param, VarId};
use crate::lang::types::{ScalarType, Type};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

/// Least number in a parameter's type that is taken for the length of a dimension. Shorter arrays, such as points and
/// small matrices, are unrolled.
pub(super) const DIMENSION: i64 = 17;

/// An axis whose size is inferred, with its declared size: a name or a number.
struct Axis {
    unknown: String,
    declared: String,
}

impl Axis {
    /// Returns the name for a size that has its declared name alone.
    fn name(&self) -> String {
        if self.number().is_some() { format!("n{}", self.declared) } else { self.declared.clone() }
    }

    fn number(&self) -> Option<i64> {
        self.declared.parse().ok()
    }
}

/// The interpretation of size names in a definition.
enum Mode {
    Declared,
    /// As declared, in a definition without its uses: they may give sizes for its integers.
    Apart,
    /// Each axis has a size of its own; those that are declared by numbers, only if `numbers`. `used` holds the names
    /// seen so far.
    General {
        axes: Vec<Axis>,
        used: BTreeSet<String>,
        numbers: bool,
    },
}

/// Checks an entry with its declared sizes. `left` is the number of expressions that may still be created for the
/// file.
pub fn declared(
    source: &Arc<Source>,
    decls: &BTreeMap<&str, &Decl>,
    decl: &Decl,
    left: &mut usize,
) -> (Option<Entry>, Vec<Diagnostic>) {
    let mut checker = Checker::new(source, decls, *left);
    let mut mode = Mode::Declared;
    let built = build(&mut checker, decl, &mut mode);
    *left = left.saturating_sub(checker.expressions);
    match built {
        Ok(parts) if checker.diagnostics.is_empty() => {
            let (entry, found) = finish(&checker, decl, parts, decl_sizes(decl));
            (found.is_empty().then_some(entry), found)
        }
        Ok(_) => (None, checker.diagnostics),
        Err(abort) => {
            checker.report(abort);
            (None, checker.diagnostics)
        }
    }
}

/// Returns the errors of a definition that do not depend on its uses.
pub fn definition(
    source: &Arc<Source>,
    decls: &BTreeMap<&str, &Decl>,
    decl: &Decl,
    left: &mut usize,
) -> Vec<Diagnostic> {
    let mut checker = Checker::new(source, decls, *left);
    let built = build(&mut checker, decl, &mut Mode::Apart);
    *left = left.saturating_sub(checker.expressions);
    match built {
        Ok(parts) if checker.diagnostics.is_empty() => {
            let mut found = finish(&checker, decl, parts, decl_sizes(decl)).1;
            // A definition may be intended for use inside `mapWrg`. Only entries are whole programs.
            found.retain(|d| d.code != Code::IllNested);
            found
        }
        Ok(_) => checker.diagnostics,
        // A definition without parameters may be a function, such as `map abs`.
        Err(Abort(Some(d))) if d.code == Code::Arity && decl.result.is_none() => vec![],
        Err(abort) => {
            checker.report(abort);
            checker.diagnostics
        }
    }
}

/// Returns the types at a place that are found while a definition is checked.
pub fn types_at(
    source: &Arc<Source>,
    decls: &BTreeMap<&str, &Decl>,
    decl: &Decl,
    left: &mut usize,
    at: u32,
) -> Vec<(Span, String)> {
    let mut checker = Checker::new(source, decls, *left);
    checker.watch = Some(Watch::new(at));
    let mut mode = if decl.entry { Mode::Declared } else { Mode::Apart };
    // What is wrong is reported elsewhere.
    let _ = build(&mut checker, decl, &mut mode);
    *left = left.saturating_sub(checker.expressions);
    let seen = checker.watch.take().map_or(vec![], |watch| watch.seen);
    seen.into_iter().map(|(span, ty)| (span, checker.infer.settled(&ty))).collect()
}

/// Checks an entry with a separate size for each axis of its parameters, also, if `numbers`, for those that are declared
/// by numbers. Returns `None` if that fails.
pub fn general(
    source: &Arc<Source>,
    decls: &BTreeMap<&str, &Decl>,
    decl: &Decl,
    declared: &Entry,
    numbers: bool,
) -> Option<(Entry, FreshSizes)> {
    // The body may need one of the numbers.
    [true, false]
        .into_iter()
        .filter(|n| numbers || !n)
        .find_map(|numbers| general_with(source, decls, decl, declared, numbers))
}

fn general_with(
    source: &Arc<Source>,
    decls: &BTreeMap<&str, &Decl>,
    decl: &Decl,
    declared: &Entry,
    numbers: bool,
) -> Option<(Entry, FreshSizes)> {
    let mut checker = Checker::new(source, decls, Limits::DEFAULT.inlined_expressions);
    let mut mode = Mode::General { axes: vec![], used: BTreeSet::new(), numbers };
    let parts = build(&mut checker, decl, &mut mode).ok()?;
    let Mode::General { mut axes, .. } = mode else { return None };
    let made = checker.uses.take().unwrap_or_default().made;
    axes.extend(made.into_iter().map(|(unknown, declared)| Axis { unknown, declared }));
    if !checker.diagnostics.is_empty() {
        return None;
    }
    let fresh = name_classes(&mut checker, &axes);
    let names = fresh.iter().map(|(name, _)| name.clone()).collect();
    let (entry, found) = finish(&checker, decl, parts, names);
    // The declared entry must be an instance of the general one.
    let back = |v: &str| fresh.iter().find(|(name, _)| name == v).map(|(_, size)| size.clone());
    let mut pairs = entry.params.iter().zip(&declared.params);
    let instance = pairs.all(|(g, d)| instantiate(&g.ty, &back) == d.ty)
        && instantiate(&entry.body.ty, &back) == declared.body.ty;
    (found.is_empty() && instance).then_some((entry, fresh))
}

fn instantiate(ty: &Type, value: &dyn Fn(&str) -> Option<Size>) -> Type {
    match ty {
        Type::Scalar(s) => Type::Scalar(*s),
        Type::Vector(w, s) => Type::Vector(w.substitute(value), *s),
        Type::Tuple(ts) => Type::Tuple(ts.iter().map(|t| instantiate(t, value)).collect()),
        Type::Array(n, t) => Type::Array(n.substitute(value), Box::new(instantiate(t, value))),
    }
}

/// Names the sizes that remain. The first class with a declared name gets that name; others get `n_1` and so on. A size
/// that is declared as 64 is called `n64`.
fn name_classes(checker: &mut Checker<'_>, axes: &[Axis]) -> FreshSizes {
    let declared: BTreeSet<&str> = axes.iter().map(|a| a.declared.as_str()).collect();
    let mut taken: BTreeSet<String> = BTreeSet::new();
    let mut fresh = vec![];
    for axis in axes {
        let root = checker.infer.sizes.resolve(&Size::var(&axis.unknown));
        let Some(unknown) = root.as_var().filter(|v| v.starts_with('?')).map(str::to_owned) else {
            continue;
        };
        let own = axis.name();
        let mut name = own.clone();
        let mut count = 0;
        while taken.contains(&name)
            || ((count > 0 || axis.number().is_some()) && declared.contains(name.as_str()))
        {
            count += 1;
            name = format!("{own}_{count}");
        }
        taken.insert(name.clone());
        checker.infer.sizes.assign(&unknown, Size::var(&name));
        let size = axis.number().map_or_else(|| Size::var(&axis.declared), Size::constant);
        fresh.push((name, size));
    }
    fresh
}

fn decl_sizes(decl: &Decl) -> Vec<String> {
    decl.binders.sizes().map(|b| b.text.clone()).collect()
}

/// The parameters, the sizes among them, and the body of a definition.
type Parts = (Vec<(String, VarId, Ty, Span)>, Vec<(usize, String, ScalarType)>, Node);

fn build<'a>(checker: &mut Checker<'a>, decl: &'a Decl, mode: &mut Mode) -> Res<Parts> {
    let mut sizes = Env::default();
    if let (Some(param), true) = (decl.binders.types.first(), decl.entry) {
        let d = checker.error(Code::Ambiguous, "an entry has no type parameters", param.span);
        return Err(d.help(format!("write a type in place of `{}`", param.text)).into());
    }
    for binder in decl.binders.sizes() {
        let size = match mode {
            Mode::Declared | Mode::Apart => Size::var(&binder.text),
            Mode::General { axes, .. } => {
                let unknown = checker.infer.sizes.fresh_axis();
                let size = Size::var(&unknown);
                axes.push(Axis { unknown, declared: binder.text.clone() });
                size
            }
        };
        sizes = sizes.with(&binder.text, Bind::Size(size));
    }
    let mut env = sizes.clone();
    let mut params = vec![];
    let mut lets = vec![];
    let mut size_params = vec![];
    for (i, pat) in decl.params.iter().enumerate() {
        if let Some((size, ty)) = super::apply::size_param(checker, &decl.binders, pat)? {
            checker.seen(without_type(pat).span, &Ty::Scalar(ty));
            size_params.push((params.len(), size.to_owned(), ty));
            continue;
        }
        let Some(ty) = pattern_type(checker, pat, &sizes, mode)? else {
            let name = super::apply::pattern_name(pat).unwrap_or("x");
            let message = format!("parameter `{name}` of `{}` has no type", decl.name.text);
            let d = checker.error(Code::Ambiguous, message, pat.span);
            return Err(d.help(format!("write `({name}: f32)` or `({name}: [n]f32)`")).into());
        };
        let inner = without_type(pat);
        let name = super::apply::pattern_name(inner).map_or(format!("arg{i}"), str::to_owned);
        let var = checker.fresh_var(&name);
        let kind = match mode {
            Mode::Apart if matches!(&ty, Ty::Scalar(s) if s.is_integer()) => {
                NodeKind::Size(Size::var(&name))
            }
            _ => NodeKind::Var(var),
        };
        let node = Node::new(kind, ty.clone(), pat.span);
        checker.params.push(var);
        params.push((name, var, ty, inner.span));
        let arg = Arg { elab: Elab::Value(node), span: pat.span };
        env = checker.bind(inner, arg, &env, &sizes, &mut lets, "the parameter")?;
    }
    if let Mode::General { axes, .. } = &*mode {
        let declared = axes.iter().map(|a| (a.unknown.clone(), a.declared.clone())).collect();
        let params = params.iter().map(|(_, v, ..)| *v).collect();
        checker.uses = Some(Uses::new(params, declared));
    }
    let result = match &decl.result {
        None => None,
        Some(ty) => {
            let ty = checker.ty(ty, &sizes)?;
            Some(match mode {
                Mode::Declared | Mode::Apart => ty,
                Mode::General { .. } => shape(checker, &ty),
            })
        }
    };
    let value = checker.elab(&decl.body, &env)?;
    let mut body = checker.as_value(value)?;
    body = checker.defining(body, lets)?;
    if let Some(ty) = result {
        let what = format!("the result of `{}`", decl.name.text);
        body = match checker.coerce(body, &ty, &what) {
            Ok(body) => body,
            Err(Abort(Some(mut d))) => {
                if let Some(declared) = &decl.result {
                    let label = crate::diag::Label {
                        span: declared.span,
                        text: "declared here".to_owned(),
                        primary: false,
                    };
                    d.labels.push(label);
                }
                return Err(Abort(Some(d)));
            }
            Err(abort) => return Err(abort),
        };
    }
    checker.seen(decl.name.span, &body.ty);
    for (a, b, span) in checker.infer.sizes.settle() {
        let (a, b) = (checker.infer.show_size(&a), checker.infer.show_size(&b));
        let message = format!("these lengths must be equal, but may differ: {a} and {b}");
        let d = checker.error(Code::SizeMismatch, message, span);
        checker.diagnostics.push(d);
    }
    Ok((params, size_params, body))
}

/// Returns a parameter's pattern without a type annotation of the whole pattern.
fn without_type(pat: &Pat) -> &Pat {
    match &pat.kind {
        PatKind::Typed(inner, _) => inner,
        PatKind::Paren(inner) => without_type(inner),
        PatKind::Name(_) | PatKind::Wild | PatKind::Tuple(_) | PatKind::Record(_) => pat,
    }
}

/// Returns the type annotated in a parameter's pattern, as a whole or for each component of a tuple.
fn pattern_type<'a>(
    checker: &mut Checker<'a>,
    pat: &'a Pat,
    sizes: &Env<'a>,
    mode: &mut Mode,
) -> Res<Option<Ty>> {
    Ok(match &pat.kind {
        PatKind::Typed(_, ty) => Some(param_type(checker, ty, sizes, mode)?),
        PatKind::Paren(inner) => pattern_type(checker, inner, sizes, mode)?,
        PatKind::Tuple(parts) => {
            let parts = parts.iter().map(|p| pattern_type(checker, p, sizes, mode));
            parts.collect::<Res<Option<_>>>()?.map(Ty::Tuple)
        }
        PatKind::Record(fields) => {
            let mut parts = vec![];
            for (_, part) in fields {
                let Some(part) = part else { return Ok(None) };
                let Some(ty) = pattern_type(checker, part, sizes, mode)? else { return Ok(None) };
                parts.push(ty);
            }
            Some(checker.record_type(fields.iter().map(|(name, _)| name), &parts)?)
        }
        PatKind::Name(_) | PatKind::Wild => None,
    })
}

/// Returns a parameter's type. In general mode, an axis that is a plain size name or a number gets a size of its own.
fn param_type<'a>(
    checker: &mut Checker<'a>,
    ty: &'a TypeExpr,
    sizes: &Env<'a>,
    mode: &mut Mode,
) -> Res<Ty> {
    Ok(match &ty.kind {
        TypeKind::Scalar(_)
        | TypeKind::Vector(..)
        | TypeKind::Param(_)
        | TypeKind::Function(..) => checker.ty(ty, sizes)?,
        TypeKind::Paren(t) | TypeKind::Unique(t) => param_type(checker, t, sizes, mode)?,
        TypeKind::Record(fields) => {
            let parts = fields.iter().map(|(_, t)| param_type(checker, t, sizes, mode));
            let parts = parts.collect::<Res<Vec<_>>>()?;
            checker.record_type(fields.iter().map(|(name, _)| name), &parts)?
        }
        TypeKind::Named(decl, args) => {
            let inner = checker.named_type(decl, args, sizes)?;
            param_type(checker, &decl.body, &inner, mode)?
        }
        TypeKind::Tuple(ts) => {
            let parts = ts.iter().map(|t| param_type(checker, t, sizes, mode));
            Ty::Tuple(parts.collect::<Res<_>>()?)
        }
        TypeKind::Array(n, t) => {
            let declared = checker.size_in_type(n, sizes)?;
            let number = declared.as_constant().filter(|n| *n >= DIMENSION);
            let size = match (&mut *mode, &n.kind, number) {
                (Mode::General { axes, numbers: true, .. }, _, Some(number)) => {
                    let unknown = checker.infer.sizes.fresh_axis();
                    let size = Size::var(&unknown);
                    axes.push(Axis { unknown, declared: number.to_string() });
                    size
                }
                (Mode::General { axes, used, .. }, ExprKind::Name(_), _) => {
                    let same = |a: &&Axis| declared.as_var() == Some(&a.unknown);
                    match axes.iter().find(same).map(|a| a.declared.clone()) {
                        // The first axis with a name keeps the size that the name stands for.
                        Some(name) if !used.insert(name.clone()) => {
                            let unknown = checker.infer.sizes.fresh_axis();
                            let size = Size::var(&unknown);
                            axes.push(Axis { unknown, declared: name });
                            size
                        }
                        _ => declared,
                    }
                }
                (Mode::General { .. } | Mode::Declared | Mode::Apart, ..) => declared,
            };
            Ty::Array(size, Rc::new(param_type(checker, t, sizes, mode)?))
        }
    })
}

/// Returns the type with every length unknown.
fn shape(checker: &mut Checker<'_>, ty: &Ty) -> Ty {
    match ty {
        Ty::Meta(_) | Ty::Scalar(_) | Ty::Vector(..) => ty.clone(),
        Ty::Tuple(ts) => Ty::Tuple(ts.iter().map(|t| shape(checker, t)).collect()),
        Ty::Record(names, ts) => {
            Ty::Record(names.clone(), ts.iter().map(|t| shape(checker, t)).collect())
        }
        Ty::Array(_, t) => {
            let n = checker.infer.sizes.fresh();
            Ty::Array(n, Rc::new(shape(checker, t)))
        }
    }
}

fn finish(
    checker: &Checker<'_>,
    decl: &Decl,
    (params, size_params, body): Parts,
    sizes: Vec<String>,
) -> (Entry, Vec<Diagnostic>) {
    let mut finish = Finish::new(checker);
    let mut shown = vec![];
    let param = |(name, var, ty, span): (String, VarId, Ty, Span)| {
        let labels = checker.labels(&ty);
        shown.push((name.clone(), finish.shown(&ty, span)));
        let ty = finish.ty(&ty, span);
        Param { name, var, ty, labels, span }
    };
    let params: Vec<Param> = params.into_iter().map(param).collect();
    for (before, name, ty) in size_params.iter().rev() {
        shown.insert(*before, (name.clone(), ty.to_string()));
    }
    let size_params = size_params.into_iter().map(|(before, name, _)| (before, name)).collect();
    shown.push((String::new(), finish.shown(&body.ty, body.span)));
    let body = finish.expr(&body);
    let divides = finish.divides(&checker.infer.sizes.divides);
    let mut diagnostics = finish.diagnostics;
    diagnostics.extend(super::nesting::check(checker.source, &body));
    let entry = Entry {
        name: decl.name.text.clone(),
        doc: decl.doc.clone(),
        sizes,
        params,
        size_params,
        shown,
        divides,
        body,
        names: checker.names.clone(),
        span: decl.name.span,
    };
    (entry, diagnostics)
}
