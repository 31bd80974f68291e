//! Converts expressions to the core: resolves names, infers types, inlines functions.
//!
//! Functions are not values. An expression in function position gives a [`Closure`], which disappears when it is
//! applied ([`super::apply`]) or passed to a pattern ([`super::prims`]).

use super::builtins::{self, Builtin, Constant};
use super::env::{Arg, Bind, Closure, Elab, Env, FunVal};
use super::infer::{Clash, Class, Infer, Ty};
use super::ir::{Lit, Node, NodeKind};
use super::places::Watch;
use crate::diag::{Code, Diagnostic, Limits, Source, Span};
use crate::lang::ast::{
    Binders, Decl, Expr, ExprKind, LoopForm, Operator, TypeExpr, TypeKind, UNKNOWN,
};
use crate::lang::foreign;
use crate::lang::lexer::Number;
use crate::lang::naming::{meant, nearest};
use crate::lang::prelude;
use crate::lang::size::Size;
use crate::lang::typed::{Prim, ScalarOp, VarId};
use crate::lang::types::ScalarType;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

/// The message for a size that the program computes.
pub const COMPUTED: &str = "a size must be known before the program runs";

/// Why an expression has no meaning; `None` if the error was already reported.
pub struct Abort(pub Option<Box<Diagnostic>>);

impl From<Diagnostic> for Abort {
    fn from(d: Diagnostic) -> Abort {
        Abort(Some(Box::new(d)))
    }
}

/// The result of elaborating something.
pub type Res<T> = Result<T, Abort>;

/// The state while a definition is checked.
pub struct Checker<'a> {
    /// The program's text.
    pub source: &'a Arc<Source>,
    /// The definitions of the file.
    pub decls: &'a BTreeMap<&'a str, &'a Decl>,
    /// The state of type and size inference.
    pub infer: Infer,
    /// Names of variables.
    pub names: Vec<String>,
    /// The parameters of the definition.
    pub params: Vec<VarId>,
    /// The errors found so far.
    pub diagnostics: Vec<Diagnostic>,
    /// The rigid sizes of the `iterate`s that change a length.
    pub iterates: Vec<String>,
    /// Uses of the parameters; present if sizes are inferred as generally as possible.
    pub uses: Option<super::uses::Uses>,
    /// Number of the innermost function passed to a pattern, 0 outside of any; and the number of such functions so
    /// far.
    pub function: usize,
    pub functions: usize,
    /// The function passed to a pattern in which the innermost loop stands, if there are both.
    pub step_of: Option<usize>,
    /// The states of loops outside of such functions, and what updates make of them.
    pub states: BTreeSet<VarId>,
    /// The place whose types are asked for, and what is known of it.
    pub watch: Option<Watch>,
    depth: usize,
    /// Number of expressions so far; `components` counts the components of their types.
    pub expressions: usize,
    most: usize,
    components: usize,
}

/// A state to return to when an attempt fails.
pub struct Snapshot {
    infer: Infer,
    diagnostics: usize,
    iterates: usize,
    uses: Option<super::uses::Uses>,
    watch: Option<Watch>,
}

impl<'a> Checker<'a> {
    /// Returns a checker that creates at most `most` expressions.
    pub fn new(
        source: &'a Arc<Source>,
        decls: &'a BTreeMap<&'a str, &'a Decl>,
        most: usize,
    ) -> Self {
        Checker {
            source,
            decls,
            infer: Infer::default(),
            names: vec![],
            params: vec![],
            diagnostics: vec![],
            iterates: vec![],
            uses: None,
            function: 0,
            functions: 0,
            step_of: None,
            states: BTreeSet::new(),
            watch: None,
            depth: 0,
            expressions: 0,
            most: most.min(Limits::DEFAULT.inlined_expressions),
            components: 0,
        }
    }

    /// Saves the state.
    pub fn snapshot(&mut self) -> Snapshot {
        // Charge the cost of the copy as a number of expressions.
        self.expressions += self.infer.extent() / 64;
        Snapshot {
            infer: self.infer.clone(),
            diagnostics: self.diagnostics.len(),
            iterates: self.iterates.len(),
            uses: self.uses.clone(),
            watch: self.watch.clone(),
        }
    }

    /// Returns whether nothing was reported since the snapshot.
    pub fn clean_since(&self, snapshot: &Snapshot) -> bool {
        self.diagnostics.len() == snapshot.diagnostics
    }

    /// Returns to a saved state.
    pub fn restore(&mut self, snapshot: Snapshot) {
        self.infer = snapshot.infer;
        self.diagnostics.truncate(snapshot.diagnostics);
        self.iterates.truncate(snapshot.iterates);
        self.uses = snapshot.uses;
        self.watch = snapshot.watch;
    }

    /// Returns a fresh variable.
    pub fn fresh_var(&mut self, name: &str) -> VarId {
        let id = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.names.push(name.to_owned());
        VarId(id)
    }

    /// Returns an error at a place.
    pub fn error(&self, code: Code, message: impl Into<String>, span: Span) -> Diagnostic {
        Diagnostic::error(code, message).at(self.source, span, "")
    }

