//! The meaning of names while a program is inlined: values, and functions, which exist only at compile time.

use super::builtins::Builtin;
use super::infer::Ty;
use super::ir::Node;
use crate::diag::Span;
use crate::lang::ast::{Binders, Decl, Expr, Part, Pat, TypeExpr};
use crate::lang::size::Size;
use crate::lang::typed::{ScalarOp, VarId};
use std::rc::Rc;

/// A function that is known at compile time.
#[derive(Clone, Debug)]
pub enum FunVal<'a> {
    /// `\x -> e`, or a local function.
    Lambda {
        binders: Option<&'a Binders>,
        params: &'a [Pat],
        result: Option<&'a TypeExpr>,
        body: &'a Expr,
        env: Env<'a>,
    },
    /// A definition of the file.
    Decl(&'a Decl),
    /// A function of the language.
    Builtin(Builtin),
    /// `(op e)`.
    SectionRight(ScalarOp, Box<Node>),
    /// `(.0.x)`.
    Part(&'a [Part]),
    /// The first function, then the second.
    Compose(Rc<FunVal<'a>>, Rc<FunVal<'a>>),
    /// A function with its first arguments given.
    Partial(Rc<FunVal<'a>>, Vec<Arg<'a>>),
}

/// A function with the `let`s that its captured arguments need.
#[derive(Clone, Debug)]
pub struct Closure<'a> {
    /// The function.
    pub fun: Rc<FunVal<'a>>,
    /// The `let`s, to be placed around the expression that uses the function.
    pub lets: Vec<(VarId, Node)>,
    /// Its place.
    pub span: Span,
}

/// The meaning of an expression.
#[derive(Clone, Debug)]
pub enum Elab<'a> {
    /// A value.
    Value(Node),
    /// A function.
    Fun(Closure<'a>),
}

/// An argument.
#[derive(Clone, Debug)]
pub struct Arg<'a> {
    /// Its meaning.
    pub elab: Elab<'a>,
    /// Its place.
    pub span: Span,
}

/// The meaning of a local name.
#[derive(Clone, Debug)]
pub enum Bind<'a> {
    /// An expression that may be repeated at no cost.
    Value(Node),
    /// A size. As a value, it may have any integer type.
    Size(Size),
    /// A function.
    Fun(Rc<FunVal<'a>>),
    /// A type parameter, whose name begins with a quote here.
    Type(Ty),
}

/// Local names, innermost first. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Env<'a>(Option<Rc<Link<'a>>>);

#[derive(Debug)]
struct Link<'a> {
    name: String,
    bind: Bind<'a>,
    next: Env<'a>,
}

impl Drop for Env<'_> {
    /// Drops the list in a loop. A recursive drop of a long list would overflow the stack.
    fn drop(&mut self) {
        let mut next = self.0.take();
        while let Some(link) = next.and_then(Rc::into_inner) {
            let mut link = link;
            next = link.next.0.take();
        }
    }
}

impl<'a> Env<'a> {
    /// Returns the environment with an additional name.
    #[must_use]
    pub fn with(&self, name: &str, bind: Bind<'a>) -> Env<'a> {
        Env(Some(Rc::new(Link { name: name.to_owned(), bind, next: self.clone() })))
    }

    /// Returns the meaning of a name.
    pub fn get(&self, name: &str) -> Option<&Bind<'a>> {
        let mut env = self;
        while let Some(link) = &env.0 {
            if link.name == name {
                return Some(&link.bind);
            }
            env = &link.next;
        }
        None
    }

    /// Returns all names, innermost first.
    pub fn names(&self) -> Vec<&str> {
        let mut names = vec![];
        let mut env = self;
        while let Some(link) = &env.0 {
            names.push(link.name.as_str());
            env = &link.next;
        }
        names
    }
}
