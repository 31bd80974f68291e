//! The core language of elaboration: the typed core with types of the calculus, pairs for tuples, unrolled
//! iterates, and variables of tuple type taken apart. Used in this folder only.

use crate::calculus::scalar::Lit;
use crate::calculus::size::Size;
use crate::calculus::ty::Ty;
use crate::diag::Span;
use crate::lang::typed::{Prim, ScalarOp};
use crate::lang::types::ScalarType;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A bound variable, unique within an elaboration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Var(pub(super) u32);

/// A set of variables.
pub(super) type Vars = BTreeSet<Var>;

/// The arrangement of variables in a value: an environment, or a parameter that was taken apart.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Layout {
    /// No variables.
    Unit,
    /// One variable.
    Var(Var, Ty),
    /// Two parts.
    Pair(Box<Layout>, Box<Layout>),
}

impl Layout {
    /// Pairs two layouts, dropping units.
    pub(super) fn pair(a: Layout, b: Layout) -> Layout {
        match (a, b) {
            (Layout::Unit, l) | (l, Layout::Unit) => l,
            (a, b) => Layout::Pair(Box::new(a), Box::new(b)),
        }
    }

    /// Returns the type of the value.
    pub(super) fn ty(&self) -> Ty {
        match self {
            Layout::Unit => Ty::Unit,
            Layout::Var(_, t) => t.clone(),
            Layout::Pair(a, b) => Ty::pair(&a.ty(), &b.ty()),
        }
    }

    /// Returns the layout of the variables in `used`, in the same order.
    pub(super) fn restrict(&self, used: &Vars) -> Layout {
        match self {
            Layout::Unit => Layout::Unit,
            Layout::Var(v, _) if used.contains(v) => self.clone(),
            Layout::Var(..) => Layout::Unit,
            Layout::Pair(a, b) => Layout::pair(a.restrict(used), b.restrict(used)),
        }
    }

    /// Returns the variables in order.
    pub(super) fn vars(&self) -> Vec<(Var, Ty)> {
        match self {
            Layout::Unit => vec![],
            Layout::Var(v, t) => vec![(*v, t.clone())],
            Layout::Pair(a, b) => [a.vars(), b.vars()].concat(),
        }
    }

    /// Returns the layout with new variables, which take the place of its own in `e`.
    pub(super) fn renamed(&self, e: &mut Ex, fresh: &mut dyn FnMut() -> Var) -> Layout {
        match self {
            Layout::Unit => Layout::Unit,
            Layout::Var(v, t) => {
                let other = fresh();
                e.put(*v, &Ex::new(Kind::Var(other), t.clone(), e.span));
                Layout::Var(other, t.clone())
            }
            Layout::Pair(a, b) => {
                let a = a.renamed(e, fresh);
                Layout::Pair(Box::new(a), Box::new(b.renamed(e, fresh)))
            }
        }
    }

    /// Substitutes the components of a value for the variables in an expression.
    pub(super) fn put_in(&self, e: &mut Ex, value: &Ex) {
        match self {
            Layout::Unit => {}
            Layout::Var(v, _) => e.put(*v, value),
            Layout::Pair(a, b) => {
                for (part, second) in [(a, false), (b, true)] {
                    if let Some(component) = value.clone().proj(second) {
                        part.put_in(e, &component);
                    }
                }
            }
        }
    }

    /// Whether any of the variables is in `used`.
    pub(super) fn meets(&self, used: &Vars) -> bool {
        match self {
            Layout::Unit => false,
            Layout::Var(v, _) => used.contains(v),
            Layout::Pair(a, b) => a.meets(used) || b.meets(used),
        }
    }

    /// Returns the whole value as an expression.
    pub(super) fn value(&self, span: Span) -> Ex {
        match self {
            Layout::Unit => Ex::new(Kind::Unit, Ty::Unit, span),
            Layout::Var(v, t) => Ex::new(Kind::Var(*v), t.clone(), span),
            Layout::Pair(a, b) => Ex::pair(a.value(span), b.value(span)),
        }
    }
}

/// A function whose parameters are taken apart.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Lambda {
    /// One layout for each parameter.
    pub(super) params: Vec<Layout>,
    /// The body.
    pub(super) body: Box<Ex>,
}

impl Lambda {
    /// Returns the variables of the parameters.
    pub(super) fn own(&self) -> Vars {
        self.params.iter().flat_map(Layout::vars).map(|(v, _)| v).collect()
    }