    /// Reports an error, unless it was already reported. More errors are kept than are shown, because one mistake
    /// may be found at every use of a definition.
    pub fn report(&mut self, abort: Abort) {
        if let Abort(Some(d)) = abort
            && self.diagnostics.len() < 20 * Limits::DEFAULT.diagnostics
        {
            self.diagnostics.push(*d);
        }
    }

    /// Returns a node for an expression whose error was already reported.
    pub fn hole(&mut self, span: Span) -> Node {
        Node::new(NodeKind::Hole, self.infer.fresh(Class::Any), span)
    }

    /// Returns whether nothing is known of a value because of an error that was already reported.
    pub fn is_lost(&self, node: &Node) -> bool {
        let ty = self.infer.shallow(&node.ty);
        let unknown = matches!(ty, Ty::Meta(i) if self.infer.class(i) == Class::Any);
        matches!(node.kind, NodeKind::Hole) || unknown && !self.diagnostics.is_empty()
    }

    /// Returns the error for a type that does not fit.
    pub fn mismatch(&self, clash: Clash, expected: &Ty, node: &Node, what: &str) -> Abort {
        let (e, f) = (self.infer.show(expected), self.infer.show(&node.ty));
        let d = match clash {
            Clash::Size(a, b) => {
                let (a, b) = (self.infer.show_size(&a), self.infer.show_size(&b));
                self.error(Code::SizeMismatch, format!("{what} has another length: {a} and {b} differ"), node.span)
                    .note(format!("expected {e}"))
                    .note(format!("found    {f}"))
                    .help("lengths must be equal whatever values the sizes take; use one size name for both")
            }
            Clash::Infinite => {
                self.error(Code::TypeMismatch, format!("{what} would contain itself"), node.span)
            }
            Clash::Type | Clash::Class(_) => {
                let found = if e == f { "another type".to_owned() } else { f.clone() };
                let d = self.error(
                    Code::TypeMismatch,
                    format!("{what} must be {e}, but it is {found}"),
                    node.span,
                );
                let x = |other| self.written(node).unwrap_or(other);
                match (self.infer.shallow(expected), self.infer.shallow(&node.ty)) {
                    (Ty::Scalar(to), Ty::Scalar(from))
                        if to != from && to != ScalarType::Bool && from != ScalarType::Bool =>
                    {
                        d.help(match self.summed(node) {
                            Some((sum, xs)) if from.bytes() < to.bytes() => format!(
                                "convert the elements, so that the result has room: `{sum} (map {to}.{from} {xs})`"
                            ),
                            _ => format!("convert it: `{to}.{from} {}`", x("x")),
                        })
                    }
                    (Ty::Meta(i), Ty::Scalar(from))
                        if self.infer.class(i) == Class::Float && from.is_integer() =>
                    {
                        d.help(format!("convert it: `f32.{from} {}`", x("x")))
                    }
                    // Literals adapt to floats, sizes do not.
                    (Ty::Scalar(to), Ty::Meta(_)) if to.is_float() => {
                        d.help(format!("convert it: `{to}.i32 {}`", x("n")))
                    }
                    (Ty::Scalar(to), Ty::Meta(_)) if to.is_integer() => d.help(format!(
                        "write the literal without a point, or convert it: `{to}.f32 x`"
                    )),
                    _ => d,
                }
            }
        };
        let mut d = d;
        if let Some(label) = d.labels.first_mut() {
            label.text = format!("this is {f}");
        }
        d.into()
    }

