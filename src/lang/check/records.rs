//! Records and named types. A record is a tuple of its fields in the order of their names; one with a single field is
//! that field. The order as written has no meaning, so that `{x: f32, y: f32}` and `{y: f32, x: f32}` are one type.

use super::elab::{Abort, Checker, Res};
use super::env::{Arg, Bind, Elab, Env};
use super::infer::{Class, Ty};
use super::ir::{Node, NodeKind};
use crate::diag::{Code, Span};
use crate::lang::ast::{Expr, Name, Pat, TypeDecl};
use crate::lang::naming::{duplicate, meant};
use crate::lang::typed::VarId;

impl<'a> Checker<'a> {
    /// Returns the positions of the fields in the order of their names. Refuses a name that occurs twice.
    fn order(&self, names: &[&Name]) -> Res<Vec<usize>> {
        let mut order: Vec<usize> = (0..names.len()).collect();
        order.sort_by_key(|i| &names[*i].text);
        for pair in order.windows(2) {
            let (first, again) = (names[pair[0]], names[pair[1]]);
            if first.text == again.text {
                return Err(duplicate(self.source, &again.text, again.span, first.span).into());
            }
        }
        Ok(order)
    }

    /// Returns the type of a record with these fields, given in the order of the text.
    pub fn record_type<'n>(&self, names: impl Iterator<Item = &'n Name>, parts: &[Ty]) -> Res<Ty> {
        let names: Vec<&Name> = names.collect();
        let order = self.order(&names)?;
        let sorted = order.iter().map(|i| names[*i].text.clone()).collect();
        Ok(Ty::Record(sorted, order.iter().map(|i| parts[*i].clone()).collect()))
    }

    /// Elaborates `{x = e, y}`.
    pub fn record(
        &mut self,
        fields: &'a [(Name, Option<Expr>)],
        span: Span,
        env: &Env<'a>,
    ) -> Res<Node> {
        let mut nodes = vec![];
        for (name, value) in fields {
            let node = match value {
                Some(value) => self.value(value, env),
                None => {
                    let elab = self.name(&name.text, name.span, env)?;
                    let node = self.as_value(elab)?;
                    self.seen(name.span, &node.ty);
                    node
                }
            };
            nodes.push(Some(node));
        }
        let names: Vec<&Name> = fields.iter().map(|(name, _)| name).collect();
        let order = self.order(&names)?;
        let nodes = order.iter().filter_map(|i| nodes[*i].take()).collect();
        let names = order.iter().map(|i| names[*i].text.clone()).collect();
        Ok(Self::of_fields(names, nodes, span))
    }

    fn of_fields(names: Vec<String>, mut nodes: Vec<Node>, span: Span) -> Node {
        let ty = Ty::Record(names.into(), nodes.iter().map(|n| n.ty.clone()).collect());
        match (nodes.len(), nodes.pop()) {
            (1, Some(node)) => Node::new(node.kind, ty, span),
            (_, last) => {
                nodes.extend(last);
                Node::new(NodeKind::Tuple(nodes), ty, span)
            }
        }
    }

    /// Returns `record.name`.
    pub fn field(&mut self, record: Node, name: &str, span: Span) -> Res<Node> {
        let (names, types) = match self.infer.shallow(&record.ty) {
            Ty::Record(names, types) => (names, types),
            _ if self.is_lost(&record) => return Err(Abort(None)),
            ty => {
                let found = self.infer.show(&ty);
                let message = format!("only records have fields, and this is {found}");
                let d = self.error(Code::TypeMismatch, message, record.span);
                return Err(match ty {
                    Ty::Meta(_) => d.help("say which type it has: `(p: {x: f32, y: f32})`"),
                    Ty::Tuple(_) => d.help("a component of a tuple is `t.0`"),
                    Ty::Array(..) if matches!(name, "length" | "len" | "size" | "shape") => {
                        d.help("the length of an array is `length xs`")
                    }
                    _ => d,
                }
                .into());
            }
        };
        let Some(i) = names.iter().position(|n| n == name) else {
            let message = format!("there is no field `{name}` in {}", self.infer.show(&record.ty));
            let d = self.error(Code::UnknownName, message, span);
            return Err(meant(d, name, names.iter().map(String::as_str)).into());
        };
        let ty = types[i].clone();
        Ok(match types.len() {
            1 => Node::new(record.kind, ty, span),
            _ => Self::component(record, i, ty, span),
        })
    }

    /// Returns `record with path = value`.
    pub fn update(&mut self, record: Node, path: &[Name], value: Node, span: Span) -> Res<Node> {
        let mut lets = vec![];
        let record = self.shared(record, "r", &mut lets);
        let updated = self.with_field(&record, path, value, span)?;
        self.defining(updated, lets)
    }

    fn with_field(&mut self, record: &Node, path: &[Name], value: Node, span: Span) -> Res<Node> {
        let Some((name, rest)) = path.split_first() else {
            let ty = record.ty.clone();
            return self.coerce(value, &ty, "the new value");
        };
        let old = self.field(record.clone(), &name.text, name.span)?;
        let new = self.with_field(&old, rest, value, span)?;
        let Ty::Record(names, _) = self.infer.shallow(&record.ty) else { return Err(Abort(None)) };
        let mut new = Some(new);
        let mut nodes = vec![];
        for field in &*names {
            nodes.push(match new.take_if(|_| *field == name.text) {
                Some(new) => new,
                None => self.field(record.clone(), field, span)?,
            });
        }
        Ok(Self::of_fields(names.to_vec(), nodes, span))
    }

    /// Binds the names of `{x = p, y}`. A record whose type is known may have more fields.
    pub fn bind_fields(
        &mut self,
        fields: &'a [(Name, Option<Pat>)],
        record: Node,
        at: Span,
        env: &Env<'a>,
        sizes: &Env<'a>,
        lets: &mut Vec<(VarId, Node)>,
    ) -> Res<Env<'a>> {
        let names: Vec<&Name> = fields.iter().map(|(name, _)| name).collect();
        let order = self.order(&names)?;
        if matches!(self.infer.shallow(&record.ty), Ty::Meta(_)) {
            let names = order.iter().map(|i| names[*i].text.clone()).collect();
            let parts = order.iter().map(|_| self.infer.fresh(Class::Any)).collect();
            let ty = Ty::Record(names, parts);
            if let Err(clash) = self.infer.unify(&ty, &record.ty, at) {
                return Err(self.mismatch(clash, &ty, &record, "the value"));
            }
        }
        let all = matches!(&record.kind, NodeKind::Tuple(nodes) if nodes.len() == fields.len());
        let record = if all { record } else { self.shared(record, "r", lets) };
        let mut env = env.clone();
        for (name, pat) in fields {
            let node = self.field(record.clone(), &name.text, name.span)?;
            env = match pat {
                Some(pat) => {
                    let arg = Arg { elab: Elab::Value(node), span: at };
                    self.bind(pat, arg, &env, sizes, lets, "the field")?
                }
                None => {
                    self.seen(name.span, &node.ty);
                    let node = self.shared(node, &name.text, lets);
                    env.with(&name.text, Bind::Value(node))
                }
            };
        }
        Ok(env)
    }

    /// Returns the names that the body of a named type may mention: its sizes.
    pub fn named_type(
        &mut self,
        decl: &'a TypeDecl,
        sizes: &'a [Expr],
        env: &Env<'a>,
    ) -> Res<Env<'a>> {
        self.charge(decl.components, decl.name.span)?;
        let mut inner = Env::default();
        for (param, size) in decl.params.iter().zip(sizes) {
            let size = self.size_in_type(size, env)?;
            inner = inner.with(&param.text, Bind::Size(size));
        }
        Ok(inner)
    }

    /// Returns the names of a type's components; none if it has no records.
    pub fn labels(&self, ty: &Ty) -> Vec<String> {
        let mut records = false;
        let mut labels = vec![];
        self.add_labels(ty, "", &mut labels, &mut records);
        if records { labels } else { vec![] }
    }

    fn add_labels(&self, ty: &Ty, path: &str, labels: &mut Vec<String>, records: &mut bool) {
        let under = |part: &dyn std::fmt::Display| match path {
            "" => part.to_string(),
            _ => format!("{path}.{part}"),
        };
        match self.infer.shallow(ty) {
            Ty::Meta(_) | Ty::Scalar(_) | Ty::Vector(..) => labels.push(path.to_owned()),
            Ty::Array(_, t) => self.add_labels(&t, path, labels, records),
            Ty::Tuple(ts) => {
                for (i, t) in ts.iter().enumerate() {
                    self.add_labels(t, &under(&i), labels, records);
                }
            }
            Ty::Record(names, ts) => {
                *records = true;
                for (name, t) in names.iter().zip(&*ts) {
                    self.add_labels(t, &under(name), labels, records);
                }
            }
        }
    }

    /// Returns the error for the type of a function where that of a value is needed.
    pub fn not_a_value(&self, span: Span) -> Abort {
        self.error(Code::TypeMismatch, "a function is not a value, so it has no type here", span)
            .help("only parameters of a `def` may be functions")
            .into()
    }
}