    /// Returns the variables from outside that the function mentions.
    pub(super) fn captures(&self) -> Vars {
        let mut free = self.body.free();
        for p in &self.params {
            remove(&mut free, p);
        }
        free
    }
}

/// An expression.
#[derive(Clone, Debug)]
pub(super) struct Ex {
    pub(super) kind: Kind,
    pub(super) ty: Ty,
    pub(super) span: Span,
}

/// Expressions are equal wherever they stand in the text.
impl PartialEq for Ex {
    fn eq(&self, other: &Ex) -> bool {
        self.kind == other.kind && self.ty == other.ty
    }
}

/// The kinds of expressions.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// The one value of the unit type.
    Unit,
    /// A bound variable.
    Var(Var),
    /// A parameter of the entry that contains arrays.
    Input(Arc<str>),
    /// A component of an entry's scalar parameter.
    ScalarInput(Arc<str>, usize),
    Lit(Lit),
    /// A size as a value.
    Size(Size),
    Pair(Box<Ex>, Box<Ex>),
    Proj(Box<Ex>, bool),
    Index(Box<Ex>, Box<Ex>),
    Op(ScalarOp, Vec<Ex>),
    If(Box<Ex>, Box<Ex>, Box<Ex>),
    Let(Layout, Box<Ex>, Box<Ex>),
    /// The initial value, the bound, the layouts of the counter and the accumulator, and the body.
    For(Box<Ex>, Box<Ex>, Layout, Layout, Box<Ex>),
    /// The initial value, the layout of the accumulator, the condition and the body.
    While(Box<Ex>, Layout, Box<Ex>, Box<Ex>),
    /// `map` over arrays of one length: one parameter for each array.
    Map(Prim, Lambda, Vec<Ex>),
    /// Any other pattern.
    Prim(Prim, Vec<Lambda>, Vec<Size>, Vec<Ex>),
}

fn remove(free: &mut Vars, layout: &Layout) {
    for (v, _) in layout.vars() {
        free.remove(&v);
    }
}

impl Ex {
    pub(super) fn new(kind: Kind, ty: Ty, span: Span) -> Ex {
        Ex { kind, ty, span }
    }

    pub(super) fn pair(a: Ex, b: Ex) -> Ex {
        let (ty, span) = (Ty::pair(&a.ty, &b.ty), a.span.to(b.span));
        Ex::new(Kind::Pair(Box::new(a), Box::new(b)), ty, span)
    }

    /// Returns a component; of a pair expression, the component itself. `None` when the type is no pair.
    pub(super) fn proj(self, second: bool) -> Option<Ex> {
        if let Kind::Pair(a, b) = self.kind {
            return Some(if second { *b } else { *a });
        }
        let Ty::Pair(a, b) = &self.ty else {
            return None;
        };
        let ty = (**if second { b } else { a }).clone();
        let span = self.span;
        Some(Ex::new(Kind::Proj(Box::new(self), second), ty, span))
    }