    /// Returns the text of an expression that is a name.
    pub fn written(&self, node: &Node) -> Option<&'a str> {
        let text = self.source.text.get(node.span.range())?;
        let name =
            text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'\'' | b'.'));
        (name && text.starts_with(|c: char| c.is_ascii_alphabetic())).then_some(text)
    }

    /// Returns the parts of `sum xs` or `product xs`.
    fn summed(&self, node: &Node) -> Option<(&'a str, &'a str)> {
        let (f, xs) = self.source.text.get(node.span.range())?.split_once(' ')?;
        matches!(f, "sum" | "product").then_some((f, xs))
    }

    /// Converts a value to the expected type: unifies the types, and broadcasts a scalar if a vector is expected.
    pub fn coerce(&mut self, node: Node, expected: &Ty, what: &str) -> Res<Node> {
        if let Ty::Vector(_, element) = self.infer.shallow(expected) {
            let scalar = match self.infer.shallow(&node.ty) {
                Ty::Scalar(_) => true,
                Ty::Meta(i) => self.infer.class(i) == Class::Integer,
                Ty::Vector(..) | Ty::Tuple(_) | Ty::Record(..) | Ty::Array(..) => false,
            };
            if scalar {
                return match self.infer.unify(&node.ty, &element, node.span) {
                    Ok(()) => {
                        let span = node.span;
                        let kind = NodeKind::Broadcast(Box::new(node));
                        Ok(Node::new(kind, expected.clone(), span))
                    }
                    Err(clash) => Err(self.mismatch(clash, expected, &node, what)),
                };
            }
        }
        match self.infer.unify(expected, &node.ty, node.span) {
            Ok(()) => Ok(node),
            Err(clash) => Err(self.mismatch(clash, expected, &node, what)),
        }
    }

    /// Elaborates a value. Reports an error and returns a hole if there is none.
    pub fn value(&mut self, e: &'a Expr, env: &Env<'a>) -> Node {
        let node = self.elab(e, env).and_then(|elab| self.as_value(elab));
        self.or_hole(node, e.span)
    }

    /// Reports an error, and returns a hole in place of the value.
    fn or_hole(&mut self, node: Res<Node>, span: Span) -> Node {
        node.unwrap_or_else(|abort| {
            self.report(abort);
            self.hole(span)
        })
    }

    /// Returns the value, or an error for a function.
    pub fn as_value(&self, elab: Elab<'a>) -> Res<Node> {
        match elab {
            Elab::Value(node) => Ok(node),
            Elab::Fun(closure) => {
                let n = Self::arity(&closure.fun, &[]);
                let what = Self::describe(&closure.fun);
                let missing =
                    if n == 1 { "an argument".to_owned() } else { format!("{n} arguments") };
                let d = self
                    .error(Code::Arity, format!("{what} lacks {missing}"), closure.span)
                    .note("functions are not values: they can be applied, given to patterns, or named");
                // A tuple of as many components as the function takes arguments.
                let tuple = |args: &[Arg<'a>]| match args {
                    [Arg { elab: Elab::Value(node), .. }] => match self.infer.shallow(&node.ty) {
                        Ty::Tuple(parts) => parts.len(),
                        _ => 0,
                    },
                    _ => 0,
                };
                Err(match &*closure.fun {
                    FunVal::Partial(f, _)
                        if n == 1
                            && matches!(
                                **f,
                                FunVal::Builtin(Builtin::Pattern(
                                    Prim::Reduce | Prim::ReduceSeq | Prim::Scan(_),
                                    _
                                ))
                            ) =>
                    {
                        let name = what.trim_matches('`');
                        d.help(format!(
                            "an operator, its first value and an array follow: `{name} (+) 0 xs`"
                        ))
                        .into()
                    }
                    FunVal::Partial(f, args) if tuple(args) == Self::arity(f, &[]) => {
                        d.help("arguments stand side by side: `f x y`, not `f(x, y)`").into()
                    }
                    _ => d.into(),
                })
            }
        }
    }

    fn arg(&mut self, e: &'a Expr, env: &Env<'a>) -> Arg<'a> {
        let elab = match self.elab(e, env) {
            Ok(elab) => elab,
            Err(abort) => {
                self.report(abort);
                Elab::Value(self.hole(e.span))
            }
        };
        Arg { elab, span: e.span }
    }

    /// Elaborates an expression.
    pub fn elab(&mut self, e: &'a Expr, env: &Env<'a>) -> Res<Elab<'a>> {
        let made = self.within_limits(e.span, |this| this.elab_here(e, env))?;
        if let Elab::Value(node) = &made {
            self.seen(e.span, &node.ty);
        }
        Ok(made)
    }

    /// Creates an expression, unless it or the program would exceed a limit.
    pub fn within_limits(
        &mut self,
        span: Span,
        make: impl FnOnce(&mut Self) -> Res<Elab<'a>>,
    ) -> Res<Elab<'a>> {
        let limits = Limits::DEFAULT;
        self.expressions += 1;
        if self.expressions > self.most {
            return Err(self.too_large("expressions", limits.inlined_expressions, span));
        }
        if self.depth >= limits.inlined_nesting {
            return Err(self.too_deep(span));
        }
        self.depth += 1;
        let made = make(self);
        self.depth -= 1;
        let made = made?;
        if let Elab::Value(node) = &made {
            if node.depth > limits.inlined_nesting {
                return Err(self.too_deep(span));
            }
            let most = limits.type_components;
            let components = self.infer.components(&node.ty, most + 1);
            if components > most {
                let message = format!("this type has more than {most} components");
                let d = self.error(Code::KernelLimit, message, span);
                return Err(d.help("the components of its components count, too").into());
            }
            self.charge(components, span)?;
        }
        Ok(made)
    }

    /// Adds to the number of components of types, which has a limit.
    pub fn charge(&mut self, components: usize, span: Span) -> Res<()> {
        self.components += components;
        let most = Limits::DEFAULT.all_type_components;
        if self.components > most {
            return Err(self.too_large("components of types", most, span));
        }
        Ok(())
    }

    fn too_large(&self, of: &str, most: usize, span: Span) -> Abort {
        let message = "the program is too large once its definitions are inlined";
        self.error(Code::KernelLimit, message, span).note(format!("at most {most} {of}")).into()
    }

    fn too_deep(&self, span: Span) -> Abort {
        let message = "the program is nested too deeply once its definitions are inlined";
        let most = Limits::DEFAULT.inlined_nesting;
        self.error(Code::KernelLimit, message, span).note(format!("at most {most} levels")).into()
    }

    /// Wraps a value in `let`s.
    pub fn defining(&self, node: Node, lets: Vec<(VarId, Node)>) -> Res<Node> {
        if node.depth_under(&lets) > Limits::DEFAULT.inlined_nesting {
            return Err(self.too_deep(node.span));
        }
        Ok(node.under(lets))
    }

    /// Wraps a value in `let`s, or puts them before those of a function.
    pub fn under(&self, elab: Elab<'a>, lets: Vec<(VarId, Node)>) -> Res<Elab<'a>> {
        match elab {
            Elab::Value(node) => Ok(Elab::Value(self.defining(node, lets)?)),
            Elab::Fun(mut closure) => {
                closure.lets.splice(0..0, lets);
                Ok(Elab::Fun(closure))
            }
        }
    }

    fn elab_here(&mut self, e: &'a Expr, env: &Env<'a>) -> Res<Elab<'a>> {
        let span = e.span;
        let node = match &e.kind {
            ExprKind::Name(name) => return self.name(name, span, env),
            ExprKind::Paren(inner) => return self.elab(inner, env),
            ExprKind::Apply(f, args) => {
                let function = self.elab(f, env);
                let args: Vec<_> = args.iter().map(|a| self.arg(a, env)).collect();
                return self.apply_elab(function?, args, f.span, span);
            }
            ExprKind::Pipe(x, f) => {
                let arg = self.arg(x, env);
                let function = self.elab(f, env)?;
                return self.apply_elab(function, vec![arg], f.span, span);
            }
            ExprKind::Compose { first, second } => {
                let f = self.elab(first, env)?;
                let g = self.elab(second, env)?;
                let (f, g) = (self.as_fun(f, first.span)?, self.as_fun(g, second.span)?);
                let lets = f.lets.into_iter().chain(g.lets).collect();
                let fun = Rc::new(FunVal::Compose(f.fun, g.fun));
                return Ok(Elab::Fun(Closure { fun, lets, span }));
            }
            ExprKind::Lambda(params, result, body) => {
                let (result, env) = (result.as_ref(), env.clone());
                let fun = FunVal::Lambda { binders: None, params, result, body, env };
                return Ok(Elab::Fun(Closure { fun: Rc::new(fun), lets: vec![], span }));
            }
            ExprKind::Section(op) => return Self::operation(*op, span),
            ExprKind::SectionPart(parts) => {
                let fun = Rc::new(FunVal::Part(parts));
                return Ok(Elab::Fun(Closure { fun, lets: vec![], span }));
            }
            ExprKind::SectionLeft(x, op) => {
                let arg = self.arg(x, env);
                let function = Self::operation(*op, span)?;
                return self.apply_elab(function, vec![arg], span, span);
            }
            ExprKind::SectionRight(op @ Operator::Function(_), x) => {
                let op = Arg { elab: Self::operation(*op, span)?, span };
                let args = vec![op, self.arg(x, env)];
                let flip = prelude::get("flip").ok_or(Abort(None))?;
                let fun = Rc::new(FunVal::Decl(flip));
                return self.apply(Closure { fun, lets: vec![], span }, args, span);
            }
            ExprKind::SectionRight(Operator::Scalar(op), x) => {
                let mut lets = vec![];
                let value = self.value(x, env);
                let value = self.shared(value, "x", &mut lets);
                let fun = Rc::new(FunVal::SectionRight(*op, Box::new(value)));
                return Ok(Elab::Fun(Closure { fun, lets, span }));
            }
            ExprKind::Let { pat, binders, params, ty, value, body } => {
                let (params, ty) = ((&**binders, params.as_slice()), ty.as_ref());
                return self.let_in(pat, params, ty, value, body, env);
            }
            ExprKind::Number(n, suffix) => self.number(*n, *suffix, span),
            ExprKind::Bool(b) => {
                let ty = Ty::Scalar(ScalarType::Bool);
                Node::new(NodeKind::Lit(Lit::Bool(*b)), ty, span)
            }
            ExprKind::Tuple(parts) => {
                let nodes: Vec<_> = parts.iter().map(|p| self.value(p, env)).collect();
                let ty = Ty::Tuple(nodes.iter().map(|n| n.ty.clone()).collect());
                Node::new(NodeKind::Tuple(nodes), ty, span)
            }
            ExprKind::If(c, a, b) => {
                let c = self.value(c, env);
                let c = self.coerce(c, &Ty::Scalar(ScalarType::Bool), "the condition")?;
                let a = self.value(a, env);
                let b = self.value(b, env);
                let (a, b) = self.join_types(a, b, "the `else` branch")?;
                let ty = a.ty.clone();
                Node::new(NodeKind::If(Box::new(c), Box::new(a), Box::new(b)), ty, span)
            }
            ExprKind::Loop { pat, init, form, body } => {
                self.looping(pat, init, form, body, span, env)?
            }
            ExprKind::Index(array, indices) => {
                let array = self.value(array, env);
                self.subscripted(array, indices, span, env)?
            }
            ExprKind::With(array, places, value) => {
                let array = self.value(array, env);
                let value = self.value(value, env);
                self.updated(array, places, value, span, env)?
            }
            ExprKind::Array(parts) => self.literal(parts, span, env)?,
            ExprKind::Proj(tuple, i) => {
                let tuple = self.value(tuple, env);
                self.project(tuple, *i, span)?
            }
            ExprKind::Field(record, name) => {
                let record = self.value(record, env);
                self.field(record, name, span)?
            }
            ExprKind::Record(fields) => self.record(fields, span, env)?,
            ExprKind::Update(record, path, value) => {
                let record = self.value(record, env);
                let value = self.value(value, env);
                self.update(record, path, value, span)?
            }
            ExprKind::Infix(a, name, b) => {
                let function = self.name(&name.text, name.span, env);
                let args = vec![self.arg(a, env), self.arg(b, env)];
                return self.apply_elab(function?, args, name.span, span);
            }
            ExprKind::Unary(op, x) => {
                let x = self.value(x, env);
                self.scalar(*op, None, vec![x], span)?
            }
            ExprKind::Binary(op @ Operator::Function(_), a, b) => {
                let function = Self::operation(*op, span)?;
                let args = vec![self.arg(a, env), self.arg(b, env)];
                return self.apply_elab(function, args, span, span);
            }
            ExprKind::Binary(Operator::Scalar(op), a, b) => {
                let first = self.elab(a, env);
                if let (ScalarOp::Sub, Ok(Elab::Fun(_)), Some(number)) =
                    (op, &first, self.negative(b))
                {
                    let help = format!("a negative argument stands in parentheses: `({number})`");
                    let lacks = |Abort(d): Abort| Abort(d.map(|d| Box::new(d.help(help))));
                    return first.and_then(|f| self.as_value(f)).map(Elab::Value).map_err(lacks);
                }
                let first = first.and_then(|elab| self.as_value(elab));
                let a = self.or_hole(first, a.span);
                let b = self.value(b, env);
                self.scalar(*op, None, vec![a, b], span)?
            }
            ExprKind::Ascribe(x, ty) => {
                let x = self.value(x, env);
                let ty = self.annotation(ty, env)?;
                self.coerce(x, &ty, "the expression")?
            }
        };
        Ok(Elab::Value(node))
    }

    /// Returns a built-in function as a closure.
    pub fn builtin(builtin: Builtin, span: Span) -> Elab<'a> {
        Elab::Fun(Closure { fun: Rc::new(FunVal::Builtin(builtin)), lets: vec![], span })
    }

    /// Returns an operator as a function.
    fn operation(op: Operator, span: Span) -> Res<Elab<'a>> {
        let name = match op {
            Operator::Scalar(op) => return Ok(Self::builtin(Builtin::Scalar(op, None), span)),
            Operator::Function(name) => name,
        };
        match (builtins::lookup(name), prelude::get(name)) {
            (Some(builtin), _) => Ok(Self::builtin(builtin, span)),
            (None, Some(decl)) => {
                let fun = Rc::new(FunVal::Decl(decl));
                Ok(Elab::Fun(Closure { fun, lets: vec![], span }))
            }
            (None, None) => Err(Abort(None)),
        }
    }

    /// Returns the meaning of a name.
    pub fn name(&mut self, name: &str, span: Span, env: &Env<'a>) -> Res<Elab<'a>> {
        match env.get(name) {
            Some(Bind::Value(node)) => {
                let node = Node { span, ..node.clone() };
                return Ok(Elab::Value(self.used(node)));
            }
            Some(Bind::Size(size)) => {
                let ty = self.infer.fresh(Class::Integer);
                return Ok(Elab::Value(Node::new(NodeKind::Size(size.clone()), ty, span)));
            }
            Some(Bind::Fun(fun)) => {
                return Ok(Elab::Fun(Closure { fun: fun.clone(), lets: vec![], span }));
            }
            Some(Bind::Type(_)) | None => {}
        }
        let own = self.decls.get(name).copied().filter(|_| !prelude::holds(span));
        if let Some(decl) = own.or_else(|| prelude::get(name)) {
            if decl.params.is_empty() {
                return self.inline(decl, vec![], span);
            }
            let fun = Rc::new(FunVal::Decl(decl));
            return Ok(Elab::Fun(Closure { fun, lets: vec![], span }));
        }
        if let Some((ty, decl)) = of_type(name) {
            // The result has the type, and so do the elements.
            let whole = Rc::new(FunVal::Decl(decl));
            let typed = Rc::new(FunVal::Builtin(Builtin::Cast(ty, ty)));
            let fun = Rc::new(FunVal::Compose(whole, typed));
            return Ok(Elab::Fun(Closure { fun, lets: vec![], span }));
        }
        let known =
            builtins::lookup(name).filter(|_| !builtins::is_internal(name) || prelude::holds(span));
        match known {
            Some(Builtin::Constant(ty, constant)) => {
                let lit = match constant {
                    Constant::Highest => Lit::Extreme { highest: true },
                    Constant::Lowest => Lit::Extreme { highest: false },
                    Constant::Inf => Lit::Float(f64::INFINITY),
                    Constant::Nan => Lit::Float(f64::NAN),
                    Constant::Pi => Lit::Float(std::f64::consts::PI),
                    Constant::E => Lit::Float(std::f64::consts::E),
                };
                Ok(Elab::Value(Node::new(NodeKind::Lit(lit), Ty::Scalar(ty), span)))
            }
            Some(Builtin::Extreme { highest }) => {
                let ty = self.infer.fresh(Class::Number);
                Ok(Elab::Value(Node::new(NodeKind::Lit(Lit::Extreme { highest }), ty, span)))
            }
            Some(builtin) => Ok(Self::builtin(builtin, span)),
            None => Err(self.unknown(name, span, env).into()),
        }
    }

    fn unknown(&self, name: &str, span: Span, env: &Env<'a>) -> Diagnostic {
        let d = self.error(Code::UnknownName, format!("nothing is called `{name}`"), span);
        let (member, of) = match name.split_once('.') {
            Some((ty, member)) => (member, Some(ty)),
            None => (name, None),
        };
        if let Some(instead) = foreign::instead(member) {
            return d.help(instead);
        }
        if let Some(ty) = of {
            return match nearest(member, builtins::members()) {
                Some(near) => d.help(format!("did you mean `{ty}.{near}`?")),
                None => d,
            };
        }
        let mut known: Vec<&str> = env.names();
        for name in self.decls.keys() {
            known.push(name);
        }
        for name in builtins::names().chain(prelude::names()) {
            known.push(name);
        }
        if let Some(near) = nearest(name, known.into_iter()) {
            return d.help(format!("did you mean `{near}`?"));
        }
        if let Some(to) = ScalarType::from_name(name) {
            let from = if to.is_float() { "i32" } else { "f32" };
            return d.help(format!(
                "`{name}` is a type; a conversion names both types: `{name}.{from} x` converts from {from}"
            ));
        }
        d
    }

    fn number(&mut self, n: Number, suffix: Option<ScalarType>, span: Span) -> Node {
        let (lit, class) = match (n, suffix) {
            (Number::Int(v), Some(ty)) if ty.is_float() => (Lit::Float(v as f64), Class::Float),
            (Number::Int(v), _) => (Lit::Int(v), Class::Number),
            (Number::Float(v), _) => (Lit::Float(v), Class::Float),
        };
        let ty = match suffix {
            Some(ty) => Ty::Scalar(ty),
            None => self.infer.fresh(class),
        };
        Node::new(NodeKind::Lit(lit), ty, span)
    }

    /// Converts two values to the same type.
    pub fn join_types(&mut self, a: Node, b: Node, what: &str) -> Res<(Node, Node)> {
        if matches!(self.infer.shallow(&b.ty), Ty::Vector(..)) {
            let ty = b.ty.clone();
            return Ok((self.coerce(a, &ty, "the first value")?, b));
        }
        let ty = a.ty.clone();
        let (found, texts) = (b.ty.clone(), (self.operand_text(&a), self.operand_text(&b)));
        let b = self.coerce(b, &ty, what).map_err(|Abort(d)| {
            Abort(d.map(|mut d| {
                if let Some(help) = self.conversion((&ty, texts.0), (&found, texts.1)) {
                    d.help = vec![help];
                }
                d
            }))
        })?;
        Ok((a, b))
    }

    fn let_in(
        &mut self,
        pat: &'a crate::lang::ast::Pat,
        (binders, params): (&'a Binders, &'a [crate::lang::ast::Pat]),
        ty: Option<&'a TypeExpr>,
        value: &'a Expr,
        body: &'a Expr,
        env: &Env<'a>,
    ) -> Res<Elab<'a>> {
        let mut lets = vec![];
        let inner = if params.is_empty() {
            let mut arg = self.arg(value, env);
            if let Some(ty) = ty {
                let ty = self.annotation(ty, env)?;
                let node = self.as_value(arg.elab)?;
                arg.elab = Elab::Value(self.coerce(node, &ty, "the value")?);
            }
            self.bind(pat, arg, env, env, &mut lets, "the value")?
        } else {
            let binders = Some(binders);
            let fun = FunVal::Lambda { binders, params, result: ty, body: value, env: env.clone() };
            let closure = Closure { fun: Rc::new(fun), lets: vec![], span: pat.span };
            let arg = Arg { elab: Elab::Fun(closure), span: pat.span };
            self.bind(pat, arg, env, env, &mut lets, "the function")?
        };
        let body = self.elab(body, &inner)?;
        self.under(body, lets)
    }

    fn looping(
        &mut self,
        pat: &'a crate::lang::ast::Pat,
        init: &'a Expr,
        form: &'a LoopForm,
        body: &'a Expr,
        span: Span,
        env: &Env<'a>,
    ) -> Res<Node> {
        let init = self.value(init, env);
        if let LoopForm::In(element, array) = form {
            let array = self.value(array, env);
            return self.fold_over((pat, init), (element, array), body, span, env);
        }
        let ty = init.ty.clone();
        let acc = self.fresh_var(super::apply::pattern_name(pat).unwrap_or("acc"));
        self.is_state_of_loop(acc);
        let node = Node::new(NodeKind::Var(acc), ty.clone(), pat.span);
        let arg = Arg { elab: Elab::Value(node), span: init.span };
        let mut lets = vec![];
        let inner = self.bind(pat, arg, env, env, &mut lets, "the accumulator")?;
        let kind = match form {
            LoopForm::For(name, bound) => {
                let bound = self.value(bound, env);
                self.restrict(&bound, Class::Integer, "the bound of the loop")?;
                let unnamed = name.text == "_";
                let index = self.fresh_var(if unnamed { "i" } else { &name.text });
                let counter = Node::new(NodeKind::Var(index), bound.ty.clone(), name.span);
                self.seen(name.span, &bound.ty);
                let inner = match unnamed {
                    true => inner,
                    false => inner.with(&name.text, Bind::Value(counter)),
                };
                let next = self.in_step(|this| this.value(body, &inner));
                let next = self.defining(next, lets)?;
                let next = self.coerce(next, &ty, "the next accumulator")?;
                NodeKind::LoopFor(acc, Box::new(init), index, Box::new(bound), Box::new(next))
            }
            LoopForm::In(..) => return Err(Abort(None)),
            LoopForm::While(cond) => {
                let cond = self.value(cond, &inner);
                let cond = self.defining(cond, lets.clone())?;
                let cond = self.coerce(cond, &Ty::Scalar(ScalarType::Bool), "the condition")?;
                let next = self.in_step(|this| this.value(body, &inner));
                let next = self.defining(next, lets)?;
                let next = self.coerce(next, &ty, "the next accumulator")?;
                NodeKind::LoopWhile(acc, Box::new(init), Box::new(cond), Box::new(next))
            }
        };
        Ok(Node::new(kind, ty, span))
    }

    /// Requires a class of scalar types.
    pub fn restrict(&mut self, node: &Node, class: Class, what: &str) -> Res<()> {
        self.infer.restrict(&node.ty, class).map_err(|_| {
            let found = self.infer.show(&node.ty);
            let message = format!("{what} must be {}, but it is {found}", class.describe());
            self.error(Code::TypeMismatch, message, node.span).into()
        })
    }

    pub fn index(&mut self, array: Node, index: Node, span: Span) -> Res<Node> {
        self.restrict(&index, Class::Integer, "an index")?;
        match self.infer.shallow(&array.ty) {
            Ty::Array(_, element) => {
                let kind = NodeKind::Index(Box::new(array), Box::new(index));
                Ok(Node::new(kind, (*element).clone(), span))
            }
            _ if self.is_lost(&array) => Err(Abort(None)),
            ty => {
                let found = self.infer.show(&ty);
                let message = format!("only arrays can be indexed, and this is {found}");
                Err(self.error(Code::TypeMismatch, message, array.span).into())
            }
        }
    }

    /// Returns component `i`, which has this type.
    pub fn component(tuple: Node, i: usize, ty: Ty, span: Span) -> Node {
        let kind = match tuple.kind {
            NodeKind::Tuple(mut nodes) if nodes.iter().all(Node::is_atomic) => {
                nodes.swap_remove(i).kind
            }
            kind => NodeKind::Proj(Box::new(Node::new(kind, tuple.ty, tuple.span)), i),
        };
        Node::new(kind, ty, span)
    }

    /// Returns `tuple.i`.
    pub fn project(&mut self, tuple: Node, i: usize, span: Span) -> Res<Node> {
        match self.infer.shallow(&tuple.ty) {
            Ty::Tuple(parts) => match parts.get(i) {
                Some(ty) => {
                    let ty = ty.clone();
                    Ok(Self::component(tuple, i, ty, span))
                }
                None => {
                    let found = self.infer.show(&tuple.ty);
                    let message = format!("there is no component {i} in {found}");
                    let d = self.error(Code::TypeMismatch, message, span);
                    Err(d.help(format!("components are numbered 0 to {}", parts.len() - 1)).into())
                }
            },
            _ if self.is_lost(&tuple) => Err(Abort(None)),
            ty => {
                let found = self.infer.show(&ty);
                let message = format!("only tuples have components, and this is {found}");
                Err(self.error(Code::TypeMismatch, message, tuple.span).into())
            }
        }
    }

    /// Converts a type as written.
    pub fn ty(&mut self, ty: &'a TypeExpr, env: &Env<'a>) -> Res<Ty> {
        Ok(match &ty.kind {
            TypeKind::Scalar(s) => Ty::Scalar(*s),
            TypeKind::Vector(s, w) => Ty::Vector(Size::constant(*w), Rc::new(Ty::Scalar(*s))),
            TypeKind::Paren(t) | TypeKind::Unique(t) => self.ty(t, env)?,
            TypeKind::Param(name) => match env.get(&format!("'{name}")) {
                Some(Bind::Type(ty)) => ty.clone(),
                _ => self.infer.fresh(Class::Any),
            },
            TypeKind::Record(fields) => {
                let parts = fields.iter().map(|(_, t)| self.ty(t, env)).collect::<Res<Vec<_>>>()?;
                self.record_type(fields.iter().map(|(name, _)| name), &parts)?
            }
            TypeKind::Named(decl, sizes) => {
                let inner = self.named_type(decl, sizes, env)?;
                self.ty(&decl.body, &inner)?
            }
            TypeKind::Function(..) => return Err(self.not_a_value(ty.span)),
            TypeKind::Tuple(ts) => {
                Ty::Tuple(ts.iter().map(|t| self.ty(t, env)).collect::<Res<_>>()?)
            }
            TypeKind::Array(n, t) => {
                let n = self.size_in_type(n, env)?;
                Ty::Array(n, Rc::new(self.ty(t, env)?))
            }
        })
    }

    /// Converts a size as written in a type.
    pub fn size_in_type(&mut self, e: &'a Expr, env: &Env<'a>) -> Res<Size> {
        if matches!(&e.kind, ExprKind::Name(name) if name == UNKNOWN) {
            return Ok(self.infer.sizes.fresh());
        }
        if let ExprKind::Name(name) = &e.kind
            && env.get(name).is_none()
            && !self.decls.contains_key(name.as_str())
        {
            let d = self.error(Code::UnknownName, format!("no size is called `{name}`"), e.span);
            return Err(meant(d, name, env.names().into_iter())
                .help(format!("bind it behind the name of the definition: `[{name}]`"))
                .into());
        }
        let elab = self.elab(e, env)?;
        let node = self.as_value(elab)?;
        self.as_size(&node)
    }

    /// Returns the size that a value stands for.
    pub fn as_size(&mut self, node: &Node) -> Res<Size> {
        let size = self.as_integer(node)?;
        if size.as_constant().is_some_and(|c| c < 0) {
            return Err(self.error(Code::SizeRange, "the size is negative", node.span).into());
        }
        Ok(size)
    }

    /// Returns the size that a value stands for; it may be negative.
    pub fn as_integer(&mut self, node: &Node) -> Res<Size> {
        self.restrict(node, Class::Integer, "a size")?;
        let size = self.size_of(node)?;
        let size = self.infer.sizes.resolve(&size);
        if size.divided_by_zero() {
            let d = self.error(Code::NotDivisible, "a size is divided by zero", node.span);
            return Err(d.into());
        }
        if size.overflowed() {
            return Err(self.error(Code::SizeRange, "the size exceeds 64 bits", node.span).into());
        }
        Ok(size)
    }

    fn size_of(&mut self, node: &Node) -> Res<Size> {
        match &node.kind {
            NodeKind::Hole => Err(Abort(None)),
            NodeKind::Lit(Lit::Int(v)) => i64::try_from(*v).map(Size::constant).map_err(|_| {
                self.error(Code::SizeRange, "the size exceeds 64 bits", node.span).into()
            }),
            NodeKind::Size(size) => Ok(size.clone()),
            NodeKind::Scalar(op, args) => match (op, args.as_slice()) {
                (ScalarOp::Neg, [a]) => Ok(self.size_of(a)?.neg()),
                // A shorter type does not have all lengths.
                (ScalarOp::Cast(to), [a])
                    if to.is_integer()
                        && to.bytes() >= 4
                        && self.infer.restrict(&a.ty, Class::Integer).is_ok() =>
                {
                    self.size_of(a)
                }
                (ScalarOp::Add, [a, b]) => Ok(self.size_of(a)?.add(&self.size_of(b)?)),
                (ScalarOp::Sub, [a, b]) => Ok(self.size_of(a)?.sub(&self.size_of(b)?)),
                (ScalarOp::Mul, [a, b]) => Ok(self.size_of(a)?.mul(&self.size_of(b)?)),
                (ScalarOp::Div, [a, b]) => {
                    let (a, b) = (self.size_of(a)?, self.size_of(b)?);
                    // A quotient of numbers is the number that it is as a value.
                    let number = |s: &Size| self.infer.sizes.resolve(s).as_constant();
                    match number(&a).zip(number(&b)).and_then(|(a, b)| a.checked_div(b)) {
                        Some(quotient) => Ok(Size::constant(quotient)),
                        None => Ok(self.infer.sizes.quotient(&a, &b, node.span)),
                    }
                }
                (ScalarOp::Rem, [a, b]) => Ok(self.size_of(a)?.rest(&self.size_of(b)?)),
                (ScalarOp::Pow, [a, b]) => {
                    let exponent = self.size_of(b)?.as_constant();
                    match exponent.and_then(|c| u32::try_from(c).ok()).filter(|c| *c < 64) {
                        Some(exponent) => Ok(self.size_of(a)?.pow(exponent)),
                        None => {
                            let message = "the exponent in a size must be a number below 64";
                            let d = self.error(Code::TypeMismatch, message, b.span);
                            Err(d.help("bind a size for the whole power, such as `[n]`; its logarithm is `ctz n`").into())
                        }
                    }
                }
                _ => Err(self.not_a_size(node)),
            },
            _ => Err(self.not_a_size(node)),
        }
    }

    fn not_a_size(&self, node: &Node) -> Abort {
        let d = self.error(Code::TypeMismatch, COMPUTED, node.span)
            .note("sizes are numbers, size names, and their sums, differences, products, exact quotients and rests `n % k`");
        match (&node.kind, self.parameter(node)) {
            (NodeKind::Scalar(ScalarOp::Cast(to), _), _) if to.is_integer() && to.bytes() < 4 => {
                d.help(format!("`{to}` does not have all lengths; convert to `i32` or `i64`"))
            }
            (_, Some(k)) => d.help(format!(
                "if `{k}` is a parameter, declare it as a size, too: `[{k}] ({k}: i64)`"
            )),
            _ => d,
        }
        .into()
    }

    /// Returns the name of the first parameter in arithmetic. In a function of the prelude, the place does not tell it.
    fn parameter(&self, node: &Node) -> Option<&str> {
        match &node.kind {
            NodeKind::Var(v) if self.params.contains(v) => {
                self.names.get(v.0 as usize).map(String::as_str)
            }
            NodeKind::Scalar(_, nodes) => nodes.iter().find_map(|n| self.parameter(n)),
            _ => None,
        }
    }
}

/// Returns the type and the function of `f32.sum` and the like.
fn of_type(name: &str) -> Option<(ScalarType, &'static Decl)> {
    let (ty, member) = name.split_once('.')?;
    let reduces = ["sum", "product", "maximum", "minimum"].contains(&member);
    let ty = ScalarType::from_name(ty).filter(|ty| *ty != ScalarType::Bool && reduces)?;
    Some((ty, prelude::get(member)?))
}
