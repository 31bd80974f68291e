//! Application of functions: binds parameters, inlines definitions, checks scalar operations, and handles partial
//! application.

use super::advice;
use super::builtins::{self, Builtin};
use super::elab::{Abort, Checker, Res};
use super::env::{Arg, Bind, Closure, Elab, Env, FunVal};
use super::infer::{Class, Ty};
use super::ir::{Fun, Lit, Node, NodeKind};
use crate::diag::{Code, Diagnostic, Span};
use crate::lang::ast::{Binders, Decl, Part, Pat, PatKind, TypeKind};
use crate::lang::prelude;
use crate::lang::typed::{Prim, ScalarOp, VarId};
use crate::lang::types::ScalarType;
use std::rc::Rc;

/// Returns the name that a pattern suggests for the value that it binds.
pub fn pattern_name(pat: &Pat) -> Option<&str> {
    match &pat.kind {
        PatKind::Name(name) => Some(name),
        PatKind::Paren(p) | PatKind::Typed(p, _) => pattern_name(p),
        PatKind::Wild | PatKind::Tuple(_) | PatKind::Record(_) => None,
    }
}

/// Returns the size that a parameter stands for: the one with its name.
///
/// # Errors
/// When it has another type than an integer.
pub fn size_param<'a>(
    checker: &Checker<'_>,
    binders: &'a Binders,
    pat: &Pat,
) -> Res<Option<(&'a str, ScalarType)>> {
    let size = pattern_name(pat).and_then(|name| binders.sizes().find(|s| s.text == name));
    let Some(size) = size else { return Ok(None) };
    if let PatKind::Typed(_, ty) = &inside(pat).kind
        && let TypeKind::Scalar(ty) = ty.kind
        && ty.is_integer()
    {
        return Ok(Some((&size.text, ty)));
    }
    let message =
        format!("`{}` is the name of a size and of a parameter of another type", size.text);
    let d = checker.error(Code::TypeMismatch, message, pat.span);
    Err(d.help(format!("write `({}: i64)`, or give the parameter another name", size.text)).into())
}

/// Returns a pattern without its parentheses.
fn inside(pat: &Pat) -> &Pat {
    match &pat.kind {
        PatKind::Paren(inner) => inside(inner),
        _ => pat,
    }
}

/// Moves an error in a function of the prelude to the place of its use.
fn moved(d: &mut Diagnostic, decl: &Decl, to: Span, for_each_row: Option<&str>) {
    advice::in_use(d, for_each_row, to);
    if !d.labels.iter().any(|l| prelude::holds(l.span)) {
        return;
    }
    d.labels.iter_mut().filter(|l| prelude::holds(l.span)).for_each(|l| l.span = to);
    let mut seen = vec![];
    d.labels.retain(|l| {
        let new = !seen.contains(&l.span);
        seen.push(l.span);
        new
    });
    d.labels.iter_mut().take(1).for_each(|l| l.primary = true);
    if !prelude::holds(to) {
        d.notes.push(prelude::about(decl));
    }
}

fn count(n: usize) -> String {
    if n == 1 { "1 argument".to_owned() } else { format!("{n} arguments") }
}