    /// Returns an expression behind those of the `let`s around it that it needs, the outermost first; they get other names.
    pub(super) fn behind<'a>(
        self,
        lets: impl DoubleEndedIterator<Item = &'a (Layout, Ex)>,
        fresh: &mut dyn FnMut() -> Var,
    ) -> Ex {
        lets.rev().fold(self, |mut e, (p, value)| {
            if !p.meets(&e.free()) {
                return e;
            }
            let p = p.renamed(&mut e, fresh);
            e.bound(p, value.clone())
        })
    }

    /// Returns the expression where a name has a value.
    pub(super) fn bound(self, p: Layout, value: Ex) -> Ex {
        let (ty, span) = (self.ty.clone(), self.span);
        Ex::new(Kind::Let(p, Box::new(value), Box::new(self)), ty, span)
    }

    /// Returns the expression behind all of the `let`s, the outermost first.
    pub(super) fn after(self, lets: Vec<(Layout, Ex)>) -> Ex {
        lets.into_iter().rev().fold(self, |e, (p, value)| e.bound(p, value))
    }

    /// Returns what stands behind the `let`s.
    pub(super) fn behind_lets(&self) -> &Ex {
        match &self.kind {
            Kind::Let(_, _, body) => body.behind_lets(),
            _ => self,
        }
    }

    /// Returns the `let`s around an expression, the outermost first, and what stands behind them.
    pub(super) fn apart_from_lets(self) -> (Vec<(Layout, Ex)>, Ex) {
        let (mut lets, mut e) = (vec![], self);
        while let Kind::Let(p, value, body) = e.kind {
            lets.push((p, *value));
            e = *body;
        }
        (lets, e)
    }

    /// Returns what stands behind the `let`s, to change it.
    pub(super) fn behind_lets_mut(&mut self) -> &mut Ex {
        match self.kind {
            Kind::Let(_, _, ref mut body) => body.behind_lets_mut(),
            _ => self,
        }
    }

    /// Returns an operation on scalars with a result of type `t`.
    pub(super) fn op(op: ScalarOp, args: Vec<Ex>, t: ScalarType, span: Span) -> Ex {
        Ex::new(Kind::Op(op, args), Ty::Scalar(t), span)
    }

    /// Returns one of two values, as a condition says.
    pub(super) fn choice(c: Ex, yes: Ex, no: Ex) -> Ex {
        let (ty, span) = (yes.ty.clone(), yes.span);
        Ex::new(Kind::If(Box::new(c), Box::new(yes), Box::new(no)), ty, span)
    }

    /// Returns a copy that binds other names.
    pub(super) fn refreshed(&self, fresh: &mut dyn FnMut() -> Var) -> Ex {
        let mut out = self.clone();
        out.rename(fresh);
        out
    }

    /// Gives the names that are bound in the expression other names.
    pub(super) fn rename(&mut self, fresh: &mut dyn FnMut() -> Var) {
        let mut lambda = |f: &mut Lambda| {
            for p in &mut f.params {
                *p = p.renamed(&mut f.body, fresh);
            }
        };
        match &mut self.kind {
            Kind::Map(_, f, _) => lambda(f),
            Kind::Prim(_, fs, _, _) => fs.iter_mut().for_each(lambda),
            Kind::Let(p, _, body) => *p = p.renamed(body, fresh),
            Kind::For(_, _, i, acc, body) => {
                *i = i.renamed(body, fresh);
                *acc = acc.renamed(body, fresh);
            }
            Kind::While(_, acc, condition, body) => {
                let new = acc.renamed(condition, fresh);
                for ((old, ty), (new, _)) in acc.vars().into_iter().zip(new.vars()) {
                    body.put(old, &Ex::new(Kind::Var(new), ty, body.span));
                }
                *acc = new;
            }
            _ => {}
        }
        self.parts_mut().into_iter().for_each(|part| part.rename(fresh));
    }

    /// Replaces the parts outside the functions of patterns for which `change` gives another expression, the innermost first.
    /// Returns whether there were any.
    pub(super) fn change_outside_functions(
        &mut self,
        change: &mut dyn FnMut(&Ex) -> Option<Ex>,
    ) -> bool {
        let (mut changed, parts) = (false, self.parts_outside_functions_mut());
        parts.into_iter().for_each(|part| changed |= part.change_outside_functions(change));
        if let Some(other) = change(self) {
            *self = other;
            changed = true;
        }
        changed
    }

    /// Returns the map of a function with this body over those of the arrays that the body uses. The function has variables
    /// of its own. `None` if the body uses no array.
    pub(super) fn map_of<'a>(
        mut body: Ex,
        arrays: impl IntoIterator<Item = (&'a Layout, &'a Ex)>,
        fresh: &mut dyn FnMut() -> Var,
    ) -> Option<Ex> {
        let free = body.free();
        let (mut params, mut args): (Vec<Layout>, Vec<Ex>) = (vec![], vec![]);
        for (p, array) in arrays.into_iter().filter(|(p, _)| p.meets(&free)) {
            params.push(p.renamed(&mut body, fresh));
            args.push(array.clone());
        }
        let Ty::Array(n, _) = &args.first()?.ty else { return None };
        let (ty, span) = (Ty::array(n, &body.ty), body.span);
        let f = Lambda { params, body: Box::new(body) };
        Some(Ex::new(Kind::Map(Prim::Map, f, args), ty, span))
    }

    /// Returns the direct parts, each with the layouts that bind its variables.
    pub(super) fn parts(&self) -> Vec<(Vec<&Layout>, &Ex)> {
        match &self.kind {
            Kind::Unit
            | Kind::Var(_)
            | Kind::Input(_)
            | Kind::ScalarInput(..)
            | Kind::Lit(_)
            | Kind::Size(_) => vec![],
            Kind::Pair(a, b) | Kind::Index(a, b) => vec![(vec![], a), (vec![], b)],
            Kind::Proj(a, _) => vec![(vec![], a)],
            Kind::Op(_, es) => es.iter().map(|e| (vec![], e)).collect(),
            Kind::If(c, t, f) => vec![(vec![], c), (vec![], t), (vec![], f)],
            Kind::Let(p, e, b) => vec![(vec![], e), (vec![p], b)],
            Kind::For(init, bound, index, acc, body) => {
                vec![(vec![], init), (vec![], bound), (vec![index, acc], body)]
            }
            Kind::While(init, acc, cond, body) => {
                vec![(vec![], init), (vec![acc], cond), (vec![acc], body)]
            }
            Kind::Map(_, f, args) => {
                let mut out = vec![(f.params.iter().collect(), &*f.body)];
                out.extend(args.iter().map(|e| (vec![], e)));
                out
            }
            Kind::Prim(_, funs, _, args) => {
                let lambdas = funs.iter().map(|f| (f.params.iter().collect(), &*f.body));
                lambdas.chain(args.iter().map(|e| (vec![], e))).collect()
            }
        }
    }

    /// Returns the direct parts, to change them.
    pub(super) fn parts_mut(&mut self) -> Vec<&mut Ex> {
        match &mut self.kind {
            Kind::Unit
            | Kind::Var(_)
            | Kind::Input(_)
            | Kind::ScalarInput(..)
            | Kind::Lit(_)
            | Kind::Size(_) => vec![],
            Kind::Pair(a, b) | Kind::Index(a, b) | Kind::Let(_, a, b) => vec![a, b],
            Kind::Proj(a, _) => vec![a],
            Kind::Op(_, es) => es.iter_mut().collect(),
            Kind::If(a, b, c) | Kind::For(a, b, _, _, c) | Kind::While(a, _, b, c) => vec![a, b, c],
            Kind::Map(_, f, args) => std::iter::once(&mut *f.body).chain(args).collect(),
            Kind::Prim(_, funs, _, args) => {
                funs.iter_mut().map(|f| &mut *f.body).chain(args).collect()
            }
        }
    }

    /// Returns the direct parts that are no functions of patterns, to change them.
    pub(super) fn parts_outside_functions_mut(&mut self) -> Vec<&mut Ex> {
        let functions = match &self.kind {
            Kind::Map(..) => 1,
            Kind::Prim(_, functions, ..) => functions.len(),
            _ => 0,
        };
        self.parts_mut().split_off(functions)
    }

    /// Returns the variables from outside that the expression mentions.
    pub(super) fn free(&self) -> Vars {
        if let Kind::Var(v) = self.kind {
            return Vars::from([v]);
        }
        let mut out = Vars::new();
        for (bound, part) in self.parts() {
            let mut inner = part.free();
            for l in bound {
                remove(&mut inner, l);
            }
            out.extend(inner);
        }
        out
    }

    /// Returns how often a variable is mentioned; a mention under a lambda or in a loop counts as infinitely
    /// many.
    pub(super) fn uses(&self, v: Var) -> usize {
        if self.kind == Kind::Var(v) {
            return 1;
        }
        let mut n = 0usize;
        for (bound, part) in self.parts() {
            let inside = part.uses(v);
            let repeated = !bound.is_empty() && !matches!(self.kind, Kind::Let(..));
            n = n.saturating_add(if repeated && inside > 0 { usize::MAX } else { inside });
        }
        n
    }

    /// Substitutes `value` for a variable. Names are unique, so nothing is captured.
    pub(super) fn put(&mut self, v: Var, value: &Ex) {
        if self.kind == Kind::Var(v) {
            *self = value.clone();
            return;
        }
        self.parts_mut().into_iter().for_each(|part| part.put(v, value));
        if let Kind::Proj(a, second) = &self.kind
            && let Kind::Pair(x, y) = &a.kind
        {
            *self = (**if *second { y } else { x }).clone();
        }
    }

    /// Replaces a part of the expression wherever it occurs.
    pub(super) fn replace(&mut self, part: &Ex, by: &Ex) {
        if self.kind == part.kind {
            *self = by.clone();
        } else {
            self.parts_mut().into_iter().for_each(|p| p.replace(part, by));
        }
    }

    /// Whether a part occurs in the expression.
    pub(super) fn contains(&self, part: &Ex) -> bool {
        self.kind == part.kind || self.parts().iter().any(|(_, e)| e.contains(part))
    }

    /// Whether computing the expression again costs nothing, so that a `let` need not be kept.
    pub(super) fn is_free_of_cost(&self) -> bool {
        match &self.kind {
            Kind::Unit
            | Kind::Var(_)
            | Kind::Input(_)
            | Kind::ScalarInput(..)
            | Kind::Lit(_)
            | Kind::Size(_) => true,
            Kind::Proj(a, _) => a.is_free_of_cost(),
            Kind::Pair(a, b) => a.is_free_of_cost() && b.is_free_of_cost(),
            Kind::Map(Prim::Map, f, args) => {
                !f.body.ty.is_scalar()
                    && f.body.is_free_of_cost()
                    && args.iter().all(Ex::is_free_of_cost)
            }
            Kind::Prim(prim, funs, _, args) => {
                is_view(*prim) && funs.is_empty() && args.iter().all(Ex::is_free_of_cost)
            }
            Kind::Index(..)
            | Kind::Op(..)
            | Kind::If(..)
            | Kind::Let(..)
            | Kind::For(..)
            | Kind::While(..)
            | Kind::Map(..) => false,
        }
    }

    /// Whether every use may compute the expression again: it rearranges arrays, or is a scalar from
    /// literals, sizes and parameters without a choice or a loop.
    pub(super) fn may_be_repeated(&self) -> bool {
        match &self.kind {
            Kind::Op(_, args) => args.iter().all(Ex::may_be_repeated),
            _ => self.is_free_of_cost(),
        }
    }

    /// Whether the expression is a row at a computed place, of which an element costs no more if the place is computed again.
    pub(super) fn is_row_at_place(&self) -> bool {
        match &self.kind {
            Kind::Index(rows, at) => {
                self.ty.has_array()
                    && at.may_be_repeated()
                    && (rows.is_free_of_cost() || rows.is_row_at_place())
            }
            _ => false,
        }
    }

    /// Returns the number of nodes.
    pub(super) fn size(&self) -> usize {
        1 + self.parts().iter().map(|(_, e)| e.size()).sum::<usize>()
    }

    /// Whether the expression is built from scalars alone: no arrays, no patterns.
    pub(super) fn is_pure_scalar(&self) -> bool {
        match &self.kind {
            Kind::Map(..) | Kind::Prim(..) | Kind::Index(..) | Kind::Input(_) | Kind::Unit => false,
            Kind::Var(_) | Kind::ScalarInput(..) | Kind::Lit(_) | Kind::Size(_) => {
                self.ty.is_scalar()
            }
            Kind::Pair(..)
            | Kind::Proj(..)
            | Kind::Op(..)
            | Kind::If(..)
            | Kind::Let(..)
            | Kind::For(..)
            | Kind::While(..) => {
                self.ty.is_scalar() && self.parts().iter().all(|(_, e)| e.is_pure_scalar())
            }
        }
    }
}