impl<'a> Checker<'a> {
    /// Returns the number of arguments that a function takes, given that its first arguments are `args`.
    pub fn arity(fun: &FunVal<'a>, args: &[Arg<'a>]) -> usize {
        match fun {
            FunVal::Lambda { params, .. } => params.len(),
            FunVal::Decl(decl) => decl.params.len(),
            FunVal::Builtin(Builtin::Pattern(Prim::Vectorize, _)) => match args.get(1) {
                Some(Arg { elab: Elab::Fun(f), .. }) => 2 + Self::arity(&f.fun, &[]),
                Some(_) | None => 3,
            },
            FunVal::Builtin(builtin) => builtin.arity(),
            FunVal::SectionRight(..) | FunVal::Part(_) | FunVal::Compose(..) => 1,
            FunVal::Partial(inner, first) => {
                let all: Vec<_> = first.iter().chain(args).cloned().collect();
                Self::arity(inner, &all).saturating_sub(first.len())
            }
        }
    }

    /// Returns a description of a function for error messages.
    pub fn describe(fun: &FunVal<'a>) -> String {
        match fun {
            FunVal::Lambda { .. } => "this function".to_owned(),
            FunVal::Decl(decl) => format!("`{}`", decl.name.text),
            FunVal::Builtin(builtin) => format!("`{}`", builtin.name()),
            FunVal::SectionRight(op, _) => format!("`({} ...)`", builtins::op_name(*op)),
            FunVal::Part(parts) => {
                let parts = parts.iter().map(|part| match part {
                    Part::Component(i) => format!(".{i}"),
                    Part::Field(name) => format!(".{name}"),
                });
                format!("`({})`", parts.collect::<String>())
            }
            FunVal::Compose(..) => "this composition".to_owned(),
            FunVal::Partial(inner, _) => Self::describe(inner),
        }
    }

    /// Returns the function, or an error for a value.
    pub fn as_fun(&self, elab: Elab<'a>, span: Span) -> Res<Closure<'a>> {
        match elab {
            Elab::Fun(closure) => Ok(closure),
            Elab::Value(node) if self.is_lost(&node) => Err(Abort(None)),
            Elab::Value(node) => {
                let found = self.infer.show(&node.ty);
                let message = format!("expected a function, but this is {found}");
                Err(self.error(Code::TypeMismatch, message, span).into())
            }
        }
    }

    /// Applies an expression in function position.
    pub fn apply_elab(
        &mut self,
        function: Elab<'a>,
        args: Vec<Arg<'a>>,
        function_span: Span,
        span: Span,
    ) -> Res<Elab<'a>> {
        if let Elab::Value(node) = &function {
            if self.is_lost(node) {
                return Err(Abort(None));
            }
            let found = self.infer.show(&node.ty);
            let message = if prelude::holds(function_span) {
                let name = prelude::excerpt(function_span);
                format!("`{name}` must be a function, but is {found}")
            } else {
                format!("this is {found}, not a function; it cannot be applied")
            };
            let d = self.error(Code::Arity, message, function_span);
            return Err(match args.as_slice() {
                [arg, ..] => self.with_index(d, function_span, arg.span).into(),
                [] => d.into(),
            });
        }
        let closure = self.as_fun(function, function_span)?;
        self.apply(closure, args, span)
    }

    /// Returns an expression that may be repeated at no cost: `node` itself, or a variable bound to it in `lets`.
    pub fn shared(&mut self, node: Node, name: &str, lets: &mut Vec<(VarId, Node)>) -> Node {
        if node.is_atomic() {
            return node;
        }
        let var = self.fresh_var(name);
        if self.updates_state(&node) {
            self.states.insert(var);
        }
        let (ty, span) = (node.ty.clone(), node.span);
        lets.push((var, node));
        Node::new(NodeKind::Var(var), ty, span)
    }

    /// Applies a function to any number of arguments: fewer than it takes, all, or more.
    pub fn apply(&mut self, closure: Closure<'a>, args: Vec<Arg<'a>>, span: Span) -> Res<Elab<'a>> {
        let mut lets = closure.lets;
        let mut fun = closure.fun;
        let mut all = args;
        while let FunVal::Partial(inner, first) = &*fun {
            all.splice(0..0, first.iter().cloned());
            fun = inner.clone();
        }
        let arity = Self::arity(&fun, &all);
        if all.len() < arity {
            for arg in &mut all {
                match &mut arg.elab {
                    Elab::Value(node) => *node = self.shared(node.clone(), "x", &mut lets),
                    Elab::Fun(closure) => lets.append(&mut closure.lets),
                }
            }
            let fun = Rc::new(FunVal::Partial(fun, all));
            return Ok(Elab::Fun(Closure { fun, lets, span }));
        }
        let given = all.len();
        let rest = all.split_off(arity);
        let extra = rest.first().map(|a| a.span);
        let last = all.last().map(|a| a.span);
        let result = self.within_limits(span, |this| this.call(&fun, all, closure.span, span))?;
        let result = match (result, extra) {
            (result, None) => result,
            (Elab::Fun(closure), Some(_)) => self.apply(closure, rest, span)?,
            (Elab::Value(Node { kind: NodeKind::Hole, .. }), Some(_)) => return Err(Abort(None)),
            (Elab::Value(_), Some(extra)) => {
                let what = Self::describe(&fun);
                let message = format!("{what} takes {}, but {given} are given", count(arity));
                let d = self.error(Code::Arity, message, extra.to(span));
                let d = self.with_index(d, last.unwrap_or(span), extra);
                return Err(d
                    .help("parenthesise an argument that is itself an application")
                    .into());
            }
        };
        self.under(result, lets)
    }

    /// Applies a function to exactly the arguments that it takes.
    fn call(
        &mut self,
        fun: &Rc<FunVal<'a>>,
        args: Vec<Arg<'a>>,
        at: Span,
        span: Span,
    ) -> Res<Elab<'a>> {
        match &**fun {
            FunVal::Lambda { binders, params, result, body, env } => {
                let mut lets = vec![];
                let what = |_| "the argument".to_owned();
                let (inner, sizes) =
                    self.bind_all(*binders, params, args, env, &mut lets, &what)?;
                let mut value = self.elab(body, &inner)?;
                if let Some(ty) = result {
                    let ty = self.annotation(ty, &sizes)?;
                    let node = self.as_value(value)?;
                    value = Elab::Value(self.coerce(node, &ty, "the result")?);
                }
                self.under(value, lets)
            }
            FunVal::Decl(decl) => self.inline(decl, args, span),
            FunVal::Builtin(builtin) => self.call_builtin(*builtin, args, at, span),
            FunVal::SectionRight(op, right) => {
                let mut nodes = self.values(args)?;
                nodes.push((**right).clone());
                Ok(Elab::Value(self.scalar(*op, None, nodes, span)?))
            }
            FunVal::Part(parts) => {
                let whole = self.values(args)?.pop().ok_or(Abort(None))?;
                let part = parts.iter().try_fold(whole, |node, part| match part {
                    Part::Component(i) => self.project(node, *i, span),
                    Part::Field(name) => self.field(node, name, span),
                })?;
                Ok(Elab::Value(part))
            }
            FunVal::Compose(f, g) => {
                let (f, g) = (f.clone(), g.clone());
                let middle = self.apply(Closure { fun: f, lets: vec![], span: at }, args, span)?;
                let arg = Arg { elab: middle, span };
                self.apply(Closure { fun: g, lets: vec![], span: at }, vec![arg], span)
            }
            FunVal::Partial(..) => {
                self.apply(Closure { fun: fun.clone(), lets: vec![], span: at }, args, span)
            }
        }
    }

    fn values(&self, args: Vec<Arg<'a>>) -> Res<Vec<Node>> {
        args.into_iter().map(|a| self.as_value(a.elab)).collect()
    }

    fn call_builtin(
        &mut self,
        builtin: Builtin,
        mut args: Vec<Arg<'a>>,
        at: Span,
        span: Span,
    ) -> Res<Elab<'a>> {
        let node = match builtin {
            Builtin::Scalar(op, ty) => {
                let nodes = self.values(args)?;
                self.scalar(op, ty, nodes, span)?
            }
            Builtin::Only(class, op, ty) => {
                let nodes = self.values(args)?;
                let what = format!("an operand of `{}`", builtin.name());
                for node in &nodes {
                    self.restrict(node, class, &what)?;
                }
                self.scalar(op, ty, nodes, span)?
            }
            Builtin::Cast(to, from) => {
                let mut nodes = self.values(args)?;
                let Some(node) = nodes.pop() else { return Err(Abort(None)) };
                let width = match self.infer.shallow(&node.ty) {
                    Ty::Vector(w, _) => Some(w),
                    _ => None,
                };
                let lift = |s: ScalarType| match &width {
                    Some(w) => Ty::Vector(w.clone(), Rc::new(Ty::Scalar(s))),
                    None => Ty::Scalar(s),
                };
                let what = format!("the argument of `{}`", builtin.name());
                let node = self.coerce(node, &lift(from), &what)?;
                if to == from {
                    return Ok(Elab::Value(node));
                }
                let kind = NodeKind::Scalar(ScalarOp::Cast(to), vec![node]);
                Node::new(kind, lift(to), span)
            }
            Builtin::Length => {
                let array = self.values(args)?.pop().ok_or(Abort(None))?;
                let (n, _) = self.sliced(&array, span)?;
                self.named(&array);
                let ty = self.infer.fresh(Class::Integer);
                Node::new(NodeKind::Size(n), ty, span)
            }
            Builtin::Id => return args.pop().map(|a| a.elab).ok_or(Abort(None)),
            Builtin::Pattern(prim, width) => self.pattern(prim, width, args, at, span)?,
            Builtin::Constant(..) | Builtin::Mode(_) | Builtin::Extreme { .. } => {
                let message = format!("`{}` is not a function", builtin.name());
                return Err(self.error(Code::Arity, message, at).into());
            }
        };
        Ok(Elab::Value(node))
    }

    /// Replaces a use of a definition by its body.
    pub fn inline(&mut self, decl: &'a Decl, args: Vec<Arg<'a>>, span: Span) -> Res<Elab<'a>> {
        let mut lets = vec![];
        let what = |i| format!("argument {} of `{}`", i + 1, decl.name.text);
        let for_each_row = self.for_each_row(decl, &args);
        let binders = Some(&decl.binders);
        let (inner, sizes) =
            self.bind_all(binders, &decl.params, args, &Env::default(), &mut lets, &what)?;
        let before = self.diagnostics.len();
        let result = self.elab(&decl.body, &inner).and_then(|value| match &decl.result {
            None => Ok(value),
            Some(ty) => {
                let ty = self.annotation(ty, &sizes)?;
                let node = self.as_value(value)?;
                let what = format!("the result of `{}`", decl.name.text);
                Ok(Elab::Value(self.coerce(node, &ty, &what)?))
            }
        });
        // The error may be the caller's fault, so mention the use.
        let note = |d: &mut Diagnostic| {
            if prelude::holds(decl.name.span) {
                return moved(d, decl, span, for_each_row.as_deref());
            }
            let label = crate::diag::Label {
                span,
                text: format!("in this use of `{}`", decl.name.text),
                primary: false,
            };
            if !d.labels.contains(&label) && d.labels.len() < 4 {
                d.labels.push(label);
            }
        };
        self.diagnostics.iter_mut().skip(before).for_each(note);
        let mut result = result.map_err(|mut abort| {
            abort.0.iter_mut().for_each(|d| note(d));
            abort
        })?;
        if let Elab::Value(node) = &result {
            self.seen(decl.name.span, &node.ty);
        }
        if prelude::holds(decl.name.span) {
            if let Elab::Value(node) = &mut result {
                node.moved(&prelude::holds, span);
            }
            self.infer.sizes.moved(&prelude::holds, span);
        }
        self.under(result, lets)
    }

    /// Binds the parameters of a function that is defined in `env`, and its sizes and types. Returns the names that its
    /// body may use, and those that the types of its parameters and of its result may use.
    fn bind_all(
        &mut self,
        binders: Option<&'a Binders>,
        params: &'a [Pat],
        args: Vec<Arg<'a>>,
        env: &Env<'a>,
        lets: &mut Vec<(VarId, Node)>,
        what: &dyn Fn(usize) -> String,
    ) -> Res<(Env<'a>, Env<'a>)> {
        let mut sizes = env.clone();
        for binder in binders.into_iter().flat_map(Binders::sizes) {
            let size = self.infer.sizes.fresh();
            sizes = sizes.with(&binder.text, Bind::Size(size));
        }
        for param in binders.into_iter().flat_map(|b| &b.types) {
            let ty = self.infer.fresh(Class::Any);
            sizes = sizes.with(&format!("'{}", param.text), Bind::Type(ty));
        }
        let mut inner = sizes.clone();
        for (i, (pat, arg)) in params.iter().zip(args).enumerate() {
            let what = what(i);
            let size = binders.map(|binders| size_param(self, binders, pat)).transpose()?.flatten();
            let Some((name, _)) = size else {
                inner = self.bind(pat, arg, &inner, &sizes, lets, &what)?;
                continue;
            };
            let node = self.as_value(arg.elab)?;
            let given = self.as_size(&node)?;
            let Some(Bind::Size(size)) = sizes.get(name) else { continue };
            if self.infer.sizes.unify(size, &given, arg.span).is_err() {
                let text = format!("{what} is {given}, where `{name}` is {size}");
                return Err(self.error(Code::SizeMismatch, text, arg.span).into());
            }
        }
        Ok((inner, sizes))
    }

    /// Binds the names of a pattern. Types in the pattern are interpreted in `sizes`; the names are added to `env`.
    pub fn bind(
        &mut self,
        pat: &'a Pat,
        arg: Arg<'a>,
        env: &Env<'a>,
        sizes: &Env<'a>,
        lets: &mut Vec<(VarId, Node)>,
        what: &str,
    ) -> Res<Env<'a>> {
        match (&pat.kind, arg.elab) {
            (PatKind::Paren(inner), elab) => {
                self.bind(inner, Arg { elab, span: arg.span }, env, sizes, lets, what)
            }
            (PatKind::Name(name), Elab::Value(node)) => {
                self.named(&node);
                self.seen(pat.span, &node.ty);
                let node = self.shared(node, name, lets);
                Ok(env.with(name, Bind::Value(node)))
            }
            (PatKind::Name(name), Elab::Fun(closure)) => {
                lets.extend(closure.lets);
                Ok(env.with(name, Bind::Fun(closure.fun)))
            }
            (PatKind::Wild, _) => Ok(env.clone()),
            (PatKind::Typed(inner, ty), elab @ Elab::Fun(_)) if ty.is_function() => {
                self.bind(inner, Arg { elab, span: arg.span }, env, sizes, lets, what)
            }
            (PatKind::Record(fields), elab) => {
                let node = self.as_value(elab)?;
                self.bind_fields(fields, node, arg.span, env, sizes, lets)
            }
            (PatKind::Typed(inner, ty), elab) => {
                let ty = self.annotation(ty, sizes)?;
                let node = self.as_value(elab)?;
                let node = Node {
                    span: arg.span,
                    ..self.coerce(Node { span: arg.span, ..node }, &ty, what)?
                };
                let arg = Arg { elab: Elab::Value(node), span: arg.span };
                self.bind(inner, arg, env, sizes, lets, what)
            }
            (PatKind::Tuple(parts), elab) => {
                let node = self.as_value(elab)?;
                let ty = Ty::Tuple(parts.iter().map(|_| self.infer.fresh(Class::Any)).collect());
                let node = match self.infer.unify(&ty, &node.ty, arg.span) {
                    Ok(()) => node,
                    Err(_) => {
                        let found = self.infer.show(&node.ty);
                        let n = parts.len();
                        let message = format!(
                            "this pattern takes a tuple of {n} apart, but {what} is {found}"
                        );
                        let d = self.error(Code::TypeMismatch, message, pat.span);
                        return Err(d.also(arg.span, format!("this is {found}")).into());
                    }
                };
                let components: Vec<Node> = match node.kind {
                    NodeKind::Tuple(nodes) => nodes,
                    kind => {
                        let whole = Node::new(kind, node.ty, node.span);
                        let whole = self.shared(whole, "t", lets);
                        let project = |i| self.project(whole.clone(), i, whole.span);
                        (0..parts.len()).map(project).collect::<Res<Vec<_>>>()?
                    }
                };
                let mut env = env.clone();
                for (part, node) in parts.iter().zip(components) {
                    let arg = Arg { elab: Elab::Value(node), span: arg.span };
                    env = self.bind(part, arg, &env, sizes, lets, "the component")?;
                }
                Ok(env)
            }
        }
    }

    /// Checks a scalar operation. With `ty`, the operands must have that type.
    pub fn scalar(
        &mut self,
        op: ScalarOp,
        ty: Option<ScalarType>,
        mut args: Vec<Node>,
        span: Span,
    ) -> Res<Node> {
        use ScalarOp as O;
        let bool = Ty::Scalar(ScalarType::Bool);
        let name = builtins::op_name(op);
        // Fold the sign into the literal, so that the least integer can be written.
        if let (O::Neg, [Node { kind: NodeKind::Lit(lit @ (Lit::Int(_) | Lit::Float(_))), .. }]) =
            (op, args.as_slice())
        {
            let lit = match *lit {
                Lit::Int(v) => Lit::Int(-v),
                Lit::Float(v) => Lit::Float(-v),
                other @ (Lit::Bool(_) | Lit::Extreme { .. }) => other,
            };
            let ty = args[0].ty.clone();
            return Ok(Node::new(NodeKind::Lit(lit), ty, span));
        }
        let class = match op {
            O::And | O::Or | O::Not => Class::Any,
            O::Eq | O::Ne | O::Select => Class::Scalar,
            O::Add | O::Sub | O::Mul | O::Div | O::Rem | O::Pow => Class::Number,
            O::Lt | O::Le | O::Gt | O::Ge => Class::Number,
            O::Neg | O::Abs | O::Min | O::Max | O::Sign | O::Clamp | O::Cast(_) => Class::Number,
            O::OrderKey => Class::Number,
            O::BitAnd | O::BitOr | O::BitXor => Class::Bits,
            O::BitNot | O::Shl | O::Shr => Class::Integer,
            O::Popcount | O::Clz | O::Ctz | O::MulHi => Class::Integer,
            _ => Class::Float,
        };
        let mut nodes = vec![];
        if op == O::Select {
            let condition = args.remove(0);
            nodes.push(self.coerce(condition, &bool, "the condition of `select`")?);
        }
        let vector =
            args.iter().map(|a| self.infer.shallow(&a.ty)).find(|t| matches!(t, Ty::Vector(..)));
        let operand = match (ty, vector) {
            _ if matches!(op, O::And | O::Or | O::Not) => bool.clone(),
            (Some(s), Some(Ty::Vector(w, _))) => Ty::Vector(w, Rc::new(Ty::Scalar(s))),
            (Some(s), _) => Ty::Scalar(s),
            (None, Some(v)) => v,
            (None, None) => self.infer.fresh(class),
        };
        let mut first: Option<(Span, String)> = None;
        let written: Vec<_> = args.iter().map(|a| (self.operand_text(a), a.ty.clone())).collect();
        for arg in args {
            if self.infer.restrict(&arg.ty, class).is_err() {
                return Err(self.bad_operand(op, class, &arg, &written));
            }
            let (arg_span, found) = (arg.span, self.infer.show(&arg.ty));
            let other = (arg.ty.clone(), self.operand_text(&arg));
            let literal = matches!(arg.kind, NodeKind::Lit(_)).then(|| arg.clone());
            let integer = matches!(self.infer.shallow(&arg.ty), Ty::Scalar(s) if s.is_integer());
            match (self.coerce(arg, &operand, &format!("an operand of `{name}`")), &first) {
                (Ok(node), _) => nodes.push(node),
                (Err(Abort(Some(cause))), None) if integer && op == O::Not => {
                    return Err(cause.help("`~` inverts the bits of an integer").into());
                }
                (Err(Abort(Some(cause))), None) if self.dimensions(&other.0) > 0 => {
                    return Err(self.with_elements(*cause, op, arg_span, &written).into());
                }
                (Err(abort), None) => return Err(abort),
                (Err(Abort(None)), Some(_)) => return Err(Abort(None)),
                (Err(Abort(Some(cause))), Some((first_span, first_ty))) => {
                    let message = format!(
                        "the operands of `{name}` have different types: {first_ty} and {found}"
                    );
                    let mut d = self.error(cause.code, message, arg_span);
                    if let Some(label) = d.labels.first_mut() {
                        label.text = format!("this is {found}");
                    }
                    let first_text = written.first().and_then(|(text, _)| text.clone());
                    // The result of a shift has the type of what is shifted.
                    if let (O::Shl | O::Shr, Ty::Scalar(to), Ty::Scalar(from)) =
                        (op, self.infer.shallow(&operand), self.infer.shallow(&other.0))
                    {
                        let by = other.1.unwrap_or_else(|| "x".to_owned());
                        let help = format!("convert the second: `{to}.{from} {by}`");
                        return Err(d.help(help).into());
                    }
                    match self.conversion((&operand, first_text), (&other.0, other.1)) {
                        Some(help) => {
                            d = d.help(help);
                            d = Self::without_point(d, literal.as_ref().or(nodes.last()));
                        }
                        None => d.help = cause.help,
                    }
                    return Err(d.also(*first_span, format!("this is {first_ty}")).into());
                }
            }
            first.get_or_insert((arg_span, self.infer.show(&operand)));
        }
        if ty.is_some() && self.infer.restrict(&operand, class).is_err() {
            let message = format!("`{name}` does not work on {}", self.infer.show(&operand));
            return Err(self.error(Code::TypeMismatch, message, span).into());
        }
        let result = match self.infer.shallow(&operand) {
            // The type of the key depends on that of the number, which is the default if nothing says another.
            Ty::Meta(i) if op == O::OrderKey => {
                let float = self.infer.class(i) == Class::Float;
                let default = if float { ScalarType::F32 } else { ScalarType::I32 };
                let _ = self.infer.unify(&operand, &Ty::Scalar(default), span);
                op.result_of(default)
            }
            Ty::Scalar(s) => op.result_of(s),
            _ => op.fixed_result(),
        };
        let one = result.is_some() || matches!(op, O::Select | O::OrderKey);
        if matches!(self.infer.shallow(&operand), Ty::Vector(..)) && one {
            let message = format!("`{name}` does not work on vectors");
            let d = self.error(Code::TypeMismatch, message, span);
            return Err(d.help("use it inside the function of `vectorize`").into());
        }
        let ty = result.map_or(operand, Ty::Scalar);
        Ok(Node::new(NodeKind::Scalar(op, nodes), ty, span))
    }

    fn bad_operand(
        &self,
        op: ScalarOp,
        class: Class,
        arg: &Node,
        operands: &[(Option<String>, Ty)],
    ) -> Abort {
        let name = builtins::op_name(op);
        let found = self.infer.show(&arg.ty);
        let message = format!("`{name}` takes {}, but this is {found}", class.describe());
        let d = self.error(Code::TypeMismatch, message, arg.span);
        let text = || self.operand_text(arg).unwrap_or_else(|| "x".to_owned());
        let number = |(_, ty): &(Option<String>, Ty)| match self.infer.shallow(ty) {
            Ty::Scalar(s) => Some(s).filter(|s| *s != ScalarType::Bool),
            _ => None,
        };
        match self.infer.shallow(&arg.ty) {
            Ty::Array(..) => self.with_elements(d, op, arg.span, operands),
            Ty::Scalar(s) if class == Class::Float && s.is_integer() => match text() {
                // The function stands alone, as that of a map.
                text if text == name => d.help(format!("convert it: `\\x -> {name} (f32.{s} x)`")),
                text => d.help(format!("convert it: `f32.{s} {text}`")),
            },
            Ty::Scalar(ScalarType::Bool) if compares(op) && is_comparison(arg) => {
                d.help("two comparisons are `a < b && b < c`")
            }
            Ty::Scalar(s) if name == "^" && s.is_float() => d.help("a power is `x ** y`"),
            Ty::Meta(_) if name == "^" => d.help("a power is `x ** y`"),
            Ty::Scalar(ScalarType::Bool) if name == "~" => d.help("the negation of `bool` is `!`"),
            Ty::Scalar(ScalarType::Bool) if class == Class::Number => {
                let to = operands.iter().find_map(number).unwrap_or(ScalarType::I32);
                d.help(format!("convert it: `{to}.bool {}`", text()))
            }
            Ty::Scalar(s) if matches!(class, Class::Integer | Class::Bits) && s.is_float() => {
                d.help(format!("convert it: `i32.{s} {}`", text()))
            }
            _ => d,
        }
        .into()
    }

    /// Converts a closure to a function of the core, for a pattern that applies it to arguments of these types.
    /// Also returns the result type.
    pub fn fun(&mut self, closure: &Closure<'a>, params: Vec<Ty>, who: &str) -> Res<(Fun, Ty)> {
        let hints: Vec<String> = {
            let mut fun = &closure.fun;
            let mut skip = 0;
            while let FunVal::Partial(inner, args) = &**fun {
                skip += args.len();
                fun = inner;
            }
            let patterns: &[Pat] = match &**fun {
                FunVal::Lambda { params, .. } => params,
                FunVal::Decl(decl) => &decl.params,
                FunVal::Builtin(_)
                | FunVal::SectionRight(..)
                | FunVal::Part(_)
                | FunVal::Compose(..)
                | FunVal::Partial(..) => &[],
            };
            let name = |i| patterns.get(skip + i).and_then(pattern_name).unwrap_or("x").to_owned();
            (0..params.len()).map(name).collect()
        };
        let given = params.len();
        let params: Vec<(VarId, Ty)> =
            hints.iter().zip(params).map(|(name, ty)| (self.fresh_var(name), ty)).collect();
        let arg = |(var, ty): &(VarId, Ty)| {
            let node = Node::new(NodeKind::Var(*var), ty.clone(), closure.span);
            Arg { elab: Elab::Value(node), span: closure.span }
        };
        let args = params.iter().map(arg).collect();
        let takes = Self::arity(&closure.fun, &[]);
        let wrong = |checker: &Self| {
            let what = Checker::describe(&closure.fun);
            let message =
                format!("{who} gives its function {}, but {what} takes {takes}", count(given));
            let d = checker.error(Code::Arity, message, closure.span);
            if given == 1 && takes > 1 && who.starts_with("`map") {
                d.help("take a tuple apart with `\\(a, b) -> ...`, or use `map2` over two arrays")
                    .into()
            } else {
                Abort::from(d)
            }
        };
        if takes > given {
            return Err(wrong(self));
        }
        let body = Closure { lets: vec![], ..closure.clone() };
        self.functions += 1;
        let outer = std::mem::replace(&mut self.function, self.functions);
        let applied = self.apply(body, args, closure.span);
        self.function = outer;
        match applied {
            Ok(Elab::Value(body)) => {
                let ty = body.ty.clone();
                Ok((Fun { params, body: Box::new(body) }, ty))
            }
            // The body of the function itself lacks arguments.
            Ok(function @ Elab::Fun(_)) if takes == given => {
                Err(self.as_value(function).err().unwrap_or_else(|| wrong(self)))
            }
            Ok(Elab::Fun(_)) => Err(wrong(self)),
            Err(Abort(Some(d))) if d.code == Code::Arity && takes < given => Err(wrong(self)),
            Err(abort) => Err(abort),
        }
    }
}

/// Whether an operation compares numbers by their order.
fn compares(op: ScalarOp) -> bool {
    matches!(op, ScalarOp::Lt | ScalarOp::Le | ScalarOp::Gt | ScalarOp::Ge)
}

fn is_comparison(node: &Node) -> bool {
    matches!(node.kind, NodeKind::Scalar(op, _) if compares(op))
}