/// Whether a pattern only rearranges its arguments.
pub(super) fn is_view(prim: Prim) -> bool {
    match prim {
        Prim::Zip
        | Prim::Unzip
        | Prim::Split
        | Prim::Join
        | Prim::Transpose
        | Prim::Slide
        | Prim::Pad(_)
        | Prim::Iota
        | Prim::Replicate
        | Prim::Concat
        | Prim::Take
        | Prim::Drop
        | Prim::Reverse
        | Prim::Rotate
        | Prim::ReorderStride
        | Prim::AsVector
        | Prim::AsScalar => true,
        // Two copies of one `reorder` might choose different permutations.
        Prim::Reorder
        | Prim::Map
        | Prim::Reduce
        | Prim::ReduceComm
        | Prim::ReducePart
        | Prim::Scan(_)
        | Prim::Iterate
        | Prim::Gather
        | Prim::Scatter
        | Prim::Histogram
        | Prim::CountingSort
        | Prim::Few
        | Prim::Sorted
        | Prim::InOrder
        | Prim::Generate
        | Prim::MapWrg(_)
        | Prim::MapLcl(_)
        | Prim::MapGlb(_)
        | Prim::MapSeq
        | Prim::MapUnroll
        | Prim::MapWarp
        | Prim::MapLane
        | Prim::ReduceSeq
        | Prim::ReduceUnroll
        | Prim::IterateSeq
        | Prim::ToGlobal
        | Prim::ToLocal
        | Prim::ToPrivate
        | Prim::Vectorize => false,
    }
}
